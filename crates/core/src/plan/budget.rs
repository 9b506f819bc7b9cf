//! Budget: how much work planning may do, and what it left out.
//!
//! A schedule with fewer XORs only pays if finding it takes less time than it saves. Every
//! algorithm that takes more than time proportional to the equations (searching pairs, eliminating
//! unknowns, refining) therefore draws on one [`Budget`]. When too little of the budget is left, a
//! simpler algorithm that takes time proportional to the equations is used instead, and the budget
//! notes what was cut ([`Cut`]).
//!
//! Work is counted in *steps*, not in seconds, so that the same question has the same plan on every
//! machine. A step is one operation on a 64-bit word of a bit set, or one look at a number in a
//! list. It takes about a nanosecond.
//!
//! ```text
//! steps = min(STEPS_A_SOURCE · sources, MOST, LEAST + bytes saved / BYTES_A_STEP)
//! ```
//!
//! The last term only counts if the caller knows how many bytes are to be processed
//! ([`PlanOptions::bytes`](crate::plan::PlanOptions::bytes)). Otherwise the question is assumed to
//! be asked again and again.

use std::fmt;

/// Upper bound on the steps for one question, about 0.2 seconds.
const MOST: u64 = 1 << 27;

/// Steps that a question may take for any number of bytes, unless it is tiny: about a millisecond.
const LEAST: u64 = 1 << 20;

/// Upper bound on the steps for each source in the equations. Refining 10+4, which has 266 sources,
/// for 400 rounds takes a third of it.
const STEPS_A_SOURCE: u64 = 1 << 18;

/// Number of bytes of XOR that a step must save to pay. A step takes a nanosecond; in that time a
/// core XORs about 16 bytes that come from the cache.
const BYTES_A_STEP: u64 = 16;

/// A part of planning that was left out because the budget did not suffice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Cut {
    /// The search for a smaller set of cells to read.
    Reads,
    /// Following the code's own equations after every equation has at least two unknowns.
    Structure,
    /// Expressing each lost cell by cells at hand.
    Elimination,
    /// Choosing the pivots that cause the least fill-in.
    Pivots,
    /// Shortening every set of equations that was found; only the one with the fewest sources was
    /// shortened.
    Alternatives,
    /// Common pairs across all rows. Rows were shortened group by group, or left as they are.
    Pairs,
    /// Some or all rounds of refining.
    Refining,
}

impl Cut {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reads => "reads",
            Self::Structure => "structure",
            Self::Elimination => "elimination",
            Self::Pivots => "pivots",
            Self::Alternatives => "alternatives",
            Self::Pairs => "pairs",
            Self::Refining => "refining",
        }
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An account of planning: the steps allowed, the steps taken, and the parts left out.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
#[non_exhaustive]
pub struct Account {
    /// Number of steps allowed.
    pub budget: u64,
    /// Number of steps taken, including work that cannot be left out.
    pub spent: u64,
    /// The parts of planning that were left out, each listed once.
    pub cuts: Vec<Cut>,
    /// Whether the schedule comes from the list of those that were refined beforehand, for common
    /// codes.
    pub is_known: bool,
}

/// A number of steps to draw on.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    account: Account,
    left: u64,
}

impl Budget {
    /// Returns a budget of `steps` steps.
    pub(crate) fn new(steps: u64) -> Self {
        Self { account: Account { budget: steps, ..Account::default() }, left: steps }
    }

    /// Returns a budget that does not run out, for passes that are called directly.
    pub(crate) fn unlimited() -> Self {
        Self::new(u64::MAX)
    }

    /// Returns the budget for equations of `sources` sources over `data` data cells. `bytes` is the
    /// number of bytes of data to process, if known.
    pub(crate) fn for_program(sources: usize, data: usize, bytes: Option<u64>) -> Self {
        let size = (sources as u64).saturating_mul(STEPS_A_SOURCE).min(MOST);
        let Some(bytes) = bytes else { return Self::new(size) };
        // Each data cell is in `sources / data` operations; at best half of them are saved.
        let xored = u128::from(bytes) * sources as u128 / data.max(1) as u128 / 2;
        let gain = u64::try_from(xored / u128::from(BYTES_A_STEP)).unwrap_or(u64::MAX);
        Self::new(size.min(gain.saturating_add(LEAST)))
    }

    /// Number of steps left.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// Takes `steps` steps for optional work. If fewer are left, takes none and returns false.
    pub(crate) fn draw(&mut self, steps: u64) -> bool {
        let left = self.left.checked_sub(steps);
        if let Some(left) = left {
            self.left = left;
            self.account.spent = self.account.spent.saturating_add(steps);
        }
        left.is_some()
    }

    /// Takes `steps` steps for work that has been done or must be done, even if fewer are left.
    pub(crate) fn spend(&mut self, steps: u64) {
        self.left = self.left.saturating_sub(steps);
        self.account.spent = self.account.spent.saturating_add(steps);
    }

    /// Notes that a part of planning is left out.
    pub(crate) fn cut(&mut self, cut: Cut) {
        if !self.account.cuts.contains(&cut) {
            self.account.cuts.push(cut);
        }
    }

    /// Runs `work` with a share of the remaining steps: one part in `parts`.
    pub(crate) fn share<T>(&mut self, parts: u64, work: impl FnOnce(&mut Self) -> T) -> T {
        let kept = self.left - self.left / parts.max(1);
        self.left -= kept;
        let result = work(self);
        self.left += kept;
        result
    }

    /// Returns the account: the steps allowed, the steps taken, and the parts left out.
    pub(crate) fn into_account(mut self) -> Account {
        self.account.cuts.sort_unstable();
        self.account
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_that_are_drawn_are_gone() {
        let mut budget = Budget::new(10);
        assert!(budget.draw(4) && !budget.draw(7) && budget.draw(6));
        assert_eq!(budget.left(), 0);
        budget.spend(5);
        budget.cut(Cut::Refining);
        budget.cut(Cut::Pairs);
        budget.cut(Cut::Refining);
        let account = budget.into_account();
        assert_eq!((account.budget, account.spent), (10, 15));
        assert_eq!(account.cuts, [Cut::Pairs, Cut::Refining]);
    }

    #[test]
    fn shares_leave_the_rest() {
        let mut budget = Budget::new(100);
        assert!(!budget.share(4, |share| share.draw(26)));
        assert!(budget.share(4, |share| share.draw(25)));
        assert_eq!(budget.left(), 75);
    }

    #[test]
    fn bytes_and_size_limit() {
        let steps = |sources, bytes| Budget::for_program(sources, 40, bytes).left();
        assert_eq!(steps(1 << 20, None), MOST);
        assert_eq!(steps(10, None), 10 * STEPS_A_SOURCE);
        assert_eq!(steps(266, Some(1)), LEAST);
        assert_eq!(steps(266, Some(u64::MAX)), steps(266, None));
        assert!(steps(266, Some(64 << 20)) > 8 * LEAST);
    }
}
