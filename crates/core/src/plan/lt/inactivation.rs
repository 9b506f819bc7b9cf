//! Inactivation decoding: peeling, and elimination for the few unknowns that stop it.
//!
//! Peeling alone needs more blocks than there are unknowns, and stops when no block has a single
//! unknown left. Then an unknown is set aside (it becomes *inactive*) and treated as known, and
//! peeling goes on. In the end every data block is either inactive or a sum of received blocks and
//! inactive ones. The blocks that peeling did not use are equations between inactive data blocks
//! only, which dense elimination solves. So data is rebuilt exactly if the received rows have full
//! rank. (RFC 6330, section 5.4, decodes RaptorQ in this way.)
//!
//! Elimination takes time in the cube of the number of inactive unknowns. Usual codes have few of
//! them. Where blocks have hundreds of neighbours each, nearly all unknowns become inactive. More
//! than [`MOST_INACTIVE`] are refused.
//!
//! Unknowns are set aside only after the number of blocks has reached that of unknowns and every
//! unknown is in some block, because the rank cannot be full earlier. Each later block is reduced
//! to one equation, so a push costs one row and no work is repeated.
//!
//! When the data is determined, everything is solved once more for the program, from all blocks
//! received, those of the lowest degrees first. With a few more blocks than are needed, far fewer
//! XORs suffice (half of them at 1.05 k for k = 1024), because fewer unknowns are set aside and
//! sparser rows are used.
//!
//! The program computes four things, in this order:
//!
//! 1. the *constants*, as far as they are needed: the results of peeling with all inactive data
//!    blocks taken as zero;
//! 2. the equations;
//! 3. the inactive data blocks;
//! 4. the remaining data blocks. One without a constant is computed from its row, as in the lazy
//!    decoder. One with a constant is the XOR of that and its *correction*, the sum of the inactive
//!    data blocks in it. The correction is the XOR of the corrections of the row's other data
//!    blocks. There are fewer corrections than sources of the row: a data block that does not
//!    depend on inactive ones has no correction, and many corrections are equal.
//!
//! Each received block is read at most once.

use std::collections::{HashMap, HashSet};

use crate::define::bitmatrix::Echelon;
use crate::define::lt::{Graph, Peeling};
use crate::error::{Error, Result};
use crate::limits::MOST_INACTIVE;
use crate::plan::Plan;
use crate::plan::lt::program::LtProgram;
use crate::plan::schedule::{Op, Slot};

/// Returns the program that computes all data blocks from those received.
pub(super) fn plan(received: &Peeling) -> Result<Plan> {
    let graph = received.graph();
    let mut blocks: Vec<u32> = received.arrivals().iter().map(|arrival| arrival.block).collect();
    blocks.sort_by_key(|&block| graph.row(block).len());
    let mut peeling = Peeling::new(graph);
    for block in blocks {
        peeling.push(block as usize)?;
    }
    let residue = Residue::new(&mut peeling).ok_or_else(|| too_dense(graph))?;
    residue.plan(&peeling)
}

/// Returns the error for a code that would take too long to solve.
pub(super) fn too_dense(graph: &Graph) -> Error {
    Error::parameters(format!(
        "this LT code takes too long to solve: more than {MOST_INACTIVE} of its {} data blocks \
         would be left to dense elimination; take a code whose blocks have fewer neighbours",
        graph.data()
    ))
}

/// The part of the problem that peeling with inactive unknowns leaves to elimination.
#[derive(Debug, Clone)]
pub(super) struct Residue {
    graph: Graph,
    inactive: Vec<u32>,
    /// For each data block, the inactive data blocks in its sum: packed bits, `stride` words each.
    sums: Vec<u64>,
    stride: usize,
    /// The blocks that are equations between inactive data blocks, in the order of `echelon`.
    rows: Vec<u32>,
    echelon: Echelon,
}

impl Residue {
    /// Sets unknowns aside until peeling reaches every data block, those in most blocks first.
    /// Returns `None` if there are too many of them.
    pub(super) fn new(peeling: &mut Peeling) -> Option<Self> {
        let inactive = set_aside(peeling);
        if inactive.len() > MOST_INACTIVE {
            return None;
        }
        let (graph, stride) = (peeling.graph().clone(), inactive.len().div_ceil(64));
        let sums = vec![0; graph.data() * stride];
        let echelon = Echelon::new(inactive.len());
        let mut residue = Self { graph, inactive, sums, stride, rows: Vec::new(), echelon };
        residue.add_up(peeling);
        let mut is_used = vec![false; peeling.graph().blocks()];
        peeling
            .found()
            .iter()
            .filter_map(|found| found.block)
            .for_each(|b| is_used[b as usize] = true);
        let unused = peeling.arrivals().iter().filter(|arrival| !is_used[arrival.block as usize]);
        unused.for_each(|arrival| residue.push(arrival.block));
        Some(residue)
    }

    fn add_up(&mut self, peeling: &Peeling) {
        for (i, &data) in self.inactive.iter().enumerate() {
            self.sums[data as usize * self.stride + i / 64] |= 1 << (i % 64);
        }
        for found in peeling.found() {
            if let Some(block) = found.block {
                // The data block's own sum is still zero, so the block's sum is that of the other
                // neighbours.
                let sum = self.sum_of(block);
                let start = found.data as usize * self.stride;
                self.sums[start..start + self.stride].copy_from_slice(&sum);
            }
        }
    }

    fn sum(&self, data: u32) -> &[u64] {
        &self.sums[data as usize * self.stride..(data as usize + 1) * self.stride]
    }

    fn sum_of(&self, block: u32) -> Vec<u64> {
        let mut total = vec![0; self.stride];
        for &data in self.graph.row(block) {
            total.iter_mut().zip(self.sum(data)).for_each(|(word, other)| *word ^= other);
        }
        total
    }

    /// Adds a block whose data blocks are all found or inactive.
    pub(super) fn push(&mut self, block: u32) {
        if self.missing() > 0 {
            // A dependent row gets a number too.
            let _ = self.echelon.insert(&self.sum_of(block));
            self.rows.push(block);
        }
    }

    /// Number of independent blocks that are missing.
    pub(super) fn missing(&self) -> usize {
        self.inactive.len() - self.echelon.rank()
    }

    /// Returns the program, once no block is missing.
    fn plan(&self, peeling: &Peeling) -> Result<Plan> {
        let mut solution = Solution::new(self, peeling);
        solution.constants();
        solution.inactive();
        solution.rest();
        solution.program.finish()
    }
}

fn set_aside(peeling: &mut Peeling) -> Vec<u32> {
    let mut inactive = Vec::new();
    for data in peeling.unknown_by_uses() {
        if peeling.set_aside(data) {
            inactive.push(data);
        }
    }
    inactive
}

/// The program of a residue under construction.
struct Solution<'r> {
    residue: &'r Residue,
    peeling: &'r Peeling,
    program: LtProgram<'r>,
    /// For each row, by number, its value if it is used.
    equations: Vec<Option<Slot>>,
    /// For each data block, its value with inactive ones taken as zero, if it is needed.
    constants: Vec<Option<Slot>>,
    /// For each inactive data block, the rows that add up to it.
    combinations: Vec<Vec<usize>>,
}

impl<'r> Solution<'r> {
    fn new(residue: &'r Residue, peeling: &'r Peeling) -> Self {
        let unit = |i: usize| {
            let mut row = vec![0; residue.stride];
            row[i / 64] = 1 << (i % 64);
            residue.echelon.express(&row).unwrap_or_default()
        };
        Self {
            residue,
            peeling,
            program: LtProgram::new(&residue.graph),
            equations: vec![None; residue.rows.len()],
            constants: vec![None; residue.graph.data()],
            combinations: (0..residue.inactive.len()).map(unit).collect(),
        }
    }

    fn is_free(&self, data: u32) -> bool {
        self.residue.sum(data).iter().all(|&word| word == 0)
    }

    /// Data blocks whose constants are needed: those that do not depend on inactive data blocks,
    /// those in the equations, and those from which these two are computed.
    fn needed(&self) -> Vec<bool> {
        let mut needed: Vec<bool> =
            (0..self.constants.len() as u32).map(|data| self.is_free(data)).collect();
        for &row in self.combinations.iter().flatten() {
            let neighbours = self.residue.graph.row(self.residue.rows[row]);
            neighbours.iter().for_each(|&data| needed[data as usize] = true);
        }
        for found in self.peeling.found().iter().rev() {
            if let (Some(block), true) = (found.block, needed[found.data as usize]) {
                let neighbours = self.residue.graph.row(block);
                neighbours.iter().for_each(|&data| needed[data as usize] = true);
            }
        }
        needed
    }

    fn constants(&mut self) {
        let needed = self.needed();
        for found in self.peeling.found().iter().filter(|found| needed[found.data as usize]) {
            let Some(block) = found.block else { continue };
            let target = if self.is_free(found.data) {
                Slot::Output(found.data)
            } else {
                self.program.temp()
            };
            self.assign_constant(target, block);
            self.constants[found.data as usize] = Some(target);
        }
    }

    fn assign_constant(&mut self, target: Slot, block: u32) {
        let mut sources = vec![self.program.input(block)];
        let neighbours = self.residue.graph.row(block);
        sources.extend(neighbours.iter().filter_map(|&data| self.constants[data as usize]));
        self.program.ops.push(Op::assign(target, sources));
    }

    fn inactive(&mut self) {
        for (i, rows) in std::mem::take(&mut self.combinations).into_iter().enumerate() {
            let sources = rows.into_iter().map(|row| self.equation(row)).collect();
            self.program.ops.push(Op::assign(Slot::Output(self.residue.inactive[i]), sources));
        }
    }

    fn equation(&mut self, row: usize) -> Slot {
        if let Some(slot) = self.equations[row] {
            return slot;
        }
        let slot = self.program.temp();
        self.assign_constant(slot, self.residue.rows[row]);
        self.equations[row] = Some(slot);
        slot
    }

    /// Computes the data blocks that depend on inactive ones, in the order in which they were
    /// found.
    fn rest(&mut self) {
        let mut corrections = self.corrections();
        for found in self.peeling.found() {
            let Some(block) = found.block.filter(|_| !self.is_free(found.data)) else { continue };
            match self.constants[found.data as usize] {
                None => self.program.solve(found.data, block),
                Some(constant) => self.correct(found.data, block, constant, &mut corrections),
            }
        }
    }

    /// Each inactive data block is its own correction.
    fn corrections(&self) -> Corrections<'r> {
        let constants = self.peeling.found().iter().filter(|found| {
            self.constants[found.data as usize].is_some() && !self.is_free(found.data)
        });
        let read = constants.filter_map(|found| Some(self.others(found.data, found.block?)));
        let wanted = read.flatten().map(|other| self.residue.sum(other)).collect();
        let inactive = self.residue.inactive.iter();
        let made = inactive.map(|&data| (self.residue.sum(data), Slot::Output(data))).collect();
        Corrections { wanted, made }
    }

    /// Returns the other data blocks of a row, except those that have no correction.
    fn others(&self, data: u32, block: u32) -> impl Iterator<Item = u32> {
        let row = self.residue.graph.row(block).iter().copied();
        row.filter(move |&other| other != data && !self.is_free(other))
    }

    /// Computes a data block from its constant and the corrections of its row.
    fn correct(
        &mut self,
        data: u32,
        block: u32,
        constant: Slot,
        corrections: &mut Corrections<'r>,
    ) {
        let sum = self.residue.sum(data);
        let mut sources = match corrections.made.get(sum) {
            Some(&made) => vec![made],
            None => corrections.add_up(self.others(data, block).map(|d| self.residue.sum(d))),
        };
        if sources.len() > 1 && corrections.wanted.contains(sum) {
            let correction = self.program.temp();
            corrections.made.insert(sum, correction);
            let sources = std::mem::replace(&mut sources, vec![correction]);
            self.program.ops.push(Op::assign(correction, sources));
        }
        sources.insert(0, constant);
        self.program.ops.push(Op::assign(Slot::Output(data), sources));
    }
}

/// Sums of inactive data blocks, identified by the set of their terms.
struct Corrections<'r> {
    /// Corrections that others are computed from.
    wanted: HashSet<&'r [u64]>,
    made: HashMap<&'r [u64], Slot>,
}

impl Corrections<'_> {
    /// Returns the computed corrections whose XOR equals the XOR of `sums`; equal ones cancel in
    /// pairs.
    fn add_up<'s>(&self, sums: impl Iterator<Item = &'s [u64]>) -> Vec<Slot> {
        let mut total: Vec<Slot> = Vec::new();
        for slot in sums.filter_map(|sum| self.made.get(sum).copied()) {
            match total.iter().position(|&other| other == slot) {
                Some(place) => drop(total.swap_remove(place)),
                None => total.push(slot),
            }
        }
        total
    }
}
