//! The one public error of the crate: an opaque struct over a public kind, with a message that
//! carries the numbers and what to do.
//!
//! A caller that reacts to errors need not read the message: [`Error::kind`] tells the sort of
//! error, [`Error::path`] and [`Error::offset`] the place, [`Error::expected`] and [`Error::given`]
//! the numbers, and [`std::error::Error::source`] what the system or the codec reported.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use paritas_store::place::names::{RefusedName, refused_name};

use crate::shown::shown;
use paritas_store::place::lock::Busy;
use paritas_store::place::space::NoRoom;

/// An error on the way from an object to its shards, or back.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    message: String,
    path: Option<PathBuf>,
    offset: Option<u64>,
    counts: Option<Counts>,
    fields: &'static [&'static str],
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// The number that would have been right, and the one that was found instead.
#[derive(Debug, Clone, Copy)]
struct Counts {
    expected: u64,
    given: u64,
}

/// The sort of an error. A command line maps each to an exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A name, code, packet or directory that cannot be used.
    Parameters,
    /// A file that is not a shard, or of a version or code that this reader does not know.
    NotRecognised,
    /// More shards are lost than the code tolerates.
    TooFewShards,
    /// The digest of the bytes differs from the one that the shards state.
    DigestMismatch,
    /// The operating system refused to write, or to read the source.
    Io,
    /// The operating system lacks the memory for one segment.
    Memory,
    /// Several objects were found where one is needed.
    Ambiguous,
    /// A file of that name exists, and the job forbids to replace it.
    Exists,
    /// Another process works on the same files, and the result is not what was asked for.
    Busy,
    /// The codec refused: a defect of this program, or of a pinned code.
    Core,
    /// This thread stopped because another one of the same job failed first. Callers see that first
    /// error.
    Cancelled,
}

/// The crate's result type.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Returns the sort of the error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the file or folder that the operating system refused, if the error is about one.
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// Returns the index of the shard that the error is about, if it is about one.
    pub fn shard(&self) -> Option<usize> {
        self.core().and_then(paritas::Error::node)
    }

    /// Returns the byte of the object at which the work failed: when encoding, the first byte of
    /// the source that could not be read; when decoding, the first byte that cannot be computed.
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// Returns the number that would have been right, if the error compares two numbers: of good
    /// shards for [`ErrorKind::TooFewShards`], of bytes for [`ErrorKind::Memory`].
    pub fn expected(&self) -> Option<u64> {
        self.0.counts.map(|counts| counts.expected).or_else(|| self.core()?.expected())
    }

    /// Returns the number that was found in place of [`Error::expected`].
    pub fn given(&self) -> Option<u64> {
        self.0.counts.map(|counts| counts.given).or_else(|| self.core()?.given())
    }

    /// Returns the fields of the job that the message names, in backquotes. A program whose users
    /// set them by other names can put those in their place.
    pub fn fields(&self) -> &'static [&'static str] {
        self.0.fields
    }

    /// Returns how the operating system classifies its refusal, if this is one.
    pub fn io_kind(&self) -> Option<io::ErrorKind> {
        let source = self.0.source.as_deref()?;
        let io = source.downcast_ref::<io::Error>().map(io::Error::kind);
        io.or_else(|| self.core()?.io_kind())
    }

    /// Returns the codec's error, if the codec refused.
    fn core(&self) -> Option<&paritas::Error> {
        self.0.source.as_deref()?.downcast_ref()
    }

    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let message = message.into();
        let (path, offset, counts, source) = (None, None, None, None);
        Self(Box::new(Inner { kind, message, path, offset, counts, fields: &[], source }))
    }

    /// Adds the cause: the error of the system or of the codec.
    pub(crate) fn because(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Adds the byte of the object at which the work failed.
    pub(crate) fn at_byte(mut self, offset: u64) -> Self {
        self.0.offset = Some(offset);
        self
    }

    /// Adds the fields of the job that the message names.
    pub(crate) fn naming(mut self, fields: &'static [&'static str]) -> Self {
        self.0.fields = fields;
        self
    }

    /// Adds the number that would have been right, and the one that was found.
    pub(crate) fn counting(mut self, expected: u64, given: u64) -> Self {
        self.0.counts = Some(Counts { expected, given });
        self
    }

    pub(crate) fn parameters(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Parameters, message)
    }

    pub(crate) fn too_few(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::TooFewShards, message)
    }

    /// Creates the error for wanted bytes that may be in files that could not be opened.
    pub(crate) fn unread(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Io, message)
    }

    pub(crate) fn digest(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::DigestMismatch, message)
    }

    /// Creates the error for a place beyond the end of the longest file.
    pub(crate) fn too_long() -> Self {
        Self::parameters("the object is too long: a shard file would have 2^63 bytes or more")
    }

    pub(crate) fn busy(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Busy, message)
    }

    pub(crate) fn exists(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Exists, message)
    }

    /// Creates the error for the operating system's refusal of an action on a path. `doing` names
    /// the action, such as "writing".
    pub(crate) fn io(doing: &str, path: &Path, source: &io::Error) -> Self {
        let message = format!("{doing} {}: {source}", shown(path));
        let mut error = Self::new(kind_of(source), message).because(same(source));
        error.0.path = Some(path.to_owned());
        error
    }

    /// Creates the error for a file that could not be created. If the file system refuses its name,
    /// says what in it.
    pub(crate) fn creating(path: &Path, source: &io::Error) -> Self {
        let mut error = Self::io("creating", path, source);
        if let Some(RefusedName { folder, refusal }) = refused_name(path, source) {
            error.0.message += &format!("; the file system of {} {refusal}", shown(&folder));
        }
        error
    }

    /// Creates the error for the operating system's refusal of an action on a stream.
    pub(crate) fn stream(doing: impl fmt::Display, source: io::Error) -> Self {
        Self::new(kind_of(&source), format!("{doing}: {source}")).because(source)
    }

    /// Creates the error for the operating system's refusal of `bytes` bytes of memory.
    pub(crate) fn memory(bytes: usize, source: &io::Error) -> Self {
        let message = format!("there is no memory for a segment's {bytes} bytes: {source}");
        Self::new(ErrorKind::Memory, message).because(same(source))
    }

    /// Creates the error with which a thread stops because another one of the same job has failed.
    pub fn cancelled() -> Self {
        Self::new(ErrorKind::Cancelled, "stopped because another thread failed")
    }
}

/// Returns the kind of an error of the operating system: any action may fail for want of memory.
fn kind_of(error: &io::Error) -> ErrorKind {
    match error.kind() {
        io::ErrorKind::OutOfMemory => ErrorKind::Memory,
        _ => ErrorKind::Io,
    }
}

impl From<Busy> for Error {
    fn from(Busy(folder): Busy) -> Self {
        Self::busy(format!(
            "another process is writing in {} and does not end; try again later",
            shown(&folder)
        ))
    }
}

impl From<NoRoom> for Error {
    fn from(NoRoom { path, needed, left }: NoRoom) -> Self {
        let message = format!(
            "the disk of {} has room for {left} of the {needed} bytes that are to be written there",
            shown(&path)
        );
        Self::new(ErrorKind::Io, message)
    }
}

impl From<paritas::Error> for Error {
    fn from(error: paritas::Error) -> Self {
        let kind = match error.kind() {
            paritas::ErrorKind::Spec | paritas::ErrorKind::Parameters => ErrorKind::Parameters,
            paritas::ErrorKind::Memory => ErrorKind::Memory,
            paritas::ErrorKind::NotEnough => ErrorKind::TooFewShards,
            _ => ErrorKind::Core,
        };
        Self::new(kind, error.to_string()).because(error)
    }
}

/// Returns a copy of an error of the system, which cannot be cloned.
fn same(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_and_places_are_kept() {
        let refusal = io::Error::from(io::ErrorKind::PermissionDenied);
        let error = Error::io("opening", Path::new("a"), &refusal);
        assert_eq!(error.to_string(), "opening a: permission denied");
        assert_eq!(error.path(), Some(Path::new("a")));
        assert_eq!(error.io_kind(), Some(io::ErrorKind::PermissionDenied));
        assert!(error.source().is_some());

        let codec = paritas::Codec::new(4, 2).unwrap();
        let refused = codec.encode(&[[0; 8]; 3], &mut [[0; 8]; 2]).unwrap_err();
        let error = Error::from(refused).at_byte(7);
        assert_eq!((error.kind(), error.io_kind()), (ErrorKind::Core, None));
        assert_eq!((error.offset(), error.shard()), (Some(7), None));
        assert!(error.source().unwrap().is::<paritas::Error>());
        let error = error.counting(4, 3);
        assert_eq!((error.expected(), error.given()), (Some(4), Some(3)));
    }
}
