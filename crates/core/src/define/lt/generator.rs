//! The random numbers of LT graphs, specified to the bit.
//!
//! A stored object is only readable while its graph can be drawn again, so nothing here may ever
//! change. All arithmetic is on 64-bit words and wraps; there is no floating point.
//!
//! - `mix` is the finaliser of SplitMix64 (Steele, Lea and Flood, *Fast splittable pseudorandom
//!   number generators*, OOPSLA 2014): `z ^= z >> 30; z *= 0xBF58476D1CE4E5B9; z ^= z >> 27; z *=
//!   0x94D049BB133111EB; z ^= z >> 31`.
//! - A generator is created for a place, not continued from the last one. Its state starts at 0 and
//!   takes the seed, the attempt, the purpose and the index, in this order, each by `state =
//!   mix((state + G) ^ word)` with `G = 0x9E3779B97F4A7C15`. So any block can be drawn without
//!   those before it.
//! - The next word is `mix(state += G)`.
//! - A number below n is the high word of the 128-bit product of n and the next word, if the low
//!   word is at least 2^64 mod n; otherwise another word is drawn. So it is exactly uniform
//!   (Lemire, *Fast random integer generation in an interval*, 2019).
//! - d of the numbers below k are chosen by Floyd's method: for j from k - d to k - 1, t is a
//!   random number below j + 1. If t has not been taken yet, t is taken, otherwise j. That is d
//!   random numbers for any d.
//! - A permutation of k numbers starts ascending. For i from k - 1 down to 1, entry i changes
//!   places with entry t, where t is a random number below i + 1.

use std::collections::BTreeSet;

/// Number of this specification in pins.
pub(super) const GENERATOR: u64 = 1;

const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// The purpose that numbers are drawn for; the codes are part of the specification.
#[derive(Debug, Clone, Copy)]
pub(super) enum Purpose {
    /// Degree and neighbours of block `index`.
    Block = 0,
    /// Permutation `index` in the queue of uniform coverage.
    Permutation = 1,
    /// The blocks that a data block below the coverage threshold is added to.
    Coverage = 2,
}

/// A stream of random words.
#[derive(Debug, Clone)]
pub(super) struct Generator {
    state: u64,
}

impl Generator {
    pub(super) fn new(seed: u64, attempt: u32, purpose: Purpose, index: usize) -> Self {
        let words = [seed, attempt.into(), purpose as u64, index as u64];
        let absorb = |state: u64, word| mix(state.wrapping_add(STEP) ^ word);
        Self { state: words.into_iter().fold(0, absorb) }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        mix(self.state)
    }

    /// Returns a random number below `bound`, which is not 0.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        let unfair = bound.wrapping_neg() % bound;
        loop {
            let product = u128::from(self.next()) * u128::from(bound);
            if product as u64 >= unfair {
                return (product >> 64) as u64;
            }
        }
    }

    /// Returns `count` of the numbers below `bound`, ascending; `count` is at most `bound`.
    pub(super) fn choose(&mut self, count: u32, bound: u32) -> Vec<u32> {
        let mut chosen = BTreeSet::new();
        for last in bound - count..bound {
            let number = self.below(u64::from(last) + 1) as u32;
            if !chosen.insert(number) {
                chosen.insert(last);
            }
        }
        chosen.into_iter().collect()
    }

    /// Returns the numbers below `size` in random order.
    pub(super) fn permutation(&mut self, size: u32) -> Vec<u32> {
        let mut numbers: Vec<u32> = (0..size).collect();
        for i in (1..numbers.len()).rev() {
            numbers.swap(i, self.below(i as u64 + 1) as usize);
        }
        numbers
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of SplitMix64 from 1234567, as published with other implementations.
    #[test]
    fn words_are_those_of_splitmix64() {
        let mut generator = Generator { state: 1_234_567 };
        for expected in
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        {
            assert_eq!(generator.next(), expected);
        }
    }

    #[test]
    fn choices_are_distinct_and_uniform() {
        let mut counts = [0u32; 10];
        for index in 0..6000 {
            let chosen = Generator::new(1, 0, Purpose::Block, index).choose(3, 10);
            assert!(chosen.len() == 3 && chosen.is_sorted_by(|a, b| a < b));
            chosen.iter().for_each(|&number| counts[number as usize] += 1);
        }
        // 1800 each; the deviation of one count is sqrt(6000 * 0.3 * 0.7) = 35.
        assert!(counts.iter().all(|count| count.abs_diff(1800) < 140), "{counts:?}");
        assert_eq!(Generator::new(1, 0, Purpose::Block, 0).choose(7, 7), [0, 1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn every_permutation_comes_up() {
        let draw = |index| Generator::new(2, 0, Purpose::Permutation, index).permutation(4);
        let seen: BTreeSet<Vec<u32>> = (0..400).map(draw).collect();
        assert_eq!(seen.len(), 24);
    }
}
