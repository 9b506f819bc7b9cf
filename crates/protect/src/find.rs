//! Finding protections, and reading their catalogues.
//!
//! Parity files are recognised by content. Those of one protection are grouped by layer. The newest
//! layer whose catalogue can be read says which older layers count, and which files should exist.

mod builder;
mod files;
mod given;
mod left;
mod meaning;
mod part;
mod places;
mod unfinished;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use paritas_store::error::{Error, ErrorKind, Result};
use paritas_store::place::attributes::Timestamp;
use paritas_store::place::lock::is_held;
use paritas_store::shown::{counted, shown};
use paritas_store::staging::{commit_over, has_temporary_name};

use crate::catalogue::{Catalogue, Described, FOLDER, Item, Settings};
use crate::digest::FileDigest;
use crate::exclude::Excludes;
use crate::format::{Header, Id, checksum_of_zeros};
use crate::geometry::{Redundancy, StreamGeometry};
use crate::parity::{ParityFile, is_remnant, read_catalogue, refusal};
use crate::paths::{name_bytes, owned_name, path_bytes, path_in, whole_bytes};
use crate::tree::{Scope, Tree, joined, threads};
use files::{holds_named, named_files_in, parity_files_in};
use given::folders_among;
use left::{left, stray};
use part::AskedPart;
pub use places::{IsWanted, Other};
use places::{KnownProtection, ParityPlaces};

/// Files and the parity that protects them, as the newest catalogue says.
#[derive(Debug, Clone)]
pub struct Protection {
    pub(crate) root: PathBuf,
    /// Whether the root is now elsewhere than the catalogue states, and the parity is not in it.
    pub(crate) has_moved: bool,
    pub(crate) id: Id,
    pub(crate) settings: Settings,
    /// The layers that count, oldest first. The newest one is the last.
    pub(crate) layers: Vec<Layer>,
    /// Everything that is protected, by path.
    pub(crate) entries: Vec<ProtectedEntry>,
    /// Number of layers that cannot be read: older ones that count, and newer ones.
    pub(crate) unreadable_layers: usize,
    /// Parity files of layers that do not count, and of newer ones that cannot be read.
    pub(crate) stray: Vec<PathBuf>,
    /// The stray files that a killed process has left: newer files beside them have replaced them,
    /// or they were never finished. A complete layer without final names is not among them, because
    /// the process that writes it may be about to publish it.
    pub(crate) left: Vec<PathBuf>,
    /// The generation of the next layer, later than that of any parity file that was found.
    pub(crate) next_generation: u32,
    /// The part that was asked for; `None` if it is the whole protection.
    pub(crate) part: Option<AskedPart>,
}

/// A stream, its blocks and its parity.
#[derive(Debug, Clone)]
pub(crate) struct Layer {
    pub header: Header,
    /// The parity files that were found, by number.
    pub files: Vec<Option<ParityFile>>,
    /// Further copies of these files.
    pub copies: Vec<ParityFile>,
    /// The bytes of the catalogue.
    pub catalogue: Vec<u8>,
    /// The checksums of the data blocks.
    pub checksums: Vec<u64>,
    /// The pieces of the stream.
    pub pieces: Vec<LayerPiece>,
    /// Each piece as this layer's catalogue describes it.
    pub originals: Vec<Item>,
}

impl Layer {
    /// Returns the number of blocks with bytes of pieces that no file has any more. Blocks of
    /// zeros, such as those of files that were never read, are not lost.
    pub fn dead_blocks(&self, is_dead: impl Fn(usize) -> bool) -> u64 {
        let geometry = &self.header.geometry;
        let (zeros, last) = (checksum_of_zeros(geometry.block), geometry.data.saturating_sub(1));
        let is_zero = |block: u64| {
            let zeros = match block == last {
                true => checksum_of_zeros(geometry.bytes_of(block)),
                false => zeros,
            };
            self.checksums[block as usize] == zeros
        };
        let pieces = self.pieces.iter().enumerate();
        let pieces = pieces.map(|(number, piece)| (piece.size, is_dead(number)));
        geometry.block_ranges(pieces).flatten().filter(|&block| !is_zero(block)).count() as u64
    }
}

/// A piece of a layer's stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LayerPiece {
    pub size: u64,
    /// The number of the entry with these bytes, if a file still has them.
    pub entry: Option<usize>,
}

/// Something that is protected by any of the layers.
pub(crate) type ProtectedEntry = Described<EntryKind>;

/// The kind of a [`ProtectedEntry`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EntryKind {
    Folder,
    Symlink {
        target: Vec<u8>,
    },
    HardLink {
        target: Vec<u8>,
    },
    File {
        size: u64,
        digest: FileDigest,
        /// Number of the layer that has its bytes.
        layer: usize,
        piece: usize,
    },
}

impl ProtectedEntry {
    pub fn size(&self) -> u64 {
        match self.kind {
            EntryKind::File { size, .. } => size,
            _ => 0,
        }
    }

    pub fn is_file(&self) -> bool {
        matches!(self.kind, EntryKind::File { .. })
    }
}

impl Protection {
    /// Returns the folder that the paths of protected files are relative to.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the id.
    pub fn id(&self) -> Id {
        self.id
    }

    /// Returns the beginning of the names of the parity files.
    pub fn label(&self) -> String {
        String::from_utf8_lossy(&self.settings.label).into_owned()
    }

    /// Returns when the newest layer was made.
    pub fn created(&self) -> Timestamp {
        self.settings.created
    }

    /// Returns the redundancy that was asked for.
    pub fn redundancy(&self) -> Redundancy {
        Redundancy::new(self.settings.redundancy).unwrap_or(Redundancy::USUAL)
    }

    /// Returns the patterns of paths that are left out.
    pub fn excludes(&self) -> &[String] {
        &self.settings.excludes
    }

    /// Returns the number of protected files. This method and the following ones count only the
    /// part that was asked for. A file with several names counts once.
    pub fn files(&self) -> u64 {
        self.covered().filter(|entry| entry.is_file()).count() as u64
    }

    /// Returns the number of protected folders, symbolic links and hard links.
    pub fn others(&self) -> u64 {
        self.covered().filter(|entry| !entry.is_file()).count() as u64
    }

    /// Returns the number of bytes of all protected files.
    pub fn bytes(&self) -> u64 {
        self.covered().map(ProtectedEntry::size).sum()
    }

    fn covered(&self) -> impl Iterator<Item = &ProtectedEntry> {
        let numbered = self.entries.iter().enumerate();
        numbered.filter(|(number, _)| self.covers(*number)).map(|(_, entry)| entry)
    }

    /// Returns the number of bytes of all parity blocks.
    pub fn parity_bytes(&self) -> u64 {
        self.geometries().map(|geometry| geometry.parity * geometry.block).sum()
    }

    /// Returns the number of bytes that a verification reads: those of the files and the parity
    /// blocks, both in full, or those of the files of an intact part.
    pub fn bytes_to_verify(&self) -> u64 {
        if self.is_part() {
            return self.bytes();
        }
        self.geometries().map(|geometry| geometry.length).sum::<u64>() + self.parity_bytes()
    }

    /// Returns the blocks of each layer, oldest first.
    pub fn geometries(&self) -> impl Iterator<Item = StreamGeometry> + '_ {
        self.layers.iter().map(|layer| layer.header.geometry)
    }

    /// Returns how many blocks of each layer may be lost, oldest first: the number of its parity
    /// blocks, less the number of blocks with bytes of files that were removed, changed or not
    /// read to their end.
    pub fn spare_blocks(&self) -> impl Iterator<Item = u64> + '_ {
        self.layers.iter().map(|layer| {
            let dead = layer.dead_blocks(|piece| layer.pieces[piece].entry.is_none());
            layer.header.geometry.parity.saturating_sub(dead)
        })
    }

    /// Returns the parity files that were found, with those of layers that do not count.
    pub fn parity_files(&self) -> impl Iterator<Item = &Path> {
        let files = self.layers.iter().flat_map(|layer| layer.files.iter().flatten());
        files.map(|file| file.path.as_path()).chain(self.stray.iter().map(PathBuf::as_path))
    }

    /// Returns the folders of the parity: folders in which parity files were found, and existing
    /// folders in which the parity was put.
    pub fn parity_folders(&self) -> Vec<PathBuf> {
        let stated = stated_folders(&self.settings, &self.root);
        let found = self.parity_files().filter_map(Path::parent).map(Path::to_owned);
        let mut folders: Vec<PathBuf> = Vec::new();
        for folder in stated.into_iter().filter(|folder| folder.is_dir()).chain(found) {
            if !folders.contains(&folder) {
                folders.push(folder);
            }
        }
        folders
    }

    /// Returns the folders that were chosen for parity but do not exist now, perhaps because a disk
    /// is not mounted, if parity is missing.
    pub fn absent_folders(&self) -> Vec<PathBuf> {
        let chosen = chosen_folders(&self.settings).filter(|_| self.lacks_parity());
        chosen.filter(|folder| !folder.is_dir()).collect()
    }

    /// Returns the folders that were chosen for parity and hold none now, although parity is
    /// missing: they do not exist, or are empty places for disks that are not mounted.
    pub(crate) fn absent_parity(&self) -> Vec<PathBuf> {
        let holds_some =
            |folder: &Path| self.parity_files().any(|file| file.parent() == Some(folder));
        let chosen = chosen_folders(&self.settings).filter(|_| self.lacks_parity());
        chosen.filter(|folder| !holds_some(folder)).collect()
    }

    /// Whether some parity file was not found.
    fn lacks_parity(&self) -> bool {
        let is_whole = |layer: &Layer| layer.files.iter().all(Option::is_some);
        self.unreadable_layers > 0 || !self.layers.iter().all(is_whole)
    }

    /// Returns where file `index` of a layer is or should be.
    pub(crate) fn place_of(&self, layer: &Layer, index: u16) -> PathBuf {
        match &layer.files[usize::from(index)] {
            Some(file) => file.path.clone(),
            None => self.free_place(&self.folder_for(layer, index), layer, index),
        }
    }

    /// Returns the possible place of a layer's file that was not found because the system does not
    /// let this process look there.
    pub(crate) fn refused_place(&self, layer: &Layer, index: u16) -> Option<PathBuf> {
        let name = layer.header.name(&self.settings.label, index);
        let places = self.parity_folders().into_iter().map(|folder| folder.join(&name));
        let mut places = places.filter(|_| layer.files[usize::from(index)].is_none());
        places.find(|place| refusal(place).is_some())
    }

    /// Returns the files that have the names of missing parity files, but are not recognised as
    /// parity.
    pub(crate) fn strangers(&self) -> impl Iterator<Item = PathBuf> + '_ {
        let folders = self.parity_folders();
        let missing = self.layers.iter().flat_map(|layer| {
            let missing =
                (0..layer.header.count).filter(|&at| layer.files[usize::from(at)].is_none());
            missing.map(|index| layer.header.name(&self.settings.label, index))
        });
        let places = missing.flat_map(move |name| {
            folders.iter().map(|folder| folder.join(&name)).collect::<Vec<PathBuf>>()
        });
        places.filter(|place| ParityFile::recognise(place).is_none())
    }

    /// Returns the folder for a missing file of a layer. Missing files go to the folder with the
    /// fewest files of the layer, so that the fewest possible are lost together.
    fn folder_for(&self, layer: &Layer, index: u16) -> PathBuf {
        let folders = self.parity_folders();
        let is_in = |file: &&ParityFile, folder: &Path| file.path.parent() == Some(folder);
        let there = |folder: &PathBuf| {
            layer.files.iter().flatten().filter(|file| is_in(file, folder)).count()
        };
        let mut counts: Vec<usize> = folders.iter().map(there).collect();
        let mut chosen = 0;
        for missing in (0..=usize::from(index)).filter(|&at| layer.files[at].is_none()) {
            // Among several such folders, the one in which the file was at first is chosen.
            let inner = (0..folders.len()).map(|at| (missing + at) % folders.len());
            chosen = inner.min_by_key(|&at| counts[at]).unwrap_or(0);
            counts[chosen] += 1;
        }
        folders[chosen].clone()
    }

    /// Returns a path for a missing file of a layer at which nothing else is: neither another whole
    /// parity file, in case somebody has renamed one, nor a file of a user. The content decides
    /// whether something is the missing file with header and trailer destroyed.
    fn free_place(&self, folder: &Path, layer: &Layer, index: u16) -> PathBuf {
        let missing = Header { index, ..layer.header.clone() };
        let is_other = |path: &PathBuf| match ParityFile::recognise(path) {
            Some(file) => file.header != missing,
            None => fs::symlink_metadata(path).is_ok_and(|found| {
                !found.is_file() || found.len() > 0 && !is_remnant(path, found.len(), &missing)
            }),
        };
        let label = &self.settings.label;
        let names = (0..).map(|number: u32| match number {
            0 => layer.header.name(label, index),
            _ => layer.header.name(format!("{number}-{}", self.label()).as_bytes(), index),
        });
        let mut paths = names.map(|name| folder.join(name));
        paths.find(|path| !is_other(path)).expect("a folder does not have all names")
    }

    /// Removes the parity files that a killed process has left. It locks the folders and looks for
    /// leftovers again, because another process may have been naming its files there. A file that
    /// cannot be removed stays, and the next command finds it.
    pub(crate) fn remove_left(&self) {
        if self.left.is_empty() {
            return;
        }
        let folders = self.parity_folders();
        let still_left = || {
            let now = in_folders(&folders)?.into_iter().filter(|one| one.id == self.id);
            let is_here = |path: &PathBuf| folders.iter().any(|one| path.parent() == Some(one));
            let left: Vec<PathBuf> = now.flat_map(|now| now.left).filter(is_here).collect();
            // A process that still writes them is about to publish them.
            Ok(if left.iter().any(|path| is_held(path)) { Vec::new() } else { left })
        };
        let _ = commit_over(&folders, still_left, Vec::new(), false);
    }

    /// Returns the protected paths that the user gave, relative to the root.
    pub(crate) fn starts(&self) -> impl Iterator<Item = &[u8]> {
        self.settings.starts.iter().map(|start| start.as_slice())
    }

    /// Looks through what is protected now.
    pub(crate) fn walk(&self, threads: usize) -> Result<Tree> {
        let starts: Vec<Vec<u8>> = self.starts().map(<[u8]>::to_vec).collect();
        let scope = Scope {
            excludes: Excludes::stored(&self.settings).map_err(|error| {
                let message = format!(
                    "the catalogue of {self} cannot be used: its patterns of excluded paths: {}",
                    error.message().trim_start_matches("`excludes`: ")
                );
                Error::new(ErrorKind::NotRecognised, message)
            })?,
            one_file_system: self.settings.one_file_system,
        };
        Ok(Tree::walk(&self.root, &starts, &scope, threads))
    }

    /// Looks for the copies that repairs have kept of replaced files.
    ///
    /// # Errors
    /// If a pattern of excluded paths cannot be read ([`ErrorKind::Parameters`]).
    pub fn replaced(&self) -> Result<Vec<PathBuf>> {
        let id = self.id.to_string();
        let all = self.walk(threads(None))?.replaced;
        Ok(all.into_iter().filter(|path| crate::aside::is_of(path, &id)).collect())
    }

    /// Returns the numbers of the entries below a folder; an empty path stands for the root.
    pub(crate) fn below(&self, folder: &[u8]) -> Range<usize> {
        let below = joined(folder, b"");
        let first = self.entries.partition_point(|entry| entry.path < below);
        let inner = self.entries[first..].partition_point(|entry| entry.path.starts_with(&below));
        first..first + inner
    }

    /// Whether a path must be readable to tell which protected things exist: something other than a
    /// folder is protected at the path, or anything is protected below it.
    pub(crate) fn needs(&self, path: &[u8]) -> bool {
        let is_folder = |number: usize| self.entries[number].kind == EntryKind::Folder;
        self.entry_at(path).is_some_and(|number| !is_folder(number)) || !self.below(path).is_empty()
    }

    /// Uses a folder as the root.
    fn move_to(&mut self, root: PathBuf) {
        self.has_moved = root != self.root;
        self.settings = settings_at(&root, self.settings.clone());
        self.root = root;
    }

    /// Returns the path of an entry.
    pub(crate) fn path_of(&self, entry: &ProtectedEntry) -> PathBuf {
        path_in(&self.root, &entry.path)
    }

    /// Returns the number of the file that has the bytes of an entry. For a hard link this is
    /// another entry.
    pub(crate) fn file_of(&self, number: usize) -> usize {
        match &self.entries[number].kind {
            EntryKind::HardLink { target } => self.entry_at(target).unwrap_or(number),
            _ => number,
        }
    }

    /// Returns a path relative to the root, if it lies there.
    pub(crate) fn relative(&self, path: &Path) -> Option<Vec<u8>> {
        path.strip_prefix(&self.root).ok().map(path_bytes)
    }

    /// Returns the path at which an entry was found, if the file system treats it as equal to the
    /// recorded path although its bytes differ.
    pub(crate) fn renamed<'t>(&self, number: usize, tree: &'t Tree) -> Option<&'t [u8]> {
        let found = tree.of(number).map(|found| found.path.as_slice());
        found.filter(|path| *path != self.entries[number].path)
    }

    /// Returns the path at which an entry was found, if that differs from the recorded path, and
    /// else the recorded path.
    pub(crate) fn path_now<'t>(&'t self, number: usize, tree: &'t Tree) -> &'t [u8] {
        self.renamed(number, tree).unwrap_or(&self.entries[number].path)
    }

    /// Returns the number of the entry at a path.
    pub(crate) fn entry_at(&self, path: &[u8]) -> Option<usize> {
        self.entries.binary_search_by(|entry| entry.path.as_slice().cmp(path)).ok()
    }
}

/// Returns the folder for parity in a root, which need not exist.
///
/// # Errors
/// If it is a symbolic link ([`ErrorKind::Io`]). Whoever may write to the root could make a link to
/// any folder, in which parity files would then be written and removed.
pub(crate) fn folder_in(root: &Path) -> Result<PathBuf> {
    let folder = root.join(FOLDER);
    match fs::read_link(&folder) {
        Ok(target) => Err(Error::failed(format!(
            "{} is a symbolic link to {}, and is not followed; put that folder in its place, \
             or remove the link and choose a folder by `parity_dirs`",
            shown(&folder),
            shown(&target)
        ))
        .naming(&["parity_dirs"])),
        Err(_) => Ok(folder),
    }
}

/// Returns the folders in which a protection was put.
fn stated_folders(settings: &Settings, root: &Path) -> Vec<PathBuf> {
    match settings.folders.is_empty() {
        true => folder_in(root).into_iter().collect(),
        false => chosen_folders(settings).collect(),
    }
}

/// Returns the folders that were chosen for parity instead of the one in the root.
fn chosen_folders(settings: &Settings) -> impl Iterator<Item = PathBuf> {
    settings.folders.iter().map(|path| owned_name(path.to_vec()).into())
}

/// Returns the root that a catalogue states.
fn stated_root(settings: &Settings) -> PathBuf {
    owned_name(settings.root.to_vec()).into()
}

/// Returns the settings of a protection whose root is at `root` now. Folders for parity inside the
/// root move with it.
fn settings_at(root: &Path, mut settings: Settings) -> Settings {
    let stated = stated_root(&settings);
    if stated != root {
        let now = |folder: PathBuf| match folder.strip_prefix(&stated) {
            Ok(inner) if inner.as_os_str().is_empty() => root.to_owned(),
            Ok(inner) => root.join(inner),
            Err(_) => folder,
        };
        let folders = chosen_folders(&settings).map(|folder| whole_bytes(&now(folder)).into());
        settings.folders = folders.collect();
        settings.root = whole_bytes(root).into();
        // A disk that was mounted at the old place says nothing about the new one.
        settings.mounts.retain(|mount| !mount.is_empty());
    }
    settings
}

/// Finds the protections at some paths: protected roots, files and folders in them, folders with
/// parity files, parity files, or roots together with the folders of their parity.
///
/// A file or folder in a root stands for that part of the protection, whether it exists or not:
/// [`crate::verify`] and [`crate::repair`] speak of it alone. Each copy of a root that has a copy
/// of the parity in it is a protection of its own, with the same id. If roots are given together
/// with folders of parity, protections in these folders are left out if they belong to other roots.
///
/// # Errors
/// If a path cannot be read or `.paritas` in it is a symbolic link ([`crate::ErrorKind::Io`]), a
/// path belongs to no protection ([`crate::ErrorKind::NotRecognised`]), or a root that was given
/// may belong to several of the protections ([`crate::ErrorKind::Parameters`]).
pub fn find(paths: &[PathBuf]) -> Result<Vec<Protection>> {
    let mut places = ParityPlaces::default();
    paths.iter().try_for_each(|path| places.add(path))?;
    let (found, others) = places.meant(None)?;
    match others.into_iter().next() {
        Some(Other { error: Some(error), .. }) => Err(error),
        Some(Other { path, .. }) => Err(places.nothing(&[path])),
        None if found.is_empty() => Err(places.nothing(paths)),
        None => Ok(found),
    }
}

/// Finds the protections at some paths, as [`find`] does, and the paths that belong to none. If
/// `is_wanted` is given, only protections that it accepts count.
///
/// # Errors
/// If parity cannot be read ([`crate::ErrorKind::Io`]), or no protection can be used
/// ([`crate::ErrorKind::NotRecognised`]).
pub fn find_among(
    paths: &[PathBuf],
    is_wanted: Option<IsWanted<'_>>,
) -> Result<(Vec<Protection>, Vec<Other>)> {
    let (mut places, mut refused) = (ParityPlaces::default(), Vec::new());
    for path in paths {
        let error = places.add(path).err();
        refused.extend(error.map(|error| Other { path: path.clone(), error: Some(error) }));
    }
    let (found, others) = places.meant(is_wanted)?;
    Ok((found, refused.into_iter().chain(others).collect()))
}

/// Returns the parity files at some paths, grouped by the protection that they belong to. The
/// protection need not be usable.
///
/// # Errors
/// If a path cannot be read ([`crate::ErrorKind::Io`]).
pub fn parity_at(paths: &[PathBuf]) -> Result<BTreeMap<Id, Vec<PathBuf>>> {
    let mut places = ParityPlaces::default();
    paths.iter().try_for_each(|path| places.add(path))?;
    places.add_all_nameless();
    let files = places.parity_files()?;
    let is_wanted = |id: &Id| places.wanted.as_ref().is_none_or(|wanted| wanted.contains(id));
    let finished = |files: Vec<&ParityFile>| {
        let files = layers(&files).into_iter().flatten();
        files.map(|file| file.path.clone()).collect::<Vec<PathBuf>>()
    };
    let groups = group(&files).into_iter().filter(|(id, _)| is_wanted(id));
    let groups = groups.map(|(id, files)| (id, finished(files)));
    Ok(groups.filter(|(_, files)| !files.is_empty()).collect())
}

/// Whether a path is a parity file, a folder with parity files in it that have names of such, or a
/// folder with the folder of its parity in it. In that folder, files with names of parity files
/// count even if their contents are destroyed, and if it may not be read, it counts as well.
pub fn has_parity(path: &Path) -> bool {
    match path.is_dir() {
        true => {
            let inner = path.join(FOLDER);
            let is_closed = inner.is_dir() && refusal(&inner).is_some();
            let holds_nameless = || parity_files_in(&inner).is_ok_and(|files| !files.is_empty());
            is_closed
                || named_files_in(&inner).is_ok_and(|it| !it.is_empty())
                || holds_nameless()
                || holds_named(path).unwrap_or(false)
        }
        false => ParityFile::recognise(path).is_some(),
    }
}

/// Whether a path has parity, as [`has_parity`] says, or is a folder of parity files that have lost
/// their names. To find these, all files in the folder are opened.
pub fn holds_parity(path: &Path) -> bool {
    has_parity(path) || parity_files_in(path).is_ok_and(|files| !files.is_empty())
}

/// Returns the protections whose parity is in some folders.
pub(crate) fn in_folders(folders: &[PathBuf]) -> Result<Vec<Protection>> {
    ParityPlaces::in_folders(folders_among(folders)?).protections()
}

/// Whether parity files of protection `id`, of this generation or a later one, have their final
/// names in some folders.
pub(crate) fn has_generation(folders: &[PathBuf], id: Id, generation: u32) -> Result<bool> {
    let is_later = |file: &ParityFile| {
        let Header { protection, generation: other, .. } = file.header;
        protection == id && other >= generation && !has_temporary_name(&file.path)
    };
    for folder in folders_among(folders)? {
        if parity_files_in(&folder)?.iter().any(is_later) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Refuses to take a folder as one without parity of `label` if there are files with names of such
/// parity that this process cannot read.
///
/// # Errors
/// If there are such files, or a folder cannot be read ([`ErrorKind::Io`]).
pub(crate) fn expect_read(folders: &[PathBuf], label: &str) -> Result<()> {
    let beginning = format!("{label}-");
    for folder in folders_among(folders)? {
        for path in named_files_in(&folder)? {
            let name = path.file_name().map(name_bytes).unwrap_or_default();
            if name.starts_with(beginning.as_bytes())
                && let Some(error) = refusal(&path)
            {
                return Err(Error::io("reading the parity", &path, &error));
            }
        }
    }
    Ok(())
}

fn group(files: &[ParityFile]) -> BTreeMap<Id, Vec<&ParityFile>> {
    let mut groups: BTreeMap<Id, Vec<&ParityFile>> = BTreeMap::new();
    for file in files {
        groups.entry(file.header.protection).or_default().push(file);
    }
    groups
}

/// Groups files into layers, the newest layer first. Layers that were never published are left out.
fn layers<'f>(files: &[&'f ParityFile]) -> Vec<Vec<&'f ParityFile>> {
    let mut layers = by_layer(files);
    layers.retain(|layer| is_published(layer));
    // Only forged layers can have equal generations. Among these, the layer with more files comes
    // first.
    layers.sort_by_key(|layer| {
        std::cmp::Reverse((layer[0].header.generation, layer.len(), layer[0].header.layer))
    });
    layers
}

/// Groups files by layer. The headers of a group describe the layer alike.
fn by_layer<'f>(files: &[&'f ParityFile]) -> Vec<Vec<&'f ParityFile>> {
    let mut layers: Vec<Vec<&ParityFile>> = Vec::new();
    for file in files {
        match layers.iter_mut().find(|layer| layer[0].header.agrees(&file.header)) {
            Some(layer) => layer.push(file),
            None => layers.push(vec![file]),
        }
    }
    layers
}

/// Whether any file of a layer has its final name. All files are complete before the first of them
/// gets its final name. If no file has one, another process may still be writing the layer, and may
/// yet give it up, so nothing may depend on it.
fn is_published(files: &[&ParityFile]) -> bool {
    !files.iter().all(|file| has_temporary_name(&file.path))
}

/// Whether a process was killed before all files of a layer existed.
fn is_unfinished(files: &[&ParityFile]) -> bool {
    !is_published(files) && !is_whole(files)
}

/// Whether all files of a layer are there.
fn is_whole(files: &[&ParityFile]) -> bool {
    let numbers: BTreeSet<u16> = files.iter().map(|file| file.header.index).collect();
    numbers.len() >= usize::from(files[0].header.count)
}

fn catalogue(files: &[&ParityFile]) -> Option<(Header, Vec<u8>, Catalogue)> {
    let bytes = read_catalogue(files).ok().flatten()?;
    let header = &files[0].header;
    let catalogue = Catalogue::decode(&bytes, &header.geometry).ok()?;
    Some((header.clone(), bytes, catalogue))
}

/// Returns the error of the newest catalogue that is there in full, if it cannot be used.
fn refused_catalogue(files: &[&ParityFile]) -> Option<Error> {
    let whole = |layer: &Vec<&ParityFile>| {
        let bytes = read_catalogue(layer).ok().flatten()?;
        Some(Catalogue::decode(&bytes, &layer[0].header.geometry))
    };
    layers(files).iter().find_map(whole)?.err()
}

/// Returns the newest catalogue that can be read.
fn newest(files: &[&ParityFile]) -> Option<(Header, Vec<u8>, Catalogue)> {
    layers(files).iter().find_map(|layer| catalogue(layer))
}

/// Assembles a protection from its newest catalogue and the layers that count.
fn assemble(known: KnownProtection<'_>, root: PathBuf) -> Result<Protection> {
    let KnownProtection { id, files, header, bytes, newest, .. } = known;
    let groups = layers(&files);
    let mut builder = Builder { entries: Vec::new(), layers: Vec::new() };
    // Layers that are newer than the newest one that can be read.
    let generations = files.iter().map(|file| file.header.generation);
    let mut newer: BTreeSet<u32> = groups.iter().map(|group| group[0].header.generation).collect();
    let named = named_generations(&files, id);
    newer.extend(&named);
    newer.retain(|&generation| generation > header.generation);
    let newest_generation = generations.chain(named).max().unwrap_or(0);
    let unreadable_layers = newer.len() + builder.add_older(&newest, &groups)?;
    let file = |_, item| Some(item);
    let files_of_newest = groups.iter().find(|group| group[0].header.agrees(&header));
    builder.add_layer(&header, files_of_newest, bytes, &newest, file)?;
    builder.add_others(&newest);
    if unreadable_layers > 0 {
        builder.drop_orphans();
    }
    let (entries, layers) = builder.finish()?;
    let stray = stray(&files, &layers);
    let left = left(&stray, &files, files_of_newest, (&header, &newest));
    let [stray, left] =
        [stray, left].map(|files| files.into_iter().map(|file| file.path.clone()).collect());
    let next_generation = newest_generation.saturating_add(1);
    let settings = settings_at(&root, newest.settings);
    Ok(Protection {
        root,
        has_moved: false,
        id,
        settings,
        layers,
        entries,
        unreadable_layers,
        stray,
        left,
        next_generation,
        part: None,
    })
}

/// Returns the generations of parity files that lie beside `files`, but are empty or damaged from
/// end to end. Only their names state them.
fn named_generations(files: &[&ParityFile], id: Id) -> BTreeSet<u32> {
    let folders: BTreeSet<&Path> = files.iter().filter_map(|file| file.path.parent()).collect();
    let named = folders.into_iter().flat_map(|folder| named_files_in(folder).unwrap_or_default());
    // What this process may not read is not known to be damaged.
    let is_damaged = |path: &PathBuf| {
        !has_temporary_name(path)
            && ParityFile::recognise(path).is_none()
            && refusal(path).is_none()
    };
    let generation = |path: &PathBuf| Header::generation_in(path, id);
    let stated = named.filter_map(|path| Some((generation(&path)?, path)));
    stated.filter(|(_, path)| is_damaged(path)).map(|(generation, _)| generation).collect()
}

struct Builder {
    entries: Vec<ProtectedEntry>,
    layers: Vec<Layer>,
}

fn lossy(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

impl std::fmt::Display for Protection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let files = counted(self.files(), "file");
        write!(f, "{} ({files}, {} bytes) in {}", self.label(), self.bytes(), shown(&self.root))
    }
}

#[cfg(test)]
mod tests;
