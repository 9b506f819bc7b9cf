//! Disks that are lost and replaced: what the commands report about folders, where repair puts
//! shards, and what happens to files that are in the way.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::common::{Chance, Run, exit, names, run, snapshot};

/// A file, and disks that hold its shards.
struct Yard {
    folder: TempDir,
    disks: Vec<PathBuf>,
}

impl Yard {
    /// Encodes into the first `used` of `disks` disks.
    fn new(code: &str, disks: usize, used: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let disk = |at: usize| folder.path().join(format!("disk{at}"));
        let disks: Vec<PathBuf> = (0..disks).map(disk).collect();
        disks.iter().for_each(|disk| fs::create_dir(disk).unwrap());
        let file = folder.path().join("object");
        fs::write(&file, Chance(1).bytes(1000)).unwrap();
        let mut encode = args!["encode", file, "--code", code, "--no-sync"].to_vec();
        encode.extend(disks[..used].iter().flat_map(|disk| args!["--to", disk]));
        run(encode).expect(exit::DONE);
        Self { folder, disks }
    }

    fn command(&self, command: &str, more: &[&str]) -> Run {
        let mut arguments = args![command; self.disks];
        arguments.extend(more.iter().map(OsString::from));
        run(arguments)
    }

    fn json(&self, command: &str, more: &[&str]) -> Value {
        self.command(command, &[more, &["--json"]].concat()).expect(exit::DONE).result()
    }

    /// Empties a disk, as if it were a new one.
    fn replace(&self, disk: usize) {
        fs::remove_dir_all(&self.disks[disk]).unwrap();
        fs::create_dir(&self.disks[disk]).unwrap();
    }

    fn counts(&self) -> Vec<usize> {
        self.disks.iter().map(|disk| names(disk).len()).collect()
    }
}

#[test]
fn folders_are_reported() {
    let yard = Yard::new("4+2", 3, 3);
    for command in ["info", "verify", "repair"] {
        let report = yard.json(command, &[]);
        assert_eq!(report["folder_tolerance"], 1, "{report}");
        assert_eq!(report["folder_tolerance_certain"], true);
        assert_eq!(report["losable_folders"], json!([[0], [1], [2]]));
        assert_eq!(report["folders"][1]["path"], yard.disks[1].to_str().unwrap());
        assert_eq!(report["folders"][1]["shards"], json!([1, 4]));
    }
    for command in ["info", "verify"] {
        let text = yard.command(command, &[]).expect(exit::DONE).text();
        assert!(text.contains("any 1 of 3 folders may be lost\n"), "{text}");
    }
    // The two folders with one shard each may be lost together.
    let yard = Yard::new("4+2", 3, 1);
    for (shard, disk) in [(1, 1), (2, 2)] {
        let name = format!("object.{shard}of6.paritas");
        fs::rename(yard.disks[0].join(&name), yard.disks[disk].join(&name)).unwrap();
    }
    let text = yard.command("verify", &[]).expect(exit::DONE).text();
    let [one, two] = [1, 2].map(|at: usize| yard.disks[at].to_str().unwrap().to_owned());
    assert!(text.contains("no folder may be lost, except "), "{text}");
    assert!(text.contains(&format!("{one} with {two}")), "{text}");
    // A single folder is the user's choice, so nothing is said about it.
    let yard = Yard::new("4+2", 1, 1);
    let text = yard.command("verify", &[]).expect(exit::DONE).text();
    assert!(!text.contains("folder"), "{text}");
}

#[test]
fn a_bad_spread_is_mended() {
    let yard = Yard::new("4+2", 3, 2);
    let repair = yard.command("repair", &[]).expect(exit::DONE);
    assert_eq!((yard.counts(), repair.stderr.as_str()), (vec![3, 3, 0], ""));
    let paths = yard.disks.iter().map(|disk| disk.to_str().unwrap()).collect::<Vec<_>>().join(" ");
    let hint = format!("`paritas repair --rebalance {paths}` would let any 1 of 3 folders be lost");
    for command in ["verify", "repair"] {
        let text = yard.command(command, &[]).expect(exit::DONE).text();
        assert!(text.contains(&hint), "{text}");
        assert_eq!(yard.json(command, &[])["better_folder_tolerance"], 1);
    }
    let report = yard.json("repair", &["--rebalance"]);
    assert_eq!((yard.counts(), &report["folder_tolerance"]), (vec![2, 2, 2], &json!(1)));
    for command in ["verify", "repair"] {
        let text = yard.command(command, &[]).expect(exit::DONE).text();
        assert!(!text.contains("would let"), "{text}");
        assert_eq!(yard.json(command, &[])["better_folder_tolerance"], Value::Null);
    }
    let moved = report["moved"].as_array().unwrap();
    assert_eq!(moved.len(), 2, "{report}");
    for entry in moved {
        let path = |key: &str| Path::new(entry[key].as_str().unwrap()).to_owned();
        assert!(!path("from").exists() && path("path").exists(), "{entry}");
        assert!(entry["index"].is_u64() && entry["stage"] == 1, "{entry}");
    }
    assert_eq!(yard.json("repair", &["--rebalance"])["warnings"], json!([]), "nothing was done");
    yard.replace(0);
    run(args!["decode", &yard.disks[1], &yard.disks[2], "--out", yard.folder.path().join("out")])
        .expect(exit::DONE);
    let text = yard.command("repair", &["--rebalance"]).expect(exit::DONE).text();
    assert!(text.contains("2 shards written") && text.contains("any 1 of 3 folders"), "{text}");
}

/// Shards that repair has just written move, too, although only the other files were given.
#[test]
fn shards_may_be_named_one_by_one() {
    let yard = Yard::new("4+2", 2, 1);
    fs::remove_file(yard.disks[0].join("object.5of6.paritas")).unwrap();
    let mut arguments = args!["repair", "--rebalance", "--json", "--to", &yard.disks[1]].to_vec();
    let named = names(&yard.disks[0]).into_iter();
    arguments.extend(named.map(|name| yard.disks[0].join(name).into_os_string()));
    let report = run(arguments).expect(exit::DONE).result();
    assert_eq!(report["repaired"][0]["index"], 5, "{report}");
    assert_eq!(yard.counts(), [5, 1], "no spread over two disks is better");
    let both = yard.json("repair", &["--rebalance"]);
    assert_eq!((&both["moved"], &both["losable_folders"]), (&json!([]), &json!([[1]])));
}

#[test]
fn what_was_in_the_way_is_kept_counted_and_removed() {
    let yard = Yard::new("4+2", 1, 1);
    let victim = yard.disks[0].join("object.2of6.paritas");
    let whole = fs::read(&victim).unwrap();
    fs::write(&victim, "somebody's own").unwrap();
    let report = yard.json("repair", &[]);
    let moved = &report["moved_aside"][0];
    assert_eq!(moved["from"], victim.to_str().unwrap(), "{report}");
    let aside = PathBuf::from(moved["path"].as_str().unwrap());
    assert_eq!(fs::read(&aside).unwrap(), b"somebody's own");
    assert_eq!(fs::read(&victim).unwrap(), whole);
    let name = aside.file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with("object.2of6.paritas.damaged-"), "{name}");

    let leftover = json!([{"path": aside.to_str().unwrap(), "bytes": 14}]);
    for command in ["info", "verify"] {
        assert_eq!(yard.json(command, &[])["aside"], leftover);
        let run = yard.command(command, &[]).expect(exit::DONE);
        assert!(run.text().contains("1 file that repair moved aside, 14 B"), "{run}");
        assert_eq!(run.stderr, "", "it is taken for no shard");
    }
    // The user has changed the file, so it stays.
    fs::write(&aside, "somebody's work").unwrap();
    let kept = yard.command("repair", &["--remove-moved-aside"]).expect(exit::DONE);
    assert!(kept.stderr.contains("changed since") && aside.exists(), "{kept}");
    fs::write(&aside, "somebody's own").unwrap();
    // As long as the object is beyond repair, the file may be the rest of a shard.
    let all = snapshot(&yard.disks[0]);
    for lost in [0, 1, 3] {
        fs::remove_file(yard.disks[0].join(format!("object.{lost}of6.paritas"))).unwrap();
    }
    yard.command("repair", &["--remove-moved-aside"]).expect(exit::LOST);
    assert!(aside.exists());
    all.iter().for_each(|(name, bytes)| fs::write(yard.disks[0].join(name), bytes).unwrap());
    let removed = yard.json("repair", &["--remove-moved-aside"]);
    assert_eq!((&removed["removed"], aside.exists()), (&leftover, false));
    assert_eq!(yard.json("verify", &[])["aside"], json!([]));
    assert_eq!(yard.counts(), [6]);
}

/// Encodes one object into the folders A of three disks, and another one into the folders B.
fn tree() -> Yard {
    let folder = tempfile::tempdir().unwrap();
    let disks: Vec<PathBuf> = (0..3).map(|at| folder.path().join(format!("disk{at}"))).collect();
    let file = folder.path().join("object");
    for (below, content) in [("A", "one"), ("B", "two")] {
        fs::write(&file, content).unwrap();
        let mut encode = args!["encode", &file, "--code", "4+2", "--no-sync"].to_vec();
        for disk in &disks {
            fs::create_dir_all(disk.join(below)).unwrap();
            encode.extend(args!["--to", disk.join(below)]);
        }
        run(encode).expect(exit::DONE);
    }
    Yard { folder, disks }
}

#[test]
fn a_tree_on_a_replaced_disk_is_made_anew() {
    let yard = tree();
    let whole = ["A", "B"].map(|below| snapshot(&yard.disks[2].join(below)));
    yard.replace(2);
    let to = yard.disks[2].to_str().unwrap();
    let refused = yard.command("repair", &["-r", "--to", to]).expect(exit::ARGUMENTS);
    assert!(refused.stderr.contains("as one more PATH"), "{refused}");
    assert_eq!(yard.counts()[2], 0);
    yard.command("verify", &["-r"]).expect(exit::REPAIRABLE);
    assert_eq!(yard.counts()[2], 0, "verifying makes no folder");
    yard.command("repair", &["-r"]).expect(exit::DONE);
    assert_eq!(["A", "B"].map(|below| snapshot(&yard.disks[2].join(below))), whole);

    // The same happens if a repair has put all shards on the other two disks before.
    fs::remove_dir_all(yard.disks[2].join("A")).unwrap();
    run(args!["repair", "-r", &yard.disks[0], &yard.disks[1]]).expect(exit::DONE);
    assert!(!yard.disks[2].join("A").exists());
    yard.command("repair", &["-r", "--rebalance"]).expect(exit::DONE);
    assert_eq!(names(&yard.disks[2].join("A")).len(), 2);
}

#[test]
fn a_disk_that_is_not_there_is_not_repaired_without() {
    let yard = Yard::new("4+2", 3, 3);
    fs::remove_dir_all(&yard.disks[1]).unwrap();
    let before = snapshot(&yard.disks[0]);
    let refused = yard.command("repair", &[]).expect(exit::ARGUMENTS);
    assert!(refused.stderr.contains("disk1: there is no such file or folder"), "{refused}");
    assert_eq!((snapshot(&yard.disks[0]), yard.disks[1].exists()), (before, false));
    run(args!["repair", &yard.disks[0], &yard.disks[2]]).expect(exit::DONE);
}

/// A process was killed after it had written a shard in another folder, but before it gave the
/// shard its name.
#[test]
fn a_copy_without_a_name_is_no_place_of_its_shard() {
    let yard = Yard::new("4+2", 3, 2);
    let copies = [0, 1].map(|disk: usize| {
        let name = names(&yard.disks[disk]).pop().unwrap();
        let copy = yard.disks[2].join(format!(".{}.0123abcd.tmp", name.display()));
        fs::copy(yard.disks[disk].join(&name), &copy).unwrap();
        copy
    });
    let said = yard.command("verify", &[]).expect(exit::DONE);
    assert!(
        said.stderr.contains("2 temporary files in ") && said.text().contains("would let any 1")
    );
    let run = yard.command("repair", &["--rebalance"]).expect(exit::DONE);
    assert!(run.text().contains("intact; 2 shards moved"), "{run}");
    assert!(run.text().contains("any 1 of 3 folders may be lost"), "{run}");
    yard.command("repair", &["--clean", "--fewest-reads"]).expect(exit::DONE);
    assert!(copies.iter().all(|copy| copy.exists()), "nobody knows whether the shards are intact");
    let clean = yard.command("repair", &["--clean"]).expect(exit::DONE);
    assert_eq!(yard.counts(), [2, 2, 2], "{clean}");
    assert_eq!(yard.command("verify", &[]).expect(exit::DONE).stderr, "");
}

/// A repair leaves folders alone that hold something else. Rebalancing uses every folder it is
/// given.
#[test]
fn rebalancing_uses_folders_that_hold_other_files() {
    let yard = Yard::new("4+2", 3, 1);
    for disk in &yard.disks[1..] {
        fs::write(disk.join("other"), "of someone").unwrap();
    }
    yard.command("repair", &[]).expect(exit::DONE);
    assert_eq!(yard.counts(), [6, 1, 1]);
    let run = yard.command("repair", &["--rebalance"]).expect(exit::DONE);
    assert!(run.text().contains("any 1 of 3 folders may be lost"), "{run}");
    assert_eq!(yard.counts(), [2, 3, 3]);
}

/// A shard with its own name may have one more copy, which is not told as if it were misnamed.
#[test]
fn a_further_copy_of_a_shard_is_told_as_one() {
    let yard = Yard::new("4+2", 1, 1);
    let name = names(&yard.disks[0]).remove(0);
    let [path, copy] =
        ["", "copy-"].map(|before| yard.disks[0].join(format!("{before}{}", name.display())));
    fs::copy(&path, &copy).unwrap();
    let text = yard.command("verify", &[]).expect(exit::DONE).text();
    assert!(text.contains(&format!("one more intact copy, {}", copy.display())), "{text}");
    fs::remove_file(&path).unwrap();
    let text = yard.command("verify", &[]).expect(exit::DONE).text();
    assert!(text.contains(&format!("under another name, {}", copy.display())), "{text}");
}

#[test]
fn a_shard_that_was_set_aside_was_not_missing() {
    let yard = Yard::new("4+2", 1, 1);
    let path = yard.disks[0].join("object.5of6.paritas");
    let rename = || fs::rename(&path, path.with_extension("paritas.0123abcd.old")).unwrap();
    rename();
    let text = yard.command("repair", &[]).expect(exit::DONE).text();
    assert!(text.contains("shard 5 was not under its name") && path.exists(), "{text}");
    rename();
    assert_eq!(yard.json("repair", &[])["repaired"][0]["was"], "intact");
}
