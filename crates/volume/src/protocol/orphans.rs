//! Finding orphans: objects that nobody will ever use, because their writer stopped before its
//! first manifest.

use std::collections::BTreeSet;
use std::time::Duration;

use paritas_shards::ObjectId;

use crate::protocol::{NodeIndex, Quorum};

/// Age from which a file counts as left behind. A working client gives up long before that.
const OLD: Duration = Duration::from_secs(24 * 60 * 60);

/// What complete listings of nodes show about all objects of a volume.
#[derive(Debug, Clone)]
pub struct Census {
    quorum: Quorum,
    answered: BTreeSet<NodeIndex>,
    found: BTreeSet<ObjectId>,
    /// The objects that have a manifest.
    named: BTreeSet<ObjectId>,
    /// The objects that have a file which is not old.
    young: BTreeSet<ObjectId>,
    /// The objects whose writer is known to have ended before its first manifest.
    given_up: BTreeSet<ObjectId>,
}

impl Census {
    /// Creates the census before any node was listed.
    pub fn new(quorum: Quorum) -> Self {
        let [found, named, young, given_up] = [const { BTreeSet::new() }; 4];
        Self { quorum, answered: BTreeSet::new(), found, named, young, given_up }
    }

    /// Takes in the manifest of an object.
    pub fn manifest(&mut self, object: ObjectId) {
        self.named.insert(object);
    }

    /// Takes in that the writer of an object has ended without asking for a manifest to be written.
    pub fn given_up(&mut self, object: ObjectId) {
        self.given_up.insert(object);
    }

    /// Takes in a part or the heartbeat of an object. `age` is how old the file is by the clock of
    /// its node; a file of unknown age counts as new.
    pub fn file(&mut self, object: ObjectId, age: Option<Duration>) {
        self.found.insert(object);
        if age.is_none_or(|age| age < OLD) {
            self.young.insert(object);
        }
    }

    /// Takes in that a node was listed to the end.
    pub fn listed(&mut self, node: NodeIndex) {
        self.answered.insert(node);
    }

    /// Returns whether every node was listed to the end.
    pub fn is_complete(&self) -> bool {
        self.answered.len() == self.quorum.nodes()
    }

    /// Returns the objects that may be deleted from all nodes.
    ///
    /// Unless the writer is known to have ended before its first manifest, all files must be old,
    /// and every node must be listed to the end. Otherwise the only manifest of an object may be on
    /// a node that was not listed, and would count as soon as that node answers.
    pub fn orphans(&self) -> impl Iterator<Item = ObjectId> + '_ {
        let is_complete = self.is_complete();
        let is_over = move |object: &ObjectId| {
            self.given_up.contains(object) || is_complete && !self.young.contains(object)
        };
        self.found.difference(&self.named).copied().filter(is_over)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_old_objects_without_manifests_are_orphans_and_only_if_all_nodes_answered() {
        let [left, named, young, unknown, running, given_up] =
            [1, 2, 3, 4, 5, 6].map(|id| ObjectId::new([id; 16]));
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
        let mut census = Census::new(Quorum::new(3, 1).unwrap());
        for object in [given_up, named, young] {
            census.file(object, Some(Duration::ZERO));
        }
        [given_up, named, left].into_iter().for_each(|object| census.given_up(object));
        census.manifest(named);
        assert_eq!(census.orphans().collect::<Vec<_>>(), [given_up], "no node need answer");
    }
}
