//! The tiled kernels on the 128-bit registers of WebAssembly.
//!
//! A WebAssembly module cannot ask which instructions its engine has: an engine that lacks these
//! refuses the whole module. So they exist only in builds that enable them
//! (`-C target-feature=+simd128`), and there they are always available.

use std::arch::wasm32::*;
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

/// The kernels.
pub(crate) fn runners() -> Option<Runners> {
    Some(Runners { tiles, blocks, sums })
}

/// The kernels that multiply with swizzles.
pub(crate) const WORDS: WordRunners = WordRunners { long, products };

/// # Safety
/// As [`Runners::tiles`].
unsafe fn tiles(program: &Tiles, memory: &Memory<'_>, stripes: Range<usize>) {
    // SAFETY: the caller's contract; the build enables the feature.
    unsafe { program.run::<v128>(memory, stripes) }
}

/// # Safety
/// As [`Runners::blocks`].
unsafe fn blocks(program: &BlockProgram, blocks: &BlockMemory) {
    // SAFETY: the caller's contract; the build enables the feature.
    unsafe { run_tiles::<v128>(program, blocks) }
}

/// # Safety
/// As [`Runners::sums`].
unsafe fn sums(terms: &Terms, memory: &DirectMemory<'_>) {
    // SAFETY: the caller's contract; the build enables the feature.
    unsafe { run_sums::<v128, 8>(terms, memory) }
}

/// # Safety
/// As [`WordRunners::products`].
unsafe fn products(terms: &Terms, memory: &DirectMemory<'_>) {
    // SAFETY: the caller's contract; the build enables the feature.
    unsafe { run_words::<v128, Shuffles, 4, 2, 1, 8>(terms, memory) }
}

/// Runs a program of a long code.
///
/// # Safety
/// As [`TransformRunner`](super::TransformRunner).
unsafe fn long(program: &TransformProgram, memory: &Memory<'_>, granules: Range<usize>) {
    // SAFETY: the caller's contract; the build enables the feature.
    unsafe { run_transform::<v128, Shuffles, 4, 2>(program, memory, granules) }
}

// SAFETY: loads and stores touch exactly the register's bytes, unaligned.
unsafe impl Vector for v128 {
    const BYTES: usize = size_of::<Self>();

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller vouches for the bytes.
        unsafe { v128_load(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller vouches for the bytes.
        unsafe { v128_store(to.cast(), self) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        v128_xor(self, other)
    }
}

// SAFETY: a store touches exactly the register's bytes.
unsafe impl Streaming for v128 {
    #[inline(always)]
    unsafe fn stream(self, to: *mut u8) {
        // SAFETY: the caller vouches for the bytes.
        unsafe { self.store(to) }
    }

    #[inline(always)]
    unsafe fn fence() {}
}

// SAFETY: the instructions are those of the register's swizzles.
unsafe impl Multiplier<v128> for Shuffles {
    type Factor = Tables;

    fn factors(field: Field) -> &'static [Tables; 256] {
        Self::all(field)
    }

    fn leopard() -> &'static LeopardMaps<Tables> {
        Self::all_of_leopard()
    }

    #[inline(always)]
    unsafe fn times(vector: v128, factor: &Tables) -> v128 {
        // SAFETY: a table has 16 bytes.
        let [low, high] =
            unsafe { [&factor.0[0], &factor.0[1]].map(|table| v128_load(table.as_ptr().cast())) };
        let low = u8x16_swizzle(low, v128_and(vector, u8x16_splat(0x0F)));
        v128_xor(low, u8x16_swizzle(high, u8x16_shr(vector, 4)))
    }

    #[inline(never)]
    unsafe fn apart<W: KernelWork>(work: W) {
        // SAFETY: the caller's contract.
        unsafe { work.run() }
    }
}
