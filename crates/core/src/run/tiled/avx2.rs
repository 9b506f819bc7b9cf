//! The tiled kernels on AVX2: 32-byte registers.

use std::arch::x86_64::*;
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
    is_x86_feature_detected!("avx2").then_some(Runners { tiles, blocks, packets })
}

/// # Safety
/// As [`Runners::tiles`].
#[target_feature(enable = "avx2")]
unsafe fn tiles(program: &Tiles, memory: &Memory<'_>, stripes: Range<usize>) {
    // SAFETY: the caller's contract; the feature is enabled here.
    unsafe { program.run::<__m256i>(memory, stripes) }
}

/// # Safety
/// As [`Runners::packets`].
#[target_feature(enable = "avx2")]
unsafe fn packets(program: &Packets, memory: &Memory<'_>, stripes: Range<usize>) {
    // SAFETY: the caller's contract; the feature is enabled here.
    unsafe { program.run::<__m256i>(memory, stripes) }
}

/// # Safety
/// As [`Runners::blocks`].
#[target_feature(enable = "avx2")]
unsafe fn blocks(program: &BlockProgram, blocks: &Blocks) {
    // SAFETY: the caller's contract; the feature is enabled here.
    unsafe { run_tiles::<__m256i>(program, blocks) }
}

// SAFETY: loads and stores touch exactly the register's bytes, unaligned.
unsafe impl Vector for __m256i {
    const BYTES: usize = size_of::<Self>();

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller vouches for the bytes and the instruction set.
        unsafe { _mm256_loadu_si256(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller vouches for the bytes and the instruction set.
        unsafe { _mm256_storeu_si256(to.cast(), self) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { _mm256_xor_si256(self, other) }
    }
}

// SAFETY: a store touches exactly the register's bytes.
unsafe impl Streaming for __m256i {
    #[inline(always)]
    unsafe fn stream(self, to: *mut u8) {
        // SAFETY: the caller vouches for the bytes, the alignment and the instruction set.
        unsafe { _mm256_stream_si256(to.cast(), self) }
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
