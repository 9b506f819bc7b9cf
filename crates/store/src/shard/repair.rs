//! Repairing: every shard that is missing or damaged is written anew, whole, and one that a crash
//! left without its name gets it.

use std::collections::HashSet;
use std::fs;
use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, ErrorKind, Result};
use crate::shard::Progress;
use crate::shard::crew::Crew;
use crate::shard::decode::check_digest;
use crate::shard::format::Digest;
use crate::shard::names::{self, ShardName};
use crate::shard::object::Object;
use crate::shard::place::{Pending, Replace, allow_open_files, commit, directory_of, rename_new};
use crate::shard::rebuild::rebuild_missing;
use crate::shard::recognise::recognise;
use crate::shard::segment::{BlockId, Segment};
use crate::shard::sources::{Depth, Sources};
use crate::shard::verify::{DigestCheck, ShardState, Status, VerifyReport, verify};

/// How to repair.
#[derive(Debug, Clone)]
pub struct RepairJob {
    /// The directory for all shards that are written. Without it a damaged shard is replaced where
    /// it is, and a missing one goes to the directory with the fewest shards of the object.
    pub to: Option<PathBuf>,
    /// Whether everything is to be on the disk before the shards get their names.
    pub sync: bool,
    /// The number of threads; 0 stands for the machine's.
    pub threads: usize,
    /// Where a single shard is missing and the others look whole: to read only what it is computed
    /// from, instead of verifying everything first. Damage elsewhere may then go unseen.
    pub fewest_reads: bool,
}

/// What repairing did.
#[derive(Debug, Clone)]
pub struct RepairReport {
    /// The shards that were written.
    pub repaired: Vec<RepairedShard>,
    /// What was found before; nothing where only what was needed has been read.
    pub before: Option<VerifyReport>,
    /// Whether the object has the digest that its shards state. [`DigestCheck::Unchecked`] where only
    /// what was needed has been read: each lane was checked, the whole was not.
    pub digest: DigestCheck,
    /// The bytes of blocks that were read.
    pub read_bytes: u64,
}

/// A shard that was written anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairedShard {
    /// The index.
    pub shard: usize,
    /// The file.
    pub path: PathBuf,
    /// What it was before: damaged or missing.
    pub was: ShardState,
}

/// Verifies an object and writes every shard that is not intact. `progress` gets the object's bytes
/// twice: as they are verified, and as they are written. With [`RepairJob::fewest_reads`] a shard that
/// is all that is missing is written at once, from lanes that are intact, and nothing else is read.
///
/// # Errors
/// [`ErrorKind::TooFewShards`] and [`ErrorKind::DigestMismatch`] when the object is beyond repair,
/// and nothing has been touched; [`ErrorKind::Io`].
pub fn repair(object: &Object, job: &RepairJob, progress: Progress<'_>) -> Result<RepairReport> {
    if job.fewest_reads
        && let Some(report) = rebuild_missing(object, job, progress)?
    {
        return Ok(report);
    }
    let before = verify(object, job.threads, progress)?;
    if before.status == Status::Lost {
        let kind = match before.digest {
            DigestCheck::Wrong => ErrorKind::DigestMismatch,
            _ => ErrorKind::TooFewShards,
        };
        return Err(Error::new(kind, before.reason.unwrap_or_default()));
    }
    let bad = before.shards.iter().filter(|shard| shard.state != ShardState::Intact);
    let bad: Vec<(usize, ShardState)> = bad.map(|shard| (shard.index, shard.state)).collect();
    let targets = Targets::new(object, job.to.as_deref()).choose(&bad)?;
    let repaired = targets.iter().zip(&bad).map(|((path, _), &(shard, was))| RepairedShard {
        shard,
        path: path.clone(),
        was,
    });
    let mut repaired: Vec<RepairedShard> = repaired.collect();
    let mut read_bytes = before.read_bytes;
    if !bad.is_empty() {
        read_bytes += rewrite(object, job, targets, &bad, progress)?;
    }
    repaired.extend(name_unnamed(object, &before)?);
    let digest = before.digest;
    Ok(RepairReport { repaired, before: Some(before), digest, read_bytes })
}

/// Gives shards whose only intact file still has a temporary name, since a process was killed
/// while it named a complete set, the names that they were to have.
fn name_unnamed(object: &Object, before: &VerifyReport) -> Result<Vec<RepairedShard>> {
    let mut named = Vec::new();
    for shard in &before.shards {
        let intact: Vec<&Path> =
            shard.files.iter().filter(|f| f.is_intact()).map(|f| f.path.as_path()).collect();
        let is_unnamed = |path: &&Path| path.file_name().is_some_and(names::is_temporary);
        if intact.is_empty() || !intact.iter().all(is_unnamed) {
            continue;
        }
        let name = ShardName::new(object.name(), shard.index, object.shard_count())?;
        let path = intact[0].with_file_name(name.finished());
        let damaged_copy = shard.files.iter().any(|file| !file.is_intact() && file.path == path);
        let renamed = match damaged_copy {
            true => fs::rename(intact[0], &path),
            false => rename_new(intact[0], &path),
        };
        match renamed {
            Ok(()) => {
                named.push(RepairedShard { shard: shard.index, path, was: ShardState::Missing });
            }
            // The name is taken: the shard stays where it is, whole.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(Error::io("naming", &path, &error)),
        }
    }
    Ok(named)
}

/// Writes the bad shards and returns the bytes read for it.
fn rewrite(
    object: &Object,
    job: &RepairJob,
    targets: Vec<(PathBuf, Replace)>,
    bad: &[(usize, ShardState)],
    progress: Progress<'_>,
) -> Result<u64> {
    let sources = Sources::open(object)?;
    allow_open_files(object.shards().iter().map(Vec::len).sum::<usize>() + bad.len());
    let mut rebuilds = Vec::new();
    for ((path, replace), &(shard, _)) in targets.into_iter().zip(bad) {
        rebuilds.push(Rebuild::create(&sources, shard, path, replace)?);
    }
    let next = AtomicU64::new(0);
    let hasher = Crew::run(sources.threads(job.threads), blake3::Hasher::new(), |crew| {
        work(crew, &sources, &next, &rebuilds, progress)
    })?;
    check_digest(object, Digest::new(hasher.finalize().into()))?;
    commit(rebuilds.into_iter().map(|rebuild| rebuild.file).collect(), &[], job.sync)?;
    Ok(sources.read_bytes())
}

/// A shard that is being written.
pub(super) struct Rebuild {
    shard: usize,
    pub(super) file: Pending,
    /// Where its blocks begin.
    blocks: u64,
}

impl Rebuild {
    /// Starts a file with its headers.
    pub(super) fn create(
        sources: &Sources<'_>,
        shard: usize,
        path: PathBuf,
        replace: Replace,
    ) -> Result<Self> {
        let (front, footer) = sources.object.records(shard)?;
        let blocks = front.len() as u64;
        let length = sources.geometry.blocks(&sources.extent, shard).unwrap_or(0);
        let file = Pending::create(path, replace)?;
        file.write_at(&mut [IoSlice::new(&front)], 0)?;
        file.write_at(&mut [IoSlice::new(&footer)], blocks + length)?;
        Ok(Self { shard, file, blocks })
    }

    /// Writes the block of a segment.
    pub(super) fn write(
        &self,
        sources: &Sources<'_>,
        segment: &mut Segment<'_>,
        number: u64,
    ) -> Result<()> {
        let id = BlockId { object: sources.object.id(), shard: self.shard, segment: number };
        let start = sources.geometry.block_start(self.shard, number).unwrap_or(0);
        self.file.write_at(&mut segment.seal(id), self.blocks + start)
    }
}

fn work(
    crew: &Crew<blake3::Hasher>,
    sources: &Sources<'_>,
    next: &AtomicU64,
    rebuilds: &[Rebuild],
    progress: Progress<'_>,
) -> Result<()> {
    let mut segment = Segment::new(sources.geometry)?;
    let lanes = |rebuild: &Rebuild| sources.geometry.shard_buffers(rebuild.shard);
    let wanted: HashSet<usize> = rebuilds.iter().flat_map(lanes).collect();
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
        segment.compute(|buffer| wanted.contains(&buffer))?;
        rebuilds.iter().try_for_each(|rebuild| rebuild.write(sources, &mut segment, number))?;
        progress(bytes);
    }
    Ok(())
}

/// Chooses where shards are written.
pub(super) struct Targets<'a> {
    object: &'a Object,
    to: Option<&'a Path>,
    /// The directories in use, in order, with the number of the object's shards that they hold.
    directories: Vec<(PathBuf, usize)>,
}

impl<'a> Targets<'a> {
    pub(super) fn new(object: &'a Object, to: Option<&'a Path>) -> Self {
        let mut targets = Self { object, to, directories: Vec::new() };
        for file in object.shards().iter().filter_map(|files| files.first()) {
            targets.count(directory_of(file.path()));
        }
        targets
    }

    fn count(&mut self, directory: &Path) {
        match self.directories.iter_mut().find(|(known, _)| known == directory) {
            Some((_, shards)) => *shards += 1,
            None => self.directories.push((directory.to_owned(), 1)),
        }
    }

    /// A path for each shard, and whether it is to replace what is there.
    pub(super) fn choose(mut self, bad: &[(usize, ShardState)]) -> Result<Vec<(PathBuf, Replace)>> {
        bad.iter().map(|&(shard, _)| self.choose_one(shard)).collect()
    }

    fn choose_one(&mut self, shard: usize) -> Result<(PathBuf, Replace)> {
        if let (None, Some(damaged)) = (self.to, self.object.shards()[shard].first()) {
            // What a link leads to is replaced, not the link.
            let path = fs::canonicalize(damaged.path())
                .map_err(|error| Error::io("resolving", damaged.path(), &error))?;
            return Ok((path, Replace::Always));
        }
        let emptiest = self.directories.iter().min_by_key(|(_, shards)| *shards);
        let directory = match (self.to, emptiest) {
            (Some(to), _) => to.to_owned(),
            (None, Some((directory, _))) => directory.clone(),
            (None, None) => PathBuf::from("."),
        };
        self.count(&directory);
        self.free_name(&directory, shard)
    }

    /// A name in the directory that is free, or taken by a damaged copy of this very shard, or by
    /// a file that is no shard at all: what is left of this one, it seems.
    fn free_name(&self, directory: &Path, shard: usize) -> Result<(PathBuf, Replace)> {
        let name = ShardName::new(self.object.name(), shard, self.object.shard_count())?;
        let mut path = directory.join(name.finished());
        for number in 2.. {
            if fs::symlink_metadata(&path).is_err() {
                break;
            }
            if self.holds(shard, &path) {
                return Ok((path, Replace::Always));
            }
            if path.is_file() && recognise(&path).is_err() {
                return Ok((path, Replace::SetAside));
            }
            path = directory.join(name.numbered(number));
        }
        Ok((path, Replace::Never))
    }

    /// Whether a path is one of the files of a shard.
    fn holds(&self, shard: usize, path: &Path) -> bool {
        let Ok(path) = fs::canonicalize(path) else { return false };
        let files = self.object.shards()[shard].iter();
        files.filter_map(|file| fs::canonicalize(file.path()).ok()).any(|file| file == path)
    }
}
