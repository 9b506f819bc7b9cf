//! Recovery of a long code: which parity blocks are used, and the inverse of their part of the
//! matrix, as factors.
//!
//! The lost data blocks J and an equal number of parity blocks I satisfy A·d = z. Here z are the
//! parity blocks after the data blocks at hand have been subtracted, and A is the part of the
//! matrix (see [`crate::define::long`]) with the rows I and the columns J. A is a Cauchy matrix
//! with scaled columns, whose inverse is known in closed form (Schechter, *On the inversion of
//! certain matrices*, 1959). With the points y of I and x of J, and the columns' scales s:
//!
//! ```text
//! d(j) = a(j) / s(j) · sum over i of b(i)·z(i) / (x(j) + y(i))
//! a(j) = product over I of (x(j) + y) / product over the rest of J of (x(j) + x)
//! b(i) = product over J of (x + y(i)) / product over the rest of I of (y(i) + y)
//! ```
//!
//! The products run over differences of points, which are points: the logarithm of a product is a
//! sum over k of log point(n xor k), a convolution. Walsh and Hadamard's transform takes it for
//! all n at once, in a time that does not depend on the number of losses.

use crate::define::long::LongMatrix;
use crate::define::ones::walsh_hadamard;
use crate::define::tower::{CantorBasis, Element, ORDER, logarithm, power};
use crate::error::{Error, Result};

/// The parity blocks and the factors by which lost data blocks are computed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Recovery {
    matrix: LongMatrix,
    rows: Vec<usize>,
    lost: Vec<usize>,
    /// The factors b of the rows.
    row_factors: Vec<Element>,
    /// The factors a / s² of the lost blocks: the sum above is s times smaller than the value that
    /// a transform gives.
    lost_factors: Vec<Element>,
}

impl Recovery {
    /// Returns how the data blocks `lost` are computed from the first of the parity blocks `rows`.
    /// Both are lists of different numbers of the code's blocks, in any order.
    ///
    /// # Errors
    /// If there are fewer parity blocks than lost data blocks.
    pub(crate) fn new(matrix: LongMatrix, lost: &[usize], rows: &[usize]) -> Result<Self> {
        let rows = rows.get(..lost.len()).ok_or_else(|| not_enough(lost.len(), rows.len()))?;
        let columns: Vec<usize> = lost.iter().map(|&column| matrix.position(column)).collect();
        let differences = Differences::new(matrix.basis(), matrix.position(matrix.data()));
        let (of_rows, of_columns) = (differences.products(rows), differences.products(&columns));
        let quotient = |above: u32, below: u32| power(above).over(power(below));
        let row_factor = |&row: &usize| quotient(of_columns[row], of_rows[row]);
        let lost_factor = |(&lost, &column): (&usize, &usize)| {
            let scale = matrix.scale(lost);
            quotient(of_rows[column], of_columns[column]).over(scale).over(scale)
        };
        Ok(Self {
            matrix,
            rows: rows.to_vec(),
            lost: lost.to_vec(),
            row_factors: rows.iter().map(row_factor).collect(),
            lost_factors: lost.iter().zip(&columns).map(lost_factor).collect(),
        })
    }

    /// The matrix of the code.
    pub(crate) fn matrix(&self) -> LongMatrix {
        self.matrix
    }

    /// The parity blocks that are used, in the order given.
    pub(crate) fn rows(&self) -> &[usize] {
        &self.rows
    }

    /// The lost data blocks, in the order given.
    pub(crate) fn lost(&self) -> &[usize] {
        &self.lost
    }

    /// The factors by which the rows are multiplied before the transforms.
    pub(crate) fn row_factors(&self) -> &[Element] {
        &self.row_factors
    }

    /// The factors by which the lost blocks are multiplied after the transforms.
    pub(crate) fn lost_factors(&self) -> &[Element] {
        &self.lost_factors
    }
}

fn not_enough(lost: usize, rows: usize) -> Error {
    let message = format!(
        "{lost} data blocks are lost, but only {rows} parity blocks are at hand; {} more are needed",
        lost - rows
    );
    Error::not_enough(message).expecting(lost).given_instead(rows)
}

/// Products of differences of points.
struct Differences {
    /// The transform of the logarithms of all points below a power of two.
    transformed: Vec<u32>,
}

impl Differences {
    /// Prepares products of differences of points below `count`.
    fn new(basis: CantorBasis, count: usize) -> Self {
        let points = 0..count.next_power_of_two();
        let mut transformed: Vec<u32> =
            points.map(|number| logarithm(basis.point(number)).unwrap_or(0)).collect();
        transform(&mut transformed);
        Self { transformed }
    }

    /// Returns, for every point, the logarithm of the product of its differences to the points
    /// `others`, leaving out itself.
    fn products(&self, others: &[usize]) -> Vec<u32> {
        let mut chosen = vec![0; self.transformed.len()];
        others.iter().for_each(|&other| chosen[other] = 1);
        transform(&mut chosen);
        // Transforming twice multiplies by the number of points, 2^k. Its inverse is 2^(16 - k),
        // because 2^16 is 1 modulo the order.
        let inverse = (1_u64 << 16) / self.transformed.len() as u64;
        for (product, &factor) in chosen.iter_mut().zip(&self.transformed) {
            let scaled = u64::from(*product) * u64::from(factor) % u64::from(ORDER) * inverse;
            *product = (scaled % u64::from(ORDER)) as u32;
        }
        transform(&mut chosen);
        chosen
    }
}

/// Walsh and Hadamard's transform modulo the order of the field's group.
fn transform(values: &mut [u32]) {
    walsh_hadamard(values, |a, b| ((a + b) % ORDER, (a + ORDER - b) % ORDER));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the factors: they make the inverse of the matrix.
    #[test]
    fn the_inverse_is_one() {
        let matrix = LongMatrix::new(CantorBasis::Own, 40, 12).unwrap();
        let (lost, rows) = ([0, 5, 6, 31, 39], [1, 2, 5, 7, 9, 10, 11]);
        let recovery = Recovery::new(matrix, &lost, &rows).unwrap();
        assert_eq!((recovery.rows(), recovery.lost()), (&rows[..5], &lost[..]));
        for (i, &column) in lost.iter().enumerate() {
            for (j, &other) in lost.iter().enumerate() {
                let term = |(row, factor): (&usize, &Element)| {
                    let divisor = CantorBasis::Own.point(row ^ matrix.position(column));
                    let inverse = factor.over(divisor).times(matrix.scale(column));
                    inverse.times(matrix.coefficient(*row, other))
                };
                let rows = recovery.rows().iter().zip(recovery.row_factors());
                let sum = rows.map(term).fold(Element::ZERO, Element::plus);
                let sum = sum.times(recovery.lost_factors()[i]);
                assert_eq!(sum, if i == j { Element::ONE } else { Element::ZERO });
            }
        }
    }

    #[test]
    fn products_leave_out_the_point_itself() {
        let chosen = [1, 2, 3, 9, 10];
        let products = Differences::new(CantorBasis::Leopard, 14).products(&chosen);
        for (number, &product) in products.iter().enumerate() {
            let others = chosen.iter().filter(|&&other| other != number);
            let of = |other: &usize| CantorBasis::Leopard.point(number ^ other);
            let expected = others.map(of).fold(Element::ONE, Element::times);
            assert_eq!(power(product), expected, "{number}");
        }
    }

    #[test]
    fn errors_count_the_missing_blocks() {
        let matrix = LongMatrix::new(CantorBasis::Own, 40, 12).unwrap();
        let error = Recovery::new(matrix, &[1, 2, 3], &[4]).unwrap_err();
        assert!(error.to_string().contains("2 more are needed"), "{error}");
        assert_eq!((error.expected(), error.given()), (Some(3), Some(1)));
        assert!(Recovery::new(matrix, &[], &[]).unwrap().rows().is_empty());
    }
}
