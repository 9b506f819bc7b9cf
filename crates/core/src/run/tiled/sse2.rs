//! The tiled kernels on SSE2: 16-byte registers, on every x86-64 processor.

use std::arch::x86_64::*;
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
    is_x86_feature_detected!("sse2").then_some(Runners { tiles, blocks, sums })
}

/// The kernels that multiply with shuffles.
pub(crate) const WORDS: WordRunners = WordRunners { long, products };

/// # Safety
/// As [`Runners::tiles`].
#[target_feature(enable = "sse2")]
unsafe fn tiles(program: &Tiles, memory: &Memory<'_>, stripes: Range<usize>) {
    // SAFETY: the caller's contract; the feature is enabled here.
    unsafe { program.run::<__m128i>(memory, stripes) }
}

/// # Safety
/// As [`Runners::blocks`].
#[target_feature(enable = "sse2")]
unsafe fn blocks(program: &BlockProgram, blocks: &BlockMemory) {
    // SAFETY: the caller's contract; the feature is enabled here.
    unsafe { run_tiles::<__m128i>(program, blocks) }
}

/// # Safety
/// As [`Runners::sums`].
#[target_feature(enable = "sse2")]
unsafe fn sums(terms: &Terms, memory: &DirectMemory<'_>) {
    // SAFETY: the caller's contract; the feature is enabled here.
    unsafe { run_sums::<__m128i, 8>(terms, memory) }
}

/// # Safety
/// As [`WordRunners::products`].
#[target_feature(enable = "ssse3")]
unsafe fn products(terms: &Terms, memory: &DirectMemory<'_>) {
    // SAFETY: the caller's contract; the features are enabled here.
    unsafe { run_words::<__m128i, Shuffles, 4, 2, 1, 8>(terms, memory) }
}

/// Runs a program of a long code, with the shuffles of SSSE3.
///
/// # Safety
/// As [`TransformRunner`](super::TransformRunner).
#[target_feature(enable = "ssse3")]
unsafe fn long(program: &TransformProgram, memory: &Memory<'_>, granules: Range<usize>) {
    // SAFETY: the caller's contract; the features are enabled here.
    unsafe { run_transform::<__m128i, Shuffles, 4, 2>(program, memory, granules) }
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

// SAFETY: the instructions are those of the register's shuffles.
unsafe impl Multiplier<__m128i> for Shuffles {
    type Factor = Tables;

    fn factors(field: Field) -> &'static [Tables; 256] {
        Self::all(field)
    }

    fn leopard() -> &'static LeopardMaps<Tables> {
        Self::all_of_leopard()
    }

    #[inline(always)]
    unsafe fn times(vector: __m128i, factor: &Tables) -> __m128i {
        // SAFETY: the caller vouches for the instruction set; a table has 16 bytes.
        unsafe {
            let [low, high] =
                [&factor.0[0], &factor.0[1]].map(|table| _mm_loadu_si128(table.as_ptr().cast()));
            let mask = _mm_set1_epi8(0x0F);
            let high_half = _mm_and_si128(_mm_srli_epi64::<4>(vector), mask);
            let low = _mm_shuffle_epi8(low, _mm_and_si128(vector, mask));
            low.xor(_mm_shuffle_epi8(high, high_half))
        }
    }

    #[inline(never)]
    #[target_feature(enable = "ssse3")]
    unsafe fn apart<W: KernelWork>(work: W) {
        // SAFETY: the caller's contract; the features are enabled here.
        unsafe { work.run() }
    }
}
