//! Builds codes cell by cell.

use crate::define::bitmatrix::BitMatrix;
use crate::define::cells::{Cell, CellId, NodeId, Place, Role, StageEnd, cancel_pairs};
use crate::define::code::{Code, Generator};
use crate::define::lt::Graph;
use crate::define::made::FirstMade;
use crate::define::pin::Pin;
use crate::define::spec::Spec;
use crate::define::symbols::{SymbolMatrix, WORD_WIDTHS};
use crate::error::{Error, Result};

/// Builds a [`Code`] cell by cell, in any order that defines a cell before it is used.
///
/// ```
/// use paritas::Spec;
/// use paritas::code::{CodeBuilder, Role};
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
    /// Returns a code on `nodes` nodes that has no cells yet.
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

    /// Sets the stage of the cells that follow; initially 1. On every node, the rows of a stage
    /// come after those of earlier stages, in whatever order they are added.
    pub fn stage(&mut self, stage: u8) -> &mut Self {
        self.stage = stage;
        self
    }

    /// Ends a stage: the first call ends stage 1, the next call stage 2, and so on. At its end any
    /// `tolerance` nodes may be lost, and the next stage computes its cells from those in `reads`.
    pub fn end_stage(&mut self, tolerance: usize, reads: Vec<CellId>) -> &mut Self {
        self.stage_ends.push(StageEnd { tolerance, reads });
        self
    }

    /// Adds the next data cell: as the next row of `node`, or stored nowhere if `node` is `None`.
    ///
    /// # Panics
    /// If there is no node of that number.
    pub fn data(&mut self, node: Option<usize>) -> CellId {
        let row = vec![self.data.len() as u32].into_boxed_slice();
        let cell = self.push(Role::Data, node, row, Box::default());
        self.data.push(cell);
        cell
    }

    /// Adds a cell that is the XOR of cells added before: as the next row of `node`, or stored
    /// nowhere if `node` is `None`. A source that is named twice cancels out.
    ///
    /// # Panics
    /// If there is no node of that number, or a source has not been added.
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
    /// If the code has fewer than `nodes` nodes.
    pub fn data_nodes(&mut self, nodes: usize, rows: usize) -> Vec<Vec<CellId>> {
        (0..nodes).map(|node| (0..rows).map(|_| self.data(Some(node))).collect()).collect()
    }

    /// Adds a parity node as the sum of blocks times data columns. Its row r is the XOR of cell c
    /// of column j for every one at (r, c) of block j.
    ///
    /// # Panics
    /// If there is no node of that number, or a block has more columns than its data column has
    /// cells.
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
    /// If the code has fewer nodes.
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
    /// If the code has fewer nodes.
    pub fn words(&mut self, matrix: SymbolMatrix) -> &mut Self {
        let width = matrix.field().width() as usize;
        // The matrix has the rows of all cells.
        for node in 0..matrix.node_count() {
            let is_data = node < matrix.data_nodes();
            self.nodes[node].reserve_exact(width);
            for _ in 0..width {
                let role = if is_data { Role::Data } else { Role::Parity };
                let cell = self.push(role, Some(node), Box::default(), Box::default());
                if is_data {
                    self.data.push(cell);
                }
            }
        }
        self.symbols = Some(matrix);
        self
    }

    /// Adds the data blocks of an LT code, which are stored nowhere, and its encoded blocks.
    /// Encoded blocks are dealt out to the nodes in turn, and each is a lane of its own. The code
    /// has no other cells.
    ///
    /// # Panics
    /// If the code has no nodes.
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

    /// Returns the finished code. `spec` is its canonical spec, `tolerance` the number of nodes
    /// that may be lost.
    ///
    /// # Errors
    /// - If the code has no data, a node without cells, a lane without rows, or a lane that mixes
    ///   data and parity or stages.
    /// - If a derived cell is data, parity that is stored nowhere, or an auxiliary cell that is
    ///   stored.
    /// - If there are more than 255 stages, if a cell's stage is more than one after the last ended
    ///   stage, or if a stage reads a cell that is not stored at the end of the stage before.
    /// - If the tolerance at the end of a stage exceeds the number of nodes of that stage.
    /// - In the word layout also if symbols are divided, if there are other cells, or if no kernel
    ///   computes with words of that width.
    pub fn finish(mut self, spec: Spec, tolerance: usize) -> Result<Code> {
        self.sort_stages(&spec)?;
        let widest = self.nodes.iter().map(Vec::len).max().unwrap_or(0);
        let lane_rows = self.lane_rows.unwrap_or(widest);
        self.expect_filled(&spec, lane_rows)?;
        self.expect_roles(&spec)?;
        self.expect_stage_reads(&spec)?;
        self.expect_whole_words(&spec, lane_rows)?;
        let generator = match self.symbols {
            Some(_) => FirstMade::new(),
            None => Generator { rows: self.rows, definitions: self.definitions }.into(),
        };
        let code = Code {
            spec,
            pin: self.pin,
            tolerance,
            stage_ends: self.stage_ends,
            lane_rows,
            cells: self.cells,
            data: self.data,
            nodes: self.nodes,
            generator,
            symbols: self.symbols,
            graph: self.graph,
        };
        expect_pure_lanes(&code)?;
        expect_possible_losses(&code)?;
        Ok(code)
    }

    /// Checks that there is data, that no node is empty, and that lanes have rows.
    fn expect_filled(&self, spec: &Spec, lane_rows: usize) -> Result<()> {
        if self.data.is_empty() {
            return Err(Error::parameters(format!("{spec} has no data")));
        }
        if let Some(node) = self.nodes.iter().position(Vec::is_empty) {
            return Err(Error::parameters(format!("{spec} leaves node {node} without cells")));
        }
        if lane_rows == 0 {
            let message = format!("{spec}: a lane must have at least 1 row; got 0");
            return Err(Error::parameters(message));
        }
        Ok(())
    }

    /// Checks the roles of derived cells: parity is stored, auxiliary cells are not, and data is
    /// not derived.
    fn expect_roles(&self, spec: &Spec) -> Result<()> {
        // Data cells are numbered in ascending order.
        let mut data = self.data.iter().peekable();
        for (index, cell) in self.cells.iter().enumerate() {
            let is_right = match cell.role {
                Role::Data => data.next_if_eq(&&CellId::new(index)).is_some(),
                Role::Parity => cell.place.is_some(),
                Role::Auxiliary => cell.place.is_none(),
            };
            if !is_right {
                return Err(Error::parameters(format!(
                    "{spec}: cell {index} is derived, so it must be parity that is stored or an \
                     auxiliary cell that is not"
                )));
            }
        }
        Ok(())
    }

    /// Checks that what a stage reads is stored at the end of the stage before.
    fn expect_stage_reads(&self, spec: &Spec) -> Result<()> {
        for (ended, end) in (1_usize..).zip(&self.stage_ends) {
            let is_stored = |cell: &Cell| cell.place.is_some() && usize::from(cell.stage) <= ended;
            let missing = |read: &&CellId| !self.cells.get(read.index()).is_some_and(is_stored);
            if let Some(read) = end.reads.iter().find(missing) {
                return Err(Error::parameters(format!(
                    "{spec}: stage {} reads cell {}, which is not stored when stage {ended} ends",
                    ended + 1,
                    read.index()
                )));
            }
        }
        Ok(())
    }

    /// Sorts the rows of every node by stage. All stages but the last must have been ended.
    fn sort_stages(&mut self, spec: &Spec) -> Result<()> {
        let stages = self.stage_ends.len() + 1;
        if stages > usize::from(u8::MAX) {
            let most = u8::MAX;
            let message = format!("{spec}: a code must have at most {most} stages; got {stages}");
            return Err(Error::parameters(message));
        }
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
            let message = format!("{spec}: w must be 8, 16 or 32 in words; got {w}");
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

/// Checks that no lane mixes data and parity, or stages.
fn expect_pure_lanes(code: &Code) -> Result<()> {
    let kind = |cell: CellId| (code.cell(cell).role, code.cell(cell).stage);
    let mixed = |lane: &[CellId]| lane.iter().any(|&cell| kind(cell) != kind(lane[0]));
    match code.nodes.iter().any(|node| node.chunks(code.lane_rows).any(mixed)) {
        false => Ok(()),
        true => Err(Error::parameters(format!(
            "{}: lanes of {} rows mix data and parity or stages",
            code.spec, code.lane_rows
        ))),
    }
}

/// Checks that the tolerance of every stage is at most its number of nodes.
fn expect_possible_losses(code: &Code) -> Result<()> {
    for stage in 1..=code.stages() {
        let (nodes, tolerance) = (code.nodes_at(stage).len(), code.tolerance_at(stage));
        if tolerance > nodes {
            return Err(Error::parameters(format!(
                "{}: {tolerance} of the {nodes} nodes of stage {stage} cannot be lost",
                code.spec
            )));
        }
    }
    Ok(())
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

    /// A code that stores no original data, like plain LT.
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
    fn what_is_wrong_is_said() {
        let refused = |build: fn(&mut CodeBuilder, CellId), tolerance: usize, part: &str| {
            let mut builder = CodeBuilder::new(2);
            let data = builder.data(Some(0));
            build(&mut builder, data);
            let error = builder.finish(Spec::new("test"), tolerance).unwrap_err().to_string();
            assert!(error.contains(part), "{part}: {error}");
        };
        let with_parity = |builder: &mut CodeBuilder, data| {
            builder.derived(Role::Parity, Some(1), &[data]);
        };
        refused(|_, _| {}, 1, "leaves node 1 without cells");
        refused(with_parity, 3, "3 of the 2 nodes of stage 1 cannot be lost");
        for (role, node) in
            [(Role::Data, Some(1)), (Role::Parity, None), (Role::Auxiliary, Some(1))]
        {
            let mut builder = CodeBuilder::new(2);
            let data = builder.data(Some(0));
            with_parity(&mut builder, data);
            builder.derived(role, node, &[data]);
            let error = builder.finish(Spec::new("test"), 1).unwrap_err().to_string();
            assert!(error.contains("cell 2 is derived, so it must be"), "{role:?}: {error}");
        }
        let without_rows = |builder: &mut CodeBuilder, data: CellId| {
            builder.lane_rows(0).derived(Role::Parity, Some(1), &[data]);
        };
        refused(without_rows, 1, "a lane must have at least 1 row; got 0");
        let of_many_stages = |builder: &mut CodeBuilder, data: CellId| {
            builder.derived(Role::Parity, Some(1), &[data]);
            for _ in 0..255 {
                builder.end_stage(1, Vec::new());
            }
        };
        refused(of_many_stages, 1, "at most 255 stages; got 256");
        let reading_what_is_not_there = |builder: &mut CodeBuilder, data: CellId| {
            builder.derived(Role::Parity, Some(1), &[data]);
            builder.end_stage(1, vec![data, CellId::new(9)]);
        };
        refused(reading_what_is_not_there, 1, "stage 2 reads cell 9");
        let reading_what_comes_later = |builder: &mut CodeBuilder, data: CellId| {
            builder.lane_rows(1).derived(Role::Parity, Some(1), &[data]);
            let later = builder.stage(2).derived(Role::Parity, Some(1), &[data]);
            builder.end_stage(1, vec![later]);
        };
        refused(reading_what_comes_later, 1, "stage 2 reads cell 2");
        let empty = CodeBuilder::new(0).finish(Spec::new("test"), 0).unwrap_err().to_string();
        assert!(empty.contains("has no data"), "{empty}");
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
