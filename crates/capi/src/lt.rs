//! LT codes: blocks from an object, and the object from enough blocks in any order. The names
//! follow the interface of Uyeda, Xia and Chien (2004): Encode, DecInit, DecPush and Release.

use std::ffi::c_char;
use std::sync::{Mutex, MutexGuard, PoisonError};

use paritas::lt::{LtBlock, LtBlocks, LtCode, LtDecoder, LtEncoder, LtInfo, LtOptions};

use crate::handle::{self, Handle};
use crate::memory;
use crate::status::{Failure, Result, guard, paritas_status, pointer, value};

/// All blocks of an object, and the information that a decoder needs about them. May be used by
/// several threads at once.
pub struct paritas_lt_blocks {
    _opaque: (),
}

/// A decoder. Several threads may push blocks into it; they take turns.
pub struct paritas_lt_decoder {
    _opaque: (),
}

impl Handle for paritas_lt_blocks {
    type Value = Encoded;
    const NAME: &'static str = "set of LT blocks";
}

impl Handle for paritas_lt_decoder {
    type Value = Mutex<LtDecoder<Vec<u8>>>;
    const NAME: &'static str = "LT decoder";
}

pub(crate) struct Encoded {
    blocks: LtBlocks,
    info: Vec<u8>,
}

/// Encode: computes all blocks of an object with the code named `spec`, such as "lt:k=1024,n=2048".
/// The object must have at least one byte.
///
/// # Safety
/// The pointers are null or as this describes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_lt_encode(
    spec: *const c_char,
    object: *const u8,
    object_bytes: usize,
    blocks: *mut *mut paritas_lt_blocks,
) -> paritas_status {
    let make = || {
        // SAFETY: as the caller promises.
        let spec = unsafe { memory::text(spec, "spec") }?;
        // SAFETY: as the caller promises.
        let object = unsafe { memory::values(object, object_bytes, "object") }?;
        let encoder = LtEncoder::new(LtCode::new(&spec.parse()?)?, LtOptions::default())?;
        let (info, blocks) = encoder.encode(object)?;
        Ok(Encoded { blocks, info: info.to_bytes()? })
    };
    // SAFETY: as the caller promises.
    guard(|| unsafe { handle::give(blocks, make) })
}

/// Returns the number of blocks, n.
///
/// # Safety
/// `blocks` is null or a set of blocks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_lt_block_count(blocks: *const paritas_lt_blocks) -> usize {
    // SAFETY: as the caller promises.
    unsafe { handle::ask(blocks, |encoded| encoded.blocks.count()) }
}

/// Returns the bytes of every block.
///
/// # Safety
/// `blocks` is null or a set of blocks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_lt_block_bytes(blocks: *const paritas_lt_blocks) -> usize {
    // SAFETY: as the caller promises.
    unsafe { handle::ask(blocks, |encoded| encoded.blocks.block_bytes()) }
}

/// Returns a block by its number, from 0 to n - 1; null for other numbers. The block lives as long
/// as the set.
///
/// # Safety
/// `blocks` is null or a set of blocks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_lt_block(
    blocks: *const paritas_lt_blocks,
    number: usize,
) -> *const u8 {
    pointer(|| {
        // SAFETY: as the caller promises.
        let encoded = unsafe { handle::open(blocks) }?;
        let count = encoded.blocks.count();
        let none =
            || Failure::arguments(format!("a block's number is below {count}; got {number}"));
        Ok(encoded.blocks.get(number).ok_or_else(none)?.as_ptr())
    })
}

/// Returns the information that a decoder needs: the code, lengths and checksums. `bytes` receives
/// its length. Keep a copy of it with the blocks; this memory lives as long as the set.
///
/// # Safety
/// The pointers are null or as this describes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_lt_info(
    blocks: *const paritas_lt_blocks,
    bytes: *mut usize,
) -> *const u8 {
    pointer(|| {
        // SAFETY: as the caller promises.
        let info = &unsafe { handle::open(blocks) }?.info;
        // SAFETY: as the caller promises.
        unsafe { memory::store(bytes, info.len(), "bytes") }?;
        Ok(info.as_ptr())
    })
}

/// Frees a set of blocks. Null is allowed.
///
/// # Safety
/// `blocks` is null or a set of blocks that is not in use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_lt_blocks_free(blocks: *mut paritas_lt_blocks) {
    // SAFETY: as the caller promises.
    guard(|| unsafe { handle::free(blocks) });
}

/// DecInit: makes a decoder from the `info_bytes` bytes that paritas_lt_info() returned.
///
/// # Safety
/// The pointers are null or as this describes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_lt_dec_init(
    info: *const u8,
    info_bytes: usize,
    decoder: *mut *mut paritas_lt_decoder,
) -> paritas_status {
    let make = || {
        // SAFETY: as the caller promises.
        let info = unsafe { memory::values(info, info_bytes, "info") }?;
        Ok(Mutex::new(LtDecoder::new(&LtInfo::from_bytes(info)?, LtOptions::default())?))
    };
    // SAFETY: as the caller promises.
    guard(|| unsafe { handle::give(decoder, make) })
}

/// Opens a decoder for this thread alone.
///
/// # Safety
/// `decoder` is null or a decoder.
unsafe fn locked<'a>(
    decoder: *const paritas_lt_decoder,
) -> Result<MutexGuard<'a, LtDecoder<Vec<u8>>>> {
    // SAFETY: as the caller promises.
    let decoder = unsafe { handle::open(decoder) }?;
    // A call that panicked has changed nothing: only the planner can panic in it.
    Ok(decoder.lock().unwrap_or_else(PoisonError::into_inner))
}

/// DecPush: gives block number `number` to a decoder, which copies it. `ready` receives whether the
/// object can be rebuilt; it may be null. A block that has been pushed before changes nothing. A
/// block whose checksum is wrong changes nothing either; the call then returns
/// PARITAS_CHECK_FAILED.
///
/// # Safety
/// The pointers are null or as this describes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_lt_dec_push(
    decoder: *const paritas_lt_decoder,
    number: usize,
    block: *const u8,
    bytes: usize,
    ready: *mut bool,
) -> paritas_status {
    guard(|| {
        // SAFETY: as the caller promises.
        let block = unsafe { memory::values(block, bytes, "block") }?;
        // SAFETY: as the caller promises.
        let mut decoder = unsafe { locked(decoder) }?;
        let is_ready = decoder.push(LtBlock { number, bytes: block.to_vec() })?;
        // SAFETY: as the caller promises.
        unsafe { memory::tell(ready, is_ready, "ready") }
    })
}

/// Writes the object to `object`. `object_bytes` must be the object's length. Returns PARITAS_LOST
/// if the blocks do not suffice yet.
///
/// # Safety
/// The pointers are null or as this describes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_lt_dec_object(
    decoder: *const paritas_lt_decoder,
    object: *mut u8,
    object_bytes: usize,
) -> paritas_status {
    guard(|| {
        // SAFETY: as the caller promises.
        let object = unsafe { memory::values_mut(object, object_bytes, "object") }?;
        // SAFETY: as the caller promises.
        Ok(unsafe { locked(decoder) }?.reconstruct_into(object)?)
    })
}

/// Returns the number of different blocks that a decoder has received.
///
/// # Safety
/// `decoder` is null or a decoder.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_lt_dec_received(decoder: *const paritas_lt_decoder) -> usize {
    // SAFETY: as the caller promises.
    value(|| unsafe { locked(decoder) }.map(|decoder| decoder.received()))
}

/// Release: frees a decoder. Null is allowed.
///
/// # Safety
/// `decoder` is null or a decoder that is not in use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_lt_release(decoder: *mut paritas_lt_decoder) {
    // SAFETY: as the caller promises.
    guard(|| unsafe { handle::free(decoder) });
}
