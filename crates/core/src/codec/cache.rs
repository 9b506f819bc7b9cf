//! The answers that a codec keeps, by question.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::codec::answer::QuestionAnswer;
use crate::codec::question::Question;
use crate::error::Result;
use crate::limits::{KEPT_OPERANDS, KEPT_PROGRAMS};
use crate::run::executable::Executable;
use crate::run::threads::forks;

type KeptAnswer = Result<Arc<QuestionAnswer>>;

/// Answers by question, refusals included; the oldest are dropped first.
#[derive(Default)]
pub(super) struct Cache {
    answers: Mutex<Answers>,
}

#[derive(Default)]
struct Answers {
    /// For each question, the process that prepares its answer, and the answer, which is empty
    /// until it has been prepared.
    by_question: HashMap<Arc<Question>, (usize, Arc<OnceLock<KeptAnswer>>)>,
    /// The questions that have been answered, with the operands of their programs.
    oldest_first: VecDeque<(Arc<Question>, usize)>,
    /// Sum of the operands in `oldest_first`.
    operands: usize,
}

impl Cache {
    /// Returns the kept answer to a question, or else prepares one: `prepare` returns an answer and
    /// the number of its operands.
    ///
    /// Only one thread prepares an answer, without the lock; others that ask the same question wait
    /// for it. For a wide code, preparing takes seconds and a gigabyte.
    pub(super) fn get(
        &self,
        question: &Question,
        prepare: impl FnOnce(&Arc<Question>) -> Result<(QuestionAnswer, usize)>,
    ) -> KeptAnswer {
        let (question, kept) = self.answers().kept(question);
        let mut operands = None;
        let answer = kept.get_or_init(|| {
            let prepared = prepare(&question);
            operands = Some(prepared.as_ref().map_or(0, |(_, operands)| *operands));
            prepared.map(|(answer, _)| Arc::new(answer))
        });
        if let Some(operands) = operands {
            self.answers().add(question, operands);
        }
        answer.clone()
    }

    /// Returns the first value that `find` finds in any program.
    pub(super) fn find_map<T>(&self, find: impl Fn(&Executable) -> Option<T>) -> Option<T> {
        let answers = self.answers();
        let kept = answers.by_question.values().filter_map(|(_, kept)| kept.get());
        let mut programs = kept.flatten().flat_map(|answer| answer.executables());
        programs.find_map(find)
    }

    fn answers(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Answers {
    /// Returns the question as it is kept, and the place of its answer, which may still be empty.
    fn kept(&mut self, question: &Question) -> (Arc<Question>, Arc<OnceLock<KeptAnswer>>) {
        let process = forks::count();
        // After a fork, an answer that the parent process was still preparing is never finished in
        // this process.
        if let Some((question, (of, kept))) = self.by_question.get_key_value(question)
            && (*of == process || kept.get().is_some())
        {
            return (Arc::clone(question), Arc::clone(kept));
        }
        let (question, kept) = (Arc::new(question.clone()), Arc::default());
        self.by_question.insert(Arc::clone(&question), (process, Arc::clone(&kept)));
        (question, kept)
    }

    /// Records that a question has been answered by a program of `operands` operands, and drops the
    /// oldest answers while there are too many. The newest one stays, whatever its size.
    fn add(&mut self, question: Arc<Question>, operands: usize) {
        self.oldest_first.push_back((question, operands));
        self.operands += operands;
        while self.oldest_first.len() > KEPT_PROGRAMS
            || self.oldest_first.len() > 1 && self.operands > KEPT_OPERANDS
        {
            let Some((oldest, operands)) = self.oldest_first.pop_front() else { return };
            self.operands -= operands;
            self.by_question.remove(&oldest);
        }
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} programs", self.answers().by_question.len())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;
    use crate::define::cells::NodeId;
    use crate::error::Error;
    use crate::plan::blocks::BlockProgram;
    use crate::plan::combination::Change;
    use crate::run::blocks;
    use crate::run::dispatch::Kernel;

    fn question(node: usize) -> Question {
        Question::Update(NodeId::new(node), Change::Difference)
    }

    fn answer() -> Result<QuestionAnswer> {
        let program = BlockProgram::new(&"inputs 1 temps 0 outputs 1\no0 = i0\n".parse().unwrap())?;
        let runners = Kernel::Scalar.runners().unwrap();
        blocks::prepare(program, runners, vec![0], vec![1], 2).map(QuestionAnswer::from)
    }

    /// Asks for a program of `operands` operands. Returns whether it had to be prepared.
    fn is_new(cache: &Cache, node: usize, operands: usize) -> bool {
        let mut is_new = false;
        let prepare = |_: &Arc<Question>| {
            is_new = true;
            Ok((answer()?, operands))
        };
        cache.get(&question(node), prepare).unwrap();
        is_new
    }

    #[test]
    fn programs_are_kept_by_number_and_by_operands() {
        let cache = Cache::default();
        assert!((0..=KEPT_PROGRAMS).all(|node| is_new(&cache, node, 1)));
        assert!((1..=KEPT_PROGRAMS).all(|node| !is_new(&cache, node, 1)));
        assert!(is_new(&cache, 0, 1), "the oldest was dropped");

        let cache = Cache::default();
        let third = KEPT_OPERANDS / 3;
        assert!((0..4).all(|node| is_new(&cache, node, third)));
        assert!((1..4).all(|node| !is_new(&cache, node, third)));
        assert!(is_new(&cache, 4, 2 * KEPT_OPERANDS) && !is_new(&cache, 4, 2 * KEPT_OPERANDS));
        assert!((0..4).all(|node| is_new(&cache, node, 1)), "all others were dropped");
        assert_eq!(cache.answers().operands, 4);
    }

    #[test]
    fn refusals_are_kept() {
        let cache = Cache::default();
        let refuse = |_: &Arc<Question>| Err(Error::not_enough("two shards are missing"));
        assert!(cache.get(&question(1), refuse).is_err());
        assert!(cache.get(&question(1), |_| unreachable!("the refusal is kept")).is_err());
    }

    /// At least two threads ask while the answer is prepared.
    #[cfg_attr(target_family = "wasm", ignore = "there are no threads")]
    #[test]
    fn threads_with_the_same_question_wait_for_one_answer() {
        let (cache, prepared) = (Cache::default(), AtomicUsize::new(0));
        let prepare = |_: &Arc<Question>| {
            prepared.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(50));
            Ok((answer()?, 1))
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| cache.get(&question(7), prepare).unwrap());
            }
        });
        assert_eq!(prepared.load(Ordering::Relaxed), 1);
        assert_eq!(cache.answers().oldest_first.len(), 1);
    }
}
