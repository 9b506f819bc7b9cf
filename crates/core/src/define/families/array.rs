//! Shared by the codes over a prime: sizes that follow from the prime, the choice of the smallest
//! prime that fits, the errors for numbers that are not prime, and parities along lines of the
//! table of cells.

use crate::define::builder::CodeBuilder;
use crate::define::cells::{CellId, Role};
use crate::define::spec::Spec;
use crate::error::{Error, Result};

/// Largest prime that a code may be built on.
const MAX_PRIME: usize = 257;

/// How the sizes of a family follow from its prime.
#[derive(Debug)]
pub(super) struct Sizes {
    /// The parameter that determines the prime.
    pub(super) key: &'static str,
    /// The prime minus the parameter.
    pub(super) less: usize,
    /// The prime minus the largest number of data columns.
    pub(super) spare: usize,
}

impl Sizes {
    /// Reads `k` and the prime of a spec. The default is the smallest prime that has room for k
    /// columns.
    pub(super) fn read(&self, spec: &Spec) -> Result<(usize, usize)> {
        spec.allow(&["k", self.key])?;
        let (k, given) = (spec.required("k")?, spec.number(self.key)?);
        let prime = match given {
            None => primes().find(|p| p - self.spare >= k),
            Some(value) => value.checked_add(self.less).filter(|&p| self.serves(p, k)),
        };
        prime.filter(|_| k > 0).map(|p| (k, p)).ok_or_else(|| self.refusal(spec, k, given))
    }

    /// Returns the spec of k data columns over the prime p, without the family's other parameters.
    pub(super) fn spec(&self, family: &str, k: usize, p: usize) -> Spec {
        Spec::new(family).with("k", k).with(self.key, p - self.less)
    }

    fn serves(&self, p: usize, k: usize) -> bool {
        is_odd_prime(p) && p - self.spare >= k
    }

    fn refusal(&self, spec: &Spec, k: usize, given: Option<usize>) -> Error {
        let (key, most) = (self.key, MAX_PRIME - self.spare);
        if !(1..=most).contains(&k) {
            let message = format!("{spec}: k must be from 1 to {most}; got {k}");
            return Error::parameters(message);
        }
        let wanted = given.unwrap_or(0).saturating_add(self.less);
        let fitting = || primes().filter(|&p| self.serves(p, k));
        let least = fitting().next().unwrap_or(MAX_PRIME);
        let nearest = fitting().min_by_key(|p| p.abs_diff(wanted)).unwrap_or(MAX_PRIME);
        let name = if self.less == 0 { key.to_owned() } else { format!("{key} + {}", self.less) };
        Error::parameters(format!(
            "{spec}: {name} must be an odd prime up to {MAX_PRIME}, and for k = {k} at least \
             {least}; use {key} = {}",
            nearest - self.less
        ))
    }
}

/// Adds a node with the parity of each row of the data columns, and returns its cells.
pub(super) fn rows(builder: &mut CodeBuilder, node: usize, data: &[Vec<CellId>]) -> Vec<CellId> {
    let row = |r: usize| data.iter().map(|column| column[r]).collect::<Vec<_>>();
    let rows = 0..data.first().map_or(0, Vec::len);
    rows.map(|r| builder.derived(Role::Parity, Some(node), &row(r))).collect()
}

/// Cells (r, c) with r + slope·c = i modulo p, of columns with p - 1 cells. Slope 1 gives a
/// diagonal, slope p - 1 a diagonal of the other direction.
pub(super) fn line(columns: &[Vec<CellId>], p: usize, slope: usize, i: usize) -> Vec<CellId> {
    let row = |c: usize| (i + (p - slope) * c) % p;
    columns.iter().enumerate().filter_map(|(c, cells)| cells.get(row(c)).copied()).collect()
}

/// Adds a parity node as in EVENODD. Each of its cells is a line of the given slope plus S, the XOR
/// of line p - 1. S is computed once and stored nowhere.
pub(super) fn adjusted_diagonals(
    builder: &mut CodeBuilder,
    node: usize,
    data: &[Vec<CellId>],
    p: usize,
    slope: usize,
) {
    let adjuster = line(data, p, slope, p - 1);
    let s = (!adjuster.is_empty()).then(|| builder.derived(Role::Auxiliary, None, &adjuster));
    for i in 0..p - 1 {
        let cells: Vec<CellId> = line(data, p, slope, i).into_iter().chain(s).collect();
        builder.derived(Role::Parity, Some(node), &cells);
    }
}

/// The odd primes up to [`MAX_PRIME`].
pub(super) fn primes() -> impl Iterator<Item = usize> {
    (3..=MAX_PRIME).filter(|&n| is_odd_prime(n))
}

/// Whether codes can be built on `n`. Numbers above the largest prime are refused without a test.
pub(super) fn is_odd_prime(n: usize) -> bool {
    let mut divisors = (2..).take_while(|d| d * d <= n);
    (3..=MAX_PRIME).contains(&n) && divisors.all(|d| !n.is_multiple_of(d))
}
