//! Arrays of numpy. Only the functions here need numpy.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Makes a new array of bytes with `rows` rows. Its content is not initialised.
pub fn empty(py: Python<'_>, rows: usize, columns: usize) -> PyResult<Bound<'_, PyAny>> {
    py.import("numpy")?.call_method1("empty", ((rows, columns), "uint8"))
}

/// Makes an array of bytes.
pub fn of_bytes<'py>(
    py: Python<'py>,
    rows: usize,
    columns: usize,
    content: &[u8],
) -> PyResult<Bound<'py, PyAny>> {
    of(py, rows, columns, content, "uint8")
}

/// Makes an array of whole numbers.
pub fn of_numbers<'py>(
    py: Python<'py>,
    rows: usize,
    columns: usize,
    content: &[i64],
) -> PyResult<Bound<'py, PyAny>> {
    let bytes: Vec<u8> = content.iter().flat_map(|number| number.to_le_bytes()).collect();
    of(py, rows, columns, &bytes, "<i8")
}

fn of<'py>(
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
