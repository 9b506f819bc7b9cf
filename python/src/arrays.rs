//! Arrays of numpy. Only the functions here need numpy.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Makes a new array of bytes with `rows` rows. Its content is not initialised.
pub fn empty(py: Python<'_>, rows: usize, columns: usize) -> PyResult<Bound<'_, PyAny>> {
    py.import("numpy")?.call_method1("empty", ((rows, columns), "uint8"))
}

/// Makes an array of items of the type `kind` from their bytes.
pub fn of<'py>(
    py: Python<'py>,
    rows: usize,
    columns: usize,
    content: &[u8],
    kind: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let flat = py.import("numpy")?.call_method1("frombuffer", (PyBytes::new(py, content), kind))?;
    // The memory of `bytes` is read-only; the caller may write to a copy.
    flat.call_method1("reshape", ((rows, columns),))?.call_method0("copy")
}
