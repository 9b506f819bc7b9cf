//! Codes with stages: what encoding writes first, and what promotion reads and adds. An object
//! keeps the promises of its stage before and after a promotion, and after an interrupted one.

use crate::common;
use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use crate::common::{
    check, code, content, edit, files, front_length, get, kind, look, mend, only, put, restore,
    segment_bytes, small_job,
};
use paritas::NodeId;
use paritas::erasure::combinations;
use paritas_shards::{
    ErrorKind, Object, Part, PromoteJob, PromoteReport, RepairJob, Result, ShardState, State,
    promote, repair,
};
use tempfile::TempDir;

const PLACEMENTS: [&str; 3] = ["none", "first", "all"];
/// Number of bytes of a packet in small jobs.
const PACKET: usize = 8;

/// A code, given by its parameters.
#[derive(Debug, Clone, Copy)]
struct Shape {
    k: usize,
    m: usize,
    m2: usize,
    interleave: &'static str,
}

impl Shape {
    fn spec(self) -> String {
        let Self { k, m, m2, interleave } = self;
        format!("bbdpg:k={k},m={m},m2={m2},interleave={interleave}")
    }

    /// Returns the number of shards after stage 1.
    fn first(self) -> usize {
        let Self { k, m, m2, interleave } = self;
        if interleave == "all" { k + m2 } else { k + m }
    }

    /// Returns the shards that stage 2 adds something to, including new ones.
    fn added(self) -> Vec<usize> {
        let code = code(&self.spec());
        let made = |&node: &NodeId| code.node_cells(node).iter().any(|&c| code.cell(c).stage == 2);
        code.nodes().filter(made).map(NodeId::index).collect()
    }

    /// Returns the number of symbols of a group that stage 2 is computed from: theorem 1 of the
    /// dissertation's chapter 4.
    fn symbols_read(self) -> usize {
        let Self { k, m, m2, .. } = self;
        (k * m2).min((m2 - m) * (k + m))
    }
}

const SIX: Shape = Shape { k: 6, m: 2, m2: 4, interleave: "none" };

fn placements(shape: Shape) -> impl Iterator<Item = Shape> {
    PLACEMENTS.into_iter().map(move |interleave| Shape { interleave, ..shape })
}

/// A directory with an encoded object of a few segments and a part of another.
fn encoded(shape: Shape, segments: usize) -> (TempDir, Vec<u8>) {
    let directory = tempfile::tempdir().unwrap();
    let bytes = content(segments * segment_bytes(&shape.spec()) + 5);
    put(&small_job(&shape.spec(), directory.path()), &bytes);
    (directory, bytes)
}

fn lift(object: &Object) -> Result<PromoteReport> {
    lift_to(object, &[])
}

fn lift_to(object: &Object, to: &[&Path]) -> Result<PromoteReport> {
    let to = to.iter().map(|path| path.to_path_buf()).collect();
    promote(
        object,
        &PromoteJob::default().to(to).sync(false).threads(NonZeroUsize::new(2)),
        &|_| {},
    )
}

fn tell(directory: &Path, losses: usize) {
    let report = check(&only(directory));
    assert_eq!((report.status, report.tolerable), (State::Intact, losses));
}

/// Loses all files of some shards, and checks that the object still decodes to `bytes`.
fn survives(whole: &BTreeMap<PathBuf, Vec<u8>>, object: &Object, lost: &[usize], bytes: &[u8]) {
    let directory = tempfile::tempdir().unwrap();
    let of_lost = |path: &Path| {
        let holds = |part: &usize| object.parts()[*part].iter().any(|file| file.path() == path);
        let part = (0..object.parts().len()).find(holds).unwrap();
        lost.contains(&object.part(part).shard)
    };
    for (path, content) in whole.iter().filter(|(path, _)| !of_lost(path)) {
        fs::write(directory.path().join(path.file_name().unwrap()), content).unwrap();
    }
    assert!(get(&only(directory.path())).unwrap().0 == bytes, "{lost:?}");
}

#[test]
fn a_promotion_adds_files_and_touches_none() {
    for shape in placements(SIX) {
        let (directory, bytes) = encoded(shape, 3);
        let first = files(directory.path());
        let (stage_one, added) = (shape.first(), shape.added());
        assert_eq!(first.len(), stage_one);
        let object = only(directory.path());
        assert_eq!((object.stage(), object.stages(), object.shard_count()), (1, 2, 10));
        tell(directory.path(), shape.m);
        for lost in combinations(stage_one, shape.m).step_by(7) {
            survives(&first, &object, &lost, &bytes);
        }

        let report = lift(&object).unwrap();
        assert_eq!(report.stage, 2);
        assert!(report.added.iter().map(|part| part.shard).eq(added.iter().copied()));
        assert_eq!((report.damaged_segments, report.missing.len()), (0, 0));
        let second = files(directory.path());
        assert_eq!(second.len(), stage_one + added.len());
        assert!(first.iter().all(|(path, bytes)| second.get(path) == Some(bytes)));
        let object = only(directory.path());
        assert_eq!(object.stage(), 2);
        tell(directory.path(), shape.m2);
        for lost in combinations(10, shape.m2).step_by(23) {
            survives(&second, &object, &lost, &bytes);
        }

        let again = lift(&object).unwrap();
        assert_eq!((again.stage, again.added.len(), again.read_bytes), (2, 0, 0));
        assert!(files(directory.path()) == second);
    }
}

#[test]
fn files_are_named_after_all_that_will_be() {
    for shape in placements(SIX) {
        let (directory, _) = encoded(shape, 1);
        let plain = |count: usize| (0..count).map(|i| format!("object.{i:02}of10.paritas"));
        let mut expected: Vec<String> = plain(shape.first()).collect();
        let names = || {
            let names = files(directory.path()).into_keys();
            names.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
        };
        assert!(names().eq(expected.iter().cloned()));
        lift(&only(directory.path())).unwrap();
        expected = plain(10).collect();
        if shape.interleave == "all" {
            let added = shape.added().into_iter();
            expected.extend(added.map(|i| format!("object.{i:02}of10.stage2.paritas")));
            expected.sort_unstable();
        }
        assert!(names().eq(expected.iter().cloned()));
    }
}

/// The number of packets of payload that a promotion reads must be that of theorem 1, counted when
/// files are read.
fn expect_theorem(shape: Shape) {
    let (directory, bytes) = encoded(shape, 2);
    let report = lift(&only(directory.path())).unwrap();
    let cells = code(&shape.spec()).data_cells().len();
    let (symbol, groups) =
        (cells / (shape.k * shape.m2) * PACKET, bytes.len().div_ceil(cells * PACKET));
    let payload = shape.symbols_read() * symbol * groups;
    assert_eq!(report.read_payload, payload as u64, "{shape:?}");
    // Besides, each symbol of a block, which is one stripe in small jobs, has a checksum.
    let checksums = shape.symbols_read() * groups * 8;
    assert_eq!(report.read_bytes, (payload + checksums) as u64, "{shape:?}");
    assert_eq!(report.added.len(), shape.added().len());
    tell(directory.path(), shape.m2);
}

/// Checks the parameters of the dissertation's table 4.3.
#[test]
fn the_table_reads_what_the_theorem_says() {
    let sets =
        [(5, 2, 3), (6, 2, 4), (8, 2, 4), (9, 2, 4), (9, 3, 5), (10, 4, 6), (12, 3, 6), (16, 4, 8)];
    for (k, m, m2) in sets {
        placements(Shape { k, m, m2, interleave: "" }).for_each(expect_theorem);
    }
}

/// Checks every shape of up to ten shards, including the degenerate ones, in which stage 2 reads
/// all data.
#[test]
fn small_shapes_read_what_the_theorem_says() {
    for m2 in 2..10 {
        for (k, m) in (1..=10 - m2).flat_map(|k| (1..m2).map(move |m| (k, m))) {
            placements(Shape { k, m, m2, interleave: "" }).for_each(expect_theorem);
        }
    }
}

/// Empty and tiny objects, and several threads over several segments of several stripes.
#[test]
fn objects_of_every_size() {
    for shape in placements(SIX) {
        let segment = 4 * segment_bytes(&shape.spec());
        for length in [0, 1, PACKET, segment - 1, segment, segment + 1, 5 * segment + 77] {
            let directory = tempfile::tempdir().unwrap();
            let job = small_job(&shape.spec(), directory.path()).block_bytes(4 * 16 * PACKET);
            let bytes = content(length);
            put(&job, &bytes);
            assert_eq!(only(directory.path()).stripes(), 4);
            lift(&only(directory.path())).unwrap();
            let object = only(directory.path());
            assert_eq!(check(&object).status, State::Intact, "{length}");
            let whole = files(directory.path());
            survives(&whole, &object, &[0, 3, 8, 9], &bytes);
            survives(&whole, &object, &[1, 2, 5, 7], &bytes);
        }
    }
}

/// Shards of stage 1 that are lost are recovered during the promotion; damage in blocks that are
/// not read stays unseen.
#[test]
fn a_damaged_set_is_promoted_as_far_as_it_can_be() {
    for shape in placements(SIX) {
        let (directory, bytes) = encoded(shape, 3);
        let whole = files(directory.path());
        lift(&only(directory.path())).unwrap();
        let promoted = files(directory.path());
        let added = |path: &PathBuf| !whole.contains_key(path);
        let paths: Vec<&PathBuf> = whole.keys().collect();

        // Two shards are missing.
        restore(directory.path(), &whole);
        [paths[1], paths[6]].iter().for_each(|path| fs::remove_file(path).unwrap());
        let report = lift(&only(directory.path())).unwrap();
        assert_eq!((&report.missing[..], report.damaged_segments), (&[1, 6][..], 0));
        let now = files(directory.path());
        for (path, content) in promoted.iter().filter(|(path, _)| added(path)) {
            assert!(now.get(path) == Some(content), "{}", path.display());
        }
        mend(&only(directory.path())).unwrap();
        assert!(files(directory.path()) == promoted);

        // Every block and the footers of two shards are damaged.
        restore(directory.path(), &whole);
        let front = front_length(&whole[paths[0]]);
        for path in [paths[2], paths[5]] {
            edit(path, |bytes| bytes[front..].iter_mut().step_by(PACKET).for_each(|b| *b ^= 1));
        }
        let report = lift(&only(directory.path())).unwrap();
        assert_eq!((report.missing.len(), report.damaged_segments), (0, 4));
        mend(&only(directory.path())).unwrap();
        assert!(files(directory.path()) == promoted);

        // One shard too many is missing.
        restore(directory.path(), &whole);
        [paths[0], paths[3], paths[4]].iter().for_each(|path| fs::remove_file(path).unwrap());
        let before = files(directory.path());
        let object = only(directory.path());
        if get(&object).is_err() {
            assert_eq!(kind(lift(&object)), ErrorKind::TooFewShards);
            let message = lift(&object).unwrap_err().to_string();
            assert!(message.contains("are enough") && message.contains("shard 3 is missing"));
            assert!(files(directory.path()) == before);
        } else {
            assert_eq!(shape.interleave, "all");
            assert!(get(&object).unwrap().0 == bytes);
        }
    }
}

/// However far a promotion came before it was killed, another one completes it, byte for byte.
#[test]
fn an_interrupted_promotion_is_finished() {
    for shape in placements(SIX) {
        let (directory, bytes) = encoded(shape, 2);
        let first = files(directory.path());
        lift(&only(directory.path())).unwrap();
        let whole = files(directory.path());
        let added: Vec<&PathBuf> = whole.keys().filter(|path| !first.contains_key(*path)).collect();
        let temporary = |path: &Path, number: usize| {
            let name = path.file_name().unwrap().to_str().unwrap();
            path.with_file_name(format!(".{name}.{number:08x}.tmp"))
        };
        // The first new parts have their names, others have temporary names, and the rest are
        // missing.
        for (named, complete) in [(0, 1), (1, 1), (1, 2), (0, added.len()), (1, added.len())] {
            restore(directory.path(), &whole);
            for (number, path) in added.iter().enumerate().skip(named) {
                match number < complete {
                    true => fs::rename(path, temporary(path, number)).unwrap(),
                    false => fs::remove_file(path).unwrap(),
                }
            }
            let object = only(directory.path());
            assert_eq!(object.stage(), if complete > 0 { 2 } else { 1 });
            let report = check(&object);
            assert!(report.tolerable >= shape.m, "{}", report.tolerable);
            survives(&files(directory.path()), &object, &[0, 7], &bytes);
            let repaired = files(directory.path());
            let report = lift(&object).unwrap();
            assert_eq!(report.added.len(), added.len() - named);
            assert!(files(directory.path()) == whole);
            // A repair has the same result.
            restore(directory.path(), &repaired);
            mend(&only(directory.path())).unwrap();
            assert!(files(directory.path()) == whole);
        }
    }
}

#[test]
fn one_file_of_stage_two_means_promoted() {
    let (directory, _) = encoded(Shape { interleave: "all", ..SIX }, 2);
    lift(&only(directory.path())).unwrap();
    let whole = files(directory.path());
    let added: Vec<&PathBuf> =
        whole.keys().filter(|path| path.to_str().unwrap().contains("stage2")).collect();
    added[1..].iter().for_each(|path| fs::remove_file(path).unwrap());
    let report = check(&only(directory.path()));
    // Stage 1 is whole, and any two of its shards may be lost; too much of stage 2 is missing.
    assert_eq!((report.status, report.tolerable), (State::Repairable, 2));
    let missing = report.shards.iter().filter(|shard| shard.state == ShardState::Missing);
    assert!(missing.clone().all(|shard| shard.stage == 2));
    assert_eq!(missing.count(), added.len() - 1);
    // Without the last one, the object is as if it had never been promoted.
    fs::remove_file(added[0]).unwrap();
    tell(directory.path(), 2);
}

#[test]
fn repairs_keep_the_stage() {
    for shape in placements(SIX) {
        let (directory, _) = encoded(shape, 2);
        for promoted in [false, true] {
            if promoted {
                lift(&only(directory.path())).unwrap();
            }
            let whole = files(directory.path());
            let object = only(directory.path());
            for lost in [0, 7] {
                for fewest_reads in [false, true] {
                    let parts = (0..object.parts().len())
                        .filter(|&part| object.part(part).shard == lost)
                        .flat_map(|part| &object.parts()[part]);
                    parts.for_each(|file| fs::remove_file(file.path()).unwrap());
                    let job = RepairJob::default()
                        .sync(false)
                        .threads(NonZeroUsize::new(2))
                        .fewest_reads(fewest_reads);
                    repair(&only(directory.path()), &job, &|_| {}).unwrap();
                    assert!(files(directory.path()) == whole, "{shape:?} {promoted} {lost}");
                }
            }
        }
    }
}

/// If each shard has its own directory, a new part of a shard goes to the shard's directory.
#[test]
fn parts_of_a_shard_stay_together() {
    let yard = tempfile::tempdir().unwrap();
    let directories: Vec<PathBuf> = (0..10).map(|i| yard.path().join(format!("{i}"))).collect();
    directories.iter().for_each(|directory| fs::create_dir(directory).unwrap());
    let shape = Shape { interleave: "all", ..SIX };
    let mut job = small_job(&shape.spec(), yard.path());
    job.directories = directories.clone();
    put(&job, &content(3000));
    let object = || paritas_shards::scan(&directories).objects.remove(0);
    let report = lift(&object()).unwrap();
    assert_eq!(report.warnings, Vec::<String>::new());
    for part in &report.added {
        assert_eq!(part.path.parent(), Some(directories[part.shard].as_path()));
    }
    // The shards of a lost disk are repaired to one place.
    files(&directories[4]).keys().for_each(|path| fs::remove_file(path).unwrap());
    let repaired = mend(&object()).unwrap().repaired;
    let parts: Vec<(usize, u8)> = repaired.iter().map(|part| (part.shard, part.stage)).collect();
    assert_eq!(parts, [(4, 1), (4, 2)]);
    assert_eq!(check(&object()).status, State::Intact);
}

#[test]
fn new_shards_go_where_they_are_sent() {
    let (directory, _) = encoded(SIX, 1);
    let [one, two] = [0, 1].map(|_| tempfile::tempdir().unwrap());
    let report = lift_to(&only(directory.path()), &[one.path(), two.path()]).unwrap();
    let places: Vec<&Path> = report.added.iter().map(|part| part.path.parent().unwrap()).collect();
    assert_eq!(places, [one.path(), two.path()]);
    assert!(report.warnings[0].ends_with("has 8 shards"), "{:?}", report.warnings);
    let all = [directory.path(), one.path(), two.path()].map(Path::to_path_buf);
    let inventory = paritas_shards::scan(&all);
    assert_eq!(check(&inventory.objects[0]).status, State::Intact);
    // Both are lost again, and the remaining object is in stage 1.
    tell(directory.path(), 2);
}

/// Files whose names are needed stay unchanged.
#[test]
fn names_that_are_taken() {
    let (directory, _) = encoded(SIX, 1);
    let (stranger, _) = encoded(SIX, 2);
    let taken = directory.path().join("object.08of10.paritas");
    let other = fs::read(stranger.path().join("object.00of10.paritas")).unwrap();
    let mut other = other;
    // A shard of another object.
    let id = *b"another object..";
    let at = other.windows(16).position(|bytes| bytes == b"0123456789abcdef").unwrap();
    common::forge(&mut other, 0, |record| record[at..at + 16].copy_from_slice(&id));
    fs::write(&taken, &other).unwrap();
    fs::write(directory.path().join("object.09of10.paritas"), "no shard").unwrap();
    let object = || {
        let objects = look(directory.path()).objects.into_iter();
        objects.filter(|object| object.id().as_bytes() == b"0123456789abcdef").last().unwrap()
    };
    lift(&object()).unwrap();
    assert!(fs::read(&taken).unwrap() == other);
    assert!(directory.path().join("object.08of10-2.paritas").exists());
    assert_eq!(check(&object()).status, State::Intact);
    let kept = files(directory.path());
    assert!(kept.values().any(|bytes| bytes == b"no shard"));
}

#[test]
fn encoding_anew_replaces_both_stages() {
    for shape in placements(SIX) {
        let (directory, _) = encoded(shape, 1);
        lift(&only(directory.path())).unwrap();
        let job = small_job(&shape.spec(), directory.path()).force(true);
        put(&job, b"something else");
        assert_eq!(files(directory.path()).len(), shape.first());
        assert_eq!(get(&only(directory.path())).unwrap().0, b"something else");
        tell(directory.path(), 2);
    }
}

#[test]
fn one_stage_is_no_ladder() {
    let directory = tempfile::tempdir().unwrap();
    put(&small_job("4+2", directory.path()), &content(100));
    let error = lift(&only(directory.path())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Parameters);
    assert!(error.to_string().contains("has one stage"), "{error}");
}

/// Files that state parts which their code does not have.
#[test]
fn parts_that_cannot_be_are_ignored() {
    let (directory, _) = encoded(SIX, 1);
    lift(&only(directory.path())).unwrap();
    let last = directory.path().join("object.09of10.paritas");
    let object = only(directory.path());
    assert_eq!(object.part(9), Part { stage: 2, shard: 9 });
    // The stage is the last byte of a front header's body.
    edit(&last, |bytes| {
        let footer = common::footer_start(bytes);
        bytes.truncate(footer);
        common::forge(bytes, 0, |record| *record.last_mut().unwrap() = 3);
    });
    let inventory = look(directory.path());
    let reason = &inventory.ignored[0].reason;
    assert!(reason.contains("states stage 3 of shard 9, which bbdpg:k=6"), "{reason}");
    assert_eq!(inventory.objects[0].missing(), [9]);
}

/// What is in the way of a new file is moved aside, and the report says so.
#[test]
fn what_was_in_the_way_is_told() {
    let (directory, _) = encoded(SIX, 2);
    let object = only(directory.path());
    fs::write(directory.path().join("object.09of10.paritas"), "somebody's own").unwrap();
    let report = lift(&object).unwrap();
    let told =
        report.warnings.iter().filter(|text| text.contains("was not a shard and is kept as"));
    assert_eq!(told.count(), 1, "{report:?}");
    assert_eq!(check(&only(directory.path())).status, State::Intact);
}
