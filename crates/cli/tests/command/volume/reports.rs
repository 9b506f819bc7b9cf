//! What `paritas volume` reports: every message once, and right; progress by bytes; and the end by
//! Ctrl-C.

use std::collections::BTreeSet;
use std::fs;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::common::tank::Tank;
use crate::common::{self, Chance, Run, exit, paritas, run};

#[test]
fn what_several_requests_meet_is_told_once() {
    let tank = Tank::new(4, "2+2");
    tank.put("object", &Chance(1).bytes(50_000));
    fs::rename(tank.disk(2), tank.path("away")).unwrap();
    let verify = tank.run("verify", &args!["object"]).expect(exit::REPAIRABLE).result();
    let flaws = verify["flaws"].as_array().unwrap();
    let told: BTreeSet<String> = flaws
        .iter()
        .map(|flaw| format!("{}{}{}", flaw["node"], flaw["shard"], flaw["message"]))
        .collect();
    assert_eq!(told.len(), flaws.len(), "{verify}");
    assert!(flaws.iter().any(|flaw| flaw["count"].as_u64() > Some(1)), "{verify}");
    let text = run(args!["volume", "verify", tank.path("tank.toml")]).expect(exit::REPAIRABLE);
    assert!(text.text().contains(" times)"), "{text}");
}

#[test]
fn a_damaged_shard_is_not_called_missing() {
    let tank = Tank::new(3, "2+1");
    tank.put("object", &Chance(2).bytes(50_000));
    let shard =
        |of: &str| tank.files().into_iter().find(|path| path.to_string_lossy().contains(of));
    let damaged = shard(".1of3.").unwrap();
    let mut bytes = fs::read(&damaged).unwrap();
    bytes[20_000] ^= 1;
    fs::write(&damaged, bytes).unwrap();
    let verify = || run(args!["volume", "verify", tank.path("tank.toml"), "--deep"]);
    let text = verify().expect(exit::REPAIRABLE).text();
    assert!(text.contains("shard 1: ") && text.contains("fails its checksum"), "{text}");
    assert!(!text.contains("missing"), "{text}");
    fs::remove_file(damaged).unwrap();
    let text = verify().expect(exit::REPAIRABLE).text();
    assert!(text.contains("  shard 1 is missing"), "{text}");
}

/// The object has many segments, and reading them takes some seconds at this rate. On a busy
/// machine the last line may already report all bytes as read.
#[test]
fn progress_moves_within_an_object() {
    let tank = Tank::new(3, "2+1");
    let text = fs::read_to_string(tank.path("tank.toml")).unwrap();
    let text = text.replace("# block = \"256 KiB\"", "block = \"8 KiB\"");
    fs::write(tank.path("tank.toml"), text).unwrap();
    tank.put("object", &Chance(3).bytes(360_000));
    tank.lose(1);
    let repair = tank.run("repair", &args!["object", "--rate", "60kB"]).expect(exit::DONE);
    let lines = common::json_lines(&repair.text()).unwrap();
    let progress: Vec<&Value> = lines.iter().filter(|line| line["type"] == "progress").collect();
    let bytes: Vec<u64> = progress.iter().map(|line| line["bytes"].as_u64().unwrap()).collect();
    assert!(bytes.iter().any(|&bytes| 0 < bytes && bytes < 360_000), "{repair}");
    assert!(bytes.is_sorted() && bytes.iter().all(|&bytes| bytes <= 360_000), "{repair}");
    for line in progress {
        assert!(line["total"] == 360_000, "{line}");
        let is_within = line["bytes"] != line["total"];
        assert_eq!(line["eta_s"].as_f64().unwrap() > 0.0, is_within, "{line}");
    }
}

#[test]
fn an_interrupt_ends_a_get_into_a_pipe_that_nobody_reads() {
    let tank = Tank::new(3, "2+1");
    tank.put("object", &Chance(4).bytes(4 << 20));
    let mut command = paritas(tank.arguments("get", &args!["object", "-"]));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let stdout = child.stdout.take().unwrap();
    // The pipe is full by then, or the interrupt comes while the program starts.
    thread::sleep(Duration::from_millis(300));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let start = Instant::now();
    let run = Run::new(child.wait_with_output().unwrap(), "volume get --json".to_owned());
    assert_eq!(run.expect(exit::INTERRUPTED).error()["kind"], "interrupted");
    assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
    drop(stdout);
}

#[test]
fn files_of_all_names_come_back_and_are_listed_exactly() {
    let tank = Tank::new(3, "2+1");
    let names = [
        "Протокол заседания комиссии по закупкам 2025.docx".to_owned(),
        "blank ".to_owned(),
        "new\nline".to_owned(),
        "x".repeat(255),
    ];
    let tree = tank.path("tree");
    fs::create_dir(&tree).unwrap();
    names.iter().for_each(|name| fs::write(tree.join(name), name.repeat(99)).unwrap());
    tank.run("put", &args!["--recursive", &tree, "p"]).expect(exit::DONE);
    let back = tank.path("back");
    tank.run("get", &args!["--recursive", "p", &back]).expect(exit::DONE);
    for name in &names {
        assert_eq!(fs::read_to_string(back.join(name)).unwrap(), name.repeat(99));
    }
    let mut exact: Vec<String> = names.iter().map(|name| format!("p/{name}")).collect();
    exact.sort();
    assert_eq!(tank.names(), exact);
    let list = |more: &[_]| {
        run([&args!["volume", "ls", tank.path("tank.toml")], more].concat()).expect(exit::DONE)
    };
    assert_eq!(list(&args!["-0"]).stdout, (exact.join("\0") + "\0").into_bytes());
    let lines = exact.join("\x01").replace('\n', "\\n").replace('\x01', "\n") + "\n";
    assert_eq!(list(&[]).stdout, lines.into_bytes());
}

#[test]
fn every_verdict_names_the_next_command() {
    let tank = Tank::new(4, "2+1");
    let file = tank.path("file");
    fs::write(&file, Chance(3).bytes(50_000)).unwrap();
    let volume = tank.path("tank.toml");
    let told = |command: &str, more: &[_]| {
        let run = run([&args!["volume", command, &volume], more].concat());
        run.text() + &run.stderr
    };
    let out = tank.path("out");
    let all: [(&str, &[_]); 6] = [
        ("put", &args![&file, "object"]),
        ("verify", &[]),
        ("status", &[]),
        ("ls", &[]),
        ("get", &args!["object", &out, "--force"]),
        ("stat", &args!["object"]),
    ];
    for (command, more) in all {
        assert!(!told(command, more).contains("next:"), "{command}: nothing is wrong");
    }
    let exists = told("get", &args!["object", &out]);
    assert!(exists.contains("--force replaces it"), "{exists}");
    // A lost node, and an empty one in its place.
    let replace = format!("if it is lost, `paritas volume replace {} node2`", volume.display());
    fs::rename(tank.disk(1), tank.path("away")).unwrap();
    for (command, more) in all {
        let told = told(command, more);
        assert!(told.matches(&replace).count() == 1, "{command}: {told}");
    }
    fs::create_dir(tank.disk(1)).unwrap();
    for (command, more) in all {
        assert!(told(command, more).contains(&replace), "{command}");
    }
    assert!(told("verify", &args!["--only-bad"]).contains(&replace));
    run(args!["volume", "replace", &volume, "node2"]).expect(exit::DONE);
    // A damaged shard, and a missing one.
    let repair = format!("`paritas volume repair {}`", volume.display());
    for damage in [|path: &_| fs::write(path, "damaged"), |path: &_| fs::remove_file(path)] {
        let shard = tank.files().into_iter().find(|path| path.ends_with("object.0of3.paritas"));
        damage(&shard.unwrap()).unwrap();
        assert!(told("verify", &[]).contains(&repair));
        // `get` may have read only the other shards, because they came sooner.
        let get = told("get", &args!["object", &out, "--force"]);
        let verify = format!("`paritas volume verify {} --deep object`", volume.display());
        assert_eq!(get.contains(&verify), get.contains("shard 0:"), "{get}");
        run(args!["volume", "repair", &volume]).expect(exit::DONE);
        assert!(!told("verify", &[]).contains("next:"));
    }
}
