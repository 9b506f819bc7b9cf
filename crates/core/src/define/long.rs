//! The matrix of a long code: a systematic Reed-Solomon code of up to 65,536 blocks.
//!
//! With N data and P parity blocks, let L be the smallest power of two that is at least P. Parity
//! block i stands at point i of the field, data block j at point L + j ([`CantorBasis::point`]),
//! and the coefficient of data block j in parity block i is
//!
//! ```text
//! point((L + j) / L) / point(i xor (L + j))        (L + j is divided as a number, rounded down)
//! ```
//!
//! The divisor is point(i) + point(L + j), so this is a Cauchy matrix, with columns scaled by
//! nonzero factors. Every square part of it is invertible: **any** lost data blocks are
//! recoverable, up to the number of parity blocks at hand.
//!
//! The scaling makes the matrix fast. The numerator is the value at the data block's point of the
//! polynomial that vanishes on the L points of the parity. So the parity blocks are the values, at
//! those points, of polynomials of degree below L that go through L data blocks each: they take one
//! fast Fourier transform for each L data blocks and one more for all (see
//! `plan/transform/program.rs`).
//!
//! Leopard's code over GF(2^16) has the same formula (Lin, Al-Naffouri and Han, *FFT algorithm for
//! binary extension finite fields and its application to Reed-Solomon codes*, 2016), over another
//! basis.

use crate::define::tower::{CantorBasis, ELEMENTS, Element};
use crate::error::{Error, Result};

/// The numbers that define a long code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct LongMatrix {
    data: usize,
    parity: usize,
    /// L is 2 to this power.
    levels: u32,
    basis: CantorBasis,
}

impl LongMatrix {
    /// Returns the matrix of `data` columns and `parity` rows, over points of this basis.
    ///
    /// # Errors
    /// If a count is 0, or if the number of data blocks plus L exceeds the number of elements of
    /// the field.
    pub(crate) fn new(basis: CantorBasis, data: usize, parity: usize) -> Result<Self> {
        let matrix = |levels| Self { data, parity, levels, basis };
        let fits = |matrix: &Self| {
            let room = ELEMENTS.checked_sub(matrix.chunk());
            data > 0 && parity > 0 && room.is_some_and(|room| data <= room)
        };
        let levels = (0..16).find(|&levels| parity <= 1 << levels);
        levels.map(matrix).filter(fits).ok_or_else(|| {
            Error::parameters(format!(
                "a long code must have at least 1 data block and 1 parity block, and its data blocks, \
                 plus its parity blocks rounded up to a power of two, must be at most {ELEMENTS}; \
                 got {data} data blocks and {parity} parity blocks"
            ))
        })
    }

    /// The basis of the points.
    pub(crate) fn basis(&self) -> CantorBasis {
        self.basis
    }

    /// The number of data blocks, N.
    pub(crate) fn data(&self) -> usize {
        self.data
    }

    /// The number of parity blocks, P.
    pub(crate) fn parity(&self) -> usize {
        self.parity
    }

    /// The number of levels of a transform, log2 of L.
    pub(crate) fn levels(&self) -> u32 {
        self.levels
    }

    /// The number of points of a transform, L.
    pub(crate) fn chunk(&self) -> usize {
        1 << self.levels
    }

    /// The number of the point of data block `column`.
    pub(crate) fn position(&self, column: usize) -> usize {
        self.chunk() + column
    }

    /// The value of the polynomial that vanishes on the points of the parity, at data block
    /// `column`. It is not zero.
    pub(crate) fn scale(&self, column: usize) -> Element {
        self.basis.point(self.position(column) >> self.levels)
    }

    /// The coefficient of data block `column` in parity block `row`.
    pub(crate) fn coefficient(&self, row: usize, column: usize) -> Element {
        self.scale(column).over(self.basis.point(row ^ self.position(column)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_bounded_by_the_field() {
        for (data, parity) in [(1, 1), (65_535, 1), (65_534, 2), (65_532, 3), (32_768, 32_768)] {
            assert!(LongMatrix::new(CantorBasis::Own, data, parity).is_ok(), "{data} + {parity}");
        }
        for (data, parity) in [(0, 1), (1, 0), (65_536, 1), (65_533, 3), (1, 32_769)] {
            let error = LongMatrix::new(CantorBasis::Own, data, parity).unwrap_err().to_string();
            assert!(error.contains(&format!("got {data} data blocks and {parity}")), "{error}");
        }
    }

    /// Checks that one parity block is the XOR of all data blocks.
    #[test]
    fn one_parity_block_is_a_sum() {
        let matrix = LongMatrix::new(CantorBasis::Own, 1000, 1).unwrap();
        assert!((0..1000).all(|column| matrix.coefficient(0, column) == Element::ONE));
    }

    /// Stored parity relies on these numbers.
    #[test]
    fn coefficients_are_for_ever() {
        let of = |data, parity, cells: [(usize, usize); 4]| {
            let matrix = LongMatrix::new(CantorBasis::Own, data, parity).unwrap();
            cells.map(|(row, column)| matrix.coefficient(row, column).0)
        };
        let small = of(4, 2, [(0, 0), (0, 3), (1, 0), (1, 3)]);
        let large = of(8000, 1000, [(0, 0), (0, 7999), (999, 0), (999, 7999)]);
        assert_eq!(small, [0x00D7, 0x0098, 0x00D6, 0x0099]);
        assert_eq!(large, [0x97E5, 0xA862, 0xD071, 0xE5E9]);
    }
}
