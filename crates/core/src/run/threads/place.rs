//! The processors that threads run on.
//!
//! A helper that is woken on the processor of its caller does not help: the two take turns. On a
//! machine with two processors, Linux sometimes wakes a helper there again and again, although the
//! other processor is idle; the process then uses one processor. So a helper that finds itself on
//! its caller's processor moves to another one, where the next wake-up finds it.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};

#[cfg(target_os = "linux")]
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// Returns the number of processors that this process may use.
pub(super) fn processors() -> usize {
    // A lock might be held for ever in a forked process, so there is none.
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    match COUNT.load(Ordering::Relaxed) {
        0 => {
            let count = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
            COUNT.store(count, Ordering::Relaxed);
            count
        }
        count => count,
    }
}

/// Returns the number of the processor on which this thread runs; `None` if the system does not
/// report it.
#[cfg(target_os = "linux")]
pub(super) fn current() -> Option<usize> {
    Some(sched_getcpu())
}

/// Moves this thread away from processor `cpu`, if it may run on another one. The set of processors
/// on which it may run stays the same.
#[cfg(target_os = "linux")]
pub(super) fn leave(cpu: usize) {
    let Ok(allowed) = sched_getaffinity(None) else { return };
    let mut others = allowed;
    if cpu < CpuSet::MAX_CPU {
        others.unset(cpu);
    }
    if others.count() > 0 && sched_setaffinity(None, &others).is_ok() {
        // This set was allowed a moment ago. If it is no longer allowed, the thread stays where it
        // is.
        let _ = sched_setaffinity(None, &allowed);
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn current() -> Option<usize> {
    None
}

#[cfg(not(target_os = "linux"))]
pub(super) fn leave(_cpu: usize) {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_leaves_a_processor_and_may_return() {
        let allowed = sched_getaffinity(None).unwrap();
        let moves = || {
            let before = sched_getcpu();
            leave(before);
            assert_eq!(sched_getaffinity(None).unwrap(), allowed);
            sched_getcpu() != before
        };
        // The system may move it back at any moment.
        assert!(allowed.count() == 1 || (0..100).any(|_| moves()));
    }

    #[test]
    fn a_thread_with_one_processor_stays() {
        std::thread::spawn(|| {
            let here = sched_getcpu();
            let mut one = CpuSet::new();
            one.set(here);
            if sched_setaffinity(None, &one).is_ok() {
                leave(here);
                assert_eq!(sched_getaffinity(None).unwrap(), one);
            }
        })
        .join()
        .unwrap();
    }
}
