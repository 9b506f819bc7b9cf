//! Facts about a code: its nodes, its cells and their places.

use paritas::Code;
use paritas::code::{CellId, Place, Role};
use serde::Serialize;

/// Largest number of ones of a code for which the sources of cells are listed. Wide codes over
/// words have a million.
const MOST_SOURCES: usize = 200_000;

/// A code.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CodeFacts {
    /// The canonical spec.
    spec: String,
    /// The family's name.
    family: String,
    /// Bits of a word, if the code is over words; null if its cells are packets.
    word: Option<u32>,
    /// Number of nodes.
    nodes: usize,
    /// Nodes that hold data.
    data_nodes: Vec<usize>,
    /// Number of nodes that may be lost, whichever they are; null for an LT code.
    tolerance: Option<usize>,
    /// The stages, from the first.
    stages: Vec<StageFacts>,
    /// The cells, by number.
    cells: Vec<CellFacts>,
    /// Numbers of the data cells, in the order of the user's bytes.
    data: Vec<usize>,
    /// Number of rows of a node that form a lane: they are read and checked together.
    lane_rows: usize,
    /// (Stored bytes - data bytes) / data bytes.
    overhead: f64,
    /// Ones in the parity rows of the generator.
    ones: usize,
    /// The fewest ones that a code of this shape may have; null for an LT code.
    fewest_ones: Option<usize>,
    /// Whether the code is an LT code.
    lt: bool,
}

#[derive(Debug, Serialize)]
struct StageFacts {
    /// Number of nodes that may be lost at the end of the stage.
    tolerance: usize,
    /// Nodes that hold any cell at the end of the stage.
    nodes: Vec<usize>,
}

#[derive(Debug, Serialize)]
struct CellFacts {
    name: String,
    role: &'static str,
    /// The node and the row where the cell is stored; null if it is stored nowhere.
    node: Option<usize>,
    row: Option<usize>,
    stage: u8,
    /// Numbers of the cells whose XOR defines this one; null if the code has too many.
    sources: Option<Vec<usize>>,
}

impl CodeFacts {
    /// Describes a code.
    pub fn of(code: &Code) -> Self {
        let lt = code.graph().is_some();
        let data_nodes = code.nodes().filter(|&node| code.holds_data(node));
        let data = code.data_cells().len();
        let stored = code.stored(Role::Data).len() + code.stored(Role::Parity).len();
        let ones = code.ones();
        let stage = |stage: u8| StageFacts {
            tolerance: code.tolerance_at(stage),
            nodes: code.nodes_at(stage).into_iter().map(|node| node.index()).collect(),
        };
        Self {
            spec: code.spec().to_string(),
            family: code.spec().family().to_owned(),
            word: code.symbols().map(|symbols| symbols.field().width()),
            nodes: code.node_count(),
            data_nodes: data_nodes.map(|node| node.index()).collect(),
            tolerance: (!lt).then(|| code.tolerance()),
            stages: (1..=code.stages()).map(stage).collect(),
            cells: code.cells().map(|cell| CellFacts::of(code, cell, ones)).collect(),
            data: numbers(code.data_cells()),
            lane_rows: code.lane_rows(),
            overhead: (stored as f64 - data as f64) / data as f64,
            ones,
            fewest_ones: (!lt).then(|| code.fewest_ones()),
            lt,
        }
    }
}

impl CellFacts {
    fn of(code: &Code, id: CellId, ones: usize) -> Self {
        let cell = code.cell(id);
        let place: Option<Place> = cell.place;
        Self {
            name: code.cell_name(id),
            role: match cell.role {
                Role::Data => "data",
                Role::Parity => "parity",
                Role::Auxiliary => "auxiliary",
            },
            node: place.map(|place| place.node.index()),
            row: place.map(|place| place.row),
            stage: cell.stage,
            sources: (ones <= MOST_SOURCES).then(|| numbers(code.definition(id))),
        }
    }
}

pub(crate) fn numbers(cells: &[CellId]) -> Vec<usize> {
    cells.iter().map(|cell| cell.index()).collect()
}
