//! Words on AVX-512: 64-byte registers, images of bytes looked up by half bytes (Plank, Greenan and
//! Miller, *Screaming fast Galois field arithmetic using Intel SIMD instructions*, FAST 2013).

use std::arch::x86_64::*;
use std::ops::Range;

use crate::run::kernel::Memory;
use crate::run::words::engine::Engine;
use crate::run::words::multiplier::{ByteMap, Multiplier, NibbleTables, Register};

pub(super) struct Avx512;

// SAFETY: only registers and the tables are touched.
unsafe impl Multiplier for Avx512 {
    type Register = __m512i;
    type Table = NibbleTables;
    type Factor = [__m512i; 2];
    type Operand = [__m512i; 2];

    const SUMS: usize = 16;
    const PAIRS: bool = false;

    fn is_available() -> bool {
        is_x86_feature_detected!("avx512bw")
    }

    #[target_feature(enable = "avx512bw")]
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
    unsafe fn factor(table: &NibbleTables) -> [__m512i; 2] {
        // SAFETY: tables are of 16 bytes and aligned to them.
        unsafe {
            [
                _mm512_broadcast_i32x4(_mm_load_si128(table.low.as_ptr().cast())),
                _mm512_broadcast_i32x4(_mm_load_si128(table.high.as_ptr().cast())),
            ]
        }
    }

    #[inline(always)]
    unsafe fn operand(register: __m512i) -> [__m512i; 2] {
        // SAFETY: the caller vouches for the instruction set.
        unsafe {
            let mask = _mm512_set1_epi8(0x0F);
            [
                _mm512_and_si512(register, mask),
                _mm512_and_si512(_mm512_srli_epi64::<4>(register), mask),
            ]
        }
    }

    #[inline(always)]
    unsafe fn product([low, high]: [__m512i; 2], [lows, highs]: [__m512i; 2]) -> __m512i {
        // SAFETY: the caller vouches for the instruction set.
        unsafe {
            _mm512_xor_si512(_mm512_shuffle_epi8(lows, low), _mm512_shuffle_epi8(highs, high))
        }
    }
}

// SAFETY: only registers are touched.
unsafe impl Register for __m512i {
    #[inline(always)]
    unsafe fn separate([a, b]: [Self; 2]) -> [Self; 2] {
        // SAFETY: the caller vouches for the instruction set.
        unsafe {
            let even = _mm512_set1_epi16(0xFF);
            [
                _mm512_packus_epi16(_mm512_and_si512(a, even), _mm512_and_si512(b, even)),
                _mm512_packus_epi16(_mm512_srli_epi16::<8>(a), _mm512_srli_epi16::<8>(b)),
            ]
        }
    }

    #[inline(always)]
    unsafe fn join([even, odd]: [Self; 2]) -> [Self; 2] {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { [_mm512_unpacklo_epi8(even, odd), _mm512_unpackhi_epi8(even, odd)] }
    }

    #[inline(always)]
    unsafe fn double<const N: usize>(self, tail: Self) -> Self {
        // SAFETY: the caller vouches for the instruction set.
        unsafe {
            let (overflows, doubled) = match N {
                1 => (_mm512_movm_epi8(_mm512_movepi8_mask(self)), _mm512_add_epi8(self, self)),
                2 => (_mm512_srai_epi16::<15>(self), _mm512_add_epi16(self, self)),
                _ => (_mm512_srai_epi32::<31>(self), _mm512_add_epi32(self, self)),
            };
            _mm512_xor_si512(doubled, _mm512_and_si512(overflows, tail))
        }
    }
}
