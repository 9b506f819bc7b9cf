//! The codec of shard files: every lane of every node is a buffer of its own.

use crate::codec::engine::Engine;
use crate::codec::explain::{Call, Explanation};
use crate::codec::options::CodecOptions;
use crate::define::cells::{CellId, CellSet, NodeId};
use crate::define::code::Code;
use crate::error::Result;
use crate::plan::layout::BufferLayout;
use crate::run::buffers::Buffer;

/// A code that can be run over lanes (see [`Code::lane_rows`]). A node's lanes are stored one after
/// the other, each with a checksum, so that damage to one costs no other; the blocks of an LT code
/// are lanes. What is asked is always which cells are made from which.
///
/// Whoever has whole shards takes a [`Codec`](crate::Codec).
#[derive(Debug)]
pub struct LaneCodec {
    engine: Engine,
}

impl LaneCodec {
    /// A codec for a code.
    ///
    /// # Errors
    /// If the packet is empty or larger than 2^30 bytes, or the kernel is not available.
    pub fn new(code: Code, options: CodecOptions) -> Result<Self> {
        Ok(Self { engine: Engine::new(code, options, BufferLayout::Lane)? })
    }

    /// The code.
    pub fn code(&self) -> &Code {
        &self.engine.code
    }

    /// The bytes of a packet.
    pub fn packet(&self) -> usize {
        self.engine.options.packet
    }

    /// The name of the kernel that runs.
    pub fn kernel_name(&self) -> &'static str {
        self.engine.kernel_name()
    }

    /// As [`Codec::fallback`](crate::Codec::fallback).
    pub fn fallback(&self) -> Option<String> {
        self.engine.fallback()
    }

    /// The bytes of the largest strip: what a lane grows by from one stripe to the next. In the word
    /// layout a strip has as many bytes as one of w packets.
    pub fn strip(&self) -> usize {
        let rows = match self.code().symbols() {
            Some(symbols) => symbols.field().width() as usize,
            None => self.engine.layout.widest(),
        };
        rows * self.packet()
    }

    /// The number of buffers of a call: node by node, within a node lane by lane, then data cells
    /// that are stored nowhere.
    pub fn buffer_count(&self) -> usize {
        self.engine.layout.cells.len()
    }

    /// The cells of a buffer by row. A buffer has `rows · length` bytes, where `length` is the same
    /// for all buffers; in the word layout, `length` bytes.
    ///
    /// # Panics
    /// When there is no such buffer.
    pub fn buffer_cells(&self, buffer: usize) -> &[CellId] {
        &self.engine.layout.cells[buffer]
    }

    /// The node that a buffer belongs to, if it is stored.
    ///
    /// # Panics
    /// When there is no such buffer.
    pub fn buffer_node(&self, buffer: usize) -> Option<NodeId> {
        let cell = self.buffer_cells(buffer).first()?;
        self.code().cell(*cell).place.map(|place| place.node)
    }

    /// The buffers that hold data and nothing else, in the order of the user's bytes.
    pub fn data_buffers(&self) -> &[usize] {
        &self.engine.layout.data
    }

    /// Makes the cells of `want` from those of `have`. Buffers with wanted cells are
    /// [`Buffer::Target`], others that are read [`Buffer::Source`]; the rest may be absent.
    ///
    /// # Errors
    /// [`crate::ErrorKind::NotEnough`] when some wanted cells are not determined,
    /// [`crate::ErrorKind::Length`] when the buffers do not fit.
    pub fn compute(
        &self,
        have: &CellSet,
        want: &CellSet,
        buffers: &mut [Buffer<'_>],
    ) -> Result<()> {
        self.engine.compute(have, want, buffers)
    }

    /// Whether the cells of `want` can be made from those of `have`. The schedule is planned and
    /// kept, so that asking costs nothing when it is run afterwards.
    pub fn solvable(&self, have: &CellSet, want: &CellSet) -> bool {
        self.engine.solvable(have, want)
    }

    /// What [`LaneCodec::compute`] runs, to be read.
    ///
    /// # Errors
    /// As [`LaneCodec::compute`].
    pub fn explain(&self, have: &CellSet, want: &CellSet, call: &Call) -> Result<Explanation> {
        self.engine.explain(have, want, call)
    }
}
