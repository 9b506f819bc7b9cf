//! zfec's matrix, over bytes in the word layout.
//!
//! zfec (Zooko Wilcox-O'Hearn; github.com/tahoe-lafs/zfec, `zfec/fec.c`, after Luigi Rizzo's
//! `fec.c` of 1998), which Tahoe-LAFS uses, starts from an n by k matrix V over GF(2^8) with the
//! polynomial 0x11D. Row 0 is 1, 0, 0, …; row r ≥ 1 has 2^((r - 1)·c) in column c. It multiplies V
//! by the inverse of its top square, so the top becomes an identity.
//!
//! V is a Vandermonde matrix: row 0 evaluates a polynomial at 0, row r at 2^(r - 1). So data
//! symbols are the values of a polynomial at the points 0, 1, 2, 4, …, and parity symbols its
//! values at the following powers of two ([`words::interpolation`]). The points are distinct up to
//! 2^254, so the code is MDS for any n ≤ 256.

use crate::define::code::Code;
use crate::define::families::{Family, words};
use crate::define::field::Field;
use crate::error::Result;

pub(super) const FAMILY: Family = Family {
    name: "zfec",
    summary: "the bytes of zfec and Tahoe-LAFS",
    limits: "k >= 1, m >= 1, k + m <= 256; words of 8 bits",
    example: "zfec:k=3,m=5",
    define: |spec| words::read(spec).and_then(|(k, m)| build(k, m)),
    rebuild: |spec, pin| words::read_pinned(spec, pin).and_then(|(k, m)| build(k, m)),
};

fn build(k: usize, m: usize) -> Result<Code> {
    let field = words::field(words::BYTE)?;
    let points = points(field, k + m);
    words::code(FAMILY.name, k, words::interpolation(field, &points[..k], &points[k..]))
}

/// Returns the first `count` points: 0 and the powers of two.
fn points(field: Field, count: usize) -> Vec<u32> {
    let powers = std::iter::successors(Some(1), |&power| Some(field.multiply(power, 2)));
    std::iter::once(0).chain(powers).take(count).collect()
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
            let points = points(matrix.field(), k + m);
            assert_eq!(points[..k.min(4)], [0, 1, 2, 4][..k.min(4)]);
            let (data, parity) = points.split_at(k);
            words::tests::expect_interpolation(matrix.field(), matrix.parity(), data, parity);
        }
    }

    /// Every element of the field is a point, once.
    #[test]
    fn all_256_points_are_different() {
        let mut points = points(words::field(words::BYTE).unwrap(), 256);
        points.sort_unstable();
        assert!(points.into_iter().eq(0..256));
    }

    #[test]
    fn the_pin_and_the_limits_are_checked() {
        let code = Code::new(&"zfec:k=200,m=56".parse().unwrap()).unwrap();
        assert!(Code::rebuild(code.spec(), code.pin()).is_ok());
        assert!(Code::rebuild(code.spec(), &Pin::new()).is_err());
        let error = Code::new(&"zfec:k=201,m=56".parse().unwrap()).unwrap_err().to_string();
        assert!(error.contains("for m = 56 use k from 1 to 200"), "{error}");
    }
}
