//! If the system forbids executable memory, tiled kernels are used and `doctor` says so. The test
//! simulates this by a seccomp filter that denies making memory executable; child processes inherit
//! it.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::path::Path;
use std::process::{Command, Output};

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};

const MPROTECT: i64 = 10;
const PROT_EXEC: u64 = 4;
const EACCES: u32 = 13;

/// Denies `mprotect` with PROT_EXEC to this thread and the processes that it starts.
fn forbid_executable_memory() {
    let executable = SeccompCmpOp::MaskedEq(PROT_EXEC);
    let condition =
        SeccompCondition::new(2, SeccompCmpArgLen::Dword, executable, PROT_EXEC).unwrap();
    let rule = SeccompRule::new(vec![condition]).unwrap();
    let filter = SeccompFilter::new(
        [(MPROTECT, vec![rule])].into(),
        SeccompAction::Allow,
        SeccompAction::Errno(EACCES),
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
