//! The engine of both codecs: answers questions about cells, over buffers.
//!
//! The answer to a question is made once and kept.

use std::sync::Arc;

use crate::codec::answer::QuestionAnswer;
use crate::codec::cache::Cache;
use crate::codec::options::CodecOptions;
use crate::codec::prepared::{Prepared, are_targets};
use crate::codec::question::Question;
use crate::codec::setup::Setup;
use crate::define::cells::CellSet;
use crate::define::code::Code;
use crate::error::Result;
use crate::plan::layout::BufferLayout;
use crate::run::buffers::Buffer;
use crate::run::dispatch::WordKernel;
use crate::run::executable::Executable;
use crate::run::threads::{Split, Threads};

/// A code that can be run over buffers of one layout.
#[derive(Debug)]
pub(super) struct Engine {
    pub(super) setup: Arc<Setup>,
    answers: Cache,
}

impl Engine {
    /// Prepares to run a code over buffers laid out as `buffers` says.
    ///
    /// # Errors
    /// As [`Setup::new`].
    pub(super) fn new(code: Code, options: CodecOptions, buffers: BufferLayout) -> Result<Self> {
        let setup = Arc::new(Setup::new(code, options, buffers)?);
        Ok(Self { setup, answers: Cache::default() })
    }

    /// Returns the name of the kernel that runs, in either layout: that of the tiled kernel for
    /// blocks of an LT code, and where another kernel could not run some program so far.
    pub(super) fn kernel_name(&self) -> &'static str {
        let runs_tiled = self.setup.has_blocks() || self.refusal().is_some();
        match self.setup.word_kernel() {
            None if runs_tiled => self.setup.kernel().tiled().name(),
            _ => self.chosen_name(),
        }
    }

    /// Returns the name of the kernel that was chosen.
    fn chosen_name(&self) -> &'static str {
        let kernel = || self.setup.kernel().name();
        self.setup.word_kernel().map_or_else(kernel, WordKernel::name)
    }

    /// Returns why the chosen kernel cannot run some program.
    fn refusal(&self) -> Option<String> {
        self.answers.find_map(Executable::fallback)
    }

    /// Returns why [`Codec::kernel`](crate::Codec::kernel) cannot run some program; `None` if it
    /// has run all programs so far. Another kernel then runs instead.
    pub(super) fn fallback(&self) -> Option<String> {
        let why = self.refusal()?;
        Some(format!("{} cannot serve: {why}", self.chosen_name()))
    }

    /// Returns how threads share the work of the programs so far: as the options say, unless every
    /// program is split by stripes.
    pub(super) fn split_in_use(&self) -> Split {
        let divided = |program: &Executable| (!program.is_by_stripes()).then_some(());
        self.answers.find_map(divided).map_or(Split::Stripe, |()| self.setup.options.split)
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

    /// Returns whether the cells of `want` can be computed from those of `have`. The answer is
    /// prepared and kept, so a later call that asks the same question need not prepare it again.
    pub(super) fn solvable(&self, have: &CellSet, want: &CellSet) -> bool {
        self.answer_to(&Question::compute(have, want)).is_ok()
    }

    /// Prepares a question over groups of `count` shards, one for each buffer if it is `None`.
    pub(super) fn prepared(
        &self,
        question: &Question,
        count: Option<usize>,
        sources: &[usize],
        targets: &[usize],
    ) -> Result<Prepared> {
        let count = count.unwrap_or(self.setup.layout.cells.len());
        Ok(Prepared {
            answer: self.answer_to(question)?,
            sources: sources.into(),
            targets: targets.into(),
            are_targets: are_targets(count, sources, targets),
            nodes: None,
            threads: self.threads(),
            stores: self.setup.options.stores,
        })
    }

    /// Answers a question over buffers, each with its number.
    pub(super) fn answer<'b>(
        &self,
        question: &Question,
        buffers: impl IntoIterator<Item = (usize, Buffer<'b>)>,
    ) -> Result<()> {
        self.answer_to(question)?.run(buffers, self.threads(), self.setup.options.stores)
    }

    /// Returns the answer to a question: one that is kept, or a new one.
    fn answer_to(&self, question: &Question) -> Result<Arc<QuestionAnswer>> {
        self.answers.get(question, |question| QuestionAnswer::new(&self.setup, question))
    }

    fn threads(&self) -> Threads {
        Threads { most: self.setup.options.threads, bytes_each: self.setup.options.bytes_a_thread }
    }
}
