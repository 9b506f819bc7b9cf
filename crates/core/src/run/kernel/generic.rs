//! The tiled kernel, once, for every vector type.
//!
//! An operation is run over a *tile* before the next operation begins: a few stripes where packets
//! are small, part of a packet where they are large. A tile is so small that all cells of the
//! schedule stay in the first- and second-level caches, and large enough to hide the cost of
//! interpreting an operation. Temporaries live in a scratch of one tile. This is the papers' way
//! to run a schedule ("one packet operation after another"), with n-ary operations instead of
//! pairs; it runs any schedule on any machine.

use std::ops::Range;

use crate::plan::schedule::Slot;
use crate::run::kernel::Memory;
use crate::run::kernel::vector::Vector;
use crate::run::program::Program;

/// Bytes of each cell in one tile, if the cells are few; measured best between 512 and 2048.
const TILE: usize = 1024;

/// What a tile's cells may fill together before tiles get smaller.
const TILE_BUDGET: usize = 256 * 1024;

/// A program flattened for interpretation.
pub(super) struct Tiled {
    ops: Vec<TiledOp>,
    operands: Vec<Operand>,
    temps: usize,
    /// The bytes of each packet that are handled.
    columns: usize,
    /// Whether every buffer is one stream of packets, handled whole, so that stripes need no telling
    /// apart.
    flat: bool,
    tile: usize,
}

struct TiledOp {
    target: Operand,
    /// Its sources (the target itself among them where it is added to), in `operands`.
    sources: Range<usize>,
}

/// Where a cell's bytes are found.
#[derive(Clone, Copy)]
enum Operand {
    /// At `offset` of every strip of `strip` bytes of a buffer.
    Cell { buffer: usize, offset: usize, strip: usize },
    /// In the scratch.
    Temp(usize),
}

/// A cell's bytes in the current tile: `stride` bytes from one stripe to the next.
#[derive(Clone, Copy)]
struct Cursor {
    start: *mut u8,
    stride: usize,
}

/// A part of the work: some stripes, and some bytes of each packet.
struct Tile {
    stripes: Range<usize>,
    columns: Range<usize>,
}

impl Tiled {
    pub(super) fn new(program: &Program) -> Self {
        let schedule = program.schedule();
        let mut tiled = Self {
            ops: Vec::with_capacity(schedule.ops().len()),
            operands: Vec::new(),
            temps: schedule.temps(),
            columns: program.columns().len(),
            flat: program.is_flat(),
            tile: tile_bytes(schedule.inputs() + schedule.outputs() + schedule.temps()),
        };
        for op in schedule.ops() {
            let start = tiled.operands.len();
            let own = op.accumulate.then_some(op.target);
            let sources = own.into_iter().chain(op.sources.iter().copied());
            tiled.operands.extend(sources.map(|source| Operand::new(program, source)));
            let target = Operand::new(program, op.target);
            tiled.ops.push(TiledOp { target, sources: start..tiled.operands.len() });
        }
        tiled
    }

    /// Runs over a range of stripes.
    ///
    /// # Safety
    /// As [`super::Compiled::run`]; `V`'s instruction set is available.
    #[inline(always)]
    pub(super) unsafe fn run<V: Vector>(&self, memory: &Memory, stripes: Range<usize>) {
        let mut scratch = vec![0_u64; self.temps * self.tile.div_ceil(8)];
        let scratch = scratch.as_mut_ptr().cast::<u8>();
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
                unsafe { xor_all::<V>(target, &cursors, tile.stripes.len(), length) };
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
    fn cursor(&self, operand: Operand, memory: &Memory, scratch: *mut u8, tile: &Tile) -> Cursor {
        match operand {
            Operand::Cell { buffer, offset, strip } => {
                let skip = tile.stripes.start * strip + offset + tile.columns.start;
                Cursor { start: memory.pointer(buffer).wrapping_add(skip), stride: strip }
            }
            Operand::Temp(number) => Cursor {
                start: scratch.wrapping_add(number * self.tile.div_ceil(8) * 8),
                stride: tile.columns.len(),
            },
        }
    }
}

impl Operand {
    fn new(program: &Program, slot: Slot) -> Self {
        match (slot, program.location(slot)) {
            (_, Some(location)) => Self::Cell {
                buffer: location.buffer,
                offset: program.offset(location),
                strip: program.strip(location.buffer),
            },
            (Slot::Temp(n) | Slot::Input(n) | Slot::Output(n), None) => Self::Temp(n as usize),
        }
    }
}

fn tile_bytes(cells: usize) -> usize {
    (TILE_BUDGET / cells.max(1)).clamp(512, TILE) / 64 * 64
}

/// `target = sources[0] ^ sources[1] ^ …` over `stripes` pieces of `length` bytes.
///
/// # Safety
/// Every cursor is valid for its pieces, the target for writing; `V` is available.
#[inline(always)]
unsafe fn xor_all<V: Vector>(target: Cursor, sources: &[Cursor], stripes: usize, length: usize) {
    // The commonest fan-ins with their pointers in registers.
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
unsafe fn zero(target: Cursor, stripes: usize, length: usize) {
    for stripe in 0..stripes {
        // SAFETY: the target is valid for writing `length` bytes at every stripe.
        unsafe { target.start.add(stripe * target.stride).write_bytes(0, length) };
    }
}

/// # Safety
/// As [`xor_all`].
#[inline(always)]
unsafe fn xor_few<V: Vector, const N: usize>(
    target: Cursor,
    sources: [Cursor; N],
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
unsafe fn xor_many<V: Vector>(target: Cursor, sources: &[Cursor], stripes: usize, length: usize) {
    let mut from: Vec<*const u8> = sources.iter().map(|s| s.start.cast_const()).collect();
    for stripe in 0..stripes {
        // SAFETY: every cursor is valid for `length` bytes at every stripe.
        unsafe { xor_piece::<V>(target.start.add(stripe * target.stride), &from, length) };
        from.iter_mut().zip(sources).for_each(|(p, s)| *p = p.wrapping_add(s.stride));
    }
}

/// One piece of a packet: whole pairs of vectors, then single ones, words and bytes.
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
