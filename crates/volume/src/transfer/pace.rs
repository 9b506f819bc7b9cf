//! How long a node usually takes, and when it is late.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;
use tokio::time::Instant;

use crate::transfer::Hedge;

/// Number of requests from which a node's usual time is taken. Before, it is given [`UNKNOWN`].
const ENOUGH: u64 = 8;

/// The time that a node gets while little is known about it.
const UNKNOWN: Duration = Duration::from_secs(1);

/// Number of late answers in a row after which a node is asked last.
const UNRELIABLE: u32 = 2;

/// How long a node that was late is asked last. After that it is tried again, because only a trial
/// shows that it has recovered.
const LATE_FOR: Duration = Duration::from_secs(60);

/// The times that one node took to answer requests.
#[derive(Debug)]
pub(crate) struct Pace(Mutex<PaceState>);

#[derive(Debug)]
struct PaceState {
    /// Microseconds.
    times: Histogram<u32>,
    /// Number of requests in a row that were late or failed.
    late: u32,
    /// When the last of them was.
    last_late: Option<Instant>,
}

impl Default for Pace {
    fn default() -> Self {
        // From a microsecond to an hour, with two digits. These bounds are legal.
        let times = Histogram::new_with_bounds(1, 3_600_000_000, 2);
        let times = times.unwrap_or_else(|_| unreachable!("the bounds are legal"));
        Self(Mutex::new(PaceState { times, late: 0, last_late: None }))
    }
}

impl Pace {
    /// Notes that a request was answered after `time`.
    pub fn answered(&self, time: Duration) {
        let mut state = self.lock();
        state.times.saturating_record(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
        state.late = 0;
    }

    /// Notes that a request failed, or took longer than it was given.
    pub fn late(&self) {
        let mut state = self.lock();
        state.late = state.late.saturating_add(1);
        state.last_late = Some(Instant::now());
    }

    /// Returns the time that the node is given for a request.
    pub fn patience(&self, hedge: &Hedge) -> Duration {
        let state = self.lock();
        if state.times.len() < ENOUGH {
            return UNKNOWN.max(hedge.at_least);
        }
        let usual = Duration::from_micros(state.times.value_at_quantile(hedge.quantile));
        (usual + usual / 2).max(hedge.at_least)
    }

    /// Whether the node has been late too often to be asked first.
    pub fn is_unreliable(&self) -> bool {
        self.lateness() > 0
    }

    /// Returns how often in a row the node was late or failed, or 0 if that may be chance or is
    /// long ago.
    pub fn lateness(&self) -> u32 {
        let state = self.lock();
        let is_recent = state.last_late.is_some_and(|last| last.elapsed() < LATE_FOR);
        if state.late >= UNRELIABLE && is_recent { state.late } else { 0 }
    }

    fn lock(&self) -> MutexGuard<'_, PaceState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
