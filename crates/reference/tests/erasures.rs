//! Every erasure pattern of small Cauchy codes, in both layouts.
//!
//! The oracle is the data itself: after up to m losses, every lost shard must come back unchanged;
//! more losses must be refused. Other tests fix the bytes of the parity.

use paritas_reference::field::Field;
use paritas_reference::matrix::{NotEnough, cauchy};
use paritas_reference::{packets, words};

/// Returns data with a prime period, so that no two symbols, packets or shards line up.
fn data(k: usize, len: usize) -> Vec<Vec<u8>> {
    let mut bytes = (0..251u8).map(|i| i.wrapping_mul(167) ^ 0x5A).cycle();
    (0..k).map(|_| bytes.by_ref().take(len).collect()).collect()
}

/// Erases every subset of `shards` (data first) and passes the other shards to `reconstruct`.
fn check_every_pattern(
    shards: &[Vec<u8>],
    m: usize,
    reconstruct: impl Fn(&mut [Option<Vec<u8>>]) -> Result<(), NotEnough>,
) {
    let n = shards.len();
    for pattern in 0..1u32 << n {
        let survives = |i: usize| (pattern >> i) & 1 == 0;
        let left: Vec<_> = (0..n).map(|i| survives(i).then(|| shards[i].clone())).collect();
        let mut work = left.clone();
        let lost = pattern.count_ones() as usize;
        if lost <= m {
            assert_eq!(reconstruct(&mut work), Ok(()), "pattern {pattern:b}");
            assert!(work.iter().flatten().eq(shards), "pattern {pattern:b}");
        } else {
            let tolerable = m;
            assert_eq!(reconstruct(&mut work), Err(NotEnough { lost, tolerable }));
            assert_eq!(work, left, "a refusal leaves shards as they were");
        }
    }
}

#[test]
fn packets_survive_every_pattern() {
    let fields = [(3, 0b1011), (4, 0x13), (5, 0x25), (8, 0x11D), (32, 0x1_0040_0007)];
    for (w, polynomial) in fields {
        let field = Field::new(w, polynomial);
        for (k, m, packet) in [(1, 2, 1), (3, 2, 4), (4, 3, 3), (5, 1, 2)] {
            let points: Vec<u64> = (0..(k + m) as u64).collect();
            let coefficients = cauchy(&field, &points, k);
            let mut shards = data(k, 2 * w as usize * packet);
            shards.extend(packets::encode(&field, &coefficients, &shards, packet));
            check_every_pattern(&shards, m, |shards| {
                packets::reconstruct(&field, &coefficients, shards, packet)
            });
        }
    }
}

#[test]
fn words_survive_every_pattern() {
    for (w, polynomial) in [(8, 0x11D), (16, 0x1100B), (32, 0x1_0040_0007)] {
        let field = Field::new(w, polynomial);
        for (k, m) in [(1, 2), (3, 2), (4, 3), (5, 1)] {
            // Points with high bits set, so that wide words meet wide coefficients.
            let points: Vec<u64> = (0..(k + m) as u64).map(|i| (i << (w - 4)) | i).collect();
            let coefficients = cauchy(&field, &points, k);
            let mut shards = data(k, 24);
            shards.extend(words::encode(&field, &coefficients, &shards));
            check_every_pattern(&shards, m, |shards| {
                words::reconstruct(&field, &coefficients, shards)
            });
        }
    }
}

/// With coefficients 1, each parity is a copy of the one data shard. A damaged parity contradicts
/// the data: the data are used, because they come first, and no present shard is rewritten.
#[test]
fn present_shards_stay_as_they_are() {
    let (field, copies) = (Field::new(8, 0x11D), [vec![1], vec![1]]);
    let shards = [Some(vec![7; 8]), Some(vec![9; 8]), None];
    let expected = [7, 9, 7].map(|byte| Some(vec![byte; 8]));
    let mut work = shards.clone();
    words::reconstruct(&field, &copies, &mut work).unwrap();
    assert_eq!(work, expected);
    let mut work = shards.clone();
    packets::reconstruct(&field, &copies, &mut work, 1).unwrap();
    assert_eq!(work, expected);
}

/// With w = 8, a strip of one-byte packets is an 8 x 8 matrix of bits, and the words that hold
/// the same symbols are its transpose. The two layouts must agree on the parity.
#[test]
fn words_are_transposed_packets() {
    let field = Field::new(8, 0x11D);
    let coefficients = cauchy(&field, &[1, 50, 200, 7, 99], 3);
    let data = data(3, 8 * 6);
    let transposed: Vec<_> = data.iter().map(|shard| transpose(shard)).collect();
    let parity = packets::encode(&field, &coefficients, &data, 1);
    let expected: Vec<_> = parity.iter().map(|shard| transpose(shard)).collect();
    assert_eq!(words::encode(&field, &coefficients, &transposed), expected);
}

/// Transposes each block of 8 bytes as an 8 x 8 matrix of bits.
fn transpose(shard: &[u8]) -> Vec<u8> {
    let mut mirrored = vec![0; shard.len()];
    for (byte, value) in shard.iter().enumerate() {
        for bit in (0..8).filter(|bit| value & (1 << bit) != 0) {
            mirrored[byte / 8 * 8 + bit] |= 1 << (byte % 8);
        }
    }
    mirrored
}
