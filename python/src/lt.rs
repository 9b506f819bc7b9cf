//! LT codes: an object becomes n blocks, and slightly more than k of them, whichever they are,
//! suffice to rebuild it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use paritas::lt::{LtBlock, LtCode, LtInfo, LtOptions};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyBytes;

use crate::buffers::{NewBytes, Source};
use crate::code::CodeOrSpec;
use crate::errors::Result;

/// Makes the coded blocks of objects.
#[pyclass(frozen, module = "paritas")]
pub struct LtEncoder(paritas::lt::LtEncoder);

#[pymethods]
impl LtEncoder {
    /// Creates an encoder of a code such as `lt:k=1024,n=2048`.
    #[new]
    fn new(py: Python<'_>, code: CodeOrSpec) -> Result<Self> {
        let spec = code.spec().parse()?;
        let new = || paritas::lt::LtEncoder::new(LtCode::new(&spec)?, LtOptions::default());
        Ok(Self(py.detach(new)?))
    }

    /// Returns all n blocks of an object. Raises ParameterError if it is empty.
    fn encode(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> Result<LtBlocks> {
        let source = Source::of(data)?;
        let (info, blocks) = py.detach(|| self.0.encode(source.as_ref()))?;
        Ok(LtBlocks { info: info.to_bytes()?, blocks })
    }

    fn __repr__(&self) -> String {
        format!("LtEncoder({:?})", self.0.code().spec().to_string())
    }
}

/// The coded blocks of one object.
#[pyclass(frozen, sequence, module = "paritas")]
pub struct LtBlocks {
    info: Vec<u8>,
    blocks: paritas::lt::LtBlocks,
}

#[pymethods]
impl LtBlocks {
    /// The information that a decoder needs: the code, lengths and checksums. Keep it with the
    /// blocks.
    #[getter]
    fn info<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.info)
    }

    /// The length of each block in bytes.
    #[getter]
    fn block_bytes(&self) -> usize {
        self.blocks.block_bytes()
    }

    fn __len__(&self) -> usize {
        self.blocks.count()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, number: isize) -> Result<Bound<'py, PyBytes>> {
        let count = self.blocks.count();
        let at = if number < 0 { number + count.cast_signed() } else { number };
        let block = usize::try_from(at).ok().and_then(|at| self.blocks.get(at));
        let missing = || PyIndexError::new_err(format!("there are {count} blocks; got {number}"));
        Ok(PyBytes::new(py, block.ok_or_else(missing)?))
    }

    fn __repr__(&self) -> String {
        format!("<LtBlocks: {} blocks of {} bytes>", self.blocks.count(), self.block_bytes())
    }
}

/// Rebuilds an object from blocks in any order.
#[pyclass(frozen, module = "paritas")]
pub struct LtDecoder {
    decoder: Mutex<paritas::lt::LtDecoder<Source>>,
    /// The length of the object in bytes.
    length: usize,
}

#[pymethods]
impl LtDecoder {
    /// Creates a decoder from `LtBlocks.info`.
    #[new]
    fn new(py: Python<'_>, info: &Bound<'_, PyAny>) -> Result<Self> {
        let info = LtInfo::from_bytes(Source::of(info)?.as_ref())?;
        // No memory has as many bytes as cannot be counted.
        let length = usize::try_from(info.object_bytes()).unwrap_or(usize::MAX);
        let decoder = py.detach(|| paritas::lt::LtDecoder::new(&info, LtOptions::default()))?;
        Ok(Self { decoder: Mutex::new(decoder), length })
    }

    /// Takes block `number`, from 0 to n - 1. Its memory is not copied and must not change until
    /// the decoder is gone. Returns whether the object can be computed now. Raises ParameterError
    /// if the block does not exist or its length is wrong, and LossError if its checksum is wrong;
    /// the decoder then stays as it was.
    fn push(&self, py: Python<'_>, number: usize, block: &Bound<'_, PyAny>) -> Result<bool> {
        let block = LtBlock { number, bytes: Source::of(block)? };
        Ok(py.detach(|| self.lock_detached().push(block))?)
    }

    /// Whether the object can be computed.
    #[getter]
    fn is_ready(&self, py: Python<'_>) -> bool {
        self.lock(py).is_ready()
    }

    /// The number of different blocks so far.
    #[getter]
    fn received(&self, py: Python<'_>) -> usize {
        self.lock(py).received()
    }

    /// Computes the object. Raises LossError if the blocks do not suffice yet.
    fn reconstruct<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        if !self.is_ready(py) {
            // This tells how many more are needed.
            let object = py.detach(|| self.lock_detached().reconstruct())?;
            return Ok(PyBytes::new(py, &object));
        }
        let mut object = NewBytes::zeroed(py, self.length)?;
        let memory = object.memory();
        py.detach(|| self.lock_detached().reconstruct_into(memory))?;
        Ok(object.finish())
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let decoder = self.lock(py);
        let is_ready = if decoder.is_ready() { "True" } else { "False" };
        format!("<LtDecoder: received={}, is_ready={is_ready}>", decoder.received())
    }
}

impl LtDecoder {
    /// Waits until no other thread uses the decoder. Other threads of the interpreter run
    /// meanwhile.
    fn lock(&self, py: Python<'_>) -> MutexGuard<'_, paritas::lt::LtDecoder<Source>> {
        self.decoder.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`Self::lock`], for a thread that has released the interpreter.
    fn lock_detached(&self) -> MutexGuard<'_, paritas::lt::LtDecoder<Source>> {
        self.decoder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
