//! Refining: parts of a schedule are taken back and done again, and what is better stays.
//!
//! Greedy pairs decide early and never look back. Here a round takes some temporaries back into the
//! rows that use them, sometimes re-expresses a row by another one (cancellation: what both contain
//! drops out), and extracts pairs again with ties broken by chance. The result replaces the
//! schedule when it costs no more, so that walks over equals lead out of local minima. This is large
//! neighbourhood search (Shaw 1998) with the passes of this folder as its moves; it needs nothing but
//! a cost, so it serves every [`Objective`].
//!
//! The work is counted, not timed: the same rounds and seed give the same schedule everywhere.

use crate::error::Result;
use crate::plan::arrange::figure_of_rows;
use crate::plan::budget::Budget;
use crate::plan::chance::Chance;
use crate::plan::cost::Objective;
use crate::plan::optimise::fuse::fuse;
use crate::plan::optimise::rows::{Rows, symmetric_difference};
use crate::plan::optimise::slp::extract_pairs;
use crate::plan::schedule::Schedule;

/// How long and how to refine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// What is to become small.
    pub objective: Objective,
    /// How often a part is done again.
    pub rounds: usize,
    /// Decides between equals.
    pub seed: u64,
}

/// Makes a schedule cheaper by doing parts of it again.
///
/// # Errors
/// If the schedule is not single-assignment.
pub fn pass(schedule: &Schedule, effort: Effort) -> Result<Schedule> {
    let mut rows = Rows::new(schedule)?;
    refine(&mut rows, effort, &mut Budget::unlimited());
    rows.schedule()
}

/// [`pass`] on rows, as many rounds as the budget has steps for. Returns whether these are all.
pub(crate) fn refine(best: &mut Rows, effort: Effort, budget: &mut Budget) -> bool {
    let mut chance = Chance::new(effort.seed);
    let mut least = figure_of_rows(effort.objective, best).0;
    for _ in 0..effort.rounds {
        if !budget.draw(steps(best, effort.objective)) {
            return false;
        }
        let mut rows = best.clone();
        take_back(&mut rows, &mut chance);
        if chance.happens(CANCELLATION) {
            cancel(&mut rows, &mut chance);
        }
        if !extract_pairs(&mut rows, Some(&mut chance), budget) {
            return false;
        }
        fuse(&mut rows, effort.objective);
        // Of equal ones any is taken: they are worth a walk.
        let figure = figure_of_rows(effort.objective, &rows).0;
        if figure <= least {
            least = figure;
            rows.drop_unused();
            *best = rows;
        }
    }
    true
}

/// The steps of a round besides those of extracting pairs, as they were measured: it copies all rows and
/// goes over them again and again, and allocates registers for each schedule if that is asked.
fn steps(rows: &Rows, objective: Objective) -> u64 {
    let sources: usize = rows.iter().map(Vec::len).sum();
    let passes = match objective {
        Objective::Fused(_) => 4000,
        _ => 200,
    };
    passes * (sources + rows.len()) as u64
}

/// How often a round re-expresses a row.
const CANCELLATION: f64 = 0.8;

/// The most temporaries that a round takes back, and the part of all.
const TAKEN_BACK: (usize, usize) = (12, 4);

/// Takes a few temporaries back into the rows that use them.
fn take_back(rows: &mut Rows, chance: &mut Chance) {
    let temps: Vec<usize> = (rows.outputs()..rows.len()).collect();
    let (most, part) = TAKEN_BACK;
    for _ in 0..1 + chance.below((temps.len() / part).clamp(1, most)) {
        let Some(&temp) = chance.pick(&temps) else { return };
        let column = rows.column_of(temp);
        let users: Vec<u32> = (0..rows.len() as u32)
            .filter(|&row| rows.row(row as usize).binary_search(&column).is_ok())
            .collect();
        rows.inline(temp, &users);
    }
}

/// Re-expresses one of the rows that were changed, or any if none was, by the row that leaves it
/// shortest, if it gets longer by no more than one column.
fn cancel(rows: &mut Rows, chance: &mut Chance) {
    let filled = |&row: &usize| !rows.row(row).is_empty();
    let mut candidates: Vec<usize> = rows.changed().filter(filled).collect();
    if candidates.is_empty() {
        candidates = (0..rows.len()).filter(filled).collect();
    }
    let Some(&row) = chance.pick(&candidates) else { return };
    let mut shortest = rows.row(row).len() + 2;
    let mut best = None;
    let first = chance.below(rows.len());
    for other in (first..rows.len()).chain(0..first).filter(|&other| other != row) {
        let length = length_by(rows, row, other);
        if length < shortest && !rows.row(other).is_empty() && !rows.depends(other, row) {
            (shortest, best) = (length, Some(other));
        }
    }
    if let Some(other) = best {
        let difference = symmetric_difference(rows.row(row), rows.row(other));
        rows.set(row, symmetric_difference(&difference, &[rows.column_of(other)]));
    }
}

/// How long row `row` gets when row `other` takes the place of what both contain.
fn length_by(rows: &Rows, row: usize, other: usize) -> usize {
    let (a, b) = (rows.row(row), rows.row(other));
    let common = a.iter().filter(|&column| b.binary_search(column).is_ok()).count();
    let difference = a.len() + b.len() - 2 * common;
    match a.binary_search(&rows.column_of(other)) {
        Ok(_) => difference - 1,
        Err(_) => difference + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::arrange::figure;
    use crate::plan::cost::Cost;
    use crate::plan::machine::Machine;

    fn effort(objective: Objective, rounds: usize) -> Effort {
        Effort { objective, rounds, seed: 1 }
    }

    fn refined(text: &str, effort: Effort) -> Schedule {
        pass(&text.parse().unwrap(), effort).unwrap()
    }

    /// Boyar, Matthews and Peralta's example (J. Cryptology 2013): four XORs, but five for any program
    /// in which nothing cancels.
    #[test]
    fn what_both_contain_drops_out() {
        let before = "inputs 4 temps 0 outputs 4\n\
                      o0 = i0 ^ i1\no1 = i0 ^ i1 ^ i2\no2 = i0 ^ i1 ^ i2 ^ i3\no3 = i1 ^ i2 ^ i3\n";
        let after = refined(before, effort(Objective::Xors, 50));
        assert_eq!(Cost::of(&after).xors, 4, "{after}");
    }

    /// Greedy pairs alone take 1 more: the first pair of i0 and i1 is in the way.
    #[test]
    fn wrong_pairs_are_taken_back() {
        let before = "inputs 4 temps 1 outputs 3\n\
                      t0 = i0 ^ i1\no0 = t0 ^ i2 ^ i3\no1 = t0\no2 = i1 ^ i2 ^ i3\n";
        let after = refined(before, effort(Objective::Xors, 50));
        assert_eq!(Cost::of(&after).xors, 4);
    }

    #[test]
    fn seeds_decide_and_rounds_never_harm() {
        let before: Schedule = include_str!("refine/rows.txt").parse().unwrap();
        let fused = Objective::Fused(Machine::AVX2);
        for objective in
            [Objective::Xors, Objective::Total, Objective::WEIGHTED, Objective::Ternary, fused]
        {
            let mut last = figure(objective, &before).0;
            for rounds in [0, 1, 10, 100] {
                let after = pass(&before, effort(objective, rounds)).unwrap();
                assert_eq!(after, pass(&before, effort(objective, rounds)).unwrap());
                let cost = figure(objective, &after).0;
                assert!(cost <= last, "{objective:?}: {rounds} rounds give {cost}, fewer {last}");
                last = cost;
            }
        }
    }
}
