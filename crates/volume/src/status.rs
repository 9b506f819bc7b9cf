//! The status of a volume at a glance: whether nodes can be used, and which work is waiting.

use std::time::Duration;

use futures::future::join_all;
use paritas_store::error::{Error, ErrorKind, Result};
use tokio::time::Instant;

use crate::cluster::Cluster;
use crate::hints::{FolderHints, Waiting};
use crate::members::ClusterNode;
use crate::protocol::NodeIndex;
use crate::scrub::{Cursor, ScrubStatus};

/// What is known of a volume at a glance.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct VolumeStatus {
    /// The nodes, in the order of the volume file, but drained ones last.
    pub nodes: Vec<NodeStatus>,
    /// Number of nodes that may be lost, whichever they are.
    pub tolerance: usize,
    /// Number of nodes that must accept a put or a removal: one more than may be lost. Drained
    /// nodes do not count.
    pub to_write: usize,
    /// The objects with misplaced files.
    pub owed: Waiting,
    /// The objects that had too few whole shards when a repair looked. A deep repair that makes an
    /// object whole takes it off this list.
    pub lost: Waiting,
    /// The objects that wait for a later stage of their code.
    pub backlog: Waiting,
    /// How far the scrub is.
    pub scrub: ScrubStatus,
}

impl VolumeStatus {
    /// Returns the number of nodes that cannot be used now.
    pub fn useless(&self) -> usize {
        self.nodes.iter().filter(|node| node.problem.is_some()).count()
    }

    /// Returns the number of nodes that cannot be read now.
    pub fn unreadable(&self) -> usize {
        self.nodes.iter().filter(|node| !node.is_readable).count()
    }

    /// Returns how many more nodes that are not drained must become usable before puts and removals
    /// can succeed. Readers may need fewer nodes: if any two of three nodes may be lost, one is
    /// enough to read, and all three are needed to write.
    pub fn lacking_for_puts(&self) -> usize {
        let serve = |node: &&NodeStatus| node.problem.is_none() && !node.is_drained;
        self.to_write.saturating_sub(self.nodes.iter().filter(serve).count())
    }
}

/// The state of a node.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct NodeStatus {
    /// The name.
    pub name: String,
    /// The failure domain.
    pub domain: String,
    /// Whether the node is drained: no new files are stored there.
    pub is_drained: bool,
    /// Why the node cannot be used now, or `None` if it can.
    pub problem: Option<String>,
    /// Whether it can be read now. A full node can, although it takes no files.
    pub is_readable: bool,
    /// How long it took to look at the node: to read its mark, to begin a listing and, unless it is
    /// drained, to write and remove a small file.
    pub answered_in: Duration,
    /// Number of bytes that it has left for new files, if it can tell.
    pub free_bytes: Option<u64>,
}

impl NodeStatus {
    async fn of(node: ClusterNode<'_>) -> Self {
        let begun = Instant::now();
        let mut check = node.expect_readable().await;
        let is_readable = check.is_ok();
        if is_readable {
            check = node.expect_writable().await;
        }
        let answered_in = begun.elapsed();
        let member = &node.cluster.members.as_slice()[node.node.0];
        Self {
            name: member.name.clone(),
            domain: member.domain.clone(),
            is_drained: member.is_drained,
            free_bytes: match is_readable {
                true => node.storage().free_bytes().await,
                false => None,
            },
            problem: check.err().map(|error| error.message().to_owned()),
            is_readable,
            answered_in,
        }
    }
}

/// Looks at the nodes, and at the waiting work.
pub(crate) struct StatusJob<'a> {
    pub cluster: &'a Cluster,
}

impl StatusJob<'_> {
    pub async fn run(self) -> Result<VolumeStatus> {
        let cluster = self.cluster;
        let nodes = join_all(ClusterNode::all(cluster).map(NodeStatus::of)).await;
        let readable = cluster.nodes().zip(&nodes).filter(|(_, node)| node.is_readable);
        let readable: Vec<NodeIndex> = readable.map(|(node, _)| node).collect();
        if readable.is_empty() {
            return Err(nothing_readable(&nodes));
        }
        // Each request to a node that does not answer would wait for its time limit again.
        let owed = FolderHints::owed(cluster).count(&readable).await;
        let lost = FolderHints::lost(cluster).count(&readable).await;
        let backlog = FolderHints::backlog(cluster).count(&readable).await;
        let scrub = Cursor::newest(cluster, &readable).await.status;
        let (tolerance, to_write) = (cluster.tolerance(), cluster.quorum.to_write());
        Ok(VolumeStatus { nodes, tolerance, to_write, owed, lost, backlog, scrub })
    }
}

fn nothing_readable(nodes: &[NodeStatus]) -> Error {
    let problem = |node: &NodeStatus| {
        format!("{}: {}", node.name, node.problem.as_deref().unwrap_or_default())
    };
    let problems: Vec<String> = nodes.iter().map(problem).collect();
    let message = format!("no node can be read: {}", problems.join("; "));
    Error::new(ErrorKind::TooFewNodes, message)
}
