//! The one public error of the crate: an opaque struct over a kind, with a message that carries
//! the numbers and what to do.

use std::fmt;
use std::io;
use std::path::Path;

use crate::shown::shown;

/// Everything that can go wrong between an object and its shards.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

/// What sort of thing went wrong; a command line maps these to exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A name, code, packet or directory that cannot be used.
    Parameters,
    /// A file that is not a shard, or of a version or code that this reader does not know.
    NotRecognised,
    /// More is lost than the code tolerates.
    TooFewShards,
    /// The bytes do not have the digest that the shards state.
    DigestMismatch,
    /// The operating system refused to write, or to read the source.
    Io,
    /// The operating system has not as much memory as one segment takes.
    Memory,
    /// Several objects where one is to be named.
    Ambiguous,
    /// Something of that name exists and was not to be replaced.
    Exists,
    /// Another process works on the same files, and what was asked for is not there.
    Busy,
    /// The codec refused; a defect of this program or of a pinned code.
    Core,
    /// Stopped because another thread of the same job failed first; callers see that first error.
    Cancelled,
}

/// The crate's result type.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// The sort of error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    pub(crate) fn parameters(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Parameters, message)
    }

    pub(crate) fn too_few(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::TooFewShards, message)
    }

    /// What is wanted may be in files that could not be opened.
    pub(crate) fn unread(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Io, message)
    }

    pub(crate) fn digest(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::DigestMismatch, message)
    }

    pub(crate) fn busy(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Busy, message)
    }

    pub(crate) fn exists(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Exists, message)
    }

    /// The operating system's refusal to do something with a path: `doing` is "writing" or the
    /// like.
    pub(crate) fn io(doing: &str, path: &Path, source: &io::Error) -> Self {
        Self::new(ErrorKind::Io, format!("{doing} {}: {source}", shown(path)))
    }

    /// The operating system's refusal of so many bytes of memory.
    pub(crate) fn memory(bytes: usize, source: &io::Error) -> Self {
        let message = format!("there is no memory for a segment's {bytes} bytes: {source}");
        Self::new(ErrorKind::Memory, message)
    }

    pub(crate) fn cancelled() -> Self {
        Self::new(ErrorKind::Cancelled, "stopped because another thread failed")
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
        Self::new(kind, error.to_string())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
