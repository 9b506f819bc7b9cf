//! The functions of Jerasure 2.0 (`jerasure.h`, `reed_sol.h`, `cauchy.h`, `liberation.h` and the
//! arithmetic of `galois.h`). They return the same bytes and run on the kernels of Paritas.
//!
//! Callers pass matrices, bit matrices and schedules as arrays of `int` in their own memory. The
//! library finds the program for one by its whole content, so callers may change it at any time.
//! Functions return memory from `malloc`, which callers free.
//!
//! A schedule is run as the linear map that it computes, not operation by operation (except by
//! `jerasure_do_scheduled_operations`). The schedules in a cache
//! (`jerasure_generate_schedule_cache`) number devices in the order of encoding: data, then coding.
//!
//! Like Jerasure, this library prints a message and ends the process when an argument is wrong: a
//! size that is not a multiple of the packets, or a word width that does not exist. Functions
//! accept and return a `gf_t` of gf-complete if its elements are polynomials (`fields.rs`).

#![allow(unsafe_code)]
#![allow(non_snake_case)] // the crate has the name of the original library

mod calls;
mod encode;
mod export;
mod families;
mod fields;
mod galois;
mod linear;
mod regions;
mod schedules;
