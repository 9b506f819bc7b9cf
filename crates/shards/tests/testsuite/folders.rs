//! Folders as failure domains: which folders may be lost together, and where repair puts shards.

use crate::common;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{check, content, counts, disks, edit, get, job_to, mend, object_in, put};
use paritas_shards::{Placement, PromoteJob, RepairReport, State, promote, scan};

/// Moves shards so that each disk has the shards that `wanted` lists for it.
fn arrange(shards: &[PathBuf], disks: &[PathBuf], wanted: &[&[usize]]) {
    for (disk, shard) in disks.iter().zip(wanted).flat_map(|(d, s)| s.iter().map(move |s| (d, s))) {
        let path = &shards[*shard];
        fs::rename(path, disk.join(path.file_name().unwrap())).unwrap();
    }
}

fn empty(disk: &Path) {
    common::files(disk).keys().for_each(|path| fs::remove_file(path).unwrap());
}

/// Returns all sets of some disks.
fn sets(count: usize) -> Vec<BTreeSet<usize>> {
    let set = |bits: usize| (0..count).filter(|disk| bits >> disk & 1 == 1).collect();
    (0..1 << count).map(set).collect()
}

/// Tries whether the object can be decoded without some disks.
fn decodes_without(lost: &BTreeSet<usize>, disks: &[PathBuf], bytes: &[u8]) -> bool {
    let left = disks.iter().enumerate().filter(|(disk, _)| !lost.contains(disk));
    let left: Vec<PathBuf> = left.map(|(_, path)| path.clone()).collect();
    let objects = scan(&left).objects;
    objects.first().is_some_and(|object| get(object).is_ok_and(|(decoded, _)| decoded == bytes))
}

/// Compares the reported placement with what decoding without folders gives.
fn check_by_losing(placement: &Placement, disks: &[PathBuf], bytes: &[u8]) {
    let borne: Vec<BTreeSet<usize>> =
        sets(disks.len()).into_iter().filter(|set| decodes_without(set, disks, bytes)).collect();
    let all_of = |size: usize| {
        sets(disks.len()).iter().filter(|set| set.len() == size).all(|set| borne.contains(set))
    };
    let tolerance = (1..=disks.len()).take_while(|&size| all_of(size)).count();
    assert_eq!((placement.tolerance, placement.is_certain), (tolerance, true), "{placement:?}");
    // Folders are listed in the order of shards, disks as they are given.
    let disk = |at: &usize| disks.iter().position(|d| *d == placement.folders[*at].path).unwrap();
    let listed: Vec<BTreeSet<usize>> =
        placement.losable.iter().flatten().map(|set| set.iter().map(disk).collect()).collect();
    let used: BTreeSet<usize> = (0..placement.folders.len()).map(|at| disk(&at)).collect();
    let of_used = |set: &BTreeSet<usize>| set.intersection(&used).copied().collect();
    for set in &borne {
        let set: BTreeSet<usize> = of_used(set);
        let is_covered = set.is_empty() || listed.iter().any(|listed| set.is_subset(listed));
        assert!(is_covered, "{set:?} may be lost: {placement:?}");
    }
    assert!(listed.iter().all(|set| borne.contains(set)), "{placement:?}\n{borne:?}");
}

/// Every code, on disks that hold different numbers of shards, some of them twice.
#[test]
fn folders_may_be_lost_that_are_said_to() {
    for (spec, shards) in
        [("4+2", 6), ("xcode:n=5", 5), ("10+4", 14), ("lt:k=6,n=21,nodes=7", 7), ("star:k=4", 7)]
    {
        let (_root, disks) = disks(4);
        let bytes = content(common::segment_bytes(spec) * 2);
        let paths = put(&job_to(spec, &disks[..1]), &bytes).shards;
        assert_eq!(paths.len(), shards);
        let uneven: Vec<Vec<usize>> =
            [0..shards / 2, shards / 2..shards - 2, shards - 2..shards - 1, shards - 1..shards]
                .map(Iterator::collect)
                .to_vec();
        let wanted: Vec<&[usize]> = uneven.iter().map(Vec::as_slice).collect();
        arrange(&paths, &disks, &wanted);
        check_by_losing(&object_in(&disks).placement(), &disks, &bytes);
        // Copies of the first two shards.
        for path in &paths[..2] {
            fs::copy(path, disks[3].join(path.file_name().unwrap())).unwrap();
        }
        let object = object_in(&disks);
        check_by_losing(&object.placement(), &disks, &bytes);
        assert_eq!(check(&object).placement, object.placement());
    }
}

/// Parts of a later stage lie in other folders than the shards that they belong to.
#[test]
fn parts_of_shards_lie_in_other_folders() {
    let (_root, disks) = disks(4);
    let bytes = content(3000);
    put(&job_to("bbdpg:k=4,m=2,m2=3,interleave=all", &disks[..3]), &bytes);
    check_by_losing(&object_in(&disks[..3]).placement(), &disks[..3], &bytes);
    let job = PromoteJob::default().to(disks[3..].to_vec()).sync(false);
    promote(&object_in(&disks[..3]), &job, &|_| {}).unwrap();
    let object = object_in(&disks);
    assert_eq!(object.stage(), 2);
    check_by_losing(&object.placement(), &disks, &bytes);
}

#[test]
fn many_folders_are_certain_where_shards_count() {
    let (_root, disks) = disks(28);
    put(&job_to("20+8", &disks), &content(1000));
    let placement = object_in(&disks).placement();
    assert_eq!((placement.tolerance, placement.is_certain, placement.losable), (8, true, None));
}

/// Too many sets of folders to try them all, but one folder is known to be one too many.
#[test]
fn a_full_folder_among_many_does_not_mean_that_none_may_be_lost() {
    let (_root, disks) = disks(8);
    let paths = put(&job_to("8+2", &disks[..1]), &content(1000)).shards;
    arrange(&paths, &disks, &[&[], &[1], &[2], &[3], &[4], &[5], &[6], &[7]]);
    let placement = object_in(&disks).placement();
    assert_eq!((placement.tolerance, &placement.losable), (0, &None));
    assert_eq!(placement.tolerance_text(), "not every one");
}

/// For an LT code in many folders, not all losses can be tried.
#[test]
fn what_is_chance_is_likely() {
    let (_root, disks) = disks(16);
    put(&job_to("lt:k=32,n=128,nodes=16", &disks), &content(300));
    let report = check(&object_in(&disks));
    assert!(!report.placement.is_certain);
    assert!(report.placement.tolerance.abs_diff(report.tolerable) <= 1, "{report:?}");
    assert!(report.placement.tolerance_text().starts_with("likely any"));
}

#[test]
fn two_paths_to_one_folder_are_one_domain() {
    let (root, disks) = disks(2);
    let link = root.path().join("link");
    std::os::unix::fs::symlink(&disks[0], &link).unwrap();
    let report = put(&job_to("4+2", &[disks[0].clone(), link.clone()]), &content(500));
    assert!(report.warnings[0].contains("none of 1 folder"), "{:?}", report.warnings);
    let placement = object_in(&[link.clone(), disks[0].clone()]).placement();
    assert_eq!((placement.folders.len(), placement.tolerance), (1, 0));
    // A file that is given by itself lies in the folder that it is in.
    let other = disks[1].join("object.5of6.paritas");
    fs::rename(&report.shards[5], &other).unwrap();
    let paths = [report.shards[0].clone(), report.shards[2].clone(), link, other];
    let placement = object_in(&paths).placement();
    assert_eq!(placement.folders.len(), 2, "{placement:?}");
    assert_eq!(placement.losable, Some(vec![vec![1]]));
}

#[test]
fn encoding_warns_of_several_folders_only() {
    let (_root, disks) = disks(6);
    let warnings = |spec: &str, disks: &[PathBuf]| {
        put(&job_to(spec, disks).force(true), &content(100)).warnings
    };
    assert_eq!(warnings("4+2", &disks), Vec::<String>::new());
    assert_eq!(warnings("4+2", &disks[..1]), Vec::<String>::new());
    let three = warnings("4+2", &disks[..3]);
    assert!(three[0].contains("any 1 of 3 folders may be lost"), "{three:?}");
    assert!(three[0].contains("tolerates the loss of any 2 shards"), "{three:?}");
    // With this LT code, not every folder may be lost.
    let lt = warnings("lt:k=8,n=14,nodes=7", &disks[..2]);
    assert!(lt[0].contains(" of 2 folders") && lt[0].contains("loss of likely any"), "{lt:?}");
    assert_eq!(warnings("lt:k=8,n=32,nodes=8", &disks[..2]), Vec::<String>::new());
}

/// The warning agrees with the report, which lists the folders that may be lost.
#[test]
fn a_warning_of_a_bad_spread_leaves_out_what_may_be_lost() {
    let (_root, disks) = disks(2);
    let paths = put(&job_to("4+2", &disks[..1]), &content(1000)).shards;
    arrange(&paths, &disks, &[&[0, 1, 2, 3], &[4]]);
    fs::remove_file(&paths[5]).unwrap();
    let report = mended(&disks);
    assert_eq!(report.placement.losable, Some(vec![vec![1]]));
    let expected = "not every one of 2 folders may be lost, although";
    assert!(report.warnings[0].starts_with(expected), "{:?}", report.warnings);
}

fn mended(disks: &[PathBuf]) -> RepairReport {
    mend(&object_in(disks)).unwrap()
}

#[test]
fn repair_fills_the_folder_that_was_emptied() {
    let (_root, disks) = disks(3);
    put(&job_to("4+2", &disks), &content(1000));
    empty(&disks[1]);
    fs::create_dir(disks[1].join("lost+found")).unwrap();
    let report = mended(&disks);
    assert_eq!((report.repaired.len(), counts(&disks)), (2, vec![2, 2, 2]));
    assert_eq!(report.placement.tolerance, 1);
    assert!(report.warnings[0].contains("any 1 of 3 folders"), "{:?}", report.warnings);
    assert_eq!(mended(&disks).warnings, Vec::<String>::new(), "nothing was written");

    // Without the third disk fewer folders may be lost, and a warning says so.
    empty(&disks[2]);
    let report = mended(&disks[..2]);
    assert_eq!((counts(&disks), report.placement.tolerance), (vec![3, 3, 0], 0));
    assert!(report.warnings[0].contains("none of 2 folders"), "{:?}", report.warnings);
}

#[test]
fn repair_uses_no_folder_that_has_nothing_to_do_with_the_object() {
    let (_root, disks) = disks(2);
    let shards = put(&job_to("4+2", &disks[..1]), &content(1000)).shards;
    fs::write(disks[1].join("letter.txt"), "precious").unwrap();
    fs::remove_file(&shards[2]).unwrap();
    let report = mended(&disks);
    assert_eq!((counts(&disks), report.warnings), (vec![6, 1], Vec::new()));
    // An empty folder is a new disk.
    empty(&disks[1]);
    fs::remove_file(&shards[2]).unwrap();
    mended(&disks);
    assert_eq!(counts(&disks), [5, 1]);
}

/// A disk was replaced, but another object was repaired first, so the disk is not empty any more.
#[test]
fn a_new_disk_serves_every_object() {
    let (_root, disks) = disks(3);
    for name in ["one", "two"] {
        let mut job = job_to("4+2", &disks).object(None);
        job.name = name.into();
        put(&job, &content(500));
    }
    empty(&disks[0]);
    for name in ["one", "two"] {
        let inventory = scan(&disks);
        let object = inventory.choose(Some(name.as_ref())).unwrap();
        assert_eq!(mend(object).unwrap().placement.tolerance, 1, "{name}");
    }
    assert_eq!(counts(&disks), [4, 4, 4]);
}

/// A damaged shard is repaired in its place, and counts there afterwards; before the repair it does
/// not count.
#[test]
fn damaged_shards_do_not_count() {
    let (_root, disks) = disks(3);
    let shards = put(&job_to("4+2", &disks), &content(1000)).shards;
    edit(&shards[4], |bytes| bytes[300] ^= 1);
    let report = check(&object_in(&disks));
    assert_eq!((report.status, report.tolerable), (State::Repairable, 1));
    assert_eq!(report.placement.tolerance, 0);
    let folders = &report.placement.folders;
    assert_eq!(folders[1].shards, [1]);
    let after = mended(&disks).placement;
    assert_eq!((after.tolerance, &after.folders[1].shards), (1, &vec![1, 4]));
}
