//! The tiled kernels on 64-bit words: they run anywhere.

use std::ops::Range;

use crate::plan::blocks::BlockProgram;
use crate::plan::long::program::LongProgram;
use crate::run::buffers::Memory;
use crate::run::tiled::Runners;
use crate::run::tiled::blocks::{BlockMemory, run_tiles};
use crate::run::tiled::generic::Tiles;
use crate::run::tiled::long::run_long;
use crate::run::tiled::multiplier::Bits;

/// The kernels.
pub(crate) fn runners() -> Option<Runners> {
    Some(Runners { tiles, blocks })
}

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

/// Runs a program of a long code.
///
/// # Safety
/// As [`LongRunner`](super::LongRunner).
pub(crate) unsafe fn long(program: &LongProgram, memory: &Memory<'_>, granules: Range<usize>) {
    // SAFETY: the caller's contract; words need no features.
    unsafe { run_long::<u64, Bits, 2>(program, memory, granules) }
}
