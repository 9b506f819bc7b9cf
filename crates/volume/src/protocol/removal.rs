//! Removing the versions that a settled one replaced.
//!
//! The shards of a version go first, its manifests last: as long as a manifest exists, repair finds
//! the remains. The node's client checks by a manifest that the shards belong to the name
//! ([`Request::DeleteOlder`]). If a node did not confirm that it deleted the shards, the manifests
//! stay.

use std::collections::BTreeSet;

use crate::protocol::action::ask;
use crate::protocol::{Action, Event, Listed, Quorum, Request, VersionKind, View};

/// The removal of some versions; of none by default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Removal {
    versions: BTreeSet<Listed>,
}

impl Removal {
    /// Selects every version that `view` allows to be removed.
    pub fn new(view: &View) -> Self {
        Self { versions: view.removable().into_iter().collect() }
    }

    /// Returns the actions that delete shards.
    pub fn of_objects(&self, quorum: Quorum) -> Vec<Action> {
        let objects = self.versions.iter().filter(|listed| listed.kind == VersionKind::Put);
        let delete = |listed: &Listed| ask(quorum.indices(), Request::DeleteOlder(*listed));
        objects.flat_map(delete).collect()
    }

    /// Takes in an answer. If shards of a version may be left, the version stays.
    pub fn note(&mut self, event: &Event) {
        if let (Request::DeleteOlder(listed), false) = (event.action.request, event.is_done()) {
            self.versions.remove(&listed);
        }
    }

    /// Returns the actions that delete the manifests of versions whose shards are all deleted.
    pub fn of_manifests(&self, view: &View) -> Vec<Action> {
        let delete = |&listed: &Listed| {
            ask(view.superseded_on(listed.version), Request::DeleteManifest(listed))
        };
        self.versions.iter().flat_map(delete).collect()
    }
}
