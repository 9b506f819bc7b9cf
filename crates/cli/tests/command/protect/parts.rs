//! One file or folder of a protection, and paths that are given together with parity that lies
//! elsewhere.

use super::*;

/// A file or folder inside a protection can be verified and repaired alone, even if it no longer
/// exists.
#[test]
fn parts_of_a_protection() {
    let yard = Yard::protected(&["--redundancy", "200%"]);
    let before = snapshot(&yard.photo("deep/er"));
    let info = json(args!["info", yard.photo("deep/er/c.txt")], exit::DONE);
    assert_eq!((&info["files"], &info["parts"]), (&json!(6), &json!([])));
    flip(&yard.photo("a.jpg"), 1_000);
    fs::remove_file(yard.photo("deep/er/c.txt")).unwrap();
    let text = run(args!["verify", yard.photo("b.jpg")]).expect(exit::DONE).text();
    assert!(text.contains("/photos: part b.jpg: intact, 1 file"), "{text}");
    assert!(!text.contains("a.jpg") && !text.contains(" 0 blocks"), "{text}");
    let gone = args!["verify", yard.photo("deep/er/c.txt")];
    let text = run(&gone).expect(exit::REPAIRABLE).text();
    assert!(text.contains(": part deep/er/c.txt: repairable, 1 file"), "{text}");
    let report = json(args!["verify", yard.photo("deep"), "--quick"], exit::REPAIRABLE);
    assert_eq!(states(&report), [("missing", "c.txt")]);
    assert_eq!(report["parts"], json!([{"path": yard.photo("deep").canonicalize().unwrap()}]));
    assert_eq!((&report["files"], &report["intact_files"]), (&json!(2), &json!(1)));
    // Two parts that do not exist are not taken for unmounted disks.
    let two = args!["repair", yard.photo("deep/er/c.txt"), yard.photo("z")];
    let text = run(two).expect(exit::DONE).text();
    assert!(text.contains("part deep/er/c.txt and 1 more: 1 restored"), "{text}");
    assert!(snapshot(&yard.photo("deep/er")) == before);
    run(args!["verify", yard.root()]).expect(exit::REPAIRABLE);
    let update = run(args!["protect", "--update", yard.photo("b.jpg")]).expect(exit::ARGUMENTS);
    assert!(update.stderr.contains("is protected as part of "), "{update}");
    run(args!["verify", yard.photo("nothing")]).expect(exit::IO);
}

/// A path inside a root means that part, and never the root in a new place.
#[test]
fn a_folder_in_the_root_is_not_the_root() {
    let yard = Yard::new();
    let parity = yard.path("parity");
    fs::create_dir(&parity).unwrap();
    yard.protect(&["--redundancy", "200%", "--parity-dir", parity.to_str().unwrap()]);
    let before = [snapshot(&yard.root()), snapshot(&yard.photo("deep")), snapshot(&parity)];
    let update = args!["protect", "--update", yard.photo("deep"), &parity];
    let update = run(update).expect(exit::ARGUMENTS);
    assert!(update.stderr.contains("is protected as part of "), "{update}");
    let text = run(args!["verify", yard.photo("deep"), &parity]).expect(exit::DONE).text();
    assert!(text.contains("/photos: part deep: intact, 2 files"), "{text}");
    run(args!["repair", yard.photo("deep"), &parity]).expect(exit::DONE);
    run(args!["verify", yard.path(""), &parity]).expect(exit::DONE);
    fs::create_dir(yard.photo("new")).unwrap();
    let new = run(args!["verify", yard.photo("new"), &parity]).expect(exit::NOT_RECOGNISED);
    assert!(new.stderr.contains("nothing is protected there"), "{new}");
    fs::remove_dir(yard.photo("new")).unwrap();
    let now = [snapshot(&yard.root()), snapshot(&yard.photo("deep")), snapshot(&parity)];
    assert!(before == now);
    // A file that is gone, given together with the parity.
    fs::remove_file(yard.photo("deep/er/c.txt")).unwrap();
    run(args!["repair", yard.photo("deep/er/c.txt"), &parity]).expect(exit::DONE);
    assert!(snapshot(&yard.photo("deep")) == before[1]);
}

/// Parity files that have lost their names are found in the folder that is given. If they are too
/// damaged, a message says so.
#[test]
fn parity_without_names() {
    let yard = Yard::protected(&["--redundancy", "60%"]);
    let found = yard.path("found");
    fs::create_dir(&found).unwrap();
    for (number, file) in yard.parity().iter().enumerate() {
        fs::rename(file, found.join(format!("#1310{number}"))).unwrap();
    }
    fs::write(found.join("#13109"), "of somebody else").unwrap();
    fs::remove_dir(yard.photo(".paritas")).unwrap();
    let before = snapshot(&yard.root());
    fs::remove_file(yard.photo("b.jpg")).unwrap();
    run(args!["verify", yard.root(), &found]).expect(exit::REPAIRABLE);
    run(args!["verify", &found]).expect(exit::REPAIRABLE);
    run(args!["verify", found.join("#13101")]).expect(exit::REPAIRABLE);
    run(args!["info", yard.root(), &found]).expect(exit::DONE);
    let all = names(&found).into_iter().map(|name| found.join(name).into_os_string());
    run(args!["repair", yard.root()].into_iter().chain(all.take(5))).expect(exit::DONE);
    assert!(snapshot(&yard.root()) == before);
    for name in names(&found) {
        let length = fs::metadata(found.join(&name)).unwrap().len().min(300);
        File::options().write(true).open(found.join(name)).unwrap().set_len(length).unwrap();
    }
    let verify = run(args!["verify", &found]).expect(exit::NOT_RECOGNISED);
    assert!(verify.stderr.contains("no parity file has enough"), "{verify}");
}
