//! Long codes: the inverse of a part of the matrix as factors. The transforms by which blocks are
//! added to parity and recovered are in [`crate::plan::transform::program`].

pub(crate) mod recovery;
