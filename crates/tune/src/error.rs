//! Errors: the reasons why something could not be measured.

use std::fmt;

/// Why something could not be measured.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The core refused a code, an option or a call.
    Core(paritas::Error),
    /// The operating system refused memory for shards of this total number of bytes.
    Memory(usize),
    /// The code with this spec has no packet size to choose.
    NoPackets(String),
    /// No packet of a code fits into a set.
    NoRoom {
        /// The spec of the code.
        spec: String,
        /// The bytes of all shards together.
        set: usize,
    },
}

/// The crate's result type.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl From<paritas::Error> for Error {
    fn from(error: paritas::Error) -> Self {
        Self::Core(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Core(error) => error.fmt(f),
            Self::Memory(bytes) => write!(f, "there is no memory for {bytes} bytes of shards"),
            Self::NoPackets(spec) => {
                write!(
                    f,
                    "{spec} has no packets whose size matters: it is computed in words or blocks"
                )
            }
            Self::NoRoom { spec, set } => {
                write!(f, "no packet of {spec} fits into a set of {set} bytes")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Core(error) => Some(error),
            Self::Memory(_) | Self::NoPackets(_) | Self::NoRoom { .. } => None,
        }
    }
}
