//! Fast Fourier transforms of blocks, as data that a kernel reads.
//!
//! Points come in chunks of L = 2^m. A polynomial of degree below L has one value at each point of
//! a chunk. It is kept as L coefficients over the basis of Lin, Chung and Han (see
//! [`crate::define::subspace`]): coefficient k belongs to the product of those level polynomials
//! for which bit i of k is set. Over this basis the values at any chunk follow from the
//! coefficients in m levels of L / 2 *butterflies*, one multiplication each; the inverse transform
//! takes the same number. Level i pairs the entries n and n + 2^i:
//!
//! ```text
//! forward (levels m - 1 to 0)   low += factor · high, then high += low
//! inverse (levels 0 to m - 1)   high += low,          then low += factor · high
//! ```
//!
//! The factor is the value of level polynomial i at the first point of the group of 2^(i+1)
//! entries. Over Cantor's basis that is point(number / 2^i), rounded down.
//!
//! A question about a code is one program. *Inputs* are chunks of values: their inverse transforms
//! are added up. *Outputs* are the values of the sum at other chunks, or of its derivative.
//!
//! Long codes ([`crate::define::long`]) have the parity blocks in the first chunk and the data
//! blocks in the others:
//!
//! - To add data blocks to parity blocks: inputs are the chunks of the data, the output is the
//!   chunk of the parity.
//! - To add data blocks in several calls, the sum is kept from one call to the next. The parity
//!   blocks are computed from it at the end, once instead of in each call.
//! - To recover data blocks: the input is the chunk of the parity, multiplied by a factor for each
//!   row; outputs are the chunks with lost blocks, multiplied by a factor for each block.
//!
//! The programs of codes over bytes are found in [`solve`](crate::plan::transform::solve).

use std::ops::Range;

use crate::define::field::Field;
use crate::define::long::LongMatrix;
use crate::define::tower::{CantorBasis, Element};
use crate::limits::{BYTES_TILE_BYTES, TRANSFORM_TILE_BYTES};
use crate::plan::long::recovery::Recovery;
use crate::plan::machine::LINE;

/// Bytes of a granule of long codes: 64 symbols, their low bytes before their high bytes.
pub(crate) const GRANULE: usize = 2 * LINE;

/// The field of the values of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransformField {
    /// The tower of long codes, over points of a basis.
    Tower(CantorBasis),
    /// Bytes.
    Bytes(Field),
}

/// A value of a transform that lies in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TransformValue {
    /// The entry of the transform.
    pub(crate) entry: usize,
    /// The buffer of the call.
    pub(crate) buffer: usize,
    /// The factor that the value is multiplied by when it is loaded or stored. In a program over
    /// bytes, the number of the element is the byte.
    pub(crate) factor: Element,
}

/// The values of a transform at one chunk of points.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// Number of the first point.
    start: usize,
    /// The values that lie in memory, by ascending entry. All others are zero or not wanted.
    values: Vec<TransformValue>,
    /// For each entry, the number of values before it; then the number of all values.
    before: Vec<u32>,
}

impl Chunk {
    pub(crate) fn new(start: usize, size: usize, mut values: Vec<TransformValue>) -> Self {
        values.sort_unstable_by_key(|value| value.entry);
        let mut before = vec![0; size + 1];
        values.iter().for_each(|value| before[value.entry + 1] = 1);
        (0..size).for_each(|entry| before[entry + 1] += before[entry]);
        Self { start, values, before }
    }

    /// All values, by ascending entry.
    pub(crate) fn values(&self) -> &[TransformValue] {
        &self.values
    }

    /// The values of a range of entries, by ascending entry.
    pub(crate) fn values_of(&self, entries: Range<usize>) -> &[TransformValue] {
        &self.values[self.before[entries.start] as usize..self.before[entries.end] as usize]
    }

    /// The value of an entry.
    pub(crate) fn value(&self, entry: usize) -> Option<&TransformValue> {
        self.values_of(entry..entry + 1).first()
    }

    /// Whether there is a value among the entries of a range.
    pub(crate) fn has_any(&self, entries: Range<usize>) -> bool {
        self.before[entries.start] < self.before[entries.end]
    }

    /// Number of the point of an entry.
    pub(crate) fn point(&self, entry: usize) -> usize {
        self.start + entry
    }
}

/// Levels of a transform that are taken in one pass over memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LevelPass {
    /// The lowest level.
    pub(crate) level: u32,
    /// The number of levels.
    pub(crate) levels: u32,
}

impl LevelPass {
    /// Returns the passes of an inverse transform in their order, each with the entries that it
    /// takes; the transform itself takes them in reverse. The two lowest passes alternate: both go
    /// over one block of entries, then over the next, because a block mostly fits into the
    /// first-level cache.
    #[inline(always)]
    pub(crate) fn near_first(
        passes: &[Self],
        entries: usize,
    ) -> impl DoubleEndedIterator<Item = (Self, Range<usize>)> {
        let (near, far) = passes.split_at(if passes.len() > 2 { 2 } else { 0 });
        let block = 1 << near.iter().map(|pass| pass.levels).sum::<u32>();
        let count = if near.is_empty() { 0 } else { entries / block };
        let blocks = (0..count).flat_map(move |number| {
            near.iter().map(move |&pass| (pass, number * block..(number + 1) * block))
        });
        blocks.chain(far.iter().map(move |&pass| (pass, 0..entries)))
    }
}

/// A program over blocks: transforms of chunks, and the buffers in which their values lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TransformProgram {
    field: TransformField,
    levels: u32,
    inputs: Vec<Chunk>,
    outputs: Vec<Chunk>,
    /// Numbers of the buffers that are read and written, as [`TransformProgram::buffers`] returns
    /// them.
    read: usize,
    written: usize,
    recovers: bool,
    adds: bool,
    keeps: bool,
    derives: bool,
}

impl TransformProgram {
    /// Returns a program over bytes, with transforms of 2^levels entries. Buffers that are read are
    /// numbered before those that are written.
    pub(crate) fn of_bytes(
        field: Field,
        levels: u32,
        inputs: Vec<Chunk>,
        outputs: Vec<Chunk>,
        derives: bool,
    ) -> Self {
        let count = |chunks: &[Chunk]| chunks.iter().map(|chunk| chunk.values.len()).sum();
        Self {
            field: TransformField::Bytes(field),
            levels,
            read: count(&inputs),
            written: count(&outputs),
            inputs,
            outputs,
            recovers: false,
            adds: false,
            keeps: false,
            derives,
        }
    }

    /// Returns the program that adds the data blocks `columns` to the parity blocks `rows`. The
    /// data blocks are the buffers from 0 on, the parity blocks the buffers after them.
    pub(crate) fn add(matrix: LongMatrix, rows: &[usize], columns: Range<usize>) -> Self {
        let plain = |entry, buffer| TransformValue { entry, buffer, factor: Element::ONE };
        let first = columns.start;
        let column = |column| (matrix.position(column), column - first, Element::ONE);
        let sums = rows.iter().enumerate().map(|(n, &row)| plain(row, columns.len() + n));
        Self {
            field: TransformField::Tower(matrix.basis()),
            levels: matrix.levels(),
            outputs: vec![Chunk::new(0, matrix.chunk(), sums.collect())],
            read: columns.len(),
            written: rows.len(),
            inputs: chunks(matrix.chunk(), columns.map(column)),
            recovers: false,
            adds: true,
            keeps: false,
            derives: false,
        }
    }

    /// Returns the program that computes all parity blocks from all data blocks. The data blocks
    /// are the buffers from 0 on, the parity blocks the buffers after them.
    pub(crate) fn encode(matrix: LongMatrix) -> Self {
        let rows: Vec<usize> = (0..matrix.parity()).collect();
        Self { adds: false, ..Self::add(matrix, &rows, 0..matrix.data()) }
    }

    /// Returns the program that adds the data blocks `columns` to a sum that is kept. The data
    /// blocks are the buffers from 0 on.
    pub(crate) fn gather(matrix: LongMatrix, columns: Range<usize>) -> Self {
        let program = Self::add(matrix, &[], columns);
        Self { outputs: Vec::new(), keeps: true, ..program }
    }

    /// Returns the program that computes the parity blocks `rows` from a sum that was kept. The
    /// parity blocks are the buffers from 0 on.
    pub(crate) fn finish(matrix: LongMatrix, rows: &[usize]) -> Self {
        let program = Self::add(matrix, rows, 0..0);
        Self { adds: false, keeps: true, ..program }
    }

    /// Returns the program that recovers lost data blocks. The sums are the buffers from 0 on, the
    /// lost blocks the buffers after them.
    pub(crate) fn recover(recovery: &Recovery) -> Self {
        let (matrix, count) = (recovery.matrix(), recovery.rows().len());
        let rows = recovery.rows().iter().zip(recovery.row_factors()).enumerate();
        let rows = rows.map(|(buffer, (&entry, &factor))| TransformValue { entry, buffer, factor });
        let lost = recovery.lost().iter().zip(recovery.lost_factors()).enumerate();
        let lost = lost.map(|(n, (&lost, &factor))| (matrix.position(lost), count + n, factor));
        Self {
            field: TransformField::Tower(matrix.basis()),
            levels: matrix.levels(),
            inputs: vec![Chunk::new(0, matrix.chunk(), rows.collect())],
            outputs: chunks(matrix.chunk(), lost),
            read: count,
            written: recovery.lost().len(),
            recovers: true,
            adds: false,
            keeps: false,
            derives: false,
        }
    }

    /// The field of the values.
    pub(crate) fn field(&self) -> TransformField {
        self.field
    }

    /// Bytes of a granule of a block: 64 symbols, the first bytes of all of them before the second.
    pub(crate) fn granule(&self) -> usize {
        match self.field {
            TransformField::Tower(_) => GRANULE,
            TransformField::Bytes(_) => LINE,
        }
    }

    /// Whether outputs are values of the derivative of the sum.
    pub(crate) fn derives(&self) -> bool {
        self.derives
    }

    /// Number of operations on vectors of each block: three for a butterfly, two for a term of the
    /// derivative, and one for a value and for its factor.
    pub(crate) fn operations(&self) -> usize {
        let entries = self.entries();
        let of = |chunk: &Chunk| {
            let butterflies = (0..self.levels).map(|level| {
                let firsts = (0..entries).step_by(2 << level);
                let groups = firsts.filter(|&first| chunk.has_any(first..first + (2 << level)));
                groups.count() << level
            });
            let factors = chunk.values.iter().filter(|value| value.factor != Element::ONE);
            3 * butterflies.sum::<usize>() + chunk.values.len() + factors.count()
        };
        let derivative = if self.derives { entries * self.levels as usize } else { 0 };
        self.inputs.iter().chain(&self.outputs).map(of).sum::<usize>() + derivative
    }

    /// The number of entries of a transform.
    pub(crate) fn entries(&self) -> usize {
        1 << self.levels
    }

    /// The chunks whose inverse transforms are added up.
    pub(crate) fn inputs(&self) -> &[Chunk] {
        &self.inputs
    }

    /// The chunks whose values are computed.
    pub(crate) fn outputs(&self) -> &[Chunk] {
        &self.outputs
    }

    /// Whether the program reads sums of parity blocks and computes data blocks, not the other way
    /// around.
    pub(crate) fn recovers(&self) -> bool {
        self.recovers
    }

    /// Whether results are added to the outputs instead of replacing them. Outputs that are added
    /// to have no factors.
    pub(crate) fn adds(&self) -> bool {
        self.adds
    }

    /// Whether the sum of the inputs' transforms lies in a buffer that outlasts the program. It is
    /// the last buffer, after the buffers that are read or written, and holds the tiles one after
    /// the other.
    pub(crate) fn keeps(&self) -> bool {
        self.keeps
    }

    /// The number of buffers that are read, and the number of buffers that are written. The buffers
    /// that are read come first.
    pub(crate) fn buffers(&self) -> (usize, usize) {
        (self.read, self.written)
    }

    /// The number of granules of each entry that are transformed together, unless blocks are
    /// shorter or sums are made in the outputs. In long codes, the number is chosen so that the two
    /// tiles of a transform fit into the second-level cache. If there are too many entries for
    /// that, each has [`LEAST_GRANULES`], and the tiles are larger.
    pub(crate) fn tile(&self) -> usize {
        let bytes = match self.field {
            TransformField::Tower(_) => TRANSFORM_TILE_BYTES / 2,
            TransformField::Bytes(_) => BYTES_TILE_BYTES,
        };
        (bytes / (self.entries() * self.granule())).clamp(LEAST_GRANULES, MOST_GRANULES)
    }

    /// The number of granules at whose multiples threads divide the blocks, so that several of them
    /// have work also if blocks are short. Tiles of a sum that is kept are not divided.
    pub(crate) fn grain(&self, granules: usize) -> usize {
        if self.keeps { self.tile() } else { self.tile().min(granules.div_ceil(4)).max(1) }
    }

    /// Whether one tile of scratch is enough: that of the only chunk, whose transform is the sum,
    /// or that of a chunk that is transformed while the sum lies in the caller's memory.
    pub(crate) fn has_one_tile(&self) -> bool {
        self.keeps || self.inputs.len().max(self.outputs.len()) < 2
    }

    /// Whether blocks hold Leopard's symbols: chunks of 64 bytes hold the low bytes of 32 symbols,
    /// then their high bytes, and bit i of a symbol is the coefficient of element i of the basis.
    /// Otherwise they hold elements in whole granules.
    pub(crate) fn is_leopard(&self) -> bool {
        self.field == TransformField::Tower(CantorBasis::Leopard)
    }

    /// Divides the levels into passes of at most `most` levels, the lowest first. Returns one pass
    /// even if there are no levels.
    pub(crate) fn passes(&self, most: u32) -> Vec<LevelPass> {
        let count = self.levels.div_ceil(most).max(1);
        // Some passes may have one level less than others. If passes have at most two levels,
        // these are the last ones, so that blocks of near passes have 16 entries. If passes have
        // three, these are the first ones, because blocks of 32 entries stay in the first-level
        // cache more often than those of 64.
        let rest = if most < 3 { count - 1 } else { 0 };
        let bound = |pass: u32| (self.levels * pass + rest) / count;
        let pass =
            |number| LevelPass { level: bound(number), levels: bound(number + 1) - bound(number) };
        (0..count).map(pass).collect()
    }
}

/// Smallest number of granules of an entry in a tile, over which the cost of a group of butterflies
/// is spread. Processors fetch blocks ahead of their use only if they are read in runs of some
/// lines, and blocks that lie pages apart cost an address translation each. (Sapphire Rapids: 128
/// losses of 128+128 with shards of 1 KiB take 79 microseconds with 2 granules, 50 with 16; 8,000 +
/// 800 blocks of 64 KiB are encoded 1.2 to 1.3 times as fast with 8 as with 2.)
const LEAST_GRANULES: usize = 8;

/// Largest number of granules of an entry in a tile: a page of each block of a long code.
pub(crate) const MOST_GRANULES: usize = 32;

/// Sorts values, each given by the number of its point, its buffer and its factor, into chunks of
/// `size` points.
pub(super) fn chunks(
    size: usize,
    values: impl Iterator<Item = (usize, usize, Element)>,
) -> Vec<Chunk> {
    let mut values: Vec<(usize, usize, Element)> = values.collect();
    values.sort_unstable_by_key(|&(position, ..)| position);
    let same_chunk =
        |a: &(usize, usize, Element), b: &(usize, usize, Element)| a.0 / size == b.0 / size;
    let chunk = |values: &[(usize, usize, Element)]| {
        let start = values[0].0 / size * size;
        let value = |&(position, buffer, factor)| TransformValue {
            entry: position - start,
            buffer,
            factor,
        };
        Chunk::new(start, size, values.iter().map(value).collect())
    };
    values.chunk_by(same_chunk).map(chunk).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a program on one symbol for each buffer.
    fn interpret(program: &TransformProgram, buffers: &mut [Element]) {
        let levels: Vec<u32> = (0..program.levels).collect();
        let mut sums = vec![Element::ZERO; program.entries()];
        for chunk in program.inputs() {
            let mut values = vec![Element::ZERO; program.entries()];
            for value in &chunk.values {
                values[value.entry] = buffers[value.buffer].times(value.factor);
            }
            levels.iter().for_each(|&level| butterflies(&mut values, chunk, level, true));
            sums.iter_mut().zip(values).for_each(|(sum, value)| *sum = sum.plus(value));
        }
        for chunk in program.outputs() {
            let mut values = sums.clone();
            levels.iter().rev().for_each(|&level| butterflies(&mut values, chunk, level, false));
            for value in &chunk.values {
                let made = values[value.entry].times(value.factor);
                let old = if program.adds() { buffers[value.buffer] } else { Element::ZERO };
                buffers[value.buffer] = old.plus(made);
            }
        }
    }

    fn butterflies(values: &mut [Element], chunk: &Chunk, level: u32, inverse: bool) {
        let half = 1 << level;
        for first in (0..values.len()).step_by(2 * half) {
            let factor = CantorBasis::Own.point(chunk.point(first) >> level);
            for low in first..first + half {
                if inverse {
                    values[low + half] = values[low + half].plus(values[low]);
                }
                values[low] = values[low].plus(factor.times(values[low + half]));
                if !inverse {
                    values[low + half] = values[low + half].plus(values[low]);
                }
            }
        }
    }

    /// Checks the transforms against the matrix, one coefficient at a time.
    #[test]
    fn adding_multiplies_by_the_coefficients() {
        for (data, parity) in [(5, 1), (9, 2), (40, 12), (70, 16)] {
            let matrix = LongMatrix::new(CantorBasis::Own, data, parity).unwrap();
            let rows: Vec<usize> = (0..parity).rev().collect();
            let columns = 2..data;
            let program = TransformProgram::add(matrix, &rows, columns.clone());
            for (buffer, column) in columns.enumerate() {
                let mut buffers = vec![Element::ZERO; data - 2 + parity];
                buffers[buffer] = Element(0xBEEF);
                buffers[data - 2..].fill(Element(0x1234));
                interpret(&program, &mut buffers);
                for (&row, sum) in rows.iter().zip(&buffers[data - 2..]) {
                    let product = matrix.coefficient(row, column).times(Element(0xBEEF));
                    assert_eq!(*sum, product.plus(Element(0x1234)), "{data} {row} {column}");
                }
            }
        }
    }

    #[test]
    fn recovering_inverts() {
        let matrix = LongMatrix::new(CantorBasis::Own, 100, 13).unwrap();
        let (lost, rows) = ([3, 99, 17, 18, 64], [12, 0, 7, 3, 5]);
        let recovery = Recovery::new(matrix, &lost, &rows).unwrap();
        let data: Vec<Element> = (0..5).map(|n| Element(n * 4099 + 1)).collect();
        let sum = |&row: &usize| {
            let terms = lost.iter().zip(&data);
            let terms = terms.map(|(&lost, &block)| matrix.coefficient(row, lost).times(block));
            terms.fold(Element::ZERO, Element::plus)
        };
        let mut buffers: Vec<Element> = rows.iter().map(sum).collect();
        buffers.resize(10, Element(77));
        interpret(&TransformProgram::recover(&recovery), &mut buffers);
        assert_eq!(buffers[5..], data);
    }

    /// Every entry goes through all passes, the lowest first.
    #[test]
    fn every_entry_goes_through_all_passes() {
        for parity in [1, 5, 100, 1000, 30_000] {
            let matrix = LongMatrix::new(CantorBasis::Own, 10, parity).unwrap();
            let program = TransformProgram::add(matrix, &[0], 0..10);
            let (passes, mut done) = (program.passes(3), vec![0; program.entries()]);
            for (pass, entries) in LevelPass::near_first(&passes, program.entries()) {
                assert!(entries.start.is_multiple_of(1 << (pass.level + pass.levels)));
                for number in &mut done[entries] {
                    assert_eq!(passes[*number], pass);
                    *number += 1;
                }
            }
            assert!(done.iter().all(|&number| number == passes.len()));
        }
    }

    #[test]
    fn passes_cover_all_levels() {
        for parity in [1, 2, 3, 5, 100, 1000, 30_000] {
            let matrix = LongMatrix::new(CantorBasis::Own, 10, parity).unwrap();
            let program = TransformProgram::add(matrix, &[0], 0..10);
            for most in 1..4 {
                let passes = program.passes(most);
                let levels: Vec<u32> =
                    passes.iter().flat_map(|pass| pass.level..pass.level + pass.levels).collect();
                assert!(levels.into_iter().eq(0..program.levels));
                assert!(!passes.is_empty() && passes.iter().all(|pass| pass.levels <= most));
            }
            assert!(program.tile() >= 1);
        }
    }
}
