//! What people read: help, man pages, reports, progress, and names that could forge a line.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Stdio;
use std::thread;

use super::{Yard, fails, shards_of};
use crate::common::{self, Chance, Run, exit, finish, paritas, run, snapshot, wait};

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
            // Some examples write files.
            let folder = tempfile::tempdir().unwrap();
            for example in examples {
                let mut command = paritas(example.split_whitespace().skip(1));
                command.current_dir(folder.path());
                finish(command).expect(exit::DONE);
            }
        }
    }
}

/// Paragraphs fill the width of the terminal: a line ends only if the next word does not fit, or at
/// the end of a paragraph.
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
    let next = format!("\n  next: `paritas repair {}` writes anew", yard.shards().display());
    assert!(verify.contains(&next), "{verify}");
    let repair = run(args!["repair", yard.shards()]).expect(exit::DONE).text();
    assert!(repair.contains(": 1 shard written"), "{repair}");
    let encode = args!["encode", yard.path("object"), "--out", yard.shards()];
    let refusal = fails(&encode, exit::ARGUMENTS, "arguments");
    assert!(refusal.contains("6 shard files of that name"), "{refusal}");
    yard.lose(5);
    let refusal = fails(&encode, exit::ARGUMENTS, "arguments");
    assert!(refusal.contains("1 shard file of that name"), "{refusal}");
}

#[test]
fn one_byte_is_no_bytes() {
    let yard = Yard::new(1);
    let code = ["--code", "rdp:k=1", "--packet", "1"];
    run(args!["encode", yard.path("object"), "--out", yard.shards(); &code]).expect(exit::DONE);
    let info = run(args!["info", yard.shards()]).expect(exit::DONE).text();
    assert!(info.contains("length  1 byte\n") && info.contains(", packets of 1 byte, "), "{info}");
    let schedule = run(["schedule", "xcode:n=3"]).expect(exit::DONE).text();
    let counts = "0 XORs + 6 copies = 6 in 6 operations with 0 temporaries";
    assert!(schedule.contains(counts), "{schedule}");
}

/// `bench` has no --weight; what it says of --cost is shared with `schedule`, which has one.
#[test]
fn bench_mentions_no_weight() {
    let help = |command| run([command, "--help"]).expect(exit::DONE).text();
    assert!(!help("bench").contains("--weight") && help("schedule").contains("--weight"));
}

/// Returns the commands that the help lists, group by group.
fn commands(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| !line.starts_with("Usage:"));
    let listed = lines.take_while(|line| *line != "Options:").filter_map(|l| l.strip_prefix("  "));
    listed.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// Returns the examples that call a command, without the remarks beside them.
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

/// A page that cannot be written is named, and no page changes.
#[test]
fn man_pages_are_whole_or_as_they_were() {
    let yard = tempfile::tempdir().unwrap();
    let (new, old) = (yard.path().join("new"), yard.path().join("old"));
    fs::create_dir(&old).unwrap();
    fs::write(old.join("paritas.1"), "an older page").unwrap();
    let before = snapshot(&old);
    for folder in [&new, &old] {
        let limited = common::paritas_after("ulimit -f 1", &args!["man", folder]);
        let run = finish(limited).expect(exit::IO);
        assert!(run.stderr.contains("/paritas-") && run.stderr.contains(".1: "), "{run}");
    }
    assert!(!new.exists());
    assert_eq!(snapshot(&old), before);
    run(args!["man", &old]).expect(exit::DONE);
    assert_ne!(fs::read(old.join("paritas.1")).unwrap(), b"an older page");
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
    // Without --name, the file's own name is used, here of a file in the current folder.
    let odd = OsStr::from_bytes(b"-\xff-");
    fs::write(yard.path(odd), "odd").unwrap();
    let mut command = paritas(args!["encode", "--out", "odd shards", "--", odd]);
    command.current_dir(yard.folder.path());
    finish(command).expect(exit::DONE);
    assert_eq!(common::decode(&yard.path("odd shards")), b"odd");
}

/// Checks that nothing in a name ends a line, or reaches the terminal as a control sequence.
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
    run(args!["man", "/dev/full"]).expect(exit::ARGUMENTS);
    // The command has still done its work.
    assert_eq!(fs::read(&out).unwrap(), yard.content);
    // A report on standard error is output, too.
    let mut command = paritas(args!["decode", &shards, "--out", "-"]);
    command.stderr(full());
    assert_eq!(finish(command).expect(exit::IO).stdout, yard.content);
    // If nothing is printed, nothing fails.
    let mut command = paritas(args!["verify", &shards, "--quiet"]);
    command.stdout(full());
    finish(command).expect(exit::DONE);
}

/// If the reader of the output goes away early, the command does not fail.
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

/// Progress is reported in JSON while a slow source is read.
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
