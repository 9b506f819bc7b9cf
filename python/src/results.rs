//! Results, which Python gets as objects of the classes in `paritas/results.py`.

use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The fields of a class of results, by name.
pub trait ResultFields<'py>:
    IntoPyObject<'py, Target = PyDict, Output = Bound<'py, PyDict>, Error = PyErr>
{
    /// The name of the class.
    const CLASS: &'static str;
}

/// A result with these fields.
pub struct ResultObject<T>(pub T);

impl<'py, T: ResultFields<'py>> IntoPyObject<'py> for ResultObject<T> {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        let fields = self.0.into_pyobject(py)?;
        py.import("paritas.results")?.getattr(T::CLASS)?.call((), Some(&fields))
    }
}

/// Makes types the fields of classes with their names.
macro_rules! results {
    ($($kind:ident),+) => {$(
        impl $crate::results::ResultFields<'_> for $kind {
            const CLASS: &'static str = stringify!($kind);
        }
    )+};
}
pub(crate) use results;
