//! Memory does not grow with the object's size: three hundred megabytes go through pipes. Neither
//! memory nor the number of open files grows with the number of objects.
//!
//! The system keeps the highest resident size of any child that was waited for. So this file has
//! only one test: a second one would affect its result.

#[macro_use]
mod common;

use std::ffi::OsString;
use std::fs;
use std::io::{Read, Write};
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use nix::sys::resource::{UsageWho, getrusage};
use paritas::Code;
use paritas_shards::{EncodeJob, encode};

use common::{Chance, exit, finish, names as names_of, paritas, run, say, wait};

const LENGTH: usize = 300_000_000;
const PIECE: usize = 1 << 20;
const LIMIT: u64 = 256 << 20;

/// Returns the highest resident size of all children so far, in bytes.
fn peak() -> u64 {
    getrusage(UsageWho::RUSAGE_CHILDREN).unwrap().max_rss() as u64 * 1024
}

/// Checks the memory that a command took.
fn check_peak(command: &str) {
    let peak = peak();
    say(&format!("memory: peak of {} MB after {command}", peak / 1_000_000));
    assert!(peak > 1 << 20, "the system does not count");
    assert!(peak < LIMIT, "{command} of {LENGTH} bytes took {peak} bytes; {LIMIT} are legal");
}

fn start(arguments: &[OsString]) -> Child {
    let mut command = paritas(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Generates the object piece by piece.
fn feed(mut sink: impl Write) -> blake3::Hash {
    let (mut chance, mut hasher) = (Chance(300), blake3::Hasher::new());
    let mut piece = vec![0; PIECE];
    let mut left = LENGTH;
    while left > 0 {
        let piece = &mut piece[..left.min(PIECE)];
        chance.fill(piece);
        hasher.update(piece);
        sink.write_all(piece).unwrap();
        left -= piece.len();
    }
    hasher.finalize()
}

/// Reads to the end. Returns the length and the hash.
fn swallow(mut source: impl Read) -> (usize, blake3::Hash) {
    let mut hasher = blake3::Hasher::new();
    let mut piece = vec![0; PIECE];
    let mut length = 0;
    loop {
        let read = source.read(&mut piece).unwrap();
        if read == 0 {
            return (length, hasher.finalize());
        }
        hasher.update(&piece[..read]);
        length += read;
    }
}

/// Encodes an object of some bytes as 1+1.
fn put(folder: &Path, name: &str) {
    fs::create_dir_all(folder).unwrap();
    let code = Code::new(&"1+1".parse().unwrap()).unwrap();
    let mut job = EncodeJob::new(code, name, vec![folder.to_owned()]);
    (job.sync, job.threads) = (false, NonZeroUsize::new(1));
    encode(&job, name.as_bytes(), &|_| {}).unwrap();
}

/// Verifies a tree of `objects` objects with at most `files` open files. Returns the highest
/// resident size of any child until then.
fn peak_of_tree(tree: &Path, files: u64, objects: usize) -> u64 {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -n {files}; exec \"$@\""), "sh"]);
    command.arg(env!("CARGO_BIN_EXE_paritas")).args(args![
        "verify",
        "-r",
        tree,
        "--only-bad",
        "--json"
    ]);
    let run = finish(command).expect(exit::DONE);
    assert_eq!(run.result()["intact"], objects, "{run}");
    peak()
}

/// A finished object takes no memory. A waiting folder takes its path, and a waiting object in the
/// same folder takes what its shards state.
fn many_objects() {
    const MANY: usize = 300;
    let yard = tempfile::tempdir().unwrap();
    let [few, folders, one] = ["few", "folders", "one"].map(|name| yard.path().join(name));
    (0..2).for_each(|number| put(&few, &format!("{number}")));
    (0..MANY).for_each(|number| put(&folders.join(format!("{number}")), "object"));
    (0..MANY).for_each(|number| put(&one, &format!("{number}")));
    let base = peak_of_tree(&few, 24, 2);
    let folders = peak_of_tree(&folders, 24, MANY) - base;
    let one = peak_of_tree(&one, 24, MANY) - base;
    say(&format!("memory: {MANY} objects took {folders} more bytes in folders, {one} in one"));
    assert!(folders < 4 << 20 && one < 8 << 20, "{folders} {one}");
}

#[test]
fn three_hundred_megabytes_through_pipes() {
    many_objects();
    let yard = tempfile::tempdir().unwrap();
    let shards = yard.path().join("shards");

    let mut child = start(&args!["encode", "-", "--out", &shards, "--no-sync", "--quiet"]);
    let stdin = child.stdin.take().unwrap();
    let digest = thread::spawn(move || feed(stdin));
    assert_eq!(wait(&mut child), (exit::DONE, String::new()));
    let digest = digest.join().unwrap();
    check_peak("encode");

    // With two lost shards, decoding must compute.
    names_of(&shards)[..2].iter().for_each(|name| fs::remove_file(shards.join(name)).unwrap());
    let mut child = start(&args!["decode", &shards, "--out", "-", "--quiet"]);
    let stdout = child.stdout.take().unwrap();
    let swallowed = thread::spawn(move || swallow(stdout));
    assert_eq!(wait(&mut child), (exit::DONE, String::new()));
    assert_eq!(swallowed.join().unwrap(), (LENGTH, digest));
    check_peak("decode");

    run(args!["repair", &shards, "--no-sync"]).expect(exit::DONE);
    run(args!["verify", &shards]).expect(exit::DONE);
    check_peak("repair and verify");

    let again = args!["decode", &shards, "--out", "/dev/null", "--threads", "500"];
    run(again).expect(exit::DONE);
    check_peak("decode with 500 threads");

    let shards = yard.path().join("lt");
    let code = "lt:k=4096,n=6144";
    let encode = args!["encode", "-", "--out", &shards, "--code", code, "--no-sync", "--quiet"];
    let mut child = start(&encode);
    let stdin = child.stdin.take().unwrap();
    let lt_digest = thread::spawn(move || feed(stdin));
    assert_eq!(wait(&mut child), (exit::DONE, String::new()));
    assert_eq!(lt_digest.join().unwrap(), digest);
    check_peak("encode of an LT code");
    names_of(&shards)[..2].iter().for_each(|name| fs::remove_file(shards.join(name)).unwrap());
    let again = args!["decode", &shards, "--out", "/dev/null", "--threads", "500"];
    run(again).expect(exit::DONE);
    run(args!["repair", &shards, "--no-sync"]).expect(exit::DONE);
    check_peak("decode and repair of an LT code");
}
