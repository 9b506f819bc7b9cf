//! Rebalancing: shards move until as many folders as possible may be lost, and each shard always
//! exists.

use crate::common;
use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use crate::common::{check, content, counts, disks, files, get, job_to, kind, object_in, put};
use paritas_shards::{ErrorKind, PromoteJob, RebalanceReport, Result, State, promote, rebalance};

fn level(disks: &[PathBuf]) -> Result<RebalanceReport> {
    rebalance(&object_in(disks), None, NonZeroUsize::new(2), &|_| {})
}

/// Returns all files by name, from all disks.
fn by_name(disks: &[PathBuf]) -> BTreeMap<String, Vec<u8>> {
    let all = disks.iter().flat_map(|disk| files(disk));
    let name = |path: PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    all.map(|(path, bytes)| (name(path), bytes)).collect()
}

#[test]
fn a_bad_spread_is_mended() {
    for (spec, spread_over, disk_count, tolerance, expected) in [
        ("4+2", 1, 3, 1, vec![2, 2, 2]),
        ("4+2", 2, 3, 1, vec![2, 2, 2]),
        ("4+2", 1, 6, 2, vec![1; 6]),
        // Two of four disks may be lost with three shards on each; fewer shards on a disk allow no
        // more.
        ("6+6", 2, 4, 2, vec![3; 4]),
        ("10+4", 2, 5, 1, vec![4, 4, 2, 2, 2]),
        ("lt:k=8,n=48,nodes=12", 1, 3, 2, vec![4, 4, 4]),
    ] {
        let (_root, disks) = disks(disk_count);
        put(&job_to(spec, &disks[..spread_over]), &content(500));
        let whole = by_name(&disks);
        let report = level(&disks).unwrap();
        assert_eq!(report.placement.tolerance, tolerance, "{spec}: {report:?}");
        let mut sizes = counts(&disks);
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        assert_eq!(sizes, expected, "{spec}: {report:?}");
        assert!(by_name(&disks) == whole, "{spec}: the same shards, elsewhere");
        assert!(report.moved.iter().all(|moved| moved.path.exists() && !moved.from.exists()));
        let object = object_in(&disks);
        assert_eq!(object.placement(), report.placement);
        assert_eq!(check(&object).status, State::Intact);
        assert!(level(&disks).unwrap().moved.is_empty(), "{spec}");
    }
}

/// A placement that moving cannot improve stays as it is.
#[test]
fn nothing_moves_without_need() {
    for (spec, disk_count) in [("4+2", 2), ("4+2", 4), ("10+4", 7), ("4+2", 1)] {
        let (_root, disks) = disks(disk_count);
        put(&job_to(spec, &disks), &content(500));
        assert_eq!(level(&disks).unwrap().moved, [], "{spec} in {disk_count}");
    }
    // An uneven spread that cannot be improved, and a warning about it.
    let (_root, disks) = disks(2);
    let shards = put(&job_to("4+2", &disks), &content(500)).shards;
    fs::rename(&shards[0], disks[1].join("object.0of6.paritas")).unwrap();
    let report = level(&disks).unwrap();
    assert_eq!((report.moved.len(), counts(&disks)), (0, vec![2, 4]));
    assert!(report.warnings[0].contains("not every one of 2 folders"), "{:?}", report.warnings);
}

/// A folder with other content is used if it is named.
#[test]
fn folders_are_named() {
    let (_root, disks) = disks(3);
    put(&job_to("4+2", &disks[..2]), &content(500));
    fs::write(disks[2].join("letter.txt"), "somebody's own").unwrap();
    let object = object_in(&disks[..2]);
    let report = rebalance(&object, Some(&disks[2]), NonZeroUsize::new(1), &|_| {}).unwrap();
    assert_eq!((report.moved.len(), counts(&disks)), (2, vec![2, 2, 3]));
}

/// What is in the way of a shard is moved aside, and the report says so.
#[test]
fn what_was_in_the_way_is_told() {
    let (_root, disks) = disks(3);
    put(&job_to("4+2", &disks[..2]), &content(500));
    let names: Vec<_> = by_name(&disks).into_keys().collect();
    names.iter().for_each(|name| fs::write(disks[2].join(name), "somebody's own").unwrap());
    let object = object_in(&disks[..2]);
    let report = rebalance(&object, Some(&disks[2]), NonZeroUsize::new(1), &|_| {}).unwrap();
    assert_eq!((report.moved.len(), counts(&disks)), (2, vec![2, 2, 8]));
    let told =
        report.warnings.iter().filter(|text| text.contains("was not a shard and is kept as"));
    assert_eq!(told.count(), 2, "{report:?}");
}

#[test]
fn parts_of_later_stages_move_with_their_shards() {
    let (_root, disks) = disks(4);
    put(&job_to("bbdpg:k=4,m=2,m2=3,interleave=all", &disks[..1]), &content(2000));
    let job = PromoteJob::default().sync(false).threads(NonZeroUsize::new(1));
    promote(&object_in(&disks[..1]), &job, &|_| {}).unwrap();
    let whole = by_name(&disks);
    let report = level(&disks).unwrap();
    assert_eq!(report.placement.tolerance, 1, "{report:?}");
    assert!(by_name(&disks) == whole);
    let homes = |shard: usize| {
        let folders = report.placement.folders.iter();
        folders.filter(|folder| folder.shards.contains(&shard)).count()
    };
    assert!((0..7).all(|shard| homes(shard) == 1), "{report:?}");
}

#[test]
fn what_is_not_whole_is_repaired_first() {
    let (_root, disks) = disks(3);
    let shards = put(&job_to("4+2", &disks[..1]), &content(500)).shards;
    fs::remove_file(&shards[3]).unwrap();
    assert_eq!(kind(level(&disks)), ErrorKind::TooFewShards);
    assert_eq!(counts(&disks), [5, 0, 0]);
}

/// A block that was damaged unseen is written correctly.
#[test]
fn damage_does_not_move() {
    let (_root, disks) = disks(3);
    let shards = put(&job_to("4+2", &disks[..1]), &content(2000)).shards;
    let whole = by_name(&disks);
    shards.iter().skip(4).for_each(|path| common::edit(path, |bytes| bytes[300] ^= 1));
    let report = level(&disks).unwrap();
    let is_right = |name: &str| by_name(&disks)[name] == whole[name];
    assert!(report.moved.iter().any(|moved| moved.shard == 5), "{report:?}");
    assert!(["object.4of6.paritas", "object.5of6.paritas"].into_iter().all(is_right));
}

/// At every moment that the process can observe, all shards are there.
#[test]
fn every_shard_is_always_there() {
    let (_root, disks) = disks(3);
    put(&job_to("4+2", &disks[..1]), &content(2000));
    let looks = std::sync::atomic::AtomicUsize::new(0);
    let look = |_| {
        looks.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        assert!(object_in(&disks).missing().is_empty());
    };
    rebalance(&object_in(&disks), None, NonZeroUsize::new(1), &look).unwrap();
    assert!(looks.into_inner() > 4);
}

/// Another process moves the same shards, or moves them back, at the worst moment.
#[test]
fn two_at_once() {
    let (_root, disks) = disks(3);
    put(&job_to("4+2", &disks[..1]), &content(2000));
    let whole = by_name(&disks);
    let once = std::sync::Once::new();
    let other = |_| once.call_once(|| assert_eq!(level(&disks).unwrap().moved.len(), 4));
    let report = rebalance(&object_in(&disks), None, NonZeroUsize::new(1), &other);
    assert!(report.is_ok() || report.is_err_and(|e| e.to_string().contains("another process")));
    assert!(by_name(&disks) == whole);
    assert_eq!(object_in(&disks).placement().tolerance, 1);
}

const VICTIM: &str = "PARITAS_REBALANCE_FOLDER";

/// A rebalancing that is killed at any moment leaves every shard whole in some folder.
#[test]
fn killed_at_any_moment() {
    let of = |root: &Path| ["a", "b", "c"].map(|disk| root.join(disk)).to_vec();
    if let Some(root) = std::env::var_os(VICTIM) {
        let disks = of(Path::new(&root));
        loop {
            level(&disks).unwrap();
            for path in disks[1..].iter().flat_map(|disk| files(disk).into_keys()) {
                fs::rename(&path, disks[0].join(path.file_name().unwrap())).unwrap();
            }
        }
    }
    let root = tempfile::tempdir().unwrap();
    let disks = of(root.path());
    disks.iter().for_each(|disk| fs::create_dir(disk).unwrap());
    let bytes = content(200_000);
    put(&job_to("4+2", &disks[..1]), &bytes);
    let whole = by_name(&disks);
    for kill in 0..25 {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "rebalance::killed_at_any_moment"])
            .env(VICTIM, root.path())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_micros(8_000 + kill * 7_919 % 40_000));
        assert!(child.try_wait().unwrap().is_none(), "the victim ended by itself");
        child.kill().unwrap();
        child.wait().unwrap();
        let object = object_in(&disks);
        assert!(object.missing().is_empty(), "{:?}", by_name(&disks).keys());
        assert_eq!(check(&object).status, State::Intact);
        assert!(get(&object).unwrap().0 == bytes);
        let finished = |(name, _): &(String, Vec<u8>)| !name.starts_with('.');
        let left: BTreeMap<_, _> = by_name(&disks).into_iter().filter(finished).collect();
        assert!(left == whole, "{:?}", left.keys());
    }
}
