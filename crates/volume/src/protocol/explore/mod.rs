//! Exhaustive exploration of the protocol: every order in which the answers of nodes can arrive at
//! jobs that run at the same time, with crashes, failing requests, nodes that are out of reach, and
//! nodes that lose everything. The jobs are the machines of this crate.
//!
//! `docs/volumes.md` tells what was explored.

mod check;
mod job;
mod model;
mod world;

use std::collections::BTreeSet;
use std::time::Instant;

use stateright::{Checker, HasDiscoveries, Model, UniformChooser};

use world::Job::{Get, Inline, InlineNew, Promote, Put, PutMost, Remove, Repair, Rewrite, Scrub};
use world::{Misfortune, Mutation, World};

use crate::protocol::VersionKind;

const CALM: Misfortune = Misfortune { faults: 0, crashes: 0, outages: 0, losses: 0, days: 0 };

/// Explores a world completely, and expects it to be sound. Returns what jobs came to.
fn explore(world: World) -> BTreeSet<&'static str> {
    let began = Instant::now();
    let (jobs, reached) = (world.jobs.clone(), world.reached.clone());
    let (nodes, budget) = (world.quorum.nodes(), world.budget);
    let checker = world.checker().threads(2).spawn_dfs().join();
    let states = checker.unique_state_count();
    println!("{nodes} nodes, {jobs:?}, {budget:?}: {states} states in {:?}", began.elapsed());
    checker.assert_properties();
    assert!(checker.is_done());
    std::mem::take(&mut reached.lock().unwrap())
}

/// Follows random histories of all jobs at once, with all kinds of faults, through `states` states.
fn sample(nodes: usize, states: usize) {
    let budget = Misfortune { faults: 4, crashes: 2, outages: 2, losses: 1, days: 1 };
    let world = World::new(nodes, &[Put, Inline, Promote, Repair, Remove, Get, Rewrite], budget);
    let checker = world.checker().threads(2).target_state_count(states);
    let checker = checker.spawn_simulation(1, UniformChooser).join();
    println!("{nodes} nodes, random histories: {} states", checker.state_count());
    checker.assert_properties();
    assert!(checker.state_count() >= states);
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
const ROUGH: Misfortune = Misfortune { faults: 1, crashes: 1, outages: 1, losses: 1, days: 0 };
const CRASH: Misfortune = Misfortune { crashes: 1, ..CALM };
const OUTAGE: Misfortune = Misfortune { outages: 1, ..CALM };
const FAULT: Misfortune = Misfortune { faults: 1, ..CALM };

#[test]
fn small_worlds_are_sound_and_have_every_outcome() {
    let reached: BTreeSet<&str> = small_worlds().into_iter().flat_map(explore).collect();
    assert_eq!(reached, BTreeSet::from(OUTCOMES));
}

fn small_worlds() -> Vec<World> {
    let mut worlds = Vec::new();
    for job in [Put, PutMost, Inline, InlineNew, Remove, Promote, Repair, Rewrite, Scrub, Get] {
        worlds.push(World::new(3, &[job], ROUGH));
        worlds.push(World::new(4, &[job], CRASH));
    }
    for jobs in [
        [Put, Put],
        [Put, Promote],
        [Put, Repair],
        [Remove, Put],
        [Remove, Remove],
        [Promote, Repair],
        [Promote, Promote],
        [Put, Scrub],
        [Inline, Scrub],
        [Rewrite, Inline],
        [Rewrite, Rewrite],
        [Rewrite, Promote],
    ] {
        worlds.push(World::new(3, &jobs, CRASH));
    }
    worlds.push(World::new(4, &[PutMost], OUTAGE));
    for jobs in [&[Put][..], &[Inline, Get], &[Remove]] {
        worlds.push(World::new(4, jobs, CRASH).with_a_drained_node());
    }
    worlds.push(World::new(3, &[Put, Put], FAULT));
    worlds.push(World::new(3, &[Put, Get], Misfortune { faults: 1, ..CRASH }));
    worlds.push(World::new(3, &[Remove, Get], CALM));
    worlds.push(World::new(3, &[Inline, Repair], Misfortune { losses: 1, ..CRASH }));
    worlds.push(World::new(3, &[Remove, Repair], Misfortune { days: 1, ..CALM }));
    worlds.push(
        World::new(3, &[Repair, Inline], Misfortune { days: 1, faults: 1, ..CRASH }).from(MARK),
    );
    worlds.extend(worlds_without_an_object());
    worlds
}

/// Worlds whose name has no object at first.
fn worlds_without_an_object() -> Vec<World> {
    let mut worlds = vec![
        World::new(3, &[Remove], CALM).from(MARK),
        World::new(3, &[Repair], CALM).from(None),
        World::new(3, &[Inline, InlineNew], CRASH).from(None),
        World::new(3, &[InlineNew, Remove], CRASH).from(MARK),
    ];
    // Their manifests are on different nodes, and the reader asks one node after the other.
    for jobs in [[Inline, Inline, Get], [Inline, Remove, Get]] {
        worlds.push(World::new(3, &jobs, FAULT).from(None));
    }
    worlds
}

const OUTCOMES: [&str; 21] = [
    "get: found and read",
    "get: not found",
    "get: replaced while it was read",
    "get: unsure",
    "promote: incomplete",
    "promote: promoted",
    "promote: promoted, something owed",
    "promote: superseded",
    "promote: unsure",
    "put: committed",
    "put: committed, something owed",
    "put: open",
    "put: refused",
    "put: superseded",
    "remove: not found",
    "repair: collected",
    "repair: nothing",
    "repair: repaired",
    "repair: repaired, something owed",
    "repair: superseded",
    "repair: unsure",
];

#[test]
fn random_histories_of_many_jobs_are_sound() {
    sample(3, 50_000);
    sample(4, 50_000);
}

/// A name that was removed.
const MARK: Option<VersionKind> = Some(VersionKind::Removed);

#[test]
fn broken_rules_are_found() {
    use Mutation::*;
    let faults = |faults| Misfortune { faults, ..CALM };
    let cases = [
        (World::new(3, &[Put, Get], faults(2)), SmallWrites),
        (World::new(3, &[Inline, Get], faults(2)).from(None), SmallReads),
        (World::new(3, &[Put], CRASH), EarlyRemoval),
        (World::new(3, &[Put, Repair], faults(2)), RollBack),
        (World::new(3, &[Inline, Get], Misfortune { losses: 1, ..FAULT }).from(None), EmptyAnswers),
        (World::new(3, &[Inline, Get, Inline], faults(2)).from(None), BareNodes),
        (World::new(3, &[Rewrite, Inline], CALM), NewNumber),
        (World::new(3, &[Inline, InlineNew], CALM).from(None), EarlyLook),
        (
            World::new(3, &[Repair, Inline], Misfortune { days: 1, faults: 1, ..CRASH }).from(MARK),
            NoClock,
        ),
        (
            World::new(3, &[Repair, Inline], Misfortune { days: 1, faults: 1, ..CRASH }).from(MARK),
            EarlyClock,
        ),
    ];
    for (world, mutation) in cases {
        flaw(world.broken(mutation));
    }
}

/// Takes some minutes.
#[test]
#[ignore = "explores tens of millions of states; scripts/test-soak runs it"]
fn larger_worlds_are_sound() {
    let day = Misfortune { days: 1, ..CALM };
    explore(World::new(4, &[Put, Put], CALM));
    explore(World::new(4, &[Put, Repair], CRASH));
    explore(World::new(4, &[Put, Repair], CRASH).with_a_drained_node());
    explore(World::new(4, &[Inline, Repair], FAULT).with_a_drained_node());
    explore(World::new(3, &[Put, Repair], Misfortune { crashes: 1, losses: 1, ..FAULT }));
    explore(World::new(3, &[PutMost, Repair], Misfortune { crashes: 1, ..OUTAGE }));
    explore(World::new(3, &[Put, Put], Misfortune { crashes: 1, ..FAULT }));
    explore(World::new(3, &[Put, Promote, Repair], CRASH));
    explore(World::new(3, &[Remove, Inline, Repair], day));
    explore(World::new(3, &[Remove, Put], Misfortune { crashes: 1, ..FAULT }));
    explore(World::new(3, &[Remove, Repair], Misfortune { crashes: 1, losses: 1, ..FAULT }));
    explore(World::new(3, &[Rewrite, Put, Repair], CALM));
    explore(World::new(3, &[Rewrite, Repair], Misfortune { crashes: 1, losses: 1, ..FAULT }));
    for job in [Get, Promote, Repair] {
        explore(World::new(3, &[Put, Put, job], CALM));
    }
    sample(3, 10_000_000);
    sample(4, 10_000_000);
    flaw(World::new(3, &[Remove, Repair, Inline], day).broken(Mutation::EarlyCollection));
}
