//! The code over symbols: a matrix product forwards, Gaussian elimination backwards.
//!
//! A systematic code of k data and m parity nodes is the m x k matrix of its coefficients. Parity
//! symbol i is the sum over j of coefficient (i, j) times data symbol j. Put differently, node
//! symbols are the product of a *generator matrix* and the data symbols. The generator matrix is an
//! identity on top, for the data nodes, and the coefficients below. So each surviving node gives
//! one linear equation in the k data symbols, and reconstruction solves these equations.
//!
//! Here a shard is a vector of symbols. One equation covers all symbols of a shard: its right-hand
//! side is a vector, too.

use std::error::Error;
use std::fmt;

use crate::field::Field;

/// Error: the present shards do not determine the lost ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotEnough {
    /// Number of shards that are missing.
    pub lost: usize,
    /// Number of losses that the code can survive at best: its number of parity shards.
    ///
    /// With an MDS matrix, `lost` is greater than this. With another matrix, fewer losses can be
    /// fatal, too.
    pub tolerable: usize,
}

impl fmt::Display for NotEnough {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} shards are lost and the others do not determine them; \
             this code tolerates at most {} losses",
            self.lost, self.tolerable
        )
    }
}

impl Error for NotEnough {}

/// Returns the Cauchy matrix of `points`, which holds the `k` data points x_j, then the parity
/// points y_i.
///
/// Entry (i, j) is 1 / (y_i + x_j). Every square submatrix of it is invertible, which makes the
/// code MDS (Blömer, Kalfane, Karp, Karpinski, Luby and Zuckerman, "An XOR-based erasure-resilient
/// coding scheme", ICSI TR-95-048, 1995).
///
/// # Panics
///
/// If `k` exceeds the number of points, if a point is not a field element, or if two points are
/// equal.
pub fn cauchy(field: &Field, points: &[u64], k: usize) -> Vec<Vec<u64>> {
    for (index, point) in points.iter().enumerate() {
        assert!(!points[..index].contains(point), "point {point} is twice");
    }
    let (data_points, parity_points) = points.split_at(k);
    let entry = |&y: &u64, &x: &u64| field.inverse(field.add(y, x));
    parity_points.iter().map(|y| data_points.iter().map(|x| entry(y, x)).collect()).collect()
}

/// Returns the parity shards of `data`.
///
/// # Panics
///
/// If the lengths of the data shards differ, or if a row does not have one coefficient for each
/// shard.
pub(crate) fn encode(field: &Field, coefficients: &[Vec<u64>], data: &[Vec<u64>]) -> Vec<Vec<u64>> {
    let symbols = data.first().map_or(0, Vec::len);
    coefficients
        .iter()
        .map(|row| {
            assert_eq!(row.len(), data.len(), "one coefficient a data shard");
            let mut parity = vec![0; symbols];
            for (&coefficient, shard) in row.iter().zip(data) {
                add_multiple(field, &mut parity, coefficient, shard);
            }
            parity
        })
        .collect()
}

/// Returns all k + m shards, data first, from the surviving ones.
///
/// The last `coefficients.len()` shards are the parity. If more shards survive than needed, it is
/// unspecified which equations are used; contradictions between shards are not detected.
///
/// # Panics
///
/// If there are fewer shards than rows, or as [`encode`] does.
pub(crate) fn reconstruct(
    field: &Field,
    coefficients: &[Vec<u64>],
    shards: &[Option<Vec<u64>>],
) -> Result<Vec<Vec<u64>>, NotEnough> {
    let m = coefficients.len();
    let k = shards.len().checked_sub(m).expect("k + m shards");
    let equations = generator(coefficients, k)
        .into_iter()
        .zip(shards)
        .filter_map(|(row, shard)| Some([&row, shard.as_ref()?.as_slice()].concat()))
        .collect();
    let mut all = solve(field, equations, k).ok_or_else(|| NotEnough {
        lost: shards.iter().filter(|shard| shard.is_none()).count(),
        tolerable: m,
    })?;
    all.extend(encode(field, coefficients, &all));
    Ok(all)
}

/// Returns the generator matrix: k identity rows, then the coefficients.
fn generator(coefficients: &[Vec<u64>], k: usize) -> Vec<Vec<u64>> {
    let identity = (0..k).map(|i| (0..k).map(|j| u64::from(i == j)).collect());
    identity.chain(coefficients.iter().cloned()).collect()
}

/// Solves `equations` by Gauss-Jordan elimination. An equation is its coefficients, one for each
/// unknown, followed by its right-hand side, which is a vector of symbols. Returns `None` if the
/// equations do not determine every unknown.
pub(crate) fn solve(
    field: &Field,
    mut equations: Vec<Vec<u64>>,
    unknowns: usize,
) -> Option<Vec<Vec<u64>>> {
    for column in 0..unknowns {
        let pivot = (column..equations.len()).find(|&row| equations[row][column] != 0)?;
        equations.swap(column, pivot);
        let scale = field.inverse(equations[column][column]);
        let solved: Vec<u64> =
            equations[column].iter().map(|&symbol| field.mul(scale, symbol)).collect();
        for equation in &mut equations {
            // In characteristic 2, adding this multiple cancels the entry.
            let factor = equation[column];
            add_multiple(field, equation, factor, &solved);
        }
        equations[column] = solved;
    }
    equations.truncate(unknowns);
    let values = equations.into_iter().map(|row| row[unknowns..].to_vec());
    Some(values.collect())
}

/// Computes `target` += `factor` * `source`, symbol by symbol.
fn add_multiple(field: &Field, target: &mut [u64], factor: u64, source: &[u64]) {
    assert_eq!(target.len(), source.len(), "shards of equal length");
    for (sum, &symbol) in target.iter_mut().zip(source) {
        *sum = field.add(*sum, field.mul(factor, symbol));
    }
}

#[cfg(test)]
mod tests {
    use super::{NotEnough, cauchy, reconstruct};
    use crate::field::Field;

    /// GF(4) by hand: 1/1 = 1, 1/2 = 3, 1/3 = 2. Points x = 0, 1 and y = 2, 3.
    #[test]
    fn cauchy_entries_by_hand() {
        let field = Field::new(2, 0b111);
        let expected = vec![vec![3, 2], vec![2, 3]];
        assert_eq!(cauchy(&field, &[0, 1, 2, 3], 2), expected);
    }

    #[test]
    #[should_panic(expected = "twice")]
    fn cauchy_points_are_distinct() {
        cauchy(&Field::new(4, 0x13), &[1, 2, 3, 3], 2);
    }

    /// With d0 = 2, d1 = 3 in GF(4): d0 + d1 = 1, and d0 + 2 d1 = 2 + 1 = 3.
    #[test]
    fn dependent_equations_are_passed_over() {
        let field = Field::new(2, 0b111);
        let rows = [vec![1, 1], vec![1, 1], vec![1, 2]];
        let shards = [None, None, Some(vec![1]), Some(vec![1]), Some(vec![3])];
        let all = reconstruct(&field, &rows, &shards).unwrap();
        assert_eq!(all, [[2], [3], [1], [1], [3]]);
    }

    #[test]
    fn a_matrix_that_is_not_mds_fails_within_its_parities() {
        let field = Field::new(2, 0b111);
        let rows = [vec![1, 1], vec![1, 1]];
        let shards = [None, None, Some(vec![1]), Some(vec![1])];
        let error = reconstruct(&field, &rows, &shards).unwrap_err();
        let (lost, tolerable) = (2, 2);
        assert_eq!(error, NotEnough { lost, tolerable });
        assert!(error.to_string().starts_with("2 shards are lost"));
    }
}
