//! The command from end to end: the real program runs, and what it prints, leaves and returns is
//! compared. The tests are one program, which is linked once and uses all processors to its end.
//! Tests that need a process of their own stand beside it.

#[path = "../common/mod.rs"]
#[macro_use]
mod common;

mod attributes;
mod container;
mod folders;
mod forbidden;
mod from_disk;
mod interface;
mod kill;
mod leftovers;
mod losses_and_packets;
mod lt;
mod matrix;
mod promote;
mod protect;
mod races;
mod reports;
mod scarce;
mod serve;
mod small_disk;
mod tune;
#[cfg(feature = "volume")]
mod volume;
