//! Times as Python has them.

use paritas_shards::Timestamp;

/// Returns a time in seconds since 1970.
pub fn seconds(time: Timestamp) -> f64 {
    time.seconds as f64 + f64::from(time.nanoseconds) / 1e9
}
