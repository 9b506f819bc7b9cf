//! If the system lacks memory, the program says so, ends with code 8, and leaves nothing
//! half-written.

use std::fs;
use std::process::Command;

use crate::common::{self, Chance, exit, finish, names, paritas_after, run, say};

/// Returns the program with a limit on its address space, in KiB. Threads share one heap: if there
/// is no room for a thread's own heap, glibc looks for room again at every allocation, which takes
/// seconds.
fn limited(kibibytes: u32, arguments: &[std::ffi::OsString]) -> Command {
    let mut command = paritas_after(&format!("ulimit -v {kibibytes}"), arguments);
    command.env("MALLOC_ARENA_MAX", "1");
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
    // Limits from one under which the program hardly starts to one that is plenty.
    let starts = |kibibytes: &u32| {
        let output = limited(*kibibytes, &args!["--version"]).output().unwrap();
        output.status.success()
    };
    let least = (16_000..200_000).step_by(4_000).find(starts).unwrap();
    for kibibytes in (least..least + 50_000).step_by(4_000).chain([1_000_000]) {
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

/// Closes all descriptors that the shell inherited except the three standard streams (`flock`,
/// make's jobserver and build daemons pass descriptors on), and runs the arguments with a limit on
/// open files.
const FEW_DESCRIPTORS: &str = r#"
for open in /proc/self/fd/*; do
  if [ "${open##*/}" -gt 2 ]; then eval "exec ${open##*/}>&-"; fi
done
ulimit -n "$0" && exec "$@""#;

/// Returns the program with a limit on its open files. The shell is bash, because others cannot
/// close descriptors from 10 on.
fn with_descriptors(count: u32, arguments: &[std::ffi::OsString]) -> Command {
    let mut command = Command::new("bash");
    command.args(["-c", FEW_DESCRIPTORS, &count.to_string()]);
    command.arg(env!("CARGO_BIN_EXE_paritas")).args(arguments);
    command
}

/// Any number of shards can be read with few descriptors. If there are too few, no shard counts as
/// lost.
#[test]
fn few_descriptors_suffice() {
    let yard = tempfile::tempdir().unwrap();
    let (source, shards) = (yard.path().join("source"), yard.path().join("shards"));
    let mut content = vec![0; 3_000_000];
    Chance(9).fill(&mut content);
    fs::write(&source, &content).unwrap();
    common::encode(&source, &shards, "50+10", &[]);
    let all = names(&shards);
    let mut ends = [0; 2];
    for descriptors in [4, 5, 6, 8, 10, 16, 40] {
        let run = |arguments: &[_]| finish(with_descriptors(descriptors, arguments));
        let verify = run(&args!["verify", &shards, "--json"]);
        assert!([exit::DONE, exit::IO].contains(&verify.code), "{verify}");
        ends[usize::from(verify.code == exit::IO)] += 1;
        if verify.code != exit::DONE {
            continue;
        }
        let decode = run(&args!["decode", &shards, "--out", "-"]);
        assert!(decode.code == exit::IO || decode.stdout == content, "{decode}");
        assert!(descriptors < 10 || decode.code == exit::DONE, "{decode}");
    }
    assert!(ends[0] >= 4, "{ends:?}");
    // Other tools' fragments are opened by turns, too.
    let [coded, fragments, imported] =
        ["coded", "fragments", "imported"].map(|name| yard.path().join(name));
    common::encode(&source, &coded, "zfec:k=30,m=10", &[]);
    run(args!["export", &coded, "--format", "zfec", "--out", &fragments]).expect(exit::DONE);
    fs::remove_file(fragments.join("source.07_40.fec")).unwrap();
    let import = args!["import", &fragments, "--format", "zfec", "--out", &imported];
    finish(with_descriptors(24, &import)).expect(exit::DONE);
    let decode = args!["decode", &imported, "--out", "-"];
    assert!(run(decode).expect(exit::DONE).stdout == content);
    // Writing needs no more descriptors.
    let encode = args!["encode", &source, "--code", "50+10", "--name", "few", "--out", &shards];
    finish(with_descriptors(16, &encode)).expect(exit::DONE);
    assert_eq!(names(&shards).len(), 120);
    let decode = args!["decode", &shards, "--object", "few", "--out", "-"];
    assert!(run(decode).expect(exit::DONE).stdout == content);
    let lost: Vec<_> = all[..10].iter().map(|name| shards.join(name)).collect();
    let before: Vec<_> = lost.iter().map(|path| fs::read(path).unwrap()).collect();
    lost.iter().for_each(|path| fs::remove_file(path).unwrap());
    finish(with_descriptors(16, &args!["repair", &shards])).expect(exit::DONE);
    assert_eq!(names(&shards).len(), 120);
    assert!(lost.iter().map(|path| fs::read(path).unwrap()).eq(before));
}

#[test]
fn a_bench_that_does_not_fit() {
    let end = finish(limited(100_000, &args!["bench", "--code", "4+2", "--set", "dram"]));
    assert_eq!(end.code, exit::MEMORY, "{end:?}");
    assert!(end.stderr.contains("there is no memory for 44"), "{end:?}");
    run(args!["bench", "--code", "4+2", "--set", "65536", "--reps", "1"]).expect(exit::DONE);
}
