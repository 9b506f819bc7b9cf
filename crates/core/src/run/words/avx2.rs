//! Words on AVX2: 32-byte registers, images of bytes looked up by half bytes (Plank, Greenan and
//! Miller, *Screaming fast Galois field arithmetic using Intel SIMD instructions*, FAST 2013).

use std::arch::x86_64::*;
use std::ops::Range;

use crate::run::kernel::Memory;
use crate::run::words::engine::Engine;
use crate::run::words::multiplier::{ByteMap, Multiplier, NibbleTables, Register};

pub(super) struct Avx2;

// SAFETY: only registers and the tables are touched.
unsafe impl Multiplier for Avx2 {
    type Register = __m256i;
    type Table = NibbleTables;
    type Factor = [__m256i; 2];
    type Operand = [__m256i; 2];

    const SUMS: usize = 8;
    const PAIRS: bool = false;

    fn is_available() -> bool {
        is_x86_feature_detected!("avx2")
    }

    #[target_feature(enable = "avx2")]
    unsafe fn enter<const N: usize>(
        engine: &Engine<Self, N>,
        memory: &Memory,
        stripes: Range<usize>,
    ) {
        // SAFETY: the caller's contract; the feature is enabled here.
        unsafe { engine.run_here(memory, stripes) }
    }

    fn table(map: &ByteMap) -> NibbleTables {
        NibbleTables::new(map)
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
    unsafe fn operand(register: __m256i) -> [__m256i; 2] {
        // SAFETY: the caller vouches for the instruction set.
        unsafe {
            let mask = _mm256_set1_epi8(0x0F);
            [
                _mm256_and_si256(register, mask),
                _mm256_and_si256(_mm256_srli_epi64::<4>(register), mask),
            ]
        }
    }

    #[inline(always)]
    unsafe fn product([low, high]: [__m256i; 2], [lows, highs]: [__m256i; 2]) -> __m256i {
        // SAFETY: the caller vouches for the instruction set.
        unsafe {
            _mm256_xor_si256(_mm256_shuffle_epi8(lows, low), _mm256_shuffle_epi8(highs, high))
        }
    }
}

// SAFETY: only registers are touched.
unsafe impl Register for __m256i {
    #[inline(always)]
    unsafe fn separate([a, b]: [Self; 2]) -> [Self; 2] {
        // SAFETY: the caller vouches for the instruction set.
        unsafe {
            let even = _mm256_set1_epi16(0xFF);
            [
                _mm256_packus_epi16(_mm256_and_si256(a, even), _mm256_and_si256(b, even)),
                _mm256_packus_epi16(_mm256_srli_epi16::<8>(a), _mm256_srli_epi16::<8>(b)),
            ]
        }
    }

    #[inline(always)]
    unsafe fn join([even, odd]: [Self; 2]) -> [Self; 2] {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { [_mm256_unpacklo_epi8(even, odd), _mm256_unpackhi_epi8(even, odd)] }
    }

    #[inline(always)]
    unsafe fn double<const N: usize>(self, tail: Self) -> Self {
        // SAFETY: the caller vouches for the instruction set.
        unsafe {
            let (overflows, doubled) = match N {
                1 => (_mm256_cmpgt_epi8(_mm256_setzero_si256(), self), _mm256_add_epi8(self, self)),
                2 => (_mm256_srai_epi16::<15>(self), _mm256_add_epi16(self, self)),
                _ => (_mm256_srai_epi32::<31>(self), _mm256_add_epi32(self, self)),
            };
            _mm256_xor_si256(doubled, _mm256_and_si256(overflows, tail))
        }
    }
}
