//! Keeping a volume whole while it is in use: owed objects are repaired, later stages are added,
//! and remains are removed. Several processes may do this for one volume at the same time: repairs
//! only add what is missing, and promotions and scrubs are claimed.

use std::future::Future;
use std::time::Duration;

use paritas_store::error::{Error, ErrorKind, Result};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use crate::clock::now;
use crate::volume::Volume;

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

/// Looks after a volume.
struct Keeper<'v> {
    volume: &'v Volume,
    /// Called with the work that failed, and the error.
    told: &'v (dyn Fn(&str, &Error) + Send + Sync),
}

/// Looks after a volume until this future is dropped, as it should be when the volume file lists
/// other nodes ([`Volume::until_other_nodes`]). `told` is called with the work that failed,
/// such as `repairing a/b`, and with the error. The work is tried again in the next round.
pub async fn keep(volume: &Volume, upkeep: Upkeep, told: &(dyn Fn(&str, &Error) + Send + Sync)) {
    let keeper = Keeper { volume, told };
    futures::join!(
        every(upkeep.look, async || keeper.look().await),
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
    /// Repairs owed objects, and promotes objects that wait for it, the oldest first.
    async fn look(&self) {
        let status = match self.volume.status().await {
            Ok(status) => status,
            Err(error) => return self.note::<()>("looking", Err(error)),
        };
        let owed = if status.owed.objects > 0 { self.volume.owed("").await } else { Vec::new() };
        for name in &owed {
            let repaired = self.volume.repair_one_of_all(name, false).await;
            self.note(&format!("repairing {name}"), repaired);
        }
        if status.backlog.objects == 0 {
            return;
        }
        for name in &self.volume.backlog("").await {
            self.note(&format!("promoting {name}"), self.volume.promote(name).await);
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
