//! Repairing: writing every missing or damaged shard anew, as a whole, and giving names to shards
//! that a crash left under temporary names.

use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use crate::decode::check_digest;
use crate::folders::Placement;
use crate::leftovers::is_unnamed;
use crate::object::Object;
use crate::place::Occupant;
use crate::rebuild::{RebuiltPart, make_from};
use crate::sources::Sources;
use crate::targets::Targets;
use crate::verify::{DigestCheck, ShardReport, ShardState, VerifyReport, verify};
use paritas_store::error::{Error, ErrorKind, Result};
use paritas_store::object::format::Digest;
use paritas_store::object::geometry::Part;
use paritas_store::object::segment::Segment;
use paritas_store::place::lock::FolderLocks;
use paritas_store::place::system::{rename_new, rename_over};
use paritas_store::progress::Progress;
use paritas_store::setters;
use paritas_store::shown::shown;
use paritas_store::staging::{Committed, MovedAside, Replace, directory_of, sync_directories_of};
use paritas_store::state::State;

/// The settings of a repair: a default, changed by setters of the same names.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RepairJob {
    /// The directory for all shards that are written. Without it, a damaged shard is replaced in
    /// its place, and a missing one goes to the directory with the fewest shards of the object.
    pub to: Option<PathBuf>,
    /// Whether everything is synced to the disk before the shards get their names.
    pub sync: bool,
    /// Largest number of threads. Default: the number that the machine runs at once.
    pub threads: Option<NonZeroUsize>,
    /// Whether a single missing shard is computed at once, from the fewest possible bytes, if all
    /// others look whole. Damage elsewhere may then go unseen. If this is `false`, everything is
    /// verified first.
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
    /// Computes a single missing shard from the fewest possible bytes, or verifies everything
    /// first.
    fewest_reads: bool,
} }

/// The result of repairing.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RepairReport {
    /// The shards that were written.
    pub repaired: Vec<RepairedShard>,
    /// Files that were not shards, but had the names of the shards that were written. They were
    /// moved to other names in the same folders.
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

impl RepairReport {
    /// Returns the shards that could not be opened. They stay as they were, in an unknown state.
    pub fn unreadable(&self) -> impl Iterator<Item = &ShardReport> {
        let shards = self.before.iter().flat_map(|before| &before.shards);
        shards.filter(|shard| shard.state == ShardState::Unreadable)
    }

    /// Checks that all shards could be opened, so that the object is whole now.
    ///
    /// # Errors
    /// If some could not be opened ([`ErrorKind::Io`]). The message names `object` and them.
    pub fn expect_all_read(&self, object: &Object) -> Result<()> {
        let names: Vec<String> =
            self.unreadable().map(|shard| shard_name(shard.index, shard.stage)).collect();
        let were = match names.len() {
            0 => return Ok(()),
            1 => "was",
            _ => "were",
        };
        let (label, names) = (object.label(), names.join(", "));
        let message = format!("{label}: {names} could not be opened, and {were} left unchanged");
        Err(Error::failed(message))
    }
}

/// Returns the name of a shard, or of a part of one, for people. The stage is shown if it is not
/// the first.
pub fn shard_name(index: usize, stage: u8) -> String {
    let part = if stage > 1 { format!(" (stage {stage})") } else { String::new() };
    format!("shard {index}{part}")
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

/// Verifies an object, and writes every shard that is not intact, and damaged files of intact ones
/// if more folders may be lost then. Shards that could not be opened stay as they are;
/// [`RepairReport::unreadable`] returns them. `progress` gets the number of
/// the object's bytes twice: as they are verified, and as they are written. With
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
    let WrittenParts { bad, was, targets } = to_write(object, job, &before)?;
    let written = bad.iter().zip(was).zip(&targets);
    let written =
        written.map(|((&part, was), (path, _))| RepairedShard::new(object, part, path, was));
    let mut repaired: Vec<RepairedShard> = written.collect();
    let (read, committed) = match bad.is_empty() {
        true => (0, Committed::default()),
        false => rewrite(object, job, targets, &bad, progress)?,
    };
    repaired.extend(name_unnamed(object, &before, job.sync)?);
    let placement = placement_after(object, &before, &bad, &repaired);
    let mut warnings = spread_warnings(object, &placement, repaired.is_empty());
    warnings.extend(committed.refusals());
    Ok(RepairReport {
        warnings,
        repaired,
        moved_aside: committed.moved_aside,
        digest: before.digest,
        read_bytes: read_bytes + before.read_bytes + read,
        before: Some(before),
        placement,
    })
}

/// The parts that are written: those that are damaged or missing, and damaged copies without which
/// fewer folders may be lost. Each has the state of its file before, and a path.
struct WrittenParts {
    bad: Vec<usize>,
    was: Vec<ShardState>,
    targets: Vec<(PathBuf, Replace)>,
}

/// Chooses the parts that are written.
fn to_write(object: &Object, job: &RepairJob, before: &VerifyReport) -> Result<WrittenParts> {
    let states = before.shards.iter().map(|shard| shard.state).enumerate();
    let is_bad = |&(_, state): &(usize, ShardState)| {
        matches!(state, ShardState::Damaged | ShardState::Missing)
    };
    let (mut bad, mut was): (Vec<usize>, Vec<ShardState>) = states.filter(is_bad).unzip();
    let targets = Targets::new(object, job.to.as_slice());
    let copies = before.useful_copies(object);
    let in_place = copies.iter().map(|&(part, path)| targets.in_place(part, path));
    let in_place: Vec<(PathBuf, Replace)> = in_place.collect::<Result<_>>()?;
    let mut targets = targets.choose(&bad)?;
    targets.extend(in_place);
    bad.extend(copies.iter().map(|(part, _)| part));
    was.extend(copies.iter().map(|_| ShardState::Damaged));
    Ok(WrittenParts { bad, was, targets })
}

/// The result of an attempt to repair from the fewest bytes.
enum Attempt {
    /// The missing part has been rebuilt.
    Made(Box<RepairReport>),
    /// More is wrong than one missing part.
    GivenUp {
        /// Number of bytes of blocks that were read before the attempt was given up.
        read_bytes: u64,
    },
}

/// Rebuilds the only missing part. Gives up if it notices that more than this part is missing or
/// damaged. The object's digest is not checked, because the object is not read. Damage in lanes
/// that are not needed stays unseen until the next [`verify`].
fn rebuild_missing(object: &Object, job: &RepairJob, progress: Progress<'_>) -> Result<Attempt> {
    let Some(part) = only_missing(object) else { return Ok(Attempt::GivenUp { read_bytes: 0 }) };
    let sources = Sources::open(object, 1)?;
    let others = (0..object.parts().len()).filter(|&other| other != part);
    let needed = match object.geometry.buffers_to_make(others, &[part]) {
        // All other parts together are not enough. This can happen with an LT code.
        Err(error) if error.kind() == ErrorKind::TooFewShards => {
            return Ok(Attempt::GivenUp { read_bytes: 0 });
        }
        needed => needed?,
    };
    let targets = Targets::new(object, job.to.as_slice()).choose(&[part])?;
    let path = targets.first().map(|(path, _)| path.clone()).unwrap_or_default();
    let rebuilds = RebuiltPart::create_all(object, targets, &[part])?;
    let give_up = |_: &mut Segment, _| Ok(false);
    if !make_from(&sources, &needed, &rebuilds, job.threads, progress, give_up)? {
        return Ok(Attempt::GivenUp { read_bytes: sources.read_bytes() });
    }
    let read_bytes = sources.read_bytes();
    let committed = RebuiltPart::commit(rebuilds, &sources, job.sync)?;
    let placement = object.placement_with(part, &path);
    let mut warnings = spread_warnings(object, &placement, false);
    warnings.extend(committed.refusals());
    let report = RepairReport {
        repaired: vec![RepairedShard::new(object, part, &path, ShardState::Missing)],
        moved_aside: committed.moved_aside,
        before: None,
        digest: DigestCheck::Unchecked,
        read_bytes,
        warnings,
        placement,
    };
    Ok(Attempt::Made(Box::new(report)))
}

/// Returns the part without a file, if every other part has exactly one file, which has its name
/// and looks whole.
fn only_missing(object: &Object) -> Option<usize> {
    let [missing] = object.missing_parts()[..] else { return None };
    if object.unread_files(missing).next().is_some() {
        return None;
    }
    let whole = |(part, files): (usize, &Vec<_>)| match &files[..] {
        [file] => object.flaws(part, file).is_empty() && object.is_named_well(part, file),
        files => files.is_empty() && part == missing,
    };
    object.parts().iter().enumerate().all(whole).then_some(missing)
}

/// Refuses an object that cannot be read, or for which this is uncertain.
fn expect_right(before: &VerifyReport) -> Result<()> {
    let kind = match (before.digest, before.status) {
        (DigestCheck::Right, _) => return Ok(()),
        (_, State::Unknown) => ErrorKind::Io,
        (DigestCheck::Wrong, _) => ErrorKind::DigestMismatch,
        _ => ErrorKind::TooFewShards,
    };
    Err(Error::new(kind, before.reason.clone().unwrap_or_default()))
}

/// Returns which folders may be lost, given the shards that were intact before and the shards that
/// were written.
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

/// Returns a warning about a bad spread if anything was written, because it could have been written
/// elsewhere.
fn spread_warnings(object: &Object, placement: &Placement, is_unchanged: bool) -> Vec<String> {
    if is_unchanged {
        return Vec::new();
    }
    placement.warning(&object.geometry, object.stage(), 0).into_iter().collect()
}

impl RepairedShard {
    fn new(object: &Object, part: usize, path: &Path, was: ShardState) -> Self {
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
/// does not exist. A damaged file under the name is replaced. Returns the path if the name was
/// given.
pub(super) fn name_one(
    object: &Object,
    part: usize,
    good: &[&Path],
    damaged: &[&Path],
) -> Result<Option<PathBuf>> {
    if good.is_empty() || !good.iter().all(|path| is_unnamed(object, path)) {
        return Ok(None);
    }
    let path = good[0].with_file_name(object.part_name(part)?.finished());
    let _locks = FolderLocks::acquire([directory_of(&path)])?;
    let is_damaged =
        damaged.contains(&&*path) && object.occupant(part, &path) == Occupant::SamePart;
    let rename = if is_damaged { rename_over } else { rename_new };
    match rename(good[0], &path) {
        Ok(()) => Ok(Some(path)),
        // The name is taken. The part is whole, and stays where it is.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
        // Another process has already given it its name.
        Err(error) if error.kind() == io::ErrorKind::NotFound && path.exists() => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Error::busy(format!(
            "another process has moved {} meanwhile; run the command again",
            shown(good[0])
        ))),
        Err(error) => Err(Error::io("naming", &path, &error)),
    }
}

/// Writes the bad parts. Returns the number of bytes that were read for this, and the result of
/// committing the new files.
fn rewrite(
    object: &Object,
    job: &RepairJob,
    targets: Vec<(PathBuf, Replace)>,
    bad: &[usize],
    progress: Progress<'_>,
) -> Result<(u64, Committed)> {
    let sources = Sources::open(object, bad.len())?;
    let rebuilds = RebuiltPart::create_all(object, targets, bad)?;
    let wanted = RebuiltPart::wanted(&rebuilds, &sources);
    let hasher = blake3::Hasher::new();
    let hasher = sources.each_segment(job.threads, hasher, |crew, segment, number| {
        sources.load(segment, number)?;
        segment.make_data()?;
        let bytes = sources.extent.bytes(number);
        crew.in_turn(number, |hasher| {
            segment.data(bytes as usize).into_iter().for_each(|lane| _ = hasher.update(lane));
            Ok(())
        })?;
        segment.compute(|buffer| wanted[buffer])?;
        rebuilds.iter().try_for_each(|rebuild| rebuild.write(&sources, segment, number))?;
        progress(bytes);
        Ok(())
    })?;
    check_digest(object, Digest::new(hasher.finalize().into()))?;
    let committed = RebuiltPart::commit(rebuilds, &sources, job.sync)?;
    Ok((sources.read_bytes(), committed))
}
