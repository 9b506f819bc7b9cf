//! Long codes: the inverse of a part of the matrix as factors ([`recovery`]).

pub(crate) mod recovery;
