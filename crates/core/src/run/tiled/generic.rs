//! The tiled kernel, written once for every vector type.
//!
//! An operation is run over a *tile* before the next operation begins: a few stripes if packets are
//! small, part of a packet if they are large. A tile is so small that all cells of the schedule
//! stay in the first- and second-level caches, and large enough to hide the cost of interpreting an
//! operation. Temporaries live in a scratch, one tile each. This kernel runs any schedule on any
//! machine. (The papers ran operations of two operands over whole packets: `packets.rs`.)
//!
//! Words are multiplied bit by bit: the product is the sum, over the set bits of the word, of the
//! constant's product with that bit. That is a plain loop over the words of a tile, which the
//! compiler vectorises.

use std::ops::Range;

use crate::define::field::Multiples;
use crate::limits::{TILED_BUDGET, TILED_BYTES};
use crate::plan::program::Program;
use crate::plan::schedule::{Op, Schedule, Slot};
use crate::run::buffers::{Memory, Scratch};
use crate::run::tiled::vector::Vector;

/// A program flattened for interpretation.
pub(crate) struct Tiles {
    ops: Vec<TiledOp>,
    operands: Vec<CellOperand>,
    /// Number of tiles in the scratch; temporaries take turns in them.
    scratch: usize,
    /// Bytes of a word.
    word: usize,
    /// Range of bytes of each packet that the program handles.
    columns: usize,
    /// Whether every buffer is one stream of packets, each handled whole, so that stripes can be
    /// handled together.
    flat: bool,
    tile: usize,
}

struct TiledOp {
    target: CellOperand,
    /// Sources of the operation, as a range of `operands`. The target is among them if the
    /// operation adds to it.
    sources: Range<usize>,
    /// Factor of the sum, if it is not 1.
    factor: Option<Multiples>,
}

/// The place of a cell's bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CellOperand {
    /// At `offset` in every strip of `strip` bytes of a buffer.
    Cell { buffer: usize, offset: usize, strip: usize },
    /// In the scratch.
    Temp(usize),
}

/// Bytes of a cell in the current tile: `stride` bytes from one stripe to the next.
#[derive(Clone, Copy)]
struct CellCursor {
    start: *mut u8,
    stride: usize,
}

/// A part of the work: some stripes, and some bytes of each packet.
struct Tile {
    stripes: Range<usize>,
    columns: Range<usize>,
}

impl Tiles {
    pub(super) fn new(program: &Program) -> Self {
        let schedule = program.schedule();
        let places = ScratchPlaces::new(schedule);
        let mut tiles = Self {
            ops: Vec::with_capacity(schedule.ops().len()),
            operands: Vec::new(),
            scratch: places.count,
            word: schedule.word(),
            columns: program.columns().len(),
            flat: program.is_flat(),
            tile: tile_bytes(schedule.inputs() + schedule.outputs() + places.count),
        };
        let operand = |slot| CellOperand::new(program, &places, slot);
        for op in schedule.ops() {
            let start = tiles.operands.len();
            let own = op.accumulate.then_some(op.target);
            let sources = own.into_iter().chain(op.sources.iter().copied());
            tiles.operands.extend(sources.map(operand));
            let field = schedule.field().filter(|_| op.factor != 1);
            tiles.ops.push(TiledOp {
                target: operand(op.target),
                sources: start..tiles.operands.len(),
                factor: field.map(|field| field.multiples_of(op.factor)),
            });
        }
        tiles
    }

    /// Runs over the range `stripes`.
    ///
    /// # Safety
    /// As [`PreparedKernel::run`](crate::run::buffers::PreparedKernel::run); `V`'s instruction set
    /// is available.
    #[inline(always)]
    pub(super) unsafe fn run<V: Vector>(&self, memory: &Memory<'_>, stripes: Range<usize>) {
        let mut scratch = Scratch::new(self.scratch * self.tile.next_multiple_of(8));
        let scratch = scratch.start();
        let mut cursors = Vec::new();
        for tile in self.tiles(stripes) {
            for op in &self.ops {
                cursors.clear();
                let sources = &self.operands[op.sources.clone()];
                cursors.extend(sources.iter().map(|s| self.cursor(*s, memory, scratch, &tile)));
                let target = self.cursor(op.target, memory, scratch, &tile);
                let length = tile.columns.len();
                // SAFETY: the cursors lie in the caller's buffers or in the scratch, which has
                // room for `tile` bytes of every temporary, and are read and written for this
                // tile's stripes and columns only.
                unsafe {
                    xor_all::<V>(target, &cursors, tile.stripes.len(), length);
                    if let Some(factor) = &op.factor {
                        multiply_all(target, factor, tile.stripes.len(), length, self.word);
                    }
                }
            }
        }
    }

    fn tiles(&self, stripes: Range<usize>) -> impl Iterator<Item = Tile> {
        let (stripes, columns) = match self.flat {
            true => (0..1, stripes.start * self.columns..stripes.end * self.columns),
            false => (stripes, 0..self.columns),
        };
        let piece = columns.len().clamp(1, self.tile);
        let together = self.tile / piece;
        let end = stripes.end;
        stripes.step_by(together).flat_map(move |first| {
            let end_column = columns.end;
            columns.clone().step_by(piece).map(move |column| Tile {
                stripes: first..(first + together).min(end),
                columns: column..(column + piece).min(end_column),
            })
        })
    }

    #[inline(always)]
    fn cursor(
        &self,
        operand: CellOperand,
        memory: &Memory<'_>,
        scratch: *mut u8,
        tile: &Tile,
    ) -> CellCursor {
        match operand {
            CellOperand::Cell { buffer, offset, strip } => {
                let skip = tile.stripes.start * strip + offset + tile.columns.start;
                CellCursor { start: memory.pointer(buffer).wrapping_add(skip), stride: strip }
            }
            CellOperand::Temp(number) => CellCursor {
                start: scratch.wrapping_add(number * self.tile.div_ceil(8) * 8),
                stride: tile.columns.len(),
            },
        }
    }
}

impl CellOperand {
    pub(super) fn new(program: &Program, places: &ScratchPlaces, slot: Slot) -> Self {
        match (slot, program.location(slot)) {
            (_, Some(location)) => Self::Cell {
                buffer: location.buffer,
                offset: program.offset(location),
                strip: program.strip(location.buffer),
            },
            (Slot::Temp(n) | Slot::Input(n) | Slot::Output(n), None) => {
                Self::Temp(places.of_temps[n as usize])
            }
        }
    }
}

/// Assigns tiles of the scratch to temporaries. A temporary takes over the tile of another
/// temporary whose last use is over, if there is one.
pub(super) struct ScratchPlaces {
    of_temps: Vec<usize>,
    count: usize,
}

impl ScratchPlaces {
    pub(super) fn new(schedule: &Schedule) -> Self {
        let mut last = vec![0; schedule.temps()];
        let touched = |op: &Op| op.sources.iter().copied().chain([op.target]).collect::<Vec<_>>();
        for (position, op) in schedule.ops().iter().enumerate() {
            for slot in touched(op) {
                if let Slot::Temp(n) = slot {
                    last[n as usize] = position;
                }
            }
        }
        let mut places = Self { of_temps: vec![usize::MAX; schedule.temps()], count: 0 };
        let mut free = Vec::new();
        for (position, op) in schedule.ops().iter().enumerate() {
            if let Slot::Temp(n) = op.target
                && places.of_temps[n as usize] == usize::MAX
            {
                places.of_temps[n as usize] = free.pop().unwrap_or_else(|| {
                    places.count += 1;
                    places.count - 1
                });
            }
            for slot in touched(op) {
                if let Slot::Temp(n) = slot
                    && last[n as usize] == position
                {
                    free.push(places.of_temps[n as usize]);
                }
            }
        }
        places
    }

    /// Number of places.
    #[cfg(feature = "research")]
    pub(super) fn count(&self) -> usize {
        self.count
    }
}

/// Bytes of each cell in a tile, for a program of `cells` cells.
fn tile_bytes(cells: usize) -> usize {
    (TILED_BUDGET / cells.max(1)).clamp(512, TILED_BYTES) / 64 * 64
}

/// Multiplies `stripes` pieces of `length` bytes, in place.
///
/// # Safety
/// The target is valid for reading and writing its pieces, and no other code accesses them.
#[inline(always)]
unsafe fn multiply_all(
    target: CellCursor,
    factor: &Multiples,
    stripes: usize,
    length: usize,
    word: usize,
) {
    for stripe in 0..stripes {
        // SAFETY: the target is valid for `length` bytes at every stripe.
        let bytes = unsafe {
            std::slice::from_raw_parts_mut(target.start.add(stripe * target.stride), length)
        };
        match word {
            1 => multiply_bytes(bytes, factor),
            2 => multiply_pairs(bytes, factor),
            _ => multiply_quads(bytes, factor),
        }
    }
}

#[inline(always)]
fn multiply_bytes(bytes: &mut [u8], factor: &Multiples) {
    let images: [u8; 8] = std::array::from_fn(|bit| factor.image(bit) as u8);
    for word in bytes {
        let images = images.iter().enumerate();
        *word = images.fold(0, |sum, (bit, image)| sum ^ (*word >> bit & 1).wrapping_neg() & image);
    }
}

#[inline(always)]
fn multiply_pairs(bytes: &mut [u8], factor: &Multiples) {
    let images: [u16; 16] = std::array::from_fn(|bit| factor.image(bit) as u16);
    let (words, _) = bytes.as_chunks_mut();
    for bytes in words {
        let word = u16::from_le_bytes(*bytes);
        let images = images.iter().enumerate();
        let product =
            images.fold(0, |sum, (bit, image)| sum ^ (word >> bit & 1).wrapping_neg() & image);
        *bytes = product.to_le_bytes();
    }
}

#[inline(always)]
fn multiply_quads(bytes: &mut [u8], factor: &Multiples) {
    let images: [u32; 32] = std::array::from_fn(|bit| factor.image(bit));
    let (words, _) = bytes.as_chunks_mut();
    for bytes in words {
        let word = u32::from_le_bytes(*bytes);
        let images = images.iter().enumerate();
        let product =
            images.fold(0, |sum, (bit, image)| sum ^ (word >> bit & 1).wrapping_neg() & image);
        *bytes = product.to_le_bytes();
    }
}

/// `target = sources[0] ^ sources[1] ^ …` over `stripes` pieces of `length` bytes.
///
/// # Safety
/// Every cursor is valid for its pieces, the target for writing; `V` is available.
#[inline(always)]
unsafe fn xor_all<V: Vector>(
    target: CellCursor,
    sources: &[CellCursor],
    stripes: usize,
    length: usize,
) {
    // The most frequent fan-ins keep their pointers in registers.
    // SAFETY: the caller's contract, passed on.
    unsafe {
        match *sources {
            [] => zero(target, stripes, length),
            [a] => xor_few::<V, 1>(target, [a], stripes, length),
            [a, b] => xor_few::<V, 2>(target, [a, b], stripes, length),
            [a, b, c] => xor_few::<V, 3>(target, [a, b, c], stripes, length),
            [a, b, c, d] => xor_few::<V, 4>(target, [a, b, c, d], stripes, length),
            [a, b, c, d, e] => xor_few::<V, 5>(target, [a, b, c, d, e], stripes, length),
            _ => xor_many::<V>(target, sources, stripes, length),
        }
    }
}

/// # Safety
/// As [`xor_all`].
unsafe fn zero(target: CellCursor, stripes: usize, length: usize) {
    for stripe in 0..stripes {
        // SAFETY: the target is valid for writing `length` bytes at every stripe.
        unsafe { target.start.add(stripe * target.stride).write_bytes(0, length) };
    }
}

/// # Safety
/// As [`xor_all`].
#[inline(always)]
unsafe fn xor_few<V: Vector, const N: usize>(
    target: CellCursor,
    sources: [CellCursor; N],
    stripes: usize,
    length: usize,
) {
    for stripe in 0..stripes {
        // SAFETY: every cursor is valid for `length` bytes at every stripe.
        unsafe {
            let to = target.start.add(stripe * target.stride);
            let from: [*const u8; N] = std::array::from_fn(|i| {
                sources[i].start.add(stripe * sources[i].stride).cast_const()
            });
            xor_piece::<V>(to, &from, length);
        }
    }
}

/// # Safety
/// As [`xor_all`].
#[inline(always)]
unsafe fn xor_many<V: Vector>(
    target: CellCursor,
    sources: &[CellCursor],
    stripes: usize,
    length: usize,
) {
    let mut from: Vec<*const u8> = sources.iter().map(|s| s.start.cast_const()).collect();
    for stripe in 0..stripes {
        // SAFETY: every cursor is valid for `length` bytes at every stripe.
        unsafe { xor_piece::<V>(target.start.add(stripe * target.stride), &from, length) };
        from.iter_mut().zip(sources).for_each(|(p, s)| *p = p.wrapping_add(s.stride));
    }
}

/// XORs one piece of a packet: whole pairs of vectors, then single vectors, words and bytes.
///
/// # Safety
/// `to` is valid for writing `length` bytes and each of `from` (at least one) for reading them.
#[inline(always)]
unsafe fn xor_piece<V: Vector>(to: *mut u8, from: &[*const u8], length: usize) {
    let mut at = 0;
    // SAFETY: `at` plus the bytes touched never exceeds `length`.
    unsafe {
        while at + 2 * V::BYTES <= length {
            let mut low = V::load(from[0].add(at));
            let mut high = V::load(from[0].add(at + V::BYTES));
            for source in &from[1..] {
                low = low.xor(V::load(source.add(at)));
                high = high.xor(V::load(source.add(at + V::BYTES)));
            }
            low.store(to.add(at));
            high.store(to.add(at + V::BYTES));
            at += 2 * V::BYTES;
        }
        while at + V::BYTES <= length {
            xor_vector::<V>(to, from, &mut at);
        }
        while at + 8 <= length {
            xor_vector::<u64>(to, from, &mut at);
        }
        while at < length {
            xor_vector::<u8>(to, from, &mut at);
        }
    }
}

/// # Safety
/// `V::BYTES` bytes at `at` are valid as in [`xor_piece`].
#[inline(always)]
unsafe fn xor_vector<V: Vector>(to: *mut u8, from: &[*const u8], at: &mut usize) {
    // SAFETY: the caller's contract.
    unsafe {
        let first = V::load(from[0].add(*at));
        let sum = from[1..].iter().fold(first, |sum, source| sum.xor(V::load(source.add(*at))));
        sum.store(to.add(*at));
    }
    *at += V::BYTES;
}
