//! One node of a volume: the work when it joins, when it is looked at, and before it leaves.

use std::sync::Arc;
use std::time::SystemTime;

use futures::StreamExt;
use futures::future::join_all;
use paritas_store::error::{Error, ErrorKind, Result};

use crate::cluster::Cluster;
use crate::marks::foreign;
use crate::names::{self, MANIFESTS, OBJECTS, OBJECTS_2, READY};
use crate::node::{Mode, Node, Probe, is_refusal, passing_name, probe, remove_probes};
use crate::protocol::NodeIndex;

/// Beginning of the paths of clock files. A client writes such a file and reads its time to learn a
/// node's clock, and then removes the file. If the client is killed, the next client on the same
/// machine removes it.
pub(crate) const CLOCK: &str = "running/clock-";

/// One node of a volume.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClusterNode<'a> {
    pub cluster: &'a Cluster,
    pub node: NodeIndex,
}

impl<'a> ClusterNode<'a> {
    /// Returns all nodes of a volume.
    pub fn all(cluster: &'a Cluster) -> impl Iterator<Item = Self> {
        cluster.nodes().map(move |node| Self { cluster, node })
    }

    /// Returns the node called `name`.
    pub fn named(cluster: &'a Cluster, name: &str) -> Result<Self> {
        Ok(Self { cluster, node: cluster.named(name)? })
    }

    pub fn storage(self) -> &'a Arc<dyn Node> {
        self.cluster.node(self.node)
    }

    /// Finds out what the node can do.
    pub async fn probe(self) -> Result<Probe> {
        probe(&**self.storage()).await
    }

    /// Checks that the node has no file except a mark.
    pub async fn expect_empty(self) -> Result<()> {
        let storage = self.storage();
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

    /// Checks that the node has no files, as far as it can list them.
    pub async fn expect_no_file(self) -> Result<()> {
        let storage = self.storage();
        let checked = match storage.read(READY, None).await {
            Ok(found) => Err(foreign(storage, &self.cluster.setup.id, &found)),
            Err(error) if error.kind() == ErrorKind::NotFound => self.expect_empty().await,
            Err(error) => Err(error),
        };
        match checked {
            // A node that cannot list files passes; a probe reports what the node cannot do.
            Err(error) if is_refusal(&error) => Ok(()),
            checked => checked,
        }
    }

    async fn write_mark(self) -> Result<()> {
        let mark = self.cluster.mark_of(self.node).into();
        self.storage().write(READY, mark, Mode::Replace).await
    }

    /// Marks the node, unless it bears the mark already.
    pub async fn mark(self) -> Result<()> {
        if self.is_marked().await? {
            return Ok(());
        }
        self.expect_empty().await?;
        self.write_mark().await
    }

    /// Whether the node bears its mark. Another mark is an error.
    pub async fn is_marked(self) -> Result<bool> {
        let storage = self.storage();
        match storage.read(READY, None).await {
            Ok(found) if *found == *self.cluster.mark_of(self.node).as_bytes() => Ok(true),
            Ok(found) => Err(foreign(storage, &self.cluster.setup.id, &found)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether the node counts for reads and writes: it is not drained.
    pub fn counts(self) -> bool {
        self.cluster.quorum.counts(self.node)
    }

    /// Whether the node has a manifest, or a mark of a removed object.
    pub async fn has_objects(self) -> Result<bool> {
        Ok(self.storage().list(MANIFESTS).next().await.transpose()?.is_some())
    }

    /// Returns the error for a node that lacks its mark while `used` has objects.
    pub fn has_lost_files(self, used: Self) -> Error {
        let (lost, used) = (self.storage().name(), used.storage().name());
        let message = format!(
            "it lacks the mark of this volume while {used} is in use: it has lost its files, so it \
             must be replaced, and not only marked"
        );
        Error::new(ErrorKind::Exists, message).at_node(lost)
    }

    /// Marks a node that joins the volume. It must not have any other file.
    pub async fn mark_new(self) -> Result<()> {
        self.expect_empty().await?;
        match self.cluster.expect_ready(self.node).await {
            Err(error) if error.kind() == ErrorKind::NotFound => self.write_mark().await,
            result => result,
        }
    }

    /// Checks that the node bears the mark of the volume and lists manifests.
    pub async fn expect_readable(self) -> Result<()> {
        self.cluster.expect_ready(self.node).await?;
        self.storage().list(MANIFESTS).next().await.transpose().map(drop)
    }

    /// Checks that the node takes files, unless it is drained.
    pub async fn expect_writable(self) -> Result<()> {
        if !self.cluster.quorum.counts(self.node) {
            return Ok(());
        }
        self.clock().await?;
        match self.storage().free_bytes().await {
            Some(0) => {
                let full = Error::failed("no space is left but for marks of removals");
                Err(full.at_node(self.storage().name()))
            }
            _ => Ok(()),
        }
    }

    /// Returns the time of the node's own clock. The ages of the node's files are computed from it.
    pub async fn clock(self) -> Result<Option<SystemTime>> {
        let storage = self.storage();
        let path = format!("{CLOCK}{}", passing_name()?);
        storage.write(&path, "clock\n".into(), Mode::Replace).await?;
        let stat = storage.stat(&path).await;
        storage.delete(&path).await?;
        Ok(stat?.and_then(|stat| stat.modified))
    }

    /// Returns the number of shards that the node holds.
    pub async fn shards(self) -> Result<usize> {
        self.cluster.expect_ready(self.node).await?;
        let [first, second] = [OBJECTS, OBJECTS_2].map(|folder| self.storage().list(folder));
        let (mut entries, mut shards) = (first.chain(second), 0);
        while let Some(entry) = entries.next().await {
            shards += usize::from(names::parse_part(&entry?.path).is_some());
        }
        Ok(shards)
    }
}

/// Returns whether enough nodes answer now to be sure which objects exist.
pub(crate) async fn is_readable(cluster: &Cluster) -> bool {
    let checks = join_all(ClusterNode::all(cluster).map(ClusterNode::expect_readable)).await;
    checks.iter().filter(|check| check.is_ok()).count() >= cluster.quorum.to_read()
}
