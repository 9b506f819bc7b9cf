//! Removing what abandoned work leaves behind: unfinished files, heartbeats, claims.
//!
//! Once a future is dropped, it can no longer send requests to nodes. So work that may leave
//! something behind holds an [`Unfinished`] from the beginning. If the work is dropped before its
//! end, it hands over the remaining removal as a task of the runtime. A runtime that is stopped
//! drops its tasks, so [`crate::Runner`] waits for these first.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures::future::{pending, select_all};
use tokio::runtime::{Handle, Id};
use tokio::sync::{Notify, watch};

/// Signals that something was removed.
static REMOVED: Notify = Notify::const_new();

/// All existing [`Unfinished`] values.
static UNFINISHED: Mutex<Vec<UnfinishedEntry>> = Mutex::new(Vec::new());

struct UnfinishedEntry {
    number: u64,
    runtime: Id,
    /// Whether the node is lost that has the unfinished work; `None` if the work is not on a single
    /// node.
    is_lost: Option<watch::Receiver<bool>>,
}

impl UnfinishedEntry {
    /// Whether the node can be asked to remove it.
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
    /// Begins work on the current runtime.
    pub fn begin() -> Self {
        Self::begin_with(None)
    }

    /// Begins work on one node. While the node is lost, nobody waits for the work to end.
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

    /// Hands over the removal that is still to be done. It runs to its end without being awaited.
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
        drop(all);
        REMOVED.notify_waiters();
    }
}

/// Returns once all unfinished work of the current runtime is removed, except work on nodes that
/// are lost.
pub(crate) async fn all_removed() {
    let runtime = Handle::current().id();
    loop {
        // A removal from here on is noticed, even if it comes before the wait begins.
        let removed = REMOVED.notified();
        let Some(losses) = losses(runtime) else { return };
        let lost = losses.into_iter().map(|loss| Box::pin(next_change(loss)));
        let lost = select_all(lost.chain([Box::pin(next_change(None))]));
        tokio::select! {
            () = removed => {}
            _ = lost => {}
        }
    }
}

/// Returns, for each piece of unfinished work on a runtime, the receiver that tells whether its
/// node is lost. Returns `None` if there is no unfinished work that could be removed.
fn losses(runtime: Id) -> Option<Vec<Option<watch::Receiver<bool>>>> {
    let all = all();
    let left = all.iter().filter(|entry| entry.runtime == runtime && entry.is_removable());
    let losses: Vec<_> = left.map(|entry| entry.is_lost.clone()).collect();
    (!losses.is_empty()).then_some(losses)
}

/// Returns once a node is lost or found again; never if there is none.
async fn next_change(mut loss: Option<watch::Receiver<bool>>) {
    if let Some(loss) = &mut loss
        && loss.changed().await.is_ok()
    {
        return;
    }
    pending().await
}

fn all() -> MutexGuard<'static, Vec<UnfinishedEntry>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}
