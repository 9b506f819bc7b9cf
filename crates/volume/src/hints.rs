//! Hints: small files on all nodes that state which objects wait for work, and since when.

use std::collections::BTreeMap;

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

/// Number of hints that are read from a node side by side.
const AT_ONCE: usize = 16;

/// Objects that wait for work.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Waiting {
    /// Number of objects.
    pub objects: usize,
    /// Seconds that the oldest of them has waited.
    pub oldest_seconds: Option<u64>,
    /// Their names, the oldest first.
    pub names: Vec<ObjectName>,
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

    /// Collects the hints of some nodes.
    pub async fn collect(self, nodes: &[NodeIndex]) -> Waiting {
        let lists = join_all(nodes.iter().map(|&node| self.read(node))).await;
        let mut hints: BTreeMap<ObjectId, (u64, ObjectName)> = BTreeMap::new();
        for (object, hint) in lists.into_iter().flatten().flatten() {
            // A node that got the hint later states a later time.
            hints.entry(object).and_modify(|known| known.0 = known.0.min(hint.0)).or_insert(hint);
        }
        let mut hints: Vec<(u64, ObjectName)> = hints.into_values().collect();
        hints.sort();
        Waiting {
            objects: hints.len(),
            oldest_seconds: hints.first().map(|(since, _)| now().saturating_sub(*since)),
            names: hints.into_iter().map(|(_, name)| name).collect(),
        }
    }

    /// Reads the hints of a node: the object, since when it waits, and its name.
    async fn read(self, node: NodeIndex) -> Result<Vec<(ObjectId, (u64, ObjectName))>> {
        let storage = self.cluster.node(node);
        let mut entries = storage.list(self.folder);
        let mut objects = Vec::new();
        while let Some(entry) = entries.next().await {
            objects.extend(names::parse_mark(self.folder, &entry?.path));
        }
        let read = async |object: ObjectId| {
            let text = match storage.read(&names::mark(self.folder, object), None).await {
                Ok(text) => text,
                // The work was just done, or the hint is damaged. The other nodes' hints count.
                Err(_) => return None,
            };
            parse(&String::from_utf8_lossy(&text)).map(|hint| (object, hint))
        };
        let hints = stream::iter(objects).map(read).buffer_unordered(AT_ONCE);
        Ok(hints.filter_map(std::future::ready).collect().await)
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
