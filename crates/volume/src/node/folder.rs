//! A node in a directory of this machine.
//!
//! A file is written in the folder [`STAGING`] of the same directory, synced, and renamed. So a
//! killed process leaves files only there. Paths cannot lead out of the directory: names are
//! checked, and symbolic links to folders or files below the root are refused (the root itself may
//! be a link).
//!
//! A file that must be new is renamed without replacing anything, or linked. On a file system that
//! can do neither (exFAT, some network shares), the node first looks for the file, under a lock
//! that keeps other processes of this machine away. From then on the node no longer claims the
//! ability to create files exclusively.
//!
//! This file is long because it has everything that a disk may do to a node, with its tests.
//!
//! If the root is missing, every call fails with an error other than "file not found", because a
//! disk that is not mounted has not lost its files.

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind as IoErrorKind, IoSlice, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use paritas_store::error::{Error, ErrorKind, Result};
use paritas_store::place::attributes::{Owner, hand_over};
use paritas_store::place::lock::FolderLocks;
use paritas_store::place::space::free_at;
use paritas_store::place::system::{drop_cached, look_and_rename, rename_at_once};
use tempfile::{NamedTempFile, PersistError};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{self, Sender};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;
use walkdir::{DirEntry, WalkDir};

use super::buffers::Buffers;
use super::contact::Contact;
use super::folders::{DurableFolders, create_folder, create_folders, folders_of, is_absence};
use super::{
    Abilities, Entry, MOST_WHOLE, Mode, Node, STAGING, Stat, Writer, check_path, check_prefix,
    is_abandoned, range_length, staging_prefix, too_long, too_short,
};
use crate::cleaning::Unfinished;

/// Bytes of a disk that are left for small files, such as the marks of removed objects: a full
/// volume could not be emptied without them.
const RESERVE: u64 = 1 << 20;

/// The most bytes of a file that is written into the reserve.
const MOST_OF_RESERVE: usize = 4096;

/// Number of entries of a listing that are handed over at a time.
const BATCH: usize = 1000;

/// Largest number of attempts at giving a file its name. An attempt is repeated if another task has
/// removed the folder because it was empty.
const NAMING_ATTEMPTS: usize = 64;

/// Number of threads that work in a folder at a time. A disk that hangs keeps its threads, even if
/// no caller waits for them any longer. Without a limit, it would in time hold all threads that the
/// process has for such work, and no other disk could be used.
const MOST_THREADS: usize = 32;

/// Bytes of a file that are written before they are synced. So finishing a large file takes little
/// longer than finishing a small one: a disk with 10 MB/s needs 6.7 s for this number of bytes.
const SYNCED: u64 = 64 << 20;

/// A directory of this machine that stores files.
#[derive(Debug, Clone)]
pub struct FolderNode {
    inner: Arc<FolderInner>,
}

#[derive(Debug)]
struct FolderInner {
    name: String,
    /// Gets the signs of life of calls that take long.
    contact: Arc<Contact>,
    root: PathBuf,
    sync: bool,
    buffers: Arc<Buffers>,
    durable: DurableFolders,
    threads: Arc<Semaphore>,
    /// Whether the file system turned out to lack exclusive creation of files.
    looks_first: AtomicBool,
}

impl FolderNode {
    /// Creates a node in an existing directory. With `sync`, files are durable when they have their
    /// names; otherwise the system decides when to write them to the disk.
    pub fn new(name: impl Into<String>, root: impl Into<PathBuf>, sync: bool) -> Self {
        Self::over(Contact::unlimited(name), root, sync)
    }

    /// Creates a node that reports its signs of life to a contact.
    pub(super) fn over(contact: Arc<Contact>, root: impl Into<PathBuf>, sync: bool) -> Self {
        let (name, root, buffers) =
            (contact.node().to_owned(), root.into(), Arc::new(Buffers::default()));
        let threads = Arc::new(Semaphore::new(MOST_THREADS));
        let (durable, looks_first) = (DurableFolders::default(), AtomicBool::new(false));
        let inner =
            FolderInner { name, contact, root, sync, buffers, durable, threads, looks_first };
        Self { inner: Arc::new(inner) }
    }

    /// Returns the directory.
    pub fn root(&self) -> &Path {
        &self.inner.root
    }

    /// Runs blocking work that changes files. A program that ends waits for it, unless the node is
    /// lost.
    async fn changing<T: Send + 'static>(
        &self,
        work: impl FnOnce(&FolderInner) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let turn = self.inner.turn().await;
        self.change(turn, work).await
    }

    /// Does the same with work that has its turn already. The work starts on its thread at once.
    async fn change<T: Send + 'static>(
        &self,
        turn: Option<OwnedSemaphorePermit>,
        work: impl FnOnce(&FolderInner) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let unfinished = self.unfinished();
        let work = move |inner: &FolderInner| {
            let _unfinished = unfinished;
            work(inner)
        };
        self.run(turn, work).await
    }

    fn unfinished(&self) -> Unfinished {
        Unfinished::begin_at(self.inner.contact.watch())
    }

    /// Runs blocking work on a thread of the pool for such work.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&FolderInner) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let turn = self.inner.turn().await;
        self.run(turn, work).await
    }

    /// Runs blocking work that has its turn already.
    async fn run<T: Send + 'static>(
        &self,
        turn: Option<OwnedSemaphorePermit>,
        work: impl FnOnce(&FolderInner) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let inner = self.inner.clone();
        let work = move || {
            let _turn = turn;
            work(&inner)
        };
        match tokio::task::spawn_blocking(work).await {
            Ok(result) => result,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(error) => Err(self.inner.error(ErrorKind::Cancelled, "the program ends", error)),
        }
    }
}

#[async_trait]
impl Node for FolderNode {
    fn name(&self) -> &str {
        &self.inner.name
    }

    fn abilities(&self) -> Abilities {
        let create = !self.inner.looks_first.load(Ordering::Relaxed);
        Abilities { create, ..Abilities::ALL }
    }

    fn is_local(&self) -> bool {
        true
    }

    async fn read(&self, path: &str, range: Option<Range<u64>>) -> Result<Bytes> {
        let path = path.to_owned();
        self.blocking(move |inner| inner.read(&path, range)).await
    }

    async fn read_here(&self, path: &str, range: Range<u64>) -> Result<Bytes> {
        self.inner.read(path, Some(range))
    }

    async fn stat(&self, path: &str) -> Result<Option<Stat>> {
        let path = path.to_owned();
        self.blocking(move |inner| inner.stat(&path)).await
    }

    fn list<'a>(&'a self, prefix: &'a str) -> BoxStream<'a, Result<Entry>> {
        let (inner, prefix) = (self.inner.clone(), prefix.to_owned());
        let begin = async move {
            let (sender, receiver) = mpsc::channel(2);
            let turn = inner.turn().await;
            tokio::task::spawn_blocking(move || {
                let _turn = turn;
                inner.list(&prefix, &sender);
            });
            stream::unfold(receiver, |mut receiver| async move {
                receiver.recv().await.map(|batch| (stream::iter(batch), receiver))
            })
        };
        stream::once(begin).flatten().flatten().boxed()
    }

    async fn folders(&self, prefix: &str) -> Result<Vec<String>> {
        let prefix = prefix.to_owned();
        self.blocking(move |inner| inner.folders(&prefix)).await
    }

    async fn write(&self, path: &str, content: Bytes, mode: Mode) -> Result<()> {
        let path = path.to_owned();
        self.changing(move |inner| {
            let target = inner.target(&path)?;
            if content.len() > MOST_OF_RESERVE {
                inner.expect_room(&path)?;
            }
            let mut file = inner.stage()?;
            let written = file.write_all(&content);
            written.map_err(|error| inner.trouble("write", &path, error))?;
            if content.len() > MOST_OF_RESERVE {
                inner.expect_room(&path)?;
            }
            inner.publish(file, &path, &target, mode)
        })
        .await
    }

    async fn writer(&self, path: &str) -> Result<Box<dyn Writer>> {
        let owned = path.to_owned();
        let begin = move |inner: &FolderInner| {
            let target = inner.target(&owned)?;
            inner.expect_room(&owned)?;
            Ok((target, inner.stage()?))
        };
        let (target, file) = self.changing(begin).await?;
        Ok(Box::new(FolderWriter {
            folder: self.clone(),
            path: path.to_owned(),
            target,
            file: Some(file),
            unsynced: 0,
        }))
    }

    async fn delete(&self, path: &str) -> Result<()> {
        let path = path.to_owned();
        self.changing(move |inner| inner.delete(&path)).await
    }

    async fn free_bytes(&self) -> Option<u64> {
        let free = self.blocking(|inner| Ok(free_at(&inner.root))).await.ok().flatten();
        free.map(|free| free.saturating_sub(RESERVE))
    }

    async fn forget_cached(&self, path: &str) {
        let path = path.to_owned();
        let forget = |inner: &FolderInner, path: &str| {
            let target = inner.target(path)?;
            let is_file = fs::metadata(&target).is_ok_and(|found| found.is_file());
            let file = if is_file { File::open(&target) } else { return Ok(()) };
            let forgotten = file.and_then(|file| drop_cached(&file));
            forgotten.map_err(|error| inner.trouble("open", path, error))
        };
        // The next reader of the file will get the error.
        let _ = self.blocking(move |inner| forget(inner, &path)).await;
    }

    async fn sweep(&self, age: Duration) -> Result<u64> {
        self.changing(move |inner| inner.sweep(age)).await
    }
}

impl FolderInner {
    /// Waits until fewer than [`MOST_THREADS`] threads work here. The semaphore is never closed.
    async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.threads).acquire_owned().await.ok()
    }

    fn error(
        &self,
        kind: ErrorKind,
        message: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Error {
        Error::new(kind, message).because(source).at_node(&self.name)
    }

    /// Converts the system's error about a path.
    fn trouble(&self, doing: &str, path: &str, error: io::Error) -> Error {
        let kind = match error.kind() {
            IoErrorKind::NotFound if self.root.is_dir() => ErrorKind::NotFound,
            IoErrorKind::NotFound => return self.missing_root(),
            IoErrorKind::AlreadyExists => ErrorKind::Exists,
            IoErrorKind::PermissionDenied | IoErrorKind::ReadOnlyFilesystem => ErrorKind::Refused,
            IoErrorKind::OutOfMemory => ErrorKind::Memory,
            _ => ErrorKind::Io,
        };
        let path = match kind {
            // Which folder it is says whose permissions to look at.
            ErrorKind::Refused => format!("{path} in {}", self.root.display()),
            _ => path.to_owned(),
        };
        self.error(kind, format!("cannot {doing} {path}: {error}"), error)
    }

    fn missing_root(&self) -> Error {
        let root = self.root.display();
        Error::new(ErrorKind::Io, format!("there is no folder {root}; is its disk mounted?"))
            .at_node(&self.name)
    }

    fn refused(&self, path: &str, why: &str) -> Error {
        Error::new(ErrorKind::Refused, format!("{path} {why}")).at_node(&self.name)
    }

    /// Returns the place of a path's file. Refuses symbolic links on the way.
    fn target(&self, path: &str) -> Result<PathBuf> {
        check_path(path).map_err(|error| error.at_node(&self.name))?;
        if !Path::new(path).components().all(|part| matches!(part, Component::Normal(_))) {
            return Err(self.refused(path, "leads out of the node's folder"));
        }
        let mut target = self.root.clone();
        for name in path.split('/') {
            target.push(name);
            match fs::symlink_metadata(&target) {
                Ok(found) if found.is_symlink() => {
                    return Err(self.refused(path, "leads through a symbolic link"));
                }
                Ok(_) => {}
                Err(_) => break,
            }
        }
        Ok(self.root.join(path))
    }

    fn read(&self, path: &str, range: Option<Range<u64>>) -> Result<Bytes> {
        let target = self.target(path)?;
        let trouble = |error| self.trouble("read", path, error);
        let found = fs::metadata(&target).map_err(trouble)?;
        if !found.is_file() {
            return Err(self.trouble("read", path, IoErrorKind::NotFound.into()));
        }
        if range.is_none() && found.len() > MOST_WHOLE {
            return Err(too_long(path).at_node(&self.name));
        }
        let range = range.unwrap_or(0..found.len());
        let length = range_length(path, &range)?;
        if range.end > found.len() {
            return Err(too_short(&self.name, path, found.len(), &range));
        }
        let mut file = File::open(&target).map_err(trouble)?;
        let mut content = self
            .buffers
            .take(length as usize)
            .map_err(|error| self.error(ErrorKind::Memory, format!("{path}: {error}"), error))?;
        file.seek(SeekFrom::Start(range.start)).map_err(trouble)?;
        let read = file.take(length).read_to_end(&mut content).map_err(trouble)?;
        if (read as u64) < length {
            return Err(too_short(&self.name, path, range.start + read as u64, &range));
        }
        Ok(self.buffers.lend(content))
    }

    fn stat(&self, path: &str) -> Result<Option<Stat>> {
        match fs::metadata(self.target(path)?) {
            Ok(found) if found.is_file() => {
                Ok(Some(Stat { length: found.len(), modified: found.modified().ok() }))
            }
            Ok(_) => Ok(None),
            Err(error) if is_absence(&error) && self.root.is_dir() => Ok(None),
            Err(error) => Err(self.trouble("look at", path, error)),
        }
    }

    /// Sends all files below a prefix, in batches, until the receiver is gone.
    fn list(&self, prefix: &str, sender: &Sender<Vec<Result<Entry>>>) {
        let top = match self.top(prefix) {
            Ok(top) => top,
            Err(error) => return drop(sender.blocking_send(vec![Err(error)])),
        };
        let walk = WalkDir::new(&top).into_iter().filter_entry(|entry| self.is_shown(entry));
        let mut batch = Vec::new();
        for entry in walk.filter_map(|entry| self.entry(entry).transpose()) {
            // A disk may take seconds for all entries of a batch.
            self.contact.moved();
            batch.push(entry);
            if batch.len() == BATCH && sender.blocking_send(std::mem::take(&mut batch)).is_err() {
                return;
            }
        }
        if !batch.is_empty() {
            let _ = sender.blocking_send(batch);
        }
    }

    /// Returns the names of the folders directly below a prefix.
    fn folders(&self, prefix: &str) -> Result<Vec<String>> {
        let walk = WalkDir::new(self.top(prefix)?).min_depth(1).max_depth(1).into_iter();
        let mut folders = Vec::new();
        for found in walk.filter_entry(|entry| self.is_shown(entry)) {
            self.contact.moved();
            match found {
                Ok(found) if found.file_type().is_dir() => {
                    folders.extend(found.file_name().to_str().map(str::to_owned));
                }
                Ok(_) => {}
                Err(error) if error.io_error().is_some_and(is_absence) => {}
                Err(error) => return Err(self.not_listed(error)),
            }
        }
        Ok(folders)
    }

    /// Returns the error for something that a listing could not look into.
    fn not_listed(&self, error: walkdir::Error) -> Error {
        let path = error.path().and_then(|path| self.path_of(path));
        let path = path.filter(|path| !path.is_empty()).unwrap_or_else(|| "the folder".to_owned());
        let said = error.to_string();
        let reason = error.into_io_error().unwrap_or_else(|| io::Error::other(said));
        self.trouble("list", &path, reason)
    }

    /// Whether listings show something that was found.
    fn is_shown(&self, found: &DirEntry) -> bool {
        // A new file system has `lost+found` at its top, which only its administrator may read.
        let is_hidden = |name: &&str| found.path() == self.root.join(name);
        ![STAGING, "lost+found"].iter().any(is_hidden)
    }

    /// Returns the folder of a prefix.
    fn top(&self, prefix: &str) -> Result<PathBuf> {
        check_prefix(prefix).map_err(|error| error.at_node(&self.name))?;
        if !self.root.is_dir() {
            return Err(self.missing_root());
        }
        match prefix.strip_suffix('/') {
            Some(path) => self.target(path),
            None => Ok(self.root.clone()),
        }
    }

    /// Returns the entry of a listing for something that was found, if it is a file and still
    /// exists.
    fn entry(&self, found: walkdir::Result<DirEntry>) -> Result<Option<Entry>> {
        let failed = |error: walkdir::Error| match error.io_error() {
            Some(reason) if is_absence(reason) => Ok(None),
            _ => Err(self.not_listed(error)),
        };
        let found = match found {
            Ok(found) if found.file_type().is_file() => found,
            Ok(_) => return Ok(None),
            Err(error) => return failed(error),
        };
        let about = match found.metadata() {
            Ok(about) => about,
            Err(error) => return failed(error),
        };
        Ok(self.path_of(found.path()).map(|path| Entry {
            path,
            length: Some(about.len()),
            modified: about.modified().ok(),
        }))
    }

    /// Returns the path of a file relative to the root. Returns `None` if its name is not UTF-8,
    /// because then the file is foreign.
    fn path_of(&self, file: &Path) -> Option<String> {
        let names = file.strip_prefix(&self.root).ok()?.components();
        let names: Option<Vec<_>> = names.map(|name| name.as_os_str().to_str()).collect();
        Some(names?.join("/"))
    }

    /// Refuses a file of any length if the disk has not all of its reserve left.
    fn expect_room(&self, path: &str) -> Result<()> {
        match free_at(&self.root).is_none_or(|free| free >= RESERVE) {
            true => Ok(()),
            false => {
                let why = "the disk is full but for 1 MiB, which is kept for marks of removals";
                Err(self.trouble("write", path, io::Error::new(IoErrorKind::StorageFull, why)))
            }
        }
    }

    /// Returns the folder of unfinished files, and what the system says about it if it is there. A
    /// link would lead out of the node.
    fn staging(&self) -> Result<(PathBuf, Option<Metadata>)> {
        let folder = self.root.join(STAGING);
        match fs::symlink_metadata(&folder) {
            Ok(found) if found.is_symlink() => Err(self.refused(STAGING, "is a symbolic link")),
            found => Ok((folder, found.ok())),
        }
    }

    /// Makes an empty file in the folder of unfinished files, for the owner of that folder.
    fn stage(&self) -> Result<NamedTempFile> {
        let (folder, found) = self.staging()?;
        let make = || match new_file(&folder) {
            Err(error) if error.kind() == IoErrorKind::NotFound => {
                create_folder(&folder)?;
                new_file(&folder)
            }
            made => made,
        };
        let file = make().map_err(|error| self.trouble("write in", STAGING, error))?;
        let found = found.or_else(|| fs::metadata(&folder).ok());
        if let Some(owner) = found.and_then(|found| Owner::of(&found)) {
            hand_over(file.as_file(), owner);
        }
        Ok(file)
    }

    /// Gives a complete file its name.
    fn publish(
        &self,
        mut file: NamedTempFile,
        path: &str,
        target: &Path,
        mode: Mode,
    ) -> Result<()> {
        let trouble = |error| match self.trouble("write", path, error) {
            // The missing thing is a folder, not the file that was asked for.
            error if error.kind() == ErrorKind::NotFound => {
                Error::new(ErrorKind::Io, error.to_string()).because(error)
            }
            error => error,
        };
        if self.sync {
            file.as_file().sync_all().map_err(trouble)?;
        }
        let mut attempts = NAMING_ATTEMPTS;
        loop {
            attempts -= 1;
            let error = match self.name(file, path, target, mode) {
                Ok(()) => break,
                Err(failed) => {
                    file = failed.file;
                    failed.error
                }
            };
            if error.kind() != IoErrorKind::NotFound || attempts == 0 {
                return Err(trouble(error));
            }
        }
        if self.sync { self.durable.sync(&self.root, path).map_err(trouble) } else { Ok(()) }
    }

    /// Tries once to give a complete file its name. If that fails, the file still exists.
    fn name(
        &self,
        file: NamedTempFile,
        path: &str,
        target: &Path,
        mode: Mode,
    ) -> Result<(), PersistError> {
        if let Err(error) = create_folders(&self.root, path) {
            return Err(PersistError { error, file });
        }
        match mode {
            Mode::Replace => file.persist(target).map(drop),
            Mode::Create => self.create(file, target),
        }
    }

    /// Gives a complete file a name that must be free.
    fn create(&self, file: NamedTempFile, target: &Path) -> Result<(), PersistError> {
        let (opened, path) = file.into_parts();
        let named = match rename_at_once(&path, target) {
            Ok(false) => self.look_and_create(&path, target),
            named => named.map(drop),
        };
        match named {
            // The temporary name is gone already.
            Ok(()) => path.keep().map(drop).map_err(|failed| PersistError {
                error: failed.error,
                file: NamedTempFile::from_parts(opened, failed.path),
            }),
            Err(error) => {
                Err(PersistError { error, file: NamedTempFile::from_parts(opened, path) })
            }
        }
    }

    /// Does the same on a file system that cannot do it in one step.
    fn look_and_create(&self, path: &Path, target: &Path) -> io::Result<()> {
        self.looks_first.store(true, Ordering::Relaxed);
        let turn = FolderLocks::acquire([self.root.join(STAGING).as_path()]);
        let _turn = turn.map_err(|_| io::Error::from(IoErrorKind::ResourceBusy))?;
        look_and_rename(path, target)
    }

    /// Deletes a file, and the folders that become empty.
    fn delete(&self, path: &str) -> Result<()> {
        match fs::remove_file(self.target(path)?) {
            Err(error) if is_absence(&error) && self.root.is_dir() => return Ok(()),
            result => result.map_err(|error| self.trouble("delete", path, error))?,
        }
        let emptied = folders_of(&self.root, path).into_iter().rev();
        let _ = emptied.map(fs::remove_dir).find(Result::is_err);
        Ok(())
    }

    fn sweep(&self, age: Duration) -> Result<u64> {
        let trouble = |error| self.trouble("clear", STAGING, error);
        let entries = match fs::read_dir(self.staging()?.0) {
            Err(error) if is_absence(&error) && self.root.is_dir() => return Ok(0),
            entries => entries.map_err(trouble)?,
        };
        let mut removed = 0;
        for entry in entries {
            let entry = entry.map_err(trouble)?;
            let is_abandoned = entry.file_name().to_str().is_some_and(is_abandoned);
            self.contact.moved();
            if is_abandoned || is_older(&entry, age) {
                match fs::remove_file(entry.path()) {
                    // Another sweep was faster, or the file's writer has continued and finished.
                    Err(error) if is_absence(&error) => {}
                    done => {
                        done.map_err(trouble)?;
                        removed += 1;
                    }
                }
            }
        }
        Ok(removed)
    }
}

/// Whether nothing was written to a file for `age`. A file that has just disappeared does not count
/// as old.
fn is_older(file: &fs::DirEntry, age: Duration) -> bool {
    let modified = file.metadata().and_then(|found| found.modified());
    let elapsed = modified.map(|then| SystemTime::now().duration_since(then).unwrap_or_default());
    elapsed.is_ok_and(|elapsed| elapsed >= age)
}

/// Makes a file with a unique name, which is removed when it is dropped. Only its owner may use it,
/// because it may hold bytes of a source that others may not read.
fn new_file(folder: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    let prefix = staging_prefix();
    builder.prefix(&prefix);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600));
    builder.tempfile_in(folder)
}

/// A file of a folder that is being written.
struct FolderWriter {
    folder: FolderNode,
    path: String,
    target: PathBuf,
    /// `None` after an error: a writer that failed cannot continue.
    file: Option<NamedTempFile>,
    /// Number of bytes that were written and are not synced yet.
    unsynced: u64,
}

impl FolderWriter {
    fn take(&mut self) -> Result<NamedTempFile> {
        self.file.take().ok_or_else(|| {
            let message = format!("{} cannot be continued after an error", self.path);
            Error::new(ErrorKind::Io, message).at_node(self.folder.name())
        })
    }

    /// Removes the file on a separate thread, because on a disk that hangs this never ends.
    fn discard(&mut self) -> Option<JoinHandle<()>> {
        let file = self.file.take()?;
        let runtime = Handle::try_current().ok()?;
        let unfinished = self.folder.unfinished();
        Some(runtime.spawn_blocking(move || drop((file, unfinished))))
    }
}

impl Drop for FolderWriter {
    fn drop(&mut self) {
        drop(self.discard());
    }
}

#[async_trait]
impl Writer for FolderWriter {
    async fn write(&mut self, pieces: Vec<Bytes>) -> Result<()> {
        self.unsynced += pieces.iter().map(|piece| piece.len() as u64).sum::<u64>();
        let is_due = self.folder.inner.sync && self.unsynced >= SYNCED;
        if is_due {
            self.unsynced = 0;
        }
        // Until the turn comes, the file does not belong to the thread. See `discard`.
        let turn = self.folder.inner.turn().await;
        let (mut file, path) = (self.take()?, self.path.clone());
        let write = move |inner: &FolderInner| {
            let written = write_pieces(file.as_file_mut(), &pieces);
            let written = written.and_then(|()| match is_due {
                true => file.as_file().sync_data(),
                false => Ok(()),
            });
            written.map(|()| file).map_err(|error| inner.trouble("write", &path, error))
        };
        self.file = Some(self.folder.change(turn, write).await?);
        Ok(())
    }

    async fn finish(mut self: Box<Self>) -> Result<()> {
        let turn = self.folder.inner.turn().await;
        let (file, path, target) = (self.take()?, self.path.clone(), self.target.clone());
        // A file that has taken the reserve is dropped, which gives it back.
        let publish = move |inner: &FolderInner| {
            inner.expect_room(&path)?;
            inner.publish(file, &path, &target, Mode::Replace)
        };
        self.folder.change(turn, publish).await
    }

    async fn abort(mut self: Box<Self>) {
        if let Some(discarded) = self.discard() {
            let _ = discarded.await;
        }
    }
}

/// Writes pieces one after the other, in one system call if it takes them all.
fn write_pieces(file: &mut File, pieces: &[Bytes]) -> io::Result<()> {
    let mut slices: Vec<_> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
    let mut rest = &mut slices[..];
    IoSlice::advance_slices(&mut rest, 0);
    while !rest.is_empty() {
        match file.write_vectored(rest) {
            Ok(0) => return Err(IoErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut rest, written),
            Err(error) if error.kind() == IoErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tokio::runtime::Builder;
    use tokio::time::timeout;

    use super::*;

    #[test]
    fn a_disk_that_hangs_does_not_take_the_threads_of_others() {
        let root = tempfile::tempdir().unwrap();
        let [hangs, works] = ["a", "b"].map(|name| FolderNode::new(name, root.path(), false));
        let gate = Arc::new(Mutex::new(()));
        let runtime = Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(MOST_THREADS + 1)
            .build()
            .unwrap();
        // Opened before the runtime ends, which waits for its threads.
        let closed = gate.lock().unwrap();
        runtime.block_on(async {
            for _ in 0..2 * MOST_THREADS {
                let gate = Arc::clone(&gate);
                let hang = hangs.blocking(move |_| {
                    drop(gate.lock());
                    Ok(())
                });
                timeout(Duration::from_millis(1), hang).await.unwrap_err();
            }
            let found = timeout(Duration::from_secs(20), works.stat("file")).await.unwrap();
            assert_eq!(found.unwrap(), None);
            let mut entries = works.list("");
            assert!(timeout(Duration::from_secs(20), entries.next()).await.unwrap().is_none());
        });
        drop(closed);
    }

    /// On a file system that can neither link nor rename without replacing.
    #[test]
    fn files_are_created_after_a_look_where_they_cannot_be_at_once() {
        let root = tempfile::tempdir().unwrap();
        let folder = FolderNode::new("a", root.path(), false);
        assert!(folder.abilities().create);
        let (target, mut created) = (root.path().join("file"), 0);
        for content in ["one", "two"] {
            let mut staged = folder.inner.stage().unwrap();
            staged.write_all(content.as_bytes()).unwrap();
            match folder.inner.look_and_create(staged.path(), &target) {
                Ok(()) => created += 1,
                Err(error) => assert_eq!(error.kind(), IoErrorKind::AlreadyExists),
            }
        }
        assert_eq!((created, fs::read(&target).unwrap()), (1, b"one".to_vec()));
        assert!(!folder.abilities().create);
    }

    #[cfg(unix)]
    #[test]
    fn unfinished_files_stay_within_the_node() {
        let root = tempfile::tempdir().unwrap();
        let (node, others) = (root.path().join("node"), root.path().join("others"));
        [&node, &others].into_iter().for_each(|folder| fs::create_dir(folder).unwrap());
        fs::write(others.join("file"), "precious").unwrap();
        std::os::unix::fs::symlink(&others, node.join(STAGING)).unwrap();
        let folder = FolderNode::new("a", &node, false);
        let staged = folder.inner.stage().map(drop);
        for refused in [staged, folder.inner.sweep(Duration::ZERO).map(drop)] {
            let error = refused.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        }
        assert!(others.join("file").exists());
    }

    #[test]
    fn two_sweeps_at_once_are_in_nobody_s_way() {
        let root = tempfile::tempdir().unwrap();
        let staging = root.path().join(STAGING);
        fs::create_dir(&staging).unwrap();
        let folder = FolderNode::new("a", root.path(), false);
        for _ in 0..20 {
            (0..100).for_each(|file| fs::write(staging.join(file.to_string()), "").unwrap());
            let removed: u64 = std::thread::scope(|scope| {
                let sweeps = [0; 4].map(|_| scope.spawn(|| folder.inner.sweep(Duration::ZERO)));
                sweeps.into_iter().map(|sweep| sweep.join().unwrap().unwrap()).sum()
            });
            assert_eq!(removed, 100);
        }
    }
}
