//! Smart scheduling: a row from an earlier row plus differences.
//!
//! Hafner, Deenadhayalan, Rao and Tomlin (FAST 2005); Plank's Jerasure; the dissertation's section
//! 2.2.3 (SS). Rows are chosen greedily. The next row is the cheapest, either by itself (fan-in - 1
//! XORs) or from a row that is done (one XOR for each source in which the two rows differ).

use crate::plan::optimise::rows::{Columns, Rows, symmetric_difference};

/// Number of steps of this pass, which compares every row with every other one, and before each
/// choice checks which rows are ready.
pub(crate) fn steps(rows: &Rows) -> u64 {
    let sources: usize = rows.iter().map(Vec::len).sum();
    2 * rows.len() as u64 * sources as u64
}

/// Expresses rows by earlier ones where that takes fewer XORs.
pub(crate) fn from_earlier(rows: &mut Rows) {
    let mut waiting: Vec<UnsettledRow> =
        (0..rows.len()).map(|row| UnsettledRow::new(rows, row)).collect();
    let mut done = vec![false; rows.len()];
    while let Some(next) = cheapest_ready(&waiting, rows, &done) {
        let UnsettledRow { row, original, best } = waiting.swap_remove(next);
        done[row] = true;
        rows.set(row, best);
        let column = rows.column_of(row);
        waiting.iter_mut().for_each(|other| other.consider(column, &original));
    }
}

/// A row that is not done yet.
struct UnsettledRow {
    row: usize,
    /// Its original columns.
    original: Columns,
    /// The cheapest columns found so far.
    best: Columns,
}

impl UnsettledRow {
    fn new(rows: &Rows, row: usize) -> Self {
        Self { row, original: rows.row(row).clone(), best: rows.row(row).clone() }
    }

    fn consider(&mut self, earlier: u32, columns: &[u32]) {
        let mut candidate = symmetric_difference(&self.original, columns);
        let cancels = self.original.contains(&earlier);
        if candidate.len() + 1 < self.best.len() && !cancels {
            candidate.push(earlier);
            candidate.sort_unstable();
            self.best = candidate;
        }
    }
}

/// Returns the row with the fewest sources among those whose sources are all inputs or done.
fn cheapest_ready(waiting: &[UnsettledRow], rows: &Rows, done: &[bool]) -> Option<usize> {
    let ready = |&column: &u32| rows.row_of(column).is_none_or(|row| done[row]);
    let candidates = waiting.iter().enumerate().filter(|(_, row)| row.best.iter().all(ready));
    candidates.min_by_key(|(_, row)| (row.best.len(), row.row)).map(|(index, _)| index)
}

#[cfg(test)]
mod tests {
    use crate::plan::optimise::passes::smart;

    #[test]
    fn a_row_from_a_similar_one() {
        let before = "inputs 5 temps 0 outputs 3\n\
                      o0 = i0 ^ i1 ^ i2 ^ i3\no1 = i0 ^ i1 ^ i2 ^ i4\no2 = i0 ^ i1 ^ i2 ^ i3 ^ i4\n";
        let after = "inputs 5 temps 0 outputs 3\n\
                     o0 = i0 ^ i1 ^ i2 ^ i3\no2 = i4 ^ o0\no1 = i3 ^ o2\n";
        let schedule = smart(&before.parse().unwrap()).unwrap();
        assert_eq!(schedule.to_string(), after);
    }
}
