//! The two matrices of Intel's ISA-L, over bytes in the word layout.
//!
//! ISA-L (github.com/intel/isa-l, `erasure_code/ec_base.c`) computes parity row i of a code with k
//! data nodes in one of two ways, over GF(2^8) with the polynomial 0x11D:
//!
//! - `gf_gen_cauchy1_matrix`: column j holds 1 / ((k + i) xor j). That is a Cauchy matrix (Blömer
//!   et al. 1995) with data points 0..k and parity points k..n, so every square submatrix is
//!   invertible and any m nodes may be lost. HDFS's RS-6-3 and RS-10-4 and newer Ceph pools use it.
//! - `gf_gen_rs_matrix`: column j holds 2^(i·j), the rows of a Vandermonde matrix beneath an
//!   identity. Such a code is *not* MDS in general. A loss of r data nodes is solved with r of the
//!   rows; if those are not consecutive, the minor is a generalised Vandermonde determinant, which
//!   may vanish.
//!
//! The sizes for which `gf_gen_rs_matrix` is MDS were found by computing every minor (the tests
//! repeat it at the borders of the set). For n ≤ 256 they are:
//!
//! - k ≤ 3, and m ≤ 3: always. With k = 3 the columns are x^0, x^1, x^2 over the distinct points x
//!   = 2^i; with m = 3 the rows are the same over x = 2^j. Every minor of such a matrix is a
//!   Vandermonde determinant, of the points or of their squares, times a monomial.
//! - m = 4 up to k = 21, and k = 4 up to m = 21: the minor of rows 0, 1, 3 and columns a, b, c is a
//!   Vandermonde determinant times 2^a + 2^b + 2^c, and 1 + 2^10 + 2^21 = 0 in this field.
//! - k = 5 up to m = 5: with six rows, those of 0, 2, 5 and columns 0, 3, 4 are dependent.
//!
//! All other sizes are refused, although ISA-L computes them: some m losses would be unrecoverable.
//! A code can be MDS only if the codes with fewer nodes are, so this is the whole set.

use crate::define::code::Code;
use crate::define::families::{Family, words};
use crate::define::field::Field;
use crate::define::spec::Spec;
use crate::error::{Error, Result};

pub(super) const CAUCHY: Family = Family {
    name: "isal-cauchy",
    summary: "the bytes of ISA-L's gf_gen_cauchy1_matrix, as in HDFS and Ceph",
    limits: "k >= 1, m >= 1, k + m <= 256; words of 8 bits",
    example: "isal-cauchy:k=10,m=4",
    define: |spec| words::read(spec).and_then(|(k, m)| cauchy(k, m)),
    rebuild: |spec, pin| words::read_pinned(spec, pin).and_then(|(k, m)| cauchy(k, m)),
};

pub(super) const RS: Family = Family {
    name: "isal-rs",
    summary: "the bytes of ISA-L's gf_gen_rs_matrix, where it survives any m losses",
    limits: "k + m <= 256 and one of: m <= 3; k <= 3; k = 4, m <= 21; k = 5, m <= 5; k <= 21, m = 4; words of 8 bits",
    example: "isal-rs:k=10,m=4",
    define: |spec| words::read(spec).and_then(|(k, m)| vandermonde(spec, k, m)),
    rebuild: |spec, pin| words::read_pinned(spec, pin).and_then(|(k, m)| vandermonde(spec, k, m)),
};

fn cauchy(k: usize, m: usize) -> Result<Code> {
    let field = words::field(words::BYTE)?;
    let entry = |i: usize, j: usize| field.inverse(((k + i) ^ j) as u32).unwrap_or(0);
    let row = |i| (0..k).map(|j| entry(i, j)).collect();
    words::code(CAUCHY.name, k, (0..m).map(row).collect())
}

fn vandermonde(spec: &Spec, k: usize, m: usize) -> Result<Code> {
    let (most_m, most_k) = (most_parity(k), most_data(m));
    if m > most_m {
        return Err(Error::parameters(format!(
            "{spec}: ISA-L's Vandermonde matrix does not survive every loss of {m} nodes there; \
             use m up to {most_m} with k = {k}, k up to {most_k} with m = {m}, or isal-cauchy"
        )));
    }
    words::code(RS.name, k, powers(words::field(words::BYTE)?, k, m))
}

/// Row i, column j: 2^(i·j).
fn powers(field: Field, k: usize, m: usize) -> Vec<Vec<u32>> {
    let row = |i| (0..k).map(|j| field.power(2, (i * j) as u64)).collect();
    (0..m).map(row).collect()
}

/// Returns the largest number of parity nodes m for which k data nodes survive every loss of m
/// nodes.
fn most_parity(k: usize) -> usize {
    match k {
        0..=3 => words::MAX_NODES - k,
        4 => 21,
        5 => 5,
        6..=21 => 4,
        _ => 3,
    }
}

fn most_data(m: usize) -> usize {
    let all = 1..words::MAX_NODES;
    all.rev().find(|&k| most_parity(k) >= m && k + m <= words::MAX_NODES).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::define::erasure::combinations;
    use crate::define::pin::Pin;

    /// Whether elimination finds a square matrix singular.
    fn is_singular(field: Field, mut rows: Vec<Vec<u32>>) -> bool {
        for c in 0..rows.len() {
            let Some(pivot) = (c..rows.len()).find(|&r| rows[r][c] != 0) else { return true };
            rows.swap(c, pivot);
            let inverse = field.inverse(rows[c][c]).unwrap();
            let lead = rows[c].clone();
            for row in &mut rows[c + 1..] {
                let factor = field.multiply(row[c], inverse);
                for (entry, &lead) in row.iter_mut().zip(&lead) {
                    *entry ^= field.multiply(factor, lead);
                }
            }
        }
        false
    }

    /// Whether every square submatrix of the parity rows is invertible.
    fn is_mds(k: usize, m: usize) -> bool {
        let field = words::field(words::BYTE).unwrap();
        let matrix = powers(field, k, m);
        (1..=k.min(m)).all(|size| {
            combinations(m, size).all(|rows| {
                combinations(k, size).all(|columns| {
                    let row = |&r: &usize| columns.iter().map(|&c| matrix[r][c]).collect();
                    !is_singular(field, rows.iter().map(row).collect())
                })
            })
        })
    }

    /// Exhaustive over the largest codes of the set and the codes just beyond it. Codes with fewer
    /// nodes are part of these.
    #[test]
    fn the_safe_set_is_just_what_it_is() {
        for (k, m) in [(4, 21), (5, 5), (21, 4), (40, 3), (3, 40)] {
            assert!(is_mds(k, m), "k = {k}, m = {m}");
            assert!(most_parity(k) >= m);
        }
        for (k, m) in [(4, 22), (5, 6), (6, 5), (22, 4)] {
            assert!(!is_mds(k, m), "k = {k}, m = {m}");
            assert_eq!(most_parity(k), m - 1);
        }
    }

    /// Checks the argument at the top of this file: the points are distinct, and so are their
    /// squares.
    #[test]
    fn three_rows_or_columns_are_always_safe() {
        let field = words::field(words::BYTE).unwrap();
        let distinct = |exponent: u64| {
            let mut powers: Vec<u32> = (0..255).map(|i| field.power(2, i * exponent)).collect();
            powers.sort_unstable();
            powers.dedup();
            powers.len() == 255
        };
        assert!(distinct(1) && distinct(2));
        assert!(!distinct(3), "why a fourth row or column may fail");
    }

    #[test]
    fn refusals_say_what_is_legal() {
        for (spec, part) in [
            ("isal-rs:k=22,m=4", "m up to 3 with k = 22, k up to 21 with m = 4"),
            ("isal-rs:k=4,m=22", "m up to 21 with k = 4, k up to 3 with m = 22"),
            ("isal-rs:k=10,m=6", "m up to 4 with k = 10, k up to 4 with m = 6"),
            ("isal-rs:k=254,m=3", "for m = 3 use k from 1 to 253"),
            ("isal-cauchy:k=200,m=57", "for m = 57 use k from 1 to 199"),
            ("isal-cauchy:k=1,m=1000", "for m = 255 use k from 1 to 1"),
            ("isal-cauchy:k=0,m=4", "at least 1"),
            ("isal-cauchy:k=4", "m is missing"),
            ("isal-cauchy:k=4,m=2,w=8", "no parameter w"),
        ] {
            let error = Code::new(&spec.parse().unwrap()).unwrap_err().to_string();
            assert!(error.contains(part), "{spec}: {error}");
        }
    }

    #[test]
    fn a_pin_must_fit() {
        let spec: Spec = "isal-cauchy:k=4,m=2".parse().unwrap();
        let code = Code::new(&spec).unwrap();
        let again = Code::rebuild(code.spec(), code.pin()).unwrap();
        assert_eq!(again.symbols(), code.symbols());
        for pin in [
            Pin::new(),
            Pin::new().with("polynomial", [0x11B]),
            code.pin().clone().with("points", [1]),
        ] {
            assert!(Code::rebuild(&spec, &pin).is_err(), "{pin:?}");
        }
    }
}
