//! Greedy common pairs, intermediates included: a short straight-line program.
//!
//! Paar's heuristic (*Optimized arithmetic for Reed-Solomon encoders*, ISIT 1997), which grammar
//! compression knows as RePair: while two sources occur together in two or more operations, the
//! pair that occurs most often becomes a temporary of its own, which takes part like any other
//! source from then on. Ties go to the lowest columns, so the result is the same everywhere;
//! [`super::refine`] has them broken by chance instead, again and again.
//!
//! A column (source) is a bit set over the operations that use it, and two columns' common uses
//! are a population count. Each column remembers its best partner after it; a step changes
//! three columns, so only those that pointed at them are looked at again. A column with fewer
//! than two uses left has no pairs and is not looked at any more; nor are those of which no row
//! changed since pairs were extracted before.
//!
//! Looking takes time quadratic in the columns, and a step time proportional to them. Every look draws on
//! the [`Budget`]; when it is spent, the pairs that were found stay, and they are the commonest. Programs
//! that would spend it before the first pair are cut into groups of rows ([`super::groups`]).

use crate::define::bitmatrix::ones_of;
use crate::error::Result;
use crate::plan::budget::Budget;
use crate::plan::chance::Chance;
use crate::plan::optimise::rows::Rows;
use crate::plan::schedule::Schedule;

/// Extracts common pairs until none occurs twice.
///
/// # Errors
/// When the schedule is not single-assignment.
pub fn pass(schedule: &Schedule) -> Result<Schedule> {
    let mut rows = Rows::new(schedule)?;
    extract_pairs(&mut rows, None, &mut Budget::unlimited());
    rows.schedule()
}

/// About how many steps extracting all pairs of these rows takes.
pub(crate) fn steps(rows: &Rows) -> u64 {
    let mut uses = vec![0_u32; rows.columns()];
    rows.iter().flatten().for_each(|&column| uses[column as usize] += 1);
    let live = uses.iter().filter(|&&uses| uses >= 2).count() as u64;
    let shared: u64 = uses.iter().filter(|&&uses| uses >= 2).map(|&uses| u64::from(uses)).sum();
    // Every column is compared with every other one; then every second one that is shared goes into a
    // pair, after which some columns are compared again.
    let comparisons = live * live / 2 + shared / 2 * live;
    comparisons * (rows.len() as u64).div_ceil(64)
}

/// Extracts common pairs until none occurs twice or the budget is spent; ties go to the lowest columns,
/// or to chance. Returns whether the budget sufficed.
pub(crate) fn extract_pairs(
    rows: &mut Rows,
    chance: Option<&mut Chance>,
    budget: &mut Budget,
) -> bool {
    let mut pairs = Pairs::new(rows);
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
    /// Per column, the count and number of the best partner after it.
    best: Vec<(u32, usize)>,
    /// A bit for each row that lost columns to a pair.
    shrunk: Vec<u64>,
    /// The steps taken since the budget was last asked.
    steps: u64,
}

impl Pairs {
    fn new(rows: &Rows) -> Self {
        let (count, words) = (rows.columns(), rows.len().div_ceil(64));
        let mut uses = vec![0; count * words];
        let mut weights = vec![0; count];
        for (number, row) in rows.iter().enumerate() {
            for &column in row {
                uses[column as usize * words + number / 64] |= 1 << (number % 64);
                weights[column as usize] += 1;
            }
        }
        let mut looked_at = vec![false; count];
        for row in rows.changed() {
            rows.row(row).iter().for_each(|&column| looked_at[column as usize] = true);
        }
        let live = (0..count).filter(|&column| looked_at[column] && weights[column] >= 2).collect();
        let (best, shrunk) = (vec![(0, 0); count], vec![0; words]);
        Self { words, uses, weights, live, best, shrunk, steps: 0 }
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
            self.find_best(index);
            if !budget.draw(std::mem::take(&mut self.steps)) {
                return false;
            }
        }
        while let Some((a, b)) = self.most_common_pair() {
            rows.push(vec![a.min(b) as u32, a.max(b) as u32]);
            let new = self.split_off(a, b);
            let weights = &self.weights;
            self.live.retain(|&column| weights[column] >= 2);
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

    fn common(&self, a: usize, b: usize) -> u32 {
        self.of(a).iter().zip(self.of(b)).map(|(x, y)| (x & y).count_ones()).sum()
    }

    /// Finds the best partner of the live column at `index`.
    fn find_best(&mut self, index: usize) {
        let column = self.live[index];
        let mut best = (0, 0);
        self.steps += (self.live.len() - index) as u64;
        for &other in &self.live[index + 1..] {
            if self.weights[other] > best.0 {
                self.steps += self.words as u64;
                let count = self.common(column, other);
                if count > best.0 {
                    best = (count, other);
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

    /// Moves the common uses of `a` and `b` to a new column.
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
        new
    }

    /// Finds partners again where `a` and `b`, which lost uses, and the new column at `place`
    /// may have changed them.
    fn find_again(&mut self, a: usize, b: usize, place: usize) {
        let new = self.live[place];
        self.steps += 3 * self.live.len() as u64;
        for index in 0..self.live.len() {
            let column = self.live[index];
            let (count, partner) = self.best[column];
            let stale = [a, b].contains(&column) || [a, b].contains(&partner);
            if column == new || stale && count > 0 {
                self.find_best(index);
            } else if index < place && self.weights[new] > count {
                self.steps += self.words as u64;
                let count = self.common(column, new).max(count);
                if count > self.best[column].0 {
                    self.best[column] = (count, new);
                }
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
