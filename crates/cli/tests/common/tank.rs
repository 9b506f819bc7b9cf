//! A volume over folders, as the tests of `paritas volume` use it.

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;
use walkdir::WalkDir;

use super::{Run, exit, paritas, run, run_with_input};

/// A volume over folders that stand for disks.
pub struct Tank {
    pub folder: TempDir,
    pub disks: usize,
    /// The report of `init`.
    pub made: Value,
}

impl Tank {
    pub fn new(disks: usize, code: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tank.toml");
        let mut init = args!["volume", "init", &file, "--code", code, "--json"].to_vec();
        for disk in 0..disks {
            fs::create_dir(folder.path().join(format!("disk{disk}"))).unwrap();
            init.extend(args!["--node", format!("disk{disk}")]);
        }
        let made = run(init).expect(exit::DONE).result();
        // Tests need not wait for the disk.
        let text = fs::read_to_string(&file).unwrap().replace("# sync = true", "sync = false");
        fs::write(&file, text).unwrap();
        Self { folder, disks, made }
    }

    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn disk(&self, disk: usize) -> PathBuf {
        self.path(format!("disk{disk}"))
    }

    pub fn arguments(&self, command: &str, more: &[OsString]) -> Vec<OsString> {
        [&args!["volume", command, self.path("tank.toml"), "--json"], more].concat()
    }

    /// Runs a command with --json.
    pub fn run(&self, command: &str, more: &[OsString]) -> Run {
        run(self.arguments(command, more))
    }

    /// Stores bytes as an object, from a pipe.
    pub fn put(&self, name: &str, content: &[u8]) -> Value {
        let put = self.arguments("put", &args!["-", name]);
        run_with_input(put, content).expect(exit::DONE).result()
    }

    /// Returns an object, through a pipe.
    pub fn get(&self, name: &str) -> Vec<u8> {
        self.run("get", &args![name, "-"]).expect(exit::DONE).stdout
    }

    pub fn names(&self) -> Vec<String> {
        let listed = self.run("ls", &[]).expect(exit::DONE).results();
        listed.iter().map(|line| line["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Returns all files on the disks, except the marks of the nodes.
    pub fn files(&self) -> Vec<PathBuf> {
        let disks = (0..self.disks).flat_map(|disk| WalkDir::new(self.disk(disk)));
        let files = disks.flatten().filter(|entry| entry.file_type().is_file());
        files.map(|entry| entry.into_path()).filter(|path| !path.ends_with("ready")).collect()
    }

    /// Removes all shards and manifests of a disk, but not its mark.
    pub fn lose(&self, disk: usize) {
        for folder in ["objects", "manifests"] {
            fs::remove_dir_all(self.disk(disk).join(folder)).unwrap();
        }
    }

    /// Begins to store an object from a pipe, and waits until some of it is on the disks.
    pub fn begin_put(&self, name: &str, content: &[u8]) -> (Child, ChildStdin) {
        let mut command = paritas(self.arguments("put", &args!["-", name]));
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(content).unwrap();
        let start = Instant::now();
        while self.files().is_empty() {
            assert!(start.elapsed() < Duration::from_secs(30), "nothing was written");
            thread::sleep(Duration::from_millis(10));
        }
        (child, stdin)
    }
}
