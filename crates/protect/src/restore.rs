//! Files that are being restored: each is written under a temporary name in the folder where it
//! belongs, compared by its digest, and then renamed.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::digest::{FileDigest, shorten};
use crate::error::{Error, ErrorKind, Result};
use crate::find::Entry;
use crate::folder::{Folder, set_modified};
use crate::stream::read_at;
use crate::system::path_in;
use crate::tree::{is_temporary, temporary_name};
use paritas_shards::{Attributes, Digest, Timestamp, shown};

/// Number of bytes that are read back at once.
const STEP: u64 = 1 << 20;
/// Bits of a mode that a restored file gets. It does not get set-user-ID and set-group-ID bits:
/// these grant rights, which somebody must grant anew.
const RESTORED_MODE: u32 = 0o1777;

/// A tree in which files are restored.
#[derive(Debug)]
pub(crate) struct Target {
    root: PathBuf,
    folder: Folder,
    /// The id in the names of temporary files.
    id: String,
    /// Whether files and names are synced to the disk.
    sync: bool,
}

/// A file that is being restored. If it is dropped before it has its name, it is removed.
#[derive(Debug)]
pub(crate) struct Restoring<'t> {
    target: &'t Target,
    pub path: Vec<u8>,
    temporary: Vec<u8>,
    seen: Seen,
    is_named: bool,
}

/// A restored file that has the digest of the protected file, and does not have its name yet.
#[derive(Debug)]
pub(crate) struct Complete<'t>(Restoring<'t>);

/// The time of what has a name that is restored, as it was when that was read. It may be replaced
/// while it has this time. `None` if there was nothing: then nothing is replaced.
pub(crate) type Seen = Option<Timestamp>;

impl Target {
    /// Opens the folder that restored paths are relative to.
    pub fn open(root: &Path, id: String, sync: bool) -> Result<Self> {
        let folder = Folder::open(root).map_err(|error| Error::io("opening", root, error))?;
        Ok(Self { root: root.to_owned(), folder, id, sync })
    }

    /// Returns the path of something in the tree.
    pub fn path_of(&self, path: &[u8]) -> PathBuf {
        path_in(&self.root, path)
    }

    fn failed<'a>(
        &'a self,
        doing: &'a str,
        path: &'a [u8],
    ) -> impl FnOnce(io::Error) -> Error + 'a {
        move |error| match error.kind() {
            io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory => self.in_the_way(path),
            _ => Error::io(doing, &self.path_of(path), error),
        }
    }

    /// Returns the error for something that cannot be restored at a path, because a folder is
    /// there, or something that is no folder is there or on the way.
    fn in_the_way(&self, path: &[u8]) -> Error {
        let ends = (0..path.len()).filter(|&at| path[at] == b'/').chain([path.len()]);
        let mut on_the_way = ends.map(|end| self.path_of(&path[..end]));
        let is_no_folder =
            |path: &PathBuf| std::fs::symlink_metadata(path).is_ok_and(|found| !found.is_dir());
        let obstacle = on_the_way.find(is_no_folder).unwrap_or_else(|| self.path_of(path));
        Error::new(ErrorKind::Io, format!("{} is in the way: move it away", shown(&obstacle)))
    }

    /// Begins a file of `size` bytes, which are zeros at first.
    pub fn begin(&self, path: &[u8], size: u64, seen: Seen) -> Result<Restoring<'_>> {
        let failed = |error| self.failed("restoring", path)(error);
        let (folder, _) = self.folder.parent(path, true).map_err(failed)?;
        let temporary = self.temporary()?;
        let file = folder.create(&temporary).map_err(failed)?;
        let path = path.to_vec();
        let restoring = Restoring { target: self, path, temporary, seen, is_named: false };
        file.set_len(size).map_err(|error| restoring.failed(error))?;
        Ok(restoring)
    }

    fn temporary(&self) -> Result<Vec<u8>> {
        let random = getrandom::u64().map_err(|error| {
            Error::new(ErrorKind::Io, format!("drawing random numbers: {error}"))
        })?;
        Ok(temporary_name(&self.id, random))
    }

    /// Makes a folder. It has its mode from the beginning, in case the repair is killed; until it
    /// is finished, its owner may write to it in any case.
    pub fn make_folder(&self, entry: &Entry) -> Result<()> {
        let failed = |error| self.failed("making", &entry.path)(error);
        let (folder, name) = self.folder.parent(&entry.path, true).map_err(failed)?;
        folder.make(&name, entry.mode & RESTORED_MODE).map_err(failed)?;
        self.sync(&folder).map_err(failed)
    }

    /// Makes the names in a folder durable, if this is wanted.
    fn sync(&self, folder: &Folder) -> io::Result<()> {
        if self.sync { folder.sync() } else { Ok(()) }
    }

    /// Gives a folder its mode and time.
    pub fn finish_folder(&self, entry: &Entry) -> Result<()> {
        let failed = |error| self.failed("finishing", &entry.path)(error);
        let folder = self.inner(&entry.path).map_err(failed)?;
        folder.finish(entry.mode & RESTORED_MODE, entry.modified).map_err(failed)
    }

    /// Gives a folder the time that it had.
    pub fn set_folder_time(&self, entry: &Entry) -> Result<()> {
        let failed = |error| self.failed("finishing", &entry.path)(error);
        let folder = self.inner(&entry.path).map_err(failed)?;
        folder.set_modified(entry.modified).map_err(failed)
    }

    fn inner(&self, path: &[u8]) -> io::Result<Folder> {
        let (folder, name) = self.folder.parent(path, false)?;
        folder.inner(&name, false)
    }

    /// Makes a symbolic link to `to`.
    pub fn symlink(&self, entry: &Entry, to: &[u8], seen: Seen) -> Result<()> {
        let failed = |error| self.failed("restoring the link", &entry.path)(error);
        let (folder, name) = self.folder.parent(&entry.path, true).map_err(failed)?;
        let temporary = self.temporary()?;
        folder.symlink(to, &temporary, entry.modified).map_err(failed)?;
        let named = self.name(&folder, (&temporary, &name), &entry.path, seen);
        // If it did not get its name, it goes.
        let _ = folder.remove(&temporary);
        named
    }

    /// Makes a hard link at `path` to a file in the tree.
    pub fn hard_link(&self, file: &[u8], path: &[u8], seen: Seen) -> Result<()> {
        let failed = |error| self.failed("restoring the link", path)(error);
        let (from, file) = self.folder.parent(file, false).map_err(failed)?;
        let (folder, name) = self.folder.parent(path, true).map_err(failed)?;
        let temporary = self.temporary()?;
        folder.link(&from, &file, &temporary).map_err(failed)?;
        let named = self.name(&folder, (&temporary, &name), path, seen);
        // It also goes if both names led to the same file already: then the system renames nothing.
        let _ = folder.remove(&temporary);
        named
    }

    /// Gives something its name in a folder, instead of a temporary one. `path` is the whole path.
    ///
    /// # Errors
    /// If something has the name that may not be replaced ([`ErrorKind::Busy`]), or if the system
    /// refuses ([`ErrorKind::Io`]).
    fn name(
        &self,
        folder: &Folder,
        (temporary, name): (&[u8], &[u8]),
        path: &[u8],
        seen: Seen,
    ) -> Result<()> {
        let failed = |error| self.failed("restoring", path)(error);
        let place = self.path_of(path);
        let stays = |why| Error::new(ErrorKind::Busy, format!("{} {why}", shown(&place)));
        if seen.is_none() {
            folder.take(folder, temporary, name).map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => {
                    stays("is there and has other content than the protected one, so it stays")
                }
                _ => failed(error),
            })?;
        } else {
            let now = std::fs::symlink_metadata(&place).ok();
            let now = now.and_then(|found| Attributes::of(&found).modified);
            if now != seen {
                return Err(stays("was changed since the repair began, and stays"));
            }
            folder.replace(temporary, name).map_err(failed)?;
        }
        self.sync(folder).map_err(failed)
    }

    /// Moves a file in the tree to a name that must be free.
    pub fn take(&self, from: &[u8], to: &[u8]) -> Result<()> {
        let failed = |error| self.failed("moving back", to)(error);
        let (source, old) = self.folder.parent(from, false).map_err(failed)?;
        let (folder, new) = self.folder.parent(to, true).map_err(failed)?;
        folder.take(&source, &old, &new).map_err(failed)?;
        self.sync(&folder).map_err(failed)
    }

    /// Removes from a folder what an earlier repair of the same protection left when it was killed.
    pub fn remove_leftovers(&self, folder: &[u8]) {
        let folder = if folder.is_empty() { self.folder.same() } else { self.inner(folder) };
        let Ok(folder) = folder else { return };
        let names = folder.names().unwrap_or_default();
        for name in names.iter().filter(|name| is_temporary(name, &self.id)) {
            let _ = folder.remove(name);
        }
    }
}

impl Restoring<'_> {
    fn failed(&self, error: io::Error) -> Error {
        Error::io("restoring", &self.target.path_of(&self.path), error)
    }

    /// Opens the file for writing.
    pub fn open(&self) -> Result<File> {
        let opened = self.target.folder.parent(&self.path, false);
        opened
            .and_then(|(folder, _)| folder.file(&self.temporary))
            .map_err(|error| self.failed(error))
    }
}

impl<'t> Restoring<'t> {
    /// Compares the file with the digest that it should have.
    ///
    /// # Errors
    /// If it has another digest ([`ErrorKind::CheckFailed`]), or if the system refuses
    /// ([`ErrorKind::Io`]).
    pub fn check(self, size: u64, expected: FileDigest) -> Result<Complete<'t>> {
        let file = self.open()?;
        let now = digest_of(&file, size).map_err(|error| self.failed(error))?;
        if now != expected {
            return Err(Error::new(
                ErrorKind::CheckFailed,
                format!(
                    "{} was computed and does not have the digest of the protected file; nothing \
                     was replaced",
                    shown(&self.target.path_of(&self.path))
                ),
            ));
        }
        if self.target.sync {
            file.sync_all().map_err(|error| self.failed(error))?;
        }
        Ok(Complete(self))
    }
}

impl Complete<'_> {
    /// Gives the file its name.
    ///
    /// # Errors
    /// If someone has changed or made the file that it would replace ([`ErrorKind::Busy`]), or if
    /// the system refuses ([`ErrorKind::Io`]).
    pub fn finish(mut self, entry: &Entry) -> Result<()> {
        let Restoring { target, path, temporary, seen, .. } = &self.0;
        let failed = |error| self.0.failed(error);
        let file = self.0.open()?;
        let (folder, name) = target.folder.parent(path, false).map_err(failed)?;
        set_attributes(&folder, &file, &name, entry).map_err(failed)?;
        if target.sync {
            file.sync_all().map_err(failed)?;
        }
        target.name(&folder, (temporary, &name), path, *seen)?;
        self.0.is_named = true;
        Ok(())
    }
}

/// Gives a new file the owner and the mode of the file that it will replace, or else the entry's
/// mode, and the entry's time.
fn set_attributes(folder: &Folder, file: &File, name: &[u8], entry: &Entry) -> io::Result<()> {
    let kept = folder.adopt(file, name)?;
    set_mode(file, kept.unwrap_or(entry.mode) & RESTORED_MODE)?;
    set_modified(file, entry.modified)
}

impl Drop for Restoring<'_> {
    fn drop(&mut self) {
        if !self.is_named
            && let Ok((folder, _)) = self.target.folder.parent(&self.path, false)
        {
            let _ = folder.remove(&self.temporary);
        }
    }
}

#[cfg(unix)]
fn set_mode(file: &File, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(std::fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn set_mode(_file: &File, _mode: u32) -> io::Result<()> {
    Ok(())
}

/// Returns the digest of an open file of `size` bytes.
fn digest_of(file: &File, size: u64) -> io::Result<FileDigest> {
    let mut memory = vec![0; size.min(STEP) as usize];
    let mut hasher = blake3::Hasher::new();
    for at in (0..size).step_by(STEP as usize) {
        let count = (size - at).min(STEP) as usize;
        let mut filled = 0;
        while filled < count {
            match read_at(file, &mut memory[filled..count], at + filled as u64)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => filled += read,
            }
        }
        hasher.update(&memory[..count]);
    }
    Ok(shorten(&Digest::new(hasher.finalize().into())))
}
