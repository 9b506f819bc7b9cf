//! Which node each shard of an object belongs to: its *home*.
//!
//! Homes follow from the object's id and the list of nodes, so they are never stored. A failure
//! domain gets at most n / d shards, rounded up, if n shards go to d domains. Shards are given out
//! in order. Each goes to the node that has the fewest so far, among nodes in domains that may get
//! more. Ties go to a node in the emptiest domain, and then to the node whose hash with object and
//! shard is greatest (rendezvous hashing). So the fullest domain has the fewest possible shards,
//! and among all spreads with that property, this one puts the fewest on the fullest node.
//!
//! The hash is BLAKE3, in its mode for keys with the context `paritas volume placement 1`, of the
//! object's id and the node's name. Bytes 8i to 8i + 7 of its output, least byte first, are the
//! weight of the node for shard i.
//!
//! A drained node counts as having left the list already. So draining it moves everything that its
//! removal would move (its own shards, and in large volumes few others), and its removal then moves
//! nothing. Repair puts a shard whose home cannot take it on a substitute
//! ([`Members::substitutes`]).

use std::collections::BTreeSet;

use paritas_shards::ObjectId;
use paritas_store::error::{Error, Result};

use crate::protocol::NodeIndex;

/// A node as placement sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The node's name. Homes depend on it, so a node that replaces a lost one takes its name.
    pub name: String,
    /// The failure domain: nodes with equal domains are lost together.
    pub domain: String,
    /// Whether the node is drained: it no longer gets shards.
    pub is_drained: bool,
}

/// The nodes that shards are spread over.
#[derive(Debug, Clone)]
pub struct Members {
    members: Vec<Member>,
    /// The number of each node's failure domain.
    domains: Vec<usize>,
    domain_count: usize,
}

impl Members {
    /// Creates the list of a volume's nodes, in its order.
    ///
    /// # Errors
    /// If two nodes have one name, or if all nodes are drained.
    pub fn new(members: Vec<Member>) -> Result<Self> {
        for (at, member) in members.iter().enumerate() {
            if let Some(other) = members[..at].iter().position(|other| other.name == member.name) {
                let name = &member.name;
                return Err(Error::parameters(format!(
                    "nodes {other} and {at} are both called {name:?}"
                )));
            }
        }
        if members.iter().all(|member| member.is_drained) {
            let count = members.len();
            return Err(Error::parameters(format!("none of {count} nodes takes shards")));
        }
        let mut known: Vec<&str> = members.iter().map(|member| member.domain.as_str()).collect();
        known.sort_unstable();
        known.dedup();
        let number = |member: &Member| known.binary_search(&member.domain.as_str()).unwrap_or(0);
        let (domains, domain_count) = (members.iter().map(number).collect(), known.len());
        Ok(Self { members, domains, domain_count })
    }

    /// Returns the nodes.
    pub fn as_slice(&self) -> &[Member] {
        &self.members
    }

    /// Returns the number of each node's failure domain.
    pub fn domains(&self) -> &[usize] {
        &self.domains
    }

    /// Returns the home of each of an object's `shards` shards.
    pub fn homes(&self, object: ObjectId, shards: usize) -> Vec<NodeIndex> {
        let nodes: Vec<NodeIndex> = self.indices().filter(|&node| self.takes(node)).collect();
        let weights: Vec<_> =
            nodes.iter().map(|&node| self.weights(object, node, shards)).collect();
        let mut loads = Loads::new(self);
        let most = loads.most_per_domain(&nodes, shards);
        let choose = |shard: usize| {
            let may = |&at: &usize| loads.of(nodes[at]).0 < most;
            let key = |&at: &usize| {
                let (domain, node) = loads.of(nodes[at]);
                (node, domain, std::cmp::Reverse(weights[at][shard]))
            };
            let node = nodes[(0..nodes.len()).filter(may).min_by_key(key).unwrap_or(0)];
            loads.add(node);
            node
        };
        (0..shards).map(choose).collect()
    }

    /// Returns the nodes that may take a shard instead of its home, the best first: nodes whose
    /// domain has the fewest shards of the object, and among these the nodes with the fewest.
    /// `places` are the nodes of the object's other shards.
    pub fn substitutes(&self, object: ObjectId, places: &[NodeIndex]) -> Vec<NodeIndex> {
        let mut loads = Loads::new(self);
        places.iter().for_each(|&node| loads.add(node));
        let mut nodes: Vec<NodeIndex> = self.indices().filter(|&node| self.takes(node)).collect();
        nodes.sort_by_cached_key(|&node| {
            (loads.of(node), std::cmp::Reverse(self.weights(object, node, 1)[0]))
        });
        nodes
    }

    /// Returns the number of nodes that may be lost, whichever they are, if the shards of an object
    /// are in `places` and the loss of any `tolerance` shards is tolerable.
    pub fn losable_nodes(&self, places: &[NodeIndex], tolerance: usize) -> usize {
        losable(places.iter().map(|node| node.0), self.members.len(), tolerance)
    }

    fn indices(&self) -> impl Iterator<Item = NodeIndex> + use<> {
        (0..self.members.len()).map(NodeIndex)
    }

    /// Whether a node gets shards.
    fn takes(&self, node: NodeIndex) -> bool {
        !self.members[node.0].is_drained
    }

    /// Returns the weights of a node for the first `shards` shards of an object.
    fn weights(&self, object: ObjectId, node: NodeIndex, shards: usize) -> Vec<u64> {
        let mut hasher = blake3::Hasher::new_derive_key("paritas volume placement 1");
        hasher.update(object.as_bytes()).update(self.members[node.0].name.as_bytes());
        let mut stream = hasher.finalize_xof();
        let mut weight = || {
            let mut bytes = [0; 8];
            stream.fill(&mut bytes);
            u64::from_le_bytes(bytes)
        };
        (0..shards).map(|_| weight()).collect()
    }
}

/// Number of an object's shards in each domain and on each node.
struct Loads<'a> {
    members: &'a Members,
    domains: Vec<usize>,
    nodes: Vec<usize>,
}

impl<'a> Loads<'a> {
    fn new(members: &'a Members) -> Self {
        let (domains, nodes) = (vec![0; members.domain_count], vec![0; members.members.len()]);
        Self { members, domains, nodes }
    }

    fn add(&mut self, node: NodeIndex) {
        self.domains[self.members.domains[node.0]] += 1;
        self.nodes[node.0] += 1;
    }

    /// Returns the smallest possible number of shards in the fullest domain of `nodes` if these
    /// nodes get `missing` more shards.
    fn most_per_domain(&self, nodes: &[NodeIndex], missing: usize) -> usize {
        let domains: BTreeSet<usize> =
            nodes.iter().map(|node| self.members.domains[node.0]).collect();
        let room = |most: usize| -> usize {
            domains.iter().map(|&domain| most.saturating_sub(self.domains[domain])).sum()
        };
        let enough = self.domains.iter().max().copied().unwrap_or(0) + missing;
        (0..enough).find(|&most| room(most) >= missing).unwrap_or(enough)
    }

    /// Returns the number of shards in a node's domain, and the number on the node.
    fn of(&self, node: NodeIndex) -> (usize, usize) {
        (self.domains[self.members.domains[node.0]], self.nodes[node.0])
    }
}

/// Returns how many of `count` groups may be lost, whichever they are, if `groups` are the groups
/// of all shards and the loss of any `tolerance` shards is tolerable.
fn losable(groups: impl Iterator<Item = usize>, count: usize, tolerance: usize) -> usize {
    let mut sizes = vec![0; count];
    groups.for_each(|group| sizes[group] += 1);
    sizes.sort_unstable_by_key(|&size| std::cmp::Reverse(size));
    let lost = sizes.iter().scan(0, |lost, size| {
        *lost += size;
        Some(*lost)
    });
    // The last group must stay, even if the others are empty.
    lost.take_while(|&lost| lost <= tolerance).count().min(count.saturating_sub(1))
}

#[cfg(test)]
mod tests;
