//! Cauchy matrices: MDS by construction, whichever points and scalings are chosen.
//!
//! Blömer, Kalfane, Karp, Karpinski, Luby and Zuckerman, *An XOR-based erasure-resilient coding
//! scheme* (1995). Data points x_j and parity points y_i, all distinct, give the coefficients 1 /
//! (y_i + x_j) over GF(2^w). Every square submatrix of this matrix is invertible, so any m losses
//! are recoverable. Multiplying a row or a column by a nonzero element keeps that property and
//! changes the number of ones of the bit matrices.
//!
//! *Normalisation* (Plank and Xu 2006; the dissertation's section 2.2.2, BN) has two steps. It
//! divides every column by its entry in the first row, which makes that row plain parity. Then it
//! divides every other row by the entry of that row that leaves the fewest ones.

use std::collections::HashSet;

use crate::define::field::Field;
use crate::define::ones::Ones;
use crate::define::symbols::SymbolMatrix;
use crate::error::{Error, Result};

/// Number of unused points that are compared when rows are added, unless more rows are wanted.
const CANDIDATES: usize = 256;

/// A matrix of coefficients: a Cauchy matrix with scaled rows and columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CauchyMatrix {
    field: Field,
    /// Parity points.
    y: Vec<u32>,
    /// Data points.
    x: Vec<u32>,
    row_scale: Vec<u32>,
    column_scale: Vec<u32>,
}

impl CauchyMatrix {
    /// Returns the plain matrix. `points` are the k data points followed by the m parity points.
    ///
    /// # Errors
    /// If k or m is 0, or if the points are not k + m distinct elements of the field.
    pub fn new(field: Field, k: usize, m: usize, points: &[u64]) -> Result<Self> {
        let nodes = k.checked_add(m).filter(|_| k > 0 && m > 0);
        let Some(nodes) = nodes.filter(|&nodes| nodes as u64 <= field.size()) else {
            return Err(Error::parameters(format!(
                "a Cauchy matrix needs k, m >= 1 and k + m <= {}; got k = {k}, m = {m}",
                field.size()
            )));
        };
        let mut sorted = points.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        let distinct = sorted.len() == points.len();
        if points.len() != nodes || !distinct || points.iter().any(|&p| !field.contains(p)) {
            return Err(Error::parameters(format!(
                "a Cauchy matrix for k = {k}, m = {m} needs {nodes} distinct points below {}",
                field.size()
            )));
        }
        let (x, y) = points.split_at(k);
        Ok(Self {
            field,
            x: x.iter().map(|&p| p as u32).collect(),
            y: y.iter().map(|&p| p as u32).collect(),
            row_scale: vec![1; m],
            column_scale: vec![1; k],
        })
    }

    /// Returns the matrix of the same points without scalings.
    pub fn plain(mut self) -> Self {
        self.row_scale.fill(1);
        self.column_scale.fill(1);
        self
    }

    /// Returns the matrix of the same points with the given scalings of rows and columns.
    ///
    /// # Errors
    /// If there is not exactly one nonzero scaling for each row and column.
    pub fn with_scalings(mut self, rows: &[u64], columns: &[u64]) -> Result<Self> {
        self.row_scale = scales(self.field, self.y.len(), rows)?;
        self.column_scale = scales(self.field, self.x.len(), columns)?;
        Ok(self)
    }

    /// Returns the matrix of the same points with rows scaled by `rows`, and columns scaled so that
    /// an unscaled first row would be plain parity.
    ///
    /// # Errors
    /// If there is not exactly one nonzero scaling for each row.
    pub fn with_rows(mut self, rows: &[u64]) -> Result<Self> {
        self.column_scale = self.x.iter().map(|x| self.y[0] ^ x).collect();
        self.row_scale = scales(self.field, self.y.len(), rows)?;
        Ok(self)
    }

    /// Returns the normalised matrix of the same points. If several divisors are equally good, the
    /// smallest is used.
    pub fn normalised(mut self) -> Self {
        self.column_scale = self.x.iter().map(|x| self.y[0] ^ x).collect();
        self.row_scale = vec![1; self.y.len()];
        let ones = self.ones(self.y.len());
        for i in 1..self.y.len() {
            self.row_scale[i] = self.sparsest_scaling(self.y[i], &ones).1;
        }
        self
    }

    /// Returns the same matrix with rows added until there are `m`, each scaled as normalisation
    /// does. The points are chosen among the first 256 unused ones, or the first `m` if that is
    /// more: those whose rows have the fewest ones.
    ///
    /// # Errors
    /// If too few points are left, or if `m` is less than the present number of rows.
    pub fn extended(mut self, m: usize) -> Result<Self> {
        let used: HashSet<u32> = self.x.iter().chain(&self.y).copied().collect();
        let left = (0..self.field.size()).map(|point| point as u32);
        let left = left.filter(|point| !used.contains(point)).take(CANDIDATES.max(m));
        let ones = self.ones(CANDIDATES.max(m));
        let row = |point| {
            let (ones, scaling) = self.sparsest_scaling(point, &ones);
            (ones, point, scaling)
        };
        let mut rows: Vec<(usize, u32, u32)> = left.map(row).collect();
        rows.sort_unstable();
        let more = m.checked_sub(self.y.len()).filter(|&more| more <= rows.len());
        let more = more.ok_or_else(|| {
            Error::parameters(format!(
                "a Cauchy matrix of {} columns and {} rows over {} elements cannot be extended to \
                 {m} rows",
                self.x.len(),
                self.y.len(),
                self.field.size()
            ))
        })?;
        for (_, point, scaling) in rows.into_iter().take(more) {
            self.y.push(point);
            self.row_scale.push(scaling);
        }
        Ok(self)
    }

    /// Returns a counter of ones for `rows` rows of this matrix's length.
    fn ones(&self, rows: usize) -> Ones {
        Ones::new(self.field, rows, self.x.len())
    }

    /// Returns the scaling of the row of `point`, and the number of ones that it leaves. Columns
    /// stay scaled as they are. The scaling makes one entry 1. The entry is the one that leaves the
    /// fewest ones, the smallest of equals.
    fn sparsest_scaling(&self, point: u32, ones: &Ones) -> (usize, u32) {
        let entry = |(&x, &scale): (&u32, &u32)| self.field.multiply(scale, self.invert(point ^ x));
        let row: Vec<u32> = self.x.iter().zip(&self.column_scale).map(entry).collect();
        let mut divisors = row.clone();
        divisors.sort_unstable();
        divisors.dedup();
        let best = ones.divided(&row, &divisors).into_iter().zip(divisors).min();
        best.map_or((0, 1), |(ones, divisor)| (ones, self.invert(divisor)))
    }

    /// The field.
    pub fn field(&self) -> Field {
        self.field
    }

    /// The number of columns.
    pub fn k(&self) -> usize {
        self.x.len()
    }

    /// The number of rows.
    pub fn m(&self) -> usize {
        self.y.len()
    }

    /// The data points, then the parity points.
    pub fn points(&self) -> Vec<u64> {
        self.x.iter().chain(&self.y).map(|&point| u64::from(point)).collect()
    }

    /// The factors of the rows.
    pub fn row_scalings(&self) -> Vec<u64> {
        self.row_scale.iter().map(|&scale| u64::from(scale)).collect()
    }

    /// The factors of the columns.
    pub fn column_scalings(&self) -> Vec<u64> {
        self.column_scale.iter().map(|&scale| u64::from(scale)).collect()
    }

    /// Returns the coefficients.
    ///
    /// # Errors
    /// If the bit matrices would be too big to plan with.
    pub fn symbols(&self) -> Result<SymbolMatrix> {
        let row = |i| (0..self.x.len()).map(|j| self.coefficient(i, j)).collect();
        SymbolMatrix::new(self.field, self.x.len(), (0..self.y.len()).map(row).collect())
    }

    fn coefficient(&self, i: usize, j: usize) -> u32 {
        let scale = self.field.multiply(self.row_scale[i], self.column_scale[j]);
        self.field.multiply(scale, self.invert(self.y[i] ^ self.x[j]))
    }

    fn invert(&self, nonzero: u32) -> u32 {
        self.field.inverse(nonzero).expect("points are distinct and scalings nonzero")
    }
}

fn scales(field: Field, count: usize, numbers: &[u64]) -> Result<Vec<u32>> {
    let legal = |&number: &u64| number != 0 && field.contains(number);
    if numbers.len() != count || !numbers.iter().all(legal) {
        return Err(Error::parameters(format!(
            "the matrix needs {count} nonzero scalings below {}",
            field.size()
        )));
    }
    Ok(numbers.iter().map(|&number| number as u32).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ones(matrix: &CauchyMatrix) -> usize {
        let symbols = matrix.symbols().unwrap();
        symbols.parity().iter().flatten().map(|&entry| matrix.field.ones(entry)).sum()
    }

    fn plain(k: usize, m: usize, w: u32) -> CauchyMatrix {
        let points: Vec<u64> = (0..(k + m) as u64).collect();
        CauchyMatrix::new(Field::new(w).unwrap(), k, m, &points).unwrap()
    }

    /// All 23 rows of the dissertation's table 3.1: (n, k, w), the XORs of the plain matrix
    /// (ones - m·w), and the percentage by which normalisation reduces them.
    const TABLE_3_1: [(usize, usize, u32, usize, f64); 23] = [
        (7, 5, 3, 45, 31.11),
        (7, 5, 4, 79, 34.18),
        (7, 5, 8, 267, 49.06),
        (8, 6, 3, 60, 31.67),
        (8, 6, 4, 104, 42.31),
        (8, 6, 8, 362, 53.31),
        (9, 6, 4, 152, 32.89),
        (9, 6, 8, 549, 44.63),
        (10, 6, 4, 200, 27.50),
        (10, 6, 8, 736, 40.90),
        (10, 7, 4, 168, 26.79),
        (10, 7, 8, 633, 49.13),
        (11, 8, 4, 192, 27.60),
        (11, 8, 8, 771, 41.37),
        (12, 8, 4, 256, 23.44),
        (12, 8, 8, 1028, 36.38),
        (14, 10, 4, 324, 19.14),
        (14, 10, 5, 488, 23.98),
        (14, 10, 6, 728, 28.85),
        (14, 10, 7, 890, 26.97), // printed as 26.9
        (14, 10, 8, 1234, 32.58),
        (16, 10, 4, 496, 18.95),
        (16, 10, 8, 1920, 30.16),
    ];

    #[test]
    fn empty_matrices_are_refused() {
        let field = Field::new(4).unwrap();
        for (k, m) in [(0, 3), (3, 0), (usize::MAX, 4)] {
            let error = CauchyMatrix::new(field, k, m, &[1, 2, 3]).unwrap_err().to_string();
            assert!(error.contains("needs k, m >= 1 and k + m <= 16"), "{error}");
        }
    }

    #[test]
    fn table_3_1() {
        for (n, k, w, xors, reduction) in TABLE_3_1 {
            let (m, plain) = (n - k, plain(k, n - k, w));
            let first = m * w as usize;
            let ours = ones(&plain) - first;
            let normal = ones(&plain.normalised()) - first;
            let ours_reduction = 100.0 * (1.0 - normal as f64 / ours as f64);
            assert_eq!(ours, xors, "({n}, {k}, {w})");
            let error = (ours_reduction - reduction).abs();
            assert!(error < 0.005, "({n}, {k}, {w}): {ours_reduction} %, not {reduction} %");
        }
    }

    /// Uses all points of GF(8). With 3 data points and 1 parity point, four are left, listed here
    /// by the number of ones of their rows.
    #[test]
    fn further_rows_have_the_fewest_ones() {
        let matrix = plain(3, 1, 3).normalised();
        let all = matrix.clone().extended(5).unwrap();
        let mut points = all.points();
        points.sort_unstable();
        assert_eq!(points, [0, 1, 2, 3, 4, 5, 6, 7]);
        let ones_of = |row: &Vec<u32>| row.iter().map(|&e| matrix.field.ones(e)).sum::<usize>();
        let rows: Vec<usize> = all.symbols().unwrap().parity()[1..].iter().map(ones_of).collect();
        assert!(rows.is_sorted(), "{rows:?}");
        let two = matrix.clone().extended(2).unwrap().symbols().unwrap();
        assert_eq!(two.parity(), &all.symbols().unwrap().parity()[..2]);
        assert_eq!(matrix.clone().extended(1).unwrap(), matrix);
        assert!(matrix.clone().extended(6).is_err() && matrix.extended(0).is_err());
    }

    #[test]
    fn scalings_are_nonzero_and_complete() {
        let matrix = plain(3, 2, 3);
        assert!(matrix.clone().with_rows(&[1, 5]).is_ok());
        assert!(matrix.clone().with_rows(&[1]).is_err());
        assert!(matrix.clone().with_rows(&[1, 8]).is_err());
        assert!(matrix.clone().with_scalings(&[1, 5], &[1, 0, 1]).is_err());
        let row = |matrix: CauchyMatrix| matrix.symbols().unwrap().parity()[0].clone();
        assert_eq!(row(matrix.clone().with_rows(&[1, 5]).unwrap()), [1, 1, 1]);
        assert_eq!(row(matrix.normalised()), [1, 1, 1]);
    }
}
