//! The engine of all state machines: a procedure takes one step after the other, and a step is a
//! batch of actions that may run side by side.

use std::collections::BTreeSet;

use crate::protocol::{Action, Event};

/// A sequence of steps. When a step has ended, the procedure decides the next one from what it
/// knows by then.
pub trait Procedure {
    /// The result in which the procedure ends.
    type Outcome;

    /// Takes in an answer.
    fn note(&mut self, event: &Event);

    /// Takes in the time at which a survey begins, in seconds since 1970.
    fn note_time(&mut self, _now: u64) {}

    /// Decides the next step, when every action of the last one is answered.
    fn next(&mut self) -> NextStep<Self::Outcome>;

    /// Returns whether the current step has the answers that it needs. Then the actions that are
    /// not answered yet may be given up, and count as [`crate::protocol::Answer::Failed`].
    fn is_enough(&self) -> bool;
}

/// What a procedure does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextStep<Outcome> {
    /// Sends these actions to nodes. If there are none, the next step follows at once.
    Act(Vec<Action>),
    /// Ends.
    Done(Outcome),
}

/// A procedure that is running.
///
/// The driver executes the actions that [`Self::start`] and [`Self::handle`] return, side by side,
/// and hands in the answer to each of them. A machine that is abandoned in any state does no harm.
/// A step may rely only on a survey that is at most 12 hours old; a machine that takes longer is
/// abandoned.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RunningMachine<P: Procedure> {
    procedure: P,
    waiting: BTreeSet<Action>,
    outcome: Option<P::Outcome>,
}

impl<P: Procedure> RunningMachine<P> {
    /// Creates a machine that has not begun.
    pub fn new(procedure: P) -> Self {
        Self { procedure, waiting: BTreeSet::new(), outcome: None }
    }

    /// Begins. Returns the first actions.
    pub fn start(&mut self) -> Vec<Action> {
        self.advance()
    }

    /// Takes in the time, in seconds since 1970. The driver tells it before it executes the actions
    /// of a survey.
    pub fn note_time(&mut self, now: u64) {
        self.procedure.note_time(now);
    }

    /// Takes in the answer to an action, and returns the actions that follow from it. An unexpected
    /// answer is ignored.
    pub fn handle(&mut self, event: &Event) -> Vec<Action> {
        if !self.waiting.remove(&event.action) {
            return Vec::new();
        }
        self.procedure.note(event);
        self.advance()
    }

    fn advance(&mut self) -> Vec<Action> {
        while self.waiting.is_empty() && self.outcome.is_none() {
            match self.procedure.next() {
                NextStep::Act(actions) if actions.is_empty() => {}
                NextStep::Act(actions) => {
                    self.waiting = actions.iter().copied().collect();
                    return actions;
                }
                NextStep::Done(outcome) => self.outcome = Some(outcome),
            }
        }
        Vec::new()
    }

    /// Returns the outcome, if the machine has ended.
    pub fn outcome(&self) -> Option<&P::Outcome> {
        self.outcome.as_ref()
    }

    /// Returns the actions that are not answered yet.
    pub fn waiting(&self) -> &BTreeSet<Action> {
        &self.waiting
    }

    /// Returns whether the driver may give up the actions that are not answered yet, instead of
    /// waiting for slow nodes.
    pub fn is_enough(&self) -> bool {
        self.procedure.is_enough()
    }

    /// Returns the procedure, with what it knows.
    pub fn procedure(&self) -> &P {
        &self.procedure
    }
}
