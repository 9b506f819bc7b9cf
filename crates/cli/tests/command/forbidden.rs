//! System calls that the system forbids: a seccomp filter denies a call to the thread of a test,
//! and to the processes that it starts.
//!
//! If memory must not be executable, tiled kernels are used and `doctor` says so. If a disk cannot
//! be synced, decoding to it fails.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};

use crate::common;

const MPROTECT: i64 = 10;
const PROT_EXEC: u64 = 4;
const FSYNC: i64 = 74;
const EIO: u32 = 5;
const EACCES: u32 = 13;

/// Denies `mprotect` with PROT_EXEC to this thread and the processes that it starts.
fn forbid_executable_memory() {
    let executable = SeccompCmpOp::MaskedEq(PROT_EXEC);
    let condition =
        SeccompCondition::new(2, SeccompCmpArgLen::Dword, executable, PROT_EXEC).unwrap();
    forbid(MPROTECT, vec![SeccompRule::new(vec![condition]).unwrap()], EACCES);
}

/// Denies a system call if one of `rules` matches, or always if there are no rules.
fn forbid(call: i64, rules: Vec<SeccompRule>, error: u32) {
    let filter = SeccompFilter::new(
        [(call, rules)].into(),
        SeccompAction::Allow,
        SeccompAction::Errno(error),
        TargetArch::x86_64,
    );
    let program: BpfProgram = filter.unwrap().try_into().unwrap();
    apply_filter(&program).unwrap();
}

fn paritas(arguments: &[&str], folder: &Path) -> Output {
    let binary = env!("CARGO_BIN_EXE_paritas");
    Command::new(binary).args(arguments).current_dir(folder).output().unwrap()
}

#[test]
fn tiled_kernels_serve() {
    let folder = tempfile::tempdir().unwrap();
    let content: Vec<u8> = (0..3_000_000_u32).map(|i| (i % 251) as u8).collect();
    std::fs::write(folder.path().join("file"), &content).unwrap();
    let run = |arguments: &[&str]| {
        let output = paritas(arguments, folder.path());
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(run(&["doctor", "--json"]).contains("\"executable_memory\":true"));
    run(&["encode", "file", "--code", "6+3", "--out", "compiled", "--no-sync"]);

    forbid_executable_memory();
    let doctor = run(&["doctor"]);
    assert!(doctor.contains("cannot run (Permission denied"), "{doctor}");
    assert!(doctor.contains("gives no executable memory: Permission denied"), "{doctor}");
    assert!(!doctor.contains("WRONG"), "{doctor}");
    assert!(run(&["doctor", "--json"]).contains("\"executable_memory\":false"));
    for shard in ["compiled/file.0of9.paritas", "compiled/file.4of9.paritas"] {
        std::fs::remove_file(folder.path().join(shard)).unwrap();
    }
    run(&["decode", "compiled", "--out", "back", "--no-sync"]);
    assert!(std::fs::read(folder.path().join("back")).unwrap() == content);
    run(&["encode", "file", "--code", "6+3", "--out", "tiled", "--no-sync"]);
    run(&["verify", "tiled"]);
}

/// A block device over a file; it is detached on drop.
struct Disk(PathBuf);

impl Disk {
    fn new(file: &Path) -> Option<Self> {
        let set_up = Command::new("losetup").args(["--find", "--show"]).arg(file).output().ok()?;
        let device = String::from_utf8(set_up.stdout).ok()?;
        set_up.status.success().then(|| Self(device.trim_end().into()))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("--detach").arg(&self.0).status();
    }
}

/// A write to a disk may fail only when it is synced.
#[test]
fn disks_are_synced() {
    let folder = tempfile::tempdir().unwrap();
    let (file, image) = (folder.path().join("file"), folder.path().join("image"));
    std::fs::write(&file, vec![7; 1 << 20]).unwrap();
    std::fs::write(&image, vec![0; 1 << 20]).unwrap();
    let Some(disk) = Disk::new(&image) else {
        return common::not_run("forbidden: no file can be a disk here");
    };
    let encode = paritas(&["encode", "file", "--out", "shards", "--no-sync"], folder.path());
    assert!(encode.status.success(), "{encode:?}");
    let decode = |more: &[&str]| {
        let arguments = ["decode", "shards", "--out", disk.0.to_str().unwrap()];
        paritas(&[&arguments, more].concat(), folder.path())
    };
    let done = decode(&[]);
    assert!(done.status.success(), "{done:?}");
    assert!(std::fs::read(&disk.0).unwrap() == vec![7; 1 << 20]);
    forbid(FSYNC, Vec::new(), EIO);
    assert_eq!(decode(&[]).status.code(), Some(common::exit::IO));
    assert!(decode(&["--no-sync"]).status.success());
}
