//! Random choices from a seed: the same on every machine, in every version.
//!
//! The stream is xoshiro256++ (Blackman and Vigna 2018), and its state comes from the seed by
//! SplitMix64, as they advise. Both, and the code that makes choices, are written here and not
//! taken from `rand`, which may change between versions: seeds are stored beside matrices and must
//! give the same matrices again.

/// A stream of random choices.
#[derive(Debug, Clone)]
pub(crate) struct Chance([u64; 4]);

impl Chance {
    /// The stream of a seed.
    pub(crate) fn new(mut seed: u64) -> Self {
        Self([(); 4].map(|()| split_mix(&mut seed)))
    }

    /// Returns the stream for one part of the work. It does not depend on the number of parts.
    pub(crate) fn of_part(seed: u64, part: usize) -> Self {
        let mixed = (part as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Self::new(seed ^ mixed)
    }

    /// Returns the next 64 bits.
    pub(crate) fn bits(&mut self) -> u64 {
        let [a, b, c, d] = self.0;
        let bits = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (third, last) = (c ^ a, d ^ b);
        self.0 = [a ^ last, b ^ third, third ^ (b << 17), last.rotate_left(45)];
        bits
    }

    /// Returns a number below `bound`, which is at least 1.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.bits()) * bound as u128) >> 64) as usize
    }

    /// Returns true with the given probability.
    pub(crate) fn happens(&mut self, probability: f64) -> bool {
        self.fraction() < probability
    }

    /// Returns a number from 0 (included) to 1 (excluded).
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
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

/// Returns the next number of a SplitMix64 stream.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
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
