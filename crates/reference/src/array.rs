//! RDP, EVENODD, STAR and X-Code: parities by XOR along rows and diagonals, from their definitions.
//!
//! RDP and EVENODD see a stripe as a table of p - 1 rows, p prime, with one column for each node.
//! Shards are in the packet layout with w = p - 1: row r of a column is packet r of a strip. Cell
//! (r, c) lies on diagonal (r + c) mod p. There are p diagonals but room for only p - 1 parities.
//! The two codes differ in how they treat diagonal p - 1. RDP leaves it out, and its other
//! diagonals include the row parity. EVENODD adds its sum, S, to all the others. STAR is EVENODD
//! with a third parity, which is the second one's mirror image. X-Code has a table of n rows, n
//! prime, whose last two rows are parity, so that every node holds data and parity.
//!
//! A *shortened* code has fewer data nodes than p allows; the missing columns are zero. RDP drops
//! its first columns, EVENODD and STAR their last. Paritas never changes this choice.
//!
//! Sources: Corbett et al., "Row-Diagonal Parity for Double Disk Failure Correction", FAST 2004;
//! Blaum, Brady, Bruck and Menon, "EVENODD: an efficient scheme for tolerating double disk failures
//! in RAID architectures", IEEE Transactions on Computers 44(2), 1995; Huang and Xu, "STAR: an
//! efficient coding scheme for correcting triple storage node failures", FAST 2005; Xu and Bruck,
//! "X-Code: MDS array codes with optimal encoding", IEEE Transactions on Information Theory 45(1),
//! 1999.

/// Returns the row parity and the diagonal parity of RDP, for 1 to `p` - 1 data shards.
///
/// Columns 0 to p - 2 are data: shard j of k is column p - 1 - k + j. Column p - 1 is the row
/// parity. Cell i of the diagonal parity is the sum of diagonal i over columns 0 to p - 1.
///
/// # Panics
///
/// If `p` is not prime, if the number of shards is out of range, or if their lengths differ or are
/// not a multiple of (`p` - 1) x `packet` bytes.
pub fn rdp(p: usize, data: &[Vec<u8>], packet: usize) -> [Vec<u8>; 2] {
    check(p, p.saturating_sub(1), data, packet);
    let dropped = vec![vec![0; data[0].len()]; p - 1 - data.len()];
    let columns = [&dropped, data].concat();
    let mut table = Table { rows: p - 1, packet, columns };
    let row_parity = table.shard(|strip, r| table.row(strip, r));
    table.columns.push(row_parity.clone());
    let diagonal_parity = table.shard(|strip, i| table.diagonal(strip, p, i));
    [row_parity, diagonal_parity]
}

/// Returns the row parity and the diagonal parity of EVENODD, for 1 to `p` data shards.
///
/// Shard j is column j. Cell i of the diagonal parity is the sum of diagonal i over the data
/// columns plus S, the sum of diagonal p - 1. (With p = 2 both parities are equal: the code
/// corrects any two losses only from p = 3 on.)
///
/// # Panics
///
/// If `p` is not prime, if the number of shards is out of range, or if their lengths differ or are
/// not a multiple of (`p` - 1) x `packet` bytes.
pub fn evenodd(p: usize, data: &[Vec<u8>], packet: usize) -> [Vec<u8>; 2] {
    let [row_parity, diagonal_parity, _] = star(p, data, packet);
    [row_parity, diagonal_parity]
}

/// Returns the three parities of STAR, for 1 to `p` data shards.
///
/// The first two are those of [`evenodd`]. Cell i of the third is the sum of the cells with
/// row - column = i modulo p plus S', the sum of the cells with row - column = p - 1.
///
/// # Panics
///
/// As [`evenodd`] does.
pub fn star(p: usize, data: &[Vec<u8>], packet: usize) -> [Vec<u8>; 3] {
    check(p, p, data, packet);
    let columns = data.to_vec();
    let table = Table { rows: p - 1, packet, columns };
    let row_parity = table.shard(|strip, r| table.row(strip, r));
    let diagonal_parity = table.shard(|strip, i| {
        let s = table.diagonal(strip, p, p - 1);
        xor(&s, &table.diagonal(strip, p, i))
    });
    let mirrored = |strip, d| table.sum(strip, |row, column| (row + p - column) % p == d);
    let mirrored_parity = table.shard(|strip, i| xor(&mirrored(strip, p - 1), &mirrored(strip, i)));
    [row_parity, diagonal_parity, mirrored_parity]
}

/// Returns, for each of n nodes, the two rows of X-Code parity that the node stores below its n - 2
/// rows of `data`.
///
/// Data cell (r, c) goes into the first parity of node c - r - 2 and the second of node c + r + 2,
/// modulo n.
///
/// # Panics
///
/// If the number of shards is not an odd prime, or if their lengths differ or are not a multiple of
/// (n - 2) x `packet` bytes.
pub fn xcode(data: &[Vec<u8>], packet: usize) -> Vec<Vec<u8>> {
    let n = data.len();
    assert!(n > 2, "{n} nodes");
    check_shards(n, data, (n - 2) * packet);
    let table = Table { rows: n - 2, packet, columns: data.to_vec() };
    let strips = data[0].len() / ((n - 2) * packet);
    let of_node = |node: usize| {
        let first = |strip| table.sum(strip, |r, c| (c + 2 * n - r - 2) % n == node);
        let second = |strip| table.sum(strip, |r, c| (c + r + 2) % n == node);
        (0..strips).flat_map(|strip| [first(strip), second(strip)].concat()).collect()
    };
    (0..n).map(of_node).collect()
}

/// Panics under the conditions that the public functions document.
fn check(p: usize, most: usize, data: &[Vec<u8>], packet: usize) {
    assert!(
        (1..=most).contains(&data.len()),
        "{} data shards; p = {p} allows 1 to {most}",
        data.len()
    );
    check_shards(p, data, (p - 1) * packet);
}

/// Panics unless `p` is prime and all shards have the same number of strips.
pub(crate) fn check_shards(p: usize, data: &[Vec<u8>], strip: usize) {
    let prime = p >= 2 && (2..p).all(|divisor| !p.is_multiple_of(divisor));
    assert!(prime, "{p} is not a prime");
    check_lengths(data, strip);
}

/// Panics unless all shards have the same number of strips of `strip` bytes.
pub(crate) fn check_lengths(data: &[Vec<u8>], strip: usize) {
    assert!(
        strip > 0 && data[0].len().is_multiple_of(strip),
        "a shard of {} bytes is not a run of strips of {strip} bytes",
        data[0].len()
    );
    let equal = data.iter().all(|shard| shard.len() == data[0].len());
    assert!(equal, "shards of equal length");
}

/// The stripes of a code: one column for each shard, a packet in each cell.
pub(crate) struct Table {
    pub(crate) rows: usize,
    pub(crate) packet: usize,
    pub(crate) columns: Vec<Vec<u8>>,
}

impl Table {
    fn cell(&self, strip: usize, r: usize, c: usize) -> &[u8] {
        let start = (strip * self.rows + r) * self.packet;
        &self.columns[c][start..start + self.packet]
    }

    /// The sum of the cells of row `r`.
    pub(crate) fn row(&self, strip: usize, r: usize) -> Vec<u8> {
        self.sum(strip, |row, _| row == r)
    }

    /// The sum of the cells of diagonal `d` of `p`.
    fn diagonal(&self, strip: usize, p: usize, d: usize) -> Vec<u8> {
        self.sum(strip, |row, column| (row + column) % p == d)
    }

    /// The sum of the cells for which `wanted(row, column)` is true.
    pub(crate) fn sum(&self, strip: usize, wanted: impl Fn(usize, usize) -> bool) -> Vec<u8> {
        let mut sum = vec![0; self.packet];
        for c in 0..self.columns.len() {
            for r in (0..self.rows).filter(|&r| wanted(r, c)) {
                sum = xor(&sum, self.cell(strip, r, c));
            }
        }
        sum
    }

    /// Returns the shard whose packet `r` of each strip is `cell(strip, r)`.
    pub(crate) fn shard(&self, cell: impl Fn(usize, usize) -> Vec<u8>) -> Vec<u8> {
        let rows = self.rows;
        let strips = self.columns[0].len() / (rows * self.packet);
        (0..strips * rows).flat_map(|packet| cell(packet / rows, packet % rows)).collect()
    }
}

fn xor(a: &[u8], b: &[u8]) -> Vec<u8> {
    a.iter().zip(b).map(|(a, b)| a ^ b).collect()
}

#[cfg(test)]
mod tests {
    use super::{evenodd, rdp, star, xcode};

    /// Columns a, b, and the row parity a + b. Diagonal 0 holds a0 and (a + b)1, diagonal 1
    /// holds a1 and b0: 1 ^ 10 and 2 ^ 4.
    #[test]
    fn rdp_of_three_by_hand() {
        let data = [vec![1, 2], vec![4, 8]];
        assert_eq!(rdp(3, &data, 1), [[5, 10], [11, 6]]);
    }

    /// The single shard is column 1, because column 0 is dropped: diagonal 0 holds only (1, 2),
    /// which is b1, and diagonal 1 only (0, 1), which is b0.
    #[test]
    fn rdp_shortened_drops_its_first_column() {
        assert_eq!(rdp(3, &[vec![4, 8]], 1), [[4, 8], [8, 4]]);
    }

    /// S = b1 + c0 = 24; Q0 = S + a0 + c1, Q1 = S + a1 + b0.
    #[test]
    fn evenodd_of_three_by_hand() {
        let data = [vec![1, 2], vec![4, 8], vec![16, 32]];
        assert_eq!(evenodd(3, &data, 1), [[21, 42], [57, 30]]);
    }

    /// Without column c, S = b1 = 8, Q0 = S + a0, Q1 = S + a1 + b0.
    #[test]
    fn evenodd_shortened_drops_its_last_column() {
        let data = [vec![1, 2], vec![4, 8]];
        assert_eq!(evenodd(3, &data, 1), [[5, 10], [9, 14]]);
    }

    /// S' = b0 + c1 = 36, because its cell a2 would be below the table. R0 = S' + a0 + b1, because
    /// c2 is below it, and R1 = S' + a1 + c0, because b2 is.
    #[test]
    fn star_of_three_by_hand() {
        let data = [vec![1, 2], vec![4, 8], vec![16, 32]];
        assert_eq!(star(3, &data, 1), [vec![21, 42], vec![57, 30], vec![45, 54]]);
    }

    /// One row of data; node 0 gets the cells of nodes 2 and -2 = 1, and so on.
    #[test]
    fn xcode_of_three_by_hand() {
        let data = [vec![1, 4], vec![2, 5], vec![3, 6]];
        assert_eq!(xcode(&data, 1), [[3, 2, 6, 5], [1, 3, 4, 6], [2, 1, 5, 4]]);
    }

    /// Packets have two bytes. The first strip holds the data of `rdp_of_three_by_hand` in the
    /// first byte of each packet. The second strip is zero except for a1 = 7 in the second byte:
    /// row parity (0, 7); diagonal 0 has (a + b)1 = 7, diagonal 1 has a1 = 7.
    #[test]
    fn strips_and_bytes_do_not_mix() {
        let a = vec![1, 0, 2, 0, 0, 0, 0, 7];
        let b = vec![4, 0, 8, 0, 0, 0, 0, 0];
        let rows = vec![5, 0, 10, 0, 0, 0, 0, 7];
        let diagonals = vec![11, 0, 6, 0, 0, 7, 0, 7];
        assert_eq!(rdp(3, &[a, b], 2), [rows, diagonals]);
    }

    #[test]
    #[should_panic(expected = "9 is not a prime")]
    fn p_is_prime() {
        rdp(9, &[vec![0; 8]], 1);
    }

    #[test]
    #[should_panic(expected = "p = 3 allows 1 to 2")]
    fn rdp_has_room_for_one_column_less() {
        rdp(3, &vec![vec![0; 2]; 3], 1);
    }
}
