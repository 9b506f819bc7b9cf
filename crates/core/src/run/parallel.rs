//! Threads: who does which part of the work.
//!
//! A call's work can be split in four ways (Jugan, *Multi-threaded erasure coding in Jerasure*): by
//! stripe, by node that is made, by columns of the packets, or by packet rows. By stripe every thread
//! runs the same program over a part of each buffer, whatever the number of threads, and reads and
//! writes nothing that another does. In the other ways every thread has a program of its own, over
//! whole buffers; by node and by row all threads read all sources, and XORs that programs could share
//! are done by each.

use std::ops::Range;

use crate::error::{Error, Result};

/// How a call's work is split over threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Split {
    /// Every thread takes some stripes.
    #[default]
    Stripe,
    /// Every thread makes some of the nodes.
    Node,
    /// Every thread takes some bytes of every packet, in whole cache lines.
    Columns,
    /// Every thread makes some rows of every node.
    Rows,
}

impl Split {
    /// All ways.
    pub const ALL: [Self; 4] = [Self::Stripe, Self::Node, Self::Columns, Self::Rows];

    /// The name on the command line and in reports.
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

/// What a thread should at least have to do: below it, waking one costs more than it saves.
const BYTES_A_THREAD: usize = 256 * 1024;

/// The number of threads that `threads` stands for; 0 means the machine's.
pub(crate) fn thread_count(threads: usize) -> usize {
    if threads == 0 { rayon::current_num_threads() } else { threads }
}

/// Runs `work` over `0..stripes`, cut into at most `threads` ranges of about equal length.
/// `bytes` is how much memory all stripes touch together.
pub(crate) fn over_stripes(
    stripes: usize,
    bytes: usize,
    threads: usize,
    work: impl Fn(Range<usize>) + Sync,
) {
    let pieces = thread_count(threads).min(bytes / BYTES_A_THREAD).clamp(1, stripes.max(1));
    if pieces == 1 {
        return work(0..stripes);
    }
    rayon::scope(|scope| {
        for piece in 0..pieces {
            let range = stripes * piece / pieces..stripes * (piece + 1) / pieces;
            let work = &work;
            scope.spawn(move |_| work(range));
        }
    });
}

/// Runs `work` on every part, on as many threads if `threads` and the amount of work allow more than one.
pub(crate) fn over_parts<T: Sync>(
    parts: &[T],
    bytes: usize,
    threads: usize,
    work: impl Fn(&T) + Sync,
) {
    if thread_count(threads) == 1 || bytes < 2 * BYTES_A_THREAD {
        return parts.iter().for_each(work);
    }
    rayon::scope(|scope| {
        for part in parts {
            let work = &work;
            scope.spawn(move |_| work(part));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn every_stripe_once() {
        for (stripes, threads) in [(0, 1), (1, 8), (7, 3), (1000, 0), (5, 64)] {
            let seen = Mutex::new(vec![0; stripes]);
            over_stripes(stripes, usize::MAX, threads, |range| {
                range.for_each(|stripe| seen.lock().unwrap()[stripe] += 1);
            });
            assert!(seen.into_inner().unwrap().iter().all(|&count| count == 1));
        }
    }
}
