//! Changes on purpose: files are moved, edited, touched and added. The tests look at what a repair
//! and an update make of that.

mod kept;
mod losses;
mod nameless;
mod parts;
mod repairs;
mod roots;
mod updates;

use crate::common;
use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io::Write as _;
use std::num::NonZeroUsize;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::{
    Chance, age, assert_same, check, damage, flip, job, make, make_tree, mend, not_run, only,
    remove_copies, renew_times, snapshot, write,
};
use paritas_protect::{
    ErrorKind, FileState, ProtectJob, RepairJob, RepairReport, Skipped, State, UpdateJob,
    UpdateReport, Updated, VerifyOptions, find, plan, protect, repair, update, verify,
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
    let report = updated_in_place(root);
    renew_times(root);
    report
}

/// Updates, and leaves the system's times of all files as the update has noted them.
fn updated_in_place(root: &Path) -> UpdateReport {
    update(&only(root), &UpdateJob::default().sync(false), &|_| {}).unwrap()
}

#[test]
fn moved_files_are_known_by_their_bytes() {
    let root = scene(1);
    let before = snapshot(root.path());
    let (from, to) = (root.path().join("one/5"), root.path().join("two/elsewhere"));
    fs::rename(&from, &to).unwrap();
    let report = check(root.path());
    assert_eq!((report.status, report.intact_files), (State::Intact, 12));
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
    assert_eq!(report.status, State::Repairable);
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
    assert_eq!((report.status, report.layers[0].left), (State::Repairable, 0));
    assert!(report.layers[0].needed > 0, "{report:?}");
    assert_eq!(mend(root.path()).found.status, State::Repairable);
    let job = RepairJob::default().restore_changed(true);
    assert_eq!(repaired(root.path(), job).found.status, State::Lost);
    assert_same(&snapshot(root.path()), &edited, "refusing");
    flip(&root.path().join("two/5"), 9);
    assert_eq!(check(root.path()).status, State::Lost);
    let error = update(&only(root.path()), &UpdateJob::default(), &|_| {}).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DigestMismatch);
    flip(&root.path().join("two/5"), 9);
    assert_eq!(updated(root.path()).updated, Updated::Anew);
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

/// Bytes that were inserted at the beginning of a file cost about one block, not all of them.
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
    assert_eq!(quick().status, State::Intact);
    // A file of the same size with a new ctime is read.
    flip(&root.path().join("one/1"), 5);
    let report = quick();
    let FileState::Damaged(ranges) = &report.findings[0].state else { panic!("{report:?}") };
    assert_eq!((ranges.len(), report.layers[0].lost), (1, 1), "{report:?}");
    flip(&root.path().join("one/1"), 5);
    fs::remove_file(root.path().join("two/2")).unwrap();
    let report = quick();
    assert_eq!((report.status, report.findings.len()), (State::Repairable, 1));
    assert!(report.layers[0].lost > 0);
}

/// A quick look does not say that files are lost because others have new times, or have grown.
#[test]
fn a_quick_look_reads_before_it_calls_files_lost() {
    let root = tempfile::tempdir().unwrap();
    for number in 0..9 {
        let bytes = Chance::new(number).bytes(20_000);
        write(&root.path().join(number.to_string()), &bytes, 0o644, 50);
    }
    make(&job(root.path()).redundancy("20%".parse().unwrap()));
    for number in 0..6 {
        let file = File::open(root.path().join(number.to_string())).unwrap();
        file.set_modified(std::time::SystemTime::now()).unwrap();
    }
    let quick = || verify(&only(root.path()), &VerifyOptions::default().quick(true), &|_| {});
    let report = quick().unwrap();
    assert_eq!((report.status, report.layers[0].lost), (State::Intact, 0), "{report:?}");
    assert_eq!(report.count(|state| *state == FileState::Touched), 6);

    for number in 0..6 {
        let file = fs::OpenOptions::new().append(true).open(root.path().join(number.to_string()));
        file.unwrap().write_all(b"more").unwrap();
    }
    fs::remove_file(root.path().join("8")).unwrap();
    let report = quick().unwrap();
    assert_eq!(report.status, State::Repairable, "{report:?}");
    assert_eq!(report.count(|state| matches!(state, FileState::Changed(_))), 6);
}

/// Adds a file and a layer for it, and returns the paths of the layer's parity files.
fn add_layer(root: &Path) -> Vec<PathBuf> {
    let folder = root.join(".paritas");
    let old = names(&folder);
    write(&root.join("new"), &Chance::new(22).bytes(5_000), 0o644, 50);
    assert_eq!(updated_in_place(root).updated, Updated::Layer);
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
    assert_eq!((report.status, report.unreadable_layers), (State::Lost, 1));
    assert_eq!(report.files, 1);
    assert_eq!(updated(root.path()).updated, Updated::Anew);
    let report = check(root.path());
    assert_eq!((report.status, report.files), (State::Intact, 13));
}

/// If the newest layer cannot be read, its files are not simply new.
#[test]
fn a_newest_layer_that_cannot_be_read_is_said() {
    const HEADER: usize = 192;
    // Only the names tell of files that are damaged from end to end, or empty.
    let damage: [fn(&mut Vec<u8>); 3] = [
        |bytes| {
            let end = bytes.len() - HEADER;
            bytes[HEADER..end].fill(0);
        },
        |bytes| bytes.fill(0),
        Vec::clear,
    ];
    for damage in damage {
        let root = scene_with(23, "100%");
        for path in add_layer(root.path()) {
            let mut bytes = fs::read(&path).unwrap();
            damage(&mut bytes);
            fs::write(&path, bytes).unwrap();
        }
        let report = check(root.path());
        assert_eq!((report.status, report.unreadable_layers), (State::Lost, 1));
        assert_eq!(updated(root.path()).updated, Updated::Anew);
        let report = check(root.path());
        assert_eq!((report.status, report.unreadable_layers), (State::Intact, 0));
    }
}

/// Parity files that another process is about to name are not mistaken for leftovers of a killed
/// process.
#[test]
fn parity_that_is_being_named_stays() {
    let root = scene_with(24, "100%");
    let plan = plan(&job(root.path()).redundancy("100%".parse().unwrap()).force(true)).unwrap();
    protect(&plan, &|_| {}).unwrap();
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
    assert_eq!(check(&folder).status, State::Intact);
}

/// A name of only dots does not become a label, and everything can be made anew.
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
    assert_eq!((found.status, found.new.len(), found.files), (State::Intact, 1, 2));
    let blocks = 50_000_u64.div_ceil(report.geometry.block);
    assert!((blocks..=blocks + 1).contains(&report.gap_blocks), "{report:?}");
    assert_eq!(updated(root.path()).added, 1);
    assert_eq!(check(root.path()).files, 3);
    // So it is in several passes.
    let planned = plan(&job(root.path()).memory(200_000).force(true)).unwrap();
    assert!(planned.passes > 1);
    let report = protect(&planned, &change).unwrap();
    assert_eq!((report.files, report.skipped.len()), (2, 1));
    assert_eq!(report.skipped[0].path, victim);
    assert_eq!(updated(root.path()).added, 1);
    let before = snapshot(root.path());
    fs::remove_file(root.path().join("c")).unwrap();
    assert_eq!(mend(root.path()).restored.len(), 1);
    assert_same(&snapshot(root.path()), &before, "repairing");
}

/// A file that changes all the time, and is larger than the parity, costs the others nothing. If
/// all files change, older parity is not given up.
#[test]
fn a_large_file_that_changes_takes_no_parity() {
    let root = tempfile::tempdir().unwrap();
    let mut chance = Chance::new(27);
    for (name, bytes) in [("a", 1_500_000), ("b", 1_000_000), ("c", 3_000)] {
        write(&root.path().join(name), &chance.bytes(bytes), 0o644, 1);
    }
    let append = |names: &[&str]| {
        for name in names {
            let file = fs::OpenOptions::new().append(true).open(root.path().join(name)).unwrap();
            std::io::Write::write_all(&mut &file, b"more").unwrap();
        }
    };
    let job = job(root.path()).threads(NonZeroUsize::new(1));
    let planned = plan(&job).unwrap();
    let report = protect(&planned, &|_| append(&["b"])).unwrap();
    assert_eq!((report.files, report.skipped.len(), report.gap_blocks), (2, 1, 0));
    assert_eq!(report.skipped[0].path, root.path().join("b"));
    assert_eq!(report.geometry.length, 1_503_000);
    let found = check(root.path());
    assert_eq!((found.status, found.files, found.layers[0].lost), (State::Intact, 2, 0));
    let before = fs::read(root.path().join("c")).unwrap();
    fs::remove_file(root.path().join("c")).unwrap();
    assert_eq!(mend(root.path()).restored.len(), 1);
    assert!(fs::read(root.path().join("c")).unwrap() == before);

    let parity = parity_files(root.path());
    let bytes = || parity.iter().map(|path| fs::read(path).unwrap()).collect::<Vec<_>>();
    let before = bytes();
    let planned = plan(&job.force(true)).unwrap();
    let error = protect(&planned, &|_| append(&["a", "b", "c"])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
    assert!(error.to_string().contains("change while they are read"), "{error}");
    assert!(bytes() == before);
    assert_eq!(parity_files(root.path()), parity);
}

/// A layer can restore its largest file, as far as the first layer could.
#[test]
fn a_new_file_can_be_restored_whole() {
    let root = tempfile::tempdir().unwrap();
    write(&root.path().join("old"), &Chance::new(28).bytes(900_000), 0o644, 1);
    let first = protect(&plan(&job(root.path())).unwrap(), &|_| {}).unwrap().geometry;
    let parity = first.parity * first.block;
    for (name, bytes) in [("new/large", parity - first.block), ("new/small", 700)] {
        fs::create_dir_all(root.path().join("new")).unwrap();
        write(&root.path().join(name), &Chance::new(29).bytes(bytes as usize), 0o644, 1);
    }
    assert_eq!(updated(root.path()).updated, Updated::Layer);
    let before = snapshot(root.path());
    fs::remove_file(root.path().join("new/large")).unwrap();
    assert_eq!(mend(root.path()).restored.len(), 1);
    assert_same(&snapshot(root.path()), &before, "repairing");
    // More than the first layer can restore is not asked of another one.
    write(&root.path().join("new/huge"), &Chance::new(30).bytes(parity as usize * 2), 0o644, 1);
    let report = updated(root.path()).protected.unwrap();
    let new = report.geometry.parity * report.geometry.block;
    assert!((parity..parity * 21 / 20 + 4096).contains(&new), "{new}, {parity}");
}

/// The place of a file that could never be read holds zeros, which cannot be lost. So it takes no
/// parity.
#[test]
fn files_that_were_never_read_take_no_parity() {
    let root = tempfile::tempdir().unwrap();
    let mut chance = Chance::new(86);
    for (name, bytes) in [("a", 50_000), ("b", 500_000), ("c", 50_000)] {
        write(&root.path().join(name), &chance.bytes(bytes), 0o644, 1);
    }
    let planned = plan(&job(root.path())).unwrap();
    fs::remove_file(root.path().join("b")).unwrap();
    let report = protect(&planned, &|_| {}).unwrap();
    assert_eq!((report.files, report.skipped.len(), report.gap_blocks), (2, 1, 0));
    renew_times(root.path());
    let found = check(root.path());
    assert_eq!((found.status, found.layers[0].lost), (State::Intact, 0));
    assert_eq!(found.layers[0].left, report.geometry.parity);
    // Without reading files, the blocks at both ends of the gap cannot be told from lost ones.
    let spare: Vec<u64> = only(root.path()).spare_blocks().collect();
    assert!(spare[0] + 2 >= report.geometry.parity, "{spare:?} of {}", report.geometry.parity);
    let before = snapshot(root.path());
    fs::remove_file(root.path().join("c")).unwrap();
    assert_eq!(mend(root.path()).restored.len(), 1);
    assert_same(&snapshot(root.path()), &before, "repairing");
}

/// Blocks that were coded in different versions by several passes count as lost, whether or not
/// size and time show the change. The files beside stay protected.
#[test]
fn files_may_change_between_passes() {
    let files = [("a", 300_000), ("b", 3_000), ("c", 300_000), ("d", 300), ("e", 300)];
    type Change = fn(&Path);
    let changes: [(&str, Change); 5] = [
        ("c", |path| damage(path, |file| file.write_all_at(&[7; 2_000], 100_000).unwrap())),
        ("c", |path| fs::OpenOptions::new().write(true).open(path).unwrap().set_len(9).unwrap()),
        ("c", |path| fs::remove_file(path).unwrap()),
        ("d", |path| fs::write(path, "rewritten").unwrap()),
        ("d", |path| damage(path, |file| file.write_all_at(&[7; 100], 100).unwrap())),
    ];
    for (number, (name, change)) in changes.into_iter().enumerate() {
        let root = tempfile::tempdir().unwrap();
        let mut chance = Chance::new(40 + number as u64);
        for (name, bytes) in files {
            write(&root.path().join(name), &chance.bytes(bytes), 0o644, 1);
        }
        let job = job(root.path()).threads(NonZeroUsize::new(1)).memory(300_000);
        let planned = plan(&job.redundancy("100%".parse().unwrap())).unwrap();
        assert!(planned.passes > 1);
        let (read, length) = (AtomicU64::new(0), planned.geometry.length);
        let amid = |bytes| {
            let before = read.fetch_add(bytes, Ordering::Relaxed);
            if before < length && before + bytes >= length {
                change(&root.path().join(name));
            }
        };
        let report = protect(&planned, &amid).unwrap();
        let skipped: Vec<&Path> = report.skipped.iter().map(|one| one.path.as_path()).collect();
        assert_eq!(skipped, [root.path().join(name)], "{number}");
        let found = check(root.path());
        assert_eq!((found.status, found.findings.len()), (State::Intact, 0), "{number}");
        let before = snapshot(root.path());
        for (other, _) in files.into_iter().filter(|(other, _)| *other != name) {
            fs::remove_file(root.path().join(other)).unwrap();
        }
        assert!(mend(root.path()).lost.is_empty());
        assert_same(&snapshot(root.path()), &before, "repairing");
    }
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
        (State::Intact, FileState::Touched)
    );
    fs::write(&name, "other").unwrap();
    assert!(matches!(check(root.path()).findings[0].state, FileState::Changed(_)));
    assert!(mend(root.path()).restored.is_empty());
    repaired(root.path(), RepairJob::default().restore_changed(true));
    assert!(is_linked());
    assert_same(&snapshot(root.path()), &before, "reverting");
}

/// Only users who may read the protected files may read their parity.
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
        assert_eq!(check(root.path()).status, State::Intact);
    }
}

/// What another repair has restored meanwhile is restored.
#[test]
fn repairs_at_once_restore_the_same() {
    let root = tempfile::tempdir().unwrap();
    make_tree(root.path(), &mut Chance::new(45), 20, 50_000);
    let file = root.path().join("lost");
    write(&file, &Chance::new(46).bytes(4_000), 0o640, 7);
    make(&job(root.path()));
    let bytes = fs::read(&file).unwrap();
    for _ in 0..20 {
        fs::remove_file(&file).unwrap();
        std::thread::scope(|scope| {
            let repairs = [(); 3].map(|()| scope.spawn(|| mend(root.path())));
            for report in repairs.map(|repair| repair.join().unwrap()) {
                assert!(report.failed.is_empty(), "{:?}", report.failed);
                assert!(report.lost.is_empty(), "{:?}", report.lost);
            }
        });
        assert_eq!(fs::read(&file).unwrap(), bytes);
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
    assert_eq!(report.status, State::Intact, "{report:?}");
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
    for dry_run in [true, false] {
        let job = RepairJob::default().restore_changed(true).dry_run(dry_run);
        let report = repaired(root.path(), job);
        let said = |path: &Path| {
            let said = format!("{} is in the way: move it away", path.display());
            report.failed.iter().filter(|failed| failed.reason.ends_with(&said)).count()
        };
        assert_eq!((said(&folder), said(&file)), (7, 1), "{dry_run}: {report:?}");
        assert!(report.restored.is_empty(), "{dry_run}: {report:?}");
    }
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
