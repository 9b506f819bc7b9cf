//! Timing on machines that are not quiet.
//!
//! The speed of a processor changes from one millisecond to the next: a neighbour shares the core,
//! or vectors of 64 bytes lower the frequency. A speed that is measured alone depends on that
//! moment as much as on the code. So code is measured in [`Pairs`]: one [`sample`] of it and one
//! sample of its competitor, back to back. Both samples meet the machine in the same state, and
//! only their ratio is used.
//!
//! The places of buffers decide how well caches work, so [`Shard`] and [`ShardMemory`] provide
//! memory at chosen places.

mod memory;
mod pairs;

use std::time::Instant;

pub use memory::{Shard, ShardMemory};
pub use pairs::{PairVerdict, Pairs, Ratio, Rounds, SecondsSpread, Side};

/// Shortest time of a sample, in seconds. A pair takes two samples and at most two runs to warm up,
/// each shorter than a sample, so the samples of a pair lie within a millisecond. Reading the clock
/// takes some 30 nanoseconds, which is negligible in 250 microseconds.
pub const SAMPLE_SECONDS: f64 = 0.000_25;

/// Largest number of runs in a batch, relative to all runs before it.
const GROWTH: f64 = 8.0;

/// Returns the seconds that one run of `run` takes: the mean over the runs that fit into
/// [`SAMPLE_SECONDS`].
///
/// One run before them is not counted, because earlier work has left other data in the caches. A
/// run that takes longer than a sample is the sample itself: it has warmed the caches for most of
/// its time.
///
/// # Errors
/// If `run` fails; the first error is returned.
pub fn sample<E>(mut run: impl FnMut() -> Result<(), E>) -> Result<f64, E> {
    let first = seconds_of(1, &mut run)?;
    if first >= SAMPLE_SECONDS {
        return Ok(first);
    }
    let (mut runs, mut seconds, mut batch) = (0_u64, 0.0, 1_u64);
    while seconds < SAMPLE_SECONDS {
        seconds += seconds_of(batch, &mut run)?;
        runs += batch;
        let missing = (SAMPLE_SECONDS - seconds) / seconds.max(1e-9);
        batch = (runs as f64 * missing.clamp(0.0, GROWTH)).ceil().max(1.0) as u64;
    }
    Ok(seconds / runs as f64)
}

/// Returns the seconds that `count` runs take.
fn seconds_of<E>(count: u64, run: &mut impl FnMut() -> Result<(), E>) -> Result<f64, E> {
    let start = Instant::now();
    for _ in 0..count {
        run()?;
    }
    Ok(start.elapsed().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Checks that the result is the time of one run, however many runs a sample takes.
    #[test]
    fn samples_are_of_one_run() {
        let mut runs = 0;
        let seconds = sample(|| {
            runs += 1;
            std::thread::sleep(Duration::from_micros(50));
            Ok::<(), ()>(())
        });
        assert!(seconds.unwrap() >= 0.000_05);
        // One run, if the system lets it sleep as long as a whole sample.
        assert!((1..=6).contains(&runs), "{runs} runs of 50 microseconds and more");
    }

    #[test]
    fn a_long_run_is_its_own_sample() {
        let mut runs = 0;
        let seconds = sample(|| {
            runs += 1;
            std::thread::sleep(Duration::from_millis(1));
            Ok::<(), ()>(())
        });
        assert!(runs == 1 && seconds.unwrap() >= 0.001);
    }

    #[test]
    fn errors_end_a_sample() {
        assert_eq!(sample(|| Err(3)), Err(3));
        let mut runs = 0;
        let fails_later = sample(|| {
            runs += 1;
            if runs < 4 { Ok(()) } else { Err(runs) }
        });
        assert_eq!(fails_later, Err(4));
    }
}
