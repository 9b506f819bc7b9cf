//! The cost of a schedule, counted exactly.
//!
//! Papers count in different ways; every figure here says how it counts. `total` is the
//! dissertation's "XOR and copy": it copies the first source of every cell and XORs the others, so
//! an operation costs its number of sources. Loads and stores of a compiled kernel follow from
//! register allocation and are counted there ([`crate::plan::steps::Allocation`]).

use crate::plan::machine::Machine;
use crate::plan::schedule::Schedule;

/// The counts of one schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Cost {
    /// Two-input XORs: the sum of (fan-in - 1).
    pub xors: usize,
    /// Cells that are given a first value: one for every operation that does not add to its target.
    pub copies: usize,
    /// XORs and copies: the sum of all fan-ins.
    pub total: usize,
    /// Operations.
    pub ops: usize,
    /// Temporaries.
    pub temps: usize,
    /// Three-input XORs: the sum of ceil((fan-in - 1) / 2).
    pub ternary: usize,
}

impl Cost {
    /// Counts the operations of a schedule.
    pub fn of(schedule: &Schedule) -> Self {
        let mut cost = Self { temps: schedule.temps(), ..Self::default() };
        schedule.ops().iter().for_each(|op| cost.add(op.sources.len(), op.accumulate));
        cost
    }

    /// Counts one more operation, with `sources` sources.
    pub(crate) fn add(&mut self, sources: usize, accumulate: bool) {
        let fan_in = sources + usize::from(accumulate);
        self.ops += 1;
        self.xors += fan_in.saturating_sub(1);
        self.copies += usize::from(!accumulate);
        self.total += sources;
        self.ternary += fan_in.saturating_sub(1).div_ceil(2);
    }
}

/// The quantity that a planner or a search minimises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
#[non_exhaustive]
pub enum Objective {
    /// Two-input XORs.
    Xors,
    /// XORs and copies, each counted as one. On a machine without three-input XORs, these are the
    /// vector instructions of a fused kernel whose temporaries stay in registers: the first source
    /// of an operation is loaded, the others are XORed.
    #[default]
    Total,
    /// XORs and copies, where an XOR costs this many thousandths of a copy.
    Weighted(u32),
    /// Operations and three-input XORs: the equivalent of `Total` for a processor that has
    /// three-input XORs.
    Ternary,
    /// Instructions, loads and stores that a compiled kernel executes on a machine, after register
    /// allocation. Counting these takes a thousand times as long as counting the others.
    Fused(Machine),
}

/// The quantity that is minimised, and the quantity that decides between equals.
pub(crate) type Figure = (u64, u64);

impl Objective {
    /// The dissertation's weight, in thousandths. On its machine an XOR takes 1.5 times as long as
    /// a copy (section 3.2.3). `paritas tune` measures it.
    pub const PRINTED_WEIGHT: u32 = 1500;

    /// The dissertation's cost.
    pub const WEIGHTED: Self = Self::Weighted(Self::PRINTED_WEIGHT);

    /// Returns the figure of a schedule with these counts, before registers are allocated.
    pub(crate) fn of(self, cost: &Cost) -> Figure {
        let Cost { xors, copies, total, ops, ternary, .. } = *cost;
        let [xors, copies, total] = [xors, copies, total].map(|count| count as u64);
        match self {
            Self::Xors => (xors, total),
            Self::Total => (total, xors),
            Self::Weighted(xor) => (1000 * copies + u64::from(xor) * xors, total),
            Self::Fused(Machine { ternary: false, .. }) => (total, xors),
            Self::Ternary | Self::Fused(_) => ((ops + ternary) as u64, total),
        }
    }

    /// Whether a temporary that is the XOR of `size` cells and is used `uses` times is better
    /// computed within each use.
    pub(crate) fn is_inlined(self, uses: usize, size: usize) -> bool {
        let more_xors = (uses.saturating_sub(1) * size.saturating_sub(1)) as u64;
        match self {
            Self::Xors => more_xors == 0,
            Self::Total | Self::Fused(Machine { ternary: false, .. }) => more_xors < 1,
            Self::Weighted(xor) => more_xors * u64::from(xor) < 1000,
            Self::Ternary | Self::Fused(_) => more_xors <= 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_by_hand() {
        let text =
            "inputs 5 temps 1 outputs 2\nt0 = i0 ^ i1\no0 = t0 ^ i2 ^ i3 ^ i4\no1 = t0\no1 ^= i2\n";
        let expected = Cost {
            xors: 1 + 3 + 1,
            copies: 3,
            total: 2 + 4 + 1 + 1,
            ops: 4,
            temps: 1,
            ternary: 1 + 2 + 1,
        };
        assert_eq!(Cost::of(&text.parse().unwrap()), expected);
    }
}
