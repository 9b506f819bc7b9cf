//! Random trees and random damage of every kind: up to the parity at hand everything is repaired,
//! beyond it what is lost stays as it is and is named, and everything else is repaired.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::common::{
    Chance, Snapshot, Thing, assert_same, check, damage, flip, job, make, make_tree, mend,
    snapshot, write,
};
use paritas_protect::{Redundancy, State};

fn files(root: &Path) -> Vec<PathBuf> {
    let is_file = |(path, thing)| matches!(thing, Thing::File { .. }).then_some(path);
    snapshot(root).into_iter().filter_map(is_file).collect()
}

fn parity(root: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(root.join(".paritas")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Does one sort of damage, and says which.
fn hurt(root: &Path, chance: &mut Chance) -> String {
    let there = files(root);
    if there.is_empty() {
        return "nothing".to_owned();
    }
    let name = chance.pick(&there).clone();
    let path = root.join(&name);
    let length = fs::metadata(&path).unwrap().len();
    let any = |chance: &mut Chance| chance.below(length as usize) as u64;
    match chance.below(10) {
        0 if length > 0 => flip(&path, any(chance)),
        1 if length > 0 => {
            let at = any(chance);
            let count = chance.below(3000).min((length - at) as usize);
            let noise = chance.bytes(count);
            damage(&path, |file| file.write_all_at(&noise, at).unwrap());
        }
        2 if length > 0 => damage(&path, |file| file.set_len(any(chance)).unwrap()),
        3 => damage(&path, |file| file.set_len(length + 100).unwrap()),
        4 => fs::remove_file(&path).unwrap(),
        5 => fs::rename(&path, root.join(format!("renamed {}", chance.below(1 << 30)))).unwrap(),
        6 => {
            let bytes = fs::read(&path).unwrap();
            let count = chance.below(40);
            let longer = [chance.bytes(count), bytes].concat();
            damage(&path, |file| file.write_all_at(&longer, 0).unwrap());
        }
        7 => {
            let folder = path.parent().filter(|folder| *folder != root);
            // The largest file is in some folder; whole trees of folders are too much.
            if let Some(folder) = folder
                && fs::read_dir(folder).unwrap().count() < 3
            {
                fs::remove_dir_all(folder).unwrap();
            }
        }
        8 => {
            let there = parity(root);
            if there.len() > 2 {
                fs::remove_file(chance.pick(&there)).unwrap();
            }
        }
        _ => {
            let there = parity(root);
            let file = chance.pick(&there);
            let length = fs::metadata(file).unwrap().len();
            flip(file, chance.below(length as usize) as u64);
        }
    }
    name.to_string_lossy().into_owned()
}

/// Gives moved files their old names again: their bytes and times are right already.
fn put_back(root: &Path, then: &Snapshot) {
    let now = snapshot(root);
    let moved: BTreeMap<&PathBuf, &Thing> =
        now.iter().filter(|(path, _)| !then.contains_key(*path)).collect();
    for (path, thing) in then.iter().filter(|(path, _)| !now.contains_key(*path)) {
        let from = moved.iter().find(|(_, moved)| **moved == thing);
        let from = from.unwrap_or_else(|| panic!("{} is gone", path.display()));
        fs::rename(root.join(from.0), root.join(path)).unwrap();
    }
    for path in moved.keys().filter(|path| root.join(path).exists()) {
        // A file that was damaged and renamed is restored, and its damaged copy is a new file.
        fs::remove_file(root.join(path)).unwrap();
    }
}

/// Asserts that everything is as it was before the damage, except the files in `lost`, which must
/// be as the damage left them.
fn assert_saved(root: &Path, before: &Snapshot, damaged: &Snapshot, lost: &[PathBuf], what: &str) {
    let now = snapshot(root);
    for (path, thing) in before {
        let is_lost = lost.contains(&root.join(path));
        let expected = if is_lost { damaged.get(path) } else { Some(thing) };
        let is_elsewhere = || now.values().any(|moved| moved == thing);
        let is_right = now.get(path) == expected || !is_lost && is_elsewhere();
        assert!(is_right, "{}: {what}", path.display());
    }
}

/// Returns whether the damage was repaired.
fn trial(seed: u64, wounds: usize) -> bool {
    let mut chance = Chance::new(seed);
    let root = tempfile::tempdir().unwrap();
    let (count, bytes) = (2 + chance.below(30), chance.below(120_000) + 1);
    make_tree(root.path(), &mut chance, count, bytes);
    let before = snapshot(root.path());
    make(&job(root.path()).redundancy(Redundancy::new(300_000).unwrap()));
    let wounds: Vec<String> = (0..wounds).map(|_| hurt(root.path(), &mut chance)).collect();
    let damaged = snapshot(root.path());
    let report = check(root.path());
    let repaired = mend(root.path());
    let what = format!("seed {seed}, {wounds:?}: {report:?} {repaired:?}");
    if report.status == State::Lost {
        let layer = &report.layers[0];
        assert!(layer.lost > layer.at_hand, "{what}");
        assert_saved(root.path(), &before, &damaged, &repaired.lost, &what);
        return false;
    }
    assert!(repaired.failed.is_empty(), "{what}");
    assert_ne!(check(root.path()).status, State::Lost);
    put_back(root.path(), &before);
    assert_same(&snapshot(root.path()), &before, &what);
    let again = check(root.path());
    assert!(again.status == State::Intact && again.findings.is_empty(), "{what}: then {again:?}");
    true
}

#[test]
fn damage_of_every_kind_is_repaired() {
    let repaired = (0..40).filter(|&seed| trial(seed, 1 + seed as usize % 5)).count();
    assert!((20..40).contains(&repaired), "{repaired}");
}

#[test]
#[ignore = "soak: 100,000 mixtures of damage"]
fn damage_of_every_kind_is_repaired_often() {
    let (first, count) = (100, 100_000);
    let next = AtomicU64::new(first);
    let work = || {
        let seeds = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
        let seeds = seeds.take_while(|&seed| seed < first + count);
        seeds.filter(|&seed| trial(seed, 1 + seed as usize % 7)).count()
    };
    let repaired = thread::scope(|scope| {
        let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).sum::<usize>()
    });
    println!("{repaired} of {count} mixtures of damage repaired, the others named what is lost");
    assert!(repaired as u64 > count / 2, "{repaired}");
}

/// Whatever byte of a parity file is wrong, everything is repaired, and no file is wrong.
#[test]
fn every_byte_of_a_parity_file_may_be_wrong() {
    let root = tempfile::tempdir().unwrap();
    write(&root.path().join("a"), b"some bytes", 0o644, 1);
    write(&root.path().join("b"), &Chance::new(5).bytes(700), 0o644, 2);
    let before = snapshot(root.path());
    make(&job(root.path()).redundancy(Redundancy::new(1_500_000).unwrap()));
    let files = parity(root.path());
    let (whole, length) = (fs::read(&files[0]).unwrap(), fs::metadata(&files[0]).unwrap().len());
    for at in 0..length {
        flip(&files[0], at);
        if at % 64 == 0 {
            fs::remove_file(root.path().join("a")).unwrap();
        }
        let report = mend(root.path());
        assert_eq!(report.found.parity.len(), 1, "byte {at}: {report:?}");
        assert_same(&snapshot(root.path()), &before, &format!("byte {at}"));
        assert!(fs::read(&files[0]).unwrap() == whole, "byte {at}");
    }
}

/// Any two of five parity files may be lost: the others tell what is protected, and repair as many
/// blocks as they hold.
#[test]
fn parity_files_may_be_lost() {
    let root = tempfile::tempdir().unwrap();
    make_tree(root.path(), &mut Chance::new(6), 50, 200_000);
    let before = snapshot(root.path());
    make(&job(root.path()));
    let files = parity(root.path());
    let whole: Vec<Vec<u8>> = files.iter().map(|file| fs::read(file).unwrap()).collect();
    for (one, other) in [(0, 1), (0, 4), (1, 3), (3, 4)] {
        fs::remove_file(&files[one]).unwrap();
        let length = fs::metadata(&files[other]).unwrap().len();
        damage(&files[other], |file| file.set_len(length / 3).unwrap());
        let report = mend(root.path());
        assert_eq!((report.found.parity.len(), report.parity.len()), (2, 2), "{report:?}");
        let now: Vec<Vec<u8>> = files.iter().map(|file| fs::read(file).unwrap()).collect();
        assert!(now == whole);
        assert_same(&snapshot(root.path()), &before, "repairing parity");
    }
}

/// A parity file into which bytes were inserted, or that lost its beginning, is used all the same.
#[test]
fn parity_files_may_be_shifted() {
    let root = tempfile::tempdir().unwrap();
    write(&root.path().join("a"), &Chance::new(7).bytes(50_000), 0o644, 1);
    make(&job(root.path()));
    for file in parity(root.path()) {
        let whole = fs::read(&file).unwrap();
        for changed in [[b"inserted", &whole[..]].concat(), whole[100..].to_vec()] {
            fs::write(&file, &changed).unwrap();
            let report = check(root.path());
            let layer = &report.layers[0];
            assert_eq!((layer.at_hand, report.parity.len()), (layer.geometry.parity, 1));
            mend(root.path());
            assert!(fs::read(&file).unwrap() == whole);
        }
    }
}

/// Names with any bytes, deep paths, and what is empty come back.
#[test]
fn a_whole_tree_comes_back() {
    let yard = tempfile::tempdir().unwrap();
    let (root, elsewhere) = (yard.path().join("root"), yard.path().join("parity"));
    fs::create_dir(&root).unwrap();
    fs::create_dir(&elsewhere).unwrap();
    let deep: PathBuf = (0..60).map(|number| format!("folder {number}")).collect();
    fs::create_dir_all(root.join(&deep)).unwrap();
    write(&root.join(&deep).join("deep"), b"deep", 0o600, 1);
    fs::create_dir(root.join("empty")).unwrap();
    let name = OsStr::from_bytes(b"\x01\x7f\xff\n\"'\\*");
    write(&root.join(name), b"", 0o444, 2);
    fs::hard_link(root.join(name), root.join("again")).unwrap();
    std::os::unix::fs::symlink("/", root.join("out")).unwrap();
    let before = snapshot(&root);
    let all = Redundancy::new(2_000_000).unwrap();
    make(&job(&root).redundancy(all).parity_dirs(vec![elsewhere.clone()]));
    assert!(!root.join(".paritas").exists());
    fs::remove_dir_all(&root).unwrap();
    fs::create_dir(&root).unwrap();
    let report = mend(&elsewhere);
    assert!(report.failed.is_empty(), "{report:?}");
    assert_same(&snapshot(&root), &before, "restoring");
    use std::os::unix::fs::MetadataExt;
    assert_eq!(fs::metadata(root.join("again")).unwrap().nlink(), 2);
    assert_eq!(check(&elsewhere).status, State::Intact);
}

/// Folders, links and empty files have no blocks, and come back from the catalogue alone.
#[test]
fn what_has_no_bytes_comes_back() {
    let root = tempfile::tempdir().unwrap();
    make(&job(root.path()));
    assert_eq!(check(root.path()).status, State::Intact);
    fs::create_dir_all(root.path().join("a/b")).unwrap();
    write(&root.path().join("a/b/nothing"), b"", 0o640, 1);
    std::os::unix::fs::symlink("b", root.path().join("a/link")).unwrap();
    let before = snapshot(root.path());
    make(&job(root.path()).force(true));
    fs::remove_dir_all(root.path().join("a")).unwrap();
    for file in &parity(root.path())[..2] {
        fs::remove_file(file).unwrap();
    }
    assert_eq!(check(root.path()).status, State::Repairable);
    mend(root.path());
    assert_same(&snapshot(root.path()), &before, "repairing");
    assert_eq!(check(root.path()).status, State::Intact);
}
