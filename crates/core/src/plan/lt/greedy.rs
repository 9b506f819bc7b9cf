//! The original decoder: every block is reduced by every known data block.
//!
//! Each received block has a working copy. When the block arrives, its known neighbours are XORed
//! into the copy. Whenever a data block becomes known, it is XORed into the copies that contain it.
//! A copy with one neighbour left is finished and is that data block; if another copy gave that
//! data block before, it is left alone. A block whose neighbours are all known on arrival is
//! reduced although this gains nothing, as in the evaluation's decoder; the lazy decoder saves this
//! work.

use crate::define::lt::Peeling;
use crate::error::Result;
use crate::plan::Plan;
use crate::plan::lt::program::LtProgram;
use crate::plan::schedule::{Op, Slot};

pub(super) fn plan(peeling: &Peeling) -> Result<Plan> {
    let mut replay = Replay::new(peeling);
    let mut done = 0;
    for arrival in peeling.arrivals() {
        replay.spread(done..arrival.known);
        done = arrival.known;
        replay.receive(arrival.block);
    }
    replay.spread(done..peeling.found().len());
    replay.program.finish()
}

/// The working copy of a block.
#[derive(Clone, Copy)]
struct WorkingBlock {
    slot: Slot,
    unknown: u32,
}

struct Replay<'p> {
    peeling: &'p Peeling,
    program: LtProgram<'p>,
    is_known: Vec<bool>,
    /// For each received block, its copy.
    copies: Vec<Option<WorkingBlock>>,
    /// For each unknown data block, the received blocks that contain it.
    waiting: Vec<Vec<u32>>,
}

impl<'p> Replay<'p> {
    fn new(peeling: &'p Peeling) -> Self {
        let graph = peeling.graph();
        Self {
            peeling,
            program: LtProgram::new(graph),
            is_known: vec![false; graph.data()],
            copies: vec![None; graph.blocks()],
            waiting: vec![Vec::new(); graph.data()],
        }
    }

    /// Copies a block and XORs the known neighbours into the copy.
    fn receive(&mut self, block: u32) {
        let neighbours = self.peeling.graph().row(block);
        let (known, unknown): (Vec<u32>, Vec<u32>) =
            neighbours.iter().partition(|&&data| self.is_known[data as usize]);
        let slot = self.program.temp();
        let mut sources = vec![self.program.input(block)];
        sources.extend(known.into_iter().map(Slot::Output));
        self.program.ops.push(Op::assign(slot, sources));
        self.copies[block as usize] = Some(WorkingBlock { slot, unknown: unknown.len() as u32 });
        unknown.into_iter().for_each(|data| self.waiting[data as usize].push(block));
    }

    /// XORs the data blocks `found`, given by their places in the order of discovery, into the
    /// copies that contain them.
    fn spread(&mut self, found: std::ops::Range<usize>) {
        for found in &self.peeling.found()[found] {
            let output = Slot::Output(found.data);
            if let Some(copy) = found.block.and_then(|block| self.copies[block as usize]) {
                self.program.ops.push(Op::assign(output, vec![copy.slot]));
            }
            self.is_known[found.data as usize] = true;
            for block in std::mem::take(&mut self.waiting[found.data as usize]) {
                self.reduce(block, output);
            }
        }
    }

    fn reduce(&mut self, block: u32, by: Slot) {
        let Some(copy) = &mut self.copies[block as usize] else { return };
        if copy.unknown > 1 {
            copy.unknown -= 1;
            self.program.ops.push(Op::add(copy.slot, vec![by]));
        }
    }
}
