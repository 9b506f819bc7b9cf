//! Finding orphans: objects that nobody will ever use, because their writer stopped before its
//! first manifest.

use std::collections::BTreeSet;
use std::time::Duration;

use paritas_shards::ObjectId;

use crate::protocol::{NodeIndex, Quorum};

/// Age from which a file counts as left behind. A client gives up long before that.
const OLD: Duration = Duration::from_secs(24 * 60 * 60);

/// What complete listings of nodes show about all objects of a volume.
#[derive(Debug, Clone)]
pub struct Census {
    quorum: Quorum,
    answered: BTreeSet<NodeIndex>,
    found: BTreeSet<ObjectId>,
    /// The objects that have a manifest, or a file that is not old.
    kept: BTreeSet<ObjectId>,
}

impl Census {
    /// Creates the census before any node was listed.
    pub fn new(quorum: Quorum) -> Self {
        let [found, kept] = [const { BTreeSet::new() }; 2];
        Self { quorum, answered: BTreeSet::new(), found, kept }
    }

    /// Takes in the manifest of an object.
    pub fn manifest(&mut self, object: ObjectId) {
        self.kept.insert(object);
    }

    /// Takes in a part or the heartbeat of an object. `age` is how old the file is by the clock of
    /// its node; a file of unknown age counts as new.
    pub fn file(&mut self, object: ObjectId, age: Option<Duration>) {
        self.found.insert(object);
        if age.is_none_or(|age| age < OLD) {
            self.kept.insert(object);
        }
    }

    /// Takes in that a node was listed to the end.
    pub fn listed(&mut self, node: NodeIndex) {
        self.answered.insert(node);
    }

    /// Returns the objects that may be deleted from all nodes. There are none unless every node
    /// was listed to the end: the only manifest of an object may be on the one that was not, and
    /// counts as soon as that node answers.
    pub fn orphans(&self) -> impl Iterator<Item = ObjectId> + '_ {
        let is_complete = self.answered.len() == self.quorum.nodes();
        self.found.difference(&self.kept).copied().filter(move |_| is_complete)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_old_objects_without_manifests_are_orphans_and_only_if_all_nodes_answered() {
        let [left, named, young, unknown, running] =
            [1, 2, 3, 4, 5].map(|id| ObjectId::new([id; 16]));
        let mut census = Census::new(Quorum::new(3, 1).unwrap());
        for object in [left, named, young, running] {
            census.file(object, Some(OLD));
        }
        census.manifest(named);
        census.file(young, Some(OLD - Duration::from_secs(1)));
        census.file(unknown, None);
        census.file(running, Some(Duration::ZERO));
        census.listed(NodeIndex(0));
        census.listed(NodeIndex(1));
        assert_eq!(census.orphans().count(), 0, "node 2 is silent");
        census.listed(NodeIndex(2));
        assert_eq!(census.orphans().collect::<Vec<_>>(), [left]);
    }
}
