//! Coding the blocks of a stream in the memory that a job allows: a range of columns at a time, and
//! batch by batch.

use std::ops::Range;
use std::thread;

use paritas::Pages;
use paritas::long::LongCode;
use paritas_store::error::Result;

use crate::geometry::StreamGeometry;
use crate::stream::StreamReading;

/// Number of bytes that are read before they are coded. If a chunk of the code has more bytes, a
/// whole chunk is read. The system clears all memory that it gives, so less is quicker for small
/// trees.
const BATCH: u64 = 16 << 20;
/// Ranges of columns are multiples of this number of bytes.
const GRANULE: u64 = 128;

/// Cuts the columns of blocks into ranges, so that `rows` sums and a batch of blocks, of one range
/// each, fit into `memory` bytes.
pub(crate) fn passes(geometry: &StreamGeometry, rows: u64, memory: u64) -> Vec<Range<u64>> {
    let width = memory / (rows + batch(geometry)).max(1) / GRANULE * GRANULE;
    let width = width.clamp(GRANULE, geometry.block);
    let starts = (0..geometry.block).step_by(width as usize);
    let range = |start: u64| start..(start + width).min(geometry.block);
    if geometry.data == 0 { Vec::new() } else { starts.map(range).collect() }
}

/// Cuts the columns of blocks into ranges for computing all parity blocks. While blocks are added,
/// memory holds a batch and the sums, one for each block of a chunk ([`paritas::long::LongSums`]).
/// At the end it holds the sums and all parity blocks, in place of the batch.
pub(crate) fn passes_for_all(geometry: &StreamGeometry, memory: u64) -> Vec<Range<u64>> {
    let beside = geometry.parity.saturating_sub(batch(geometry));
    passes(geometry, chunk(geometry) + beside, memory)
}

/// Returns the number of blocks that are coded together.
fn chunk(geometry: &StreamGeometry) -> u64 {
    geometry.parity.next_power_of_two()
}

/// Returns the smallest number of blocks of a batch.
fn batch(geometry: &StreamGeometry) -> u64 {
    chunk(geometry).min(geometry.data)
}

/// Blocks that are read and coded batch by batch.
pub(crate) struct Batches<'a> {
    pub code: &'a LongCode,
    pub reading: &'a StreamReading<'a>,
    /// Number of bytes that the batches may take. There is one batch in any case.
    pub memory: u64,
}

impl Batches<'_> {
    /// Reads each batch by `read`, and hands it to `code`, with the number of its first block.
    /// While one batch is coded, the next one is read, if the memory suffices for both.
    pub fn each(
        &self,
        mut read: impl FnMut(Range<u64>, &mut [u8]) + Send,
        mut code: impl FnMut(usize, &[&[u8]]) -> Result<()>,
    ) -> Result<()> {
        let width = self.reading.width();
        let bytes = |blocks: &Range<u64>| (blocks.end - blocks.start) as usize * width;
        let batches = self.batches();
        let most = batches.first().map_or(0, bytes);
        let has_room = 2 * most as u64 <= self.memory;
        let mut now = Pages::zeroed(most)?;
        let mut next = Pages::zeroed(if has_room && batches.len() > 1 { most } else { 0 })?;
        let mut is_read = false;
        for (number, current) in batches.iter().enumerate() {
            if !is_read {
                read(current.clone(), &mut now[..bytes(current)]);
            }
            let following = batches.get(number + 1).filter(|_| has_room).cloned();
            let blocks: Vec<&[u8]> = now[..bytes(current)].chunks(width).collect();
            is_read = thread::scope(|scope| {
                let ahead = following.and_then(|blocks| {
                    let (read, next) = (&mut read, &mut next[..bytes(&blocks)]);
                    // If the system has no more threads, the batch is read when its turn comes.
                    let read = move || read(blocks, next);
                    thread::Builder::new().spawn_scoped(scope, read).ok()
                });
                let is_read = ahead.is_some();
                let coded = code(current.start as usize, &blocks);
                if let Some(Err(panic)) = ahead.map(thread::ScopedJoinHandle::join) {
                    std::panic::resume_unwind(panic);
                }
                coded.map(|()| is_read)
            })?;
            if is_read {
                std::mem::swap(&mut now, &mut next);
            }
        }
        Ok(())
    }

    /// Returns the blocks of each batch: whole chunks of the code.
    fn batches(&self) -> Vec<Range<u64>> {
        let (chunk, data) = (self.code.chunk() as u64, self.reading.geometry.data);
        let chunks = BATCH.min(self.memory) / (chunk * self.reading.width() as u64);
        let each = chunks.max(1) * chunk;
        let range = |start: u64| start..(start + each).min(data);
        (0..data).step_by(each as usize).map(range).collect()
    }
}
