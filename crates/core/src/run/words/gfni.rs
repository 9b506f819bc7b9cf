//! Words on GFNI: one instruction multiplies every byte of a register by a bit matrix.
//!
//! `gf2p8affineqb` takes the 8 by 8 matrix as a 64-bit number. Bit i of a product is the parity of a
//! byte and row i, and row i is byte 7 - i of the number. Every linear map of bytes is such a matrix,
//! and so is "multiply by c" in any field of bytes, whatever its polynomial; the instruction that
//! multiplies two vectors, `gf2p8mulb`, knows only AES's.
//!
//! There are two forms, one on the 32-byte registers of AVX2 and one on those of AVX-512.

use std::arch::x86_64::*;
use std::ops::Range;

use crate::define::field::Field;
use crate::run::kernel::Memory;
use crate::run::words::engine::Engine;
use crate::run::words::multiplier::{ByteMap, Multiplier, Register, tail};

/// A map as the instruction takes it.
fn affine_matrix(map: &ByteMap) -> i64 {
    let bit = |row: usize, column: usize| (map.0[column] >> row & 1) << column;
    let row = |r: usize| (0..8).fold(0, |bits, column| bits | bit(r, column));
    i64::from_be_bytes(std::array::from_fn(row))
}

/// "Multiply by 2" in a field of bytes.
fn doubling(field: Field) -> i64 {
    let images: [u32; 8] = std::array::from_fn(|bit| field.multiply(2, 1 << bit));
    affine_matrix(&ByteMap::cut(&images, 0, 0))
}

pub(super) struct Gfni256;

// SAFETY: only registers and the tables are touched.
unsafe impl Multiplier for Gfni256 {
    type Register = __m256i;
    type Table = i64;
    type Factor = __m256i;
    type Operand = __m256i;

    const SUMS: usize = 12;
    const PAIRS: bool = false;

    fn is_available() -> bool {
        is_x86_feature_detected!("gfni") && is_x86_feature_detected!("avx2")
    }

    #[target_feature(enable = "gfni,avx2")]
    unsafe fn enter<const N: usize>(
        engine: &Engine<Self, N>,
        memory: &Memory,
        stripes: Range<usize>,
    ) {
        // SAFETY: the caller's contract; the features are enabled here.
        unsafe { engine.run_here(memory, stripes) }
    }

    fn table(map: &ByteMap) -> i64 {
        affine_matrix(map)
    }

    #[inline(always)]
    unsafe fn factor(table: &i64) -> __m256i {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { _mm256_set1_epi64x(*table) }
    }

    #[inline(always)]
    unsafe fn operand(register: __m256i) -> __m256i {
        register
    }

    #[inline(always)]
    unsafe fn product(operand: __m256i, factor: __m256i) -> __m256i {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { _mm256_gf2p8affine_epi64_epi8::<0>(operand, factor) }
    }

    #[inline(always)]
    unsafe fn two<const N: usize>(field: Field) -> __m256i {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { if N == 1 { Self::factor(&doubling(field)) } else { tail::<__m256i, N>(field) } }
    }

    #[inline(always)]
    unsafe fn double<const N: usize>(register: __m256i, two: __m256i) -> __m256i {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { if N == 1 { Self::product(register, two) } else { register.double::<N>(two) } }
    }
}

pub(super) struct Gfni512;

// SAFETY: only registers and the tables are touched.
unsafe impl Multiplier for Gfni512 {
    type Register = __m512i;
    type Table = i64;
    type Factor = __m512i;
    type Operand = __m512i;

    const SUMS: usize = 16;
    const PAIRS: bool = true;

    fn is_available() -> bool {
        is_x86_feature_detected!("gfni") && is_x86_feature_detected!("avx512bw")
    }

    #[target_feature(enable = "gfni,avx512bw")]
    unsafe fn enter<const N: usize>(
        engine: &Engine<Self, N>,
        memory: &Memory,
        stripes: Range<usize>,
    ) {
        // SAFETY: the caller's contract; the features are enabled here.
        unsafe { engine.run_here(memory, stripes) }
    }

    fn table(map: &ByteMap) -> i64 {
        affine_matrix(map)
    }

    #[inline(always)]
    unsafe fn factor(table: &i64) -> __m512i {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { _mm512_set1_epi64(*table) }
    }

    #[inline(always)]
    unsafe fn operand(register: __m512i) -> __m512i {
        register
    }

    #[inline(always)]
    unsafe fn product(operand: __m512i, factor: __m512i) -> __m512i {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { _mm512_gf2p8affine_epi64_epi8::<0>(operand, factor) }
    }

    #[inline(always)]
    unsafe fn two<const N: usize>(field: Field) -> __m512i {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { if N == 1 { Self::factor(&doubling(field)) } else { tail::<__m512i, N>(field) } }
    }

    #[inline(always)]
    unsafe fn double<const N: usize>(register: __m512i, two: __m512i) -> __m512i {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { if N == 1 { Self::product(register, two) } else { register.double::<N>(two) } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The identity maps every bit to itself; the first row, for bit 0, is the last byte.
    #[test]
    fn the_identity_has_row_0_in_byte_7() {
        let identity = ByteMap(std::array::from_fn(|bit| 1 << bit));
        assert_eq!(affine_matrix(&identity), 0x0102_0408_1020_4080);
    }

    /// One byte of `gf2p8affineqb` without a constant, as Intel's manual defines it: bit i is the
    /// parity of the byte and the matrix's byte 7 - i.
    fn affine(matrix: i64, byte: u8) -> u8 {
        let rows = matrix.to_le_bytes();
        (0..8).fold(0, |bits, i| bits | ((rows[7 - i] & byte).count_ones() as u8 & 1) << i)
    }

    /// Every product of two bytes, on processors without the instruction too.
    #[test]
    fn matrices_multiply() {
        for polynomial in [0x11D, 0x11B] {
            let field = Field::with_polynomial(8, polynomial).unwrap();
            let reference = paritas_reference::field::Field::new(8, polynomial);
            for (coefficient, byte) in (0..=255).flat_map(|c| (0..=255).map(move |b| (c, b))) {
                let images: [u32; 8] =
                    std::array::from_fn(|bit| field.multiply(coefficient, 1 << bit));
                let product = affine(affine_matrix(&ByteMap::cut(&images, 0, 0)), byte);
                let expected = reference.mul(coefficient.into(), byte.into());
                assert_eq!(u64::from(product), expected, "{coefficient} times {byte}");
            }
        }
    }
}
