//! What shard files, protection and volumes share.
//!
//! [`place`] is about where files lie: their names, identity, attributes and owners, the room on
//! disks, and what operating systems and file systems do differently. [`memory`] says how much of
//! it a process may use. Other crates of Paritas use both, so that each of these questions has one
//! answer. Programs that store data use `paritas-shards`, `paritas-protect` or `paritas-volume`
//! instead.

pub mod memory;
pub mod place;
