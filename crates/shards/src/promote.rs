//! Promoting: computing the parts that a later stage of a code adds from some of the stored lanes.
//!
//! A code with stages names the cells that a stage is computed from ([`paritas::Code::promotion`]).
//! As long as all their lanes are there and intact, only these are read. If a shard is missing,
//! other lanes that determine the same cells are planned. If a block is damaged, enough of its
//! segment is read to compute the data.
//!
//! Existing files are not changed, and new files get their names only when all of them are
//! complete. If promotion is killed at any moment, the object is as it was, or has complete parts
//! of the new stage, some of them perhaps under temporary names. The next run names these, and
//! computes the parts that are still missing.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use paritas_store::error::{Error, Result};
use paritas_store::progress::Progress;

use crate::object::Object;
use crate::rebuild::{RebuiltPart, make_from};
use crate::repair::name_one;
use crate::sources::Sources;
use crate::targets::Targets;
use paritas_store::object::geometry::Part;
use paritas_store::setters;
use paritas_store::staging::sync_directories_of;

/// The settings of a promotion: a default, changed by setters of the same names.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PromoteJob {
    /// The directories that take new files in turn. If it is empty, a new part goes beside the
    /// other parts of its shard, and a new shard goes to the directory with the fewest shards.
    pub to: Vec<PathBuf>,
    /// Whether everything is synced to the disk before the files get their names.
    pub sync: bool,
    /// Largest number of threads. Default: the number that the machine runs at once.
    pub threads: Option<NonZeroUsize>,
}

impl Default for PromoteJob {
    /// Returns the usual settings: new files lie beside the old ones, and are synced.
    fn default() -> Self {
        Self { to: Vec::new(), sync: true, threads: None }
    }
}

setters! { PromoteJob {
    /// Writes new files to the directories `to` in turn.
    to: Vec<PathBuf>,
    /// Turns syncing on or off.
    sync: bool,
    /// Uses at most `threads` threads.
    threads: impl Into<Option<NonZeroUsize>>,
} }

/// The result of promoting.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PromoteReport {
    /// The stage that the object has reached.
    pub stage: u8,
    /// The parts that were added or got their names; empty if an earlier run did all of this.
    pub added: Vec<AddedPart>,
    /// The shards that were missing parts of earlier stages.
    pub missing: Vec<usize>,
    /// Number of segments in which something was damaged, so that more than usual had to be read.
    pub damaged_segments: u64,
    /// Number of bytes of blocks that were read, checksums included.
    pub read_bytes: u64,
    /// Number of bytes of packets that were read, without checksums.
    pub read_payload: u64,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

/// A part of a shard that promotion added.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AddedPart {
    /// The index of the shard.
    pub shard: usize,
    /// The file.
    pub path: PathBuf,
}

/// Promotes an object to the next stage of its code, or finishes an interrupted promotion.
/// `progress` gets the number of the object's bytes as they are done. Every lane that is read is
/// checked. The object's digest is not, because the object is not read.
///
/// # Errors
/// If the code has no stages ([`crate::ErrorKind::Parameters`]), if more is lost than can be
/// recovered ([`crate::ErrorKind::TooFewShards`]), or if reading or writing fails
/// ([`crate::ErrorKind::Io`]). Then no part is added.
pub fn promote(object: &Object, job: &PromoteJob, progress: Progress<'_>) -> Result<PromoteReport> {
    if object.stages() == 1 {
        return Err(Error::parameters(format!(
            "{}: {} has one stage, so there is nothing to promote; dpg and bbdpg codes have two",
            object.label(),
            object.code().spec()
        )));
    }
    let stage = next_stage(object);
    let mut report = PromoteReport::new(object, stage);
    name_parts(object, stage, &mut report)?;
    if job.sync {
        sync_directories_of(report.added.iter().map(|part| part.path.as_path()))?;
    }
    let parts = object.geometry.parts_in(stage);
    let missing: Vec<usize> = parts.filter(|&part| object.parts[part].is_empty()).collect();
    if !missing.is_empty() {
        add_parts(object, stage, job, &missing, &mut report, progress)?;
    }
    report.added.sort_by_key(|part| part.shard);
    Ok(report)
}

/// Returns the stage to be reached: the present one, if parts of it are missing, otherwise the
/// next.
fn next_stage(object: &Object) -> u8 {
    let stage = object.stage();
    let mut parts = object.geometry.parts_in(stage);
    let is_begun = stage > 1 && parts.any(|part| object.parts[part].is_empty());
    if is_begun { stage } else { (stage + 1).min(object.stages()) }
}

impl PromoteReport {
    fn new(object: &Object, stage: u8) -> Self {
        let earlier = 0..object.geometry.parts_until(stage - 1);
        let missing = earlier.filter(|&part| object.parts[part].is_empty());
        let mut missing: Vec<usize> = missing.map(|part| object.part(part).shard).collect();
        missing.dedup();
        Self {
            stage,
            added: Vec::new(),
            missing,
            damaged_segments: 0,
            read_bytes: 0,
            read_payload: 0,
            warnings: Vec::new(),
        }
    }

    fn add(&mut self, part: Part, path: PathBuf) {
        self.added.push(AddedPart { shard: part.shard, path });
    }
}

/// Gives complete parts their names, if an earlier run was killed before it had named all of them.
fn name_parts(object: &Object, stage: u8, report: &mut PromoteReport) -> Result<()> {
    for part in object.geometry.parts_in(stage) {
        let files = object.parts[part].iter();
        let (good, flawed): (Vec<_>, Vec<_>) =
            files.partition(|file| object.flaws(part, file).is_empty());
        let [good, flawed] =
            [good, flawed].map(|files| files.into_iter().map(|f| f.path()).collect::<Vec<&Path>>());
        if let Some(path) = name_one(object, part, &good, &flawed)? {
            report.add(object.part(part), path);
        }
    }
    Ok(())
}

/// Computes and publishes parts of a stage.
fn add_parts(
    object: &Object,
    stage: u8,
    job: &PromoteJob,
    parts: &[usize],
    report: &mut PromoteReport,
    progress: Progress<'_>,
) -> Result<()> {
    let sources = Sources::open(object, parts.len())?;
    let targets = Targets::new(object, &job.to).choose(parts)?;
    let paths: Vec<PathBuf> = targets.iter().map(|(path, _)| path.clone()).collect();
    let needed = needed(object, stage, parts, report.missing.is_empty());
    let rebuilds = RebuiltPart::create_all(object, targets, parts)?;
    let damaged = AtomicU64::new(0);
    make_from(&sources, &needed, &rebuilds, job.threads, progress, |segment, number| {
        damaged.fetch_add(1, Ordering::Relaxed);
        sources.load(segment, number)?;
        segment.make_data()?;
        Ok(true)
    })?;
    let committed = RebuiltPart::commit(rebuilds, &sources, job.sync)?;
    report.warnings.extend(committed.warnings());
    report.damaged_segments = damaged.into_inner();
    (report.read_bytes, report.read_payload) = (sources.read_bytes(), sources.read_payload());
    report.warnings.extend(warning(object, stage, parts, &paths));
    parts.iter().zip(paths).for_each(|(&part, path)| report.add(object.part(part), path));
    Ok(())
}

/// Returns the buffers that parts of a stage are computed from: the buffers that the code names or,
/// if shards are missing, others that exist. If too few exist, reading the first segment reports
/// it.
fn needed(object: &Object, stage: u8, parts: &[usize], is_whole: bool) -> Vec<usize> {
    let geometry = &*object.geometry;
    let standing = (0..object.parts().len()).filter(|&part| !object.parts[part].is_empty());
    let planned = match is_whole {
        true => None,
        false => geometry.buffers_to_make(standing, parts).ok(),
    };
    planned.unwrap_or_else(|| geometry.buffers_of_promotion(stage))
}

/// Returns a warning if fewer folders may be lost than shards.
fn warning(object: &Object, stage: u8, added: &[usize], paths: &[PathBuf]) -> Option<String> {
    let files = object.parts[..object.geometry.parts_until(stage)].iter().enumerate();
    let old = files.flat_map(|(part, files)| files.iter().map(move |file| (part, file.path())));
    let new = added.iter().copied().zip(paths.iter().map(PathBuf::as_path));
    object.placement_of(stage, old.chain(new)).warning(&object.geometry, stage, 0)
}
