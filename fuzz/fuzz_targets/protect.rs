//! Fuzzes what a catalogue of a protection says. Whatever it is, finding, verifying and repairing
//! neither panics nor changes anything outside the protected root.
//!
//! An input is a few numbers and the catalogue's columns (see `catalogue.rs` of the crate). What
//! checksums and compression would catch is made right here, so that every change counts.

#![no_main]

use std::fs::{self, DirEntry};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use crc_fast::{CrcAlgorithm, Digest, checksum};
use flate2::Compression;
use flate2::read::DeflateEncoder;
use libfuzzer_sys::fuzz_target;
use paritas_protect::{RepairJob, State, VerifyOptions, find, repair, verify};

const MAGIC: [u8; 8] = *b"\x89PRTY\r\n\x1a";
const RECORD: usize = 192;
const LAYER: [u8; 16] = [7; 16];
const BLOCK: usize = 512;
/// The number that begins the checksum of the only piece of the catalogue.
const PIECE: u64 = 1 << 63;

static YARD: LazyLock<PathBuf> = LazyLock::new(|| {
    let yard = std::env::temp_dir().join(format!("paritas-fuzz-{}", std::process::id()));
    fs::create_dir_all(&yard).expect("a temporary folder");
    yard
});

/// The numbers at the beginning of an input.
struct Numbers {
    /// Bytes of the stream.
    length: u16,
    parity: u8,
    /// Number of digests.
    files: u8,
}

fuzz_target!(|input: &[u8]| {
    let Some((&[low, high, parity, files], columns)) = input.split_first_chunk() else { return };
    let length = u16::from_le_bytes([low, high]) % 5000;
    let parity = if length == 0 { 0 } else { parity % 4 + 1 };
    let bytes = parity_file(&Numbers { length, parity, files: files % 16 }, columns);
    // Two folders deep, so that what leads out of the root is still in the yard.
    let root = YARD.join("a/b/root");
    let _ = fs::remove_dir_all(&*YARD);
    fs::create_dir_all(root.join(".paritas")).expect("a folder");
    fs::write(root.join("a"), "a file").expect("a file");
    fs::create_dir(root.join("folder")).expect("a folder");
    fs::write(root.join(".paritas/x.parity"), bytes).expect("a file");
    let Ok(found) = find(std::slice::from_ref(&root)) else { return };
    for protection in &found {
        let report = verify(protection, &VerifyOptions::default(), &|_| {}).expect("a report");
        let job = RepairJob::default().sync(false).restore_changed(true).move_back(true);
        if let Ok(repaired) = repair(protection, &job, &|_| {}) {
            assert_eq!(repaired.found.status, report.status);
            let is_refused = report.status == State::Lost;
            assert!(!is_refused || repaired.restored.is_empty());
        }
    }
    for (folder, only) in [(YARD.clone(), "a"), (YARD.join("a"), "b"), (YARD.join("a/b"), "root")] {
        assert_eq!(names_in(&folder), [only], "in {}", folder.display());
    }
});

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let name = |entry: DirEntry| entry.file_name().to_string_lossy().into_owned();
    entries.map(|entry| name(entry.expect("an entry"))).collect()
}

/// Returns the only parity file of a layer, with blocks of zeros.
fn parity_file(numbers: &Numbers, columns: &[u8]) -> Vec<u8> {
    let catalogue = catalogue(numbers, columns);
    let piece = catalogue.len().max(1).next_multiple_of(512);
    let mut filled = catalogue.clone();
    filled.resize(piece, 0);
    let mut file = record(1, numbers, &catalogue, piece);
    for row in 0..u64::from(numbers.parity) {
        add_checked(&mut file, row, &[0; BLOCK]);
    }
    add_checked(&mut file, PIECE, &filled);
    file.extend(record(2, numbers, &catalogue, piece));
    file
}

fn add_checked(file: &mut Vec<u8>, number: u64, bytes: &[u8]) {
    let mut crc = Digest::new(CrcAlgorithm::Crc64Nvme);
    crc.update(&LAYER);
    crc.update(&number.to_le_bytes());
    crc.update(bytes);
    file.extend_from_slice(bytes);
    file.extend(crc.finalize().to_le_bytes());
}

fn record(kind: u16, numbers: &Numbers, catalogue: &[u8], piece: usize) -> Vec<u8> {
    let mut record = MAGIC.to_vec();
    record.extend(1_u16.to_le_bytes());
    record.extend(kind.to_le_bytes());
    record.extend((RECORD as u32).to_le_bytes());
    record.extend([3; 16]);
    record.extend(LAYER);
    record.extend(0_u32.to_le_bytes());
    record.extend(0_u16.to_le_bytes());
    record.extend(1_u16.to_le_bytes());
    let data = usize::from(numbers.length).div_ceil(BLOCK);
    let lengths =
        [numbers.length.into(), BLOCK, data, numbers.parity.into(), catalogue.len(), piece];
    lengths.iter().for_each(|&long| record.extend((long as u64).to_le_bytes()));
    record.extend(1_u32.to_le_bytes());
    record.extend(1_u32.to_le_bytes());
    record.extend(blake3::hash(catalogue).as_bytes());
    record.resize(RECORD - 8, 0);
    let crc = checksum(CrcAlgorithm::Crc64Nvme, &record);
    record.extend(crc.to_le_bytes());
    record
}

fn catalogue(numbers: &Numbers, columns: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    let mut encoder = DeflateEncoder::new(columns, Compression::fast());
    encoder.read_to_end(&mut packed).expect("memory");
    let data = usize::from(numbers.length).div_ceil(BLOCK);
    let mut out = vec![0xa6, 0];
    // The settings: label, root, starts, excludes, redundancy, time, folders.
    out.extend([0xa7, 0, 0x41, b'x', 1, 0x41, b'/', 2, 0x81, 0x40, 3, 0x80]);
    out.extend([4, 0x1a, 0, 1, 0x86, 0xa0, 5, 0x82, 0, 0, 6, 0x80]);
    out.extend([1, 0x80, 2, 0x1a]);
    out.extend((columns.len() as u32).to_be_bytes());
    for (key, bytes) in
        [(3, packed), (4, vec![9; 16 * usize::from(numbers.files)]), (5, vec![8; 8 * data])]
    {
        out.extend([key, 0x5a]);
        out.extend((bytes.len() as u32).to_be_bytes());
        out.extend(bytes);
    }
    out
}
