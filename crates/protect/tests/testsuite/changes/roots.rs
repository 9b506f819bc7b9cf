//! Roots: what is protected together, copies of it, and parity for several of them.

use super::*;

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
    fs::create_dir(root.path().join("new")).unwrap();
    assert_eq!(
        find(&[root.path().join("new")]).map(drop).map_err(kind),
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
    assert!(report.status == State::Intact && report.new.is_empty(), "{report:?}");
}

/// A path that is given although it lies in another one is protected once, even if a pattern would
/// leave it out there.
#[test]
fn paths_may_lie_in_each_other() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join("a/b/c")).unwrap();
    for name in ["a/1", "a/b/2", "a/b/c/3", "d"] {
        write(&root.path().join(name), name.as_bytes(), 0o644, 1);
    }
    let paths = ["d", "a/b/c", "a/b", "a/1", "a"].map(|name| root.path().join(name)).to_vec();
    for excludes in [&[][..], &["b".to_owned()]] {
        let given = ProtectJob::new(paths.clone()).excludes(excludes.to_vec());
        let report = make(&given.sync(false).force(true));
        assert_eq!(report.files, 4);
        let found = check(root.path());
        assert_eq!((found.status, found.new.len()), (State::Intact, 0));
    }
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
    assert_eq!((found.len(), report(&copy).status), (2, State::Intact));
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
        assert_eq!(check(root).status, State::Intact);
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
        assert_eq!(check(&copy).status, State::Intact);
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
    assert_eq!(check(&new).status, State::Intact);
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
    assert_eq!(report.status, State::Intact);
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

/// A link in place of the folder for parity could lead to any folder, so it is not followed.
#[test]
fn a_link_in_place_of_the_parity_is_refused() {
    let (root, outside) = (scene(67), tempfile::tempdir().unwrap());
    let (inner, elsewhere) = (root.path().join(".paritas"), outside.path().join("parity"));
    fs::rename(&inner, &elsewhere).unwrap();
    symlink(&elsewhere, &inner).unwrap();
    let before = names(&elsewhere);
    let force = || job(root.path()).force(true);
    let errors = [
        find(&[root.path().to_owned()]).unwrap_err(),
        plan(&force()).unwrap_err(),
        plan(&force().parity_dirs(vec![elsewhere.clone()])).unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::Io);
        let message = error.to_string();
        assert!(message.contains(".paritas is a symbolic link"), "{message}");
        assert!(message.contains(elsewhere.to_str().unwrap()), "{message}");
    }
    // Whoever names the parity itself gets no parity behind the link either.
    let elsewhere = elsewhere.canonicalize().unwrap();
    assert_eq!(only(&elsewhere).parity_folders(), std::slice::from_ref(&elsewhere));
    assert_eq!(names(&elsewhere), before);
    fs::remove_file(&inner).unwrap();
    fs::rename(&elsewhere, &inner).unwrap();
    assert_eq!(check(root.path()).status, State::Intact);
}

/// A root that has got another name is protected already.
#[test]
fn a_renamed_root_is_protected_already() {
    let yard = tempfile::tempdir().unwrap();
    let [old, new] = ["old", "new"].map(|name| yard.path().join(name));
    fs::create_dir(&old).unwrap();
    write(&old.join("a"), &Chance::new(46).bytes(5_000), 0o644, 1);
    make(&job(&old));
    fs::rename(&old, &new).unwrap();
    let error = plan(&job(&new)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Exists);
    assert!(error.to_string().contains("already, under the label old"), "{error}");
    let id = only(&new).id();
    make(&job(&new).force(true));
    assert_eq!((only(&new).id(), only(&new).label()), (id, "new".into()));
    assert_eq!(check(&new).status, State::Intact);
    // Another label, or other paths, are another protection.
    make(&job(&new).label("more".to_owned()));
    make(&job(&new.join("a")));
    assert_eq!(find(&[new]).unwrap().len(), 3);
}
