//! Schedules of LT codes: from a graph and the blocks that arrived.
//!
//! A [`Decoder`] takes block numbers as they arrive and tells when the data is determined. Then
//! [`Decoder::plan`] returns the program that computes the data blocks. Solving comes first and
//! touches no bytes, so that a kernel may run the whole program tile by tile. There are three
//! methods:
//!
//! - *greedy* (section II of the evaluation): a block is XORed with every data block that is known
//!   or becomes known, even if that is useless. The program does what that decoder does, in the
//!   same order;
//! - *lazy* (section IV, *optimised scheduling*): peeling finds which blocks give which data
//!   blocks, and only those are computed, each in one operation;
//! - *inactivation*: as lazy; where peeling gets stuck, some unknowns are set aside and found by
//!   elimination, so that any blocks of full rank decode.
//!
//! The evaluation's counts of two-input XORs are [`Cost::xors`](crate::research::Cost) of these
//! schedules.

#[cfg(feature = "research")]
mod balance;
#[cfg(feature = "research")]
mod freedom;
mod greedy;
mod inactivation;
mod lazy;
mod program;
mod question;
mod reception;

#[cfg(feature = "research")]
pub use balance::Balance;
#[cfg(feature = "research")]
pub use freedom::Freedom;
pub use reception::Reception;

use crate::define::cells::CellId;
use crate::define::lt::{Graph, Peeling};
use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::plan::lt::inactivation::Residue;
use crate::plan::schedule::{Op, Schedule, Slot};

/// The method by which received blocks become a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Method {
    /// Every block is reduced by every known data block, as it arrives.
    Greedy,
    /// Peeling, then only the XORs that are needed.
    Lazy,
    /// As lazy, with elimination where peeling gets stuck.
    #[default]
    Inactivation,
}

/// The blocks of a graph that were received, and what follows from them.
#[derive(Debug, Clone)]
pub struct Decoder {
    method: Method,
    peeling: Peeling,
    /// Number of data blocks, counted from the first, that are known to be in received blocks.
    covered: usize,
    residue: Option<Residue>,
    /// Whether there would be too many unknowns for elimination.
    is_too_dense: bool,
}

impl Decoder {
    /// Returns a decoder that has not received any block yet.
    pub fn new(graph: &Graph, method: Method) -> Self {
        let peeling = Peeling::new(graph);
        Self { method, peeling, covered: 0, residue: None, is_too_dense: false }
    }

    /// Receives a block, given by number. Returns whether the data can be rebuilt. A block that was
    /// received before changes nothing. Nor does a block that arrives after the data is determined,
    /// except with inactivation: the more blocks its plan has, the fewer XORs it takes.
    ///
    /// # Errors
    /// If the graph has no block of that number.
    pub fn push(&mut self, block: usize) -> Result<bool> {
        if self.is_ready() && self.method != Method::Inactivation {
            return self.peeling.graph().neighbours(block).map(|_| true);
        }
        let before = self.received();
        self.peeling.push(block)?;
        if self.method == Method::Inactivation && self.received() > before {
            self.advance(block as u32);
        }
        Ok(self.is_ready())
    }

    fn advance(&mut self, block: u32) {
        if let Some(residue) = &mut self.residue {
            return residue.push(block);
        }
        let data = self.peeling.graph().data();
        while self.covered < data && self.peeling.is_covered(self.covered) {
            self.covered += 1;
        }
        let is_time = self.covered == data && self.received() >= data && !self.is_too_dense;
        if is_time && !self.peeling.is_complete() {
            let mut peeling = self.peeling.clone();
            self.residue = Residue::new(&mut peeling);
            match self.residue {
                Some(_) => self.peeling = peeling,
                None => self.is_too_dense = true,
            }
        }
    }

    /// Number of independent blocks that elimination still lacks.
    fn missing(&self) -> usize {
        self.residue.as_ref().map_or(0, Residue::missing)
    }

    /// Whether the data can be rebuilt.
    pub fn is_ready(&self) -> bool {
        self.peeling.is_complete() && self.missing() == 0
    }

    /// Whether block `block`, which must exist, has been received.
    pub(crate) fn has(&self, block: usize) -> bool {
        self.peeling.has(block)
    }

    pub(crate) fn graph(&self) -> &Graph {
        self.peeling.graph()
    }

    #[cfg(feature = "research")]
    fn method(&self) -> Method {
        self.method
    }

    /// Received blocks, in order.
    #[cfg(feature = "research")]
    fn arrivals(&self) -> impl Iterator<Item = usize> {
        self.peeling.arrivals().iter().map(|arrival| arrival.block as usize)
    }

    /// Like [`Decoder::push`], but records the block as received even if the data is already
    /// determined.
    #[cfg(feature = "research")]
    fn receive(&mut self, block: usize) -> Result<()> {
        match self.is_ready() {
            true => self.peeling.push(block).map(|_| ()),
            false => self.push(block).map(|_| ()),
        }
    }

    /// Number of different blocks received.
    pub fn received(&self) -> usize {
        self.peeling.received()
    }

    /// Returns the schedule that computes all data blocks, in order, from the blocks that it names.
    ///
    /// # Errors
    /// [`crate::ErrorKind::NotEnough`] if the blocks received do not determine the data;
    /// [`crate::ErrorKind::Parameters`] if it would take too long to find out.
    pub fn plan(&self) -> Result<Plan> {
        if !self.is_ready() {
            return Err(self.not_enough());
        }
        match self.method {
            Method::Greedy => greedy::plan(&self.peeling),
            Method::Lazy => lazy::plan(&self.peeling),
            Method::Inactivation => inactivation::plan(&self.peeling),
        }
    }

    /// Returns the error for blocks that do not determine the data.
    pub(crate) fn not_enough(&self) -> Error {
        if self.is_too_dense {
            return inactivation::too_dense(self.peeling.graph());
        }
        let (graph, received) = (self.peeling.graph(), self.received());
        let more = match self.likely_needed() {
            Some(more) => format!("likely {more} more are needed"),
            None => format!("even all {} would not suffice", graph.blocks()),
        };
        let data = graph.data();
        Error::not_enough(format!("{received} blocks do not determine {data} data blocks; {more}"))
    }
}

impl Graph {
    /// Returns the cell of a data block.
    pub fn data_cell(&self, data: usize) -> CellId {
        CellId::new(data)
    }

    /// Returns the cell of a block.
    pub fn block_cell(&self, block: usize) -> CellId {
        CellId::new(self.data() + block)
    }

    /// Returns the schedule that computes all blocks from the data blocks, each in one operation.
    ///
    /// # Errors
    /// Never, for a graph; the result is returned because schedules are checked.
    pub fn encode(&self) -> Result<Plan> {
        self.encode_some(&(0..self.blocks()).collect::<Vec<_>>())
    }

    /// Like [`Graph::encode`], for the blocks `blocks` in this order.
    ///
    /// # Errors
    /// If a block does not exist, or is named twice.
    pub fn encode_some(&self, blocks: &[usize]) -> Result<Plan> {
        let mut ops = Vec::with_capacity(blocks.len());
        let mut is_made = vec![false; self.blocks()];
        for (&block, output) in blocks.iter().zip(0..) {
            let sources = self.neighbours(block)?.iter().map(|&data| Slot::Input(data)).collect();
            if std::mem::replace(&mut is_made[block], true) {
                return Err(Error::parameters(format!("block {block} is named twice")));
            }
            ops.push(Op::assign(Slot::Output(output), sources));
        }
        let inputs = (0..self.data()).map(|data| self.data_cell(data)).collect();
        let outputs = blocks.iter().map(|&block| self.block_cell(block)).collect();
        Plan::new(Schedule::new(self.data(), 0, blocks.len(), ops)?, inputs, outputs)
    }
}
