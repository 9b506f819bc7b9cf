//! The room on disks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind};
use crate::place::names::upwards;
use crate::shown::shown;

/// The free room on disks, less the room that was taken.
#[derive(Debug, Clone, Default)]
pub struct Room {
    /// Number of bytes that are left, by device.
    left: BTreeMap<u64, u64>,
}

/// A disk that has less room than is needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoRoom {
    /// The first path that was to be written there.
    pub path: PathBuf,
    /// Number of bytes that were to be written there.
    pub needed: u64,
    /// Number of bytes that are left there.
    pub left: u64,
}

impl From<NoRoom> for Error {
    fn from(NoRoom { path, needed, left }: NoRoom) -> Self {
        let message = format!(
            "the disk of {} has room for {left} of the {needed} bytes that are to be written there",
            shown(&path)
        );
        Self::new(ErrorKind::Io, message).at_path(&path).counting(needed, left)
    }
}

/// Returns the number of bytes that are free for new files at a path, which exists; `None` if the
/// file system does not tell.
pub fn free_at(path: &Path) -> Option<u64> {
    free_bytes(path).map(|(_, free)| free).filter(|&free| free != u64::MAX)
}

/// What is to be written to one disk.
struct DiskShare {
    /// The first path.
    path: PathBuf,
    bytes: u64,
    /// The numbers of the files.
    files: Vec<usize>,
}

impl Room {
    /// Takes room for `files`, which are pairs of a path and a number of bytes. A path that does
    /// not exist yet counts for the disk of the nearest existing folder above it. A disk that does
    /// not tell its free room counts as having enough.
    ///
    /// Returns the numbers of the files whose disk has less room than all of its files need. No
    /// room is taken on such a disk.
    pub fn take(&mut self, files: &[(PathBuf, u64)]) -> BTreeMap<usize, NoRoom> {
        let mut shares: BTreeMap<u64, DiskShare> = BTreeMap::new();
        for (number, (path, bytes)) in files.iter().enumerate() {
            let Some((device, free)) = upwards(path).find_map(free_bytes) else { continue };
            self.left.entry(device).or_insert(free);
            let new = || DiskShare { path: path.clone(), bytes: 0, files: Vec::new() };
            let share = shares.entry(device).or_insert_with(new);
            share.bytes = share.bytes.saturating_add(*bytes);
            share.files.push(number);
        }
        let mut refused = BTreeMap::new();
        for (device, DiskShare { path, bytes: needed, files }) in shares {
            let left = self.left.entry(device).or_default();
            match left.checked_sub(needed) {
                Some(after) => *left = after,
                None => {
                    let no_room = NoRoom { path, needed, left: *left };
                    refused.extend(files.into_iter().map(|file| (file, no_room.clone())));
                }
            }
        }
        refused
    }

    /// Counts `bytes` on the disk of an existing path as free, because a file there will be
    /// removed.
    pub fn give(&mut self, path: &Path, bytes: u64) {
        if let Some((device, free)) = free_bytes(path) {
            let left = self.left.entry(device).or_insert(free);
            *left = left.saturating_add(bytes);
        }
    }

    /// Takes room for all of these files or for none.
    ///
    /// # Errors
    /// If a disk has less room.
    pub fn take_all(&mut self, files: &[(PathBuf, u64)]) -> Result<(), NoRoom> {
        let mut after = self.clone();
        match after.take(files).into_values().next() {
            Some(no_room) => Err(no_room),
            None => {
                *self = after;
                Ok(())
            }
        }
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

/// Returns how much is to be written to each disk. `files` are pairs of a path and a number of
/// bytes. A path that does not exist yet counts for the disk of the nearest existing folder above
/// it.
pub fn by_disk(files: &[(PathBuf, u64)]) -> Vec<DiskNeed> {
    let mut needs: Vec<(Option<u64>, DiskNeed)> = Vec::new();
    for (path, bytes) in files {
        let told = upwards(path).find_map(free_bytes);
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
        room.take_all(&[(absent.clone(), 1), (folder.path().to_owned(), 1)]).unwrap();
        let left = *room.left.values().next().unwrap();
        let files = [(absent.clone(), left), (absent.clone(), 1)];
        let refused = NoRoom { path: absent.clone(), needed: left + 1, left };
        assert_eq!(room.take_all(&files), Err(refused.clone()));
        assert_eq!(room.take(&files), [(0, refused.clone()), (1, refused)].into());
        room.take_all(&files[..1]).unwrap();
        assert_eq!(room.take_all(&files[1..]).unwrap_err().left, 0);
        room.give(folder.path(), 1);
        room.take_all(&files[1..]).unwrap();
    }

    /// It belongs in the working folder.
    #[test]
    fn a_bare_name_needs_room() {
        let bare = PathBuf::from("no such file");
        let refused = Room::default().take(&[(bare.clone(), u64::MAX)]);
        assert_eq!(refused.get(&0).map(|no_room| &no_room.path), Some(&bare));
        assert!(by_disk(&[(bare, 1)])[0].free.is_some());
    }

    /// Kernel file systems report 0 blocks, which does not mean that they are full.
    #[test]
    fn what_is_not_told_is_enough() {
        let process = PathBuf::from("/proc/self/none");
        if process.parent().is_some_and(Path::exists) {
            assert!(Room::default().take(&[(process, 1 << 60)]).is_empty());
        }
    }
}
