//! Moving the blocks of one object to nodes and back.
//!
//! [`send`] encodes on threads of its own while tasks write what is ready, one task for each shard.
//! [`receive`] reads from the number of nodes that are needed, asks others where one is late, and
//! decodes; [`local`] does the same with fewer threads where all nodes are folders of this machine.
//! Blocks move in *transmission units*: adjacent blocks of one shard that together have about
//! [`Settings::unit`] bytes.

pub(crate) mod check;
mod local;
mod pace;
mod race;
mod rateless;
mod read;
pub(crate) mod rebuild;
pub(crate) mod receive;
pub(crate) mod send;
#[cfg(test)]
mod tests;

pub(crate) use pace::Pace;

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use paritas_shards::{Digest, ObjectId};
use paritas_store::error::Result;
use paritas_store::object::layout::ObjectLayout;

use crate::node::Node;

/// A file on a node.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub node: Arc<dyn Node>,
    /// How fast the node is.
    pub pace: Arc<Pace>,
    pub path: String,
}

impl Place {
    /// Reads a range of the file.
    pub async fn read(&self, range: Range<u64>) -> Result<Bytes> {
        self.node.read(&self.path, Some(range)).await
    }
}

/// An object in shards.
#[derive(Debug, Clone)]
pub(crate) struct ShardedObject {
    pub id: ObjectId,
    pub layout: ObjectLayout,
    /// Number of bytes.
    pub length: u64,
    pub digest: Digest,
}

impl ShardedObject {
    /// Returns the number of bytes of the file of a part.
    pub fn file_bytes(&self, part: usize) -> Option<u64> {
        self.layout.file_bytes(part, self.length)
    }
}

/// How blocks are moved.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// Wanted number of bytes of one request.
    pub unit: usize,
    /// Most bytes of memory for blocks that are on their way.
    pub memory: usize,
    /// Number of threads that encode or decode.
    pub threads: usize,
    /// When a second request is sent.
    pub hedge: Hedge,
}

impl Settings {
    /// Returns the number of threads that may each hold a segment, beside `others` segments: the
    /// number that the memory has room for, but at least one.
    pub fn threads_for(&self, layout: &ObjectLayout, others: usize) -> usize {
        let room = self.memory / layout.segment_memory().max(1);
        self.threads.min(room.saturating_sub(others)).max(1)
    }
}

/// When another node is asked because one is late.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Hedge {
    /// Fraction of a node's requests, from 0 to 1, that usually take less time than the node is
    /// given.
    pub quantile: f64,
    /// The least time that a node is given for a request.
    pub at_least: std::time::Duration,
    /// Largest number of additional requests, as a fraction of all requests.
    pub most: f64,
}

impl Default for Settings {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Self { unit: 1 << 20, memory: 256 << 20, threads, hedge: Hedge::default() }
    }
}

impl Default for Hedge {
    fn default() -> Self {
        let at_least = std::time::Duration::from_millis(20);
        Self { quantile: 0.95, at_least, most: 0.15 }
    }
}
