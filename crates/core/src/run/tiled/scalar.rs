//! The tiled kernels on 64-bit words: they run anywhere.

use std::ops::Range;

use crate::plan::blocks::BlockProgram;
use crate::plan::direct::sums::Terms;
use crate::plan::transform::program::TransformProgram;
use crate::run::buffers::Memory;
use crate::run::tiled::blocks::{BlockMemory, run_tiles};
use crate::run::tiled::direct::{DirectMemory, run_sums, run_words};
use crate::run::tiled::generic::Tiles;
use crate::run::tiled::multiplier::Bits;
use crate::run::tiled::transform::run_transform;
use crate::run::tiled::{Runners, WordRunners};

/// The kernels.
pub(crate) fn runners() -> Option<Runners> {
    Some(Runners { tiles, blocks, sums })
}

/// The kernels that multiply bit by bit.
pub(crate) const WORDS: WordRunners = WordRunners { long, products };

/// # Safety
/// As [`Runners::tiles`].
unsafe fn tiles(program: &Tiles, memory: &Memory<'_>, stripes: Range<usize>) {
    // SAFETY: the caller's contract; words need no features.
    unsafe { program.run::<u64>(memory, stripes) }
}

/// # Safety
/// As [`Runners::blocks`].
unsafe fn blocks(program: &BlockProgram, blocks: &BlockMemory) {
    // SAFETY: the caller's contract; words need no features.
    unsafe { run_tiles::<u64>(program, blocks) }
}

/// # Safety
/// As [`Runners::sums`].
unsafe fn sums(terms: &Terms, memory: &DirectMemory<'_>) {
    // SAFETY: the caller's contract; words need no features.
    unsafe { run_sums::<u64, 4>(terms, memory) }
}

/// # Safety
/// As [`WordRunners::products`].
unsafe fn products(terms: &Terms, memory: &DirectMemory<'_>) {
    // SAFETY: the caller's contract; words need no features.
    unsafe { run_words::<u64, Bits, 2, 2, 1, 2>(terms, memory) }
}

/// Runs a program of a long code.
///
/// # Safety
/// As [`TransformRunner`](super::TransformRunner).
unsafe fn long(program: &TransformProgram, memory: &Memory<'_>, granules: Range<usize>) {
    // SAFETY: the caller's contract; words need no features.
    unsafe { run_transform::<u64, Bits, 2, 2>(program, memory, granules) }
}
