//! The functions of Jerasure 2.0 (`jerasure.h`, `reed_sol.h`, `cauchy.h`, `liberation.h` and the
//! arithmetic of `galois.h`), with the same bytes, on the kernels of Paritas.
//!
//! Callers pass matrices, bit matrices and schedules as arrays of `int` in their own memory. The
//! program for one is found by its whole content, so they may change at any time. What a function
//! returns comes from `malloc`, and callers free it.
//!
//! A schedule is run as the linear map that it computes, not operation by operation. The schedules
//! in a cache (`jerasure_generate_schedule_cache`) number devices as encoding does.
//!
//! Where Jerasure prints a message and ends the program (sizes that are no multiple of the packets,
//! a word width that it lacks), so does this library. A `gf_t` of gf-complete is taken and given
//! where it stands for a field of polynomials (`fields.rs`).

#![allow(unsafe_code)]
#![allow(non_snake_case)] // the library has the name of its model

mod calls;
mod encode;
mod export;
mod families;
mod fields;
mod galois;
mod linear;
mod regions;
mod schedules;
