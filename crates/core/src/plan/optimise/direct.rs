//! Rows as they stand: one operation a row.

use crate::define::bitmatrix::BitMatrix;
use crate::define::cells::{CellId, CellSet};
use crate::error::Result;
use crate::plan::Equations;
use crate::plan::schedule::{Op, Schedule, Slot};

/// Output `r` is the XOR of the inputs in which row `r` of the matrix has a one.
///
/// # Errors
/// When the matrix is larger than a schedule may be.
pub fn from_matrix(matrix: &BitMatrix) -> Result<Schedule> {
    let supports: Vec<Vec<usize>> =
        (0..matrix.rows()).map(|r| matrix.support(r).collect()).collect();
    schedule(matrix.columns(), &supports)
}

/// Output `r` is the XOR of the inputs listed in `supports[r]`.
pub(crate) fn schedule(inputs: usize, supports: &[Vec<usize>]) -> Result<Schedule> {
    let ops = supports.iter().enumerate().map(|(r, support)| {
        let sources = support.iter().map(|&input| Slot::Input(input as u32)).collect();
        Op::assign(Slot::Output(r as u32), sources)
    });
    Schedule::new(inputs, 0, supports.len(), ops.collect())
}

/// The schedule of equations between cells, and the cells that its inputs stand for. Cells that are
/// made on the way without being wanted become temporaries.
pub(crate) fn from_equations(
    cells: usize,
    equations: &Equations,
    wanted: &[CellId],
) -> Result<(Schedule, Vec<CellId>)> {
    let made = equations.rows.iter().map(|(cell, _)| cell.index() + 1).max().unwrap_or(0);
    let mut slots: Vec<Option<Slot>> = vec![None; cells.max(made)];
    for (&cell, output) in wanted.iter().zip(0..) {
        slots[cell.index()] = Some(Slot::Output(output));
    }
    let mut temps = 0;
    for (cell, _) in &equations.rows {
        slots[cell.index()].get_or_insert_with(|| {
            temps += 1;
            Slot::Temp(temps - 1)
        });
    }
    let sources = equations.rows.iter().flat_map(|(_, sources)| sources.iter().copied());
    let read = CellSet::from_cells(cells, sources.filter(|cell| slots[cell.index()].is_none()));
    let inputs: Vec<CellId> = read.iter().collect();
    for (cell, input) in inputs.iter().zip(0..) {
        slots[cell.index()] = Some(Slot::Input(input));
    }
    let ops = equations.rows.iter().filter_map(|(cell, sources)| {
        let sources = sources.iter().filter_map(|source| slots[source.index()]).collect();
        Some(Op::assign(slots[cell.index()]?, sources))
    });
    let schedule = Schedule::new(inputs.len(), temps as usize, wanted.len(), ops.collect())?;
    Ok((schedule, inputs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_operation_a_row() {
        let matrix = BitMatrix::from_supports(3, &[vec![0, 2], vec![], vec![1]]);
        let text = "inputs 3 temps 0 outputs 3\no0 = i0 ^ i2\no1 = 0\no2 = i1\n";
        assert_eq!(from_matrix(&matrix).unwrap().to_string(), text);
    }
}
