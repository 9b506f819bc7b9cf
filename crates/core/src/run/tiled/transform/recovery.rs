//! Recoveries: the inverse transform of a chunk, the derivative, and the transform of the same
//! chunk, over bytes (see [`crate::plan::transform::solve`]).
//!
//! The derivative is a sum of terms, one for each level: coefficient n gets coefficient n + 2^i
//! times the derivative of level polynomial i, if bit i of n is 0. The inverse transform goes up
//! through the levels, the transform comes down again. Butterflies of a level above i have the same
//! factors whether bit i is set or not, so they commute with term i: for this term alone, going up
//! from level i and coming back cancel. So term i is computed from what the inverse transform has
//! made up to its level, and is added when the transform comes back to this level. Only the highest
//! levels go all the way up:
//!
//! ```text
//! up     for each pass but the highest:           values -> inverse levels, kept in its tile
//! top    for the highest pass:                    inverse levels, its terms, levels
//! down   for each pass but the highest, in turn:  add its terms of what it kept, then its levels
//! ```
//!
//! So terms take no passes of their own, and neither do the factors of values, which are multiplied
//! as they are loaded and before they are stored.

use std::ops::Range;

use crate::define::subspace::Subspaces;
use crate::define::tower::Element;
use crate::plan::machine::LINE;
use crate::plan::transform::program::{Chunk, LevelPass, TransformField, TransformProgram};
use crate::run::buffers::{Memory, Scratch};
use crate::run::tiled::multiplier::{KernelWork, Multiplier};
use crate::run::tiled::transform::{Scalar, TileGranules, butterflies, load, plus, store};
use crate::run::tiled::vector::Vector;

/// Runs a recovery over the range `granules` of all buffers, which are whole granules. `GROUP` is
/// the number of entries that a pass holds in registers.
///
/// # Safety
/// As [`TransformRunner`](crate::run::tiled::TransformRunner).
#[inline(always)]
pub(crate) unsafe fn run_recovery<V: Vector, M: Multiplier<V>, const GROUP: usize>(
    program: &TransformProgram,
    memory: &Memory<'_>,
    granules: Range<usize>,
) {
    let TransformField::Bytes(field) = program.field() else { return };
    let Some(subspaces) = Subspaces::of(field) else { return };
    let ([input], [output]) = (program.inputs(), program.outputs()) else { return };
    let passes = program.passes(GROUP.ilog2());
    let step = program.tile().min(granules.len()).max(1);
    // Entries stand a line farther apart than they are long, so that those of a pass do not share
    // their place in the cache.
    let bytes = program.entries() * (step + 1) * LINE;
    // A tile for each pass, a strip of zeros, and a strip for unwanted results.
    let mut scratch = Scratch::new(passes.len() * bytes + 2 * step * LINE);
    let tiles = RecoveryTiles { first: scratch.start(), bytes };
    let zeros = tiles.after(passes.len());
    let unwanted = zeros.wrapping_add(step * LINE);
    // SAFETY: the scratch memory has the strip.
    unsafe { zeros.write_bytes(0, step * LINE) };
    let columns = |start| TileGranules { start, count: step.min(granules.end - start) };
    for start in granules.clone().step_by(step) {
        let columns = columns(start);
        let places = Places { input, output, memory, columns, zeros, unwanted };
        let all = M::factors(field);
        let work = RecoveryWork { entries: program.entries(), subspaces, all, places };
        // SAFETY: each tile has room for all entries, and the caller vouches for the buffers.
        unsafe { work.run::<V, M, GROUP>(&passes, tiles) };
    }
}

/// The tiles of a recovery, one for each pass.
#[derive(Clone, Copy)]
struct RecoveryTiles {
    first: *mut u8,
    bytes: usize,
}

impl RecoveryTiles {
    /// The place after some tiles, which is the first byte of the next one.
    fn after(self, tiles: usize) -> *mut u8 {
        self.first.wrapping_add(tiles * self.bytes)
    }
}

/// A recovery of some columns.
#[derive(Clone, Copy)]
struct RecoveryWork<'a, F: 'static> {
    entries: usize,
    subspaces: &'static Subspaces,
    /// The factors of all bytes.
    all: &'static [F; 256],
    places: Places<'a>,
}

impl<F: Copy> RecoveryWork<'_, F> {
    /// Takes all passes up, to the top and down.
    ///
    /// # Safety
    /// The tiles have room for all entries, and the buffers are valid.
    #[inline(always)]
    unsafe fn run<V: Vector, M: Multiplier<V, Factor = F>, const GROUP: usize>(
        self,
        passes: &[LevelPass],
        tiles: RecoveryTiles,
    ) {
        let top = passes.len() - 1;
        let tile = |pass: usize| Some(tiles.after(pass));
        let below = |pass: usize| pass.checked_sub(1).and_then(tile);
        let work = |pass: usize, from, kept, to| RecoveryPass::<V, M> {
            work: self,
            pass: passes[pass],
            from,
            kept,
            to,
        };
        // SAFETY: the caller's contract. Each pass reads tiles that those before it have written.
        unsafe {
            for pass in 0..top {
                work(pass, below(pass), None, tile(pass)).start::<GROUP, true, false>();
            }
            let to = below(top).and(tile(top));
            work(top, below(top), None, to).start::<GROUP, true, true>();
            for pass in (0..top).rev() {
                let to = below(pass).and(tile(pass));
                work(pass, tile(pass + 1), tile(pass), to).start::<GROUP, false, true>();
            }
        }
    }
}

/// Where the values of a recovery lie.
#[derive(Clone, Copy)]
struct Places<'a> {
    input: &'a Chunk,
    output: &'a Chunk,
    memory: &'a Memory<'a>,
    columns: TileGranules<1>,
    /// Zeros, from which input entries without a value are read.
    zeros: *mut u8,
    /// Room to which output entries without a value are written.
    unwanted: *mut u8,
}

impl Places<'_> {
    /// The place of an entry's value, and its factor; `other` if it has none.
    #[inline(always)]
    fn of(self, chunk: &Chunk, entry: usize, other: *mut u8) -> (*mut u8, Element) {
        match chunk.value(entry) {
            Some(value) => (self.columns.of(value, self.memory).0, value.factor),
            None => (other, Element::ONE),
        }
    }
}

/// A pass over all groups of a tile.
struct RecoveryPass<'a, V: Vector, M: Multiplier<V>> {
    work: RecoveryWork<'a, M::Factor>,
    pass: LevelPass,
    /// The tile that is read; `None` for the values of the input.
    from: Option<*mut u8>,
    /// The tile whose terms of the derivative are added on the way down.
    kept: Option<*mut u8>,
    /// The tile that is written; `None` for the values of the output.
    to: Option<*mut u8>,
}

/// The same, for groups of a size that is known when this is compiled. Inverse levels are taken if
/// `UP`, levels if `DOWN`; if both, the terms of the derivative replace what is between.
struct RecoveryGroups<
    'a,
    V: Vector,
    M: Multiplier<V>,
    const GROUP: usize,
    const UP: bool,
    const DOWN: bool,
>(RecoveryPass<'a, V, M>);

impl<V: Vector, M: Multiplier<V>> RecoveryPass<'_, V, M> {
    /// # Safety
    /// The tiles and the buffers are valid; the processor has the instruction set.
    #[inline(always)]
    unsafe fn start<const GROUP: usize, const UP: bool, const DOWN: bool>(self) {
        let pass = self;
        // SAFETY: the caller's contract.
        unsafe {
            match pass.pass.levels {
                0 => M::apart(RecoveryGroups::<V, M, 1, UP, DOWN>(pass)),
                1 => M::apart(RecoveryGroups::<V, M, 2, UP, DOWN>(pass)),
                2 => M::apart(RecoveryGroups::<V, M, 4, UP, DOWN>(pass)),
                _ => M::apart(RecoveryGroups::<V, M, GROUP, UP, DOWN>(pass)),
            }
        }
    }

    /// The first byte of an entry in a tile.
    #[inline(always)]
    fn entry(&self, tile: *mut u8, entry: usize) -> *mut u8 {
        tile.wrapping_add(entry * (self.work.places.columns.width() + LINE))
    }

    /// The factor of a byte.
    #[inline(always)]
    fn factor(&self, byte: u8) -> Scalar<V, M> {
        Scalar::new([byte, 0, 0], self.work.all)
    }
}

impl<V: Vector, M: Multiplier<V>, const GROUP: usize, const UP: bool, const DOWN: bool> KernelWork
    for RecoveryGroups<'_, V, M, GROUP, UP, DOWN>
{
    #[inline(always)]
    unsafe fn run(self) {
        let pass = self.0;
        let (places, level) = (pass.work.places, pass.pass.level);
        let (size, width) = (GROUP << level, places.columns.width());
        let mut group = pass.group::<GROUP>();
        for first in (0..pass.work.entries).step_by(size) {
            // On the way down, groups without a wanted value are left out.
            if !UP && !places.output.has_any(first..first + size) {
                continue;
            }
            pass.set_factors(&mut group, first);
            for offset in first..first + (1 << level) {
                pass.set_places(&mut group, offset);
                // SAFETY: all places hold `width` bytes: entries of tiles, strips, and the columns
                // of buffers, for which the caller vouches.
                unsafe {
                    match pass.pass.level {
                        0 => group.run::<UP, DOWN, true>(width),
                        _ => group.run::<UP, DOWN, false>(width),
                    }
                }
            }
        }
    }
}

impl<V: Vector, M: Multiplier<V>> RecoveryPass<'_, V, M> {
    /// Returns a group with the derivatives of the pass's levels; all else is set later.
    #[inline(always)]
    fn group<const GROUP: usize>(&self) -> EntryGroup<V, M, GROUP> {
        let mut terms = [self.factor(1); GROUP];
        for (n, term) in terms.iter_mut().enumerate().take(GROUP.ilog2() as usize) {
            *term = self.factor(self.work.subspaces.derivative(self.pass.level + n as u32));
        }
        EntryGroup {
            factors: [self.factor(0); GROUP],
            terms,
            loaded: [self.factor(1); GROUP],
            stored: [self.factor(1); GROUP],
            sources: [self.work.places.zeros; GROUP],
            kept: [self.work.places.zeros; GROUP],
            targets: [self.work.places.unwanted; GROUP],
        }
    }

    /// Sets the factors of the butterflies in the groups from entry `first` on.
    #[inline(always)]
    fn set_factors<const GROUP: usize>(&self, group: &mut EntryGroup<V, M, GROUP>, first: usize) {
        for step in 0..GROUP.ilog2() {
            let (count, level) = (GROUP >> (step + 1), self.pass.level + step);
            for number in 0..count {
                let point = self.work.places.input.point(first + (number << (level + 1)));
                group.factors[count + number] =
                    self.factor(self.work.subspaces.value(level, point));
            }
        }
    }

    /// Sets where the group of entry `first` is read and written, and the factors of values.
    #[inline(always)]
    fn set_places<const GROUP: usize>(&self, group: &mut EntryGroup<V, M, GROUP>, first: usize) {
        let places = self.work.places;
        for n in 0..GROUP {
            let entry = first + (n << self.pass.level);
            match self.from {
                Some(tile) => group.sources[n] = self.entry(tile, entry),
                None => {
                    let (place, factor) = places.of(places.input, entry, places.zeros);
                    group.sources[n] = place;
                    group.loaded[n] = self.factor(factor.0 as u8);
                }
            }
            match self.to {
                Some(tile) => group.targets[n] = self.entry(tile, entry),
                None => {
                    let (place, factor) = places.of(places.output, entry, places.unwanted);
                    group.targets[n] = place;
                    group.stored[n] = self.factor(factor.0 as u8);
                }
            }
            if let Some(tile) = self.kept {
                group.kept[n] = self.entry(tile, entry);
            }
        }
    }
}

/// Entries that are held in registers together.
struct EntryGroup<V: Vector, M: Multiplier<V>, const GROUP: usize> {
    /// From slot GROUP / 2^(level + 1) on those of each level.
    factors: [Scalar<V, M>; GROUP],
    /// The derivative of each level polynomial.
    terms: [Scalar<V, M>; GROUP],
    /// The factor of each entry when it is loaded, and when it is stored.
    loaded: [Scalar<V, M>; GROUP],
    stored: [Scalar<V, M>; GROUP],
    sources: [*mut u8; GROUP],
    kept: [*mut u8; GROUP],
    targets: [*mut u8; GROUP],
}

impl<V: Vector, M: Multiplier<V>, const GROUP: usize> EntryGroup<V, M, GROUP> {
    /// Takes all levels of the group. If `VALUES`, the lowest level is among them, so entries are
    /// values: on the way up they are multiplied when they are loaded, and on the way down when
    /// they are stored.
    ///
    /// # Safety
    /// All places are valid for `width` bytes; the processor has the instruction set.
    #[inline(always)]
    unsafe fn run<const UP: bool, const DOWN: bool, const VALUES: bool>(&self, width: usize) {
        for at in (0..width).step_by(V::BYTES) {
            // SAFETY: the caller's contract.
            unsafe {
                let mut values = [load::<V, 1>(self.sources[0].wrapping_add(at)); GROUP];
                for (n, value) in values.iter_mut().enumerate() {
                    *value = load::<V, 1>(self.sources[n].wrapping_add(at));
                    if UP && VALUES {
                        *value = self.loaded[n].times::<false, 1>(*value);
                    }
                }
                if UP {
                    butterflies::<V, M, GROUP, true, false, 1>(&mut values, &self.factors);
                }
                if UP && DOWN {
                    self.derive(&mut values);
                }
                if DOWN && !UP {
                    for n in 1..GROUP {
                        let kept = load::<V, 1>(self.kept[n].wrapping_add(at));
                        self.add_terms(&mut values, n, kept);
                    }
                }
                if DOWN {
                    butterflies::<V, M, GROUP, false, false, 1>(&mut values, &self.factors);
                }
                for (n, &value) in values.iter().enumerate() {
                    let made = match DOWN && VALUES {
                        true => self.stored[n].times::<false, 1>(value),
                        false => value,
                    };
                    store(made, self.targets[n].wrapping_add(at));
                }
            }
        }
    }

    /// Replaces coefficients by the terms of the derivative.
    ///
    /// # Safety
    /// The processor has the instruction set.
    #[inline(always)]
    unsafe fn derive(&self, values: &mut [[V; 1]; GROUP]) {
        let coefficients = *values;
        // SAFETY: the caller's contract.
        unsafe {
            for value in values.iter_mut() {
                *value = plus(*value, *value);
            }
            for (n, &coefficient) in coefficients.iter().enumerate() {
                self.add_terms(values, n, coefficient);
            }
        }
    }

    /// Adds the terms of coefficient n: one for each of its bits.
    ///
    /// # Safety
    /// The processor has the instruction set.
    #[inline(always)]
    unsafe fn add_terms(&self, values: &mut [[V; 1]; GROUP], n: usize, coefficient: [V; 1]) {
        for bit in 0..GROUP.ilog2() as usize {
            if n >> bit & 1 == 1 {
                let below = n - (1 << bit);
                // SAFETY: the caller's contract.
                unsafe {
                    let term = self.terms[bit].times::<false, 1>(coefficient);
                    values[below] = plus(values[below], term);
                }
            }
        }
    }
}
