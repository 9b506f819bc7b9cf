//! The memory of a call, and the trait of kernels that run over it.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::io;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Range;

use crate::error::{Error, Result};
use crate::limits::{BUFFERS_ON_STACK, KEPT_SCRATCH, LINES_ON_STACK, NONTEMPORAL_FROM};
use crate::plan::machine::LINE;

/// One buffer of a call: consecutive strips of a node, or of a lane of a node.
#[derive(Debug, Default)]
pub enum Buffer<'a> {
    /// The caller neither has this buffer nor wants it.
    #[default]
    Absent,
    /// The caller has this buffer; it is only read.
    Source(&'a [u8]),
    /// The buffer is written. If the code puts data and parity on one node, it is also read.
    Target(&'a mut [u8]),
}

impl Buffer<'_> {
    /// Borrows the buffer again for one call.
    pub(crate) fn reborrow(&mut self) -> Buffer<'_> {
        match self {
            Self::Absent => Buffer::Absent,
            Self::Source(bytes) => Buffer::Source(bytes),
            Self::Target(bytes) => Buffer::Target(bytes),
        }
    }
}

/// Place of a buffer of a call. It represents the borrow from which it was made.
#[derive(Clone, Copy)]
pub(crate) struct BufferPlace<'a> {
    /// The first byte; null if the buffer is absent.
    pub(crate) start: *mut u8,
    pub(crate) length: usize,
    /// Whether the buffer may be written.
    pub(crate) is_target: bool,
    borrow: PhantomData<&'a mut [u8]>,
}

impl BufferPlace<'_> {
    pub(crate) const ABSENT: Self =
        Self { start: std::ptr::null_mut(), length: 0, is_target: false, borrow: PhantomData };

    /// Whether the buffer is absent.
    pub(crate) fn is_absent(self) -> bool {
        self.start.is_null()
    }

    /// The place of a part of a buffer of a call, which represents the same borrow.
    pub(crate) fn of_part(start: *mut u8, length: usize) -> Self {
        Self { start, length, ..Self::ABSENT }
    }

    /// The same place with another first byte.
    pub(crate) fn at(self, start: *mut u8) -> Self {
        Self { start, ..self }
    }
}

impl<'a> From<&'a [u8]> for BufferPlace<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        let (start, length) = (bytes.as_ptr().cast_mut(), bytes.len());
        Self { start, length, is_target: false, borrow: PhantomData }
    }
}

impl<'a> From<&'a mut [u8]> for BufferPlace<'a> {
    fn from(bytes: &'a mut [u8]) -> Self {
        let (start, length) = (bytes.as_mut_ptr(), bytes.len());
        Self { start, length, is_target: true, borrow: PhantomData }
    }
}

impl<'a> From<Buffer<'a>> for BufferPlace<'a> {
    fn from(buffer: Buffer<'a>) -> Self {
        match buffer {
            Buffer::Absent => Self::ABSENT,
            Buffer::Source(bytes) => bytes.into(),
            Buffer::Target(bytes) => bytes.into(),
        }
    }
}

/// Enters buffers, each with its number, in a table of all buffers of a call. Numbers beyond the
/// table are ignored.
pub(crate) fn enter<'b>(
    places: &mut [BufferPlace<'b>],
    buffers: impl IntoIterator<Item = (usize, Buffer<'b>)>,
) {
    for (number, buffer) in buffers {
        if let Some(place) = places.get_mut(number) {
            *place = buffer.into();
        }
    }
}

/// How results are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stores {
    /// With non-temporal stores, which bypass the cache, if the buffers of the call together have
    /// more bytes than this; otherwise into the cache.
    NonTemporalFrom(usize),
    /// Into the cache.
    Cached,
    /// With non-temporal stores, where the kernel has them and every cache line is written whole:
    /// buffers are aligned to 64 bytes and strips are multiples of 64 bytes.
    NonTemporal,
}

impl Default for Stores {
    fn default() -> Self {
        Self::NonTemporalFrom(NONTEMPORAL_FROM)
    }
}

impl Stores {
    /// Whether a call whose buffers have `bytes` bytes together uses non-temporal stores.
    pub fn are_nontemporal(self, bytes: usize) -> bool {
        match self {
            Self::NonTemporalFrom(from) => bytes > from,
            Self::Cached => false,
            Self::NonTemporal => true,
        }
    }
}

/// A program in the form that one kernel runs. A kernel prepares a program only if the processor
/// has the features that the kernel needs.
pub(crate) trait PreparedKernel: Send + Sync {
    /// Runs the program over the range `stripes`.
    ///
    /// # Safety
    /// For every buffer that the program reads or writes, `memory` holds a pointer that is valid
    /// for at least `stripes.end` strips (for writes too if the program writes the buffer). During
    /// the call, within the strips of `stripes`, no other thread writes bytes that the program
    /// reads or writes, or reads bytes that the program writes.
    unsafe fn run(&self, memory: &Memory<'_>, stripes: Range<usize>);

    /// Returns why another kernel runs instead; `None` if this one runs.
    fn fallback(&self) -> Option<String> {
        None
    }
}

/// The buffers of one call.
#[derive(Clone, Copy)]
pub(crate) struct Memory<'a> {
    pub(crate) places: &'a [BufferPlace<'a>],
    /// Whether results are stored with non-temporal stores.
    pub(crate) nontemporal: bool,
}

// SAFETY: the pointers are used only under the contract of `PreparedKernel::run`, which gives every
// thread stripes or cells of its own.
unsafe impl Send for Memory<'_> {}
// SAFETY: as above.
unsafe impl Sync for Memory<'_> {}

impl Memory<'_> {
    /// First byte of `buffer`; null if the buffer is absent.
    pub(crate) fn pointer(&self, buffer: usize) -> *mut u8 {
        self.places[buffer].start
    }
}

/// Holds one `T` for each buffer of a call: on the stack, or on the heap if there are many buffers.
pub(crate) struct Table<T> {
    stack: [MaybeUninit<T>; BUFFERS_ON_STACK],
    heap: Vec<MaybeUninit<T>>,
}

impl<T: Copy> Table<T> {
    /// Creates a table with room for any number of buffers.
    pub(crate) fn new() -> Self {
        Self { stack: [const { MaybeUninit::uninit() }; BUFFERS_ON_STACK], heap: Vec::new() }
    }

    /// Fills the table with `of(buffer)` for each of `count` buffers.
    pub(crate) fn fill(&mut self, count: usize, of: impl Fn(usize) -> T) -> &mut [T] {
        let entries = match self.stack.get_mut(..count) {
            Some(entries) => entries,
            None => {
                self.heap.resize(count, MaybeUninit::uninit());
                &mut self.heap
            }
        };
        for (buffer, entry) in entries.iter_mut().enumerate() {
            entry.write(of(buffer));
        }
        // SAFETY: all of these entries have just been written, and `MaybeUninit<T>` has the layout
        // of `T`.
        unsafe { &mut *(std::ptr::from_mut(entries) as *mut [T]) }
    }
}

/// One cache line of memory, for temporaries or for values that parts keep for each other.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct CacheLine(pub(crate) [u8; LINE]);

/// Lines that may be uninitialised.
type Lines = [MaybeUninit<CacheLine>];

/// Memory that a kernel may write and then read: on the stack, or on the heap if it is large. Each
/// thread keeps what it had from the heap for its next call, because many allocators map large
/// memory anew each time, and the system clears it page by page. (Encoding 1,024 + 1,024 blocks of
/// 1 KiB on a Zen 5, with glibc's allocator: 106 microseconds, and 480 if it maps each scratch.)
pub(crate) struct Scratch {
    stack: [MaybeUninit<CacheLine>; LINES_ON_STACK],
    heap: Box<Lines>,
}

thread_local! {
    /// The largest scratch of this thread that is not in use, up to [`KEPT_SCRATCH`].
    static KEPT: Cell<Box<Lines>> = Cell::default();
}

impl Scratch {
    /// Creates room for `bytes` bytes, uninitialised.
    pub(crate) fn new(bytes: usize) -> Self {
        let lines = Self::on_heap(bytes);
        Self::of(Self::kept(lines).unwrap_or_else(|| Box::new_uninit_slice(lines)))
    }

    /// As [`Scratch::new`], for a size that the caller of the library decides.
    ///
    /// # Errors
    /// If the system lacks memory for them ([`crate::ErrorKind::Memory`]).
    pub(crate) fn try_new(bytes: usize) -> Result<Self> {
        let lines = Self::on_heap(bytes);
        if let Some(heap) = Self::kept(lines) {
            return Ok(Self::of(heap));
        }
        let mut heap = Vec::new();
        let reserved = heap.try_reserve_exact(lines);
        reserved.map_err(|_| Error::memory(bytes, io::ErrorKind::OutOfMemory.into()))?;
        // SAFETY: the capacity has just been reserved, and the elements may be uninitialised.
        unsafe { heap.set_len(lines) };
        Ok(Self::of(heap.into_boxed_slice()))
    }

    fn of(heap: Box<Lines>) -> Self {
        Self { stack: [const { MaybeUninit::uninit() }; LINES_ON_STACK], heap }
    }

    /// Takes at least this many lines from what the thread has kept. A smaller scratch that it has
    /// kept is given back to the allocator.
    fn kept(lines: usize) -> Option<Box<Lines>> {
        if lines == 0 {
            return Some(Box::default());
        }
        KEPT.try_with(Cell::take).ok().filter(|kept| kept.len() >= lines)
    }

    /// Returns the number of lines that come from the heap: all or zero.
    fn on_heap(bytes: usize) -> usize {
        let lines = bytes.div_ceil(LINE);
        if lines > LINES_ON_STACK { lines } else { 0 }
    }

    /// First byte, aligned to a cache line.
    pub(crate) fn start(&mut self) -> *mut u8 {
        let lines = if self.heap.is_empty() { &mut self.stack[..] } else { &mut self.heap };
        lines.as_mut_ptr().cast()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.heap.is_empty() || size_of_val(&*self.heap) > KEPT_SCRATCH {
            return;
        }
        let heap = std::mem::take(&mut self.heap);
        // A thread that ends keeps nothing.
        let _ = KEPT.try_with(|kept| {
            let other = kept.take();
            kept.set(if other.len() > heap.len() { other } else { heap });
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_keep_scratch_up_to_a_size() {
        let kept = || {
            KEPT.with(|kept| {
                let lines = kept.take();
                let bytes = size_of_val(&*lines);
                kept.set(lines);
                bytes
            })
        };
        drop(Scratch::new(100));
        assert_eq!(kept(), 0, "small scratch lies on the stack");
        let place = Scratch::new(1 << 20).start();
        assert_eq!((kept(), Scratch::try_new(1 << 19).unwrap().start()), (1 << 20, place));
        let (mut one, mut two) = (Scratch::new(1 << 20), Scratch::new(1 << 19));
        assert!(one.start() == place && two.start() != place);
        drop(one);
        drop(two);
        assert_eq!(kept(), 1 << 20, "the larger one is kept");
        drop(Scratch::new(KEPT_SCRATCH + 1));
        assert_eq!(kept(), 0);
    }
}
