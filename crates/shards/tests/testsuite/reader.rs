//! A second reader of shard files, written from the essay in `format.rs` without any code of the
//! crate. It shows that the essay is sufficient, and that the files match it.
//!
//! It reads undamaged data shards of codes that store the user's bytes, without any generator
//! matrix; codes with stages, in any stage; and LT codes, by drawing their graphs.

mod lt;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{content, crc64_nvme};
use paritas::Code;
use paritas::code::Pin;

/// The part of CBOR that the format uses.
#[derive(Debug, Clone, PartialEq)]
enum Cbor {
    Number(u64),
    /// The number -1 - n.
    Negative(u64),
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
            1 => Self::Negative(argument),
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
    let version = little(take(input, 2));
    assert_eq!(little(take(input, 2)), kind);
    let length = little(take(input, 4)) as usize;
    let mut body = take(input, length);
    assert_eq!(little(take(input, 8)), crc64_nvme(&whole[..16 + length]));
    let body_read = Cbor::read(&mut body);
    assert!(body.is_empty());
    let stated = body_read.at(0);
    let has_attributes = stated.has(10) || stated.has(11);
    let expected = [has_attributes, body_read.has(3), true].iter().position(|&has| has).unwrap();
    assert_eq!(version, 3 - expected as u64);
    body_read
}

/// Names of the vectors that are not damaged.
const INTACT: [&str; 18] = [
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
    "matrix-local",
    "matrix-vertical",
    "dpg-stage-1",
    "dpg-stage-2",
    "bbdpg-all-stage-1",
    "bbdpg-all-stage-2",
    "attributes",
    "attributes-stage-2",
];

/// The content of one file, or of all files of a node.
#[derive(Clone)]
struct Shard {
    footer: Cbor,
    /// The lanes' payloads, for each segment.
    blocks: Vec<Vec<Vec<u8>>>,
}

impl Shard {
    fn index(&self) -> usize {
        self.footer.at(1).number() as usize
    }

    fn stage(&self) -> u64 {
        if self.footer.has(3) { self.footer.at(3).number() } else { 1 }
    }
}

/// The shape of shards that a code's name gives.
struct Shape {
    lane_rows: usize,
    /// The stage of each lane, for each node.
    lanes: Vec<Vec<u64>>,
    /// The lanes with the user's bytes, as (node, lane), in the order of these.
    data: Vec<(usize, usize)>,
}

impl Shape {
    fn of(spec: &str) -> Self {
        let value = |key: &str| -> Option<usize> {
            let (_, parameters) = spec.split_once(':')?;
            let found =
                parameters.split(',').find_map(|p| p.strip_prefix(key)?.strip_prefix('='))?;
            found.parse().ok()
        };
        let plain =
            |k: usize, nodes: usize, lane_rows: usize, lanes: usize, with_data: usize| Self {
                lane_rows,
                lanes: vec![vec![1; lanes]; nodes],
                data: (0..k)
                    .flat_map(|node| (0..with_data).map(move |lane| (node, lane)))
                    .collect(),
            };
        match spec.split(':').next().unwrap() {
            "xcode" => {
                let n = value("n").unwrap();
                plain(n, n, 1, n, n - 2)
            }
            "matrix" => {
                let [k, m, w] = ["k", "m", "w"].map(|key| value(key).unwrap());
                match spec.contains("placement=vertical") {
                    true => plain(k + m, k + m, 1, w, k * w / (k + m)),
                    false => plain(k, k + m, 1, w, w),
                }
            }
            "cauchy" => {
                let (k, m) = (value("k").unwrap(), value("m").unwrap());
                let w = (k + m).next_power_of_two().trailing_zeros() as usize;
                plain(k, k + m, value("w").unwrap_or(w), 1, 1)
            }
            "dpg" | "bbdpg" => {
                let [k, m, m2, w] = ["k", "m", "m2", "w"].map(|key| value(key).unwrap());
                Self::group(k, m, m2, w, spec.ends_with("interleave=all"))
            }
            "lt" => {
                let [k, n, nodes] = ["k", "n", "nodes"].map(|key| value(key).unwrap());
                Self::spread(k, n, nodes)
            }
            _ => {
                let (k, rows) = (value("k").unwrap(), value("p").unwrap() - 1);
                plain(k, k + 2, 1, rows, rows)
            }
        }
    }

    /// n blocks, each of which is a lane, dealt out over the nodes. The k data lanes are not
    /// stored.
    fn spread(k: usize, n: usize, nodes: usize) -> Self {
        let count = |node: usize| (node..n).step_by(nodes).count();
        Self {
            lane_rows: 1,
            lanes: (0..nodes).map(|node| vec![1; count(node)]).collect(),
            data: vec![(nodes, 0); k],
        }
    }

    /// A group of m2 stripes of k + m2 symbols, of which the last m2 - m are computed in stage 2.
    /// Symbol s of stripe t is on node s or, with interleave=all, on node s + t (m2 - m) modulo k +
    /// m2. A node has its symbols in the order of stages, and within a stage in the order of
    /// stripes.
    fn group(k: usize, m: usize, m2: usize, w: usize, interleaved: bool) -> Self {
        let mut symbols: Vec<Vec<(u64, usize, usize)>> = vec![Vec::new(); k + m2];
        for (stripe, symbol) in (0..m2).flat_map(|t| (0..k + m2).map(move |s| (t, s))) {
            let shift = if interleaved { stripe * (m2 - m) } else { 0 };
            let stage = if symbol < k + m { 1 } else { 2 };
            symbols[(symbol + shift) % (k + m2)].push((stage, stripe, symbol));
        }
        symbols.iter_mut().for_each(|symbols| symbols.sort_unstable());
        let mut data: Vec<((usize, usize), (usize, usize))> = Vec::new();
        for (node, symbols) in symbols.iter().enumerate() {
            let here = symbols.iter().enumerate().filter(|(_, (_, _, symbol))| *symbol < k);
            data.extend(here.map(|(lane, &(_, stripe, symbol))| ((stripe, symbol), (node, lane))));
        }
        data.sort_unstable();
        Self {
            lane_rows: w,
            lanes: symbols.iter().map(|s| s.iter().map(|&(stage, ..)| stage).collect()).collect(),
            data: data.into_iter().map(|(_, place)| place).collect(),
        }
    }

    /// Returns the number of files once a stage is done.
    fn files(&self, stage: u64) -> usize {
        let stages = 1..=stage;
        stages.map(|stage| self.lanes.iter().filter(|lanes| lanes.contains(&stage)).count()).sum()
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
    assert_eq!((front.has(3), front.has(3).then(|| front.at(3))), {
        (footer.has(3), footer.has(3).then(|| footer.at(3)))
    });

    let mut shard = Shard { footer, blocks: Vec::new() };
    let identity = shard.footer.at(0).clone();
    let Cbor::Text(spec) = identity.at(0) else { panic!() };
    assert_eq!(identity.at(3), &Cbor::Text("packets".to_owned()));
    let Shape { lane_rows, lanes, data } = Shape::of(spec);
    let packet = identity.at(4).number() as usize;
    let stripe = data.len() * lane_rows * packet;
    let mut left = shard.footer.at(2).at(0).number() as usize;
    while left > 0 {
        let stripes = left.div_ceil(stripe).min(identity.at(5).number() as usize);
        left -= left.min(stripes * stripe);
        let mut block = Vec::new();
        for (lane, &stage) in lanes[shard.index()].iter().enumerate() {
            if stage != shard.stage() {
                continue;
            }
            let payload = take(&mut rest, stripes * lane_rows * packet);
            let mut summed = identity.at(6).bytes().to_vec();
            summed.extend((shard.index() as u32).to_le_bytes());
            summed.extend((shard.blocks.len() as u64).to_le_bytes());
            summed.extend((lane as u32).to_le_bytes());
            summed.extend(payload);
            assert_eq!(little(take(&mut rest, 8)), crc64_nvme(&summed));
            block.push(payload.to_vec());
        }
        shard.blocks.push(block);
    }
    assert!(rest.is_empty());
    shard
}

/// Returns the nodes of each case, with the blocks of all their files.
fn cases(names: &[&'static str]) -> Vec<(&'static str, Vec<Shard>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/shards/v1");
    let read = |&name: &&'static str| {
        let entries = fs::read_dir(root.join(name)).unwrap();
        let paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        let read = |path: &PathBuf| read_shard(&fs::read(path).unwrap());
        let mut shards: Vec<Shard> = paths.iter().map(read).collect();
        shards.sort_by_key(|shard| (shard.index(), shard.stage()));
        let stage = shards.iter().map(Shard::stage).max().unwrap();
        let shape = Shape::of(spec(&shards));
        assert_eq!(shards.len(), shape.files(stage));
        assert_eq!(shape.lanes.len() as u64, shards[0].footer.at(0).at(8).number());
        let mut nodes: Vec<Shard> = Vec::new();
        for shard in shards {
            match nodes.last_mut().filter(|node| node.index() == shard.index()) {
                None => nodes.push(shard),
                Some(node) => {
                    let both = node.blocks.iter_mut().zip(shard.blocks);
                    both.for_each(|(block, more)| block.extend(more));
                }
            }
        }
        (name, nodes)
    };
    names.iter().map(read).collect()
}

fn spec(shards: &[Shard]) -> &str {
    let Cbor::Text(spec) = shards[0].footer.at(0).at(0) else { panic!() };
    spec
}

/// Returns what fixes the code for ever, even if the defaults of a spec should change.
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
        let (mut object, shape) = (Vec::new(), Shape::of(spec(&shards)));
        for segment in 0..shards[0].blocks.len() {
            for &(node, lane) in &shape.data {
                object.extend(&shards[node].blocks[segment][lane]);
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

#[test]
fn mode_and_time_are_stated_in_all_stages() {
    let time = |seconds, nanoseconds| Cbor::Array(vec![seconds, Cbor::Number(nanoseconds)]);
    for (case, mode, time) in [
        ("attributes", 0o640, time(Cbor::Number(1_700_000_000), 123_456_789)),
        ("attributes-stage-2", 0o4755, time(Cbor::Negative(0), 999_999_999)),
    ] {
        for (_, shards) in cases(&[case]) {
            for identity in shards.iter().map(|shard| shard.footer.at(0)) {
                assert_eq!((identity.at(10), identity.at(11)), (&Cbor::Number(mode), &time));
            }
        }
    }
}

/// Every stored cell is the XOR of the data cells that its row of the generator names. The code is
/// only inspected, not run.
#[test]
fn parity_is_what_the_generator_says() {
    for (case, shards) in cases(&INTACT) {
        let code = Code::rebuild(&spec(&shards).parse().unwrap(), &pin(&shards)).unwrap();
        let packet = shards[0].footer.at(0).at(4).number() as usize;
        let lane_rows = Shape::of(spec(&shards)).lane_rows;
        let mut compared = 0;
        for segment in 0..shards[0].blocks.len() {
            let stripes = shards[0].blocks[segment][0].len() / (lane_rows * packet);
            // Cells that are computed in a later stage are not read.
            let cell = |cell: paritas::code::CellId, stripe: usize| {
                let place = code.cell(cell).place?;
                let lane =
                    shards.get(place.node.index())?.blocks[segment].get(place.row / lane_rows)?;
                let row = stripe * lane_rows + place.row % lane_rows;
                Some(&lane[row * packet..][..packet])
            };
            for (id, stripe) in code.cells().flat_map(|id| (0..stripes).map(move |s| (id, s))) {
                let Some(found) = cell(id, stripe) else { continue };
                let mut sum = vec![0; packet];
                for &data in code.row(id) {
                    let source = cell(code.data_cells()[data as usize], stripe).unwrap();
                    sum.iter_mut().zip(source).for_each(|(sum, byte)| *sum ^= byte);
                }
                assert!(sum == found, "{case}: {} stripe {stripe}", code.cell_name(id));
                compared += 1;
            }
        }
        assert!(compared > 0 || shards[0].blocks.is_empty(), "{case}");
    }
}
