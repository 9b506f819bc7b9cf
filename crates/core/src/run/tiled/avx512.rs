//! The tiled kernels on AVX-512: 64-byte registers.

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
use crate::run::tiled::multiplier::{
    KernelWork, LeopardMaps, Matrices, Multiplier, Shuffles, Tables,
};
use crate::run::tiled::transform::run_transform;
use crate::run::tiled::vector::{Streaming, Vector};
use crate::run::tiled::{Runners, WordRunners};

/// The kernels, if the processor has the instruction set.
pub(crate) fn runners() -> Option<Runners> {
    is_x86_feature_detected!("avx512f").then_some(Runners { tiles, blocks, sums })
}

/// The kernels that multiply with shuffles.
pub(crate) const WORDS: WordRunners = WordRunners { long, products };

/// The kernels that multiply with the bit matrices of GFNI.
pub(crate) const WORDS_GFNI: WordRunners = WordRunners { long: long_gfni, products: products_gfni };

/// # Safety
/// As [`Runners::tiles`].
#[target_feature(enable = "avx512f")]
unsafe fn tiles(program: &Tiles, memory: &Memory<'_>, stripes: Range<usize>) {
    // SAFETY: the caller's contract; the feature is enabled here.
    unsafe { program.run::<__m512i>(memory, stripes) }
}

/// # Safety
/// As [`Runners::blocks`].
#[target_feature(enable = "avx512f")]
unsafe fn blocks(program: &BlockProgram, blocks: &BlockMemory) {
    // SAFETY: the caller's contract; the feature is enabled here.
    unsafe { run_tiles::<__m512i>(program, blocks) }
}

/// # Safety
/// As [`Runners::sums`].
#[target_feature(enable = "avx512f")]
unsafe fn sums(terms: &Terms, memory: &DirectMemory<'_>) {
    // SAFETY: the caller's contract; the feature is enabled here.
    unsafe { run_sums::<__m512i, 8>(terms, memory) }
}

/// # Safety
/// As [`WordRunners::products`].
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn products(terms: &Terms, memory: &DirectMemory<'_>) {
    // SAFETY: the caller's contract; the features are enabled here.
    unsafe { run_words::<__m512i, Shuffles, 4, 4, 2, 8>(terms, memory) }
}

/// # Safety
/// As [`WordRunners::products`].
#[target_feature(enable = "avx512f,avx512bw,gfni")]
unsafe fn products_gfni(terms: &Terms, memory: &DirectMemory<'_>) {
    // SAFETY: the caller's contract; the features are enabled here.
    unsafe { run_words::<__m512i, Matrices, 4, 4, 2, 8>(terms, memory) }
}

/// Runs a program of a long code, with the shuffles of AVX512BW.
///
/// # Safety
/// As [`TransformRunner`](super::TransformRunner).
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn long(program: &TransformProgram, memory: &Memory<'_>, granules: Range<usize>) {
    // SAFETY: the caller's contract; the features are enabled here.
    unsafe { run_transform::<__m512i, Shuffles, 8, 2>(program, memory, granules) }
}

/// Runs a program of a long code, with the bit matrices of GFNI.
///
/// # Safety
/// As [`TransformRunner`](super::TransformRunner).
#[target_feature(enable = "avx512f,avx512bw,gfni")]
unsafe fn long_gfni(program: &TransformProgram, memory: &Memory<'_>, granules: Range<usize>) {
    // SAFETY: the caller's contract; the features are enabled here.
    unsafe { run_transform::<__m512i, Matrices, 8, 2>(program, memory, granules) }
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

    #[inline(always)]
    unsafe fn load_halves(first: *const u8, second: *const u8) -> Self {
        // SAFETY: the caller vouches for the bytes and the instruction set.
        unsafe {
            let first = _mm512_castsi256_si512(_mm256_loadu_si256(first.cast()));
            _mm512_inserti64x4::<1>(first, _mm256_loadu_si256(second.cast()))
        }
    }

    #[inline(always)]
    unsafe fn store_halves(self, first: *mut u8, second: *mut u8) {
        // SAFETY: the caller vouches for the bytes and the instruction set.
        unsafe {
            _mm256_storeu_si256(first.cast(), _mm512_castsi512_si256(self));
            _mm256_storeu_si256(second.cast(), _mm512_extracti64x4_epi64::<1>(self));
        }
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

// SAFETY: the instructions are those of the register's shuffles.
unsafe impl Multiplier<__m512i> for Shuffles {
    type Factor = Tables;

    fn factors(field: Field) -> &'static [Tables; 256] {
        Self::all(field)
    }

    fn leopard() -> &'static LeopardMaps<Tables> {
        Self::all_of_leopard()
    }

    #[inline(always)]
    unsafe fn times(vector: __m512i, factor: &Tables) -> __m512i {
        // SAFETY: the caller vouches for the instruction set; a table has 16 bytes.
        unsafe {
            let [low, high] = [&factor.0[0], &factor.0[1]]
                .map(|table| _mm512_broadcast_i32x4(_mm_loadu_si128(table.as_ptr().cast())));
            let mask = _mm512_set1_epi8(0x0F);
            let high_half = _mm512_and_si512(_mm512_srli_epi64::<4>(vector), mask);
            let low = _mm512_shuffle_epi8(low, _mm512_and_si512(vector, mask));
            low.xor(_mm512_shuffle_epi8(high, high_half))
        }
    }

    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn apart<W: KernelWork>(work: W) {
        // SAFETY: the caller's contract; the features are enabled here.
        unsafe { work.run() }
    }
}

// SAFETY: the instruction is that of the register.
unsafe impl Multiplier<__m512i> for Matrices {
    type Factor = u64;

    fn factors(field: Field) -> &'static [u64; 256] {
        Self::all(field)
    }

    fn leopard() -> &'static LeopardMaps<u64> {
        Self::all_of_leopard()
    }

    #[inline(always)]
    unsafe fn times(vector: __m512i, factor: &u64) -> __m512i {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { _mm512_gf2p8affine_epi64_epi8::<0>(vector, _mm512_set1_epi64(*factor as i64)) }
    }

    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512bw,gfni")]
    unsafe fn apart<W: KernelWork>(work: W) {
        // SAFETY: the caller's contract; the features are enabled here.
        unsafe { work.run() }
    }
}
