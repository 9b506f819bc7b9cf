//! The genetic algorithm over the points, as in the dissertation's section 3.2.1.
//!
//! An individual is a vector of points. In each generation the best become parents, pairs of
//! parents have children with some probability, and every individual may mutate in one point. If
//! there are too many individuals, some of the worst are removed at random. If the minimum has not
//! changed for `patience` generations, a new population begins, until the search is over. The
//! decisive choice is how a child is formed ([`Crossover`]). The hypothesis is that some elements
//! go well together, so a child first takes the points that both parents have.

use std::collections::HashSet;

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::plan::chance::Chance;
use crate::plan::cost::{Cost, Figure};
use crate::plan::search::anneal::nothing;
use crate::plan::search::points::Points;
use crate::plan::search::{Children, FoundMatrix, SearchRun, check_patience, check_rate};

/// The source of a child's points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Crossover {
    /// Any points that at least one parent has.
    Random,
    /// First the points that both parents have, in their places; then any points that one parent
    /// has.
    #[default]
    CommonFirst,
}

/// Parameters of the genetic algorithm.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Genetic {
    /// The source of a child's points.
    pub crossover: Crossover,
    /// Size of two groups, as a fraction of all individuals, above 0 and at most 1: the best
    /// individuals, who become parents, and the worst individuals, from whom some are removed at
    /// random.
    pub select: f64,
    /// Probability that two parents have a child in a generation, from 0 to 1.
    pub birth: f64,
    /// Probability that an individual mutates in a generation, from 0 to 1.
    pub mutation: f64,
    /// Largest number of individuals, from 2 to 1000.
    pub population: usize,
    /// Number of generations without a new minimum after which a population ends: the
    /// dissertation's S.
    pub patience: usize,
}

/// The largest population. In GF(2^12), the largest field of a search, an individual takes 16 KiB,
/// and there may be nine children for each individual.
const MOST_INDIVIDUALS: usize = 1000;

impl Default for Genetic {
    fn default() -> Self {
        let crossover = Crossover::default();
        Self { crossover, select: 0.3, birth: 0.2, mutation: 0.2, population: 60, patience: 50 }
    }
}

impl Genetic {
    /// # Errors
    /// If a parameter is out of range.
    pub(super) fn check(&self) -> Result<()> {
        check_rate("the fraction of individuals that become parents", self.select)?;
        check_rate("the probability of a child", self.birth)?;
        check_rate("the probability of a mutation", self.mutation)?;
        check_patience(self.patience)?;
        if self.select == 0.0 {
            return Err(Error::parameters(
                "the fraction of individuals that become parents must be above 0; got 0",
            ));
        }
        let population = self.population;
        if (2..=MOST_INDIVIDUALS).contains(&population) {
            return Ok(());
        }
        Err(Error::parameters(format!(
            "a population needs 2 to {MOST_INDIVIDUALS} individuals; got {population}"
        )))
    }

    /// Returns the number of parents among this many individuals, which is also the number of
    /// worst individuals from whom some are removed.
    fn selected(&self, individuals: usize) -> usize {
        ((individuals as f64 * self.select).ceil() as usize).clamp(1, individuals)
    }
}

struct Person {
    figure: Figure,
    cost: Cost,
    points: Points,
    /// Whether a child is better than at least one of its parents; `None` for individuals without
    /// parents.
    is_better: Option<bool>,
}

/// An individual that is not evaluated yet.
struct Unborn {
    points: Points,
    /// The figure of the worse parent, if there are parents.
    worse_parent: Option<Figure>,
}

impl Unborn {
    fn alone(points: Points) -> Self {
        Self { points, worse_parent: None }
    }
}

/// The schedules made so far, and the children.
#[derive(Default)]
struct ChildTally {
    done: usize,
    children: Children,
}

pub(super) fn search(run: &SearchRun<'_>, genetic: Genetic) -> Result<FoundMatrix> {
    let mut chance = Chance::new(run.seed);
    let mut tally = ChildTally::default();
    let mut best = population(run, genetic, &mut chance, &mut tally)?.ok_or_else(nothing)?;
    while !run.ends_converged()
        && let Some(other) = population(run, genetic, &mut chance, &mut tally)?
    {
        if other.figure < best.figure {
            best = other;
        }
    }
    let found = run.found(run.matrix(&best.points.used)?, best.cost);
    Ok(FoundMatrix { children: tally.children, ..found })
}

/// Returns the best individual of a population that begins with random points; `None` if the search
/// is over. `tally` counts the schedules and the children.
fn population(
    run: &SearchRun<'_>,
    genetic: Genetic,
    chance: &mut Chance,
    tally: &mut ChildTally,
) -> Result<Option<Person>> {
    let count = run.problem.k + run.problem.m;
    let random = |_| Unborn::alone(Points::random(count, run.elements.size(), chance));
    let first = (0..genetic.population).map(random).collect();
    let mut individuals = born(run, first, tally)?;
    let (mut least, mut idle) = (None, 0);
    while !individuals.is_empty() && idle < genetic.patience && !run.is_over(tally.done, 0, 1) {
        let next = next(run, &individuals, genetic, chance);
        // Without births and mutations, nothing can change.
        if next.is_empty() {
            break;
        }
        individuals.extend(born(run, next, tally)?);
        individuals.sort_by(|a, b| (a.figure, &a.points.used).cmp(&(b.figure, &b.points.used)));
        individuals.dedup_by(|a, b| a.points.used == b.points.used);
        weed(&mut individuals, genetic, chance);
        let now = individuals.first().map(|individual| individual.figure);
        idle = if now == least { idle + 1 } else { 0 };
        least = now;
    }
    Ok(individuals.into_iter().min_by_key(|individual| individual.figure))
}

/// Evaluates individuals until the limit is reached.
fn born(
    run: &SearchRun<'_>,
    mut unborn: Vec<Unborn>,
    tally: &mut ChildTally,
) -> Result<Vec<Person>> {
    let left = (0..unborn.len()).take_while(|more| !run.is_over(tally.done + more, 0, 1)).count();
    unborn.truncate(left);
    tally.done += left;
    let individual = |Unborn { points, worse_parent }: Unborn| {
        let (figure, cost) = run.evaluate(run.matrix(&points.used)?.symbols()?.parity(), Some(0));
        Ok(Person { figure, cost, points, is_better: worse_parent.map(|worse| figure < worse) })
    };
    let individuals = unborn.into_par_iter().map(individual).collect::<Result<Vec<_>>>()?;
    let children = individuals.iter().filter_map(|individual| individual.is_better);
    tally.children.born += children.clone().count();
    tally.children.better += children.filter(|&is_better| is_better).count();
    Ok(individuals)
}

/// Returns the children and mutants of a generation. A mutant is a new individual, so mutation
/// never changes the best individuals.
fn next(
    run: &SearchRun<'_>,
    individuals: &[Person],
    genetic: Genetic,
    chance: &mut Chance,
) -> Vec<Unborn> {
    let parents = &individuals[..genetic.selected(individuals.len())];
    let mut next = Vec::new();
    for (index, mother) in parents.iter().enumerate() {
        for father in &parents[..index] {
            if chance.happens(genetic.birth) {
                let crossover = genetic.crossover;
                next.push(Unborn {
                    points: child(run, &mother.points, &father.points, crossover, chance),
                    worse_parent: Some(mother.figure.max(father.figure)),
                });
            }
        }
    }
    for individual in individuals {
        if chance.happens(genetic.mutation) {
            let mut mutant = individual.points.clone();
            mutant.change_one(chance);
            next.push(Unborn::alone(mutant));
        }
    }
    next
}

fn child(
    run: &SearchRun<'_>,
    mother: &Points,
    father: &Points,
    crossover: Crossover,
    chance: &mut Chance,
) -> Points {
    let count = mother.used.len();
    let has = |parent: &Points| parent.used.iter().copied().collect::<HashSet<u32>>();
    let (mothers, fathers) = (has(mother), has(father));
    let mut places: Vec<Option<u32>> = match crossover {
        Crossover::Random => vec![None; count],
        Crossover::CommonFirst => {
            mother.used.iter().map(|point| fathers.contains(point).then_some(*point)).collect()
        }
    };
    let mut others: Vec<u32> = mothers.union(&fathers).copied().collect();
    others.retain(|point| !places.contains(&Some(*point)));
    others.sort_unstable();
    chance.shuffle(&mut others);
    for place in places.iter_mut().filter(|place| place.is_none()) {
        *place = others.pop();
    }
    Points::of(places.into_iter().flatten().collect(), run.elements.size())
}

/// Removes individuals at random from the worst until the population is small enough.
fn weed(individuals: &mut Vec<Person>, genetic: Genetic, chance: &mut Chance) {
    while individuals.len() > genetic.population {
        let worst = genetic.selected(individuals.len());
        individuals.remove(individuals.len() - 1 - chance.below(worst));
    }
}
