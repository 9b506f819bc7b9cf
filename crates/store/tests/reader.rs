//! A second reader of shard files, written from the essay in `format.rs` and sharing no code with the
//! crate: that the essay is enough, and that the files are what it says.
//!
//! It reads undamaged data shards of codes that keep the user's bytes, without any generator
//! matrix, and those of LT codes by drawing their graphs.

mod common;
#[path = "reader/lt.rs"]
mod lt;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use common::{content, crc64_nvme};
use paritas::{Code, Pin};

/// As much of CBOR as the format uses.
#[derive(Debug, Clone, PartialEq)]
enum Cbor {
    Number(u64),
    Bytes(Vec<u8>),
    Text(String),
    Array(Vec<Cbor>),
    Map(BTreeMap<u64, Cbor>),
}

impl Cbor {
    fn read(input: &mut &[u8]) -> Self {
        let first = take(input, 1)[0];
        let argument = match first & 31 {
            small @ 0..24 => u64::from(small),
            size @ 24..28 => {
                take(input, 1 << (size - 24)).iter().fold(0, |n, &byte| n << 8 | u64::from(byte))
            }
            other => panic!("not deterministic: {other}"),
        };
        let length = argument as usize;
        match first >> 5 {
            0 => Self::Number(argument),
            2 => Self::Bytes(take(input, length).to_vec()),
            3 => Self::Text(String::from_utf8(take(input, length).to_vec()).unwrap()),
            4 => Self::Array((0..length).map(|_| Self::read(input)).collect()),
            5 => {
                let pair = |_| (Self::read(input).number(), Self::read(input));
                let pairs: Vec<_> = (0..length).map(pair).collect();
                assert!(pairs.is_sorted_by(|a, b| a.0 < b.0));
                Self::Map(pairs.into_iter().collect())
            }
            other => panic!("major type {other}"),
        }
    }

    fn number(&self) -> u64 {
        let Self::Number(number) = self else { panic!("{self:?}") };
        *number
    }

    fn bytes(&self) -> &[u8] {
        let Self::Bytes(bytes) = self else { panic!("{self:?}") };
        bytes
    }

    fn at(&self, key: u64) -> &Self {
        let Self::Map(map) = self else { panic!("{self:?}") };
        &map[&key]
    }

    fn has(&self, key: u64) -> bool {
        matches!(self, Self::Map(map) if map.contains_key(&key))
    }
}

fn take<'a>(input: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (taken, rest) = input.split_at(count);
    *input = rest;
    taken
}

fn little(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

/// Reads a record at the beginning of the input.
fn record(input: &mut &[u8], kind: u64) -> Cbor {
    let whole = *input;
    assert_eq!(take(input, 8), [0x89, 0x50, 0x52, 0x54, 0x53, 0x0D, 0x0A, 0x1A]);
    assert_eq!((little(take(input, 2)), little(take(input, 2))), (1, kind));
    let length = little(take(input, 4)) as usize;
    let mut body = take(input, length);
    assert_eq!(little(take(input, 8)), crc64_nvme(&whole[..16 + length]));
    let body_read = Cbor::read(&mut body);
    assert!(body.is_empty());
    body_read
}

/// The vectors that are not damaged.
const INTACT: [&str; 10] = [
    "cauchy-4-2",
    "cauchy-points",
    "cauchy-wide",
    "rdp-4",
    "evenodd-3-of-5",
    "empty",
    "one-byte",
    "renamed",
    "several-stripes",
    "xcode-5",
];

/// What one file holds.
#[derive(Clone)]
struct Shard {
    footer: Cbor,
    /// Per segment, the lanes' payloads, one after the other.
    blocks: Vec<Vec<u8>>,
}

/// What a code's name says of its shards.
struct Shape {
    /// The rows of a node, and how many of them are a lane.
    rows: usize,
    lane_rows: usize,
    /// The nodes with data, which come first, and the rows of data that they have, which do too.
    data_nodes: usize,
    data_rows: usize,
}

impl Shape {
    /// Of a shard.
    fn of(spec: &str, shard: usize) -> Self {
        let value = |key: &str| -> Option<usize> {
            let (_, parameters) = spec.split_once(':')?;
            let found =
                parameters.split(',').find_map(|p| p.strip_prefix(key)?.strip_prefix('='))?;
            found.parse().ok()
        };
        let (rows, lane_rows) = match spec.split(':').next().unwrap() {
            "xcode" => {
                let n = value("n").unwrap();
                return Self { rows: n, lane_rows: 1, data_nodes: n, data_rows: n - 2 };
            }
            "cauchy" => {
                let nodes = value("k").unwrap() + value("m").unwrap();
                let w = value("w").unwrap_or(nodes.next_power_of_two().trailing_zeros() as usize);
                (w, w)
            }
            // Data that stands on no node, as if on one.
            "lt" => {
                let (n, nodes) = (value("n").unwrap(), value("nodes").unwrap());
                let rows = (shard..n).step_by(nodes).count();
                return Self { rows, lane_rows: 1, data_nodes: 1, data_rows: value("k").unwrap() };
            }
            _ => (value("p").unwrap() - 1, 1),
        };
        Self { rows, lane_rows, data_nodes: value("k").unwrap(), data_rows: rows }
    }
}

fn read_shard(bytes: &[u8]) -> Shard {
    let trailer = bytes.len() - 16;
    assert_eq!(bytes[trailer + 8..], [0x1A, 0x0A, 0x0D, 0x53, 0x54, 0x52, 0x50, 0x89]);
    assert_eq!(little(&bytes[trailer + 4..trailer + 8]), 0);
    let footer_start = trailer - little(&bytes[trailer..trailer + 4]) as usize;
    let footer = record(&mut &bytes[footer_start..trailer], 2);
    let mut rest = &bytes[..footer_start];
    let front = record(&mut rest, 1);
    assert!(!front.has(2));
    assert_eq!((front.at(0), front.at(1)), (footer.at(0), footer.at(1)));

    let identity = footer.at(0);
    let Cbor::Text(spec) = identity.at(0) else { panic!() };
    assert_eq!(identity.at(3), &Cbor::Text("packets".to_owned()));
    let Shape { rows, lane_rows, data_nodes, data_rows } =
        Shape::of(spec, footer.at(1).number() as usize);
    let packet = identity.at(4).number() as usize;
    let stripe = data_nodes * data_rows * packet;
    let mut left = footer.at(2).at(0).number() as usize;
    let mut blocks = Vec::new();
    while left > 0 {
        let stripes = left.div_ceil(stripe).min(identity.at(5).number() as usize);
        left -= left.min(stripes * stripe);
        let mut block = Vec::new();
        for lane in 0..rows / lane_rows {
            let payload = take(&mut rest, stripes * lane_rows * packet);
            let mut summed = identity.at(6).bytes().to_vec();
            summed.extend((footer.at(1).number() as u32).to_le_bytes());
            summed.extend((blocks.len() as u64).to_le_bytes());
            summed.extend((lane as u32).to_le_bytes());
            summed.extend(payload);
            assert_eq!(little(take(&mut rest, 8)), crc64_nvme(&summed));
            block.extend(payload);
        }
        blocks.push(block);
    }
    assert!(rest.is_empty());
    Shard { footer, blocks }
}

fn cases(names: &[&'static str]) -> Vec<(&'static str, Vec<Shard>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/shards/v1");
    let read = |&name: &&'static str| {
        let entries = fs::read_dir(root.join(name)).unwrap();
        let paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        let read = |path: &PathBuf| read_shard(&fs::read(path).unwrap());
        let mut shards: Vec<Shard> = paths.iter().map(read).collect();
        shards.sort_by_key(|shard| shard.footer.at(1).number());
        assert_eq!(shards.len() as u64, shards[0].footer.at(0).at(8).number());
        (name, shards)
    };
    names.iter().map(read).collect()
}

fn spec(shards: &[Shard]) -> &str {
    let Cbor::Text(spec) = shards[0].footer.at(0).at(0) else { panic!() };
    spec
}

/// What makes the code the same for ever, whatever a spec means by default one day.
fn pin(shards: &[Shard]) -> Pin {
    let entry = |pin: Pin, entry: &Cbor| {
        let Cbor::Array(pair) = entry else { panic!("{entry:?}") };
        let [Cbor::Text(name), Cbor::Array(numbers)] = &pair[..] else { panic!("{entry:?}") };
        pin.with(name, numbers.iter().map(Cbor::number))
    };
    let Cbor::Array(entries) = shards[0].footer.at(0).at(1) else { panic!() };
    entries.iter().fold(Pin::new(), entry)
}

#[test]
fn the_essay_is_enough() {
    for (case, shards) in cases(&INTACT) {
        let (mut object, shape) = (Vec::new(), Shape::of(spec(&shards), 0));
        for segment in 0..shards[0].blocks.len() {
            for shard in &shards[..shape.data_nodes] {
                let block = &shard.blocks[segment];
                object.extend(&block[..block.len() / shape.rows * shape.data_rows]);
            }
        }
        let total = shards[0].footer.at(2);
        let length = total.at(0).number() as usize;
        assert!(object[length..].iter().all(|&byte| byte == 0), "{case}: the rest is not zero");
        object.truncate(length);
        assert!(object == content(length), "{case}");
        assert_eq!(blake3::hash(&object).as_bytes(), total.at(1).bytes());
    }
}

/// Every stored cell is the XOR of data cells that its row of the generator names. The code is only
/// looked at, not run.
#[test]
fn parity_is_what_the_generator_says() {
    for (case, shards) in cases(&INTACT) {
        let code = Code::rebuild(&spec(&shards).parse().unwrap(), &pin(&shards)).unwrap();
        let packet = shards[0].footer.at(0).at(4).number() as usize;
        let Shape { rows, lane_rows, .. } = Shape::of(spec(&shards), 0);
        for segment in 0..shards[0].blocks.len() {
            let stripes = shards[0].blocks[segment].len() / (rows * packet);
            let cell = |cell: paritas::CellId, stripe: usize| {
                let place = code.cell(cell).place.unwrap();
                let (lane, row) = (place.row / lane_rows, place.row % lane_rows);
                let start = (lane * stripes + stripe) * lane_rows + row;
                &shards[place.node.index()].blocks[segment][start * packet..][..packet]
            };
            for (id, stripe) in code.cells().flat_map(|id| (0..stripes).map(move |s| (id, s))) {
                if code.cell(id).place.is_none() {
                    continue;
                }
                let mut sum = vec![0; packet];
                for &data in code.row(id) {
                    let source = cell(code.data_cells()[data as usize], stripe);
                    sum.iter_mut().zip(source).for_each(|(sum, byte)| *sum ^= byte);
                }
                assert!(sum == cell(id, stripe), "{case}: {} stripe {stripe}", code.cell_name(id));
            }
        }
    }
}
