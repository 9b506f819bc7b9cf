//! Fragments on disk, read as one source: the file's bytes in order. The bytes of missing fragments
//! are computed.
//!
//! Other tools' fragments carry no checksums, but they can be compared: k fragments determine all
//! others. Among k + 1 fragments a contradiction shows that one is damaged ([`Fragments::check`]).
//! Among k + 2 it also shows which one: all others agree when that fragment is left out.

use std::fs::{File, Metadata};
use std::io::{self, IoSliceMut, Read};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use paritas::{Buffer, Codec, NodeId};
#[cfg(doc)]
use paritas_store::error::ErrorKind;
use paritas_store::error::{Error, Result};
use paritas_store::shown::shown;

use crate::foreign::layout::{FragmentLayout, FragmentRun};
use paritas_store::place::attributes::Attributes;
use paritas_store::place::open_files::OpenFiles;
use paritas_store::place::positional::read_at;
use paritas_store::place::system::allow_open_files;

/// Number of bytes of a fragment that are handled at once, unless a strip is longer: large enough
/// for an efficient system call, and small enough for the cache.
const CHUNK: usize = 64 << 10;

/// Number of fragments that are open at once if the system does not allow more.
const FEW_OPEN: usize = 8;

/// Returns the number of bytes of a fragment that are handled at once: whole strips, as codecs
/// require.
pub(crate) fn chunk(codec: &Codec) -> usize {
    CHUNK.next_multiple_of(codec.strip())
}

/// One fragment's file, which must not change while it is read.
#[derive(Debug)]
pub(crate) struct Fragment {
    path: PathBuf,
    /// The files of all fragments, of which this is the one of `number`.
    files: Arc<OpenFiles>,
    number: usize,
    before: Metadata,
    attributes: Attributes,
}

impl Fragment {
    /// Opens the files of fragments, by number. If the system does not allow them to be open
    /// together with as many shards, they are opened by turns.
    pub fn open_all(paths: Vec<Option<PathBuf>>) -> Result<Vec<Option<Self>>> {
        let count = paths.len();
        let most = if allow_open_files(2 * count) < 2 * count { FEW_OPEN } else { count };
        let files = OpenFiles::reading(most);
        let open = |(number, path): (usize, Option<PathBuf>)| {
            path.map(|path| Self::open(&files, number, path)).transpose()
        };
        paths.into_iter().enumerate().map(open).collect()
    }

    fn open(files: &Arc<OpenFiles>, number: usize, path: PathBuf) -> Result<Self> {
        let look =
            |file: &File| Ok((file.metadata()?, Attributes::of_open(file).unwrap_or_default()));
        let seen = files.with(number, &path, look);
        let (before, attributes) = seen.map_err(|error| Error::io("opening", &path, &error))?;
        Ok(Self { path, files: Arc::clone(files), number, before, attributes })
    }

    /// Returns the file's attributes, as far as the system tells them.
    pub fn attributes(&self) -> Attributes {
        self.attributes
    }

    fn with_file<R>(&self, act: impl FnOnce(&File) -> io::Result<R>) -> io::Result<R> {
        self.files.with(self.number, &self.path, act)
    }

    fn expect_unchanged(&self) -> io::Result<()> {
        let now = self.with_file(File::metadata)?;
        let facts = |of: &Metadata| (of.len(), of.modified().ok());
        match facts(&now) == facts(&self.before) {
            true => Ok(()),
            false => Err(io::Error::other(format!(
                "{} changed while it was read, so nothing was written",
                shown(&self.path)
            ))),
        }
    }
}

/// The fragments of one file.
#[derive(Debug)]
pub(crate) struct Fragments {
    codec: Codec,
    layout: FragmentLayout,
    /// Number of bytes before a fragment's payload.
    header: u64,
    /// The fragments at hand, by number.
    files: Vec<Option<Fragment>>,
    /// The numbers of k fragments at hand, from which the others are computed.
    basis: Vec<usize>,
}

/// A place where fragments disagree.
struct Contradiction {
    /// The range of bytes of the strip that the contradiction is in.
    strip: Range<u64>,
    /// The fragment that differs from what the basis gives.
    number: usize,
    byte: u64,
}

impl Fragments {
    /// Creates the source of a file whose fragments are `files`, by number.
    ///
    /// # Errors
    /// If fewer than k fragments are at hand ([`ErrorKind::TooFewShards`]), or if one has a wrong
    /// length ([`ErrorKind::Parameters`]).
    pub fn new(
        codec: Codec,
        layout: FragmentLayout,
        header: u64,
        files: Vec<Option<Fragment>>,
    ) -> Result<Self> {
        let mut fragments = Self { codec, layout, header, files, basis: Vec::new() };
        let at_hand = fragments.at_hand();
        if at_hand.len() < layout.k {
            return Err(Error::too_few(format!(
                "{} of {} fragments are at hand; {} needs {}",
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

    /// Returns the numbers of the fragments that are missing.
    pub fn missing(&self) -> Vec<usize> {
        (0..self.files.len()).filter(|&number| self.files[number].is_none()).collect()
    }

    fn expect_length(&self, number: usize) -> Result<()> {
        let Some(Fragment { path, before, .. }) = &self.files[number] else { return Ok(()) };
        let found = before.len();
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

    /// Returns a warning if the fragments could not be compared.
    pub fn doubt(&self) -> Option<String> {
        (self.at_hand().len() == self.layout.k).then(|| {
            format!(
                "only {} fragments are at hand, so none could be compared with another: if one is \
                 damaged, or of another code, the object is wrong",
                self.layout.k
            )
        })
    }

    /// Computes all fragments at hand from k of them, and compares.
    ///
    /// # Errors
    /// If they disagree ([`ErrorKind::DigestMismatch`]). The message names the damaged fragment, if
    /// it is known.
    pub fn check(&self) -> Result<()> {
        match self.contradiction(None, self.whole()).map_err(|error| unread(&error))? {
            None => Ok(()),
            Some(found) => {
                let verdict = self.verdict(&found).map_err(|error| unread(&error))?;
                let (Contradiction { number, byte, .. }, basis) = (found, listed(&self.basis));
                Err(Error::digest(format!(
                    "byte {byte} of fragment {number} contradicts fragments {basis}: {verdict}"
                )))
            }
        }
    }

    fn whole(&self) -> Range<u64> {
        0..self.layout.parity_length()
    }

    /// Describes which fragment is to blame for the first contradiction, if that can be told.
    fn verdict(&self, first: &Contradiction) -> io::Result<String> {
        let (at_hand, enough) = (self.at_hand(), self.layout.k + 2);
        if at_hand.len() < enough {
            return Ok(format!(
                "one of them is damaged, or the code is another one; {enough} fragments would tell \
                 which is damaged, but {} are at hand; if you know it, leave it out, and it will be \
                 computed",
                at_hand.len()
            ));
        }
        // At most one fragment can be left out so that all others agree. If two fragments
        // qualified, each would agree with the remaining ones. At least k remain, and so they
        // determine both, without a contradiction. All codes of fragments are MDS.
        for number in at_hand {
            if self.contradiction(Some(number), first.strip.clone())?.is_none() {
                return self.blame(number);
            }
        }
        Ok("more than one of them is damaged, or the code is another one".to_owned())
    }

    /// Describes a damaged fragment, and whether it is the only one.
    fn blame(&self, culprit: usize) -> io::Result<String> {
        let path = self.files[culprit].as_ref().map(|file| shown(&file.path).to_string());
        let damaged = format!("fragment {culprit} ({}) is damaged", path.unwrap_or_default());
        Ok(match self.contradiction(Some(culprit), self.whole())? {
            None => {
                format!("{damaged}, since all others agree; leave it out, and it will be computed")
            }
            Some(Contradiction { byte, .. }) => format!(
                "{damaged}, since all others agree there, but they disagree at byte {byte}: more \
                 than one is damaged"
            ),
        })
    }

    fn contradiction_at(&self, number: usize, byte: u64) -> Contradiction {
        let strip = self.codec.strip() as u64;
        let start = byte - byte % strip;
        Contradiction { strip: start..start + strip, number, byte }
    }

    /// Returns the first contradiction within `bytes` among the fragments at hand, leaving out
    /// fragment `without`.
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

    /// Rounds a number of bytes up to whole strips, as codecs require. Beyond a fragment's end
    /// there are zeros.
    fn whole_words(&self, bytes: usize) -> usize {
        bytes.next_multiple_of(self.codec.strip())
    }

    /// Reads a part of a fragment's payload, and zeros beyond its end.
    fn read(&self, number: usize, start: u64, bytes: &mut [u8]) -> io::Result<()> {
        let Some(fragment) = &self.files[number] else { return Ok(()) };
        let at = self.header + start;
        let read = fragment.with_file(|file| read_at(file, &mut [IoSliceMut::new(bytes)], at))?;
        bytes[read..].fill(0);
        Ok(())
    }

    /// Computes `length` bytes of the fragments `wanted` from those of the k fragments `basis`.
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

    /// Reads bytes of the file that lie together in a fragment, or computes them if the fragment is
    /// missing.
    fn read_run(&self, run: FragmentRun) -> io::Result<Vec<u8>> {
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

    /// Refuses a length of the file if any byte after it is not zero, because fragments are padded
    /// with zeros only.
    ///
    /// # Errors
    /// If there are such bytes ([`ErrorKind::Parameters`]).
    pub fn expect_zeros_at_end(&self) -> Result<()> {
        let length = self.layout.length;
        let mut at = length;
        for run in self.layout.padding() {
            // Missing bytes are computed in whole strips.
            let before = run.start % self.codec.strip() as u64;
            let strips =
                FragmentRun { start: run.start - before, length: run.length + before, ..run };
            at -= before;
            for chunk in strips.chunks(chunk(&self.codec)) {
                let bytes = self.read_run(chunk).map_err(|error| unread(&error))?;
                let is_wrong = |&(at, &byte): &(u64, &u8)| at >= length && byte != 0;
                if let Some((byte, _)) = (at..).zip(&bytes).find(is_wrong) {
                    return Err(Error::parameters(format!(
                        "`length` is {length}, but the file has at least {} bytes: byte {byte} is \
                         not zero, so it is no padding",
                        byte + 1
                    ))
                    .naming(&["length"]));
                }
                at += chunk.length;
            }
        }
        Ok(())
    }

    /// Returns a reader of the file's bytes.
    pub fn reader(&self) -> impl Read + Send {
        let most = chunk(&self.codec);
        let chunks = self.layout.runs().flat_map(move |run| run.chunks(most));
        FragmentReader { fragments: self, chunks, bytes: Vec::new(), at: 0 }
    }
}

fn unread(error: &io::Error) -> Error {
    Error::failed(format!("reading the fragments: {error}"))
}

fn listed(numbers: &[usize]) -> String {
    numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
}

/// The reader that [`Fragments::reader`] returns.
struct FragmentReader<'a, I> {
    fragments: &'a Fragments,
    chunks: I,
    bytes: Vec<u8>,
    at: usize,
}

impl<I: Iterator<Item = FragmentRun>> Read for FragmentReader<'_, I> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        if self.at == self.bytes.len() {
            let Some(run) = self.chunks.next() else {
                self.fragments.files.iter().flatten().try_for_each(Fragment::expect_unchanged)?;
                return Ok(0);
            };
            (self.bytes, self.at) = (self.fragments.read_run(run)?, 0);
        }
        let length = target.len().min(self.bytes.len() - self.at);
        target[..length].copy_from_slice(&self.bytes[self.at..][..length]);
        self.at += length;
        Ok(length)
    }
}
