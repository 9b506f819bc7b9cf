//! The tiled kernels on AVX-512: 64-byte registers.

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
    is_x86_feature_detected!("avx512f").then_some(Runners { tiles, blocks, packets })
}

/// # Safety
/// As [`Runners::tiles`].
#[target_feature(enable = "avx512f")]
unsafe fn tiles(program: &Tiles, memory: &Memory<'_>, stripes: Range<usize>) {
    // SAFETY: the caller's contract; the feature is enabled here.
    unsafe { program.run::<__m512i>(memory, stripes) }
}

/// # Safety
/// As [`Runners::packets`].
#[target_feature(enable = "avx512f")]
unsafe fn packets(program: &Packets, memory: &Memory<'_>, stripes: Range<usize>) {
    // SAFETY: the caller's contract; the feature is enabled here.
    unsafe { program.run::<__m512i>(memory, stripes) }
}

/// # Safety
/// As [`Runners::blocks`].
#[target_feature(enable = "avx512f")]
unsafe fn blocks(program: &BlockProgram, blocks: &Blocks) {
    // SAFETY: the caller's contract; the feature is enabled here.
    unsafe { run_tiles::<__m512i>(program, blocks) }
}

// SAFETY: loads and stores touch exactly the register's bytes, unaligned.
unsafe impl Vector for __m512i {
    const BYTES: usize = size_of::<Self>();

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller vouches for the bytes and the instruction set.
        unsafe { _mm512_loadu_si512(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller vouches for the bytes and the instruction set.
        unsafe { _mm512_storeu_si512(to.cast(), self) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { _mm512_xor_si512(self, other) }
    }
}

// SAFETY: a store touches exactly the register's bytes.
unsafe impl Streaming for __m512i {
    #[inline(always)]
    unsafe fn stream(self, to: *mut u8) {
        // SAFETY: the caller vouches for the bytes, the alignment and the instruction set.
        unsafe { _mm512_stream_si512(to.cast(), self) }
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
