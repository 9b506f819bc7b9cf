//! Locks on folders, which are held while files in them get their names or lose them. Processes
//! that write the same files take turns there, and each checks again which files are in its way.
//!
//! The lock is the system's advisory one on the folder itself: it leaves no file behind, and is
//! gone with its process. On a file system without locks, nothing is held. Then only the renamings,
//! which never replace a file, keep processes apart.
//!
//! A file that has a temporary name while it is written is locked, too, so that nobody takes it for
//! what a killed process has left.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::place::identity::Inode;
use crate::place::system::open_to_read;
use crate::shown::shown;

/// Time to wait for another process. Naming files takes milliseconds, syncing a folder on a
/// busy disk a few seconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// Time within which a process that looks whether a file is held has looked.
const GLANCE: Duration = Duration::from_millis(200);

/// Time to wait between two attempts.
const INTERVAL: Duration = Duration::from_millis(2);

/// Locks on some folders, until it is dropped.
#[derive(Debug)]
pub struct FolderLocks(
    #[expect(dead_code, reason = "a file is open as long as its lock is to be held")] Vec<File>,
);

impl FolderLocks {
    /// Locks folders, in an order that is the same in all processes.
    ///
    /// # Errors
    /// If another process has held one of the locks for half a minute
    /// ([`crate::error::ErrorKind::Busy`]).
    pub fn acquire<'p>(folders: impl IntoIterator<Item = &'p Path>) -> Result<Self> {
        Self::acquire_within(PATIENCE, folders)
    }

    fn acquire_within<'p>(
        patience: Duration,
        folders: impl IntoIterator<Item = &'p Path>,
    ) -> Result<Self> {
        let inode = |folder: &'p Path| Some((Inode::at(folder)?, fs::canonicalize(folder).ok()?));
        let mut folders: Vec<(Inode, PathBuf)> = folders.into_iter().filter_map(inode).collect();
        folders.sort_by(|(one, path), (other, place)| {
            one.id().cmp(other.id()).then_with(|| path.cmp(place))
        });
        // A folder that two paths lead to is locked only once: otherwise this process would wait
        // for itself.
        folders.dedup_by(|(one, _), (other, _)| one.is_same(other));
        let deadline = Instant::now() + patience;
        let locks = folders.iter().map(|(_, folder)| lock(folder, deadline));
        Ok(Self(locks.filter_map(Result::transpose).collect::<Result<_, _>>()?))
    }
}

/// Marks a file that is being written as held by this process, until it is closed. On a file system
/// without locks, nothing is marked; nor on Windows, where nobody else could use the file then.
pub fn hold(file: &File) {
    if cfg!(unix) {
        let deadline = Instant::now() + GLANCE;
        // Another process may just look whether the file is held.
        while matches!(file.try_lock(), Err(TryLockError::WouldBlock)) && Instant::now() < deadline
        {
            thread::sleep(INTERVAL);
        }
    }
}

/// Whether a process holds a file, as [`hold`] says. A file that this process may not open counts
/// as held.
pub fn is_held(path: &Path) -> bool {
    // A shared lock meets the exclusive one of whoever holds the file, and NFS gives no exclusive
    // one to those who only read.
    match open_to_read(path).map(|file| file.try_lock_shared()) {
        Ok(locked) => matches!(locked, Err(TryLockError::WouldBlock)),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// Locks a folder where that is possible.
fn lock(folder: &Path, deadline: Instant) -> Result<Option<File>> {
    let Ok(file) = File::open(folder) else { return Ok(None) };
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::Error(_)) => return Ok(None),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => thread::sleep(INTERVAL),
            Err(TryLockError::WouldBlock) => return Err(busy(folder)),
        }
    }
}

/// Returns the error for a folder that another process has locked for longer than `PATIENCE`.
fn busy(folder: &Path) -> Error {
    let message = format!(
        "another process is writing in {} and does not end; try again later",
        shown(folder)
    );
    Error::busy(message).at_path(folder)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn files_are_held_while_they_are_open() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        assert!(!is_held(&path));
        let file = File::create(&path).unwrap();
        assert!(!is_held(&path));
        hold(&file);
        assert!(is_held(&path) && is_held(&path));
        drop(file);
        assert!(!is_held(&path));
    }

    /// Threads that lock the same folders in different orders, some twice, are never in them
    /// together.
    #[test]
    fn one_at_a_time() {
        let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
        let inside = AtomicUsize::new(0);
        thread::scope(|scope| {
            for worker in 0..4 {
                let (folders, inside) = (&folders, &inside);
                scope.spawn(move || {
                    for turn in 0..20 {
                        let path = |at: usize| folders[(worker + turn + at) % 3].path();
                        let locks = FolderLocks::acquire([path(0), path(1), path(0), path(2)]);
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        thread::yield_now();
                        inside.fetch_sub(1, Ordering::SeqCst);
                        drop(locks.unwrap());
                    }
                });
            }
        });
    }

    #[test]
    fn nobody_waits_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let held = FolderLocks::acquire([folder.path()]).unwrap();
        let patience = Duration::from_millis(20);
        let error = FolderLocks::acquire_within(patience, [folder.path()]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy);
        assert_eq!(error.path(), Some(&*folder.path().canonicalize().unwrap()));
        drop(held);
        FolderLocks::acquire_within(patience, [folder.path(), Path::new("/none")]).unwrap();
    }
}
