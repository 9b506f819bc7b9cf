//! Where the bytes of an object are: which parts its shards have, which lanes a block has, how long
//! they are, and where a segment's block begins in a shard file.
//!
//! Parts are counted over all shards and stages: first those of stage 1, in the order of their
//! shards, then those of stage 2, and so on. So a code without stages has part i in shard i, and
//! the parts that an object has before and after a promotion are the first so many.
//!
//! This is the arithmetic of the format essay ([`super::format`]) over the buffers of a codec,
//! which are the lanes of all nodes. Everything that depends on numbers out of a header is
//! checked here, once; later sums cannot overflow.

use std::collections::BTreeMap;
use std::ops::Range;

use paritas::erasure::Losses;
use paritas::{CellId, CellSet, Code, CodecOptions, DEFAULT_PACKET, LaneCodec};

use crate::error::{Error, Result};

/// The bytes of a checksum after a lane's payload.
pub(crate) const CHECKSUM: usize = 8;

/// The payload that a block of a shard has unless something else is asked for, in bytes. Big enough
/// for disks and system calls, small enough that a segment stays in the cache.
pub const DEFAULT_BLOCK_BYTES: usize = 64 * 1024;

/// The largest packet of any file, in bytes.
pub(crate) const MAX_PACKET: usize = 1 << 20;

/// All blocks of a segment together stay below this where stripes are small enough.
const WANTED_SEGMENT: usize = 8 << 20;

/// All blocks of a segment together are never more than this.
const MAX_SEGMENT: usize = 64 << 20;

/// A block of an LT code has as many bytes as this where a segment may be so large: shorter ones
/// would be checksums for the most part.
const WANTED_LT_BLOCK: usize = 1024;

/// The longest file of any system, with room for a header to be added without overflow.
const MAX_FILE: u64 = i64::MAX as u64;

/// The lengths of objects that are planned for alike; longer ones are worth any schedule.
const PLANNED: [u64; 3] = [1 << 16, 1 << 20, 1 << 26];

/// For how many bytes an object of some length is planned. There are few answers, so that objects
/// of all lengths can share what is known of their code.
pub(crate) fn planned_bytes(length: u64) -> Option<u64> {
    PLANNED.into_iter().find(|&bytes| length <= bytes)
}

/// A buffer of the codec: a lane of a shard's block, or data that is stored nowhere.
#[derive(Debug, Clone)]
struct Buffer {
    rows: usize,
    /// The number of the lane in its block.
    lane: u32,
    /// The rows of the lanes before it in its block.
    rows_before: usize,
    /// Whether it holds the user's bytes.
    is_data: bool,
}

/// What one shard file holds: the lanes of a shard that are made in one stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Part {
    /// The stage, from 1.
    pub stage: u8,
    /// The index of the shard.
    pub shard: usize,
}

/// A code with the shape of its segments.
#[derive(Debug)]
pub(crate) struct Geometry {
    codec: LaneCodec,
    buffers: Vec<Buffer>,
    /// The parts, and the buffers of each.
    parts: Vec<(Part, Range<usize>)>,
    stripes: usize,
}

impl Geometry {
    /// The shape of segments of `stripes` stripes of a code that is run as `options` say (all but
    /// packet, threads and the bytes to plan for), for an object of about `length` bytes, if
    /// that is known: for a small one, schedules are planned in less time.
    ///
    /// # Errors
    /// If a packet would be empty or larger than 1 MiB, or a segment empty or larger than 64 MiB.
    pub fn new(
        code: Code,
        packet: usize,
        stripes: usize,
        length: Option<u64>,
        options: CodecOptions,
    ) -> Result<Self> {
        if packet == 0 || packet > MAX_PACKET {
            return Err(Error::parameters(format!(
                "a packet must have 1 to {MAX_PACKET} bytes; got {packet}"
            )));
        }
        let plan = options.plan.bytes(length.and_then(planned_bytes));
        let options = options.packet(packet).threads(1).plan(plan);
        let spec = code.spec().to_string();
        let codec = LaneCodec::new(code, options)?;
        let buffers = lanes(&codec);
        let parts = parts(&codec);
        let stripe = buffers.iter().map(|buffer| buffer.rows).sum::<usize>().saturating_mul(packet);
        let segment = stripe.saturating_mul(stripes);
        if stripes == 0 || segment > MAX_SEGMENT {
            return Err(Error::parameters(format!(
                "a segment must have 1 to {MAX_SEGMENT} bytes; {spec} with packets of {packet} bytes \
                 has stripes of {stripe} bytes; got {stripes} of them"
            )));
        }
        Ok(Self { codec, buffers, parts, stripes })
    }

    /// Chooses the bytes of a packet, unless they are given, and the stripes of a full segment, for
    /// blocks of about `block` bytes and an object of this length, if that is known.
    pub fn choose(
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

    /// Packets of [`DEFAULT_PACKET`] bytes, or shorter ones for an object that does not fill one
    /// stripe of these, so that little of the stripe is padding.
    fn choose_packet(code: &Code, length: Option<u64>) -> usize {
        let fitting = |length: u64| length.div_ceil(code.data_cells().len() as u64);
        let fitting = length.filter(|&length| length > 0).map(fitting);
        fitting.map_or(DEFAULT_PACKET, |bytes| bytes.min(DEFAULT_PACKET as u64) as usize)
    }

    /// For an LT code, whose blocks are lanes: an object is cut into segments of equal length, so
    /// that the last one is no waste, and one that does not fill k packets gets shorter ones.
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

    /// The stripes of a full segment for blocks of about `block` bytes: a power of two, so that
    /// lanes are whole pages and hash well.
    fn choose_stripes(code: &Code, packet: usize, block: usize) -> usize {
        let rows = code.nodes().map(|node| code.node_cells(node).len()).max().unwrap_or(1);
        let fit = |bytes: usize, cells: usize| bytes / cells.saturating_mul(packet).max(1);
        let most = fit(block, rows).min(fit(WANTED_SEGMENT, code.cell_count())).max(1);
        1 << most.ilog2()
    }

    /// Of an LT code with the data among its blocks, the buffers of these, ascending.
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

    /// Refuses a graph that is of no use.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Parameters`] when all blocks of an LT code together do not determine the
    /// data.
    pub fn expect_decodable(&self) -> Result<()> {
        let code = self.code();
        let all = code.cells_of(code.nodes());
        if code.graph().is_none() || self.codec.solvable(&all, &self.data_cells()) {
            return Ok(());
        }
        Err(Error::parameters(format!(
            "{}: not even all blocks together determine the data; take another seed, more blocks, or a variant with decodable",
            code.spec()
        )))
    }

    pub fn codec(&self) -> &LaneCodec {
        &self.codec
    }

    pub fn code(&self) -> &Code {
        self.codec.code()
    }

    pub fn packet(&self) -> usize {
        self.codec.packet()
    }

    /// The stripes of a full segment.
    pub fn stripes(&self) -> usize {
        self.stripes
    }

    pub fn buffer_count(&self) -> usize {
        self.buffers.len()
    }

    /// The number of shards: the nodes of the code.
    pub fn shard_count(&self) -> usize {
        self.code().node_count()
    }

    /// The number of parts of all stages.
    pub fn part_count(&self) -> usize {
        self.parts.len()
    }

    /// The number of parts of the stages up to this one.
    pub fn parts_until(&self, stage: u8) -> usize {
        self.parts.partition_point(|(part, _)| part.stage <= stage)
    }

    /// The parts of one stage.
    pub fn parts_in(&self, stage: u8) -> Range<usize> {
        self.parts_until(stage - 1)..self.parts_until(stage)
    }

    pub fn part(&self, part: usize) -> Part {
        self.parts[part].0
    }

    /// The number of a part, if the code has it.
    pub fn find_part(&self, part: Part) -> Option<usize> {
        self.parts.binary_search_by_key(&part, |&(known, _)| known).ok()
    }

    /// The number of shards that have parts of the stages up to this one.
    pub fn shards_at(&self, stage: u8) -> usize {
        self.code().nodes_at(stage).len()
    }

    /// Any so many shards may be lost when the object is in this stage.
    pub fn tolerance(&self, stage: u8) -> usize {
        self.code().tolerance_at(stage)
    }

    /// Whether a part is added to a shard that has others from earlier stages.
    pub fn is_added(&self, part: usize) -> bool {
        self.parts[..part].iter().any(|(earlier, _)| earlier.shard == self.part(part).shard)
    }

    /// The buffers of a part: its lanes in order.
    pub fn part_buffers(&self, part: usize) -> Range<usize> {
        self.parts[part].1.clone()
    }

    /// Which buffers some parts have.
    pub fn buffers_in(&self, parts: impl IntoIterator<Item = usize>) -> Vec<bool> {
        let mut has = vec![false; self.buffer_count()];
        let buffers = parts.into_iter().flat_map(|part| self.part_buffers(part));
        buffers.for_each(|buffer| has[buffer] = true);
        has
    }

    /// The parts that hold user's data, and then the others.
    pub fn parts_data_first(&self) -> Vec<usize> {
        let (mut data, rest): (Vec<_>, Vec<_>) =
            (0..self.part_count()).partition(|&part| self.holds_data(part));
        data.extend(rest);
        data
    }

    /// Whether a part holds user's data.
    pub fn holds_data(&self, part: usize) -> bool {
        self.part_buffers(part).any(|buffer| self.is_data(buffer))
    }

    /// The buffers that hold the user's bytes, in their order.
    pub fn data_buffers(&self) -> &[usize] {
        self.codec.data_buffers()
    }

    /// Whether a buffer holds the user's bytes.
    pub fn is_data(&self, buffer: usize) -> bool {
        self.buffers[buffer].is_data
    }

    /// The number of a buffer's lane in its block.
    pub fn lane(&self, buffer: usize) -> u32 {
        self.buffers[buffer].lane
    }

    /// Where a buffer's lane begins in its block of so many stripes.
    pub fn lane_start(&self, buffer: usize, stripes: usize) -> u64 {
        let Buffer { rows_before, lane, .. } = self.buffers[buffer];
        (rows_before * self.packet() * stripes) as u64 + u64::from(lane) * CHECKSUM as u64
    }

    /// The payload bytes of a buffer in a segment of so many stripes.
    pub fn payload(&self, buffer: usize, stripes: usize) -> usize {
        self.buffers[buffer].rows * self.packet() * stripes
    }

    /// The longest payload of any buffer.
    pub fn widest_payload(&self) -> usize {
        (0..self.buffer_count()).map(|buffer| self.payload(buffer, self.stripes)).max().unwrap_or(0)
    }

    /// The bytes of a part's block in a segment of so many stripes.
    pub fn block(&self, part: usize, stripes: usize) -> u64 {
        let lane = |buffer| self.payload(buffer, stripes) + CHECKSUM;
        self.part_buffers(part).map(lane).sum::<usize>() as u64
    }

    /// The user's bytes in so many stripes.
    pub fn data_bytes(&self, stripes: usize) -> usize {
        self.code().data_cells().len() * self.packet() * stripes
    }

    /// The user's bytes in a full segment.
    pub fn segment_data(&self) -> u64 {
        self.data_bytes(self.stripes) as u64
    }

    /// The stripes that a segment with so many of the user's bytes has.
    pub fn stripes_for(&self, bytes: u64) -> usize {
        bytes.div_ceil(self.data_bytes(1) as u64) as usize
    }

    /// The segments of an object of this length.
    pub fn extent(&self, length: u64) -> Extent {
        Extent { length, segment: self.segment_data(), count: length.div_ceil(self.segment_data()) }
    }

    /// The stripes of one segment of an object.
    pub fn stripes_of(&self, extent: &Extent, segment: u64) -> usize {
        self.stripes_for(extent.bytes(segment))
    }

    /// Where a segment's block begins, counted from the end of the front header. Nothing when that
    /// is beyond what a file can hold.
    pub fn block_start(&self, part: usize, segment: u64) -> Option<u64> {
        let full = self.block(part, self.stripes);
        segment.checked_mul(full).filter(|&start| start <= MAX_FILE - full)
    }

    /// The bytes of all of a part's blocks: where the footer begins, counted as above.
    pub fn blocks(&self, extent: &Extent, part: usize) -> Option<u64> {
        let Some(last) = extent.count.checked_sub(1) else { return Some(0) };
        let stripes = self.stripes_of(extent, last);
        Some(self.block_start(part, last)? + self.block(part, stripes))
    }

    /// The cells of the given buffers.
    pub fn cells(&self, buffers: impl IntoIterator<Item = usize>) -> CellSet {
        let cells = buffers.into_iter().flat_map(|buffer| self.codec.buffer_cells(buffer));
        CellSet::from_cells(self.code().cell_count(), cells.copied())
    }

    /// Whether all of the user's bytes are among these buffers, or can be computed from them.
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
            // What is found out is kept, for this is the question that follows.
            Some(_) => self.codec().solvable(&have, &self.data_cells()),
            None => Losses::new(code, have).is_solvable(),
        }
    }

    /// All of the data cells.
    pub fn data_cells(&self) -> CellSet {
        CellSet::from_cells(self.code().cell_count(), self.code().data_cells().iter().copied())
    }

    /// The blocks of an LT code that stand in some buffers, by number.
    pub fn lt_blocks(&self, buffers: impl IntoIterator<Item = usize>) -> Vec<usize> {
        let data = self.code().data_cells().len();
        let cells = buffers.into_iter().flat_map(|buffer| self.codec.buffer_cells(buffer));
        cells.filter_map(|cell| cell.index().checked_sub(data)).collect()
    }

    /// The buffers that hold some of the given cells, ascending.
    pub fn buffers_of(&self, cells: &[CellId]) -> Vec<usize> {
        let cells = CellSet::from_cells(self.code().cell_count(), cells.iter().copied());
        let holds = |&buffer: &usize| {
            self.codec.buffer_cells(buffer).iter().any(|&cell| cells.contains(cell))
        };
        (0..self.buffer_count()).filter(holds).collect()
    }

    /// How many threads to use where so many are wanted (0: the machine's): no more than keep all
    /// segments in memory below 128 MiB.
    pub fn threads(&self, wanted: usize) -> usize {
        let machine = || std::thread::available_parallelism().map_or(1, usize::from);
        let segment = self.buffer_count() * (self.widest_payload() + CHECKSUM);
        let wanted = if wanted == 0 { machine() } else { wanted };
        wanted.min((128 << 20) / segment).max(1)
    }
}

/// The segments of one object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    length: u64,
    segment: u64,
    count: u64,
}

impl Extent {
    /// The number of segments.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Which of the object's bytes a segment holds.
    pub fn range(&self, segment: u64) -> Range<u64> {
        let start = segment.saturating_mul(self.segment).min(self.length);
        start..start.saturating_add(self.segment).min(self.length)
    }

    /// How many of the object's bytes a segment holds.
    pub fn bytes(&self, segment: u64) -> u64 {
        let range = self.range(segment);
        range.end - range.start
    }
}

fn lanes(codec: &LaneCodec) -> Vec<Buffer> {
    let mut buffers: Vec<Buffer> = Vec::with_capacity(codec.buffer_count());
    for buffer in 0..codec.buffer_count() {
        let rows = codec.buffer_cells(buffer).len();
        let node = codec.buffer_node(buffer);
        let before =
            buffer.checked_sub(1).filter(|&b| node.is_some() && node == codec.buffer_node(b));
        let (lane, rows_before) = before.map_or((0, 0), |before| {
            let Buffer { rows, lane, rows_before, .. } = buffers[before];
            (lane + 1, rows_before + rows)
        });
        buffers.push(Buffer { rows, lane, rows_before, is_data: false });
    }
    codec.data_buffers().iter().for_each(|&buffer| buffers[buffer].is_data = true);
    buffers
}

/// The lanes of each node by stage, in which order they stand.
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
