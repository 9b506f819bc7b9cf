//! What all results have in Python: a text that shows what they hold, and equality by it.

use pyo3::prelude::*;
use pyo3::types::PyType;

/// Gives result types `__repr__` and `__eq__`.
macro_rules! results {
    ($($kind:ident),+) => {$(
        #[pymethods]
        impl $kind {
            fn __repr__(result: &Bound<'_, Self>) -> PyResult<String> {
                $crate::results::shown(result.as_any())
            }

            fn __eq__(result: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
                $crate::results::are_equal(result.as_any(), other)
            }
        }
    )+};
}
pub(crate) use results;

/// Returns the names of what results of a type hold.
fn names(kind: &Bound<'_, PyType>) -> PyResult<Vec<String>> {
    let names: Vec<String> = kind.dir()?.extract()?;
    Ok(names.into_iter().filter(|name| !name.starts_with('_')).collect())
}

/// Returns the type of a result, and everything that it holds by name.
pub fn shown(result: &Bound<'_, PyAny>) -> PyResult<String> {
    let kind = result.get_type();
    let held = names(&kind)?.into_iter().map(|name| {
        let value = result.getattr(&*name)?.repr()?;
        Ok(format!("{name}={value}"))
    });
    Ok(format!("<{}: {}>", kind.name()?, held.collect::<PyResult<Vec<_>>>()?.join(", ")))
}

/// Whether two results have one type and hold the same.
pub fn are_equal(result: &Bound<'_, PyAny>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
    let kind = result.get_type();
    if !other.get_type().is(&kind) {
        return Ok(false);
    }
    for name in names(&kind)? {
        if !result.getattr(&*name)?.eq(other.getattr(&*name)?)? {
            return Ok(false);
        }
    }
    Ok(true)
}
