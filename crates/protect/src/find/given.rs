//! The paths that a search is given, as they are on the disk, and their relation to a root.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use paritas_store::error::{Error, Result};
use paritas_store::place::open_files::is_unreadable;
use paritas_store::staging::directory_of;

use crate::paths::path_bytes;

/// Name of a folder that file systems make in their roots, and that a fresh disk has.
const OF_THE_DISK: &str = "lost+found";

/// A path that was given. It may not exist.
#[derive(Debug, Clone)]
pub(super) struct GivenPath {
    /// The path as it was given.
    pub named: PathBuf,
    /// The absolute path. Links on the way to it are followed.
    pub own: PathBuf,
    /// Where the path leads: its own place, unless there is a link.
    pub target: PathBuf,
    /// Whether there is a folder.
    pub is_folder: bool,
    /// Whether there is a file, or anything else but a folder.
    pub is_file: bool,
    /// Whether the path holds parity, so that it cannot mean a protected file or folder.
    pub has_parity: bool,
}

/// The relation of a given path to a root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Relation {
    /// It is the root, or a folder above it.
    Whole,
    /// It is inside the root, at this path.
    Inside(Vec<u8>),
    /// Neither lies in the other.
    Apart,
}

impl GivenPath {
    /// Looks at a path.
    ///
    /// # Errors
    /// If the system does not tell what is there ([`crate::ErrorKind::Io`]).
    pub fn of(path: &Path) -> Result<Self> {
        let failed = |error| Error::io("opening", path, &error);
        let (own, target) = match path.canonicalize() {
            Ok(target) => (own_place(path).unwrap_or_else(|| target.clone()), target),
            Err(error) if !is_unreadable(&error) => {
                let own = own_place(path).ok_or_else(|| failed(error))?;
                (own.clone(), own)
            }
            Err(error) => return Err(failed(error)),
        };
        let is_folder = is_folder(&target)?;
        let is_file = !is_folder && own.symlink_metadata().is_ok();
        Ok(Self { named: path.to_owned(), own, target, is_folder, is_file, has_parity: false })
    }

    /// Whether there is anything at the path.
    pub fn is_there(&self) -> bool {
        self.is_folder || self.is_file
    }

    /// Returns the relation of the path to a root. `holds` tells whether something is protected at
    /// a path inside the root. A protected link stands for itself; any other link stands for its
    /// target.
    pub fn relation(&self, root: &Path, holds: impl Fn(&[u8]) -> bool) -> Relation {
        match relation(&self.own, root) {
            Relation::Inside(path) if holds(&path) => Relation::Inside(path),
            _ => relation(&self.target, root),
        }
    }

    /// Whether this is the folder in which a file system check puts what it finds. That may be
    /// parity.
    pub fn is_of_the_disk(&self) -> bool {
        self.is_folder && self.target.ends_with(OF_THE_DISK)
    }

    /// Whether there is a folder with nothing in it, as on a new disk.
    pub fn is_empty_folder(&self) -> bool {
        let names = |mut entries: std::fs::ReadDir| {
            entries.all(|entry| entry.is_ok_and(|entry| entry.file_name() == OF_THE_DISK))
        };
        self.is_folder && std::fs::read_dir(&self.target).is_ok_and(names)
    }
}

/// Whether there is a folder at a path to which this user has access. Links are followed.
///
/// # Errors
/// If the disk does not tell ([`crate::ErrorKind::Io`]): then nobody knows what is there.
pub(super) fn is_folder(path: &Path) -> Result<bool> {
    match path.metadata() {
        Ok(found) => Ok(found.is_dir()),
        Err(error) if !is_unreadable(&error) => Ok(false),
        // The folder above refuses access. Whoever needs it will be told.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(false),
        Err(error) => Err(Error::io("opening", path, &error)),
    }
}

/// Returns those of some paths at which there are folders.
///
/// # Errors
/// As [`is_folder`].
pub(super) fn folders_among(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for path in paths {
        if is_folder(path)? {
            folders.push(path.clone());
        }
    }
    Ok(folders)
}

fn relation(path: &Path, root: &Path) -> Relation {
    match path.strip_prefix(root) {
        _ if root.starts_with(path) => Relation::Whole,
        Ok(inner) => Relation::Inside(path_bytes(inner)),
        Err(_) => Relation::Apart,
    }
}

/// Returns the absolute path of something that may not exist. Links on the way to it are followed.
fn own_place(path: &Path) -> Option<PathBuf> {
    let name: &OsStr = path.file_name()?;
    let folder = directory_of(path);
    let folder = match folder.canonicalize() {
        Err(error) if !is_unreadable(&error) => own_place(folder),
        found => found.ok(),
    };
    folder.map(|folder| folder.join(name))
}
