//! What mutexes hold.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Returns what a mutex holds, also after a panic of a thread that held it.
pub fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
