//! The shape of one object in shards: the lengths of its blocks, their places in its shards, and
//! the headers around them. The caller decides where the bytes come from and where they go.

use std::ffi::{OsStr, OsString};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Arc;

use paritas::{Code, CodecOptions, Spec};

#[cfg(doc)]
use crate::error::ErrorKind;
use crate::error::{Error, Result};
use crate::object::format::{
    Digest, Identity, ObjectId, PREFIX, Record, RecordFlaw, RecordKind, Total, check_name,
    record_length,
};
use crate::object::geometries::rebuild;
use crate::object::geometry::{CHECKSUM, DEFAULT_BLOCK_BYTES, Extent, Geometry, Part};
use crate::object::segment::{BlockId, Segment};
use crate::place::attributes::{Attributes, STORED_MODE};
use crate::place::system::name_bytes;
use crate::shown::shown;

/// The settings of a new object.
#[derive(Debug, Clone)]
pub struct NewObject {
    /// Number of bytes of a packet; 1 to 1,048,576; chosen by code and length if it is absent.
    pub packet: Option<usize>,
    /// Wanted number of bytes of a shard's block; a block has at least one stripe.
    pub block_bytes: usize,
    /// The object's id. Without it, a random id is drawn.
    pub object: Option<ObjectId>,
    /// The length of the object, if it is known.
    pub length: Option<u64>,
    /// Mode and time of the source, which headers state.
    pub attributes: Attributes,
    /// The way the code is run on this machine. The stored bytes do not depend on it.
    pub options: CodecOptions,
}

impl Default for NewObject {
    fn default() -> Self {
        Self {
            packet: None,
            block_bytes: DEFAULT_BLOCK_BYTES,
            object: None,
            length: None,
            attributes: Attributes::default(),
            options: CodecOptions::default(),
        }
    }
}

/// The shape of one object in shards: its code, the lengths of its blocks, and its headers.
///
/// A *part* is what a shard file holds: one shard, or, in codes of several stages, what one stage
/// adds to it. Parts are numbered by stage and then by shard. A *lane* is the piece of a block that
/// has its own checksum. Lanes are numbered over all parts ([`ObjectLayout::lanes`]).
#[derive(Debug, Clone)]
pub struct ObjectLayout {
    geometry: Arc<Geometry>,
    identity: Arc<Identity>,
    /// The lengths of the front headers, by part.
    fronts: Arc<[u64]>,
}

impl ObjectLayout {
    /// Creates the shape of a new object with the base name `name`.
    ///
    /// # Errors
    /// If the name cannot be a file's, or a packet or block of this size is not possible
    /// ([`ErrorKind::Parameters`]), or if the system has no random numbers.
    pub fn new(code: Code, name: impl AsRef<OsStr>, shape: NewObject) -> Result<Self> {
        let name = name.as_ref();
        check_name(name_bytes(name)).map_err(|how| {
            Error::parameters(format!("{} cannot be an object's name: it is {how}", shown(name)))
        })?;
        let NewObject { packet, block_bytes, object, length, attributes, options } = shape;
        packet.map_or(Ok(()), Geometry::expect_packet)?;
        let (packet, stripes) = Geometry::choose(&code, packet, block_bytes, length);
        let object = object.map_or_else(ObjectId::random, Ok)?;
        let mut identity = Identity::new(&code, name, object);
        identity.packet = packet as u32;
        identity.stripes = stripes as u32;
        identity.length_hint = length;
        identity.mode = attributes.mode.map(|mode| mode & STORED_MODE);
        identity.modified = attributes.modified;
        let geometry = Geometry::new(code, packet, stripes, length, options)?;
        geometry.expect_decodable()?;
        Self::of(geometry, identity)
    }

    fn of(geometry: Geometry, identity: Identity) -> Result<Self> {
        let front = |part| Ok(identity.record(geometry.part(part), None).to_bytes()?.len() as u64);
        let fronts = (0..geometry.part_count()).map(front).collect::<Result<_>>()?;
        Ok(Self { geometry: Arc::new(geometry), identity: Arc::new(identity), fronts })
    }

    /// Reads the front header at the beginning of a shard. `start` holds the shard's first bytes.
    /// The code is run with the options that `options` returns for it.
    ///
    /// # Errors
    /// If the bytes are not a front header, or hold only a part of one
    /// ([`ErrorKind::NotRecognised`]).
    pub fn read(start: &[u8], options: impl Fn(&Spec) -> CodecOptions) -> Result<Self> {
        let record = front_record(start).map_err(not_recognised)?;
        let geometry = rebuild(&record.identity, None, &options)
            .map_err(|how| Error::not_recognised(format!("the shard {how}")))?;
        let part = Part { stage: record.stage(), shard: record.shard as usize };
        if geometry.find_part(part).is_none() {
            let message = format!("the shard states a part that its code lacks: {part:?}");
            return Err(Error::not_recognised(message));
        }
        Self::of(geometry, record.identity)
    }

    /// Returns the object's id.
    pub fn object(&self) -> ObjectId {
        self.identity.object
    }

    /// Returns the code.
    pub fn code(&self) -> &Code {
        self.geometry.code()
    }

    /// Returns the number of parts of all stages.
    pub fn part_count(&self) -> usize {
        self.geometry.part_count()
    }

    /// Returns which shard and stage a part is.
    pub fn part(&self, part: usize) -> Part {
        self.geometry.part(part)
    }

    /// Returns the parts that a stage makes. Stages count from 1.
    pub fn parts_in(&self, stage: u8) -> Range<usize> {
        self.geometry.parts_in(stage)
    }

    /// Whether a part holds bytes of the object as they are.
    pub fn holds_data(&self, part: usize) -> bool {
        self.geometry.holds_data(part)
    }

    /// Returns the number of shards that may be lost, whichever they are, in a stage.
    pub fn tolerance(&self, stage: u8) -> usize {
        self.geometry.tolerance(stage)
    }

    /// Returns the name of a part's file.
    ///
    /// # Errors
    /// If the name would be longer than file systems allow.
    pub fn file_name(&self, part: usize) -> Result<OsString> {
        Ok(self.identity.part_name(&self.geometry, part)?.finished())
    }

    /// Returns what the name of a part's file adds to the object's base name, such as
    /// `.3of6.paritas`.
    pub fn file_suffix(&self, part: usize) -> String {
        self.identity.part_suffix(&self.geometry, part)
    }

    /// Returns the front header of a part.
    ///
    /// # Errors
    /// If it would be longer than a reader accepts.
    pub fn front(&self, part: usize) -> Result<Vec<u8>> {
        self.identity.record(self.geometry.part(part), None).to_bytes()
    }

    /// Returns the footer of a part of an object with this length and digest.
    ///
    /// # Errors
    /// If it would be longer than a reader accepts.
    pub fn footer(&self, part: usize, length: u64, digest: Digest) -> Result<Vec<u8>> {
        let total = Total { length, digest };
        self.identity.record(self.geometry.part(part), Some(total)).to_bytes()
    }

    /// Returns the number of bytes of a part's file in an object of `length` bytes, or `None` if no
    /// file can be that long.
    pub fn file_bytes(&self, part: usize, length: u64) -> Option<u64> {
        let footer = self.footer(part, length, Digest::new([0; 32])).ok()?.len() as u64;
        let blocks = self.geometry.blocks(&self.geometry.extent(length), part)?;
        self.fronts[part].checked_add(blocks)?.checked_add(footer)
    }

    /// Returns the number of the object's bytes in a full segment.
    pub fn segment_bytes(&self) -> u64 {
        self.geometry.segment_data()
    }

    /// Returns the number of segments of an object of `length` bytes.
    pub fn segments(&self, length: u64) -> u64 {
        self.geometry.extent(length).count()
    }

    /// Returns the range of the object's bytes that a segment holds.
    pub fn segment_range(&self, length: u64, segment: u64) -> Range<u64> {
        self.geometry.extent(length).range(segment)
    }

    /// Returns the code with the shape of its segments.
    pub fn geometry(&self) -> &Arc<Geometry> {
        &self.geometry
    }

    /// Returns the segments of an object of `length` bytes.
    pub fn extent(&self, length: u64) -> Extent {
        self.geometry.extent(length)
    }

    /// Returns the number of threads to use for an object of `length` bytes (`None`: unknown): at
    /// most `wanted` (`None`: the number that the machine runs at once). The segments of all
    /// threads together take at most 128 MiB of memory, or a quarter of what this process may use
    /// if that is less.
    pub fn threads(&self, wanted: Option<NonZeroUsize>, length: Option<u64>) -> usize {
        let threads = self.geometry.threads(wanted);
        length.map_or(threads, |length| threads.min(self.segments(length).max(1) as usize))
    }

    /// Allocates memory for any one segment of the object.
    ///
    /// # Errors
    /// If the system lacks the memory ([`ErrorKind::Memory`]).
    pub fn segment(&self) -> Result<Segment> {
        Segment::new(&self.geometry, self.object())
    }

    /// Returns the bytes of memory that a [`Segment`] takes.
    pub fn segment_memory(&self) -> usize {
        self.geometry.buffer_count() * (self.geometry.widest_payload() + CHECKSUM)
    }

    /// Returns the place in a part's file of its block of a segment, whatever the object's length.
    /// Returns `None` if no file can be that long.
    pub fn block_start(&self, part: usize, segment: u64) -> Option<u64> {
        self.fronts[part].checked_add(self.geometry.block_start(part, segment)?)
    }

    /// Returns the place in a part's file of its blocks of some adjacent segments, of an object of
    /// `length` bytes. Returns `None` if no file can be that long.
    pub fn blocks(&self, part: usize, length: u64, segments: Range<u64>) -> Option<Range<u64>> {
        let extent = self.geometry.extent(length);
        let place = |segment| match segment < extent.count() {
            true => self.geometry.block_start(part, segment),
            false => self.geometry.blocks(&extent, part),
        };
        let front = self.fronts[part];
        Some(front.checked_add(place(segments.start)?)?..front.checked_add(place(segments.end)?)?)
    }

    /// Returns the numbers of a part's lanes.
    pub fn lanes(&self, part: usize) -> Range<usize> {
        self.geometry.part_buffers(part)
    }

    /// Returns the place in a part's file of some of its adjacent lanes of one segment, of an
    /// object of `length` bytes. Returns `None` if no file can be that long.
    pub fn lanes_place(
        &self,
        part: usize,
        length: u64,
        segment: u64,
        lanes: Range<usize>,
    ) -> Option<Range<u64>> {
        let extent = self.geometry.extent(length);
        let stripes = self.geometry.stripes_of(&extent, segment);
        let block = self.fronts[part].checked_add(self.geometry.block_start(part, segment)?)?;
        let start = |lane| match lane < self.lanes(part).end {
            true => self.geometry.lane_start(lane, stripes),
            false => self.geometry.block(part, stripes),
        };
        Some(block + start(lanes.start)..block + start(lanes.end))
    }

    /// Returns the lanes that hold the object's bytes, in the order of these bytes.
    pub fn data_lanes(&self) -> &[usize] {
        self.geometry.data_buffers()
    }

    /// Returns the number of the LT block that a lane holds, or `None` if the code is not an LT
    /// code.
    pub fn lt_block(&self, lane: usize) -> Option<usize> {
        self.code().graph()?;
        self.geometry.lt_blocks([lane]).first().copied()
    }

    /// Checks a part's block of a segment in place, without copying it. The object has `length`
    /// bytes. Returns the lanes that are intact, each with the range of its bytes in the block,
    /// without checksum.
    pub fn intact_lanes(
        &self,
        part: usize,
        length: u64,
        segment: u64,
        block: &[u8],
    ) -> Vec<(usize, Range<usize>)> {
        let geometry = &self.geometry;
        let stripes = geometry.stripes_of(&geometry.extent(length), segment);
        let id = BlockId { object: self.object(), part, segment };
        let lanes = self.lanes(part).filter_map(|lane| {
            let start = geometry.lane_start(lane, stripes) as usize;
            let end = start + geometry.payload(lane, stripes);
            id.intact(geometry, lane, block.get(start..end + CHECKSUM)?)?;
            Some((lane, start..end))
        });
        lanes.collect()
    }

    /// Returns the lanes that hold the object's bytes in a segment, each with the range of these
    /// bytes in the object, of `length` bytes.
    pub fn data_places(&self, length: u64, segment: u64) -> Vec<(usize, Range<u64>)> {
        let geometry = &self.geometry;
        let extent = geometry.extent(length);
        let (stripes, all) = (geometry.stripes_of(&extent, segment), extent.range(segment));
        let mut start = all.start;
        let places = geometry.data_buffers().iter().map(|&lane| {
            let end = (start + geometry.payload(lane, stripes) as u64).min(all.end);
            let place = start..end;
            start = end;
            (lane, place)
        });
        places.filter(|(_, place)| !place.is_empty()).collect()
    }

    /// Returns the bytes of one lane of a segment without its checksum, or `None` if it is not
    /// intact. `sealed` is the lane as it stands in the shard.
    pub fn open_lane<'b>(
        &self,
        part: usize,
        segment: u64,
        lane: usize,
        sealed: &'b [u8],
    ) -> Option<&'b [u8]> {
        BlockId { object: self.object(), part, segment }.intact(&self.geometry, lane, sealed)
    }

    /// Returns the number of bytes of a lane in a full segment, without checksum.
    pub fn lane_bytes(&self, lane: usize) -> usize {
        self.geometry.payload(lane, self.geometry.stripes())
    }

    /// Returns the lanes that are read to make the parts `make` out of the parts `from`: those of
    /// the cheapest plan that reads few bytes.
    ///
    /// # Errors
    /// If the parts do not determine those ([`ErrorKind::TooFewShards`]).
    pub fn lanes_to_make(&self, from: &[usize], make: &[usize]) -> Result<Vec<usize>> {
        self.geometry.buffers_to_make(from.iter().copied(), make)
    }

    /// Returns the lanes from which the code makes a later stage if nothing is missing.
    pub fn lanes_of_promotion(&self, stage: u8) -> Vec<usize> {
        self.geometry.buffers_of_promotion(stage)
    }

    /// Whether the object can be computed from these lanes.
    pub(crate) fn is_solvable(&self, lanes: impl IntoIterator<Item = usize>) -> bool {
        let mut good = vec![false; self.geometry.buffer_count()];
        lanes.into_iter().for_each(|lane| good[lane] = true);
        self.geometry.is_solvable(&good)
    }

    /// Whether the object can be computed from these parts.
    pub fn is_solvable_from(&self, parts: impl IntoIterator<Item = usize>) -> bool {
        self.is_solvable(parts.into_iter().flat_map(|part| self.lanes(part)))
    }
}

fn front_record(start: &[u8]) -> Result<Record, RecordFlaw> {
    let length = record_length(&start[..start.len().min(PREFIX)], RecordKind::Front)?;
    let record =
        start.get(..length).ok_or_else(|| RecordFlaw::Damaged("is cut short".to_owned()))?;
    Record::parse(record, RecordKind::Front)
}

fn not_recognised(flaw: RecordFlaw) -> Error {
    Error::not_recognised(format!("the front header {flaw}"))
}
