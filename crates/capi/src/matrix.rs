//! Codecs from a bit matrix that the caller gives, and the losses that a code survives.

use std::ffi::c_char;

use paritas::code::{BitMatrix, ParityMatrix, ParityPlacement};
use paritas::erasure::survival;
use paritas::{Code, Codec};

use crate::codec::{Shaped, chosen, paritas_codec, paritas_options};
use crate::handle;
use crate::memory;
use crate::status::{Failure, Result, guard, paritas_status};

/// The shape of a bit matrix: m·w rows, one for each parity packet, and k·w columns, one for each
/// data packet.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct paritas_matrix_shape {
    /// Nodes' worth of data.
    pub k: usize,
    /// Nodes' worth of parity.
    pub m: usize,
    /// Packets of a node in one stripe.
    pub w: usize,
    /// 0: k nodes hold data, and m nodes after them parity. Any other number: each of the k + m
    /// nodes holds data, and parity after it, as in X-Code; k·w and m·w must be multiples of k + m.
    pub vertical: i32,
}

/// Number of losses of some number of shards that a code survives.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct paritas_survival {
    /// Number of sets of that many shards; UINT64_MAX if there are more.
    pub sets: u64,
    /// Number of sets that were tried: all, or a random sample.
    pub tried: u64,
    /// Number of tried sets after whose loss all data can be computed.
    pub survived: u64,
}

/// Makes a codec for the code of a bit matrix, which need not be MDS. `bits` has a byte of 0 or 1
/// for each bit, row by row, as paritas_matrix() writes them: rows and columns are in the order of
/// nodes and then of their packets. `count` is the number of bytes, m·w times k·w. A matrix with
/// which the loss of a single shard is fatal is refused with PARITAS_ARGUMENTS. `options` may be
/// null. The codec's spec holds the matrix: paritas_codec_new() and the functions for files accept
/// this spec.
///
/// # Safety
/// The pointers are null or as this describes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_codec_of_matrix(
    shape: *const paritas_matrix_shape,
    bits: *const u8,
    count: usize,
    options: *const paritas_options,
    codec: *mut *mut paritas_codec,
) -> paritas_status {
    guard(|| {
        let make = || {
            // SAFETY: the caller's pointers are null or valid.
            let shape = unsafe { memory::optional(shape, "shape") }?;
            let shape = shape.ok_or_else(|| Failure::arguments("shape must not be null"))?;
            // SAFETY: as above.
            let bits = unsafe { memory::values(bits, count, "bits") }?;
            // SAFETY: as above.
            let options = unsafe { memory::optional(options, "options") }?;
            codec_of(&matrix(shape, bits)?, options)
        };
        // SAFETY: as above.
        unsafe { handle::give(codec, make) }
    })
}

/// Makes a codec for the code of a bit matrix that is written as a text, as `paritas codes --help`
/// describes. `options` may be null. In all else like paritas_codec_of_matrix().
///
/// # Safety
/// The pointers are null or as this describes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_codec_of_matrix_text(
    text: *const c_char,
    options: *const paritas_options,
    codec: *mut *mut paritas_codec,
) -> paritas_status {
    guard(|| {
        let make = || {
            // SAFETY: the caller's pointers are null or valid.
            let text = unsafe { memory::text(text, "text") }?;
            // SAFETY: as above.
            let options = unsafe { memory::optional(options, "options") }?;
            codec_of(&text.parse()?, options)
        };
        // SAFETY: as above.
        unsafe { handle::give(codec, make) }
    })
}

/// Tries losses of `lost` shards: all sets of shards if there are at most `most`, otherwise `most`
/// random sets, which are the same in every call.
///
/// # Safety
/// The pointers are null or as this describes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_codec_survival(
    codec: *const paritas_codec,
    lost: usize,
    most: u64,
    result: *mut paritas_survival,
) -> paritas_status {
    guard(|| {
        // SAFETY: as the caller promises.
        let codec = unsafe { handle::open(codec) }?;
        let found = survival(codec.codec.code(), lost, most);
        let (sets, tried, survived) = (found.sets, found.tried, found.survived);
        // SAFETY: as the caller promises.
        unsafe { memory::store(result, paritas_survival { sets, tried, survived }, "result") }
    })
}

fn codec_of(matrix: &ParityMatrix, options: Option<&paritas_options>) -> Result<Shaped> {
    Shaped::new(Codec::with_options(Code::from_matrix(matrix)?, chosen(options)?)?)
}

/// Refuses a number of bytes that is not that of a matrix's bits.
pub(crate) fn expect_bits(rows: usize, columns: usize, given: usize) -> Result<()> {
    match rows.checked_mul(columns) == Some(given) {
        true => Ok(()),
        false => Err(Failure::arguments(format!(
            "a matrix of {rows} rows and {columns} columns needs {rows} times {columns} bytes; got \
             {given}"
        ))),
    }
}

fn matrix(shape: &paritas_matrix_shape, bytes: &[u8]) -> Result<ParityMatrix> {
    let &paritas_matrix_shape { k, m, w, vertical } = shape;
    let (rows, columns) = (m.saturating_mul(w), k.saturating_mul(w));
    expect_bits(rows, columns, bytes.len())?;
    if let Some(at) = bytes.iter().position(|&bit| bit > 1) {
        return Err(Failure::arguments(format!(
            "bits must be 0 or 1; row {}, column {} is {}",
            at / columns,
            at % columns,
            bytes[at]
        )));
    }
    let supports: Vec<Vec<usize>> = bytes
        .chunks(columns.max(1))
        .map(|row| (0..columns).filter(|&column| row[column] == 1).collect())
        .collect();
    let placement = match vertical {
        0 => ParityPlacement::Horizontal,
        _ => ParityPlacement::Vertical,
    };
    Ok(ParityMatrix::new(k, m, w, placement, BitMatrix::from_supports(columns, &supports))?)
}
