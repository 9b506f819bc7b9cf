//! Dense matrices over GF(2), rows packed into 64-bit words.

use crate::error::{Error, Result};

/// A matrix of bits; entry (r, c) is row `r`, column `c`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BitMatrix {
    rows: usize,
    columns: usize,
    stride: usize,
    words: Vec<u64>,
}

impl BitMatrix {
    /// A matrix of zeros.
    pub fn zero(rows: usize, columns: usize) -> Self {
        let stride = columns.div_ceil(64);
        Self { rows, columns, stride, words: vec![0; rows * stride] }
    }

    /// The identity matrix.
    pub fn identity(size: usize) -> Self {
        let mut matrix = Self::zero(size, size);
        (0..size).for_each(|i| matrix.set(i, i, true));
        matrix
    }

    /// Returns the matrix whose row `r` has ones exactly in the columns `supports[r]`.
    ///
    /// # Panics
    /// If a column is out of range.
    pub fn from_supports<R: AsRef<[usize]>>(columns: usize, supports: &[R]) -> Self {
        let mut matrix = Self::zero(supports.len(), columns);
        for (r, support) in supports.iter().enumerate() {
            support.as_ref().iter().for_each(|&c| matrix.set(r, c, true));
        }
        matrix
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The entry (r, c).
    ///
    /// # Panics
    /// If out of range.
    pub fn get(&self, r: usize, c: usize) -> bool {
        assert!(r < self.rows && c < self.columns);
        self.words[r * self.stride + c / 64] >> (c % 64) & 1 == 1
    }

    /// Sets the entry (r, c).
    ///
    /// # Panics
    /// If out of range.
    pub fn set(&mut self, r: usize, c: usize, value: bool) {
        assert!(r < self.rows && c < self.columns);
        let word = &mut self.words[r * self.stride + c / 64];
        *word = *word & !(1 << (c % 64)) | u64::from(value) << (c % 64);
    }

    /// Flips the entry (r, c).
    ///
    /// # Panics
    /// If out of range.
    pub fn flip(&mut self, r: usize, c: usize) {
        assert!(r < self.rows && c < self.columns);
        self.words[r * self.stride + c / 64] ^= 1 << (c % 64);
    }

    /// The words of row `r`; bit `c % 64` of word `c / 64` is column `c`.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, r: usize) -> &[u64] {
        &self.words[r * self.stride..(r + 1) * self.stride]
    }

    /// Returns the words of row `r` for writing. Bits beyond the last column must stay zero.
    pub(crate) fn row_mut(&mut self, r: usize) -> &mut [u64] {
        &mut self.words[r * self.stride..(r + 1) * self.stride]
    }

    /// Keeps only the first `rows` rows.
    pub(crate) fn truncate(&mut self, rows: usize) {
        self.rows = self.rows.min(rows);
        self.words.truncate(self.rows * self.stride);
    }

    /// Columns in which row `r` has a one, ascending.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn support(&self, r: usize) -> impl Iterator<Item = usize> {
        ones_of(self.row(r))
    }

    /// Adds (XORs) row `source` to row `target`. A row added to itself becomes zero.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn add_row(&mut self, source: usize, target: usize) {
        if source == target {
            self.words[target * self.stride..(target + 1) * self.stride].fill(0);
            return;
        }
        let (s, t) = (source * self.stride, target * self.stride);
        for i in 0..self.stride {
            self.words[t + i] ^= self.words[s + i];
        }
    }

    /// The number of ones.
    pub fn ones(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The matrix product over GF(2).
    ///
    /// # Errors
    /// If the inner dimensions differ.
    pub fn multiply(&self, other: &Self) -> Result<Self> {
        if self.columns != other.rows {
            return Err(Error::parameters(format!(
                "a {} x {} matrix cannot be multiplied by a {} x {} one",
                self.rows, self.columns, other.rows, other.columns
            )));
        }
        let mut product = Self::zero(self.rows, other.columns);
        for r in 0..self.rows {
            for c in self.support(r) {
                let target = &mut product.words[r * product.stride..(r + 1) * product.stride];
                xor_words(target, other.row(c));
            }
        }
        Ok(product)
    }

    /// The transposed matrix.
    pub fn transpose(&self) -> Self {
        let mut transposed = Self::zero(self.columns, self.rows);
        for r in 0..self.rows {
            self.support(r).for_each(|c| transposed.set(c, r, true));
        }
        transposed
    }

    /// Returns the dimension of the row space.
    pub fn rank(&self) -> usize {
        let mut echelon = Echelon::new(self.columns);
        (0..self.rows).filter(|&r| echelon.insert(self.row(r)).is_ok()).count()
    }

    /// Returns the inverse, or `None` if the matrix is singular.
    ///
    /// # Errors
    /// If the matrix is not square.
    pub fn invert(&self) -> Result<Option<Self>> {
        if self.rows != self.columns {
            let (rows, columns) = (self.rows, self.columns);
            return Err(Error::parameters(format!("a {rows} x {columns} matrix has no inverse")));
        }
        Ok(self.solve(&Self::identity(self.rows)))
    }

    /// Returns a matrix X with X · self = wanted, or `None` if some row of `wanted` is outside the
    /// row space of `self`. Row i of X says which rows of `self` add up to row i of `wanted`.
    ///
    /// # Panics
    /// If `self` and `wanted` do not have the same number of columns.
    pub fn solve(&self, wanted: &Self) -> Option<Self> {
        assert_eq!(self.columns, wanted.columns, "both sides have the same columns");
        let mut echelon = Echelon::new(self.columns);
        (0..self.rows).for_each(|r| {
            let _ = echelon.insert(self.row(r));
        });
        let mut solution = Self::zero(wanted.rows, self.rows);
        for r in 0..wanted.rows {
            echelon.express(wanted.row(r)).ok()?.iter().for_each(|&i| solution.set(r, i, true));
        }
        Some(solution)
    }
}

/// An incrementally built basis of a row space. Each basis vector remembers the inserted rows whose
/// sum it is.
#[derive(Debug, Clone)]
pub(crate) struct Echelon {
    inserted: usize,
    /// Reduced vectors, indexed by leading column.
    basis: Vec<Option<Reduced>>,
    rank: usize,
    /// Number of 64-bit words added so far while reducing inserted rows.
    steps: u64,
}

/// A vector of a basis.
#[derive(Debug, Clone)]
struct Reduced {
    /// The vector's words, starting with the word of its leading column; the words before it are
    /// zero.
    tail: Box<[u64]>,
    /// The inserted rows that add up to this vector, as a bit set.
    parts: Box<[u64]>,
}

impl Echelon {
    pub(crate) fn new(columns: usize) -> Self {
        Self { inserted: 0, basis: vec![None; columns], rank: 0, steps: 0 }
    }

    pub(crate) fn rank(&self) -> usize {
        self.rank
    }

    /// Returns the number of 64-bit words added so far while reducing inserted rows.
    pub(crate) fn steps(&self) -> u64 {
        self.steps
    }

    /// Inserts the next row. A row that depends on earlier rows gets a number but is not kept; the
    /// earlier rows that add up to it are then returned as the error.
    pub(crate) fn insert(&mut self, row: &[u64]) -> Result<(), Vec<usize>> {
        let number = self.inserted;
        self.inserted += 1;
        let (reduced, mut combination, steps) = self.reduce(row);
        self.steps += steps;
        let lead = ones_of(&reduced).next();
        match lead {
            None => Err(ones_of(&combination).collect()),
            Some(lead) => {
                flip_bit(&mut combination, number);
                let (tail, parts) = (reduced[lead / 64..].into(), combination.into());
                self.basis[lead] = Some(Reduced { tail, parts });
                self.rank += 1;
                Ok(())
            }
        }
    }

    /// Returns the inserted rows that add up to `row`. If there are none, the error holds the
    /// columns that are left after `row` has been reduced.
    pub(crate) fn express(&self, row: &[u64]) -> Result<Vec<usize>, Vec<usize>> {
        let (reduced, combination, _) = self.reduce(row);
        let left: Vec<usize> = ones_of(&reduced).collect();
        if left.is_empty() { Ok(ones_of(&combination).collect()) } else { Err(left) }
    }

    /// Reduces `row`. Returns the reduced row, the inserted rows that were added to it, and the
    /// number of words added.
    fn reduce(&self, row: &[u64]) -> (Vec<u64>, Vec<u64>, u64) {
        let mut steps = 0;
        let mut reduced = row.to_vec();
        let mut combination = vec![0; self.inserted.div_ceil(64)];
        for word in 0..reduced.len() {
            // A basis vector has no ones before its leading column, so adding it never changes a
            // column that has already been looked at.
            let mut unseen = u64::MAX;
            while reduced[word] & unseen != 0 {
                let bit = (reduced[word] & unseen).trailing_zeros();
                unseen = u64::MAX.checked_shl(bit + 1).unwrap_or(0);
                if let Some(Reduced { tail, parts }) = &self.basis[word * 64 + bit as usize] {
                    xor_words(&mut reduced[word..], tail);
                    xor_words(&mut combination, parts);
                    steps += (tail.len() + parts.len()) as u64;
                }
            }
        }
        (reduced, combination, steps)
    }
}

/// The positions of the ones in packed words, ascending.
pub(crate) fn ones_of(words: &[u64]) -> impl Iterator<Item = usize> {
    let mut others = words.iter().enumerate();
    let (mut index, mut word) = (0, 0_u64);
    std::iter::from_fn(move || {
        while word == 0 {
            let (next, &ones) = others.next()?;
            (index, word) = (next, ones);
        }
        let one = word.trailing_zeros() as usize;
        word &= word - 1;
        Some(index * 64 + one)
    })
}

pub(crate) fn xor_words(target: &mut [u64], source: &[u64]) {
    target.iter_mut().zip(source).for_each(|(t, s)| *t ^= s);
}

fn flip_bit(words: &mut Vec<u64>, bit: usize) {
    words.resize(words.len().max(bit / 64 + 1), 0);
    words[bit / 64] ^= 1 << (bit % 64);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matrix(rows: usize, columns: usize) -> impl Strategy<Value = BitMatrix> {
        prop::collection::vec(any::<bool>(), rows * columns).prop_map(move |bits| {
            let mut m = BitMatrix::zero(rows, columns);
            bits.iter().enumerate().for_each(|(i, &b)| m.set(i / columns, i % columns, b));
            m
        })
    }

    proptest! {
        #[test]
        fn inverse_times_matrix_is_identity(m in matrix(9, 9)) {
            match m.invert().unwrap() {
                Some(inverse) => {
                    prop_assert_eq!(m.rank(), 9);
                    prop_assert_eq!(inverse.multiply(&m).unwrap(), BitMatrix::identity(9));
                    prop_assert_eq!(m.multiply(&inverse).unwrap(), BitMatrix::identity(9));
                }
                None => prop_assert!(m.rank() < 9),
            }
        }

        #[test]
        fn solve_gives_back_products(a in matrix(70, 67), x in matrix(5, 70)) {
            let wanted = x.multiply(&a).unwrap();
            let solution = a.solve(&wanted).expect("a product is in the row space");
            prop_assert_eq!(solution.multiply(&a).unwrap(), wanted);
        }

        #[test]
        fn transposing_reverses_products(a in matrix(4, 6), b in matrix(6, 5)) {
            let left = a.multiply(&b).unwrap().transpose();
            let right = b.transpose().multiply(&a.transpose()).unwrap();
            prop_assert_eq!(left, right);
        }

        #[test]
        fn rank_is_the_same_both_ways(a in matrix(8, 11)) {
            prop_assert_eq!(a.rank(), a.transpose().rank());
        }
    }

    #[test]
    fn rows_outside_the_row_space_are_not_solved() {
        let a = BitMatrix::from_supports(3, &[vec![0, 1], vec![1, 2]]);
        assert!(a.solve(&BitMatrix::from_supports(3, &[vec![0, 2]])).is_some());
        assert!(a.solve(&BitMatrix::from_supports(3, &[vec![0]])).is_none());
        assert!(BitMatrix::zero(2, 3).invert().is_err());
        assert!(BitMatrix::zero(2, 3).multiply(&BitMatrix::zero(2, 3)).is_err());
    }
}
