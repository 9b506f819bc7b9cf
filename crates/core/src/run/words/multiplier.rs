//! What an instruction set must offer for the word kernels.

use std::ops::Range;

use crate::define::field::Field;
use crate::run::kernel::Memory;
use crate::run::kernel::vector::Streaming;
use crate::run::words::engine::{Engine, LINE};

/// A register of words.
///
/// # Safety
/// As for [`Streaming`].
pub(super) unsafe trait Register: Streaming {
    /// The bytes of two registers at even places, and those at odd places, each in any one order.
    ///
    /// # Safety
    /// The processor has the instruction set.
    unsafe fn separate(registers: [Self; 2]) -> [Self; 2];

    /// Undoes [`Register::separate`].
    ///
    /// # Safety
    /// The processor has the instruction set.
    unsafe fn join(planes: [Self; 2]) -> [Self; 2];

    /// Every word of N bytes times 2: shifted up, and where the top bit falls out, the word of
    /// `tail` added.
    ///
    /// # Safety
    /// The processor has the instruction set.
    unsafe fn double<const N: usize>(self, tail: Self) -> Self;
}

/// A way to apply linear maps to registers of bytes, and the door to code with its features.
///
/// The algorithm ([`super::products`]) does not know how bytes are mapped: a map becomes a `Table`
/// once, when a program is compiled; a table becomes a `Factor` in registers once for all vectors of a
/// step; and a register becomes an `Operand` once for all factors.
///
/// # Safety
/// As for [`Streaming`]; [`Multiplier::is_available`] says where the processor has the instruction
/// set.
pub(super) unsafe trait Multiplier: Sized + 'static {
    /// What is loaded, summed and stored.
    type Register: Register;
    /// A map in memory.
    type Table: Copy + Send + Sync;
    /// A map in registers.
    type Factor: Copy;
    /// A register, ready to be mapped.
    type Operand: Copy;

    /// The registers that may hold sums: as many as leave room for what mapping needs. They decide how
    /// many outputs are made in one pass over the inputs.
    const SUMS: usize;

    /// Whether inputs are taken in pairs, the sum of two products being added at once. That pays where
    /// one instruction XORs three registers and multiplying takes no more than one (10+4 with GFNI
    /// on a Zen 4 server: 51 GB/s for 38), not where registers are short.
    const PAIRS: bool;

    /// Whether this processor has the instruction set.
    fn is_available() -> bool;

    /// Runs a program with the instruction set enabled.
    ///
    /// # Safety
    /// As [`Compiled::run`](crate::run::kernel::Compiled::run), and the processor has the instruction
    /// set.
    unsafe fn enter<const N: usize>(
        engine: &Engine<Self, N>,
        memory: &Memory,
        stripes: Range<usize>,
    );

    /// A map as this instruction set takes it.
    fn table(map: &ByteMap) -> Self::Table;

    /// # Safety
    /// The processor has the instruction set.
    unsafe fn factor(table: &Self::Table) -> Self::Factor;

    /// # Safety
    /// The processor has the instruction set.
    unsafe fn operand(register: Self::Register) -> Self::Operand;

    /// # Safety
    /// The processor has the instruction set.
    unsafe fn product(operand: Self::Operand, factor: Self::Factor) -> Self::Register;

    /// What [`Multiplier::double`] needs for words of N bytes.
    ///
    /// # Safety
    /// The processor has the instruction set.
    #[inline(always)]
    unsafe fn two<const N: usize>(field: Field) -> Self::Register {
        // SAFETY: the caller's contract.
        unsafe { tail::<Self::Register, N>(field) }
    }

    /// Every word of N bytes times 2.
    ///
    /// # Safety
    /// The processor has the instruction set.
    #[inline(always)]
    unsafe fn double<const N: usize>(
        register: Self::Register,
        two: Self::Register,
    ) -> Self::Register {
        // SAFETY: the caller's contract.
        unsafe { register.double::<N>(two) }
    }
}

/// The field's polynomial without its leading term, in every word of N bytes.
///
/// # Safety
/// The processor has the instruction set.
#[inline(always)]
pub(super) unsafe fn tail<R: Register, const N: usize>(field: Field) -> R {
    const { assert!(R::BYTES <= LINE && R::BYTES.is_multiple_of(N)) };
    let mut bytes = [0; LINE];
    for i in 0..LINE {
        bytes[i] = field.polynomial().to_le_bytes()[i % N];
    }
    // SAFETY: there are enough bytes, and the caller vouches for the instruction set.
    unsafe { R::load(bytes.as_ptr()) }
}

/// A linear map of bytes, by the images of its eight bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ByteMap(pub(super) [u8; 8]);

impl ByteMap {
    /// How byte `to` of a word's image depends on byte `from` of the word, in the linear map that has
    /// these images of the word's bits.
    pub(super) fn cut(images: &[u32], to: usize, from: usize) -> Self {
        Self(std::array::from_fn(|bit| (images[8 * from + bit] >> (8 * to)) as u8))
    }

    fn apply(self, byte: u8) -> u8 {
        let bits = (0..8).filter(|bit| byte >> bit & 1 == 1);
        bits.fold(0, |sum, bit| sum ^ self.0[bit])
    }
}

/// The images of the 16 values of a byte's low half, and of its high half.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(32))]
pub(super) struct NibbleTables {
    pub(super) low: [u8; 16],
    pub(super) high: [u8; 16],
}

impl NibbleTables {
    pub(super) fn new(map: &ByteMap) -> Self {
        Self {
            low: std::array::from_fn(|value| map.apply(value as u8)),
            high: std::array::from_fn(|value| map.apply((value as u8) << 4)),
        }
    }
}
