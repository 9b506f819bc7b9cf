//! Passes regions of a caller's memory to programs as shards.

use std::slice;

use paritas::{Prepared, Result};
use smallvec::SmallVec;

/// Largest number of sources, and of targets, for which a call allocates nothing.
const ON_STACK: usize = 64;

/// The regions of a call, all of one length.
#[derive(Debug)]
pub struct Regions {
    bytes: usize,
    sources: SmallVec<[*const u8; ON_STACK]>,
    targets: SmallVec<[*mut u8; ON_STACK]>,
}

struct ReadRegion(*const u8, usize);
struct WrittenRegion(*mut u8, usize);

impl AsRef<[u8]> for ReadRegion {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the caller of `Regions::new` promised that the region is valid. `Regions::run`
        // never passes a target that overlaps it to a program.
        unsafe { slice::from_raw_parts(self.0, self.1) }
    }
}

impl AsMut<[u8]> for WrittenRegion {
    fn as_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above; no other region of the call overlaps it.
        unsafe { slice::from_raw_parts_mut(self.0, self.1) }
    }
}

impl Regions {
    /// Takes the regions that a call reads (`sources`) and writes (`targets`), each of `bytes`
    /// bytes.
    ///
    /// # Safety
    /// Until the returned value is dropped, all pointers are valid for `bytes` bytes (the targets
    /// for writes), and nobody else writes to a region or reads a target.
    pub unsafe fn new(
        bytes: usize,
        sources: impl IntoIterator<Item = *const u8>,
        targets: impl IntoIterator<Item = *mut u8>,
    ) -> Self {
        Self {
            bytes,
            sources: sources.into_iter().collect(),
            targets: targets.into_iter().collect(),
        }
    }

    /// Runs a program. The replaced libraries allow targets to overlap sources; the program reads
    /// such sources from copies.
    ///
    /// # Errors
    /// If the program does not suit the number or the length of the regions. Then nothing is
    /// written.
    pub fn run(&self, program: &Prepared) -> Result<()> {
        if !self.are_apart() {
            return self.run_beside(program);
        }
        let mut copies: Vec<Vec<u8>> = Vec::new();
        let source = |&start: &*const u8| match self.is_written(start) {
            false => ReadRegion(start, self.bytes),
            true => {
                // SAFETY: `new` promised that the region is valid; no program runs.
                copies.push(unsafe { slice::from_raw_parts(start, self.bytes) }.to_vec());
                ReadRegion(copies[copies.len() - 1].as_ptr(), self.bytes)
            }
        };
        let sources: SmallVec<[ReadRegion; ON_STACK]> = self.sources.iter().map(source).collect();
        let target = |&start: &*mut u8| WrittenRegion(start, self.bytes);
        let mut targets: SmallVec<[WrittenRegion; ON_STACK]> =
            self.targets.iter().map(target).collect();
        program.run(&sources, &mut targets)
    }

    /// Runs a program on copies of the targets, then writes the copies to the targets in order.
    /// Where targets overlap, the last one wins.
    fn run_beside(&self, program: &Prepared) -> Result<()> {
        let region = |&start: &*mut u8| {
            // SAFETY: `new` promised that the region is valid; no program runs.
            unsafe { slice::from_raw_parts(start, self.bytes) }.to_vec()
        };
        let mut beside: Vec<Vec<u8>> = self.targets.iter().map(region).collect();
        let sources: Vec<ReadRegion> =
            self.sources.iter().map(|&start| ReadRegion(start, self.bytes)).collect();
        program.run(&sources, &mut beside)?;
        for (&target, made) in self.targets.iter().zip(&beside) {
            // SAFETY: `new` promised that the region is valid for writes; `made` has the same
            // length.
            unsafe { target.copy_from_nonoverlapping(made.as_ptr(), self.bytes) };
        }
        Ok(())
    }

    /// Whether a target overlaps another region of the call.
    pub fn overlap_somewhere(&self) -> bool {
        !self.are_apart() || self.sources.iter().any(|&source| self.is_written(source))
    }

    fn is_written(&self, source: *const u8) -> bool {
        self.targets.iter().any(|&target| self.overlap(source, target))
    }

    fn overlap(&self, a: *const u8, b: *const u8) -> bool {
        (a as usize).abs_diff(b as usize) < self.bytes
    }

    fn are_apart(&self) -> bool {
        self.targets.iter().enumerate().all(|(number, &target)| {
            self.targets[..number].iter().all(|&other| !self.overlap(other, target))
        })
    }
}
