//! The inputs of a client from outside: the time of day, random numbers, the number of its process,
//! and threads for work that blocks. All of them pass through this file, so that a simulation
//! (`simulation`) can replace them by values from a seed.
//!
//! Elapsed time comes from tokio, whose clock a test can pause. Two things do not pass through this
//! file: the threads that read folders of this machine (`transfer/local.rs`, `node/folder.rs`) and
//! the services. A simulated node needs neither of them.

use std::time::SystemTime;

use paritas_shards::ObjectId;
use paritas_store::error::{Error, ErrorKind, Result};
use tokio::sync::mpsc::Receiver;

/// Returns the time of day by this client's clock.
pub(crate) fn time_of_day() -> SystemTime {
    #[cfg(any(test, feature = "simulation"))]
    if let Some(time) = simulated::with(|outside| outside.time_of_day()) {
        return time;
    }
    SystemTime::now()
}

/// Returns a random number.
///
/// # Errors
/// If the system has no random numbers ([`ErrorKind::Io`]).
pub(crate) fn random() -> Result<u64> {
    #[cfg(any(test, feature = "simulation"))]
    if let Some(number) = simulated::with(|outside| outside.random()) {
        return Ok(number);
    }
    getrandom::u64()
        .map_err(|error| Error::new(ErrorKind::Io, "cannot draw a random number").because(error))
}

/// Draws the id of a new object.
///
/// # Errors
/// As [`random`].
pub(crate) fn new_object() -> Result<ObjectId> {
    let [high, low] = [random()?, random()?].map(u64::to_be_bytes);
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&high);
    bytes[8..].copy_from_slice(&low);
    Ok(ObjectId::new(bytes))
}

/// Runs blocking work on a thread for such work. `doing` names the work in the error.
///
/// # Errors
/// If the work panicked ([`ErrorKind::Internal`]).
pub(crate) async fn block<R: Send + 'static>(
    doing: &'static str,
    work: impl FnOnce() -> R + Send + 'static,
) -> Result<R> {
    #[cfg(any(test, feature = "simulation"))]
    if is_simulated() {
        return crate::simulation::block(doing, work).await;
    }
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Error::internal(doing, error))
}

/// Takes the next message from a line, in a thread that may wait for it.
pub(crate) fn take<T>(line: &mut Receiver<T>) -> Option<T> {
    #[cfg(any(test, feature = "simulation"))]
    if let Some(taken) = crate::simulation::take(line) {
        return taken;
    }
    line.blocking_recv()
}

/// Whether the clients of this thread are simulated. They have no process of their own, and leave
/// nothing on this machine.
pub(crate) fn is_simulated() -> bool {
    #[cfg(any(test, feature = "simulation"))]
    return simulated::with(|_| ()).is_some();
    #[cfg(not(any(test, feature = "simulation")))]
    false
}

/// The outside inputs of the simulated clients of a thread.
#[cfg(any(test, feature = "simulation"))]
pub(crate) mod simulated {
    use std::cell::RefCell;
    use std::sync::{Arc, Mutex, PoisonError};
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};
    use tokio::time::Instant;

    thread_local! {
        static OUTSIDE: RefCell<Option<SharedOutside>> = const { RefCell::new(None) };
    }

    /// The outside inputs of a thread, which threads at work for its clients have, too.
    #[derive(Clone)]
    pub(crate) struct SharedOutside(Arc<Mutex<Outside>>);

    impl SharedOutside {
        /// Makes these the outside inputs of this thread.
        pub fn take_over(self) {
            OUTSIDE.set(Some(self));
        }
    }

    /// Returns the outside inputs of this thread, for another one.
    ///
    /// # Panics
    /// If the clients of this thread are not simulated.
    pub(crate) fn share() -> SharedOutside {
        OUTSIDE.with_borrow(Clone::clone).expect("simulated clients")
    }

    /// Seconds from the beginning of 1970 to that of a simulation.
    const BEGINNING: u64 = 1_800_000_000;

    pub(crate) struct Outside {
        random: Xoshiro256PlusPlus,
        begun: Instant,
        /// Seconds that the clock of the client at work is ahead of the true time.
        ahead: i64,
    }

    impl Outside {
        pub(super) fn random(&mut self) -> u64 {
            self.random.next_u64()
        }

        pub(super) fn time_of_day(&self) -> SystemTime {
            let seconds = BEGINNING.saturating_add_signed(self.ahead);
            UNIX_EPOCH + Duration::from_secs(seconds) + self.begun.elapsed()
        }
    }

    pub(super) fn with<R>(ask: impl FnOnce(&mut Outside) -> R) -> Option<R> {
        let outside = OUTSIDE.with_borrow(Clone::clone)?;
        let mut outside = outside.0.lock().unwrap_or_else(PoisonError::into_inner);
        Some(ask(&mut outside))
    }

    /// Simulates the outside inputs for all clients of this thread, until this is dropped. It must
    /// be created on the runtime whose clock counts.
    #[derive(Debug)]
    pub struct Simulated(());

    impl Simulated {
        /// Begins with a seed.
        #[must_use]
        pub fn begin(seed: u64) -> Self {
            let random = Xoshiro256PlusPlus::seed_from_u64(seed);
            let outside = Outside { random, begun: Instant::now(), ahead: 0 };
            SharedOutside(Arc::new(Mutex::new(outside))).take_over();
            Self(())
        }
    }

    impl Drop for Simulated {
        fn drop(&mut self) {
            OUTSIDE.set(None);
        }
    }

    /// Runs `work` for a client whose clock is `ahead` seconds ahead of the true time.
    pub(crate) fn by_clock<R>(ahead: i64, work: impl FnOnce() -> R) -> R {
        let before = with(|outside| std::mem::replace(&mut outside.ahead, ahead)).unwrap_or(0);
        let done = work();
        with(|outside| outside.ahead = before);
        done
    }
}
