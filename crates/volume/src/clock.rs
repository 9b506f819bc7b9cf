//! Clocks: the time of day that is stored, and the time that has passed.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

use crate::outside::time_of_day;

/// Returns the seconds since the beginning of 1970.
pub(crate) fn now() -> u64 {
    time_of_day().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// The time since a moment, by the clock that has advanced further: the system's steady clock
/// stands still while the machine is suspended, and the wall clock may be set back.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Since {
    steady: Instant,
    wall: SystemTime,
}

impl Since {
    pub fn now() -> Self {
        Self { steady: Instant::now(), wall: time_of_day() }
    }

    /// Returns the moment in seconds since the beginning of 1970.
    pub fn seconds(self) -> u64 {
        self.wall.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
    }

    /// Returns the milliseconds of the moment's second.
    pub fn milliseconds(self) -> u32 {
        self.wall.duration_since(UNIX_EPOCH).map_or(0, |since| since.subsec_millis())
    }

    pub fn elapsed(self) -> Duration {
        let by_wall = time_of_day().duration_since(self.wall).unwrap_or_default();
        self.steady.elapsed().max(by_wall)
    }

    /// Returns a moment that the wall clock puts `ago` earlier, as if the machine had been
    /// suspended since then.
    #[cfg(test)]
    pub fn suspended_for(ago: Duration) -> Self {
        Self { steady: Instant::now(), wall: SystemTime::now() - ago }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_time_of_a_suspended_machine_counts() {
        let lasts = Duration::from_secs(12 * 3600);
        let slept = Since::suspended_for(2 * lasts);
        assert!(slept.elapsed() >= 2 * lasts);
        assert!(Since::now().elapsed() < lasts);
        // If the wall clock was set back, the age is still at least what the steady clock shows.
        let later = Since { wall: SystemTime::now() + lasts, ..Since::now() };
        tokio::time::sleep(Duration::from_millis(2)).await;
        assert!(later.elapsed() >= Duration::from_millis(2));
    }
}
