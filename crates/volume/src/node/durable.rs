//! Which folders have durable names.
//!
//! A new file survives a power cut once the folders on its path are synced, from its own up to the
//! root. Most of them were synced before, for other files, and syncing even an unchanged folder can
//! make a disk empty its cache. So the node remembers folders whose names are durable, together
//! with the names of all folders above: these stay as long as this folder does, because only empty
//! folders are removed.
//!
//! Another process may remove a folder and make it anew at any time. So a folder is told by its
//! number and its time of birth. Where the file system does not keep this time, nothing is
//! remembered. Nor is a folder remembered in its first second, as long as another one in its place
//! could have the same time.

use std::collections::HashMap;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use paritas_store::place::system::{FileId, id_of};

/// Largest number of folders that are remembered. A volume has 256 folders of objects, and one for
/// each folder of names.
const MOST: usize = 4096;

/// Age from which no other folder can have the same time of birth.
const SETTLED: Duration = Duration::from_secs(1);

/// What tells a folder from another one that later has its place.
type FolderIdentity = (FileId, SystemTime);

/// The folders whose names, and the names of all folders above, are known to be durable.
#[derive(Debug, Default)]
pub(super) struct DurableFolders(Mutex<HashMap<PathBuf, FolderIdentity>>);

impl DurableFolders {
    /// Returns the identity of a folder, if it can be remembered.
    pub fn identity(folder: &Path) -> Option<FolderIdentity> {
        let found = folder.metadata().ok()?;
        Some((id_of(folder, &found)?, settled_birth(&found)?))
    }

    /// Whether the folder is known to be durable.
    pub fn has(&self, folder: &Path, identity: &FolderIdentity) -> bool {
        self.lock().get(folder) == Some(identity)
    }

    /// Remembers folders that had these identities before the folders above them were synced.
    pub fn add(&self, folders: Vec<(&Path, FolderIdentity)>) {
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
