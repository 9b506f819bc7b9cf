//! Objects: one piece of memory is cut into n shards, and joined again.

use paritas::Buffer;

use crate::codec::{Shaped, paritas_codec};
use crate::handle;
use crate::memory::{self, CallShards};
use crate::status::{Failure, Result, guard, paritas_status};

/// Cuts an object into k data shards and computes the m parity shards. `shards` are k + m pointers;
/// in a code of several stages (dpg), pointers to the shards of the first stage only. Data shards
/// have paritas_codec_data_len(codec, object_bytes) bytes, the last ones padded with zeros;
/// paritas_codec_shard_len() returns the length of the parity shards. Codes whose shards hold both
/// data and parity (xcode) are refused, also by paritas_object_decode().
///
/// # Safety
/// The pointers are null or as this describes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_object_encode(
    codec: *const paritas_codec,
    object: *const u8,
    object_bytes: usize,
    shards: *const *mut u8,
) -> paritas_status {
    guard(|| {
        // SAFETY: as the caller promises.
        let codec = unsafe { handle::open(codec) }?;
        codec.codec.code().expect_encoded_whole()?;
        let (data, parity) = (codec.standing(true), codec.standing(false));
        let count = data.len() + parity.len();
        // SAFETY: as the caller promises.
        let pointers = unsafe { memory::values(shards, count, "shards") }?;
        // SAFETY: as the caller promises.
        unsafe { memory::values(object, object_bytes, "object") }?;
        let bytes = data_bytes(codec, object_bytes)?;
        let nodes = data.iter().chain(&parity).copied();
        let targets = pointers.iter().copied().zip(nodes.map(codec.lengths(bytes)?));
        // SAFETY: as the caller promises.
        let mut shards = unsafe { CallShards::new([(object, object_bytes)], targets) }?;
        let object = shards.sources[0].as_ref();
        let mut targets: Vec<&mut [u8]> = shards.targets.iter_mut().map(AsMut::as_mut).collect();
        let (data, parity) = targets.split_at_mut(data.len());
        fill(object, data);
        Ok(codec.codec.encode(data, parity)?)
    })
}

/// Returns the bytes of a data shard, if the code's shards hold either data or parity.
fn data_bytes(codec: &Shaped, object: usize) -> Result<usize> {
    // Refuses codes whose shards hold both data and parity.
    codec.codec.encoder()?;
    match codec.codec.shard_len(object) {
        usize::MAX => Err(Failure::arguments(format!(
            "no memory holds the shards of an object of {object} bytes"
        ))),
        bytes => Ok(bytes),
    }
}

/// Cuts an object into shards and pads them with zeros.
fn fill(object: &[u8], shards: &mut [&mut [u8]]) {
    let mut rest = object;
    for shard in shards {
        let (piece, after) = rest.split_at(rest.len().min(shard.len()));
        shard[..piece.len()].copy_from_slice(piece);
        shard[piece.len()..].fill(0);
        rest = after;
    }
}

/// Joins an object from its shards. `shards` are pointers to all shards of the code; null stands
/// for a lost shard. Lost data is computed directly into `object`; the shards stay unchanged.
/// Returns PARITAS_LOST if too many shards are lost.
///
/// # Safety
/// The pointers are null or as this describes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_object_decode(
    codec: *const paritas_codec,
    shards: *const *const u8,
    object: *mut u8,
    object_bytes: usize,
) -> paritas_status {
    guard(|| {
        // SAFETY: as the caller promises.
        let codec = unsafe { handle::open(codec) }?;
        // SAFETY: as the caller promises.
        let pointers = unsafe { memory::values(shards, codec.nodes(), "shards") }?;
        // SAFETY: as the caller promises.
        unsafe { memory::values(object.cast_const(), object_bytes, "object") }?;
        let bytes = data_bytes(codec, object_bytes)?;
        let length = codec.lengths(bytes)?;
        let present: Vec<usize> =
            (0..codec.nodes()).filter(|&node| !pointers[node].is_null()).collect();
        let sources = present.iter().map(|&node| (pointers[node], length(node)));
        // SAFETY: as the caller promises.
        let mut shards = unsafe { CallShards::new(sources, [(object, object_bytes)]) }?;
        let mut buffers: Vec<Buffer<'_>> = Vec::new();
        buffers.resize_with(codec.nodes(), Buffer::default);
        for (&node, source) in present.iter().zip(&shards.sources) {
            buffers[node] = Buffer::Source(source.as_ref());
        }
        join(codec, buffers, shards.targets[0].as_mut(), bytes)
    })
}

/// Writes an object from the shards `present`. Data shards have `bytes` bytes.
fn join(codec: &Shaped, present: Vec<Buffer<'_>>, object: &mut [u8], bytes: usize) -> Result<()> {
    if object.is_empty() {
        return Ok(());
    }
    // The shard that extends beyond the end of the object is computed in separate memory.
    let mut beside = Vec::new();
    let mut end = None;
    let mut buffers = present;
    let mut is_whole = true;
    for (&node, piece) in codec.data.iter().zip(object.chunks_mut(bytes)) {
        if let Buffer::Source(shard) = &buffers[node] {
            piece.copy_from_slice(&shard[..piece.len()]);
            continue;
        }
        is_whole = false;
        if piece.len() == bytes {
            buffers[node] = Buffer::Target(piece);
        } else {
            end = Some((node, piece));
        }
    }
    if let Some((node, _)) = &end {
        beside.resize(bytes, 0);
        buffers[*node] = Buffer::Target(&mut beside);
    }
    if !is_whole {
        codec.codec.reconstruct_into(&mut buffers)?;
    }
    drop(buffers);
    if let Some((_, piece)) = end {
        piece.copy_from_slice(&beside[..piece.len()]);
    }
    Ok(())
}
