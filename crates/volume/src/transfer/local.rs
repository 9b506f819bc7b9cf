//! Receiving an object from folders of this machine.
//!
//! Reading from a cache of the system is so fast that handing a unit over, from the thread that
//! reads it to one that decodes it and to one that writes it, would take as long as all of that. So
//! where the order does not matter, each of a few threads takes the next unit, and reads, checks,
//! decodes and keeps it. A folder that hangs holds up such a thread; what is not done after a while
//! is left to the usual way, which asks others.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::transfer::receive::{Receiver, Units, Wanted};

/// Time to wait for threads that do not finish a unit.
const PATIENCE: Duration = Duration::from_secs(2);

/// Wanted number of bytes of a unit's blocks: few enough for a core's second-level cache.
const UNIT: usize = 1 << 20;

/// Threads that share the units of an object.
struct UnitCrew {
    receiver: Arc<Receiver>,
    wanted: Wanted,
    units: Units,
    /// The first unit that no thread has taken yet.
    next: AtomicU64,
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
        let (range, mut left) = (wanted.range.clone(), UnitsLeft::new(units.count()));
        let (receiver, next) = (Arc::new(self.on_own_thread()), AtomicU64::new(0));
        let is_over = AtomicBool::new(false);
        let crew = Arc::new(UnitCrew { receiver, wanted, units: units.clone(), next, is_over });
        let (line, mut done) = unbounded_channel();
        for _ in 0..self.settings.threads_for(&self.layout, 0) {
            let (crew, line, runtime) = (Arc::clone(&crew), line.clone(), Handle::current());
            tokio::task::spawn_blocking(move || runtime.block_on(crew.work(&line)));
        }
        drop(line);
        while let Ok(Some(unit)) = tokio::time::timeout(PATIENCE, done.recv()).await {
            left.done(unit);
            let bytes = self.bytes_of(&units, unit..unit + 1, &range);
            bytes.into_iter().for_each(|bytes| progress(bytes.end - bytes.start));
        }
        crew.is_over.store(true, Ordering::Relaxed);
        let left = left.runs().filter_map(|run| self.bytes_of(&units, run, &range));
        left.collect()
    }

    /// Returns the bytes of adjacent units that are in `range`, or `None` if there are none.
    fn bytes_of(
        &self,
        units: &Units,
        numbers: Range<u64>,
        range: &Range<u64>,
    ) -> Option<Range<u64>> {
        let (first, last) = (units.get(numbers.start)?, units.get(numbers.end.checked_sub(1)?)?);
        let start = self.layout.segment_range(self.length, first.start).start.max(range.start);
        let end = self.layout.segment_range(self.length, last.end - 1).end.min(range.end);
        (start < end).then_some(start..end)
    }
}

/// The units that are not done yet. Threads take units in order, so the gaps are few: only units
/// that are still at work while later ones are done are remembered one by one.
struct UnitsLeft {
    gaps: BTreeSet<u64>,
    /// All from here on are left, too.
    rest: Range<u64>,
}

impl UnitsLeft {
    fn new(count: u64) -> Self {
        Self { gaps: BTreeSet::new(), rest: 0..count }
    }

    fn done(&mut self, unit: u64) {
        if !self.gaps.remove(&unit) && self.rest.contains(&unit) {
            self.gaps.extend(self.rest.start..unit);
            self.rest.start = unit + 1;
        }
    }

    /// Returns them in order: the gaps one by one, the rest as one run.
    fn runs(self) -> impl Iterator<Item = Range<u64>> {
        let gaps = self.gaps.into_iter().map(|unit| unit..unit + 1);
        gaps.chain([self.rest].into_iter().filter(|rest| !rest.is_empty()))
    }
}

impl UnitCrew {
    /// Keeps one unit after the other, and reports each that is done, until all are taken, one
    /// fails, or nobody listens any more. Then it ends at once: if the work was interrupted, the
    /// runtime is about to stop, and nothing can wait for a time in it.
    async fn work(&self, line: &UnboundedSender<u64>) {
        while !self.is_over.load(Ordering::Relaxed) {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(unit) = self.units.get(number) else { return };
            let kept = tokio::select! {
                biased;
                () = line.closed() => return,
                kept = Arc::clone(&self.receiver).unit(unit, self.wanted.clone()) => kept,
            };
            if kept.is_err() || line.send(number).is_err() {
                self.is_over.store(true, Ordering::Relaxed);
            }
        }
    }
}
