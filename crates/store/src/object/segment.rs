//! One segment in memory: all lanes of all its blocks, and which lanes are good.
//!
//! Every worker has one segment, of fixed size, and uses it for all segments that it handles. A
//! lane's payload and its checksum are adjacent, as in the file, so a block is read and written in
//! one call without copying. Lanes begin on cache lines, because the codec reads several lanes side
//! by side.

use std::io::{self, IoSlice, IoSliceMut, Read};
use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::object::format::{ObjectId, lane_checksum};
use crate::object::geometry::{CHECKSUM, Extent, Geometry};
use crate::place::open_files::Input;
use memmap2::MmapMut;
use paritas::Buffer;

/// Bytes of a cache line.
const LINE: usize = 64;

/// The place of a block, which is part of its checksums.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlockId {
    pub object: ObjectId,
    pub part: usize,
    pub segment: u64,
}

/// The reason why a lane is not good.
#[derive(Debug)]
pub enum LaneFlaw {
    /// Its checksum differs from that of its bytes.
    Checksum,
    /// The file ends before it.
    EndOfFile,
    /// The system cannot read it.
    Unreadable(io::Error),
}

/// The memory of all blocks of one segment, and which of their lanes are good.
#[derive(Debug)]
pub struct Segment {
    geometry: Arc<Geometry>,
    object: ObjectId,
    number: u64,
    lanes: Lanes,
    /// The memory for lanes that are read only to be checked.
    spare: Lanes,
    stripes: usize,
    good: Vec<bool>,
}

impl Segment {
    /// Allocates memory that is large enough for every segment of an object, and memory for
    /// checking one block.
    ///
    /// # Errors
    /// If the system lacks the memory ([`crate::error::ErrorKind::Memory`]).
    pub fn new(geometry: &Arc<Geometry>, object: ObjectId) -> Result<Self> {
        let lanes = Lanes::new(geometry.buffer_count(), geometry)?;
        let spare = Lanes::for_block(geometry)?;
        let good = vec![false; geometry.buffer_count()];
        let (geometry, stripes) = (Arc::clone(geometry), geometry.stripes());
        Ok(Self { geometry, object, number: 0, lanes, spare, stripes, good })
    }

    /// Returns the number of the segment.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Becomes segment `number` of an object with these segments. No lane is good yet.
    pub fn begin(&mut self, number: u64, extent: &Extent) {
        self.start(number, self.geometry.stripes_of(extent, number));
    }

    fn start(&mut self, number: u64, stripes: usize) {
        (self.number, self.stripes) = (number, stripes);
        self.good.fill(false);
    }

    /// Becomes segment `number`, and fills it with bytes from `source`. Returns the number of bytes
    /// read; it is less than a full segment if the source has ended.
    ///
    /// # Errors
    /// If the source cannot be read.
    pub fn fill(&mut self, number: u64, source: &mut impl Read) -> io::Result<usize> {
        self.start(number, self.geometry.stripes());
        let mut filled = 0;
        for &buffer in self.geometry.data_buffers() {
            let payload = self.geometry.payload(buffer, self.stripes);
            let read = read_full(source, &mut self.lanes.get(buffer)[..payload])?;
            filled += read;
            if read < payload {
                self.shrink(filled);
                break;
            }
        }
        self.geometry.data_buffers().iter().for_each(|&buffer| self.good[buffer] = true);
        Ok(filled)
    }

    /// Rearranges the first `bytes` user's bytes of a full segment as the smallest segment that
    /// holds them.
    fn shrink(&mut self, bytes: usize) {
        let mut content = self.data(bytes).concat();
        self.stripes = self.geometry.stripes_for(bytes as u64);
        content.resize(self.geometry.data_bytes(self.stripes), 0);
        let mut left = &content[..];
        for &buffer in self.geometry.data_buffers() {
            let (payload, rest) = left.split_at(self.geometry.payload(buffer, self.stripes));
            self.lanes.get(buffer)[..payload.len()].copy_from_slice(payload);
            left = rest;
        }
    }

    /// Returns the first `bytes` of the user's bytes, lane by lane. They must be good.
    pub fn data(&self, bytes: usize) -> Vec<&[u8]> {
        let mut left = bytes;
        let buffers = self.geometry.data_buffers().iter();
        let lanes = buffers.map(|&buffer| {
            let payload = self.geometry.payload(buffer, self.stripes).min(left);
            left -= payload;
            &self.lanes.peek(buffer)[..payload]
        });
        lanes.collect()
    }

    /// Computes all lanes of some parts that are not good, from the good ones.
    ///
    /// # Errors
    /// If these do not determine them ([`crate::error::ErrorKind::TooFewShards`]).
    pub fn make(&mut self, parts: Range<usize>) -> Result<()> {
        let wanted = self.geometry.buffers_in(parts);
        self.compute(|lane| wanted[lane])
    }

    /// Computes all wanted lanes that are not good.
    ///
    /// # Errors
    /// If the good lanes do not determine them ([`crate::error::ErrorKind::TooFewShards`]).
    pub fn compute(&mut self, wanted: impl Fn(usize) -> bool) -> Result<()> {
        let (geometry, stripes, good) = (&*self.geometry, self.stripes, &self.good);
        let missing = |&buffer: &usize| wanted(buffer) && !good[buffer];
        let missing: Vec<usize> = (0..geometry.buffer_count()).filter(missing).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let at_hand = (0..geometry.buffer_count()).filter(|&buffer| good[buffer]);
        let (have, want) = (geometry.cells(at_hand), geometry.cells(missing.iter().copied()));
        let lanes = self.lanes.run(0..geometry.buffer_count()).enumerate();
        let mut buffers: Vec<Buffer<'_>> = lanes
            .map(|(buffer, lane)| {
                let payload = &mut lane[..geometry.payload(buffer, stripes)];
                match good[buffer] {
                    true => Buffer::Source(payload),
                    false if missing.binary_search(&buffer).is_ok() => Buffer::Target(payload),
                    false => Buffer::Absent,
                }
            })
            .collect();
        geometry.codec().compute(&have, &want, &mut buffers)?;
        missing.into_iter().for_each(|buffer| self.good[buffer] = true);
        Ok(())
    }

    /// Computes all of the user's bytes that are not good.
    ///
    /// # Errors
    /// If the good lanes do not determine them ([`crate::error::ErrorKind::TooFewShards`]).
    pub fn make_data(&mut self) -> Result<()> {
        let geometry = Arc::clone(&self.geometry);
        self.compute(|buffer| geometry.is_data(buffer))
    }

    /// Returns the good buffers that differ from the values computed from the user's bytes,
    /// ascending. All of the user's bytes must be good. The other buffers are computed anew in
    /// `again`.
    ///
    /// # Errors
    /// If the system lacks the memory for the computation ([`crate::error::ErrorKind::Memory`]).
    pub fn disagreements(&self, again: &mut Self) -> Result<Vec<usize>> {
        let (geometry, stripes) = (Arc::clone(&self.geometry), self.stripes);
        again.start(self.number, stripes);
        for &buffer in geometry.data_buffers() {
            let payload = geometry.payload(buffer, stripes);
            again.lanes.get(buffer)[..payload].copy_from_slice(&self.lanes.peek(buffer)[..payload]);
            again.good[buffer] = true;
        }
        again.compute(|buffer| self.good[buffer])?;
        let differs = |&buffer: &usize| {
            let payload = geometry.payload(buffer, stripes);
            self.lanes.peek(buffer)[..payload] != again.lanes.peek(buffer)[..payload]
        };
        Ok((0..self.good.len()).filter(|&buffer| self.good[buffer]).filter(differs).collect())
    }

    /// Whether shards store the user's bytes themselves, not only cells that are computed from
    /// them.
    pub fn stores_data(&self) -> bool {
        self.geometry.code().graph().is_none()
    }

    /// Marks buffers as not good.
    pub fn distrust(&mut self, buffers: &[usize]) {
        buffers.iter().for_each(|&buffer| self.good[buffer] = false);
    }

    /// Whether all of the user's bytes are good.
    pub fn has_data(&self) -> bool {
        self.geometry.data_buffers().iter().all(|&buffer| self.good[buffer])
    }

    /// Whether all of the user's bytes are good, or can be computed from the good buffers.
    pub fn is_solvable(&self) -> bool {
        self.geometry.is_solvable(&self.good)
    }

    /// Returns, for each buffer, whether it is good.
    pub fn good(&self) -> &[bool] {
        &self.good
    }

    /// Returns the numbers of the good blocks of an LT code.
    pub fn good_blocks(&self) -> Vec<usize> {
        let good = (0..self.good.len()).filter(|&buffer| self.good[buffer]);
        self.geometry.lt_blocks(good)
    }

    /// Whether all lanes of a part's block are good.
    pub fn has_part(&self, part: usize) -> bool {
        self.geometry.part_buffers(part).all(|buffer| self.good[buffer])
    }

    /// Writes the checksums of a part's block behind its lanes, which must be good. Returns the
    /// block as it stands in the shard, lane by lane.
    pub fn seal(&mut self, part: usize) -> Vec<IoSlice<'_>> {
        let id = self.block_id(part);
        let (geometry, stripes) = (Arc::clone(&self.geometry), self.stripes);
        let buffers = geometry.part_buffers(part);
        let sealed = self.lanes.run(buffers.clone()).zip(buffers).map(|(lane, buffer)| {
            let payload = geometry.payload(buffer, stripes);
            let sum = id.checksum(&geometry, buffer, &lane[..payload]);
            lane[payload..payload + CHECKSUM].copy_from_slice(&sum);
            IoSlice::new(&lane[..payload + CHECKSUM])
        });
        sealed.collect()
    }

    fn block_id(&self, part: usize) -> BlockId {
        BlockId { object: self.object, part, segment: self.number }
    }

    /// Returns a sealed block, lane by lane, each with its checksum. One after the other they are
    /// the block as it stands in the shard.
    pub fn block(&self, part: usize) -> Vec<&[u8]> {
        self.geometry.part_buffers(part).map(|lane| self.sealed_lane(lane)).collect()
    }

    /// Reads adjacent lanes of a part's block from a file. Intact lanes become good, unless they
    /// were before. Returns the other lanes.
    pub fn read(
        &mut self,
        file: &Input<'_>,
        offset: u64,
        part: usize,
        run: Range<usize>,
    ) -> Vec<(usize, LaneFlaw)> {
        let id = self.block_id(part);
        let geometry = Arc::clone(&self.geometry);
        let mut lanes = self.landing(run.clone());
        let mut slices: Vec<_> = lanes.iter_mut().map(|lane| IoSliceMut::new(lane)).collect();
        let read = match file.read_at(&mut slices, offset) {
            Ok(read) => read,
            Err(error) if run.len() == 1 => return vec![(run.start, LaneFlaw::Unreadable(error))],
            Err(_) => return self.read_singly(file, offset, part, run),
        };
        let flaws = check(&geometry, &lanes, read, run.start, id);
        self.trust(run, &flaws);
        flaws
    }

    /// Takes in a part's block as it stands in the shard. Intact lanes become good, unless they
    /// were before. Returns the other lanes.
    pub fn accept(&mut self, part: usize, block: &[u8]) -> Vec<usize> {
        self.accept_lanes(part, self.geometry.part_buffers(part), block)
    }

    /// Takes in adjacent lanes of a part's block, like [`Segment::accept`]. A lane is not good if
    /// `bytes` end before it does.
    pub fn accept_lanes(&mut self, part: usize, run: Range<usize>, bytes: &[u8]) -> Vec<usize> {
        let id = self.block_id(part);
        let geometry = Arc::clone(&self.geometry);
        let mut lanes = self.landing(run.clone());
        let mut left = bytes;
        for lane in &mut lanes {
            let (now, later) = left.split_at(lane.len().min(left.len()));
            lane[..now.len()].copy_from_slice(now);
            left = later;
        }
        let flaws = check(&geometry, &lanes, bytes.len(), run.start, id);
        self.trust(run, &flaws);
        flaws.into_iter().map(|(buffer, _)| buffer).collect()
    }

    /// Marks the buffers of a run as good, except those with flaws.
    fn trust(&mut self, run: Range<usize>, flaws: &[(usize, LaneFlaw)]) {
        let is_flawed = |buffer: usize| flaws.iter().any(|(flawed, _)| *flawed == buffer);
        run.filter(|&buffer| !is_flawed(buffer)).for_each(|buffer| self.good[buffer] = true);
    }

    /// Returns one lane of a sealed block with its checksum.
    pub fn sealed_lane(&self, buffer: usize) -> &[u8] {
        let length = self.geometry.payload(buffer, self.stripes) + CHECKSUM;
        &self.lanes.peek(buffer)[..length]
    }

    /// Returns the memory that lanes are read to: their own place, or a spare one for lanes that
    /// are good already and are only checked.
    fn landing(&mut self, run: Range<usize>) -> Vec<&mut [u8]> {
        let (geometry, stripes, good) = (&*self.geometry, self.stripes, &self.good);
        let length = |buffer| geometry.payload(buffer, stripes) + CHECKSUM;
        let places = self.lanes.run(run.clone()).zip(run.clone());
        if !run.clone().any(|buffer| good[buffer]) {
            return places.map(|(lane, buffer)| &mut lane[..length(buffer)]).collect();
        }
        let spare = self.spare.run(0..run.len());
        let choice = places.zip(spare).map(|((lane, buffer), spare)| {
            let lane = if good[buffer] { spare } else { lane };
            &mut lane[..length(buffer)]
        });
        choice.collect()
    }

    /// Reads lane by lane, for a block that the disk can read only in part.
    fn read_singly(
        &mut self,
        file: &Input<'_>,
        offset: u64,
        part: usize,
        run: Range<usize>,
    ) -> Vec<(usize, LaneFlaw)> {
        let first = run.start;
        run.flat_map(|buffer| {
            let offset = offset + self.lane_offset(first, buffer);
            self.read(file, offset, part, buffer..buffer + 1)
        })
        .collect()
    }

    /// Returns the distance in bytes from lane `first` to lane `buffer` of the same block.
    pub fn lane_offset(&self, first: usize, buffer: usize) -> u64 {
        let start = |buffer| self.geometry.lane_start(buffer, self.stripes);
        start(buffer) - start(first)
    }
}

/// Returns which of the adjacent `lanes` are not intact. Only the first `read` bytes of them all
/// have been read.
fn check(
    geometry: &Geometry,
    lanes: &[&mut [u8]],
    read: usize,
    first: usize,
    id: BlockId,
) -> Vec<(usize, LaneFlaw)> {
    let (mut end, mut flaws) = (0, Vec::new());
    for (lane, buffer) in lanes.iter().zip(first..) {
        end += lane.len();
        if end > read {
            flaws.push((buffer, LaneFlaw::EndOfFile));
        } else if id.intact(geometry, buffer, lane).is_none() {
            flaws.push((buffer, LaneFlaw::Checksum));
        }
    }
    flaws
}

impl BlockId {
    /// Computes the checksum of the lane that a buffer holds.
    pub fn checksum(&self, geometry: &Geometry, buffer: usize, payload: &[u8]) -> [u8; CHECKSUM] {
        let (shard, lane) = (geometry.part(self.part).shard, geometry.lane(buffer));
        lane_checksum(self.object, shard as u32, self.segment, lane, payload)
    }

    /// Returns the payload of a lane, or `None` if the lane is not intact. `sealed` is the lane as
    /// it stands in the shard, with its checksum.
    pub fn intact<'b>(
        &self,
        geometry: &Geometry,
        buffer: usize,
        sealed: &'b [u8],
    ) -> Option<&'b [u8]> {
        let (payload, sum) = sealed.split_at_checked(sealed.len().checked_sub(CHECKSUM)?)?;
        (self.checksum(geometry, buffer, payload) == sum).then_some(payload)
    }
}

fn read_full(source: &mut impl Read, mut buffer: &mut [u8]) -> io::Result<usize> {
    let wanted = buffer.len();
    while !buffer.is_empty() {
        match source.read(buffer) {
            Ok(0) => break,
            Ok(read) => buffer = &mut buffer[read..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(wanted - buffer.len())
}

/// Lanes of equal size, at a stride of an odd number of cache lines. So the same offset in many
/// lanes does not map to the same few cache sets.
///
/// The memory comes from the system directly. If memory is short, the system returns an error where
/// an allocator would abort. It provides a page only when the page is first written.
#[derive(Debug)]
struct Lanes {
    memory: MmapMut,
    stride: usize,
}

impl Lanes {
    /// Allocates memory for `count` lanes of any kind.
    fn new(count: usize, geometry: &Geometry) -> Result<Self> {
        let length = geometry.widest_payload() + CHECKSUM;
        let stride = (length.div_ceil(LINE) | 1) * LINE;
        let bytes = (count * stride).max(1);
        let memory = MmapMut::map_anon(bytes).map_err(|error| Error::memory(bytes, &error))?;
        Ok(Self { memory, stride })
    }

    /// Allocates memory for the lanes of any one block.
    fn for_block(geometry: &Geometry) -> Result<Self> {
        let lanes = (0..geometry.part_count()).map(|part| geometry.part_buffers(part).len());
        Self::new(lanes.max().unwrap_or(0), geometry)
    }

    fn get(&mut self, lane: usize) -> &mut [u8] {
        &mut self.memory[lane * self.stride..][..self.stride]
    }

    fn peek(&self, lane: usize) -> &[u8] {
        &self.memory[lane * self.stride..][..self.stride]
    }

    fn run(&mut self, lanes: Range<usize>) -> impl Iterator<Item = &mut [u8]> {
        let first = lanes.start * self.stride;
        self.memory[first..].chunks_exact_mut(self.stride).take(lanes.len())
    }
}
