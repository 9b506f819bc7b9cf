//! Transforms of blocks, some granules of each at a time.
//!
//! A program (see [`crate::plan::transform::program`]) runs over one or two *tiles*, which stay in
//! the second-level cache unless there are many entries. One holds the sum of the inputs'
//! transforms, the other the entries of a chunk that is transformed meanwhile. An entry of a tile
//! is a few granules of a block, one after the other. So each block is read once, and each sum is
//! read and written once, however many there are. A sum that is kept from one call to the next lies
//! in the caller's memory, tile after tile. Where parity blocks are short, lie close together and
//! begin at cache lines, they are the tile of the sum.
//!
//! No instruction prefetches blocks. Processors fetch the lines that follow by themselves once an
//! entry has some of them; a prefetch would take one of the few places in which loads wait for
//! their lines.
//!
//! Levels are taken up to three at a time: eight entries are loaded into registers, go through
//! twelve butterflies, and are stored. Passes leave out groups of entries that are all zero on the
//! way in, or that no one wants on the way out.
//!
//! Symbols have one byte or, in long codes, two. `PARTS` is this number: a granule has the first
//! bytes of 64 symbols and then their second bytes, and all work is on a vector of each. Blocks of
//! Leopard's long codes have other symbols in another order: they are brought into this form on the
//! way in, and back on the way out.

mod leopard;
pub(super) mod recovery;
mod values;

use std::marker::PhantomData;
use std::ops::Range;

use crate::define::field::Field;
use crate::define::made::FirstMade;
use crate::define::subspace::Subspaces;
use crate::define::tower::{CantorBasis, ELEMENTS, Element, base};
use crate::limits::{CACHE_WAYS, PAGE, TRANSLATED_PAGES};
use crate::plan::machine::LINE;
use crate::plan::transform::program::{
    Chunk, LevelPass, MOST_GRANULES, TransformField, TransformProgram, TransformValue,
};
use crate::plan::variants::SETS;
use crate::run::buffers::{Memory, Scratch};
use crate::run::tiled::multiplier::{KernelWork, Multiplier};
use crate::run::tiled::vector::Vector;

/// Returns, for every point, the three bytes by which it multiplies ([`Element::factors`]).
fn points(basis: CantorBasis) -> &'static [[u8; 3]] {
    static OWN: FirstMade<Vec<[u8; 3]>> = FirstMade::new();
    static LEOPARD: FirstMade<Vec<[u8; 3]>> = FirstMade::new();
    let of_basis = match basis {
        CantorBasis::Own => &OWN,
        CantorBasis::Leopard => &LEOPARD,
    };
    of_basis.get(|| (0..ELEMENTS).map(|number| basis.point(number).factors()).collect())
}

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
        let [a, b, c] = factors;
        Self([all[usize::from(a)], all[usize::from(b)], all[usize::from(c)]])
    }

    /// Multiplies symbols, given as their low and their high bytes, or as bytes.
    ///
    /// # Safety
    /// The processor has the instruction set; if `NARROW`, the factor is an element of GF(2^8).
    #[inline(always)]
    unsafe fn times<const NARROW: bool, const PARTS: usize>(
        &self,
        symbols: [V; PARTS],
    ) -> [V; PARTS] {
        let (first, last) = (symbols[0], symbols[PARTS - 1]);
        let mut products = symbols;
        // SAFETY: the caller's contract.
        unsafe {
            let own = M::times(first, &self.0[0]);
            products[0] = own;
            if PARTS == 1 {
                return products;
            }
            if NARROW {
                products[PARTS - 1] = M::times(last, &self.0[0]);
                return products;
            }
            products[0] = own.xor(M::times(last, &self.0[1]));
            products[PARTS - 1] = own.xor(M::times(first.xor(last), &self.0[2]));
        }
        products
    }
}

/// The factors of a program's field.
#[derive(Clone, Copy)]
enum FieldFactors {
    Tower(&'static [[u8; 3]]),
    Bytes(&'static Subspaces),
}

impl FieldFactors {
    /// Returns the factors of a field, and the field of the bytes by which symbols are multiplied.
    /// `None` if the field has no tables.
    fn of(field: TransformField) -> Option<(Self, Field)> {
        Some(match field {
            TransformField::Tower(basis) => (Self::Tower(points(basis)), base()),
            TransformField::Bytes(field) => (Self::Bytes(Subspaces::of(field)?), field),
        })
    }

    /// The bytes by which the butterflies of a level multiply, in the group of 2^(level + 1) points
    /// from `point` on.
    #[inline(always)]
    fn butterfly(self, level: u32, point: usize) -> [u8; 3] {
        match self {
            Self::Tower(points) => points[point >> level],
            Self::Bytes(subspaces) => [subspaces.value(level, point), 0, 0],
        }
    }

    /// The bytes by which a value's factor multiplies.
    #[inline(always)]
    fn value(self, factor: Element) -> [u8; 3] {
        match self {
            Self::Tower(_) => factor.factors(),
            Self::Bytes(_) => [factor.0 as u8, 0, 0],
        }
    }
}

/// Runs a program over the range `granules` of all buffers: the kernel for every instruction set.
/// `GROUP` is the number of entries that a pass holds in registers.
///
/// # Safety
/// As [`TransformRunner`](super::TransformRunner).
#[inline(always)]
pub(super) unsafe fn run_transform<
    V: Vector,
    M: Multiplier<V>,
    const GROUP: usize,
    const PARTS: usize,
>(
    program: &TransformProgram,
    memory: &Memory<'_>,
    granules: Range<usize>,
) {
    let Some((factors, base)) = FieldFactors::of(program.field()) else { return };
    let passes = program.passes(GROUP.ilog2());
    let whole = TileGranules::<PARTS> { start: granules.start, count: granules.len() };
    let in_outputs = whole.are_in_outputs(program, memory);
    let step = if in_outputs { granules.len() } else { program.tile().min(granules.len()) };
    let width = step * PARTS * LINE;
    let computed = program.outputs().iter().map(|chunk| chunk.values().len()).sum::<usize>();
    let of_sum = program.entries() - if in_outputs { computed } else { 0 };
    let of_work = if program.has_one_tile() { 0 } else { program.entries() };
    let mut scratch = Scratch::new((of_sum + of_work) * width);
    let mut places = vec![std::ptr::null_mut(); 2 * program.entries()];
    let (sum, work) = places.split_at_mut(program.entries());
    for start in granules.clone().step_by(step.max(1)) {
        let columns = TileGranules::<PARTS> { start, count: step.min(granules.end - start) };
        // If one tile is enough, only one of the two is used: that of the sum, or if the sum is
        // kept, the other.
        let second = if program.has_one_tile() { 0 } else { of_sum * width };
        let room = scratch.start();
        columns.lay_sum(program, memory, (room, in_outputs), sum);
        lay(work, room.wrapping_add(second), columns.width());
        let tile = |places| TransformTile::<PARTS> {
            factors,
            base,
            is_leopard: program.is_leopard(),
            places,
            columns,
        };
        let tiles = [tile(sum), tile(work)];
        // SAFETY: each tile that is used has room of its own for the columns of each entry, and the
        // caller vouches for the buffers.
        unsafe { run_tile::<V, M, GROUP, PARTS>(program, &passes, memory, tiles) };
    }
}

/// Lays entries of `width` bytes one after the other.
#[inline(always)]
fn lay(entries: &mut [*mut u8], start: *mut u8, width: usize) {
    for (number, entry) in entries.iter_mut().enumerate() {
        *entry = start.wrapping_add(number * width);
    }
}

/// # Safety
/// As [`run_transform`]; the tiles are valid, and do not overlap if the program needs both.
#[inline(always)]
unsafe fn run_tile<V: Vector, M: Multiplier<V>, const GROUP: usize, const PARTS: usize>(
    program: &TransformProgram,
    passes: &[LevelPass],
    memory: &Memory<'_>,
    [sum, work]: [TransformTile<'_, PARTS>; 2],
) {
    let (first, last) = (passes[0], passes[passes.len() - 1]);
    // SAFETY: the caller's contract.
    unsafe {
        if program.inputs().is_empty() && !program.keeps() {
            sum.clear(0..program.entries());
        }
        for (number, chunk) in program.inputs().iter().enumerate() {
            let is_first = number == 0 && !program.keeps();
            let tile = if is_first { sum } else { work };
            for (pass, entries) in LevelPass::near_first(passes, program.entries()) {
                let from = if pass == first { End::Values(memory) } else { End::Tile(tile) };
                let to = if pass == last { sum } else { tile };
                let adds = pass == last && !is_first;
                let ends = Ends { from, to: End::Tile(to), adds };
                tile.pass::<V, M, GROUP, true>(chunk, (pass, entries), ends);
            }
        }
        for (number, chunk) in program.outputs().iter().enumerate() {
            let is_last = number + 1 == program.outputs().len() && !program.keeps();
            let tile = if is_last { sum } else { work };
            for (pass, entries) in LevelPass::near_first(passes, program.entries()).rev() {
                let from = End::Tile(if pass == last { sum } else { tile });
                let to = if pass == first { End::Values(memory) } else { End::Tile(tile) };
                let ends = Ends { from, to, adds: pass == first && program.adds() };
                tile.pass::<V, M, GROUP, false>(chunk, (pass, entries), ends);
            }
        }
    }
}

/// The two ends of a pass, where it reads and writes its entries.
#[derive(Clone, Copy)]
struct Ends<'a, const PARTS: usize> {
    from: End<'a, PARTS>,
    to: End<'a, PARTS>,
    /// Whether entries are added to those at `to` instead of replacing them.
    adds: bool,
}

/// One end of a pass.
#[derive(Clone, Copy)]
enum End<'a, const PARTS: usize> {
    Tile(TransformTile<'a, PARTS>),
    /// In the buffers of the chunk's values. An entry without a value lies in the tile.
    Values(&'a Memory<'a>),
}

/// The granules of every block that a tile holds.
#[derive(Clone, Copy)]
struct TileGranules<const PARTS: usize> {
    start: usize,
    count: usize,
}

impl<const PARTS: usize> TileGranules<PARTS> {
    /// Bytes of a block's columns.
    #[inline(always)]
    fn width(self) -> usize {
        self.count * PARTS * LINE
    }

    /// The first byte of a value's columns in its buffer, and the number of bytes that the buffer
    /// has there.
    #[inline(always)]
    fn of(self, value: &TransformValue, memory: &Memory<'_>) -> (*mut u8, usize) {
        let place = memory.places[value.buffer];
        let start = self.start * PARTS * LINE;
        (place.start.wrapping_add(start), place.length.saturating_sub(start).min(self.width()))
    }

    /// Chooses a place for each entry of the sum. If the sum is made in the outputs, an entry lies
    /// where the value that is computed from it lies, or in `room` if there is no such value. Else
    /// it lies where the sum is kept, or in `room` if it is not kept.
    #[inline(always)]
    fn lay_sum(
        self,
        program: &TransformProgram,
        memory: &Memory<'_>,
        (room, in_outputs): (*mut u8, bool),
        sum: &mut [*mut u8],
    ) {
        if !in_outputs {
            return lay(sum, self.kept(program, memory).unwrap_or(room), self.width());
        }
        let mut next = room;
        for (entry, place) in sum.iter_mut().enumerate() {
            match program.outputs().iter().find_map(|chunk| chunk.value(entry)) {
                Some(value) => *place = self.of(value, memory).0,
                None => {
                    *place = next;
                    next = next.wrapping_add(self.width());
                }
            }
        }
    }

    /// The first byte of this tile in a sum that is kept, whose tiles stand one after the other.
    #[inline(always)]
    fn kept(self, program: &TransformProgram, memory: &Memory<'_>) -> Option<*mut u8> {
        let place = memory.places.last().filter(|_| program.keeps())?;
        Some(place.start.wrapping_add(self.start * program.entries() * PARTS * LINE))
    }

    /// Whether the sum of the inputs' transforms takes the room of the values that are computed
    /// from it, so that a transform takes less of the cache: if it fits there, and if no pass over
    /// these values costs more than one over a tile. (Zen 5, 1,024 + 1,024 blocks of 1 KiB: where
    /// blocks begin between two cache lines or on pages of their own, 9.2 and 8.6 GB/s become 10.7
    /// and 10.2 with a tile; where they follow each other in memory, 10.8 become 11.2 without.)
    #[inline(always)]
    fn are_in_outputs(self, program: &TransformProgram, memory: &Memory<'_>) -> bool {
        let [output] = program.outputs() else { return false };
        let most = if program.has_one_tile() { MOST_GRANULES } else { program.tile() };
        let fits = |value: &TransformValue| {
            value.factor == Element::ONE && self.of(value, memory).1 == self.width()
        };
        self.count <= most
            && !(program.keeps() || program.adds())
            && output.values().iter().all(fits)
            && self.are_close(output, memory)
            && self.spread(output, memory)
    }

    /// Whether the columns of the values begin at cache lines, and touch few pages, or at most
    /// twice as many as if they followed each other in memory: each page costs an address
    /// translation in each pass.
    #[inline(always)]
    fn are_close(self, chunk: &Chunk, memory: &Memory<'_>) -> bool {
        let (mut touched, mut latest) = (0, None);
        for value in chunk.values() {
            let start = self.of(value, memory).0.addr();
            if !start.is_multiple_of(LINE) {
                return false;
            }
            let (first, last) = (start / PAGE, (start + self.width() - 1) / PAGE);
            touched += last - first + usize::from(latest != Some(first));
            latest = Some(last);
        }
        let dense = (chunk.values().len() * self.width()).div_ceil(PAGE);
        touched <= TRANSLATED_PAGES.max(2 * dense)
    }

    /// Whether the columns of the values are spread well over the sets of the first-level cache:
    /// each set has room for its lines, or gets at most twice as many as if the columns followed
    /// each other in memory. Buffers that all begin at pages compete for few sets. The set follows
    /// from the address within a page.
    #[inline(always)]
    fn spread(self, chunk: &Chunk, memory: &Memory<'_>) -> bool {
        let (mut begun, lines) = ([0; SETS], self.width() / LINE);
        for value in chunk.values() {
            begun[self.of(value, memory).0.addr() / LINE % SETS] += 1;
        }
        let mut held: usize = begun[..lines].iter().sum();
        let mut most = held;
        for set in lines..lines + SETS {
            held = held + begun[set % SETS] - begun[set - lines];
            most = most.max(held);
        }
        most <= (2 * lines * chunk.values().len()).div_ceil(SETS).max(CACHE_WAYS)
    }
}

/// The entries of a transform: some granules of each.
#[derive(Clone, Copy)]
struct TransformTile<'a, const PARTS: usize> {
    factors: FieldFactors,
    /// The field of the bytes by which symbols are multiplied.
    base: Field,
    /// Whether the symbols of blocks are Leopard's ([`TransformProgram::is_leopard`]).
    is_leopard: bool,
    /// The first byte of each entry.
    places: &'a [*mut u8],
    columns: TileGranules<PARTS>,
}

impl<const PARTS: usize> TransformTile<'_, PARTS> {
    /// Bytes of an entry.
    #[inline(always)]
    fn width(self) -> usize {
        self.columns.width()
    }

    #[inline(always)]
    fn entry(self, entry: usize) -> *mut u8 {
        self.places[entry]
    }

    /// Fills entries with zeros.
    ///
    /// # Safety
    /// The tile is valid.
    #[inline(always)]
    unsafe fn clear(self, entries: Range<usize>) {
        // SAFETY: the caller's contract.
        unsafe { entries.for_each(|entry| self.entry(entry).write_bytes(0, self.width())) };
    }

    /// Takes some levels of a transform or, if `INVERSE`, of an inverse transform, from one end to
    /// the other, for a range of entries that consists of whole groups. Entries without a value lie
    /// in this tile.
    ///
    /// # Safety
    /// The tiles are valid, and so are the buffers. Only passes of level 0 have values as an end:
    /// as the first if `INVERSE`, otherwise as the second.
    #[inline(always)]
    unsafe fn pass<V: Vector, M: Multiplier<V>, const GROUP: usize, const INVERSE: bool>(
        self,
        chunk: &Chunk,
        (pass, entries): (LevelPass, Range<usize>),
        ends: Ends<'_, PARTS>,
    ) {
        let marker = PhantomData::<(V, M)>;
        let groups = PassWork { tile: self, chunk, pass, entries, ends, marker };
        let narrow = chunk.point(self.places.len() - 1) >> pass.level < 256;
        // SAFETY: the caller's contract.
        unsafe {
            if const { PARTS > 1 } && narrow {
                groups.start::<GROUP, INVERSE, true>()
            } else {
                groups.start::<GROUP, INVERSE, false>()
            }
        }
    }

    /// Returns the factors of the group of a pass that begins at entry `first`: from slot
    /// GROUP / 2^(level + 1) on those of each level.
    #[inline(always)]
    fn group_factors<V: Vector, M: Multiplier<V>, const GROUP: usize>(
        self,
        chunk: &Chunk,
        pass: LevelPass,
        first: usize,
        all: &[M::Factor; 256],
    ) -> [Scalar<V, M>; GROUP] {
        let mut factors = [Scalar::new([0; 3], all); GROUP];
        for level in 0..GROUP.ilog2() {
            let count = GROUP >> (level + 1);
            for number in 0..count {
                let entry = first + (number << (pass.level + level + 1));
                let bytes = self.factors.butterfly(pass.level + level, chunk.point(entry));
                factors[count + number] = Scalar::new(bytes, all);
            }
        }
        factors
    }

    /// # Safety
    /// As [`TransformTile::pass`]; `GROUP` is 2 to the number of the pass's levels.
    #[inline(always)]
    unsafe fn groups<
        V: Vector,
        M: Multiplier<V>,
        const GROUP: usize,
        const INVERSE: bool,
        const NARROW: bool,
    >(
        self,
        chunk: &Chunk,
        (pass, entries): (LevelPass, Range<usize>),
        ends: Ends<'_, PARTS>,
    ) {
        let Ends { from, to, adds: adds_at_end } = ends;
        // Leopard's symbols are added when they are delivered.
        let adds = adds_at_end && !(self.is_leopard && matches!(to, End::Values(_)));
        let size = GROUP << pass.level;
        let all = M::factors(self.base);
        for first in entries.step_by(size) {
            // SAFETY: the group lies in the tiles; the caller vouches for the rest.
            unsafe {
                if !chunk.has_any(first..first + size) {
                    if let (End::Values(_), End::Tile(to), false) = (from, to, adds) {
                        to.clear(first..first + size);
                    }
                    continue;
                }
                let factors = self.group_factors::<V, M, GROUP>(chunk, pass, first, all);
                for first in first..first + (1 << pass.level) {
                    let entries = (first, pass.level);
                    let sources = self.sources::<V, M, GROUP>(chunk, from, entries);
                    let targets = self.targets::<GROUP>(chunk, to, entries, adds);
                    let ends = (&sources, &targets, self.width());
                    match adds {
                        false => {
                            group::<V, M, GROUP, INVERSE, NARROW, false, PARTS>(ends, &factors)
                        }
                        true => group::<V, M, GROUP, INVERSE, NARROW, true, PARTS>(ends, &factors),
                    }
                }
                if let (End::Values(memory), false) = (to, adds) {
                    self.deliver::<V, M>(chunk, memory, first..first + size, adds_at_end);
                }
            }
        }
    }

    /// The places from which a group is read: every 2^level-th entry from `first` on.
    ///
    /// # Safety
    /// As [`TransformTile::pass`].
    #[inline(always)]
    unsafe fn sources<V: Vector, M: Multiplier<V>, const GROUP: usize>(
        self,
        chunk: &Chunk,
        from: End<'_, PARTS>,
        (first, level): (usize, u32),
    ) -> [*mut u8; GROUP] {
        // A loop, because compilers leave closures outside of the functions that enable an
        // instruction set.
        let mut sources = [std::ptr::null_mut(); GROUP];
        for (n, source) in sources.iter_mut().enumerate() {
            let entry = first + (n << level);
            *source = match from {
                End::Tile(tile) => tile.entry(entry),
                // SAFETY: the caller's contract.
                End::Values(memory) => unsafe { self.source::<V, M>(chunk, memory, entry) },
            };
        }
        sources
    }

    /// The places to which a group is written, or added if `adds`, like
    /// [`sources`](Self::sources).
    #[inline(always)]
    fn targets<const GROUP: usize>(
        self,
        chunk: &Chunk,
        to: End<'_, PARTS>,
        (first, level): (usize, u32),
        adds: bool,
    ) -> [*mut u8; GROUP] {
        let mut targets = [std::ptr::null_mut(); GROUP];
        for (n, target) in targets.iter_mut().enumerate() {
            let entry = first + (n << level);
            *target = match to {
                End::Tile(tile) => tile.entry(entry),
                End::Values(memory) if adds => match chunk.value(entry) {
                    Some(value) => self.columns.of(value, memory).0,
                    None => self.entry(entry),
                },
                End::Values(memory) => self.target(chunk, memory, entry),
            };
        }
        targets
    }
}

/// A pass over all groups of a tile ([`TransformTile::pass`]).
struct PassWork<'a, V, M, const PARTS: usize> {
    tile: TransformTile<'a, PARTS>,
    chunk: &'a Chunk,
    pass: LevelPass,
    entries: Range<usize>,
    ends: Ends<'a, PARTS>,
    marker: PhantomData<(V, M)>,
}

/// The same, for groups of a size that is known when this is compiled.
struct GroupsWork<
    'a,
    V,
    M,
    const PARTS: usize,
    const GROUP: usize,
    const INVERSE: bool,
    const NARROW: bool,
>(PassWork<'a, V, M, PARTS>);

impl<V: Vector, M: Multiplier<V>, const PARTS: usize> PassWork<'_, V, M, PARTS> {
    /// # Safety
    /// As [`TransformTile::pass`]; if `NARROW`, all factors are elements of GF(2^8).
    #[inline(always)]
    unsafe fn start<const GROUP: usize, const INVERSE: bool, const NARROW: bool>(self) {
        // SAFETY: the caller's contract.
        unsafe {
            match self.pass.levels {
                0 => M::apart(GroupsWork::<V, M, PARTS, 1, INVERSE, NARROW>(self)),
                1 => M::apart(GroupsWork::<V, M, PARTS, 2, INVERSE, NARROW>(self)),
                2 => M::apart(GroupsWork::<V, M, PARTS, 4, INVERSE, NARROW>(self)),
                _ => M::apart(GroupsWork::<V, M, PARTS, GROUP, INVERSE, NARROW>(self)),
            }
        }
    }
}

impl<
    V: Vector,
    M: Multiplier<V>,
    const PARTS: usize,
    const GROUP: usize,
    const INVERSE: bool,
    const NARROW: bool,
> KernelWork for GroupsWork<'_, V, M, PARTS, GROUP, INVERSE, NARROW>
{
    #[inline(always)]
    unsafe fn run(self) {
        let PassWork { tile, chunk, pass, entries, ends, .. } = self.0;
        // SAFETY: the contract of `PassWork::start`.
        unsafe { tile.groups::<V, M, GROUP, INVERSE, NARROW>(chunk, (pass, entries), ends) }
    }
}

/// Takes all levels of a group: reads `width` bytes at each source and writes as many at each
/// target, or adds them to those there if `ADDS`.
///
/// # Safety
/// Sources and targets are valid for the bytes. Any two of them are the same place, or do not
/// overlap. The processor has the instruction set; if `NARROW`, all factors are elements of
/// GF(2^8).
#[inline(always)]
unsafe fn group<
    V: Vector,
    M: Multiplier<V>,
    const GROUP: usize,
    const INVERSE: bool,
    const NARROW: bool,
    const ADDS: bool,
    const PARTS: usize,
>(
    (sources, targets, width): (&[*mut u8; GROUP], &[*mut u8; GROUP], usize),
    factors: &[Scalar<V, M>; GROUP],
) {
    for granule in (0..width).step_by(PARTS * LINE) {
        for at in (granule..granule + LINE).step_by(V::BYTES) {
            // SAFETY: the caller's contract.
            unsafe {
                let mut values = [load::<V, PARTS>(sources[0].wrapping_add(at)); GROUP];
                for n in 1..GROUP {
                    values[n] = load::<V, PARTS>(sources[n].wrapping_add(at));
                }
                butterflies::<V, M, GROUP, INVERSE, NARROW, PARTS>(&mut values, factors);
                for (target, value) in targets.iter().zip(values) {
                    let to = target.wrapping_add(at);
                    store(if ADDS { plus(load(to), value) } else { value }, to);
                }
            }
        }
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
    const PARTS: usize,
>(
    values: &mut [[V; PARTS]; GROUP],
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
                values[low] = plus(values[low], factor.times::<NARROW, PARTS>(values[high]));
                if !INVERSE {
                    values[high] = plus(values[high], values[low]);
                }
            }
        }
    }
}

/// Loads symbols as vectors of their bytes of the same place.
///
/// # Safety
/// `from` is the place of a vector of first bytes in a valid granule.
#[inline(always)]
unsafe fn load<V: Vector, const PARTS: usize>(from: *const u8) -> [V; PARTS] {
    // SAFETY: the further bytes stand a line behind.
    unsafe {
        let mut symbols = [V::load(from); PARTS];
        if PARTS > 1 {
            symbols[PARTS - 1] = V::load(from.add(LINE));
        }
        symbols
    }
}

/// # Safety
/// As [`load`].
#[inline(always)]
unsafe fn store<V: Vector, const PARTS: usize>(symbols: [V; PARTS], to: *mut u8) {
    // SAFETY: as above.
    unsafe {
        symbols[0].store(to);
        if PARTS > 1 {
            symbols[PARTS - 1].store(to.add(LINE));
        }
    }
}

/// # Safety
/// The processor has the instruction set.
#[inline(always)]
unsafe fn plus<V: Vector, const PARTS: usize>(a: [V; PARTS], b: [V; PARTS]) -> [V; PARTS] {
    let mut sum = a;
    // SAFETY: the caller's contract.
    unsafe {
        sum[0] = a[0].xor(b[0]);
        if PARTS > 1 {
            sum[PARTS - 1] = a[PARTS - 1].xor(b[PARTS - 1]);
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::define::long::LongMatrix;
    use crate::run::buffers::BufferPlace;

    /// Whether the sum takes the room of the parity blocks, which are `bytes` bytes long and begin
    /// `distance` bytes apart, from a cache line on.
    fn in_outputs(program: &TransformProgram, bytes: usize, distance: usize) -> bool {
        let (read, written) = program.buffers();
        let mut memory = vec![0; (read + written) * distance + LINE];
        let line = memory.as_ptr().align_offset(LINE);
        let blocks = memory[line..].chunks_exact_mut(distance).map(|block| &mut block[..bytes]);
        let places: Vec<BufferPlace<'_>> = blocks.map(BufferPlace::from).collect();
        let whole = TileGranules::<2> { start: 0, count: bytes / (2 * LINE) };
        whole.are_in_outputs(program, &Memory { places: &places, nontemporal: false })
    }

    #[test]
    fn sums_are_in_short_outputs_that_lie_close_together() {
        let matrix = LongMatrix::new(CantorBasis::Own, 20, 25).unwrap();
        let encode = TransformProgram::encode(matrix);
        assert!(in_outputs(&encode, 1024, 1024));
        assert!(in_outputs(&encode, 1024, 2 * 1024));
        assert!(in_outputs(&encode, 1024, 2 * 4096 + 320));
        assert!(in_outputs(&encode, 4096, 4096));
        assert!(!in_outputs(&encode, 1024, 4096));
        assert!(!in_outputs(&encode, 1024, 1024 + 16));
        let wide = TransformProgram::encode(LongMatrix::new(CantorBasis::Own, 200, 200).unwrap());
        assert!(in_outputs(&wide, 1024, 1536));
        assert!(!in_outputs(&wide, 1024, 4096 + 320));
        assert!(in_outputs(&wide, 3072, 4096 + 320));
        assert!(!in_outputs(&encode, 4096 + 128, 4096 + 128));
        assert!(!in_outputs(&TransformProgram::add(matrix, &[0, 1], 0..20), 1024, 1024));
        let leopard = LongMatrix::new(CantorBasis::Leopard, 20, 25).unwrap();
        assert!(in_outputs(&TransformProgram::encode(leopard), 1024, 1024));
    }
}
