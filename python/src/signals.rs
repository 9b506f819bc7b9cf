//! Work that ends when a signal handler of Python raises an exception.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use paritas_shards::Progress;
use pyo3::prelude::*;

use crate::errors::Result;

/// Interval at which signal handlers may run.
const QUESTION: Duration = Duration::from_millis(100);

/// Runs work without the interpreter, until it ends or a signal handler raises an exception, such
/// as the handler of Ctrl-C. Python runs handlers on one thread only, so the caller's thread waits
/// for signals, and another one does the work; after an exception, all threads end that tell
/// progress.
///
/// No thread but the caller's asks for the interpreter, which would end it with the program.
pub fn run<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(Progress<'_>) -> Result<T> + Send,
) -> Result<T> {
    let is_given_up = AtomicBool::new(false);
    let progress = |_| {
        if is_given_up.load(Ordering::Relaxed) {
            // The work ends in the same way as when a thread panics: files that it had begun to
            // write are removed.
            resume_unwind(Box::new(()));
        }
    };
    let work = || catch_unwind(AssertUnwindSafe(|| work(&progress)));
    let (line, ended) = channel();
    let ended = Mutex::new(ended);
    let wait = || ended.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(QUESTION);
    thread::scope(|scope| {
        thread::Builder::new().spawn_scoped(scope, move || line.send(work()))?;
        let mut raised = None;
        let ended = loop {
            match py.detach(wait) {
                Ok(ended) => break ended,
                Err(RecvTimeoutError::Disconnected) => break Err(Box::new(())),
                Err(RecvTimeoutError::Timeout) if raised.is_some() => {}
                Err(RecvTimeoutError::Timeout) => raised = py.check_signals().err(),
            }
            is_given_up.store(raised.is_some(), Ordering::Relaxed);
        };
        match (ended, raised) {
            (_, Some(error)) => Err(error.into()),
            (Ok(result), None) => result,
            (Err(panic), None) => resume_unwind(panic),
        }
    })
}
