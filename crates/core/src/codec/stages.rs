//! Codes of several stages: computes a later stage, and reconstructs at the end of any stage.

use crate::codec::Codec;
use crate::codec::question::Question;
use crate::define::cells::{CellId, CellSet, NodeId};
use crate::error::{Error, Result};
use crate::run::buffers::Buffer;

impl Codec {
    /// Computes the cells of a stage after the first, from exactly the cells that
    /// [`Code::promotion`] names. Buffers with new cells are [`Buffer::Target`], and others with
    /// cells that are read are [`Buffer::Source`]; the rest may be absent. Other rows of targets
    /// are left alone.
    ///
    /// # Errors
    /// If the code has no such stage, or if the buffers do not fit.
    ///
    /// [`Code::promotion`]: crate::Code::promotion
    pub fn promote(&self, stage: u8, buffers: &mut [Buffer<'_>]) -> Result<()> {
        let promotion = self.code().promotion(stage).ok_or_else(|| {
            let (spec, stages) = (self.code().spec(), self.code().stages());
            Error::parameters(format!(
                "{spec} is made in {stages} stages, the first by encoding; there is no promotion to \
                 stage {stage}"
            ))
        })?;
        self.compute(&promotion.reads, &promotion.makes, buffers)
    }

    /// Does what [`Codec::reconstruct_into`] does, but at the end of a stage: rows of later stages
    /// are neither read nor computed.
    ///
    /// # Errors
    /// As [`Codec::compute`]; if the code has no such stage ([`crate::ErrorKind::Parameters`]).
    pub fn reconstruct_at(&self, stage: u8, nodes: &mut [Buffer<'_>]) -> Result<()> {
        self.expect_count("node", nodes.len(), self.buffer_count())?;
        let code = self.code();
        if !(1..=code.stages()).contains(&stage) {
            let (spec, stages) = (code.spec(), code.stages());
            let message = format!("{spec} has the stages 1 to {stages}; got {stage}");
            return Err(Error::parameters(message));
        }
        // At the end of the last stage all cells stand.
        let standing = (stage < code.stages()).then(|| code.standing(stage));
        let stands = |standing: &CellSet, cell: CellId| {
            code.cell(cell).place.is_none() || standing.contains(cell)
        };
        let mut have = CellSet::new(code.cell_count());
        let mut want = have.clone();
        let layout = &self.engine.setup.layout;
        for (number, (buffer, cells)) in nodes.iter().zip(&layout.cells).enumerate() {
            let set = match buffer {
                Buffer::Absent => continue,
                Buffer::Source(_) => &mut have,
                Buffer::Target(_) => &mut want,
            };
            match &standing {
                None => set.add(&layout.lists, number),
                Some(standing) => {
                    set.extend(cells.iter().copied().filter(|&cell| stands(standing, cell)));
                }
            }
        }
        let buffers = nodes.iter_mut().map(Buffer::reborrow).enumerate();
        let computed = self.engine.answer(&Question::Compute(have, want), buffers);
        computed.map_err(|error| {
            let is_present = |node: &&NodeId| matches!(nodes[node.index()], Buffer::Source(_));
            let present = code.nodes_at(stage).iter().filter(is_present).count();
            self.by_shards(error, stage, present)
        })
    }
}
