//! The one error of shards, protection and volumes: an opaque struct over a public kind, with a
//! message that carries the numbers and what to do.
//!
//! A caller that reacts to errors need not read the message: [`Error::kind`] tells the sort of
//! error; [`Error::path`], [`Error::node`], [`Error::shard`] and [`Error::offset`] tell the place,
//! [`Error::expected`] and [`Error::given`] the numbers, and [`std::error::Error::source`] what the
//! system or the codec reported.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::place::names::{RefusedName, refused_name};
use crate::shown::shown;

/// An error of work on shards, protected files or volumes.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    message: String,
    path: Option<PathBuf>,
    node: Option<String>,
    offset: Option<u64>,
    counts: Option<ComparedNumbers>,
    fields: &'static [&'static str],
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// The number that would have been right, and the one that was found instead.
#[derive(Debug, Clone, Copy)]
struct ComparedNumbers {
    expected: u64,
    given: u64,
}

/// The sort of an error. The command, C and Python map each to an exit code, a status and a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A name, path, code, number, pattern or volume file that cannot be used.
    Parameters,
    /// A file was not written by Paritas, or has a version or code that this reader does not know;
    /// or no file of Paritas was found.
    NotRecognised,
    /// No object has that name.
    NotFound,
    /// Several objects were found where one is needed.
    Ambiguous,
    /// A file or object already exists, and the job must not replace it.
    Exists,
    /// Fewer good shards or blocks are left than the code needs.
    TooFewShards,
    /// Too few nodes answered to be sure of the result.
    TooFewNodes,
    /// Bytes do not have the digest that is stated for them, or could not be compared with it.
    DigestMismatch,
    /// An update found more missing or changed protected files than it accepts as intended.
    TooManyChanges,
    /// A node refused: no permission, or wrong credentials.
    Refused,
    /// A node does not support the request, such as writing to a web server.
    Unsupported,
    /// The operating system refused to read or to write; or a node failed, did not answer in time,
    /// or has no space.
    Io,
    /// The system lacks the memory, or the volume file allows less than is needed.
    Memory,
    /// Another process works on the same files or the same object, or protected files change while
    /// they are read. (A source of `encode` that changes is an error of [`ErrorKind::Io`].)
    Busy,
    /// The work was cancelled. A thread also stops with this error when another thread of the same
    /// job fails; callers see that other thread's error.
    Cancelled,
    /// A defect of this program, or of a pinned code.
    Internal,
}

/// The result of work on shards, protected files or volumes.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Creates an error.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            path: None,
            node: None,
            offset: None,
            counts: None,
            fields: &[],
            source: None,
        }))
    }

    /// Returns the sort of the error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the message without the node's name.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the file or folder that the error is about, if it is about one.
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// Returns the name of the node that the error is about, if it is about one.
    pub fn node(&self) -> Option<&str> {
        self.0.node.as_deref()
    }

    /// Returns the index of the shard that the error is about, if it is about one.
    pub fn shard(&self) -> Option<usize> {
        self.cause::<paritas::Error>().and_then(paritas::Error::node)
    }

    /// Returns the byte of the object at which the work failed: when encoding, the first byte of
    /// the source that could not be read; when decoding, the first byte that cannot be computed.
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// Returns the number that would have been right, if the error compares two numbers: of good
    /// shards for [`ErrorKind::TooFewShards`], of nodes for [`ErrorKind::TooFewNodes`], of bytes
    /// for [`ErrorKind::Memory`].
    pub fn expected(&self) -> Option<u64> {
        let own = self.0.counts.map(|counts| counts.expected);
        own.or_else(|| self.cause::<paritas::Error>()?.expected())
    }

    /// Returns the number that was found in place of [`Error::expected`].
    pub fn given(&self) -> Option<u64> {
        let own = self.0.counts.map(|counts| counts.given);
        own.or_else(|| self.cause::<paritas::Error>()?.given())
    }

    /// Returns the fields of the job that the message names, in backquotes, and the functions. A
    /// program whose users know them by other names can put those in their place.
    pub fn fields(&self) -> &'static [&'static str] {
        match (self.0.fields, self.cause::<Self>()) {
            ([], Some(cause)) => cause.fields(),
            (own, _) => own,
        }
    }

    /// Returns the operating system's class of the error, if the operating system reported one.
    pub fn io_kind(&self) -> Option<io::ErrorKind> {
        let own = self.cause::<io::Error>().map(io::Error::kind);
        own.or_else(|| self.cause::<paritas::Error>()?.io_kind())
    }

    fn cause<T: StdError + 'static>(&self) -> Option<&T> {
        self.0.source.as_deref()?.downcast_ref()
    }

    /// Adds the cause: the error of the system, of the codec or of a part of the work.
    pub fn because(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Adds the name of the node that the error is about.
    pub fn at_node(mut self, node: impl Into<String>) -> Self {
        self.0.node = Some(node.into());
        self
    }

    /// Adds the byte of the object at which the work failed.
    pub fn at_byte(mut self, offset: u64) -> Self {
        self.0.offset = Some(offset);
        self
    }

    /// Adds the file or folder that the error is about.
    pub fn at_path(mut self, path: &Path) -> Self {
        self.0.path = Some(path.to_owned());
        self
    }

    /// Adds the fields of the job, and the functions, that the message names.
    pub fn naming(mut self, fields: &'static [&'static str]) -> Self {
        self.0.fields = fields;
        self
    }

    /// Adds the number that would have been right, and the one that was found.
    pub fn counting(mut self, expected: u64, given: u64) -> Self {
        self.0.counts = Some(ComparedNumbers { expected, given });
        self
    }

    /// Adds what the nodes reported, if any of them reported something.
    pub fn with_reasons(mut self, reasons: &[String]) -> Self {
        if !reasons.is_empty() {
            self.0.message += &format!(": {}", reasons.join("; "));
        }
        self
    }

    /// Creates an error about parameters.
    pub fn parameters(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Parameters, message)
    }

    /// Creates the error for something that Paritas did not write.
    pub fn not_recognised(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotRecognised, message)
    }

    /// Creates the error for fewer good shards than the code needs.
    pub fn too_few(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::TooFewShards, message)
    }

    /// Creates the error for fewer nodes than must take part.
    pub fn too_few_nodes(needed: usize, given: usize) -> Self {
        let message = format!("{needed} nodes must take part; got {given}");
        Self::new(ErrorKind::TooFewNodes, message).counting(needed as u64, given as u64)
    }

    /// Creates the error for a failure to read or to write that the operating system did not
    /// report.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Io, message)
    }

    /// Creates the error for bytes whose digest differs from the stated one.
    pub fn digest(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::DigestMismatch, message)
    }

    /// Creates the error for a place beyond the end of the longest file.
    pub fn too_long() -> Self {
        Self::parameters("the object is too long: a shard file would have 2^63 bytes or more")
    }

    /// Creates the error for another process that works on the same files.
    pub fn busy(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Busy, message)
    }

    /// Creates the error for something that is there already.
    pub fn exists(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Exists, message)
    }

    /// Creates the error for the operating system's refusal of an action on a path. `doing` names
    /// the action, such as "writing".
    pub fn io(doing: &str, path: &Path, source: &io::Error) -> Self {
        let message = format!("{doing} {}: {source}", shown(path));
        Self::new(kind_of(source), message).because(same(source)).at_path(path)
    }

    /// Creates the error for a file or folder that could not be made at a path. `doing` names the
    /// action, such as "creating". If the file system refuses the name, the message says which part
    /// of it.
    pub fn making(doing: &str, path: &Path, source: &io::Error) -> Self {
        let mut error = Self::io(doing, path, source);
        if let Some(RefusedName { folder, refusal }) = refused_name(path, source) {
            error.0.message += &format!("; the file system of {} {refusal}", shown(&folder));
        }
        error
    }

    /// Creates the error for the operating system's refusal of an action on a stream.
    pub fn stream(doing: impl fmt::Display, source: io::Error) -> Self {
        Self::new(kind_of(&source), format!("{doing}: {source}")).because(source)
    }

    /// Creates the error for the operating system's refusal of `bytes` bytes of memory.
    pub fn memory(bytes: usize, source: &io::Error) -> Self {
        let message = format!("there is no memory for a segment's {bytes} bytes: {source}");
        Self::new(ErrorKind::Memory, message).because(same(source))
    }

    /// Creates the error with which a thread stops because another one of the same job has failed.
    pub fn cancelled() -> Self {
        Self::new(ErrorKind::Cancelled, "stopped because another thread failed")
    }

    /// Creates the error for a task that ended in a way that indicates a defect.
    pub fn internal(doing: &str, source: impl StdError + Send + Sync + 'static) -> Self {
        Self::new(ErrorKind::Internal, format!("{doing}: {source}")).because(source)
    }
}

/// Returns the kind of an operating system error. Any action may fail because memory is short.
fn kind_of(error: &io::Error) -> ErrorKind {
    match error.kind() {
        io::ErrorKind::OutOfMemory => ErrorKind::Memory,
        _ => ErrorKind::Io,
    }
}

impl From<paritas::Error> for Error {
    fn from(error: paritas::Error) -> Self {
        let kind = match error.kind() {
            paritas::ErrorKind::Spec | paritas::ErrorKind::Parameters => ErrorKind::Parameters,
            paritas::ErrorKind::Memory => ErrorKind::Memory,
            paritas::ErrorKind::NotEnough => ErrorKind::TooFewShards,
            _ => ErrorKind::Internal,
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
        match &self.0.node {
            Some(node) => write!(f, "node {node}: {}", self.0.message),
            None => f.write_str(&self.0.message),
        }
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
        assert_eq!((error.kind(), error.io_kind()), (ErrorKind::Internal, None));
        assert_eq!((error.offset(), error.shard()), (Some(7), None));
        assert!(error.source().unwrap().is::<paritas::Error>());
        let error = error.counting(4, 3);
        assert_eq!((error.expected(), error.given()), (Some(4), Some(3)));
    }

    #[test]
    fn nodes_and_fields_of_causes_are_told() {
        let cause = Error::parameters("`block_bytes` is too small").naming(&["block_bytes"]);
        let error = Error::too_few_nodes(3, 2).with_reasons(&["one is full".to_owned()]);
        let error = error.because(cause).at_node("two");
        assert_eq!(error.fields(), ["block_bytes"]);
        assert_eq!(error.to_string(), "node two: 3 nodes must take part; got 2: one is full");
        assert_eq!(error.message(), "3 nodes must take part; got 2: one is full");
        assert_eq!((error.expected(), error.given()), (Some(3), Some(2)));
    }
}
