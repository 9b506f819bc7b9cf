//! Long codes: parity that is stored, and what it repairs.

use paritas::{ErrorKind, LongCode};

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
        let mut made = vec![vec![0; length]; parity];
        let rows: Vec<usize> = (0..parity).collect();
        code.add(&rows, 0, &slices(&blocks), &mut targets(&mut made), 1).unwrap();
        Self { code, data: blocks, parity: made }
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
fn what_is_missing_is_said() {
    let code = LongCode::new(100, 10).unwrap();
    let error = code.solve(&[1, 2, 3, 4, 5], &[7, 8]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotEnough);
    assert!(error.to_string().contains("3 more are needed"), "{error}");
    assert!(code.solve(&[100], &[7]).is_err() && code.solve(&[1], &[10]).is_err());
    assert!(code.solve(&[1, 1], &[7, 8]).is_err() && code.solve(&[1], &[8, 8]).is_err());
    assert!(LongCode::new(0, 1).is_err() && LongCode::new(65_536, 1).is_err());
}
