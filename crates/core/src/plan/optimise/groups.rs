//! Groups of rows: sums shared within a few rows, for programs that are too big for [`super::slp`].
//!
//! This is the *method of four Russians* (Arlazarov, Dinic, Kronrod and Faradžev 1970) for XOR
//! programs. Take t rows at a time. The set of those rows that use a column is its *pattern*, one
//! of 2^t - 1. Columns with the same pattern are summed once, and the rows use the sum:
//!
//! ```text
//! o0 = a ^ b ^ c ^ d ^ e            t0 = a ^ b ^ c        o0 = t0 ^ d ^ e
//! o1 = a ^ b ^ c ^ f          ->                          o1 = t0 ^ f
//! ```
//!
//! A column then costs one XOR instead of up to t. The remaining problem (t rows of at most 2^(t-1)
//! sums) is small enough to search pairs in it. For c columns that all rows use at random, t rows
//! cost about c + 2^t XORs instead of c · t / 2. The time is proportional to the number of sources.
//!
//! Summing columns that the same rows use never creates a cycle between rows: those rows already
//! depended on everything that the sum needs.

use std::ops::Range;

use crate::plan::budget::Budget;
use crate::plan::optimise::rows::{Columns, Rows};
use crate::plan::optimise::slp;

/// Upper bound on the rows of a group: the number of bits of a pattern.
const MOST_ROWS: usize = 64;

/// Shortens rows group by group. Returns whether the budget sufficed to search pairs in all groups.
pub(crate) fn extract_groups(rows: &mut Rows, budget: &mut Budget) -> bool {
    let mut sufficed = true;
    let count = rows.len();
    let mut notes = ColumnNotes::new(rows);
    let mut first = 0;
    while first < count {
        let group = first..group_end(rows, first, count);
        first = group.end;
        let sources: usize = group.clone().map(|row| rows.row(row).len()).sum();
        // Patterns are recorded, sorted and looked up again.
        budget.spend(8 * sources as u64);
        notes.sum_alike(rows, group.clone());
        let groups_left = (count - first).div_ceil(group.len()) as u64 + 1;
        sufficed &= budget.share(groups_left, |share| notes.extract_within(rows, group, share));
    }
    rows.settle();
    sufficed
}

/// Returns the end of the group that begins with row `first`. Its number of rows makes the patterns
/// about an eighth of the columns.
fn group_end(rows: &Rows, first: usize, count: usize) -> usize {
    let columns = rows.row(first).len().max(1) * 2;
    let size = (columns.ilog2() as usize).saturating_sub(3).clamp(4, MOST_ROWS);
    (first + size).min(count)
}

/// Notes about each column while its group is processed; zero between groups.
struct ColumnNotes {
    /// Rows of the group that use the column, one bit each.
    patterns: Vec<u64>,
    /// Number of the column in the group, from 1.
    numbers: Vec<u32>,
}

impl ColumnNotes {
    fn new(rows: &Rows) -> Self {
        Self { patterns: vec![0; rows.columns()], numbers: vec![0; rows.columns()] }
    }

    /// Sums the columns of a group that have the same pattern.
    fn sum_alike(&mut self, rows: &mut Rows, group: Range<usize>) {
        let patterns = &mut self.patterns;
        let mut columns = Columns::new();
        for (bit, row) in group.clone().enumerate() {
            for &column in rows.row(row) {
                let pattern = &mut patterns[column as usize];
                if *pattern == 0 {
                    columns.push(column);
                }
                *pattern |= 1 << bit;
            }
        }
        columns.sort_unstable_by_key(|&column| (patterns[column as usize], column));
        let mut left = vec![Columns::new(); group.len()];
        for alike in columns.chunk_by(|&a, &b| patterns[a as usize] == patterns[b as usize]) {
            let pattern = patterns[alike[0] as usize];
            let sum = pays(alike.len(), pattern).then(|| rows.push(alike.to_vec()));
            for bit in (0..group.len()).filter(|bit| pattern >> bit & 1 == 1) {
                match sum {
                    Some(sum) => left[bit].push(sum),
                    None => left[bit].extend(alike),
                }
            }
        }
        columns.into_iter().for_each(|column| patterns[column as usize] = 0);
        for (row, mut columns) in group.zip(left) {
            columns.sort_unstable();
            rows.set(row, columns);
        }
    }

    /// Extracts pairs from the rows of one group alone. Returns whether the budget sufficed.
    fn extract_within(
        &mut self,
        rows: &mut Rows,
        group: Range<usize>,
        budget: &mut Budget,
    ) -> bool {
        let (mut names, mut part) = self.by_itself(rows, group.clone());
        if slp::steps(&part) > budget.left() {
            return false;
        }
        let sufficed = slp::extract_pairs(&mut part, None, budget);
        // The part has its own columns: inputs, outputs (which its rows do not use) and pairs.
        names.resize(names.len() + group.len(), 0);
        let global = |names: &[u32], local: &[u32]| -> Columns {
            let mut columns: Columns = local.iter().map(|&column| names[column as usize]).collect();
            columns.sort_unstable();
            columns
        };
        for pair in group.len()..part.len() {
            let name = rows.push(global(&names, part.row(pair)));
            names.push(name);
        }
        for (local, row) in group.enumerate() {
            rows.set(row, global(&names, part.row(local)));
        }
        sufficed
    }

    /// Returns the columns of a group, and its rows over these columns.
    fn by_itself(&mut self, rows: &Rows, group: Range<usize>) -> (Columns, Rows) {
        let numbers = &mut self.numbers;
        numbers.resize(rows.columns(), 0);
        let mut names: Columns = group.clone().flat_map(|row| rows.row(row)).copied().collect();
        names.sort_unstable();
        names.dedup();
        names.iter().zip(1..).for_each(|(&name, number)| numbers[name as usize] = number);
        let local = |row| rows.row(row).iter().map(|&name| numbers[name as usize] - 1).collect();
        let part = Rows::of_outputs(names.len(), group.map(local).collect());
        names.iter().for_each(|&name| numbers[name as usize] = 0);
        (names, part)
    }
}

/// Whether a sum of `columns` columns for the rows of a pattern takes fewer operands than it saves.
fn pays(columns: usize, pattern: u64) -> bool {
    let rows = pattern.count_ones() as usize;
    (columns - 1) * rows.saturating_sub(1) > 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::chance::Chance;
    use crate::plan::interpret::interpret;
    use crate::plan::schedule::Schedule;

    fn extracted(schedule: &Schedule, budget: &mut Budget) -> (Schedule, bool) {
        let mut rows = Rows::new(schedule).unwrap();
        let sufficed = extract_groups(&mut rows, budget);
        (rows.schedule().unwrap(), sufficed)
    }

    #[test]
    fn columns_alike_are_summed_once() {
        let before = "inputs 6 temps 0 outputs 2\n\
                      o0 = i0 ^ i1 ^ i2 ^ i3 ^ i4\no1 = i0 ^ i1 ^ i2 ^ i5\n";
        let after = "inputs 6 temps 1 outputs 2\n\
                     t0 = i0 ^ i1 ^ i2\no0 = i3 ^ i4 ^ t0\no1 = i5 ^ t0\n";
        let (made, sufficed) = extracted(&before.parse().unwrap(), &mut Budget::new(0));
        assert_eq!(made.to_string(), after);
        assert!(!sufficed);
    }

    /// Half of the entries of a random matrix are ones. Rows also use each other's results.
    #[test]
    fn random_programs_shrink_and_stay_the_same() {
        let mut chance = Chance::new(5);
        let (inputs, outputs) = (300, 50);
        let mut text = format!("inputs {inputs} temps 0 outputs {outputs}\n");
        for output in 0..outputs {
            let some = (0..inputs).filter(|_| chance.happens(0.5)).map(|i| format!("i{i}"));
            let earlier = (0..output).filter(|other| other % 7 == 3).map(|o| format!("o{o}"));
            let sources: Vec<String> = some.chain(earlier).collect();
            text.push_str(&format!("o{output} = {}\n", sources.join(" ^ ")));
        }
        let before: Schedule = text.parse().unwrap();
        let data: Vec<Vec<u8>> =
            (0..inputs).map(|_| vec![chance.below(256) as u8, chance.below(256) as u8]).collect();
        let data: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
        for (steps, most) in [(0, 66), (u64::MAX, 53)] {
            let (after, sufficed) = extracted(&before, &mut Budget::new(steps));
            assert_eq!(sufficed, steps > 0);
            assert_eq!(interpret(&after, &data).unwrap(), interpret(&before, &data).unwrap());
            let total = |s: &Schedule| s.ops().iter().map(|op| op.sources.len()).sum::<usize>();
            let percent = 100 * total(&after) / total(&before);
            assert!(percent <= most, "{percent} % with {steps} steps");
        }
    }
}
