//! Reading one part completely, to see that it is as it was written.

use paritas_shards::Digest;
use paritas_shards::blocks::ObjectLayout;
use paritas_store::error::{Error, ErrorKind, Result};

use crate::transfer::Place;

/// Bytes that are read at a time, if blocks are not longer.
const STEP: u64 = 1 << 20;

/// Reads all of a part, and checks its headers and every block. Tells `progress` how many bytes of
/// the object the blocks stand for. Returns the number of bytes that were read.
///
/// # Errors
/// If anything differs from what was written, or cannot be read. The first flaw is named.
pub(crate) async fn check(
    layout: &ObjectLayout,
    length: u64,
    digest: Digest,
    part: usize,
    place: &Place,
    progress: &(dyn Fn(u64) + Send + Sync),
) -> Result<u64> {
    let flaw = |what: String| Error::new(ErrorKind::Io, format!("{}: {what}", place.path));
    let too_long = || flaw("no file can be that long".to_owned());
    let total = layout.file_bytes(part, length).ok_or_else(too_long)?;
    let front = layout.front(part)?;
    let start = place.node.read(&place.path, Some(0..front.len() as u64)).await?;
    if *start != *front {
        return Err(flaw("the front header differs from what was written".to_owned()));
    }
    let segments = layout.segments(length);
    let block = layout.blocks(part, length, 0..segments.min(1)).ok_or_else(too_long)?;
    let step = (STEP / (block.end - block.start).max(1)).max(1);
    let mut first = 0;
    while first < segments {
        let end = (first + step).min(segments);
        let range = layout.blocks(part, length, first..end).ok_or_else(too_long)?;
        let bytes = place.node.read(&place.path, Some(range.clone())).await?;
        for segment in first..end {
            let one = layout.blocks(part, length, segment..segment + 1).ok_or_else(too_long)?;
            let (start, end) = (one.start - range.start, one.end - range.start);
            // A node that sends less than it was asked for sends no intact lanes.
            let block = bytes.get(start as usize..end as usize).unwrap_or_default();
            let intact = layout.intact_lanes(part, length, segment, block).len();
            if intact < layout.lanes(part).len() {
                return Err(flaw(format!("the block of segment {segment} fails its checksum")));
            }
        }
        let last = layout.segment_range(length, end - 1).end;
        progress(last - layout.segment_range(length, first).start);
        first = end;
    }
    let footer = layout.footer(part, length, digest)?;
    let end = place.node.read(&place.path, Some(total - footer.len() as u64..total)).await?;
    if *end != *footer {
        return Err(flaw("the footer differs from what was written".to_owned()));
    }
    Ok(total)
}
