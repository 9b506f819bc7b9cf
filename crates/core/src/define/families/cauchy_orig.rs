//! Cauchy Reed-Solomon with Jerasure's first matrix, `cauchy_orig`.
//!
//! Plank, Simmerman and Schuman, *Jerasure: a library in C/C++ facilitating erasure coding for
//! storage applications* (2008), `cauchy_original_coding_matrix`. Entry (i, j) is 1 / (i xor
//! (m + j)): a Cauchy matrix (Blömer et al. 1995) with parity points 0 to m - 1 and data points m
//! to m + k - 1, without scaling. It is dense; `cauchy-good` and `cauchy` have fewer ones. It is
//! here so that data stored by other software can be read.

use crate::define::builder::CodeBuilder;
use crate::define::code::Code;
use crate::define::families::cauchy::{CauchyShape, FamilyLimits};
use crate::define::families::{Family, rebuild_fixed};
use crate::define::field::{Field, elements};
use crate::define::pin::Pin;
use crate::define::spec::Spec;
use crate::define::symbols::SymbolMatrix;
use crate::error::Result;

pub(super) const FAMILY: Family = Family {
    name: "cauchy-orig",
    summary: "Cauchy Reed-Solomon as it stands, as Jerasure's cauchy_orig",
    limits: "k >= 1, m >= 1, k + m <= 2^w, w <= 32 (default: the smallest that fits)",
    example: "cauchy-orig:k=10,m=4",
    define,
    rebuild: |spec, pin| rebuild_fixed(spec, pin, define),
};

const LIMITS: FamilyLimits =
    FamilyLimits { keys: &["k", "m", "w"], widest: 32, most_nodes: |_, w| elements(w) };

fn define(spec: &Spec) -> Result<Code> {
    let shape = LIMITS.read(spec)?;
    let field = Field::new(shape.w as u32)?;
    code(FAMILY.name, &shape, field, matrix(&shape, field))
}

/// Returns the coefficients, one row for each parity node.
pub(super) fn matrix(shape: &CauchyShape, field: Field) -> Vec<Vec<u32>> {
    let &CauchyShape { k, m, .. } = shape;
    // Points are distinct, so every sum has an inverse.
    let entry = |i: usize, j: usize| field.inverse((i ^ (m + j)) as u32).unwrap_or(0);
    (0..m).map(|i| (0..k).map(|j| entry(i, j)).collect()).collect()
}

/// Returns the code with these coefficients in the packet layout. They follow from k, m and w, so
/// the pin needs only the polynomial.
pub(super) fn code(
    family: &str,
    shape: &CauchyShape,
    field: Field,
    rows: Vec<Vec<u32>>,
) -> Result<Code> {
    let &CauchyShape { k, m, w } = shape;
    let mut builder = CodeBuilder::new(k + m);
    builder.symbols(&SymbolMatrix::new(field, k, rows)?);
    builder.pin(Pin::new().with("polynomial", [field.polynomial()]));
    builder.finish(Spec::new(family).with("k", k).with("m", m).with("w", w), m)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In GF(8) modulo x^3 + x + 1: the inverses of 1 to 7 are 1, 5, 6, 7, 2, 3, 4.
    #[test]
    fn the_matrix_by_hand() {
        let shape = CauchyShape { k: 3, m: 2, w: 3 };
        let expected = [[5, 6, 7], [6, 5, 2]];
        assert_eq!(matrix(&shape, Field::new(3).unwrap()), expected);
    }

    #[test]
    fn refusals_say_what_is_legal() {
        for (spec, part) in [
            ("cauchy-orig:k=10,m=7,w=4", "w = 4 has 16; use w = 5"),
            ("cauchy-orig:k=10,m=4,w=33", "w must be from 1 to 32; got"),
            (
                "cauchy-orig:k=4294967296,m=4",
                "k + m must be at most 4294967296; got 4294967296 + 4",
            ),
            ("cauchy-orig:k=0,m=4", "at least 1"),
            ("cauchy-orig:k=2,m=2,points=1.2.3.0", "no parameter points"),
            ("cauchy-orig:k=4000,m=4000", "more than"),
        ] {
            let error = Code::new(&spec.parse().unwrap()).unwrap_err().to_string();
            assert!(error.contains(part), "{spec}: {error}");
        }
        let spec = "cauchy-orig:k=2,m=2,w=4".parse().unwrap();
        let other = Pin::new().with("polynomial", [0x19]);
        let error = Code::rebuild(&spec, &other).unwrap_err().to_string();
        assert!(
            error.contains("has polynomial = 19, but is pinned with polynomial = 25"),
            "{error}"
        );
    }
}
