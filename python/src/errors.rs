//! Errors of Paritas as Python's exceptions.
//!
//! The classes are in `paritas/errors.py`. Each exception has the attribute `kind`, the name of the
//! kind of error in Rust.

use std::fmt::Debug;
use std::io;
use std::path::Path;

use paritas_shards::ErrorKind;
use pyo3::PyErrArguments;
use pyo3::exceptions::{PyKeyboardInterrupt, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyString;
use pyo3::{PyTypeInfo, import_exception};

import_exception!(paritas.errors, ParitasError);
import_exception!(paritas.errors, ParameterError);
import_exception!(paritas.errors, LossError);
import_exception!(paritas.errors, NotFoundError);
import_exception!(paritas.errors, StorageError);
import_exception!(paritas.errors, ExistsError);

/// The result of a function that may fail with an error of Paritas.
pub type Result<T> = std::result::Result<T, Failure>;

/// An error that becomes an exception. It can be made on any thread, but the exception itself is
/// made on a thread that has the interpreter: others must not ask for it while the program ends.
pub struct Failure {
    error: PyErr,
    /// The name of the kind of error, unless the exception is one of Python's own.
    kind: Option<String>,
    /// The number of the system's error.
    number: Option<i32>,
    /// The argument of the call that is wrong.
    argument: Option<String>,
}

impl From<Failure> for PyErr {
    fn from(Failure { error, kind, number, argument }: Failure) -> Self {
        Python::attach(|py| {
            let exception = error.value(py);
            if let Some(kind) = kind
                && let Err(other) = exception.setattr("kind", kind)
            {
                return other;
            }
            // An exception that does not accept the number or the note is raised without it.
            if let Some(number) = number {
                let _ = exception.setattr("errno", number);
            }
            if let Some(argument) = argument {
                let _ = error.add_note(py, format!("while processing '{argument}'"));
            }
            error
        })
    }
}

impl Failure {
    /// Adds the number of the system's error, if there is one, as `errno`.
    fn with_number(self, number: Option<i32>) -> Self {
        Self { number, ..self }
    }

    /// Adds a note that names the wrong argument of a call, as PyO3 does for arguments of a wrong
    /// type.
    pub fn about(self, argument: impl Into<String>) -> Self {
        Self { argument: Some(argument.into()), ..self }
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Self { error, kind: None, number: None, argument: None }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        PyErr::from(error).into()
    }
}

impl From<paritas::Error> for Failure {
    fn from(error: paritas::Error) -> Self {
        Self::of_codec(&error, error.to_string())
    }
}

impl Failure {
    /// Makes the exception for an error of a codec that has this text.
    fn of_codec(error: &paritas::Error, text: String) -> Self {
        use paritas::ErrorKind::{Buffers, Damaged, Length, NotEnough, Parameters, Spec};
        let kind = error.kind();
        match kind {
            Spec | Parameters | Buffers | Length => raise::<ParameterError>(kind, text),
            NotEnough | Damaged => raise::<LossError>(kind, text),
            _ => raise::<ParitasError>(kind, text),
        }
    }

    /// Makes the exception for an error of a codec. Where the error names a buffer by its node, the
    /// exception calls it `name`.
    pub fn of_named(error: &paritas::Error, name: &str) -> Self {
        let text = error.to_string();
        let node = error.node().map(|node| format!("buffer {node} "));
        let rest = node.and_then(|node| text.strip_prefix(&node).map(str::to_owned));
        Self::of_codec(error, rest.map_or(text, |rest| format!("{name} {rest}")))
    }

    /// Makes the exception for an error of a codec. Where the error names a buffer by its node, the
    /// exception names the argument of the call, and the place in it; `arguments` has the nodes of
    /// the buffers of each argument.
    pub fn of_buffers(error: &paritas::Error, arguments: &[(&str, &[usize])]) -> Self {
        let text = error.to_string();
        let renamed = error.node().and_then(|node| {
            let rest = text.strip_prefix(&format!("buffer {node} "))?;
            arguments.iter().find_map(|(name, nodes)| {
                let at = nodes.iter().position(|&given| given == node)?;
                Some(format!("{name}[{at}] {rest}"))
            })
        });
        Self::of_codec(error, renamed.unwrap_or(text))
    }
}

impl From<paritas_shards::Error> for Failure {
    fn from(error: paritas_shards::Error) -> Self {
        use ErrorKind::{
            Ambiguous, Busy, Cancelled, DigestMismatch, Exists, Io, NotFound, NotRecognised,
            Parameters, Refused, TooFewNodes, TooFewShards, TooManyChanges, Unsupported,
        };
        let (kind, text) = (error.kind(), text_of(&error));
        match kind {
            Parameters | Ambiguous | Unsupported => raise::<ParameterError>(kind, text),
            NotFound | NotRecognised => raise::<NotFoundError>(kind, text),
            TooFewShards | DigestMismatch => raise::<LossError>(kind, text),
            Io if error.io_kind() == Some(io::ErrorKind::NotFound) => {
                raise::<NotFoundError>(kind, text).with_number(number_of(&error))
            }
            Exists => raise::<ExistsError>(kind, text).with_number(number_of(&error)),
            Io | Busy | Refused | TooFewNodes | TooManyChanges => {
                raise::<StorageError>(kind, text).with_number(number_of(&error))
            }
            Cancelled => PyKeyboardInterrupt::new_err(text).into(),
            _ => raise::<ParitasError>(kind, text),
        }
    }
}

/// Returns an error's message, in which fields of jobs have the names of arguments here.
fn text_of(error: &paritas_shards::Error) -> String {
    let text = without_numbers(&error.to_string());
    match error.fields().contains(&"excludes") {
        true => text.replace("`excludes`", "`exclude`"),
        false => text,
    }
}

/// Leaves the numbers out that Rust shows with errors of the system: exceptions have `errno`.
fn without_numbers(text: &str) -> String {
    let mut pieces = text.split(" (os error ");
    let mut kept = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let rest = piece.trim_start_matches(|it: char| it.is_ascii_digit());
        match rest.strip_prefix(')') {
            Some(rest) => kept += rest,
            None => kept.extend([" (os error ", piece]),
        }
    }
    kept
}

/// Returns the number of the system's error that is among the causes of an error.
fn number_of(error: &(dyn std::error::Error + 'static)) -> Option<i32> {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let of_system = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref().and_then(io::Error::raw_os_error)
    };
    causes.into_iter().find_map(of_system)
}

/// Makes an exception for a wrong argument.
pub fn wrong_argument(message: impl Into<String>) -> Failure {
    raise::<ParameterError>(paritas::ErrorKind::Parameters, message.into())
}

/// Makes an exception for an argument of a wrong type.
pub fn wrong_type(what: &str, given: &Bound<'_, PyAny>) -> PyErr {
    let type_name = given.get_type().name().map(|name| name.to_string());
    PyTypeError::new_err(format!("{what}; got {}", type_name.unwrap_or_default()))
}

/// Says `what` is needed, in place of an error of types of a conversion. What else it has raised is
/// not about types, such as an interrupt, and stays.
pub fn of_types(error: PyErr, what: &str, given: &Bound<'_, PyAny>) -> PyErr {
    match error.is_instance_of::<PyTypeError>(given.py()) {
        true => wrong_type(what, given),
        false => error,
    }
}

/// Returns the text of an argument, which must be UTF-8; `what` names it.
pub fn text(given: &Bound<'_, PyString>, what: &str) -> Result<String> {
    match given.to_str() {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => {
            Err(wrong_argument(format!("{what} must be text in UTF-8; got {}", given.repr()?)))
        }
    }
}

/// Makes the exception for a file that the system refuses, with `errno` and `filename` as those of
/// Python's own `open`.
pub fn refused(path: &Path, error: &io::Error) -> Failure {
    let text = without_numbers(&error.to_string());
    let arguments = (error.raw_os_error().unwrap_or(0), text, path.as_os_str().to_owned());
    match error.kind() {
        io::ErrorKind::NotFound => raise::<NotFoundError>(ErrorKind::Io, arguments),
        // The system was not asked, as for names with a NUL.
        io::ErrorKind::InvalidInput if error.raw_os_error().is_none() => {
            wrong_argument(format!("{}: {error}", path.display()))
        }
        _ => raise::<StorageError>(ErrorKind::Io, arguments),
    }
}

/// Does all of the work, even if some of it fails.
///
/// # Errors
/// The first one.
pub fn each<I: IntoIterator, T>(
    items: I,
    work: impl FnMut(I::Item) -> Result<T>,
) -> Result<Vec<T>> {
    let done: Vec<Result<T>> = items.into_iter().map(work).collect();
    done.into_iter().collect()
}

/// Makes an exception of a class from the arguments of its constructor.
fn raise<E: PyTypeInfo>(kind: impl Debug, arguments: impl PyErrArguments + 'static) -> Failure {
    let failure = Failure::from(PyErr::new::<E, _>(arguments));
    Failure { kind: Some(format!("{kind:?}")), ..failure }
}
