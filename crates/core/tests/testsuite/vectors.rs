//! The language-neutral cases of `vectors/`: codes with the parity that the reference computes, and
//! schedule texts with their results or the reason for which they are refused. `vectors/README.md`
//! describes the files; `crates/reference/examples/write_vectors` writes the codes.

use crate::common;
use std::fs;

use crate::common::{as_mut_slices, as_slices};
use crate::stored::{StoredShards, cases, digest, from_hex, path};
use paritas::Buffer::{Source, Target};
use paritas::code::{BitMatrix, CellId, CellSet, Pin, Role};
use paritas::research::{Schedule, interpret};
use paritas::{Code, Codec, CodecOptions, ErrorKind, KernelChoice, NodeId, Spec};
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    spec: String,
    pin: Vec<(String, Vec<u64>)>,
    default_pin: bool,
    k: usize,
    m: usize,
    rows: usize,
    /// If nodes with data also hold parity: the rows of data, and how many nodes may be lost.
    data_rows: Option<usize>,
    tolerance: Option<usize>,
    packet: usize,
    stripes: usize,
    /// Bytes of a packet of the last, shorter strip.
    #[serde(default)]
    tail: usize,
    ones: usize,
    describe_blake3: String,
    lost: Vec<Vec<usize>>,
    lost_too_many: Vec<Vec<usize>>,
    #[serde(flatten)]
    parity: StoredShards,
}

impl Case {
    fn code(&self) -> Code {
        let pin = self
            .pin
            .iter()
            .fold(Pin::new(), |pin, (name, numbers)| pin.with(name, numbers.iter().copied()));
        let spec: Spec = self.spec.parse().unwrap();
        Code::rebuild(&spec, &pin).unwrap_or_else(|error| panic!("{spec}: {error}"))
    }

    fn codec(&self, kernel: KernelChoice) -> Codec {
        let packet = self.packet;
        Codec::with_options(self.code(), CodecOptions::default().packet(packet).kernel(kernel))
            .unwrap()
    }

    fn shard_bytes(&self) -> usize {
        self.rows * (self.stripes * self.packet + self.tail)
    }

    /// Returns where each strip of a shard begins, and the bytes of its packets.
    fn strips(&self) -> impl Iterator<Item = (usize, usize)> {
        let strip = self.rows * self.packet;
        let whole = (0..self.stripes).map(move |number| (number * strip, self.packet));
        let tail = (self.tail > 0).then_some((self.stripes * strip, self.tail));
        whole.chain(tail)
    }

    fn tolerance(&self) -> usize {
        self.tolerance.unwrap_or(self.m)
    }

    fn data_rows(&self) -> usize {
        self.data_rows.unwrap_or(self.rows)
    }

    /// Returns the shards of all nodes before encoding: parity is filled with something else.
    fn unencoded(&self) -> Vec<Vec<u8>> {
        let data = |j: usize| (0..).map(move |i: usize| (73 * (i + 1) * (j + 1) % 251) as u8);
        let of_node = |j| {
            let mut data = data(j);
            let packet = |number: usize| match number % self.rows < self.data_rows() {
                true => data.by_ref().take(self.packet).collect(),
                false => vec![0xEE; self.packet],
            };
            let whole: Vec<u8> = (0..self.stripes * self.rows).flat_map(packet).collect();
            [whole, data.take(self.rows * self.tail).collect()].concat()
        };
        let parity = vec![vec![0xEE; self.shard_bytes()]; self.m];
        (0..self.k).map(of_node).chain(parity).collect()
    }

    /// Returns the parity among all shards: those of parity nodes, or the parity rows of every
    /// node.
    fn parity_of(&self, shards: &[Vec<u8>]) -> Vec<Vec<u8>> {
        if self.data_rows.is_none() {
            return shards[self.k..].to_vec();
        }
        let strip = self.rows * self.packet;
        let rows = |shard: &Vec<u8>| {
            shard.chunks(strip).flat_map(|s| s[self.data_rows() * self.packet..].to_vec()).collect()
        };
        shards.iter().map(rows).collect()
    }

    fn expect_parity(&self, shards: &[Vec<u8>], by: &str) {
        let who = format!("{}, packet {}: {by}", self.spec, self.packet);
        self.parity.expect(&self.parity_of(shards), &who);
    }

    /// Returns parity computed by the interpreter, in its place.
    fn encoded_by_interpreter(&self, code: &Code) -> Vec<Vec<u8>> {
        let mut shards = self.unencoded();
        let (have, want) = (code.stored(Role::Data), code.stored(Role::Parity));
        self.interpret(code, &mut shards, &have, &want);
        shards
    }

    /// Recovers the lost shards with the interpreter.
    fn interpreted(&self, code: &Code, shards: &[Vec<u8>], lost: &[usize]) -> Vec<Vec<u8>> {
        let is_lost = |node: &NodeId| lost.contains(&node.index());
        let have = code.cells_of(code.nodes().filter(|node| !is_lost(node)));
        let want = code.cells_of(code.nodes().filter(is_lost));
        let mut made = shards.to_vec();
        lost.iter().for_each(|&node| made[node].fill(0xEE));
        self.interpret(code, &mut made, &have, &want);
        of_nodes(&made, lost)
    }

    /// Computes the wanted cells of all stripes in their places.
    fn interpret(&self, code: &Code, shards: &mut [Vec<u8>], have: &CellSet, want: &CellSet) {
        let plan = code.schedule(have, want).unwrap();
        for (strip, packet) in self.strips() {
            let range = |cell| {
                let place = code.cell(cell).place.unwrap();
                let start = strip + place.row * packet;
                (place.node.index(), start..start + packet)
            };
            let input = |&cell: &CellId| {
                let (node, bytes) = range(cell);
                &shards[node][bytes]
            };
            let inputs: Vec<&[u8]> = plan.inputs().iter().map(input).collect();
            let outputs = interpret(plan.schedule(), &inputs).unwrap();
            for (&cell, made) in plan.outputs().iter().zip(outputs) {
                let (node, bytes) = range(cell);
                shards[node][bytes].copy_from_slice(&made);
            }
        }
    }

    fn encoded(&self, codec: &Codec) -> Vec<Vec<u8>> {
        let mut shards = self.unencoded();
        if self.data_rows.is_some() {
            codec.encode_nodes(&mut as_mut_slices(&mut shards)).unwrap();
        } else {
            let (data, parity) = shards.split_at_mut(self.k);
            codec.encode(&as_slices(data), &mut as_mut_slices(parity)).unwrap();
        }
        shards
    }

    fn reconstructed(
        &self,
        codec: &Codec,
        shards: &[Vec<u8>],
        lost: &[usize],
    ) -> Result<Vec<Vec<u8>>, paritas::Error> {
        let mut made = vec![vec![0xEE; self.shard_bytes()]; lost.len()];
        let mut buffers: Vec<_> = shards.iter().map(|shard| Source(shard)).collect();
        for (&node, shard) in lost.iter().zip(&mut made) {
            buffers[node] = Target(shard);
        }
        codec.reconstruct_into(&mut buffers)?;
        Ok(made)
    }
}

/// Returns the bytes that the given nodes hold.
fn of_nodes(shards: &[Vec<u8>], nodes: &[usize]) -> Vec<Vec<u8>> {
    nodes.iter().map(|&node| shards[node].clone()).collect()
}

#[test]
fn specs_and_pins_rebuild_the_generators() {
    for case in cases::<Case>("codes.json") {
        let (code, spec) = (case.code(), &case.spec);
        assert_eq!(&code.spec().to_string(), spec, "the spec is canonical");
        assert_eq!(
            (code.node_count(), code.tolerance()),
            (case.k + case.m, case.tolerance()),
            "{spec}"
        );
        assert_eq!(code.ones(), case.ones, "{spec}");
        let mut description = Vec::new();
        code.describe(|bytes| description.extend_from_slice(bytes));
        assert_eq!(digest(&description), case.describe_blake3, "{spec}");
        let pinned = code.pin().entries().map(|(name, list)| (name.to_owned(), list.to_vec()));
        assert_eq!(pinned.collect::<Vec<_>>(), case.pin, "{spec}");
    }
}

/// The reference computes the scalings from the rule that the README states; new codes must get the
/// same. (Cases from before the table of matrices have other pins, and `default_pin` is false.)
#[test]
fn new_codes_have_the_default_pins() {
    for case in cases::<Case>("codes.json") {
        let new = Code::new(&case.spec.parse().unwrap()).unwrap();
        assert_eq!(new.pin() == case.code().pin(), case.default_pin, "{}", case.spec);
    }
}

/// Takes cells as vectors of their bits in all stripes: if they were dependent, another generator
/// could give this parity.
#[test]
fn data_cells_are_independent() {
    for case in cases::<Case>("codes.json") {
        let shards = case.unencoded();
        let cells: Vec<Vec<usize>> = (0..case.k * case.data_rows())
            .map(|cell| {
                let (node, row) = (cell / case.data_rows(), cell % case.data_rows());
                let packet =
                    |(strip, packet)| shards[node][strip + row * packet..][..packet].to_vec();
                let bytes: Vec<u8> = case.strips().flat_map(packet).collect();
                (0..8 * bytes.len()).filter(|&bit| bytes[bit / 8] >> (bit % 8) & 1 == 1).collect()
            })
            .collect();
        let bits = 8 * case.shard_bytes() / case.rows;
        assert_eq!(BitMatrix::from_supports(bits, &cells).rank(), cells.len(), "{}", case.spec);
    }
}

#[test]
fn the_interpreter_makes_parity_and_losses() {
    for case in cases::<Case>("codes.json") {
        let code = case.code();
        let shards = case.encoded_by_interpreter(&code);
        case.expect_parity(&shards, "interpreter");
        for lost in &case.lost {
            let made = case.interpreted(&code, &shards, lost);
            assert!(made == of_nodes(&shards, lost), "{}: {lost:?}", case.spec);
        }
    }
}

#[test]
fn every_kernel_makes_parity_and_losses() {
    for case in cases::<Case>("codes.json") {
        for kernel in common::candidates() {
            let codec = case.codec(kernel);
            let shards = case.encoded(&codec);
            case.expect_parity(&shards, codec.kernel().name());
            for lost in &case.lost {
                let made = case.reconstructed(&codec, &shards, lost).unwrap();
                assert!(made == of_nodes(&shards, lost), "{}: {kernel:?} {lost:?}", case.spec);
            }
        }
    }
}

#[test]
fn losses_beyond_the_tolerance_are_refused() {
    for case in cases::<Case>("codes.json") {
        let codec = case.codec(KernelChoice::Auto);
        let shards = case.encoded(&codec);
        for lost in &case.lost_too_many {
            let error = case.reconstructed(&codec, &shards, lost).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotEnough, "{} {lost:?}: {error}", case.spec);
        }
    }
}

/// Returns the schedule texts of a folder with their names.
fn schedule_texts(folder: &str) -> Vec<(String, String)> {
    let files = fs::read_dir(path("schedules").join(folder)).unwrap();
    let mut texts: Vec<(String, String)> = files
        .map(|file| file.unwrap().path())
        .map(|path| {
            (
                path.file_name().unwrap().to_string_lossy().into_owned(),
                fs::read_to_string(path).unwrap(),
            )
        })
        .collect();
    texts.sort();
    assert!(!texts.is_empty());
    texts
}

/// Returns what follows `key` in the comments at the head of a schedule text.
fn comments<'a>(text: &'a str, key: &'a str) -> impl Iterator<Item = &'a str> {
    text.lines().filter_map(move |line| line.strip_prefix("# ")?.strip_prefix(key)).map(str::trim)
}

/// Returns the bytes of `i0`, `i1`, … or of `o0`, `o1`, …, which are listed in this order.
fn cells(text: &str, key: &str, prefix: char) -> Vec<Vec<u8>> {
    let cells = comments(text, key).enumerate().map(|(number, comment)| {
        let (name, digits) = comment.split_once(" = ").unwrap();
        assert_eq!(name, format!("{prefix}{number}"));
        from_hex(digits)
    });
    cells.collect()
}

#[test]
fn valid_schedules_compute_what_they_say() {
    for (name, text) in schedule_texts("valid") {
        let schedule: Schedule =
            text.parse().unwrap_or_else(|error| panic!("{name} is refused: {error}"));
        let (inputs, expected) = (cells(&text, "given", 'i'), cells(&text, "makes", 'o'));
        assert_eq!(interpret(&schedule, &as_slices(&inputs)).unwrap(), expected, "{name}");
        assert_eq!(schedule.to_string().parse::<Schedule>().unwrap(), schedule, "{name}");
    }
}

#[test]
fn invalid_schedules_are_refused_with_the_reason() {
    for (name, text) in schedule_texts("invalid") {
        let [reason] = comments(&text, "error:").collect::<Vec<_>>()[..] else {
            panic!("{name} states one error");
        };
        let error = text.parse::<Schedule>().expect_err(&name);
        assert_eq!(error.kind(), ErrorKind::Schedule, "{name}");
        assert!(error.to_string().contains(reason), "{name}: {error}");
    }
}
