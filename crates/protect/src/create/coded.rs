//! Reading the files of a layer, and making its parity blocks.
//!
//! Files that change meanwhile leave gaps, which take parity from the start. If they take too much,
//! everything is read once more without such files.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use paritas::Pages;
use paritas::long::{LongCode, LongSums};
use paritas_store::error::{Error, Result};
use paritas_store::progress::Progress;
use paritas_store::shown::shown;
use paritas_store::staging::{NewFile, Replace, StagedFile};

use super::LayerOrder;
use crate::catalogue::{Item, ItemKind};
use crate::coding::Batches;
use crate::digest::FileDigest;
use crate::format::{Header, Id};
use crate::geometry::StreamGeometry;
use crate::parity::write_row;
use crate::paths::path_in;
use crate::scan::digest_of;
use crate::stream::{Gathered, Scanned, StreamPiece, StreamReading};
use crate::tree::{Skipped, in_threads};
use crate::trouble::Trouble;

/// Largest number of times that files are read. They are read again if files that change meanwhile
/// take too much parity. Each attempt leaves out the files that changed during the one before.
const MOST_ATTEMPTS: usize = 3;

/// The parity blocks of a layer in files without their names, and what was read for them.
pub(super) struct CodedLayer {
    pub header: Header,
    pub files: Vec<StagedFile>,
    /// The items with their digests, and gaps in place of what could not be read as planned.
    pub items: Vec<Item>,
    /// The checksum of each data block.
    pub checksums: Vec<u64>,
    /// What could not be read as planned.
    pub skipped: Vec<Skipped>,
    /// As in [`super::ProtectReport::gap_blocks`].
    pub gap_blocks: u64,
}

impl CodedLayer {
    /// Makes the parity of an order, or of as much of it as stands still. Returns what was made,
    /// and the order for it.
    ///
    /// # Errors
    /// As [`super::protect`].
    pub fn make<'o>(
        order: &'o LayerOrder,
        progress: Progress<'_>,
    ) -> Result<(Cow<'o, LayerOrder>, Self)> {
        let (mut order, mut skipped) = (Cow::Borrowed(order), Vec::new());
        let mut left = MOST_ATTEMPTS;
        loop {
            left -= 1;
            let mut coded = Self::make_once(&order, progress)?;
            skipped.append(&mut coded.skipped);
            let is_hollow = coded.gap_blocks * 2 > order.geometry.parity;
            let is_last = left == 0 || file_sizes(&coded.items).next().is_none();
            if is_hollow && is_last {
                refuse_hollow(&order, &skipped)?;
            }
            if !is_hollow || is_last {
                return Ok((order, Self { skipped, ..coded }));
            }
            order = Cow::Owned(order.of_files_in(coded.items)?);
        }
    }

    fn make_once(order: &LayerOrder, progress: Progress<'_>) -> Result<Self> {
        let header = order.header(Id::random()?);
        let new = NewFile::all(order.targets(), &Replace::Never, order.access);
        let files = StagedFile::create_all(new, 0)?;
        let scanned = code_blocks(order, &header, &files, progress)?;
        let (items, skipped) = settled(order, &scanned);
        let gap_blocks = gap_blocks(&order.geometry, &items, &scanned.unread);
        Ok(Self { header, files, items, checksums: scanned.checksums, skipped, gap_blocks })
    }
}

/// Returns the sizes of the files among some items that have their bytes in this layer.
pub(super) fn file_sizes(items: &[Item]) -> impl Iterator<Item = u64> + Clone {
    items.iter().filter_map(|item| match item.kind {
        ItemKind::File { size, .. } => Some(size),
        _ => None,
    })
}

/// Refuses to put parity that repairs little in the place of older parity.
fn refuse_hollow(order: &LayerOrder, skipped: &[Skipped]) -> Result<()> {
    let replaces_all = order.generation > 0 && order.older.is_empty();
    let Some(first) = skipped.last().filter(|_| replaces_all) else { return Ok(()) };
    Err(Error::busy(format!(
        "{}: files change while they are read, so the new parity would repair little, and the \
         old parity stays; one of them: {}; try again when they are at rest, or leave them out",
        shown(&order.root),
        shown(&first.path)
    )))
}

/// Makes and writes all parity blocks.
fn code_blocks(
    order: &LayerOrder,
    header: &Header,
    files: &[StagedFile],
    progress: Progress<'_>,
) -> Result<Scanned> {
    let LayerOrder { stream, geometry, threads, .. } = order;
    let mut gathered = Gathered::new(stream, geometry);
    let Some(code) = geometry.code()? else { return Ok(gathered.finish()) };
    let mut checks: Vec<crc_fast::Digest> =
        (0..geometry.parity).map(|row| header.row_checksum(row)).collect();
    let passes = order.passes();
    let is_single = passes.len() == 1;
    for columns in passes {
        let is_first = columns.start == 0;
        let reading =
            StreamReading { stream, geometry: *geometry, columns, threads: *threads, progress };
        let mut sums = match is_first {
            true => add_all(&code, &reading, order.memory, |blocks, memory| {
                reading.scan(blocks, Some(memory), &mut gathered);
            })?,
            false => add_all(&code, &reading, order.memory, |blocks, memory| {
                reading.load(blocks, memory, |_| false, &mut gathered.columns);
            })?,
        };
        write_rows(&code, &reading, &mut sums, &mut checks, header, files)?;
    }
    if is_single {
        return Ok(gathered.finish());
    }
    let (mut scanned, mixed) = gathered.finish_coded();
    leave_out_changed(order, &mut scanned, &mixed);
    Ok(scanned)
}

/// Adds up the wanted columns of all blocks. Each chunk is transformed once, and the sum once more
/// at the end. 512 MiB with 10 % of parity are ten chunks, so these are 11 transforms; if each
/// batch were added to parity blocks, they would be 20.
fn add_all(
    code: &LongCode,
    reading: &StreamReading<'_>,
    memory: u64,
    read: impl FnMut(Range<u64>, &mut [u8]) + Send,
) -> Result<LongSums> {
    let mut sums = code.sums(reading.width())?;
    let kept = (code.chunk() * reading.width()) as u64;
    let batches = Batches { code, reading, memory: memory.saturating_sub(kept) };
    batches.each(read, |first, blocks| Ok(sums.add(first, blocks, reading.threads)?))?;
    Ok(sums)
}

/// Computes some columns of all parity blocks, and writes them. Threads take the blocks in turns;
/// blocks that follow one another are in different files.
fn write_rows(
    code: &LongCode,
    reading: &StreamReading<'_>,
    sums: &mut LongSums,
    checks: &mut [crc_fast::Digest],
    header: &Header,
    files: &[StagedFile],
) -> Result<()> {
    let (width, threads) = (reading.width(), reading.threads);
    let rows: Vec<usize> = (0..code.parity()).collect();
    let mut parity = Pages::zeroed(rows.len() * width)?;
    let mut blocks: Vec<&mut [u8]> = parity.chunks_mut(width).collect();
    sums.parity(&rows, &mut blocks, threads)?;
    let rows = Mutex::new((0..).zip(blocks).zip(checks));
    let write = || loop {
        let next = rows.lock().unwrap_or_else(PoisonError::into_inner).next();
        let Some(((row, bytes), check)) = next else { return Ok(()) };
        let file = &files[usize::from(header.file_of(row))];
        write_row(header, row, &reading.columns, bytes, check, file)?;
    };
    in_threads(threads.min(files.len()), write).into_iter().collect()
}

/// Leaves out the files that changed between the passes. In `mixed` blocks, the passes have coded
/// different versions of the bytes. Such a block is consistent with the parity and with its own
/// checksum, but does not match any file, so it counts as lost.
///
/// A file in such a block stays if it is still as the scan has read it. If all files in the block
/// are, one of them was changed for a moment, and it is unknown which, so all are left out.
fn leave_out_changed(order: &LayerOrder, scanned: &mut Scanned, mixed: &[u64]) {
    let LayerOrder { stream, geometry, .. } = order;
    let is_same = |piece: usize, digest: Option<FileDigest>| {
        let StreamPiece { source, length, .. } = &stream.pieces()[piece];
        source.as_ref().is_some_and(|source| {
            source.is_expected() && digest.is_some() && digest_of(&source.path, *length) == digest
        })
    };
    let mut same: BTreeMap<usize, bool> = BTreeMap::new();
    for &block in mixed {
        let start = block * geometry.block;
        let pieces = || stream.pieces_in(start..start + geometry.bytes_of(block));
        for piece in pieces() {
            let is_whole = || !scanned.troubles.contains_key(&piece);
            let is_same = || is_whole() && is_same(piece, scanned.digests[piece]);
            same.entry(piece).or_insert_with(is_same);
        }
        if pieces().all(|piece| same[&piece]) {
            same.extend(pieces().map(|piece| (piece, false)));
        }
    }
    for (piece, _) in same.into_iter().filter(|(_, is_same)| !is_same) {
        // A later pass may have read it.
        scanned.unread.remove(&piece);
        scanned.troubles.entry(piece).or_insert(Trouble::Changed);
    }
}

/// Returns the items with their digests, and the files that could not be read as they were planned.
/// These are not protected, nor are hard links to them, and their bytes stay in the stream as gaps.
fn settled(order: &LayerOrder, scanned: &Scanned) -> (Vec<Item>, Vec<Skipped>) {
    let (mut skipped, mut lost) = (Vec::new(), HashSet::new());
    let mut piece = 0;
    let mut items = Vec::with_capacity(order.items.len());
    for item in &order.items {
        let Some(size) = item.size() else {
            items.push(item.clone());
            continue;
        };
        items.push(match scanned.digests[piece] {
            Some(digest) if !scanned.troubles.contains_key(&piece) => {
                Item { kind: ItemKind::File { size, digest }, ..item.clone() }
            }
            _ => {
                let reason = reason(scanned.troubles.get(&piece));
                skipped.push(Skipped { path: path_in(&order.root, &item.path), reason });
                lost.insert(&item.path);
                Item::gap(size)
            }
        });
        piece += 1;
    }
    // Files of older layers need not be among the items. Links to them stay.
    items.retain(|item| match &item.kind {
        ItemKind::HardLink { target } => !lost.contains(target),
        _ => true,
    });
    (items, skipped)
}

/// Returns the number of blocks with bytes that do not belong to a file. Pieces in `unread` are
/// zeros, which are never lost.
fn gap_blocks(geometry: &StreamGeometry, items: &[Item], unread: &BTreeSet<usize>) -> u64 {
    let is_gap = |item: &Item| matches!(item.kind, ItemKind::Gap { .. });
    let pieces = items.iter().filter_map(|item| Some((item.size()?, is_gap(item))));
    let pieces = pieces.enumerate();
    geometry.blocks_with(pieces.map(|(at, (size, is_gap))| (size, is_gap && !unread.contains(&at))))
}

fn reason(trouble: Option<&Trouble>) -> String {
    match trouble {
        Some(Trouble::Refused(why) | Trouble::Broken(why)) => why.clone(),
        _ => "it changed while it was read".to_owned(),
    }
}
