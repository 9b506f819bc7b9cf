//! Disks above what is protected: at a folder that leads to a given path, or at the root itself.

#![cfg(target_os = "linux")]

use std::fs;

use crate::common::check;
use crate::people::{MEMORY, Mount, fill, plenty, protected, repaired, updated, yard};
use paritas_protect::{ProtectJob, RepairJob, State, find, repair};

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
