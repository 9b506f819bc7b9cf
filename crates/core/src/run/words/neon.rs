//! Words on NEON: 16-byte registers, products looked up by half bytes (Plank, Greenan and Miller,
//! *Screaming fast Galois field arithmetic using Intel SIMD instructions*, FAST 2013).

use std::arch::aarch64::*;
use std::ops::Range;

use crate::define::field::Field;
use crate::run::kernel::vector::Vector;
use crate::run::kernel::{Compiled, Memory};
use crate::run::words::engine::Engine;
use crate::run::words::multiplier::{Multiplier, NibbleTables, Streaming};
use crate::run::words::program::WordProgram;

struct Neon(Engine<Shuffle>);

pub(super) fn is_available() -> bool {
    std::arch::is_aarch64_feature_detected!("neon")
}

pub(super) fn compile(program: &WordProgram) -> Option<Box<dyn Compiled>> {
    is_available().then(|| Box::new(Neon(Engine::new(program))) as Box<dyn Compiled>)
}

impl Compiled for Neon {
    unsafe fn run(&self, memory: &Memory, stripes: Range<usize>) {
        // SAFETY: the caller's contract; `compile` found the processor to have the feature.
        unsafe { run(&self.0, memory, stripes) }
    }
}

/// # Safety
/// As [`Compiled::run`], and the processor has the feature.
#[target_feature(enable = "neon")]
unsafe fn run(engine: &Engine<Shuffle>, memory: &Memory, stripes: Range<usize>) {
    // SAFETY: the caller's contract; the feature is enabled here.
    unsafe { engine.run(memory, stripes) }
}

struct Shuffle;

// SAFETY: only registers and the tables are touched.
unsafe impl Multiplier for Shuffle {
    type Vector = uint8x16_t;
    type Table = NibbleTables;
    type Factor = [uint8x16_t; 2];
    type Operand = [uint8x16_t; 2];
    type Two = uint8x16_t;

    const OUTPUTS: usize = 6;
    const PAIRS: bool = false;

    fn table(field: Field, coefficient: u32) -> NibbleTables {
        NibbleTables::new(field, coefficient)
    }

    #[inline(always)]
    unsafe fn factor(table: &NibbleTables) -> [uint8x16_t; 2] {
        // SAFETY: tables are of 16 bytes.
        unsafe { [vld1q_u8(table.low.as_ptr()), vld1q_u8(table.high.as_ptr())] }
    }

    #[inline(always)]
    unsafe fn operand(vector: uint8x16_t) -> [uint8x16_t; 2] {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { [vandq_u8(vector, vdupq_n_u8(0x0F)), vshrq_n_u8::<4>(vector)] }
    }

    #[inline(always)]
    unsafe fn product([low, high]: [uint8x16_t; 2], [lows, highs]: [uint8x16_t; 2]) -> uint8x16_t {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { veorq_u8(vqtbl1q_u8(lows, low), vqtbl1q_u8(highs, high)) }
    }

    #[inline(always)]
    unsafe fn two(field: Field) -> uint8x16_t {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { vdupq_n_u8(field.polynomial() as u8) }
    }

    #[inline(always)]
    unsafe fn double(vector: uint8x16_t, tail: uint8x16_t) -> uint8x16_t {
        // SAFETY: the caller vouches for the instruction set.
        unsafe {
            let overflows = vcltzq_s8(vreinterpretq_s8_u8(vector));
            veorq_u8(vshlq_n_u8::<1>(vector), vandq_u8(overflows, tail))
        }
    }
}

// SAFETY: a store touches exactly the register's bytes.
unsafe impl Streaming for uint8x16_t {
    const STREAMS: bool = false;

    #[inline(always)]
    unsafe fn stream(self, to: *mut u8) {
        // SAFETY: the caller vouches for the bytes and the instruction set.
        unsafe { self.store(to) }
    }

    #[inline(always)]
    unsafe fn fence() {}
}
