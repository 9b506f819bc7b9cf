//! Writing a new version of a name.
//!
//! | state | what is awaited | then |
//! | --- | --- | --- |
//! | surveying | versions, from all nodes | fewer than N - t or t + 1 answers: refused, and what is stored is discarded. Else parts are stored on their homes |
//! | storing | parts | missing ones go to spare nodes; if too few are durable, to any other node, or, if there is none, all is discarded. Else another survey |
//! | numbering | versions, from all nodes | too few answers: all is discarded. Else the new version has the next generation, and manifests are written |
//! | writing | manifests | t + 1 are written: committed, older versions are removed. Fewer: other nodes are tried; if there are none, the outcome is open |
//! | deleting | deletions of older shards, then of their manifests | done |
//! | discarding | deletions of what was stored | refused, or superseded |
//!
//! The second survey makes the version that was stored last the greatest, however long storing
//! took. The first one only saves sending parts that too few nodes can take. So a put of few bytes
//! ([`NewParts::Shards::asks_first`]) begins with storing, and surveys then only if too few parts
//! could be stored: to tell how many nodes answer.
//!
//! From the first manifest on, the put is not rolled back: readers may have read the new
//! version, and others may have removed an older version because of it. If the outcome is open,
//! repair completes the write.
//!
//! A put in place of a version ([`Put::in_place_of`]) stores the same bytes anew. Its version has
//! the generation of the old one and a greater id. So it supersedes the old version, but never a
//! version with other bytes, whether written earlier or later.
//!
//! If a survey shows that the name has another version than the put expects ([`Put::expecting`]),
//! all is discarded. The last survey counts, so the put may take as long as it wants before.

use std::collections::BTreeSet;

use paritas_shards::ObjectId;

use crate::protocol::action::ask;
use crate::protocol::removal::Removal;
use crate::protocol::settling::Settling;
use crate::protocol::{
    Action, Answer, Event, Listed, NextStep, NodeIndex, PartIndex, PartPlaces, Procedure, Quorum,
    Request, Spread, Version, VersionKind, View,
};

/// What the new version consists of.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum NewParts {
    /// Shards.
    Shards {
        /// Where the parts of the first stage belong.
        spread: Spread,
        /// Number of parts that must be durable.
        needed: usize,
        /// Whether parts are sent only after enough nodes have answered.
        asks_first: bool,
    },
    /// Bytes in the manifest, which t + 1 nodes get.
    Inline {
        /// Number of bytes.
        length: u64,
        /// The nodes that may get the manifest, the best first.
        order: Vec<NodeIndex>,
    },
    /// Without content: the name is removed. The manifest that says so, the name's mark, goes to
    /// t + 1 nodes.
    Removed {
        /// The nodes that may get the mark, the best first.
        order: Vec<NodeIndex>,
    },
}

/// What a name must have for a new version to be written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Expected {
    /// Anything: whatever is there is superseded.
    #[default]
    Anything,
    /// No object: the name has no version, or was removed.
    Nothing,
    /// The object of this version.
    Version(Version),
}

impl Expected {
    /// Whether the name may have this object, or none.
    fn fits(self, object: Option<Version>) -> bool {
        match self {
            Self::Anything => true,
            Self::Nothing => object.is_none(),
            Self::Version(version) => object == Some(version),
        }
    }
}

/// Writes a new version of a name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Put {
    object: ObjectId,
    content: NewParts,
    phase: PutPhase,
    has_surveyed: bool,
    /// Whether any part was sent.
    has_stored: bool,
    view: View,
    length: u64,
    stored: PartPlaces,
    failed: BTreeSet<NodeIndex>,
    settling: Settling,
    listed: Option<Listed>,
    removal: Removal,
    /// When the last survey began, in seconds since 1970. The version is numbered by it: the put
    /// may have begun days before, and a mark of the name that is being collected may be younger.
    surveyed: u64,
    /// The time by which the version is numbered instead.
    time: Option<u64>,
    expected: Expected,
    /// The version that has the same bytes.
    old: Option<Version>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum PutPhase {
    Beginning,
    Surveying,
    Storing,
    Numbering,
    Writing,
    DeletingObjects,
    DeletingManifests,
    Discarding,
}

/// The outcome of [`Put`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PutOutcome {
    /// The version counts for every sure reader from now on.
    Committed {
        /// The version.
        listed: Listed,
        /// Whether something is left to repair: parts or manifests that are not where they belong,
        /// or older versions.
        is_owed: bool,
    },
    /// There is no object to remove: the name has no version, or a settled mark is the greatest.
    NotFound,
    /// The name has something else than the put expected. Nothing was made visible.
    Superseded,
    /// Nothing was made visible: too few nodes answered, or too few parts could be stored.
    Refused {
        /// Number of nodes that answered the last survey.
        answered: usize,
        /// Number of parts that were stored.
        stored: usize,
    },
    /// Too few nodes confirmed the manifest. Readers may find the new version or the one before.
    Open {
        /// The version.
        listed: Listed,
        /// Number of nodes that confirmed the manifest.
        written: usize,
    },
}

impl Put {
    /// Prepares a new version that consists of `object`, an id that nobody else uses.
    pub fn new(quorum: Quorum, object: ObjectId, content: NewParts) -> Self {
        let (length, settling) = match &content {
            NewParts::Inline { length, order } => (*length, Settling::on_few(order.clone())),
            NewParts::Removed { order } => (0, Settling::on_few(order.clone())),
            NewParts::Shards { .. } => (0, Settling::everywhere()),
        };
        Self {
            object,
            content,
            phase: PutPhase::Beginning,
            has_surveyed: false,
            has_stored: false,
            view: View::new(quorum),
            length,
            stored: PartPlaces::default(),
            failed: BTreeSet::new(),
            settling,
            listed: None,
            removal: Removal::default(),
            surveyed: 0,
            time: None,
            expected: Expected::Anything,
            old: None,
        }
    }

    /// Numbers the version by this time, in seconds since 1970, and not by that of its survey.
    pub fn at_time(self, time: u64) -> Self {
        Self { time: Some(time), ..self }
    }

    /// Makes the object replace `old`, a version with the same bytes, unless a version greater than
    /// `old` is found. The object's id must be greater than that of `old`.
    pub fn in_place_of(self, old: Version) -> Self {
        Self { old: Some(old), ..self }.expecting(Expected::Version(old))
    }

    /// Writes the version only if a survey, the last one before manifests are written, shows that
    /// the name has what is expected. A put that surveys at the same moment may still be missed.
    pub fn expecting(self, expected: Expected) -> Self {
        Self { expected, ..self }
    }

    /// Returns where parts were stored.
    pub fn stored(&self) -> &PartPlaces {
        &self.stored
    }

    /// Returns the nodes that have the manifest of a version.
    pub fn holders(&self, version: Version) -> BTreeSet<NodeIndex> {
        self.view.holders(version)
    }

    /// Returns the new version, once it has a generation. From then on it may be visible.
    #[cfg(test)]
    pub fn listed(&self) -> Option<Listed> {
        self.listed
    }

    /// Returns whether the put is in a survey which only shows whether enough nodes answer.
    #[cfg(test)]
    pub(crate) fn is_surveying_first(&self) -> bool {
        self.phase == PutPhase::Surveying
    }

    fn survey(&mut self, phase: PutPhase) -> NextStep<PutOutcome> {
        (self.phase, self.has_surveyed) = (phase, true);
        NextStep::Act(self.view.survey())
    }

    fn store(&mut self) -> NextStep<PutOutcome> {
        self.phase = PutPhase::Storing;
        let NewParts::Shards { spread, needed, .. } = &self.content else {
            return self.survey(PutPhase::Numbering);
        };
        let is_enough = self.stored.parts().count() >= *needed;
        let missing = (0..spread.homes.len()).map(PartIndex).filter(|&part| !self.stored.has(part));
        let chosen = match is_enough {
            true => spread.choose_spare(missing, &self.failed, &self.stored),
            false => spread.choose(missing, &self.failed, &self.stored),
        };
        let object = self.object;
        let store = |(part, node)| Action { node, request: Request::StorePart { object, part } };
        match (chosen.is_empty(), is_enough) {
            (false, _) => {
                self.has_stored = true;
                NextStep::Act(chosen.into_iter().map(store).collect())
            }
            (true, true) => self.survey(PutPhase::Numbering),
            (true, false) if self.has_surveyed => self.discard(),
            (true, false) => self.survey(PutPhase::Surveying),
        }
    }

    /// Whether the name has something else than the put expects.
    fn is_superseded(&self) -> bool {
        !self.expected.fits(self.view.object().map(|listed| listed.version))
    }

    /// Deletes the stored parts, which are not visible yet.
    fn discard(&mut self) -> NextStep<PutOutcome> {
        self.phase = PutPhase::Discarding;
        match self.content {
            NewParts::Shards { .. } if self.has_stored => {
                let nodes = self.view.quorum().indices();
                NextStep::Act(ask(nodes, Request::DeleteObject(self.object)))
            }
            _ => NextStep::Act(Vec::new()),
        }
    }

    /// Whether the object is removed already. A mark that is not settled does not suffice: a reader
    /// may miss it and find the object. Then another mark is written, which completes the removal.
    fn is_removed(&self) -> bool {
        self.view.latest().is_none_or(|latest| {
            latest.kind == VersionKind::Removed && self.view.is_settled(latest.version)
        })
    }

    fn number(&mut self) -> NextStep<PutOutcome> {
        let kind = match self.content {
            NewParts::Removed { .. } if self.is_removed() => {
                return NextStep::Done(PutOutcome::NotFound);
            }
            NewParts::Removed { .. } => VersionKind::Removed,
            NewParts::Shards { .. } | NewParts::Inline { .. } => VersionKind::Put,
        };
        let generation = match self.old {
            Some(old) => old.generation,
            None => self.view.next_generation(self.time.unwrap_or(self.surveyed)),
        };
        let version = Version { generation, object: self.object };
        self.write(Listed { version, kind, length: self.length })
    }

    /// Writes manifests, until enough nodes have one or all were asked.
    fn write(&mut self, listed: Listed) -> NextStep<PutOutcome> {
        (self.phase, self.listed) = (PutPhase::Writing, Some(listed));
        let actions = self.settling.next(&self.view, listed);
        let is_settled = self.view.is_settled(listed.version);
        match actions.is_empty() {
            false => NextStep::Act(actions),
            true if is_settled => self.delete_objects(),
            true => {
                let written = self.view.counted(listed.version);
                NextStep::Done(PutOutcome::Open { listed, written })
            }
        }
    }

    fn delete_objects(&mut self) -> NextStep<PutOutcome> {
        self.phase = PutPhase::DeletingObjects;
        self.removal = Removal::new(&self.view);
        NextStep::Act(self.removal.of_objects(self.view.quorum()))
    }

    fn delete_manifests(&mut self) -> NextStep<PutOutcome> {
        self.phase = PutPhase::DeletingManifests;
        NextStep::Act(self.removal.of_manifests(&self.view))
    }

    fn finish(&self) -> NextStep<PutOutcome> {
        match self.listed {
            Some(listed) => {
                let is_owed = self.owes(listed);
                NextStep::Done(PutOutcome::Committed { listed, is_owed })
            }
            None if self.view.is_sure() && self.is_superseded() => {
                NextStep::Done(PutOutcome::Superseded)
            }
            None => self.refuse(),
        }
    }

    fn owes(&self, listed: Listed) -> bool {
        let is_home = match &self.content {
            NewParts::Shards { spread, .. } => {
                let mut parts = (0..spread.homes.len()).map(PartIndex);
                parts.all(|part| spread.is_home(part, &self.stored))
            }
            NewParts::Inline { .. } | NewParts::Removed { .. } => true,
        };
        let is_settled = self.settling.is_complete(&self.view, listed);
        !is_home || !is_settled || !self.view.removable().is_empty()
    }

    fn refuse(&self) -> NextStep<PutOutcome> {
        let (answered, stored) = (self.view.answered().len(), self.stored.parts().count());
        NextStep::Done(PutOutcome::Refused { answered, stored })
    }
}

impl Procedure for Put {
    type Outcome = PutOutcome;

    fn note(&mut self, event: &Event) {
        self.view.note(event);
        self.settling.note(event);
        self.removal.note(event);
        let node = event.action.node;
        match (event.action.request, &event.answer) {
            (Request::StorePart { part, .. }, Answer::Stored { length }) => {
                self.length = *length;
                self.stored.add(part, node);
            }
            (Request::StorePart { .. }, _) => _ = self.failed.insert(node),
            _ => {}
        }
    }

    fn note_time(&mut self, now: u64) {
        self.surveyed = now;
    }

    fn next(&mut self) -> NextStep<PutOutcome> {
        match (self.phase, self.listed) {
            (PutPhase::Beginning, _) => match self.content {
                NewParts::Shards { asks_first: true, .. } => self.survey(PutPhase::Surveying),
                NewParts::Shards { asks_first: false, .. } => self.store(),
                NewParts::Inline { .. } | NewParts::Removed { .. } => {
                    self.survey(PutPhase::Numbering)
                }
            },
            (PutPhase::Surveying, _) if !self.view.takes_versions() || self.is_superseded() => {
                self.discard()
            }
            (PutPhase::Surveying | PutPhase::Storing, _) => self.store(),
            (PutPhase::Numbering, _) if !self.view.takes_versions() || self.is_superseded() => {
                self.discard()
            }
            (PutPhase::Writing, Some(listed)) => self.write(listed),
            (PutPhase::Numbering | PutPhase::Writing, _) => self.number(),
            (PutPhase::DeletingObjects, _) => self.delete_manifests(),
            (PutPhase::DeletingManifests | PutPhase::Discarding, _) => self.finish(),
        }
    }

    fn is_enough(&self) -> bool {
        match (self.phase, self.listed) {
            (PutPhase::Beginning | PutPhase::Storing, _) => false,
            (PutPhase::Surveying | PutPhase::Numbering, _) => self.view.takes_versions(),
            (PutPhase::Writing, Some(listed)) => self.view.is_settled(listed.version),
            (PutPhase::Writing, None) => false,
            (PutPhase::DeletingObjects | PutPhase::DeletingManifests | PutPhase::Discarding, _) => {
                true
            }
        }
    }
}
