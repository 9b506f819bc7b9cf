//! Rebuilding the one shard that is missing from the fewest bytes of the others.
//!
//! A code whose lanes are single rows (see [`super::format`]) is read lane by lane: the planner names
//! few cells that determine the lost ones, and only their lanes are read, about three quarters of
//! what any k shards hold. Other codes give up whole blocks, and the fewest of them.
//!
//! What is read is guarded by its checksums, lane by lane, and what is written is computed from
//! nothing else. The object's digest is not checked, for the object is not read: damage in lanes that
//! are not needed stays unseen until the next [`super::verify`]. As soon as anything that was to be
//! read is not intact, this gives up, and repair does what it does otherwise.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use paritas::{NodeId, Pass, PlanOptions, Reads};

use crate::error::Result;
use crate::shard::Progress;
use crate::shard::crew::Crew;
use crate::shard::geometry::Geometry;
use crate::shard::object::Object;
use crate::shard::place::commit;
use crate::shard::repair::{Rebuild, RepairJob, RepairReport, RepairedShard, Targets};
use crate::shard::segment::Segment;
use crate::shard::sources::Sources;
use crate::shard::verify::{DigestCheck, ShardState};

/// Rebuilds the only missing shard, or nothing where more than that is wrong, as far as is seen.
pub(super) fn rebuild_missing(
    object: &Object,
    job: &RepairJob,
    progress: Progress<'_>,
) -> Result<Option<RepairReport>> {
    let Some(shard) = only_missing(object) else { return Ok(None) };
    let sources = Sources::open(object)?;
    let needed = needed_buffers(sources.geometry, shard)?;
    let missing = [(shard, ShardState::Missing)];
    let mut targets = Targets::new(object, job.to.as_deref()).choose(&missing)?;
    let Some((path, replace)) = targets.pop() else { return Ok(None) };
    let rebuild = Rebuild::create(&sources, shard, path.clone(), replace)?;
    let (next, damaged) = (AtomicU64::new(0), AtomicBool::new(false));
    Crew::run(sources.threads(job.threads), (), |_| {
        let mut segment = Segment::new(sources.geometry)?;
        while !damaged.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= sources.extent.count() {
                break;
            }
            if !sources.load_buffers(&mut segment, number, &needed) {
                damaged.store(true, Ordering::Relaxed);
                break;
            }
            segment.compute(|buffer| sources.geometry.shard_buffers(shard).contains(&buffer))?;
            rebuild.write(&sources, &mut segment, number)?;
            progress(sources.extent.bytes(number));
        }
        Ok(())
    })?;
    if damaged.into_inner() {
        return Ok(None);
    }
    commit(vec![rebuild.file], &[], job.sync)?;
    Ok(Some(RepairReport {
        repaired: vec![RepairedShard { shard, path, was: ShardState::Missing }],
        before: None,
        digest: DigestCheck::Unchecked,
        read_bytes: sources.read_bytes(),
    }))
}

/// The shard without a file, where every other one has a single file, well named and whole to look at.
fn only_missing(object: &Object) -> Option<usize> {
    let [missing] = object.missing()[..] else { return None };
    let whole = |(shard, files): (usize, &Vec<_>)| match &files[..] {
        [file] => object.flaws(shard, file).is_empty() && object.is_named_well(shard, file),
        files => files.is_empty() && shard == missing,
    };
    object.shards().iter().enumerate().all(whole).then_some(missing)
}

/// The buffers to be read for a shard's: those of the cheapest plan or of the one with the fewest
/// cells, whichever are fewer bytes.
fn needed_buffers(geometry: &Geometry, shard: usize) -> Result<Vec<usize>> {
    let code = geometry.code();
    let lost = NodeId::new(shard);
    let have = code.cells_of(code.nodes().filter(|&node| node != lost));
    let want = code.cells_of([lost]);
    let mut best: Option<(usize, Vec<usize>)> = None;
    for reads in [Reads::Any, Reads::Fewest] {
        let options = PlanOptions { pass: Pass::Direct, reads, ..PlanOptions::default() };
        let plan = code.schedule_with(&have, &want, options)?;
        let buffers = geometry.buffers_of(plan.inputs());
        let bytes = buffers.iter().map(|&buffer| geometry.payload(buffer, 1)).sum();
        if best.as_ref().is_none_or(|(fewest, _)| bytes < *fewest) {
            best = Some((bytes, buffers));
        }
    }
    Ok(best.map(|(_, buffers)| buffers).unwrap_or_default())
}
