//! Paritas for Python: the module `paritas._paritas`, which the package `paritas` shows.
//!
//! Every function that computes or reads uses the caller's memory in place, releases the
//! interpreter while it works, and is safe to call from several threads at once. The memory that
//! Python objects share with the codes is handled in `buffers`; the only code that the compiler
//! cannot check is there.

#![deny(unsafe_code)]

mod arrays;
#[expect(
    unsafe_code,
    reason = "the memory of Python objects becomes slices here, and nowhere else"
)]
mod buffers;
mod code;
mod codec;
mod command;
mod errors;
mod files;
mod lt;
mod protections;
mod results;
mod signals;
mod sources;
mod volume;

/// The compiled part of the package `paritas`.
#[pyo3::pymodule(gil_used = false)]
mod _paritas {
    #[pymodule_export]
    use crate::code::{Code, Schedule};
    #[pymodule_export]
    use crate::codec::{Codec, Prepared};
    #[pymodule_export]
    use crate::command::run_command;
    #[pymodule_export]
    use crate::files::{decode_file, encode_file, repair_files, verify_files};
    #[pymodule_export]
    use crate::lt::{LtBlocks, LtDecoder, LtEncoder};
    #[pymodule_export]
    use crate::protections::{info, protect, repair, update, verify};
    #[pymodule_export]
    use crate::volume::Volume;
}
