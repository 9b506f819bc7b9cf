//! The operations of a plan as text, with the packets that its inputs and outputs are.

use paritas::Code;
use paritas::code::CellId;
use paritas::research::Plan;

/// Returns the node and the row of each cell; `None` for a cell that no node stores.
pub fn places(code: &Code, cells: &[CellId]) -> Vec<Option<[usize; 2]>> {
    let place = |&cell: &CellId| code.cell(cell).place.map(|at| [at.node.index(), at.row]);
    cells.iter().map(place).collect()
}

/// Returns the operations of a plan. Comments behind the first line say which packets its inputs
/// and outputs are.
pub fn text(code: &Code, plan: &Plan) -> String {
    let operations = plan.schedule().to_string();
    let (head, operations) = operations.split_once('\n').unwrap_or((&operations, ""));
    let inputs = legend('i', &places(code, plan.inputs()));
    let outputs = legend('o', &places(code, plan.outputs()));
    format!("{head}\n{inputs}{outputs}{operations}")
}

/// Returns a comment for each run of cells that are rows of one node, one after the other.
fn legend(kind: char, places: &[Option<[usize; 2]>]) -> String {
    let numbered: Vec<(usize, Option<[usize; 2]>)> = places.iter().copied().enumerate().collect();
    let runs = numbered.chunk_by(|&(_, one), &(_, next)| match (one, next) {
        (Some([node, row]), Some([same, below])) => node == same && row + 1 == below,
        (one, next) => one == next,
    });
    runs.map(|run| {
        let (&(first, place), &(last, end)) = (&run[0], &run[run.len() - 1]);
        let cells = match run.len() {
            1 => format!("{kind}{first}"),
            _ => format!("{kind}{first} to {kind}{last}"),
        };
        match (place, end) {
            (Some([node, row]), Some([_, to])) if row == to => {
                format!("# {cells}: node {node}, row {row}\n")
            }
            (Some([node, row]), Some([_, to])) => {
                format!("# {cells}: node {node}, rows {row} to {to}\n")
            }
            _ => format!("# {cells}: on no node\n"),
        }
    })
    .collect()
}
