//! A schedule over long blocks, laid out for the kernel that runs it tile by tile.
//!
//! Every value that is read after it was computed has a *cell* of the kernel's scratch for as long
//! as it is needed. Every input that is read more than once has a cell too; an additional step
//! copies the input there. So the scratch holds few cells, and each block in memory is touched
//! once.
//!
//! A schedule reads most of its inputs early and writes most of its outputs late. *Pacing* keeps
//! memory busy throughout: the steps prefetch inputs at an even rate, in proportion to their work,
//! and far enough ahead that each input has arrived when it is read. While a tile ends, the first
//! inputs of the next tile are prefetched.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::limits::{BLOCK_SCRATCH_BYTES, BLOCK_TILE, BLOCKS_AHEAD};
use crate::plan::schedule::{Op, Schedule, Slot};

/// One operation: its sources, and the destination of their sum.
#[derive(Debug)]
pub(crate) struct BlockStep {
    /// Range in [`BlockProgram::operands`]; not empty.
    pub(crate) sources: Range<u32>,
    pub(crate) cell: Option<u32>,
    pub(crate) output: Option<u32>,
    /// Number of inputs that are prefetched before the step, in reading order.
    pub(crate) fetches: u32,
}

impl BlockStep {
    /// Number of cells and blocks that are read or written.
    fn work(&self) -> u64 {
        let targets = [self.cell, self.output].into_iter().flatten().count();
        self.sources.len() as u64 + targets as u64
    }
}

/// A schedule in the form that the kernel runs.
#[derive(Debug, Default)]
pub(crate) struct BlockProgram {
    steps: Vec<BlockStep>,
    /// Operands: numbers below the number of cells are cells, the others are inputs, shifted by
    /// that number.
    operands: Vec<u32>,
    cells: u32,
    inputs: usize,
    outputs: usize,
    reading_order: Vec<u32>,
    ahead: usize,
}

impl BlockProgram {
    /// Lays out a schedule.
    ///
    /// # Errors
    /// If an operation has no sources (every block of an LT code has some), or if cells hold words.
    pub(crate) fn new(schedule: &Schedule) -> Result<Self> {
        if schedule.field().is_some() {
            return Err(Error::schedule("long blocks are not multiplied"));
        }
        if let Some(op) = schedule.ops().iter().find(|op| op.sources.is_empty()) {
            return Err(Error::schedule(format!("{} is the sum of no blocks", op.target)));
        }
        let mut layout = BlockProgramBuilder::new(schedule);
        schedule.ops().iter().enumerate().for_each(|(number, op)| layout.add(number, op));
        Ok(layout.finish())
    }

    pub(crate) fn steps(&self) -> &[BlockStep] {
        &self.steps
    }

    pub(crate) fn operands(&self) -> &[u32] {
        &self.operands
    }

    /// Number of cells.
    pub(crate) fn cells(&self) -> usize {
        self.cells as usize
    }

    pub(crate) fn inputs(&self) -> usize {
        self.inputs
    }

    pub(crate) fn outputs(&self) -> usize {
        self.outputs
    }

    /// Inputs in the order in which they are read.
    pub(crate) fn reading_order(&self) -> &[u32] {
        &self.reading_order
    }

    /// Number of inputs that must have been prefetched before the first step.
    pub(crate) fn ahead(&self) -> usize {
        self.ahead
    }

    /// Number of bytes of each block in a tile.
    pub(crate) fn tile(&self) -> usize {
        let fitting = BLOCK_SCRATCH_BYTES / self.cells().max(1);
        (fitting / BLOCK_TILE.start * BLOCK_TILE.start).clamp(BLOCK_TILE.start, BLOCK_TILE.end)
    }
}

/// How a value is used.
#[derive(Debug, Clone, Copy, Default)]
struct Use {
    /// Number of reads; each addition to the value counts as one.
    reads: u32,
    /// Position of the last operation that reads it.
    last: usize,
    cell: Option<u32>,
}

/// A program under construction.
struct BlockProgramBuilder<'s> {
    schedule: &'s Schedule,
    /// Uses of inputs, temporaries and outputs, in this order.
    uses: Vec<Use>,
    free: Vec<u32>,
    /// For each step, the number of inputs that it reads; each input is read by only one step.
    reads: Vec<u32>,
    program: BlockProgram,
}

impl<'s> BlockProgramBuilder<'s> {
    fn new(schedule: &'s Schedule) -> Self {
        let values = schedule.inputs() + schedule.temps() + schedule.outputs();
        let mut layout = Self {
            schedule,
            uses: vec![Use::default(); values],
            free: Vec::new(),
            reads: Vec::new(),
            program: BlockProgram {
                inputs: schedule.inputs(),
                outputs: schedule.outputs(),
                ..BlockProgram::default()
            },
        };
        for (number, op) in schedule.ops().iter().enumerate() {
            for slot in op.sources.iter().chain(op.accumulate.then_some(&op.target)) {
                let used = layout.used(*slot);
                (used.reads, used.last) = (used.reads + 1, number);
            }
        }
        layout
    }

    fn used(&mut self, slot: Slot) -> &mut Use {
        let before = match slot {
            Slot::Input(_) => 0,
            Slot::Temp(_) => self.schedule.inputs(),
            Slot::Output(_) => self.schedule.inputs() + self.schedule.temps(),
        };
        let (Slot::Input(n) | Slot::Temp(n) | Slot::Output(n)) = slot;
        &mut self.uses[before + n as usize]
    }

    /// Returns a free cell.
    fn cell(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.program.cells += 1;
            self.program.cells - 1
        })
    }

    fn add(&mut self, number: usize, op: &Op) {
        for &source in &op.sources {
            self.stage(source);
        }
        let start = self.program.operands.len() as u32;
        let reads = op.sources.iter().map(|&source| self.read(source)).sum();
        if op.accumulate {
            self.read(op.target);
        }
        let sources = start..self.program.operands.len() as u32;
        for &source in op.sources.iter().chain(op.accumulate.then_some(&op.target)) {
            self.release(source, number);
        }
        let cell = self.target_cell(op.target, number);
        let output = match op.target {
            Slot::Output(output) => Some(output),
            Slot::Input(_) | Slot::Temp(_) => None,
        };
        self.step(BlockStep { sources, cell, output, fetches: 0 }, reads);
    }

    fn step(&mut self, step: BlockStep, reads: u32) {
        self.program.steps.push(step);
        self.reads.push(reads);
    }

    /// Copies an input that is read more than once into a cell, before its first use.
    fn stage(&mut self, slot: Slot) {
        let Slot::Input(input) = slot else { return };
        let used = *self.used(slot);
        if used.reads < 2 || used.cell.is_some() {
            return;
        }
        let cell = self.cell();
        self.used(slot).cell = Some(cell);
        let start = self.program.operands.len() as u32;
        self.read_input(input);
        let sources = start..start + 1;
        self.step(BlockStep { sources, cell: Some(cell), output: None, fetches: 0 }, 1);
    }

    /// Adds an operand. Returns the number of inputs that are read by it: 0 or 1.
    fn read(&mut self, slot: Slot) -> u32 {
        match (self.used(slot).cell, slot) {
            (Some(cell), _) => self.program.operands.push(cell),
            (None, Slot::Input(input)) => {
                self.read_input(input);
                return 1;
            }
            // Temporaries and outputs of a schedule have values, and so cells, when they are read.
            (None, Slot::Temp(_) | Slot::Output(_)) => {}
        }
        0
    }

    /// Adds an input. Its highest bit marks it as an input until the number of cells is known.
    fn read_input(&mut self, input: u32) {
        self.program.operands.push(input | INPUT);
        self.program.reading_order.push(input);
    }

    fn release(&mut self, slot: Slot, number: usize) {
        let used = self.used(slot);
        if used.last == number
            && let Some(cell) = used.cell.take()
        {
            self.free.push(cell);
        }
    }

    fn target_cell(&mut self, target: Slot, number: usize) -> Option<u32> {
        let used = *self.used(target);
        if used.reads == 0 || used.last <= number {
            return None;
        }
        let cell = used.cell.unwrap_or_else(|| self.cell());
        self.used(target).cell = Some(cell);
        Some(cell)
    }

    fn finish(self) -> BlockProgram {
        let mut program = self.program;
        let cells = program.cells;
        let inputs = program.operands.iter_mut().filter(|operand| **operand & INPUT != 0);
        inputs.for_each(|operand| *operand = (*operand ^ INPUT) + cells);
        program.ahead = pace(&mut program.steps, &self.reads);
        program
    }
}

/// Spreads the prefetches of the inputs over the steps in proportion to their work. Returns the
/// number of inputs that must be prefetched before the first step, so that each one is prefetched
/// before it is read.
fn pace(steps: &mut [BlockStep], reads: &[u32]) -> usize {
    let inputs: u64 = reads.iter().copied().map(u64::from).sum();
    let work: u64 = steps.iter().map(BlockStep::work).sum();
    let (mut done, mut fetched, mut read, mut ahead) = (0, 0, 0, 0);
    for (step, &reads) in steps.iter_mut().zip(reads) {
        done += step.work();
        let due = inputs * done / work.max(1);
        step.fetches = (due - fetched) as u32;
        (fetched, read) = (due, read + u64::from(reads));
        ahead = ahead.max(read.saturating_sub(fetched));
    }
    ahead as usize + BLOCKS_AHEAD
}

/// Mark of an operand that is an input; schedules have at most 2^24 of each kind.
const INPUT: u32 = 1 << 31;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::lt::{Decoder, Method};

    /// Contains inputs that are read once and twice, cells that are used again, a sum that grows,
    /// an output that is read, and one that is not.
    const PROGRAM: &str = "inputs 4 temps 3 outputs 3\nt0 = i0 ^ i1\no0 = t0 ^ i2\nt1 = o0 ^ i1 ^ i3\n\
                           t0 ^= i1\no1 = t0 ^ t1\nt2 = o1\no2 = t2 ^ o0 ^ i1\n";

    /// Every input is prefetched once, before it is read, at a rate that follows the work.
    #[test]
    fn inputs_are_fetched_at_an_even_rate() {
        let code =
            crate::define::lt::LtCode::new(&"lt:k=200,n=300,c=0.01,delta=1".parse().unwrap())
                .unwrap();
        let graph = code.graph().unwrap();
        let mut decoder = Decoder::new(&graph, Method::Inactivation);
        assert!((20..300).any(|block| decoder.push(block).unwrap()));
        let decoding = decoder.plan().unwrap().into_schedule();
        let encoding = graph.encode().unwrap().into_schedule();
        for schedule in [PROGRAM.parse().unwrap(), decoding, encoding] {
            let program = BlockProgram::new(&schedule).unwrap();
            let work = |steps: &[BlockStep]| steps.iter().map(BlockStep::work).sum::<u64>() as f64;
            let inputs = program.reading_order().len();
            let (mut fetched, mut read) = (0, 0);
            for (number, step) in program.steps().iter().enumerate() {
                let sources = step.sources.start as usize..step.sources.end as usize;
                let sources = program.operands()[sources].iter();
                read += sources.filter(|&&source| source as usize >= program.cells()).count();
                fetched += step.fetches as usize;
                assert!(program.ahead() + fetched >= read + BLOCKS_AHEAD, "step {number}");
                let due = work(&program.steps()[..=number]) / work(program.steps());
                assert!((fetched as f64 - due * inputs as f64).abs() <= 1.0, "step {number}");
            }
            assert_eq!((fetched, read), (inputs, inputs));
            assert!(program.ahead() <= inputs + BLOCKS_AHEAD);
        }
    }

    #[test]
    fn words_and_empty_sums_are_refused() {
        for text in [
            "inputs 1 temps 0 outputs 1\no0 = 0\n",
            "inputs 1 temps 0 outputs 1 field 8 0x11d\no0 = 2 * i0\n",
        ] {
            assert!(BlockProgram::new(&text.parse().unwrap()).is_err(), "{text}");
        }
    }
}
