//! Schedules of LT codes: from a graph and the blocks that came.
//!
//! A [`Decoder`] takes block numbers as they arrive and says when the data is determined; then
//! [`Decoder::plan`] is the program that makes the data blocks. Solving comes first and touches no
//! byte, so that a kernel may run the whole program tile by tile. There are three ways:
//!
//! - *greedy* (section II of the evaluation): a block is XORed with every data block that is known
//!   or becomes known, whether or not that leads anywhere. The program is what that decoder does, in its order;
//! - *lazy* (section IV, *optimised scheduling*): peeling finds which blocks give which data blocks,
//!   and only those are computed, each in one operation;
//! - *inactivation*: as lazy; where peeling gets stuck, some unknowns are set aside and found by
//!   elimination, so that any blocks of full rank decode.
//!
//! The evaluation's counts of two-input XORs are [`Cost::xors`](crate::Cost) of these schedules.

mod balance;
mod freedom;
mod greedy;
mod inactivation;
mod lazy;
mod program;
mod question;
mod reception;

pub use balance::Balance;
pub use freedom::Freedom;
pub use reception::Reception;

use crate::define::cells::CellId;
use crate::define::lt::{Graph, Peeling};
use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::plan::lt::inactivation::Residue;
use crate::plan::schedule::{Op, Schedule, Slot};

/// How received blocks become a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Method {
    /// Every block is reduced by every known data block, as it comes.
    Greedy,
    /// Peeling, then only the XORs that are needed.
    #[default]
    Lazy,
    /// As lazy, with elimination where peeling gets stuck.
    Inactivation,
}

/// What has been received of a graph, and what follows from it.
#[derive(Debug, Clone)]
pub struct Decoder {
    method: Method,
    peeling: Peeling,
    /// How many data blocks, from the first, are in received blocks.
    covered: usize,
    residue: Option<Residue>,
}

impl Decoder {
    /// A decoder that has received nothing.
    pub fn new(graph: &Graph, method: Method) -> Self {
        Self { method, peeling: Peeling::new(graph), covered: 0, residue: None }
    }

    /// Takes a block by number, and says whether the data can be rebuilt. Blocks that were received
    /// before change nothing. Those that come after the data is determined change nothing but the plan of
    /// inactivation, which takes fewer XORs the more blocks there are.
    ///
    /// # Errors
    /// If the graph has no such block.
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
        if self.covered == data && self.received() >= data && !self.peeling.is_complete() {
            self.residue = Some(Residue::new(&mut self.peeling));
        }
    }

    /// How many independent blocks elimination still lacks.
    fn missing(&self) -> usize {
        self.residue.as_ref().map_or(0, Residue::missing)
    }

    /// Whether the data can be rebuilt.
    pub fn is_ready(&self) -> bool {
        self.peeling.is_complete() && self.missing() == 0
    }

    /// Whether a block that there is has been taken.
    pub(crate) fn has(&self, block: usize) -> bool {
        self.peeling.has(block)
    }

    fn graph(&self) -> &Graph {
        self.peeling.graph()
    }

    fn method(&self) -> Method {
        self.method
    }

    /// The blocks that were taken, in order.
    fn arrivals(&self) -> impl Iterator<Item = usize> {
        self.peeling.arrivals().iter().map(|arrival| arrival.block as usize)
    }

    /// As [`Decoder::push`]; a block counts as received also where the data is determined without it.
    fn receive(&mut self, block: usize) -> Result<()> {
        match self.is_ready() {
            true => self.peeling.push(block).map(|_| ()),
            false => self.push(block).map(|_| ()),
        }
    }

    /// How many different blocks have been taken.
    pub fn received(&self) -> usize {
        self.peeling.received()
    }

    /// The schedule that makes all data blocks, in order, from the blocks it names.
    ///
    /// # Errors
    /// [`crate::ErrorKind::NotEnough`] when the blocks received do not determine the data.
    pub fn plan(&self) -> Result<Plan> {
        if !self.is_ready() {
            return Err(Error::not_enough(format!(
                "{} blocks determine {} of {} data blocks; push more",
                self.received(),
                self.peeling.known() - self.missing(),
                self.peeling.graph().data()
            )));
        }
        match self.method {
            Method::Greedy => greedy::plan(&self.peeling),
            Method::Lazy => lazy::plan(&self.peeling),
            Method::Inactivation => inactivation::plan(&self.peeling),
        }
    }
}

impl Graph {
    /// The cell of a data block.
    pub fn data_cell(&self, data: usize) -> CellId {
        CellId::new(data)
    }

    /// The cell of a block.
    pub fn block_cell(&self, block: usize) -> CellId {
        CellId::new(self.data() + block)
    }

    /// The schedule that makes all blocks from the data blocks, each in one operation.
    ///
    /// # Errors
    /// None, for a graph; schedules are checked.
    pub fn encode(&self) -> Result<Plan> {
        self.encode_some(&(0..self.blocks()).collect::<Vec<_>>())
    }

    /// The same for some of the blocks, in this order.
    ///
    /// # Errors
    /// If there is no such block, or one is named twice.
    pub fn encode_some(&self, blocks: &[usize]) -> Result<Plan> {
        let mut ops = Vec::with_capacity(blocks.len());
        let mut is_made = vec![false; self.blocks()];
        for (&block, output) in blocks.iter().zip(0..) {
            let sources = self.neighbours(block)?.iter().map(|&data| Slot::Input(data)).collect();
            if std::mem::replace(&mut is_made[block], true) {
                return Err(Error::parameters(format!("block {block} is to be made twice")));
            }
            ops.push(Op::assign(Slot::Output(output), sources));
        }
        let inputs = (0..self.data()).map(|data| self.data_cell(data)).collect();
        let outputs = blocks.iter().map(|&block| self.block_cell(block)).collect();
        Plan::new(Schedule::new(self.data(), 0, blocks.len(), ops)?, inputs, outputs)
    }
}
