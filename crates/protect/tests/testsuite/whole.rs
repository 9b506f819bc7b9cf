//! The way from a tree to its parity and back: protect, verify, repair.

use crate::common;
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::{
    Chance, assert_same, check, flip, job, make, make_tree, mend, remove_copies, snapshot,
};
use paritas_protect::{ErrorKind, FileState, State, VerifyOptions, find, plan, protect, verify};

#[test]
fn what_is_untouched_is_intact() {
    let root = tempfile::tempdir().unwrap();
    make_tree(root.path(), &mut Chance::new(1), 40, 300_000);
    let before = snapshot(root.path());
    let report = make(&job(root.path()));
    assert_eq!((report.files, report.skipped.len()), (40, 0));
    assert_eq!(report.parity_files.len(), 5);
    assert_same(&snapshot(root.path()), &before, "protecting");
    let report = check(root.path());
    assert_eq!(report.status, State::Intact, "{report:?}");
    assert_eq!((report.files, report.intact_files), (40, 40));
    assert!(report.findings.is_empty() && report.new.is_empty(), "{report:?}");
}

/// A run that was interrupted early leaves an empty folder for parity.
#[test]
fn an_empty_folder_for_parity_is_no_protection() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("file"), b"bytes").unwrap();
    fs::create_dir(root.path().join(".paritas")).unwrap();
    let error = find(&[root.path().to_owned()]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotRecognised);
    assert!(error.to_string().contains("there is no protection"), "{error}");
    fs::write(root.path().join(".paritas/root-1of5.parity"), b"").unwrap();
    let error = find(&[root.path().to_owned()]).unwrap_err();
    assert!(error.to_string().contains("no parity file has enough"), "{error}");
}

#[test]
fn flips_and_losses_are_repaired() {
    let root = tempfile::tempdir().unwrap();
    make_tree(root.path(), &mut Chance::new(2), 40, 300_000);
    let before = snapshot(root.path());
    make(&job(root.path()));
    let files: Vec<_> =
        fs::read_dir(root.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    let mut files: Vec<_> =
        files.into_iter().filter(|path| path.is_file() && !path.is_symlink()).collect();
    files.sort();
    let big = files.iter().max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap();
    flip(big, 100);
    let small = files.iter().min_by_key(|path| fs::metadata(path).unwrap().len()).unwrap();
    fs::remove_file(small).unwrap();
    let report = check(root.path());
    assert_eq!(report.status, State::Repairable, "{report:?}");
    assert_eq!(report.findings.len(), 2);
    let report = mend(root.path());
    assert_eq!(report.restored.len(), 2, "{report:?}");
    assert_same(&snapshot(root.path()), &before, "repairing");
    assert_eq!(check(root.path()).status, State::Intact);
}

/// A protection repairs as many lost blocks as it has parity blocks, and not one more.
#[test]
fn the_last_block_counts() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("file");
    common::write(&file, &Chance::new(3).bytes(200_000), 0o640, 7);
    let before = snapshot(root.path());
    let geometry = make(&job(root.path())).geometry;
    for lost in [geometry.parity, geometry.parity + 1] {
        (0..lost).for_each(|block| flip(&file, block * 3 * geometry.block));
        let damaged = snapshot(root.path());
        let report = check(root.path());
        let layer = &report.layers[0];
        assert_eq!((layer.lost, layer.at_hand), (lost, geometry.parity));
        let FileState::Damaged(ranges) = &report.findings[0].state else { panic!("{report:?}") };
        assert_eq!(ranges.len() as u64, lost);
        let repaired = mend(root.path());
        if lost == geometry.parity {
            assert_eq!((report.status, layer.needed, layer.left), (State::Repairable, 0, 0));
            assert_same(&snapshot(root.path()), &before, "repairing");
            remove_copies(root.path());
        } else {
            assert_eq!((report.status, layer.needed), (State::Lost, 1));
            assert_eq!(repaired.found.status, State::Lost);
            assert_same(&snapshot(root.path()), &damaged, "refusing");
        }
    }
}

/// Protecting and verifying read every byte once, protecting with little memory twice; the parity
/// is the same.
#[test]
fn bytes_are_read_once() {
    let root = tempfile::tempdir().unwrap();
    make_tree(root.path(), &mut Chance::new(4), 30, 3_000_000);
    let read = AtomicU64::new(0);
    let count = |bytes| _ = read.fetch_add(bytes, Ordering::Relaxed);
    let mut layers = Vec::new();
    for (memory, label, passes) in [(1 << 30, "much", 1), (200_000, "little", 2)] {
        let plan = plan(&job(root.path()).memory(memory).label(label.to_owned())).unwrap();
        assert!(plan.passes >= passes, "{plan:?}");
        read.store(0, Ordering::Relaxed);
        let report = protect(&plan, &count).unwrap();
        let bytes = plan.geometry.length;
        assert!(read.load(Ordering::Relaxed) <= passes * bytes, "{label}");
        assert!(read.load(Ordering::Relaxed) <= plan.bytes_to_read);
        assert!(passes > 1 || plan.bytes_to_read == bytes);
        layers.push(report);
    }
    let found = find(&[root.path().to_owned()]).unwrap();
    assert_eq!(found.len(), 2);
    for protection in &found {
        read.store(0, Ordering::Relaxed);
        let report = verify(protection, &VerifyOptions::default(), &count).unwrap();
        assert_eq!(report.status, State::Intact);
        assert_eq!(read.load(Ordering::Relaxed), protection.bytes_to_verify());
    }
    // The checksums of blocks begin with the layer's id, the blocks do not.
    let geometry = layers[0].geometry;
    let rows = |file: &std::path::Path| {
        let bytes = fs::read(file).unwrap();
        let row = geometry.block as usize;
        bytes[192..192 + row].to_vec()
    };
    for (one, other) in layers[0].parity_files.iter().zip(&layers[1].parity_files) {
        assert!(rows(one) == rows(other) && rows(one).iter().any(|&byte| byte != 0));
    }
}
