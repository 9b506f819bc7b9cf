//! Shared by the families in the word layout: fields, reading k and m, and the pin.
//!
//! The coefficients of these families follow from k, m and w by a rule that existing data of other
//! software has fixed for ever. So the pin needs only the polynomial.
//!
//! Most of these rules are cases of [`interpolation`]: data symbols are the values of a polynomial
//! of degree below k at k points of the field, parity symbols its values at other points. Any k
//! values determine the polynomial, so any m may be lost.

use crate::define::builder::CodeBuilder;
use crate::define::code::Code;
use crate::define::field::{Field, elements};
use crate::define::logarithms::{Logarithms, ORDER};
use crate::define::pin::Pin;
use crate::define::spec::Spec;
use crate::define::symbols::SymbolMatrix;
use crate::error::{Error, Result};

/// Default width of a word, in bits.
pub(super) const BYTE: usize = 8;

/// Largest number of nodes of a code over bytes: the number of elements of GF(2^8).
pub(super) const MAX_NODES: usize = 1 << BYTE;

/// Returns the field of words of w bits. For bytes the polynomial is 0x11D, that of ISA-L, HDFS,
/// MinIO, zfec, Linux RAID-6 and Jerasure.
pub(super) fn field(w: usize) -> Result<Field> {
    Field::new(w as u32)
}

/// Reads `k` and `m` of the spec of a code over bytes: at least 1 each and together at most 256.
pub(super) fn read(spec: &Spec) -> Result<(usize, usize)> {
    spec.allow(&["k", "m"])?;
    let (k, m) = (spec.required("k")?, spec.required("m")?);
    check_nodes(spec, k, m, BYTE)?;
    Ok((k, m))
}

/// Refuses more nodes than the field GF(2^w) has elements.
pub(super) fn check_nodes(spec: &Spec, k: usize, m: usize, w: usize) -> Result<()> {
    let most = elements(w);
    if k > 0 && m > 0 && k.saturating_add(m) <= most {
        return Ok(());
    }
    let legal = m.clamp(1, most - 1);
    Err(Error::parameters(format!(
        "{spec}: k and m must be at least 1 and together at most {most}; got k = {k} and m = {m}; \
         for m = {legal} use k from 1 to {}",
        most - legal
    )))
}

/// Returns the code over bytes with these coefficients, one row for each parity node.
pub(super) fn code(family: &str, k: usize, rows: Vec<Vec<u32>>) -> Result<Code> {
    let spec = Spec::new(family).with("k", k).with("m", rows.len());
    code_over(field(BYTE)?, spec, k, rows)
}

/// Returns the code over any field with these coefficients, one row for each parity node.
pub(super) fn code_over(field: Field, spec: Spec, k: usize, rows: Vec<Vec<u32>>) -> Result<Code> {
    code_of(SymbolMatrix::new(field, k, rows)?, spec)
}

/// Returns the code of a symbol matrix.
pub(super) fn code_of(matrix: SymbolMatrix, spec: Spec) -> Result<Code> {
    let (nodes, m, pin) = (matrix.node_count(), matrix.parity().len(), pin(matrix.field()));
    let mut builder = CodeBuilder::new(nodes);
    builder.words(matrix).pin(pin);
    builder.finish(spec, m)
}

fn pin(field: Field) -> Pin {
    Pin::new().with("polynomial", [field.polynomial()])
}

/// Refuses a pin that holds anything but the standard polynomial for words of w bits.
pub(super) fn check_pin(spec: &Spec, given: &Pin, w: usize) -> Result<()> {
    let field = field(w)?;
    if *given == pin(field) {
        return Ok(());
    }
    Err(Error::parameters(format!(
        "{spec}: the pinned matrix is not one of {}, which has the polynomial {:#x} and nothing \
         else to pin",
        spec.family(),
        field.polynomial()
    )))
}

/// Reads the parameters of a code over bytes from its spec, as [`read`] does, and checks its pin.
pub(super) fn read_pinned(spec: &Spec, pin: &Pin) -> Result<(usize, usize)> {
    check_pin(spec, pin, BYTE)?;
    read(spec)
}

/// Returns the coefficients that turn the values of a polynomial at the points of `data` into its
/// values at the points of `parity`. The polynomial's degree is below the number of data points;
/// all points are distinct.
///
/// By Lagrange's formula the coefficient of data point x_c in parity point y is the product over j
/// ≠ c of (y - x_j) / (x_c - x_j).
pub(super) fn interpolation(field: Field, data: &[u32], parity: &[u32]) -> Vec<Vec<u32>> {
    if let Some(logarithms) = field.logarithms() {
        return interpolation_of_bytes(logarithms, data, parity);
    }
    let product = |at: u32, skip: Option<usize>| {
        let points = data.iter().enumerate().filter(|&(j, _)| Some(j) != skip);
        points.fold(1, |product, (_, &point)| field.multiply(product, at ^ point))
    };
    let quotient = |a: u32, b: u32| field.multiply(a, field.inverse(b).unwrap_or(0));
    let scale: Vec<u32> =
        data.iter().enumerate().map(|(c, &point)| quotient(1, product(point, Some(c)))).collect();
    let row = |&y: &u32| {
        // Product of all factors; the factor that the formula leaves out is divided out afterwards.
        let all = product(y, None);
        let terms = data.iter().zip(&scale);
        terms.map(|(&point, &scale)| field.multiply(quotient(all, y ^ point), scale)).collect()
    };
    parity.iter().map(row).collect()
}

/// As [`interpolation`], over bytes: a coefficient is the power of a sum of three logarithms.
fn interpolation_of_bytes(logarithms: &Logarithms, data: &[u32], parity: &[u32]) -> Vec<Vec<u32>> {
    // The logarithm of 0 is given as 0, so a point's difference to itself is left out.
    let log = |a: u32, b: u32| logarithms.log((a ^ b) as u8);
    let product = |&at: &u32| data.iter().map(|&point| log(at, point)).sum::<usize>() % ORDER;
    let scales: Vec<usize> = data.iter().map(|point| ORDER - product(point)).collect();
    let row = |y: &u32| {
        let all = product(y) + ORDER;
        let terms = data.iter().zip(&scales);
        let term = |(&x, scale): (&u32, &usize)| logarithms.low_power(all + scale - log(*y, x));
        terms.map(|term_of| u32::from(term(term_of))).collect()
    };
    parity.iter().map(row).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Checks that rows evaluate, at the points of `parity`, the polynomial through values at the
    /// points of `data`. This defines the matrices that are a Vandermonde matrix times the inverse
    /// of its top square.
    pub(in super::super) fn expect_interpolation(
        field: Field,
        rows: &[Vec<u32>],
        data: &[u32],
        parity: &[u32],
    ) {
        assert_eq!(rows.len(), parity.len());
        for (row, &y) in rows.iter().zip(parity) {
            for exponent in 0..data.len() as u64 {
                let terms = row.iter().zip(data).map(|(&coefficient, &point)| {
                    field.multiply(coefficient, field.power(point, exponent))
                });
                let value = terms.fold(0, |sum, term| sum ^ term);
                assert_eq!(value, field.power(y, exponent), "{} data, point {y}", data.len());
            }
        }
    }

    #[test]
    fn values_at_other_points_follow() {
        for w in [8, 16, 32] {
            let field = field(w).unwrap();
            let (data, parity) = ([7, 0, 200, 1, 3], [2, 255, 100]);
            let rows = interpolation(field, &data, &parity);
            expect_interpolation(field, &rows, &data, &parity);
        }
    }

    #[test]
    fn the_field_of_bytes_is_the_usual_one() {
        assert_eq!(field(BYTE).unwrap().polynomial(), 0x11D);
    }
}
