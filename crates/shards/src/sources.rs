//! The shard files of an object, open for reading, and the flaws that reading finds.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::object::{Object, UnopenedPath};
use crate::rateless;
use crate::recognise::ShardFile;
use paritas_store::error::{Error, Result};
use paritas_store::object::crew::Crew;
use paritas_store::object::geometry::{CHECKSUM, Extent, Geometry, Part};
use paritas_store::object::segment::{LaneFlaw, Segment};
use paritas_store::place::open_files::{Input, OpenFiles};
use paritas_store::place::system::allow_open_files;
use paritas_store::shown::{are, first_few, shown};

/// All files of an object.
#[derive(Debug)]
pub(crate) struct Sources<'a> {
    pub object: &'a Object,
    pub geometry: &'a Arc<Geometry>,
    pub extent: Extent,
    /// The parts in the order in which they are read: parts that hold data come first.
    order: Vec<usize>,
    /// The files of each part that the object has in its stage.
    files: Vec<Vec<SourceFile<'a>>>,
    /// The buffers of the data, if the code is an LT code with the data among its blocks, and each
    /// of these has a file.
    originals: Option<Vec<usize>>,
}

/// One file.
#[derive(Debug)]
struct SourceFile<'a> {
    part: usize,
    shard_file: &'a ShardFile,
    input: Input<'a>,
    damage: Mutex<Damage>,
}

/// The damage that reading a file's blocks has found.
#[derive(Debug, Default, Clone)]
struct Damage {
    lanes: u64,
    /// The lowest offset in the file at which a lane is not intact, and the reason.
    first: Option<(u64, String)>,
}

/// The state of one shard file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileReport {
    /// The index of the shard that the file is of.
    pub shard: usize,
    /// The stage of its part.
    pub stage: u8,
    /// The path.
    pub path: PathBuf,
    /// Number of lanes that were read and are not intact in their place.
    pub bad_lanes: u64,
    /// Offset in the file at which the first of them begins.
    pub first_bad: Option<u64>,
    /// All flaws in words; empty if the file is as it was written.
    pub flaws: Vec<String>,
    /// Whether the file has another name than the canonical name of its shard. This does no harm.
    pub misnamed: bool,
    /// Whether the file could not be opened, so that it may be as it was written. If the scan could
    /// not open it, `shard` and `stage` come from its name.
    pub unreadable: bool,
    /// Whether a block differs from what the data give, although its checksum is right
    /// ([`crate::verify_deep`]).
    pub inconsistent: bool,
}

impl FileReport {
    /// Returns the report on a file before any block has been read.
    pub(crate) fn unread(object: &Object, part: usize, file: &ShardFile) -> Self {
        let Part { shard, stage } = object.part(part);
        Self {
            shard,
            stage,
            path: file.path.clone(),
            bad_lanes: 0,
            first_bad: None,
            flaws: object.flaws(part, file),
            misnamed: !object.is_named_well(part, file),
            unreadable: false,
            inconsistent: false,
        }
    }

    /// Returns the report on a file that has the name of a part and could not be opened.
    pub(crate) fn unopened(object: &Object, part: usize, unread: &UnopenedPath) -> Self {
        let Part { shard, stage } = object.part(part);
        Self {
            shard,
            stage,
            path: unread.path.clone(),
            bad_lanes: 0,
            first_bad: None,
            flaws: vec![unread.reason.clone()],
            misnamed: false,
            unreadable: true,
            inconsistent: false,
        }
    }

    /// Whether the file is as it was written, whatever its name.
    pub fn is_intact(&self) -> bool {
        self.flaws.is_empty()
    }
}

/// The amount of reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Depth {
    /// Enough lanes to compute the data of the segment.
    Enough,
    /// Every lane of every file.
    Everything,
}

impl<'a> Sources<'a> {
    /// Opens the files. If the system limits open files, leaves room for `others` more.
    ///
    /// # Errors
    /// If no shard states the object's length ([`crate::ErrorKind::TooFewShards`]). A file that
    /// cannot be opened is only noted.
    pub fn open(object: &'a Object, others: usize) -> Result<Self> {
        let extent = object.extent().ok_or_else(|| no_length(object))?;
        let count: usize = object.parts().iter().map(Vec::len).sum();
        let most = allow_open_files(count + others).saturating_sub(others);
        let (pool, mut numbers) = (OpenFiles::reading(most.min(count)), 0..);
        let mut open = |part, file: &'a ShardFile| {
            let input = Input::open(&pool, numbers.next().unwrap_or(0), &file.path);
            SourceFile { part, shard_file: file, input, damage: Mutex::default() }
        };
        let mut open = |(part, files): (usize, &'a Vec<ShardFile>)| {
            files.iter().map(|file| open(part, file)).collect()
        };
        let files: Vec<Vec<_>> = object.parts().iter().enumerate().map(&mut open).collect();
        let geometry = &object.geometry;
        let mut order = geometry.parts_data_first();
        order.retain(|&part| part < files.len());
        let has_file = |&buffer: &usize| {
            let files = geometry.part_of_buffer(buffer).and_then(|part| files.get(part));
            files.is_some_and(|files| !files.is_empty())
        };
        let originals = geometry.originals().filter(|buffers| buffers.iter().all(has_file));
        Ok(Self { object, geometry, extent, order, files, originals })
    }

    /// Reads enough of a segment to have all of its data. Data is read from where it is stored if
    /// possible (also as blocks of an LT code).
    ///
    /// # Errors
    /// If everything has been read and is not enough ([`crate::ErrorKind::TooFewShards`]).
    pub fn load(&self, segment: &mut Segment, number: u64) -> Result<()> {
        match self.try_load(segment, number, Depth::Enough) {
            true => Ok(()),
            false => Err(self.lost(segment, number)),
        }
    }

    /// Reads all of a segment. Returns whether what is intact is enough to have all of its data.
    pub fn try_load_all(&self, segment: &mut Segment, number: u64) -> bool {
        self.try_load(segment, number, Depth::Everything)
    }

    fn try_load(&self, segment: &mut Segment, number: u64, depth: Depth) -> bool {
        segment.begin(number, &self.extent);
        if let (Some(originals), Depth::Enough) = (&self.originals, depth)
            && self.load_buffers(segment, number, originals)
        {
            return true;
        }
        for &part in &self.order {
            // Data parts come first. Checking before they are all read would gain nothing.
            if depth == Depth::Enough && !self.geometry.holds_data(part) && segment.is_solvable() {
                return true;
            }
            self.load_part(segment, number, part, depth);
        }
        segment.is_solvable()
    }

    /// Reads only the lanes in `buffers` (ascending) of a segment, each from the first file of its
    /// part. Returns whether all are intact.
    pub fn load_buffers(&self, segment: &mut Segment, number: u64, buffers: &[usize]) -> bool {
        segment.begin(number, &self.extent);
        (0..self.files.len()).all(|part| {
            let lanes = self.geometry.part_buffers(part);
            let needed: Vec<usize> =
                buffers.iter().copied().filter(|buffer| lanes.contains(buffer)).collect();
            let mut runs = needed.chunk_by(|a, b| a + 1 == *b);
            runs.all(|run| self.load_run(segment, number, part, run[0]..run[0] + run.len()))
        })
    }

    /// Reads adjacent lanes of a block at the place that follows from the front header. Returns
    /// whether all are intact.
    fn load_run(&self, segment: &mut Segment, number: u64, part: usize, run: Range<usize>) -> bool {
        let Some(source) = self.files[part].first() else { return false };
        let (file, Ok(front)) = (&source.input, &source.shard_file.front) else { return false };
        let Some(offset) = self.geometry.block_start(part, number) else { return false };
        let first = self.geometry.part_buffers(part).start;
        let place = front + offset + segment.lane_offset(first, run.start);
        segment.read(file, place, part, run).is_empty()
    }

    /// Allocates memory for any one segment of the object.
    pub fn segment(&self) -> Result<Segment> {
        Segment::new(self.geometry, self.object.id())
    }

    /// Returns the number of bytes of blocks that were read so far.
    pub fn read_bytes(&self) -> u64 {
        self.files.iter().flatten().map(|source| source.input.read_bytes()).sum()
    }

    /// Returns the number of these bytes that are packets, not checksums.
    pub fn read_payload(&self) -> u64 {
        let inputs = self.files.iter().flatten().map(|source| &source.input);
        inputs.map(|input| input.read_bytes() - input.read_slices() * CHECKSUM as u64).sum()
    }

    /// Returns the number of threads to use: at most `most` (see [`Geometry::threads`]), and at
    /// most one per segment.
    pub fn threads(&self, most: Option<NonZeroUsize>) -> usize {
        self.geometry.threads(most).min(usize::try_from(self.extent.count()).unwrap_or(1)).max(1)
    }

    /// Calls `work` for each segment, on at most `most` threads, each with memory of its own that
    /// it has for one segment. `value` is visited in turn. The first error ends the work.
    pub fn each_segment<T: Send>(
        &self,
        most: Option<NonZeroUsize>,
        value: T,
        work: impl Fn(&Crew<T>, &mut Segment, u64) -> Result<()> + Sync,
    ) -> Result<T> {
        let next = AtomicU64::new(0);
        Crew::run(self.threads(most), value, |crew| {
            let mut segment = self.segment()?;
            while !crew.is_stopped() {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= self.extent.count() {
                    break;
                }
                work(crew, &mut segment, number)?;
            }
            Ok(())
        })
    }

    /// Returns the shards that have a part which is not good in a segment.
    pub fn bad_shards(&self, segment: &Segment, stage: u8) -> BTreeSet<usize> {
        let parts = 0..self.geometry.parts_until(stage).min(self.files.len());
        let bad = parts.filter(|&part| !segment.has_part(part));
        bad.map(|part| self.geometry.part(part).shard).collect()
    }

    /// Returns the error for a segment that cannot be computed although everything has been read.
    /// This looks at all files again, so it is slow.
    pub fn lost(&self, segment: &Segment, number: u64) -> Error {
        let stage = self.object.stage();
        let bad = self.bad_shards(segment, stage);
        let reasons = first_few(bad.iter().map(|&shard| self.reason(shard)));
        let bytes = self.extent.range(number);
        if let Some(replaced) = self.object.replaced_note() {
            return Error::busy(replaced);
        }
        let unread = self.unread_note(segment);
        let verdict = if unread.is_some() { "cannot be read" } else { "is beyond repair" };
        let shards = self.geometry.shards_at(stage);
        let (needed, good) = (shards - self.geometry.tolerance(stage), shards - bad.len());
        let enough = match self.geometry.code().graph() {
            Some(graph) => rateless::shortage(graph, &segment.good_blocks()),
            None => format!("{needed} {} enough", are(needed)),
        };
        let message = format!(
            "{}: segment {number} of {} (bytes {} to {}) {verdict}: {good} of {shards} shards {} good \
             there, {enough}; {}",
            self.object.label(),
            self.extent.count(),
            bytes.start,
            bytes.end,
            are(good),
            reasons.join(", ")
        );
        let error = match unread {
            Some(unread) => Error::failed(format!("{message}; it may be in {unread}")),
            None => Error::too_few(message),
        };
        error.at_byte(bytes.start).counting(needed as u64, good as u64)
    }

    /// Returns a message about the files that could not be opened, if they could complete the
    /// segment.
    fn unread_note(&self, segment: &Segment) -> Option<String> {
        let known = self.unreadable_parts();
        let segment = segment.good().to_vec();
        self.object.could_be_had([&segment], &known).then(|| self.unread_files())
    }

    /// Returns the parts with a file that could not be opened again.
    pub fn unreadable_parts(&self) -> Vec<usize> {
        let is_unreadable =
            |&part: &usize| self.files[part].iter().any(|source| source.unreadable().is_some());
        (0..self.files.len()).filter(is_unreadable).collect()
    }

    /// Returns a message about all files that could not be opened.
    pub fn unread_files(&self) -> String {
        let refused = self.files.iter().flatten().filter_map(|source| {
            let reason = source.unreadable()?;
            Some(format!("{} ({reason})", shown(&source.shard_file.path)))
        });
        let refused: Vec<String> = refused.collect();
        let notes = self.object.unread_note().into_iter().chain(first_few(refused.into_iter()));
        notes.collect::<Vec<_>>().join(", ")
    }

    /// Returns the reason why a shard is not good, as far as reading has shown it.
    fn reason(&self, shard: usize) -> String {
        let first = |source: &SourceFile<'_>| {
            if let Some(refusal) = source.input.refusal() {
                return Some(format!("the file cannot be opened: {}", refusal.reason));
            }
            let damage = source.damage.lock().unwrap_or_else(PoisonError::into_inner);
            damage.first.as_ref().map(|(_, why)| why.clone())
        };
        let parts = (0..self.files.len()).filter(|&part| self.geometry.part(part).shard == shard);
        let files: Vec<&SourceFile<'_>> = parts.flat_map(|part| &self.files[part]).collect();
        match files.iter().find_map(|source| first(source)) {
            Some(why) => format!("shard {shard}: {why}"),
            None if self.object.unreadable().contains(&shard) => {
                format!("shard {shard} cannot be read")
            }
            None if files.is_empty() => format!("shard {shard} is missing"),
            None => format!("shard {shard} cannot be read"),
        }
    }

    /// Reads a part's block of a segment from its files.
    fn load_part(&self, segment: &mut Segment, number: u64, part: usize, depth: Depth) {
        for source in &self.files[part] {
            if depth == Depth::Enough && segment.has_part(part) {
                return;
            }
            self.load_file(segment, number, source);
        }
    }

    /// Reads the block at the place that follows from the front header. Each lane that is not
    /// intact there is read again at the place that follows from the footer.
    fn load_file(&self, segment: &mut Segment, number: u64, source: &SourceFile<'_>) {
        let part = source.part;
        let file = &source.input;
        let Some(offset) = self.geometry.block_start(part, number) else { return };
        if file.refusal().is_some() {
            return;
        }
        let lanes = self.geometry.part_buffers(part);
        let front = source.shard_file.front.as_ref().ok().map(|start| start + offset);
        let back = source.shard_file.footer.and_then(|footer| {
            let rest = self.geometry.blocks(&self.extent, part)?.checked_sub(offset)?;
            footer.start.checked_sub(rest)
        });
        let mut bad: Vec<usize> = lanes.clone().collect();
        if let Some(place) = front.or(back) {
            let flaws = segment.read(file, place, part, lanes.clone());
            bad = flaws.iter().map(|&(buffer, _)| buffer).collect();
            for (buffer, flaw) in flaws {
                source.note(place + segment.lane_offset(lanes.start, buffer), flaw);
            }
        }
        let Some(place) = back.filter(|_| front.is_some() && back != front) else { return };
        for buffer in bad {
            let place = place + segment.lane_offset(lanes.start, buffer);
            segment.read(file, place, part, buffer..buffer + 1);
        }
    }

    /// Returns the next segment, from `number` on, for which any file is long enough to hold a
    /// block. So a header that states an absurd length does not cost the time to go through all its
    /// segments.
    pub fn next_in_reach(&self, number: u64) -> u64 {
        let reach = |source: &SourceFile<'_>| {
            let block = self.geometry.block(source.part, self.geometry.stripes());
            let from_front = source.shard_file.length / block + 1;
            (from_front, self.extent.count().saturating_sub(from_front))
        };
        let files = || self.files.iter().flatten().map(reach);
        let front_end = files().map(|(end, _)| end).max().unwrap_or(0);
        let back_start = files().map(|(_, start)| start).min().unwrap_or(self.extent.count());
        if number < front_end { number } else { number.max(back_start) }
    }

    /// Returns the files in which damage was found.
    pub fn damaged(&self) -> Vec<FileReport> {
        let reports = self.reports().into_iter().map(|(_, report)| report);
        reports.filter(|report| !report.is_intact()).collect()
    }

    /// Returns the part of each file, and the report on it as far as it has been read. A file that
    /// could not be opened counts for the part that its name states.
    pub fn reports(&self) -> Vec<(usize, FileReport)> {
        let files = self.files.iter().flatten();
        let files = files.map(|source| (source.part, source.report(self.object)));
        files.chain(unopened(self.object)).collect()
    }
}

/// Returns the files that could not be opened, by the parts that their names state.
pub(crate) fn unopened(object: &Object) -> impl Iterator<Item = (usize, FileReport)> {
    (0..object.parts().len()).flat_map(move |part| {
        let files = object.unread_files(part);
        files.map(move |unread| (part, FileReport::unopened(object, part, unread)))
    })
}

/// Returns the error for an object of unknown length, whose blocks cannot be located.
fn no_length(object: &Object) -> Error {
    if let Some(replaced) = object.replaced_note() {
        return Error::busy(replaced);
    }
    let name = object.label();
    let message = format!("no shard of {name} has a readable footer, so its length is unknown");
    let seen: Vec<usize> =
        (0..object.parts.len()).filter(|&part| !object.parts[part].is_empty()).collect();
    let at_best = object.geometry.buffers_in(seen);
    match object.unread_note().filter(|_| object.could_be_had([&at_best], &[])) {
        Some(unread) => Error::failed(format!("{message}; it may be in {unread}")),
        None => Error::too_few(message),
    }
}

impl SourceFile<'_> {
    /// Returns the reason why the file could not be opened, if the file may be intact nevertheless.
    fn unreadable(&self) -> Option<&str> {
        let refusal = self.input.refusal().filter(|refusal| refusal.is_unreadable);
        refusal.map(|refusal| &*refusal.reason)
    }

    fn note(&self, offset: u64, flaw: LaneFlaw) {
        if self.input.refusal().is_some() {
            return;
        }
        let why = match flaw {
            LaneFlaw::Checksum => "fails its checksum".to_owned(),
            LaneFlaw::EndOfFile => "is cut off by the end of the file".to_owned(),
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
        let mut report = FileReport::unread(object, self.part, self.shard_file);
        report.flaws.extend(damage.first.as_ref().map(|(_, why)| match damage.lanes {
            0 | 1 => why.clone(),
            lanes => format!("{lanes} lanes are damaged; the first, {why}"),
        }));
        if let Some(refusal) = self.input.refusal() {
            report.flaws.push(format!("the file cannot be opened: {}", refusal.reason));
            report.unreadable = refusal.is_unreadable;
        }
        report.bad_lanes = damage.lanes;
        report.first_bad = damage.first.filter(|_| damage.lanes > 0).map(|(offset, _)| offset);
        report
    }
}
