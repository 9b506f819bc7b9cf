//! Everything that answers depend on: a code, its options, the layout of buffers and the kernel in
//! use.

use std::sync::atomic::AtomicUsize;

use crate::codec::options::CodecOptions;
use crate::codec::question::Question;
use crate::codec::shards::StageNodes;
use crate::define::cells::{CellId, CellSet};
use crate::define::code::Code;
use crate::define::made::FirstMade;
use crate::error::{Error, Result};
use crate::plan::blocks::BlockProgram;
use crate::plan::direct::DirectSolver;
use crate::plan::direct::sums::PlannedAfter;
use crate::plan::execution::{Execution, Planner, WorkShares};
use crate::plan::layout::{BufferLayout, Layout};
use crate::plan::prove::Proof;
use crate::plan::variants::CompileTarget;
use crate::run::dispatch::{Kernel, Serving, WordKernel};
use crate::run::executable::Executable;
use crate::run::threads::{Split, thread_count};
use crate::run::{blocks, direct};

#[cfg(test)]
thread_local! {
    /// Number of questions that this thread has planned.
    pub(super) static PLANS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// A code, with everything that decides how questions about it are answered.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) code: Code,
    pub(super) options: CodecOptions,
    pub(super) layout: Layout,
    pub(super) serving: Serving,
    /// Solver for questions without a plan, made when it is first needed; `None` if the code needs
    /// plans.
    solver: FirstMade<Option<DirectSolver>>,
    /// Number of plans that have replaced direct answers and are still there.
    pub(super) later_plans: AtomicUsize,
}

impl Setup {
    /// Prepares to run a code over buffers laid out as `buffers` says.
    ///
    /// # Errors
    /// If the packet is empty or larger than 2^30 bytes, if the kernel is not available, or if
    /// words are to be split by rows.
    pub(super) fn new(code: Code, options: CodecOptions, buffers: BufferLayout) -> Result<Self> {
        if options.packet == 0 || options.packet > 1 << 30 {
            return Err(Error::parameters(format!(
                "packet: must be 1 to 2^30 bytes; got {}",
                options.packet
            )));
        }
        if options.split == Split::Rows && code.symbols().is_some() {
            return Err(Error::parameters(format!(
                "split: {} is in the word layout, which has no rows of packets; must be stripe, \
                 node or columns; got rows",
                code.spec()
            )));
        }
        let kernel = options.kernel.resolve(options.packet);
        if !kernel.is_available() {
            return Err(kernel.unavailable());
        }
        if let Some(kernel) = options.word_kernel.filter(|kernel| !kernel.is_available()) {
            return Err(kernel.unavailable());
        }
        let layout = Layout::new(&code, buffers, options.packet);
        if layout.widest().checked_mul(options.packet).is_none() {
            let (spec, packet, rows) = (code.spec(), options.packet, layout.widest());
            return Err(Error::parameters(format!(
                "{spec}: {rows} packets of {packet} bytes are more than memory can have"
            )));
        }
        let serving = match code.symbols() {
            Some(_) => {
                let chosen = WordKernel::resolve(options.kernel);
                let by_name = options.word_kernel.is_some() || options.kernel.is_by_name();
                let kernel = options.word_kernel.unwrap_or(chosen);
                Serving::words(kernel, by_name, options.prefetch)
            }
            None => Serving::packets(options.kernel, kernel, options.prefetch),
        };
        let serving = if options.direct { serving } else { serving.at_once() };
        Ok(Self {
            code,
            options,
            layout,
            serving,
            solver: FirstMade::new(),
            later_plans: AtomicUsize::new(0),
        })
    }

    /// Returns the kernel that runs in the packet layout.
    pub(super) fn kernel(&self) -> Kernel {
        self.options.kernel.resolve(self.options.packet)
    }

    /// Returns the kernel that runs words, if the code is in the word layout.
    pub(super) fn word_kernel(&self) -> Option<WordKernel> {
        let chosen = || WordKernel::resolve(self.options.kernel);
        self.code.symbols().map(|_| self.options.word_kernel.unwrap_or_else(chosen))
    }

    /// Answers a question directly, without a plan, if that is possible. Returns the program with
    /// the number of its operands, and when a plan should follow.
    ///
    /// # Errors
    /// If the answer is wrong, which would be a bug.
    pub(super) fn direct(
        &self,
        question: &Question,
    ) -> Result<Option<(Executable, usize, PlannedAfter)>> {
        let (Question::Compute(have, want), Some(runner)) = (question, self.serving.direct())
        else {
            return Ok(None);
        };
        // If threads do not split a question by stripe, each thread has its own program.
        if self.options.split != Split::Stripe {
            return Ok(None);
        }
        let (code, layout) = (&self.code, &self.layout);
        if code.expect_cells([have, want]).is_err() {
            return Ok(None);
        }
        let solver = self.solver.get(|| DirectSolver::new(code, layout));
        let Some(solver) = solver else { return Ok(None) };
        let Some(sums) = solver.solve(code, layout, have, want) else { return Ok(None) };
        let (operands, planned) = (sums.terms.operands(), sums.planned);
        if !self.options.direct && planned != PlannedAfter::Never {
            return Ok(None);
        }
        let sample = || solver.sample(code, layout);
        let executable = direct::prepare(sums, runner, &layout.rows, layout.packet, sample)?;
        Ok(Some((executable, operands, planned)))
    }

    /// Plans a question, and prepares the program for the kernel of `serving`. Returns the program
    /// with the number of its operands.
    pub(super) fn plan(
        &self,
        question: &Question,
        serving: Serving,
    ) -> Result<(Executable, usize)> {
        #[cfg(test)]
        PLANS.set(PLANS.get() + 1);
        if let (Question::Compute(have, want), true) = (question, self.has_blocks()) {
            return self.prepare_blocks(have, want);
        }
        let execution = self.execution_for(question, serving.target())?;
        let operands = execution.operands();
        Ok((serving.prepare(execution)?, operands))
    }

    /// Plans a question down to the instructions of any target.
    pub(super) fn execution_for(
        &self,
        question: &Question,
        target: Option<CompileTarget>,
    ) -> Result<Execution> {
        let planner = self.planner(target);
        match question {
            Question::Compute(have, want) => planner.compute(have, want),
            Question::Update(node, change) => {
                let shards = StageNodes::new(&self.code, self.code.stages());
                let (_, targets) = shards.split(&self.code)?;
                planner.update(*node, *change, targets)
            }
            Question::Plan(plan) => planner.given(plan),
        }
    }

    fn planner(&self, target: Option<CompileTarget>) -> Planner<'_> {
        let threads = || thread_count(self.options.threads);
        Planner {
            code: &self.code,
            layout: &self.layout,
            target,
            shares: match self.options.split {
                Split::Stripe => WorkShares::Stripes,
                Split::Node => WorkShares::Nodes(threads()),
                Split::Columns => {
                    WorkShares::Columns { shares: threads(), packet: self.options.packet }
                }
                Split::Rows => WorkShares::Rows(threads()),
            },
            options: self.options.plan,
        }
    }

    /// Whether buffers are the blocks of an LT code, whose schedules are run along whole blocks.
    pub(super) fn has_blocks(&self) -> bool {
        self.code.graph().is_some() && self.layout.cells.iter().all(|cells| cells.len() == 1)
    }

    /// Solves an LT code's graph. Solving takes longer than running a small segment, and an
    /// object's segments mostly miss the same blocks; so answers are kept, refusals included.
    fn prepare_blocks(&self, have: &CellSet, want: &CellSet) -> Result<(Executable, usize)> {
        let plan = self.code.schedule_with(have, want, self.options.plan)?;
        let plan = Proof::new(&self.code).proved(plan)?;
        let locate = |cells: &[CellId]| -> Result<Vec<usize>> {
            let buffer = |&cell| Ok(self.layout.location(&self.code, cell)?.buffer);
            cells.iter().map(buffer).collect()
        };
        let (inputs, outputs) = (locate(plan.inputs())?, locate(plan.outputs())?);
        let program = BlockProgram::new(plan.schedule())?;
        let kernel = self.kernel();
        let runners = kernel.runners().ok_or_else(|| kernel.unavailable())?;
        let (operands, buffers) = (program.operands().len(), self.layout.cells.len());
        Ok((blocks::prepare(program, runners, inputs, outputs, false, buffers)?, operands))
    }
}
