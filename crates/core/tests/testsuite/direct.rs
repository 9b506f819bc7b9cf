//! Direct answers: the answers to questions that have not been asked before. They are checked for
//! every pattern of losses of small codes, and for random patterns of wide codes. Shards are
//! compared with those of the reference and of plans.

use crate::common;
use crate::common::{as_slices, code, fill};
use paritas::erasure::combinations;
use paritas::{Buffer, Code, Codec, CodecOptions, ErrorKind, KernelChoice, NodeId};
use paritas_reference as reference;

fn options() -> CodecOptions {
    CodecOptions::default().threads(1)
}

fn codec(code: &Code) -> Codec {
    Codec::with_options(code.clone(), options()).unwrap()
}

/// Returns a codec that plans every question when it is first asked.
fn planning(code: &Code) -> Codec {
    let kernel = KernelChoice::Only(codec(code).kernel());
    Codec::with_options(code.clone(), options().kernel(kernel)).unwrap()
}

/// Returns all shards of a code, with `length` bytes for each row.
fn shards(codec: &Codec, length: usize) -> Vec<Vec<u8>> {
    let bytes = length * codec.shard_unit();
    let mut shards: Vec<Vec<u8>> =
        (0..codec.code().node_count()).map(|node| fill(node, bytes)).collect();
    if codec.parity_shards() == 0 {
        codec.encode_nodes(&mut common::as_mut_slices(&mut shards)).unwrap();
    } else {
        let (data, parity) = shards.split_at_mut(codec.data_shards());
        codec.encode(data, parity).unwrap();
    }
    shards
}

/// Loses shards and computes them again.
fn repaired(codec: &Codec, shards: &[Vec<u8>], lost: &[usize]) -> Vec<Vec<u8>> {
    let mut made = shards.to_vec();
    lost.iter().for_each(|&node| made[node].fill(0xEE));
    let mut buffers: Vec<Buffer<'_>> = Vec::new();
    for (node, shard) in made.iter_mut().enumerate() {
        let is_lost = lost.contains(&node);
        buffers.push(if is_lost { Buffer::Target(shard) } else { Buffer::Source(shard) });
    }
    codec.reconstruct_into(&mut buffers).unwrap_or_else(|error| panic!("{lost:?}: {error}"));
    made
}

/// Loses every set of nodes up to the tolerance, each once, so that every question is new to the
/// codec.
fn exhaust(spec: &str, length: usize) {
    let code = code(spec);
    let codec = codec(&code);
    let shards = shards(&codec, length);
    assert!(shards == self::shards(&planning(&code), length), "{spec}");
    for lost in (1..=code.tolerance()).flat_map(|count| combinations(code.node_count(), count)) {
        assert!(repaired(&codec, &shards, &lost) == shards, "{spec} {lost:?}");
    }
}

#[test]
fn every_pattern_of_small_codes() {
    for spec in [
        "4+2",
        "6+3",
        "3+5",
        "10+4",
        "rdp:k=6",
        "evenodd:k=5",
        "star:k=5",
        "xcode:n=7",
        "liberation:k=5",
        "cauchy-good:k=4,m=3,w=8",
        "qfs:k=5",
    ] {
        exhaust(spec, 64 * 3 + 5);
    }
}

#[test]
fn every_pattern_of_small_codes_over_bytes() {
    for family in ["backblaze", "isal-cauchy", "isal-rs", "leopard8", "zfec", "reed-solomon"] {
        for (k, m) in [(1, 1), (1, 4), (4, 2), (5, 3), (3, 5), (10, 4)] {
            exhaust(&format!("{family}:k={k},m={m}"), 333);
        }
    }
    exhaust("raid6:k=9", 333);
}

/// The parity is that of the reference, from a first call on.
#[test]
fn parity_is_that_of_the_reference() {
    for spec in ["backblaze:k=10,m=4", "isal-cauchy:k=20,m=4", "isal-rs:k=5,m=3", "zfec:k=30,m=34"]
    {
        let code = code(spec);
        let shards = shards(&codec(&code), 1000);
        let symbols = code.symbols().unwrap();
        let field = symbols.field();
        let field = reference::field::Field::new(field.width(), field.polynomial());
        let widen = |row: &Vec<u32>| row.iter().map(|&factor| u64::from(factor)).collect();
        let rows: Vec<Vec<u64>> = symbols.parity().iter().map(widen).collect();
        let (data, parity) = shards.split_at(symbols.data_nodes());
        assert!(parity == reference::words::encode(&field, &rows, data), "{spec}");
    }
}

/// Repairs random losses of wide codes, of the largest number of nodes that may be lost.
#[test]
fn random_patterns_of_wide_codes() {
    for spec in [
        "20+4",
        "cauchy:k=32,m=32",
        "backblaze:k=32,m=32",
        "backblaze:k=200,m=56",
        "leopard8:k=100,m=40",
        "isal-cauchy:k=20,m=4",
    ] {
        let code = code(spec);
        let (codec, nodes) = (codec(&code), code.node_count());
        let shards = shards(&codec, 130);
        let mut state = 7_u64;
        for _ in 0..40 {
            let mut lost: Vec<usize> = (0..nodes).collect();
            for place in 0..code.tolerance() {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                lost.swap(place, place + (state >> 33) as usize % (nodes - place));
            }
            lost.truncate(code.tolerance());
            assert!(repaired(&codec, &shards, &lost) == shards, "{spec} {lost:?}");
        }
    }
}

/// A prepared question runs directly at first, and by a plan once it has been asked about enough
/// bytes; the result is the same throughout.
#[test]
fn results_stay_the_same_when_a_plan_follows() {
    for spec in ["10+4", "backblaze:k=10,m=4"] {
        let code = code(spec);
        let codec = codec(&code);
        let shards = shards(&codec, 64 << 10);
        let nodes: Vec<NodeId> = code.nodes().collect();
        let (lost, present) = nodes.split_at(4);
        let repair = codec.reconstructor(present, lost).unwrap();
        for _ in 0..12 {
            let mut made = vec![vec![0xEE; shards[0].len()]; 4];
            repair.run(&as_slices(&shards[4..]), &mut made).unwrap();
            assert!(made == shards[..4], "{spec}");
        }
    }
}

/// A question without an answer is refused with the same error as by a codec that plans at once.
#[test]
fn too_few_shards_are_refused() {
    for spec in ["4+2", "backblaze:k=4,m=2", "isal-rs:k=4,m=2"] {
        let code = code(spec);
        let mut made: Vec<Vec<u8>> = shards(&codec(&code), 64);
        for codec in [codec(&code), planning(&code)] {
            let buffers = made.iter_mut().enumerate();
            let mut buffers: Vec<Buffer<'_>> = buffers
                .map(
                    |(node, shard)| {
                        if node < 3 { Buffer::Target(shard) } else { Buffer::Source(shard) }
                    },
                )
                .collect();
            let error = codec.reconstruct_into(&mut buffers).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotEnough, "{spec}");
            assert!(error.to_string().contains("3 of 6 shards are missing"), "{error}");
        }
    }
}

/// A caller passes all cells that it has, but only the buffers that a plan reads: fewer than a
/// direct answer reads.
#[test]
fn buffers_that_a_plan_does_not_read_may_be_absent() {
    let code = code("matrix:k=8,m=4,w=1,rows=c0.30.0c.03");
    let codec = codec(&code);
    let shards = shards(&codec, 64);
    let have = code.cells_of(code.nodes().filter(|node| node.index() != 0));
    let want = code.cells_of([NodeId::new(0)]);
    let mut made = vec![0xEE; 64];
    let mut buffers: Vec<Buffer<'_>> = vec![Buffer::Target(&mut made), Buffer::Source(&shards[1])];
    buffers.extend((2..8).map(|_| Buffer::Absent));
    buffers.push(Buffer::Source(&shards[8]));
    codec.compute(&have, &want, &mut buffers).unwrap();
    assert_eq!(made, shards[0]);
}
