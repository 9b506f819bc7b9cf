//! The engine of both codecs: answers questions about cells, over buffers.
//!
//! The schedule for a question is planned and compiled once and kept.

use std::sync::Arc;

use crate::codec::cache::{Cache, Question};
use crate::codec::options::CodecOptions;
use crate::codec::prepared::Prepared;
use crate::codec::shards::StageNodes;
use crate::define::cells::{CellId, CellSet};
use crate::define::code::Code;
use crate::error::{Error, Result};
use crate::plan::blocks::BlockProgram;
use crate::plan::execution::{Execution, Planner, WorkShares};
use crate::plan::layout::{BufferLayout, Layout};
use crate::plan::prove::Proof;
use crate::plan::variants::CompileTarget;
use crate::run::blocks;
use crate::run::buffers::Buffer;
use crate::run::dispatch::{Kernel, Serving, WordKernel};
use crate::run::executable::Executable;
use crate::run::threads::{Split, Threads, thread_count};

/// A code that can be run over buffers of one layout.
#[derive(Debug)]
pub(super) struct Engine {
    pub(super) code: Code,
    pub(super) options: CodecOptions,
    pub(super) layout: Layout,
    pub(super) serving: Serving,
    programs: Cache,
}

impl Engine {
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
        let serving = match code.symbols() {
            Some(_) => {
                let chosen = WordKernel::resolve(options.kernel);
                let by_name = options.word_kernel.is_some() || options.kernel.is_by_name();
                let kernel = options.word_kernel.unwrap_or(chosen);
                Serving::words(kernel, by_name, options.prefetch)
            }
            None => Serving::packets(options.kernel, kernel, options.prefetch),
        };
        Ok(Self { code, options, layout, serving, programs: Cache::default() })
    }

    /// Returns the name of the kernel that runs, in either layout; for blocks of an LT code, the
    /// name of the tiled kernel.
    pub(super) fn kernel_name(&self) -> &'static str {
        let kernel = if self.has_blocks() { self.kernel().tiled() } else { self.kernel() };
        self.word_kernel().map_or_else(|| kernel.name(), WordKernel::name)
    }

    /// Returns the kernel that runs in the packet layout.
    pub(super) fn kernel(&self) -> Kernel {
        self.options.kernel.resolve(self.options.packet)
    }

    /// Returns the reason for which [`Codec::kernel`](crate::Codec::kernel) cannot run some
    /// program, if there is one. Another kernel then serves.
    pub(super) fn fallback(&self) -> Option<String> {
        let why = self.programs.find_map(Executable::fallback)?;
        Some(format!("{} cannot serve: {why}", self.kernel_name()))
    }

    /// Returns how threads share the work of the programs so far: as the options say, unless every
    /// program is split by stripes.
    pub(super) fn split_in_use(&self) -> Split {
        let divided = |program: &Executable| (!program.is_by_stripes()).then_some(());
        self.programs.find_map(divided).map_or(Split::Stripe, |()| self.options.split)
    }

    /// Returns the kernel that runs words, if the code is in the word layout.
    fn word_kernel(&self) -> Option<WordKernel> {
        let chosen = || WordKernel::resolve(self.options.kernel);
        self.code.symbols().map(|_| self.options.word_kernel.unwrap_or_else(chosen))
    }

    /// Computes the cells of `want` from those of `have`. Buffers with wanted cells are
    /// [`Buffer::Target`], and other buffers that are read are [`Buffer::Source`]; the rest may be
    /// absent.
    ///
    /// # Errors
    /// If the cells of `have` do not determine all wanted cells ([`crate::ErrorKind::NotEnough`]),
    /// or if the buffers do not fit ([`crate::ErrorKind::Buffers`], [`crate::ErrorKind::Length`]).
    pub(super) fn compute(
        &self,
        have: &CellSet,
        want: &CellSet,
        buffers: &mut [Buffer<'_>],
    ) -> Result<()> {
        let buffers = buffers.iter_mut().map(Buffer::reborrow).enumerate();
        self.answer(&Question::compute(have, want), buffers)
    }

    /// Returns whether the cells of `want` can be computed from those of `have`. The schedule is
    /// planned and kept, so a later call that runs it does not plan again.
    pub(super) fn solvable(&self, have: &CellSet, want: &CellSet) -> bool {
        self.program(&Question::compute(have, want)).is_ok()
    }

    pub(super) fn prepared(
        &self,
        question: &Question,
        sources: &[usize],
        targets: &[usize],
    ) -> Result<Prepared> {
        Ok(Prepared {
            executable: self.program(question)?,
            sources: sources.into(),
            targets: targets.into(),
            nodes: None,
            threads: self.threads(),
            stores: self.options.stores,
        })
    }

    /// Answers a question over buffers, each with its number.
    pub(super) fn answer<'b>(
        &self,
        question: &Question,
        buffers: impl IntoIterator<Item = (usize, Buffer<'b>)>,
    ) -> Result<()> {
        self.program(question)?.run(buffers, self.threads(), self.options.stores)
    }

    /// Returns the program for a question: one that is kept, or a new one.
    fn program(&self, question: &Question) -> Result<Arc<Executable>> {
        self.programs.get(question, || self.prepare(question))
    }

    /// Prepares the program for a question. Returns it with the number of its operands.
    fn prepare(&self, question: &Question) -> Result<(Executable, usize)> {
        if let (Question::Compute(have, want), true) = (question, self.has_blocks()) {
            return self.prepare_blocks(have, want);
        }
        let execution = self.execution(question)?;
        let operands = execution.operands();
        Ok((self.serving.prepare(execution)?, operands))
    }

    /// Plans a question down to the instructions of the kernel that serves.
    fn execution(&self, question: &Question) -> Result<Execution> {
        self.execution_for(question, self.serving.target())
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
        Ok((blocks::prepare(program, runners, inputs, outputs, buffers)?, operands))
    }

    fn threads(&self) -> Threads {
        Threads { most: self.options.threads, bytes_each: self.options.bytes_a_thread }
    }
}
