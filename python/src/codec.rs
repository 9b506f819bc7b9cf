//! Codecs: codes that work on memory.

use std::num::NonZeroUsize;

use paritas::{CodecOptions, NodeId};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyList};

use crate::arrays;
use crate::buffers::{Names, NewBytes, Shards, Source, new_shards};
use crate::code::{Code, CodeOrSpec, NodeNumbers, expect_nodes};
use crate::errors::{Failure, Result, wrong_argument};

/// A code that works on memory: it encodes, reconstructs and updates shards.
///
/// Shards are any objects with the buffer protocol, and are used where they are. They may have any
/// length that is a multiple of `shard_unit`. One codec may be used by several threads at once. No
/// other thread may write to a shard while a call uses it.
///
/// `code` is a `Code` or its spec. `threads` is the largest number of threads of a call, by default
/// the number of processors. `packet` is the number of bytes of a packet, by default 64; shards
/// that were encoded with packets of another size cannot be decoded (in codes over words, it does
/// not matter).
///
/// Signal handlers, such as that of Ctrl-C, run when a call of a codec has ended. The first call of
/// a wide code plans, which may take seconds.
#[pyclass(frozen, module = "paritas")]
pub struct Codec {
    codec: paritas::Codec,
    /// The arguments of the constructor, for pickling.
    threads: Option<usize>,
    packet: Option<usize>,
}

#[pymethods]
impl Codec {
    #[new]
    #[pyo3(signature = (code, *, threads = None, packet = None))]
    fn new(
        py: Python<'_>,
        code: CodeOrSpec,
        threads: Option<usize>,
        packet: Option<usize>,
    ) -> Result<Self> {
        let code = code.code(py)?;
        if code.graph().is_some() {
            return Err(wrong_argument(format!(
                "{} is an LT code; LtEncoder and LtDecoder run it",
                code.spec()
            )));
        }
        let options = match number_of_threads(threads)? {
            Some(threads) => CodecOptions::default().threads(threads.get()),
            None => CodecOptions::default(),
        };
        let options = match packet {
            Some(packet) => options.packet(packet),
            None => options,
        };
        Ok(Self { codec: paritas::Codec::with_options(code, options)?, threads, packet })
    }

    /// The code.
    #[getter]
    fn code(&self) -> Code {
        Code(self.codec.code().clone())
    }

    /// The number of shards with data, k.
    #[getter]
    fn data_shards(&self) -> usize {
        self.codec.data_shards()
    }

    /// The number of shards without data, m.
    #[getter]
    fn parity_shards(&self) -> usize {
        self.codec.parity_shards()
    }

    /// The number of shards that may be lost, whichever they are.
    #[getter]
    fn tolerance(&self) -> usize {
        self.codec.code().tolerance()
    }

    /// The unit of a shard's length, in bytes: every length must be a multiple of it.
    #[getter]
    fn shard_unit(&self) -> usize {
        self.codec.shard_unit()
    }

    /// Bytes of a strip: a shard may be computed in parts if each part begins at a multiple of
    /// this, and ends at such a multiple or at the end of the shard. Other parts give other parity.
    #[getter]
    fn strip(&self) -> usize {
        self.codec.strip()
    }

    /// The kind of machine code that runs, such as `avx512`.
    #[getter]
    fn kernel(&self) -> &'static str {
        self.codec.kernel_name()
    }

    /// Returns the length in bytes of each data shard of an object of `length` bytes. In a code
    /// whose nodes hold both data and parity, a shard has room for both: the rows with data of all
    /// shards hold the object.
    fn shard_len(&self, length: usize) -> usize {
        self.codec.shard_len(length)
    }

    /// Computes all parity shards from all data shards, both in node order. `data` and `parity` are
    /// lists of buffers, or arrays with one row for each shard. Without `parity`, returns new
    /// memory: an array if `data` is an array, else a list of `bytearray`. In a code with delayed
    /// parity, these are the shards of the first stage, and `reconstruct` computes the others as if
    /// they were lost.
    ///
    /// Raises ParameterError if the number of shards or a length is wrong, if nodes hold both data
    /// and parity, as in X-Code (use `encode_nodes` for such codes), or if shards have rows of
    /// several stages (`interleave=all`).
    #[pyo3(signature = (data, parity = None))]
    fn encode<'py>(
        &self,
        py: Python<'py>,
        data: &Bound<'py, PyAny>,
        parity: Option<Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyAny>> {
        self.codec.code().expect_encoded_whole()?;
        let sources = Shards::of(data, "data")?;
        let parity = match parity {
            Some(parity) => parity,
            None => self.new_parity(py, &sources)?,
        };
        let targets = Shards::of(&parity, "parity")?;
        Shards::with(&sources, &targets, |data, parity| {
            let encoded = py.detach(|| self.codec.encode(data, parity));
            encoded.map_err(|error| {
                let (data, parity) = self.nodes();
                Failure::of_buffers(&error, &[("data", &data), ("parity", &parity)])
            })
        })?;
        Ok(parity)
    }

    /// Computes the parity of a code whose nodes hold both data and parity, in place. `nodes` are
    /// the shards of all nodes; their parity rows are overwritten. In a shard of r rows, row i
    /// begins at byte i · length / r. Raises ParameterError if the number of shards or a length is
    /// wrong, or if shards have rows of several stages (`interleave=all`).
    fn encode_nodes(&self, py: Python<'_>, nodes: &Bound<'_, PyAny>) -> Result<()> {
        self.codec.code().expect_encoded_whole()?;
        Shards::with(&Shards::none(), &Shards::of(nodes, "nodes")?, |_, nodes| {
            let encoded = py.detach(|| self.codec.encode_nodes(nodes));
            encoded.map_err(|error| {
                let all: Vec<usize> = (0..self.codec.code().node_count()).collect();
                Failure::of_buffers(&error, &[("nodes", &all)])
            })
        })
    }

    /// Computes the shards that are `None` in `shards`, a list of all shards in node order. Returns
    /// a new list with all shards: the given ones, and each lost shard as a new `bytearray`. Raises
    /// LossError if too many are lost, and ParameterError if the number of shards or a length is
    /// wrong.
    fn reconstruct<'py>(
        &self,
        py: Python<'py>,
        shards: Vec<Option<Bound<'py, PyAny>>>,
    ) -> Result<Bound<'py, PyList>> {
        let count = self.codec.code().node_count();
        if shards.len() != count {
            let given = shards.len();
            return Err(wrong_argument(format!("there must be {count} shards; got {given}")));
        }
        let (have, lost): (Vec<usize>, Vec<usize>) =
            (0..count).partition(|&node| shards[node].is_some());
        let given = shards.iter().flatten().cloned();
        let sources = Shards::of_each(given, Names::Some("shards", &have))?;
        let made = self.made(py, &have, &lost, &sources)?;
        let made_objects = made.iter().map(|shard| shard.clone().into_any());
        let targets = Shards::of_each(made_objects, Names::Some("shards", &lost))?;
        if !lost.is_empty() {
            let reconstructor = self.prepare(py, &have, &lost)?;
            Shards::with(&sources, &targets, |sources, targets| {
                Ok(py.detach(|| reconstructor.run(sources, targets))?)
            })?;
        }
        let mut made = made.into_iter();
        let all = shards.into_iter().map(|shard| shard.or_else(|| Some(made.next()?.into_any())));
        Ok(PyList::new(py, all.collect::<Vec<_>>())?)
    }

    /// Changes parity in place after the data shard of `node` changed from `old` to `new`. `parity`
    /// has all parity shards in node order. Raises ParameterError if `node` holds no data, or if
    /// the number of shards or a length is wrong.
    fn update<'py>(
        &self,
        py: Python<'py>,
        node: usize,
        old: &Bound<'py, PyAny>,
        new: &Bound<'py, PyAny>,
        parity: &Bound<'py, PyAny>,
    ) -> Result<()> {
        expect_nodes(self.codec.code(), &[node])?;
        let sources = [old.clone(), new.clone()].into_iter();
        let sources = Shards::of_each(sources, Names::Own(&["old", "new"]))?;
        let targets = Shards::of(parity, "parity")?;
        Shards::with(&sources, &targets, |sources, parity| {
            let updated = py.detach(|| self.codec.update(node, sources[0], sources[1], parity));
            updated.map_err(|error| match error.node() == Some(node) {
                true => Failure::of_named(&error, "`old` and `new`"),
                false => Failure::of_buffers(&error, &[("parity", &self.nodes().1)]),
            })
        })
    }

    /// Recomputes all parity and returns the nodes whose parity differs from that in `shards`, all
    /// shards in node order. If most parity differs, the fault probably lies in the data.
    fn verify(&self, py: Python<'_>, shards: &Bound<'_, PyAny>) -> Result<Vec<usize>> {
        let sources = Shards::of(shards, "shards")?;
        Shards::with(&sources, &Shards::none(), |shards, _| {
            let wrong = py.detach(|| self.codec.verify(shards))?;
            Ok(wrong.into_iter().map(NodeId::index).collect())
        })
    }

    /// Prepares the computation of the nodes `want` from the nodes `have`, for many small calls. By
    /// default it prepares encoding: all parity from all data.
    ///
    /// Raises ParameterError if only one of the two is given or a node is named twice, and
    /// LossError if `have` does not determine `want`.
    #[pyo3(signature = (have = None, want = None))]
    fn prepared(
        &self,
        py: Python<'_>,
        have: Option<NodeNumbers>,
        want: Option<NodeNumbers>,
    ) -> Result<Prepared> {
        let nodes = self.codec.code().node_count();
        match (have, want) {
            (None, None) => {
                let prepared = py.detach(|| self.codec.encoder())?;
                let (sources, targets) = self.nodes();
                Ok(Prepared { prepared, sources, targets, nodes })
            }
            (Some(NodeNumbers(sources)), Some(NodeNumbers(targets))) => {
                let prepared = self.prepare(py, &sources, &targets)?;
                Ok(Prepared { prepared, sources, targets, nodes })
            }
            _ => Err(wrong_argument("both `have` and `want` must be given, or none of them")),
        }
    }

    /// Cuts an object into data shards, padded with zeros to equal lengths that suit the code.
    /// Codes whose nodes hold both data and parity, as X-Code, are refused, as by `join` and
    /// `update`.
    fn split<'py>(
        &self,
        py: Python<'py>,
        data: &Bound<'py, PyAny>,
    ) -> Result<Vec<Bound<'py, PyBytes>>> {
        let source = Source::of(data)?;
        let shards = py.detach(|| self.codec.split(source.as_ref()))?;
        Ok(shards
            .into_iter()
            .map(|shard| NewBytes::copy_of(py, &shard))
            .collect::<PyResult<_>>()?)
    }

    /// Returns an object of `length` bytes from its shards in node order. All data shards must be
    /// present (`reconstruct` computes lost ones), and have `shard_len(length)` bytes. Parity may
    /// be left out at the end, and is not read.
    ///
    /// Raises LossError if a data shard is missing, and ParameterError if the number of shards or a
    /// length is wrong.
    fn join<'py>(
        &self,
        py: Python<'py>,
        shards: Vec<Option<Bound<'py, PyAny>>>,
        length: usize,
    ) -> Result<Bound<'py, PyBytes>> {
        let exported = |(at, shard): (usize, Option<Bound<'py, PyAny>>)| {
            let Some(shard) = shard else { return Ok(None) };
            let source = Source::of(&shard);
            let source = source.map_err(|error| error.about(format!("shards[{at}]")))?;
            Ok(Some(source))
        };
        let shards = shards.into_iter().enumerate().map(exported);
        let shards = shards.collect::<Result<Vec<Option<Source>>>>()?;
        let given = shards.iter().flatten().map(|shard| shard.as_ref().len()).sum();
        if length > given {
            // This cannot be, and must not take memory.
            return Ok(PyBytes::new(py, &self.codec.join(&shards, length)?));
        }
        let mut object = NewBytes::zeroed(py, length)?;
        let memory = object.memory();
        py.detach(|| self.codec.join_into(&shards, memory))?;
        Ok(object.finish())
    }

    fn __repr__(&self) -> String {
        format!("Codec({:?}, kernel={:?})", self.codec.code().spec().to_string(), self.kernel())
    }

    /// Lets a codec be pickled, for example for a pool of processes.
    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<((String,), Bound<'py, PyDict>)> {
        let named = PyDict::new(py);
        named.set_item("threads", self.threads)?;
        named.set_item("packet", self.packet)?;
        Ok(((self.codec.code().spec().to_string(),), named))
    }
}

impl Codec {
    /// Returns the numbers of the nodes with data, and of those with parity of the first stage.
    fn nodes(&self) -> (Vec<usize>, Vec<usize>) {
        let code = self.codec.code();
        let nodes = code.nodes_at(1).into_iter().map(NodeId::index);
        nodes.partition(|&node| code.holds_data(NodeId::new(node)))
    }

    fn new_parity<'py>(&self, py: Python<'py>, data: &Shards<'_>) -> Result<Bound<'py, PyAny>> {
        let (count, length) = (self.nodes().1.len(), data.first_len());
        if data.is_array() {
            data.expect_bytes()?;
            return Ok(arrays::empty(py, count, length)?);
        }
        let shards = new_shards(py, std::iter::repeat_n(length, count))?;
        Ok(PyList::new(py, shards)?.into_any())
    }

    /// Makes memory for the lost shards, if all given shards have the right length. If nodes have
    /// different numbers of rows, the lengths of their shards are in the same proportion.
    fn made<'py>(
        &self,
        py: Python<'py>,
        have: &[usize],
        lost: &[usize],
        sources: &Shards<'_>,
    ) -> Result<Vec<Bound<'py, PyByteArray>>> {
        let rows = |node: usize| self.codec.code().node_cells(NodeId::new(node)).len();
        let length = |node: usize| match have.first() {
            Some(&first) => sources.first_len() * rows(node) / rows(first).max(1),
            None => 0,
        };
        if let Some(&first) = have.first() {
            let code = self.codec.code();
            let unit = if code.symbols().is_some() { self.codec.shard_unit() } else { rows(first) };
            let given = sources.first_len();
            if !given.is_multiple_of(unit.max(1)) {
                let what = format!("must have a multiple of {unit} bytes; got {given}");
                return Err(wrong_argument(format!("shard {first} {what}")));
            }
        }
        for (&node, given) in have.iter().zip(sources.lengths()) {
            if given != length(node) {
                let (expected, first) = (length(node), have[0]);
                return Err(wrong_argument(format!(
                    "shard {node} must have {expected} bytes, which fit shard {first}; got {given}"
                )));
            }
        }
        Ok(new_shards(py, lost.iter().map(|&node| length(node)))?)
    }

    /// Plans a computation. For a wide code this takes tenths of a second, in which other threads
    /// may run. Handlers of signals wait until it ends.
    fn prepare(&self, py: Python<'_>, have: &[usize], want: &[usize]) -> Result<paritas::Prepared> {
        for nodes in [have, want] {
            expect_nodes(self.codec.code(), nodes)?;
        }
        let ids = |nodes: &[usize]| nodes.iter().copied().map(NodeId::from).collect::<Vec<_>>();
        let (have, want) = (ids(have), ids(want));
        Ok(py.detach(|| self.codec.reconstructor(&have, &want))?)
    }
}

/// Checks a number of threads that was given.
pub fn number_of_threads(given: Option<usize>) -> Result<Option<NonZeroUsize>> {
    match given {
        Some(0) => Err(wrong_argument("threads must be at least 1; got 0")),
        given => Ok(given.and_then(NonZeroUsize::new)),
    }
}

/// Refuses an array of groups, nodes and bytes that has another number of nodes, or whose shards do
/// not have `stride` bytes.
fn expect_groups(buffer: &Bound<'_, PyAny>, nodes: usize, stride: usize) -> Result<()> {
    let Ok(shape) = buffer.getattr("shape").and_then(|shape| shape.extract::<[usize; 3]>()) else {
        return Ok(());
    };
    if shape[1] != nodes {
        let given = shape[1];
        return Err(wrong_argument(format!(
            "an array must have the shape (groups, nodes, stride), with {nodes} nodes; got {given}"
        )));
    }
    let item: usize = buffer.getattr("itemsize")?.extract()?;
    let length = shape[2].saturating_mul(item);
    if length != stride {
        let message = format!(
            "stride must be the bytes of a shard, and the array has shards of {length} bytes; got \
             {stride}"
        );
        return Err(wrong_argument(message));
    }
    Ok(())
}

/// A prepared computation of the shards of some nodes from those of other nodes.
#[pyclass(frozen, module = "paritas")]
pub struct Prepared {
    prepared: paritas::Prepared,
    /// The nodes whose shards are read, and those whose shards are computed.
    sources: Vec<usize>,
    targets: Vec<usize>,
    /// The number of all nodes, also of those that take no part.
    nodes: usize,
}

#[pymethods]
impl Prepared {
    /// Computes `targets` from `sources`: lists of buffers, or arrays with one row for each shard,
    /// in the order in which the nodes were named. Raises ParameterError if the number of shards or
    /// a length is wrong.
    fn run(
        &self,
        py: Python<'_>,
        sources: &Bound<'_, PyAny>,
        targets: &Bound<'_, PyAny>,
    ) -> Result<()> {
        let (sources, targets) = (Shards::of(sources, "sources")?, Shards::of(targets, "targets")?);
        Shards::with(&sources, &targets, |sources, targets| {
            let done = py.detach(|| self.prepared.run(sources, targets));
            done.map_err(|error| {
                let nodes = [("sources", &self.sources[..]), ("targets", &self.targets[..])];
                Failure::of_buffers(&error, &nodes)
            })
        })
    }

    /// Computes the targets of groups of shards that lie in one buffer, one group after the other:
    /// `bytearray`, or an array of the shape (groups, nodes, `stride`). Shard n of a group is that
    /// of node n, and has `stride` bytes.
    ///
    /// Raises ParameterError, and leaves the buffer as it is, if it has no whole number of groups,
    /// is read-only, or has three dimensions that are not those, or if a shard cannot have `stride`
    /// bytes.
    fn run_strided(&self, py: Python<'_>, buffer: &Bound<'_, PyAny>, stride: usize) -> Result<()> {
        expect_groups(buffer, self.nodes, stride)?;
        let groups = Shards::of_each([buffer.clone()].into_iter(), Names::Own(&["buffer"]))?;
        Shards::with(&Shards::none(), &groups, |_, groups| {
            let done = py.detach(|| self.prepared.run_strided(groups[0], stride));
            done.map_err(|error| Failure::of_named(&error, "a shard of `stride` bytes"))
        })
    }

    fn __repr__(&self) -> String {
        format!("<Prepared: sources={}, targets={}>", self.sources.len(), self.targets.len())
    }
}
