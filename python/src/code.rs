//! Codes and schedules.

use paritas::NodeId;
use paritas::code::{BitMatrix, CellId, CellSet, ParityMatrix, ParityPlacement, Role};
use paritas::erasure::survival_with;
use paritas::research::Slot;
use paritas_shards::DEFAULT_CODE;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::arrays;
use crate::errors::{Result, text, wrong_argument, wrong_type};
use crate::signals::run;

/// An erasure code, named by its spec, such as `10+4`, `rdp:k=6` or `bbdpg:k=10,m=2,m2=4`.
#[pyclass(frozen, module = "paritas")]
pub struct Code(pub paritas::Code);

#[pymethods]
impl Code {
    #[new]
    fn new(py: Python<'_>, spec: &str) -> Result<Self> {
        Ok(Self(Self::parse(py, spec)?))
    }

    /// Lets a code be pickled.
    fn __getnewargs__(&self) -> (String,) {
        (self.spec(),)
    }

    /// Makes the code of a bit matrix, which need not be MDS. `rows` has one row for each parity
    /// packet (m·w rows), and each row has a 0 or 1 for each data packet (k·w columns). Both are in
    /// the order of nodes and then of their packets, as `bit_matrix` returns them. With
    /// `placement="vertical"` each of the k + m nodes holds data, and parity after it. The code's
    /// spec holds the matrix.
    ///
    /// Raises ParameterError if the sizes do not fit, or if the loss of a single node is fatal.
    #[staticmethod]
    #[pyo3(signature = (rows, *, k, m, placement = "horizontal"))]
    fn from_matrix(
        py: Python<'_>,
        rows: &Bound<'_, PyAny>,
        k: usize,
        m: usize,
        placement: &str,
    ) -> Result<Self> {
        let placement: ParityPlacement = placement.parse()?;
        let supports = rows.try_iter()?.enumerate().map(|(row, bits)| ones(row, &bits?));
        let supports = supports.collect::<Result<Vec<_>>>()?;
        if m == 0 || supports.is_empty() || supports.len() % m != 0 {
            let given = supports.len();
            let message = format!("rows must be m·w rows, a multiple of m = {m}; got {given}");
            return Err(wrong_argument(message));
        }
        let w = supports.len() / m;
        let columns = k.saturating_mul(w);
        if let Some(row) = supports.iter().position(|(_, length)| *length != columns) {
            let given = supports[row].1;
            let message = format!("row {row} must have k·w = {columns} bits; got {given}");
            return Err(wrong_argument(message));
        }
        let supports: Vec<Vec<usize>> = supports.into_iter().map(|(ones, _)| ones).collect();
        let bits = BitMatrix::from_supports(columns, &supports);
        let matrix = ParityMatrix::new(k, m, w, placement, bits)?;
        Ok(Self(py.detach(|| paritas::Code::from_matrix(&matrix))?))
    }

    /// Makes the code of a bit matrix that is written as a text, as `paritas codes --help`
    /// describes.
    ///
    /// Raises ParameterError, which names the line, if the text is not a matrix, or if the loss of
    /// a single node is fatal.
    #[staticmethod]
    fn from_matrix_text(py: Python<'_>, text: &str) -> Result<Self> {
        let matrix: ParityMatrix = text.parse()?;
        Ok(Self(py.detach(|| paritas::Code::from_matrix(&matrix))?))
    }

    /// Tries losses of `lost` nodes: all sets of nodes if there are at most `most`, otherwise
    /// `most` random sets, which are the same in every call. Returns three numbers: the tried sets
    /// that are survived, the tried sets, and all sets, or 2^64 - 1 if there are more. Ctrl-C ends
    /// it.
    #[pyo3(signature = (lost, most = 10_000))]
    fn survival(&self, py: Python<'_>, lost: usize, most: u64) -> Result<(u64, u64, u64)> {
        let found = run(py, |progress| Ok(survival_with(&self.0, lost, most, || progress(0))))?;
        Ok((found.survived, found.tried, found.sets))
    }

    /// The spec in its canonical form.
    #[getter]
    fn spec(&self) -> String {
        self.0.spec().to_string()
    }

    /// The number of nodes, n, after all stages: nodes with data and nodes with parity.
    #[getter]
    fn nodes(&self) -> usize {
        self.0.node_count()
    }

    /// The number of nodes that hold data.
    #[getter]
    fn data_nodes(&self) -> usize {
        self.0.nodes().filter(|&node| self.0.holds_data(node)).count()
    }

    /// The number of nodes that may be lost, whichever they are.
    #[getter]
    fn tolerance(&self) -> usize {
        self.0.tolerance()
    }

    /// The number of stages: 2 for delayed parity, else 1.
    #[getter]
    fn stages(&self) -> u8 {
        self.0.stages()
    }

    /// Returns the generator's rows of the parity cells as an array of bytes (`uint8`) that are 0
    /// or 1: one row for each parity cell, one column for each data cell, both in node order. Needs
    /// numpy.
    fn bit_matrix<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        let columns = self.0.data_cells().len();
        let (stored, parity) = (self.0.nodes(), self.0.stored(Role::Parity));
        let stored = stored.flat_map(|node| self.0.node_cells(node)).copied();
        let rows: Vec<CellId> = stored.filter(|&cell| parity.contains(cell)).collect();
        let mut bits = vec![0; rows.len() * columns];
        for (row, &cell) in bits.chunks_mut(columns.max(1)).zip(&rows) {
            self.0.row(cell).iter().for_each(|&column| row[column as usize] = 1);
        }
        Ok(arrays::of(py, rows.len(), columns, &bits, "uint8")?)
    }

    /// Returns the operations that compute the nodes `want` from the nodes `have`, both given as
    /// numbers of nodes. By default `have` is all data and `want` all parity, which is encoding.
    ///
    /// Raises ParameterError if a node does not exist, and LossError if `have` does not determine
    /// `want`.
    #[pyo3(signature = (have = None, want = None))]
    fn schedule(
        &self,
        py: Python<'_>,
        have: Option<NodeNumbers>,
        want: Option<NodeNumbers>,
    ) -> Result<Schedule> {
        // The data of an LT code is stored nowhere.
        let data = || CellSet::from_cells(self.0.cell_count(), self.0.data_cells().to_vec());
        let have = have.map_or_else(|| Ok(data()), |nodes| self.cells(nodes))?;
        let parity = || Ok(self.0.stored(Role::Parity));
        let want = want.map_or_else(parity, |nodes| self.cells(nodes))?;
        let plan = py.detach(|| self.0.schedule(&have, &want))?;
        let number = |cells: &[CellId]| cells.iter().map(|&cell| self.0.cell_name(cell)).collect();
        let (inputs, outputs) = (number(plan.inputs()), number(plan.outputs()));
        Ok(Schedule { schedule: plan.into_schedule(), inputs, outputs })
    }

    fn __repr__(&self) -> String {
        format!("Code({:?})", self.spec())
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.spec() == other.spec()
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        self.spec().hash(&mut hasher);
        hasher.finish()
    }
}

impl Code {
    /// Makes the code of a spec. Other threads of the interpreter may run meanwhile.
    pub fn parse(py: Python<'_>, spec: &str) -> Result<paritas::Code> {
        Ok(py.detach(|| spec.parse())?)
    }

    fn cells(&self, NodeNumbers(nodes): NodeNumbers) -> Result<CellSet> {
        expect_nodes(&self.0, &nodes)?;
        Ok(self.0.cells_of(nodes.into_iter().map(NodeId::new)))
    }
}

/// Refuses numbers of nodes that the code lacks.
pub fn expect_nodes(code: &paritas::Code, nodes: &[usize]) -> Result<()> {
    let count = code.node_count();
    match nodes.iter().find(|&&node| node >= count) {
        None => Ok(()),
        Some(node) => Err(wrong_argument(format!("the code has {count} nodes; got node {node}"))),
    }
}

/// Numbers of nodes.
pub struct NodeNumbers(pub Vec<usize>);

impl FromPyObject<'_, '_> for NodeNumbers {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        match object.is_instance_of::<PyString>() {
            true => Err(wrong_type("a list of numbers of nodes is needed", &object)),
            false => object.extract().map(Self),
        }
    }
}

/// A code, or its spec.
pub enum CodeOrSpec {
    Code(Box<paritas::Code>),
    Spec(String),
}

impl Default for CodeOrSpec {
    /// The code of new objects.
    fn default() -> Self {
        Self::Spec(DEFAULT_CODE.to_owned())
    }
}

impl FromPyObject<'_, '_> for CodeOrSpec {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        match object.cast::<Code>() {
            Ok(code) => Ok(Self::Code(Box::new(code.get().0.clone()))),
            Err(_) => match object.cast::<PyString>() {
                Ok(spec) => Ok(Self::Spec(text(&spec, "a spec")?)),
                Err(_) => {
                    Err(wrong_type("`code` must be a Code or a spec such as '10+4'", &object))
                }
            },
        }
    }
}

impl CodeOrSpec {
    /// Returns the code. Other threads of the interpreter may run while it is made.
    pub fn code(self, py: Python<'_>) -> Result<paritas::Code> {
        match self {
            Self::Code(code) => Ok(*code),
            Self::Spec(spec) => Code::parse(py, &spec),
        }
    }

    /// Returns the spec.
    pub fn spec(self) -> String {
        match self {
            Self::Code(code) => code.spec().to_string(),
            Self::Spec(spec) => spec,
        }
    }
}

/// Returns the columns in which row `row` of a bit matrix has ones, and the number of its columns.
fn ones(row: usize, bits: &Bound<'_, PyAny>) -> Result<(Vec<usize>, usize)> {
    let (mut ones, mut columns) = (Vec::new(), 0);
    for bit in bits.try_iter()? {
        let bit = bit?;
        let number = match bit.extract::<u8>() {
            Err(error) if is_about_bits(bits.py(), &error) => bit.extract::<bool>().map(u8::from),
            number => number,
        };
        match number {
            Ok(0) => {}
            Ok(1) => ones.push(columns),
            Err(error) if !is_about_bits(bits.py(), &error) => return Err(error.into()),
            _ => {
                let given = bit.repr()?;
                let message =
                    format!("row {row}, column {columns}: bits must be 0 or 1; got {given}");
                return Err(wrong_argument(message));
            }
        }
        columns += 1;
    }
    Ok((ones, columns))
}

/// Whether an error says that an object is no bit. Others are an interrupt, or of the object
/// itself.
fn is_about_bits(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PyTypeError>(py) || error.is_instance_of::<PyOverflowError>(py)
}

/// Operations that compute some cells of a stripe from others.
#[pyclass(frozen, module = "paritas")]
pub struct Schedule {
    schedule: paritas::research::Schedule,
    /// The names of the cells that are read, in the order of inputs.
    #[pyo3(get)]
    inputs: Vec<String>,
    /// The names of the cells that are computed, in the order of outputs.
    #[pyo3(get)]
    outputs: Vec<String>,
}

#[pymethods]
impl Schedule {
    /// The number of XORs of two cells.
    #[getter]
    fn xors(&self) -> usize {
        paritas::research::Cost::of(&self.schedule).xors
    }

    /// The number of XORs and copies: the sum of the numbers of sources of all operations, where an
    /// operation that adds to its target counts the target as a source.
    #[getter]
    fn touches(&self) -> usize {
        paritas::research::Cost::of(&self.schedule).total
    }

    /// The number of temporary cells.
    #[getter]
    fn temps(&self) -> usize {
        self.schedule.temps()
    }

    /// Returns the operations as an array of whole numbers (`int64`) with four columns: target,
    /// source, whether the source is added to the target (1) or replaces it (0), and the factor by
    /// which the operation's sum is multiplied. Cells are numbered: inputs first, then temporary
    /// cells, then outputs. An operation with n sources takes n rows. One without sources fills its
    /// target with zeros; it takes a row whose source is -1. Needs numpy.
    fn operations<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        let mut rows = Vec::new();
        for op in self.schedule.ops() {
            let target = self.number(op.target) as i64;
            let mut row = |source: i64, adds: bool| {
                rows.extend([target, source, i64::from(adds), i64::from(op.factor)]);
            };
            for (at, &source) in op.sources.iter().enumerate() {
                row(self.number(source) as i64, op.accumulate || at > 0);
            }
            if op.sources.is_empty() {
                row(-1, op.accumulate);
            }
        }
        let bytes: Vec<u8> = rows.iter().flat_map(|number| number.to_le_bytes()).collect();
        Ok(arrays::of(py, rows.len() / 4, 4, &bytes, "<i8")?)
    }

    /// Returns the schedule in the text form that the command `paritas schedule` prints.
    fn __str__(&self) -> String {
        self.schedule.to_string()
    }

    fn __repr__(&self) -> String {
        let (inputs, outputs) = (self.inputs.len(), self.outputs.len());
        format!("<Schedule: {outputs} cells from {inputs}, {} XORs>", self.xors())
    }
}

impl Schedule {
    fn number(&self, slot: Slot) -> usize {
        let (inputs, temps) = (self.schedule.inputs(), self.schedule.temps());
        match slot {
            Slot::Input(number) => number as usize,
            Slot::Temp(number) => inputs + number as usize,
            Slot::Output(number) => inputs + temps + number as usize,
        }
    }
}
