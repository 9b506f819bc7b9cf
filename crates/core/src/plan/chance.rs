//! Random choices from a seed: the same on every machine, in every version.
//!
//! The stream is xoshiro256++ (Blackman and Vigna 2018). The code that makes choices from it is
//! written here and not taken from `rand`, which may change between versions: seeds are stored
//! beside matrices and must give the same matrices again.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A stream of random choices.
#[derive(Debug, Clone)]
pub(crate) struct Chance(Xoshiro256PlusPlus);

impl Chance {
    /// The stream of a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Returns the stream for one part of the work. It does not depend on the number of parts.
    pub(crate) fn of_part(seed: u64, part: usize) -> Self {
        let mixed = (part as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Self::new(seed ^ mixed)
    }

    /// Returns a number below `bound`, which is at least 1.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.0.next_u64()) * bound as u128) >> 64) as usize
    }

    /// Returns true with the given probability.
    pub(crate) fn happens(&mut self, probability: f64) -> bool {
        self.fraction() < probability
    }

    /// Returns a number from 0 to below 1.
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Puts a list in a random order.
    pub(crate) fn shuffle<T>(&mut self, list: &mut [T]) {
        for end in (1..list.len()).rev() {
            list.swap(end, self.below(end + 1));
        }
    }

    /// Returns a random element of a list, or `None` if it is empty.
    pub(crate) fn pick<'a, T>(&mut self, list: &'a [T]) -> Option<&'a T> {
        list.get(self.below(list.len().max(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stored seeds rely on these numbers.
    #[test]
    fn seeds_are_for_ever() {
        let mut chance = Chance::new(1);
        assert_eq!([0; 6].map(|_| chance.below(1000)), [811, 747, 100, 746, 184, 590]);
        let mut list = [0, 1, 2, 3, 4, 5];
        Chance::of_part(1, 3).shuffle(&mut list);
        assert_eq!(list, [2, 1, 5, 0, 4, 3]);
    }

    #[test]
    fn choices_are_fair() {
        let mut chance = Chance::new(7);
        let mut counts = [0; 5];
        (0..50_000).for_each(|_| counts[chance.below(5)] += 1);
        assert!(counts.iter().all(|count| (9_600..10_400).contains(count)), "{counts:?}");
        let happened = (0..50_000).filter(|_| chance.happens(0.3)).count();
        assert!((14_500..15_500).contains(&happened), "{happened}");
    }
}
