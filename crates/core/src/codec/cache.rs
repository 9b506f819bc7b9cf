//! The answers that a codec keeps, by question.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::codec::answer::{AnswerWeight, QuestionAnswer};
use crate::codec::question::Question;
use crate::error::Result;
use crate::limits::{KEPT_ANSWERS, KEPT_OPERANDS, KEPT_PROGRAMS};
use crate::run::executable::Executable;
use crate::run::threads::forks::{self, PerProcess};

type KeptAnswer = Result<Arc<QuestionAnswer>>;

/// Answers by question, refusals included; the oldest are dropped first.
#[derive(Default)]
pub(super) struct Cache {
    hashes: RandomState,
    answers: PerProcess<Mutex<Answers>>,
}

/// A question, and its answer, which is empty until it has been prepared.
struct KeptQuestion {
    question: Arc<Question>,
    /// The process that prepares the answer.
    process: usize,
    answer: OnceLock<KeptAnswer>,
}

#[derive(Default)]
struct Answers {
    /// The questions by their hashes, so that a table which grows need not hash a thousand
    /// questions anew. Of two questions with one hash, the last one is kept.
    by_hash: HashMap<u64, Arc<KeptQuestion>, BuildHasherDefault<IsHash>>,
    /// The hashes of the questions that have been answered, with the weights of their answers.
    oldest_first: VecDeque<(u64, AnswerWeight)>,
    /// Sum of the operands in `oldest_first`.
    operands: usize,
    /// Number of the answers in `oldest_first` that begin with a plan.
    planned: usize,
}

/// The hasher of keys that are hashes already.
#[derive(Default)]
struct IsHash(u64);

impl Hasher for IsHash {
    /// Never called, because all keys are numbers.
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.0 = self.0.rotate_left(8) ^ u64::from(byte));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl Cache {
    /// Returns the kept answer to a question, or else prepares one: `prepare` returns an answer and
    /// its weight.
    ///
    /// Only one thread prepares an answer, without the lock; others that ask the same question wait
    /// for it. For a wide code, preparing takes seconds and a gigabyte.
    pub(super) fn get(
        &self,
        question: &Question,
        prepare: impl FnOnce(&Arc<Question>) -> Result<(QuestionAnswer, AnswerWeight)>,
    ) -> KeptAnswer {
        let hash = self.hashes.hash_one(question);
        let kept = self.answers().kept(hash, question);
        let mut weight = None;
        let answer = kept.answer.get_or_init(|| {
            let prepared = prepare(&kept.question);
            let of_answer = prepared.as_ref().map_or_else(|_| Default::default(), |(_, it)| *it);
            let operands = of_answer.operands + kept.question.words();
            weight = Some(AnswerWeight { operands, ..of_answer });
            prepared.map(|(answer, _)| Arc::new(answer))
        });
        if let Some(weight) = weight {
            self.answers().add(hash, weight);
        }
        answer.clone()
    }

    /// Returns the first value that `find` finds in any program.
    pub(super) fn find_map<T>(&self, find: impl Fn(&Executable) -> Option<T>) -> Option<T> {
        let answers = self.answers();
        let kept = answers.by_hash.values().filter_map(|kept| kept.answer.get());
        let mut programs = kept.flatten().flat_map(|answer| answer.executables());
        programs.find_map(find)
    }

    fn answers(&self) -> MutexGuard<'_, Answers> {
        self.answers.get(Self::inherited).lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the answers of the process from which this one was forked, unless another thread of
    /// that one was at work on them.
    fn inherited(parent: Option<&Mutex<Answers>>) -> Mutex<Answers> {
        let answers =
            parent.and_then(|answers| Some(std::mem::take(&mut *answers.try_lock().ok()?)));
        Mutex::new(answers.unwrap_or_default())
    }
}

impl Answers {
    /// Returns a question as it is kept.
    fn kept(&mut self, hash: u64, question: &Question) -> Arc<KeptQuestion> {
        let process = forks::count();
        // After a fork, an answer that the parent process was still preparing is never finished in
        // this process.
        if let Some(kept) = self.by_hash.get(&hash)
            && *kept.question == *question
            && (kept.process == process || kept.answer.get().is_some())
        {
            return Arc::clone(kept);
        }
        let question = Arc::new(question.clone());
        let kept = Arc::new(KeptQuestion { question, process, answer: OnceLock::new() });
        self.by_hash.insert(hash, Arc::clone(&kept));
        kept
    }

    /// Records that a question has been answered, and drops the oldest answers while there are too
    /// many. The newest one stays, whatever its size.
    fn add(&mut self, hash: u64, weight: AnswerWeight) {
        self.oldest_first.push_back((hash, weight));
        self.operands += weight.operands;
        self.planned += usize::from(weight.is_planned);
        while let Some((oldest, weight)) = self.drop_one_of_too_many() {
            self.operands -= weight.operands;
            self.planned -= usize::from(weight.is_planned);
            self.by_hash.remove(&oldest);
        }
    }

    /// Takes the oldest answer off the list if there are too many, or the oldest one that begins
    /// with a plan if only these are too many.
    fn drop_one_of_too_many(&mut self) -> Option<(u64, AnswerWeight)> {
        let count = self.oldest_first.len();
        if count > KEPT_ANSWERS || count > 1 && self.operands > KEPT_OPERANDS {
            return self.oldest_first.pop_front();
        }
        if self.planned <= KEPT_PROGRAMS {
            return None;
        }
        let place = self.oldest_first.iter().position(|(_, weight)| weight.is_planned)?;
        self.oldest_first.remove(place)
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} answers", self.answers().by_hash.len())
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
        blocks::prepare(program, runners, vec![0], vec![1], false, 2).map(QuestionAnswer::from)
    }

    /// Asks for an answer of `operands` operands. Returns whether it had to be prepared.
    fn is_new(cache: &Cache, node: usize, operands: usize, is_planned: bool) -> bool {
        let mut is_new = false;
        let prepare = |_: &Arc<Question>| {
            is_new = true;
            Ok((answer()?, AnswerWeight { operands, is_planned }))
        };
        cache.get(&question(node), prepare).unwrap();
        is_new
    }

    #[test]
    fn answers_are_kept_by_number_and_by_operands() {
        for (most, is_planned) in [(KEPT_PROGRAMS, true), (KEPT_ANSWERS, false)] {
            let cache = Cache::default();
            let is_new = |node| is_new(&cache, node, 1, is_planned);
            assert!((0..=most).all(is_new));
            assert!(!(1..=most).any(is_new));
            assert!(is_new(0), "the oldest was dropped");
        }
        // Too many plans do not push direct answers out.
        let cache = Cache::default();
        assert!(is_new(&cache, 0, 1, false));
        assert!((1..=KEPT_PROGRAMS + 1).all(|node| is_new(&cache, node, 1, true)));
        assert!(!is_new(&cache, 0, 1, false) && is_new(&cache, 1, 1, true));
        let cache = Cache::default();
        let is_new = |node, operands| is_new(&cache, node, operands, false);
        let third = KEPT_OPERANDS / 3;
        assert!((0..4).all(|node| is_new(node, third)));
        assert!(!(1..4).any(|node| is_new(node, third)));
        assert!(is_new(4, 2 * KEPT_OPERANDS) && !is_new(4, 2 * KEPT_OPERANDS));
        assert!((0..4).all(|node| is_new(node, 1)), "all others were dropped");
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
            Ok((answer()?, AnswerWeight::default()))
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
