//! Peeling: what received blocks determine, one unknown at a time (section II).
//!
//! A block with one unknown neighbour determines that neighbour, after which other blocks have
//! fewer unknown ones. Only the graph is used, not the bytes. So peeling serves both as the cheap
//! test for *guaranteed decodability* and as the first part of every decoder. Each edge is handled
//! at most twice, in whatever order blocks arrive: a block keeps the number of its unknown
//! neighbours and the XOR of their indices, which is the index of the last one left.

use crate::define::lt::Graph;
use crate::error::Result;

/// A data block that has become known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KnownBlock {
    pub(crate) data: u32,
    /// The block that gives it from data blocks found before; `None` if it was set aside.
    pub(crate) block: Option<u32>,
}

/// A received block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) block: u32,
    /// Number of data blocks known before it arrived.
    pub(crate) known: usize,
}

/// The blocks received so far and the data blocks that peeling finds from them.
#[derive(Debug, Clone)]
pub struct Peeling {
    graph: Graph,
    received: Vec<bool>,
    arrivals: Vec<Arrival>,
    /// For each block, its unknown neighbours.
    unknown: Vec<Unknown>,
    /// For each unknown data block, the received blocks that contain it.
    waiting: Vec<Vec<u32>>,
    is_known: Vec<bool>,
    /// Data blocks found, in order; those from `spread` on have not been removed from their blocks
    /// yet.
    found: Vec<KnownBlock>,
    spread: usize,
}

#[derive(Debug, Clone, Copy, Default)]
struct Unknown {
    count: u32,
    /// XOR of the indices of the unknown neighbours.
    sum: u32,
}

impl Peeling {
    /// Returns the state in which no block has been received.
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

    /// Receives a block. Returns whether all data is now determined. A block that was received
    /// before changes nothing.
    ///
    /// # Errors
    /// If the graph has no block of that number.
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

    /// Number of different blocks received.
    pub fn received(&self) -> usize {
        self.arrivals.len()
    }

    /// Whether block `block`, which must exist, has been received.
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
    pub(crate) fn found(&self) -> &[KnownBlock] {
        &self.found
    }

    /// Treats a data block as known although no block gives it. Returns whether it was unknown.
    pub(crate) fn set_aside(&mut self, data: u32) -> bool {
        let is_new = !std::mem::replace(&mut self.is_known[data as usize], true);
        if is_new {
            self.found.push(KnownBlock { data, block: None });
            self.peel();
        }
        is_new
    }

    /// Unknown data blocks; those in most received blocks come first.
    pub(crate) fn unknown_by_uses(&self) -> Vec<u32> {
        let mut unknown: Vec<u32> = (0..self.graph.data() as u32).collect();
        unknown.retain(|&data| !self.is_known[data as usize]);
        unknown.sort_by_key(|&data| std::cmp::Reverse(self.waiting[data as usize].len()));
        unknown
    }

    /// Whether a data block is known or is in some received block.
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
        while let Some(&KnownBlock { data, .. }) = self.found.get(self.spread) {
            self.spread += 1;
            for block in std::mem::take(&mut self.waiting[data as usize]) {
                let unknown = &mut self.unknown[block as usize];
                unknown.count -= 1;
                unknown.sum ^= data;
                self.take_last(block);
            }
        }
    }

    /// If the block has one unknown neighbour left, takes that neighbour as found, unless another
    /// block has just given it.
    fn take_last(&mut self, block: u32) {
        let Unknown { count, sum: data } = self.unknown[block as usize];
        if count == 1 && !std::mem::replace(&mut self.is_known[data as usize], true) {
            self.found.push(KnownBlock { data, block: Some(block) });
        }
    }
}
