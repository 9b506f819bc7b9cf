//! Words on SSSE3: 16-byte registers, products looked up by half bytes (Plank, Greenan and Miller,
//! *Screaming fast Galois field arithmetic using Intel SIMD instructions*, FAST 2013).

use std::arch::x86_64::*;
use std::ops::Range;

use crate::define::field::Field;
use crate::run::kernel::{Compiled, Memory};
use crate::run::words::engine::Engine;
use crate::run::words::multiplier::{Multiplier, NibbleTables, Streaming};
use crate::run::words::program::WordProgram;

struct Ssse3(Engine<Shuffle>);

pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("ssse3")
}

pub(super) fn compile(program: &WordProgram) -> Option<Box<dyn Compiled>> {
    is_available().then(|| Box::new(Ssse3(Engine::new(program))) as Box<dyn Compiled>)
}

impl Compiled for Ssse3 {
    unsafe fn run(&self, memory: &Memory, stripes: Range<usize>) {
        // SAFETY: the caller's contract; `compile` found the processor to have the feature.
        unsafe { run(&self.0, memory, stripes) }
    }
}

/// # Safety
/// As [`Compiled::run`], and the processor has the feature.
#[target_feature(enable = "ssse3")]
unsafe fn run(engine: &Engine<Shuffle>, memory: &Memory, stripes: Range<usize>) {
    // SAFETY: the caller's contract; the feature is enabled here.
    unsafe { engine.run(memory, stripes) }
}

struct Shuffle;

// SAFETY: only registers and the tables are touched.
unsafe impl Multiplier for Shuffle {
    type Vector = __m128i;
    type Table = NibbleTables;
    type Factor = [__m128i; 2];
    type Operand = [__m128i; 2];
    type Two = __m128i;

    const OUTPUTS: usize = 4;
    const PAIRS: bool = false;

    fn table(field: Field, coefficient: u32) -> NibbleTables {
        NibbleTables::new(field, coefficient)
    }

    #[inline(always)]
    unsafe fn factor(table: &NibbleTables) -> [__m128i; 2] {
        // SAFETY: tables are of 16 bytes and aligned to them.
        unsafe {
            [_mm_load_si128(table.low.as_ptr().cast()), _mm_load_si128(table.high.as_ptr().cast())]
        }
    }

    #[inline(always)]
    unsafe fn operand(vector: __m128i) -> [__m128i; 2] {
        // SAFETY: the caller vouches for the instruction set.
        unsafe {
            let mask = _mm_set1_epi8(0x0F);
            [_mm_and_si128(vector, mask), _mm_and_si128(_mm_srli_epi64::<4>(vector), mask)]
        }
    }

    #[inline(always)]
    unsafe fn product([low, high]: [__m128i; 2], [lows, highs]: [__m128i; 2]) -> __m128i {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { _mm_xor_si128(_mm_shuffle_epi8(lows, low), _mm_shuffle_epi8(highs, high)) }
    }

    #[inline(always)]
    unsafe fn two(field: Field) -> __m128i {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { _mm_set1_epi8(field.polynomial() as u8 as i8) }
    }

    #[inline(always)]
    unsafe fn double(vector: __m128i, tail: __m128i) -> __m128i {
        // SAFETY: the caller vouches for the instruction set.
        unsafe {
            let overflows = _mm_cmpgt_epi8(_mm_setzero_si128(), vector);
            _mm_xor_si128(_mm_add_epi8(vector, vector), _mm_and_si128(overflows, tail))
        }
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
}
