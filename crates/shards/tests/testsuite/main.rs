//! The tests of shard files from outside, in one program: linking a program for each file took
//! half of the time of a build.

mod blocks;
mod common;
mod damage;
mod deep;
mod few_reads;
#[cfg(unix)]
mod folders;
mod foreign;
mod lt;
#[cfg(unix)]
mod places;
mod property;
mod races;
mod reader;
mod rebalance;
mod roundtrip;
mod stages;
#[cfg(unix)]
mod vectors;
