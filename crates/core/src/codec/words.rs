//! The codec in the word layout: nodes and words in the place of cells and packets.
//!
//! A node holds one symbol, which comes and goes as a whole, so that buffers are nodes and
//! questions are about nodes. Words do not interact, so that a strip can be as short as one word,
//! and shards be of any whole number of them. Files, whose blocks are strips of `w` packets in
//! every layout, take words as they come: a strip of w · packet bytes is 8 · packet words.

use crate::codec::{BufferLayout, Codec, DEFAULT_PACKET, Sums};
use crate::define::cells::{CellSet, NodeId};
use crate::error::{Error, Result};
use crate::plan::schedule::Schedule;
use crate::run::kernel::Executable;
use crate::run::program::{Location, Program};
use crate::run::words::program::WordProgram;
use crate::run::words::select::WordKernel;

impl Codec {
    /// The word kernel that runs, if the code is in the word layout.
    pub(super) fn word_kernel(&self) -> Option<WordKernel> {
        let chosen = || WordKernel::resolve(self.options.kernel);
        self.code.symbols().map(|_| self.options.word_kernel.unwrap_or_else(chosen))
    }

    /// The bytes of a strip, if the code is in the word layout.
    pub(super) fn word_strip(&self) -> Option<usize> {
        let w = self.code.symbols()?.field().width() as usize;
        Some(match self.options.layout {
            BufferLayout::Node => w / 8,
            BufferLayout::Lane => w * self.options.packet,
        })
    }

    /// Compiles a question.
    pub(super) fn compile_words(
        &self,
        kernel: WordKernel,
        have: &CellSet,
        want: &CellSet,
    ) -> Result<Executable> {
        let (have, want) = (self.whole_nodes(have)?, self.whole_nodes(want)?);
        let combination = self.code.combination(&have, &want)?;
        let buffers =
            |nodes: &[NodeId]| -> Vec<usize> { nodes.iter().map(|node| node.index()).collect() };
        let (inputs, outputs) = (buffers(combination.inputs()), buffers(combination.outputs()));
        let strip = self.word_strip().unwrap_or(1);
        let count = self.buffer_count();
        if let Some(schedule) = combination.plain_sums().filter(|_| self.sums_by_xor()) {
            return self.compile_plain_sums(schedule, &inputs, &outputs, strip);
        }
        kernel.compile(&WordProgram::new(&combination, inputs, outputs, false, count, strip)?)
    }

    /// Whether sums without multiplications are run as XORs.
    fn sums_by_xor(&self) -> bool {
        self.options.sums == Sums::Xor
    }

    /// Compiles XORs of whole buffers.
    fn compile_plain_sums(
        &self,
        schedule: Schedule,
        inputs: &[usize],
        outputs: &[usize],
        strip: usize,
    ) -> Result<Executable> {
        let place = |&buffer: &usize| Location { buffer, row: 0 };
        let (inputs, outputs) =
            (inputs.iter().map(place).collect(), outputs.iter().map(place).collect());
        let rows = vec![1; self.buffer_count()];
        let program = Program::new(schedule, inputs, outputs, rows, strip)?;
        // A buffer is one stream, of which any kernel takes as many bytes at a time as it likes.
        let kernel = self.options.kernel.resolve(DEFAULT_PACKET);
        kernel.compile(&program, self.compiling())
    }

    /// Compiles an update: buffers are the node's old and new content, then the targets.
    pub(super) fn compile_word_update(
        &self,
        kernel: WordKernel,
        node: NodeId,
        targets: &[NodeId],
    ) -> Result<Executable> {
        let combination = self.code.combination_update(node, targets)?;
        let buffer = |output: &NodeId| 2 + targets.iter().take_while(|&t| t != output).count();
        let outputs = combination.outputs().iter().map(buffer).collect();
        let strip = self.word_strip().unwrap_or(1);
        let count = 2 + targets.len();
        kernel.compile(&WordProgram::new(&combination, vec![0, 1], outputs, true, count, strip)?)
    }

    /// The nodes whose cells these are.
    fn whole_nodes(&self, cells: &CellSet) -> Result<Vec<NodeId>> {
        let mut nodes = Vec::new();
        for node in self.code.nodes() {
            let all = self.code.node_cells(node);
            match all.iter().filter(|&&cell| cells.contains(cell)).count() {
                0 => {}
                count if count == all.len() => nodes.push(node),
                count => {
                    return Err(Error::parameters(format!(
                        "{}: words are not divided, but of node {} there are {count} of {} cells",
                        self.code.spec(),
                        node.index(),
                        all.len()
                    )));
                }
            }
        }
        Ok(nodes)
    }
}
