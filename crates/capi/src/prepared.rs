//! Prepared calls: one question of a codec, ready to run.

use std::sync::Arc;

use paritas::Prepared;

use crate::codec::{Shaped, ids, paritas_codec};
use crate::handle::{self, Handle};
use crate::memory::{self, CallShards};
use crate::status::{Failure, Result, guard, paritas_status};

/// One question of a codec, ready to run: the shards that are read and the shards that are computed
/// are fixed. May be used by several threads at once, and stays valid when the codec is freed.
pub struct paritas_prepared {
    _opaque: (),
}

impl Handle for paritas_prepared {
    type Value = PreparedCall;
    const NAME: &'static str = "prepared call";
}

/// A prepared question, and the rows of its shards.
pub(crate) struct PreparedCall {
    prepared: Prepared,
    sources: Arc<[usize]>,
    targets: Arc<[usize]>,
    data_rows: usize,
}

impl PreparedCall {
    fn new(codec: &Shaped, prepared: Prepared, sources: &[usize], targets: &[usize]) -> Self {
        let rows = |nodes: &[usize]| nodes.iter().map(|&node| codec.rows_of(node)).collect();
        let (sources, targets) = (rows(sources), rows(targets));
        Self { prepared, sources, targets, data_rows: codec.data_rows }
    }

    fn row(&self, bytes: usize) -> Result<usize> {
        match bytes.is_multiple_of(self.data_rows) {
            true => Ok(bytes / self.data_rows),
            false => Err(Failure::arguments(format!(
                "a data shard must have a multiple of {} bytes, its rows; got {bytes}",
                self.data_rows
            ))),
        }
    }
}

/// Prepares encoding: the sources are the k data shards, the targets the m parity shards.
///
/// # Safety
/// The pointers are null or as this describes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_prepare_encode(
    codec: *const paritas_codec,
    prepared: *mut *mut paritas_prepared,
) -> paritas_status {
    let make = || {
        // SAFETY: as the caller promises.
        let codec = unsafe { handle::open(codec) }?;
        let (sources, targets) = (codec.standing(true), codec.standing(false));
        Ok(PreparedCall::new(codec, codec.codec.encoder()?, &sources, &targets))
    };
    // SAFETY: as the caller promises.
    guard(|| unsafe { handle::give(prepared, make) })
}

/// Prepares the reconstruction of the `lost_count` shards that `lost` numbers from the
/// `present_count` shards that `present` numbers. The sources are the present shards and the
/// targets the lost ones, each in the order given. Returns PARITAS_LOST if the present shards do
/// not suffice.
///
/// # Safety
/// The pointers are null or as this describes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_prepare_reconstruct(
    codec: *const paritas_codec,
    present: *const usize,
    present_count: usize,
    lost: *const usize,
    lost_count: usize,
    prepared: *mut *mut paritas_prepared,
) -> paritas_status {
    let make = || {
        // SAFETY: as the caller promises.
        let codec = unsafe { handle::open(codec) }?;
        // SAFETY: as the caller promises.
        let present = unsafe { codec.listed(present, present_count, "present") }?;
        // SAFETY: as the caller promises.
        let lost = unsafe { codec.listed(lost, lost_count, "lost") }?;
        let question = codec.codec.reconstructor(&ids(present), &ids(lost))?;
        Ok(PreparedCall::new(codec, question, present, lost))
    };
    // SAFETY: as the caller promises.
    guard(|| unsafe { handle::give(prepared, make) })
}

/// Prepares the update of parity after data shard `shard` changed: the sources are the old and the
/// new shard, the targets the m parity shards, which are changed in place.
///
/// # Safety
/// The pointers are null or as this describes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_prepare_update(
    codec: *const paritas_codec,
    shard: usize,
    prepared: *mut *mut paritas_prepared,
) -> paritas_status {
    let make = || {
        // SAFETY: as the caller promises.
        let codec = unsafe { handle::open(codec) }?;
        let question = codec.codec.updater(codec.expect_node(shard)?)?;
        Ok(PreparedCall::new(codec, question, &[shard, shard], &codec.parity))
    };
    // SAFETY: as the caller promises.
    guard(|| unsafe { handle::give(prepared, make) })
}

/// Prepares the update of parity by the difference alone: the only source is the XOR of the old and
/// the new content of data shard `shard`; the targets are the m parity shards, which are changed in
/// place. A store that sends changes to the nodes with parity sends only half of the bytes in this
/// way.
///
/// # Safety
/// The pointers are null or as this describes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_prepare_difference(
    codec: *const paritas_codec,
    shard: usize,
    prepared: *mut *mut paritas_prepared,
) -> paritas_status {
    let make = || {
        // SAFETY: as the caller promises.
        let codec = unsafe { handle::open(codec) }?;
        let question = codec.codec.difference_updater(codec.expect_node(shard)?)?;
        Ok(PreparedCall::new(codec, question, &[shard], &codec.parity))
    };
    // SAFETY: as the caller promises.
    guard(|| unsafe { handle::give(prepared, make) })
}

/// Returns the number of shards that a prepared call reads.
///
/// # Safety
/// `prepared` is null or a prepared call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_prepared_sources(prepared: *const paritas_prepared) -> usize {
    // SAFETY: as the caller promises.
    unsafe { handle::ask(prepared, |call| call.sources.len()) }
}

/// Returns the number of shards that a prepared call computes.
///
/// # Safety
/// `prepared` is null or a prepared call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_prepared_targets(prepared: *const paritas_prepared) -> usize {
    // SAFETY: as the caller promises.
    unsafe { handle::ask(prepared, |call| call.targets.len()) }
}

/// Runs a prepared call. Data shards have `bytes` bytes.
///
/// # Safety
/// The pointers are null or as the function that prepared the call says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_run(
    prepared: *const paritas_prepared,
    sources: *const *const u8,
    targets: *const *mut u8,
    bytes: usize,
) -> paritas_status {
    guard(|| {
        // SAFETY: as the caller promises.
        let call = unsafe { handle::open(prepared) }?;
        // SAFETY: as the caller promises.
        let sources = unsafe { memory::values(sources, call.sources.len(), "sources") }?;
        // SAFETY: as the caller promises.
        let targets = unsafe { memory::values(targets, call.targets.len(), "targets") }?;
        let row = call.row(bytes)?;
        let sources = sources
            .iter()
            .zip(&*call.sources)
            .map(|(&start, rows)| (start, row.saturating_mul(*rows)));
        let targets = targets
            .iter()
            .zip(&*call.targets)
            .map(|(&start, rows)| (start, row.saturating_mul(*rows)));
        // SAFETY: as the caller promises.
        let mut shards = unsafe { CallShards::new(sources, targets) }?;
        Ok(call.prepared.run(&shards.sources, &mut shards.targets)?)
    })
}

/// Runs a prepared call on groups of shards that lie in one buffer of `bytes` bytes, one group
/// after the other: packets in a ring, or stripes in a file that is mapped. Shard n of a group is
/// that of node n; it has `stride` bytes and begins n * `stride` bytes after the group. For an
/// update, the shards of a group are the sources and then the targets. The buffer must not be read
/// or written by others meanwhile.
///
/// Returns PARITAS_ARGUMENTS, and leaves the buffer as it is, if it has no whole number of groups
/// or a shard cannot have `stride` bytes.
///
/// # Safety
/// `buffer` is null, if `bytes` is 0, or valid for reads and writes of `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_run_strided(
    prepared: *const paritas_prepared,
    buffer: *mut u8,
    bytes: usize,
    stride: usize,
) -> paritas_status {
    guard(|| {
        // SAFETY: as the caller promises.
        let call = unsafe { handle::open(prepared) }?;
        // SAFETY: as the caller promises.
        let buffer = unsafe { memory::values_mut(buffer, bytes, "buffer") }?;
        Ok(call.prepared.run_strided(buffer, stride)?)
    })
}

/// Frees a prepared call. Null is allowed.
///
/// # Safety
/// `prepared` is null or a prepared call that is not in use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_prepared_free(prepared: *mut paritas_prepared) {
    // SAFETY: as the caller promises.
    guard(|| unsafe { handle::free(prepared) });
}
