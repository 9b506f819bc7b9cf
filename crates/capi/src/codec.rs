//! Codecs: made from a spec; they encode, reconstruct and update shards in the caller's memory.

use std::ffi::{c_char, c_int};

use paritas::{Code, Codec, CodecOptions, NodeId, Split};

use crate::handle::{self, Handle};
use crate::memory::{self, CallShards, ReadShard};
use crate::status::{Failure, Result, guard, paritas_status, pointer, value};

/// A code, and how it is run. May be used by several threads at once.
pub struct paritas_codec {
    _opaque: (),
}

/// How the threads of a call share its work.
#[repr(C)]
#[derive(Clone, Copy)]
pub enum paritas_split {
    /// Every thread takes some of the stripes. This is the default, and is also used where the work
    /// cannot be shared in another way, for example with one parity shard.
    PARITAS_SPLIT_STRIPE = 0,
    /// Every thread computes some of the shards.
    PARITAS_SPLIT_NODE = 1,
    /// Every thread takes some bytes of every packet, in whole cache lines.
    PARITAS_SPLIT_COLUMNS = 2,
    /// Every thread computes some rows of every shard. Refused for codes over words, which have no
    /// rows.
    PARITAS_SPLIT_ROWS = 3,
}

/// Options of a codec. Zeros stand for the defaults.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct paritas_options {
    /// Bytes of a packet; by default 64. It is part of the stored format, except in codes over
    /// words, where it only decides what PARITAS_SPLIT_COLUMNS divides.
    pub packet: usize,
    /// Largest number of threads of a call; by default as many as there are processors. A single
    /// call uses another thread for every MiB of shards; in a row of calls that follow each other
    /// within 20 microseconds, for every 128 KiB.
    pub threads: usize,
    /// How threads share a call: a paritas_split.
    pub split: c_int,
}

impl Handle for paritas_codec {
    type Value = Shaped;
    const NAME: &'static str = "codec";
}

/// A codec, and the shape of its shards.
pub(crate) struct Shaped {
    pub(crate) codec: Codec,
    spec: std::ffi::CString,
    /// Rows of each node's shard; 1 in the word layout.
    rows: Vec<usize>,
    /// Rows of a data shard; `bytes` is the length of a data shard.
    pub(crate) data_rows: usize,
    /// Unit of length: `bytes` is a multiple of it.
    unit: usize,
    /// Nodes that hold data, and nodes that hold only parity, after all stages.
    pub(crate) data: Vec<usize>,
    pub(crate) parity: Vec<usize>,
}

impl Shaped {
    pub(crate) fn new(codec: Codec) -> Result<Self> {
        let code = codec.code();
        if code.graph().is_some() {
            return Err(Failure::arguments(format!(
                "{} is an LT code, which has no shards; its blocks are made by an LT encoder",
                code.spec()
            )));
        }
        let is_words = code.symbols().is_some();
        let rows_of = |node| if is_words { 1 } else { code.node_cells(node).len() };
        let rows: Vec<usize> = code.nodes().map(rows_of).collect();
        let (data, parity): (Vec<NodeId>, Vec<NodeId>) =
            code.nodes().partition(|&node| code.holds_data(node));
        let numbers = |nodes: &[NodeId]| nodes.iter().map(|node| node.index()).collect();
        let (data, parity): (Vec<usize>, Vec<usize>) = (numbers(&data), numbers(&parity));
        let data_rows = data.iter().map(|&node| rows[node]).max().unwrap_or(1);
        let spec = std::ffi::CString::new(code.spec().to_string()).unwrap_or_default();
        let unit = codec.shard_unit();
        Ok(Self { rows, data_rows, unit, data, parity, spec, codec })
    }

    /// Returns the length of each shard, by its number, if data shards have `bytes`. A length that
    /// no memory has is `usize::MAX`.
    pub(crate) fn lengths(&self, bytes: usize) -> Result<impl Fn(usize) -> usize + Copy + use<'_>> {
        let row = bytes / self.data_rows;
        match bytes.is_multiple_of(self.unit) {
            true => Ok(move |node| row.saturating_mul(self.rows_of(node))),
            false => Err(Failure::arguments(format!(
                "{}: a shard's length must be a multiple of {} bytes; got {bytes}",
                self.codec.code().spec(),
                self.unit
            ))),
        }
    }

    pub(crate) fn rows_of(&self, node: usize) -> usize {
        self.rows[node]
    }

    /// Returns the nodes of the first stage that hold data, or those that hold only parity.
    pub(crate) fn standing(&self, with_data: bool) -> Vec<usize> {
        let code = self.codec.code();
        let nodes = code.nodes_at(1).into_iter();
        nodes.filter(|&node| code.holds_data(node) == with_data).map(NodeId::index).collect()
    }

    pub(crate) fn expect_node(&self, node: usize) -> Result<NodeId> {
        if node < self.rows.len() {
            return Ok(NodeId::new(node));
        }
        let (spec, last) = (self.codec.code().spec(), self.rows.len() - 1);
        Err(Failure::arguments(format!(
            "{spec}: a shard's number must be at most {last}; got {node}"
        )))
    }

    /// Returns the numbers of shards that a caller lists.
    ///
    /// # Errors
    /// If `count` exceeds the number of shards, or if `list` is null and `count` is not 0.
    ///
    /// # Safety
    /// `list` is null, or valid for reads of `count` numbers during `'a`.
    pub(crate) unsafe fn listed<'a>(
        &self,
        list: *const usize,
        count: usize,
        what: &str,
    ) -> Result<&'a [usize]> {
        let most = self.nodes();
        if count > most {
            let spec = self.codec.code().spec();
            return Err(Failure::arguments(format!(
                "{what}: {spec} has {most} shards; got {count} numbers"
            )));
        }
        // SAFETY: as the caller promises.
        unsafe { memory::values(list, count, what) }
    }

    pub(crate) fn nodes(&self) -> usize {
        self.rows.len()
    }
}

/// Makes a codec for the code named `spec`, such as "10+4". `options` may be null.
///
/// # Safety
/// The pointers are null or as this describes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_codec_new(
    spec: *const c_char,
    options: *const paritas_options,
    codec: *mut *mut paritas_codec,
) -> paritas_status {
    guard(|| {
        let make = || {
            // SAFETY: the caller's pointers are null or valid.
            let spec = unsafe { memory::text(spec, "spec") }?;
            // SAFETY: as above.
            let options = unsafe { memory::optional(options, "options") }?;
            let code: Code = spec.parse()?;
            Shaped::new(Codec::with_options(code, chosen(options)?)?)
        };
        // SAFETY: as above.
        unsafe { handle::give(codec, make) }
    })
}

/// Returns the options that a caller gives; zeros stand for the defaults.
pub(crate) fn chosen(given: Option<&paritas_options>) -> Result<CodecOptions> {
    let options = CodecOptions::default();
    let Some(given) = given else { return Ok(options) };
    let options = options.threads(given.threads).split(split(given.split)?);
    Ok(if given.packet == 0 { options } else { options.packet(given.packet) })
}

/// Returns the split with a number, which may be any number in C.
fn split(number: c_int) -> Result<Split> {
    use paritas_split::{
        PARITAS_SPLIT_COLUMNS, PARITAS_SPLIT_NODE, PARITAS_SPLIT_ROWS, PARITAS_SPLIT_STRIPE,
    };
    let splits = [
        (PARITAS_SPLIT_STRIPE, Split::Stripe),
        (PARITAS_SPLIT_NODE, Split::Node),
        (PARITAS_SPLIT_COLUMNS, Split::Columns),
        (PARITAS_SPLIT_ROWS, Split::Rows),
    ];
    let found = splits.into_iter().find(|&(named, _)| named as c_int == number);
    found.map(|(_, split)| split).ok_or_else(|| {
        Failure::arguments(format!("split: must be 0 to 3, a paritas_split; got {number}"))
    })
}

/// Frees a codec. Calls prepared with it live on. Null is allowed.
///
/// # Safety
/// `codec` is null or a codec that is not in use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_codec_free(codec: *mut paritas_codec) {
    // SAFETY: as the caller promises.
    guard(|| unsafe { handle::free(codec) });
}

/// Returns the code's spec in its canonical form. It lives as long as the codec.
///
/// # Safety
/// `codec` is null or a codec.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_codec_spec(codec: *const paritas_codec) -> *const c_char {
    // SAFETY: as the caller promises.
    pointer(|| unsafe { handle::open(codec) }.map(|codec| codec.spec.as_ptr()))
}

/// Returns the number of shards with data, k. These shards come first. In codes whose shards hold
/// both data and parity (xcode), this is the number of all shards.
///
/// # Safety
/// `codec` is null or a codec.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_codec_data_shards(codec: *const paritas_codec) -> usize {
    // SAFETY: as the caller promises.
    unsafe { handle::ask(codec, |codec| codec.data.len()) }
}

/// Returns the number of shards without data, m.
///
/// # Safety
/// `codec` is null or a codec.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_codec_parity_shards(codec: *const paritas_codec) -> usize {
    // SAFETY: as the caller promises.
    unsafe { handle::ask(codec, |codec| codec.parity.len()) }
}

/// Returns the number of shards that may be lost, whichever they are, after all stages of the code.
///
/// # Safety
/// `codec` is null or a codec.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_codec_tolerance(codec: *const paritas_codec) -> usize {
    // SAFETY: as the caller promises.
    unsafe { handle::ask(codec, |codec| codec.codec.code().tolerance()) }
}

/// Returns the bytes of a packet.
///
/// # Safety
/// `codec` is null or a codec.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_codec_packet(codec: *const paritas_codec) -> usize {
    // SAFETY: as the caller promises.
    unsafe { handle::ask(codec, |codec| codec.codec.packet()) }
}

/// Returns the unit of a data shard's length, in bytes: every length must be a multiple of it.
/// Memory may have any alignment; shards aligned to 64 bytes are faster.
///
/// # Safety
/// `codec` is null or a codec.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_codec_shard_unit(codec: *const paritas_codec) -> usize {
    // SAFETY: as the caller promises.
    unsafe { handle::ask(codec, |codec| codec.codec.shard_unit()) }
}

/// Returns the bytes of a strip. Shards may be encoded and reconstructed in parts that begin at a
/// multiple of a strip, and end at such a multiple or at the end of the shard.
///
/// # Safety
/// `codec` is null or a codec.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_codec_strip(codec: *const paritas_codec) -> usize {
    // SAFETY: as the caller promises.
    unsafe { handle::ask(codec, |codec| codec.codec.strip()) }
}

/// Returns the bytes of a data shard of an object of `object_bytes` bytes; 0 if no memory holds the
/// shard. In codes whose shards hold both data and parity (xcode), the shard has room for both: the
/// rows with data of all shards hold the object.
///
/// # Safety
/// `codec` is null or a codec.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_codec_data_len(
    codec: *const paritas_codec,
    object_bytes: usize,
) -> usize {
    let length = |codec: &Shaped| allocatable(codec.codec.shard_len(object_bytes));
    // SAFETY: as the caller promises.
    unsafe { handle::ask(codec, length) }
}

/// Returns a length, or 0 if no memory has this length.
fn allocatable(bytes: usize) -> usize {
    if isize::try_from(bytes).is_ok() { bytes } else { 0 }
}

/// Returns the bytes of shard number `shard` if data shards have `bytes` bytes; 0 if the shard does
/// not exist or the length is not possible.
///
/// # Safety
/// `codec` is null or a codec.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_codec_shard_len(
    codec: *const paritas_codec,
    shard: usize,
    bytes: usize,
) -> usize {
    value(|| {
        // SAFETY: as the caller promises.
        let codec = unsafe { handle::open(codec) }?;
        let node = codec.expect_node(shard)?.index();
        Ok(allocatable(codec.lengths(bytes)?(node)))
    })
}

/// Computes all parity shards from all data shards. `data` are k pointers and `parity` m; data
/// shards have `bytes` bytes. In a code of several stages (dpg), computes the parity of the first
/// stage; `data` and `parity` are then the shards of that stage, and paritas_reconstruct() computes
/// the others as if they were lost. Codes whose shards have rows of several stages
/// (`interleave=all`) are refused.
///
/// # Safety
/// The pointers are null or as this describes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_encode(
    codec: *const paritas_codec,
    data: *const *const u8,
    parity: *const *mut u8,
    bytes: usize,
) -> paritas_status {
    guard(|| {
        // SAFETY: as the caller promises.
        let codec = unsafe { handle::open(codec) }?;
        codec.codec.code().expect_encoded_whole()?;
        let (sources, targets) = (codec.standing(true), codec.standing(false));
        // SAFETY: as the caller promises.
        let data = unsafe { memory::values(data, sources.len(), "data") }?;
        // SAFETY: as the caller promises.
        let parity = unsafe { memory::values(parity, targets.len(), "parity") }?;
        let length = codec.lengths(bytes)?;
        let data = data.iter().copied().zip(sources.into_iter().map(length));
        let parity = parity.iter().copied().zip(targets.into_iter().map(length));
        // SAFETY: as the caller promises.
        let mut shards = unsafe { CallShards::new(data, parity) }?;
        Ok(codec.codec.encode(&shards.sources, &mut shards.targets)?)
    })
}

/// Computes the parity in shards that hold both data and parity (xcode). `shards` are pointers to
/// all shards, whose rows of parity are overwritten. Codes whose shards have rows of several stages
/// (`interleave=all`) are refused.
///
/// # Safety
/// The pointers are null or as this describes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_encode_shards(
    codec: *const paritas_codec,
    shards: *const *mut u8,
    bytes: usize,
) -> paritas_status {
    guard(|| {
        // SAFETY: as the caller promises.
        let codec = unsafe { handle::open(codec) }?;
        codec.codec.code().expect_encoded_whole()?;
        let nodes: Vec<usize> =
            codec.codec.code().nodes_at(1).into_iter().map(NodeId::index).collect();
        // SAFETY: as the caller promises.
        let pointers = unsafe { memory::values(shards, nodes.len(), "shards") }?;
        let targets = pointers.iter().copied().zip(nodes.into_iter().map(codec.lengths(bytes)?));
        // SAFETY: as the caller promises.
        let mut shards = unsafe { CallShards::new([], targets) }?;
        let mut shards: Vec<&mut [u8]> = shards.targets.iter_mut().map(AsMut::as_mut).collect();
        Ok(codec.codec.encode_nodes(&mut shards)?)
    })
}

/// Computes lost shards from the others. `shards` are k + m pointers, and `present` has a flag for
/// each of them. A shard that is not present is computed; it is left out if its pointer is null.
/// Returns PARITAS_LOST if too many shards are lost to compute one that is not left out.
///
/// # Safety
/// The pointers are null or as this describes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_reconstruct(
    codec: *const paritas_codec,
    shards: *const *mut u8,
    present: *const bool,
    bytes: usize,
) -> paritas_status {
    guard(|| {
        // SAFETY: as the caller promises.
        let codec = unsafe { handle::open(codec) }?;
        // SAFETY: as the caller promises.
        let pointers = unsafe { memory::values(shards, codec.nodes(), "shards") }?;
        // SAFETY: as the caller promises. Any byte but 0 counts as true.
        let present = unsafe { memory::values(present.cast::<u8>(), codec.nodes(), "present") }?;
        let length = codec.lengths(bytes)?;
        let is_present = |node: &usize| present[*node] != 0;
        let (have, lost): (Vec<usize>, Vec<usize>) = (0..codec.nodes()).partition(is_present);
        let lost: Vec<usize> = lost.into_iter().filter(|&node| !pointers[node].is_null()).collect();
        if lost.is_empty() {
            return Ok(());
        }
        let sources = have.iter().map(|&node| (pointers[node].cast_const(), length(node)));
        let targets = lost.iter().map(|&node| (pointers[node], length(node)));
        // SAFETY: as the caller promises.
        let mut shards = unsafe { CallShards::new(sources, targets) }?;
        let (have, lost) = (ids(&have), ids(&lost));
        let reconstructor = codec.codec.reconstructor(&have, &lost)?;
        Ok(reconstructor.run(&shards.sources, &mut shards.targets)?)
    })
}

/// Recomputes all parity from the data and compares it. `shards` are k + m pointers. Returns
/// PARITAS_CHECK_FAILED if parity differs from what the data gives; paritas_last_message() then
/// tells which shards. It cannot tell which shard is wrong: if all parity differs, the fault may
/// lie in the data. Parity of later stages is compared as well, so paritas_reconstruct() must have
/// computed it.
///
/// # Safety
/// The pointers are null or as this describes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_verify(
    codec: *const paritas_codec,
    shards: *const *const u8,
    bytes: usize,
) -> paritas_status {
    guard(|| {
        // SAFETY: as the caller promises.
        let codec = unsafe { handle::open(codec) }?;
        // SAFETY: as the caller promises.
        let pointers = unsafe { memory::values(shards, codec.nodes(), "shards") }?;
        let length = codec.lengths(bytes)?;
        let sources = pointers.iter().enumerate().map(|(node, &start)| (start, length(node)));
        // SAFETY: as the caller promises.
        let shards = unsafe { CallShards::new(sources, []) }?;
        let wrong = codec.codec.verify(&shards.sources)?;
        if wrong.is_empty() {
            return Ok(());
        }
        let shards = if wrong.len() == 1 { "shard" } else { "shards" };
        let wrong: Vec<String> = wrong.iter().map(ToString::to_string).collect();
        Err(Failure::check_failed(format!(
            "the parity in {shards} {} is not that of the data",
            wrong.join(", ")
        )))
    })
}

pub(crate) fn ids(nodes: &[usize]) -> Vec<NodeId> {
    nodes.iter().copied().map(NodeId::from).collect()
}

/// Updates parity in place after data shard `shard` changed from `old_data` to `new_data`. `parity`
/// are the m parity shards, of all stages: in a code of several, more than paritas_encode() makes.
///
/// # Safety
/// The pointers are null or as this describes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_update(
    codec: *const paritas_codec,
    shard: usize,
    old_data: *const u8,
    new_data: *const u8,
    parity: *const *mut u8,
    bytes: usize,
) -> paritas_status {
    guard(|| {
        // SAFETY: as the caller promises.
        let codec = unsafe { handle::open(codec) }?;
        let node = codec.expect_node(shard)?;
        let length = codec.lengths(bytes)?;
        // SAFETY: as the caller promises.
        let parity = unsafe { memory::values(parity, codec.parity.len(), "parity") }?;
        let sources = [old_data, new_data].map(|start| (start, length(shard)));
        let targets = parity.iter().zip(&codec.parity).map(|(&start, &node)| (start, length(node)));
        // SAFETY: as the caller promises.
        let mut shards = unsafe { CallShards::new(sources, targets) }?;
        let [old, new] = &shards.sources[..] else { return Ok(()) };
        let (old, new) = (ReadShard::as_ref(old), ReadShard::as_ref(new));
        Ok(codec.codec.update(node, old, new, &mut shards.targets)?)
    })
}
