//! Files as people have them: written by programs that set times back, with access control lists,
//! on disks that are not mounted today, owned by somebody else.

#![cfg(target_os = "linux")]

use crate::common;
use std::fs::{self, File, FileTimes, Permissions};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Chance, check, flip, job, list, make, not_run, only, renew_times, write};
use paritas_protect::{
    ErrorKind, FileState, ProtectJob, ProtectReport, RepairJob, RepairReport, State, UpdateJob,
    UpdateReport, Updated, VerifyOptions, VerifyReport, plan, protect, repair, update, verify,
};

/// Makes a folder with a few files.
pub fn yard() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (number, name) in (1..).zip(["a", "b", "c", "d"]) {
        write(&root.path().join(name), &Chance::new(number).bytes(9_000), 0o644, number);
    }
    root
}

/// Protects, and leaves all times as they are.
pub fn protected(job: &ProtectJob) -> ProtectReport {
    protect(&plan(job).unwrap(), &|_| {}).unwrap()
}

pub fn plenty(root: &Path) -> ProtectJob {
    job(root).redundancy("100%".parse().unwrap())
}

pub fn repaired(root: &Path, job: RepairJob) -> RepairReport {
    repair(&only(root), &job.sync(false), &|_| {}).unwrap()
}

pub fn updated(root: &Path) -> UpdateReport {
    update(&only(root), &UpdateJob::default().sync(false), &|_| {}).unwrap()
}

/// Writes to a file, and sets its time back, as containers and tag editors do.
pub fn rewrite(path: &Path, at: u64, bytes: &[u8]) {
    let then = fs::metadata(path).unwrap().modified().unwrap();
    let file = File::options().write(true).open(path).unwrap();
    file.write_all_at(bytes, at).unwrap();
    file.set_times(FileTimes::new().set_modified(then)).unwrap();
}

fn states(report: &VerifyReport) -> Vec<(&str, &FileState, bool)> {
    let findings = report.findings.iter();
    findings.map(|one| (one.name.to_str().unwrap(), &one.state, one.has_time)).collect()
}

fn copies(folder: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_copy = |path: &PathBuf| path.to_str().unwrap().contains(".damaged-");
    paths.filter(is_copy).collect()
}

#[test]
fn what_was_written_with_its_time_kept_is_a_change() {
    let root = yard();
    let file = root.path().join("b");
    let old = fs::read(&file).unwrap();
    protected(&plenty(root.path()));
    rewrite(&file, 3_000, &[7; 2_000]);
    let new = fs::read(&file).unwrap();
    for quick in [false, true] {
        let options = VerifyOptions::default().quick(quick);
        let report = verify(&only(root.path()), &options, &|_| {}).unwrap();
        assert!(matches!(states(&report)[..], [("b", FileState::Changed(_), true)]), "{report:?}");
    }
    let report = repaired(root.path(), RepairJob::default());
    assert!(report.restored.is_empty() && report.kept.is_empty(), "{report:?}");
    assert_eq!(fs::read(&file).unwrap(), new);
    // It is restored on demand, and what it was stays beside it.
    let report = repaired(root.path(), RepairJob::default().restore_changed(true));
    assert_eq!((&report.kept[0].0, fs::read(&file).unwrap()), (&file, old));
    assert_eq!(fs::read(&report.kept[0].1).unwrap(), new);
    assert_eq!(check(root.path()).status, State::Intact);
    // An update takes it as a change, and remembers files that were only touched.
    rewrite(&file, 3_000, &[7; 2_000]);
    let report = updated(root.path());
    assert_eq!((report.kept, report.changed, report.gone), (3, 1, 0), "{report:?}");
    assert_eq!(check(root.path()).status, State::Intact);
    fs::set_permissions(root.path().join("c"), Permissions::from_mode(0o644)).unwrap();
    let count = |report: UpdateReport| (report.kept, report.protected.map(|new| new.files));
    assert_eq!(count(updated(root.path())), (4, Some(0)));
    assert_eq!(count(updated(root.path())), (4, None));
}

/// Where most files have new times of the system's own, these do not tell which files were written.
/// So the files are read.
#[test]
fn the_only_file_is_read_if_its_time_is_new() {
    let root = yard();
    let vault = root.path().join("b");
    protected(&plenty(&vault));
    let quick = || {
        let options = VerifyOptions::default().quick(true);
        verify(&only(&vault), &options, &|_| {}).unwrap().status
    };
    renew_times(&vault);
    assert_eq!(quick(), State::Intact);
    rewrite(&vault, 3_000, &[7; 2_000]);
    assert_eq!(quick(), State::Repairable);
    let update = || update(&only(&vault), &UpdateJob::default().sync(false), &|_| {});
    let error = update().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DigestMismatch, "{error}");
    assert!(error.to_string().contains("touch it if you have changed it"), "{error}");
    common::age(&vault, 99);
    assert_eq!(update().unwrap().changed, 1);
    assert_eq!((quick(), check(&vault).status), (State::Intact, State::Intact));
}

/// An update notes the new times of a copied tree, and changes nothing else. Then they tell again
/// what was written.
#[test]
fn times_of_a_copied_tree_count_after_an_update() {
    let root = yard();
    make(&plenty(root.path()));
    let report = updated(root.path());
    let counts = (report.kept, report.added, report.changed, report.gone);
    assert_eq!((report.updated, counts), (Updated::Layer, (4, 0, 0, 0)), "{report:?}");
    assert_eq!(report.protected.map(|new| new.files), Some(0));
    assert_eq!(updated(root.path()).updated, Updated::Nothing);
    rewrite(&root.path().join("b"), 3_000, &[7; 2_000]);
    let report = check(root.path());
    assert!(matches!(states(&report)[..], [("b", FileState::Changed(_), true)]), "{report:?}");
    assert_eq!(updated(root.path()).changed, 1);
}

/// In a copied tree all times of the system are new, so they tell nothing, and damage is repaired.
/// What was there stays beside it in any case.
#[test]
fn what_a_repair_replaces_stays() {
    let root = yard();
    make(&plenty(root.path()));
    let file = root.path().join("b");
    let mut damaged = Vec::new();
    for at in [5_000, 6_000] {
        flip(&file, at);
        damaged.push(fs::read(&file).unwrap());
        let report = check(root.path());
        assert!(matches!(states(&report)[..], [("b", FileState::Damaged(_), true)]), "{report:?}");
        assert_eq!(
            repaired(root.path(), RepairJob::default()).restored,
            std::slice::from_ref(&file)
        );
        let report = check(root.path());
        assert!(report.status == State::Intact && report.new.is_empty(), "{report:?}");
        renew_times(root.path());
    }
    let mut kept: Vec<Vec<u8>> =
        copies(root.path()).iter().map(|path| fs::read(path).unwrap()).collect();
    kept.sort();
    damaged.sort();
    assert_eq!(kept, damaged);
    assert_eq!(check(root.path()).replaced, {
        let mut paths = copies(root.path());
        paths.sort();
        paths
    });
    // They are not protected. One that somebody uses as a file of their own is.
    assert_eq!(make(&plenty(root.path()).force(true)).files, 4);
    let own = copies(root.path()).remove(0);
    fs::write(&own, "mine").unwrap();
    assert_eq!(check(root.path()).new, [own]);
    assert_eq!(make(&plenty(root.path()).force(true)).files, 5);
}

/// A file system that is mounted as long as the value lives.
pub struct Mount(PathBuf);

impl Mount {
    pub fn new(arguments: &[&str], at: &Path) -> Option<Self> {
        let done = Command::new("mount").args(arguments).arg(at).output();
        match done.is_ok_and(|done| done.status.success()) {
            true => Some(Self(at.to_owned())),
            false => {
                not_run(&format!("mount {arguments:?} is not possible here"));
                None
            }
        }
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

pub const MEMORY: [&str; 5] = ["-t", "tmpfs", "-o", "size=10m", "tmpfs"];

pub fn fill(disk: &Path) {
    for number in 1..4 {
        let path = disk.join(number.to_string());
        write(&path, &Chance::new(20 + number).bytes(6_000), 0o644, number);
    }
}

#[test]
fn a_disk_that_is_not_mounted_is_not_deleted() {
    let root = yard();
    let disk = root.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let Some(mount) = Mount::new(&MEMORY, &disk) else { return };
    fill(&disk);
    protected(&plenty(root.path()));
    drop(mount);
    for folder_is_there in [true, false] {
        if !folder_is_there {
            fs::remove_dir(&disk).unwrap();
        }
        fs::remove_file(root.path().join("b")).unwrap();
        let report = check(root.path());
        let (unknown, others): (Vec<_>, Vec<_>) =
            states(&report).into_iter().partition(|(name, ..)| name.starts_with("disk"));
        let is_unread = |state: &FileState| match state {
            FileState::Unreadable(why) => why.ends_with("its disk is not mounted"),
            _ => false,
        };
        assert!(unknown.len() >= 3 && unknown.iter().all(|one| is_unread(one.1)), "{report:?}");
        assert_eq!(others, [("b", &FileState::Missing, false)]);
        let report = repaired(root.path(), RepairJob::default());
        assert_eq!(report.restored, [root.path().join("b")], "{report:?}");
        assert!(fs::read_dir(&disk).map_or(0, Iterator::count) == 0);
    }
    // An update keeps what is protected there.
    write(&root.path().join("new"), b"new", 0o644, 9);
    let report = updated(root.path());
    assert_eq!((report.kept, report.added, report.gone), (7, 1, 0), "{report:?}");
    assert_eq!(report.held[0].path, disk);
    fs::create_dir(&disk).unwrap();
    // An update gives up nothing for an empty disk in its place, and a repair fills it.
    let Some(mount) = Mount::new(&MEMORY, &disk) else { return };
    assert_eq!(updated(root.path()).gone, 0);
    assert_eq!(repaired(root.path(), RepairJob::default()).restored.len(), 3);
    fs::remove_file(disk.join("2")).unwrap();
    assert_eq!(repaired(root.path(), RepairJob::default()).restored, [disk.join("2")]);
    assert_eq!(check(root.path()).status, State::Intact);
    drop(mount);
    // Once the files lie in the folder itself, it is a folder as any other.
    fill(&disk);
    fs::remove_file(disk.join("2")).unwrap();
    assert_eq!(repaired(root.path(), RepairJob::default()).restored, [disk.join("2")]);
}

/// A program has made a folder of the disk anew, or a link leads to where the disk is now.
#[test]
fn what_stands_in_the_place_of_a_disk_is_not_its_content() {
    let root = yard();
    let disk = root.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let Some(mount) = Mount::new(&MEMORY, &disk) else { return };
    fs::create_dir(disk.join("folder")).unwrap();
    fill(&disk);
    protected(&plenty(root.path()));
    drop(mount);
    fs::create_dir(disk.join("folder")).unwrap();
    let report = repaired(root.path(), RepairJob::default());
    assert!(report.restored.is_empty() && report.lost.is_empty(), "{report:?}");
    assert_eq!(updated(root.path()).gone, 0);
    fs::remove_dir_all(&disk).unwrap();
    symlink("elsewhere", &disk).unwrap();
    let error = update(&only(root.path()), &UpdateJob::default(), &|_| {}).unwrap_err();
    assert!(error.to_string().contains("disk was a folder on a disk that is not"), "{error}");
    assert_eq!(check(root.path()).status, State::Unknown);
    let gives_up = UpdateJob::default().sync(false).accept_changes(true);
    assert_eq!(update(&only(root.path()), &gives_up, &|_| {}).unwrap().gone, 3);
    assert_eq!(check(root.path()).status, State::Intact);
}

/// A program has made a file anew that it did not find, while its disk is not mounted.
#[test]
fn a_file_of_a_name_on_a_disk_is_not_the_disk() {
    let root = yard();
    let disk = root.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let Some(mount) = Mount::new(&MEMORY, &disk) else { return };
    fill(&disk);
    symlink("1", disk.join("link")).unwrap();
    protected(&plenty(root.path()));
    drop(mount);
    for size in [0, 5, 6_000] {
        write(&disk.join("2"), &vec![7; size], 0o644, 99);
        let report = check(root.path());
        let unread = report.count(|state| matches!(state, FileState::Unreadable(_)));
        assert_eq!((unread, report.findings.len(), report.status), (4, 4, State::Unknown));
        let report = repaired(root.path(), RepairJob::default().restore_changed(true));
        assert!(report.restored.is_empty() && report.lost.is_empty(), "{report:?}");
        let report = updated(root.path());
        assert_eq!((report.kept, report.changed, report.gone), (7, 0, 0), "{report:?}");
        assert_eq!(report.held[0].path, disk);
    }
    fs::remove_file(disk.join("2")).unwrap();
    // Container engines make folders for what they do not find.
    fs::create_dir(disk.join("2")).unwrap();
    fs::write(disk.join("2/inner"), "new").unwrap();
    symlink("nowhere", disk.join("3")).unwrap();
    let report = updated(root.path());
    assert_eq!((report.kept, report.added, report.gone), (7, 0, 0), "{report:?}");
    fs::remove_dir_all(disk.join("2")).unwrap();
    fs::remove_file(disk.join("3")).unwrap();
    let Some(mount) = Mount::new(&MEMORY, &disk) else { return };
    assert_eq!(repaired(root.path(), RepairJob::default()).restored.len(), 4);
    assert_eq!(check(root.path()).status, State::Intact);
    drop(mount);
    // Somebody has copied some of the files into the folder, with their times.
    write(&disk.join("2"), &Chance::new(22).bytes(6_000), 0o644, 2);
    assert_eq!(repaired(root.path(), RepairJob::default()).restored.len(), 3);
}

/// While a disk is not mounted, updates add layers, but not more than readers accept.
#[test]
fn an_update_adds_no_layer_that_readers_refuse() {
    let root = yard();
    let disk = root.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let Some(mount) = Mount::new(&MEMORY, &disk) else { return };
    fill(&disk);
    protected(&plenty(root.path()));
    drop(mount);
    let refused = (0..100).find_map(|number: u64| {
        let bytes = Chance::new(100 + number).bytes(3_000);
        write(&root.path().join(format!("new{number}")), &bytes, 0o644, number);
        update(&only(root.path()), &UpdateJob::default().sync(false), &|_| {}).err()
    });
    let error = refused.unwrap().to_string();
    assert!(error.contains("its parity cannot be made anew"), "{error}");
    let report = check(root.path());
    assert!(report.status != State::Lost && report.unreadable_layers == 0, "{report:?}");
}

/// The copies may have the only bytes of files that the unreadable layer described.
#[test]
fn copies_stay_while_a_layer_cannot_be_read() {
    let root = yard();
    protected(&plenty(root.path()));
    let parity = root.path().join(".paritas");
    let old: Vec<PathBuf> =
        fs::read_dir(&parity).unwrap().map(|entry| entry.unwrap().path()).collect();
    write(&root.path().join("new"), &Chance::new(30).bytes(6_000), 0o644, 9);
    assert_eq!(updated(root.path()).updated, Updated::Layer);
    flip(&root.path().join("new"), 5_000);
    let wanted = RepairJob::default().restore_changed(true);
    assert_eq!(repaired(root.path(), wanted).restored.len(), 1);
    old.iter().for_each(|path| fs::remove_file(path).unwrap());
    let report = check(root.path());
    assert_eq!(report.unreadable_layers, 1, "{report:?}");
    let report = repaired(root.path(), RepairJob::default().clean(true));
    assert!(report.cleaned.is_empty(), "{report:?}");
    assert_eq!(copies(root.path()).len(), 1);
}

#[test]
fn other_file_systems_are_left_out_on_demand() {
    let root = yard();
    let [disk, kernel] = ["disk", "kernel"].map(|name| root.path().join(name));
    let file = root.path().join("made");
    fs::create_dir(&disk).unwrap();
    fs::create_dir(&kernel).unwrap();
    fs::write(&file, "").unwrap();
    let Some(_disk) = Mount::new(&MEMORY, &disk) else { return };
    let Some(_kernel) = Mount::new(&["-t", "proc", "proc"], &kernel) else { return };
    let Some(_file) = Mount::new(&["--bind", "/proc/version"], &file) else { return };
    fill(&disk);
    let report = protected(&plenty(root.path()));
    let skipped: Vec<_> = report.skipped.iter().map(|one| (&one.path, one.is_special())).collect();
    assert_eq!((report.files, skipped), (7, vec![(&kernel, true), (&file, false)]));
    assert!(report.skipped[1].reason.contains("has content"), "{report:?}");
    let report = protected(&plenty(root.path()).one_file_system(true).force(true));
    assert_eq!(report.files, 4);
    write(&disk.join("more"), b"more", 0o644, 9);
    assert_eq!(updated(root.path()).added, 0);
    assert!(plan(&job(&kernel)).unwrap_err().to_string().contains("cannot be protected"));
}

#[test]
fn a_folder_that_is_shown_again_on_its_own_disk_is_a_mount() {
    let (root, elsewhere) = (yard(), tempfile::tempdir().unwrap());
    let shown = root.path().join("shown");
    fs::create_dir(&shown).unwrap();
    fill(elsewhere.path());
    let source = elsewhere.path().to_str().unwrap();
    let Some(mount) = Mount::new(&["--bind", source], &shown) else { return };
    assert_eq!(protected(&plenty(root.path()).one_file_system(true)).files, 4);
    assert_eq!(protected(&plenty(root.path()).force(true)).files, 7);
    drop(mount);
    let report = check(root.path());
    let is_unread = |one: &(&str, &FileState, bool)| matches!(one.1, FileState::Unreadable(_));
    assert!(states(&report).len() >= 3 && states(&report).iter().all(is_unread), "{report:?}");
    assert_eq!(updated(root.path()).gone, 0);
}

#[test]
fn a_folder_in_which_something_came_and_went_is_no_change() {
    let root = yard();
    let inner = root.path().join("inner");
    fs::create_dir(&inner).unwrap();
    protected(&plenty(root.path()));
    fs::write(inner.join("passing"), "by").unwrap();
    fs::remove_file(inner.join("passing")).unwrap();
    assert_eq!(updated(root.path()).updated, Updated::Nothing);
    // Attributes are read again where times differ.
    if xattr::set(&inner, "user.note", b"kept").is_ok() {
        assert_eq!(updated(root.path()).updated, Updated::Layer);
        assert_eq!(updated(root.path()).updated, Updated::Nothing);
    }
}

const LIST: &str = "system.posix_acl_access";

#[test]
fn access_control_lists_are_kept_and_give_nobody_more() {
    let root = yard();
    let (gone, kept) = (root.path().join("a"), root.path().join("b"));
    // The owner and user 1 read and write, the group and others may do nothing. The mode says that
    // the group may, because its bits are the list's mask.
    let anybody = u32::MAX;
    let access = [(1, 6, anybody), (2, 6, 1), (4, 0, anybody), (16, 6, anybody), (32, 0, anybody)];
    for file in [&gone, &kept] {
        if xattr::set(file, LIST, &list(&access)).is_err() {
            return not_run("no access control lists here");
        }
        let note = file.file_name().unwrap().as_encoded_bytes();
        xattr::set(file, "user.note", note).unwrap();
        assert_eq!(fs::metadata(file).unwrap().mode() & 0o777, 0o660);
    }
    let report = make(&plenty(root.path()));
    for parity in &report.parity_files {
        assert_eq!(fs::metadata(parity).unwrap().mode() & 0o777, 0o600);
    }
    fs::remove_file(&gone).unwrap();
    flip(&kept, 5_000);
    // The list of a file that is there counts as it is now.
    let now = [(1, 6, anybody), (2, 4, 1), (4, 0, anybody), (16, 4, anybody), (32, 0, anybody)];
    xattr::set(&kept, LIST, &list(&now)).unwrap();
    let report = repaired(root.path(), RepairJob::default());
    assert!(report.restored.len() == 2 && report.not_kept.is_empty(), "{report:?}");
    for (file, entries, mode) in [(&gone, access, 0o660), (&kept, now, 0o640)] {
        assert_eq!(xattr::get(file, LIST).unwrap(), Some(list(&entries)));
        let note = file.file_name().unwrap().as_encoded_bytes();
        assert_eq!(xattr::get(file, "user.note").unwrap().as_deref(), Some(note));
        assert_eq!(fs::metadata(file).unwrap().mode() & 0o777, mode);
    }
    assert_eq!(xattr::get(root.path().join("c"), LIST).unwrap(), None);
}

/// What a catalogue has no room for is said, and a file that is there gives its attributes itself.
#[test]
fn large_attributes_stay_with_files_that_are_there() {
    let root = tempfile::tempdir().unwrap();
    let Some(_disk) = Mount::new(&MEMORY, root.path()) else { return };
    let file = root.path().join("file");
    write(&file, &Chance::new(5).bytes(9_000), 0o644, 1);
    let names = ["user.a", "user.b", "user.c"];
    let values = [vec![1; 40_000], vec![2; 40_000], b"small".to_vec()];
    for (name, value) in names.iter().zip(&values) {
        if xattr::set(&file, name, value).is_err() {
            return not_run("no large attributes here");
        }
    }
    let count = |report: ProtectReport| {
        let is_told = |it: &&String| it.contains("extended attributes of 1 path are not recorded");
        report.warnings.iter().filter(is_told).count()
    };
    assert_eq!(count(make(&plenty(root.path()))), 1);
    let kept = || names.map(|name| xattr::get(&file, name).unwrap());
    flip(&file, 5_000);
    let report = repaired(root.path(), RepairJob::default());
    assert!(report.restored.len() == 1 && report.not_kept.is_empty(), "{report:?}");
    assert_eq!(kept(), values.clone().map(Some));
    fs::remove_file(&file).unwrap();
    repaired(root.path(), RepairJob::default());
    assert_eq!(kept(), [Some(values[0].clone()), None, Some(values[2].clone())]);
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Returns the modes that the parity files in a folder have, each once.
fn modes_of_parity(folder: &Path) -> Vec<u32> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut modes: Vec<u32> = entries.map(|path| mode(&path)).collect();
    modes.sort_unstable();
    modes.dedup();
    modes
}

/// A folder that lets nobody in guards the files in it, whatever their modes are. With the parity,
/// and the files outside, anybody could compute them.
#[test]
fn parity_is_as_closed_as_the_folders() {
    let (root, disk) = (yard(), tempfile::tempdir().unwrap());
    let parity = root.path().join(".paritas");
    let [outer, mail, empty] = ["outer", "outer/Mail", "empty"].map(|it| root.path().join(it));
    [&outer, &mail, &empty].iter().for_each(|folder| fs::create_dir(folder).unwrap());
    write(&mail.join("inbox"), &Chance::new(9).bytes(3_000), 0o644, 1);
    // Nothing is in it that could be read.
    set_mode(&empty, 0o700);
    for (closed, in_folder, in_parity) in [
        (&mail, 0o755, 0o644),
        (&mail, 0o700, 0o600),
        (&mail, 0o750, 0o640),
        (&outer, 0o700, 0o600),
        (&outer, 0o744, 0o600),
    ] {
        set_mode(closed, in_folder);
        protected(&plenty(root.path()).force(true));
        assert_eq!(modes_of_parity(&parity), [in_parity], "{in_folder:o}");
        // What a repair makes anew is as closed.
        let lost = fs::read_dir(&parity).unwrap().next().unwrap().unwrap().path();
        fs::remove_file(&lost).unwrap();
        assert_eq!(repaired(root.path(), RepairJob::default()).parity, [lost]);
        assert_eq!(modes_of_parity(&parity), [in_parity], "{in_folder:o}");
        set_mode(closed, 0o755);
    }
    // The folders that lead to the parity itself guard it as well, unless it lies elsewhere.
    set_mode(root.path(), 0o700);
    protected(&plenty(root.path()).force(true));
    assert_eq!(modes_of_parity(&parity), [0o644]);
    for (in_root, in_parity) in [(0o700, 0o600), (0o755, 0o644)] {
        set_mode(root.path(), in_root);
        let elsewhere = plenty(root.path()).parity_dirs(vec![disk.path().to_owned()]);
        protected(&elsewhere.force(true));
        assert_eq!(modes_of_parity(disk.path()), [in_parity], "{in_root:o}");
    }
}

/// The catalogue of a new layer names all files, and old parity still has bytes of a file that was
/// closed since.
#[test]
fn parity_of_an_update_is_as_closed_as_all_files() {
    let root = yard();
    let [parity, diary] = [".paritas", "a"].map(|name| root.path().join(name));
    protected(&plenty(root.path()));
    assert_eq!(modes_of_parity(&parity), [0o644]);
    set_mode(&diary, 0o600);
    assert_eq!(updated(root.path()).updated, Updated::Layer);
    assert_eq!(modes_of_parity(&parity), [0o600]);
    write(&root.path().join("new"), b"new", 0o644, 9);
    let report = updated(root.path());
    assert_eq!((report.updated, report.warnings.len()), (Updated::Layer, 0), "{report:?}");
    assert_eq!(modes_of_parity(&parity), [0o600]);
    // What is closed stays so. What somebody has opened is closed, although nothing has changed.
    let some = fs::read_dir(&parity).unwrap().next().unwrap().unwrap().path();
    set_mode(&some, 0o644);
    assert_eq!(updated(root.path()).updated, Updated::Nothing);
    assert_eq!(modes_of_parity(&parity), [0o600]);
    set_mode(&diary, 0o644);
    assert_eq!(updated(root.path()).updated, Updated::Layer);
    assert_eq!((mode(&some), modes_of_parity(&parity)), (0o600, vec![0o600, 0o644]));
}

/// Whoever runs the commands, parity and restored files belong to whom the tree belongs.
#[test]
fn owners_stay() {
    let root = yard();
    let folder = root.path().join("folder");
    fs::create_dir(&folder).unwrap();
    write(&folder.join("file"), &Chance::new(9).bytes(3_000), 0o644, 1);
    let mine = [(root.path().to_owned(), 1000, 1001), (folder.clone(), 1000, 1002)];
    let file = (folder.join("file"), 1003, 1004);
    for (path, user, group) in mine.iter().chain([&file]) {
        if chown(path, Some(*user), Some(*group)).is_err() {
            return not_run("only root gives files away");
        }
    }
    let owner = |path: &Path| fs::metadata(path).map(|it| (it.uid(), it.gid())).unwrap();
    let report = make(&plenty(root.path()));
    assert_eq!(owner(&root.path().join(".paritas")), (1000, 1001));
    assert!(report.parity_files.iter().all(|parity| owner(parity) == (1000, 1001)));
    fs::remove_dir_all(&folder).unwrap();
    repaired(root.path(), RepairJob::default());
    assert_eq!((owner(&folder), owner(&file.0)), ((1000, 1002), (1003, 1004)));
    // Nobody computes what they may not read.
    let maker = owner(tempfile::NamedTempFile::new().unwrap().path());
    let expect = |path: &Path, mode: u32, owners: (u32, u32)| {
        let then = fs::metadata(path).unwrap().mode();
        set_mode(path, mode);
        let files = make(&plenty(root.path()).force(true)).parity_files;
        assert!(files.iter().all(|it| owner(it).0 == owners.0), "{} {mode:o}", path.display());
        set_mode(path, then & 0o7777);
    };
    expect(&file.0, 0o640, maker);
    expect(&file.0, 0o604, maker);
    expect(&folder, 0o700, (1000, 1001));
    chown(&folder, Some(1003), Some(1004)).unwrap();
    expect(&folder, 0o750, maker);
    chown(&folder, Some(1003), Some(1001)).unwrap();
    expect(&folder, 0o750, (1000, 1001));
    // A folder without files keeps nothing from anybody.
    fs::create_dir(root.path().join("lost+found")).unwrap();
    expect(&root.path().join("lost+found"), 0o700, (1000, 1001));
}

/// The members of the parity's group are others to a file or a folder of another group.
#[test]
fn parity_is_closed_to_groups_that_others_are_in() {
    let root = yard();
    let [parity, folder, file] = [".paritas", "folder", "a"].map(|name| root.path().join(name));
    fs::create_dir(&folder).unwrap();
    write(&folder.join("file"), &Chance::new(9).bytes(3_000), 0o644, 1);
    for (path, group, mode, in_parity) in [
        (&folder, 1001, 0o750, 0o640),
        (&folder, 1002, 0o755, 0o644),
        (&folder, 1002, 0o750, 0o600),
        (&file, 1001, 0o640, 0o640),
        (&file, 1002, 0o644, 0o644),
        (&file, 1002, 0o640, 0o600),
        (&file, 1002, 0o604, 0o600),
    ] {
        set_mode(&folder, 0o755);
        set_mode(&file, 0o644);
        for path in [root.path(), &folder, &file, &folder.join("file")] {
            if chown(path, Some(1000), Some(1001)).is_err() {
                return not_run("only root gives files away");
            }
        }
        ["b", "c", "d"].iter().for_each(|name| {
            chown(root.path().join(name), Some(1000), Some(1001)).unwrap();
        });
        chown(path, Some(1000), Some(group)).unwrap();
        set_mode(path, mode);
        protected(&plenty(root.path()).force(true));
        assert_eq!(modes_of_parity(&parity), [in_parity], "{} {mode:o}", path.display());
    }
}

/// Changes bytes of a file on a disk in memory as a disk does: the system notes no time, because a
/// program writes to its own memory.
fn rot(path: &Path, at: u64) -> bool {
    let script = "import mmap, sys\n\
                  with open(sys.argv[1], 'r+b') as file, mmap.mmap(file.fileno(), 0) as memory:\n\
                  \x20   memory[int(sys.argv[2])] ^= 0x5a";
    let ctime = |path: &Path| fs::metadata(path).map(|it| (it.ctime(), it.ctime_nsec())).unwrap();
    let before = ctime(path);
    let done = Command::new("python3").args(["-c", script]).arg(path).arg(at.to_string()).status();
    let is_rotten = done.is_ok_and(|done| done.success()) && ctime(path) == before;
    if !is_rotten {
        not_run("bytes cannot be changed here without a trace");
    }
    is_rotten
}

/// A repair gives files new ctimes. They still show whether a file decayed later, or was written
/// later.
#[test]
fn a_restored_file_decays_like_any_other() {
    let root = tempfile::tempdir().unwrap();
    let Some(_disk) = Mount::new(&MEMORY, root.path()) else { return };
    for (number, name) in (1..).zip(["a", "b", "c", "d"]) {
        write(&root.path().join(name), &Chance::new(number).bytes(9_000), 0o644, number);
    }
    let [gone, file, other] = ["a", "b", "c"].map(|name| root.path().join(name));
    protected(&plenty(root.path()));
    let before = fs::read(&file).unwrap();
    fs::remove_file(&gone).unwrap();
    for at in [5_000, 6_000] {
        if !rot(&file, at) || gone.exists() && !rot(&gone, at) {
            return;
        }
        let report = check(root.path());
        assert!(matches!(states(&report)[1], ("b", FileState::Damaged(_), true)), "{report:?}");
        // Nothing says that it should be read.
        let quick = VerifyOptions::default().quick(true);
        let quick = verify(&only(root.path()), &quick, &|_| {}).unwrap();
        assert!(states(&quick).iter().all(|(name, ..)| *name != "b"), "{quick:?}");
        let restored = repaired(root.path(), RepairJob::default()).restored;
        assert_eq!(restored, [gone.clone(), file.clone()]);
        assert_eq!(fs::read(&file).unwrap(), before);
    }
    // What was written on purpose is a change, whether the file had been restored or not.
    rewrite(&file, 3_000, &[7; 2_000]);
    rewrite(&other, 3_000, &[7; 2_000]);
    let report = check(root.path());
    assert!(
        matches!(
            states(&report)[..],
            [("b", FileState::Changed(_), true), ("c", FileState::Changed(_), true)]
        ),
        "{report:?}"
    );
    assert!(repaired(root.path(), RepairJob::default()).restored.is_empty());
    let report = repaired(root.path(), RepairJob::default().restore_changed(true));
    assert_eq!(report.restored, [file, other]);
    assert!(report.warnings.is_empty(), "{report:?}");
    // An update notes the new times in its catalogue.
    let count = || fs::read_dir(root.path().join(".paritas")).unwrap().count();
    assert_eq!((updated(root.path()).updated, count()), (Updated::Layer, 11));
    assert_eq!(updated(root.path()).updated, Updated::Nothing);
    protected(&plenty(root.path()).force(true));
    assert_eq!(count(), 5);
}

/// A further name that a repair restores gives its file a new ctime, too.
#[test]
fn a_file_whose_name_was_restored_decays_like_any_other() {
    let root = tempfile::tempdir().unwrap();
    let Some(_disk) = Mount::new(&MEMORY, root.path()) else { return };
    let [file, name, other] = ["a", "b", "c"].map(|name| root.path().join(name));
    write(&file, &Chance::new(1).bytes(9_000), 0o644, 1);
    write(&other, &Chance::new(2).bytes(9_000), 0o644, 2);
    fs::hard_link(&file, &name).unwrap();
    protected(&plenty(root.path()));
    fs::remove_file(&name).unwrap();
    assert_eq!(repaired(root.path(), RepairJob::default()).restored, [name]);
    if rot(&file, 5_000) {
        let report = check(root.path());
        assert!(matches!(states(&report)[..], [("a", FileState::Damaged(_), true)]), "{report:?}");
        assert_eq!(repaired(root.path(), RepairJob::default()).restored[0], file);
    }
}

/// A file of somebody under the name of the list of restored files stays, and a damaged list does
/// no harm.
#[test]
fn the_list_of_restored_files_is_only_a_hint() {
    let root = yard();
    let parity = root.path().join(".paritas");
    protected(&plenty(root.path()));
    let remove = || fs::remove_file(root.path().join("b")).unwrap();
    remove();
    assert!(repaired(root.path(), RepairJob::default()).warnings.is_empty());
    let paths = fs::read_dir(&parity).unwrap().map(|entry| entry.unwrap().path());
    let list = paths.into_iter().find(|path| path.to_str().unwrap().contains(".restored."));
    let list = list.unwrap();
    assert_eq!(fs::metadata(&list).unwrap().mode() & 0o777, 0o644);
    for content in [&b"mine"[..], b"", &[7; 100], b"Paritas restored and more"] {
        fs::write(&list, content).unwrap();
        assert_eq!(check(root.path()).status, State::Intact);
        remove();
        let report = repaired(root.path(), RepairJob::default());
        let is_list = content.starts_with(b"Paritas restored");
        assert_eq!((report.restored.len(), report.warnings.len()), (1, usize::from(!is_list)));
        assert_eq!(fs::read(&list).unwrap() == content, !is_list);
    }
    // Without parity files, the list alone does not count as parity.
    for path in fs::read_dir(&parity).unwrap().map(|entry| entry.unwrap().path()) {
        if path != list {
            fs::remove_file(path).unwrap();
        }
    }
    assert!(!paritas_protect::has_parity(root.path()));
}

/// Sparse files may have more bytes together than any number of the format.
#[test]
fn more_bytes_than_any_number_holds_are_refused() {
    let root = tempfile::tempdir().unwrap();
    let Some(_disk) = Mount::new(&MEMORY, root.path()) else { return };
    for (name, size) in [("a", i64::MAX as u64), ("b", i64::MAX as u64), ("c", 3)] {
        File::create(root.path().join(name)).unwrap().set_len(size).unwrap();
    }
    let error = plan(&job(root.path())).unwrap_err().to_string();
    assert!(error.contains("have 18446744073709551617 bytes together"), "{error}");
    assert!(error.contains("at most 10995116277760000 bytes"), "{error}");
}

/// The last name of a file that is left is written, and its time is kept.
#[test]
fn a_name_that_was_written_is_a_change() {
    let root = yard();
    let [file, name] = ["a", "name"].map(|name| root.path().join(name));
    fs::hard_link(&file, &name).unwrap();
    protected(&plenty(root.path()));
    fs::remove_file(&file).unwrap();
    rewrite(&name, 3_000, &[7; 2_000]);
    let (before, new) = (check(root.path()), fs::read(&name).unwrap());
    let found = states(&before);
    assert_eq!(found[0], ("a", &FileState::Missing, false));
    assert!(matches!(found[1], ("name", FileState::Changed(_), true)), "{before:?}");
    assert_eq!(repaired(root.path(), RepairJob::default()).restored, std::slice::from_ref(&file));
    assert!(fs::read(&name).unwrap() == new && fs::read(&file).unwrap() != new);
}
