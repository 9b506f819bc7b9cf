//! Shared parts of the end-to-end tests: running the program, contents, folders, seeded random
//! numbers.
#![allow(dead_code, reason = "every test file uses its own part")]

/// Arguments of different types in one list. Behind a semicolon stands a list of further ones.
macro_rules! args {
    ($($argument:expr),* $(,)?) => {
        [$(std::ffi::OsString::from($argument)),*]
    };
    ($($argument:expr),*; $more:expr) => {{
        let more = $more.iter().map(std::ffi::OsString::from);
        args![$($argument),*].into_iter().chain(more).collect::<Vec<_>>()
    }};
}

pub mod schema;
#[path = "../../../store/tests/common/mod.rs"]
mod shared;
#[cfg(feature = "volume")]
pub mod tank;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;

use serde_json::Value;
use tempfile::TempDir;

#[allow(unused_imports, reason = "every test file uses its own part")]
pub use shared::{crc64_nvme, not_run, renew_times};

/// Exit codes, as `paritas --help` lists them.
pub mod exit {
    pub const DONE: i32 = 0;
    pub const REPAIRABLE: i32 = 1;
    pub const LOST: i32 = 2;
    pub const ARGUMENTS: i32 = 3;
    pub const NOT_RECOGNISED: i32 = 4;
    pub const CHECK_FAILED: i32 = 5;
    pub const IO: i32 = 6;
    pub const MEMORY: i32 = 8;
    pub const INTERRUPTED: i32 = 130;
    pub const TERMINATED: i32 = 143;
}

/// Returns the program with its arguments, and with empty input.
pub fn paritas<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_paritas"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// A finished run.
#[derive(Debug)]
pub struct Run {
    pub code: i32,
    pub stdout: Vec<u8>,
    pub stderr: String,
    what: String,
}

/// Runs the program to its end.
///
/// # Panics
/// If the program died of a signal, panicked, or reported an internal error.
pub fn run<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Run {
    finish(paritas(arguments))
}

/// Runs the program to its end without root's right to ignore the permissions of files.
#[cfg(unix)]
pub fn run_as_user<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Run {
    if !rustix::process::geteuid().is_root() {
        return run(arguments);
    }
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set=-dac_override,-dac_read_search", env!("CARGO_BIN_EXE_paritas")]);
    command.args(arguments).stdin(Stdio::null());
    finish(command)
}

/// Returns the program as a command that first runs some commands of the shell.
pub fn paritas_after(shell: &str, arguments: &[OsString]) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{shell} && exec \"$@\""), "sh"]);
    command.arg(env!("CARGO_BIN_EXE_paritas")).args(arguments).stdin(Stdio::null());
    command
}

/// Runs the program to its end with these bytes on standard input.
pub fn run_with_input<A: AsRef<OsStr>>(
    arguments: impl IntoIterator<Item = A>,
    input: &[u8],
) -> Run {
    let mut command = paritas(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let what = format!("{command:?}");
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    thread::scope(|scope| {
        // The program may stop reading at any time.
        scope.spawn(move || stdin.write_all(input));
        Run::new(child.wait_with_output().unwrap(), what)
    })
}

/// Runs a prepared command to its end.
pub fn finish(mut command: Command) -> Run {
    let what = format!("{command:?}");
    Run::new(command.output().unwrap(), what)
}

impl Run {
    pub fn new(output: Output, what: String) -> Self {
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let code = output.status.code();
        let documented = |code: i32| {
            let is_ended = [exit::INTERRUPTED, exit::TERMINATED].contains(&code);
            (0..=8).contains(&code) && code != 7 || is_ended
        };
        let sane = code.is_some_and(documented) && !stderr.contains("panicked");
        assert!(sane, "{what}: {}\n{stderr}", output.status);
        if what.contains("--json") {
            check_json(&output.stdout);
            check_json(stderr.as_bytes());
        }
        Self { code: code.unwrap_or(-1), stdout: output.stdout, stderr, what }
    }

    /// Checks the exit code.
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self}");
        self
    }

    /// Returns standard output as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Returns the JSON objects on standard output, without progress.
    pub fn results(&self) -> Vec<Value> {
        let lines = json_lines(&self.text()).unwrap_or_else(|error| panic!("{error}: {self}"));
        lines.into_iter().filter(|line| line["type"] != "progress").collect()
    }

    /// Returns the only result on standard output.
    pub fn result(&self) -> Value {
        let mut results = self.results();
        assert_eq!(results.len(), 1, "{self}");
        results.remove(0)
    }

    /// Returns the JSON object of the error: the only one of its type, and the last line.
    pub fn error(&self) -> Value {
        let lines = json_lines(&self.stderr).unwrap_or_else(|error| panic!("{error}: {self}"));
        assert_eq!(lines.iter().filter(|line| line["type"] == "error").count(), 1, "{self}");
        let error = lines.last().unwrap();
        assert_eq!(error["type"], "error", "{self}");
        assert_eq!(error["code"], self.code, "{self}");
        assert!(error["kind"].as_str().is_some_and(|kind| !kind.is_empty()), "{self}");
        assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()), "{self}");
        error.clone()
    }
}

impl std::fmt::Display for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { what, code, stderr, .. } = self;
        let output = self.text();
        let shown: String = output.chars().take(4000).collect();
        write!(f, "{what}\nexit {code}\nstdout: {shown}\nstderr: {stderr}")
    }
}

/// Checks all JSON lines against the schema; other lines may be an object's bytes.
pub fn check_json(output: &[u8]) {
    let lines = output.split(|&byte| byte == b'\n').filter(|line| line.starts_with(b"{\""));
    lines
        .filter_map(|line| serde_json::from_slice(line).ok())
        .for_each(|line| schema::check(&line));
}

/// Reads every line as JSON.
pub fn json_lines(text: &str) -> Result<Vec<Value>, String> {
    let parse = |line| serde_json::from_str(line).map_err(|error| format!("{error} in {line}"));
    text.lines().map(parse).collect()
}

/// Encodes a file into a folder, and returns the report.
pub fn encode(file: &Path, folder: &Path, code: &str, more: &[&str]) -> Value {
    let encode =
        args!["encode", file, "--out", folder, "--code", code, "--no-sync", "--json"; more];
    run(encode).expect(exit::DONE).result()
}

/// Encodes bytes as the file `object` of a new folder, into its folder `shards`. Returns both
/// folders and the report.
pub fn encoded(content: &[u8], code: &str, more: &[&str]) -> (TempDir, PathBuf, Value) {
    let folder = tempfile::tempdir().unwrap();
    let (file, shards) = (folder.path().join("object"), folder.path().join("shards"));
    fs::write(&file, content).unwrap();
    let report = encode(&file, &shards, code, more);
    (folder, shards, report)
}

/// Returns the paths of the shards that an encoding reports, by index.
pub fn shard_paths(report: &Value) -> Vec<PathBuf> {
    let shards = report["shards"].as_array().unwrap();
    shards.iter().map(|shard| shard["path"].as_str().unwrap().into()).collect()
}

/// Decodes the only object of a folder.
pub fn decode(folder: &Path) -> Vec<u8> {
    run(args!["decode", folder, "--out", "-"]).expect(exit::DONE).stdout
}

/// Returns all regular files of a folder.
pub fn snapshot(folder: &Path) -> BTreeMap<OsString, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    let files = entries.filter(|entry| entry.file_type().unwrap().is_file());
    files.map(|entry| (entry.file_name(), fs::read(entry.path()).unwrap())).collect()
}

/// Returns all regular files of a folder, except the copies that repairs kept of replaced files.
pub fn snapshot_without_copies(folder: &Path) -> BTreeMap<OsString, Vec<u8>> {
    let mut files = snapshot(folder);
    files.retain(|name, _| !name.to_string_lossy().contains(".damaged-"));
    files
}

/// Returns the names of everything in a folder.
pub fn names(folder: &Path) -> Vec<OsString> {
    let mut names: Vec<OsString> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort_unstable();
    names
}

/// Whether a file of this name should be gone when the program has ended.
pub fn is_leftover(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name.starts_with('.') || name.ends_with(".tmp") || name.ends_with(".old")
}

/// Prints a line even though the test harness hides the output of passing tests.
pub fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// SplitMix64 (Steele, Lea and Flood 2014): random numbers that are the same in every run.
#[derive(Debug, Clone)]
pub struct Chance(pub u64);

impl Chance {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    /// Returns a number of the range, which must not be empty.
    pub fn within(&mut self, range: Range<usize>) -> usize {
        range.start + (self.next() % (range.end - range.start) as u64) as usize
    }

    /// Returns different numbers below a limit, in random order.
    pub fn choose(&mut self, count: usize, below: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..below).collect();
        for place in 0..count {
            let other = self.within(place..below);
            all.swap(place, other);
        }
        all.truncate(count);
        all
    }

    /// Fills a buffer.
    pub fn fill(&mut self, buffer: &mut [u8]) {
        for chunk in buffer.chunks_mut(8) {
            chunk.copy_from_slice(&self.next().to_le_bytes()[..chunk.len()]);
        }
    }

    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.fill(&mut bytes);
        bytes
    }
}

/// Reads all of a child's standard error, and waits for the child. Returns its exit code and this
/// text.
pub fn wait(child: &mut Child) -> (i32, String) {
    let mut stderr = String::new();
    if let Some(mut pipe) = child.stderr.take() {
        pipe.read_to_string(&mut stderr).unwrap();
    }
    let status = child.wait().unwrap();
    assert!(!stderr.contains("panicked"), "{stderr}");
    (status.code().unwrap_or(-1), stderr)
}
