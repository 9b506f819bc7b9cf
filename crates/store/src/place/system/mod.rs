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
use std::path::Path;

/// Renames without replacing anything, by a hard link, which is refused where the name is taken.
/// File systems without links (FAT) leave a moment between the look and the renaming.
pub fn link_and_remove(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Ok(()) => fs::remove_file(from),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        Err(_) if fs::symlink_metadata(to).is_ok() => Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => fs::rename(from, to),
    }
}
