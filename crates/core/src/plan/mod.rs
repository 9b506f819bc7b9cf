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
pub(crate) mod variants;
pub mod vector;

use crate::define::cells::{CellId, CellSet, NodeId};
use crate::define::code::Code;
use crate::error::{Error, Result};
use crate::plan::budget::Budget;
use crate::plan::combination::Change;
use crate::plan::cost::Objective;
use crate::plan::machine::Machine;
#[cfg(feature = "research")]
use crate::plan::optimise::matching::{self, Preference};
use crate::plan::optimise::parts::Parts;
use crate::plan::optimise::refine::{self, Effort};
use crate::plan::optimise::rows::Rows;
use crate::plan::optimise::{direct, fuse, groups, order, slp, smart};
use crate::plan::schedule::Schedule;
use crate::plan::steps::Instructions;

pub use crate::plan::budget::{Account, Cut};

/// Total number of sources that refining may process for a question that is asked again and again,
/// as encoding is; takes some tens of milliseconds.
const REFINE_ENCODE: usize = 100_000;

/// Total number of sources that refining may process for a question that is asked once, as decoding
/// is; takes a few tenths of a millisecond.
const REFINE_ONCE: usize = 1_000;

/// Upper bound on the rounds of refining, unless the caller asks for more.
const REFINE_ROUNDS: usize = 400;

/// Seed that decides between equals in every plan.
const SEED: u64 = 1;

/// The pass that reduces a schedule's XORs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Pass {
    /// Rows as they are.
    Direct,
    /// A row from an earlier row plus differences, where that is cheaper (SS).
    Smart,
    /// Common pairs of inputs by unweighted matching (UM).
    #[cfg(feature = "research")]
    Unweighted,
    /// Common pairs of inputs by weighted matching (WM).
    #[cfg(feature = "research")]
    Weighted,
    /// Greedy common pairs, intermediates included, then refined.
    #[default]
    Slp,
}

impl Pass {
    /// All passes.
    #[cfg(feature = "research")]
    pub const ALL: [Self; 5] =
        [Self::Direct, Self::Smart, Self::Unweighted, Self::Weighted, Self::Slp];

    /// Name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Smart => "smart",
            #[cfg(feature = "research")]
            Self::Unweighted => "um",
            #[cfg(feature = "research")]
            Self::Weighted => "wm",
            Self::Slp => "slp",
        }
    }
}

impl std::fmt::Display for Pass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// The order of a schedule's operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
#[non_exhaustive]
pub enum Order {
    /// Wanted cells one after the other, each to completion (the traditional order).
    #[default]
    Parity,
    /// Sources one after the other, each added wherever it is used (Luo, Xu and Plank 2009).
    Data,
    /// The order that costs least where a compiled kernel runs the schedule on this machine; it may
    /// compute the cells by other operations.
    Fused(Machine),
}

/// The cells at hand that a schedule reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
#[non_exhaustive]
pub enum Reads {
    /// The cells that the cheapest computation needs.
    #[default]
    Any,
    /// The fewest cells that the search finds, whatever computing from them costs. This suits cells
    /// that are slow to read, as from a disk.
    Fewest,
}

/// Options of [`Code::schedule_with`]: a default, changed by setters of the same names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
#[non_exhaustive]
pub struct PlanOptions {
    /// The pass that reduces XORs.
    pub pass: Pass,
    /// The order of operations.
    pub order: Order,
    /// The quantity that `slp` minimises.
    pub objective: Objective,
    /// Number of rounds of refining in `slp`. The default is as many as pay for a question that is
    /// asked again and again, as encoding is, and few for others.
    pub rounds: Option<usize>,
    /// The cells that are read. Codes in the word layout always read whole nodes.
    pub reads: Reads,
    /// Number of bytes of data to process, if known; with few bytes, planning stops early. By
    /// default the question is taken to be asked again and again.
    pub bytes: Option<u64>,
}

impl PlanOptions {
    /// Sets [`PlanOptions::pass`].
    pub fn pass(self, pass: Pass) -> Self {
        Self { pass, ..self }
    }

    /// Sets [`PlanOptions::order`].
    pub fn order(self, order: Order) -> Self {
        Self { order, ..self }
    }

    /// Sets [`PlanOptions::objective`].
    pub fn objective(self, objective: Objective) -> Self {
        Self { objective, ..self }
    }

    /// Sets [`PlanOptions::rounds`].
    pub fn rounds(self, rounds: impl Into<Option<usize>>) -> Self {
        Self { rounds: rounds.into(), ..self }
    }

    /// Sets [`PlanOptions::reads`].
    pub fn reads(self, reads: Reads) -> Self {
        Self { reads, ..self }
    }

    /// Sets [`PlanOptions::bytes`].
    pub fn bytes(self, bytes: impl Into<Option<u64>>) -> Self {
        Self { bytes: bytes.into(), ..self }
    }
}

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
    pub fn instructions(&self, code: &Code, machine: Machine) -> Result<Instructions> {
        let arranged = arrange::arranged(&self.schedule, &streams(code, &self.inputs), machine)?;
        Ok(arranged.allocation.instructions())
    }

    /// Returns the number of cells read from each node.
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
        let position = |data: u32| {
            let place = self.cell(self.data_cells()[data as usize]).place;
            place.filter(|place| place.node == node).map(|place| place.row)
        };
        let mut touched = Vec::new();
        let mut rows = Vec::new();
        for cell in parity.iter() {
            let changed: Vec<usize> = self.row(cell).iter().filter_map(|&d| position(d)).collect();
            if !changed.is_empty() {
                touched.push(cell);
                rows.push(changed);
            }
        }
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
        let mut rows = Rows::new(&direct::schedule(inputs, &supports)?)?;
        let refining = Refining::Asked(options.rounds.unwrap_or(0));
        reduce_rows(&mut rows, options, refining, &mut self.budget(options));
        let schedule = ordered(&rows, &streams, options.order)?;
        Ok((schedule, touched))
    }

    /// Returns how much refining there is: the rounds of the options or, by default, as much as
    /// pays.
    fn refining(&self, have: &CellSet, options: PlanOptions) -> Refining {
        let encodes = || self.data_cells().iter().all(|&cell| have.contains(cell));
        match options.rounds {
            Some(rounds) => Refining::Asked(rounds),
            None if encodes() => Refining::Pays(REFINE_ENCODE),
            None => Refining::Pays(REFINE_ONCE),
        }
    }
}

/// How much refining there is.
#[derive(Debug, Clone, Copy)]
enum Refining {
    /// The number of rounds that the caller asked for.
    Asked(usize),
    /// As many rounds as process this number of sources, while the budget lasts.
    Pays(usize),
}

impl Refining {
    /// Returns the number of rounds over rows that have this number of sources together.
    fn rounds(self, sources: usize) -> usize {
        match self {
            Self::Asked(rounds) => rounds,
            Self::Pays(most) => (most / sources.max(1)).min(REFINE_ROUNDS),
        }
    }
}

/// Returns the number of rounds of refining that pay for encoding.
#[cfg(feature = "research")]
fn rounds_for_encoding(sources: usize) -> usize {
    Refining::Pays(REFINE_ENCODE).rounds(sources)
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

/// Shortens rows by the pass that the options name.
fn reduce_rows(rows: &mut Rows, options: PlanOptions, refining: Refining, budget: &mut Budget) {
    let steps = match options.pass {
        Pass::Direct | Pass::Slp => 0,
        Pass::Smart => smart::steps(rows),
        #[cfg(feature = "research")]
        Pass::Unweighted | Pass::Weighted => matching::steps(rows),
    };
    if !budget.draw(steps) {
        return budget.cut(Cut::Pairs);
    }
    match options.pass {
        Pass::Direct => {}
        Pass::Smart => smart::from_earlier(rows),
        #[cfg(feature = "research")]
        Pass::Unweighted => matching::extract_matchings(rows, Preference::None),
        #[cfg(feature = "research")]
        Pass::Weighted => matching::extract_matchings(rows, Preference::Sparse),
        Pass::Slp => {
            let mut parts = Parts::of(rows);
            let sources = parts.distinct.iter().flat_map(Rows::iter).map(Vec::len).sum();
            let count = parts.distinct.len();
            // What small parts leave of the budget is for the large ones.
            let mut by_size: Vec<&mut Rows> = parts.distinct.iter_mut().collect();
            by_size.sort_by_key(|part| part.iter().map(Vec::len).sum::<usize>());
            for (number, part) in by_size.into_iter().enumerate() {
                budget.share((count - number) as u64, |share| {
                    extract(part, options.objective, share);
                    refine_rows(part, options.objective, refining, sources, share);
                });
            }
            *rows = parts.together();
            fuse::fuse(rows, quick(options.objective));
        }
    }
}

/// Returns the objective used for shortening: the given one or, if that is slow to count, `Total`.
fn quick(objective: Objective) -> Objective {
    match objective {
        Objective::Fused(_) => Objective::Total,
        other => other,
    }
}

/// Extracts common pairs; in groups of rows if doing so for all rows exceeds the budget.
fn extract(rows: &mut Rows, objective: Objective, budget: &mut Budget) {
    let is_whole = slp::steps(rows) <= budget.left();
    let is_done = match is_whole {
        true => slp::extract_pairs(rows, None, budget),
        false => budget.share(2, |half| groups::extract_groups(rows, half)),
    };
    if !is_whole || !is_done {
        budget.cut(Cut::Pairs);
    }
    fuse::fuse(rows, quick(objective));
}

/// Refines rows, first for an objective that is quick to count. All rows that are refined for the
/// same question have `sources` sources together.
fn refine_rows(
    rows: &mut Rows,
    objective: Objective,
    refining: Refining,
    sources: usize,
    budget: &mut Budget,
) {
    let rounds = refining.rounds(sources);
    let mut asked = matches!(refining, Refining::Asked(_)).then(Budget::unlimited);
    let effort = Effort { objective: quick(objective), rounds, seed: SEED };
    let draws = asked.as_mut().unwrap_or(budget);
    let mut is_done = refine::refine(rows, effort, draws);
    if objective != effort.objective {
        is_done &= refine::refine(rows, Effort { objective, ..effort }, draws);
    }
    if !is_done {
        budget.cut(Cut::Refining);
    }
    if let Some(asked) = asked {
        budget.spend(asked.into_account().spent);
    }
}
