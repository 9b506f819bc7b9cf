//! Backblaze's Reed-Solomon matrix, over bytes in the word layout.
//!
//! The matrix is that of Backblaze's JavaReedSolomon (2015). It is also the default of
//! klauspost/reedsolomon in Go, which MinIO and SeaweedFS use, and that of reed-solomon-erasure in
//! Rust. They start from the n by k Vandermonde matrix V with entry r^c in row r, column c, over
//! GF(2^8) with the polynomial 0x11D and 0^0 = 1, and multiply it by the inverse of its top square.
//! The top becomes an identity, and any k rows stay invertible: the code is MDS for any n ≤ 256.
//!
//! The result follows without inverting a matrix. Row r of V times a vector is the value at r of
//! the polynomial whose coefficients are the vector. So data symbols are the values at 0..k of a
//! polynomial of degree below k, and the parity symbol of row r is its value at r
//! ([`words::interpolation`]).

use std::ops::Range;

use crate::define::code::Code;
use crate::define::evaluation::Evaluation;
use crate::define::families::{Family, words};
use crate::define::spec::Spec;
use crate::define::symbols::SymbolMatrix;
use crate::error::Result;

pub(super) const FAMILY: Family = Family {
    name: "backblaze",
    summary: "the bytes of Backblaze, klauspost/reedsolomon and MinIO; the default where k·m >= 300, m >= 2 and k + m <= 256",
    limits: "k >= 1, m >= 1, k + m <= 256; words of 8 bits",
    example: "backblaze:k=10,m=4",
    define: |spec| words::read(spec).and_then(|(k, m)| build(k, m)),
    rebuild: |spec, pin| words::read_pinned(spec, pin).and_then(|(k, m)| build(k, m)),
};

fn build(k: usize, m: usize) -> Result<Code> {
    let rows = words::interpolation(words::field(words::BYTE)?, &points(0..k), &points(k..k + m));
    let matrix = SymbolMatrix::new(words::field(words::BYTE)?, k, rows)?;
    let evaluation = Evaluation::data_first(k, m);
    words::code_of(matrix.evaluated(evaluation), Spec::new(FAMILY.name).with("k", k).with("m", m))
}

fn points(numbers: Range<usize>) -> Vec<u32> {
    numbers.map(|number| number as u32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::define::pin::Pin;

    #[test]
    fn parity_evaluates_the_polynomial_through_the_data() {
        for (k, m) in [(1, 1), (1, 4), (2, 3), (5, 3), (10, 4), (17, 3), (40, 40), (200, 56)] {
            let code = build(k, m).unwrap();
            let matrix = code.symbols().unwrap();
            words::tests::expect_interpolation(
                matrix.field(),
                matrix.parity(),
                &points(0..k),
                &points(k..k + m),
            );
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
