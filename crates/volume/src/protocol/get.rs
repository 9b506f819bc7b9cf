//! Finding the version of a name that counts.

use std::collections::BTreeSet;

use crate::protocol::{
    Event, Listed, NextStep, NodeIndex, Procedure, Quorum, Version, VersionKind, View,
};

/// Surveys the nodes and takes the greatest version.
///
/// Reading the object comes after it. If its shards turn out to be gone, a newer version may have
/// replaced it in the meantime: then another survey ([`Self::again`]) finds that one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Get {
    view: View,
    unreadable: Option<Version>,
    began: bool,
}

/// The outcome of [`Get`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum GetOutcome {
    /// The name means this object. These nodes showed its manifest.
    Found(Listed, BTreeSet<NodeIndex>),
    /// No object has that name; the mark of its removal may still exist.
    NotFound(Option<Listed>),
    /// The name still means the object whose shards were missing: too much of it is lost.
    Lost(Listed),
    /// Too few nodes answered to be sure. This is the greatest version among their answers.
    Unsure(Option<Listed>),
}

impl Get {
    /// Prepares the first survey.
    pub fn new(quorum: Quorum) -> Self {
        Self { view: View::new(quorum), unreadable: None, began: false }
    }

    /// Prepares another survey, because the shards of `unreadable` were gone.
    pub fn again(quorum: Quorum, unreadable: Version) -> Self {
        Self { unreadable: Some(unreadable), ..Self::new(quorum) }
    }

    /// Returns what the nodes showed.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// Returns the nodes that showed the manifest of a version.
    pub fn holders(&self, version: Version) -> BTreeSet<NodeIndex> {
        self.view.holders(version)
    }

    fn outcome(&self) -> GetOutcome {
        match self.view.latest() {
            latest if !self.view.is_sure() => GetOutcome::Unsure(latest),
            Some(latest) if latest.kind == VersionKind::Removed => {
                GetOutcome::NotFound(Some(latest))
            }
            None => GetOutcome::NotFound(None),
            Some(latest) if self.unreadable == Some(latest.version) => GetOutcome::Lost(latest),
            Some(latest) => GetOutcome::Found(latest, self.view.holders(latest.version)),
        }
    }
}

impl Procedure for Get {
    type Outcome = GetOutcome;

    fn note(&mut self, event: &Event) {
        self.view.note(event);
    }

    fn next(&mut self) -> NextStep<GetOutcome> {
        if self.began {
            return NextStep::Done(self.outcome());
        }
        self.began = true;
        NextStep::Act(self.view.survey())
    }

    fn is_enough(&self) -> bool {
        self.view.is_sure()
    }
}
