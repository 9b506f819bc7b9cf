//! The codec for LT codes: whole blocks in the place of packets.
//!
//! A block is a cell and, where buffers are lanes, a buffer of its own. So a schedule is not bound to
//! packets but run down the blocks ([`crate::run::blocks`]), whatever their length. Solving a graph
//! costs more than running a small segment, and an object's segments mostly miss the same
//! blocks: answers are kept, also those that say no.

use std::sync::{Arc, PoisonError};

use crate::codec::{Codec, Question};
use crate::define::cells::{CellId, CellSet};
use crate::error::{Error, Result};
use crate::run::blocks::BlockProgram;
use crate::run::kernel::{self, Buffer};

/// How many answers a codec keeps; one may have a million operands.
const KEPT_ANSWERS: usize = 8;

/// A schedule with the buffers that it reads and writes, by their numbers.
#[derive(Debug)]
pub(super) struct BlockAnswer {
    program: BlockProgram,
    inputs: Vec<usize>,
    outputs: Vec<usize>,
}

/// The answers given last, the newest at the end.
pub(super) type Answers = Vec<(Question, Result<Arc<BlockAnswer>>)>;

impl Codec {
    /// Whether buffers are the blocks of an LT code.
    pub(super) fn has_blocks(&self) -> bool {
        self.code.graph().is_some() && self.layout.cells.iter().all(|cells| cells.len() == 1)
    }

    /// As [`Codec::compute`].
    pub(super) fn compute_blocks(
        &self,
        have: &CellSet,
        want: &CellSet,
        buffers: &mut [Buffer<'_>],
    ) -> Result<()> {
        let answer = self.block_answer(have, want)?;
        let runner = self.kernel().block_runner().ok_or_else(|| self.kernel().unavailable())?;
        let mut sources: Vec<Option<&[u8]>> = Vec::new();
        let mut targets: Vec<Option<&mut [u8]>> = Vec::new();
        for buffer in buffers {
            let (source, target) = match buffer {
                Buffer::Absent => (None, None),
                Buffer::Source(bytes) => (Some(&**bytes), None),
                Buffer::Target(bytes) => (None, Some(&mut **bytes)),
            };
            sources.push(source);
            targets.push(target);
        }
        let absent = |buffer| Error::length(format!("block {buffer} is needed but absent"));
        let input = |&buffer: &usize| sources.get(buffer).copied().flatten();
        let inputs = answer.inputs.iter().map(|b| input(b).ok_or_else(|| absent(*b)));
        let inputs: Vec<&[u8]> = inputs.collect::<Result<_>>()?;
        let output = |&buffer: &usize| targets.get_mut(buffer).and_then(Option::take);
        let mut outputs: Vec<Option<&mut [u8]>> = answer.outputs.iter().map(output).collect();
        if let Some(place) = outputs.iter().position(Option::is_none) {
            return Err(absent(answer.outputs[place]));
        }
        let (threads, stores) = (self.threads(), self.options.stores);
        kernel::blocks::run(&answer.program, runner, &inputs, &mut outputs, threads, stores)
    }

    /// The answer to a question, kept or found.
    pub(super) fn block_answer(&self, have: &CellSet, want: &CellSet) -> Result<Arc<BlockAnswer>> {
        let answers = || self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let question = Question::Compute(have.clone(), want.clone());
        if let Some((_, answer)) = answers().iter().find(|(asked, _)| *asked == question) {
            return answer.clone();
        }
        // Solved outside the lock: two threads may solve the same question, which is harmless.
        let answer = self.solve_blocks(have, want).map(Arc::new);
        let mut answers = answers();
        if answers.len() == KEPT_ANSWERS {
            let _ = answers.remove(0);
        }
        answers.push((question, answer.clone()));
        answer
    }

    fn solve_blocks(&self, have: &CellSet, want: &CellSet) -> Result<BlockAnswer> {
        let plan = self.code.schedule_with(have, want, self.options.plan)?;
        let locate = |cells: &[CellId]| -> Vec<usize> {
            cells.iter().map(|cell| self.layout.locations[cell.index()].buffer).collect()
        };
        let (inputs, outputs) = (locate(plan.inputs()), locate(plan.outputs()));
        Ok(BlockAnswer { program: BlockProgram::new(plan.schedule())?, inputs, outputs })
    }
}
