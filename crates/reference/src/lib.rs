//! The second opinion: erasure codes over GF(2^w), written from their definitions.
//!
//! Paritas proper turns a code into a bit matrix, the matrix into an XOR schedule, and the schedule
//! into machine code. Every one of those steps can be wrong, and a test that shares a step with the
//! code it tests can be wrong in the same way. This crate shares none of them: it has no bit
//! matrix, no schedule, no table and no dependency, and it never imports the main crate. It takes a
//! shard apart into field elements, does with them what the textbook says, and puts them together
//! again. Every fast path is compared with it. It is also the place to start for a reader who wants
//! to know what an erasure code *is* before seeing how one is made fast.
//!
//! Read it in this order:
//!
//! 1. [`field`]: addition, multiplication and inversion of single symbols.
//! 2. [`matrix`]: the code over symbols. Encoding is a matrix product, reconstruction is Gaussian
//!    elimination. Cauchy matrices are here too.
//! 3. [`packets`] and [`words`]: the two ways in which the bytes of a shard form symbols.
//! 4. [`coefficients`] and [`families`]: the matrices of the families in the packet layout, and of
//!    those in the word layout of ISA-L, Backblaze, zfec, Linux RAID-6 and Jerasure.
//! 5. [`dpg`]: delayed parity generation, for groups of stripes whose parities are stored in two
//!    stages.
//! 6. [`array`](mod@array) and [`density`]: codes of rows and diagonals, which need no field at
//!    all.
//!
//! The crate is for development only. A call that breaks a documented condition (shards of unequal
//! length, a polynomial of the wrong degree) panics: that is a bug in the caller's test. Losing too
//! many shards is not a bug, and is reported as [`matrix::NotEnough`].

#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod array;
pub mod coefficients;
pub mod density;
pub mod dpg;
pub mod families;
pub mod field;
pub mod matrix;
pub mod packets;
pub mod words;
