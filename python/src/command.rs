//! The command `paritas`, which `paritas/__main__.py` starts.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs the command with its arguments, the name of the program first. Returns the exit code. The
/// process must run only this command, because it sets signal handlers that stay.
#[pyfunction]
pub fn run_command(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| paritas_cli::run(arguments))
}
