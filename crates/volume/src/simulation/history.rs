//! What clients did and saw, and whether every name was a regular register.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use tokio::time::Instant;

use crate::protocol::{Listed, VersionKind};

/// What one job did to a name, or saw of it. Times count from the beginning of the run.
#[derive(Debug, Clone)]
pub struct Deed {
    name: usize,
    begun: Duration,
    /// When it ended, unless it was stopped or failed: then it may have an effect at any time.
    ended: Option<Duration>,
    what: Act,
}

/// What was written or read. Contents are numbered.
#[derive(Debug, Clone)]
pub enum Act {
    /// A put of a content; the version, once it is acknowledged.
    Put(u64, Option<Listed>),
    Remove(Option<Listed>),
    /// A reader found a version and, if it read it, its content. `None` means that it found
    /// nothing.
    Read(Option<(Listed, Option<u64>)>),
}

/// All deeds of a run.
#[derive(Debug)]
pub struct History {
    start: Instant,
    deeds: Vec<Deed>,
    /// What happened, but must never happen.
    flaws: Vec<String>,
    /// What jobs came to.
    pub reached: BTreeSet<String>,
}

impl History {
    /// Begins the history of a run.
    pub fn new() -> Self {
        let (start, deeds) = (Instant::now(), Vec::new());
        Self { start, deeds, flaws: Vec::new(), reached: BTreeSet::new() }
    }

    /// Returns the time since the beginning of the run.
    pub fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Notes that a job begins, and returns its number.
    pub fn begin(&mut self, name: usize, what: Act) -> usize {
        let begun = self.now();
        self.deeds.push(Deed { name, begun, ended: None, what });
        self.deeds.len() - 1
    }

    /// Notes how a job ended.
    pub fn end(&mut self, deed: usize, what: Act) {
        self.deeds[deed].ended = Some(self.now());
        self.deeds[deed].what = what;
    }

    /// Notes what was read in a time that has just ended.
    pub fn saw(&mut self, name: usize, begun: Duration, what: Option<(Listed, Option<u64>)>) {
        let ended = Some(self.now());
        self.deeds.push(Deed { name, begun, ended, what: Act::Read(what) });
    }

    /// Whether a version of a name was written that may never be acknowledged.
    pub fn is_open(&self, name: usize) -> bool {
        self.deeds.iter().any(|deed| deed.name == name && deed.ended.is_none())
    }

    pub fn flaw(&mut self, flaw: impl fmt::Display) {
        self.flaws.push(flaw.to_string());
    }

    /// Returns what is wrong, if anything is.
    pub fn check(&self) -> Vec<String> {
        let mut flaws = self.flaws.clone();
        let mut by_name: BTreeMap<usize, Vec<&Deed>> = BTreeMap::new();
        self.deeds.iter().for_each(|deed| by_name.entry(deed.name).or_default().push(deed));
        for deeds in by_name.values() {
            for deed in deeds {
                let Some(ended) = deed.ended else { continue };
                let wrong = match deed.what {
                    Act::Read(seen) => wrong_read(deeds, deed, ended, seen),
                    Act::Put(_, Some(listed)) | Act::Remove(Some(listed)) => {
                        let before = last_before(deeds, deed);
                        let is_below = before.is_some_and(|before| before >= listed);
                        is_below.then(|| format!("it is below {before:?}, acknowledged before"))
                    }
                    Act::Put(..) | Act::Remove(_) => None,
                };
                flaws.extend(wrong.map(|wrong| format!("{deed:?}: {wrong}")));
            }
        }
        flaws
    }
}

/// Returns the greatest version that was acknowledged before a deed began.
fn last_before(deeds: &[&Deed], deed: &Deed) -> Option<Listed> {
    let before = deeds.iter().filter(|it| it.ended.is_some_and(|ended| ended < deed.begun));
    before
        .filter_map(|it| match it.what {
            Act::Put(_, listed) | Act::Remove(listed) => listed,
            Act::Read(_) => None,
        })
        .max()
}

/// Returns why a reader may not have seen this.
fn wrong_read(
    deeds: &[&Deed],
    read: &Deed,
    ended: Duration,
    seen: Option<(Listed, Option<u64>)>,
) -> Option<String> {
    let before = last_before(deeds, read);
    let earlier = || deeds.iter().filter(|it| it.begun <= ended);
    match seen {
        Some((listed, _)) if Some(listed) < before => {
            Some(format!("{before:?} was acknowledged before"))
        }
        Some((listed, content)) => {
            let is_it = |deed: &&&Deed| match deed.what {
                Act::Put(wrote, acknowledged) => {
                    content.is_none_or(|content| content == wrote)
                        && acknowledged.is_none_or(|acknowledged| acknowledged == listed)
                }
                _ => false,
            };
            earlier().find(is_it).is_none().then(|| "nobody has written this".to_owned())
        }
        None => {
            // A removal that was acknowledged, or that may still be carried through.
            let removes = |deed: &&&Deed| match deed.what {
                Act::Remove(listed) => listed.is_none() || listed > before,
                _ => false,
            };
            let is_put = before.is_some_and(|before| before.kind == VersionKind::Put);
            (is_put && earlier().find(removes).is_none())
                .then(|| format!("{before:?} was acknowledged before, and not removed"))
        }
    }
}
