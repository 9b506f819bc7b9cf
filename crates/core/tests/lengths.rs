//! Shards of any length: what is left behind the last whole strip is a strip of shorter packets.

mod common;

use common::{as_slices, code, fill};
use paritas::{Buffer, Codec, CodecOptions, ErrorKind, KernelChoice, NodeId, Stores};

const PACKET: usize = 64;

fn codec(spec: &str, packet: usize, kernel: KernelChoice) -> Codec {
    let options = CodecOptions { packet, kernel, threads: 1, ..CodecOptions::default() };
    Codec::new(code(spec), options).unwrap()
}

/// The rows of the data nodes, which in these codes are those of all nodes.
fn rows(codec: &Codec) -> usize {
    match codec.code().symbols() {
        Some(_) => 1,
        None => codec.buffer_cells(0).len(),
    }
}

fn encoded(codec: &Codec, data: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let nodes = codec.code().node_count();
    let mut parity = vec![vec![0xC3; data[0].len()]; nodes - data.len()];
    codec.encoder().unwrap().run(data, &mut parity).unwrap();
    parity
}

/// The definition: whole strips are encoded as such, and the tail by the same code with packets of
/// its own length.
fn by_definition(spec: &str, data: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let whole = codec(spec, PACKET, KernelChoice::Auto);
    let rows = rows(&whole);
    let length = data[0].len();
    let strips = length / (rows * PACKET) * rows * PACKET;
    let tail = (length - strips) / rows;
    let part = |range: std::ops::Range<usize>| -> Vec<Vec<u8>> {
        data.iter().map(|shard| shard[range.clone()].to_vec()).collect()
    };
    let head = encoded(&whole, &part(0..strips));
    if tail == 0 {
        return head;
    }
    let rest = encoded(&codec(spec, tail, KernelChoice::Auto), &part(strips..length));
    head.into_iter().zip(rest).map(|(head, rest)| [head, rest].concat()).collect()
}

const SPECS: [&str; 5] = ["4+2", "10+4", "20+4", "rdp:k=6", "cauchy:k=3,m=3,w=8"];

#[test]
fn tails_are_strips_of_shorter_packets() {
    for spec in SPECS {
        for kernel in common::kernels() {
            let codec = codec(spec, PACKET, kernel);
            let (rows, k) = (rows(&codec), data_nodes(&codec));
            for bytes in [0, 1, 2, 7, 33, 63, 64, 65, 100, 127, 129, 640, 1000] {
                let data: Vec<Vec<u8>> = (0..k).map(|node| fill(node, rows * bytes)).collect();
                let parity = encoded(&codec, &data);
                assert!(parity == by_definition(spec, &data), "{spec} {bytes} {kernel:?}");
                assert!(recovers(&codec, &data, &parity), "{spec} {bytes} {kernel:?}");
            }
        }
    }
}

/// Long schedules run in parts by tiles, and nodes of a group have many rows.
#[test]
fn tails_of_long_schedules() {
    for spec in ["20+8", "bbdpg:k=12,m=3,m2=6"] {
        let codec = codec(spec, PACKET, KernelChoice::Auto);
        let rows = rows(&codec);
        let k = data_nodes(&codec);
        let data: Vec<Vec<u8>> = (0..k).map(|node| fill(node, rows * (PACKET + 5))).collect();
        let parity = codec.code().nodes_at(1).len() - k;
        let mut made = vec![vec![0; data[0].len()]; parity];
        let lengths = codec.code().nodes_at(1);
        for (made, node) in made.iter_mut().zip(&lengths[k..]) {
            let stage = codec.code().node_cells(*node).len();
            made.resize(stage * (PACKET + 5), 0);
        }
        codec.encoder().unwrap().run(&data, &mut made).unwrap();
        let head = |shards: &[Vec<u8>], bytes: usize| -> Vec<Vec<u8>> {
            shards
                .iter()
                .map(|shard| shard[..shard.len() / (PACKET + 5) * bytes].to_vec())
                .collect()
        };
        let (data, whole) = (head(&data, PACKET), head(&made, PACKET));
        let mut again: Vec<Vec<u8>> = whole.iter().map(|shard| vec![0; shard.len()]).collect();
        codec.encoder().unwrap().run(&data, &mut again).unwrap();
        assert!(again == whole, "{spec}");
    }
}

fn data_nodes(codec: &Codec) -> usize {
    codec.code().nodes().filter(|&node| codec.code().holds_data(node)).count()
}

/// Loses as many data shards as there are parity shards, and gets them back.
fn recovers(codec: &Codec, data: &[Vec<u8>], parity: &[Vec<u8>]) -> bool {
    let lost = parity.len().min(data.len());
    let nodes: Vec<NodeId> = codec.code().nodes().collect();
    let (lost, present) = nodes.split_at(lost);
    let rebuild = codec.reconstructor(present, lost).unwrap();
    let sources: Vec<&[u8]> = as_slices(data).into_iter().chain(as_slices(parity)).collect();
    let mut back = vec![vec![0xC3; data[0].len()]; lost.len()];
    rebuild.run(&sources[lost.len()..], &mut back).unwrap();
    back[..] == data[..lost.len()]
}

#[test]
fn updates_change_tails_too() {
    for spec in ["6+3", "rdp:k=4", "isal-cauchy:k=5,m=3", "reed-solomon:k=4,m=2,w=16"] {
        let codec = codec(spec, PACKET, KernelChoice::Auto);
        let length = 2 * rows(&codec) * (2 * PACKET + 11);
        let mut data: Vec<Vec<u8>> =
            (0..data_nodes(&codec)).map(|node| fill(node, length)).collect();
        let mut parity = encoded(&codec, &data);
        let new = fill(77, length);
        let update = codec.updater(NodeId::new(1)).unwrap();
        update.run(&[&data[1], &new], &mut parity).unwrap();
        data[1] = new;
        assert!(parity == encoded(&codec, &data), "{spec}");
    }
}

/// Nodes with data and parity: X-Code, whose nodes have as many rows as there are nodes.
#[test]
fn mixed_nodes_have_tails() {
    let codec = codec("xcode:n=5", PACKET, KernelChoice::Auto);
    let length = 5 * (3 * PACKET + 17);
    let mut shards: Vec<Vec<u8>> = (0..5).map(|node| fill(node, length)).collect();
    let mut views: Vec<&mut [u8]> = shards.iter_mut().map(Vec::as_mut_slice).collect();
    codec.encode_nodes(&mut views).unwrap();
    let (mut first, mut last) = (vec![0; length], vec![0; length]);
    codec
        .reconstruct(&mut [
            Buffer::Target(&mut first),
            Buffer::Source(&shards[1]),
            Buffer::Source(&shards[2]),
            Buffer::Source(&shards[3]),
            Buffer::Target(&mut last),
        ])
        .unwrap();
    assert!(first == shards[0] && last == shards[4]);
}

#[test]
fn words_are_whole_and_rows_equally_long() {
    let message = |spec: &str, lengths: [usize; 2]| {
        let codec = codec(spec, PACKET, KernelChoice::Auto);
        let data = vec![vec![0; lengths[0]]; data_nodes(&codec)];
        let parities = codec.code().node_count() - data.len();
        let mut parity = vec![vec![0; lengths[1]]; parities];
        let error = codec.encoder().unwrap().run(&data, &mut parity).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Length);
        error.to_string()
    };
    let odd = message("reed-solomon:k=3,m=2,w=16", [33, 33]);
    assert!(odd.contains("33 bytes are not whole words of 2 bytes"), "{odd}");
    let rows = message("rdp:k=4", [10, 10]);
    assert!(rows.contains("a node of 4 rows must have a multiple of 4"), "{rows}");
    let other = message("4+2", [300, 303]);
    assert!(other.contains("buffer 4 must have 300 bytes, as others do; got 303"), "{other}");
}

/// Non-temporal stores and threads leave tails alone.
#[test]
fn tails_of_large_shards() {
    for spec in ["4+2", "isal-cauchy:k=4,m=2"] {
        let small = codec(spec, PACKET, KernelChoice::Auto);
        let length = ((1 << 18) + 5) * rows(&small);
        let data: Vec<Vec<u8>> = (0..4).map(|node| fill(node, length)).collect();
        let expected = encoded(&small, &data);
        let options =
            CodecOptions { threads: 2, stores: Stores::PastCache, ..CodecOptions::default() };
        let large = Codec::new(code(spec), options).unwrap();
        assert!(encoded(&large, &data) == expected, "{spec}");
    }
}
