//! Runs the protocol's state machines: executes the actions of a step side by side, and hands their
//! answers to the machine.

use std::future::Future;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::{FuturesUnordered, StreamExt};
use tokio::time::Instant;

use crate::clock::Since;
use crate::protocol::{Action, Answer, Event, NodeIndex, Procedure, Request, RunningMachine};

/// How long a survey waits for slow nodes once it has the answers that a reader needs.
const SURVEY_GRACE: Duration = Duration::from_millis(10);

/// How long a step waits for slow nodes once enough nodes have written or deleted something, and
/// how long a survey waits if the answers of all nodes are wanted.
const GRACE: Duration = Duration::from_secs(5);

/// Age from which a survey is too old to rely on. Actions that rely on an older survey are not
/// executed, because marks of removed names and orphans are collected after a day.
const SURVEY_LASTS: Duration = Duration::from_secs(12 * 3600);

/// Executes actions. The finding of an action is taken in when the action is done, by one thread at
/// a time.
#[async_trait]
pub(crate) trait Hands: Send {
    /// What an action finds.
    type Finding: Send;
    /// The work of an action.
    type Work: Future<Output = Self::Finding> + Send;

    /// Returns the future that executes one action, with what is known now.
    fn act(&mut self, action: Action) -> Self::Work;

    /// Takes in the finding of an action. Returns the answer for the machine.
    fn take(&mut self, action: Action, finding: Self::Finding) -> Answer;

    /// Stores parts of one object on nodes, all at the same time. Returns an answer for each.
    async fn store(&mut self, parts: &[(usize, NodeIndex)]) -> Vec<Answer>;

    /// Returns whether surveys wait for slow nodes although enough have answered.
    fn asks_everyone(&self) -> bool {
        false
    }
}

/// Runs a procedure to its end, and returns its outcome and what it knows.
pub(crate) async fn drive<P>(procedure: P, hands: &mut impl Hands) -> (P::Outcome, P)
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
            machine.note_time(surveyed.seconds());
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

/// Whether a manifest was written after its survey had become too old, because the machine was
/// suspended meanwhile. Such a write does not count as a confirmation, because the parts that it
/// relies on may have been collected.
fn is_late(action: Action, surveyed: Since) -> bool {
    matches!(action.request, Request::WriteManifest(_)) && surveyed.elapsed() >= SURVEY_LASTS
}

/// Executes one batch of actions, and returns the next one.
async fn step<P: Procedure>(
    machine: &mut RunningMachine<P>,
    actions: Vec<Action>,
    surveyed: Since,
    hands: &mut impl Hands,
) -> Vec<Action> {
    let part_of = |action: &Action| match action.request {
        Request::StorePart { part, .. } => Some((part.0, action.node)),
        _ => None,
    };
    let (stores, others): (Vec<Action>, Vec<Action>) =
        actions.into_iter().partition(|action| part_of(action).is_some());
    let parts: Vec<(usize, NodeIndex)> = stores.iter().filter_map(part_of).collect();
    let mut next = Vec::new();
    if !parts.is_empty() {
        let answers = hands.store(&parts).await;
        for (action, answer) in stores.into_iter().zip(answers) {
            next.extend(machine.handle(&Event { action, answer }));
        }
    }
    next.extend(run_together(machine, others, surveyed, hands).await);
    let late: Vec<Action> =
        machine.waiting().iter().copied().filter(|action| !next.contains(action)).collect();
    next.extend(fail(machine, &late));
    next
}

/// Executes actions side by side. Once enough nodes have answered, gives up the actions that take
/// long. Returns the actions that follow.
async fn run_together<P: Procedure>(
    machine: &mut RunningMachine<P>,
    actions: Vec<Action>,
    surveyed: Since,
    hands: &mut impl Hands,
) -> Vec<Action> {
    let is_survey = actions.iter().all(|action| action.request == Request::ListVersions);
    let is_quick = is_survey && !hands.asks_everyone();
    let grace = if is_quick { SURVEY_GRACE } else { GRACE };
    let run = |action: Action| {
        let work = hands.act(action);
        async move { (action, work.await, is_late(action, surveyed)) }
    };
    let mut running: FuturesUnordered<_> = actions.into_iter().map(run).collect();
    let (mut next, mut end): (Vec<Action>, Option<Instant>) = (Vec::new(), None);
    while !running.is_empty() {
        let patience = end.unwrap_or_else(|| Instant::now() + Duration::from_secs(3600));
        tokio::select! {
            biased;
            Some((action, finding, is_late)) = running.next() => {
                let answer = hands.take(action, finding);
                let answer = if is_late { Answer::Failed } else { answer };
                next.extend(machine.handle(&Event { action, answer }));
            }
            () = tokio::time::sleep_until(patience), if end.is_some() => break,
        }
        if end.is_none() && machine.is_enough() {
            end = Some(Instant::now() + grace);
        }
    }
    next
}
