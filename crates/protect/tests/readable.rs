//! Parity that was written once stays readable: files of `vectors/protect` give back what they
//! protect, which is lost entirely.

#![cfg(unix)]

mod common;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use common::{Thing, assert_same, check, job, make, mend, snapshot, write};
use paritas_protect::{State, find};

/// Sets of parity files, each with a folder of its name. The newest is the last.
const SETS: [&str; 2] = ["first", "second"];

fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/protect")
}

fn content(length: u32) -> Vec<u8> {
    (0..length).map(|at| (at * at / 7 % 251) as u8).collect()
}

/// Writes what the parity of the vectors protects.
fn make_originals(root: &Path) {
    fs::create_dir_all(root.join("folder/empty")).unwrap();
    write(&root.join("a"), &content(3000), 0o640, 1);
    write(&root.join("folder/b"), &content(700), 0o755, 2);
    write(&root.join("folder/nothing"), b"", 0o600, 3);
    symlink("../a", root.join("folder/link")).unwrap();
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

#[test]
fn old_parity_restores_everything() {
    let originals = tempfile::tempdir().unwrap();
    make_originals(originals.path());
    let mut then = snapshot(originals.path());
    for thing in then.values_mut() {
        // Folders get the modes that they had when the vectors were made.
        if let Thing::Folder { mode } = thing {
            *mode = 0o755;
        }
    }
    for set in SETS {
        let root = tempfile::tempdir().unwrap();
        copy(&vectors().join(set), &root.path().join(".paritas"));
        let report = mend(root.path());
        assert!(report.failed.is_empty(), "{set}: {report:?}");
        assert_same(&snapshot(root.path()), &then, set);
        assert_eq!(check(root.path()).status, State::Intact);
    }
}

/// Parity that is written today is like the newest set, except for ids, times and the path of the
/// root.
#[test]
fn new_parity_is_like_the_newest() {
    let root = tempfile::tempdir().unwrap();
    make_originals(root.path());
    let report = make(&job(root.path()).redundancy("150%".parse().unwrap()));
    let set = vectors().join(SETS[SETS.len() - 1]);
    let old = find(&[set]).unwrap().remove(0);
    assert_eq!(old.geometries().collect::<Vec<_>>(), [report.geometry]);
    let block = report.geometry.block as usize;
    let first_blocks = |files: Vec<PathBuf>| -> Vec<Vec<u8>> {
        files.iter().map(|file| fs::read(file).unwrap()[192..192 + block].to_vec()).collect()
    };
    let old = old.parity_files().map(Path::to_owned).collect();
    assert!(first_blocks(old) == first_blocks(report.parity_files));
}

#[test]
#[ignore = "writes vectors: a new set, for a new version of the format"]
fn write_a_set() {
    let root = tempfile::tempdir().unwrap();
    make_originals(root.path());
    make(&job(root.path()).redundancy("150%".parse().unwrap()).label("vector".to_owned()));
    copy(&root.path().join(".paritas"), &vectors().join(SETS[SETS.len() - 1]));
}
