//! The tests of protection from outside, in one program: linking a program for each file took half
//! of the time of a build.
#![cfg(unix)]

mod changes;
mod common;
mod disks;
mod killed;
mod mixtures;
mod mounts;
mod people;
mod readable;
mod whole;
