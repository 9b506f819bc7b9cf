//! The helper pool: threads that take part in a call.
//!
//! Waking a thread takes longer than encoding half a megabyte. So a helper that is done spins for a
//! while, waiting for more work, before it goes back to sleep; calls in a burst find their helpers
//! awake. No call waits for a helper to arrive: the caller works too, and a helper that is late
//! finds the work done.
//!
//! The threads are a pool of rayon's, one fewer than processors, because the caller works too. With
//! one thread more, a thread without work would spin on the processor of a helper.
//!
//! Each process makes a pool of its own ([`PerProcess`]): a forked process has none of its parent's
//! threads.

#![allow(unsafe_code)]

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::yield_now;
use std::time::Instant;

use rayon_core::{ThreadPool, ThreadPoolBuilder};

use crate::limits::{BURST_GAP, LOOKOUT, LOOKS};
use crate::run::threads::forks::PerProcess;
use crate::run::threads::place;

/// Numbers of helpers that a call can use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WantedHelpers {
    /// Helpers wanted if they are awake.
    pub(crate) awake: usize,
    /// Helpers wanted if they have to be woken.
    pub(crate) asleep: usize,
}

impl WantedHelpers {
    /// Caps both counts at `most`.
    pub(crate) fn at_most(self, most: usize) -> Self {
        Self { awake: self.awake.min(most), asleep: self.asleep.min(most) }
    }
}

/// Identifies the thread that runs a share: 0 is the caller, helpers count from 1.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seat {
    /// Number of the seat: 0 is the caller, helpers count from 1.
    pub(crate) number: usize,
    /// Number of helpers that may join.
    pub(crate) helpers: usize,
}

/// Calls `work` once for seat 0 on this thread, and at most once for every other seat on helpers.
/// `work` must complete all the work, whichever seats are taken. When this function returns, no
/// thread is inside `work` any more. A panic on this thread is passed on; a panic on a helper ends
/// the process, because a part of the work would be missing.
pub(crate) fn with_helpers(wanted: WantedHelpers, work: &(dyn Fn(Seat) + Sync)) {
    if wanted.awake.max(wanted.asleep) == 0 {
        return work(Seat { number: 0, helpers: 0 });
    }
    HelperPool::of_this_process().run(wanted, work);
}

/// Value of `waker` while no processor is known.
const NOWHERE: usize = usize::MAX;

struct HelperPool {
    /// The threads of helpers, which are started when the first one is woken; `None` if threads
    /// cannot be started.
    threads: OnceLock<Option<ThreadPool>>,
    jobs: Mutex<Vec<Arc<HelperJob>>>,
    /// Number of jobs posted so far.
    posts: AtomicUsize,
    /// Number of helpers that are awake or waking up, and number of helpers that are awake without
    /// work.
    members: AtomicUsize,
    lookouts: AtomicUsize,
    /// Processor of the caller that has woken helpers last, or [`NOWHERE`].
    waker: AtomicUsize,
    /// End of the last call, in nanoseconds since `start`.
    start: Instant,
    last_end: AtomicU64,
}

impl HelperPool {
    fn new() -> Self {
        Self {
            threads: OnceLock::new(),
            jobs: Mutex::new(Vec::new()),
            posts: AtomicUsize::new(0),
            members: AtomicUsize::new(0),
            lookouts: AtomicUsize::new(0),
            waker: AtomicUsize::new(NOWHERE),
            start: Instant::now(),
            last_end: AtomicU64::new(0),
        }
    }

    fn of_this_process() -> &'static Self {
        static POOLS: PerProcess<HelperPool> = PerProcess::new();
        POOLS.get(|_| Self::new())
    }

    /// Implements [`with_helpers`].
    fn run(&'static self, wanted: WantedHelpers, work: &(dyn Fn(Seat) + Sync)) {
        let lookouts = self.lookouts.load(Ordering::Relaxed);
        let waking = if self.is_in_a_burst() { wanted.awake } else { wanted.asleep };
        let helpers = wanted.awake.min(lookouts).max(waking);
        let posted = (helpers > 0).then(|| self.post(work, helpers));
        self.wake(helpers.saturating_sub(lookouts));
        work(Seat { number: 0, helpers });
        drop(posted);
        self.note_end();
    }

    fn threads(&self) -> Option<&ThreadPool> {
        let begin = || {
            let count = place::processors() - 1;
            let name = |number| format!("paritas-{number}");
            let pool = ThreadPoolBuilder::new().num_threads(count).thread_name(name);
            (count > 0).then(|| pool.build().ok()).flatten()
        };
        self.threads.get_or_init(begin).as_ref()
    }

    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn note_end(&self) {
        self.last_end.store(self.now(), Ordering::Relaxed);
    }

    fn is_in_a_burst(&self) -> bool {
        let since = self.now().saturating_sub(self.last_end.load(Ordering::Relaxed));
        u128::from(since) < BURST_GAP.as_nanos()
    }

    fn jobs(&self) -> MutexGuard<'_, Vec<Arc<HelperJob>>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets helpers join `work` until the returned value is dropped.
    fn post<'a>(&'a self, work: &'a (dyn Fn(Seat) + Sync), helpers: usize) -> Posted<'a> {
        // SAFETY: only the lifetime is changed. `HelperJob::help` follows the pointer only between
        // entering and leaving the job. `Posted` does not outlive `work`; its drop closes the job
        // to new threads and waits until all have left.
        let work = unsafe {
            std::mem::transmute::<*const (dyn Fn(Seat) + Sync + 'a), *const (dyn Fn(Seat) + Sync)>(
                work,
            )
        };
        let job = Arc::new(HelperJob {
            work,
            helpers,
            seats: AtomicUsize::new(0),
            inside: AtomicUsize::new(0),
        });
        self.jobs().push(Arc::clone(&job));
        self.posts.fetch_add(1, Ordering::Release);
        Posted { pool: self, job }
    }

    /// Wakes more helpers, as long as there is a processor for each of them besides the caller's
    /// processor.
    fn wake(&'static self, helpers: usize) {
        for _ in 0..helpers {
            let Some(threads) = self.threads() else { return };
            let most = threads.current_num_threads();
            let one_more = |members| (members < most).then_some(members + 1);
            let joins = self.members.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
            if joins.is_err() {
                return;
            }
            self.waker.store(place::current().unwrap_or(NOWHERE), Ordering::Relaxed);
            threads.spawn(move || {
                self.leave_the_waker();
                self.help();
                self.members.fetch_sub(1, Ordering::Relaxed);
            });
        }
    }

    /// Moves this helper to another processor if it was woken on its caller's.
    fn leave_the_waker(&self) {
        let waker = self.waker.load(Ordering::Relaxed);
        if place::current() == Some(waker) {
            place::leave(waker);
        }
    }

    /// Body of a helper thread: does all present jobs, then the jobs that arrive while it spins.
    fn help(&self) {
        loop {
            let seen = self.posts.load(Ordering::Acquire);
            while let Some((job, seat)) = self.next_seat() {
                job.help(seat);
            }
            self.lookouts.fetch_add(1, Ordering::Relaxed);
            let has_more = self.look_out(seen);
            self.lookouts.fetch_sub(1, Ordering::Relaxed);
            if !has_more {
                return;
            }
        }
    }

    fn next_seat(&self) -> Option<(Arc<HelperJob>, Seat)> {
        self.jobs().iter().find_map(|job| job.seat().map(|seat| (Arc::clone(job), seat)))
    }

    /// Spins until there is a job later than `seen`, and returns whether one came.
    fn look_out(&self, seen: usize) -> bool {
        let start = Instant::now();
        while start.elapsed() < LOOKOUT {
            for _ in 0..LOOKS {
                if self.posts.load(Ordering::Acquire) != seen {
                    return true;
                }
                spin_loop();
            }
        }
        false
    }
}

/// Work that helpers may take part in.
struct HelperJob {
    work: *const (dyn Fn(Seat) + Sync),
    /// Number of helpers that the job has work for, and number of seats taken (more than `helpers`
    /// if some helpers came too late).
    helpers: usize,
    seats: AtomicUsize,
    /// Number of helpers inside the job; the bit [`CLOSED`] is set once the job is closed.
    inside: AtomicUsize,
}

/// The bit of `HelperJob::inside` that closes the job: threads may no longer enter.
const CLOSED: usize = 1 << (usize::BITS - 1);

// SAFETY: `work` may be called on any thread, and is called only under the rules of
// `HelperJob::help`.
unsafe impl Send for HelperJob {}
// SAFETY: as above.
unsafe impl Sync for HelperJob {}

impl HelperJob {
    /// Takes a seat, if one is left.
    fn seat(&self) -> Option<Seat> {
        let number = self.seats.fetch_add(1, Ordering::Relaxed) + 1;
        (number <= self.helpers).then_some(Seat { number, helpers: self.helpers })
    }

    /// Works from `seat`, unless the job is closed.
    fn help(&self, seat: Seat) {
        let inside = Inside::enter(&self.inside);
        if inside.is_open {
            // SAFETY: `Posted` keeps the closure behind `work` alive until this thread has left.
            unsafe { (*self.work)(seat) };
        }
    }
}

/// A thread's presence in a job, until it is dropped.
struct Inside<'a> {
    count: &'a AtomicUsize,
    is_open: bool,
}

impl<'a> Inside<'a> {
    fn enter(count: &'a AtomicUsize) -> Self {
        let is_open = count.fetch_add(1, Ordering::Acquire) & CLOSED == 0;
        Self { count, is_open }
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Release);
    }
}

/// A job that helpers can find. Dropping it, also in a panic, closes it and waits for those inside.
struct Posted<'a> {
    pool: &'a HelperPool,
    job: Arc<HelperJob>,
}

impl Drop for Posted<'_> {
    fn drop(&mut self) {
        self.pool.jobs().retain(|job| !Arc::ptr_eq(job, &self.job));
        let inside = &self.job.inside;
        inside.fetch_or(CLOSED, Ordering::AcqRel);
        for look in 1_usize.. {
            if inside.load(Ordering::Acquire) == CLOSED {
                return;
            }
            if look.is_multiple_of(LOOKS) { yield_now() } else { spin_loop() }
        }
    }
}

#[cfg(all(test, not(target_family = "wasm")))]
mod tests {
    use super::*;
    #[cfg(unix)]
    use crate::run::threads::forks::tests::forked_calls_end;

    #[test]
    fn every_task_is_done_once_however_many_helpers_join() {
        for wanted in [(0, 0), (1, 0), (1, 1), (3, 3), (50, 50)] {
            for tasks in [0, 1, 7, 1000] {
                let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
                let seen = Mutex::new(Vec::new());
                let work = |seat: Seat| {
                    seen.lock().unwrap().push(seat.number);
                    while next.fetch_add(1, Ordering::Relaxed) < tasks {
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                };
                with_helpers(WantedHelpers { awake: wanted.0, asleep: wanted.1 }, &work);
                assert_eq!(done.into_inner(), tasks);
                let mut seen = seen.into_inner().unwrap();
                seen.sort_unstable();
                assert!(seen[0] == 0 && seen.windows(2).all(|pair| pair[0] < pair[1]), "{seen:?}");
                assert!(seen.len() <= wanted.0 + 1);
            }
        }
    }

    #[test]
    fn callers_on_many_threads_do_not_mix() {
        std::thread::scope(|scope| {
            for caller in 0..8_usize {
                scope.spawn(move || {
                    for round in 0..500 {
                        let sum = AtomicUsize::new(0);
                        let left = AtomicUsize::new(20);
                        let work = |_: Seat| {
                            let take = |left: usize| left.checked_sub(1);
                            while left
                                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
                                .is_ok()
                            {
                                sum.fetch_add(caller + round, Ordering::Relaxed);
                            }
                        };
                        with_helpers(WantedHelpers { awake: 2, asleep: 2 }, &work);
                        assert_eq!(sum.into_inner(), 20 * (caller + round));
                    }
                });
            }
        });
    }

    #[test]
    fn a_panic_of_the_caller_leaves_no_one_inside() {
        let payload = std::panic::catch_unwind(|| {
            let local = vec![7_u8; 1000];
            let work = |seat: Seat| {
                assert!(local.iter().all(|&byte| byte == 7));
                assert!(seat.number != 0, "the caller gives up");
            };
            with_helpers(WantedHelpers { awake: 1, asleep: 1 }, &work);
        });
        assert!(payload.is_err());
    }

    /// Forks processes that make a call, while another thread makes calls all the time.
    #[cfg(unix)]
    #[test]
    fn a_forked_process_waits_for_no_one() {
        let call = || with_helpers(WantedHelpers { awake: 1, asleep: 1 }, &|_| ());
        assert!(forked_calls_end(call));
    }
}
