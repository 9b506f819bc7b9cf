//! Hints: small files on all nodes that state which objects wait for work, and since when.

use std::collections::BTreeMap;
use std::time::SystemTime;

use bytes::Bytes;
use futures::future::join_all;
use futures::stream::{self, StreamExt};
use paritas_shards::ObjectId;
use paritas_store::error::Result;

use crate::clock::now;
use crate::cluster::Cluster;
use crate::files::ask_in_turn;
use crate::names::{self, ObjectName};
use crate::node::Mode;
use crate::protocol::NodeIndex;

/// Number of hints that are read side by side.
const AT_ONCE: usize = 16;

/// Objects that wait for work.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Waiting {
    /// Number of objects.
    pub objects: usize,
    /// Seconds that the oldest of them has waited.
    pub oldest_seconds: Option<u64>,
}

/// A hint that nodes have.
#[derive(Debug)]
struct ListedHint {
    object: ObjectId,
    /// When it was written first, if all of these nodes tell.
    modified: Option<SystemTime>,
    nodes: Vec<NodeIndex>,
}

/// The hints in one folder.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FolderHints<'a> {
    cluster: &'a Cluster,
    folder: &'static str,
}

impl<'a> FolderHints<'a> {
    /// The hints about objects with misplaced files.
    pub fn owed(cluster: &'a Cluster) -> Self {
        Self { cluster, folder: names::OWED }
    }

    /// The hints about objects that a repair could not make whole.
    pub fn lost(cluster: &'a Cluster) -> Self {
        Self { cluster, folder: names::LOST }
    }

    /// The hints about objects that wait for a later stage.
    pub fn backlog(cluster: &'a Cluster) -> Self {
        Self { cluster, folder: names::BACKLOG }
    }

    /// Leaves a hint about an object on all nodes that answer. A hint that is there already stays,
    /// because it tells since when the object waits.
    pub async fn leave(self, object: ObjectId, name: &ObjectName) {
        let (path, text) = (names::mark(self.folder, object), text(name));
        let write = async |node| {
            let storage = self.cluster.writable(node).await?;
            storage.write(&path, text.clone().into(), Mode::Create).await
        };
        // If the hint cannot be written, repair still finds the object.
        let _: Vec<Result<()>> = join_all(self.cluster.nodes().map(write)).await;
    }

    /// Leaves a hint about an object on one node, which need not bear the volume's mark yet.
    ///
    /// # Errors
    /// If the hint cannot be written.
    pub async fn leave_on(
        self,
        node: NodeIndex,
        object: ObjectId,
        name: &ObjectName,
    ) -> Result<()> {
        let path = names::mark(self.folder, object);
        self.cluster.node(node).write(&path, text(name).into(), Mode::Replace).await
    }

    /// Whether a node may have a hint about an object: one has it, or does not tell.
    pub async fn may_be_left(self, object: ObjectId) -> bool {
        let path = names::mark(self.folder, object);
        let nodes: Vec<NodeIndex> = self.cluster.nodes().collect();
        let ask = async |node| self.cluster.node(node).stat(&path).await;
        let is_there = |found: Result<_>| (!matches!(found, Ok(None))).then_some(());
        ask_in_turn(nodes, ask, is_there).await.is_some()
    }

    /// Removes a hint about an object from all nodes that answer.
    pub async fn remove(self, object: ObjectId) {
        let path = names::mark(self.folder, object);
        join_all(self.cluster.nodes().map(|node| self.cluster.node(node).delete(&path))).await;
    }

    /// Counts the hints of some nodes. If the nodes tell when files were written, only the oldest
    /// hint is read.
    pub async fn count(self, nodes: &[NodeIndex]) -> Waiting {
        let mut hints = self.list(nodes).await;
        let objects = hints.len();
        if hints.iter().all(|hint| hint.modified.is_some()) {
            hints.sort_by_key(|hint| hint.modified);
            hints.truncate(1);
        }
        let oldest = self.read(hints).await.into_iter().next();
        let oldest_seconds = oldest.map(|(since, _)| now().saturating_sub(since));
        Waiting { objects, oldest_seconds }
    }

    /// Returns the names that begin with `prefix` of the objects; those that have waited longest
    /// come first.
    pub async fn names(self, prefix: &str) -> Vec<ObjectName> {
        let nodes: Vec<NodeIndex> = self.cluster.nodes().collect();
        let hints = self.read(self.list(&nodes).await).await;
        let names = hints.into_iter().map(|(_, name)| name);
        names.filter(|name| name.as_str().starts_with(prefix)).collect()
    }

    /// Lists the hints of those nodes that answer.
    async fn list(self, nodes: &[NodeIndex]) -> Vec<ListedHint> {
        let list = async |&node| (node, self.list_on(node).await.unwrap_or_default());
        let mut hints: BTreeMap<ObjectId, ListedHint> = BTreeMap::new();
        for (node, listed) in join_all(nodes.iter().map(list)).await {
            for (object, modified) in listed {
                let new = ListedHint { object, modified, nodes: Vec::new() };
                let hint = hints.entry(object).or_insert(new);
                hint.nodes.push(node);
                // A node that got the hint later states a later time.
                hint.modified = hint.modified.min(modified);
            }
        }
        hints.into_values().collect()
    }

    async fn list_on(self, node: NodeIndex) -> Result<Vec<(ObjectId, Option<SystemTime>)>> {
        let mut entries = self.cluster.node(node).list(self.folder);
        let mut hints = Vec::new();
        while let Some(entry) = entries.next().await {
            let entry = entry?;
            let object = names::parse_mark(self.folder, &entry.path);
            hints.extend(object.map(|object| (object, entry.modified)));
        }
        Ok(hints)
    }

    /// Reads each hint from one node. Returns since when the objects wait, and their names, the
    /// oldest first. Work that was done meanwhile is left out.
    async fn read(self, hints: Vec<ListedHint>) -> Vec<(u64, ObjectName)> {
        let read = async |ListedHint { object, nodes, .. }| {
            let path = &names::mark(self.folder, object);
            let ask = async |node| self.cluster.node(node).read(path, None).await;
            // If a hint is damaged on one node, that of another counts.
            let judge = |text: Result<Bytes>| parse(&String::from_utf8_lossy(&text.ok()?));
            ask_in_turn(nodes, ask, judge).await
        };
        let read = stream::iter(hints).map(read).buffer_unordered(AT_ONCE);
        let mut hints: Vec<_> = read.filter_map(std::future::ready).collect().await;
        hints.sort();
        hints
    }
}

/// Returns the text of a hint that is written now.
pub(crate) fn text(name: &ObjectName) -> String {
    format!("{} {name}\n", now())
}

/// Parses a hint: since when an object waits, and its name, which may end in white space.
fn parse(text: &str) -> Option<(u64, ObjectName)> {
    let (since, name) = text.strip_suffix('\n')?.split_once(' ')?;
    Some((since.parse().ok()?, ObjectName::new(name).ok()?))
}
