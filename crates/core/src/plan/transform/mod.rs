//! Fourier transforms over subspaces, by which wide codes are computed in n log n operations.
//!
//! The symbols of some codes are the values of a polynomial at consecutive points
//! ([`crate::define::evaluation`]). Transforms of such codes have two forms. [`program`] is data
//! that a kernel reads: it needs no planning, has up to thousands of entries, and also serves long
//! codes. [`solve`] finds the programs that encode and that recover any losses. [`network`] writes
//! encoding as a schedule, which is proved, lowered and compiled like any other.

pub(crate) mod network;
pub(crate) mod program;
pub(crate) mod solve;
