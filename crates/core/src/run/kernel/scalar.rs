//! The tiled kernel on 64-bit words: runs anywhere.

use std::ops::Range;

use crate::run::blocks::BlockProgram;
use crate::run::kernel::blocks::{Blocks, run_tiles};
use crate::run::kernel::generic::Tiled;
use crate::run::kernel::{Compiled, Memory};
use crate::run::program::Program;

pub(crate) struct Scalar(Tiled);

pub(crate) fn compile(program: &Program) -> Option<Box<dyn Compiled>> {
    Some(Box::new(Scalar(Tiled::new(program))))
}

impl Compiled for Scalar {
    unsafe fn run(&self, memory: &Memory, stripes: Range<usize>) {
        // SAFETY: the caller's contract; words need no features.
        unsafe { self.0.run::<u64>(memory, stripes) }
    }
}

/// # Safety
/// As [`Runner`](crate::run::kernel::blocks::Runner).
pub(crate) unsafe fn run_blocks(program: &BlockProgram, blocks: &Blocks, tiles: Range<usize>) {
    // SAFETY: the caller's contract; words need no features.
    unsafe { run_tiles::<u64>(program, blocks, tiles) }
}
