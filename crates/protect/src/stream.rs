//! The stream of a layer: the bytes of its files, one after the other, without anything between
//! them; and reading it in blocks by several threads.
//!
//! A *scan* reads every byte once, in order. Threads take *units* of about a megabyte, which are
//! whole blocks; hash what they have read while it is in their cache; and, if the caller codes the
//! blocks, leave the bytes in its memory. Blocks larger than a unit are read in steps. A file that
//! several threads have read gets its digest from pieces ([`PieceDigest`]).
//!
//! A [`StreamReading`] is about a range of columns of the blocks: all of them, if the memory
//! suffices.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::Metadata;
use std::io::{self, IoSliceMut};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

use paritas_store::object::pieces::PieceDigest;
use paritas_store::place::attributes::{Attributes, Owner, Timestamp};
use paritas_store::place::positional::read_at;
use paritas_store::place::system::{is_bad_place, open_file};
use paritas_store::progress::Progress;

use crate::digest::{FileDigest, digest, shorten};
use crate::format::{after_zeros, block_checksum, checksum_of_zeros, resumed_block_checksum};
use crate::geometry::StreamGeometry;
use crate::tree::in_threads;
use crate::trouble::Trouble;

/// Number of bytes that a thread reads at once. They fit into its cache beside what it makes of
/// them.
const STEP: u64 = 1 << 20;

/// Number of bytes that are given up together if a disk cannot read some of them.
const SECTOR: usize = 4096;

/// The bytes of a layer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stream {
    pieces: Vec<StreamPiece>,
    length: u64,
    /// Bytes that are somewhere else, by their position in the stream.
    patches: BTreeMap<u64, Patch>,
}

/// Bytes of a stream that were found in another place than the file that should have them.
#[derive(Debug, Clone)]
pub(crate) struct Patch {
    pub length: u64,
    pub path: PathBuf,
    pub offset: u64,
}

/// The bytes of one file in a stream, or bytes that belong to no file.
#[derive(Debug, Clone)]
pub(crate) struct StreamPiece {
    /// The position of its first byte in the stream.
    pub start: u64,
    pub length: u64,
    /// Number of bytes that the source has, from the beginning of the piece.
    there: u64,
    /// The file. Without one the bytes are taken as zeros.
    pub source: Option<PieceFile>,
}

/// A file that has the bytes of a piece.
#[derive(Debug, Clone)]
pub(crate) struct PieceFile {
    pub path: PathBuf,
    /// What the file was when it was found, if it must still be that after it was read.
    pub expected: Option<FileStamp>,
}

/// What tells a file from another one that takes its place or its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileStamp {
    pub size: u64,
    pub modified: Timestamp,
    /// The owner, if it is known. Nobody can make a file of somebody else. So whoever replaces a
    /// folder by a link does not get the files that the link leads to into parity that they may
    /// read.
    pub owner: Option<Owner>,
}

/// The findings of a scan.
#[derive(Debug, Default)]
pub(crate) struct Scanned {
    /// The checksum of each block.
    pub checksums: Vec<u64>,
    /// The digest of each piece that has a source and was read in full.
    pub digests: Vec<Option<FileDigest>>,
    /// Pieces that were not read as they should have been, each with its first trouble.
    pub troubles: BTreeMap<usize, Trouble>,
    /// Those of them that the system did not let be read at all. They count as zeros.
    pub unread: BTreeSet<usize>,
}

/// The checksums of blocks that are read in ranges of columns, one range after the other. At the
/// end they tell whether the ranges of a block fit together.
#[derive(Debug, Clone)]
pub(crate) struct RunningSums {
    /// The state of each block's checksum after the columns so far.
    states: Vec<u64>,
}

/// The findings of one thread.
#[derive(Default)]
struct ThreadFindings {
    checksums: Vec<(u64, u64)>,
    /// The states of running checksums, by block.
    states: Vec<(u64, u64)>,
    digests: Vec<(usize, FileDigest)>,
    parts: Vec<(usize, PieceDigest)>,
    troubles: Vec<(usize, Trouble)>,
}

impl Stream {
    /// Adds a piece at the end. A source has all of its bytes. The pieces together must not have
    /// more bytes than a [`StreamGeometry`] allows.
    pub fn push(&mut self, length: u64, source: Option<PieceFile>) {
        let there = if source.is_some() { length } else { 0 };
        self.pieces.push(StreamPiece { start: self.length, length, there, source });
        self.length += length;
    }

    /// Adds a piece at the end whose source has `size` bytes.
    pub fn push_file(&mut self, length: u64, source: PieceFile, size: u64) {
        self.push(length, Some(source));
        self.pieces.last_mut().expect("it was added").there = size.min(length);
    }

    /// Returns the number of bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Returns the pieces in order.
    pub fn pieces(&self) -> &[StreamPiece] {
        &self.pieces
    }

    /// Returns the numbers of the pieces that have bytes in a range.
    pub fn pieces_in(&self, range: Range<u64>) -> impl Iterator<Item = usize> + '_ {
        let first = self.pieces.partition_point(|piece| piece.start + piece.length <= range.start);
        let in_range = move |&number: &usize| self.pieces[number].start < range.end;
        (first..self.pieces.len())
            .take_while(in_range)
            .filter(|&number| self.pieces[number].length > 0)
    }

    /// Whether a source has any of the bytes of a range.
    fn has_any(&self, range: Range<u64>) -> bool {
        let start = range.start;
        let has_some = |piece: &StreamPiece| piece.there > start.saturating_sub(piece.start);
        self.pieces_in(range).any(|number| has_some(&self.pieces[number]))
    }

    fn has_source(&self, piece: usize) -> bool {
        self.pieces[piece].source.is_some()
    }

    /// Returns the first piece that has a source and bytes in a block.
    pub fn first_in(&self, geometry: &StreamGeometry, block: u64) -> Option<usize> {
        let start = block * geometry.block;
        let mut pieces = self.pieces_in(start..start + geometry.bytes_of(block));
        pieces.find(|&piece| self.has_source(piece))
    }

    /// Fills `bytes` with the bytes of the stream from `offset` on, without patches. For each
    /// piece, `done` gets its number, its range in `bytes`, and the trouble in reading it, if there
    /// was any.
    fn read(
        &self,
        offset: u64,
        bytes: &mut [u8],
        mut done: impl FnMut(usize, Range<usize>, Option<Trouble>),
    ) {
        let end = offset + bytes.len() as u64;
        for number in self.pieces_in(offset..end) {
            let piece = &self.pieces[number];
            let (from, to) = (offset.max(piece.start), end.min(piece.start + piece.length));
            let range = (from - offset) as usize..(to - offset) as usize;
            let trouble = piece.read(from - piece.start, &mut bytes[range.clone()]);
            done(number, range, trouble);
        }
    }

    /// Gives a piece another source.
    pub fn set_source(&mut self, piece: usize, path: PathBuf) {
        let piece = &mut self.pieces[piece];
        piece.there = piece.length;
        piece.source = Some(PieceFile { path, expected: None });
    }

    /// Returns the files from which the bytes of a piece are read.
    pub fn sources_of(&self, piece: usize) -> impl Iterator<Item = &PathBuf> {
        let StreamPiece { start, length, source, .. } = &self.pieces[piece];
        let before_end = self.patches.range(..start + length).rev();
        let patches = before_end.take_while(move |(at, patch)| *at + patch.length > *start);
        let patched = patches.map(|(_, patch)| &patch.path);
        source.iter().map(|source| &source.path).chain(patched)
    }

    /// Returns the files from which any bytes are read.
    pub fn sources(&self) -> impl Iterator<Item = &PathBuf> {
        let sources = self.pieces.iter().filter_map(|piece| piece.source.as_ref());
        sources.map(|source| &source.path).chain(self.patches.values().map(|patch| &patch.path))
    }

    /// Returns the blocks with bytes that are read from any of these files.
    pub fn blocks_from(
        &self,
        geometry: &StreamGeometry,
        files: &HashSet<&PathBuf>,
    ) -> BTreeSet<u64> {
        let is_from = |piece: &&StreamPiece| {
            piece.length > 0
                && piece.source.as_ref().is_some_and(|source| files.contains(&source.path))
        };
        let pieces = self.pieces.iter().filter(is_from);
        let pieces = pieces.map(|piece| (piece.start, piece.length));
        let patches = self.patches.iter().filter(|(_, patch)| files.contains(&patch.path));
        let patches = patches.map(|(&start, patch)| (start, patch.length));
        let blocks = |(start, length): (u64, u64)| {
            start / geometry.block..=(start + length - 1) / geometry.block
        };
        pieces.chain(patches).flat_map(blocks).collect()
    }

    /// Takes the bytes at `start` from another place.
    pub fn patch(&mut self, start: u64, patch: Patch) {
        self.patches.insert(start, patch);
    }

    /// Fills `bytes` with the bytes of the stream from `offset` on. Bytes that cannot be read
    /// become zeros.
    pub fn fill(&self, offset: u64, bytes: &mut [u8]) {
        self.read(offset, bytes, |_, _, _| {});
        let end = offset + bytes.len() as u64;
        // Patches are blocks, which do not overlap, so only the last one before can reach in.
        let first = self.patches.range(..=offset).next_back().map_or(offset, |(&start, _)| start);
        for (&start, patch) in self.patches.range(first..end) {
            let (from, to) = (start.max(offset), end.min(start + patch.length));
            if from < to {
                let source = PieceFile { path: patch.path.clone(), expected: None };
                let bytes = &mut bytes[(from - offset) as usize..(to - offset) as usize];
                // Bytes that cannot be read again stay as they are, and their file will not have
                // its digest.
                let _ = source.read(patch.offset + from - start, bytes);
            }
        }
    }
}

impl StreamPiece {
    /// Fills `bytes` with what is at `offset` in the piece.
    fn read(&self, offset: u64, bytes: &mut [u8]) -> Option<Trouble> {
        let Some(source) = &self.source else {
            bytes.fill(0);
            return None;
        };
        match source.read(offset, bytes) {
            Ok(read) if read < bytes.len() => {
                bytes[read..].fill(0);
                Some(Trouble::Short)
            }
            Ok(_) => None,
            Err(Unread::Changed) => Some(Trouble::Changed),
            Err(Unread::Refused(error)) if is_bad_place(&error) && bytes.len() > SECTOR => {
                // The sectors around a bad one can be read.
                let (front, back) = bytes.split_at_mut((bytes.len() / 2).next_multiple_of(SECTOR));
                let trouble = self.read(offset, front);
                self.read(offset + front.len() as u64, back).or(trouble)
            }
            Err(Unread::Refused(error)) => {
                bytes.fill(0);
                Some(Trouble::of(&error))
            }
        }
    }
}

/// Why a source could not be read.
#[derive(Debug)]
pub(crate) enum Unread {
    /// The file was replaced or written since it was found.
    Changed,
    /// The system refused.
    Refused(io::Error),
}

impl From<io::Error> for Unread {
    fn from(error: io::Error) -> Self {
        Self::Refused(error)
    }
}

impl PieceFile {
    /// Reads what is at `offset`, as far as the file goes.
    pub fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<usize, Unread> {
        let file = open_file(&self.path)?;
        let read = read_at(&file, &mut [IoSliceMut::new(bytes)], offset)?;
        let Some(expected) = self.expected else { return Ok(read) };
        let metadata = file.metadata()?;
        match expected.fits(&metadata) && read == bytes.len() {
            true => Ok(read),
            false => {
                // What is read of a file that changed is coded, so it must not be left to chance.
                bytes[read..].fill(0);
                Err(Unread::Changed)
            }
        }
    }

    /// Whether the file has the size and the time that it should have.
    pub fn is_expected(&self) -> bool {
        self.read(0, &mut []).is_ok()
    }
}

impl FileStamp {
    fn fits(self, metadata: &Metadata) -> bool {
        let Attributes { modified, owner, .. } = Attributes::of(metadata);
        self.size == metadata.len()
            && modified == Some(self.modified)
            && self.owner.is_none_or(|expected| owner == Some(expected))
    }
}

/// How blocks of a stream are read.
#[derive(Clone)]
pub(crate) struct StreamReading<'a> {
    pub stream: &'a Stream,
    pub geometry: StreamGeometry,
    /// The columns of each block that are wanted.
    pub columns: Range<u64>,
    pub threads: usize,
    pub progress: Progress<'a>,
}

/// Some blocks of a unit, and the memory for their columns if these are wanted.
struct BlockUnit<'m> {
    blocks: Range<u64>,
    memory: Option<&'m mut [u8]>,
}

impl StreamReading<'_> {
    /// Returns the number of wanted bytes of each block.
    pub fn width(&self) -> usize {
        (self.columns.end - self.columns.start) as usize
    }

    /// Reads every byte of some blocks, hashes them, and adds what it finds to `gathered`. The
    /// wanted columns go to `memory`, if there is any, block after block.
    pub fn scan(&self, blocks: Range<u64>, memory: Option<&mut [u8]>, gathered: &mut Gathered) {
        let zeros = OnceLock::new();
        let shares = self.by_units(blocks, memory, |unit, scratch, share| {
            let first = unit.blocks.start * self.geometry.block;
            let end = unit.blocks.end * self.geometry.block;
            if self.stream.has_any(first..end) {
                return self.scan_unit(unit, scratch, share);
            }
            let zeros = zeros.get_or_init(|| checksum_of_zeros(self.geometry.block));
            self.pass_over(unit, *zeros, share);
        });
        shares.into_iter().for_each(|share| gathered.add(self.stream, share));
    }

    /// Reads the wanted columns of some blocks into `memory`, block after block, and adds them to
    /// `sums`. Blocks for which `skip` returns true are filled with zeros, and are not added.
    pub fn load(
        &self,
        blocks: Range<u64>,
        memory: &mut [u8],
        skip: impl Fn(u64) -> bool + Sync,
        sums: &mut RunningSums,
    ) {
        let before = &*sums;
        let shares = self.by_units(blocks, Some(memory), |unit, _, share| {
            let Some(memory) = unit.memory else { return };
            for (block, memory) in unit.blocks.zip(memory.chunks_mut(self.width())) {
                if skip(block) {
                    memory.fill(0);
                    continue;
                }
                self.load_block(block, memory);
                share.states.push((block, before.after(block, self.part_of(block, memory))));
            }
        });
        shares.into_iter().for_each(|share| sums.take(share.states));
    }

    /// Returns those of a block's wanted columns that are in the stream. The last block may have
    /// fewer than the others.
    fn part_of<'m>(&self, block: u64, columns: &'m [u8]) -> &'m [u8] {
        let bytes = self.geometry.bytes_of(block);
        let (from, to) = (self.columns.start.min(bytes), self.columns.end.min(bytes));
        &columns[..(to - from) as usize]
    }

    /// Adds the wanted columns of a block that were not loaded to `sums`.
    pub fn add_to(&self, sums: &mut RunningSums, block: u64, columns: &[u8]) {
        sums.take([(block, sums.after(block, self.part_of(block, columns)))]);
    }

    fn load_block(&self, block: u64, memory: &mut [u8]) {
        let bytes = self.geometry.bytes_of(block);
        let (from, to) = (self.columns.start.min(bytes), self.columns.end.min(bytes));
        let (wanted, rest) = memory.split_at_mut((to - from) as usize);
        self.stream.fill(block * self.geometry.block + from, wanted);
        rest.fill(0);
        (self.progress)(to - from);
    }

    /// Gives units of blocks to threads.
    fn by_units(
        &self,
        blocks: Range<u64>,
        memory: Option<&mut [u8]>,
        work: impl Fn(BlockUnit<'_>, &mut Vec<u8>, &mut ThreadFindings) + Sync,
    ) -> Vec<ThreadFindings> {
        let each = (STEP / self.geometry.block).max(1);
        let starts = blocks.clone().step_by(each as usize);
        let mut chunks = memory.map(|memory| memory.chunks_mut(each as usize * self.width()));
        let units = starts.map(|start| BlockUnit {
            blocks: start..(start + each).min(blocks.end),
            memory: chunks.as_mut().and_then(Iterator::next),
        });
        let units: Vec<BlockUnit<'_>> = units.collect();
        let threads = self.threads.min(units.len());
        let units = Mutex::new(units.into_iter());
        in_threads(threads, || {
            let (mut share, mut scratch) = (ThreadFindings::default(), Vec::new());
            loop {
                let unit = units.lock().unwrap_or_else(PoisonError::into_inner).next();
                match unit {
                    Some(unit) => work(unit, &mut scratch, &mut share),
                    None => return share,
                }
            }
        })
    }

    fn scan_unit(&self, unit: BlockUnit<'_>, scratch: &mut Vec<u8>, share: &mut ThreadFindings) {
        let StreamGeometry { block, length, .. } = self.geometry;
        let start = unit.blocks.start * block;
        let end = (unit.blocks.end * block).min(length);
        let is_whole = self.columns == (0..block);
        let mut memory = unit.memory;
        let mut sums = BlockSums { block, start, crc: block_checksum() };
        for from in (start..end).step_by(STEP as usize) {
            if memory.is_none() && !self.stream.has_any(from..end) {
                sums.add_zeros(from, end, share);
                (self.progress)(end - from);
                break;
            }
            let to = (from + STEP).min(end);
            let count = (to - from) as usize;
            let at = (from - start) as usize;
            match &mut memory {
                Some(memory) if is_whole => {
                    self.scan_step(from, &mut memory[at..at + count], to == end, &mut sums, share);
                }
                memory => {
                    scratch.resize(STEP as usize, 0);
                    let bytes = &mut scratch[..count];
                    self.scan_step(from, bytes, to == end, &mut sums, share);
                    if let Some(memory) = memory {
                        copy_columns(bytes, from - start, block, &self.columns, memory);
                    }
                }
            }
            (self.progress)(to - from);
        }
        if let Some(memory) = memory {
            self.fill_up(&unit.blocks, memory);
            if !is_whole {
                self.begin_sums(unit.blocks, memory, share);
            }
        }
    }

    /// Fills with zeros what the last one of some blocks lacks in `memory`, which has the wanted
    /// columns of these blocks.
    fn fill_up(&self, blocks: &Range<u64>, memory: &mut [u8]) {
        let StreamGeometry { block, length, .. } = self.geometry;
        let missing = (blocks.end * block).saturating_sub(length);
        let kept = (block - missing).clamp(self.columns.start, self.columns.end);
        let rest = memory.len() - (self.columns.end - kept) as usize;
        memory[rest..].fill(0);
    }

    /// Passes over blocks that no file has bytes in. They are zeros, and may be of any size.
    /// `zeros` is the checksum of a whole block of zeros.
    fn pass_over(&self, unit: BlockUnit<'_>, zeros: u64, share: &mut ThreadFindings) {
        for block in unit.blocks.clone() {
            let bytes = self.geometry.bytes_of(block);
            let is_whole = bytes == self.geometry.block;
            let sum = if is_whole { zeros } else { checksum_of_zeros(bytes) };
            share.checksums.push((block, sum));
            (self.progress)(bytes);
        }
        if let Some(memory) = unit.memory {
            memory.fill(0);
            self.begin_sums(unit.blocks, memory, share);
        }
    }

    /// Begins the running checksums of blocks whose first columns were read.
    fn begin_sums(&self, blocks: Range<u64>, memory: &[u8], share: &mut ThreadFindings) {
        for (block, columns) in blocks.zip(memory.chunks(self.width())) {
            let mut crc = block_checksum();
            crc.update(self.part_of(block, columns));
            share.states.push((block, crc.get_state()));
        }
    }

    /// Reads bytes, and hashes and sums them.
    fn scan_step(
        &self,
        from: u64,
        bytes: &mut [u8],
        is_end: bool,
        sums: &mut BlockSums,
        share: &mut ThreadFindings,
    ) {
        self.hash_step(from, bytes, share);
        sums.add(from, bytes, is_end, share);
    }

    /// Reads bytes and hashes the pieces in them.
    fn hash_step(&self, from: u64, bytes: &mut [u8], share: &mut ThreadFindings) {
        let mut ranges = Vec::new();
        self.stream
            .read(from, bytes, |number, range, trouble| ranges.push((number, range, trouble)));
        for (number, range, trouble) in ranges {
            let piece = &self.stream.pieces[number];
            let offset = from + range.start as u64 - piece.start;
            let is_read = trouble.is_none();
            share.troubles.extend(trouble.map(|trouble| (number, trouble)));
            if piece.source.is_none() || !is_read {
                continue;
            }
            match range.len() as u64 == piece.length {
                true => share.digests.push((number, digest(&bytes[range]))),
                false => {
                    let part = PieceDigest::new(piece.length);
                    part.take(offset, &[&bytes[range]]);
                    share.parts.push((number, part));
                }
            }
        }
    }
}

impl RunningSums {
    /// Begins the checksums of `blocks` blocks, before any column was read.
    pub fn new(blocks: u64) -> Self {
        Self { states: vec![block_checksum().get_state(); blocks as usize] }
    }

    /// Returns the state of a block's checksum after the next columns.
    fn after(&self, block: u64, columns: &[u8]) -> u64 {
        let mut crc = resumed_block_checksum(self.states[block as usize]);
        crc.update(columns);
        crc.get_state()
    }

    fn take(&mut self, states: impl IntoIterator<Item = (u64, u64)>) {
        for (block, state) in states {
            self.states[block as usize] = state;
        }
    }

    /// Returns the checksum of a block after all columns.
    fn checksum(&self, block: u64) -> u64 {
        resumed_block_checksum(self.states[block as usize]).finalize()
    }

    /// Returns the blocks whose columns do not have the expected checksum together.
    pub fn differences<'s>(&'s self, expected: &'s [u64]) -> impl Iterator<Item = u64> + 's {
        let sums = (0..).zip(expected);
        sums.filter_map(|(block, &sum)| (self.checksum(block) != sum).then_some(block))
    }
}

/// The checksums of consecutive blocks that are read in steps.
struct BlockSums {
    block: u64,
    /// Where the block that is being read begins in the stream.
    start: u64,
    crc: crc_fast::Digest,
}

impl BlockSums {
    fn add(&mut self, from: u64, mut bytes: &[u8], is_end: bool, share: &mut ThreadFindings) {
        let mut at = from;
        while !bytes.is_empty() {
            let left = (self.start + self.block - at).min(bytes.len() as u64);
            let (now, rest) = bytes.split_at(left as usize);
            self.crc.update(now);
            (at, bytes) = (at + left, rest);
            if at == self.start + self.block || (is_end && bytes.is_empty()) {
                share.checksums.push((self.start / self.block, self.crc.finalize()));
                (self.start, self.crc) = (at, block_checksum());
            }
        }
    }

    /// Adds zeros from `at` to the end of the last block, in one step for each block.
    fn add_zeros(&mut self, mut at: u64, end: u64, share: &mut ThreadFindings) {
        while at < end {
            let block_end = (self.start + self.block).min(end);
            let state = after_zeros(self.crc.get_state(), block_end - at);
            let sum = resumed_block_checksum(state).finalize();
            share.checksums.push((self.start / self.block, sum));
            (at, self.start, self.crc) = (block_end, block_end, block_checksum());
        }
    }
}

/// Copies the wanted columns of `bytes` to `memory`. `bytes` begin `at` bytes after the beginning
/// of a unit.
fn copy_columns(bytes: &[u8], at: u64, block: u64, columns: &Range<u64>, memory: &mut [u8]) {
    let width = columns.end - columns.start;
    let end = at + bytes.len() as u64;
    for number in at / block..end.div_ceil(block) {
        let begin = number * block;
        let from = (begin + columns.start).max(at);
        let to = (begin + columns.end).min(end);
        if from < to {
            let target = (number * width + from - begin - columns.start) as usize;
            let count = (to - from) as usize;
            let source = (from - at) as usize;
            memory[target..target + count].copy_from_slice(&bytes[source..source + count]);
        }
    }
}

/// The findings of all threads so far.
#[derive(Debug)]
pub(crate) struct Gathered {
    scanned: Scanned,
    parts: BTreeMap<usize, PieceDigest>,
    /// The checksums of the columns that were wanted so far, if these are not all.
    pub columns: RunningSums,
}

impl Gathered {
    /// Begins with nothing about a stream.
    pub fn new(stream: &Stream, geometry: &StreamGeometry) -> Self {
        let mut scanned = Scanned {
            checksums: vec![0; geometry.data as usize],
            digests: vec![None; stream.pieces.len()],
            troubles: BTreeMap::new(),
            unread: BTreeSet::new(),
        };
        for (piece, known) in stream.pieces.iter().zip(&mut scanned.digests) {
            if piece.length == 0 && piece.source.is_some() {
                *known = Some(digest(&[]));
            }
        }
        Self { scanned, parts: BTreeMap::new(), columns: RunningSums::new(geometry.data) }
    }

    fn add(&mut self, stream: &Stream, share: ThreadFindings) {
        for (block, checksum) in share.checksums {
            self.scanned.checksums[block as usize] = checksum;
        }
        self.columns.take(share.states);
        for (piece, digest) in share.digests {
            self.scanned.digests[piece] = Some(digest);
        }
        for (piece, parts) in share.parts {
            let length = stream.pieces[piece].length;
            self.parts.entry(piece).or_insert_with(|| PieceDigest::new(length)).join(parts);
        }
        for (piece, trouble) in share.troubles {
            self.scanned.troubles.entry(piece).or_insert(trouble);
        }
    }

    /// Returns all findings, after every column was read, and the blocks in which later passes have
    /// read other bytes than the scan. Their checksums are those of the bytes that all passes read.
    pub fn finish_coded(mut self) -> (Scanned, Vec<u64>) {
        let mixed: Vec<u64> = self.columns.differences(&self.scanned.checksums).collect();
        for &block in &mixed {
            self.scanned.checksums[block as usize] = self.columns.checksum(block);
        }
        (self.finish(), mixed)
    }

    /// Returns all findings, after every block was read.
    pub fn finish(mut self) -> Scanned {
        let troubles = self.scanned.troubles.iter();
        let refused = troubles.filter(|(piece, trouble)| {
            let is_refused = matches!(trouble, Trouble::Refused(_) | Trouble::Gone);
            is_refused && !self.parts.contains_key(piece)
        });
        self.scanned.unread = refused.map(|(&piece, _)| piece).collect();
        for (piece, parts) in self.parts {
            if !self.scanned.troubles.contains_key(&piece) {
                self.scanned.digests[piece] = parts.finish().as_ref().map(shorten);
            }
        }
        self.scanned
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checksums(stream: &Stream, geometry: StreamGeometry) -> Vec<u64> {
        let columns = 0..geometry.block;
        let reading = StreamReading { stream, geometry, columns, threads: 1, progress: &|_| {} };
        let mut gathered = Gathered::new(stream, &geometry);
        reading.scan(0..geometry.data, None, &mut gathered);
        gathered.finish().checksums
    }

    /// A file that is shorter than its piece, by as much as a catalogue may state, is read as far
    /// as it goes.
    #[test]
    fn bytes_beyond_the_end_of_a_file_are_not_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), [7; 1_000]).unwrap();
        for (length, block) in [(3_000, 384), (60_000 << 40, 1 << 40)] {
            let mut stream = Stream::default();
            let source = PieceFile { path: file.path().to_owned(), expected: None };
            stream.push_file(length, source, 1_000);
            let data = length.div_ceil(block);
            let sums = checksums(&stream, StreamGeometry { length, block, data, parity: 1 });
            assert_eq!(sums.len() as u64, data);
            let sum = |there: u64, bytes: u64| {
                let mut crc = block_checksum();
                crc.update(&vec![7; there as usize]);
                resumed_block_checksum(after_zeros(crc.get_state(), bytes - there)).finalize()
            };
            let with_bytes = 1_000_u64.div_ceil(block) as usize;
            for (number, &found) in (0..).zip(&sums[..with_bytes]) {
                assert_eq!(found, sum(block.min(1_000 - number * block), block), "{number}");
            }
            let (last, zeros) = sums[with_bytes..].split_last().unwrap();
            assert_eq!(*last, sum(0, length - (data - 1) * block));
            let zero = sum(0, block);
            assert!(zeros.iter().all(|&found| found == zero));
        }
    }

    /// Bytes that no file has count as zeros, and take no time, whatever size a catalogue states.
    #[test]
    fn bytes_without_a_file_are_not_read() {
        let mut small = Stream::default();
        small.push(1_000, None);
        let geometry = StreamGeometry { length: 1_000, block: 384, data: 3, parity: 1 };
        let sum = |bytes: usize| {
            let mut crc = block_checksum();
            crc.update(&vec![0; bytes]);
            crc.finalize()
        };
        assert_eq!(checksums(&small, geometry), [sum(384), sum(384), sum(232)]);
        let mut large = Stream::default();
        large.push(60_000 << 40, None);
        let geometry =
            StreamGeometry { length: 60_000 << 40, block: 1 << 40, data: 60_000, parity: 1 };
        assert_eq!(checksums(&large, geometry).len(), 60_000);
    }
}
