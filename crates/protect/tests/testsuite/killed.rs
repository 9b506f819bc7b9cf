//! kill -9 at any moment: what was good is still there, and running the same again completes it.
//!
//! Each test starts itself again as a victim that works without end, and kills it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::{
    Chance, assert_same, check, flip, job, make, make_tree, mend, only, snapshot, write,
};
use paritas_protect::{RepairJob, State, UpdateJob, find, repair, update};

const DIRECTORY: &str = "PARITAS_PROTECT_KILL";
/// Number of kills in each test: usually, and when PARITAS_SOAK is set.
const KILLS: (u64, u64) = (15, 100);

/// The folder in which this process works as a victim, if [`kill_after`] started it.
fn victims_folder() -> Option<PathBuf> {
    std::env::var_os(DIRECTORY).map(PathBuf::from)
}

/// Starts a test as a victim, lets it work for some time, and kills it.
fn kill_after(test: &str, folder: &Path, time: Duration) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test])
        .env(DIRECTORY, folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(time);
    assert!(child.try_wait().unwrap().is_none(), "the victim ended by itself");
    child.kill().unwrap();
    child.wait().unwrap();
}

fn times() -> impl Iterator<Item = Duration> {
    let kills = if std::env::var_os("PARITAS_SOAK").is_some() { KILLS.1 } else { KILLS.0 };
    (0..kills).map(|kill| Duration::from_micros(15_000 + kill * 7_919 % 60_000))
}

fn tree(seed: u64) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    make_tree(root.path(), &mut Chance::new(seed), 20, 60_000);
    root
}

#[test]
fn protecting_is_killed() {
    if let Some(root) = victims_folder() {
        loop {
            make(&job(&root).force(true));
        }
    }
    let root = tree(1);
    let before = snapshot(root.path());
    make(&job(root.path()));
    for time in times() {
        kill_after("killed::protecting_is_killed", root.path(), time);
        assert_same(&snapshot(root.path()), &before, "protecting");
        only(root.path());
    }
    make(&job(root.path()).force(true));
    assert_eq!(check(root.path()).status, State::Intact);
    assert_eq!(fs::read_dir(root.path().join(".paritas")).unwrap().count(), 5);
}

/// Damages the tree in turn and repairs it.
fn repair_without_end(root: &Path) {
    let mut files: Vec<PathBuf> = snapshot(root).into_keys().map(|path| root.join(path)).collect();
    files.retain(|path| path.is_file() && fs::metadata(path).unwrap().len() > 0);
    for (turn, path) in files.iter().cycle().enumerate() {
        match turn % 3 {
            0 if !path.is_symlink() => fs::remove_file(path).unwrap(),
            1 if !path.is_symlink() => flip(path, 0),
            _ => {
                let folder = fs::read_dir(root.join(".paritas")).unwrap();
                fs::remove_file(folder.last().unwrap().unwrap().path()).unwrap();
            }
        }
        mend(root);
    }
}

#[test]
fn repairing_is_killed() {
    if let Some(root) = victims_folder() {
        return repair_without_end(&root);
    }
    let root = tree(2);
    let before = snapshot(root.path());
    make(&job(root.path()).redundancy("200%".parse().unwrap()));
    for time in times() {
        kill_after("killed::repairing_is_killed", root.path(), time);
        let job = RepairJob::default().sync(false).restore_changed(true);
        let report = repair(&only(root.path()), &job, &|_| {}).unwrap();
        assert_ne!(report.found.status, State::Lost, "{report:?}");
        assert_same(&snapshot(root.path()), &before, "repairing again");
        assert_eq!(check(root.path()).status, State::Intact);
    }
}

#[test]
fn updating_is_killed() {
    if let Some(root) = victims_folder() {
        for turn in 0.. {
            let path = root.join(format!("new {}", turn % 3));
            write(&path, &Chance::new(turn).bytes(2000), 0o644, turn);
            let protection = find(std::slice::from_ref(&root)).unwrap().remove(0);
            update(&protection, &UpdateJob::default().sync(false), &|_| {}).unwrap();
        }
    }
    let root = tree(3);
    let before = snapshot(root.path());
    make(&job(root.path()).redundancy("100%".parse().unwrap()));
    for time in times() {
        kill_after("killed::updating_is_killed", root.path(), time);
        let now = snapshot(root.path());
        assert!(before.iter().all(|(path, thing)| now.get(path) == Some(thing)));
        update(&only(root.path()), &UpdateJob::default().sync(false), &|_| {}).unwrap();
        let report = check(root.path());
        assert!(report.status == State::Intact && report.new.is_empty(), "{report:?}");
        let layers = only(root.path()).geometries().count();
        let files = fs::read_dir(root.path().join(".paritas")).unwrap().count();
        assert_eq!(files, 5 * layers, "what a killed update left is gone");
    }
}
