//! The memory of a call, and what runs over it.

#![allow(unsafe_code)]

use std::mem::MaybeUninit;
use std::ops::Range;

use crate::limits::{LINES_ON_STACK, NONTEMPORAL_FROM, POINTERS_ON_STACK};
use crate::plan::machine::LINE;

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
    /// The number of bytes, or `None` if the buffer is absent.
    pub(crate) fn len(&self) -> Option<usize> {
        match self {
            Self::Absent => None,
            Self::Source(bytes) => Some(bytes.len()),
            Self::Target(bytes) => Some(bytes.len()),
        }
    }

    /// The same buffer for one call.
    pub(crate) fn reborrow(&mut self) -> Buffer<'_> {
        match self {
            Self::Absent => Buffer::Absent,
            Self::Source(bytes) => Buffer::Source(bytes),
            Self::Target(bytes) => Buffer::Target(bytes),
        }
    }

    /// Where the bytes begin; null where the buffer is absent.
    pub(crate) fn pointer(&mut self) -> *mut u8 {
        match self {
            Self::Absent => std::ptr::null_mut(),
            Self::Source(bytes) => bytes.as_ptr().cast_mut(),
            Self::Target(bytes) => bytes.as_mut_ptr(),
        }
    }
}

/// How results are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stores {
    /// By non-temporal stores, which bypass the cache, in calls whose buffers together have more
    /// bytes than this; else into the cache.
    PastCacheFrom(usize),
    /// Into the cache.
    Cached,
    /// By non-temporal stores, where the kernel can and every line is written whole: buffers aligned
    /// to 64 bytes and strips a multiple of that.
    PastCache,
}

impl Default for Stores {
    fn default() -> Self {
        Self::PastCacheFrom(NONTEMPORAL_FROM)
    }
}

impl Stores {
    /// Whether a call whose buffers have `bytes` together uses non-temporal stores.
    pub fn are_nontemporal(self, bytes: usize) -> bool {
        match self {
            Self::PastCacheFrom(from) => bytes > from,
            Self::Cached => false,
            Self::PastCache => true,
        }
    }
}

/// A program in the form that one kernel runs. A kernel makes one only where the processor has
/// the kernel's features.
pub(crate) trait PreparedKernel: Send + Sync {
    /// Runs over a range of stripes.
    ///
    /// # Safety
    /// For every buffer that the program reads or writes, `memory` holds a pointer that is valid
    /// for at least `stripes.end` strips (for writes too where the program writes it); within the
    /// strips of `stripes` no one else writes meanwhile what the program touches by its footprint,
    /// nor reads what it writes.
    unsafe fn run(&self, memory: &Memory<'_>, stripes: Range<usize>);

    /// Why another kernel had to serve, if that has happened.
    fn fallback(&self) -> Option<String> {
        None
    }
}

/// The buffers of one call as pointers; null where absent.
#[derive(Clone, Copy)]
pub(crate) struct Memory<'a> {
    pub(crate) pointers: &'a [*mut u8],
    /// Whether results are stored by non-temporal stores.
    pub(crate) nontemporal: bool,
}

// SAFETY: the pointers are only used under the contract of `PreparedKernel::run`, which gives every
// thread stripes or cells of its own.
unsafe impl Send for Memory<'_> {}
// SAFETY: as above.
unsafe impl Sync for Memory<'_> {}

impl Memory<'_> {
    pub(crate) fn pointer(&self, buffer: usize) -> *mut u8 {
        self.pointers[buffer]
    }
}

/// Pointers to the buffers of a call: on the stack, unless there are many.
pub(crate) struct Pointers {
    stack: [*mut u8; POINTERS_ON_STACK],
    heap: Vec<*mut u8>,
    count: usize,
}

impl Pointers {
    /// `count` null pointers.
    pub(crate) fn null(count: usize) -> Self {
        let heap =
            if count > POINTERS_ON_STACK { vec![std::ptr::null_mut(); count] } else { vec![] };
        Self { stack: [std::ptr::null_mut(); POINTERS_ON_STACK], heap, count }
    }

    pub(crate) fn slice(&mut self) -> &mut [*mut u8] {
        if self.heap.is_empty() { &mut self.stack[..self.count] } else { &mut self.heap }
    }
}

/// A cache line of memory for temporaries, or for what parts keep for each other.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Line(pub(crate) [u8; LINE]);

/// Memory that a kernel may write and then read: on the stack, unless it is much.
pub(crate) struct Scratch {
    stack: [MaybeUninit<Line>; LINES_ON_STACK],
    heap: Box<[MaybeUninit<Line>]>,
}

impl Scratch {
    /// Room for `bytes` bytes, uninitialised.
    pub(crate) fn new(bytes: usize) -> Self {
        let lines = bytes.div_ceil(LINE);
        let on_heap = if lines > LINES_ON_STACK { lines } else { 0 };
        Self {
            stack: [const { MaybeUninit::uninit() }; LINES_ON_STACK],
            heap: Box::new_uninit_slice(on_heap),
        }
    }

    /// The first byte, aligned to a cache line.
    pub(crate) fn start(&mut self) -> *mut u8 {
        let lines = if self.heap.is_empty() { &mut self.stack[..] } else { &mut self.heap };
        lines.as_mut_ptr().cast()
    }
}
