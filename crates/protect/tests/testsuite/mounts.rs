//! Disks that are mounted above what is protected (at a folder that leads to a given path, or at
//! the root itself) or over it, and file systems whose times are whole seconds.

#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::common::{check, not_run};
use crate::people::{MEMORY, Mount, fill, plenty, protected, repaired, rewrite, updated, yard};
use paritas_protect::{FileState, ProtectJob, RepairJob, State, find, repair};

/// The disk of a given path may be mounted above that path.
#[test]
fn a_disk_above_a_given_path_is_not_deleted() {
    let root = yard();
    let (disk, parity) = (root.path().join("disk"), tempfile::tempdir().unwrap());
    let photos = disk.join("photos");
    fs::create_dir(&disk).unwrap();
    for given in [photos.clone(), photos.join("1")] {
        let Some(mount) = Mount::new(&MEMORY, &disk) else { return };
        fs::create_dir(&photos).unwrap();
        fill(&photos);
        let job = ProtectJob::new(vec![root.path().join("a"), given]).force(true).sync(false);
        let job = job.redundancy("100%".parse().unwrap());
        let files = protected(&job.parity_dirs(vec![parity.path().to_owned()])).files;
        drop(mount);
        for folder_is_there in [false, true] {
            if folder_is_there {
                fs::create_dir(&photos).unwrap();
            }
            let report = check(parity.path());
            assert_eq!(report.status, State::Unknown, "{report:?}");
            assert!(repaired(parity.path(), RepairJob::default()).restored.is_empty());
            let report = updated(parity.path());
            assert_eq!((report.kept, report.gone), (files, 0), "{report:?}");
        }
        fs::remove_dir(&photos).unwrap();
    }
}

/// The root of a protection was a disk. Its parity is enough to fill another folder.
#[test]
fn a_root_that_was_a_disk_is_restored_into_a_folder() {
    let (root, parity) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let new = tempfile::tempdir().unwrap();
    let Some(mount) = Mount::new(&MEMORY, root.path()) else { return };
    fill(root.path());
    protected(&plenty(root.path()).parity_dirs(vec![parity.path().to_owned()]));
    drop((mount, root));
    let place = [new.path().to_owned(), parity.path().to_owned()];
    let protection = find(&place).unwrap().remove(0);
    let report = repair(&protection, &RepairJob::default().sync(false), &|_| {}).unwrap();
    assert_eq!((report.restored.len(), report.failed.len()), (3, 0), "{report:?}");
    assert_eq!(protection.root(), new.path());
}

/// A disk is mounted over protected files, and the protection stays on one file system: the files
/// are not missing, and a repair writes nothing onto that disk.
#[test]
fn a_disk_over_protected_files_hides_them() {
    let root = yard();
    let folder = root.path().join("folder");
    fs::create_dir(&folder).unwrap();
    fill(&folder);
    let files = protected(&plenty(root.path()).one_file_system(true)).files;
    let Some(mount) = Mount::new(&MEMORY, &folder) else { return };
    for is_empty in [true, false] {
        if !is_empty {
            fs::write(folder.join("other"), "of that disk").unwrap();
        }
        let report = check(root.path());
        assert_eq!(report.status, State::Unknown, "{report:?}");
        let report = repaired(root.path(), RepairJob::default());
        assert!(report.restored.is_empty(), "{report:?}");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), usize::from(!is_empty));
        let report = updated(root.path());
        assert_eq!((report.kept, report.gone), (files, 0), "{report:?}");
    }
    drop(mount);
    assert_eq!(check(root.path()).status, State::Intact);
    // The disk did not become a part of the protection: the files that were hidden may be damaged.
    for number in 1..4 {
        fs::write(folder.join(number.to_string()), "rewritten").unwrap();
    }
    assert_ne!(check(root.path()).status, State::Unknown);
}

/// Returns a file system whose times are whole seconds: ext4 with inodes of 128 bytes.
fn coarse_disk(image: &Path, at: &Path) -> Option<Mount> {
    fs::File::create(image).unwrap().set_len(16 << 20).unwrap();
    let made = Command::new("mkfs.ext4").args(["-q", "-I", "128"]).arg(image).output();
    if !made.is_ok_and(|made| made.status.success()) {
        not_run("there is no mkfs.ext4");
        return None;
    }
    Mount::new(&["-o", "loop", image.to_str().unwrap()], at)
}

/// A file is written, protected, and written again within a second: its times are the same. Older
/// files have times that distinguish decay.
#[test]
fn a_second_write_within_a_second_is_a_change() {
    let (place, root) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let Some(_mount) = coarse_disk(&place.path().join("image"), root.path()) else { return };
    fill(root.path());
    std::thread::sleep(Duration::from_secs(4));
    let file = root.path().join("new");
    let written_again = (0..5).any(|_| {
        fs::write(&file, [1; 6_000]).unwrap();
        let then = fs::metadata(&file).unwrap().ctime();
        protected(&plenty(root.path()).force(true));
        rewrite(&file, 0, &[2; 6_000]);
        fs::metadata(&file).unwrap().ctime() == then
    });
    if !written_again {
        not_run("the machine is too slow to write twice within a second");
        return;
    }
    let state = |report: &paritas_protect::VerifyReport| report.findings[0].state.clone();
    let report = check(root.path());
    assert!(matches!(state(&report), FileState::Changed(_)), "{report:?}");
    repaired(root.path(), RepairJob::default());
    assert_eq!(fs::read(&file).unwrap(), [2; 6_000]);
    updated(root.path());
    assert_eq!(check(root.path()).status, State::Intact);
}
