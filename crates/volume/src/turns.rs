//! Turns at names. A writer that expects something of a name has the name for itself, among the
//! writers of its process, from the survey that numbers its version until its manifests are
//! written. So of several such writers at most one finds what it expects. Writers of other
//! processes know nothing of these turns.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

use crate::names::ObjectName;
use crate::protocol::Expected;

/// The names that are being written.
#[derive(Debug, Default)]
pub(crate) struct NameTurns(Mutex<HashMap<ObjectName, Arc<RwLock<()>>>>);

/// The turn of one writer, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct NameTurn<'a> {
    turns: &'a NameTurns,
    name: &'a ObjectName,
    lock: Arc<RwLock<()>>,
    held: Option<HeldTurn>,
}

#[derive(Debug)]
enum HeldTurn {
    Shared { _guard: OwnedRwLockReadGuard<()> },
    Alone { _guard: OwnedRwLockWriteGuard<()> },
}

impl NameTurns {
    /// Waits for the turn of a writer at a name: alone if it expects something, otherwise beside
    /// others that expect nothing.
    pub async fn take<'a>(&'a self, name: &'a ObjectName, expected: Expected) -> NameTurn<'a> {
        let lock = Arc::clone(self.names().entry(name.clone()).or_default());
        let mut turn = NameTurn { turns: self, name, lock: Arc::clone(&lock), held: None };
        turn.held = Some(match expected {
            Expected::Anything => HeldTurn::Shared { _guard: lock.read_owned().await },
            _ => HeldTurn::Alone { _guard: lock.write_owned().await },
        });
        turn
    }

    fn names(&self) -> std::sync::MutexGuard<'_, HashMap<ObjectName, Arc<RwLock<()>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for NameTurn<'_> {
    fn drop(&mut self) {
        self.held = None;
        let mut names = self.turns.names();
        // The list has the lock, and this turn; whoever else has it is waiting or at work.
        if Arc::strong_count(&self.lock) == 2 {
            names.remove(self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn who_expects_something_is_alone_and_nothing_is_kept() {
        let (turns, name) = (NameTurns::default(), ObjectName::new("a").unwrap());
        let other = ObjectName::new("b").unwrap();
        let first = turns.take(&name, Expected::Anything).await;
        let second = turns.take(&name, Expected::Anything).now_or_never();
        assert!(second.is_some(), "writers that expect nothing write side by side");
        let mut alone = Box::pin(turns.take(&name, Expected::Nothing));
        assert!((&mut alone).now_or_never().is_none());
        assert!(turns.take(&other, Expected::Nothing).now_or_never().is_some());
        drop((first, second));
        let alone = alone.await;
        assert!(turns.take(&name, Expected::Anything).now_or_never().is_none());
        drop(alone);
        assert!(turns.names().is_empty());
    }
}
