//! Protection by the command: what people type, what they read, exit codes, and JSON. Files that
//! may not be read or written are in `permissions`. This file is long because it has one walk for
//! each verb, and what they refuse.

mod excludes;
mod losses;
mod parts;
mod people;
mod permissions;
mod scarcity;

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, FileTimes, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::common::{
    self, Chance, Run, exit, finish, names, paritas, renew_times, run, run_as_user,
    snapshot_without_copies as snapshot,
};

/// A folder with a tree of files.
struct Yard {
    folder: TempDir,
}

const FILES: [(&str, usize); 6] = [
    ("a.jpg", 200_000),
    ("b.jpg", 3_000),
    ("cache/x.tmp", 500),
    ("deep/er/c.txt", 50_000),
    ("deep/empty", 0),
    ("z", 100_000),
];

impl Yard {
    fn new() -> Self {
        let yard = Self { folder: tempfile::tempdir().unwrap() };
        for (number, (name, length)) in (0..).zip(FILES) {
            let path = yard.photo(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, Chance(number).bytes(length)).unwrap();
        }
        yard
    }

    fn protected(more: &[&str]) -> Self {
        let yard = Self::new();
        yard.protect(more).expect(exit::DONE);
        yard
    }

    fn protect(&self, more: &[&str]) -> Run {
        let done = run(args!["protect", self.root(), "--no-sync"; more]);
        renew_times(&self.root());
        done
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn root(&self) -> PathBuf {
        self.path("photos")
    }

    fn photo(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    fn parity(&self) -> Vec<PathBuf> {
        let folder = self.photo(".paritas");
        names(&folder).iter().map(|name| folder.join(name)).collect()
    }
}

/// Flips a byte of a file, and keeps its time, as a disk does.
fn flip(path: &Path, at: u64) {
    let time = fs::metadata(path).unwrap().modified().unwrap();
    let file = File::options().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 1], at).unwrap();
    file.set_times(FileTimes::new().set_modified(time)).unwrap();
}

fn json(arguments: impl IntoIterator<Item = OsString>, code: i32) -> Value {
    run(arguments.into_iter().chain(args!["--json"])).expect(code).result()
}

fn states(report: &Value) -> Vec<(&str, &str)> {
    let findings = report["findings"].as_array().unwrap().iter();
    findings
        .map(|finding| {
            let path = finding["path"].as_str().unwrap();
            (finding["state"].as_str().unwrap(), path.rsplit('/').next().unwrap())
        })
        .collect()
}

#[test]
fn damage_is_found_and_repaired() {
    let yard = Yard::new();
    let text = yard.protect(&["--redundancy", "50%"]).expect(exit::DONE).text();
    assert!(text.starts_with("photos: 6 files, 345.21 KiB protected"), "{text}");
    assert!(text.contains("\n  repairs  any ") && text.contains("photos/.paritas"), "{text}");
    assert!(text.contains(" blocks, about ") && text.contains(", wherever they are\n"), "{text}");
    let before = [snapshot(&yard.root()), snapshot(&yard.photo("deep/er"))];
    let intact = run(args!["verify", yard.root()]).expect(exit::DONE).text();
    assert!(intact.contains("/photos: intact, 6 files, 345.21 KiB; "), "{intact}");

    flip(&yard.photo("a.jpg"), 150_000);
    fs::remove_dir_all(yard.photo("deep/er")).unwrap();
    flip(&yard.parity()[1], 3_000);
    fs::remove_file(&yard.parity()[2]).unwrap();
    let verify = run(args!["verify", yard.root()]).expect(exit::REPAIRABLE).text();
    assert!(verify.contains(": repairable, 6 files"), "{verify}");
    let counts = "\n  1 damaged, 2 missing, 2 of the parity files not intact\n  damaged  a.jpg";
    assert!(verify.contains(counts), "{verify}");
    let repair = format!("`paritas repair {}` restores", yard.root().display());
    assert!(verify.contains(&format!("\n  next     {repair}")), "{verify}");
    let line = verify.lines().find(|line| line.starts_with("  damaged  a.jpg: bytes ")).unwrap();
    let mut ends = line.split_whitespace().filter_map(|word| word.parse::<u64>().ok());
    let (start, end) = (ends.next().unwrap(), ends.next().unwrap());
    assert!((start..end).contains(&150_000) && end - start < 20_000, "{line}");
    assert!(verify.contains("\n  missing  deep/er/c.txt, 48.83 KiB"), "{verify}");
    // In a report, everything in the root is named by its path below the root.
    assert!(verify.contains("1 block damaged") && verify.contains(" is missing"), "{verify}");
    assert_eq!(verify.matches("\n  parity   .paritas/photos-").count(), 2, "{verify}");

    let report = json(args!["verify", yard.root()], exit::REPAIRABLE);
    assert_eq!(states(&report), [("damaged", "a.jpg"), ("missing", "er"), ("missing", "c.txt")]);
    assert_eq!(report["findings"][0]["ranges"], json!([{"start": start, "end": end}]));
    assert_eq!((&report["intact_files"], &report["files"]), (&json!(4), &json!(6)));
    assert_eq!(report["parity"].as_array().unwrap().len(), 2);

    let repair = run(args!["repair", yard.root()]).expect(exit::DONE).text();
    assert!(repair.contains("\n  restored a.jpg\n"), "{repair}");
    assert!(repair.contains("2 parity files written anew"), "{repair}");
    assert_eq!(repair.matches("\n  parity   .paritas/photos-").count(), 2, "{repair}");
    assert!([snapshot(&yard.root()), snapshot(&yard.photo("deep/er"))] == before);
    run(args!["verify", yard.root()]).expect(exit::DONE);
    let again = run(args!["repair", yard.root()]).expect(exit::DONE).text();
    assert!(again.contains(": intact, nothing to repair"), "{again}");

    // A pattern of the shell for all parity files takes the list of restored files as well.
    let list = yard.root().join(".paritas/photos-01234567.restored.parity");
    fs::write(&list, [&b"Paritas restored"[..], &[7; 16]].concat()).unwrap();
    let parity = fs::read_dir(yard.root().join(".paritas")).unwrap();
    let parity: Vec<OsString> = parity.map(|entry| entry.unwrap().path().into()).collect();
    assert!(parity.contains(&list.into()));
    for command in ["verify", "repair", "info"] {
        run([&args![command][..], &parity[..]].concat()).expect(exit::DONE);
    }
    run([&args!["protect", "--update", "--no-sync"][..], &parity[..]].concat()).expect(exit::DONE);
}

#[test]
fn beyond_repair() {
    let yard = Yard::protected(&[]);
    fs::remove_file(yard.photo("a.jpg")).unwrap();
    let spared = snapshot(&yard.root());
    let verify = run(args!["verify", yard.root()]).expect(exit::LOST).text();
    assert!(verify.contains(": lost, ") && verify.contains("beyond repair"), "{verify}");
    let root = yard.root().display().to_string();
    let now = format!("\n  next     `paritas repair {root}` restores now");
    assert!(verify.contains("\n  next     put copies of the lost files"), "{verify}");
    assert!(!verify.contains(&now), "{verify}");
    // An update would give up what is lost.
    fs::write(yard.photo("new"), "new").unwrap();
    let verify = run(args!["verify", yard.root(), "-v"]).expect(exit::LOST).text();
    assert!(verify.contains("\n  new      new") && !verify.contains("--update"), "{verify}");
    fs::remove_file(yard.photo("new")).unwrap();
    let report = json(args!["verify", yard.root()], exit::LOST);
    let layer = &report["layers"][0];
    let [lost, at_hand, needed] = ["lost", "at_hand", "needed"].map(|name| layer[name].as_u64());
    assert!(needed.unwrap() > 0);
    assert_eq!(lost.unwrap() - at_hand.unwrap(), needed.unwrap());
    // A file that needs no parity is still restored, such as an empty one.
    fs::remove_file(yard.photo("deep/empty")).unwrap();
    let verify = run(args!["verify", yard.root()]).expect(exit::LOST).text();
    assert!(verify.contains(&now), "{verify}");
    let repair = json(args!["repair", yard.root()], exit::LOST);
    assert_eq!((&repair["status"], &repair["needed"]), (&json!("lost"), &layer["needed"]));
    assert_eq!(repair["lost"], json!([{"path": yard.photo("a.jpg")}]));
    assert!(snapshot(&yard.root()) == spared);
    let repair = run(args!["repair", yard.root()]).expect(exit::LOST).text();
    assert!(repair.contains("lost     a.jpg"), "{repair}");
    assert!(repair.contains("\n  next     put copies of the lost files"), "{repair}");
    fs::write(yard.photo("b.jpg"), "on purpose").unwrap();
    let repair = run(args!["repair", yard.root()]).expect(exit::LOST).text();
    assert!(repair.contains("changed  b.jpg") && !repair.contains("--update"), "{repair}");
    // Without any catalogue, nothing is known.
    yard.parity().iter().for_each(|file| fs::write(file, [0; 5000]).unwrap());
    let verify = run(args!["verify", yard.root()]).expect(exit::NOT_RECOGNISED);
    assert!(verify.stderr.contains("0of5.parity and 4 more are damaged"), "{verify}");
    run(args!["verify", "--recursive", yard.path("")]).expect(exit::NOT_RECOGNISED);
}

/// One block is lost, and so is the only parity block.
#[test]
fn one_block_too_many() {
    let yard = Yard::new();
    let file = yard.path("file");
    fs::write(&file, "byte").unwrap();
    run(args!["protect", &file]).expect(exit::DONE);
    fs::remove_file(&file).unwrap();
    let parity = yard.path(".paritas");
    fs::remove_file(parity.join(&names(&parity)[0])).unwrap();
    let verify = run(args!["verify", yard.path("")]).expect(exit::LOST).text();
    assert!(verify.contains("1 block lost, 0 parity blocks at hand, 1 more is needed"), "{verify}");
}

#[test]
fn what_is_refused() {
    let yard = Yard::new();
    let fails = |arguments: &[OsString], code, what: &str| {
        let error = run([arguments, &args!["--json"]].concat()).expect(code).error();
        let message = error["message"].as_str().unwrap().to_owned();
        assert!(message.contains(what), "{what:?} is not in {message}");
    };
    let root = yard.root();
    let (bad, nowhere) = (exit::ARGUMENTS, yard.path("nowhere"));
    fails(&args!["protect"], bad, "PATH");
    for (redundancy, what) in [("0%", "0.1%"), ("2000%", "1000%"), ("x", "x")] {
        fails(&args!["protect", &root, "--redundancy", redundancy], bad, what);
    }
    fails(&args!["protect", &root, "--memory", "1000"], bad, "1MiB");
    fails(&args!["protect", &root, "--exclude", "a[b"], bad, "a[b");
    fails(&args!["protect", &root, "--name", "a/b"], bad, "a/b");
    fails(&args!["protect", &root, "--parity-dir", &nowhere], bad, "nowhere");
    let twice = args!["protect", &root, "--parity-dir", &root, "--parity-dir", root.join(".")];
    fails(&twice, bad, "given twice in --parity-dir");
    fails(&args!["protect", &root, "--update", "--force"], bad, "--force");
    fails(&args!["protect", &nowhere], exit::IO, "nowhere");
    fs::create_dir(yard.path("empty")).unwrap();
    fails(&args!["protect", yard.path("empty")], bad, "mounted");
    assert!(names(&yard.path("empty")).is_empty());
    fails(&args!["protect", "--update", &root], exit::NOT_RECOGNISED, "not protected yet");
    fails(&args!["verify", &root], exit::NOT_RECOGNISED, "photos");

    yard.protect(&[]).expect(exit::DONE);
    fails(&args!["protect", &root], bad, "--force");
    fails(&args!["protect", root.join(".paritas")], bad, "holds the parity of other files");
    fs::create_dir(root.join("inner")).unwrap();
    let above = "photos above it protects other files";
    fails(&args!["verify", root.join("inner")], exit::NOT_RECOGNISED, above);
    let (part, out) = (yard.photo("a.jpg"), yard.path("out"));
    let above = "photos above it protects it, and `paritas repair`";
    fails(&args!["decode", part, "--out", out], exit::NOT_RECOGNISED, above);
    // More threads than any system starts are asked for.
    yard.protect(&["--force", "--threads=100000"]).expect(exit::DONE);
    assert_eq!(yard.parity().len(), 5);
    fails(&args!["verify", &root, "--deep"], bad, "--deep is for shards");
    for option in ["--rebalance", "--fewest-reads", "--remove-moved-aside"] {
        fails(&args!["repair", &root, option], bad, option);
    }
    let shards = yard.path("shards");
    common::encode(&yard.photo("z"), &shards, "4+2", &[]);
    fails(&args!["verify", &shards, "--quick"], bad, "--quick is for protected files");
    for option in ["--move-back", "--restore-changed", "--memory=1GiB"] {
        fails(&args!["repair", &shards, option], bad, option.split('=').next().unwrap());
    }
    // Files on a disk that is not mounted do not count as removed.
    let moved = yard.path("moved");
    fs::create_dir(&moved).unwrap();
    fs::rename(yard.photo(".paritas"), moved.join(".paritas")).unwrap();
    fails(&args!["protect", "--update", &moved], bad, "mounted");
}

#[test]
fn parity_elsewhere_and_several_roots() {
    let yard = Yard::new();
    let disks = ["one", "two"].map(|disk| yard.path(disk));
    disks.iter().for_each(|disk| fs::create_dir(disk).unwrap());
    let other = yard.path("other.img");
    fs::write(&other, Chance(77).bytes(40_000)).unwrap();
    let protect = json(
        args![
            "protect",
            yard.root(),
            &other,
            "--name",
            "both",
            "--parity-dir",
            &disks[0],
            "--parity-dir",
            &disks[1],
            "--redundancy",
            "300%",
            "--no-sync"
        ],
        exit::DONE,
    );
    assert_eq!((&protect["label"], &protect["files"]), (&json!("both"), &json!(7)));
    assert_eq!(protect["root"], yard.folder.path().canonicalize().unwrap().to_str().unwrap());
    assert!(!yard.photo(".paritas").exists() && !yard.path(".paritas").exists());
    assert_eq!((names(&disks[0]).len(), names(&disks[1]).len()), (2, 2));
    // The parity on one disk names the other disk and the root.
    run(args!["verify", &disks[0]]).expect(exit::DONE);
    // The root has moved, and so has the parity. Half of the parity is enough for everything.
    let (new, parity) = (yard.path("new"), yard.path("parity"));
    fs::create_dir(&new).unwrap();
    fs::rename(yard.root(), new.join("photos")).unwrap();
    fs::remove_file(other).unwrap();
    fs::rename(&disks[1], &parity).unwrap();
    fs::remove_dir_all(&disks[0]).unwrap();
    let report = json(args!["verify", &new, &parity], exit::REPAIRABLE);
    assert!(states(&report).contains(&("missing", "other.img")), "{report}");
    assert_eq!(report["findings"].as_array().unwrap().len(), 1, "{report}");
    let rescued = yard.path("rescued");
    fs::create_dir(&rescued).unwrap();
    run(args!["repair", &new, &parity, "--to", &rescued]).expect(exit::DONE);
    assert!(fs::read(rescued.join("other.img")).unwrap() == Chance(77).bytes(40_000));
    assert!(!new.join("other.img").exists());
    run(args!["repair", &new, &parity]).expect(exit::DONE);
    run(args!["verify", &new, &parity]).expect(exit::DONE);
}

#[test]
fn one_file_and_several_protections() {
    let yard = Yard::new();
    for file in ["a.jpg", "z"] {
        run(args!["protect", yard.photo(file), "--no-sync"]).expect(exit::DONE);
    }
    assert_eq!(yard.parity().len(), 10);
    flip(&yard.photo("z"), 10);
    run(args!["verify", yard.photo("a.jpg")]).expect(exit::DONE);
    let text = run(args!["verify", yard.photo("z")]).expect(exit::REPAIRABLE).text();
    assert!(text.contains("/photos (z): repairable"), "{text}");
    let both = run(args!["verify", yard.root(), "--json"]).expect(exit::REPAIRABLE).results();
    let kinds: Vec<&str> = both.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["protect-verify", "protect-verify", "summary"]);
    run(args!["verify", yard.root(), "--object", "a.jpg"]).expect(exit::DONE);
    run(args!["verify", yard.root(), "--object", "b"]).expect(exit::NOT_RECOGNISED);
    let parity = yard.parity().into_iter().rfind(|path| path.to_string_lossy().contains("/z-"));
    run(args!["repair", parity.unwrap()]).expect(exit::DONE);
    run(args!["verify", yard.root()]).expect(exit::DONE);
}

/// Shards in a protected tree are examined only with --recursive. The worst exit code wins.
#[test]
fn shards_in_a_protected_tree() {
    let yard = Yard::new();
    let shards = yard.photo("deep/shards");
    common::encode(&yard.photo("a.jpg"), &shards, "4+2", &[]);
    yard.protect(&["--exclude", "deep/shards"]).expect(exit::DONE);
    names(&shards).iter().take(3).for_each(|name| fs::remove_file(shards.join(name)).unwrap());
    run(args!["verify", yard.root()]).expect(exit::DONE);
    let all = run(args!["verify", yard.root(), "--recursive", "--json"]).expect(exit::LOST);
    let kinds: Vec<Value> = all.results().iter().map(|line| line["status"].clone()).collect();
    assert_eq!(kinds, [json!("intact"), json!("lost"), Value::Null]);
    // A protection is found in a folder below, too. --deep is for shards, and --quick for protected
    // files.
    let below = args!["verify", yard.folder.path(), "-r", "--deep", "--quick", "--json"];
    assert_eq!(run(below).expect(exit::LOST).results().len(), 3);
    run(args!["info", yard.root(), &shards]).expect(exit::DONE);
}

/// --object may name a protection or an object of shards, whichever paths stand beside.
#[test]
fn an_object_is_named_among_protections_and_shards() {
    let yard = Yard::protected(&[]);
    let [beside, inside] = [yard.path("shards"), yard.photo("deep/shards")];
    for shards in [&beside, &inside] {
        common::encode(&yard.photo("a.jpg"), shards, "4+2", &[]);
        for verb in ["verify", "info", "repair"] {
            let named = |name: &str| args![verb, yard.root(), shards, "--object", name, "--json"];
            for (name, key, value) in [("photos", "label", "photos"), ("a.jpg", "name", "a.jpg")] {
                let results = run(named(name)).expect(exit::DONE).results();
                assert_eq!(results.len(), 1, "{verb} {name}: {results:?}");
                assert_eq!(results[0][key], value, "{verb} {name}: {results:?}");
            }
            run(named("neither")).expect(exit::NOT_RECOGNISED);
        }
    }
}

#[test]
fn changes_and_updates() {
    let yard = Yard::protected(&["--redundancy", "100%"]);
    let update = args!["protect", "--update", yard.root(), "--no-sync"];
    // The first update of a copied tree only notes its ctimes.
    let noted = json(update.clone(), exit::DONE);
    assert_eq!((&noted["kept"], &noted["files"]), (&json!(6), &json!(0)));
    let nothing = json(update.clone(), exit::DONE);
    assert_eq!((&nothing["updated"], &nothing["stored_bytes"]), (&json!("nothing"), &json!(0)));

    fs::write(yard.photo("b.jpg"), "on purpose").unwrap();
    fs::rename(yard.photo("z"), yard.photo("deep/y")).unwrap();
    fs::write(yard.photo("new"), "new").unwrap();
    let verify = run(args!["verify", yard.root()]).expect(exit::REPAIRABLE).text();
    let root = yard.root().display().to_string();
    for line in [
        "1 changed, 1 moved, 1 new",
        "changed  b.jpg",
        "moved    z is now deep/y",
        &format!("next     `paritas protect --update {root}` protects changed files as they are"),
        &format!("next     `paritas repair --restore-changed {root}` restores"),
        &format!("next     `paritas repair --move-back {root}` moves back"),
        &format!("next     `paritas protect --update {root}` protects new files"),
    ] {
        assert!(verify.contains(&format!("\n  {line}")), "{verify}");
    }
    assert!(!verify.contains("\n  new      new"), "{verify}");
    let verify = run(args!["verify", yard.root(), "-v"]).expect(exit::REPAIRABLE).text();
    assert!(verify.contains("\n  new      new"), "{verify}");
    let repair = run(args!["repair", yard.root()]).expect(exit::REPAIRABLE).text();
    assert!(repair.contains("changed  b.jpg stays") && repair.contains("--update"), "{repair}");
    assert_eq!(fs::read(yard.photo("b.jpg")).unwrap(), b"on purpose");

    let report = json(update.clone(), exit::DONE);
    assert_eq!(
        (&report["kept"], &report["added"], &report["changed"], &report["gone"]),
        (&json!(5), &json!(1), &json!(1), &json!(0))
    );
    let verify = run(args!["verify", yard.root()]).expect(exit::DONE).text();
    // One number for the whole protection: that of the layer with the least parity.
    let room = "may be lost, about 512 B, wherever they are";
    assert!(verify.contains("; any 1 more of ") && verify.contains(room), "{verify}");
    assert!(!verify.contains("layer"), "{verify}");
    let layers = run(args!["verify", yard.root(), "-v"]).expect(exit::DONE).text();
    assert_eq!(layers.matches("\n  layer    ").count(), 2, "{layers}");
    fs::remove_file(yard.photo("new")).unwrap();
    run(args!["repair", yard.root()]).expect(exit::DONE);
    assert_eq!(fs::read(yard.photo("new")).unwrap(), b"new");

    // Damage is not taken for a change.
    renew_times(&yard.root());
    flip(&yard.photo("a.jpg"), 7);
    let checked = [&update[..], &args!["--checksum"]].concat();
    let error = run(checked).expect(exit::CHECK_FAILED).stderr;
    assert!(error.contains("a.jpg is damaged"), "{error}");
}

#[test]
fn changed_and_moved_files_go_back_if_asked() {
    let yard = Yard::protected(&["--redundancy", "100%"]);
    let before = snapshot(&yard.root());
    fs::write(yard.photo("b.jpg"), "on purpose").unwrap();
    fs::rename(yard.photo("z"), yard.photo("deep/y")).unwrap();
    let repair = args!["repair", yard.root(), "--restore-changed", "--move-back"];
    let report = json(repair, exit::DONE);
    assert_eq!(report["moved_back"].as_array().unwrap().len(), 1);
    assert_eq!((&report["status"], &report["changed"]), (&json!("repaired"), &json!([])));
    assert!(snapshot(&yard.root()) == before);
}

/// A link in place of one root's parity is reported, even if only a file is to be verified, and the
/// other root is still verified.
#[test]
fn a_link_in_place_of_parity_hides_no_other_protection() {
    let (whole, linked) = (Yard::protected(&[]), Yard::protected(&[]));
    let (parity, moved) = (linked.root().join(".paritas"), linked.path("moved"));
    fs::rename(&parity, &moved).unwrap();
    std::os::unix::fs::symlink(&moved, &parity).unwrap();
    let both = run(args!["verify", whole.root(), linked.root()]).expect(exit::IO);
    assert!(both.text().contains(": intact"), "{}", both.text());
    let file = run(args!["verify", linked.photo("a.jpg")]).expect(exit::IO);
    for stderr in [&both.stderr, &file.stderr] {
        assert!(stderr.contains(".paritas") && stderr.contains("link"), "{stderr}");
    }
}

#[test]
fn quick_reads_what_was_touched() {
    let yard = Yard::protected(&[]);
    let quick = args!["verify", yard.root(), "--quick"];
    let text = run(&quick).expect(exit::DONE).text();
    assert!(text.contains(": intact by size and time, "), "{text}");
    flip(&yard.photo("a.jpg"), 7);
    let text = run(&quick).expect(exit::REPAIRABLE).text();
    assert!(text.contains("damaged  a.jpg"), "{text}");
    flip(&yard.photo("a.jpg"), 7);
    run(&quick).expect(exit::DONE);
    let file = File::options().write(true).open(yard.photo("b.jpg")).unwrap();
    file.set_times(FileTimes::new().set_modified(SystemTime::now() - Duration::from_secs(9)))
        .unwrap();
    file.set_len(5).unwrap();
    run(&quick).expect(exit::REPAIRABLE);
}

/// A report fits on a screen unless --verbose is given; JSON has everything.
#[test]
fn long_reports_are_cut() {
    let yard = Yard::new();
    let many = (0..40).map(|number| yard.photo(&format!("many{number}")));
    let many: Vec<PathBuf> = many.collect();
    many.iter().for_each(|path| fs::write(path, "x").unwrap());
    yard.protect(&["--exclude", "*.tmp"]).expect(exit::DONE);
    many.iter().for_each(|path| fs::remove_file(path).unwrap());
    let text = run(args!["verify", yard.root()]).expect(exit::REPAIRABLE).text();
    assert!(text.lines().count() < 20 && text.contains("28 more; --verbose"), "{text}");
    let all = run(args!["verify", yard.root(), "-v"]).expect(exit::REPAIRABLE).text();
    // The title, the counts, the files, and what to do.
    assert_eq!(all.lines().count(), 1 + 1 + 40 + 1, "{all}");
    let report = json(args!["verify", yard.root()], exit::REPAIRABLE);
    assert_eq!(report["findings"].as_array().unwrap().len(), 40);
}

#[test]
fn names_are_any_bytes() {
    let yard = Yard::new();
    let odd = yard.root().join(OsStr::from_bytes(b"caf\xe9\n\x1b[31m"));
    fs::write(&odd, "odd").unwrap();
    yard.protect(&[]).expect(exit::DONE);
    let label = yard.protect(&["--name", "two\nlines"]).expect(exit::DONE).text();
    assert!(label.starts_with(r"two\nlines: 7 files"), "{label}");
    fs::remove_file(&odd).unwrap();
    let text = run(args!["verify", yard.root()]).expect(exit::REPAIRABLE).text();
    assert!(text.contains(r"\n\u{1b}[31m") && !text.contains('\u{1b}'), "{text}");
    let report = json(args!["repair", yard.root(), "--object", "photos"], exit::DONE);
    assert!(report["restored"][0].get("path_bytes").is_some(), "{report}");
    assert_eq!(fs::read(&odd).unwrap(), b"odd");
}

#[test]
fn info_says_what_is_there() {
    let yard = Yard::protected(&["--redundancy", "20%", "--exclude", "*.tmp"]);
    let report = json(args!["info", yard.root()], exit::DONE);
    assert_eq!((&report["files"], &report["others"]), (&json!(5), &json!(3)));
    assert_eq!((&report["redundancy"], &report["excludes"]), (&json!(0.2), &json!(["*.tmp"])));
    let stored: u64 = yard.parity().iter().map(|path| path.metadata().unwrap().len()).sum();
    assert_eq!(report["stored_bytes"], stored);
    let text = run(args!["info", yard.root()]).expect(exit::DONE).text();
    assert!(text.contains(" bytes may be lost, about "), "{text}");
    assert!(text.contains("20% asked for") && text.contains("without  *.tmp"), "{text}");
}

/// The examples in the help of `protect` do what they say.
#[test]
fn the_examples_work() {
    let yard = Yard::new();
    fs::write(yard.path("disk.img"), "image").unwrap();
    fs::create_dir(yard.path("mail")).unwrap();
    fs::write(yard.path("mail/1"), "mail").unwrap();
    let help = run(["protect", "--help"]).expect(exit::DONE).text();
    let examples = help.lines().map(str::trim).filter(|line| line.starts_with("paritas "));
    let mut count = 0;
    for example in examples {
        count += 1;
        let example = example.split("   ").next().unwrap();
        let example = example.replace("/disk", &format!("{}/disk", yard.folder.path().display()));
        for disk in ["disk2/parity", "disk3/parity"] {
            fs::create_dir_all(yard.path(disk)).unwrap();
        }
        match example.contains("protect photos") {
            true => _ = fs::remove_dir_all(yard.photo(".paritas")),
            false => _ = yard.protect(&["--force"]),
        }
        let path = Path::new(env!("CARGO_BIN_EXE_paritas")).parent().unwrap();
        let mut command = Command::new("/bin/sh");
        command.args(["-ec", &example]).current_dir(yard.folder.path()).env("PATH", path);
        finish(command).expect(exit::DONE);
    }
    assert_eq!(count, 9, "{help}");
}

/// The script for cron in docs/protect.md is silent while all is well, repairs what is damaged, and
/// then protects what is new.
#[test]
fn the_script_for_cron_works() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/protect.md");
    let page = fs::read_to_string(page).unwrap();
    let script = page.split("```sh\n").nth(1).unwrap().split("```").next().unwrap();
    let yard = Yard::protected(&["--redundancy", "50%"]);
    let script = script.replace("/usr/local/bin/paritas", env!("CARGO_BIN_EXE_paritas"));
    let script = script.replace("/srv/photos", yard.root().to_str().unwrap());
    let cron = || {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &script]).env_clear();
        finish(command).expect(exit::DONE)
    };
    let is_silent = |run: &Run| run.stdout.is_empty() && run.stderr.is_empty();
    let well = cron();
    assert!(is_silent(&well), "{well}");

    renew_times(&yard.root());
    flip(&yard.photo("a.jpg"), 150_000);
    fs::write(yard.photo("b.jpg"), "on purpose").unwrap();
    fs::write(yard.photo("new"), "new").unwrap();
    let text = cron().text();
    for line in ["  damaged  a.jpg", "  restored a.jpg", "  changed  b.jpg stays as it is"] {
        assert!(text.contains(line), "{text}");
    }
    let well = cron();
    assert!(is_silent(&well), "{well}");
    let report = json(args!["verify", yard.root()], exit::DONE);
    assert_eq!((&report["files"], &report["new"]), (&json!(7), &json!([])));

    fs::remove_file(yard.photo("a.jpg")).unwrap();
    yard.parity().iter().for_each(|path| fs::remove_file(path).unwrap());
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &script]);
    let lost = finish(command).expect(exit::NOT_RECOGNISED);
    assert!(!yard.photo("a.jpg").exists() && yard.parity().is_empty(), "{lost}");
}

/// A signal leaves nothing under a final name, and the command can be run again. (Not the signal of
/// Ctrl-C: it is ignored if a shell runs the tests in the background.)
#[test]
fn a_signal_leaves_nothing() {
    let yard = Yard::new();
    // Four GiB of zeros take no room, but seconds to read.
    File::create(yard.photo("large")).unwrap().set_len(4 << 30).unwrap();
    for delay in [30, 120] {
        let arguments = args!["protect", yard.root(), "--memory", "1MiB", "--no-sync"];
        let mut child =
            paritas(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(delay));
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        let status = child.wait().unwrap();
        assert_eq!(status.signal(), Some(Signal::TERM.as_raw()), "{status}");
        let parity = yard.photo(".paritas");
        let left = if parity.exists() { names(&parity) } else { Vec::new() };
        assert!(left.iter().all(|name| common::is_leftover(name)), "{left:?}");
        run(args!["verify", yard.root()]).expect(exit::NOT_RECOGNISED);
    }
}

/// If files must be read more than once, the command says so beforehand.
#[test]
fn passes_are_announced() {
    let yard = Yard::new();
    fs::write(yard.photo("large"), Chance(5).bytes(4_000_000)).unwrap();
    let protect = yard.protect(&["--memory", "1MiB", "--redundancy", "50%"]).expect(exit::DONE);
    assert!(protect.stderr.contains("do not fit into --memory 1.00 MiB"), "{protect}");
    flip(&yard.photo("large"), 3_000_000);
    run(args!["repair", yard.root(), "--memory", "1MiB", "--no-sync"]).expect(exit::DONE);
    run(args!["verify", yard.root()]).expect(exit::DONE);
}

/// One of two disks with parity is lost. It is reported while it is gone, and a new disk in its
/// place is filled. The new disk is not taken for the protected root.
#[test]
fn a_disk_with_parity_is_replaced() {
    let yard = Yard::new();
    let [one, other] = ["one", "other"].map(|name| yard.path(name));
    [&one, &other].iter().for_each(|folder| fs::create_dir(folder).unwrap());
    let (root, before) = (yard.root(), snapshot(&yard.root()));
    let folders = args!["--parity-dir", &one, "--parity-dir", &other, "--redundancy", "250%"];
    run([&args!["protect", &root][..], &folders].concat()).expect(exit::DONE);
    assert_eq!((names(&one).len(), names(&other).len()), (2, 2));
    fs::remove_dir_all(&one).unwrap();
    let verify = run(args!["verify", &root, &other]).expect(exit::REPAIRABLE);
    assert!(verify.stderr.contains("one for parity of") && verify.stderr.contains("mounted?"));
    fs::create_dir(&one).unwrap();
    let elsewhere = yard.path("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let repair = run(args!["repair", &root, &other, "--to", &elsewhere]).expect(exit::REPAIRABLE);
    assert!(
        repair.text().contains("2 parity files to be written anew, by `repair` without --to"),
        "{repair}"
    );
    let repair = json(args!["repair", &one, &other], exit::DONE);
    assert_eq!((&repair["root"], &repair["restored"]), (&json!(root), &json!([])), "{repair}");
    assert_eq!((names(&one).len(), names(&other).len()), (2, 2));
    assert!(snapshot(&root) == before);
    run(args!["verify", &one, &other]).expect(exit::DONE);
}

/// A protection that cannot be used is reported, even if another one beside it can be used.
#[test]
fn what_cannot_be_used_is_said() {
    let yard = Yard::protected(&["--name", "one"]);
    yard.protect(&["--name", "two"]).expect(exit::DONE);
    run(args!["verify", yard.root()]).expect(exit::DONE);
    let is_second = |path: &PathBuf| path.file_name().unwrap().as_bytes().starts_with(b"two");
    let second: Vec<PathBuf> = yard.parity().into_iter().filter(is_second).collect();
    for path in &second {
        File::options().write(true).open(path).unwrap().set_len(400).unwrap();
    }
    for options in [&["--quiet"][..], &["--recursive"]] {
        let verify = run(args!["verify", yard.root(); options]).expect(exit::NOT_RECOGNISED);
        let said = verify.stderr.matches("left of its catalogue in 5 parity files").count();
        assert_eq!(said, 1, "{verify}");
    }
    run(args!["verify", yard.root(), "--object", "one"]).expect(exit::DONE);
    let one = yard.parity()[0].clone();
    run(args!["verify", one]).expect(exit::DONE);
}

/// A root and its copy are both reported, even if only one of them is damaged.
#[test]
fn copies_are_reported_one_by_one() {
    let yard = Yard::protected(&[]);
    let copy = yard.path("copy");
    let copied = Command::new("cp").arg("-a").args([yard.root(), copy.clone()]).status();
    assert!(copied.unwrap().success());
    fs::remove_file(yard.photo("b.jpg")).unwrap();
    for paths in [args![yard.root(), &copy], args!["--recursive", yard.folder.path()]] {
        let verify = run(args!["verify"].into_iter().chain(paths)).expect(exit::REPAIRABLE);
        let said = |what: &str| verify.text().contains(what);
        assert!(said("/photos: repairable") && said("/copy (photos): intact"), "{verify}");
    }
    let update = run(args!["protect", "--update", yard.root(), &copy]).expect(exit::DONE);
    assert!(update.text().contains("6 files kept, 0 new, 0 changed, 0 gone"), "{update}");
    // That the copy is intact does not hide that nothing is known about the root.
    for path in yard.parity() {
        File::options().write(true).open(path).unwrap().set_len(400).unwrap();
    }
    let verify = run(args!["verify", yard.root(), &copy]).expect(exit::NOT_RECOGNISED);
    assert!(verify.stderr.contains("no parity file has enough"), "{verify}");
}

/// If a root is given with the parity of several roots, its own protection is used.
#[test]
fn parity_of_several_roots_in_one_folder() {
    let yard = Yard::new();
    let [one, two, parity, moved] = ["one", "two", "parity", "moved"].map(|name| yard.path(name));
    fs::create_dir(&parity).unwrap();
    for (number, root) in (0..).zip([&one, &two]) {
        fs::create_dir(root).unwrap();
        fs::write(root.join("index"), Chance(number).bytes(20_000)).unwrap();
        let options = args!["--parity-dir", &parity, "--redundancy", "120%"];
        run(args!["protect", root].into_iter().chain(options)).expect(exit::DONE);
    }
    let before = snapshot(&one);
    let repair = run(args!["repair", &one, &parity]).expect(exit::DONE);
    assert_eq!(repair.text().matches("nothing to repair").count(), 1, "{repair}");
    assert!(snapshot(&one) == before);
    let both = run(args!["verify", &parity]).expect(exit::DONE);
    assert_eq!(both.text().matches(": intact").count(), 2, "{both}");
    // If no protection names the root and both could be meant, the user must choose one.
    let copied = Command::new("cp").arg("-a").args([&two, &moved]).status();
    assert!(copied.unwrap().success());
    let verify = run(args!["verify", &moved, &parity]).expect(exit::ARGUMENTS);
    assert!(verify.stderr.contains("choose one with --object"), "{verify}");
    run(args!["verify", &moved, &parity, "--object", "two"]).expect(exit::DONE);
    fs::remove_dir_all(&two).unwrap();
    let verify = run(args!["verify", &moved, &parity]).expect(exit::DONE);
    assert!(verify.text().contains("/moved (two): intact"), "{verify}");
}

/// Messages name the path that they are about, and their figures are right.
#[test]
fn messages_name_what_is_meant() {
    let yard = Yard::new();
    let parity = yard.path("parity");
    fs::create_dir(&parity).unwrap();
    yard.protect(&["--redundancy", "100%"]).expect(exit::DONE);
    let update = run(args!["protect", "--update", yard.photo("deep")]).expect(exit::ARGUMENTS);
    assert!(update.stderr.contains("deep is protected as part of "), "{update}");
    assert!(!update.stderr.contains("not protected yet"), "{update}");
    // Files that were removed on purpose are not lost.
    fs::remove_file(yard.photo("b.jpg")).unwrap();
    run(args!["protect", "--update", yard.root()]).expect(exit::DONE);
    let verify = run(args!["verify", yard.root()]).expect(exit::DONE);
    assert!(verify.text().contains(" of old versions; any "), "{verify}");
    let text = verify.text();
    let left = text.split("; any ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    let info = run(args!["info", yard.root()]).expect(exit::DONE).text();
    assert!(info.contains(&format!("layer 0  any {left} of ")), "{info}");
    // What is on a disk that is not mounted is not restored to its mount point.
    run(args!["protect", yard.root(), "--force", "--parity-dir", &parity]).expect(exit::DONE);
    fs::rename(yard.root(), yard.path("unmounted")).unwrap();
    let verify = run(args!["verify", &parity]).expect(exit::LOST);
    assert!(verify.stderr.contains("photos does not exist; is its disk mounted?"), "{verify}");
    let repair = run(args!["repair", &parity]).expect(exit::IO);
    assert!(repair.stderr.contains("photos does not exist") && !yard.root().exists(), "{repair}");
    // The root and its parity may be moved together; then nothing is missing.
    let (root, parity) = (yard.path("unmounted"), yard.path("parity moved"));
    fs::rename(yard.path("parity"), &parity).unwrap();
    let verify = run(args!["verify", root, parity]).expect(exit::DONE);
    assert!(!verify.stderr.contains("is its disk mounted"), "{verify}");
}

/// Files are repaired even if old parity that a killed command left cannot be removed.
#[test]
fn leftovers_that_cannot_be_removed() {
    let yard = Yard::protected(&[]);
    let (folder, old) = (yard.photo(".paritas"), yard.parity()[0].clone());
    let bytes = fs::read(&old).unwrap();
    yard.protect(&["--force"]).expect(exit::DONE);
    let left = folder.join(format!("{}.0123abcd.old", old.file_name().unwrap().display()));
    fs::write(&left, bytes).unwrap();
    let whole = snapshot(&yard.root());
    flip(&yard.photo("a.jpg"), 10);
    let forbid = |mode| fs::set_permissions(&folder, Permissions::from_mode(mode)).unwrap();
    forbid(0o555);
    let repair = run_as_user(args!["repair", yard.root()]);
    forbid(0o755);
    repair.expect(exit::DONE);
    assert!(snapshot(&yard.root()) == whole && left.exists());
    run(args!["repair", yard.root()]).expect(exit::DONE);
    assert!(!left.exists());
}

/// All files of a folder may be named, as a shell does for `*`: they have one protection. If one of
/// them also has a protection of its own, both are verified.
#[test]
fn many_paths_of_one_protection() {
    let yard = Yard::protected(&[]);
    let files: Vec<OsString> = ["a.jpg", "b.jpg", "z"].map(|name| yard.photo(name).into()).into();
    let all = [&args!["verify"][..], &files].concat();
    let verify = run(&all).expect(exit::DONE);
    assert_eq!(verify.text().matches(": intact").count(), 1, "{verify}");
    run(args!["protect", yard.photo("z"), "--no-sync"]).expect(exit::DONE);
    let verify = run(&all).expect(exit::DONE);
    assert_eq!(verify.text().matches(": intact").count(), 2, "{verify}");
}
