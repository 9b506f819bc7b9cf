//! The general code type: cells, their rows in the generator, and their places on nodes.
//!
//! A code has *data cells*, numbered in the order of the user's bytes, and cells derived from them.
//! Every cell is an XOR of data cells: its *row* of the generator matrix. A cell may be *placed*,
//! as one row of one node's strips. Two kinds of cells are stored nowhere: an *auxiliary* cell such
//! as EVENODD's S, which only helps the planner, and a data cell of a code that stores no original
//! data (LT).
//!
//! Nothing here assumes that nodes are alike, that a node holds only data or only parity, or that
//! there is one stripe. X-Code puts parity cells under data cells on every node. A DPG group is one
//! code whose nodes hold the symbols of several stripes. An LT code has thousands of rows with a
//! dozen ones each; rows are therefore kept sparse.
//!
//! A derived cell is *defined* as the XOR of other cells, which need not be data cells: RDP's
//! diagonal parity is defined through row parity. The generator row follows from the definition.
//! The definition itself is kept as a hint that lets the planner find the published, cheaper
//! schedules.

use crate::define::cells::{Cell, CellId, CellSet, NodeId, Place, Role, StageEnd};
use crate::define::lt::Graph;
use crate::define::made::FirstMade;
use crate::define::pin::Pin;
use crate::define::spec::Spec;
use crate::define::symbols::SymbolMatrix;

/// A code: cells, generator rows, definitions, placement.
#[derive(Debug, Clone)]
pub struct Code {
    pub(super) spec: Spec,
    pub(super) pin: Pin,
    pub(super) tolerance: usize,
    pub(super) stage_ends: Vec<StageEnd>,
    pub(super) lane_rows: usize,
    pub(super) cells: Vec<Cell>,
    pub(super) data: Vec<CellId>,
    pub(super) nodes: Vec<Vec<CellId>>,
    /// The generator. In the word layout it follows from the coefficients, and is made when it is
    /// first asked for: it has w² bits for each coefficient.
    pub(super) generator: FirstMade<Generator>,
    /// The coefficients over GF(2^w), in the word layout only.
    pub(super) symbols: Option<SymbolMatrix>,
    /// The graph of an LT code.
    pub(super) graph: Option<Graph>,
}

/// The generator of a code.
#[derive(Debug, Clone, Default)]
pub(super) struct Generator {
    /// For each cell, the data cells whose XOR it is (by position in `data`), ascending.
    pub(super) rows: Vec<Box<[u32]>>,
    /// For each cell, the cells that define it; empty for data cells.
    pub(super) definitions: Vec<Box<[CellId]>>,
}

impl Generator {
    /// Returns the generator of a code in the word layout, whose cells are numbered node by node.
    fn of_words(symbols: &SymbolMatrix) -> Self {
        let data = symbols.data_nodes() * symbols.field().width() as usize;
        let mut rows: Vec<Box<[u32]>> =
            (0..data as u32).map(|position| [position].into()).collect();
        rows.extend(symbols.bit_rows());
        let cells = |row: &[u32]| row.iter().map(|&cell| CellId::new(cell as usize)).collect();
        let parity = rows[data..].iter().map(|row| cells(row));
        let definitions = std::iter::repeat_n(Box::default(), data).chain(parity).collect();
        Self { rows, definitions }
    }
}

impl Code {
    /// The canonical spec.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The numbers that pin the matrix.
    pub fn pin(&self) -> &Pin {
        &self.pin
    }

    /// Number of nodes that may be lost, whichever they are, once all stages are done.
    pub fn tolerance(&self) -> usize {
        self.tolerance
    }

    /// The ends of all stages but the last.
    pub(crate) fn stage_ends(&self) -> &[StageEnd] {
        &self.stage_ends
    }

    /// The number of nodes.
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// All nodes.
    pub fn nodes(&self) -> impl DoubleEndedIterator<Item = NodeId> + use<> {
        (0..self.nodes.len()).map(NodeId::new)
    }

    /// Cells of a node, by row.
    ///
    /// # Panics
    /// If there is no node of that number.
    pub fn node_cells(&self, node: impl Into<NodeId>) -> &[CellId] {
        &self.nodes[node.into().index()]
    }

    /// Whether a node stores any of the user's data.
    ///
    /// # Panics
    /// If there is no node of that number.
    pub fn holds_data(&self, node: impl Into<NodeId>) -> bool {
        self.node_cells(node).iter().any(|&cell| self.cell(cell).role == Role::Data)
    }

    /// The data cells, in the order of the user's bytes.
    pub fn data_cells(&self) -> &[CellId] {
        &self.data
    }

    /// Number of cells of all roles.
    pub fn cell_count(&self) -> usize {
        self.cells.len()
    }

    /// All cells.
    pub fn cells(&self) -> impl Iterator<Item = CellId> + use<> {
        (0..self.cells.len()).map(CellId::new)
    }

    /// Returns a cell.
    ///
    /// # Panics
    /// If there is no cell of that number.
    pub fn cell(&self, cell: CellId) -> &Cell {
        &self.cells[cell.index()]
    }

    /// A cell's generator row: positions in [`Code::data_cells`], ascending.
    ///
    /// # Panics
    /// If there is no cell of that number.
    pub fn row(&self, cell: CellId) -> &[u32] {
        &self.generator().rows[cell.index()]
    }

    /// Cells that define a derived cell; empty for data cells (and for a derived cell that is
    /// always zero).
    ///
    /// # Panics
    /// If there is no cell of that number.
    pub fn definition(&self, cell: CellId) -> &[CellId] {
        &self.generator().definitions[cell.index()]
    }

    fn generator(&self) -> &Generator {
        let of_words = || self.symbols.as_ref().map(Generator::of_words).unwrap_or_default();
        self.generator.get(of_words)
    }

    /// Coefficients over GF(2^w) of a code in the word layout, whose cells are the bits of symbols
    /// and are stored together as symbols; `None` if cells are packets.
    pub fn symbols(&self) -> Option<&SymbolMatrix> {
        self.symbols.as_ref()
    }

    /// Graph of an LT code; `None` for codes with a tolerance. Block b is cell k + b and lies on
    /// node b modulo the number of nodes. The graph decides whether given blocks determine the
    /// data.
    pub fn graph(&self) -> Option<&Graph> {
        self.graph.as_ref()
    }

    /// Number of rows of a node that form one *lane*: the part of a stored block that is
    /// contiguous, has its own checksum and can be read alone. Equal to the node's number of rows
    /// where reading part of a strip gains nothing.
    pub fn lane_rows(&self) -> usize {
        self.lane_rows
    }

    /// Number of ones in the parity rows of the generator: the cost of encoding before any
    /// scheduling.
    pub fn ones(&self) -> usize {
        let parity = |&cell: &CellId| self.cell(cell).role == Role::Parity;
        self.cells().filter(parity).map(|cell| self.row(cell).len()).sum()
    }

    /// Set of all placed cells of the given nodes.
    ///
    /// # Panics
    /// If there is no node of some number.
    pub fn cells_of<N: Into<NodeId>>(&self, nodes: impl IntoIterator<Item = N>) -> CellSet {
        let cells = nodes.into_iter().flat_map(|node| self.node_cells(node).iter().copied());
        CellSet::from_cells(self.cell_count(), cells)
    }

    /// Set of the stored cells of one role.
    pub fn stored(&self, role: Role) -> CellSet {
        let wanted = |&cell: &CellId| {
            let cell = self.cell(cell);
            cell.role == role && cell.place.is_some()
        };
        CellSet::from_cells(self.cell_count(), self.cells().filter(wanted))
    }

    /// Name of a cell in messages and schedules: `d3.1` is row 1 of node 3 and holds data, `p5.0`
    /// holds parity. A cell that is stored nowhere is named by its number.
    ///
    /// # Panics
    /// If there is no cell of that number.
    pub fn cell_name(&self, cell: CellId) -> String {
        match (self.cell(cell).role, self.cell(cell).place) {
            (Role::Data, Some(Place { node, row })) => format!("d{}.{row}", node.index()),
            (_, Some(Place { node, row })) => format!("p{}.{row}", node.index()),
            (Role::Data, None) => format!("d{}", cell.index()),
            (_, None) => format!("aux{}", cell.index()),
        }
    }

    /// Feeds a canonical description of generator and placement to a hash. Two codes with the same
    /// description store the same bytes in the same places.
    ///
    /// All numbers are 32-bit little-endian, in this order: the number of data cells; the number of
    /// nodes; for each node the number of its cells, and for each cell in row order the number of
    /// ones of its generator row and their positions. A code of several stages adds the stages of
    /// the cells of each node. The word layout adds the number of bits of a word.
    pub fn describe(&self, feed: impl FnMut(&[u8])) {
        let mut numbers = Numbers { feed, bytes: Vec::with_capacity(Numbers::<()>::ROOM) };
        numbers.add(self.data.len());
        numbers.add(self.nodes.len());
        for node in &self.nodes {
            numbers.add(node.len());
            for &cell in node {
                numbers.add(self.row(cell).len());
                self.row(cell).iter().for_each(|&data| numbers.add(data as usize));
            }
        }
        if !self.stage_ends.is_empty() {
            let cells = self.nodes.iter().flatten();
            cells.for_each(|&cell| numbers.add(usize::from(self.cell(cell).stage)));
        }
        if let Some(symbols) = &self.symbols {
            numbers.add(symbols.field().width() as usize);
        }
        numbers.flush();
    }
}

/// Writes 32-bit little-endian numbers in larger pieces, because hashes are slow when fed a few
/// bytes at a time.
struct Numbers<F> {
    feed: F,
    bytes: Vec<u8>,
}

impl<F> Numbers<F> {
    /// Size of a piece, in bytes.
    const ROOM: usize = 16 * 1024;
}

impl<F: FnMut(&[u8])> Numbers<F> {
    fn add(&mut self, number: usize) {
        self.bytes.extend_from_slice(&(number as u32).to_le_bytes());
        if self.bytes.len() >= Self::ROOM {
            self.flush();
        }
    }

    fn flush(&mut self) {
        (self.feed)(&self.bytes);
        self.bytes.clear();
    }
}
