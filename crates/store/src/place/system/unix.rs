//! Linux, macOS and their relatives.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirEntry, File, Metadata, OpenOptions, Permissions};
use std::io::{self, IoSlice, IoSliceMut};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{
    DirEntryExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown,
};
use std::path::Path;

use rustix::fs::{Access, AtFlags, CWD, OFlags, RenameFlags, SeekFrom, accessat, renameat_with};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit, setrlimit};

use crate::place::refused::refusal;
use crate::place::system::link_and_remove;

pub(crate) use ::xattr;

/// The device of a file or folder, and its number there.
pub type FileId = (u64, u64);

/// Number of open files reserved for those that this process opens without counting them.
const OTHER_FILES: u64 = 64;

/// Returns the bytes of a name.
pub fn name_bytes(name: &OsStr) -> &[u8] {
    name.as_bytes()
}

/// Returns the name that has these bytes.
pub fn name_of(bytes: &[u8]) -> &OsStr {
    OsStr::from_bytes(bytes)
}

/// Returns the name that has these bytes.
pub fn owned_name(bytes: Vec<u8>) -> OsString {
    OsString::from_vec(bytes)
}

/// Returns the numbers of the file or folder that a path leads to.
pub fn id_of(_path: &Path, metadata: &Metadata) -> Option<FileId> {
    Some((metadata.dev(), metadata.ino()))
}

/// Returns the number of names that a file has.
pub fn link_count(metadata: &Metadata) -> u64 {
    metadata.nlink()
}

/// What tells file systems apart: the number of the mount, where the system tells it, and the
/// number of the device. A subvolume has its own device number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileSystem {
    mount: Option<u64>,
    device: u64,
}

/// Returns where the next bytes of a file lie that are no hole, at `offset` or after it. `None` if
/// there are none. A file system that knows no holes tells `offset`.
pub fn next_data(file: &File, offset: u64) -> Option<u64> {
    match rustix::fs::seek(file, SeekFrom::Data(offset)) {
        Ok(data) => Some(data),
        Err(Errno::NXIO) => None,
        Err(_) => Some(offset),
    }
}

impl FileSystem {
    /// Returns the file system of what a path leads to, if the system tells.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub fn of(path: &Path) -> Option<Self> {
        use rustix::fs::{AtFlags, StatxFlags, makedev, statx};
        let told = statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID).ok()?;
        let has_mount = told.stx_mask & StatxFlags::MNT_ID.bits() != 0;
        let device = makedev(told.stx_dev_major, told.stx_dev_minor);
        Some(Self { mount: has_mount.then_some(told.stx_mnt_id), device })
    }

    /// Returns the file system of what a path leads to, if the system tells.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub fn of(path: &Path) -> Option<Self> {
        fs::metadata(path).ok().map(|found| Self { mount: None, device: found.dev() })
    }

    /// Returns the file system of an entry in the listing of a folder on this file system.
    /// Something that is mounted there has another device, or another inode number than the entry,
    /// so the system rarely has to be asked again.
    pub fn of_entry(self, entry: &DirEntry, found: &Metadata) -> Option<Self> {
        match (found.dev(), found.ino()) == (self.device, entry.ino()) {
            true => Some(self),
            false => Self::of(&entry.path()),
        }
    }

    /// Returns the number of the mount, if the system tells.
    pub fn mount(self) -> Option<u64> {
        self.mount
    }
}

/// File systems through which the kernel shows its own state (`linux/magic.h`): proc, sysfs, cgroup
/// and cgroup2, debugfs, tracefs, securityfs, bpf, pstore, devpts, efivarfs, configfs, mqueue,
/// binfmt_misc, selinuxfs, fusectl, rpc_pipefs, nsfs.
#[cfg(any(target_os = "linux", target_os = "android"))]
const OF_KERNEL: [u32; 18] = [
    0x9fa0,
    0x6265_6572,
    0x0027_e0eb,
    0x6367_7270,
    0x6462_6720,
    0x7472_6163,
    0x7363_6673,
    0xcafe_4a11,
    0x6165_676c,
    0x1cd1,
    0xde5e_81e4,
    0x6265_6570,
    0x1980_0202,
    0x4249_4e4d,
    0xf97c_ff8c,
    0x6573_5543,
    0x6759_6969,
    0x6e73_6673,
];

/// The kernel's own file systems for local disks and for memory, which give each file its own
/// number: ext2 to ext4, XFS, Btrfs, tmpfs, ramfs, F2FS, JFS, NILFS, ZFS, bcachefs.
#[cfg(any(target_os = "linux", target_os = "android"))]
const WITH_NUMBERS: [u32; 10] = [
    0xef53,
    0x5846_5342,
    0x9123_683e,
    0x0102_1994,
    0x8584_58f6,
    0xf2f5_2010,
    0x3153_464a,
    0x3434,
    0x2fc1_2fc1,
    0xca45_1a4e,
];

#[cfg(any(target_os = "linux", target_os = "android"))]
fn is_one_of(path: &Path, kinds: &[u32]) -> bool {
    // The type of the field depends on the architecture; the numbers have 32 bits.
    rustix::fs::statfs(path).is_ok_and(|told| kinds.contains(&(told.f_type as u32)))
}

/// Whether a path is on a file system through which the kernel shows its own state. Its files are
/// made when they are read.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub fn is_of_kernel(path: &Path) -> bool {
    is_one_of(path, &OF_KERNEL)
}

/// Whether the file system at a path is known to give each of its files its own number. Other file
/// systems may pass on the numbers of several disks, so that numbers repeat.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub fn numbers_files(path: &Path) -> bool {
    is_one_of(path, &WITH_NUMBERS)
}

/// Returns `false`: no such file systems are known here.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub fn is_of_kernel(_path: &Path) -> bool {
    false
}

/// Returns `false`: the kind of file system is unknown here.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub fn numbers_files(_path: &Path) -> bool {
    false
}

/// Returns when the system last changed anything about a file (ctime). Programs cannot set it.
/// Returns its seconds since 1970 and its nanoseconds.
pub fn changed(file: &Metadata) -> Option<(i64, u32)> {
    Some((file.ctime(), u32::try_from(file.ctime_nsec()).ok()?))
}

/// Returns the number of a file in its folder.
pub fn entry_number(entry: &DirEntry) -> u64 {
    entry.ino()
}

/// Reads once at a position; returns the number of bytes read.
pub fn read_once(file: &File, slices: &mut [IoSliceMut<'_>], offset: u64) -> io::Result<usize> {
    Ok(rustix::io::preadv(file, slices, offset)?)
}

/// Writes once at a position; returns the number of bytes written.
pub fn write_once(file: &File, slices: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
    Ok(rustix::io::pwritev(file, slices, offset)?)
}

/// Gives a file a name that must be free. Returns `false` if the file system cannot do so at once.
///
/// # Errors
/// If the name is taken ([`io::ErrorKind::AlreadyExists`]), or if the system refuses.
pub fn rename_at_once(from: &Path, to: &Path) -> io::Result<bool> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP | Errno::PERM) => link_and_remove(from, to),
        renamed => Ok(renamed.map(|()| true)?),
    }
}

/// Renames, and replaces what has the new name.
pub fn rename_over(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)
}

/// Makes the names in a directory durable. Returns whether its file system refuses to, as some
/// network file systems do.
///
/// # Errors
/// If the directory does not exist, or if syncing fails.
pub fn sync_directory(directory: &Path) -> io::Result<bool> {
    let opened = File::open(directory)?;
    refusal(opened.sync_all())
}

/// Whether the system says that this process may read a file, without opening it. If it does not
/// say so, opening the file tells.
pub fn may_read(path: &Path) -> bool {
    accessat(CWD, path, Access::READ_OK, AtFlags::EACCESS).is_ok()
}

/// Opens a file for reading.
pub fn open_to_read(path: &Path) -> io::Result<File> {
    open(path, OpenOptions::new().read(true))
}

/// Opens a file for reading, unless it is a link.
pub fn open_file(path: &Path) -> io::Result<File> {
    open_with(path, OpenOptions::new().read(true), OFlags::NOFOLLOW)
}

/// Opens a file. A named pipe is opened at once, without waiting for a writer, and cannot be read
/// at positions. If another program, such as a file server, holds a lease on the file, waits for
/// it.
pub fn open(path: &Path, options: &OpenOptions) -> io::Result<File> {
    open_with(path, options, OFlags::empty())
}

fn open_with(path: &Path, options: &OpenOptions, flags: OFlags) -> io::Result<File> {
    let open = |flags: OFlags| options.clone().custom_flags(flags.bits() as i32).open(path);
    match open(flags | OFlags::NONBLOCK) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock && path.is_file() => open(flags),
        opened => opened,
    }
}

/// Creates a file that must not exist, for reading and writing, with these permissions.
pub fn create_new(path: &Path, mode: u32) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).mode(mode).open(path)
}

/// Makes a file without a name in a directory, where the system can do so and name it later.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub fn create_unnamed(directory: &Path, mode: u32) -> Option<File> {
    use rustix::fs::{Mode, openat};
    let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
    let file = File::from(openat(CWD, directory, flags, Mode::from_raw_mode(mode)).ok()?);
    fs::symlink_metadata(descriptor_path(&file)).is_ok().then_some(file)
}

/// Gives a file from [`create_unnamed`] a name.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub fn link_unnamed(file: &File, path: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, linkat};
    Ok(linkat(CWD, descriptor_path(file), CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

/// Returns the path through which an open file is linked to a name.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn descriptor_path(file: &File) -> std::path::PathBuf {
    use std::os::fd::AsRawFd;
    Path::new("/proc/self/fd").join(file.as_raw_fd().to_string())
}

/// Returns `None`: files have names from the beginning.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub fn create_unnamed(_directory: &Path, _mode: u32) -> Option<File> {
    None
}

/// Never called, because every file has a name here.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub fn link_unnamed(_file: &File, _path: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Lets this process have `count` more files open, as far as the system allows. Returns how many of
/// them are allowed, which may be 0.
pub fn allow_open_files(count: usize) -> usize {
    let mut limit = getrlimit(Resource::Nofile);
    let wanted = count as u64 + OTHER_FILES;
    if limit.current.is_some_and(|current| current < wanted) {
        limit.current = limit.maximum.map(|most| most.min(wanted)).or(Some(wanted));
        let _ = setrlimit(Resource::Nofile, limit);
    }
    let allowed = getrlimit(Resource::Nofile).current.unwrap_or(wanted);
    allowed.saturating_sub(OTHER_FILES).min(count as u64) as usize
}

/// Whether a file could not be opened because this process or the system has too many open.
pub fn is_scarcity(error: &io::Error) -> bool {
    let scarce = [Errno::MFILE, Errno::NFILE].map(Errno::raw_os_error);
    error.raw_os_error().is_some_and(|code| scarce.contains(&code))
}

/// Whether a disk could not read some sectors.
pub fn is_bad_place(error: &io::Error) -> bool {
    let broken = [Errno::IO, Errno::NODATA].map(Errno::raw_os_error);
    error.raw_os_error().is_some_and(|code| broken.contains(&code))
}

/// Returns the permissions, set-id bits and sticky bit of a file.
pub fn mode(file: &Metadata) -> Option<u32> {
    Some(file.mode() & 0o7777)
}

/// Sets what [`mode`] returns.
pub fn set_mode(file: &File, mode: u32) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(mode))
}

/// Returns the number that distinguishes the file system at a path from all others.
pub fn device_of(path: &Path) -> io::Result<u64> {
    Ok(fs::metadata(path)?.dev())
}

/// Returns the number that distinguishes the file system of a file from all others.
pub fn file_system(file: &File) -> io::Result<u64> {
    Ok(file.metadata()?.dev())
}

/// Has the file system of a file write all of its unwritten data to the disk.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub fn write_back(file: &File) -> io::Result<()> {
    Ok(rustix::fs::syncfs(file)?)
}

/// Has the system drop the cached pages of a file that are already written.
///
/// # Errors
/// If the system lacks this call ([`io::ErrorKind::Unsupported`]): on every system but Linux.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub fn drop_cached(file: &File) -> io::Result<()> {
    use rustix::fs::{Advice, fadvise};
    Ok(fadvise(file, 0, None, Advice::DontNeed)?)
}

/// Refuses: there is no such call.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub fn write_back(_file: &File) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Refuses: there is no such call.
///
/// # Errors
/// Always ([`io::ErrorKind::Unsupported`]).
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub fn drop_cached(_file: &File) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Whether a file is a disk or a partition. Writes to a disk are first kept in memory.
pub fn is_disk(file: &Metadata) -> bool {
    file.file_type().is_block_device()
}

/// Returns the numbers of the user and the group that a file belongs to.
pub fn owner(file: &Metadata) -> Option<(u32, u32)> {
    Some((file.uid(), file.gid()))
}

/// Returns the number of the user as whom this process acts.
pub fn user() -> Option<u32> {
    Some(rustix::process::geteuid().as_raw())
}

/// Whether this process may give any file to anybody.
pub fn may_give_files_away() -> bool {
    user() == Some(0)
}

/// Opens a folder, unless it is a link.
///
/// # Errors
/// If there is no folder at the path, or if the system refuses.
pub fn open_folder(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::DIRECTORY;
    File::options().read(true).custom_flags(flags.bits() as i32).open(path)
}

/// Gives a file to a user, if one is given, and to a group.
pub fn set_owner(file: &File, user: Option<u32>, group: u32) -> io::Result<()> {
    fchown(file, user, Some(group))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{FileType, Mode, mknodat};

    /// A pipe may take the place of a file between a look at it and its opening.
    #[test]
    fn pipes_are_opened_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let opened = open_to_read(&pipe).unwrap();
        assert!(read_once(&opened, &mut [IoSliceMut::new(&mut [0])], 0).is_err());
    }

    #[test]
    fn more_files_may_be_open() {
        let most = getrlimit(Resource::Nofile).maximum;
        allow_open_files(3000);
        let current = getrlimit(Resource::Nofile).current;
        assert!(current.is_none_or(|current| current >= 3000 || Some(current) == most));
    }
}
