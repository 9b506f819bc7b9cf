//! Files and folders that may not be read or written.

use super::*;

/// Files that cannot be read are said, are not protected, and are not lost. Where nothing can be
/// written, nothing changes.
#[test]
fn no_permission() {
    let yard = Yard::new();
    let forbid = |path: &Path, mode| {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    };
    let spent = "files that could not be read take";
    forbid(&yard.photo("b.jpg"), 0);
    let protect = run_as_user(args!["protect", yard.root()]).expect(exit::IO);
    assert!(!protect.stderr.contains(spent), "{protect}");
    forbid(&yard.photo("b.jpg"), 0o644);
    forbid(&yard.photo("z"), 0);
    let protect = run_as_user(args!["protect", yard.root(), "--force"]).expect(exit::IO);
    assert!(protect.stderr.contains(spent) && protect.text().contains("any 0 lost"), "{protect}");
    assert!(protect.stderr.contains("z is not protected"), "{protect}");
    assert!(protect.text().starts_with("photos: 5 files, 247.56 KiB protected"), "{protect}");
    forbid(&yard.photo("z"), 0o644);
    forbid(&yard.photo("a.jpg"), 0);
    run_as_user(args!["verify", yard.root()]).expect(exit::IO);
    run_as_user(args!["repair", yard.root()]).expect(exit::IO);
    forbid(&yard.photo("a.jpg"), 0o644);
    run_as_user(args!["verify", yard.root()]).expect(exit::DONE);

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

/// A file that cannot be restored does not keep the others from being restored, and one that cannot
/// be read is restored elsewhere.
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
    assert!(repair.stderr.contains("1 thing in") && repair.stderr.contains("c.txt"), "{repair}");
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
    run_as_user(args!["repair", yard.root()]).expect(exit::IO);
    files.iter().for_each(|file| forbid(file, 0));
    let verify = run_as_user(args!["verify", yard.root()]).expect(exit::IO);
    assert!(verify.stderr.contains("ermission denied"), "{verify}");
    files.iter().for_each(|file| forbid(file, 0o644));
    forbid(&folder, 0);
    let verify = run_as_user(args!["verify", yard.root()]).expect(exit::IO);
    assert!(verify.stderr.contains("ermission denied"), "{verify}");
    forbid(&folder, 0o755);
    assert!(snapshot(&folder) == before);
}
