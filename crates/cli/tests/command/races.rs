//! Processes that work on the same object at the same time: each ends with 0, or with 6 and a
//! message that says "another process"; nothing is lost, and nothing is left behind. These tests
//! run real processes with their locks; `crates/shards/tests/testsuite/races.rs` runs each job in
//! the middle of each other one.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use tempfile::TempDir;

use crate::common::{self, Chance, Run, exit, is_leftover, names, paritas, run};

const ROUNDS: usize = 10;

/// A folder for shards, and files of different contents.
struct Yard {
    folder: TempDir,
    contents: Vec<Vec<u8>>,
}

impl Yard {
    fn new(length: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let contents: Vec<Vec<u8>> =
            (0..3).map(|seed| Chance(seed).bytes(length + seed as usize)).collect();
        for (number, content) in contents.iter().enumerate() {
            fs::write(folder.path().join(number.to_string()), content).unwrap();
        }
        Self { folder, contents }
    }

    fn shards(&self) -> PathBuf {
        self.folder.path().join("shards")
    }

    fn encode(&self, number: usize, code: &str, force: bool) -> Vec<OsString> {
        let file = self.folder.path().join(number.to_string());
        let mut arguments =
            args!["encode", file, "--name", "object", "--out", self.shards(), "--code", code]
                .to_vec();
        arguments.extend(["--no-sync", "--json"].map(OsString::from));
        arguments.extend(force.then(|| OsString::from("--force")));
        arguments
    }

    fn command(&self, command: &str) -> Vec<OsString> {
        match command {
            "verify" => args!["verify", self.shards(), "--json"].to_vec(),
            _ => args![command, self.shards(), "--no-sync", "--json"].to_vec(),
        }
    }

    /// Checks that there is exactly one object, that it is intact, and that nothing is left over.
    /// Returns its content.
    fn content(&self) -> Vec<u8> {
        run(self.command("verify")).expect(exit::DONE).result();
        let names = names(&self.shards());
        assert!(!names.iter().any(|name| is_leftover(name)), "{names:?}");
        common::decode(&self.shards())
    }
}

/// Runs commands at the same time.
fn together(commands: &[Vec<OsString>]) -> Vec<Run> {
    let start = |arguments: &Vec<OsString>| {
        let mut command = paritas(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let what = format!("{command:?}");
        (command.spawn().unwrap(), what)
    };
    let running: Vec<_> = commands.iter().map(start).collect();
    running
        .into_iter()
        .map(|(child, what)| Run::new(child.wait_with_output().unwrap(), what))
        .collect()
}

/// Returns whether a command did its work. If it did not, it must say that another process is in
/// the way.
fn has_done(run: &Run) -> bool {
    if run.code != exit::DONE {
        assert_eq!(run.code, exit::IO, "{run}");
        let told = format!("{}{}", run.stderr, run.text());
        assert!(told.contains("another process"), "{run}");
    }
    run.code == exit::DONE
}

/// A repair does not name its files while another process is naming its own.
#[test]
fn names_are_given_in_turn() {
    let yard = Yard::new(1000);
    run(yard.encode(0, "4+2", false)).expect(exit::DONE);
    let lost = yard.shards().join("object.1of6.paritas");
    fs::remove_file(&lost).unwrap();
    let folder = fs::File::open(yard.shards()).unwrap();
    folder.lock().unwrap();
    let mut repair = paritas(yard.command("repair"));
    let mut repair = repair.stdout(Stdio::null()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(repair.try_wait().unwrap().is_none() && !lost.exists());
    folder.unlock().unwrap();
    assert!(repair.wait().unwrap().success() && lost.exists());
}

#[test]
fn forced_encodings() {
    let yard = Yard::new(200_000);
    let old = yard.encode(0, "4+2", true);
    for round in 0..ROUNDS {
        run(&old).expect(exit::DONE);
        let codes = if round % 2 == 0 { ["4+2", "4+2"] } else { ["20+10", "4+2"] };
        let runs = together(&[
            yard.encode(1, codes[0], true),
            yard.encode(2, codes[1], true),
            yard.command("repair"),
            yard.command("verify"),
        ]);
        let done: Vec<bool> = runs.iter().map(has_done).collect();
        let content = yard.content();
        let winner = yard.contents.iter().position(|c| *c == content).expect("WRONG BYTES");
        assert!(winner > 0 && done[winner - 1], "{winner} {done:?}");
    }
}
