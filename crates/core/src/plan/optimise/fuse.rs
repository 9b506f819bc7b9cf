//! Fusing: temporaries that are used once become part of the operation that uses them.
//!
//! Pairs that `slp` found useful at first may end with a single use when later pairs took the
//! others. An n-ary operation reads its sources once and writes once, where a chain of pairs
//! would store and load every partial sum.

use std::collections::HashMap;

use crate::error::Result;
use crate::plan::optimise::order;
use crate::plan::schedule::{Op, Schedule, Slot};

/// Inlines every temporary that is read by exactly one operation, and outputs' mere copies of
/// temporaries.
///
/// # Errors
/// When the schedule is not single-assignment.
pub fn pass(schedule: &Schedule) -> Result<Schedule> {
    order::require_single_assignment(schedule)?;
    let named = name_by_output(schedule);
    let mut uses: HashMap<Slot, usize> = HashMap::new();
    for op in &named {
        op.sources.iter().for_each(|&source| *uses.entry(source).or_default() += 1);
    }
    let mut inlined: HashMap<Slot, Vec<Slot>> = HashMap::new();
    let mut ops = Vec::with_capacity(named.len());
    // Operations come in order, so what is inlined into a temporary is inlined before it.
    for op in named {
        let sources = substitute(&op.sources, &inlined);
        if matches!(op.target, Slot::Temp(_)) && uses.get(&op.target) == Some(&1) {
            inlined.insert(op.target, sources);
        } else {
            ops.push(Op::assign(op.target, sources));
        }
    }
    order::arrange(schedule.inputs(), schedule.outputs(), ops)
}

/// Lets the first output that is a mere copy of a temporary stand for that temporary.
fn name_by_output(schedule: &Schedule) -> Vec<Op> {
    let mut names: HashMap<Slot, Slot> = HashMap::new();
    for op in schedule.ops() {
        if let (Slot::Output(_), [temp @ Slot::Temp(_)]) = (op.target, &op.sources[..]) {
            names.entry(*temp).or_insert(op.target);
        }
    }
    let rename = |slot: &Slot| names.get(slot).copied().unwrap_or(*slot);
    let renamed = schedule
        .ops()
        .iter()
        .map(|op| Op::assign(rename(&op.target), op.sources.iter().map(rename).collect()));
    renamed.filter(|op| op.sources != [op.target]).collect()
}

fn substitute(sources: &[Slot], inlined: &HashMap<Slot, Vec<Slot>>) -> Vec<Slot> {
    let mut sum: Vec<Slot> = Vec::new();
    for source in sources {
        let mut part = inlined.get(source).cloned().unwrap_or_else(|| vec![*source]);
        part.sort_unstable();
        sum = order::symmetric_difference(&sum, &part);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_uses_are_inlined_and_copies_named() {
        let before = "inputs 4 temps 3 outputs 3\n\
                      t0 = i0 ^ i1\nt1 = t0 ^ i2\nt2 = i2 ^ i3\no0 = t0 ^ i3\no1 = t1\no2 = t2 ^ i0\n";
        let after = "inputs 4 temps 1 outputs 3\n\
                     t0 = i0 ^ i1\no0 = i3 ^ t0\no1 = i2 ^ t0\no2 = i0 ^ i2 ^ i3\n";
        assert_eq!(pass(&before.parse().unwrap()).unwrap().to_string(), after);
    }

    #[test]
    fn what_meets_twice_cancels() {
        let before = "inputs 3 temps 1 outputs 1\nt0 = i0 ^ i1\no0 = t0 ^ i1 ^ i2\n";
        let after = "inputs 3 temps 0 outputs 1\no0 = i0 ^ i2\n";
        assert_eq!(pass(&before.parse().unwrap()).unwrap().to_string(), after);
    }
}
