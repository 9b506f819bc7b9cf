//! Shards of any length: the bytes after the last whole strip form a strip of shorter packets.

use crate::common;
use crate::common::{as_slices, code, fill};
use paritas::code::{CellId, Role};
use paritas::research::Plan;
use paritas::{Buffer, Codec, CodecOptions, ErrorKind, KernelChoice, NodeId, Stores};

const PACKET: usize = 64;

fn codec(spec: &str, packet: usize, kernel: KernelChoice) -> Codec {
    let options = CodecOptions::default().packet(packet).kernel(kernel).threads(1);
    Codec::with_options(code(spec), options).unwrap()
}

/// Returns the rows of the data nodes, which in these codes are those of all nodes.
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

/// Encodes by the definition: whole strips as usual, and the tail by the same code with packets of
/// the tail's length.
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
        for kernel in common::candidates() {
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

/// Loses as many data shards as there are parity shards, and checks that they are recovered.
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

/// Nodes with data and parity: X-Code, in which each of n nodes has n rows.
#[test]
fn mixed_nodes_have_tails() {
    let codec = codec("xcode:n=5", PACKET, KernelChoice::Auto);
    let length = 5 * (3 * PACKET + 17);
    let mut shards: Vec<Vec<u8>> = (0..5).map(|node| fill(node, length)).collect();
    let mut views: Vec<&mut [u8]> = shards.iter_mut().map(Vec::as_mut_slice).collect();
    codec.encode_nodes(&mut views).unwrap();
    let (mut first, mut last) = (vec![0; length], vec![0; length]);
    codec
        .reconstruct_into(&mut [
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
    assert!(odd.contains("must be a multiple of 2 bytes, its words; got 33"), "{odd}");
    let rows = message("rdp:k=4", [10, 10]);
    assert!(rows.contains("must have a multiple of 4 bytes, its rows; got 10"), "{rows}");
    let other = message("4+2", [300, 303]);
    assert!(other.contains("buffer 4 must have 300 bytes, as the others; got 303"), "{other}");
}

/// Non-temporal stores and threads do not change tails.
#[test]
fn tails_of_large_shards() {
    for spec in ["4+2", "isal-cauchy:k=4,m=2"] {
        let small = codec(spec, PACKET, KernelChoice::Auto);
        let length = ((1 << 18) + 5) * rows(&small);
        let data: Vec<Vec<u8>> = (0..4).map(|node| fill(node, length)).collect();
        let expected = encoded(&small, &data);
        let options = CodecOptions::default().threads(2).stores(Stores::NonTemporal);
        let large = Codec::with_options(code(spec), options).unwrap();
        assert!(encoded(&large, &data) == expected, "{spec}");
    }
}

const OBJECTS: [usize; 7] = [0, 1, 7, 100, 1000, 4109, 30_011];

/// Returns an object's data shards and their parity.
fn shards(codec: &Codec, object: &[u8]) -> Vec<Vec<u8>> {
    let mut shards = codec.split(object).unwrap();
    let length = codec.shard_len(object.len());
    assert!(shards.iter().all(|shard| shard.len() == length));
    let mut parity = vec![vec![0xC3; length]; codec.code().node_count() - shards.len()];
    codec.encode(&shards, &mut parity).unwrap();
    shards.extend(parity);
    shards
}

#[test]
fn objects_come_back() {
    let specs = ["4+2", "10+4", "rdp:k=6", "isal-cauchy:k=5,m=3", "reed-solomon:k=3,m=2,w=16"];
    for spec in specs {
        let codec: Codec = spec.parse().unwrap();
        let parity = codec.code().node_count() - data_nodes(&codec);
        for bytes in OBJECTS {
            let object = fill(5, bytes);
            let whole = shards(&codec, &object);
            assert_eq!(codec.verify(&whole).unwrap(), [], "{spec}, {bytes} bytes");
            for first in 0..=whole.len() - parity {
                let mut some: Vec<_> = whole.iter().cloned().map(Some).collect();
                some[first..first + parity].fill(None);
                codec.reconstruct(&mut some).unwrap();
                assert!(some.iter().flatten().eq(&whole), "{spec}, {bytes} bytes, {first}");
                assert_eq!(codec.join(&some, bytes).unwrap(), object, "{spec}, {bytes} bytes");
                let mut joined = vec![0xff; bytes];
                codec.join_into(&some, &mut joined).unwrap();
                assert_eq!(joined, object, "{spec}, {bytes} bytes");
            }
        }
    }
    let codec = Codec::new(10, 4).unwrap();
    assert_eq!(codec.code().spec().to_string(), "cauchy:k=10,m=4,w=4");
    assert_eq!((codec.shard_len(0), codec.shard_len(1), codec.shard_len(41)), (0, 4, 8));
    assert_eq!(Codec::new(0, 4).unwrap_err().kind(), ErrorKind::Parameters);
}

/// A wrong byte of parity makes only that parity differ; one of data, all parity that depends on
/// it.
#[test]
fn verification_names_the_parity() {
    let nodes =
        |numbers: &[usize]| -> Vec<NodeId> { numbers.iter().copied().map(NodeId::new).collect() };
    for spec in ["4+2", "isal-cauchy:k=4,m=2"] {
        let codec: Codec = spec.parse().unwrap();
        // The shards are longer than what is checked at a time, and have a tail.
        let mut whole = shards(&codec, &fill(9, 1_000_003));
        for at in [0, 70_000, whole[0].len() - 1] {
            for (node, wrong) in [(5, nodes(&[5])), (1, nodes(&[4, 5]))] {
                whole[node][at] ^= 4;
                assert_eq!(codec.verify(&whole).unwrap(), wrong, "{spec}, byte {at} of {node}");
                whole[node][at] ^= 4;
            }
        }
        whole[3].pop();
        assert_eq!(codec.verify(&whole).unwrap_err().kind(), ErrorKind::Length);
        assert_eq!(codec.verify(&whole[1..]).unwrap_err().kind(), ErrorKind::Buffers);
    }
    let codec: Codec = "xcode:n=5".parse().unwrap();
    let mut shards: Vec<Vec<u8>> = (0..5).map(|node| fill(node, 5 * (64 + 3))).collect();
    codec.encode_nodes(&mut common::as_mut_slices(&mut shards)).unwrap();
    assert_eq!(codec.verify(&shards).unwrap(), []);
    // Row 3 of the first strip is parity.
    shards[2][3 * 64] ^= 1;
    assert_eq!(codec.verify(&shards).unwrap(), nodes(&[2]));
}

#[test]
fn shards_that_cannot_be_reconstructed_stay_unchanged() {
    let codec = Codec::new(4, 2).unwrap();
    let whole = shards(&codec, &fill(1, 1000));
    let mut some: Vec<_> = whole.iter().cloned().map(Some).collect();
    some[1..4].fill(None);
    let before = some.clone();
    assert_eq!(codec.reconstruct(&mut some).unwrap_err().kind(), ErrorKind::NotEnough);
    assert_eq!(codec.join(&some, 1000).unwrap_err().kind(), ErrorKind::NotEnough);
    some[1] = Some(whole[1][1..].to_vec());
    let error = codec.reconstruct(&mut some).unwrap_err();
    let length = whole[1].len() as u64;
    assert_eq!(error.kind(), ErrorKind::Length, "{error}");
    assert_eq!((error.node(), error.given()), (Some(1), Some(length - 1)), "{error}");
    some[1] = None;
    assert_eq!(some, before);
    assert_eq!(codec.reconstruct(&mut some[1..]).unwrap_err().kind(), ErrorKind::Buffers);
    assert_eq!(
        codec.reconstruct(&mut [const { None }; 6]).unwrap_err().kind(),
        ErrorKind::NotEnough
    );
    some[1..4].clone_from_slice(&whole[1..4].iter().cloned().map(Some).collect::<Vec<_>>());
    for object in [2000, usize::MAX] {
        assert_eq!(codec.join(&some, object).unwrap_err().kind(), ErrorKind::Length);
    }
    assert_eq!(Codec::new(1, 1).unwrap().shard_len(usize::MAX), usize::MAX);
}

/// A shard that is not read may be cut all the same.
#[test]
fn shards_of_other_lengths_are_refused_whatever_is_read() {
    for spec in ["4+2", "backblaze:k=4,m=2", "rdp:k=4"] {
        let codec: Codec = spec.parse().unwrap();
        let whole = shards(&codec, &fill(1, 1000));
        let length = whole[0].len();
        for (lost, cut) in [(None, 0), (Some(0), 5), (Some(5), 1)] {
            for wrong in [0, length / 2, 2 * length] {
                let mut some: Vec<_> = whole.iter().cloned().map(Some).collect();
                lost.into_iter().for_each(|lost: usize| some[lost] = None);
                some[cut].as_mut().unwrap().resize(wrong, 0);
                let before = some.clone();
                let error = codec.reconstruct(&mut some).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Length, "{spec}: {error}");
                assert_eq!(some, before, "{spec}");
            }
        }
    }
}

#[test]
fn codes_without_data_shards_are_not_split() {
    for spec in ["xcode:n=5", "lt:k=8,n=16,nodes=4"] {
        let codec: Codec = spec.parse().unwrap();
        assert_eq!(codec.split(&[1; 100]).unwrap_err().kind(), ErrorKind::Parameters, "{spec}");
    }
}

/// Shards that hold data and parity have room for both. An object lies in the rows with data.
#[test]
fn shards_with_data_and_parity_have_room_for_the_object() {
    let vertical = "matrix:k=1,m=1,w=2,placement=vertical,rows=4.8";
    for spec in ["xcode:n=5", "xcode:n=7", vertical, "10+4", "rdp:k=6"] {
        let codec: Codec = spec.parse().unwrap();
        let code = codec.code();
        let is_data = |cell: &CellId| code.cell(*cell).role == Role::Data;
        let cells = || code.nodes().flat_map(|node| code.node_cells(node)).copied();
        let (rows, with_data) = (rows(&codec), cells().filter(is_data).count());
        for object in OBJECTS {
            let length = codec.shard_len(object);
            assert_eq!(length % rows, 0, "{spec}");
            let row = length / rows;
            let is_tight = row.saturating_sub(1) * with_data < object || object == 0;
            assert!(row * with_data >= object && is_tight, "{spec}: {length} for {object}");
        }
        assert_eq!(codec.shard_unit(), rows, "{spec}");
    }
    // Five shards of three rows with data and two with parity; two shards of one row of each.
    let length = |spec: &str| spec.parse::<Codec>().unwrap().shard_len(1000);
    assert_eq!((length("xcode:n=5"), length(vertical)), (335, 1000));
}

/// Messages have the numbers that were given, and no names of calls, which differ between
/// languages.
#[test]
fn messages_have_the_numbers_that_were_given() {
    let codec = Codec::new(4, 2).unwrap();
    let says = |error: paritas::Error, part: &str| {
        assert!(error.to_string().contains(part), "{error}; not {part}");
    };
    says(
        codec.reconstructor(&[usize::MAX], &[4]).unwrap_err(),
        "must be at most 5; got 4294967295 or more",
    );
    says(codec.reconstructor(&[6], &[4]).unwrap_err(), "must be at most 5; got 6");
    let mut parity = [[0; 9]; 2];
    says(
        codec.update(3, &[0; 9], &[0; 12], &mut parity).unwrap_err(),
        "old shard 3 has 9 bytes, and new shard 3 has 12",
    );
    says(codec.verify(&[[0_u8; 256]; 6]).unwrap_err(), "must be a multiple of 3 bytes; got 256");
    let whole: Vec<_> = shards(&codec, &[7; 1000]).into_iter().map(Some).collect();
    let more = [whole.clone(), whole].concat();
    says(codec.join(&more, 1000).unwrap_err(), "the number of node shards must be 6; got 12");
    let mixed: Codec = "xcode:n=5".parse().unwrap();
    says(mixed.split(&[1; 100]).unwrap_err(), "holds data and parity; this call needs");
}

/// Blocks of an LT code are computed from data that no node stores.
#[test]
fn blocks_of_lt_codes_are_not_encoded_as_shards() {
    let codec: Codec = "lt:k=8,n=16,nodes=4".parse().unwrap();
    let mut shards = vec![vec![0; 400]; 4];
    let none: [&[u8]; 0] = [];
    let results = [
        codec.encode(&none, &mut shards),
        codec.encode_nodes(&mut common::as_mut_slices(&mut shards)),
        codec.verify(&shards).map(drop),
        codec.encoder().map(drop),
    ];
    for result in results {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Parameters, "{error}");
        assert!(error.to_string().ends_with("blocks are made by an LT encoder"), "{error}");
    }
}

/// A plan from elsewhere runs if it computes the cells that it claims.
#[test]
fn plans_are_run_once_proved() {
    let codec = Codec::new(4, 2).unwrap();
    let whole = shards(&codec, &fill(3, 5000));
    let code = codec.code();
    let plan = code.schedule(&code.stored(Role::Data), &code.stored(Role::Parity)).unwrap();
    let mut parity = vec![vec![0; whole[0].len()]; 2];
    let run = |plan: &Plan, parity: &mut [Vec<u8>]| {
        let sources = whole[..4].iter().map(|shard| Buffer::Source(shard));
        let targets = parity.iter_mut().map(|shard| Buffer::Target(shard));
        codec.run(plan, &mut sources.chain(targets).collect::<Vec<_>>())
    };
    for _ in 0..2 {
        run(&plan, &mut parity).unwrap();
        assert!(parity[..] == whole[4..]);
    }
    let (inputs, mut outputs) = (plan.inputs().to_vec(), plan.outputs().to_vec());
    outputs.swap(0, 1);
    let schedule = plan.schedule().clone();
    let wrong = Plan::new(schedule.clone(), inputs.clone(), outputs.clone()).unwrap();
    let error = run(&wrong, &mut parity).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Schedule, "{error}");
    outputs[0] = CellId::new(9999);
    let other = Plan::new(schedule, inputs, outputs).unwrap();
    let error = run(&other, &mut parity).unwrap_err();
    assert!(error.to_string().contains("the plan has cell 9999"), "{error}");
    assert!(parity[..] == whole[4..]);
    let words: Codec = "isal-cauchy:k=4,m=2".parse().unwrap();
    assert_eq!(words.run(&plan, &mut []).unwrap_err().kind(), ErrorKind::Schedule);
}
