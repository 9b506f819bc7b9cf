//! Reducing: the pass that the options name, over rows as a whole or in parts, and refining as long
//! as that pays.

use crate::plan::budget::{Budget, Cut};
use crate::plan::cost::Objective;
#[cfg(feature = "research")]
use crate::plan::optimise::matching::{self, Preference};
use crate::plan::optimise::parts::Parts;
use crate::plan::optimise::refine::{self, Effort};
use crate::plan::optimise::rows::Rows;
use crate::plan::optimise::{fuse, groups, slp, smart};
use crate::plan::options::{Pass, PlanOptions};

/// Total number of sources that refining may process for a question that is asked again and again,
/// such as encoding; takes some tens of milliseconds.
const REFINE_ENCODE: usize = 100_000;

/// Total number of sources that refining may process for a question that is asked once, such as
/// decoding; takes a few tenths of a millisecond.
const REFINE_ONCE: usize = 1_000;

/// Upper bound on the rounds of refining, unless the caller asks for more.
const REFINE_ROUNDS: usize = 400;

/// Seed that decides between equals in every plan.
const SEED: u64 = 1;

/// The amount of refining.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Refining {
    /// The number of rounds that the caller asked for.
    Asked(usize),
    /// The number of rounds that process this number of sources in total, while the budget lasts.
    Pays(usize),
}

impl Refining {
    /// Returns the amount of refining: the rounds that the options state. By default, the amount
    /// that pays, which depends on whether the question is asked again and again, or once.
    pub(crate) fn of(options: PlanOptions, is_asked_again: bool) -> Self {
        match options.rounds {
            Some(rounds) => Self::Asked(rounds),
            None if is_asked_again => Self::Pays(REFINE_ENCODE),
            None => Self::Pays(REFINE_ONCE),
        }
    }

    /// Returns the number of rounds over rows that have this number of sources together.
    fn rounds(self, sources: usize) -> usize {
        match self {
            Self::Asked(rounds) => rounds,
            Self::Pays(most) => (most / sources.max(1)).min(REFINE_ROUNDS),
        }
    }
}

/// Returns the number of rounds of refining that pay for encoding.
#[cfg(feature = "research")]
pub(crate) fn rounds_for_encoding(sources: usize) -> usize {
    Refining::Pays(REFINE_ENCODE).rounds(sources)
}

/// Shortens rows by the pass that the options name.
pub(crate) fn reduce_rows(
    rows: &mut Rows,
    options: PlanOptions,
    refining: Refining,
    budget: &mut Budget,
) {
    let steps = match options.pass {
        Pass::Direct | Pass::Slp => 0,
        Pass::Smart => smart::steps(rows),
        #[cfg(feature = "research")]
        Pass::Unweighted | Pass::Weighted => matching::steps(rows),
    };
    if !budget.draw(steps) {
        return budget.cut(Cut::Pairs);
    }
    match options.pass {
        Pass::Direct => {}
        Pass::Smart => smart::from_earlier(rows),
        #[cfg(feature = "research")]
        Pass::Unweighted => matching::extract_matchings(rows, Preference::None),
        #[cfg(feature = "research")]
        Pass::Weighted => matching::extract_matchings(rows, Preference::Sparse),
        Pass::Slp => {
            let mut parts = Parts::of(rows);
            let sources = parts.distinct.iter().flat_map(Rows::iter).map(Vec::len).sum();
            let count = parts.distinct.len();
            // Small parts come first, so that the large ones can use the budget that is left.
            let mut by_size: Vec<&mut Rows> = parts.distinct.iter_mut().collect();
            by_size.sort_by_key(|part| part.iter().map(Vec::len).sum::<usize>());
            for (number, part) in by_size.into_iter().enumerate() {
                budget.share((count - number) as u64, |share| {
                    extract(part, options.objective, share);
                    refine_rows(part, options.objective, refining, sources, share);
                });
            }
            *rows = parts.together();
            fuse::fuse(rows, quick(options.objective));
        }
    }
}

/// Returns the objective used for shortening: the given one, or `Total` if the given one is slow to
/// count.
fn quick(objective: Objective) -> Objective {
    match objective {
        Objective::Fused(_) => Objective::Total,
        other => other,
    }
}

/// Extracts common pairs; in groups of rows if doing so for all rows exceeds the budget.
fn extract(rows: &mut Rows, objective: Objective, budget: &mut Budget) {
    let is_whole = slp::steps(rows) <= budget.left();
    let is_done = match is_whole {
        true => slp::extract_pairs(rows, None, budget),
        false => budget.share(2, |half| groups::extract_groups(rows, half)),
    };
    if !is_whole || !is_done {
        budget.cut(Cut::Pairs);
    }
    fuse::fuse(rows, quick(objective));
}

/// Refines rows, first for an objective that is quick to count. All rows that are refined for the
/// same question have `sources` sources together.
fn refine_rows(
    rows: &mut Rows,
    objective: Objective,
    refining: Refining,
    sources: usize,
    budget: &mut Budget,
) {
    let rounds = refining.rounds(sources);
    let mut asked = matches!(refining, Refining::Asked(_)).then(Budget::unlimited);
    let effort = Effort { objective: quick(objective), rounds, seed: SEED };
    let draws = asked.as_mut().unwrap_or(budget);
    let mut is_done = refine::refine(rows, effort, draws);
    if objective != effort.objective {
        is_done &= refine::refine(rows, Effort { objective, ..effort }, draws);
    }
    if !is_done {
        budget.cut(Cut::Refining);
    }
    if let Some(asked) = asked {
        budget.spend(asked.into_account().spent);
    }
}
