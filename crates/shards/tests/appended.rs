//! Bytes that were appended to shards, even gigabytes, are not read to find out what the shards
//! are. This program has only one test, because the system counts what the whole process reads.
#![cfg(target_os = "linux")]

use std::fs::{self, OpenOptions};
use std::path::Path;

use common::{content, get, only, put, small_job};

#[allow(dead_code, reason = "the other tests use the rest")]
#[path = "testsuite/common.rs"]
mod common;

const APPENDED: u64 = 16 << 30;
/// The most bytes that may be read of one file.
const BOUND: u64 = 20 << 20;

/// Returns the number of bytes that this process has read so far.
fn read_bytes() -> u64 {
    let counts = fs::read_to_string("/proc/self/io").unwrap();
    let count = counts.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap();
    count.parse().unwrap()
}

fn append(path: &Path, bytes: u64) {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    file.set_len(file.metadata().unwrap().len() + bytes).unwrap();
}

#[test]
fn gigabytes_after_the_footer_are_not_read() {
    let bytes = content(2000);
    // One shard of an object from a pipe, whose length the other shards tell; or all shards of an
    // object whose length the front headers tell.
    for (hint, extended) in [(None, 1), (Some(2000), 6)] {
        let directory = tempfile::tempdir().unwrap();
        let mut job = small_job("4+2", directory.path());
        job.length_hint = hint;
        let shards = put(&job, &bytes).shards;
        shards[..extended].iter().for_each(|path| append(path, APPENDED));
        let before = read_bytes();
        let object = only(directory.path());
        let read = read_bytes() - before;
        assert!(read < BOUND * extended as u64, "{read} bytes of {extended} files");
        for file in object.parts()[..extended].iter().flatten() {
            let flaws = object.flaws(0, file).join(", ");
            assert!(flaws.contains(&format!("{APPENDED} bytes after the footer")), "{flaws}");
        }
        assert_eq!(get(&object).unwrap().0, bytes);
    }
    // If nothing tells the length, or if the expected length was wrong, a whole file is searched
    // for a footer.
    for hint in [None, Some(1 << 24)] {
        let directory = tempfile::tempdir().unwrap();
        let mut job = small_job("2+1", directory.path());
        job.length_hint = hint;
        put(&job, &bytes).shards.iter().for_each(|path| append(path, BOUND));
        let before = read_bytes();
        assert_eq!(get(&only(directory.path())).unwrap().0, bytes);
        assert!(read_bytes() - before < 5 * BOUND);
    }
}
