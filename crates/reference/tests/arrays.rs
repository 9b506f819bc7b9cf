//! Array codes: any losses up to the tolerance are recoverable; RDP and EVENODD agree with their
//! algebra.
//!
//! The first tests let the code tell what it computes. Every data cell is a packet of 8 bytes
//! with one bit set, a different one for each, so a parity packet comes out as the *set* of data
//! cells it sums. Recoverability is then the rank of a matrix over GF(2), found by brute force.
//!
//! The last tests use the other description of the codes. Take a column as the polynomial
//! whose coefficient of x^r is its cell r; going along the diagonals is multiplication by x^c.
//! Where 1 + x + ... + x^(p-1) is irreducible (p = 3, 5, 11, 13), these are elements of
//! GF(2^(p-1)), and the field codec must give the bytes that rows and diagonals give.

use paritas_reference::array::{evenodd, rdp, star, xcode};
use paritas_reference::density::{blaum_roth, liber8tion, liberation};
use paritas_reference::field::Field;
use paritas_reference::packets;

/// The cells of a shard whose packets are sets.
fn sets(shard: &[u8]) -> Vec<u64> {
    shard.chunks_exact(8).map(|packet| u64::from_le_bytes(packet.try_into().unwrap())).collect()
}

/// k data shards, in which each cell is the set that contains only this cell.
fn unit_shards(k: usize, rows: usize) -> Vec<Vec<u8>> {
    let unit = |cell: usize| (1u64 << cell).to_le_bytes();
    (0..k).map(|j| (0..rows).flat_map(|r| unit(j * rows + r)).collect()).collect()
}

/// For each of k + m nodes the cells it stores, each as a set of data cells.
fn cells_as_sets<const M: usize>(
    code: impl Fn(&[Vec<u8>]) -> [Vec<u8>; M],
    rows: usize,
    k: usize,
) -> Vec<Vec<u64>> {
    let data = unit_shards(k, rows);
    let parity = code(&data);
    data.iter().chain(&parity).map(|shard| sets(shard)).collect()
}

/// The rank over GF(2) of rows that are given as bit sets.
fn rank(rows: impl Iterator<Item = u64>) -> usize {
    let mut basis: Vec<u64> = Vec::new();
    for row in rows {
        // The smaller of the two lacks the member's leading bit, so `rest` ends without the leading
        // bit of any member.
        let rest = basis.iter().fold(row, |rest, member| rest.min(rest ^ member));
        if rest != 0 {
            basis.push(rest);
        }
    }
    basis.len()
}

/// Whether the other nodes determine all `cells` data cells, whichever `losses` nodes are lost.
fn survives(nodes: &[Vec<u64>], cells: usize, losses: u32) -> bool {
    let patterns = (0..1u32 << nodes.len()).filter(|pattern| pattern.count_ones() == losses);
    patterns.into_iter().all(|pattern| {
        let left = nodes.iter().enumerate().filter(|(i, _)| pattern >> i & 1 == 0);
        rank(left.flat_map(|(_, cells)| cells.iter().copied())) == cells
    })
}

fn check_any_losses<const M: usize>(
    what: &str,
    code: impl Fn(&[Vec<u8>]) -> [Vec<u8>; M],
    rows: usize,
    k: usize,
) {
    let nodes = cells_as_sets(code, rows, k);
    assert!(survives(&nodes, k * rows, M as u32), "{what}, {rows} rows, k {k}");
    assert!(!survives(&nodes, k * rows, M as u32 + 1), "{what}, {rows} rows, k {k}: too good");
}

#[test]
fn codes_over_a_prime_survive_any_losses() {
    for p in [3, 5, 7] {
        for k in 1..p {
            check_any_losses("rdp", |data| rdp(p, data, 8), p - 1, k);
            check_any_losses("blaum_roth", |data| blaum_roth(p, data, 8), p - 1, k);
        }
        for k in 1..=p {
            check_any_losses("evenodd", |data| evenodd(p, data, 8), p - 1, k);
            check_any_losses("star", |data| star(p, data, 8), p - 1, k);
            check_any_losses("liberation", |data| liberation(p, data, 8), p, k);
        }
    }
}

#[test]
fn liber8tion_survives_any_two_losses() {
    (1..=8).for_each(|k| check_any_losses("liber8tion", |data| liber8tion(data, 8), 8, k));
}

#[test]
fn xcode_survives_any_two_losses() {
    for n in [3, 5, 7] {
        let data = unit_shards(n, n - 2);
        let parity = xcode(&data, 8);
        let nodes: Vec<Vec<u64>> =
            data.iter().zip(&parity).map(|(d, p)| [sets(d), sets(p)].concat()).collect();
        assert!(survives(&nodes, n * (n - 2), 2) && !survives(&nodes, n * (n - 2), 3), "n {n}");
    }
}

/// The check can fail: with p = 2 both parities of EVENODD are the same.
#[test]
#[should_panic(expected = "evenodd, 1 rows, k 2")]
fn evenodd_of_two_does_not() {
    check_any_losses("evenodd", |data| evenodd(2, data, 8), 1, 2);
}

/// Rows and diagonals of the full table of p = 5, listed by hand.
#[test]
fn evenodd_of_five_by_hand() {
    let nodes = cells_as_sets(|data| evenodd(5, data, 8), 4, 5);
    // Cell (r, c) is bit 4 c + r.
    let set = |cells: &[(u64, u64)]| cells.iter().map(|(r, c)| 1u64 << (4 * c + r)).sum();
    let s: u64 = set(&[(3, 1), (2, 2), (1, 3), (0, 4)]);
    let q0: u64 = set(&[(0, 0), (3, 2), (2, 3), (1, 4)]);
    let q3: u64 = set(&[(3, 0), (2, 1), (1, 2), (0, 3)]);
    assert_eq!(nodes[5][2], set(&[(2, 0), (2, 1), (2, 2), (2, 3), (2, 4)]));
    assert_eq!((nodes[6][0], nodes[6][3]), (s | q0, s | q3));
}

const IRREDUCIBLE: [usize; 4] = [3, 5, 11, 13];

/// GF(2^(p-1)) modulo 1 + x + ... + x^(p-1), and the first `count` powers of x in it.
fn ring(p: usize, count: usize) -> (Field, Vec<u64>) {
    let field = Field::new(p as u32 - 1, (1 << p) - 1);
    let powers = (0..count as u64).map(|c| field.pow(2, c));
    (field, powers.collect())
}

fn data(k: usize, len: usize) -> Vec<Vec<u8>> {
    let mut bytes = (0..251u8).map(|i| i.wrapping_mul(113) ^ 0xC3).cycle();
    (0..k).map(|_| bytes.by_ref().take(len).collect()).collect()
}

/// Adding S to every cell is the same as reducing x^(p-1) to 1 + x + ... + x^(p-2), so Q is the sum
/// of x^c times column c.
#[test]
fn evenodd_is_a_code_over_the_ring() {
    for p in IRREDUCIBLE {
        for k in [1, p - 1, p] {
            let (field, powers) = ring(p, k);
            let data = data(k, 2 * (p - 1) * 3);
            let expected = packets::encode(&field, &[vec![1; k], powers], &data, 3);
            assert_eq!(evenodd(p, &data, 3).to_vec(), expected, "p {p} k {k}");
        }
    }
}

/// RDP leaves diagonal p - 1 out instead. But each row of its table sums to 0, and so do all p
/// diagonals together: the missing one is the sum of the others, and adding it to each
/// gives the ring's product. The row parity, column p - 1, folds x^(p-1) into every coefficient.
#[test]
fn rdp_is_a_code_over_the_ring_less_a_diagonal() {
    for p in IRREDUCIBLE {
        for k in [1, p / 2, p - 1] {
            let (field, powers) = ring(p, p);
            let row = (p - 1 - k..p - 1).map(|c| field.add(powers[c], powers[p - 1]));
            let coefficients = [vec![1; k], row.collect()];
            let packet = 3;
            let data = data(k, (p - 1) * packet);
            let expected = packets::encode(&field, &coefficients, &data, packet);
            let [rows, mut diagonals] = rdp(p, &data, packet);
            let missing: Vec<u8> = (0..packet)
                .map(|j| (j..diagonals.len()).step_by(packet).fold(0, |s, i| s ^ diagonals[i]))
                .collect();
            for (i, byte) in diagonals.iter_mut().enumerate() {
                *byte ^= missing[i % packet];
            }
            assert_eq!(vec![rows, diagonals], expected, "p {p} k {k}");
        }
    }
}
