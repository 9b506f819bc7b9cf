//! The codec of shard files: every lane of every node is a buffer of its own.

use crate::codec::engine::Engine;
#[cfg(feature = "research")]
use crate::codec::explain::{Call, Explanation};
use crate::codec::options::CodecOptions;
use crate::define::cells::{CellId, CellSet, NodeId};
use crate::define::code::Code;
use crate::error::Result;
use crate::plan::layout::BufferLayout;
use crate::run::buffers::Buffer;

/// Runs a code over lanes (see [`Code::lane_rows`]). A node's lanes are stored one after the other,
/// each with a checksum, so that damage to one lane leaves the others readable; the blocks of an LT
/// code are lanes. A call names the cells at hand and the cells that are wanted.
///
/// Callers who have whole shards use a [`Codec`](crate::Codec).
#[derive(Debug)]
pub struct LaneCodec {
    engine: Engine,
}

impl LaneCodec {
    /// Creates a codec for a code.
    ///
    /// # Errors
    /// If the packet is empty or larger than 2^30 bytes, or if the kernel is not available.
    pub fn new(code: Code, options: CodecOptions) -> Result<Self> {
        Ok(Self { engine: Engine::new(code, options, BufferLayout::Lane)? })
    }

    /// Returns the code.
    pub fn code(&self) -> &Code {
        &self.engine.setup.code
    }

    /// Returns the bytes of a packet.
    pub fn packet(&self) -> usize {
        self.engine.setup.options.packet
    }

    /// Returns the name of the kernel that runs.
    pub fn kernel_name(&self) -> &'static str {
        self.engine.kernel_name()
    }

    /// As [`Codec::fallback`](crate::Codec::fallback).
    pub fn fallback(&self) -> Option<String> {
        self.engine.fallback()
    }

    /// Returns the bytes of the largest strip, by which a lane grows from one stripe to the next.
    /// In the word layout a strip has the bytes of w packets.
    pub fn strip(&self) -> usize {
        let rows = match self.code().symbols() {
            Some(symbols) => symbols.field().width() as usize,
            None => self.engine.setup.layout.widest(),
        };
        rows * self.packet()
    }

    /// Returns the number of buffers of a call: node by node, within a node lane by lane, then data
    /// cells that are stored nowhere.
    pub fn buffer_count(&self) -> usize {
        self.engine.setup.layout.cells.len()
    }

    /// Returns the cells of a buffer by row. A buffer has `rows · length` bytes, where `length` is
    /// the same for all buffers; in the word layout, `length` bytes.
    ///
    /// # Panics
    /// If there is no such buffer.
    pub fn buffer_cells(&self, buffer: usize) -> &[CellId] {
        &self.engine.setup.layout.cells[buffer]
    }

    /// Returns the node that a buffer belongs to, if the buffer is stored.
    ///
    /// # Panics
    /// If there is no such buffer.
    pub fn buffer_node(&self, buffer: usize) -> Option<NodeId> {
        let cell = self.buffer_cells(buffer).first()?;
        self.code().cell(*cell).place.map(|place| place.node)
    }

    /// Returns the buffers that hold only data, in the order of the user's bytes.
    pub fn data_buffers(&self) -> &[usize] {
        &self.engine.setup.layout.data
    }

    /// Computes the cells of `want` from those of `have`. Buffers with wanted cells are
    /// [`Buffer::Target`], and other buffers that are read are [`Buffer::Source`]; the rest may be
    /// absent. If `buffers` is shorter than [`LaneCodec::buffer_count`], the remaining buffers are
    /// absent; if it is longer, the rest is ignored.
    ///
    /// # Errors
    /// If the cells of `have` do not determine all wanted cells ([`crate::ErrorKind::NotEnough`]);
    /// if the code lacks a cell of either set, or if no buffer holds a cell that is read or
    /// computed ([`crate::ErrorKind::Parameters`]); or if the buffers do not fit
    /// ([`crate::ErrorKind::Buffers`], [`crate::ErrorKind::Length`]).
    pub fn compute(
        &self,
        have: &CellSet,
        want: &CellSet,
        buffers: &mut [Buffer<'_>],
    ) -> Result<()> {
        self.engine.compute(have, want, buffers)
    }

    /// Returns whether the cells of `want` can be computed from those of `have`. The answer is
    /// prepared and kept, so a later call that asks the same question need not prepare it again.
    ///
    /// The blocks of an LT code determine all data or nothing: it is not looked for whether they
    /// happen to determine some of it. Where words are not divided, a set with a part of a word is
    /// refused, and the answer is `false`.
    pub fn solvable(&self, have: &CellSet, want: &CellSet) -> bool {
        self.engine.solvable(have, want)
    }

    /// Explains what [`LaneCodec::compute`] runs.
    ///
    /// # Errors
    /// As [`LaneCodec::compute`].
    #[cfg(feature = "research")]
    pub fn explain(&self, have: &CellSet, want: &CellSet, call: &Call) -> Result<Explanation> {
        self.engine.explain(have, want, call)
    }
}
