//! Greedy common pairs, intermediates included: a short straight-line program.
//!
//! Paar's heuristic (*Optimized arithmetic for Reed-Solomon encoders*, ISIT 1997), which grammar
//! compression knows as RePair: while two sources occur together in two or more operations, the
//! pair that occurs most often becomes a temporary of its own, which takes part like any other
//! source from then on. Ties go to the lowest columns, so the result is the same everywhere;
//! [`super::refine`] has them broken by chance instead, again and again.
//!
//! A column (source) is a bit set over the operations that use it. How many uses each two columns have in
//! common stands in a table. A new pair moves uses from two columns to a third, which changes three rows of
//! the table, by as much as the other columns occur in the operations that the pair is taken out of. Each
//! column remembers its best partner after it, and looks for one again only if the count with that partner
//! changed. A column with fewer than two uses left has no pairs and is not looked at any more; nor are those
//! of which no row changed since pairs were extracted before.
//!
//! Every look draws on the budget; when it is spent, the pairs that were found stay, and they are the
//! commonest. Programs that would spend it too soon are cut into groups of rows (`groups.rs`).

use crate::define::bitmatrix::ones_of;
use crate::error::Result;
use crate::plan::budget::Budget;
use crate::plan::chance::Chance;
use crate::plan::optimise::rows::Rows;
use crate::plan::schedule::Schedule;

/// Extracts common pairs until none occurs twice.
///
/// # Errors
/// If the schedule is not single-assignment.
pub fn pass(schedule: &Schedule) -> Result<Schedule> {
    let mut rows = Rows::new(schedule)?;
    extract_pairs(&mut rows, None, &mut Budget::unlimited());
    rows.schedule()
}

/// The most columns that a table of pairs is made for: it has 32 MiB.
const MOST_LIVE: usize = 1 << 12;

/// About how many steps extracting all pairs of these rows takes; `u64::MAX` if they are too many for a
/// table of pairs.
pub(crate) fn steps(rows: &Rows) -> u64 {
    let mut uses = vec![0_u64; rows.columns()];
    rows.iter().flatten().for_each(|&column| uses[column as usize] += 1);
    uses.retain(|&uses| uses >= 2);
    let (live, shared) = (uses.len() as u64, uses.iter().sum::<u64>());
    if uses.len() > MOST_LIVE || rows.len() > usize::from(u16::MAX) {
        return u64::MAX;
    }
    // The pairs of every row are counted; then about every third use that is shared goes into a pair.
    let pairs: u64 = rows.iter().map(|row| (row.len() as u64).pow(2)).sum();
    live * live / 2 + pairs + shared / 3 * live * PAIR
}

/// The steps of counting what two words have in common.
const COMMON: u64 = 4;

/// The steps for each column that a pair takes, besides those of counting and of finding partners.
const PAIR: u64 = 8;

/// Extracts common pairs until none occurs twice or the budget is spent; ties go to the lowest columns,
/// or to chance. Returns whether the budget sufficed.
pub(crate) fn extract_pairs(
    rows: &mut Rows,
    chance: Option<&mut Chance>,
    budget: &mut Budget,
) -> bool {
    let live = Pairs::live(rows);
    if live.len() > MOST_LIVE || !budget.draw((live.len() * live.len()) as u64 / 4) {
        rows.settle();
        return false;
    }
    let mut pairs = Pairs::new(rows, live);
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

struct Pairs {
    /// Words of one bit set.
    words: usize,
    /// Per column, a bit for each row that uses it.
    uses: Vec<u64>,
    /// Per column, how many rows use it.
    weights: Vec<u32>,
    /// The columns with two uses or more, in the order in which ties are broken.
    live: Vec<usize>,
    /// Per live column, its row and column of the table; of others, `usize::MAX` or what it was.
    slots: Vec<usize>,
    table: Table,
    /// Per column, the count and number of the best partner after it.
    best: Vec<(u16, usize)>,
    /// A bit for each row that lost columns to a pair.
    shrunk: Vec<u64>,
    /// The steps taken since the budget was last asked.
    steps: u64,
}

/// How many uses each two live columns have in common, by slot.
struct Table {
    /// Slots of a row.
    stride: usize,
    counts: Vec<u16>,
    /// Slots that no live column has.
    free: Vec<usize>,
}

impl Table {
    fn new(slots: usize) -> Self {
        // Columns come and go; more than a few more are seldom alive at a time.
        let stride = slots + slots / 4 + 8;
        let free = (slots..stride).rev().collect();
        Self { stride, counts: vec![0; stride * stride], free }
    }

    fn row(&self, slot: usize) -> &[u16] {
        &self.counts[slot * self.stride..(slot + 1) * self.stride]
    }

    /// Counts a row that uses the columns of these slots, and returns the steps that took.
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

    /// A slot for a new column.
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

impl Pairs {
    /// The columns that have pairs to look for: two rows use them, and one of these has changed.
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
        let mut table = Table::new(live.len());
        let mut steps = 0;
        for row in rows.iter() {
            let row: Vec<usize> = row.iter().map(|&column| slots[column as usize]).collect();
            steps += table.count(row.into_iter().filter(|&slot| slot != usize::MAX).collect());
        }
        let (best, shrunk) = (vec![(0, 0); count], vec![0; words]);
        Self { words, uses, weights, live, slots, table, best, shrunk, steps }
    }

    /// Extracts pairs until none occurs twice. New columns come at the place among `live` that
    /// `place` gives for the last one. Returns false if the budget is spent before.
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

    /// Finds the best partner of the live column at `index`, which has at most `most` uses in common.
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

    /// Moves the common uses of `a` and `b` to a new column, and changes the counts with all others.
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
        // What they had in common is the new column's, which has nothing in common with them.
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

    /// Finds partners again where `a` and `b`, which lost uses, and the new column at `place`
    /// may have changed them.
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
                // Counts have only become less, but for those with the new column.
                self.find_best(index, count.max(with_new));
            } else if index < place && with_new > count {
                self.best[column] = (with_new, new);
            }
        }
    }

    /// Gives the rows that lost columns what is left.
    fn write_back(&self, rows: &mut Rows) {
        let shrunk: Vec<usize> = ones_of(&self.shrunk).collect();
        let mut left = vec![Vec::new(); shrunk.len()];
        for column in 0..self.weights.len() {
            for (columns, row) in left.iter_mut().zip(&shrunk) {
                if self.of(column)[row / 64] >> (row % 64) & 1 == 1 {
                    columns.push(column as u32);
                }
            }
        }
        shrunk.into_iter().zip(left).for_each(|(row, columns)| rows.set(row, columns));
        rows.settle();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commonest_pair_first_and_pairs_of_pairs() {
        let before = "inputs 4 temps 0 outputs 3\n\
                      o0 = i0 ^ i1 ^ i2\no1 = i0 ^ i1 ^ i2 ^ i3\no2 = i0 ^ i1\n";
        let after = "inputs 4 temps 2 outputs 3\n\
                     t0 = i0 ^ i1\nt1 = i2 ^ t0\no0 = t1\no1 = i3 ^ t1\no2 = t0\n";
        assert_eq!(pass(&before.parse().unwrap()).unwrap().to_string(), after);
    }

    #[test]
    fn outputs_take_part() {
        let before = "inputs 3 temps 0 outputs 3\n\
                      o0 = i0 ^ i1\no1 = o0 ^ i2 ^ i1\no2 = o0 ^ i2\n";
        let after = "inputs 3 temps 1 outputs 3\n\
                     o0 = i0 ^ i1\nt0 = i2 ^ o0\no1 = i1 ^ t0\no2 = t0\n";
        assert_eq!(pass(&before.parse().unwrap()).unwrap().to_string(), after);
    }
}
