//! Minimal-density RAID-6: the Liberation, Blaum-Roth and Liber8tion codes.
//!
//! All are in the packet layout, and their first parity is the XOR of the data. They differ in the
//! second, Q. Its rows are diagonals of the table, as in EVENODD. But instead of EVENODD's S, as
//! few other cells as possible are added: one more cell for every column but the first.
//!
//! A code with fewer columns has the first columns of the full code.
//!
//! Sources: Plank, "The RAID-6 Liberation Codes", FAST 2008; Blaum and Roth, "On lowest density MDS
//! codes", IEEE Transactions on Information Theory 45(1), 1999; Plank, "The RAID-6 Liber8Tion
//! Code", International Journal of High Performance Computing Applications 23(3), 2009.

use crate::array::{Table, check_lengths, check_shards};

/// Returns the parities P and Q of the Liberation code with `w` rows, `w` an odd prime, for 1 to
/// `w` data shards.
///
/// Row i of Q is the sum of the cells (r, c) with r - c = i modulo w. If i = c(w - 1)/2 modulo w
/// for a column c > 0, row i also includes the cell of column c that is one row higher: (i + c - 1,
/// c).
///
/// # Panics
///
/// If `w` is not an odd prime, if the number of shards is out of range, or if their lengths differ
/// or are not a multiple of `w` x `packet` bytes.
pub fn liberation(w: usize, data: &[Vec<u8>], packet: usize) -> [Vec<u8>; 2] {
    assert!(w > 2, "w = {w} is not odd");
    check_shards(w, data, w * packet);
    let on_diagonal = |i: usize, r: usize, c: usize| r == (i + c) % w;
    let extra = |i: usize, r: usize, c: usize| {
        c > 0 && i == c * ((w - 1) / 2) % w && (r + 1) % w == (i + c) % w
    };
    parities(w, data, packet, |i, r, c| on_diagonal(i, r, c) || extra(i, r, c))
}

/// Returns the parities P and Q of the Blaum-Roth code with p - 1 rows, `p` an odd prime, for 1 to
/// p - 1 data shards.
///
/// Rows are counted from 1. Column c has the cells 1 to p - 1 and a virtual cell 0, which is not
/// stored. In column 0, cell 0 is never used; in the others it is the sum of cells c and c/2, where
/// halving is modulo p. Row i of Q is the sum of the cells (r, c) with r = i + c modulo p.
///
/// # Panics
///
/// If `p` is not an odd prime, if the number of shards is out of range, or if their lengths differ
/// or are not a multiple of (`p` - 1) x `packet` bytes.
pub fn blaum_roth(p: usize, data: &[Vec<u8>], packet: usize) -> [Vec<u8>; 2] {
    assert!(p > 2, "p = {p} is not odd");
    check_shards(p, data, (p - 1) * packet);
    let half = |c: usize| (1..p).find(|h| 2 * h % p == c).unwrap_or(0);
    parities(p - 1, data, packet, |i, r, c| match (i + 1 + c) % p {
        0 => r + 1 == c || r + 1 == half(c),
        row => r + 1 == row,
    })
}

/// The Q rows of the Liber8tion code: bit r of byte (c, i) says whether cell r of column c is in
/// row i. There is no formula for them; Plank found them by search.
pub const LIBER8TION: [[u8; 8]; 8] = [
    [0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80],
    [0x80, 0x08, 0x01, 0x04, 0xC0, 0x02, 0x20, 0x10],
    [0x40, 0x0C, 0x10, 0x01, 0x80, 0x08, 0x02, 0x20],
    [0x04, 0x20, 0x80, 0x40, 0x01, 0x18, 0x10, 0x02],
    [0x20, 0x40, 0x03, 0x80, 0x04, 0x10, 0x08, 0x01],
    [0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0x05],
    [0x08, 0x01, 0x40, 0x20, 0x02, 0x80, 0x30, 0x04],
    [0x10, 0x80, 0x02, 0x22, 0x08, 0x04, 0x01, 0x40],
];

/// Returns the parities P and Q of the Liber8tion code, for 1 to 8 data shards.
///
/// # Panics
///
/// If there are not 1 to 8 shards, or if their lengths differ or are not a multiple of 8 x `packet`
/// bytes.
pub fn liber8tion(data: &[Vec<u8>], packet: usize) -> [Vec<u8>; 2] {
    check_lengths(data, 8 * packet);
    parities(8, data, packet, |i, r, c| LIBER8TION[c][i] >> r & 1 == 1)
}

/// Returns P and Q. Row i of Q is the sum of the cells (r, c) for which `in_q(i, r, c)` is true.
fn parities(
    rows: usize,
    data: &[Vec<u8>],
    packet: usize,
    in_q: impl Fn(usize, usize, usize) -> bool,
) -> [Vec<u8>; 2] {
    assert!((1..=rows).contains(&data.len()), "{} data shards of {rows} rows", data.len());
    let table = Table { rows, packet, columns: data.to_vec() };
    let p = table.shard(|strip, r| table.row(strip, r));
    let q = table.shard(|strip, i| table.sum(strip, |r, c| in_q(i, r, c)));
    [p, q]
}

#[cfg(test)]
mod tests {
    use super::{blaum_roth, liber8tion, liberation};

    /// w = 3: Q0 = a0 + b1 + c2. Column c has its extra cell in row 2 * 1 mod 3 = 2, which is row
    /// 2 + 2 - 1 = 0 mod 3 of c; column b has it in row 1, which is row 1 of b.
    #[test]
    fn liberation_of_three_by_hand() {
        let data = [vec![1, 2, 4], vec![8, 16, 32], vec![64, 128, 0]];
        let q = [1 + 16, 2 + 32 + 16 + 64, 4 + 8 + 128 + 64];
        assert_eq!(liberation(3, &data, 1), [vec![73, 146, 36], q.to_vec()]);
    }

    /// p = 3: Q1 = a1 + b2; Q2 = a2 + cell 0 of b, which is b1 + b2 because half of 1 is 2.
    #[test]
    fn blaum_roth_of_three_by_hand() {
        assert_eq!(blaum_roth(3, &[vec![1, 2], vec![4, 8]], 1), [[5, 10], [9, 14]]);
    }

    #[test]
    fn liber8tion_of_one_is_a_mirror() {
        let data = vec![1, 2, 3, 4, 5, 6, 7, 8];
        assert_eq!(liber8tion(std::slice::from_ref(&data), 1), [data.clone(), data]);
    }
}
