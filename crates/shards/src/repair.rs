//! Repairing: writing every missing or damaged shard anew, as a whole, and naming shards that a
//! crash left without their names.

use std::fs;
use std::io::{self, IoSlice};
use std::iter::Cycle;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::slice;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Progress;
use crate::attributes::Access;
use crate::crew::Crew;
use crate::decode::check_digest;
use crate::error::{Error, ErrorKind, Result};
use crate::folders::{Domains, FolderShards, Placement};
use crate::format::Digest;
use crate::geometry::Part;
use crate::leftovers::is_set_aside;
use crate::lock::FolderLocks;
use crate::names;
use crate::object::Object;
use crate::place::{
    MovedAside, NewFile, Occupant, Pending, Replace, commit_over, directory_of, sync_directories_of,
};
use crate::rebuild::{Attempt, rebuild_missing};
use crate::recognise::ShardFile;
use crate::segment::{BlockId, Segment};
use crate::setters::setters;
use crate::shown::shown;
use crate::sources::{Depth, Sources};
use crate::system::{rename_new, rename_over};
use crate::verify::{DigestCheck, ShardState, Status, VerifyReport, verify};

/// The settings of a repair: a default, changed by setters of the same names.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RepairJob {
    /// The directory for all shards that are written. Without it, a damaged shard is replaced in
    /// its place, and a missing one goes to the directory with the fewest shards of the object.
    pub to: Option<PathBuf>,
    /// Whether everything is synced to the disk before the shards get their names.
    pub sync: bool,
    /// Largest number of threads; by default as many as the machine runs at once.
    pub threads: Option<NonZeroUsize>,
    /// Whether a single missing shard is computed at once, from as few bytes as possible, if all
    /// others look whole. Otherwise everything is verified first. Damage elsewhere may go unseen.
    pub fewest_reads: bool,
}

impl Default for RepairJob {
    /// Returns the usual settings: everything is verified, and new shards are synced.
    fn default() -> Self {
        Self { to: None, sync: true, threads: None, fewest_reads: false }
    }
}

setters! { RepairJob {
    /// Writes all shards to the directory `to`.
    to: impl Into<Option<PathBuf>>,
    /// Turns syncing on or off.
    sync: bool,
    /// Uses at most `threads` threads.
    threads: impl Into<Option<NonZeroUsize>>,
    /// Computes a single missing shard from as few bytes as possible, or verifies everything first.
    fewest_reads: bool,
} }

/// The result of repairing.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RepairReport {
    /// The shards that were written.
    pub repaired: Vec<RepairedShard>,
    /// The files that had the names of these but are no shards. They lie beside them under other
    /// names.
    pub moved_aside: Vec<MovedAside>,
    /// The state before the repair. `None` if only the bytes that were needed have been read.
    pub before: Option<VerifyReport>,
    /// Whether the object has the digest that its shards state. [`DigestCheck::Unchecked`] if only
    /// the bytes that were needed have been read: each lane was checked, but not the whole object.
    pub digest: DigestCheck,
    /// Number of bytes of blocks that were read.
    pub read_bytes: u64,
    /// The folders that may be lost now.
    pub placement: Placement,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

/// A shard, or a part of one, that was written anew.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepairedShard {
    /// The index.
    pub shard: usize,
    /// The stage of its part.
    pub stage: u8,
    /// The file.
    pub path: PathBuf,
    /// Its state before: damaged, missing, or intact under another name than its own.
    pub was: ShardState,
}

/// Verifies an object, and writes every shard that is not intact. Shards that could not be opened
/// stay as they are; [`RepairReport::before`] shows them as [`ShardState::Unreadable`]. `progress`
/// gets the number of the object's bytes twice: as they are verified, and as they are written. With
/// [`RepairJob::fewest_reads`], a shard that is the only missing thing is written at once, from
/// lanes that are intact, and nothing else is read.
///
/// # Errors
/// If the object is beyond repair ([`ErrorKind::TooFewShards`], [`ErrorKind::DigestMismatch`];
/// nothing has been changed then), or if reading or writing fails ([`ErrorKind::Io`]). The last
/// kind is also used if files that could not be opened decide whether it is beyond repair.
pub fn repair(object: &Object, job: &RepairJob, progress: Progress<'_>) -> Result<RepairReport> {
    let mut read_bytes = 0;
    if job.fewest_reads {
        match rebuild_missing(object, job, progress)? {
            Attempt::Made(report) => return Ok(*report),
            Attempt::GivenUp { read_bytes: in_vain } => read_bytes = in_vain,
        }
    }
    let before = verify(object, job.threads, progress)?;
    expect_right(&before)?;
    let states = before.shards.iter().map(|shard| shard.state).enumerate();
    let is_bad = |&(_, state): &(usize, ShardState)| {
        matches!(state, ShardState::Damaged | ShardState::Missing)
    };
    let (bad, was): (Vec<usize>, Vec<ShardState>) = states.filter(is_bad).unzip();
    let targets = Targets::new(object, job.to.as_slice()).choose(&bad)?;
    let written = bad.iter().zip(was).zip(&targets);
    let written =
        written.map(|((&part, was), (path, _))| RepairedShard::new(object, part, path, was));
    let mut repaired: Vec<RepairedShard> = written.collect();
    let (read, moved_aside) = match bad.is_empty() {
        true => (0, Vec::new()),
        false => rewrite(object, job, targets, &bad, progress)?,
    };
    repaired.extend(name_unnamed(object, &before, job.sync)?);
    let placement = placement_after(object, &before, &bad, &repaired);
    Ok(RepairReport {
        warnings: spread_warnings(object, &placement, repaired.is_empty()),
        repaired,
        moved_aside,
        digest: before.digest,
        read_bytes: read_bytes + before.read_bytes + read,
        before: Some(before),
        placement,
    })
}

/// Refuses an object that cannot be read, or not for certain.
fn expect_right(before: &VerifyReport) -> Result<()> {
    let kind = match (before.digest, before.status) {
        (DigestCheck::Right, _) => return Ok(()),
        (_, Status::Unknown) => ErrorKind::Io,
        (DigestCheck::Wrong, _) => ErrorKind::DigestMismatch,
        _ => ErrorKind::TooFewShards,
    };
    Err(Error::new(kind, before.reason.clone().unwrap_or_default()))
}

/// Returns which folders may be lost, from the shards that were intact before and those that were
/// written.
fn placement_after(
    object: &Object,
    before: &VerifyReport,
    bad: &[usize],
    repaired: &[RepairedShard],
) -> Placement {
    let parts = before.shards.iter().enumerate();
    let intact = parts.flat_map(|(part, shard)| shard.intact_files(part));
    let written = bad.iter().copied().zip(repaired.iter().map(|shard| shard.path.as_path()));
    object.placement_of(object.stage(), intact.chain(written))
}

/// Returns a warning of a bad spread, if anything was written, since that could have gone
/// elsewhere.
pub(super) fn spread_warnings(
    object: &Object,
    placement: &Placement,
    is_unchanged: bool,
) -> Vec<String> {
    if is_unchanged {
        return Vec::new();
    }
    placement.warning(&object.geometry, object.stage(), 0).into_iter().collect()
}

impl RepairedShard {
    pub(super) fn new(object: &Object, part: usize, path: &Path, was: ShardState) -> Self {
        let Part { shard, stage } = object.part(part);
        Self { shard, stage, path: path.to_owned(), was }
    }
}

/// Names the parts whose only intact file has a temporary name, or was set aside. A process that is
/// killed while it names a complete set leaves such files.
fn name_unnamed(object: &Object, before: &VerifyReport, sync: bool) -> Result<Vec<RepairedShard>> {
    let mut named = Vec::new();
    for (part, shard) in before.shards.iter().enumerate() {
        let intact: Vec<&Path> =
            shard.files.iter().filter(|f| f.is_intact()).map(|f| f.path.as_path()).collect();
        let damaged = shard.files.iter().filter(|file| !file.is_intact() && !file.unreadable);
        let damaged: Vec<&Path> = damaged.map(|file| file.path.as_path()).collect();
        if let Some(path) = name_one(object, part, &intact, &damaged)? {
            named.push(RepairedShard::new(object, part, &path, ShardState::Intact));
        }
    }
    if sync {
        sync_directories_of(named.iter().map(|shard| shard.path.as_path()))?;
    }
    Ok(named)
}

/// Names a part if all of its good files have temporary names, or were set aside for an object that
/// is not there. A damaged file under the name is replaced. Returns the path if the name was given.
pub(super) fn name_one(
    object: &Object,
    part: usize,
    good: &[&Path],
    damaged: &[&Path],
) -> Result<Option<PathBuf>> {
    let is_unnamed = |path: &&Path| {
        path.file_name().is_some_and(names::is_temporary)
            || is_set_aside(path) && !object.is_contested
    };
    if good.is_empty() || !good.iter().all(is_unnamed) {
        return Ok(None);
    }
    let path = good[0].with_file_name(object.part_name(part)?.finished());
    let _locks = FolderLocks::acquire([directory_of(&path)])?;
    let is_damaged =
        damaged.contains(&&*path) && object.occupant(part, &path) == Occupant::SamePart;
    let rename = if is_damaged { rename_over } else { rename_new };
    match rename(good[0], &path) {
        Ok(()) => Ok(Some(path)),
        // The name is taken: the part stays where it is, and is whole.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
        // Another process has already given it its name.
        Err(error) if error.kind() == io::ErrorKind::NotFound && path.exists() => Ok(None),
        Err(error) => Err(Error::io("naming", &path, &error)),
    }
}

/// Writes the bad parts. Returns the number of bytes that were read for this, and the files that
/// were moved aside.
fn rewrite(
    object: &Object,
    job: &RepairJob,
    targets: Vec<(PathBuf, Replace)>,
    bad: &[usize],
    progress: Progress<'_>,
) -> Result<(u64, Vec<MovedAside>)> {
    let sources = Sources::open(object, bad.len())?;
    let rebuilds = Rebuild::create_all(object, targets, bad)?;
    let next = AtomicU64::new(0);
    let hasher = Crew::run(sources.threads(job.threads), blake3::Hasher::new(), |crew| {
        work(crew, &sources, &next, &rebuilds, progress)
    })?;
    check_digest(object, Digest::new(hasher.finalize().into()))?;
    let moved = Rebuild::commit(rebuilds, &sources, job.sync)?;
    Ok((sources.read_bytes(), moved))
}

fn metadata(file: &ShardFile) -> Option<fs::Metadata> {
    fs::metadata(file.path()).ok()
}

/// A part that is being written.
pub(super) struct Rebuild {
    part: usize,
    file: Pending,
    /// Offset of its first block in the file.
    blocks: u64,
}

impl Rebuild {
    /// Creates the files, with their front headers. A file has the mode and the owner of the one
    /// that it replaces. If it replaces none, it has those that all shards of the object have in
    /// common.
    pub fn create_all(
        object: &Object,
        targets: Vec<(PathBuf, Replace)>,
        parts: &[usize],
    ) -> Result<Vec<Self>> {
        let sources = object.parts().iter().map(Vec::len).sum();
        let siblings = Access::like(object.parts().iter().flatten().filter_map(metadata));
        let new = |((target, replace), &part): ((PathBuf, Replace), &usize)| {
            let is_copy = object.occupant(part, &target) == Occupant::SamePart;
            let replaced = is_copy.then(|| fs::metadata(&target).ok()).flatten();
            let access = replaced.map_or(siblings, |file| Access::like([file]));
            NewFile { target, replace, access }
        };
        make_offered(object, &targets)?;
        let targets: Vec<NewFile> = targets.into_iter().zip(parts).map(new).collect();
        let begin = |(file, &part): (Pending, &usize)| {
            let (front, _) = object.records(part)?;
            file.write_at(&mut [IoSlice::new(&front)], 0)?;
            Ok(Self { part, file, blocks: front.len() as u64 })
        };
        Pending::create_all(targets, sources)?.into_iter().zip(parts).map(begin).collect()
    }

    /// Returns, for each buffer, whether it is a lane of the parts to be written.
    pub fn wanted(rebuilds: &[Self], sources: &Sources<'_>) -> Vec<bool> {
        sources.geometry.buffers_in(rebuilds.iter().map(|rebuild| rebuild.part))
    }

    /// Writes the block of a segment.
    pub fn write(&self, sources: &Sources<'_>, segment: &mut Segment, number: u64) -> Result<()> {
        let id = BlockId { object: sources.object.id(), part: self.part, segment: number };
        let start = sources.geometry.block_start(self.part, number).ok_or_else(Error::too_long)?;
        self.file.write_at(&mut segment.seal(id), self.blocks + start)
    }

    /// Writes the footers, which complete the files, and publishes them. Returns the files that
    /// were moved aside.
    pub fn commit(
        rebuilds: Vec<Self>,
        sources: &Sources<'_>,
        sync: bool,
    ) -> Result<Vec<MovedAside>> {
        for Self { part, file, blocks } in &rebuilds {
            let (_, footer) = sources.object.records(*part)?;
            let length =
                sources.geometry.blocks(&sources.extent, *part).ok_or_else(Error::too_long)?;
            file.write_at(&mut [IoSlice::new(&footer)], blocks + length)?;
        }
        let files = rebuilds.into_iter().map(|rebuild| rebuild.file).collect();
        let nothing_old = || sources.object.expect_standing().map(|()| Vec::new());
        commit_over(&[], nothing_old, files, sync)
    }
}

/// Makes those folders for new files that were offered to the scan and do not exist. Their names
/// are synced to the disk, because rebalancing removes the old files once the new ones are there.
fn make_offered(object: &Object, targets: &[(PathBuf, Replace)]) -> Result<()> {
    for folder in targets.iter().map(|(path, _)| directory_of(path)) {
        if object.given.iter().any(|given| given.path == folder) {
            let new: Vec<&Path> = folder.ancestors().take_while(|above| !above.exists()).collect();
            fs::create_dir_all(folder).map_err(|error| Error::io("making", folder, &error))?;
            sync_directories_of(new.into_iter())?;
        }
    }
    Ok(())
}

fn work(
    crew: &Crew<blake3::Hasher>,
    sources: &Sources<'_>,
    next: &AtomicU64,
    rebuilds: &[Rebuild],
    progress: Progress<'_>,
) -> Result<()> {
    let mut segment = Segment::new(sources.geometry)?;
    let wanted = Rebuild::wanted(rebuilds, sources);
    while !crew.is_stopped() {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= sources.extent.count() {
            break;
        }
        sources.load(&mut segment, number, Depth::Enough)?;
        segment.compute_data()?;
        let bytes = sources.extent.bytes(number);
        crew.in_turn(number, |hasher| {
            segment.data(bytes as usize).into_iter().for_each(|lane| _ = hasher.update(lane));
            Ok(())
        })?;
        segment.compute(|buffer| wanted[buffer])?;
        rebuilds.iter().try_for_each(|rebuild| rebuild.write(sources, &mut segment, number))?;
        progress(bytes);
    }
    Ok(())
}

/// The choice of the paths that parts are written to.
pub(super) struct Targets<'a> {
    object: &'a Object,
    /// The directories that the caller asked for, taken in turn. If there are none, the folders in
    /// use are taken.
    to: Cycle<slice::Iter<'a, PathBuf>>,
    domains: Domains<'a>,
    /// The folders in use, by number of the domain.
    folders: Vec<FolderShards>,
}

impl<'a> Targets<'a> {
    /// Takes the folders that hold the object. A folder that was given to the scan and holds none
    /// of it is taken if it is empty, like a disk that was replaced, or if the object is spread
    /// over several folders anyway.
    pub(super) fn new(object: &'a Object, to: &'a [PathBuf]) -> Self {
        let domains = Domains::new(&object.given);
        let mut targets = Self { object, to: to.iter().cycle(), domains, folders: Vec::new() };
        for (part, files) in object.parts().iter().enumerate() {
            if let Some(file) = files.first() {
                let domain = targets.domains.of_file(file.path());
                targets.put(part, domain, directory_of(file.path()));
            }
        }
        let is_spread = targets.folders.len() > 1;
        for folder in object.given.iter().filter(|folder| folder.is_empty || is_spread) {
            targets.add_folder(&folder.path);
        }
        targets
    }

    /// Adds a folder.
    pub(super) fn add_folder(&mut self, folder: &Path) {
        let domain = self.domains.of_folder(folder);
        self.folder(domain, folder);
    }

    /// Returns the number of the domain that a file is in.
    pub(super) fn domain_of(&mut self, file: &Path) -> usize {
        let domain = self.domains.of_file(file);
        self.folder(domain, directory_of(file));
        domain
    }

    /// Returns the folders of all domains, by number.
    pub(super) fn into_folders(self) -> Vec<PathBuf> {
        self.folders.into_iter().map(|folder| folder.path).collect()
    }

    /// Returns the folder of a domain. If the domain is new, its folder is `path`.
    fn folder(&mut self, domain: usize, path: &Path) -> &mut FolderShards {
        if domain == self.folders.len() {
            self.folders.push(FolderShards { path: path.to_owned(), shards: Vec::new() });
        }
        &mut self.folders[domain]
    }

    /// Notes that a part is in a domain.
    fn put(&mut self, part: usize, domain: usize, directory: &Path) {
        let shard = self.object.part(part).shard;
        let folder = self.folder(domain, directory);
        if !folder.shards.contains(&shard) {
            folder.shards.push(shard);
        }
    }

    /// Returns a path for each part, and whether a file there is replaced.
    pub(super) fn choose(mut self, parts: &[usize]) -> Result<Vec<(PathBuf, Replace)>> {
        parts.iter().map(|&part| self.choose_one(part)).collect()
    }

    fn choose_one(&mut self, part: usize) -> Result<(PathBuf, Replace)> {
        let to = self.to.next();
        if let (None, Some(damaged)) = (to, self.object.parts[part].first()) {
            // The target of a link is replaced, not the link.
            let path =
                fs::canonicalize(damaged.path()).map_err(|error| vanished(damaged, &error))?;
            return Ok((path, self.replace(part)));
        }
        let directory = to.cloned().or_else(|| self.beside(part)).or_else(|| self.emptiest());
        let directory = directory.unwrap_or_else(|| PathBuf::from("."));
        let domain = self.domains.of_folder(&directory);
        self.put(part, domain, &directory);
        self.free_name(&directory, part)
    }

    /// Returns the directory of another part of the same shard, because a shard is lost as a whole.
    fn beside(&self, part: usize) -> Option<PathBuf> {
        let shard = self.object.part(part).shard;
        let parts = (0..self.object.parts.len()).filter(|&p| self.object.part(p).shard == shard);
        let file = parts.filter_map(|part| self.object.parts[part].first()).next()?;
        Some(directory_of(file.path()).to_owned())
    }

    /// Returns the folder with the fewest shards. So the fullest folders, whose loss costs most,
    /// stay as small as possible.
    fn emptiest(&self) -> Option<PathBuf> {
        let emptiest = self.folders.iter().min_by_key(|folder| folder.shards.len());
        emptiest.map(|folder| folder.path.clone())
    }

    /// Returns a path in the directory that is free, or whose file may be replaced.
    pub(super) fn free_name(&self, directory: &Path, part: usize) -> Result<(PathBuf, Replace)> {
        let name = self.object.part_name(part)?;
        let mut path = directory.join(name.finished());
        for number in 2.. {
            if self.object.occupant(part, &path) != Occupant::Other {
                break;
            }
            path = directory.join(name.numbered(number));
        }
        Ok((path, self.replace(part)))
    }

    fn replace(&self, part: usize) -> Replace {
        Replace::ForPart(Box::new(self.object.identity.clone()), self.object.part(part))
    }
}

impl Object {
    /// Returns what has the name that a part is given.
    fn occupant(&self, part: usize, path: &Path) -> Occupant {
        Occupant::of(path, &self.identity, self.part(part))
    }
}

/// Returns the error for a file of the scan that cannot be resolved any more.
fn vanished(file: &ShardFile, error: &io::Error) -> Error {
    let path = file.path();
    match error.kind() {
        io::ErrorKind::NotFound => Error::busy(format!(
            "another process has removed {} in the meantime; run the command again",
            shown(path)
        )),
        _ => Error::io("resolving", path, error),
    }
}
