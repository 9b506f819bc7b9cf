//! Files of Jerasure's encoder, with all techniques: its fragments become shards, and come back
//! byte for byte.
//!
//! `vectors/jerasure.json` holds parity that the library computed. If `PARITAS_JERASURE` names the
//! oracle program, which `lab/oracles/jerasure.py` builds, that program makes fragments of whole
//! files with the calls of the encoder.

use std::fs;
use std::io::{BufReader, Read, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use paritas::{Code, Codec, CodecOptions};
use paritas_shards::foreign::{ExportJob, Format, Hints, export, import};
use paritas_shards::{EncodeJob, Error, ErrorKind, FileTarget, decode, encode, scan};
use serde_json::Value;
use tempfile::TempDir;

/// The arguments of the encoder.
#[derive(Debug, Clone, Copy)]
struct Shape {
    technique: &'static str,
    k: usize,
    m: usize,
    w: usize,
    packet: usize,
}

const fn shape(technique: &'static str, k: usize, m: usize, w: usize, packet: usize) -> Shape {
    Shape { technique, k, m, w, packet }
}

/// Shapes with packets that are longer than ours, shorter, or not a multiple of 8 bytes.
const SHAPES: [Shape; 8] = [
    shape("reed_sol_van", 4, 2, 16, 0),
    shape("reed_sol_r6_op", 10, 2, 8, 0),
    shape("cauchy_orig", 5, 3, 4, 40),
    shape("cauchy_good", 4, 2, 3, 12),
    shape("cauchy_good", 6, 4, 8, 1000),
    shape("liberation", 5, 2, 7, 64),
    shape("blaum_roth", 4, 2, 6, 128),
    shape("liber8tion", 7, 2, 8, 8),
];

impl Shape {
    /// Returns the unit of a padded file's length, in bytes: the length is a multiple of it.
    fn unit(&self) -> usize {
        self.k * self.w * 8 * self.packet.max(1)
    }

    fn family(&self) -> String {
        match self.technique {
            "reed_sol_van" => "reed-solomon".to_owned(),
            "reed_sol_r6_op" => "raid6".to_owned(),
            other => other.replace('_', "-"),
        }
    }

    fn spec(&self) -> String {
        let Self { k, m, w, .. } = self;
        match self.technique {
            "reed_sol_van" | "cauchy_orig" | "cauchy_good" => {
                format!("{}:k={k},m={m},w={w}", self.family())
            }
            "liber8tion" => format!("liber8tion:k={k}"),
            _ => format!("{}:k={k},w={w}", self.family()),
        }
    }

    /// Returns the fragments of a padded file in one buffer, with our own parity.
    /// `crates/core/tests/testsuite/jerasure.rs` checks that parity against the library's.
    fn fragments(&self, content: &[u8]) -> Vec<Vec<u8>> {
        let mut padded = content.to_vec();
        padded.resize(content.len().next_multiple_of(self.unit()), 0);
        let data: Vec<Vec<u8>> = padded.chunks(padded.len() / self.k).map(<[u8]>::to_vec).collect();
        let mut parity = vec![vec![0; data[0].len()]; self.m];
        let options = CodecOptions::default().packet(self.packet.max(1));
        let code = Code::new(&self.spec().parse().unwrap()).unwrap();
        Codec::with_options(code, options).unwrap().encode(&data, &mut parity).unwrap();
        data.into_iter().chain(parity).collect()
    }

    /// Writes fragments and their description under the encoder's names.
    fn write(&self, folder: &Path, fragments: &[Vec<u8>], length: usize, buffer: usize) {
        let Self { technique, k, m, w, packet } = self;
        let (buffer, buffers) = match buffer {
            buffer if buffer > 0 && length > buffer => (buffer, length.div_ceil(buffer)),
            _ => (length, 1),
        };
        let names = ["reed_sol_van", "reed_sol_r6_op", "cauchy_orig", "cauchy_good", "liberation"];
        let names = [&names[..], &["blaum_roth", "liber8tion"]].concat();
        let number = names.iter().position(|name| name == technique).unwrap();
        let meta = format!(
            "a.tar.gz\n{length}\n{k} {m} {w} {packet} {buffer}\n{technique}\n{number}\n{buffers}\n"
        );
        fs::write(folder.join("a_meta.txt"), meta).unwrap();
        for (index, fragment) in fragments.iter().enumerate() {
            fs::write(folder.join(self.name(index)), fragment).unwrap();
        }
    }

    fn name(&self, index: usize) -> String {
        let digits = self.k.to_string().len();
        match index.checked_sub(self.k) {
            None => format!("a_k{:0digits$}.tar.gz", index + 1),
            Some(parity) => format!("a_m{:0digits$}.tar.gz", parity + 1),
        }
    }

    /// Returns the losses of m fragments that are tried: the first, the last, and some between.
    fn losses(&self) -> [Vec<usize>; 4] {
        let n = self.k + self.m;
        let from = |first: usize| (0..self.m).map(|i| (first + i) % n).collect();
        [Vec::new(), from(0), from(self.k - 1), from(self.k)]
    }

    /// Imports fragments without some of them, and returns the folder of the shards.
    fn import(&self, from: &Path, lost: &[usize]) -> Result<TempDir, Error> {
        let (kept, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let lost: Vec<String> = lost.iter().map(|&index| self.name(index)).collect();
        for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
            if !lost.iter().any(|name| entry.file_name() == name.as_str()) {
                fs::copy(entry.path(), kept.path().join(entry.file_name())).unwrap();
            }
        }
        let job =
            |code: Code, name| EncodeJob::new(code, name, vec![to.path().to_owned()]).sync(false);
        let paths = [kept.path().to_owned()];
        import(Format::Jerasure, &paths, &Hints::default(), job, &|_| {})?;
        Ok(to)
    }

    /// Imports fragments with each of the losses, and decodes the file.
    fn expect_import(&self, from: &Path, content: &[u8]) {
        for lost in self.losses() {
            let shards = self.import(from, &lost).unwrap();
            let inventory = scan(&[shards.path().to_owned()]);
            let path = shards.path().join("decoded");
            let target = FileTarget::new(&path).sync(false);
            decode(&inventory.objects[0], target, NonZeroUsize::new(1), &|_| {}).unwrap();
            assert!(fs::read(path).unwrap() == content, "{self:?}, {lost:?} lost");
        }
    }

    /// Imports fragments, and exports all of them again.
    fn expect_round_trip(&self, from: &Path) {
        let (shards, to) = (self.import(from, &[self.k]).unwrap(), tempfile::tempdir().unwrap());
        let inventory = scan(&[shards.path().to_owned()]);
        let object = &inventory.objects[0];
        assert!(self.packet == 0 || object.packet() == self.packet, "{self:?}");
        export(&job(to.path(), None), object, &|_| {}).unwrap();
        for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
            let made = fs::read(to.path().join(entry.file_name())).unwrap();
            assert!(made == fs::read(entry.path()).unwrap(), "{self:?}: {:?}", entry.file_name());
        }
    }
}

fn job(to: &Path, packet: Option<usize>) -> ExportJob {
    ExportJob::new(Format::Jerasure, to)
        .hints(Hints::default().packet(packet))
        .sync(false)
        .threads(NonZeroUsize::new(1))
}

/// Returns byte i of data shard j of `vectors/jerasure.json`, or of a file if j is 0.
fn fill(shard: usize, length: usize) -> Vec<u8> {
    let product = |i: u64| (i * (i + shard as u64)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (1..=length as u64).map(|i| (product(i) >> 56) as u8).collect()
}

/// The parity is the library's own.
#[test]
fn what_jerasure_computed_is_imported() {
    let path: PathBuf =
        [env!("CARGO_MANIFEST_DIR"), "..", "..", "vectors", "jerasure.json"].iter().collect();
    let fixtures: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let mut techniques = Vec::new();
    for case in fixtures["cases"].as_array().unwrap() {
        let Some(parity) = case["parity"].as_array() else { continue };
        let number = |key: &str| case[key].as_u64().unwrap() as usize;
        let technique = SHAPES.iter().map(|shape| shape.technique);
        let technique = technique.into_iter().find(|name| case["technique"] == *name).unwrap();
        let shape = shape(technique, number("k"), number("m"), number("w"), number("packet"));
        let data: Vec<Vec<u8>> = (0..shape.k).map(|j| fill(j, number("length"))).collect();
        let parity = parity.iter().map(|shard| unhex(shard.as_str().unwrap()));
        let fragments: Vec<Vec<u8>> = data.iter().cloned().chain(parity).collect();
        let (folder, content) = (tempfile::tempdir().unwrap(), data.concat());
        shape.write(folder.path(), &fragments, content.len() - 1, 0);
        shape.expect_import(folder.path(), &content[..content.len() - 1]);
        techniques.push(technique);
    }
    techniques.dedup();
    assert_eq!(techniques.len(), 5, "{techniques:?}");
}

fn unhex(text: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(byte).collect()
}

/// Exports with the packet that was imported, or another, over more than one chunk.
#[test]
fn fragments_come_back_as_they_were() {
    for shape in SHAPES {
        for length in [1, 5000, shape.unit(), 3 * shape.unit() + 70_001] {
            let (folder, content) = (tempfile::tempdir().unwrap(), fill(0, length));
            shape.write(folder.path(), &shape.fragments(&content), length, 0);
            shape.expect_round_trip(folder.path());
        }
    }
    let shapes = [("cauchy_good", 3, 16), ("cauchy_good", 3, 256)];
    let [from, to] = shapes.map(|(technique, w, packet)| shape(technique, 4, 2, w, packet));
    let (folder, made) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let content = fill(0, 12_345);
    from.write(folder.path(), &from.fragments(&content), content.len(), 0);
    let shards = from.import(folder.path(), &[]).unwrap();
    let inventory = scan(&[shards.path().to_owned()]);
    export(&job(made.path(), Some(256)), &inventory.objects[0], &|_| {}).unwrap();
    for (index, fragment) in to.fragments(&content).iter().enumerate() {
        assert!(&fs::read(made.path().join(to.name(index))).unwrap() == fragment, "{index}");
    }
}

/// An object may have packets that a technique does not allow. The next larger packet is taken.
#[test]
fn packets_become_whole_longs() {
    for (made, length, packet) in [
        (shape("liberation", 4, 2, 5, 8), 20, 4),
        (shape("blaum_roth", 4, 2, 6, 16), 3000, 12),
        (shape("liber8tion", 7, 2, 8, 8), 5, 1),
        (shape("cauchy_good", 4, 2, 3, 12), 1000, 12),
    ] {
        let (shards, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let code = Code::new(&made.spec().parse().unwrap()).unwrap();
        let object = EncodeJob::new(code, "a.tar.gz", vec![shards.path().to_owned()]);
        let content = fill(0, length);
        encode(&object.packet(packet), &content[..], &|_| {}).unwrap();
        let inventory = scan(&[shards.path().to_owned()]);
        export(&job(to.path(), None), &inventory.objects[0], &|_| {}).unwrap();
        for (index, fragment) in made.fragments(&content).iter().enumerate() {
            let found = fs::read(to.path().join(made.name(index))).unwrap();
            assert!(&found == fragment, "{made:?}: {index}");
        }
        made.expect_import(to.path(), &content);
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let shape = shape("liberation", 4, 2, 5, 8);
    let folder = tempfile::tempdir().unwrap();
    let cut: Vec<Vec<u8>> = shape.fragments(&[1; 999]).iter().map(|f| f[..300].to_vec()).collect();
    shape.write(folder.path(), &cut, 999, 0);
    let error = shape.import(folder.path(), &[]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotRecognised);
    assert!(error.to_string().contains("strips of 40 bytes; got 300 bytes"), "{error}");
    let (shards, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let code = Code::new(&shape.spec().parse().unwrap()).unwrap();
    let object = EncodeJob::new(code, "n", vec![shards.path().to_owned()]);
    encode(&object, &b"bytes"[..], &|_| {}).unwrap();
    let inventory = scan(&[shards.path().to_owned()]);
    for (packet, part) in [
        (0, "must be a multiple of 8 bytes; got 0"),
        (12, "must be a multiple of 8 bytes; got 12"),
        (1 << 22, "at most 67108864 bytes"),
    ] {
        let refused = export(&job(to.path(), Some(packet)), &inventory.objects[0], &|_| {});
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Parameters);
        assert!(error.to_string().contains(part), "{error}");
        assert_eq!(fs::read_dir(to.path()).unwrap().count(), 0);
    }
}

/// Fragments that were renamed are not those that the description names.
#[test]
fn a_description_of_other_names_is_told() {
    let shape = shape("cauchy_good", 4, 2, 3, 12);
    let folder = tempfile::tempdir().unwrap();
    shape.write(folder.path(), &shape.fragments(&[1; 999]), 999, 0);
    let path = folder.path().join("a_meta.txt");
    let meta = fs::read_to_string(&path).unwrap().replace("a.tar.gz", "/home/other.tar");
    fs::write(&path, meta).unwrap();
    let error = shape.import(folder.path(), &[]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotRecognised);
    let told = "/a_meta.txt describes other_k1.tar to other_m2.tar, but none of these is given";
    assert!(error.to_string().contains(told), "{error}");
    // Nobody knows which of two descriptions counts.
    fs::copy(&path, folder.path().join("b_meta.txt")).unwrap();
    let error = shape.import(folder.path(), &[]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotRecognised);
    assert!(error.to_string().contains("_meta.txt is given, too"), "{error}");
}

/// The oracle program.
struct Jerasure {
    program: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Jerasure {
    fn start() -> Option<Self> {
        let mut command = Command::new(std::env::var_os("PARITAS_JERASURE")?);
        let mut program = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the oracle starts");
        let requests = program.stdin.take().unwrap();
        let answers = BufReader::new(program.stdout.take().unwrap());
        Some(Self { program, requests, answers })
    }

    /// Returns the fragments that the encoder makes with a buffer of `buffer` bytes, or with one
    /// buffer for the whole file if that is 0.
    fn fragments(&mut self, shape: &Shape, content: &[u8], buffer: usize) -> Vec<Vec<u8>> {
        let Shape { technique, k, m, w, packet } = shape;
        let length = content.len();
        writeln!(self.requests, "files {technique} {k} {m} {w} {packet} {length} {buffer}")
            .unwrap();
        self.requests.write_all(content).unwrap();
        self.requests.flush().unwrap();
        let padded = length.next_multiple_of(shape.unit()).next_multiple_of(buffer.max(1));
        let mut fragments = vec![vec![0; padded / k]; k + m];
        fragments.iter_mut().for_each(|bytes| self.answers.read_exact(bytes).unwrap());
        fragments
    }
}

#[test]
fn what_the_encoder_makes_goes_both_ways() {
    let Some(mut jerasure) = Jerasure::start() else {
        println!(
            "not run: PARITAS_JERASURE does not name the oracle (lab/oracles/jerasure.py does)"
        );
        return;
    };
    let mut files = 0;
    for shape in SHAPES {
        let unit = shape.unit();
        for (length, buffer) in [
            (1, 0),
            (unit, 0),
            (5 * unit + 1234, 0),
            (100, 4 * unit),
            (2 * unit, unit),
            (5 * unit + 1234, 2 * unit),
        ] {
            let (folder, content) = (tempfile::tempdir().unwrap(), fill(0, length));
            let fragments = jerasure.fragments(&shape, &content, buffer);
            shape.write(folder.path(), &fragments, length, buffer);
            shape.expect_import(folder.path(), &content);
            if buffer == 0 {
                shape.expect_round_trip(folder.path());
            }
            files += 1;
        }
    }
    drop(jerasure.requests);
    assert!(jerasure.program.wait().unwrap().success());
    println!("Jerasure's encoder: {files} files");
}
