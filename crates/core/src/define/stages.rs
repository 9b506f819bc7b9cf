//! Stages: codes whose parity is computed in several steps.
//!
//! Delayed parity generation stores some of the parity at once. It computes the rest later, from
//! part of the cells that are stored at that time. A code states the stage of every cell. For every
//! stage but the last it also states how many nodes may be lost at its end, and which cells the
//! next stage reads. Each node's rows are in the order of their stages, so a later stage appends to
//! what a node already holds. Most codes have one stage and are encoded at once.
//!
//! Otherwise such codes are like any other: [`Code::schedule`] computes a stage, or repairs a loss
//! in any stage, from the cells that are stored at that time.

use crate::define::cells::{CellId, CellSet, NodeId, Role};
use crate::define::code::Code;
use crate::error::{Error, Result};

/// How a later stage is computed; [`Codec::promote`](crate::Codec::promote) does it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Promotion {
    /// Cells that are read, all of earlier stages.
    pub reads: CellSet,
    /// Cells that are computed.
    pub makes: CellSet,
}

impl Code {
    /// Number of the last stage: 1, except for codes of delayed parity generation.
    pub fn stages(&self) -> u8 {
        self.stage_ends().len() as u8 + 1
    }

    /// Number of nodes that may be lost at the end of a stage, whichever they are.
    pub fn tolerance_at(&self, stage: u8) -> usize {
        let end = stage.checked_sub(1).and_then(|index| self.stage_ends().get(usize::from(index)));
        end.map_or(self.tolerance(), |end| end.tolerance)
    }

    /// Cells that are stored at the end of a stage.
    pub fn standing(&self, stage: u8) -> CellSet {
        self.placed(|cell| self.cell(cell).stage <= stage)
    }

    /// Nodes that hold any cell at the end of a stage.
    pub fn nodes_at(&self, stage: u8) -> Vec<NodeId> {
        // The rows of a node are in the order of their stages.
        let first = |node: NodeId| self.node_cells(node).first();
        let stands = |&cell: &CellId| self.cell(cell).stage <= stage;
        self.nodes().filter(|&node| first(node).is_some_and(stands)).collect()
    }

    /// Checks that encoding leaves no rows of the nodes that it makes to a later stage, as it does
    /// with `interleave=all`. Without a promotion, such rows would be read as if they were parity.
    ///
    /// # Errors
    /// If there are such rows ([`crate::ErrorKind::Parameters`]).
    pub fn expect_encoded_whole(&self) -> Result<()> {
        let is_later = |cell: &CellId| self.cell(*cell).stage > 1;
        let has_later = |node: &NodeId| self.node_cells(*node).iter().any(is_later);
        match self.nodes_at(1).into_iter().find(has_later) {
            None => Ok(()),
            Some(node) => Err(Error::parameters(format!(
                "{}: encoding leaves rows of node {node} to a later stage; `paritas promote` and \
                 Codec::promote of the Rust library make them",
                self.spec()
            ))),
        }
    }

    /// Parity cells that a stage computes.
    pub fn made_in(&self, stage: u8) -> CellSet {
        self.placed(|cell| self.cell(cell).stage == stage && self.cell(cell).role != Role::Data)
    }

    /// Describes how a stage is computed from the cells stored before it. Returns `None` for the
    /// first stage, which is computed from the data, and for stages that do not exist.
    pub fn promotion(&self, stage: u8) -> Option<Promotion> {
        let end = self.stage_ends().get(usize::from(stage.checked_sub(2)?))?;
        let reads = CellSet::from_cells(self.cell_count(), end.reads.iter().copied());
        Some(Promotion { reads, makes: self.made_in(stage) })
    }

    fn placed(&self, wanted: impl Fn(CellId) -> bool) -> CellSet {
        let placed = |&cell: &CellId| self.cell(cell).place.is_some() && wanted(cell);
        CellSet::from_cells(self.cell_count(), self.cells().filter(placed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::define::builder::CodeBuilder;
    use crate::define::spec::Spec;

    /// Two data nodes, and a parity node with a second row that is computed later.
    fn two_stages() -> Code {
        let mut builder = CodeBuilder::new(3);
        let (a, b) = (builder.data(Some(0)), builder.data(Some(1)));
        let later = builder.stage(2).derived(Role::Parity, Some(2), &[a]);
        builder.stage(1).derived(Role::Parity, Some(2), &[later, b]);
        builder.lane_rows(1).end_stage(1, vec![a]);
        builder.finish(Spec::new("test"), 2).unwrap()
    }

    #[test]
    fn rows_stand_by_stage() {
        let code = two_stages();
        let rows = code.node_cells(NodeId::new(2));
        assert_eq!(rows, [CellId::new(3), CellId::new(2)]);
        let places = rows.iter().map(|&cell| code.cell(cell).place.unwrap().row);
        assert!(places.eq([0, 1]));
        assert_eq!((code.cell(rows[0]).stage, code.cell(rows[1]).stage), (1, 2));
    }

    #[test]
    fn every_stage_has_its_cells_and_tolerance() {
        let code = two_stages();
        let set = |cells: &[usize]| CellSet::from_cells(4, cells.iter().map(|&c| CellId::new(c)));
        assert_eq!((code.stages(), code.tolerance_at(1), code.tolerance_at(2)), (2, 1, 2));
        assert_eq!((code.standing(1), code.standing(2)), (set(&[0, 1, 3]), set(&[0, 1, 2, 3])));
        assert_eq!(code.made_in(1), set(&[3]));
        let promotion = Promotion { reads: set(&[0]), makes: set(&[2]) };
        assert_eq!(code.promotion(2), Some(promotion));
        assert_eq!([0, 1, 3].map(|stage| code.promotion(stage)), [None, None, None]);
    }

    #[test]
    fn stages_without_an_end_are_refused() {
        let mut builder = CodeBuilder::new(2);
        let a = builder.data(Some(0));
        builder.stage(2).derived(Role::Parity, Some(1), &[a]);
        let error = builder.finish(Spec::new("test"), 1).unwrap_err().to_string();
        assert!(error.contains("stage 2, but there are 1"), "{error}");
    }
}
