//! Adding the parts of a later stage to an object.
//!
//! | state | what is awaited | then |
//! | --- | --- | --- |
//! | surveying | versions, from all nodes | too few answers: unsure. Another version counts: superseded. Else parts are looked for |
//! | finding | parts, from all nodes | what is missing of the stage is stored |
//! | storing | parts | what failed goes to substitutes. If anything was stored, another survey |
//! | checking | versions, from all nodes | too few answers: unsure. The object was replaced: what was stored is discarded. Else done |
//! | discarding | deletions of what was stored | superseded |
//!
//! Files of earlier stages are not touched, so protection never falls. Two promoters write equal
//! bytes. Parts stored for an object that was removed meanwhile do no harm, but would stay for a
//! long time. So the last survey comes after the last part.

use std::collections::BTreeSet;
use std::ops::Range;

use paritas_shards::ObjectId;

use crate::protocol::action::ask;
use crate::protocol::{
    Action, Answer, Event, NextStep, NodeIndex, PartIndex, PartPlaces, Procedure, Quorum, Request,
    Spread, Version, View,
};

/// Adds the parts of a stage to an object.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Promote {
    object: ObjectId,
    spread: Spread,
    made: Range<usize>,
    phase: PromotePhase,
    view: View,
    version: Option<Version>,
    places: PartPlaces,
    stored: PartPlaces,
    failed: BTreeSet<NodeIndex>,
    is_impossible: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum PromotePhase {
    Beginning,
    Surveying,
    Finding,
    Storing,
    Checking,
    Discarding,
}

/// The outcome of [`Promote`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PromoteOutcome {
    /// The object has all parts of the stage.
    Promoted {
        /// Whether a part is not on its home.
        is_owed: bool,
    },
    /// Some parts of the stage could not be made or stored; what was stored stays.
    Incomplete {
        /// Number of missing parts.
        missing: usize,
    },
    /// The name was removed, or means another version by now.
    Superseded,
    /// Too few nodes answered. What was stored stays.
    Unsure,
}

impl Promote {
    /// Prepares to add the parts `made` to an object. `spread` covers the parts of all stages.
    pub fn new(quorum: Quorum, object: ObjectId, spread: Spread, made: Range<usize>) -> Self {
        Self {
            object,
            spread,
            made,
            phase: PromotePhase::Beginning,
            view: View::new(quorum),
            version: None,
            places: PartPlaces::default(),
            stored: PartPlaces::default(),
            failed: BTreeSet::new(),
            is_impossible: false,
        }
    }

    /// Returns where parts were stored.
    pub fn stored(&self) -> &PartPlaces {
        &self.stored
    }

    fn survey(&mut self, phase: PromotePhase) -> NextStep<PromoteOutcome> {
        self.phase = phase;
        NextStep::Act(self.view.survey())
    }

    fn find(&mut self) -> NextStep<PromoteOutcome> {
        self.phase = PromotePhase::Finding;
        let version = self.view.object().map(|listed| listed.version);
        self.version = version.filter(|version| version.object == self.object);
        match self.version {
            None => NextStep::Done(PromoteOutcome::Superseded),
            Some(_) => {
                NextStep::Act(ask(self.view.quorum().indices(), Request::FindParts(self.object)))
            }
        }
    }

    fn missing(&self) -> impl Iterator<Item = PartIndex> + '_ {
        self.made.clone().map(PartIndex).filter(|&part| !self.places.has(part))
    }

    fn store(&mut self) -> NextStep<PromoteOutcome> {
        self.phase = PromotePhase::Storing;
        let chosen = match self.is_impossible {
            true => Vec::new(),
            false => self.spread.choose(self.missing(), &self.failed, &self.places),
        };
        let object = self.object;
        let store = |(part, node)| Action { node, request: Request::StorePart { object, part } };
        match (chosen.is_empty(), self.stored.is_empty()) {
            (false, _) => NextStep::Act(chosen.into_iter().map(store).collect()),
            (true, false) => self.survey(PromotePhase::Checking),
            (true, true) => self.finish(),
        }
    }

    fn check(&mut self) -> NextStep<PromoteOutcome> {
        match self.version.is_some_and(|version| self.view.is_gone(version)) {
            true => {
                self.phase = PromotePhase::Discarding;
                NextStep::Act(self.stored.deletions(self.object))
            }
            false => self.finish(),
        }
    }

    fn finish(&self) -> NextStep<PromoteOutcome> {
        let missing = self.missing().count();
        let mut parts = self.made.clone().map(PartIndex);
        let is_owed = parts.any(|part| !self.spread.is_home(part, &self.places));
        NextStep::Done(match missing {
            0 => PromoteOutcome::Promoted { is_owed },
            _ => PromoteOutcome::Incomplete { missing },
        })
    }
}

impl Procedure for Promote {
    type Outcome = PromoteOutcome;

    fn note(&mut self, event: &Event) {
        self.view.note(event);
        let node = event.action.node;
        match (event.action.request, &event.answer) {
            (Request::FindParts(_), Answer::Parts(parts)) => {
                parts.iter().for_each(|&part| self.places.add(part, node));
            }
            (Request::StorePart { part, .. }, Answer::Stored { .. }) => {
                self.stored.add(part, node);
                self.places.add(part, node);
            }
            (Request::StorePart { .. }, Answer::Impossible) => self.is_impossible = true,
            (Request::FindParts(_) | Request::StorePart { .. }, _) => {
                self.failed.insert(node);
            }
            _ => {}
        }
    }

    fn next(&mut self) -> NextStep<PromoteOutcome> {
        match self.phase {
            PromotePhase::Beginning => self.survey(PromotePhase::Surveying),
            PromotePhase::Surveying | PromotePhase::Checking if !self.view.is_sure() => {
                NextStep::Done(PromoteOutcome::Unsure)
            }
            PromotePhase::Surveying => self.find(),
            PromotePhase::Finding | PromotePhase::Storing => self.store(),
            PromotePhase::Checking => self.check(),
            PromotePhase::Discarding => NextStep::Done(PromoteOutcome::Superseded),
        }
    }

    fn is_enough(&self) -> bool {
        match self.phase {
            PromotePhase::Beginning | PromotePhase::Finding | PromotePhase::Storing => false,
            PromotePhase::Surveying | PromotePhase::Checking => self.view.is_sure(),
            PromotePhase::Discarding => true,
        }
    }
}
