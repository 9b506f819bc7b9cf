//! The jobs that run in the model: the machines themselves, and a reader that reads what it found.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::world::{ENOUGH, Fetch, Job, Mutation, Run, STAGES, World, WorldState, id};
use crate::protocol::action::ask;
use crate::protocol::{
    Action, Answer, Event, Expected, Get, GetOutcome, Listed, NewParts, Procedure, Promote,
    PromoteOutcome, Put, PutOutcome, Repair, RepairOutcome, Request, RunningMachine, VersionKind,
};

/// Starts a machine.
fn started<P: Procedure>(procedure: P) -> RunningMachine<P> {
    let mut machine = RunningMachine::new(procedure);
    machine.start();
    machine
}

impl Run {
    pub fn start(world: &World, at: usize, state: &WorldState) -> Self {
        let (quorum, order) = (world.quorum, world.order(id(at + 1)));
        let acked = state.acked;
        let put = |content| {
            let put = Put::new(quorum, id(at + 1), content);
            let put = match () {
                () if world.breaks(Mutation::NoClock) => put.at_time(0),
                () if world.breaks(Mutation::EarlyClock) => put.at_time(state.now),
                () => put,
            };
            let put = match world.jobs[at] {
                Job::Rewrite if !world.breaks(Mutation::NewNumber) => {
                    put.in_place_of(world.first())
                }
                Job::InlineNew if !world.breaks(Mutation::EarlyLook) => {
                    put.expecting(Expected::Nothing)
                }
                _ => put,
            };
            Self::Put(started(put), acked)
        };
        let mut spread = world.spread();
        match world.jobs[at] {
            Job::Put | Job::PutMost | Job::Rewrite => {
                spread.homes.truncate(STAGES[0]);
                let missing = usize::from(world.jobs[at] == Job::PutMost);
                let asks_first = missing == 0;
                put(NewParts::Shards { spread, needed: STAGES[0] - missing, asks_first })
            }
            Job::InlineNew if world.breaks(Mutation::EarlyLook) && is_object(state.acked) => {
                Self::Ended
            }
            Job::Inline | Job::InlineNew => put(NewParts::Inline { length: 1, order }),
            Job::Remove => put(NewParts::Removed { order }),
            Job::Get => Self::Get(started(Get::new(quorum)), acked),
            Job::Promote => {
                Self::Promote(started(Promote::new(quorum, id(0), spread, STAGES[0]..STAGES[1])))
            }
            Job::Repair => Self::Repair(started(Repair::new(quorum, state.now))),
            Job::Scrub => Self::Repair(started(Repair::new(quorum, state.now).reading_all())),
        }
    }

    fn waiting(&self) -> Option<&BTreeSet<Action>> {
        match self {
            Self::Put(machine, _) => Some(machine.waiting()),
            Self::Get(machine, _) => Some(machine.waiting()),
            Self::Fetch(fetch, _) => Some(&fetch.waiting),
            Self::Promote(machine) => Some(machine.waiting()),
            Self::Repair(machine) => Some(machine.waiting()),
            Self::Waiting | Self::Crashed(_) | Self::Ended => None,
        }
    }

    /// Whether the job is a put that is about to survey. Nobody can tell how long it has been so:
    /// its parts may take days.
    pub fn is_about_to_survey(&self, world: &World) -> bool {
        let Self::Put(machine, _) = self else { return false };
        let is_listing = |action: &Action| action.request == Request::ListVersions;
        let waiting = machine.waiting();
        waiting.len() == world.quorum.nodes() && waiting.iter().all(is_listing)
    }

    /// Returns the next request of a put that nobody else can see.
    pub fn first_unseen(&self) -> Option<Action> {
        let Self::Put(machine, _) = self else { return None };
        let first = machine.waiting().first().copied();
        first.filter(|action| match action.request {
            Request::StorePart { .. } => true,
            Request::ListVersions => machine.procedure().is_surveying_first(),
            _ => false,
        })
    }

    /// Returns the requests that may be answered next: any of a batch of listings or of manifests
    /// that are written. The others are answered in the order of the nodes.
    pub fn deliverable(&self) -> Vec<Action> {
        let waiting: Vec<Action> = self.waiting().into_iter().flatten().copied().collect();
        let is_ordered = |action: &Action| {
            !matches!(action.request, Request::ListVersions | Request::WriteManifest(_))
        };
        match waiting.first() {
            Some(first) if is_ordered(first) => vec![*first],
            _ => waiting,
        }
    }

    /// Returns the requests of a job that stopped.
    pub fn zombies(&self) -> impl Iterator<Item = Action> + '_ {
        let zombies = if let Self::Crashed(zombies) = self { Some(zombies) } else { None };
        zombies.into_iter().flatten().copied()
    }

    pub fn bury(&mut self, action: &Action) {
        if let Self::Crashed(zombies) = self {
            zombies.remove(action);
        }
    }

    pub fn is_under_way(&self) -> bool {
        self.waiting().is_some() || self.zombies().next().is_some()
    }

    /// Whether stopping makes a difference.
    pub fn can_crash(&self) -> bool {
        matches!(self, Self::Put(..) | Self::Promote(_) | Self::Repair(_))
    }

    pub fn crash(&mut self) {
        let changes = |action: &&Action| {
            !matches!(
                action.request,
                Request::ListVersions
                    | Request::ReadManifest(_)
                    | Request::FindParts(_)
                    | Request::CheckPart { .. }
            )
        };
        let zombies = self.waiting().into_iter().flatten().filter(changes).copied().collect();
        *self = Self::Crashed(zombies);
    }

    /// Hands an answer to a job, and checks the job's outcome.
    pub fn handle(
        world: &World,
        state: &mut WorldState,
        at: usize,
        action: Action,
        answer: Answer,
    ) {
        let mut run = (*state.jobs[at]).clone();
        if run.is_about_to_survey(world)
            && let Self::Put(machine, before) = &mut run
        {
            machine.note_time(state.now);
            if world.jobs[at] == Job::InlineNew {
                *before = state.acked;
            }
        }
        let event = Event { action, answer };
        match &mut run {
            Self::Put(machine, _) => _ = machine.handle(&event),
            Self::Get(machine, _) => _ = machine.handle(&event),
            Self::Fetch(fetch, _) => fetch.handle(&event),
            Self::Promote(machine) => _ = machine.handle(&event),
            Self::Repair(machine) => _ = machine.handle(&event),
            Self::Waiting | Self::Crashed(_) | Self::Ended => {}
        }
        state.jobs[at] = Arc::new(match run {
            Self::Put(machine, before) => ended_put(world, state, machine, before),
            Self::Get(machine, before) => ended_get(world, state, machine, before),
            Self::Fetch(fetch, before) => ended_fetch(world, fetch, before),
            Self::Promote(machine) => ended_promote(world, state, machine),
            Self::Repair(machine) => ended_repair(world, state, machine),
            other => other,
        });
    }
}

fn ended_put(
    world: &World,
    state: &mut WorldState,
    put: RunningMachine<Put>,
    before: Option<Listed>,
) -> Run {
    match put.outcome() {
        None => return Run::Put(put, before),
        Some(PutOutcome::Committed { listed, is_owed }) => {
            world.reach(if *is_owed { "put: committed, something owed" } else { "put: committed" });
            if world.is_new(listed.version.object) && is_object(before) {
                state.flaw = Some("a put that expects nothing replaces an object");
            }
            committed(world, state, *listed, before);
        }
        Some(PutOutcome::Open { listed, .. }) if world.breaks(Mutation::RollBack) => {
            state.disks().for_each(|node| {
                node.manifests.remove(listed);
                node.parts.retain(|(object, _)| *object != listed.version.object);
            });
        }
        Some(PutOutcome::Refused { .. }) => {
            world.reach("put: refused");
            let object = put.procedure().listed().map(|listed| listed.version.object);
            if object.is_some() {
                state.flaw = Some("a put is refused after it wrote a manifest");
            }
        }
        Some(PutOutcome::Open { .. }) => world.reach("put: open"),
        Some(PutOutcome::NotFound) => world.reach("remove: not found"),
        Some(PutOutcome::Superseded) => world.reach("put: superseded"),
    }
    Run::Ended
}

/// Whether a version is one of an object.
fn is_object(listed: Option<Listed>) -> bool {
    listed.is_some_and(|listed| listed.kind == VersionKind::Put)
}

/// Checks a version that was committed, and takes it in.
fn committed(world: &World, state: &mut WorldState, listed: Listed, before: Option<Listed>) {
    if before >= Some(listed) {
        state.flaw = Some("a put is committed below one that was committed before it began");
    }
    let is_rewrite = |it: Listed| world.is_rewrite(it.version.object);
    let is_other = state.acked.is_some_and(|it| it.version != world.first() && !is_rewrite(it));
    if is_rewrite(listed) && is_other && state.acked < Some(listed) {
        state.flaw = Some("old bytes count after others were committed");
    }
    state.acked = state.acked.max(Some(listed));
}

fn ended_get(
    world: &World,
    state: &mut WorldState,
    get: RunningMachine<Get>,
    before: Option<Listed>,
) -> Run {
    let seen = match get.outcome() {
        None => return Run::Get(get, before),
        Some(GetOutcome::Found(listed, _)) => Some(*listed),
        Some(GetOutcome::NotFound(mark)) => *mark,
        Some(GetOutcome::Lost(_)) => {
            state.flaw = Some("a reader found an object twice and could not read it");
            return Run::Ended;
        }
        Some(GetOutcome::Unsure(_)) => {
            world.reach("get: unsure");
            return Run::Ended;
        }
    };
    if !state.is_recent(seen, before) {
        state.flaw = Some("a reader sees less than what was committed before it began");
    }
    match get.outcome() {
        Some(&GetOutcome::Found(listed, _)) => {
            ended_fetch(world, Fetch::new(world, listed), before)
        }
        _ => {
            world.reach("get: not found");
            Run::Ended
        }
    }
}

fn ended_fetch(world: &World, fetch: Fetch, before: Option<Listed>) -> Run {
    match fetch.found.len() {
        0..ENOUGH if !fetch.waiting.is_empty() && !fetch.is_inline(world) => {
            Run::Fetch(fetch, before)
        }
        0..ENOUGH if !fetch.is_inline(world) => {
            world.reach("get: replaced while it was read");
            Run::Get(started(Get::again(world.quorum, fetch.listed.version)), before)
        }
        _ => {
            world.reach("get: found and read");
            Run::Ended
        }
    }
}

fn ended_promote(world: &World, state: &mut WorldState, promote: RunningMachine<Promote>) -> Run {
    let Some(outcome) = promote.outcome() else { return Run::Promote(promote) };
    world.reach(match outcome {
        PromoteOutcome::Promoted { is_owed: false } => "promote: promoted",
        PromoteOutcome::Promoted { is_owed: true } => "promote: promoted, something owed",
        PromoteOutcome::Incomplete { .. } => "promote: incomplete",
        PromoteOutcome::Superseded => "promote: superseded",
        PromoteOutcome::Unsure => "promote: unsure",
    });
    let is_promoted = matches!(outcome, PromoteOutcome::Promoted { .. });
    let is_latest = state.latest().is_some_and(|latest| latest.version.object == id(0));
    let is_whole = state.parts(id(0)) == STAGES[1] || state.losses_happened();
    if is_promoted && is_latest && !is_whole {
        state.flaw = Some("an object is called promoted but misses a part");
    }
    Run::Ended
}

fn ended_repair(world: &World, state: &mut WorldState, repair: RunningMachine<Repair>) -> Run {
    let Some(outcome) = repair.outcome() else { return Run::Repair(repair) };
    world.reach(match outcome {
        RepairOutcome::Repaired { is_owed: false, .. } => "repair: repaired",
        RepairOutcome::Repaired { is_owed: true, .. } => "repair: repaired, something owed",
        RepairOutcome::Nothing => "repair: nothing",
        RepairOutcome::Collected => "repair: collected",
        RepairOutcome::Superseded => "repair: superseded",
        RepairOutcome::Unsure => "repair: unsure",
        RepairOutcome::Unreadable(_) => "repair: unreadable",
        RepairOutcome::TooFewParts(_) => "repair: too few parts",
    });
    let is_wrong = match outcome {
        RepairOutcome::TooFewParts(_) => true,
        // The only node that has the manifest yet may have gone out of reach before it was read.
        RepairOutcome::Unreadable(_) => state.faulty.is_none(),
        _ => false,
    };
    if is_wrong {
        state.flaw = Some("repair cannot read what counts");
    }
    Run::Ended
}

impl Fetch {
    fn new(world: &World, listed: Listed) -> Self {
        let find = ask(world.quorum.indices(), Request::FindParts(listed.version.object));
        Self { listed, waiting: find.into_iter().collect(), found: BTreeSet::new() }
    }

    fn is_inline(&self, world: &World) -> bool {
        world.is_inline(self.listed.version.object)
    }

    fn handle(&mut self, event: &Event) {
        self.waiting.remove(&event.action);
        if let Answer::Parts(parts) = &event.answer {
            self.found.extend(parts);
        }
    }
}

impl WorldState {
    /// Returns the greatest version on any node.
    pub fn latest(&self) -> Option<Listed> {
        self.nodes.iter().flat_map(|node| &node.manifests).max().copied()
    }

    /// Whether a reader may see `seen` after `acked` was acknowledged. It may see nothing if the
    /// name was removed after that: the mark may be collected.
    pub fn is_recent(&self, seen: Option<Listed>, acked: Option<Listed>) -> bool {
        seen >= acked || seen.is_none() && self.removed >= acked
    }

    /// Whether a node lost its files.
    fn losses_happened(&self) -> bool {
        self.nodes.iter().any(|node| node.is_empty)
    }
}

/// Runs a repair of the name to its end, without faults.
pub fn repair(world: &World, state: &mut WorldState) -> Option<RepairOutcome> {
    let mut machine = started(Repair::new(world.quorum, state.now));
    while let Some(&action) = machine.waiting().first() {
        let answer = world.execute(state, Job::Repair, action);
        machine.handle(&Event { action, answer });
    }
    machine.outcome().cloned()
}
