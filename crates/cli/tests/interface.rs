//! What scripts rely on: exit codes, files that are refused or replaced, pipes, folders, and what
//! the help offers.

mod common;
#[path = "interface/many.rs"]
mod many;

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Permissions};
use std::io::{Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, FileTypeExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::geteuid;
use tempfile::TempDir;

use common::{
    Chance, Run, exit, finish, is_leftover, names, paritas, run, run_with_input, say, shard_paths,
    snapshot, wait,
};

/// A folder with a file of seeded bytes and room for shards.
struct Yard {
    folder: TempDir,
    content: Vec<u8>,
}

impl Yard {
    fn new(length: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let content = Chance(length as u64).bytes(length);
        fs::write(folder.path().join("object"), &content).unwrap();
        Self { folder, content }
    }

    /// With the object encoded into `shards`.
    fn encoded(length: usize) -> Self {
        let yard = Self::new(length);
        common::encode(&yard.path("object"), &yard.path("shards"), "4+2", &[]);
        yard
    }

    fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.folder.path().join(name)
    }

    fn shards(&self) -> PathBuf {
        self.path("shards")
    }

    /// Loses so many shards.
    fn lose(&self, count: usize) {
        let lost = names(&self.shards()).into_iter().take(count);
        lost.for_each(|name| fs::remove_file(self.shards().join(name)).unwrap());
    }
}

/// Runs that must fail with a code: for people with a message, and as JSON with its kind.
fn fails(arguments: &[OsString], code: i32, kind: &str) -> String {
    let plain = run(arguments).expect(code);
    assert!(plain.stdout.is_empty() && !plain.stderr.trim().is_empty(), "{plain}");
    let json = run([arguments, &args!["--json"]].concat()).expect(code);
    let error = json.error();
    assert_eq!(error["kind"], kind, "{json}");
    assert!(json.stdout.is_empty(), "{json}");
    error["message"].as_str().unwrap().to_owned()
}

#[test]
fn bad_arguments_exit_with_3() {
    let yard = Yard::encoded(1000);
    let (object, out, shards) = (yard.path("object"), yard.path("new"), yard.shards());
    let encode = |more: &[OsString]| [&args!["encode", &object, "--no-sync"], more].concat();
    let long = "x".repeat(243);
    let cases = [
        args!["frobnicate"].to_vec(),
        args!["encode"].to_vec(),
        args!["encode", "--frobnicate"].to_vec(),
        encode(&[]),
        encode(&args!["--out", &out, "--to", &shards]),
        encode(&args!["--to", &out]),
        encode(&args!["--out", &out, "--code", "frobnicate:k=4"]),
        encode(&args!["--out", &out, "--code", "cauchy:k=4"]),
        encode(&args!["--out", &out, "--code", "cauchy:k=4,m=2,x=1"]),
        encode(&args!["--out", &out, "--code", "4+"]),
        encode(&args!["--out", &out, "--code", "rdp:k=4,p=6"]),
        encode(&args!["--out", &out, "--code", "rdp:k=5,p=5"]),
        encode(&args!["--out", &out, "--code", "cauchy:k=14,m=4,w=4"]),
        encode(&args!["--out", &out, "--code", "0+2"]),
        encode(&args!["--out", &out, "--name", "a/b"]),
        encode(&args!["--out", &out, "--name", ""]),
        encode(&args!["--out", &out, "--name", ".."]),
        encode(&args!["--out", &out, "--name", &long]),
        encode(&args!["--out", &out, "--threads", "-1"]),
        args!["encode", &shards, "--out", &out].to_vec(),
        args!["decode", &shards].to_vec(),
        args!["decode", "--out", &out].to_vec(),
        args!["verify"].to_vec(),
        args!["repair"].to_vec(),
        args!["info"].to_vec(),
        args!["codes", "frobnicate"].to_vec(),
        args!["codes", "--matrix"].to_vec(),
        args!["schedule"].to_vec(),
        args!["schedule", "4+2", "--erase", "6"].to_vec(),
        args!["schedule", "4+2", "--pass", "frobnicate"].to_vec(),
        args!["bench", "--code", "4+2", "--kernel", "frobnicate"].to_vec(),
        args!["bench", "--code", "4+2", "--set", "0"].to_vec(),
        args!["bench", "--code", "4+2", "--reps", "0"].to_vec(),
        args!["bench", "--code", "4+2", "--packet", "0"].to_vec(),
        args!["completions", "frobnicate"].to_vec(),
    ];
    for arguments in &cases {
        fails(arguments, exit::ARGUMENTS, "arguments");
    }
    run::<&str>([]).expect(exit::ARGUMENTS);
    assert!(!out.exists() || names(&out).is_empty(), "{:?}", names(&out));
}

#[test]
fn refusals_name_what_was_wrong() {
    let yard = Yard::new(10);
    let encode = |code: &str| {
        let (object, out) = (yard.path("object"), yard.path("new"));
        fails(&args!["encode", object, "--out", out, "--code", code], exit::ARGUMENTS, "arguments")
    };
    assert!(encode("rdp:k=4,p=6").contains("prime"));
    assert!(encode("cauchy:k=14,m=4,w=4").contains("16"));
    assert!(encode("frobnicate:k=1").contains("frobnicate"));
}

#[test]
fn what_is_no_shard_set_exits_with_4() {
    let yard = Yard::encoded(1000);
    let (empty, foreign) = (yard.path("empty"), yard.path("foreign"));
    fs::create_dir(&empty).unwrap();
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("a"), b"").unwrap();
    fs::write(foreign.join("b.0of6.paritas"), b"\x89PRTS\r\n\x1a").unwrap();
    fs::write(foreign.join("c"), vec![0x89; 100_000]).unwrap();
    let kind = "not-recognised";
    let none = (exit::NOT_RECOGNISED, kind);
    let paths = [empty, foreign, yard.path("object")].map(|path| (path, none));
    for (path, (code, kind)) in paths.into_iter().chain([(yard.path("nowhere"), (exit::IO, "io"))])
    {
        let out = yard.path("out");
        fails(&args!["decode", &path, "--out", &out], code, kind);
        assert!(!out.exists());
        for command in ["verify", "repair", "info", "promote"] {
            let message = fails(&args![command, &path], code, kind);
            assert!(message.contains(path.to_str().unwrap()), "{message}");
        }
    }
    for command in ["verify", "repair", "info", "promote"] {
        let arguments = args![command, yard.shards(), "--object", "no such object"];
        let message = fails(&arguments, exit::NOT_RECOGNISED, kind);
        assert!(message.contains("no such object"), "{message}");
    }
}

#[test]
fn damage_exits_with_1_or_2() {
    let yard = Yard::encoded(1000);
    run(args!["verify", yard.shards()]).expect(exit::DONE);
    yard.lose(2);
    run(args!["verify", yard.shards()]).expect(exit::REPAIRABLE);
    yard.lose(1);
    run(args!["verify", yard.shards()]).expect(exit::LOST);
    fails(&args!["decode", yard.shards(), "--out", yard.path("out")], exit::LOST, "lost");
    fails(&args!["repair", yard.shards()], exit::LOST, "lost");
    fails(&args!["schedule", "4+2", "--erase", "0,1,2"], exit::LOST, "lost");
}

#[test]
fn failing_input_and_output_exit_with_6() {
    let yard = Yard::encoded(1_000_000);
    let (object, shards, new) = (yard.path("object"), yard.shards(), yard.path("new"));
    let nowhere = yard.path("nowhere").join("file");
    let cases = [
        (args!["encode", &nowhere, "--out", &new].to_vec(), "nowhere"),
        (args!["encode", &object, "--out", object.join("below a file")].to_vec(), "below a file"),
        (args!["encode", &object, "--to", "/proc"].to_vec(), "/proc"),
        (args!["decode", &shards, "--out", &nowhere].to_vec(), "nowhere"),
        (args!["decode", &shards, "--out", "/dev/full"].to_vec(), "space"),
        (args!["decode", &shards, "--out", "/proc/file"].to_vec(), "/proc/"),
        (args!["man", object.join("pages")].to_vec(), "pages"),
    ];
    for (arguments, mention) in &cases {
        let message = fails(arguments, exit::IO, "io");
        assert!(message.contains(mention), "{message}");
    }
    let mut command = paritas(args!["decode", &shards, "--out", "-"]);
    command.stdout(File::options().write(true).open("/dev/full").unwrap());
    assert!(finish(command).expect(exit::IO).stderr.contains("space"));
}

/// Runs as somebody who has no rights of root.
fn run_as_user(arguments: &[OsString]) -> Run {
    let mut command = paritas(arguments);
    if geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    finish(command)
}

const NOBODY: u32 = 65_534;

/// Whether [`run_as_user`] can run the program at all, which may lie where only root looks.
fn can_run_as_user() -> bool {
    let mut command = paritas(["--version"]);
    let can = !geteuid().is_root()
        || command.uid(NOBODY).gid(NOBODY).output().is_ok_and(|output| output.status.success());
    if !can {
        say("interface: the program cannot be run as another user; one test does nothing");
    }
    can
}

#[test]
fn a_folder_that_may_not_be_written_exits_with_6() {
    if !can_run_as_user() {
        return;
    }
    let yard = Yard::encoded(1000);
    yard.lose(1);
    let mode = |mode| Permissions::from_mode(mode);
    fs::set_permissions(yard.folder.path(), mode(0o755)).unwrap();
    fs::set_permissions(yard.shards(), mode(0o555)).unwrap();
    let before = names(&yard.shards());
    let object = yard.path("object");
    for arguments in [
        args!["repair", yard.shards()].to_vec(),
        args!["encode", &object, "--out", yard.shards(), "--force"].to_vec(),
        args!["encode", &object, "--out", yard.shards().join("new")].to_vec(),
        args!["decode", yard.shards(), "--out", yard.shards().join("out")].to_vec(),
    ] {
        let run = run_as_user(&arguments).expect(exit::IO);
        assert!(run.stderr.contains("denied") && run.stderr.contains("shards"), "{run}");
    }
    assert_eq!(names(&yard.shards()), before);
    run_as_user(&args!["verify", yard.shards()]).expect(exit::REPAIRABLE);
    fs::set_permissions(yard.shards(), mode(0o755)).unwrap();
}

/// Takes the right to read from everybody.
fn lock(path: &Path) {
    fs::set_permissions(path, Permissions::from_mode(0o000)).unwrap();
}

/// Gives it back.
fn unlock(path: &Path) {
    fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
}

/// A yard that somebody without root's rights can look at and write to.
fn open_yard() -> Yard {
    let yard = Yard::encoded(1000);
    fs::set_permissions(yard.folder.path(), Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(yard.shards(), Permissions::from_mode(0o777)).unwrap();
    yard
}

#[test]
fn a_shard_that_may_not_be_read_is_not_lost() {
    if !can_run_as_user() {
        return;
    }
    // Shards that are locked, others that are deleted, and what could be told of them all.
    for (locked, deleted, code, status) in [
        (1, 0, exit::IO, "unknown"),
        (2, 0, exit::IO, "unknown"),
        (3, 0, exit::IO, "unknown"),
        (6, 0, exit::IO, ""),
        // One shard is missing whatever the locked file holds.
        (1, 1, exit::REPAIRABLE, "repairable"),
        // The locked ones decide.
        (1, 2, exit::IO, "unknown"),
        (2, 2, exit::IO, "unknown"),
        // Three shards are not enough, whichever they are.
        (1, 3, exit::LOST, "lost"),
        (2, 3, exit::LOST, "lost"),
    ] {
        let yard = open_yard();
        yard.lose(deleted);
        let paths = shards_of(&yard.shards());
        paths[..locked].iter().for_each(|path| lock(path));
        let verify = run_as_user(&args!["verify", yard.shards(), "--json"]).expect(code);
        if status.is_empty() {
            assert_eq!(verify.error()["kind"], "io");
            continue;
        }
        let report = verify.result();
        assert_eq!(report["status"], status, "{verify}");
        let unread = report["shards"].as_array().unwrap().iter();
        let unread: Vec<_> = unread.filter(|shard| shard["state"] == "unreadable").collect();
        assert_eq!(unread.len(), locked, "{verify}");
        assert_eq!(unread[0]["path"], paths[0].to_str().unwrap());
        let text = run_as_user(&args!["verify", yard.shards()]).expect(code);
        assert!(text.stderr.contains(paths[0].to_str().unwrap()), "{text}");
        assert_eq!(text.text().contains("beyond repair"), status == "lost", "{text}");
        let decode = run_as_user(&args!["decode", yard.shards(), "--out", "-"]);
        if locked + deleted <= 2 {
            assert!(decode.expect(exit::DONE).stdout == yard.content);
        } else {
            decode.expect(code);
        }
    }
}

#[test]
fn a_folder_that_may_not_be_read_leaves_all_open() {
    if !can_run_as_user() {
        return;
    }
    let yard = open_yard();
    let other = yard.path("other");
    fs::create_dir(&other).unwrap();
    lock(&other);
    let both = run_as_user(&args!["verify", yard.shards(), &other]).expect(exit::IO);
    assert!(both.text().contains("object: intact") && both.stderr.contains("denied"), "{both}");
    // In a tree it is a place of its own, of which nothing is known.
    let tree = run_as_user(&args!["verify", "-r", yard.folder.path()]).expect(exit::IO);
    assert!(
        tree.text().contains("shards/object: intact") && tree.stderr.contains("denied"),
        "{tree}"
    );
    for command in ["verify", "info", "repair"] {
        let end = run_as_user(&args![command, &other]).expect(exit::IO);
        assert!(end.stderr.contains("denied"), "{end}");
    }
    let named = args!["verify", yard.shards(), &other, "--object", "elsewhere"];
    run_as_user(&named).expect(exit::IO);
    run_as_user(&named[..2]).expect(exit::DONE);
    for lost in 1..=4 {
        yard.lose(1);
        let verify = run_as_user(&args!["verify", yard.shards(), &other, "--json"]);
        assert_eq!(verify.expect(exit::IO).result()["status"], "unknown", "{lost}");
    }
    run_as_user(&args!["verify", yard.shards()]).expect(exit::LOST);
    run_as_user(&args!["decode", yard.shards(), &other, "--out", "-"]).expect(exit::IO);
    unlock(&other);
}

#[test]
fn repair_leaves_alone_what_it_may_not_read() {
    if !can_run_as_user() {
        return;
    }
    for more in [&[][..], &["--fewest-reads"]] {
        let yard = open_yard();
        let paths = shards_of(&yard.shards());
        fs::remove_file(&paths[1]).unwrap();
        let (whole, to) = (snapshot(&yard.shards()), yard.path("to"));
        lock(&paths[0]);
        let arguments =
            |more: &[OsString]| [&args!["repair", yard.shards(), "--json"], more].concat();
        let more: Vec<OsString> = more.iter().map(OsString::from).collect();
        let repair = run_as_user(&arguments(&more)).expect(exit::IO);
        let report = repair.result();
        assert_eq!(report["repaired"].as_array().unwrap().len(), 1, "{repair}");
        assert_eq!(report["repaired"][0]["index"], 1);
        assert_eq!(report["unreadable"][0]["index"], 0);
        assert!(repair.error()["message"].as_str().unwrap().contains("shard 0"), "{repair}");
        unlock(&paths[0]);
        for (name, bytes) in &whole {
            assert!(fs::read(yard.shards().join(name)).unwrap() == *bytes, "{name:?}");
        }
        // Where shards go that are missing elsewhere, an unreadable file of their name stays too.
        fs::create_dir(&to).unwrap();
        fs::set_permissions(&to, Permissions::from_mode(0o777)).unwrap();
        let there = to.join("object.1of6.paritas");
        fs::write(&there, "somebody's").unwrap();
        lock(&there);
        lock(&paths[0]);
        fs::remove_file(&paths[1]).unwrap();
        run_as_user(&arguments(&args!["--to", &to])).expect(exit::IO);
        unlock(&there);
        assert_eq!(fs::read(&there).unwrap(), b"somebody's");
        assert_eq!(names(&to), ["object.1of6-2.paritas", "object.1of6.paritas"]);
        // With all of them readable, nothing is left to do.
        unlock(&paths[0]);
        run_as_user(&args!["verify", yard.shards(), &to]).expect(exit::DONE);
    }
}

/// A source that fails after the shards were begun: a folder on standard input.
#[test]
fn a_failing_source_leaves_what_was_there() {
    let yard = Yard::encoded(1000);
    let before = snapshot(&yard.shards());
    for force in [true, false] {
        let name = if force { "object" } else { "other" };
        let mut arguments = args!["encode", "-", "--name", name, "--out", yard.shards()].to_vec();
        arguments.extend(force.then(|| "--force".into()));
        let mut command = paritas(arguments);
        command.stdin(File::open(yard.folder.path()).unwrap());
        assert!(finish(command).expect(exit::IO).stderr.contains("reading"));
        assert_eq!(snapshot(&yard.shards()), before);
    }
}

/// A file that grows, shrinks or is written to all the time that it is read.
#[test]
fn a_changing_source_exits_with_6_and_leaves_nothing() {
    const LENGTH: u64 = 40_000_000;
    type Change = fn(&File, u64);
    let grow: Change = |file, step| file.set_len(LENGTH + step).unwrap();
    let shrink: Change = |file, step| file.set_len(LENGTH - step).unwrap();
    let write: Change = |file, step| file.write_all_at(&[step as u8], step).unwrap();
    let yard = Yard::new(0);
    for (change, mention) in [(grow, " to "), (shrink, " to "), (write, "in place")] {
        let file = File::options().write(true).open(yard.path("object")).unwrap();
        file.set_len(LENGTH).unwrap();
        // Old enough for its time to differ by the first change.
        file.set_modified(std::time::UNIX_EPOCH).unwrap();
        for quiet in [&["--no-sync"][..], &["--no-sync", "--quiet"]] {
            let done = AtomicBool::new(false);
            let end = thread::scope(|scope| {
                scope.spawn(|| {
                    for step in 1.. {
                        if done.load(Ordering::Relaxed) {
                            break;
                        }
                        change(&file, step % LENGTH);
                    }
                });
                let arguments = args!["encode", yard.path("object"), "--out", yard.shards()];
                let more = quiet.iter().map(OsString::from);
                let end = run(arguments.into_iter().chain(more));
                done.store(true, Ordering::Relaxed);
                end
            });
            let end = end.expect(exit::IO);
            assert!(end.stderr.contains("changed") && end.stderr.contains(mention), "{end}");
            assert!(names(&yard.shards()).is_empty(), "{end}");
        }
    }
    // Files without a length, as in /proc, are read to their ends.
    let arguments = args!["encode", "/proc/self/status", "--out", yard.shards(), "--no-sync"];
    run(arguments).expect(exit::DONE);
}

/// Every writing command where there is not enough room, in a folder on a small disk.
fn check_full_disk(disk: &Path, run: impl Fn(&[OsString]) -> Run) {
    let yard = Yard::encoded(300_000);
    let big = Yard::new(5_000_000);
    let room = disk.join("shards");

    // What fits, fits.
    let encode = |yard: &Yard, more: &[OsString]| {
        [&args!["encode", yard.path("object"), "--out", &room], more].concat()
    };
    run(&encode(&yard, &[])).expect(exit::DONE);
    let before = snapshot(&room);
    assert_eq!(before.len(), 6);

    let failed = run(&encode(&big, &args!["--force"])).expect(exit::IO);
    assert!(failed.stderr.contains(room.to_str().unwrap()), "{failed}");
    assert_eq!(snapshot(&room), before, "the old set after a failed --force");
    run(&encode(&big, &args!["--name", "big"])).expect(exit::IO);
    assert_eq!(snapshot(&room), before, "the folder after a failed encode");

    let big_shards = big.path("shards");
    common::encode(&big.path("object"), &big_shards, "4+2", &[]);
    let out = disk.join("out");
    run(&args!["decode", &big_shards, "--out", &out]).expect(exit::IO);
    fs::write(&out, "old").unwrap();
    run(&args!["decode", &big_shards, "--out", &out, "--force"]).expect(exit::IO);
    assert_eq!(fs::read(&out).unwrap(), b"old");
    assert_eq!(names(disk), ["out", "shards"]);

    big.lose(2);
    let whole = snapshot(&big_shards);
    run(&args!["repair", &big_shards, "--to", disk]).expect(exit::IO);
    assert_eq!(names(disk), ["out", "shards"]);
    assert_eq!(snapshot(&big_shards), whole);
    run(&args!["verify", &room]).expect(exit::DONE);
}

#[test]
fn a_full_disk_exits_with_6_and_leaves_what_was_there() {
    let disk = tempfile::tempdir().unwrap();
    let mount = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=1500k", "tmpfs"])
        .arg(disk.path())
        .output();
    if !mount.is_ok_and(|mount| mount.status.success()) {
        return say("interface: no small disk can be mounted here; one test does nothing");
    }
    struct Unmount<'a>(&'a Path);
    impl Drop for Unmount<'_> {
        fn drop(&mut self) {
            let _ = Command::new("umount").arg(self.0).status();
        }
    }
    let _unmount = Unmount(disk.path());
    check_full_disk(disk.path(), |arguments| run(arguments));
}

/// The same where files may not grow, which needs no rights.
#[test]
fn a_file_size_limit_exits_with_6_and_leaves_what_was_there() {
    let disk = tempfile::tempdir().unwrap();
    check_full_disk(disk.path(), |arguments| {
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' XFSZ; ulimit -f 1000; exec \"$@\"", "sh"]);
        command.arg(env!("CARGO_BIN_EXE_paritas")).args(arguments).stdin(Stdio::null());
        finish(command)
    });
}

#[test]
fn existing_shards_are_refused_unless_forced() {
    let yard = Yard::encoded(1000);
    let before = snapshot(&yard.shards());
    let again = args!["encode", yard.path("object"), "--out", yard.shards()];
    let message = fails(&again, exit::ARGUMENTS, "arguments");
    assert!(message.contains("object.0of6.paritas") && message.contains("force"), "{message}");
    let other_code = [&again[..], &args!["--code", "rdp:k=6"]].concat();
    fails(&other_code, exit::ARGUMENTS, "arguments");
    assert_eq!(snapshot(&yard.shards()), before);

    // Another name is another object.
    run([&again[..], &args!["--name", "object2"]].concat()).expect(exit::DONE);
    assert_eq!(names(&yard.shards()).len(), 12);

    fs::write(yard.path("object"), "new").unwrap();
    run([&other_code[..], &args!["--force"]].concat()).expect(exit::DONE);
    let after = names(&yard.shards());
    let ours = |name: &&OsString| name.as_bytes().starts_with(b"object.");
    assert_eq!(after.iter().filter(ours).count(), 8, "{after:?}");
    assert_eq!(after.len(), 8 + 6, "{after:?}");
    let decode = args!["decode", yard.shards(), "--object", "object", "--out", "-"];
    assert_eq!(run(decode).expect(exit::DONE).stdout, b"new");
    let decode = args!["decode", yard.shards(), "--object", "object2", "--out", "-"];
    assert_eq!(run(decode).expect(exit::DONE).stdout, yard.content);
}

#[test]
fn an_existing_output_is_refused_unless_forced() {
    let yard = Yard::encoded(1000);
    let (out, link) = (yard.path("out"), yard.path("link"));
    fs::write(&out, "precious").unwrap();
    symlink("out", &link).unwrap();
    let decode = |to: &Path| args!["decode", yard.shards(), "--out", to];
    for to in [&out, &link] {
        let message = fails(&decode(to), exit::ARGUMENTS, "arguments");
        assert!(message.contains(to.to_str().unwrap()), "{message}");
    }
    assert_eq!(fs::read(&out).unwrap(), b"precious");
    run([&decode(&link)[..], &args!["--force"]].concat()).expect(exit::DONE);
    assert_eq!(fs::read(&out).unwrap(), yard.content);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());

    // The files that hold the object are no place for it.
    let (shard, before) = (yard.shards().join("object.0of6.paritas"), snapshot(&yard.shards()));
    symlink(&shard, yard.path("to a shard")).unwrap();
    for to in [&shard, &yard.path("to a shard")] {
        let decode = [&decode(to)[..], &args!["--force"]].concat();
        let message = fails(&decode, exit::ARGUMENTS, "arguments");
        assert!(message.contains("holds a shard of object"), "{message}");
    }
    assert_eq!(snapshot(&yard.shards()), before);

    fs::write(&out, "precious").unwrap();
    yard.lose(3);
    fails(&[&decode(&out)[..], &args!["--force"]].concat(), exit::LOST, "lost");
    assert_eq!(fs::read(&out).unwrap(), b"precious");
    assert!(!names(yard.folder.path()).iter().any(|name| is_leftover(name)));
}

#[test]
fn devices_and_fifos_are_written_to() {
    let yard = Yard::encoded(1_000_000);
    run(args!["decode", yard.shards(), "--out", "/dev/null"]).expect(exit::DONE);
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());

    let fifo = yard.path("fifo");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let reader = thread::spawn({
        let fifo = fifo.clone();
        move || fs::read(fifo).unwrap()
    });
    run(args!["decode", yard.shards(), "--out", &fifo]).expect(exit::DONE);
    assert!(reader.join().unwrap() == yard.content);
    assert!(fs::symlink_metadata(&fifo).unwrap().file_type().is_fifo());
}

#[test]
fn out_is_made_and_to_must_exist() {
    let yard = Yard::new(1000);
    let out = yard.path("a/b/c");
    run(args!["encode", yard.path("object"), "--out", &out]).expect(exit::DONE);
    assert_eq!(names(&out).len(), 6);

    let (there, missing) = (yard.path("there"), yard.path("missing"));
    fs::create_dir(&there).unwrap();
    let arguments = args!["encode", yard.path("object"), "--to", &there, "--to", &missing];
    let message = fails(&arguments, exit::ARGUMENTS, "arguments");
    assert!(message.contains(missing.to_str().unwrap()), "{message}");
    assert!(!missing.exists() && names(&there).is_empty());
}

#[test]
fn shards_go_round_the_folders() {
    let yard = Yard::new(100_000);
    let disks: Vec<PathBuf> = (0..6).map(|disk| yard.path(format!("disk{disk}"))).collect();
    disks.iter().for_each(|disk| fs::create_dir(disk).unwrap());
    let encode = |disks: &[PathBuf], name: &str| {
        let mut arguments = args!["encode", yard.path("object"), "--json", "--name", name].to_vec();
        arguments.extend(disks.iter().flat_map(|disk| args!["--to", disk]));
        run(arguments).expect(exit::DONE)
    };
    let shared = encode(&disks[..4], "shared");
    for (shard, path) in shard_paths(&shared.result()).iter().enumerate() {
        assert_eq!(path, &disks[shard % 4].join(format!("shared.{shard}of6.paritas")));
        assert!(path.is_file());
    }
    assert!(shared.stderr.contains("share"), "{shared}");
    assert_eq!(shared.result()["warnings"].as_array().unwrap().len(), 1);
    let apart = encode(&disks, "apart");
    assert!(apart.stderr.is_empty(), "{apart}");

    // A lost disk: what it had goes to a new one, or to the emptiest that is left.
    let whole = snapshot(&disks[5]);
    fs::remove_dir_all(&disks[5]).unwrap();
    let new = yard.path("new");
    fs::create_dir(&new).unwrap();
    let left: Vec<OsString> = disks[..5].iter().map(OsString::from).collect();
    let repair = [&args!["repair", "--object", "apart"], &left[..]].concat();
    run([&repair[..], &args!["--to", &new]].concat()).expect(exit::DONE);
    assert_eq!(snapshot(&new), whole);
    let decode = [&args!["decode", "--object", "apart", "--out", "-", &new], &left[1..]].concat();
    assert_eq!(run(decode).expect(exit::DONE).stdout, yard.content);
    run(&repair).expect(exit::DONE);
    let (name, bytes) = whole.first_key_value().unwrap();
    let found = disks[..5].iter().filter_map(|disk| fs::read(disk.join(name)).ok());
    assert!(found.eq([bytes.as_slice()]));
}

#[test]
fn several_objects_in_one_folder() {
    let yard = Yard::encoded(1000);
    let other = Chance(9).bytes(2000);
    fs::write(yard.path("second"), &other).unwrap();
    let second = common::encode(&yard.path("second"), &yard.shards(), "rdp:k=4", &[]);
    let second_id = second["object"].as_str().unwrap();
    let out = yard.path("out");

    let message =
        fails(&args!["decode", yard.shards(), "--out", &out], exit::ARGUMENTS, "arguments");
    for listed in ["object", "second", second_id] {
        assert!(message.contains(listed), "{message}");
    }
    assert!(!out.exists());
    for (object, content) in [("object", &yard.content), ("second", &other), (second_id, &other)] {
        let decode = args!["decode", yard.shards(), "--out", "-", "--object", object];
        assert!(run(decode).expect(exit::DONE).stdout == *content);
    }
    fails(
        &args!["decode", yard.shards(), "--out", &out, "--object", "third"],
        exit::NOT_RECOGNISED,
        "not-recognised",
    );

    // Of two objects of one name, only the id tells which.
    let twin_folder = yard.path("twin");
    let twin = common::encode(&yard.path("object"), &twin_folder, "4+2", &["--name", "second"]);
    let both = args!["decode", yard.shards(), &twin_folder, "--out", "-", "--object", "second"];
    fails(&both, exit::ARGUMENTS, "arguments");
    let id = twin["object"].as_str().unwrap();
    let by_id = args!["decode", yard.shards(), &twin_folder, "--out", "-", "--object", id];
    assert!(run(by_id).expect(exit::DONE).stdout == yard.content);

    // The worst decides: verify goes on after a lost object, and repair mends the other.
    let verify = args!["verify", yard.shards(), "--json"];
    // A line for each, and the summary.
    assert_eq!(run(&verify).expect(exit::DONE).results().len(), 3);
    fs::remove_file(yard.shards().join("second.0of6.paritas")).unwrap();
    run(&verify).expect(exit::REPAIRABLE);
    yard.lose(3);
    let lost = run(&verify).expect(exit::LOST);
    assert_eq!(lost.results().len(), 3);
    let one = args!["verify", yard.shards(), "--object", "second"];
    run(one).expect(exit::REPAIRABLE);
    let info = run(args!["info", yard.shards(), "--json"]).expect(exit::DONE);
    assert_eq!(info.results().len(), 2);
    let repair = run(args!["repair", yard.shards(), "--json"]).expect(exit::LOST);
    assert_eq!(repair.results().len(), 2);
    assert!(repair.error()["message"].as_str().unwrap().contains("object"));
    run(args!["verify", yard.shards(), "--object", "second"]).expect(exit::DONE);
}

#[test]
fn pipes_are_sources_and_targets() {
    let content = Chance(10).bytes(10_000_000);
    let yard = Yard::new(0);
    let encode = args!["encode", "-", "--out", yard.shards(), "--no-sync"];
    run_with_input(encode, &content).expect(exit::DONE);
    assert!(names(&yard.shards()).contains(&"stdin.0of6.paritas".into()));
    yard.lose(2);
    let decoded = run(args!["decode", yard.shards(), "--out", "-"]).expect(exit::DONE);
    assert!(decoded.stdout == content);
    assert!(decoded.stderr.contains("stdin"), "the report goes to standard error: {decoded}");

    // decode | encode - | decode
    let mut source = paritas(args!["decode", yard.shards(), "--out", "-", "--quiet"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (again, name) = (yard.path("again"), OsString::from_vec(b"na\xffme".to_vec()));
    let mut command =
        paritas(args!["encode", "-", "--out", &again, "--name", name, "--code", "10+4"]);
    command.stdin(source.stdout.take().unwrap());
    finish(command).expect(exit::DONE);
    assert_eq!(wait(&mut source), (exit::DONE, String::new()));
    assert!(common::decode(&again) == content);

    for length in [0, 1, 4096] {
        let out = yard.path(format!("short{length}"));
        let encode = args!["encode", "-", "--out", &out, "--no-sync"];
        run_with_input(encode, &content[..length]).expect(exit::DONE);
        assert!(common::decode(&out) == content[..length]);
    }
}

#[test]
fn a_broken_pipe_is_an_output_failure() {
    let yard = Yard::encoded(10_000_000);
    let mut child = paritas(args!["decode", yard.shards(), "--out", "-", "--quiet"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut start = vec![0; 65_536];
    child.stdout.take().unwrap().read_exact(&mut start).unwrap();
    let (code, stderr) = wait(&mut child);
    assert_eq!(code, exit::IO, "{stderr}");
    assert!(stderr.contains("pipe"), "{stderr}");
    assert!(start == yard.content[..65_536]);
}

#[test]
fn quiet_prints_nothing_and_results_go_to_standard_output() {
    let yard = Yard::new(1000);
    let quiet = |arguments: &[OsString]| {
        let run = run([arguments, &args!["--quiet"]].concat()).expect(exit::DONE);
        assert!(run.stdout.is_empty() && run.stderr.is_empty(), "{run}");
    };
    quiet(&args!["encode", yard.path("object"), "--out", yard.shards()]);
    quiet(&args!["verify", yard.shards()]);
    quiet(&args!["repair", yard.shards()]);
    quiet(&args!["decode", yard.shards(), "--out", yard.path("out")]);
    for arguments in [
        args!["verify", yard.shards()].to_vec(),
        args!["info", yard.shards()].to_vec(),
        args!["repair", yard.shards()].to_vec(),
        args!["codes"].to_vec(),
        args!["codes", "4+2", "--matrix"].to_vec(),
        args!["schedule", "4+2", "--text"].to_vec(),
        args!["doctor"].to_vec(),
    ] {
        let run = run(arguments).expect(exit::DONE);
        assert!(!run.stdout.is_empty() && run.stderr.is_empty(), "{run}");
    }
}

#[test]
fn every_command_documents_itself_with_an_example() {
    let version = run(["--version"]).expect(exit::DONE).text();
    assert_eq!(version, format!("paritas {}\n", env!("CARGO_PKG_VERSION")));
    let help = run(["--help"]).expect(exit::DONE).text();
    for code in 0..=8 {
        assert!(help.contains(&format!("\n  {code}  ")), "exit code {code} in\n{help}");
    }
    let commands = commands(&help);
    assert!(commands.len() >= 9, "{commands:?}");
    for command in &commands {
        let help = run([command, "--help"]).expect(exit::DONE).text();
        assert!(help.contains(&format!("Usage: paritas {command}")), "{help}");
        let examples = examples(&help, command);
        assert!(!examples.is_empty(), "no example in\n{help}");
        if ["codes", "schedule", "doctor"].contains(&command.as_str()) {
            // Some write files.
            let folder = tempfile::tempdir().unwrap();
            for example in examples {
                let mut command = paritas(example.split_whitespace().skip(1));
                command.current_dir(folder.path());
                finish(command).expect(exit::DONE);
            }
        }
    }
}

/// Paragraphs fill the width that there is: a line ends where the next word does not fit, or a
/// paragraph ends with it.
#[test]
fn help_is_wrapped_once() {
    let help = run(["--help"]).expect(exit::DONE).text();
    for (command, width) in commands(&help).iter().flat_map(|c| [(c, 60), (c, 80), (c, 100)]) {
        let mut command = paritas([command, "--help"]);
        command.env("COLUMNS", width.to_string());
        let help = finish(command).expect(exit::DONE).text();
        let lines: Vec<&str> = help.lines().collect();
        for pair in lines.windows(2) {
            let [line, next] = [pair[0], pair[1]];
            let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ');
            let ends = line.ends_with(['.', ':']) || next.starts_with("JSON");
            if !is_prose(line) || !is_prose(next) || ends {
                continue;
            }
            let word = next.split(' ').next().unwrap_or_default();
            let length = line.chars().count() + 1 + word.chars().count();
            assert!(length > width, "{width} columns:\n{line}\n{next}\nin\n{help}");
        }
    }
}

#[test]
fn one_shard_is_no_shards() {
    let yard = Yard::encoded(1000);
    yard.lose(1);
    let verify = run(args!["verify", yard.shards()]).expect(exit::REPAIRABLE).text();
    assert!(verify.contains("1 more loss is tolerable"), "{verify}");
    let repair = run(args!["repair", yard.shards()]).expect(exit::DONE).text();
    assert!(repair.contains(": 1 shard written"), "{repair}");
    let encode = args!["encode", yard.path("object"), "--out", yard.shards()];
    let refusal = fails(&encode, exit::ARGUMENTS, "arguments");
    assert!(refusal.contains("6 shard files of that name"), "{refusal}");
    yard.lose(5);
    let refusal = fails(&encode, exit::ARGUMENTS, "arguments");
    assert!(refusal.contains("1 shard file of that name"), "{refusal}");
}

/// The commands that the help lists.
fn commands(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names =
        lines.take_while(|line| !line.is_empty()).filter_map(|l| l.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

/// The examples that call a command, without the remarks beside them.
fn examples(help: &str, command: &str) -> Vec<String> {
    let after = help.split_once("Example").map_or("", |(_, after)| after);
    let calls = format!("paritas {command}");
    let examples = after.lines().map(str::trim).filter(|line| line.contains(&calls));
    examples.map(|line| line.split("   ").next().unwrap().to_owned()).collect()
}

#[test]
fn completions_and_man_pages_are_made() {
    let help = run(["--help"]).expect(exit::DONE).text();
    for shell in ["bash", "zsh", "fish"] {
        let script = run(["completions", shell]).expect(exit::DONE).text();
        for command in commands(&help) {
            assert!(script.contains(&command), "{command} in the completions for {shell}");
        }
        assert!(script.contains("no-sync"), "options in the completions for {shell}");
    }
    let folder = tempfile::tempdir().unwrap();
    run(args!["man", folder.path()]).expect(exit::DONE);
    let pages = snapshot(folder.path());
    for command in commands(&help) {
        let page = &pages[OsStr::new(&format!("paritas-{command}.1"))];
        let page = String::from_utf8_lossy(page).replace('\\', "");
        assert!(page.contains(".TH") && page.contains("--json"), "{page}");
        assert!(page.contains("Example"), "no example in the man page of {command}");
    }
    assert!(String::from_utf8_lossy(&pages[OsStr::new("paritas.1")]).contains("Exit codes"));
}

#[test]
fn names_are_any_bytes() {
    let yard = Yard::new(1000);
    let longest = "n".repeat(255 - ".0of6.paritas".len());
    let names: [&[u8]; 7] =
        [b"caf\xe9", b"new\nline", b" ", b"-", b"--force", b"a.0of6.paritas", longest.as_bytes()];
    for (number, name) in names.into_iter().enumerate() {
        let name = OsStr::from_bytes(name);
        let mut option = OsString::from("--name=");
        option.push(name);
        let folder = yard.path(format!("shards{number}"));
        run(args!["encode", yard.path("object"), "--out", &folder, option]).expect(exit::DONE);
        let first = [name.as_bytes(), b".0of6.paritas"].concat();
        fs::remove_file(folder.join(OsStr::from_bytes(&first))).unwrap();
        let mut object = OsString::from("--object=");
        object.push(name);
        let decode = args!["decode", &folder, "--out", "-", &object];
        assert!(run(decode).expect(exit::DONE).stdout == yard.content);
        run(args!["repair", &folder, object]).expect(exit::DONE);
        run(args!["verify", &folder]).expect(exit::DONE);
        assert!(folder.join(OsStr::from_bytes(&first)).is_file());
    }
    // A file's own name, given from where it is.
    let odd = OsStr::from_bytes(b"-\xff-");
    fs::write(yard.path(odd), "odd").unwrap();
    let mut command = paritas(args!["encode", "--out", "odd shards", "--", odd]);
    command.current_dir(yard.folder.path());
    finish(command).expect(exit::DONE);
    assert_eq!(common::decode(&yard.path("odd shards")), b"odd");
}

/// Nothing that a name holds can end a line, or reach the terminal as a command.
fn check_unforged(run: &Run) {
    for text in [run.text(), run.stderr.clone()] {
        let harmless = |c: char| c == '\n' || !c.is_control();
        assert!(text.chars().all(harmless), "{text:?}");
        assert!(text.lines().all(|line| !line.trim_start().starts_with("forged")), "{text}");
    }
}

#[test]
fn names_forge_no_lines() {
    let yard = Yard::new(1000);
    let name = "a\nforged: intact\u{1b}[2K\r\u{9b}";
    let folder = |kind: &str| yard.path(format!("{kind} {name}"));
    let named = |option: &str| format!("--{option}={name}");
    let try_one = |arguments: &[OsString], code: i32| {
        let run = run(arguments).expect(code);
        check_unforged(&run);
        run
    };
    let forged = r"a\nforged: intact\u{1b}[2K\r\u{9b}";
    let (packets, words, staged) = (folder("packets"), folder("words"), folder("staged"));
    for (code, out) in
        [("4+2", &packets), ("backblaze:k=4,m=2", &words), ("bbdpg:k=3,m=2,m2=3", &staged)]
    {
        let encode =
            args!["encode", yard.path("object"), "--code", code, named("name"), "--out", out];
        assert!(try_one(&encode, exit::DONE).text().contains(forged));
        fs::remove_file(&shards_of(out)[0]).unwrap();
        fs::write(&shards_of(out)[0], "damaged").unwrap();
        fs::write(out.join(format!("{name}.paritas")), "no shard").unwrap();
        for command in ["verify", "info"] {
            let code = if command == "info" { exit::DONE } else { exit::REPAIRABLE };
            let run = try_one(&args![command, out], code);
            assert!(run.text().contains(forged) && run.stderr.contains(forged), "{run}");
        }
        let decode = args!["decode", out, "--out", folder(code)];
        assert!(try_one(&decode, exit::DONE).text().contains(forged));
        try_one(&decode, exit::ARGUMENTS);
    }
    let fragments = folder("fragments");
    let format = |command: &str, from: &Path, to: &Path| {
        args![command, from, "--format", "klauspost", "--out", to]
    };
    try_one(&format("export", &words, &fragments), exit::DONE);
    let import = format("import", &fragments, &folder("imported"));
    try_one(&[&import[..], &args!["--code", "backblaze:k=4,m=2"]].concat(), exit::DONE);
    try_one(&args!["promote", &staged], exit::DONE);
    for out in [&packets, &words, &staged] {
        assert!(try_one(&args!["repair", out], exit::DONE).text().contains(forged));
    }
    // Refusals and failures.
    try_one(&args!["verify", folder("nowhere")], exit::IO);
    try_one(&args!["verify", &packets, named("object"), named("forged")], exit::ARGUMENTS);
    try_one(&args!["verify", &packets, named("object=")], exit::NOT_RECOGNISED);
    try_one(&args!["encode", folder("nowhere"), "--out", &packets], exit::IO);
    try_one(&args!["encode", yard.path("object"), "--to", folder("nowhere")], exit::ARGUMENTS);
    try_one(&args!["encode", yard.path("object"), named("code"), "--out", "x"], exit::ARGUMENTS);
    try_one(&args!["decode", &packets, &words, "--out", yard.path("new")], exit::ARGUMENTS);
}

/// The shards of a folder, in order.
fn shards_of(folder: &Path) -> Vec<PathBuf> {
    names(folder).iter().map(|name| folder.join(name)).collect()
}

#[test]
fn output_that_fails_exits_with_6() {
    let yard = Yard::encoded(1000);
    let (shards, out) = (yard.shards(), yard.path("out"));
    let (object, new) = (yard.path("object"), yard.path("new"));
    let cases = [
        args!["--help"].to_vec(),
        args!["--version"].to_vec(),
        args!["verify", "--help"].to_vec(),
        args!["help", "repair"].to_vec(),
        args!["completions", "bash"].to_vec(),
        args!["encode", &object, "--out", &new].to_vec(),
        args!["verify", &shards].to_vec(),
        args!["verify", &shards, "--json"].to_vec(),
        args!["info", &shards].to_vec(),
        args!["info", &shards, "--json"].to_vec(),
        args!["repair", &shards, "--json"].to_vec(),
        args!["decode", &shards, "--out", &out].to_vec(),
        args!["codes"].to_vec(),
        args!["codes", "4+2", "--matrix", "--json"].to_vec(),
        args!["schedule", "4+2", "--text"].to_vec(),
        args!["doctor"].to_vec(),
    ];
    let full = || File::options().write(true).open("/dev/full").unwrap();
    for arguments in &cases {
        let mut command = paritas(arguments);
        command.stdout(full());
        let run = finish(command).expect(exit::IO);
        assert!(run.stderr.contains("standard output") && run.stderr.contains("space"), "{run}");
    }
    run(args!["man", "/dev/full"]).expect(exit::IO);
    // What was asked for has been done all the same.
    assert_eq!(fs::read(&out).unwrap(), yard.content);
    // A report on standard error is output too.
    let mut command = paritas(args!["decode", &shards, "--out", "-"]);
    command.stderr(full());
    assert_eq!(finish(command).expect(exit::IO).stdout, yard.content);
    // With nothing to say there is nothing that fails.
    let mut command = paritas(args!["verify", &shards, "--quiet"]);
    command.stdout(full());
    finish(command).expect(exit::DONE);
}

/// A reader that goes away early is no failure of ours.
#[test]
fn a_listing_may_be_cut_short() {
    let mut child = paritas(["schedule", "cauchy:k=20,m=10", "--text"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let (code, stderr) = wait(&mut child);
    assert!(code == exit::DONE && stderr.is_empty(), "exit {code}: {stderr}");
}

/// Progress is told in JSON while a slow source is read.
#[test]
fn progress_is_told() {
    let yard = Yard::new(0);
    let mut child = paritas(args!["encode", "-", "--out", yard.shards(), "--json", "--no-sync"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let piece = Chance(11).bytes(1 << 20);
    for _ in 0..3 {
        stdin.write_all(&piece).unwrap();
        thread::sleep(std::time::Duration::from_millis(600));
    }
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    common::check_json(&output.stdout);
    let lines = common::json_lines(&String::from_utf8(output.stdout).unwrap()).unwrap();
    let progress: Vec<_> = lines.iter().filter(|line| line["type"] == "progress").collect();
    assert!(!progress.is_empty(), "{lines:?}");
    for line in &progress {
        assert!(line["bytes"].as_u64().is_some_and(|bytes| bytes <= 3 << 20), "{line}");
        assert!(line["rate"].as_f64().is_some_and(|rate| rate > 0.0), "{line}");
        assert!(line.get("total").is_some() && line.get("eta_s").is_some(), "{line}");
    }
    assert_eq!(lines.last().unwrap()["type"], "encode");
}
