//! Values that are made once, without making any thread wait.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::define::made::FirstMade;
use crate::run::threads::forks;

/// Bytes that must be free before a thread is started: its stack, and the memory that it needs at
/// once. If a new thread fails to get that memory, the whole process ends.
const THREAD_ROOM: usize = 8 << 20;

/// A value that the first caller in a process makes. Until it is made, other callers go on without
/// it. So a thread never waits for another thread, and a forked process never waits for a thread
/// that only its parent has: it makes the value anew.
pub(crate) struct Claimed<T> {
    /// The process whose thread makes the value, by one more than the number of [`forks::count`].
    by: AtomicUsize,
    made: FirstMade<T>,
}

impl<T> Default for Claimed<T> {
    fn default() -> Self {
        Self { by: AtomicUsize::new(0), made: FirstMade::new() }
    }
}

impl<T> Claimed<T> {
    /// Returns the value, if it has been made.
    pub(crate) fn get(&self) -> Option<&T> {
        self.made.peek()
    }

    /// Returns the value. The first call makes it; `None` while another call is making it.
    pub(crate) fn get_or_make(&self, make: impl FnOnce() -> T) -> Option<&T> {
        if self.get().is_none() && self.claim() {
            return Some(self.made.get(make));
        }
        self.get()
    }

    /// Whether this call is the first one in its process.
    fn claim(&self) -> bool {
        let process = forks::count().wrapping_add(1);
        self.by.swap(process, Ordering::Relaxed) != process
    }
}

impl<T: Send + Sync + 'static> Claimed<T> {
    /// Lets a new thread make the value, unless it has been claimed. If a thread cannot be started,
    /// this call makes the value; if memory is short, the value is never made.
    pub(crate) fn make_aside(self: &Arc<Self>, make: impl FnOnce() -> T + Clone + Send + 'static) {
        if self.get().is_some() || !self.claim() {
            return;
        }
        let mut room = Vec::<u8>::new();
        if room.try_reserve_exact(THREAD_ROOM).is_err() {
            return;
        }
        drop(black_box(room));
        let (value, aside) = (Arc::clone(self), make.clone());
        let work = move || _ = value.made.get(aside);
        if thread::Builder::new().name("paritas-plan".to_owned()).spawn(work).is_err() {
            self.made.get(make);
        }
    }
}
