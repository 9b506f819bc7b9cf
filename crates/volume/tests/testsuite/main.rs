//! The tests of volumes from outside, in one program: linking a program for each file took half of
//! the time of a build.

mod common;
mod conformance;
mod expected;
mod failing_put;
mod faults;
mod homes;
mod names;
mod nodes;
mod nodes_http;
mod objects;
mod overview;
mod pieces;
mod promotion;
mod reencode;
mod scrub;
mod services;
mod silence;
mod status;
mod strangers;
mod uploads;
