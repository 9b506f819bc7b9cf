//! Rebuilding the one shard, or part of one, that is missing from the fewest bytes of the others.
//!
//! A code whose lanes are single rows (see [`super::format`]) is read lane by lane: the planner
//! names few cells that determine the lost ones, and only their lanes are read, about three
//! quarters of what any k shards hold. Other codes give up whole blocks, and the fewest of them.
//!
//! What is read is guarded by its checksums, lane by lane, and what is written is computed from
//! nothing else. The object's digest is not checked, for the object is not read: damage in lanes
//! that are not needed stays unseen until the next [`super::verify`]. As soon as anything that was
//! to be read is not intact, this gives up, and repair does what it does otherwise.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use paritas::{Pass, PlanOptions, Reads};

use crate::error::{ErrorKind, Result};
use crate::shard::Progress;
use crate::shard::crew::Crew;
use crate::shard::geometry::Geometry;
use crate::shard::object::Object;
use crate::shard::repair::{
    Rebuild, RepairJob, RepairReport, RepairedShard, Targets, spread_warnings,
};
use crate::shard::segment::Segment;
use crate::shard::sources::Sources;
use crate::shard::verify::{DigestCheck, ShardState};

/// What came of reading little.
pub(super) enum Attempt {
    /// The missing part is made.
    Made(Box<RepairReport>),
    /// More is wrong than one missing part, which was found after so many bytes of blocks.
    GivenUp {
        /// The bytes of blocks that were read.
        read_bytes: u64,
    },
}

/// Rebuilds the only missing part, or nothing where more than that is wrong, as far as is seen.
pub(super) fn rebuild_missing(
    object: &Object,
    job: &RepairJob,
    progress: Progress<'_>,
) -> Result<Attempt> {
    let Some(part) = only_missing(object) else { return Ok(Attempt::GivenUp { read_bytes: 0 }) };
    let sources = Sources::open(object, 1)?;
    let others = (0..object.parts().len()).filter(|&other| other != part);
    let needed = match needed_buffers(&object.geometry, others, &[part]) {
        // Even all of the others are not enough, of an LT code for example.
        Err(error) if error.kind() == ErrorKind::TooFewShards => {
            return Ok(Attempt::GivenUp { read_bytes: 0 });
        }
        needed => needed?,
    };
    let targets = Targets::new(object, job.to.as_slice()).choose(&[part])?;
    let path = targets.first().map(|(path, _)| path.clone()).unwrap_or_default();
    let rebuilds = Rebuild::create_all(object, targets, &[part])?;
    let give_up = |_: &mut Segment<'_>, _| Ok(false);
    if !make_from(&sources, &needed, &rebuilds, job.threads, progress, give_up)? {
        return Ok(Attempt::GivenUp { read_bytes: sources.read_bytes() });
    }
    let read_bytes = sources.read_bytes();
    let moved_aside = Rebuild::commit(rebuilds, &sources, job.sync)?;
    let placement = object.placement_with(part, &path);
    let report = RepairReport {
        repaired: vec![RepairedShard::new(object, part, &path, ShardState::Missing)],
        moved_aside,
        before: None,
        digest: DigestCheck::Unchecked,
        read_bytes,
        warnings: spread_warnings(object, &placement, false),
        placement,
    };
    Ok(Attempt::Made(Box::new(report)))
}

/// The part without a file, where every other one has a single file, well named and whole to look
/// at.
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

/// Makes parts, segment by segment, from the given lanes. Where one of these is not intact,
/// `instead` is to load what is needed in another way; if it says that it does not, no more is done
/// and the answer is no.
pub(super) fn make_from(
    sources: &Sources<'_>,
    needed: &[usize],
    rebuilds: &[Rebuild],
    threads: usize,
    progress: Progress<'_>,
    instead: impl Fn(&mut Segment<'_>, u64) -> Result<bool> + Sync,
) -> Result<bool> {
    let wanted = Rebuild::wanted(rebuilds, sources);
    let (next, given_up) = (AtomicU64::new(0), AtomicBool::new(false));
    Crew::run(sources.threads(threads), (), |crew| {
        let mut segment = Segment::new(sources.geometry)?;
        while !crew.is_stopped() && !given_up.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= sources.extent.count() {
                break;
            }
            let loaded = sources.load_buffers(&mut segment, number, needed);
            if !loaded && !instead(&mut segment, number)? {
                given_up.store(true, Ordering::Relaxed);
                break;
            }
            segment.compute(|buffer| wanted[buffer])?;
            rebuilds.iter().try_for_each(|part| part.write(sources, &mut segment, number))?;
            progress(sources.extent.bytes(number));
        }
        Ok(())
    })?;
    Ok(!given_up.into_inner())
}

/// The buffers to be read of some parts to make others: those of the cheapest plan or of the one
/// with the fewest cells, whichever are fewer bytes.
pub(super) fn needed_buffers(
    geometry: &Geometry,
    from: impl IntoIterator<Item = usize>,
    make: &[usize],
) -> Result<Vec<usize>> {
    let buffers = |part| geometry.part_buffers(part);
    let have = geometry.cells(from.into_iter().flat_map(buffers));
    let want = geometry.cells(make.iter().copied().flat_map(buffers));
    let mut best: Option<(usize, Vec<usize>)> = None;
    for reads in [Reads::Any, Reads::Fewest] {
        let options = PlanOptions::default().pass(Pass::Direct).reads(reads);
        let plan = geometry.code().schedule_with(&have, &want, options)?;
        let buffers = geometry.buffers_of(plan.inputs());
        let bytes = buffers.iter().map(|&buffer| geometry.payload(buffer, 1)).sum();
        if best.as_ref().is_none_or(|(fewest, _)| bytes < *fewest) {
            best = Some((bytes, buffers));
        }
    }
    Ok(best.map(|(_, buffers)| buffers).unwrap_or_default())
}
