//! Greedy common pairs, intermediates included: a short straight-line program.
//!
//! Paar's heuristic (*Optimized arithmetic for Reed-Solomon encoders*, ISIT 1997), which grammar
//! compression knows as RePair: while two sources occur together in two or more operations, the
//! pair that occurs most often becomes a temporary of its own, which takes part like any other
//! source from then on. Ties go to the lowest columns, so the result is the same everywhere.
//!
//! A column (source) is a bit set over the operations that use it, and two columns' common uses
//! are a population count. Each column remembers its best partner above it; a step changes
//! three columns, so only those that pointed at them are looked at again. A column with fewer
//! than two uses left has no pairs and is not looked at any more.

use crate::error::Result;
use crate::plan::optimise::order;
use crate::plan::schedule::{Op, Schedule, Slot};

/// Extracts common pairs until none occurs twice.
///
/// # Errors
/// When the schedule is not single-assignment.
pub fn pass(schedule: &Schedule) -> Result<Schedule> {
    order::require_single_assignment(schedule)?;
    let mut columns = Columns::new(schedule);
    let mut temps = schedule.temps();
    let mut pairs = Vec::new();
    while let Some((a, b)) = columns.most_common_pair() {
        let temp = Slot::Temp(temps as u32);
        temps += 1;
        pairs.push(Op::assign(temp, vec![columns.slots[a], columns.slots[b]]));
        columns.extract(a, b, temp);
    }
    let rewritten = columns.rows(schedule);
    let ops = pairs.into_iter().chain(rewritten).collect();
    order::arrange(schedule.inputs(), schedule.outputs(), ops)
}

struct Columns {
    slots: Vec<Slot>,
    /// Words of one bit set.
    words: usize,
    /// Per column, a bit for each operation that uses it.
    uses: Vec<u64>,
    /// Per column, how many operations use it.
    weights: Vec<u32>,
    /// The columns with two uses or more, ascending.
    live: Vec<usize>,
    /// Per column, the count and number of the best partner above it.
    best: Vec<(u32, usize)>,
}

impl Columns {
    fn new(schedule: &Schedule) -> Self {
        let mut slots: Vec<Slot> =
            schedule.ops().iter().flat_map(|op| op.sources.iter().copied()).collect();
        slots.sort_unstable();
        slots.dedup();
        let words = schedule.ops().len().div_ceil(64);
        let mut uses = vec![0; slots.len() * words];
        for (number, op) in schedule.ops().iter().enumerate() {
            for source in &op.sources {
                let column = slots.binary_search(source).expect("all sources were collected");
                uses[column * words + number / 64] |= 1 << (number % 64);
            }
        }
        let count = slots.len();
        let weights: Vec<u32> =
            (0..count).map(|c| ones(&uses[c * words..(c + 1) * words])).collect();
        let live = (0..count).filter(|&column| weights[column] >= 2).collect();
        let mut columns = Self { slots, words, uses, weights, live, best: vec![(0, 0); count] };
        (0..columns.live.len()).for_each(|index| columns.find_best(index));
        columns
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
        for &other in &self.live[index + 1..] {
            if self.weights[other] > best.0 {
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
    fn extract(&mut self, a: usize, b: usize, slot: Slot) {
        let new = self.slots.len();
        for word in 0..self.words {
            let (x, y) = (a * self.words + word, b * self.words + word);
            let common = self.uses[x] & self.uses[y];
            self.uses[x] ^= common;
            self.uses[y] ^= common;
            self.uses.push(common);
        }
        let moved = ones(self.of(new));
        self.weights[a] -= moved;
        self.weights[b] -= moved;
        self.weights.push(moved);
        self.slots.push(slot);
        self.best.push((0, 0));
        let weights = &self.weights;
        self.live.push(new);
        self.live.retain(|&column| weights[column] >= 2);
        for index in 0..self.live.len() {
            let column = self.live[index];
            let stale = column == a || column == b || [a, b].contains(&self.best[column].1);
            if stale && self.best[column].0 > 0 {
                self.find_best(index);
            } else if column != new && moved > self.best[column].0 {
                let count = self.common(column, new);
                if count > self.best[column].0 {
                    self.best[column] = (count, new);
                }
            }
        }
    }

    /// The operations with what is left of their sources.
    fn rows(&self, schedule: &Schedule) -> Vec<Op> {
        let mut ops: Vec<Op> =
            schedule.ops().iter().map(|op| Op::assign(op.target, Vec::new())).collect();
        for (column, &slot) in self.slots.iter().enumerate() {
            crate::define::bitmatrix::ones_of(self.of(column))
                .for_each(|number| ops[number].sources.push(slot));
        }
        ops
    }
}

fn ones(words: &[u64]) -> u32 {
    words.iter().map(|word| word.count_ones()).sum()
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
