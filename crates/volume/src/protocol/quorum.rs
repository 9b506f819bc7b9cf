//! How many nodes must answer, and how many must store.

use paritas_store::error::{Error, Result};

use crate::protocol::NodeIndex;

/// The sizes of the sets of nodes that readers and writers need.
///
/// A volume has N nodes, and any t of them may be lost. A writer is done when t + 1 nodes have its
/// manifest, so that one remains when t are lost. A reader is sure when N - t nodes answered. Every
/// set of N - t nodes meets every set of t + 1 nodes, so a sure reader sees the version of every
/// writer that is done.
///
/// t belongs to the volume, not to a call: a manifest that was written to t + 1 nodes is only
/// found for sure by readers with the same t or a smaller one.
///
/// Some nodes may be on their way out of the volume: they are *drained*. They are asked like all
/// others, but get no new files, and a manifest on one of them does not count as written. So a
/// writer that is done stays done when they leave the list. They have the highest indices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Quorum {
    nodes: usize,
    drained: usize,
    to_read: usize,
    to_write: usize,
}

impl Quorum {
    /// Creates the quorum of a volume with `nodes` nodes. Any `losses` of them may be lost.
    ///
    /// # Errors
    /// If all nodes could be lost.
    pub fn new(nodes: usize, losses: usize) -> Result<Self> {
        if losses >= nodes {
            return Err(Error::parameters(format!(
                "{losses} of {nodes} nodes cannot be lost: at least 1 must be left"
            )));
        }
        Ok(Self { nodes, drained: 0, to_read: nodes - losses, to_write: losses + 1 })
    }

    /// Counts the last `drained` nodes as drained.
    ///
    /// # Errors
    /// If the other nodes are too few to write to.
    pub fn with_drained(self, drained: usize) -> Result<Self> {
        let serving = self.nodes.saturating_sub(drained);
        if serving < self.to_write {
            return Err(Error::parameters(format!(
                "{serving} of {} nodes are not drained; at least {} must remain to take manifests",
                self.nodes, self.to_write
            )));
        }
        Ok(Self { drained, ..self })
    }

    /// Returns the number of nodes of the volume.
    pub fn nodes(self) -> usize {
        self.nodes
    }

    /// Returns the indices of all nodes.
    pub fn indices(self) -> impl Iterator<Item = NodeIndex> {
        (0..self.nodes).map(NodeIndex)
    }

    /// Returns the number of nodes that are not drained.
    pub fn serving(self) -> usize {
        self.nodes - self.drained
    }

    /// Returns whether a manifest on `node` counts as written. It does unless the node is drained.
    pub fn counts(self, node: NodeIndex) -> bool {
        node.0 < self.serving()
    }

    /// Returns the number of nodes that must answer before a reader is sure.
    pub fn to_read(self) -> usize {
        self.to_read
    }

    /// Returns the number of nodes that must have a manifest before its version is settled.
    pub fn to_write(self) -> usize {
        self.to_write
    }

    /// Returns a quorum with wrong sizes, to show that the exploration finds the resulting flaws.
    #[cfg(test)]
    pub(crate) fn broken(self, to_read: usize, to_write: usize) -> Self {
        Self { to_read, to_write, ..self }
    }
}
