//! Budget: how much work planning may do, and what it left out.
//!
//! A schedule with fewer XORs only pays if finding it takes less time than it saves. Whatever takes more
//! than time proportional to the equations (searching pairs, eliminating unknowns, refining) therefore
//! draws on one [`Budget`]. When an algorithm finds too little left, it does something that takes time
//! proportional to the equations instead, and the budget notes what was cut ([`Cut`]).
//!
//! Work is counted in *steps*, not in seconds, so that the same question has the same plan on every
//! machine. A step is one operation on a 64-bit word of a bit set, or one look at a number in a list. It
//! takes about a nanosecond.
//!
//! ```text
//! steps = least(STEPS_A_SOURCE · sources, MOST, LEAST + bytes saved / BYTES_A_STEP)
//! ```
//!
//! The last term only counts if the caller knows how many bytes are to be processed
//! ([`PlanOptions::bytes`](crate::plan::PlanOptions::bytes)). Otherwise the question is one that comes up
//! again and again.

use std::fmt;

/// The most steps that one question may take: some 0.2 seconds.
const MOST: u64 = 1 << 27;

/// The steps that a question may take whatever the number of bytes, unless it is tiny: a millisecond.
const LEAST: u64 = 1 << 20;

/// The most steps for each source in the equations. Refining 10+4, of 266 sources, for 400 rounds takes
/// a third of it.
const STEPS_A_SOURCE: u64 = 1 << 18;

/// How many bytes of XOR have to be saved for a step to pay. A step takes a nanosecond; in that time a
/// core XORs some 16 bytes that come from the cache.
const BYTES_A_STEP: u64 = 16;

/// What planning left out because its budget did not suffice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Cut {
    /// Looking for fewer cells to read.
    Reads,
    /// Following the code's own equations past the point where no equation has a single unknown.
    Structure,
    /// Expressing each lost cell by cells at hand.
    Elimination,
    /// Choosing pivots that fill in least.
    Pivots,
    /// Shortening every set of equations that was found; only the one with the fewest sources was.
    Alternatives,
    /// Common pairs across all rows. Rows were shortened group by group, or as they stand.
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

/// What planning was allowed, what it took and what it left out.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
pub struct Account {
    /// The steps that could be drawn.
    pub budget: u64,
    /// The steps that were taken, work that cannot be left out included.
    pub spent: u64,
    /// What was left out, each kind once.
    pub cuts: Vec<Cut>,
}

/// Steps to draw on.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    account: Account,
    left: u64,
}

impl Budget {
    /// A budget of a number of steps.
    pub(crate) fn new(steps: u64) -> Self {
        Self { account: Account { budget: steps, ..Account::default() }, left: steps }
    }

    /// A budget that does not run out, for passes that are asked for by themselves.
    pub(crate) fn unlimited() -> Self {
        Self::new(u64::MAX)
    }

    /// The budget for equations of `sources` sources over `data` data cells, where `bytes` bytes of data
    /// are to be processed.
    pub(crate) fn for_program(sources: usize, data: usize, bytes: Option<u64>) -> Self {
        let size = (sources as u64).saturating_mul(STEPS_A_SOURCE).min(MOST);
        let Some(bytes) = bytes else { return Self::new(size) };
        // Each data cell is in `sources / data` operations; half of them are saved at best.
        let xored = u128::from(bytes) * sources as u128 / data.max(1) as u128 / 2;
        let gain = u64::try_from(xored / u128::from(BYTES_A_STEP)).unwrap_or(u64::MAX);
        Self::new(size.min(gain.saturating_add(LEAST)))
    }

    /// The steps that are left.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// Takes steps for work that need not be done. Takes none and returns false if there are not as many.
    pub(crate) fn draw(&mut self, steps: u64) -> bool {
        let left = self.left.checked_sub(steps);
        if let Some(left) = left {
            self.left = left;
            self.account.spent = self.account.spent.saturating_add(steps);
        }
        left.is_some()
    }

    /// Takes steps for work that has been done or has to be, as many as it is.
    pub(crate) fn spend(&mut self, steps: u64) {
        self.left = self.left.saturating_sub(steps);
        self.account.spent = self.account.spent.saturating_add(steps);
    }

    /// Notes what is left out.
    pub(crate) fn cut(&mut self, cut: Cut) {
        if !self.account.cuts.contains(&cut) {
            self.account.cuts.push(cut);
        }
    }

    /// Runs `work` on a part of what is left: one of `parts`.
    pub(crate) fn share<T>(&mut self, parts: u64, work: impl FnOnce(&mut Self) -> T) -> T {
        let kept = self.left - self.left / parts.max(1);
        self.left -= kept;
        let result = work(self);
        self.left += kept;
        result
    }

    /// What was allowed, taken and left out.
    pub(crate) fn into_account(mut self) -> Account {
        self.account.cuts.sort_unstable();
        self.account
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_drawn_is_gone() {
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
