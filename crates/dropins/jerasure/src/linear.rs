//! Matrices over GF(2^w) and over bits, as Jerasure passes them: rows of `int`.

use paritas::code::{BitMatrix, Field};

use crate::fields::field;

/// A matrix over a field, row by row. Jerasure passes an element as an `int`; one of GF(2^32) uses
/// the sign bit, too.
#[derive(Clone)]
pub(crate) struct Matrix {
    pub(crate) field: Field,
    pub(crate) rows: Vec<Vec<u32>>,
}

impl Matrix {
    pub(crate) fn new(w: i32, values: &[i32], columns: usize) -> Option<Self> {
        let field = field(w)?;
        let row = |row: &[i32]| row.iter().map(|&value| value as u32).collect();
        Some(Self { field, rows: values.chunks(columns.max(1)).map(row).collect() })
    }

    pub(crate) fn identity(field: Field, size: usize) -> Self {
        let row = |row| (0..size).map(|column| u32::from(row == column)).collect();
        Self { field, rows: (0..size).map(row).collect() }
    }

    pub(crate) fn values(&self) -> Vec<i32> {
        self.rows.iter().flatten().map(|&value| value as i32).collect()
    }

    pub(crate) fn times(&self, other: &Self) -> Self {
        let columns = other.rows.first().map_or(0, Vec::len);
        let entry = |row: &[u32], column: usize| {
            let terms = row.iter().zip(&other.rows);
            terms.fold(0, |sum, (&a, b)| sum ^ self.field.multiply(a, b[column]))
        };
        let row = |row: &Vec<u32>| (0..columns).map(|column| entry(row, column)).collect();
        Self { field: self.field, rows: self.rows.iter().map(row).collect() }
    }

    /// Returns the inverse, by Gauss-Jordan elimination; `None` if there is none.
    pub(crate) fn inverse(mut self) -> Option<Self> {
        let (field, size) = (self.field, self.rows.len());
        let mut inverse = Self::identity(field, size);
        for i in 0..size {
            let pivot = (i..size).find(|&row| self.rows[row][i] != 0)?;
            for matrix in [&mut self, &mut inverse] {
                matrix.rows.swap(i, pivot);
            }
            let scale = field.inverse(self.rows[i][i])?;
            for matrix in [&mut self, &mut inverse] {
                matrix.rows[i].iter_mut().for_each(|value| *value = field.multiply(*value, scale));
            }
            for row in (0..size).filter(|&row| row != i) {
                let factor = self.rows[row][i];
                for matrix in [&mut self, &mut inverse] {
                    let lead = matrix.rows[i].clone();
                    let pairs = matrix.rows[row].iter_mut().zip(&lead);
                    pairs.for_each(|(value, &lead)| *value ^= field.multiply(factor, lead));
                }
            }
        }
        Some(inverse)
    }
}

/// Reads a bit matrix of `columns` columns.
pub(crate) fn bits(values: &[i32], columns: usize) -> BitMatrix {
    let columns = columns.max(1);
    let mut bits = BitMatrix::zero(values.len() / columns, columns);
    for (at, _) in values.iter().enumerate().filter(|(_, value)| **value & 1 == 1) {
        bits.set(at / columns, at % columns, true);
    }
    bits
}

pub(crate) fn bit_values(bits: &BitMatrix) -> Vec<i32> {
    let row = |row| (0..bits.columns()).map(move |column| i32::from(bits.get(row, column)));
    (0..bits.rows()).flat_map(row).collect()
}

pub(crate) fn inverse_bits(bits: &BitMatrix) -> Option<BitMatrix> {
    bits.solve(&BitMatrix::identity(bits.rows()))
}

/// Returns the bit matrix of a matrix over a field.
pub(crate) fn bit_matrix(matrix: &Matrix) -> BitMatrix {
    let w = matrix.field.width() as usize;
    let columns = matrix.rows.first().map_or(0, Vec::len);
    let mut bits = BitMatrix::zero(matrix.rows.len() * w, columns * w);
    for (i, row) in matrix.rows.iter().enumerate() {
        for (j, &element) in row.iter().enumerate() {
            let block = matrix.field.bit_matrix(element);
            for r in 0..w {
                block.support(r).for_each(|c| bits.set(i * w + r, j * w + c, true));
            }
        }
    }
    bits
}

/// The lost devices, and the first k that survive.
pub(crate) struct Survivors {
    pub(crate) sources: Vec<usize>,
    pub(crate) lost: Vec<usize>,
}

/// Returns the lost devices and the first k surviving ones; `None` if fewer than k survive.
pub(crate) fn survivors(erased: &[bool], k: usize) -> Option<Survivors> {
    let (lost, there): (Vec<usize>, Vec<usize>) =
        (0..erased.len()).partition(|&device| erased[device]);
    let sources: Vec<usize> = there.into_iter().take(k).collect();
    (sources.len() == k).then_some(Survivors { sources, lost })
}

/// Returns the rows of `devices` in the generator matrix (identity, then `coding`).
fn generator_rows(coding: &Matrix, k: usize, devices: &[usize]) -> Matrix {
    let identity = Matrix::identity(coding.field, k);
    let row = |&device: &usize| match device.checked_sub(k) {
        Some(row) => coding.rows[row].clone(),
        None => identity.rows[device].clone(),
    };
    Matrix { field: coding.field, rows: devices.iter().map(row).collect() }
}

/// Returns the matrix that computes the devices `wanted` from the k devices `sources`. `None` if
/// `sources` do not determine the data.
pub(crate) fn recovery(
    coding: &Matrix,
    k: usize,
    sources: &[usize],
    wanted: &[usize],
) -> Option<Matrix> {
    let inverse = generator_rows(coding, k, sources).inverse()?;
    Some(generator_rows(coding, k, wanted).times(&inverse))
}

/// As [`recovery`], for a bit matrix with w rows for each device.
pub(crate) fn bit_recovery(
    coding: &BitMatrix,
    w: usize,
    sources: &[usize],
    wanted: &[usize],
) -> Option<BitMatrix> {
    let k = coding.columns() / w;
    let rows = |devices: &[usize]| {
        let mut rows = BitMatrix::zero(devices.len() * w, coding.columns());
        for (at, &device) in devices.iter().enumerate() {
            for r in 0..w {
                match device.checked_sub(k) {
                    None => rows.set(at * w + r, device * w + r, true),
                    Some(row) => {
                        let ones: Vec<usize> = coding.support(row * w + r).collect();
                        ones.into_iter().for_each(|c| rows.set(at * w + r, c, true));
                    }
                }
            }
        }
        rows
    };
    rows(sources).solve(&rows(wanted))
}
