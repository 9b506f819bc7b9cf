//! The shard files of an object, open for reading, and what is found to be wrong with them.

use std::fs::File;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use crate::error::{Error, Result};
use crate::shard::geometry::{Extent, Geometry};
use crate::shard::object::Object;
use crate::shard::place::allow_open_files;
use crate::shard::positional::Input;
use crate::shard::rateless;
use crate::shard::recognise::ShardFile;
use crate::shard::segment::{BlockId, LaneFlaw, Segment};

/// All files of an object.
#[derive(Debug)]
pub(crate) struct Sources<'a> {
    pub object: &'a Object,
    pub geometry: &'a Geometry,
    pub extent: Extent,
    /// The shards, those that hold data first: the order in which they are read.
    order: Vec<usize>,
    /// Per shard, its files.
    files: Vec<Vec<Source<'a>>>,
}

/// One file.
#[derive(Debug)]
struct Source<'a> {
    shard: usize,
    shard_file: &'a ShardFile,
    file: Option<Input>,
    damage: Mutex<Damage>,
}

/// What reading a file's blocks has shown.
#[derive(Debug, Default, Clone)]
struct Damage {
    lanes: u64,
    /// The first offset in the file where a lane is not intact, and why.
    first: Option<(u64, String)>,
}

/// The state of one shard file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileReport {
    /// The index of the shard that the file holds.
    pub shard: usize,
    /// The path.
    pub path: PathBuf,
    /// The number of lanes that were read and not intact in their place.
    pub bad_lanes: u64,
    /// Where in the file the first of them begins.
    pub first_bad: Option<u64>,
    /// All that is wrong, in words; empty for a file that is as it was written.
    pub flaws: Vec<String>,
    /// Whether the file has another name than the shard was given. That does no harm.
    pub misnamed: bool,
}

impl FileReport {
    /// Whether the file is as it was written, whatever its name.
    pub fn is_intact(&self) -> bool {
        self.flaws.is_empty()
    }
}

/// How many bad shards a message names.
const NAMED_SHARDS: usize = 8;

/// How thoroughly shards are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Until every lane is had from somewhere.
    Enough,
    /// Every lane of every file.
    Everything,
}

impl<'a> Sources<'a> {
    /// Opens the files.
    ///
    /// # Errors
    /// [`crate::ErrorKind::TooFewShards`] when no shard tells the object's length. A file that
    /// cannot be opened is only noted.
    pub fn open(object: &'a Object) -> Result<Self> {
        let Some(extent) = object.extent() else {
            return Err(Error::too_few(format!(
                "no shard of {} has a readable footer, so its length is unknown",
                object.name().display()
            )));
        };
        allow_open_files(object.shards().iter().map(Vec::len).sum());
        let open = |(shard, files): (usize, &'a Vec<ShardFile>)| {
            files.iter().map(|file| Source::open(shard, file)).collect()
        };
        let files = object.shards().iter().enumerate().map(open).collect();
        let geometry = &*object.geometry;
        Ok(Self { object, geometry, extent, order: geometry.shards_data_first(), files })
    }

    /// Reads what is needed to have all of a segment's data, taking data from where it is stored
    /// if it can be, or with [`Depth::Everything`] simply everything.
    ///
    /// # Errors
    /// [`crate::ErrorKind::TooFewShards`] when that is not enough; everything has been read then.
    pub fn load(&self, segment: &mut Segment<'_>, number: u64, depth: Depth) -> Result<()> {
        segment.begin(self.geometry.stripes_of(&self.extent, number));
        for &shard in &self.order {
            // Data comes first, so that nothing is lost by asking only when the order leaves it.
            if depth == Depth::Enough && !self.holds_data(shard) && segment.is_solvable() {
                return Ok(());
            }
            self.load_shard(segment, number, shard, depth);
        }
        if segment.is_solvable() { Ok(()) } else { Err(self.lost(segment, number)) }
    }

    /// Reads only the given lanes of a segment, ascending, each from the first file of its shard.
    /// Returns whether all are intact.
    pub fn load_buffers(&self, segment: &mut Segment<'_>, number: u64, buffers: &[usize]) -> bool {
        segment.begin(self.geometry.stripes_of(&self.extent, number));
        (0..self.geometry.shard_count()).all(|shard| {
            let lanes = self.geometry.shard_buffers(shard);
            let needed: Vec<usize> =
                buffers.iter().copied().filter(|buffer| lanes.contains(buffer)).collect();
            let mut runs = needed.chunk_by(|a, b| a + 1 == *b);
            runs.all(|run| self.load_run(segment, number, shard, run[0]..run[0] + run.len()))
        })
    }

    /// Reads neighbouring lanes of a block where the front header puts it.
    fn load_run(
        &self,
        segment: &mut Segment<'_>,
        number: u64,
        shard: usize,
        run: Range<usize>,
    ) -> bool {
        let Some(source) = self.files[shard].first() else { return false };
        let (Some(file), Ok(front)) = (&source.file, &source.shard_file.front) else {
            return false;
        };
        let Some(offset) = self.geometry.block_start(shard, number) else { return false };
        let first = self.geometry.shard_buffers(shard).start;
        let place = front + offset + segment.lane_offset(first, run.start);
        let id = BlockId { object: self.object.id(), shard, segment: number };
        segment.read(file, place, run, id).is_empty()
    }

    /// The bytes of blocks that were read so far.
    pub fn read_bytes(&self) -> u64 {
        self.files.iter().flatten().flat_map(|source| &source.file).map(Input::read_bytes).sum()
    }

    /// How many threads to use where so many are wanted: no more than there are segments.
    pub fn threads(&self, wanted: usize) -> usize {
        self.geometry.threads(wanted).min(usize::try_from(self.extent.count()).unwrap_or(1)).max(1)
    }

    fn holds_data(&self, shard: usize) -> bool {
        self.geometry.code().holds_data(paritas::NodeId::new(shard))
    }

    fn lost(&self, segment: &Segment<'_>, number: u64) -> Error {
        let (good, bad): (Vec<usize>, Vec<usize>) =
            (0..self.files.len()).partition(|&shard| segment.has_shard(shard));
        let mut reasons: Vec<String> =
            bad.iter().take(NAMED_SHARDS).map(|&shard| self.reason(shard)).collect();
        if bad.len() > NAMED_SHARDS {
            reasons.push(format!("and {} more", bad.len() - NAMED_SHARDS));
        }
        let (bytes, code) = (self.extent.range(number), self.geometry.code());
        let (nodes, tolerance) = (code.node_count(), code.tolerance());
        let enough = match code.graph() {
            Some(graph) => rateless::shortage(graph, &segment.good_blocks()),
            None => format!("{} are enough", nodes - tolerance),
        };
        Error::too_few(format!(
            "{}: segment {number} of {} (bytes {} to {}) is beyond repair: {} of {nodes} shards are \
             good there, {enough}; {}",
            self.object.name().display(),
            self.extent.count(),
            bytes.start,
            bytes.end,
            good.len(),
            reasons.join(", ")
        ))
    }

    /// Why a shard is no good, as far as has been seen.
    fn reason(&self, shard: usize) -> String {
        let first = |source: &Source<'_>| {
            let damage = source.damage.lock().unwrap_or_else(PoisonError::into_inner);
            damage.first.as_ref().map(|(_, why)| why.clone())
        };
        match self.files[shard].iter().find_map(first) {
            Some(why) => format!("shard {shard}: {why}"),
            None if self.files[shard].is_empty() => format!("shard {shard} is missing"),
            None => format!("shard {shard} cannot be read"),
        }
    }

    /// Reads a shard's block of a segment from its files.
    fn load_shard(&self, segment: &mut Segment<'_>, number: u64, shard: usize, depth: Depth) {
        for source in &self.files[shard] {
            if depth == Depth::Enough && segment.has_shard(shard) {
                return;
            }
            self.load_file(segment, number, source);
        }
    }

    /// Reads the block where the front header puts it; then each lane that is not intact there
    /// where the footer puts it.
    fn load_file(&self, segment: &mut Segment<'_>, number: u64, source: &Source<'_>) {
        let shard = source.shard;
        let (Some(file), Some(offset)) = (&source.file, self.geometry.block_start(shard, number))
        else {
            return;
        };
        let lanes = self.geometry.shard_buffers(shard);
        let id = BlockId { object: self.object.id(), shard, segment: number };
        let front = source.shard_file.front.as_ref().ok().map(|start| start + offset);
        let back = source.shard_file.footer.and_then(|footer| {
            let rest = self.geometry.blocks(&self.extent, shard)?.checked_sub(offset)?;
            footer.start.checked_sub(rest)
        });
        let mut bad: Vec<usize> = lanes.clone().collect();
        if let Some(place) = front.or(back) {
            let flaws = segment.read(file, place, lanes.clone(), id);
            bad = flaws.iter().map(|&(buffer, _)| buffer).collect();
            for (buffer, flaw) in flaws {
                source.note(place + segment.lane_offset(lanes.start, buffer), flaw);
            }
        }
        let Some(place) = back.filter(|_| front.is_some() && back != front) else { return };
        for buffer in bad {
            let place = place + segment.lane_offset(lanes.start, buffer);
            segment.read(file, place, buffer..buffer + 1, id);
        }
    }

    /// The next segment, at or after this one, of which any file can hold a block: a header that
    /// states a monstrous length must not cost as much time.
    pub fn next_in_reach(&self, number: u64) -> u64 {
        let reach = |source: &Source<'_>| {
            let block = self.geometry.block(source.shard, self.geometry.stripes());
            let from_front = source.shard_file.length / block + 1;
            (from_front, self.extent.count().saturating_sub(from_front))
        };
        let files = || self.files.iter().flatten().map(reach);
        let front_end = files().map(|(end, _)| end).max().unwrap_or(0);
        let back_start = files().map(|(_, start)| start).min().unwrap_or(self.extent.count());
        if number < front_end { number } else { number.max(back_start) }
    }

    /// What is wrong with each file, as far as it has been read.
    pub fn reports(&self) -> Vec<FileReport> {
        self.files.iter().flatten().map(|source| source.report(self.object)).collect()
    }
}

impl<'a> Source<'a> {
    fn open(shard: usize, shard_file: &'a ShardFile) -> Self {
        let mut damage = Damage::default();
        let opened = File::open(&shard_file.path);
        if let Err(error) = &opened {
            damage.first = Some((0, format!("the file cannot be opened: {error}")));
        }
        Self { shard, shard_file, file: opened.ok().map(Input::new), damage: Mutex::new(damage) }
    }

    fn note(&self, offset: u64, flaw: LaneFlaw) {
        let why = match flaw {
            LaneFlaw::Checksum => "fails its checksum".to_owned(),
            LaneFlaw::EndOfFile => "is cut by the end of the file".to_owned(),
            LaneFlaw::Unreadable(error) => format!("cannot be read: {error}"),
        };
        let mut damage = self.damage.lock().unwrap_or_else(PoisonError::into_inner);
        damage.lanes += 1;
        if damage.first.as_ref().is_none_or(|(first, _)| offset < *first) {
            damage.first = Some((offset, format!("the lane at offset {offset} {why}")));
        }
    }

    fn report(&self, object: &Object) -> FileReport {
        let damage = self.damage.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut flaws = object.flaws(self.shard, self.shard_file);
        flaws.extend(damage.first.as_ref().map(|(_, why)| match damage.lanes {
            0 | 1 => why.clone(),
            lanes => format!("{lanes} lanes are damaged; the first, {why}"),
        }));
        FileReport {
            shard: self.shard,
            path: self.shard_file.path.clone(),
            bad_lanes: damage.lanes,
            first_bad: damage.first.filter(|_| damage.lanes > 0).map(|(offset, _)| offset),
            flaws,
            misnamed: !object.is_named_well(self.shard, self.shard_file),
        }
    }
}
