//! Counting the calls and bytes that go to a node and come from it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use paritas_store::error::Result;

use super::{Meter, Metered, Node, NodeCall};

/// A node whose calls are counted.
pub type Counted = Metered<Counters>;

/// Counts calls by kind. Several nodes may share one.
#[derive(Debug, Default)]
pub struct Counters(Mutex<BTreeMap<NodeCall, Tally>>);

/// The number of calls of one kind, and the number of bytes that they moved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of calls.
    pub calls: u64,
    /// Number of bytes of files. Names and what protocols add are not counted.
    pub bytes: u64,
}

impl Metered<Counters> {
    /// Counts the calls of a node with counters of its own.
    pub fn of(inner: Arc<dyn Node>) -> Self {
        Self::new(inner, Arc::default())
    }
}

impl Counters {
    /// Returns the counts of one kind of call.
    pub fn of(&self, call: NodeCall) -> Tally {
        self.lock().get(&call).copied().unwrap_or_default()
    }

    /// Returns the number of bytes that were read.
    pub fn bytes_read(&self) -> u64 {
        self.of(NodeCall::Read).bytes
    }

    /// Returns the number of bytes that were written.
    pub fn bytes_written(&self) -> u64 {
        self.of(NodeCall::Write).bytes + self.of(NodeCall::Piece).bytes
    }

    /// Sets all counts to zero and returns their earlier values.
    pub fn take(&self) -> BTreeMap<NodeCall, Tally> {
        std::mem::take(&mut self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<NodeCall, Tally>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Meter for Counters {
    type Guard = ();

    async fn begin(&self, call: NodeCall, _path: &str) -> Result<()> {
        self.lock().entry(call).or_default().calls += 1;
        Ok(())
    }

    async fn carry(&self, call: NodeCall, bytes: u64) {
        self.lock().entry(call).or_default().bytes += bytes;
    }
}
