//! A volume in use: its nodes, its code, and what every operation needs.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytesize::ByteSize;
use futures::StreamExt;
use futures::future::join_all;
use paritas::{Code, CodecOptions, NodeId, Spec};
use paritas_shards::blocks::ObjectLayout;
use paritas_shards::{ObjectId, Part};
use paritas_store::error::{Error, ErrorKind, Result};

use crate::names::{ObjectName, READY};
use crate::node::{Limited, Mode, Node, Probe, is_refusal, probe, remove_probes};
use crate::placement::{Member, Members};
use crate::protocol::{NodeIndex, Quorum, Spread};
use crate::transfer::{Pace, Place, Settings};

/// The most bytes of an object that is kept in its manifests, if the volume file does not say.
///
/// Such an object is on t + 1 nodes, where t nodes may be lost. In shards it would take the same
/// number of bytes from about this length on, because every shard has headers and every node a file
/// more; and it would be read with two requests instead of one.
pub const INLINE_BYTES: usize = 4096;

/// The blocks of an LT code, in hundredths of k, with which nearly every graph can be decoded. It
/// decides for how many lost nodes the manifests of an LT volume are prepared.
const LT_HUNDREDTHS: usize = 130;

/// How often work on an object begins anew because another process replaces the object meanwhile.
pub(crate) const MOST_ATTEMPTS: usize = 5;

/// How long a node counts as one of the volume after its mark was seen. A disk may be unmounted
/// while a program goes on using the volume, and the empty folder in its place has no mark.
const MARKED_FOR: Duration = Duration::from_secs(2);

/// What a volume consists of.
#[derive(Debug)]
pub struct Setup {
    /// The volume's id: 32 hexadecimal digits.
    pub id: String,
    /// The code.
    pub code: Code,
    /// Bytes of a shard's block.
    pub block_bytes: usize,
    /// Number of nodes that may be lost, whichever they are, at most as many as the code tolerates.
    /// It must never rise in the life of a volume, or older objects would be looked for on too few
    /// nodes. `None` means as many as the code tolerates.
    pub losses: Option<usize>,
    /// Number of shards that may be missing when a put commits.
    pub missing: usize,
    /// The most bytes of an object that is kept in its manifests.
    pub inline_bytes: usize,
    /// Bytes a second from each node, and as many to it, for what is done in the background, if
    /// there is a limit.
    pub background_rate: Option<u64>,
    /// The nodes, each with its name and failure domain.
    pub nodes: Vec<(Member, Arc<dyn Node>)>,
    /// How blocks are moved.
    pub(crate) settings: Settings,
    /// How codes are run on this machine.
    pub options: CodecOptions,
}

impl Setup {
    /// Creates the setup of a volume with the usual settings.
    pub fn new(id: impl Into<String>, code: Code, nodes: Vec<(Member, Arc<dyn Node>)>) -> Self {
        Self {
            id: id.into(),
            code,
            block_bytes: 256 << 10,
            losses: None,
            missing: 0,
            inline_bytes: INLINE_BYTES,
            background_rate: None,
            nodes,
            settings: Settings::default(),
            options: CodecOptions::default(),
        }
    }
}

/// A number of bytes a second. `None` sets no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate(pub Option<u64>);

impl FromStr for Rate {
    type Err = String;

    /// Reads a size, such as `20 MB` or `512KiB`, or `none`.
    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse::<ByteSize>()) {
            ("none", _) => Ok(Self(None)),
            (_, Ok(rate)) if rate.as_u64() > 0 => Ok(Self(Some(rate.as_u64()))),
            _ => Err(format!(
                "must be a number of bytes a second, such as 20MB, or none; got `{text}`"
            )),
        }
    }
}

/// A volume in use.
#[derive(Debug)]
pub struct Volume {
    pub(crate) setup: Setup,
    pub(crate) members: Members,
    pub(crate) quorum: Quorum,
    paces: Vec<Arc<Pace>>,
    /// For each node, when its mark was last seen.
    marks: Vec<Mark>,
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

impl Volume {
    /// Prepares a volume.
    ///
    /// # Errors
    /// If the code or the list of nodes cannot be used ([`ErrorKind::Parameters`]).
    pub fn new(mut setup: Setup) -> Result<Self> {
        // The quorum takes the last nodes as drained.
        setup.nodes.sort_by_key(|(member, _)| member.is_drained);
        let members: Vec<Member> = setup.nodes.iter().map(|(member, _)| member.clone()).collect();
        let members = Members::new(members)?;
        let count = setup.nodes.len();
        let drained = members.as_slice().iter().filter(|member| member.is_drained).count();
        let losses = losses(&setup.code, setup.losses, count, count - drained);
        let quorum = Quorum::new(count, losses)?.with_drained(drained)?;
        let paces = (0..count).map(|_| Arc::new(Pace::default())).collect();
        let marks = (0..count).map(|_| Mark::default()).collect();
        Ok(Self { setup, members, quorum, paces, marks, watcher: None })
    }

    /// Limits the load on nodes, for work in the background: at most `rate` bytes a second come
    /// from each node, and as many go to it. If `rate` is `None`, the rate of the setup holds.
    pub fn in_background(mut self, rate: Option<Rate>) -> Self {
        let limit = rate.map_or(self.setup.background_rate, |Rate(rate)| rate);
        if let Some(limit) = limit {
            for (_, node) in &mut self.setup.nodes {
                *node = Arc::new(Limited::to_rate(Arc::clone(node), limit));
            }
        }
        self
    }

    /// Tells `progress` of the bytes of objects as they are verified, repaired and promoted: how
    /// many more of an object's bytes are done. An object that is both read completely and repaired
    /// counts twice. An object for which little has to be done may not be reported at all.
    pub fn watch(&mut self, progress: impl Fn(&ObjectName, u64) + Send + Sync + 'static) {
        self.watcher = Some(Watcher(Arc::new(progress)));
    }

    pub(crate) fn advance(&self, name: &ObjectName, bytes: u64) {
        self.watcher.iter().for_each(|Watcher(progress)| progress(name, bytes));
    }

    /// Finds out what each node can do, in the order of the nodes. See [`crate::node::probe`].
    ///
    /// # Errors
    /// If a node does not answer, or if it loses or changes what was written.
    pub async fn probe_nodes(&self) -> Result<Vec<Probe>> {
        // Each probe runs to its end, because it removes its files there.
        let probes = self.nodes().map(|node| probe(&**self.node(node)));
        join_all(probes).await.into_iter().collect()
    }

    /// Marks all nodes as nodes of this volume. Nodes that bear the mark already stay as they are.
    ///
    /// # Errors
    /// If a node cannot be written to, belongs to another volume, or is not empty.
    pub async fn mark_nodes(&self) -> Result<()> {
        // One after the other: if two nodes are one place, the second has the mark of the first.
        for node in self.nodes() {
            self.mark(node).await?;
        }
        Ok(())
    }

    /// Checks that all nodes are empty, before anything is written there. What an interrupted
    /// [`Self::probe_nodes`] left is removed.
    ///
    /// # Errors
    /// If a node does not answer, or if it has files ([`ErrorKind::Exists`]).
    pub async fn expect_empty_nodes(&self) -> Result<()> {
        let check = async |node| {
            let checked = match self.node(node).read(READY, None).await {
                Ok(found) => Err(foreign(self.node(node), &self.setup.id, &found)),
                Err(error) if error.kind() == ErrorKind::NotFound => self.expect_empty(node).await,
                Err(error) => Err(error),
            };
            match checked {
                // A probe tells what the node cannot do.
                Err(error) if is_refusal(&error) => Ok(()),
                checked => checked,
            }
        };
        join_all(self.nodes().map(check)).await.into_iter().collect()
    }

    /// Checks that a node has no file but a mark.
    pub(crate) async fn expect_empty(&self, node: NodeIndex) -> Result<()> {
        let storage = self.node(node);
        remove_probes(&**storage).await?;
        let mut entries = storage.list("");
        while let Some(entry) = entries.next().await {
            let path = entry?.path;
            if path != READY {
                let message = format!("the node must be empty; it has {path}");
                return Err(Error::new(ErrorKind::Exists, message).at_node(storage.name()));
            }
        }
        Ok(())
    }

    async fn mark(&self, node: NodeIndex) -> Result<()> {
        let storage = self.node(node);
        match storage.read(READY, None).await {
            Ok(found) if *found == *self.mark_of(node).as_bytes() => return Ok(()),
            Ok(found) => return Err(foreign(storage, &self.setup.id, &found)),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        self.expect_empty(node).await?;
        storage.write(READY, self.mark_of(node).into(), Mode::Replace).await
    }

    /// Checks that a node bears the mark of this volume, unless the mark was seen within
    /// [`MARKED_FOR`]. A node that lost its files bears none, and must not count as one on which
    /// there is nothing.
    pub(crate) async fn expect_ready(&self, node: NodeIndex) -> Result<()> {
        let Some(look) = self.marks[node.0].look() else { return Ok(()) };
        let storage = self.node(node);
        let checked = match storage.read(READY, None).await {
            Ok(found) if *found == *self.mark_of(node).as_bytes() => Ok(()),
            Ok(found) => Err(foreign(storage, &self.setup.id, &found)),
            Err(error) if error.kind() == ErrorKind::NotFound => Err(Error::new(
                ErrorKind::NotFound,
                "the node does not bear the volume's mark: it is empty or another place",
            )
            .at_node(storage.name())),
            Err(error) => Err(error),
        };
        // A place that bears another mark is not lost.
        let is_away = checked.as_ref().is_err_and(|error| error.kind() != ErrorKind::Exists);
        self.marks[node.0].is_away.store(is_away, Ordering::Relaxed);
        look.end(checked.is_ok());
        checked
    }

    /// Returns the nodes that did not answer or had no mark of a node when they were last used.
    /// They may be lost.
    pub fn away(&self) -> Vec<&Member> {
        let members = self.members.as_slice().iter().zip(&self.marks);
        let away = members.filter(|(_, mark)| mark.is_away.load(Ordering::Relaxed));
        away.map(|(member, _)| member).collect()
    }

    /// Returns a node to write to, if it bears the mark of this volume. What was written to a place
    /// without it, such as one where a disk is not mounted, would be hidden or lost later.
    pub(crate) async fn writable(&self, node: NodeIndex) -> Result<&Arc<dyn Node>> {
        self.expect_ready(node).await.map(|()| self.node(node))
    }

    pub(crate) fn mark_of(&self, node: NodeIndex) -> String {
        format!("{} {}\n", self.setup.id, self.members.as_slice()[node.0].name)
    }

    /// Returns the number of nodes.
    pub fn node_count(&self) -> usize {
        self.setup.nodes.len()
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
    /// has a shard and a node for each file; the other shards are lost.
    pub(crate) fn losable_nodes(
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

    /// Returns the nodes' names, failure domains and states: in the order of the volume file, but
    /// drained ones last.
    pub fn members(&self) -> &[Member] {
        self.members.as_slice()
    }

    /// Returns the code.
    pub fn code(&self) -> &Code {
        &self.setup.code
    }

    pub(crate) fn nodes(&self) -> impl Iterator<Item = NodeIndex> + use<> {
        (0..self.setup.nodes.len()).map(NodeIndex)
    }

    pub(crate) fn node(&self, node: NodeIndex) -> &Arc<dyn Node> {
        &self.setup.nodes[node.0].1
    }

    /// Returns the place of a file on a node.
    pub(crate) fn place(&self, node: NodeIndex, path: String) -> Place {
        let pace = Arc::clone(&self.paces[node.0]);
        Place { node: Arc::clone(self.node(node)), pace, path }
    }

    /// Returns the name of a node.
    pub(crate) fn node_name(&self, node: NodeIndex) -> &str {
        &self.members.as_slice()[node.0].name
    }

    pub(crate) fn find_node(&self, name: &str) -> Option<NodeIndex> {
        let mut members = self.members.as_slice().iter();
        members.position(|member| member.name == name).map(NodeIndex)
    }

    /// Returns where the parts of an object belong. A part that a later stage adds to a shard
    /// belongs on the shard's node.
    pub(crate) fn spread(&self, object: ObjectId, code: &Code) -> Spread {
        let shards = self.members.homes(object, code.node_count());
        let parts = parts_of(code);
        let homes: Vec<NodeIndex> = parts.iter().map(|part| shards[part.shard]).collect();
        let substitutes = self.members.substitutes(object, 0, &shards);
        Spread { homes, substitutes, domains: self.members.domains().to_vec() }
    }

    /// Returns the nodes for a manifest with content, the best first.
    pub(crate) fn inline_order(&self, object: ObjectId) -> Vec<NodeIndex> {
        let copies = self.members.homes(object, self.quorum.to_write());
        let others = self.members.substitutes(object, 0, &copies);
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
    /// If it has not ([`ErrorKind::Memory`]).
    pub(crate) fn expect_room(&self, name: &ObjectName, layout: &ObjectLayout) -> Result<()> {
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
    pub(crate) fn layout_of(&self, header: &[u8]) -> Result<ObjectLayout> {
        Ok(ObjectLayout::read(header, |_: &Spec| self.setup.options.clone())?.0)
    }
}

/// When the mark of a node was last seen, if it was.
#[derive(Debug, Default)]
struct Mark {
    seen: Mutex<Option<Instant>>,
    /// Whether the node failed or had no mark when it was last asked to the end.
    is_away: AtomicBool,
}

impl Mark {
    /// Returns `None` if the mark was seen a short while ago. If it was seen longer ago, only the
    /// first caller is to look again; the others rely on the mark until the answer comes.
    fn look(&self) -> Option<Look<'_>> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.is_some_and(|at| at.elapsed() < MARKED_FOR) {
            return None;
        }
        *seen = seen.map(|_| Instant::now());
        Some(Look { mark: self, is_seen: false })
    }

    fn note(&self, is_seen: bool) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        *seen = is_seen.then(Instant::now);
    }
}

/// A look at the mark of a node. If it is given up before its end, the mark counts as not seen: a
/// node whose looks are always given up must not pass for one that has its mark.
struct Look<'a> {
    mark: &'a Mark,
    is_seen: bool,
}

impl Look<'_> {
    fn end(mut self, is_seen: bool) {
        self.is_seen = is_seen;
    }
}

impl Drop for Look<'_> {
    fn drop(&mut self) {
        self.mark.note(self.is_seen);
    }
}

/// Returns the error that a node bears a mark which is not its own; `id` is that of the volume.
fn foreign(storage: &Arc<dyn Node>, id: &str, mark: &[u8]) -> Error {
    let mark = String::from_utf8_lossy(mark);
    let message = match mark.trim_end().split_once(' ') {
        Some((of, node)) if of == id => {
            format!("the node bears the mark of {node:?}, another node of this volume")
        }
        Some((of, node)) => {
            format!("the node bears the mark of {node:?}, a node of another volume ({of:?})")
        }
        None => "the node has a file `ready` that is no mark of a volume".to_owned(),
    };
    Error::new(ErrorKind::Exists, message).at_node(storage.name())
}

/// Returns the parts of a code, by stage and then by shard.
pub(crate) fn parts_of(code: &Code) -> Vec<Part> {
    let has_any = |node: NodeId, stage: u8| {
        code.node_cells(node).iter().any(|&cell| code.cell(cell).stage == stage)
    };
    let of_stage = |stage| {
        let nodes = code.nodes().filter(move |&node| has_any(node, stage));
        nodes.map(move |node| Part { stage, shard: node.index() })
    };
    (1..=code.stages()).flat_map(of_stage).collect()
}

/// Returns the number of parts up to the end of each stage of a code.
pub(crate) fn stage_ends(code: &Code) -> Vec<usize> {
    let parts = parts_of(code);
    (1..=code.stages()).map(|stage| parts.partition_point(|part| part.stage <= stage)).collect()
}

/// Returns how many of `nodes` nodes may be lost, whichever they are, at the last stage of a code
/// whose shards are spread over `serving` of them; but at most `most`, if that is given.
pub(crate) fn losses(code: &Code, most: Option<usize>, nodes: usize, serving: usize) -> usize {
    losses_at(code, code.stages(), nodes, serving).min(most.unwrap_or(usize::MAX))
}

/// Returns the same for any stage of a code.
fn losses_at(code: &Code, stage: u8, nodes: usize, serving: usize) -> usize {
    let most_on_one = code.node_count().div_ceil(serving.max(1));
    (shard_tolerance(code, stage) / most_on_one).min(nodes.saturating_sub(1))
}

/// Returns how many shards may be lost in a stage of a code, whichever they are. For an LT code
/// this is the number that nearly every graph tolerates.
pub(crate) fn shard_tolerance(code: &Code, stage: u8) -> usize {
    let Some(graph) = code.graph() else { return code.tolerance_at(stage) };
    let enough = graph.data() * LT_HUNDREDTHS / 100;
    graph.blocks().saturating_sub(enough) * code.node_count() / graph.blocks()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_counts_no_longer_if_the_look_at_it_is_given_up() {
        let mark = Mark::default();
        mark.look().unwrap().end(true);
        assert!(mark.look().is_none(), "it was just seen");
        *mark.seen.lock().unwrap() = Instant::now().checked_sub(MARKED_FOR);
        let look = mark.look().unwrap();
        assert!(mark.look().is_none(), "others rely on it meanwhile");
        drop(look);
        mark.look().unwrap().end(false);
        assert!(mark.look().is_some());
    }
}
