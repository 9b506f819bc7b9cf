//! Parity files that have lost their names.

use super::*;

/// Moves all parity of a root to a folder, under names that do not say what they are.
fn lose_names(root: &Path, to: &Path, name: impl Fn(usize) -> String) -> Vec<PathBuf> {
    fs::create_dir_all(to).unwrap();
    let files = parity_files(root).into_iter().enumerate();
    files
        .map(|(number, file)| {
            let place = to.join(name(number));
            fs::rename(file, &place).unwrap();
            place
        })
        .collect()
}

/// Parity is known by its content in a folder that is given, in the one in the root, and as files
/// that are given.
#[test]
fn parity_is_known_without_its_names() {
    let names: [fn(usize) -> String; 4] = [
        |number| format!("#1310{number}"),
        |number| format!("FILE000{number}.CHK"),
        |number| format!("PHOTOS-{number}.PAR"),
        |number| format!("PHOTOS-1A2B3C4D.{number}OF5.PARITY"),
    ];
    for (number, name) in names.into_iter().enumerate() {
        let (root, yard) = (scene_with(91, "100%"), tempfile::tempdir().unwrap());
        let to = [yard.path(), &root.path().join("lost+found")][number % 2].to_owned();
        let files = lose_names(root.path(), &to, name);
        write(&to.join("other"), b"of no interest", 0o644, 1);
        fs::remove_dir(root.path().join(".paritas")).unwrap();
        let before = snapshot(root.path());
        fs::remove_file(root.path().join("one/2")).unwrap();
        let mut all = vec![root.path().to_owned()];
        all.extend(files.iter().cloned());
        for paths in [vec![root.path().to_owned(), to.clone()], vec![files[2].clone()], all] {
            let found = find(&paths).unwrap();
            assert_eq!((found.len(), found[0].parity_files().count()), (1, 5), "{paths:?}");
            let status = verify(&found[0], &VerifyOptions::default(), &|_| {}).unwrap().status;
            assert_eq!(status, State::Repairable);
        }
        let found = find(&[root.path().to_owned(), to]).unwrap();
        repair(&found[0], &RepairJob::default().sync(false), &|_| {}).unwrap();
        assert_same(&snapshot(root.path()), &before, "repairing");
    }
}

/// Some of the files have their names, and some have lost them, in one folder or in two.
#[test]
fn some_parity_has_lost_its_name() {
    for folder in [".paritas", "found"] {
        let root = scene(92);
        let found = root.path().join(folder);
        fs::create_dir_all(&found).unwrap();
        for (number, file) in parity_files(root.path()).into_iter().take(3).enumerate() {
            fs::rename(file, found.join(format!("download ({number})"))).unwrap();
        }
        let places = find(&[root.path().to_owned(), found]).unwrap();
        assert_eq!(places[0].parity_files().count(), 5, "{folder}");
        let report = verify(&places[0], &VerifyOptions::default(), &|_| {}).unwrap();
        assert!(report.parity.is_empty(), "{report:?}");
    }
    // A header that is destroyed leaves the trailer.
    let root = scene(93);
    let files = lose_names(root.path(), &root.path().join(".paritas"), |at| format!("{at}"));
    for file in &files {
        damage(file, |file| file.write_all_at(&[0; 500], 0).unwrap());
    }
    assert_eq!(only(root.path()).parity_files().count(), 5);
}

/// An update replaces parity without names by such with names.
#[test]
fn an_update_gives_names_again() {
    let root = scene_with(94, "100%");
    let folder = root.path().join(".paritas");
    let old = lose_names(root.path(), &folder, |at| format!("OLD{at}.PAR"));
    write(&root.path().join("new"), &[3; 5_000], 0o644, 1);
    let job = UpdateJob::default().sync(false).anew(true);
    update(&only(root.path()), &job, &|_| {}).unwrap();
    assert!(old.iter().all(|file| !file.exists()));
    assert_eq!(check(root.path()).status, State::Intact);
    // Of many other files, those with names of parity are looked at, which are enough.
    for number in 0..1_001 {
        fs::write(folder.join(format!("x{number}")), "x").unwrap();
    }
    assert_eq!(only(root.path()).parity_files().count(), 5);
}
