//! The tests of the core from outside, in one program: linking a program for each file took half
//! of the time of a build.

mod common;
mod counts;
mod direct;
mod dpg;
mod erasures;
mod errata;
mod jerasure;
mod kernels;
mod layers;
mod lengths;
mod long;
mod lt;
mod lt_code;
mod lt_codec;
mod lt_paper;
mod matrix;
mod optimiser;
mod planning;
mod printed;
mod services;
mod stored;
mod vectors;
mod word_vectors;
mod words;
