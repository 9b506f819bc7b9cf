//! Runs a machine of the protocol: executes its actions side by side, and hands in the answers.

use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use futures::stream::{FuturesUnordered, StreamExt};
use tokio::time::Instant;

use crate::protocol::{Action, Answer, Event, Procedure, Request, RunningMachine};

/// How long a survey waits for slow nodes once it has the answers that a reader needs.
const SURVEY_GRACE: Duration = Duration::from_millis(10);

/// How long a step waits for slow nodes once enough nodes have written or deleted something, and
/// how long a survey waits if the answers of all nodes are wanted.
const GRACE: Duration = Duration::from_secs(5);

/// Age from which a survey no longer counts. Actions that rest on an older one are not executed,
/// because marks of removed names and orphans are collected after a day.
const SURVEY_LASTS: Duration = Duration::from_secs(12 * 3600);

/// The time since a moment, by the clock that has advanced further: the system's steady clock
/// stands still while the machine is suspended, and the wall clock may be set back.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Since {
    steady: Instant,
    wall: SystemTime,
}

impl Since {
    pub fn now() -> Self {
        Self { steady: Instant::now(), wall: SystemTime::now() }
    }

    pub fn elapsed(self) -> Duration {
        self.steady.elapsed().max(self.wall.elapsed().unwrap_or_default())
    }

    /// Returns a moment that the wall clock puts `ago` earlier, as if the machine had been
    /// suspended since then.
    #[cfg(test)]
    pub fn suspended_for(ago: Duration) -> Self {
        Self { steady: Instant::now(), wall: SystemTime::now() - ago }
    }
}

/// Executes actions.
#[async_trait]
pub(crate) trait Hands: Sync {
    /// Executes one action. Parts are not stored by this, but by [`Self::store`].
    async fn act(&self, action: Action) -> Answer;

    /// Stores parts of one object, all of them at once.
    async fn store(&self, actions: Vec<Action>) -> Vec<Event>;

    /// Returns whether surveys wait for slow nodes although enough have answered.
    fn asks_everyone(&self) -> bool {
        false
    }
}

/// Runs a procedure to its end, and returns its outcome and what it knows.
pub(crate) async fn drive<P>(procedure: P, hands: &impl Hands) -> (P::Outcome, P)
where
    P: Procedure + Clone,
    P::Outcome: Clone,
{
    let mut machine = RunningMachine::new(procedure);
    let mut actions = machine.start();
    let mut surveyed = Since::now();
    loop {
        if let Some(outcome) = machine.outcome() {
            return (outcome.clone(), machine.procedure().clone());
        }
        if actions.iter().any(|action| action.request == Request::ListVersions) {
            surveyed = Since::now();
        }
        actions = match surveyed.elapsed() < SURVEY_LASTS {
            true => step(&mut machine, actions, surveyed, hands).await,
            false => fail(&mut machine, &actions),
        };
    }
}

/// Answers all actions as failed, without executing them. Returns the actions that follow.
fn fail<P: Procedure>(machine: &mut RunningMachine<P>, actions: &[Action]) -> Vec<Action> {
    let failed = |&action: &Action| machine.handle(&Event { action, answer: Answer::Failed });
    actions.iter().flat_map(failed).collect()
}

/// Whether a manifest was written after the survey ceased to count, because the machine was
/// suspended meanwhile. Such a write confirms nothing: what it rests on may have been collected.
fn is_late(action: Action, surveyed: Since) -> bool {
    matches!(action.request, Request::WriteManifest(_)) && surveyed.elapsed() >= SURVEY_LASTS
}

/// Executes one batch of actions, and returns the next one.
async fn step<P: Procedure>(
    machine: &mut RunningMachine<P>,
    actions: Vec<Action>,
    surveyed: Since,
    hands: &impl Hands,
) -> Vec<Action> {
    let is_store = |action: &Action| matches!(action.request, Request::StorePart { .. });
    let (parts, others): (Vec<Action>, Vec<Action>) = actions.into_iter().partition(is_store);
    let mut next = Vec::new();
    if !parts.is_empty() {
        for event in hands.store(parts).await {
            next.extend(machine.handle(&event));
        }
    }
    let is_survey = others.iter().all(|action| action.request == Request::ListVersions);
    let is_quick = is_survey && !hands.asks_everyone();
    let grace = if is_quick { SURVEY_GRACE } else { GRACE };
    let run = |action: Action| async move {
        let answer = hands.act(action).await;
        Event { action, answer: if is_late(action, surveyed) { Answer::Failed } else { answer } }
    };
    let mut running: FuturesUnordered<_> = others.into_iter().map(run).collect();
    let mut end: Option<Instant> = None;
    while !running.is_empty() {
        let patience = end.unwrap_or_else(|| Instant::now() + Duration::from_secs(3600));
        tokio::select! {
            Some(event) = running.next() => next.extend(machine.handle(&event)),
            () = tokio::time::sleep_until(patience), if end.is_some() => break,
        }
        if end.is_none() && machine.is_enough() {
            end = Some(Instant::now() + grace);
        }
    }
    drop(running);
    let late: Vec<Action> =
        machine.waiting().iter().copied().filter(|action| !next.contains(action)).collect();
    next.extend(fail(machine, &late));
    next
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_time_of_a_suspended_machine_counts() {
        let slept = Since::suspended_for(2 * SURVEY_LASTS);
        assert!(slept.elapsed() >= 2 * SURVEY_LASTS);
        assert!(Since::now().elapsed() < SURVEY_LASTS);
        // A wall clock that was set back makes nothing younger than the steady clock says.
        let later = Since { wall: SystemTime::now() + SURVEY_LASTS, ..Since::now() };
        tokio::time::sleep(Duration::from_millis(2)).await;
        assert!(later.elapsed() >= Duration::from_millis(2));
    }
}
