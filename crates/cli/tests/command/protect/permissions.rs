//! Files and folders that may not be read or written.

use super::*;

/// Files that cannot be read are reported. They are not protected, and do not count as lost. If
/// nothing can be written, nothing changes.
#[test]
fn no_permission() {
    let yard = Yard::new();
    let forbid = |path: &Path, mode| {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    };
    let spent = "files that could not be read";
    forbid(&yard.photo("b.jpg"), 0);
    let protect = run_as_user(args!["protect", yard.root()]).expect(exit::IO);
    assert!(!protect.stderr.contains(spent), "{protect}");
    forbid(&yard.photo("b.jpg"), 0o644);
    forbid(&yard.photo("z"), 0);
    let protect = run_as_user(args!["protect", yard.root(), "--force"]).expect(exit::IO);
    assert!(
        !protect.stderr.contains(spent) && protect.text().contains("repairs  any "),
        "{protect}"
    );
    assert!(!protect.text().contains("any 0 lost"), "{protect}");
    assert!(protect.stderr.contains("z is not protected"), "{protect}");
    assert!(protect.text().starts_with("photos: 5 files, 247.56 KiB protected"), "{protect}");
    forbid(&yard.photo("z"), 0o644);
    forbid(&yard.photo("a.jpg"), 0);
    run_as_user(args!["verify", yard.root()]).expect(exit::IO);
    let repair = run_as_user(args!["repair", yard.root(), "--quiet"]).expect(exit::IO);
    assert!(repair.stderr.contains("photos could not be read; the first: a.jpg: P"), "{repair}");
    let repair = run_as_user(args!["repair", yard.root()]).expect(exit::IO).text();
    assert!(repair.contains("unread   a.jpg: "), "{repair}");
    assert!(repair.contains("next     make readable what cannot be read"), "{repair}");
    // What needs blocks of such a file is not lost.
    let b = fs::read(yard.photo("b.jpg")).unwrap();
    fs::remove_file(yard.photo("b.jpg")).unwrap();
    let repair = run_as_user(args!["repair", yard.root()]).expect(exit::IO).text();
    assert!(repair.contains("waiting  b.jpg, for what cannot be read"), "{repair}");
    assert!(!repair.contains("lost"), "{repair}");
    forbid(&yard.photo("a.jpg"), 0o644);
    run_as_user(args!["repair", yard.root()]).expect(exit::DONE);
    assert!(fs::read(yard.photo("b.jpg")).unwrap() == b);
    run_as_user(args!["verify", yard.root()]).expect(exit::DONE);

    // A new file that cannot be opened gets no parity, at no update.
    run_as_user(args!["protect", "--update", yard.root()]).expect(exit::DONE);
    let parity = snapshot(&yard.photo(".paritas"));
    fs::write(yard.photo("closed.jpg"), [7; 90_000]).unwrap();
    forbid(&yard.photo("closed.jpg"), 0);
    let update = run_as_user(args!["protect", "--update", yard.root()]).expect(exit::IO);
    assert!(update.stderr.contains("closed.jpg is not protected: Permission"), "{update}");
    assert!(update.text().contains("nothing has changed"), "{update}");
    assert!(snapshot(&yard.photo(".paritas")) == parity);
    fs::remove_file(yard.photo("closed.jpg")).unwrap();
    // A protected file that cannot be opened is not gone because it has a new name as well.
    forbid(&yard.photo("b.jpg"), 0);
    fs::hard_link(yard.photo("b.jpg"), yard.photo("a-link")).unwrap();
    let update = run_as_user(args!["protect", "--update", yard.root()]).expect(exit::IO);
    assert!(update.stderr.contains("b.jpg cannot be read"), "{update}");
    assert!(snapshot(&yard.photo(".paritas")) == parity);
    forbid(&yard.photo("b.jpg"), 0o644);
    fs::remove_file(yard.photo("a-link")).unwrap();
    renew_times(&yard.root());

    renew_times(&yard.root());
    flip(&yard.photo("a.jpg"), 10);
    forbid(&yard.root(), 0o555);
    let (files, parity) = (snapshot(&yard.root()), snapshot(&yard.photo(".paritas")));
    let repair = run_as_user(args!["repair", yard.root()]).expect(exit::IO);
    assert!(repair.stderr.contains("a.jpg"), "{repair}");
    forbid(&yard.photo(".paritas"), 0o555);
    run_as_user(args!["protect", yard.root(), "--force"]).expect(exit::IO);
    forbid(&yard.photo(".paritas"), 0o755);
    forbid(&yard.root(), 0o755);
    assert!(snapshot(&yard.root()) == files && snapshot(&yard.photo(".paritas")) == parity);
    run(args!["repair", yard.root()]).expect(exit::DONE);
    run(args!["verify", yard.root()]).expect(exit::DONE);
}

/// A file that cannot be restored does not stop the repair of the others. A file that cannot be
/// read is restored to another folder.
#[test]
fn permission_for_some() {
    let yard = Yard::protected(&[]);
    let forbid = |path: &Path, mode| {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    };
    let whole = snapshot(&yard.root());
    flip(&yard.photo("a.jpg"), 10);
    flip(&yard.photo("deep/er/c.txt"), 10);
    flip(&yard.photo("z"), 10);
    forbid(&yard.photo("deep/er"), 0o555);
    let repair = run_as_user(args!["repair", yard.root()]).expect(exit::IO);
    assert!(repair.stderr.contains("1 path in") && repair.stderr.contains("c.txt"), "{repair}");
    assert!(repair.text().contains("restored a.jpg") && repair.text().contains("restored z"));
    forbid(&yard.photo("deep/er"), 0o755);
    run(args!["repair", yard.root()]).expect(exit::DONE);
    assert!(snapshot(&yard.root()) == whole);

    let to = yard.path("to");
    fs::create_dir(&to).unwrap();
    forbid(&yard.photo("b.jpg"), 0);
    run_as_user(args!["repair", yard.root(), "--to", &to]).expect(exit::IO);
    forbid(&yard.photo("b.jpg"), 0o644);
    assert!(fs::read(to.join("b.jpg")).unwrap() == fs::read(yard.photo("b.jpg")).unwrap());
}

/// Parity that may not be read is neither missing nor damaged, and is not replaced.
#[test]
fn no_permission_for_parity() {
    let yard = Yard::protected(&[]);
    let forbid = |path: &Path, mode| {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    };
    let (folder, files) = (yard.photo(".paritas"), yard.parity());
    let before = snapshot(&folder);
    forbid(&files[1], 0);
    let verify = run_as_user(args!["verify", yard.root()]).expect(exit::IO);
    assert!(verify.text().contains("1of5.parity may not be read"), "{verify}");
    let repair = run_as_user(args!["repair", yard.root()]).expect(exit::IO);
    assert!(repair.stderr.contains("photos could not be read"), "{repair}");
    assert!(repair.text().contains("1of5.parity may not be read"), "{repair}");
    files.iter().for_each(|file| forbid(file, 0));
    let verify = run_as_user(args!["verify", yard.root()]).expect(exit::IO);
    assert!(verify.stderr.contains("ermission denied"), "{verify}");
    let refuse_another = || {
        for protect in [
            args!["protect", yard.root()].to_vec(),
            args!["protect", yard.root(), "--force"].into(),
        ] {
            let protect = run_as_user(protect).expect(exit::IO);
            assert!(protect.stderr.contains("ermission denied"), "{protect}");
        }
    };
    refuse_another();
    files.iter().for_each(|file| forbid(file, 0o644));
    forbid(&folder, 0);
    let verify = run_as_user(args!["verify", yard.root()]).expect(exit::IO);
    assert!(verify.stderr.contains("ermission denied"), "{verify}");
    refuse_another();
    forbid(&folder, 0o755);
    assert!(snapshot(&folder) == before);
}

/// An entry that cannot be examined is reported by its own name, not by that of its folder. It is
/// unread, not missing, and everything else is repaired. (A folder that can be listed, but whose
/// entries cannot be examined, behaves like one with a network mount that does not answer.)
#[test]
fn one_bad_entry_stops_nothing_else() {
    let yard = Yard::protected(&["--redundancy", "150%"]);
    let forbid = |path: &Path, mode| {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    };
    let mode = fs::metadata(yard.photo("deep/er")).unwrap().permissions();
    let whole = snapshot(&yard.root());
    forbid(&yard.photo("deep/er"), 0o444);
    fs::remove_file(yard.photo("a.jpg")).unwrap();
    let verify = run_as_user(args!["verify", yard.root()]).expect(exit::IO);
    assert!(verify.text().contains("unread   deep/er/c.txt"), "{verify}");
    assert!(verify.text().contains("skipped  deep/er/c.txt: Permission denied"), "{verify}");
    assert!(verify.text().contains("missing  a.jpg"), "{verify}");
    let repair = run_as_user(args!["repair", yard.root()]).expect(exit::IO);
    assert!(repair.text().contains("1 restored") && !repair.text().contains("failed"), "{repair}");
    fs::set_permissions(yard.photo("deep/er"), mode).unwrap();
    assert!(snapshot(&yard.root()) == whole);
    run(args!["verify", yard.root()]).expect(exit::DONE);
}

/// An unprotected entry that cannot be examined does not make the verdict unknown, and does not
/// stop the rest from being protected or updated.
#[test]
fn bad_entries_without_protection_are_skipped() {
    let yard = Yard::new();
    let forbid = |path: &Path, mode| {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    };
    let hidden = yard.photo("deep/hidden");
    fs::create_dir(&hidden).unwrap();
    fs::write(hidden.join("x"), "unknown").unwrap();
    forbid(&hidden, 0o444);
    let protect = run_as_user(args!["protect", yard.root()]).expect(exit::IO);
    assert!(protect.stderr.contains("deep/hidden/x is not protected"), "{protect}");
    assert!(protect.text().starts_with("photos: 6 files"), "{protect}");
    fs::write(yard.photo("new"), "new").unwrap();
    let verify = run_as_user(args!["verify", yard.root()]).expect(exit::DONE);
    assert!(verify.text().contains("skipped  deep/hidden/x: Permission denied"), "{verify}");
    let update = run_as_user(args!["protect", "--update", yard.root()]).expect(exit::IO);
    assert!(update.text().contains("6 files kept, 1 new"), "{update}");
    // The same holds for an empty folder, if something else is mounted on it later.
    fs::remove_file(yard.photo("cache/x.tmp")).unwrap();
    forbid(&hidden, 0o755);
    fs::remove_file(hidden.join("x")).unwrap();
    run(args!["protect", "--update", yard.root()]).expect(exit::DONE);
    forbid(&yard.photo("deep"), 0o444);
    let verify = run_as_user(args!["verify", yard.root()]).expect(exit::IO);
    let unread = |name| verify.text().contains(&format!("unread   {name}"));
    assert!(!unread("deep/hidden") && unread("deep/empty"), "{verify}");
    forbid(&yard.photo("deep"), 0o755);
}

/// Files that cannot be opened take no parity, and no update makes all parity anew because of them.
/// A dry run ends as the command does.
#[test]
fn closed_files_take_no_parity() {
    let yard = Yard::new();
    for number in 0..200 {
        let path = yard.photo(&format!("small {number:03}"));
        fs::write(&path, vec![number; 1_000]).unwrap();
        if number % 8 == 0 {
            fs::set_permissions(&path, Permissions::from_mode(0o000)).unwrap();
        }
    }
    let protect = |more: &[&str]| {
        run_as_user(args!["protect", yard.root(), "--no-sync"; more]).expect(exit::IO)
    };
    let dry = protect(&["--dry-run", "--json"]).result();
    let real = protect(&["--json"]).result();
    for field in ["files", "parity_blocks", "stored_bytes", "skipped"] {
        assert_eq!(dry[field], real[field], "{field}");
    }
    assert_eq!((&dry["files"], dry["skipped"].as_array().unwrap().len()), (&json!(181), 25));
    let blocks = real["parity_blocks"].as_u64().unwrap();
    let info = run(args!["info", yard.root()]).expect(exit::DONE).text();
    assert!(info.contains(&format!("any {blocks} of")), "{info}");
    let parity = snapshot(&yard.photo(".paritas"));
    for more in [&["--update", "--dry-run"][..], &["--update"]] {
        let update = protect(more);
        assert!(update.text().contains("nothing has changed"), "{update}");
    }
    assert!(snapshot(&yard.photo(".paritas")) == parity);
    // If nothing can be read, that is what is wrong.
    let closed = yard.photo("small 000");
    let refused = run_as_user(args!["protect", closed, "--dry-run"]).expect(exit::IO);
    assert!(refused.stderr.contains("small 000 is not protected: Permission"), "{refused}");
}
