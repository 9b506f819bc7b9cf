//! The next command, whichever it is, reports what a kill within `encode --force` left behind. Each
//! possible state is made by hand; `kill.rs` produces them by kills.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::common::{Run, exit, names, run, snapshot};

const OLD: [u8; 2000] = [1; 2000];
const NEW: [u8; 1500] = [2; 1500];
/// The states. In each, the old object or the new one is whole.
const STATES: [State; 6] = [
    State { what: "nothing of the new is whole", whole: &OLD, left: "not a whole set", next: None },
    State { what: "no file of the new is complete", whole: &OLD, left: "not a whole", next: None },
    State {
        what: "the new is whole",
        whole: &OLD,
        left: "before it gave them their names",
        next: None,
    },
    State {
        what: "some of the old are set aside",
        whole: &OLD,
        left: "before it gave them their names",
        next: Some("gives them their names back"),
    },
    State {
        what: "some of the new have names",
        whole: &NEW,
        left: "had replaced them",
        next: None,
    },
    State { what: "some of the old are gone", whole: &NEW, left: "had replaced them", next: None },
];

struct State {
    what: &'static str,
    /// Content of the object that is whole.
    whole: &'static [u8],
    /// A part of the warning about the other object.
    left: &'static str,
    next: Option<&'static str>,
}

type Files = BTreeMap<OsString, Vec<u8>>;

/// A folder, and the shards of the old and the new object.
struct Yard {
    folder: TempDir,
    old: Files,
    new: Files,
}

impl Yard {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [old, new] = [&OLD[..], &NEW[..]].map(|content| {
            fs::write(folder.path().join("object"), content).unwrap();
            let shards = folder.path().join("shards");
            let file = folder.path().join("object");
            run(args!["encode", file, "--out", &shards, "--force", "--no-sync"]).expect(exit::DONE);
            snapshot(&shards)
        });
        Self { folder, old, new }
    }

    fn shards(&self) -> PathBuf {
        self.folder.path().join("shards")
    }

    /// Puts the folder into the state with this index in [`STATES`].
    fn enter(&self, state: usize) {
        fs::remove_dir_all(self.shards()).unwrap();
        fs::create_dir(self.shards()).unwrap();
        let write = |name: &OsStr, bytes: &[u8]| {
            fs::write(self.shards().join(name), bytes).unwrap();
        };
        let temporary = |name: &OsStr| OsString::from(format!(".{}.0123abcd.tmp", name.display()));
        let aside = |name: &OsStr| OsString::from(format!("{}.0123abcd.old", name.display()));
        for (index, (name, bytes)) in self.old.iter().enumerate() {
            match (state, index) {
                (0..=2, _) | (3, 0..3) => write(name, bytes),
                (3 | 4, _) | (5, 0..2) => write(&aside(name), bytes),
                _ => {}
            }
        }
        for (index, (name, bytes)) in self.new.iter().enumerate() {
            match (state, index) {
                (0, _) => write(&temporary(name), if index < 3 { bytes } else { b"" }),
                (1, _) => write(&temporary(name), &bytes[..400]),
                (2 | 3, _) | (4, 0..3) => write(&temporary(name), bytes),
                _ => write(name, bytes),
            }
        }
    }

    fn run(&self, command: &str, more: &[&str]) -> Run {
        run(args![command, self.shards(); more])
    }

    fn encode(&self, more: &[&str]) -> Run {
        let file = self.folder.path().join("object");
        run(args!["encode", file, "--out", self.shards(), "--no-sync"; more])
    }

    /// Returns the shards of the object that is whole in a state.
    fn whole(&self, state: &State) -> &Files {
        if state.whole == OLD { &self.old } else { &self.new }
    }
}

#[test]
fn every_command_tells_what_is_there() {
    let yard = Yard::new();
    for (number, state) in STATES.iter().enumerate() {
        let told = |run: Run| {
            for part in [state.left, "interrupted", "`paritas repair "] {
                assert!(run.stderr.contains(part), "{}, {part}: {run}", state.what);
            }
            assert!(run.stderr.contains(state.next.unwrap_or_default()), "{}: {run}", state.what);
            run
        };
        yard.enter(number);
        let before = snapshot(&yard.shards());
        let verify = told(yard.run("verify", &["--json"])).expect(exit::DONE).result();
        assert_eq!(verify["status"], "intact", "{}", state.what);
        assert_eq!(verify["length"], state.whole.len());
        let info = told(yard.run("info", &["--json"])).expect(exit::DONE).result();
        assert_eq!(info["object"], verify["object"]);
        let decode = told(yard.run("decode", &["--out", "-"])).expect(exit::DONE);
        assert_eq!(decode.stdout, state.whole, "{}", state.what);
        told(yard.encode(&[])).expect(exit::ARGUMENTS);
        assert_eq!(snapshot(&yard.shards()), before, "{}", state.what);
        let repair = told(yard.run("repair", &["--no-sync", "--json"])).expect(exit::DONE).result();
        assert_eq!(repair["object"], verify["object"]);
        let after = snapshot(&yard.shards());
        let whole = yard.whole(state);
        assert!(whole.iter().all(|shard| after.get(shard.0) == Some(shard.1)), "{}", state.what);
    }
}

#[test]
fn repair_removes_what_is_left_when_told_to() {
    let yard = Yard::new();
    for (number, state) in STATES.iter().enumerate() {
        yard.enter(number);
        let clean = yard.run("repair", &["--clean", "--no-sync", "--json"]).expect(exit::DONE);
        let results = clean.results();
        assert!(results.len() > 1, "{clean}");
        for report in &results[1..] {
            assert_eq!((&report["type"], &report["name"]), (&"clean".into(), &"object".into()));
            let removed = report["removed"].as_array().unwrap();
            let gone =
                |file: &serde_json::Value| !Path::new(file["path"].as_str().unwrap()).exists();
            assert!(!removed.is_empty() && removed.iter().all(gone), "{clean}");
        }
        assert_eq!(snapshot(&yard.shards()), *yard.whole(state), "{}", state.what);
        assert_eq!(yard.run("verify", &[]).expect(exit::DONE).stderr, "");
    }
}

#[test]
fn encoding_again_replaces_both() {
    let yard = Yard::new();
    for (number, state) in STATES.iter().enumerate() {
        yard.enter(number);
        yard.encode(&["--force"]).expect(exit::DONE);
        assert_eq!(yard.run("decode", &["--out", "-"]).expect(exit::DONE).stdout, NEW);
        yard.run("repair", &["--clean"]).expect(exit::DONE);
        assert_eq!(names(&yard.shards()).len(), 6, "{}", state.what);
    }
}

/// Leftovers that may still be needed are not removed, and an incomplete object replaces nothing.
#[test]
fn nothing_is_removed_that_may_be_needed() {
    let yard = Yard::new();
    // The new object is whole under temporary names, and the old one beyond repair.
    yard.enter(2);
    let lost =
        names(&yard.shards()).into_iter().filter(|name| !name.as_encoded_bytes().starts_with(b"."));
    lost.take(3).for_each(|name| fs::remove_file(yard.shards().join(name)).unwrap());
    let before = snapshot(&yard.shards());
    yard.run("repair", &["--clean", "--no-sync"]).expect(exit::LOST);
    assert_eq!(snapshot(&yard.shards()), before);
    // The old object is set aside, and the new one has lost a shard since.
    yard.enter(4);
    fs::remove_file(yard.shards().join("object.5of6.paritas")).unwrap();
    let verify = yard.run("verify", &[]).expect(exit::REPAIRABLE);
    assert!(verify.stderr.contains("which is not whole"), "{verify}");
    let ambiguous = yard.run("decode", &["--out", "-"]).expect(exit::ARGUMENTS);
    assert!(ambiguous.stderr.contains("2 objects"), "{ambiguous}");
    yard.run("repair", &["--clean", "--no-sync"]).expect(exit::DONE);
    let after = snapshot(&yard.shards());
    assert!(yard.new.iter().all(|shard| after.get(shard.0) == Some(shard.1)));
    assert_eq!(after.len(), 12);
    // Now the new object is whole again, until some of its blocks are damaged. Its files look
    // whole.
    let files = snapshot(&yard.shards());
    for name in yard.new.keys().take(3) {
        let mut bytes = files[name].clone();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(yard.shards().join(name), bytes).unwrap();
    }
    yard.run("repair", &["--clean", "--no-sync"]).expect(exit::LOST);
    let is_old = |name: &&OsString| name.as_encoded_bytes().ends_with(b".old");
    let aside = files.keys().filter(is_old).map(|name| yard.shards().join(name).into_os_string());
    let decode = args!["decode", "--out", "-"].into_iter().chain(aside);
    assert_eq!(run(decode).expect(exit::DONE).stdout, OLD);
    for name in yard.new.keys() {
        fs::write(yard.shards().join(name), &files[name]).unwrap();
    }
    yard.run("repair", &["--clean", "--no-sync"]).expect(exit::DONE);
    assert_eq!(snapshot(&yard.shards()), yard.new);
}

/// Objects of one name in different folders are independent: leftovers in one folder may be needed
/// even if the object in another folder is whole.
#[test]
fn an_object_elsewhere_replaces_nothing() {
    let yard = Yard::new();
    let (shards, elsewhere) = (yard.shards(), yard.folder.path().join("elsewhere"));
    let file = yard.folder.path().join("object");
    run(args!["encode", file, "--out", &elsewhere, "--no-sync"]).expect(exit::DONE);
    let clean = || run(args!["repair", "--clean", "--no-sync", &elsewhere, &shards]);
    let lose = |count: usize| {
        let named = |name: &OsString| !name.as_encoded_bytes().starts_with(b".");
        let lost = names(&shards).into_iter().filter(named).take(count);
        lost.for_each(|name| fs::remove_file(shards.join(name)).unwrap());
    };
    // The new object is whole under temporary names, and the old one beyond repair.
    yard.enter(2);
    lose(3);
    let before = snapshot(&shards);
    clean().expect(exit::LOST);
    assert_eq!(snapshot(&shards), before);
    // Only the new object is left, and its shards get their names.
    lose(3);
    run(args!["verify", &elsewhere, &shards]).expect(exit::DONE);
    clean().expect(exit::DONE);
    assert_eq!(snapshot(&shards), yard.new);
    // The old object is set aside, and the new one has lost a shard since.
    yard.enter(4);
    fs::remove_file(shards.join("object.5of6.paritas")).unwrap();
    clean().expect(exit::DONE);
    let is_old = |name: &&OsString| name.as_encoded_bytes().ends_with(b".old");
    assert_eq!(names(&shards).iter().filter(is_old).count(), 6);
}

/// With --object, only the leftovers of that object are removed.
#[test]
fn files_of_other_objects_stay() {
    let yard = Yard::new();
    yard.enter(0);
    let other = yard.shards().join(".other.0of6.paritas.0123abcd.tmp");
    fs::write(&other, "half").unwrap();
    let clean = yard.run("repair", &["--clean", "--no-sync", "--object", "object"]);
    clean.expect(exit::DONE);
    assert_eq!(names(&yard.shards()).len(), 7);
    assert!(other.exists());
    yard.run("repair", &["--clean", "--no-sync"]).expect(exit::DONE);
    assert!(!other.exists());
}

/// A first encoding was killed before any shard had its name, or after some had.
#[test]
fn repair_gives_names_to_a_whole_set() {
    let yard = Yard::new();
    let shards = yard.shards();
    for named in [0, 1, 5] {
        yard.enter(2);
        yard.new.keys().for_each(|name| fs::remove_file(shards.join(name)).unwrap());
        let hidden = |name: &OsStr| shards.join(format!(".{}.0123abcd.tmp", name.display()));
        for name in yard.new.keys().take(named) {
            fs::rename(hidden(name), shards.join(name)).unwrap();
        }
        let note = format!("{} of object", counted(6 - named));
        for command in ["verify", "info"] {
            let told = yard.run(command, &["--json"]).expect(exit::DONE);
            let still = match 6 - named {
                1 => "still has a temporary name: a command was interrupted before it renamed it;",
                _ => "still have temporary names: a command was interrupted before it renamed them",
            };
            for part in [&note, still, "`paritas repair "] {
                assert!(told.stderr.contains(part), "{part}: {told}");
            }
        }
        let repair = yard.run("repair", &["--clean", "--no-sync", "--json"]).expect(exit::DONE);
        assert_eq!(repair.result()["repaired"].as_array().unwrap().len(), 6 - named, "{repair}");
        assert_eq!(snapshot(&shards), yard.new, "{named} had names");
        assert_eq!(yard.run("verify", &[]).expect(exit::DONE).stderr, "");
    }
}

fn counted(shards: usize) -> String {
    if shards == 1 { "1 shard".to_owned() } else { format!("{shards} shards") }
}

/// Temporary files without an object, beside files of other programs.
#[test]
fn temporary_files_alone() {
    let yard = Yard::new();
    yard.enter(1);
    let shards =
        names(&yard.shards()).into_iter().filter(|n| !n.as_encoded_bytes().starts_with(b"."));
    shards.for_each(|name| fs::remove_file(yard.shards().join(name)).unwrap());
    let others = [".notes.0123abcd.tmp", ".object.0of6.paritas.tmp", "object.0of6.paritas.tmp"];
    others.iter().for_each(|name| fs::write(yard.shards().join(name), "mine").unwrap());
    let verify = yard.run("verify", &[]).expect(exit::NOT_RECOGNISED);
    assert!(verify.stderr.contains("6 temporary files of"), "{verify}");
    yard.run("repair", &["--clean"]).expect(exit::DONE);
    assert_eq!(names(&yard.shards()), others);
    yard.run("repair", &["--clean"]).expect(exit::NOT_RECOGNISED);
    // The folder is printed with quotes for a shell.
    let quoted = yard.folder.path().join("it's here");
    fs::create_dir(&quoted).unwrap();
    fs::write(quoted.join(".object.0of6.paritas.0123abcd.tmp"), "half").unwrap();
    let verify = run(args!["verify", &quoted]).expect(exit::NOT_RECOGNISED);
    assert!(verify.stderr.contains(r"/it'\''s here'`"), "{verify}");
}
