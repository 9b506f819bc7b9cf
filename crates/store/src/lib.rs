//! What shard files, protection and volumes share.
//!
//! [`place`] is about where files lie: their names, identity, attributes and owners, the room on
//! disks, and what operating systems and file systems do differently. Other crates of Paritas use
//! it, so that each of these questions has one answer. Programs that store data use
//! `paritas-shards`, `paritas-protect` or `paritas-volume` instead.

pub mod place;
