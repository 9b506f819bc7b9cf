//! What is drawn from the seed of a run.

use std::time::Duration;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Draws numbers from a seed.
#[derive(Debug)]
pub struct Dice(Xoshiro256PlusPlus);

impl Dice {
    /// Begins with a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Returns any number.
    pub fn number(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns a number below `end`, which is not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.number() % end
    }

    /// Returns true `percent` times in a hundred.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Returns one of several things.
    ///
    /// # Panics
    /// If there are none.
    pub fn choose<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    /// Returns some of the numbers from 0, all different.
    pub fn some_of(&mut self, count: usize, some: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..count).collect();
        (1..count).rev().for_each(|i| all.swap(i, self.below(i as u64 + 1) as usize));
        all.truncate(some);
        all
    }

    /// Returns a time below `most`. Short times come as often as long ones.
    pub fn time(&mut self, most: Duration) -> Duration {
        let micros = u64::try_from(most.as_micros()).unwrap_or(u64::MAX).max(2);
        let bits = self.below(u64::from(micros.ilog2()) + 1);
        Duration::from_micros(self.below(2 << bits).min(micros))
    }
}
