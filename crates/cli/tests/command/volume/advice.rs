//! What `paritas volume` advises to do next, and what it refuses with a reason.

use super::*;
use crate::common::{finish, not_run};

/// Returns what a command tells people.
fn told(tank: &Tank, command: &str, more: &[OsString]) -> String {
    let run = run([&args!["volume", command, tank.path("tank.toml")], more].concat());
    run.text() + &run.stderr
}

/// Changes a byte in the middle of a shard.
fn damage(tank: &Tank, shard: &str) {
    let file = tank.files().into_iter().find(|path| path.ends_with(shard)).unwrap();
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(file, bytes).unwrap();
}

#[test]
fn damage_that_only_a_deep_look_finds_is_repaired_by_the_advised_command() {
    let tank = Tank::new(3, "2+1");
    tank.put("object", &Chance(1).bytes(100_000));
    damage(&tank, "object.0of3.paritas");
    let repair = format!("`paritas volume repair {} --deep`", tank.path("tank.toml").display());
    tank.run("verify", &args!["object"]).expect(exit::DONE);
    let verify = tank.run("verify", &args!["object", "--deep"]).expect(exit::REPAIRABLE).result();
    assert_eq!((&verify["missing"], &verify["flaws"][0]["shard"]), (&json!([0]), &json!(0)));
    let verify = told(&tank, "verify", &args!["--deep"]);
    assert!(verify.contains(&repair), "{verify}");
    run(args!["volume", "repair", tank.path("tank.toml"), "--deep"]).expect(exit::DONE);
    tank.run("verify", &args!["--deep"]).expect(exit::DONE);
}

/// A name or prefix without objects does not keep others from their turn, and each object has one.
#[test]
fn every_object_that_is_named_has_its_turn_once() {
    let tank = Tank::new(3, "2+1");
    for name in ["a", "x/b"] {
        tank.put(name, &Chance(1).bytes(100_000));
    }
    let shards: Vec<PathBuf> = tank
        .files()
        .into_iter()
        .filter(|path| path.to_string_lossy().contains(".0of3.paritas"))
        .collect();
    assert_eq!(shards.len(), 2);
    shards.iter().for_each(|shard| fs::remove_file(shard).unwrap());
    let names = args!["none/", "a", "../no", "a", "x/", "x/b"];
    let verify = tank.run("verify", &names).expect(exit::NOT_RECOGNISED);
    let lines = verify.results();
    let verified = lines.iter().filter(|line| line["type"] == "volume-verify");
    let verified: Vec<&Value> = verified.map(|line| &line["name"]).collect();
    assert_eq!(verified, ["a", "x/b"], "{verify}");
    let repair = tank.run("repair", &names).expect(exit::NOT_RECOGNISED);
    let lines = repair.results();
    let repaired = lines.iter().filter(|line| line["type"] == "volume-repair");
    let stored: Vec<&Value> = repaired.map(|line| &line["stored"]).collect();
    assert_eq!(stored, [1, 1], "{repair}");
    tank.run("verify", &[]).expect(exit::DONE);
}

/// The advised command can be run as it is printed, whatever the name of the object.
#[test]
fn advice_about_odd_names_can_be_followed() {
    let tank = Tank::new(3, "2+1");
    let bytes = Chance(1).bytes(100_000);
    let odd = ["-dash", "it's", "a b\n"];
    for name in odd {
        let put = args!["volume", "put", tank.path("tank.toml"), "--", "-", name];
        run_with_input(put, &bytes).expect(exit::DONE);
    }
    tank.files()
        .iter()
        .filter(|path| path.to_string_lossy().contains(".0of3.paritas"))
        .for_each(|shard| fs::write(shard, "damaged").unwrap());
    for name in odd {
        // Sometimes the other shards come sooner, and the damaged one is not missed.
        let advised = (0..50).find_map(|_| {
            let got = run(args!["volume", "get", tank.path("tank.toml"), "--", name, "-"]);
            let told = got.expect(exit::DONE).stderr;
            let (_, advised) = told.split_once("next: `paritas ")?;
            Some(advised.split_once('`').unwrap().0.to_owned())
        });
        let advised = format!("{} {}", env!("CARGO_BIN_EXE_paritas"), advised.unwrap());
        let mut shell = Command::new("bash");
        shell.args(["-c", &advised]);
        finish(shell).expect(exit::REPAIRABLE);
    }
}

#[test]
fn marks_that_cannot_be_read_are_found_by_a_deep_look_at_everything() {
    let tank = Tank::new(3, "2+1");
    tank.put("object", &Chance(1).bytes(100_000));
    tank.run("rm", &args!["object"]).expect(exit::DONE);
    tank.run("verify", &args!["--deep"]).expect(exit::DONE);
    let marks: Vec<PathBuf> = tank
        .files()
        .into_iter()
        .filter(|path| path.extension() == Some(OsStr::new("removed")))
        .collect();
    fs::write(&marks[0], "").unwrap();
    tank.run("verify", &args!["--deep"]).expect(exit::REPAIRABLE);
    run(args!["volume", "repair", tank.path("tank.toml"), "--deep"]).expect(exit::DONE);
    tank.run("verify", &args!["--deep"]).expect(exit::DONE);
    marks.iter().for_each(|mark| fs::write(mark, "").unwrap());
    let unreadable = tank.run("verify", &args!["--deep"]);
    assert_ne!(unreadable.code, exit::DONE, "{unreadable}");
    assert!(unreadable.stderr.contains("object: every copy of the mark"), "{unreadable}");
}

#[test]
fn exchanged_and_locked_nodes_are_neither_repaired_nor_replaced() {
    let tank = Tank::new(3, "2+1");
    tank.put("object", &Chance(1).bytes(100_000));
    let away = tank.path("away");
    fs::rename(tank.disk(0), &away).unwrap();
    fs::rename(tank.disk(1), tank.disk(0)).unwrap();
    fs::rename(&away, tank.disk(1)).unwrap();
    let status = told(&tank, "status", &[]);
    for node in ["node1", "node2"] {
        assert!(status.contains(&format!("the place of {node} is not that node")), "{status}");
    }
    assert!(!status.contains("volume replace") && !status.contains("volume repair"), "{status}");
    fs::rename(tank.disk(0), &away).unwrap();
    fs::rename(tank.disk(1), tank.disk(0)).unwrap();
    fs::rename(&away, tank.disk(1)).unwrap();
    if rustix::process::geteuid().is_root() {
        return not_run("advice: root may read everything, so no access is missing");
    }
    let ready = tank.disk(2).join("ready");
    fs::set_permissions(&ready, fs::Permissions::from_mode(0o000)).unwrap();
    let verify = told(&tank, "verify", &[]);
    assert!(verify.contains("give this user access to node3,"), "{verify}");
    assert!(!verify.contains("volume replace"), "{verify}");
}

/// No node is to blame, so none is, and nothing is called owed or lost.
#[test]
fn a_repair_without_memory_tells_so() {
    let tank = Tank::new(3, "2+1");
    tank.put("object", &Chance(1).bytes(100_000));
    let shard = tank.files().into_iter().find(|path| path.ends_with("object.0of3.paritas"));
    fs::remove_file(shard.unwrap()).unwrap();
    let file = tank.path("tank.toml");
    let text = fs::read_to_string(&file).unwrap();
    let little = text.replace("# memory = \"256 MiB\"", "memory = \"20 KiB\"");
    assert_ne!(little, text);
    fs::write(&file, little).unwrap();
    let repair = tank.run("repair", &[]).expect(exit::MEMORY);
    assert!(repair.stderr.contains("raise it in the volume file"), "{repair}");
    assert!(!repair.text().contains("owed"), "{repair}");
    fs::write(&file, text).unwrap();
    tank.run("repair", &[]).expect(exit::DONE);
}

#[test]
fn closed_output_is_refused() {
    let tank = Tank::new(3, "2+1");
    tank.put("object", b"bytes");
    let get = tank.arguments("get", &args!["object", "-"]);
    for arguments in [get, tank.arguments("cat", &args!["object"])] {
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$@\" >&-", "sh", env!("CARGO_BIN_EXE_paritas")]);
        command.args(&arguments);
        let closed = finish(command).expect(exit::IO);
        assert!(closed.stderr.contains("writing to standard output: it is closed"), "{closed}");
    }
}

/// With a mark, a node that lost its files would vouch for old versions.
#[test]
fn a_node_that_lost_its_files_is_not_only_marked() {
    let tank = Tank::new(3, "2+1");
    // As after an interrupted `init`: the nodes are empty, and one lacks its mark.
    let empty = |disk: &Path| {
        fs::remove_dir_all(disk).unwrap();
        fs::create_dir(disk).unwrap();
    };
    empty(&tank.disk(1));
    tank.run("init", &[]).expect(exit::DONE);
    tank.put("object", b"bytes");
    empty(&tank.disk(1));
    let init = tank.run("init", &[]).expect(exit::ARGUMENTS);
    assert!(init.stderr.contains("it must be replaced, and not only marked"), "{init}");
    assert!(init.stderr.contains("volume status"), "{init}");
    assert!(!tank.disk(1).join("ready").exists());
    tank.run("replace", &args!["node2"]).expect(exit::DONE);
    tank.run("init", &[]).expect(exit::DONE);
}

#[test]
fn an_object_is_written_into_a_folder_under_the_last_part_of_its_name() {
    let tank = Tank::new(3, "2+1");
    tank.put("a/b/object", b"bytes");
    fs::create_dir(tank.path("out")).unwrap();
    tank.run("get", &args!["a/b/object", tank.path("out")]).expect(exit::DONE);
    assert_eq!(fs::read(tank.path("out/object")).unwrap(), b"bytes");
    tank.run("get", &args!["a/b/object", tank.path("out")]).expect(exit::ARGUMENTS);
}

#[test]
fn an_object_that_is_also_a_folder_is_explained() {
    let tank = Tank::new(3, "2+1");
    tank.put("x/foo", b"one");
    tank.put("x/foo/bar", b"two");
    let get = tank.run("get", &args!["-r", "x", tank.path("out")]).expect(exit::ARGUMENTS);
    assert!(get.stderr.contains("a path is either a file or a folder"), "{get}");
    assert!(get.stderr.contains("x/foo/bar") && get.stderr.contains("volume get"), "{get}");
}

#[test]
fn nodes_inside_each_other_and_the_volume_file_inside_a_node_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    ["a", "b", "a/sub"].iter().for_each(|name| fs::create_dir(path(name)).unwrap());
    let init = |file: &str, nodes: [&str; 2]| {
        let [one, two] = nodes.map(path);
        let file = path(file);
        let init = args!["volume", "init", &file, "--code", "1+1", "--node", one, "--node", two];
        let refused = run(init);
        assert_ne!(refused.code, exit::DONE, "{refused}");
        assert!(!file.exists(), "{refused}");
        refused.stderr
    };
    let nested = init("t.toml", ["a", "a/sub"]);
    assert!(nested.contains("one inside the other"), "{nested}");
    let inside = init("b/t.toml", ["a/sub", "b"]);
    assert!(inside.contains("inside the folder of node node2"), "{inside}");
}

/// A long name stands in the manifests alone.
#[test]
fn an_object_that_is_lost_with_its_name_is_counted() {
    let tank = Tank::new(3, "2+1");
    tank.put(&"я".repeat(120), b"small");
    manifests_of(&tank).for_each(|file| fs::write(file, "damaged").unwrap());
    for (command, more) in
        [("verify", ""), ("verify", "--deep"), ("repair", ""), ("repair", "--scrub")]
    {
        let more: Vec<OsString> =
            [more].into_iter().filter(|it| !it.is_empty()).map(Into::into).collect();
        let told = tank.run(command, &more).expect(exit::LOST);
        assert!(told.stderr.contains("cannot be told"), "{command} {more:?}: {told}");
    }
    // Also among the objects of a folder, where another one is whole.
    let tank = Tank::new(3, "2+1");
    tank.put(&format!("p/{}", "я".repeat(120)), b"small");
    manifests_of(&tank).for_each(|file| fs::write(file, "damaged").unwrap());
    let back = tank.path("back");
    for is_alone in [true, false] {
        for (command, more) in [
            ("verify", args!["p/"].to_vec()),
            ("repair", args!["p/"].to_vec()),
            ("get", args!["--recursive", "p", &back].to_vec()),
        ] {
            let told = tank.run(command, &more).expect(exit::LOST);
            assert!(told.stderr.contains("cannot be told"), "{command}: {told}");
        }
        if is_alone {
            tank.put("p/whole", b"whole");
        }
    }
    assert_eq!(fs::read(back.join("whole")).unwrap(), b"whole");
}

/// The manifests of all nodes.
fn manifests_of(tank: &Tank) -> impl Iterator<Item = PathBuf> {
    tank.files().into_iter().filter(|path| path.to_str().unwrap().contains("manifests/"))
}
