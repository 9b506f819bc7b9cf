//! What people read about files that changed but kept their time, about copies of replaced files,
//! and about disks that are not mounted.

use super::*;

use crate::common;

/// Returns the names of the copies that repairs kept of replaced files.
fn copies(yard: &Yard) -> Vec<OsString> {
    let all = names(&yard.root());
    all.into_iter().filter(|name| name.to_string_lossy().contains(".damaged-")).collect()
}

#[test]
fn what_is_replaced_is_kept_and_listed() {
    let yard = Yard::new();
    run(args!["protect", yard.root(), "--no-sync"]).expect(exit::DONE);
    let file = yard.photo("a.jpg");
    let old = fs::read(&file).unwrap();
    flip(&file, 70_000);
    let new = fs::read(&file).unwrap();
    for quick in [&[][..], &["--quick"]] {
        let verify = run(args!["verify", yard.root(); quick]);
        let text = verify.expect(exit::REPAIRABLE).text();
        assert!(text.contains("\n  changed  a.jpg, with its time kept"), "{text}");
        assert!(text.contains("repair --restore-changed"), "{text}");
    }
    let stays = run(args!["repair", yard.root()]).expect(exit::REPAIRABLE).text();
    assert!(stays.contains("a.jpg stays as it is") && fs::read(&file).unwrap() == new, "{stays}");
    let done = run(args!["repair", yard.root(), "--restore-changed"]).expect(exit::DONE).text();
    assert_eq!(fs::read(&file).unwrap(), old);
    let [copy] = &copies(&yard)[..] else { panic!("{done}") };
    assert_eq!(fs::read(yard.root().join(copy)).unwrap(), new);
    let copy = copy.to_str().unwrap();
    assert!(done.contains(&format!("kept     the old a.jpg as {copy}")), "{done}");
    let verify = run(args!["verify", yard.root()]).expect(exit::DONE).text();
    assert!(verify.contains("1 replaced before and kept"), "{verify}");
    assert!(verify.contains("repair --clean"), "{verify}");
    for (command, more) in [("info", &[][..]), ("verify", &["-v"][..])] {
        let text = run(args![command, yard.root(); more]).expect(exit::DONE).text();
        assert!(text.contains(copy), "{text}");
    }
    let clean = args!["repair", yard.root(), "--clean"];
    // As long as something is damaged, a copy may hold bytes that exist nowhere else.
    fs::remove_file(yard.photo("b.jpg")).unwrap();
    flip(&file, 9);
    run(&clean).expect(exit::REPAIRABLE);
    assert_eq!(copies(&yard).len(), 1);
    run(args!["repair", yard.root(), "--restore-changed"]).expect(exit::DONE);
    let clean = run(&clean).expect(exit::DONE).text();
    assert!(
        clean.matches("\n  removed  a.jpg.damaged-").count() == 2 && copies(&yard).is_empty(),
        "{clean}"
    );
}

/// Mounts a memory disk. Returns false, and says so, if the machine cannot.
fn mount(at: &Path) -> bool {
    let done =
        Command::new("mount").args(["-t", "tmpfs", "-o", "size=4m", "tmpfs"]).arg(at).output();
    let is_mounted = done.is_ok_and(|done| done.status.success());
    if !is_mounted {
        common::not_run("protect: nothing can be mounted here");
    }
    is_mounted
}

fn unmount(at: &Path) {
    assert!(Command::new("umount").arg(at).status().unwrap().success());
}

#[test]
fn a_disk_that_is_not_mounted_is_said() {
    let yard = Yard::new();
    let disk = yard.photo("disk");
    fs::create_dir(&disk).unwrap();
    if !mount(&disk) {
        return;
    }
    fs::write(disk.join("film"), Chance(9).bytes(30_000)).unwrap();
    yard.protect(&["--one-file-system"]).expect(exit::DONE);
    run(args!["verify", yard.root()]).expect(exit::DONE);
    yard.protect(&["--force", "--redundancy", "150%"]).expect(exit::DONE);
    unmount(&disk);
    let verify = run(args!["verify", yard.root()]).expect(exit::IO);
    assert!(verify.text().contains("disk: its disk is not mounted"), "{verify}");
    fs::remove_file(yard.photo("z")).unwrap();
    let repair = run(args!["repair", yard.root()]).expect(exit::IO);
    assert!(repair.text().contains("restored z") && names(&disk).is_empty(), "{repair}");
    fs::write(yard.photo("new"), "new").unwrap();
    let update = run(args!["protect", "--update", yard.root(), "--no-sync"]).expect(exit::IO);
    assert!(update.stderr.contains("what is protected there stays as it was"), "{update}");
    assert!(update.text().contains("1 new") && update.text().contains("0 gone"), "{update}");
    let dry = run(args!["protect", "--update", yard.root(), "--accept-changes", "--dry-run"]);
    let dry = dry.expect(exit::DONE).text();
    assert!(dry.contains("1 gone"), "{dry}");
    assert!(mount(&disk));
    fs::write(disk.join("other"), "not empty").unwrap();
    run(args!["repair", yard.root()]).expect(exit::DONE);
    assert_eq!(fs::read(disk.join("film")).unwrap(), Chance(9).bytes(30_000));
    unmount(&disk);
}

#[test]
fn a_root_that_does_not_exist_is_told_so_by_every_command() {
    let yard = Yard::new();
    let none = yard.folder.path().join("none");
    for arguments in
        [args!["protect", &none].to_vec(), args!["protect", "--update", &none].to_vec()]
    {
        let refused = run(&arguments).expect(exit::IO);
        assert!(refused.stderr.contains("No such file or directory"), "{refused}");
    }
}

#[test]
fn a_repair_that_fails_says_so_even_if_it_is_quiet() {
    let yard = Yard::protected(&["--redundancy", "1%"]);
    fs::remove_file(yard.photo("a.jpg")).unwrap();
    let quiet = run(args!["repair", yard.root(), "--quiet"]).expect(exit::LOST);
    assert!(quiet.stdout.is_empty() && quiet.stderr.contains("is beyond repair"), "{quiet}");
    let json = run(args!["repair", yard.root(), "--json"]).expect(exit::LOST);
    assert_eq!(json.error()["kind"], "lost", "{json}");
}

/// New permissions are in the catalogue, and need no parity of files.
#[test]
fn an_update_names_every_path_that_it_cannot_update() {
    let yard = Yard::protected(&[]);
    let [one, two, none] = ["one", "two", "none"].map(|name| yard.root().with_file_name(name));
    [&one, &two].iter().for_each(|folder| fs::create_dir(folder).unwrap());
    fs::write(yard.photo("new"), "new").unwrap();
    let update = run(args!["protect", "--update", &one, &none, &two, yard.root()]);
    let update = update.expect(exit::IO);
    for path in [&one, &two, &none] {
        let named = path.to_str().unwrap();
        assert!(update.stderr.contains(named), "{update}");
    }
    assert!(update.text().contains("new"), "{update}");
    run(args!["verify", yard.root()]).expect(exit::DONE);
}

#[test]
fn an_update_says_that_no_bytes_have_changed() {
    let yard = Yard::protected(&[]);
    fs::set_permissions(yard.photo("z"), Permissions::from_mode(0o600)).unwrap();
    let dry = run(args!["protect", "--update", yard.root(), "--dry-run"]).expect(exit::DONE);
    assert!(dry.text().contains("attributes, links and folders would be noted"), "{dry}");
    let update = run(args!["protect", "--update", yard.root()]).expect(exit::DONE);
    assert!(update.text().contains("no file's bytes have changed"), "{update}");
}
