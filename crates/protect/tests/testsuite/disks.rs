//! Trees with several disks in them, and disks that fold names or have little room. A test whose
//! disks this machine cannot mount says so and does nothing.
#![cfg(target_os = "linux")]

use crate::common;
use std::fs::{self, FileTimes, Permissions};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use crate::common::{Chance, assert_same, check, flip, job, make, not_run, only, snapshot, write};
use paritas_protect::{
    ErrorKind, FileState, RepairJob, RepairReport, State, plan, protect, repair,
};

/// A mounted disk, which is unmounted in the end.
struct Disk {
    at: PathBuf,
    /// The device in a file that it was mounted from.
    device: Option<String>,
}

impl Disk {
    /// Mounts an empty disk of this size in memory.
    fn in_memory(at: &Path, size: &str) -> Option<Self> {
        let size = format!("size={size}");
        let at = at.to_owned();
        let is_mounted =
            done(Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&at));
        is_mounted.then_some(Self { at, device: None })
    }

    /// Mounts an exFAT disk, whose names do not tell upper from lower case.
    fn folding(at: &Path, file: &Path) -> Option<Self> {
        fs::File::create(file).unwrap().set_len(64 << 20).unwrap();
        if !done(Command::new("mkfs.exfat").arg(file)) {
            return None;
        }
        let loop_device = Command::new("losetup").args(["-f", "--show"]).arg(file).output().ok()?;
        let device = String::from_utf8(loop_device.stdout).unwrap().trim().to_owned();
        let disk = Self { at: at.to_owned(), device: Some(device.clone()) };
        let is_mounted = done(Command::new("mount.exfat-fuse").arg(&device).arg(at))
            || done(Command::new("mount").args(["-t", "exfat", &device]).arg(at));
        is_mounted.then_some(disk)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        done(Command::new("umount").arg(&self.at));
        if let Some(device) = &self.device {
            done(Command::new("losetup").args(["-d", device]));
        }
    }
}

fn done(command: &mut Command) -> bool {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// Says that a test does nothing.
fn skip(what: &str) {
    not_run(&format!("this machine cannot mount {what}"));
}

fn repaired(root: &Path, job: RepairJob) -> RepairReport {
    repair(&only(root), &job.sync(false), &|_| {}).unwrap()
}

/// A file is restored on the disk that it was on. What another disk has room for does not matter.
#[test]
fn each_disk_has_its_own_room() {
    let folder = tempfile::tempdir().unwrap();
    let [root, parity] = ["root", "parity"].map(|name| folder.path().join(name));
    [&root, &parity].iter().for_each(|path| fs::create_dir(path).unwrap());
    let Some(_outer) = Disk::in_memory(&root, "1m") else { return skip("a disk in memory") };
    let big = root.join("big");
    fs::create_dir(&big).unwrap();
    let _inner = Disk::in_memory(&big, "64m").unwrap();
    write(&big.join("film"), &Chance::new(1).bytes(3_000_000), 0o644, 1);
    write(&root.join("small"), &Chance::new(2).bytes(600_000), 0o644, 1);
    let job = job(&root).redundancy("150%".parse().unwrap());
    // Parity in the root finds no room there, and nothing is read.
    let error = protect(&plan(&job).unwrap(), &|_| panic!("it reads")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    assert!(error.to_string().contains("has room for") && !root.join(".paritas").exists());
    make(&job.parity_dirs(vec![parity.clone()]));
    let before = snapshot(&root);
    fs::remove_file(big.join("film")).unwrap();
    // The outer disk has no room for a second copy of its file.
    flip(&root.join("small"), 9);
    let damaged = fs::read(root.join("small")).unwrap();
    // A flipped byte may count as a change: the system has noted that the file was written.
    let all = || RepairJob::default().restore_changed(true);
    let foretold = repaired(&parity, all().dry_run(true));
    let report = repaired(&parity, all());
    assert_eq!(report.restored, [big.join("film")]);
    assert_eq!(report.failed.len(), 1, "{report:?}");
    assert_eq!(
        (foretold.restored, foretold.failed),
        (report.restored.clone(), report.failed.clone())
    );
    assert_eq!(foretold.disks.iter().map(|disk| disk.bytes).sum::<u64>(), 3_600_000);
    assert!(report.failed[0].reason.contains("of the 600000 bytes"), "{report:?}");
    assert!(fs::read(root.join("small")).unwrap() == damaged);
    fs::remove_file(root.join("small")).unwrap();
    assert_eq!(repaired(&parity, RepairJob::default()).restored, [root.join("small")]);
    assert_same(&snapshot(&root), &before, "repairing");
}

/// What a killed repair has left does not fill the disk for ever: it goes if nothing is read from
/// it or the parity can replace it, and becomes the file if it is whole.
#[test]
fn leftovers_give_up_their_room() {
    let (root, parity) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let Some(_disk) = Disk::in_memory(root.path(), "10m") else { return skip("a disk in memory") };
    let (file, bytes) = (root.path().join("film"), Chance::new(11).bytes(6_000_000));
    write(&file, &bytes, 0o640, 1);
    let job = job(root.path()).parity_dirs(vec![parity.path().to_owned()]);
    make(&job.clone().redundancy("110%".parse().unwrap()));
    let before = snapshot(root.path());
    let id = only(parity.path()).id().to_string();
    let left = root.path().join(format!(".paritas-{}-0123456789abcdef.tmp", &id[..8]));
    let noise = Chance::new(12).bytes(5_500_000);
    for rest in [&noise[..], &bytes[..5_500_000], &bytes] {
        fs::remove_file(&file).unwrap();
        fs::write(&left, rest).unwrap();
        fs::File::options().write(true).open(&left).unwrap().set_len(6_000_000).unwrap();
        let foretold = repaired(parity.path(), RepairJob::default().dry_run(true));
        let report = repaired(parity.path(), RepairJob::default());
        assert!(report.failed.is_empty() && !left.exists(), "{report:?}");
        assert_eq!((foretold.failed.len(), &foretold.restored), (0, &report.restored));
        assert_eq!(report.restored, [file.as_path()]);
        assert_same(&snapshot(root.path()), &before, "repairing");
    }
    // With less parity, the bytes that were written are needed, and the message names their file.
    make(&job.redundancy("10%".parse().unwrap()).force(true));
    fs::remove_file(&file).unwrap();
    fs::write(&left, &bytes[..5_600_000]).unwrap();
    let report = repaired(parity.path(), RepairJob::default());
    assert!(report.restored.is_empty() && left.exists(), "{report:?}");
    let named = format!("a killed repair has left {}", left.display());
    assert!(report.failed[0].reason.contains(&named), "{report:?}");
}

/// What a first repair to a folder has restored there takes no room in a second one, and what a
/// killed one has left there goes.
#[test]
fn restored_files_take_no_room_again() {
    let (root, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let Some(_disk) = Disk::in_memory(to.path(), "1m") else { return skip("a disk in memory") };
    let names = ["a", "b"].map(|name| root.path().join(name));
    for (number, path) in (0..).zip(&names) {
        write(path, &Chance::new(13 + number).bytes(400_000), 0o644, 1);
    }
    make(&job(root.path()).redundancy("200%".parse().unwrap()));
    let before = snapshot(root.path());
    names.iter().for_each(|path| fs::remove_file(path).unwrap());
    let id = only(root.path()).id().to_string();
    let left = to.path().join(format!(".paritas-{}-0123456789abcdef.tmp", &id[..8]));
    let job = RepairJob::default().to(to.path().to_owned());
    for lost in [None, Some("b")] {
        if let Some(name) = lost {
            fs::rename(to.path().join(name), &left).unwrap();
        }
        let foretold = repaired(root.path(), job.clone().dry_run(true));
        let report = repaired(root.path(), job.clone());
        assert_eq!((report.restored.len(), report.failed.len()), (2, 0), "{report:?}");
        let needed: u64 = foretold.disks.iter().map(|disk| disk.bytes).sum();
        assert_eq!(needed, if lost.is_some() { 400_000 } else { 800_000 });
        assert_same(&snapshot(to.path()), &before, "restoring elsewhere");
    }
}

/// A file with holes takes as little room as it did, and its zeros are not written.
#[test]
fn holes_take_no_room() {
    let root = tempfile::tempdir().unwrap();
    let Some(_disk) = Disk::in_memory(root.path(), "100m") else {
        return skip("a disk in memory");
    };
    let image = root.path().join("image");
    let file = fs::File::create(&image).unwrap();
    file.set_len(200 << 20).unwrap();
    file.write_all_at(&Chance::new(3).bytes(1_000_000), 70_000_001).unwrap();
    common::age(&image, 1);
    make(&job(root.path()));
    let before = fs::read(&image).unwrap();
    flip(&image, 70_500_000);
    let job = RepairJob::default().restore_changed(true);
    assert_eq!(repaired(root.path(), job).restored, [image.as_path()]);
    assert!(fs::read(&image).unwrap() == before);
    let taken = fs::metadata(&image).unwrap().blocks() * 512;
    assert!(taken < 1_200_000, "{taken} bytes");
}

/// What was moved to another disk is copied back, with its attributes, and leaves nothing there.
#[test]
fn moving_back_from_another_disk_copies() {
    let root = tempfile::tempdir().unwrap();
    let other = root.path().join("other");
    fs::create_dir(&other).unwrap();
    let Some(_disk) = Disk::in_memory(&other, "50m") else { return skip("a disk in memory") };
    let [file, deep] = ["a", "folder/b"].map(|name| root.path().join(name));
    fs::create_dir(root.path().join("folder")).unwrap();
    write(&file, &Chance::new(4).bytes(400_000), 0o640, 1);
    write(&deep, &Chance::new(5).bytes(2_000_000), 0o644, 2);
    symlink("../a", root.path().join("folder/link")).unwrap();
    fs::hard_link(&file, root.path().join("name")).unwrap();
    make(&job(root.path()));
    let before = snapshot(root.path());
    for name in ["a", "folder", "name"] {
        assert!(done(Command::new("cp").arg("-a").arg(root.path().join(name)).arg(&other)));
    }
    fs::remove_file(other.join("name")).unwrap();
    fs::hard_link(other.join("a"), other.join("name")).unwrap();
    for path in [file.clone(), root.path().join("name")] {
        fs::remove_file(path).unwrap();
    }
    fs::remove_dir_all(root.path().join("folder")).unwrap();
    fs::set_permissions(other.join("a"), Permissions::from_mode(0o600)).unwrap();
    let report = repaired(root.path(), RepairJob::default().move_back(true));
    assert!(report.failed.is_empty() && report.moved_back.len() == 4, "{report:?}");
    assert_eq!(check(root.path()).status, State::Intact);
    // Whoever was shut out meanwhile stays so.
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
    fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
    assert_eq!(fs::metadata(&file).unwrap().nlink(), 2);
    fs::remove_dir(other.join("folder")).unwrap();
    assert_same(&snapshot(root.path()), &before, "moving back");
}

/// A file is copied back from another disk only if there is room for it, and a dry run counts it.
#[test]
fn moving_back_from_another_disk_takes_room() {
    let (root, parity) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let Some(_outer) = Disk::in_memory(root.path(), "1m") else { return skip("a disk in memory") };
    let [file, other] = ["film", "other"].map(|name| root.path().join(name));
    fs::create_dir(&other).unwrap();
    let _inner = Disk::in_memory(&other, "64m").unwrap();
    let bytes = Chance::new(9).bytes(600_000);
    write(&file, &bytes, 0o644, 1);
    make(&job(root.path()).parity_dirs(vec![parity.path().to_owned()]));
    let [there, filling] = [other.join("film"), root.path().join("filling")];
    assert!(done(Command::new("cp").arg("-a").arg(&file).arg(&there)));
    fs::remove_file(&file).unwrap();
    fs::write(&filling, Chance::new(10).bytes(700_000)).unwrap();
    let job = RepairJob::default().move_back(true);
    let report = repaired(parity.path(), job.clone().dry_run(true));
    assert_eq!((report.moved_back.len(), report.failed.len()), (0, 1), "{report:?}");
    let disks: Vec<_> = report.disks.iter().map(|disk| (&*disk.folder, disk.bytes)).collect();
    assert_eq!(disks, [(root.path(), 600_000)]);
    let report = repaired(parity.path(), job.clone());
    assert!(report.moved_back.is_empty() && report.failed[0].path == file, "{report:?}");
    assert!(report.failed[0].reason.contains("of the 600000 bytes"), "{report:?}");
    assert!(!file.exists() && fs::read(&there).unwrap() == bytes);
    fs::remove_file(&filling).unwrap();
    assert_eq!(repaired(parity.path(), job).moved_back.len(), 1);
    assert!(!there.exists() && fs::read(&file).unwrap() == bytes);
}

/// A new disk is mounted where a further name of a file was. The file gets a copy there.
#[test]
fn a_name_on_another_disk_becomes_a_copy() {
    let root = tempfile::tempdir().unwrap();
    let (file, other) = (root.path().join("file"), root.path().join("other"));
    fs::create_dir(&other).unwrap();
    write(&file, &Chance::new(8).bytes(30_000), 0o640, 1);
    fs::hard_link(&file, other.join("name")).unwrap();
    make(&job(root.path()));
    let before = snapshot(root.path());
    let Some(_disk) = Disk::in_memory(&other, "1m") else { return skip("a disk in memory") };
    fs::set_permissions(&other, Permissions::from_mode(0o755)).unwrap();
    let report = repaired(root.path(), RepairJob::default());
    assert!(report.failed.is_empty(), "{report:?}");
    assert_eq!((report.restored, report.not_kept), (vec![other.join("name")], vec!["links"]));
    assert_same(&snapshot(root.path()), &before, "repairing");
    assert_eq!(check(root.path()).status, State::Intact);
}

/// On a disk that does not tell upper from lower case, a name in another case is the same file. It
/// is repaired where it is, and gets its own name back if that is wanted.
#[test]
fn names_in_another_case_are_known() {
    let yard = tempfile::tempdir().unwrap();
    let root = yard.path().join("root");
    fs::create_dir(&root).unwrap();
    let Some(_disk) = Disk::folding(&root, &yard.path().join("disk")) else {
        return skip("a disk that folds names");
    };
    fs::create_dir(root.join("dcim")).unwrap();
    let files = ["dcim/1.jpg", "dcim/2.jpg", "dcim/3.jpg", "Notes"];
    // The disk keeps even seconds, and the system remembers others for a while.
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    for (number, name) in (0..).zip(files) {
        fs::write(root.join(name), Chance::new(number).bytes(30_000)).unwrap();
        let file = fs::File::options().write(true).open(root.join(name)).unwrap();
        file.set_times(FileTimes::new().set_modified(time)).unwrap();
    }
    make(&job(&root).redundancy("50%".parse().unwrap()));
    let contents = || files.map(|name| fs::read(root.join(name)).unwrap());
    let before = contents();
    let rename = |from: &str, to: &str| fs::rename(root.join(from), root.join(to)).unwrap();
    rename("dcim/1.jpg", "dcim/1.JPG");
    rename("dcim/2.jpg", "dcim/2.Jpg");
    rename("dcim", "DCIM");
    let found = check(&root);
    assert_eq!((found.status, found.new.len()), (State::Intact, 0), "{found:?}");
    let moved = |name: &str, to: &str| {
        let finding = found.findings.iter().find(|one| one.name == Path::new(name)).unwrap();
        assert_eq!(finding.state, FileState::Moved(root.join(to)));
    };
    moved("dcim", "DCIM");
    moved("dcim/1.jpg", "DCIM/1.JPG");
    moved("dcim/3.jpg", "DCIM/3.jpg");
    // It is damaged under its new name, and repaired there.
    common::damage(&root.join("DCIM/2.Jpg"), |file| file.write_all_at(&[7; 9], 99).unwrap());
    assert!(check(&root).findings.iter().any(|one| one.path == root.join("DCIM/2.Jpg")));
    let job = RepairJob::default().restore_changed(true);
    assert_eq!(repaired(&root, job.clone()).restored, [root.join("DCIM/2.Jpg")]);
    let names = |folder: &str| {
        let entries = fs::read_dir(root.join(folder)).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        // What was replaced stays beside.
        names.retain(|name| !name.to_string_lossy().contains(".damaged-"));
        names.sort();
        names
    };
    assert_eq!(names("DCIM"), ["1.JPG", "2.Jpg", "3.jpg"]);
    let report = repaired(&root, job.move_back(true));
    assert!(report.failed.is_empty() && report.moved_back.len() == 3, "{report:?}");
    assert_eq!(
        (names(""), names("dcim")),
        (
            [".paritas", "Notes", "dcim"].map(Into::into).to_vec(),
            ["1.jpg", "2.jpg", "3.jpg"].map(Into::into).to_vec(),
        )
    );
    let found = check(&root);
    // The driver does not keep every time.
    assert_eq!(found.count(|state| *state != FileState::Touched), 0, "{found:?}");
    assert!(contents() == before);
}

/// A name that the file system refuses is explained. Names of parity files have no such characters,
/// unless somebody asks for them.
#[test]
fn refused_names_are_explained() {
    let yard = tempfile::tempdir().unwrap();
    let [root, disk] = ["a: b?", "disk"].map(|name| yard.path().join(name));
    [&root, &disk].iter().for_each(|path| fs::create_dir(path).unwrap());
    write(&root.join("why?"), &Chance::new(6).bytes(3_000), 0o644, 1);
    write(&root.join("plain"), &Chance::new(7).bytes(3_000), 0o644, 1);
    let planned = plan(&job(&root)).unwrap();
    assert_eq!(planned.label, "a_ b_");
    // An older version has made labels without replacing anything. There is one protection still.
    make(&job(&root).label("a: b?".to_owned()));
    assert_eq!(plan(&job(&root)).unwrap_err().kind(), ErrorKind::Exists);
    make(&job(&root).force(true).redundancy("100%".parse().unwrap()));
    assert_eq!(only(&root).label(), "a_ b_");
    let Some(_disk) = Disk::folding(&disk, &yard.path().join("image")) else {
        return skip("a disk that refuses names");
    };
    let words = |character: char| {
        format!(
            "the file system of {} probably refuses the character {character:?} in names",
            disk.display()
        )
    };
    let there = job(&root).parity_dirs(vec![disk.clone()]).force(true);
    let named = plan(&there.clone().label("a:b".to_owned())).unwrap();
    let error = protect(&named, &|_| panic!("it reads")).unwrap_err();
    assert!(error.to_string().ends_with(&words(':')), "{error}");
    let report = repaired(&root, RepairJob::default().to(disk.clone()));
    assert!(report.restored.is_empty(), "nothing was damaged: {report:?}");
    fs::remove_file(root.join("why?")).unwrap();
    fs::remove_file(root.join("plain")).unwrap();
    let report = repaired(&root, RepairJob::default().to(disk.clone()));
    assert_eq!(report.restored, [disk.join("plain")]);
    assert!(report.failed[0].reason.ends_with(&words('?')), "{report:?}");
}
