//! `paritas volume` with a disk that hangs: a folder of bindfs whose process is stopped.
//!
//! The test needs bindfs and the right to mount. Without them, it says so and ends. The behaviour
//! itself is tested everywhere in virtual time (`paritas-volume`, test `silence`).

#![cfg(target_os = "linux")]

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::tank::Tank;
use crate::common::{Chance, exit, not_run};

/// The time limit of each node.
const LIMIT: Duration = Duration::from_secs(3);

/// The disk that hangs.
const HUNG: usize = 2;

/// A folder that shows the content of another one, until it hangs.
struct Mount {
    server: Child,
}

impl Mount {
    /// Moves a folder to a disk that can hang, and leaves a link to it. If this fails, says why and
    /// returns `None`.
    fn take(folder: &Path) -> Option<Self> {
        let [behind, shown] = ["behind", "shown"].map(|name| folder.with_extension(name));
        [&behind, &shown].iter().for_each(|made| fs::create_dir(made).unwrap());
        fs::rename(folder, behind.join("node")).unwrap();
        std::os::unix::fs::symlink(shown.join("node"), folder).unwrap();
        let mut bindfs = Command::new("bindfs");
        bindfs.arg("-f").args([behind, shown]).stdout(Stdio::null()).stderr(Stdio::null());
        let Ok(server) = bindfs.spawn() else {
            not_run("there is no bindfs (Debian's package bindfs)");
            return None;
        };
        let mut mount = Self { server };
        let start = Instant::now();
        while !folder.join("ready").exists() {
            let has_ended = mount.server.try_wait().unwrap().is_some();
            if has_ended || start.elapsed() > Duration::from_secs(10) {
                not_run("bindfs cannot mount a folder here");
                return None;
            }
            thread::sleep(Duration::from_millis(20));
        }
        Some(mount)
    }

    fn signal(&self, name: &str) {
        let _ = Command::new("kill").args(["-s", name, &self.server.id().to_string()]).status();
    }

    fn hang(&self) {
        self.signal("STOP");
        // Until then, the system answers from its cache.
        thread::sleep(Duration::from_millis(1500));
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        self.signal("CONT");
        // bindfs unmounts the folder before it ends.
        self.signal("TERM");
        let _ = self.server.wait();
    }
}

/// Checks that a command ends with one of `codes`, and waits for the disk at most once.
fn expect_soon(tank: &Tank, command: &str, more: &[OsString], codes: &[i32]) {
    let start = Instant::now();
    let run = tank.run(command, more);
    let took = start.elapsed();
    assert!(codes.contains(&run.code), "{command}: {run}");
    assert!(took < 2 * LIMIT, "{command} took {took:?}: {run}");
}

#[test]
fn a_disk_that_hangs_is_waited_for_once_by_each_command() {
    let tank = Tank::new(3, "2+1");
    let text = fs::read_to_string(tank.path("tank.toml")).unwrap();
    let limit = format!("timeout = {}", LIMIT.as_secs());
    let changed = text.replace("# timeout = 15", &limit);
    assert_ne!(changed, text);
    fs::write(tank.path("tank.toml"), changed).unwrap();
    let (large, small) = (Chance(1).bytes(20_000), Chance(2).bytes(300));
    tank.put("large", &large);
    tank.put("small", &small);
    let Some(mount) = Mount::take(&tank.disk(HUNG)) else { return };
    fs::write(tank.path("source"), &large).unwrap();
    let source = tank.path("source");

    mount.hang();
    let (done, owing) = ([exit::DONE], [exit::REPAIRABLE]);
    expect_soon(&tank, "put", &args![&source, "new"], &done);
    expect_soon(&tank, "ls", &[], &done);
    expect_soon(&tank, "stat", &args!["large"], &done);
    expect_soon(&tank, "cat", &args!["large"], &done);
    expect_soon(&tank, "get", &args!["small", tank.path("copy")], &done);
    expect_soon(&tank, "status", &[], &owing);
    expect_soon(&tank, "verify", &args!["--deep"], &owing);
    expect_soon(&tank, "repair", &[], &owing);
    expect_soon(&tank, "repair", &args!["--scrub"], &owing);
    expect_soon(&tank, "rm", &args!["large"], &done);
    fs::create_dir(tank.path("disk3")).unwrap();
    expect_soon(&tank, "add", &args!["--node", "disk3"], &done);
    expect_soon(&tank, "drain", &args!["node3"], &owing);

    mount.signal("CONT");
    tank.run("repair", &[]).expect(exit::DONE);
    tank.run("verify", &args!["--deep"]).expect(exit::DONE);
    assert!(tank.get("new") == large && tank.get("small") == small);
}
