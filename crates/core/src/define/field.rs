//! The finite fields GF(2^w), 1 ≤ w ≤ 32, for building matrices.
//!
//! An element is the low `w` bits of a `u32`; bit `i` is the coefficient of x^i. Addition is XOR;
//! multiplication is carry-less and reduced by the field's polynomial. These functions run while a
//! code is defined, never over data, so they are simple rather than fast: no tables, no state. Only
//! bytes with the usual polynomial have logarithms, because wide codes need tens of thousands of
//! their products. There is one more field, whose elements are written over another basis
//! ([`Field::cantor`]).
//!
//! The default polynomials are the primitive ones of Jerasure and GF-Complete (for w = 8 it is
//! 0x11D, also used by ISA-L, Linux RAID-6 and most others), so the matrices equal theirs.

use crate::define::bitmatrix::BitMatrix;
use crate::define::logarithms::{self, Logarithms};
use crate::error::{Error, Result};

/// Primitive polynomials by width; the entry for `w` includes its x^w term.
const POLYNOMIALS: [u64; 33] = [
    0x0,
    0x3,
    0x7,
    0xB,
    0x13,
    0x25,
    0x43,
    0x89,
    0x11D,
    0x211,
    0x409,
    0x805,
    0x1053,
    0x201B,
    0x4443,
    0x8003,
    0x1100B,
    0x20009,
    0x40081,
    0x80027,
    0x100009,
    0x200005,
    0x400003,
    0x800021,
    0x1000087,
    0x2000009,
    0x4000047,
    0x8000027,
    0x10000009,
    0x20000005,
    0x40800007,
    0x80000009,
    0x100400007,
];

/// A field GF(2^w) with its reduction polynomial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Field {
    width: u32,
    polynomial: u64,
    basis: ElementBasis,
}

/// The basis of the field whose coefficients are the bits of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum ElementBasis {
    /// Powers of x.
    Powers,
    /// Cantor's basis, in bytes.
    Cantor,
}

impl Field {
    /// Returns the field of width `w` with its standard primitive polynomial.
    ///
    /// # Errors
    /// If `w` is not in 1..=32.
    pub fn new(w: u32) -> Result<Self> {
        match POLYNOMIALS.get(w as usize) {
            Some(&polynomial) if w >= 1 => Ok(Self::over(w, polynomial)),
            _ => Err(Error::parameters(format!("w must be from 1 to 32; got {w}"))),
        }
    }

    /// Returns the field of width `w` with a polynomial of degree `w` (bit `w` set), which must be
    /// irreducible.
    ///
    /// # Errors
    /// If `w` is not in 1..=32, or if the polynomial is reducible or of another degree.
    pub fn with_polynomial(w: u32, polynomial: u64) -> Result<Self> {
        Self::new(w)?;
        if polynomial >> w != 1 || !is_irreducible(w, polynomial) {
            return Err(Error::parameters(format!(
                "polynomial {polynomial:#x} is not irreducible of degree {w}"
            )));
        }
        Ok(Self::over(w, polynomial))
    }

    fn over(width: u32, polynomial: u64) -> Self {
        Self { width, polynomial, basis: ElementBasis::Powers }
    }

    /// Returns the field of bytes with the usual polynomial.
    pub(crate) fn bytes() -> Self {
        Self::over(8, POLYNOMIALS[8])
    }

    /// Returns the field of bytes with the usual polynomial whose elements are written over
    /// Cantor's basis, as in Leopard's codes.
    pub(crate) fn cantor() -> Self {
        Self { width: 8, polynomial: POLYNOMIALS[8], basis: ElementBasis::Cantor }
    }

    /// Whether bit i of an element is the coefficient of x^i.
    pub(crate) fn has_powers(self) -> bool {
        self.basis == ElementBasis::Powers
    }

    /// The number of bits of an element.
    pub fn width(self) -> u32 {
        self.width
    }

    /// The reduction polynomial, with its x^w term.
    pub fn polynomial(self) -> u64 {
        self.polynomial
    }

    /// The number of elements, 2^w.
    pub fn size(self) -> u64 {
        1 << self.width
    }

    /// Whether `value` is an element of this field.
    pub fn contains(self, value: u64) -> bool {
        value < self.size()
    }

    /// The product of two elements.
    pub fn multiply(self, a: u32, b: u32) -> u32 {
        if let Some(logarithms) = self.logarithms() {
            return logarithms.product(a as u8, b as u8).into();
        }
        reduce(carryless_product(a, b), self.width, self.polynomial)
    }

    /// `a` to the power `exponent`; anything to the power 0 is 1.
    pub fn power(self, a: u32, exponent: u64) -> u32 {
        power(a, exponent, |x, y| self.multiply(x, y))
    }

    /// The multiplicative inverse, or `None` for 0.
    pub fn inverse(self, a: u32) -> Option<u32> {
        (a != 0).then(|| match self.logarithms() {
            Some(logarithms) => logarithms.quotient(1, a as u8).into(),
            None => self.invert(a),
        })
    }

    /// The logarithms of the elements, if these are bytes with the usual polynomial.
    pub(crate) fn logarithms(self) -> Option<&'static Logarithms> {
        (self.polynomial == POLYNOMIALS[8]).then_some(match self.basis {
            ElementBasis::Powers => &logarithms::USUAL,
            ElementBasis::Cantor => &logarithms::CANTOR,
        })
    }

    /// Returns the inverse of `a`, which is not zero, by Euclid's algorithm for polynomials. Two
    /// equations hold modulo the polynomial until `u` is 1: `a` times `of_u` is `u`, and `a` times
    /// `of_v` is `v`.
    fn invert(self, a: u32) -> u32 {
        let (mut u, mut v) = (u64::from(a), self.polynomial);
        let (mut of_u, mut of_v) = (1_u64, 0_u64);
        while u > 1 {
            if u.ilog2() < v.ilog2() {
                (u, v, of_u, of_v) = (v, u, of_v, of_u);
            }
            let shift = u.ilog2() - v.ilog2();
            u ^= v << shift;
            of_u ^= of_v << shift;
        }
        reduce(of_u, self.width, self.polynomial)
    }

    /// Returns the `w` by `w` bit matrix of "multiply by `a`". Column `c` holds the bits of the
    /// product of `a` and the element that has only bit `c`, which is x^c in the usual basis.
    /// So bit `r` of a product is the XOR of those bits of the other factor for which row `r` has a
    /// one.
    pub fn bit_matrix(self, a: u32) -> BitMatrix {
        let w = self.width as usize;
        let mut matrix = BitMatrix::zero(w, w);
        for (c, column) in self.images(a).enumerate() {
            for r in 0..w {
                matrix.set(r, c, column >> r & 1 == 1);
            }
        }
        matrix
    }

    /// Number of ones of [`Field::bit_matrix`]: the cost of multiplying by `a`.
    pub fn ones(self, a: u32) -> usize {
        self.images(a).map(|image| image.count_ones() as usize).sum()
    }

    /// Returns the products of `a` and each single bit.
    fn images(self, a: u32) -> impl Iterator<Item = u32> {
        let mut power = a;
        (0..self.width).map(move |bit| match self.basis {
            ElementBasis::Powers => {
                let next = self.times_x(power);
                std::mem::replace(&mut power, next)
            }
            ElementBasis::Cantor => self.multiply(a, 1 << bit),
        })
    }

    /// Prepares the multiplication of many words by `factor`.
    pub(crate) fn multiples_of(self, factor: u32) -> Multiples {
        let mut images = [0; 32];
        images.iter_mut().zip(self.images(factor)).for_each(|(place, image)| *place = image);
        Multiples { images, word: self.width as usize / 8 }
    }

    /// Returns `a` times x in the usual basis, computed as one step of a shift register. In the
    /// field of two elements x is 1.
    pub(crate) fn times_x(self, a: u32) -> u32 {
        if self.width == 1 {
            return a;
        }
        let product = u64::from(a) << 1;
        let carry = product >> self.width & 1;
        (product ^ (carry * self.polynomial)) as u32
    }
}

/// Multiplication by a constant: a linear map of a word's bits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Multiples {
    /// The products of the constant and each bit of a word.
    images: [u32; 32],
    /// Number of bytes of a word.
    word: usize,
}

impl Multiples {
    /// The product of the constant and bit `bit` of a word.
    pub(crate) fn image(&self, bit: usize) -> u32 {
        self.images[bit]
    }

    /// The product of the constant and a word.
    pub(crate) fn of(&self, word: u32) -> u32 {
        let (mut product, mut left) = (0, word);
        while left != 0 {
            product ^= self.images[left.trailing_zeros() as usize];
            left &= left - 1;
        }
        product
    }

    /// Multiplies little-endian words of 8, 16 or 32 bits by the constant and adds the products to
    /// `sums`.
    pub(crate) fn add(&self, words: &[u8], sums: &mut [u8]) {
        if self.word == 1 {
            let [low, high] = [0, 4].map(|shift| -> [u8; 16] {
                std::array::from_fn(|half| self.of((half as u32) << shift) as u8)
            });
            for (&word, sum) in words.iter().zip(sums) {
                *sum ^= low[usize::from(word & 15)] ^ high[usize::from(word >> 4)];
            }
            return;
        }
        for (word, sum) in words.chunks_exact(self.word).zip(sums.chunks_exact_mut(self.word)) {
            let mut bytes = [0; 4];
            bytes[..self.word].copy_from_slice(word);
            let product = self.of(u32::from_le_bytes(bytes)).to_le_bytes();
            sum.iter_mut().zip(product).for_each(|(sum, byte)| *sum ^= byte);
        }
    }
}

fn carryless_product(a: u32, mut b: u32) -> u64 {
    let mut sum = 0;
    while b != 0 {
        sum ^= u64::from(a) << b.trailing_zeros();
        b &= b - 1;
    }
    sum
}

fn reduce(mut value: u64, w: u32, polynomial: u64) -> u32 {
    while value >> w != 0 {
        value ^= polynomial << (value.ilog2() - w);
    }
    value as u32
}

fn power(a: u32, mut exponent: u64, multiply: impl Fn(u32, u32) -> u32) -> u32 {
    let (mut result, mut square) = (1, a);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = multiply(result, square);
        }
        square = multiply(square, square);
        exponent >>= 1;
    }
    result
}

/// Ben-Or's test: a polynomial of degree w is irreducible exactly if it shares no factor with
/// x^(2^i) - x for any i from 1 to w/2.
fn is_irreducible(w: u32, polynomial: u64) -> bool {
    let mut frobenius = if w == 1 { reduce(2, 1, polynomial) } else { 2 };
    for _ in 0..w / 2 {
        frobenius = reduce(carryless_product(frobenius, frobenius), w, polynomial);
        if greatest_common_divisor(polynomial, u64::from(frobenius ^ 2)) != 1 {
            return false;
        }
    }
    true
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        let degree = 63 - b.leading_zeros();
        (a, b) = (b, u64::from(reduce(a, degree, b)));
    }
    a
}

/// Returns the number of elements of GF(2^w); the largest number where 2^w does not fit.
pub(crate) fn elements(w: usize) -> usize {
    u32::try_from(w).ok().and_then(|w| 1_usize.checked_shl(w)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prime_factors(mut n: u64) -> Vec<u64> {
        let mut factors = Vec::new();
        let mut d = 2;
        while d * d <= n {
            if n.is_multiple_of(d) {
                factors.push(d);
                while n.is_multiple_of(d) {
                    n /= d;
                }
            }
            d += 1;
        }
        if n > 1 {
            factors.push(n);
        }
        factors
    }

    #[test]
    fn standard_polynomials_are_primitive() {
        for w in 2..=32 {
            let field = Field::new(w).unwrap();
            assert!(is_irreducible(w, field.polynomial()), "w = {w}");
            let order = field.size() - 1;
            assert_eq!(field.power(2, order), 1, "w = {w}");
            for factor in prime_factors(order) {
                assert_ne!(field.power(2, order / factor), 1, "w = {w}");
            }
        }
    }

    #[test]
    fn agrees_with_the_reference() {
        for w in 1..=32 {
            let field = Field::new(w).unwrap();
            let reference = paritas_reference::field::Field::new(w, field.polynomial());
            let mask = field.size() - 1;
            let mut x = 0x9E37_79B9_7F4A_7C15_u64;
            for _ in 0..64 {
                x = x.wrapping_mul(0x2545_F491_4F6C_DD1D).rotate_left(17) ^ 0x1234_5678;
                let (a, b) = (x & mask, (x >> 32) & mask);
                let product = u64::from(field.multiply(a as u32, b as u32));
                assert_eq!(product, reference.mul(a, b), "w = {w}");
                if a != 0 {
                    let inverse = u64::from(field.inverse(a as u32).unwrap());
                    assert_eq!(inverse, reference.inverse(a), "w = {w}");
                }
            }
        }
    }

    #[test]
    fn refuses_polynomials_that_give_no_field() {
        assert!(Field::new(0).is_err());
        assert!(Field::new(33).is_err());
        assert!(Field::with_polynomial(8, 0x11D).is_ok());
        assert!(Field::with_polynomial(8, 0x11B).is_ok(), "AES's polynomial is irreducible");
        assert!(Field::with_polynomial(8, 0x1D).is_err(), "the x^8 term is missing");
        assert!(Field::with_polynomial(8, 0x101).is_err(), "(x + 1)^8");
        assert!(Field::with_polynomial(4, 0x15).is_err(), "(x^2 + x + 1)^2");
    }

    #[test]
    fn bit_matrix_multiplies() {
        let field = Field::new(5).unwrap();
        for a in 0..32 {
            let matrix = field.bit_matrix(a);
            assert_eq!(matrix.ones(), field.ones(a));
            for b in 0..32 {
                let product = (0..5).fold(0, |sum, r| {
                    let bit = (0..5).filter(|&c| matrix.get(r, c) && b >> c & 1 == 1).count() & 1;
                    sum | (bit as u32) << r
                });
                assert_eq!(product, field.multiply(a, b));
            }
        }
    }
}
