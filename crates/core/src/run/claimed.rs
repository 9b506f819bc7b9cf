//! Values that are made once, while nobody waits.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;

/// Bytes that must be free before a thread is started: its stack, and what it needs at once. A
/// thread that finds no memory for its beginnings ends the whole process.
const THREAD_ROOM: usize = 8 << 20;

/// A value that the first who wants it makes. Others do without it until it is made, so nobody
/// waits: no thread for another one, and no forked process for a thread that only its parent has.
pub(crate) struct Claimed<T> {
    claimed: AtomicBool,
    made: OnceLock<T>,
}

impl<T> Default for Claimed<T> {
    fn default() -> Self {
        Self { claimed: AtomicBool::new(false), made: OnceLock::new() }
    }
}

impl<T> Claimed<T> {
    /// Returns the value, if it has been made.
    pub(crate) fn get(&self) -> Option<&T> {
        self.made.get()
    }

    /// Returns the value, which this call makes if it is the first; `None` while another call makes
    /// it.
    pub(crate) fn get_or_make(&self, make: impl FnOnce() -> T) -> Option<&T> {
        if self.get().is_none() && !self.claimed.swap(true, Ordering::Relaxed) {
            return Some(self.made.get_or_init(make));
        }
        self.get()
    }
}

impl<T: Send + Sync + 'static> Claimed<T> {
    /// Has a thread of its own make the value, unless it has been claimed. Where no thread can be
    /// started, the call makes it; where memory is short, nobody does.
    pub(crate) fn make_aside(self: &Arc<Self>, make: impl FnOnce() -> T + Clone + Send + 'static) {
        if self.claimed.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut room = Vec::<u8>::new();
        if room.try_reserve_exact(THREAD_ROOM).is_err() {
            return;
        }
        drop(black_box(room));
        let (value, aside) = (Arc::clone(self), make.clone());
        let work = move || {
            value.made.get_or_init(aside);
        };
        if thread::Builder::new().name("paritas-plan".to_owned()).spawn(work).is_err() {
            self.made.get_or_init(make);
        }
    }
}
