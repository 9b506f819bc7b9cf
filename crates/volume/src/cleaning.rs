//! Removing what work leaves that is given up: unfinished files, heartbeats, claims.
//!
//! When a future is dropped, its nodes can no longer be asked from within it. So whoever may leave
//! something holds an [`Unfinished`] from the beginning. When it is dropped before its end, it
//! hands over what is still to be done, as a task of the runtime. A runtime that is stopped drops
//! its tasks, so [`crate::Runner`] waits for these first.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::{Handle, Id};
use tokio::sync::watch;

/// Interval at which it is checked whether all is removed.
const LOOK: Duration = Duration::from_millis(2);

/// Each [`Unfinished`] that exists.
static UNFINISHED: Mutex<Vec<UnfinishedEntry>> = Mutex::new(Vec::new());

struct UnfinishedEntry {
    number: u64,
    runtime: Id,
    /// Whether the node is lost on which something is unfinished, if it is on one node.
    is_lost: Option<watch::Receiver<bool>>,
}

impl UnfinishedEntry {
    /// Whether there is somebody who could remove it.
    fn is_removable(&self) -> bool {
        !self.is_lost.as_ref().is_some_and(|is_lost| *is_lost.borrow())
    }
}

/// Stands for something that must be removed if the work at hand is given up.
#[derive(Debug)]
pub(crate) struct Unfinished {
    number: u64,
    runtime: Option<Handle>,
}

impl Unfinished {
    /// Begins something on the runtime at hand.
    pub fn begin() -> Self {
        Self::begin_with(None)
    }

    /// Begins something on one node. While the node is lost, nobody waits for its end.
    pub fn begin_at(is_lost: watch::Receiver<bool>) -> Self {
        Self::begin_with(Some(is_lost))
    }

    fn begin_with(is_lost: Option<watch::Receiver<bool>>) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let runtime = Handle::try_current().ok();
        all().extend(runtime.as_ref().map(|runtime| UnfinishedEntry {
            number,
            runtime: runtime.id(),
            is_lost,
        }));
        Self { number, runtime }
    }

    /// Hands over what is still to be done. It runs to its end, though nobody waits for it.
    pub fn remove(&mut self, removal: impl Future<Output = ()> + Send + 'static) {
        let Some(runtime) = self.runtime.take() else { return };
        let rest = Self { number: self.number, runtime: Some(runtime.clone()) };
        runtime.spawn(async move {
            removal.await;
            drop(rest);
        });
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if self.runtime.is_none() {
            return;
        }
        let mut all = all();
        if let Some(at) = all.iter().position(|entry| entry.number == self.number) {
            all.swap_remove(at);
        }
    }
}

/// Returns once nothing unfinished is left on the runtime at hand, but on nodes that are lost.
pub(crate) async fn all_removed() {
    let runtime = Handle::current().id();
    while all().iter().any(|entry| entry.runtime == runtime && entry.is_removable()) {
        tokio::time::sleep(LOOK).await;
    }
}

fn all() -> MutexGuard<'static, Vec<UnfinishedEntry>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}
