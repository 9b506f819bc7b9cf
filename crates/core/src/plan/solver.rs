//! From a question to its plans: one plan for all wanted cells, or one for each share of them.
//!
//! Equations are found once, when the first plan needs them. LT codes have a planner of their own
//! ([`lt`](crate::plan::lt)), and common codes are encoded by schedules that were refined
//! beforehand ([`known`]).

use std::borrow::Cow;
use std::cell::OnceCell;

use crate::define::cells::{CellId, CellSet};
use crate::define::code::Code;
use crate::error::{Error, Result};
use crate::plan::budget::{Account, Budget, Cut};
use crate::plan::cost::Objective;
use crate::plan::equations::CellSums;
use crate::plan::optimise::reduce::{Refining, reduce_rows};
use crate::plan::optimise::{direct, slp};
use crate::plan::schedule::Schedule;
use crate::plan::{Pass, Plan, PlanOptions, Reads, arrange, known, ordered, reads, solve, streams};

impl Code {
    /// Plans a schedule that computes the cells of `want` from those of `have`. Wanted cells that
    /// are in `have` are left out.
    ///
    /// # Errors
    /// If the cells of `have` do not determine all wanted cells ([`crate::ErrorKind::NotEnough`]);
    /// the message names the cells. If a set has cells that the code lacks
    /// ([`crate::ErrorKind::Parameters`]).
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
        self.expect_cells([have, want])?;
        Solver::new(self, have, want, options).plan()
    }

    /// Checks that the members of sets are cells of this code.
    ///
    /// # Errors
    /// If the code lacks some member ([`crate::ErrorKind::Parameters`]).
    pub(crate) fn expect_cells(&self, sets: [&CellSet; 2]) -> Result<()> {
        let last = sets.into_iter().filter_map(CellSet::last).max();
        match last.filter(|cell| cell.index() >= self.cell_count()) {
            None => Ok(()),
            Some(cell) => {
                let (spec, cells, cell) = (self.spec(), self.cell_count(), cell.index());
                Err(Error::parameters(format!(
                    "{spec} has {cells} cells; the call names cell {cell}"
                )))
            }
        }
    }
}

/// A question about a code's cells.
pub(crate) struct Solver<'a> {
    code: &'a Code,
    have: &'a CellSet,
    wanted: Vec<CellId>,
    options: PlanOptions,
    found: OnceCell<FoundEquations<'a>>,
}

/// Equations for all wanted cells.
struct FoundEquations<'a> {
    /// The equations of each way to solve for the cells.
    ways: Vec<CellSums>,
    /// Cells that the equations may read.
    have: Cow<'a, CellSet>,
    /// Budget that is left after the equations were found.
    budget: Budget,
}

impl<'a> Solver<'a> {
    /// Creates the question how the cells of `want` are computed from those of `have`. Wanted cells
    /// that are in `have` are left out.
    pub(crate) fn new(
        code: &'a Code,
        have: &'a CellSet,
        want: &CellSet,
        options: PlanOptions,
    ) -> Self {
        Self { code, have, wanted: missing(have, want), options, found: OnceCell::new() }
    }

    /// Plans all wanted cells at once.
    ///
    /// # Errors
    /// If the cells of `have` do not determine all wanted cells ([`crate::ErrorKind::NotEnough`]).
    pub(crate) fn plan(&self) -> Result<Plan> {
        if let Some(plan) = self.code.graph_plan(self.have, &self.wanted, self.options.reads) {
            return plan;
        }
        let known = self.known_plan()?;
        if self.options.objective == Objective::Total
            && let Some(plan) = known
        {
            return Ok(plan);
        }
        let FoundEquations { ways, have, budget } = self.found()?;
        let mut budget = budget.clone();
        let plan = self.cheapest(have, &self.wanted, ways, &mut budget)?;
        // Known schedules were refined for longer, but for another objective.
        let figure = |plan: &Plan| arrange::figure(self.options.objective, plan.schedule());
        let is_cheaper = |known: &Plan| figure(known) < figure(&plan);
        let plan = known.filter(is_cheaper).unwrap_or(plan);
        let is_known = plan.account.is_known;
        Ok(Plan { account: Account { is_known, ..budget.into_account() }, ..plan })
    }

    /// Makes one plan for each of several shares of the wanted cells. The shares divide the budget.
    ///
    /// # Errors
    /// As [`Solver::plan`].
    pub(crate) fn plan_shares(&self, shares: &[CellSet]) -> Result<Vec<Plan>> {
        let shares: Vec<Vec<CellId>> =
            shares.iter().map(|share| missing(self.have, share)).collect();
        let reads = self.options.reads;
        let graph_plan = |share: &Vec<CellId>| self.code.graph_plan(self.have, share, reads);
        if let Some(plans) = shares.iter().map(graph_plan).collect() {
            return plans;
        }
        let FoundEquations { ways, have, budget } = self.found()?;
        let mut budget = budget.clone();
        let mut plans = Vec::with_capacity(shares.len());
        for (number, share) in shares.iter().enumerate() {
            let ways: Vec<_> = ways.iter().map(|all| all.needed(have, share)).collect();
            let left = (shares.len() - number) as u64;
            let plan = |budget: &mut Budget| self.cheapest(have, share, &ways, budget);
            plans.push(budget.share(left, plan)?);
        }
        let account = budget.into_account();
        plans.iter_mut().for_each(|plan| plan.account = account.clone());
        Ok(plans)
    }

    /// Returns the plan of a schedule that was refined beforehand, if the question is to encode a
    /// common code in the usual way.
    fn known_plan(&self) -> Result<Option<Plan>> {
        let PlanOptions { pass, order, rounds, .. } = self.options;
        let is_usual = (pass, rounds) == (Pass::Slp, None);
        let inputs = self.code.data_cells();
        if !is_usual || !inputs.iter().all(|&cell| self.have.contains(cell)) {
            return Ok(None);
        }
        let Some(rows) = known::find(self.code, inputs, &self.wanted) else { return Ok(None) };
        let schedule = ordered(&rows, &streams(self.code, inputs), order)?;
        let plan = Plan::new(schedule, inputs.to_vec(), self.wanted.clone())?;
        Ok(Some(Plan { account: Account { is_known: true, ..Account::default() }, ..plan }))
    }

    /// Returns the equations, which are found on the first call.
    fn found(&self) -> Result<&FoundEquations<'a>> {
        if let Some(found) = self.found.get() {
            return Ok(found);
        }
        let found = self.find()?;
        Ok(self.found.get_or_init(|| found))
    }

    fn find(&self) -> Result<FoundEquations<'a>> {
        let Self { code, have, wanted, options, .. } = self;
        let mut budget = code.budget(*options);
        let narrowed = match options.reads {
            Reads::Any => None,
            Reads::Fewest => budget.share(2, |half| reads::narrow(code, have, wanted, half)),
        };
        let have = narrowed.map_or(Cow::Borrowed(*have), Cow::Owned);
        let ways = solve::find(code, &have, wanted, &mut budget)?;
        Ok(FoundEquations { ways, have, budget })
    }

    /// Returns the cheapest plan among several ways of writing the equations. The ways are tried
    /// from the fewest sources up, and each is shortened, as long as the budget lasts.
    fn cheapest(
        &self,
        have: &CellSet,
        wanted: &[CellId],
        ways: &[CellSums],
        budget: &mut Budget,
    ) -> Result<Plan> {
        let (code, options) = (self.code, self.options);
        let mut ways: Vec<&CellSums> = ways.iter().collect();
        ways.sort_by_key(|equations| equations.sources());
        let mut cheapest: Option<Plan> = None;
        let count = ways.len();
        // Encoding is asked for again and again.
        let encodes = code.data_cells().iter().all(|&cell| have.contains(cell));
        for (number, equations) in ways.into_iter().enumerate() {
            let (mut rows, inputs) = direct::from_equations(code.cell_count(), equations, wanted);
            if number > 0 && slp::steps(&rows) > budget.left() {
                budget.cut(Cut::Alternatives);
                break;
            }
            let refining = Refining::of(options, encodes);
            let left = (count - number) as u64;
            budget.share(left, |share| reduce_rows(&mut rows, options, refining, share));
            let schedule = ordered(&rows, &streams(code, &inputs), options.order)?;
            let figure = |schedule: &Schedule| arrange::figure(options.objective, schedule);
            let is_cheaper = |best: &Plan| figure(&schedule) < figure(best.schedule());
            if cheapest.as_ref().is_none_or(is_cheaper) {
                cheapest = Some(Plan::new(schedule, inputs, wanted.to_vec())?);
            }
        }
        cheapest.ok_or_else(|| Error::internal("no equations to plan from"))
    }
}

/// Returns the wanted cells that are not in `have`.
fn missing(have: &CellSet, want: &CellSet) -> Vec<CellId> {
    want.iter().filter(|&cell| !have.contains(cell)).collect()
}
