//! An encoded object comes back from any sufficient set of shards.

use crate::common;
use std::cell::RefCell;
use std::fs;
use std::io::{self, Read};
use std::num::NonZeroUsize;
use std::thread;

use crate::common::{
    check, code, content, get, get_file, kind, look, only, put, segment_bytes, small_job,
};
use paritas::erasure::combinations;
use paritas::{CodecOptions, Kernel, KernelChoice};
use paritas_shards::{
    DecodeTarget, DigestCheck, EncodeJob, ErrorKind, RepairJob, State, decode, encode, repair,
    scan, scan_with, verify,
};

const SPECS: [&str; 11] = [
    "4+2",
    "1+1",
    "rdp:k=4",
    "evenodd:k=3",
    "cauchy:k=10,m=4,w=4",
    "cauchy-good:k=3,m=2",
    "liberation:k=4",
    "star:k=3",
    "qfs:k=2",
    "xcode:n=3",
    "xcode:n=5",
];

fn lengths(spec: &str) -> Vec<usize> {
    let segment = segment_bytes(spec);
    vec![0, 1, 7, 8, 63, 64, 65, segment - 1, segment, segment + 1, 3 * segment + 5, 9 * segment]
}

#[test]
fn every_length_comes_back() {
    for spec in SPECS {
        for length in lengths(spec) {
            let directory = tempfile::tempdir().unwrap();
            let report = put(&small_job(spec, directory.path()), &content(length));
            assert_eq!(report.length, length as u64);
            assert_eq!(report.digest.as_bytes(), blake3::hash(&content(length)).as_bytes());
            let object = only(directory.path());
            assert_eq!(object.length(), Some(length as u64), "{spec} {length}");
            assert_eq!(get(&object).unwrap().0, content(length), "{spec} {length}");
            let stored: u64 = report.shards.iter().map(|s| fs::metadata(s).unwrap().len()).sum();
            assert_eq!((report.stored, object.stored_bytes()), (stored, stored));
            let verified = check(&object);
            assert_eq!(verified.status, State::Intact, "{spec} {length} {verified:?}");
            assert_eq!(verified.digest, DigestCheck::Right);
            assert_eq!(verified.tolerable, code(spec).tolerance());
        }
    }
}

/// An object that does not fill a stripe is stored in shorter packets, and comes back like any
/// other.
#[test]
fn short_objects_take_short_packets() {
    let words = ["backblaze:k=3,m=2", "raid6:k=3,w=16", "dpg:k=3,m=1,m2=2", "100+2"];
    for spec in SPECS.into_iter().chain(words) {
        let code = code(spec);
        let cells = code.data_cells().len();
        for length in [1, cells / 2 + 1, cells + 1, 63 * cells, 64 * cells, 64 * cells + 1] {
            let directory = tempfile::tempdir().unwrap();
            let mut job = EncodeJob::new(code.clone(), spec, vec![directory.path().to_owned()]);
            (job.length_hint, job.sync) = (Some(length as u64), false);
            let expected = job.prepare().unwrap().expectation().unwrap();
            let report = put(&job, &content(length));
            assert_eq!((expected.length, expected.stored), (length as u64, report.stored));
            report.shards[..code.tolerance_at(1)].iter().for_each(|s| fs::remove_file(s).unwrap());
            let object = only(directory.path());
            assert_eq!(object.packet(), length.div_ceil(cells).min(64), "{spec} {length}");
            assert_eq!(get(&object).unwrap().0, content(length), "{spec} {length}");
        }
    }
}

#[test]
fn default_blocks_come_back() {
    let directory = tempfile::tempdir().unwrap();
    let bytes = content(3_000_007);
    for (spec, threads) in
        [("4+2", 1), ("5+2", 5), ("rdp:k=6", 3), ("cauchy:k=2,m=1,w=3", 0), ("xcode:n=7", 3)]
    {
        let mut job = EncodeJob::new(code(spec), spec, vec![directory.path().to_owned()]);
        job.threads = NonZeroUsize::new(threads);
        let report = put(&job, &bytes);
        report.shards[..code(spec).tolerance()].iter().for_each(|s| fs::remove_file(s).unwrap());
        let inventory = look(directory.path());
        let object = inventory.choose(Some(spec.as_ref())).unwrap();
        assert_eq!(get(object).unwrap().0, bytes);
        assert_eq!(check(object).tolerable, 0);
    }
}

/// Returns a kernel that no processor of this architecture has.
fn impossible() -> CodecOptions {
    let foreign = if cfg!(target_arch = "x86_64") { Kernel::Neon } else { Kernel::Sse2 };
    CodecOptions::default().kernel(KernelChoice::Only(foreign))
}

/// Codes run with the caller's options, both when encoding and when reading shards, and store the
/// same bytes.
#[test]
fn codes_run_as_asked() {
    let directory = tempfile::tempdir().unwrap();
    let paths = [directory.path().to_owned()];
    let job = small_job("4+2", directory.path());
    let kernel = KernelChoice::Only(Kernel::Scalar);
    let scalar = CodecOptions::default().kernel(kernel);
    let refused = encode(&job.clone().options(impossible()), &content(1000)[..], &|_| {});
    assert_eq!(kind(refused), ErrorKind::Internal);
    let shards = |options| {
        let report = put(&job.clone().options(options).force(true), &content(1000));
        report.shards.iter().map(|path| fs::read(path).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(shards(scalar.clone()), shards(CodecOptions::default()));

    let asked = RefCell::new(Vec::new());
    let inventory = scan_with(&paths, |spec| {
        asked.borrow_mut().push(spec.to_string());
        scalar.clone()
    });
    assert_eq!(asked.into_inner(), ["cauchy:k=4,m=2,w=3"]);
    assert_eq!(get(&inventory.objects[0]).unwrap().0, content(1000));
    assert!(scan_with(&paths, |_| impossible()).objects.is_empty());
}

#[test]
fn any_losses_within_the_tolerance() {
    for spec in ["4+2", "rdp:k=4", "evenodd:k=3", "star:k=3", "xcode:n=5"] {
        let directory = tempfile::tempdir().unwrap();
        let bytes = content(3 * segment_bytes(spec) + 5);
        let report = put(&small_job(spec, directory.path()), &bytes);
        let nodes = code(spec).node_count();
        let tolerance = code(spec).tolerance();
        for count in 1..=tolerance + 1 {
            for lost in combinations(nodes, count) {
                let kept = (0..nodes).filter(|shard| !lost.contains(shard));
                let kept: Vec<_> = kept.map(|shard| report.shards[shard].clone()).collect();
                let inventory = scan(&kept);
                let object = &inventory.objects[0];
                assert_eq!(object.missing(), lost);
                let verified = check(object);
                if count <= tolerance {
                    let (back, report) = get(object).unwrap();
                    assert_eq!(back, bytes, "{spec} without {lost:?}");
                    assert_eq!(report.missing, lost);
                    assert_eq!(verified.status, State::Repairable);
                    assert_eq!(verified.tolerable, tolerance - count);
                } else {
                    assert_eq!(kind(get(object)), ErrorKind::TooFewShards);
                    assert_eq!(verified.status, State::Lost);
                    assert_eq!(
                        verified.lost,
                        std::iter::once(0..bytes.len() as u64).collect::<Vec<_>>()
                    );
                }
            }
        }
    }
}

/// A source that gives one byte, then two, then three, like some pipes.
struct Dribble<'a>(&'a [u8], usize);

impl Read for Dribble<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.1 = self.1 % 97 + 1;
        let count = self.1.min(buffer.len()).min(self.0.len());
        buffer[..count].copy_from_slice(&self.0[..count]);
        self.0 = &self.0[count..];
        Ok(count)
    }
}

#[test]
fn pipes_make_the_same_shards() {
    let directories = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let bytes = content(12_345);
    put(&small_job("4+2", directories[0].path()), &bytes);
    let job = small_job("4+2", directories[1].path());
    encode(&job, Dribble(&bytes, 0), &|_| {}).unwrap();
    let [one, other] =
        directories.map(|d| common::files(d.path()).into_values().collect::<Vec<_>>());
    assert_eq!(one, other);
}

#[test]
fn a_source_that_fails_leaves_nothing() {
    struct Fails(usize);
    impl Read for Fails {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(1).ok_or(io::ErrorKind::ConnectionReset)?;
            Ok(buffer.len())
        }
    }
    let directory = tempfile::tempdir().unwrap();
    let error = encode(&small_job("4+2", directory.path()), Fails(50), &|_| {}).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.to_string().contains("after 1152 bytes"), "{error}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn refused_writes_are_errors() {
    // A directory in which no file can be created, and a device that is always full.
    let job = small_job("4+2", "/proc/self".as_ref());
    assert_eq!(kind(encode(&job, &b"x"[..], &|_| {})), ErrorKind::Io);
    let directory = tempfile::tempdir().unwrap();
    put(&small_job("4+2", directory.path()), &content(1000));
    let object = only(directory.path());
    let error = get_file(&object, "/dev/full".as_ref(), false).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    get_file(&object, "/dev/null".as_ref(), false).unwrap();
}

/// With one thread, all work is done by the caller. `progress` tells who works.
#[test]
fn one_thread_is_the_callers() {
    let (directory, caller) = (tempfile::tempdir().unwrap(), thread::current().id());
    let note = |_| assert_eq!(thread::current().id(), caller);
    let one = NonZeroUsize::new(1);
    let job = small_job("4+2", directory.path()).threads(one);
    let report = encode(&job, &content(9999)[..], &note).unwrap();
    verify(&only(directory.path()), one, &note).unwrap();
    fs::remove_file(&report.shards[1]).unwrap();
    let object = only(directory.path());
    decode(&object, DecodeTarget::Writer(Box::new(io::sink())), one, &note).unwrap();
    for fewest_reads in [true, false] {
        let job = RepairJob::default().sync(false).threads(one).fewest_reads(fewest_reads);
        assert_eq!(repair(&only(directory.path()), &job, &note).unwrap().repaired.len(), 1);
        fs::remove_file(&report.shards[1]).unwrap();
    }
}

#[test]
fn progress_adds_up() {
    use std::sync::atomic::{AtomicU64, Ordering};
    let directory = tempfile::tempdir().unwrap();
    let job = small_job("4+2", directory.path());
    let done = AtomicU64::new(0);
    let note = |bytes| _ = done.fetch_add(bytes, Ordering::Relaxed);
    let taken = || done.swap(0, Ordering::Relaxed);
    encode(&job, &content(9999)[..], &note).unwrap();
    assert_eq!(taken(), 9999);
    let object = only(directory.path());
    verify(&object, NonZeroUsize::new(3), &note).unwrap();
    assert_eq!(taken(), 9999);
    fs::remove_file(object.parts()[1][0].path()).unwrap();
    let object = only(directory.path());
    let target = DecodeTarget::Writer(Box::new(io::sink()));
    decode(&object, target, None, &note).unwrap();
    assert_eq!(taken(), 9999);
    repair(&object, &RepairJob::default(), &note).unwrap();
    assert_eq!(taken(), 2 * 9999);
}

#[test]
fn wide_codes_come_back() {
    let directory = tempfile::tempdir().unwrap();
    // Plain parity, for which planning takes almost no time.
    let spec = "cauchy:k=300,m=1";
    let bytes = content(200_000);
    let report = put(&small_job(spec, directory.path()), &bytes);
    assert_eq!(report.shards.len(), 301);
    assert!(report.shards[7].ends_with("object.007of301.paritas"));
    fs::remove_file(&report.shards[26]).unwrap();
    let object = only(directory.path());
    assert_eq!(get(&object).unwrap().0, bytes);
    common::mend(&object).unwrap();
    assert_eq!(check(&only(directory.path())).status, State::Intact);
}

/// `32+32` has named two codes: `cauchy` before `backblaze`. A shard says which one it is of, so
/// the objects of both are readable, and are repaired with the code that they have.
#[test]
fn objects_keep_the_code_that_a_short_name_had() {
    for (spec, family) in [("cauchy:k=32,m=32", "cauchy"), ("32+32", "backblaze")] {
        let directory = tempfile::tempdir().unwrap();
        let bytes = content(50_000);
        let report = put(&small_job(spec, directory.path()), &bytes);
        report.shards.iter().step_by(2).for_each(|shard| fs::remove_file(shard).unwrap());
        let object = only(directory.path());
        assert_eq!(object.code().spec().family(), family);
        assert_eq!(get(&object).unwrap().0, bytes, "{spec}");
        common::mend(&object).unwrap();
        assert_eq!(check(&only(directory.path())).status, State::Intact, "{spec}");
    }
}
