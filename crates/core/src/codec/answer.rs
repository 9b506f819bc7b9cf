//! Answers: the program that runs for a question at first, and the one that replaces it later.
//!
//! A question is answered directly at first: its equations are solved, and a kernel reads the
//! solution as data ([`crate::plan::direct`]). Once the direct answer has run over enough bytes for
//! a plan to pay ([`PlannedAfter`]), the next call plans and compiles, and
//! all calls after it run the program. Losses that a transform recovers are never planned. So a
//! question that is asked once costs little more than its work, and planning never takes longer
//! than the calls before it took. One thread plans; meanwhile, the others go on with the direct
//! answer. A plan that takes milliseconds is made on a thread of its own ([`PLANNED_ASIDE`]).
//!
//! Compiled plans take much more memory than direct answers. So a codec has a limited number of
//! plans ([`KEPT_PROGRAMS`]): the questions that are asked most earn theirs first.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::codec::question::Question;
use crate::codec::setup::Setup;
use crate::error::{ErrorKind, Result};
use crate::limits::{KEPT_PROGRAMS, PLANNED_ASIDE};
use crate::plan::direct::sums::PlannedAfter;
use crate::run::buffers::{Buffer, BufferPlace, Stores, Table, enter};
use crate::run::claimed::Claimed;
use crate::run::executable::Executable;
use crate::run::threads::Threads;

/// The answer to a question.
pub(super) struct QuestionAnswer {
    /// The program that runs first; it stays if no plan is made later.
    first: Executable,
    later: Option<Later>,
}

/// The contribution of an answer to the totals that its codec limits.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct AnswerWeight {
    /// Number of operands.
    pub(super) operands: usize,
    /// Whether the answer begins with a plan.
    pub(super) is_planned: bool,
}

/// A plan that replaced a direct answer. It counts as one of its codec's plans until it is dropped.
struct LaterPlan {
    program: Executable,
    setup: Arc<Setup>,
}

impl Drop for LaterPlan {
    fn drop(&mut self) {
        self.setup.later_plans.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A plan that is made once a question has been asked about enough bytes.
struct Later {
    setup: Arc<Setup>,
    question: Arc<Question>,
    /// Bytes of a buffer, over all calls so far.
    bytes: AtomicUsize,
    /// Bytes of a buffer after which the plan is made.
    after: usize,
    /// Whether a separate thread makes the plan.
    is_aside: bool,
    planned: Arc<Claimed<Result<LaterPlan>>>,
}

impl From<Executable> for QuestionAnswer {
    fn from(first: Executable) -> Self {
        Self { first, later: None }
    }
}

impl QuestionAnswer {
    /// Answers a question, directly if that is possible. Returns the answer with its weight. A
    /// direct answer has at least as many operands as the plan that may follow it.
    ///
    /// # Errors
    /// If the question has no answer.
    pub(super) fn new(
        setup: &Arc<Setup>,
        question: &Arc<Question>,
    ) -> Result<(Self, AnswerWeight)> {
        let Some((first, operands, after)) = setup.direct(question)? else {
            let (planned, operands) = setup.plan(question, setup.serving)?;
            return Ok((planned.into(), AnswerWeight { operands, is_planned: true }));
        };
        let weight = AnswerWeight { operands, is_planned: false };
        let PlannedAfter::Bytes(after) = after else { return Ok((first.into(), weight)) };
        // A shard may lie in several buffers.
        let after = after / (setup.layout.cells.len() / setup.code.node_count()).max(1);
        let later = Later {
            setup: Arc::clone(setup),
            question: Arc::clone(question),
            bytes: AtomicUsize::new(0),
            after,
            is_aside: operands >= PLANNED_ASIDE,
            planned: Arc::default(),
        };
        Ok((Self { first, later: Some(later) }, weight))
    }

    /// As [`Executable::run_placed`].
    pub(super) fn run_placed<'b>(
        &self,
        place: impl FnOnce(&mut [BufferPlace<'b>]),
        name: impl Fn(usize) -> usize,
        threads: Threads,
        stores: Stores,
    ) -> Result<()> {
        let Some(later) = &self.later else {
            return self.first.run_placed(place, name, threads, stores);
        };
        if let Some(Ok(planned)) = later.planned.get() {
            return planned.program.run_placed(place, name, threads, stores);
        }
        let mut places = Table::new();
        let places = places.fill(self.first.buffers(), |_| BufferPlace::ABSENT);
        place(places);
        let length = places.iter().find(|place| !place.is_absent()).map_or(0, |place| place.length);
        if let Some(planned) = later.earned(length) {
            return planned.run_at(places, name, threads, stores);
        }
        self.first.run_at(places, &name, threads, stores).or_else(|error| {
            // The plan may read fewer buffers than the direct answer. If one is absent, the plan
            // decides whether these buffers fit. No other error is worth the time of a plan.
            if error.kind() != ErrorKind::Buffers {
                return Err(error);
            }
            let planned = later.plan().ok_or(error)?;
            planned.run_at(places, &name, threads, stores)
        })
    }

    /// Runs over buffers, each with its number; all other buffers are absent.
    ///
    /// # Errors
    /// As [`Executable::run_placed`].
    pub(super) fn run<'b>(
        &self,
        buffers: impl IntoIterator<Item = (usize, Buffer<'b>)>,
        threads: Threads,
        stores: Stores,
    ) -> Result<()> {
        self.run_placed(|places| enter(places, buffers), |buffer| buffer, threads, stores)
    }

    /// The programs that may run.
    pub(super) fn executables(&self) -> impl Iterator<Item = &Executable> {
        let planned = self.later.as_ref().and_then(|later| later.planned.get()?.as_ref().ok());
        [&self.first].into_iter().chain(planned.map(|planned| &planned.program))
    }
}

impl Later {
    /// Counts a call over buffers of `length` bytes. Returns the planned program, if the question
    /// has been asked about enough bytes, the codec has room for the program, and it is ready.
    fn earned(&self, length: usize) -> Option<&Executable> {
        let before = self.bytes.fetch_add(length, Ordering::Relaxed);
        if before.saturating_add(length) < self.after
            || self.setup.later_plans.load(Ordering::Relaxed) >= KEPT_PROGRAMS
        {
            return None;
        }
        if self.is_aside {
            self.planned.make_aside(self.planning());
            return self.planned.get()?.as_ref().ok().map(|planned| &planned.program);
        }
        self.plan()
    }

    /// Returns the planned program; `None` if another call is making it, or if it cannot be made.
    fn plan(&self) -> Option<&Executable> {
        let planned = self.planned.get_or_make(self.planning())?.as_ref();
        planned.ok().map(|planned| &planned.program)
    }

    /// Returns a function that makes the planned program.
    fn planning(&self) -> impl FnOnce() -> Result<LaterPlan> + Clone + Send + use<> {
        let (setup, question) = (Arc::clone(&self.setup), Arc::clone(&self.question));
        move || {
            let (program, _) = setup.plan(&question, setup.serving.at_once())?;
            setup.later_plans.fetch_add(1, Ordering::Relaxed);
            Ok(LaterPlan { program, setup })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::options::CodecOptions;
    use crate::define::cells::NodeId;
    use crate::define::code::Code;
    use crate::define::erasure::combinations;
    use crate::limits::{PLANNED_AFTER, PLANNED_AFTER_MOST};
    use crate::plan::layout::BufferLayout;
    use crate::run::dispatch::{Kernel, KernelChoice};
    use crate::run::threads::Split;

    fn setup(spec: &str, options: CodecOptions) -> Arc<Setup> {
        let code = Code::new(&spec.parse().unwrap()).unwrap();
        Arc::new(Setup::new(code, options, BufferLayout::Node).unwrap())
    }

    /// The question for lost nodes.
    fn question(code: &Code, lost: &[usize]) -> Arc<Question> {
        let (lost, present): (Vec<NodeId>, Vec<NodeId>) =
            code.nodes().partition(|node| lost.contains(&node.index()));
        Arc::new(Question::Compute(code.cells_of(present), code.cells_of(lost)))
    }

    /// Every pattern of losses that a code survives is answered without a plan, and the answer has
    /// at least as many operands as the plan.
    #[test]
    fn new_questions_are_not_planned() {
        for spec in ["4+2", "10+4", "rdp:k=6", "xcode:n=5", "backblaze:k=6,m=3", "isal-rs:k=5,m=3"]
        {
            let setup = setup(spec, CodecOptions::default());
            let (nodes, most) = (setup.code.node_count(), setup.code.tolerance());
            for lost in (1..=most).flat_map(|count| combinations(nodes, count)).step_by(7) {
                let question = question(&setup.code, &lost);
                let (answer, weight) = QuestionAnswer::new(&setup, &question).unwrap();
                assert!(answer.later.is_some() && !weight.is_planned, "{spec} {lost:?}");
                let (_, planned) = setup.plan(&question, setup.serving).unwrap();
                assert!(weight.operands >= planned, "{spec} {lost:?}: {weight:?} and {planned}");
            }
        }
    }

    /// However wide a code is, its calls do not wait for plans, and plans do not wait for ever.
    #[test]
    fn wide_codes_begin_with_direct_answers() {
        for (spec, after) in [
            ("4+2", PLANNED_AFTER),
            ("160+160", PLANNED_AFTER_MOST),
            // Encoded by transforms.
            ("200+20", PLANNED_AFTER),
            ("128+128", PLANNED_AFTER),
        ] {
            let setup = setup(spec, CodecOptions::default().packet(64));
            let parity = setup.code.nodes().filter(|&node| !setup.code.holds_data(node));
            let lost: Vec<usize> = parity.map(NodeId::index).collect();
            let question = question(&setup.code, &lost);
            let (answer, _) = QuestionAnswer::new(&setup, &question).unwrap();
            let later = answer.later.expect("a plan follows");
            assert_eq!((later.after, later.is_aside), (after, spec != "4+2"), "{spec}");
        }
    }

    /// Direct answers to losses of an array code are dense, and its plans take little time: they
    /// replace such answers soon.
    #[test]
    fn sparse_codes_are_planned_soon() {
        let soon = 1..=PLANNED_AFTER / 2;
        let usual = PLANNED_AFTER..=PLANNED_AFTER_MOST;
        for (spec, after) in
            [("rdp:k=60", &soon), ("xcode:n=43", &soon), ("cauchy:k=30,m=2", &usual)]
        {
            let setup = setup(spec, CodecOptions::default().packet(64));
            let question = question(&setup.code, &[0, 1]);
            let (answer, weight) = QuestionAnswer::new(&setup, &question).unwrap();
            let later = answer.later.expect("a plan follows");
            assert!(after.contains(&later.after), "{spec}: {} {weight:?}", later.after);
        }
    }

    /// Without direct answers, first calls plan, but for losses that a transform recovers.
    #[test]
    fn first_calls_may_plan() {
        for (spec, lost, is_planned) in
            [("4+2", vec![0, 1], true), ("64+64", (0..64).collect(), false)]
        {
            let setup = setup(spec, CodecOptions::default().direct(false));
            let question = question(&setup.code, &lost);
            let (answer, weight) = QuestionAnswer::new(&setup, &question).unwrap();
            assert!(answer.later.is_none(), "{spec}");
            assert_eq!(weight.is_planned, is_planned, "{spec}");
        }
    }

    /// A shard in several buffers counts as a whole.
    #[test]
    fn lanes_count_as_shards() {
        let code = Code::new(&"rdp:k=6".parse().unwrap()).unwrap();
        let after = |layout| {
            let setup = Setup::new(code.clone(), CodecOptions::default(), layout).unwrap();
            let question = question(&code, &[0, 1]);
            let (answer, _) = QuestionAnswer::new(&Arc::new(setup), &question).unwrap();
            answer.later.expect("a plan follows").after
        };
        let lanes = code.node_cells(0).len() / code.lane_rows();
        assert!(lanes > 1);
        assert_eq!(after(BufferLayout::Lane), after(BufferLayout::Node) / lanes);
    }

    /// Runs an answer over shards of a length.
    fn run(answer: &QuestionAnswer, lost: &[usize], nodes: usize, length: usize) {
        let threads = Threads { most: None, bytes_each: usize::MAX };
        let mut shards = vec![vec![0; length]; nodes];
        let buffers = shards.iter_mut().enumerate().map(|(node, shard)| {
            let is_lost = lost.contains(&node);
            (node, if is_lost { Buffer::Target(shard) } else { Buffer::Source(shard) })
        });
        answer.run(buffers, threads, Stores::Cached).unwrap();
    }

    #[test]
    fn questions_are_planned_after_enough_bytes() {
        let setup = setup("4+2", CodecOptions::default());
        let lost = [0, 3];
        let (answer, _) = QuestionAnswer::new(&setup, &question(&setup.code, &lost)).unwrap();
        let is_planned = || answer.executables().count() == 2;
        let length = (PLANNED_AFTER / 4).next_multiple_of(3);
        for _ in 0..3 {
            run(&answer, &lost, 6, length);
            assert!(!is_planned());
        }
        run(&answer, &lost, 6, length);
        assert!(is_planned());
        let (answer, _) = QuestionAnswer::new(&setup, &question(&setup.code, &lost)).unwrap();
        run(&answer, &lost, 6, 4 * length);
        assert_eq!(answer.executables().count(), 2, "a large call is planned at once");
    }

    /// Once a codec has the largest number of plans, it plans another question only after a plan
    /// has been dropped.
    #[test]
    fn a_codec_has_a_limited_number_of_plans() {
        let setup = setup("10+4", CodecOptions::default());
        let length = PLANNED_AFTER.next_multiple_of(4);
        let answers = combinations(14, 4).take(2).map(|lost| {
            let question = question(&setup.code, &lost);
            let (answer, _) = QuestionAnswer::new(&setup, &question).unwrap();
            (lost, answer)
        });
        let mut answers: Vec<_> = answers.collect();
        let is_planned = |answer: &QuestionAnswer| answer.executables().count() == 2;
        setup.later_plans.store(KEPT_PROGRAMS - 1, Ordering::Relaxed);
        for (at, (lost, answer)) in answers.iter().take(2).enumerate() {
            run(answer, lost, 14, length);
            assert_eq!(is_planned(answer), at == 0);
        }
        drop(answers.remove(0));
        let (lost, answer) = &answers[0];
        run(answer, lost, 14, length);
        assert!(is_planned(answer));
    }

    /// Losses that a transform recovers are never planned; encoding by a transform is.
    #[test]
    fn transforms_recover_without_a_plan() {
        for spec in ["backblaze:k=64,m=64", "leopard8:k=64,m=64"] {
            let setup = setup(spec, CodecOptions::default());
            let lost: Vec<usize> = (3..128).step_by(2).collect();
            let (answer, _) = QuestionAnswer::new(&setup, &question(&setup.code, &lost)).unwrap();
            let parity: Vec<usize> = (64..128).collect();
            let (encode, _) = QuestionAnswer::new(&setup, &question(&setup.code, &parity)).unwrap();
            let before = crate::codec::setup::PLANS.get();
            run(&answer, &lost, 128, PLANNED_AFTER);
            run(&encode, &parity, 128, PLANNED_AFTER);
            // A plan that another thread makes is ready after some time.
            for _ in 0..60_000 {
                if encode.executables().count() == 2 {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            assert_eq!(answer.executables().count(), 1, "{spec}");
            assert_eq!(encode.executables().count(), 2, "{spec}");
            assert_eq!(crate::codec::setup::PLANS.get(), before, "{spec}: plans of the caller");
        }
    }

    /// A call with a wrong length is refused without a plan, however often it comes.
    #[test]
    fn wrong_lengths_plan_nothing() {
        for (spec, lost) in [("10+4", 4), ("cauchy:k=32,m=32", 32), ("backblaze:k=10,m=4", 4)] {
            let setup = setup(spec, CodecOptions::default());
            let lost: Vec<usize> = (0..lost).collect();
            let (answer, _) = QuestionAnswer::new(&setup, &question(&setup.code, &lost)).unwrap();
            let nodes = setup.code.node_count();
            let mut shards = vec![vec![0; 1024 * setup.layout.rows[0]]; nodes];
            shards[nodes - 1].pop();
            let before = crate::codec::setup::PLANS.get();
            for _ in 0..3 {
                let buffers = shards.iter_mut().enumerate().map(|(node, shard)| {
                    let is_lost = lost.contains(&node);
                    (node, if is_lost { Buffer::Target(shard) } else { Buffer::Source(shard) })
                });
                let threads = Threads { most: None, bytes_each: usize::MAX };
                let error = answer.run(buffers, threads, Stores::Cached).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Length, "{spec}: {error}");
            }
            assert_eq!(crate::codec::setup::PLANS.get(), before, "{spec}");
        }
    }

    /// A small code is planned by the call that reaches the number of bytes, a wide one by another
    /// thread.
    #[test]
    fn callers_plan_small_codes_alone() {
        for (spec, k, plans) in [("backblaze:k=10,m=4", 10, 1), ("backblaze:k=128,m=128", 128, 0)] {
            let setup = setup(spec, CodecOptions::default());
            let parity: Vec<usize> = (k..setup.code.node_count()).collect();
            let (encode, _) = QuestionAnswer::new(&setup, &question(&setup.code, &parity)).unwrap();
            let before = crate::codec::setup::PLANS.get();
            for _ in 0..2 {
                run(&encode, &parity, setup.code.node_count(), PLANNED_AFTER);
            }
            assert_eq!(crate::codec::setup::PLANS.get() - before, plans, "{spec}");
        }
    }

    #[test]
    fn questions_that_need_plans_are_planned_at_once() {
        let by_name = CodecOptions::default().kernel(KernelChoice::Only(Kernel::Scalar));
        let by_nodes = CodecOptions::default().split(Split::Node);
        for (spec, options) in [
            ("4+2", by_name),
            ("4+2", by_nodes),
            ("reed-solomon:k=4,m=2,w=16", CodecOptions::default()),
            ("lt:k=30,n=60", CodecOptions::default()),
        ] {
            let setup = setup(spec, options);
            let direct = setup.direct(&question(&setup.code, &[1])).unwrap();
            assert!(direct.is_none(), "{spec}");
        }
    }
}
