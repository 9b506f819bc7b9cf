//! Peeling: what received blocks determine, one unknown at a time (section II).
//!
//! A block with one unknown neighbour gives it, which leaves other blocks with fewer unknown ones.
//! Only the graph is looked at, so this is the light decode of *guaranteed decodability* as well as
//! the first part of every decoder. Each edge is handled twice at most, however blocks arrive: a
//! block keeps the number of its unknown neighbours and the XOR of their numbers, which is the
//! number of the last one.

use crate::define::lt::Graph;
use crate::error::Result;

/// A data block that has become known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) data: u32,
    /// The block that gives it from data blocks found before; none when it was set aside.
    pub(crate) block: Option<u32>,
}

/// A received block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) block: u32,
    /// How many data blocks were known before it came.
    pub(crate) known: usize,
}

/// The blocks received so far and the data blocks that peeling finds from them.
#[derive(Debug, Clone)]
pub struct Peeling {
    graph: Graph,
    received: Vec<bool>,
    arrivals: Vec<Arrival>,
    /// Per block, what is unknown of it.
    unknown: Vec<Unknown>,
    /// Per unknown data block, the received blocks it is in.
    waiting: Vec<Vec<u32>>,
    is_known: Vec<bool>,
    /// In order; those from `spread` on have not been taken out of their blocks yet.
    found: Vec<Found>,
    spread: usize,
}

#[derive(Debug, Clone, Copy, Default)]
struct Unknown {
    count: u32,
    /// The XOR of their numbers.
    sum: u32,
}

impl Peeling {
    /// Nothing received yet.
    pub fn new(graph: &Graph) -> Self {
        Self {
            graph: graph.clone(),
            received: vec![false; graph.blocks()],
            arrivals: Vec::new(),
            unknown: vec![Unknown::default(); graph.blocks()],
            waiting: vec![Vec::new(); graph.data()],
            is_known: vec![false; graph.data()],
            found: Vec::new(),
            spread: 0,
        }
    }

    /// Takes a block, and says whether all data is determined. A block that was received before
    /// changes nothing.
    ///
    /// # Errors
    /// When the graph has no such block.
    pub fn push(&mut self, block: usize) -> Result<bool> {
        self.graph.neighbours(block)?;
        if !std::mem::replace(&mut self.received[block], true) {
            let block = block as u32;
            self.arrivals.push(Arrival { block, known: self.found.len() });
            self.enter(block);
            self.peel();
        }
        Ok(self.is_complete())
    }

    /// Whether all data blocks are determined.
    pub fn is_complete(&self) -> bool {
        self.found.len() == self.graph.data()
    }

    /// How many different blocks have been received.
    pub fn received(&self) -> usize {
        self.arrivals.len()
    }

    /// How many data blocks are determined.
    pub fn known(&self) -> usize {
        self.found.len()
    }

    /// Whether a block that there is has been received.
    pub(crate) fn has(&self, block: usize) -> bool {
        self.received[block]
    }

    pub(crate) fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The received blocks in order.
    pub(crate) fn arrivals(&self) -> &[Arrival] {
        &self.arrivals
    }

    /// The data blocks that are determined, in order.
    pub(crate) fn found(&self) -> &[Found] {
        &self.found
    }

    /// Takes a data block as known though no block gives it, unless it is known.
    pub(crate) fn set_aside(&mut self, data: u32) -> bool {
        let is_new = !std::mem::replace(&mut self.is_known[data as usize], true);
        if is_new {
            self.found.push(Found { data, block: None });
            self.peel();
        }
        is_new
    }

    /// The unknown data blocks, those in most received blocks first.
    pub(crate) fn unknown_by_uses(&self) -> Vec<u32> {
        let mut unknown: Vec<u32> = (0..self.graph.data() as u32).collect();
        unknown.retain(|&data| !self.is_known[data as usize]);
        unknown.sort_by_key(|&data| std::cmp::Reverse(self.waiting[data as usize].len()));
        unknown
    }

    /// Whether a data block is known or in some received block.
    pub(crate) fn is_covered(&self, data: usize) -> bool {
        self.is_known[data] || !self.waiting[data].is_empty()
    }

    fn enter(&mut self, block: u32) {
        for &data in self.graph.row(block) {
            if self.is_known[data as usize] {
                continue;
            }
            let unknown = &mut self.unknown[block as usize];
            unknown.count += 1;
            unknown.sum ^= data;
            self.waiting[data as usize].push(block);
        }
        self.take_last(block);
    }

    fn peel(&mut self) {
        while let Some(&Found { data, .. }) = self.found.get(self.spread) {
            self.spread += 1;
            for block in std::mem::take(&mut self.waiting[data as usize]) {
                let unknown = &mut self.unknown[block as usize];
                unknown.count -= 1;
                unknown.sum ^= data;
                self.take_last(block);
            }
        }
    }

    /// A block with one unknown neighbour gives it, unless another just has.
    fn take_last(&mut self, block: u32) {
        let Unknown { count, sum: data } = self.unknown[block as usize];
        if count == 1 && !std::mem::replace(&mut self.is_known[data as usize], true) {
            self.found.push(Found { data, block: Some(block) });
        }
    }
}
