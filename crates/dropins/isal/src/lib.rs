//! The erasure-code functions of Intel's ISA-L (`erasure_code.h` and `gf_vect_mul.h` of versions
//! 2.30 and 2.31). They return the same bytes and run on the kernels of Paritas.
//!
//! A *table* is the output of `ec_init_tables` for a matrix over GF(2^8). It has 32 bytes for each
//! coefficient: the coefficient's products with the 16 values of the low half of a byte, then with
//! those of the high half. Callers make a table once and pass it with every call. The library finds
//! the program for a table by the table's whole content ([`tables`]), so a caller may rewrite it at
//! any time.
//!
//! The functions for one instruction set (`…_sse`, `…_avx512`) do the same as the general ones: all
//! run the best kernel of this machine. They accept any length, except that `gf_vect_mul` takes
//! only multiples of 32 bytes. As in ISA-L, pointers must be valid for the lengths given.
//!
//! No panic unwinds into C. If planning a program panics, the call is computed without a program; a
//! panic while a program runs aborts the process.

#![allow(unsafe_code)]

mod exports;
mod field;
mod tables;
