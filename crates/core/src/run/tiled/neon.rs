//! The tiled kernels on NEON: 16-byte registers, on every AArch64 processor.

use std::arch::aarch64::*;
use std::ops::Range;

use crate::define::field::Field;
use crate::plan::blocks::BlockProgram;
use crate::plan::direct::sums::Terms;
use crate::plan::transform::program::TransformProgram;
use crate::run::buffers::Memory;
use crate::run::tiled::blocks::{BlockMemory, run_tiles};
use crate::run::tiled::direct::{DirectMemory, run_sums, run_words};
use crate::run::tiled::generic::Tiles;
use crate::run::tiled::multiplier::{KernelWork, LeopardMaps, Multiplier, Shuffles, Tables};
use crate::run::tiled::transform::run_transform;
use crate::run::tiled::vector::{Streaming, Vector};
use crate::run::tiled::{Runners, WordRunners};

/// The kernels, if the processor has the instruction set.
pub(crate) fn runners() -> Option<Runners> {
    std::arch::is_aarch64_feature_detected!("neon").then_some(Runners { tiles, blocks, sums })
}

/// The kernels that multiply with shuffles.
pub(crate) const WORDS: WordRunners = WordRunners { long, products };

/// # Safety
/// As [`Runners::tiles`].
#[target_feature(enable = "neon")]
unsafe fn tiles(program: &Tiles, memory: &Memory<'_>, stripes: Range<usize>) {
    // SAFETY: the caller's contract; the feature is enabled here.
    unsafe { program.run::<uint8x16_t>(memory, stripes) }
}

/// # Safety
/// As [`Runners::blocks`].
#[target_feature(enable = "neon")]
unsafe fn blocks(program: &BlockProgram, blocks: &BlockMemory) {
    // SAFETY: the caller's contract; the feature is enabled here.
    unsafe { run_tiles::<uint8x16_t>(program, blocks) }
}

/// # Safety
/// As [`Runners::sums`].
#[target_feature(enable = "neon")]
unsafe fn sums(terms: &Terms, memory: &DirectMemory<'_>) {
    // SAFETY: the caller's contract; the feature is enabled here.
    unsafe { run_sums::<uint8x16_t, 8>(terms, memory) }
}

/// # Safety
/// As [`WordRunners::products`].
#[target_feature(enable = "neon")]
unsafe fn products(terms: &Terms, memory: &DirectMemory<'_>) {
    // SAFETY: the caller's contract; the features are enabled here.
    unsafe { run_words::<uint8x16_t, Shuffles, 4, 4, 1, 8>(terms, memory) }
}

/// Runs a program of a long code.
///
/// # Safety
/// As [`TransformRunner`](super::TransformRunner).
#[target_feature(enable = "neon")]
unsafe fn long(program: &TransformProgram, memory: &Memory<'_>, granules: Range<usize>) {
    // SAFETY: the caller's contract; the features are enabled here.
    unsafe { run_transform::<uint8x16_t, Shuffles, 8, 2>(program, memory, granules) }
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

// SAFETY: the instructions are those of the register's shuffles.
unsafe impl Multiplier<uint8x16_t> for Shuffles {
    type Factor = Tables;

    fn factors(field: Field) -> &'static [Tables; 256] {
        Self::all(field)
    }

    fn leopard() -> &'static LeopardMaps<Tables> {
        Self::all_of_leopard()
    }

    #[inline(always)]
    unsafe fn times(vector: uint8x16_t, factor: &Tables) -> uint8x16_t {
        // SAFETY: the caller vouches for the instruction set; a table has 16 bytes.
        unsafe {
            let [low, high] = [&factor.0[0], &factor.0[1]].map(|table| vld1q_u8(table.as_ptr()));
            let mask = vdupq_n_u8(0x0F);
            let high_half = vshrq_n_u8::<4>(vector);
            let low = vqtbl1q_u8(low, vandq_u8(vector, mask));
            low.xor(vqtbl1q_u8(high, high_half))
        }
    }

    #[inline(never)]
    #[target_feature(enable = "neon")]
    unsafe fn apart<W: KernelWork>(work: W) {
        // SAFETY: the caller's contract; the features are enabled here.
        unsafe { work.run() }
    }
}
