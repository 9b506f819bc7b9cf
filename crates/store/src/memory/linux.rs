//! What Linux tells about memory: what the machine has free, and what control groups allow. The
//! root of the system is an argument, so that tests can make one up.

use std::fs;
use std::path::Path;

/// Returns the number of bytes that the machine can give and its control groups allow.
pub fn usable(system: &Path) -> Option<u64> {
    [available(system), in_control_groups(system)].into_iter().flatten().min()
}

/// Returns the number of bytes that the machine can give without swapping.
fn available(system: &Path) -> Option<u64> {
    let text = fs::read_to_string(system.join("proc/meminfo")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}

/// Returns the lowest limit of the control groups that this process is in, and of all groups above
/// them.
fn in_control_groups(system: &Path) -> Option<u64> {
    let read = |path: &str| fs::read_to_string(system.join(path)).unwrap_or_default();
    let (groups, mounts) = (read("proc/self/cgroup"), read("proc/self/mountinfo"));
    let groups = groups.lines().filter_map(ControlGroup::parse);
    let limits = groups.flat_map(|group| {
        let hierarchies = mounts.lines().filter_map(Hierarchy::parse);
        hierarchies.filter_map(move |hierarchy| hierarchy.lowest(system, &group))
    });
    limits.min()
}

/// The version of control groups: 1 has a hierarchy for each resource, 2 has one for all.
#[derive(Debug, Clone, Copy, PartialEq)]
enum CgroupVersion {
    One,
    Two,
}

/// A control group that this process is in: a line of `/proc/self/cgroup`.
struct ControlGroup<'a> {
    version: CgroupVersion,
    path: &'a Path,
}

impl<'a> ControlGroup<'a> {
    /// Reads a line, if the group may limit memory: `4:memory:/path`, or `0::/path` in version 2.
    fn parse(line: &'a str) -> Option<Self> {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, Path::new(fields.next()?));
        let version = match controllers {
            "" => CgroupVersion::Two,
            names => names.split(',').find(|&name| name == "memory").map(|_| CgroupVersion::One)?,
        };
        Some(Self { version, path })
    }
}

/// A mounted hierarchy of control groups that may limit memory: a line of `/proc/self/mountinfo`.
struct Hierarchy<'a> {
    version: CgroupVersion,
    /// The group that is mounted.
    root: &'a Path,
    /// Where it is mounted.
    place: &'a Path,
}

impl<'a> Hierarchy<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (place, kind) = line.split_once(" - ")?;
        let mut place = place.split(' ').skip(3);
        let mut kind = kind.split(' ');
        let version = match (kind.next()?, kind.next_back()?) {
            ("cgroup", options) if options.split(',').any(|name| name == "memory") => {
                CgroupVersion::One
            }
            ("cgroup2", _) => CgroupVersion::Two,
            _ => return None,
        };
        Some(Self { version, root: Path::new(place.next()?), place: Path::new(place.next()?) })
    }

    /// Returns the lowest limit of a group and of the groups above it, as far as they are mounted.
    /// A container may see only its own group, mounted under another path: then that group's limit
    /// counts.
    fn lowest(&self, system: &Path, group: &ControlGroup<'_>) -> Option<u64> {
        let names: &[&str] = match self.version {
            CgroupVersion::One => &["memory.limit_in_bytes"],
            CgroupVersion::Two => &["memory.max", "memory.high"],
        };
        let below = group.path.strip_prefix(self.root).unwrap_or(Path::new(""));
        let place = system.join(self.place.strip_prefix("/").ok()?);
        let folders = below.ancestors().map(|folder| place.join(folder));
        let folders = folders.filter(|_| self.version == group.version);
        let files = folders.flat_map(|folder| names.iter().map(move |name| folder.join(name)));
        // The word `max` means that the group has no limit.
        files.filter_map(|file| fs::read_to_string(file).ok()?.trim().parse().ok()).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a system of files, which are given by path and content.
    fn system(files: &[(&str, &str)]) -> tempfile::TempDir {
        let system = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = system.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        system
    }

    const V2: &str = "25 1 0:22 / /proc rw - proc proc rw\n\
                      31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";
    const V1: &str = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
                      34 31 0:31 /docker/1 /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                      35 31 0:32 /docker/1 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";

    #[test]
    fn the_lowest_limit_on_the_way_up_counts() {
        let limit = |own: (&str, &str), above: (&str, &str)| {
            let folder = "sys/fs/cgroup/user.slice";
            let system = system(&[
                ("proc/self/cgroup", "0::/user.slice/app\n"),
                ("proc/self/mountinfo", V2),
                (&format!("{folder}/app/memory.max"), own.0),
                (&format!("{folder}/app/memory.high"), own.1),
                (&format!("{folder}/memory.max"), above.0),
                (&format!("{folder}/memory.high"), above.1),
            ]);
            in_control_groups(system.path())
        };
        assert_eq!(limit(("max\n", "max\n"), ("max\n", "max\n")), None);
        assert_eq!(limit(("314572800\n", "max\n"), ("max\n", "max\n")), Some(300 << 20));
        assert_eq!(limit(("314572800\n", "1000\n"), ("max\n", "max\n")), Some(1000));
        assert_eq!(limit(("max\n", "max\n"), ("2000\n", "max\n")), Some(2000));
        assert_eq!(limit(("5000\n", "max\n"), ("max\n", "3000\n")), Some(3000));
    }

    #[test]
    fn containers_of_the_first_version_see_their_group_as_the_root() {
        let limit = |path: &str, file: &str| {
            let groups = format!("5:cpu,cpuacct:/docker/1\n4:memory:{path}\n0::/\n");
            let file = format!("sys/fs/cgroup/memory/{file}memory.limit_in_bytes");
            let top = "sys/fs/cgroup/memory/memory.limit_in_bytes";
            let system = system(&[
                ("proc/self/cgroup", &groups),
                ("proc/self/mountinfo", V1),
                (top, "9223372036854771712\n"),
                (&file, "1048576\n"),
            ]);
            in_control_groups(system.path())
        };
        assert_eq!(limit("/docker/1", ""), Some(1 << 20));
        assert_eq!(limit("/docker/1/job", "job/"), Some(1 << 20));
        assert_eq!(limit("/docker/1", "job/"), Some(9223372036854771712));
        // The paths of a group of control groups of its own.
        assert_eq!(limit("/", ""), Some(1 << 20));
    }

    #[test]
    fn both_versions_may_be_mounted_and_only_one_counts_memory() {
        let mounts = format!(
            "{V1}41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n\
             42 31 0:39 / /elsewhere rw - ext4 /dev/sda1 rw\n"
        );
        let system = system(&[
            ("proc/self/cgroup", "4:memory:/docker/1\n0::/\n"),
            ("proc/self/mountinfo", &mounts),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "4096\n"),
            ("sys/fs/cgroup/unified/cgroup.procs", "1\n"),
        ]);
        assert_eq!(in_control_groups(system.path()), Some(4096));
    }

    #[test]
    fn the_machine_tells_what_is_available() {
        let text = "MemTotal:       24683520 kB\nMemFree: 1 kB\nMemAvailable:   21706000 kB\n";
        let machine = system(&[("proc/meminfo", text)]);
        assert_eq!(available(machine.path()), Some(21706000 << 10));
        let old = system(&[("proc/meminfo", "MemTotal: 5 kB\n")]);
        assert_eq!((available(old.path()), in_control_groups(old.path())), (None, None));
    }
}
