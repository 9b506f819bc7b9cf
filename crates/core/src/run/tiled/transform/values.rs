//! Values of blocks on their way into a tile, and out of it. A plain value is read and written in
//! its own buffer. The others are made in the tile and moved from it by functions of their own:
//! inlined into every kind of pass, they would take a good part of the time in which the core is
//! compiled.

use std::marker::PhantomData;
use std::ops::Range;

use crate::define::tower::Element;
use crate::plan::machine::LINE;
use crate::plan::transform::program::{Chunk, TransformValue};
use crate::run::buffers::Memory;
use crate::run::tiled::multiplier::{KernelWork, Multiplier};
use crate::run::tiled::transform::{Scalar, TransformTile, load, store};
use crate::run::tiled::vector::Vector;

impl<const PARTS: usize> TransformTile<'_, PARTS> {
    /// Returns the place from which an entry of a chunk is read. That is the value's own buffer if
    /// it has all bytes and the factor is 1; otherwise the entry is made in the tile, as always
    /// where symbols are Leopard's.
    ///
    /// # Safety
    /// The tile is valid, and so are the buffers.
    #[inline(always)]
    pub(super) unsafe fn source<V: Vector, M: Multiplier<V>>(
        self,
        chunk: &Chunk,
        memory: &Memory<'_>,
        entry: usize,
    ) -> *mut u8 {
        // SAFETY: the entry is one of the tile's, and `TileGranules::of` keeps within the buffer.
        unsafe {
            let Some(value) = chunk.value(entry) else {
                self.clear(entry..entry + 1);
                return self.entry(entry);
            };
            let (from, bytes) = self.columns.of(value, memory);
            if self.is_plain(value, bytes) {
                return from;
            }
            M::apart(ValueImport::<V, M, PARTS> {
                tile: self,
                value,
                from,
                bytes,
                marker: PhantomData,
            });
        }
        self.entry(entry)
    }

    /// Whether an entry is read and written in the value's own buffer, which has `bytes` bytes of
    /// it. That is so if the buffer has all bytes of the entry, the factor is 1, and symbols are
    /// not Leopard's.
    #[inline(always)]
    fn is_plain(self, value: &TransformValue, bytes: usize) -> bool {
        !self.is_leopard && bytes == self.width() && value.factor == Element::ONE
    }

    /// Returns the place to which an entry of a chunk is written: the value's own buffer if
    /// [it is plain](Self::is_plain), otherwise the tile.
    #[inline(always)]
    pub(super) fn target(self, chunk: &Chunk, memory: &Memory<'_>, entry: usize) -> *mut u8 {
        if let Some(value) = chunk.value(entry) {
            let (to, bytes) = self.columns.of(value, memory);
            if self.is_plain(value, bytes) {
                return to;
            }
        }
        self.entry(entry)
    }

    /// Moves the values of some entries to their buffers, unless they were written there. If
    /// `adds`, Leopard's symbols are added to those in the buffers.
    ///
    /// # Safety
    /// The tile is valid, and so are the buffers.
    #[inline(always)]
    pub(super) unsafe fn deliver<V: Vector, M: Multiplier<V>>(
        self,
        chunk: &Chunk,
        memory: &Memory<'_>,
        entries: Range<usize>,
        adds: bool,
    ) {
        for value in chunk.values_of(entries) {
            let (to, bytes) = self.columns.of(value, memory);
            if self.is_plain(value, bytes) {
                continue;
            }
            let marker = PhantomData;
            let export = ValueExport::<V, M, PARTS> { tile: self, value, to, bytes, adds, marker };
            // SAFETY: the caller's contract; `TileGranules::of` keeps within the buffer.
            unsafe { M::apart(export) };
        }
    }

    /// Multiplies an entry's bytes at `from` by a value's factor, and writes them at `to`, unless
    /// they are there already.
    ///
    /// # Safety
    /// Both places are valid for the bytes of an entry; they are the same, or apart.
    #[inline(always)]
    unsafe fn scale<V: Vector, M: Multiplier<V>>(
        self,
        value: &TransformValue,
        from: *const u8,
        to: *mut u8,
    ) {
        if value.factor == Element::ONE && from == to.cast_const() {
            return;
        }
        let factor = Scalar::<V, M>::new(self.factors.value(value.factor), M::factors(self.base));
        for granule in (0..self.width()).step_by(PARTS * LINE) {
            for at in (granule..granule + LINE).step_by(V::BYTES) {
                // SAFETY: the granules of an entry are whole.
                unsafe {
                    let product = factor.times::<false, PARTS>(load::<V, PARTS>(from.add(at)));
                    store(product, to.add(at));
                }
            }
        }
    }
}

/// Makes the entry of a value in the tile, from the `bytes` bytes that the value's buffer has.
struct ValueImport<'a, V, M, const PARTS: usize> {
    tile: TransformTile<'a, PARTS>,
    value: &'a TransformValue,
    from: *const u8,
    bytes: usize,
    marker: PhantomData<(V, M)>,
}

impl<V: Vector, M: Multiplier<V>, const PARTS: usize> KernelWork for ValueImport<'_, V, M, PARTS> {
    /// # Safety
    /// The tile is valid, and so are the bytes.
    #[inline(always)]
    unsafe fn run(self) {
        let Self { tile, value, from, bytes, .. } = self;
        let to = tile.entry(value.entry);
        // SAFETY: the contract above; the entry is one of the tile's.
        unsafe {
            if tile.is_leopard {
                tile.import::<V, M>(value, from, bytes);
            } else if bytes == tile.width() {
                tile.scale::<V, M>(value, from, to);
            } else {
                to.copy_from_nonoverlapping(from, bytes);
                to.add(bytes).write_bytes(0, tile.width() - bytes);
                tile.scale::<V, M>(value, to, to);
            }
        }
    }
}

/// Moves the entry of a value from the tile to the `bytes` bytes that the value's buffer has.
struct ValueExport<'a, V, M, const PARTS: usize> {
    tile: TransformTile<'a, PARTS>,
    value: &'a TransformValue,
    to: *mut u8,
    bytes: usize,
    /// Whether Leopard's symbols are added to those in the buffer.
    adds: bool,
    marker: PhantomData<(V, M)>,
}

impl<V: Vector, M: Multiplier<V>, const PARTS: usize> KernelWork for ValueExport<'_, V, M, PARTS> {
    /// # Safety
    /// The tile is valid, and so are the bytes.
    #[inline(always)]
    unsafe fn run(self) {
        let Self { tile, value, to, bytes, adds, .. } = self;
        let entry = tile.entry(value.entry);
        // SAFETY: the contract above; the entry is one of the tile's.
        unsafe {
            if tile.is_leopard {
                tile.export::<V, M>(value, to, bytes, adds);
            } else if bytes == tile.width() {
                tile.scale::<V, M>(value, entry, to);
            } else {
                tile.scale::<V, M>(value, entry, entry);
                to.copy_from_nonoverlapping(entry, bytes);
            }
        }
    }
}
