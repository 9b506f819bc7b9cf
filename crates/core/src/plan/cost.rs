//! What a schedule costs, counted exactly.
//!
//! Papers count differently; every figure here says which it is. `total` is the dissertation's "XOR
//! and copy": it copies the first source of every cell and XORs the others, so that an operation
//! costs its number of sources. What a compiled kernel loads and stores follows from register
//! allocation and is counted there ([`crate::plan::registers`]).

use crate::plan::schedule::Schedule;

/// The counts of one schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// Two-input XORs: the sum of (fan-in - 1).
    pub xors: usize,
    /// Cells that are given a first value: one for every operation that is no addition.
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
    /// Counts a schedule.
    pub fn of(schedule: &Schedule) -> Self {
        let mut cost =
            Self { temps: schedule.temps(), ops: schedule.ops().len(), ..Self::default() };
        for op in schedule.ops() {
            let fan_in = op.sources.len() + usize::from(op.accumulate);
            cost.xors += fan_in.saturating_sub(1);
            cost.copies += usize::from(!op.accumulate);
            cost.total += op.sources.len();
            cost.ternary += fan_in.saturating_sub(1).div_ceil(2);
        }
        cost
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
