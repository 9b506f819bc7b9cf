//! Reed-Solomon matrices of other software, built as its sources build them.
//!
//! Each function returns the m rows of k coefficients of the parity shards, to be used with
//! [`words`](crate::words). No closed form is used where the original has none: Vandermonde
//! matrices are made systematic by solving equations.

use crate::field::Field;
use crate::matrix;

/// Returns the field that these libraries use for words of `w` bits.
///
/// # Panics
///
/// If `w` is not 8, 16 or 32.
pub fn field(w: u32) -> Field {
    let polynomial = match w {
        8 => 0x11D,
        16 => 0x1100B,
        32 => 0x1_0040_0007,
        _ => panic!("words have 8, 16 or 32 bits"),
    };
    Field::new(w, polynomial)
}

/// ISA-L's `gf_gen_cauchy1_matrix` (`ec_base.c`): entry (i, j) is 1 / (i xor j), with i counted
/// from k.
pub fn isal_cauchy(k: usize, m: usize) -> Vec<Vec<u64>> {
    let points: Vec<u64> = (0..(k + m) as u64).collect();
    matrix::cauchy(&field(8), &points, k)
}

/// ISA-L's `gf_gen_rs_matrix` (`ec_base.c`): row i holds the powers of 2^i.
pub fn isal_rs(k: usize, m: usize) -> Vec<Vec<u64>> {
    let field = field(8);
    (0..m as u64).map(|row| powers(&field, field.pow(2, row), k)).collect()
}

/// Linux RAID-6, ISA-L's `pq_gen` and Jerasure's `reed_sol_r6_op`: ones, and the powers of 2.
pub fn raid6(w: u32, k: usize) -> Vec<Vec<u64>> {
    vec![vec![1; k], powers(&field(w), 2, k)]
}

/// The matrix of Backblaze and klauspost: the Vandermonde matrix of the points 0, 1, 2, … times the
/// inverse of its top square.
pub fn backblaze(k: usize, m: usize) -> Vec<Vec<u64>> {
    let field = field(8);
    systematic(&field, (0..(k + m) as u64).map(|point| powers(&field, point, k)).collect())
}

/// zfec's matrix (`fec.c`, `fec_new`): the first row is 1, 0, 0, …, and row i + 1 holds the powers
/// of 2^i. All is multiplied by the inverse of the top square.
pub fn zfec(k: usize, m: usize) -> Vec<Vec<u64>> {
    let field = field(8);
    let others = (0..(k + m - 1) as u64).map(|row| powers(&field, field.pow(2, row), k));
    systematic(&field, std::iter::once(unit(k, 0)).chain(others).collect())
}

/// Jerasure's `reed_sol_vandermonde_coding_matrix` (`reed_sol.c`): an extended Vandermonde matrix
/// times the inverse of its top square. Then columns are scaled so that the first parity row is all
/// ones, and further rows so that their first entry is one.
pub fn reed_sol_van(w: u32, k: usize, m: usize) -> Vec<Vec<u64>> {
    let field = field(w);
    let mut rows: Vec<_> = (0..(k + m - 1) as u64).map(|row| powers(&field, row, k)).collect();
    rows.push(unit(k, k - 1));
    let mut parity = systematic(&field, rows);
    let first = parity[0].clone();
    for row in &mut parity {
        for (entry, &divisor) in row.iter_mut().zip(&first) {
            *entry = field.mul(*entry, field.inverse(divisor));
        }
        let scale = field.inverse(row[0]);
        row.iter_mut().for_each(|entry| *entry = field.mul(*entry, scale));
    }
    parity
}

/// Returns 1, a, a², …: `count` powers.
fn powers(field: &Field, a: u64, count: usize) -> Vec<u64> {
    (0..count as u64).map(|exponent| field.pow(a, exponent)).collect()
}

fn unit(length: usize, position: usize) -> Vec<u64> {
    (0..length).map(|i| u64::from(i == position)).collect()
}

/// Returns the rows below the top square of an n x k matrix, times the inverse of that square.
///
/// The result P satisfies P · top = bottom. Transposed, these are k equations, one for each column,
/// in k unknowns, the columns of P.
fn systematic(field: &Field, mut rows: Vec<Vec<u64>>) -> Vec<Vec<u64>> {
    let k = rows[0].len();
    let bottom = rows.split_off(k);
    let column = |rows: &[Vec<u64>], c: usize| rows.iter().map(|row| row[c]).collect::<Vec<u64>>();
    let equations = (0..k).map(|c| [column(&rows, c), column(&bottom, c)].concat()).collect();
    let columns = matrix::solve(field, equations, k).expect("the top square is invertible");
    (0..bottom.len()).map(|row| column(&columns, row)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The line through (0, a) and (1, b) is (1 - x)·a + x·b. Backblaze's rows are its values at 2
    /// and 3, zfec's at 2 and 4.
    #[test]
    fn small_matrices_by_hand() {
        assert_eq!(backblaze(2, 2), [[3, 2], [2, 3]]);
        assert_eq!(isal_rs(3, 2), [[1, 1, 1], [1, 2, 4]]);
        assert_eq!(raid6(16, 3), [[1, 1, 1], [1, 2, 4]]);
        assert_eq!(reed_sol_van(8, 3, 1), [[1, 1, 1]]);
        assert_eq!(zfec(2, 2), [[3, 2], [5, 4]]);
    }

    /// The last row, before scaling, is the leading coefficient of that line: a + b. Its columns
    /// are divided by the row above, which is 3, 2 (the value at 2); then the row is scaled to
    /// begin with one.
    #[test]
    fn the_row_at_infinity_by_hand() {
        for w in [8, 16, 32] {
            let field = field(w);
            let expected = vec![1, field.mul(3, field.inverse(2))];
            assert_eq!(reed_sol_van(w, 2, 2), [vec![1, 1], expected]);
        }
    }
}
