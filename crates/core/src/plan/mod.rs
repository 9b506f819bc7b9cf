//! HOW: schedules, as data.
//!
//! Every question (encode, decode, degraded read, repair, update) is [`Code::schedule`]: which
//! cells are at hand, which are wanted. The answer is found in two ways and the cheaper one is
//! kept. *Structure* follows the code's definitions, each an equation between few cells: whatever
//! equation has one unknown gives it, as RDP's zigzag decoding does, and encoding through row
//! parity or EVENODD's S; where that gets stuck, single cells are eliminated. *Elimination* solves the
//! generator's equations for the unknown data, by way of syndromes where that is shorter, and always
//! succeeds where anything does. Both give rows of sources, which the passes of
//! [`optimise`] turn into fewer XORs.
//!
//! Codes in the word layout are planned at node level instead ([`combination`]).
//!
//! Safe code only, and nothing here knows about memory: a [`Schedule`] names numbered inputs,
//! temporaries and outputs; a [`Plan`] says which cells they are.

pub(crate) mod allocate;
pub mod arrange;
pub(crate) mod blocks;
mod chance;
pub mod combination;
pub mod cost;
pub(crate) mod execution;
pub mod interpret;
pub(crate) mod layout;
pub(crate) mod lower;
pub mod lt;
pub mod machine;
pub mod optimise;
pub(crate) mod pieces;
pub(crate) mod products;
pub(crate) mod program;
mod prove;
mod reads;
pub mod schedule;
pub mod search;
pub mod steps;
mod structure;
mod syndrome;
mod text;
pub(crate) mod variants;
pub mod vector;

use serde::{Deserialize, Serialize};

use crate::define::cells::{CellId, CellSet, Code, NodeId};
use crate::define::erasure::Losses;
use crate::error::{Error, Result};
use crate::plan::cost::Objective;
use crate::plan::machine::Machine;
use crate::plan::optimise::matching::{self, Preference};
use crate::plan::optimise::refine::{self, Effort};
use crate::plan::optimise::rows::Rows;
use crate::plan::optimise::{direct, fuse, order, slp, smart};
use crate::plan::schedule::Schedule;

/// The largest number of sources (sum over wanted cells) that `slp` is tried on by itself; beyond
/// it the rows are computed as they stand.
const SLP_LIMIT: usize = 1 << 18;

/// How many sources refining may go over in all for a question that comes up again and again: some tens
/// of milliseconds.
const REFINE_ENCODE: usize = 100_000;

/// The same for questions that come up once, as decoding does: a few tenths of a millisecond.
const REFINE_ONCE: usize = 3_000;

/// The most rounds of refining where nobody asks for more.
const REFINE_ROUNDS: usize = 400;

/// Decides between equals in every plan.
const SEED: u64 = 1;

/// How a schedule's XORs are reduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pass {
    /// Rows as they stand.
    Direct,
    /// A row from an earlier row plus differences, where that is cheaper (SS).
    Smart,
    /// Common pairs of inputs by unweighted matching (UM).
    Unweighted,
    /// Common pairs of inputs by weighted matching (WM).
    Weighted,
    /// Greedy common pairs, intermediates included, then refined.
    #[default]
    Slp,
}

impl Pass {
    /// All ways.
    pub const ALL: [Self; 5] =
        [Self::Direct, Self::Smart, Self::Unweighted, Self::Weighted, Self::Slp];

    /// The name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Smart => "smart",
            Self::Unweighted => "um",
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

/// In which order a schedule's operations come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Order {
    /// Wanted cells one after the other, each to completion (the traditional order).
    #[default]
    Parity,
    /// Sources one after the other, each added wherever it is used (Luo, Xu and Plank 2009).
    Data,
    /// The one in which a compiled kernel runs it on this machine ([`arrange::arranged`]), which may
    /// compute by other operations.
    Fused(Machine),
}

/// Which of the cells at hand a schedule reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Reads {
    /// Those that the cheapest computation takes.
    #[default]
    Any,
    /// As few as are found to be enough, whatever that costs to compute: for where reading a cell
    /// costs more than computing with it, as from a disk.
    Fewest,
}

/// What [`Code::schedule_with`] may be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct PlanOptions {
    /// How XORs are reduced.
    pub pass: Pass,
    /// In which order operations come.
    pub order: Order,
    /// What `slp` makes small.
    pub objective: Objective,
    /// How many rounds `slp` refines; by default as many as pay for a question that comes up again and
    /// again, as encoding does, and few for others.
    pub rounds: Option<usize>,
    /// Which cells are read. Codes in the word layout read whole nodes all the same.
    pub reads: Reads,
}

/// A schedule with the cells that its inputs and outputs stand for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    schedule: Schedule,
    inputs: Vec<CellId>,
    outputs: Vec<CellId>,
}

impl Plan {
    /// Binds a schedule to cells: input `i` is `inputs[i]`, output `i` is `outputs[i]`.
    ///
    /// # Errors
    /// When the counts differ.
    pub fn new(schedule: Schedule, inputs: Vec<CellId>, outputs: Vec<CellId>) -> Result<Self> {
        if schedule.inputs() != inputs.len() || schedule.outputs() != outputs.len() {
            return Err(Error::schedule(format!(
                "a schedule of {} inputs and {} outputs cannot stand for {} and {} cells",
                schedule.inputs(),
                schedule.outputs(),
                inputs.len(),
                outputs.len()
            )));
        }
        Ok(Self { schedule, inputs, outputs })
    }

    /// The operations.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// The cells that are read, by input number.
    pub fn inputs(&self) -> &[CellId] {
        &self.inputs
    }

    /// The cells that are made, by output number.
    pub fn outputs(&self) -> &[CellId] {
        &self.outputs
    }

    /// The operations, taken out.
    pub fn into_schedule(self) -> Schedule {
        self.schedule
    }

    /// The stream of bytes that each input is part of.
    pub fn streams(&self, code: &Code) -> Vec<usize> {
        streams(code, &self.inputs)
    }

    /// The number of cells read of each node.
    pub fn reads(&self, code: &Code) -> Vec<usize> {
        let mut reads = vec![0; code.node_count()];
        for place in self.inputs.iter().filter_map(|&cell| code.cell(cell).place) {
            reads[place.node.index()] += 1;
        }
        reads
    }
}

/// The stream of bytes that each cell is part of: its node's, or for data that is stored nowhere one of
/// its own.
fn streams(code: &Code, cells: &[CellId]) -> Vec<usize> {
    let stream = |&cell: &CellId| {
        let node = code.cell(cell).place.map(|place| place.node.index());
        node.unwrap_or(code.node_count() + cell.index())
    };
    cells.iter().map(stream).collect()
}

/// Wanted cells as XORs of cells at hand or of cells wanted before: what the passes start from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Equations {
    /// In an order in which every source is at hand or made before.
    pub(crate) rows: Vec<(CellId, Vec<CellId>)>,
}

impl Equations {
    fn sources(&self) -> usize {
        self.rows.iter().map(|(_, sources)| sources.len()).sum()
    }
}

impl Code {
    /// A schedule that makes the cells of `want` from those of `have`. Wanted cells that are at
    /// hand are left out.
    ///
    /// # Errors
    /// [`crate::ErrorKind::NotEnough`] when some wanted cells are not determined; the message says
    /// which.
    pub fn schedule(&self, have: &CellSet, want: &CellSet) -> Result<Plan> {
        self.schedule_with(have, want, PlanOptions::default())
    }

    /// As [`Code::schedule`], with a choice of passes.
    ///
    /// # Errors
    /// As [`Code::schedule`].
    pub fn schedule_with(
        &self,
        have: &CellSet,
        want: &CellSet,
        options: PlanOptions,
    ) -> Result<Plan> {
        let wanted: Vec<CellId> = want.iter().filter(|&cell| !have.contains(cell)).collect();
        if let Some(plan) = self.graph_plan(have, &wanted, options.reads) {
            return plan;
        }
        let narrowed = match options.reads {
            Reads::Any => None,
            Reads::Fewest => reads::narrow(self, have, &wanted),
        };
        let have = narrowed.as_ref().unwrap_or(have);
        let structured = structure::solve(self, have, &wanted);
        let defined_by_data = |equations: &Equations| {
            equations.rows.iter().all(|(_, sources)| sources.iter().all(|&s| have.contains(s)))
        };
        let mut plans = Vec::new();
        let plan = |equations: &Equations| {
            self.plan(equations, &wanted, self.with_rounds(have, equations.sources(), options))
        };
        if !structured.as_ref().is_some_and(defined_by_data) {
            plans.push(plan(&solve(self, have, &wanted)?)?);
        }
        if let Some(equations) = structured {
            plans.push(plan(&equations)?);
        }
        let figure = |plan: &Plan| arrange::figure(options.objective, plan.schedule());
        let cheapest = plans.into_iter().min_by_key(figure);
        cheapest.ok_or_else(|| Error::schedule("no equations to plan from"))
    }

    /// A schedule that brings derived cells up to date after the data cells of `node` changed.
    ///
    /// The inputs are the node's old cells, its new cells, and the old derived cells, in this
    /// order; the outputs are the new derived cells. Returned with the derived cells, which are
    /// those of `parity` that depend on the node.
    ///
    /// # Errors
    /// When the node holds no data.
    pub(crate) fn schedule_update(
        &self,
        node: NodeId,
        parity: &CellSet,
        options: PlanOptions,
    ) -> Result<(Schedule, Vec<CellId>)> {
        let cells = self.node_cells(node);
        let position =
            |data: u32| cells.iter().position(|&c| c == self.data_cells()[data as usize]);
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
            return Err(Error::length(format!("no parity depends on node {}", node.index())));
        }
        let supports: Vec<Vec<usize>> = rows
            .iter()
            .enumerate()
            .map(|(i, changed)| {
                let both = changed.iter().flat_map(|&c| [c, cells.len() + c]);
                both.chain([2 * cells.len() + i]).collect()
            })
            .collect();
        let inputs = 2 * cells.len() + touched.len();
        // The node as it was, as it is, and every derived cell for itself.
        let derived = (2..).take(touched.len()).collect();
        let streams = [vec![0; cells.len()], vec![1; cells.len()], derived].concat();
        let schedule = reduce(direct::schedule(inputs, &supports)?, &streams, options)?;
        Ok((schedule, touched))
    }

    fn plan(&self, equations: &Equations, wanted: &[CellId], options: PlanOptions) -> Result<Plan> {
        let (start, inputs) = direct::from_equations(self.cell_count(), equations, wanted)?;
        let options = match options.pass {
            Pass::Slp if equations.sources() > SLP_LIMIT => {
                PlanOptions { pass: Pass::Direct, ..options }
            }
            _ => options,
        };
        let schedule = reduce(start, &streams(self, &inputs), options)?;
        Plan::new(schedule, inputs, wanted.to_vec())
    }

    /// The options with as many rounds as pay, unless they say how many.
    fn with_rounds(&self, have: &CellSet, sources: usize, options: PlanOptions) -> PlanOptions {
        let encodes = self.data_cells().iter().all(|&cell| have.contains(cell));
        let pay = if encodes { rounds_for_encoding(sources) } else { REFINE_ONCE / sources.max(1) };
        PlanOptions { rounds: options.rounds.or(Some(pay)), ..options }
    }
}

/// How many rounds of refining pay for encoding.
fn rounds_for_encoding(sources: usize) -> usize {
    (REFINE_ENCODE / sources.max(1)).min(REFINE_ROUNDS)
}

/// Shortens and orders a schedule whose input `i` belongs to stream `streams[i]`.
fn reduce(start: Schedule, streams: &[usize], options: PlanOptions) -> Result<Schedule> {
    let mut rows = Rows::new(&start)?;
    reduce_rows(&mut rows, options);
    let reduced = rows.schedule()?;
    match options.order {
        Order::Parity => Ok(reduced),
        Order::Data => order::data_first(&reduced),
        Order::Fused(machine) => Ok(arrange::arranged(&reduced, streams, machine)?.schedule),
    }
}

fn reduce_rows(rows: &mut Rows, options: PlanOptions) {
    match options.pass {
        Pass::Direct => {}
        Pass::Smart => smart::from_earlier(rows),
        Pass::Unweighted => matching::extract_matchings(rows, Preference::None),
        Pass::Weighted => matching::extract_matchings(rows, Preference::Sparse),
        Pass::Slp => {
            // What is slow to count is made small from where counting quickly leads.
            let PlanOptions { objective, rounds, .. } = options;
            let first = match objective {
                Objective::Fused(_) => Objective::Total,
                other => other,
            };
            slp::extract_pairs(rows, None);
            fuse::fuse(rows, first);
            let effort = Effort { objective: first, rounds: rounds.unwrap_or(0), seed: SEED };
            refine::refine(rows, effort);
            if objective != first {
                refine::refine(rows, Effort { objective, ..effort });
            }
        }
    }
}

/// Solves the generator's equations: by syndromes where that takes fewer sources, else each wanted
/// cell by itself.
fn solve(code: &Code, have: &CellSet, wanted: &[CellId]) -> Result<Equations> {
    let losses = Losses::new(code, have.clone());
    let direct = eliminate(code, &losses, have, wanted)?;
    let syndromes = syndrome::solve(code, &losses, have, wanted);
    let fewer = syndromes.filter(|equations| equations.sources() < direct.sources());
    Ok(fewer.unwrap_or(direct))
}

fn eliminate(
    code: &Code,
    losses: &Losses<'_>,
    have: &CellSet,
    wanted: &[CellId],
) -> Result<Equations> {
    let mut rows = Vec::with_capacity(wanted.len());
    let mut out_of_reach = Vec::new();
    for &cell in wanted {
        match losses.express(cell) {
            Ok(sources) => rows.push((cell, sources)),
            Err(_) => out_of_reach.push(cell),
        }
    }
    if out_of_reach.is_empty() {
        return Ok(Equations { rows });
    }
    let names: Vec<String> = out_of_reach.iter().take(8).map(|&c| code.cell_name(c)).collect();
    let more = if out_of_reach.len() > names.len() { ", …" } else { "" };
    Err(Error::not_enough(format!(
        "{}: {} of the {} wanted cells cannot be had from the {} at hand: {}{more}",
        code.spec(),
        out_of_reach.len(),
        wanted.len(),
        have.len(),
        names.join(", ")
    )))
}
