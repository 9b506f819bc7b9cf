//! `paritas volume` from end to end, over folders: stored objects come back, losses are reported,
//! and interrupted commands leave nothing visible.

mod advice;
mod bench;
mod hang;
mod kill;
mod nodes;
mod reports;
mod sftp;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use walkdir::WalkDir;

use crate::common::tank::Tank;
use crate::common::{Chance, Run, exit, paritas, run, run_with_input};

#[test]
fn objects_come_back() {
    let tank = Tank::new(6, "4+2");
    assert_eq!((&tank.made["tolerance"], &tank.made["name"]), (&json!(2), &json!("tank")));
    assert_eq!(
        (&tank.made["warnings"], &tank.made["nodes"][5]["name"]),
        (&json!([]), &json!("node6"))
    );
    let content = Chance(1).bytes(3_000_000);
    let (file, back) = (tank.path("file"), tank.path("back"));
    fs::write(&file, &content).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    fs::File::options().append(true).open(&file).unwrap().set_modified(time).unwrap();
    let put = tank.run("put", &args![&file, "a/file"]).expect(exit::DONE).result();
    assert_eq!(
        (&put["length"], &put["inline"], &put["owed"]),
        (&json!(3_000_000), &json!(false), &json!(false))
    );
    assert_eq!(put["digest"], blake3::hash(&content).to_hex().as_str());
    assert_eq!(put["nodes"].as_array().unwrap().len(), 6);

    let get = tank.run("get", &args!["a/file", &back]).expect(exit::DONE).result();
    assert_eq!((&get["digest"], &get["sure"]), (&put["digest"], &json!(true)));
    assert!(fs::read(&back).unwrap() == content);
    let metadata = fs::metadata(&back).unwrap();
    assert_eq!(metadata.permissions().mode() & 0o7777, 0o640);
    assert_eq!(metadata.modified().unwrap(), time);
    tank.run("get", &args!["a/file", tank.path("new/one/")]).expect(exit::DONE);
    assert!(fs::read(tank.path("new/one/file")).unwrap() == content);
    tank.run("get", &args!["a/file", &back]).expect(exit::ARGUMENTS);
    let force = args!["a/file", &back, "--force", "--no-preserve"];
    tank.run("get", &force).expect(exit::DONE);
    assert_ne!(fs::metadata(&back).unwrap().modified().unwrap(), time);

    let stat = tank.run("stat", &args!["a/file"]).expect(exit::DONE).result();
    assert_eq!(
        (&stat["mode"], &stat["modified"]["seconds"]),
        (&json!("0640"), &json!(1_000_000_000))
    );
    assert_eq!((&stat["object"], &stat["code"]), (&put["object"], &json!("cauchy:k=4,m=2,w=3")));
    let small = tank.put("b", b"small");
    assert_eq!((&small["inline"], tank.get("b").as_slice()), (&json!(true), &b"small"[..]));
    assert_eq!(tank.run("stat", &args!["b"]).result()["code"], Value::Null);
    tank.put("b", &content[..100_000]);
    assert!(tank.get("b") == content[..100_000]);
    assert_eq!(tank.names(), ["a/file", "b"]);
    assert_eq!(tank.run("ls", &args!["a/"]).result()["length"], 3_000_000);
    tank.run("rm", &args!["b"]).expect(exit::DONE);
    assert_eq!(tank.names(), ["a/file"]);
    // The mark of the removed name is not an object.
    let repair = run(args!["volume", "repair", tank.path("tank.toml")]).expect(exit::DONE);
    assert_eq!(repair.text(), "a/file: nothing to write\n");
    for command in ["stat", "rm", "get", "verify", "repair", "promote", "reencode"] {
        let arguments = if command == "get" { &args!["a", "-"][..] } else { &args!["a"] };
        let run = tank.run(command, arguments).expect(exit::NOT_RECOGNISED);
        assert!(run.stderr.contains("there is no object a; a/ has 1 object"), "{run}");
    }
    // The empty name, as of a variable that is not set, does not stand for all objects.
    for command in ["verify", "repair", "promote", "reencode"] {
        let run = tank.run(command, &args![""]).expect(exit::ARGUMENTS);
        assert!(run.stderr.contains("is empty"), "{run}");
    }
}

#[test]
fn ranges_read_what_they_touch() {
    let tank = Tank::new(3, "2+1");
    let content = Chance(2).bytes(5_000_000);
    tank.put("object", &content);
    for (range, expected) in [
        ("0..0", 0..0),
        ("10..4106", 10..4106),
        ("2000000+4096", 2_000_000..2_004_096),
        ("4999990..", 4_999_990..5_000_000),
        ("5000000..", 5_000_000..5_000_000),
    ] {
        let cat = tank.run("cat", &args!["object", "--range", range]).expect(exit::DONE);
        assert!(cat.stdout == content[expected.clone()], "{range}");
        let report: Value = serde_json::from_str(cat.stderr.lines().last().unwrap()).unwrap();
        assert_eq!(report["end"], expected.end);
        // A block has 256 KiB, and a checksum.
        assert!(report["read_bytes"].as_u64().unwrap() <= 2 * (256 * 1024 + 8), "{report}");
    }
    assert!(tank.run("cat", &args!["object"]).expect(exit::DONE).stdout == content);
    for range in ["4999990..5000001", "5000001..", "9..8", "x"] {
        tank.run("cat", &args!["object", "--range", range]).expect(exit::ARGUMENTS);
    }
    let beyond = tank.run("cat", &args!["object", "--range", "5000001.."]);
    assert!(beyond.stderr.contains("after the end of object (5000000 bytes)"), "{beyond}");
}

#[test]
fn a_tree_is_stored_without_the_nodes_inside() {
    let tank = Tank::new(3, "2+1");
    fs::create_dir(tank.path("sub")).unwrap();
    fs::write(tank.path("sub/file"), "bytes").unwrap();
    // A link to the folder of all that is given in its place.
    symlink(tank.path(""), tank.path("sub/link")).unwrap();
    for folder in [tank.path("sub/link/"), tank.path("")] {
        let put = tank.run("put", &args!["--recursive", folder, "all"]).expect(exit::DONE);
        let told = put.stderr.matches("is a node of the volume, so it is not stored").count();
        assert_eq!((put.results().len(), told), (2, 3), "{put}");
    }
    symlink(tank.disk(1), tank.path("sub/node")).unwrap();
    for folder in [tank.disk(1).join("manifests"), tank.path("sub/node")] {
        let put = tank.run("put", &args!["--recursive", folder, "node"]).expect(exit::DONE);
        assert!(put.stderr.contains("no files that can be stored"), "{put}");
        assert_eq!(put.stderr.matches("is not stored").count(), 1, "{put}");
    }
    // A link to a folder is followed if it is given.
    symlink(tank.path("sub"), tank.path("given")).unwrap();
    let put = tank.run("put", &args!["--recursive", tank.path("given"), "g"]).expect(exit::DONE);
    assert!(put.results().len() == 1 && !put.stderr.contains("given is not a file"), "{put}");
}

#[test]
fn trees_come_back_and_stay_in_their_folder() {
    let tank = Tank::new(3, "2+1");
    let (tree, back) = (tank.path("tree"), tank.path("back"));
    let files = ["plain", "sub/.hidden", "sub/deep/ü % @ ;'\"\\*", "sub/- --force", "@/x@"];
    for (number, name) in files.iter().enumerate() {
        fs::create_dir_all(tree.join(name).parent().unwrap()).unwrap();
        fs::write(tree.join(name), Chance(number as u64).bytes(number * 2_000)).unwrap();
    }
    symlink("/etc", tree.join("link")).unwrap();
    let put = tank.run("put", &args!["--recursive", &tree, "a/b/"]).expect(exit::DONE);
    assert_eq!(put.results().len(), files.len());
    assert!(put.stderr.contains("link is not a file"), "{put}");
    tank.put("a/bc", b"beside");
    tank.run("get", &args!["-r", "a/b", &back, "--no-sync"]).expect(exit::DONE);
    for name in files {
        assert!(fs::read(back.join(name)).unwrap() == fs::read(tree.join(name)).unwrap(), "{name}");
    }
    assert_eq!(WalkDir::new(&back).into_iter().count(), files.len() + 4);
    // Existing files stay without --force.
    fs::write(back.join("plain"), "changed").unwrap();
    tank.run("get", &args!["-r", "a/b", &back]).expect(exit::ARGUMENTS);
    assert_eq!(fs::read(back.join("plain")).unwrap(), b"changed");
    tank.run("get", &args!["-r", "a/b", &back, "--force"]).expect(exit::DONE);
    assert_eq!(fs::read(back.join("plain")).unwrap(), b"");
    // Links out of the folder are not followed, neither to a folder nor to a file.
    let (outside, victim) = (tank.path("outside"), tank.path("victim"));
    fs::create_dir(&outside).unwrap();
    fs::write(&victim, "untouched").unwrap();
    fs::remove_dir_all(back.join("sub")).unwrap();
    fs::remove_file(back.join("plain")).unwrap();
    symlink(&outside, back.join("sub")).unwrap();
    symlink(&victim, back.join("plain")).unwrap();
    let get = tank.run("get", &args!["-r", "a/b", &back, "--force"]).expect(exit::ARGUMENTS);
    assert!(get.stderr.contains("sub exists and is no folder"), "{get}");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    assert_eq!(fs::read(&victim).unwrap(), b"untouched");
    fs::create_dir(tank.path("empty")).unwrap();
    let put = tank.run("put", &args!["-r", tank.path("empty"), "a"]).expect(exit::DONE);
    assert!(put.stderr.contains("empty has no files that can be stored"), "{put}");
    // Names that are not UTF-8 are refused; all others are stored.
    fs::write(tree.join(OsStr::from_bytes(b"caf\xe9")), "x").unwrap();
    let put = tank.run("put", &args!["-r", &tree, ""]).expect(exit::ARGUMENTS);
    assert_eq!(put.results().len(), files.len());
    assert!(put.stderr.contains("is not stored: names of objects must be UTF-8"), "{put}");
    let name = OsStr::from_bytes(b"\xff");
    let stat = run(args!["volume", "stat", tank.path("tank.toml"), name]).expect(exit::ARGUMENTS);
    assert!(stat.stderr.contains("must be UTF-8; got "), "{stat}");
    tank.run("rm", &args!["-r", "a"]).expect(exit::DONE);
    assert_eq!(tank.names().len(), files.len());
}

#[test]
fn lost_disks_are_told_and_filled_again() {
    let tank = Tank::new(6, "4+2");
    let content = Chance(3).bytes(1_000_000);
    tank.put("large", &content);
    let small = tank.put("small", b"small");
    let has_small = small["nodes"].as_array().unwrap().contains(&json!("node2"));
    let statuses = |code: i32| -> Vec<Value> {
        let verify = tank.run("verify", &args!["--only-bad"]).expect(code).results();
        verify.iter().filter(|line| line["type"] == "volume-verify").cloned().collect()
    };
    assert_eq!(statuses(exit::DONE).len(), 0);
    tank.put("third", b"");
    tank.run("rm", &args!["third"]).expect(exit::DONE);
    tank.lose(1);
    let bad = statuses(exit::REPAIRABLE);
    assert_eq!((&bad[0]["name"], &bad[0]["spare"]), (&json!("large"), &json!(1)));
    assert_eq!(bad[0]["missing"].as_array().unwrap().len(), 1);
    assert!(tank.get("large") == content);
    let repair = tank.run("repair", &[]).expect(exit::DONE).results();
    assert_eq!((&repair[0]["name"], &repair[0]["stored"]), (&json!("large"), &json!(1)));
    assert!(repair.iter().any(|line| line["type"] == "volume-collect"), "{repair:?}");
    assert_eq!(repair.last().unwrap()["repaired"], 1 + usize::from(has_small));
    assert_eq!(statuses(exit::DONE).len(), 0);
    // The folders of the nodes are folders of shards.
    let disks: Vec<OsString> = (0..6).map(|disk| tank.disk(disk).into()).collect();
    let verify = run([&args!["verify", "-r", "--json"], &disks[..]].concat());
    assert_eq!(verify.expect(exit::DONE).result()["status"], "intact");
    // Too much is lost.
    (0..3).for_each(|disk| tank.lose(disk));
    let bad = tank.run("verify", &args!["large"]).expect(exit::LOST).result();
    assert_eq!((&bad["status"], &bad["missing"].as_array().unwrap().len()), (&json!("lost"), &3));
    tank.run("get", &args!["large", "-"]).expect(exit::LOST);
    tank.run("repair", &args!["large"]).expect(exit::LOST);
    let status = tank.run("status", &[]).expect(exit::LOST).result();
    assert_eq!(status["lost"]["objects"], 1);
    tank.run("rm", &args!["large"]).expect(exit::DONE);
    tank.run("status", &[]).expect(exit::DONE);
}

#[test]
fn a_scrub_goes_on_where_it_was() {
    let tank = Tank::new(3, "2+1");
    for name in ["a", "b", "c"] {
        tank.put(name, &Chance(8).bytes(50_000));
    }
    let scrub = || tank.run("status", &[]).expect(exit::DONE).result()["scrub"].clone();
    assert_eq!(scrub(), json!({"pass": null, "last": null}));
    let names = |lines: &[Value]| -> Vec<String> {
        let objects = lines.iter().filter(|line| line["type"] == "volume-repair");
        objects.map(|line| line["name"].as_str().unwrap().to_owned()).collect()
    };
    let lines = tank.run("repair", &args!["--scrub"]).expect(exit::DONE).results();
    assert_eq!(names(&lines), ["a", "b", "c"]);
    let last = scrub()["last"].clone();
    assert_eq!((&last["names"], &last["left"]), (&json!(3), &json!(0)));

    // As if the next pass had been interrupted. Only two of the nodes have recorded it.
    let pass = json!({"began": 5, "after": "a", "done": 1, "names": 3, "left": 0});
    let cursor = json!({"saves": 100, "pass": pass, "last": last}).to_string();
    (0..2).for_each(|disk| fs::write(tank.disk(disk).join("scrub"), &cursor).unwrap());
    assert_eq!(scrub()["pass"], pass);
    let text = run(args!["volume", "status", tank.path("tank.toml")]).expect(exit::DONE).text();
    assert!(
        text.contains("scrub: 1 of 3 names done since 1970-01-01T00:00:05Z; the last"),
        "{text}"
    );
    let lines = tank.run("repair", &args!["--scrub"]).expect(exit::DONE).results();
    assert_eq!(names(&lines), ["b", "c"]);
    assert_eq!((&scrub()["pass"], &scrub()["last"]["began"]), (&Value::Null, &json!(5)));
    tank.run("repair", &args!["--scrub", "a"]).expect(exit::ARGUMENTS);
}

/// Any two of the three nodes may be lost, and a put needs all three.
#[test]
fn the_status_tells_that_puts_are_refused() {
    let tank = Tank::new(3, "1+2");
    tank.put("before", b"bytes");
    let status = tank.run("status", &[]).expect(exit::DONE).result();
    assert_eq!(status["lacking_for_puts"], 0);
    fs::rename(tank.disk(2), tank.path("away")).unwrap();
    let status = tank.run("status", &[]).expect(exit::REPAIRABLE).result();
    assert_eq!((&status["tolerance"], &status["lacking_for_puts"]), (&json!(2), &json!(1)));
    let text = run(args!["volume", "status", tank.path("tank.toml")]).expect(exit::REPAIRABLE);
    let expected = "; puts and removals are refused until 1 more can be used\n";
    assert!(text.text().contains(expected));
    assert!(tank.get("before") == b"bytes");
    for (command, arguments) in [("put", &args!["-", "new"][..]), ("rm", &args!["before"])] {
        run_with_input(tank.arguments(command, arguments), b"bytes").expect(exit::IO);
    }
}

#[test]
fn a_missing_disk_is_no_empty_one() {
    let tank = Tank::new(3, "2+1");
    let content = Chance(5).bytes(300_000);
    tank.put("before", &content);
    let away = tank.path("away");
    fs::rename(tank.disk(2), &away).unwrap();
    let status = tank.run("status", &[]).expect(exit::REPAIRABLE).result();
    assert!(status["nodes"][2]["problem"].as_str().unwrap().contains("no folder"), "{status}");
    assert_eq!((&status["nodes"][1]["problem"], &status["tolerance"]), (&Value::Null, &json!(1)));
    let free = |node: usize| status["nodes"][node]["free_bytes"].as_u64();
    assert!(free(1).is_some_and(|free| free > 0) && free(2).is_none(), "{status}");
    assert!(status["nodes"][1]["answer_seconds"].as_f64().is_some_and(|seconds| seconds > 0.0));
    assert!(tank.get("before") == content);
    assert!(!tank.disk(2).exists());
    fs::rename(&away, tank.disk(2)).unwrap();
    tank.run("status", &[]).expect(exit::DONE);
    tank.run("verify", &[]).expect(exit::DONE);
    // With two of three nodes gone, nothing is sure.
    for disk in [0, 1] {
        fs::rename(tank.disk(disk), tank.path(format!("away{disk}"))).unwrap();
    }
    for (command, arguments) in [
        ("status", &[][..]),
        ("ls", &[]),
        ("get", &args!["before", "-"]),
        ("verify", &args!["before"]),
        ("repair", &args!["before"]),
        ("rm", &args!["before"]),
    ] {
        tank.run(command, arguments).expect(exit::IO);
    }
    let put = run_with_input(tank.arguments("put", &args!["-", "new"]), &content);
    assert_eq!(put.expect(exit::IO).error()["kind"], "io");
}

#[test]
fn parity_is_added_later() {
    let tank = Tank::new(8, "bbdpg:k=4,m=1,m2=3");
    let content = Chance(6).bytes(1_000_000);
    tank.put("object", &content);
    let backlog =
        |code| tank.run("status", &[]).expect(code).result()["backlog"]["objects"].clone();
    assert_eq!(backlog(exit::DONE), 1);
    let promote = tank.run("promote", &args!["--all"]).expect(exit::DONE).result();
    assert_eq!((&promote["name"], &promote["owed"]), (&json!("object"), &json!(false)));
    assert_eq!(backlog(exit::DONE), 0);
    assert!(tank.run("promote", &args!["--all"]).expect(exit::DONE).results().is_empty());
    let verify = tank.run("verify", &args!["object", "--deep"]).expect(exit::DONE).result();
    assert_eq!((&verify["stage"], &verify["spare"]), (&json!(2), &json!(3)));
    assert!(tank.get("object") == content);
    Tank::new(2, "1+1").run("promote", &[]).expect(exit::ARGUMENTS);
}

/// After the code in the volume file is changed, `reencode` gives existing objects the new code.
#[test]
fn objects_get_another_code() {
    let tank = Tank::new(8, "4+2");
    let content = Chance(8).bytes(1_000_000);
    tank.put("old/object", &content);
    tank.put("old/small", b"small");
    let file = tank.path("tank.toml");
    let before = fs::read_to_string(&file).unwrap();
    let old = before.lines().find(|line| line.starts_with("code = ")).unwrap();
    fs::write(&file, before.replace(old, "code = \"rdp:k=4\"")).unwrap();
    assert_eq!(tank.run("reencode", &args!["old/"]).expect(exit::DONE).results().len(), 2);
    let again = tank.run("reencode", &args!["old/object"]).expect(exit::DONE).result();
    assert_eq!((&again["changed"], &again["owed"]), (&json!(false), &json!(false)));
    let stat = tank.run("stat", &args!["old/object"]).expect(exit::DONE).result();
    assert!(stat["code"].as_str().unwrap().starts_with("rdp:k=4"), "{stat}");
    tank.put("new", &content);
    let all = tank.run("reencode", &args!["--all"]).expect(exit::DONE).results();
    assert!(all.len() == 3 && all.iter().all(|object| object["changed"] == false), "{all:?}");
    assert!(tank.get("old/object") == content && tank.get("old/small") == b"small");
    tank.run("verify", &args!["--deep"]).expect(exit::DONE);
    tank.run("reencode", &args!["nothing"]).expect(exit::NOT_RECOGNISED);
    tank.run("reencode", &[]).expect(exit::ARGUMENTS);
}

/// Writes another digest to all manifests, as a faulty writer would.
fn forge_digest(tank: &Tank, digest: &str) {
    for path in tank.files().iter().filter(|path| path.extension() == Some(OsStr::new("put"))) {
        let text = fs::read_to_string(path).unwrap();
        let line = text.lines().next().unwrap().replace(digest, &"0".repeat(64));
        let check = blake3::hash(line.as_bytes()).to_hex();
        fs::write(path, format!("{line}\n{check}\n")).unwrap();
    }
}

#[test]
fn exit_codes_tell_what_is_wrong() {
    let tank = Tank::new(3, "2+1");
    let put = tank.put("object", &Chance(7).bytes(100_000));
    for (command, arguments, code) in [
        ("put", &args!["nowhere", "x"][..], exit::IO),
        ("put", &args![tank.folder.path(), "x"], exit::ARGUMENTS),
        ("put", &args!["-", "a//b"], exit::ARGUMENTS),
        ("put", &args!["-", "../a"], exit::ARGUMENTS),
        ("put", &args!["-", "a", "--resume"], exit::ARGUMENTS),
        ("put", &args![tank.path("tank.toml"), "object", "--if-absent"], exit::ARGUMENTS),
        ("put", &args![tank.path("tank.toml"), "new", "--if-absent"], exit::DONE),
        ("put", &args![tank.path("tank.toml"), "new", "--if-absent", "--resume"], exit::ARGUMENTS),
        ("put", &args!["-r", tank.folder.path(), "", "--if-absent"], exit::ARGUMENTS),
        ("get", &args!["nothing", "-"], exit::NOT_RECOGNISED),
        ("get", &args!["-r", "nothing", "-"], exit::NOT_RECOGNISED),
        ("cat", &args!["nothing"], exit::NOT_RECOGNISED),
        ("stat", &args!["nothing"], exit::NOT_RECOGNISED),
        ("rm", &args!["nothing"], exit::NOT_RECOGNISED),
        ("ls", &args!["nothing"], exit::NOT_RECOGNISED),
        ("verify", &args!["nothing"], exit::NOT_RECOGNISED),
        ("verify", &args!["nothing/"], exit::NOT_RECOGNISED),
        ("repair", &args!["nothing"], exit::NOT_RECOGNISED),
        ("promote", &args!["nothing"], exit::NOT_RECOGNISED),
        ("promote", &args!["object"], exit::ARGUMENTS),
        ("init", &args!["--code", "2+1", "--node", "a"], exit::ARGUMENTS),
        ("init", &[], exit::DONE),
    ] {
        let run = tank.run(command, arguments).expect(code);
        assert!(code == exit::DONE || run.error()["code"] == code, "{run}");
    }
    forge_digest(&tank, put["digest"].as_str().unwrap());
    let back = tank.path("back");
    tank.run("get", &args!["object", &back]).expect(exit::CHECK_FAILED);
    assert!(!back.exists());
    tank.run("get", &args!["object", "-"]).expect(exit::CHECK_FAILED);
}

#[test]
fn volume_files_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tank.toml");
    let ls = || run(args!["volume", "ls", &file, "--json"]);
    ls().expect(exit::IO);
    fs::write(&file, b"\xff\x00 no volume file").unwrap();
    ls().expect(exit::NOT_RECOGNISED);
    fs::write(&file, "id = 5\n").unwrap();
    assert!(ls().expect(exit::ARGUMENTS).error()["message"].as_str().unwrap().contains("`id`"));
    fs::remove_file(&file).unwrap();
    let init = |more: &[OsString]| run([&args!["volume", "init", &file, "--json"], more].concat());
    for disk in ["a", "b"] {
        fs::create_dir(folder.path().join(disk)).unwrap();
    }
    // If anything is wrong, nothing is written.
    let nodes = args!["--node", "x=a", "--node", "y=b"];
    for (more, code) in [
        (&args!["--code", "2+x"][..], exit::ARGUMENTS),
        (&args!["--code", "2+1", "--domain", "z=here"], exit::ARGUMENTS),
        (&args!["--code", "2+1", "--domain", "x=here", "--domain", "x=there"], exit::ARGUMENTS),
        (&args!["--code", "2+1", "--credentials", "z=OFFICE"], exit::ARGUMENTS),
        (&args!["--code", "2+1", "--node", "y=c"], exit::ARGUMENTS),
        (&args!["--code", "2+1", "--node", "z=c"], exit::IO),
        (&args!["--code", "2+1", "--node", "z=gopher://c"], exit::ARGUMENTS),
    ] {
        init(&[&nodes, more].concat()).expect(code);
        assert!(!file.exists() && !folder.path().join("a/ready").exists());
    }
    let domains = args!["--code", "2+1", "--domain", "x=here", "--domain", "y=here"];
    let made = init(&[&nodes[..], &domains].concat()).expect(exit::DONE).result();
    let warnings: Vec<&str> =
        made["warnings"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
    for warning in [
        "no node may be lost",
        "2 nodes for 3 shards",
        "1 domain for 3 shards",
        "domain here has 2",
    ] {
        assert!(warnings.iter().any(|it| it.contains(warning)), "{warning}: {warnings:?}");
    }
    // Nodes of one volume cannot join another.
    let other = folder.path().join("other.toml");
    let init = args!["volume", "init", &other, "--code", "1+1", "--node", "a", "--node", "b"];
    let refused = run(init).expect(exit::ARGUMENTS);
    assert!(refused.stderr.contains("another volume"), "{refused}");
}

#[test]
fn a_killed_put_leaves_nothing_visible() {
    let tank = Tank::new(3, "2+1");
    let content = Chance(8).bytes(8 << 20);
    let (mut child, stdin) = tank.begin_put("object", &content);
    child.kill().unwrap();
    child.wait().unwrap();
    drop(stdin);
    assert!(tank.names().is_empty());
    tank.run("get", &args!["object", "-"]).expect(exit::NOT_RECOGNISED);
    tank.run("verify", &[]).expect(exit::DONE);
    tank.put("object", &content[..100_000]);
    assert!(tank.get("object") == content[..100_000]);
}

#[test]
fn interrupted_puts_clean_up() {
    for (signal, code, kind) in [
        (Signal::INT, exit::INTERRUPTED, "interrupted"),
        (Signal::TERM, exit::TERMINATED, "terminated"),
    ] {
        let tank = Tank::new(3, "2+1");
        let (child, stdin) = tank.begin_put("object", &Chance(9).bytes(8 << 20));
        kill_process(Pid::from_child(&child), signal).unwrap();
        let start = Instant::now();
        let what = "volume put --json".to_owned();
        let run = Run::new(child.wait_with_output().unwrap(), what).expect(code);
        assert_eq!(run.error()["kind"], kind);
        assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
        drop(stdin);
        assert!(tank.names().is_empty());
        let files = tank.files();
        assert!(files.iter().all(|path| path.to_string_lossy().contains("running")), "{files:?}");
    }
}

/// Threads that wait because of a limited rate end, too.
#[test]
fn an_interrupted_get_says_so_alone() {
    let tank = Tank::new(3, "2+1");
    tank.put("object", &Chance(9).bytes(20 << 20));
    let (file, out) = (tank.path("tank.toml"), tank.path("out"));
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("\n[limits]\n"), "{text}");
    fs::write(&file, text.replace("\n[limits]\n", "\n[limits]\nrate = \"1 MB\"\n")).unwrap();
    let mut command = paritas(args!["volume", "get", &file, "object", &out]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    thread::sleep(Duration::from_millis(700));
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let ended = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(exit::TERMINATED), "{stderr}");
    assert!(!stderr.contains("panicked") && !out.exists(), "{stderr}");
}

/// Each read returns one of the contents, whole, however often the object is replaced during the
/// read.
#[test]
fn objects_can_be_read_while_they_are_replaced() {
    let tank = Tank::new(3, "2+1");
    for length in [1000, 20_000_000] {
        let contents = [1, 2].map(|seed| Chance(seed).bytes(length));
        tank.put("object", &contents[0]);
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let puts = contents.iter().cycle().take(300);
                for content in puts.take_while(|_| !is_over.load(Relaxed)) {
                    tank.put("object", content);
                    // A read starts again four times at most, so each version stays for a while.
                    thread::sleep(Duration::from_millis(200));
                }
            });
            for number in 0..15 {
                let file = tank.path(format!("{length}-{number}"));
                tank.run("get", &args!["object", &file]).expect(exit::DONE);
                assert!(contents.contains(&fs::read(&file).unwrap()));
            }
            is_over.store(true, Relaxed);
        });
    }
}

/// Bytes that were written to a pipe cannot be taken back, so a get to a pipe does not start again.
#[test]
fn a_pipe_gets_one_version() {
    let tank = Tank::new(3, "2+1");
    let contents = [1, 2].map(|seed| Chance(seed).bytes(40_000_000));
    tank.put("object", &contents[0]);
    let pipe = tank.path("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).unwrap();
    let (got, read) = thread::scope(|scope| {
        let getting = scope.spawn(|| tank.run("get", &args!["object", &pipe]));
        let mut source = fs::File::open(&pipe).unwrap();
        let mut read = vec![0];
        source.read_exact(&mut read).unwrap();
        tank.put("object", &contents[1]);
        source.read_to_end(&mut read).unwrap();
        (getting.join().unwrap(), read)
    });
    got.expect(exit::IO);
    assert!(read.len() < contents[0].len() && contents[0].starts_with(&read));
}

#[test]
fn every_command_has_an_example() {
    let help = run(["volume", "--help"]).expect(exit::DONE).text();
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands: Vec<&str> = commands
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .filter(|command| *command != "help")
        .collect();
    assert_eq!(commands.len(), 17, "{commands:?}");
    for command in commands {
        let help = run(["volume", command, "--help"]).expect(exit::DONE).text();
        assert!(help.contains(&format!("  paritas volume {command} tank.toml")), "{help}");
    }
}

/// Replaces numbers, which differ from run to run.
fn without_numbers(line: &str) -> String {
    let mut text = line.replace(|c: char| c.is_ascii_digit(), "#");
    while text.contains("##") || text.contains("#.#") {
        text = text.replace("##", "#").replace("#.#", "#");
    }
    text
}

/// The commands of the README's example print what it shows. A folder stands for the bucket.
#[test]
fn the_readme_is_right() {
    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
    let readme = fs::read_to_string(readme).unwrap();
    let section = readme.split_once("## Over disks, hosts and buckets").unwrap().1;
    let example = section.split("```").nth(1).unwrap().strip_prefix("console\n").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    ["disk1", "disk2", "disk3", "cloud"].iter().for_each(|it| fs::create_dir(place(it)).unwrap());
    fs::write(place("photos.tar"), Chance(10).bytes(4 << 20)).unwrap();
    let path = Path::new(env!("CARGO_BIN_EXE_paritas")).parent().unwrap();
    let path = format!("{}:{}", path.display(), std::env::var("PATH").unwrap());
    let steps: Vec<&str> = example.split("$ ").filter(|step| !step.is_empty()).collect();
    assert_eq!(steps.len(), 6, "{example}");
    for step in steps {
        let (command, shown) = step.split_once('\n').unwrap();
        let bucket = command.split('\'').nth(1).filter(|uri| uri.contains("s3://"));
        let command = bucket.map_or(command.to_owned(), |uri| command.replace(uri, "cloud=cloud"));
        let mut shell = Command::new("sh");
        shell.args(["-c", &command.replace("/disk", &place("disk"))]);
        let output = shell.env("PATH", &path).current_dir(folder.path()).output().unwrap();
        let expected = if command.contains(" verify ") { exit::REPAIRABLE } else { exit::DONE };
        assert_eq!(output.status.code(), Some(expected), "{command}: {output:?}");
        let printed = String::from_utf8(output.stdout).unwrap();
        // Indented lines, such as which shard a node lacked, depend on the object's id. Next steps
        // are printed to standard error.
        let is_outer = |line: &&str| !line.starts_with(' ') && !line.starts_with("next: ");
        let outer = |text: &str| -> Vec<String> {
            text.lines().filter(is_outer).map(without_numbers).collect()
        };
        assert_eq!(outer(&printed), outer(shown), "{command}");
    }
    assert_eq!(fs::read(place("photos.back")).unwrap(), fs::read(place("photos.tar")).unwrap());
}

#[test]
fn what_a_failed_node_misses_is_owed() {
    let tank = Tank::new(5, "2+2");
    let away = tank.path("away");
    fs::rename(tank.disk(2), &away).unwrap();
    // An object has shards on only four of the five nodes, so not every object has one on this
    // node.
    let owed = (0..8).filter(|number| {
        let put = tank.put(&format!("object{number}"), &Chance(*number).bytes(20_000));
        put["owed"].as_bool().unwrap()
    });
    let owed = owed.count();
    assert!(owed > 0);
    let status = tank.run("status", &[]).expect(exit::REPAIRABLE).result();
    assert_eq!(status["owed"]["objects"], owed);
    // An unmounted disk leaves an empty folder. It is not a node, and stays empty.
    fs::create_dir(tank.disk(2)).unwrap();
    let put = tank.put("object0", &Chance(0).bytes(20_000));
    assert!(!put["nodes"].as_array().unwrap().contains(&json!("node3")), "{put}");
    let stored = ["objects", "manifests"].map(|folder| tank.disk(2).join(folder).exists());
    assert_eq!(stored, [false, false]);
    fs::remove_dir_all(tank.disk(2)).unwrap();
    fs::rename(&away, tank.disk(2)).unwrap();
    tank.run("verify", &[]).expect(exit::REPAIRABLE);
    tank.run("repair", &[]).expect(exit::DONE);
    tank.run("verify", &args!["--deep"]).expect(exit::DONE);
    tank.run("status", &[]).expect(exit::DONE);
    (0..8).for_each(|it| assert!(tank.get(&format!("object{it}")) == Chance(it).bytes(20_000)));
    // What cannot be removed there is told, too.
    fs::rename(tank.disk(2), &away).unwrap();
    let names: Vec<OsString> = (0..8).map(|it| format!("object{it}").into()).collect();
    let removed = tank.run("rm", &names).expect(exit::DONE);
    assert_eq!(removed.results().len(), 8);
    for line in removed.results() {
        assert_eq!(line["owed"], true, "{line}");
        assert_eq!(
            (&line["type"], &line["flaws"][0]["node"]),
            (&json!("volume-rm"), &json!("node3"))
        );
    }
}

#[test]
fn a_lost_disk_is_replaced_by_an_empty_one() {
    let tank = Tank::new(4, "2+2");
    for object in ["a", "b"] {
        tank.put(object, &vec![7; 100_000]);
    }
    fs::remove_dir_all(tank.disk(1)).unwrap();
    fs::create_dir(tank.disk(1)).unwrap();
    let node = tank.made["nodes"][1]["name"].as_str().unwrap();
    let lines = tank.run("replace", &args![node]).expect(exit::DONE).results();
    assert_eq!(lines[0], json!({"type": "volume-replace", "node": node, "manifests": 2}));
    let stored = |line: &Value| line["type"] == "volume-repair" && line["stored"] == 1;
    assert_eq!(lines.iter().filter(|line| stored(line)).count(), 2);
    tank.run("verify", &args!["--deep"]).expect(exit::DONE);
    tank.run("replace", &args!["nobody"]).expect(exit::ARGUMENTS);
}

#[test]
fn an_empty_prefix_removes_nothing() {
    let tank = Tank::new(3, "2+1");
    tank.put("a", b"small");
    for prefix in ["", "/", "//"] {
        let refused = tank.run("rm", &args!["--recursive", prefix]).expect(exit::ARGUMENTS);
        assert!(refused.stderr.contains("would remove every object"), "{refused}");
    }
    assert_eq!(tank.names(), ["a"]);
    // Objects with both prefixes are removed once.
    (0..9).for_each(|number| _ = tank.put(&format!("b/c/{number}"), b"small"));
    let removed = tank.run("rm", &args!["--recursive", "b", "b/c"]).expect(exit::DONE);
    assert_eq!(removed.results().len(), 9);
    assert_eq!(tank.names(), ["a"]);
    tank.run("get", &args!["--recursive", "", "-"]).expect(exit::ARGUMENTS);
    tank.run("promote", &args!["typo/"]).expect(exit::NOT_RECOGNISED);
}

/// Verification says what repair will do, and repair counts the manifests that it writes.
#[test]
fn what_is_not_at_home_is_told() {
    let tank = Tank::new(3, "2+1");
    let shards: Vec<_> =
        tank.put("object", &Chance(4).bytes(50_000))["nodes"].as_array().unwrap().clone();
    assert_eq!(shards.len(), 3);
    fs::remove_dir_all(tank.disk(0).join("manifests")).unwrap();
    let verify = tank.run("verify", &args!["object"]).expect(exit::REPAIRABLE).result();
    assert_eq!(verify["flaws"][0]["message"], "has no manifest", "{verify}");
    let repair = run(args!["volume", "repair", tank.path("tank.toml"), "object"]);
    assert_eq!(repair.expect(exit::DONE).text(), "object: 1 manifest written\n");

    // All shards of one disk move to another.
    let objects = |disk: usize| tank.disk(disk).join("objects");
    for entry in WalkDir::new(objects(1)).into_iter().flatten() {
        let to = objects(2).join(entry.path().strip_prefix(objects(1)).unwrap());
        if entry.file_type().is_file() {
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::rename(entry.path(), to).unwrap();
        }
    }
    let verify = tank.run("verify", &args!["object"]).expect(exit::REPAIRABLE).result();
    assert_eq!((&verify["missing"], &verify["spare"]), (&json!([]), &json!(0)));
    let flaw = &verify["flaws"][0];
    assert_eq!((&flaw["node"], &flaw["message"]), (&json!("node3"), &json!("belongs on node2")));
    assert_eq!(tank.run("repair", &args!["object"]).expect(exit::DONE).result()["manifests"], 0);
}

#[test]
fn a_staged_code_says_what_may_be_lost_before_promotion() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tank.toml");
    let mut init =
        args!["volume", "init", &file, "--code", "bbdpg:k=3,m=1,m2=2,base=cauchy"].to_vec();
    for disk in ["a", "b", "c", "d", "e"] {
        fs::create_dir(folder.path().join(disk)).unwrap();
        init.extend(args!["--node", disk]);
    }
    let expected = "over 5 nodes, any 2 nodes may be lost once promoted, any 1 before\n";
    let text = run(init).expect(exit::DONE).text();
    assert!(text.ends_with(expected), "{text}");
    let put = args!["volume", "put", &file, "-", "object"];
    let text = run_with_input(put, &Chance(5).bytes(50_000)).expect(exit::DONE).text();
    assert!(text.ends_with(" stored on 4 nodes, stage 1 of 2\n"), "{text}");
    let text = run(args!["volume", "status", &file]).expect(exit::DONE).text();
    assert!(text.starts_with("5 nodes, any 2 nodes may be lost once promoted, any 1 before\n"));
}
