//! Long blocks: one pass over memory, tile by tile.
//!
//! A program over thousands of blocks of many kilobytes (see [`crate::plan::blocks`]) is run on a
//! *tile* of all blocks, some hundred bytes of each, before the next tile begins. Values that are
//! needed again lie in a scratch that fits into the second-level cache. They are not used in place,
//! because blocks at equal distances, as in one large object, would compete for the same few sets
//! of the cache. So memory is read once and written once, with non-temporal stores where that pays.
//! Inputs are prefetched into the second-level cache long before they are read, for two reasons:
//! the processor's own prefetcher does not detect streams that end after so few lines, and
//! otherwise a tile's reads from memory and its writes to memory would take turns.

use std::ops::Range;

use crate::plan::blocks::{BlockProgram, BlockStep};
use crate::plan::machine::LINE;
use crate::run::buffers::{Memory, Scratch};
use crate::run::tiled::vector::{Streaming, Vector};

/// Vectors that are summed side by side.
const LANES: usize = 4;

/// Memory of one call.
pub(crate) struct BlockMemory {
    inputs: Vec<*const u8>,
    /// Null if the caller does not want the block.
    outputs: Vec<*mut u8>,
    bytes: Range<usize>,
    tile: usize,
    /// Number of bytes by which the first tile is shorter than the others, so that these begin on
    /// cache lines of the outputs.
    skew: usize,
    nontemporal: bool,
}

impl BlockMemory {
    /// Collects the memory of a call whose inputs and outputs are the buffers `inputs` and
    /// `outputs`.
    pub(crate) fn new(
        program: &BlockProgram,
        (inputs, outputs): (&[usize], &[usize]),
        memory: &Memory<'_>,
        bytes: Range<usize>,
    ) -> Self {
        let outputs: Vec<*mut u8> = outputs.iter().map(|&output| memory.pointer(output)).collect();
        let skew = common_misalignment(&outputs, bytes.start);
        Self {
            inputs: inputs.iter().map(|&n| memory.pointer(n).cast_const()).collect(),
            outputs,
            bytes,
            tile: program.tile(),
            skew: skew.unwrap_or(0),
            nontemporal: memory.nontemporal && skew.is_some(),
        }
    }

    fn tiles(&self) -> usize {
        (self.bytes.len() + self.skew).div_ceil(self.tile)
    }

    /// Range of bytes of `tile`.
    fn range(&self, tile: usize) -> Range<usize> {
        let bound = |tile: usize| {
            self.bytes.start + (tile * self.tile).saturating_sub(self.skew).min(self.bytes.len())
        };
        bound(tile)..bound(tile + 1)
    }
}

/// Distance of byte `start` of each output from the beginning of its cache line, if it is the same
/// for all outputs.
fn common_misalignment(outputs: &[*mut u8], start: usize) -> Option<usize> {
    let outputs = outputs.iter().filter(|output| !output.is_null());
    let mut all = outputs.map(|output| output.wrapping_add(start).addr() % LINE);
    let first = all.next().unwrap_or(0);
    all.all(|other| other == first).then_some(first)
}

/// Runs the program: the kernel for every vector type.
///
/// # Safety
/// As [`Runners::blocks`](super::Runners::blocks).
#[inline(always)]
pub(super) unsafe fn run_tiles<V: Streaming>(program: &BlockProgram, blocks: &BlockMemory) {
    let tiles = 0..blocks.tiles();
    let mut scratch = Scratch::new(program.cells() * blocks.tile);
    let start = scratch.start();
    let cells = (0..program.cells()).map(|cell| start.wrapping_add(cell * blocks.tile));
    let mut places: Vec<*mut u8> = cells.collect();
    places.resize(program.cells() + blocks.inputs.len(), std::ptr::null_mut());
    let mut current = blocks.range(tiles.start);
    (0..program.ahead()).for_each(|number| fetch::<V>(program, blocks, number, &current));
    for tile in tiles.clone() {
        let next = if tile + 1 < tiles.end { blocks.range(tile + 1) } else { 0..0 };
        let at = places[program.cells()..].iter_mut().zip(&blocks.inputs);
        at.for_each(|(place, input)| *place = input.wrapping_add(current.start).cast_mut());
        // SAFETY: each cell has a tile's bytes in the scratch, and each input has the bytes of the
        // range from its place on; the caller vouches for the rest.
        unsafe { run_tile::<V>(program, blocks, &places, &current, &next) };
        current = next;
    }
    // SAFETY: the caller vouches for the instruction set.
    unsafe { V::fence() };
}

/// # Safety
/// As [`Runners::blocks`](super::Runners::blocks); `places` are valid for the bytes of the range.
#[inline(always)]
unsafe fn run_tile<V: Streaming>(
    program: &BlockProgram,
    blocks: &BlockMemory,
    places: &[*mut u8],
    range: &Range<usize>,
    next: &Range<usize>,
) {
    let inputs = program.reading_order().len();
    let mut fetched = program.ahead();
    for step in program.steps() {
        for number in fetched..fetched + step.fetches as usize {
            match number.checked_sub(inputs) {
                None => fetch::<V>(program, blocks, number, range),
                Some(number) => fetch::<V>(program, blocks, number, next),
            }
        }
        fetched += step.fetches as usize;
        let sources = &program.operands()[step.sources.start as usize..step.sources.end as usize];
        let targets = ResultPlace::new(step, blocks, places, range.start);
        if targets.cell.is_null() && targets.output.is_null() {
            continue;
        }
        // SAFETY: a program's operands and targets are among its places and outputs.
        unsafe { xor_all::<V>(&targets, sources, places, range.len()) };
    }
}

/// Prefetches the input that is the `number`th to be read, if there is one.
#[inline(always)]
fn fetch<V: Streaming>(
    program: &BlockProgram,
    blocks: &BlockMemory,
    number: usize,
    range: &Range<usize>,
) {
    let Some(&input) = program.reading_order().get(number) else { return };
    let start = blocks.inputs[input as usize].wrapping_add(range.start);
    // Prefetching starts at the beginning of the first line; otherwise the line of the last byte
    // might be missed.
    let before = start as usize % LINE;
    let lines = (0..before + range.len()).step_by(LINE);
    lines.for_each(|line| V::prefetch(start.wrapping_sub(before).wrapping_add(line)));
}

/// The destination of a step's result.
struct ResultPlace {
    cell: *mut u8,
    output: *mut u8,
    nontemporal: bool,
}

impl ResultPlace {
    #[inline(always)]
    fn new(step: &BlockStep, blocks: &BlockMemory, places: &[*mut u8], start: usize) -> Self {
        let output = step.output.map(|output| blocks.outputs[output as usize]);
        let output = output.filter(|output| !output.is_null());
        Self {
            cell: step.cell.map_or(std::ptr::null_mut(), |cell| places[cell as usize]),
            output: output.map_or(std::ptr::null_mut(), |output| output.wrapping_add(start)),
            nontemporal: blocks.nontemporal,
        }
    }

    /// # Safety
    /// The targets are valid for a vector at `at`.
    #[inline(always)]
    unsafe fn store<V: Vector>(&self, vector: V, at: usize) {
        // SAFETY: the caller's contract.
        unsafe {
            if !self.cell.is_null() {
                vector.store(self.cell.add(at));
            }
            if !self.output.is_null() {
                vector.store(self.output.add(at));
            }
        }
    }

    /// As [`ResultPlace::store`], for several vectors; uses non-temporal stores where whole lines
    /// are stored.
    ///
    /// # Safety
    /// The targets are valid for the vectors at `at`; where the outputs are aligned to lines, `at`
    /// is the beginning of a line.
    #[inline(always)]
    unsafe fn store_lanes<V: Streaming>(&self, vectors: [V; LANES], at: usize) {
        // SAFETY: the caller's contract.
        unsafe {
            if !self.cell.is_null() {
                for (lane, vector) in vectors.into_iter().enumerate() {
                    vector.store(self.cell.add(at + lane * V::BYTES));
                }
            }
            if self.output.is_null() {
                return;
            }
            let aligned = (self.output as usize + at).is_multiple_of(LINE);
            for (lane, vector) in vectors.into_iter().enumerate() {
                let to = self.output.add(at + lane * V::BYTES);
                if self.nontemporal && aligned { vector.stream(to) } else { vector.store(to) }
            }
        }
    }
}

/// # Safety
/// The operands are among the places; the places and the targets are valid for `length` bytes.
#[inline(always)]
unsafe fn xor_all<V: Streaming>(
    targets: &ResultPlace,
    sources: &[u32],
    places: &[*mut u8],
    length: usize,
) {
    let mut at = 0;
    // SAFETY: `at` plus the bytes touched never exceeds `length`.
    unsafe {
        while at + LANES * V::BYTES <= length {
            targets.store_lanes(sum_lanes::<V>(sources, places, at), at);
            at += LANES * V::BYTES;
        }
        while at + V::BYTES <= length {
            targets.store(sum::<V>(sources, places, at), at);
            at += V::BYTES;
        }
        while at + 8 <= length {
            targets.store(sum::<u64>(sources, places, at), at);
            at += 8;
        }
        while at < length {
            targets.store(sum::<u8>(sources, places, at), at);
            at += 1;
        }
    }
}

/// # Safety
/// The operands are among the places, which are valid for [`LANES`] vectors at `at`.
#[inline(always)]
unsafe fn sum_lanes<V: Vector>(sources: &[u32], places: &[*mut u8], at: usize) -> [V; LANES] {
    // SAFETY: the caller's contract; a program's steps have a source.
    unsafe {
        let start = |source: u32| places.get_unchecked(source as usize).add(at);
        let (&first, rest) = sources.split_first().unwrap_unchecked();
        let first = start(first);
        let mut sums: [V; LANES] = std::array::from_fn(|lane| V::load(first.add(lane * V::BYTES)));
        for &source in rest {
            let from = start(source);
            for (lane, sum) in sums.iter_mut().enumerate() {
                *sum = sum.xor(V::load(from.add(lane * V::BYTES)));
            }
        }
        sums
    }
}

/// # Safety
/// As [`sum_lanes`], for one vector.
#[inline(always)]
unsafe fn sum<V: Vector>(sources: &[u32], places: &[*mut u8], at: usize) -> V {
    // SAFETY: the caller's contract.
    unsafe {
        let load = |source: u32| V::load(places.get_unchecked(source as usize).add(at));
        let (&first, rest) = sources.split_first().unwrap_unchecked();
        rest.iter().fold(load(first), |sum, &source| sum.xor(load(source)))
    }
}
