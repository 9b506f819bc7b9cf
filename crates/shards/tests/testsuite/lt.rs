//! LT codes in files: an object of any variant is decoded from any sufficient set of blocks. If
//! there are too few blocks, the message tells how many are lacking.

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use crate::common::{
    check, code, content, edit, files, footer_start, forge, front_length, get, kind, look, mend,
    only, put, restore, small_job,
};
use paritas_shards::{
    DigestCheck, EncodeJob, ErrorKind, RepairJob, State, VerifyReport, encode, repair,
};

/// All variants, alone and combined, and the smallest codes.
const SPECS: [&str; 13] = [
    "lt:k=20,n=40,nodes=5",
    "lt:k=20,n=40,nodes=5,variant=plain",
    "lt:k=20,n=50,nodes=7,c=0.3,variant=originals",
    "lt:k=20,n=50,nodes=7,variant=originals+singles",
    "lt:k=20,n=40,nodes=4,variant=coverage,coverage=4",
    "lt:k=20,n=40,nodes=4,variant=uniform",
    "lt:k=20,n=60,nodes=16,variant=decodable",
    "lt:k=20,n=60,nodes=5,variant=uniform+decodable,seed=7",
    "lt:k=20,n=60,nodes=5,variant=originals+singles+coverage+decodable",
    "lt:k=100,n=150,nodes=11,c=0.03",
    "lt:k=1,n=1",
    "lt:k=1,n=5,nodes=5",
    "lt:k=2,n=9,nodes=1",
];

fn data_blocks(spec: &str) -> usize {
    code(spec).data_cells().len()
}

/// A source of random numbers, the same in every run (Knuth's generator).
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) as usize % limit
    }
}

/// Returns the offset of a block in a shard's file, for small jobs: blocks of 8 bytes with their
/// checksums.
fn block_at(shard: &[u8], blocks: usize, segment: usize, block: usize) -> usize {
    front_length(shard) + (segment * blocks + block) * 16
}

/// Flips a bit of some blocks of a segment. `harmed` are their numbers.
fn harm(paths: &[PathBuf], spec: &str, segment: usize, harmed: impl Iterator<Item = usize>) {
    let (nodes, code) = (paths.len(), code(spec));
    for block in harmed {
        let shard = block % nodes;
        let blocks = code.node_cells(paritas::NodeId::new(shard)).len();
        edit(&paths[shard], |bytes| {
            let at = block_at(bytes, blocks, segment, block / nodes);
            bytes[at + 3] ^= 4;
        });
    }
}

#[test]
fn every_variant_and_length_comes_back() {
    for spec in SPECS {
        let segment = 8 * data_blocks(spec);
        for length in [0, 1, 7, 8, 65, segment - 1, segment, segment + 1, 3 * segment + 5] {
            let directory = tempfile::tempdir().unwrap();
            let report = put(&small_job(spec, directory.path()), &content(length));
            assert_eq!(report.length, length as u64);
            let object = only(directory.path());
            assert_eq!(get(&object).unwrap().0, content(length), "{spec} {length}");
            let verified = check(&object);
            assert_eq!(verified.status, State::Intact, "{spec} {length} {verified:?}");
            assert_eq!(verified.digest, DigestCheck::Right);
            let blocks = code(spec).graph().unwrap().blocks();
            assert_eq!(verified.good_blocks, (length > 0).then_some(blocks));
        }
    }
}

/// Loses the number of shards that verify reports as tolerable: the first shards, some in the
/// middle, and the last.
#[test]
fn tolerable_losses_are_tolerable() {
    for spec in SPECS {
        let directory = tempfile::tempdir().unwrap();
        let bytes = content(1000);
        let report = put(&small_job(spec, directory.path()), &bytes);
        let whole = files(directory.path());
        let (tolerable, shards) = (check(&only(directory.path())).tolerable, report.shards.len());
        for first in [0, shards / 3, shards - tolerable] {
            let lost = (first..first + tolerable).map(|shard| shard % shards);
            lost.for_each(|shard| fs::remove_file(&report.shards[shard]).unwrap());
            let object = only(directory.path());
            assert_eq!(get(&object).unwrap().0, bytes, "{spec}: {tolerable} lost from {first}");
            mend(&object).unwrap();
            assert!(files(directory.path()) == whole, "{spec}: another shard than was lost");
        }
    }
}

/// Damage to single blocks everywhere: no shard is whole, but every segment has enough blocks.
#[test]
fn any_blocks_that_are_enough() {
    let spec = "lt:k=40,n=80,nodes=8";
    let directory = tempfile::tempdir().unwrap();
    let bytes = content(5 * 320 - 9);
    let report = put(&small_job(spec, directory.path()), &bytes);
    let whole = files(directory.path());
    let mut draw = Draw(1);
    for segment in 0..5 {
        let mut left: Vec<usize> = (0..80).collect();
        let harmed: Vec<usize> =
            (0..22).map(|_| left.swap_remove(draw.below(left.len()))).collect();
        harm(&report.shards, spec, segment, harmed.into_iter());
    }
    let object = only(directory.path());
    let verified = check(&object);
    assert_eq!((verified.status, verified.good_blocks), (State::Repairable, Some(58)));
    assert_eq!((verified.damaged_segments, verified.likely_needed), (5, None));
    assert!(verified.shards.iter().all(|shard| shard.files[0].bad_lanes > 0), "{verified:?}");
    assert_eq!(get(&object).unwrap().0, bytes);
    mend(&object).unwrap();
    assert!(files(directory.path()) == whole);
}

/// If all data is among the good blocks, no other block is read. If one of these is damaged, others
/// replace it.
#[test]
fn originals_are_read_alone() {
    let spec = "lt:k=20,n=50,nodes=7,c=0.3,variant=originals";
    let directory = tempfile::tempdir().unwrap();
    let bytes = content(4 * 160);
    let report = put(&small_job(spec, directory.path()), &bytes);
    let whole = files(directory.path());
    (0..4).for_each(|segment| harm(&report.shards, spec, segment, 20..50));
    let (decoded, found) = get(&only(directory.path())).unwrap();
    assert!(decoded == bytes && found.damaged.is_empty(), "{found:?}");
    restore(directory.path(), &whole);
    harm(&report.shards, spec, 2, [3, 19].into_iter());
    let (decoded, found) = get(&only(directory.path())).unwrap();
    assert!(decoded == bytes && found.damaged.iter().any(|file| file.shard == 3), "{found:?}");
    fs::remove_file(&report.shards[6]).unwrap();
    let (decoded, found) = get(&only(directory.path())).unwrap();
    assert!(decoded == bytes && found.missing == [6], "{found:?}");
}

/// Blocks are lost one by one: decoding gives the right bytes until it reports how many blocks are
/// likely needed.
#[test]
fn too_few_blocks_say_how_many_more() {
    let spec = "lt:k=40,n=60,nodes=6";
    let directory = tempfile::tempdir().unwrap();
    let bytes = content(320 + 50);
    let report = put(&small_job(spec, directory.path()), &bytes);
    let whole = files(directory.path());
    let lost = |harmed: usize| -> VerifyReport {
        restore(directory.path(), &whole);
        harm(&report.shards, spec, 1, (0..60).rev().take(harmed));
        let object = only(directory.path());
        let verified = check(&object);
        match get(&object) {
            Ok((back, _)) => assert!(back == bytes && verified.status != State::Lost),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::TooFewShards);
                assert_eq!(kind(mend(&object)), ErrorKind::TooFewShards);
                assert_eq!(verified.lost, std::iter::once(320..370).collect::<Vec<_>>());
                let reason = verified.reason.clone().unwrap();
                assert_eq!(reason, error.to_string());
                let needed = verified.likely_needed.unwrap();
                let good = 60 - harmed;
                let part = format!("{good} of 60 blocks, and likely {needed} more are enough");
                assert!(reason.contains(&part), "{reason}");
                assert!(needed >= 40_usize.saturating_sub(good).max(1), "{needed} for {good}");
            }
        }
        verified
    };
    let reports: Vec<VerifyReport> = (0..40).map(lost).collect();
    let first = reports.iter().position(|report| report.status == State::Lost).unwrap();
    assert!((5..=20).contains(&first), "lost with {first} blocks gone");
    assert!(reports[first..].iter().all(|report| report.status == State::Lost));
}

/// Only chance decides whether six of eight shards are enough, if they have a few blocks more than
/// there are data blocks.
#[test]
fn losses_are_borne_or_told() {
    let spec = "lt:k=40,n=64,nodes=8";
    let directory = tempfile::tempdir().unwrap();
    let bytes = content(700);
    let report = put(&small_job(spec, directory.path()), &bytes);
    let whole = files(directory.path());
    let (mut borne, mut told) = (0, 0);
    for lost in paritas::erasure::combinations(8, 2) {
        restore(directory.path(), &whole);
        lost.iter().for_each(|&shard| fs::remove_file(&report.shards[shard]).unwrap());
        let object = only(directory.path());
        let status = check(&object).status;
        match get(&object) {
            Ok((back, _)) => {
                assert!(back == bytes && status == State::Repairable);
                borne += 1;
            }
            Err(error) => {
                assert_eq!((error.kind(), status), (ErrorKind::TooFewShards, State::Lost));
                told += 1;
            }
        }
    }
    assert!(borne + told == 28 && borne > 20, "{borne} of 28");
}

#[test]
fn a_missing_shard_from_the_fewest_blocks() {
    let spec = "lt:k=40,n=80,nodes=8,variant=uniform";
    let directory = tempfile::tempdir().unwrap();
    let report = put(&small_job(spec, directory.path()), &content(3000));
    let whole = files(directory.path());
    fs::remove_file(&report.shards[5]).unwrap();
    let job = RepairJob::default().sync(false).threads(NonZeroUsize::new(2)).fewest_reads(true);
    let repaired = repair(&only(directory.path()), &job, &|_| {}).unwrap();
    assert!(files(directory.path()) == whole);
    let stored: u64 = whole.values().map(|bytes| bytes.len() as u64).sum();
    assert!(repaired.before.is_none() && repaired.read_bytes < stored * 3 / 4, "{repaired:?}");
}

/// Repair from the fewest blocks ends as plain repair does, even where the other blocks may be too
/// few.
#[test]
fn fewest_reads_give_what_plain_repair_gives() {
    let mut ends = [0; 2];
    for blocks in [66, 72, 80, 112] {
        let is_repaired = [false, true].map(|fewest| {
            let directory = tempfile::tempdir().unwrap();
            let spec = format!("lt:k=64,n={blocks},nodes=8");
            let report = put(&small_job(&spec, directory.path()), &content(5000));
            let whole = files(directory.path());
            fs::remove_file(&report.shards[0]).unwrap();
            let job = RepairJob::default().sync(false).fewest_reads(fewest);
            match repair(&only(directory.path()), &job, &|_| {}) {
                Ok(_) => assert!(files(directory.path()) == whole),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::TooFewShards, "{error}");
                    return false;
                }
            }
            true
        });
        assert_eq!(is_repaired[0], is_repaired[1], "{blocks} blocks");
        ends[usize::from(is_repaired[0])] += 1;
    }
    assert!(ends[0] > 0 && ends[1] > 0, "{ends:?}");
}

#[test]
fn blocks_are_as_long_as_suits_the_object() {
    let stored = |spec: &str, length: usize, hint: bool| {
        let directory = tempfile::tempdir().unwrap();
        let bytes = content(length);
        let mut job = EncodeJob::new(code(spec), "object", vec![directory.path().to_owned()]);
        job.length_hint = hint.then_some(length as u64);
        job.sync = false;
        let report = put(&job, &bytes);
        let object = only(directory.path());
        assert_eq!(get(&object).unwrap().0, bytes, "{spec} {length}");
        (report.stored as usize, object.packet(), object.stripes(), object.segment_bytes() as usize)
    };
    // Each block has one byte and its checksum.
    let (bytes, packet, stripes, _) = stored("lt:k=64,n=128", 10, true);
    assert_eq!((packet, stripes), (1, 1));
    assert!(bytes < 128 * 9 + 16 * 1000, "{bytes}");
    // Segments of equal length take half as much again as the object, and checksums.
    for (length, segments) in [(3_000_000, 1), (17_000_000, 6)] {
        let (bytes, packet, stripes, segment) = stored("lt:k=1024,n=1536", length, true);
        assert_eq!((packet, length.div_ceil(segment)), (64, segments), "{stripes} stripes");
        let ideal = length * 3 / 2;
        assert!((ideal..ideal * 51 / 50 + 100_000).contains(&bytes), "{bytes} for {ideal}");
    }
    let (bytes, _, _, segment) = stored("lt:k=1024,n=1536", 3_000_000, false);
    assert!(segment > 2_000_000 && bytes < 5_100_000, "{segment} {bytes}");
    let (_, _, _, segment) = stored("lt:k=4096,n=6000", 1_000_000, true);
    assert!(segment >= 1_000_000);
}

#[test]
fn graphs_of_no_use_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let job = small_job("lt:k=64,n=64,c=100", directory.path());
    let error = encode(&job, &b"x"[..], &|_| {}).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Parameters);
    assert!(error.to_string().contains("even all blocks together"), "{error}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    let covered = "lt:k=65536,n=70000,variant=coverage,coverage=69000";
    let error = paritas::Code::new(&covered.parse().unwrap()).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("are more than the 16777216 of a stored code"), "{error}");
}

/// Replaces a text in all records of all shards by another of the same length.
fn forge_all(directory: &Path, from: &[u8], to: &[u8]) {
    assert_eq!(from.len(), to.len());
    for path in files(directory).into_keys() {
        edit(&path, |bytes| {
            for start in [0, footer_start(bytes)] {
                forge(bytes, start, |record| {
                    let at = record.windows(from.len()).position(|w| w == from).unwrap();
                    record[at..at + to.len()].copy_from_slice(to);
                });
            }
        });
    }
}

/// A header is refused if its description does not match its graph, or if its graph is beyond all
/// bounds.
#[test]
fn forged_graphs_are_not_read() {
    let spec = "lt:k=20,n=40,nodes=5";
    for (from, to, part) in [
        (&b",seed=0"[..], &b",seed=1"[..], "is pinned with"),
        (b"k=20,n=40", b"k=21,n=40", "a generator matrix that differs"),
        (b"k=20,n=40", b"k=99,n=99", "a generator matrix that differs"),
        (b"nodes=5", b"nodes=4", "states 5 shards"),
        (b"ripple", b"rapple", "has no `ripple`"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        put(&small_job(spec, directory.path()), &content(500));
        forge_all(directory.path(), from, to);
        let inventory = look(directory.path());
        assert!(inventory.objects.is_empty());
        assert!(inventory.ignored.iter().all(|i| i.reason.contains(part)), "{inventory:?}");
    }
}
