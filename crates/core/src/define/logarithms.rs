//! Logarithms of GF(2^8) with the polynomial 0x11D: products of coefficients by table.
//!
//! The field of the families over bytes is the field of [`Field::new`]`(8)`, whose element x has
//! all nonzero elements as powers. Products are sums of logarithms, so a formula of many factors
//! costs one look-up for each.
//!
//! A byte stands for an element in one of two ways: bit i is the coefficient of x^i ([`USUAL`]), or
//! that of element i of Cantor's basis ([`CANTOR`]), as Leopard's codes have it. Sums are XORs in
//! both.
//!
//! [`Field::new`]: crate::define::field::Field::new

/// Order of the multiplicative group; logarithms are added modulo this.
pub(crate) const ORDER: usize = 255;

/// Number of exponents that have an entry in the table of powers: sums of up to four logarithms.
const EXPONENTS: usize = 1024;

/// Cantor's basis (David G. Cantor, *On arithmetical algorithms over finite fields*, 1989): the
/// first is 1, and each is a root of z² + z = the one before.
const BASIS: [u8; 8] = [0x01, 0xD6, 0x98, 0x92, 0x56, 0xC8, 0x58, 0xE6];

/// The powers and the logarithms of all elements, for bytes that stand for them in one way.
#[derive(Debug)]
pub(crate) struct Logarithms {
    powers: [u8; EXPONENTS],
    of: [u8; 256],
}

/// Bit i of a byte is the coefficient of x^i.
pub(crate) static USUAL: Logarithms = Logarithms::new([1, 2, 4, 8, 16, 32, 64, 128]);

/// Bit i of a byte is the coefficient of element i of Cantor's basis.
pub(crate) static CANTOR: Logarithms = Logarithms::new(BASIS);

impl Logarithms {
    /// Returns the tables for bytes whose bits are coefficients of these elements.
    const fn new(basis: [u8; 8]) -> Self {
        let elements = elements(basis);
        let (mut logarithm, mut power, mut exponent) = ([0; 256], 1_u16, 0);
        while exponent < ORDER {
            logarithm[power as usize] = exponent as u8;
            power <<= 1;
            if power > 0xFF {
                power ^= 0x11D;
            }
            exponent += 1;
        }
        let (mut powers, mut of, mut byte) = ([0; EXPONENTS], [0; 256], 1);
        while byte < 256 {
            of[byte] = logarithm[elements[byte] as usize];
            let mut exponent = of[byte] as usize;
            while exponent < EXPONENTS {
                powers[exponent] = byte as u8;
                exponent += ORDER;
            }
            byte += 1;
        }
        Self { powers, of }
    }

    /// Returns the logarithm of a nonzero element. 0 has no logarithm; for it, returns 0.
    pub(crate) fn log(&self, element: u8) -> usize {
        usize::from(self.of[usize::from(element)])
    }

    /// Returns the element with a logarithm, which may be any number.
    pub(crate) fn power(&self, logarithm: usize) -> u8 {
        self.powers[logarithm % ORDER]
    }

    /// Returns the element with a logarithm below 1024; higher bits are ignored.
    pub(crate) fn low_power(&self, logarithm: usize) -> u8 {
        self.powers[logarithm & (EXPONENTS - 1)]
    }

    /// Returns the product of two elements.
    pub(crate) fn product(&self, a: u8, b: u8) -> u8 {
        if a == 0 || b == 0 { 0 } else { self.powers[self.log(a) + self.log(b)] }
    }

    /// Returns the quotient of two elements; 0 if `b` is 0.
    pub(crate) fn quotient(&self, a: u8, b: u8) -> u8 {
        if a == 0 || b == 0 { 0 } else { self.powers[self.log(a) + ORDER - self.log(b)] }
    }
}

/// Returns the element that each byte stands for, as coefficients of powers of x.
const fn elements(basis: [u8; 8]) -> [u8; 256] {
    let (mut elements, mut byte) = ([0; 256], 0);
    while byte < 256 {
        let mut bit = 0;
        while bit < 8 {
            if byte >> bit & 1 == 1 {
                elements[byte] ^= basis[bit];
            }
            bit += 1;
        }
        byte += 1;
    }
    elements
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The product of two polynomials by shifts and additions.
    fn product(a: u8, b: u8) -> u8 {
        let (mut right, mut multiple) = (0, u16::from(a));
        for bit in 0..8 {
            right ^= if b >> bit & 1 == 1 { multiple as u8 } else { 0 };
            multiple <<= 1;
            multiple ^= if multiple > 0xFF { 0x11D } else { 0 };
        }
        right
    }

    #[test]
    fn products_are_those_of_the_definition() {
        let cantor = elements(BASIS);
        for a in 0..=255_u8 {
            for b in 0..=255_u8 {
                let right = product(a, b);
                assert_eq!(USUAL.product(a, b), right, "{a} {b}");
                assert_eq!(USUAL.quotient(right, b), if b == 0 { 0 } else { a }, "{a} {b}");
                let element = |byte: u8| cantor[usize::from(byte)];
                let made = CANTOR.product(a, b);
                assert_eq!(element(made), product(element(a), element(b)), "{a} {b}");
                assert_eq!(CANTOR.quotient(made, b), if b == 0 { 0 } else { a }, "{a} {b}");
            }
        }
    }

    #[test]
    fn cantors_basis_is_one() {
        assert_eq!(BASIS[0], 1);
        for pair in BASIS.windows(2) {
            assert_eq!(product(pair[1], pair[1]) ^ pair[1], pair[0]);
        }
    }
}
