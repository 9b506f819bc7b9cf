//! Checks that the codes that claim Jerasure's bytes produce them.
//!
//! `vectors/jerasure.json` holds parity that the real library computed from known data
//! (`lab/oracles/jerasure.py` wrote it). If `PARITAS_JERASURE` names the oracle program, which
//! that script builds, both libraries also decode what the other encoded.

use crate::stored;
use std::fs;
use std::io::{BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::common::{as_mut_slices, as_slices, codec};
use paritas::Buffer::{Source, Target};
use paritas::erasure::combinations;
use paritas::{Codec, KernelChoice};
use serde::Deserialize;

#[derive(Deserialize)]
struct Fixtures {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    technique: String,
    k: usize,
    m: usize,
    w: usize,
    packet: usize,
    length: usize,
    #[serde(flatten)]
    parity: Parity,
}

#[derive(Deserialize, PartialEq, Debug)]
#[serde(rename_all = "lowercase")]
enum Parity {
    Parity(Vec<String>),
    Crc32(Vec<u32>),
}

fn cases() -> Vec<Case> {
    let text = fs::read_to_string(stored::path("jerasure.json")).unwrap();
    let fixtures: Fixtures = serde_json::from_str(&text).unwrap();
    fixtures.cases
}

impl Case {
    fn spec(&self) -> String {
        let Self { k, m, w, technique, .. } = self;
        match technique.as_str() {
            "cauchy_orig" => format!("cauchy-orig:k={k},m={m},w={w}"),
            "cauchy_good" => format!("cauchy-good:k={k},m={m},w={w}"),
            "liberation" => format!("liberation:k={k},w={w}"),
            "blaum_roth" => format!("blaum-roth:k={k},w={w}"),
            "liber8tion" => format!("liber8tion:k={k}"),
            other => panic!("no family is held to {other}"),
        }
    }

    fn codec(&self) -> Codec {
        codec(&self.spec(), self.packet, KernelChoice::Auto)
    }

    /// Returns the shards that Paritas computes from the known data.
    fn encoded(&self, codec: &Codec) -> Vec<Vec<u8>> {
        let mut shards: Vec<Vec<u8>> = (0..self.k).map(|j| fill(j, self.length)).collect();
        let mut parity = vec![vec![0xEE; self.length]; self.m];
        codec.encode(&as_slices(&shards), &mut as_mut_slices(&mut parity)).unwrap();
        shards.append(&mut parity);
        shards
    }

    /// Returns a few losses of m nodes: the first, the last, and some between.
    fn losses(&self) -> Vec<Vec<usize>> {
        let all: Vec<Vec<usize>> = combinations(self.k + self.m, self.m).take(5000).collect();
        let step = (all.len() / 3).max(1);
        all.iter().step_by(step).chain(all.last()).cloned().collect()
    }
}

/// Byte i of a data shard is the top byte of (i + 1)·(i + 1 + shard) times a constant.
fn fill(shard: usize, length: usize) -> Vec<u8> {
    let product = |i: u64| (i * (i + shard as u64)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (1..=length as u64).map(|i| (product(i) >> 56) as u8).collect()
}

/// Returns the CRC-32 that zlib computes.
fn crc32(bytes: &[u8]) -> u32 {
    let shift = |crc: u32| (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg());
    let byte = |crc: u32, &byte: &u8| (0..8).fold(crc ^ u32::from(byte), |crc, _| shift(crc));
    !bytes.iter().fold(!0, byte)
}

#[test]
fn parity_is_that_of_jerasure() {
    assert_eq!(crc32(b"123456789"), 0xCBF4_3926, "the check value of CRC-32");
    let cases = cases();
    for case in &cases {
        let shards = case.encoded(&case.codec());
        let parity = shards[case.k..].iter();
        let made = match case.parity {
            Parity::Parity(_) => Parity::Parity(parity.map(|shard| stored::hex(shard)).collect()),
            Parity::Crc32(_) => Parity::Crc32(parity.map(|shard| crc32(shard)).collect()),
        };
        assert_eq!(made, case.parity, "{}, packet {}", case.spec(), case.packet);
    }
    println!("Jerasure's parity: {} cases", cases.len());
}

/// The oracle program.
struct Jerasure {
    program: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Jerasure {
    fn start() -> Option<Self> {
        let path = std::env::var_os("PARITAS_JERASURE")?;
        let mut command = Command::new(path);
        let mut program = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the oracle starts");
        let requests = program.stdin.take().unwrap();
        let answers = BufReader::new(program.stdout.take().unwrap());
        Some(Self { program, requests, answers })
    }

    /// Sends a request, and returns the `count` shards of the answer.
    fn ask(&mut self, line: &str, case: &Case, shards: &[Vec<u8>], count: usize) -> Vec<Vec<u8>> {
        writeln!(self.requests, "{line}").unwrap();
        shards.iter().for_each(|shard| self.requests.write_all(shard).unwrap());
        self.requests.flush().unwrap();
        let mut answer = vec![vec![0; case.length]; count];
        answer.iter_mut().for_each(|shard| self.answers.read_exact(shard).unwrap());
        answer
    }

    fn encode(&mut self, case: &Case, data: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let Case { technique, k, m, w, packet, length, .. } = case;
        let line = format!("encode {technique} {k} {m} {w} {packet} {length}");
        self.ask(&line, case, data, case.m)
    }

    fn decode(&mut self, case: &Case, shards: &[Vec<u8>], lost: &[usize]) -> Vec<Vec<u8>> {
        let Case { technique, k, m, w, packet, length, .. } = case;
        let lost = lost.iter().map(usize::to_string).collect::<Vec<_>>().join(" ");
        let line = format!("decode {technique} {k} {m} {w} {packet} {length} {lost}");
        self.ask(&line, case, shards, case.k + case.m)
    }

    fn finish(mut self) {
        drop(self.requests);
        assert!(self.program.wait().unwrap().success());
    }
}

/// Returns the shards, with the lost ones filled with something else.
fn without(shards: &[Vec<u8>], lost: &[usize]) -> Vec<Vec<u8>> {
    let mut shards = shards.to_vec();
    lost.iter().for_each(|&node| shards[node].fill(0xEE));
    shards
}

fn reconstruct(codec: &Codec, shards: &mut [Vec<u8>], lost: &[usize]) {
    let buffers = shards.iter_mut().enumerate();
    let mut buffers: Vec<_> = buffers
        .map(|(node, shard)| if lost.contains(&node) { Target(shard) } else { Source(shard) })
        .collect();
    codec.reconstruct_into(&mut buffers).unwrap();
}

#[test]
fn each_decodes_what_the_other_encoded() {
    let Some(mut jerasure) = Jerasure::start() else {
        println!(
            "not run: PARITAS_JERASURE does not name the oracle (lab/oracles/jerasure.py does)"
        );
        return;
    };
    let (cases, mut decoded) = (cases(), 0);
    for case in &cases {
        let (codec, spec) = (case.codec(), case.spec());
        let ours = case.encoded(&codec);
        let theirs = [&ours[..case.k], &jerasure.encode(case, &ours[..case.k])].concat();
        for lost in case.losses() {
            let by_them = jerasure.decode(case, &without(&ours, &lost), &lost);
            assert!(by_them == ours, "{spec}: Jerasure decodes, {lost:?} lost");
            let mut by_us = without(&theirs, &lost);
            reconstruct(&codec, &mut by_us, &lost);
            assert!(by_us == theirs, "{spec}: Paritas decodes, {lost:?} lost");
            decoded += 2;
        }
    }
    jerasure.finish();
    println!("Jerasure and Paritas: {decoded} decodings of {} cases", cases.len());
}
