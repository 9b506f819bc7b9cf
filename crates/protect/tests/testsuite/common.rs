//! Random trees, damage to them, and comparison of what is there with what there was.

#[path = "../../../store/tests/common/mod.rs"]
mod shared;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, FileTimes, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use paritas_protect::{
    ProtectJob, ProtectReport, Protection, RepairJob, RepairReport, VerifyOptions, VerifyReport,
    find, plan, protect, repair, verify,
};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

pub use shared::{not_run, renew_times};

/// Seeded chance.
pub struct Chance(Xoshiro256PlusPlus);

impl Chance {
    pub fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Returns a number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.0.next_u64() % end.max(1) as u64) as usize
    }

    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.0.fill_bytes(&mut bytes);
        bytes
    }

    pub fn pick<'t, T>(&mut self, things: &'t [T]) -> &'t T {
        &things[self.below(things.len())]
    }
}

/// A thing in a tree, with everything about it that a repair must restore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Thing {
    Folder { mode: u32 },
    Symlink { target: Vec<u8> },
    File { bytes: Vec<u8>, mode: u32, modified: SystemTime },
}

/// Everything in a tree, by path, but the parity and copies of what was replaced.
pub type Snapshot = BTreeMap<PathBuf, Thing>;

pub fn snapshot(root: &Path) -> Snapshot {
    let mut things = Snapshot::new();
    add(root, Path::new(""), &mut things);
    things
}

fn add(root: &Path, relative: &Path, things: &mut Snapshot) {
    for entry in fs::read_dir(root.join(relative)).unwrap() {
        let entry = entry.unwrap();
        let path = relative.join(entry.file_name());
        let metadata = entry.metadata().unwrap();
        let mode = metadata.mode() & 0o7777;
        let is_copy = entry.file_name().as_bytes().windows(9).any(|part| part == b".damaged-");
        if entry.file_name() == ".paritas" || is_copy {
            continue;
        }
        let thing = if metadata.is_dir() {
            add(root, &path, things);
            Thing::Folder { mode }
        } else if metadata.is_symlink() {
            let target = fs::read_link(entry.path()).unwrap();
            Thing::Symlink { target: target.as_os_str().as_bytes().to_vec() }
        } else {
            let bytes = fs::read(entry.path()).unwrap();
            Thing::File { bytes, mode, modified: metadata.modified().unwrap() }
        };
        things.insert(path, thing);
    }
}

/// Removes the copies of what was replaced in a folder. They have bytes that a repair could use.
pub fn remove_copies(folder: &Path) {
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.as_os_str().as_bytes().windows(9).any(|part| part == b".damaged-") {
            fs::remove_file(path).unwrap();
        }
    }
}

/// Asserts that two trees are equal, and says where they are not.
pub fn assert_same(now: &Snapshot, then: &Snapshot, what: &str) {
    for (path, thing) in then {
        let found = now.get(path);
        let (is, was) = (shape(found), shape(Some(thing)));
        assert!(found == Some(thing), "{what}: {} is {is}, not {was}", path.display());
    }
    let more: Vec<&PathBuf> = now.keys().filter(|path| !then.contains_key(*path)).collect();
    assert!(more.is_empty(), "{what}: {more:?}");
}

fn shape(thing: Option<&Thing>) -> String {
    match thing {
        Some(Thing::File { bytes, mode, modified }) => {
            format!("a file of {} bytes, {mode:o}, {modified:?}", bytes.len())
        }
        other => format!("{other:?}"),
    }
}

/// Sets a time that no clock gives now.
pub fn age(path: &Path, seconds: u64) {
    let time = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000 + seconds, 123_456_789);
    File::open(path).unwrap().set_times(FileTimes::new().set_modified(time)).unwrap();
}

/// Writes a file with a mode and a time.
pub fn write(path: &Path, bytes: &[u8], mode: u32, seconds: u64) {
    fs::write(path, bytes).unwrap();
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    age(path, seconds);
}

/// Makes a random tree of about `bytes` bytes in `count` files.
pub fn make_tree(root: &Path, chance: &mut Chance, count: usize, bytes: usize) {
    let mut folders = vec![root.to_owned()];
    for number in 0..count / 4 + 1 {
        let name: Vec<u8> = match number % 4 {
            0 => format!("folder {number}").into(),
            1 => [b"caf\xe9 \n\x01", number.to_string().as_bytes()].concat(),
            _ => format!("{number}").into(),
        };
        let folder = chance.pick(&folders).join(OsStr::from_bytes(&name));
        fs::create_dir(&folder).unwrap();
        folders.push(folder);
    }
    for number in 0..count {
        let size = match number {
            0 => bytes / 2,
            1 => 0,
            _ => chance.below(bytes / count + 1),
        };
        let mode = *chance.pick(&[0o644, 0o600, 0o755, 0o664]);
        let name = match number % 7 {
            3 => b"\xff\xfe weird".to_vec(),
            _ => b"file".to_vec(),
        };
        let name = [&name, number.to_string().as_bytes()].concat();
        let path = chance.pick(&folders).join(OsStr::from_bytes(&name));
        write(&path, &chance.bytes(size), mode, number as u64);
    }
    symlink("/etc/passwd", root.join("link out")).unwrap();
    symlink("nowhere", chance.pick(&folders).join("link")).unwrap();
}

/// Protects a root with small settings.
pub fn job(root: &Path) -> ProtectJob {
    ProtectJob::new(vec![root.to_owned()]).sync(false)
}

/// Protects, and then makes the system's times of all files new, as copying a tree does. So files
/// that a test damages as a disk would do not stand out.
pub fn make(job: &ProtectJob) -> ProtectReport {
    let report = protect(&plan(job).unwrap(), &|_| {}).unwrap();
    job.paths.iter().for_each(|path| renew_times(path));
    report
}

pub fn only(path: &Path) -> Protection {
    let mut found = find(&[path.to_owned()]).unwrap();
    assert_eq!(found.len(), 1);
    found.remove(0)
}

pub fn check(root: &Path) -> VerifyReport {
    verify(&only(root), &VerifyOptions::default(), &|_| {}).unwrap()
}

pub fn mend(root: &Path) -> RepairReport {
    repair(&only(root), &RepairJob::default().sync(false), &|_| {}).unwrap()
}

/// Changes a file in place and gives it its old time, as a disk does.
pub fn damage(path: &Path, change: impl FnOnce(&File)) {
    let metadata = fs::metadata(path).unwrap();
    let old = metadata.permissions();
    if old.readonly() {
        fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
    }
    let file = File::options().read(true).write(true).open(path).unwrap();
    change(&file);
    file.set_times(FileTimes::new().set_modified(metadata.modified().unwrap())).unwrap();
    fs::set_permissions(path, old).unwrap();
}

/// Flips a byte.
pub fn flip(path: &Path, at: u64) {
    damage(path, |file| {
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).unwrap();
        file.write_all_at(&[byte[0] ^ 0x5a], at).unwrap();
    });
}

/// An access control list: its version, and for each entry tag, permissions and id.
pub fn list(entries: &[(u16, u16, u32)]) -> Vec<u8> {
    let mut bytes = 2_u32.to_le_bytes().to_vec();
    for (tag, allowed, id) in entries {
        bytes.extend(tag.to_le_bytes().into_iter().chain(allowed.to_le_bytes()));
        bytes.extend(id.to_le_bytes());
    }
    bytes
}
