//! Long codes: transforms of blocks, some granules of each at a time.
//!
//! A program (see [`crate::plan::long::program`]) runs over two *tiles*, which stay in the
//! second-level cache. One holds the entries of the chunk that is transformed, the other the sum of
//! the inputs' transforms. An entry of a tile is a few granules of a block, one after the other. So
//! each block is read once, and each sum is read and written once, however many there are. A sum
//! that is kept from one call to the next lies in the caller's memory, tile after tile.
//!
//! Levels are taken up to three at a time: eight entries are loaded into registers, go through
//! twelve butterflies, and are stored. Passes leave out groups of entries that are all zero on the
//! way in, or that no one wants on the way out.

use std::ops::Range;
use std::sync::LazyLock;

use crate::define::tower::{ELEMENTS, Element};
use crate::plan::long::program::{Chunk, GRANULE, LevelPass, LongProgram, TransformValue};
use crate::plan::machine::LINE;
use crate::run::buffers::{Memory, Scratch};
use crate::run::tiled::multiplier::Multiplier;
use crate::run::tiled::vector::{Streaming, Vector};

/// For every point, the three bytes by which it multiplies ([`Element::factors`]).
static POINTS: LazyLock<Vec<[u8; 3]>> =
    LazyLock::new(|| (0..ELEMENTS).map(|number| Element::point(number).factors()).collect());

/// An element of the tower in the form that the machine takes.
struct Scalar<V: Vector, M: Multiplier<V>>([M::Factor; 3]);

impl<V: Vector, M: Multiplier<V>> Clone for Scalar<V, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V: Vector, M: Multiplier<V>> Copy for Scalar<V, M> {}

impl<V: Vector, M: Multiplier<V>> Scalar<V, M> {
    #[inline(always)]
    fn new(factors: [u8; 3], all: &[M::Factor; 256]) -> Self {
        Self(factors.map(|factor| all[usize::from(factor)]))
    }

    /// Multiplies symbols, given as their low and their high bytes.
    ///
    /// # Safety
    /// The processor has the instruction set; if `NARROW`, the factor is an element of GF(2^8).
    #[inline(always)]
    unsafe fn times<const NARROW: bool>(&self, [low, high]: [V; 2]) -> [V; 2] {
        // SAFETY: the caller's contract.
        unsafe {
            let own = M::times(low, &self.0[0]);
            if NARROW {
                return [own, M::times(high, &self.0[0])];
            }
            let cross = M::times(high, &self.0[1]);
            [own.xor(cross), own.xor(M::times(low.xor(high), &self.0[2]))]
        }
    }
}

/// Runs a program over the range `granules` of all buffers: the kernel for every instruction set.
/// `GROUP` is the number of entries that a pass holds in registers.
///
/// # Safety
/// As [`LongRunner`](super::LongRunner).
#[inline(always)]
pub(super) unsafe fn run_long<V: Streaming, M: Multiplier<V>, const GROUP: usize>(
    program: &LongProgram,
    memory: &Memory<'_>,
    granules: Range<usize>,
) {
    let passes = program.passes(GROUP.ilog2());
    let tile = program.tile().min(granules.len());
    let bytes = program.entries() * tile * GRANULE;
    let mut scratch = Scratch::new(2 * bytes);
    let kept = memory.places.last().filter(|_| program.keeps()).map(|place| place.start);
    let sum = scratch.start();
    let work = sum.wrapping_add(bytes);
    let columns = |start| TileGranules { start, count: tile.min(granules.end - start) };
    for start in granules.clone().step_by(tile.max(1)) {
        let next = (start + tile < granules.end).then(|| columns(start + tile));
        let at = |place| TransformTile {
            start: place,
            entries: program.entries(),
            columns: columns(start),
        };
        // Tiles of a sum that is kept stand one after the other.
        let before = start * program.entries() * GRANULE;
        let sum = kept.map_or(sum, |kept| kept.wrapping_add(before));
        // SAFETY: each tile has room for a granule of all columns for each entry, and the caller
        // vouches for the buffers.
        unsafe { run_tile::<V, M, GROUP>(program, &passes, memory, [at(sum), at(work)], next) };
    }
}

/// # Safety
/// As [`run_long`]; the tiles are valid.
#[inline(always)]
unsafe fn run_tile<V: Streaming, M: Multiplier<V>, const GROUP: usize>(
    program: &LongProgram,
    passes: &[LevelPass],
    memory: &Memory<'_>,
    [sum, work]: [TransformTile; 2],
    next: Option<TileGranules>,
) {
    let (first, last) = (passes[0], passes[passes.len() - 1]);
    let inputs = program.inputs().iter();
    let chunks = inputs.clone().chain(program.outputs()).map(|chunk| (chunk, sum.columns));
    let after = program.inputs().first().zip(next);
    let mut following = chunks.chain(after).skip(1);
    let mut fetch = || Prefetcher::new(following.next(), memory, passes, sum.entries);
    // SAFETY: the caller's contract.
    unsafe {
        if program.inputs().is_empty() && !program.keeps() {
            sum.clear(0..sum.entries);
        }
        for (number, chunk) in inputs.enumerate() {
            let is_first = number == 0 && !program.keeps();
            let tile = if is_first { sum } else { work };
            let mut fetch = fetch();
            for &pass in passes {
                let from = if pass == first { End::Values(memory) } else { End::Tile(tile) };
                let to = if pass == last { sum } else { tile };
                let adds = pass == last && !is_first;
                let ends = Ends { from, to: End::Tile(to), adds };
                tile.pass::<V, M, GROUP, true>(chunk, pass, ends, &mut fetch);
            }
        }
        for (number, chunk) in program.outputs().iter().enumerate() {
            let is_last = number + 1 == program.outputs().len() && !program.keeps();
            let tile = if is_last { sum } else { work };
            let mut fetch = fetch();
            for &pass in passes.iter().rev() {
                let from = End::Tile(if pass == last { sum } else { tile });
                let to = if pass == first { End::Values(memory) } else { End::Tile(tile) };
                let ends = Ends { from, to, adds: pass == first && program.adds() };
                tile.pass::<V, M, GROUP, false>(chunk, pass, ends, &mut fetch);
            }
        }
    }
}

/// Prefetches the values of the next chunk at an even rate while the present chunk is transformed.
struct Prefetcher<'a> {
    next: Option<(&'a Chunk, TileGranules)>,
    memory: &'a Memory<'a>,
    /// Number of steps of a transform, and number of steps taken so far.
    steps: usize,
    taken: usize,
    /// Number of values fetched so far.
    fetched: usize,
}

impl<'a> Prefetcher<'a> {
    fn new(
        next: Option<(&'a Chunk, TileGranules)>,
        memory: &'a Memory<'a>,
        passes: &[LevelPass],
        entries: usize,
    ) -> Self {
        let steps = passes.iter().map(|pass| entries >> pass.levels).sum();
        Self { next, memory, steps, taken: 0, fetched: 0 }
    }

    /// Records that another step has been taken, one run of [`group`] over the width of an entry,
    /// and fetches the values that are now due.
    #[inline(always)]
    fn step<V: Streaming>(&mut self) {
        self.taken += 1;
        let Some((chunk, columns)) = self.next else { return };
        let values = chunk.values();
        let due = (values.len() * self.taken / self.steps).min(values.len());
        for value in &values[self.fetched..due] {
            let (from, bytes) = columns.of(value, self.memory);
            (0..bytes).step_by(LINE).for_each(|at| V::prefetch(from.wrapping_add(at)));
        }
        self.fetched = due;
    }
}

/// The two ends of a pass, where it reads and writes its entries.
#[derive(Clone, Copy)]
struct Ends<'a> {
    from: End<'a>,
    to: End<'a>,
    /// Whether entries are added to those at `to` instead of replacing them.
    adds: bool,
}

/// One end of a pass.
#[derive(Clone, Copy)]
enum End<'a> {
    Tile(TransformTile),
    /// In the buffers of the chunk's values, and in the tile where an entry has none.
    Values(&'a Memory<'a>),
}

/// The granules of every block that a tile holds.
#[derive(Clone, Copy)]
struct TileGranules {
    start: usize,
    count: usize,
}

impl TileGranules {
    /// Bytes of a block's columns.
    #[inline(always)]
    fn width(self) -> usize {
        self.count * GRANULE
    }

    /// The first byte of a value's columns in its buffer, and the number of bytes that the buffer
    /// has there.
    #[inline(always)]
    fn of(self, value: &TransformValue, memory: &Memory<'_>) -> (*mut u8, usize) {
        let place = memory.places[value.buffer];
        let start = self.start * GRANULE;
        (place.start.wrapping_add(start), place.length.saturating_sub(start).min(self.width()))
    }
}

/// The entries of a transform: some granules of each, entry after entry.
#[derive(Clone, Copy)]
struct TransformTile {
    start: *mut u8,
    entries: usize,
    columns: TileGranules,
}

impl TransformTile {
    /// Bytes of an entry.
    #[inline(always)]
    fn width(self) -> usize {
        self.columns.width()
    }

    #[inline(always)]
    fn entry(self, entry: usize) -> *mut u8 {
        self.start.wrapping_add(entry * self.width())
    }

    /// Returns the place from which an entry of a chunk is read. That is the value's own buffer if
    /// it has all bytes and the factor is 1; otherwise the entry is made in the tile.
    ///
    /// # Safety
    /// The tile is valid, and so are the buffers.
    #[inline(always)]
    unsafe fn source<V: Streaming, M: Multiplier<V>>(
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
            if bytes == self.width() && value.factor == Element::ONE {
                return from;
            }
            let to = self.entry(entry);
            to.copy_from_nonoverlapping(from, bytes);
            to.add(bytes).write_bytes(0, self.width() - bytes);
            self.scale::<V, M>(value);
            to
        }
    }

    /// Moves the values of some entries from the tile to their buffers.
    ///
    /// # Safety
    /// The tile is valid, and so are the buffers.
    #[inline(always)]
    unsafe fn deliver<V: Vector, M: Multiplier<V>>(
        self,
        chunk: &Chunk,
        memory: &Memory<'_>,
        entries: Range<usize>,
    ) {
        for value in chunk.values_of(entries) {
            let (to, bytes) = self.columns.of(value, memory);
            // SAFETY: the entry is one of the tile's, and `TileGranules::of` keeps within the
            // buffer.
            unsafe {
                self.scale::<V, M>(value);
                to.copy_from_nonoverlapping(self.entry(value.entry), bytes);
            }
        }
    }

    /// Multiplies a value by its factor.
    ///
    /// # Safety
    /// The tile is valid, and has the value's entry.
    #[inline(always)]
    unsafe fn scale<V: Vector, M: Multiplier<V>>(self, value: &TransformValue) {
        if value.factor == Element::ONE {
            return;
        }
        let factor = Scalar::<V, M>::new(value.factor.factors(), M::factors());
        let entry = self.entry(value.entry);
        for at in vectors::<V>(self.width()) {
            // SAFETY: the granules of an entry are whole.
            unsafe { store(factor.times::<false>(load::<V>(entry.add(at))), entry.add(at)) };
        }
    }

    /// Fills entries with zeros.
    ///
    /// # Safety
    /// The tile is valid.
    #[inline(always)]
    unsafe fn clear(self, entries: Range<usize>) {
        // SAFETY: the caller's contract.
        unsafe { self.entry(entries.start).write_bytes(0, entries.len() * self.width()) };
    }

    /// Takes some levels of a transform or, if `INVERSE`, of an inverse transform, from one end to
    /// the other. This tile holds entries that no value has.
    ///
    /// # Safety
    /// The tiles are valid, and so are the buffers. Only passes of level 0 have values as an end:
    /// as the first if `INVERSE`, otherwise as the second.
    #[inline(always)]
    unsafe fn pass<V: Streaming, M: Multiplier<V>, const GROUP: usize, const INVERSE: bool>(
        self,
        chunk: &Chunk,
        pass: LevelPass,
        ends: Ends<'_>,
        fetch: &mut Prefetcher<'_>,
    ) {
        // SAFETY: the caller's contract.
        unsafe {
            match pass.levels {
                0 => self.groups::<V, M, 1, INVERSE>(chunk, pass, ends, fetch),
                1 => self.groups::<V, M, 2, INVERSE>(chunk, pass, ends, fetch),
                2 => self.groups::<V, M, 4, INVERSE>(chunk, pass, ends, fetch),
                _ => self.groups::<V, M, GROUP, INVERSE>(chunk, pass, ends, fetch),
            }
        }
    }

    /// # Safety
    /// As [`TransformTile::pass`]; `GROUP` is 2 to the number of the pass's levels.
    #[inline(always)]
    unsafe fn groups<V: Streaming, M: Multiplier<V>, const GROUP: usize, const INVERSE: bool>(
        self,
        chunk: &Chunk,
        pass: LevelPass,
        ends: Ends<'_>,
        fetch: &mut Prefetcher<'_>,
    ) {
        let Ends { from, to, adds } = ends;
        let size = GROUP << pass.level;
        let distance = self.width() << pass.level;
        let narrow = chunk.factor(pass.level, self.entries - 1) < 256;
        let (points, all) = (&POINTS[..], M::factors());
        for first in (0..self.entries).step_by(size) {
            // SAFETY: the group lies in the tiles; the caller vouches for the rest.
            unsafe {
                if !chunk.has_any(first..first + size) {
                    if let (End::Values(_), End::Tile(to), false) = (from, to, adds) {
                        to.clear(first..first + size);
                    }
                    continue;
                }
                let in_tile = |tile: Self, n| tile.entry(first).wrapping_add(n * distance);
                let sources: [*mut u8; GROUP] = std::array::from_fn(|n| match from {
                    End::Tile(tile) => in_tile(tile, n),
                    End::Values(memory) => self.source::<V, M>(chunk, memory, first + n),
                });
                let targets: [*mut u8; GROUP] = std::array::from_fn(|n| match to {
                    End::Tile(tile) => in_tile(tile, n),
                    End::Values(memory) if adds => match chunk.value(first + n) {
                        Some(value) => self.columns.of(value, memory).0,
                        None => self.entry(first + n),
                    },
                    End::Values(_) => self.entry(first + n),
                });
                let factors = factors::<V, M, GROUP>(chunk, pass, first, points, all);
                for start in (0..distance).step_by(self.width()) {
                    let bytes = start..start + self.width();
                    let ends = (&sources, &targets, bytes);
                    match (narrow, adds) {
                        (false, false) => {
                            group::<V, M, GROUP, INVERSE, false, false>(ends, &factors)
                        }
                        (false, true) => group::<V, M, GROUP, INVERSE, false, true>(ends, &factors),
                        (true, false) => group::<V, M, GROUP, INVERSE, true, false>(ends, &factors),
                        (true, true) => group::<V, M, GROUP, INVERSE, true, true>(ends, &factors),
                    }
                    fetch.step::<V>();
                }
                if let (End::Values(memory), false) = (to, adds) {
                    self.deliver::<V, M>(chunk, memory, first..first + size);
                }
            }
        }
    }
}

/// Returns the factors of the group of a pass that begins at entry `first`.
#[inline(always)]
fn factors<V: Vector, M: Multiplier<V>, const GROUP: usize>(
    chunk: &Chunk,
    pass: LevelPass,
    first: usize,
    points: &[[u8; 3]],
    all: &[M::Factor; 256],
) -> [Scalar<V, M>; GROUP] {
    let mut factors = [Scalar::new([0; 3], all); GROUP];
    for_all_factors::<GROUP>(|slot, level, number| {
        let entry = first + (number << (pass.level + level + 1));
        factors[slot] = Scalar::new(points[chunk.factor(pass.level + level, entry)], all);
    });
    factors
}

/// Takes all levels of a group: reads the range `bytes` at the sources and writes it at the
/// targets.
///
/// # Safety
/// Sources and targets are valid for the bytes; the processor has the instruction set; if `NARROW`,
/// all factors are elements of GF(2^8).
#[inline(always)]
unsafe fn group<
    V: Vector,
    M: Multiplier<V>,
    const GROUP: usize,
    const INVERSE: bool,
    const NARROW: bool,
    const ADDS: bool,
>(
    (sources, targets, bytes): (&[*mut u8; GROUP], &[*mut u8; GROUP], Range<usize>),
    factors: &[Scalar<V, M>; GROUP],
) {
    for at in vectors::<V>(bytes.len()) {
        let at = bytes.start + at;
        // SAFETY: the caller's contract.
        unsafe {
            let mut values: [[V; 2]; GROUP] =
                std::array::from_fn(|n| load::<V>(sources[n].wrapping_add(at)));
            butterflies::<V, M, GROUP, INVERSE, NARROW>(&mut values, factors);
            for (target, value) in targets.iter().zip(values) {
                let to = target.wrapping_add(at);
                store(if ADDS { plus(load(to), value) } else { value }, to);
            }
        }
    }
}

/// Calls `of(slot, level, number)` for each factor of a group: the slot it has in the list of a
/// group's factors, its level and its number in the level.
#[inline(always)]
fn for_all_factors<const GROUP: usize>(mut of: impl FnMut(usize, u32, usize)) {
    for level in 0..GROUP.ilog2() {
        let count = GROUP >> (level + 1);
        (0..count).for_each(|number| of(count + number, level, number));
    }
}

/// Takes all levels of a group in registers.
///
/// # Safety
/// The processor has the instruction set; if `NARROW`, all factors are elements of GF(2^8).
#[inline(always)]
unsafe fn butterflies<
    V: Vector,
    M: Multiplier<V>,
    const GROUP: usize,
    const INVERSE: bool,
    const NARROW: bool,
>(
    values: &mut [[V; 2]; GROUP],
    factors: &[Scalar<V, M>; GROUP],
) {
    for step in 0..GROUP.ilog2() {
        let level = if INVERSE { step } else { GROUP.ilog2() - 1 - step };
        for pair in 0..GROUP / 2 {
            let (number, offset) = (pair >> level, pair & ((1 << level) - 1));
            let low = (number << (level + 1)) + offset;
            let high = low + (1 << level);
            let factor = &factors[(GROUP >> (level + 1)) + number];
            // SAFETY: the caller's contract.
            unsafe {
                if INVERSE {
                    values[high] = plus(values[high], values[low]);
                }
                values[low] = plus(values[low], factor.times::<NARROW>(values[high]));
                if !INVERSE {
                    values[high] = plus(values[high], values[low]);
                }
            }
        }
    }
}

/// The offsets of the vectors of low bytes in whole granules.
#[inline(always)]
fn vectors<V: Vector>(bytes: usize) -> impl Iterator<Item = usize> {
    let granules = (0..bytes).step_by(GRANULE);
    granules.flat_map(|granule| (0..GRANULE / 2).step_by(V::BYTES).map(move |at| granule + at))
}

/// Loads symbols as their low and their high bytes.
///
/// # Safety
/// `from` is the place of a vector of low bytes in a valid granule.
#[inline(always)]
unsafe fn load<V: Vector>(from: *const u8) -> [V; 2] {
    // SAFETY: the high bytes stand half a granule behind the low ones.
    unsafe { [V::load(from), V::load(from.add(GRANULE / 2))] }
}

/// # Safety
/// As [`load`].
#[inline(always)]
unsafe fn store<V: Vector>([low, high]: [V; 2], to: *mut u8) {
    // SAFETY: as above.
    unsafe {
        low.store(to);
        high.store(to.add(GRANULE / 2));
    }
}

/// # Safety
/// The processor has the instruction set.
#[inline(always)]
unsafe fn plus<V: Vector>(a: [V; 2], b: [V; 2]) -> [V; 2] {
    // SAFETY: the caller's contract.
    unsafe { [a[0].xor(b[0]), a[1].xor(b[1])] }
}
