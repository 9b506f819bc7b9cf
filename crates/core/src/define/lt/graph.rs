//! Graphs: for each block, the data blocks whose XOR it is.
//!
//! If neighbours are chosen at random, those of a block follow from the seed and its number alone.
//! The other two selections draw the whole graph: the coverage threshold depends on all blocks, and
//! the queue of uniform coverage on the degrees of the blocks before.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::define::bitmatrix::Echelon;
use crate::define::lt::generator::{Generator, Purpose};
use crate::define::lt::peeling::Peeling;
use crate::define::lt::soliton::{MAX_DATA_BLOCKS, Thresholds};
use crate::define::lt::{Originals, Parameters, Selection};
use crate::error::{Error, Result};

/// Largest number of blocks of a graph.
pub const MAX_BLOCKS: usize = 1 << 20;

/// Number of graphs drawn in search of a decodable one.
pub const MAX_ATTEMPTS: u32 = 64;

/// Number of neighbours in all graphs that are drawn in search of a decodable one, after which no
/// further graph is drawn. So the search ends after seconds, however large the graphs are.
const MAX_DRAWN: usize = 1 << 26;

/// Largest total number of neighbours of all blocks.
const MAX_EDGES: usize = 1 << 28;

/// The blocks of an LT code, each with its neighbours. A clone shares them.
#[derive(Debug, Clone)]
pub struct Graph {
    data: usize,
    attempt: u32,
    /// What it was drawn from, if it was.
    parameters: Option<Parameters>,
    /// Start of each block's neighbours in `neighbours`, and the end of the last block's.
    starts: Arc<[u32]>,
    neighbours: Arc<[u32]>,
}

impl PartialEq for Graph {
    /// Whether both have the same blocks, however these came about.
    fn eq(&self, other: &Self) -> bool {
        (self.data, self.attempt) == (other.data, other.attempt)
            && self.starts == other.starts
            && self.neighbours == other.neighbours
    }
}

impl Eq for Graph {}

impl Graph {
    /// Draws a graph. If it must be decodable (*guaranteed decodability*), graphs are drawn until
    /// one is.
    ///
    /// # Errors
    /// If the number of blocks is 0, above 2^20 or below the number of originals; if the blocks
    /// have too many neighbours together; if the coverage threshold exceeds the number of drawn
    /// blocks; or if the graph must be decodable and none of 64 attempts is (of fewer, if the
    /// graphs are very large).
    pub fn new(parameters: &Parameters) -> Result<Self> {
        if !parameters.variant.decodable {
            return Self::attempted(parameters, 0);
        }
        let (mut attempts, mut drawn) = (0, 0);
        while attempts < MAX_ATTEMPTS && drawn < MAX_DRAWN {
            let graph = Self::attempted(parameters, attempts)?;
            if graph.is_peelable()? {
                return Ok(graph);
            }
            (attempts, drawn) = (attempts + 1, drawn + graph.neighbours.len());
        }
        Err(Error::parameters(format!(
            "none of {attempts} graphs of {} blocks over {} data blocks can be peeled; more blocks \
             or originals among them make it likelier",
            parameters.blocks,
            parameters.soliton.data()
        )))
    }

    /// Draws the graph of the given [`Graph::attempt`] without checking whether it is decodable, as
    /// a reader of stored blocks does.
    ///
    /// # Errors
    /// As [`Graph::new`], except that decodability is not checked.
    pub fn attempted(parameters: &Parameters, attempt: u32) -> Result<Self> {
        parameters.check()?;
        let mut graph = Self::from_rows(parameters.soliton.data(), draw(parameters, attempt))?;
        (graph.attempt, graph.parameters) = (attempt, Some(*parameters));
        Ok(graph)
    }

    /// Returns the neighbours of one block, ascending, without drawing any other block. This works
    /// for neighbours chosen at random, which follow from the seed and the block's number alone.
    /// `block` is not limited by the number of blocks.
    ///
    /// # Errors
    /// If they depend on other blocks, as with a coverage threshold and uniform coverage.
    pub fn neighbours_of(parameters: &Parameters, attempt: u32, block: usize) -> Result<Vec<u32>> {
        if parameters.variant.selection != Selection::Random {
            return Err(Error::parameters(
                "with a coverage threshold or uniform coverage a block's neighbours depend on others; \
                 draw the whole graph",
            ));
        }
        if block < original_count(parameters) {
            return Ok(vec![block as u32]);
        }
        let thresholds = parameters.soliton.thresholds();
        Ok(GraphRandom { parameters, attempt, thresholds }.random(block))
    }

    /// Returns the graph with the given neighbours, block by block (the evaluation's metadata).
    ///
    /// # Errors
    /// If the number of blocks or of data blocks is 0 or too large for an LT code, or if the blocks
    /// have too many neighbours together. Also if a block has no neighbours, the same neighbour
    /// twice, or a neighbour that does not exist.
    pub fn from_neighbours(data: usize, blocks: &[Vec<u32>]) -> Result<Self> {
        check_count("data blocks", data, MAX_DATA_BLOCKS)?;
        check_count("blocks", blocks.len(), MAX_BLOCKS)?;
        let mut rows = blocks.to_vec();
        for (block, row) in rows.iter_mut().enumerate() {
            row.sort_unstable();
            let distinct = row.is_sorted_by(|a, b| a < b);
            if row.last().is_none_or(|&last| last as usize >= data) || !distinct {
                return Err(Error::parameters(format!(
                    "block {block} needs distinct neighbours below {data}, and at least one"
                )));
            }
        }
        Self::from_rows(data, rows)
    }

    fn from_rows(data: usize, rows: Vec<Vec<u32>>) -> Result<Self> {
        check_edges(rows.len(), rows.iter().map(Vec::len).sum())?;
        let (mut starts, mut neighbours) = (vec![0], Vec::new());
        for row in rows {
            neighbours.extend(row);
            starts.push(neighbours.len() as u32);
        }
        let (starts, neighbours) = (starts.into(), neighbours.into());
        Ok(Self { data, attempt: 0, parameters: None, starts, neighbours })
    }

    /// What the graph was drawn from and its attempt, if it was drawn.
    pub(crate) fn drawn(&self) -> Option<(&Parameters, u32)> {
        Some((self.parameters.as_ref()?, self.attempt))
    }

    /// Returns the same graph with the given number ([`Graph::attempt`]).
    pub(crate) fn of_attempt(self, attempt: u32) -> Self {
        Self { attempt, ..self }
    }

    /// The number of data blocks, k.
    pub fn data(&self) -> usize {
        self.data
    }

    /// The number of blocks, n.
    pub fn blocks(&self) -> usize {
        self.starts.len() - 1
    }

    /// Number of this graph among those drawn, from 0; above 0 only if the graph had to be
    /// decodable.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Returns the data blocks whose XOR a block is, ascending.
    ///
    /// # Errors
    /// If there is no block of that number.
    pub fn neighbours(&self, block: usize) -> Result<&[u32]> {
        if block >= self.blocks() {
            return Err(Error::parameters(format!(
                "block {block} is foreign: the graph has blocks 0 to {}",
                self.blocks() - 1
            )));
        }
        Ok(self.row(block as u32))
    }

    /// Like [`Graph::neighbours`], for a block that is known to exist.
    pub(crate) fn row(&self, block: u32) -> &[u32] {
        let block = block as usize;
        &self.neighbours[self.starts[block] as usize..self.starts[block + 1] as usize]
    }

    /// Whether all blocks together determine the data. Uses dense elimination, so it suits few data
    /// blocks.
    pub(super) fn has_full_rank(&self) -> bool {
        let mut echelon = Echelon::new(self.data);
        (0..self.blocks() as u32).any(|block| {
            let mut row = vec![0; self.data.div_ceil(64)];
            self.row(block).iter().for_each(|&data| row[data as usize / 64] |= 1 << (data % 64));
            // A dependent row changes nothing.
            let _ = echelon.insert(&row);
            echelon.rank() == self.data
        })
    }

    /// Whether all blocks together can be peeled.
    fn is_peelable(&self) -> Result<bool> {
        let mut peeling = Peeling::new(self);
        for block in 0..self.blocks() {
            if peeling.push(block)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn check_count(what: &str, count: usize, most: usize) -> Result<()> {
    if (1..=most).contains(&count) {
        return Ok(());
    }
    Err(Error::parameters(format!("an LT code must have from 1 to {most} {what}; got {count}")))
}

fn check_edges(blocks: usize, edges: usize) -> Result<()> {
    if edges <= MAX_EDGES {
        return Ok(());
    }
    Err(Error::parameters(format!(
        "{blocks} blocks with {edges} neighbours are more than the {MAX_EDGES} of a graph; take fewer \
         blocks, a larger c or less coverage"
    )))
}

impl Parameters {
    /// Expected number of neighbours of all blocks before the coverage threshold adds any.
    fn drawn(&self) -> usize {
        (self.soliton.mean() * self.blocks as f64) as usize
    }

    /// Number of neighbours that the coverage threshold demands of all blocks together.
    fn covered(&self) -> usize {
        match self.variant.selection {
            Selection::Coverage(least) => (least as usize).saturating_mul(self.soliton.data()),
            Selection::Random | Selection::Uniform => 0,
        }
    }

    /// Upper estimate of the number of neighbours of all blocks.
    pub(crate) fn edges(&self) -> usize {
        self.drawn().saturating_add(self.covered())
    }

    /// Checks that a graph can be drawn from these parameters; decodability is not checked.
    ///
    /// # Errors
    /// As [`Graph::attempted`].
    pub(crate) fn check(&self) -> Result<()> {
        check_count("blocks", self.blocks, MAX_BLOCKS)?;
        // A graph has at least as many neighbours as its coverage demands.
        check_edges(self.blocks, self.drawn().max(self.covered()))?;
        let originals = original_count(self);
        let Some(drawn) = self.blocks.checked_sub(originals) else {
            let blocks = self.blocks;
            return Err(Error::parameters(format!(
                "{blocks} blocks cannot hold {originals} originals"
            )));
        };
        match self.variant.selection {
            Selection::Coverage(least) if least as usize > drawn => {
                Err(Error::parameters(format!(
                    "a data block cannot be in {least} of {drawn} drawn blocks; lower the coverage or add \
                 blocks"
                )))
            }
            _ => Ok(()),
        }
    }
}

/// Number of originals among the blocks.
fn original_count(parameters: &Parameters) -> usize {
    match parameters.variant.originals {
        Originals::None => 0,
        Originals::Only | Originals::AndDegreeOne => parameters.soliton.data(),
    }
}

fn draw(parameters: &Parameters, attempt: u32) -> Vec<Vec<u32>> {
    let originals = original_count(parameters);
    let thresholds = parameters.soliton.thresholds();
    let source = GraphRandom { parameters, attempt, thresholds };
    let drawn = originals..parameters.blocks;
    let mut rows: Vec<Vec<u32>> = (0..originals as u32).map(|data| vec![data]).collect();
    match parameters.variant.selection {
        Selection::Random => rows.extend(drawn.map(|block| source.random(block))),
        Selection::Coverage(least) => {
            rows.extend(drawn.map(|block| source.random(block)));
            source.cover(&mut rows, originals, least as usize);
        }
        Selection::Uniform => {
            let is_taken = vec![false; parameters.soliton.data()];
            let waiting = VecDeque::new();
            let mut queue = CoverageQueue { source: &source, waiting, permutations: 0, is_taken };
            rows.extend(drawn.map(|block| queue.take(source.degree(block).0)));
        }
    }
    rows
}

/// Source of the random numbers of one graph.
struct GraphRandom<'p> {
    parameters: &'p Parameters,
    attempt: u32,
    thresholds: Thresholds,
}

impl GraphRandom<'_> {
    fn generator(&self, purpose: Purpose, index: usize) -> Generator {
        Generator::new(self.parameters.seed, self.attempt, purpose, index)
    }

    fn data(&self) -> u32 {
        self.parameters.soliton.data() as u32
    }

    /// Returns the degree of a drawn block, and the generator that continues with its neighbours.
    fn degree(&self, block: usize) -> (u32, Generator) {
        let mut generator = self.generator(Purpose::Block, block);
        let below = |bound| generator.below(bound);
        let degree = match self.parameters.variant.originals {
            Originals::Only => self.thresholds.degree_above_one(below),
            Originals::None | Originals::AndDegreeOne => self.thresholds.degree(below),
        };
        (degree, generator)
    }

    fn random(&self, block: usize) -> Vec<u32> {
        let (degree, mut generator) = self.degree(block);
        generator.choose(degree, self.data())
    }

    /// Takes each data block that is in fewer than `least` blocks, and adds it to random drawn
    /// blocks.
    fn cover(&self, rows: &mut [Vec<u32>], originals: usize, least: usize) {
        let mut covered = vec![0; self.data() as usize];
        rows.iter().flatten().for_each(|&data| covered[data as usize] += 1);
        let drawn = &mut rows[originals..];
        for data in 0..self.data() {
            let mut generator = self.generator(Purpose::Coverage, data as usize);
            while covered[data as usize] < least {
                let row = &mut drawn[generator.below(drawn.len() as u64) as usize];
                if let Err(place) = row.binary_search(&data) {
                    row.insert(place, data);
                    covered[data as usize] += 1;
                }
            }
        }
    }
}

/// The queue of uniform coverage.
struct CoverageQueue<'s> {
    source: &'s GraphRandom<'s>,
    waiting: VecDeque<u32>,
    permutations: usize,
    /// For each data block, whether it is in the row that is being taken.
    is_taken: Vec<bool>,
}

impl CoverageQueue<'_> {
    /// Takes the next `degree` data blocks, ascending. A block may begin in one permutation and end
    /// in the next, and then meet a data block again; that data block goes back to the head of the
    /// queue.
    fn take(&mut self, degree: u32) -> Vec<u32> {
        let (mut row, mut again) = (Vec::with_capacity(degree as usize), Vec::new());
        while row.len() < degree as usize {
            let data = self.next();
            match std::mem::replace(&mut self.is_taken[data as usize], true) {
                true => again.push(data),
                false => row.push(data),
            }
        }
        row.iter().for_each(|&data| self.is_taken[data as usize] = false);
        again.into_iter().rev().for_each(|data| self.waiting.push_front(data));
        row.sort_unstable();
        row
    }

    fn next(&mut self) -> u32 {
        loop {
            if let Some(data) = self.waiting.pop_front() {
                return data;
            }
            let mut generator = self.source.generator(Purpose::Permutation, self.permutations);
            self.waiting.extend(generator.permutation(self.source.data()));
            self.permutations += 1;
        }
    }
}
