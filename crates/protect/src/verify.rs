//! Finding out what is damaged, and whether it can be repaired.
//!
//! Every file is read once and compared by its digest, every parity block by its checksum. If a
//! file differs from its digest, the checksums of its blocks say which bytes are damaged. Missing
//! files are looked for among new files, and lost blocks in damaged and new files (see `scan.rs`).
//! Each parity block at hand repairs any one lost block, so the verdict is exact.

mod part;
mod report;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use paritas_store::error::{Error, ErrorKind, Result};
use paritas_store::place::from_disk::forget_cached;
use paritas_store::place::open_files::is_unreadable;
use paritas_store::progress::Progress;
use paritas_store::setters;
use paritas_store::shown::shown;
use paritas_store::state::State;

use crate::aside;
use crate::evidence::{Evidence, FileState, LayerEvidence, is_left_by};
use crate::find::{EntryKind, Layer, LayerPiece, ProtectedEntry, Protection};
use crate::folding::match_folded;
use crate::geometry::StreamGeometry;
use crate::mounts::{self, Absence};
use crate::parity::{Checked, ParityFile, check_all};
use crate::paths::path_in;
use crate::restore::restored_mode;
use crate::scan::{self, FileContent};
use crate::stream::{Gathered, PieceFile, Scanned, Stream, StreamReading};
use crate::times::ChangeTimes;
use crate::tree::{
    FoundEntry, FoundKind, Links, Skipped, Tree, are_linked, folder_of, map_in_threads, threads,
};
use crate::trouble::Trouble;
use report::report;
pub(crate) use report::short;

/// Number of bytes after which threads hand over their findings, so that these take little memory.
const ROUND: u64 = 1 << 30;

/// The settings of a verification.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct VerifyOptions {
    /// Whether the bytes of files are not read. Then files with the right size and times count as
    /// intact, and so do parity files with the right header, trailer and length. A file is read all
    /// the same if its ctime, the time of change that the system sets, is new.
    pub quick: bool,
    /// Whether files are read from the disk, even if the system has them in memory.
    pub from_disk: bool,
    /// Largest number of threads. Default: the number that the machine runs at once.
    pub threads: Option<NonZeroUsize>,
}

setters! { VerifyOptions {
    /// Trusts sizes and times, or reads everything.
    quick: bool,
    /// Reads files from the disk, or wherever the system has them.
    from_disk: bool,
    /// Uses at most `threads` threads.
    threads: impl Into<Option<NonZeroUsize>>,
} }

/// Something that is protected and is not as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileFinding {
    /// The path.
    pub path: PathBuf,
    /// The path relative to the root.
    pub name: PathBuf,
    /// Its kind.
    pub kind: Protected,
    /// Its size in bytes when it was protected.
    pub size: u64,
    /// Its state.
    pub state: FileState,
    /// Whether it has the time that it had when it was protected.
    pub has_time: bool,
}

/// The kinds of things that can be protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protected {
    /// A file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Symlink,
    /// A hard link: one more name of a protected file.
    HardLink,
}

/// The state of a parity file that is not intact.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParityFinding {
    /// The path that it has or should have.
    pub path: PathBuf,
    /// Whether it is missing, or nothing in it can be recognised.
    pub missing: bool,
    /// Whether the system does not let this process read it, so that its state is unknown.
    pub unreadable: bool,
    /// Number of its parity blocks that are damaged.
    pub damaged_blocks: u64,
    /// Number of pieces of the catalogue in it that are damaged.
    pub damaged_pieces: u64,
}

/// The losses of a layer, and the parity at hand to repair them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LayerReport {
    /// The layer's number; later ones are newer.
    pub generation: u32,
    /// Its blocks.
    pub geometry: StreamGeometry,
    /// Number of data blocks that are lost.
    pub lost: u64,
    /// Number of parity blocks at hand.
    pub at_hand: u64,
    /// Number of parity blocks that are lacking to repair the lost blocks; 0 if they can be
    /// repaired.
    pub needed: u64,
    /// Number of further blocks, data or parity, that may be lost.
    pub left: u64,
}

/// The result of a verification.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct VerifyReport {
    /// The verdict. Where something could not be read now, it may be intact, so nothing is known.
    pub status: State,
    /// Whether a repair would restore anything: something is damaged or missing, and the blocks
    /// that it needs are not lost beyond repair.
    pub restores: bool,
    /// Number of protected files.
    pub files: u64,
    /// Number of protected files whose bytes are right, under their own name or another.
    pub intact_files: u64,
    /// The protected things that are not as they were, by path.
    pub findings: Vec<FileFinding>,
    /// The parity files that are not intact.
    pub parity: Vec<ParityFinding>,
    /// The layers, oldest first.
    pub layers: Vec<LayerReport>,
    /// Number of layers whose catalogue is lost, and with it all that is known of their files.
    pub unreadable_layers: usize,
    /// Files that are not protected yet.
    pub new: Vec<PathBuf>,
    /// Copies of what repairs have replaced.
    pub replaced: Vec<PathBuf>,
    /// Paths in the tree that cannot be protected.
    pub skipped: Vec<Skipped>,
}

impl VerifyReport {
    /// Returns the number of findings whose state `is_wanted` accepts.
    pub fn count(&self, is_wanted: impl Fn(&FileState) -> bool) -> u64 {
        self.findings.iter().filter(|finding| is_wanted(&finding.state)).count() as u64
    }
}

/// Verifies a protection. `progress` gets the number of bytes as they are read.
///
/// # Errors
/// If the memory is short ([`crate::ErrorKind::Memory`]), or if files cannot be read from the disk
/// as they should. Damage does not cause an error.
pub fn verify(
    protection: &Protection,
    options: &VerifyOptions,
    progress: Progress<'_>,
) -> Result<VerifyReport> {
    Ok(examine(protection, options, progress)?.0)
}

/// Verifies a protection, and returns the evidence beside the report.
pub(crate) fn examine(
    protection: &Protection,
    options: &VerifyOptions,
    progress: Progress<'_>,
) -> Result<(VerifyReport, Evidence)> {
    let examination =
        Examination { protection, options, progress, threads: threads(options.threads) };
    let tree = look(protection, examination.threads)?;
    if options.from_disk {
        examination.forget_cached(&tree)?;
    }
    let evidence = match examination.intact_part(&tree) {
        Some(states) => Evidence { tree, states, elsewhere: BTreeMap::new(), layers: Vec::new() },
        None => examination.evidence(tree)?,
    };
    expect_parity(protection)?;
    Ok((report(protection, &evidence), evidence))
}

/// Fails if parity that was found is gone: an update has replaced it while everything was read, and
/// what it cannot repair is no loss.
fn expect_parity(protection: &Protection) -> Result<()> {
    let files = protection.layers.iter().flat_map(|layer| layer.files.iter().flatten());
    let is_gone = |path: &Path| {
        std::fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    };
    match files.map(|file| file.path.as_path()).find(|path| is_gone(path)) {
        Some(path) => Err(Error::new(
            ErrorKind::Busy,
            format!("{} was removed or replaced meanwhile; try again", shown(path)),
        )),
        None => Ok(()),
    }
}

struct Examination<'a> {
    protection: &'a Protection,
    options: &'a VerifyOptions,
    progress: Progress<'a>,
    threads: usize,
}

impl Examination<'_> {
    fn evidence(&self, tree: Tree) -> Result<Evidence> {
        let protection = self.protection;
        let times = ChangeTimes::of(protection, &tree);
        let mut states = BTreeMap::new();
        for (number, entry) in protection.entries.iter().enumerate() {
            let state = state_by_metadata(entry, tree.of(number), &times);
            states.extend(state.map(|state| (number, state)));
        }
        states.extend(replaced(protection, &tree));
        set_unreadable(protection, &tree, &mut states);
        let mut read = BTreeSet::new();
        if self.options.quick {
            read = self.compare_touched(&tree, &times, &mut states);
        }
        self.compare_names(&tree, &times, &mut states);
        let mut layers = Vec::new();
        for layer in &protection.layers {
            layers.push(match self.options.quick {
                true => self.trust(layer, &tree, &states, &read),
                false => self.read(layer, &tree, &times, &mut states)?,
            });
        }
        set_renamed(protection, &tree, &mut states);
        let mut evidence = Evidence { tree, states, layers, elsewhere: BTreeMap::new() };
        if !self.options.quick {
            scan::find_moved(protection, &mut evidence, self.threads);
            scan::find_shifted(protection, &mut evidence, self.threads);
        }
        set_absent(protection, &mut evidence);
        set_ranges(protection, &mut evidence);
        Ok(evidence)
    }

    /// Has the system read all that is protected, and its parity, from the disk.
    fn forget_cached(&self, tree: &Tree) -> Result<()> {
        let root = &self.protection.root;
        let files = tree.files().map(|file| path_in(root, &file.path));
        let parity = self.protection.parity_files().map(Path::to_path_buf);
        let paths: Vec<PathBuf> = files.chain(parity).collect();
        forget_cached(paths.iter().map(PathBuf::as_path))
    }

    /// Compares hard links that have become files of their own with the digests of the files that
    /// they should lead to.
    fn compare_names(
        &self,
        tree: &Tree,
        times: &ChangeTimes<'_>,
        states: &mut BTreeMap<usize, FileState>,
    ) {
        let entries = &self.protection.entries;
        for (number, entry) in entries.iter().enumerate() {
            let EntryKind::HardLink { target } = &entry.kind else { continue };
            let Some((size, own)) = file_of(tree.of(number)) else { continue };
            let path = self.protection.path_of(entry);
            let target = self.protection.entry_at(target);
            let other = target.and_then(|target| file_of(tree.of(target)));
            let is_linked = own.is_some()
                && other.is_some_and(|(_, links)| links == own)
                && target
                    .is_some_and(|it| are_linked(&self.protection.path_of(&entries[it]), &path));
            let file = target.map(|target| &entries[target].kind);
            let Some(EntryKind::File { digest, .. }) = file else { continue };
            if !is_linked {
                let read = scan::read_digest(&path, size);
                if let Err(Trouble::Refused(why)) = read.as_ref().map_err(Trouble::of) {
                    states.insert(number, FileState::Unreadable(why));
                    continue;
                }
                let is_same = read.is_ok_and(|now| now == Some(*digest));
                // The catalogue has the change time of the file, which all of its names share.
                let file = target.map(|target| &entries[target]);
                let is_on_time = tree.of(number).zip(file).is_some_and(|(found, file)| {
                    found.modified == entry.modified && !times.was_touched(file, found.changed)
                });
                let state = match (is_same, is_on_time) {
                    (true, _) => FileState::Touched,
                    (false, true) => FileState::Damaged(Vec::new()),
                    (false, false) => FileState::Changed(Vec::new()),
                };
                states.insert(number, state);
            }
        }
    }

    /// Reads the files of a layer and its parity.
    fn read(
        &self,
        layer: &Layer,
        tree: &Tree,
        times: &ChangeTimes<'_>,
        states: &mut BTreeMap<usize, FileState>,
    ) -> Result<LayerEvidence> {
        let stream = self.stream(layer, tree);
        let scanned = self.scan(&stream, &layer.header.geometry);
        for (number, piece) in layer.pieces.iter().enumerate() {
            if let Some(entry) = piece.entry {
                let known = states.get(&entry).cloned();
                let found = tree.of(entry);
                let state = self.state_by_bytes(entry, number, &scanned, found, times, known);
                match state {
                    Some(state) => _ = states.insert(entry, state),
                    None => _ = states.remove(&entry),
                }
            }
        }
        let pairs = scanned.checksums.iter().zip(&layer.checksums);
        let lost = (0..).zip(pairs).filter(|(_, (now, then))| now != then).map(|(block, _)| block);
        let lost = lost.collect();
        let files: Vec<&ParityFile> = layer.files.iter().flatten().collect();
        let checked = check_all(&files, self.threads, self.progress);
        let mut checked: BTreeMap<u16, Checked> = files
            .iter()
            .zip(checked)
            .filter_map(|(file, checked)| Some((file.header.index, checked.ok()?)))
            .collect();
        let checked: Vec<Option<Checked>> =
            (0..layer.header.count).map(|index| checked.remove(&index)).collect();
        let copies = self.check_copies(layer, &checked);
        Ok(LayerEvidence::new(layer, stream, lost, checked, copies))
    }

    /// Checks the further copies of those parity files of a layer that are not whole.
    fn check_copies<'l>(
        &self,
        layer: &'l Layer,
        checked: &[Option<Checked>],
    ) -> Vec<(&'l ParityFile, Checked)> {
        let is_wanted = |copy: &&ParityFile| {
            let index = copy.header.index;
            let all = layer.header.rows(index).count();
            checked[usize::from(index)].as_ref().is_none_or(|checked| checked.rows.len() < all)
        };
        let copies: Vec<&ParityFile> = layer.copies.iter().filter(is_wanted).collect();
        let checked = check_all(&copies, self.threads, &|_| {});
        let pairs = copies.into_iter().zip(checked);
        pairs.filter_map(|(copy, checked)| Some((copy, checked.ok()?))).collect()
    }

    fn scan(&self, stream: &Stream, geometry: &StreamGeometry) -> Scanned {
        let reading = StreamReading {
            stream,
            geometry: *geometry,
            columns: 0..geometry.block,
            threads: self.threads,
            progress: self.progress,
        };
        let mut gathered = Gathered::new(stream, geometry);
        let each = (ROUND / geometry.block).max(1);
        for start in (0..geometry.data).step_by(each as usize) {
            reading.scan(start..(start + each).min(geometry.data), None, &mut gathered);
        }
        gathered.finish()
    }

    /// Judges a layer without reading it: files with the right size and times count as intact. All
    /// blocks of other files count as lost, except in files that were `read` and have other bytes.
    /// If too many blocks would count as lost, those of all other files are read.
    fn trust(
        &self,
        layer: &Layer,
        tree: &Tree,
        states: &BTreeMap<usize, FileState>,
        read: &BTreeSet<usize>,
    ) -> LayerEvidence {
        let stream = self.stream(layer, tree);
        let geometry = &layer.header.geometry;
        let is_lost = |piece: &Option<usize>| match piece {
            Some(entry) => !matches!(states.get(entry), None | Some(FileState::Touched)),
            None => true,
        };
        let mut lost: Vec<u64> = Vec::new();
        for (piece, place) in layer.pieces.iter().zip(stream.pieces()) {
            if piece.size > 0 && is_lost(&piece.entry) {
                let last = (place.start + piece.size - 1) / geometry.block;
                let first = place.start / geometry.block;
                lost.extend(first.max(lost.last().map_or(0, |last| last + 1))..=last);
            }
        }
        let header = &layer.header;
        let trusted = |file: &ParityFile| Checked {
            rows: header.rows(file.header.index).map(|row| (row, header.row_offset(row))).collect(),
            damaged_pieces: 0,
        };
        let whole =
            |file: &Option<ParityFile>| file.as_ref().filter(|file| file.has_ends).map(trusted);
        let checked = layer.files.iter().map(whole).collect();
        let mut evidence = LayerEvidence::new(layer, stream, lost, checked, Vec::new());
        let pieces = layer.pieces.iter().enumerate();
        let is_short = evidence.lost.len() > evidence.rows.len();
        let is_read =
            |piece: &LayerPiece| is_short || piece.entry.is_some_and(|entry| read.contains(&entry));
        let pieces = pieces.filter(|(_, piece)| is_read(piece)).map(|(number, _)| number);
        scan::recheck(layer, &mut evidence, &pieces.collect::<Vec<_>>());
        evidence
    }

    /// Returns the stream of a layer, as far as its files are there.
    fn stream(&self, layer: &Layer, tree: &Tree) -> Stream {
        let mut stream = Stream::default();
        for piece in &layer.pieces {
            let found = piece.entry.and_then(|entry| tree.of(entry));
            let file = found.and_then(|found| match found.kind {
                FoundKind::File { size, .. } => Some((&found.path, size)),
                _ => None,
            });
            match file {
                Some((path, size)) => {
                    let path = path_in(&self.protection.root, path);
                    stream.push_file(piece.size, PieceFile { path, expected: None }, size);
                }
                None => stream.push(piece.size, None),
            }
        }
        stream
    }

    /// Returns the state of a file whose bytes were read.
    fn state_by_bytes(
        &self,
        number: usize,
        piece: usize,
        scanned: &Scanned,
        found: Option<&FoundEntry>,
        times: &ChangeTimes<'_>,
        known: Option<FileState>,
    ) -> Option<FileState> {
        let entry = &self.protection.entries[number];
        let Some(FoundEntry { kind: FoundKind::File { size, .. }, modified, mode, .. }) = found
        else {
            return known;
        };
        if let Some(Trouble::Refused(why)) = scanned.troubles.get(&piece) {
            return Some(FileState::Unreadable(why.clone()));
        }
        let EntryKind::File { digest, .. } = entry.kind else { return None };
        let is_right = *size == entry.size() && scanned.digests[piece] == Some(digest);
        let is_on_time = *modified == entry.modified;
        match (is_right, is_on_time) {
            (true, true) if has_mode(entry, *mode) => None,
            (true, _) => Some(FileState::Touched),
            // It may have been changed since the tree was looked through.
            (false, true)
                if times.is_untouched(entry, entry.modified, &self.protection.path_of(entry)) =>
            {
                Some(FileState::Damaged(Vec::new()))
            }
            (false, _) => Some(FileState::Changed(Vec::new())),
        }
    }
}

impl Examination<'_> {
    /// Reads the files that have the right size, but a new time or ctime, although a quick
    /// verification reads no others: a program may have written to them and set their time back, or
    /// may have set a time alone. Returns the numbers of the files whose bytes differ.
    fn compare_touched(
        &self,
        tree: &Tree,
        times: &ChangeTimes<'_>,
        states: &mut BTreeMap<usize, FileState>,
    ) -> BTreeSet<usize> {
        let suspects = self.suspects(tree, times, states);
        let read = map_in_threads(self.threads, suspects.into_iter(), |(number, then, path)| {
            let now = scan::read_digest(&path, then.0).map_err(|error| Trouble::of(&error));
            (number, then.1, now)
        });
        let mut others = BTreeSet::new();
        for (number, then, now) in read {
            let (entry, found) = (&self.protection.entries[number], tree.of(number));
            let has_time = found.is_some_and(|found| found.modified == entry.modified);
            let is_written = || times.was_touched(entry, found.and_then(|found| found.changed));
            let state = match now {
                Ok(Some(now)) if now == then && has_time => continue,
                Ok(Some(now)) if now == then => FileState::Touched,
                Err(Trouble::Refused(why)) => FileState::Unreadable(why),
                // It has gone or grown since the tree was looked through.
                Ok(None) | Err(Trouble::Gone) => continue,
                _ if !has_time || is_written() => FileState::Changed(Vec::new()),
                _ => FileState::Damaged(Vec::new()),
            };
            let is_other = matches!(state, FileState::Changed(_) | FileState::Damaged(_));
            others.extend(is_other.then_some(number));
            states.insert(number, state);
        }
        others
    }

    /// Returns the files that a quick verification reads: their numbers, what they should have, and
    /// their paths.
    fn suspects(
        &self,
        tree: &Tree,
        times: &ChangeTimes<'_>,
        states: &BTreeMap<usize, FileState>,
    ) -> Vec<(usize, FileContent, PathBuf)> {
        let entries = self.protection.entries.iter().enumerate();
        let suspects = entries.filter_map(|(number, entry)| {
            let EntryKind::File { size, digest, .. } = entry.kind else { return None };
            let found = tree.of(number).filter(|found| has_size(found, size))?;
            let has_time = found.modified == entry.modified;
            let is_whole = matches!(states.get(&number), None | Some(FileState::Touched));
            let is_suspect = !has_time || is_whole && times.is_new(entry, found.changed);
            is_suspect.then(|| (number, (size, digest), self.protection.path_of(entry)))
        });
        suspects.collect()
    }
}

/// Returns the size of a file and, if it has several names, the facts that they share. Returns
/// `None` for anything but a file.
fn file_of(found: Option<&FoundEntry>) -> Option<(u64, Option<Links>)> {
    match found?.kind {
        FoundKind::File { size, links } => Some((size, links)),
        _ => None,
    }
}

fn has_size(found: &FoundEntry, then: u64) -> bool {
    matches!(found.kind, FoundKind::File { size, .. } if size == then)
}

fn is_file(found: Option<&FoundEntry>) -> bool {
    found.is_some_and(|found| matches!(found.kind, FoundKind::File { .. }))
}

/// Looks through the tree of a protection.
pub(crate) fn look(protection: &Protection, threads: usize) -> Result<Tree> {
    let mut tree = protection.walk(threads)?;
    // If the root does not exist, everything in it is missing. If it may not be read, the state is
    // unknown.
    if !may_be_there(&protection.root) {
        tree.skipped.retain(|skipped| skipped.path != protection.root);
    }
    let starts: Vec<Vec<u8>> = protection.starts().map(<[u8]>::to_vec).collect();
    add_leftovers_beside(&starts, protection, &mut tree);
    tree.match_paths(protection.entries.iter().map(|entry| entry.path.as_slice()));
    match_folded(protection, &mut tree);
    Ok(tree)
}

/// Whether a folder may exist at a path: the system does not say that it is missing.
fn may_be_there(folder: &Path) -> bool {
    std::fs::read_dir(folder).err().is_none_or(|error| is_unreadable(&error))
}

/// Adds what a killed repair left beside files that were protected without the folder that they are
/// in. The tree has what lies in protected folders.
fn add_leftovers_beside(starts: &[Vec<u8>], protection: &Protection, tree: &mut Tree) {
    let is_folder = |path: &[u8]| tree.at(path).is_some_and(|at| at.kind == FoundKind::Folder);
    let is_inner = |path: &&[u8]| path.is_empty() || is_folder(path);
    let files = starts.iter().filter(|start| !start.is_empty() && !is_folder(start));
    let folders: BTreeSet<&[u8]> = files.map(|file| folder_of(file)).filter(is_inner).collect();
    let id = protection.id.to_string();
    for folder in folders {
        let entries = std::fs::read_dir(path_in(&protection.root, folder)).into_iter().flatten();
        for entry in entries.flatten() {
            let path = entry.path();
            let is_copy = || entry.metadata().is_ok_and(|file| aside::is_copy(&path, &file));
            if is_left_by(&path, &id) {
                tree.leftovers.push(path);
            } else if is_copy() {
                tree.replaced.push(path);
            }
        }
    }
    tree.replaced.sort_unstable();
}

/// Returns the state of an entry by what the system says about it.
fn state_by_metadata(
    entry: &ProtectedEntry,
    found: Option<&FoundEntry>,
    times: &ChangeTimes<'_>,
) -> Option<FileState> {
    let Some(found) = found else { return Some(FileState::Missing) };
    let is_same = match (&entry.kind, &found.kind) {
        (EntryKind::File { size, .. }, FoundKind::File { size: now, .. }) => size == now,
        (EntryKind::Folder, FoundKind::Folder) => true,
        (EntryKind::Symlink { target }, FoundKind::Symlink { target: now }) => target == now,
        (EntryKind::HardLink { .. }, FoundKind::File { .. }) => true,
        _ => false,
    };
    let has_mode = has_mode(entry, found.mode) || matches!(entry.kind, EntryKind::Symlink { .. });
    // Only the times of files count. Those of folders change whenever something in them does.
    let has_time = entry.modified == found.modified || !entry.is_file();
    let is_on_time = has_time && !times.was_touched(entry, found.changed);
    match (is_same, has_mode && has_time) {
        (true, true) => None,
        (true, false) if has_time => Some(FileState::Touched),
        (false, _) if is_on_time && entry.is_file() && is_file(Some(found)) => {
            Some(FileState::Damaged(Vec::new()))
        }
        _ => Some(FileState::Changed(Vec::new())),
    }
}

/// Whether a mode is that of an entry, or the one that a repair has given to it.
fn has_mode(entry: &ProtectedEntry, mode: u32) -> bool {
    mode == entry.mode || mode == restored_mode(entry.mode)
}

/// Returns the state of what has been replaced by something that cannot be protected.
fn replaced<'p>(
    protection: &'p Protection,
    tree: &'p Tree,
) -> impl Iterator<Item = (usize, FileState)> + 'p {
    let special = tree.skipped.iter().filter(|skipped| skipped.is_special());
    special.filter_map(move |skipped| {
        let number = protection.entry_at(&protection.relative(&skipped.path)?)?;
        Some((number, FileState::Changed(Vec::new())))
    })
}

/// Marks things that only seem to be missing as unreadable, because they or a folder above them
/// cannot be looked at. If only an empty folder was protected there, nothing can be lost.
fn set_unreadable(protection: &Protection, tree: &Tree, states: &mut BTreeMap<usize, FileState>) {
    for skipped in tree.skipped.iter().filter(|skipped| !skipped.is_special()) {
        let Some(path) = protection.relative(&skipped.path) else { continue };
        let hidden = protection.entry_at(&path).into_iter().chain(protection.below(&path));
        let is_needed = protection.needs(&path);
        for number in hidden {
            match states.get(&number) {
                Some(FileState::Missing) if is_needed => {
                    states.insert(number, FileState::Unreadable(skipped.reason.clone()));
                }
                Some(FileState::Missing) => _ = states.remove(&number),
                _ => {}
            }
        }
    }
}

/// Marks entries as unreadable if their disk is not mounted, or if another one hides them: they
/// only seem to be missing, or changed where a program that did not find its files has made others
/// of the same names. An entry that was moved to another place in the tree has been found there,
/// and is left alone.
fn set_absent(protection: &Protection, evidence: &mut Evidence) {
    // What was on a disk that is there and empty is missing: perhaps the disk is a new one.
    let absent = mounts::absent(protection, &evidence.tree).into_iter();
    for (mount, absence) in absent.filter(|(_, absence)| *absence != Absence::Empty) {
        let point = protection.entry_at(mount);
        if let Some(point) = point.filter(|it| evidence.states.get(it) == Some(&FileState::Touched))
        {
            // The folder at which the disk is mounted has a mode of its own.
            evidence.states.remove(&point);
        }
        for number in point.into_iter().chain(protection.below(mount)) {
            use FileState::{Changed, Damaged, Missing};
            if let Some(Missing | Changed(_) | Damaged(_)) = evidence.states.get(&number) {
                let place = path_in(&protection.root, mount);
                let reason = format!("{}: {}", shown(&place), absence.reason());
                evidence.states.insert(number, FileState::Unreadable(reason));
            }
        }
    }
}

/// Takes what is as it was, but has a name that the file system takes for the same, for moved.
fn set_renamed(protection: &Protection, tree: &Tree, states: &mut BTreeMap<usize, FileState>) {
    for number in 0..protection.entries.len() {
        if let Some(path) = protection.renamed(number, tree)
            && matches!(states.get(&number), None | Some(FileState::Touched))
        {
            states.insert(number, FileState::Moved(path_in(&protection.root, path)));
        }
    }
}

/// States which bytes of damaged and changed files are in lost blocks.
fn set_ranges(protection: &Protection, evidence: &mut Evidence) {
    let mut states = std::mem::take(&mut evidence.states);
    for (&number, state) in &mut states {
        if let EntryKind::File { layer, .. } = protection.entries[number].kind
            && let FileState::Damaged(ranges) | FileState::Changed(ranges) = state
        {
            *ranges = evidence.lost_bytes(protection, layer, number);
        }
    }
    evidence.states = states;
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// Everything in a folder is missing only if the system says that there is no such folder.
    #[test]
    fn refusals_do_not_mean_missing() {
        let root = tempfile::tempdir().unwrap();
        let (file, endless) = (root.path().join("file"), root.path().join("endless"));
        std::fs::write(&file, "bytes").unwrap();
        std::os::unix::fs::symlink(&endless, &endless).unwrap();
        assert!(may_be_there(root.path()) && may_be_there(&endless));
        assert!(!may_be_there(&file) && !may_be_there(&root.path().join("none")));
    }
}
