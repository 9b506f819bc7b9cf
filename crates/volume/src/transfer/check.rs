//! Reading one part completely, to see that it is as it was written.

use std::ops::Range;

use paritas_store::error::{Error, ErrorKind, Result};

use crate::transfer::{Place, ShardedObject};

/// Bytes that are read at a time, if blocks are not longer.
const STEP: u64 = 1 << 20;

/// Reads all of a part, and checks its headers and every block. Tells `progress` how many bytes of
/// the object the blocks stand for. Returns the number of bytes that were read.
///
/// # Errors
/// If anything differs from what was written, or cannot be read. The first flaw is named.
pub(crate) async fn check(
    object: &ShardedObject,
    part: usize,
    place: &Place,
    progress: &(dyn Fn(u64) + Send + Sync),
) -> Result<u64> {
    let ShardedObject { layout, length, digest, .. } = object;
    let total = object.file_bytes(part).ok_or_else(|| too_long(place))?;
    let (front, footer) = (layout.front(part)?, layout.footer(part, *length, *digest)?);
    expect(place, 0, &front, "front header").await?;
    let segments = layout.segments(*length);
    let block = blocks(object, part, place, 0..segments.min(1))?;
    let step = (STEP / (block.end - block.start).max(1)).max(1);
    let mut first = 0;
    while first < segments {
        let end = (first + step).min(segments);
        check_blocks(object, part, place, first..end).await?;
        let last = layout.segment_range(*length, end - 1).end;
        progress(last - layout.segment_range(*length, first).start);
        first = end;
    }
    expect(place, total - footer.len() as u64, &footer, "footer").await?;
    Ok(total)
}

/// Checks that a file has certain bytes from `at` on.
async fn expect(place: &Place, at: u64, bytes: &[u8], what: &str) -> Result<()> {
    match *place.read(at..at + bytes.len() as u64).await? == *bytes {
        true => Ok(()),
        false => Err(flaw(place, format!("the {what} differs from what was written"))),
    }
}

/// Checks the blocks of adjacent segments.
async fn check_blocks(
    object: &ShardedObject,
    part: usize,
    place: &Place,
    segments: Range<u64>,
) -> Result<()> {
    let (layout, range) = (&object.layout, blocks(object, part, place, segments.clone())?);
    let bytes = place.read(range.clone()).await?;
    for segment in segments {
        let one = blocks(object, part, place, segment..segment + 1)?;
        let (start, end) = (one.start - range.start, one.end - range.start);
        // A node that sends less than it was asked for sends no intact lanes.
        let block = bytes.get(start as usize..end as usize).unwrap_or_default();
        let intact = layout.intact_lanes(part, object.length, segment, block).len();
        if intact < layout.lanes(part).len() {
            let what = format!("the block of segment {segment} fails its checksum");
            return Err(flaw(place, what));
        }
    }
    Ok(())
}

/// Returns where the blocks of adjacent segments are in the file of a part.
fn blocks(
    object: &ShardedObject,
    part: usize,
    place: &Place,
    segments: Range<u64>,
) -> Result<Range<u64>> {
    object.layout.blocks(part, object.length, segments).ok_or_else(|| too_long(place))
}

fn too_long(place: &Place) -> Error {
    flaw(place, "no file can be that long".to_owned())
}

fn flaw(place: &Place, what: String) -> Error {
    Error::new(ErrorKind::Io, format!("{}: {what}", place.path))
}
