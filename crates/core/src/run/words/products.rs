//! Sums of products, once, for every instruction set and word width.
//!
//! A *pass* makes a few outputs at a time, as many as the registers hold sums of. It walks down all
//! buffers in steps of two vectors: each input is loaded once, made ready to be multiplied once, and
//! multiplied by one factor for each output, which is loaded once for both vectors. With a whole
//! cache line of an input taken at once, shards that begin at the same place of a page do not push
//! each other out of the first-level cache between two touches. (Words of several bytes fill as many
//! registers, so that their steps are of one vector.)
//!
//! More outputs take several passes. These run over one tile of all buffers after the other, so that
//! inputs come from memory once.
//!
//! More than [`WIDE`] inputs take several passes as well, which hand on their sums in a scratch of one
//! tile. A processor follows a dozen or two of streams from memory and loses track of more: on a Zen 4
//! server 40+4 from memory ran at 4 to 7 GB/s in one pass over all inputs and runs at 13 to 15 in
//! groups of ten (ISA-L 2.30: 5). (To prefetch the next group's lines meanwhile gave GFNI another 20 to
//! 40 % there and cost 10 % in the cache; it is not done.)
//!
//! An output that is the plain sum of a pass's inputs comes first in the pass and is not multiplied.
//! Bytes that do not fill a vector go through a padded copy; nothing is read or written beyond the
//! end of a buffer.

use crate::run::kernel::Memory;
use crate::run::kernel::vector::Vector;
use crate::run::words::access::{Access, Padded, Whole, load, store};
use crate::run::words::engine::{LINE, Span};
use crate::run::words::multiplier::Multiplier;
use crate::run::words::planes::{Planes, WordTable, operands};
use crate::run::words::program::WordProgram;

/// The most outputs of a pass.
const MOST_OUTPUTS: usize = 6;

/// The most inputs that are read in one pass.
const WIDE: usize = 20;

/// The most inputs of a pass where there are more than [`WIDE`].
const GROUP: usize = 10;

/// The bytes of a tile of one buffer where inputs are grouped: a page, so that few pages are open.
const GROUP_TILE: usize = 4 * 1024;

/// The most bytes of a tile of one buffer.
const MOST_TILE: usize = 16 * 1024;

/// What the tiles of all buffers may fill together.
const TILE_BUDGET: usize = 256 * 1024;

/// The vectors of one input that are multiplied together, where words are bytes.
const TOGETHER: usize = 2;

/// The most outputs of a pass over words of N bytes, whose sums take N registers each, and where N is
/// 1, [`TOGETHER`].
const fn most_outputs<M: Multiplier, const N: usize>() -> usize {
    let outputs = M::SUMS / if N > TOGETHER { N } else { TOGETHER };
    if outputs < MOST_OUTPUTS { outputs } else { MOST_OUTPUTS }
}

/// A program as passes.
pub(super) struct Products<M: Multiplier, const N: usize> {
    passes: Vec<Pass<M, N>>,
    /// The bytes of each buffer that all passes run over before the next bytes.
    tile: usize,
    /// Whether passes hand on sums.
    grouped: bool,
}

/// Some outputs, and some of the inputs they depend on.
struct Pass<M: Multiplier, const N: usize> {
    inputs: Vec<usize>,
    outputs: Vec<usize>,
    /// Input by input, a table for each output; none for a plain first one.
    tables: Vec<WordTable<M, N>>,
    /// Whether the first output is the plain sum of the inputs.
    plain: bool,
    begins: Sums,
    ends: Sums,
}

/// Where sums are before and after a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sums {
    /// There are none yet.
    Zero,
    /// In a scratch, one tile an output.
    Scratch,
    /// In the outputs.
    Outputs,
}

impl<M: Multiplier, const N: usize> Products<M, N> {
    pub(super) fn new(program: &WordProgram) -> Self {
        const { assert!(most_outputs::<M, N>() > 0) };
        let mut outputs: Vec<usize> = (0..program.outputs().len()).collect();
        outputs.sort_by_key(|&output| !is_plain(program.row(output)));
        let passes: Vec<Pass<M, N>> = evenly(&outputs, most_outputs::<M, N>())
            .flat_map(|outputs| Pass::group(program, outputs))
            .collect();
        let grouped = passes.iter().any(|pass| pass.ends == Sums::Scratch);
        let buffers = program.inputs().len() + program.outputs().len();
        let tile = match (grouped, passes.len()) {
            (true, _) => GROUP_TILE,
            (false, 0 | 1) => usize::MAX,
            _ => (TILE_BUDGET / buffers).clamp(8 * LINE, MOST_TILE) / LINE * LINE,
        };
        Self { passes, tile, grouped }
    }

    /// Runs over some bytes of all buffers.
    ///
    /// # Safety
    /// `memory` holds valid pointers for `span` of every buffer of the program, for writing where
    /// it writes; where the span streams, outputs begin at a cache line; `M`'s instruction set is
    /// available.
    #[inline(always)]
    pub(super) unsafe fn run(&self, memory: &Memory, span: Span) {
        let lines = if self.grouped { MOST_OUTPUTS * GROUP_TILE / LINE } else { 0 };
        let mut scratch = vec![Line([0; LINE]); lines];
        let scratch: *mut u8 = scratch.as_mut_ptr().cast();
        let mut start = 0;
        while start < span.length {
            let length = self.tile.min(span.length - start);
            for pass in &self.passes {
                let tile = Span { start: span.start + start, length, ..span };
                // SAFETY: the caller's contract; a tile is a part of the span and a whole number of
                // lines from its start. The scratch holds a tile for every output of a pass.
                unsafe { pass.run(memory, tile, scratch) };
            }
            start += length;
        }
    }
}

/// A cache line of scratch.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; LINE]);

fn is_plain(row: &[u32]) -> bool {
    row.iter().all(|&coefficient| coefficient == 1)
}

/// A list in as few parts as have at most `most` elements, of about equal length.
fn evenly(list: &[usize], most: usize) -> impl Iterator<Item = &[usize]> {
    let parts = list.len().div_ceil(most).max(1);
    list.chunks(list.len().div_ceil(parts).max(1))
}

/// The memory of a pass, from the first byte of a span on.
struct Cursors<const OUT: usize> {
    sources: Vec<*const u8>,
    /// The sums before.
    before: Option<[*const u8; OUT]>,
    targets: [*mut u8; OUT],
}

impl<M: Multiplier, const N: usize> Pass<M, N> {
    /// The passes that make some outputs.
    fn group(program: &WordProgram, outputs: &[usize]) -> Vec<Self> {
        let used = |&input: &usize| outputs.iter().any(|&output| program.row(output)[input] != 0);
        let inputs: Vec<usize> = (0..program.inputs().len()).filter(used).collect();
        let most = if inputs.len() > WIDE { GROUP } else { WIDE };
        let mut passes: Vec<Self> =
            evenly(&inputs, most).map(|inputs| Self::new(program, outputs, inputs)).collect();
        if passes.is_empty() {
            passes.push(Self::new(program, outputs, &[]));
        }
        if let Some(first) = passes.first_mut() {
            first.begins = if program.adds() { Sums::Outputs } else { Sums::Zero };
        }
        if let Some(last) = passes.last_mut() {
            last.ends = Sums::Outputs;
        }
        passes
    }

    /// A pass in the middle of others.
    fn new(program: &WordProgram, outputs: &[usize], inputs: &[usize]) -> Self {
        let plain = inputs.iter().all(|&input| program.row(outputs[0])[input] == 1);
        let factors = &outputs[usize::from(plain)..];
        let table = |input: usize, output: usize| {
            WordTable::new(program.field(), program.row(output)[input])
        };
        Self {
            tables: inputs
                .iter()
                .flat_map(|&input| factors.iter().map(move |&output| table(input, output)))
                .collect(),
            inputs: inputs.iter().map(|&input| program.inputs()[input]).collect(),
            outputs: outputs.iter().map(|&output| program.outputs()[output]).collect(),
            plain,
            begins: Sums::Scratch,
            ends: Sums::Scratch,
        }
    }

    /// # Safety
    /// As [`Products::run`]; the scratch has room for the span once for every output.
    #[inline(always)]
    unsafe fn run(&self, memory: &Memory, span: Span, scratch: *mut u8) {
        let most = const { most_outputs::<M, N>() };
        // SAFETY: the caller's contract, passed on.
        unsafe {
            match self.outputs.len() {
                1 => self.run_outputs::<1>(memory, span, scratch),
                2 => self.run_outputs::<2>(memory, span, scratch),
                3 if most > 2 => self.run_outputs::<3>(memory, span, scratch),
                4 if most > 3 => self.run_outputs::<4>(memory, span, scratch),
                5 if most > 4 => self.run_outputs::<5>(memory, span, scratch),
                6 if most > 5 => self.run_outputs::<6>(memory, span, scratch),
                _ => {}
            }
        }
    }

    /// # Safety
    /// As [`Pass::run`]; the pass has `OUT` outputs.
    #[inline(always)]
    unsafe fn run_outputs<const OUT: usize>(&self, memory: &Memory, span: Span, scratch: *mut u8) {
        let cursors = self.cursors::<OUT>(memory, span, scratch);
        let streams = span.streams && self.ends == Sums::Outputs;
        // SAFETY: the caller's contract, passed on.
        unsafe {
            if self.plain {
                self.walk::<OUT, true>(&cursors, Span { streams, ..span });
            } else {
                self.walk::<OUT, false>(&cursors, Span { streams, ..span });
            }
        }
    }

    fn cursors<const OUT: usize>(
        &self,
        memory: &Memory,
        span: Span,
        scratch: *mut u8,
    ) -> Cursors<OUT> {
        let start = |buffer: usize| memory.pointer(buffer).wrapping_add(span.start);
        let sums = |place: Sums, output: usize| match place {
            Sums::Outputs => start(self.outputs[output]),
            Sums::Scratch | Sums::Zero => scratch.wrapping_add(output * GROUP_TILE),
        };
        let before = || std::array::from_fn(|output| sums(self.begins, output).cast_const());
        Cursors {
            sources: self.inputs.iter().map(|&buffer| start(buffer).cast_const()).collect(),
            before: (self.begins != Sums::Zero).then(before),
            targets: std::array::from_fn(|output| sums(self.ends, output)),
        }
    }

    /// # Safety
    /// As [`Pass::run`]; the cursors are those of the pass and the span.
    #[inline(always)]
    unsafe fn walk<const OUT: usize, const PLAIN: bool>(&self, cursors: &Cursors<OUT>, span: Span) {
        let vector = Planes::<M::Register, N>::BYTES;
        let mut at = 0;
        // SAFETY: `at` plus the bytes that are touched never exceeds the span.
        unsafe {
            let access = Whole { streams: span.streams };
            while N == 1 && at + TOGETHER * vector <= span.length {
                self.step::<OUT, PLAIN, TOGETHER, Whole>(cursors, at, access);
                at += TOGETHER * vector;
            }
            while N > 1 && at + vector <= span.length {
                self.step::<OUT, PLAIN, 1, Whole>(cursors, at, access);
                at += vector;
            }
            while at < span.length {
                let access = Padded { bytes: vector.min(span.length - at) };
                self.step::<OUT, PLAIN, 1, Padded>(cursors, at, access);
                at += access.bytes;
            }
        }
    }

    /// Makes `VECTORS` vectors of every output.
    ///
    /// # Safety
    /// The cursors are valid for the access at `at`; `M`'s instruction set is available.
    #[inline(always)]
    unsafe fn step<const OUT: usize, const PLAIN: bool, const VECTORS: usize, A: Access>(
        &self,
        cursors: &Cursors<OUT>,
        at: usize,
        access: A,
    ) {
        let factors = OUT - usize::from(PLAIN);
        let mut tables = self.tables.as_ptr();
        let mut sources = &cursors.sources[..];
        // SAFETY: the caller's contract. A vector of zero bytes is zero. There are `factors` tables
        // for every source.
        unsafe {
            let mut sums: [[Planes<M::Register, N>; VECTORS]; OUT] = std::mem::zeroed();
            if let Some(before) = &cursors.before {
                for output in 0..OUT {
                    sums[output] = load(before[output].add(at), access);
                }
            }
            while let ([a, b, rest @ ..], true) = (sources, M::PAIRS) {
                let pair = [load(a.add(at), access), load(b.add(at), access)];
                add::<M, N, OUT, PLAIN, VECTORS, 2>(&mut sums, pair, tables);
                tables = tables.add(2 * factors);
                sources = rest;
            }
            for source in sources {
                let single = [load(source.add(at), access)];
                add::<M, N, OUT, PLAIN, VECTORS, 1>(&mut sums, single, tables);
                tables = tables.add(factors);
            }
            for output in 0..OUT {
                store(cursors.targets[output].add(at), sums[output], access);
            }
        }
    }
}

/// Adds the products of some inputs to the sums.
///
/// # Safety
/// `tables` points to one table for each input and multiplied output; `M`'s instruction set is
/// available.
#[inline(always)]
unsafe fn add<
    M: Multiplier,
    const N: usize,
    const OUT: usize,
    const PLAIN: bool,
    const VECTORS: usize,
    const INPUTS: usize,
>(
    sums: &mut [[Planes<M::Register, N>; VECTORS]; OUT],
    inputs: [[Planes<M::Register, N>; VECTORS]; INPUTS],
    tables: *const WordTable<M, N>,
) {
    let (plain, factors) = (usize::from(PLAIN), OUT - usize::from(PLAIN));
    // SAFETY: the caller's contract.
    unsafe {
        if PLAIN {
            for i in 0..VECTORS {
                let mut input = inputs[0][i];
                for n in 1..INPUTS {
                    input = input.xor(inputs[n][i]);
                }
                sums[0][i] = sums[0][i].xor(input);
            }
        }
        let mut ready = [[operands::<M, N>(inputs[0][0]); VECTORS]; INPUTS];
        for n in 0..INPUTS {
            for i in 0..VECTORS {
                ready[n][i] = operands::<M, N>(inputs[n][i]);
            }
        }
        for output in 0..factors {
            for to in 0..N {
                for from in 0..N {
                    let mut multiples = [(*tables.add(output)).factor(to, from); INPUTS];
                    for n in 1..INPUTS {
                        multiples[n] = (*tables.add(n * factors + output)).factor(to, from);
                    }
                    for i in 0..VECTORS {
                        let mut product = M::product(ready[0][i][from], multiples[0]);
                        for n in 1..INPUTS {
                            product = product.xor(M::product(ready[n][i][from], multiples[n]));
                        }
                        let sum = &mut sums[plain + output][i].0[to];
                        *sum = sum.xor(product);
                    }
                }
            }
        }
    }
}
