//! Verifying: finding what is damaged, where, and how much more may be lost.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use paritas_store::error::{Error, ErrorKind, Result};
use paritas_store::progress::Progress;
use paritas_store::shown::counted;
use paritas_store::state::State;

use crate::decode::check_digest;
use crate::folders::{DomainSpread, Placement};
use crate::leftovers::is_unnamed;
use crate::object::Object;
use crate::rateless;
use crate::recognise::ShardFile;
use crate::sources::{FileReport, Sources, unopened};
use paritas_store::object::crew::Crew;
use paritas_store::object::format::Digest;
use paritas_store::object::geometry::Part;
use paritas_store::object::segment::Segment;

/// The state of a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShardState {
    /// A file of the shard is as it was written.
    Intact,
    /// The shard has files, and all are damaged.
    Damaged,
    /// The shard has no file.
    Missing,
    /// A file of the shard could not be opened, and no other is intact. A file that the scan could
    /// not open is assigned to a shard by its name.
    Unreadable,
    /// In a file of the shard, the checksum of every block is right, but some blocks differ from
    /// the values computed from the data.
    Inconsistent,
}

impl ShardState {
    /// Returns the word for the state in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Intact => "intact",
            Self::Damaged => "damaged",
            Self::Missing => "missing",
            Self::Unreadable => "unreadable",
            Self::Inconsistent => "inconsistent",
        }
    }
}

/// Whether an object has the digest that its shards state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DigestCheck {
    /// The digest is right.
    Right,
    /// The digest is wrong, although all blocks can be computed.
    Wrong,
    /// Not all of the object's bytes can be computed.
    Unchecked,
}

/// The files of one shard, or of a part of one.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ShardReport {
    /// The index of the shard.
    pub index: usize,
    /// The stage of the part.
    pub stage: u8,
    /// The state.
    pub state: ShardState,
    /// The files.
    pub files: Vec<FileReport>,
}

impl ShardReport {
    /// Returns the files that are as they were written, each with the number of the part.
    pub(crate) fn intact_files(&self, part: usize) -> impl Iterator<Item = (usize, &Path)> {
        let intact = self.files.iter().filter(|file| file.is_intact());
        intact.map(move |file| (part, file.path.as_path()))
    }
}

impl VerifyReport {
    /// Whether a repair of an intact object would write damaged files anew, because more folders
    /// could be lost then.
    pub fn has_useful_copies(&self, object: &Object) -> bool {
        !self.useful_copies(object).is_empty()
    }

    /// Returns damaged files under their own names, one for each part that is intact in another
    /// file, if more folders could be lost once these files are whole.
    pub(crate) fn useful_copies(&self, object: &Object) -> Vec<(usize, &Path)> {
        let parts = || self.shards.iter().enumerate();
        let mut copies = Vec::new();
        for (part, shard) in parts() {
            let is_named = shard.intact_files(part).any(|(_, path)| !is_unnamed(object, path));
            let is_damaged = |file: &&FileReport| {
                !file.is_intact() && !file.unreadable && !file.inconsistent && !file.misnamed
            };
            let copy = shard.files.iter().find(is_damaged).filter(|_| is_named);
            copies.extend(copy.map(|file| (part, file.path.as_path())));
        }
        let intact = parts().flat_map(|(part, shard)| shard.intact_files(part));
        let with = object.placement_of(object.stage(), intact.chain(copies.iter().copied()));
        if with.tolerance > self.placement.tolerance { copies } else { Vec::new() }
    }
}

/// A lane that differs from the value computed from the data, although its checksum is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct WrongLane {
    /// The index of the shard.
    pub shard: usize,
    /// The stage of the part.
    pub stage: u8,
    /// Number of the lane in its block.
    pub lane: u32,
    /// The first segment in which the lane differs.
    pub first_segment: u64,
    /// Number of segments in which the lane differs.
    pub segments: u64,
}

/// The result of verifying.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct VerifyReport {
    /// The state of the object.
    pub status: State,
    /// Every part that the object has in its stage, in the order of [`Object::parts`]. Without
    /// stages these are all shards, by index.
    pub shards: Vec<ShardReport>,
    /// Whether the digest is right.
    pub digest: DigestCheck,
    /// Number of further shards that may be lost, whichever they are. 0 also means that too many
    /// are lost already. For an LT code the number is only likely, because not all losses are
    /// tried.
    pub tolerable: usize,
    /// The folders that may be lost, with the shards that are intact now. Damaged shards do not
    /// count, because they are to be repaired anyway.
    pub placement: Placement,
    /// The fewest blocks of an LT code that are good in any segment.
    pub good_blocks: Option<usize>,
    /// Number of further blocks of an LT code that are likely needed in the first segment that is
    /// lost. `None` if even all blocks would not suffice.
    pub likely_needed: Option<usize>,
    /// Number of segments.
    pub segments: u64,
    /// Number of segments in which a lane is missing or wrong.
    pub damaged_segments: u64,
    /// Number of segments whose parity was recomputed. `None` without [`verify_deep`].
    pub recomputed_segments: Option<u64>,
    /// The lanes that differ from the values computed from the data, by shard.
    pub wrong_lanes: Vec<WrongLane>,
    /// The byte ranges of the object that are beyond repair.
    pub lost: Vec<Range<u64>>,
    /// The reason why the object is lost or inconsistent, or why its status is unknown.
    pub reason: Option<String>,
    /// Number of bytes of blocks that were read.
    pub read_bytes: u64,
}

/// Verifies an object by reading every block of every shard file, with at most `threads` threads
/// (`None`: the number that the machine runs at once). `progress` gets the number of the object's
/// bytes as they are done.
///
/// # Errors
/// If something outside the shards fails, such as the codec. Damage does not cause an error; the
/// report describes it.
pub fn verify(
    object: &Object,
    threads: Option<NonZeroUsize>,
    progress: Progress<'_>,
) -> Result<VerifyReport> {
    check(object, threads, false, progress)
}

/// Verifies as [`verify`] does. In addition it computes parity from the data and compares it with
/// the stored parity, in every segment whose data are intact (for an LT code: can be computed). So
/// it finds the mistakes of a wrong encoder, which checksums do not show.
///
/// # Errors
/// As [`verify`].
pub fn verify_deep(
    object: &Object,
    threads: Option<NonZeroUsize>,
    progress: Progress<'_>,
) -> Result<VerifyReport> {
    check(object, threads, true, progress)
}

fn check(
    object: &Object,
    threads: Option<NonZeroUsize>,
    is_deep: bool,
    progress: Progress<'_>,
) -> Result<VerifyReport> {
    let sources = match Sources::open(object, 0) {
        Ok(sources) => sources,
        Err(error) => return Ok(unknown_length(object, &error)),
    };
    let recomputed = is_deep.then_some(0);
    let hasher = Some(blake3::Hasher::new());
    let findings = Findings { hasher, recomputed, ..Findings::default() };
    let queue = Mutex::new(SegmentQueue::default());
    let findings = Crew::run(sources.threads(threads), findings, |crew| {
        work(crew, &sources, &queue, is_deep, progress)
    })?;
    Ok(findings.report(&sources))
}

/// The findings so far, in the order of the object.
#[derive(Default)]
struct Findings {
    /// The hash of all bytes so far. `None` once some bytes are lost.
    hasher: Option<blake3::Hasher>,
    lost: Vec<Range<u64>>,
    reason: Option<String>,
    damaged_segments: u64,
    /// For each stage, the largest number of shards that have a bad part in one segment.
    worst: Vec<usize>,
    /// The good blocks of an LT code in the segment with the fewest.
    fewest: Option<Vec<usize>>,
    /// The good blocks of an LT code in the first segment that is lost.
    short: Option<Vec<usize>>,
    /// The patterns of good buffers in segments that are lost: each pattern once, and at most
    /// [`MOST_PATTERNS`].
    patterns: BTreeSet<Vec<bool>>,
    /// Number of segments whose parity was recomputed, if it is to be.
    recomputed: Option<u64>,
    /// The buffers that differ from the values computed from the data, with the first such segment
    /// and the number of such segments.
    wrong: BTreeMap<usize, (u64, u64)>,
}

/// Number of patterns of good buffers that are kept. If there are more, only these are used to
/// decide whether unopened files could complete the segments.
const MOST_PATTERNS: usize = 64;

/// The segments that are still to be read.
#[derive(Default)]
struct SegmentQueue {
    turn: u64,
    next: u64,
}

/// A segment to be read, and the segments before it that no file can hold.
struct Task {
    turn: u64,
    skipped: Range<u64>,
    number: u64,
}

impl SegmentQueue {
    fn take(&mut self, sources: &Sources<'_>) -> Option<Task> {
        let number = sources.next_in_reach(self.next);
        let task = Task { turn: self.turn, skipped: self.next..number, number };
        self.turn += 1;
        self.next = number.saturating_add(1);
        (number < sources.extent.count()).then_some(task)
    }
}

fn work(
    crew: &Crew<Findings>,
    sources: &Sources<'_>,
    queue: &Mutex<SegmentQueue>,
    is_deep: bool,
    progress: Progress<'_>,
) -> Result<()> {
    let mut segment = sources.segment()?;
    let mut again = is_deep.then(|| sources.segment()).transpose()?;
    while !crew.is_stopped() {
        let task = queue.lock().unwrap_or_else(PoisonError::into_inner).take(sources);
        let Some(task) = task else { break };
        let look = SegmentLook::take(sources, task.number, &mut segment, again.as_mut())?;
        let bytes = sources.extent.bytes(task.number);
        let skipped = task.first_byte(sources)..sources.extent.range(task.number).start;
        let skipped_bytes = skipped.end - skipped.start;
        crew.in_turn(task.turn, |findings| {
            findings.skip(&task, skipped, sources.geometry.buffer_count());
            findings.note_wrong(look.wrong, task.number);
            findings.note(look.bad);
            findings.note_blocks(look.blocks, look.is_loaded);
            if look.is_loaded {
                findings.hash(&segment.data(bytes as usize));
            } else {
                findings.note_pattern(look.good);
                let reason = || sources.lost(&segment, task.number).to_string();
                findings.lose(sources.extent.range(task.number), reason);
            }
            Ok(())
        })?;
        progress(skipped_bytes + bytes);
    }
    Ok(())
}

/// The result of reading one segment.
struct SegmentLook {
    /// Whether its data are good now.
    is_loaded: bool,
    /// The lanes whose parity is wrong, if parity was recomputed.
    wrong: Option<Vec<usize>>,
    /// For each stage, the number of shards that had a bad part.
    bad: Vec<usize>,
    /// The good blocks of an LT code.
    blocks: Option<Vec<usize>>,
    /// For each lane, whether it was read intact.
    good: Vec<bool>,
}

impl SegmentLook {
    /// Reads a segment and computes its data. Compares it with its parity if there is memory
    /// `again` for that.
    fn take(
        sources: &Sources<'_>,
        number: u64,
        segment: &mut Segment,
        again: Option<&mut Segment>,
    ) -> Result<Self> {
        let is_loaded = sources.try_load_all(segment, number);
        let again = again.filter(|_| is_loaded);
        let wrong = again.map_or(Ok(None), |again| recompute(segment, again))?;
        let stages = 1..=sources.object.stage();
        let bad = stages.map(|stage| sources.bad_shards(segment, stage).len()).collect();
        let blocks = sources.geometry.code().graph().map(|_| segment.good_blocks());
        let good = segment.good().to_vec();
        if is_loaded {
            segment.make_data()?;
        }
        Ok(Self { is_loaded, wrong, bad, blocks, good })
    }
}

/// Compares the parity of a segment with the parity computed from its data, if the data are intact
/// or the code is an LT code, which does not store its data. Marks the buffers that differ as not
/// good, and returns them.
fn recompute(segment: &mut Segment, again: &mut Segment) -> Result<Option<Vec<usize>>> {
    if segment.stores_data() && !segment.has_data() {
        return Ok(None);
    }
    segment.make_data()?;
    let wrong = segment.disagreements(again)?;
    segment.distrust(&wrong);
    Ok(Some(wrong))
}

impl Task {
    /// Returns the first byte of the object that this task covers, skipped or not.
    fn first_byte(&self, sources: &Sources<'_>) -> u64 {
        sources.extent.range(self.skipped.start).start
    }
}

impl Findings {
    /// Notes how many shards are bad in a segment, stage by stage.
    fn note(&mut self, bad: Vec<usize>) {
        self.damaged_segments += u64::from(bad.iter().any(|&bad| bad > 0));
        self.worst.resize(bad.len(), 0);
        self.worst.iter_mut().zip(bad).for_each(|(worst, bad)| *worst = bad.max(*worst));
    }

    /// Notes which buffers of a segment differ from the values computed from its data, if they were
    /// compared.
    fn note_wrong(&mut self, wrong: Option<Vec<usize>>, segment: u64) {
        let (Some(wrong), Some(recomputed)) = (wrong, &mut self.recomputed) else { return };
        *recomputed += 1;
        wrong
            .into_iter()
            .for_each(|buffer| self.wrong.entry(buffer).or_insert((segment, 0)).1 += 1);
    }

    /// Notes which blocks of an LT code are good in a segment, and whether they are enough.
    fn note_blocks(&mut self, blocks: Option<Vec<usize>>, enough: bool) {
        let Some(blocks) = blocks else { return };
        if !enough {
            self.short.get_or_insert_with(|| blocks.clone());
        }
        if self.fewest.as_ref().is_none_or(|fewest| blocks.len() < fewest.len()) {
            self.fewest = Some(blocks);
        }
    }

    /// Returns how many shards may be lost, if the object is not lost.
    fn tolerable(&self, object: &Object, shards: &[ShardReport]) -> usize {
        let code = object.code();
        let tolerance = match (code.graph(), &self.fewest) {
            (Some(graph), Some(good)) => rateless::tolerance(graph, code.node_count(), good),
            // An empty object has no blocks to lose.
            (Some(_), None) => code.node_count(),
            (None, _) => {
                self.tolerable_by_stages(object).max(self.tolerable_by_trial(object, shards))
            }
        };
        tolerance.min(footers(object).saturating_sub(1))
    }

    /// Returns the largest number of shards that may be lost, over the parts up to each stage.
    fn tolerable_by_stages(&self, object: &Object) -> usize {
        let worst = self.worst.iter().copied().chain(std::iter::repeat(0));
        let left = |(stage, bad)| object.geometry.tolerance(stage).saturating_sub(bad);
        (1..=object.stage()).zip(worst).map(left).max().unwrap_or(0)
    }

    /// Returns the largest number of shards that may be lost by trying such losses, or 0 if that
    /// adds nothing: after losses, a code that is not MDS may bear more than what its tolerance
    /// leaves.
    fn tolerable_by_trial(&self, object: &Object, shards: &[ShardReport]) -> usize {
        let code = object.code();
        let parities = code.nodes().filter(|&node| !code.holds_data(node)).count();
        if parities <= code.tolerance() || self.worst.iter().all(|&bad| bad == 0) {
            return 0;
        }
        let intact = shards.iter().enumerate().filter(|(_, it)| it.state == ShardState::Intact);
        let places: Vec<(usize, usize)> = intact.map(|(part, it)| (part, it.index)).collect();
        let is_empty = object.length() == Some(0);
        let spread = DomainSpread::new(&object.geometry, object.stage(), is_empty, &places);
        match spread.tolerance() {
            (tolerance, true) => tolerance,
            (_, false) => 0,
        }
    }

    /// Notes the segments that no file is long enough to hold.
    fn skip(&mut self, task: &Task, bytes: Range<u64>, buffers: usize) {
        let Range { start, end } = task.skipped;
        if start < end {
            self.damaged_segments += end - start;
            self.note_pattern(vec![false; buffers]);
            self.lose(bytes, || {
                let last = end - 1;
                format!("segments {start} to {last} are beyond the ends of all files")
            });
        }
    }

    /// Notes which buffers are good in a segment that is lost.
    fn note_pattern(&mut self, good: Vec<bool>) {
        if self.patterns.len() < MOST_PATTERNS {
            self.patterns.insert(good);
        }
    }

    fn hash(&mut self, data: &[&[u8]]) {
        if let Some(hasher) = &mut self.hasher {
            data.iter().for_each(|lane| _ = hasher.update(lane));
        }
    }

    /// Notes bytes that are lost. `reason` is called for the first of them only.
    fn lose(&mut self, range: Range<u64>, reason: impl FnOnce() -> String) {
        self.hasher = None;
        self.reason.get_or_insert_with(reason);
        match self.lost.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => self.lost.push(range),
        }
    }

    fn wrong_lanes(&self, object: &Object) -> Vec<WrongLane> {
        let geometry = &*object.geometry;
        let lane = |(&buffer, &(first_segment, segments)): (&usize, &(u64, u64))| {
            let Part { shard, stage } = geometry.part(geometry.part_of_buffer(buffer)?);
            let lane = geometry.lane(buffer);
            Some(WrongLane { shard, stage, lane, first_segment, segments })
        };
        self.wrong.iter().filter_map(lane).collect()
    }

    /// Compares the digest, if all bytes were read. Otherwise, or if the digest is wrong, returns
    /// the reason.
    fn check_digest(&mut self, object: &Object) -> (DigestCheck, Option<String>) {
        let Some(hasher) = self.hasher.take() else {
            return (DigestCheck::Unchecked, self.reason.clone());
        };
        match check_digest(object, Digest::new(hasher.finalize().into())) {
            Ok(()) => (DigestCheck::Right, None),
            Err(error) => (DigestCheck::Wrong, Some(error.to_string())),
        }
    }

    /// Returns the reason why this status of an object is uncertain. Returns `None` if it is
    /// certain.
    fn why_open(
        &self,
        sources: &Sources<'_>,
        read: State,
        shards: &[ShardReport],
    ) -> Option<String> {
        let object = sources.object;
        if read != State::Intact
            && let Some(replaced) = object.replaced_note()
        {
            return Some(replaced);
        }
        let is_open = match read {
            State::Lost => object.could_be_had(&self.patterns, &sources.unreadable_parts()),
            _ => could_be_otherwise(sources, read, shards),
        };
        let unread = || {
            format!("the status depends on files that cannot be read: {}", sources.unread_files())
        };
        is_open.then(|| self.reason.clone().unwrap_or_else(unread))
    }

    fn report(mut self, sources: &Sources<'_>) -> VerifyReport {
        let object = sources.object;
        let wrong_lanes = self.wrong_lanes(object);
        let shards = shard_reports(object, sources.reports(), &wrong_lanes);
        let tolerable = self.tolerable(object, &shards);
        let (digest, why) = self.check_digest(object);
        let intact = shards.iter().all(|shard| shard.state == ShardState::Intact);
        let read = match digest {
            DigestCheck::Right if !wrong_lanes.is_empty() => State::Inconsistent,
            DigestCheck::Right if intact => State::Intact,
            DigestCheck::Right => State::Repairable,
            _ => State::Lost,
        };
        let open = match (read, digest) {
            (State::Inconsistent, _) | (_, DigestCheck::Wrong) => None,
            _ => self.why_open(sources, read, &shards),
        };
        let (status, lost, reason) = match (open, read) {
            (Some(open), _) => (State::Unknown, Vec::new(), Some(open)),
            (None, State::Inconsistent) => (read, self.lost, Some(WRONG_PARITY.to_owned())),
            (None, _) => (read, self.lost, why),
        };
        let needed = |blocks: &Vec<usize>| rateless::likely_needed(object.code().graph()?, blocks);
        VerifyReport {
            status,
            placement: placement(object, &shards),
            shards,
            digest,
            tolerable: if read == State::Lost { 0 } else { tolerable },
            good_blocks: self.fewest.as_ref().map(Vec::len),
            likely_needed: self.short.as_ref().and_then(needed),
            segments: sources.extent.count(),
            damaged_segments: self.damaged_segments,
            recomputed_segments: self.recomputed,
            wrong_lanes,
            lost,
            reason,
            read_bytes: sources.read_bytes(),
        }
    }
}

/// Whether an object that can be read might have another status if all files could be opened: it
/// might be intact if nothing else is missing, or promoted if the unopened files are parts of a
/// later stage.
fn could_be_otherwise(sources: &Sources<'_>, read: State, shards: &[ShardReport]) -> bool {
    let (object, known) = (sources.object, sources.unreadable_parts());
    let room = object.unread_room();
    if read == State::Intact {
        return room > 0 && object.stage() < object.stages();
    }
    let is_bad = |&part: &usize| shards[part].state != ShardState::Intact;
    let others = (0..shards.len()).filter(is_bad).filter(|part| !known.contains(part)).count();
    others <= room
}

/// Returns which folders may be lost, with the shards that were found intact.
fn placement(object: &Object, shards: &[ShardReport]) -> Placement {
    let intact = shards.iter().enumerate().flat_map(|(part, shard)| shard.intact_files(part));
    object.placement_of(object.stage(), intact)
}

/// Returns how many shards have a footer; at least one of them must stay.
fn footers(object: &Object) -> usize {
    let has_footer = |part: &usize| object.parts()[*part].iter().any(ShardFile::has_footer);
    let footers = (0..object.parts().len()).filter(has_footer);
    footers.map(|part| object.part(part).shard).collect::<BTreeSet<usize>>().len()
}

/// The message for parity that differs from the parity computed from the data.
const WRONG_PARITY: &str = "every block has its checksum, but parity differs from what the data \
    give; no disk does that: a program wrote wrong parity. The data have the right digest, so \
    remove the files that are named, and let repair write them anew";

/// Returns the reports on files, grouped by parts.
fn shard_reports(
    object: &Object,
    files: Vec<(usize, FileReport)>,
    wrong: &[WrongLane],
) -> Vec<ShardReport> {
    let mut shards: Vec<ShardReport> = (0..object.parts().len())
        .map(|part| object.part(part))
        .map(|Part { shard: index, stage }| ShardReport {
            index,
            stage,
            state: ShardState::Missing,
            files: Vec::new(),
        })
        .collect();
    for (part, mut file) in files {
        let shard = &mut shards[part];
        let wrong = wrong.iter().filter(|w| (w.shard, w.stage) == (shard.index, shard.stage));
        note_wrong_lanes(&mut file, wrong);
        shard.state = match (shard.state, &file) {
            (_, file) if file.is_intact() => ShardState::Intact,
            (ShardState::Intact, _) => ShardState::Intact,
            (ShardState::Unreadable, _) => ShardState::Unreadable,
            (_, file) if file.unreadable => ShardState::Unreadable,
            (ShardState::Inconsistent, _) => ShardState::Inconsistent,
            (_, file) if file.inconsistent => ShardState::Inconsistent,
            _ => ShardState::Damaged,
        };
        shard.files.push(file);
    }
    shards
}

/// Adds wrong lanes to the report on a file that is otherwise intact.
fn note_wrong_lanes<'w>(file: &mut FileReport, wrong: impl Iterator<Item = &'w WrongLane>) {
    if !file.is_intact() {
        return;
    }
    for WrongLane { lane, first_segment, segments, .. } in wrong {
        file.inconsistent = true;
        file.flaws.push(format!(
            "lane {lane} differs from what the data give in {}, first in segment {first_segment}",
            counted(*segments, "segment")
        ));
    }
}

/// Returns the report on an object of unknown length, whose blocks cannot be located.
fn unknown_length(object: &Object, error: &Error) -> VerifyReport {
    let parts = object.parts().iter().enumerate();
    let reports = parts.flat_map(|(part, files)| {
        let unread = move |file| (part, FileReport::unread(object, part, file));
        files.iter().map(unread)
    });
    let status = match error.kind() {
        ErrorKind::Io | ErrorKind::Busy => State::Unknown,
        _ => State::Lost,
    };
    let shards = shard_reports(object, reports.chain(unopened(object)).collect(), &[]);
    VerifyReport {
        status,
        placement: placement(object, &shards),
        shards,
        digest: DigestCheck::Unchecked,
        tolerable: 0,
        good_blocks: None,
        likely_needed: None,
        segments: 0,
        damaged_segments: 0,
        recomputed_segments: None,
        wrong_lanes: Vec::new(),
        lost: Vec::new(),
        reason: Some(error.to_string()),
        read_bytes: 0,
    }
}
