//! Words on GFNI: one instruction multiplies every byte of a register by a bit matrix.
//!
//! `gf2p8affineqb` takes the 8 by 8 matrix as a 64-bit number. Bit i of a product is the parity of a
//! byte and row i, and row i is byte 7 - i of the number. "Multiply by c" is such a matrix in any
//! field of bytes ([`Field::bit_matrix`]), whatever its polynomial; the instruction that multiplies
//! two vectors, `gf2p8mulb`, knows only AES's.
//!
//! There are two forms, one on the 32-byte registers of AVX2 and one on those of AVX-512.

use std::arch::x86_64::*;
use std::ops::Range;

use crate::define::field::Field;
use crate::run::kernel::{Compiled, Memory};
use crate::run::words::engine::Engine;
use crate::run::words::multiplier::Multiplier;
use crate::run::words::program::WordProgram;

struct Gfni256(Engine<Affine256>);

struct Gfni512(Engine<Affine512>);

pub(super) fn is_available_256() -> bool {
    is_x86_feature_detected!("gfni") && is_x86_feature_detected!("avx2")
}

pub(super) fn is_available_512() -> bool {
    is_x86_feature_detected!("gfni") && is_x86_feature_detected!("avx512bw")
}

pub(super) fn compile_256(program: &WordProgram) -> Option<Box<dyn Compiled>> {
    is_available_256().then(|| Box::new(Gfni256(Engine::new(program))) as Box<dyn Compiled>)
}

pub(super) fn compile_512(program: &WordProgram) -> Option<Box<dyn Compiled>> {
    is_available_512().then(|| Box::new(Gfni512(Engine::new(program))) as Box<dyn Compiled>)
}

impl Compiled for Gfni256 {
    unsafe fn run(&self, memory: &Memory, stripes: Range<usize>) {
        // SAFETY: the caller's contract; `compile_256` found the processor to have the features.
        unsafe { run_256(&self.0, memory, stripes) }
    }
}

impl Compiled for Gfni512 {
    unsafe fn run(&self, memory: &Memory, stripes: Range<usize>) {
        // SAFETY: the caller's contract; `compile_512` found the processor to have the features.
        unsafe { run_512(&self.0, memory, stripes) }
    }
}

/// # Safety
/// As [`Compiled::run`], and the processor has the features.
#[target_feature(enable = "gfni,avx2")]
unsafe fn run_256(engine: &Engine<Affine256>, memory: &Memory, stripes: Range<usize>) {
    // SAFETY: the caller's contract; the features are enabled here.
    unsafe { engine.run(memory, stripes) }
}

/// # Safety
/// As [`Compiled::run`], and the processor has the features.
#[target_feature(enable = "gfni,avx512bw")]
unsafe fn run_512(engine: &Engine<Affine512>, memory: &Memory, stripes: Range<usize>) {
    // SAFETY: the caller's contract; the features are enabled here.
    unsafe { engine.run(memory, stripes) }
}

/// "Multiply by `coefficient`" as the instruction takes it.
fn affine_matrix(field: Field, coefficient: u32) -> i64 {
    let matrix = field.bit_matrix(coefficient);
    let row = |r: usize| matrix.support(r).fold(0, |bits, column| bits | 1 << column);
    i64::from_be_bytes(std::array::from_fn(row))
}

struct Affine256;

// SAFETY: only registers and the tables are touched.
unsafe impl Multiplier for Affine256 {
    type Vector = __m256i;
    type Table = i64;
    type Factor = __m256i;
    type Operand = __m256i;
    type Two = __m256i;

    const OUTPUTS: usize = 6;
    const PAIRS: bool = false;

    fn table(field: Field, coefficient: u32) -> i64 {
        affine_matrix(field, coefficient)
    }

    #[inline(always)]
    unsafe fn factor(table: &i64) -> __m256i {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { _mm256_set1_epi64x(*table) }
    }

    #[inline(always)]
    unsafe fn operand(vector: __m256i) -> __m256i {
        vector
    }

    #[inline(always)]
    unsafe fn product(operand: __m256i, factor: __m256i) -> __m256i {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { _mm256_gf2p8affine_epi64_epi8::<0>(operand, factor) }
    }

    #[inline(always)]
    unsafe fn two(field: Field) -> __m256i {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { Self::factor(&affine_matrix(field, 2)) }
    }

    #[inline(always)]
    unsafe fn double(vector: __m256i, two: __m256i) -> __m256i {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { Self::product(vector, two) }
    }
}

struct Affine512;

// SAFETY: only registers and the tables are touched.
unsafe impl Multiplier for Affine512 {
    type Vector = __m512i;
    type Table = i64;
    type Factor = __m512i;
    type Operand = __m512i;
    type Two = __m512i;

    const OUTPUTS: usize = 6;
    const PAIRS: bool = true;

    fn table(field: Field, coefficient: u32) -> i64 {
        affine_matrix(field, coefficient)
    }

    #[inline(always)]
    unsafe fn factor(table: &i64) -> __m512i {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { _mm512_set1_epi64(*table) }
    }

    #[inline(always)]
    unsafe fn operand(vector: __m512i) -> __m512i {
        vector
    }

    #[inline(always)]
    unsafe fn product(operand: __m512i, factor: __m512i) -> __m512i {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { _mm512_gf2p8affine_epi64_epi8::<0>(operand, factor) }
    }

    #[inline(always)]
    unsafe fn two(field: Field) -> __m512i {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { Self::factor(&affine_matrix(field, 2)) }
    }

    #[inline(always)]
    unsafe fn double(vector: __m512i, two: __m512i) -> __m512i {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { Self::product(vector, two) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Multiplying by 1 maps every bit to itself; the first row, for bit 0, is the last byte.
    #[test]
    fn the_identity_has_row_0_in_byte_7() {
        let field = Field::new(8).unwrap();
        assert_eq!(affine_matrix(field, 1), 0x0102_0408_1020_4080);
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
                let product = affine(affine_matrix(field, coefficient), byte);
                let expected = reference.mul(coefficient.into(), byte.into());
                assert_eq!(u64::from(product), expected, "{coefficient} times {byte}");
            }
        }
    }
}
