//! Fragments on disk as one source: the file's bytes in order, what is missing computed.
//!
//! Other people's fragments carry no checksums. What they can be checked for is whether they agree:
//! k of them determine all others, so that where more are at hand, damage shows
//! ([`Fragments::check`]), though not where.

use std::fs::File;
use std::io::{self, IoSliceMut, Read};
use std::path::PathBuf;

use paritas::{Buffer, Code, Codec, CodecOptions, NodeId};

use crate::error::{Error, ErrorKind, Result};
use crate::foreign::layout::{Layout, Run};
use crate::shard::positional::read_at;
use crate::shown::shown;

/// How many bytes of a fragment are handled at once: whole words of any width.
pub(crate) const CHUNK: usize = 64 << 10;

/// One fragment's file.
#[derive(Debug)]
pub(crate) struct Fragment {
    pub path: PathBuf,
    pub file: File,
}

/// The fragments of one file.
#[derive(Debug)]
pub(crate) struct Fragments {
    codec: Codec,
    layout: Layout,
    /// The bytes before a fragment's payload.
    header: u64,
    /// By number, those that are at hand.
    files: Vec<Option<Fragment>>,
    /// k of them, from which others are computed.
    basis: Vec<usize>,
}

impl Fragments {
    /// # Errors
    /// [`ErrorKind::TooFewShards`] when fewer than k are at hand, [`ErrorKind::Parameters`] for one
    /// of a wrong length.
    pub fn new(
        code: Code,
        layout: Layout,
        header: u64,
        files: Vec<Option<Fragment>>,
    ) -> Result<Self> {
        let at_hand: Vec<usize> = (0..files.len()).filter(|&i| files[i].is_some()).collect();
        if at_hand.len() < layout.k {
            return Err(Error::too_few(format!(
                "{} fragments of {} are at hand; {} needs {}",
                at_hand.len(),
                files.len(),
                code.spec(),
                layout.k
            )));
        }
        let basis = at_hand[..layout.k].to_vec();
        let codec = Codec::with_options(code, CodecOptions::default().threads(1))?;
        let fragments = Self { codec, layout, header, files, basis };
        at_hand.iter().try_for_each(|&number| fragments.expect_length(number))?;
        Ok(fragments)
    }

    /// The numbers of those that are not at hand.
    pub fn missing(&self) -> Vec<usize> {
        (0..self.files.len()).filter(|&number| self.files[number].is_none()).collect()
    }

    fn expect_length(&self, number: usize) -> Result<()> {
        let Some(Fragment { path, file }) = &self.files[number] else { return Ok(()) };
        let found = file.metadata().map_err(|error| Error::io("reading", path, &error))?.len();
        let expected = self.header + self.layout.fragment_length(number);
        if found == expected {
            return Ok(());
        }
        Err(Error::parameters(format!(
            "{} has {found} bytes, but fragment {number} of a file of {} bytes has {expected}; \
             leave it out if it is damaged",
            shown(path),
            self.layout.length
        )))
    }

    /// Compares all fragments at hand with what k of them say.
    ///
    /// # Errors
    /// [`ErrorKind::DigestMismatch`] where they disagree.
    pub fn check(&self) -> Result<()> {
        let others: Vec<usize> = (0..self.files.len())
            .filter(|&number| self.files[number].is_some() && !self.basis.contains(&number))
            .collect();
        let end = if others.is_empty() { 0 } else { self.layout.parity_length() };
        let mut start = 0;
        while start < end {
            let length = self.whole_words((end - start).min(CHUNK as u64) as usize);
            let computed =
                self.compute(&others, start, length).map_err(|error| self.unread(&error))?;
            for (&number, computed) in others.iter().zip(computed) {
                let mut found = vec![0; length];
                self.read(number, start, &mut found).map_err(|error| self.unread(&error))?;
                if let Some(byte) = computed.iter().zip(&found).position(|(a, b)| a != b) {
                    return Err(self.disagree(number, start + byte as u64));
                }
            }
            start += length as u64;
        }
        Ok(())
    }

    fn disagree(&self, number: usize, byte: u64) -> Error {
        let basis: Vec<String> = self.basis.iter().map(usize::to_string).collect();
        Error::digest(format!(
            "byte {byte} of fragment {number} is not what fragments {} give: one of them is damaged; \
             leave it out, and it will be computed",
            basis.join(", ")
        ))
    }

    fn unread(&self, error: &io::Error) -> Error {
        Error::new(ErrorKind::Io, format!("reading the fragments: {error}"))
    }

    /// Bytes rounded up to words, which codecs take whole. Beyond a fragment's end there are zeros.
    fn whole_words(&self, bytes: usize) -> usize {
        bytes.next_multiple_of(self.codec.strip())
    }

    /// Reads a fragment's payload, and zeros beyond its end.
    fn read(&self, number: usize, start: u64, bytes: &mut [u8]) -> io::Result<()> {
        let Some(fragment) = &self.files[number] else { return Ok(()) };
        let read = read_at(&fragment.file, &mut [IoSliceMut::new(bytes)], self.header + start)?;
        bytes[read..].fill(0);
        Ok(())
    }

    /// Bytes of some fragments, from those of the basis.
    fn compute(&self, wanted: &[usize], start: u64, length: usize) -> io::Result<Vec<Vec<u8>>> {
        let mut sources = vec![vec![0; length]; self.basis.len()];
        for (source, &number) in sources.iter_mut().zip(&self.basis) {
            self.read(number, start, source)?;
        }
        let mut made = vec![vec![0; length]; wanted.len()];
        let mut buffers: Vec<Buffer<'_>> = self.files.iter().map(|_| Buffer::Absent).collect();
        self.basis.iter().zip(&sources).for_each(|(&n, s)| buffers[n] = Buffer::Source(s));
        wanted.iter().zip(&mut made).for_each(|(&n, m)| buffers[n] = Buffer::Target(m));
        let code = self.codec.code();
        let cells = |numbers: &[usize]| code.cells_of(numbers.iter().map(|&n| NodeId::new(n)));
        self.codec
            .compute(&cells(&self.basis), &cells(wanted), &mut buffers)
            .map_err(io::Error::other)?;
        Ok(made)
    }

    /// Reads bytes of the file that lie together in a fragment, or computes them.
    fn read_run(&self, run: Run) -> io::Result<Vec<u8>> {
        let length = self.whole_words(run.length as usize);
        let mut bytes = vec![0; length];
        match &self.files[run.fragment] {
            Some(_) => self.read(run.fragment, run.start, &mut bytes)?,
            None => bytes = self.compute(&[run.fragment], run.start, length)?.remove(0),
        }
        bytes.truncate(run.length as usize);
        Ok(bytes)
    }

    /// The file's bytes.
    pub fn reader(&self) -> impl Read + Send {
        let chunks = self.layout.runs().flat_map(|run| {
            let chunk = move |at: u64| Run {
                start: run.start + at,
                length: (run.length - at).min(CHUNK as u64),
                ..run
            };
            (0..run.length).step_by(CHUNK).map(chunk)
        });
        Reader { fragments: self, chunks, bytes: Vec::new(), at: 0 }
    }
}

/// See [`Fragments::reader`].
struct Reader<'a, I> {
    fragments: &'a Fragments,
    chunks: I,
    bytes: Vec<u8>,
    at: usize,
}

impl<I: Iterator<Item = Run>> Read for Reader<'_, I> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        if self.at == self.bytes.len() {
            let Some(run) = self.chunks.next() else { return Ok(0) };
            (self.bytes, self.at) = (self.fragments.read_run(run)?, 0);
        }
        let length = target.len().min(self.bytes.len() - self.at);
        target[..length].copy_from_slice(&self.bytes[self.at..][..length]);
        self.at += length;
        Ok(length)
    }
}
