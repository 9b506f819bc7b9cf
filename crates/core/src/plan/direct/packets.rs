//! Direct answers in the packet layout, for any code.
//!
//! The equations are solved on generator rows as words of bits: one column for each data cell, and
//! one for each parity cell whose equation is used. Gauss-Jordan elimination of the columns of the
//! lost data cells leaves, for each of them, a row without other lost cells: the row's other ones
//! are the cells at hand that add up to the lost cell. For 10+4 the rows have two words, and there
//! are sixteen.

use crate::define::bitmatrix::{ones_of, xor_words};
use crate::define::cells::{CellId, CellSet, NodeId, Role};
use crate::define::code::Code;
use crate::limits::DIRECT_GENERATOR;
use crate::plan::direct::sums::{PlannedAfter, Sums, Terms};
use crate::plan::layout::Layout;
use crate::plan::machine::LINE;

/// The generator of a code as words of bits.
#[derive(Debug)]
pub(super) struct GeneratorBits {
    /// Number of words of a row.
    width: usize,
    /// For each cell, its row: one bit for each data cell.
    rows: Vec<u64>,
    /// Parity cells, beginning with those of the nodes with the fewest ones.
    parity: Vec<CellId>,
    /// Cells that are stored nowhere.
    nowhere: Vec<CellId>,
    /// Number of ones in the rows of parity.
    ones: usize,
}

impl GeneratorBits {
    /// Returns the generator of a code; `None` if its questions need plans.
    pub(super) fn new(code: &Code, layout: &Layout) -> Option<Self> {
        let width = code.data_cells().len().div_ceil(64);
        let is_even = layout.rows.windows(2).all(|rows| rows[0] == rows[1]);
        let is_stored = |&cell: &CellId| code.cell(cell).place.is_some();
        let is_small = width.saturating_mul(code.cell_count()) <= DIRECT_GENERATOR;
        if !is_even || !is_small || !code.data_cells().iter().all(is_stored) {
            return None;
        }
        let mut rows = vec![0; width * code.cell_count()];
        for (cell, row) in code.cells().zip(rows.chunks_exact_mut(width)) {
            code.row(cell).iter().for_each(|&data| row[data as usize / 64] |= 1 << (data % 64));
        }
        let ones = |node: &NodeId| -> usize {
            code.node_cells(*node).iter().map(|&cell| code.row(cell).len()).sum()
        };
        let mut nodes: Vec<NodeId> = code.nodes().collect();
        nodes.sort_by_cached_key(ones);
        let cells = nodes.iter().flat_map(|&node| code.node_cells(node).iter().copied());
        let parity = cells.filter(|&cell| code.cell(cell).role == Role::Parity).collect();
        let nowhere = code.cells().filter(|cell| !is_stored(cell)).collect();
        Some(Self { width, rows, parity, nowhere, ones: code.ones() })
    }

    fn row(&self, cell: CellId) -> &[u64] {
        &self.rows[cell.index() * self.width..][..self.width]
    }

    /// As [`DirectSolver::solve`](super::DirectSolver::solve).
    pub(super) fn solve(
        &self,
        code: &Code,
        layout: &Layout,
        have: &CellSet,
        want: &CellSet,
    ) -> Option<Sums> {
        // Cells that are stored nowhere are at hand only for planners.
        if have.meets(want) || self.nowhere.iter().any(|&cell| have.contains(cell)) {
            return None;
        }
        let solved = Solved::new(self, code, have)?;
        let mut sums = Vec::with_capacity(want.len() * solved.width);
        for cell in want.iter() {
            let start = sums.len();
            sums.resize(start + solved.width, 0);
            solved.express(self.row(cell), &mut sums[start..]);
        }
        let location = |cell| layout.location(code, cell).ok();
        let (columns, terms) = terms(&sums, solved.width)?;
        let cell = |&column: &u32| match (column as usize).checked_sub(64 * self.width) {
            None => code.data_cells()[column as usize],
            Some(equation) => solved.equations[equation],
        };
        let inputs = columns.iter().map(cell).map(location).collect::<Option<_>>()?;
        let outputs = want.iter().map(location).collect::<Option<_>>()?;
        let planned = PlannedAfter::packets(terms.operands(), self.ones);
        Some(Sums { inputs, outputs, terms, is_solved: solved.lost.count > 0, planned })
    }

    /// Returns random data and its parity, in strips of every buffer.
    pub(super) fn sample(
        &self,
        code: &Code,
        layout: &Layout,
        random: impl FnMut() -> Vec<u8>,
    ) -> Vec<Vec<u8>> {
        let data: Vec<Vec<u8>> =
            std::iter::repeat_with(random).take(code.data_cells().len()).collect();
        let mut strips: Vec<Vec<u8>> =
            layout.rows.iter().map(|&rows| Vec::with_capacity(rows * LINE)).collect();
        for (strip, cells) in strips.iter_mut().zip(&layout.cells) {
            for &cell in cells {
                let mut packet = vec![0; LINE];
                for &position in code.row(cell) {
                    let bytes = packet.iter_mut().zip(&data[position as usize]);
                    bytes.for_each(|(sum, byte)| *sum ^= byte);
                }
                strip.extend(packet);
            }
        }
        strips
    }
}

/// The lost data cells, each as the sum of cells at hand.
struct Solved {
    /// Number of words of a row: a bit for each data cell, and then a bit for each equation.
    width: usize,
    lost: Lost,
    /// The parity cells whose equations are used.
    equations: Vec<CellId>,
    /// For each equation a row: a sum of data cells, one of which is lost, and of equations.
    rows: Vec<u64>,
}

/// The data cells that are not at hand.
struct Lost {
    /// Bits of the cells.
    bits: Vec<u64>,
    count: usize,
    /// For each data cell that is lost, the number of the row that has it, once there is one.
    row_of: Vec<Option<u32>>,
}

impl Lost {
    fn new(code: &Code, have: &CellSet, width: usize) -> Self {
        let (mut bits, mut count) = (vec![0; width], 0);
        for (position, &cell) in code.data_cells().iter().enumerate() {
            if !have.contains(cell) {
                bits[position / 64] |= 1 << (position % 64);
                count += 1;
            }
        }
        let row_of = if count > 0 { vec![None; code.data_cells().len()] } else { Vec::new() };
        Self { bits, count, row_of }
    }

    /// Returns the lost cells among those of a row.
    fn among(&self, row: &[u64]) -> impl Iterator<Item = usize> {
        let words = row.iter().zip(&self.bits).enumerate();
        words.flat_map(|(number, (row, bits))| {
            ones_of_word(row & bits).map(move |bit| 64 * number + bit)
        })
    }

    /// Adds a generator row to `sum`, and replaces every lost cell that one of the rows `rows`
    /// gives by the sum that is equal to it.
    fn replace(&self, row: &[u64], rows: &[u64], sum: &mut [u64]) {
        xor_words(sum, row);
        for cell in self.among(row) {
            if let Some(number) = self.row_of[cell] {
                xor_words(sum, &rows[number as usize * sum.len()..][..sum.len()]);
            }
        }
    }
}

fn ones_of_word(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let one = (word != 0).then(|| word.trailing_zeros() as usize)?;
        word &= word - 1;
        Some(one)
    })
}

impl Solved {
    /// Solves the equations of the parity at hand; `None` if they do not give all data.
    fn new(generator: &GeneratorBits, code: &Code, have: &CellSet) -> Option<Self> {
        let lost = Lost::new(code, have, generator.width);
        let width = generator.width + lost.count.div_ceil(64);
        let (equations, rows) =
            (Vec::with_capacity(lost.count), Vec::with_capacity((lost.count + 1) * width));
        let mut solved = Self { width, lost, equations, rows };
        for &cell in generator.parity.iter().filter(|&&cell| have.contains(cell)) {
            if solved.equations.len() == solved.lost.count {
                break;
            }
            solved.insert(generator, cell);
        }
        (solved.equations.len() == solved.lost.count).then_some(solved)
    }

    /// Adds the equation of a parity cell, if it is independent of the equations before it. A lost
    /// cell that has a row does not occur in the other rows.
    fn insert(&mut self, generator: &GeneratorBits, cell: CellId) {
        let (number, start) = (self.equations.len(), self.rows.len());
        self.rows.resize(start + self.width, 0);
        let (rows, row) = self.rows.split_at_mut(start);
        self.lost.replace(generator.row(cell), rows, row);
        let column = 64 * generator.width + number;
        row[column / 64] ^= 1 << (column % 64);
        let Some(lead) = self.lost.among(row).next() else { return self.rows.truncate(start) };
        for other in rows.chunks_exact_mut(self.width) {
            if other[lead / 64] >> (lead % 64) & 1 == 1 {
                xor_words(other, row);
            }
        }
        self.lost.row_of[lead] = Some(number as u32);
        self.equations.push(cell);
    }

    /// Adds a generator row to `sum`, which is zero, and replaces every lost cell by the sum of
    /// cells at hand that is equal to it.
    fn express(&self, row: &[u64], sum: &mut [u64]) {
        self.lost.replace(row, &self.rows, sum);
    }
}

/// Returns the columns that occur in sums of `width` words, and the sums as terms that number these
/// columns; `None` if a sum has no terms.
fn terms(sums: &[u64], width: usize) -> Option<(Vec<u32>, Terms)> {
    let mut used = vec![0; width];
    for sum in sums.chunks_exact(width) {
        used.iter_mut().zip(sum).for_each(|(used, word)| *used |= word);
    }
    let columns: Vec<u32> = ones_of(&used).map(|column| column as u32).collect();
    let mut number_of = vec![0; 64 * width];
    (0..).zip(&columns).for_each(|(number, &column)| number_of[column as usize] = number);
    let total: usize = sums.iter().map(|word| word.count_ones() as usize).sum();
    let (mut inputs, mut ends) = (vec![0; total], Vec::with_capacity(sums.len() / width));
    let mut end = 0;
    for sum in sums.chunks_exact(width) {
        let start = end;
        for (number, &word) in sum.iter().enumerate() {
            for bit in ones_of_word(word) {
                inputs[end] = number_of[64 * number + bit];
                end += 1;
            }
        }
        if end == start {
            return None;
        }
        ends.push(end as u32);
    }
    (!ends.is_empty()).then_some((columns, Terms::Packets { inputs, ends }))
}
