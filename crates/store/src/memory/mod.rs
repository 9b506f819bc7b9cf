//! The memory that this process may use: what the machine has free, what its control groups allow
//! (containers, services, batch jobs), and what its own limits allow.
//!
//! Linux kills a process that exceeds its control group's limit, without a message. So defaults
//! follow these numbers; a value that the user sets is used as it is. On macOS only the limits of
//! the process are known, and on Windows none.

#[cfg(target_os = "linux")]
mod linux;

use std::sync::OnceLock;

/// Returns the memory that a job takes by default, in bytes: `most`, or a quarter of what this
/// process may use if that is less. The other three quarters are for everything else: other jobs,
/// the program itself, and the system's cache.
pub fn by_default(most: u64) -> u64 {
    usable().map_or(most, |usable| most.min(usable / 4))
}

/// Returns the number of bytes that this process may use, if the system tells. It is asked once:
/// the answer takes a tenth of a millisecond or more, and limits hardly ever change.
pub fn usable() -> Option<u64> {
    static USABLE: OnceLock<Option<u64>> = OnceLock::new();
    *USABLE.get_or_init(|| [in_system(), in_process()].into_iter().flatten().min())
}

#[cfg(target_os = "linux")]
fn in_system() -> Option<u64> {
    linux::usable(std::path::Path::new("/"))
}

#[cfg(not(target_os = "linux"))]
fn in_system() -> Option<u64> {
    None
}

/// Returns the limit that the process itself has (`ulimit -v` and `-d`).
#[cfg(unix)]
fn in_process() -> Option<u64> {
    use rustix::process::{Resource, getrlimit};
    [Resource::As, Resource::Data].into_iter().filter_map(|what| getrlimit(what).current).min()
}

#[cfg(not(unix))]
fn in_process() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_is_at_most_a_quarter_of_what_may_be_used() {
        assert!(usable().is_none_or(|usable| by_default(u64::MAX) <= usable));
        assert_eq!(by_default(1), 1);
    }
}
