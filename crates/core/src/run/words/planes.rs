//! Wider words as bytes.
//!
//! To multiply by a constant of GF(2^(8N)) is a linear map of a word's bits. Cut into bytes it is N
//! by N linear maps of bytes ([`ByteMap`]): byte `to` of a product is the sum over `from` of a map of
//! byte `from` of the word. So what an instruction set can do to bytes, by table or by bit matrix,
//! serves words of any width, as soon as the bytes that need the same map stand in the same register.
//!
//! Words are stored with their bytes side by side, least significant first. N registers of them are
//! pulled apart into N *planes* when they are loaded, plane p holding byte p of every word, and put
//! together again when they are stored; words of four bytes in two rounds of pairs. (J. S. Plank,
//! K. Greenan and E. L. Miller, *Screaming fast Galois field arithmetic using Intel SIMD
//! instructions*, FAST 2013, call words so arranged in memory the alternate mapping; here it exists in
//! registers alone, and memory keeps the standard one.) With N = 1 nothing is rearranged.

use crate::define::field::Field;
use crate::run::kernel::vector::{Streaming, Vector};
use crate::run::words::multiplier::{ByteMap, Multiplier, Register};

/// N registers of words of N bytes, byte by byte.
#[derive(Clone, Copy)]
pub(super) struct Planes<R, const N: usize>(pub(super) [R; N]);

impl<R: Register, const N: usize> Planes<R, N> {
    /// Pulls N registers of words apart.
    ///
    /// # Safety
    /// The processor has the instruction set.
    #[inline(always)]
    unsafe fn separate(mut registers: [R; N]) -> Self {
        // SAFETY: the caller's contract.
        unsafe {
            for i in 0..N / 2 {
                let pair = R::separate([registers[2 * i], registers[2 * i + 1]]);
                [registers[2 * i], registers[2 * i + 1]] = pair;
            }
            // Now even registers hold the bytes 0 and 2 of words, odd ones 1 and 3.
            for i in 0..N / 4 * 2 {
                let pair = R::separate([registers[i], registers[i + 2]]);
                [registers[i], registers[i + 2]] = pair;
            }
        }
        Self(registers)
    }

    /// Undoes [`Planes::separate`].
    ///
    /// # Safety
    /// The processor has the instruction set.
    #[inline(always)]
    unsafe fn join(self) -> [R; N] {
        let mut registers = self.0;
        // SAFETY: the caller's contract.
        unsafe {
            for i in 0..N / 4 * 2 {
                let pair = R::join([registers[i], registers[i + 2]]);
                [registers[i], registers[i + 2]] = pair;
            }
            for i in 0..N / 2 {
                let pair = R::join([registers[2 * i], registers[2 * i + 1]]);
                [registers[2 * i], registers[2 * i + 1]] = pair;
            }
        }
        registers
    }
}

// SAFETY: the N registers' bytes are loaded and stored, one register after the other.
unsafe impl<R: Register, const N: usize> Vector for Planes<R, N> {
    const BYTES: usize = N * R::BYTES;

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller's contract.
        unsafe {
            let mut registers = [R::load(from); N];
            for i in 1..N {
                registers[i] = R::load(from.add(i * R::BYTES));
            }
            Self::separate(registers)
        }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller's contract.
        unsafe {
            let registers = self.join();
            for i in 0..N {
                registers[i].store(to.add(i * R::BYTES));
            }
        }
    }

    #[inline(always)]
    unsafe fn xor(mut self, other: Self) -> Self {
        for i in 0..N {
            // SAFETY: the caller's contract.
            self.0[i] = unsafe { self.0[i].xor(other.0[i]) };
        }
        self
    }
}

// SAFETY: as above; zeros stay zeros wherever they stand.
unsafe impl<R: Register, const N: usize> Streaming for Planes<R, N> {
    const STREAMS: bool = R::STREAMS;

    #[inline(always)]
    unsafe fn stream(self, to: *mut u8) {
        // SAFETY: the caller's contract; registers divide a cache line.
        unsafe {
            let registers = self.join();
            for i in 0..N {
                registers[i].stream(to.add(i * R::BYTES));
            }
        }
    }

    #[inline(always)]
    unsafe fn fence() {
        // SAFETY: the caller's contract.
        unsafe { R::fence() }
    }
}

/// Multiplication by a constant: a table for each byte of the product and each byte of the word.
pub(super) struct WordTable<M: Multiplier, const N: usize>([[M::Table; N]; N]);

impl<M: Multiplier, const N: usize> WordTable<M, N> {
    pub(super) fn new(field: Field, coefficient: u32) -> Self {
        let images: Vec<u32> =
            (0..8 * N).map(|bit| field.multiply(coefficient, 1 << bit)).collect();
        let table = |to, from| M::table(&ByteMap::cut(&images, to, from));
        Self(std::array::from_fn(|to| std::array::from_fn(|from| table(to, from))))
    }

    /// How byte `to` of the product depends on byte `from` of the word.
    ///
    /// # Safety
    /// The processor has the instruction set.
    #[inline(always)]
    pub(super) unsafe fn factor(&self, to: usize, from: usize) -> M::Factor {
        // SAFETY: the caller's contract.
        unsafe { M::factor(&self.0[to][from]) }
    }
}

/// Planes, ready to be multiplied.
///
/// # Safety
/// The processor has the instruction set.
#[inline(always)]
pub(super) unsafe fn operands<M: Multiplier, const N: usize>(
    planes: Planes<M::Register, N>,
) -> [M::Operand; N] {
    // SAFETY: the caller's contract.
    unsafe {
        let mut operands = [M::operand(planes.0[0]); N];
        for i in 1..N {
            operands[i] = M::operand(planes.0[i]);
        }
        operands
    }
}
