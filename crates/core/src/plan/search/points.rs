//! Points: k + m distinct elements, the "person" of the genetic algorithm.

use crate::plan::chance::Chance;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Points {
    /// Data points, then parity points.
    pub(super) used: Vec<u32>,
    /// All other elements.
    unused: Vec<u32>,
}

impl Points {
    /// Returns `count` random elements below `size`.
    pub(super) fn random(count: usize, size: usize, chance: &mut Chance) -> Self {
        let mut all: Vec<u32> = (0..size as u32).collect();
        chance.shuffle(&mut all);
        let unused = all.split_off(count);
        Self { used: all, unused }
    }

    /// Returns the given points, which are elements below `size`.
    pub(super) fn of(used: Vec<u32>, size: usize) -> Self {
        let unused = (0..size as u32).filter(|element| !used.contains(element)).collect();
        Self { used, unused }
    }

    /// Changes a point to an unused element. If all elements are used, two points change places.
    pub(super) fn change_one(&mut self, chance: &mut Chance) {
        let place = chance.below(self.used.len());
        if self.unused.is_empty() {
            let other = chance.below(self.used.len());
            self.used.swap(place, other);
        } else {
            let other = chance.below(self.unused.len());
            std::mem::swap(&mut self.used[place], &mut self.unused[other]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_stay_distinct() {
        let mut chance = Chance::new(5);
        for (count, size) in [(5, 16), (16, 16), (1, 2)] {
            let mut points = Points::random(count, size, &mut chance);
            for _ in 0..100 {
                points.change_one(&mut chance);
                let mut all = [&points.used[..], &points.unused].concat();
                assert_eq!(points.used.len(), count);
                all.sort_unstable();
                assert_eq!(all, (0..size as u32).collect::<Vec<_>>());
            }
        }
    }
}
