//! Volume commands, killed at any moment and run again: every object reads back, `verify` tells the
//! truth, and the next `repair` on this machine removes all leftovers.
//!
//! The moments come from a seed. The longer test is ignored by default; `scripts/test-soak` runs
//! it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use crate::common::tank::Tank;
use crate::common::{Chance, exit, finish, paritas, say};
use walkdir::WalkDir;

/// The lengths of the objects: in a manifest, in one segment, in many.
const LENGTHS: [usize; 4] = [3_000, 50_000, 400_000, 3_000_000];

/// The command that is killed.
#[derive(Debug, Clone, Copy)]
enum Work {
    Repair,
    Promote,
    Replace,
    Drain,
}

const WORKS: [Work; 4] = [Work::Repair, Work::Promote, Work::Replace, Work::Drain];

impl Work {
    fn code(self) -> &'static str {
        match self {
            Self::Promote => "bbdpg:k=2,m=1,m2=2",
            _ => "2+2",
        }
    }

    /// Brings the volume into a state in which the command has work to do.
    fn prepare(self, tank: &Tank) {
        match self {
            // The folders may not exist, because each object has shards on only four of the five
            // nodes.
            Self::Repair => {
                ["objects", "manifests"].iter().for_each(|folder| {
                    _ = fs::remove_dir_all(tank.disk(1).join(folder));
                });
            }
            Self::Replace => {
                fs::remove_dir_all(tank.disk(1)).unwrap();
                fs::create_dir(tank.disk(1)).unwrap();
            }
            Self::Promote | Self::Drain => {}
        }
    }

    fn command(self) -> (&'static str, Vec<OsString>) {
        match self {
            Self::Repair => ("repair", Vec::new()),
            Self::Promote => ("promote", args!["--all"].to_vec()),
            Self::Replace => ("replace", args!["node2"].to_vec()),
            Self::Drain => ("drain", args!["node2"].to_vec()),
        }
    }
}

/// Objects by name.
type Objects = BTreeMap<String, Vec<u8>>;

/// Stores objects, with new content in each round.
fn put_all(tank: &Tank, chance: &mut Chance) -> Objects {
    let lengths = LENGTHS.into_iter().enumerate();
    let objects =
        lengths.map(|(number, length)| (format!("folder/{number}"), chance.bytes(length)));
    let objects: Objects = objects.collect();
    objects.iter().for_each(|(name, bytes)| _ = tank.put(name, bytes));
    objects
}

fn expect_all(tank: &Tank, objects: &Objects) {
    assert_eq!(&tank.names(), &objects.keys().cloned().collect::<Vec<_>>());
    objects.iter().for_each(|(name, bytes)| assert!(tank.get(name) == *bytes, "{name}"));
}

/// Runs a command and kills it at a random moment. Returns whether it was still running.
fn run_and_kill(tank: &Tank, work: Work, chance: &mut Chance) -> bool {
    let (command, more) = work.command();
    let mut command = paritas(tank.arguments(command, &more));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    thread::sleep(Duration::from_micros(chance.within(2_000..90_000) as u64));
    child.kill().unwrap();
    child.wait().unwrap().signal().is_some()
}

/// Returns the files that are neither shards nor manifests. On a drained disk, shards count as
/// leftovers, too.
fn leftovers(tank: &Tank, work: Work) -> Vec<PathBuf> {
    let is_known = |path: &PathBuf| {
        let place = path.strip_prefix(tank.folder.path()).unwrap();
        let of_node = place.components().nth(1).unwrap();
        let is_shard = of_node.as_os_str() == "objects";
        let is_empty_node = matches!(work, Work::Drain) && path.starts_with(tank.disk(1));
        of_node.as_os_str() == "manifests" || is_shard && !is_empty_node
    };
    tank.files().into_iter().filter(|path| !is_known(path)).collect()
}

/// Largest number of rounds in which to try to kill a command while it runs.
const MOST_ROUNDS: usize = 30;

/// Kills a command and runs it again, in `rounds` rounds or more, until it was still running at one
/// of the kills. Returns the number of kills at which it was.
fn kill_and_say_again(work: Work, rounds: usize, seed: u64) -> usize {
    let mut chance = Chance(seed);
    let mut running = 0;
    for round in 0..MOST_ROUNDS {
        if round >= rounds && running > 0 {
            break;
        }
        let tank = Tank::new(5, work.code());
        let objects = put_all(&tank, &mut chance);
        work.prepare(&tank);
        running += usize::from(run_and_kill(&tank, work, &mut chance));
        expect_all(&tank, &objects);
        let (command, more) = work.command();
        tank.run(command, &more).expect(exit::DONE);
        tank.run("verify", &args!["--deep"]).expect(exit::DONE);
        tank.run("status", &[]).expect(exit::DONE);
        tank.run("repair", &[]).expect(exit::DONE);
        let left = leftovers(&tank, work);
        assert!(left.is_empty(), "{work:?}, round {round}, seed {seed}: {left:?}");
        // What verify says is true: two disks are lost, and every object can still be read.
        let lost = chance.choose(2, 5);
        lost.iter().for_each(|&disk| fs::remove_dir_all(tank.disk(disk)).unwrap());
        expect_all(&tank, &objects);
    }
    running
}

fn kill_all(rounds: usize, seed: u64) {
    for work in WORKS {
        let running = kill_and_say_again(work, rounds, seed);
        say(&format!("{work:?}: killed {running} times"));
        assert!(running > 0, "{work:?} was never killed");
    }
}

/// Returns the records of puts below a folder for the state of programs.
fn records_in(state: &Path) -> Vec<PathBuf> {
    let found = WalkDir::new(state).into_iter().flatten();
    found.filter(|it| it.file_type().is_file()).map(|it| it.into_path()).collect()
}

/// Kills a put while it stores shards. Returns its record.
fn record_of_a_killed_put(tank: &Tank, state: &Path) -> PathBuf {
    let mut put = paritas(tank.arguments("put", &args!["-", "killed"]));
    put.env("XDG_STATE_HOME", state).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut put = put.spawn().unwrap();
    put.stdin.as_mut().unwrap().write_all(&Chance(1).bytes(1_000_000)).unwrap();
    let begun = Instant::now();
    while tank.files().is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(30), "nothing was written");
        thread::sleep(Duration::from_millis(10));
    }
    put.kill().unwrap();
    put.wait().unwrap();
    records_in(state).pop().expect("the put is recorded")
}

/// Stores an object and removes its manifests, as if its put had been killed before them. Returns
/// its id.
fn left_by_a_killed_put(tank: &Tank, seed: u64) -> String {
    let put = tank.put("left", &Chance(seed).bytes(50_000));
    (0..4).for_each(|disk| _ = fs::remove_dir_all(tank.disk(disk).join("manifests/left@")));
    put["object"].as_str().unwrap().to_owned()
}

/// A node that is gone keeps nobody from removing what the others have of a killed put. The record
/// stays until it is back.
#[test]
fn a_node_that_is_gone_keeps_its_remains_alone() {
    let tank = Tank::new(4, "2+1");
    let state = tank.path("state");
    let record = record_of_a_killed_put(&tank, &state);
    let left = left_by_a_killed_put(&tank, 3);
    fs::copy(&record, record.with_file_name(&left)).unwrap();
    let is_left = || tank.files().iter().any(|path| path.to_str().unwrap().contains(&left));
    let repair = || {
        let mut repair = paritas(tank.arguments("repair", &[]));
        repair.env("XDG_STATE_HOME", &state);
        finish(repair)
    };
    // One of the four disks has no shard of the object.
    let files_of = |disk| WalkDir::new(tank.disk(disk)).into_iter().flatten();
    let has_a_shard =
        |disk: &usize| files_of(*disk).any(|file| file.path().to_str().unwrap().contains(&left));
    let disk = (0..4).find(has_a_shard).expect("a disk has a shard");
    let away = tank.path("away");
    fs::rename(tank.disk(disk), &away).unwrap();
    let repaired = repair();
    assert!(!is_left(), "without disk {disk}: {repaired}");
    assert_eq!(records_in(&state).len(), 2);
    fs::rename(&away, tank.disk(disk)).unwrap();
    assert!(is_left(), "disk {disk} was away");
    repair().expect(exit::DONE);
    assert!(!is_left() && records_in(&state).is_empty());
}

/// A put that is killed while it stores shards leaves unfinished files, or shards without a
/// manifest. A test cannot see when a put has stored its shards but no manifest yet. So this state
/// is made here from a stored object.
#[test]
fn a_drain_removes_at_once_what_a_killed_put_of_this_machine_left() {
    let tank = Tank::new(4, "2+1");
    let state = tank.path("state");
    let drain = |more: &[OsString]| {
        let mut drain = paritas(tank.arguments("drain", &[&args!["node2"], more].concat()));
        drain.env("XDG_STATE_HOME", &state);
        finish(drain)
    };
    let records = || records_in(&state);
    let record = record_of_a_killed_put(&tank, &state);
    let kept = tank.put("kept", &Chance(2).bytes(50_000));
    assert_eq!(records().len(), 1, "a put that is done has no record");
    // As if the first of these two puts had been killed on this machine, and the other one
    // elsewhere.
    let [here, elsewhere] = [3, 4].map(|seed| left_by_a_killed_put(&tank, seed));
    fs::copy(&record, record.with_file_name(&here)).unwrap();
    fs::copy(&record, record.with_file_name(kept["object"].as_str().unwrap())).unwrap();
    let is_of = |object: &str| {
        let object = object.to_owned();
        move |path: &PathBuf| path.to_str().unwrap().contains(&object)
    };
    assert!(tank.files().iter().any(is_of(&here)) && tank.files().iter().any(is_of(&elsewhere)));
    let drained = drain(&[]);
    assert!(!tank.files().iter().any(is_of(&here)), "{drained}");
    assert!(tank.files().iter().any(is_of(&elsewhere)), "it may be at work");
    assert!(!tank.files().iter().any(is_of(".paritas-new/")), "{:?}", tank.files());
    assert_eq!(records(), [""; 0].map(PathBuf::from));
    assert!(tank.get("kept") == Chance(2).bytes(50_000));
    // A drain more than a day later removes the leftovers of the other put.
    for path in tank.files().into_iter().filter(is_of(&elsewhere)) {
        let file = fs::File::options().append(true).open(path).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(2 * 86_400)).unwrap();
    }
    let drained = drain(&args!["--remove"]).expect(exit::DONE).results();
    assert_eq!(drained.last().unwrap()["removed"], true);
}

#[test]
fn killed_commands_can_be_said_again() {
    kill_all(2, 1);
}

#[test]
#[ignore = "takes minutes; scripts/test-soak runs it"]
fn killed_commands_can_be_said_again_and_again() {
    (2..7).for_each(|seed| kill_all(20, seed));
}
