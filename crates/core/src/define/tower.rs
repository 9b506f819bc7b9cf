//! The field GF(2^16) of long codes: a tower over GF(2^8), its points, and logarithms.
//!
//! All of this is a format. It never changes:
//!
//! - GF(2^8) has the polynomial 0x11D. GF(2^16) = GF(2^8)[t] / (t² + t + 0x20), where 0x20 is the
//!   smallest constant for which that is irreducible. The element a + b·t is the number a + 256·b.
//! - The points are numbered in a basis of Cantor (David G. Cantor, *On arithmetical algorithms
//!   over finite fields*, 1989): v₀ = 1, and v₍ᵢ₊₁₎ is one of the two roots of z² + z = vᵢ. Point n
//!   is the sum of those vᵢ for which bit i of n is set. So point(n) + point(m) is point(n xor m).
//!
//! Such a basis has two properties that long codes rely on. Points below 256 are elements of
//! GF(2^8), so multiplying by them leaves the two bytes of an element apart. And z² + z maps point
//! n to point n / 2, so the polynomial that vanishes on the first 2^i points maps point n to point
//! n / 2^i (rounded down).
//!
//! There are two of them ([`CantorBasis`]). Paritas's own takes the even root each time. Leopard's
//! code over GF(2^16) has another one, in a field with the polynomial 0x1002D. That field is the
//! tower, written differently: the element x of it is the element 0x334 of the tower, which is a
//! root of the polynomial. So Leopard's basis is one of the tower, too. Only its symbols are
//! different: bit i of a symbol is the coefficient of vᵢ.

use crate::define::field::Field;
use crate::define::made::FirstMade;

/// Number of elements of the field.
pub(crate) const ELEMENTS: usize = 1 << 16;

/// Order of the multiplicative group; logarithms are added modulo this.
pub(crate) const ORDER: u32 = ELEMENTS as u32 - 1;

/// The constant of t² + t + 0x20.
const CONSTANT: u32 = 0x20;

/// The smallest element whose powers are all nonzero elements.
const GENERATOR: Element = Element(0x104);

/// The elements v₀ to v₁₅ by which points are numbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum CantorBasis {
    /// That of Paritas's long codes.
    Own,
    /// That of Leopard's code over GF(2^16).
    Leopard,
}

impl CantorBasis {
    /// The elements of the basis.
    pub(crate) fn elements(self) -> [u16; 16] {
        match self {
            Self::Own => [
                0x0001, 0x00D6, 0x0098, 0x0092, 0x0056, 0x00C8, 0x0058, 0x00E6, 0x0176, 0xD6AA,
                0x9846, 0x92FC, 0x5630, 0xC82A, 0x588A, 0xE670,
            ],
            Self::Leopard => [
                0x0001, 0x00D7, 0x004E, 0x000B, 0x0013, 0x00D0, 0x009A, 0x007A, 0x010F, 0xD79A,
                0x4ECA, 0x0BB8, 0x1347, 0xD0E9, 0x9A0D, 0x7A0C,
            ],
        }
    }

    /// Returns point `number` of the field.
    pub(crate) fn point(self, number: usize) -> Element {
        let basis = self.elements();
        let chosen = (0..16).filter(|bit| number >> bit & 1 == 1);
        Element(chosen.fold(0, |sum, bit| sum ^ basis[bit]))
    }

    /// Returns, for each bit of an element, the number of the point that has this bit alone.
    pub(crate) fn numbers(self) -> [u16; 16] {
        // Elimination: each pair is an element and its number.
        let mut pairs: Vec<(u16, u16)> =
            self.elements().into_iter().zip((0..16).map(|n| 1 << n)).collect();
        for bit in 0..16 {
            let pivot = (bit..16).find(|&n| pairs[n].0 >> bit & 1 == 1).unwrap_or(bit);
            pairs.swap(bit, pivot);
            let (element, number) = pairs[bit];
            for (n, pair) in pairs.iter_mut().enumerate() {
                if n != bit && pair.0 >> bit & 1 == 1 {
                    *pair = (pair.0 ^ element, pair.1 ^ number);
                }
            }
        }
        std::array::from_fn(|bit| pairs[bit].1)
    }
}

/// An element a + b·t of GF(2^16): a is the low byte, b the high byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Element(pub(crate) u16);

impl Element {
    pub(crate) const ZERO: Self = Self(0);
    pub(crate) const ONE: Self = Self(1);

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
    (element != Element::ZERO).then(|| u32::from(tables().of[usize::from(element.0)]))
}

/// Returns the element with a logarithm, which may be any number.
pub(crate) fn power(logarithm: u32) -> Element {
    tables().powers[(logarithm % ORDER) as usize]
}

/// All powers of the generator, and the logarithms of all elements.
struct TowerTables {
    powers: Vec<Element>,
    of: Vec<u16>,
}

fn tables() -> &'static TowerTables {
    static TABLES: FirstMade<TowerTables> = FirstMade::new();
    TABLES.get(TowerTables::new)
}

impl TowerTables {
    fn new() -> Self {
        let next = |&last: &Element| Some(last.product(GENERATOR));
        let powers: Vec<Element> =
            std::iter::successors(Some(Element::ONE), next).take(ORDER as usize).collect();
        let mut of = vec![0; ELEMENTS];
        for (logarithm, element) in powers.iter().enumerate() {
            of[usize::from(element.0)] = logarithm as u16;
        }
        Self { powers, of }
    }
}

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
        for basis in [CantorBasis::Own, CantorBasis::Leopard] {
            assert_eq!(basis.elements()[0], 1);
            assert!((0..256).all(|n| basis.point(n).0 < 256));
            for number in (0..ELEMENTS).step_by(37) {
                assert_eq!(square_plus(basis.point(number)), basis.point(number / 2));
                let numbers = basis.numbers().into_iter().enumerate();
                let chosen = numbers.filter(|(bit, _)| basis.point(number).0 >> bit & 1 == 1);
                assert_eq!(chosen.fold(0, |sum, (_, n)| sum ^ usize::from(n)), number);
            }
        }
        assert!(CantorBasis::Own.elements()[1..].iter().all(|element| element % 2 == 0));
    }

    /// Leopard's basis as its sources have it: numbers whose bits are powers of x.
    #[test]
    fn leopards_field_is_the_tower() {
        const WRITTEN: [u32; 16] = [
            0x0001, 0xACCA, 0x3C0E, 0x163E, 0xC582, 0xED2E, 0x914C, 0x4012, 0x6C98, 0x10D8, 0x6A72,
            0xB900, 0xFDB8, 0xFB34, 0xFF38, 0x991E,
        ];
        let x = Element(0x334);
        let of = |bits: u32| {
            let chosen = (0..17).filter(|bit| bits >> bit & 1 == 1);
            chosen.fold(Element::ZERO, |sum, bit| {
                sum.plus((0..bit).fold(Element::ONE, |power, _| power.product(x)))
            })
        };
        assert_eq!(of(0x1002D), Element::ZERO);
        assert_eq!(WRITTEN.map(|bits| of(bits).0), CantorBasis::Leopard.elements());
    }

    #[test]
    fn the_powers_are_all_elements() {
        let mut all: Vec<u16> = tables().powers.iter().map(|element| element.0).collect();
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
