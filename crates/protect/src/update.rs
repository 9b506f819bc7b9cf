//! Bringing a protection up to date after changes.
//!
//! Files that are as they were keep their parity. New and changed files get a new layer, whose
//! catalogue says which parts of the older layers still count. If few files are new, the layer has
//! more parity than the redundancy asks for, so that the largest of them can be restored, just as
//! it could have been if it had been there from the beginning. The old bytes of files that have
//! vanished or changed are lost to their layer for ever, so less damage to the other files of that
//! layer can be repaired. When that takes more than half of a layer's parity, or there are many
//! layers, everything is made anew. The old parity stands until the new one has its names.
//!
//! [`plan_update`] compares, so that it is known what will be given up before anything is written
//! (`guard.rs` has the limit). [`UpdatePlan::carry_out`] writes.

mod compare;
mod guard;
mod held;

use std::cell::LazyCell;
use std::collections::{HashMap, HashSet, VecDeque};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use paritas_store::error::{Error, Result};
use paritas_store::place::attributes::Access;
use paritas_store::progress::Progress;
use paritas_store::setters;
use paritas_store::shown::{counted, shown};
use paritas_store::staging::has_temporary_name;

use crate::access::{Guard, narrow, parity_access};
use crate::catalogue::{Item, ItemKind, MOST_OLDER, Older};
use crate::create::{
    LayerOrder, ProtectJob, ProtectPlan, ProtectReport, default_memory, items, now, plan_in,
    protect, refuse_inside, replaceable, stream,
};
use crate::digest::FileDigest;
use crate::exclude::Excludes;
use crate::find::{EntryKind, Layer, ProtectedEntry, Protection};
use crate::folding::match_folded;
use crate::geometry::{Redundancy, StreamGeometry};
use crate::paths::path_in;
use crate::scan::{FileContent, contents, digest_of};
use crate::times::{ChangeTimes, has_time_now, is_news};
use crate::tree::{Skipped, Tree, threads};
use crate::trouble;
use guard::GoneShare;
pub use guard::Share;
use held::Held;

/// Largest number of layers.
const MOST_LAYERS: usize = 8;

/// The settings of an update.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct UpdateJob {
    /// Whether every file is read and compared by its digest. Otherwise files that have the right
    /// size and times count as unchanged, but a file is read if its ctime, the time of change that
    /// the system sets, is new.
    pub checksum: bool,
    /// Whether everything is made anew, whatever has changed.
    pub anew: bool,
    /// The largest share of the protected files, and of their bytes, that may be gone or changed.
    /// If more is, and it is at least twenty files, nothing is written.
    pub most_changed: Share,
    /// Whether any number of files may be gone or changed. Disks that are not mounted and folders
    /// without their parity are given up as well.
    pub accept_changes: bool,
    /// Patterns of files, by the rules of gitignore. Any number of matching files may be gone.
    pub accept_removals: Vec<String>,
    /// Approximate limit of the memory for parity and data, in bytes.
    pub memory: u64,
    /// Largest number of threads. Default: the number that the machine runs at once.
    pub threads: Option<NonZeroUsize>,
    /// Whether everything is synced to the disk before the parity files get their names.
    pub sync: bool,
}

impl Default for UpdateJob {
    /// Trusts sizes and times, and makes only the parity that is needed.
    fn default() -> Self {
        Self {
            checksum: false,
            anew: false,
            most_changed: Share::HALF,
            accept_changes: false,
            accept_removals: Vec::new(),
            memory: default_memory(),
            threads: None,
            sync: true,
        }
    }
}

setters! { UpdateJob {
    /// Compares files by their digests, or by size and time.
    checksum: bool,
    /// Makes everything anew, or what is needed.
    anew: bool,
    /// Refuses to go on if more than this share of the files or bytes is gone or changed.
    most_changed: Share,
    /// Goes on however much is gone or changed, or not.
    accept_changes: bool,
    /// Does not count files that are gone if their paths match one of these patterns.
    accept_removals: Vec<String>,
    /// Uses about `memory` bytes.
    memory: u64,
    /// Uses at most `threads` threads.
    threads: impl Into<Option<NonZeroUsize>>,
    /// Turns syncing on or off.
    sync: bool,
} }

/// The way in which a protection was brought up to date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Updated {
    /// Nothing has changed.
    Nothing,
    /// New and changed files got a layer of their own.
    Layer,
    /// Everything was made anew.
    Anew,
}

/// The files that have changed since a protection was made or updated.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChangedFiles {
    /// New files, whose bytes were not protected before.
    pub added: Vec<PathBuf>,
    /// Files that had other bytes when they were protected before.
    pub changed: Vec<PathBuf>,
    /// Files that do not exist any more, under any name.
    pub gone: Vec<PathBuf>,
}

impl ChangedFiles {
    /// Whether no file is new, changed or gone.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.changed.is_empty() && self.gone.is_empty()
    }
}

/// What an update will do, and what it will give up.
#[derive(Debug)]
#[non_exhaustive]
pub struct UpdatePlan<'p> {
    /// What will be done.
    pub updated: Updated,
    /// Number of files whose bytes are protected already, under this name or another.
    pub kept: u64,
    /// The files that have changed.
    pub files: ChangedFiles,
    /// The parity that will be written, if any.
    pub parity: Option<ProtectPlan>,
    /// Places that cannot be looked at now, as in [`UpdateReport::held`].
    pub held: Vec<Skipped>,
    /// Paths that were found and will not be protected.
    pub skipped: Vec<Skipped>,
    protection: &'p Protection,
    /// Who may use the parity from now on.
    access: Access,
    refusal: Option<Error>,
}

impl UpdatePlan<'_> {
    /// Returns why the update will not be carried out: too many files are gone or changed
    /// ([`crate::ErrorKind::TooManyChanges`]).
    pub fn refusal(&self) -> Option<&Error> {
        self.refusal.as_ref()
    }

    /// Writes the new parity. `progress` gets the number of bytes as they are read.
    ///
    /// # Errors
    /// As for [`protect`], and if too many files are gone or changed
    /// ([`crate::ErrorKind::TooManyChanges`]), or a file turns out to be damaged
    /// ([`crate::ErrorKind::DigestMismatch`]).
    pub fn carry_out(self, progress: Progress<'_>) -> Result<UpdateReport> {
        let Self { updated, kept, files, parity, held, skipped, protection, access, refusal } =
            self;
        if let Some(refusal) = refusal {
            return Err(refusal);
        }
        let mut warnings = narrow(protection.parity_files(), access);
        if updated == Updated::Nothing {
            protection.remove_left();
        }
        let protected = parity.map(|plan| protect(&plan, progress)).transpose()?;
        if updated != Updated::Anew {
            protection.name_unnamed();
        }
        let skipped = protected.as_ref().map_or(skipped, |report| report.skipped.clone());
        warnings.retain(|one| protected.as_ref().is_none_or(|new| !new.warnings.contains(one)));
        Ok(UpdateReport {
            updated,
            kept,
            added: files.added.len() as u64,
            changed: files.changed.len() as u64,
            gone: files.gone.len() as u64,
            files,
            protected,
            held,
            skipped,
            warnings,
        })
    }
}

/// The result of an update.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct UpdateReport {
    /// What was done.
    pub updated: Updated,
    /// Number of files whose bytes were protected already, under this name or another.
    pub kept: u64,
    /// Number of new files, whose bytes were not protected before.
    pub added: u64,
    /// Number of files that had other bytes when they were protected before.
    pub changed: u64,
    /// Number of files that do not exist any more, under any name.
    pub gone: u64,
    /// The files that are counted, except the files that were kept.
    pub files: ChangedFiles,
    /// The report on the new parity, if any was written.
    pub protected: Option<ProtectReport>,
    /// Places that cannot be looked at now: disks that are not mounted, and what cannot be read.
    /// What is protected there stays protected as it was.
    pub held: Vec<Skipped>,
    /// Paths that are not protected, as in [`ProtectReport::skipped`], also if no parity was
    /// written.
    pub skipped: Vec<Skipped>,
    /// What the system refused when older parity was to be as closed as the files are now, in
    /// words.
    pub warnings: Vec<String>,
}

/// Brings a protection up to date: plans it, and carries it out. `progress` gets the number of
/// bytes as they are read for new parity.
///
/// # Errors
/// As for [`plan_update`] and [`UpdatePlan::carry_out`].
pub fn update(
    protection: &Protection,
    job: &UpdateJob,
    progress: Progress<'_>,
) -> Result<UpdateReport> {
    plan_update(protection, job)?.carry_out(progress)
}

/// Looks for what has changed, and plans the parity that this takes. Nothing is written.
///
/// # Errors
/// As for [`crate::plan`], and in these cases:
/// - a file has the right time but other bytes or another size, so that it is damaged and must be
///   repaired first ([`crate::ErrorKind::DigestMismatch`]);
/// - a file that is compared with its digest cannot be read ([`crate::ErrorKind::Io`]); a folder
///   that cannot be looked into is kept as it is protected;
/// - only a part of the protection was asked for, the parity lies inside the protected files, none
///   of the paths that were given to protect exists any more, or a pattern cannot be read
///   ([`crate::ErrorKind::Parameters`]);
/// - all parity must be made anew while a disk or a folder for parity is absent
///   ([`crate::ErrorKind::Io`]).
pub fn plan_update<'p>(protection: &'p Protection, job: &UpdateJob) -> Result<UpdatePlan<'p>> {
    protection.expect_whole()?;
    let removable = Excludes::given(&protection.root, &job.accept_removals, &["accept_removals"])?;
    let mut tree = protection.walk(threads(job.threads))?;
    tree.match_paths(protection.entries.iter().map(|entry| entry.path.as_slice()));
    match_folded(protection, &mut tree);
    refuse_all_gone(protection)?;
    let starts: Vec<&[u8]> = protection.starts().collect();
    refuse_inside(&protection.root, &starts, &tree, &protection.parity_folders())?;
    let times = ChangeTimes::of(protection, &tree);
    let mut changes = Changes::new(protection, &tree, times, job)?;
    let held = Held::new(protection, &tree, job.accept_changes);
    changes.hold(protection, &held)?;
    changes.refuse_emptied(protection, &tree)?;
    let updated = match () {
        () if job.anew || changes.needs_all(protection) && held.is_nothing() => {
            held.refuse_anew()?;
            Updated::Anew
        }
        () if changes.is_nothing(protection) => Updated::Nothing,
        () if is_full(protection) => {
            held.refuse_anew()?;
            Updated::Anew
        }
        () => Updated::Layer,
    };
    let parity = match updated {
        Updated::Nothing => None,
        Updated::Layer => Some(changes.layer(protection, job, &held, &tree)?),
        Updated::Anew => Some(changes.anew(protection, job)?),
    };
    let most = if job.accept_changes { Share::ALL } else { job.most_changed };
    let refusal = changes.losses(protection, &removable).refusal(protection, most);
    let (kept, files) = (changes.kept, changes.files(protection));
    let access = changes.parity_access(protection);
    let (held, skipped) = (held.places, changes.skipped(&tree));
    Ok(UpdatePlan { updated, kept, files, parity, held, skipped, protection, access, refusal })
}

/// Refuses to treat everything as removed: perhaps a disk is not mounted.
fn refuse_all_gone(protection: &Protection) -> Result<()> {
    if protection.starts().any(|start| is_there(protection, start)) {
        return Ok(());
    }
    let starts = protection.starts().map(|start| path_in(&protection.root, start));
    let starts: Vec<String> = starts.map(|path| shown(&path).to_string()).collect();
    Err(Error::parameters(format!(
        "nothing that was protected is there any more: {}; mount its disk, or protect what has \
         taken its place anew",
        starts.join(", ")
    )))
}

/// Returns the error for a folder that holds nothing now, although `files` files in it are
/// protected.
fn emptied_start(folder: &Path, files: u64) -> Error {
    Error::parameters(format!(
        "{} is empty, but {} in it {} protected; its disk may not be mounted; if the files are \
         gone for good, remove their parity; if that also protects other folders, remove this empty \
         folder instead",
        shown(folder),
        counted(files, "file"),
        if files == 1 { "is" } else { "are" }
    ))
}

/// Whether there is something at a path that was given to protect.
fn is_there(protection: &Protection, start: &[u8]) -> bool {
    path_in(&protection.root, start).symlink_metadata().is_ok()
}

/// Whether no layer can be added: a layer is unreadable, so that a new one would not list it, or
/// there are already the most layers that a catalogue may list.
fn is_full(protection: &Protection) -> bool {
    protection.unreadable_layers > 0 || protection.layers.len() >= MOST_OLDER
}

/// The bytes of a file that is protected already: number of the layer and of the piece.
type KnownPiece = (usize, usize);

/// The changes since a protection was made or updated.
struct Changes<'p> {
    times: ChangeTimes<'p>,
    /// Everything that is there, with [`ItemKind::Kept`] for files whose bytes are protected.
    items: Vec<Item>,
    kept: u64,
    /// Paths of files whose bytes are not protected, without those in `changed`.
    added: Vec<Vec<u8>>,
    /// Numbers of the entries whose bytes are gone, and whose names other files have.
    changed: Vec<usize>,
    /// Numbers of the other entries whose bytes are gone.
    gone: Vec<usize>,
    /// New files that cannot be opened, and why.
    closed: Vec<Skipped>,
    /// The pieces that still are files.
    alive: HashSet<KnownPiece>,
}

impl<'p> Changes<'p> {
    fn new(
        protection: &'p Protection,
        tree: &Tree,
        times: ChangeTimes<'p>,
        job: &UpdateJob,
    ) -> Result<Self> {
        let mut items = present(protection, tree, job);
        let mut changes = Self {
            times,
            items: Vec::new(),
            kept: 0,
            added: Vec::new(),
            changed: Vec::new(),
            gone: Vec::new(),
            closed: Vec::new(),
            alive: HashSet::new(),
        };
        changes.keep_in_place(protection, tree, job, &mut items)?;
        changes.keep_moved(protection, job, &mut items);
        changes.leave_closed(protection, &mut items, job.threads)?;
        changes.note_new(protection, &items);
        changes.note_gone(protection, &items);
        changes.items = items;
        Ok(changes)
    }

    /// Refuses to treat all content of a folder that was given to protect as removed, if the folder
    /// exists and is empty now: perhaps a disk is not mounted on it.
    fn refuse_emptied(&self, protection: &Protection, tree: &Tree) -> Result<()> {
        let content = |entry| content(entry).filter(|(size, _)| *size > 0);
        let alive = protection.entries.iter().filter(|entry| self.is_alive(entry));
        let kept = LazyCell::new(|| alive.filter_map(content).collect::<HashSet<_>>());
        let is_emptied = |start: &&[u8]| is_there(protection, start) && !tree.holds_any(start);
        for start in protection.starts().filter(is_emptied) {
            // What was moved is under another name now.
            let inner = protection.entries[protection.below(start)].iter().filter_map(content);
            let gone = inner.filter(|content| !kept.contains(content)).count() as u64;
            if gone > 0 {
                return Err(emptied_start(&path_in(&protection.root, start), gone));
            }
        }
        Ok(())
    }

    /// Returns the number of the protected file whose name another file has now, if its own bytes
    /// are found nowhere.
    fn changed_entry(&self, protection: &Protection, item: &Item) -> Option<usize> {
        let is_lost = |number: &usize| {
            let entry = &protection.entries[*number];
            entry.is_file() && !self.is_alive(entry)
        };
        protection.entry_at(&item.path).filter(is_lost)
    }

    /// Returns the paths that were found and will not be protected.
    fn skipped(&self, tree: &Tree) -> Vec<Skipped> {
        [&tree.skipped[..], &self.closed].concat()
    }

    /// Returns how much is gone or changed, without what may be removed.
    fn losses(&self, protection: &Protection, removable: &Excludes) -> GoneShare {
        let entry = |&number: &usize| &protection.entries[number];
        let gone = self.gone.iter().map(entry).filter(|entry| !removable.covers(&entry.path));
        gone.chain(self.changed.iter().map(entry)).fold(GoneShare::default(), |share, entry| {
            GoneShare { files: share.files + 1, bytes: share.bytes + entry.size() }
        })
    }

    /// Returns the paths of what has changed.
    fn files(&self, protection: &Protection) -> ChangedFiles {
        let at = |path: &Vec<u8>| path_in(&protection.root, path);
        let of = |numbers: &[usize]| {
            numbers.iter().map(|&number| at(&protection.entries[number].path)).collect()
        };
        ChangedFiles {
            added: self.added.iter().map(at).collect(),
            changed: of(&self.changed),
            gone: of(&self.gone),
        }
    }

    /// Takes an item as the file of an entry.
    fn keep(&mut self, item: &mut Item, entry: &ProtectedEntry) {
        if let EntryKind::File { layer, piece, .. } = entry.kind {
            self.kept += 1;
            self.alive.insert((layer, piece));
            item.kind = ItemKind::Kept { layer: layer as u32, piece: piece as u32 };
        }
    }

    fn is_alive(&self, entry: &ProtectedEntry) -> bool {
        place_of(entry).is_some_and(|place| self.alive.contains(&place))
    }

    /// Whether everything must be made anew, because one more layer would not do.
    fn needs_all(&self, protection: &Protection) -> bool {
        let is_worn = |(number, layer): (usize, &Layer)| {
            let is_dead = |piece| !self.alive.contains(&(number, piece));
            layer.dead_blocks(is_dead) * 2 > layer.header.geometry.parity
        };
        let layers = protection.layers.iter().enumerate();
        protection.unreadable_layers > 0
            || protection.layers.len() >= MOST_LAYERS
            || layers.filter(|(_, layer)| layer.header.geometry.data > 0).any(is_worn)
    }

    fn is_nothing(&self, protection: &Protection) -> bool {
        !protection.has_moved
            && self.items.len() == protection.entries.len()
            && self
                .items
                .iter()
                .zip(&protection.entries)
                .all(|(item, entry)| self.is_same(item, entry))
    }

    /// Plans a layer for what is new or changed.
    fn layer(
        &mut self,
        protection: &Protection,
        job: &UpdateJob,
        held: &Held,
        tree: &Tree,
    ) -> Result<ProtectPlan> {
        let emptied = emptied(protection);
        let older = (0..protection.layers.len() - usize::from(emptied.is_some()))
            .map(|number| self.older(number, &protection.layers[number]))
            .collect();
        // Files that are exactly as an older layer describes them are not listed again.
        let items = self.new_items(protection);
        let mut settings = protection.settings.clone();
        settings.created = now();
        settings.mounts = held.mounts.iter().cloned().map(Into::into).collect();
        let stream = stream(&protection.root, &items, protection.redundancy())?;
        let redundancy = layer_redundancy(protection, &items, stream.length());
        let folders = held.folders(protection);
        let access = self.parity_access(protection);
        let order = LayerOrder {
            root: protection.root.clone(),
            settings,
            protection: protection.id,
            generation: protection.next_generation,
            older,
            redundancy,
            geometry: StreamGeometry::choose(stream.length(), redundancy)?,
            stream,
            replaced: emptied.into_iter().flatten().chain(unused(protection)).collect(),
            access,
            folders,
            items,
            memory: job.memory,
            threads: threads(job.threads),
            sync: job.sync,
            known: HashMap::new(),
        };
        Ok(order.plan(self.skipped(tree), Vec::new()))
    }

    /// Returns who may use all parity. The catalogue of a new layer names all files, and a layer
    /// has bytes of others than the new ones.
    fn parity_access(&self, protection: &Protection) -> Access {
        let guards = self.items.iter().filter_map(Guard::of_item);
        parity_access(&protection.root, &protection.parity_folders(), guards)
    }

    fn older(&self, number: usize, layer: &Layer) -> Older {
        let is_dead = |&piece: &u32| !self.alive.contains(&(number, piece as usize));
        let dead = (0..layer.pieces.len() as u32).filter(is_dead).collect();
        Older { layer: layer.header.layer, dead }
    }

    fn new_items(&self, protection: &Protection) -> Vec<Item> {
        let is_said = |item: &Item| match item.kind {
            ItemKind::Kept { layer, piece } => {
                let original = &protection.layers[layer as usize].originals[piece as usize];
                let facts = |item: &Item| {
                    (item.path.clone(), item.mode, item.modified, item.details.clone())
                };
                facts(original) == facts(item)
            }
            _ => false,
        };
        self.items.iter().filter(|item| !is_said(item)).cloned().collect()
    }

    /// Plans a protection of everything in place of the old one.
    fn anew(&self, protection: &Protection, job: &UpdateJob) -> Result<ProtectPlan> {
        let settings = &protection.settings;
        let folders: Vec<PathBuf> = match settings.folders.is_empty() {
            true => Vec::new(),
            false => protection.parity_folders(),
        };
        let new = ProtectJob::new(Vec::new())
            .redundancy(protection.redundancy())
            .parity_dirs(folders)
            .one_file_system(settings.one_file_system)
            // An old protection of a file whose name has only dots has an empty label.
            .label(Some(protection.label()).filter(|label| !label.is_empty()))
            .memory(job.memory)
            .threads(job.threads)
            .sync(job.sync)
            .force(true);
        // Also those that are gone: what comes back there is protected again.
        let starts = protection.starts().map(<[u8]>::to_vec).collect();
        let excludes = Excludes::stored(settings)?;
        let mut plan = plan_in(protection.root.clone(), starts, excludes, &new)?;
        plan.order.protection = protection.id;
        plan.order.generation = protection.next_generation;
        plan.order.replaced = replaceable(protection).collect();
        plan.order.known = self.known(protection);
        plan.parity_files = plan.order.targets();
        Ok(plan)
    }

    /// Returns the digests of the files whose bytes are protected, by path.
    fn known(&self, protection: &Protection) -> HashMap<Vec<u8>, FileDigest> {
        let digest = |item: &Item| {
            let (_, digest) = content(kept_entry(protection, item)?)?;
            Some((item.path.clone(), digest))
        };
        self.items.iter().filter_map(digest).collect()
    }
}

/// Returns the redundancy of a layer whose stream has `length` bytes: that of the protection, or
/// more if the layer's largest file could not be restored otherwise. As much parity as the first
/// layer has is enough, because no larger loss can be repaired there either.
fn layer_redundancy(protection: &Protection, items: &[Item], length: u64) -> Redundancy {
    let of_first = protection.layers.first().map_or(0, |layer| {
        let StreamGeometry { block, parity, .. } = layer.header.geometry;
        block * parity
    });
    let largest = items.iter().filter_map(Item::size).max().unwrap_or(0);
    protection.redundancy().for_loss_of(largest.min(of_first), length)
}

fn place_of(entry: &ProtectedEntry) -> Option<KnownPiece> {
    match entry.kind {
        EntryKind::File { layer, piece, .. } => Some((layer, piece)),
        _ => None,
    }
}

/// Returns the parity files of the newest layer if it protects no bytes, so that a newer layer may
/// replace it.
fn emptied(protection: &Protection) -> Option<Vec<PathBuf>> {
    let (newest, older) = protection.layers.split_last()?;
    let is_empty = newest.pieces.is_empty() && !older.is_empty();
    let files = newest.files.iter().flatten().map(|file| file.path.clone());
    is_empty.then(|| files.collect())
}

/// Returns the parity files that a new layer makes useless: what killed processes have left, and
/// what has only temporary names. If a process is still writing the latter, the new layer has been
/// faster, and that process will stop.
fn unused(protection: &Protection) -> impl Iterator<Item = PathBuf> + '_ {
    let is_left = |path: &PathBuf| protection.left.contains(path);
    protection.stray.iter().filter(move |path| is_left(path) || has_temporary_name(path)).cloned()
}

/// Returns everything that is there, before it is compared with what is protected. The attributes
/// of files about which the system has changed nothing are not read again.
fn present(protection: &Protection, tree: &Tree, job: &UpdateJob) -> Vec<Item> {
    let known = |place: usize| {
        let (entry, changed) = (before(protection, tree, place)?, tree.found[place].changed);
        let is_untouched = changed.is_some() && changed == entry.details.changed;
        is_untouched.then(|| entry.details.clone())
    };
    items(&protection.root, &tree.found, known, threads(job.threads))
}

/// Returns the entry with the path of what has this index in `tree.found`.
fn before<'p>(protection: &'p Protection, tree: &Tree, place: usize) -> Option<&'p ProtectedEntry> {
    tree.number_of(place).map(|number| &protection.entries[number])
}

/// Whether a file still has the bytes of the entry with its path. A file that has the time of the
/// entry must have its bytes, too, unless the system says that it was touched since. Its bytes are
/// compared with `checksum`, and if the time of the system is new.
fn has_bytes(
    protection: &Protection,
    item: &Item,
    entry: &ProtectedEntry,
    times: &ChangeTimes<'_>,
    checksum: bool,
) -> Result<bool> {
    // A further name that leads to a file of its own now should have the bytes of the old one.
    let is_link = matches!(entry.kind, EntryKind::HardLink { .. });
    let target = protection.entry_at(&entry.path).map(|number| protection.file_of(number));
    let file = target.map_or(entry, |file| &protection.entries[file]);
    let EntryKind::File { size, digest, .. } = file.kind else { return Ok(false) };
    let path = path_in(&protection.root, &item.path);
    let has_time = entry.modified == item.modified;
    let is_on_time = has_time && !times.was_touched(file, item.details.changed);
    let is_read = is_link || checksum || times.is_new(file, item.details.changed);
    match item.size() == Some(size) {
        false if is_on_time => return Err(trouble::damaged(&path)),
        false => return Ok(false),
        true if is_on_time && !is_read => return Ok(true),
        true => {}
    }
    match digest_of(&path, size) {
        Some(now) if now == digest => Ok(!is_link),
        // It may have been changed since the tree was looked through.
        Some(_) if is_on_time && times.is_untouched(file, entry.modified, &path) => {
            Err(trouble::damaged(&path))
        }
        None if has_time && has_time_now(entry.modified, &path) => Err(trouble::unreadable(&path)),
        _ => Ok(false),
    }
}

/// Looks for entries that are gone under their own names, but whose bytes new files have. Returns
/// these entries by the paths of the new files. Of several entries and files with the same bytes,
/// each file is one entry.
fn moved<'p>(
    protection: &'p Protection,
    items: &[Item],
    alive: &HashSet<KnownPiece>,
    threads: usize,
) -> HashMap<Vec<u8>, &'p ProtectedEntry> {
    let gone = protection
        .entries
        .iter()
        .filter(|entry| place_of(entry).is_some_and(|place| !alive.contains(&place)));
    let mut by_content: HashMap<FileContent, VecDeque<&ProtectedEntry>> = HashMap::new();
    for entry in gone {
        by_content.entry(content(entry).expect("it is a file")).or_default().push_back(entry);
    }
    if by_content.is_empty() {
        return HashMap::new();
    }
    let sizes: HashSet<u64> = by_content.keys().map(|(size, _)| *size).collect();
    let candidates = items.iter().filter_map(|item| match item.kind {
        ItemKind::File { size, .. } if sizes.contains(&size) => {
            Some((size, path_in(&protection.root, &item.path)))
        }
        _ => None,
    });
    let mut found = contents(candidates.collect(), threads);
    found.sort_unstable_by(|(_, one), (_, other)| one.cmp(other));
    found
        .into_iter()
        .filter_map(|(content, path)| {
            Some((protection.relative(&path)?, by_content.get_mut(&content)?.pop_front()?))
        })
        .collect()
}

/// Returns the size and the digest of an entry if it is a file.
fn content(entry: &ProtectedEntry) -> Option<FileContent> {
    match entry.kind {
        EntryKind::File { size, digest, .. } => Some((size, digest)),
        _ => None,
    }
}

/// Returns the entry whose bytes an item has that was kept.
fn kept_entry<'p>(protection: &'p Protection, item: &Item) -> Option<&'p ProtectedEntry> {
    let ItemKind::Kept { layer, piece } = item.kind else { return None };
    let entry = protection.layers[layer as usize].pieces[piece as usize].entry?;
    Some(&protection.entries[entry])
}

impl Changes<'_> {
    /// Whether an item is what an entry says.
    fn is_same(&self, item: &Item, entry: &ProtectedEntry) -> bool {
        let is_kind = match (&item.kind, &entry.kind) {
            (ItemKind::Folder, EntryKind::Folder) => true,
            (ItemKind::Symlink { target }, EntryKind::Symlink { target: then })
            | (ItemKind::HardLink { target }, EntryKind::HardLink { target: then }) => {
                target == then
            }
            (&ItemKind::Kept { layer, piece }, &EntryKind::File { layer: of, piece: then, .. }) => {
                (layer as usize, piece as usize) == (of, then)
            }
            _ => false,
        };
        // The times of a folder change whenever something in it is made anew.
        let has_times = entry.kind == EntryKind::Folder
            || item.modified == entry.modified && !is_news(entry, item.details.changed);
        is_kind
            && item.path == entry.path
            && item.mode == entry.mode
            && item.details.extended == entry.details.extended
            && (entry.details.owner.is_none() || item.details.owner == entry.details.owner)
            && has_times
    }
}

#[cfg(test)]
mod tests;
