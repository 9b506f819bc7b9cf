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
use crate::tree::temporary_name;
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
}

/// A file that is being restored. If it is dropped before it has its name, it is removed.
#[derive(Debug)]
pub(crate) struct Restoring<'t> {
    target: &'t Target,
    pub path: Vec<u8>,
    temporary: Vec<u8>,
    /// The time of the file that has its name now, as it was when that file was read. `None` if
    /// there was no such file.
    seen: Option<Timestamp>,
    is_named: bool,
}

impl Target {
    /// Opens the folder that restored paths are relative to.
    pub fn open(root: &Path, id: String) -> Result<Self> {
        let folder = Folder::open(root).map_err(|error| Error::io("opening", root, error))?;
        Ok(Self { root: root.to_owned(), folder, id })
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
        move |error| Error::io(doing, &self.path_of(path), error)
    }

    /// Begins a file of `size` bytes, which are zeros at first. It may replace a file that still
    /// has the time `seen`. If that is `None`, it replaces no file.
    pub fn begin(&self, path: &[u8], size: u64, seen: Option<Timestamp>) -> Result<Restoring<'_>> {
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

    /// Makes a folder.
    pub fn make_folder(&self, path: &[u8]) -> Result<()> {
        let failed = |error| self.failed("making", path)(error);
        let (folder, name) = self.folder.parent(path, true).map_err(failed)?;
        folder.inner(&name, true).map(drop).map_err(failed)
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

    /// Makes a symbolic link to `to`. It replaces whatever has its name.
    pub fn symlink(&self, entry: &Entry, to: &[u8]) -> Result<()> {
        let failed = |error| self.failed("restoring the link", &entry.path)(error);
        let (folder, name) = self.folder.parent(&entry.path, true).map_err(failed)?;
        let temporary = self.temporary()?;
        folder.symlink(to, &temporary, entry.modified).map_err(failed)?;
        folder.replace(&temporary, &name).map_err(|error| {
            let _ = folder.remove(&temporary);
            failed(error)
        })
    }

    /// Makes a hard link at `path` to a file in the tree. It replaces whatever has its name.
    pub fn hard_link(&self, file: &[u8], path: &[u8]) -> Result<()> {
        let failed = |error| self.failed("restoring the link", path)(error);
        let (from, file) = self.folder.parent(file, false).map_err(failed)?;
        let (folder, name) = self.folder.parent(path, true).map_err(failed)?;
        let temporary = self.temporary()?;
        folder.link(&from, &file, &temporary).map_err(failed)?;
        folder.replace(&temporary, &name).map_err(failed)?;
        // If both names lead to the same file already, the system renames nothing.
        let _ = folder.remove(&temporary);
        Ok(())
    }

    /// Moves a file in the tree to a name that must be free.
    pub fn take(&self, from: &[u8], to: &[u8]) -> Result<()> {
        let failed = |error| self.failed("moving back", to)(error);
        let (source, old) = self.folder.parent(from, false).map_err(failed)?;
        let (folder, new) = self.folder.parent(to, true).map_err(failed)?;
        folder.take(&source, &old, &new).map_err(failed)
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

    /// Gives the file its name if it has the digest that it should have.
    ///
    /// # Errors
    /// If it has another digest ([`ErrorKind::CheckFailed`]), if someone has changed or made the
    /// file that it would replace ([`ErrorKind::Busy`]), or if the system refuses
    /// ([`ErrorKind::Io`]).
    pub fn finish(mut self, entry: &Entry, expected: FileDigest, sync: bool) -> Result<()> {
        let file = self.open()?;
        let now = digest_of(&file, entry.size()).map_err(|error| self.failed(error))?;
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
        self.expect_seen()?;
        self.publish(&file, entry, sync).map_err(|error| self.failed(error))?;
        self.is_named = true;
        Ok(())
    }

    /// Refuses to replace a file that someone has changed or made since it was read.
    fn expect_seen(&self) -> Result<()> {
        let path = self.target.path_of(&self.path);
        let now = std::fs::symlink_metadata(&path).ok();
        let now = now.and_then(|found| Attributes::of(&found).modified);
        match now == self.seen {
            true => Ok(()),
            false => Err(Error::new(
                ErrorKind::Busy,
                format!("{} was changed or made since the repair began, and stays", shown(&path)),
            )),
        }
    }

    fn publish(&self, file: &File, entry: &Entry, sync: bool) -> io::Result<()> {
        let (folder, name) = self.target.folder.parent(&self.path, false)?;
        let kept = folder.adopt(file, &name)?;
        set_mode(file, kept.unwrap_or(entry.mode) & RESTORED_MODE)?;
        set_modified(file, entry.modified)?;
        if sync {
            file.sync_all()?;
        }
        folder.replace(&self.temporary, &name)?;
        if sync { folder.sync() } else { Ok(()) }
    }
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
