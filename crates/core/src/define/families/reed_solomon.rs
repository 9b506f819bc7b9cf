//! Jerasure's Reed-Solomon matrix, in the word layout with words of 8, 16 or 32 bits.
//!
//! Jerasure (J. S. Plank and K. M. Greenan, *Jerasure: a library in C facilitating erasure coding
//! for storage applications*, version 2.0, 2014; `reed_sol.c`), Ceph's default for years under the
//! name `reed_sol_van`, builds the matrix of J. S. Plank and Y. Ding, *Note: correction to the 1997
//! tutorial on Reed-Solomon coding* (2005), in four steps:
//!
//! 1. An n by k extended Vandermonde matrix: row r < n - 1 evaluates a polynomial of degree below k
//!    at r, and the last row takes its leading coefficient, its value "at infinity".
//! 2. Column operations make the top square an identity. No rows have to be exchanged for it, since
//!    the top squares of a Vandermonde matrix are invertible.
//! 3. Every column is divided by its entry in the first parity row, which becomes all ones.
//! 4. Every other parity row is divided by its first entry.
//!
//! The result has a closed form. After step 2, data symbols are values of a polynomial at 0..k. By
//! Lagrange's formula the coefficient of data symbol c in parity row r is A(r) · s_c / (r - c),
//! where A(r) is the product of all r - j, and s_c the inverse of the product of all c - j with j ≠
//! c. In the row at infinity it is s_c alone. Step 3 divides by A(k) · s_c / (k - c); step 4
//! removes the factors that do not depend on c. Since r - c = r xor c, the result is
//!
//! - ones in the first parity row,
//! - (k xor c) · r / ((r xor c) · k) in the row of r, for k < r < n - 1,
//! - (k xor c) / k in the last row, if it is not the first.
//!
//! Scaling rows and columns by nonzero factors keeps minors nonzero: the code is MDS for any n ≤
//! 2^w, the library's own limit. The tests compare the closed form with the four steps.

use crate::define::code::Code;
use crate::define::families::{Family, words};
use crate::define::field::{Field, elements};
use crate::define::pin::Pin;
use crate::define::spec::Spec;
use crate::define::symbols::{WORD_WIDTHS, expect_size};
use crate::error::{Error, Result};

pub(super) const FAMILY: Family = Family {
    name: "reed-solomon",
    summary: "the bytes of Jerasure's reed_sol_van, as in Ceph",
    limits: "k >= 1, m >= 1, k + m <= 2^w; words of w = 8, 16 or 32 bits, by default the smallest",
    example: "reed-solomon:k=10,m=4,w=16",
    define: |spec| RsShape::read(spec)?.code(),
    rebuild,
};

struct RsShape {
    k: usize,
    m: usize,
    w: usize,
}

fn rebuild(spec: &Spec, pin: &Pin) -> Result<Code> {
    let shape = RsShape::read(spec)?;
    words::check_pin(spec, pin, shape.w)?;
    shape.code()
}

impl RsShape {
    fn read(spec: &Spec) -> Result<Self> {
        spec.allow(&["k", "m", "w"])?;
        let (k, m) = (spec.required("k")?, spec.required("m")?);
        let fits = |&w: &usize| k.saturating_add(m) <= elements(w);
        let smallest = WORD_WIDTHS.into_iter().find(fits).unwrap_or(WORD_WIDTHS[2]);
        let w = spec.number("w")?.unwrap_or(smallest);
        if !WORD_WIDTHS.contains(&w) {
            return Err(Error::parameters(format!(
                "{spec}: w must be 8, 16 or 32 in words; got {w}; for k = {k} and m = {m} use w = {smallest}"
            )));
        }
        words::check_nodes(spec, k, m, w)?;
        expect_size(k, m, w)?;
        Ok(Self { k, m, w })
    }

    fn code(&self) -> Result<Code> {
        let &Self { k, m, w } = self;
        let field = words::field(w)?;
        let spec = Spec::new(FAMILY.name).with("k", k).with("m", m).with("w", w);
        words::code_over(field, spec, k, coefficients(field, k, m))
    }
}

fn coefficients(field: Field, k: usize, m: usize) -> Vec<Vec<u32>> {
    let inverse = |value: usize| field.inverse(value as u32).unwrap_or(0);
    let numerator = |c: usize| field.multiply((k ^ c) as u32, inverse(k));
    let row = |r: usize| {
        let finite = |c: usize| field.multiply(r as u32, inverse(r ^ c));
        let factor = |c: usize| if r == k + m - 1 { 1 } else { finite(c) };
        (0..k).map(|c| field.multiply(numerator(c), factor(c))).collect()
    };
    std::iter::once(vec![1; k]).chain((k + 1..k + m).map(row)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(spec: &str) -> Result<Code> {
        Code::new(&spec.parse()?)
    }

    /// The four steps listed at the top of this file, one after the other.
    fn by_steps(field: Field, k: usize, m: usize) -> Vec<Vec<u32>> {
        let (last, n) = (k + m - 1, k + m);
        let power = |r: usize, c: usize| match r == last {
            true => u32::from(c == k - 1),
            false => field.power(r as u32, c as u64),
        };
        let mut rows: Vec<Vec<u32>> =
            (0..n).map(|r| (0..k).map(|c| power(r, c)).collect()).collect();
        let divide = |a: u32, b: u32| field.multiply(a, field.inverse(b).unwrap());
        for i in 0..k {
            let pivot = rows[i][i];
            rows.iter_mut().for_each(|row| row[i] = divide(row[i], pivot));
            for c in (0..k).filter(|&c| c != i) {
                let factor = rows[i][c];
                rows.iter_mut().for_each(|row| row[c] ^= field.multiply(factor, row[i]));
            }
        }
        let mut parity = rows.split_off(k);
        let first = parity[0].clone();
        for row in &mut parity {
            row.iter_mut().zip(&first).for_each(|(entry, &by)| *entry = divide(*entry, by));
            let by = row[0];
            row.iter_mut().for_each(|entry| *entry = divide(*entry, by));
        }
        parity
    }

    #[test]
    fn the_closed_form_is_what_the_steps_give() {
        for w in WORD_WIDTHS {
            let field = words::field(w).unwrap();
            for (k, m) in [(1, 1), (1, 4), (2, 2), (3, 1), (5, 3), (10, 4), (17, 3), (4, 12)] {
                assert_eq!(coefficients(field, k, m), by_steps(field, k, m), "{k}+{m}, w = {w}");
            }
        }
        let field = words::field(8).unwrap();
        for (k, m) in [(200, 56), (56, 200), (255, 1), (1, 255)] {
            assert_eq!(coefficients(field, k, m), by_steps(field, k, m), "{k}+{m}");
        }
    }

    #[test]
    fn specs_are_completed() {
        for (given, canonical) in [
            ("reed-solomon:k=10,m=4", "reed-solomon:k=10,m=4,w=8"),
            ("reed-solomon:k=255,m=2", "reed-solomon:k=255,m=2,w=16"),
            ("reed-solomon:k=3,w=32,m=2", "reed-solomon:k=3,m=2,w=32"),
        ] {
            let code = code(given).unwrap();
            assert_eq!(code.spec().to_string(), canonical);
            let again = Code::rebuild(code.spec(), code.pin()).unwrap();
            assert_eq!((again.spec(), again.symbols()), (code.spec(), code.symbols()));
        }
    }

    #[test]
    fn refusals_say_what_is_legal() {
        for (spec, part) in [
            ("reed-solomon:k=255,m=2,w=8", "for m = 2 use k from 1 to 254"),
            (
                "reed-solomon:k=4,m=2,w=4",
                "w must be 8, 16 or 32 in words; got 4; for k = 4 and m = 2 use w = 8",
            ),
            ("reed-solomon:k=300,m=2,w=64", "use w = 16"),
            ("reed-solomon:k=0,m=2", "at least 1"),
            ("reed-solomon:k=4", "m is missing"),
            ("reed-solomon:k=60000,m=60000", "more than"),
        ] {
            let error = code(spec).unwrap_err().to_string();
            assert!(error.contains(part), "{spec}: {error}");
        }
        let spec = "reed-solomon:k=4,m=2,w=16".parse().unwrap();
        assert!(Code::rebuild(&spec, &Pin::new().with("polynomial", [0x11D])).is_err());
    }
}
