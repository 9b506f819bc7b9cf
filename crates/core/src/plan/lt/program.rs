//! A decoding program under construction.

use crate::define::cells::CellId;
use crate::define::lt::Graph;
use crate::error::Result;
use crate::plan::Plan;
use crate::plan::schedule::{Op, Schedule, Slot};

/// A decoding program under construction. Its outputs are the data blocks, its inputs the blocks
/// that it reads.
pub(super) struct LtProgram<'g> {
    pub(super) graph: &'g Graph,
    pub(super) ops: Vec<Op>,
    pub(super) inputs: Vec<CellId>,
    /// For each block, its input, if it has one yet.
    pub(super) slots: Vec<Option<Slot>>,
    pub(super) temps: usize,
}

impl<'g> LtProgram<'g> {
    pub(super) fn new(graph: &'g Graph) -> Self {
        Self {
            graph,
            ops: Vec::new(),
            inputs: Vec::new(),
            slots: vec![None; graph.blocks()],
            temps: 0,
        }
    }

    /// Returns the input of a block.
    pub(super) fn input(&mut self, block: u32) -> Slot {
        let next = Slot::Input(self.inputs.len() as u32);
        let slot = *self.slots[block as usize].get_or_insert(next);
        if slot == next {
            self.inputs.push(self.graph.block_cell(block as usize));
        }
        slot
    }

    /// Computes a data block from a block and the block's other neighbours, which have been
    /// computed.
    pub(super) fn solve(&mut self, data: u32, block: u32) {
        let mut sources = vec![self.input(block)];
        let others = self.graph.row(block).iter().filter(|&&other| other != data);
        sources.extend(others.map(|&other| Slot::Output(other)));
        self.ops.push(Op::assign(Slot::Output(data), sources));
    }

    /// Returns a new temporary.
    pub(super) fn temp(&mut self) -> Slot {
        self.temps += 1;
        Slot::Temp(self.temps as u32 - 1)
    }

    pub(super) fn finish(self) -> Result<Plan> {
        let data = self.graph.data();
        let schedule = Schedule::new(self.inputs.len(), self.temps, data, self.ops)?;
        let outputs = (0..data).map(|data| self.graph.data_cell(data)).collect();
        Plan::new(schedule, self.inputs, outputs)
    }
}
