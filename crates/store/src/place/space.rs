//! The room on disks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The room on disks, less what was taken of it.
#[derive(Debug, Clone, Default)]
pub struct Room {
    /// Number of bytes that are left, by device.
    left: BTreeMap<u64, u64>,
}

/// A disk that has less room than is needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoRoom {
    /// The path that was to be written.
    pub path: PathBuf,
    /// Number of bytes that it needs.
    pub needed: u64,
    /// Number of bytes that are left for it.
    pub left: u64,
}

impl Room {
    /// Takes room for files: for each, its path or its folder, and its number of bytes. What does
    /// not exist yet counts for the disk of the nearest folder above it. A disk that does not tell
    /// its room has enough.
    ///
    /// # Errors
    /// If a disk has less room. Then nothing is taken.
    pub fn take(&mut self, needs: &[(PathBuf, u64)]) -> Result<(), NoRoom> {
        let mut after = self.clone();
        for (path, needed) in needs {
            let Some((device, free)) = path.ancestors().find_map(free_bytes) else { continue };
            let left = after.left.entry(device).or_insert(free);
            let no_room = NoRoom { path: path.clone(), needed: *needed, left: *left };
            *left = left.checked_sub(*needed).ok_or(no_room)?;
        }
        *self = after;
        Ok(())
    }
}

/// What is to be written to one disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskNeed {
    /// The folder of the first file that is to be written there.
    pub folder: PathBuf,
    /// Number of bytes that are to be written there.
    pub bytes: u64,
    /// Number of bytes that are free there, if the disk tells.
    pub free: Option<u64>,
}

/// Returns how much is to be written to which disk. Of each file, the path and the number of bytes
/// are given. What does not exist yet counts for the disk of the nearest folder above it.
pub fn by_disk(files: &[(PathBuf, u64)]) -> Vec<DiskNeed> {
    let mut needs: Vec<(Option<u64>, DiskNeed)> = Vec::new();
    for (path, bytes) in files {
        let told = path.ancestors().find_map(free_bytes);
        let device = told.map(|(device, _)| device);
        match needs.iter_mut().find(|(known, _)| *known == device) {
            Some((_, need)) => need.bytes = need.bytes.saturating_add(*bytes),
            None => {
                let folder = path.parent().unwrap_or(path).to_owned();
                let free = told.map(|(_, free)| free).filter(|&free| free != u64::MAX);
                needs.push((device, DiskNeed { folder, bytes: *bytes, free }));
            }
        }
    }
    needs.into_iter().map(|(_, need)| need).collect()
}

/// Returns the device of the file system that something is on, and the number of free bytes there.
/// Returns [`u64::MAX`] bytes if the file system does not tell: some report no blocks at all.
/// Returns `None` if there is nothing at the path.
#[cfg(unix)]
fn free_bytes(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let device = std::fs::metadata(path).ok()?.dev();
    let told = rustix::fs::statvfs(path).ok().filter(|system| system.f_blocks > 0);
    let free = told.map(|system| system.f_bavail.saturating_mul(system.f_frsize));
    Some((device, free.unwrap_or(u64::MAX)))
}

/// Returns `None`: the free space is not known here.
#[cfg(not(unix))]
fn free_bytes(_path: &Path) -> Option<(u64, u64)> {
    None
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn room_is_taken_once() {
        let folder = tempfile::tempdir().unwrap();
        let absent = folder.path().join("a/b");
        let mut room = Room::default();
        room.take(&[(absent.clone(), 1), (folder.path().to_owned(), 1)]).unwrap();
        let left = *room.left.values().next().unwrap();
        let refused = room.take(&[(absent.clone(), left), (absent.clone(), 1)]).unwrap_err();
        assert_eq!(refused, NoRoom { path: absent.clone(), needed: 1, left: 0 });
        room.take(&[(absent, left)]).unwrap();
    }
}
