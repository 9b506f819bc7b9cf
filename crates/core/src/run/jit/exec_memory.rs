//! Executable memory: the only place that maps any.
//!
//! Pages are written while they are writable, then made executable and no longer writable; they
//! are never both. Where the system forbids executable pages, mapping fails and the caller falls
//! back to kernels that need none.
//!
//! On x86-64, the processor executes the bytes that were last written. AArch64 has a separate
//! instruction cache. The written lines must be cleaned from the data cache, and their addresses
//! dropped from the instruction cache, once, for all cores. Then each core must drop the
//! instructions that it has prefetched, before it executes the new ones (Arm Architecture Reference
//! Manual, "Concurrent modification and execution of instructions"). dynasm-rs has functions for
//! both.

use std::io;

use memmap2::{Mmap, MmapMut};

/// Machine code in pages that can be executed and read.
pub(crate) struct ExecutableMemory(Mmap);

impl ExecutableMemory {
    /// Copies machine code to executable pages.
    ///
    /// # Errors
    /// If the system refuses to map memory or to make it executable.
    pub(crate) fn new(code: &[u8]) -> io::Result<Self> {
        let mut writable = MmapMut::map_anon(code.len())?;
        writable.copy_from_slice(code);
        let executable = writable.make_exec()?;
        #[cfg(target_arch = "aarch64")]
        dynasmrt::cache_control::synchronize_icache(&executable);
        Ok(Self(executable))
    }

    /// Returns the first instruction, for this thread to execute.
    pub(crate) fn start(&self) -> *const u8 {
        #[cfg(target_arch = "aarch64")]
        dynasmrt::cache_control::prepare_for_execution(&self.0);
        self.0.as_ptr()
    }
}
