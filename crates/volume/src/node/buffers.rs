//! Memory for reading, which is reused.
//!
//! Fresh memory costs as much as reading into it: the system clears each page before it hands it
//! out. A reader asks for pieces of one length over and over, so the memory of a piece that is no
//! longer held is used for the next one.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

/// Largest number of pieces of memory that wait to be used again.
const MOST_IDLE: usize = 8;

/// Largest number of bytes of all pieces of memory that wait to be used again.
const MOST_IDLE_BYTES: usize = 32 << 20;

/// The least length of a piece of memory that is kept. Shorter pieces cost little to allocate.
const LEAST: usize = 64 << 10;

/// Pieces of memory that wait to be used again.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    idle: Mutex<Vec<Vec<u8>>>,
}

impl Buffers {
    /// Returns empty memory with room for `length` bytes, or the reason why there is none.
    pub fn take(&self, length: usize) -> Result<Vec<u8>, std::collections::TryReserveError> {
        let fits = |buffer: &Vec<u8>| (length..=2 * length).contains(&buffer.capacity());
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = idle.iter().position(fits) {
            return Ok(idle.swap_remove(at));
        }
        drop(idle);
        let mut fresh = Vec::new();
        fresh.try_reserve_exact(length)?;
        Ok(fresh)
    }

    /// Hands out bytes that were read. When the last holder drops them, their memory can be used
    /// again.
    pub fn lend(self: &Arc<Self>, content: Vec<u8>) -> Bytes {
        if content.len() < LEAST {
            return content.into();
        }
        Bytes::from_owner(LentBuffer { content, home: Arc::clone(self) })
    }
}

struct LentBuffer {
    content: Vec<u8>,
    home: Arc<Buffers>,
}

impl AsRef<[u8]> for LentBuffer {
    fn as_ref(&self) -> &[u8] {
        &self.content
    }
}

impl Drop for LentBuffer {
    fn drop(&mut self) {
        let mut idle = self.home.idle.lock().unwrap_or_else(PoisonError::into_inner);
        self.content.clear();
        idle.push(std::mem::take(&mut self.content));
        let bytes = |idle: &[Vec<u8>]| idle.iter().map(Vec::capacity).sum::<usize>();
        while idle.len() > MOST_IDLE || bytes(&idle) > MOST_IDLE_BYTES {
            idle.swap_remove(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_bounded_in_number_and_bytes() {
        for (length, most) in [(LEAST, MOST_IDLE), (10 << 20, 3), (MOST_IDLE_BYTES + 1, 0)] {
            let buffers = Arc::new(Buffers::default());
            let lend = |_| {
                let mut content = buffers.take(length).unwrap();
                content.resize(length, 1);
                buffers.lend(content)
            };
            let lent: Vec<Bytes> = (0..MOST_IDLE + 2).map(lend).collect();
            drop(lent);
            assert_eq!(buffers.idle.lock().unwrap().len(), most, "{length}");
        }
    }
}
