//! The erasure-code functions of Intel's ISA-L (`erasure_code.h` and `gf_vect_mul.h` of version
//! 2.30), with the same bytes, on the kernels of Paritas.
//!
//! A *table* is what `ec_init_tables` makes of a matrix over GF(2^8): 32 bytes for each
//! coefficient, its products with the low and with the high half bytes. Callers make it once and
//! pass it with every call. The program for it is found by its whole content ([`tables`]), so a
//! table may be rewritten at any time.
//!
//! The functions for one instruction set (`…_sse`, `…_avx512`) do what the general ones do: the
//! best kernel of this machine runs. Lengths may be of any size. The functions are as safe as their
//! models: pointers must be valid for the lengths given.
//!
//! Nothing unwinds into C: what panics in planning is computed by tables instead, and a fault in a
//! kernel ends the process.

#![allow(unsafe_code)]

mod exports;
mod field;
mod tables;
