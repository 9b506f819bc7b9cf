//! Orders: the sequence of a schedule's operations.
//!
//! The traditional order finishes one wanted cell after the other. The data-first order of Luo, Xu
//! and Plank (*An Efficient XOR-Scheduling Algorithm for Erasure Codes Encoding*, 2009, section
//! 4.2, algorithm 2) takes one source after the other and adds it wherever it is used, so that each
//! source is read once; the first use of a target copies (section 4.3).

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use crate::error::{Error, Result};
use crate::plan::schedule::{Op, Schedule, Slot};

/// Orders the operations by source; each source is added to every target that uses it. A temporary
/// or output that others use follows as a source as soon as it is complete.
///
/// # Errors
/// If the schedule is not single-assignment.
pub fn data_first(schedule: &Schedule) -> Result<Schedule> {
    schedule.require_single_assignment()?;
    let mut flow = LiveFlow::new(schedule);
    flow.start_empty_operations();
    (0..schedule.inputs()).for_each(|input| flow.complete(Slot::Input(input as u32)));
    Schedule::new(schedule.inputs(), schedule.temps(), schedule.outputs(), flow.ops)
}

/// Finds an order with few temporaries alive at a time. The next operation is the one after which
/// the fewest values are alive; among equals, the one that uses the most values that stay alive.
///
/// # Errors
/// If the schedule is not single-assignment.
pub fn few_live(schedule: &Schedule) -> Result<Schedule> {
    schedule.require_single_assignment()?;
    let mut waiting = UnplacedOps::new(schedule);
    let mut ops = Vec::with_capacity(schedule.ops().len());
    while let Some(Rank { number, .. }) = waiting.ready.pop_first() {
        ops.push(schedule.ops()[number].clone());
        waiting.complete(number);
    }
    if ops.len() < schedule.ops().len() {
        return Err(Error::schedule("operations wait for each other"));
    }
    Schedule::new(schedule.inputs(), schedule.temps(), schedule.outputs(), ops)
}

/// The operations of a schedule that have not been placed by [`few_live`].
struct UnplacedOps<'a> {
    schedule: &'a Schedule,
    /// For each temporary or output, the operations that read it, ascending.
    users: HashMap<Slot, Vec<usize>>,
    /// For each temporary or output, the number of waiting operations that read it.
    uses: HashMap<Slot, usize>,
    states: Vec<WaitState>,
    /// Operations whose sources all have values, the next one first.
    ready: BTreeSet<Rank>,
}

/// The state of a waiting operation.
#[derive(Clone, Copy, Default)]
struct WaitState {
    /// Number of sources that have no value yet.
    missing: usize,
    /// Number of sources that operations compute.
    made: usize,
    /// Number of these sources that no other waiting operation reads.
    dying: usize,
    /// Whether other operations read its result.
    is_read: bool,
    is_done: bool,
}

/// Rank of an operation that is ready. The operation with the least rank comes next. Among equals,
/// the first in the schedule comes next, because the schedule's own order is a good one.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    /// Number of values whose life begins with the operation, minus the number of values whose life
    /// ends with it.
    born: isize,
    /// Number of values that it uses and leaves alive.
    alive: Reverse<usize>,
    number: usize,
}

impl<'a> UnplacedOps<'a> {
    fn new(schedule: &'a Schedule) -> Self {
        let mut users: HashMap<Slot, Vec<usize>> = HashMap::new();
        let is_made = |slot: &&Slot| !matches!(slot, Slot::Input(_));
        for (number, op) in schedule.ops().iter().enumerate() {
            let made = op.sources.iter().filter(is_made);
            made.for_each(|&source| users.entry(source).or_default().push(number));
        }
        let uses: HashMap<Slot, usize> =
            users.iter().map(|(&slot, list)| (slot, list.len())).collect();
        let state = |op: &Op| {
            let made = op.sources.iter().filter(is_made);
            let (count, dying) = made.fold((0, 0), |(count, dying), slot| {
                (count + 1, dying + usize::from(uses[slot] == 1))
            });
            let is_read = users.contains_key(&op.target);
            WaitState { missing: count, made: count, dying, is_read, is_done: false }
        };
        let states = schedule.ops().iter().map(state).collect();
        let mut waiting = Self { schedule, users, uses, states, ready: BTreeSet::new() };
        let ready = (0..waiting.states.len()).filter(|&number| waiting.states[number].missing == 0);
        waiting.ready = ready.map(|number| waiting.rank(number)).collect();
        waiting
    }

    fn rank(&self, number: usize) -> Rank {
        let WaitState { made, dying, is_read, .. } = self.states[number];
        let born = isize::from(is_read) - dying as isize;
        Rank { born, alive: Reverse(made - dying), number }
    }

    /// Records that an operation has been placed, and updates the others.
    fn complete(&mut self, number: usize) {
        self.states[number].is_done = true;
        let op = &self.schedule.ops()[number];
        for source in &op.sources {
            let Some(uses) = self.uses.get_mut(source) else { continue };
            *uses -= 1;
            if *uses == 1 {
                self.end_with_last_user(*source);
            }
        }
        for user in self.users.get(&op.target).cloned().unwrap_or_default() {
            self.states[user].missing -= 1;
            if self.states[user].missing == 0 {
                self.ready.insert(self.rank(user));
            }
        }
    }

    /// Records that a value dies with the last operation that has yet to read it.
    fn end_with_last_user(&mut self, slot: Slot) {
        let Some(users) = self.users.get(&slot) else { return };
        let Some(&last) = users.iter().find(|&&user| !self.states[user].is_done) else { return };
        let was_ready = self.ready.remove(&self.rank(last));
        self.states[last].dying += 1;
        if was_ready {
            self.ready.insert(self.rank(last));
        }
    }
}

struct LiveFlow<'a> {
    schedule: &'a Schedule,
    uses: HashMap<Slot, Vec<usize>>,
    missing: Vec<usize>,
    started: Vec<bool>,
    ops: Vec<Op>,
}

impl<'a> LiveFlow<'a> {
    fn new(schedule: &'a Schedule) -> Self {
        let mut uses: HashMap<Slot, Vec<usize>> = HashMap::new();
        for (number, op) in schedule.ops().iter().enumerate() {
            op.sources.iter().for_each(|&source| uses.entry(source).or_default().push(number));
        }
        let missing = schedule.ops().iter().map(|op| op.sources.len()).collect();
        let started = vec![false; schedule.ops().len()];
        Self { schedule, uses, missing, started, ops: Vec::new() }
    }

    fn start_empty_operations(&mut self) {
        for op in self.schedule.ops().iter().filter(|op| op.sources.is_empty()) {
            self.ops.push(op.clone());
            self.complete(op.target);
        }
    }

    fn complete(&mut self, slot: Slot) {
        let mut stack = vec![slot];
        while let Some(slot) = stack.pop() {
            let uses = self.uses.remove(&slot).unwrap_or_default();
            let mut completed = Vec::new();
            for number in uses {
                let target = self.schedule.ops()[number].target;
                let first = !std::mem::replace(&mut self.started[number], true);
                let sources = vec![slot];
                let op = if first { Op::assign(target, sources) } else { Op::add(target, sources) };
                self.ops.push(op);
                self.missing[number] -= 1;
                if self.missing[number] == 0 {
                    completed.push(target);
                }
            }
            stack.extend(completed.into_iter().rev());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::optimise::passes::parity_first;

    const PAIRS: &str = "inputs 3 temps 2 outputs 2\n\
                         t0 = i1 ^ i2\nt1 = i0 ^ i2\no0 = t0 ^ i0\no1 = t0\n";

    #[test]
    fn parity_first_drops_and_renumbers() {
        let arranged = parity_first(&PAIRS.parse().unwrap()).unwrap();
        let expected = "inputs 3 temps 1 outputs 2\nt0 = i1 ^ i2\no0 = i0 ^ t0\no1 = t0\n";
        assert_eq!(arranged.to_string(), expected);
    }

    /// Table 3 of the paper, its toy code in packet form: both outputs are i0 ^ i1.
    #[test]
    fn data_first_reads_each_source_once() {
        let toy = "inputs 2 temps 0 outputs 2\no0 = i0 ^ i1\no1 = i0 ^ i1\n";
        let expected = "inputs 2 temps 0 outputs 2\no0 = i0\no1 = i0\no0 ^= i1\no1 ^= i1\n";
        assert_eq!(data_first(&toy.parse().unwrap()).unwrap().to_string(), expected);
    }

    #[test]
    fn data_first_continues_with_what_is_complete() {
        let text = "inputs 3 temps 1 outputs 3\nt0 = i0 ^ i1\no0 = t0 ^ i2\no1 = t0\no2 = 0\n";
        let expected = "inputs 3 temps 1 outputs 3\n\
                        o2 = 0\nt0 = i0\nt0 ^= i1\no0 = t0\no1 = t0\no0 ^= i2\n";
        assert_eq!(data_first(&text.parse().unwrap()).unwrap().to_string(), expected);
    }
}
