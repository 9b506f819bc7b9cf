//! What services of small shards call: groups of shards in one buffer, and single shards of many
//! that are lost.

use crate::common::{code, fill};
use paritas::{Codec, CodecOptions, ErrorKind, NodeId};

const SPECS: [&str; 4] = ["10+4", "rdp:k=6", "backblaze:k=10,m=4", "reed-solomon:k=4,m=2,w=16"];

fn codec(spec: &str) -> Codec {
    Codec::with_options(code(spec), CodecOptions::default().threads(1)).unwrap()
}

/// Returns encoded groups of shards, one after the other, encoded shard by shard.
fn groups(codec: &Codec, count: usize, bytes: usize) -> Vec<u8> {
    let mut all = Vec::new();
    for group in 0..count {
        let shard = |node| fill(node + 17 * group, bytes);
        let data: Vec<Vec<u8>> = (0..codec.data_shards()).map(shard).collect();
        let mut parity = vec![vec![0; bytes]; codec.parity_shards()];
        codec.encode(&data, &mut parity).unwrap();
        all.extend(data.into_iter().chain(parity).flatten());
    }
    all
}

#[test]
fn groups_in_one_buffer_are_those_of_single_calls() {
    for spec in SPECS {
        let codec = codec(spec);
        let (nodes, k) = (codec.code().node_count(), codec.data_shards());
        for (count, strips) in [(0, 1), (1, 1), (5, 3), (3, 40)] {
            let bytes = strips * codec.strip() + codec.shard_unit();
            let right = groups(&codec, count, bytes);
            let mut made = right.clone();
            for group in made.chunks_exact_mut(nodes * bytes) {
                group[k * bytes..].fill(0xEE);
            }
            codec.encode_strided(&mut made, bytes).unwrap();
            assert!(made == right, "{spec} {count} {strips}");

            let ids: Vec<NodeId> = codec.code().nodes().collect();
            let (lost, present) = ids.split_at(2);
            for group in made.chunks_exact_mut(nodes * bytes) {
                group[..2 * bytes].fill(0xEE);
            }
            codec.reconstructor(present, lost).unwrap().run_strided(&mut made, bytes).unwrap();
            assert!(made == right, "{spec} {count} {strips}");
        }
    }
}

/// Only the shards of a reconstructor are read and written; the buffer has room for the others.
#[test]
fn other_shards_of_a_group_are_left_alone() {
    let codec = codec("10+4");
    let right = groups(&codec, 2, 640);
    let mut made = right.clone();
    let lost = [1, 12];
    for group in made.chunks_exact_mut(14 * 640) {
        lost.iter().for_each(|node| group[node * 640..][..640].fill(0xEE));
    }
    let present: Vec<usize> = (0..14).filter(|node| !lost.contains(node)).collect();
    codec.reconstructor(&present, &[1]).unwrap().run_strided(&mut made, 640).unwrap();
    for (made, right) in made.chunks_exact(14 * 640).zip(right.chunks_exact(14 * 640)) {
        assert!(made[..12 * 640] == right[..12 * 640] && made[12 * 640..][..640] == [0xEE; 640]);
    }
}

#[test]
fn updates_in_one_buffer() {
    let codec = codec("backblaze:k=4,m=2");
    let mut group = groups(&codec, 1, 100);
    let new = fill(99, 100);
    // An updater's shards are the old and the new one, and the parity.
    let mut update = [&group[100..200], &new, &group[400..]].concat();
    codec.updater(1).unwrap().run_strided(&mut update, 100).unwrap();
    group[100..200].copy_from_slice(&new);
    group[400..].copy_from_slice(&update[200..]);
    let shards: Vec<&[u8]> = group.chunks_exact(100).collect();
    assert_eq!(codec.verify(&shards).unwrap(), []);
}

#[test]
fn buffers_without_whole_groups_are_refused() {
    let codec = codec("4+2");
    for (bytes, stride) in [(6 * 640 + 1, 640), (5 * 640, 640), (640, 0), (6 * 641, 641)] {
        let error = codec.encode_strided(&mut vec![0; bytes], stride).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Length, "{bytes} {stride}");
    }
}

/// Computes some of the lost shards; the others stay lost.
#[test]
fn wanted_shards_are_computed_and_no_others() {
    for spec in SPECS {
        let codec = codec(spec);
        let nodes = codec.code().node_count();
        let bytes = 2 * codec.strip();
        let group = groups(&codec, 1, bytes);
        let right: Vec<Option<Vec<u8>>> =
            group.chunks_exact(bytes).map(|shard| Some(shard.to_vec())).collect();
        for (lost, wanted) in [([0, 1], 0), ([0, nodes - 1], nodes - 1), ([1, nodes - 1], 1)] {
            let mut shards = right.clone();
            lost.iter().for_each(|&node| shards[node] = None);
            codec.reconstruct_some(&mut shards, &[wanted, 2, wanted]).unwrap();
            let is_right = |node: usize| match lost.contains(&node) && node != wanted {
                true => shards[node].is_none(),
                false => shards[node] == right[node],
            };
            assert!((0..nodes).all(is_right), "{spec} {lost:?} {wanted}");
        }
        let error = codec.reconstruct_some(&mut right.clone(), &[nodes]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Parameters);
    }
}
