//! An encoding that is killed at any moment leaves the old set whole or the new one. A repair
//! leaves every shard as it was or as it should be.
//!
//! Each test starts itself again as a victim that works endlessly, and kills it.

mod common;

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use common::{check, code, content, edit, files, get, look, mend, restore};
use paritas_shards::{EncodeJob, Object, State, encode};

const DIRECTORY: &str = "PARITAS_KILL_DIRECTORY";
const KILLS: u64 = 50;

fn job(directory: &Path) -> EncodeJob {
    EncodeJob::new(code("4+2"), "object", vec![directory.to_owned()])
        .force(true)
        .sync(false)
        .threads(NonZeroUsize::new(2))
}

/// Contents of different lengths, each marked by its first byte.
fn version(number: u8) -> Vec<u8> {
    let mut bytes = content(300_000 + 50_000 * usize::from(number));
    bytes[0] = number;
    bytes
}

fn encode_without_end(directory: &Path) {
    for number in (0..5).cycle() {
        encode(&job(directory), &version(number)[..], &|_| {}).unwrap();
    }
}

fn repair_without_end(directory: &Path) {
    for victim in (0..6).cycle() {
        let path = directory.join(format!("object.{victim}of6.paritas"));
        if victim % 2 == 0 {
            fs::remove_file(path).unwrap();
        } else {
            // Damaged in place, as disks do it.
            use std::os::unix::fs::FileExt;
            let file = fs::OpenOptions::new().write(true).open(path).unwrap();
            file.write_all_at(b"damaged!", 40_000).unwrap();
        }
        mend(&look(directory).objects[0]).unwrap();
    }
}

/// The folder in which this process works as a victim, if [`kill_after`] started it.
fn victims_directory() -> Option<PathBuf> {
    std::env::var_os(DIRECTORY).map(PathBuf::from)
}

/// Starts a test as a victim, lets it work for some time, and kills it.
fn kill_after(test: &str, directory: &Path, time: Duration) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test])
        .env(DIRECTORY, directory)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(time);
    assert!(child.try_wait().unwrap().is_none(), "the victim ended by itself");
    child.kill().unwrap();
    child.wait().unwrap();
}

fn times() -> impl Iterator<Item = Duration> {
    (0..KILLS).map(|kill| Duration::from_micros(8_000 + kill * 7_919 % 40_000))
}

/// Checks an object: if it can be read, its bytes must be right. Returns whether it is whole.
fn is_whole(object: &Object) -> bool {
    if let Ok((bytes, _)) = get(object) {
        assert!(bytes == version(bytes[0]), "wrong bytes");
    }
    check(object).status == State::Intact
}

#[test]
fn encoding_over_an_old_set() {
    if let Some(directory) = victims_directory() {
        return encode_without_end(&directory);
    }
    let directory = tempfile::tempdir().unwrap();
    encode(&job(directory.path()), &version(4)[..], &|_| {}).unwrap();
    for time in times() {
        kill_after("encoding_over_an_old_set", directory.path(), time);
        let inventory = look(directory.path());
        assert!(inventory.objects.iter().any(is_whole), "{:?}", files(directory.path()).keys());
        let temporary = |path: &&PathBuf| path.extension().is_some_and(|e| e == "tmp");
        let kept = files(directory.path());
        kept.keys().filter(temporary).for_each(|path| fs::remove_file(path).unwrap());
    }
    // A run that is not killed removes the shards that were set aside.
    encode(&job(directory.path()), &version(3)[..], &|_| {}).unwrap();
    assert_eq!(files(directory.path()).len(), 6);
    assert!(is_whole(&common::only(directory.path())));
}

#[test]
fn repairing() {
    if let Some(directory) = victims_directory() {
        return repair_without_end(&directory);
    }
    let directory = tempfile::tempdir().unwrap();
    let shards = encode(&job(directory.path()), &version(2)[..], &|_| {}).unwrap().shards;
    let whole = files(directory.path());
    for time in times() {
        kill_after("repairing", directory.path(), time);
        let after = files(directory.path());
        let differ = |path: &&PathBuf| after.get(*path) != whole.get(*path);
        assert!(shards.iter().filter(differ).count() <= 1);
        assert!(look(directory.path()).objects.iter().all(|object| get(object).is_ok()));
        restore(directory.path(), &whole);
    }
    edit(&shards[0], |bytes| bytes[70_000] ^= 1);
    mend(&common::only(directory.path())).unwrap();
    assert!(files(directory.path()) == whole);
}
