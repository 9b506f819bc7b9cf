//! The share of all losses of a number of nodes that a code survives.
//!
//! An MDS code survives every loss of up to m nodes, where m is its number of parity nodes, and no
//! larger loss. A code that is not MDS survives some losses above its tolerance. They are counted
//! here, over all sets of nodes or, if these are too many, over random sets.

use crate::define::cells::NodeId;
use crate::define::code::Code;
use crate::define::erasure::{Losses, combinations};
use crate::plan::chance::Chance;

/// Number of losses of some number of nodes that a code survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Survival {
    /// Number of nodes lost at once.
    pub lost: usize,
    /// Number of sets of that many nodes; `u64::MAX` if there are more.
    pub sets: u64,
    /// Number of sets that were tried: all, or a random sample.
    pub tried: u64,
    /// Number of tried sets after whose loss all data can be computed.
    pub survived: u64,
}

impl Survival {
    /// Whether all sets were tried.
    pub fn is_counted(&self) -> bool {
        self.tried == self.sets
    }

    /// Part of the tried sets that was survived, from 0 to 1.
    pub fn fraction(&self) -> f64 {
        self.survived as f64 / self.tried.max(1) as f64
    }
}

/// Tries losses of `lost` nodes of a code: all sets of nodes if there are at most `most`, otherwise
/// `most` random ones, which are the same in every call.
pub fn survival(code: &Code, lost: usize, most: u64) -> Survival {
    survival_with(code, lost, most, || {})
}

/// As [`survival`]; calls `progress` before each set is tried. To give up, it may panic.
pub fn survival_with(code: &Code, lost: usize, most: u64, progress: impl Fn()) -> Survival {
    let nodes = code.node_count();
    let sets = sets(nodes, lost);
    let survives = |chosen: &Vec<usize>| {
        progress();
        let chosen: Vec<NodeId> = chosen.iter().copied().map(NodeId::new).collect();
        Losses::of_nodes(code, &chosen).is_solvable()
    };
    let (tried, survived) = match sets <= most {
        true => (sets, combinations(nodes, lost).filter(survives).count()),
        false => {
            let mut chance = Chance::new(lost as u64);
            let random = (0..most).map(|_| choose(&mut chance, nodes, lost));
            (most, random.filter(survives).count())
        }
    };
    Survival { lost, sets, tried, survived: survived as u64 }
}

/// Returns the number of sets of `count` of `total` nodes, at most `u64::MAX`.
fn sets(total: usize, count: usize) -> u64 {
    if count > total {
        return 0;
    }
    let few = count.min(total - count) as u128;
    // After each step the product is a binomial coefficient, so divisions have no remainder.
    let step = |sets: u128, i: u128| sets.checked_mul(total as u128 - i).map(|n| n / (i + 1));
    let sets = (0..few).try_fold(1, step);
    sets.and_then(|sets| u64::try_from(sets).ok()).unwrap_or(u64::MAX)
}

/// Chooses `count` of the numbers below `total` by Floyd's method.
fn choose(chance: &mut Chance, total: usize, count: usize) -> Vec<usize> {
    let mut chosen = Vec::with_capacity(count);
    for last in total - count..total {
        let number = chance.below(last + 1);
        chosen.push(if chosen.contains(&number) { last } else { number });
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn survived(spec: &str, lost: usize, most: u64) -> Survival {
        survival(&spec.parse().unwrap(), lost, most)
    }

    #[test]
    fn codes_that_are_mds_survive_all_up_to_their_parity_and_none_above() {
        for spec in ["4+2", "xcode:n=5", "rdp:k=4"] {
            assert_eq!(survived(spec, 2, 1000).fraction(), 1.0, "{spec}");
            let above = survived(spec, 3, 1000);
            assert!(above.is_counted() && above.survived == 0 && above.tried > 0, "{spec}");
        }
    }

    /// Two copies of the sum of two nodes: of the six losses of two nodes, only that of both data
    /// nodes is fatal.
    #[test]
    fn sets_are_counted_or_sampled() {
        let toy = "matrix:k=2,m=2,w=1,rows=c.c";
        let two = Survival { lost: 2, sets: 6, tried: 6, survived: 5 };
        assert_eq!(survived(toy, 2, 6), two);
        assert_eq!(survived(toy, 0, 6), Survival { lost: 0, sets: 1, tried: 1, survived: 1 });
        assert_eq!(survived(toy, 5, 6), Survival { lost: 5, sets: 0, tried: 0, survived: 0 });
        let sampled = survived(toy, 2, 5);
        assert!(!sampled.is_counted() && sampled.tried == 5);
        // A sample comes near the count.
        let pairs = "matrix:k=8,m=4,w=1,rows=c0.30.0c.03";
        let (all, some) = (survived(pairs, 3, 1000), survived(pairs, 3, 219));
        assert!(all.is_counted() && all.sets == 220 && !some.is_counted());
        assert!((all.fraction() - some.fraction()).abs() < 0.1, "{all:?} {some:?}");
    }

    /// Four groups of two nodes and their sum: each group survives the loss of one of its three
    /// nodes.
    #[test]
    fn groups_survive_one_loss_each() {
        let pairs = "matrix:k=8,m=4,w=1,rows=c0.30.0c.03";
        for (lost, survived_sets) in [(1, 12), (2, 6 * 9), (3, 4 * 27), (4, 81), (5, 0)] {
            assert_eq!(survived(pairs, lost, 1000).survived, survived_sets, "{lost}");
        }
    }

    #[test]
    fn numbers_of_sets_do_not_overflow() {
        assert_eq!((sets(28, 8), sets(5, 5), sets(0, 0)), (3_108_105, 1, 1));
        assert_eq!(sets(1024, 512), u64::MAX);
        let chosen = choose(&mut Chance::new(1), 6, 6);
        assert!((0..6).all(|number| chosen.contains(&number)));
    }
}
