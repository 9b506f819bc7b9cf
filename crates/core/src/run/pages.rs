//! Memory for whole objects and their blocks, in large pages where the system has them.
//!
//! The system hands out newly mapped memory page by page, when each page is first touched. With
//! pages of 4 KiB this takes longer than a decoder needs to fill them: 70 ms for 128 MiB, which are
//! decoded in 25 ms. With pages of 2 MiB it takes 13 ms, little more than clearing the memory.
//! Large pages also save the processor's address translations when a thousand blocks are written
//! side by side. Linux gives large pages on request (`MADV_HUGEPAGE`). On other systems, and if
//! Linux has no free large pages, the pages are ordinary ones. WebAssembly has no pages to map, so
//! there the bytes come from the allocator.

use std::fmt;
use std::io;
use std::ops::{Deref, DerefMut};

#[cfg(not(target_family = "wasm"))]
use memmap2::MmapMut;

use crate::error::{Error, Result};

/// Bytes of a large page on the usual systems. Smaller allocations do not request large pages.
const LARGE_PAGE: usize = 2 << 20;

/// Bytes in memory that is mapped directly from the system. They are zero at first, and the memory
/// is returned when the value is dropped. They behave like a slice: their length is fixed.
///
/// ```
/// let mut pages = paritas::Pages::zeroed(10_000_000)?;
/// pages[..4].copy_from_slice(b"2004");
/// assert_eq!((pages.len(), &pages[..6]), (10_000_000, &b"2004\0\0"[..]));
/// # Ok::<(), paritas::Error>(())
/// ```
pub struct Pages {
    map: Mapping,
    bytes: usize,
}

#[cfg(not(target_family = "wasm"))]
type Mapping = MmapMut;
#[cfg(target_family = "wasm")]
type Mapping = Vec<u8>;

impl Pages {
    /// Maps `bytes` zero bytes. The system provides each page when it is first touched.
    ///
    /// # Errors
    /// If the system lacks that much memory ([`crate::ErrorKind::Memory`]); an allocator would
    /// abort instead.
    pub fn zeroed(bytes: usize) -> Result<Self> {
        // A mapping cannot be empty.
        let map = map(bytes.max(1)).map_err(|error| Error::memory(bytes, error))?;
        ask_for_large_pages(&map);
        Ok(Self { map, bytes })
    }
}

/// Maps zero bytes.
#[cfg(not(target_family = "wasm"))]
fn map(bytes: usize) -> io::Result<Mapping> {
    MmapMut::map_anon(bytes)
}

/// Allocates zero bytes.
#[cfg(target_family = "wasm")]
fn map(bytes: usize) -> io::Result<Mapping> {
    let mut memory = Vec::new();
    memory.try_reserve_exact(bytes)?;
    memory.resize(bytes, 0);
    Ok(memory)
}

/// Asks for large pages. A system that refuses has pages of one size only.
#[cfg(target_os = "linux")]
fn ask_for_large_pages(map: &Mapping) {
    if map.len() >= LARGE_PAGE {
        let _ = map.advise(memmap2::Advice::HugePage);
    }
}

/// Does nothing: other systems offer no way to ask, or need none.
#[cfg(not(target_os = "linux"))]
fn ask_for_large_pages(map: &Mapping) {
    let _ = map.len() >= LARGE_PAGE;
}

impl Deref for Pages {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.map[..self.bytes]
    }
}

impl DerefMut for Pages {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.map[..self.bytes]
    }
}

impl AsRef<[u8]> for Pages {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn pages_are_bytes_of_any_number() {
        for bytes in [0, 1, 4095, 4096, 4097, LARGE_PAGE - 1, LARGE_PAGE, 3 * LARGE_PAGE + 1] {
            let mut pages = Pages::zeroed(bytes).unwrap();
            assert_eq!(pages.len(), bytes);
            assert!(pages.iter().all(|&byte| byte == 0));
            pages.fill(7);
            assert!(pages.as_ref().iter().all(|&byte| byte == 7));
        }
    }

    #[test]
    fn memory_that_the_system_lacks_is_refused() {
        let error = Pages::zeroed(usize::MAX / 2).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Memory);
        assert!(error.to_string().contains(&(usize::MAX / 2).to_string()), "{error}");
        assert_eq!(error.expected(), Some(usize::MAX as u64 / 2));
        assert!(error.io_kind().is_some());
        let source = std::error::Error::source(&error).unwrap().downcast_ref::<io::Error>();
        assert!(source.is_some());
        #[cfg(not(target_family = "wasm"))]
        assert!(source.is_some_and(|source| source.raw_os_error().is_some()));
    }
}
