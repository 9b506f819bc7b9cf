//! Which file a path leads to, and whether it is still that file: other processes may replace it
//! between two looks.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::SystemTime;

/// What tells a file or folder from all others: its device and its number there.
pub(crate) type FileId = (u64, u64);

/// Returns the id of what a path leads to.
pub(crate) fn file_id(path: &Path) -> Option<FileId> {
    Stamp::look(path).map(|stamp| stamp.id)
}

/// A file as it was at some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub id: FileId,
    length: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    pub fn of(metadata: &Metadata) -> Self {
        let id = (metadata.dev(), metadata.ino());
        Self { id, length: metadata.len(), modified: metadata.modified().ok() }
    }

    /// Looks at what a path leads to now.
    pub fn look(path: &Path) -> Option<Self> {
        fs::metadata(path).ok().map(|metadata| Self::of(&metadata))
    }
}
