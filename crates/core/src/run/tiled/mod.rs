//! Tiled kernels: run schedules operation by operation, on any machine.
//!
//! They run programs until these have been compiled, and wherever compiling is not allowed. Each
//! kernel is one algorithm ([`generic`], [`direct`] for sums without a schedule, [`blocks`] for LT
//! codes, [`transform`] for long codes and wide ones) over the [`vector::Vector`] trait; the file
//! of an instruction set is a thin facade that enables its features around them. The lab's kernels
//! (`packets`) do not divide packets into tiles.

#![allow(unsafe_code)]

pub(crate) mod blocks;
pub(crate) mod direct;
pub(crate) mod generic;
mod multiplier;
#[cfg(feature = "research")]
pub(crate) mod packets;
#[cfg(feature = "research")]
mod products;
pub(crate) mod transform;
pub(crate) mod vector;

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
#[cfg(target_arch = "aarch64")]
pub(crate) mod neon;
pub(crate) mod scalar;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
pub(crate) mod simd128;
#[cfg(target_arch = "x86_64")]
pub(crate) mod sse2;

use std::ops::Range;

use crate::plan::blocks::BlockProgram;
use crate::plan::direct::sums::Terms;
use crate::plan::program::Program;
use crate::plan::transform::program::TransformProgram;
use crate::run::buffers::{Memory, PreparedKernel};
use crate::run::tiled::blocks::BlockMemory;
use crate::run::tiled::direct::DirectMemory;
use crate::run::tiled::generic::Tiles;

/// The tiled kernels of an instruction set. They exist only if the processor has it.
#[derive(Clone, Copy)]
pub(crate) struct Runners {
    /// Runs a program over a range of stripes.
    ///
    /// Its safety contract is that of [`PreparedKernel::run`].
    pub(crate) tiles: unsafe fn(&Tiles, &Memory<'_>, Range<usize>),
    /// Runs a program over long blocks.
    ///
    /// Its safety contract: the numbers of inputs and outputs are the program's. Each input is
    /// valid for the bytes of the blocks, and each output is null or valid for these bytes. No
    /// other thread accesses these bytes of the outputs or writes those of the inputs.
    pub(crate) blocks: unsafe fn(&BlockProgram, &BlockMemory),
    /// Adds packets.
    ///
    /// Its safety contract is that of [`DirectRunner`].
    pub(crate) sums: DirectRunner,
}

/// The tiled kernels that multiply words in one of the ways that an instruction set offers. They
/// exist only if the processor has it.
#[derive(Clone, Copy)]
pub(crate) struct WordRunners {
    pub(crate) long: TransformRunner,
    /// Adds multiples of words.
    ///
    /// Its safety contract is that of [`DirectRunner`].
    pub(crate) products: DirectRunner,
}

/// Computes sums over some strips.
///
/// Its safety contract: the numbers of inputs and outputs are those of the terms, and the terms are
/// packets or words as the kernel expects. Each cell is valid for its packet in all strips, for
/// writing if it is an output. No other thread writes these bytes, or reads those of the outputs.
pub(crate) type DirectRunner = unsafe fn(&Terms, &DirectMemory<'_>);

/// Runs a program of a long code over a range of granules.
///
/// Its safety contract: the places of `memory` are the program's buffers, each valid for its length
/// (for writing if the program writes it). Buffers that are written overlap no other buffer.
/// Outputs to which values are added hold whole granules up to the end of the range, unless the
/// symbols are Leopard's, whose last granule may be short. The range begins at a multiple of
/// [`TransformProgram::tile`] if a sum is kept. No other thread accesses these granules of the
/// outputs or writes those of the inputs.
pub(crate) type TransformRunner = unsafe fn(&TransformProgram, &Memory<'_>, Range<usize>);

/// A program prepared for a tiled kernel.
pub(crate) struct Tiled {
    program: Tiles,
    runners: Runners,
    /// Why this kernel runs the program instead of a compiled one; `None` if no compiled kernel was
    /// intended.
    reason: Option<&'static str>,
}

impl Tiled {
    pub(crate) fn new(program: &Program, runners: Runners) -> Self {
        Self { program: Tiles::new(program), runners, reason: None }
    }

    /// Records why this kernel runs the program instead of a compiled one.
    pub(crate) fn because(self, reason: &'static str) -> Self {
        Self { reason: Some(reason), ..self }
    }
}

impl PreparedKernel for Tiled {
    unsafe fn run(&self, memory: &Memory<'_>, stripes: Range<usize>) {
        // SAFETY: the caller's contract; runners exist only where the processor has the features
        // that they need.
        unsafe { (self.runners.tiles)(&self.program, memory, stripes) }
    }

    fn fallback(&self) -> Option<String> {
        self.reason.map(str::to_owned)
    }
}
