//! Paritas for C.
//!
//! Every exported function is a thin shell: it turns pointers into references and slices
//! ([`memory`], [`handle`]), calls the Rust libraries, and turns errors and panics into a status
//! and a message ([`status`]). The header `include/paritas.h` is made from these files by cbindgen;
//! its introduction stands in `cbindgen.toml`.
//!
//! `unsafe` is what this crate is for, so it is allowed here. The contract of every function is the
//! header's: pointers are null, or valid as the function's description says.

#![allow(unsafe_code)]
#![allow(non_camel_case_types)] // types have the names that they have in C

mod codec;
mod files;
mod handle;
mod lt;
mod matrix;
mod memory;
mod objects;
mod prepared;
mod schedule;
mod status;
#[cfg(feature = "volume")]
mod volumes;
