//! Words on AVX2: 32-byte registers, products looked up by half bytes (Plank, Greenan and Miller,
//! *Screaming fast Galois field arithmetic using Intel SIMD instructions*, FAST 2013).

use std::arch::x86_64::*;
use std::ops::Range;

use crate::define::field::Field;
use crate::run::kernel::{Compiled, Memory};
use crate::run::words::engine::Engine;
use crate::run::words::multiplier::{Multiplier, NibbleTables, Streaming};
use crate::run::words::program::WordProgram;

struct Avx2(Engine<Shuffle>);

pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("avx2")
}

pub(super) fn compile(program: &WordProgram) -> Option<Box<dyn Compiled>> {
    is_available().then(|| Box::new(Avx2(Engine::new(program))) as Box<dyn Compiled>)
}

impl Compiled for Avx2 {
    unsafe fn run(&self, memory: &Memory, stripes: Range<usize>) {
        // SAFETY: the caller's contract; `compile` found the processor to have the feature.
        unsafe { run(&self.0, memory, stripes) }
    }
}

/// # Safety
/// As [`Compiled::run`], and the processor has the feature.
#[target_feature(enable = "avx2")]
unsafe fn run(engine: &Engine<Shuffle>, memory: &Memory, stripes: Range<usize>) {
    // SAFETY: the caller's contract; the feature is enabled here.
    unsafe { engine.run(memory, stripes) }
}

struct Shuffle;

// SAFETY: only registers and the tables are touched.
unsafe impl Multiplier for Shuffle {
    type Vector = __m256i;
    type Table = NibbleTables;
    type Factor = [__m256i; 2];
    type Operand = [__m256i; 2];
    type Two = __m256i;

    const OUTPUTS: usize = 4;
    const PAIRS: bool = false;

    fn table(field: Field, coefficient: u32) -> NibbleTables {
        NibbleTables::new(field, coefficient)
    }

    #[inline(always)]
    unsafe fn factor(table: &NibbleTables) -> [__m256i; 2] {
        // SAFETY: tables are of 16 bytes and aligned to them.
        unsafe {
            [
                _mm256_broadcastsi128_si256(_mm_load_si128(table.low.as_ptr().cast())),
                _mm256_broadcastsi128_si256(_mm_load_si128(table.high.as_ptr().cast())),
            ]
        }
    }

    #[inline(always)]
    unsafe fn operand(vector: __m256i) -> [__m256i; 2] {
        // SAFETY: the caller vouches for the instruction set.
        unsafe {
            let mask = _mm256_set1_epi8(0x0F);
            [_mm256_and_si256(vector, mask), _mm256_and_si256(_mm256_srli_epi64::<4>(vector), mask)]
        }
    }

    #[inline(always)]
    unsafe fn product([low, high]: [__m256i; 2], [lows, highs]: [__m256i; 2]) -> __m256i {
        // SAFETY: the caller vouches for the instruction set.
        unsafe {
            _mm256_xor_si256(_mm256_shuffle_epi8(lows, low), _mm256_shuffle_epi8(highs, high))
        }
    }

    #[inline(always)]
    unsafe fn two(field: Field) -> __m256i {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { _mm256_set1_epi8(field.polynomial() as u8 as i8) }
    }

    #[inline(always)]
    unsafe fn double(vector: __m256i, tail: __m256i) -> __m256i {
        // SAFETY: the caller vouches for the instruction set.
        unsafe {
            let overflows = _mm256_cmpgt_epi8(_mm256_setzero_si256(), vector);
            _mm256_xor_si256(_mm256_add_epi8(vector, vector), _mm256_and_si256(overflows, tail))
        }
    }
}

// SAFETY: a store touches exactly the register's bytes.
unsafe impl Streaming for __m256i {
    const STREAMS: bool = true;

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
}
