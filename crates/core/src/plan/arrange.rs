//! Arranging: in which order, and by which operations, a compiled kernel computes a schedule.
//!
//! Three orders are tried, and the one whose allocation costs least on the machine is taken: the
//! schedule's own, one with few live values, and stream by stream
//! ([`by_source`](crate::plan::optimise::by_source)), which computes by other operations. Schedules
//! over words come in the order that they are to run in.

use crate::error::{Error, Result};
use crate::limits::REORDERED_OPERATIONS;
use crate::plan::allocate::allocate;
use crate::plan::cost::{Cost, Figure, Objective};
use crate::plan::lower::lower;
use crate::plan::machine::Machine;
use crate::plan::optimise::by_source::by_source;
use crate::plan::optimise::order;
use crate::plan::schedule::Schedule;
use crate::plan::steps::{Allocation, Memory, Step};

/// A schedule in the order in which it runs, with its instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arranged {
    /// The operations in order.
    pub schedule: Schedule,
    /// The instructions for one vector of every cell.
    pub allocation: Allocation,
}

/// The cheapest arrangement of a schedule whose input `i` belongs to stream `streams[i]`.
///
/// # Errors
/// If an operation adds to its target.
pub fn arranged(schedule: &Schedule, streams: &[usize], machine: Machine) -> Result<Arranged> {
    cheapest(orders(schedule, Some(streams), machine)?, machine)
}

/// The arrangement that reads every input once, stream by stream, and nothing else, if there is one:
/// no line of a stream has to stay in the cache for it.
pub(crate) fn reading_once(
    schedule: &Schedule,
    streams: &[usize],
    machine: Machine,
) -> Option<Arranged> {
    let schedule = match schedule.field() {
        None => by_source(schedule, streams).ok()?,
        Some(_) => schedule.clone(),
    };
    let allocation = allocate(&lower(&schedule, machine).ok()?, machine);
    let constants = allocation.steps.iter().filter_map(Step::reads);
    let constants = constants.filter(|read| matches!(read, Memory::Constant(_))).count();
    let once = allocation.loads - constants <= schedule.inputs() * allocation.group;
    once.then_some(Arranged { schedule, allocation })
}

/// What the schedule costs under an objective.
pub(crate) fn figure(objective: Objective, schedule: &Schedule) -> Figure {
    let cost = Cost::of(schedule);
    let Objective::Fused(machine) = objective else { return objective.of(&cost) };
    // What adds to cells is not compiled.
    let made = orders(schedule, None, machine).and_then(|orders| cheapest(orders, machine));
    made.map_or((u64::MAX, 0), |made| (made.allocation.cost() as u64, cost.total as u64))
}

/// The orders that are tried, a schedule's own first; stream by stream where it is known of which
/// streams the inputs are.
fn orders(
    schedule: &Schedule,
    streams: Option<&[usize]>,
    machine: Machine,
) -> Result<Vec<Schedule>> {
    let mut orders = vec![schedule.clone()];
    if schedule.field().is_some() {
        return Ok(orders);
    }
    if schedule.ops().len() <= REORDERED_OPERATIONS {
        orders.push(order::few_live(schedule)?);
    }
    if let Some(streams) = streams
        && schedule.outputs() < machine.registers
    {
        orders.push(by_source(schedule, streams)?);
    }
    Ok(orders)
}

/// The first of the cheapest.
fn cheapest(orders: Vec<Schedule>, machine: Machine) -> Result<Arranged> {
    let mut best: Option<Arranged> = None;
    for schedule in orders {
        let allocation = allocate(&lower(&schedule, machine)?, machine);
        if best.as_ref().is_none_or(|best| allocation.cost() < best.allocation.cost()) {
            best = Some(Arranged { schedule, allocation });
        }
    }
    best.ok_or_else(|| Error::schedule("there is no order to run in"))
}
