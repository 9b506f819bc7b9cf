//! The one public error of the crate: an opaque struct over a public kind.

use std::error::Error as StdError;
use std::fmt;

/// An error of a volume.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    message: String,
    node: Option<String>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// The sort of an error. A command line maps each to an exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A volume file, name, code or number that cannot be used.
    Parameters,
    /// A file that was given as a volume file is none.
    NotRecognised,
    /// There is no object of that name.
    NotFound,
    /// Something is there already, and must not be replaced.
    Exists,
    /// Too few nodes answered to be sure of the result.
    TooFewNodes,
    /// More shards are lost than the code tolerates.
    TooFewShards,
    /// The digest of the bytes differs from the one that the manifest states.
    DigestMismatch,
    /// A node refused: no permission, or wrong credentials.
    Refused,
    /// A node cannot do what was asked: such as writing to a web server.
    Unsupported,
    /// A node failed, did not answer in time, or has no space; or a local file could not be read or
    /// written.
    Io,
    /// Another process changed the same object meanwhile.
    Busy,
    /// The work was cancelled.
    Cancelled,
    /// A defect of this program.
    Internal,
    /// The system lacks the memory, or the volume file allows less than is needed.
    Memory,
}

/// The crate's result type.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Creates an error.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner { kind, message: message.into(), node: None, source: None }))
    }

    /// Creates an error about parameters.
    pub fn parameters(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Parameters, message)
    }

    /// Creates the error for fewer nodes than are needed.
    pub(crate) fn too_few_nodes(needed: usize, given: usize) -> Self {
        let message = format!("{needed} nodes must take part; got {given}");
        Self::new(ErrorKind::TooFewNodes, message)
    }

    /// Adds what the nodes said, if any said something.
    pub(crate) fn with_reasons(self, reasons: &[String]) -> Self {
        match reasons {
            [] => self,
            _ => Self::new(self.kind(), format!("{self}: {}", reasons.join("; "))),
        }
    }

    /// Creates the error for a task that ended in a way that no task may.
    pub(crate) fn internal(doing: &str, source: impl StdError + Send + Sync + 'static) -> Self {
        Self::new(ErrorKind::Internal, format!("{doing}: {source}")).because(source)
    }

    /// Adds the cause.
    pub fn because(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Adds the name of the node that the error is about.
    pub fn at_node(mut self, node: impl Into<String>) -> Self {
        self.0.node = Some(node.into());
        self
    }

    /// Returns the sort of the error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the fields of jobs that the message names, as [`paritas_shards::Error::fields`]
    /// does.
    pub fn fields(&self) -> &'static [&'static str] {
        let source = self.0.source.as_deref();
        let shards = source.and_then(|source| source.downcast_ref::<paritas_shards::Error>());
        shards.map_or(&[], paritas_shards::Error::fields)
    }

    /// Returns the message without the node's name.
    pub(crate) fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the name of the node that the error is about, if it is about one.
    pub fn node(&self) -> Option<&str> {
        self.0.node.as_deref()
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

impl From<paritas::Error> for Error {
    fn from(error: paritas::Error) -> Self {
        paritas_shards::Error::from(error).into()
    }
}

impl From<paritas_shards::Error> for Error {
    fn from(error: paritas_shards::Error) -> Self {
        use paritas_shards::ErrorKind as Shards;
        let kind = match error.kind() {
            Shards::Parameters => ErrorKind::Parameters,
            Shards::TooFewShards => ErrorKind::TooFewShards,
            Shards::DigestMismatch => ErrorKind::DigestMismatch,
            Shards::Exists => ErrorKind::Exists,
            Shards::Busy => ErrorKind::Busy,
            Shards::Memory => ErrorKind::Memory,
            Shards::Io | Shards::NotRecognised => ErrorKind::Io,
            Shards::Cancelled => ErrorKind::Cancelled,
            _ => ErrorKind::Internal,
        };
        Self::new(kind, error.to_string()).because(error)
    }
}
