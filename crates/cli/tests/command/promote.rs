//! `paritas promote` from end to end: what it adds, reads and reports, its exit codes, and what the
//! other commands report about an object in either stage.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::common::{self, Chance, encoded, exit, names, run, snapshot};

const LENGTH: usize = 700_000;

/// An encoded object.
struct Yard {
    folder: TempDir,
    content: Vec<u8>,
    report: Value,
}

impl Yard {
    fn new(code: &str) -> Self {
        let content = Chance(7).bytes(LENGTH);
        let (folder, _, report) = encoded(&content, code, &[]);
        Self { folder, content, report }
    }

    fn shards(&self) -> PathBuf {
        self.folder.path().join("shards")
    }

    fn promote(&self) -> common::Run {
        run(args!["promote", self.shards(), "--no-sync", "--json"])
    }

    fn json(&self, command: &str, code: i32) -> Value {
        run(args![command, self.shards(), "--json"]).expect(code).result()
    }

    fn text(&self, command: &str) -> String {
        run(args![command, self.shards()]).expect(exit::DONE).text()
    }

    fn snapshot(&self) -> BTreeMap<OsString, Vec<u8>> {
        snapshot(&self.shards())
    }

    fn lose(&self, shards: &[usize]) {
        for name in names(&self.shards()) {
            let text = name.to_string_lossy();
            if shards.iter().any(|shard| text.contains(&format!(".{shard:02}of10."))) {
                fs::remove_file(self.shards().join(&name)).unwrap();
            }
        }
    }
}

fn spec(interleave: &str) -> String {
    format!("bbdpg:k=6,m=2,m2=4,interleave={interleave}")
}

#[test]
fn every_command_knows_the_stage() {
    for (interleave, first, second) in [("none", 8, 2), ("first", 8, 2), ("all", 10, 8)] {
        let yard = Yard::new(&spec(interleave));
        assert_eq!((&yard.report["stage"], &yard.report["stages"]), (&json!(1), &json!(2)));
        assert_eq!(yard.report["shards"].as_array().unwrap().len(), first);
        let stored = yard.snapshot();
        assert!(stored.keys().all(|name| name.to_string_lossy().ends_with("of10.paritas")));

        for (stage, tolerance, files) in [(1, 2, first), (2, 4, first + second)] {
            let verify = yard.json("verify", exit::DONE);
            assert_eq!((&verify["stage"], &verify["stages"]), (&json!(stage), &json!(2)));
            assert_eq!(verify["status"], "intact");
            assert_eq!(verify["tolerable_losses"], tolerance);
            assert_eq!(verify["shards"].as_array().unwrap().len(), files);
            let info = yard.json("info", exit::DONE);
            assert_eq!((&info["stage"], &info["tolerance"]), (&json!(stage), &json!(tolerance)));
            assert_eq!((&info["shard_count"], &info["missing"]), (&json!(10), &json!([])));
            let note = format!("stage {stage} of 2");
            assert!(yard.text("verify").contains(&note) && yard.text("info").contains(&note));
            let more = yard.text("verify").contains("after promote, any 4 shards may be lost");
            assert_eq!(more, stage == 1);
            if stage == 1 {
                yard.promote().expect(exit::DONE);
            }
        }
        let promoted = yard.snapshot();
        assert!(stored.iter().all(|(name, bytes)| promoted.get(name) == Some(bytes)));

        yard.lose(&[0, 3, 5, 9]);
        assert!(common::decode(&yard.shards()) == yard.content);
        let verify = yard.json("verify", exit::REPAIRABLE);
        assert_eq!((&verify["tolerable_losses"], &verify["stage"]), (&json!(0), &json!(2)));
        let repair = yard.json("repair", exit::DONE);
        let repaired = repair["repaired"].as_array().unwrap();
        assert_eq!(repaired.len(), if interleave == "all" { 8 } else { 4 }, "{repair}");
        assert!(repaired.iter().all(|part| part["stage"] == 1 || part["stage"] == 2));
        assert!(yard.snapshot() == promoted);
    }
}

#[test]
fn what_is_added_and_read_is_told() {
    for interleave in ["none", "first", "all"] {
        let yard = Yard::new(&spec(interleave));
        let info = yard.json("info", exit::DONE);
        let before = yard.snapshot();
        let report = yard.promote().expect(exit::DONE).result();
        assert_eq!((&report["type"], &report["stage"]), (&json!("promote"), &json!(2)));
        assert_eq!((&report["tolerance"], &report["damaged_segments"]), (&json!(4), &json!(0)));
        assert_eq!(report["missing"], json!([]));

        // Theorem 1: the second stage reads 16 of the 24 symbols of each group.
        let group =
            info["segment_bytes"].as_u64().unwrap() / info["stripes_per_block"].as_u64().unwrap();
        let groups = (LENGTH as u64).div_ceil(group);
        assert_eq!(report["read_payload_bytes"], groups * group / 24 * 16);
        assert!(report["read_bytes"].as_u64() > report["read_payload_bytes"].as_u64());

        let after = yard.snapshot();
        let added: Vec<&OsString> =
            after.keys().filter(|name| !before.contains_key(*name)).collect();
        let told = report["added"].as_array().unwrap();
        assert_eq!(told.len(), added.len());
        for part in told {
            let path = PathBuf::from(part["path"].as_str().unwrap());
            assert!(added.contains(&&path.file_name().unwrap().to_owned()), "{part}");
            assert_eq!(part["stage"], 2);
        }

        let again = yard.promote().expect(exit::DONE).result();
        assert_eq!((&again["added"], &again["read_bytes"]), (&json!([]), &json!(0)));
        let text = run(args!["promote", yard.shards()]).expect(exit::DONE).text();
        assert!(text.contains("already in stage 2 of 2, nothing to do"), "{text}");
        assert!(yard.snapshot() == after);
    }
    let yard = Yard::new(&spec("none"));
    let text = run(args!["promote", yard.shards(), "--no-sync"]).expect(exit::DONE).text();
    assert!(text.contains("stage 2 of 2, any 4 of 10 shards may be lost; 2 files added"), "{text}");
    assert!(text.contains("shard 8: ") && text.contains("object.09of10.paritas"), "{text}");

    let yard = Yard::new(&spec("none"));
    yard.lose(&[1]);
    let text = run(args!["promote", yard.shards(), "--no-sync"]).expect(exit::DONE).text();
    assert!(text.contains("any 4 of 10 shards may be lost, 1 is missing; 2 files"), "{text}");
}

#[test]
fn losses_are_told_or_refused() {
    let yard = Yard::new(&spec("none"));
    yard.lose(&[1]);
    let promoted = yard.promote().expect(exit::DONE);
    assert_eq!(promoted.result()["missing"], json!([1]));
    assert!(promoted.stderr.contains("repair writes them"), "{promoted}");

    yard.lose(&[0, 3, 7, 8, 9]);
    let before = yard.snapshot();
    let lost = yard.promote().expect(exit::LOST).error();
    let message = lost["message"].as_str().unwrap();
    assert!(message.contains("4 of 8 shards are good there, 6 are enough"), "{message}");
    assert!(yard.snapshot() == before);
}

#[test]
fn exit_codes() {
    let yard = Yard::new("4+2");
    let error = yard.promote().expect(exit::ARGUMENTS).error();
    assert!(error["message"].as_str().unwrap().contains("has one stage"), "{error}");
    let staged = Yard::new(&spec("none"));
    let nowhere = args!["promote", staged.shards(), "--to", "/no/such/folder", "--json"];
    run(nowhere).expect(exit::ARGUMENTS).error();
    run(args!["promote", staged.folder.path().join("nothing"), "--json"]).expect(exit::IO).error();
    run(args!["promote", staged.shards(), "--object", "another"]).expect(exit::NOT_RECOGNISED);
    run(args!["promote"]).expect(exit::ARGUMENTS);
    // The other object is promoted, although one next to it has only one stage.
    let both = args!["promote", yard.shards(), staged.shards(), "--no-sync"];
    run(both).expect(exit::ARGUMENTS);
    assert_eq!(staged.json("verify", exit::DONE)["stage"], 2);
    // A file where the target folder should be.
    let file_in_the_way = staged.folder.path().join("object");
    run(args!["promote", staged.shards(), "--to", file_in_the_way]).expect(exit::ARGUMENTS);
}

/// An object from a pipe, whose length no front header states.
#[test]
fn pipes_are_promoted() {
    let folder = tempfile::tempdir().unwrap();
    let content = Chance(8).bytes(100_000);
    let encode = args![
        "encode",
        "-",
        "--name",
        "piped",
        "--code",
        spec("all"),
        "--out",
        folder.path(),
        "--no-sync"
    ];
    common::run_with_input(encode, &content).expect(exit::DONE);
    let [one, two] = [folder.path().join("one"), folder.path().join("two")];
    fs::create_dir(&one).and_then(|()| fs::create_dir(&two)).unwrap();
    run(args!["promote", folder.path(), "--to", &one, "--to", &two, "--no-sync"])
        .expect(exit::DONE);
    assert_eq!((names(&one).len(), names(&two).len()), (4, 4));
    let everywhere = args!["verify", folder.path(), &one, &two];
    run(everywhere).expect(exit::DONE);
    let decoded = run(args!["decode", folder.path(), &one, &two, "--out", "-"]).expect(exit::DONE);
    assert!(decoded.stdout == content);
}
