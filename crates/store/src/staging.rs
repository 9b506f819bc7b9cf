//! Putting files in their places, so that a crash at any moment leaves either all old files or all
//! new files whole.
//!
//! A file is written under a temporary name beside its target ([`StagedFile`]), and is removed if
//! the job fails. [`commit`] publishes a set of such files. Everything is on the disk before the
//! first name changes. A file that is to be replaced is kept under another name until all new files
//! have their names.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, IoSlice, IoSliceMut};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::object::names;
use crate::place::attributes::Access;
use crate::place::lock::{FolderLocks, hold};
use crate::place::names::in_short;
use crate::place::open_files::OpenFiles;
use crate::place::positional;
use crate::place::refused::Refused;
use crate::place::system::{
    allow_open_files, create_new, create_unnamed, link_unnamed, mount_point, open_to_read,
    rename_new, rename_over, sync_directory,
};
use crate::shown::shown;

/// What may happen to a file that already has the name of a new one.
#[derive(Debug, Clone)]
pub enum Replace {
    /// It stays, and the new one is refused.
    Never,
    /// The new one takes its place.
    Always,
    /// The new one takes its place. If another file of the set cannot get its name, the old one
    /// comes back.
    Together,
    /// A judge decides, once the new one is complete and its folder is locked.
    Judged(Arc<dyn Judge>),
}

/// Decides what happens to a file that has the name of a new one.
pub trait Judge: fmt::Debug + Send + Sync {
    /// Judges what is at `path`, if anything is.
    ///
    /// # Errors
    /// If it was to be moved aside and could not be.
    fn judge(&self, path: &Path) -> Result<Ruling>;
}

/// What a judge has decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ruling {
    /// The existing file keeps the name, and the new file is refused. If no file has the name, it
    /// is free.
    Stays,
    /// The new file takes its place.
    Replaced,
    /// It was moved aside, and the name is free.
    Moved(MovedAside),
}

/// A file that was in the way of a new one, and where it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MovedAside {
    /// The path that it had.
    pub from: PathBuf,
    /// The path that it has now.
    pub to: PathBuf,
}

impl MovedAside {
    /// States that `from` is `to` now.
    pub fn new(from: PathBuf, to: PathBuf) -> Self {
        Self { from, to }
    }

    /// Returns a warning of it, for reports that do not list such files.
    fn warning(&self) -> String {
        format!("{} was not a shard and is kept as {}", shown(&self.from), shown(&self.to))
    }
}

/// The result of committing files.
#[derive(Debug, Clone, Default)]
pub struct Committed {
    /// What was moved aside for them.
    pub moved_aside: Vec<MovedAside>,
    /// What their file systems refused to keep, with a folder of each.
    refused: Vec<(PathBuf, Refused)>,
}

impl Committed {
    /// Notes what was refused, each kind once.
    fn note(&mut self, folder: &Path, refused: Refused) {
        let known = self.refused.iter().fold(Refused::default(), |all, (_, one)| all.or(*one));
        let new = refused.without(known);
        if !new.is_nothing() {
            self.refused.push((folder.to_owned(), new));
        }
    }

    /// Adds what became of other files.
    pub fn add(&mut self, other: Self) {
        self.moved_aside.extend(other.moved_aside);
        other.refused.into_iter().for_each(|(folder, refused)| self.note(&folder, refused));
    }

    /// Returns a warning of each kind that was refused.
    pub fn refusals(&self) -> Vec<String> {
        let warnings = |(folder, refused): &(PathBuf, Refused)| {
            let mount = shown(&mount_point(folder)).to_string();
            refused.warnings(&mount).collect::<Vec<_>>()
        };
        self.refused.iter().flat_map(warnings).collect()
    }

    /// Returns a warning of each file that was moved aside, and of each kind that was refused, for
    /// reports that do not list such files.
    pub fn warnings(&self) -> Vec<String> {
        self.moved_aside.iter().map(MovedAside::warning).chain(self.refusals()).collect()
    }
}

/// A file that is to be written.
#[derive(Debug)]
pub struct NewFile {
    /// The name that it will have.
    pub target: PathBuf,
    /// What may become of a file that has that name.
    pub replace: Replace,
    /// Who may use it.
    pub access: Access,
}

impl NewFile {
    /// Describes files that differ only in their names.
    pub fn all(
        targets: impl IntoIterator<Item = PathBuf>,
        replace: &Replace,
        access: Access,
    ) -> Vec<Self> {
        let new = |target| Self { target, replace: replace.clone(), access };
        targets.into_iter().map(new).collect()
    }
}

/// A file that is being written. If it is dropped before it is committed, it is removed. On a file
/// system that can make files without names, it has no name until it is complete, so even a killed
/// process leaves nothing behind.
#[derive(Debug)]
pub struct StagedFile {
    file: FileHandle,
    /// The temporary name, once it has one.
    temporary: Option<PathBuf>,
    target: PathBuf,
    replace: Replace,
    access: Access,
    /// How it has got its name, once it has.
    published: Option<Published>,
    /// Another name of the file that had its name, until all files of the set have theirs.
    replaced: Option<PathBuf>,
}

/// How a file has got its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Published {
    /// Nothing had the name, or it was free again.
    New,
    /// The file that had it is gone.
    Replacing,
}

/// How a file that is being written is accessed.
#[derive(Debug)]
enum FileHandle {
    /// It stays open.
    Open(File),
    /// It is opened under its temporary name when its turn comes, as the file of this number.
    ByTurns(Arc<OpenFiles>, usize),
}

impl StagedFile {
    /// Begins these files. If the system does not allow all of them and `others` more to be open at
    /// once, they have temporary names from the beginning, and are opened by turns.
    ///
    /// # Errors
    /// If the system refuses ([`crate::error::ErrorKind::Io`]).
    pub fn create_all(files: Vec<NewFile>, others: usize) -> Result<Vec<Self>> {
        let count = files.len();
        let most = allow_open_files(count + others).saturating_sub(others);
        if most >= count {
            return files.into_iter().map(Self::create).collect();
        }
        let pool = OpenFiles::writing(most);
        let create = |(number, file)| {
            Self::begin(file, |file| {
                let (_, temporary) = create_named(file)?;
                Ok((FileHandle::ByTurns(Arc::clone(&pool), number), Some(temporary)))
            })
        };
        files.into_iter().enumerate().map(create).collect()
    }

    /// Begins one file.
    ///
    /// # Errors
    /// If the system refuses ([`crate::error::ErrorKind::Io`]).
    pub fn create(file: NewFile) -> Result<Self> {
        Self::begin(file, |file| {
            // Some systems make files without a name, and name them later.
            match create_unnamed(directory_of(&file.target), file.access.at_creation()) {
                Some(unnamed) => Ok((FileHandle::Open(unnamed), None)),
                None => {
                    let (named, path) = create_named(file)?;
                    hold(&named);
                    Ok((FileHandle::Open(named), Some(path)))
                }
            }
        })
    }

    /// Makes an empty file. Only those who may read the complete file can open it.
    fn begin(
        mut new: NewFile,
        make: impl FnOnce(&mut NewFile) -> Result<(FileHandle, Option<PathBuf>)>,
    ) -> Result<Self> {
        let (file, temporary) = make(&mut new)?;
        let NewFile { target, replace, access } = new;
        let (published, replaced) = (None, None);
        let pending = Self { file, temporary, target, replace, access, published, replaced };
        let begun = pending.with_file(|file| access.begin(file));
        begun.map_err(|error| Error::io("creating", &pending.target, &error))?;
        Ok(pending)
    }

    /// Returns the path that the file will have.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Gives the complete file a temporary name, if it has none yet.
    fn name(&mut self) -> Result<()> {
        if let (None, FileHandle::Open(file)) = (&self.temporary, &self.file) {
            let link = |path: &Path| link_unnamed(file, path);
            let ((), path) = under_temporary_name(&self.target, link)?;
            self.temporary = Some(path);
        }
        Ok(())
    }

    fn with_file<R>(&self, act: impl FnOnce(&File) -> io::Result<R>) -> io::Result<R> {
        match &self.file {
            FileHandle::Open(file) => act(file),
            FileHandle::ByTurns(files, number) => {
                files.with(*number, self.temporary.as_deref().unwrap_or(&self.target), act)
            }
        }
    }

    /// Writes slices at a position.
    ///
    /// # Errors
    /// If the system refuses ([`crate::error::ErrorKind::Io`]).
    pub fn write_at(&self, slices: &mut [IoSlice<'_>], offset: u64) -> Result<()> {
        self.with_file(|file| positional::write_at(file, slices, offset))
            .map_err(|error| Error::io("writing", &self.target, &error))
    }

    /// Reads what was written at a position, until `bytes` is full or the file ends.
    ///
    /// # Errors
    /// If the system refuses ([`crate::error::ErrorKind::Io`]).
    pub fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<()> {
        self.with_file(|file| positional::read_at(file, &mut [IoSliceMut::new(bytes)], offset))
            .map(|_| ())
            .map_err(|error| Error::io("reading back", &self.target, &error))
    }

    /// Sets the length of the file to `length` bytes, with zeros where nothing was written.
    ///
    /// # Errors
    /// If the system refuses ([`crate::error::ErrorKind::Io`]).
    pub fn set_length(&self, length: u64) -> Result<()> {
        self.with_file(|file| positional::set_length(file, length))
            .map_err(|error| Error::io("extending", &self.target, &error))
    }

    /// Gives the complete file its mode and time, and waits until it is on the disk if `sync`.
    /// Returns what the file system refused.
    fn finish(&self, sync: bool) -> Result<Refused> {
        let finish = |file: &File| {
            let refused = self.access.settle(file)?;
            if sync {
                file.sync_all()?;
            }
            Ok(refused)
        };
        self.with_file(finish).map_err(|error| Error::io("finishing", &self.target, &error))
    }

    /// Gives the file its name, unless another process has given it to a file with the same bytes.
    /// Returns what was moved aside for it.
    fn publish(&mut self) -> Result<Option<MovedAside>> {
        self.name()?;
        let is_kept = matches!(self.replace, Replace::Together) && self.keep_replaced()?;
        let ruling = match &self.replace {
            Replace::Never => Ruling::Stays,
            Replace::Always => Ruling::Replaced,
            Replace::Together if is_kept => Ruling::Replaced,
            Replace::Together => Ruling::Stays,
            Replace::Judged(judge) => judge.judge(&self.target)?,
        };
        let replaces = ruling == Ruling::Replaced;
        let rename = if replaces { rename_over } else { rename_new };
        match rename(self.temporary.as_deref().unwrap_or(&self.target), &self.target) {
            Ok(()) if replaces => self.published = Some(Published::Replacing),
            Ok(()) => self.published = Some(Published::New),
            Err(error) if is_race(&error) => self.expect_same()?,
            Err(error) => {
                return Err(Error::io("renaming a finished file to", &self.target, &error));
            }
        }
        Ok(match ruling {
            Ruling::Moved(moved) => Some(moved),
            _ => None,
        })
    }

    /// Gives one more name to the file that has the final name, so that it can come back. Where a
    /// file cannot have two names, it is renamed. Returns whether anything has the final name.
    fn keep_replaced(&mut self) -> Result<bool> {
        match fs::symlink_metadata(&self.target) {
            Err(_) => return Ok(false),
            // It is in the way.
            Ok(found) if found.is_dir() => return Ok(true),
            Ok(_) => {}
        }
        let random = random()?;
        let name = finished_name(&self.target);
        let kept = in_short(|most| {
            let aside = self.target.with_file_name(names::old(name, random, most));
            let linked = fs::hard_link(&self.target, &aside);
            linked.or_else(|_| rename_new(&self.target, &aside)).map(|()| aside)
        });
        self.replaced =
            Some(kept.map_err(|error| Error::io("setting aside", &self.target, &error))?);
        Ok(true)
    }

    /// Takes the final name back, or gives it back to the file that had it.
    fn undo(&self) {
        if self.published == Some(Published::New) {
            let _ = fs::remove_file(&self.target);
        }
        if let Some(replaced) = &self.replaced {
            // If both are names of one file, the system renames nothing.
            if rename_over(replaced, &self.target).is_ok() {
                let _ = fs::remove_file(replaced);
            }
        }
    }

    /// Expects that the file under the final name has the same bytes as this one.
    fn expect_same(&self) -> Result<()> {
        let is_same = open_to_read(&self.target)
            .and_then(|target| self.with_file(|file| positional::are_same(file, &target)));
        match is_same {
            Ok(true) => Ok(()),
            _ => Err(Error::busy(format!(
                "another process has changed {} meanwhile; run the command again",
                shown(&self.target)
            ))),
        }
    }
}

/// Whether a renaming failed because another process was faster: the name is taken, or the file
/// already has its name.
fn is_race(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound)
}

impl Drop for StagedFile {
    fn drop(&mut self) {
        if let (None, Some(temporary)) = (self.published, &self.temporary) {
            let _ = fs::remove_file(temporary);
        }
    }
}

/// Makes a file under a temporary name. Where it is for few, it is the writer's alone until it is
/// complete: what the umask leaves of its mode is seen on an empty file, which is removed.
fn create_named(file: &mut NewFile) -> Result<(File, PathBuf)> {
    if file.access.is_for_few() {
        let create = |path: &Path| create_new(path, file.access.at_creation());
        let (empty, path) = under_temporary_name(&file.target, create)?;
        let seen = empty.metadata();
        let _ = fs::remove_file(path);
        let seen = seen.map_err(|error| Error::io("creating", &file.target, &error))?;
        file.access = file.access.as_masked_in(&seen);
    }
    under_temporary_name(&file.target, |path| create_new(path, file.access.at_creation()))
}

/// Makes something under a temporary name that is free.
fn under_temporary_name<T>(
    target: &Path,
    make: impl Fn(&Path) -> io::Result<T>,
) -> Result<(T, PathBuf)> {
    let name = target.file_name().unwrap_or_default();
    loop {
        let random = random()?;
        let made = in_short(|most| {
            let temporary = target.with_file_name(names::temporary(name, random, most));
            make(&temporary).map(|made| (made, temporary))
        });
        match made {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map_err(|error| Error::making("creating", target, &error)),
        }
    }
}

/// Gives all new files their names. On an error everything is as before, except for files that had
/// already been replaced for good ([`Replace::Always`]) or moved aside.
///
/// # Errors
/// As [`commit_over`].
pub fn commit(files: Vec<StagedFile>, sync: bool) -> Result<Committed> {
    commit_over(&[], || Ok(Vec::new()), files, sync)
}

/// Gives all new files their names, and then deletes the old ones. `find_old` returns these; it is
/// called while `folders` are locked, so that no other process can change them. On an error
/// everything is as [`commit`] says. If an old file cannot be deleted, this still succeeds, because
/// the new files are already published. The old file keeps the name that it got when it was set
/// aside, and the next command finds it there.
///
/// # Errors
/// If the system refuses ([`crate::error::ErrorKind::Io`]), if another process has put a file in
/// the way ([`crate::error::ErrorKind::Busy`]), or if `find_old` returns an error.
pub fn commit_over(
    folders: &[PathBuf],
    find_old: impl FnOnce() -> Result<Vec<PathBuf>>,
    mut files: Vec<StagedFile>,
    sync: bool,
) -> Result<Committed> {
    let mut committed = finish_files(&files, sync)?;
    let targets = files.iter().map(|file| directory_of(&file.target));
    let _locks = FolderLocks::acquire(targets.chain(folders.iter().map(PathBuf::as_path)))?;
    let old = find_old()?;
    // All files have temporary names before the first gets its own. Shards under temporary names
    // count, so a set of which a crash leaves only some files named is still complete.
    files.iter_mut().try_for_each(StagedFile::name)?;
    if sync {
        for folder in sync_directories(&files)? {
            committed.note(folder, Refused { syncing: true, ..Refused::default() });
        }
    }
    let mut set_aside = Vec::new();
    let published = set_aside_all(&old, &mut set_aside).and_then(|()| publish(&mut files, sync));
    committed.moved_aside = published.inspect_err(|_| undo(&files, &set_aside))?;
    let replaced = files.iter().filter_map(|file| file.replaced.as_ref());
    for aside in set_aside.iter().map(|(_, aside)| aside).chain(replaced) {
        let _ = fs::remove_file(aside);
    }
    if sync && !set_aside.is_empty() {
        let _ = sync_directories(&files);
    }
    Ok(committed)
}

fn publish(files: &mut [StagedFile], sync: bool) -> Result<Vec<MovedAside>> {
    let moved = files.iter_mut().filter_map(|file| file.publish().transpose());
    let moved = moved.collect::<Result<_>>()?;
    if sync {
        sync_directories(files)?;
    }
    Ok(moved)
}

/// Renames old files, and adds each to `set_aside` as a pair: its old path, its new path.
fn set_aside_all(old: &[PathBuf], set_aside: &mut Vec<(PathBuf, PathBuf)>) -> Result<()> {
    for path in old {
        let random = random()?;
        let renamed = in_short(|most| {
            let aside = path.with_file_name(names::old(finished_name(path), random, most));
            rename_new(path, &aside).map(|()| aside)
        });
        let aside = renamed.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Error::busy(format!(
                "another process has replaced {} meanwhile; run the command again",
                shown(path)
            )),
            _ => Error::io("setting aside", path, &error),
        })?;
        set_aside.push((path.clone(), aside));
    }
    Ok(())
}

/// Returns the name of a shard file without the mark of being set aside.
fn finished_name(path: &Path) -> &OsStr {
    let name = path.file_name().unwrap_or_default();
    names::without_old(name)
}

fn undo(files: &[StagedFile], set_aside: &[(PathBuf, PathBuf)]) {
    files.iter().for_each(StagedFile::undo);
    for (path, aside) in set_aside {
        let _ = rename_new(aside, path);
    }
}

/// Finishes all files. If they are synced, each directory gets its own thread, because directories
/// tend to be separate disks.
fn finish_files(files: &[StagedFile], sync: bool) -> Result<Committed> {
    let mut directories: BTreeMap<&Path, Vec<&StagedFile>> = BTreeMap::new();
    for file in files {
        directories.entry(directory_of(&file.target)).or_default().push(file);
    }
    let finish = |(folder, files): (&Path, Vec<&StagedFile>)| -> Result<Committed> {
        let mut finished = Committed::default();
        for file in files {
            finished.note(folder, file.finish(sync)?);
        }
        Ok(finished)
    };
    let mut all = Committed::default();
    if directories.len() < 2 || !sync {
        directories.into_iter().try_for_each(|files| finish(files).map(|one| all.add(one)))?;
        return Ok(all);
    }
    std::thread::scope(|scope| {
        let workers: Vec<_> =
            directories.into_iter().map(|files| scope.spawn(move || finish(files))).collect();
        workers.into_iter().try_for_each(|worker| {
            worker.join().unwrap_or_else(|panic| resume_unwind(panic)).map(|one| all.add(one))
        })
    })?;
    Ok(all)
}

fn sync_directories(files: &[StagedFile]) -> Result<Vec<&Path>> {
    sync_directories_of(files.iter().map(|file| file.target.as_path()))
}

/// Makes the names of these files durable. Returns the directories whose file systems refuse to do
/// so.
///
/// # Errors
/// If a directory cannot be opened, or if the system fails to write it
/// ([`crate::error::ErrorKind::Io`]).
pub fn sync_directories_of<'a>(files: impl Iterator<Item = &'a Path>) -> Result<Vec<&'a Path>> {
    let mut directories: Vec<&Path> = files.map(directory_of).collect();
    directories.sort_unstable();
    directories.dedup();
    let mut refused = Vec::new();
    for directory in directories {
        match sync_directory(directory) {
            Ok(false) => {}
            Ok(true) => refused.push(directory),
            Err(error) => return Err(Error::io("syncing", directory, &error)),
        }
    }
    Ok(refused)
}

/// Returns the final name of a file that has a temporary one, as [`has_temporary_name`] says.
pub fn final_name(temporary: &Path) -> Option<&OsStr> {
    names::of_temporary(temporary.file_name()?)
}

/// Whether a file has a temporary name, because it is still being written, or because the process
/// that wrote it was killed.
pub fn has_temporary_name(path: &Path) -> bool {
    path.file_name().is_some_and(names::is_temporary)
}

/// Returns the directory that a file is in.
pub fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn random() -> Result<u32> {
    getrandom::u32().map_err(|error| Error::stream("drawing random numbers", error.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::place::system::{link_and_remove, look_and_rename};

    /// A directory with an old file and a way to look at it.
    fn directory() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let (old, new) = (directory.path().join("a.0of2.paritas"), directory.path().join("b"));
        fs::write(&old, "old").unwrap();
        (directory, old, new)
    }

    fn pending(target: &Path, replace: Replace) -> StagedFile {
        let target = target.to_owned();
        let pending =
            StagedFile::create(NewFile { target, replace, access: Access::USUAL }).unwrap();
        pending.write_at(&mut [IoSlice::new(b"new")], 0).unwrap();
        pending
    }

    fn count(directory: &tempfile::TempDir) -> usize {
        fs::read_dir(directory.path()).unwrap().count()
    }

    /// Who may open the file while it is written may read it later, whatever its mode is then.
    #[cfg(unix)]
    #[test]
    fn a_named_file_is_the_writers_until_it_is_complete() {
        use std::os::unix::fs::PermissionsExt;

        use crate::place::attributes::Attributes;
        use crate::place::system::mode;

        let (directory, ..) = directory();
        let source = Attributes { mode: Some(0o640), ..Attributes::default() };
        let target = directory.path().join("c");
        let access = Access::of_shards(&source);
        let mut new = NewFile { target: target.clone(), replace: Replace::Never, access };
        let (file, temporary) = create_named(&mut new).unwrap();
        assert_eq!(mode(&file.metadata().unwrap()), Some(0o600));
        fs::remove_file(temporary).unwrap();
        let new = NewFile { target: target.clone(), replace: Replace::Never, access };
        let named = StagedFile::begin(new, |file| {
            let (named, path) = create_named(file)?;
            Ok((FileHandle::Open(named), Some(path)))
        });
        commit(vec![named.unwrap()], true).unwrap();
        let mut usual = tempfile::Builder::new();
        let usual = usual
            .permissions(fs::Permissions::from_mode(0o640))
            .tempfile_in(directory.path())
            .unwrap();
        assert_eq!(
            mode(&fs::metadata(target).unwrap()),
            mode(&usual.as_file().metadata().unwrap())
        );
        assert_eq!(count(&directory), 3);
    }

    #[test]
    fn what_is_not_committed_is_gone() {
        let (directory, _, new) = directory();
        let mut file = pending(&new, Replace::Never);
        file.name().unwrap();
        assert_eq!(count(&directory), 2);
        drop(file);
        assert_eq!(count(&directory), 1);
    }

    #[test]
    fn nothing_is_replaced_unless_asked_for() {
        let link = |from: &Path, to: &Path| link_and_remove(from, to).map(|done| assert!(done));
        for rename in [rename_new, link, look_and_rename] {
            let (directory, old, new) = directory();
            fs::write(&new, "new").unwrap();
            let error = rename(&new, &old).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
            assert_eq!(
                (fs::read(&old).unwrap(), fs::read(&new).unwrap()),
                (b"old".into(), b"new".into())
            );
            rename(&new, &directory.path().join("c")).unwrap();
            assert!(!new.exists());
            assert_eq!(count(&directory), 2);
        }
        let (directory, old, _) = directory();
        let error = commit(vec![pending(&old, Replace::Never)], true).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy);
        assert_eq!(fs::read(&old).unwrap(), b"old");
        commit(vec![pending(&old, Replace::Always)], true).unwrap();
        assert_eq!(fs::read(&old).unwrap(), b"new");
        assert_eq!(count(&directory), 1);
    }

    /// What is replaced together comes back if one of the new files cannot get its name.
    #[test]
    fn what_is_replaced_together_comes_back() {
        let (directory, old, new) = directory();
        let taken = directory.path().join("taken");
        fs::create_dir(&taken).unwrap();
        let files = |paths: &[&PathBuf]| {
            paths.iter().map(|path| pending(path, Replace::Together)).collect::<Vec<_>>()
        };
        commit(files(&[&old, &new, &taken]), true).unwrap_err();
        assert_eq!(
            (fs::read(&old).unwrap(), new.exists(), count(&directory)),
            (b"old".into(), false, 2)
        );
        commit(files(&[&old, &new]), true).unwrap();
        assert_eq!(
            (fs::read(&old).unwrap(), fs::read(&new).unwrap()),
            (b"new".into(), b"new".into())
        );
        assert_eq!(count(&directory), 3);
    }

    /// Another process has found the complete file under its temporary name, and named it.
    #[test]
    fn a_file_that_another_process_named_is_done() {
        for (named, expected) in [("new", Ok(())), ("other", Err(ErrorKind::Busy))] {
            let (directory, _, new) = directory();
            let mut file = pending(&new, Replace::Never);
            file.name().unwrap();
            fs::remove_file(file.temporary.as_ref().unwrap()).unwrap();
            fs::write(&new, named).unwrap();
            let published = commit(vec![file], false).map(|_| ()).map_err(|error| error.kind());
            assert_eq!((published, count(&directory)), (expected, 2), "{named}");
            assert_eq!(fs::read(&new).unwrap(), named.as_bytes());
        }
    }

    #[test]
    fn an_old_set_is_removed_last_or_comes_back() {
        let (directory, old, new) = directory();
        let taken = directory.path().join("taken");
        fs::write(&taken, "other").unwrap();
        let files = || [&old, &new].map(|path| pending(path, Replace::Never));
        let failing = files().into_iter().chain([pending(&taken, Replace::Never)]).collect();
        let old_set = || Ok(vec![old.clone()]);
        let error = commit_over(&[], old_set, failing, false).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy);
        assert_eq!((fs::read(&old).unwrap(), new.exists()), (b"old".to_vec(), false));
        assert_eq!(count(&directory), 2);
        commit_over(&[], old_set, files().into(), false).unwrap();
        assert_eq!((fs::read(&old).unwrap(), new.exists()), (b"new".to_vec(), true));
        assert_eq!(count(&directory), 3);
    }

    /// Where names are encrypted, a temporary name is shorter. If the name itself is too long, no
    /// file is made.
    #[test]
    fn temporary_names_fit_where_names_are_short() {
        for (length, is_made) in [(50, true), (143, true), (144, false)] {
            let target = PathBuf::from("x".repeat(length));
            let made = under_temporary_name(&target, |path| match path.as_os_str().len() {
                0..=143 => Ok(()),
                _ => Err(io::ErrorKind::InvalidFilename.into()),
            });
            assert_eq!(made.is_ok(), is_made, "{length}");
            assert!(made.is_err() || has_temporary_name(&made.unwrap().1));
        }
    }

    /// An old file that cannot be removed stays set aside, and the new ones are published.
    #[test]
    fn what_cannot_be_removed_stays_aside() {
        let (directory, _, new) = directory();
        let old = directory.path().join("c");
        fs::create_dir(&old).unwrap();
        let files = vec![pending(&new, Replace::Never)];
        commit_over(&[], || Ok(vec![old.clone()]), files, true).unwrap();
        assert_eq!((fs::read(&new).unwrap(), old.exists()), (b"new".to_vec(), false));
        assert_eq!(count(&directory), 3);
    }
}
