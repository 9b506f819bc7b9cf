//! Making parity for files that stay where they are.
//!
//! [`plan`] looks through the files and chooses the blocks, so that the cost is known before the
//! first byte is read. [`protect`] reads every byte once, in order, while the parity fits into the
//! memory that the job allows. If it does not, the first pass hashes everything and codes the
//! columns of the blocks that fit. Further passes read the other columns, each byte once more.

mod closed;
mod coded;
mod cost;
mod destination;

use std::collections::{HashMap, HashSet};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

#[cfg(doc)]
use paritas_store::error::ErrorKind;
use paritas_store::error::{Error, Result};
use paritas_store::place::attributes::{Access, Attributes, Timestamp};
use paritas_store::progress::Progress;
use paritas_store::setters;
use paritas_store::shown::{counted, shown};
use paritas_store::staging::commit_over;

use crate::access::{Guard, parity_access};
use crate::catalogue::{Catalogue, Details, Item, ItemKind, Older, Settings};
use crate::coding::passes_for_all;
use crate::details;
use crate::digest::FileDigest;
use crate::exclude::Excludes;
use crate::find::{EntryKind, Protection, has_generation};
use crate::format::{CatalogueShape, Header, Id};
use crate::geometry::{Redundancy, StreamGeometry, refuse_too_long};
use crate::parity::write_catalogue;
use crate::paths::{path_in, whole_bytes};
use crate::restored;
use crate::stream::{FileStamp, PieceFile, Stream};
use crate::times::ChangeTimes;
use crate::tree::{FoundEntry, FoundKind, Scope, Skipped, Tree, further_names, root_of, threads};
use crate::trouble;
pub(crate) use closed::ClosedFiles;
use coded::{CodedLayer, file_sizes};
pub use cost::ParityCost;
pub(crate) use destination::refuse_inside;
use destination::{at_root, label, make_folder, parity_folders, protected_already, refuse_skipped};
use paritas_store::memory::by_default;
use paritas_store::place::space::{NoRoom, Room};

/// Most memory that a job uses by default, in bytes.
const MOST_MEMORY: u64 = 1 << 30;
/// Number of parity files if all are in one folder. Any two of them may be lost.
const FILES: usize = 5;
/// Number of parity files in each folder if there are several folders.
const FILES_EACH: usize = 2;

/// The files to protect, and the settings: those of [`ProtectJob::new`], changed by setters of the
/// same names.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ProtectJob {
    /// The files and folders. A symbolic link among these paths is followed, a link inside a folder
    /// is not.
    pub paths: Vec<PathBuf>,
    /// The wanted size of the parity.
    pub redundancy: Redundancy,
    /// The folders for parity. If there are none, the parity goes to `.paritas` in the root.
    pub parity_dirs: Vec<PathBuf>,
    /// Patterns of paths that are left out, by the rules of gitignore: one without a slash is for
    /// names in any folder, others are for paths from the root on, one with a slash at its end is
    /// for folders alone, and one that begins with `!` takes in again what another one leaves out.
    /// An absolute path inside the root means that path.
    pub excludes: Vec<String>,
    /// Approximate limit of the memory for parity and data, in bytes.
    pub memory: u64,
    /// Largest number of threads. Default: the number that the machine runs at once.
    pub threads: Option<NonZeroUsize>,
    /// Whether folders at which another file system is mounted are left out.
    pub one_file_system: bool,
    /// The beginning of the parity files' names; by default the name of the root or of the only
    /// file.
    pub label: Option<String>,
    /// Whether a protection of the same label is replaced.
    pub force: bool,
    /// Whether everything is synced to the disk before the parity files get their names.
    pub sync: bool,
}

/// Returns the memory that a job uses by default, in bytes: 1 GiB, or a quarter of what this
/// process may use if that is less.
pub fn default_memory() -> u64 {
    by_default(MOST_MEMORY)
}

impl ProtectJob {
    /// Creates a job with the usual settings: a tenth of parity beside the files.
    pub fn new(paths: Vec<PathBuf>) -> Self {
        Self {
            paths,
            redundancy: Redundancy::USUAL,
            parity_dirs: Vec::new(),
            excludes: Vec::new(),
            memory: default_memory(),
            threads: None,
            one_file_system: false,
            label: None,
            force: false,
            sync: true,
        }
    }
}

setters! { ProtectJob {
    /// Makes about this much parity.
    redundancy: Redundancy,
    /// Puts the parity into these folders, which must exist.
    parity_dirs: Vec<PathBuf>,
    /// Leaves out paths that match these patterns.
    excludes: Vec<String>,
    /// Uses about `memory` bytes.
    memory: u64,
    /// Uses at most `threads` threads.
    threads: impl Into<Option<NonZeroUsize>>,
    /// Leaves out folders at which another file system is mounted, or looks into them.
    one_file_system: bool,
    /// Begins the names of parity files with `label`.
    label: impl Into<Option<String>>,
    /// Replaces a protection of the same label, or refuses to.
    force: bool,
    /// Turns syncing on or off.
    sync: bool,
} }

/// The work that [`protect`] will do, and its cost.
#[derive(Debug)]
#[non_exhaustive]
pub struct ProtectPlan {
    /// The root: paths in the catalogue are relative to it.
    pub root: PathBuf,
    /// The beginning of the parity files' names.
    pub label: String,
    /// Number of files. A file with several names counts once.
    pub files: u64,
    /// The blocks.
    pub geometry: StreamGeometry,
    /// The parity files that will be written.
    pub parity_files: Vec<PathBuf>,
    /// Number of bytes of the parity blocks.
    pub parity_bytes: u64,
    /// Number of bytes that will be read.
    pub bytes_to_read: u64,
    /// Number of passes over the data. The passes after the first read other columns each, so all
    /// of them together read a byte at most once more.
    pub passes: u64,
    /// Paths that were found and will not be protected.
    pub skipped: Vec<Skipped>,
    /// Patterns of the job that match nothing, perhaps because they are misspelt.
    pub unmatched_excludes: Vec<String>,
    pub(crate) order: LayerOrder,
}

/// Everything that making a layer needs.
#[derive(Debug, Clone)]
pub(crate) struct LayerOrder {
    pub root: PathBuf,
    pub settings: Settings,
    pub protection: Id,
    pub generation: u32,
    pub older: Vec<Older>,
    /// What is protected. The digests of files are zeros until the files are read.
    pub items: Vec<Item>,
    pub stream: Stream,
    /// The redundancy of this layer.
    pub redundancy: Redundancy,
    pub geometry: StreamGeometry,
    /// The folders for parity files.
    pub folders: Vec<PathBuf>,
    /// Parity files that are removed when the new ones have their names.
    pub replaced: Vec<PathBuf>,
    /// Who may use parity files.
    pub access: Access,
    pub memory: u64,
    pub threads: usize,
    pub sync: bool,
    /// The known digests of files, by path. A file with another digest is damaged.
    pub known: HashMap<Vec<u8>, FileDigest>,
}

/// The result of protecting.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ProtectReport {
    /// The id of the protection.
    pub id: Id,
    /// Number of protected files.
    pub files: u64,
    /// Number of bytes of these files.
    pub bytes: u64,
    /// The blocks.
    pub geometry: StreamGeometry,
    /// The parity files.
    pub parity_files: Vec<PathBuf>,
    /// Number of bytes of all parity files, with catalogues.
    pub stored_bytes: u64,
    /// Number of bytes of the catalogue.
    pub catalogue_bytes: u64,
    /// Paths that are not protected: sockets and devices, paths that could not be read, and files
    /// that changed while they were read.
    pub skipped: Vec<Skipped>,
    /// Patterns of the job that match nothing, as in [`ProtectPlan::unmatched_excludes`].
    pub unmatched_excludes: Vec<String>,
    /// Number of data blocks with bytes of files that could not be read as planned. These blocks
    /// count as lost from the beginning, so each uses up one parity block.
    pub gap_blocks: u64,
    /// Attributes of parity files that file systems refused to keep, and extended attributes that
    /// are too large to be recorded, in words.
    pub warnings: Vec<String>,
}

/// Looks through the files of a job and chooses their blocks.
///
/// # Errors
/// If a path does not exist or cannot be read, or `.paritas` in the root is a symbolic link
/// ([`ErrorKind::Io`]), a setting cannot be used or the parity would lie inside the protected files
/// ([`ErrorKind::Parameters`]), or the files are protected already ([`ErrorKind::Exists`]).
pub fn plan(job: &ProtectJob) -> Result<ProtectPlan> {
    let (root, starts) = root_of(&job.paths)?;
    let excludes = Excludes::given(&root, &job.excludes, &["excludes"])?;
    plan_in(root, starts, excludes, job)
}

/// Does what [`plan`] does for paths relative to a root, and for patterns, instead of those of the
/// job.
pub(crate) fn plan_in(
    root: PathBuf,
    starts: Vec<Vec<u8>>,
    excludes: Excludes,
    job: &ProtectJob,
) -> Result<ProtectPlan> {
    let scope = Scope { excludes, one_file_system: job.one_file_system };
    let threads = threads(job.threads);
    let label = label(job, &root, &starts)?;
    let folders = parity_folders(job, &root)?;
    let tree = Tree::walk(&root, &starts, &scope, threads);
    let walked = WalkedFiles { root, starts, scope, tree };
    walked.expect_usable(&folders)?;
    let old = protected_already((&walked.root, &walked.starts), &folders, job, &label)?;
    let settings = walked.settings(job, &label, &folders);
    let WalkedFiles { root, scope, mut tree, .. } = walked;
    let known = known_bytes(&old, &mut tree);
    let mut items = items(&root, &tree.found, |_| None, threads);
    let closed = ClosedFiles::among(&root, items.iter(), threads);
    items.retain(|item| !closed.has(item));
    tree.skipped.extend(closed.skipped(&root));
    let stream = stream(&root, &items, job.redundancy)?;
    let access = parity_access(&root, &folders, items.iter().filter_map(Guard::of_item));
    let order = LayerOrder {
        settings,
        // A new protection in the place of an old one is a later layer of it, so that there is one
        // protection at each moment.
        protection: old.first().map_or_else(Id::random, |old| Ok(old.id()))?,
        generation: old.first().map_or(0, |old| old.next_generation),
        older: Vec::new(),
        redundancy: job.redundancy,
        geometry: StreamGeometry::choose(stream.length(), job.redundancy)?,
        stream,
        items,
        folders,
        replaced: old.iter().flat_map(replaceable).collect(),
        access,
        memory: job.memory,
        threads,
        sync: job.sync,
        known,
        root,
    };
    Ok(order.plan(tree.skipped, scope.excludes.unmatched()))
}

/// Returns the digests that old protections have of files which nobody has changed since, by path:
/// they still have the time that they had, and the system does not say that they were touched.
fn known_bytes(old: &[Protection], tree: &mut Tree) -> HashMap<Vec<u8>, FileDigest> {
    let mut known = HashMap::new();
    for protection in old {
        tree.match_paths(protection.entries.iter().map(|entry| entry.path.as_slice()));
        let times = ChangeTimes::of(protection, tree);
        for (number, entry) in protection.entries.iter().enumerate() {
            let EntryKind::File { digest, .. } = entry.kind else { continue };
            let Some(found) = tree.of(number) else { continue };
            let is_unchanged = matches!(found.kind, FoundKind::File { .. })
                && found.modified == entry.modified
                && !times.was_touched(entry, found.changed);
            if is_unchanged {
                known.insert(found.path.clone(), digest);
            }
        }
    }
    known
}

/// The files of a job, as a walk has found them.
struct WalkedFiles {
    root: PathBuf,
    /// The paths that were given, relative to the root.
    starts: Vec<Vec<u8>>,
    scope: Scope,
    tree: Tree,
}

impl WalkedFiles {
    /// Refuses paths that were given and cannot be protected, and folders for parity that lie among
    /// the protected files.
    fn expect_usable(&self, folders: &[PathBuf]) -> Result<()> {
        refuse_skipped(&self.root, &self.starts, &self.tree)?;
        let starts: Vec<&[u8]> = self.starts.iter().map(Vec::as_slice).collect();
        refuse_inside(&self.root, &starts, &self.tree, folders)
    }

    /// Returns the settings of a new protection of the files.
    fn settings(&self, job: &ProtectJob, label: &str, folders: &[PathBuf]) -> Settings {
        Settings {
            label: label.as_bytes().to_vec().into(),
            root: whole_bytes(&self.root).into(),
            starts: self.starts.iter().cloned().map(Into::into).collect(),
            excludes: self.scope.excludes.lines(),
            gitignore: self.scope.excludes.follow_gitignore(),
            redundancy: job.redundancy.millionths(),
            created: now(),
            folders: match job.parity_dirs.is_empty() {
                true => Vec::new(),
                false => folders.iter().map(|folder| whole_bytes(folder).into()).collect(),
            },
            mounts: self.tree.mounts.iter().cloned().map(Into::into).collect(),
            one_file_system: job.one_file_system,
        }
    }
}

impl LayerOrder {
    /// Returns an order for those of its items that are no gaps.
    fn of_files_in(&self, mut items: Vec<Item>) -> Result<Self> {
        items.retain(|item| !matches!(item.kind, ItemKind::Gap { .. }));
        let stream = stream(&self.root, &items, self.redundancy)?;
        let geometry = StreamGeometry::choose(stream.length(), self.redundancy)?;
        Ok(Self { items, stream, geometry, ..self.clone() })
    }

    /// Returns the paths of the parity files.
    pub fn targets(&self) -> Vec<PathBuf> {
        let header = self.header(Id::new([0; 16]));
        let folders = self.folders.iter().cycle();
        let name = |index| header.name(&self.settings.label, index);
        (0..self.count()).zip(folders).map(|(index, folder)| folder.join(name(index))).collect()
    }

    /// Returns the number of parity files.
    pub fn count(&self) -> u16 {
        match self.folders.len() {
            1 => FILES as u16,
            several => (several * FILES_EACH) as u16,
        }
    }

    /// Says what making the layer takes.
    pub fn plan(self, skipped: Vec<Skipped>, unmatched_excludes: Vec<String>) -> ProtectPlan {
        let passes = self.passes().len() as u64;
        let once = self.geometry.length;
        let first = self.passes().first().map_or(0, |columns| columns.end - columns.start);
        let again = if passes > 1 { (self.geometry.block - first) * self.geometry.data } else { 0 };
        ProtectPlan {
            root: self.root.clone(),
            label: String::from_utf8_lossy(&self.settings.label).into_owned(),
            files: self.items.iter().filter(|item| item.is_file()).count() as u64,
            geometry: self.geometry,
            parity_files: self.targets(),
            parity_bytes: self.geometry.parity * self.geometry.block,
            bytes_to_read: once + again.min(once),
            passes,
            skipped,
            unmatched_excludes,
            order: self,
        }
    }

    /// Returns the folders in which parity files are made or removed.
    fn all_folders(&self) -> Vec<PathBuf> {
        let old = existing(&self.replaced).into_iter();
        let old = old.filter_map(|path| path.parent().map(Path::to_owned));
        let mut folders = self.folders.clone();
        for folder in old {
            if !folders.contains(&folder) {
                folders.push(folder);
            }
        }
        folders
    }

    /// Returns the header of the first file, before the catalogue is known.
    pub fn header(&self, layer: Id) -> Header {
        let count = self.count();
        Header {
            protection: self.protection,
            layer,
            generation: self.generation,
            index: 0,
            count,
            geometry: self.geometry,
            catalogue: CatalogueShape::choose(&[], count, 0),
        }
    }

    /// Returns the ranges of columns, one for each pass.
    fn passes(&self) -> Vec<Range<u64>> {
        passes_for_all(&self.geometry, self.memory)
    }
}

/// Makes the parity of a plan, and puts it where the plan says. `progress` gets the number of bytes
/// as they are read.
///
/// # Errors
/// In each case no new parity is made, and the old parity stays:
/// - a parity file cannot be written ([`ErrorKind::Io`]);
/// - the memory is short ([`ErrorKind::Memory`]);
/// - another process protects the same files ([`ErrorKind::Busy`]);
/// - files change while they are read, so the new parity would repair less than the old one
///   ([`ErrorKind::Busy`]).
pub fn protect(plan: &ProtectPlan, progress: Progress<'_>) -> Result<ProtectReport> {
    expect_room(&plan.order)?;
    plan.order.folders.iter().try_for_each(|folder| make_folder(folder, &plan.order))?;
    let (order, coded) = CodedLayer::make(&plan.order, progress)?;
    let order = &*order;
    refuse_damaged(order, &coded.items)?;
    let CodedLayer { header, files, items, checksums, mut skipped, gap_blocks } = coded;
    skipped.splice(0..0, plan.skipped.iter().cloned());
    let targets = order.targets();
    let sizes = file_sizes(&items);
    let (files_count, bytes) = (sizes.clone().count() as u64, sizes.sum());
    let catalogue = encoded_catalogue(order, items, checksums)?;
    let parity_bytes = order.geometry.parity * order.geometry.block;
    let shape = CatalogueShape::choose(&catalogue, header.count, parity_bytes);
    let header = Header { catalogue: shape, ..header };
    header.expect_readable()?;
    write_catalogue(&header, &catalogue, |index| files.get(usize::from(index)))?;
    let old = || refuse_rivals(order).map(|()| existing(&order.replaced));
    let mut warnings = commit_over(&order.all_folders(), old, files, order.sync)?.warnings();
    warnings.extend(left_out(order));
    Ok(ProtectReport {
        id: order.protection,
        files: files_count,
        bytes,
        geometry: order.geometry,
        parity_files: targets,
        stored_bytes: (0..header.count).map(|index| header.file_length(index)).sum(),
        catalogue_bytes: shape.length,
        skipped,
        unmatched_excludes: plan.unmatched_excludes.clone(),
        gap_blocks,
        warnings,
    })
}

/// Returns a warning if there are extended attributes that are not recorded.
fn left_out(order: &LayerOrder) -> Option<String> {
    let mut cut = order.items.iter().filter(|item| item.details.is_cut);
    let first = path_in(&order.root, &cut.next()?.path);
    Some(format!(
        "some extended attributes of {} are not recorded, so a repair cannot bring them \
         back if the file is gone; the first: {}",
        counted(1 + cut.count(), "path"),
        shown(&first)
    ))
}

/// Returns the bytes of a layer's catalogue.
fn encoded_catalogue(order: &LayerOrder, items: Vec<Item>, checksums: Vec<u64>) -> Result<Vec<u8>> {
    let (settings, older) = (order.settings.clone(), order.older.clone());
    Catalogue { settings, older, items, checksums }.encode()
}

/// Refuses to begin if a disk has no room for its parity files. The files that they will replace
/// stay until they are complete. The names in the catalogue are not counted, because it is not
/// known yet how well they compress.
fn expect_room(order: &LayerOrder) -> Result<()> {
    let header = order.header(Id::new([0; 16]));
    let files = order.items.iter().filter(|item| item.size().is_some()).count();
    let sums = files * size_of::<FileDigest>() + order.geometry.data as usize * size_of::<u64>();
    let each = sums as u64 / u64::from(header.count);
    let targets = (0..header.count).zip(order.targets());
    let needs = targets.map(|(index, path)| (path, header.file_length(index) + each));
    let way = match order.generation {
        0 => "make room, choose another disk by `parity_dirs`, or a lower `redundancy`",
        // An update keeps the folders and the redundancy.
        _ => "make room",
    };
    Room::default().take_all(&needs.collect::<Vec<_>>()).map_err(|refused| {
        let NoRoom { path, needed, left } = refused;
        let folder = shown(path.parent().unwrap_or(&path)).to_string();
        Error::failed(format!(
            "the parity in {folder} takes about {needed} bytes, and its disk has room for \
             {left}; {way}"
        ))
        .naming(&["parity_dirs", "redundancy"])
    })
}

/// Refuses to go on if another process has protected the same files since this was planned.
fn refuse_rivals(order: &LayerOrder) -> Result<()> {
    let is_rival = match order.generation {
        0 => {
            let label = String::from_utf8_lossy(&order.settings.label);
            let mut others = at_root(&order.root, &order.folders)?;
            others.retain(|other| other.label() == label);
            others.iter().any(|other| other.id() != order.protection)
        }
        generation => has_generation(&order.all_folders(), order.protection, generation)?,
    };
    match is_rival {
        true => Err(Error::busy(format!(
            "{}: another process has protected it meanwhile, so nothing was changed",
            shown(&order.root)
        ))),
        false => Ok(()),
    }
}

/// Returns the files to be removed that are still there.
fn existing(replaced: &[PathBuf]) -> Vec<PathBuf> {
    replaced.iter().filter(|path| path.exists()).cloned().collect()
}

/// Refuses to protect the present bytes of a damaged file as if they were right, and to leave out a
/// file that could not be read, because the old parity may be able to repair it.
fn refuse_damaged(order: &LayerOrder, items: &[Item]) -> Result<()> {
    if order.known.is_empty() {
        return Ok(());
    }
    let is_damaged = |item: &&Item| match item.kind {
        ItemKind::File { digest, .. } => {
            order.known.get(&item.path).is_some_and(|known| *known != digest)
        }
        _ => false,
    };
    if let Some(item) = items.iter().find(is_damaged) {
        return Err(trouble::damaged(&path_in(&order.root, &item.path)));
    }
    let files = items.iter().filter(|item| item.is_file());
    let files: HashSet<&Vec<u8>> = files.map(|item| &item.path).collect();
    // A file that has another time by now was changed on purpose.
    let planned = order.items.iter().map(|item| (&item.path, item.modified));
    let planned: HashMap<&Vec<u8>, Timestamp> = planned.collect();
    let is_changed = |path: &Vec<u8>| {
        let now = path_in(&order.root, path).symlink_metadata().ok();
        let now = now.and_then(|now| Attributes::of(&now).modified);
        now.is_some_and(|now| planned.get(path).is_some_and(|then| *then != now))
    };
    let is_unread = |path: &&Vec<u8>| !files.contains(path) && !is_changed(path);
    match order.known.keys().filter(is_unread).min() {
        Some(path) => Err(trouble::unread(&path_in(&order.root, path))),
        None => Ok(()),
    }
}

/// Returns the files that are removed once all parity was made anew.
pub(crate) fn replaceable(protection: &Protection) -> impl Iterator<Item = PathBuf> + '_ {
    let parity = protection.parity_files().map(Path::to_owned);
    parity.chain(restored::places(protection))
}

/// Turns the findings in a tree into items of a catalogue. Details that `known` returns for an
/// index in `found` are not read again.
pub(crate) fn items(
    root: &Path,
    found: &[FoundEntry],
    known: impl Fn(usize) -> Option<Details> + Sync,
    threads: usize,
) -> Vec<Item> {
    let further = further_names(root, found);
    let item = |(found, details): (&FoundEntry, Details)| {
        let kind = match &found.kind {
            FoundKind::Folder => ItemKind::Folder,
            FoundKind::Symlink { target } => ItemKind::Symlink { target: target.clone() },
            FoundKind::File { size, .. } => match further.get(&found.path[..]) {
                Some(target) => ItemKind::HardLink { target: target.to_vec() },
                None => ItemKind::File { size: *size, digest: [0; 16] },
            },
        };
        // A further name has the details of its file.
        let is_further = matches!(kind, ItemKind::HardLink { .. });
        let details = if is_further { Details::default() } else { details };
        let &FoundEntry { ref path, mode, modified, .. } = found;
        Item { path: path.clone(), mode, modified, details, kind }
    };
    found.iter().zip(details::of_all(root, found, known, threads)).map(item).collect()
}

/// Returns the stream of some items.
///
/// # Errors
/// If they have too many bytes together ([`ErrorKind::Parameters`]).
pub(crate) fn stream(root: &Path, items: &[Item], redundancy: Redundancy) -> Result<Stream> {
    let sizes = items.iter().filter_map(Item::size);
    refuse_too_long(sizes.map(u128::from).sum(), redundancy)?;
    let mut stream = Stream::default();
    for item in items {
        if let Some(size) = item.size() {
            let (modified, owner) = (item.modified, item.details.owner);
            let expected = Some(FileStamp { size, modified, owner });
            stream.push(size, Some(PieceFile { path: path_in(root, &item.path), expected }));
        }
    }
    Ok(stream)
}

pub(crate) fn now() -> Timestamp {
    Timestamp::of(SystemTime::now()).unwrap_or_default()
}
