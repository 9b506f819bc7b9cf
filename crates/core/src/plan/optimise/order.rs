//! Orders: which operation comes when.
//!
//! The traditional order finishes one wanted cell after the other. The data-first order of Luo, Xu
//! and Plank (*An Efficient XOR-Scheduling Algorithm for Erasure Codes Encoding*, 2009, section
//! 4.2, algorithm 2) takes one source after the other and adds it wherever it is used, so that
//! each source is read once; the first use of a target copies (section 4.3).

use std::collections::{HashMap, HashSet};

use crate::error::{Error, Result};
use crate::plan::optimise::rows::Rows;
use crate::plan::schedule::{Op, Schedule, Slot};

/// Outputs in order, each preceded by the temporaries that it is the first to need.
///
/// # Errors
/// When the schedule is not single-assignment.
pub fn parity_first(schedule: &Schedule) -> Result<Schedule> {
    Rows::new(schedule)?.schedule()
}

/// Sources in order, each added to all that use it. A temporary or output that others use follows
/// as a source as soon as it is complete.
///
/// # Errors
/// When the schedule is not single-assignment.
pub fn data_first(schedule: &Schedule) -> Result<Schedule> {
    schedule.require_single_assignment()?;
    let mut flow = Flow::new(schedule);
    flow.start_empty_operations();
    (0..schedule.inputs()).for_each(|input| flow.complete(Slot::Input(input as u32)));
    Schedule::new(schedule.inputs(), schedule.temps(), schedule.outputs(), flow.ops)
}

/// An order with few temporaries alive at a time: next comes the operation that ends the lives of
/// most temporaries and begins no new one, then the one that uses the most that is alive.
///
/// # Errors
/// When the schedule is not single-assignment.
pub fn few_live(schedule: &Schedule) -> Result<Schedule> {
    schedule.require_single_assignment()?;
    let mut uses: HashMap<Slot, usize> = HashMap::new();
    for op in schedule.ops() {
        op.sources.iter().for_each(|&source| *uses.entry(source).or_default() += 1);
    }
    let mut done: HashSet<Slot> = HashSet::new();
    let mut waiting: Vec<&Op> = schedule.ops().iter().collect();
    let mut ops = Vec::with_capacity(waiting.len());
    while !waiting.is_empty() {
        let ready = |op: &Op| {
            op.sources.iter().all(|slot| matches!(slot, Slot::Input(_)) || done.contains(slot))
        };
        let score = |op: &Op| {
            let made = op.sources.iter().filter(|slot| !matches!(slot, Slot::Input(_)));
            let (dying, alive): (Vec<&Slot>, Vec<&Slot>) = made.partition(|slot| uses[slot] == 1);
            let born = usize::from(uses.contains_key(&op.target));
            (dying.len() as isize - born as isize, alive.len())
        };
        // The first of equals: the operations' own order is a good one.
        let next = (0..waiting.len())
            .rev()
            .filter(|&index| ready(waiting[index]))
            .max_by_key(|&index| score(waiting[index]))
            .ok_or_else(|| Error::schedule("operations wait for each other"))?;
        let op = waiting.remove(next);
        op.sources.iter().for_each(|source| *uses.entry(*source).or_insert(1) -= 1);
        done.insert(op.target);
        ops.push(op.clone());
    }
    Schedule::new(schedule.inputs(), schedule.temps(), schedule.outputs(), ops)
}

struct Flow<'a> {
    schedule: &'a Schedule,
    uses: HashMap<Slot, Vec<usize>>,
    missing: Vec<usize>,
    started: Vec<bool>,
    ops: Vec<Op>,
}

impl<'a> Flow<'a> {
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
