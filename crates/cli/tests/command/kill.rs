//! kill -9 at any moment: old objects stay intact, leftover files do not look like damaged objects,
//! and running the command again completes its work.
//!
//! Most kills are at seeded moments, spread over the time of a whole run. Files get their names at
//! the very end, within microseconds that such kills hardly ever hit. So other kills wait for that
//! moment by watching the folder, with a code of many shards to make it last.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::common::{Chance, Run, exit, is_leftover, names, paritas, run, say, snapshot};

const SEED: u64 = 0x6b69_6c6c;
const LENGTH: usize = 40_000_000;
/// Number of attempts, in each `…_while_names_are_given` test, to kill the run while names change.
const COMMIT_KILLS: usize = 8;
/// An LT code that survives the loss of any two shards.
const LT: &str = "lt:k=100,n=200,nodes=8";
/// A code with many shards, so that naming them takes a while.
const WIDE: &str = "cauchy:k=40,m=20";
const TOLERANCE: usize = 20;
const WIDE_LENGTH: usize = 300_000;

/// Returns the number of kills that must land while the program runs, in each test that kills at
/// random moments.
fn kills() -> usize {
    if is_soak() { 100 } else { 6 }
}

/// Whether all kills are tried, as in `scripts/test-soak`.
fn is_soak() -> bool {
    std::env::var_os("PARITAS_SOAK").is_some()
}

/// Runs the tests one by one, because competing tests would distort the measured durations.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A file, a folder for its shards, and seeded random numbers.
struct Scene {
    yard: TempDir,
    code: &'static str,
    content: Vec<u8>,
    chance: Chance,
}

impl Scene {
    fn new(number: u64, code: &'static str, length: usize) -> Self {
        let mut chance = Chance(SEED + number);
        let content = chance.bytes(length);
        let scene = Self { yard: tempfile::tempdir().unwrap(), code, content, chance };
        fs::write(scene.file(), &scene.content).unwrap();
        scene
    }

    fn file(&self) -> PathBuf {
        self.yard.path().join("object")
    }

    fn shards(&self) -> PathBuf {
        self.yard.path().join("shards")
    }

    fn encode(&self, more: &[&str]) -> Vec<OsString> {
        let (file, shards) = (self.file(), self.shards());
        args!["encode", file, "--out", shards, "--code", self.code, "--no-sync"; more]
    }

    fn repair(&self) -> Vec<OsString> {
        args!["repair", self.shards(), "--no-sync"].to_vec()
    }

    /// Runs encode to its end.
    fn encoded(&self) -> BTreeMap<OsString, Vec<u8>> {
        run(self.encode(&["--force"])).expect(exit::DONE);
        snapshot(&self.shards())
    }

    /// Changes the content for the next encoding, and returns the old one.
    fn change_content(&mut self) -> Vec<u8> {
        let old = self.content.clone();
        let at = self.chance.within(0..old.len());
        self.content[at] ^= 0x55;
        fs::write(self.file(), &self.content).unwrap();
        old
    }

    /// Returns the objects that a scan finds, each with the result of verify.
    fn objects(&self) -> Vec<Value> {
        let run = run(args!["verify", self.shards(), "--json"]);
        let found = if run.code == exit::NOT_RECOGNISED { Vec::new() } else { run.results() };
        found.into_iter().filter(|line| line["type"] == "verify").collect()
    }

    fn decode(&self, object: &Value) -> Run {
        let id = object["object"].as_str().unwrap();
        run(args!["decode", self.shards(), "--object", id, "--out", "-"])
    }

    /// Describes what was found, and how many files of each sort there are.
    fn summary(&self, objects: &[Value]) -> String {
        let found = objects.iter().map(|object| {
            let shards = object["shards"].as_array().unwrap();
            let count = |state| shards.iter().filter(|shard| shard["state"] == state).count();
            let (id, status) = (&object["object"], &object["status"]);
            let [intact, missing] = ["intact", "missing"].map(count);
            format!("object {id} is {status}, {intact} shards intact, {missing} missing; ")
        });
        let names = names(&self.shards());
        let ending =
            |ending| names.iter().filter(|n| n.to_string_lossy().ends_with(ending)).count();
        let [shards, temporary, old] = [".paritas", ".tmp", ".old"].map(ending);
        format!(
            "{}{shards} files .paritas, {temporary} .tmp, {old} .old",
            found.collect::<String>()
        )
    }

    /// Checks that there is exactly one object, and that it is whole and has this content.
    fn check_complete(&self, content: &[u8]) {
        let objects = self.objects();
        assert_eq!(objects.len(), 1, "{}", self.summary(&objects));
        assert_eq!(objects[0]["status"], "intact", "{}", self.summary(&objects));
        assert!(self.decode(&objects[0]).expect(exit::DONE).stdout == content, "WRONG BYTES");
    }

    /// Checks that a killed encode into an empty folder left a whole object or none, and completes
    /// when run again.
    fn check_fresh_encode(&self) {
        let objects = self.objects();
        assert!(
            objects.iter().all(|object| object["status"] == "intact"),
            "leftovers look like a damaged object: {}",
            self.summary(&objects)
        );
        let again = run(self.encode(&[]));
        if objects.is_empty() {
            again.expect(exit::DONE);
        } else {
            assert!([exit::DONE, exit::ARGUMENTS].contains(&again.code), "{again}");
        }
        self.check_complete(&self.content);
    }

    /// Checks that a killed encode --force left the old object or the new one, and completes when
    /// run again.
    fn check_forced_encode(&self, old: &[u8]) {
        self.check_told();
        let objects = self.objects();
        assert_eq!(objects.len(), 1, "not one object is whole: {}", self.summary(&objects));
        assert_eq!(objects[0]["status"], "intact", "{}", self.summary(&objects));
        let decoded: Vec<Run> = objects.iter().map(|object| self.decode(object)).collect();
        let right = |run: &Run| {
            assert!([exit::DONE, exit::LOST].contains(&run.code), "{run}");
            let wrong = run.code == exit::DONE && run.stdout != old && run.stdout != self.content;
            assert!(!wrong, "WRONG BYTES");
            run.code == exit::DONE
        };
        // Counted, so that every result is checked.
        let right = decoded.iter().filter(|run| right(run)).count();
        assert!(right > 0, "neither can be decoded: {}", self.summary(&objects));
        run(self.encode(&["--force"])).expect(exit::DONE);
        self.check_complete(&self.content);
        run(args!["repair", self.shards(), "--clean", "--no-sync"]).expect(exit::DONE);
        assert!(!names(&self.shards()).iter().any(|name| is_leftover(name)));
    }

    /// Checks that the next command reports what a kill left behind.
    fn check_told(&self) {
        if names(&self.shards()).iter().any(|name| is_leftover(name)) {
            let verify = run(args!["verify", self.shards()]);
            assert!(verify.stderr.contains("was interrupted"), "{verify}");
        }
    }

    /// Checks that a killed repair changed no good shard, and completes when run again.
    fn check_repair(&self, before: &BTreeMap<OsString, Vec<u8>>, bad: &[PathBuf]) {
        let after = snapshot(&self.shards());
        for (name, bytes) in before {
            let now = after.get(name);
            let was_bad = bad.contains(&self.shards().join(name));
            assert!(now == Some(bytes) || was_bad, "{name:?} has changed");
        }
        let objects = self.objects();
        assert_eq!(objects.len(), 1, "{}", self.summary(&objects));
        assert!(self.decode(&objects[0]).expect(exit::DONE).stdout == self.content, "WRONG BYTES");
        run(self.repair()).expect(exit::DONE);
        self.check_complete(&self.content);
        let repaired = snapshot(&self.shards());
        assert!(before.iter().all(|(name, bytes)| repaired.get(name) == Some(bytes)));
    }

    /// Damages `count` shards: deletes every second one, and changes a byte in the others. Returns
    /// their paths.
    fn harm(&mut self, files: &BTreeMap<OsString, Vec<u8>>, count: usize) -> Vec<PathBuf> {
        let all: Vec<(&OsString, &Vec<u8>)> = files.iter().collect();
        let chosen = self.chance.choose(count, all.len());
        let harmed = chosen.into_iter().enumerate().map(|(turn, index)| {
            let (name, bytes) = all[index];
            let path = self.shards().join(name);
            if turn % 2 == 0 {
                fs::remove_file(&path).unwrap();
            } else {
                let mut bytes = bytes.clone();
                bytes[1000] ^= 1;
                fs::write(&path, bytes).unwrap();
            }
            path
        });
        harmed.collect()
    }

    fn promote(&self) -> Vec<OsString> {
        args!["promote", self.shards(), "--no-sync"].to_vec()
    }

    /// Returns the files of an encoded object before and after its promotion.
    fn promoted(&self) -> [BTreeMap<OsString, Vec<u8>>; 2] {
        let first = self.encoded();
        run(self.promote()).expect(exit::DONE);
        [first, snapshot(&self.shards())]
    }

    /// Checks that a killed promotion changed no existing file, left the object as safe as before,
    /// and completes when run again.
    fn check_promote(&mut self, [first, whole]: &[BTreeMap<OsString, Vec<u8>>; 2], losses: usize) {
        let left = snapshot(&self.shards());
        assert!(first.iter().all(|(name, bytes)| left.get(name) == Some(bytes)));
        let objects = self.objects();
        assert_eq!(objects.len(), 1, "{}", self.summary(&objects));
        let (status, stage) = (&objects[0]["status"], &objects[0]["stage"]);
        assert!(status == "intact" || stage == 2, "{}", self.summary(&objects));
        let tolerable = objects[0]["tolerable_losses"].as_u64().unwrap();
        assert!(tolerable >= losses as u64, "{}", self.summary(&objects));
        let width = first.len().to_string().len();
        for shard in self.chance.choose(losses, first.len()) {
            let of_shard = format!(".{shard:0width$}of");
            let part = |name: &&OsString| name.to_string_lossy().contains(&of_shard);
            left.keys().filter(part).for_each(|n| fs::remove_file(self.shards().join(n)).unwrap());
        }
        assert!(self.decode(&objects[0]).expect(exit::DONE).stdout == self.content, "WRONG BYTES");
        self.restore(&left);
        run(self.promote()).expect(exit::DONE);
        assert!(snapshot(&self.shards()) == *whole, "{}", self.summary(&self.objects()));
    }

    fn clear(&self) {
        let _ = fs::remove_dir_all(self.shards());
        fs::create_dir(self.shards()).unwrap();
    }

    fn restore(&self, files: &BTreeMap<OsString, Vec<u8>>) {
        self.clear();
        files.iter().for_each(|(name, bytes)| fs::write(self.shards().join(name), bytes).unwrap());
    }
}

fn start(arguments: &[OsString]) -> Child {
    let mut command = paritas(arguments);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Kills a process, and returns whether it was still running.
fn kill(mut child: Child) -> bool {
    child.kill().unwrap();
    child.wait().unwrap().signal() == Some(9)
}

/// Returns the duration of a whole run.
fn duration(arguments: &[OsString]) -> Duration {
    let begin = Instant::now();
    run(arguments).expect(exit::DONE);
    begin.elapsed()
}

/// Kills runs at seeded moments until enough kills have landed. `prepare` sets up each run, and
/// `check` looks at the result. Returns how many kills landed, and how many runs there were.
fn kill_at_random(
    scene: &mut Scene,
    kills: usize,
    arguments: &[OsString],
    mut prepare: impl FnMut(&mut Scene),
    mut check: impl FnMut(&mut Scene),
) -> (usize, usize) {
    let mut times: Vec<Duration> = (0..3)
        .map(|_| {
            prepare(scene);
            duration(arguments)
        })
        .collect();
    times.sort_unstable();
    let micros = times[1].as_micros() as usize;
    let (mut landed, mut tried) = (0, 0);
    while landed < kills {
        prepare(scene);
        let delay = Duration::from_micros(scene.chance.within(0..micros) as u64);
        let child = start(arguments);
        std::thread::sleep(delay);
        landed += usize::from(kill(child));
        tried += 1;
        check(scene);
        assert!(tried < 20 * kills, "of {tried} kills within {micros} µs, {landed} landed");
    }
    (landed, tried)
}

/// Kills runs at a seeded moment after `has_begun` has seen that names in the folder change.
/// Returns how many kills landed.
fn kill_at_commit(
    scene: &mut Scene,
    arguments: &[OsString],
    mut prepare: impl FnMut(&mut Scene),
    has_begun: impl Fn(&Path) -> bool,
    mut check: impl FnMut(&mut Scene),
) -> usize {
    let mut landed = 0;
    for _ in 0..COMMIT_KILLS {
        prepare(scene);
        let folder = scene.shards();
        let mut child = start(arguments);
        while !has_begun(&folder) && child.try_wait().unwrap().is_none() {}
        let begin = Instant::now();
        let delay = Duration::from_micros(scene.chance.within(0..400) as u64);
        while begin.elapsed() < delay {}
        landed += usize::from(kill(child));
        check(scene);
    }
    landed
}

fn report(what: &str, (landed, tried): (usize, usize)) {
    say(&format!("kill {what}: {landed} of {tried} kills landed"));
}

fn alone() -> impl Drop {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

fn inode(path: &Path) -> Option<u64> {
    fs::symlink_metadata(path).ok().map(|metadata| metadata.ino())
}

#[test]
fn encode() {
    let _alone = alone();
    report("encode", kill_encodes(&mut Scene::new(1, "4+2", LENGTH)));
}

/// Kills encodes into an empty folder.
fn kill_encodes(scene: &mut Scene) -> (usize, usize) {
    let arguments = scene.encode(&[]);
    let check = |scene: &mut Scene| scene.check_fresh_encode();
    kill_at_random(scene, kills(), &arguments, |scene| scene.clear(), check)
}

#[test]
fn encode_force() {
    let _alone = alone();
    let mut scene = Scene::new(2, "4+2", LENGTH);
    let arguments = scene.encode(&["--force"]);
    let mut old = scene.content.clone();
    let mut first = true;
    let kills = {
        let old = RefCell::new(&mut old);
        kill_at_random(
            &mut scene,
            kills(),
            &arguments,
            |scene| {
                if std::mem::take(&mut first) {
                    scene.encoded();
                }
                **old.borrow_mut() = scene.change_content();
            },
            |scene| scene.check_forced_encode(&old.borrow()),
        )
    };
    report("encode --force", kills);
}

#[test]
fn repair() {
    let _alone = alone();
    let mut scene = Scene::new(3, "4+2", LENGTH);
    report("repair", kill_repairs(&mut scene));
}

/// Encodes, damages shards, and kills the repairs.
fn kill_repairs(scene: &mut Scene) -> (usize, usize) {
    let whole = scene.encoded();
    let arguments = scene.repair();
    let bad = RefCell::new(Vec::new());
    kill_at_random(
        scene,
        kills(),
        &arguments,
        |scene| {
            scene.restore(&whole);
            *bad.borrow_mut() = scene.harm(&whole, 2);
        },
        |scene| scene.check_repair(&whole, &bad.borrow()),
    )
}

/// Kills encode and repair with an LT code, whose shards are rebuilt from blocks of all others; in
/// the soak test only.
#[test]
fn lt_encode_and_repair() {
    if !is_soak() {
        return say("kill: LT codes are killed by scripts/test-soak alone");
    }
    let _alone = alone();
    let mut scene = Scene::new(8, LT, LENGTH / 2);
    report("encode of an LT code", kill_encodes(&mut scene));
    report("repair of an LT code", kill_repairs(&mut scene));
}

#[test]
fn encode_while_names_are_given() {
    let _alone = alone();
    let mut scene = Scene::new(4, WIDE, WIDE_LENGTH);
    let arguments = scene.encode(&[]);
    let landed = kill_at_commit(
        &mut scene,
        &arguments,
        |scene| scene.clear(),
        |folder| inode(&folder.join("object.00of60.paritas")).is_some(),
        |scene| scene.check_fresh_encode(),
    );
    report("encode at its commit", (landed, COMMIT_KILLS));
}

#[test]
fn encode_force_while_names_are_given() {
    let _alone = alone();
    let mut scene = Scene::new(5, WIDE, WIDE_LENGTH);
    scene.encoded();
    let arguments = scene.encode(&["--force"]);
    let old = RefCell::new(Vec::new());
    let before = Cell::new(None);
    let (first, last) = (OsStr::new("object.00of60.paritas"), "object.59of60.paritas");
    for watched in [first, OsStr::new(last)] {
        let landed = kill_at_commit(
            &mut scene,
            &arguments,
            |scene| {
                *old.borrow_mut() = scene.change_content();
                before.set(inode(&scene.shards().join(watched)));
            },
            |folder| inode(&folder.join(watched)) != before.get(),
            |scene| scene.check_forced_encode(&old.borrow()),
        );
        let what = format!("encode --force at its commit of {}", watched.display());
        report(&what, (landed, COMMIT_KILLS));
    }
}

#[test]
fn repair_while_names_are_given() {
    let _alone = alone();
    let mut scene = Scene::new(6, WIDE, WIDE_LENGTH);
    let whole = scene.encoded();
    let arguments = scene.repair();
    let (bad, lost) = (RefCell::new(Vec::new()), RefCell::new(None));
    let landed = kill_at_commit(
        &mut scene,
        &arguments,
        |scene| {
            scene.restore(&whole);
            *bad.borrow_mut() = scene.harm(&whole, TOLERANCE);
            *lost.borrow_mut() = bad.borrow().iter().filter(|path| !path.exists()).min().cloned();
        },
        |_| lost.borrow().as_ref().is_some_and(|path| path.exists()),
        |scene| scene.check_repair(&whole, &bad.borrow()),
    );
    report("repair at its commit", (landed, COMMIT_KILLS));
}

/// A small code with two stages, so that many kills take little time.
const STAGED: &str = "bbdpg:k=4,m=2,m2=3,interleave=all";
const STAGED_LENGTH: usize = 6_000_000;
/// A code with a second part for each of 16 shards.
const WIDE_STAGED: &str = "dpg:k=8,m=6,m2=8,interleave=all";

#[test]
fn promote() {
    let _alone = alone();
    let mut scene = Scene::new(9, STAGED, STAGED_LENGTH);
    let files = scene.promoted();
    let arguments = scene.promote();
    let kills = kill_at_random(
        &mut scene,
        2 * kills(),
        &arguments,
        |scene| scene.restore(&files[0]),
        |scene| scene.check_promote(&files, 2),
    );
    report("promote", kills);
}

#[test]
fn promote_while_names_are_given() {
    let _alone = alone();
    let mut scene = Scene::new(10, WIDE_STAGED, WIDE_LENGTH);
    let files = scene.promoted();
    // Syncing to the disk makes the moment last.
    let arguments = args!["promote", scene.shards()].to_vec();
    let has_begun = |folder: &Path| names(folder).len() > files[0].len();
    let prepare = |scene: &mut Scene| scene.restore(&files[0]);
    let landed = kill_at_commit(&mut scene, &arguments, prepare, has_begun, |scene| {
        scene.check_promote(&files, 6);
    });
    report("promote at its commit", (landed, COMMIT_KILLS));
}

#[test]
fn nothing_is_left_after_an_undisturbed_run() {
    let mut scene = Scene::new(7, WIDE, WIDE_LENGTH);
    let whole = scene.encoded();
    let old = scene.change_content();
    assert!(old != scene.content);
    assert_ne!(scene.encoded(), whole);
    let whole = snapshot(&scene.shards());
    scene.harm(&whole, TOLERANCE);
    run(scene.repair()).expect(exit::DONE);
    assert_eq!(snapshot(&scene.shards()), whole);
    assert!(!names(&scene.shards()).iter().any(|name| is_leftover(name)));
}
