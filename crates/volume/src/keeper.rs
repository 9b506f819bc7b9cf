//! Keeping a volume whole while it is in use: owed objects are repaired, later stages are added,
//! and remains are removed. Several processes may do this for one volume at the same time: repairs
//! only add what is missing, and promotions and scrubs are claimed.
//!
//! An object for which a repair or promotion could do nothing, because a node is gone, rests before
//! the next attempt, each time twice as long. When a node comes back, all rests are over.

use std::collections::{BTreeSet, HashMap};
use std::future::Future;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use paritas_store::error::{Error, ErrorKind, Result};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use crate::clock::now;
use crate::names::ObjectName;
use crate::promote::Repaired;
use crate::volume::Volume;

/// The longest rest of an object between two attempts to repair or promote it.
const LONGEST_REST: Duration = Duration::from_secs(3600);

/// How often a volume is looked after.
#[derive(Debug, Clone, Copy)]
pub struct Upkeep {
    /// Time between two rounds of repairing owed objects and promoting objects that wait for it.
    pub look: Duration,
    /// Time between two removals of remains.
    pub collect: Duration,
    /// Time between two scrubs, which read all blocks.
    pub scrub: Duration,
}

impl Default for Upkeep {
    fn default() -> Self {
        Self {
            look: Duration::from_secs(60),
            collect: Duration::from_secs(3600),
            scrub: Duration::from_secs(7 * 24 * 3600),
        }
    }
}

/// Objects for which one kind of work could do nothing.
#[derive(Debug, Default)]
struct Rests {
    /// When each may be tried again, and how long it rested.
    until: HashMap<ObjectName, (Instant, Duration)>,
    /// The nodes that could not be used in the last round.
    away: BTreeSet<String>,
}

impl Rests {
    /// Begins a round, in which these nodes cannot be used and these objects need the work. Returns
    /// the objects that are tried.
    fn begin(
        &mut self,
        away: BTreeSet<String>,
        needy: Vec<ObjectName>,
        now: Instant,
    ) -> Vec<ObjectName> {
        if !self.away.is_subset(&away) {
            self.until.clear();
        }
        self.away = away;
        let mut rests = std::mem::take(&mut self.until);
        self.until = needy.iter().filter_map(|name| rests.remove_entry(name)).collect();
        let is_due =
            |name: &ObjectName| self.until.get(name).is_none_or(|(until, _)| *until <= now);
        needy.into_iter().filter(is_due).collect()
    }

    /// Notes what became of an attempt. The first rest of an object has the length `first`.
    fn note(&mut self, name: &ObjectName, done: &Result<Repaired>, first: Duration, now: Instant) {
        let before = self.until.remove(name).map(|(_, rest)| rest);
        let rest = match done {
            Ok(repaired) if !repaired.is_owed || repaired.stored + repaired.manifests > 0 => return,
            _ => before.map_or(first, |rest| (rest * 2).min(LONGEST_REST.max(first))),
        };
        self.until.insert(name.clone(), (now + rest, rest));
    }
}

/// Work that objects wait for.
#[derive(Debug, Clone, Copy)]
enum UpkeepWork {
    Repairing,
    Promoting,
}

/// Looks after a volume.
struct Keeper<'v> {
    volume: &'v Volume,
    repairs: Mutex<Rests>,
    promotions: Mutex<Rests>,
    /// Called with the work that failed, and the error.
    told: &'v (dyn Fn(&str, &Error) + Send + Sync),
}

/// Looks after a volume until this future is dropped, as it should be when the volume file lists
/// other nodes ([`Volume::until_other_nodes`]). `told` is called with the work that failed,
/// such as `repairing a/b`, and with the error. The work is tried again in the next round.
pub async fn keep(volume: &Volume, upkeep: Upkeep, told: &(dyn Fn(&str, &Error) + Send + Sync)) {
    let (repairs, promotions) = (Mutex::default(), Mutex::default());
    let keeper = Keeper { volume, repairs, promotions, told };
    futures::join!(
        every(upkeep.look, async || keeper.look(upkeep.look).await),
        every(upkeep.collect, async || keeper.note("collecting", volume.collect().await)),
        every(upkeep.look, async || keeper.scrub(upkeep.scrub).await),
    );
}

/// Runs `act` after each period, for ever.
async fn every<F: Future<Output = ()>>(period: Duration, act: impl Fn() -> F) {
    let mut ticks: Interval = interval_at(Instant::now() + period, period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        act().await;
    }
}

impl Keeper<'_> {
    /// Repairs owed objects, and promotes objects that wait for it, the oldest first. The next look
    /// comes after `pause`.
    async fn look(&self, pause: Duration) {
        let status = match self.volume.status().await {
            Ok(status) => status,
            Err(error) => return self.note::<()>("looking", Err(error)),
        };
        let (none, volume) = (Vec::new, self.volume);
        let owed = if status.owed.objects > 0 { volume.owed("").await } else { none() };
        self.work(UpkeepWork::Repairing, owed, pause).await;
        let waiting = if status.backlog.objects > 0 { volume.backlog("").await } else { none() };
        self.work(UpkeepWork::Promoting, waiting, pause).await;
    }

    /// Does one kind of work for the objects that need it, but for those that rest.
    async fn work(&self, work: UpkeepWork, needy: Vec<ObjectName>, pause: Duration) {
        let (rests, doing) = match work {
            UpkeepWork::Repairing => (&self.repairs, "repairing"),
            UpkeepWork::Promoting => (&self.promotions, "promoting"),
        };
        let rests = || rests.lock().unwrap_or_else(PoisonError::into_inner);
        let away = self.volume.troubles().into_iter().map(|(node, _)| node.name.clone()).collect();
        let due = rests().begin(away, needy, Instant::now());
        for name in &due {
            let done = match work {
                UpkeepWork::Repairing => self.volume.repair_one_of_all(name, false).await,
                UpkeepWork::Promoting => self.volume.promote(name).await,
            };
            rests().note(name, &done, pause, Instant::now());
            self.note(&format!("{doing} {name}"), done);
        }
    }

    /// Reads all blocks and repairs damage, unless that was done lately or another process does it.
    async fn scrub(&self, every: Duration) {
        if !self.is_due(every).await {
            return;
        }
        let scrubbed = self.volume.reading_all_blocks(self.scrub_now(every)).await;
        self.note("scrubbing", scrubbed.and_then(|scrubbed| scrubbed));
    }

    /// Whether the last full pass ended at least `every` ago, or another pass has begun. A pass
    /// that ended in the future was by a clock that was wrong, and does not count.
    async fn is_due(&self, every: Duration) -> bool {
        let status = self.volume.scrub_status().await;
        let last = status.last.as_ref().map_or(0, |pass| pass.ended);
        status.pass.is_some() || now().abs_diff(last) >= every.as_secs()
    }

    async fn scrub_now(&self, every: Duration) -> Result<()> {
        // The process that had the claim before may have ended the pass.
        if !self.is_due(every).await {
            return Ok(());
        }
        let mut scrub = self.volume.scrub().await?;
        while let Some((name, repaired)) = scrub.next().await {
            self.note(&format!("scrubbing {name}"), repaired);
        }
        scrub.nameless().iter().for_each(|error| (self.told)("scrubbing", error));
        Ok(())
    }

    /// Reports a failure. If another process was faster, nothing is reported.
    fn note<T>(&self, doing: &str, done: Result<T>) {
        if let Err(error) = done
            && !matches!(error.kind(), ErrorKind::Busy | ErrorKind::NotFound)
        {
            (self.told)(doing, &error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hands::NameLog;

    #[tokio::test]
    async fn objects_that_stay_owed_rest_longer_each_time() {
        let (begun, minute) = (Instant::now(), Duration::from_secs(60));
        let (name, other) = (ObjectName::new("a").unwrap(), ObjectName::new("b").unwrap());
        let owed = || vec![name.clone(), other.clone()];
        let away = || BTreeSet::from(["n1".to_owned()]);
        let is_owed = |is_owed| Ok(Repaired { is_owed, ..Repaired::of(&name, NameLog::default()) });
        let mut rests = Rests::default();
        assert_eq!(rests.begin(away(), owed(), begun), owed());
        rests.note(&name, &is_owed(true), minute, begun);
        rests.note(&other, &is_owed(false), minute, begun);
        // It is tried after one minute, then after two more, then after four more, and so on.
        let mut tried = Vec::new();
        for number in 1..400 {
            let now = begun + minute * number;
            if rests.begin(away(), vec![name.clone()], now) == [name.clone()] {
                tried.push(number);
                rests.note(&name, &is_owed(true), minute, now);
            }
        }
        assert_eq!(tried, [1, 3, 7, 15, 31, 63, 123, 183, 243, 303, 363]);
        let now = begun + minute * 364;
        assert!(rests.begin(away(), vec![name.clone()], now).is_empty());
        assert_eq!(rests.begin(BTreeSet::new(), vec![name.clone()], now), owed()[..1]);
        // What is no longer owed is forgotten.
        rests.note(&name, &is_owed(true), minute, now);
        rests.begin(BTreeSet::new(), Vec::new(), now);
        assert!(rests.until.is_empty());
    }
}
