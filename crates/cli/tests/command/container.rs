//! Commands with little memory, as in containers. Without --memory, the program stays within the
//! limits of its process and of its control group. The system ends a process that does not.

#![cfg(target_os = "linux")]

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{exit, finish, not_run, paritas_after, run};

/// Bytes of memory that commands may use here.
const LIMIT: u64 = 200 << 20;
/// Bytes of the file that is protected, and of its parity.
const LENGTH: u64 = 260 << 20;

/// A folder on a disk with one large file. (Files on a memory disk would count as memory of the
/// command.)
fn yard() -> tempfile::TempDir {
    let yard = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    // Zeros take no room.
    fs::File::create(yard.path().join("large")).unwrap().set_len(LENGTH).unwrap();
    yard
}

/// A control group whose memory is limited. It is removed on drop.
struct Group(PathBuf);

impl Group {
    /// Makes a group. Returns `None` if the machine does not allow it: it takes root, and writable
    /// control groups.
    fn new() -> Option<Self> {
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let first = own.lines().find_map(|line| line.split_once(":memory:"));
        let (above, file) = match first {
            Some((_, path)) => (format!("/sys/fs/cgroup/memory{path}"), "memory.limit_in_bytes"),
            None => {
                let _ = fs::write("/sys/fs/cgroup/cgroup.subtree_control", "+memory");
                ("/sys/fs/cgroup".to_owned(), "memory.max")
            }
        };
        let group = Self(Path::new(&above).join(format!("paritas-{}", std::process::id())));
        fs::create_dir(&group.0).ok()?;
        fs::write(group.0.join(file), LIMIT.to_string()).ok().map(|()| group)
    }

    /// Returns the shell command that enters the group.
    fn enter(&self) -> String {
        format!("echo $$ > {}/cgroup.procs", self.0.display())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// Protects a file whose parity is larger than the memory, loses it, repairs and verifies.
fn works_within(first: &str) {
    let yard = yard();
    let large = yard.path().join("large");
    // Each thread takes address space, and machines have many.
    let two = |arguments: &[std::ffi::OsString]| {
        let arguments = [arguments, &args!["--threads", "2"]].concat();
        finish(paritas_after(first, &arguments)).expect(exit::DONE)
    };
    let protect = two(&args!["protect", &large, "--redundancy", "100%", "--no-sync"]);
    let expected = "do not fit into 50.00 MiB of memory, a quarter of the 200.00 MiB";
    assert!(protect.stderr.contains(expected), "{protect}");
    fs::remove_file(&large).unwrap();
    two(&args!["repair", yard.path(), "--no-sync"]);
    assert_eq!(large.metadata().unwrap().len(), LENGTH);
    two(&args!["verify", &large]);
}

#[test]
fn protection_fits_into_a_container() {
    match Group::new() {
        Some(group) => works_within(&group.enter()),
        None => not_run("container: no control group can be made here; it takes root"),
    }
}

#[test]
fn protection_fits_into_the_limit_of_a_process() {
    works_within(&format!("ulimit -v {}", LIMIT >> 10));
}

/// A --memory above what the system has is accepted, with a warning.
#[test]
fn more_memory_than_there_is_gives_a_warning() {
    let yard = tempfile::tempdir().unwrap();
    let small = yard.path().join("small");
    fs::write(&small, "small").unwrap();
    let warning = "--memory 900.00 GiB is more than the ";
    for update in [None, Some("--update")] {
        let arguments = ["--memory", "900GiB", "--no-sync"].into_iter().chain(update);
        let arguments = args!["protect", &small].into_iter().chain(arguments.map(Into::into));
        let protect = run(arguments).expect(exit::DONE);
        assert!(protect.stderr.contains(warning), "{protect}");
    }
    let repair = run(args!["repair", &small, "--memory", "900GiB"]).expect(exit::DONE);
    assert!(repair.stderr.contains(warning), "{repair}");
    let repair = run(args!["repair", &small, "--memory", "1MiB"]).expect(exit::DONE);
    assert!(repair.stderr.is_empty(), "{repair}");
}
