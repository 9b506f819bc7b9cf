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
    PartCheck { object, part, place }.run(progress).await
}

/// A part that is checked.
struct PartCheck<'a> {
    object: &'a ShardedObject,
    part: usize,
    place: &'a Place,
}

impl PartCheck<'_> {
    async fn run(&self, progress: &(dyn Fn(u64) + Send + Sync)) -> Result<u64> {
        let ShardedObject { layout, length, digest, .. } = self.object;
        let total = self.object.file_bytes(self.part).ok_or_else(|| self.too_long())?;
        self.expect(0, &layout.front(self.part)?, "front header").await?;
        let segments = layout.segments(*length);
        let block = self.blocks(0..segments.min(1))?;
        let step = (STEP / (block.end - block.start).max(1)).max(1);
        let mut first = 0;
        while first < segments {
            let end = (first + step).min(segments);
            self.check_blocks(first..end).await?;
            let last = layout.segment_range(*length, end - 1).end;
            progress(last - layout.segment_range(*length, first).start);
            first = end;
        }
        let footer = layout.footer(self.part, *length, *digest)?;
        self.expect(total - footer.len() as u64, &footer, "footer").await?;
        Ok(total)
    }

    /// Checks that the file has certain bytes from `at` on.
    async fn expect(&self, at: u64, bytes: &[u8], what: &str) -> Result<()> {
        let read = self.place.read(at..at + bytes.len() as u64).await?;
        match *read == *bytes {
            true => Ok(()),
            false => Err(self.flaw(format!("the {what} differs from what was written"))),
        }
    }

    /// Checks the blocks of adjacent segments.
    async fn check_blocks(&self, segments: Range<u64>) -> Result<()> {
        let (layout, length) = (&self.object.layout, self.object.length);
        let range = self.blocks(segments.clone())?;
        let bytes = self.place.read(range.clone()).await?;
        for segment in segments {
            let one = self.blocks(segment..segment + 1)?;
            let (start, end) = (one.start - range.start, one.end - range.start);
            // A node that sends less than it was asked for sends no intact lanes.
            let block = bytes.get(start as usize..end as usize).unwrap_or_default();
            let intact = layout.intact_lanes(self.part, length, segment, block).len();
            if intact < layout.lanes(self.part).len() {
                return Err(self.flaw(format!("the block of segment {segment} fails its checksum")));
            }
        }
        Ok(())
    }

    fn blocks(&self, segments: Range<u64>) -> Result<Range<u64>> {
        let blocks = self.object.layout.blocks(self.part, self.object.length, segments);
        blocks.ok_or_else(|| self.too_long())
    }

    fn too_long(&self) -> Error {
        self.flaw("no file can be that long".to_owned())
    }

    fn flaw(&self, what: String) -> Error {
        Error::new(ErrorKind::Io, format!("{}: {what}", self.place.path))
    }
}
