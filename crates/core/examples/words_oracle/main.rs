//! Compares Paritas with an oracle, a program that speaks the protocol of
//! `lab/oracles/words/c/serve.h`.
//!
//!     words_oracle NAME SPEC-GROUP… [--write] -- PROGRAM [ARGUMENT…]
//!
//! A group is a family with its word width and the number of bytes that lengths are a multiple of,
//! as in `isal-cauchy/8/1`. The oracle encodes a grid of k, m and lengths, and its bytes must equal
//! ours. Then shards are lost, a different set each time: Paritas must recover the oracle's shards,
//! and the oracle ours. Prints what was compared, or with `--write` the cases of a fixture.

mod coder;
mod oracle;

use std::process::ExitCode;

use coder::Coder;
use oracle::{Oracle, Request};
use paritas::Spec;

/// Largest number of parity bytes that fixtures write out; for more, they hold digests.
const WRITTEN_OUT: usize = 160;

/// Shapes beyond the grid.
const WIDE: [(usize, usize); 8] =
    [(17, 3), (20, 4), (32, 8), (1, 40), (40, 3), (100, 2), (128, 128), (200, 56)];

/// Further shapes of long codes.
const LONG: [(usize, usize); 7] =
    [(256, 1), (257, 64), (300, 20), (400, 300), (1000, 200), (20, 300), (1024, 1024)];

/// Lengths in units of the group.
const LENGTHS: [usize; 3] = [1, 31, 521];

/// Shapes and lengths of fixtures.
const FIXTURES: [(usize, usize, usize); 13] = [
    (1, 1, 2),
    (2, 2, 2),
    (4, 2, 1),
    (3, 3, 16),
    (1, 4, 16),
    (6, 2, 40),
    (6, 3, 40),
    (5, 6, 33),
    (10, 4, 129),
    (17, 3, 65),
    (4, 8, 16),
    (100, 3, 9),
    (200, 20, 1),
];

/// The same of long codes.
const LONG_FIXTURES: [(usize, usize, usize); 8] = [
    (1, 1, 1),
    (3, 2, 5),
    (2, 5, 16),
    (6, 3, 33),
    (10, 4, 1),
    (100, 30, 67),
    (300, 20, 9),
    (600, 33, 40),
];

/// A family at one word width.
struct Group {
    family: String,
    w: usize,
    unit: usize,
}

/// Counts of what was compared.
#[derive(Default)]
struct Counts {
    shapes: usize,
    refused: usize,
    encodings: usize,
    ours_of_theirs: usize,
    theirs_of_ours: usize,
    bytes: usize,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("words_oracle: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<(), String> {
    let usage = "words_oracle NAME GROUP… [--write] -- PROGRAM [ARGUMENT…]";
    let split = arguments.iter().position(|argument| argument == "--").ok_or(usage)?;
    let (own, program) = (&arguments[..split], &arguments[split + 1..]);
    let (name, groups) = own.split_first().ok_or(usage)?;
    let writes = groups.iter().any(|group| group == "--write");
    let mut oracle = Oracle::start(program)?;
    for group in groups.iter().filter(|group| *group != "--write") {
        let group = Group::parse(group).ok_or(usage)?;
        if writes {
            group.write(name, &mut oracle)?;
        } else {
            group.compare(name, &mut oracle)?;
        }
    }
    Ok(())
}

impl Group {
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('/');
        let family = parts.next()?.to_owned();
        Some(Self { family, w: parts.next()?.parse().ok()?, unit: parts.next()?.parse().ok()? })
    }

    /// Returns the code of a shape; `None` if the family refuses it, because it is out of reach or
    /// not MDS.
    fn coder(&self, k: usize, m: usize) -> Option<Coder> {
        let mut spec = Spec::new(&self.family).with("k", k);
        if self.family != "raid6" {
            spec = spec.with("m", m);
        } else if m != 2 {
            return None;
        }
        if matches!(&self.family[..], "raid6" | "reed-solomon") {
            spec = spec.with("w", self.w);
        }
        Coder::new(&spec)
    }

    /// Whether the group is one of long codes.
    fn is_long(&self) -> bool {
        self.family == "leopard16"
    }

    fn request(&self, k: usize, m: usize, length: usize) -> Request<'_> {
        Request { family: &self.family, k, m, w: self.w, length }
    }

    fn compare(&self, name: &str, oracle: &mut Oracle) -> Result<(), String> {
        let mut counts = Counts::default();
        let grid = (1..=12).flat_map(|k| (1..=6).map(move |m| (k, m)));
        let wider = if self.is_long() { &LONG[..] } else { &[] };
        for (k, m) in grid.chain(WIDE).chain(wider.iter().copied()) {
            let Some(coder) = self.coder(k, m) else {
                counts.refused += 1;
                continue;
            };
            counts.shapes += 1;
            for (turn, units) in LENGTHS.into_iter().enumerate() {
                let request = self.request(k, m, units * self.unit);
                compare_one(&coder, &request, turn, oracle, &mut counts)?;
            }
        }
        println!(
            "{name}, {} w = {}: {} shapes ({} more that the family refuses), {} encodings equal, {} losses \
             of theirs decoded by us, {} of ours by them; {} parity bytes",
            self.family,
            self.w,
            counts.shapes,
            counts.refused,
            counts.encodings,
            counts.ours_of_theirs,
            counts.theirs_of_ours,
            counts.bytes
        );
        Ok(())
    }

    fn write(&self, name: &str, oracle: &mut Oracle) -> Result<(), String> {
        let fixtures = if self.is_long() { &LONG_FIXTURES[..] } else { &FIXTURES };
        for &(k, m, units) in fixtures {
            let Some(coder) = self.coder(k, m) else { continue };
            let length = units * self.unit;
            let parity = oracle.encode(&self.request(k, m, length), &data(k, length))?;
            println!("{}", fixture(name, &coder.spec(), length, &parity));
        }
        Ok(())
    }
}

fn compare_one(
    coder: &Coder,
    request: &Request<'_>,
    turn: usize,
    oracle: &mut Oracle,
    counts: &mut Counts,
) -> Result<(), String> {
    let (k, m, length) = (request.k, request.m, request.length);
    let what = format!("{}, {length} bytes", coder.spec());
    let mut shards = data(k, length);
    let theirs = oracle.encode(request, &shards)?;
    if coder.encode(&shards)? != theirs {
        return Err(format!("{what}: parity differs"));
    }
    counts.encodings += 1;
    counts.bytes += m * length;
    shards.extend(theirs);
    let lost = losses(k, m, turn);
    if coder.reconstruct(&shards, &lost)? != shards {
        return Err(format!("{what}: we lose {lost:?} of theirs"));
    }
    counts.ours_of_theirs += 1;
    if oracle.decode(request, &shards, &lost)? != shards {
        return Err(format!("{what}: they lose {lost:?} of ours"));
    }
    counts.theirs_of_ours += 1;
    Ok(())
}

/// Returns the data that `vectors/README.md` defines.
fn data(k: usize, length: usize) -> Vec<Vec<u8>> {
    const C: u64 = 0x9E37_79B9_7F4A_7C15;
    let byte = |i: usize, j: usize| {
        let z = ((256 * i + j + 1) as u64).wrapping_mul(C);
        ((z ^ z >> 32).wrapping_mul(C) >> 56) as u8
    };
    (0..k).map(|j| (0..length).map(|i| byte(i, j)).collect()).collect()
}

/// Chooses m lost shards of k + m: in a row from one of four places, or far apart.
fn losses(k: usize, m: usize, turn: usize) -> Vec<usize> {
    let n = k + m;
    let mut lost: Vec<usize> = match turn {
        0 => (0..m).collect(),
        1 => (k..n).collect(),
        2 => (0..m).map(|i| (k / 2 + i) % n).collect(),
        3 => (0..m).map(|i| (k - 1 + i) % n).collect(),
        _ => (0..m).map(|i| i * n / m).collect(),
    };
    lost.sort_unstable();
    lost
}

fn fixture(library: &str, spec: &str, length: usize, parity: &[Vec<u8>]) -> String {
    let hex = |shard: &Vec<u8>| shard.iter().map(|byte| format!("{byte:02x}")).collect();
    let digest = |shard: &Vec<u8>| blake3::hash(shard).to_hex().to_string();
    let (key, texts): (_, Vec<String>) = match parity.len() * length <= WRITTEN_OUT {
        true => ("parity", parity.iter().map(hex).collect()),
        false => ("parity_blake3", parity.iter().map(digest).collect()),
    };
    format!(
        "{{\"library\": \"{library}\", \"spec\": \"{spec}\", \"length\": {length}, \"{key}\": {texts:?}}}"
    )
}
