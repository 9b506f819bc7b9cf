//! The WHAT layer: fields, bit matrices, codes and their names.
//!
//! Nothing here knows how a code is computed or run; `plan` and `run` depend on this module and
//! never the other way round.

pub mod bitmatrix;
mod bound;
pub mod builder;
pub mod cauchy;
pub mod cells;
pub mod code;
pub mod erasure;
pub(crate) mod evaluation;
pub mod families;
pub mod field;
pub(crate) mod logarithms;
pub(crate) mod long;
pub mod lt;
pub(crate) mod made;
pub mod matrix;
pub(crate) mod ones;
pub mod pin;
pub(crate) mod points;
pub mod spec;
pub mod stages;
pub(crate) mod subspace;
pub mod symbols;
pub(crate) mod tower;
