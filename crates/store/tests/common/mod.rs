//! What tests of several crates share: they include this file by its path.
#![allow(dead_code, reason = "every test uses its own part")]

use std::fs;
use std::io::Write as _;
use std::path::Path;

/// Says that a test does nothing here. `scripts/test` repeats the line at its end.
pub fn not_run(why: &str) {
    // The harness hides what macros print.
    let _ = writeln!(std::io::stderr(), "NOT RUN: {why}");
}

/// Computes CRC-64/NVME, the checksum of the formats, bit by bit.
pub fn crc64_nvme(bytes: &[u8]) -> u64 {
    !bytes.iter().fold(u64::MAX, |crc, &byte| {
        (0..8).fold(crc ^ u64::from(byte), |crc, _| match crc & 1 {
            0 => crc >> 1,
            _ => crc >> 1 ^ 0x9A6C_9329_AC4B_C9B5,
        })
    })
}

/// Renews the change time (ctime) of all files below a path, and nothing else, as copying a tree
/// does. Then a file that a test damages, as a disk would, does not stand out by its ctime.
pub fn renew_times(path: &Path) {
    let Ok(found) = fs::symlink_metadata(path) else { return };
    if found.is_dir() {
        let entries = fs::read_dir(path).into_iter().flatten();
        entries.for_each(|entry| renew_times(&entry.unwrap().path()));
    } else if found.is_file() {
        fs::set_permissions(path, found.permissions()).unwrap();
    }
}
