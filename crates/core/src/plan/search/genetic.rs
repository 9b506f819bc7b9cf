//! The genetic algorithm over the points, as in the dissertation's section 3.2.1.
//!
//! A person is a vector of points. In each generation the best become parents, pairs of parents
//! have children with some probability, and everyone may mutate in one point. If there are too many
//! people, some of the worst are removed at random. The decisive choice is how a child is formed
//! ([`Crossover`]). The hypothesis is that some elements go well together, so a child first takes
//! the points that both parents have.

use std::collections::HashSet;

use rayon::prelude::*;

use crate::error::Result;
use crate::plan::chance::Chance;
use crate::plan::cost::{Cost, Figure};
use crate::plan::search::anneal::nothing;
use crate::plan::search::points::Points;
use crate::plan::search::{Found, Run};

/// The source of a child's points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Crossover {
    /// Any points that at least one parent has.
    Random,
    /// First those that both parents have, in their places, then any that one parent has.
    #[default]
    CommonFirst,
}

/// Largest number of people.
const POPULATION: usize = 60;

/// Fraction of the people that become parents, and of those from which people are removed.
const SELECT: f64 = 0.3;

/// Probability that two parents have a child in a generation.
const CROSSOVER: f64 = 0.2;

/// Probability that a person mutates in a generation.
const MUTATION: f64 = 0.2;

struct Person {
    figure: Figure,
    cost: Cost,
    points: Points,
}

pub(super) fn search(run: &Run<'_>, crossover: Crossover) -> Result<Found> {
    let mut chance = Chance::new(run.seed);
    let count = run.problem.k + run.problem.m;
    let first = (0..POPULATION).map(|_| Points::random(count, run.elements.size(), &mut chance));
    let mut done = 0;
    let mut people = born(run, first.collect(), &mut done)?;
    while !people.is_empty() && !run.is_over(done, 0, 1) {
        let born = born(run, next(run, &people, crossover, &mut chance), &mut done)?;
        people.extend(born);
        people.sort_by(|a, b| (a.figure, &a.points.used).cmp(&(b.figure, &b.points.used)));
        people.dedup_by(|a, b| a.points.used == b.points.used);
        weed(&mut people, &mut chance);
    }
    let best = people.into_iter().min_by_key(|person| person.figure).ok_or_else(nothing)?;
    Ok(run.found(run.matrix(&best.points.used)?, best.cost))
}

/// Evaluates people, as many as the limit allows.
fn born(run: &Run<'_>, mut points: Vec<Points>, done: &mut usize) -> Result<Vec<Person>> {
    let left = (0..points.len()).take_while(|more| !run.is_over(*done + more, 0, 1)).count();
    points.truncate(left);
    *done += left;
    let person = |points: Points| {
        let (figure, cost) = run.evaluate(run.matrix(&points.used)?.symbols()?.parity(), Some(0));
        Ok(Person { figure, cost, points })
    };
    points.into_par_iter().map(person).collect()
}

/// Returns the children and mutants of a generation. A mutant is a new person, so the best are
/// kept.
fn next(
    run: &Run<'_>,
    people: &[Person],
    crossover: Crossover,
    chance: &mut Chance,
) -> Vec<Points> {
    let parents = &people[..selected(people.len())];
    let mut next = Vec::new();
    for (index, mother) in parents.iter().enumerate() {
        for father in &parents[..index] {
            if chance.happens(CROSSOVER) {
                next.push(child(run, &mother.points, &father.points, crossover, chance));
            }
        }
    }
    for person in people {
        if chance.happens(MUTATION) {
            let mut mutant = person.points.clone();
            mutant.change_one(chance);
            next.push(mutant);
        }
    }
    next
}

fn selected(people: usize) -> usize {
    ((people as f64 * SELECT).ceil() as usize).clamp(1, people)
}

fn child(
    run: &Run<'_>,
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

/// Removes people at random from the worst until at most [`POPULATION`] are left.
fn weed(people: &mut Vec<Person>, chance: &mut Chance) {
    while people.len() > POPULATION {
        let worst = selected(people.len());
        people.remove(people.len() - 1 - chance.below(worst));
    }
}
