//! Changes on purpose: files are moved, edited, touched and added. The tests look at what a repair
//! and an update make of that.

#![cfg(unix)]

mod common;

use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::num::NonZeroUsize;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use common::{
    Chance, age, assert_same, check, damage, flip, job, make, make_tree, mend, only, snapshot,
    write,
};
use paritas_protect::{
    ErrorKind, FileState, ProtectJob, RepairJob, RepairReport, Status, UpdateJob, UpdateReport,
    Updated, VerifyOptions, find, plan, protect, repair, update, verify,
};

/// Makes a tree with two folders and some files, and protects it.
fn scene(seed: u64) -> tempfile::TempDir {
    scene_with(seed, "30%")
}

fn scene_with(seed: u64, redundancy: &str) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let mut chance = Chance::new(seed);
    for folder in ["one", "two"] {
        fs::create_dir(root.path().join(folder)).unwrap();
        for number in 0..6 {
            let path = root.path().join(folder).join(number.to_string());
            write(&path, &chance.bytes(3_000 + 2_000 * number), 0o644, number as u64);
        }
    }
    make(&job(root.path()).redundancy(redundancy.parse().unwrap()));
    root
}

fn repaired(root: &Path, job: RepairJob) -> RepairReport {
    repair(&only(root), &job.sync(false), &|_| {}).unwrap()
}

/// Repairs, and calls `change` when everything was read for verification.
fn repaired_amid(root: &Path, job: RepairJob, change: impl Fn() + Sync) -> RepairReport {
    let (all, read) = (AtomicU64::new(0), AtomicU64::new(0));
    let count = |bytes| _ = all.fetch_add(bytes, Ordering::Relaxed);
    verify(&only(root), &VerifyOptions::default(), &count).unwrap();
    let progress = |bytes| {
        if read.fetch_add(bytes, Ordering::Relaxed) + bytes == all.load(Ordering::Relaxed) {
            change();
        }
    };
    repair(&only(root), &job.sync(false), &progress).unwrap()
}

/// The place of something that a killed repair has left in a folder.
fn leftover(root: &Path, folder: &Path) -> PathBuf {
    let id = only(root).id().to_string();
    folder.join(format!(".paritas-{}-0123456789abcdef.tmp", &id[..8]))
}

fn parity_files(root: &Path) -> Vec<PathBuf> {
    let folder = root.join(".paritas");
    names(&folder).into_iter().map(|name| folder.join(name)).collect()
}

fn updated(root: &Path) -> UpdateReport {
    update(&only(root), &UpdateJob::default().sync(false), &|_| {}).unwrap()
}

#[test]
fn moved_files_are_known_by_their_bytes() {
    let root = scene(1);
    let before = snapshot(root.path());
    let (from, to) = (root.path().join("one/5"), root.path().join("two/elsewhere"));
    fs::rename(&from, &to).unwrap();
    let report = check(root.path());
    assert_eq!((report.status, report.intact_files), (Status::Intact, 12));
    assert_eq!(report.findings[0].state, FileState::Moved(to.clone()));
    assert!(report.new.is_empty() && report.layers[0].lost == 0, "{report:?}");
    // It stays where it is, unless the caller wants it back.
    assert!(mend(root.path()).restored.is_empty() && to.exists());
    let report = repaired(root.path(), RepairJob::default().move_back(true));
    assert_eq!(report.moved_back, [(to, from)]);
    assert_same(&snapshot(root.path()), &before, "moving back");
}

#[test]
fn changed_files_are_not_reverted_unasked() {
    let root = scene(2);
    let before = snapshot(root.path());
    let path = root.path().join("one/3");
    fs::write(&path, "edited").unwrap();
    age(&root.path().join("two/1"), 99);
    let edited = snapshot(root.path());
    let report = check(root.path());
    assert_eq!(report.status, Status::Repairable);
    assert!(matches!(report.findings[0].state, FileState::Changed(_)), "{report:?}");
    assert_eq!(report.findings[1].state, FileState::Touched);
    assert!(mend(root.path()).restored.is_empty());
    assert_same(&snapshot(root.path()), &edited, "leaving changes");
    let report = repaired(root.path(), RepairJob::default().restore_changed(true));
    assert_eq!(report.restored, [path]);
    age(&root.path().join("two/1"), 1);
    assert_same(&snapshot(root.path()), &before, "reverting");
}

/// Changes take from what can be repaired, and are no damage themselves.
#[test]
fn many_changes_are_no_loss() {
    let root = scene(17);
    for number in 0..6 {
        fs::write(root.path().join(format!("one/{number}")), "edited").unwrap();
    }
    let edited = snapshot(root.path());
    let report = check(root.path());
    assert_eq!((report.status, report.layers[0].left), (Status::Repairable, 0));
    assert!(report.layers[0].needed > 0, "{report:?}");
    assert_eq!(mend(root.path()).found.status, Status::Repairable);
    let job = RepairJob::default().restore_changed(true);
    assert_eq!(repaired(root.path(), job).found.status, Status::BeyondRepair);
    assert_same(&snapshot(root.path()), &edited, "refusing");
    flip(&root.path().join("two/5"), 9);
    assert_eq!(check(root.path()).status, Status::BeyondRepair);
    let error = update(&only(root.path()), &UpdateJob::default(), &|_| {}).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CheckFailed);
    flip(&root.path().join("two/5"), 9);
    assert_eq!(updated(root.path()).updated, Updated::Anew);
}

/// A file that someone changes during a repair stays.
#[test]
fn changes_during_a_repair_stay() {
    let root = scene(18);
    let path = root.path().join("two/3");
    flip(&path, 9);
    let change = |_| {
        fs::write(&path, "edited meanwhile").unwrap();
    };
    let report = repair(&only(root.path()), &RepairJob::default().sync(false), &change).unwrap();
    assert!(report.restored.is_empty(), "{report:?}");
    assert_eq!(fs::read(&path).unwrap(), b"edited meanwhile");
}

/// A link never takes the place of somebody's own file.
#[test]
fn own_files_stay_where_links_were() {
    let root = tempfile::tempdir().unwrap();
    let [file, name, link] = ["a", "b", "c"].map(|name| root.path().join(name));
    write(&file, &Chance::new(21).bytes(9_000), 0o644, 1);
    fs::hard_link(&file, &name).unwrap();
    symlink("a", &link).unwrap();
    make(&job(root.path()));
    // Somebody has replaced one name of a file, then the file is damaged.
    fs::remove_file(&name).unwrap();
    fs::write(&name, "own").unwrap();
    flip(&file, 9);
    assert_eq!(mend(root.path()).restored, std::slice::from_ref(&file));
    assert_eq!(fs::read(&name).unwrap(), b"own");
    // A file appears where a link is missing.
    for path in [&name, &link] {
        fs::remove_file(path).unwrap();
    }
    let report = repaired_amid(root.path(), RepairJob::default(), || {
        fs::write(&name, "own").unwrap();
        fs::write(&link, "own").unwrap();
    });
    assert_eq!((report.restored.len(), report.failed.len()), (0, 2), "{report:?}");
    // And in another folder, where a second run finds what the first one has made.
    let to = tempfile::tempdir().unwrap();
    flip(&file, 9);
    fs::remove_file(&link).unwrap();
    fs::write(to.path().join("c"), "own").unwrap();
    for _ in 0..2 {
        let report = repaired(root.path(), RepairJob::default().to(to.path().to_owned()));
        assert_eq!((report.restored.len(), report.failed.len()), (2, 1), "{report:?}");
        assert_eq!(fs::read(to.path().join("c")).unwrap(), b"own");
    }
    assert_eq!((names(root.path()).len(), names(to.path()).len()), (3, 3));
    assert_eq!(fs::read(&name).unwrap(), b"own");
}

/// Parity that is written anew is of the bytes that were protected, or is not written.
#[test]
fn parity_is_not_made_of_changed_bytes() {
    let root = scene(22);
    let before = snapshot(root.path());
    let lost = parity_files(root.path()).remove(0);
    let parity = fs::read(&lost).unwrap();
    fs::remove_file(&lost).unwrap();
    let victim = root.path().join("two/5");
    for memory in [1 << 30, 20_000] {
        let job = RepairJob::default().memory(memory);
        let report = repaired_amid(root.path(), job, || flip(&victim, 12_000));
        assert!(report.parity.is_empty() && report.failed[0].path == lost, "{report:?}");
        assert!(!lost.exists());
        flip(&victim, 12_000);
    }
    assert_eq!(mend(root.path()).parity, std::slice::from_ref(&lost));
    assert_eq!(fs::read(&lost).unwrap(), parity);
    assert_same(&snapshot(root.path()), &before, "repairing parity");
}

/// A parity block that was good and is damaged a moment later gets no new checksum.
#[test]
fn damaged_parity_is_not_sealed() {
    let root = scene(23);
    let path = parity_files(root.path()).remove(0);
    let block = only(root.path()).geometries().next().unwrap().block;
    flip(&path, 192 + 5);
    // The parity block after the damaged one.
    let next = 192 + block + 8 + 5;
    let report = repaired_amid(root.path(), RepairJob::default(), || flip(&path, next));
    assert!(report.parity.is_empty() && report.failed[0].path == path, "{report:?}");
    assert_eq!(check(root.path()).parity[0].damaged_blocks, 2);
    assert_eq!(mend(root.path()).parity, [path]);
    assert_eq!(check(root.path()).status, Status::Intact);
}

/// What goes wrong in one layer does not keep another one from being repaired.
#[test]
fn a_repair_goes_on_after_errors() {
    let root = scene_with(24, "100%");
    let new = root.path().join("new");
    write(&new, &Chance::new(25).bytes(9_000), 0o644, 50);
    assert_eq!(updated(root.path()).updated, Updated::Layer);
    let (old, other) = (root.path().join("one/5"), root.path().join("two/5"));
    flip(&old, 9);
    flip(&new, 9);
    let report = repaired_amid(root.path(), RepairJob::default(), || flip(&other, 9));
    assert_eq!(report.restored, [new]);
    assert_eq!(report.failed[0].path, old);
    flip(&other, 9);
    assert_eq!(mend(root.path()).restored, [old]);
}

/// A file that is replaced may have the only bytes of another one.
#[test]
fn files_are_replaced_when_all_are_complete() {
    let root = scene(26);
    let (old, new) = (root.path().join("one/0"), root.path().join("new"));
    write(&new, &Chance::new(27).bytes(40_000), 0o644, 50);
    assert_eq!(updated(root.path()).updated, Updated::Layer);
    let before = snapshot(root.path());
    fs::rename(&new, &old).unwrap();
    let report = repaired(root.path(), RepairJob::default().restore_changed(true));
    assert!(report.failed.is_empty() && report.lost.is_empty(), "{report:?}");
    assert_same(&snapshot(root.path()), &before, "replacing");
    // A repair that was killed after it had replaced the other file has left these bytes.
    let left = leftover(root.path(), root.path());
    fs::rename(&new, &left).unwrap();
    assert_eq!(check(root.path()).status, Status::Repairable);
    assert_eq!(mend(root.path()).restored, [new]);
    assert_same(&snapshot(root.path()), &before, "going on");
}

/// What a killed repair has left goes, wherever it lies.
#[test]
fn leftovers_are_removed() {
    let (root, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (file, foreign) = (root.path().join("file"), root.path().join(".paritas-other.tmp"));
    write(&file, &Chance::new(28).bytes(9_000), 0o644, 1);
    make(&job(&file));
    fs::write(&foreign, "own").unwrap();
    for folder in [&root, &to] {
        let left = leftover(&file, folder.path());
        fs::write(&left, "left").unwrap();
        let is_elsewhere = folder.path() == to.path();
        flip(&file, 9);
        let job = RepairJob::default().to(is_elsewhere.then(|| to.path().to_owned()));
        let report = repair(&only(&file), &job.sync(false), &|_| {}).unwrap();
        assert!(report.restored.len() == 1 && !left.exists() && foreign.exists(), "{report:?}");
    }
}

/// One file cannot be two that were moved, but its bytes serve both.
#[test]
fn equal_files_are_moved_one_by_one() {
    let root = scene(29);
    let [one, two, to] = ["one/same", "two/same", "elsewhere"].map(|path| root.path().join(path));
    let bytes = Chance::new(30).bytes(60_000);
    write(&one, &bytes, 0o644, 1);
    write(&two, &bytes, 0o644, 2);
    make(&job(root.path()).redundancy("5%".parse().unwrap()).force(true));
    fs::rename(&one, &to).unwrap();
    fs::remove_file(&two).unwrap();
    let report = check(root.path());
    assert_eq!(report.status, Status::Repairable);
    let states: Vec<_> = report.findings.iter().map(|finding| finding.state.clone()).collect();
    assert_eq!(states, [FileState::Moved(to.clone()), FileState::Missing]);
    let report = repaired(root.path(), RepairJob::default().move_back(true));
    assert_eq!((report.moved_back, report.restored), (vec![(to, one)], vec![two]));
    assert_eq!(check(root.path()).status, Status::Intact);
}

/// Damaged parity of one layer can be repaired although another layer lacks blocks.
#[test]
fn layers_are_judged_one_by_one() {
    let root = scene(31);
    write(&root.path().join("new"), &Chance::new(32).bytes(9_000), 0o644, 50);
    assert_eq!(updated(root.path()).updated, Updated::Layer);
    for number in 0..6 {
        fs::write(root.path().join(format!("one/{number}")), "edited").unwrap();
    }
    let is_newer = |path: &PathBuf| path.to_string_lossy().contains(".layer1.");
    let lost = parity_files(root.path()).into_iter().find(is_newer).unwrap();
    fs::remove_file(&lost).unwrap();
    let report = check(root.path());
    assert!(report.layers[0].needed > 0, "{report:?}");
    assert_eq!(report.status, Status::Repairable);
    let report = mend(root.path());
    assert_eq!((report.found.status, report.parity), (Status::Repairable, vec![lost]));
}

/// A protected file leads to the protections that it belongs to.
#[test]
fn a_file_finds_its_protection() {
    let root = tempfile::tempdir().unwrap();
    for name in ["a", "b"] {
        write(&root.path().join(name), name.as_bytes(), 0o644, 1);
        make(&job(&root.path().join(name)));
    }
    assert_eq!(find(&[root.path().to_owned()]).unwrap().len(), 2);
    assert_eq!(only(&root.path().join("b")).label(), "b");
}

/// A file in front of which bytes were inserted costs about one block, not all of them.
#[test]
fn shifted_bytes_are_found() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("file");
    write(&path, &Chance::new(3).bytes(300_000), 0o644, 1);
    let before = snapshot(root.path());
    let geometry = make(&job(root.path())).geometry;
    for inserted in [1, 100, 5000] {
        let bytes = fs::read(&path).unwrap();
        let longer = [Chance::new(4).bytes(inserted), bytes.clone()].concat();
        damage(&path, |file| {
            file.write_all_at(&longer, 0).unwrap();
        });
        let report = check(root.path());
        assert!(report.layers[0].lost <= 1 && geometry.data > 100, "{report:?}");
        mend(root.path());
        assert_same(&snapshot(root.path()), &before, "shifting back");
        // The beginning is gone, and the rest has another name.
        let cut = &bytes[inserted..];
        fs::remove_file(&path).unwrap();
        fs::write(root.path().join("rest"), cut).unwrap();
        let report = check(root.path());
        let most = (inserted as u64).div_ceil(geometry.block) + 1;
        assert!(report.layers[0].lost <= most, "{report:?}");
        mend(root.path());
        fs::remove_file(root.path().join("rest")).unwrap();
        assert_same(&snapshot(root.path()), &before, "joining");
    }
}

#[test]
fn results_may_go_elsewhere() {
    let (root, to) = (scene(5), tempfile::tempdir().unwrap());
    let original = fs::read(root.path().join("one/4")).unwrap();
    flip(&root.path().join("one/4"), 77);
    let damaged = snapshot(root.path());
    let report = repaired(root.path(), RepairJob::default().to(to.path().to_owned()));
    assert_eq!(report.restored, [to.path().join("one/4")]);
    assert!(fs::read(to.path().join("one/4")).unwrap() == original);
    assert_same(&snapshot(root.path()), &damaged, "restoring elsewhere");
    // Once more: what is there counts, and what is somebody's own stays.
    let report = repaired(root.path(), RepairJob::default().to(to.path().to_owned()));
    assert_eq!((report.restored.len(), report.failed.len()), (1, 0));
    fs::write(to.path().join("one/4"), "own").unwrap();
    let report = repaired(root.path(), RepairJob::default().to(to.path().to_owned()));
    assert_eq!((report.restored.len(), report.failed.len()), (0, 1));
    assert_eq!(fs::read(to.path().join("one/4")).unwrap(), b"own");
}

/// A repair never writes through a link that has taken a folder's place.
#[test]
fn nothing_is_written_through_links() {
    let (root, outside) = (scene_with(6, "100%"), tempfile::tempdir().unwrap());
    fs::remove_dir_all(root.path().join("one")).unwrap();
    symlink(outside.path(), root.path().join("one")).unwrap();
    for restore_changed in [false, true] {
        let job = RepairJob::default().restore_changed(restore_changed);
        let report = repaired(root.path(), job);
        assert!(report.failed.len() >= 6, "{report:?}");
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    }
}

#[test]
fn quick_checks_trust_sizes_and_times() {
    let root = scene(7);
    let options = VerifyOptions::default().quick(true);
    let quick = || verify(&only(root.path()), &options, &|_| panic!("nothing is read")).unwrap();
    assert_eq!(quick().status, Status::Intact);
    flip(&root.path().join("one/1"), 5);
    assert_eq!(quick().status, Status::Intact);
    fs::remove_file(root.path().join("two/2")).unwrap();
    let report = quick();
    assert_eq!((report.status, report.findings.len()), (Status::Repairable, 1));
    assert!(report.layers[0].lost > 0);
}

#[test]
fn updates_add_layers_until_all_is_made_anew() {
    let root = scene_with(8, "100%");
    assert_eq!(updated(root.path()).updated, Updated::Nothing);
    // A new file, a changed one, a renamed one, a removed one.
    let mut chance = Chance::new(9);
    write(&root.path().join("new"), &chance.bytes(5_000), 0o644, 50);
    write(&root.path().join("one/0"), &chance.bytes(2_500), 0o644, 51);
    fs::rename(root.path().join("one/1"), root.path().join("two/renamed")).unwrap();
    fs::remove_file(root.path().join("two/0")).unwrap();
    let before = snapshot(root.path());
    let report = updated(root.path());
    assert_eq!(report.updated, Updated::Layer);
    assert_eq!((report.kept, report.added, report.changed, report.gone), (10, 1, 1, 1));
    let report = check(root.path());
    assert!(report.status == Status::Intact && report.findings.is_empty(), "{report:?}");
    assert_eq!((report.layers.len(), report.files), (2, 12));
    assert!(report.layers[0].lost > 0 && report.layers[0].left > 0);
    for path in ["new", "one/0", "two/renamed"] {
        fs::remove_file(root.path().join(path)).unwrap();
        mend(root.path());
        assert_same(&snapshot(root.path()), &before, path);
    }
    // Changes to times alone need no blocks, and do not pile up.
    for seconds in 60..63 {
        age(&root.path().join("new"), seconds);
        assert_eq!(updated(root.path()).updated, Updated::Layer);
        let report = check(root.path());
        assert!(report.layers.len() == 3 && report.findings.is_empty(), "{report:?}");
    }
    for path in ["one/2", "one/3", "one/4", "one/5", "two/5", "two/4"] {
        fs::remove_file(root.path().join(path)).unwrap();
    }
    let report = updated(root.path());
    assert_eq!(report.updated, Updated::Anew);
    let report = check(root.path());
    assert!(report.status == Status::Intact && report.findings.is_empty(), "{report:?}");
    assert_eq!((report.layers.len(), report.layers[0].lost), (1, 0));
    let parity = fs::read_dir(root.path().join(".paritas")).unwrap().count();
    assert_eq!(parity, 5);
}

/// An update never takes the bytes of a damaged file for a change.
#[test]
fn damage_is_no_change() {
    let root = scene(10);
    let before = snapshot(root.path());
    flip(&root.path().join("one/2"), 9);
    let parity = || snapshot(&root.path().join(".paritas"));
    let old = parity();
    for job in [UpdateJob::default().checksum(true), UpdateJob::default().anew(true)] {
        let error = update(&only(root.path()), &job.sync(false), &|_| {}).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CheckFailed, "{error}");
        assert_same(&parity(), &old, "refusing");
    }
    mend(root.path());
    assert_same(&snapshot(root.path()), &before, "repairing");
    let job = UpdateJob::default().anew(true).sync(false);
    update(&only(root.path()), &job, &|_| {}).unwrap();
    assert_eq!(check(root.path()).status, Status::Intact);
}

/// A file that was cut and has its old time is damaged, not changed.
#[test]
fn a_cut_file_is_no_change() {
    let root = scene(19);
    let before = snapshot(root.path());
    damage(&root.path().join("one/2"), |file| file.set_len(100).unwrap());
    let old = names(&root.path().join(".paritas"));
    let job = UpdateJob::default().sync(false);
    let error = update(&only(root.path()), &job, &|_| {}).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CheckFailed, "{error}");
    assert_eq!(names(&root.path().join(".paritas")), old);
    mend(root.path());
    assert_same(&snapshot(root.path()), &before, "repairing");
    assert_eq!(updated(root.path()).updated, Updated::Nothing);
}

/// Whether this process is held to the permissions of files. Root's is not: then the test runs
/// once more, in a process without root's capabilities.
fn is_held_to_permissions(test: &str) -> bool {
    let probe = tempfile::NamedTempFile::new().unwrap();
    forbid(probe.path(), 0);
    if File::open(probe.path()).is_err() {
        return true;
    }
    let mut command = Command::new("setpriv");
    command.arg("--bounding-set=-dac_override,-dac_read_search");
    command.arg(std::env::current_exe().unwrap()).args(["--exact", test]);
    assert!(command.status().unwrap().success());
    false
}

fn forbid(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// An update does not take for removed or changed what it cannot read, and says what it has not
/// protected.
#[test]
fn what_cannot_be_read_is_not_gone() {
    if !is_held_to_permissions("what_cannot_be_read_is_not_gone") {
        return;
    }
    let root = scene(20);
    let parity = || names(&root.path().join(".paritas"));
    let old = parity();
    let refused = |path: &str, checksum: bool| {
        let job = UpdateJob::default().checksum(checksum).sync(false);
        let error = update(&only(root.path()), &job, &|_| {}).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
        assert!(error.to_string().contains(path), "{error}");
        assert_eq!(parity(), old);
    };
    for mode in [0, 0o444] {
        forbid(&root.path().join("one"), mode);
        refused("one", false);
    }
    forbid(&root.path().join("one"), 0o755);
    forbid(&root.path().join("one/2"), 0);
    refused("one/2", true);
    forbid(&root.path().join("one/2"), 0o644);
    // Nothing is protected in a folder that never could be read.
    fs::create_dir(root.path().join("closed")).unwrap();
    forbid(&root.path().join("closed"), 0);
    for expected in [Updated::Layer, Updated::Nothing] {
        let report = updated(root.path());
        assert_eq!((report.updated, report.skipped.len()), (expected, 1));
        assert_eq!(report.skipped[0].path, root.path().join("closed"));
    }
}

/// When everything is made anew, a protected file that cannot be read any more keeps the old
/// parity.
#[test]
fn unreadable_files_are_not_given_up() {
    let (root, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for (name, bytes) in [("a", 1_500_000), ("b", 50_000)] {
        write(&root.path().join(name), &Chance::new(21).bytes(bytes), 0o644, 1);
    }
    make(&job(root.path()));
    let old = names(&root.path().join(".paritas"));
    let (file, away) = (root.path().join("b"), outside.path().join("b"));
    let take_away = |_| _ = fs::rename(&file, &away);
    let job = UpdateJob::default().anew(true).threads(NonZeroUsize::new(1)).sync(false);
    let error = update(&only(root.path()), &job, &take_away).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CheckFailed, "{error}");
    assert!(!file.exists() && names(&root.path().join(".paritas")) == old);
    mend(root.path());
    assert_eq!(fs::read(&file).unwrap(), fs::read(&away).unwrap());
}

/// Adds a file and a layer for it, and returns the paths of the layer's parity files.
fn add_layer(root: &Path) -> Vec<PathBuf> {
    let folder = root.join(".paritas");
    let old = names(&folder);
    write(&root.join("new"), &Chance::new(22).bytes(5_000), 0o644, 50);
    assert_eq!(updated(root).updated, Updated::Layer);
    let new = names(&folder).into_iter().filter(|name| !old.contains(name));
    new.map(|name| folder.join(name)).collect()
}

/// If a layer is lost, hard links to its files do not make the other layers unusable.
#[test]
fn links_into_a_lost_layer_do_no_harm() {
    let root = scene(22);
    fs::hard_link(root.path().join("one/4"), root.path().join("two/again")).unwrap();
    make(&job(root.path()).redundancy("100%".parse().unwrap()).force(true));
    let folder = root.path().join(".paritas");
    let old = names(&folder);
    add_layer(root.path());
    // The newer layer still has the link.
    assert!(check(root.path()).new.is_empty());
    assert_eq!(updated(root.path()).updated, Updated::Nothing);
    old.iter().for_each(|name| fs::remove_file(folder.join(name)).unwrap());
    let report = check(root.path());
    assert_eq!((report.status, report.unreadable_layers), (Status::BeyondRepair, 1));
    assert_eq!(report.files, 1);
    assert_eq!(updated(root.path()).updated, Updated::Anew);
    let report = check(root.path());
    assert_eq!((report.status, report.files), (Status::Intact, 13));
}

/// If the newest layer cannot be read, its files are not simply new.
#[test]
fn a_newest_layer_that_cannot_be_read_is_said() {
    let root = scene_with(23, "100%");
    for path in add_layer(root.path()) {
        let mut bytes = fs::read(&path).unwrap();
        let end = bytes.len() - 192;
        bytes[192..end].fill(0);
        fs::write(&path, bytes).unwrap();
    }
    let report = check(root.path());
    assert_eq!((report.status, report.unreadable_layers), (Status::BeyondRepair, 1));
    assert_eq!(updated(root.path()).updated, Updated::Anew);
    let report = check(root.path());
    assert_eq!((report.status, report.unreadable_layers), (Status::Intact, 0));
}

/// Parity files that another process is about to name are not taken for those that a killed process
/// has left.
#[test]
fn parity_that_is_being_named_stays() {
    let root = scene_with(24, "100%");
    let files = add_layer(root.path());
    fs::remove_file(root.path().join("new")).unwrap();
    let temporary = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        path.with_file_name(format!(".{name}.0123abcd.tmp"))
    };
    let outside = tempfile::tempdir().unwrap();
    let (first, others) = files.split_first().unwrap();
    fs::rename(first, temporary(first)).unwrap();
    let away = |path: &PathBuf| outside.path().join(path.file_name().unwrap());
    let copy = |from: &Path, to: &Path| {
        fs::copy(from, to).unwrap();
        fs::remove_file(from).unwrap();
    };
    others.iter().for_each(|path| copy(path, &away(path)));
    let found = only(root.path());
    others.iter().for_each(|path| copy(&away(path), &temporary(path)));
    let report = update(&found, &UpdateJob::default().sync(false), &|_| {}).unwrap();
    assert_eq!(report.updated, Updated::Nothing);
    assert!(files.iter().all(|path| temporary(path).exists()));
    // What really is left goes.
    others.iter().for_each(|path| fs::remove_file(temporary(path)).unwrap());
    assert_eq!(updated(root.path()).updated, Updated::Nothing);
    assert!(!temporary(first).exists());
}

/// Parity never lies among the files that it protects, where an update would protect it as well.
#[test]
fn parity_does_not_protect_itself() {
    let root = scene(25);
    let inside = root.path().join("one/parity");
    fs::create_dir(&inside).unwrap();
    let job = |folder: &Path| {
        job(root.path()).label("other".to_owned()).parity_dirs(vec![folder.to_owned()])
    };
    for folder in [root.path(), &inside] {
        let error = plan(&job(folder)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Parameters, "{error}");
    }
    plan(&job(&root.path().join(".paritas"))).unwrap();
    plan(&job(&inside).excludes(vec!["parity".to_owned()])).unwrap();
    fs::remove_dir(&inside).unwrap();
    fs::rename(root.path().join(".paritas"), &inside).unwrap();
    let error = update(&only(&inside), &UpdateJob::default(), &|_| {}).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Parameters, "{error}");
}

/// A folder that was chosen for parity may be called `.paritas`, too. The folder above it is not
/// the root.
#[test]
fn a_chosen_folder_may_have_the_usual_name() {
    let (root, disk) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write(&root.path().join("a"), &Chance::new(26).bytes(5_000), 0o644, 1);
    let folder = disk.path().join(".paritas");
    fs::create_dir(&folder).unwrap();
    make(&job(root.path()).parity_dirs(vec![folder.clone()]));
    for paths in [vec![folder.clone()], vec![root.path().to_owned(), folder.clone()]] {
        let found = find(&paths).unwrap();
        assert_eq!(found[0].root(), root.path().canonicalize().unwrap());
    }
    assert_eq!(check(&folder).status, Status::Intact);
}

/// A name of dots alone is no label, and everything can be made anew.
#[test]
fn names_of_dots_have_a_label() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("...");
    write(&path, b"bytes", 0o644, 1);
    make(&job(&path));
    assert_eq!(only(&path).label(), "root");
    let job = UpdateJob::default().anew(true).sync(false);
    update(&only(&path), &job, &|_| {}).unwrap();
}

#[test]
fn what_cannot_be_protected_is_said() {
    let root = scene(11);
    let error = plan(&job(root.path())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Exists);
    make(&job(root.path()).force(true));
    assert_eq!(fs::read_dir(root.path().join(".paritas")).unwrap().count(), 5);
    make(&job(root.path()).label("other".to_owned()));
    assert_eq!(find(&[root.path().to_owned()]).unwrap().len(), 2);

    let none: Vec<PathBuf> = Vec::new();
    let kind = |error: paritas_protect::Error| error.kind();
    assert_eq!(
        find(&[root.path().join("one")]).map(drop).map_err(kind),
        Err(ErrorKind::NotRecognised)
    );
    assert_eq!(find(&[root.path().join("none")]).map(drop).map_err(kind), Err(ErrorKind::Io));
    let refused = [
        job(root.path()).label("a/b".to_owned()),
        job(root.path()).label(String::new()),
        job(root.path()).excludes(vec!["[".to_owned()]),
        job(root.path()).parity_dirs(vec![root.path().join("one/1")]),
        job(&root.path().join(".paritas")),
        ProtectJob::new(none),
    ];
    for job in refused {
        let error = plan(&job).map(drop).map_err(kind);
        let is_parity = job.paths.iter().any(|path| path.ends_with(".paritas"));
        assert!(error == Err(ErrorKind::Parameters) || is_parity, "{job:?}");
    }
}

#[test]
fn patterns_leave_files_out() {
    let root = tempfile::tempdir().unwrap();
    make_tree(root.path(), &mut Chance::new(12), 10, 1000);
    fs::create_dir_all(root.path().join("cache/inner")).unwrap();
    for name in ["a.tmp", "cache/b", "cache/inner/c", "kept"] {
        write(&root.path().join(name), b"bytes", 0o644, 1);
    }
    let excludes = ["*.tmp", "cache/"].map(str::to_owned).to_vec();
    let report = make(&job(root.path()).excludes(excludes));
    assert_eq!(report.files, 11);
    let report = check(root.path());
    assert!(report.status == Status::Intact && report.new.is_empty(), "{report:?}");
}

/// Several paths have the deepest folder of all as their root, and nothing else in it counts.
#[test]
fn several_paths_have_one_root() {
    let root = tempfile::tempdir().unwrap();
    for folder in ["a/b", "a/c", "d"] {
        fs::create_dir_all(root.path().join(folder)).unwrap();
        write(&root.path().join(folder).join("file"), folder.as_bytes(), 0o644, 1);
    }
    let paths = ["a/b", "a/c/file"].map(|path| root.path().join(path)).to_vec();
    let job = ProtectJob::new(paths).sync(false);
    assert_eq!(make(&job).files, 2);
    let root = root.path().join("a");
    assert_eq!(only(&root).root(), root.canonicalize().unwrap());
    fs::remove_dir_all(root.join("b")).unwrap();
    fs::remove_dir_all(root.join("c")).unwrap();
    mend(&root);
    assert_eq!(fs::read(root.join("b/file")).unwrap(), b"a/b");
    assert_eq!(fs::read(root.join("c/file")).unwrap(), b"a/c");
}

/// A file that changes while it is read is not protected, and all others are.
#[test]
fn files_may_change_while_they_are_read() {
    let root = tempfile::tempdir().unwrap();
    let mut chance = Chance::new(13);
    for (name, bytes) in [("a", 1_500_000), ("b", 50_000), ("c", 1_000)] {
        write(&root.path().join(name), &chance.bytes(bytes), 0o644, 1);
    }
    let job = |root: &Path| job(root).threads(NonZeroUsize::new(1));
    let victim = root.path().join("b");
    let change = |_| {
        if let Ok(file) = fs::OpenOptions::new().append(true).open(&victim) {
            std::io::Write::write_all(&mut &file, b"more").unwrap();
        }
    };
    let planned = plan(&job(root.path())).unwrap();
    let report = protect(&planned, &change).unwrap();
    assert_eq!((report.files, report.skipped.len()), (2, 1));
    assert_eq!(report.skipped[0].path, victim);
    let found = check(root.path());
    assert_eq!((found.status, found.new.len(), found.files), (Status::Intact, 1, 2));
    let blocks = 50_000_u64.div_ceil(report.geometry.block);
    assert!((blocks..=blocks + 1).contains(&report.gap_blocks), "{report:?}");
    assert_eq!(updated(root.path()).added, 1);
    assert_eq!(check(root.path()).files, 3);
    // Passes that would code different bytes are refused.
    let planned = plan(&job(root.path()).memory(200_000).force(true)).unwrap();
    assert!(planned.passes > 1);
    let before = snapshot(&root.path().join(".paritas"));
    let error = protect(&planned, &change).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert_same(&snapshot(&root.path().join(".paritas")), &before, "refusing");
    // So are bytes that change between passes while size and time stay.
    let planned = plan(&job(root.path()).memory(200_000).force(true)).unwrap();
    let (read, length) = (AtomicU64::new(0), planned.geometry.length);
    let change = |bytes| {
        let before = read.fetch_add(bytes, Ordering::Relaxed);
        if before < length && before + bytes >= length {
            let noise = Chance::new(19).bytes(20_000);
            damage(&root.path().join("a"), |file| file.write_all_at(&noise, 700_000).unwrap());
        }
    };
    let error = protect(&planned, &change).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert_same(&snapshot(&root.path().join(".paritas")), &before, "refusing again");
}

/// Little memory gives the same as much.
#[test]
fn repairs_take_little_memory() {
    let root = scene(14);
    let before = snapshot(root.path());
    let parity = snapshot(&root.path().join(".paritas"));
    fs::remove_file(root.path().join("one/5")).unwrap();
    flip(&root.path().join("two/5"), 4_000);
    let (lost, _) = parity.first_key_value().unwrap();
    fs::remove_file(root.path().join(".paritas").join(lost)).unwrap();
    let report = repaired(root.path(), RepairJob::default().memory(20_000));
    assert_eq!((report.restored.len(), report.parity.len()), (2, 1));
    assert_same(&snapshot(root.path()), &before, "repairing");
    let bytes = |thing: &common::Thing| match thing {
        common::Thing::File { bytes, .. } => bytes.clone(),
        other => panic!("{other:?}"),
    };
    let now = snapshot(&root.path().join(".paritas"));
    assert!(now.iter().zip(&parity).all(|(one, other)| bytes(one.1) == bytes(other.1)));
}

/// A hard link still leads to its file when the file is repaired.
#[test]
fn further_names_are_kept() {
    use std::os::unix::fs::MetadataExt;
    let root = scene(15);
    let (file, name) = (root.path().join("one/4"), root.path().join("two/again"));
    fs::hard_link(&file, &name).unwrap();
    make(&job(root.path()).redundancy("30%".parse().unwrap()).force(true));
    let before = snapshot(root.path());
    let is_linked = || fs::metadata(&file).unwrap().ino() == fs::metadata(&name).unwrap().ino();
    flip(&name, 5);
    mend(root.path());
    assert!(is_linked());
    assert_same(&snapshot(root.path()), &before, "repairing both");
    fs::remove_file(&name).unwrap();
    mend(root.path());
    assert!(is_linked());
    // A copy in place of the link is as good. A file with other bytes is someone's own.
    fs::remove_file(&name).unwrap();
    fs::copy(&file, &name).unwrap();
    let report = check(root.path());
    assert_eq!(
        (report.status, report.findings[0].state.clone()),
        (Status::Intact, FileState::Touched)
    );
    fs::write(&name, "other").unwrap();
    assert!(matches!(check(root.path()).findings[0].state, FileState::Changed(_)));
    assert!(mend(root.path()).restored.is_empty());
    repaired(root.path(), RepairJob::default().restore_changed(true));
    assert!(is_linked());
    assert_same(&snapshot(root.path()), &before, "reverting");
}

/// Nobody may read parity who may not read what it is made from.
#[test]
fn parity_is_as_private_as_files() {
    use std::os::unix::fs::PermissionsExt;
    let root = scene(16);
    let modes = |folder: &Path| {
        let files = fs::read_dir(folder).unwrap();
        let mode = |file: std::io::Result<fs::DirEntry>| {
            file.unwrap().metadata().unwrap().permissions().mode() & 0o777
        };
        files.map(mode).fold(0, |all, mode| all | mode)
    };
    let parity = root.path().join(".paritas");
    assert_eq!(modes(&parity), 0o644);
    write(&root.path().join("secret"), b"secret", 0o600, 1);
    make(&job(root.path()).force(true));
    assert_eq!(modes(&parity), 0o600);
    fs::remove_file(fs::read_dir(&parity).unwrap().next().unwrap().unwrap().path()).unwrap();
    mend(root.path());
    assert_eq!(modes(&parity), 0o600);
    // The owner may read and write parity, even that of files that nobody may write.
    write(&root.path().join("secret"), b"secret", 0o400, 1);
    make(&job(root.path()).force(true));
    for path in parity_files(root.path()) {
        fs::remove_file(&path).unwrap();
        mend(root.path());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

/// If two processes protect the same files at once, the second one finds that this is done, and
/// changes nothing.
#[test]
fn two_at_once_make_one_protection() {
    let root = tempfile::tempdir().unwrap();
    make_tree(root.path(), &mut Chance::new(44), 20, 50_000);
    for force in [false, true] {
        let job = job(root.path()).force(force);
        let plans = [plan(&job).unwrap(), plan(&job).unwrap()];
        protect(&plans[0], &|_| {}).unwrap();
        let parity = names(&root.path().join(".paritas"));
        let error = protect(&plans[1], &|_| {}).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
        assert!(error.to_string().contains("another process has protected it meanwhile"));
        assert_eq!(names(&root.path().join(".paritas")), parity);
        assert_eq!(check(root.path()).status, Status::Intact);
    }
}

fn names(folder: &Path) -> Vec<OsString> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<OsString> = entries.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    names
}

/// Copies a tree with its parity, times and modes.
fn copied(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-a").args([from, to]).status();
    assert!(status.unwrap().success());
}

/// A copy of a root is a protection of its own, though it has the same id.
#[test]
fn copies_are_told_apart() {
    let yard = tempfile::tempdir().unwrap();
    let [live, copy] = ["live", "copy"].map(|name| yard.path().join(name));
    fs::create_dir(&live).unwrap();
    write(&live.join("a"), &Chance::new(40).bytes(50_000), 0o644, 1);
    make(&job(&live));
    copied(&live, &copy);
    fs::remove_file(live.join("a")).unwrap();
    let found = find(&[live.clone(), copy.clone()]).unwrap();
    let report = |root: &Path| {
        let of_root = found.iter().find(|one| one.root() == root.canonicalize().unwrap());
        verify(of_root.unwrap(), &VerifyOptions::default(), &|_| {}).unwrap()
    };
    assert_eq!((found.len(), report(&copy).status), (2, Status::Intact));
    assert_eq!(report(&live).findings[0].state, FileState::Missing);
    // Bringing one up to date leaves the parity of the other alone.
    copied(&copy.join("a"), &live);
    write(&live.join("b"), &Chance::new(41).bytes(50_000), 0o644, 2);
    updated(&live);
    let parity = parity_files(&live);
    let both = find(&[live.clone(), copy.clone()]).unwrap();
    let job = UpdateJob::default().sync(false).anew(true);
    let of_copy = both.iter().find(|one| one.root() == copy.canonicalize().unwrap()).unwrap();
    update(of_copy, &job, &|_| {}).unwrap();
    assert_eq!(parity_files(&live), parity);
    for root in [&live, &copy] {
        assert_eq!(check(root).status, Status::Intact);
    }
}

/// If the folder that was chosen for parity is the usual one, a copy has its parity there, too.
#[test]
fn copies_have_chosen_folders_of_their_own() {
    let yard = tempfile::tempdir().unwrap();
    let [live, copy] = ["live", "copy"].map(|name| yard.path().join(name));
    fs::create_dir_all(live.join(".paritas")).unwrap();
    write(&live.join("a"), &Chance::new(42).bytes(5_000), 0o644, 1);
    make(&job(&live).parity_dirs(vec![live.join(".paritas")]));
    copied(&live, &copy);
    let parity = parity_files(&live);
    write(&copy.join("b"), &Chance::new(43).bytes(5_000), 0o644, 1);
    for anew in [false, true] {
        assert_eq!(only(&copy).root(), copy.canonicalize().unwrap());
        update(&only(&copy), &UpdateJob::default().sync(false).anew(anew), &|_| {}).unwrap();
        assert_eq!(parity_files(&live), parity);
        assert_eq!(check(&copy).status, Status::Intact);
    }
}

/// Parity in the root itself says where the root is when it is moved.
#[test]
fn parity_in_the_root_moves_with_it() {
    let yard = tempfile::tempdir().unwrap();
    let [old, new] = ["old", "new"].map(|name| yard.path().join(name));
    fs::create_dir(&old).unwrap();
    let files = ["a", "b"].map(|name| old.join(name));
    for (number, file) in (0..).zip(&files) {
        write(file, &Chance::new(44 + number).bytes(5_000), 0o644, 1);
    }
    let job = ProtectJob::new(files.to_vec()).parity_dirs(vec![old.clone()]).sync(false);
    make(&job.redundancy("200%".parse().unwrap()));
    fs::rename(&old, &new).unwrap();
    assert_eq!(check(&new).status, Status::Intact);
    fs::remove_file(new.join("a")).unwrap();
    assert_eq!(mend(&new).restored, [new.canonicalize().unwrap().join("a")]);
    assert!(!old.exists());
}

/// A folder of parity may serve several roots. A root that is given belongs to its own protection.
#[test]
fn parity_of_several_roots_is_told_apart() {
    let yard = tempfile::tempdir().unwrap();
    let at = |name: &str| yard.path().canonicalize().unwrap().join(name);
    let par = at("par");
    fs::create_dir(&par).unwrap();
    let mut chance = Chance::new(46);
    for name in ["A", "B", "C"] {
        fs::create_dir(at(name)).unwrap();
        write(&at(name).join("index"), &chance.bytes(20_000), 0o644, 1);
        make(&job(&at(name)).parity_dirs(vec![par.clone()]).redundancy("120%".parse().unwrap()));
    }
    let before = snapshot(yard.path());
    let roots = |paths: &[PathBuf]| -> Vec<PathBuf> {
        let found = find(paths).unwrap();
        let mut roots: Vec<PathBuf> = found.iter().map(|one| one.root().to_owned()).collect();
        roots.sort();
        roots
    };
    assert_eq!(roots(&[at("A"), par.clone()]), [at("A")]);
    assert_eq!(roots(&[at("A"), at("C"), par.clone()]), [at("A"), at("C")]);
    assert_eq!(roots(std::slice::from_ref(&par)), [at("A"), at("B"), at("C")]);
    for one in find(&[at("A"), par.clone()]).unwrap() {
        repair(&one, &RepairJob::default().sync(false), &|_| {}).unwrap();
    }
    assert_same(&snapshot(yard.path()), &before, "repairing one root");
    // The one that was moved is the one whose root is gone.
    fs::rename(at("B"), at("moved")).unwrap();
    let found = find(&[at("moved"), par.clone()]).unwrap();
    assert_eq!((found.len(), found[0].label()), (1, "B".to_owned()));
    let report = verify(&found[0], &VerifyOptions::default(), &|_| {}).unwrap();
    assert_eq!(report.status, Status::Intact);
    // If two were moved, a parity file tells which one is meant.
    fs::rename(at("C"), at("also moved")).unwrap();
    let error = find(&[at("moved"), par.clone()]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Parameters, "{error}");
    assert!(error.to_string().contains("B of ") && error.to_string().contains("C of "), "{error}");
    let file = names(&par).into_iter().find(|name| name.to_str().unwrap().starts_with("C-"));
    assert_eq!(roots(&[at("also moved"), par.join(file.unwrap())]), [at("also moved")]);
}

/// When what was given to protect is gone, an update does not turn to all that is beside it.
#[test]
fn updates_stay_at_what_was_given() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    let mut chance = Chance::new(47);
    for name in ["one", "two"] {
        fs::create_dir(at(name)).unwrap();
        write(&at(name).join("a"), &chance.bytes(5_000), 0o644, 1);
    }
    write(&at("other"), &chance.bytes(5_000), 0o644, 1);
    make(&ProtectJob::new(vec![at("one"), at("two")]).sync(false));
    fs::remove_dir_all(at("one")).unwrap();
    let report = updated(root.path());
    assert_eq!((report.updated, report.kept, report.gone), (Updated::Anew, 1, 1));
    assert_eq!((only(root.path()).files(), report.added), (1, 0));
    fs::rename(at("two"), at("three")).unwrap();
    let error = update(&only(root.path()), &UpdateJob::default(), &|_| {}).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Parameters, "{error}");
    assert_eq!(only(root.path()).files(), 1);
}

/// A parity file that bears the name of another one is not replaced by it.
#[test]
fn renamed_parity_is_not_replaced() {
    let root = scene(48);
    let of = |files: &[PathBuf], part: &str| {
        files.iter().find(|path| path.to_str().unwrap().contains(part)).unwrap().clone()
    };
    let old = parity_files(root.path());
    let new = add_layer(root.path());
    fs::rename(of(&new, ".0of"), of(&old, ".4of")).unwrap();
    fs::remove_file(of(&new, ".1of")).unwrap();
    flip(&root.path().join("new"), 7);
    let report = mend(root.path());
    assert!(report.failed.is_empty() && report.lost.is_empty(), "{report:?}");
    let report = check(root.path());
    assert!(report.status == Status::Intact && report.parity.is_empty(), "{report:?}");
}

/// Missing parity files go to where the fewest of their layer are.
#[test]
fn new_parity_files_are_spread() {
    let (root, disks) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write(&root.path().join("a"), &Chance::new(49).bytes(50_000), 0o644, 1);
    let disks = ["0", "1", "2"].map(|name| disks.path().join(name));
    disks.iter().for_each(|disk| fs::create_dir(disk).unwrap());
    make(&job(root.path()).parity_dirs(disks.to_vec()).redundancy("300%".parse().unwrap()));
    fs::remove_dir_all(&disks[0]).unwrap();
    let file = disks[1].join(&names(&disks[1])[0]);
    fs::remove_file(file).unwrap();
    let found = find(&[root.path().to_owned(), disks[1].clone()]).unwrap();
    let report = repair(&found[0], &RepairJob::default().sync(false), &|_| {}).unwrap();
    assert_eq!(report.parity.len(), 3, "{report:?}");
    assert_eq!((names(&disks[1]).len(), names(&disks[2]).len()), (3, 3));
}

/// A folder that a repair makes has its mode even if the repair is killed before it ends.
#[test]
fn folders_have_their_modes_from_the_beginning() {
    let root = scene(50);
    let folder = root.path().join("one");
    fs::set_permissions(&folder, Permissions::from_mode(0o2751)).unwrap();
    make(&job(root.path()).force(true).redundancy("200%".parse().unwrap()));
    fs::remove_dir_all(&folder).unwrap();
    let (modes, seen) = (std::sync::Mutex::new(Vec::new()), folder.clone());
    let note = |_| {
        let mode = fs::metadata(&seen).map(|found| found.permissions().mode() & 0o7777);
        modes.lock().unwrap().extend(mode);
    };
    repair(&only(root.path()), &RepairJob::default().sync(false), &note).unwrap();
    let modes = modes.into_inner().unwrap();
    assert!(!modes.is_empty() && modes.iter().all(|&mode| mode == 0o751), "{modes:?}");
}

/// A protection is replaced wherever its parity is, also if the new parity goes elsewhere.
#[test]
fn the_parity_of_a_replaced_protection_goes() {
    let (root, disk) = (scene(51), tempfile::tempdir().unwrap());
    let elsewhere = job(root.path()).parity_dirs(vec![disk.path().to_owned()]);
    assert_eq!(plan(&elsewhere).unwrap_err().kind(), ErrorKind::Exists);
    let id = only(root.path()).id();
    make(&elsewhere.force(true));
    assert!(parity_files(root.path()).is_empty());
    assert_eq!((only(disk.path()).id(), names(disk.path()).len()), (id, 5));
    assert_eq!(check(disk.path()).status, Status::Intact);
}

/// If the first name of a file is gone, its bytes are still there under the other one.
#[test]
fn the_other_name_of_a_file_has_its_bytes() {
    use std::os::unix::fs::MetadataExt;
    let root = tempfile::tempdir().unwrap();
    let [first, other] = ["a", "b"].map(|name| root.path().join(name));
    write(&first, &Chance::new(52).bytes(50_000), 0o644, 1);
    fs::hard_link(&first, &other).unwrap();
    make(&job(root.path()));
    let before = snapshot(root.path());
    fs::remove_file(&first).unwrap();
    let report = check(root.path());
    assert_eq!((report.status, report.layers[0].lost), (Status::Repairable, 0));
    mend(root.path());
    assert_same(&snapshot(root.path()), &before, "repairing the first name");
    assert_eq!(fs::metadata(&first).unwrap().ino(), fs::metadata(&other).unwrap().ino());
}

/// A copy in place of a hard link is damaged if its time is right, and changed if it is not.
#[test]
fn damaged_copies_of_links_are_restored() {
    let root = tempfile::tempdir().unwrap();
    let [first, other] = ["a", "b"].map(|name| root.path().join(name));
    write(&first, &Chance::new(53).bytes(5_000), 0o644, 1);
    fs::hard_link(&first, &other).unwrap();
    make(&job(root.path()));
    let before = snapshot(root.path());
    fs::remove_file(&other).unwrap();
    copied(&first, &other);
    flip(&other, 9);
    let report = check(root.path());
    assert!(matches!(report.findings[0].state, FileState::Damaged(_)), "{report:?}");
    assert_eq!(mend(root.path()).restored.len(), 1);
    assert_same(&snapshot(root.path()), &before, "repairing the copy");
}

/// A renamed folder is not missing, and comes back with the files in it.
#[test]
fn renamed_folders_have_moved() {
    let root = scene(54);
    let [old, new] = ["one", "renamed"].map(|name| root.path().join(name));
    fs::create_dir(old.join("inner")).unwrap();
    write(&old.join("inner/file"), b"inner", 0o644, 1);
    make(&job(root.path()).force(true));
    let before = snapshot(root.path());
    fs::rename(&old, &new).unwrap();
    let report = check(root.path());
    assert_eq!(report.status, Status::Intact, "{report:?}");
    assert_eq!(report.findings[0].state, FileState::Moved(new.clone()));
    assert!(mend(root.path()).restored.is_empty() && !old.exists());
    let report = repaired(root.path(), RepairJob::default().move_back(true));
    assert_eq!((report.restored.len(), report.moved_back.len()), (2, 7), "{report:?}");
    fs::remove_dir_all(new).unwrap();
    assert_same(&snapshot(root.path()), &before, "moving a folder back");
}

/// What has become something else must be moved away before it is restored.
#[test]
fn what_is_in_the_way_is_said() {
    let root = scene(55);
    make(&job(root.path()).redundancy("200%".parse().unwrap()).force(true));
    let [folder, file] = ["one", "two/5"].map(|name| root.path().join(name));
    fs::remove_dir_all(&folder).unwrap();
    write(&folder, b"a file", 0o644, 1);
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    let report = repaired(root.path(), RepairJob::default().restore_changed(true));
    let said = |path: &Path| {
        let said = format!("{}: move it away", path.display()).replace(": m", " is in the way: m");
        report.failed.iter().filter(|failed| failed.reason.ends_with(&said)).count()
    };
    assert_eq!((said(&folder), said(&file)), (7, 1), "{report:?}");
}

/// A root that does not exist is not made: its disk may not be mounted.
#[test]
fn absent_roots_are_not_made() {
    let (yard, parity) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let [root, to] = ["root", "to"].map(|name| yard.path().join(name));
    fs::create_dir(&root).unwrap();
    write(&root.join("a"), &Chance::new(56).bytes(5_000), 0o644, 1);
    let job = job(&root).parity_dirs(vec![parity.path().to_owned()]);
    make(&job.redundancy("200%".parse().unwrap()));
    fs::remove_dir_all(&root).unwrap();
    let job = RepairJob::default().sync(false);
    let error = repair(&only(parity.path()), &job, &|_| {}).unwrap_err();
    assert!(error.kind() == ErrorKind::Io && error.to_string().contains("root does not exist"));
    fs::create_dir(&to).unwrap();
    repaired(parity.path(), job.to(to.clone()));
    assert!(!root.exists() && to.join("a").exists());
}
