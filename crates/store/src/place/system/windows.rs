//! Windows.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirEntry, File, Metadata, OpenOptions};
use std::io::{self, IoSlice, IoSliceMut};
use std::os::windows::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::place::system::link_and_remove;

/// The path of a file or folder without links and detours.
pub type FileId = PathBuf;

/// `ERROR_TOO_MANY_OPEN_FILES`.
const TOO_MANY_OPEN_FILES: i32 = 4;

/// The name of an object here if its own name is not UTF-8. The object can still be chosen by its
/// id.
const UNNAMEABLE: &str = "not-utf-8";

/// Returns the bytes of a name.
pub fn name_bytes(name: &OsStr) -> &[u8] {
    name.as_encoded_bytes()
}

/// Returns the name that has these bytes.
pub fn name_of(bytes: &[u8]) -> &OsStr {
    OsStr::new(std::str::from_utf8(bytes).unwrap_or(UNNAMEABLE))
}

/// Returns the name that has these bytes, with U+FFFD for what is not UTF-8.
pub fn owned_name(bytes: Vec<u8>) -> OsString {
    String::from_utf8_lossy(&bytes).into_owned().into()
}

/// Returns the identity of the file or folder that a path leads to.
pub fn id_of(path: &Path, _metadata: &Metadata) -> Option<FileId> {
    fs::canonicalize(path).ok()
}

/// Returns 1: the number of names is not known here.
pub fn link_count(_metadata: &Metadata) -> u64 {
    1
}

/// What tells file systems apart. Nothing is needed here, because a file system that is mounted in
/// a folder is behind a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSystem {}

impl FileSystem {
    /// Returns `None`.
    pub fn of(_path: &Path) -> Option<Self> {
        None
    }

    /// Returns the file system of an entry in the listing of a folder on this one.
    pub fn of_entry(self, _entry: &DirEntry, _found: &Metadata) -> Option<Self> {
        match self {}
    }

    /// Returns the number of the mount.
    pub fn mount(self) -> Option<u64> {
        match self {}
    }
}

/// Returns a number that changes when another file gets the name: the time when the file was made.
pub fn entry_number(entry: &DirEntry) -> u64 {
    use std::os::windows::fs::MetadataExt;
    entry.metadata().map_or(0, |metadata| metadata.creation_time())
}

/// Returns `false`: Windows has no such file systems.
pub fn is_of_kernel(_path: &Path) -> bool {
    false
}

/// Returns `false`: the kind of file system is unknown here.
pub fn numbers_files(_path: &Path) -> bool {
    false
}

/// Returns `None`: the system does not report this time.
pub fn changed(_file: &Metadata) -> Option<(i64, u32)> {
    None
}

/// Reads once at a position; returns the number of bytes read.
pub fn read_once(file: &File, slices: &mut [IoSliceMut<'_>], offset: u64) -> io::Result<usize> {
    let first = slices.iter_mut().find(|slice| !slice.is_empty());
    first.map_or(Ok(0), |slice| file.seek_read(slice, offset))
}

/// Writes once at a position; returns the number of bytes written.
pub fn write_once(file: &File, slices: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
    let first = slices.iter().find(|slice| !slice.is_empty());
    first.map_or(Ok(0), |slice| file.seek_write(slice, offset))
}

/// Returns `offset`: holes of files are not looked for on Windows.
pub fn next_data(_file: &File, offset: u64) -> Option<u64> {
    Some(offset)
}

/// Gives a file a name that must be free. Returns `false` if the file system cannot do so at once.
///
/// # Errors
/// If the name is taken ([`io::ErrorKind::AlreadyExists`]), or if the system refuses.
pub fn rename_at_once(from: &Path, to: &Path) -> io::Result<bool> {
    link_and_remove(from, to)
}

/// Renames over the file that has the name. If that file is still open, it is first given the name
/// of an old shard (see `names.rs`), and is removed when it is closed.
pub fn rename_over(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let mut aside = to.as_os_str().to_owned();
            aside.push(format!(".{:08x}.old", std::process::id()));
            fs::rename(to, &aside)?;
            if let Err(error) = fs::rename(from, to) {
                fs::rename(&aside, to)?;
                return Err(error);
            }
            // Whoever has it open may keep it there.
            let _ = fs::remove_file(&aside);
            Ok(())
        }
        done => done,
    }
}

/// Returns `false`: directories cannot be synced on Windows, so this is not a refusal by a file
/// system.
///
/// # Errors
/// Never.
pub fn sync_directory(_directory: &Path) -> io::Result<bool> {
    Ok(false)
}

/// Whether the system says that this process may read a file, without opening it.
pub fn may_read(_path: &Path) -> bool {
    false
}

/// Opens a file for reading.
pub fn open_to_read(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Opens a file for reading.
pub fn open_file(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Opens a file.
pub fn open(path: &Path, options: &OpenOptions) -> io::Result<File> {
    options.open(path)
}

/// Creates a file that must not exist, for reading and writing.
pub fn create_new(path: &Path, _mode: u32) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).open(path)
}

/// Returns `None`: files have names from the beginning.
pub fn create_unnamed(_directory: &Path, _mode: u32) -> Option<File> {
    None
}

/// Never called, because every file has a name here.
pub fn link_unnamed(_file: &File, _path: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns `count`: a process may have millions of files open.
pub fn allow_open_files(count: usize) -> usize {
    count
}

/// Whether a file could not be opened because this process has too many open.
pub fn is_scarcity(error: &io::Error) -> bool {
    error.raw_os_error() == Some(TOO_MANY_OPEN_FILES)
}

/// Returns `false`: it is not known which errors mean that a disk could not read some sectors.
pub fn is_bad_place(_error: &io::Error) -> bool {
    false
}

/// Returns `None`: files have no modes.
pub fn mode(_file: &Metadata) -> Option<u32> {
    None
}

/// Does nothing: files have no modes.
pub fn set_mode(_file: &File, _mode: u32) -> io::Result<()> {
    Ok(())
}

/// Refuses, as [`drop_cached`] does.
pub fn device_of(_path: &Path) -> io::Result<u64> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Refuses, as [`drop_cached`] does.
pub fn file_system(_file: &File) -> io::Result<u64> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Refuses, as [`drop_cached`] does.
pub fn write_back(_file: &File) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Refuses: what the system keeps of files in memory cannot be dropped.
///
/// # Errors
/// Always ([`io::ErrorKind::Unsupported`]).
pub fn drop_cached(_file: &File) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns `false`: disks are not files on Windows.
pub fn is_disk(_file: &Metadata) -> bool {
    false
}

/// Returns `None`: users and groups have no numbers.
pub fn owner(_file: &Metadata) -> Option<(u32, u32)> {
    None
}

/// Returns `None`: users have no numbers.
pub fn user() -> Option<u32> {
    None
}

/// Returns `false`: no file has an owner with a number.
pub fn may_give_files_away() -> bool {
    false
}

/// Refuses: a folder cannot be opened as a file.
///
/// # Errors
/// Always ([`io::ErrorKind::Unsupported`]).
pub fn open_folder(_path: &Path) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Never called, because no file has an owner with a number.
pub fn set_owner(_file: &File, _user: Option<u32>, _group: u32) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Extended attributes. Files have none on Windows, and the crate `xattr` does not build there, so
/// these functions stand in for its own.
pub(crate) mod xattr {
    use std::ffi::{OsStr, OsString};
    use std::fs::File;
    use std::io;
    use std::iter::{Empty, empty};
    use std::path::Path;

    /// Returns no names.
    pub fn list(_path: &Path) -> io::Result<Empty<OsString>> {
        Ok(empty())
    }

    /// Returns `None`.
    pub fn get(_path: &Path, _name: &OsStr) -> io::Result<Option<Vec<u8>>> {
        Ok(None)
    }

    /// The same of open files.
    pub trait FileExt {
        /// Returns no names.
        fn list_xattr(&self) -> io::Result<Empty<OsString>> {
            Ok(empty())
        }

        /// Returns `None`.
        fn get_xattr(&self, _name: &OsStr) -> io::Result<Option<Vec<u8>>> {
            Ok(None)
        }

        /// Refuses.
        ///
        /// # Errors
        /// Always ([`io::ErrorKind::Unsupported`]).
        fn set_xattr(&self, _name: &OsStr, _value: &[u8]) -> io::Result<()> {
            Err(io::ErrorKind::Unsupported.into())
        }

        /// Does nothing.
        ///
        /// # Errors
        /// Never.
        fn remove_xattr(&self, _name: &OsStr) -> io::Result<()> {
            Ok(())
        }
    }

    impl FileExt for File {}
}
