//! Fragments on disk as one source: the file's bytes in order, what is missing computed.
//!
//! Other people's fragments carry no checksums. What they can be checked for is whether they agree:
//! k of them determine all others, so that k + 1 disagree if one of them is damaged
//! ([`Fragments::check`]). With k + 2 it is known which: the one without which all others agree.

use std::fs::File;
use std::io::{self, IoSliceMut, Read};
use std::ops::Range;
use std::path::PathBuf;

use paritas::{Buffer, Codec, NodeId};

use crate::error::{Error, ErrorKind, Result};
use crate::foreign::layout::{Layout, Run};
use crate::shard::positional::read_at;
use crate::shown::shown;

/// How many bytes of a fragment are handled at once, if strips are not longer.
const CHUNK: usize = 64 << 10;

/// The bytes of a fragment that are handled at once: whole strips, which codecs take.
pub(crate) fn chunk(codec: &Codec) -> usize {
    CHUNK.next_multiple_of(codec.strip())
}

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

/// A place where fragments disagree.
struct Contradiction {
    /// The strip that it is in.
    strip: Range<u64>,
    /// The fragment that is not what the basis gives.
    number: usize,
    byte: u64,
}

impl Fragments {
    /// # Errors
    /// [`ErrorKind::TooFewShards`] when fewer than k are at hand, [`ErrorKind::Parameters`] for one
    /// of a wrong length.
    pub fn new(
        codec: Codec,
        layout: Layout,
        header: u64,
        files: Vec<Option<Fragment>>,
    ) -> Result<Self> {
        let mut fragments = Self { codec, layout, header, files, basis: Vec::new() };
        let at_hand = fragments.at_hand();
        if at_hand.len() < layout.k {
            return Err(Error::too_few(format!(
                "{} fragments of {} are at hand; {} needs {}",
                at_hand.len(),
                fragments.files.len(),
                fragments.codec.code().spec(),
                layout.k
            )));
        }
        at_hand.iter().try_for_each(|&number| fragments.expect_length(number))?;
        fragments.basis = at_hand[..layout.k].to_vec();
        Ok(fragments)
    }

    fn at_hand(&self) -> Vec<usize> {
        (0..self.files.len()).filter(|&number| self.files[number].is_some()).collect()
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
    /// [`ErrorKind::DigestMismatch`] where they disagree. The message names the damaged fragment,
    /// if it is known.
    pub fn check(&self) -> Result<()> {
        match self.contradiction(None, self.whole()).map_err(|error| unread(&error))? {
            None => Ok(()),
            Some(found) => {
                let verdict = self.verdict(&found).map_err(|error| unread(&error))?;
                let (Contradiction { number, byte, .. }, basis) = (found, listed(&self.basis));
                Err(Error::digest(format!(
                    "byte {byte} of fragment {number} is not what fragments {basis} give: {verdict}"
                )))
            }
        }
    }

    fn whole(&self) -> Range<u64> {
        0..self.layout.parity_length()
    }

    /// Says which fragment is to blame for the first contradiction, if that can be told.
    fn verdict(&self, first: &Contradiction) -> io::Result<String> {
        let (at_hand, enough) = (self.at_hand(), self.layout.k + 2);
        if at_hand.len() < enough {
            return Ok(format!(
                "one of them is damaged. With {enough} fragments it could be told which, and {} are \
                 at hand; if it is known, leave it out, and it will be computed",
                at_hand.len()
            ));
        }
        // There is at most one without which the others agree: of two, each would agree with the
        // others, which are k at least and so determine both. All codes of fragments are MDS.
        for number in at_hand {
            if self.contradiction(Some(number), first.strip.clone())?.is_none() {
                return self.blame(number);
            }
        }
        Ok("more than one of them is damaged".to_owned())
    }

    /// Names a damaged fragment, and says whether it is the only one.
    fn blame(&self, culprit: usize) -> io::Result<String> {
        let path = self.files[culprit].as_ref().map(|file| shown(&file.path).to_string());
        let damaged = format!("fragment {culprit} ({}) is damaged", path.unwrap_or_default());
        Ok(match self.contradiction(Some(culprit), self.whole())? {
            None => {
                format!("{damaged}, for all others agree; leave it out, and it will be computed")
            }
            Some(Contradiction { byte, .. }) => format!(
                "{damaged}, for all others agree there, but not at byte {byte}: more than one is \
                 damaged"
            ),
        })
    }

    fn contradiction_at(&self, number: usize, byte: u64) -> Contradiction {
        let strip = self.codec.strip() as u64;
        let start = byte - byte % strip;
        Contradiction { strip: start..start + strip, number, byte }
    }

    /// The first contradiction within these bytes among the fragments at hand, but for one that is
    /// left out.
    fn contradiction(
        &self,
        without: Option<usize>,
        bytes: Range<u64>,
    ) -> io::Result<Option<Contradiction>> {
        let mut at_hand = self.at_hand();
        at_hand.retain(|&number| Some(number) != without);
        let (basis, others) = at_hand.split_at(self.layout.k);
        let chunk = chunk(&self.codec);
        let mut start = if others.is_empty() { bytes.end } else { bytes.start };
        while start < bytes.end {
            let length = self.whole_words((bytes.end - start).min(chunk as u64) as usize);
            let computed = self.compute(basis, others, start, length)?;
            for (&number, computed) in others.iter().zip(computed) {
                let mut found = vec![0; length];
                self.read(number, start, &mut found)?;
                if let Some(byte) = computed.iter().zip(&found).position(|(a, b)| a != b) {
                    return Ok(Some(self.contradiction_at(number, start + byte as u64)));
                }
            }
            start += length as u64;
        }
        Ok(None)
    }

    /// Bytes rounded up to strips, which codecs take whole. Beyond a fragment's end there are zeros.
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

    /// Bytes of some fragments, from those of k others.
    fn compute(
        &self,
        basis: &[usize],
        wanted: &[usize],
        start: u64,
        length: usize,
    ) -> io::Result<Vec<Vec<u8>>> {
        let mut sources = vec![vec![0; length]; basis.len()];
        for (source, &number) in sources.iter_mut().zip(basis) {
            self.read(number, start, source)?;
        }
        let mut made = vec![vec![0; length]; wanted.len()];
        let mut buffers: Vec<Buffer<'_>> = self.files.iter().map(|_| Buffer::Absent).collect();
        basis.iter().zip(&sources).for_each(|(&n, s)| buffers[n] = Buffer::Source(s));
        wanted.iter().zip(&mut made).for_each(|(&n, m)| buffers[n] = Buffer::Target(m));
        let code = self.codec.code();
        let cells = |numbers: &[usize]| code.cells_of(numbers.iter().map(|&n| NodeId::new(n)));
        self.codec
            .compute(&cells(basis), &cells(wanted), &mut buffers)
            .map_err(io::Error::other)?;
        Ok(made)
    }

    /// Reads bytes of the file that lie together in a fragment, or computes them.
    fn read_run(&self, run: Run) -> io::Result<Vec<u8>> {
        let length = self.whole_words(run.length as usize);
        let mut bytes = vec![0; length];
        match &self.files[run.fragment] {
            Some(_) => self.read(run.fragment, run.start, &mut bytes)?,
            None => {
                bytes = self.compute(&self.basis, &[run.fragment], run.start, length)?.remove(0)
            }
        }
        bytes.truncate(run.length as usize);
        Ok(bytes)
    }

    /// The file's bytes.
    pub fn reader(&self) -> impl Read + Send {
        let most = chunk(&self.codec);
        let chunks = self.layout.runs().flat_map(move |run| {
            let chunk = move |at: u64| Run {
                start: run.start + at,
                length: (run.length - at).min(most as u64),
                ..run
            };
            (0..run.length).step_by(most).map(chunk)
        });
        Reader { fragments: self, chunks, bytes: Vec::new(), at: 0 }
    }
}

fn unread(error: &io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("reading the fragments: {error}"))
}

fn listed(numbers: &[usize]) -> String {
    numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
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
