//! What tells a file or folder from all others, however a path to it is written.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The device of a file or folder, and its number there.
pub(crate) type FileId = (u64, u64);

/// Returns the id of what a path leads to.
pub(crate) fn file_id(path: &Path) -> Option<FileId> {
    fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}
