//! `matrix`: the code of a bit matrix that the user gives ([`ParityMatrix`]).
//!
//! Such a code need not be MDS. Its tolerance is found by trying all losses of one node, then all
//! of two nodes, and so on until one is fatal. A lane is a single row, because the structure of the
//! matrix, which is unknown here, may let a reader save by reading part of a strip.

use crate::define::builder::CodeBuilder;
use crate::define::cells::{CellId, NodeId, Role};
use crate::define::code::Code;
use crate::define::erasure::{Losses, combinations};
use crate::define::families::{Family, rebuild_fixed};
use crate::define::matrix::{self, ParityMatrix, ParityPlacement};
use crate::define::spec::Spec;
use crate::error::{Error, Result};
use crate::limits::LOSSES_TRIED;

pub(super) const FAMILY: Family = Family {
    name: matrix::FAMILY,
    summary: "a bit matrix of one's own: any XOR code, also one that is not MDS",
    limits: "k + m <= 1024, the matrix at most about 250,000 bits; rows=HEX.HEX.…: m·w parity rows of k·w bits, the first column in the highest bit; placement=vertical: parity below the data of every node; every loss of one node must be survived",
    example: "matrix:k=2,m=2,w=1,rows=c.c",
    define,
    rebuild: |spec, pin| rebuild_fixed(spec, pin, define),
};

fn define(spec: &Spec) -> Result<Code> {
    Code::from_matrix(&ParityMatrix::of_spec(spec)?)
}

impl Code {
    /// Returns the code of a bit matrix. Its spec holds the matrix. Its tolerance is found by
    /// trying losses, up to a limit on the work: a wide code may survive more losses than its
    /// tolerance says.
    ///
    /// ```
    /// use paritas::Code;
    /// use paritas::code::ParityMatrix;
    /// let toy: ParityMatrix = "k = 2\nm = 2\nw = 1\n11\n11".parse()?;
    /// let code = Code::from_matrix(&toy)?;
    /// assert_eq!(code.spec().to_string(), "matrix:k=2,m=2,w=1,rows=c.c");
    /// assert_eq!(code.tolerance(), 1);
    /// # Ok::<(), paritas::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the loss of a single node is fatal.
    pub fn from_matrix(matrix: &ParityMatrix) -> Result<Self> {
        let mut code = placed(matrix)?;
        code.tolerance = tolerance(&code, matrix.m())?;
        Ok(code)
    }

    /// Returns the matrix of a code that was made from one.
    pub fn parity_matrix(&self) -> Option<ParityMatrix> {
        let is_own = self.spec().family() == FAMILY.name;
        is_own.then(|| ParityMatrix::of_spec(self.spec()).ok()).flatten()
    }
}

/// Returns the code with a tolerance of 0.
fn placed(matrix: &ParityMatrix) -> Result<Code> {
    let (k, m, w) = (matrix.k(), matrix.m(), matrix.w());
    let mut builder = CodeBuilder::new(k + m);
    let (data_nodes, parity_from) = match matrix.placement() {
        ParityPlacement::Horizontal => (k, k),
        ParityPlacement::Vertical => (k + m, 0),
    };
    let data = builder.data_nodes(data_nodes, k * w / data_nodes).concat();
    let parity_rows = m * w / (k + m - parity_from);
    for row in 0..m * w {
        let sources: Vec<CellId> = matrix.bits().support(row).map(|column| data[column]).collect();
        builder.derived(Role::Parity, Some(parity_from + row / parity_rows), &sources);
    }
    builder.lane_rows(1);
    builder.finish(matrix.spec(), 0)
}

/// Returns the tolerance of a code, at most `most`: all losses of up to this number of nodes were
/// tried within [`LOSSES_TRIED`] steps (those of one node in any case) and are survived.
///
/// # Errors
/// If the loss of one node is fatal.
fn tolerance(code: &Code, most: usize) -> Result<usize> {
    let mut steps = 0;
    for count in 1..=most {
        for lost in combinations(code.node_count(), count) {
            if count > 1 && steps > LOSSES_TRIED {
                return Ok(count - 1);
            }
            let lost: Vec<NodeId> = lost.into_iter().map(NodeId::new).collect();
            let losses = Losses::of_nodes(code, &lost);
            steps += losses.steps() + code.cell_count() as u64;
            match (losses.is_solvable(), count) {
                (true, _) => {}
                (false, 1) => return Err(refusal(code, &losses, lost[0])),
                (false, _) => return Ok(count - 1),
            }
        }
    }
    Ok(most)
}

/// Returns the error that the loss of `node` alone is fatal, and names the lost data.
fn refusal(code: &Code, losses: &Losses<'_>, node: NodeId) -> Error {
    let cells = code.node_cells(node).iter().copied();
    let data: Vec<CellId> = cells.filter(|&cell| code.cell(cell).role == Role::Data).collect();
    let gone: Vec<CellId> =
        data.iter().copied().filter(|&cell| losses.express(cell).is_err()).collect();
    let first = gone.first().map_or_else(String::new, |&cell| code.cell_name(cell));
    Error::parameters(format!(
        "the matrix does not survive the loss of node {node} alone: {} of its {} data packets cannot \
         be computed from the other nodes, first {first}",
        gone.len(),
        data.len()
    ))
    .at(node.index())
}
