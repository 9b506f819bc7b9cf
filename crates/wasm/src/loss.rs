//! Whether and how losses are recovered, cell by cell, and at what cost.

use paritas::code::{CellId, CellSet, Reads};
use paritas::erasure::{Losses, combinations};
use paritas::research::{Cost, Op, Plan, PlanOptions, Schedule};
use paritas::{Code, NodeId};
use serde::{Deserialize, Serialize};

use crate::facts::numbers;
use crate::refusal::{Refusal, Result};

/// A question: how to compute the wanted cells from the cells at hand at the end of a stage.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LossQuestion {
    /// The lost nodes. If there are none, the wanted cells are those that the stage computes:
    /// parity from data, or the cells that a promotion adds.
    lost: Vec<usize>,
    /// The stage, from 1. By default it is the last one for losses and the first one for encoding.
    stage: Option<u8>,
    /// Whether only the data of the lost nodes is wanted, instead of all their cells.
    data_only: bool,
    /// Whether to read the fewest cells, instead of making the fewest XORs.
    fewest_reads: bool,
}

/// The answer to a question.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LossAnswer {
    /// Whether all wanted cells can be computed.
    recovered: bool,
    /// The library's error message if they cannot.
    reason: Option<String>,
    /// The wanted cells.
    cells: Vec<WantedCell>,
    /// The plan for the cells that can be computed; null if there are none.
    plan: Option<PlanFacts>,
}

#[derive(Debug, Serialize)]
struct WantedCell {
    cell: usize,
    /// The lost data cells that prevent computing this one; empty if it can be computed.
    missing: Vec<usize>,
}

/// A plan: a schedule bound to cells.
#[derive(Debug, Serialize)]
pub struct PlanFacts {
    /// The cells that are the schedule's inputs.
    inputs: Vec<usize>,
    /// The cells that are the schedule's outputs.
    outputs: Vec<usize>,
    /// Number of cells read from each node.
    reads: Vec<usize>,
    #[serde(flatten)]
    schedule: ScheduleFacts,
}

/// A schedule and its counts.
#[derive(Debug, Serialize)]
pub struct ScheduleFacts {
    /// The operations, in order.
    ops: Vec<OpFacts>,
    /// Two-input XORs.
    xors: usize,
    /// Cells that are given a first value.
    copies: usize,
    /// XORs and copies.
    total: usize,
    /// Temporaries.
    temps: usize,
    /// Three-input XORs.
    ternary: usize,
    /// The text of the schedule.
    text: String,
}

#[derive(Debug, Serialize)]
struct OpFacts {
    target: String,
    accumulate: bool,
    factor: u32,
    sources: Vec<String>,
}

impl OpFacts {
    fn of(op: &Op) -> Self {
        Self {
            target: op.target.to_string(),
            accumulate: op.accumulate,
            factor: op.factor,
            sources: op.sources.iter().map(ToString::to_string).collect(),
        }
    }
}

impl ScheduleFacts {
    /// Counts a schedule.
    pub fn of(schedule: &Schedule) -> Self {
        let cost = Cost::of(schedule);
        Self {
            ops: schedule.ops().iter().map(OpFacts::of).collect(),
            xors: cost.xors,
            copies: cost.copies,
            total: cost.total,
            temps: cost.temps,
            ternary: cost.ternary,
            text: schedule.to_string(),
        }
    }
}

impl LossQuestion {
    fn options(&self) -> PlanOptions {
        PlanOptions::default().reads(if self.fewest_reads { Reads::Fewest } else { Reads::Any })
    }

    /// Returns the cells at hand, and the wanted cells.
    fn sets(&self, code: &Code) -> Result<(CellSet, CellSet)> {
        let (spec, nodes, last) = (code.spec(), code.node_count(), code.stages());
        let encodes = self.lost.is_empty() && !self.data_only;
        let stage = self.stage.unwrap_or(if encodes { 1 } else { last });
        if !(1..=last).contains(&stage) {
            return Err(Refusal::request(format!(
                "the stages of {spec} are numbered 1 to {last}; got {stage}"
            )));
        }
        if let Some(node) = self.lost.iter().find(|&&node| node >= nodes) {
            let most = nodes - 1;
            return Err(Refusal::request(format!(
                "the nodes of {spec} are numbered 0 to {most}; got {node}"
            )));
        }
        let set = |cells: Vec<CellId>| CellSet::from_cells(code.cell_count(), cells);
        if encodes {
            let first = || (set(code.data_cells().to_vec()), code.made_in(1));
            return Ok(code
                .promotion(stage)
                .map_or_else(first, |later| (later.reads, later.makes)));
        }
        let is_lost = |cell: &CellId| {
            code.cell(*cell).place.is_some_and(|place| self.lost.contains(&place.node.index()))
        };
        let (lost, have): (Vec<_>, Vec<_>) = code.standing(stage).iter().partition(is_lost);
        let have = set(have);
        let want = match self.data_only {
            true => {
                let data = code.data_cells().iter().copied();
                set(data.filter(|&cell| !have.contains(cell)).collect())
            }
            false => set(lost),
        };
        Ok((have, want))
    }
}

impl LossAnswer {
    /// Answers a question.
    ///
    /// # Errors
    /// If the code lacks a node or the stage.
    pub fn of(code: &Code, question: &LossQuestion) -> Result<Self> {
        let (have, want) = question.sets(code)?;
        let whole = |cell| WantedCell { cell, missing: Vec::new() };
        match code.schedule_with(&have, &want, question.options()) {
            Ok(plan) => Ok(Self {
                recovered: true,
                reason: None,
                cells: want.iter().map(|cell| whole(cell.index())).collect(),
                plan: Some(PlanFacts::of(code, plan)),
            }),
            Err(error) => Ok(Self {
                reason: Some(error.to_string()),
                ..Self::of_a_part(code, question, have, &want)
            }),
        }
    }

    /// Answers a question if some of the wanted cells cannot be computed.
    fn of_a_part(code: &Code, question: &LossQuestion, have: CellSet, want: &CellSet) -> Self {
        let losses = Losses::new(code, have.clone());
        let cell = |cell: CellId| WantedCell {
            cell: cell.index(),
            missing: losses.express(cell).err().map(|cells| numbers(&cells)).unwrap_or_default(),
        };
        let cells: Vec<WantedCell> = want.iter().map(cell).collect();
        let found = cells.iter().filter(|cell| cell.missing.is_empty());
        let part = CellSet::from_cells(code.cell_count(), found.map(|cell| CellId::new(cell.cell)));
        let plan = code.schedule_with(&have, &part, question.options()).ok();
        let plan = plan.filter(|_| !part.is_empty()).map(|plan| PlanFacts::of(code, plan));
        Self { recovered: false, reason: None, cells, plan }
    }
}

impl PlanFacts {
    fn of(code: &Code, plan: Plan) -> Self {
        Self {
            inputs: numbers(plan.inputs()),
            outputs: numbers(plan.outputs()),
            reads: plan.reads(code),
            schedule: ScheduleFacts::of(plan.schedule()),
        }
    }
}

/// The losses to try.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LossSurvey {
    /// Number of nodes lost at once.
    lose: usize,
    /// Largest number of sets of nodes to try.
    most: usize,
}

/// Largest number of sets of nodes that are counted.
const MOST_SETS: usize = 200_000;

/// The cost of losses of a number of nodes.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SurveyAnswer {
    /// Number of sets of `lose` nodes; null if there are too many to count.
    sets: Option<usize>,
    /// Number of sets that were tried. They are evenly spaced in the list of all sets. If there are
    /// too many to count, they are drawn at random, in each run the same ones.
    tried: usize,
    /// Number of tried sets after whose loss all cells can be computed. The figures below are about
    /// these sets.
    recovered: usize,
    /// Total XORs of all sets, and largest number of XORs of one set.
    xors: usize,
    worst_xors: usize,
    /// The set that takes the most XORs.
    worst: Vec<usize>,
    /// Total number of cells read for all sets, and largest number read for one set.
    reads: usize,
    worst_reads: usize,
}

impl SurveyAnswer {
    /// Tries losses.
    ///
    /// # Errors
    /// If the code has fewer nodes than are to be lost, or if no node or no set is asked for.
    pub fn of(code: &Code, survey: LossSurvey) -> Result<Self> {
        let nodes = code.node_count();
        if survey.lose == 0 || survey.lose > nodes || survey.most == 0 {
            return Err(Refusal::request(format!(
                "a survey of {} must lose 1 to {nodes} nodes, in at least 1 set; got {} nodes in {}",
                code.spec(),
                survey.lose,
                survey.most
            )));
        }
        let sets = combinations(nodes, survey.lose).take(MOST_SETS + 1).count();
        let counted = (sets <= MOST_SETS).then_some(sets);
        let mut answer = Self { sets: counted, ..Self::default() };
        match counted {
            Some(sets) => {
                let step = sets.div_ceil(survey.most);
                let chosen = combinations(nodes, survey.lose).step_by(step);
                chosen.for_each(|set| answer.add(code, set));
            }
            None => {
                let mut state = 0;
                (0..survey.most).for_each(|_| answer.add(code, drawn(nodes, survey, &mut state)));
            }
        }
        Ok(answer)
    }

    fn add(&mut self, code: &Code, lost: Vec<usize>) {
        self.tried += 1;
        let ids: Vec<NodeId> = lost.iter().copied().map(NodeId::new).collect();
        let want = code.cells_of(ids.iter().copied());
        let have = code.cells_of(code.nodes().filter(|node| !ids.contains(node)));
        let Ok(plan) = code.schedule(&have, &want) else { return };
        let (xors, reads) = (Cost::of(plan.schedule()).xors, plan.inputs().len());
        self.recovered += 1;
        self.xors += xors;
        self.reads += reads;
        self.worst_reads = self.worst_reads.max(reads);
        if xors >= self.worst_xors {
            (self.worst_xors, self.worst) = (xors, lost);
        }
    }
}

/// Draws a set of nodes to lose, each set with the same probability. `state` is that of SplitMix64
/// (Steele, Lea and Flood, 2014).
fn drawn(nodes: usize, survey: LossSurvey, state: &mut u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..nodes).collect();
    for at in 0..survey.lose {
        *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut number = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        number ^= number >> 31;
        order.swap(at, at + (number % (nodes - at) as u64) as usize);
    }
    order.truncate(survey.lose);
    order.sort_unstable();
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_node_is_drawn_as_often() {
        let survey = LossSurvey { lose: 8, most: 4000 };
        let (mut state, mut counts) = (0, [0usize; 40]);
        for _ in 0..survey.most {
            let set = drawn(counts.len(), survey, &mut state);
            assert!(set.len() == survey.lose && set.is_sorted_by(|a, b| a < b), "{set:?}");
            set.into_iter().for_each(|node| counts[node] += 1);
        }
        // 800 are expected, with a standard deviation of 25.
        assert!(counts.iter().all(|count| (650..950).contains(count)), "{counts:?}");
    }
}
