//! The contents of a tree of folders: names, kinds, sizes, times. Links are not followed.

use std::cmp::Ordering as Order;
use std::collections::{HashMap, HashSet};
use std::fs::{self, FileType, Metadata};
use std::io::{self, Read};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use paritas_store::error::{Error, Result};
use paritas_store::place::attributes::{Attributes, Owner, Timestamp};
use paritas_store::place::identity::Inode;
use paritas_store::place::system::{
    FileSystem, is_mount, is_of_kernel, numbers_files, open_to_read,
};
use paritas_store::shown::shown;

use crate::aside;
use crate::catalogue::{FOLDER, check_path};
use crate::exclude::Excludes;
use crate::paths::{name_bytes, path_bytes, path_in};

/// The beginning and the end of the names of files that a repair writes.
const TEMPORARY: (&[u8], &[u8]) = (b".paritas-", b".tmp");

/// Largest number of threads that a job starts on a machine with fewer processors. A process has
/// memory mappings for some 16,000 threads at most, and ends where starting one more fails.
const MOST_THREADS: usize = 1_024;

/// Why a folder is left out at which the kernel shows its own state.
const OF_KERNEL: &str = "a file system of the kernel, whose files are made when they are read";

/// Why something is left out that has the name of the folder for parity, but is not a folder.
const NAMED_LIKE_PARITY: &str = "its name is that of a folder for parity; rename it to protect it";

/// Something that was found in a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundEntry {
    /// The path relative to the root, with slashes.
    pub path: Vec<u8>,
    pub mode: u32,
    pub modified: Timestamp,
    /// When the system last changed anything about it, if it is a file or folder.
    pub changed: Option<Timestamp>,
    pub owner: Option<Owner>,
    pub kind: FoundKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FoundKind {
    Folder,
    Symlink {
        target: Vec<u8>,
    },
    File {
        size: u64,
        /// What all names of the file have in common, if it has several.
        links: Option<Links>,
    },
}

/// The facts that all names of one file share. Equal device and number do not prove that it is one
/// file: file systems that show several disks as one pass the numbers through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Links {
    device: u64,
    number: u64,
    /// How many names the file has.
    count: u64,
    size: u64,
    modified: Option<Timestamp>,
    changed: Option<Timestamp>,
}

/// A path that is not protected, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skipped {
    /// The path.
    pub path: PathBuf,
    /// The reason, in words.
    pub reason: String,
}

impl Skipped {
    /// Whether a socket, a pipe, a device or a file system of the kernel is at the path. These are
    /// never protected; if something was protected at the path, they have replaced it.
    pub fn is_special(&self) -> bool {
        fs::symlink_metadata(&self.path).is_ok_and(|found| {
            let kind = found.file_type();
            let is_usual = kind.is_file() || kind.is_dir() || kind.is_symlink();
            !is_usual || kind.is_dir() && is_of_kernel(&self.path)
        })
    }
}

/// The result of looking through a tree.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    /// Everything that was found, in ascending order of the paths' bytes.
    pub found: Vec<FoundEntry>,
    /// Sockets, devices, and what could not be read.
    pub skipped: Vec<Skipped>,
    /// Files that a repair left when it was killed.
    pub leftovers: Vec<PathBuf>,
    /// Copies of what a repair has replaced.
    pub replaced: Vec<PathBuf>,
    /// The paths of folders at which another file system is mounted.
    pub mounts: Vec<Vec<u8>>,
    /// For each path that was matched, the index in `found` of what is there.
    places: Vec<Option<usize>>,
    /// For each of `found`, the number of the path that was matched with it.
    numbers: Vec<Option<usize>>,
}

/// What a walk leaves out.
#[derive(Debug)]
pub(crate) struct Scope {
    pub excludes: Excludes,
    /// Whether folders at which another file system begins are not looked into.
    pub one_file_system: bool,
}

impl Tree {
    /// Looks through the files and folders at `starts`, which are relative to `root`; an empty one
    /// is the root itself. The folders between the root and a start are found, too. What cannot be
    /// read is skipped.
    pub fn walk(root: &Path, starts: &[Vec<u8>], scope: &Scope, threads: usize) -> Self {
        let mut tree = Self::default();
        let mut folders = Vec::new();
        for start in starts {
            tree.begin(root, start, &mut folders);
        }
        let walk = TreeWalk::new(root, scope, folders);
        for part in in_threads(threads, || walk.work()) {
            tree.found.extend(part.found);
            tree.skipped.extend(part.skipped);
            tree.leftovers.extend(part.leftovers);
            tree.replaced.extend(part.replaced);
            tree.mounts.extend(part.mounts);
        }
        tree.mounts.sort_unstable();
        tree.mounts.dedup();
        tree.replaced.sort_unstable();
        tree.found.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        tree.found.dedup_by(|one, other| one.path == other.path);
        tree.skipped.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        tree.skipped.dedup_by(|one, other| one.path == other.path);
        tree
    }

    /// Finds a start and the folders that lead to it.
    fn begin(&mut self, root: &Path, start: &[u8], folders: &mut Vec<Vec<u8>>) {
        // The disk that a start is on may be mounted at a folder above it, or at the root.
        let outer = std::iter::once(&start[..0]).chain(above(start)).filter(|_| !start.is_empty());
        let mounted = outer.filter(|folder| is_mount(&path_in(root, folder)));
        self.mounts.extend(mounted.map(<[u8]>::to_vec));
        // What is behind a link is not in the tree.
        if above(start).all(|folder| self.look(root, folder))
            && (start.is_empty() || self.look(root, start))
        {
            let path = path_in(root, start);
            if is_of_kernel(&path) {
                self.skip(path, OF_KERNEL);
                return;
            }
            if is_mount(&path) {
                self.mounts.push(start.to_vec());
            }
            folders.push(start.to_vec());
        }
    }

    /// Adds what is at a path. Returns whether it is a folder.
    fn look(&mut self, root: &Path, relative: &[u8]) -> bool {
        let path = path_in(root, relative);
        let looked = fs::symlink_metadata(&path)
            .and_then(|metadata| Ok((kind_of(|| path.clone(), &metadata)?, metadata)));
        let reason = match looked {
            Ok((Ok(kind), metadata)) => {
                let is_folder = kind == FoundKind::Folder;
                self.found.push(FoundEntry::new(relative.to_vec(), &metadata, kind));
                return is_folder;
            }
            Ok((Err(what), _)) => what.to_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return false,
            Err(error) => error.to_string(),
        };
        self.skip(path, reason);
        false
    }

    /// Notes a path that is not protected, and why.
    fn skip(&mut self, path: PathBuf, reason: impl Into<String>) {
        self.skipped.push(Skipped { path, reason: reason.into() });
    }

    /// Looks for paths, which must be in ascending order. [`Tree::of`] and [`Tree::others`] tell
    /// what was found.
    pub fn match_paths<'p>(&mut self, paths: impl Iterator<Item = &'p [u8]>) {
        let mut next = 0;
        self.numbers = vec![None; self.found.len()];
        self.places = paths
            .enumerate()
            .map(|(number, path)| {
                loop {
                    match self.found.get(next)?.path.as_slice().cmp(path) {
                        Order::Less => next += 1,
                        Order::Greater => return None,
                        Order::Equal => break,
                    }
                }
                self.numbers[next] = Some(number);
                Some(next)
            })
            .collect();
    }

    /// Returns what was matched with the path of this number.
    pub fn of(&self, number: usize) -> Option<&FoundEntry> {
        self.places[number].map(|place| &self.found[place])
    }

    /// Matches the path of a number with what is at index `place` of `found`.
    pub fn match_with(&mut self, number: usize, place: usize) {
        self.places[number] = Some(place);
        self.numbers[place] = Some(number);
    }

    /// Returns the number of the path that was matched with what is at index `place` of `found`.
    pub fn number_of(&self, place: usize) -> Option<usize> {
        self.numbers[place]
    }

    /// Returns the indices in `found` of the things directly in a folder.
    pub fn places_in(&self, folder: &[u8]) -> impl Iterator<Item = usize> {
        let below = joined(folder, b"");
        let first = self.found.partition_point(|found| found.path < below);
        let inner = self.found[first..].partition_point(|found| found.path.starts_with(&below));
        let length = below.len();
        let is_direct = move |&place: &usize| {
            let rest = &self.found[place].path[length..];
            !rest.is_empty() && !rest.contains(&b'/')
        };
        (first..first + inner).filter(is_direct)
    }

    /// Returns what was found at paths that were not matched.
    pub fn others(&self) -> impl Iterator<Item = &FoundEntry> {
        let pairs = self.found.iter().zip(&self.numbers);
        pairs.filter(|(_, number)| number.is_none()).map(|(found, _)| found)
    }

    /// Returns all files that were found.
    pub fn files(&self) -> impl Iterator<Item = &FoundEntry> {
        self.found.iter().filter(|found| matches!(found.kind, FoundKind::File { .. }))
    }

    /// Whether a walk from `starts` has looked into the folder at a path.
    pub fn enters(&self, starts: &[&[u8]], path: &[u8]) -> bool {
        starts.iter().any(|start| is_below(path, start))
            && (path.is_empty() || self.at(path).is_some())
    }

    /// Whether anything but folders was found below a folder; an empty path stands for the root.
    pub fn holds_any(&self, folder: &[u8]) -> bool {
        let below = joined(folder, b"");
        let first = self.found.partition_point(|found| found.path < below);
        let mut inner =
            self.found[first..].iter().take_while(|found| found.path.starts_with(&below));
        inner.any(|found| found.kind != FoundKind::Folder)
    }

    /// Returns what the names of the file at a path below `root` have in common, if it has several.
    pub fn links_at(&self, root: &Path, path: &Path) -> Option<Links> {
        match self.at(&path_bytes(path.strip_prefix(root).ok()?))?.kind {
            FoundKind::File { links, .. } => links,
            _ => None,
        }
    }

    /// Returns what was found at a path.
    pub fn at(&self, path: &[u8]) -> Option<&FoundEntry> {
        self.place_of(path).map(|place| &self.found[place])
    }

    /// Returns the index in `found` of what was found at a path.
    pub fn place_of(&self, path: &[u8]) -> Option<usize> {
        self.found.binary_search_by(|found| found.path.as_slice().cmp(path)).ok()
    }
}

impl FoundEntry {
    fn new(path: Vec<u8>, metadata: &Metadata, kind: FoundKind) -> Self {
        let attributes = Attributes::of(metadata);
        let modified = attributes.modified.unwrap_or_default();
        let changed =
            Timestamp::changed(metadata).filter(|_| !matches!(kind, FoundKind::Symlink { .. }));
        Self {
            path,
            mode: attributes.mode.unwrap_or(0o644),
            modified,
            changed,
            owner: attributes.owner,
            kind,
        }
    }

    /// Returns what is at a path relative to a root, if it can be protected.
    pub fn at(root: &Path, path: &[u8]) -> Option<Self> {
        let place = path_in(root, path);
        let metadata = fs::symlink_metadata(&place).ok()?;
        let kind = kind_of(|| place.clone(), &metadata).ok()?.ok()?;
        Some(Self::new(path.to_vec(), &metadata, kind))
    }

    /// Whether this may be what `other` is, under another name: both have the same kind, size and
    /// time. Their numbers (inodes) are not compared, because some file systems have a number for
    /// each name that was opened.
    pub fn is_alike(&self, other: &Self) -> bool {
        let is_kind = match (&self.kind, &other.kind) {
            (FoundKind::File { size, .. }, FoundKind::File { size: there, .. }) => size == there,
            (one, there) => one == there,
        };
        is_kind && self.mode == other.mode && self.modified == other.modified
    }
}

/// Returns the kind of what is at a path. If it cannot be protected, returns words that describe
/// it.
fn kind_of(
    path: impl Fn() -> PathBuf,
    metadata: &Metadata,
) -> io::Result<Result<FoundKind, &'static str>> {
    let kind = metadata.file_type();
    Ok(if kind.is_dir() {
        Ok(FoundKind::Folder)
    } else if kind.is_symlink() {
        Ok(FoundKind::Symlink { target: name_bytes(fs::read_link(path())?.as_os_str()).to_vec() })
    } else if kind.is_file() && metadata.len() == 0 && has_content(&path()) {
        Err("its size is stated as 0 bytes, but it has content; copy it to protect that")
    } else if kind.is_file() {
        Ok(FoundKind::File { size: metadata.len(), links: links(metadata) })
    } else {
        Err(special(kind))
    })
}

/// Whether a file that is said to be empty has bytes, as those have that programs or the kernel
/// make when they are read.
fn has_content(path: &Path) -> bool {
    open_to_read(path).and_then(|mut file| file.read(&mut [0])).is_ok_and(|read| read > 0)
}

/// Returns what the names of a file have in common, if it has several.
#[cfg(unix)]
fn links(metadata: &Metadata) -> Option<Links> {
    use std::os::unix::fs::MetadataExt;
    (metadata.nlink() > 1).then(|| Links {
        device: metadata.dev(),
        number: metadata.ino(),
        count: metadata.nlink(),
        size: metadata.len(),
        modified: Attributes::of(metadata).modified,
        changed: Timestamp::changed(metadata),
    })
}

#[cfg(not(unix))]
fn links(_metadata: &Metadata) -> Option<Links> {
    None
}

/// Whether two paths that have the same [`Links`] lead to one file. Where the file system does not
/// number files by itself, their bytes decide.
pub(crate) fn are_linked(one: &Path, other: &Path) -> bool {
    let inodes = [one, other].map(Inode::at);
    match inodes {
        _ if numbers_files(one) && numbers_files(other) => true,
        [Some(one), Some(other)] => one.is_same(&other),
        _ => false,
    }
}

#[cfg(unix)]
fn special(kind: FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    if kind.is_socket() {
        "a socket"
    } else if kind.is_fifo() {
        "a named pipe"
    } else {
        "a device"
    }
}

#[cfg(not(unix))]
fn special(_kind: FileType) -> &'static str {
    "neither a file nor a folder"
}

/// Returns, for each further name of a file that has several, the first one.
pub(crate) fn further_names<'f>(
    root: &Path,
    found: &'f [FoundEntry],
) -> HashMap<&'f [u8], &'f [u8]> {
    let mut firsts: HashMap<Links, Vec<&[u8]>> = HashMap::new();
    let mut further = HashMap::new();
    for found in found {
        let FoundKind::File { links: Some(links), .. } = found.kind else { continue };
        let firsts = firsts.entry(links).or_default();
        let path = path_in(root, &found.path);
        let is_name = |first: &&&[u8]| are_linked(&path_in(root, first), &path);
        match firsts.iter().find(is_name) {
            Some(first) => _ = further.insert(&found.path[..], *first),
            None => firsts.push(&found.path),
        }
    }
    further
}

/// Returns the name under which a repair of the protection `id` writes a file.
pub(crate) fn temporary_name(id: &str, number: u64) -> Vec<u8> {
    let (begin, end) = TEMPORARY;
    [begin, format!("{}-{number:016x}", &id[..8]).as_bytes(), end].concat()
}

/// Whether a repair of any protection writes files under such names.
fn has_temporary_name(name: &[u8]) -> bool {
    let (begin, end) = TEMPORARY;
    let middle = name.strip_prefix(begin).and_then(|name| name.strip_suffix(end));
    middle.is_some_and(|middle| middle.len() == 25 && middle[8] == b'-')
}

/// Whether a repair of the protection `id` writes files under such names.
pub(crate) fn is_temporary(name: &[u8], id: &str) -> bool {
    let rest = name.strip_prefix(TEMPORARY.0);
    has_temporary_name(name) && rest.is_some_and(|rest| rest.starts_with(&id.as_bytes()[..8]))
}

/// A folder that is to be looked through.
struct ListedFolder {
    path: Vec<u8>,
    on: Option<FileSystem>,
}

/// Folders that are looked through by several threads. Each thread keeps the folders that it finds,
/// and gives them away while another has none.
struct TreeWalk<'a> {
    root: &'a Path,
    scope: &'a Scope,
    /// The folders that the walk begins with. One of them may lie in another one, and is looked
    /// through once.
    begun: HashSet<Vec<u8>>,
    queue: Mutex<FolderQueue>,
    changed: Condvar,
    /// Number of threads that wait for folders.
    waiting: AtomicUsize,
}

struct FolderQueue {
    folders: Vec<ListedFolder>,
    /// Number of threads that have folders, and may find more.
    busy: usize,
}

impl<'a> TreeWalk<'a> {
    fn new(root: &'a Path, scope: &'a Scope, folders: Vec<Vec<u8>>) -> Self {
        let begin =
            |path: Vec<u8>| ListedFolder { on: FileSystem::of(&path_in(root, &path)), path };
        let begun = folders.iter().cloned().collect();
        let folders = folders.into_iter().map(begin).collect();
        let queue = Mutex::new(FolderQueue { folders, busy: 0 });
        Self { root, scope, begun, queue, changed: Condvar::new(), waiting: AtomicUsize::new(0) }
    }

    fn work(&self) -> Tree {
        let mut tree = Tree::default();
        while let Some(first) = self.take() {
            let mut mine = vec![first];
            while let Some(folder) = mine.pop() {
                let inner = self.list(&folder, &mut tree);
                mine.extend(inner);
                if self.waiting.load(Ordering::Relaxed) > 0 && !mine.is_empty() {
                    self.locked().folders.append(&mut mine);
                    self.changed.notify_all();
                    mine.extend(self.locked().folders.pop());
                }
            }
            self.locked().busy -= 1;
        }
        // No folder is left, for the other threads as well.
        self.changed.notify_all();
        tree
    }

    fn locked(&self) -> MutexGuard<'_, FolderQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a folder for a thread that has none. Waits while others may find some.
    fn take(&self) -> Option<ListedFolder> {
        let mut queue = self.locked();
        loop {
            if let Some(folder) = queue.folders.pop() {
                queue.busy += 1;
                return Some(folder);
            }
            if queue.busy == 0 {
                return None;
            }
            self.waiting.fetch_add(1, Ordering::Relaxed);
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
            self.waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Adds what is in a folder, and returns the folders in it.
    fn list(&self, folder: &ListedFolder, tree: &mut Tree) -> Vec<ListedFolder> {
        let mut inner = Vec::new();
        let path = path_in(self.root, &folder.path);
        let entries = match fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error) => {
                tree.skip(path, error.to_string());
                return inner;
            }
        };
        for entry in entries {
            let (path, error) = match entry {
                Ok(entry) => match self.add(&entry, folder, tree, &mut inner) {
                    Ok(()) => continue,
                    Err(error) => (entry.path(), error),
                },
                // The folder could not be listed to its end.
                Err(error) => (path.clone(), error),
            };
            tree.skip(path, error.to_string());
        }
        inner
    }

    fn add(
        &self,
        entry: &fs::DirEntry,
        folder: &ListedFolder,
        tree: &mut Tree,
        inner: &mut Vec<ListedFolder>,
    ) -> io::Result<()> {
        let name = entry.file_name();
        let path = joined(&folder.path, name_bytes(&name));
        let is_folder = || entry.file_type().is_ok_and(|kind| kind.is_dir());
        if self.scope.excludes.has(&path, is_folder()) {
            return Ok(());
        }
        if name == FOLDER {
            if !is_folder() {
                tree.skip(entry.path(), NAMED_LIKE_PARITY);
            }
            return Ok(());
        }
        if has_temporary_name(name_bytes(&name)) {
            tree.leftovers.push(entry.path());
            return Ok(());
        }
        let metadata = match entry.metadata() {
            // It was removed after the folder was listed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            metadata => metadata?,
        };
        if aside::is_copy(Path::new(&name), &metadata) {
            tree.replaced.push(entry.path());
            return Ok(());
        }
        match kind_of(|| entry.path(), &metadata)? {
            Ok(kind) => {
                if kind == FoundKind::Folder {
                    let on = folder.on.and_then(|above| above.of_entry(entry, &metadata));
                    let found = ListedFolder { path: path.clone(), on };
                    let is_new = !self.begun.contains(&path);
                    let is_wanted = self.is_looked_into(&found, folder, tree) && is_new;
                    inner.extend(is_wanted.then_some(found));
                }
                tree.found.push(FoundEntry::new(path, &metadata, kind));
            }
            Err(what) => tree.skip(entry.path(), what),
        }
        Ok(())
    }
}

impl TreeWalk<'_> {
    /// Whether a folder is looked into that was found in the folder `above`.
    fn is_looked_into(&self, folder: &ListedFolder, above: &ListedFolder, tree: &mut Tree) -> bool {
        !FileSystem::begins(above.on, folder.on) || self.enters(&folder.path, tree)
    }

    /// Whether a folder is looked into at which another file system begins. Notes that one does.
    fn enters(&self, folder: &[u8], tree: &mut Tree) -> bool {
        let path = path_in(self.root, folder);
        if is_of_kernel(&path) {
            tree.skip(path, OF_KERNEL);
            return false;
        }
        tree.mounts.push(folder.to_vec());
        !self.scope.one_file_system
    }
}

/// Returns the paths of the folders above a path.
pub(crate) fn above(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(end, _)| &path[..end])
}

/// Whether a path is another one, or lies below it.
pub(crate) fn is_below(path: &[u8], folder: &[u8]) -> bool {
    let rest = path.strip_prefix(folder);
    folder.is_empty() || rest.is_some_and(|rest| matches!(rest, [] | [b'/', ..]))
}

/// Returns the folder that a path relative to a root is in: nothing stands for the root.
pub(crate) fn folder_of(path: &[u8]) -> &[u8] {
    &path[..path.iter().rposition(|&byte| byte == b'/').unwrap_or(0)]
}

/// Returns the last name of a path.
pub(crate) fn name_of(path: &[u8]) -> &[u8] {
    &path[path.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1)..]
}

/// Returns the path of a name in a folder. An empty name gives the beginning of all paths below it.
pub(crate) fn joined(folder: &[u8], name: &[u8]) -> Vec<u8> {
    match folder.is_empty() {
        true => name.to_vec(),
        false => [folder, b"/", name].concat(),
    }
}

/// Returns the number of threads to use.
pub(crate) fn threads(wanted: Option<NonZeroUsize>) -> usize {
    let machine = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    wanted.map_or(machine, |wanted| wanted.get().min(MOST_THREADS.max(machine)))
}

/// Runs the same work on up to `threads` threads, and returns what each returns.
pub(crate) fn in_threads<T: Send>(threads: usize, work: impl Fn() -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        // If the system has no more threads, fewer do the same work.
        let spawn = |_| thread::Builder::new().spawn_scoped(scope, &work).ok();
        let hands: Vec<_> = (1..threads).map_while(spawn).collect();
        let mut done = vec![work()];
        for hand in hands {
            done.push(hand.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        done
    })
}

/// Returns what `work` returns for each item, in order. Up to `threads` threads take the items in
/// turns.
pub(crate) fn map_in_threads<I: Send, T: Send>(
    threads: usize,
    items: impl Iterator<Item = I> + Send,
    work: impl Fn(I) -> T + Sync,
) -> Vec<T> {
    let items = Mutex::new(items.enumerate());
    let next = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
    let parts = in_threads(threads, || {
        let done = std::iter::from_fn(next).map(|(at, item)| (at, work(item)));
        done.collect::<Vec<_>>()
    });
    let mut all: Vec<(usize, T)> = parts.into_iter().flatten().collect();
    all.sort_unstable_by_key(|&(at, _)| at);
    all.into_iter().map(|(_, done)| done).collect()
}

/// Returns the root of some paths, and the paths relative to it. The root of one folder is the
/// folder itself, that of one file is its folder, and that of several paths is the deepest folder
/// that holds them all. Links on the way to these paths are followed, those in the tree are not.
///
/// # Errors
/// If a path does not exist ([`crate::ErrorKind::Io`]).
pub(crate) fn root_of(paths: &[PathBuf]) -> Result<(PathBuf, Vec<Vec<u8>>)> {
    let absolute =
        |path: &PathBuf| path.canonicalize().map_err(|error| Error::io("opening", path, &error));
    let paths: Vec<PathBuf> = paths.iter().map(absolute).collect::<Result<_>>()?;
    let Some(first) = paths.first() else {
        return Err(Error::parameters("give at least one file or folder to protect"));
    };
    let is_folder = |path: &Path| fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
    let mut root = match is_folder(first) {
        true => first.as_path(),
        false => first.parent().unwrap_or(first),
    };
    while !paths.iter().all(|path| path.starts_with(root) && (path != root || is_folder(path))) {
        let none = || Error::parameters("the paths are on different drives; protect them apart");
        root = root.parent().ok_or_else(none)?;
    }
    if root.file_name().is_some_and(|name| name == FOLDER) {
        let parity =
            format!("{} holds the parity of other files, and is not protected itself", shown(root));
        return Err(Error::parameters(parity));
    }
    let relative = |path: &PathBuf| path.strip_prefix(root).map_or_else(|_| Vec::new(), path_bytes);
    let mut starts: Vec<Vec<u8>> = paths.iter().map(relative).collect();
    starts.sort_unstable();
    starts.dedup();
    for start in starts.iter().filter(|start| !start.is_empty()) {
        check_path(start).map_err(|error| Error::parameters(error.to_string()))?;
    }
    if starts.first().is_some_and(Vec::is_empty) {
        starts.truncate(1);
    }
    Ok((root.to_owned(), starts))
}
