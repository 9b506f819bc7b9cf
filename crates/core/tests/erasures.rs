//! Every family: every pattern of losses up to the tolerance is recovered, one loss more is
//! refused; exhaustively for small parameters, by property tests for larger ones.

mod common;

use common::{codec, encoded};
use paritas::Buffer::{Absent, Source, Target};
use paritas::define::erasure::combinations;
use paritas::{Codec, ErrorKind, KernelChoice};
use proptest::prelude::*;

/// Loses the given nodes, reconstructs them and compares.
fn lose(codec: &Codec, shards: &[Vec<u8>], lost: &[usize]) -> Result<(), paritas::Error> {
    let length = shards[0].len();
    let mut rebuilt = vec![vec![0xAA; length]; shards.len()];
    let mut buffers: Vec<_> = rebuilt
        .iter_mut()
        .zip(shards)
        .enumerate()
        .map(
            |(node, (target, shard))| {
                if lost.contains(&node) { Target(target) } else { Source(shard) }
            },
        )
        .collect();
    codec.reconstruct(&mut buffers)?;
    drop(buffers);
    for &node in lost {
        assert!(rebuilt[node] == shards[node], "{}: node {node} of {lost:?}", codec.code().spec());
    }
    Ok(())
}

/// Returns how many patterns were tried.
fn exhaust(spec: &str, packet: usize, stripes: usize) -> usize {
    let codec = codec(spec, packet, KernelChoice::Auto);
    let shards = encoded(&codec, stripes);
    let (nodes, tolerance) = (codec.code().node_count(), codec.code().tolerance());
    let mut tried = 0;
    for count in 1..=tolerance + 1 {
        for lost in combinations(nodes, count) {
            tried += 1;
            match lose(&codec, &shards, &lost) {
                Ok(()) => assert!(count <= tolerance, "{spec} recovered {lost:?}"),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::NotEnough, "{spec}: {error}");
                    assert!(count > tolerance, "{spec} lost {lost:?}: {error}");
                }
            }
        }
    }
    tried
}

#[test]
fn cauchy_up_to_8_and_4() {
    let mut tried = 0;
    for k in 1..=8 {
        for m in 1..=4 {
            tried += exhaust(&format!("{k}+{m}"), 32, 2);
        }
    }
    println!("cauchy: {tried} patterns of losses tried");
}

#[test]
fn rdp_up_to_12() {
    let tried: usize = (1..=12).map(|k| exhaust(&format!("rdp:k={k}"), 16, 2)).sum();
    println!("rdp: {tried} patterns of losses tried");
}

#[test]
fn evenodd_up_to_12() {
    let tried: usize = (1..=12).map(|k| exhaust(&format!("evenodd:k={k}"), 16, 2)).sum();
    println!("evenodd: {tried} patterns of losses tried");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn larger_cauchy(
        k in 1_usize..=32, m in 1_usize..=8, wider in 0_u32..=3, packet in 1_usize..=70,
        order in Just((0..40_usize).collect::<Vec<_>>()).prop_shuffle(), more in 0_usize..=1,
    ) {
        let w = ((k + m) as u32).next_power_of_two().trailing_zeros() + wider;
        let codec = codec(&format!("cauchy:k={k},m={m},w={w}"), packet, KernelChoice::Auto);
        let shards = encoded(&codec, 1);
        let lost: Vec<usize> = order.into_iter().filter(|&n| n < k + m).take(m + more).collect();
        prop_assert_eq!(lose(&codec, &shards, &lost).is_ok(), more == 0);
    }

    #[test]
    fn larger_arrays(
        k in 12_usize..=40, a in 0_usize..42, b in 0_usize..42, evenodd in any::<bool>(),
    ) {
        let family = if evenodd { "evenodd" } else { "rdp" };
        let codec = codec(&format!("{family}:k={k}"), 8, KernelChoice::Auto);
        let shards = encoded(&codec, 1);
        let mut lost = vec![a % (k + 2), b % (k + 2)];
        lost.sort_unstable();
        lost.dedup();
        prop_assert!(lose(&codec, &shards, &lost).is_ok());
    }
}

/// A degraded read needs only some nodes and wants only one.
#[test]
fn what_is_absent_is_neither_read_nor_made() {
    let codec = codec("cauchy:k=4,m=3", 64, KernelChoice::Auto);
    let shards = encoded(&codec, 3);
    let mut target = vec![0; shards[0].len()];
    let mut buffers = [
        Target(&mut target),
        Absent,
        Source(&shards[2]),
        Absent,
        Source(&shards[4]),
        Source(&shards[5]),
        Source(&shards[6]),
    ];
    codec.reconstruct(&mut buffers).unwrap();
    assert!(target == shards[0]);
}

#[test]
fn updates_equal_encoding_anew() {
    for spec in ["4+2", "cauchy:k=10,m=4,w=8", "rdp:k=5", "evenodd:k=7", "cauchy:k=1,m=1"] {
        let codec = codec(spec, 64, KernelChoice::Auto);
        let code = codec.code();
        let mut shards = encoded(&codec, 5);
        for node in code.nodes().filter(|&node| code.holds_data(node)) {
            let k = code.nodes().filter(|&node| code.holds_data(node)).count();
            let new = common::fill(100 + node.index(), shards[0].len());
            let old = std::mem::replace(&mut shards[node.index()], new.clone());
            let (data, parity) = shards.split_at_mut(k);
            let mut fresh = parity.to_vec();
            codec.update(node, &old, &new, &mut common::as_mut_slices(parity)).unwrap();
            codec.encode(&common::as_slices(data), &mut common::as_mut_slices(&mut fresh)).unwrap();
            assert!(parity == &fresh[..], "{spec}, node {}", node.index());
        }
    }
}

#[test]
fn wrong_buffers_are_refused() {
    let codec = codec("4+2", 64, KernelChoice::Auto);
    let strip = codec.strip();
    let bytes = vec![0; strip];
    let shard = &bytes[..];
    let (mut p, mut q) = (vec![0; strip], vec![0; strip]);
    let refused = |result: Result<(), paritas::Error>, part: &str| {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Length, "{error}");
        assert!(error.to_string().contains(part), "{error}");
    };
    refused(codec.encode(&[shard; 3], &mut [&mut p, &mut q]), "needs 4 data shards, 3 are");
    refused(codec.encode(&[shard; 4], &mut [&mut p]), "needs 2 parity shards, 1 are");
    let short = &shard[1..];
    refused(
        codec.encode(&[shard, shard, shard, short], &mut [&mut p, &mut q]),
        "buffer 3 has 191 bytes, not 1 strips of 192",
    );
    let parity = paritas::NodeId::new(4);
    refused(codec.update(parity, shard, shard, &mut [&mut p, &mut q]), "node 4 holds no data");
}
