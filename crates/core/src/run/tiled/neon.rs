//! The tiled kernels on NEON: 16-byte registers, on every AArch64 processor.

use std::arch::aarch64::*;
use std::ops::Range;

use crate::plan::blocks::BlockProgram;
use crate::run::buffers::Memory;
use crate::run::tiled::Runners;
use crate::run::tiled::blocks::{Blocks, run_tiles};
use crate::run::tiled::generic::Tiles;
use crate::run::tiled::packets::Packets;
use crate::run::tiled::vector::{Streaming, Vector};

/// The kernels, if the processor has the instruction set.
pub(crate) fn runners() -> Option<Runners> {
    std::arch::is_aarch64_feature_detected!("neon").then_some(Runners { tiles, blocks, packets })
}

/// # Safety
/// As [`Runners::tiles`].
#[target_feature(enable = "neon")]
unsafe fn tiles(program: &Tiles, memory: &Memory<'_>, stripes: Range<usize>) {
    // SAFETY: the caller's contract; the feature is enabled here.
    unsafe { program.run::<uint8x16_t>(memory, stripes) }
}

/// # Safety
/// As [`Runners::packets`].
#[target_feature(enable = "neon")]
unsafe fn packets(program: &Packets, memory: &Memory<'_>, stripes: Range<usize>) {
    // SAFETY: the caller's contract; the feature is enabled here.
    unsafe { program.run::<uint8x16_t>(memory, stripes) }
}

/// # Safety
/// As [`Runners::blocks`].
#[target_feature(enable = "neon")]
unsafe fn blocks(program: &BlockProgram, blocks: &Blocks) {
    // SAFETY: the caller's contract; the feature is enabled here.
    unsafe { run_tiles::<uint8x16_t>(program, blocks) }
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
    #[inline(always)]
    unsafe fn stream(self, to: *mut u8) {
        // SAFETY: the caller vouches for the bytes and the instruction set.
        unsafe { self.store(to) }
    }

    #[inline(always)]
    unsafe fn fence() {}
}
