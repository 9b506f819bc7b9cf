//! The tiled kernel on SSE2: 16-byte registers, on every x86-64 processor.

use std::arch::x86_64::*;
use std::ops::Range;

use crate::run::blocks::BlockProgram;
use crate::run::kernel::blocks::{Blocks, Runner, run_tiles};
use crate::run::kernel::generic::Tiled;
use crate::run::kernel::vector::{Streaming, Vector};
use crate::run::kernel::{Compiled, Memory};
use crate::run::program::Program;

pub(crate) struct Sse2(Tiled);

pub(crate) fn is_available() -> bool {
    is_x86_feature_detected!("sse2")
}

pub(crate) fn compile(program: &Program) -> Option<Box<dyn Compiled>> {
    is_available().then(|| Box::new(Sse2(Tiled::new(program))) as Box<dyn Compiled>)
}

impl Compiled for Sse2 {
    unsafe fn run(&self, memory: &Memory, stripes: Range<usize>) {
        // SAFETY: the caller's contract; `compile` found the processor to have the feature.
        unsafe { run(&self.0, memory, stripes) }
    }
}

/// # Safety
/// As [`Compiled::run`], and the processor has the feature.
#[target_feature(enable = "sse2")]
unsafe fn run(tiled: &Tiled, memory: &Memory, stripes: Range<usize>) {
    // SAFETY: the caller's contract; the feature is enabled here.
    unsafe { tiled.run::<__m128i>(memory, stripes) }
}

/// What runs long blocks, where the processor has the feature.
pub(crate) fn block_runner() -> Option<Runner> {
    is_available().then_some(run_blocks as Runner)
}

/// # Safety
/// As [`Runner`].
#[target_feature(enable = "sse2")]
unsafe fn run_blocks(program: &BlockProgram, blocks: &Blocks, tiles: Range<usize>) {
    // SAFETY: the caller's contract; the feature is enabled here.
    unsafe { run_tiles::<__m128i>(program, blocks, tiles) }
}

// SAFETY: loads and stores touch exactly the register's bytes, unaligned.
unsafe impl Vector for __m128i {
    const BYTES: usize = size_of::<Self>();

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller vouches for the bytes and the instruction set.
        unsafe { _mm_loadu_si128(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller vouches for the bytes and the instruction set.
        unsafe { _mm_storeu_si128(to.cast(), self) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { _mm_xor_si128(self, other) }
    }
}

// SAFETY: a store touches exactly the register's bytes.
unsafe impl Streaming for __m128i {
    const STREAMS: bool = true;

    #[inline(always)]
    unsafe fn stream(self, to: *mut u8) {
        // SAFETY: the caller vouches for the bytes, the alignment and the instruction set.
        unsafe { _mm_stream_si128(to.cast(), self) }
    }

    #[inline(always)]
    unsafe fn fence() {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { _mm_sfence() }
    }

    #[inline(always)]
    fn prefetch(from: *const u8) {
        // SAFETY: a prefetch of any address is harmless.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(from.cast()) }
    }
}
