//! Stripes over threads.

use std::ops::Range;

/// What a thread should at least have to do: below it, waking one costs more than it saves.
const BYTES_A_THREAD: usize = 256 * 1024;

/// The number of threads that `threads` stands for; 0 means the machine's.
pub(crate) fn thread_count(threads: usize) -> usize {
    if threads == 0 { rayon::current_num_threads() } else { threads }
}

/// Runs `work` over `0..stripes`, cut into at most `threads` ranges of about equal length.
/// `bytes` is how much memory all stripes touch together.
pub(crate) fn split(
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn every_stripe_once() {
        for (stripes, threads) in [(0, 1), (1, 8), (7, 3), (1000, 0), (5, 64)] {
            let seen = Mutex::new(vec![0; stripes]);
            split(stripes, usize::MAX, threads, |range| {
                range.for_each(|stripe| seen.lock().unwrap()[stripe] += 1);
            });
            assert!(seen.into_inner().unwrap().iter().all(|&count| count == 1));
        }
    }
}
