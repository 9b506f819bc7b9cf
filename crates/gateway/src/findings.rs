//! What upkeep has found lately and could not mend, for the page of a gateway.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::held::held;

/// The most findings that are kept.
const MOST: usize = 20;

/// The last findings, the latest first.
#[derive(Debug, Default)]
pub struct UpkeepFindings(Mutex<VecDeque<UpkeepFinding>>);

#[derive(Debug)]
struct UpkeepFinding {
    text: String,
    times: u64,
    last: Instant,
}

impl UpkeepFindings {
    /// Notes what was being done and what was found, such as `repairing a/b` and an error. A
    /// finding that is there already is counted.
    pub fn note(&self, doing: &str, found: &dyn fmt::Display) {
        let text = format!("{doing}: {found}");
        let mut findings = held(&self.0);
        let known = findings.iter().position(|finding| finding.text == text);
        let before = known.and_then(|at| findings.remove(at)).map_or(0, |finding| finding.times);
        findings.push_front(UpkeepFinding { text, times: before + 1, last: Instant::now() });
        findings.truncate(MOST);
    }

    /// Returns the texts, each with the number of times and with the time since the last.
    pub(crate) fn latest(&self) -> Vec<(String, u64, Duration)> {
        let findings = held(&self.0);
        findings.iter().map(|it| (it.text.clone(), it.times, it.last.elapsed())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_counted_and_the_oldest_go() {
        let findings = UpkeepFindings::default();
        findings.note("repairing a", &"lost");
        (0..MOST).for_each(|at| findings.note("scrubbing b", &at));
        findings.note("scrubbing b", &3);
        let latest = findings.latest();
        assert_eq!((latest.len(), &*latest[0].0, latest[0].1), (MOST, "scrubbing b: 3", 2));
        assert!(latest.iter().all(|(text, ..)| !text.contains("repairing")));
    }
}
