//! Executable memory: the only place that maps any.
//!
//! Pages are written while they are writable, then made executable and no longer writable; they
//! are never both. Where the system forbids executable pages, mapping fails and the caller falls
//! back to kernels that need none.

use std::io;

use memmap2::{Mmap, MmapMut};

/// Machine code in pages that can be executed and read.
pub(crate) struct ExecutableMemory(Mmap);

impl ExecutableMemory {
    /// Copies machine code to executable pages.
    ///
    /// # Errors
    /// When the system refuses to map memory or to make it executable.
    pub(crate) fn new(code: &[u8]) -> io::Result<Self> {
        let mut writable = MmapMut::map_anon(code.len())?;
        writable.copy_from_slice(code);
        writable.make_exec().map(Self)
    }

    /// The first instruction.
    pub(crate) fn start(&self) -> *const u8 {
        self.0.as_ptr()
    }
}
