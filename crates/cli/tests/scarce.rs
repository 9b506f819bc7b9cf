//! Where the system gives no memory, the program says so and ends with code 8, and nothing is left
//! half-written.

mod common;

use std::fs;
use std::process::Command;

use common::{Chance, exit, finish, names, run, say};

/// The program with a limit on its address space, in KiB.
fn limited(kibibytes: u32, arguments: &[std::ffi::OsString]) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -v $0 && exec \"$@\"", &kibibytes.to_string()]);
    command.arg(env!("CARGO_BIN_EXE_paritas")).args(arguments);
    command
}

#[test]
fn code_8_and_nothing_left() {
    let yard = tempfile::tempdir().unwrap();
    let source = yard.path().join("source");
    let mut content = vec![0; 20_000_000];
    Chance(8).fill(&mut content);
    fs::write(&source, &content).unwrap();
    let mut ends = [0; 2];
    // From what the program hardly starts with to what is plenty.
    for kibibytes in (16_000..=64_000).step_by(4_000).chain([1_000_000]) {
        let out = yard.path().join(kibibytes.to_string());
        fs::create_dir(&out).unwrap();
        let encode = args!["encode", &source, "--code", "50+10", "--out", &out, "--no-sync"];
        let end = finish(limited(kibibytes, &encode));
        let shards = names(&out).len();
        assert!(end.stderr.contains("memory") || end.code == exit::DONE, "{end:?}");
        assert_eq!((end.code == exit::DONE, shards == 60), (shards > 0, shards > 0), "{end:?}");
        assert!([exit::DONE, exit::MEMORY].contains(&end.code), "{end:?}");
        ends[usize::from(end.code == exit::MEMORY)] += 1;
    }
    say(&format!("scarce memory: {} runs done, {} ended with code 8", ends[0], ends[1]));
    assert!(ends[0] > 0 && ends[1] > 0, "{ends:?}");
}

#[test]
fn a_bench_that_does_not_fit() {
    let end = finish(limited(100_000, &args!["bench", "--code", "4+2", "--set", "dram"]));
    assert_eq!(end.code, exit::MEMORY, "{end:?}");
    assert!(end.stderr.contains("there is no memory for 44"), "{end:?}");
    run(args!["bench", "--code", "4+2", "--set", "65536", "--reps", "1"]).expect(exit::DONE);
}
