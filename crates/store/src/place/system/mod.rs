//! The differences between systems: names, files at positions, names that are given without
//! replacing others, permissions, limits. Each system has a file with the same functions.
//!
//! Linux and macOS are `unix`. Linux alone can make files that have no name until they are
//! complete. Windows has no modes and owners like these, and a folder cannot be locked or synced
//! there; names are UTF-8.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use unix::*;
#[cfg(windows)]
pub use windows::*;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Returns the folder at which the file system of a folder is mounted, as far as that is known.
pub fn mount_point(folder: &Path) -> PathBuf {
    let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let device = |path: &Path| device_of(path).ok();
    let inside = folder.ancestors().take_while(|above| device(above) == device(&folder));
    inside.last().unwrap_or(&folder).to_owned()
}

/// Whether another file system begins at a folder: a file system is mounted there, or the folder is
/// a subvolume.
pub fn is_mount(folder: &Path) -> bool {
    FileSystem::begins(FileSystem::of(&folder.join("..")), FileSystem::of(folder))
}

impl FileSystem {
    /// Whether a folder is on another file system than the folder above it. Both arguments are
    /// results of [`FileSystem::of`]. If either is unknown, returns `false`.
    pub fn begins(above: Option<Self>, folder: Option<Self>) -> bool {
        folder.is_some() && above.is_some() && folder != above
    }
}

/// Gives a file a name that must be free, also if the file system cannot do so in one step. Then
/// another process can take the name between the check and the renaming.
///
/// # Errors
/// If the name is taken ([`io::ErrorKind::AlreadyExists`]), or if the system refuses.
pub fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match rename_at_once(from, to)? {
        true => Ok(()),
        false => look_and_rename(from, to),
    }
}

/// Gives a file a name that must be free, by a hard link, which is refused where the name is taken.
/// Returns `false` if the file system has no hard links, as exFAT.
///
/// # Errors
/// If the name is taken ([`io::ErrorKind::AlreadyExists`]), or if the old one cannot be removed.
pub fn link_and_remove(from: &Path, to: &Path) -> io::Result<bool> {
    match fs::hard_link(from, to) {
        Ok(()) => fs::remove_file(from).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        Err(_) => Ok(false),
    }
}

/// Checks that the new name is free, and then renames. Another process can take the name in
/// between.
///
/// # Errors
/// If the name is taken ([`io::ErrorKind::AlreadyExists`]), or if the system refuses.
pub fn look_and_rename(from: &Path, to: &Path) -> io::Result<()> {
    match fs::symlink_metadata(to) {
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => fs::rename(from, to),
        Err(error) => Err(error),
    }
}
