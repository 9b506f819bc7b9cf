//! Words on 64-bit registers: runs anywhere, without tables or branches that depend on data.
//!
//! A byte's image is the sum of the images of the bits that are set. Bit b of every byte of a register
//! becomes a mask over that byte once for all outputs; each output then takes an
//! AND and an XOR a bit.

use std::ops::Range;

use crate::run::kernel::Memory;
use crate::run::words::engine::Engine;
use crate::run::words::multiplier::{ByteMap, Multiplier, Register};

pub(super) struct Scalar;

/// A byte in each byte of a register.
const fn repeat(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

// SAFETY: only registers and the tables are touched.
unsafe impl Multiplier for Scalar {
    type Register = u64;
    type Table = [u64; 8];
    type Factor = [u64; 8];
    type Operand = [u64; 8];

    const SUMS: usize = 8;
    const PAIRS: bool = false;

    fn is_available() -> bool {
        true
    }

    unsafe fn enter<const N: usize>(
        engine: &Engine<Self, N>,
        memory: &Memory,
        stripes: Range<usize>,
    ) {
        // SAFETY: the caller's contract; 64-bit words need no features.
        unsafe { engine.run_here(memory, stripes) }
    }

    fn table(map: &ByteMap) -> [u64; 8] {
        map.0.map(repeat)
    }

    #[inline(always)]
    unsafe fn factor(table: &[u64; 8]) -> [u64; 8] {
        *table
    }

    #[inline(always)]
    unsafe fn operand(register: u64) -> [u64; 8] {
        std::array::from_fn(|bit| (register >> bit & repeat(1)) * 0xFF)
    }

    #[inline(always)]
    unsafe fn product(operand: [u64; 8], factor: [u64; 8]) -> u64 {
        (0..8).fold(0, |sum, bit| sum ^ operand[bit] & factor[bit])
    }
}

// SAFETY: only registers are touched.
unsafe impl Register for u64 {
    #[inline(always)]
    unsafe fn separate(registers: [Self; 2]) -> [Self; 2] {
        let [a, b] = registers.map(u64::to_ne_bytes);
        let mut planes = [[0; 8]; 2];
        for i in 0..4 {
            for parity in 0..2 {
                planes[parity][i] = a[2 * i + parity];
                planes[parity][4 + i] = b[2 * i + parity];
            }
        }
        planes.map(u64::from_ne_bytes)
    }

    #[inline(always)]
    unsafe fn join(planes: [Self; 2]) -> [Self; 2] {
        let planes = planes.map(u64::to_ne_bytes);
        let [mut a, mut b] = [[0; 8]; 2];
        for i in 0..4 {
            for parity in 0..2 {
                a[2 * i + parity] = planes[parity][i];
                b[2 * i + parity] = planes[parity][4 + i];
            }
        }
        [a, b].map(u64::from_ne_bytes)
    }

    #[inline(always)]
    unsafe fn double<const N: usize>(self, tail: Self) -> Self {
        let words = self.to_le();
        let (top, all) = (8 * N - 1, u64::MAX >> (64 - 8 * N));
        let lowest_bits = u64::MAX / all;
        let overflows = (words >> top & lowest_bits) * all;
        ((words & !(lowest_bits << top)) << 1).to_le() ^ overflows.to_le() & tail
    }
}
