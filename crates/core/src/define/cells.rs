//! The general code type: cells, their rows in the generator, and their places on nodes.
//!
//! A code has *data cells*, numbered in the order of the user's bytes, and cells derived from
//! them. Every cell is an XOR of data cells (its *row* of the generator matrix). A cell may be
//! *placed*: it is one row of one node's strips. It may also be stored nowhere: an *auxiliary*
//! cell such as EVENODD's S, which only helps the planner, or a data cell of a code that stores
//! no original data (LT).
//!
//! Nothing here assumes that nodes are alike, that a node holds only data or only parity, or that
//! there is one stripe: X-Code puts parity cells under data cells on every node, a DPG group
//! is one code whose nodes hold the symbols of several stripes, and an LT code has thousands of
//! nodes' worth of rows with a dozen ones each. Rows are therefore kept sparse.
//!
//! A derived cell is *defined* by the cells it is the XOR of, which need not be data cells: RDP's
//! diagonal parity is defined through row parity. The generator row follows from the definition;
//! the definition itself stays as a hint that lets the planner find the published, cheaper
//! schedules.

use std::fmt;

use crate::define::bitmatrix::BitMatrix;
use crate::define::lt::Graph;
use crate::define::spec::Spec;
use crate::define::stages::StageEnd;
use crate::define::symbols::{SymbolMatrix, WORD_WIDTHS};
use crate::error::{Error, Result};

/// A node: the unit of failure, holding one shard.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u32);

/// A cell of a code.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CellId(u32);

macro_rules! id {
    ($name:ident, $prefix:literal) => {
        impl $name {
            /// The id of the given number.
            ///
            /// # Panics
            /// When the number does not fit 32 bits, which no code reaches.
            pub fn new(index: usize) -> Self {
                Self(u32::try_from(index).expect("ids fit 32 bits"))
            }

            /// The number, from 0.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

id!(NodeId, "n");
id!(CellId, "c");

/// What a cell is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// The user's bytes.
    Data,
    /// An XOR of data cells that is stored.
    Parity,
    /// An XOR of data cells that is stored nowhere and only helps to compute others.
    Auxiliary,
}

/// Where a cell is stored: row `row` of every strip of node `node`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    /// The node.
    pub node: NodeId,
    /// The row, from 0, in the node's strips.
    pub row: usize,
}

/// One cell: its role, its place, and the stage of encoding in which it is made (1, except for the
/// later parities of delayed parity generation).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// What the cell is for.
    pub role: Role,
    /// Where it is stored, if it is.
    pub place: Option<Place>,
    /// The stage in which it is made, from 1.
    pub stage: u8,
}

/// The numbers that pin a code's matrix: named lists such as a polynomial, points, a prime.
///
/// Stored in every shard header. A code rebuilt from its family's name and its pin is the same
/// code for ever, whatever tables later versions choose their defaults from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pin(Vec<(String, Vec<u64>)>);

impl Pin {
    /// A pin without numbers.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same pin with one more named list.
    pub fn with(mut self, name: &str, numbers: impl IntoIterator<Item = u64>) -> Self {
        self.0.push((name.to_owned(), numbers.into_iter().collect()));
        self
    }

    /// The named lists, in the family's order.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &[u64])> {
        self.0.iter().map(|(name, numbers)| (name.as_str(), numbers.as_slice()))
    }

    /// The list of the given name.
    pub(crate) fn list(&self, name: &str) -> Result<&[u64]> {
        let found = self.entries().find(|&(n, _)| n == name);
        found
            .map(|(_, numbers)| numbers)
            .ok_or_else(|| Error::parameters(format!("the pinned matrix has no `{name}`")))
    }

    /// The single number of the given name.
    pub(crate) fn one(&self, name: &str) -> Result<u64> {
        match self.list(name)? {
            &[number] => Ok(number),
            list => {
                let count = list.len();
                Err(Error::parameters(format!("the pinned matrix has {count} of `{name}`, not 1")))
            }
        }
    }
}

impl fmt::Display for Pin {
    /// As `prime = 7; points = 0, 1, 2`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |(name, numbers): (&str, &[u64])| {
            let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
            format!("{name} = {}", numbers.join(", "))
        };
        f.write_str(&self.entries().map(list).collect::<Vec<_>>().join("; "))
    }
}

/// A code: cells, generator rows, definitions, placement.
#[derive(Debug, Clone)]
pub struct Code {
    spec: Spec,
    pin: Pin,
    tolerance: usize,
    stage_ends: Vec<StageEnd>,
    lane_rows: usize,
    cells: Vec<Cell>,
    data: Vec<CellId>,
    nodes: Vec<Vec<CellId>>,
    /// Per cell, the data cells (by position in `data`) that it is the XOR of, ascending.
    rows: Vec<Box<[u32]>>,
    /// Per cell, the cells that define it; empty for data cells.
    definitions: Vec<Box<[CellId]>>,
    /// The coefficients over GF(2^w), where the layout is words.
    symbols: Option<SymbolMatrix>,
    /// The graph of an LT code.
    graph: Option<Graph>,
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

    /// Any this many nodes may be lost, once all stages are done.
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

    /// The cells of a node by row.
    ///
    /// # Panics
    /// When there is no such node.
    pub fn node_cells(&self, node: NodeId) -> &[CellId] {
        &self.nodes[node.index()]
    }

    /// Whether a node stores any of the user's data.
    pub fn holds_data(&self, node: NodeId) -> bool {
        self.node_cells(node).iter().any(|&cell| self.cell(cell).role == Role::Data)
    }

    /// The data cells, in the order of the user's bytes.
    pub fn data_cells(&self) -> &[CellId] {
        &self.data
    }

    /// The number of cells of every role.
    pub fn cell_count(&self) -> usize {
        self.cells.len()
    }

    /// All cells.
    pub fn cells(&self) -> impl Iterator<Item = CellId> + use<> {
        (0..self.cells.len()).map(CellId::new)
    }

    /// A cell.
    ///
    /// # Panics
    /// When there is no such cell.
    pub fn cell(&self, cell: CellId) -> &Cell {
        &self.cells[cell.index()]
    }

    /// A cell's generator row: positions in [`Code::data_cells`], ascending.
    pub fn row(&self, cell: CellId) -> &[u32] {
        &self.rows[cell.index()]
    }

    /// The cells that a derived cell is defined by; empty for data cells (and for a derived cell
    /// that is always zero).
    pub fn definition(&self, cell: CellId) -> &[CellId] {
        &self.definitions[cell.index()]
    }

    /// The coefficients over GF(2^w) of a code in the word layout, whose cells are the bits of
    /// symbols and are stored as such; `None` where cells are packets.
    pub fn symbols(&self) -> Option<&SymbolMatrix> {
        self.symbols.as_ref()
    }

    /// The graph of an LT code, whose block b is cell k + b and lies on node b modulo the nodes; `None`
    /// for codes with a tolerance. Whether given blocks determine the data is a matter of the graph.
    pub fn graph(&self) -> Option<&Graph> {
        self.graph.as_ref()
    }

    /// How many rows of a node form one *lane*: the part of a stored block that is contiguous,
    /// separately checksummed and can be read alone. Equal to the node's rows where reading part
    /// of a strip gains nothing.
    pub fn lane_rows(&self) -> usize {
        self.lane_rows
    }

    /// The ones of the parity rows of the generator: what encoding costs before any scheduling.
    pub fn ones(&self) -> usize {
        let parity = |&cell: &CellId| self.cell(cell).role == Role::Parity;
        self.cells().filter(parity).map(|cell| self.row(cell).len()).sum()
    }

    /// The set of all placed cells of some nodes.
    pub fn cells_of(&self, nodes: impl IntoIterator<Item = NodeId>) -> CellSet {
        let cells = nodes.into_iter().flat_map(|node| self.node_cells(node).iter().copied());
        CellSet::from_cells(self.cell_count(), cells)
    }

    /// The stored cells of one role.
    pub fn stored(&self, role: Role) -> CellSet {
        let wanted = |&cell: &CellId| {
            let cell = self.cell(cell);
            cell.role == role && cell.place.is_some()
        };
        CellSet::from_cells(self.cell_count(), self.cells().filter(wanted))
    }

    /// How a cell is called in messages and schedules: `d3.1` is row 1 of node 3 holding data,
    /// `p5.0` holding parity; a cell that is stored nowhere is called by its number.
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
    /// All numbers are 32-bit little-endian: the number of data cells; the number of nodes; then
    /// for each node the number of its cells, and for each cell in row order the number of ones
    /// of its generator row and their positions; in a code of several stages, then, for each node the
    /// stages of its cells; in the word layout, finally, the bits of a word.
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

/// 32-bit little-endian numbers, fed on in pieces: hashes take long for a few bytes at a time.
struct Numbers<F> {
    feed: F,
    bytes: Vec<u8>,
}

impl<F> Numbers<F> {
    /// The bytes of a piece.
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

/// Builds a [`Code`] cell by cell, in any order that defines a cell before it is used.
///
/// ```
/// use paritas::{CodeBuilder, Role, Spec};
/// // Three nodes, the last one the XOR of the others.
/// let mut code = CodeBuilder::new(3);
/// let a = code.data(Some(0));
/// let b = code.data(Some(1));
/// code.derived(Role::Parity, Some(2), &[a, b]);
/// let code = code.finish(Spec::new("mirror-of-two"), 1)?;
/// assert_eq!(code.ones(), 2);
/// # Ok::<(), paritas::Error>(())
/// ```
#[derive(Debug)]
pub struct CodeBuilder {
    pin: Pin,
    lane_rows: Option<usize>,
    stage: u8,
    stage_ends: Vec<StageEnd>,
    cells: Vec<Cell>,
    data: Vec<CellId>,
    nodes: Vec<Vec<CellId>>,
    rows: Vec<Box<[u32]>>,
    definitions: Vec<Box<[CellId]>>,
    symbols: Option<SymbolMatrix>,
    graph: Option<Graph>,
}

impl CodeBuilder {
    /// A code on the given number of nodes, without cells yet.
    pub fn new(nodes: usize) -> Self {
        Self {
            pin: Pin::new(),
            lane_rows: None,
            stage: 1,
            stage_ends: Vec::new(),
            cells: Vec::new(),
            data: Vec::new(),
            nodes: vec![Vec::new(); nodes],
            rows: Vec::new(),
            definitions: Vec::new(),
            symbols: None,
            graph: None,
        }
    }

    /// Sets the numbers that pin the matrix.
    pub fn pin(&mut self, pin: Pin) -> &mut Self {
        self.pin = pin;
        self
    }

    /// Sets how many rows of a node form one lane; by default all.
    pub fn lane_rows(&mut self, rows: usize) -> &mut Self {
        self.lane_rows = Some(rows);
        self
    }

    /// Sets the stage of the cells that follow; 1 to begin with. On every node the rows of a stage
    /// come after those of earlier ones, in whatever order they are added.
    pub fn stage(&mut self, stage: u8) -> &mut Self {
        self.stage = stage;
        self
    }

    /// Says of the first stage, or when called again of the next, what is true at its end: that any
    /// `tolerance` nodes may be lost then, and that the stage that follows makes its cells from those
    /// of `reads`.
    pub fn end_stage(&mut self, tolerance: usize, reads: Vec<CellId>) -> &mut Self {
        self.stage_ends.push(StageEnd { tolerance, reads });
        self
    }

    /// Adds the next data cell, as the next row of a node or stored nowhere.
    ///
    /// # Panics
    /// When there is no such node.
    pub fn data(&mut self, node: Option<usize>) -> CellId {
        let row = vec![self.data.len() as u32].into_boxed_slice();
        let cell = self.push(Role::Data, node, row, Box::default());
        self.data.push(cell);
        cell
    }

    /// Adds a cell that is the XOR of cells added before, as the next row of a node or stored
    /// nowhere. A source that is named twice cancels out.
    ///
    /// # Panics
    /// When there is no such node.
    pub fn derived(&mut self, role: Role, node: Option<usize>, sources: &[CellId]) -> CellId {
        let mut row: Vec<u32> =
            sources.iter().flat_map(|&source| self.rows[source.index()].iter().copied()).collect();
        cancel_pairs(&mut row);
        let mut definition = sources.to_vec();
        cancel_pairs(&mut definition);
        self.push(role, node, row.into(), definition.into())
    }

    /// Adds the next data cells: `rows` of node 0, then `rows` of node 1, up to node `nodes - 1`.
    ///
    /// # Panics
    /// When the code has fewer nodes.
    pub fn data_nodes(&mut self, nodes: usize, rows: usize) -> Vec<Vec<CellId>> {
        (0..nodes).map(|node| (0..rows).map(|_| self.data(Some(node))).collect()).collect()
    }

    /// Adds a parity node that is the sum of blocks times data columns: its row r is the XOR of
    /// cell c of column j for every one at (r, c) of block j.
    ///
    /// # Panics
    /// When there is no such node, or a block has more columns than its data column has cells.
    pub fn blocks(&mut self, node: usize, data: &[Vec<CellId>], blocks: &[BitMatrix]) -> &mut Self {
        for r in 0..blocks.first().map_or(0, BitMatrix::rows) {
            let sources = blocks.iter().zip(data);
            let sources: Vec<CellId> =
                sources.flat_map(|(block, cells)| block.support(r).map(|c| cells[c])).collect();
            self.derived(Role::Parity, Some(node), &sources);
        }
        self
    }

    /// Adds the symbols of a matrix in the packet layout: node by node from 0, the w bits of a
    /// symbol as the next w rows of its node.
    ///
    /// # Panics
    /// When the code has fewer nodes.
    pub fn symbols(&mut self, matrix: &SymbolMatrix) -> &mut Self {
        let field = matrix.field();
        let data = self.data_nodes(matrix.data_nodes(), field.width() as usize);
        for (row, node) in matrix.parity().iter().zip(matrix.data_nodes()..) {
            let blocks: Vec<BitMatrix> = row.iter().map(|&c| field.bit_matrix(c)).collect();
            self.blocks(node, &data, &blocks);
        }
        self
    }

    /// Adds the symbols of a matrix in the word layout. The code has no other cells.
    ///
    /// # Panics
    /// When the code has fewer nodes.
    pub fn words(&mut self, matrix: SymbolMatrix) -> &mut Self {
        self.symbols(&matrix);
        self.symbols = Some(matrix);
        self
    }

    /// Adds the data blocks of an LT code, which are stored nowhere, and its blocks, dealt out to the
    /// nodes in turn, each a lane of its own. The code has no other cells.
    pub fn graph(&mut self, graph: &Graph) -> &mut Self {
        let data: Vec<CellId> = (0..graph.data()).map(|_| self.data(None)).collect();
        let nodes = self.nodes.len();
        for block in 0..graph.blocks() {
            let neighbours = graph.row(block as u32).iter();
            let sources: Vec<CellId> = neighbours.map(|&n| data[n as usize]).collect();
            self.derived(Role::Parity, Some(block % nodes), &sources);
        }
        self.graph = Some(graph.clone());
        self.lane_rows(1)
    }

    fn push(
        &mut self,
        role: Role,
        node: Option<usize>,
        row: Box<[u32]>,
        definition: Box<[CellId]>,
    ) -> CellId {
        let id = CellId::new(self.cells.len());
        let place = node.map(|node| {
            let rows = &mut self.nodes[node];
            rows.push(id);
            Place { node: NodeId::new(node), row: rows.len() - 1 }
        });
        self.cells.push(Cell { role, place, stage: self.stage });
        self.rows.push(row);
        self.definitions.push(definition);
        id
    }

    /// The finished code, with its canonical spec and the number of nodes that may be lost.
    ///
    /// # Errors
    /// When the code has no data, a node without cells, a lane that mixes data and parity or stages,
    /// a cell of a stage after the last that an end was said of, or in the word layout divided symbols, other cells, or words that no kernel computes with.
    pub fn finish(mut self, spec: Spec, tolerance: usize) -> Result<Code> {
        self.sort_stages(&spec)?;
        let widest = self.nodes.iter().map(Vec::len).max().unwrap_or(0);
        let lane_rows = self.lane_rows.unwrap_or(widest);
        if self.data.is_empty() || self.nodes.iter().any(Vec::is_empty) || lane_rows == 0 {
            return Err(Error::parameters(format!("{spec} leaves a node without cells")));
        }
        self.expect_whole_words(&spec, lane_rows)?;
        let code = Code {
            spec,
            pin: self.pin,
            tolerance,
            stage_ends: self.stage_ends,
            lane_rows,
            cells: self.cells,
            data: self.data,
            nodes: self.nodes,
            rows: self.rows,
            definitions: self.definitions,
            symbols: self.symbols,
            graph: self.graph,
        };
        let kind = |cell: CellId| (code.cell(cell).role, code.cell(cell).stage);
        let mixed = |lane: &[CellId]| lane.iter().any(|&cell| kind(cell) != kind(lane[0]));
        if code.nodes.iter().any(|node| node.chunks(lane_rows).any(mixed)) {
            return Err(Error::parameters(format!(
                "{}: lanes of {lane_rows} rows mix data and parity or stages",
                code.spec
            )));
        }
        Ok(code)
    }

    /// Brings the rows of every node into the order of their stages, all of which must have ends.
    fn sort_stages(&mut self, spec: &Spec) -> Result<()> {
        let stages = self.stage_ends.len() + 1;
        if let Some(cell) = self.cells.iter().find(|c| !(1..=stages).contains(&c.stage.into())) {
            return Err(Error::parameters(format!(
                "{spec}: a cell is of stage {}, but there are {stages}",
                cell.stage
            )));
        }
        for cells in &mut self.nodes {
            cells.sort_by_key(|cell| self.cells[cell.index()].stage);
            for (row, cell) in cells.iter().enumerate() {
                if let Some(place) = &mut self.cells[cell.index()].place {
                    place.row = row;
                }
            }
        }
        Ok(())
    }

    fn expect_whole_words(&self, spec: &Spec, lane_rows: usize) -> Result<()> {
        let Some(symbols) = &self.symbols else { return Ok(()) };
        let w = symbols.field().width() as usize;
        if !WORD_WIDTHS.contains(&w) {
            let message = format!("{spec}: w = {w}, but words have w = 8, 16 or 32");
            return Err(Error::parameters(message));
        }
        if self.cells.len() != w * symbols.node_count() || lane_rows != w {
            return Err(Error::parameters(format!(
                "{spec}: nodes in the word layout hold only symbols, undivided"
            )));
        }
        Ok(())
    }
}

/// Sorts a list and removes what occurs an even number of times.
pub(crate) fn cancel_pairs<T: Copy + Ord>(list: &mut Vec<T>) {
    list.sort_unstable();
    let kept: Vec<T> =
        list.chunk_by(|a, b| a == b).filter(|run| run.len() % 2 == 1).map(|run| run[0]).collect();
    *list = kept;
}

/// A set of cells of one code.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct CellSet {
    words: Vec<u64>,
}

impl CellSet {
    /// The empty set over a code of `cells` cells.
    pub fn new(cells: usize) -> Self {
        Self { words: vec![0; cells.div_ceil(64)] }
    }

    /// The set of the given cells.
    pub fn from_cells(cells: usize, members: impl IntoIterator<Item = CellId>) -> Self {
        let mut set = Self::new(cells);
        members.into_iter().for_each(|cell| set.insert(cell));
        set
    }

    /// Adds a cell.
    ///
    /// # Panics
    /// When the cell is out of the set's range.
    pub fn insert(&mut self, cell: CellId) {
        self.words[cell.index() / 64] |= 1 << (cell.index() % 64);
    }

    /// Removes a cell.
    pub fn remove(&mut self, cell: CellId) {
        if let Some(word) = self.words.get_mut(cell.index() / 64) {
            *word &= !(1 << (cell.index() % 64));
        }
    }

    /// Whether the cell is in the set.
    pub fn contains(&self, cell: CellId) -> bool {
        self.words.get(cell.index() / 64).is_some_and(|w| w >> (cell.index() % 64) & 1 == 1)
    }

    /// The number of cells.
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// The cells, ascending.
    pub fn iter(&self) -> impl Iterator<Item = CellId> {
        crate::define::bitmatrix::ones_of(&self.words).map(CellId::new)
    }
}

impl fmt::Debug for CellSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two data rows and two parity rows on every node.
    #[test]
    fn vertical_codes_fit() {
        let n = 4;
        let mut builder = CodeBuilder::new(n);
        let data = builder.data_nodes(n, 2);
        for (i, j) in [(1, 2), (2, 3)] {
            for node in 0..n {
                let sources = [data[(node + i) % n][0], data[(node + j) % n][1]];
                builder.derived(Role::Parity, Some(node), &sources);
            }
        }
        builder.lane_rows(1);
        let code = builder.finish(Spec::new("test"), 1).unwrap();
        assert_eq!(code.node_cells(NodeId::new(0)).len(), 4);
        assert_eq!(code.ones(), 2 * n * 2);
        assert!(code.nodes().all(|node| code.holds_data(node)));
        assert_eq!(code.cell_name(code.node_cells(NodeId::new(3))[2]), "p3.2");
    }

    /// Several stripes in one group, with cells of a second stage.
    #[test]
    fn groups_and_stages_fit() {
        let mut builder = CodeBuilder::new(4);
        let first: Vec<CellId> = (0..2).map(|node| builder.data(Some(node))).collect();
        let second: Vec<CellId> = (0..2).map(|node| builder.data(Some(node))).collect();
        builder.derived(Role::Parity, Some(2), &first);
        builder.derived(Role::Parity, Some(2), &second);
        builder.end_stage(1, second.clone());
        builder.stage(2).derived(Role::Parity, Some(3), &[first[0], second[1]]);
        let code = builder.lane_rows(1).finish_by_value();
        assert_eq!(code.node_cells(NodeId::new(3)).len(), 1);
        assert_eq!(code.cell(CellId::new(6)).stage, 2);
    }

    /// A code that stores no original data, as plain LT.
    #[test]
    fn unplaced_data_fits() {
        let mut builder = CodeBuilder::new(2);
        let data: Vec<CellId> = (0..3).map(|_| builder.data(None)).collect();
        builder.derived(Role::Parity, Some(0), &data[..1]);
        builder.derived(Role::Parity, Some(0), &data[..2]);
        builder.derived(Role::Parity, Some(1), &data[1..]);
        let code = builder.finish(Spec::new("lt"), 0).unwrap();
        assert_eq!(code.data_cells().len(), 3);
        assert!(code.stored(Role::Data).is_empty());
    }

    #[test]
    fn definitions_cancel() {
        let mut builder = CodeBuilder::new(2);
        let (a, b) = (builder.data(Some(0)), builder.data(Some(0)));
        let sum = builder.derived(Role::Auxiliary, None, &[a, b]);
        let only_a = builder.derived(Role::Parity, Some(1), &[sum, b, a, a]);
        let code = builder.finish(Spec::new("test"), 1).unwrap();
        assert_eq!(code.row(only_a), [0]);
        assert_eq!(code.definition(only_a), [b, sum]);
    }

    #[test]
    fn lanes_do_not_mix_data_and_parity() {
        let mut builder = CodeBuilder::new(1);
        let a = builder.data(Some(0));
        builder.derived(Role::Parity, Some(0), &[a]);
        assert!(builder.finish(Spec::new("test"), 0).is_err());
    }

    impl CodeBuilder {
        fn finish_by_value(&mut self) -> Code {
            std::mem::replace(self, Self::new(0)).finish(Spec::new("test"), 1).unwrap()
        }
    }
}
