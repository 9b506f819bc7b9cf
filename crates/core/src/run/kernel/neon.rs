//! The tiled kernel on NEON: 16-byte registers, on every AArch64 processor.

use std::arch::aarch64::*;
use std::ops::Range;

use crate::run::blocks::BlockProgram;
use crate::run::kernel::blocks::{Blocks, Runner, run_tiles};
use crate::run::kernel::generic::Tiled;
use crate::run::kernel::vector::{Streaming, Vector};
use crate::run::kernel::{Compiled, Memory};
use crate::run::program::Program;

pub(crate) struct Neon(Tiled);

pub(crate) fn is_available() -> bool {
    std::arch::is_aarch64_feature_detected!("neon")
}

pub(crate) fn compile(program: &Program) -> Option<Box<dyn Compiled>> {
    is_available().then(|| Box::new(Neon(Tiled::new(program))) as Box<dyn Compiled>)
}

impl Compiled for Neon {
    unsafe fn run(&self, memory: &Memory, stripes: Range<usize>) {
        // SAFETY: the caller's contract; `compile` found the processor to have the feature.
        unsafe { run(&self.0, memory, stripes) }
    }
}

/// # Safety
/// As [`Compiled::run`], and the processor has the feature.
#[target_feature(enable = "neon")]
unsafe fn run(tiled: &Tiled, memory: &Memory, stripes: Range<usize>) {
    // SAFETY: the caller's contract; the feature is enabled here.
    unsafe { tiled.run::<uint8x16_t>(memory, stripes) }
}

/// What runs long blocks, where the processor has the feature.
pub(crate) fn block_runner() -> Option<Runner> {
    is_available().then_some(run_blocks as Runner)
}

/// # Safety
/// As [`Runner`].
#[target_feature(enable = "neon")]
unsafe fn run_blocks(program: &BlockProgram, blocks: &Blocks, tiles: Range<usize>) {
    // SAFETY: the caller's contract; the feature is enabled here.
    unsafe { run_tiles::<uint8x16_t>(program, blocks, tiles) }
}

// SAFETY: loads and stores touch exactly the register's bytes, unaligned.
unsafe impl Vector for uint8x16_t {
    const BYTES: usize = size_of::<Self>();

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller vouches for the bytes and the instruction set.
        unsafe { vld1q_u8(from) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller vouches for the bytes and the instruction set.
        unsafe { vst1q_u8(to, self) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { veorq_u8(self, other) }
    }
}

// SAFETY: a store touches exactly the register's bytes.
unsafe impl Streaming for uint8x16_t {
    const STREAMS: bool = false;

    #[inline(always)]
    unsafe fn stream(self, to: *mut u8) {
        // SAFETY: the caller vouches for the bytes and the instruction set.
        unsafe { self.store(to) }
    }

    #[inline(always)]
    unsafe fn fence() {}
}
