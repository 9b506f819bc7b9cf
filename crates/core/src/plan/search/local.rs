//! Search over points and scalings: annealing on ones, then descent on schedules.
//!
//! With the first parity plain and the other rows scaled, a Cauchy matrix is, after a Möbius map
//! that sends the first parity point to infinity,
//!
//! > row 0: 1; row i: r_i / (x_j + y_i)
//!
//! for distinct x_j and y_i (at most all elements but one) and nonzero r_i. Every scaling that
//! keeps the first parity plain has this form, including normalisation's. So this searches more
//! matrices than a search over points alone, and does not search the same matrix again under
//! translations of the first point.
//!
//! Ones are counted in a microsecond and predict the schedule well. So annealing on ones comes
//! first, again and again from random starts. The best matrix of each walk is then improved one
//! change at a time. One descent judges changes by greedy schedules, the next one by schedules that
//! are refined a little, because sometimes the first kind leads further and sometimes the second.
//! At the end of a descent, a schedule is made with full effort.

use rayon::prelude::*;

use crate::define::cauchy::CauchyMatrix;
use crate::error::{Error, Result};
use crate::plan::chance::Chance;
use crate::plan::cost::{Cost, Figure};
use crate::plan::search::anneal::{WALKERS, nothing};
use crate::plan::search::elements::Elements;
use crate::plan::search::{FoundMatrix, SearchRun};

/// Number of steps of annealing on ones.
const STEPS: usize = 20_000;

/// Number of schedules without improvement after which a descent ends.
const PATIENCE: usize = 120;

/// Numbers of rounds of refining that descents use in turn.
const ROUNDS: [usize; 2] = [0, 40];

/// Upper bound on a candidate's ones, as a multiple of its origin's; candidates with more are not
/// planned.
const SLACK: f64 = 1.04;

pub(super) fn search(run: &SearchRun<'_>) -> Result<FoundMatrix> {
    let walks = (0..WALKERS).into_par_iter().filter_map(|walker| walk(run, walker));
    let best = walks.collect::<Vec<_>>().into_iter().min_by_key(|best| best.figure);
    let best = best.ok_or_else(nothing)?;
    Ok(run.found(best.matrix.cauchy(run)?, best.cost))
}

struct PlannedMatrix {
    figure: Figure,
    cost: Cost,
    matrix: Normal,
}

/// Returns the best matrix that one walker finds.
fn walk(run: &SearchRun<'_>, walker: usize) -> Option<PlannedMatrix> {
    let mut chance = Chance::of_part(run.seed, walker);
    let mut best: Option<PlannedMatrix> = None;
    let mut done = 0;
    // A search that ends converged makes one descent of each kind.
    let descents = if run.ends_converged() { ROUNDS.len() } else { usize::MAX };
    for rounds in ROUNDS.into_iter().cycle().take(descents) {
        if run.is_over(done, walker, WALKERS) {
            break;
        }
        let start = annealed(run, &mut chance);
        let mut descent = Descent { run, walker, rounds, done };
        let end = descent.go(start, &mut chance);
        let end = descent.planned(end, None);
        done = descent.done;
        if best.as_ref().is_none_or(|best| end.figure < best.figure) {
            best = Some(end);
        }
    }
    best
}

/// A descent.
struct Descent<'a> {
    run: &'a SearchRun<'a>,
    walker: usize,
    rounds: usize,
    /// Number of schedules made by the walker.
    done: usize,
}

impl Descent<'_> {
    fn go(&mut self, start: Normal, chance: &mut Chance) -> Normal {
        let elements = &self.run.elements;
        let mut here = self.planned(start, Some(self.rounds));
        let mut idle = 0;
        while idle < PATIENCE && !self.run.is_over(self.done, self.walker, WALKERS) {
            idle += 1;
            let mut matrix = here.matrix.clone();
            matrix.change(elements, chance);
            if f64::from(matrix.ones(elements)) > SLACK * f64::from(here.matrix.ones(elements)) {
                continue;
            }
            let next = self.planned(matrix, Some(self.rounds));
            if next.figure < here.figure {
                idle = 0;
            }
            if next.figure <= here.figure {
                here = next;
            }
        }
        here.matrix
    }

    fn planned(&mut self, matrix: Normal, rounds: Option<usize>) -> PlannedMatrix {
        self.done += 1;
        let (figure, cost) = self.run.evaluate(&matrix.coefficients(&self.run.elements), rounds);
        PlannedMatrix { figure, cost, matrix }
    }
}

/// Returns a matrix with few ones.
fn annealed(run: &SearchRun<'_>, chance: &mut Chance) -> Normal {
    let elements = &run.elements;
    let mut here = Normal::random(run.problem.k, run.problem.m, elements, chance);
    let mut ones = here.ones(elements);
    let (mut best, mut fewest) = (here.clone(), ones);
    for step in 0..STEPS {
        let temperature = f64::from(run.problem.w) * (1.0 - step as f64 / STEPS as f64);
        let mut next = here.clone();
        next.change(elements, chance);
        let next_ones = next.ones(elements);
        let worse = f64::from(next_ones) - f64::from(ones);
        if worse <= 0.0 || chance.happens((-worse / temperature).exp()) {
            (here, ones) = (next, next_ones);
            if ones < fewest {
                (best, fewest) = (here.clone(), ones);
            }
        }
    }
    best
}

/// A matrix in the form given at the top of this file; row 0 is not stored.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Normal {
    /// The points x_j, the points y_i, then all other elements, at least one.
    points: Vec<u32>,
    k: usize,
    /// The factors r_i.
    scale: Vec<u32>,
}

impl Normal {
    fn random(k: usize, m: usize, elements: &Elements, chance: &mut Chance) -> Self {
        let mut points: Vec<u32> = (0..elements.size() as u32).collect();
        chance.shuffle(&mut points);
        Self { points, k, scale: vec![1; m - 1] }
    }

    fn entry(&self, row: usize, column: usize, elements: &Elements) -> u32 {
        elements.divide(self.scale[row], self.points[column] ^ self.points[self.k + row])
    }

    /// Number of ones of all rows but the first.
    fn ones(&self, elements: &Elements) -> u32 {
        let row = |i: usize| (0..self.k).map(move |j| elements.ones(self.entry(i, j, elements)));
        (0..self.scale.len()).flat_map(row).sum()
    }

    fn coefficients(&self, elements: &Elements) -> Vec<Vec<u32>> {
        let row = |i: usize| (0..self.k).map(|j| self.entry(i, j, elements)).collect();
        [vec![1; self.k]].into_iter().chain((0..self.scale.len()).map(row)).collect()
    }

    /// Changes a point to another element (the two change places), or changes a scaling.
    fn change(&mut self, elements: &Elements, chance: &mut Chance) {
        let used = self.k + self.scale.len();
        let which = chance.below(used + self.scale.len());
        if which < used {
            let other = chance.below(self.points.len());
            self.points.swap(which, other);
        } else {
            self.scale[which - used] = 1 + chance.below(elements.size() - 1) as u32;
        }
    }

    /// Returns the matrix with finite points: x becomes 1 / (x + t) for an element t that is not a
    /// point, and the first parity point, infinity, becomes 0.
    fn cauchy(&self, run: &SearchRun<'_>) -> Result<CauchyMatrix> {
        let used = self.k + self.scale.len();
        let elements = &run.elements;
        let unused = self.points[used..].iter().min();
        let t = *unused.ok_or_else(|| Error::parameters("no element is left over"))?;
        let image = |point: &u32| u64::from(elements.divide(1, point ^ t));
        let (x, y) = self.points[..used].split_at(self.k);
        let points: Vec<u64> = x.iter().map(image).chain([0]).chain(y.iter().map(image)).collect();
        let scale = y.iter().zip(&self.scale).map(|(y, &r)| u64::from(elements.divide(r, y ^ t)));
        let rows: Vec<u64> = [1].into_iter().chain(scale).collect();
        CauchyMatrix::new(run.field, self.k, self.scale.len() + 1, &points)?.with_rows(&rows)
    }
}
