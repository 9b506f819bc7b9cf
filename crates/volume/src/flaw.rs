//! Problems on nodes, in the form in which reports and messages show them.

use std::{fmt, io};

use paritas_store::error::Error;

/// A problem on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Flaw {
    /// The node's name.
    pub node: String,
    /// The shard, if the flaw is about one.
    pub shard: Option<usize>,
    /// What was wrong.
    pub message: String,
    /// Number of requests that met the flaw.
    pub count: usize,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.shard {
            Some(shard) => write!(f, "{}: shard {shard}: {}", self.node, self.message)?,
            None => write!(f, "{}: {}", self.node, self.message)?,
        }
        match self.count {
            0 | 1 => Ok(()),
            count => write!(f, " ({count} times)"),
        }
    }
}

impl Flaw {
    pub(crate) fn new(
        node: impl Into<String>,
        shard: Option<usize>,
        message: impl Into<String>,
    ) -> Self {
        Self { node: node.into(), shard, message: message.into(), count: 1 }
    }

    /// Adds the flaw to a list. If the list has it already, only its count rises.
    pub(crate) fn add_to(self, flaws: &mut Vec<Self>) {
        let is_same = |other: &&mut Self| {
            (&other.node, other.shard, &other.message) == (&self.node, self.shard, &self.message)
        };
        match flaws.iter_mut().find(is_same) {
            Some(known) => known.count += self.count,
            None => flaws.push(self),
        }
    }
}

/// Returns the first flaws of a list for a message. More of them would make the message unreadable.
pub(crate) fn told(flaws: &[Flaw]) -> String {
    let mut flaws: Vec<&Flaw> = flaws.iter().collect();
    // Sorted, because nodes answer in any order.
    flaws.sort_by(|one, other| one.node.cmp(&other.node));
    let told: Vec<String> = flaws.into_iter().take(8).map(Flaw::to_string).collect();
    told.join("; ")
}

/// Whether a node has no space left.
pub(crate) fn is_full(error: &Error) -> bool {
    error.io_kind() == Some(io::ErrorKind::StorageFull)
}

/// Returns the cause of an error that would not be there if nodes had more space.
pub(crate) fn no_space() -> io::Error {
    io::ErrorKind::StorageFull.into()
}
