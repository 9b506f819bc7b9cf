//! The only public error type of the crate: an opaque struct over a private enum.
//!
//! Every message names the thing that is wrong and its number and, where there is one, the nearest
//! value that would be right. Callers that must tell errors apart use [`Error::kind`].

use std::{fmt, io};

/// An error, from a code's name to its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

/// The kind of error, for callers that react differently to different errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A spec that does not parse, names no known family, or has unknown or missing keys.
    Spec,
    /// A legal spec whose parameters the family cannot serve.
    Parameters,
    /// The cells at hand do not determine all wanted cells.
    NotEnough,
    /// A buffer of the wrong length, or the wrong number of buffers.
    Length,
    /// A block that is not the one that it is said to be.
    Damaged,
    /// A schedule, or its text form, that is not valid.
    Schedule,
    /// A requested kernel that this processor cannot run.
    Kernel,
    /// The operating system does not have enough memory.
    Memory,
    /// A fault of this crate, noticed before it could do harm.
    Internal,
}

/// The crate's result type.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Returns the kind of error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    pub(crate) fn spec(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Spec, message: message.into() }
    }

    pub(crate) fn parameters(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Parameters, message: message.into() }
    }

    pub(crate) fn not_enough(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::NotEnough, message: message.into() }
    }

    pub(crate) fn length(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Length, message: message.into() }
    }

    pub(crate) fn damaged(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Damaged, message: message.into() }
    }

    pub(crate) fn schedule(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Schedule, message: message.into() }
    }

    pub(crate) fn kernel(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Kernel, message: message.into() }
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Internal, message: message.into() }
    }

    /// The error when the operating system refuses `bytes` bytes.
    pub(crate) fn memory(bytes: usize, source: &io::Error) -> Self {
        let message = format!("there is no memory for {bytes} bytes: {source}");
        Self { kind: ErrorKind::Memory, message }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
