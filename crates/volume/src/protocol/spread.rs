//! Where the parts of an object belong, and where they are.

use std::collections::{BTreeMap, BTreeSet};

use paritas_shards::ObjectId;

use crate::protocol::{Action, NodeIndex, PartIndex, Request};

/// Where the parts of an object belong.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Spread {
    /// The home of each part.
    pub homes: Vec<NodeIndex>,
    /// The nodes that may take a part if its home fails, the best first.
    pub substitutes: Vec<NodeIndex>,
    /// The number of each node's failure domain.
    pub domains: Vec<usize>,
}

/// Where the parts of an object are.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct PartPlaces(BTreeMap<PartIndex, BTreeSet<NodeIndex>>);

impl Spread {
    /// Returns the home of a part, if there is such a part.
    pub fn home(&self, part: PartIndex) -> Option<NodeIndex> {
        self.homes.get(part.0).copied()
    }

    /// Whether a part is on its home.
    pub fn is_home(&self, part: PartIndex, places: &PartPlaces) -> bool {
        self.home(part).is_some_and(|home| places.has_on(part, home))
    }

    /// Chooses a node for each of `parts`: its home, or, if the home is in `failed`, the substitute
    /// with the fewest parts in its failure domain and, among these, on the node itself. Parts that
    /// are at `places` already are counted, too. A part that finds no node is left out of the
    /// result.
    pub fn choose(
        &self,
        parts: impl IntoIterator<Item = PartIndex>,
        failed: &BTreeSet<NodeIndex>,
        places: &PartPlaces,
    ) -> Vec<(PartIndex, NodeIndex)> {
        self.choose_among(parts, failed, places, |_| true)
    }

    /// Chooses as [`Self::choose`] does, but only *spare* nodes. Even with the part, a spare node
    /// and its failure domain hold at most the number of parts that the fullest would hold if all
    /// parts were at home.
    pub fn choose_spare(
        &self,
        parts: impl IntoIterator<Item = PartIndex>,
        failed: &BTreeSet<NodeIndex>,
        places: &PartPlaces,
    ) -> Vec<(PartIndex, NodeIndex)> {
        let at_home: PartPlaces = (0..).map(PartIndex).zip(self.homes.iter().copied()).collect();
        let fullest = |load: &dyn Fn(NodeIndex) -> usize| {
            self.homes.iter().map(|&home| load(home)).max().unwrap_or(0)
        };
        let in_domain = fullest(&|node| self.load(&at_home, node).0);
        let on_node = fullest(&|node| self.load(&at_home, node).1);
        let is_spare = |(domain, node): (usize, usize)| domain < in_domain && node < on_node;
        self.choose_among(parts, failed, places, is_spare)
    }

    /// Chooses nodes whose load `is_allowed`.
    fn choose_among(
        &self,
        parts: impl IntoIterator<Item = PartIndex>,
        failed: &BTreeSet<NodeIndex>,
        places: &PartPlaces,
        is_allowed: impl Fn((usize, usize)) -> bool,
    ) -> Vec<(PartIndex, NodeIndex)> {
        let mut loads = places.clone();
        let choose = |part| {
            let serves =
                |node: &NodeIndex| !failed.contains(node) && is_allowed(self.load(&loads, *node));
            let substitutes = self.substitutes.iter().copied().filter(serves);
            let emptiest = substitutes.min_by_key(|&node| self.load(&loads, node));
            let node = self.home(part).filter(serves).or(emptiest)?;
            loads.add(part, node);
            Some((part, node))
        };
        parts.into_iter().filter_map(choose).collect()
    }

    /// Returns the number of parts in a node's failure domain, and the number on the node.
    fn load(&self, places: &PartPlaces, node: NodeIndex) -> (usize, usize) {
        let domain = |node: NodeIndex| self.domains.get(node.0).copied().unwrap_or(node.0);
        let in_domain = places.iter().filter(|(_, on)| domain(*on) == domain(node)).count();
        (in_domain, places.count_on(node))
    }
}

impl PartPlaces {
    /// Creates the places of an object before any place is known.
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Returns the actions that delete every part from its places.
    pub(crate) fn deletions(&self, object: ObjectId) -> Vec<Action> {
        let delete = |(part, node)| Action { node, request: Request::DeletePart { object, part } };
        self.iter().map(delete).collect()
    }

    /// Adds a place of a part.
    pub fn add(&mut self, part: PartIndex, node: NodeIndex) {
        self.0.entry(part).or_default().insert(node);
    }

    /// Takes in that a part is no longer on a node.
    pub fn remove(&mut self, part: PartIndex, node: NodeIndex) {
        if let Some(nodes) = self.0.get_mut(&part) {
            nodes.remove(&node);
            self.0.retain(|_, nodes| !nodes.is_empty());
        }
    }

    /// Whether all parts lack a place.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a part has a place.
    pub fn has(&self, part: PartIndex) -> bool {
        self.0.contains_key(&part)
    }

    /// Whether a part is on a node.
    pub fn has_on(&self, part: PartIndex, node: NodeIndex) -> bool {
        self.0.get(&part).is_some_and(|nodes| nodes.contains(&node))
    }

    /// Returns the nodes that have a part.
    pub fn of(&self, part: PartIndex) -> impl Iterator<Item = NodeIndex> + '_ {
        self.0.get(&part).into_iter().flatten().copied()
    }

    /// Returns the parts that are somewhere, ascending.
    pub fn parts(&self) -> impl Iterator<Item = PartIndex> + '_ {
        self.0.keys().copied()
    }

    /// Returns all pairs of a part and a node that has it.
    pub fn iter(&self) -> impl Iterator<Item = (PartIndex, NodeIndex)> + '_ {
        self.0.iter().flat_map(|(&part, nodes)| nodes.iter().map(move |&node| (part, node)))
    }

    fn count_on(&self, node: NodeIndex) -> usize {
        self.0.values().filter(|nodes| nodes.contains(&node)).count()
    }
}

impl FromIterator<(PartIndex, NodeIndex)> for PartPlaces {
    fn from_iter<T: IntoIterator<Item = (PartIndex, NodeIndex)>>(pairs: T) -> Self {
        let mut places = Self::new();
        pairs.into_iter().for_each(|(part, node)| places.add(part, node));
        places
    }
}
