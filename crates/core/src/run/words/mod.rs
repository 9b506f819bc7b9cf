//! Word kernels: sums of multiples of words of GF(2^w).
//!
//! Codes in the word layout are other people's: a byte (or a word of 16 or 32 bits) of a shard is a
//! field symbol, and parity bytes are sums of multiples of data bytes. Nothing can be
//! scheduled there; what counts is how fast a register full of words is multiplied by a constant
//! (`multiplier` for bytes, `planes` for wider words), and that each input is read once for as many
//! outputs as registers can hold sums of (`products`). P and Q of RAID-6 need no multiplication at
//! all (`horner`).
//!
//! An instruction set is a thin facade: it says how it maps bytes, and enables its features round the
//! one algorithm. [`select`] knows which of them this processor has.
//!
//! Loops over vectors count indices. What closures and iterators become may be a function of its
//! own, which lacks the features that vector instructions need and passes vectors through memory;
//! this was seen to cost a factor of 3 to 20.

#![allow(unsafe_code)]
#![allow(clippy::needless_range_loop, reason = "see above")]

mod access;
mod engine;
mod horner;
mod multiplier;
mod planes;
mod products;
pub(crate) mod program;
pub mod select;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod gfni;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;
#[cfg(target_arch = "x86_64")]
mod ssse3;
