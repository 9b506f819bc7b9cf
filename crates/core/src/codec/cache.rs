//! The programs that a codec keeps, by question.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::define::cells::{CellSet, NodeId};
use crate::error::Result;
use crate::plan::Plan;
use crate::plan::combination::Change;
use crate::run::executable::Executable;

/// A question that a codec may be asked.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Question {
    /// Compute the second cells from the first.
    Compute(CellSet, CellSet),
    /// Update parity after this node changed, given its old and new shard or their difference.
    Update(NodeId, Change),
    /// Run this plan.
    Plan(Arc<Plan>),
}

impl Question {
    pub(super) fn compute(have: &CellSet, want: &CellSet) -> Self {
        Self::Compute(have.clone(), want.clone())
    }
}

type Answer = Result<Arc<Executable>>;

/// Answers by question, refusals included; the oldest is dropped first.
pub(super) struct Cache {
    most: usize,
    answers: Mutex<Answers>,
}

#[derive(Default)]
struct Answers {
    by_question: HashMap<Question, Answer>,
    oldest_first: VecDeque<Question>,
}

impl Cache {
    /// Creates a cache of at most `most` answers.
    pub(super) fn new(most: usize) -> Self {
        Self { most, answers: Mutex::default() }
    }

    /// Returns the answer to a question: the one that is kept, or what `prepare` gives.
    pub(super) fn get(
        &self,
        question: &Question,
        prepare: impl FnOnce() -> Result<Executable>,
    ) -> Answer {
        if let Some(found) = self.answers().by_question.get(question) {
            return found.clone();
        }
        // The answer is prepared outside the lock: two threads may answer the same question, which
        // is harmless.
        let answer = prepare().map(Arc::new);
        let mut answers = self.answers();
        if answers.by_question.insert(question.clone(), answer.clone()).is_none() {
            answers.oldest_first.push_back(question.clone());
        }
        if answers.oldest_first.len() > self.most
            && let Some(oldest) = answers.oldest_first.pop_front()
        {
            answers.by_question.remove(&oldest);
        }
        answer
    }

    /// Returns the first value that `find` finds in any program.
    pub(super) fn find_map<T>(&self, find: impl Fn(&Executable) -> Option<T>) -> Option<T> {
        self.answers().by_question.values().flatten().find_map(|program| find(program))
    }

    fn answers(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} programs", self.answers().by_question.len())
    }
}
