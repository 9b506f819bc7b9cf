//! Shared parts of the tests: contents, small encodings, and decoding into memory.
#[path = "../../../store/tests/common/mod.rs"]
mod shared;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use paritas::Code;
use paritas_shards::{
    DecodeReport, DecodeTarget, EncodeJob, EncodeReport, Error, ErrorKind, FileTarget, Inventory,
    Object, ObjectId, RepairJob, RepairReport, Result, VerifyReport, decode, encode, repair, scan,
    verify,
};

pub use shared::crc64_nvme;

/// Returns bytes with a prime period, so that no two blocks are alike.
pub fn content(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i % 65_521 % 251) as u8 ^ (i / 251 % 239) as u8).collect()
}

pub fn code(spec: &str) -> Code {
    Code::new(&spec.parse().unwrap()).unwrap()
}

/// Returns a job with small packets and blocks of one stripe, so that small objects have several
/// blocks.
pub fn small_job(spec: &str, directory: &Path) -> EncodeJob {
    EncodeJob::new(code(spec), "object", vec![directory.to_owned()])
        .packet(8)
        .block_bytes(1)
        .object(ObjectId::new(*b"0123456789abcdef"))
        .sync(false)
        .threads(NonZeroUsize::new(2))
}

pub fn put(job: &EncodeJob, bytes: &[u8]) -> EncodeReport {
    encode(job, bytes, &|_| {}).unwrap()
}

/// Returns the number of bytes of a segment of a small job.
pub fn segment_bytes(spec: &str) -> usize {
    code(spec).data_cells().len() * 8
}

pub fn look(directory: &Path) -> Inventory {
    scan(&[directory.to_owned()])
}

/// Returns the only object of a directory.
pub fn only(directory: &Path) -> Object {
    let mut inventory = look(directory);
    assert_eq!(inventory.objects.len(), 1, "{:?}", inventory.ignored);
    inventory.objects.remove(0)
}

#[derive(Clone, Default)]
pub struct Memory(pub Arc<Mutex<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Decodes into memory.
pub fn get(object: &Object) -> Result<(Vec<u8>, DecodeReport)> {
    let memory = Memory::default();
    let target = DecodeTarget::Writer(Box::new(memory.clone()));
    let report = decode(object, target, NonZeroUsize::new(2), &|_| {})?;
    let bytes = memory.0.lock().unwrap().clone();
    Ok((bytes, report))
}

/// Decodes into a file.
pub fn get_file(object: &Object, path: &Path, force: bool) -> Result<DecodeReport> {
    let target = FileTarget::new(path).force(force).sync(false);
    decode(object, target, NonZeroUsize::new(2), &|_| {})
}

pub fn check(object: &Object) -> VerifyReport {
    verify(object, NonZeroUsize::new(2), &|_| {}).unwrap()
}

pub fn mend(object: &Object) -> Result<RepairReport> {
    repair(object, &RepairJob::default().sync(false).threads(NonZeroUsize::new(2)), &|_| {})
}

pub fn kind<T: std::fmt::Debug>(result: Result<T, Error>) -> ErrorKind {
    result.unwrap_err().kind()
}

/// Returns all files of a directory.
pub fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries
        .filter(|path| path.is_file())
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect()
}

/// Replaces the files of a directory.
pub fn restore(directory: &Path, kept: &BTreeMap<PathBuf, Vec<u8>>) {
    files(directory).keys().for_each(|path| fs::remove_file(path).unwrap());
    kept.iter().for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
}

/// Changes a file.
pub fn edit(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

/// Returns the length of the front header of a shard file.
pub fn front_length(shard: &[u8]) -> usize {
    16 + u32::from_le_bytes(shard[12..16].try_into().unwrap()) as usize + 8
}

/// Returns the offset of the footer.
pub fn footer_start(shard: &[u8]) -> usize {
    let trailer = shard.len() - 16;
    trailer - u32::from_le_bytes(shard[trailer..trailer + 4].try_into().unwrap()) as usize
}

/// Changes bytes of the record that begins at `start`, and corrects its checksum.
pub fn forge(shard: &mut [u8], start: usize, change: impl FnOnce(&mut [u8])) {
    let length = front_length(&shard[start..]);
    let record = &mut shard[start..start + length];
    change(&mut record[..length - 8]);
    let crc = crc64_nvme(&record[..length - 8]).to_le_bytes();
    record[length - 8..].copy_from_slice(&crc);
}

/// Creates a folder with `count` disks in it.
pub fn disks(count: usize) -> (tempfile::TempDir, Vec<PathBuf>) {
    let root = tempfile::tempdir().unwrap();
    let disks: Vec<PathBuf> = (0..count).map(|disk| root.path().join(format!("d{disk}"))).collect();
    disks.iter().for_each(|disk| fs::create_dir(disk).unwrap());
    (root, disks)
}

/// Returns a job that spreads shards over disks.
pub fn job_to(spec: &str, disks: &[PathBuf]) -> EncodeJob {
    let mut job = small_job(spec, &disks[0]);
    job.directories = disks.to_vec();
    job
}

/// Returns the first object found on disks.
pub fn object_in(disks: &[PathBuf]) -> Object {
    scan(disks).objects.remove(0)
}

/// Returns the number of files on each disk.
pub fn counts(disks: &[PathBuf]) -> Vec<usize> {
    disks.iter().map(|disk| files(disk).len()).collect()
}
