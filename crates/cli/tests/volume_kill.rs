//! Commands about volumes, killed at any moment and said again: every object reads back, `verify`
//! tells the truth, and nothing is left that `repair` does not collect.
//!
//! The moments come from a seed. The longer form is ignored; `scripts/test-soak` runs it.

#![cfg(feature = "volume")]

mod common;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, SystemTime};

use common::tank::Tank;
use common::{Chance, exit, paritas, say};

/// The lengths of the objects: in a manifest, in one segment, in many.
const LENGTHS: [usize; 4] = [3_000, 50_000, 400_000, 3_000_000];

/// What is killed, and what comes before it.
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

    /// Brings the volume into the state that the command is about.
    fn prepare(self, tank: &Tank) {
        match self {
            // A disk may have no shards, as one of five nodes has none of an object.
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

/// Puts objects, new ones in each round.
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

/// Removes the claims of promotions that were killed. They are void after two minutes, which no
/// test waits for.
fn void_claims(tank: &Tank) {
    let is_claim = |path: &PathBuf| path.extension().is_some_and(|end| end == "claim");
    tank.files().into_iter().filter(is_claim).for_each(|path| fs::remove_file(path).unwrap());
}

/// Makes all files two days old.
fn age(tank: &Tank) {
    let old = SystemTime::now() - Duration::from_secs(2 * 86_400);
    for path in tank.files() {
        let file = fs::File::options().append(true).open(path).unwrap();
        file.set_modified(old).unwrap();
    }
}

/// Returns the files that are neither shards nor manifests, and those on a disk that is drained.
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

/// Number of rounds after which a command counts as one that cannot be killed while it runs.
const MOST_ROUNDS: usize = 30;

/// Kills a command, and says it again, `rounds` times and until it was still running once. Returns
/// how often it was.
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
        void_claims(&tank);
        tank.run(command, &more).expect(exit::DONE);
        tank.run("verify", &args!["--deep"]).expect(exit::DONE);
        tank.run("status", &[]).expect(exit::DONE);
        age(&tank);
        tank.run("repair", &[]).expect(exit::DONE);
        let left = leftovers(&tank, work);
        assert!(left.is_empty(), "{work:?}, round {round}, seed {seed}: {left:?}");
        // What verify says is true: as many disks as may be lost, are.
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

#[test]
fn killed_commands_can_be_said_again() {
    kill_all(2, 1);
}

#[test]
#[ignore = "takes minutes; scripts/test-soak runs it"]
fn killed_commands_can_be_said_again_and_again() {
    (2..7).for_each(|seed| kill_all(20, seed));
}
