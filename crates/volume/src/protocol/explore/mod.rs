//! Exhaustive exploration of the protocol: every order in which the answers of nodes can arrive at
//! jobs that run at the same time, with crashes, failing requests, nodes that are out of reach, and
//! nodes that lose everything. The jobs are the machines of this crate.
//!
//! `docs/volumes.md` tells what was explored.

mod check;
mod job;
mod model;

use std::time::Instant;

use stateright::{Checker, HasDiscoveries, Model};

use job::Job::{Get, Inline, Promote, Put, Remove, Repair};
use model::{Budget, Mutation, World};

use crate::protocol::Kind;

const CALM: Budget = Budget { faults: 0, crashes: 0, outages: 0, losses: 0, days: 0 };

/// Explores a world completely, and expects it to be sound. Returns the number of states.
fn explore(world: World) -> usize {
    let began = Instant::now();
    let jobs = world.jobs.clone();
    let (nodes, budget) = (world.quorum.nodes(), world.budget);
    let checker = world.checker().threads(2).spawn_bfs().join();
    let states = checker.unique_state_count();
    println!("{nodes} nodes, {jobs:?}, {budget:?}: {states} states in {:?}", began.elapsed());
    checker.assert_properties();
    assert!(checker.is_done());
    states
}

/// Explores a world with a broken rule until something goes wrong. Returns the number of moves of
/// the shortest history that shows it, and what goes wrong.
fn flaw(world: World) -> (usize, &'static str) {
    let mutation = world.mutation;
    let when = HasDiscoveries::AnyFailures;
    let checker = world.checker().threads(1).finish_when(when).spawn_bfs().join();
    let (name, path) = checker.discoveries().into_iter().next().expect("the flaw is found");
    let states = path.clone().into_states();
    let flaw = states.last().and_then(|state| state.flaw).unwrap_or(name);
    let moves = path.into_actions();
    println!("{mutation:?}: {} moves: {flaw}", moves.len());
    moves.iter().for_each(|next| println!("  {next:?}"));
    (moves.len(), flaw)
}

/// A little of everything goes wrong.
const ROUGH: Budget = Budget { faults: 1, crashes: 1, outages: 1, losses: 1, days: 0 };
const CRASH: Budget = Budget { crashes: 1, ..CALM };
const FAULT: Budget = Budget { faults: 1, ..CALM };

#[test]
fn one_job_is_sound_whatever_goes_wrong() {
    for job in [Put, Inline, Remove, Promote, Repair, Get] {
        explore(World::new(3, &[job], ROUGH));
        explore(World::new(4, &[job], CRASH));
    }
}

#[test]
fn two_jobs_are_sound() {
    for jobs in [[Put, Put], [Put, Promote], [Put, Repair], [Remove, Put], [Promote, Repair]] {
        explore(World::new(3, &jobs, CRASH));
    }
    explore(World::new(3, &[Put, Put], FAULT));
    explore(World::new(3, &[Put, Get], Budget { faults: 1, crashes: 1, ..CALM }));
    explore(World::new(3, &[Inline, Repair], Budget { crashes: 1, losses: 1, ..CALM }));
}

#[test]
fn three_jobs_are_sound() {
    explore(World::new(3, &[Put, Promote, Repair], CALM));
}

#[test]
fn marks_of_removed_names_are_collected() {
    let day = Budget { days: 1, ..CALM };
    explore(World::new(3, &[Remove, Repair], day));
    explore(World::new(3, &[Repair, Inline], Budget { crashes: 1, faults: 1, ..day }).from(MARK));
}

/// A name that was removed.
const MARK: Option<Kind> = Some(Kind::Removed);

#[test]
fn broken_rules_are_found() {
    use Mutation::*;
    let faults = |faults| Budget { faults, ..CALM };
    let cases = [
        (World::new(3, &[Put, Get], faults(2)), SmallWrites),
        (World::new(3, &[Inline, Inline], faults(2)).from(None), SmallReads),
        (World::new(3, &[Put], CRASH), EarlyRemoval),
        (World::new(3, &[Put, Repair], faults(2)), RollBack),
        (World::new(3, &[Inline, Get], Budget { losses: 1, ..FAULT }), EmptyAnswers),
        (
            World::new(3, &[Repair, Inline], Budget { days: 1, faults: 1, ..CRASH }).from(MARK),
            NoClock,
        ),
    ];
    for (world, mutation) in cases {
        flaw(world.broken(mutation));
    }
}

/// Takes about half an hour.
#[test]
#[ignore = "explores tens of millions of states; scripts/test-soak runs it"]
fn larger_worlds_are_sound() {
    let day = Budget { days: 1, ..CALM };
    for jobs in [[Put, Put, Get], [Put, Put, Repair], [Put, Put, Promote], [Remove, Put, Repair]] {
        explore(World::new(3, &jobs, CALM));
    }
    explore(World::new(3, &[Put, Put], ROUGH));
    explore(World::new(3, &[Put, Promote, Repair], CRASH));
    explore(World::new(3, &[Put, Get, Repair], CRASH));
    explore(World::new(3, &[Remove, Repair, Inline], day));
    explore(World::new(4, &[Put, Put], CRASH));
    explore(World::new(4, &[Put, Repair], CRASH));
    flaw(World::new(3, &[Remove, Repair, Put], day).broken(Mutation::EarlyCollection));
}
