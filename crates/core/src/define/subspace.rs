//! Subspaces of the bytes, and the polynomials that vanish on them.
//!
//! The bytes below 2^i are a subspace of GF(2^8), because sums are XORs. The polynomial s_i that
//! vanishes on them is linear, and so is its multiple that is 1 at 2^i, here called the *level
//! polynomial* i:
//!
//! ```text
//! l_0(x) = x        l_(i+1)(x) = l_i(x) · (l_i(x) + 1) / (the same at x = 2^(i+1))
//! ```
//!
//! Products of level polynomials are the basis over which additive Fourier transforms work
//! (Sian-Jheng Lin, Wei-Ho Chung and Yunghsiang S. Han, *Novel polynomial basis and its application
//! to Reed-Solomon erasure codes*, FOCS 2014): polynomial n of the basis is the product of those
//! l_i for which bit i of n is set, so it has degree n. In bytes that are written over Cantor's
//! basis, l_i(x) is x shifted right by i bits.

use crate::define::field::Field;
use crate::define::made::FirstMade;

/// Number of level polynomials.
pub(crate) const LEVELS: usize = 8;

/// The level polynomials of a field of bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Subspaces {
    /// The value of each polynomial at each byte.
    values: [[u8; 256]; LEVELS],
    /// The derivative of each polynomial, a constant.
    derivatives: [u8; LEVELS],
}

impl Subspaces {
    /// Returns the level polynomials of a field; `None` if the field has no tables.
    pub(crate) fn of(field: Field) -> Option<&'static Self> {
        static USUAL: FirstMade<Subspaces> = FirstMade::new();
        static CANTOR: FirstMade<Subspaces> = FirstMade::new();
        field.logarithms()?;
        Some(match field.has_powers() {
            true => USUAL.get(|| Self::new(Field::bytes())),
            false => CANTOR.get(|| Self::new(Field::cantor())),
        })
    }

    fn new(field: Field) -> Self {
        let multiply = |a: u8, b: u8| field.multiply(a.into(), b.into()) as u8;
        let mut values = [[0; 256]; LEVELS];
        values[0] = std::array::from_fn(|byte| byte as u8);
        let mut derivatives = [1; LEVELS];
        for level in 1..LEVELS {
            let product = |byte: usize| {
                let value = values[level - 1][byte];
                multiply(value, value ^ 1)
            };
            let scale = field.inverse(product(1 << level).into()).unwrap_or(0) as u8;
            values[level] = std::array::from_fn(|byte| multiply(product(byte), scale));
            // The derivative of a square is 0.
            derivatives[level] = multiply(derivatives[level - 1], scale);
        }
        Self { values, derivatives }
    }

    /// The value of level polynomial `level` at a point below 256.
    pub(crate) fn value(&self, level: u32, point: usize) -> u8 {
        self.values[level as usize][point]
    }

    /// The derivative of level polynomial `level`.
    pub(crate) fn derivative(&self, level: u32) -> u8 {
        self.derivatives[level as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with products over the points of the subspaces.
    #[test]
    fn level_polynomials_vanish_on_their_subspaces() {
        for field in [Field::bytes(), Field::cantor()] {
            let subspaces = Subspaces::of(field).unwrap();
            for level in 0..LEVELS as u32 {
                let product = |at: u32| {
                    (0..1 << level).fold(1, |product, point| field.multiply(product, at ^ point))
                };
                let scale = field.inverse(product(1 << level)).unwrap();
                for point in 0..256 {
                    let right = field.multiply(product(point), scale);
                    assert_eq!(u32::from(subspaces.value(level, point as usize)), right);
                }
                // The coefficient of x is the product of all points but 0.
                let slope =
                    (1..1 << level).fold(scale, |slope, point| field.multiply(slope, point));
                assert_eq!(u32::from(subspaces.derivative(level)), slope);
            }
        }
    }

    #[test]
    fn in_cantors_basis_they_are_shifts() {
        let subspaces = Subspaces::of(Field::cantor()).unwrap();
        for level in 0..LEVELS as u32 {
            assert_eq!(subspaces.derivative(level), 1);
            assert!(
                (0..256).all(|point| usize::from(subspaces.value(level, point)) == point >> level)
            );
        }
    }
}
