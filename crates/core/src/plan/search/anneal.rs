//! Simulated annealing over the points, as in the dissertation's section 3.2.1.
//!
//! A walk changes one point at a time. A worse successor is accepted with a probability that starts
//! at `accept` and falls as e^(-ΔT) with the steps T, where Δ is `cooling`. A walk ends if its
//! minimum has not changed for `patience` steps, and another begins from random points, until the
//! search is over. Several walkers run at once, each with its own part of the seed.

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::plan::chance::Chance;
use crate::plan::cost::{Cost, Figure};
use crate::plan::search::points::Points;
use crate::plan::search::{FoundMatrix, SearchRun, check_patience, check_rate};

/// Number of walkers, whatever the number of threads.
pub(super) const WALKERS: usize = 8;

/// Parameters of simulated annealing.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Annealing {
    /// Initial probability of accepting a worse successor, from 0 to 1.
    pub accept: f64,
    /// The annealing factor Δ, by which that probability falls with every step.
    pub cooling: f64,
    /// Number of steps without a new minimum after which a walk ends: the dissertation's S.
    pub patience: usize,
}

impl Default for Annealing {
    fn default() -> Self {
        Self { accept: 0.3, cooling: 0.02, patience: 250 }
    }
}

impl Annealing {
    /// # Errors
    /// If a parameter is out of range.
    pub(super) fn check(&self) -> Result<()> {
        check_rate("the initial rate of acceptance", self.accept)?;
        check_patience(self.patience)?;
        if self.cooling >= 0.0 && self.cooling.is_finite() {
            return Ok(());
        }
        let cooling = self.cooling;
        Err(Error::parameters(format!(
            "the annealing factor must be a finite number of at least 0; got {cooling}"
        )))
    }
}

pub(super) fn search(run: &SearchRun<'_>, annealing: Annealing) -> Result<FoundMatrix> {
    let walks = (0..WALKERS).into_par_iter().map(|walker| walks(run, annealing, walker));
    let best = walks.collect::<Result<Vec<_>>>()?.into_iter().flatten().min_by_key(|best| best.0);
    let (_, cost, points) = best.ok_or_else(nothing)?;
    Ok(run.found(run.matrix(&points.used)?, cost))
}

/// Returns the error for a search that ended before its first evaluation.
pub(super) fn nothing() -> Error {
    Error::parameters(
        "the search ended before a matrix was looked at; give it more evaluations or more time",
    )
}

type Best = (Figure, Cost, Points);

/// Returns the best points that one walker finds in a series of walks.
fn walks(run: &SearchRun<'_>, annealing: Annealing, walker: usize) -> Result<Option<Best>> {
    let mut chance = Chance::of_part(run.seed, walker);
    let (mut best, mut done) = (None, 0);
    while !run.is_over(done, walker, WALKERS) {
        let found = walk(run, annealing, walker, &mut chance, &mut done)?;
        keep_best(&mut best, &found);
        if run.ends_converged() {
            break;
        }
    }
    Ok(best)
}

/// Returns the best points of a walk. `done` counts the schedules that the walker has made.
fn walk(
    run: &SearchRun<'_>,
    annealing: Annealing,
    walker: usize,
    chance: &mut Chance,
    done: &mut usize,
) -> Result<Best> {
    let mut here = random(run, chance)?;
    let mut best = here.clone();
    *done += 1;
    let (mut idle, mut steps) = (0, 0);
    while idle < annealing.patience && !run.is_over(*done, walker, WALKERS) {
        let mut points = here.2.clone();
        points.change_one(chance);
        let next = evaluated(run, points)?;
        (*done, idle, steps) = (*done + 1, idle + 1, steps + 1);
        if next.0 < best.0 {
            best = next.clone();
            idle = 0;
        }
        let rate = annealing.accept * (-annealing.cooling * f64::from(steps)).exp();
        if next.0 <= here.0 || chance.happens(rate) {
            here = next;
        }
    }
    Ok(best)
}

fn keep_best(best: &mut Option<Best>, candidate: &Best) {
    if best.as_ref().is_none_or(|best| candidate.0 < best.0) {
        *best = Some(candidate.clone());
    }
}

fn random(run: &SearchRun<'_>, chance: &mut Chance) -> Result<Best> {
    let count = run.problem.k + run.problem.m;
    evaluated(run, Points::random(count, run.elements.size(), chance))
}

fn evaluated(run: &SearchRun<'_>, points: Points) -> Result<Best> {
    let (figure, cost) = run.evaluate(run.matrix(&points.used)?.symbols()?.parity(), Some(0));
    Ok((figure, cost, points))
}
