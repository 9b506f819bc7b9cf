//! Kernels: what runs a program, and the memory it runs on.
//!
//! A kernel is chosen by [`select`](crate::run::select) and makes a `Compiled` of a
//! [`Program`](crate::run::program::Program). The safe door to both is `Executable::run`: it checks the buffers of a call
//! against the program, once, and everything below may rely on it.
//!
//! The tiled kernels (`generic`) are one algorithm over the `vector::Vector` trait; each
//! instruction set is a thin facade over it.

#![allow(unsafe_code)]

pub(crate) mod blocks;
pub(crate) mod crew;
mod generic;
pub(crate) mod vector;

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
#[cfg(target_arch = "aarch64")]
pub(crate) mod neon;
pub(crate) mod scalar;
#[cfg(target_arch = "x86_64")]
pub(crate) mod sse2;

use std::collections::HashSet;
use std::mem::MaybeUninit;
use std::ops::Range;

use crate::error::{Error, Result};
use crate::run::parallel::{self, Threads};
use crate::run::program::{Footprint, Location};

/// One buffer of a call: consecutive strips of a node, or of a lane of a node.
#[derive(Debug, Default)]
pub enum Buffer<'a> {
    /// Neither at hand nor wanted.
    #[default]
    Absent,
    /// At hand, to be read.
    Source(&'a [u8]),
    /// To be written, and where the code puts data and parity on one node, also read.
    Target(&'a mut [u8]),
}

impl Buffer<'_> {
    fn len(&self) -> Option<usize> {
        match self {
            Self::Absent => None,
            Self::Source(bytes) => Some(bytes.len()),
            Self::Target(bytes) => Some(bytes.len()),
        }
    }
}

/// How results are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stores {
    /// Past the cache in calls whose buffers together have more bytes than this, else into the cache.
    PastCacheFrom(usize),
    /// Into the cache.
    Cached,
    /// Past the cache, where the kernel can and every line is written whole: buffers aligned to 64
    /// bytes and strips a multiple of that.
    PastCache,
}

/// The size of a call's buffers, together, beyond which stores bypass the cache unless a machine's
/// tuning says otherwise.
pub(crate) const CACHE_BYTES: usize = 16 << 20;

impl Default for Stores {
    fn default() -> Self {
        Self::PastCacheFrom(CACHE_BYTES)
    }
}

/// A program in the form that one kernel runs. A kernel makes one only where the processor has
/// the kernel's features.
pub(crate) trait Compiled: Send + Sync {
    /// Runs over a range of stripes.
    ///
    /// # Safety
    /// For every buffer that the program reads or writes, `memory` holds a pointer that is valid
    /// for at least `stripes.end` strips (for writes too where the program writes it); within the
    /// strips of `stripes` no one else writes meanwhile what the program touches by its footprint,
    /// nor reads what it writes.
    unsafe fn run(&self, memory: &Memory, stripes: Range<usize>);

    /// Why another kernel had to serve, if that has happened.
    fn fallback(&self) -> Option<String> {
        None
    }
}

/// The buffers of one call as pointers; null where absent.
pub(crate) struct Memory {
    pointers: Vec<*mut u8>,
    /// The stripes of the whole call, of which one thread may run a part.
    stripes: usize,
    stores: Stores,
}

// SAFETY: the pointers are only used under the contract of `Compiled::run`, which gives every
// thread stripes or cells of its own.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    fn new(buffers: &mut [Buffer<'_>], stripes: usize, stores: Stores) -> Self {
        let pointer = |buffer: &mut Buffer<'_>| match buffer {
            Buffer::Absent => std::ptr::null_mut(),
            Buffer::Source(bytes) => bytes.as_ptr().cast_mut(),
            Buffer::Target(bytes) => bytes.as_mut_ptr(),
        };
        Self { pointers: buffers.iter_mut().map(pointer).collect(), stripes, stores }
    }

    /// The same with more buffers, whose strips for stripe `first` begin at these addresses.
    fn with(&self, first: usize, more: impl Iterator<Item = (*mut u8, usize)>) -> Self {
        let more = more.map(|(start, strip)| start.wrapping_sub(first * strip));
        let pointers = self.pointers.iter().copied().chain(more).collect();
        Self { pointers, ..*self }
    }

    pub(crate) fn pointer(&self, buffer: usize) -> *mut u8 {
        self.pointers[buffer]
    }

    /// Whether results are to be stored past the cache, when a stripe of all buffers has so many
    /// bytes.
    pub(crate) fn past_cache(&self, stripe: usize) -> bool {
        match self.stores {
            Stores::PastCacheFrom(bytes) => self.stripes * stripe > bytes,
            Stores::Cached => false,
            Stores::PastCache => true,
        }
    }
}

/// How one buffer of a call is used.
#[derive(Debug, Clone, Copy)]
struct BufferUse {
    /// The bytes of a strip.
    strip: usize,
    read: bool,
    written: bool,
}

/// Compiled programs behind a safe interface: one, or several that share out the work of a stripe.
pub(crate) struct Executable {
    /// Of the buffers of a call.
    uses: Vec<BufferUse>,
    /// The bytes of a strip of each buffer that is none of the call's.
    kept: Vec<usize>,
    parts: Vec<Part>,
    turns: Turns,
}

/// How parts follow each other, where there are several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turns {
    /// Each is run over all stripes, by a thread of its own if there are threads.
    SideBySide,
    /// Every thread has stripes of its own and runs all parts over them in turn, some stripes at a time
    /// that stay in the cache meanwhile. The last so many buffers are none of the call's: they hold what
    /// parts leave for later ones.
    ByTiles {
        /// The number of these buffers.
        kept: usize,
    },
}

/// The bytes of buffers that parts run over in turn: a level-two cache of today. Smaller tiles do not pay for
/// the parts' code, which is fetched anew for each (128 KiB: 64+16 at 7.0 GB/s instead of 10.5).
const TILE_BYTES: usize = 1 << 20;

/// A compiled program and what it touches.
struct Part {
    footprint: Footprint,
    compiled: Box<dyn Compiled>,
    /// Whether a later part reads what this one writes, so that it had better stay in the cache.
    feeds: bool,
}

/// A cache line of memory for temporaries, or for what parts keep for each other.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Line(pub(crate) [u8; LINE]);

/// The bytes of a cache line.
const LINE: usize = 64;

impl Executable {
    /// One program, of which `footprint` tells all that it touches.
    pub(crate) fn new(footprint: Footprint, compiled: Box<dyn Compiled>) -> Self {
        let parts = vec![Part { footprint, compiled, feeds: false }];
        Self { uses: buffer_uses(&parts), kept: Vec::new(), parts, turns: Turns::SideBySide }
    }

    /// Several for the same buffers.
    ///
    /// # Errors
    /// When their buffers differ, side by side one writes what another touches, or in turn one reads of the
    /// kept buffers what no earlier one writes.
    pub(crate) fn of_parts(executables: Vec<Self>, turns: Turns) -> Result<Self> {
        let mut parts: Vec<Part> = executables.into_iter().flat_map(|one| one.parts).collect();
        let mut uses = buffer_uses(&parts);
        let kept = match turns {
            Turns::SideBySide => 0,
            Turns::ByTiles { kept } => kept.min(uses.len()),
        };
        let kept = uses.split_off(uses.len() - kept);
        let mut left: HashSet<Location> = HashSet::new();
        for number in 0..parts.len() {
            let (Part { footprint, .. }, later) = (&parts[number], &parts[number + 1..]);
            let fits = |other: &Part| other.footprint.strips == footprint.strips;
            let meets = |other: &Part| !other.footprint.is_apart_from(footprint);
            let lacks = |cell: &Location| cell.buffer >= uses.len() && !left.contains(cell);
            if !later.iter().all(fits)
                || turns == Turns::SideBySide && later.iter().any(meets)
                || footprint.read.iter().any(lacks)
            {
                return Err(Error::length(format!("part {number} of the work meets another")));
            }
            left.extend(&footprint.written);
            parts[number].feeds = later.iter().any(|other| footprint.feeds(&other.footprint));
        }
        Ok(Self { uses, kept: kept.iter().map(|used| used.strip).collect(), parts, turns })
    }

    /// Why another kernel had to serve than the one that was to, if that has happened.
    pub(crate) fn fallback(&self) -> Option<String> {
        self.parts.iter().find_map(|part| part.compiled.fallback())
    }

    /// Runs the program over all stripes of the buffers, on such threads.
    ///
    /// # Errors
    /// When a buffer that the program needs is absent, one that it writes is only a source, or the
    /// buffers do not all hold the same whole number of strips.
    pub(crate) fn run(
        &self,
        buffers: &mut [Buffer<'_>],
        threads: Threads,
        stores: Stores,
    ) -> Result<()> {
        let stripes = self.check(buffers)?;
        let bytes = stripes * self.uses.iter().map(|buffer| buffer.strip).sum::<usize>();
        let memory = Memory::new(buffers, stripes, stores);
        let run = |part: &Part, range: Range<usize>| {
            // SAFETY: `check` found every buffer present, long enough for all stripes and of the
            // right kind, and exclusive borrows stand behind all that is written; there are none but
            // the call's. Threads get disjoint stripes, or parts of which `of_parts` has seen that none
            // writes what another touches.
            unsafe { part.compiled.run(&memory, range) };
        };
        match (&self.parts[..], self.turns) {
            ([part], _) if self.kept.is_empty() => {
                parallel::over_stripes(stripes, bytes, threads, |range| run(part, range));
            }
            (_, Turns::ByTiles { .. }) => {
                let run = |range| self.run_by_tiles(&memory, range);
                parallel::over_stripes(stripes, bytes, threads, run);
            }
            (parts, Turns::SideBySide) => {
                parallel::over_parts(parts, bytes, threads, |part| run(part, 0..stripes));
            }
        }
        Ok(())
    }

    /// Runs all parts in turn over stripes of memory that [`Executable::check`] has seen.
    fn run_by_tiles(&self, memory: &Memory, range: Range<usize>) {
        let stripe: usize =
            self.uses.iter().map(|used| used.strip).chain(self.kept.iter().copied()).sum();
        let tile = (TILE_BYTES / stripe.max(1)).clamp(1, range.len().max(1));
        let lines = |strip: &usize| (tile * strip).div_ceil(LINE);
        let mut kept: Vec<Box<[MaybeUninit<Line>]>> =
            self.kept.iter().map(|strip| Box::new_uninit_slice(lines(strip))).collect();
        for start in range.clone().step_by(tile) {
            let tile = start..range.end.min(start + tile);
            let kept = kept.iter_mut().map(|lines| lines.as_mut_ptr().cast());
            let memory = memory.with(start, kept.zip(self.kept.iter().copied()));
            let cached =
                Memory { stores: Stores::Cached, pointers: memory.pointers.clone(), ..memory };
            for part in &self.parts {
                let memory = if part.feeds { &cached } else { &memory };
                // SAFETY: `check` found every buffer of the call present, long enough and of the right
                // kind, and exclusive borrows stand behind all that is written. The kept ones are this
                // thread's, have `tile` strips, and `of_parts` has seen that they are written before they
                // are read. Threads get disjoint stripes.
                unsafe { part.compiled.run(memory, tile.clone()) };
            }
        }
    }

    fn check(&self, buffers: &[Buffer<'_>]) -> Result<usize> {
        let expected = self.uses.len();
        if buffers.len() != expected {
            let given = buffers.len();
            return Err(Error::length(format!("{given} buffers are given, {expected} are needed")));
        }
        let mut stripes = None;
        for (number, (buffer, used)) in buffers.iter().zip(&self.uses).enumerate() {
            let &BufferUse { strip, read, written } = used;
            if !read && !written {
                continue;
            }
            let length = buffer
                .len()
                .ok_or_else(|| Error::length(format!("buffer {number} is needed but absent")))?;
            if written && !matches!(buffer, Buffer::Target(_)) {
                return Err(Error::length(format!("buffer {number} is to be written")));
            }
            let whole = length.is_multiple_of(strip).then_some(length / strip);
            match (whole, *stripes.get_or_insert(length / strip)) {
                (Some(count), first) if count == first => {}
                (_, first) => {
                    return Err(Error::length(format!(
                        "buffer {number} has {length} bytes, not {first} strips of {strip}"
                    )));
                }
            }
        }
        Ok(stripes.unwrap_or(0))
    }
}

/// What the parts do with each buffer, together.
fn buffer_uses(parts: &[Part]) -> Vec<BufferUse> {
    let strips = parts.first().map_or(&[][..], |part| &part.footprint.strips);
    let unused = |&strip: &usize| BufferUse { strip, read: false, written: false };
    let mut uses: Vec<BufferUse> = strips.iter().map(unused).collect();
    for Part { footprint, .. } in parts {
        footprint.read.iter().for_each(|cell: &Location| uses[cell.buffer].read = true);
        footprint.written.iter().for_each(|cell| uses[cell.buffer].written = true);
    }
    uses
}
