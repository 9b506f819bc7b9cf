//! How many nodes must answer, and how many must store.

use crate::protocol::NodeIndex;
use crate::{Error, Result};

/// The sizes of the sets of nodes that readers and writers need.
///
/// A volume has N nodes, of which any t may be lost. A writer is done when t + 1 nodes have its
/// manifest, so that one is left when t are lost. A reader is sure when N - t nodes answered. Every
/// set of N - t nodes meets every set of t + 1 nodes, so a sure reader sees all that is done.
///
/// t belongs to the volume, not to a call: a manifest that was written to t + 1 nodes is only
/// found for sure by readers with the same t or a smaller one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Quorum {
    nodes: usize,
    to_read: usize,
    to_write: usize,
}

impl Quorum {
    /// Creates the quorum of `nodes` nodes of which any `losses` may be lost.
    ///
    /// # Errors
    /// If no node would be left.
    pub fn new(nodes: usize, losses: usize) -> Result<Self> {
        if losses >= nodes {
            return Err(Error::parameters(format!(
                "{losses} of {nodes} nodes cannot be lost: at least 1 must be left"
            )));
        }
        Ok(Self { nodes, to_read: nodes - losses, to_write: losses + 1 })
    }

    /// Returns the number of nodes of the volume.
    pub fn nodes(self) -> usize {
        self.nodes
    }

    /// Returns the nodes.
    pub fn indices(self) -> impl Iterator<Item = NodeIndex> {
        (0..self.nodes).map(NodeIndex)
    }

    /// Returns the number of nodes that must answer before a reader is sure.
    pub fn to_read(self) -> usize {
        self.to_read
    }

    /// Returns the number of nodes that must have a manifest before its version is settled.
    pub fn to_write(self) -> usize {
        self.to_write
    }

    /// Returns a quorum with other sizes, to show that the exploration finds what goes wrong then.
    #[cfg(test)]
    pub(crate) fn broken(self, to_read: usize, to_write: usize) -> Self {
        Self { to_read, to_write, ..self }
    }
}
