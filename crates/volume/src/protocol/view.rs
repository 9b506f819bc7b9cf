//! The knowledge about a name: the versions that each node showed.

use std::collections::{BTreeMap, BTreeSet};

use crate::protocol::action::ask;
use crate::protocol::{
    Action, Answer, Event, Listed, NodeIndex, Quorum, Request, Version, VersionKind,
};

/// Seconds for which the mark of a removed name is kept: one day.
pub(crate) const DAY: u64 = 86_400;

/// The answers of nodes that were asked for the versions of one name, and the manifests that were
/// written or deleted since.
///
/// A node that did not answer is unknown. So is a node that is empty because it replaced a lost one
/// and has not received its manifests yet: its answer would count as proof that the name has no
/// version.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct View {
    quorum: Quorum,
    answered: BTreeSet<NodeIndex>,
    holders: BTreeMap<Listed, BTreeSet<NodeIndex>>,
}

impl View {
    /// Creates the view before any node was asked.
    pub fn new(quorum: Quorum) -> Self {
        Self { quorum, answered: BTreeSet::new(), holders: BTreeMap::new() }
    }

    /// Forgets all answers, and returns the actions that ask all nodes.
    pub(crate) fn survey(&mut self) -> Vec<Action> {
        *self = Self::new(self.quorum);
        ask(self.quorum.indices(), Request::ListVersions)
    }

    /// Takes in the answer of a node: all versions that it has.
    pub fn answer(&mut self, node: NodeIndex, versions: impl IntoIterator<Item = Listed>) {
        self.answered.insert(node);
        self.holders.values_mut().for_each(|nodes| _ = nodes.remove(&node));
        versions.into_iter().for_each(|listed| self.written(node, listed));
        self.forget_unheld();
    }

    /// Takes in that a node has a version, because it confirmed the write.
    pub fn written(&mut self, node: NodeIndex, listed: Listed) {
        self.holders.entry(listed).or_default().insert(node);
    }

    /// Takes in that a node no longer has a version.
    pub fn deleted(&mut self, node: NodeIndex, version: Version) {
        let of_version = self.holders.iter_mut().filter(|(listed, _)| listed.version == version);
        of_version.for_each(|(_, nodes)| _ = nodes.remove(&node));
        self.forget_unheld();
    }

    fn forget_unheld(&mut self) {
        self.holders.retain(|_, nodes| !nodes.is_empty());
    }

    /// Returns the quorum by which this view judges.
    pub fn quorum(&self) -> Quorum {
        self.quorum
    }

    /// Whether enough nodes answered to be sure of what they show.
    pub fn is_sure(&self) -> bool {
        self.answered.len() >= self.quorum.to_read()
    }

    /// Whether a new version may be written: enough nodes answered to be sure of what they show,
    /// and enough of these are not drained to settle the version. With fewer, the outcome of a
    /// write would be open.
    pub(crate) fn takes_versions(&self) -> bool {
        let serving = self.answered.iter().filter(|&&node| self.quorum.counts(node)).count();
        self.is_sure() && serving >= self.quorum.to_write()
    }

    /// Whether every node of the volume answered.
    pub fn is_complete(&self) -> bool {
        self.answered.len() == self.quorum.nodes()
    }

    /// Returns the nodes that answered.
    pub fn answered(&self) -> &BTreeSet<NodeIndex> {
        &self.answered
    }

    /// Returns all versions that any node has, from the least to the greatest.
    pub fn versions(&self) -> impl DoubleEndedIterator<Item = Listed> + '_ {
        self.holders.keys().copied()
    }

    /// Returns the greatest version.
    pub fn latest(&self) -> Option<Listed> {
        self.versions().next_back()
    }

    /// Returns the greatest version, if its kind is [`VersionKind::Put`].
    pub fn object(&self) -> Option<Listed> {
        self.latest().filter(|latest| latest.kind == VersionKind::Put)
    }

    /// Returns the generation of the version that is written next: one more than the greatest that
    /// is known, but at least `now`, the seconds since 1970. So it also exceeds the generation of a
    /// mark that was collected and may still be on a node that did not answer.
    pub fn next_generation(&self, now: u64) -> u64 {
        let next = self.latest().map_or(1, |latest| latest.version.generation.saturating_add(1));
        next.max(now)
    }

    /// Returns the nodes that are known to have a version.
    pub fn holders(&self, version: Version) -> BTreeSet<NodeIndex> {
        let of_version = self.holders.iter().filter(|(listed, _)| listed.version == version);
        of_version.flat_map(|(_, nodes)| nodes.iter().copied()).collect()
    }

    /// Returns the nodes that are known to have a version less than this one.
    pub fn behind(&self, version: Version) -> BTreeSet<NodeIndex> {
        let lesser = self.holders.iter().filter(|(listed, _)| listed.version < version);
        lesser.flat_map(|(_, nodes)| nodes.iter().copied()).collect()
    }

    /// Returns the nodes on which the manifest of a version that may be removed is deleted: those
    /// that have a greater one. A node that had none left could make a reader miss both, if the
    /// reader has asked other nodes before these got the greater one, and asks this node now. A
    /// drained node does not matter, because no version rests on it.
    pub fn superseded_on(&self, version: Version) -> BTreeSet<NodeIndex> {
        let has_greater = |node: &NodeIndex| {
            self.holders.iter().any(|(listed, on)| listed.version > version && on.contains(node))
        };
        let mut nodes = self.holders(version);
        nodes.retain(|node| !self.quorum.counts(*node) || has_greater(node));
        nodes
    }

    /// Returns the number of nodes that are known to have a version and are not drained.
    pub fn counted(&self, version: Version) -> usize {
        self.holders(version).into_iter().filter(|&node| self.quorum.counts(node)).count()
    }

    /// Whether a version is settled: at least [`Quorum::to_write`] nodes that are not drained are
    /// known to have it, so every sure reader finds it.
    pub fn is_settled(&self, version: Version) -> bool {
        self.counted(version) >= self.quorum.to_write()
    }

    /// Returns the greatest settled version.
    pub fn settled(&self) -> Option<Listed> {
        self.versions().rev().find(|listed| self.is_settled(listed.version))
    }

    /// Returns the versions that may be removed: versions less than a settled one.
    pub fn removable(&self) -> Vec<Listed> {
        let settled = self.settled();
        let older = |listed: &Listed| settled.is_some_and(|by| listed.version < by.version);
        self.versions().filter(older).collect()
    }

    /// Returns the versions that count or may come to count: the greatest settled one and all
    /// greater ones. If none is settled, these are all versions.
    pub fn candidates(&self) -> Vec<Listed> {
        let settled = self.settled();
        let counts = |listed: &Listed| settled.is_none_or(|by| listed.version >= by.version);
        self.versions().filter(counts).collect()
    }

    /// Returns whether a version is obsolete: it may be removed, or no node is known to have it.
    pub fn is_gone(&self, version: Version) -> bool {
        let is_removable = self.removable().iter().any(|listed| listed.version == version);
        is_removable || self.holders(version).is_empty()
    }

    /// Takes in the answer to an action.
    pub fn note(&mut self, event: &Event) {
        let node = event.action.node;
        match (event.action.request, &event.answer) {
            (Request::ListVersions, Answer::Versions(versions)) => {
                self.answer(node, versions.iter().copied());
            }
            (Request::WriteManifest(listed), Answer::Done) => self.written(node, listed),
            (Request::DeleteManifest(listed), Answer::Done) => self.deleted(node, listed.version),
            _ => {}
        }
    }

    /// Returns whether the mark of a removed name may be collected: every node answered, none has
    /// any other version of the name, and the mark was made more than a day before `now`, the
    /// seconds since 1970.
    pub fn is_collectable(&self, now: u64) -> bool {
        let is_old = |mark: Listed| mark.version.generation.saturating_add(DAY) < now;
        let is_mark = |mark: &Listed| mark.kind == VersionKind::Removed && is_old(*mark);
        self.is_complete() && self.holders.len() == 1 && self.latest().as_ref().is_some_and(is_mark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paritas_shards::ObjectId;

    fn put(generation: u64, id: u8) -> Listed {
        let version = Version { generation, object: ObjectId::new([id; 16]) };
        Listed { version, kind: VersionKind::Put, length: 1 }
    }

    fn removed(generation: u64) -> Listed {
        Listed { kind: VersionKind::Removed, length: 0, ..put(generation, 9) }
    }

    /// Returns the view of four nodes with these answers. One node may be lost.
    fn view(answers: &[&[Listed]]) -> View {
        let mut view = View::new(Quorum::new(4, 1).unwrap());
        for (node, versions) in answers.iter().enumerate() {
            view.answer(NodeIndex(node), versions.iter().copied());
        }
        view
    }

    #[test]
    fn the_greatest_generation_counts_and_then_the_greatest_id() {
        let seen = view(&[&[put(1, 9)], &[put(2, 1)], &[put(2, 3), put(2, 2)]]);
        assert_eq!(seen.latest(), Some(put(2, 3)));
        assert_eq!([0, 3, 7].map(|now| seen.next_generation(now)), [3, 3, 7]);
        assert_eq!(view(&[&[put(1, 1)], &[removed(2)]]).object(), None);
        assert_eq!(view(&[]).next_generation(0), 1);
    }

    #[test]
    fn three_answers_of_four_are_sure_and_none_twice() {
        let mut seen = view(&[&[], &[]]);
        assert!(!seen.is_sure());
        seen.answer(NodeIndex(1), []);
        assert!(!seen.is_sure());
        seen.answer(NodeIndex(2), []);
        assert!(seen.is_sure() && !seen.is_complete());
    }

    #[test]
    fn a_version_is_only_written_where_enough_nodes_answer_to_settle_it() {
        // Of four nodes any two may be lost: two answers are sure, but three nodes must take it.
        let mut seen = View::new(Quorum::new(4, 2).unwrap());
        [0, 1].into_iter().for_each(|node| seen.answer(NodeIndex(node), []));
        assert!(seen.is_sure() && !seen.takes_versions());
        seen.answer(NodeIndex(3), []);
        assert!(seen.takes_versions());
        // A drained node does not take new versions.
        let drained = Quorum::new(4, 1).unwrap().with_drained(2).unwrap();
        let mut seen = View::new(drained);
        [1, 2, 3].into_iter().for_each(|node| seen.answer(NodeIndex(node), []));
        assert!(seen.is_sure() && !seen.takes_versions());
    }

    #[test]
    fn only_versions_before_a_settled_one_may_go() {
        let mut seen = view(&[&[put(1, 1), put(2, 2)], &[put(1, 1)], &[put(3, 3)]]);
        assert_eq!(
            seen.removable(),
            [],
            "version 1 is the least, versions 2 and 3 are on one node"
        );
        assert_eq!((seen.settled(), seen.candidates().len()), (Some(put(1, 1)), 3));
        seen.written(NodeIndex(3), put(2, 2));
        assert_eq!(seen.removable(), [put(1, 1)]);
        assert_eq!(seen.candidates(), [put(2, 2), put(3, 3)]);
        seen.written(NodeIndex(3), put(3, 3));
        assert_eq!(seen.removable(), [put(1, 1), put(2, 2)]);
        seen.answer(NodeIndex(3), []);
        assert_eq!(seen.removable(), [], "the node lost what it had");
        let seen = view(&[&[put(1, 1)], &[put(2, 2)]]);
        assert_eq!((seen.settled(), seen.candidates()), (None, vec![put(1, 1), put(2, 2)]));
    }

    #[test]
    fn a_version_is_deleted_where_a_greater_one_is() {
        let seen = view(&[&[put(1, 1), put(2, 2)], &[put(1, 1)], &[put(2, 2)], &[]]);
        let old = put(1, 1).version;
        assert_eq!(seen.superseded_on(old), BTreeSet::from([NodeIndex(0)]));
        assert_eq!(seen.behind(put(2, 2).version), BTreeSet::from([0, 1].map(NodeIndex)));
        let mut drained = View::new(Quorum::new(4, 1).unwrap().with_drained(1).unwrap());
        drained.answer(NodeIndex(3), [put(1, 1)]);
        assert_eq!(drained.superseded_on(old), BTreeSet::from([NodeIndex(3)]));
    }

    #[test]
    fn a_mark_goes_if_all_nodes_show_nothing_else() {
        let mark = removed(5);
        let later = 5 + DAY + 1;
        assert!(view(&[&[mark], &[], &[mark], &[]]).is_collectable(later));
        assert!(!view(&[&[mark], &[], &[mark], &[]]).is_collectable(later - 1), "too young");
        assert!(!view(&[&[mark], &[], &[mark]]).is_collectable(later), "a node is silent");
        assert!(!view(&[&[mark], &[put(4, 1)], &[], &[]]).is_collectable(later));
        assert!(!view(&[&[put(4, 1)], &[], &[], &[]]).is_collectable(later));
    }
}
