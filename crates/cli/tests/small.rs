//! Small objects cost little: no threads and little memory. A warning says how much room they take.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

#[macro_use]
mod common;

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::resource::{UsageWho, getrusage};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};
use tempfile::TempDir;

use common::{exit, finish, names, paritas, run, say, snapshot};

const CLONE: i64 = 56;
const CLONE3: i64 = 435;
const CLONE_THREAD: u64 = 0x0001_0000;
const ENOSYS: u32 = 38;

/// Largest resident size, in bytes, that a command may reach on a kilobyte. The program itself
/// takes half of it, and more in an unoptimised build.
const MEMORY: u64 = if cfg!(debug_assertions) { 32 << 20 } else { 20 << 20 };

/// Installs a filter that kills a process of this thread as soon as that process starts a thread.
fn forbid_threads() {
    let install = |call, rules, action| {
        let filter = SeccompFilter::new(
            [(call, rules)].into(),
            SeccompAction::Allow,
            action,
            TargetArch::x86_64,
        );
        let program: BpfProgram = filter.unwrap().try_into().unwrap();
        apply_filter(&program).unwrap();
    };
    // The filter cannot read the flags of `clone3`, so it refuses this call, and programs use
    // `clone`.
    install(CLONE3, vec![], SeccompAction::Errno(ENOSYS));
    let is_thread = SeccompCmpOp::MaskedEq(CLONE_THREAD);
    let condition =
        SeccompCondition::new(0, SeccompCmpArgLen::Qword, is_thread, CLONE_THREAD).unwrap();
    let rule = SeccompRule::new(vec![condition]).unwrap();
    install(CLONE, vec![rule], SeccompAction::KillProcess);
}

fn yard(length: usize) -> (TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let (file, shards) = (folder.path().join("object"), folder.path().join("shards"));
    fs::write(&file, vec![7; length]).unwrap();
    (folder, file, shards)
}

/// Encodes a kilobyte from a file and from a pipe, loses shards, and runs the other commands on the
/// rest.
fn round(code: &str, losses: usize) {
    let (_folder, file, shards) = yard(1000);
    let lose = || {
        names(&shards)[..losses].iter().for_each(|name| fs::remove_file(shards.join(name)).unwrap())
    };
    run(args!["encode", &file, "--code", code, "--out", &shards]).expect(exit::DONE);
    lose();
    run(args!["repair", &shards]).expect(exit::DONE);
    let mut pipe = Command::new("sh");
    pipe.args(["-c", "cat \"$1\" | { shift; exec \"$@\"; }", "sh"]).arg(&file);
    pipe.arg(env!("CARGO_BIN_EXE_paritas"));
    pipe.args(args![
        "encode", "-", "--name", "object", "--code", code, "--out", &shards, "--force"
    ]);
    finish(pipe).expect(exit::DONE);
    run(args!["verify", &shards]).expect(exit::DONE);
    lose();
    let decode = args!["decode", &shards, "--out", file.with_extension("back")];
    run(decode).expect(exit::DONE);
    assert_eq!(fs::read(file.with_extension("back")).unwrap(), [7; 1000]);
    run(args!["info", &shards]).expect(exit::DONE);
}

#[test]
fn a_kilobyte_needs_no_thread_and_little_memory() {
    forbid_threads();
    for (code, losses) in [("4+2", 2), ("50+10", 10), ("backblaze:k=10,m=4", 4), ("rdp:k=6", 2)] {
        round(code, losses);
        let peak = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap().max_rss() as u64 * 1024;
        say(&format!("small: peak of {} KB after {code}", peak / 1000));
        assert!(peak > 1 << 20, "the system does not count");
        assert!(peak < MEMORY, "{code} of a kilobyte took {peak} bytes; {MEMORY} are legal");
    }
    // The filter works: an object of more than one segment starts threads.
    let (_folder, file, shards) = yard(10_000_000);
    let mut large = paritas(args!["encode", &file, "--out", &shards, "--threads", "2"]);
    assert!(large.output().unwrap().status.signal().is_some());
}

fn stored(shards: &Path) -> usize {
    snapshot(shards).values().map(Vec::len).sum()
}

#[test]
fn what_a_small_object_takes_is_said_before() {
    for (code, count, most) in [("4+2", 6, 3000), ("10+4", 14, 7500), ("rdp:k=6", 8, 3500)] {
        let (_folder, file, shards) = yard(1);
        let run = run(args!["encode", &file, "--code", code, "--out", &shards]).expect(exit::DONE);
        let stored = stored(&shards);
        assert!(stored < most, "{stored}");
        let said =
            format!("will take {:.2} KiB in {count} shards instead of 1 B", stored as f64 / 1024.0);
        assert!(run.stderr.contains(&said), "{run}");
    }
    for (length, more) in [(1, "--quiet"), (100_000, "--no-sync")] {
        let (_folder, file, shards) = yard(length);
        let silent = run(args!["encode", &file, "--out", &shards, more]).expect(exit::DONE);
        assert!(!silent.stderr.contains("will take"), "{silent}");
    }
    // If nothing is written, there is no warning.
    let (_folder, file, shards) = yard(1);
    run(args!["encode", &file, "--out", &shards, "--quiet"]).expect(exit::DONE);
    let refused = run(args!["encode", &file, "--out", &shards]).expect(exit::ARGUMENTS);
    assert!(!refused.stderr.contains("will take"), "{refused}");
}
