//! What scripts rely on: exit codes, files that are refused or replaced, and folders. Pipes are in
//! `pipes`, the text for people in `printed`, many objects in `many`, and what means nothing in
//! `refused`.

mod many;
mod pipes;
mod printed;
mod refused;

use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, FileTypeExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

use crate::common::{
    self, Chance, Run, exit, finish, is_leftover, json_lines, names, not_run, paritas, run,
    run_as_user, run_with_input, shard_paths, snapshot, wait,
};
use crate::small_disk::SmallDisk;

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

    /// Creates a yard whose object is encoded into `shards`.
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

    /// Deletes the first `count` shards.
    fn lose(&self, count: usize) {
        let lost = names(&self.shards()).into_iter().take(count);
        lost.for_each(|name| fs::remove_file(self.shards().join(name)).unwrap());
    }
}

/// Runs a command that must fail with a code: once for people, with a message, and once as JSON.
/// Checks its kind, and returns the message.
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
        encode(&args!["--to", &object]),
        encode(&args!["--out", &object]),
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
        args!["codes", "4+2", "--force"].to_vec(),
        args!["codes", "lt:k=65536,n=131072", "--matrix"].to_vec(),
        args!["schedule"].to_vec(),
        args!["schedule", "4+2", "--erase", "6"].to_vec(),
        args!["schedule", "4+2", "--align", "0"].to_vec(),
        args!["schedule", "4+2", "--search", "ga", "--population", usize::MAX.to_string()].to_vec(),
        args!["schedule", "4+2", "--pass", "frobnicate"].to_vec(),
        args!["bench", "--code", "4+2", "--kernel", "frobnicate"].to_vec(),
        args!["bench", "--code", "4+2", "--set", "0"].to_vec(),
        args!["bench", "--code", "4+2", "--reps", "0"].to_vec(),
        args!["bench", "--code", "4+2", "--packet", "0"].to_vec(),
        args!["completions", "frobnicate"].to_vec(),
        args!["repair", "-r", &shards, "--dry-run"].to_vec(),
        args!["man", &object].to_vec(),
    ];
    for arguments in &cases {
        fails(arguments, exit::ARGUMENTS, "arguments");
    }
    run::<&str>([]).expect(exit::ARGUMENTS);
    assert!(!out.exists() || names(&out).is_empty(), "{:?}", names(&out));
}

/// A name that looks like a flag is a name behind `--`, and `-` is standard output, even if there
/// is such a folder.
#[test]
fn names_like_flags_are_names() {
    let yard = Yard::encoded(1000);
    let missing = run(args!["verify", "--", "--json"]).expect(exit::IO);
    assert!(missing.stderr.starts_with("paritas: "), "{missing}");
    fs::create_dir(yard.path("-")).unwrap();
    let mut decode = paritas(args!["decode", "shards", "--out", "-"]);
    decode.current_dir(yard.folder.path());
    let decoded = finish(decode).expect(exit::DONE);
    assert!(decoded.stdout == yard.content && names(&yard.path("-")).is_empty());
}

/// The JSON of a result has every warning that was printed.
#[test]
fn warnings_stand_in_the_result() {
    let yard = Yard::new(3);
    let encode = args!["encode", yard.path("object"), "--code", "4+2", "--out", yard.path("o")];
    let encoded = run([&encode[..], &args!["--json"]].concat()).expect(exit::DONE);
    let told = json_lines(&encoded.stderr).unwrap();
    assert_eq!(told.len(), 1, "{encoded}");
    assert_eq!(encoded.result()["warnings"], serde_json::json!([told[0]["message"]]), "{encoded}");
}

/// Values that should be numbers are refused in the words of a user.
#[test]
fn what_is_no_number_is_said() {
    let yard = Yard::encoded(1000);
    let cases = [
        (args!["verify", yard.shards(), "--threads", "two"], "a whole number"),
        (args!["verify", yard.shards(), "--threads", "9".repeat(30)], "too large"),
        (args!["schedule", "4+2", "--align", "0"], "at least 1"),
    ];
    for (arguments, why) in cases {
        let message = fails(&arguments, exit::ARGUMENTS, "arguments");
        assert!(message.contains("for '--") && message.contains(why), "{message}");
    }
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
    let stage = fails(&args!["schedule", "4+2", "--stage", "2"], exit::ARGUMENTS, "arguments");
    assert!(stage.starts_with("--stage must be 1 for cauchy:"), "{stage}");
    let named = args!["encode", yard.path("object"), "--out", yard.path("new"), "--name", "a/b"];
    let message = fails(&named, exit::ARGUMENTS, "arguments");
    assert_eq!(message, "--name must not contain `/`; got 'a/b'");
}

/// `bench` reports how threads really shared the work.
#[test]
fn benches_tell_how_threads_shared_the_work() {
    let bench = |code: &str, split: &str, packet: &str| {
        let set = ["--set", "65536", "--reps", "1", "--threads", "2", "--json"];
        let mut words = vec!["bench", "--code", code, "--split", split];
        // Words have packets only where threads share columns.
        if split == "columns" || code == "4+2" {
            words.extend(["--packet", packet]);
        }
        words.iter().chain(&set).map(OsString::from).collect::<Vec<_>>()
    };
    for (code, split, packet, used) in [
        ("4+2", "node", "64", "node"),
        ("4+2", "rows", "64", "rows"),
        ("4+2", "columns", "128", "columns"),
        ("4+2", "columns", "64", "stripe"),
        ("4+1", "node", "64", "stripe"),
        ("reed-solomon:k=4,m=2", "node", "64", "node"),
        ("reed-solomon:k=4,m=2", "columns", "2048", "columns"),
        ("reed-solomon:k=4,m=2", "columns", "64", "stripe"),
    ] {
        let done = run(bench(code, split, packet)).expect(exit::DONE);
        assert_eq!(done.result()["split"], used, "{code} {split} {packet}");
        let warns = done.stderr.contains("cannot be shared by");
        assert_eq!(warns, split != used, "{}", done.stderr);
    }
    let mut words = bench("reed-solomon:k=4,m=2", "rows", "2048");
    assert_eq!(words.pop(), Some("--json".into()), "`fails` adds it");
    assert!(fails(&words, exit::ARGUMENTS, "arguments").contains("no rows"));
    let mut against = bench("4+2", "node", "64");
    against.extend(args!["--against", "split=columns,packet=128"]);
    let done = run(&against).expect(exit::DONE).result();
    assert_eq!((&done["split"], &done["against_split"]), (&"node".into(), &"columns".into()));
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

#[test]
fn a_folder_that_may_not_be_written_exits_with_6() {
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
    run_as_user(args!["verify", yard.shards()]).expect(exit::REPAIRABLE);
    fs::set_permissions(yard.shards(), mode(0o755)).unwrap();
}

/// Takes all permissions away.
fn lock(path: &Path) {
    fs::set_permissions(path, Permissions::from_mode(0o000)).unwrap();
}

/// Gives the permissions back.
fn unlock(path: &Path) {
    fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
}

/// Creates a yard that a user without the rights of root can read and write.
fn open_yard() -> Yard {
    let yard = Yard::encoded(1000);
    fs::set_permissions(yard.folder.path(), Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(yard.shards(), Permissions::from_mode(0o777)).unwrap();
    yard
}

#[test]
fn a_shard_that_may_not_be_read_is_not_lost() {
    // The number of locked shards, the number of deleted shards, the expected exit code and status.
    for (locked, deleted, code, status) in [
        (1, 0, exit::IO, "unknown"),
        (2, 0, exit::IO, "unknown"),
        (3, 0, exit::IO, "unknown"),
        (6, 0, exit::IO, ""),
        // One shard is missing, whatever the locked file holds.
        (1, 1, exit::REPAIRABLE, "repairable"),
        // Whether the object is lost depends on the locked shards.
        (1, 2, exit::IO, "unknown"),
        (2, 2, exit::IO, "unknown"),
        // Three shards are not enough, whatever the locked files hold.
        (1, 3, exit::LOST, "lost"),
        (2, 3, exit::LOST, "lost"),
    ] {
        let yard = open_yard();
        yard.lose(deleted);
        let paths = shards_of(&yard.shards());
        paths[..locked].iter().for_each(|path| lock(path));
        let verify = run_as_user(args!["verify", yard.shards(), "--json"]).expect(code);
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
        let text = run_as_user(args!["verify", yard.shards()]).expect(code);
        assert!(text.stderr.contains(paths[0].to_str().unwrap()), "{text}");
        assert_eq!(text.text().contains("beyond repair"), status == "lost", "{text}");
        let decode = run_as_user(args!["decode", yard.shards(), "--out", "-"]);
        if locked + deleted <= 2 {
            assert!(decode.expect(exit::DONE).stdout == yard.content);
        } else {
            decode.expect(code);
        }
    }
}

#[test]
fn a_folder_that_may_not_be_read_leaves_all_open() {
    let yard = open_yard();
    let other = yard.path("other");
    fs::create_dir(&other).unwrap();
    lock(&other);
    let both = run_as_user(args!["verify", yard.shards(), &other]).expect(exit::IO);
    assert!(both.text().contains("object: intact") && both.stderr.contains("denied"), "{both}");
    // In a tree, the locked folder is a place of its own, about which nothing is known.
    let tree = run_as_user(args!["verify", "-r", yard.folder.path()]).expect(exit::IO);
    assert!(
        tree.text().contains("shards/object: intact") && tree.stderr.contains("denied"),
        "{tree}"
    );
    for command in ["verify", "info", "repair"] {
        let end = run_as_user(args![command, &other]).expect(exit::IO);
        assert!(end.stderr.contains("denied"), "{end}");
    }
    let named = args!["verify", yard.shards(), &other, "--object", "elsewhere"];
    run_as_user(&named).expect(exit::IO);
    run_as_user(&named[..2]).expect(exit::DONE);
    for lost in 1..=4 {
        yard.lose(1);
        let verify = run_as_user(args!["verify", yard.shards(), &other, "--json"]);
        assert_eq!(verify.expect(exit::IO).result()["status"], "unknown", "{lost}");
    }
    run_as_user(args!["verify", yard.shards()]).expect(exit::LOST);
    run_as_user(args!["decode", yard.shards(), &other, "--out", "-"]).expect(exit::IO);
    unlock(&other);
}

#[test]
fn repair_leaves_alone_what_it_may_not_read() {
    for more in [&[][..], &["--fewest-reads"]] {
        let yard = open_yard();
        let paths = shards_of(&yard.shards());
        fs::remove_file(&paths[1]).unwrap();
        let (whole, to) = (snapshot(&yard.shards()), yard.path("to"));
        lock(&paths[0]);
        let arguments =
            |more: &[OsString]| [&args!["repair", yard.shards(), "--json"], more].concat();
        let more: Vec<OsString> = more.iter().map(OsString::from).collect();
        let repair = run_as_user(arguments(&more)).expect(exit::IO);
        let report = repair.result();
        assert_eq!(report["repaired"].as_array().unwrap().len(), 1, "{repair}");
        assert_eq!(report["repaired"][0]["index"], 1);
        assert_eq!(report["unreadable"][0]["index"], 0);
        assert!(repair.error()["message"].as_str().unwrap().contains("shard 0"), "{repair}");
        unlock(&paths[0]);
        for (name, bytes) in &whole {
            assert!(fs::read(yard.shards().join(name)).unwrap() == *bytes, "{name:?}");
        }
        // An unreadable file also stays if it has the name of a missing shard, in the folder that
        // shards are written to.
        fs::create_dir(&to).unwrap();
        fs::set_permissions(&to, Permissions::from_mode(0o777)).unwrap();
        let there = to.join("object.1of6.paritas");
        fs::write(&there, "somebody's").unwrap();
        lock(&there);
        lock(&paths[0]);
        fs::remove_file(&paths[1]).unwrap();
        run_as_user(arguments(&args!["--to", &to])).expect(exit::IO);
        unlock(&there);
        assert_eq!(fs::read(&there).unwrap(), b"somebody's");
        assert_eq!(names(&to), ["object.1of6-2.paritas", "object.1of6.paritas"]);
        // Once all files are readable, nothing is left to do.
        unlock(&paths[0]);
        run_as_user(args!["verify", yard.shards(), &to]).expect(exit::DONE);
    }
}

/// A source that fails after the shards have been begun: a folder on standard input.
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

/// A file that grows, shrinks or is written to while it is read.
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
        // The time is old, so the first change makes it differ.
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
                let (file, shards) = (yard.path("object"), yard.shards());
                let end = run(args!["encode", file, "--out", shards; quiet]);
                done.store(true, Ordering::Relaxed);
                end
            });
            let end = end.expect(exit::IO);
            assert!(end.stderr.contains("changed") && end.stderr.contains(mention), "{end}");
            assert!(!yard.shards().exists(), "{end}");
        }
    }
    // A file without a length, as in /proc, is read to its end.
    let arguments = args!["encode", "/proc/self/status", "--out", yard.shards(), "--no-sync"];
    let status = run(arguments).expect(exit::DONE);
    assert!(!status.stderr.contains("should have"), "{status}");
}

/// Closed input is not taken for an empty object. Input from /dev/null is.
#[test]
fn a_closed_input_is_refused() {
    let yard = Yard::new(0);
    let encode = args!["encode", "-", "--out", yard.shards(), "--no-sync"];
    let mut command = Command::new("sh");
    command.args(["-c", "exec \"$@\" <&-", "sh", env!("CARGO_BIN_EXE_paritas")]).args(&encode);
    let closed = finish(command).expect(exit::IO);
    assert!(closed.stderr.contains("reading standard input: it is closed"), "{closed}");
    assert!(!yard.shards().exists());
    run(encode).expect(exit::DONE);
    assert_eq!(common::decode(&yard.shards()), b"");
}

/// Checks every writing command with too little space, in a folder on a small disk.
fn check_full_disk(disk: &Path, run: impl Fn(&[OsString]) -> Run) {
    let yard = Yard::encoded(300_000);
    let big = Yard::new(5_000_000);
    let room = disk.join("shards");

    // An object that fits is written.
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
    let Some(disk) = SmallDisk::new("1500k") else {
        return not_run("interface: no small disk can be mounted here");
    };
    check_full_disk(disk.path(), |arguments| run(arguments));
}

/// The same with a limit on the size of files, which does not need root.
#[test]
fn a_file_size_limit_exits_with_6_and_leaves_what_was_there() {
    let disk = tempfile::tempdir().unwrap();
    check_full_disk(disk.path(), |arguments| {
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -f 1000; exec \"$@\"", "sh"]);
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

/// Renamed shards stay, as an object beside the new one.
#[test]
fn renamed_shards_are_not_replaced() {
    let yard = Yard::encoded(1000);
    let renamed: Vec<PathBuf> = (0..6).map(|shard| yard.path(format!("shards/{shard}"))).collect();
    shards_of(&yard.shards()).iter().zip(&renamed).for_each(|(from, to)| {
        fs::rename(from, to).unwrap();
    });
    fs::write(yard.path("object"), "new").unwrap();
    let again = args!["encode", yard.path("object"), "--out", yard.shards(), "--code", "3+3"];
    run([&again[..], &args!["--force"]].concat()).expect(exit::DONE);
    assert_eq!(names(&yard.shards()).len(), 12);
    let decode = args!["decode", yard.shards(), "--out", "-"];
    let message = fails(&decode, exit::ARGUMENTS, "arguments");
    assert!(message.contains("there are 2 objects; choose one by its name or id"), "{message}");
    let by_name = [&decode[..], &args!["--object", "object"]].concat();
    let message = fails(&by_name, exit::ARGUMENTS, "arguments");
    assert!(message.contains("2 objects are called object; choose one by its id"), "{message}");
    let old = [args!["decode"].to_vec(), renamed.iter().map(Into::into).collect()].concat();
    let old = run([old, args!["--out", "-"].to_vec()].concat()).expect(exit::DONE);
    assert_eq!(old.stdout, yard.content);
}

/// Paths in reports are those that the user gave, not absolute ones.
#[test]
fn paths_are_said_as_they_were_given() {
    let yard = Yard::encoded(1000);
    let here = |arguments: &[&str]| {
        let mut command = paritas(arguments);
        command.current_dir(yard.folder.path());
        finish(command)
    };
    let again = here(&["encode", "object", "--out", "shards"]).expect(exit::ARGUMENTS);
    assert!(again.stderr.contains("such as shards/object.0of6.paritas"), "{again}");
    for folder in ["shards", "./shards"] {
        yard.lose(1);
        flip(&yard.path("shards/object.3of6.paritas"));
        let repaired = here(&["repair", folder]).expect(exit::DONE).text();
        for shard in [0, 3] {
            let path = format!(": {folder}/object.{shard}of6.paritas");
            assert!(repaired.contains(&path), "{repaired}");
        }
        assert!(!repaired.contains(yard.folder.path().to_str().unwrap()), "{repaired}");
    }
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

    // A name that shards state leads nowhere else.
    let folder = yard.path("folder");
    fs::create_dir(&folder).unwrap();
    fs::write(&out, "precious").unwrap();
    symlink(&out, folder.join("object")).unwrap();
    let message =
        fails(&[&decode(&folder)[..], &args!["--force"]].concat(), exit::ARGUMENTS, "arguments");
    assert!(message.contains("is a symbolic link"), "{message}");
    assert_eq!(fs::read(&out).unwrap(), b"precious");

    // An object cannot be decoded to one of its own shard files.
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
    assert!(shared.stderr.contains("any 1 of 4 folders may be lost, although"), "{shared}");
    assert_eq!(shared.result()["warnings"].as_array().unwrap().len(), 1);
    let apart = encode(&disks, "apart");
    assert!(apart.stderr.is_empty(), "{apart}");
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

    // The worst object decides: verify continues after a lost object, and repair repairs the other
    // one.
    let verify = args!["verify", yard.shards(), "--json"];
    // One line for each object, and the summary.
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

/// Flips a byte in the middle of a file.
fn flip(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(path, bytes).unwrap();
}

/// Returns the shards of a folder, in order.
fn shards_of(folder: &Path) -> Vec<PathBuf> {
    names(folder).iter().map(|name| folder.join(name)).collect()
}
