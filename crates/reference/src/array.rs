//! RDP and EVENODD: two parities by XOR along rows and diagonals, from their definitions.
//!
//! Both see a stripe as a table of p - 1 rows, p prime, with one column a node. Shards are in
//! the packet layout with w = p - 1: row r of a column is packet r of a strip. Cell (r, c) lies on
//! diagonal (r + c) mod p. There are p diagonals and room for p - 1 parities; what becomes of
//! diagonal p - 1 is the difference between the two codes. RDP leaves it out and lets the other
//! diagonals run through the row parity too. EVENODD adds its sum, S, to all the others.
//!
//! A *shortened* code has fewer data nodes than p allows; the missing columns are zero. RDP drops
//! its first columns and EVENODD its last, as the design fixes for Paritas for ever.
//!
//! Sources: Corbett et al., "Row-Diagonal Parity for Double Disk Failure Correction", FAST 2004;
//! Blaum, Brady, Bruck and Menon, "EVENODD: an efficient scheme for tolerating double disk
//! failures in RAID architectures", IEEE Transactions on Computers 44(2), 1995.

/// The row parity and the diagonal parity of RDP, for 1 to `p` - 1 data shards.
///
/// Columns 0 to p - 2 are data, shard j of k in column p - 1 - k + j; column p - 1 is the row
/// parity. Cell i of the diagonal parity is the sum of diagonal i over columns 0 to p - 1.
///
/// # Panics
///
/// Unless `p` is prime, the number of shards fits, and all have one length, a multiple of
/// (`p` - 1) x `packet` bytes.
pub fn rdp(p: usize, data: &[Vec<u8>], packet: usize) -> [Vec<u8>; 2] {
    check(p, p.saturating_sub(1), data, packet);
    let dropped = vec![vec![0; data[0].len()]; p - 1 - data.len()];
    let columns = [&dropped, data].concat();
    let mut table = Table { p, packet, columns };
    let row_parity = table.shard(|strip, r| table.row(strip, r));
    table.columns.push(row_parity.clone());
    let diagonal_parity = table.shard(|strip, i| table.diagonal(strip, i));
    [row_parity, diagonal_parity]
}

/// The row parity and the diagonal parity of EVENODD, for 1 to `p` data shards.
///
/// Shard j is column j. Cell i of the diagonal parity is the sum of diagonal i over the data
/// columns plus S, the sum of diagonal p - 1. (With p = 2 both parities are the same: the code
/// corrects any two losses from p = 3 on.)
///
/// # Panics
///
/// Unless `p` is prime, the number of shards fits, and all have one length, a multiple of
/// (`p` - 1) x `packet` bytes.
pub fn evenodd(p: usize, data: &[Vec<u8>], packet: usize) -> [Vec<u8>; 2] {
    check(p, p, data, packet);
    let columns = data.to_vec();
    let table = Table { p, packet, columns };
    let row_parity = table.shard(|strip, r| table.row(strip, r));
    let diagonal_parity = table.shard(|strip, i| {
        let s = table.diagonal(strip, p - 1);
        xor(&s, &table.diagonal(strip, i))
    });
    [row_parity, diagonal_parity]
}

/// Panics where the public functions say so.
fn check(p: usize, most: usize, data: &[Vec<u8>], packet: usize) {
    let prime = p >= 2 && (2..p).all(|divisor| !p.is_multiple_of(divisor));
    assert!(prime, "{p} is not a prime");
    assert!(
        (1..=most).contains(&data.len()),
        "{} data shards; p = {p} allows 1 to {most}",
        data.len()
    );
    let strip = (p - 1) * packet;
    assert!(
        strip > 0 && data[0].len().is_multiple_of(strip),
        "a shard of {} bytes is not a run of strips of {strip} bytes",
        data[0].len()
    );
    let equal = data.iter().all(|shard| shard.len() == data[0].len());
    assert!(equal, "shards of equal length");
}

/// The stripes of a code: p - 1 rows, one column a shard, a packet in each cell.
struct Table {
    p: usize,
    packet: usize,
    columns: Vec<Vec<u8>>,
}

impl Table {
    fn cell(&self, strip: usize, r: usize, c: usize) -> &[u8] {
        let start = (strip * (self.p - 1) + r) * self.packet;
        &self.columns[c][start..start + self.packet]
    }

    /// The sum of the cells of row `r`.
    fn row(&self, strip: usize, r: usize) -> Vec<u8> {
        self.sum(strip, |row, _| row == r)
    }

    /// The sum of the cells of diagonal `d`.
    fn diagonal(&self, strip: usize, d: usize) -> Vec<u8> {
        self.sum(strip, |row, column| (row + column) % self.p == d)
    }

    /// The sum of the cells at those (row, column) that `wanted` picks.
    fn sum(&self, strip: usize, wanted: impl Fn(usize, usize) -> bool) -> Vec<u8> {
        let mut sum = vec![0; self.packet];
        for c in 0..self.columns.len() {
            for r in (0..self.p - 1).filter(|&r| wanted(r, c)) {
                sum = xor(&sum, self.cell(strip, r, c));
            }
        }
        sum
    }

    /// The shard whose packet `r` of each strip is `cell(strip, r)`.
    fn shard(&self, cell: impl Fn(usize, usize) -> Vec<u8>) -> Vec<u8> {
        let rows = self.p - 1;
        let strips = self.columns[0].len() / (rows * self.packet);
        (0..strips * rows).flat_map(|packet| cell(packet / rows, packet % rows)).collect()
    }
}

fn xor(a: &[u8], b: &[u8]) -> Vec<u8> {
    a.iter().zip(b).map(|(a, b)| a ^ b).collect()
}

#[cfg(test)]
mod tests {
    use super::{evenodd, rdp};

    /// Columns a, b, and the row parity a + b. Diagonal 0 holds a0 and (a + b)1, diagonal 1
    /// holds a1 and b0: 1 ^ 10 and 2 ^ 4.
    #[test]
    fn rdp_of_three_by_hand() {
        let data = [vec![1, 2], vec![4, 8]];
        assert_eq!(rdp(3, &data, 1), [[5, 10], [11, 6]]);
    }

    /// One shard is column 1, column 0 being dropped: diagonal 0 holds only (1, 2), which is b1,
    /// and diagonal 1 only (0, 1), which is b0.
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

    /// The stripe of `rdp_of_three_by_hand`, then an empty one with a1 = 7, in the second bytes
    /// of packets of two: row parity (0, 7); diagonal 0 has (a + b)1 = 7, diagonal 1 has a1 = 7.
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
