//! What an instruction set must offer for the word kernels.

use crate::define::field::Field;
use crate::run::kernel::vector::Vector;

/// A register of words, or several that are filled together.
///
/// # Safety
/// All zero bytes are a vector of zeros. `stream` writes just the vector's bytes. The methods may
/// only be called where the processor has the instruction set; they are meant to be inlined into
/// functions with the matching `target_feature`.
pub(super) unsafe trait Streaming: Vector {
    /// Whether stores can bypass the cache.
    const STREAMS: bool;

    /// Stores past the cache, if that is possible.
    ///
    /// # Safety
    /// `to` is valid for writing a vector and aligned to the bytes of one.
    unsafe fn stream(self, to: *mut u8);

    /// Makes what was streamed visible to other threads before anything that follows.
    ///
    /// # Safety
    /// The processor has the instruction set.
    unsafe fn fence();
}

/// A way to multiply vectors of words by constants.
///
/// The algorithm ([`super::products`]) knows neither the width of words nor how they are
/// multiplied: a coefficient becomes a `Table` once, when a program is compiled; a table becomes a
/// `Factor` in registers once for all vectors of a step; and a vector becomes an `Operand` once for
/// all factors. A vector may hold words in any arrangement (such as low and high bytes apart), as
/// long as loads and stores undo each other.
///
/// # Safety
/// As for [`Streaming`].
pub(super) unsafe trait Multiplier {
    /// What is loaded, summed and stored.
    type Vector: Streaming;
    /// A coefficient in memory.
    type Table: Send + Sync;
    /// A coefficient in registers.
    type Factor: Copy;
    /// A vector, ready to be multiplied.
    type Operand: Copy;
    /// What doubling needs, in registers.
    type Two: Copy;

    /// The outputs that are made in one pass over the inputs: as many as leave all sums, and what
    /// multiplying needs, in registers. At most [`super::products::MOST_OUTPUTS`].
    const OUTPUTS: usize;

    /// Whether inputs are taken in pairs, the sum of two products being added at once. That pays where
    /// one instruction XORs three registers and multiplying takes no more than one (10+4 with GFNI
    /// on a Zen 4 server: 51 GB/s for 38), not where registers are short.
    const PAIRS: bool;

    /// Multiplication by `coefficient`.
    fn table(field: Field, coefficient: u32) -> Self::Table;

    /// # Safety
    /// The processor has the instruction set.
    unsafe fn factor(table: &Self::Table) -> Self::Factor;

    /// # Safety
    /// The processor has the instruction set.
    unsafe fn operand(vector: Self::Vector) -> Self::Operand;

    /// # Safety
    /// The processor has the instruction set.
    unsafe fn product(operand: Self::Operand, factor: Self::Factor) -> Self::Vector;

    /// What [`Multiplier::double`] needs in this field.
    ///
    /// # Safety
    /// The processor has the instruction set.
    unsafe fn two(field: Field) -> Self::Two;

    /// Every word times 2, in fewer steps than by a factor where there are: shifted up, and the
    /// polynomial added where the top bit falls out.
    ///
    /// # Safety
    /// The processor has the instruction set.
    unsafe fn double(vector: Self::Vector, two: Self::Two) -> Self::Vector;
}

/// The products of a coefficient and the 16 values of a byte's low half, and of its high half.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(32))]
pub(super) struct NibbleTables {
    pub(super) low: [u8; 16],
    pub(super) high: [u8; 16],
}

impl NibbleTables {
    pub(super) fn new(field: Field, coefficient: u32) -> Self {
        let product = |value: usize| field.multiply(coefficient, value as u32) as u8;
        Self {
            low: std::array::from_fn(product),
            high: std::array::from_fn(|value| product(value << 4)),
        }
    }
}
