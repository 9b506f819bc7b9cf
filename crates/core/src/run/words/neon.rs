//! Words on NEON: 16-byte registers, images of bytes looked up by half bytes (Plank, Greenan and
//! Miller, *Screaming fast Galois field arithmetic using Intel SIMD instructions*, FAST 2013).

use std::arch::aarch64::*;
use std::ops::Range;

use crate::run::kernel::Memory;
use crate::run::words::engine::Engine;
use crate::run::words::multiplier::{ByteMap, Multiplier, NibbleTables, Register};

pub(super) struct Neon;

// SAFETY: only registers and the tables are touched.
unsafe impl Multiplier for Neon {
    type Register = uint8x16_t;
    type Table = NibbleTables;
    type Factor = [uint8x16_t; 2];
    type Operand = [uint8x16_t; 2];

    const SUMS: usize = 12;
    const PAIRS: bool = false;

    fn is_available() -> bool {
        std::arch::is_aarch64_feature_detected!("neon")
    }

    #[target_feature(enable = "neon")]
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
    unsafe fn factor(table: &NibbleTables) -> [uint8x16_t; 2] {
        // SAFETY: tables are of 16 bytes.
        unsafe { [vld1q_u8(table.low.as_ptr()), vld1q_u8(table.high.as_ptr())] }
    }

    #[inline(always)]
    unsafe fn operand(register: uint8x16_t) -> [uint8x16_t; 2] {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { [vandq_u8(register, vdupq_n_u8(0x0F)), vshrq_n_u8::<4>(register)] }
    }

    #[inline(always)]
    unsafe fn product([low, high]: [uint8x16_t; 2], [lows, highs]: [uint8x16_t; 2]) -> uint8x16_t {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { veorq_u8(vqtbl1q_u8(lows, low), vqtbl1q_u8(highs, high)) }
    }
}

// SAFETY: only registers are touched.
unsafe impl Register for uint8x16_t {
    #[inline(always)]
    unsafe fn separate([a, b]: [Self; 2]) -> [Self; 2] {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { [vuzp1q_u8(a, b), vuzp2q_u8(a, b)] }
    }

    #[inline(always)]
    unsafe fn join([even, odd]: [Self; 2]) -> [Self; 2] {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { [vzip1q_u8(even, odd), vzip2q_u8(even, odd)] }
    }

    #[inline(always)]
    unsafe fn double<const N: usize>(self, tail: Self) -> Self {
        // SAFETY: the caller vouches for the instruction set.
        unsafe {
            let (overflows, doubled) = match N {
                1 => (vcltzq_s8(vreinterpretq_s8_u8(self)), vshlq_n_u8::<1>(self)),
                2 => {
                    let words = vreinterpretq_u16_u8(self);
                    let overflows = vcltzq_s16(vreinterpretq_s16_u8(self));
                    let doubled = vreinterpretq_u8_u16(vshlq_n_u16::<1>(words));
                    (vreinterpretq_u8_u16(overflows), doubled)
                }
                _ => {
                    let words = vreinterpretq_u32_u8(self);
                    let overflows = vcltzq_s32(vreinterpretq_s32_u8(self));
                    let doubled = vreinterpretq_u8_u32(vshlq_n_u32::<1>(words));
                    (vreinterpretq_u8_u32(overflows), doubled)
                }
            };
            veorq_u8(doubled, vandq_u8(overflows, tail))
        }
    }
}
