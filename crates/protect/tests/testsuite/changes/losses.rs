//! Updates that would give up too much, and what is said before anything is written.

use super::*;
use paritas_protect::{Share, plan_update};

/// A tree of `count` files of 1,000 bytes and one of `large` bytes.
fn forest(seed: u64, count: usize, large: usize) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let mut chance = Chance::new(seed);
    for number in 0..count {
        let path = root.path().join(format!("{number:02}"));
        write(&path, &chance.bytes(1_000), 0o644, number as u64);
    }
    write(&root.path().join("large"), &chance.bytes(large), 0o644, 1);
    make(&job(root.path()));
    root
}

fn remove(root: &tempfile::TempDir, numbers: std::ops::Range<usize>) {
    numbers.for_each(|number| {
        fs::remove_file(root.path().join(format!("{number:02}"))).unwrap();
    });
}

fn change(root: &tempfile::TempDir, numbers: std::ops::Range<usize>) {
    numbers.for_each(|number| {
        let path = root.path().join(format!("{number:02}"));
        write(&path, &[number as u8; 1_000], 0o644, 999);
    });
}

fn refused(root: &tempfile::TempDir, job: &UpdateJob) -> Option<String> {
    let before = snapshot(root.path());
    let parity = snapshot(&root.path().join(".paritas"));
    let error = match update(&only(root.path()), &job.clone().sync(false), &|_| {}) {
        Ok(_) => return None,
        Err(error) => error,
    };
    assert_eq!(error.kind(), ErrorKind::TooManyChanges, "{error}");
    assert_same(&snapshot(root.path()), &before, "refusing");
    assert_same(&snapshot(&root.path().join(".paritas")), &parity, "refusing");
    Some(error.to_string())
}

/// More than half of the files are gone or changed: the old parity stays, unless that is accepted.
#[test]
fn a_catastrophe_is_not_taken_for_changes() {
    let root = forest(81, 39, 1_000);
    remove(&root, 0..10);
    change(&root, 10..21);
    let message = refused(&root, &UpdateJob::default()).unwrap();
    for part in ["21 of 40 files", "21000 of 40000 bytes", "50%", "accept"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert!(refused(&root, &UpdateJob::default().anew(true)).is_some());
    assert!(refused(&root, &UpdateJob::default().most_changed("52%".parse().unwrap())).is_some());
    let found = only(root.path());
    let plan = plan_update(&found, &UpdateJob::default()).unwrap();
    assert!(plan.refusal().is_some());
    assert_eq!((plan.files.gone.len(), plan.files.changed.len()), (10, 11));
    assert_eq!(plan.files.gone[0], only(root.path()).root().join("00"));
    let more = UpdateJob::default().most_changed("53%".parse().unwrap());
    assert_eq!(refused(&root, &more), None);
    change(&root, 21..39);
    assert_eq!(refused(&root, &UpdateJob::default().accept_changes(true)), None);
    assert_eq!(check(root.path()).status, State::Intact);
}

/// Half is not more than half, nineteen files are few, and most bytes count as most files do.
#[test]
fn limits_of_what_is_too_much() {
    let half = forest(82, 39, 1_000);
    remove(&half, 0..20);
    assert_eq!(refused(&half, &UpdateJob::default()), None);
    let few = forest(83, 19, 1_000);
    remove(&few, 0..19);
    assert_eq!(refused(&few, &UpdateJob::default()), None);
    let bytes = forest(84, 60, 50_000);
    remove(&bytes, 0..19);
    fs::remove_file(bytes.path().join("large")).unwrap();
    assert!(refused(&bytes, &UpdateJob::default()).is_some());
    let all = forest(85, 30, 1_000);
    remove(&all, 0..30);
    assert_eq!(refused(&all, &UpdateJob::default().most_changed(Share::ALL)), None);
}

/// Removals that are a program's way do not count, and changes of the same files do.
#[test]
fn removals_may_be_accepted_by_pattern() {
    let root = forest(87, 39, 1_000);
    remove(&root, 0..30);
    let job = |pattern: &str| UpdateJob::default().accept_removals(vec![pattern.into()]);
    for pattern in ["other/", "/3*", "0?/"] {
        assert!(refused(&root, &job(pattern)).is_some(), "{pattern}");
    }
    let error = update(&only(root.path()), &job("[0"), &|_| {}).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Parameters, "{error}");
    assert_eq!(refused(&root, &job("/[0-2]?")), None);
    assert_eq!(check(root.path()).status, State::Intact);

    let changed = forest(88, 39, 1_000);
    change(&changed, 0..30);
    assert!(refused(&changed, &job("/[0-2]?")).is_some());
    let nested = forest(89, 1, 1_000);
    fs::create_dir(nested.path().join("data")).unwrap();
    for number in 0..30 {
        write(&nested.path().join(format!("data/{number}")), &[number; 1_000], 0o644, 1);
    }
    updated(nested.path());
    for number in 0..30 {
        fs::remove_file(nested.path().join(format!("data/{number}"))).unwrap();
    }
    assert!(refused(&nested, &UpdateJob::default()).is_some());
    assert_eq!(refused(&nested, &job("data/")), None);
}

/// Renamed files are kept, and do not count towards the limit.
#[test]
fn a_rename_is_no_loss() {
    let root = forest(86, 40, 1_000);
    fs::create_dir(root.path().join("moved")).unwrap();
    for number in 0..40 {
        let name = format!("{number:02}");
        fs::rename(root.path().join(&name), root.path().join("moved").join(name)).unwrap();
    }
    let report = updated(root.path());
    assert_eq!((report.kept, report.added, report.gone), (41, 0, 0));
}

/// What a plan says about the cost is what is written then, and planning writes nothing.
#[test]
fn costs_are_known_beforehand() {
    let root = tempfile::tempdir().unwrap();
    make_tree(root.path(), &mut Chance::new(87), 30, 100_000);
    let plan = plan(&job(root.path())).unwrap();
    let cost = plan.cost().unwrap();
    assert!(!root.path().join(".paritas").exists());
    let files = plan.protected_files().count() as u64;
    let report = protect(&plan, &|_| {}).unwrap();
    assert_eq!((files, report.files), (plan.files, plan.files));
    assert_eq!(cost.stored_bytes, report.stored_bytes);
    assert_eq!(cost.catalogue_bytes, report.catalogue_bytes);
    let lengths = parity_files(root.path()).into_iter().map(|path| path.metadata().unwrap().len());
    assert_eq!(cost.stored_bytes, lengths.sum::<u64>());
    assert_eq!(cost.disks.iter().map(|disk| disk.bytes).sum::<u64>(), cost.stored_bytes);
    write(&root.path().join("new"), &[7; 5_000], 0o644, 1);
    let found = only(root.path());
    let planned = plan_update(&found, &UpdateJob::default().sync(false)).unwrap();
    let cost = planned.parity.as_ref().unwrap().cost().unwrap();
    let report = planned.carry_out(&|_| {}).unwrap().protected.unwrap();
    assert_eq!(cost.stored_bytes, report.stored_bytes);
}

/// A dry run says what a repair would do, and does not do it.
#[test]
fn a_dry_run_of_a_repair_writes_nothing() {
    let root = scene_with(88, "100%");
    let at = |name: &str| root.path().join(name);
    fs::hard_link(at("one/3"), at("two/link")).unwrap();
    make(&job(root.path()).redundancy("100%".parse().unwrap()).force(true));
    fs::remove_dir_all(at("two")).unwrap();
    fs::remove_file(at("one/3")).unwrap();
    fs::rename(at("one/2"), at("one/moved")).unwrap();
    fs::remove_file(&parity_files(root.path())[1]).unwrap();
    let before = [snapshot(root.path()), snapshot(&at(".paritas"))];
    let job = RepairJob::default().move_back(true);
    let dry = repaired(root.path(), job.clone().dry_run(true));
    let now = [snapshot(root.path()), snapshot(&at(".paritas"))];
    assert!(before == now && dry.found.status == State::Repairable);
    let done = repaired(root.path(), job);
    let sorted = |paths: &[PathBuf]| {
        let mut paths = paths.to_vec();
        paths.sort();
        paths
    };
    assert_eq!(sorted(&dry.restored), sorted(&done.restored));
    assert_eq!((&dry.moved_back, &dry.parity), (&done.moved_back, &done.parity));
    assert!(done.disks.is_empty() && dry.disks.len() == 1, "{:?}", dry.disks);
    let written = done.restored.iter().filter(|path| !path.ends_with("link") && path.is_file());
    let written: u64 = written.chain(&done.parity).map(|path| path.metadata().unwrap().len()).sum();
    assert_eq!(dry.disks[0].bytes, written);
}

/// Of files with the same bytes, each has its own new name. Empty files have new names as well.
#[test]
fn renamed_duplicates_are_no_loss() {
    let root = tempfile::tempdir().unwrap();
    let [old, new] = ["old", "new"].map(|name| root.path().join(name));
    fs::create_dir(&old).unwrap();
    let bytes = Chance::new(93).bytes(2_000);
    for number in 0..30 {
        write(&old.join(number.to_string()), &bytes, 0o644, number);
        write(&old.join(format!("empty {number}")), b"", 0o644, number);
    }
    make(&job(root.path()));
    fs::rename(&old, &new).unwrap();
    let report = updated(root.path());
    assert_eq!((report.kept, report.added, report.gone), (60, 0, 0), "{report:?}");
    assert_eq!(check(root.path()).status, State::Intact);
    // Some are removed, and these are gone.
    (0..5).for_each(|number| fs::remove_file(new.join(number.to_string())).unwrap());
    fs::rename(&new, &old).unwrap();
    let report = updated(root.path());
    assert_eq!((report.kept, report.added, report.gone), (55, 0, 5), "{report:?}");
}

/// A program that looks for duplicates makes them names of one file.
#[test]
fn duplicates_that_became_links_are_no_loss() {
    let root = tempfile::tempdir().unwrap();
    let path = |name: &str, number: u64| root.path().join(format!("{name}{number}"));
    for number in 0..25 {
        let bytes = Chance::new(200 + number).bytes(2_000);
        ["a", "b", "c"].iter().for_each(|name| write(&path(name, number), &bytes, 0o644, number));
    }
    make(&job(root.path()));
    for number in 0..25 {
        for name in ["b", "c"] {
            fs::remove_file(path(name, number)).unwrap();
            fs::hard_link(path("a", number), path(name, number)).unwrap();
        }
    }
    let before = snapshot(root.path());
    let report = updated(root.path());
    assert_eq!((report.kept, report.added, report.gone), (25, 0, 0), "{report:?}");
    for name in ["a", "b"] {
        fs::remove_file(path(name, 7)).unwrap();
    }
    flip(&path("c", 7), 9);
    assert_eq!(check(root.path()).status, State::Repairable);
    let all = RepairJob::default().restore_changed(true);
    assert!(repaired(root.path(), all).failed.is_empty());
    assert_same(&snapshot(root.path()), &before, "repairing");
    // A link to other bytes is not a duplicate.
    fs::remove_file(path("b", 8)).unwrap();
    fs::hard_link(path("a", 9), path("b", 8)).unwrap();
    assert_eq!(updated(root.path()).gone, 0, "it was a link before");
}

/// A file with the name of the folder for parity cannot be protected, and is reported.
#[test]
fn a_file_with_the_name_of_the_folder_is_told() {
    let root = scene(94);
    let file = root.path().join("one").join(".paritas");
    write(&file, b"precious", 0o644, 1);
    assert_eq!(make(&job(root.path()).force(true)).skipped[0].path, file);
    let report = check(root.path());
    assert_eq!((report.status, &report.skipped[0].path), (State::Intact, &file));
    // The parity of a folder inside is left out as ever.
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    assert!(updated(root.path()).skipped.is_empty());
}
