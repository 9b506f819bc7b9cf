//! Files that somebody has made or copied among the manifests of a node: they must neither destroy
//! nor hide objects, and verification tells of them.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{Disks, content, get, name, put};
use paritas_volume::{ErrorKind, State, Volume};

/// Returns the folder of a name's manifests on a disk.
fn manifests(disks: &Disks, disk: usize, object: &str) -> PathBuf {
    disks.path(disk).join("manifests").join(format!("{object}@"))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for file in files(from) {
        fs::copy(&file, to.join(file.file_name().unwrap())).unwrap();
    }
}

async fn repair_all(volume: &Volume) {
    for object in volume.most_urgent_first(&volume.overview("").await.unwrap()).await {
        // A name that has only foreign files is not an object, so repair may fail.
        let _ = volume.repair(&object, false).await;
    }
    volume.collect().await.unwrap();
}

/// Writes an empty file with the name of a manifest of `of` among the manifests of `object`.
fn stray(disks: &Disks, of: &str, object: &str) -> PathBuf {
    let file = files(&manifests(disks, 0, of)).pop().unwrap();
    let folder = manifests(disks, 0, object);
    fs::create_dir_all(&folder).unwrap();
    let stray = folder.join(file.file_name().unwrap());
    fs::write(&stray, b"").unwrap();
    stray
}

#[tokio::test]
async fn a_stray_name_among_manifests_costs_no_other_object() {
    for verb in ["repair", "deep repair", "put", "remove"] {
        let disks = Disks::new(3);
        let volume = disks.volume("2+1").await;
        let (big, small) = (content(100_000), content(100));
        put(&volume, "a/big", &big).await;
        // The second version has a greater generation than the first object, which may be as old as
        // the first version.
        put(&volume, "big", &big).await;
        put(&volume, "big", &small).await;
        stray(&disks, "a/big", "big");
        let verdict = volume.verify(&name("big"), true).await.unwrap();
        assert_eq!(verdict.state, State::Repairable, "{verdict:?}");
        match verb {
            "repair" => repair_all(&volume).await,
            "put" => drop(put(&volume, "big", b"new").await),
            "remove" => drop(volume.remove(&name("big")).await.unwrap()),
            _ => drop(volume.repair(&name("big"), true).await.unwrap()),
        }
        assert!(get(&volume, "a/big").await.unwrap() == big, "{verb}");
        let verdict = volume.verify(&name("a/big"), true).await.unwrap();
        assert_eq!(verdict.state, State::Intact, "{verb}: {verdict:?}");
    }
}

#[tokio::test]
async fn a_copied_folder_of_manifests_is_no_object_and_may_be_removed() {
    let disks = Disks::new(3);
    let volume = disks.volume("2+1").await;
    let big = content(100_000);
    put(&volume, "big", &big).await;
    for disk in 0..3 {
        copy(&manifests(&disks, disk, "big"), &manifests(&disks, disk, "copy"));
    }
    assert_eq!(get(&volume, "copy").await.unwrap_err().kind(), ErrorKind::NotFound);
    let verified = volume.verify(&name("copy"), false).await.unwrap_err();
    assert!(verified.to_string().contains("delete it"), "{verified}");
    repair_all(&volume).await;
    let _ = disks.open("2+1").remove(&name("copy")).await;
    put(&disks.open("2+1"), "copy", b"of its own").await;
    assert!(get(&volume, "big").await.unwrap() == big);
    assert_eq!(volume.verify(&name("big"), true).await.unwrap().state, State::Intact);
    assert_eq!(get(&volume, "copy").await.unwrap(), b"of its own");
}

#[tokio::test]
async fn a_version_before_the_current_one_does_not_take_its_shards() {
    let disks = Disks::new(3);
    let volume = disks.volume("2+1").await;
    let big = content(100_000);
    put(&volume, "big", &big).await;
    let file = files(&manifests(&disks, 0, "big")).pop().unwrap();
    let text = file.file_name().unwrap().to_str().unwrap().to_owned();
    let (_, rest) = text.split_once('-').unwrap();
    fs::copy(&file, file.with_file_name(format!("{:016x}-{rest}", 7))).unwrap();
    repair_all(&volume).await;
    assert!(get(&volume, "big").await.unwrap() == big);
}

#[tokio::test]
async fn manifests_of_another_volume_do_not_count() {
    let (disks, others) = (Disks::new(3), Disks::new(3));
    let volume = disks.volume("2+1").await;
    put(&volume, "both", &content(50_000)).await;
    put(&volume, "removed", &content(50)).await;
    volume.remove(&name("removed")).await.unwrap();
    // The other volume has another id. Its versions are greater, because they are younger.
    let foreign = others.open_changed("2+1", &|_, node| node, |setup| setup.id = "1".repeat(32));
    foreign.mark_nodes().await.unwrap();
    for object in ["both", "removed", "theirs"] {
        for length in [60_000, 10, 60_000] {
            put(&foreign, object, &content(length)).await;
        }
    }
    let copied: Vec<PathBuf> = ["both", "removed", "theirs"]
        .into_iter()
        .flat_map(|object| {
            copy(&manifests(&others, 0, object), &manifests(&disks, 0, object));
            let theirs = files(&manifests(&others, 0, object));
            theirs.into_iter().map(move |file| {
                PathBuf::from(format!("{object}@")).join(file.file_name().unwrap())
            })
        })
        .collect();
    let volume = disks.open("2+1");
    let listed = volume.list("both").await.unwrap().objects;
    assert_eq!(listed[&name("both")].length, 50_000);
    assert!(get(&volume, "both").await.unwrap() == content(50_000));
    for object in ["removed", "theirs"] {
        assert_eq!(get(&volume, object).await.unwrap_err().kind(), ErrorKind::NotFound);
    }
    repair_all(&disks.open("2+1")).await;
    let volume = disks.open("2+1");
    // They are told, but the object is whole, and there is nothing to repair.
    let verdict = volume.verify(&name("both"), true).await.unwrap();
    assert_eq!(verdict.state, State::Intact, "{verdict:?}");
    assert!(verdict.flaws[0].message.contains("another volume"), "{verdict:?}");
    for file in copied {
        let on = |disk: usize| disks.path(disk).join("manifests").join(&file).exists();
        assert_eq!([0, 1, 2].map(on), [true, false, false], "{file:?}");
    }
}

#[tokio::test]
async fn a_mark_that_cannot_be_read_does_not_hide_the_object() {
    let disks = Disks::new(3);
    let volume = disks.volume("2+1").await;
    let bytes = content(100_000);
    put(&volume, "object", &bytes).await;
    let file = files(&manifests(&disks, 0, "object")).pop().unwrap();
    let text = file.file_name().unwrap().to_str().unwrap();
    let generation = u64::from_str_radix(&text[..16], 16).unwrap() + 1;
    let mark = file.with_file_name(format!("{generation:016x}-{}-0.removed", "0a".repeat(16)));
    fs::write(&mark, b"").unwrap();
    assert_eq!(volume.list("").await.unwrap().objects.len(), 1, "it is not hidden");
    for error in [
        get(&volume, "object").await.unwrap_err(),
        volume.verify(&name("object"), true).await.unwrap_err(),
        volume.repair(&name("object"), false).await.unwrap_err(),
    ] {
        assert_ne!(error.kind(), ErrorKind::NotFound, "{error}");
        let error = error.to_string();
        assert!(error.contains(mark.file_name().unwrap().to_str().unwrap()), "{error}");
        assert!(error.contains("delete"), "{error}");
    }
    fs::remove_file(&mark).unwrap();
    assert!(get(&volume, "object").await.unwrap() == bytes);
    // A mark with a damaged copy still counts, and a deep verification finds the damage.
    volume.remove(&name("object")).await.unwrap();
    assert_eq!(volume.overview("").await.unwrap().removed().count(), 1);
    let verified = volume.verify(&name("object"), true).await.unwrap_err();
    assert_eq!(verified.kind(), ErrorKind::NotFound, "{verified}");
    let copies: Vec<PathBuf> =
        (0..3).flat_map(|disk| files(&manifests(&disks, disk, "object"))).collect();
    fs::write(&copies[0], b"").unwrap();
    assert_eq!(get(&volume, "object").await.unwrap_err().kind(), ErrorKind::NotFound);
    let verdict = volume.verify(&name("object"), true).await.unwrap();
    assert_eq!((verdict.state, verdict.flaws.len()), (State::Repairable, 1), "{verdict:?}");
    volume.repair(&name("object"), true).await.unwrap();
    let verified = volume.verify(&name("object"), true).await.unwrap_err();
    assert_eq!(verified.kind(), ErrorKind::NotFound, "{verified}");
}

#[tokio::test]
async fn a_damaged_manifest_without_shards_names_no_shards() {
    let disks = Disks::new(3);
    let volume = disks.volume("2+1").await;
    put(&volume, "object", &content(100_000)).await;
    let file = files(&manifests(&disks, 0, "object")).pop().unwrap();
    let text = file.file_name().unwrap().to_str().unwrap();
    let generation = u64::from_str_radix(&text[..16], 16).unwrap() + 1;
    let stray = file.with_file_name(format!("{generation:016x}-{}-a.put", "0a".repeat(16)));
    fs::write(&stray, b"").unwrap();
    let error = get(&volume, "object").await.unwrap_err().to_string();
    assert!(!error.contains("objects/0a") && error.contains("delete"), "{error}");
}

/// The files of two shards hold each other's bytes.
#[tokio::test]
async fn shards_that_fail_their_checksums_do_not_count_as_readable() {
    let disks = Disks::new(3);
    let volume = disks.volume("2+1").await;
    put(&volume, "object", &content(100_000)).await;
    let shard = |index: usize| {
        let mut files = disks.files("objects").into_iter();
        files.find(|path| path.to_string_lossy().contains(&format!(".{index}of3"))).unwrap()
    };
    let [one, two] = [0, 1].map(shard);
    let bytes = fs::read(&one).unwrap();
    fs::copy(&two, &one).unwrap();
    fs::write(&two, bytes).unwrap();
    let error = get(&volume, "object").await.unwrap_err().to_string();
    assert!(error.contains("1 of 3 shards can be read, 2 are enough"), "{error}");
}
