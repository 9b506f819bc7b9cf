//! Words on SSSE3: 16-byte registers, images of bytes looked up by half bytes (Plank, Greenan and
//! Miller, *Screaming fast Galois field arithmetic using Intel SIMD instructions*, FAST 2013).

use std::arch::x86_64::*;
use std::ops::Range;

use crate::run::kernel::Memory;
use crate::run::words::engine::Engine;
use crate::run::words::multiplier::{ByteMap, Multiplier, NibbleTables, Register};

pub(super) struct Ssse3;

// SAFETY: only registers and the tables are touched.
unsafe impl Multiplier for Ssse3 {
    type Register = __m128i;
    type Table = NibbleTables;
    type Factor = [__m128i; 2];
    type Operand = [__m128i; 2];

    const SUMS: usize = 8;
    const PAIRS: bool = false;

    fn is_available() -> bool {
        is_x86_feature_detected!("ssse3")
    }

    #[target_feature(enable = "ssse3")]
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
    unsafe fn factor(table: &NibbleTables) -> [__m128i; 2] {
        // SAFETY: tables are of 16 bytes and aligned to them.
        unsafe {
            [_mm_load_si128(table.low.as_ptr().cast()), _mm_load_si128(table.high.as_ptr().cast())]
        }
    }

    #[inline(always)]
    unsafe fn operand(register: __m128i) -> [__m128i; 2] {
        // SAFETY: the caller vouches for the instruction set.
        unsafe {
            let mask = _mm_set1_epi8(0x0F);
            [_mm_and_si128(register, mask), _mm_and_si128(_mm_srli_epi64::<4>(register), mask)]
        }
    }

    #[inline(always)]
    unsafe fn product([low, high]: [__m128i; 2], [lows, highs]: [__m128i; 2]) -> __m128i {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { _mm_xor_si128(_mm_shuffle_epi8(lows, low), _mm_shuffle_epi8(highs, high)) }
    }
}

// SAFETY: only registers are touched.
unsafe impl Register for __m128i {
    #[inline(always)]
    unsafe fn separate([a, b]: [Self; 2]) -> [Self; 2] {
        // SAFETY: the caller vouches for the instruction set.
        unsafe {
            let even = _mm_set1_epi16(0xFF);
            [
                _mm_packus_epi16(_mm_and_si128(a, even), _mm_and_si128(b, even)),
                _mm_packus_epi16(_mm_srli_epi16::<8>(a), _mm_srli_epi16::<8>(b)),
            ]
        }
    }

    #[inline(always)]
    unsafe fn join([even, odd]: [Self; 2]) -> [Self; 2] {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { [_mm_unpacklo_epi8(even, odd), _mm_unpackhi_epi8(even, odd)] }
    }

    #[inline(always)]
    unsafe fn double<const N: usize>(self, tail: Self) -> Self {
        // SAFETY: the caller vouches for the instruction set.
        unsafe {
            let (overflows, doubled) = match N {
                1 => (_mm_cmpgt_epi8(_mm_setzero_si128(), self), _mm_add_epi8(self, self)),
                2 => (_mm_srai_epi16::<15>(self), _mm_add_epi16(self, self)),
                _ => (_mm_srai_epi32::<31>(self), _mm_add_epi32(self, self)),
            };
            _mm_xor_si128(doubled, _mm_and_si128(overflows, tail))
        }
    }
}
