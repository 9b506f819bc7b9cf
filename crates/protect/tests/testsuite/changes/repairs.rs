//! Repairs: what they must never replace or seal, and how they go on after errors.

use super::*;

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
    // Beside them is a copy of the damaged file that was replaced.
    assert_eq!((names(root.path()).len(), names(to.path()).len()), (4, 3));
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
    assert_eq!(check(root.path()).status, State::Intact);
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
    assert_eq!(check(root.path()).status, State::Repairable);
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
    assert_eq!(report.status, State::Repairable);
    let states: Vec<_> = report.findings.iter().map(|finding| finding.state.clone()).collect();
    assert_eq!(states, [FileState::Moved(to.clone()), FileState::Missing]);
    let report = repaired(root.path(), RepairJob::default().move_back(true));
    assert_eq!((report.moved_back, report.restored), (vec![(to, one)], vec![two]));
    assert_eq!(check(root.path()).status, State::Intact);
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
    assert_eq!(report.status, State::Repairable);
    let report = mend(root.path());
    assert_eq!((report.found.status, report.parity), (State::Repairable, vec![lost]));
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
    renew_times(root.path());
    fs::rename(of(&new, ".0of"), of(&old, ".4of")).unwrap();
    fs::remove_file(of(&new, ".1of")).unwrap();
    flip(&root.path().join("new"), 7);
    let report = mend(root.path());
    assert!(report.failed.is_empty() && report.lost.is_empty(), "{report:?}");
    let report = check(root.path());
    assert!(report.status == State::Intact && report.parity.is_empty(), "{report:?}");
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
    assert_eq!(check(disk.path()).status, State::Intact);
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
    assert_eq!((report.status, report.layers[0].lost), (State::Repairable, 0));
    mend(root.path());
    assert_same(&snapshot(root.path()), &before, "repairing the first name");
    assert_eq!(fs::metadata(&first).unwrap().ino(), fs::metadata(&other).unwrap().ino());
}

/// In another folder, a link is restored together with its file, which may be whole in the tree.
#[test]
fn a_link_is_restored_elsewhere_with_its_file() {
    let root = linked_scene(53, "10%");
    let bytes = fs::read(root.path().join("link")).unwrap();
    fs::remove_file(root.path().join("link")).unwrap();
    let to = tempfile::tempdir().unwrap();
    let elsewhere = RepairJob::default().to(to.path().to_owned()).sync(false);
    let report = repair(&only(root.path()), &elsewhere, &|_| {}).unwrap();
    assert!(report.failed.is_empty(), "{report:?}");
    let [file, link] = ["d/big", "link"].map(|name| to.path().join(name));
    assert_eq!((fs::read(&file).unwrap(), inode(&file)), (bytes, inode(&link)));
    assert!(!root.path().join("link").exists());
}

/// Returns what all names of a file on a disk share.
fn inode(path: &Path) -> u64 {
    MetadataExt::ino(&fs::metadata(path).unwrap())
}

/// Makes a root with folder `d`, in which `big` is also called `link`, in the root. `d/a1` and
/// `d/c1` share blocks with it.
fn linked_scene(seed: u64, redundancy: &str) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let mut chance = Chance::new(seed);
    fs::create_dir(root.path().join("d")).unwrap();
    for (name, bytes) in [("d/a1", 5_100), ("d/big", 50_100), ("d/c1", 5_100), ("z", 30_000)] {
        write(&root.path().join(name), &chance.bytes(bytes), 0o644, 1);
    }
    fs::hard_link(root.path().join("d/big"), root.path().join("link")).unwrap();
    make(&job(root.path()).redundancy(redundancy.parse().unwrap()));
    root
}

/// A file whose other name has all of its bytes needs no parity, also where it shares blocks with
/// files that are lost.
#[test]
fn a_file_with_another_name_is_not_lost() {
    let root = linked_scene(81, "1%");
    let at = |name: &str| root.path().join(name);
    let (before, big) = (snapshot(root.path()), at("d/big"));
    fs::remove_dir_all(at("d")).unwrap();
    let found = check(root.path());
    assert!(found.status == State::Lost && found.restores, "{found:?}");
    let report = mend(root.path());
    assert_eq!(report.restored, [at("d"), big.clone()], "{report:?}");
    assert_eq!(report.lost, [at("d/a1"), at("d/c1")]);
    assert!(report.failed.is_empty(), "{report:?}");
    assert_eq!(inode(&big), inode(&at("link")));
    assert_eq!(snapshot(root.path())[Path::new("d/big")], before[Path::new("d/big")]);
    // Nothing is left for the next repair.
    let found = check(root.path());
    assert!(found.status == State::Lost && !found.restores, "{found:?}");
    assert!(mend(root.path()).restored.is_empty());
}

/// A file that is gone becomes a name of the file that its hard links lead to. These stay as they
/// are: they may have names outside of the protection.
#[test]
fn other_names_stay_the_same_file() {
    let root = linked_scene(82, "10%");
    let at = |name: &str| root.path().join(name);
    let (outside, again) = (tempfile::tempdir_in(root.path()).unwrap(), at("second"));
    fs::hard_link(at("link"), &again).unwrap();
    make(&job(root.path()).force(true).excludes(vec![outside.path().display().to_string()]));
    fs::hard_link(at("link"), outside.path().join("name")).unwrap();
    let before = snapshot(root.path());
    let number = inode(&at("link"));
    fs::remove_file(at("d/big")).unwrap();
    let foretold = repaired(root.path(), RepairJob::default().dry_run(true));
    let report = mend(root.path());
    assert_eq!((report.restored.clone(), report.failed.len()), (vec![at("d/big")], 0));
    assert_eq!(foretold.restored, report.restored);
    let names = [at("d/big"), at("link"), again, outside.path().join("name")];
    assert!(names.iter().all(|name| inode(name) == number));
    assert_same(&snapshot(root.path()), &before, "repairing the first name");
    assert_eq!(check(root.path()).status, State::Intact);
}

/// A hard link to a file that was changed and stays so is not made: it would have bytes that it
/// never had.
#[test]
fn no_link_is_made_to_changed_bytes() {
    let root = tempfile::tempdir().unwrap();
    let [other, first, link] = ["other", "f1", "f3"].map(|name| root.path().join(name));
    write(&other, &Chance::new(83).bytes(20_000), 0o644, 1);
    write(&first, b"old", 0o644, 2);
    fs::hard_link(&first, &link).unwrap();
    make(&job(root.path()));
    let before = snapshot(root.path());
    fs::write(&first, "new").unwrap();
    fs::remove_file(&link).unwrap();
    for dry_run in [true, false] {
        let report = repaired(root.path(), RepairJob::default().dry_run(dry_run));
        assert!(report.restored.is_empty() && !link.exists(), "{report:?}");
        let [failed] = &report.failed[..] else { panic!("{report:?}") };
        assert!(failed.path == link && failed.reason.contains("--restore-changed"), "{failed:?}");
    }
    let report = repaired(root.path(), RepairJob::default().restore_changed(true));
    assert_eq!((report.restored.len(), report.failed.len()), (2, 0), "{report:?}");
    remove_copies(root.path());
    assert_same(&snapshot(root.path()), &before, "restoring both names");
    assert_eq!(inode(&first), inode(&link));
}

/// A repair does not give back bits of a mode that grant rights, and verification does not report
/// that they are missing. A bit that is new is still reported.
#[test]
fn bits_that_grant_rights_are_not_restored() {
    let root = scene(84);
    let [file, folder] = ["one/3", "two"].map(|name| root.path().join(name));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    let set = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    set(&file, 0o6755);
    set(&folder, 0o2755);
    make(&job(root.path()).force(true).redundancy("200%".parse().unwrap()));
    fs::remove_file(&file).unwrap();
    fs::remove_dir_all(&folder).unwrap();
    assert!(mend(root.path()).failed.is_empty());
    assert_eq!((mode(&file), mode(&folder)), (0o755, 0o755));
    assert!(check(root.path()).findings.is_empty(), "{:?}", check(root.path()));
    set(&root.path().join("one/4"), 0o4644);
    set(&folder, 0o775);
    assert_eq!(check(root.path()).count(|state| *state == FileState::Touched), 2);
}

/// A file that was moved to the name of a parity file is not taken for parity: it stays, and its
/// bytes are found. The parity gets another name.
#[test]
fn files_under_names_of_parity_are_not_replaced() {
    let root = tempfile::tempdir().unwrap();
    let [old, new] = ["old", "u"].map(|name| root.path().join(name));
    let mut chance = Chance::new(85);
    write(&old, &chance.bytes(900), 0o644, 1);
    make(&job(root.path()));
    write(&new, &chance.bytes(20_000), 0o644, 2);
    assert_eq!(updated(root.path()).updated, Updated::Layer);
    let before = snapshot(root.path());
    let is_first = |path: &&PathBuf| !path.to_string_lossy().contains("layer");
    let parity = parity_files(root.path());
    let place = parity.iter().find(is_first).unwrap();
    fs::rename(&new, place).unwrap();
    let found = check(root.path());
    assert_eq!((found.status, found.parity.len()), (State::Repairable, 1), "{found:?}");
    let report = mend(root.path());
    assert_eq!((report.restored, report.parity.len()), (vec![new.clone()], 1));
    assert!(report.failed.is_empty() && report.lost.is_empty(), "{:?}", report.failed);
    assert_same(&snapshot(root.path()), &before, "repairing");
    assert_eq!(fs::read(place).unwrap(), fs::read(&new).unwrap(), "the file is still there");
    assert_eq!(check(root.path()).status, State::Intact);
    assert_eq!(parity_files(root.path()).len(), parity.len() + 1);
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

/// A file stays if it has bytes of another one that could not be restored.
#[test]
fn bytes_of_what_is_not_restored_stay() {
    let root = scene(58);
    let [folder, aside] = ["three", "aside"].map(|name| root.path().join(name));
    let (old, new) = (root.path().join("one/0"), folder.join("new"));
    fs::create_dir(&folder).unwrap();
    write(&new, &Chance::new(59).bytes(40_000), 0o644, 50);
    assert_eq!(updated(root.path()).updated, Updated::Layer);
    let before = snapshot(root.path());
    fs::rename(&new, &old).unwrap();
    fs::rename(&folder, &aside).unwrap();
    fs::write(&folder, "in the way").unwrap();
    let job = || RepairJob::default().restore_changed(true);
    let report = repaired(root.path(), job());
    assert!(report.restored.is_empty(), "{report:?}");
    let kept = report.failed.iter().find(|failed| failed.path == old).unwrap();
    assert!(kept.reason.contains("has bytes of a file"), "{report:?}");
    fs::remove_file(&folder).unwrap();
    fs::rename(&aside, &folder).unwrap();
    let report = repaired(root.path(), job());
    assert!(report.failed.is_empty() && report.lost.is_empty(), "{report:?}");
    assert_same(&snapshot(root.path()), &before, "repairing both");
}

/// A named pipe in place of a file is a change. Nothing is hidden by it, and it stays.
#[test]
fn a_pipe_in_place_of_a_file_is_a_change() {
    use std::os::unix::fs::FileTypeExt;
    let root = scene(60);
    let path = root.path().join("one/3");
    fs::remove_file(&path).unwrap();
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let report = check(root.path());
    assert!(matches!(report.findings[0].state, FileState::Changed(_)), "{report:?}");
    assert_eq!((report.status, report.skipped.len()), (State::Repairable, 1));
    for (restore_changed, failed) in [(false, 0), (true, 1)] {
        let is_said = |failed: &Skipped| {
            failed.reason == format!("{} is in the way: move it away", path.display())
        };
        for dry_run in [true, false] {
            let job = RepairJob::default().restore_changed(restore_changed).dry_run(dry_run);
            let report = repaired(root.path(), job);
            assert_eq!((report.restored.len(), report.failed.len()), (0, failed), "{report:?}");
            assert!(report.failed.iter().all(is_said), "{report:?}");
        }
        assert!(fs::symlink_metadata(&path).unwrap().file_type().is_fifo());
    }
}

/// A small disk, if one can be mounted here.
struct Disk(tempfile::TempDir);

impl Disk {
    fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=400k", "tmpfs"]).arg(folder.path());
        mount.output().is_ok_and(|mount| mount.status.success()).then_some(Self(folder))
    }

    /// Fills the disk with a file that can be removed again.
    fn fill(&self) -> PathBuf {
        let path = self.0.path().join("filling");
        let mut file = File::create(&path).unwrap();
        while std::io::Write::write_all(&mut file, &[0; 4096]).is_ok() {}
        path
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

/// A full disk of the parity does not keep files on another disk from being repaired, whether the
/// disk is full before the repair or during it.
#[test]
fn a_full_disk_of_parity_keeps_no_file_damaged() {
    let Some(disk) = Disk::mount() else {
        return not_run("no disk can be mounted here");
    };
    let root = scene(62);
    let parity = job(root.path()).parity_dirs(vec![disk.0.path().to_owned()]);
    make(&parity.redundancy("100%".parse().unwrap()).force(true));
    let before = snapshot(root.path());
    let protection = || only(disk.0.path());
    let lost = disk.0.path().join(&names(disk.0.path())[0]);
    fs::remove_file(&lost).unwrap();
    let (all, damaged) = (AtomicU64::new(0), root.path().join("two/4"));
    for is_full_before in [true, false] {
        flip(&damaged, 77);
        let count = |bytes| _ = all.fetch_add(bytes, Ordering::Relaxed);
        all.store(0, Ordering::Relaxed);
        verify(&protection(), &VerifyOptions::default(), &count).unwrap();
        let filling = if is_full_before { Some(disk.fill()) } else { None };
        let read = AtomicU64::new(0);
        let progress = |bytes| {
            // The first bytes after the verification.
            if read.fetch_add(bytes, Ordering::Relaxed) == all.load(Ordering::Relaxed) {
                disk.fill();
            }
        };
        let report = repair(&protection(), &RepairJob::default().sync(false), &progress).unwrap();
        assert_eq!((&report.restored[..], report.parity.len()), (&[damaged.clone()][..], 0));
        assert_eq!(report.failed[0].path, lost, "{report:?}");
        assert_same(&snapshot(root.path()), &before, "repairing");
        fs::remove_file(filling.unwrap_or_else(|| disk.0.path().join("filling"))).unwrap();
    }
    let report = repair(&protection(), &RepairJob::default().sync(false), &|_| {}).unwrap();
    assert_eq!((report.parity, report.failed.len()), (vec![lost], 0));
}

/// Hard links move with their files. A link that is gone leads to its file, wherever that is now.
#[test]
fn moved_files_keep_their_links() {
    use std::os::unix::fs::MetadataExt;
    let root = scene(63);
    let at = |name: &str| root.path().join(name);
    fs::hard_link(at("one/4"), at("one/again")).unwrap();
    make(&job(root.path()).force(true));
    let before = snapshot(root.path());
    fs::rename(at("one"), at("renamed")).unwrap();
    let report = check(root.path());
    assert_eq!(report.status, State::Intact, "{report:?}");
    assert_eq!(report.findings[0].state, FileState::Moved(at("renamed")));
    assert!(report.new.is_empty(), "{report:?}");
    let report = mend(root.path());
    assert!(report.restored.is_empty() && report.failed.is_empty(), "{report:?}");
    let report = repaired(root.path(), RepairJob::default().move_back(true));
    assert!(report.failed.is_empty(), "{report:?}");
    fs::remove_dir(at("renamed")).unwrap();
    assert_same(&snapshot(root.path()), &before, "moving back");
    fs::rename(at("one/4"), at("two/elsewhere")).unwrap();
    fs::remove_file(at("one/again")).unwrap();
    let report = mend(root.path());
    assert_eq!((report.restored, report.failed.len()), (vec![at("one/again")], 0));
    let inode = |name: &str| fs::metadata(at(name)).unwrap().ino();
    assert_eq!(inode("one/again"), inode("two/elsewhere"));
    assert_eq!(check(root.path()).status, State::Intact);
}

/// A renamed folder has moved also if a name in it is a hard link to a file that stayed.
#[test]
fn folders_move_with_links_to_what_stays() {
    let root = scene(70);
    let at = |path: &str| root.path().join(path);
    for name in ["two/name", "two/other"] {
        fs::hard_link(at("one/3"), at(name)).unwrap();
    }
    make(&job(root.path()).force(true));
    let before = snapshot(root.path());
    fs::rename(at("two"), at("three")).unwrap();
    fs::hard_link(at("one/3"), at("a name before")).unwrap();
    let report = check(root.path());
    assert_eq!(report.count(|state| *state == FileState::Missing), 0, "{report:?}");
    let folder = report.findings.iter().find(|finding| finding.name == Path::new("two")).unwrap();
    assert_eq!(folder.state, FileState::Moved(at("three")));
    assert!(mend(root.path()).restored.is_empty() && !at("two").exists());
    let report = repaired(root.path(), RepairJob::default().move_back(true));
    assert!(report.failed.is_empty(), "{report:?}");
    fs::remove_file(at("a name before")).unwrap();
    fs::remove_dir(at("three")).unwrap();
    assert_same(&snapshot(root.path()), &before, "moving back");
    assert_eq!(fs::metadata(at("two/name")).unwrap().nlink(), 3);
}

/// A renamed folder has moved with all that is in it, also with what has no bytes.
#[test]
fn folders_move_with_what_has_no_bytes() {
    let root = scene(64);
    let at = |name: &str| root.path().join(name);
    fs::create_dir_all(at("one/inner/none")).unwrap();
    write(&at("one/inner/empty"), b"", 0o644, 1);
    symlink("../5", at("one/inner/link")).unwrap();
    make(&job(root.path()).force(true));
    let before = snapshot(root.path());
    fs::rename(at("one"), at("renamed")).unwrap();
    let report = check(root.path());
    assert_eq!(report.status, State::Intact, "{report:?}");
    assert!(report.new.is_empty() && report.count(|it| *it == FileState::Missing) == 0);
    assert!(mend(root.path()).restored.is_empty() && !at("one").exists());
    let report = repaired(root.path(), RepairJob::default().move_back(true));
    assert_eq!((report.moved_back.len(), report.failed.len()), (8, 0), "{report:?}");
    fs::remove_dir_all(at("renamed")).unwrap();
    assert_same(&snapshot(root.path()), &before, "moving back");
    // If anything is missing, the folder is.
    fs::rename(at("one"), at("renamed")).unwrap();
    fs::remove_file(at("renamed/inner/link")).unwrap();
    assert_eq!(check(root.path()).status, State::Repairable);
}

/// A root with three files, each of which has more blocks than the parity can restore.
fn three_files(paths: [&str; 3], seed: u64) -> (tempfile::TempDir, [PathBuf; 3]) {
    let root = tempfile::tempdir().unwrap();
    let paths = paths.map(|path| root.path().join(path));
    let mut chance = Chance::new(seed);
    for (path, seconds) in paths.iter().zip(1..) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        write(path, &chance.bytes(40_000), 0o644, seconds);
    }
    make(&job(root.path()));
    (root, paths)
}

/// If a file cannot be restored, a file that has its bytes stays, and so does one that has the
/// bytes of that file.
#[test]
fn chains_of_needed_bytes_stay() {
    let (root, [a, b, c]) = three_files(["folder/a", "b", "c"], 65);
    let [folder, aside, spare] = ["folder", "aside", "spare"].map(|name| root.path().join(name));
    let before = snapshot(root.path());
    fs::rename(&c, &spare).unwrap();
    fs::rename(&b, &c).unwrap();
    fs::rename(&a, &b).unwrap();
    fs::rename(&folder, &aside).unwrap();
    fs::write(&folder, "in the way").unwrap();
    let shifted = snapshot(root.path());
    let job = || RepairJob::default().restore_changed(true);
    let report = repaired(root.path(), job());
    let has_bytes = |path: &PathBuf| {
        let mut failed = report.failed.iter().filter(|failed| failed.path == *path);
        failed.next().is_some_and(|failed| failed.reason.contains("has bytes of a file"))
    };
    assert!(report.restored.is_empty() && has_bytes(&b) && has_bytes(&c), "{report:?}");
    assert_same(&snapshot(root.path()), &shifted, "leaving the chain");
    fs::remove_file(&folder).unwrap();
    fs::rename(&aside, &folder).unwrap();
    let report = repaired(root.path(), job());
    assert!(report.failed.is_empty() && report.lost.is_empty(), "{report:?}");
    fs::remove_file(&spare).unwrap();
    assert_same(&snapshot(root.path()), &before, "repairing the chain");
}

/// Files that have each other's bytes in a circle are restored together. If one cannot get its name
/// when the file with its bytes is replaced already, they stay under a temporary name.
#[test]
fn circles_of_files_lose_no_bytes() {
    let (root, [a, b, c]) = three_files(["a", "b", "c"], 66);
    let before = snapshot(root.path());
    let rotate = || {
        let spare = root.path().join("spare");
        for (from, to) in [(&a, &spare), (&c, &a), (&b, &c), (&spare, &b)] {
            fs::rename(from, to).unwrap();
        }
    };
    let repaired = |progress: &(dyn Fn(u64) + Sync)| {
        let job = RepairJob::default().restore_changed(true).sync(false);
        repair(&only(root.path()), &job, progress).unwrap()
    };
    rotate();
    let all = AtomicU64::new(0);
    repaired(&|bytes| _ = all.fetch_add(bytes, Ordering::Relaxed));
    assert_same(&snapshot(root.path()), &before, "repairing the circle");
    remove_copies(root.path());
    rotate();
    let read = AtomicU64::new(0);
    let report = repaired(&|bytes| {
        // All has been read, and no file has its name yet.
        if read.fetch_add(bytes, Ordering::Relaxed) + bytes == all.load(Ordering::Relaxed) {
            fs::write(&c, "own").unwrap();
        }
    });
    assert_eq!((&report.restored[..], report.failed.len()), (&[a.clone(), b.clone()][..], 1));
    assert_eq!(fs::read(&c).unwrap(), b"own");
    // A repair that leaves changed files as they are leaves these bytes, too.
    assert!(mend(root.path()).restored.is_empty());
    let report = repaired(&|_| {});
    assert_eq!((report.restored, report.failed.len()), (vec![c.clone()], 0));
    assert_same(&snapshot(root.path()), &before, "repairing the last file");
}

/// A file of somebody that has the name and even the length of a missing parity file stays. What is
/// left of the parity file itself is replaced.
#[test]
fn the_content_tells_whose_file_has_a_name_of_parity() {
    let root = scene(86);
    let parity = parity_files(root.path());
    let place = &parity[0];
    let whole = fs::read(place).unwrap();
    let ends_lost = [&[7; 192][..], &whole[192..whole.len() - 192], &[7; 192]].concat();
    for remnant in [ends_lost.clone(), ends_lost[..ends_lost.len() - 300].to_vec()] {
        fs::write(place, remnant).unwrap();
        assert_eq!(mend(root.path()).parity, std::slice::from_ref(place));
        assert!(fs::read(place).unwrap() == whole);
    }
    fs::write(place, vec![0; whole.len()]).unwrap();
    assert_eq!(mend(root.path()).parity, std::slice::from_ref(place));
    let stranger = Chance::new(87).bytes(whole.len());
    fs::write(place, &stranger).unwrap();
    let found = check(root.path());
    assert_eq!((found.status, found.parity.len()), (State::Repairable, 1), "{found:?}");
    assert!(found.parity[0].missing && found.parity[0].path != *place, "{found:?}");
    assert_eq!(mend(root.path()).parity, std::slice::from_ref(&found.parity[0].path));
    assert!(fs::read(place).unwrap() == stranger);
    assert_eq!(check(root.path()).status, State::Intact);
    // Nor is a folder replaced.
    fs::remove_file(&found.parity[0].path).unwrap();
    fs::remove_file(place).unwrap();
    fs::create_dir(place).unwrap();
    let report = mend(root.path());
    assert!(report.failed.is_empty() && place.is_dir(), "{report:?}");
    assert_eq!(check(root.path()).status, State::Intact);
}

/// A second copy of the parity is used for what the first one lacks, block by block, and the first
/// one is whole again then.
#[test]
fn copies_of_parity_complete_each_other() {
    let yard = tempfile::tempdir().unwrap();
    let [root, copy] = ["root", "the copy"].map(|name| yard.path().join(name));
    [&root, &copy].iter().for_each(|folder| fs::create_dir(folder).unwrap());
    for (number, name) in (1..).zip(["a", "b"]) {
        write(&root.join(name), &Chance::new(number).bytes(60_000), 0o644, number);
    }
    make(&job(&root).redundancy("60%".parse().unwrap()));
    let (before, parity) = (snapshot(&root), parity_files(&root));
    let whole: Vec<Vec<u8>> = parity.iter().map(|file| fs::read(file).unwrap()).collect();
    for file in &parity {
        let other = copy.join(file.file_name().unwrap());
        fs::copy(file, &other).unwrap();
        damage(file, |file| file.write_all_at(&[7; 8_000], 200).unwrap());
        damage(&other, |file| file.write_all_at(&[7; 4_000], 10_000).unwrap());
    }
    fs::remove_file(root.join("a")).unwrap();
    assert_eq!(check(&root).status, State::Lost);
    let found = find(&[root.clone(), copy]).unwrap().remove(0);
    let report = verify(&found, &VerifyOptions::default(), &|_| {}).unwrap();
    assert_eq!((report.status, report.parity.len()), (State::Repairable, 5), "{report:?}");
    let report = repair(&found, &RepairJob::default().sync(false), &|_| {}).unwrap();
    assert!(report.failed.is_empty() && report.lost.is_empty(), "{report:?}");
    assert_same(&snapshot(&root), &before, "repairing");
    let now: Vec<Vec<u8>> = parity.iter().map(|file| fs::read(file).unwrap()).collect();
    assert!(now == whole);
}

/// Another file under a further name has another inode, which is seen without reading anything.
#[test]
fn a_quick_look_sees_a_name_that_leads_elsewhere() {
    let root = linked_scene(67, "10%");
    let link = root.path().join("link");
    fs::remove_file(&link).unwrap();
    fs::write(&link, "other").unwrap();
    let quick = VerifyOptions::default().quick(true);
    let report = verify(&only(root.path()), &quick, &|_| {}).unwrap();
    assert!(matches!(report.findings[0].state, FileState::Changed(_)), "{report:?}");
}
