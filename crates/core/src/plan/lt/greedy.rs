//! The original decoder: every block is reduced by every known data block.
//!
//! Each received block has a working copy. When it arrives it is XORed with those of its neighbours
//! that are known; whenever a data block becomes known it is XORed into the copies it is in. A copy
//! that is down to one neighbour is finished: it is that data block, or if another copy was before, it is
//! left alone. Blocks whose neighbours were all known when they came are worked on for
//! nothing, as the evaluation's decoder did; that is what the lazy one saves.

use crate::define::lt::Peeling;
use crate::error::Result;
use crate::plan::Plan;
use crate::plan::lt::program::Program;
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
struct Copy {
    slot: Slot,
    unknown: u32,
}

struct Replay<'p> {
    peeling: &'p Peeling,
    program: Program<'p>,
    is_known: Vec<bool>,
    /// Per block that has been received, its copy.
    copies: Vec<Option<Copy>>,
    /// Per unknown data block, the received blocks it is in.
    waiting: Vec<Vec<u32>>,
}

impl<'p> Replay<'p> {
    fn new(peeling: &'p Peeling) -> Self {
        let graph = peeling.graph();
        Self {
            peeling,
            program: Program::new(graph),
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
        self.copies[block as usize] = Some(Copy { slot, unknown: unknown.len() as u32 });
        unknown.into_iter().for_each(|data| self.waiting[data as usize].push(block));
    }

    /// XORs the data blocks that were found, by their place in that order, into the copies they are
    /// in.
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
