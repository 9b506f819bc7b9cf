//! Smart scheduling: a row from an earlier row plus differences.
//!
//! Hafner, Deenadhayalan, Rao and Tomlin (FAST 2005); Plank's Jerasure; the dissertation's section
//! 3.3.2 (SS). Rows are taken greedily: next comes the row that is cheapest by itself (fan-in - 1
//! XORs) or from one that is done (as many XORs as sources differ).

use crate::error::Result;
use crate::plan::optimise::order;
use crate::plan::schedule::{Op, Schedule, Slot};

/// Re-expresses operations by earlier ones where that takes fewer XORs.
///
/// # Errors
/// When the schedule is not single-assignment.
pub fn pass(schedule: &Schedule) -> Result<Schedule> {
    order::require_single_assignment(schedule)?;
    let mut rows: Vec<Row> = schedule.ops().iter().map(Row::new).collect();
    let mut done: Vec<Op> = Vec::with_capacity(rows.len());
    while let Some(next) = cheapest_ready(&rows, &done) {
        let row = rows.swap_remove(next);
        done.push(Op::assign(row.target, row.best));
        rows.iter_mut().for_each(|other| other.consider(row.target, &row.original));
    }
    order::arrange(schedule.inputs(), schedule.outputs(), done)
}

struct Row {
    target: Slot,
    /// Its sources as they stood, sorted.
    original: Vec<Slot>,
    /// The cheapest sources so far.
    best: Vec<Slot>,
}

impl Row {
    fn new(op: &Op) -> Self {
        let mut original = op.sources.clone();
        original.sort_unstable();
        Self { target: op.target, best: original.clone(), original }
    }

    fn consider(&mut self, earlier: Slot, sources: &[Slot]) {
        let mut candidate = order::symmetric_difference(&self.original, sources);
        candidate.push(earlier);
        let cancels = self.original.contains(&earlier);
        if candidate.len() < self.best.len() && !cancels {
            self.best = candidate;
        }
    }
}

/// The row with the fewest sources of those whose sources all are inputs or done.
fn cheapest_ready(rows: &[Row], done: &[Op]) -> Option<usize> {
    let ready =
        |slot: &Slot| matches!(slot, Slot::Input(_)) || done.iter().any(|op| op.target == *slot);
    let candidates = rows.iter().enumerate().filter(|(_, row)| row.best.iter().all(ready));
    candidates.min_by_key(|(_, row)| (row.best.len(), row.target)).map(|(index, _)| index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_from_a_similar_one() {
        let before = "inputs 5 temps 0 outputs 3\n\
                      o0 = i0 ^ i1 ^ i2 ^ i3\no1 = i0 ^ i1 ^ i2 ^ i4\no2 = i0 ^ i1 ^ i2 ^ i3 ^ i4\n";
        let after = "inputs 5 temps 0 outputs 3\n\
                     o0 = i0 ^ i1 ^ i2 ^ i3\no2 = i4 ^ o0\no1 = i3 ^ o2\n";
        let schedule = pass(&before.parse().unwrap()).unwrap();
        assert_eq!(schedule.to_string(), after);
    }
}
