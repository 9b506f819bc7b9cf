//! Table 4.4 of the dissertation, measured here: throughput of delayed parity generation and of
//! codes without it.
//!
//! ```sh
//! cargo run --release -p paritas-tune --example dpg_throughput -- [REPETITIONS [BYTES]]
//! ```
//!
//! The parameters are the eight (k, m, m2) of T. Zhou, *Erasure Coding Optimization for Data
//! Storage* (2020), section 4.8.2. The operations are encoding of stage one (`enc`), recovery of m
//! lost data nodes after it (`dec1`), stage two (`gen`), and recovery of m2 lost data nodes after
//! that (`dec2`). There are six codes: BB-DPG; DPG over the searched matrix; DPG over the natural
//! one; DPG over a finite field (words of 8 bits, `isal-cauchy`, one stripe after the other, with
//! additions of whole symbols between); and m2 stripes of a (k, m) and of a (k, m2) code.
//!
//! GB/s are user bytes: k × shard bytes / seconds / 10^9, on one thread; all shards together have
//! BYTES bytes (by default 512 KiB, which fits in cache). Within one process every code runs in
//! pairs with BB-DPG. Before an operation is timed, recovered data is compared with the original.
//! Each line is one operation: BB-DPG in GB/s (the median and the 90th percentile), then the others
//! in percent of it with an interval, and beside them the dissertation's percentage.

use std::error::Error;

use paritas::code::{CellSet, Role};
use paritas::{Buffer, Code, Codec, CodecOptions, NodeId};
use paritas_tune::measure::{Pairs, Rounds, Shard, Side, sample};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// k, m, m2 and w, and the dissertation's percentages for each operation: DPG, DPG without
/// optimisation, DPG over a field, and those of the (k, m) and (k, m2) codes that have the
/// operation.
const TABLE: [([usize; 4], [&str; 4]); 8] = [
    ([5, 2, 3, 4], ["98 92 87 130 96", "96 97 87 113 -", "104 91 85 - -", "101 98 80 - 104"]),
    ([6, 2, 4, 4], ["96 92 81 134 85", "104 102 91 121 -", "102 95 81 - -", "101 99 68 - 102"]),
    ([8, 2, 4, 4], ["102 97 84 138 86", "99 100 86 112 -", "104 99 79 - -", "100 98 65 - 102"]),
    ([9, 2, 4, 4], ["106 104 86 142 87", "100 100 86 113 -", "100 99 74 - -", "98 101 65 - 101"]),
    ([9, 3, 5, 4], ["103 100 74 133 90", "102 99 69 112 -", "101 88 72 - -", "101 99 59 - 102"]),
    ([10, 4, 6, 4], ["99 99 71 143 92", "100 100 68 116 -", "102 100 70 - -", "100 100 58 - 100"]),
    ([12, 3, 6, 5], ["99 96 75 137 79", "101 100 75 106 -", "99 96 70 - -", "99 98 59 - 99"]),
    ([16, 4, 8, 5], ["100 97 68 147 78", "100 101 61 105 -", "98 98 65 - -", "98 99 49 - 96"]),
];

const OPERATIONS: [&str; 4] = ["enc", "dec1", "gen", "dec2"];

/// Seed of the bytes that overwrite lost shards.
const OTHER: usize = 101;

fn main() -> Outcome {
    let mut arguments = std::env::args().skip(1);
    let repetitions: usize = arguments.next().map_or(Ok(31), |text| text.parse())?;
    let bytes: usize = arguments.next().map_or(Ok(512 << 10), |text| text.parse())?;
    println!("| code | | BB-DPG, GB/s | DPG | DPG w/o opt | DPG, GF(2^8) | (k, m) | (k, m2) |");
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    for (sizes, theirs) in TABLE {
        measure(sizes, theirs, repetitions, bytes)?;
    }
    Ok(())
}

/// Measures all codes of one set of parameters and prints four lines.
fn measure(
    [k, m, m2, w]: [usize; 4],
    theirs: [&str; 4],
    repetitions: usize,
    bytes: usize,
) -> Outcome {
    // Whole groups of packets, and lanes of whole cache lines for the words.
    let unit = m2 * w * paritas::DEFAULT_PACKET;
    let shard = (bytes / (k + m2) / unit).max(1) * unit;
    let natural: Vec<String> = (0..k + m2).map(|point| point.to_string()).collect();
    let group = format!("k={k},m={m},m2={m2},w={w}");
    let packets = |spec: String| Packets::new(&spec, shard);
    let mut codes: [Box<dyn Subject>; 6] = [
        Box::new(packets(format!("bbdpg:{group}"))?),
        Box::new(packets(format!("dpg:{group}"))?),
        Box::new(packets(format!("dpg:{group},points={}", natural.join(".")))?),
        Box::new(Words::new(k, m, m2, shard)?),
        Box::new(packets(format!("cauchy:k={k},m={m},w={w}"))?),
        Box::new(packets(format!("cauchy:k={k},m={m2},w={w}"))?),
    ];
    // A (k, m2) code has only the losses of stage two.
    let has = |code: usize, operation: usize| match code {
        4 => operation < 2,
        5 => operation == 0 || operation == 3,
        _ => true,
    };
    let losses = |operation| if operation == 1 { m } else { m2 };
    for (operation, name) in OPERATIONS.iter().enumerate() {
        let lost = losses(operation);
        for code in (0..6).filter(|&code| has(code, operation)) {
            // Decoding proves the results of encoding and of stage two.
            if operation % 2 == 1 {
                codes[code].lose(lost);
            }
            codes[code].run(operation, lost)?;
            codes[code].expect_data(code, name)?;
        }
        let mut compare = |code| -> Outcome<Pairs> {
            let rounds = Rounds::from_least(repetitions);
            Pairs::take(
                rounds,
                |ratio| !ratio.is_noisy(),
                |side| {
                    let code = if side == Side::Subject { code } else { 0 };
                    sample(|| codes[code].run(operation, lost))
                },
            )
        };
        let pairs = |code| has(code, operation).then(|| compare(code)).transpose();
        let pairs = (1..6).map(pairs).collect::<Outcome<Vec<Option<Pairs>>>>()?;
        print(&format!("({k}, {m}, {m2})"), name, &pairs, k * shard, theirs[operation]);
    }
    Ok(())
}

/// Prints a line. `pairs` are the other codes' pairs with BB-DPG, if they have the operation.
fn print(code: &str, operation: &str, pairs: &[Option<Pairs>], bytes: usize, theirs: &str) {
    let Some(spread) = pairs.iter().flatten().find_map(|pairs| pairs.spread(Side::Base)) else {
        return;
    };
    let speed = |seconds: f64| bytes as f64 / seconds / 1e9;
    let mut line =
        format!("| {code} | {operation} | {:.1} ({:.1})", speed(spread.median), speed(spread.p10));
    for (pairs, theirs) in pairs.iter().zip(theirs.split(' ')) {
        let ratio = pairs.as_ref().and_then(Pairs::ratio);
        line += &ratio.map_or(" | -".to_owned(), |ratio| {
            let [median, low, high] = [ratio.median, ratio.low, ratio.high].map(|r| 100.0 * r);
            format!(" | {median:.0} ({low:.0} to {high:.0}) / {theirs}")
        });
    }
    println!("{line} |");
}

/// A code that is measured.
trait Subject {
    /// Runs one of [`OPERATIONS`]; if it decodes, the first `lost` data nodes are lost.
    fn run(&mut self, operation: usize, lost: usize) -> Outcome;

    /// Overwrites the first `lost` data nodes.
    fn lose(&mut self, lost: usize);

    /// Whether all data equals what it was filled with.
    fn is_right(&self) -> bool;

    fn expect_data(&self, code: usize, operation: &str) -> Outcome {
        if self.is_right() {
            Ok(())
        } else {
            Err(format!("{operation} of code {code} is wrong").into())
        }
    }
}

/// A code in packets, with one buffer for each node.
struct Packets {
    codec: Codec,
    data: usize,
    shards: Vec<Shard>,
}

impl Packets {
    fn new(spec: &str, length: usize) -> Outcome<Self> {
        let options = CodecOptions::default().threads(1);
        let codec = Codec::with_options(Code::new(&spec.parse()?)?, options)?;
        let data = codec.code().nodes().filter(|&node| codec.code().holds_data(node)).count();
        let shards = shards(codec.code().node_count(), length)?;
        let mut packets = Self { codec, data, shards };
        packets.encode()?;
        if packets.codec.code().stages() > 1 {
            packets.promote()?;
        }
        Ok(packets)
    }

    fn encode(&mut self) -> Outcome {
        let standing = self.codec.code().nodes_at(1).len();
        let (data, parity) = self.shards[..standing].split_at_mut(self.data);
        let data: Vec<&[u8]> = data.iter().map(Shard::bytes).collect();
        let mut parity: Vec<&mut [u8]> = parity.iter_mut().map(Shard::bytes_mut).collect();
        Ok(self.codec.encode(&data, &mut parity)?)
    }

    fn promote(&mut self) -> Outcome {
        let standing = self.codec.code().nodes_at(1).len();
        let mut buffers = buffers(&mut self.shards, |node| node >= standing);
        Ok(self.codec.promote(2, &mut buffers)?)
    }

    fn decode(&mut self, stage: u8, lost: usize) -> Outcome {
        let stage = stage.min(self.codec.code().stages());
        let mut buffers = buffers(&mut self.shards, |node| node < lost);
        Ok(self.codec.reconstruct_at(stage, &mut buffers)?)
    }
}

impl Subject for Packets {
    fn run(&mut self, operation: usize, lost: usize) -> Outcome {
        match operation {
            0 => self.encode(),
            1 => self.decode(1, lost),
            2 => self.promote(),
            _ => self.decode(2, lost),
        }
    }

    fn lose(&mut self, lost: usize) {
        self.shards[..lost].iter_mut().for_each(|shard| shard.fill(OTHER));
    }

    fn is_right(&self) -> bool {
        self.shards[..self.data].iter().enumerate().all(|(seed, shard)| shard.is_filled(seed))
    }
}

fn shards(count: usize, length: usize) -> Outcome<Vec<Shard>> {
    let shard = |number: usize| {
        let mut shard = Shard::new(length, 320 * number)?;
        shard.fill(number);
        Some(shard)
    };
    (0..count).map(shard).collect::<Option<_>>().ok_or_else(|| "out of memory".into())
}

/// Returns targets for wanted nodes and sources for the others.
fn buffers(shards: &mut [Shard], wanted: impl Fn(usize) -> bool) -> Vec<Buffer<'_>> {
    let mut all = Vec::with_capacity(shards.len());
    for (node, shard) in shards.iter_mut().enumerate() {
        all.push(match wanted(node) {
            true => Buffer::Target(shard.bytes_mut()),
            false => Buffer::Source(shard.bytes()),
        });
    }
    all
}

/// DPG over words of a field. Every symbol is a buffer, `stripes[j][s]`, and so is every parity
/// that is not stored.
struct Words {
    codec: Codec,
    k: usize,
    m: usize,
    stripes: Vec<Vec<Shard>>,
    /// For every stripe, the parities before anything is added to them, and the parities not stored
    /// yet.
    bare: Vec<Vec<Shard>>,
}

impl Words {
    fn new(k: usize, m: usize, m2: usize, shard: usize) -> Outcome<Self> {
        let options = CodecOptions::default().threads(1);
        let codec = Codec::with_options(
            Code::new(&format!("isal-cauchy:k={k},m={m2}").parse()?)?,
            options,
        )?;
        let group = |count| (0..m2).map(|_| shards(count, shard / m2)).collect::<Outcome<Vec<_>>>();
        let mut words = Self { codec, k, m, stripes: group(k + m2)?, bare: group(m2)? };
        words.encode()?;
        words.generate()?;
        Ok(words)
    }

    /// Computes the parities `wanted` of a stripe from its data, into the bare buffers if `bare`.
    fn parities(&mut self, stripe: usize, wanted: std::ops::Range<usize>, bare: bool) -> Outcome {
        let code = self.codec.code();
        let (have, want) = (code.stored(Role::Data), nodes(code, wanted.clone(), self.k));
        let (data, stored) = self.stripes[stripe].split_at_mut(self.k);
        let targets = if bare { &mut self.bare[stripe][..] } else { stored };
        let mut all: Vec<Buffer<'_>> = data.iter().map(|s| Buffer::Source(s.bytes())).collect();
        for (number, shard) in targets.iter_mut().enumerate() {
            all.push(match wanted.contains(&number) {
                true => Buffer::Target(shard.bytes_mut()),
                false => Buffer::Absent,
            });
        }
        Ok(self.codec.compute(&have, &want, &mut all)?)
    }

    fn encode(&mut self) -> Outcome {
        let (m, m2) = (self.m, self.stripes.len());
        for i in 0..m {
            self.parities(i, 0..m, false)?;
            self.parities(i, m..m2, true)?;
        }
        for j in m..m2 {
            self.parities(j, 0..m, false)?;
            for i in 0..m {
                add(self.stripes[j][self.k + i].bytes_mut(), self.bare[i][j].bytes());
            }
        }
        Ok(())
    }

    fn generate(&mut self) -> Outcome {
        let (k, m, m2) = (self.k, self.m, self.stripes.len());
        for j in m..m2 {
            self.parities(j, 0..m, true)?;
            self.parities(j, m..m2, false)?;
            for i in 0..m {
                let (first, last) = self.stripes.split_at_mut(j);
                let target = first[i][k + j].bytes_mut();
                sum(target, last[0][k + i].bytes(), self.bare[j][i].bytes());
            }
        }
        Ok(())
    }

    /// Recovers the first `lost` data nodes from parities 0..`parities`.
    fn decode(&mut self, parities: usize, lost: usize) -> Outcome {
        let (k, m, m2) = (self.k, self.m, self.stripes.len());
        for i in 0..m {
            self.solve(i, parities, lost, 0)?;
            if parities == m {
                self.parities(i, m..m2, true)?;
            }
        }
        for j in m..m2 {
            for i in 0..m {
                let (first, last) = self.bare.split_at_mut(j);
                let added = if parities == m { &first[i][j] } else { &self.stripes[i][k + j] };
                let stored = &self.stripes[j][k + i];
                sum(last[0][i].bytes_mut(), stored.bytes(), added.bytes());
            }
            self.solve(j, parities, lost, m)?;
        }
        Ok(())
    }

    /// Recovers the first `lost` data symbols of a stripe from the others and its parities. The
    /// first `bare` of these are parities before anything is added to them.
    fn solve(&mut self, stripe: usize, parities: usize, lost: usize, bare: usize) -> Outcome {
        let code = self.codec.code();
        let kept = (lost..self.k + parities).map(NodeId::new);
        let (have, want) = (code.cells_of(kept), code.cells_of((0..lost).map(NodeId::new)));
        let (data, stored) = self.stripes[stripe].split_at_mut(self.k);
        let mut all = buffers(data, |node| node < lost);
        for (number, shard) in stored.iter().enumerate() {
            let shard = if number < bare { &self.bare[stripe][number] } else { shard };
            all.push(Buffer::Source(shard.bytes()));
        }
        Ok(self.codec.compute(&have, &want, &mut all)?)
    }
}

impl Subject for Words {
    fn run(&mut self, operation: usize, lost: usize) -> Outcome {
        match operation {
            0 => self.encode(),
            1 => self.decode(self.m, lost),
            2 => self.generate(),
            _ => self.decode(self.stripes.len(), lost),
        }
    }

    fn lose(&mut self, lost: usize) {
        let data = self.stripes.iter_mut().flat_map(|stripe| &mut stripe[..lost]);
        data.for_each(|shard| shard.fill(OTHER));
    }

    fn is_right(&self) -> bool {
        let data = self.stripes.iter().map(|stripe| &stripe[..self.k]);
        data.flat_map(|data| data.iter().enumerate()).all(|(seed, shard)| shard.is_filled(seed))
    }
}

/// Returns the cells of some parity nodes.
fn nodes(code: &Code, parities: std::ops::Range<usize>, k: usize) -> CellSet {
    code.cells_of(parities.map(|number| NodeId::new(k + number)))
}

fn add(target: &mut [u8], source: &[u8]) {
    target.iter_mut().zip(source).for_each(|(byte, more)| *byte ^= more);
}

fn sum(target: &mut [u8], a: &[u8], b: &[u8]) {
    target.iter_mut().zip(a.iter().zip(b)).for_each(|(byte, (a, b))| *byte = a ^ b);
}
