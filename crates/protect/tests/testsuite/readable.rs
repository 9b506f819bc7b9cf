//! Parity that was written once stays readable: files of `vectors/protect` give back what they
//! protect, which is lost entirely.

use crate::common;
use std::fs;
use std::os::unix::fs::{MetadataExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Thing, assert_same, check, job, make, mend, snapshot, write};
use paritas_protect::{State, find};

/// Sets of parity files, each with a folder of its name. The newest is the last. The third has all
/// that catalogues say of attributes and disks; `find/tests.rs` has what it says.
const SETS: [&str; 3] = ["first", "second", "third"];

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
        let mut now = snapshot(root.path());
        // A file that cannot be given to its group is closed to that of whoever restores it.
        if let Some(Thing::File { mode, .. }) = now.get_mut(Path::new("a"))
            && set == "third"
            && fs::metadata(root.path().join("a")).unwrap().gid() != 2345
        {
            assert_eq!(std::mem::replace(mode, 0o640), 0o600);
        }
        assert_same(&now, &then, set);
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

/// Gives the originals owners and attributes, and mounts an empty disk among them.
fn decorate(root: &Path) -> PathBuf {
    let disk = root.join("folder/empty");
    let mount = ["-t", "tmpfs", "-o", "mode=755", "tmpfs"];
    assert!(Command::new("mount").args(mount).arg(&disk).status().unwrap().success());
    let anybody = u32::MAX;
    let list = [(1, 7, anybody), (2, 5, 1), (4, 5, anybody), (16, 5, anybody), (32, 5, anybody)];
    xattr::set(root.join("folder/b"), "system.posix_acl_access", &common::list(&list)).unwrap();
    xattr::set(root.join("folder"), "system.posix_acl_default", &common::list(&list)).unwrap();
    for name in ["a", "folder/nothing"] {
        xattr::set(root.join(name), "user.note", b"a note\0\xff").unwrap();
    }
    chown(root.join("a"), Some(1234), Some(2345)).unwrap();
    chown(root.join("folder/b"), Some(1234), Some(3456)).unwrap();
    disk
}

#[test]
#[ignore = "writes vectors: a new set, for a new version of the format; needs root on Linux"]
fn write_a_set() {
    let root = tempfile::tempdir().unwrap();
    make_originals(root.path());
    let disk = decorate(root.path());
    let job = job(root.path()).redundancy("150%".parse().unwrap()).label("vector".to_owned());
    make(&job.excludes(vec!["*.tmp".to_owned(), "!/kept.tmp".to_owned()]).one_file_system(true));
    assert!(Command::new("umount").arg(disk).status().unwrap().success());
    copy(&root.path().join(".paritas"), &vectors().join(SETS[SETS.len() - 1]));
}
