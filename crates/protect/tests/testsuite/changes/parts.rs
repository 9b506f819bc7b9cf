//! Paths beside parity: parts of a protection, its root in a new place, and what is neither.

use super::*;

/// A root `r` with two folders of five files each, whose parity lies in `rp`.
struct Beside {
    yard: tempfile::TempDir,
}

impl Beside {
    fn new(seed: u64) -> Self {
        let beside = Self { yard: tempfile::tempdir().unwrap() };
        let mut chance = Chance::new(seed);
        fs::create_dir(beside.at("rp")).unwrap();
        for folder in ["r/a", "r/b/inner"] {
            fs::create_dir_all(beside.at(folder)).unwrap();
            for number in 0..5 {
                let path = beside.at(folder).join(format!("{number}{}", &folder[2..3]));
                write(&path, &chance.bytes(4_000), 0o644, number);
            }
        }
        let job = job(&beside.at("r")).parity_dirs(vec![beside.at("rp")]);
        make(&job.redundancy("100%".parse().unwrap()));
        beside
    }

    fn at(&self, name: &str) -> PathBuf {
        self.yard.path().canonicalize().unwrap().join(name)
    }

    /// What is found at these paths.
    fn find(&self, names: &[&str]) -> paritas_protect::Result<Vec<paritas_protect::Protection>> {
        let paths: Vec<PathBuf> = names.iter().map(|name| self.at(name)).collect();
        find(&paths)
    }

    fn only(&self, names: &[&str]) -> paritas_protect::Protection {
        let mut found = self.find(names).unwrap_or_else(|error| panic!("{names:?}: {error}"));
        assert_eq!(found.len(), 1, "{names:?}");
        found.remove(0)
    }

    fn refused(&self, names: &[&str]) -> (ErrorKind, String) {
        let error = self.find(names).expect_err(&names.join(" "));
        (error.kind(), error.to_string())
    }
}

fn parts(protection: &paritas_protect::Protection) -> Vec<PathBuf> {
    protection.parts().collect()
}

/// A path inside the root means that part, and a path above the root all of it, whether they exist
/// or not. Neither ever counts as the root in a new place.
#[test]
fn paths_in_and_above_the_root_are_no_moved_root() {
    let beside = Beside::new(71);
    let before = snapshot(beside.yard.path());
    for is_there in [true, false] {
        for (given, expected) in [("r/a", "a"), ("r/b/inner/3b", "b/inner/3b"), ("r/b", "b")] {
            let found = beside.only(&[given, "rp"]);
            assert_eq!((found.root(), parts(&found)), (&*beside.at("r"), vec![expected.into()]));
        }
        let all = beside.only(&["r/a", "r/b", "rp"]);
        assert_eq!(parts(&all), ["a", "b"].map(PathBuf::from));
        for whole in [&["r/a", "r", "rp"][..], &["", "rp"], &["rp"], &["r", "rp"]] {
            let found = beside.only(whole);
            assert!(found.root() == beside.at("r") && !found.is_part(), "{whole:?}");
        }
        if is_there {
            let error = update(&beside.only(&["r/a", "rp"]), &UpdateJob::default(), &|_| {});
            let error = error.unwrap_err().to_string();
            assert!(error.contains("name ") && error.ends_with("/r"), "{error}");
            assert_same(&snapshot(beside.yard.path()), &before, "refusing");
            fs::rename(beside.at("r"), beside.at("moved")).unwrap();
        }
    }
    assert_eq!(beside.refused(&["r/new", "rp"]).0, ErrorKind::NotRecognised);
}

/// A folder counts as the root in its new place only if the root is gone and the folder looks like
/// it, or is empty.
#[test]
fn what_is_a_moved_root() {
    let beside = Beside::new(72);
    fs::create_dir(beside.at("empty")).unwrap();
    fs::create_dir(beside.at("other")).unwrap();
    write(&beside.at("other/file"), b"of somebody else", 0o644, 1);
    copied(&beside.at("r"), &beside.at("copy"));
    let (kind, message) = beside.refused(&["copy", "rp"]);
    assert!(kind == ErrorKind::Parameters && message.contains("still exists"), "{message}");
    // A parity file says which protection is meant.
    let file = fs::read_dir(beside.at("rp")).unwrap().next().unwrap().unwrap().path();
    let found = find(&[beside.at("copy"), file]).unwrap();
    assert_eq!(found[0].root(), beside.at("copy"));
    for place in ["empty", "other"] {
        let (kind, message) = beside.refused(&[place, "rp"]);
        assert!(kind == ErrorKind::Parameters && message.contains("holds nothing"), "{message}");
    }
    fs::rename(beside.at("r"), beside.at("moved")).unwrap();
    for place in ["moved", "empty"] {
        let found = beside.only(&[place, "rp"]);
        assert!(found.root() == beside.at(place) && !found.is_part(), "{place}");
    }
    // A folder for parity without parity in it says nothing.
    fs::create_dir(beside.at("moved/.paritas")).unwrap();
    assert_eq!(beside.only(&["moved", "rp"]).root(), beside.at("moved"));
    assert_eq!(beside.refused(&["other", "rp"]).0, ErrorKind::Parameters);
    assert_eq!(beside.refused(&["other/file", "rp"]).0, ErrorKind::NotRecognised);
    // An update notes the new place, so that the parity alone leads there.
    assert_eq!(beside.only(&["rp"]).root(), beside.at("r"));
    for updated in [Updated::Layer, Updated::Nothing] {
        let protection = beside.only(&["moved", "rp"]);
        let report = update(&protection, &UpdateJob::default().sync(false), &|_| {}).unwrap();
        assert_eq!((report.updated, report.kept), (updated, protection.files()));
    }
    let protection = beside.only(&["rp"]);
    assert_eq!(protection.root(), beside.at("moved"));
    let report = verify(&protection, &VerifyOptions::default(), &|_| {}).unwrap();
    assert_eq!(report.status, State::Intact, "{report:?}");
}

/// The verdict, the findings and the repair are about the part alone.
#[test]
fn a_part_is_verified_and_repaired_alone() {
    let root = scene_with(73, "100%");
    let at = |name: &str| root.path().join(name);
    let before = snapshot(root.path());
    let check = |name: &str| verify(&only(&at(name)), &VerifyOptions::default(), &|_| {}).unwrap();
    flip(&at("one/1"), 7);
    fs::remove_dir_all(at("two")).unwrap();
    flip(&parity_files(root.path())[0], 3_000);
    write(&at("new"), b"new", 0o644, 1);
    let broken = snapshot(root.path());
    let intact = check("one/2");
    assert_eq!((intact.status, intact.files, intact.intact_files), (State::Intact, 1, 1));
    assert!(intact.findings.is_empty() && intact.parity.is_empty() && intact.new.is_empty());
    for (part, files, intact) in [("one", 6, 5), ("one/1", 1, 0), ("two", 6, 0), ("two/4", 1, 0)] {
        let report = check(part);
        assert_eq!(report.status, State::Repairable, "{part}");
        assert_eq!((report.files, report.intact_files), (files, intact), "{part}");
        assert!(report.findings.iter().all(|one| one.path.starts_with(at(part))), "{report:?}");
    }
    // The folder above a file is made with it, as it was.
    let report = mend(&at("two/4"));
    assert_eq!(report.restored, [at("two"), at("two/4")]);
    let mut now = snapshot(root.path());
    for path in ["two", "two/4"] {
        assert_eq!(now.remove(Path::new(path)), before.get(Path::new(path)).cloned(), "{path}");
    }
    assert_same(&now, &broken, "everything else");
    assert_eq!(check("two/4").status, State::Intact);
    assert!(mend(&at("two/4")).restored.is_empty());
    assert_eq!(mend(&at("one")).restored, [at("one/1")]);
    assert_eq!(check("one").status, State::Intact);
    assert_eq!(check("").status, State::Repairable);
}

/// A damaged file elsewhere leaves no parity for the part: then that is beyond repair, too.
#[test]
fn a_part_depends_on_the_whole() {
    let root = scene_with(74, "20%");
    let at = |name: &str| root.path().join(name);
    fs::remove_dir_all(at("two")).unwrap();
    let status =
        |name: &str| verify(&only(&at(name)), &VerifyOptions::default(), &|_| {}).unwrap().status;
    assert_eq!(status("one"), State::Intact);
    flip(&at("one/1"), 7);
    assert_eq!((status("one/1"), status("one/2")), (State::Lost, State::Intact));
    assert_eq!(mend(&at("one/1")).lost, [at("one/1")]);
}

/// The bytes of a hard link are those of its file, wherever that is.
#[test]
fn a_hard_link_brings_its_file() {
    let root = scene_with(75, "100%");
    let at = |name: &str| root.path().join(name);
    fs::hard_link(at("one/3"), at("two/link")).unwrap();
    make(&job(root.path()).redundancy("100%".parse().unwrap()).force(true));
    let status =
        || verify(&only(&at("two/link")), &VerifyOptions::default(), &|_| {}).unwrap().status;
    assert_eq!(status(), State::Intact);
    let before = fs::read(at("one/3")).unwrap();
    flip(&at("one/3"), 7);
    assert_eq!(status(), State::Repairable);
    mend(&at("two/link"));
    assert!(fs::read(at("two/link")).unwrap() == before && status() == State::Intact);
}

/// A file that has taken the place of a link, with other bytes and another mode.
#[test]
fn a_file_in_the_place_of_a_link_is_no_link() {
    let root = scene_with(77, "100%");
    let at = |name: &str| root.path().join(name);
    fs::hard_link(at("one/3"), at("two/link")).unwrap();
    make(&job(root.path()).redundancy("100%".parse().unwrap()).force(true));
    fs::remove_file(at("two/link")).unwrap();
    fs::write(at("two/link"), "x").unwrap();
    fs::set_permissions(at("two/link"), Permissions::from_mode(0o600)).unwrap();
    for part in [at("two/link"), at("two"), root.path().to_owned()] {
        let found = verify(&only(&part), &VerifyOptions::default(), &|_| {}).unwrap();
        assert_eq!(found.status, State::Repairable, "{}", part.display());
        assert_eq!(found.count(|state| matches!(state, FileState::Changed(_))), 1);
    }
}

/// Nothing is called lost because an update has made the parity anew meanwhile.
#[test]
fn parity_that_is_replaced_meanwhile_is_no_loss() {
    let root = scene_with(78, "20%");
    let found = only(root.path());
    make(&job(root.path()).force(true));
    let error = verify(&found, &VerifyOptions::default(), &|_| {}).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
    let whole = verify(&only(root.path()), &VerifyOptions::default(), &|_| {}).unwrap();
    assert_eq!(whole.status, State::Intact);
}

/// A process that was killed while it replaced parity may leave nothing but the old parity, under
/// the names of what is about to be replaced.
#[test]
fn parity_that_was_set_aside_gets_its_name_back() {
    let root = scene_with(79, "50%");
    let files: Vec<PathBuf> = only(root.path()).parity_files().map(Path::to_owned).collect();
    for file in &files {
        fs::rename(file, format!("{}.1a2b3c4d.old", file.display())).unwrap();
    }
    assert_eq!(only(root.path()).unnamed().count(), files.len());
    flip(&root.path().join("one/2"), 5);
    mend(root.path());
    assert!(files.iter().all(|file| file.exists()));
    assert_eq!(only(root.path()).unnamed().count(), 0);
}

/// What was protected as single files is whole if they are given, and a link is meant itself.
#[test]
fn single_files_are_the_whole() {
    let root = scene(76);
    let at = |name: &str| root.path().join(name);
    symlink("one", at("link")).unwrap();
    make(&job(root.path()).force(true));
    assert_eq!(parts(&only(&at("link"))), ["link"].map(PathBuf::from));
    let two = || ["one/0", "one/2"].map(at).to_vec();
    make(&ProtectJob::new(two()).sync(false));
    // The nearest folder with parity counts.
    assert_eq!(parts(&only(&at("one/0"))), ["0"].map(PathBuf::from));
    let both = find(&two()).unwrap();
    assert!(both.len() == 1 && !both[0].is_part());
    // A single file that was moved is known beside its parity.
    let beside = tempfile::tempdir().unwrap();
    let dirs = vec![beside.path().to_owned()];
    make(&ProtectJob::new(vec![at("two/3")]).parity_dirs(dirs).sync(false));
    fs::create_dir(at("three")).unwrap();
    fs::rename(at("two/3"), at("three/3")).unwrap();
    let found = find(&[at("three/3"), beside.path().to_owned()]).unwrap();
    assert!(!found[0].is_part() && found[0].root() == at("three").canonicalize().unwrap());
}

/// A part with a hard link is intact if that has its bytes, also if the file has lost its first
/// name, which lies outside of the part.
#[test]
fn a_link_is_whole_without_the_first_name_of_its_file() {
    let root = tempfile::tempdir().unwrap();
    let [big, link] = ["d/big", "link"].map(|name| root.path().join(name));
    fs::create_dir(root.path().join("d")).unwrap();
    write(&big, &Chance::new(87).bytes(50_100), 0o644, 1);
    fs::hard_link(&big, &link).unwrap();
    make(&job(root.path()));
    fs::remove_file(&big).unwrap();
    assert_eq!(check(&link).status, State::Intact, "{:?}", check(&link));
    assert_eq!(check(&root.path().join("d")).status, State::Repairable);
    let report = mend(&link);
    assert!(report.restored.is_empty() && report.failed.is_empty(), "{report:?}");
    flip(&link, 9);
    assert_ne!(check(&link).status, State::Intact);
}
