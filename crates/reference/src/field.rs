//! Arithmetic in GF(2^w), by shift and reduce.
//!
//! An element is a polynomial over GF(2) of degree below `w`, stored with the coefficient of x^i in
//! bit i. Sums are XORs. A product is the product of the polynomials, modulo a fixed irreducible
//! polynomial of degree `w`. Logarithm tables and carry-less multiply instructions compute the same
//! function faster; here it is computed as on paper.

/// The field GF(2^w) defined by one irreducible polynomial.
///
/// Elements are the integers below 2^w. Every method panics if an operand is not an element.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    w: u32,
    polynomial: u64,
}

impl Field {
    /// Returns the field of 2^`w` elements modulo `polynomial`.
    ///
    /// `polynomial` includes the term x^w: `0x13` is x^4 + x + 1, for `w` = 4. It must be
    /// irreducible. This is not checked here, but [`Field::inverse`] panics for an element without
    /// an inverse.
    ///
    /// # Panics
    ///
    /// If `w` is not 1 to 32, or if `polynomial` does not have degree `w`.
    pub fn new(w: u32, polynomial: u64) -> Field {
        assert!((1..=32).contains(&w), "w is {w}; it must be 1 to 32");
        assert!(polynomial >> w == 1, "polynomial {polynomial:#x} does not have degree {w}");
        Field { w, polynomial }
    }

    /// Number of bits of a symbol.
    pub fn w(&self) -> u32 {
        self.w
    }

    /// The defining polynomial, with its term x^w.
    pub fn polynomial(&self) -> u64 {
        self.polynomial
    }

    /// `a` + `b`, which is also `a` - `b`: the characteristic is 2.
    pub fn add(&self, a: u64, b: u64) -> u64 {
        self.check(a);
        self.check(b);
        a ^ b
    }

    /// `a` times `b`.
    pub fn mul(&self, a: u64, b: u64) -> u64 {
        self.check(a);
        self.check(b);
        let mut product = 0;
        for i in 0..self.w {
            if (b >> i) & 1 == 1 {
                product ^= a << i;
            }
        }
        self.reduce(product)
    }

    /// `a` to the power `exponent`; the empty product, 1, for the power 0.
    pub fn pow(&self, a: u64, exponent: u64) -> u64 {
        self.check(a);
        let (mut result, mut square, mut left) = (1, a, exponent);
        while left > 0 {
            if left & 1 == 1 {
                result = self.mul(result, square);
            }
            square = self.mul(square, square);
            left >>= 1;
        }
        result
    }

    /// Returns the element that gives 1 when multiplied by `a`.
    ///
    /// The 2^w - 1 elements other than 0 form a group, so a^(2^w - 1) = 1 and a^(2^w - 2) is the
    /// inverse.
    ///
    /// # Panics
    ///
    /// If `a` is 0, or if `a` has no inverse because the polynomial is not irreducible.
    pub fn inverse(&self, a: u64) -> u64 {
        assert!(a != 0, "0 has no inverse");
        let inverse = self.pow(a, (1 << self.w) - 2);
        assert!(self.mul(a, inverse) == 1, "polynomial {:#x} is not irreducible", self.polynomial);
        inverse
    }

    /// Returns `product`, of degree at most 2w - 2, modulo the polynomial.
    fn reduce(&self, mut product: u64) -> u64 {
        for degree in (self.w..=2 * self.w - 2).rev() {
            if (product >> degree) & 1 == 1 {
                product ^= self.polynomial << (degree - self.w);
            }
        }
        product
    }

    fn check(&self, a: u64) {
        assert!(a >> self.w == 0, "{a:#x} has more than {} bits", self.w);
    }
}

#[cfg(test)]
mod tests {
    use super::Field;

    /// The field axioms and the product `x * x^(w-1)`, which the polynomial fixes, allow only one
    /// multiplication.
    #[test]
    fn small_fields_obey_the_axioms() {
        for (w, polynomial) in [(1, 0b11), (2, 0b111), (3, 0b1011), (4, 0x13), (4, 0x1F)] {
            let f = Field::new(w, polynomial);
            let elements = 0..1 << w;
            for a in elements.clone() {
                assert_eq!(f.mul(a, 1), a);
                assert_eq!(f.add(a, a), 0);
                for b in elements.clone() {
                    assert_eq!(f.mul(a, b), f.mul(b, a));
                    assert_eq!(f.mul(a, b) == 0, a == 0 || b == 0);
                    for c in elements.clone() {
                        assert_eq!(f.mul(f.mul(a, b), c), f.mul(a, f.mul(b, c)));
                        assert_eq!(f.mul(a, f.add(b, c)), f.add(f.mul(a, b), f.mul(a, c)));
                    }
                }
            }
            for a in 1..1 << w {
                assert_eq!(f.mul(a, f.inverse(a)), 1);
            }
        }
    }

    /// Doubling the top bit must leave the polynomial without its leading term.
    #[test]
    fn doubling_wraps_into_the_polynomial() {
        for (w, polynomial) in
            [(2, 0b111), (4, 0x13), (8, 0x11D), (16, 0x1100B), (32, 0x1_0040_0007)]
        {
            let top = 1 << (w - 1);
            let expected = polynomial & ((1 << w) - 1);
            assert_eq!(Field::new(w, polynomial).mul(2, top), expected);
        }
    }

    /// Powers of x computed by hand: double, and XOR the polynomial when bit w appears.
    #[test]
    fn powers_of_x_by_hand() {
        let gf16 = Field::new(4, 0x13);
        let powers = [1, 2, 4, 8, 3, 6, 12, 11, 5, 10, 7, 14, 15, 13, 9, 1];
        for (exponent, power) in (0..).zip(powers) {
            assert_eq!(gf16.pow(2, exponent), power);
        }
        let gf256 = Field::new(8, 0x11D);
        let powers = [0x1D, 0x3A, 0x74, 0xE8, 0xCD, 0x87, 0x13, 0x26, 0x4C, 0x98];
        for (exponent, power) in (8..).zip(powers) {
            assert_eq!(gf256.pow(2, exponent), power);
        }
    }

    /// x^8 * (x^2 + 1) = 0x1D * 5 = 0x1D ^ 0x74, with no reduction: 0x69. And 0x80 * 0x80 =
    /// x^14 = 0x13.
    #[test]
    fn known_products_for_0x11d() {
        let f = Field::new(8, 0x11D);
        assert_eq!(f.mul(2, 0x80), 0x1D);
        assert_eq!(f.mul(0x1D, 5), 0x69);
        assert_eq!(f.mul(0x80, 0x80), 0x13);
        assert_eq!(f.mul(0, 0xFF), 0);
    }

    /// The two worked examples of FIPS 197, the AES standard.
    #[test]
    fn products_that_the_aes_standard_works() {
        let f = Field::new(8, 0x11B);
        assert_eq!(f.mul(0x57, 0x83), 0xC1);
        assert_eq!(f.mul(0x57, 0x13), 0xFE);
    }

    #[test]
    fn inverses() {
        let f = Field::new(8, 0x11D);
        assert!((1..256).all(|a| f.mul(a, f.inverse(a)) == 1));
        let f = Field::new(16, 0x1100B);
        assert!((1..1 << 16).step_by(97).all(|a| f.mul(a, f.inverse(a)) == 1));
        let f = Field::new(32, 0x1_0040_0007);
        let samples = (1..1 << 32).step_by(4_294_967 * 3);
        assert!(samples.into_iter().all(|a| f.mul(a, f.inverse(a)) == 1));
    }

    #[test]
    #[should_panic(expected = "0 has no inverse")]
    fn zero_has_no_inverse() {
        Field::new(8, 0x11D).inverse(0);
    }

    /// x^2 + 1 = (x + 1)^2, so x + 1 has no inverse modulo it.
    #[test]
    #[should_panic(expected = "not irreducible")]
    fn a_reducible_polynomial_is_found_out() {
        Field::new(2, 0b101).inverse(0b11);
    }

    #[test]
    #[should_panic(expected = "does not have degree 4")]
    fn the_leading_term_is_required() {
        Field::new(4, 0x3);
    }

    #[test]
    #[should_panic(expected = "more than 4 bits")]
    fn operands_must_be_elements() {
        Field::new(4, 0x13).mul(0x10, 1);
    }
}
