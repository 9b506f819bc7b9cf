//! The bytes that passed through a gateway in each minute of the last hour, for the graph on its
//! page.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Number of minutes that are kept.
pub const MINUTES: usize = 60;

/// What passed in one minute.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Passed {
    pub requests: u64,
    /// Bytes of bodies of requests.
    pub received: u64,
    /// Bytes of bodies of answers.
    pub sent: u64,
}

impl Passed {
    /// Bytes in both directions.
    pub fn bytes(self) -> u64 {
        self.received + self.sent
    }

    fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.received += other.received;
        self.sent += other.sent;
    }
}

/// The traffic of the last hour.
#[derive(Debug)]
pub struct Traffic {
    begun: Instant,
    /// The minutes in which something passed, by their numbers since the beginning.
    minutes: Mutex<VecDeque<(u64, Passed)>>,
}

impl Default for Traffic {
    fn default() -> Self {
        Self { begun: Instant::now(), minutes: Mutex::default() }
    }
}

impl Traffic {
    /// Counts what passes now.
    pub fn note(&self, passed: Passed) {
        self.note_in(self.minute(), passed);
    }

    /// Returns what passed in each of the last minutes, the present one last.
    pub fn last_hour(&self) -> [Passed; MINUTES] {
        self.hour_until(self.minute())
    }

    fn minute(&self) -> u64 {
        self.begun.elapsed().as_secs() / 60
    }

    fn note_in(&self, minute: u64, passed: Passed) {
        let mut minutes = self.minutes.lock().unwrap_or_else(PoisonError::into_inner);
        match minutes.back_mut() {
            Some((last, sum)) if *last == minute => sum.add(passed),
            _ => minutes.push_back((minute, passed)),
        }
        while minutes.len() > MINUTES {
            minutes.pop_front();
        }
    }

    fn hour_until(&self, now: u64) -> [Passed; MINUTES] {
        let mut hour = [Passed::default(); MINUTES];
        for (minute, passed) in self.minutes.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let ago = now.saturating_sub(*minute) as usize;
            if ago < MINUTES {
                hour[MINUTES - 1 - ago].add(*passed);
            }
        }
        hour
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(requests: u64) -> Passed {
        Passed { requests, received: 10 * requests, sent: 100 * requests }
    }

    #[test]
    fn minutes_are_summed_and_forgotten_after_an_hour() {
        let traffic = Traffic::default();
        assert_eq!(traffic.hour_until(0), [Passed::default(); MINUTES]);
        traffic.note_in(0, passed(1));
        traffic.note_in(0, passed(2));
        traffic.note_in(59, passed(4));
        let hour = traffic.hour_until(59);
        assert_eq!((hour[0], hour[59]), (passed(3), passed(4)));
        assert!(hour[1..59].iter().all(|minute| *minute == Passed::default()));
        assert_eq!(traffic.hour_until(60)[58], passed(4), "the first minute is forgotten");
        for minute in 100..300 {
            traffic.note_in(minute, passed(1));
        }
        let hour = traffic.hour_until(299);
        assert!(hour.iter().all(|minute| *minute == passed(1)));
        assert_eq!(hour[0].bytes(), 110);
    }
}
