//! Losses: which cells can still be computed from the cells at hand.
//!
//! The unknowns are the data cells that are not at hand. Every derived cell at hand gives one
//! equation over them. A cell can be recovered exactly if its generator row, restricted to the
//! unknowns, is a sum of such equations. Equations are taken sparsest first, so that the sums
//! prefer cheap parity (row parity before the dense rows).

use crate::define::bitmatrix::{BitMatrix, Echelon};
use crate::define::cells::{CellId, CellSet, NodeId, Role};
use crate::define::code::Code;

/// The cells at hand of a code, and the linear equations they give for the others.
#[derive(Debug)]
pub struct Losses<'a> {
    code: &'a Code,
    have: CellSet,
    /// For each data cell, its column among the unknowns.
    unknown: Vec<Option<usize>>,
    unknowns: Vec<CellId>,
    equations: Vec<CellId>,
    echelon: Echelon,
}

impl<'a> Losses<'a> {
    /// Describes the situation in which exactly the cells of `have` are at hand.
    ///
    /// # Panics
    /// If the code lacks a cell of `have`.
    pub fn new(code: &'a Code, have: CellSet) -> Self {
        let mut unknown = vec![None; code.data_cells().len()];
        let mut unknowns = Vec::new();
        for (position, &cell) in code.data_cells().iter().enumerate() {
            if !have.contains(cell) {
                unknown[position] = Some(unknowns.len());
                unknowns.push(cell);
            }
        }
        let echelon = Echelon::new(unknowns.len());
        let mut losses = Self { code, have, unknown, unknowns, equations: Vec::new(), echelon };
        losses.insert_equations();
        losses
    }

    /// Describes the situation in which all placed cells are at hand except those of the nodes
    /// `lost`. Numbers of nodes that the code lacks change nothing.
    pub fn of_nodes(code: &'a Code, lost: &[NodeId]) -> Self {
        Self::new(code, code.cells_of(code.nodes().filter(|node| !lost.contains(node))))
    }

    /// Whether every data cell is at hand or can be computed.
    pub fn is_solvable(&self) -> bool {
        self.echelon.rank() == self.unknowns.len()
    }

    /// Returns the cells at hand that add up to `cell`, ascending.
    ///
    /// # Errors
    /// If `cell` cannot be recovered: the data cells whose loss prevents it.
    ///
    /// # Panics
    /// If the code has no such cell.
    pub fn express(&self, cell: CellId) -> Result<Vec<CellId>, Vec<CellId>> {
        let parities = self.combination(cell)?.into_iter().map(|equation| self.equations[equation]);
        let mut known = vec![false; self.code.data_cells().len()];
        let mut sum = CellSet::new(self.code.cell_count());
        for source in parities.chain([cell]) {
            self.code.row(source).iter().for_each(|&data| known[data as usize] ^= true);
            if source != cell {
                sum.insert(source);
            }
        }
        for (position, &data) in self.code.data_cells().iter().enumerate() {
            if known[position] && self.unknown[position].is_none() {
                sum.insert(data);
            }
        }
        Ok(sum.iter().collect())
    }

    /// Returns the numbers of the equations whose unknown data adds up to that of `cell`.
    ///
    /// # Errors
    /// If `cell` cannot be recovered: the data cells whose loss prevents it.
    pub(crate) fn combination(&self, cell: CellId) -> Result<Vec<usize>, Vec<CellId>> {
        let used = self.echelon.express(&self.unknown_part(cell));
        used.map_err(|left| left.into_iter().map(|column| self.unknowns[column]).collect())
    }

    /// Derived cells at hand, indexed by the number of the equation that each gives.
    pub(crate) fn equations(&self) -> &[CellId] {
        &self.equations
    }

    /// Number of 64-bit words added to reduce the equations.
    pub(crate) fn steps(&self) -> u64 {
        self.echelon.steps()
    }

    /// Number of data cells that are not at hand.
    pub(crate) fn unknowns(&self) -> usize {
        self.unknowns.len()
    }

    /// Returns the part of the generator rows of `cells` that concerns data at hand: one row for
    /// each cell, one column for each data cell at hand, in order.
    pub(crate) fn known_parts(&self, cells: &[CellId]) -> BitMatrix {
        let mut columns = vec![None; self.unknown.len()];
        let known = (0..columns.len()).filter(|&data| self.unknown[data].is_none());
        let count = known.enumerate().map(|(column, data)| columns[data] = Some(column)).count();
        let mut parts = BitMatrix::zero(cells.len(), count);
        for (row, &cell) in cells.iter().enumerate() {
            let ones = self.code.row(cell).iter().filter_map(|&data| columns[data as usize]);
            ones.for_each(|column| parts.set(row, column, true));
        }
        parts
    }

    fn insert_equations(&mut self) {
        let code = self.code;
        let derived = |&cell: &CellId| {
            code.cell(cell).role != Role::Data
                && code.row(cell).iter().any(|&data| self.unknown[data as usize].is_some())
        };
        let mut candidates: Vec<CellId> = self.have.iter().filter(derived).collect();
        candidates.sort_by_key(|&cell| (code.row(cell).len(), cell));
        for cell in candidates {
            if self.is_solvable() {
                break;
            }
            let _ = self.echelon.insert(&self.unknown_part(cell));
            self.equations.push(cell);
        }
    }

    fn unknown_part(&self, cell: CellId) -> Vec<u64> {
        let mut words = vec![0; self.unknowns.len().div_ceil(64)];
        for column in self.code.row(cell).iter().filter_map(|&data| self.unknown[data as usize]) {
            words[column / 64] ^= 1 << (column % 64);
        }
        words
    }
}

/// All ways to choose `count` of the numbers `0..total`, in lexicographic order.
pub fn combinations(total: usize, count: usize) -> impl Iterator<Item = Vec<usize>> {
    let first = (count <= total).then(|| (0..count).collect::<Vec<_>>());
    std::iter::successors(first, move |chosen| {
        let movable = (0..count).rev().find(|&i| chosen[i] < total - count + i)?;
        let mut next = chosen.clone();
        next[movable] += 1;
        (movable + 1..count).for_each(|i| next[i] = next[i - 1] + 1);
        Some(next)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::define::spec::Spec;

    fn code(spec: &str) -> Code {
        Code::new(&spec.parse::<Spec>().unwrap()).unwrap()
    }

    #[test]
    fn combinations_are_complete() {
        assert_eq!(combinations(5, 2).count(), 10);
        assert_eq!(combinations(4, 0).collect::<Vec<_>>(), [Vec::<usize>::new()]);
        assert_eq!(combinations(2, 3).count(), 0);
        assert_eq!(combinations(3, 3).collect::<Vec<_>>(), [vec![0, 1, 2]]);
    }

    #[test]
    fn sums_are_true() {
        let code = code("cauchy:k=4,m=3");
        for lost in combinations(7, 3) {
            let lost: Vec<NodeId> = lost.into_iter().map(NodeId::new).collect();
            let losses = Losses::of_nodes(&code, &lost);
            for cell in code.cells_of(lost.iter().copied()).iter() {
                let mut row = vec![false; code.data_cells().len()];
                for source in losses.express(cell).unwrap().into_iter().chain([cell]) {
                    code.row(source).iter().for_each(|&data| row[data as usize] ^= true);
                }
                assert!(row.iter().all(|&bit| !bit), "{lost:?} {cell:?}");
            }
        }
    }

    #[test]
    fn out_of_reach_names_the_data() {
        let code = code("cauchy:k=4,m=1");
        let losses = Losses::of_nodes(&code, &[NodeId::new(0), NodeId::new(1)]);
        assert!(!losses.is_solvable());
        let lost = code.node_cells(NodeId::new(1))[0];
        let left = losses.express(lost).unwrap_err();
        assert!(!left.is_empty());
        assert!(left.iter().all(|&cell| code.cell(cell).place.unwrap().node.index() < 2));
    }
}
