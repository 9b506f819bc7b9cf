//! Refining: parts of a schedule are undone and computed anew, and improvements are kept.
//!
//! Greedy pairing decides early and never reconsiders. A round of refining takes some temporaries
//! back into the rows that use them, sometimes expresses a row by another one (cancellation: the
//! columns that both contain drop out), and extracts pairs again with ties broken at random. The
//! result replaces the schedule if it costs the same or less: steps between equally cheap schedules
//! lead out of local minima. This is large neighbourhood search (Shaw 1998) with the passes of this
//! folder as its moves. It needs only a cost, so it serves every [`Objective`].
//!
//! Work is counted, not timed: the same rounds and seed give the same schedule everywhere.

use crate::plan::arrange::figure_of_rows;
use crate::plan::budget::Budget;
use crate::plan::chance::Chance;
use crate::plan::cost::Objective;
use crate::plan::optimise::fuse::fuse;
use crate::plan::optimise::rows::{Rows, symmetric_difference};
use crate::plan::optimise::slp::extract_pairs;

/// How long and how to refine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// The quantity to minimise.
    pub objective: Objective,
    /// Number of rounds.
    pub rounds: usize,
    /// Seed that decides between equals.
    pub seed: u64,
}

/// Makes rows cheaper by computing parts of them anew, for the rounds of `effort` or until the
/// budget is spent. Returns whether all rounds were done.
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
        // A result of equal cost is accepted, so that the search can move between equally cheap
        // schedules.
        let figure = figure_of_rows(effort.objective, &rows).0;
        if figure <= least {
            least = figure;
            rows.drop_unused();
            *best = rows;
        }
    }
    true
}

/// Number of steps of a round besides those of extracting pairs, as measured. A round copies all
/// rows and visits them many times; it also allocates registers for each schedule if the objective
/// requires it.
fn steps(rows: &Rows, objective: Objective) -> u64 {
    let sources: usize = rows.iter().map(Vec::len).sum();
    let passes = match objective {
        Objective::Fused(_) => 4000,
        _ => 200,
    };
    passes * (sources + rows.len()) as u64
}

/// Probability that a round expresses a row by another one.
const CANCELLATION: f64 = 0.8;

/// Upper bounds on the number of temporaries that a round takes back: the first is a number, the
/// second divides the number of all temporaries.
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

/// Picks one of the changed rows, or any row if no row was changed. Expresses it by the row that
/// leaves it shortest, unless this makes it longer by more than one column.
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

/// Returns the length of row `row` if row `other` replaces the columns that both contain.
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
    use crate::plan::optimise::passes;
    use crate::plan::schedule::Schedule;

    fn effort(objective: Objective, rounds: usize) -> Effort {
        Effort { objective, rounds, seed: 1 }
    }

    fn refined(text: &str, effort: Effort) -> Schedule {
        passes::refine(&text.parse().unwrap(), effort).unwrap()
    }

    /// Boyar, Matthews and Peralta's example (J. Cryptology 2013): four XORs, but five for any
    /// program without cancellation.
    #[test]
    fn what_both_contain_drops_out() {
        let before = "inputs 4 temps 0 outputs 4\n\
                      o0 = i0 ^ i1\no1 = i0 ^ i1 ^ i2\no2 = i0 ^ i1 ^ i2 ^ i3\no3 = i1 ^ i2 ^ i3\n";
        let after = refined(before, effort(Objective::Xors, 50));
        assert_eq!(Cost::of(&after).xors, 4, "{after}");
    }

    /// Greedy pairing alone takes 1 XOR more, because it pairs i0 and i1 first.
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
                let after = passes::refine(&before, effort(objective, rounds)).unwrap();
                assert_eq!(after, passes::refine(&before, effort(objective, rounds)).unwrap());
                let cost = figure(objective, &after).0;
                assert!(cost <= last, "{objective:?}: {rounds} rounds give {cost}, fewer {last}");
                last = cost;
            }
        }
    }
}
