//! Many objects: trees, summaries, decoding to a folder, and telling objects apart.

use std::ffi::OsStr;
use std::fs;
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use paritas::Code;
use paritas_shards::{EncodeJob, encode};
use serde_json::Value;
use tempfile::TempDir;

use crate::common::{Run, crc64_nvme, exit, names, run};

/// Encodes some bytes as 1+1 under a name, within this process. Returns the id.
fn put(folder: &Path, name: impl AsRef<OsStr>, content: &[u8]) -> String {
    fs::create_dir_all(folder).unwrap();
    let code = Code::new(&"1+1".parse().unwrap()).unwrap();
    let mut job = EncodeJob::new(code, name.as_ref(), vec![folder.to_owned()]);
    (job.sync, job.threads) = (false, NonZeroUsize::new(1));
    encode(&job, content, &|_| {}).unwrap().object.to_string()
}

/// Returns the path of a shard of an object that is written as 1+1.
fn shard(folder: &Path, name: &str, index: usize) -> PathBuf {
    folder.join(format!("{name}.{index}of2.paritas"))
}

/// Cuts off the second half of a file.
fn cut(path: &Path) {
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_len(file.metadata().unwrap().len() / 2).unwrap();
}

/// A folder for the files of a test.
struct Yard(TempDir);

impl Yard {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Creates a tree with an intact object, one that misses a shard, and a lost one with the same
    /// name as the second. Another folder has a file that is not a shard.
    fn tree() -> Self {
        let yard = Self::new();
        put(&yard.path("tree"), "top", b"intact");
        put(&yard.path("tree/a"), "object", b"repairable");
        fs::remove_file(shard(&yard.path("tree/a"), "object", 0)).unwrap();
        put(&yard.path("tree/b/c"), "object", b"lost");
        [0, 1].iter().for_each(|&index| cut(&shard(&yard.path("tree/b/c"), "object", index)));
        fs::create_dir(yard.path("tree/d")).unwrap();
        fs::write(yard.path("tree/d/file"), "no shard").unwrap();
        yard
    }
}

/// Returns the last line, which is the summary, and the lines before it.
fn summed(run: &Run) -> (Value, Vec<Value>) {
    let mut lines = run.results();
    let summary = lines.pop().unwrap();
    assert_eq!(summary["type"], "summary", "{run}");
    (summary, lines)
}

fn counts(summary: &Value) -> [u64; 6] {
    let names = ["objects", "intact", "repairable", "repaired", "lost", "unknown"];
    names.map(|name| summary[name].as_u64().unwrap())
}

#[test]
fn trees_are_verified_and_summed_up() {
    let yard = Yard::tree();
    let tree = yard.path("tree");
    let plain = run(args!["verify", &tree, "--json"]).expect(exit::DONE);
    assert_eq!(plain.result()["name"], "top", "only the folder itself");

    let all = run(args!["verify", "--recursive", &tree, "--json"]).expect(exit::LOST);
    let (summary, lines) = summed(&all);
    assert_eq!(counts(&summary), [3, 1, 1, 0, 1, 0], "{summary}");
    // No shard states the length of the lost object.
    assert_eq!(summary["bytes"], "intact".len() + "repairable".len());
    let rate = summary["bytes"].as_f64().unwrap() / summary["seconds"].as_f64().unwrap();
    assert!((summary["rate"].as_f64().unwrap() / rate - 1.0).abs() < 1e-6, "{summary}");
    let states: Vec<&str> = lines.iter().map(|line| line["status"].as_str().unwrap()).collect();
    assert_eq!(states, ["intact", "repairable", "lost"]);

    let text = run(args!["verify", "-r", &tree]).expect(exit::LOST).text();
    assert!(
        text.contains("\na/object: repairable") && text.contains("\nb/c/object: lost"),
        "{text}"
    );
    let last = text.lines().last().unwrap();
    assert!(last.starts_with("3 objects: 1 intact, 1 repairable, 1 lost; 16 B in "), "{text}");

    // Only bad objects are listed, and all are counted.
    let bad = run(args!["verify", "-r", &tree, "--only-bad", "--json"]).expect(exit::LOST);
    let (summary, lines) = summed(&bad);
    assert_eq!((counts(&summary)[0], lines.len()), (3, 2));
    let one = run(args!["verify", "-r", tree.join("a"), "--only-bad", "--json"]);
    assert_eq!(one.expect(exit::REPAIRABLE).result()["status"], "repairable", "no summary of one");
    let fine = run(args!["verify", &tree, "--only-bad"]).expect(exit::DONE);
    assert!(fine.stdout.is_empty(), "{fine}");
}

#[test]
fn trees_are_repaired() {
    let yard = Yard::tree();
    let tree = yard.path("tree");
    let repair = run(args!["repair", "-r", &tree, "--json"]).expect(exit::LOST);
    let (summary, lines) = summed(&repair);
    assert_eq!(counts(&summary), [3, 1, 0, 1, 1, 0], "{summary}");
    assert_eq!(lines.len(), 2, "{repair}");
    let message = repair.error()["message"].as_str().unwrap().to_owned();
    assert!(message.starts_with("b/c: ") && message.contains("object"), "{message}");
    assert!(shard(&yard.path("tree/a"), "object", 0).is_file());
    fs::remove_dir_all(yard.path("tree/b")).unwrap();
    let again = run(args!["repair", "-r", &tree]).expect(exit::DONE);
    assert!(again.text().contains("\n2 objects: 2 intact; "), "{again}");
    // If all is well, nothing is printed.
    for command in ["repair", "verify"] {
        let again = run(args![command, "-r", &tree, "--only-bad"]).expect(exit::DONE);
        assert!(again.stdout.is_empty() && again.stderr.is_empty(), "{again}");
    }
}

/// If no shard of an object is readable, the names of its files still show that it exists.
#[test]
fn objects_without_a_readable_shard_are_lost() {
    let yard = Yard::tree();
    let tree = yard.path("tree");
    fs::remove_dir_all(tree.join("b")).unwrap();
    run(args!["repair", "-r", &tree, "--no-sync"]).expect(exit::DONE);
    put(&tree.join("e"), "gone", b"soon");
    for (index, length) in [(0, 0), (1, 10)] {
        let file = fs::File::options().write(true).open(shard(&tree.join("e"), "gone", index));
        file.unwrap().set_len(length).unwrap();
    }
    run(args!["verify", "-q", "-r", &tree]).expect(exit::LOST);
    for command in ["verify", "repair"] {
        let all = run(args![command, "-r", &tree, "--only-bad", "--json"]).expect(exit::LOST);
        let (summary, lines) = summed(&all);
        assert_eq!(counts(&summary), [3, 2, 0, 0, 1, 0], "{summary}");
        let gone = &lines[0];
        assert_eq!((&gone["type"], &gone["name"]), (&"unrecognised".into(), &"gone".into()));
        assert_eq!((&gone["status"], gone["files"].as_array().unwrap().len()), (&"lost".into(), 2));
    }
    let text = run(args!["verify", "-r", &tree]).expect(exit::LOST).text();
    assert!(text.contains("\ne/gone: lost") && text.contains("2 intact, 1 lost"), "{text}");
    // Decoding the other objects reports it, too.
    let both =
        args!["decode", &tree, tree.join("e"), "--out", format!("{}/", yard.path("out").display())];
    let decode = run(both).expect(exit::LOST);
    assert!(decode.stderr.contains("gone: 2 files") && yard.path("out/top").is_file(), "{decode}");
    // Beside readable shards of the same name, such a file counts as a damaged shard, not as an
    // object.
    put(&tree.join("e"), "whole", b"again");
    fs::write(shard(&tree.join("e"), "gone", 0), fs::read(shard(&tree, "top", 0)).unwrap())
        .unwrap();
    fs::write(shard(&tree.join("e"), "whole", 1), b"").unwrap();
    let alone = run(args!["verify", tree.join("e"), "--object", "whole", "--json"]);
    assert_eq!(alone.expect(exit::REPAIRABLE).result()["status"], "repairable");
    // If no file at all is readable as a shard, nothing is recognised.
    fs::remove_file(shard(&tree, "top", 1)).unwrap();
    fs::write(shard(&tree, "top", 0), b"").unwrap();
    run(args!["verify", &tree]).expect(exit::NOT_RECOGNISED);
}

/// An object without a readable shard can be named by --object, and is reported as lost.
#[test]
fn lost_objects_can_be_asked_for() {
    let yard = Yard::new();
    let shards = yard.path("shards");
    put(&shards, "whole", b"whole");
    put(&shards, "gone", b"gone");
    [0, 1].iter().for_each(|&index| fs::write(shard(&shards, "gone", index), "").unwrap());
    for command in ["verify", "repair"] {
        let lost = run(args![command, &shards, "--object", "gone", "--json"]).expect(exit::LOST);
        let gone = lost.result();
        assert_eq!((&gone["type"], &gone["name"]), (&"unrecognised".into(), &"gone".into()));
        run(args![command, &shards, "--object", "whole"]).expect(exit::DONE);
        run(args![command, &shards, "--object", "other"]).expect(exit::NOT_RECOGNISED);
    }
    for out in ["out", "folder/"] {
        let out = yard.path(out);
        let decode = args!["decode", &shards, "--object", "gone", "--out", &out];
        let lost = run(decode).expect(exit::LOST);
        assert!(lost.stderr.contains("gone: 2 files have the names of its shards"), "{lost}");
        assert!(!out.exists());
    }
}

/// Shards that a later version has written are neither lost nor ignored.
#[test]
fn shards_of_later_versions_exit_with_4() {
    let yard = Yard::new();
    let shards = yard.path("shards");
    fs::create_dir(&shards).unwrap();
    let mut later = b"\x89PRTS\r\n\x1a\x09\x00\x01\x00\x00\x00\x00\x00".to_vec();
    later.extend(crc64_nvme(&later).to_le_bytes());
    [0, 1].iter().for_each(|&at| fs::write(shard(&shards, "later", at), &later).unwrap());
    let told = |run: Run| {
        let reason = "is a shard, and is of version 9; this reader knows up to version 3";
        assert_eq!(run.stderr.matches(reason).count(), 2, "{run}");
        run
    };
    for command in ["verify", "repair", "info"] {
        told(run(args![command, &shards])).expect(exit::NOT_RECOGNISED);
    }
    told(run(args!["verify", "--recursive", yard.0.path()])).expect(exit::NOT_RECOGNISED);
    put(&shards, "object", b"content");
    for command in ["verify", "repair", "info"] {
        let both = told(run(args![command, &shards])).expect(exit::NOT_RECOGNISED);
        assert!(both.text().contains("object") && !both.text().contains("later"), "{both}");
    }
    told(run(args!["verify", "--recursive", yard.0.path()])).expect(exit::NOT_RECOGNISED);
    told(run(args!["decode", &shards, "--out", yard.path("out")])).expect(exit::DONE);
    // They do not matter to a command that names another object.
    run(args!["verify", &shards, "--object", "object"]).expect(exit::DONE);
    let none = run(args!["verify", &shards, "--object", "later"]);
    told(none).expect(exit::NOT_RECOGNISED);
    // Some shards of an object may be of a later version.
    fs::rename(shard(&shards, "later", 0), shard(&shards, "object", 9)).unwrap();
    for command in ["verify", "info"] {
        let rest = run(args![command, &shards, "--object", "object"]).expect(exit::DONE);
        assert_eq!(rest.stderr.matches("is of version 9").count(), 1, "{rest}");
    }
}

#[test]
fn paths_that_cannot_be_read_exit_with_6() {
    let yard = Yard::new();
    let (shards, nowhere) = (yard.path("shards"), yard.path("nowhere"));
    put(&shards, "object", b"content");
    let slash = format!("{}/", nowhere.display());
    let all = |command| args![command, &shards, &nowhere, &slash, &nowhere];
    // Repair writes nothing if a disk may be unmounted.
    run(all("repair")).expect(exit::ARGUMENTS);
    for command in ["verify", "info"] {
        let partly = run(all(command)).expect(exit::IO);
        assert!(partly.text().contains("object"), "{partly}");
        assert_eq!(partly.stderr.matches("cannot be read").count(), 1, "{partly}");
    }
    for command in ["verify", "info"] {
        let none = run(args![command, &nowhere, &slash]).expect(exit::IO);
        assert_eq!(none.stderr.matches("nowhere").count(), 1, "{none}");
    }
    let out = yard.path("out");
    let decode = run(args!["decode", &shards, &nowhere, "--out", &out]).expect(exit::DONE);
    assert!(decode.stderr.contains("cannot be read"), "{decode}");
}

/// A refusal names the flag, and says what would be accepted.
#[test]
fn refusals_are_sentences() {
    let yard = Yard::new();
    let (file, shards, out) = (yard.path("object"), yard.path("shards"), yard.path("out"));
    fs::write(&file, "content").unwrap();
    let encode = |more: &[&str]| run(args!["encode", &file, "--out", &shards, "--no-sync"; more]);
    encode(&[]).expect(exit::DONE);
    let refused = |run: Run, code, text: &str| {
        let refused = run.expect(code);
        assert!(refused.stderr.contains(text), "{text}: {refused}");
    };
    refused(encode(&[]), exit::ARGUMENTS, "; --force replaces them");
    for name in ["", ".", ".."] {
        let text = format!("--name must not be empty, `.` or `..`; got '{name}'");
        refused(encode(&["--name", name]), exit::ARGUMENTS, &text);
    }
    run(args!["decode", &shards, "--out", &out]).expect(exit::DONE);
    let decode = run(args!["decode", &shards, "--out", &out]);
    refused(decode, exit::ARGUMENTS, "out exists; --force replaces it");
    let repair = run(args!["repair", &shards, "--to", &file]);
    refused(repair, exit::ARGUMENTS, "object is not a folder");
    fs::write(shards.join("object.0of6.paritas"), b"\x89PRTS\r\n\x1a").unwrap();
    let verify = run(args!["verify", &shards]);
    refused(verify, exit::REPAIRABLE, "0of6.paritas is not readable as a shard: its front header");
    run(args!["man", yard.path("pages/man1")]).expect(exit::DONE);
    assert!(yard.path("pages/man1/paritas-verify.1").is_file());
}

#[test]
fn shards_in_folders_below_are_hinted_at() {
    let yard = Yard::new();
    put(&yard.path("shards/below"), "object", b"content");
    for (command, hint) in
        [("verify", "--recursive"), ("repair", "--recursive"), ("info", "name the folders")]
    {
        let none = run(args![command, yard.path("shards")]).expect(exit::NOT_RECOGNISED);
        assert!(none.stderr.contains("shards/below: ") && none.stderr.contains(hint), "{none}");
    }
}

/// Each object is spread over the trees of two disks.
#[test]
fn folders_at_the_same_path_hold_one_set() {
    let yard = Yard::new();
    let disks = ["one", "two"].map(|disk| yard.path(disk));
    for below in ["a", "b"] {
        put(&disks[0].join(below), "object", below.as_bytes());
        fs::create_dir_all(disks[1].join(below)).unwrap();
        let [from, to] = disks.each_ref().map(|disk| shard(&disk.join(below), "object", 1));
        fs::rename(from, to).unwrap();
    }
    let apart = run(args!["verify", "-r", yard.0.path(), "--json"]).expect(exit::REPAIRABLE);
    assert_eq!(counts(&summed(&apart).0), [4, 0, 4, 0, 0, 0]);
    let both = run(args!["verify", "-r", &disks[0], &disks[1], "--json"]).expect(exit::DONE);
    assert_eq!(counts(&summed(&both).0), [2, 2, 0, 0, 0, 0]);
}

#[test]
fn links_are_not_followed_and_empty_trees_exit_with_4() {
    let yard = Yard::tree();
    let empty = yard.path("empty");
    fs::create_dir_all(empty.join("below")).unwrap();
    symlink(yard.path("tree"), empty.join("below/link")).unwrap();
    symlink("..", empty.join("below/loop")).unwrap();
    for (path, code) in [(&empty, exit::NOT_RECOGNISED), (&yard.path("nowhere"), exit::IO)] {
        let none = run(args!["verify", "-r", path]).expect(code);
        assert!(none.stderr.contains(path.to_str().unwrap()), "{none}");
    }
    let named = args!["verify", "-r", yard.path("tree"), "--object", "top"];
    run(named).expect(exit::ARGUMENTS);
}

#[test]
fn a_folder_is_decoded_to_a_folder() {
    let yard = Yard::new();
    let (shards, out) = (yard.path("shards"), yard.path("out/new"));
    let odd = OsStr::from_bytes(b"caf\xe9\n");
    let contents: [(&OsStr, &[u8]); 3] =
        [(OsStr::new("one"), b"first"), (OsStr::new("two"), b"second"), (odd, b"third")];
    let ids = contents.map(|(name, content)| put(&shards, name, content));
    // A path that ends with a slash is a folder, even before it exists.
    let new = format!("{}/", out.display());
    let decode =
        |to: &str, more: &[&str]| run(args!["decode", &shards, "--out", to, "--json"; more]);
    let reports = decode(&new, &[]).expect(exit::DONE).results();
    assert_eq!(reports.len(), 3);
    for (name, content) in contents {
        assert_eq!(fs::read(out.join(name)).unwrap(), content);
    }
    assert_eq!(names(&out).len(), 3);

    // Nothing is replaced without --force, and a failure does not stop the rest.
    fs::write(out.join("one"), "precious").unwrap();
    fs::remove_file(out.join("two")).unwrap();
    let refused = decode(&new, &[]).expect(exit::ARGUMENTS);
    assert_eq!(refused.results().len(), 1, "{refused}");
    assert_eq!(fs::read(out.join("one")).unwrap(), b"precious");
    assert_eq!(fs::read(out.join("two")).unwrap(), b"second");
    decode(out.to_str().unwrap(), &["--force"]).expect(exit::DONE);
    assert_eq!(fs::read(out.join("one")).unwrap(), b"first");

    // A lost object leaves nothing, and its exit code is the worst.
    [0, 1].iter().for_each(|&index| cut(&shard(&shards, "one", index)));
    let rest = yard.path("rest");
    fs::create_dir(&rest).unwrap();
    let lost = decode(rest.to_str().unwrap(), &[]).expect(exit::LOST);
    assert_eq!((lost.results().len(), names(&rest).len()), (2, 2), "{lost}");
    assert!(!rest.join("one").exists());

    // One object, named by the beginning of its id.
    let chosen = yard.path("chosen/");
    let prefix = ids[1][..6].to_uppercase();
    decode(chosen.to_str().unwrap(), &["--object", &prefix]).expect(exit::DONE);
    assert_eq!(names(&chosen), ["two"]);
}

/// Encodes until two objects have ids that begin with the same digits. Returns all ids, and these
/// digits.
fn alike(folder: &Path) -> (Vec<String>, String) {
    let mut ids: Vec<String> = Vec::new();
    loop {
        let id = put(folder, format!("name{}", ids.len()), b"content");
        ids.push(id);
        let last = &ids[ids.len() - 1][..FEWEST];
        if ids[..ids.len() - 1].iter().any(|id| id.starts_with(last)) {
            let last = last.to_owned();
            return (ids, last);
        }
    }
}

/// The fewest digits of an id that name an object.
const FEWEST: usize = 4;

#[test]
fn ids_may_be_cut_where_they_stay_unique() {
    let yard = Yard::new();
    let shards = yard.path("shards");
    let id = put(&shards, "object", b"object");
    put(&shards, &id[..FEWEST], b"a name like an id");
    let decode = |object: &str| run(args!["decode", &shards, "--out", "-", "--object", object]);
    assert_eq!(decode(&id[..FEWEST]).expect(exit::DONE).stdout, b"a name like an id");
    assert_eq!(decode(&id[..FEWEST + 1]).expect(exit::DONE).stdout, b"object");
    assert_eq!(decode(&id).expect(exit::DONE).stdout, b"object");
    decode(&id[..FEWEST - 1]).expect(exit::NOT_RECOGNISED);
    let wrong = if id.starts_with('0') { "1" } else { "0" };
    decode(&format!("{wrong}{}", &id[1..])).expect(exit::NOT_RECOGNISED);
}

#[test]
fn an_ambiguous_beginning_lists_the_candidates() {
    let yard = Yard::new();
    let shards = yard.path("shards");
    let (ids, prefix) = alike(&shards);
    let candidates: Vec<&String> = ids.iter().filter(|id| id.starts_with(&prefix)).collect();
    let other = ids.iter().find(|id| !id.starts_with(&prefix)).unwrap();
    let end = run(args!["verify", &shards, "--object", &prefix]).expect(exit::ARGUMENTS);
    assert!(candidates.iter().all(|id| end.stderr.contains(*id)), "{end}");
    assert!(!end.stderr.contains(other), "{end}");
}

#[test]
fn objects_of_one_name_are_told_apart_by_id() {
    let yard = Yard::new();
    let folders = ["one", "two"].map(|folder| yard.path(folder));
    let ids = folders.each_ref().map(|folder| put(folder, "twin", b"content"));
    put(&folders[0], "other", b"other");
    fs::remove_file(shard(&folders[1], "twin", 0)).unwrap();
    for command in ["verify", "info", "repair"] {
        let end = run(args![command, &folders[0], &folders[1]]);
        for id in &ids {
            assert!(end.text().contains(&format!("twin (id {})", &id[..8])), "{end}");
        }
        assert!(!end.text().contains("other (id"), "{end}");
    }
    let out = yard.path("out/");
    let decode =
        |more: &[&str]| run(args!["decode", &folders[0], &folders[1], "--out", &out; more]);
    // The program does not guess which of the two is meant; it decodes only the other object.
    let refused = decode(&[]).expect(exit::ARGUMENTS);
    assert!(ids.iter().all(|id| refused.stderr.contains(id.as_str())), "{refused}");
    assert_eq!(names(&out), ["other"]);
    let by_name = decode(&["--object", "twin"]).expect(exit::ARGUMENTS);
    assert!(ids.iter().all(|id| by_name.stderr.contains(id.as_str())), "{by_name}");
    decode(&["--object", &ids[0][..8]]).expect(exit::DONE);
    assert_eq!(names(&out), ["other", "twin"]);
    // Failures name objects in the same way.
    cut(&shard(&folders[1], "twin", 1));
    fs::remove_file(shard(&folders[1], "twin", 0)).unwrap();
    let lost = run(args!["repair", &folders[0], &folders[1]]).expect(exit::LOST);
    assert!(lost.stderr.contains(&format!("twin (id {})", &ids[1][..8])), "{lost}");
}
