//! Updates: what counts as changed, and what an update must not give up.

use super::*;

#[test]
fn updates_add_layers_until_all_is_made_anew() {
    let root = scene_with(8, "100%");
    // It only notes the system's new times of all files.
    assert_eq!(updated_in_place(root.path()).kept, 12);
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
    assert!(report.status == State::Intact && report.findings.is_empty(), "{report:?}");
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
    assert!(report.status == State::Intact && report.findings.is_empty(), "{report:?}");
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
        assert_eq!(error.kind(), ErrorKind::DigestMismatch, "{error}");
        assert_same(&parity(), &old, "refusing");
    }
    mend(root.path());
    assert_same(&snapshot(root.path()), &before, "repairing");
    let job = UpdateJob::default().anew(true).sync(false);
    update(&only(root.path()), &job, &|_| {}).unwrap();
    assert_eq!(check(root.path()).status, State::Intact);
}

/// A protection that replaces another one does not take over damage either, nor does it leave out
/// what cannot be read.
#[test]
fn a_new_protection_in_the_place_of_an_old_one_keeps_no_damage() {
    let root = scene(61);
    let before = snapshot(root.path());
    let new = || job(root.path()).redundancy("100%".parse().unwrap()).force(true);
    let again = || protect(&plan(&new()).unwrap(), &|_| {});
    let old = names(&root.path().join(".paritas"));
    for change in [
        |file: &File| file.set_len(100).unwrap(),
        |file: &File| {
            file.write_all_at(b"rot", 7).unwrap();
        },
    ] {
        damage(&root.path().join("one/2"), change);
        let error = again().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DigestMismatch, "{error}");
        assert_eq!(names(&root.path().join(".paritas")), old);
        mend(root.path());
        assert_same(&snapshot(root.path()), &before, "repairing");
    }
    write(&root.path().join("one/2"), b"edited", 0o644, 99);
    again().unwrap();
    assert_eq!(check(root.path()).status, State::Intact);
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
    assert_eq!(error.kind(), ErrorKind::DigestMismatch, "{error}");
    assert_eq!(names(&root.path().join(".paritas")), old);
    mend(root.path());
    assert_same(&snapshot(root.path()), &before, "repairing");
    assert_eq!(updated_in_place(root.path()).kept, 12);
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
    let output = command.output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && told.contains("1 passed"), "{told}");
    false
}

fn forbid(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// An update does not take for removed or changed what it cannot read, and says what it has not
/// protected.
#[test]
fn what_cannot_be_read_is_not_gone() {
    if !is_held_to_permissions("changes::updates::what_cannot_be_read_is_not_gone") {
        return;
    }
    let root = scene(20);
    let parity = || names(&root.path().join(".paritas"));
    for mode in [0, 0o444] {
        forbid(&root.path().join("one"), mode);
        let report = updated(root.path());
        assert_eq!((report.kept, report.gone), (12, 0), "{report:?}");
        assert!(report.held[0].path.starts_with(root.path().join("one")), "{report:?}");
        let job = UpdateJob::default().anew(true).sync(false);
        let error = update(&only(root.path()), &job, &|_| {}).unwrap_err();
        assert!(error.to_string().contains("cannot be made anew"), "{error}");
    }
    forbid(&root.path().join("one"), 0o755);
    make(&job(root.path()).force(true));
    let old = parity();
    let refused = |path: &str, checksum: bool| {
        let job = UpdateJob::default().checksum(checksum).sync(false);
        let error = update(&only(root.path()), &job, &|_| {}).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
        assert!(error.to_string().contains(path), "{error}");
        assert_eq!(parity(), old);
    };
    forbid(&root.path().join("one/2"), 0);
    refused("one/2", true);
    forbid(&root.path().join("one/2"), 0o644);
    // Nothing is protected in a folder that never could be read.
    fs::create_dir(root.path().join("closed")).unwrap();
    forbid(&root.path().join("closed"), 0);
    for expected in [Updated::Layer, Updated::Nothing] {
        let report = updated_in_place(root.path());
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
    assert_eq!(error.kind(), ErrorKind::DigestMismatch, "{error}");
    assert!(!file.exists() && names(&root.path().join(".paritas")) == old);
    mend(root.path());
    assert_eq!(fs::read(&file).unwrap(), fs::read(&away).unwrap());
}

/// If a folder that was given is empty, a disk may not be mounted on it. An update does not give up
/// what was in it, unless it is found elsewhere.
#[test]
fn emptied_folders_are_not_given_up() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    let mut chance = Chance::new(61);
    for name in ["one", "two"] {
        fs::create_dir(at(name)).unwrap();
        write(&at(name).join("a"), &chance.bytes(5_000), 0o644, 1);
    }
    make(&ProtectJob::new(vec![at("one"), at("two")]).sync(false));
    let old = names(&at(".paritas"));
    fs::rename(at("one/a"), at("a")).unwrap();
    fs::create_dir(at("one/inner")).unwrap();
    let error = update(&only(root.path()), &UpdateJob::default(), &|_| {}).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Parameters, "{error}");
    assert!(error.to_string().contains("may not be mounted"), "{error}");
    assert_eq!(names(&at(".paritas")), old);
    fs::rename(at("a"), at("two/b")).unwrap();
    let report = updated(root.path());
    assert_eq!((report.kept, report.gone), (2, 0));
    // What has other files now is mounted.
    write(&at("one/c"), &chance.bytes(5_000), 0o644, 2);
    fs::remove_file(at("two/b")).unwrap();
    assert_eq!(updated(root.path()).gone, 1);
}

/// One file of an emptied folder is found elsewhere. That does not make the others removed ones.
#[test]
fn a_copy_elsewhere_gives_up_no_emptied_folder() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    let mut chance = Chance::new(63);
    ["one", "two"].iter().for_each(|folder| fs::create_dir(at(folder)).unwrap());
    for name in ["one/a", "one/b", "two/c"] {
        write(&at(name), &chance.bytes(5_000), 0o644, 1);
    }
    make(&ProtectJob::new(vec![at("one"), at("two")]).sync(false));
    let old = names(&at(".paritas"));
    fs::rename(at("one/a"), at("two/a")).unwrap();
    fs::remove_file(at("one/b")).unwrap();
    let error = update(&only(root.path()), &UpdateJob::default(), &|_| {}).unwrap_err();
    assert!(error.to_string().contains("1 file in it is protected"), "{error}");
    assert_eq!(names(&at(".paritas")), old);
}

/// While a folder for parity does not exist, an update does not forget it, and makes a layer
/// instead of everything anew.
#[test]
fn an_absent_folder_for_parity_is_not_forgotten() {
    let (root, disks) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = |name: &str| root.path().join(name);
    for (number, name) in (1..).zip(["a", "b", "c"]) {
        write(&path(name), &Chance::new(number).bytes(20_000), 0o644, number);
    }
    let [near, far] = ["near", "far"].map(|name| disks.path().join(name));
    [&near, &far].iter().for_each(|folder| fs::create_dir(folder).unwrap());
    let whole = job(root.path()).parity_dirs(vec![near.clone(), far.clone()]);
    make(&whole.redundancy("50%".parse().unwrap()));
    let away = disks.path().join("away");
    fs::rename(&far, &away).unwrap();
    let found = || find(&[root.path().to_owned(), near.clone()]).unwrap().remove(0);
    let run = |job: UpdateJob| update(&found(), &job.sync(false), &|_| {});
    // More is lost than half of the parity.
    write(&path("a"), &Chance::new(9).bytes(20_000), 0o644, 9);
    assert_eq!(run(UpdateJob::default()).unwrap().updated, Updated::Layer);
    renew_times(root.path());
    assert_eq!(found().absent_folders(), std::slice::from_ref(&far));
    let error = run(UpdateJob::default().anew(true)).unwrap_err();
    assert!(error.to_string().contains("does not exist now, and what was put there"), "{error}");
    // Nor is anything put into an empty folder at which its disk is not mounted.
    fs::create_dir(&far).unwrap();
    write(&path("e"), &Chance::new(11).bytes(5_000), 0o644, 11);
    assert_eq!(run(UpdateJob::default()).unwrap().updated, Updated::Layer);
    let error = run(UpdateJob::default().anew(true)).unwrap_err();
    assert!(error.to_string().contains("has none of it now"), "{error}");
    // When it is back, its parity counts, and it gets new parity.
    fs::remove_dir(&far).unwrap();
    fs::rename(&away, &far).unwrap();
    write(&path("d"), &Chance::new(10).bytes(20_000), 0o644, 10);
    assert_eq!(run(UpdateJob::default()).unwrap().updated, Updated::Anew);
    renew_times(root.path());
    assert_eq!((names(&near).len(), names(&far).len()), (2, 2));
    // It is given up on demand, and once nothing is missing.
    fs::rename(&far, &away).unwrap();
    let gives_up = || UpdateJob::default().anew(true).accept_changes(true);
    assert_eq!(run(gives_up()).unwrap().updated, Updated::Anew);
    assert!(found().absent_folders().is_empty());
}

/// A layer that another process has written, and not published, does not count. If that process
/// gives it up, the old parity is still there.
#[test]
fn parity_that_is_not_published_does_not_count() {
    let root = scene(25);
    let (old, aside) = (parity_files(root.path()), tempfile::tempdir().unwrap());
    let copy = |path: &PathBuf| aside.path().join(path.file_name().unwrap());
    old.iter().for_each(|path| _ = fs::copy(path, copy(path)).unwrap());
    write(&root.path().join("new"), &Chance::new(26).bytes(5_000), 0o644, 9);
    let anew = UpdateJob::default().anew(true).sync(false);
    update(&only(root.path()), &anew, &|_| {}).unwrap();
    let temporary = |path: PathBuf| {
        let name = format!(".{}.0123abcd.tmp", path.file_name().unwrap().to_str().unwrap());
        fs::rename(&path, path.with_file_name(&name)).unwrap();
        path.with_file_name(name)
    };
    let unpublished: Vec<PathBuf> = parity_files(root.path()).into_iter().map(temporary).collect();
    old.iter().for_each(|path| _ = fs::copy(copy(path), path).unwrap());
    renew_times(root.path());
    assert_eq!(check(root.path()).new, [root.path().join("new")]);
    flip(&root.path().join("one/3"), 7);
    assert_eq!(mend(root.path()).restored, [root.path().join("one/3")]);
    assert!(old.iter().chain(&unpublished).all(|path| path.exists()));
    // A layer that is published first takes its place.
    assert_eq!(updated(root.path()).updated, Updated::Layer);
    assert!(unpublished.iter().all(|path| !path.exists()));
    let report = check(root.path());
    assert_eq!((report.status, report.layers.len(), report.new.len()), (State::Intact, 2, 0));
}

/// The folder of the parity may be given by another path than before. It is one folder all the
/// same.
#[test]
fn a_folder_of_parity_has_several_paths() {
    let yard = tempfile::tempdir().unwrap();
    let [root, parity, link] = ["root", "parity", "link"].map(|name| yard.path().join(name));
    [&root, &parity].iter().for_each(|path| fs::create_dir(path).unwrap());
    symlink(&parity, &link).unwrap();
    write(&root.join("a"), &Chance::new(61).bytes(5_000), 0o644, 1);
    make(&job(&root).parity_dirs(vec![parity.clone()]));
    let before = fs::read_dir(&parity).unwrap().count();
    let anew = UpdateJob::default().anew(true).sync(false);
    for place in [&link, &parity] {
        let protection = find(&[root.clone(), place.clone()]).unwrap().remove(0);
        assert_eq!(protection.parity_folders().len(), 1, "{:?}", protection.parity_folders());
        update(&protection, &anew, &|_| {}).unwrap();
        assert_eq!(fs::read_dir(&parity).unwrap().count(), before);
    }
}

/// A path that was given counts also while nothing is there, even if all parity is made anew.
#[test]
fn a_given_path_is_protected_again_once_it_is_back() {
    let root = tempfile::tempdir().unwrap();
    let [docs, mail, away] = ["docs", "mail", "away"].map(|name| root.path().join(name));
    let mut chance = Chance::new(60);
    for (folder, count) in [(&docs, 30), (&mail, 8)] {
        fs::create_dir(folder).unwrap();
        for number in 0..count {
            write(&folder.join(number.to_string()), &chance.bytes(20_000), 0o644, number);
        }
    }
    let parity = tempfile::tempdir().unwrap();
    let job = ProtectJob::new(vec![docs, mail.clone()]).sync(false);
    make(&job.parity_dirs(vec![parity.path().to_owned()]));
    fs::rename(&mail, &away).unwrap();
    let report = updated_in_place(parity.path());
    assert_eq!((report.updated, report.gone), (Updated::Anew, 8), "{report:?}");
    fs::rename(&away, &mail).unwrap();
    assert_eq!(updated_in_place(parity.path()).added, 8);
}

/// Some programs copy each name of a file as a file of its own. Its bytes may have decayed since.
#[test]
fn a_name_that_became_a_file_is_not_protected_with_its_damage() {
    let root = tempfile::tempdir().unwrap();
    let [file, name] = ["a", "b"].map(|name| root.path().join(name));
    write(&file, &Chance::new(61).bytes(9_000), 0o644, 1);
    fs::hard_link(&file, &name).unwrap();
    make(&job(root.path()));
    let bytes = fs::read(&file).unwrap();
    fs::remove_file(&name).unwrap();
    write(&name, &bytes, 0o644, 1);
    flip(&name, 9);
    renew_times(root.path());
    let error = update(&only(root.path()), &UpdateJob::default(), &|_| {}).unwrap_err();
    assert!(error.to_string().contains("b is damaged"), "{error}");
    flip(&name, 9);
    assert_eq!(updated(root.path()).added, 1);
    assert_eq!(check(root.path()).status, State::Intact);
}

/// While the first file is read, another one changes, whose time was looked at before.
#[test]
fn a_file_that_changes_during_an_update_is_not_damaged() {
    let root = scene_with(62, "100%");
    let [first, path] = ["a", "two/5"].map(|name| root.path().join(name));
    write(&first, &vec![7; 64 << 20], 0o644, 1);
    updated(root.path());
    let change = || {
        std::thread::sleep(std::time::Duration::from_millis(30));
        fs::write(&path, Chance::new(63).bytes(13_000)).unwrap();
    };
    let job = UpdateJob::default().checksum(true).sync(false).threads(NonZeroUsize::MIN);
    std::thread::scope(|threads| {
        threads.spawn(change);
        update(&only(root.path()), &job, &|_| {}).unwrap();
    });
    updated(root.path());
    assert_eq!(check(root.path()).status, State::Intact);
}
