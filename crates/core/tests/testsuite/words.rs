//! The word layout: every word kernel against the reference, and every pattern of losses. The bytes
//! of other libraries are tested in `word_vectors.rs`.

use crate::common;
use crate::common::{as_mut_slices, as_slices, code, fill};
use paritas::Buffer::{Absent, Source, Target};
use paritas::code::{CellSet, CodeBuilder, Field, Role, SymbolMatrix};
use paritas::erasure::combinations;
use paritas::research::{Width, WordKernel};
use paritas::{
    Code, Codec, CodecOptions, ErrorKind, Kernel, KernelChoice, LaneCodec, NodeId, Spec, Split,
    Stores,
};
use paritas_reference as reference;

const CANARY: u8 = 0xC3;

fn options() -> CodecOptions {
    CodecOptions::default().threads(1)
}

fn codec(code: Code, kernel: WordKernel) -> Codec {
    Codec::with_options(code, options().word_kernel(kernel)).unwrap()
}

/// Returns the reference's field and the parity rows of a code, as its symbol matrix defines them.
fn reference_matrix(code: &Code) -> (reference::field::Field, Vec<Vec<u64>>) {
    let symbols = code.symbols().unwrap();
    let field = symbols.field();
    let rows = symbols.parity().iter().map(|row| row.iter().map(|&c| u64::from(c)).collect());
    (reference::field::Field::new(field.width(), field.polynomial()), rows.collect())
}

fn reference_parity(code: &Code, data: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let (field, rows) = reference_matrix(code);
    reference::words::encode(&field, &rows, data)
}

/// Memory for a shard with canaries around it; the shard lies at a given distance from a cache
/// line.
struct Guarded {
    memory: Vec<u8>,
    start: usize,
    length: usize,
}

impl Guarded {
    fn new(length: usize, misalignment: usize) -> Self {
        let memory = vec![CANARY; length + 256];
        let start = memory.as_ptr().align_offset(64) + 64 + misalignment;
        Self { memory, start, length }
    }

    fn holding(bytes: &[u8], misalignment: usize) -> Self {
        let mut guarded = Self::new(bytes.len(), misalignment);
        guarded.bytes_mut().copy_from_slice(bytes);
        guarded
    }

    fn bytes(&self) -> &[u8] {
        &self.memory[self.start..][..self.length]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..][..self.length]
    }

    fn is_intact(&self) -> bool {
        let (before, rest) = self.memory.split_at(self.start);
        before.iter().chain(&rest[self.length..]).all(|&byte| byte == CANARY)
    }
}

/// Encodes from and into guarded memory; `misalign` gives the distance of a shard from a cache
/// line.
fn encoded(codec: &Codec, data: &[Vec<u8>], misalign: impl Fn(usize) -> usize) -> Vec<Vec<u8>> {
    let k = data.len();
    let nodes = codec.code().node_count();
    let data: Vec<Guarded> =
        data.iter().enumerate().map(|(i, shard)| Guarded::holding(shard, misalign(i))).collect();
    let mut parity: Vec<Guarded> =
        (k..nodes).map(|i| Guarded::new(data[0].length, misalign(i))).collect();
    let sources: Vec<&[u8]> = data.iter().map(Guarded::bytes).collect();
    let mut targets: Vec<&mut [u8]> = parity.iter_mut().map(Guarded::bytes_mut).collect();
    codec.encode(&sources, &mut targets).unwrap();
    assert!(parity.iter().all(Guarded::is_intact), "a canary died");
    parity.iter().map(|shard| shard.bytes().to_vec()).collect()
}

/// Lengths of shards, in words.
const LENGTHS: [usize; 26] = [
    0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 191, 192, 255, 256, 257,
    1000, 4096, 4103,
];

/// Returns the bytes of a word.
fn word(code: &Code) -> usize {
    code.symbols().unwrap().field().width() as usize / 8
}

/// Specs that cover one to six passes, plain rows, P + Q, and more inputs than outputs or fewer.
const SPECS: [&str; 30] = [
    "isal-cauchy:k=10,m=4",
    "isal-cauchy:k=1,m=1",
    "isal-cauchy:k=3,m=2",
    "isal-cauchy:k=5,m=5",
    "isal-cauchy:k=4,m=6",
    "isal-cauchy:k=7,m=7",
    "isal-cauchy:k=2,m=13",
    "isal-rs:k=1,m=3",
    "isal-rs:k=6,m=4",
    "isal-rs:k=3,m=9",
    "isal-rs:k=12,m=1",
    "backblaze:k=10,m=4",
    "backblaze:k=17,m=3",
    "zfec:k=3,m=7",
    "zfec:k=10,m=4",
    "raid6:k=1",
    "raid6:k=2",
    "raid6:k=9",
    "raid6:k=1,w=16",
    "raid6:k=9,w=16",
    "raid6:k=9,w=32",
    "reed-solomon:k=1,m=1,w=16",
    "reed-solomon:k=3,m=2,w=16",
    "reed-solomon:k=10,m=4,w=16",
    "reed-solomon:k=5,m=7,w=16",
    "reed-solomon:k=1,m=3,w=32",
    "reed-solomon:k=3,m=2,w=32",
    "reed-solomon:k=10,m=4,w=32",
    "reed-solomon:k=4,m=6,w=32",
    "reed-solomon:k=6,m=3,w=8",
];

#[test]
fn every_kernel_is_the_reference() {
    for spec in SPECS {
        let code = code(spec);
        let k = code.symbols().unwrap().data_nodes();
        for length in LENGTHS.map(|words| words * word(&code)) {
            let data: Vec<Vec<u8>> = (0..k).map(|node| fill(node, length)).collect();
            let expected = reference_parity(&code, &data);
            for kernel in WordKernel::available() {
                for stores in [Stores::Cached, Stores::NonTemporal] {
                    let options = options().word_kernel(kernel).stores(stores);
                    let codec = Codec::with_options(code.clone(), options).unwrap();
                    assert_eq!(codec.kernel_name(), kernel.name());
                    for misalign in [|_| 0, |_| 40, |_| 3, |node| node * 7 % 64] {
                        let made = encoded(&codec, &data, misalign);
                        assert!(made == expected, "{spec}, {length} bytes, {kernel}, {stores:?}");
                    }
                }
            }
        }
    }
}

/// Several passes process tile after tile; the shards have more than two tiles and a remainder.
/// Wide codes pass sums on from pass to pass.
#[test]
fn tiles_meet() {
    for (spec, length) in [
        ("isal-cauchy:k=7,m=7", 40_007),
        ("isal-cauchy:k=1,m=9", 40_007),
        ("isal-cauchy:k=20,m=1", 5000),
        ("isal-cauchy:k=21,m=2", 9001),
        ("isal-cauchy:k=43,m=8", 4096),
        ("isal-rs:k=30,m=3", 8200),
        ("isal-rs:k=100,m=1", 12_345),
        ("reed-solomon:k=7,m=7,w=16", 40_006),
        ("reed-solomon:k=43,m=4,w=16", 4096),
        ("reed-solomon:k=7,m=4,w=32", 40_004),
        ("reed-solomon:k=21,m=3,w=32", 9000),
        ("raid6:k=30,w=32", 9000),
    ] {
        let code = code(spec);
        let k = code.symbols().unwrap().data_nodes();
        let data: Vec<Vec<u8>> = (0..k).map(|node| fill(node, length)).collect();
        let expected = reference_parity(&code, &data);
        for kernel in WordKernel::available() {
            for stores in [Stores::Cached, Stores::NonTemporal] {
                let options = options().word_kernel(kernel).stores(stores);
                let codec = Codec::with_options(code.clone(), options).unwrap();
                assert!(encoded(&codec, &data, |_| 3) == expected, "{spec}, {kernel}, {stores:?}");
            }
        }
    }
}

/// Returns a code of one data node whose parity nodes multiply by the given coefficients.
fn multiples(field: Field, coefficients: impl Iterator<Item = u32>) -> Code {
    let matrix = SymbolMatrix::new(field, 1, coefficients.map(|c| vec![c]).collect()).unwrap();
    let mut builder = CodeBuilder::new(matrix.node_count());
    builder.words(matrix);
    builder.finish(Spec::new("multiples"), 0).unwrap()
}

/// Checks all products of two bytes, in the usual field and in that of AES.
#[test]
fn every_product_is_right() {
    let bytes: Vec<u8> = (0..=255).collect();
    for polynomial in [0x11D, 0x11B] {
        let field = Field::with_polynomial(8, polynomial).unwrap();
        let reference = reference::field::Field::new(8, polynomial);
        // Products by 1 alone take the path of plain sums, so they are also tried together with
        // others.
        for coefficients in [0..256, 1..2, 0..1] {
            let code = multiples(field, coefficients.clone());
            for kernel in WordKernel::available() {
                let made =
                    encoded(&codec(code.clone(), kernel), std::slice::from_ref(&bytes), |_| 0);
                for (coefficient, made) in coefficients.clone().zip(&made) {
                    let product = |&b: &u8| reference.mul(u64::from(coefficient), b.into()) as u8;
                    let expected: Vec<u8> = bytes.iter().map(product).collect();
                    assert!(made == &expected, "{kernel}: {coefficient}, {polynomial:#x}");
                }
            }
        }
    }
}

/// Checks wider words: every power of two, every bit, and then some of both.
#[test]
fn products_of_wide_words_are_right() {
    for w in [16, 32] {
        let field = Field::new(w).unwrap();
        let reference = reference::field::Field::new(w, field.polynomial());
        let spread = |seed: u64| (seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - w)) as u32;
        let powers = (0..w).map(|bit| 1 << bit);
        let coefficients: Vec<u32> = powers.clone().chain((1..48).map(spread)).collect();
        let words: Vec<u32> = powers.chain((0..2048).map(spread)).collect();
        let bytes = |words: &[u32]| -> Vec<u8> {
            words.iter().flat_map(|word| word.to_le_bytes()[..w as usize / 8].to_vec()).collect()
        };
        let code = multiples(field, coefficients.iter().copied());
        for kernel in WordKernel::available() {
            let made = encoded(&codec(code.clone(), kernel), &[bytes(&words)], |_| 0);
            for (&coefficient, made) in coefficients.iter().zip(&made) {
                let product = |&b: &u32| reference.mul(coefficient.into(), b.into()) as u32;
                let products: Vec<u32> = words.iter().map(product).collect();
                assert!(made == &bytes(&products), "{kernel}: {coefficient:#x}, w = {w}");
            }
        }
    }
}

/// Covers rows that are sparse, plain, zero, or repeat powers of two.
#[test]
fn unusual_matrices_are_right() {
    let (usual, aes) = (Field::new(8).unwrap(), Field::with_polynomial(8, 0x11B).unwrap());
    let powers = |count| (0..count).map(|exponent| aes.power(2, exponent)).collect::<Vec<u32>>();
    for (field, rows) in [
        (usual, vec![vec![1, 0, 7], vec![0, 1, 1], vec![1, 1, 1], vec![0, 0, 1], vec![0, 0, 0]]),
        (usual, vec![vec![0], vec![0]]),
        (usual, vec![vec![4, 1, 2], vec![1, 1, 1]]),
        (usual, vec![vec![1, 1, 1], vec![1, 1, 1]]),
        (aes, vec![vec![1; 51], powers(51)]),
        (aes, vec![vec![1; 60], powers(60)]),
        (Field::new(16).unwrap(), vec![vec![1, 0, 700], vec![0, 1, 1], vec![0, 0, 0]]),
        (Field::with_polynomial(16, 0x1002B).unwrap(), vec![vec![1, 40_000], vec![2, 1]]),
        (Field::new(32).unwrap(), vec![vec![1, 0, 1 << 31], vec![1, 1, 1], vec![0, 0, 1]]),
    ] {
        let k = rows[0].len();
        let matrix = SymbolMatrix::new(field, k, rows).unwrap();
        let mut builder = CodeBuilder::new(matrix.node_count());
        builder.words(matrix);
        let code = builder.finish(Spec::new("unusual"), 0).unwrap();
        let data: Vec<Vec<u8>> = (0..k).map(|node| fill(node, 332)).collect();
        for kernel in WordKernel::available() {
            let made = encoded(&codec(code.clone(), kernel), &data, |_| 0);
            assert!(made == reference_parity(&code, &data), "{kernel}: {:?}", code.symbols());
        }
    }
}

/// Covers shards large enough for several threads and for non-temporal stores, at lengths that
/// threads do not divide evenly.
#[cfg_attr(target_family = "wasm", ignore = "there are no threads")]
#[test]
fn threads_and_stores_do_not_change_the_result() {
    for spec in [
        "isal-cauchy:k=4,m=3",
        "isal-cauchy:k=3,m=9",
        "raid6:k=5",
        "raid6:k=5,w=16",
        "reed-solomon:k=4,m=3,w=16",
        "reed-solomon:k=4,m=3,w=32",
    ] {
        let code = code(spec);
        let (k, length) = (code.symbols().unwrap().data_nodes(), (3 << 20) + 77 * word(&code));
        let data: Vec<Vec<u8>> = (0..k).map(|node| fill(node, length)).collect();
        let expected = encoded(&codec(code.clone(), WordKernel::best()), &data, |_| 0);
        let (field, rows) = reference_matrix(&code);
        let head: Vec<Vec<u8>> = data.iter().map(|shard| shard[..96].to_vec()).collect();
        let head = reference::words::encode(&field, &rows, &head);
        assert!(head.iter().zip(&expected).all(|(head, shard)| shard.starts_with(head)));
        for threads in [2, 3, 7] {
            for stores in [Stores::default(), Stores::Cached, Stores::NonTemporal] {
                let options = CodecOptions::default().threads(threads).stores(stores);
                let codec = Codec::with_options(code.clone(), options).unwrap();
                assert!(encoded(&codec, &data, |_| 4) == expected, "{threads} {stores:?}");
            }
            // Packets of many lines, of two lines, of one line, and of a number of bytes that is
            // not a whole number of lines.
            for packet in [4096, 2 * 64, 64, 1000] {
                for split in [Split::Node, Split::Columns] {
                    let options = CodecOptions::default().threads(threads).split(split);
                    let codec = Codec::with_options(code.clone(), options.packet(packet)).unwrap();
                    let what = format!("{spec} {threads} by {split} of {packet}");
                    assert!(encoded(&codec, &data, |_| 4) == expected, "{what}");
                    let shared = split == Split::Node || packet > 64;
                    assert_eq!(codec.split_in_use() == split, shared, "{what}");
                }
            }
        }
    }
}

/// A word has no rows that could be shared.
#[test]
fn words_are_not_split_by_rows() {
    for spec in ["isal-cauchy:k=4,m=3", "reed-solomon:k=4,m=3,w=32"] {
        let error = Codec::with_options(code(spec), options().split(Split::Rows)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Parameters);
        assert!(
            error.to_string().ends_with("must be stripe, node or columns; got rows"),
            "{error}"
        );
    }
}

/// Encodes, loses the given nodes, reconstructs them and compares.
fn lose(codec: &Codec, shards: &[Vec<u8>], lost: &[usize]) -> Result<(), paritas::Error> {
    let mut made = vec![vec![0xAA; shards[0].len()]; lost.len()];
    let mut buffers: Vec<_> = shards.iter().map(|shard| Source(shard)).collect();
    for (&node, shard) in lost.iter().zip(&mut made) {
        buffers[node] = Target(shard);
    }
    codec.reconstruct_into(&mut buffers)?;
    for (&node, made) in lost.iter().zip(&made) {
        assert!(made == &shards[node], "{}: node {node} of {lost:?}", codec.code().spec());
    }
    Ok(())
}

fn all_shards(codec: &Codec, length: usize) -> Vec<Vec<u8>> {
    let code = codec.code();
    let k = code.nodes().filter(|&node| code.holds_data(node)).count();
    let mut shards: Vec<Vec<u8>> = (0..code.node_count()).map(|node| fill(node, length)).collect();
    let (data, parity) = shards.split_at_mut(k);
    codec.encode(&as_slices(data), &mut as_mut_slices(parity)).unwrap();
    shards
}

/// Tries every pattern of losses, and returns how many patterns were tried.
fn exhaust(spec: &str) -> usize {
    let codec = Codec::with_options(code(spec), options()).unwrap();
    let shards = all_shards(&codec, 36);
    let tolerance = codec.code().tolerance();
    let mut tried = 0;
    for count in 1..=tolerance + 1 {
        for lost in combinations(codec.code().node_count(), count) {
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

/// Tries all codes of a family with up to 12 nodes; what the family refuses is tested elsewhere,
/// with the family.
fn exhaust_family(family: &str, rest: &str, nodes: usize) {
    let shapes = (1..nodes).flat_map(|k| (1..=nodes - k).map(move |m| (k, m)));
    let specs: Vec<Spec> =
        shapes.map(|(k, m)| format!("{family}:k={k},m={m}{rest}").parse().unwrap()).collect();
    let legal: Vec<&Spec> = specs.iter().filter(|spec| Code::new(spec).is_ok()).collect();
    assert!(legal.len() == specs.len() || family == "isal-rs");
    let tried: usize = legal.iter().map(|spec| exhaust(&spec.to_string())).sum();
    println!("{family}{rest}: {} codes, {tried} patterns of losses tried", legal.len());
}

#[test]
fn every_pattern_of_losses_up_to_12_nodes_of_bytes() {
    for family in ["isal-cauchy", "backblaze", "isal-rs", "zfec"] {
        exhaust_family(family, "", 12);
    }
}

#[test]
fn every_pattern_of_losses_of_small_codes_of_reed_solomon() {
    let nodes = if std::env::var_os("PARITAS_SOAK").is_some() { 12 } else { 10 };
    for rest in [",w=8", ",w=16", ",w=32"] {
        exhaust_family("reed-solomon", rest, nodes);
    }
}

#[test]
fn every_pattern_of_losses_up_to_12_nodes_of_raid6() {
    for rest in ["", ",w=16", ",w=32"] {
        let tried: usize = (1..=10).map(|k| exhaust(&format!("raid6:k={k}{rest}"))).sum();
        println!("raid6{rest}: {tried} patterns of losses tried");
    }
}

/// Tries patterns of m losses and of one more, drawn with a fixed seed.
#[test]
fn larger_codes_recover_what_is_drawn() {
    let mut state = 1_u64;
    let mut draw = |below: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let (mut tried, mut refused) = (0, 0);
    for (family, rest) in [
        ("isal-cauchy", ""),
        ("backblaze", ""),
        ("zfec", ""),
        ("reed-solomon", ",w=8"),
        ("reed-solomon", ",w=16"),
        ("reed-solomon", ",w=32"),
    ] {
        for (k, m) in (0..12).map(|_| (5 + draw(28), 1 + draw(8))).collect::<Vec<_>>() {
            let codec =
                Codec::with_options(code(&format!("{family}:k={k},m={m}{rest}")), options())
                    .unwrap();
            let shards = all_shards(&codec, 36);
            for count in (0..8).map(|i| m + usize::from(i == 0)) {
                let mut nodes: Vec<usize> = (0..k + m).collect();
                let lost: Vec<usize> =
                    (0..count).map(|_| nodes.swap_remove(draw(nodes.len()))).collect();
                assert_eq!(lose(&codec, &shards, &lost).is_ok(), count == m, "{lost:?}");
                tried += 1;
                refused += usize::from(count > m);
            }
        }
    }
    println!("larger codes: {tried} patterns of losses tried, {refused} of them too many");
}

/// In the packet layout shards consist of strips, so lengths are multiples of a strip.
#[test]
fn every_pattern_of_losses_of_raid6_packets() {
    let mut tried = 0;
    for (k, w) in (1..=10).flat_map(|k| [(k, 4), (k, 8)]).chain([(1, 1), (3, 2), (4, 32)]) {
        let spec = format!("raid6:k={k},w={w},layout=packets");
        let codec = common::codec(&spec, 8, KernelChoice::Auto);
        let shards = common::encoded(&codec, 3);
        for count in 1..=3 {
            for lost in combinations(k + 2, count) {
                tried += 1;
                assert_eq!(lose(&codec, &shards, &lost).is_ok(), count < 3, "{spec}: {lost:?}");
            }
        }
    }
    println!("raid6 in packets: {tried} patterns of losses tried");
}

#[test]
fn wide_codes_recover_the_most_losses() {
    for spec in [
        "isal-cauchy:k=200,m=56",
        "backblaze:k=128,m=128",
        "zfec:k=128,m=128",
        "reed-solomon:k=200,m=56",
        "reed-solomon:k=300,m=5",
        "isal-rs:k=253,m=3",
        "raid6:k=255",
        "raid6:k=300,w=16",
    ] {
        let codec = Codec::with_options(code(spec), options()).unwrap();
        let shards = all_shards(&codec, 34);
        let (nodes, most) = (shards.len(), codec.code().tolerance());
        for lost in [
            (0..most).collect::<Vec<_>>(),
            (nodes - most..nodes).collect(),
            (0..most).map(|i| i * nodes / most).collect(),
        ] {
            lose(&codec, &shards, &lost).unwrap();
        }
        assert!(lose(&codec, &shards, &(0..=most).collect::<Vec<_>>()).is_err(), "{spec}");
    }
}

/// Transposes each block of 8 bytes as a matrix of bits.
fn transpose(shard: &[u8]) -> Vec<u8> {
    let mut mirrored = vec![0; shard.len()];
    for (byte, value) in shard.iter().enumerate() {
        for bit in (0..8).filter(|bit| value & (1 << bit) != 0) {
            mirrored[byte / 8 * 8 + bit] |= 1 << (byte % 8);
        }
    }
    mirrored
}

/// With w = 8 and packets of one byte, a strip is an 8 by 8 matrix of bits, and the words with the
/// same symbols are its transpose.
#[test]
fn raid6_words_are_transposed_packets() {
    let packets = common::codec("raid6:k=6,layout=packets", 1, KernelChoice::Auto);
    let words = Codec::with_options(code("raid6:k=6"), options()).unwrap();
    let data: Vec<Vec<u8>> = (0..6).map(|node| fill(node, 8 * 50)).collect();
    let encode = |codec: &Codec, data: &[Vec<u8>]| {
        let mut parity = vec![vec![0; 400]; 2];
        codec.encode(&as_slices(data), &mut as_mut_slices(&mut parity)).unwrap();
        parity
    };
    let transposed: Vec<Vec<u8>> = data.iter().map(|shard| transpose(shard)).collect();
    let expected: Vec<Vec<u8>> =
        encode(&packets, &data).iter().map(|shard| transpose(shard)).collect();
    assert_eq!(encode(&words, &transposed), expected);
}

#[test]
fn updates_equal_encoding_anew() {
    for spec in [
        "isal-cauchy:k=5,m=7",
        "isal-rs:k=4,m=3",
        "raid6:k=6",
        "raid6:k=3,w=16",
        "backblaze:k=1,m=2",
        "reed-solomon:k=3,m=5,w=16",
        "reed-solomon:k=3,m=4,w=32",
    ] {
        for kernel in WordKernel::available() {
            for stores in [Stores::default(), Stores::NonTemporal] {
                let options = options().word_kernel(kernel).stores(stores);
                let codec = Codec::with_options(code(spec), options).unwrap();
                let k = codec.code().symbols().unwrap().data_nodes();
                let mut shards = all_shards(&codec, 516);
                for node in 0..k {
                    let new = fill(100 + node, 516);
                    let old = std::mem::replace(&mut shards[node], new.clone());
                    let (data, parity) = shards.split_at_mut(k);
                    codec
                        .update(NodeId::new(node), &old, &new, &mut as_mut_slices(parity))
                        .unwrap();
                    let fresh = reference_parity(codec.code(), data);
                    assert!(parity == &fresh[..], "{spec}, {kernel}, node {node}");
                }
            }
        }
    }
}

/// A degraded read needs only some nodes and wants only one.
#[test]
fn absent_nodes_are_neither_read_nor_computed() {
    let codec = Codec::with_options(code("isal-cauchy:k=4,m=3"), options()).unwrap();
    let shards = all_shards(&codec, 99);
    let mut target = vec![0; 99];
    codec
        .reconstruct_into(&mut [
            Target(&mut target),
            Absent,
            Source(&shards[2]),
            Absent,
            Source(&shards[4]),
            Source(&shards[5]),
            Source(&shards[6]),
        ])
        .unwrap();
    assert!(target == shards[0]);
}

/// Files cut shards into strips of w packets; words pass through unchanged.
#[test]
fn lanes_hold_plain_words() {
    let options = options().packet(24);
    let lanes = LaneCodec::new(code("isal-cauchy:k=3,m=2"), options).unwrap();
    assert_eq!((lanes.strip(), lanes.buffer_count()), (8 * 24, 5));
    let nodes = Codec::with_options(code("isal-cauchy:k=3,m=2"), self::options()).unwrap();
    assert_eq!(nodes.strip(), 1);
    let shards = all_shards(&nodes, 5 * 8 * 24);
    let (have, want) = (lanes.code().stored(Role::Data), lanes.code().stored(Role::Parity));
    let mut made = vec![vec![0; shards[0].len()]; 2];
    let [p, q] = &mut made[..] else { unreachable!() };
    let mut buffers =
        [Source(&shards[0]), Source(&shards[1]), Source(&shards[2]), Target(p), Target(q)];
    assert!(lanes.solvable(&have, &want));
    lanes.compute(&have, &want, &mut buffers).unwrap();
    assert!(made == shards[3..]);
    let short = &shards[0][1..];
    let error = lanes.compute(
        &have,
        &want,
        &mut [
            Source(short),
            Source(short),
            Source(short),
            Target(&mut [0; 959]),
            Target(&mut [0; 960]),
        ],
    );
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Length);
}

#[test]
fn symbols_are_not_divided() {
    let codec = Codec::with_options(code("raid6:k=2"), options()).unwrap();
    let code = codec.code();
    let mut have = code.stored(Role::Data);
    have.remove(code.node_cells(NodeId::new(1))[3]);
    let want = code.stored(Role::Parity);
    let error = codec.compute(&have, &want, &mut []).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Parameters);
    assert!(error.to_string().contains("7 of the 8 cells of node 1"), "{error}");
    assert!(!codec.solvable(&have, &want));
    assert!(codec.solvable(&code.stored(Role::Data), &CellSet::new(code.cell_count())));
}

#[test]
fn wrong_buffers_are_refused() {
    let codec = Codec::with_options(code("isal-cauchy:k=2,m=2"), options()).unwrap();
    let shard = vec![0; 100];
    let (mut p, mut q) = (vec![0; 100], vec![0; 101]);
    let error = codec.encode(&[&shard, &shard], &mut [&mut p, &mut q]).unwrap_err();
    assert!(
        error.to_string().contains("buffer 3 must have 100 bytes, as the others; got 101"),
        "{error}"
    );
    // What is to be computed is wrong, and not what is given, also if it comes first.
    let code = codec.code();
    let have = code.cells_of([NodeId::new(1), NodeId::new(2)]);
    let want = code.cells_of([NodeId::new(0)]);
    let mut lost = vec![0; 101];
    let mut buffers = [Target(&mut lost), Source(&shard), Source(&p), Absent];
    let error = codec.compute(&have, &want, &mut buffers).unwrap_err();
    assert_eq!((error.node(), error.expected(), error.given()), (Some(0), Some(100), Some(101)));
    let mut lost = vec![0; 100];
    let mut buffers = [Target(&mut lost), Absent, Source(&p), Absent];
    let error = codec.compute(&have, &want, &mut buffers).unwrap_err();
    assert!(error.to_string().contains("buffer 1 is needed but absent"), "{error}");
}

/// Returns the tiled kernel on the registers of a kernel of the lab, and any other kernel as it is.
fn on_the_same_registers(kernel: Kernel) -> Kernel {
    let (Kernel::Packetwise(width) | Kernel::Datawise(width)) = kernel else { return kernel };
    match width {
        Width::Bits64 => Kernel::Scalar,
        Width::Bits128 if cfg!(target_arch = "aarch64") => Kernel::Neon,
        Width::Bits128 if cfg!(target_arch = "wasm32") => Kernel::Simd128,
        Width::Bits128 => Kernel::Sse2,
        Width::Bits256 => Kernel::Avx2,
        Width::Bits512 => Kernel::Avx512,
    }
}

/// A choice of a kernel of the packet layout selects the word kernel on the same registers.
#[test]
fn choices_of_kernels_carry_over() {
    for kernel in Kernel::available() {
        let options = options().kernel(KernelChoice::Only(kernel));
        let words = Codec::with_options(code("raid6:k=2"), options.clone()).unwrap();
        let expected = match on_the_same_registers(kernel) {
            _ if kernel == Kernel::Packetwise(Width::Bits64) => "words-packetwise64",
            Kernel::Scalar => "words-scalar",
            Kernel::Avx2 | Kernel::JitAvx2 => "words-avx2",
            Kernel::Sse2 if WordKernel::Ssse3.is_available() => "words-ssse3",
            Kernel::Sse2 => "words-scalar",
            Kernel::JitAvx512Vl if WordKernel::Gfni256.is_available() => "words-gfni-avx2",
            Kernel::JitAvx512Vl => "words-avx2",
            _ => WordKernel::best().name(),
        };
        assert_eq!(words.kernel_name(), expected, "{kernel}");
        let packets = Codec::with_options(code("4+2"), options).unwrap();
        assert_eq!(packets.kernel_name(), kernel.name());
    }
    for kernel in WordKernel::ALL.iter().copied().filter(|kernel| !kernel.is_available()) {
        let options = options().word_kernel(kernel);
        let error = Codec::with_options(code("raid6:k=2"), options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Kernel);
    }
}
