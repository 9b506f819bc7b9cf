//! Fuzzes shard files. Whatever a file holds, inspecting, verifying and decoding it neither panics
//! nor gives bytes whose digest differs from the one that the file states.
//!
//! An input is a whole file, so a failing one can be given to `paritas info` directly. Random
//! changes would all be caught by a checksum; so the mutator below changes what a checksum covers
//! and then corrects the checksum. Seeds are encoded at run time, so they are never of an old
//! format.

#![no_main]

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex};

use crc_fast::{CrcAlgorithm, checksum};
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use paritas::Code;
use paritas_shards::{
    Attributes, DecodeTarget, DigestCheck, EncodeJob, Object, ObjectId, PromoteJob,
};

/// Magic number of the format, as in the essay `paritas_store::object::format`.
const MAGIC: [u8; 8] = *b"\x89PRTS\r\n\x1a";
const END_MAGIC: [u8; 8] = *b"\x1a\n\rSTRP\x89";
const PREFIX: usize = 16;
const CRC: usize = 8;
const TRAILER: usize = 16;

/// Specs of the seeds. For the first five, one shard is enough to decode.
const SPECS: [&str; 10] = [
    "1+1",
    "rdp:k=1",
    "evenodd:k=1",
    "isal-cauchy:k=1,m=1",
    "lt:k=1,n=4,nodes=2",
    "4+2",
    "rdp:k=3",
    "evenodd:k=3",
    "reed-solomon:k=2,m=1,w=16",
    "dpg:k=2,m=1,m2=2,interleave=all",
];
const OBJECTS: [&[u8]; 3] = [b"", b"hello, world", &[0x5A; 700]];

static DIRECTORY: LazyLock<PathBuf> = LazyLock::new(|| {
    let directory = std::env::temp_dir().join(format!("paritas-fuzz-{}", std::process::id()));
    fs::create_dir_all(&directory).expect("a temporary directory");
    directory
});

/// First and last shards of small objects, and the first file that a promotion adds.
static SEEDS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let objects = SPECS.into_iter().flat_map(|spec| OBJECTS.map(|object| (spec, object)));
    objects.flat_map(|(spec, object)| encoded(spec, object)).collect()
});

fn encoded(spec: &str, object: &[u8]) -> Vec<Vec<u8>> {
    let code = Code::new(&spec.parse().expect("a legal spec")).expect("a legal code");
    // Some records have keys of version 3, the others do not.
    let mode = (object == OBJECTS[1]).then_some(0o640);
    // Not beside the input, which encoding would refuse to replace.
    let folder = DIRECTORY.join("seeds");
    fs::create_dir_all(&folder).expect("a temporary directory");
    let job = EncodeJob::new(code, "a", vec![folder])
        .packet(8)
        .block_bytes(128)
        .object(ObjectId::new([7; 16]))
        .attributes(Attributes { mode, ..Attributes::default() })
        .force(true)
        .sync(false)
        .threads(NonZeroUsize::new(1));
    let report = paritas_shards::encode(&job, object, &|_| {}).expect("a job that can be done");
    let added = promoted(&report.shards);
    let paths = [report.shards.first(), report.shards.last(), added.as_ref()];
    paths.into_iter().flatten().map(|path| fs::read(path).expect("is there")).collect()
}

/// Promotes an object whose code has stages, and returns the first file that this adds.
fn promoted(shards: &[PathBuf]) -> Option<PathBuf> {
    let inventory = paritas_shards::scan(shards);
    let object = inventory.objects.first().filter(|object| object.stages() > 1)?;
    let job = PromoteJob::default().sync(false).threads(NonZeroUsize::new(1));
    let report = paritas_shards::promote(object, &job, &|_| {}).expect("a whole object");
    report.added.into_iter().next().map(|part| part.path)
}

fuzz_target!(|file: &[u8]| {
    let path = DIRECTORY.join("a.0of2.paritas");
    overwrite(&path, file).expect("a temporary file");
    check(&path);
});

/// Writes without truncating first: file systems take a truncation for the replacement of a file,
/// and flush.
fn overwrite(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
    file.write_all(bytes)?;
    file.set_len(bytes.len() as u64)
}

fn check(path: &Path) {
    let inventory = paritas_shards::scan(&[path.to_owned()]);
    assert_eq!(inventory.objects.len() + inventory.ignored.len(), 1);
    for object in &inventory.objects {
        let verified = paritas_shards::verify(object, NonZeroUsize::new(1), &|_| {})
            .expect("damage is no error");
        if let Some(bytes) = decoded(object) {
            assert_eq!(verified.digest, DigestCheck::Right);
            assert_eq!(object.length(), Some(bytes.len() as u64));
            let digest = object.digest().expect("what is decoded was checked");
            assert_eq!(digest.as_bytes(), blake3::hash(&bytes).as_bytes());
        }
    }
}

/// Returns the object's bytes, unless decoding reports that they cannot be recovered.
fn decoded(object: &Object) -> Option<Vec<u8>> {
    let output = Output::default();
    let target = DecodeTarget::Writer(Box::new(output.clone()));
    paritas_shards::decode(object, target, NonZeroUsize::new(1), &|_| {}).ok()?;
    Some(output.0.lock().expect("no panic").clone())
}

#[derive(Clone, Default)]
struct Output(Arc<Mutex<Vec<u8>>>);

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A shard file, without the fields that follow from the rest.
struct Parts {
    /// Body of the front header; `None` if the file does not begin with one.
    front: Option<Vec<u8>>,
    blocks: Vec<u8>,
    /// Body of the footer.
    footer: Vec<u8>,
}

impl Parts {
    fn of(file: &[u8]) -> Option<Self> {
        let front = body(file);
        let trailer = file.len().checked_sub(TRAILER)?;
        let footer_start = trailer.checked_sub(u32_at(file, trailer)? as usize)?;
        let footer = body(&file[footer_start..trailer])?;
        let blocks_start = front.map_or(0, |front| PREFIX + front.len() + CRC);
        Some(Self {
            front: front.map(<[u8]>::to_vec),
            blocks: file.get(blocks_start..footer_start)?.to_vec(),
            footer: footer.to_vec(),
        })
    }

    fn to_file(&self) -> Vec<u8> {
        let mut file = self.front.as_ref().map_or(Vec::new(), |front| record(1, front));
        file.extend(&self.blocks);
        let footer = record(2, &self.footer);
        let length = footer.len() as u32;
        file.extend(footer);
        file.extend(length.to_le_bytes());
        file.extend([0; 4]);
        file.extend(END_MAGIC);
        file
    }

    fn mutate(&mut self, choice: u32) {
        match (choice % 8, &mut self.front) {
            (0, front) => *front = None,
            (1, _) => mutate(&mut self.blocks),
            (2, Some(front)) => mutate(front),
            (3..=5, Some(front)) if self.footer.get(1..front.len()) == front.get(1..) => {
                // Maps of the same identity and index; the footer's has one entry more. Both are
                // changed alike, since a footer that disagrees with the front is ignored.
                let total = self.footer.split_off(front.len());
                mutate(front);
                self.footer.truncate(1);
                self.footer.extend(front.iter().skip(1).chain(&total));
            }
            _ => mutate(&mut self.footer),
        }
    }
}

/// Returns the body of the record at the start of `bytes`.
fn body(bytes: &[u8]) -> Option<&[u8]> {
    let length = u32_at(bytes, 12).filter(|_| bytes.starts_with(&MAGIC))? as usize;
    bytes.get(PREFIX..)?.get(..length)
}

fn record(kind: u16, body: &[u8]) -> Vec<u8> {
    let mut record = MAGIC.to_vec();
    record.extend(1_u16.to_le_bytes());
    record.extend(kind.to_le_bytes());
    record.extend((body.len() as u32).to_le_bytes());
    record.extend(body);
    record.extend(checksum(CrcAlgorithm::Crc64Nvme, &record).to_le_bytes());
    record
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Lets the fuzzer change a part, which may grow a little.
fn mutate(part: &mut Vec<u8>) {
    let size = part.len();
    part.resize(size + 64, 0);
    let limit = part.len();
    let size = fuzzer_mutate(part, size, limit);
    part.truncate(size);
}

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let (kind, choice) = (seed % 16, seed / 16);
    let file = match (kind, Parts::of(&data[..size])) {
        (0, _) | (8.., None) => return fuzzer_mutate(data, size, max_size),
        (_, None) => SEEDS[choice as usize % SEEDS.len()].clone(),
        (_, Some(mut parts)) => {
            parts.mutate(choice);
            parts.to_file()
        }
    };
    if file.len() > max_size {
        return fuzzer_mutate(data, size, max_size);
    }
    data[..file.len()].copy_from_slice(&file);
    file.len()
});
