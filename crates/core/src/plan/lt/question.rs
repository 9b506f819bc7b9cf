//! The general question for LT codes: wanted cells from cells at hand.
//!
//! With all data at hand, wanted blocks are computed from their rows. With no data at hand,
//! inactivation solves for the data: from all blocks at hand or, if the fewest cells are to be
//! read, from the first blocks that suffice. Wanted blocks then follow from the data. So either all
//! data is determined or the question fails, even if the blocks at hand happen to determine the
//! wanted data blocks alone.

use crate::define::cells::{CellId, CellSet};
use crate::define::code::Code;
use crate::define::lt::Graph;
use crate::error::Result;
use crate::plan::lt::{Decoder, Method};
use crate::plan::schedule::{Op, Schedule, Slot};
use crate::plan::{Plan, Reads};

impl Code {
    /// Returns the plan for an LT code's wanted cells; `None` if only some of the data is at hand,
    /// and for other codes.
    pub(in crate::plan) fn graph_plan(
        &self,
        have: &CellSet,
        wanted: &[CellId],
        reads: Reads,
    ) -> Option<Result<Plan>> {
        let graph = self.graph()?;
        let known = (0..graph.data()).filter(|&data| have.contains(graph.data_cell(data))).count();
        match known {
            0 => Some(decode(graph, have, reads).and_then(|plan| complete(graph, plan, wanted))),
            all if all == graph.data() => Some(encode(graph, wanted)),
            _ => None,
        }
    }
}

/// Computes the data from the blocks at hand. More blocks than needed give fewer XORs.
fn decode(graph: &Graph, have: &CellSet, reads: Reads) -> Result<Plan> {
    let mut decoder = Decoder::new(graph, Method::Inactivation);
    for block in (0..graph.blocks()).filter(|&block| have.contains(graph.block_cell(block))) {
        if decoder.push(block)? && reads == Reads::Fewest {
            break;
        }
    }
    decoder.plan()
}

/// Computes the wanted blocks from all data.
fn encode(graph: &Graph, wanted: &[CellId]) -> Result<Plan> {
    let inputs: Vec<CellId> = (0..graph.data()).map(|data| graph.data_cell(data)).collect();
    let ops = rows(graph, wanted, Slot::Input);
    Plan::new(Schedule::new(inputs.len(), 0, wanted.len(), ops)?, inputs, wanted.to_vec())
}

/// Changes a plan that computes all data into one that computes the wanted cells.
fn complete(graph: &Graph, plan: Plan, wanted: &[CellId]) -> Result<Plan> {
    if plan.outputs() == wanted {
        return Ok(plan);
    }
    let inputs = plan.inputs().to_vec();
    let decoding = plan.into_schedule();
    let mut place: Vec<Slot> =
        (0..graph.data()).map(|data| Slot::Temp((decoding.temps() + data) as u32)).collect();
    for (output, cell) in wanted.iter().enumerate() {
        if let Some(slot) = place.get_mut(cell.index()) {
            *slot = Slot::Output(output as u32);
        }
    }
    let placed = |slot: Slot| match slot {
        Slot::Output(data) => place[data as usize],
        other => other,
    };
    let moved = |op: &Op| Op {
        target: placed(op.target),
        accumulate: op.accumulate,
        factor: op.factor,
        sources: op.sources.iter().map(|&source| placed(source)).collect(),
    };
    let mut ops: Vec<Op> = decoding.ops().iter().map(moved).collect();
    ops.extend(rows(graph, wanted, |data| place[data as usize]));
    let temps = decoding.temps() + graph.data();
    let schedule = Schedule::new(inputs.len(), temps, wanted.len(), ops)?;
    Plan::new(schedule, inputs, wanted.to_vec())
}

/// Returns operations that compute each wanted block as the XOR of its data blocks.
fn rows(graph: &Graph, wanted: &[CellId], place: impl Fn(u32) -> Slot) -> Vec<Op> {
    let block = |(output, cell): (usize, &CellId)| {
        let block = cell.index().checked_sub(graph.data())?;
        let sources = graph.row(block as u32).iter().map(|&data| place(data)).collect();
        Some(Op::assign(Slot::Output(output as u32), sources))
    };
    wanted.iter().enumerate().filter_map(block).collect()
}
