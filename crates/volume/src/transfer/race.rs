//! Finding the late nodes among several that were asked side by side for equal parts of a unit.
//!
//! A busy link delays all answers alike, so no absolute time tells a slow node from a slow link.
//! But requests that were sent together share the link, so a node that has not answered long after
//! most of the others did is late.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use paritas_store::error::{Error, ErrorKind};
use tokio::time::Instant;

use crate::transfer::{Hedge, Pace};

/// The least time that nodes are given while most of them are silent.
const SILENCE: Duration = Duration::from_secs(1);

/// Time between two looks at nodes that are late, where no other node may be asked instead.
const LOOK: Duration = Duration::from_millis(10);

/// The nodes that were asked for one unit, by part.
pub(crate) struct Race {
    hedge: Hedge,
    running: BTreeMap<usize, RaceRunner>,
    /// Number of requests, and how many of them were answered.
    asked: usize,
    answered: usize,
    /// The longest time that an answer took.
    slowest: Duration,
}

struct RaceRunner {
    begun: Instant,
    pace: Arc<Pace>,
    state: RaceState,
}

#[derive(Clone, Copy, PartialEq)]
enum RaceState {
    InTime,
    /// Late, but no other node may be asked instead yet.
    Noted,
    /// Waited for no longer.
    GivenUp,
}

impl Race {
    pub fn new(hedge: Hedge) -> Self {
        Self { hedge, running: BTreeMap::new(), asked: 0, answered: 0, slowest: Duration::ZERO }
    }

    /// Notes that the node of a part is asked.
    pub fn ask(&mut self, part: usize, pace: &Arc<Pace>) {
        self.asked += 1;
        let (begun, pace) = (Instant::now(), Arc::clone(pace));
        self.running.insert(part, RaceRunner { begun, pace, state: RaceState::InTime });
    }

    /// Notes that a part has come.
    pub fn answered(&mut self, part: usize) {
        let Some(runner) = self.running.remove(&part) else { return };
        let time = runner.begun.elapsed();
        self.answered += 1;
        if runner.state == RaceState::InTime {
            self.slowest = self.slowest.max(time);
            runner.pace.answered(time);
        }
    }

    /// Notes that a part could not be read. A node that does not have it may be as fast as ever.
    pub fn failed(&mut self, part: usize, error: &Error) {
        let runner = self.running.remove(&part);
        let slow = runner.filter(|_| error.kind() != ErrorKind::NotFound);
        slow.iter().for_each(|runner| runner.pace.late());
    }

    /// Returns the parts that are waited for.
    pub fn hoped_for(&self) -> impl Iterator<Item = usize> {
        let hoped = |(_, runner): &(&usize, &RaceRunner)| runner.state != RaceState::GivenUp;
        self.running.iter().filter(hoped).map(|(&part, _)| part)
    }

    /// Returns when to look again for nodes that are late.
    pub fn next_look(&self) -> Option<Instant> {
        let look = |runner: &RaceRunner| match runner.state {
            RaceState::InTime => Some(runner.begun + self.patience(runner)),
            RaceState::Noted => Some(Instant::now() + LOOK),
            RaceState::GivenUp => None,
        };
        self.running.values().filter_map(look).min()
    }

    /// Gives up waiting for nodes that are late. `may` must allow each, except for nodes that were
    /// late or failed before.
    pub fn give_up(&mut self, mut may: impl FnMut() -> bool) {
        let now = Instant::now();
        let due = |runner: &RaceRunner| runner.begun + self.patience(runner) <= now;
        let late: Vec<usize> = self
            .running
            .iter()
            .filter(|(_, runner)| runner.state != RaceState::GivenUp && due(runner))
            .map(|(&part, _)| part)
            .collect();
        for part in late {
            let Some(runner) = self.running.get_mut(&part) else { continue };
            if runner.state == RaceState::InTime {
                runner.pace.late();
                runner.state = RaceState::Noted;
            }
            if runner.pace.is_unreliable() || may() {
                runner.state = RaceState::GivenUp;
            }
        }
    }

    /// Returns how long the race waits for a node: as long as the node usually takes, within
    /// bounds. While most nodes are silent, the link may be slow, so it is at least [`SILENCE`].
    /// Once most have answered, it is at least the time of the slowest answer and at most half as
    /// long again.
    fn patience(&self, runner: &RaceRunner) -> Duration {
        let own = runner.pace.patience(&self.hedge);
        let slowest = self.slowest;
        let patience = match self.answered * 2 >= self.asked {
            _ if self.asked < 2 => own,
            false => own.max(SILENCE),
            true if runner.pace.is_unreliable() => slowest,
            true => own.clamp(slowest, slowest + slowest / 2),
        };
        patience.max(self.hedge.at_least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A race of `count` unknown nodes, all asked now.
    fn race(count: usize) -> Race {
        let mut race = Race::new(Hedge::default());
        (0..count).for_each(|part| race.ask(part, &Arc::new(Pace::default())));
        race
    }

    fn hoped_for(race: &mut Race, may: bool) -> Vec<usize> {
        race.give_up(|| may);
        race.hoped_for().collect()
    }

    async fn wait(milliseconds: u64) {
        tokio::time::sleep(Duration::from_millis(milliseconds)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn late_is_who_takes_half_as_long_again_as_the_others() {
        let mut race = race(4);
        wait(30).await;
        race.answered(0);
        wait(60).await;
        assert_eq!(hoped_for(&mut race, true), [1, 2, 3], "most are silent: the link may be slow");
        race.answered(1);
        wait(44).await;
        assert_eq!(hoped_for(&mut race, true), [2, 3]);
        wait(1).await;
        assert_eq!(hoped_for(&mut race, true), [0usize; 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn silence_of_most_is_not_borne_for_long() {
        let mut race = race(4);
        wait(999).await;
        assert_eq!(hoped_for(&mut race, true), [0, 1, 2, 3]);
        wait(1).await;
        assert_eq!(hoped_for(&mut race, true), [0usize; 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn another_node_is_asked_if_that_is_allowed_or_the_late_one_was_late_before() {
        let mut first = race(2);
        let pace = Arc::clone(&first.running[&1].pace);
        wait(100).await;
        first.answered(0);
        wait(100).await;
        assert_eq!(hoped_for(&mut first, false), [1]);
        assert_eq!(first.next_look(), Some(Instant::now() + LOOK), "it is not looked all the time");
        assert_eq!(hoped_for(&mut first, true), [0usize; 0]);

        let mut second = race(1);
        second.ask(1, &pace);
        wait(50).await;
        second.answered(0);
        wait(50).await;
        assert_eq!(hoped_for(&mut second, false), [0usize; 0], "late twice in a row");
        let mut third = race(1);
        third.ask(1, &pace);
        wait(50).await;
        third.answered(0);
        assert_eq!(
            hoped_for(&mut third, false),
            [0usize; 0],
            "waited for only as long as the others"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_answer_makes_no_node_reliable() {
        let mut race = race(2);
        let pace = Arc::clone(&race.running[&1].pace);
        pace.late();
        wait(100).await;
        race.answered(0);
        wait(200).await;
        assert_eq!(hoped_for(&mut race, true), [0usize; 0]);
        race.answered(1);
        assert!(pace.is_unreliable());
    }
}
