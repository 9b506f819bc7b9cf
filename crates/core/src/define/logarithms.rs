//! Logarithms of GF(2^8) with the polynomial 0x11D: products of coefficients by table.
//!
//! The field of the families over bytes is the field of [`Field::new`]`(8)`, whose element 2 has
//! all nonzero elements as powers. Products are sums of logarithms, so a formula of many factors
//! costs one look-up for each.
//!
//! [`Field::new`]: crate::define::field::Field::new

/// Order of the multiplicative group; logarithms are added modulo this.
pub(crate) const ORDER: usize = 255;

/// Powers of 2, for exponents that are sums of up to four logarithms; a mask keeps an exponent in
/// it.
pub(crate) static POWERS: [u8; 1024] = powers();

/// The logarithm of every nonzero element; 0 has none, and its entry is 0.
pub(crate) static LOGARITHMS: [u8; 256] = logarithms();

const fn powers() -> [u8; 1024] {
    let mut powers = [0; 1024];
    let (mut exponent, mut power) = (0, 1_u16);
    while exponent < powers.len() {
        powers[exponent] = power as u8;
        power <<= 1;
        if power > 0xFF {
            power ^= 0x11D;
        }
        exponent += 1;
    }
    powers
}

const fn logarithms() -> [u8; 256] {
    let (powers, mut logarithms) = (powers(), [0; 256]);
    let mut exponent = 0;
    while exponent < ORDER {
        logarithms[powers[exponent] as usize] = exponent as u8;
        exponent += 1;
    }
    logarithms
}

/// Returns the logarithm of an element, which is not 0.
pub(crate) fn log(element: u8) -> usize {
    usize::from(LOGARITHMS[usize::from(element)])
}

/// Returns the element of a logarithm, which may be any number.
pub(crate) fn power(logarithm: usize) -> u8 {
    POWERS[logarithm % ORDER]
}

/// Returns the product of two elements.
pub(crate) fn product(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 { 0 } else { POWERS[log(a) + log(b)] }
}

/// Returns the quotient of two elements; 0 if `b` is 0.
pub(crate) fn quotient(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 { 0 } else { POWERS[log(a) + ORDER - log(b)] }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with products by shifts and additions.
    #[test]
    fn products_are_those_of_the_definition() {
        for a in 0..=255_u8 {
            for b in 0..=255_u8 {
                let (mut right, mut multiple) = (0, u16::from(a));
                for bit in 0..8 {
                    right ^= if b >> bit & 1 == 1 { multiple as u8 } else { 0 };
                    multiple <<= 1;
                    multiple ^= if multiple > 0xFF { 0x11D } else { 0 };
                }
                assert_eq!(product(a, b), right, "{a} {b}");
                assert_eq!(quotient(right, b), if b == 0 { 0 } else { a }, "{a} {b}");
            }
        }
    }
}
