//! Promoting: the parts that a later stage of a code adds are made from part of what is stored.
//!
//! A code with stages names the cells that a stage is made from ([`paritas::Code::promotion`]).
//! Their lanes are read by ranges and nothing else is, as long as all are there and intact. Where a
//! shard is missing other lanes are planned that determine the same, and where a block is damaged
//! so much is read of its segment that the data can be had.
//!
//! No file is changed and none gets its name before all are complete: killed at any moment,
//! promotion leaves the object as it was, or with complete parts of the new stage, some perhaps
//! under temporary names, which the next run finds and names. What is still missing it makes anew.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};
use crate::shard::Progress;
use crate::shard::geometry::Part;
use crate::shard::object::Object;
use crate::shard::place::sync_directories_of;
use crate::shard::rebuild::{make_from, needed_buffers};
use crate::shard::repair::{Rebuild, Targets, name_one};
use crate::shard::sources::{Depth, Sources};

/// How to promote.
#[derive(Debug, Clone)]
pub struct PromoteJob {
    /// The directories that take new files in turn. Without any, a part of a shard that is there
    /// goes beside it, and a new shard to the directory with the fewest.
    pub to: Vec<PathBuf>,
    /// Whether everything is to be on the disk before the files get their names.
    pub sync: bool,
    /// The number of threads; 0 stands for the machine's.
    pub threads: usize,
}

/// What promoting did.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PromoteReport {
    /// The stage that the object has reached.
    pub stage: u8,
    /// The parts that were added, or given their names; none where that was done before.
    pub added: Vec<AddedPart>,
    /// The shards that were missing parts of earlier stages.
    pub missing: Vec<usize>,
    /// The segments in which something was damaged, so that more than usual had to be read.
    pub damaged_segments: u64,
    /// The bytes of blocks that were read, checksums included.
    pub read_bytes: u64,
    /// The bytes of packets that were read, checksums apart.
    pub read_payload: u64,
    /// What the user should know.
    pub warnings: Vec<String>,
}

/// A part of a shard that an object was promoted with.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AddedPart {
    /// The index of the shard.
    pub shard: usize,
    /// The file.
    pub path: PathBuf,
}

/// Brings an object to the next stage of its code, or finishes that where it was interrupted.
/// `progress` gets the object's bytes as they are done. Every lane that is read is checked; the
/// object's digest is not, for the object is not read.
///
/// # Errors
/// [`crate::ErrorKind::Parameters`] when the code has no stages, [`crate::ErrorKind::TooFewShards`]
/// when more is lost than can be recovered, and [`crate::ErrorKind::Io`]; no part is added then.
pub fn promote(object: &Object, job: &PromoteJob, progress: Progress<'_>) -> Result<PromoteReport> {
    if object.stages() == 1 {
        return Err(Error::parameters(format!(
            "{}: {} is made in one stage, and there is nothing to promote; dpg and bbdpg codes have two",
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

/// The stage that is to be reached: the present one while parts of it are missing.
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

/// Names the parts that a run has completed, and was killed before all had their names.
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

/// Makes and publishes parts of a stage.
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
    let rebuilds = Rebuild::create_all(object, targets, parts)?;
    let damaged = AtomicU64::new(0);
    make_from(&sources, &needed, &rebuilds, job.threads, progress, |segment, number| {
        damaged.fetch_add(1, Ordering::Relaxed);
        sources.load(segment, number, Depth::Enough)?;
        segment.compute_data()?;
        Ok(true)
    })?;
    Rebuild::commit(rebuilds, &sources, job.sync)?;
    report.damaged_segments = damaged.into_inner();
    (report.read_bytes, report.read_payload) = (sources.read_bytes(), sources.read_payload());
    report.warnings.extend(warning(object, stage, parts, &paths));
    parts.iter().zip(paths).for_each(|(&part, path)| report.add(object.part(part), path));
    Ok(())
}

/// The buffers that parts of a stage are made from: those that the code names, or where shards are
/// missing others that are there. If there are not enough, reading the first will tell.
fn needed(object: &Object, stage: u8, parts: &[usize], is_whole: bool) -> Vec<usize> {
    let geometry = &*object.geometry;
    let standing = (0..object.parts().len()).filter(|&part| !object.parts[part].is_empty());
    let planned = match is_whole {
        true => None,
        false => needed_buffers(geometry, standing, parts).ok(),
    };
    planned.unwrap_or_else(|| {
        let promotion = object.code().promotion(stage);
        let reads: Vec<_> = promotion.iter().flat_map(|promotion| promotion.reads.iter()).collect();
        geometry.buffers_of(&reads)
    })
}

/// Warns where fewer folders may be lost than shards.
fn warning(object: &Object, stage: u8, added: &[usize], paths: &[PathBuf]) -> Option<String> {
    let files = object.parts[..object.geometry.parts_until(stage)].iter().enumerate();
    let old = files.flat_map(|(part, files)| files.iter().map(move |file| (part, file.path())));
    let new = added.iter().copied().zip(paths.iter().map(PathBuf::as_path));
    object.placement_of(stage, old.chain(new)).warning(&object.geometry, stage, 0)
}
