//! Encoding the bytes of a stream, segment by segment, on several threads.

use std::io::Read;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use crate::error::{Error, Result};
use crate::object::crew::Crew;
use crate::object::format::Digest;
use crate::object::segment::Segment;

/// Encodes all bytes of `source` on `threads` threads, and returns their number and digest.
///
/// Each thread takes the memory of a segment from `next`, fills it, makes the parts in `parts`, and
/// hands it to `done`, with the number of the object's bytes in it. Segments are filled in order,
/// but threads that work at the same time may finish them in another order.
///
/// # Errors
/// If the source cannot be read ([`crate::error::ErrorKind::Io`]), or if `next` or `done` fails.
/// Then all threads stop.
pub fn encode_segments(
    source: impl Read + Send,
    parts: Range<usize>,
    threads: usize,
    next: impl Fn() -> Result<Segment> + Sync,
    done: impl Fn(Segment, usize) -> Result<()> + Sync,
) -> Result<(u64, Digest)> {
    let reading = Mutex::new(SourceReading { source, segments: 0, bytes: 0, ended: false });
    let hasher = Crew::run(threads.max(1), blake3::Hasher::new(), |crew| {
        while !crew.is_stopped() {
            let mut segment = next()?;
            let filled =
                reading.lock().unwrap_or_else(PoisonError::into_inner).fill(&mut segment)?;
            let Some(bytes) = filled else { break };
            crew.in_turn(segment.number(), |hasher| {
                segment.data(bytes).into_iter().for_each(|lane| _ = hasher.update(lane));
                Ok(())
            })?;
            segment.make(parts.clone())?;
            done(segment, bytes)?;
        }
        Ok(())
    })?;
    let reading = reading.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok((reading.bytes, Digest::new(hasher.finalize().into())))
}

/// A source, and the position that has been read.
struct SourceReading<R> {
    source: R,
    segments: u64,
    bytes: u64,
    ended: bool,
}

impl<R: Read> SourceReading<R> {
    /// Fills the next segment. Returns the number of bytes in it, or `None` if the source has
    /// ended.
    fn fill(&mut self, segment: &mut Segment) -> Result<Option<usize>> {
        if self.ended {
            return Ok(None);
        }
        // A source that fails counts as ended, so that no other thread reads it again: it may end
        // then, or go on behind the bytes that could not be read.
        self.ended = true;
        let bytes = segment.fill(self.segments, &mut self.source).map_err(|error| {
            let doing = format!("reading the source after {} bytes", self.bytes);
            Error::stream(doing, error).at_byte(self.bytes)
        })?;
        self.ended = bytes == 0;
        self.segments += 1;
        self.bytes += bytes as u64;
        Ok((bytes > 0).then_some(bytes))
    }
}
