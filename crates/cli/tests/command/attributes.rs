//! Permissions, owners and times: shards give nobody more access than the file did, and a decoded
//! file is like the one that was encoded.

use std::ffi::OsString;
use std::fs::{self, File, FileTimes, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::process::geteuid;
use serde_json::json;
use tempfile::TempDir;

use crate::common::{
    self, Run, exit, finish, names, not_run, paritas, paritas_after, run, run_with_input,
};

/// A moment before 1970, 1.75 seconds before the hour.
const SECONDS: i64 = -3602;
const NANOSECONDS: u32 = 250_000_000;

/// A folder with a file of mode `mode`, and a place for shards.
struct Yard {
    folder: TempDir,
}

impl Yard {
    fn new(mode: u32) -> Self {
        let yard = Self { folder: tempfile::tempdir().unwrap() };
        fs::set_permissions(yard.folder.path(), Permissions::from_mode(0o777)).unwrap();
        fs::write(yard.file(), [7; 3000]).unwrap();
        let time = SystemTime::UNIX_EPOCH - Duration::from_secs(SECONDS.unsigned_abs())
            + Duration::from_nanos(NANOSECONDS.into());
        let times = FileTimes::new().set_modified(time);
        File::options().write(true).open(yard.file()).unwrap().set_times(times).unwrap();
        set_mode(&yard.file(), mode);
        yard
    }

    fn encoded(mode: u32, code: &str) -> Self {
        let yard = Self::new(mode);
        masked("022", &yard.encode(code)).expect(exit::DONE);
        yard
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("object")
    }

    fn shards(&self) -> PathBuf {
        self.folder.path().join("shards")
    }

    fn shard(&self, index: usize) -> PathBuf {
        self.shards().join(&names(&self.shards())[index])
    }

    fn encode(&self, code: &str) -> [OsString; 8] {
        let (file, shards) = (self.file(), self.shards());
        args!["encode", file, "--code", code, "--out", shards, "--force", "--no-sync"]
    }

    /// Returns the mode of all shards, which must be the same.
    fn mode_of_shards(&self) -> u32 {
        let mut modes: Vec<u32> =
            names(&self.shards()).iter().map(|name| mode(&self.shards().join(name))).collect();
        modes.dedup();
        assert_eq!(modes.len(), 1, "{modes:?}");
        modes[0]
    }

    /// Returns the mode and the time of the decoded file.
    fn decoded(&self, more: &[&str]) -> (u32, (i64, u32)) {
        let out = self.folder.path().join("back");
        let decode = args!["decode", self.shards(), "--out", &out, "--force", "--no-sync"; more];
        masked("027", &decode).expect(exit::DONE);
        assert_eq!(fs::read(&out).unwrap(), [7; 3000]);
        let metadata = fs::metadata(&out).unwrap();
        (mode(&out), (metadata.mtime(), metadata.mtime_nsec() as u32))
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn owner(path: &Path) -> (u32, u32) {
    let metadata = fs::metadata(path).unwrap();
    (metadata.uid(), metadata.gid())
}

fn masked(umask: &str, arguments: &[OsString]) -> Run {
    finish(paritas_after(&format!("umask {umask}"), arguments))
}

fn is_root() -> bool {
    let is = geteuid().is_root();
    if !is {
        not_run("attributes: only root can give files away");
    }
    is
}

#[test]
fn shards_have_the_mode_of_the_file_at_most() {
    for (source, umask, expected) in [
        (0o600, "022", 0o600),
        (0o644, "022", 0o644),
        (0o755, "022", 0o644),
        (0o666, "077", 0o600),
        (0o440, "000", 0o440),
        (0o6750, "000", 0o640),
    ] {
        let yard = Yard::new(source);
        masked(umask, &yard.encode("2+1")).expect(exit::DONE);
        assert_eq!(yard.mode_of_shards(), expected, "{source:o} with umask {umask}");
        run(args!["verify", yard.shards()]).expect(exit::DONE);
    }
    // A pipe has no mode.
    let yard = Yard::encoded(0o600, "2+1");
    let pipe = args!["encode", "-", "--name", "object", "--out", yard.shards(), "--force"];
    run_with_input(pipe, &[7; 3000]).expect(exit::DONE);
    assert_ne!(yard.mode_of_shards(), 0o600);
    let info = run(args!["info", yard.shards(), "--json"]).expect(exit::DONE).result();
    assert_eq!([&info["mode"], &info["modified"]], [&json!(null); 2]);
    assert_eq!(yard.decoded(&[]).0, 0o640);
    assert_ne!(yard.decoded(&[]).1.0, SECONDS);
}

/// The shards of a disk that only root may read are not open to everybody.
#[cfg(target_os = "linux")]
#[test]
fn shards_have_the_mode_of_a_device_at_most() {
    use rustix::fs::{CWD, FileType, Mode, XattrFlags, makedev, mknodat, setxattr};

    let yard = Yard::new(0o644);
    let device = yard.folder.path().join("device");
    // The device number of /dev/null, which reads as empty.
    let owners = Mode::from_raw_mode(0o600);
    let made = mknodat(CWD, &device, FileType::CharacterDevice, owners, makedev(1, 3));
    if made.is_err() || File::open(&device).is_err() {
        return not_run("attributes: no device can be made here");
    }
    let encode = args!["encode", &device, "--out", yard.shards(), "--no-sync"];
    masked("022", &encode).expect(exit::DONE);
    assert_eq!(yard.mode_of_shards(), 0o600);
    let info = run(args!["info", yard.shards(), "--json"]).expect(exit::DONE).result();
    assert_eq!([&info["mode"], &info["modified"]], [&json!("0600"), &json!(null)]);
    // With a list, the group bits are the most that anybody gets, and the group has nothing.
    if setxattr(&device, ACCESS_LIST, &list_for_a_user(), XattrFlags::empty()).is_err() {
        return not_run("attributes: no access control lists of devices here");
    }
    assert_eq!(mode(&device), 0o660);
    let again = args!["encode", &device, "--out", yard.shards(), "--no-sync", "--force"];
    masked("022", &again).expect(exit::DONE);
    assert_eq!(yard.mode_of_shards(), 0o600);
}

#[cfg(target_os = "linux")]
const ACCESS_LIST: &str = "system.posix_acl_access";

/// Returns a list that lets a user read and write, and the group do nothing.
#[cfg(target_os = "linux")]
fn list_for_a_user() -> Vec<u8> {
    // The owner, user 1, the group, the mask, others: tag, permissions and id.
    let entries =
        [[1, 6, u32::MAX], [2, 6, 1], [4, 0, u32::MAX], [16, 6, u32::MAX], [32, 0, u32::MAX]];
    let entry = |[tag, allowed, id]: [u32; 3]| [tag | allowed << 16, id].map(u32::to_le_bytes);
    let entries = entries.into_iter().flat_map(entry).flatten();
    2_u32.to_le_bytes().into_iter().chain(entries).collect()
}

/// If few files may be open, shards are written under temporary names, in turns.
#[test]
fn many_shards_have_the_mode_of_the_file() {
    let yard = Yard::new(0o400);
    finish(paritas_after("umask 022; ulimit -n 16", &yard.encode("50+10"))).expect(exit::DONE);
    assert_eq!(yard.mode_of_shards(), 0o400);
}

#[test]
fn mode_and_time_come_back() {
    let time = (SECONDS, NANOSECONDS);
    let yard = Yard::encoded(0o4751, "2+1");
    assert_eq!(yard.decoded(&[]), (0o751, time));
    assert_eq!(yard.decoded(&["--preserve-special"]), (0o4751, time));
    let (mode, now) = yard.decoded(&["--no-preserve"]);
    assert_eq!((mode, now.0 > 0), (0o640, true));
    let both = args!["decode", yard.shards(), "-o", "x", "--no-preserve", "--preserve-special"];
    run(both).expect(exit::ARGUMENTS);
    let info = run(args!["info", yard.shards()]).expect(exit::DONE).text();
    assert!(info.contains("mode 4751, modified 1969-12-31T22:59:58.25Z"), "{info}");
    let info = run(args!["info", yard.shards(), "--json"]).expect(exit::DONE).result();
    let modified = json!({"seconds": SECONDS, "nanoseconds": NANOSECONDS});
    assert_eq!((&info["mode"], &info["modified"]), (&json!("4751"), &modified));
    // A pipe has neither mode nor time.
    let piped = run(args!["decode", yard.shards(), "--out", "-"]).expect(exit::DONE);
    assert_eq!(piped.stdout, [7; 3000]);
}

/// A repaired shard keeps the mode and the owner of the damaged file. A missing shard gets the
/// permissions that all other shards have in common, and the owner of the first of them.
#[test]
fn repaired_shards_are_like_what_they_replace_or_like_the_others() {
    let yard = Yard::encoded(0o644, "4+2");
    let whole = common::snapshot(&yard.shards());
    let [damaged, missing] = [0, 3].map(|index| yard.shard(index));
    let others = [1, 2, 4, 5].map(|index| yard.shard(index));
    [0o640, 0o604, 0o644, 0o640].iter().zip(&others).for_each(|(&mode, path)| set_mode(path, mode));
    fs::write(&damaged, &whole[damaged.file_name().unwrap()][..1000]).unwrap();
    set_mode(&damaged, 0o664);
    if is_root() {
        others.iter().for_each(|path| chown(path, Some(1234), Some(2345)).unwrap());
        chown(&damaged, Some(77), Some(88)).unwrap();
    }
    let (first, second) = (owner(&damaged), owner(&others[0]));
    fs::remove_file(&missing).unwrap();
    masked("077", &args!["repair", yard.shards(), "--no-sync"]).expect(exit::DONE);
    assert_eq!((mode(&damaged), owner(&damaged)), (0o664, first));
    // The owner is that of the first other shard, which is the damaged one.
    assert_eq!((mode(&missing), owner(&missing)), (0o600, first));
    fs::remove_file(&damaged).unwrap();
    let fewest = args!["repair", yard.shards(), "--no-sync", "--fewest-reads"];
    masked("000", &fewest).expect(exit::DONE);
    assert_eq!((mode(&damaged), owner(&damaged)), (0o600, second));
    assert_eq!(common::snapshot(&yard.shards()), whole);
}

#[test]
fn promoted_shards_are_like_the_others() {
    let yard = Yard::encoded(0o640, "dpg:k=3,m=1,m2=2");
    let first = names(&yard.shards());
    if is_root() {
        first.iter().for_each(|n| chown(yard.shards().join(n), Some(1234), Some(2345)).unwrap());
    }
    let group = owner(&yard.shard(0));
    masked("000", &args!["promote", yard.shards(), "--no-sync"]).expect(exit::DONE);
    assert!(names(&yard.shards()).len() > first.len());
    assert_eq!(yard.mode_of_shards(), 0o640);
    let last = names(&yard.shards()).len() - 1;
    assert_eq!(owner(&yard.shard(last)), group);
    assert_eq!(yard.decoded(&[]), (0o640, (SECONDS, NANOSECONDS)));
}

/// An export gives access only to those who could read the file, and an import only to those who
/// could read the fragments.
#[test]
fn fragments_give_no_more_access() {
    let yard = Yard::encoded(0o640, "zfec:k=3,m=2");
    let fragments = yard.folder.path().join("fragments");
    let export = args!["export", yard.shards(), "--format", "zfec", "--out", &fragments];
    masked("000", &export).expect(exit::DONE);
    let paths: Vec<PathBuf> = names(&fragments).iter().map(|name| fragments.join(name)).collect();
    assert!(paths.len() == 5 && paths.iter().all(|path| mode(path) == 0o640));
    set_mode(&paths[1], 0o604);
    fs::remove_dir_all(yard.shards()).unwrap();
    let import = args!["import", &fragments, "--format", "zfec", "--out", yard.shards()];
    masked("000", &import).expect(exit::DONE);
    assert_eq!(yard.mode_of_shards(), 0o600);
    assert_eq!(yard.decoded(&[]).0, 0o600);
}

/// A file of mode 0600 with an access control list shows mode 0660: the group bits are the most
/// that the list gives to anybody. Its group may do nothing, nor with what is made from it.
#[cfg(target_os = "linux")]
#[test]
fn a_list_does_not_open_shards_to_the_group() {
    use rustix::fs::{XattrFlags, setxattr};

    let yard = Yard::new(0o600);
    let list = list_for_a_user();
    if setxattr(yard.file(), ACCESS_LIST, &list, XattrFlags::empty()).is_err() {
        return not_run("attributes: no access control lists here");
    }
    assert_eq!(mode(&yard.file()), 0o660);
    masked("000", &yard.encode("2+1")).expect(exit::DONE);
    assert_eq!(yard.mode_of_shards(), 0o600);
    fs::remove_file(yard.shard(0)).unwrap();
    masked("000", &args!["repair", yard.shards(), "--no-sync"]).expect(exit::DONE);
    assert_eq!((names(&yard.shards()).len(), yard.mode_of_shards()), (3, 0o600));
    assert_eq!(yard.decoded(&[]).0, 0o600);
    // Neither does one that the folder gives to new files.
    let shards = yard.shards();
    setxattr(&shards, "system.posix_acl_default", &list, XattrFlags::empty()).unwrap();
    masked("000", &yard.encode("2+1")).expect(exit::DONE);
    assert_eq!(yard.mode_of_shards(), 0o600);
}

#[test]
fn shards_belong_to_whom_the_file_does() {
    if !is_root() {
        return not_run("attributes: only root gives files to others");
    }
    let yard = Yard::new(0o640);
    chown(yard.file(), Some(1234), Some(2345)).unwrap();
    masked("000", &yard.encode("2+1")).expect(exit::DONE);
    assert_eq!(yard.mode_of_shards(), 0o640);
    (0..3).for_each(|index| assert_eq!(owner(&yard.shard(index)), (1234, 2345)));

    // Another user in the file's group can give files away only to that group.
    let encode_as = |user, group| {
        fs::remove_dir_all(yard.shards()).unwrap();
        let mut command = paritas(yard.encode("2+1"));
        command.uid(user).gid(group);
        finish(command)
    };
    let reader = encode_as(4321, 2345);
    if reader.stderr.contains("denied") || reader.code != exit::DONE {
        return not_run("attributes: the program cannot be run as another user");
    }
    assert_eq!((owner(&yard.shard(0)), yard.mode_of_shards()), ((4321, 2345), 0o640));
    // The shards then belong to another group, which gets no more than the rights of others.
    set_mode(&yard.file(), 0o664);
    encode_as(4321, 4321).expect(exit::DONE);
    assert_eq!((owner(&yard.shard(0)), yard.mode_of_shards()), ((4321, 4321), 0o644));
}
