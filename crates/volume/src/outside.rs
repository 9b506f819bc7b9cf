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

/// Returns the time of day by this client's clock.
pub(crate) fn time_of_day() -> SystemTime {
    #[cfg(test)]
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
    #[cfg(test)]
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
    #[cfg(test)]
    if simulated::with(|_| ()).is_some() {
        return Ok(work());
    }
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Error::internal(doing, error))
}

/// Whether the clients of this thread are simulated. They have no process of their own, and leave
/// nothing on this machine.
pub(crate) fn is_simulated() -> bool {
    #[cfg(test)]
    return simulated::with(|_| ()).is_some();
    #[cfg(not(test))]
    false
}

/// The outside inputs of the simulated clients of a thread.
#[cfg(test)]
pub(crate) mod simulated {
    use std::cell::RefCell;
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};
    use tokio::time::Instant;

    thread_local! {
        static OUTSIDE: RefCell<Option<Outside>> = const { RefCell::new(None) };
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
        OUTSIDE.with_borrow_mut(|outside| outside.as_mut().map(ask))
    }

    /// Simulates the outside inputs for all clients of this thread, until this is dropped. It must
    /// be created on the runtime whose clock counts.
    pub(crate) struct Simulated(());

    impl Simulated {
        pub fn begin(seed: u64) -> Self {
            let random = Xoshiro256PlusPlus::seed_from_u64(seed);
            OUTSIDE.set(Some(Outside { random, begun: Instant::now(), ahead: 0 }));
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
