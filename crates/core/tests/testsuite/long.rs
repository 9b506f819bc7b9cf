//! Long codes: stored parity, and the losses that it repairs.
//!
//! The expected numbers were computed by a program of a few lines in another language, from the
//! description in `define/tower.rs` and `define/long.rs`.

use crate::stored;
use crate::stored::LibraryCase;
use paritas::long::LongCode;
use paritas::{ErrorKind, Spec};

/// Returns `count` pseudo-random bytes (Marsaglia's xorshift).
fn bytes(count: usize, seed: u64) -> Vec<u8> {
    let mut state = (seed + 1).wrapping_mul(0x2545_F491_4F6C_DD1D);
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..count).map(|_| next()).collect()
}

/// Returns `chosen` of the numbers below `count`, ascending.
fn choose(count: usize, chosen: usize, seed: u64) -> Vec<usize> {
    let mut numbers: Vec<usize> = (0..count).collect();
    let random = bytes(8 * count, seed);
    for (i, word) in random.chunks_exact(8).enumerate().take(chosen) {
        let word = u64::from_le_bytes(word.try_into().unwrap());
        numbers.swap(i, i + (word % (count - i) as u64) as usize);
    }
    numbers.truncate(chosen);
    numbers.sort_unstable();
    numbers
}

/// A code with data, whose last block is short, and its parity.
struct World {
    code: LongCode,
    data: Vec<Vec<u8>>,
    parity: Vec<Vec<u8>>,
}

fn slices(blocks: &[Vec<u8>]) -> Vec<&[u8]> {
    blocks.iter().map(Vec::as_slice).collect()
}

fn targets(blocks: &mut [Vec<u8>]) -> Vec<&mut [u8]> {
    blocks.iter_mut().map(Vec::as_mut_slice).collect()
}

impl World {
    fn new(data: usize, parity: usize, length: usize, last: usize, seed: u64) -> Self {
        let code = LongCode::new(data, parity).unwrap();
        let mut blocks: Vec<Vec<u8>> = (0..data as u64)
            .map(|block| bytes(length, seed.wrapping_mul(1_000_003) + block))
            .collect();
        blocks[data - 1].truncate(last);
        Self::of(code, blocks, length)
    }

    fn of(code: LongCode, data: Vec<Vec<u8>>, length: usize) -> Self {
        let mut parity = vec![vec![0xEE; length]; code.parity()];
        code.encode(&slices(&data), &mut targets(&mut parity), 1).unwrap();
        let (rows, mut sums) =
            ((0..code.parity()).collect::<Vec<_>>(), vec![vec![0; length]; code.parity()]);
        code.add(&rows, 0, &slices(&data), &mut targets(&mut sums), 1).unwrap();
        assert_eq!(sums, parity);
        Self { code, data, parity }
    }

    /// Loses data and parity blocks, repairs the data, and compares.
    fn repair(&self, lost: &[usize], lost_parity: &[usize], threads: usize) {
        let rows: Vec<usize> =
            (0..self.code.parity()).filter(|row| !lost_parity.contains(row)).collect();
        let recovery = self.code.solve(lost, &rows).unwrap();
        let mut left = slices(&self.data);
        lost.iter().for_each(|&block| left[block] = &[]);
        let mut sums: Vec<Vec<u8>> =
            recovery.rows().iter().map(|&row| self.parity[row].clone()).collect();
        self.code.add(recovery.rows(), 0, &left, &mut targets(&mut sums), threads).unwrap();
        let mut made: Vec<Vec<u8>> =
            lost.iter().map(|&block| vec![0xEE; self.data[block].len()]).collect();
        recovery.recover(&slices(&sums), &mut targets(&mut made), threads).unwrap();
        for (&block, made) in lost.iter().zip(&made) {
            assert!(self.data[block] == *made, "block {block} of {lost:?}, {lost_parity:?}");
        }
    }
}

#[test]
fn every_pattern_of_a_small_code_is_repaired() {
    for (data, parity) in [(1, 1), (5, 1), (4, 2), (5, 3), (3, 5), (4, 4)] {
        let world = World::new(data, parity, 128, 77, 3);
        for pattern in 0_usize..1 << (data + parity) {
            if pattern.count_ones() as usize > parity {
                continue;
            }
            let gone = |range: std::ops::Range<usize>| -> Vec<usize> {
                range.filter(|bit| pattern >> bit & 1 == 1).collect()
            };
            let lost_parity: Vec<usize> =
                gone(data..data + parity).iter().map(|bit| bit - data).collect();
            world.repair(&gone(0..data), &lost_parity, 1);
        }
    }
}

#[test]
fn random_losses_are_repaired() {
    for (data, parity, seed) in [(40, 12, 1), (100, 16, 2), (33, 31, 3), (200, 3, 4)] {
        let world = World::new(data, parity, 256, 200, seed);
        for round in 0..4 {
            let lost_parity = choose(parity, round * parity / 5, seed + round as u64);
            let lost = choose(data, parity - lost_parity.len(), seed + 100 + round as u64);
            world.repair(&lost, &lost_parity, 1 + round % 2);
        }
    }
}

#[test]
fn errors_count_the_missing_blocks() {
    let code = LongCode::new(100, 10).unwrap();
    let error = code.solve(&[1, 2, 3, 4, 5], &[7, 8]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotEnough);
    assert!(error.to_string().contains("3 more are needed"), "{error}");
    assert!(code.solve(&[100], &[7]).is_err() && code.solve(&[1], &[10]).is_err());
    assert!(code.solve(&[1, 1], &[7, 8]).is_err() && code.solve(&[1], &[8, 8]).is_err());
    assert!(LongCode::new(0, 1).is_err() && LongCode::new(65_536, 1).is_err());
}

/// Returns the FNV-1a hash of bytes.
fn hash(bytes: impl IntoIterator<Item = u8>) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, step)
}

#[test]
fn coefficients_are_for_ever() {
    for (data, parity, expected) in
        [(40, 12, 0xD849_A865_C793_F0C5), (300, 100, 0xC694_EFB7_6C43_98D5)]
    {
        let code = LongCode::new(data, parity).unwrap();
        let cells = (0..parity).flat_map(|row| (0..data).map(move |column| (row, column)));
        let bytes =
            cells.flat_map(|(row, column)| code.coefficient(row, column).unwrap().to_le_bytes());
        assert_eq!(hash(bytes), expected, "{data} + {parity}");
        assert_eq!((code.coefficient(parity, 0), code.coefficient(0, data)), (None, None));
    }
}

#[test]
fn parity_is_for_ever() {
    let mut data = stored::data(5, 256);
    data[4].truncate(150);
    let mut parity = vec![vec![0; 256]; 3];
    let code = LongCode::new(5, 3).unwrap();
    code.add(&[0, 1, 2], 0, &slices(&data), &mut targets(&mut parity), 1).unwrap();
    let hashes: Vec<u64> = parity.iter().map(|block| hash(block.iter().copied())).collect();
    assert_eq!(hashes, [0xCECC_5139_42D0_ED8A, 0x4CFA_0932_13A5_6D3C, 0x08EC_297F_5CC6_E11A]);
    let first = 0xEBC7_E8BB_E01C_C418_613E_8515_34BE_1314_u128;
    assert_eq!(parity[0][..16], first.to_be_bytes());
}

/// Checks that blocks may come in batches of any size and order, and rows one by one.
#[test]
fn batches_add_up() {
    let world = World::new(150, 20, 256, 100, 9);
    let mut sums = vec![vec![0; 256]; 20];
    for (first, end) in [(97, 150), (0, 33), (33, 34), (34, 97)] {
        for (row, sum) in sums.iter_mut().enumerate() {
            let blocks = slices(&world.data[first..end]);
            world.code.add(&[row], first, &blocks, &mut [&mut sum[..]], 1).unwrap();
        }
    }
    assert!(sums == world.parity);
    assert!(
        world.code.add(&[0], 100, &slices(&world.data[..51]), &mut [&mut [0; 256]], 1).is_err()
    );
    assert!(world.code.add(&[0, 1], 0, &[], &mut [&mut [0; 256]], 1).is_err());
    let all = slices(&world.data);
    let mut parity = vec![vec![0; 256]; world.parity.len()];
    let error = world.code.encode(&all[1..], &mut targets(&mut parity), 1).unwrap_err();
    assert!(error.to_string().contains("the number of blocks that are read must be"), "{error}");
    parity[1].push(0);
    let error = world.code.encode(&all, &mut targets(&mut parity), 1).unwrap_err();
    assert!(
        error.to_string().contains("parity block 1 of those given must have 256 bytes"),
        "{error}"
    );
    assert!(world.code.add(&[0, 0], 0, &[], &mut [&mut [0; 128], &mut [0; 128]], 1).is_err());
    assert!(world.code.add(&[20], 0, &[], &mut [&mut [0; 128]], 1).is_err());
}

/// Damages a code of 10,000 + 1,000 blocks at random, up to its tolerance.
fn damage(world: &World, rounds: std::ops::Range<u64>) {
    let (data, parity) = (world.code.data(), world.code.parity());
    for round in rounds {
        let share = choose(parity + 1, 1, 7 * round + 1)[0];
        let lost_parity = choose(parity, share, 7 * round + 2);
        let most = parity - share;
        let less = if round % 2 == 0 { 0 } else { choose(most + 1, 1, 7 * round + 3)[0] };
        let count = most - less;
        let lost = match round % 3 {
            // A run of blocks, as of a lost folder.
            0 => {
                let first = choose(data - count + 1, 1, 7 * round + 4)[0];
                (first..first + count).collect()
            }
            _ => choose(data, count, 7 * round + 4),
        };
        world.repair(&lost, &lost_parity, 1);
    }
}

#[test]
fn a_large_code_is_repaired() {
    damage(&World::new(10_000, 1_000, 128, 5, 1), 0..6);
}

#[test]
#[ignore = "takes a minute; scripts/test-soak runs it"]
fn a_thousand_damages_are_repaired() {
    damage(&World::new(10_000, 1_000, 128, 5, 1), 0..1_000);
}

/// Plans the largest codes: their recovery takes a fixed number of transforms.
#[test]
fn the_largest_codes_are_solved() {
    for (data, parity) in [(65_535, 1), (32_768, 32_768), (61_440, 4_096)] {
        let code = LongCode::new(data, parity).unwrap();
        let lost: Vec<usize> = (0..parity).map(|number| number * (data / parity)).collect();
        let rows: Vec<usize> = (0..parity).collect();
        assert_eq!(code.solve(&lost, &rows).unwrap().rows(), rows);
    }
}

/// The parity that other people's libraries made of the data of `vectors/README.md`, and data that
/// is recovered from it.
#[test]
fn leopards_bytes_are_those_of_the_libraries() {
    let mut libraries = Vec::new();
    for case in stored::cases::<LibraryCase>("oracles/long.json") {
        let spec: Spec = case.spec.parse().unwrap();
        let number = |key| spec.text(key).unwrap().parse().unwrap();
        let (k, m): (usize, usize) = (number("k"), number("m"));
        let data = stored::data(k, case.length);
        let world = World::of(LongCode::leopard(k, m).unwrap(), data, case.length);
        case.parity.expect(&world.parity, &format!("{}: {spec}", case.library));
        world.repair(&choose(k, k.min(m), 1), &[], 1);
        libraries.push(case.library.split(' ').next().unwrap().to_owned());
    }
    for library in ["klauspost/reedsolomon", "reed-solomon-simd"] {
        assert!(libraries.iter().any(|name| name == library), "{library}");
    }
}
