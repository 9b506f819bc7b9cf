//! Which paths lead to the same file or folder.
//!
//! Equal device and inode numbers do not prove that two paths lead to one file. FUSE file systems
//! that show several disks as one pass numbers through, and so do virtiofs and some network file
//! systems: then different files have the same numbers. What is certain is this:
//!
//! - Files with different numbers are different, but for what an overlay and the folders below it
//!   show of one file.
//! - Paths that are the same without links and detours lead to the same file.
//! - Within one mount, another path leads to the same file only by a hard link, which folders
//!   cannot have, and which files have only if they count more than one.
//! - Another mount may show the same folder at another place. Whether a *file* is the same is then
//!   decided by its bytes, as it is for files that count several links. Two copies with the same
//!   numbers and the same bytes count as one file, although they may be two.

use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use crate::place::positional::are_same;
use crate::place::system::{FileId, FileSystem, id_of, link_count, open_to_read};

/// The file or folder that a path leads to, as the system shows it.
#[derive(Debug, Clone)]
pub struct Inode {
    path: PathBuf,
    id: FileId,
    metadata: Metadata,
}

impl Inode {
    /// Looks at a path, and follows links. Returns `None` if nothing is there, or if the system
    /// does not tell.
    pub fn at(path: &Path) -> Option<Self> {
        let metadata = fs::metadata(path).ok()?;
        Some(Self { path: path.to_owned(), id: id_of(path, &metadata)?, metadata })
    }

    /// Returns the device and the number, which order all inodes. Different files may have the
    /// same.
    pub(crate) fn id(&self) -> &FileId {
        &self.id
    }

    /// Whether both are the same file or folder. Bytes of files are read only if nothing else
    /// decides; files that cannot be read are different then.
    pub fn is_same(&self, other: &Self) -> bool {
        self.id == other.id && (self.has_path_of(other) || self.is_same_elsewhere(other))
    }

    fn has_path_of(&self, other: &Self) -> bool {
        self.path == other.path
            || self.canonical().is_some_and(|path| Some(path) == other.canonical())
    }

    fn canonical(&self) -> Option<PathBuf> {
        fs::canonicalize(&self.path).ok()
    }

    /// Whether both are the same, though their paths differ.
    fn is_same_elsewhere(&self, other: &Self) -> bool {
        let mounts = [self, other].map(|inode| FileSystem::of(&inode.path)?.mount());
        let is_one_mount = mounts[0].is_some() && mounts[0] == mounts[1];
        let is_linked = [self, other].iter().all(|inode| link_count(&inode.metadata) > 1);
        match self.metadata.is_file() && other.metadata.is_file() {
            true => (is_linked || !is_one_mount) && self.has_bytes_of(other).unwrap_or(false),
            false if self.metadata.is_dir() => !is_one_mount,
            // Devices and pipes cannot be compared.
            false => is_linked || !is_one_mount,
        }
    }

    fn has_bytes_of(&self, other: &Self) -> io::Result<bool> {
        let is_as_long = self.metadata.len() == other.metadata.len();
        Ok(is_as_long && are_same(&open_to_read(&self.path)?, &open_to_read(&other.path)?)?)
    }
}

/// A set of files and folders.
#[derive(Debug, Clone, Default)]
pub struct Inodes(HashMap<FileId, Vec<Inode>>);

impl Inodes {
    /// Adds what a path leads to. Returns whether it is new. A path about which the system tells
    /// nothing counts as new.
    pub fn add(&mut self, path: &Path) -> bool {
        let Some(inode) = Inode::at(path) else { return true };
        let known = self.0.entry(FileId::clone(&inode.id)).or_default();
        let is_new = !known.iter().any(|known| known.is_same(&inode));
        if is_new {
            known.push(inode);
        }
        is_new
    }

    /// Whether the file or folder that a path leads to was added.
    pub fn has(&self, path: &Path) -> bool {
        let inode = Inode::at(path);
        inode.is_some_and(|inode| {
            let known = self.0.get(&inode.id);
            known.is_some_and(|known| known.iter().any(|known| known.is_same(&inode)))
        })
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// Returns what is at a path, with numbers that all files have there.
    fn collided(path: &Path) -> Inode {
        Inode { id: Default::default(), ..Inode::at(path).unwrap() }
    }

    #[test]
    fn equal_numbers_are_no_proof() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        let (one, copy, other) = (place("one"), place("copy"), place("other"));
        for (path, content) in [(&one, "bytes"), (&copy, "bytes"), (&other, "other")] {
            fs::write(path, content).unwrap();
        }
        let folders = ["a", "b"].map(place);
        folders.iter().for_each(|path| fs::create_dir(path).unwrap());
        for (first, second) in [(&one, &copy), (&one, &other), (&folders[0], &folders[1])] {
            assert!(!collided(first).is_same(&collided(second)), "{second:?}");
            assert!(collided(second).is_same(&collided(second)));
        }
        // Files that count several links are told apart by their bytes.
        for path in [&one, &other] {
            fs::hard_link(path, path.with_extension("link")).unwrap();
        }
        assert!(collided(&one).is_same(&collided(&place("one.link"))));
        assert!(!collided(&one).is_same(&collided(&other)));
    }

    #[test]
    fn links_lead_to_the_same_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "bytes").unwrap();
        let links = ["symbolic", "hard"].map(|name| folder.path().join(name));
        symlink("file", &links[0]).unwrap();
        fs::hard_link(&file, &links[1]).unwrap();
        let mut inodes = Inodes::default();
        assert!(!inodes.has(&file) && inodes.add(&file));
        for link in [&links[0], &links[1], &folder.path().join("./file")] {
            assert!(inodes.has(link) && !inodes.add(link), "{link:?}");
        }
        let absent = folder.path().join("absent");
        assert!(!inodes.has(&absent) && inodes.add(&absent) && inodes.add(&absent));
        assert!(inodes.add(folder.path()) && !inodes.add(&folder.path().join(".")));
    }
}
