//! What repairs leave as it is: folders elsewhere that they did not make, and copies of what was
//! replaced while the root is not whole.

use super::*;

/// Folders that were in another folder before stay as they are there.
#[test]
fn folders_elsewhere_keep_what_they_have() {
    let (root, to) = (scene(64), tempfile::tempdir().unwrap());
    let there = to.path().join("one");
    fs::create_dir(&there).unwrap();
    fs::set_permissions(&there, Permissions::from_mode(0o700)).unwrap();
    age(&there, 77);
    let then = fs::metadata(&there).unwrap();
    fs::remove_file(root.path().join("two/3")).unwrap();
    let report = repaired(root.path(), RepairJob::default().to(to.path().to_owned()));
    assert_eq!(report.restored, [to.path().join("two/3")]);
    let now = fs::metadata(&there).unwrap();
    assert_eq!(now.permissions(), then.permissions());
    assert_eq!(now.modified().unwrap(), then.modified().unwrap());
    let mode = |folder: &Path| fs::metadata(folder).unwrap().permissions();
    assert_eq!(mode(&to.path().join("two")), mode(&root.path().join("two")));
}

/// What a repair puts into another folder does not make the root whole.
#[test]
fn copies_stay_until_the_root_is_whole() {
    let (root, to) = (scene(65), tempfile::tempdir().unwrap());
    flip(&root.path().join("one/3"), 9);
    assert_eq!(mend(root.path()).kept.len(), 1);
    fs::remove_file(root.path().join("one/4")).unwrap();
    let job = RepairJob::default().to(to.path().to_owned()).clean(true);
    let report = repaired(root.path(), job);
    assert_eq!((report.restored.len(), report.cleaned.len()), (1, 0), "{report:?}");
    let report = repaired(root.path(), RepairJob::default().clean(true));
    assert_eq!((report.restored.len(), report.cleaned.len()), (1, 1), "{report:?}");
}

/// A copy that its owner has changed since the repair began is theirs.
#[test]
fn changed_copies_stay() {
    let root = scene(67);
    for name in ["one/3", "one/4"] {
        flip(&root.path().join(name), 9);
    }
    let kept = mend(root.path()).kept;
    assert_eq!(kept.len(), 2);
    let (own, other) = (&kept[0].1, &kept[1].1);
    let edit = || fs::write(own, "edited").unwrap();
    let report = repaired_amid(root.path(), RepairJob::default().clean(true), edit);
    assert_eq!(report.cleaned, std::slice::from_ref(other));
    assert_eq!(fs::read(own).unwrap(), b"edited");
}

/// For a part it is not known whether everything is whole, so no copies are removed.
#[test]
fn copies_are_not_removed_for_a_part() {
    let root = scene(68);
    flip(&root.path().join("one/3"), 9);
    let kept = mend(root.path()).kept;
    let part = only(&root.path().join("one"));
    let error = repair(&part, &RepairJob::default().clean(true), &|_| {}).unwrap_err();
    assert_eq!((error.kind(), error.fields()), (ErrorKind::Parameters, &["clean"][..]));
    let place = format!("one is only a part of {}", root.path().canonicalize().unwrap().display());
    assert!(error.to_string().contains(&place) && kept[0].1.exists(), "{error}");
}

/// Parity that a killed process was still writing is told by its name, and goes on demand, unless a
/// process holds it.
#[test]
fn unfinished_parity_goes_on_demand() {
    let root = scene(71);
    let id = only(root.path()).id().to_string();
    let label = only(root.path()).label();
    let at = |name: String| root.path().join(".paritas").join(name);
    let [ours, list, first] = [
        at(format!(".{label}-{}.layer1.0of5.parity.01234567.tmp", &id[..8])),
        at(format!(".{label}-{}.restored.parity.01234567.tmp", &id[..8])),
        at(format!(".{label}-76543210.4of5.parity.01234567.tmp")),
    ];
    let others = ["other-76543210.0of5.parity", "x.tmp"].map(|name| at(format!(".{name}.tmp")));
    let mut unfinished = [ours.clone(), list, first];
    unfinished.sort();
    for path in unfinished.iter().chain(&others) {
        fs::write(path, [7; 1_000]).unwrap();
    }
    assert_eq!(only(root.path()).unfinished(), unfinished);
    assert!(mend(root.path()).cleaned.is_empty() && ours.exists());
    let held = File::open(&ours).unwrap();
    held.lock().unwrap();
    assert!(only(root.path()).unfinished().is_empty());
    assert!(repaired(root.path(), RepairJob::default().clean(true)).cleaned.is_empty());
    drop(held);
    let report = repaired(root.path(), RepairJob::default().clean(true));
    assert_eq!(report.cleaned, unfinished);
    assert!(others.iter().all(|path| path.exists()));
    assert_eq!(names(&root.path().join(".paritas")).len(), 7);
}

/// A process was killed after it had named some of the parity, or before it had named any of a
/// protection that another one followed.
#[test]
fn published_parity_is_named_and_other_parity_goes() {
    let root = scene(72);
    let folder = root.path().join(".paritas");
    let names = |folder: &Path| -> Vec<String> {
        names(folder).into_iter().map(|name| name.into_string().unwrap()).collect()
    };
    let named = names(&folder);
    let temporary = |name: &str| folder.join(format!(".{name}.01234567.tmp"));
    let unnamed: Vec<PathBuf> = named[1..3].iter().map(|name| temporary(name)).collect();
    let unname = || {
        for (name, temporary) in named[1..3].iter().zip(&unnamed) {
            fs::rename(folder.join(name), temporary).unwrap();
        }
    };
    // Complete files of a protection that was never published.
    let other = scene(73);
    let theirs = other.path().join(".paritas");
    let mut dead = Vec::new();
    for name in names(&theirs) {
        let to = name.replacen(&only(other.path()).label(), &only(root.path()).label(), 1);
        fs::copy(theirs.join(&name), temporary(&to)).unwrap();
        dead.push(temporary(&to));
    }
    dead.sort();
    unname();
    assert_eq!(only(root.path()).unfinished(), dead);
    assert!(only(root.path()).unnamed().eq(unnamed.iter().map(PathBuf::as_path)));
    mend(root.path());
    assert_eq!(only(root.path()).unnamed().count(), 0);
    let report = repaired(root.path(), RepairJob::default().clean(true));
    assert_eq!(report.cleaned, dead);
    assert_eq!(names(&folder), named);
    unname();
    assert_ne!(updated(root.path()).updated, Updated::Anew);
    assert!(named.iter().all(|name| folder.join(name).exists()));
}

/// The name of a private file leads to a public one now, and the other way round.
#[test]
fn restored_bytes_are_no_more_public_than_they_were() {
    let root = scene(74);
    let [private, public, between] = ["one/1", "one/2", "t"].map(|name| root.path().join(name));
    fs::set_permissions(&private, Permissions::from_mode(0o600)).unwrap();
    updated(root.path());
    let before = [&private, &public].map(|path| fs::read(path).unwrap());
    for (from, to) in [(&private, &between), (&public, &private), (&between, &public)] {
        fs::rename(from, to).unwrap();
    }
    repaired(root.path(), RepairJob::default().restore_changed(true));
    // The public file replaced a private one: who could not read that one cannot read this one.
    for (path, bytes) in [&private, &public].into_iter().zip(before) {
        assert_eq!(fs::read(path).unwrap(), bytes);
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

/// The copies beside a single protected file are listed and removed like those in a folder.
#[test]
fn copies_beside_a_single_file_are_found() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("disk.img");
    write(&file, &Chance::new(66).bytes(50_000), 0o644, 1);
    make(&job(&file));
    flip(&file, 9);
    assert_eq!(mend(root.path()).kept.len(), 1);
    assert_eq!(check(root.path()).replaced.len(), 1);
    let report = repaired(root.path(), RepairJob::default().clean(true));
    assert_eq!(report.cleaned.len(), 1, "{report:?}");
}

/// A repair that finds nothing to do touches no folder.
#[test]
fn an_idle_repair_touches_nothing() {
    let root = scene(66);
    let changed = || {
        let of = |folder: &str| fs::metadata(root.path().join(folder)).unwrap();
        ["", "one", "two"].map(|folder| (of(folder).ctime(), of(folder).ctime_nsec()))
    };
    let then = changed();
    mend(root.path());
    assert_eq!(changed(), then);
}

/// A dry run foretells what is kept in another folder, and the links that miss their file there.
#[test]
fn a_dry_run_fails_as_the_repair_does() {
    let (root, to) = (scene(69), tempfile::tempdir().unwrap());
    let [file, name, own] = ["one/1", "one/name", "two/2"].map(|name| root.path().join(name));
    fs::hard_link(&file, &name).unwrap();
    symlink("1", root.path().join("one/link")).unwrap();
    make(&job(root.path()).redundancy("100%".parse().unwrap()).force(true));
    for path in [&file, &name, &own, &root.path().join("one/link")] {
        fs::remove_file(path).unwrap();
    }
    fs::create_dir(to.path().join("one")).unwrap();
    for name in ["one/1", "one/link"] {
        fs::write(to.path().join(name), "own").unwrap();
    }
    for job in [RepairJob::default().to(to.path().to_owned()), RepairJob::default()] {
        let foretold = repaired(root.path(), job.clone().dry_run(true));
        let report = repaired(root.path(), job.clone());
        let sorted = |mut paths: Vec<PathBuf>| {
            paths.sort();
            paths
        };
        let failed = |report: &RepairReport| {
            sorted(report.failed.iter().map(|one| one.path.clone()).collect())
        };
        assert_eq!(failed(&foretold), failed(&report), "{foretold:?} {report:?}");
        assert_eq!(failed(&report).len(), if job.to.is_some() { 3 } else { 0 });
        assert_eq!(sorted(foretold.restored), sorted(report.restored));
    }
}

/// One file of newer parity, such as a copy that has come from elsewhere, does not make a repair
/// remove the older parity, which may be the only one that can restore anything.
#[test]
fn a_part_of_newer_parity_removes_none() {
    let root = scene(61);
    let folder = root.path().join(".paritas");
    let files = || -> Vec<PathBuf> {
        let mut files: Vec<_> =
            fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path()).collect();
        files.sort();
        files
    };
    let old: Vec<(PathBuf, Vec<u8>)> =
        files().into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect();
    let before = snapshot(root.path());
    make(&job(root.path()).redundancy("30%".parse().unwrap()).force(true));
    let newer = files();
    assert!(newer.iter().all(|path| old.iter().all(|(old, _)| old != path)));
    newer[1..].iter().for_each(|path| fs::remove_file(path).unwrap());
    old.iter().for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
    flip(&root.path().join("one/5"), 0);

    repaired(root.path(), RepairJob::default());
    assert!(old.iter().all(|(path, bytes)| fs::read(path).is_ok_and(|now| now == *bytes)));
    fs::remove_file(&newer[0]).unwrap();
    files().iter().filter(|path| old.iter().all(|(old, _)| old != *path)).for_each(|path| {
        fs::remove_file(path).unwrap();
    });
    let report = repaired(root.path(), RepairJob::default());
    assert!(report.lost.is_empty(), "{report:?}");
    remove_copies(&root.path().join("one"));
    assert_same(&snapshot(root.path()), &before, "after all");
}
