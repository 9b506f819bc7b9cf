//! The places of an object's bytes: the parts of its shards, the lanes of a block and their
//! lengths, and the start of a segment's block in a shard file.
//!
//! Parts are numbered over all shards and stages: first those of stage 1, in the order of their
//! shards, then those of stage 2, and so on. So in a code without stages, part i belongs to shard
//! i. The parts of an object in an early stage are a prefix of those in a later stage.
//!
//! This is the arithmetic of the format essay ([`crate::object::format`]) over the buffers of a
//! codec, which are the lanes of all nodes. Everything that depends on numbers out of a header is
//! checked here once, so later sums cannot overflow.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::ops::Range;

use crate::error::{Error, Result};
use crate::memory::by_default;
use crate::shown::counted;
use paritas::code::{CellId, CellSet, Reads};
use paritas::erasure::Losses;
use paritas::{Code, CodecOptions, DEFAULT_PACKET, LaneCodec};

/// Number of bytes of the checksum after a lane's payload.
pub const CHECKSUM: usize = 8;

/// Default payload of a shard's block, in bytes: big enough for disks and system calls, small
/// enough that a segment stays in the cache.
pub const DEFAULT_BLOCK_BYTES: usize = 64 * 1024;

/// The largest packet of any file, in bytes. It limits what a header can ask for.
pub(crate) const MAX_PACKET: usize = 1 << 20;

/// Wanted size of all blocks of a segment together, in bytes, so that it stays in the cache. It is
/// exceeded if a single stripe is larger, or by an LT code of many blocks.
const WANTED_SEGMENT: usize = 8 << 20;

/// Largest size of all blocks of a segment together, in bytes. It limits the memory that a header
/// can ask for.
const MAX_SEGMENT: usize = 64 << 20;

/// Most memory for the segments of all threads together, in bytes.
const MOST_MEMORY: u64 = 128 << 20;

/// Wanted size of a block of an LT code, in bytes, if the segment may be that large. Shorter blocks
/// would consist largely of checksums.
const WANTED_LT_BLOCK: usize = 1024;

/// The longest file of any system, in bytes. Adding the length of a header to it does not overflow.
const MAX_FILE: u64 = i64::MAX as u64;

/// Lengths of objects, in bytes, that schedules are planned for. For a longer object, planning time
/// is not limited.
const PLANNED: [u64; 3] = [1 << 16, 1 << 20, 1 << 26];

/// Returns the length that schedules are planned for if an object has `length` bytes. There are few
/// different answers, so objects of all lengths can share what is known of their code.
pub(crate) fn planned_bytes(length: u64) -> Option<u64> {
    PLANNED.into_iter().find(|&bytes| length <= bytes)
}

/// A buffer of the codec: a lane of a shard's block, or data that is not stored.
#[derive(Debug, Clone)]
struct LaneBuffer {
    rows: usize,
    /// The number of the lane in its node, over all stages.
    number: u32,
    /// The lanes before it in its block, which has those of one stage, and their rows.
    before: (usize, usize),
    /// Whether it holds the user's bytes.
    is_data: bool,
}

/// The content of one shard file: the lanes of a shard that are computed in one stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Part {
    /// The stage, from 1.
    pub stage: u8,
    /// The index of the shard.
    pub shard: usize,
}

/// A code with the shape of its segments.
#[derive(Debug)]
pub struct Geometry {
    codec: LaneCodec,
    buffers: Vec<LaneBuffer>,
    /// The parts, each with the range of its buffers.
    parts: Vec<(Part, Range<usize>)>,
    stripes: usize,
}

impl Geometry {
    /// Refuses packets of a size that is not possible.
    pub(crate) fn expect_packet(packet: usize) -> Result<()> {
        match packet {
            1..=MAX_PACKET => Ok(()),
            _ => Err(Error::parameters(format!(
                "a packet must have 1 to {MAX_PACKET} bytes; got {packet}"
            ))),
        }
    }

    /// Creates the shape of segments of `stripes` stripes. The code is run as `options` say, except
    /// for packet, threads and the bytes to plan for. `length` is the approximate length of the
    /// object, if it is known: for a small object, schedules are planned in less time.
    ///
    /// # Errors
    /// If a packet is empty or larger than 1 MiB, or if a segment is empty or larger than 64 MiB.
    pub(crate) fn new(
        code: Code,
        packet: usize,
        stripes: usize,
        length: Option<u64>,
        options: CodecOptions,
    ) -> Result<Self> {
        Self::expect_packet(packet)?;
        let plan = options.plan.bytes(length.and_then(planned_bytes));
        let options = options.packet(packet).threads(1).plan(plan);
        let spec = code.spec().to_string();
        let codec = LaneCodec::new(code, options)?;
        let parts = parts(&codec);
        let buffers = lanes(&codec, &parts);
        let stripe = buffers.iter().map(|buffer| buffer.rows).sum::<usize>().saturating_mul(packet);
        let segment = stripe.saturating_mul(stripes);
        if stripes == 0 || segment > MAX_SEGMENT {
            return Err(Error::parameters(format!(
                "a segment must have 1 to {MAX_SEGMENT} bytes; got {segment} ({} of {}, of {spec} \
                 with packets of {}); use shorter packets",
                counted(stripes, "stripe"),
                counted(stripe, "byte"),
                counted(packet, "byte")
            )));
        }
        Ok(Self { codec, buffers, parts, stripes })
    }

    /// Chooses the number of bytes of a packet, unless it is given, and of stripes of a full
    /// segment. Blocks have about `block` bytes. `length` is the length of the object, if it is
    /// known.
    pub(crate) fn choose(
        code: &Code,
        packet: Option<usize>,
        block: usize,
        length: Option<u64>,
    ) -> (usize, usize) {
        if code.graph().is_some() {
            return Self::choose_lt_block(code, packet.unwrap_or(DEFAULT_PACKET), block, length);
        }
        let packet = packet.unwrap_or_else(|| Self::choose_packet(code, length));
        (packet, Self::choose_stripes(code, packet, block))
    }

    /// Returns [`DEFAULT_PACKET`], or fewer bytes for an object that does not fill one stripe of
    /// such packets, so that little of the stripe is padding.
    fn choose_packet(code: &Code, length: Option<u64>) -> usize {
        let fitting = |length: u64| length.div_ceil(code.data_cells().len() as u64);
        let fitting = length.filter(|&length| length > 0).map(fitting);
        fitting.map_or(DEFAULT_PACKET, |bytes| bytes.min(DEFAULT_PACKET as u64) as usize)
    }

    /// Chooses packet and stripes for an LT code, whose blocks are lanes. An object is cut into
    /// segments of equal length, so that the last one wastes no space. If it does not fill k
    /// packets, packets are shorter.
    fn choose_lt_block(
        code: &Code,
        packet: usize,
        block: usize,
        length: Option<u64>,
    ) -> (usize, usize) {
        let (cells, data) = (code.cell_count(), code.data_cells().len() as u64);
        let most = (MAX_SEGMENT / cells).max(1);
        let wanted = (WANTED_SEGMENT / cells).max(WANTED_LT_BLOCK).min(block).max(packet).min(most);
        let even = |length: u64| {
            let segments = length.div_ceil(data * wanted as u64).max(1);
            length.div_ceil(segments * data).max(1) as usize
        };
        let bytes = length.map_or(wanted, even);
        let packet = packet.min(bytes);
        (packet, bytes.div_ceil(packet).min(most / packet).max(1))
    }

    /// Chooses the stripes of a full segment for blocks of about `block` bytes: a power of two, so
    /// that lanes are whole pages, and BLAKE3 hashes them fast.
    fn choose_stripes(code: &Code, packet: usize, block: usize) -> usize {
        let rows = code.nodes().map(|node| code.node_cells(node).len()).max().unwrap_or(1);
        let fit = |bytes: usize, cells: usize| bytes / cells.saturating_mul(packet).max(1);
        let most = fit(block, rows).min(fit(WANTED_SEGMENT, code.cell_count())).max(1);
        1 << most.ilog2()
    }

    /// Returns the buffers of the data, ascending, if the code is an LT code whose blocks include a
    /// copy of every data block.
    pub fn originals(&self) -> Option<Vec<usize>> {
        let graph = self.code().graph()?;
        let mut copies: Vec<Option<CellId>> = vec![None; graph.data()];
        for block in 0..graph.blocks() {
            if let Ok(&[data]) = graph.neighbours(block) {
                copies[data as usize].get_or_insert(graph.block_cell(block));
            }
        }
        let copies: Option<Vec<CellId>> = copies.into_iter().collect();
        copies.map(|cells| self.buffers_of(&cells))
    }

    /// Refuses a graph that can never be decoded.
    ///
    /// # Errors
    /// If all blocks of an LT code together do not determine the data, or it takes too long to find
    /// out ([`crate::error::ErrorKind::Parameters`]).
    pub(crate) fn expect_decodable(&self) -> Result<()> {
        let code = self.code();
        let all = code.cells_of(code.nodes());
        if code.graph().is_none() || self.codec.solvable(&all, &self.data_cells()) {
            return Ok(());
        }
        if let Err(error) = code.schedule(&all, &self.data_cells())
            && error.kind() == paritas::ErrorKind::Parameters
        {
            return Err(Error::parameters(format!("{}: {error}", code.spec())));
        }
        Err(Error::parameters(format!(
            "{}: even all blocks together do not determine the data; choose another seed, more blocks, or a \
             variant with decodable",
            code.spec()
        )))
    }

    /// Returns the codec, which computes lanes from lanes.
    pub(crate) fn codec(&self) -> &LaneCodec {
        &self.codec
    }

    /// Returns the code.
    pub fn code(&self) -> &Code {
        self.codec.code()
    }

    /// Returns the number of bytes of a packet.
    pub fn packet(&self) -> usize {
        self.codec.packet()
    }

    /// Returns the number of stripes of a full segment.
    pub fn stripes(&self) -> usize {
        self.stripes
    }

    /// Returns the number of lanes of all parts together.
    pub fn buffer_count(&self) -> usize {
        self.buffers.len()
    }

    /// Returns the number of shards, which is the number of nodes of the code.
    pub fn shard_count(&self) -> usize {
        self.code().node_count()
    }

    /// Returns the number of parts of all stages.
    pub fn part_count(&self) -> usize {
        self.parts.len()
    }

    /// Returns the number of parts of the stages up to this one.
    pub fn parts_until(&self, stage: u8) -> usize {
        self.parts.partition_point(|(part, _)| part.stage <= stage)
    }

    /// Returns the parts of one stage.
    pub fn parts_in(&self, stage: u8) -> Range<usize> {
        self.parts_until(stage - 1)..self.parts_until(stage)
    }

    /// Returns the stage and shard of a part.
    pub fn part(&self, part: usize) -> Part {
        self.parts[part].0
    }

    /// Returns the number of a part. Returns `None` if the code does not have it.
    pub fn find_part(&self, part: Part) -> Option<usize> {
        self.parts.binary_search_by_key(&part, |&(known, _)| known).ok()
    }

    /// Returns the number of shards that have parts of the stages up to this one.
    pub fn shards_at(&self, stage: u8) -> usize {
        self.code().nodes_at(stage).len()
    }

    /// Returns the number of shards that may be lost, whichever they are, when the object is in
    /// this stage.
    pub fn tolerance(&self, stage: u8) -> usize {
        self.code().tolerance_at(stage)
    }

    /// Whether a part is added to a shard that has others from earlier stages.
    pub(crate) fn is_added(&self, part: usize) -> bool {
        self.parts[..part].iter().any(|(earlier, _)| earlier.shard == self.part(part).shard)
    }

    /// Returns the buffers of a part: its lanes, in order.
    pub fn part_buffers(&self, part: usize) -> Range<usize> {
        self.parts[part].1.clone()
    }

    /// Returns the part that a buffer belongs to, or `None` if no part stores it.
    pub fn part_of_buffer(&self, buffer: usize) -> Option<usize> {
        self.parts.iter().position(|(_, buffers)| buffers.contains(&buffer))
    }

    /// Returns, for each buffer, whether it belongs to one of `parts`.
    pub fn buffers_in(&self, parts: impl IntoIterator<Item = usize>) -> Vec<bool> {
        let mut has = vec![false; self.buffer_count()];
        let buffers = parts.into_iter().flat_map(|part| self.part_buffers(part));
        buffers.for_each(|buffer| has[buffer] = true);
        has
    }

    /// Returns all parts. Parts that hold the user's data come first.
    pub fn parts_data_first(&self) -> Vec<usize> {
        let (mut data, rest): (Vec<_>, Vec<_>) =
            (0..self.part_count()).partition(|&part| self.holds_data(part));
        data.extend(rest);
        data
    }

    /// Whether a part holds the user's data.
    pub fn holds_data(&self, part: usize) -> bool {
        self.part_buffers(part).any(|buffer| self.is_data(buffer))
    }

    /// Returns the buffers that hold the user's bytes, in the order of these bytes.
    pub(crate) fn data_buffers(&self) -> &[usize] {
        self.codec.data_buffers()
    }

    /// Whether a buffer holds the user's bytes.
    pub(crate) fn is_data(&self, buffer: usize) -> bool {
        self.buffers[buffer].is_data
    }

    /// Returns the number of a buffer's lane in its node, over all stages.
    pub fn lane(&self, buffer: usize) -> u32 {
        self.buffers[buffer].number
    }

    /// Returns the offset of a buffer's lane in its block of `stripes` stripes.
    pub(crate) fn lane_start(&self, buffer: usize, stripes: usize) -> u64 {
        let (lanes, rows) = self.buffers[buffer].before;
        (rows * self.packet() * stripes + lanes * CHECKSUM) as u64
    }

    /// Returns the number of payload bytes of a buffer in a segment of `stripes` stripes.
    pub(crate) fn payload(&self, buffer: usize, stripes: usize) -> usize {
        self.buffers[buffer].rows * self.packet() * stripes
    }

    /// Returns the length of the longest payload of any buffer, in bytes.
    pub(crate) fn widest_payload(&self) -> usize {
        (0..self.buffer_count()).map(|buffer| self.payload(buffer, self.stripes)).max().unwrap_or(0)
    }

    /// Returns the number of bytes of a part's block in a segment of `stripes` stripes.
    pub fn block(&self, part: usize, stripes: usize) -> u64 {
        let lane = |buffer| self.payload(buffer, stripes) + CHECKSUM;
        self.part_buffers(part).map(lane).sum::<usize>() as u64
    }

    /// Returns the number of the user's bytes in `stripes` stripes.
    pub(crate) fn data_bytes(&self, stripes: usize) -> usize {
        self.code().data_cells().len() * self.packet() * stripes
    }

    /// Returns the number of the user's bytes in a full segment.
    pub fn segment_data(&self) -> u64 {
        self.data_bytes(self.stripes) as u64
    }

    /// Returns the number of stripes of a segment with `bytes` of the user's bytes.
    pub(crate) fn stripes_for(&self, bytes: u64) -> usize {
        bytes.div_ceil(self.data_bytes(1) as u64) as usize
    }

    /// Returns the segments of an object of `length` bytes.
    pub fn extent(&self, length: u64) -> Extent {
        Extent { length, segment: self.segment_data(), count: length.div_ceil(self.segment_data()) }
    }

    /// Returns the number of stripes of one segment of an object.
    pub(crate) fn stripes_of(&self, extent: &Extent, segment: u64) -> usize {
        self.stripes_for(extent.bytes(segment))
    }

    /// Returns the offset of a segment's block from the end of the front header. Returns `None` if
    /// it is beyond the longest file.
    pub fn block_start(&self, part: usize, segment: u64) -> Option<u64> {
        let full = self.block(part, self.stripes);
        segment.checked_mul(full).filter(|&start| start <= MAX_FILE - full)
    }

    /// Returns the number of bytes of all blocks of a part, which is the offset of the footer,
    /// counted from the end of the front header. Returns `None` if it is beyond the longest file.
    pub fn blocks(&self, extent: &Extent, part: usize) -> Option<u64> {
        let Some(last) = extent.count.checked_sub(1) else { return Some(0) };
        let stripes = self.stripes_of(extent, last);
        Some(self.block_start(part, last)? + self.block(part, stripes))
    }

    /// Returns the cells of the given buffers.
    pub fn cells(&self, buffers: impl IntoIterator<Item = usize>) -> CellSet {
        let cells = buffers.into_iter().flat_map(|buffer| self.codec.buffer_cells(buffer));
        CellSet::from_cells(self.code().cell_count(), cells.copied())
    }

    /// Whether all of the user's bytes are in the buffers that `good` marks, or can be computed
    /// from them.
    pub fn is_solvable(&self, good: &[bool]) -> bool {
        if self.data_buffers().iter().all(|&buffer| good[buffer]) {
            return true;
        }
        let have = self.cells((0..good.len()).filter(|&buffer| good[buffer]));
        let code = self.code();
        if have.len() < code.data_cells().len() {
            return false;
        }
        match code.graph() {
            // The schedule is kept, because the same question follows when the data are computed.
            Some(_) => self.codec().solvable(&have, &self.data_cells()),
            None => Losses::new(code, have).is_solvable(),
        }
    }

    /// Returns all data cells.
    pub(crate) fn data_cells(&self) -> CellSet {
        CellSet::from_cells(self.code().cell_count(), self.code().data_cells().iter().copied())
    }

    /// Returns the numbers of the blocks of an LT code that the given buffers hold.
    pub fn lt_blocks(&self, buffers: impl IntoIterator<Item = usize>) -> Vec<usize> {
        let data = self.code().data_cells().len();
        let cells = buffers.into_iter().flat_map(|buffer| self.codec.buffer_cells(buffer));
        cells.filter_map(|cell| cell.index().checked_sub(data)).collect()
    }

    /// Returns the buffers of the parts `from` that are read to compute the parts `make`. Takes the
    /// cheapest plan or the plan with the fewest cells, whichever reads fewer bytes.
    ///
    /// # Errors
    /// If the parts `from` do not determine the parts `make`
    /// ([`crate::error::ErrorKind::TooFewShards`]).
    pub fn buffers_to_make(
        &self,
        from: impl IntoIterator<Item = usize>,
        make: &[usize],
    ) -> Result<Vec<usize>> {
        let buffers = |part| self.part_buffers(part);
        let have = self.cells(from.into_iter().flat_map(buffers));
        let want = self.cells(make.iter().copied().flat_map(buffers));
        let mut best: Option<(usize, Vec<usize>)> = None;
        for reads in [Reads::Any, Reads::Fewest] {
            let read = self.code().cells_to_read(&have, &want, reads)?;
            let buffers = self.buffers_of(&read);
            let bytes = buffers.iter().map(|&buffer| self.payload(buffer, 1)).sum();
            if best.as_ref().is_none_or(|(fewest, _)| bytes < *fewest) {
                best = Some((bytes, buffers));
            }
        }
        Ok(best.map(|(_, buffers)| buffers).unwrap_or_default())
    }

    /// Returns the buffers from which the code makes a later stage if nothing is missing.
    pub fn buffers_of_promotion(&self, stage: u8) -> Vec<usize> {
        let promotion = self.code().promotion(stage);
        let reads: Vec<_> = promotion.iter().flat_map(|promotion| promotion.reads.iter()).collect();
        self.buffers_of(&reads)
    }

    /// Returns the buffers that hold any of the given cells, ascending.
    pub(crate) fn buffers_of(&self, cells: &[CellId]) -> Vec<usize> {
        let cells = CellSet::from_cells(self.code().cell_count(), cells.iter().copied());
        let holds = |&buffer: &usize| {
            self.codec.buffer_cells(buffer).iter().any(|&cell| cells.contains(cell))
        };
        (0..self.buffer_count()).filter(holds).collect()
    }

    /// Returns the number of threads to use: at most `most` (`None`: the number that the machine
    /// runs at once). Their segments together take at most 128 MiB, or a quarter of the memory that
    /// this process may use if that is less.
    pub fn threads(&self, most: Option<NonZeroUsize>) -> usize {
        let machine = || std::thread::available_parallelism().map_or(1, usize::from);
        let segment = self.buffer_count() * (self.widest_payload() + CHECKSUM);
        most.map_or_else(machine, usize::from)
            .min(by_default(MOST_MEMORY) as usize / segment)
            .max(1)
    }
}

/// The segments of one object.
#[derive(Debug, Clone, Copy)]
pub struct Extent {
    length: u64,
    segment: u64,
    count: u64,
}

impl Extent {
    /// Returns the number of segments.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the range of the object's bytes that a segment holds.
    pub fn range(&self, segment: u64) -> Range<u64> {
        let start = segment.saturating_mul(self.segment).min(self.length);
        start..start.saturating_add(self.segment).min(self.length)
    }

    /// Returns the number of the object's bytes that a segment holds.
    pub fn bytes(&self, segment: u64) -> u64 {
        let range = self.range(segment);
        range.end - range.start
    }
}

fn lanes(codec: &LaneCodec, parts: &[(Part, Range<usize>)]) -> Vec<LaneBuffer> {
    let starts: BTreeSet<usize> = parts.iter().map(|(_, buffers)| buffers.start).collect();
    let mut buffers: Vec<LaneBuffer> = Vec::with_capacity(codec.buffer_count());
    for buffer in 0..codec.buffer_count() {
        let rows = codec.buffer_cells(buffer).len();
        let node = codec.buffer_node(buffer);
        let previous =
            buffer.checked_sub(1).filter(|&b| node.is_some() && node == codec.buffer_node(b));
        let (mut number, mut before) = (0, (0, 0));
        if let Some(previous) = previous.map(|previous| &buffers[previous]) {
            number = previous.number + 1;
            if !starts.contains(&buffer) {
                before = (previous.before.0 + 1, previous.before.1 + previous.rows);
            }
        }
        buffers.push(LaneBuffer { rows, number, before, is_data: false });
    }
    codec.data_buffers().iter().for_each(|&buffer| buffers[buffer].is_data = true);
    buffers
}

/// Returns the parts in order, each with the range of its lanes.
fn parts(codec: &LaneCodec) -> Vec<(Part, Range<usize>)> {
    let mut parts: BTreeMap<Part, Range<usize>> = BTreeMap::new();
    for buffer in 0..codec.buffer_count() {
        let cell = codec.buffer_cells(buffer).first().map(|&cell| codec.code().cell(cell));
        if let (Some(node), Some(cell)) = (codec.buffer_node(buffer), cell) {
            let part = Part { stage: cell.stage, shard: node.index() };
            parts.entry(part).or_insert(buffer..buffer).end = buffer + 1;
        }
    }
    parts.into_iter().collect()
}
