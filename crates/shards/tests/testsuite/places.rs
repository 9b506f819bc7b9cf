//! Names, copies, several objects, and files that are never overwritten.

use crate::common;
use std::ffi::OsStr;
use std::fs;
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::common::{
    check, code, content, edit, files, front_length, get, get_file, kind, look, mend, only, put,
    small_job,
};
use paritas_shards::{
    EncodeJob, ErrorKind, LeftoverState, ObjectId, RepairJob, ShardState, State, encode, repair,
    scan,
};

fn names(directory: &Path) -> Vec<String> {
    let paths = files(directory).into_keys();
    paths.map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
}

fn job_in(directory: &Path, name: &str, id: u8) -> EncodeJob {
    let mut job = small_job("4+2", directory);
    job.name = name.into();
    job.object = Some(ObjectId::new([id; 16]));
    job
}

#[test]
fn swapped_renamed_and_duplicated_shards() {
    let directory = tempfile::tempdir().unwrap();
    let bytes = content(1000);
    let shards = put(&small_job("4+2", directory.path()), &bytes).shards;
    let aside = directory.path().join("aside");
    fs::rename(&shards[0], &aside).unwrap();
    fs::rename(&shards[5], &shards[0]).unwrap();
    fs::rename(&aside, &shards[5]).unwrap();
    fs::rename(&shards[2], directory.path().join("x")).unwrap();
    fs::copy(&shards[1], directory.path().join("copy")).unwrap();
    let object = only(directory.path());
    let report = check(&object);
    assert_eq!(report.status, State::Intact, "{report:?}");
    let misnamed = |shard: usize| report.shards[shard].files.iter().any(|file| file.misnamed);
    assert_eq!([0, 1, 2, 3, 4, 5].map(misnamed), [true, true, true, false, false, true]);
    assert_eq!(report.shards[1].files.len(), 2);
    assert_eq!(get(&object).unwrap().0, bytes);
    assert!(mend(&object).unwrap().repaired.is_empty());

    // The good blocks of each copy of a shard are used.
    for (path, block) in [(&shards[1], 2), (&directory.path().join("copy"), 4)] {
        edit(path, |bytes| {
            let at = front_length(bytes) + block * 32;
            bytes[at] ^= 1;
        });
    }
    [&shards[3], &shards[4]].iter().for_each(|path| fs::remove_file(path).unwrap());
    let object = only(directory.path());
    let report = check(&object);
    assert_eq!((report.status, report.damaged_segments), (State::Repairable, report.segments));
    assert_eq!(report.shards[1].state, ShardState::Damaged);
    assert_eq!(get(&object).unwrap().0, bytes);
    mend(&object).unwrap();
    assert_eq!(check(&only(directory.path())).status, State::Intact);
}

#[test]
fn one_file_named_twice_is_one_copy() {
    let directory = tempfile::tempdir().unwrap();
    let shards = put(&small_job("4+2", directory.path()), &content(100)).shards;
    let inventory = scan(&[shards[0].clone(), directory.path().to_owned(), shards[0].clone()]);
    assert!(inventory.objects[0].parts().iter().all(|files| files.len() == 1));
}

/// A source that must not be read.
struct Unread;

impl std::io::Read for Unread {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        panic!("the source was read")
    }
}

#[test]
#[cfg(unix)]
fn what_does_not_fit_is_refused_before_anything_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let job = small_job("4+2", directory.path()).length_hint(1 << 56);
    let error = encode(&job, Unread, &|_| {}).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    let message = error.to_string();
    assert!(message.contains("has room for") && message.contains("bytes"), "{message}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

/// Two names of one file are one copy. Two files are two copies, even if they have the same bytes.
#[test]
#[cfg(unix)]
fn a_hard_link_is_no_copy() {
    let directory = tempfile::tempdir().unwrap();
    let shards = put(&small_job("4+2", directory.path()), &content(100)).shards;
    fs::hard_link(&shards[0], directory.path().join("link")).unwrap();
    fs::copy(&shards[1], directory.path().join("copy")).unwrap();
    let copies = |part: usize| only(directory.path()).parts()[part].len();
    assert_eq!((copies(0), copies(1)), (1, 2));
}

#[test]
fn paths_without_shards_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let (missing, file) = (directory.path().join("missing"), directory.path().join("file"));
    fs::write(&file, "no shard").unwrap();
    let refusal = |path: &Path| scan(&[path.into()]).expect_some(&[path.into()]).unwrap_err();
    let error = refusal(&missing);
    assert_eq!(error.kind(), ErrorKind::Io);
    assert_eq!(error.io_kind(), Some(std::io::ErrorKind::NotFound));
    let said = std::error::Error::source(&error).and_then(|said| said.downcast_ref());
    assert!(said.and_then(std::io::Error::raw_os_error).is_some());
    assert!(error.message().contains("missing cannot be read"), "{error}");
    let error = refusal(&file);
    assert_eq!(error.kind(), ErrorKind::NotRecognised);
    assert!(error.message().ends_with("file is not a shard"), "{error}");
    assert_eq!(refusal(directory.path()).kind(), ErrorKind::NotRecognised);
}

#[test]
fn two_objects_in_one_folder() {
    let directory = tempfile::tempdir().unwrap();
    put(&job_in(directory.path(), "one", 1), &content(500));
    put(&job_in(directory.path(), "two", 2), &content(777));
    fs::write(directory.path().join("readme.txt"), "nothing").unwrap();
    let inventory = look(directory.path());
    assert_eq!(inventory.objects.len(), 2);
    assert_eq!(inventory.ignored.len(), 1);
    let error = inventory.choose(None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Ambiguous);
    assert!(error.to_string().contains("0101010101") && error.to_string().contains("two"));
    assert_eq!(get(inventory.choose(Some("two".as_ref())).unwrap()).unwrap().0, content(777));
    let id = inventory.objects[0].id().to_string();
    assert_eq!(get(inventory.choose(Some(id.as_ref())).unwrap()).unwrap().0, content(500));
    assert_eq!(kind(inventory.choose(Some("three".as_ref()))), ErrorKind::NotRecognised);
    let empty = tempfile::tempdir().unwrap();
    assert_eq!(kind(look(empty.path()).choose(None)), ErrorKind::NotRecognised);
}

#[test]
fn the_same_id_with_another_header_is_another_object() {
    let directories = [(); 2].map(|()| tempfile::tempdir().unwrap());
    put(&job_in(directories[0].path(), "one", 1), &content(500));
    put(&job_in(directories[1].path(), "two", 1), &content(600));
    let inventory = scan(&directories.each_ref().map(|d| d.path().to_owned()));
    assert_eq!(inventory.objects.len(), 2);
    assert_eq!(get(&inventory.objects[1]).unwrap().0, content(600));
    // Nobody can tell which of them is meant, until one is there only in part.
    assert_eq!(kind(inventory.choose(None)), ErrorKind::Ambiguous);
    for (path, _) in files(directories[0].path()).into_iter().skip(2) {
        fs::remove_file(path).unwrap();
    }
    let inventory = scan(&directories.each_ref().map(|d| d.path().to_owned()));
    assert_eq!(inventory.objects.len(), 2);
    let id = inventory.objects[0].id().to_string();
    for wanted in [None, Some(id.as_ref())] {
        assert_eq!(get(inventory.choose(wanted).unwrap()).unwrap().0, content(600));
    }
}

#[test]
fn blocks_of_another_object_are_not_believed() {
    let directories = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let ours = put(&job_in(directories[0].path(), "same", 1), &content(500)).shards;
    let theirs = put(&job_in(directories[1].path(), "same", 2), &content(500)[1..]).shards;
    // Two shards get the blocks of the other object under their own headers.
    for shard in [1, 4] {
        let foreign = fs::read(&theirs[shard]).unwrap();
        edit(&ours[shard], |bytes| {
            let (front, end) = (front_length(bytes), common::footer_start(bytes));
            bytes[front..end].copy_from_slice(&foreign[front..end]);
        });
    }
    let object = only(directories[0].path());
    assert_eq!(get(&object).unwrap().0, content(500));
    assert_eq!(check(&object).status, State::Repairable);
}

#[test]
fn names_of_any_bytes() {
    let directory = tempfile::tempdir().unwrap();
    for name in [&b"caf\xe9 \xff\n"[..], b"-rf *", b".hidden", b"a.0of6.paritas", "é".as_bytes()] {
        let mut job = small_job("4+2", directory.path());
        job.name = OsStr::from_bytes(name).to_owned();
        job.object = None;
        let report = put(&job, name);
        fs::remove_file(&report.shards[1]).unwrap();
        let inventory = look(directory.path());
        let object = inventory.choose(Some(OsStr::from_bytes(name))).unwrap();
        assert_eq!(get(object).unwrap().0, name);
        assert_eq!(mend(object).unwrap().repaired[0].path, report.shards[1]);
    }
    let longest = "x".repeat(255 - ".0of6.paritas".len());
    let mut job = job_in(directory.path(), &longest, 9);
    put(&job, b"");
    job.force = true;
    put(&job, b"again");
    job.name.push("x");
    assert_eq!(kind(encode(&job, &b""[..], &|_| {})), ErrorKind::Parameters);
    for name in ["", ".", "..", "a/b", "a\0b"] {
        let job = job_in(directory.path(), name, 9);
        assert_eq!(kind(encode(&job, &b""[..], &|_| {})), ErrorKind::Parameters, "{name:?}");
    }
}

#[test]
fn existing_shards_are_kept_unless_forced() {
    let directory = tempfile::tempdir().unwrap();
    let mut job = job_in(directory.path(), "object", 1);
    put(&job, &content(500));
    let before = files(directory.path());
    job.object = Some(ObjectId::new([2; 16]));
    job.code = code("2+1");
    let error = encode(&job, &content(300)[..], &|_| {}).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Exists);
    assert!(error.to_string().contains("6 shard files"), "{error}");
    assert!(before == files(directory.path()));

    // Other files stay. A set with another number of shards is removed as a whole.
    fs::write(directory.path().join("object.paritas"), "no shard").unwrap();
    put(&job_in(directory.path(), "object.0of6.paritas", 3), &content(10));
    job.force = true;
    put(&job, &content(300));
    let mut expected: Vec<String> = (0..3).map(|i| format!("object.{i}of3.paritas")).collect();
    expected.extend((0..6).map(|i| format!("object.0of6.paritas.{i}of6.paritas")));
    expected.push("object.paritas".to_owned());
    expected.sort();
    assert_eq!(names(directory.path()), expected);
    let inventory = look(directory.path());
    let object = inventory.choose(Some("object".as_ref())).unwrap();
    assert_eq!(get(object).unwrap().0, content(300));
}

#[test]
fn a_failed_replacement_keeps_the_old() {
    struct Fails;
    impl std::io::Read for Fails {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::ConnectionReset.into())
        }
    }
    let directory = tempfile::tempdir().unwrap();
    let mut job = job_in(directory.path(), "object", 1);
    put(&job, &content(500));
    let before = files(directory.path());
    job.force = true;
    assert_eq!(kind(encode(&job, Fails, &|_| {})), ErrorKind::Io);
    assert!(before == files(directory.path()));
    // A directory with the name of a shard is not replaced, and shards that were set aside get
    // their names back.
    fs::remove_file(directory.path().join("object.3of6.paritas")).unwrap();
    fs::create_dir(directory.path().join("object.3of6.paritas")).unwrap();
    let before = files(directory.path());
    assert_eq!(kind(encode(&job, &content(10)[..], &|_| {})), ErrorKind::Exists);
    assert!(before == files(directory.path()));
}

#[test]
fn sets_that_are_set_aside_are_still_seen() {
    // As after a kill between the renamings: some of the old set are set aside, others not yet.
    let directory = tempfile::tempdir().unwrap();
    let mut job = job_in(directory.path(), "object", 1);
    let shards = put(&job, &content(500)).shards;
    for path in &shards[..4] {
        let mut aside = path.clone().into_os_string();
        aside.push(".0123abcd.old");
        fs::rename(path, aside).unwrap();
    }
    fs::write(directory.path().join(".object.0of6.paritas.0123abcd.tmp"), "half").unwrap();
    let inventory = look(directory.path());
    assert!(inventory.ignored.is_empty());
    assert_eq!(get(&inventory.objects[0]).unwrap().0, content(500));
    assert_eq!(kind(encode(&job, &b""[..], &|_| {})), ErrorKind::Exists);
    job.force = true;
    put(&job, &content(20));
    assert_eq!(names(directory.path()).len(), 7);
    assert_eq!(get(&only(directory.path())).unwrap().0, content(20));
}

#[test]
fn remains_of_what_was_replaced_hide_nothing() {
    // A repair of the old object was killed, and then an encoding that had replaced it.
    let directory = tempfile::tempdir().unwrap();
    let mut job = job_in(directory.path(), "object", 1);
    let old = put(&job, &content(500)).shards;
    let kept = fs::read(&old[0]).unwrap();
    job.object = Some(ObjectId::new([2; 16]));
    job.force = true;
    put(&job, &content(20));
    for name in ["object.0of6.paritas.0123abcd.old", ".object.1of6.paritas.0123abcd.tmp"] {
        fs::write(directory.path().join(name), &kept).unwrap();
    }
    let inventory = look(directory.path());
    assert_eq!(get(&only(directory.path())).unwrap().0, content(20));
    let [leftover] = &*inventory.leftovers else { panic!("{:?}", inventory.leftovers) };
    assert_eq!(leftover.state, LeftoverState::Replaced { by: inventory.objects[0].id() });
    assert_eq!(leftover.files.len(), 2);
}

#[test]
fn directories_are_filled_in_turn() {
    let root = tempfile::tempdir().unwrap();
    let directories: Vec<PathBuf> = ["a", "b", "c"].iter().map(|d| root.path().join(d)).collect();
    directories.iter().for_each(|directory| fs::create_dir(directory).unwrap());
    let mut job = small_job("4+2", root.path());
    job.directories = directories.clone();
    let report = put(&job, &content(400));
    assert!(report.shards[4].starts_with(&directories[1]));
    assert!(report.warnings[0].contains("any 1 of 3 folders"), "{:?}", report.warnings);

    // A missing shard goes to the directory with the fewest shards.
    let original = fs::read(&report.shards[5]).unwrap();
    fs::remove_file(&report.shards[5]).unwrap();
    let mended = mend(&scan(&directories).objects[0]).unwrap();
    assert_eq!(mended.repaired[0].path, report.shards[5]);
    assert_eq!(fs::read(&report.shards[5]).unwrap(), original);
    fs::remove_file(&report.shards[5]).unwrap();
    fs::remove_file(&report.shards[4]).unwrap();
    let mended = mend(&scan(&directories).objects[0]).unwrap();
    assert_eq!(mended.repaired[0].path.parent(), Some(&*directories[1]));
    assert_eq!(mended.repaired[1].path.parent(), Some(&*directories[2]));

    job.directories.push(root.path().join("none"));
    job.force = true;
    assert_eq!(kind(encode(&job, &b""[..], &|_| {})), ErrorKind::Io);
}

#[test]
fn repair_never_overwrites_what_is_not_the_shard() {
    let directory = tempfile::tempdir().unwrap();
    let shards = put(&small_job("4+2", directory.path()), &content(400)).shards;
    let originals: Vec<Vec<u8>> = shards.iter().map(|path| fs::read(path).unwrap()).collect();
    // Shard 3 is missing and shard 2 has taken its name; shard 0 was overwritten.
    fs::rename(&shards[2], &shards[3]).unwrap();
    fs::write(&shards[0], "precious").unwrap();
    let report = mend(&only(directory.path())).unwrap();
    let name = |shard: usize| report.repaired[shard].path.file_name().unwrap().to_owned();
    assert_eq!(name(0), "object.0of6.paritas");
    assert_eq!(name(1), "object.3of6-2.paritas");
    let kept = files(directory.path());
    assert!(kept.values().any(|bytes| bytes == b"precious"), "what was there is set aside");
    assert_eq!(fs::read(&shards[3]).unwrap(), originals[2]);
    assert_eq!(fs::read(&report.repaired[0].path).unwrap(), originals[0]);
    assert_eq!(fs::read(&report.repaired[1].path).unwrap(), originals[3]);
}

#[test]
fn repair_into_a_directory() {
    let root = tempfile::tempdir().unwrap();
    let to = root.path().join("to");
    fs::create_dir(&to).unwrap();
    let shards = put(&small_job("4+2", root.path()), &content(400)).shards;
    let whole = fs::read(&shards[1]).unwrap();
    edit(&shards[1], |bytes| bytes[150] ^= 1);
    let damaged = fs::read(&shards[1]).unwrap();
    fs::remove_file(&shards[4]).unwrap();
    let job = RepairJob::default().to(to.clone()).threads(NonZeroUsize::new(1));
    let report = repair(&only(root.path()), &job, &|_| {}).unwrap();
    assert_eq!(report.repaired[0].was, ShardState::Damaged);
    assert_eq!(report.repaired[1].was, ShardState::Missing);
    assert_eq!(names(&to), ["object.1of6.paritas", "object.4of6.paritas"]);
    assert_eq!(fs::read(to.join("object.1of6.paritas")).unwrap(), whole);
    assert_eq!(fs::read(&shards[1]).unwrap(), damaged);
    let both = scan(&[root.path().to_owned(), to]);
    let verified = check(&both.objects[0]);
    assert_eq!(verified.status, State::Intact);
    assert_eq!(verified.shards[1].files.iter().filter(|file| file.is_intact()).count(), 1);
    assert!(mend(&both.objects[0]).unwrap().repaired.is_empty());
}

#[test]
fn decoding_replaces_only_when_told() {
    let directory = tempfile::tempdir().unwrap();
    put(&small_job("4+2", directory.path()), &content(400));
    let object = only(directory.path());
    let out = directory.path().join("out");
    get_file(&object, &out, false).unwrap();
    assert_eq!(fs::read(&out).unwrap(), content(400));
    fs::write(&out, "old").unwrap();
    assert_eq!(kind(get_file(&object, &out, false)), ErrorKind::Exists);
    assert_eq!(fs::read(&out).unwrap(), b"old");
    let link = directory.path().join("link");
    std::os::unix::fs::symlink(&out, &link).unwrap();
    get_file(&object, &link, true).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read(&out).unwrap(), content(400));
    assert_eq!(kind(get_file(&object, directory.path(), true)), ErrorKind::Exists);
    assert_eq!(kind(get_file(&object, &directory.path().join("no/out"), true)), ErrorKind::Io);
    assert_eq!(names(directory.path()).len(), 8);
    // Replacing a link that leads nowhere replaces the link.
    let nowhere = directory.path().join("nowhere");
    std::os::unix::fs::symlink("none", &nowhere).unwrap();
    assert_eq!(kind(get_file(&object, &nowhere, false)), ErrorKind::Exists);
    assert!(fs::symlink_metadata(&nowhere).unwrap().is_symlink());
    get_file(&object, &nowhere, true).unwrap();
    assert_eq!(fs::read(&nowhere).unwrap(), content(400));
}

#[test]
fn what_is_not_a_shard_is_named_with_its_reason() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    fs::write(path("text"), "x").unwrap();
    fs::write(path("empty"), "").unwrap();
    let shards = put(&small_job("4+2", directory.path()), &content(100)).shards;
    for (index, name) in ["version", "matrix", "code"].iter().enumerate() {
        let mut bytes = fs::read(&shards[index]).unwrap();
        bytes.truncate(front_length(&bytes));
        common::forge(&mut bytes, 0, |record| match *name {
            "version" => record[8] = 4,
            "matrix" => {
                let at = record.windows(9).position(|w| w == b"row-scale").unwrap() + 10;
                record[at] = record[at].wrapping_add(1);
            }
            _ => {
                let at = record.windows(6).position(|w| w == b"cauchy").unwrap();
                record[at] = b'k';
            }
        });
        fs::write(path(name), bytes).unwrap();
    }
    let inventory = scan(&[
        path("text"),
        path("empty"),
        path("none"),
        path("version"),
        path("matrix"),
        path("code"),
        "/dev/null".into(),
    ]);
    assert!(inventory.objects.is_empty());
    let reasons: Vec<&str> = inventory.ignored.iter().map(|i| i.reason.as_str()).collect();
    for part in [
        "is not a shard",
        "No such file",
        "version 4; this reader knows up to version 3",
        "no code family `kauchy`",
        "not a regular file",
    ] {
        assert!(reasons.iter().any(|reason| reason.contains(part)), "{part}: {reasons:?}");
    }
    assert_eq!(inventory.ignored.len(), 7);
}

/// Two shards are damaged in one folder, and whole in others: if the damaged files stayed, one
/// folder less could be lost.
#[test]
fn damaged_copies_are_mended_if_more_folders_may_be_lost_then() {
    let root = tempfile::tempdir().unwrap();
    let folders = ["d1", "d2", "d3"].map(|name| root.path().join(name));
    folders.iter().for_each(|folder| fs::create_dir(folder).unwrap());
    let job = EncodeJob::new(code("4+2"), "object", folders.to_vec()).packet(8).sync(false);
    let shards = put(&job, &content(4000)).shards;
    for (shard, folder) in [(0, 1), (3, 2)] {
        fs::copy(&shards[shard], folders[folder].join(shards[shard].file_name().unwrap())).unwrap();
        edit(&shards[shard], |bytes| bytes[150] ^= 1);
    }
    let found = scan(&folders);
    let before = check(&found.objects[0]);
    assert_eq!((before.status, before.placement.tolerance), (State::Intact, 0));
    assert!(before.has_useful_copies(&found.objects[0]));
    let report = mend(&found.objects[0]).unwrap();
    let paths: Vec<&Path> = report.repaired.iter().map(|shard| shard.path.as_path()).collect();
    assert_eq!(paths, [&shards[0], &shards[3]]);
    assert_eq!(report.placement.tolerance, 1);
    let after = check(&scan(&folders).objects[0]);
    assert!(after.placement.tolerance == 1 && !after.has_useful_copies(&found.objects[0]));
    assert!(after.shards.iter().flat_map(|shard| &shard.files).all(|file| file.is_intact()));
}

/// A file that may be a shard of the old object and cannot be opened would stay beside the new
/// shards, so nothing is written.
#[test]
fn shards_that_cannot_be_opened_are_not_left_beside_new_ones() {
    let directory = tempfile::tempdir().unwrap();
    put(&job_in(directory.path(), "object", 1), &content(1000));
    let shard = directory.path().join("object.5of6.paritas");
    fs::remove_file(&shard).unwrap();
    std::os::unix::fs::symlink(&shard, &shard).unwrap();
    let before = files(directory.path());
    let mut job = job_in(directory.path(), "object", 2).force(true);
    job.code = code("3+1");
    let error = encode(&job, &content(500)[..], &|_| {}).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    let named = format!("{} cannot be read: ", shard.display());
    assert!(error.to_string().starts_with(&named), "{error}");
    assert!(files(directory.path()) == before);
}
