//! Backblaze's Reed-Solomon matrix, over bytes in the word layout.
//!
//! Backblaze's JavaReedSolomon (2015), and after it klauspost/reedsolomon in Go by default, which
//! MinIO and SeaweedFS use, and reed-solomon-erasure in Rust, start from the n by k Vandermonde
//! matrix V with entry r^c in row r, column c, over GF(2^8) with the polynomial 0x11D and 0^0 = 1, and
//! multiply it by the inverse of its top square. The top becomes an identity, and any k rows stay
//! invertible: it is MDS for any n ≤ 256.
//!
//! No matrix has to be inverted to know the result. A row of V times a vector evaluates the
//! polynomial that has the vector as its coefficients at r; so data symbols are the values of a
//! polynomial of degree below k at 0..k, and parity r its value at r. By Lagrange's formula the
//! coefficient of data symbol c in parity r is the product over j ≠ c of (r - j) / (c - j),
//! which the tests compare with the definition.

use crate::define::cells::{Code, Pin};
use crate::define::code::{Family, words};
use crate::define::field::Field;
use crate::define::spec::Spec;
use crate::error::Result;

pub(super) const FAMILY: Family = Family {
    name: "backblaze",
    summary: "the bytes of Backblaze, klauspost/reedsolomon and MinIO",
    limits: "k >= 1, m >= 1, k + m <= 256; words of 8 bits",
    example: "backblaze:k=10,m=4",
    define: |spec| words::read(spec).and_then(|(k, m)| build(k, m)),
    rebuild,
};

fn rebuild(spec: &Spec, pin: &Pin) -> Result<Code> {
    words::check_pin(spec, pin)?;
    words::read(spec).and_then(|(k, m)| build(k, m))
}

fn build(k: usize, m: usize) -> Result<Code> {
    words::code(FAMILY.name, k, coefficients(words::field()?, k, m))
}

fn coefficients(field: Field, k: usize, m: usize) -> Vec<Vec<u32>> {
    let product = |at: u32, skip: usize| {
        let factors = (0..k).filter(|&j| j != skip).map(|j| at ^ j as u32);
        factors.fold(1, |product, factor| field.multiply(product, factor))
    };
    let scale: Vec<u32> =
        (0..k).map(|c| field.inverse(product(c as u32, c)).unwrap_or(0)).collect();
    let row = |r: usize| {
        // All factors; the one that Lagrange's formula leaves out is divided off again.
        let all = product(r as u32, k);
        let without = |c: usize| field.multiply(all, field.inverse((r ^ c) as u32).unwrap_or(0));
        (0..k).map(|c| field.multiply(without(c), scale[c])).collect()
    };
    (k..k + m).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition: the result times the top square of V is the rest of V.
    #[test]
    fn parity_evaluates_the_polynomial_through_the_data() {
        let field = words::field().unwrap();
        for (k, m) in [(1, 1), (1, 4), (2, 3), (5, 3), (10, 4), (17, 3), (40, 40), (200, 56)] {
            for (i, row) in coefficients(field, k, m).iter().enumerate() {
                for exponent in 0..k as u64 {
                    let terms = row.iter().zip(0..).map(|(&coefficient, point)| {
                        field.multiply(coefficient, field.power(point, exponent))
                    });
                    let value = terms.fold(0, |sum, term| sum ^ term);
                    assert_eq!(value, field.power((k + i) as u32, exponent), "{k}+{m}, row {i}");
                }
            }
        }
    }

    #[test]
    fn the_pin_and_the_limits_are_checked() {
        let code = Code::new(&"backblaze:k=200,m=56".parse().unwrap()).unwrap();
        assert!(Code::rebuild(code.spec(), code.pin()).is_ok());
        assert!(Code::rebuild(code.spec(), &Pin::new()).is_err());
        let error = Code::new(&"backblaze:k=201,m=56".parse().unwrap()).unwrap_err().to_string();
        assert!(error.contains("for m = 56 use k from 1 to 200"), "{error}");
    }
}
