//! Long codes as fast Fourier transforms.
//!
//! The points of a long code (see [`crate::define::long`]) come in chunks of L = 2^m: the first has
//! the parity blocks, the others the data blocks. A polynomial of degree below L has one value at
//! each point of a chunk. It is kept as L coefficients over the basis of Lin, Chung and Han (*Novel
//! polynomial basis and its application to Reed-Solomon erasure codes*, FOCS 2014): coefficient k
//! belongs to the product of those sᵢ for which bit i of k is set, where sᵢ is the polynomial that
//! vanishes on the first 2^i points. Over this basis the values at any chunk follow from the
//! coefficients in m levels of L / 2 *butterflies*, one multiplication each; the inverse transform
//! takes as many. Level i pairs the entries n and n + 2^i:
//!
//! ```text
//! forward (levels m - 1 to 0)   low += factor · high, then high += low
//! inverse (levels 0 to m - 1)   high += low,          then low += factor · high
//! ```
//!
//! The factor is the value of sᵢ at the point of the chunk with the number of the first entry of
//! the group of 2^(i+1) entries; that is point(number / 2^i).
//!
//! Both questions about a long code are one program. *Inputs* are chunks of values: their inverse
//! transforms are added up. *Outputs* are the values of the sum at other chunks.
//!
//! - To add data blocks to parity blocks: inputs are the chunks of the data, the output is the
//!   chunk of the parity.
//! - To add data blocks in several calls, the sum is kept from one call to the next. The parity
//!   blocks are made of it at the end, once instead of in each call.
//! - To recover data blocks: the input is the chunk of the parity, multiplied by a factor for each
//!   row; outputs are the chunks with lost blocks, multiplied by a factor for each block.

use std::ops::Range;

use crate::define::long::LongMatrix;
use crate::define::tower::Element;
use crate::limits::LONG_TILE_BYTES;
use crate::plan::long::recovery::Recovery;

/// Bytes of a granule: 64 symbols, their low bytes before their high bytes.
pub(crate) const GRANULE: usize = 128;

/// A value of a transform that lies in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TransformValue {
    /// The entry of the transform.
    pub(crate) entry: usize,
    /// The buffer of the call.
    pub(crate) buffer: usize,
    /// The factor that the value is multiplied by when it is loaded or stored.
    pub(crate) factor: Element,
}

/// The values of a transform at one chunk of points.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// Number of the first point.
    start: usize,
    /// The values that lie in memory, by ascending entry. All others are zero, or not wanted.
    values: Vec<TransformValue>,
    /// For each entry, how many values there are before it; one more than there are entries.
    before: Vec<u32>,
}

impl Chunk {
    fn new(start: usize, size: usize, mut values: Vec<TransformValue>) -> Self {
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

    /// Number of the point that is the factor of the group of level `level` beginning at `entry`.
    pub(crate) fn factor(&self, level: u32, entry: usize) -> usize {
        (self.start + entry) >> level
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

/// A program over blocks: transforms of chunks, and the buffers in which their values lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LongProgram {
    levels: u32,
    inputs: Vec<Chunk>,
    outputs: Vec<Chunk>,
    /// Numbers of the buffers that are read and written, as [`LongProgram::buffers`] returns them.
    read: usize,
    written: usize,
    adds: bool,
    keeps: bool,
}

impl LongProgram {
    /// Returns the program that adds the data blocks `columns` to the parity blocks `rows`. The
    /// data blocks are the buffers from 0 on, the parity blocks the buffers after them.
    pub(crate) fn add(matrix: LongMatrix, rows: &[usize], columns: Range<usize>) -> Self {
        let plain = |entry, buffer| TransformValue { entry, buffer, factor: Element::ONE };
        let first = columns.start;
        let column = |column| (matrix.position(column), column - first, Element::ONE);
        let sums = rows.iter().enumerate().map(|(n, &row)| plain(row, columns.len() + n));
        Self {
            levels: matrix.levels(),
            outputs: vec![Chunk::new(0, matrix.chunk(), sums.collect())],
            read: columns.len(),
            written: rows.len(),
            inputs: chunks(matrix, columns.map(column)),
            adds: true,
            keeps: false,
        }
    }

    /// Returns the program that adds the data blocks `columns` to a sum that is kept. The data
    /// blocks are the buffers from 0 on.
    pub(crate) fn gather(matrix: LongMatrix, columns: Range<usize>) -> Self {
        let program = Self::add(matrix, &[], columns);
        Self { outputs: Vec::new(), keeps: true, ..program }
    }

    /// Returns the program that makes the parity blocks `rows` of a sum that was kept. The parity
    /// blocks are the buffers from 0 on.
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
            levels: matrix.levels(),
            inputs: vec![Chunk::new(0, matrix.chunk(), rows.collect())],
            outputs: chunks(matrix, lost),
            read: count,
            written: recovery.lost().len(),
            adds: false,
            keeps: false,
        }
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

    /// Whether results are added to the outputs instead of replacing them. Outputs that are added
    /// to have no factors.
    pub(crate) fn adds(&self) -> bool {
        self.adds
    }

    /// Whether the sum of the inputs' transforms lies in a buffer that outlasts the program. It is
    /// the last buffer, after those that are read and written, and has the tiles one after the
    /// other.
    pub(crate) fn keeps(&self) -> bool {
        self.keeps
    }

    /// The numbers of buffers that are read and that are written. Those that are read come first.
    pub(crate) fn buffers(&self) -> (usize, usize) {
        (self.read, self.written)
    }

    /// The number of granules of each entry that are transformed together: as many as leave the two
    /// tiles of a transform, and the blocks that come next, in the second-level cache.
    pub(crate) fn tile(&self) -> usize {
        (LONG_TILE_BYTES / (3 * self.entries() * GRANULE)).clamp(1, MOST_GRANULES)
    }

    /// Divides the levels into passes of at most `most` levels, the lowest first. There is a pass
    /// even if there is no level.
    pub(crate) fn passes(&self, most: u32) -> Vec<LevelPass> {
        let count = self.levels.div_ceil(most).max(1);
        let bound = |pass: u32| (self.levels * pass).div_ceil(count);
        let pass =
            |number| LevelPass { level: bound(number), levels: bound(number + 1) - bound(number) };
        (0..count).map(pass).collect()
    }
}

/// Largest number of granules of an entry in a tile: a page of each block.
const MOST_GRANULES: usize = 32;

/// Sorts values, each given by the number of its point, its buffer and its factor, into chunks.
fn chunks(matrix: LongMatrix, values: impl Iterator<Item = (usize, usize, Element)>) -> Vec<Chunk> {
    let size = matrix.chunk();
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
    fn interpret(program: &LongProgram, buffers: &mut [Element]) {
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
            let factor = Element::point(chunk.factor(level, first));
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
            let matrix = LongMatrix::new(data, parity).unwrap();
            let rows: Vec<usize> = (0..parity).rev().collect();
            let columns = 2..data;
            let program = LongProgram::add(matrix, &rows, columns.clone());
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
        let matrix = LongMatrix::new(100, 13).unwrap();
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
        interpret(&LongProgram::recover(&recovery), &mut buffers);
        assert_eq!(buffers[5..], data);
    }

    #[test]
    fn passes_cover_all_levels() {
        for parity in [1, 2, 3, 5, 100, 1000, 30_000] {
            let matrix = LongMatrix::new(10, parity).unwrap();
            let program = LongProgram::add(matrix, &[0], 0..10);
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
