//! The folders on the paths of files: made where they are missing, and synced where their names may
//! not be durable.
//!
//! A new file survives a power cut once the folders on its path are synced, from its own up to the
//! root. Most of them were synced before, for other files, and syncing even an unchanged folder can
//! make a disk empty its cache. So the node remembers folders whose own names and those of all
//! folders above are durable. The folders above stay as long as such a folder does, because only
//! empty folders are removed.
//!
//! Another process may remove a folder and make it anew at any time. So a folder is told by its
//! number and its time of birth. Where the file system does not keep this time, nothing is
//! remembered. Nor is a folder remembered in its first second, as long as another one in its place
//! could have the same time.

use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use paritas_store::place::attributes::{Owner, hand_over};
use paritas_store::place::system::{FileId, id_of, open_folder, sync_directory};

/// Largest number of folders that are remembered. A volume has 256 folders of objects, and one for
/// each folder of names.
const MOST: usize = 4096;

/// Age from which no other folder can have the same time of birth.
const SETTLED: Duration = Duration::from_secs(1);

/// Identity of a folder. A folder that takes its place later has another one.
type FolderIdentity = (FileId, SystemTime);

/// The folders whose names, and the names of all folders above, are known to be durable.
#[derive(Debug, Default)]
pub(super) struct DurableFolders(Mutex<HashMap<PathBuf, FolderIdentity>>);

impl DurableFolders {
    /// Makes a file's name durable, and the names of the folders on its path that are not known to
    /// be durable: another task may have created a folder but not synced it yet.
    pub fn sync(&self, root: &Path, path: &str) -> io::Result<()> {
        let folders = folders_of(root, path);
        let mut synced = Vec::new();
        for folder in folders.iter().rev() {
            sync_folder(folder)?;
            match Self::identity(folder) {
                Some(identity) if self.has(folder, &identity) => {
                    self.add(synced);
                    return Ok(());
                }
                identity => synced.extend(identity.map(|identity| (folder.as_path(), identity))),
            }
        }
        sync_folder(root)?;
        self.add(synced);
        Ok(())
    }

    /// Returns the identity of a folder, if it can be remembered.
    fn identity(folder: &Path) -> Option<FolderIdentity> {
        let found = folder.metadata().ok()?;
        Some((id_of(folder, &found)?, settled_birth(&found)?))
    }

    /// Whether the folder is known to be durable.
    fn has(&self, folder: &Path, identity: &FolderIdentity) -> bool {
        self.lock().get(folder) == Some(identity)
    }

    /// Remembers folders that had these identities before the folders above them were synced.
    fn add(&self, folders: Vec<(&Path, FolderIdentity)>) {
        let mut known = self.lock();
        if known.len() + folders.len() > MOST {
            known.clear();
        }
        known.extend(folders.into_iter().map(|(folder, identity)| (folder.to_owned(), identity)));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PathBuf, FolderIdentity>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns when a folder was made, if it was long enough ago.
fn settled_birth(found: &Metadata) -> Option<SystemTime> {
    let born = found.created().ok()?;
    let age = SystemTime::now().duration_since(born).ok()?;
    (age >= SETTLED).then_some(born)
}

/// Returns the folders below the root that a path leads through, the outermost first.
pub(super) fn folders_of(root: &Path, path: &str) -> Vec<PathBuf> {
    let ends = path.match_indices('/').map(|(end, _)| end);
    ends.map(|end| root.join(&path[..end])).collect()
}

/// Makes the folders that a path needs below the root. Those further out mostly exist, so they are
/// tried last.
pub(super) fn create_folders(root: &Path, path: &str) -> io::Result<()> {
    let folders = folders_of(root, path);
    let mut missing = Vec::new();
    for folder in folders.iter().rev() {
        match create_folder(folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => missing.push(folder),
            done => {
                done?;
                break;
            }
        }
    }
    missing.into_iter().rev().try_for_each(|folder| create_folder(folder))
}

/// Makes a folder that only its owner may use, unless there is one. Its owner is that of the folder
/// above it.
pub(super) fn create_folder(folder: &Path) -> io::Result<()> {
    #[allow(unused_mut, reason = "it is changed on Unix alone")]
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(folder) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => match fs::metadata(folder)? {
            found if found.is_dir() => Ok(()),
            _ => Err(ErrorKind::NotADirectory.into()),
        },
        Ok(()) => {
            let above = folder.parent().and_then(|above| Owner::of(&fs::metadata(above).ok()?));
            if let (Some(owner), Ok(folder)) = (above, open_folder(folder)) {
                hand_over(&folder, owner);
            }
            Ok(())
        }
        error => error,
    }
}

/// Makes the names in a folder durable.
fn sync_folder(folder: &Path) -> io::Result<()> {
    match sync_directory(folder) {
        // Another task has deleted the file already, and the folder with it.
        Err(error) if is_absence(&error) => Ok(()),
        done => done.map(|_| ()),
    }
}

/// Whether an error says that the file does not exist. A file in the place of a folder on the path
/// counts, too.
pub(super) fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::thread::sleep;

    use super::*;

    #[test]
    fn a_folder_is_remembered_until_another_one_has_its_place() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("a");
        let make = || fs::create_dir(&folder).unwrap();
        let known = DurableFolders::default();
        make();
        assert_eq!(DurableFolders::identity(&folder), None);
        if folder.metadata().unwrap().created().is_err() {
            return println!("this file system keeps no time of birth");
        }
        sleep(SETTLED + Duration::from_millis(20));
        let identity = DurableFolders::identity(&folder).unwrap();
        assert!(!known.has(&folder, &identity));
        known.add(vec![(&folder, identity)]);
        assert!(known.has(&folder, &DurableFolders::identity(&folder).unwrap()));
        fs::remove_dir(&folder).unwrap();
        assert_eq!(DurableFolders::identity(&folder), None);
        make();
        sleep(SETTLED + Duration::from_millis(20));
        assert!(!known.has(&folder, &DurableFolders::identity(&folder).unwrap()));
    }
}
