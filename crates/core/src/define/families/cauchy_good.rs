//! Cauchy Reed-Solomon with Jerasure's improved matrix, `cauchy_good`.
//!
//! Plank and Xu, *Optimizing Cauchy Reed-Solomon codes for fault-tolerant network storage
//! applications* (NCA 2006), as Jerasure's `cauchy_good_general_coding_matrix` implements it:
//!
//! - In general it starts from the matrix of [`cauchy_orig`] and divides each column by its entry
//!   in the first row. Then, from the second row on, it divides each row by the entry that leaves
//!   the row with the fewest ones, the first of several. A row that no division improves stays as
//!   it is.
//! - For m = 2 and small fields the best matrix is known. Its first row is all ones. Its second row
//!   holds the k elements whose bit matrices have the fewest ones (any distinct elements work, as
//!   for RAID-6). Jerasure keeps these elements in tables for w from 2 to 11, cut at 1023 elements.
//!   The tables are in the order of the number of ones, and smaller elements come first among
//!   equals. So the elements are sorted here instead of listed.
//!
//! The second rule also serves k = 2^w - 1, one node more than a Cauchy matrix has points for.

use crate::define::code::Code;
use crate::define::families::cauchy::{CauchyShape, FamilyLimits};
use crate::define::families::{Family, cauchy_orig, rebuild_fixed};
use crate::define::field::{Field, elements};
use crate::define::ones::{Ones, WIDEST_TABLE};
use crate::define::spec::Spec;
use crate::error::{Error, Result};
use crate::limits::MOST_QUOTIENTS;

pub(super) const FAMILY: Family = Family {
    name: "cauchy-good",
    summary: "Cauchy Reed-Solomon with fewer ones, as Jerasure's cauchy_good",
    limits: "k >= 1, m >= 1, k + m <= 2^w (for m = 2 and w from 2 to 10: 2^w + 1), w <= 32 (default: the smallest that fits)",
    example: "cauchy-good:k=10,m=4",
    define,
    // No limit on time here: stored data must stay readable.
    rebuild: |spec, pin| rebuild_fixed(spec, pin, |spec| construct(&LIMITS.read(spec)?)),
};

const LIMITS: FamilyLimits = FamilyLimits {
    keys: &["k", "m", "w"],
    widest: 32,
    most_nodes: |m, w| elements(w).max(if m == 2 { best_elements(w) + 2 } else { 0 }),
};

fn define(spec: &Spec) -> Result<Code> {
    let shape = LIMITS.read(spec)?;
    if !is_known(&shape) {
        expect_quotients(spec, &shape)?;
    }
    construct(&shape)
}

/// Whether the best matrix is known.
fn is_known(&CauchyShape { k, m, w }: &CauchyShape) -> bool {
    m == 2 && k <= best_elements(w)
}

fn construct(shape: &CauchyShape) -> Result<Code> {
    let field = Field::new(shape.w as u32)?;
    let rows = if is_known(shape) {
        vec![vec![1; shape.k], sparsest(field, shape.k)]
    } else {
        improved(field, cauchy_orig::matrix(shape, field))
    };
    cauchy_orig::code(FAMILY.name, shape, field, rows)
}

/// Refuses matrices over fields too large for tables if improving them would compare more than
/// [`MOST_QUOTIENTS`] quotients. Every entry of a row is tried as its divisor.
fn expect_quotients(spec: &Spec, &CauchyShape { k, m, w }: &CauchyShape) -> Result<()> {
    let quotients = (m - 1).saturating_mul(k).saturating_mul(k);
    if w <= WIDEST_TABLE as usize || quotients <= MOST_QUOTIENTS {
        return Ok(());
    }
    Err(Error::parameters(format!(
        "{spec}: with w = {w}, improving the matrix compares (m - 1)·k² = {quotients} quotients, more than \
         {MOST_QUOTIENTS}; use w = {WIDEST_TABLE} or less, or cauchy-orig"
    )))
}

/// Number of elements in Jerasure's table of the best elements for width `w`.
fn best_elements(w: usize) -> usize {
    if (2..=11).contains(&w) { ((1 << w) - 1).min(1023) } else { 0 }
}

/// Returns the k elements with the fewest ones.
fn sparsest(field: Field, k: usize) -> Vec<u32> {
    let mut elements: Vec<u32> = (1..field.size() as u32).collect();
    elements.sort_by_cached_key(|&element| (field.ones(element), element));
    elements.truncate(k);
    elements
}

fn improved(field: Field, mut rows: Vec<Vec<u32>>) -> Vec<Vec<u32>> {
    let first: Vec<u32> = rows[0].iter().map(|&entry| field.inverse(entry).unwrap_or(0)).collect();
    for row in &mut rows {
        let factors = row.iter_mut().zip(&first);
        factors.for_each(|(entry, &factor)| *entry = field.multiply(*entry, factor));
    }
    let ones = Ones::new(field, rows.len(), first.len());
    for row in &mut rows[1..] {
        // The first of equals is taken; leaving the row as it is comes first.
        let divisors: Vec<u32> = [1].iter().chain(row.iter()).copied().collect();
        let counts = ones.divided(row, &divisors).into_iter().zip(divisors);
        let best = counts.min_by_key(|&(count, _)| count).map_or(1, |(_, divisor)| divisor);
        let factor = field.inverse(best).unwrap_or(1);
        row.iter_mut().for_each(|entry| *entry = field.multiply(*entry, factor));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::define::erasure::{Losses, combinations};

    fn code(spec: &str) -> Result<Code> {
        Code::new(&spec.parse()?)
    }

    /// GF(4): multiplication by 1 has two ones, by 2 and 3 three each.
    #[test]
    fn the_best_by_hand() {
        assert_eq!(sparsest(Field::new(2).unwrap(), 3), [1, 2, 3]);
    }

    /// GF(4): with points y = 0, 1 and x = 2, 3 the matrix is 1/2, 1/3 over 1/3,
    /// 1/2, that is 3, 2 over 2, 3; by columns 1, 1 over 2/3, 3/2, that is 3 and 2.
    #[test]
    fn the_improvement_by_hand() {
        let field = Field::new(2).unwrap();
        // Divided by 3 the second row is 1, 3; by 2 it is 2, 1: five ones each, so the first.
        assert_eq!(improved(field, vec![vec![3, 2], vec![2, 3]]), [[1, 1], [1, 3]]);
    }

    /// One node more than a Cauchy matrix has points for: the Q row has all elements but 0.
    #[test]
    fn one_node_more_with_two_parities() {
        let code = code("cauchy-good:k=7,m=2,w=3").unwrap();
        for lost in combinations(9, 2) {
            let lost: Vec<_> = lost.into_iter().map(crate::define::cells::NodeId::new).collect();
            assert!(Losses::of_nodes(&code, &lost).is_solvable(), "{lost:?}");
        }
    }

    #[test]
    fn specs_are_completed() {
        for (given, canonical) in [
            ("cauchy-good:k=10,m=4", "cauchy-good:k=10,m=4,w=4"),
            ("cauchy-good:k=15,m=2", "cauchy-good:k=15,m=2,w=4"),
            ("cauchy-good:k=1,m=1", "cauchy-good:k=1,m=1,w=1"),
        ] {
            assert_eq!(code(given).unwrap().spec().to_string(), canonical);
        }
    }

    #[test]
    fn refusals_say_what_is_legal() {
        for (spec, part) in [
            (
                "cauchy-good:k=16,m=2,w=4",
                "18 nodes need as many distinct points, but w = 4 has 17; use w = 5",
            ),
            ("cauchy-good:k=14,m=3,w=4", "w = 4 has 16; use w = 5"),
            ("cauchy-good:k=2047,m=2,w=11", "w = 11 has 2048; use w = 12"),
            ("cauchy-good:k=1,m=1,w=33", "w must be from 1 to 32; got"),
            ("cauchy-good:k=9000,m=2,w=32", "use w = 20 or less, or cauchy-orig"),
        ] {
            let error = code(spec).unwrap_err().to_string();
            assert!(error.contains(part), "{spec}: {error}");
        }
    }
}
