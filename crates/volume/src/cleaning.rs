//! Removing what work leaves that is given up: unfinished files on servers, heartbeats, claims.
//!
//! When a future is dropped, its nodes can no longer be asked from within it. So whoever may leave
//! something holds an [`Unfinished`] from the beginning. When it is dropped before its end, it
//! hands over what is still to be done, as a task of the runtime. A runtime that is stopped drops
//! its tasks, so [`crate::Runner`] waits for these first.

use std::future::Future;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::{Handle, Id};

/// Interval at which it is checked whether all is removed.
const LOOK: Duration = Duration::from_millis(2);

/// The runtime of each [`Unfinished`] that exists.
static UNFINISHED: Mutex<Vec<Id>> = Mutex::new(Vec::new());

/// Stands for something that must be removed if the work at hand is given up.
#[derive(Debug)]
pub(crate) struct Unfinished(Option<Handle>);

impl Unfinished {
    /// Begins something on the runtime at hand.
    pub fn begin() -> Self {
        let runtime = Handle::try_current().ok();
        all().extend(runtime.as_ref().map(Handle::id));
        Self(runtime)
    }

    /// Hands over what is still to be done. It runs to its end, though nobody waits for it.
    pub fn remove(&mut self, removal: impl Future<Output = ()> + Send + 'static) {
        let Some(runtime) = self.0.take() else { return };
        let rest = Self(Some(runtime.clone()));
        runtime.spawn(async move {
            removal.await;
            drop(rest);
        });
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let Some(runtime) = &self.0 else { return };
        let mut all = all();
        if let Some(at) = all.iter().position(|id| *id == runtime.id()) {
            all.swap_remove(at);
        }
    }
}

/// Returns once nothing unfinished is left on the runtime at hand.
pub(crate) async fn all_removed() {
    let runtime = Handle::current().id();
    while all().contains(&runtime) {
        tokio::time::sleep(LOOK).await;
    }
}

fn all() -> MutexGuard<'static, Vec<Id>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}
