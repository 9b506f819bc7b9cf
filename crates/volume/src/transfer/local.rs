//! Receiving an object from folders of this machine.
//!
//! Reading from a cache of the system is so fast that handing a unit over, from the thread that
//! reads it to one that decodes it and to one that writes it, would take as long as all of that. So
//! where the order does not matter, each of a few threads takes the next unit, and reads, checks,
//! decodes and keeps it. A folder that hangs holds up such a thread; what is not done after a while
//! is left to the usual way, which asks others.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::node::run_here;
use crate::transfer::receive::{Receiver, Wanted};

/// The time after which threads that finish no unit are waited for no longer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Wanted number of bytes of a unit's blocks: few enough for a core's second-level cache.
const UNIT: usize = 1 << 20;

/// Threads that share the units of an object.
struct Crew {
    receiver: Arc<Receiver>,
    wanted: Wanted,
    units: Vec<Range<u64>>,
    next: AtomicUsize,
    is_over: AtomicBool,
}

impl Receiver {
    /// Whether all shards are in folders of this machine, and can be read unit by unit.
    pub fn is_local(&self) -> bool {
        let are_local = self.places.iter().flatten().all(|place| place.node.is_local());
        are_local && self.layout.code().graph().is_none()
    }

    /// Keeps an object's wanted bytes in any order. Tells `progress` how many bytes are done.
    /// Returns the ranges that are left, because a folder failed or did not answer.
    pub async fn keep_all(
        self: &Arc<Self>,
        wanted: Wanted,
        progress: &(dyn Fn(u64) + Send + Sync),
    ) -> Vec<Range<u64>> {
        let units = self.units(&wanted.range, UNIT / self.layout.part_count());
        let mut left: Vec<Option<Range<u64>>> =
            units.iter().map(|unit| Some(self.bytes_of(unit, &wanted.range))).collect();
        let (receiver, next) = (Arc::clone(self), AtomicUsize::new(0));
        let crew = Crew { receiver, wanted, units, next, is_over: AtomicBool::new(false) };
        let crew = Arc::new(crew);
        let (line, mut done) = unbounded_channel();
        for _ in 0..self.settings.threads {
            let (crew, line, runtime) = (Arc::clone(&crew), line.clone(), Handle::current());
            tokio::task::spawn_blocking(move || run_here(&runtime, crew.work(&line)));
        }
        drop(line);
        while let Ok(Some(unit)) = tokio::time::timeout(PATIENCE, done.recv()).await {
            let bytes = left[unit].take();
            bytes.into_iter().for_each(|bytes| progress(bytes.end - bytes.start));
        }
        crew.is_over.store(true, Ordering::Relaxed);
        left.into_iter().flatten().collect()
    }

    /// Returns the bytes of a unit that are in `range`.
    fn bytes_of(&self, unit: &Range<u64>, range: &Range<u64>) -> Range<u64> {
        let first = self.layout.segment_range(self.length, unit.start);
        let last = self.layout.segment_range(self.length, unit.end - 1);
        first.start.max(range.start)..last.end.min(range.end)
    }
}

impl Crew {
    /// Keeps one unit after the other, and tells which are done, until none is left or one fails.
    async fn work(&self, line: &UnboundedSender<usize>) {
        while !self.is_over.load(Ordering::Relaxed) {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(unit) = self.units.get(number) else { return };
            let kept = Arc::clone(&self.receiver).unit(unit.clone(), self.wanted.clone()).await;
            if kept.is_err() || line.send(number).is_err() {
                self.is_over.store(true, Ordering::Relaxed);
            }
        }
    }
}
