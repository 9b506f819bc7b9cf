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
    fs::metadata(path).ok().map(|metadata| Stamp::of(&metadata).id)
}

/// A file as it was at some time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stamp {
    id: FileId,
    length: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    pub fn of(metadata: &Metadata) -> Self {
        let id = (metadata.dev(), metadata.ino());
        Self { id, length: metadata.len(), modified: metadata.modified().ok() }
    }

    /// Whether a path leads to this file. Some network file systems number a file anew while nobody
    /// uses it; so one with the same length and time of change is taken for the same, too.
    pub fn is_at(&self, path: &Path) -> bool {
        let Ok(now) = fs::metadata(path) else { return false };
        let now = Self::of(&now);
        let is_alike = self.modified.is_some() && self.modified == now.modified;
        self.id == now.id || self.length == now.length && is_alike
    }
}
