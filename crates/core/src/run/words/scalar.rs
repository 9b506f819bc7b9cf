//! Words on 64-bit registers: runs anywhere, without tables or branches that depend on data.
//!
//! A product is the sum of the coefficient times 2^b over the bits b that are set. Bit b of every
//! byte of a register becomes a mask over that byte once for all outputs; each output then takes an
//! AND and an XOR a bit.

use std::ops::Range;

use crate::define::field::Field;
use crate::run::kernel::vector::Vector;
use crate::run::kernel::{Compiled, Memory};
use crate::run::words::engine::Engine;
use crate::run::words::multiplier::{Multiplier, Streaming};
use crate::run::words::program::WordProgram;

struct Scalar(Engine<Masks>);

pub(super) fn compile(program: &WordProgram) -> Option<Box<dyn Compiled>> {
    Some(Box::new(Scalar(Engine::new(program))))
}

impl Compiled for Scalar {
    unsafe fn run(&self, memory: &Memory, stripes: Range<usize>) {
        // SAFETY: the caller's contract; 64-bit words need no features.
        unsafe { self.0.run(memory, stripes) }
    }
}

/// A byte in each byte of a register.
const fn repeat(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

struct Masks;

// SAFETY: only registers and the tables are touched.
unsafe impl Multiplier for Masks {
    type Vector = u64;
    type Table = [u64; 8];
    type Factor = [u64; 8];
    type Operand = [u64; 8];
    type Two = u64;

    const OUTPUTS: usize = 4;
    const PAIRS: bool = false;

    fn table(field: Field, coefficient: u32) -> [u64; 8] {
        std::array::from_fn(|bit| repeat(field.multiply(coefficient, 1 << bit) as u8))
    }

    #[inline(always)]
    unsafe fn factor(table: &[u64; 8]) -> [u64; 8] {
        *table
    }

    #[inline(always)]
    unsafe fn operand(vector: u64) -> [u64; 8] {
        std::array::from_fn(|bit| (vector >> bit & repeat(1)) * 0xFF)
    }

    #[inline(always)]
    unsafe fn product(operand: [u64; 8], factor: [u64; 8]) -> u64 {
        (0..8).fold(0, |sum, bit| sum ^ operand[bit] & factor[bit])
    }

    #[inline(always)]
    unsafe fn two(field: Field) -> u64 {
        repeat(field.polynomial() as u8)
    }

    #[inline(always)]
    unsafe fn double(vector: u64, tail: u64) -> u64 {
        let overflows = (vector >> 7 & repeat(1)) * 0xFF;
        (vector & repeat(0x7F)) << 1 ^ overflows & tail
    }
}

// SAFETY: a store touches eight bytes.
unsafe impl Streaming for u64 {
    const STREAMS: bool = false;

    #[inline(always)]
    unsafe fn stream(self, to: *mut u8) {
        // SAFETY: the caller vouches for the bytes.
        unsafe { self.store(to) }
    }

    #[inline(always)]
    unsafe fn fence() {}
}
