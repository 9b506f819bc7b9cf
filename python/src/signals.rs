//! Work that ends when a signal handler of Python raises an exception.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use paritas_shards::Progress;
use pyo3::prelude::*;

use crate::errors::Result;

/// Runs work without the interpreter, until it ends or a signal handler raises an exception, such
/// as the handler of Ctrl-C. Python runs handlers on one thread only, so only the caller's thread
/// asks for them; after an exception, all threads end.
pub fn run<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(Progress<'_>) -> Result<T> + Send,
) -> Result<T> {
    let (caller, raised) = (thread::current().id(), Mutex::new(None));
    let has_ended = AtomicBool::new(false);
    let progress = |_| {
        if thread::current().id() == caller
            && !has_ended.load(Ordering::Relaxed)
            && let Err(error) = Python::attach(|py| py.check_signals())
        {
            *raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            has_ended.store(true, Ordering::Relaxed);
        }
        if has_ended.load(Ordering::Relaxed) {
            // The work ends in the same way as when a thread panics: files that it had begun to
            // write are removed.
            resume_unwind(Box::new(()));
        }
    };
    let ended = py.detach(|| catch_unwind(AssertUnwindSafe(|| work(&progress))));
    match (ended, raised.into_inner().unwrap_or_else(PoisonError::into_inner)) {
        (_, Some(error)) => Err(error.into()),
        (Ok(result), None) => result,
        (Err(panic), None) => resume_unwind(panic),
    }
}
