//! Greedy common pairs, intermediates included: a short straight-line program.
//!
//! This is Paar's heuristic (*Optimized arithmetic for Reed-Solomon encoders*, ISIT 1997), known in
//! grammar compression as RePair. While two sources occur together in two or more operations, the
//! pair that occurs most often becomes a temporary, which from then on is a source like any other.
//! Ties go to the lowest columns, so the result is the same everywhere. [`super::refine`] breaks
//! ties at random instead, again and again.
//!
//! A column (source) is a bit set over the operations that use it. A table holds the number of
//! common uses of each two columns. A new pair moves uses from two columns to a third. This changes
//! three rows of the table: each entry changes by the number of operations that contain both the
//! pair and the entry's other column. Each column remembers its best partner among the columns
//! after it. A new partner is searched for only if the count with the old one changed. Two kinds of
//! columns are skipped: columns with fewer than two uses left, which have no pairs, and columns
//! whose rows have not changed since pairs were last extracted.
//!
//! Every step draws on the budget. When the budget is spent, the pairs found so far stay; they are
//! the most common ones. Programs that would spend it too soon are split into groups of rows
//! (`groups.rs`).

use crate::define::bitmatrix::ones_of;
use crate::plan::budget::Budget;
use crate::plan::chance::Chance;
use crate::plan::optimise::rows::Rows;

/// Upper bound on the columns for which a table of pairs is made. The table then has 50 MiB, and
/// 314 MiB if new columns make it grow, which happens once at most.
const MOST_LIVE: usize = 1 << 12;

/// Upper bound on the rows for which a table of pairs is made; the table counts rows in 16 bits.
const MOST_ROWS: usize = u16::MAX as usize;

/// Estimates the number of steps for extracting all pairs of these rows; `u64::MAX` if there are
/// too many rows for a table of pairs.
pub(crate) fn steps(rows: &Rows) -> u64 {
    let mut uses = vec![0_u64; rows.columns()];
    rows.iter().flatten().for_each(|&column| uses[column as usize] += 1);
    uses.retain(|&uses| uses >= 2);
    let (live, shared) = (uses.len() as u64, uses.iter().sum::<u64>());
    if uses.len() > MOST_LIVE || rows.len() > MOST_ROWS {
        return u64::MAX;
    }
    // The pairs of every row are counted; then about every third shared use becomes part of a pair.
    let pairs: u64 = rows.iter().map(|row| (row.len() as u64).pow(2)).sum();
    live * live / 2 + pairs + shared / 3 * live * PAIR
}

/// Number of steps for counting the common bits of two words.
const COMMON: u64 = 4;

/// Number of steps for each column of a pair, besides those of counting and of finding partners.
const PAIR: u64 = 8;

/// Extracts common pairs until each pair occurs only once, or the budget is spent. Ties go to the
/// lowest columns, or are broken at random. Returns whether the budget sufficed, and the table of
/// pairs could hold the rows.
pub(crate) fn extract_pairs(
    rows: &mut Rows,
    chance: Option<&mut Chance>,
    budget: &mut Budget,
) -> bool {
    let live = PairCounts::live(rows);
    let is_too_large = live.len() > MOST_LIVE || rows.len() > MOST_ROWS;
    if is_too_large || !budget.draw((live.len() * live.len()) as u64 / 4) {
        rows.settle();
        return false;
    }
    let mut pairs = PairCounts::new(rows, live);
    let done = match chance {
        None => pairs.extract_all(rows, |last| last, budget),
        Some(chance) => {
            chance.shuffle(&mut pairs.live);
            pairs.extract_all(rows, |last| chance.below(last + 1), budget)
        }
    };
    pairs.write_back(rows);
    done
}

struct PairCounts {
    /// Number of words of one bit set.
    words: usize,
    /// For each column, a bit for each row that uses it.
    uses: Vec<u64>,
    /// For each column, the number of rows that use it.
    weights: Vec<u32>,
    /// Columns with at least two uses, in the order in which ties are broken.
    live: Vec<usize>,
    /// For each live column, the number of its row and column in the table. A column that was never
    /// live has `usize::MAX`; one that was live before keeps its number, which means nothing.
    slots: Vec<usize>,
    table: PairTable,
    /// For each column, the count and number of its best partner among the columns after it.
    best: Vec<(u16, usize)>,
    /// Rows that lost columns to a pair, one bit each.
    shrunk: Vec<u64>,
    /// Number of steps taken since the budget was last asked.
    steps: u64,
}

/// Numbers of common uses of each two live columns, by slot.
struct PairTable {
    /// Number of slots in a row.
    stride: usize,
    counts: Vec<u16>,
    /// Slots that no live column uses.
    free: Vec<usize>,
}

impl PairTable {
    fn new(slots: usize) -> Self {
        // Columns come and go; the number alive rarely grows much beyond the initial one.
        let stride = slots + slots / 4 + 8;
        let free = (slots..stride).rev().collect();
        Self { stride, counts: vec![0; stride * stride], free }
    }

    fn row(&self, slot: usize) -> &[u16] {
        &self.counts[slot * self.stride..(slot + 1) * self.stride]
    }

    /// Counts a row that uses the columns of these slots. Returns the number of steps taken.
    fn count(&mut self, slots: Vec<usize>) -> u64 {
        for (index, &a) in slots.iter().enumerate() {
            for &b in &slots[index + 1..] {
                self.counts[a * self.stride + b] += 1;
                self.counts[b * self.stride + a] += 1;
            }
        }
        (slots.len() * slots.len()) as u64
    }

    fn set(&mut self, a: usize, b: usize, count: u16) {
        self.counts[a * self.stride + b] = count;
        self.counts[b * self.stride + a] = count;
    }

    /// Takes a slot for a new column.
    fn take(&mut self) -> usize {
        if let Some(slot) = self.free.pop() {
            return slot;
        }
        let wider = Self::new(2 * self.stride);
        let old = std::mem::replace(self, wider);
        for slot in 0..old.stride {
            let start = slot * self.stride;
            self.counts[start..start + old.stride].copy_from_slice(old.row(slot));
        }
        self.free.extend((old.stride + 1..2 * old.stride).rev());
        old.stride
    }
}

impl PairCounts {
    /// Returns the columns whose pairs must be searched: at least two rows use the column, and one
    /// of these rows has changed.
    fn live(rows: &Rows) -> Vec<usize> {
        let mut looked_at = vec![false; rows.columns()];
        for row in rows.changed() {
            rows.row(row).iter().for_each(|&column| looked_at[column as usize] = true);
        }
        let mut uses = vec![0_u32; rows.columns()];
        rows.iter().flatten().for_each(|&column| uses[column as usize] += 1);
        (0..uses.len()).filter(|&column| looked_at[column] && uses[column] >= 2).collect()
    }

    fn new(rows: &Rows, live: Vec<usize>) -> Self {
        let (count, words) = (rows.columns(), rows.len().div_ceil(64));
        let mut uses = vec![0; count * words];
        let mut weights = vec![0; count];
        for (number, row) in rows.iter().enumerate() {
            for &column in row {
                uses[column as usize * words + number / 64] |= 1 << (number % 64);
                weights[column as usize] += 1;
            }
        }
        let mut slots = vec![usize::MAX; count];
        live.iter().enumerate().for_each(|(slot, &column)| slots[column] = slot);
        let mut table = PairTable::new(live.len());
        let mut steps = 0;
        for row in rows.iter() {
            let row: Vec<usize> = row.iter().map(|&column| slots[column as usize]).collect();
            steps += table.count(row.into_iter().filter(|&slot| slot != usize::MAX).collect());
        }
        let (best, shrunk) = (vec![(0, 0); count], vec![0; words]);
        Self { words, uses, weights, live, slots, table, best, shrunk, steps }
    }

    /// Extracts pairs until each pair occurs only once. `place` gives the place among `live` at
    /// which the newest column is inserted. Returns false if the budget is spent earlier.
    fn extract_all(
        &mut self,
        rows: &mut Rows,
        mut place: impl FnMut(usize) -> usize,
        budget: &mut Budget,
    ) -> bool {
        for index in 0..self.live.len() {
            self.find_best(index, u16::MAX);
            if !budget.draw(std::mem::take(&mut self.steps)) {
                return false;
            }
        }
        while let Some((a, b)) = self.most_common_pair() {
            rows.push(vec![a.min(b) as u32, a.max(b) as u32]);
            let new = self.split_off(a, b);
            self.drop_dead(new);
            let place = place(self.live.len());
            self.live.insert(place, new);
            self.find_again(a, b, place);
            if !budget.draw(std::mem::take(&mut self.steps)) {
                return false;
            }
        }
        true
    }

    fn of(&self, column: usize) -> &[u64] {
        &self.uses[column * self.words..(column + 1) * self.words]
    }

    /// Finds the best partner of the live column at `index`. It has at most `most` uses in common
    /// with any other column.
    fn find_best(&mut self, index: usize, most: u16) {
        let column = self.live[index];
        let counts = self.table.row(self.slots[column]);
        let mut best = (0, 0);
        for &other in &self.live[index + 1..] {
            self.steps += 1;
            let count = counts[self.slots[other]];
            if count > best.0 {
                best = (count, other);
                if count >= most {
                    break;
                }
            }
        }
        self.best[column] = best;
    }

    fn most_common_pair(&self) -> Option<(usize, usize)> {
        let mut most = (1, None);
        for &column in &self.live {
            let (count, partner) = self.best[column];
            if count > most.0 {
                most = (count, Some((column, partner)));
            }
        }
        most.1
    }

    /// Moves the common uses of `a` and `b` to a new column, and updates the counts with all
    /// others.
    fn split_off(&mut self, a: usize, b: usize) -> usize {
        let new = self.weights.len();
        let mut moved = 0;
        for word in 0..self.words {
            let (x, y) = (a * self.words + word, b * self.words + word);
            let common = self.uses[x] & self.uses[y];
            self.uses[x] ^= common;
            self.uses[y] ^= common;
            self.uses.push(common);
            self.shrunk[word] |= common;
            moved += common.count_ones();
        }
        self.weights[a] -= moved;
        self.weights[b] -= moved;
        self.weights.push(moved);
        self.best.push((0, 0));
        self.slots.push(self.table.take());
        self.recount(a, b, new);
        new
    }

    fn recount(&mut self, a: usize, b: usize, new: usize) {
        let moved: Vec<usize> = (0..self.words).filter(|&word| self.of(new)[word] != 0).collect();
        let [a_slot, b_slot, new_slot] = [a, b, new].map(|column| self.slots[column]);
        self.steps += self.live.len() as u64 * (PAIR + moved.len() as u64 * COMMON);
        for index in 0..self.live.len() {
            let other = self.live[index];
            let both = |&word: &usize| (self.of(other)[word] & self.of(new)[word]).count_ones();
            let count = moved.iter().map(both).sum::<u32>() as u16;
            let slot = self.slots[other];
            if count > 0 && other != a && other != b {
                let counts = self.table.row(slot);
                let (with_a, with_b) = (counts[a_slot] - count, counts[b_slot] - count);
                self.table.set(slot, a_slot, with_a);
                self.table.set(slot, b_slot, with_b);
            }
            self.table.set(slot, new_slot, count);
        }
        // The common uses of `a` and `b` now belong to the new column alone, so no two of these
        // three columns have a use in common.
        self.table.set(a_slot, b_slot, 0);
        self.table.set(a_slot, new_slot, 0);
        self.table.set(b_slot, new_slot, 0);
    }

    /// Drops columns with fewer than two uses.
    fn drop_dead(&mut self, new: usize) {
        let Self { weights, slots, table, live, .. } = self;
        live.retain(|&column| {
            let is_alive = weights[column] >= 2;
            if !is_alive {
                table.free.push(slots[column]);
            }
            is_alive
        });
        debug_assert!(weights[new] >= 2, "a pair is extracted because it occurs twice");
    }

    /// Searches again for the partners that may have changed: `a` and `b` lost uses, and the column
    /// at `place` is new.
    fn find_again(&mut self, a: usize, b: usize, place: usize) {
        let new = self.live[place];
        let new_slot = self.slots[new];
        self.steps += 3 * self.live.len() as u64;
        for index in 0..self.live.len() {
            let column = self.live[index];
            let (count, partner) = self.best[column];
            let with_new = self.table.row(self.slots[column])[new_slot];
            let stale = [a, b].contains(&column) || [a, b].contains(&partner);
            if column == new {
                self.find_best(index, u16::MAX);
            } else if stale && count > 0 {
                // Counts have only decreased, except those with the new column.
                self.find_best(index, count.max(with_new));
            } else if index < place && with_new > count {
                self.best[column] = (with_new, new);
            }
        }
    }

    /// Writes the remaining columns back to the rows that lost some.
    fn write_back(&self, rows: &mut Rows) {
        let mut left = vec![Vec::new(); rows.len()];
        for column in 0..self.weights.len() {
            for (word, (uses, shrunk)) in self.of(column).iter().zip(&self.shrunk).enumerate() {
                ones_of(&[uses & shrunk]).for_each(|bit| left[64 * word + bit].push(column as u32));
            }
        }
        for row in ones_of(&self.shrunk) {
            rows.set(row, std::mem::take(&mut left[row]));
        }
        rows.settle();
    }
}

#[cfg(test)]
mod tests {
    use crate::plan::optimise::passes::slp;

    /// Every row has the same pair, so its count exceeds 16 bits.
    #[test]
    fn schedules_of_many_rows_stay() {
        let rows: String = (0..70_000).map(|output| format!("o{output} = i0 ^ i1\n")).collect();
        let schedule = format!("inputs 2 temps 0 outputs 70000\n{rows}").parse().unwrap();
        assert_eq!(slp(&schedule).unwrap(), schedule);
    }

    #[test]
    fn the_commonest_pair_first_and_pairs_of_pairs() {
        let before = "inputs 4 temps 0 outputs 3\n\
                      o0 = i0 ^ i1 ^ i2\no1 = i0 ^ i1 ^ i2 ^ i3\no2 = i0 ^ i1\n";
        let after = "inputs 4 temps 2 outputs 3\n\
                     t0 = i0 ^ i1\nt1 = i2 ^ t0\no0 = t1\no1 = i3 ^ t1\no2 = t0\n";
        assert_eq!(slp(&before.parse().unwrap()).unwrap().to_string(), after);
    }

    #[test]
    fn outputs_take_part() {
        let before = "inputs 3 temps 0 outputs 3\n\
                      o0 = i0 ^ i1\no1 = o0 ^ i2 ^ i1\no2 = o0 ^ i2\n";
        let after = "inputs 3 temps 1 outputs 3\n\
                     o0 = i0 ^ i1\nt0 = i2 ^ o0\no1 = i1 ^ t0\no2 = t0\n";
        assert_eq!(slp(&before.parse().unwrap()).unwrap().to_string(), after);
    }
}
