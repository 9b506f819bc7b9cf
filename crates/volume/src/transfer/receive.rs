//! Receiving: from the shards on their nodes to the object's bytes.
//!
//! To get a transmission unit, the receiver asks the number of nodes that decoding needs. Nodes
//! that hold the object's bytes themselves come first. If a node fails, or takes longer than usual,
//! another node is asked as well. As soon as the received blocks suffice, the rest is cancelled.
//! Checksums are checked before a byte is used; a damaged block counts as missing.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::stream::{self, BoxStream, FuturesUnordered, StreamExt};
use paritas_store::error::{Error, ErrorKind, Result};
use paritas_store::object::layout::ObjectLayout;
use paritas_store::object::segment::Segment;
use paritas_store::shown::are;
use tokio::time::Instant;

use crate::outside::block;
use crate::transfer::race::Race;
use crate::transfer::{Pace, Place, Settings};

/// One object, ready to be read.
#[derive(Debug, Clone)]
pub(crate) struct Receiver {
    pub layout: ObjectLayout,
    pub length: u64,
    /// Where each part should be: the place that is asked first, and those that are asked if it is
    /// not there.
    pub places: Vec<Vec<Place>>,
    pub settings: Settings,
    thread: ReadThread,
    notes: Arc<ReadNotes>,
}

/// What the thread does that waits for nodes.
#[derive(Debug, Clone, Copy)]
enum ReadThread {
    /// It runs other tasks as well, so what blocks is handed over to other threads.
    Shared,
    /// It works for this receiver alone: folders are read and bytes decoded on it.
    Own,
}

/// What reading found.
#[derive(Debug, Default)]
struct ReadNotes {
    /// What is wrong with parts.
    by_part: Mutex<BTreeMap<usize, String>>,
    /// The parts that are not asked for again, because they are not where they should be.
    gone: Mutex<BTreeSet<usize>>,
    /// The number of places, from the first, where each part was not found.
    missed: Mutex<BTreeMap<usize, usize>>,
    /// Number of requests, and how many of them were sent because another was late.
    requests: AtomicU64,
    hedges: AtomicU64,
    read_bytes: AtomicU64,
}

/// Number of additional requests, because of late nodes, that are allowed in any case.
const FREE_HEDGES: f64 = 4.0;

/// A range of the object's bytes, in pieces.
pub(crate) type Pieces = Vec<Bytes>;

/// Takes pieces and the position of the first in the object, from any thread and in any order, as
/// soon as they are known.
pub(crate) type KeepPieces = Arc<dyn Fn(u64, &Pieces) -> Result<()> + Send + Sync>;

/// What is wanted of an object.
#[derive(Clone)]
pub(crate) struct Wanted {
    pub range: Range<u64>,
    /// Takes the bytes while they are in the cache. The receiver of the stream gets them as well.
    pub keep: Option<KeepPieces>,
}

impl From<Range<u64>> for Wanted {
    fn from(range: Range<u64>) -> Self {
        Self { range, keep: None }
    }
}

impl Wanted {
    /// Hands pieces to `keep`, if it is set. They begin at `start`, or at the beginning of the
    /// wanted range if that is later.
    fn keep(&self, start: u64, pieces: &Pieces) -> Result<()> {
        self.keep.as_ref().map_or(Ok(()), |keep| keep(start.max(self.range.start), pieces))
    }
}

/// The segments of transmission units, by the number of the unit. They are computed, not collected:
/// a forged manifest may state any length.
#[derive(Debug, Clone)]
pub(super) struct Units {
    segments: Range<u64>,
    /// Number of segments of each unit, but perhaps the last.
    step: u64,
}

impl Units {
    pub fn count(&self) -> u64 {
        (self.segments.end - self.segments.start).div_ceil(self.step)
    }

    pub fn get(&self, number: u64) -> Option<Range<u64>> {
        let start = self.segments.start.checked_add(number.checked_mul(self.step)?)?;
        let end = start.saturating_add(self.step).min(self.segments.end);
        (start < end).then_some(start..end)
    }
}

impl Receiver {
    pub fn new(
        layout: ObjectLayout,
        length: u64,
        places: Vec<Vec<Place>>,
        settings: Settings,
    ) -> Arc<Self> {
        let (thread, notes) = (ReadThread::Shared, Arc::default());
        Arc::new(Self { layout, length, places, settings, thread, notes })
    }

    /// Returns a receiver of the same object for threads that work for it alone. What it finds
    /// wrong is noted in this one.
    pub(super) fn on_own_thread(&self) -> Self {
        Self { thread: ReadThread::Own, ..self.clone() }
    }

    /// Does blocking work where this receiver's thread lets it.
    async fn run<R: Send + 'static>(&self, work: impl FnOnce() -> R + Send + 'static) -> Result<R> {
        match self.thread {
            ReadThread::Own => Ok(work()),
            ReadThread::Shared => run_blocking(work).await,
        }
    }

    /// Returns the object's wanted bytes, unit by unit, in order. Nothing follows an error.
    pub(super) fn in_units(self: Arc<Self>, wanted: Wanted) -> BoxStream<'static, Result<Pieces>> {
        let units = self.units(&wanted.range, self.settings.unit);
        let ahead = self.ahead();
        stream::iter((0..units.count()).filter_map(move |number| units.get(number)))
            .map(move |unit| Arc::clone(&self).unit(unit, wanted.clone()))
            .buffered(ahead)
            .boxed()
    }

    /// Returns the parts in which reading found something wrong, with what it was.
    pub fn flaws(&self) -> Vec<(usize, String)> {
        let flaws = self.notes.by_part.lock().unwrap_or_else(PoisonError::into_inner);
        flaws.iter().map(|(part, flaw)| (*part, flaw.clone())).collect()
    }

    /// Returns the transmission units that a range of bytes touches, if a unit has about `unit`
    /// bytes of each shard.
    pub(super) fn units(&self, range: &Range<u64>, unit: usize) -> Units {
        Units { segments: self.segments(range), step: self.segments_per_unit(unit) }
    }

    /// Returns the segments that a range of bytes touches.
    pub(super) fn segments(&self, range: &Range<u64>) -> Range<u64> {
        let bytes = self.layout.segment_bytes();
        match range.is_empty() {
            true => 0..0,
            false => range.start / bytes..range.end.div_ceil(bytes),
        }
    }

    fn segments_per_unit(&self, unit: usize) -> u64 {
        let block = (self.layout.segment_memory() / self.layout.part_count()).max(1);
        (unit / block).max(1) as u64
    }

    /// Returns the number of units that are fetched at once. Many units hide the time that servers
    /// take to answer. From folders, few at once are faster, because their bytes are used while
    /// they are in the cache.
    fn ahead(&self) -> usize {
        let segments = self.segments_per_unit(self.settings.unit);
        let unit = self.layout.segment_memory() * segments as usize;
        let most = if self.is_local() { 2 } else { 16 };
        (self.settings.memory / 2 / unit.max(1)).clamp(1, most)
    }

    /// Fetches and decodes one unit, as far as it is wanted.
    pub(super) async fn unit(self: Arc<Self>, unit: Range<u64>, wanted: Wanted) -> Result<Pieces> {
        let start = self.layout.segment_range(self.length, unit.start).start;
        let pieces = match self.direct(&unit, &wanted.range).await {
            Some(pieces) => pieces,
            None => {
                let got = Arc::new(self.fetch(&unit).await?);
                let (this, blocks) = (Arc::clone(&self), Arc::clone(&got));
                let (segments, wants) = (unit.clone(), wanted.clone());
                let decode = move || this.decode_unit(segments, &blocks, &wants);
                match self.run(decode).await?? {
                    Some(pieces) => return Ok(pieces),
                    None => Arc::clone(&self).rescue_unit(unit, &got, &wanted.range).await?,
                }
            }
        };
        match self.thread {
            ReadThread::Own => wanted.keep(start, &pieces).map(|()| pieces),
            ReadThread::Shared => kept(wanted, start, pieces).await,
        }
    }

    /// Decodes one unit, and keeps each segment while its bytes are in the cache. Returns `None` if
    /// the intact blocks do not determine the unit. Its first segments may have been kept by then,
    /// and are kept again later.
    fn decode_unit(
        &self,
        unit: Range<u64>,
        blocks: &[BlockRun],
        wanted: &Wanted,
    ) -> Result<Option<Pieces>> {
        let mut pieces = Vec::new();
        for segment in unit {
            let Some(lanes) = self.decode(segment, blocks)? else { return Ok(None) };
            let here = self.layout.segment_range(self.length, segment);
            let (start, mut own) = (here.start, Vec::new());
            cut(&mut own, lanes, here, &wanted.range);
            wanted.keep(start, &own)?;
            pieces.append(&mut own);
        }
        Ok(Some(pieces))
    }

    /// Decodes one unit that has damaged blocks.
    async fn rescue_unit(
        self: Arc<Self>,
        unit: Range<u64>,
        blocks: &Arc<Vec<BlockRun>>,
        range: &Range<u64>,
    ) -> Result<Pieces> {
        let mut pieces = Vec::new();
        for segment in unit {
            let (this, had) = (Arc::clone(&self), Arc::clone(blocks));
            let lanes = match self.run(move || this.decode(segment, &had)).await?? {
                Some(lanes) => lanes,
                None => Arc::clone(&self).rescue(segment, blocks).await?,
            };
            cut(&mut pieces, lanes, self.layout.segment_range(self.length, segment), range);
        }
        Ok(pieces)
    }

    /// Reads just the lanes that hold `range`, if these are few, all nodes that have them answer in
    /// time, and they are intact.
    async fn direct(&self, unit: &Range<u64>, range: &Range<u64>) -> Option<Pieces> {
        let overlaps = |place: &Range<u64>| place.start < range.end && range.start < place.end;
        let places = unit.clone().flat_map(|segment| {
            let places = self.layout.data_places(self.length, segment).into_iter();
            places.map(move |(lane, place)| (segment, lane, place))
        });
        let places: Vec<_> = places.filter(|(_, _, place)| overlaps(place)).collect();
        let read = places.iter().map(|(segment, lane, place)| self.lane(*segment, *lane, place));
        if places.len() >= self.layout.data_lanes().len() {
            return None;
        }
        let lanes =
            futures::future::join_all(read).await.into_iter().collect::<Option<Pieces>>()?;
        let mut pieces = Vec::new();
        for ((_, _, place), lane) in places.into_iter().zip(lanes) {
            cut(&mut pieces, vec![lane], place, range);
        }
        Some(pieces)
    }

    /// Reads one lane, which holds the object's bytes in `place`, if its node answers in time.
    async fn lane(&self, segment: u64, lane: usize, place: &Range<u64>) -> Option<Bytes> {
        let part = self.layout.geometry().part_of_buffer(lane)?;
        let pace = self.pace_of(part).filter(|pace| !pace.is_unreliable())?;
        let patience = pace.patience(&self.settings.hedge);
        let read = self.read_lanes(part, segment, lane..lane + 1);
        let sealed = match tokio::time::timeout(patience, read).await {
            Ok(Ok(sealed)) => sealed,
            Ok(Err(error)) => {
                self.note_failure(part, &error);
                return None;
            }
            Err(_) => return None,
        };
        let Some(payload) = self.layout.open_lane(part, segment, lane, &sealed) else {
            self.note(part, &format!("lane {lane} of segment {segment} fails its checksum"));
            return None;
        };
        Some(sealed.slice(..payload.len().min((place.end - place.start) as usize)))
    }

    /// Reads blocks of adjacent segments from enough parts to decode them.
    async fn fetch(&self, segments: &Range<u64>) -> Result<Vec<BlockRun>> {
        let preferred = self.preference(&[]).into_iter();
        let mut left = preferred.filter_map(|part| Some((part, self.pace_of(part)?)));
        let mut got: Vec<BlockRun> = Vec::new();
        let mut running = FuturesUnordered::new();
        let mut race = Race::new(self.settings.hedge);
        loop {
            let have: Vec<usize> = got.iter().map(|blocks| blocks.part).collect();
            let hoped: Vec<usize> = have.iter().copied().chain(race.hoped_for()).collect();
            if !self.suffice(&hoped)
                && let Some((part, pace)) = left.next()
            {
                race.ask(part, pace);
                running.push(self.read(part, segments.clone()).map(move |read| (part, read)));
                continue;
            }
            let look = race.next_look();
            let until = look.unwrap_or_else(|| Instant::now() + Duration::from_secs(3600));
            tokio::select! {
                biased;
                answer = running.next() => match answer {
                    None => return Err(self.lost(segments, &hoped)),
                    Some((part, Ok(bytes))) => {
                        race.answered(part);
                        got.push(BlockRun { part, first: segments.start, bytes });
                        if self.suffice(&[&have[..], &[part]].concat()) {
                            return Ok(got);
                        }
                    }
                    Some((part, Err(error))) => {
                        race.failed(part, &error);
                        self.note_failure(part, &error);
                    }
                },
                () = tokio::time::sleep_until(until), if look.is_some() => {
                    race.give_up(|| self.may_hedge());
                }
            }
        }
    }

    /// Returns whether a request may be sent to a further node because one is late. If so, counts
    /// it.
    fn may_hedge(&self) -> bool {
        let requests = self.notes.requests.load(Ordering::Relaxed) as f64;
        let hedges = self.notes.hedges.load(Ordering::Relaxed) as f64;
        let may = hedges < FREE_HEDGES + requests * self.settings.hedge.most;
        if may {
            self.notes.hedges.fetch_add(1, Ordering::Relaxed);
        }
        may
    }

    /// Reads the block of a segment of a part at the place with this number.
    pub(super) async fn read_at(&self, part: usize, turn: usize, segment: u64) -> Result<Bytes> {
        let range = self.layout.blocks(part, self.length, segment..segment + 1);
        let place = self.places[part].get(turn).ok_or_else(|| gone(part))?;
        self.read_range(place, range.ok_or_else(too_long)?).await
    }

    async fn read(&self, part: usize, segments: Range<u64>) -> Result<Bytes> {
        let range = self.layout.blocks(part, self.length, segments).ok_or_else(too_long)?;
        self.read_part(part, range).await
    }

    /// Reads a range of a part from where it should be. If it is not there, the next place is
    /// asked.
    async fn read_part(&self, part: usize, range: Range<u64>) -> Result<Bytes> {
        loop {
            let turn = self.turn(part);
            let place = self.places[part].get(turn).ok_or_else(|| gone(part))?;
            match self.read_range(place, range.clone()).await {
                Err(error)
                    if error.kind() == ErrorKind::NotFound && self.try_next_place(part, turn) => {}
                read => return read,
            }
        }
    }

    /// Returns the place at which a part is asked for, even if it was missing there.
    pub(super) fn place_of(&self, part: usize) -> Option<&Place> {
        self.places[part].get(self.turn(part))
    }

    /// Returns the names of the nodes on which a part is sought, in order.
    pub fn nodes_of(&self, part: usize) -> impl Iterator<Item = &str> {
        self.places[part].iter().map(|place| place.node.name())
    }

    /// Returns the number of the place at which a part is asked for.
    pub fn turn(&self, part: usize) -> usize {
        let missed = self.notes.missed.lock().unwrap_or_else(PoisonError::into_inner);
        missed.get(&part).copied().unwrap_or(0)
    }

    /// Turns to the next place of a part that could not be read at place `turn`. Returns whether
    /// there is one.
    pub(super) fn try_next_place(&self, part: usize, turn: usize) -> bool {
        let is_any = turn + 1 < self.places[part].len();
        if is_any {
            let mut missed = self.notes.missed.lock().unwrap_or_else(PoisonError::into_inner);
            let missed = missed.entry(part).or_default();
            *missed = (*missed).max(turn + 1);
        }
        is_any
    }

    async fn read_range(&self, place: &Place, range: Range<u64>) -> Result<Bytes> {
        self.notes.requests.fetch_add(1, Ordering::Relaxed);
        self.notes.read_bytes.fetch_add(range.end - range.start, Ordering::Relaxed);
        match self.thread {
            ReadThread::Own => place.node.read_here(&place.path, range).await,
            ReadThread::Shared => place.read(range).await,
        }
    }

    /// Returns the number of bytes of blocks that nodes were asked for.
    pub fn read_bytes(&self) -> u64 {
        self.notes.read_bytes.load(Ordering::Relaxed)
    }

    /// Reads adjacent lanes of a part's block of a segment.
    pub(super) async fn read_lanes(
        &self,
        part: usize,
        segment: u64,
        lanes: Range<usize>,
    ) -> Result<Bytes> {
        let range = self.layout.lanes_place(part, self.length, segment, lanes);
        self.read_part(part, range.ok_or_else(too_long)?).await
    }

    /// Returns the parts that can be asked for and are not in `tried`, best first. Parts are
    /// ordered by stage, because later stages may not be there yet; then by the lateness of their
    /// nodes, those that answer in time first; then parts that hold data come first.
    pub(super) fn preference(&self, tried: &[usize]) -> Vec<usize> {
        let can = |part: &usize| self.is_there(*part) && !tried.contains(part);
        let mut parts: Vec<usize> = (0..self.places.len()).filter(can).collect();
        let rank = |part: usize| {
            let lateness = self.pace_of(part).map_or(0, |pace| pace.lateness());
            (self.layout.part(part).stage, lateness, !self.layout.holds_data(part))
        };
        parts.sort_by_key(|&part| rank(part));
        parts
    }

    /// Returns whether a part has a place, and was not missing everywhere.
    pub(super) fn is_there(&self, part: usize) -> bool {
        self.pace_of(part).is_some()
    }

    /// Returns the pace of the node that a part is asked for at, if the part is there.
    pub(super) fn pace_of(&self, part: usize) -> Option<&Arc<Pace>> {
        let gone = self.notes.gone.lock().unwrap_or_else(PoisonError::into_inner);
        self.place_of(part).filter(|_| !gone.contains(&part)).map(|place| &place.pace)
    }

    /// Stops asking for a part. Returns whether the part was in use until now.
    pub(super) fn leave_out(&self, part: usize) -> bool {
        self.notes.gone.lock().unwrap_or_else(PoisonError::into_inner).insert(part)
    }

    /// Returns whether the object can be decoded from these parts.
    fn suffice(&self, parts: &[usize]) -> bool {
        let first = self.layout.parts_in(1).len();
        let early = parts.iter().filter(|part| **part < first).count();
        if early + self.layout.tolerance(1) >= first {
            return true;
        }
        self.layout.is_solvable_from(parts.iter().copied())
    }

    /// Decodes one segment from what has come. Returns its data, lane by lane, perhaps with padding
    /// at the end, or `None` if the intact blocks do not determine it.
    fn decode(&self, segment: u64, blocks: &[BlockRun]) -> Result<Option<Pieces>> {
        let mut lanes: BTreeMap<usize, Bytes> = BTreeMap::new();
        for blocks in blocks {
            let block = self.block_of(blocks, segment);
            let intact = self.layout.intact_lanes(blocks.part, self.length, segment, &block);
            if intact.len() < self.layout.lanes(blocks.part).len() {
                self.note(
                    blocks.part,
                    &format!("its block of segment {segment} fails its checksum"),
                );
            }
            lanes.extend(intact.into_iter().map(|(lane, place)| (lane, block.slice(place))));
        }
        let wanted = self.layout.data_lanes();
        let direct: Option<Pieces> = wanted.iter().map(|lane| lanes.get(lane).cloned()).collect();
        if direct.is_some() {
            return Ok(direct);
        }
        let mut memory = self.layout.segment()?;
        memory.begin(segment, &self.layout.extent(self.length));
        for blocks in blocks {
            memory.accept(blocks.part, &self.block_of(blocks, segment));
        }
        if !memory.is_solvable() {
            return Ok(None);
        }
        memory.make_data()?;
        let bytes = self.layout.segment_range(self.length, segment);
        Ok(Some(data_of(&self.layout, memory, (bytes.end - bytes.start) as usize)))
    }

    fn block_of(&self, blocks: &BlockRun, segment: u64) -> Bytes {
        let place = |segments| self.layout.blocks(blocks.part, self.length, segments);
        let (Some(all), Some(one)) = (place(blocks.first..segment), place(segment..segment + 1))
        else {
            return Bytes::new();
        };
        let start = (one.start - all.start) as usize;
        let end = start + (one.end - one.start) as usize;
        blocks.bytes.slice(start.min(blocks.bytes.len())..end.min(blocks.bytes.len()))
    }

    /// Decodes a segment that has damaged blocks, by asking for blocks of further parts.
    async fn rescue(self: Arc<Self>, segment: u64, had: &[BlockRun]) -> Result<Pieces> {
        let mut blocks: Vec<BlockRun> = had.to_vec();
        for part in self.preference(&blocks.iter().map(|b| b.part).collect::<Vec<_>>()) {
            match self.read(part, segment..segment + 1).await {
                Ok(bytes) => blocks.push(BlockRun { part, first: segment, bytes }),
                Err(error) => {
                    self.note_failure(part, &error);
                    continue;
                }
            }
            let (this, all) = (Arc::clone(&self), blocks.clone());
            if let Some(lanes) = self.run(move || this.decode(segment, &all)).await?? {
                return Ok(lanes);
            }
        }
        let is_intact = |blocks: &&BlockRun| self.is_intact(blocks, segment);
        let parts: Vec<usize> = blocks.iter().filter(is_intact).map(|run| run.part).collect();
        Err(self.lost(&(segment..segment + 1), &parts))
    }

    /// Whether a part's block of a segment is as it was written.
    fn is_intact(&self, blocks: &BlockRun, segment: u64) -> bool {
        let block = self.block_of(blocks, segment);
        let intact = self.layout.intact_lanes(blocks.part, self.length, segment, &block);
        intact.len() == self.layout.lanes(blocks.part).len()
    }

    pub(super) fn note(&self, part: usize, flaw: &str) {
        let mut flaws = self.notes.by_part.lock().unwrap_or_else(PoisonError::into_inner);
        flaws.entry(part).or_insert_with(|| flaw.to_owned());
    }

    /// Notes why a part cannot be read, unless it is of a stage that the object has not reached. A
    /// part that is not where it should be is not asked for again.
    pub(super) fn note_failure(&self, part: usize, error: &Error) {
        if error.kind() == ErrorKind::NotFound {
            self.leave_out(part);
        }
        if self.layout.part(part).stage == 1 || error.kind() != ErrorKind::NotFound {
            self.note(part, error.message());
        }
    }

    pub(super) fn lost(&self, segments: &Range<u64>, parts: &[usize]) -> Error {
        let first = self.layout.segment_range(self.length, segments.start);
        let shards = self.layout.parts_in(1).len();
        let code = self.layout.code();
        let enough = match code.graph() {
            // Which blocks are enough depends on the graph.
            Some(_) => "which are not enough".to_owned(),
            None => {
                let needed = shards.saturating_sub(code.tolerance_at(1));
                format!("{needed} {} enough", are(needed))
            }
        };
        let flaws = self.flaws();
        let flaws: Vec<String> = flaws
            .iter()
            .take(8)
            .map(|(part, flaw)| format!("shard {}: {flaw}", self.layout.part(*part).shard))
            .collect();
        Error::new(
            ErrorKind::TooFewShards,
            format!(
                "from byte {} on, {} of {shards} shards can be read, {enough}{}",
                first.start,
                parts.len(),
                flaws.iter().map(|flaw| format!("; {flaw}")).collect::<String>()
            ),
        )
    }
}

/// Adjacent blocks of one part.
#[derive(Debug, Clone)]
struct BlockRun {
    part: usize,
    /// The first segment.
    first: u64,
    bytes: Bytes,
}

/// A lane of a segment, as shared memory.
struct SharedLane {
    segment: Arc<Segment>,
    lane: usize,
}

impl AsRef<[u8]> for SharedLane {
    fn as_ref(&self) -> &[u8] {
        self.segment.sealed_lane(self.lane)
    }
}

/// Returns a sealed lane of a segment. It keeps the segment.
pub(super) fn shared_lane(segment: Arc<Segment>, lane: usize) -> Bytes {
    Bytes::from_owner(SharedLane { segment, lane })
}

/// Returns the first `bytes` of a segment's data, lane by lane.
pub(super) fn data_of(layout: &ObjectLayout, segment: Segment, bytes: usize) -> Pieces {
    let segment = Arc::new(segment);
    let lanes = segment.data(bytes).into_iter().zip(layout.data_lanes());
    let lanes = lanes.map(|(data, &lane)| {
        let (segment, bytes) = (Arc::clone(&segment), data.len());
        shared_lane(segment, lane).slice(..bytes)
    });
    lanes.collect()
}

/// Appends the bytes of `lanes`, which are those in `here`, as far as they are in `range`.
pub(super) fn cut(pieces: &mut Pieces, lanes: Pieces, here: Range<u64>, range: &Range<u64>) {
    let mut start = here.start;
    for lane in lanes {
        let end = (start + lane.len() as u64).min(here.end);
        let (from, to) = (start.max(range.start), end.min(range.end));
        if from < to {
            pieces.push(lane.slice((from - start) as usize..(to - start) as usize));
        }
        start = end;
    }
}

/// Hands pieces to `keep` of `wanted`, and returns them. They begin at `start`, or at the beginning
/// of the wanted range if that is later.
pub(crate) async fn kept(wanted: Wanted, start: u64, pieces: Pieces) -> Result<Pieces> {
    if wanted.keep.is_none() {
        return Ok(pieces);
    }
    run_blocking(move || wanted.keep(start, &pieces).map(|()| pieces)).await?
}

pub(crate) async fn run_blocking<R: Send + 'static>(
    work: impl FnOnce() -> R + Send + 'static,
) -> Result<R> {
    block("decoding", work).await
}

fn gone(part: usize) -> Error {
    Error::new(ErrorKind::NotFound, format!("part {part} is on no node"))
}

fn too_long() -> Error {
    Error::parameters("the object is too long: a shard file would have 2^63 bytes or more")
}
