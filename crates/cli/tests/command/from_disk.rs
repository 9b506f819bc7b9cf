//! Verifying reads the bytes on the disk, not the system's copy in memory.
#![cfg(target_os = "linux")]

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{Chance, exit, finish, run};

/// Names of file systems that store files on a disk and count what they read from it.
const ON_DISKS: [&str; 3] = ["btrfs", "ext2/ext3", "xfs"];

/// Creates protected files and an object in shards. Returns the path of each, and the number of
/// bytes that verifying it must read.
fn sets(folder: &Path) -> [(OsString, u64); 2] {
    let (photos, shards) = (folder.join("photos"), folder.join("shards"));
    fs::create_dir(&photos).unwrap();
    let bytes = 3_000_000;
    fs::write(photos.join("a.jpg"), Chance(1).bytes(bytes)).unwrap();
    run(args!["protect", &photos]).expect(exit::DONE);
    let encode = args!["encode", photos.join("a.jpg"), "--code", "2+1", "--out", &shards];
    run(encode).expect(exit::DONE);
    let bytes = bytes as u64;
    [(photos.into(), bytes + bytes / 10), (shards.into(), bytes + bytes / 2)]
}

/// Runs the program, and returns the number of bytes that it read from disks, if the system counts
/// them.
fn read_from_disks(arguments: impl IntoIterator<Item = OsString>) -> Option<u64> {
    let mut command = Command::new("sh");
    command.args([
        "-c",
        "\"$0\" \"$@\" || exit; cat /proc/$$/io || true",
        env!("CARGO_BIN_EXE_paritas"),
    ]);
    command.args(arguments);
    let text = finish(command).expect(exit::DONE).text();
    let line = text.lines().find_map(|line| line.strip_prefix("read_bytes: "));
    line.map(|bytes| bytes.parse().unwrap())
}

#[test]
fn what_is_in_memory_is_read_from_the_disk_if_that_is_asked_for() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    for (path, bytes) in sets(folder.path()) {
        let cached = read_from_disks(args!["verify", &path]);
        let read = read_from_disks(args!["verify", &path, "--from-disk"]);
        expect(folder.path(), bytes, cached, read);
    }
}

/// Checks how much was read from the disk of a folder: `cached` bytes when `bytes` bytes were in
/// memory, and `read` bytes when all had to come from the disk.
fn expect(folder: &Path, bytes: u64, cached: Option<u64>, read: Option<u64>) {
    let mut stat = Command::new("stat");
    stat.args(["-f", "-c", "%T"]).arg(folder);
    let kind = finish(stat).expect(0).text();
    match (cached, read) {
        (Some(cached), Some(read)) if ON_DISKS.contains(&kind.trim()) => {
            assert!(cached + bytes / 2 < read && read >= bytes, "{cached}, {read} of {bytes}");
        }
        _ => println!("{kind}: not known to count what it reads; {cached:?}, {read:?} of {bytes}"),
    }
}

#[cfg(feature = "volume")]
#[test]
fn deep_verification_of_a_volume_reads_the_disks() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (source, tank) = (folder.path().join("a.jpg"), folder.path().join("tank.toml"));
    let bytes = 3_000_000;
    fs::write(&source, Chance(2).bytes(bytes)).unwrap();
    let mut init = args!["volume", "init", &tank, "--code", "2+1"].to_vec();
    for disk in ["disk1", "disk2", "disk3"] {
        let disk = folder.path().join(disk);
        fs::create_dir(&disk).unwrap();
        init.extend(args!["--node", disk]);
    }
    run(init).expect(exit::DONE);
    run(args!["volume", "put", &tank, &source, "a.jpg"]).expect(exit::DONE);
    let out = folder.path().join("out");
    let cached = read_from_disks(args!["volume", "get", &tank, "a.jpg", out]);
    let read = read_from_disks(args!["volume", "verify", &tank, "--deep"]);
    let bytes = bytes as u64;
    expect(folder.path(), bytes + bytes / 2, cached, read);
}

#[test]
fn what_reads_nothing_cannot_read_the_disk() {
    let message = run(["verify", ".", "--quick", "--from-disk"]).expect(exit::ARGUMENTS).stderr;
    assert!(message.contains("--quick") && message.contains("--from-disk"), "{message}");
}
