//! Rebuilding the only missing shard, or part of one, from as few bytes of the others as possible.
//!
//! If the lanes of a code are single rows (see [`crate::format`]), it is read lane by lane: the
//! planner names few cells that determine the lost ones, and only their lanes are read, which is
//! about three quarters of what any k shards hold. For other codes whole blocks are read, and as
//! few as possible.
//!
//! Every lane that is read is checked by its checksum, and the missing part is computed from these
//! lanes alone. The object's digest is not checked, because the object is not read. Damage in other
//! lanes stays unseen until the next [`crate::verify`]. If a needed lane is not intact, this gives
//! up, and repair verifies everything first as usual.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use paritas::{Pass, PlanOptions, Reads};

use crate::Progress;
use crate::crew::Crew;
use crate::error::{ErrorKind, Result};
use crate::geometry::Geometry;
use crate::object::Object;
use crate::repair::{Rebuild, RepairJob, RepairReport, RepairedShard, Targets, spread_warnings};
use crate::segment::Segment;
use crate::sources::Sources;
use crate::verify::{DigestCheck, ShardState};

/// The result of an attempt to read little.
pub(super) enum Attempt {
    /// The missing part has been rebuilt.
    Made(Box<RepairReport>),
    /// More is wrong than one missing part.
    GivenUp {
        /// Number of bytes of blocks that were read before this showed.
        read_bytes: u64,
    },
}

/// Rebuilds the only missing part. Gives up if more than that is wrong, as far as it shows.
pub(super) fn rebuild_missing(
    object: &Object,
    job: &RepairJob,
    progress: Progress<'_>,
) -> Result<Attempt> {
    let Some(part) = only_missing(object) else { return Ok(Attempt::GivenUp { read_bytes: 0 }) };
    let sources = Sources::open(object, 1)?;
    let others = (0..object.parts().len()).filter(|&other| other != part);
    let needed = match needed_buffers(&object.geometry, others, &[part]) {
        // Even all of the others are not enough, as can happen with an LT code.
        Err(error) if error.kind() == ErrorKind::TooFewShards => {
            return Ok(Attempt::GivenUp { read_bytes: 0 });
        }
        needed => needed?,
    };
    let targets = Targets::new(object, job.to.as_slice()).choose(&[part])?;
    let path = targets.first().map(|(path, _)| path.clone()).unwrap_or_default();
    let rebuilds = Rebuild::create_all(object, targets, &[part])?;
    let give_up = |_: &mut Segment, _| Ok(false);
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

/// Computes parts, segment by segment, from the lanes in `needed`. If one of these is not intact,
/// `instead` is called to load the segment in another way. If it returns false, the work stops.
/// Returns whether all parts are complete.
pub(super) fn make_from(
    sources: &Sources<'_>,
    needed: &[usize],
    rebuilds: &[Rebuild],
    threads: Option<NonZeroUsize>,
    progress: Progress<'_>,
    instead: impl Fn(&mut Segment, u64) -> Result<bool> + Sync,
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

/// Returns the buffers of the parts `from` that are read to compute the parts `make`: those of the
/// cheapest plan, or of the one with the fewest cells, whichever has fewer bytes.
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
