//! The HOW layer: schedules, as data.
//!
//! Every question (encode, decode, degraded read, repair, update) is a call of [`Code::schedule`]:
//! given the cells at hand, compute the wanted cells. The answer is found in two ways and the
//! cheaper one is kept. *Structure* follows the code's definitions, each an equation between few
//! cells. An equation with one unknown gives that unknown: so RDP's zigzag decoding works, and
//! encoding through row parity or EVENODD's S. Where that gets stuck, single cells are eliminated.
//! *Elimination* solves the generator's equations for the unknown data, by way of syndromes where
//! that is shorter, and succeeds whenever a solution exists. Both give rows of sources, from which
//! the passes of [`optimise`] make programs with fewer XORs.
//!
//! Codes in the word layout are planned at node level instead ([`combination`]).
//!
//! This layer is safe code only and knows nothing about memory: a [`Schedule`] names numbered
//! inputs, temporaries and outputs; a [`Plan`] says which cells they are.

pub(crate) mod allocate;
pub mod arrange;
pub(crate) mod blocks;
mod budget;
pub(crate) mod chance;
pub mod combination;
pub mod cost;
pub(crate) mod direct;
mod equations;
pub(crate) mod execution;
pub mod interpret;
mod known;
pub(crate) mod layout;
pub(crate) mod long;
pub(crate) mod lower;
pub mod lt;
pub mod machine;
pub mod optimise;
mod options;
pub(crate) mod pieces;
pub(crate) mod products;
pub(crate) mod program;
pub(crate) mod prove;
mod reads;
pub mod schedule;
#[cfg(feature = "research")]
pub mod search;
mod solve;
pub(crate) mod solver;
pub mod steps;
mod structure;
pub mod survival;
mod syndrome;
mod text;
pub(crate) mod transform;
pub(crate) mod variants;
pub mod vector;
mod words;

use crate::define::cells::{CellId, CellSet, NodeId};
use crate::define::code::Code;
use crate::error::{Error, Result};
use crate::plan::budget::Budget;
use crate::plan::combination::Change;
use crate::plan::machine::Machine;
use crate::plan::optimise::order;
use crate::plan::optimise::reduce::{Refining, reduce_rows};
use crate::plan::optimise::rows::Rows;
use crate::plan::schedule::Schedule;
use crate::plan::steps::Instructions;

pub use crate::plan::budget::Account;
#[cfg(feature = "research")]
pub use crate::plan::budget::Cut;
pub use crate::plan::options::{Order, Pass, PlanOptions, Reads};

/// A schedule, with the cells that are its inputs and outputs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Plan {
    schedule: Schedule,
    inputs: Vec<CellId>,
    outputs: Vec<CellId>,
    account: Account,
}

impl Plan {
    /// Binds a schedule to cells: input `i` is `inputs[i]`, output `i` is `outputs[i]`.
    ///
    /// # Errors
    /// If the counts differ.
    pub fn new(schedule: Schedule, inputs: Vec<CellId>, outputs: Vec<CellId>) -> Result<Self> {
        if schedule.inputs() != inputs.len() || schedule.outputs() != outputs.len() {
            return Err(Error::schedule(format!(
                "a schedule with {} inputs and {} outputs cannot be bound to {} and {} cells",
                schedule.inputs(),
                schedule.outputs(),
                inputs.len(),
                outputs.len()
            )));
        }
        Ok(Self { schedule, inputs, outputs, account: Account::default() })
    }

    /// The account of planning: the steps allowed, the steps taken, and the parts left out. Plans
    /// of LT codes take time proportional to their graph and have no budget.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// The operations.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// The cells that are read, by input number.
    pub fn inputs(&self) -> &[CellId] {
        &self.inputs
    }

    /// Cells that are computed, by output number.
    pub fn outputs(&self) -> &[CellId] {
        &self.outputs
    }

    /// All cells that the plan reads or computes.
    pub(crate) fn cells(&self) -> impl Iterator<Item = CellId> {
        self.inputs.iter().chain(&self.outputs).copied()
    }

    /// Returns the operations and drops the rest.
    pub fn into_schedule(self) -> Schedule {
        self.schedule
    }

    /// Counts what a compiled kernel executes on `machine`, in the order that costs least there.
    /// The plan must be one of `code`.
    ///
    /// # Errors
    /// If an operation adds to its target: such schedules are not compiled. Also if the machine has
    /// fewer than 3 or more than 32 registers.
    ///
    /// # Panics
    /// If the plan reads a cell that the code lacks.
    pub fn instructions(&self, code: &Code, machine: Machine) -> Result<Instructions> {
        let arranged = arrange::arranged(&self.schedule, &streams(code, &self.inputs), machine)?;
        Ok(arranged.allocation.instructions())
    }

    /// Returns the number of cells read from each node. The plan must be one of `code`.
    ///
    /// # Panics
    /// If the plan reads a cell that the code lacks.
    pub fn reads(&self, code: &Code) -> Vec<usize> {
        let mut reads = vec![0; code.node_count()];
        for place in self.inputs.iter().filter_map(|&cell| code.cell(cell).place) {
            reads[place.node.index()] += 1;
        }
        reads
    }
}

/// Returns the stream of bytes that each cell belongs to: that of its node or, for data that is
/// stored nowhere, a stream of its own.
pub(crate) fn streams(code: &Code, cells: &[CellId]) -> Vec<usize> {
    let stream = |&cell: &CellId| {
        let node = code.cell(cell).place.map(|place| place.node.index());
        node.unwrap_or(code.node_count() + cell.index())
    };
    cells.iter().map(stream).collect()
}

impl Code {
    /// Returns the cells of `have` from which the cells of `want` are computed, as `reads` says.
    ///
    /// # Errors
    /// If the cells of `have` do not suffice ([`crate::ErrorKind::NotEnough`]).
    pub fn cells_to_read(
        &self,
        have: &CellSet,
        want: &CellSet,
        reads: Reads,
    ) -> Result<Vec<CellId>> {
        let options = PlanOptions::default().pass(Pass::Direct).reads(reads);
        Ok(self.schedule_with(have, want, options)?.inputs)
    }

    /// The budget for a question about this code.
    fn budget(&self, options: PlanOptions) -> Budget {
        let sources = self.cells().map(|cell| self.definition(cell).len()).sum();
        Budget::for_program(sources, self.data_cells().len(), options.bytes)
    }

    /// Returns a schedule that updates derived cells after the data cells of `node` changed, and
    /// these derived cells: the cells of `parity` that depend on the node.
    ///
    /// The inputs are the node's cells as `change` gives them, and the old derived cells, in this
    /// order. The outputs are the new derived cells.
    ///
    /// # Errors
    /// If the node holds no data.
    pub(crate) fn schedule_update(
        &self,
        node: NodeId,
        change: Change,
        parity: &CellSet,
        options: PlanOptions,
    ) -> Result<(Schedule, Vec<CellId>)> {
        let cells = self.node_cells(node);
        let (touched, rows) = self.dependent_cells(node, parity);
        if touched.is_empty() {
            let message = format!("no parity depends on node {}", node.index());
            return Err(Error::parameters(message).at(node.index()));
        }
        let shards = change.shards();
        let changes = shards * cells.len();
        let supports: Vec<Vec<usize>> = rows
            .iter()
            .enumerate()
            .map(|(i, changed)| {
                let inputs =
                    (0..shards).flat_map(|b| changed.iter().map(move |&c| b * cells.len() + c));
                inputs.chain([changes + i]).collect()
            })
            .collect();
        let inputs = changes + touched.len();
        // The streams: each shard of the change, and each derived cell as a stream of its own.
        let changed = (0..changes).map(|cell| cell / cells.len());
        let streams: Vec<usize> = changed.chain((shards..).take(touched.len())).collect();
        let mut rows = Rows::new(&optimise::direct::schedule(inputs, &supports)?)?;
        let refining = Refining::Asked(options.rounds.unwrap_or(0));
        reduce_rows(&mut rows, options, refining, &mut self.budget(options));
        let schedule = ordered(&rows, &streams, options.order)?;
        Ok((schedule, touched))
    }

    /// Returns the cells of `parity` that depend on the data of `node` and, for each of them, the
    /// rows of the node that it depends on.
    fn dependent_cells(&self, node: NodeId, parity: &CellSet) -> (Vec<CellId>, Vec<Vec<usize>>) {
        let position = |data: u32| {
            let place = self.cell(self.data_cells()[data as usize]).place;
            place.filter(|place| place.node == node).map(|place| place.row)
        };
        let (mut touched, mut rows) = (Vec::new(), Vec::new());
        for cell in parity.iter() {
            let changed: Vec<usize> = self.row(cell).iter().filter_map(|&d| position(d)).collect();
            if !changed.is_empty() {
                touched.push(cell);
                rows.push(changed);
            }
        }
        (touched, rows)
    }
}

/// Returns the schedule of rows whose input `i` belongs to stream `streams[i]`.
fn ordered(rows: &Rows, streams: &[usize], order: Order) -> Result<Schedule> {
    let schedule = rows.schedule()?;
    match order {
        Order::Parity => Ok(schedule),
        Order::Data => order::data_first(&schedule),
        Order::Fused(machine) => Ok(arrange::arranged(&schedule, streams, machine)?.schedule),
    }
}
