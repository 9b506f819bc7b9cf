//! The writing of fragments: data in the order in which it arrives, then parity computed from the
//! data.

use std::io::{self, IoSlice, Write};
use std::sync::Arc;

use paritas::Codec;
use paritas_store::error::{Error, Result};

use crate::foreign::fragments::chunk;
use crate::foreign::layout::{FragmentLayout, FragmentRun};
use paritas_store::staging::StagedFile;

/// Files of fragments that are being written.
#[derive(Clone)]
pub(crate) struct FragmentFiles {
    files: Arc<Vec<StagedFile>>,
    layout: FragmentLayout,
    /// Number of bytes before a fragment's payload.
    header: u64,
}

impl FragmentFiles {
    /// Creates a spread of a file over `files`. Each of them begins with a header of `header`
    /// bytes.
    pub fn new(files: Vec<StagedFile>, layout: FragmentLayout, header: u64) -> Self {
        Self { files: Arc::new(files), layout, header }
    }

    /// Returns a writer that takes the file's bytes in order.
    pub fn writer(&self) -> impl Write + Send + use<> {
        let spread = self.clone();
        FragmentWriter { runs: self.layout.runs(), run: None, spread }
    }

    /// Writes the parity and the padding of the data, and returns the complete files.
    pub fn finish(self, codec: &Codec) -> Result<Vec<StagedFile>> {
        for (number, file) in self.files.iter().enumerate() {
            file.set_length(self.header + self.layout.fragment_length(number))?;
        }
        let chunk = chunk(codec);
        let end = self.layout.parity_length();
        let mut start = 0;
        while start < end {
            let length = (end - start).min(chunk as u64) as usize;
            self.write_parity(codec, start, length)?;
            start += length as u64;
        }
        Arc::try_unwrap(self.files)
            .map_err(|_| Error::parameters("fragments are still being written"))
    }

    fn write_parity(&self, codec: &Codec, start: u64, length: usize) -> Result<()> {
        let (data_files, parity_files) = self.files.split_at(self.layout.k);
        let words = length.next_multiple_of(codec.strip());
        let mut data = vec![vec![0; words]; data_files.len()];
        for (file, bytes) in data_files.iter().zip(&mut data) {
            file.read_at(&mut bytes[..length], self.header + start)?;
        }
        let mut parity = vec![vec![0; words]; parity_files.len()];
        let sources: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
        let mut targets: Vec<&mut [u8]> = parity.iter_mut().map(Vec::as_mut_slice).collect();
        codec.encode(&sources, &mut targets)?;
        for (file, bytes) in parity_files.iter().zip(&parity) {
            file.write_at(&mut [IoSlice::new(&bytes[..length])], self.header + start)?;
        }
        Ok(())
    }
}

/// The writer that [`FragmentFiles::writer`] returns.
struct FragmentWriter<I> {
    spread: FragmentFiles,
    runs: I,
    /// The rest of the current run.
    run: Option<FragmentRun>,
}

impl<I: Iterator<Item = FragmentRun>> Write for FragmentWriter<I> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(run) = self.run.take().or_else(|| self.runs.next()) else {
            return Err(io::Error::other("the object is longer than its shards say"));
        };
        let (length, offset) = (run.length.min(bytes.len() as u64), self.spread.header + run.start);
        let file = &self.spread.files[run.fragment];
        file.write_at(&mut [IoSlice::new(&bytes[..length as usize])], offset)
            .map_err(io::Error::other)?;
        let (start, left) = (run.start + length, run.length - length);
        self.run = (left > 0).then_some(FragmentRun { start, length: left, ..run });
        Ok(length as usize)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
