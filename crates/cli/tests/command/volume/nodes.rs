//! `paritas volume add` and `drain`: nodes join a volume and leave it.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::json;

use rustix::process::{Pid, Signal, kill_process};

use crate::common::tank::Tank;
use crate::common::{Chance, Run, exit, finish, not_run, paritas, run};
use crate::small_disk::SmallDisk;

/// Returns the number of shard files on a disk.
fn shards_on(tank: &Tank, disk: usize) -> usize {
    let of_disk = tank.disk(disk).join("objects");
    tank.files().iter().filter(|path| path.starts_with(&of_disk)).count()
}

#[test]
fn a_node_joins_and_another_one_leaves() {
    let mut tank = Tank::new(3, "2+1");
    tank.disks = 4;
    let content = |number| Chance(number).bytes(30_000);
    (0..6).for_each(|number| _ = tank.put(&format!("large/{number}"), &content(number)));
    (0..6).for_each(|number| _ = tank.put(&format!("small/{number}"), &content(number)[..100]));
    let text = || fs::read_to_string(tank.path("tank.toml")).unwrap();
    let before = text();
    // Three shards have no room on two nodes.
    let refused = tank.run("drain", &args!["node1"]).expect(exit::ARGUMENTS);
    assert!(refused.stderr.contains("2 nodes would have to hold 3 shards"), "{refused}");
    assert_eq!(text(), before);

    fs::create_dir(tank.disk(3)).unwrap();
    let add = args!["--node", "disk3", "--domain", "shelf", "--credentials", "OFFICE"];
    let added = tank.run("add", &add).expect(exit::DONE).result();
    let node = &added["nodes"][0];
    assert_eq!((&node["name"], &node["domain"]), (&json!("node4"), &json!("shelf")));
    assert_eq!((&node["abilities"]["list"], &added["tolerance"]), (&json!(true), &json!(1)));
    let table = text().strip_prefix(&before).expect("all else stays").to_owned();
    assert!(table.starts_with("\n[[node]]\nname = \"node4\"\nuri = \"disk3\"\n"), "{table}");
    assert!(table.contains("credentials = \"OFFICE\"\n"), "{table}");
    tank.run("repair", &[]).expect(exit::DONE);
    assert!(shards_on(&tank, 3) > 0);
    tank.run("status", &[]).expect(exit::DONE);
    for number in 0..6 {
        let object = format!("large/{number}");
        let got =
            tank.run("get", &args![&object, tank.path("moved"), "--force"]).expect(exit::DONE);
        assert_eq!(got.result()["flaws"], json!([]), "a moved shard is found: {got}");
    }

    let had = shards_on(&tank, 0);
    let drained = tank.run("drain", &args!["node1"]).expect(exit::DONE).results().pop().unwrap();
    let expected = json!({
        "type": "volume-drain", "node": "node1", "shards": 0, "moved": had, "removable": true,
        "removed": false,
    });
    assert_eq!((drained, shards_on(&tank, 0)), (expected, 0));
    tank.run("verify", &args!["--deep"]).expect(exit::DONE);
    let removed = tank.run("drain", &args!["node1", "--remove"]).expect(exit::DONE).results();
    assert_eq!(removed.last().unwrap()["removed"], true);
    assert!(!text().contains("name = \"node1\"") && text().contains("# drained"));
    // Without this disk, any one of the others may still be lost.
    fs::remove_dir_all(tank.disk(0)).unwrap();
    tank.run("verify", &args!["--deep"]).expect(exit::DONE);
    for lost in 1..4 {
        let away = tank.path("away");
        fs::rename(tank.disk(lost), &away).unwrap();
        (0..6).for_each(|number| assert!(tank.get(&format!("large/{number}")) == content(number)));
        (0..6).for_each(|it| assert!(tank.get(&format!("small/{it}")) == content(it)[..100]));
        fs::rename(&away, tank.disk(lost)).unwrap();
    }
}

#[test]
fn only_a_new_and_empty_place_joins() {
    let tank = Tank::new(3, "2+1");
    let before = fs::read_to_string(tank.path("tank.toml")).unwrap();
    let full = tank.path("full");
    fs::create_dir(&full).unwrap();
    fs::write(full.join("letter"), "somebody's").unwrap();
    let other = Tank::new(2, "1+1");
    for (more, code, why) in [
        (&args!["--node", &full][..], exit::ARGUMENTS, "must be empty; it has letter"),
        (&args!["--node", other.disk(0)], exit::ARGUMENTS, "another volume"),
        (&args!["--node", "disk1"], exit::ARGUMENTS, "at this place already: node2"),
        (&args!["--node", "node1=new"], exit::ARGUMENTS, "of this name already: node1"),
        (&args!["--node", "nowhere"], exit::IO, "nowhere"),
        (&args!["--node", "a", "--node", "b", "--domain", "x"], exit::ARGUMENTS, "NAME="),
        (&args!["--node", "a", "--domain", "y=x"], exit::ARGUMENTS, "no such node"),
        (&args!["--node", "a", "--node", "b", "--credentials", "x"], exit::ARGUMENTS, "NAME="),
        (&args!["--node", "a", "--credentials", "y=x"], exit::ARGUMENTS, "no such node"),
        (&[], exit::ARGUMENTS, "--node"),
    ] {
        let refused = tank.run("add", more).expect(code);
        assert!(refused.stderr.contains(why), "{why}: {refused}");
        assert_eq!(fs::read_to_string(tank.path("tank.toml")).unwrap(), before);
    }
    let unknown = tank.run("drain", &args!["nobody"]).expect(exit::ARGUMENTS);
    assert!(unknown.stderr.contains("it has node1, node2, node3"), "{unknown}");
    let unknown = tank.run("replace", &args!["nobody"]).expect(exit::ARGUMENTS);
    assert!(unknown.stderr.contains("it has node1, node2, node3"), "{unknown}");
    let status = run(args!["volume", "status", tank.path("tank.toml")]).expect(exit::DONE).text();
    assert!(status.contains("\n  node1: ready, "), "{status}");
}

/// Commands that work in the background obey the rate of the volume file, unless --rate gives
/// another.
#[test]
fn rates_are_obeyed() {
    let tank = Tank::new(3, "2+1");
    tank.put("object", &Chance(1).bytes(360_000));
    let text = fs::read_to_string(tank.path("tank.toml")).unwrap();
    let slow = text.replace("# background_rate = \"20 MB\"", "background_rate = \"100 kB\"");
    fs::write(tank.path("tank.toml"), slow).unwrap();
    let seconds = |more: &[OsString]| {
        tank.lose(1);
        let repair = tank.run("repair", &[&args!["object"], more].concat()).expect(exit::DONE);
        assert_eq!(repair.result()["stored"], 1);
        repair.result()["seconds"].as_f64().unwrap()
    };
    assert!(seconds(&[]) >= 0.4);
    assert!(seconds(&args!["--rate", "120kB"]) >= 0.2);
    seconds(&args!["--rate", "none"]);
    tank.run("repair", &args!["--rate", "0"]).expect(exit::ARGUMENTS);
}

#[test]
fn a_silent_node_is_drained_and_removed() {
    let tank = Tank::new(4, "2+1");
    (0..4).for_each(|number| _ = tank.put(&format!("{number}"), &Chance(number).bytes(20_000)));
    (4..8).for_each(|number| _ = tank.put(&format!("{number}"), &Chance(number).bytes(20)));
    fs::remove_dir_all(tank.disk(2)).unwrap();
    let drain = tank.run("drain", &args!["node3", "--remove"]).expect(exit::DONE).results();
    let drained = drain.last().unwrap();
    assert_eq!((&drained["shards"], &drained["removed"]), (&json!(null), &json!(true)));
    tank.run("verify", &args!["--deep"]).expect(exit::DONE);
    let text = run(args!["volume", "status", tank.path("tank.toml")]).expect(exit::DONE).text();
    assert!(text.starts_with("3 nodes, any 1 node may be lost"), "{text}");
}

/// An earlier disk may take the place of a node again, without the names that were removed since.
#[test]
fn an_earlier_disk_brings_back_no_names() {
    let tank = Tank::new(3, "2+1");
    for name in ["removed", "kept"] {
        tank.put(name, &Chance(5).bytes(30_000));
    }
    let [old, now] = [tank.path("old"), tank.disk(2)];
    fs::rename(&now, &old).unwrap();
    fs::remove_file(old.join("ready")).unwrap();
    // A day later, nothing is left of the removed name.
    let is_removed = |path: &PathBuf| path.to_string_lossy().contains("removed");
    tank.files().iter().filter(|path| is_removed(path)).for_each(|it| fs::remove_file(it).unwrap());
    fs::rename(&old, &now).unwrap();
    tank.run("replace", &args!["node3"]).expect(exit::DONE);
    let listed = tank.run("ls", &[]).expect(exit::DONE).results();
    assert_eq!(listed.iter().map(|line| &line["name"]).collect::<Vec<_>>(), ["kept"]);
    tank.run("verify", &args!["--deep"]).expect(exit::DONE);
}

/// A folder counts once, even under two names, and all nodes are examined before anything is
/// written.
#[test]
fn nodes_are_apart_and_empty_before_a_volume_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let (file, at) = (folder.path().join("tank.toml"), |name: &str| folder.path().join(name));
    ["a", "b", "full"].iter().for_each(|name| fs::create_dir(at(name)).unwrap());
    std::os::unix::fs::symlink("a", at("link")).unwrap();
    fs::write(at("full").join("letter"), "somebody's").unwrap();
    let init = |other: &str| {
        run(args!["volume", "init", &file, "--code", "1+1", "--node", "a", "--node", other])
    };
    for (other, why) in [
        ("a", "at the same place"),
        ("./a/", "at the same place"),
        ("b/../a", "at the same place"),
        ("link", "at the same place"),
        ("full", "must be empty; it has letter"),
        ("memory:", "kept in memory"),
    ] {
        let refused = init(other).expect(exit::ARGUMENTS);
        assert!(refused.stderr.contains(why), "{other}: {refused}");
        assert!(!file.exists() && fs::read_dir(at("a")).unwrap().count() == 0, "{other}");
    }
    // Leftovers of an interrupted probe, and the folder that a new file system has, are no
    // obstacle.
    let left = at("b").join("probe-00112233445566aa");
    fs::create_dir(&left).unwrap();
    fs::write(left.join("file"), "what a node stores").unwrap();
    fs::create_dir(at("b").join("lost+found")).unwrap();
    fs::write(at("b").join("lost+found/1"), "found").unwrap();
    init("b").expect(exit::DONE);
    assert!(!left.exists());
    let add = |uri: &str| run(args!["volume", "add", &file, "--node", uri]).expect(exit::ARGUMENTS);
    for other in ["link", "b/../a"] {
        assert!(add(other).stderr.contains("at this place already"), "{other}");
    }
}

/// A node that has the mark but accepts no files is not ready.
#[test]
fn status_tries_the_nodes() {
    let tank = Tank::new(3, "1+2");
    fs::write(tank.disk(1).join("running"), "in the way").unwrap();
    let status = run(args!["volume", "status", tank.path("tank.toml")]).expect(exit::REPAIRABLE);
    let text = status.text();
    let expected = "3 nodes, any 2 nodes may be lost; puts and removals are refused until 1 more \
                    can be used\n";
    assert!(text.starts_with(expected), "{text}");
    assert!(text.contains("\n  node2: cannot write running/"), "{text}");
    assert!(text.contains("\nknown to be owed (verify looks): 0 objects\n"), "{text}");
    assert!(status.stderr.contains("once files can be written on node2, "), "{status}");
}

/// If more nodes are gone than may be lost, the rest can still be listed and read.
#[test]
fn what_is_left_can_be_read_without_being_sure() {
    let tank = Tank::new(4, "2+2");
    let content = Chance(3).bytes(50_000);
    tank.put("a/large", &content);
    fs::rename(tank.disk(0), tank.path("away0")).unwrap();
    fs::rename(tank.disk(1), tank.path("away1")).unwrap();
    let text = fs::read_to_string(tank.path("tank.toml")).unwrap();
    fs::write(tank.path("tank.toml"), text.replace("losses = 2", "losses = 1")).unwrap();
    tank.run("ls", &[]).expect(exit::IO);
    let listed = tank.run("ls", &args!["--allow-stale"]).expect(exit::DONE);
    assert_eq!(listed.result()["name"], "a/large");
    let back = tank.path("back");
    tank.run("get", &args!["--recursive", "a", &back]).expect(exit::IO);
    tank.run("get", &args!["--recursive", "a", &back, "--allow-stale"]).expect(exit::DONE);
    assert!(fs::read(back.join("large")).unwrap() == content);
    let replace = tank.run("replace", &args!["node3"]);
    assert!(!replace.stderr.contains("volume replace"), "{replace}");
    // The missing shards may be on the nodes that do not answer.
    fs::rename(tank.disk(2), tank.path("away2")).unwrap();
    let silent = tank.run("get", &args!["a/large", "-", "--allow-stale"]).expect(exit::IO);
    assert!(silent.stderr.contains("a/large: from byte 0 on, "), "{silent}");
    assert!(silent.stderr.contains("Not all nodes answered: node1: "), "{silent}");
}

/// The other nodes serve, as they do if a server refuses the login.
#[test]
fn a_node_without_its_credentials_cannot_be_used() {
    let tank = Tank::new(3, "2+1");
    let content = Chance(1).bytes(30_000);
    tank.put("object", &content);
    let (file, text) = (tank.path("tank.toml"), fs::read_to_string(tank.path("tank.toml")));
    let away =
        "uri = \"s3://bucket/tank?endpoint=http://127.0.0.1:9\"\ncredentials = \"away.toml\"";
    fs::write(&file, text.unwrap().replace("uri = \"disk2\"", away)).unwrap();
    assert!(tank.get("object") == content);
    let status = run(args!["volume", "status", &file]).expect(exit::REPAIRABLE);
    assert!(status.text().contains("the credentials: "), "{status}");
    assert!(status.stderr.contains("give this user access to node3"), "{status}");
}

/// What the node holds is there, so it is not lost. The advice is the last that people read.
#[test]
fn a_missing_program_ssh_is_no_lost_node() {
    let tank = Tank::new(3, "2+1");
    let file = tank.path("tank.toml");
    let text = fs::read_to_string(&file).unwrap();
    let away = "uri = \"sftp://user@127.0.0.1/tank\"";
    fs::write(&file, text.replace("uri = \"disk1\"", away).replace("uri = \"disk2\"", away))
        .unwrap();
    let empty = tempfile::tempdir().unwrap();
    let mut ls = Command::new(env!("CARGO_BIN_EXE_paritas"));
    ls.args(["volume", "ls"]).arg(&file).env("PATH", empty.path());
    let ls = finish(ls).expect(exit::IO);
    assert!(ls.stderr.contains("the program ssh cannot be started: "), "{ls}");
    assert!(!ls.stderr.contains("volume replace"), "{ls}");
    let last = ls.stderr.lines().last().unwrap();
    assert!(last.starts_with("next: give this user access to node3, "), "{ls}");
}

/// If root puts objects now and then, the owner of the nodes can still use the volume.
#[test]
fn what_root_makes_belongs_to_the_owner_of_the_node() {
    use std::os::unix::fs::{MetadataExt, chown};
    if !rustix::process::geteuid().is_root() {
        return not_run("only root gives files away");
    }
    let tank = Tank::new(3, "2+1");
    let owner = (65_533, 65_532);
    for disk in 0..3 {
        for entry in walkdir::WalkDir::new(tank.disk(disk)) {
            chown(entry.unwrap().path(), Some(owner.0), Some(owner.1)).unwrap();
        }
    }
    tank.put("folder/large", &Chance(1).bytes(30_000));
    tank.put("folder/small", b"small");
    tank.run("rm", &args!["folder/large"]).expect(exit::DONE);
    for disk in 0..3 {
        for entry in walkdir::WalkDir::new(tank.disk(disk)) {
            let found = entry.as_ref().unwrap().metadata().unwrap();
            assert_eq!((found.uid(), found.gid()), owner, "{entry:?}");
        }
    }
}

/// Waits until a process has a handler for SIGTERM.
fn wait_until_signals_are_caught(process: u32) {
    for _ in 0..600 {
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:\t"));
        let caught = caught.and_then(|digits| u64::from_str_radix(digits, 16).ok());
        std::thread::sleep(std::time::Duration::from_millis(100));
        if caught.is_some_and(|caught| caught >> (Signal::TERM.as_raw() - 1) & 1 == 1) {
            return;
        }
    }
    panic!("no handler after a minute");
}

/// For a service, the signal is the usual end.
#[test]
fn keeping_a_volume_ends_well() {
    let tank = Tank::new(3, "2+1");
    for signal in [Signal::TERM, Signal::INT] {
        let mut command = paritas(args!["volume", "keep", tank.path("tank.toml")]);
        let child = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
        wait_until_signals_are_caught(child.id());
        kill_process(Pid::from_child(&child), signal).unwrap();
        Run::new(child.wait_with_output().unwrap(), "volume keep".to_owned()).expect(exit::DONE);
    }
}

/// Removing takes room for marks.
#[test]
fn a_full_volume_can_be_emptied() {
    let Some(place) = SmallDisk::new("12m") else {
        return not_run("volume: no small disk can be mounted here");
    };
    let (file, source) = (place.path().join("tank.toml"), place.path().join("source"));
    fs::write(&source, Chance(1).bytes(900_000)).unwrap();
    let mut init = args!["volume", "init", &file, "--code", "2+1"].to_vec();
    for disk in ["a", "b", "c"] {
        fs::create_dir(place.path().join(disk)).unwrap();
        init.extend(args!["--node", disk]);
    }
    run(init).expect(exit::DONE);
    let put = |number: usize| run(args!["volume", "put", &file, &source, format!("all/{number}")]);
    let full = (0..100).find(|&number| put(number).code != exit::DONE).unwrap();
    let refused = put(full).expect(exit::IO);
    assert!(full > 4 && refused.stderr.contains("kept for marks"), "{full}: {refused}");
    run(args!["volume", "rm", &file, "--recursive", "all/"]).expect(exit::DONE);
    let names = run(args!["volume", "ls", &file]).expect(exit::DONE);
    assert_eq!(names.text(), "");
    put(0).expect(exit::DONE);
}
