//! Simulated annealing over the points, as in the dissertation's section 3.2.1.
//!
//! A walk changes one point at a time. A worse successor is accepted with a probability that starts
//! at [`ACCEPT`] and falls as e^(-ΔT) with the steps T. A walk ends after [`PATIENCE`] steps
//! without improvement, and another begins from random points, until the search is over. Several
//! walkers run at once, each with its own part of the seed.

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::plan::chance::Chance;
use crate::plan::cost::{Cost, Figure};
use crate::plan::search::points::Points;
use crate::plan::search::{Found, Run};

/// Number of walkers, whatever the number of threads.
pub(super) const WALKERS: usize = 8;

/// Initial probability of accepting a worse successor.
const ACCEPT: f64 = 0.3;

/// The annealing factor Δ, by which that probability falls with every step.
const COOLING: f64 = 0.02;

/// Number of steps without improvement after which a walk ends: the dissertation's S.
const PATIENCE: usize = 250;

pub(super) fn search(run: &Run<'_>) -> Result<Found> {
    let walks = (0..WALKERS).into_par_iter().map(|walker| walk(run, walker));
    let best = walks.collect::<Result<Vec<_>>>()?.into_iter().flatten().min_by_key(|best| best.0);
    let (_, cost, points) = best.ok_or_else(nothing)?;
    Ok(run.found(run.matrix(&points.used)?, cost))
}

/// Returns the error for a search that ended before its first evaluation.
pub(super) fn nothing() -> Error {
    Error::parameters("the search ended before a matrix was looked at; give it more evaluations")
}

type Best = (Figure, Cost, Points);

/// Returns the best points that one walker finds.
fn walk(run: &Run<'_>, walker: usize) -> Result<Option<Best>> {
    let mut chance = Chance::of_part(run.seed, walker);
    let mut best: Option<Best> = None;
    let mut done = 0;
    while !run.is_over(done, walker, WALKERS) {
        let mut here = random(run, &mut chance)?;
        done += 1;
        let (mut idle, mut steps) = (0, 0);
        while idle < PATIENCE && !run.is_over(done, walker, WALKERS) {
            let mut points = here.2.clone();
            points.change_one(&mut chance);
            let next = evaluated(run, points)?;
            (done, idle, steps) = (done + 1, idle + 1, steps + 1);
            if next.0 < here.0 {
                idle = 0;
            }
            if next.0 <= here.0 || chance.happens(ACCEPT * (-COOLING * f64::from(steps)).exp()) {
                keep_best(&mut best, &next);
                here = next;
            }
        }
        keep_best(&mut best, &here);
    }
    Ok(best)
}

fn keep_best(best: &mut Option<Best>, candidate: &Best) {
    if best.as_ref().is_none_or(|best| candidate.0 < best.0) {
        *best = Some(candidate.clone());
    }
}

fn random(run: &Run<'_>, chance: &mut Chance) -> Result<Best> {
    let count = run.problem.k + run.problem.m;
    evaluated(run, Points::random(count, run.elements.size(), chance))
}

fn evaluated(run: &Run<'_>, points: Points) -> Result<Best> {
    let (figure, cost) = run.evaluate(run.matrix(&points.used)?.symbols()?.parity(), Some(0));
    Ok((figure, cost, points))
}
