//! Long codes: the inverse of a part of the matrix as factors ([`recovery`]), and the transforms by
//! which blocks are added to parity and recovered ([`program`]).

pub(crate) mod program;
pub(crate) mod recovery;
