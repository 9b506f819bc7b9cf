//! What is known of a volume at a glance: whether nodes can be used, and what waits to be done.

use futures::future::join_all;
use paritas_store::error::{Error, ErrorKind, Result};

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
    /// The objects of which something is not where it belongs.
    pub owed: Waiting,
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
}

/// The state of a node.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct NodeStatus {
    /// The name.
    pub name: String,
    /// The failure domain.
    pub domain: String,
    /// Whether nothing new is put there.
    pub is_drained: bool,
    /// Why the node cannot be used now, or `None` if it can.
    pub problem: Option<String>,
}

/// Looks at the nodes, and at what waits to be done.
pub(crate) struct StatusJob<'a> {
    pub cluster: &'a Cluster,
}

impl StatusJob<'_> {
    pub async fn run(self) -> Result<VolumeStatus> {
        let cluster = self.cluster;
        let checks = join_all(ClusterNode::all(cluster).map(ClusterNode::expect_usable)).await;
        let usable = cluster.nodes().zip(&checks).filter(|(_, check)| check.is_ok());
        let usable: Vec<NodeIndex> = usable.map(|(node, _)| node).collect();
        let members = cluster.members.as_slice().iter().zip(checks);
        let nodes = members.map(|(member, check)| NodeStatus {
            name: member.name.clone(),
            domain: member.domain.clone(),
            is_drained: member.is_drained,
            problem: check.err().map(|error| error.message().to_owned()),
        });
        let nodes: Vec<NodeStatus> = nodes.collect();
        if usable.is_empty() {
            return Err(nothing_readable(&nodes));
        }
        // Each request to a node that does not answer would wait for its time limit again.
        let owed = FolderHints::owed(cluster).collect(&usable).await;
        let backlog = FolderHints::backlog(cluster).collect(&usable).await;
        let scrub = Cursor::newest(cluster, &usable).await.status;
        Ok(VolumeStatus { nodes, tolerance: cluster.tolerance(), owed, backlog, scrub })
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
