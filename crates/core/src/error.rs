//! The only public error type of the crate: an opaque struct over a public kind.
//!
//! Every message names the thing that is wrong and its number and, where there is one, the nearest
//! value that would be right. A caller that reacts to errors need not parse the message:
//! [`Error::kind`] tells what kind of thing is wrong, [`Error::node`] which node,
//! [`Error::expected`] and [`Error::given`] which numbers, and [`std::error::Error::source`] what
//! the system said.

use std::sync::Arc;
use std::{fmt, io};

/// Any error of this crate, from reading a code's name to computing its bytes.
#[derive(Debug, Clone)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    node: Option<usize>,
    expected: Option<u64>,
    given: Option<u64>,
    source: Option<Arc<io::Error>>,
}

/// The kind of error, for callers that react differently to different errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A spec that does not parse, names no known family, or has unknown or missing keys.
    Spec,
    /// A value that a code, a family or a call does not accept.
    Parameters,
    /// The cells at hand do not determine all wanted cells.
    NotEnough,
    /// A wrong number of buffers, or a buffer that is needed but absent or not writable.
    Buffers,
    /// A buffer, shard or block of the wrong length.
    Length,
    /// A block that is damaged or belongs to another object, or metadata that is damaged.
    Damaged,
    /// A schedule or its text form that is not valid, or that does not compute what it claims.
    Schedule,
    /// A requested kernel that this process cannot run.
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

    /// Returns the number of the node, block or buffer that the error is about, if it is about one.
    pub fn node(&self) -> Option<usize> {
        self.node
    }

    /// Returns the number that would have been right: bytes for [`ErrorKind::Length`] and
    /// [`ErrorKind::Memory`], buffers for [`ErrorKind::Buffers`], shards at hand for
    /// [`ErrorKind::NotEnough`]. `None` if more than one number is right.
    pub fn expected(&self) -> Option<u64> {
        self.expected
    }

    /// Returns the number that was found in place of [`Error::expected`].
    pub fn given(&self) -> Option<u64> {
        self.given
    }

    /// Returns the operating system's kind of error, if the operating system refused a request.
    pub fn io_kind(&self) -> Option<io::ErrorKind> {
        self.source.as_ref().map(|source| source.kind())
    }

    fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { kind, message, node: None, expected: None, given: None, source: None }
    }

    pub(crate) fn spec(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Spec, message)
    }

    pub(crate) fn parameters(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Parameters, message)
    }

    pub(crate) fn not_enough(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotEnough, message)
    }

    pub(crate) fn buffers(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Buffers, message)
    }

    pub(crate) fn length(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Length, message)
    }

    pub(crate) fn damaged(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Damaged, message)
    }

    pub(crate) fn schedule(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Schedule, message)
    }

    pub(crate) fn kernel(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Kernel, message)
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message)
    }

    /// Creates the error for a size of `bytes` bytes, which exceeds the address space.
    pub(crate) fn too_large(bytes: impl fmt::Display) -> Self {
        Self::new(ErrorKind::Memory, format!("no memory holds {bytes} bytes"))
    }

    /// Creates the error for `bytes` bytes of memory that the operating system refuses.
    pub(crate) fn memory(bytes: usize, source: io::Error) -> Self {
        let message = format!("there is no memory for {bytes} bytes: {source}");
        Self::new(ErrorKind::Memory, message).because(source).expecting(bytes)
    }

    /// Says that the error is about node or block `index`.
    pub(crate) fn at(self, index: usize) -> Self {
        Self { node: Some(index), ..self }
    }

    /// Says which number would have been right.
    pub(crate) fn expecting(self, expected: usize) -> Self {
        Self { expected: Some(expected as u64), ..self }
    }

    /// Says which number was found.
    pub(crate) fn given_instead(self, given: usize) -> Self {
        Self { given: Some(given as u64), ..self }
    }

    /// Keeps what the operating system said.
    pub(crate) fn because(self, source: io::Error) -> Self {
        Self { source: Some(Arc::new(source)), ..self }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
