//! Files that are being restored: each is written under a temporary name in the folder where it
//! belongs, compared by its digest, and then renamed.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fs::{File, Metadata};
use std::io;
use std::mem::take;
use std::path::{Path, PathBuf};

use crate::aside;
use crate::digest::{FileDigest, digest_of_open};
use crate::find::ProtectedEntry;
use crate::paths::{owned_name, path_bytes, path_in};
use crate::sparse::copy_bytes;
use crate::times::has_time_now;
use crate::tree::{FoundEntry, FoundKind, above, folder_of, is_temporary, joined, temporary_name};
#[cfg(doc)]
use paritas_store::error::ErrorKind;
use paritas_store::error::{Error, Result};
use paritas_store::place::attributes::{Attributes, Timestamp, WantedAttributes};
use paritas_store::place::extended::Extended;
use paritas_store::place::folder::Folder;
use paritas_store::place::positional::set_length;
use paritas_store::place::refused::{Refused, is_refusal, refusal};
use paritas_store::place::system::{mode, open_file, set_mode};
use paritas_store::shown::shown;

/// Bits of a mode that a restored file gets. It does not get set-user-ID and set-group-ID bits:
/// these grant rights, which somebody must grant anew.
const RESTORED_MODE: u32 = 0o1777;
/// The bit of a mode that lets the owner read.
const READABLE: u32 = 0o400;

/// Returns the mode that a repair gives to what had `mode`.
pub(crate) fn restored_mode(mode: u32) -> u32 {
    mode & RESTORED_MODE
}

/// A tree in which files are restored.
#[derive(Debug)]
pub(crate) struct RestoreTree {
    root: PathBuf,
    folder: Folder,
    /// The id in the names of temporary files.
    id: String,
    /// Whether files and names are synced to the disk.
    sync: bool,
    /// The folders whose names have changed since they were last synced, by path.
    unsynced: RefCell<BTreeSet<Vec<u8>>>,
    /// What was replaced, and where it is now.
    kept: RefCell<Vec<(PathBuf, PathBuf)>>,
    /// What file systems have refused so far.
    refused: Cell<Refused>,
}

/// A file that is being restored. If it is dropped before it has its name, it is removed, unless it
/// is to stay.
#[derive(Debug)]
pub(crate) struct Restoring<'t> {
    target: &'t RestoreTree,
    pub path: Vec<u8>,
    temporary: Vec<u8>,
    /// The file that may be replaced. If `None`, the name must be free.
    seen: Option<Seen>,
    /// Whether the file stays when this is dropped, under the name that it has then.
    stays: bool,
}

/// A restored file that has the digest and the attributes of the protected file, and does not have
/// its name yet.
#[derive(Debug)]
pub(crate) struct Complete<'t> {
    restoring: Restoring<'t>,
    /// Whether its owner may not read it once it has its name.
    is_hidden: bool,
}

/// The thing that has the name of something to restore, as it was when it was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Its time of change. It may be replaced while it has this time.
    pub modified: Timestamp,
    /// Whether it has bytes or a target of its own, which stay beside the name ([`crate::aside`]).
    pub is_kept: bool,
    /// Whether somebody has changed it: it may be another file, which more people may read.
    pub is_changed: bool,
}

/// Where something is that moves back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MoveSource {
    /// It has its name.
    Here,
    /// It is on another disk, from which it can only be copied.
    OtherDisk,
}

impl RestoreTree {
    /// Opens the folder that restored paths are relative to.
    pub fn open(root: &Path, id: String, sync: bool) -> Result<Self> {
        let folder = Folder::open(root).map_err(|error| Error::io("opening", root, &error))?;
        let (unsynced, kept, refused) = Default::default();
        Ok(Self { root: root.to_owned(), folder, id, sync, unsynced, kept, refused })
    }

    /// Returns what was replaced, and where it is now.
    pub fn kept(&self) -> Vec<(PathBuf, PathBuf)> {
        self.kept.borrow().clone()
    }

    /// Returns what file systems have refused so far.
    pub fn refused(&self) -> Refused {
        self.refused.get()
    }

    fn refuse(&self, refused: Refused) {
        self.refused.set(self.refused.get().or(refused));
    }

    /// Returns the path of something in the tree.
    pub fn path_of(&self, path: &[u8]) -> PathBuf {
        path_in(&self.root, path)
    }

    /// Returns the path of something in the tree, relative to its root.
    pub fn relative(&self, path: &Path) -> Option<Vec<u8>> {
        path.strip_prefix(&self.root).ok().map(path_bytes)
    }

    fn failed<'a>(
        &'a self,
        doing: &'a str,
        path: &'a [u8],
    ) -> impl FnOnce(io::Error) -> Error + 'a {
        move |error| match error.kind() {
            io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory => self.in_the_way(path),
            _ => Error::making(doing, &self.path_of(path), &error),
        }
    }

    /// Returns the error for a path at which something is in the way: something other than a folder
    /// at the path or above it, or else a folder at the path.
    fn in_the_way(&self, path: &[u8]) -> Error {
        let mut on_the_way = above(path).chain([path]).map(|path| self.path_of(path));
        let is_no_folder =
            |path: &PathBuf| std::fs::symlink_metadata(path).is_ok_and(|found| !found.is_dir());
        let obstacle = on_the_way.find(is_no_folder).unwrap_or_else(|| self.path_of(path));
        Error::failed(format!("{} is in the way: move it away", shown(&obstacle)))
    }

    /// Expects that nothing is in the way at a path. A folder may take the place of a folder, and a
    /// file or a link that of a file or a link that was `seen`.
    ///
    /// # Errors
    /// As the restoring itself ([`ErrorKind::Io`], [`ErrorKind::Busy`]).
    pub fn expect_way(&self, path: &[u8], is_folder: bool, seen: Option<Seen>) -> Result<()> {
        let kind = |path: &[u8]| {
            let found = std::fs::symlink_metadata(self.path_of(path));
            found.ok().map(|found| found.file_type())
        };
        let found = kind(path);
        let is_free = found.is_none_or(|kind| match is_folder {
            true => kind.is_dir(),
            false => kind.is_file() || kind.is_symlink(),
        });
        match is_free && above(path).all(|path| kind(path).is_none_or(|kind| kind.is_dir())) {
            true if is_folder || found.is_none() || seen.is_some() => Ok(()),
            true => Err(has_other_content(&self.path_of(path))),
            false => Err(self.in_the_way(path)),
        }
    }

    /// Begins a file of `size` bytes, which are zeros at first.
    pub fn begin(&self, path: &[u8], size: u64, seen: Option<Seen>) -> Result<Restoring<'_>> {
        let failed = |error| self.failed("restoring", path)(error);
        let (folder, _) = self.folder.parent(path, true).map_err(failed)?;
        let temporary = self.temporary()?;
        let file = folder.create(&temporary).map_err(failed)?;
        let path = path.to_vec();
        let restoring = Restoring { target: self, path, temporary, seen, stays: false };
        self.note_name(&restoring.path);
        set_length(&file, size).map_err(|error| restoring.failed(error))?;
        Ok(restoring)
    }

    /// Goes on with what a killed repair has left under the name `temporary`: a whole file that
    /// lacks its attributes or its name. Returns `None` if it cannot be written, or if it is also
    /// somebody's file under another name. It stays if it does not get its name.
    pub fn resume(
        &self,
        path: &[u8],
        temporary: &[u8],
        seen: Option<Seen>,
    ) -> Option<Restoring<'_>> {
        let (folder, _) = self.folder.parent(path, false).ok()?;
        folder.file(temporary).ok()?;
        let found = FoundEntry::at(&self.root, &joined(folder_of(path), temporary))?;
        if !matches!(found.kind, FoundKind::File { links: None, .. }) {
            return None;
        }
        let (path, temporary) = (path.to_vec(), temporary.to_vec());
        Some(Restoring { target: self, path, temporary, seen, stays: true })
    }

    fn temporary(&self) -> Result<Vec<u8>> {
        let random = getrandom::u64()
            .map_err(|error| Error::stream("drawing random numbers", error.into()))?;
        Ok(temporary_name(&self.id, random))
    }

    /// Makes a folder. It has its mode from the beginning, in case the repair is killed; until it
    /// is finished, its owner may write to it in any case.
    pub fn make_folder(&self, entry: &ProtectedEntry) -> Result<()> {
        let failed = |error| self.failed("making", &entry.path)(error);
        let (folder, name) = self.folder.parent(&entry.path, true).map_err(failed)?;
        folder.make(&name, restored_mode(entry.mode)).map_err(failed)?;
        self.note_name(&entry.path);
        Ok(())
    }

    /// Notes that something at a path has got its name. The folders above it may be new as well.
    fn note_name(&self, path: &[u8]) {
        let mut unsynced = self.unsynced.borrow_mut();
        let mut folder = folder_of(path);
        while self.sync && unsynced.insert(folder.to_vec()) {
            folder = folder_of(folder);
        }
    }

    /// Makes all names durable that were given since the last time, if this is wanted. Returns the
    /// folders that the system cannot sync, with its errors.
    pub fn sync_names(&self) -> Vec<(Vec<u8>, Error)> {
        let sync = |folder: &Vec<u8>| self.inner(folder)?.sync();
        let failed = |folder: Vec<u8>| {
            let error = sync(&folder).err()?;
            let error = Error::io("syncing", &self.path_of(&folder), &error);
            Some((folder, error))
        };
        take(&mut *self.unsynced.borrow_mut()).into_iter().filter_map(failed).collect()
    }

    /// Gives a folder its attributes.
    pub fn finish_folder(&self, entry: &ProtectedEntry) -> Result<()> {
        let failed = |error| self.failed("finishing", &entry.path)(error);
        let folder = self.inner(&entry.path).map_err(failed)?;
        let above = || self.inner(folder_of(&entry.path)).ok()?.owner();
        let none = Extended::default();
        let wanted = WantedAttributes {
            mode: restored_mode(entry.mode),
            modified: entry.modified,
            owner: entry.details.owner.or_else(above),
            extended: entry.details.extended.as_deref().unwrap_or(&none),
        };
        folder.finish(&wanted).map(|refused| self.refuse(refused)).map_err(failed)
    }

    /// Gives a folder the time that it had, unless it has it still.
    pub fn set_folder_time(&self, entry: &ProtectedEntry) -> Result<()> {
        if has_time_now(entry.modified, &self.path_of(&entry.path)) {
            return Ok(());
        }
        let failed = |error| self.failed("finishing", &entry.path)(error);
        let folder = self.inner(&entry.path).map_err(failed)?;
        let times = folder.set_modified(entry.modified).map_err(failed)?;
        self.refuse(Refused { times, ..Refused::default() });
        Ok(())
    }

    fn inner(&self, path: &[u8]) -> io::Result<Folder> {
        if path.is_empty() {
            return self.folder.same();
        }
        let (folder, name) = self.folder.parent(path, false)?;
        folder.inner(&name, false)
    }

    /// Makes a symbolic link to `to`, if the file system has links.
    pub fn symlink(&self, entry: &ProtectedEntry, to: &[u8], seen: Option<Seen>) -> Result<()> {
        let failed = |error| self.failed("restoring the link", &entry.path)(error);
        let (folder, name) = self.folder.parent(&entry.path, true).map_err(failed)?;
        let temporary = self.temporary()?;
        if refusal(folder.symlink(to, &temporary, entry.modified)).map_err(failed)? {
            self.refuse(Refused { links: true, ..Refused::default() });
            return Ok(());
        }
        let named = self.name(&folder, (&temporary, &name), &entry.path, seen);
        // If the link did not get its name, it is removed.
        let _ = folder.remove(&temporary);
        named
    }

    /// Makes a hard link at `path` to a file in the tree, or a copy of it where the file cannot
    /// have one more name there.
    pub fn hard_link(&self, file: &[u8], path: &[u8], seen: Option<Seen>) -> Result<()> {
        let failed = |error| self.failed("restoring the link", path)(error);
        let (from, file) = self.folder.parent(file, false).map_err(failed)?;
        let (folder, name) = self.folder.parent(path, true).map_err(failed)?;
        let temporary = self.temporary()?;
        match folder.link(&from, &file, &temporary) {
            Err(error) if is_not_linkable(&error) => {
                self.refuse(Refused { links: true, ..Refused::default() });
                let copied = || {
                    let copy = folder.create(&temporary)?;
                    self.copy(&from.file_to_read(&file)?, &copy)?;
                    if self.sync { copy.sync_all() } else { Ok(()) }
                };
                copied().map_err(|error| {
                    let _ = folder.remove(&temporary);
                    failed(error)
                })?;
            }
            linked => linked.map_err(failed)?,
        }
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
        seen: Option<Seen>,
    ) -> Result<()> {
        let failed = |error| self.failed("restoring", path)(error);
        let place = self.path_of(path);
        let Some(seen) = seen else {
            self.name_new(folder, (temporary, name), path)?;
            self.note_name(path);
            return Ok(());
        };
        let now = std::fs::symlink_metadata(&place).ok();
        let now = now.filter(|now| Attributes::of(now).modified == Some(seen.modified));
        let Some(now) = now else {
            return Err(stays(&place, "was changed since the repair began, and stays"));
        };
        if seen.is_kept && !now.is_dir() && now.len() > 0 {
            self.keep(folder, name, &place, &now).map_err(failed)?;
        }
        folder.replace(temporary, name).map_err(failed)?;
        self.note_name(path);
        Ok(())
    }

    /// Gives something a name that was free. What has the name meanwhile stays.
    fn name_new(
        &self,
        folder: &Folder,
        (temporary, name): (&[u8], &[u8]),
        path: &[u8],
    ) -> Result<()> {
        let failed = |error| self.failed("restoring", path)(error);
        let place = self.path_of(path);
        let is_special = || {
            let found = std::fs::symlink_metadata(&place).map(|found| found.file_type());
            found.is_ok_and(|kind| !kind.is_file() && !kind.is_symlink())
        };
        match folder.take(folder, temporary, name) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(failed(error)),
            Err(_) if is_special() => Err(self.in_the_way(path)),
            Err(_) => Err(has_other_content(&place)),
        }
    }

    /// Gives another name to a file that is about to be replaced. It is a second name, so that the
    /// file keeps its own until the new file takes that. A file that cannot have two names is
    /// renamed.
    fn keep(&self, folder: &Folder, name: &[u8], place: &Path, now: &Metadata) -> io::Result<()> {
        let copy =
            aside::give_name(&self.id, name, now, |copy| match folder.link(folder, name, copy) {
                Err(error) if is_not_linkable(&error) => folder.take(folder, name, copy),
                linked => linked,
            })?;
        let copy = place.with_file_name(owned_name(copy));
        self.kept.borrow_mut().push((place.to_owned(), copy));
        Ok(())
    }

    /// Copies the bytes and the attributes of a file to a new one. Nobody gets more rights.
    fn copy(&self, from: &File, to: &File) -> io::Result<()> {
        let like = from.metadata()?;
        copy_bytes(from, to, like.len())?;
        // Zeros at the end are not written.
        set_length(to, like.len())?;
        let attributes = Attributes::of(&like);
        if let Some((mode, modified)) = attributes.mode.zip(attributes.modified) {
            let extended = &Extended::of_open(from);
            let mode = restored_mode(mode);
            let wanted = WantedAttributes { mode, modified, owner: attributes.owner, extended };
            self.refuse(wanted.give(to)?);
        }
        Ok(())
    }

    /// Moves a file in the tree to a name that must be free. If the file is on another disk,
    /// nothing is done, and [`MoveSource::OtherDisk`] is returned.
    pub fn take(&self, from: &[u8], to: &[u8]) -> Result<MoveSource> {
        let failed = |error| self.failed("moving back", to)(error);
        let (source, old) = self.folder.parent(from, false).map_err(failed)?;
        let (folder, new) = self.folder.parent(to, true).map_err(failed)?;
        match folder.take(&source, &old, &new) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                return Ok(MoveSource::OtherDisk);
            }
            taken => taken.map_err(failed)?,
        }
        self.note_name(from);
        self.note_name(to);
        Ok(MoveSource::Here)
    }

    /// Moves a file in the tree from another disk to a name that must be free: copies it, compares
    /// the copy with the digest, and removes the file. The copy gets the attributes of the
    /// file.
    ///
    /// # Errors
    /// If the file has other bytes by now ([`ErrorKind::DigestMismatch`]), or as for
    /// [`Complete::finish`].
    pub fn take_from_disk(
        &self,
        from: &[u8],
        to: &[u8],
        size: u64,
        digest: FileDigest,
    ) -> Result<()> {
        let failed = |error| self.failed("moving back", to)(error);
        let source = open_file(&self.path_of(from)).map_err(failed)?;
        let stamp = |found: &Metadata| (found.len(), found.modified().ok());
        let then = stamp(&source.metadata().map_err(failed)?);
        let restoring = self.begin(to, size, None)?;
        let file = restoring.open()?;
        self.copy(&source, &file).map_err(failed)?;
        restoring.expect_digest(&file, size, digest)?;
        restoring.sync(&file)?;
        Complete { restoring, is_hidden: false }.finish()?;
        self.sync_names().into_iter().next().map_or(Ok(()), |(_, error)| Err(error))?;
        let now = std::fs::symlink_metadata(self.path_of(from));
        match now.is_ok_and(|now| stamp(&now) == then) {
            true => self.remove(from),
            false => Err(Error::busy(format!(
                "{} was changed while it was copied, and stays",
                shown(&self.path_of(from))
            ))),
        }
    }

    /// Removes a file or a link that was made anew elsewhere.
    pub fn remove(&self, path: &[u8]) -> Result<()> {
        let failed = |error| self.failed("removing", path)(error);
        let (folder, name) = self.folder.parent(path, false).map_err(failed)?;
        folder.remove(&name).map_err(failed)?;
        self.note_name(path);
        Ok(())
    }

    /// Renames something from `name` to the last name of `path`. It is in the same folder, and the
    /// file system takes both names for the same.
    pub fn rename_alike(&self, name: &[u8], path: &[u8]) -> Result<()> {
        let failed = |error| self.failed("moving back", path)(error);
        let (folder, new) = self.folder.parent(path, false).map_err(failed)?;
        let temporary = self.temporary()?;
        folder.rename_alike(name, &new, &temporary).map_err(failed)?;
        self.note_name(path);
        Ok(())
    }

    /// Returns what earlier repairs of the same protection left in a folder when they were killed.
    pub fn leftovers_in(&self, folder: &[u8]) -> Vec<PathBuf> {
        let names = self.inner(folder).and_then(|inner| inner.names()).unwrap_or_default();
        let names = names.iter().filter(|name| is_temporary(name, &self.id));
        names.map(|name| self.path_of(&joined(folder, name))).collect()
    }
}

impl Restoring<'_> {
    /// Whether all of its bytes are there, because an earlier repair has written them.
    pub fn is_resumed(&self) -> bool {
        self.stays
    }

    pub fn failed(&self, error: io::Error) -> Error {
        Error::io("restoring", &self.target.path_of(&self.path), &error)
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
    /// Compares the file with the digest that it should have, and gives it the attributes of the
    /// entry. If this is wanted, the file is on the disk then.
    ///
    /// # Errors
    /// If it has another digest ([`ErrorKind::DigestMismatch`]), or if the system refuses
    /// ([`ErrorKind::Io`]).
    pub fn complete(self, entry: &ProtectedEntry, expected: FileDigest) -> Result<Complete<'t>> {
        let failed = |error| self.failed(error);
        let file = self.open()?;
        self.expect_digest(&file, entry.size(), expected)?;
        let is_hidden = self.set_attributes(&file, entry).map_err(failed)?;
        self.sync(&file)?;
        Ok(Complete { restoring: self, is_hidden })
    }

    fn expect_digest(&self, file: &File, size: u64, expected: FileDigest) -> Result<()> {
        match digest_of_open(file, size).map_err(|error| self.failed(error))? == Some(expected) {
            true => Ok(()),
            false => Err(Error::digest(format!(
                "{} was computed and does not have the digest of the protected file; nothing \
                 was replaced",
                shown(&self.target.path_of(&self.path))
            ))),
        }
    }

    /// Writes the file to the disk, if this is wanted.
    fn sync(&self, file: &File) -> Result<()> {
        match self.target.sync {
            true => file.sync_all().map_err(|error| self.failed(error)),
            false => Ok(()),
        }
    }
}

impl Complete<'_> {
    /// Keeps the file under its temporary name if it does not get its own. The next repair finds
    /// its bytes there.
    pub fn keep(&mut self) {
        self.restoring.stays = true;
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// If someone has changed or made the file that it would replace ([`ErrorKind::Busy`]), or if
    /// the system refuses ([`ErrorKind::Io`]).
    pub fn finish(mut self) -> Result<()> {
        let Restoring { target, path, temporary, seen, .. } = &self.restoring;
        let failed = |error| self.restoring.failed(error);
        let (folder, name) = target.folder.parent(path, false).map_err(failed)?;
        if self.is_hidden {
            // Its owner may read it, but perhaps not write to it.
            let opened = folder.file_to_read(temporary);
            refusal(opened.and_then(|file| hide(&file))).map_err(failed)?;
        }
        target.name(&folder, (temporary, &name), path, *seen)?;
        self.restoring.stays = true;
        Ok(())
    }
}

impl Restoring<'_> {
    /// Gives a new file its attributes: the time of the entry, and the owner, the mode and the
    /// extended attributes of the damaged file that it will replace. If there is none, or another
    /// file has its name now, it gets those of the entry, and gives nobody more access than that
    /// other file. Until it has its name, its owner may read it in any case: if the repair is
    /// killed, the next one looks for bytes in it. Returns whether the mode does not let its owner
    /// read it.
    fn set_attributes(&self, file: &File, entry: &ProtectedEntry) -> io::Result<bool> {
        let (folder, name) = self.target.folder.parent(&entry.path, false)?;
        let is_other = self.seen.is_none_or(|seen| seen.is_changed);
        let now = folder.about(&name);
        let own = entry.details.extended.as_deref().cloned().unwrap_or_default();
        let (mode, owner, extended) = match now {
            Some((mode, owner)) if is_other => {
                (mode & entry.mode, entry.details.owner.or(owner), own)
            }
            Some((mode, owner)) => (mode, owner, Extended::of(&self.target.path_of(&entry.path))),
            None => (entry.mode, entry.details.owner.or_else(|| folder.owner()), own),
        };
        let mode = restored_mode(mode);
        let modified = entry.modified;
        let wanted =
            WantedAttributes { mode: mode | READABLE, modified, owner, extended: &extended };
        self.target.refuse(wanted.give(file)?);
        Ok(mode & READABLE == 0)
    }
}

impl Drop for Restoring<'_> {
    fn drop(&mut self) {
        if !self.stays
            && let Ok((folder, _)) = self.target.folder.parent(&self.path, false)
        {
            let _ = folder.remove(&self.temporary);
        }
    }
}

/// Whether an error says that a file cannot have one more name: its file system has no hard links,
/// the file has the most names that are allowed (NTFS: 1,024), or the new name is on another disk.
fn is_not_linkable(error: &io::Error) -> bool {
    let kinds = [io::ErrorKind::TooManyLinks, io::ErrorKind::CrossesDevices];
    is_refusal(error) || kinds.contains(&error.kind())
}

/// Removes the owner's right to read a file.
fn hide(file: &File) -> io::Result<()> {
    match mode(&file.metadata()?) {
        Some(now) => set_mode(file, now & !READABLE),
        None => Ok(()),
    }
}

/// Returns the error for something at `place` that was not there when the protected files were
/// looked at, or that is in another folder.
fn has_other_content(place: &Path) -> Error {
    stays(place, "is there and has other content than the protected one, so it stays")
}

/// Returns the error for something at `place` that a restored file may not replace.
fn stays(place: &Path, why: &str) -> Error {
    Error::busy(format!("{} {why}", shown(place)))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    /// Says that a test does nothing here. `scripts/test` repeats the line at its end.
    fn not_run(why: &str) {
        // The harness hides what macros print.
        let _ = writeln!(io::stderr(), "NOT RUN: {why}");
    }

    /// Each folder is synced once, however many names in it and in new folders above it have
    /// changed.
    #[test]
    fn folders_with_new_names_are_synced_once() {
        let root = tempfile::tempdir().unwrap();
        for sync in [true, false] {
            let target =
                RestoreTree::open(root.path(), "0123456789abcdef".to_owned(), sync).unwrap();
            let paths: [&[u8]; 4] = [b"a/b/1", b"a/b/2", b"c/3", b"4"];
            let files = paths.map(|path| target.begin(path, 10, None).unwrap());
            let unsynced: Vec<Vec<u8>> = target.unsynced.borrow().iter().cloned().collect();
            let all: [&[u8]; 4] = [b"", b"a", b"a/b", b"c"];
            assert_eq!(unsynced, if sync { &all[..] } else { &[] });
            assert!(target.sync_names().is_empty() && target.unsynced.borrow().is_empty());
            drop(files);
        }
    }

    /// Where a file can be neither linked nor written, its other name becomes a copy.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_copy_in_place_of_a_link_only_reads() {
        let root = tempfile::tempdir().unwrap();
        let (from, to) = (root.path().join("from"), root.path().join("to"));
        std::fs::write(&from, [7; 10_000]).unwrap();
        let change = |how: &str| {
            let done = std::process::Command::new("chattr").arg(how).arg(&from).status();
            done.is_ok_and(|done| done.success())
        };
        if !change("+i") {
            return not_run("no file can be made immutable here");
        }
        let target = RestoreTree::open(root.path(), "0123456789abcdef".to_owned(), false).unwrap();
        let linked = target.hard_link(b"from", b"to", None);
        assert!(change("-i"));
        linked.unwrap();
        assert_eq!(std::fs::read(to).unwrap(), [7; 10_000]);
        assert!(target.refused().links);
    }

    /// A file with the most names that its file system allows is renamed to give way to a restored
    /// file, and copied where it should get one more name.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_with_too_many_names_is_renamed_or_copied() {
        let root = tempfile::tempdir().unwrap();
        let target = RestoreTree::open(root.path(), "0123456789abcdef".to_owned(), false).unwrap();
        let (from, names) = (root.path().join("from"), root.path().join("names"));
        std::fs::write(&from, [7; 10_000]).unwrap();
        std::fs::create_dir(&names).unwrap();
        // ext4 allows 65,000.
        let linked = (0..66_000)
            .try_for_each(|number| std::fs::hard_link(&from, names.join(format!("{number}"))));
        if linked.is_ok() {
            return not_run("files have any number of names here");
        }
        target.hard_link(b"from", b"to", None).unwrap();
        assert_eq!(std::fs::read(root.path().join("to")).unwrap(), [7; 10_000]);
        assert!(target.refused().links);
        let now = std::fs::symlink_metadata(&from).unwrap();
        target.keep(&target.folder, b"from", &from, &now).unwrap();
        assert!(!from.exists());
        assert_eq!(std::fs::read(&target.kept()[0].1).unwrap(), [7; 10_000]);
    }

    /// Zeros are not written, so the length of a copy must be set.
    #[test]
    fn a_copy_has_the_zeros_at_the_end() {
        let root = tempfile::tempdir().unwrap();
        let target = RestoreTree::open(root.path(), "0123456789abcdef".to_owned(), false).unwrap();
        for content in [vec![0; 10_000], [vec![7; 5_000], vec![0; 20_000]].concat()] {
            std::fs::write(root.path().join("from"), &content).unwrap();
            let from = target.folder.file(b"from").unwrap();
            let to = target.folder.create(b"to").unwrap();
            target.copy(&from, &to).unwrap();
            assert!(std::fs::read(root.path().join("to")).unwrap() == content);
            target.folder.remove(b"to").unwrap();
        }
    }
}
