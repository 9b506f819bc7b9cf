//! The decoder of the 2004 evaluation as its text describes it (section II, steps 1 to 4). It
//! counts the XORs of the optimised schedule of that decoder.
//!
//! It differs from Paritas' decoder in one point: a data block counts as recovered only when it is
//! taken from the queue. Until then further blocks may be left with only this neighbour, and each
//! puts its data there (step 2), so the XORs that are done are those of the last such block, not
//! the first. With few low degrees the last one is a block of a higher degree.
//!
//! The text does not say which data block leaves the queue first ("choose a data node from the
//! queue"), so [`Queue`] has both readings.

use std::collections::VecDeque;

use paritas::lt::Graph;

/// The data block that leaves the queue first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queue {
    /// The one that came first.
    FirstIn,
    /// The one that came last.
    LastIn,
}

/// Progress of recovering the data from the blocks that arrived.
pub struct Printed<'g> {
    graph: &'g Graph,
    /// For each block, how many neighbours are not recovered.
    left: Vec<usize>,
    /// For each data block, the blocks that wait for it.
    waiting: Vec<Vec<usize>>,
    /// For each data block, the block that last gave it.
    giver: Vec<Option<usize>>,
    is_recovered: Vec<bool>,
    queue: VecDeque<usize>,
    next: Queue,
}

impl<'g> Printed<'g> {
    pub fn new(graph: &'g Graph, next: Queue) -> Self {
        Self {
            graph,
            left: vec![0; graph.blocks()],
            waiting: vec![Vec::new(); graph.data()],
            giver: vec![None; graph.data()],
            is_recovered: vec![false; graph.data()],
            queue: VecDeque::new(),
            next,
        }
    }

    fn row(&self, block: usize) -> &'g [u32] {
        self.graph.neighbours(block).expect("a block")
    }

    /// Takes blocks until all data is recovered, and returns the XORs of the schedule; `None` if
    /// the blocks do not suffice.
    pub fn xors(mut self, order: &[usize]) -> Option<usize> {
        for &block in order {
            self.receive(block);
            if self.is_recovered.iter().all(|&recovered| recovered) {
                let givers = self.giver.iter().flatten();
                return Some(givers.map(|&giver| self.row(giver).len() - 1).sum());
            }
        }
        None
    }

    fn receive(&mut self, block: usize) {
        for &data in self.row(block) {
            if !self.is_recovered[data as usize] {
                self.left[block] += 1;
                self.waiting[data as usize].push(block);
            }
        }
        self.give(block);
        while let Some(data) = self.take() {
            if !std::mem::replace(&mut self.is_recovered[data], true) {
                for block in std::mem::take(&mut self.waiting[data]) {
                    self.left[block] -= 1;
                    self.give(block);
                }
            }
        }
    }

    fn take(&mut self) -> Option<usize> {
        match self.next {
            Queue::FirstIn => self.queue.pop_front(),
            Queue::LastIn => self.queue.pop_back(),
        }
    }

    /// Step 2: a block with one neighbour left puts its data there.
    fn give(&mut self, block: usize) {
        let mut left = self.row(block).iter().filter(|&&data| !self.is_recovered[data as usize]);
        if let (1, Some(&data)) = (self.left[block], left.next()) {
            self.giver[data as usize] = Some(block);
            self.queue.push_back(data as usize);
        }
    }
}
