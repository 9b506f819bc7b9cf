//! What shard files, protection and volumes share.
//!
//! [`object`] has the bytes of a shard and their arithmetic. [`place`] is about where files lie:
//! their names, identity, attributes and owners, the room on disks, and what operating systems and
//! file systems do differently. [`staging`] publishes a set of new files under their names: all of
//! them, or none. [`error`] has the one error, [`shown`] says how names are shown in messages,
//! [`progress`] how work tells what it has done, [`state`] has the states of what is kept, and
//! [`memory`] says how much memory a process may use.
//!
//! Other crates of Paritas use them, so that each of these questions has one answer. Programs that
//! store data use `paritas-shards`, `paritas-protect` or `paritas-volume` instead.

pub mod error;
pub mod memory;
pub mod object;
pub mod place;
pub mod progress;
mod setters;
pub mod shown;
pub mod staging;
pub mod state;
