//! The field GF(2^16) of long codes: a tower over GF(2^8), its points, and logarithms.
//!
//! All of this is a format. It never changes:
//!
//! - GF(2^8) has the polynomial 0x11D. GF(2^16) = GF(2^8)[t] / (t² + t + 0x20), where 0x20 is the
//!   smallest constant for which that is irreducible. The element a + b·t is the number a + 256·b.
//! - The points are numbered in Cantor's basis (David G. Cantor, *On arithmetical algorithms over
//!   finite fields*, 1989): v₀ = 1, and v₍ᵢ₊₁₎ is the even one of the two roots of z² + z = vᵢ.
//!   Point n is the sum of those vᵢ for which bit i of n is set. So point(n) + point(m) is point(n
//!   xor m).
//!
//! The basis has two properties that long codes rely on. Points below 256 are elements of GF(2^8),
//! so multiplying by them leaves the two bytes of an element apart. And z² + z maps point n to
//! point n / 2, so the polynomial that vanishes on the first 2^i points maps point n to point
//! n / 2^i (rounded down).

use std::sync::LazyLock;

use crate::define::field::Field;

/// Number of elements of the field.
pub(crate) const ELEMENTS: usize = 1 << 16;

/// Order of the multiplicative group; logarithms are added modulo this.
pub(crate) const ORDER: u32 = ELEMENTS as u32 - 1;

/// The constant of t² + t + 0x20.
const CONSTANT: u32 = 0x20;

/// The smallest element whose powers are all nonzero elements.
const GENERATOR: Element = Element(0x104);

/// Cantor's basis, v₀ to v₁₅.
const BASIS: [u16; 16] = [
    0x0001, 0x00D6, 0x0098, 0x0092, 0x0056, 0x00C8, 0x0058, 0x00E6, 0x0176, 0xD6AA, 0x9846, 0x92FC,
    0x5630, 0xC82A, 0x588A, 0xE670,
];

/// An element a + b·t of GF(2^16): a is the low byte, b the high byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Element(pub(crate) u16);

impl Element {
    pub(crate) const ZERO: Self = Self(0);
    pub(crate) const ONE: Self = Self(1);

    /// Returns point `number` of the field.
    pub(crate) fn point(number: usize) -> Self {
        let chosen = (0..16).filter(|bit| number >> bit & 1 == 1);
        Self(chosen.fold(0, |sum, bit| sum ^ BASIS[bit]))
    }

    /// Returns the bytes a and b.
    pub(crate) fn bytes(self) -> [u8; 2] {
        self.0.to_le_bytes()
    }

    /// Returns the product, computed from the definition.
    fn product(self, other: Self) -> Self {
        let field = base();
        let ([a, b], [c, d]) = (self.bytes().map(u32::from), other.bytes().map(u32::from));
        let high = field.multiply(b, d);
        let low = field.multiply(a, c) ^ field.multiply(CONSTANT, high);
        let high = high ^ field.multiply(a, d) ^ field.multiply(b, c);
        Self((low | high << 8) as u16)
    }

    /// The sum of two elements.
    #[cfg(test)]
    pub(crate) fn plus(self, other: Self) -> Self {
        Self(self.0 ^ other.0)
    }

    /// The product of two elements.
    #[cfg(test)]
    pub(crate) fn times(self, other: Self) -> Self {
        match (logarithm(self), logarithm(other)) {
            (Some(a), Some(b)) => power(a + b),
            _ => Self::ZERO,
        }
    }

    /// The quotient of an element and a nonzero element; 0 if `other` is 0.
    pub(crate) fn over(self, other: Self) -> Self {
        match (logarithm(self), logarithm(other)) {
            (Some(a), Some(b)) => power(a + ORDER - b),
            _ => Self::ZERO,
        }
    }

    /// Returns the three elements of GF(2^8) by which multiplying with this element is done: for
    /// a + b·t they are a, 0x20·b and a + b. With them, (a + b·t) (c + d·t) has the low byte
    /// a·c + 0x20·b·d and the high byte (a + b) (c + d) + a·c.
    pub(crate) fn factors(self) -> [u8; 3] {
        let [a, b] = self.bytes();
        [a, base().multiply(CONSTANT, b.into()) as u8, a ^ b]
    }
}

/// The field GF(2^8) that the tower stands on.
pub(crate) fn base() -> Field {
    Field::new(8).expect("8 is a width")
}

/// Returns the logarithm of an element to the base of the generator; 0 has none.
pub(crate) fn logarithm(element: Element) -> Option<u32> {
    (element != Element::ZERO).then(|| u32::from(LOGARITHMS.of[usize::from(element.0)]))
}

/// Returns the element with a logarithm, which may be any number.
pub(crate) fn power(logarithm: u32) -> Element {
    LOGARITHMS.powers[(logarithm % ORDER) as usize]
}

/// All powers of the generator, and the logarithms of all elements.
struct Logarithms {
    powers: Vec<Element>,
    of: Vec<u16>,
}

static LOGARITHMS: LazyLock<Logarithms> = LazyLock::new(|| {
    let next = |&last: &Element| Some(last.product(GENERATOR));
    let powers: Vec<Element> =
        std::iter::successors(Some(Element::ONE), next).take(ORDER as usize).collect();
    let mut of = vec![0; ELEMENTS];
    for (logarithm, element) in powers.iter().enumerate() {
        of[usize::from(element.0)] = logarithm as u16;
    }
    Logarithms { powers, of }
});

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the constants against what the essay says of them.
    #[test]
    fn the_field_is_as_described() {
        let square_plus = |z: Element| z.product(z).plus(z);
        let field = base();
        let reducible = |c: u32| (0..256).any(|z| field.multiply(z, z) ^ z == c);
        assert!((0..CONSTANT).all(reducible) && !reducible(CONSTANT));
        assert_eq!(BASIS[0], 1);
        for pair in BASIS.windows(2) {
            assert_eq!(square_plus(Element(pair[1])), Element(pair[0]));
            assert_eq!(pair[1] % 2, 0);
        }
        assert!((0..256).all(|n| Element::point(n).0 < 256));
        for number in (0..ELEMENTS).step_by(37) {
            assert_eq!(square_plus(Element::point(number)), Element::point(number / 2));
        }
    }

    #[test]
    fn the_powers_are_all_elements() {
        let mut all: Vec<u16> = LOGARITHMS.powers.iter().map(|element| element.0).collect();
        all.sort_unstable();
        assert!(all.iter().copied().eq(1..=u16::MAX));
        assert_eq!(power(ORDER), Element::ONE);
    }

    #[test]
    fn products_are_those_of_the_definition() {
        for a in (0..ELEMENTS).step_by(911) {
            for b in (0..ELEMENTS).step_by(773) {
                let (a, b) = (Element(a as u16), Element(b as u16));
                let product = a.product(b);
                assert_eq!(a.times(b), product);
                if b != Element::ZERO {
                    assert_eq!(product.over(b), a);
                }
                let field = base();
                let multiply = |a: u8, b: u8| field.multiply(a.into(), b.into()) as u8;
                let ([c, d], [low, cross, sum]) = (b.bytes(), a.factors());
                let first = multiply(low, c);
                let bytes = [first ^ multiply(cross, d), first ^ multiply(sum, c ^ d)];
                assert_eq!(product.bytes(), bytes);
            }
        }
        assert_eq!(Element(7).over(Element::ZERO), Element::ZERO);
    }
}
