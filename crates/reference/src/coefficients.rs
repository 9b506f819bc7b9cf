//! The coefficient matrices of the families in the packet layout.
//!
//! Each is m rows of k elements, for the symbols of [`packets`](crate::packets) and
//! [`words`](crate::words). Sources: Plank, Simmerman and Schuman, "Jerasure: a library in C/C++
//! facilitating erasure coding for storage applications", version 1.2, 2008 (`cauchy_orig`,
//! `cauchy_good`); Plank and Xu, "Optimizing Cauchy Reed-Solomon codes for fault-tolerant network
//! storage applications", NCA 2006; Ovsiannikov et al., "The Quantcast File System", VLDB 2013.

use crate::field::Field;
use crate::matrix::cauchy;

/// Returns the Cauchy matrix of Jerasure: entry (i, j) is 1 / (i xor (m + j)), where m + j is a sum
/// of integers.
///
/// # Panics
///
/// If k + m exceeds the number of elements.
pub fn cauchy_orig(field: &Field, k: usize, m: usize) -> Vec<Vec<u64>> {
    let (k, m) = (k as u64, m as u64);
    let points: Vec<u64> = (m..m + k).chain(0..m).collect();
    cauchy(field, &points, k as usize)
}

/// Returns Jerasure's matrix with fewer ones. For m = 2 and w from 2 to 11, Jerasure has a table of
/// the elements with the fewest ones, at most 1023 of them: the first row is all ones, the second
/// these elements. If there is no table, or if it has fewer than k elements, the matrix starts as
/// [`cauchy_orig`], and each column is divided by its first entry. Then each further row is divided
/// by its entry that leaves the fewest ones (among equals, the first), if the row then has fewer
/// ones than before.
///
/// # Panics
///
/// As [`cauchy_orig`] does; but for m = 2 and w from 2 to 10, only if k exceeds 2^w - 1.
pub fn cauchy_good(field: &Field, k: usize, m: usize) -> Vec<Vec<u64>> {
    let in_table = (2..=11).contains(&field.w()) && k < 1 << field.w() && k <= 1023;
    if m == 2 && in_table {
        return vec![vec![1; k], fewest_ones(field, k)];
    }
    let mut rows = cauchy_orig(field, k, m);
    let first = rows[0].clone();
    for row in &mut rows {
        for (entry, &divisor) in row.iter_mut().zip(&first) {
            *entry = field.mul(*entry, field.inverse(divisor));
        }
    }
    for row in &mut rows[1..] {
        let mut best = row.clone();
        for &divisor in &*row {
            let inverse = field.inverse(divisor);
            let divided: Vec<u64> = row.iter().map(|&entry| field.mul(entry, inverse)).collect();
            if ones_of_row(field, &divided) < ones_of_row(field, &best) {
                best = divided;
            }
        }
        *row = best;
    }
    rows
}

/// Returns the matrix of QFS's triple parity: rows 1, 2^j and 4^j.
pub fn qfs(field: &Field, k: usize) -> Vec<Vec<u64>> {
    let two = |power: usize| field.pow(2, power as u64);
    let row = |step: usize| (0..k).map(|j| two(step * j)).collect();
    [0, 1, 2].map(row).to_vec()
}

/// Returns the matrix of P and Q of RAID-6: rows 1 and 2^j.
pub fn raid6(field: &Field, k: usize) -> Vec<Vec<u64>> {
    qfs(field, k)[..2].to_vec()
}

/// Returns the `k` nonzero elements with the fewest ones in their bit matrix; among equals, the
/// smaller element comes first.
fn fewest_ones(field: &Field, k: usize) -> Vec<u64> {
    let mut left: Vec<u64> = (1..1 << field.w()).collect();
    let mut chosen = Vec::new();
    for _ in 0..k {
        let fewest = left.iter().map(|&a| ones(field, a)).min().expect("fewer than 2^w elements");
        let next = left.iter().position(|&a| ones(field, a) == fewest).expect("it was found");
        chosen.push(left.remove(next));
    }
    chosen
}

/// Number of ones of the w x w matrix of "multiply by `a`", whose column c is a·x^c.
pub fn ones(field: &Field, a: u64) -> u32 {
    (0..field.w()).map(|c| field.mul(a, 1 << c).count_ones()).sum()
}

fn ones_of_row(field: &Field, row: &[u64]) -> u32 {
    row.iter().map(|&entry| ones(field, entry)).sum()
}

#[cfg(test)]
mod tests {
    use super::{cauchy_good, cauchy_orig, ones, qfs};
    use crate::field::Field;

    /// GF(8) modulo x^3 + x + 1, where the inverses of 1 to 7 are 1, 5, 6, 7, 2, 3, 4.
    #[test]
    fn cauchy_by_hand() {
        let field = Field::new(3, 0b1011);
        assert_eq!(cauchy_orig(&field, 2, 3), [[6, 7], [5, 2], [1, 3]].map(Vec::from));
    }

    /// In GF(4), the bit matrix of 1 has two ones; those of 2 and 3 have three.
    #[test]
    fn the_best_two_rows_by_hand() {
        let field = Field::new(2, 0b111);
        assert_eq!([1, 2, 3].map(|a| ones(&field, a)), [2, 3, 3]);
        assert_eq!(cauchy_good(&field, 3, 2), [[1, 1, 1], [1, 2, 3]].map(Vec::from));
    }

    #[test]
    fn triple_parity_by_hand() {
        let field = Field::new(4, 0x13);
        let rows = [[1, 1, 1, 1], [1, 2, 4, 8], [1, 4, 3, 12]];
        assert_eq!(qfs(&field, 4), rows.map(Vec::from));
    }
}
