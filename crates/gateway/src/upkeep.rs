//! Keeping a volume whole while it is in use: what is owed is repaired, later stages are added, and
//! remains are removed. Several processes may do this for one volume at the same time: repairs
//! only add what is missing, and promotions are claimed.

use std::time::Duration;

use paritas_volume::{Error, ErrorKind, ObjectName, Volume};

/// How often a volume is looked after.
#[derive(Debug, Clone, Copy)]
pub struct Upkeep {
    /// Time between two looks at what is owed and what waits for promotion.
    pub look: Duration,
    /// Time between two removals of remains.
    pub collect: Duration,
    /// Time between two looks through all blocks.
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

/// Looks after a volume for ever.
pub async fn keep(volume: &Volume, upkeep: Upkeep) {
    let looks = async {
        let mut ticks = ticks(upkeep.look);
        loop {
            ticks.tick().await;
            look(volume).await;
        }
    };
    let collections = async {
        let mut ticks = ticks(upkeep.collect);
        loop {
            ticks.tick().await;
            note("collecting", None, volume.collect().await);
        }
    };
    let scrubs = async {
        let mut ticks = ticks(upkeep.look);
        loop {
            ticks.tick().await;
            scrub(volume, upkeep.scrub).await;
        }
    };
    futures::join!(looks, collections, scrubs);
}

/// Returns ticks, the first of which comes after a period: a command that only looks in is over
/// then.
fn ticks(period: Duration) -> tokio::time::Interval {
    let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + period, period);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    ticks
}

/// Repairs what is owed, and promotes what waits for it, the oldest first.
async fn look(volume: &Volume) {
    let status = match volume.status().await {
        Ok(status) => status,
        Err(error) => return note::<()>("looking", None, Err(error)),
    };
    for name in &status.owed.names {
        note("repairing", Some(name), volume.repair(name, false).await);
    }
    for name in &status.backlog.names {
        note("promoting", Some(name), volume.promote(name).await);
    }
}

/// Reads all blocks and repairs what is wrong, unless that was done lately.
async fn scrub(volume: &Volume, every: Duration) {
    let status = volume.scrub_status().await;
    let last = status.last.as_ref().map_or(0, |pass| pass.ended);
    let since = crate::facts::now().saturating_sub(last);
    if status.pass.is_none() && since < every.as_secs() {
        return;
    }
    let mut scrub = match volume.scrub().await {
        Ok(scrub) => scrub,
        Err(error) => return note::<()>("scrubbing", None, Err(error)),
    };
    while let Some((name, repaired)) = scrub.next().await {
        note("scrubbing", Some(&name), repaired);
    }
}

/// Logs what failed. That somebody else was faster is no failure.
fn note<T>(doing: &str, name: Option<&ObjectName>, done: Result<T, Error>) {
    let Err(error) = done else { return };
    if !matches!(error.kind(), ErrorKind::Busy | ErrorKind::NotFound) {
        let name = name.map(ToString::to_string);
        tracing::warn!(doing, name, %error, "upkeep");
    }
}
