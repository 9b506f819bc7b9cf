//! Layouts: which cells lie in which buffer of a call.

use std::iter::repeat_n;
use std::sync::Arc;

use crate::define::cells::{CellId, CellLists};
use crate::define::code::Code;
use crate::error::{Error, Result};
use crate::plan::machine::LINE;
use crate::plan::program::CellLocation;

/// The unit that a buffer of a call holds.
#[derive(Debug, Clone, Copy)]
pub(crate) enum BufferLayout {
    /// One buffer for each node, with strips of all its rows.
    Node,
    /// One buffer for each lane of each node (see [`Code::lane_rows`]).
    Lane,
}

/// The position of every cell in the buffers.
#[derive(Debug)]
pub(crate) struct Layout {
    /// For each buffer, its cells by row.
    pub(crate) cells: Vec<Vec<CellId>>,
    /// The same, to be added to sets.
    pub(crate) lists: CellLists,
    /// For each cell, its place; `None` for an auxiliary cell, which no buffer holds.
    locations: Vec<Option<CellLocation>>,
    /// The buffers with data, in the order of the user's bytes.
    pub(crate) data: Vec<usize>,
    /// For each buffer, the number of rows of its strips. In the word layout a buffer is one row of
    /// words.
    pub(crate) rows: Arc<[usize]>,
    /// Size of a packet, in bytes; in the word layout a cache line.
    pub(crate) packet: usize,
}

impl Layout {
    pub(crate) fn new(code: &Code, layout: BufferLayout, packet: usize) -> Self {
        let mut cells: Vec<Vec<CellId>> = Vec::new();
        for node in code.nodes() {
            let rows = code.node_cells(node);
            let rows_a_buffer = match layout {
                BufferLayout::Node => rows.len(),
                BufferLayout::Lane => code.lane_rows(),
            };
            cells.extend(rows.chunks(rows_a_buffer).map(<[CellId]>::to_vec));
        }
        let unplaced = code.data_cells().iter().filter(|&&cell| code.cell(cell).place.is_none());
        cells.extend(unplaced.map(|&cell| vec![cell]));
        let mut locations = vec![None; code.cell_count()];
        for (buffer, cells) in cells.iter().enumerate() {
            for (row, cell) in cells.iter().enumerate() {
                locations[cell.index()] = Some(CellLocation { buffer, row });
            }
        }
        let data = code.data_cells().iter().filter_map(|cell| locations[cell.index()]);
        let mut data: Vec<usize> = data.map(|location| location.buffer).collect();
        data.dedup();
        let (rows, packet) = match code.symbols() {
            Some(_) => (repeat_n(1, cells.len()).collect(), LINE),
            None => (cells.iter().map(Vec::len).collect(), packet),
        };
        let lists = CellLists::of(&cells);
        Self { cells, lists, locations, data, rows, packet }
    }

    /// Returns the place of a cell of `code`, the code of this layout.
    ///
    /// # Errors
    /// If no buffer holds the cell ([`crate::ErrorKind::Parameters`]).
    pub(crate) fn location(&self, code: &Code, cell: CellId) -> Result<CellLocation> {
        self.locations[cell.index()].ok_or_else(|| {
            let (spec, cell) = (code.spec(), code.cell_name(cell));
            Error::parameters(format!(
                "{spec}: cell {cell} is stored nowhere, so no buffer holds it"
            ))
        })
    }

    /// Largest number of rows of any buffer.
    pub(crate) fn widest(&self) -> usize {
        self.cells.iter().map(Vec::len).max().unwrap_or(0)
    }
}
