//! Threads: how the work of a call is divided.
//!
//! A call's work can be split in four ways (Jugan, *Multi-threaded erasure coding in Jerasure*): by
//! stripe, by node that is computed, by columns of the packets, or by packet rows. By stripe, every
//! thread runs the same program over a part of each buffer, whatever the number of threads, and
//! these parts are disjoint. In the other ways every thread has a program of its own, over whole
//! buffers. By node and by row, all threads read all sources, and each thread repeats the XORs that
//! the programs could share. In the word layout a column is a range of bytes of every packet, so
//! all threads run the same program over it.

pub(crate) mod forks;
pub(crate) mod helpers;
mod place;

use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::{Error, Result};
use crate::limits::{BYTES_A_STEP, BYTES_A_THREAD, BYTES_TO_WAKE, STEPS_A_SHARE};
use crate::run::threads::helpers::{Seat, WantedHelpers, with_helpers};

/// How a call's work is split over threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Split {
    /// Every thread takes some of the stripes.
    #[default]
    Stripe,
    /// Every thread computes some of the nodes.
    Node,
    /// Every thread takes some bytes of every packet, in whole cache lines.
    Columns,
    /// Every thread computes some rows of every node. Codecs refuse it in the word layout, which
    /// has no rows.
    Rows,
}

impl Split {
    /// All ways to split.
    pub const ALL: [Self; 4] = [Self::Stripe, Self::Node, Self::Columns, Self::Rows];

    /// Name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stripe => "stripe",
            Self::Node => "node",
            Self::Columns => "columns",
            Self::Rows => "rows",
        }
    }
}

impl std::fmt::Display for Split {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Split {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|split| split.name() == text);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Error::parameters(format!("there is no split `{text}`; there are {names}"))
        })
    }
}

/// Largest number of threads of a call, and smallest number of bytes of buffers for each.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Threads {
    /// Largest number of threads; `None` means as many as the machine has processors.
    pub(crate) most: Option<NonZeroUsize>,
    /// Bytes of buffers for each thread in a burst of calls. A thread that must be woken for a
    /// single call should have up to [`WAKING`] times this number.
    pub(crate) bytes_each: usize,
}

/// Factor on the bytes for each thread of a call outside a burst, because that call must wake the
/// thread. The result is capped at [`BYTES_TO_WAKE`].
const WAKING: usize = BYTES_TO_WAKE / BYTES_A_THREAD;

impl Threads {
    /// Number of helpers that a call over `bytes` bytes can use.
    fn wanted(self, bytes: usize) -> WantedHelpers {
        let most = thread_count(self.most) - 1;
        let helpers = |bytes_each: usize| (bytes / bytes_each.max(1)).saturating_sub(1).min(most);
        let to_wake = self.bytes_each.saturating_mul(WAKING).min(BYTES_TO_WAKE);
        WantedHelpers {
            awake: helpers(self.bytes_each),
            asleep: helpers(to_wake.max(self.bytes_each)),
        }
    }
}

/// Largest number of threads that may run: `most`, or as many as the machine has processors; 1 on
/// targets without threads.
pub(crate) fn thread_count(most: Option<NonZeroUsize>) -> usize {
    if !HAS_THREADS {
        return 1;
    }
    most.map_or_else(place::processors, NonZeroUsize::get)
}

/// Whether the target can start threads. WebAssembly usually cannot, and in browsers it has no
/// clock either, which the helpers need.
const HAS_THREADS: bool = !cfg!(all(target_family = "wasm", not(target_feature = "atomics")));

/// The stripes of one thread. A thread that has finished its own share takes stripes of the other
/// shares, whose threads may have been slow to wake (work stealing).
struct StripeShare {
    next: AtomicUsize,
    end: usize,
}

impl StripeShare {
    fn take(&self, step: usize) -> Option<Range<usize>> {
        let start = self.next.fetch_add(step, Ordering::Relaxed);
        (start < self.end).then(|| start..(start + step).min(self.end))
    }
}

/// Runs `work` over ranges that together make up `0..stripes` and begin at multiples of `grain`.
/// The caller's thread takes part. `bytes` is the memory that all stripes touch together.
pub(crate) fn over_stripes(
    stripes: usize,
    grain: usize,
    bytes: usize,
    threads: Threads,
    work: impl Fn(Range<usize>) + Sync,
) {
    if bytes < 2 * BYTES_A_STEP || threads.most == Some(NonZeroUsize::MIN) {
        return work(0..stripes);
    }
    let grains = stripes.div_ceil(grain);
    let wanted = threads.wanted(bytes).at_most(grains.saturating_sub(1));
    let threads = wanted.awake + 1;
    if threads == 1 {
        return work(0..stripes);
    }
    let work = |range: Range<usize>| work(range.start * grain..stripes.min(range.end * grain));
    let bound = |thread: usize| grains / threads * thread + thread.min(grains % threads);
    let share =
        |thread| StripeShare { next: AtomicUsize::new(bound(thread)), end: bound(thread + 1) };
    let shares: Vec<StripeShare> = (0..threads).map(share).collect();
    let step = (grains / (bytes / BYTES_A_STEP).max(1).min(threads * STEPS_A_SHARE)).max(1);
    with_helpers(wanted, &|Seat { number, helpers }| {
        if helpers == 0 {
            return work(0..grains);
        }
        let (before, from_own) = shares.split_at(number);
        for share in from_own.iter().chain(before) {
            while let Some(range) = share.take(step) {
                work(range);
            }
        }
    });
}

/// Runs `work` on every part, each on a thread of its own if enough threads are allowed.
pub(crate) fn over_parts<T: Sync>(
    parts: &[T],
    bytes: usize,
    threads: Threads,
    work: impl Fn(&T) + Sync,
) {
    let next = AtomicUsize::new(0);
    let wanted = threads.wanted(bytes).at_most(parts.len().saturating_sub(1));
    with_helpers(wanted, &|_| {
        while let Some(part) = parts.get(next.fetch_add(1, Ordering::Relaxed)) {
            work(part);
        }
    });
}

/// Runs `work` over columns of packets, each column on a thread of its own if enough threads are
/// allowed. A packet is `packet` stripes, and a column the same stripes of every packet; the last
/// packet may be shorter.
pub(crate) fn over_columns(
    stripes: usize,
    packet: usize,
    columns: &[Range<usize>],
    bytes: usize,
    threads: Threads,
    work: impl Fn(Range<usize>) + Sync,
) {
    over_parts(columns, bytes, threads, |column| {
        for start in (0..stripes).step_by(packet) {
            let range = start + column.start..stripes.min(start + column.end);
            if !range.is_empty() {
                work(range);
            }
        }
    });
}

#[cfg(all(test, not(target_family = "wasm")))]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn a_single_call_wakes_fewer_threads_than_a_burst() {
        let wanted = |bytes_each, bytes| {
            let threads = Threads { most: NonZeroUsize::new(4), bytes_each };
            let WantedHelpers { awake, asleep } = threads.wanted(bytes);
            (awake, asleep)
        };
        assert_eq!(wanted(BYTES_A_THREAD, 2 * BYTES_A_THREAD - 1), (0, 0));
        assert_eq!(wanted(BYTES_A_THREAD, 2 * BYTES_A_THREAD), (1, 0));
        assert_eq!(wanted(BYTES_A_THREAD, 2 * BYTES_TO_WAKE), (3, 1));
        assert_eq!(wanted(BYTES_TO_WAKE * 2, 2 * BYTES_TO_WAKE), (0, 0));
        assert_eq!(wanted(BYTES_TO_WAKE * 2, 4 * BYTES_TO_WAKE), (1, 1));
        assert_eq!(wanted(1, 32), (3, 3));
    }

    /// Every stripe is in exactly one column, and only that column's thread runs it, also in a last
    /// packet that ends before some columns begin.
    #[test]
    fn columns_are_the_same_stripes_of_every_packet() {
        for (stripes, packet, columns) in
            [(1000, 32, vec![0..16, 16..32]), (7, 4, vec![0..1, 1..2, 2..4])]
        {
            let seen = Mutex::new(vec![Vec::new(); stripes]);
            let threads = Threads { most: NonZeroUsize::new(3), bytes_each: 1 };
            over_columns(stripes, packet, &columns, 1 << 30, threads, |range| {
                let column =
                    columns.iter().position(|column| column.contains(&(range.start % packet)));
                range.for_each(|stripe| seen.lock().unwrap()[stripe].push(column));
            });
            for (stripe, seen) in seen.into_inner().unwrap().into_iter().enumerate() {
                let column = columns.iter().position(|column| column.contains(&(stripe % packet)));
                assert_eq!(seen, [column], "{stripe}");
            }
        }
    }

    #[test]
    fn every_stripe_once() {
        for (stripes, threads) in [(0, 1), (1, 8), (7, 3), (1000, 0), (5, 64), (100_000, 2)] {
            let seen = Mutex::new(vec![0; stripes]);
            let threads = Threads { most: NonZeroUsize::new(threads), bytes_each: 1 << 20 };
            for grain in [1, 64] {
                over_stripes(stripes, grain, usize::MAX / 2, threads, |range| {
                    assert!(range.start.is_multiple_of(grain));
                    range.for_each(|stripe| seen.lock().unwrap()[stripe] += 1);
                });
            }
            assert!(seen.into_inner().unwrap().iter().all(|&count| count == 2));
        }
    }
}
