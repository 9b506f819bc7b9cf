//! Rows as they are: one operation for each row.

use crate::define::cells::{CellId, CellSet};
use crate::error::Result;
use crate::plan::equations::CellSums;
use crate::plan::optimise::rows::{Columns, Rows};
use crate::plan::schedule::{Op, Schedule, Slot};

/// Returns a schedule in which output `r` is the XOR of the inputs listed in `supports[r]`.
pub(crate) fn schedule(inputs: usize, supports: &[Vec<usize>]) -> Result<Schedule> {
    let ops = supports.iter().enumerate().map(|(r, support)| {
        let sources = support.iter().map(|&input| Slot::Input(input as u32)).collect();
        Op::assign(Slot::Output(r as u32), sources)
    });
    Schedule::new(inputs, 0, supports.len(), ops.collect())
}

/// Returns the rows of equations between cells, and the cells that are their inputs. Cells that are
/// computed but not wanted become temporaries.
pub(crate) fn from_equations(
    cells: usize,
    equations: &CellSums,
    wanted: &[CellId],
) -> (Rows, Vec<CellId>) {
    let made = equations.rows.iter().map(|(cell, _)| cell.index() + 1).max().unwrap_or(0);
    let mut is_made = CellSet::new(cells.max(made));
    equations.rows.iter().for_each(|(cell, _)| is_made.insert(*cell));
    wanted.iter().for_each(|&cell| is_made.insert(cell));
    let sources = equations.rows.iter().flat_map(|(_, sources)| sources.iter().copied());
    let read = CellSet::from_cells(cells, sources.filter(|&cell| !is_made.contains(cell)));
    let inputs: Vec<CellId> = read.iter().collect();
    // Columns are inputs, then outputs, then temporaries.
    let is_wanted = CellSet::from_cells(cells, wanted.iter().copied());
    let temps = equations.rows.iter().map(|(cell, _)| *cell);
    let temps = temps.filter(|&cell| !is_wanted.contains(cell));
    let mut columns = vec![0; cells.max(made)];
    let names = inputs.iter().copied().chain(wanted.iter().copied()).chain(temps);
    let count = names.zip(0..).map(|(cell, column)| columns[cell.index()] = column).count();
    let mut rows = vec![Columns::new(); count - inputs.len()];
    for (cell, sources) in &equations.rows {
        let row = &mut rows[columns[cell.index()] as usize - inputs.len()];
        row.extend(sources.iter().map(|source| columns[source.index()]));
        row.sort_unstable();
    }
    (Rows::of_columns(inputs.len(), wanted.len(), rows), inputs)
}

#[cfg(test)]
mod tests {
    use crate::define::bitmatrix::BitMatrix;
    use crate::plan::optimise::passes;

    #[test]
    fn one_operation_a_row() {
        let matrix = BitMatrix::from_supports(3, &[vec![0, 2], vec![], vec![1]]);
        let text = "inputs 3 temps 0 outputs 3\no0 = i0 ^ i2\no1 = 0\no2 = i1\n";
        assert_eq!(passes::direct(&matrix).unwrap().to_string(), text);
    }
}
