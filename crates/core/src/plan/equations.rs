//! Equations: wanted cells as sums of others, from which the passes start.

use crate::define::cells::{CellId, CellSet};

/// Wanted cells as XORs of cells that are at hand or that come earlier in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CellSums {
    /// Equations in an order in which every source is at hand or computed before.
    pub(crate) rows: Vec<(CellId, Vec<CellId>)>,
}

impl CellSums {
    /// Total number of sources.
    pub(super) fn sources(&self) -> usize {
        self.rows.iter().map(|(_, sources)| sources.len()).sum()
    }

    /// Returns the equations that the wanted cells need, in the same order.
    pub(super) fn needed(&self, have: &CellSet, wanted: &[CellId]) -> Self {
        Self { rows: needed(wanted, have, &self.rows) }
    }
}

/// Cells, each with the numbers of the equations whose sum it is.
pub(super) type Combinations = Vec<(CellId, Vec<usize>)>;

/// Keeps the solved cells that the wanted cells need, in the order in which they were solved.
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
