//! The codec in the word layout: nodes and words in the place of cells and packets.
//!
//! A node holds one symbol, which comes and goes as a whole, so that buffers are nodes and
//! questions are about nodes. Words do not interact, so that a strip can be as short as one word,
//! and shards be of any whole number of them. Files, whose blocks are strips of `w` packets in
//! every layout, take words as they come: a strip of w · packet bytes is 8 · packet words.

use crate::codec::{BufferLayout, Codec};
use crate::define::cells::{CellSet, NodeId};
use crate::error::{Error, Result};
use crate::run::kernel::Executable;
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
        let buffers = |nodes: &[NodeId]| nodes.iter().map(|node| node.index()).collect();
        let (inputs, outputs) = (buffers(combination.inputs()), buffers(combination.outputs()));
        let strip = self.word_strip().unwrap_or(1);
        let count = self.buffer_count();
        kernel.compile(&WordProgram::new(&combination, inputs, outputs, false, count, strip)?)
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
