//! Tells a forked process from its parent without a system call. A system call would take a
//! twentieth of the time of a call over half a megabyte.
//!
//! A forked process has a copy of its parent's memory, but not its parent's other threads. If one
//! of them holds a lock at that moment, the lock stays locked for ever in the copy. So what is
//! locked is a value of each process ([`PerProcess`]).

#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

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

/// A value of each process, made by the first call in it.
pub(crate) struct PerProcess<T> {
    /// Null, or the value of this process, or that of the process from which it was forked.
    latest: AtomicPtr<OfProcess<T>>,
    values: PhantomData<T>,
}

struct OfProcess<T> {
    process: usize,
    value: T,
}

impl<T> PerProcess<T> {
    pub(crate) const fn new() -> Self {
        Self { latest: AtomicPtr::new(null_mut()), values: PhantomData }
    }
}

impl<T> Default for PerProcess<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Send + Sync> PerProcess<T> {
    /// Returns the value of this process. `make` makes it from that of the process from which this
    /// one was forked, if that had one.
    pub(crate) fn get(&self, make: impl Fn(Option<&T>) -> T) -> &T {
        self.of(count(), make)
    }

    fn of(&self, process: usize, make: impl Fn(Option<&T>) -> T) -> &T {
        loop {
            let found = self.latest.load(Ordering::Acquire);
            // SAFETY: it is null, or came from `Box::into_raw` below. Values are freed with `self`
            // at the earliest, which is borrowed as long as the reference lives.
            let latest = unsafe { found.as_ref() };
            if let Some(latest) = latest
                && latest.process == process
            {
                return &latest.value;
            }
            let value = make(latest.map(|parent| &parent.value));
            let made = Box::into_raw(Box::new(OfProcess { process, value }));
            match self.latest.compare_exchange(found, made, Ordering::AcqRel, Ordering::Acquire) {
                // SAFETY: it came from a box, and is freed with `self` at the earliest.
                Ok(_) => return unsafe { &(*made).value },
                // Another thread was first.
                // SAFETY: it came from a box, and no one else has it.
                Err(_) => drop(unsafe { Box::from_raw(made) }),
            }
        }
    }
}

/// Values of other processes stay: a thread that this process does not have may have been about to
/// change them.
impl<T> Drop for PerProcess<T> {
    fn drop(&mut self) {
        let latest = *self.latest.get_mut();
        // SAFETY: it is null, or came from a box, and no one else has it.
        if unsafe { latest.as_ref() }.is_some_and(|latest| latest.process == count()) {
            // SAFETY: it came from a box, and nobody borrows it any more.
            drop(unsafe { Box::from_raw(latest) });
        }
    }
}

#[cfg(all(test, unix))]
pub(crate) mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Forks processes that make a call, while another thread makes calls all the time. Returns
    /// whether all of them end.
    pub(crate) fn forked_calls_end(call: impl Fn() + Sync) -> bool {
        unsafe extern "C" {
            fn fork() -> i32;
            fn alarm(seconds: u32) -> u32;
            fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
            fn _exit(code: i32) -> !;
        }
        let child_ends = |_| {
            // SAFETY: these are the functions of POSIX. The child makes a call and ends, at the
            // latest by its alarm.
            unsafe {
                let child = fork();
                if child == 0 {
                    alarm(20);
                    call();
                    _exit(0);
                }
                let mut status = -1;
                waitpid(child, &raw mut status, 0) == child && status == 0
            }
        };
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    call();
                }
            });
            let all_end = (0..300).all(child_ends);
            is_over.store(true, Ordering::Relaxed);
            all_end
        })
    }

    #[test]
    fn a_forked_process_waits_for_no_lock_of_its_parent() {
        let numbers = PerProcess::new();
        let call = || *numbers.get(|_| Mutex::new(0_u64)).lock().unwrap() += 1;
        assert!(forked_calls_end(call));
    }

    #[test]
    fn each_process_has_a_value_made_from_that_of_its_parent() {
        let values = PerProcess::new();
        let make = |parent: Option<&Arc<u8>>| Arc::new(parent.map_or(1, |parent| **parent + 1));
        let of_parent = Arc::clone(values.of(1, make));
        assert!(Arc::ptr_eq(values.of(1, make), &of_parent));
        assert_eq!((*of_parent, **values.of(2, make)), (1, 2));
        drop(values);
        assert_eq!(Arc::strong_count(&of_parent), 2, "what is a parent's stays");
    }

    #[test]
    fn threads_that_come_first_together_share_a_value() {
        let values = PerProcess::new();
        let of = || std::ptr::from_ref(values.of(1, |_| 1)).addr();
        let seen = std::thread::scope(|scope| {
            let threads = [(); 8].map(|()| scope.spawn(of));
            threads.map(|thread| thread.join().unwrap())
        });
        assert!(seen.iter().all(|&value| value == of()));
    }
}
