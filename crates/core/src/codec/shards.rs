//! Divides a code's nodes into those that hold data and those that hold only parity.

use crate::define::cells::{CellId, NodeId, Role};
use crate::define::code::Code;
use crate::error::{Error, Result};

/// The nodes that hold cells at the end of a stage, in node order.
#[derive(Debug)]
pub(super) struct StageNodes {
    data: Vec<NodeId>,
    parity: Vec<NodeId>,
    /// A node that holds both data and parity, if there is one.
    mixed: Option<NodeId>,
}

impl StageNodes {
    pub(super) fn new(code: &Code, stage: u8) -> Self {
        let (data, parity): (Vec<NodeId>, _) =
            code.nodes_at(stage).into_iter().partition(|&node| code.holds_data(node));
        let is_data = |&cell: &CellId| code.cell(cell).role == Role::Data;
        let mixed = data.iter().find(|&&node| !code.node_cells(node).iter().all(is_data)).copied();
        Self { data, parity, mixed }
    }

    /// Returns the nodes that hold data, and the nodes that hold only parity.
    ///
    /// # Errors
    /// If a node holds data and parity.
    pub(super) fn split(&self, code: &Code) -> Result<(&[NodeId], &[NodeId])> {
        match self.mixed {
            None => Ok((&self.data, &self.parity)),
            Some(node) => Err(Error::parameters(format!(
                "{}: node {} holds data and parity; this call needs nodes that hold one of them",
                code.spec(),
                node.index()
            ))),
        }
    }
}
