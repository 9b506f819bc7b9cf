//! Damage is found in its place, and costs no more than necessary.

use crate::common;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use crate::common::{
    check, content, edit, files, footer_start, forge, front_length, get, get_file, kind, look,
    mend, only, put, restore, segment_bytes, small_job,
};
use paritas_shards::{ErrorKind, Object, ObjectId, ShardState, State, VerifyReport, verify};

const SPECS: [&str; 4] = ["4+2", "rdp:k=4", "evenodd:k=3", "xcode:n=5"];

/// A small object in a directory of its own.
struct Case {
    directory: tempfile::TempDir,
    bytes: Vec<u8>,
    shards: Vec<PathBuf>,
    kept: BTreeMap<PathBuf, Vec<u8>>,
}

impl Case {
    fn new(spec: &str, segments: usize) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let bytes = content(segments * segment_bytes(spec) - 5);
        let shards = put(&small_job(spec, directory.path()), &bytes).shards;
        let kept = files(directory.path());
        Self { directory, bytes, shards, kept }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn object(&self) -> Object {
        only(self.path())
    }

    /// Expects the right bytes, and a repair that restores all shards.
    fn expect_recovery(&self, what: &str) -> VerifyReport {
        let object = self.object();
        let verified = check(&object);
        assert_eq!(verified.status, State::Repairable, "{what}: {verified:?}");
        assert_eq!(get(&object).unwrap().0, self.bytes, "{what}");
        mend(&object).unwrap();
        for (path, bytes) in &self.kept {
            assert!(fs::read(path).unwrap() == *bytes, "{what}: {} differs", path.display());
        }
        assert_eq!(check(&self.object()).status, State::Intact, "{what}");
        verified
    }
}

/// Returns the shards that a report calls bad.
fn bad(report: &VerifyReport) -> Vec<usize> {
    let bad = report.shards.iter().filter(|shard| shard.state != ShardState::Intact);
    bad.map(|shard| shard.index).collect()
}

#[test]
fn every_flipped_byte_is_located() {
    for spec in SPECS {
        let case = Case::new(spec, 3);
        for (number, path) in [case.shards.first(), case.shards.last()].into_iter().enumerate() {
            let (path, shard) = (path.unwrap(), [0, case.shards.len() - 1][number]);
            let whole = &case.kept[path];
            for at in 0..whole.len() {
                edit(path, |bytes| bytes[at] ^= 1 << (at % 8));
                let object = case.object();
                let what = format!("{spec}: shard {shard}, byte {at} of {}", whole.len());
                assert_eq!(get(&object).unwrap().0, case.bytes, "{what}");
                let report = check(&object);
                assert_eq!(report.status, State::Repairable, "{what}");
                assert_eq!(bad(&report), [shard], "{what}");
                let file = &report.shards[shard].files[0];
                assert_eq!(file.flaws.len(), 1, "{what}: {:?}", file.flaws);
                let payload = (front_length(whole)..footer_start(whole)).contains(&at);
                let near = |first: u64| first as usize <= at && at < first as usize + 100;
                assert_eq!(file.first_bad.is_some_and(near), payload, "{what}: {file:?}");
                assert_eq!(file.bad_lanes, u64::from(payload), "{what}: {file:?}");
                if at % 7 == 0 {
                    mend(&object).unwrap();
                }
                assert!(at % 7 != 0 || fs::read(path).unwrap() == *whole, "{what}");
                fs::write(path, whole).unwrap();
            }
        }
    }
}

/// A set of a later version is not lost. It stays as it is, also beside another object of its name.
#[test]
fn later_versions_are_left_alone() {
    let case = Case::new("4+2", 3);
    for path in &case.shards {
        edit(path, |bytes| {
            let footer = footer_start(bytes);
            forge(bytes, footer, |record| record[8] = 9);
            forge(bytes, 0, |record| record[8] = 9);
        });
    }
    let inventory = look(case.path());
    assert!(inventory.objects.is_empty() && inventory.wrecks().is_empty());
    assert_eq!(inventory.ignored.iter().filter(|ignored| ignored.unknown).count(), 6);
    let later = fs::read(&case.shards[0]).unwrap();

    let elsewhere = tempfile::tempdir().unwrap();
    let job = small_job("4+2", elsewhere.path()).object(ObjectId::new(*b"fedcba9876543210"));
    for (from, to) in put(&job, &case.bytes).shards.iter().zip(&case.shards).skip(1) {
        fs::copy(from, to).unwrap();
    }
    let mended = mend(&case.object()).unwrap();
    assert!(mended.moved_aside.is_empty(), "{mended:?}");
    assert!(mended.repaired[0].path.ends_with("object.0of6-2.paritas"), "{mended:?}");
    assert!(fs::read(&case.shards[0]).unwrap() == later);
}

/// Returns the number of bytes that this thread has read from files, where the system counts them.
fn read_by_this_thread() -> Option<u64> {
    let Ok(counts) = fs::read_to_string("/proc/thread-self/io") else {
        // The harness hides what macros print.
        let _ = writeln!(std::io::stderr(), "NOT RUN: bytes that are read cannot be counted here");
        return None;
    };
    counts.lines().find_map(|line| line.strip_prefix("rchar: "))?.parse().ok()
}

/// Each block of a lost object is read once, however many segments are lost.
#[test]
fn a_lost_object_is_read_once() {
    let case = Case::new("4+2", 500);
    for path in &case.shards[..3] {
        fs::write(path, &case.kept[path][..case.kept[path].len() / 2]).unwrap();
    }
    let object = case.object();
    let before = read_by_this_thread();
    let report = verify(&object, NonZeroUsize::new(1), &|_| {}).unwrap();
    assert_eq!((report.status, report.lost.len()), (State::Lost, 1));
    let Some((before, after)) = before.zip(read_by_this_thread()) else { return };
    let stored: usize = case.kept.values().map(Vec::len).sum();
    assert!(after - before < 3 * stored as u64, "{} of {stored} bytes", after - before);
}

#[test]
fn cut_files_lose_only_what_is_cut() {
    for spec in SPECS {
        let case = Case::new(spec, 4);
        let path = &case.shards[1];
        let whole = &case.kept[path];
        for length in (0..whole.len()).step_by(3) {
            fs::write(path, &whole[..length]).unwrap();
            let report = case.expect_recovery_unless_gone(1, &format!("{spec}: cut to {length}"));
            let state = report.shards[1].state;
            let readable = length >= front_length(whole);
            assert_eq!(state == ShardState::Damaged, readable, "{spec}: {length}");
        }
    }
}

impl Case {
    /// Expects the same as [`Case::expect_recovery`], although one shard may not even be
    /// recognised. Its file is then moved aside, since it is not known to be a copy.
    fn expect_recovery_unless_gone(&self, shard: usize, what: &str) -> VerifyReport {
        let object = self.object();
        if !object.parts()[shard].is_empty() {
            return self.expect_recovery(what);
        }
        let report = check(&object);
        assert_eq!(get(&object).unwrap().0, self.bytes, "{what}");
        let mended = mend(&object).unwrap();
        let path = &mended.repaired[0].path;
        assert_eq!(path, &self.shards[shard]);
        let [moved] = &mended.moved_aside[..] else { panic!("{what}: {mended:?}") };
        assert_eq!(
            (&moved.from, files(self.path()).len()),
            (path, self.shards.len() + 1),
            "{what}"
        );
        assert!(moved.to.to_string_lossy().contains(".paritas.damaged-30313233-"), "{moved:?}");
        assert_eq!(fs::read(path).unwrap(), self.kept[&self.shards[shard]], "{what}");
        assert_eq!(check(&self.object()).status, State::Intact);
        restore(self.path(), &self.kept);
        report
    }
}

#[test]
fn added_and_removed_bytes_cost_the_blocks_around_them() {
    for spec in SPECS {
        let case = Case::new(spec, 6);
        for path in [&case.shards[0], case.shards.last().unwrap()] {
            let whole = &case.kept[path];
            for at in (0..=whole.len()).step_by(5) {
                edit(path, |bytes| drop(bytes.splice(at..at, *b"inserted")));
                case.expect_recovery(&format!("{spec}: bytes inserted at {at}"));
                let end = (at + 6).min(whole.len());
                if at == end {
                    continue;
                }
                edit(path, |bytes| drop(bytes.drain(at..end)));
                case.expect_recovery(&format!("{spec}: bytes removed at {at}"));
            }
        }
    }
}

#[test]
fn inserted_bytes_leave_later_blocks_readable() {
    let case = Case::new("4+2", 8);
    for path in &case.shards {
        let (front, end) = (front_length(&case.kept[path]), footer_start(&case.kept[path]));
        let middle = (front + end) / 2 + 5;
        edit(path, |bytes| drop(bytes.splice(middle..middle, [7; 3])));
    }
    // Every shard lost the block in its middle, and only that.
    let report = check(&case.object());
    assert_eq!(report.status, State::Lost);
    let segment = segment_bytes("4+2") as u64;
    assert_eq!(report.lost, std::iter::once(4 * segment..5 * segment).collect::<Vec<_>>());
}

#[test]
fn every_shard_damaged_somewhere() {
    for spec in SPECS {
        let shards = common::code(spec).node_count();
        let case = Case::new(spec, shards);
        // Shard i loses the blocks i and i + 1: two of each segment.
        for (index, path) in case.shards.iter().enumerate() {
            let front = front_length(&case.kept[path]);
            let full = case.object().block_bytes(index) as usize;
            let last = footer_start(&case.kept[path]);
            edit(path, |bytes| {
                for block in [index, (index + 1) % shards] {
                    let start = front + block * full;
                    let end = (start + full).min(last);
                    bytes[start..end].iter_mut().for_each(|byte| *byte = !*byte);
                }
            });
        }
        let kept = files(case.path());
        let report = case.expect_recovery(spec);
        assert_eq!(bad(&report), (0..shards).collect::<Vec<_>>());
        assert_eq!((report.tolerable, report.damaged_segments), (0, shards as u64));

        // With one more bad block, in segment 3, that segment is lost.
        restore(case.path(), &kept);
        let object = case.object();
        let victim = (0..shards).find(|s| ![3, (3 + shards - 1) % shards].contains(s)).unwrap();
        let full = object.block_bytes(victim) as usize;
        edit(&case.shards[victim], |bytes| {
            let start = front_length(bytes) + 3 * full;
            bytes[start..start + full].fill(0);
        });
        let before = files(case.path());
        let object = case.object();
        let segment = segment_bytes(spec) as u64;
        let report = check(&object);
        assert_eq!(report.status, State::Lost);
        assert_eq!(report.lost, std::iter::once(3 * segment..4 * segment).collect::<Vec<_>>());
        let error = mend(&object).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooFewShards);
        assert!(error.to_string().contains("segment 3"), "{error}");
        let out = case.path().join("out");
        assert_eq!(kind(get_file(&object, &out, false)), ErrorKind::TooFewShards);
        assert_eq!(kind(get(&object)), ErrorKind::TooFewShards);
        assert!(before == files(case.path()), "{spec}: something was written");
    }
}

#[test]
fn good_lanes_of_bad_blocks_count() {
    // Four of five shards have a bad lane, and two shards may be lost: lanes decide.
    let case = Case::new("evenodd:k=3", 1);
    let lane = |bytes: &mut Vec<u8>, lane: usize| {
        let start = front_length(bytes) + lane * 16;
        bytes[start] ^= 1;
    };
    edit(&case.shards[0], |bytes| lane(bytes, 0));
    edit(&case.shards[1], |bytes| lane(bytes, 1));
    edit(&case.shards[3], |bytes| drop(bytes.drain(..20)));
    fs::remove_file(&case.shards[4]).unwrap();
    let report = case.expect_recovery("lanes");
    assert_eq!(report.tolerable, 0);
}

#[test]
fn a_footer_anywhere_is_enough() {
    let case = Case::new("4+2", 5);
    let cut = |path: &PathBuf| edit(path, |bytes| bytes.truncate(footer_start(bytes)));
    case.shards[1..].iter().for_each(cut);
    let report = case.expect_recovery("one footer left");
    assert_eq!(report.tolerable, 0);
    case.shards.iter().for_each(cut);
    let object = case.object();
    assert_eq!(object.length(), None);
    let error = get(&object).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooFewShards);
    assert!(error.to_string().contains("footer"), "{error}");
    let report = check(&object);
    assert_eq!(report.status, State::Lost);
    assert!(report.reason.is_some() && bad(&report).len() == 6);
    assert_eq!(kind(mend(&object)), ErrorKind::TooFewShards);
}

#[test]
fn fronts_all_gone() {
    let case = Case::new("rdp:k=4", 5);
    for path in &case.shards {
        edit(path, |bytes| {
            let front = front_length(bytes);
            bytes[..front].fill(0);
        });
    }
    case.expect_recovery("fronts overwritten");
    for path in &case.shards {
        edit(path, |bytes| drop(bytes.drain(..17)));
    }
    case.expect_recovery("fronts cut off");
}

#[test]
fn a_footer_is_searched_in_a_file_that_goes_on() {
    let case = Case::new("4+2", 5);
    for (index, path) in case.shards.iter().enumerate() {
        edit(path, |bytes| bytes.resize(bytes.len() + 1 + index * 700_000, b'\x1a'));
    }
    let report = case.expect_recovery("extended");
    assert!(
        report.shards[2].files[0].flaws[0].contains("1400001 bytes after the footer"),
        "{report:?}"
    );
    // Without the front header, the name of the file vouches for a footer in the middle of it.
    edit(&case.shards[3], |bytes| {
        bytes[3] = 0;
        bytes.extend([1, 2, 3]);
    });
    case.expect_recovery("extended, without front");
}

#[test]
fn a_shard_of_a_shard_is_not_mistaken() {
    // An object that is itself a shard file has footers of another object in its blocks.
    let inner = Case::new("4+2", 3);
    let bytes = fs::read(&inner.shards[0]).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let mut job = small_job("4+2", directory.path());
    job.name = "outer".into();
    job.block_bytes = 4096;
    let shards = put(&job, &bytes).shards;
    edit(&shards[0], |bytes| bytes.truncate(footer_start(bytes)));
    edit(&shards[1], |bytes| {
        bytes.truncate(footer_start(bytes));
        bytes[0] = 0;
    });
    let object = only(directory.path());
    assert_eq!(object.name(), "outer");
    assert_eq!(object.missing(), [1]);
    assert_eq!(get(&object).unwrap().0, bytes);
}

#[test]
fn unreadable_files_are_erasures() {
    let case = Case::new("4+2", 5);
    let object = case.object();
    // Between the scan and the reading, one file vanished and another became a directory, which can
    // be opened but not read.
    fs::remove_file(&case.shards[0]).unwrap();
    fs::remove_file(&case.shards[4]).unwrap();
    fs::create_dir(&case.shards[4]).unwrap();
    let (bytes, report) = get(&object).unwrap();
    assert_eq!(bytes, case.bytes);
    assert!(report.damaged[0].flaws[0].contains("cannot be opened"), "{report:?}");
    let report = check(&object);
    assert_eq!(bad(&report), [0, 4]);
    // A file that was there a moment ago was removed by somebody, and may be on its way elsewhere.
    assert_eq!((report.status, report.tolerable), (State::Unknown, 0));
    assert!(report.reason.as_ref().unwrap().contains("another process"), "{report:?}");
    assert!(report.shards[4].files[0].flaws[0].contains("cannot be read"), "{report:?}");

    // Parity is not read if all data is there.
    restore(case.path(), &BTreeMap::new());
    fs::remove_dir(&case.shards[4]).unwrap();
    restore(case.path(), &case.kept);
    let object = case.object();
    case.shards[4..].iter().for_each(|path| fs::write(path, "overwritten").unwrap());
    assert!(get(&object).unwrap().1.damaged.is_empty());

    #[cfg(target_os = "linux")]
    {
        let link = case.path().join("link.paritas");
        std::os::unix::fs::symlink("/proc/self/mem", &link).unwrap();
        let inventory = look(case.path());
        let ignored = inventory.ignored.iter().find(|ignored| ignored.path == link).unwrap();
        assert!(ignored.reason.contains("cannot be read"), "{ignored:?}");
    }
}

#[test]
fn footers_that_disagree_are_outvoted() {
    let case = Case::new("4+2", 2);
    let digest = *blake3::hash(&case.bytes).as_bytes();
    let forge = |path: &PathBuf| {
        edit(path, |bytes| {
            let start = footer_start(bytes);
            forge(bytes, start, |record| {
                let at = record.windows(32).position(|window| window == digest).unwrap();
                record[at] ^= 1;
            });
        });
    };
    case.shards[..2].iter().for_each(forge);
    let report = case.expect_recovery("two footers forged");
    assert_eq!(bad(&report), [0, 1]);
    assert!(report.shards[0].files[0].flaws[0].contains("a length or digest that differs"));

    // If all footers agree on a digest that the bytes do not have, nothing is delivered as right.
    case.shards.iter().for_each(forge);
    let before = files(case.path());
    let object = case.object();
    let report = check(&object);
    assert_eq!((report.status, report.digest), (State::Lost, paritas_shards::DigestCheck::Wrong));
    assert_eq!(kind(get(&object)), ErrorKind::DigestMismatch);
    assert_eq!(kind(get_file(&object, &case.path().join("out"), false)), ErrorKind::DigestMismatch);
    fs::remove_file(&case.shards[2]).unwrap();
    assert_eq!(kind(mend(&case.object())), ErrorKind::DigestMismatch);
    restore(case.path(), &before);
    assert_eq!(kind(mend(&object)), ErrorKind::DigestMismatch);
    assert!(before == files(case.path()));
}

#[test]
fn monstrous_lengths_take_no_time() {
    let case = Case::new("4+2", 3);
    let length = case.bytes.len() as u16;
    for (path, value) in case.shards.iter().zip([i64::MAX as u64; 6]) {
        edit(path, |bytes| {
            let start = footer_start(bytes);
            let needle = [&[0xA2, 0x00, 0x19][..], &length.to_be_bytes()].concat();
            let at = bytes[start..].windows(5).position(|w| w == needle).unwrap() + start;
            bytes.splice(at + 2..at + 5, [&[0x1B][..], &value.to_be_bytes()].concat());
            let body = u32::from_le_bytes(bytes[start + 12..start + 16].try_into().unwrap()) + 6;
            bytes[start + 12..start + 16].copy_from_slice(&body.to_le_bytes());
            let trailer = bytes.len() - 16;
            bytes[trailer..trailer + 4].copy_from_slice(&(body + 24).to_le_bytes());
            forge(bytes, start, |_| {});
        });
    }
    let object = case.object();
    assert_eq!(object.length(), Some(i64::MAX as u64));
    assert_eq!(check(&object).status, State::Lost);
    assert_eq!(kind(get(&object)), ErrorKind::TooFewShards);
}

/// A file may state that it has terabytes, and have only a hole there.
#[cfg(target_os = "linux")]
#[test]
fn holes_are_not_searched() {
    let case = Case::new("4+2", 3);
    let object = case.object();
    for path in &case.shards[1..] {
        edit(path, |bytes| bytes.truncate(footer_start(&case.kept[path])));
    }
    let first = &case.shards[0];
    let file = fs::File::options().write(true).open(first).unwrap();
    let footer = footer_start(&case.kept[first]) as u64;
    file.set_len(footer).unwrap();
    file.set_len(4 << 40).unwrap();
    let found = case.object();
    assert_eq!((found.id(), found.length()), (object.id(), None));
    assert_eq!(found.parts()[0].len(), 1);
}
