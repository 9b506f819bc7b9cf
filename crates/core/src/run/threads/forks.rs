//! Tells a forked process from its parent without a system call. A system call would take a
//! twentieth of the time of a call over half a megabyte.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Number of forks since [`count`] was first called, in this process and its ancestors.
static FORKS: AtomicUsize = AtomicUsize::new(0);

/// Returns a number that differs between a process and one that is forked from it.
pub(crate) fn count() -> usize {
    static IS_WATCHED: AtomicBool = AtomicBool::new(false);
    // Two threads that call this first at the same time both register the handler. Each fork then
    // counts twice, which still tells processes apart.
    if !IS_WATCHED.load(Ordering::Acquire) {
        watch();
        IS_WATCHED.store(true, Ordering::Release);
    }
    FORKS.load(Ordering::Relaxed)
}

/// Asks the system to count the forks. If it lacks the memory for that, a forked process is taken
/// for its parent.
#[cfg(unix)]
fn watch() {
    unsafe extern "C" fn count_one() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }

    type Handler = Option<unsafe extern "C" fn()>;
    unsafe extern "C" {
        fn pthread_atfork(before: Handler, in_parent: Handler, in_child: Handler) -> i32;
    }
    // SAFETY: this is the function of POSIX. The handler only adds to an atomic number, which is
    // allowed in a forked process. The handler stays loaded as long as the program runs; if it
    // belongs to a library that is unloaded, the system removes it.
    unsafe { pthread_atfork(None, None, Some(count_one)) };
}

/// Does nothing: other systems have no forks.
#[cfg(not(unix))]
fn watch() {}
