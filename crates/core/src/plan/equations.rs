//! Equations: wanted cells as sums of others, which the passes start from.

use crate::define::cells::{CellId, CellSet};

/// Wanted cells as XORs of cells at hand or of cells wanted before: what the passes start from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Equations {
    /// In an order in which every source is at hand or made before.
    pub(crate) rows: Vec<(CellId, Vec<CellId>)>,
}

impl Equations {
    /// The number of all sources.
    pub(super) fn sources(&self) -> usize {
        self.rows.iter().map(|(_, sources)| sources.len()).sum()
    }

    /// Those that some of the wanted cells need, in the same order.
    pub(super) fn needed(&self, have: &CellSet, wanted: &[CellId]) -> Self {
        Self { rows: needed(wanted, have, &self.rows) }
    }
}

/// Cells, and the numbers of the equations that each is the sum of.
pub(super) type Combinations = Vec<(CellId, Vec<usize>)>;

/// Keeps of the cells that were solved those that the wanted ones need, in the order they were solved.
pub(super) fn needed(
    wanted: &[CellId],
    have: &CellSet,
    solved: &[(CellId, Vec<CellId>)],
) -> Vec<(CellId, Vec<CellId>)> {
    let cells = solved.iter().map(|(cell, _)| cell).chain(wanted);
    let cells = cells.map(|cell| cell.index() + 1).max().unwrap_or(0);
    let mut needed = CellSet::from_cells(cells, wanted.iter().copied());
    let mut kept = Vec::new();
    for (cell, sources) in solved.iter().rev() {
        if needed.contains(*cell) {
            let made = sources.iter().filter(|&&source| source.index() < cells);
            made.filter(|&&source| !have.contains(source)).for_each(|&cell| needed.insert(cell));
            kept.push((*cell, sources.clone()));
        }
    }
    kept.reverse();
    kept
}
