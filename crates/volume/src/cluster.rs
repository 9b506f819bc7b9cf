//! The nodes of a volume in use, and what every job needs to know about them.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use paritas::{Code, Spec};
use paritas_shards::ObjectId;
use paritas_store::error::{Error, ErrorKind, Result};
use paritas_store::object::layout::ObjectLayout;

use crate::flaw::Flaw;
use crate::marks::{Mark, NodeTrouble, foreign, is_blank, unmarked};
use crate::names::{ObjectName, READY};
use crate::node::{Limited, Node};
use crate::placement::{Member, Members};
use crate::protocol::{NodeIndex, Quorum, Spread};
use crate::setup::Setup;
use crate::stages::{allowed_losses, losses_at, parts_of, shard_tolerance};
use crate::strangers::Strangers;
use crate::transfer::{Pace, Place};
use crate::turns::NameTurns;

/// Largest number of attempts at work on an object, if other processes keep replacing the object
/// meanwhile.
pub(crate) const MOST_ATTEMPTS: usize = 5;

/// The nodes of a volume, its code, and how it is used.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub setup: Setup,
    pub members: Members,
    pub quorum: Quorum,
    paces: Vec<Arc<Pace>>,
    /// For each node, when its mark was last seen.
    marks: Vec<Mark>,
    /// The manifests on the nodes that do not belong there.
    pub strangers: Strangers,
    /// The names that writers of this process are at.
    pub turns: NameTurns,
    watcher: Option<Watcher>,
}

/// Is told the bytes of each object that are done.
type Watch = dyn Fn(&ObjectName, u64) + Send + Sync;

struct Watcher(Arc<Watch>);

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watcher")
    }
}

impl Cluster {
    /// Prepares the nodes of a volume.
    ///
    /// # Errors
    /// If the code or the list of nodes cannot be used, or if fewer nodes may be lost than stated
    /// ([`ErrorKind::Parameters`]).
    pub fn new(mut setup: Setup) -> Result<Self> {
        // The quorum takes the last nodes as drained.
        setup.nodes.sort_by_key(|(member, _)| member.is_drained);
        let members: Vec<Member> = setup.nodes.iter().map(|(member, _)| member.clone()).collect();
        let members = Members::new(members)?;
        let count = setup.nodes.len();
        let drained = members.as_slice().iter().filter(|member| member.is_drained).count();
        let losses = allowed_losses(&setup.code, setup.losses, count, count - drained)?;
        let quorum = Quorum::new(count, losses)?.with_drained(drained)?;
        let paces = (0..count).map(|_| Arc::new(Pace::default())).collect();
        let marks = (0..count).map(|_| Mark::default()).collect();
        let (strangers, turns) = (Strangers::default(), NameTurns::default());
        Ok(Self { setup, members, quorum, paces, marks, strangers, turns, watcher: None })
    }

    /// Limits the traffic with each node to `rate` bytes a second in each direction.
    pub fn limit(&mut self, rate: u64) {
        for (_, node) in &mut self.setup.nodes {
            *node = Arc::new(Limited::to_rate(Arc::clone(node), rate));
        }
    }

    /// Has `progress` called with the number of bytes of each object that are done.
    pub fn watch(&mut self, progress: impl Fn(&ObjectName, u64) + Send + Sync + 'static) {
        self.watcher = Some(Watcher(Arc::new(progress)));
    }

    pub fn advance(&self, name: &ObjectName, bytes: u64) {
        self.watcher.iter().for_each(|Watcher(progress)| progress(name, bytes));
    }

    /// Checks that a node bears the mark of this volume, unless it was seen a short while ago
    /// ([`Mark::look`]). A node that lost its files has no mark, and must not count as proof that
    /// an object does not exist.
    pub async fn expect_ready(&self, node: NodeIndex) -> Result<()> {
        let Some(look) = self.marks[node.0].look() else { return Ok(()) };
        let storage = self.node(node);
        let checked = match storage.read(READY, None).await {
            Ok(found) if *found == *self.mark_of(node).as_bytes() => Ok(()),
            Ok(found) if is_blank(&found) => Err(unmarked(storage, "its file `ready` is damaged")),
            Ok(found) => Err(foreign(storage, &self.setup.id, &found)),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Err(unmarked(storage, "it is empty or another place"))
            }
            Err(error) => Err(error),
        };
        self.marks[node.0].note(&checked);
        look.end(checked.is_ok());
        checked
    }

    /// Returns the nodes that could not be used when they were last looked at, and why.
    pub fn troubles(&self) -> Vec<(&Member, NodeTrouble)> {
        let members = self.members.as_slice().iter().zip(&self.marks);
        members.filter_map(|(member, mark)| Some((member, mark.trouble()?))).collect()
    }

    /// Returns a node to write to, if it bears the mark of this volume. Files written to a place
    /// without the mark, such as the mount point of a disk that is not mounted, would be hidden or
    /// lost later.
    pub async fn writable(&self, node: NodeIndex) -> Result<&Arc<dyn Node>> {
        self.expect_ready(node).await.map(|()| self.node(node))
    }

    pub fn mark_of(&self, node: NodeIndex) -> String {
        format!("{} {}\n", self.setup.id, self.members.as_slice()[node.0].name)
    }

    /// Returns the number of nodes that may be lost, whichever they are.
    pub fn tolerance(&self) -> usize {
        self.quorum.to_write() - 1
    }

    /// Returns the number of nodes that may be lost, whichever they are, before an object is
    /// promoted. It is [`Self::tolerance`] if the code has one stage.
    pub fn tolerance_before_promotion(&self) -> usize {
        let (code, quorum) = (&self.setup.code, self.quorum);
        losses_at(code, 1, quorum.nodes(), quorum.serving()).min(self.tolerance())
    }

    /// Returns the number of nodes that may be lost, whichever they are, if the shards of an object
    /// in some stage of its code are at `places` and `manifests` nodes have its manifest. The list
    /// has a pair of a shard and a node for each file; shards that are not listed are lost.
    pub fn losable_nodes(
        &self,
        code: &Code,
        stage: u8,
        places: &BTreeSet<(usize, NodeIndex)>,
        manifests: usize,
    ) -> usize {
        let shards: BTreeSet<usize> = places.iter().map(|&(shard, _)| shard).collect();
        let all = parts_of(code).into_iter().filter(|part| part.stage <= stage);
        let all: BTreeSet<usize> = all.map(|part| part.shard).collect();
        let missing = all.difference(&shards).count();
        let nodes: Vec<NodeIndex> = places.iter().map(|&(_, node)| node).collect();
        let of_shards = match shard_tolerance(code, stage).checked_sub(missing) {
            Some(tolerance) => self.members.losable_nodes(&nodes, tolerance),
            None => 0,
        };
        of_shards.min(manifests.saturating_sub(1)).min(self.tolerance())
    }

    pub fn nodes(&self) -> impl Iterator<Item = NodeIndex> + use<> {
        (0..self.setup.nodes.len()).map(NodeIndex)
    }

    pub fn node(&self, node: NodeIndex) -> &Arc<dyn Node> {
        &self.setup.nodes[node.0].1
    }

    /// Returns the place of a file on a node.
    pub fn place(&self, node: NodeIndex, path: String) -> Place {
        let pace = Arc::clone(&self.paces[node.0]);
        Place { node: Arc::clone(self.node(node)), pace, path }
    }

    /// Returns the name of a node.
    pub fn node_name(&self, node: NodeIndex) -> &str {
        &self.members.as_slice()[node.0].name
    }

    pub fn find_node(&self, name: &str) -> Option<NodeIndex> {
        let mut members = self.members.as_slice().iter();
        members.position(|member| member.name == name).map(NodeIndex)
    }

    /// Returns the node called `name`.
    ///
    /// # Errors
    /// If the volume has no such node ([`ErrorKind::Parameters`]).
    pub fn named(&self, name: &str) -> Result<NodeIndex> {
        let names = self.members.as_slice().iter().map(|member| &*member.name);
        self.find_node(name).ok_or_else(|| unknown(name, names))
    }

    /// Returns the flaw that reports the failure of a node.
    pub fn flaw(&self, node: NodeIndex, error: &Error) -> Flaw {
        Flaw::new(self.node_name(node), None, error.message())
    }

    /// Returns where the parts of an object belong. A part that a later stage adds to a shard
    /// belongs on the shard's node.
    pub fn spread(&self, object: ObjectId, code: &Code) -> Spread {
        let shards = self.members.homes(object, code.node_count());
        let parts = parts_of(code);
        let homes: Vec<NodeIndex> = parts.iter().map(|part| shards[part.shard]).collect();
        let substitutes = self.members.substitutes(object, &shards);
        Spread { homes, substitutes, domains: self.members.domains().to_vec() }
    }

    /// Returns the nodes for a manifest with content, the best first.
    pub fn inline_order(&self, object: ObjectId) -> Vec<NodeIndex> {
        let copies = self.members.homes(object, self.quorum.to_write());
        let others = self.members.substitutes(object, &copies);
        let mut order: Vec<NodeIndex> = Vec::new();
        for node in copies.into_iter().chain(others) {
            if !order.contains(&node) {
                order.push(node);
            }
        }
        order
    }

    /// Checks that the memory which the volume file allows has room for a segment of an object: a
    /// block of every shard. Otherwise the object could not be written, read or repaired within it.
    ///
    /// # Errors
    /// If the allowed memory is too small ([`ErrorKind::Memory`]).
    pub fn expect_room(&self, name: &ObjectName, layout: &ObjectLayout) -> Result<()> {
        let (needed, memory) = (layout.segment_memory(), self.setup.settings.memory);
        match needed <= memory {
            true => Ok(()),
            false => Err(Error::new(
                ErrorKind::Memory,
                format!(
                    "{name}: one block of each of its shards takes {needed} bytes of memory, but \
                     `limits.memory` is {memory}; raise it in the volume file"
                ),
            )),
        }
    }

    /// Returns the layout that a front header states.
    pub fn layout_of(&self, header: &[u8]) -> Result<ObjectLayout> {
        ObjectLayout::read(header, |_: &Spec| self.setup.options.clone())
    }
}

/// Returns the error for an unknown node; it lists the existing `names`.
pub(crate) fn unknown<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Error {
    let names = names.collect::<Vec<_>>().join(", ");
    Error::parameters(format!("the volume has no node called {name}; it has {names}"))
}
