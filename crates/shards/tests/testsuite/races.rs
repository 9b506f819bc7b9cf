//! Two processes at the same time: each ends with the requested result, or reports that another
//! process is at work. Nothing is lost, and nothing is left behind. The second process runs as a
//! whole while the first is in the middle of its work: as it reports progress, or as its source is
//! read.

use crate::common;
use std::fs;
use std::io::{self, Read};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Once;

use crate::common::{
    check, code, content, edit, files, get, kind, look, mend, only, put, small_job,
};
use paritas_shards::{
    EncodeJob, EncodeReport, ErrorKind, ObjectId, PromoteJob, PromoteReport, RepairJob,
    RepairReport, Result, State, encode, promote, repair, verify,
};

/// Repairs, and does something else when the first bytes are verified or, if `late` is set, when
/// the first are written.
fn repair_and(directory: &Path, late: bool, other: impl Fn() + Sync) -> Result<RepairReport> {
    let object = &look(directory).objects[0];
    let job = RepairJob::default().sync(false).threads(NonZeroUsize::new(1));
    let (once, length) = (Once::new(), object.length().unwrap());
    let done = std::sync::atomic::AtomicU64::new(0);
    repair(object, &job, &|bytes| {
        let before = done.fetch_add(bytes, std::sync::atomic::Ordering::Relaxed);
        if !late || before >= length {
            once.call_once(&other);
        }
    })
}

fn lift(directory: &Path, other: impl Fn() + Sync) -> Result<PromoteReport> {
    let (job, once) =
        (PromoteJob::default().sync(false).threads(NonZeroUsize::new(1)), Once::new());
    promote(&look(directory).objects[0], &job, &|_| once.call_once(&other))
}

/// A source that runs an action before it gives its first byte.
struct Source<'a, F: FnOnce()>(Option<F>, &'a [u8]);

impl<F: FnOnce()> Read for Source<'_, F> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        if let Some(other) = self.0.take() {
            other();
        }
        self.1.read(target)
    }
}

fn encode_and(job: &EncodeJob, bytes: &[u8], other: impl FnOnce() + Send) -> Result<EncodeReport> {
    encode(job, Source(Some(other), bytes), &|_| {})
}

fn other_job(directory: &Path, spec: &str) -> EncodeJob {
    small_job(spec, directory).object(ObjectId::new([7; 16])).force(true)
}

/// An object with one shard missing, one damaged, and one overwritten.
fn harmed() -> (tempfile::TempDir, Vec<PathBuf>, std::collections::BTreeMap<PathBuf, Vec<u8>>) {
    let directory = tempfile::tempdir().unwrap();
    let shards = put(&small_job("4+3", directory.path()), &content(3000)).shards;
    let whole = files(directory.path());
    fs::remove_file(&shards[1]).unwrap();
    edit(&shards[4], |bytes| bytes[300] ^= 1);
    fs::write(&shards[6], "somebody's own").unwrap();
    (directory, shards, whole)
}

#[test]
fn two_repairs() {
    for late in [false, true] {
        let (directory, shards, whole) = harmed();
        let other = || assert_eq!(mend(&only(directory.path())).unwrap().repaired.len(), 3);
        let report = repair_and(directory.path(), late, other).unwrap();
        // The damaged shard was whole again before it was read.
        assert!((2..=3).contains(&report.repaired.len()), "{report:?}");
        assert_eq!(report.moved_aside, []);
        let mut left = files(directory.path());
        let aside: Vec<_> = left.extract_if(.., |path, _| !shards.contains(path)).collect();
        assert!(left == whole);
        assert_eq!(aside.len(), 1, "{:?}", aside.iter().map(|(path, _)| path).collect::<Vec<_>>());
        assert_eq!(aside[0].1, b"somebody's own");
    }
}

/// While an object is repaired, another of the same name takes its place, with shards of the same
/// names or of others.
#[test]
fn repair_while_another_object_takes_the_place() {
    for (spec, late) in [("4+3", false), ("4+3", true), ("2+1", false), ("2+1", true)] {
        let (directory, shards, _) = harmed();
        fs::remove_file(&shards[6]).unwrap();
        let other = || drop(put(&other_job(directory.path(), spec), b"new"));
        let error = repair_and(directory.path(), late, other).unwrap_err();
        let is_told = error.to_string().contains("another process");
        assert!(is_told && [ErrorKind::Busy, ErrorKind::Io].contains(&error.kind()), "{error}");
        let object = only(directory.path());
        assert_eq!(
            (check(&object).status, get(&object).unwrap().0),
            (State::Intact, b"new".into())
        );
        assert_eq!(files(directory.path()).len(), code(spec).node_count());
    }
}

/// A shard that vanishes because it is replaced while verify runs does not count as lost.
#[test]
fn verify_while_another_object_takes_the_place() {
    let directory = tempfile::tempdir().unwrap();
    put(&small_job("4+2", directory.path()), &content(3000));
    let object = only(directory.path());
    put(&other_job(directory.path(), "4+2"), b"new");
    let report = verify(&object, NonZeroUsize::new(1), &|_| {}).unwrap();
    assert_eq!((report.status, report.lost.len()), (State::Unknown, 0));
    assert!(report.reason.unwrap().contains("another process"));
    assert_eq!(kind(get(&object)), ErrorKind::Busy);
}

#[test]
fn two_encodings_over_an_old_set() {
    for (outer, inner) in [("4+2", "4+2"), ("4+2", "2+1"), ("2+1", "4+2")] {
        let directory = tempfile::tempdir().unwrap();
        put(&small_job("4+2", directory.path()), b"old");
        let job = small_job(outer, directory.path()).force(true);
        let other = || drop(put(&other_job(directory.path(), inner), b"other"));
        encode_and(&job, b"last", other).unwrap();
        // The result is the same as if one process had begun after the other.
        assert_eq!(get(&only(directory.path())).unwrap().0, b"last");
        assert_eq!(files(directory.path()).len(), code(outer).node_count());
    }
}

#[test]
fn two_encodings_of_one_name() {
    for inner in ["4+2", "2+1"] {
        let directory = tempfile::tempdir().unwrap();
        let job = small_job("4+2", directory.path());
        let other = || drop(put(&other_job(directory.path(), inner), b"first"));
        let error = encode_and(&job, b"second", other).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy);
        assert!(error.to_string().contains("another process"), "{error}");
        assert_eq!(get(&only(directory.path())).unwrap().0, b"first");
        assert_eq!(files(directory.path()).len(), code(inner).node_count());
    }
}

const STAGED: &str = "bbdpg:k=4,m=2,m2=3,interleave=all";

#[test]
fn promotions_and_repairs() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    put(&small_job(STAGED, path), &content(3000));
    let first = files(path);
    lift(path, || {}).unwrap();
    let whole = files(path);
    let start = |lost: &str| {
        common::restore(path, &first);
        fs::remove_file(path.join(lost)).unwrap();
    };
    // Two promotions.
    common::restore(path, &first);
    lift(path, || assert_eq!(lift(path, || {}).unwrap().stage, 2)).unwrap();
    assert!(files(path) == whole);
    // Each runs in the middle of the other.
    start("object.2of7.paritas");
    lift(path, || drop(mend(&only(path)).unwrap())).unwrap();
    assert!(files(path) == whole);
    start("object.2of7.paritas");
    repair_and(path, true, || drop(lift(path, || {}).unwrap())).unwrap();
    assert!(files(path) == whole);
}

/// A file that has the name of a shard, but is not a shard of an object of that name, is never
/// replaced or removed.
#[test]
fn force_replaces_shards_only() {
    let directory = tempfile::tempdir().unwrap();
    let mut job = small_job("2+1", directory.path()).force(true);
    let own = directory.path().join("object.4of9.paritas");
    fs::write(&own, "somebody's own").unwrap();
    // A shard of another object, under a matching name.
    let elsewhere = tempfile::tempdir().unwrap();
    let mut other = small_job("2+1", elsewhere.path());
    other.name = "other".into();
    let foreign = directory.path().join("object.5of9.paritas");
    fs::copy(&put(&other, b"other").shards[0], &foreign).unwrap();
    let kept = files(directory.path());
    for bytes in [b"one", b"two"] {
        encode(&job, &bytes[..], &|_| {}).unwrap();
        assert_eq!(files(directory.path()).len(), 5);
    }
    assert!(kept.iter().all(|(path, bytes)| fs::read(path).unwrap() == *bytes));
    // If it has the name of a new shard, the encoding is refused before anything is read.
    let taken = directory.path().join("object.0of6.paritas");
    fs::copy(&own, &taken).unwrap();
    let before = files(directory.path());
    job.code = code("4+2");
    let error = encode_and(&job, b"three", || panic!("it is read")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Exists);
    assert!(error.to_string().contains("object.0of6.paritas exists"), "{error}");
    assert!(files(directory.path()) == before);
}

/// A file that repair moved aside is recognised by its name and content, and only such a file is
/// removed.
#[test]
fn what_was_moved_aside_can_be_removed() {
    let (directory, shards, whole) = harmed();
    let report = mend(&only(directory.path())).unwrap();
    let [moved] = &report.moved_aside[..] else { panic!("{report:?}") };
    assert_eq!((&moved.from, fs::read(&moved.to).unwrap()), (&shards[6], b"somebody's own".into()));
    let object = only(directory.path());
    assert_eq!((object.moved_aside()[0].bytes, &object.moved_aside()[0].path), (14, &moved.to));
    assert_eq!(check(&object).status, State::Intact);

    // Moving the same file aside again adds no file.
    fs::write(&shards[6], "somebody's own").unwrap();
    assert_eq!(mend(&only(directory.path())).unwrap().moved_aside, report.moved_aside);
    // A file that was changed, or that has another object in its name, is somebody's own.
    let changed = moved.to.with_file_name("object.1of7.paritas.damaged-30313233-0123456789abcdef");
    fs::write(&changed, "changed").unwrap();
    let foreign = moved.to.with_file_name("object.1of7.paritas.damaged-ffffffff-0123456789abcdef");
    fs::write(&foreign, "foreign").unwrap();
    let object = only(directory.path());
    assert_eq!(object.moved_aside().len(), 2, "{:?}", object.moved_aside());
    let removed = object.remove_moved_aside().unwrap();
    assert_eq!(removed.iter().map(|left| &left.path).collect::<Vec<_>>(), [&moved.to]);
    assert!(!moved.to.exists() && changed.exists() && foreign.exists());
    assert!(whole.iter().all(|(path, bytes)| fs::read(path).unwrap() == *bytes));
    assert_eq!(files(directory.path()).len(), whole.len() + 2);
}
