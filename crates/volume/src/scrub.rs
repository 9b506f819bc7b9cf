//! The scrub: every block of a volume is read, object by object, in the order of names.
//!
//! A pass takes days or weeks, so it can be interrupted at any moment. A small file on the nodes,
//! the *cursor*, states how far it is. Each process that scrubs continues after the name in the
//! newest cursor. An old or missing cursor does no harm: some objects are read once more.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use paritas_store::error::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::clock::now;
use crate::cluster::Cluster;
use crate::files::NameFiles;
use crate::list::ListJob;
use crate::members::is_readable;
use crate::names::{ObjectName, SCRUB};
use crate::node::Mode;
use crate::overview::Overview;
use crate::promote::Repaired;
use crate::protocol::NodeIndex;
use crate::repair::NameRepair;

/// Largest number of objects that are read again because the cursor was not written after them.
const MOST_AGAIN: usize = 16;

/// The time after which the cursor is written although fewer objects were read since.
const SAVED_AFTER: Duration = Duration::from_secs(5);

/// How far the scrub of a volume is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ScrubStatus {
    /// The pass that has begun and not ended.
    pub pass: Option<ScrubPass>,
    /// The last full pass.
    pub last: Option<FullPass>,
}

/// A pass that has not ended. It may be interrupted at present.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ScrubPass {
    /// When it began, in seconds since 1970.
    pub began: u64,
    /// The name after which it goes on; nothing at the beginning.
    pub after: String,
    /// Number of names that were done.
    pub done: usize,
    /// Number of all names, when it was begun or continued.
    pub names: usize,
    /// Number of objects not confirmed whole: in need of repair, lost, or with too few nodes that
    /// answered.
    pub left: usize,
}

/// A pass through all names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FullPass {
    /// When it began, in seconds since 1970.
    pub began: u64,
    /// When it ended, in seconds since 1970.
    pub ended: u64,
    /// Number of names.
    pub names: usize,
    /// Number of objects not confirmed whole: in need of repair, lost, or with too few nodes that
    /// answered.
    pub left: usize,
}

/// What the file on the nodes says.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Cursor {
    /// How often it was written; the greatest number is the newest cursor.
    saves: u64,
    #[serde(flatten)]
    pub status: ScrubStatus,
}

/// A scrub at work.
#[derive(Debug)]
pub struct Scrub<'a> {
    cluster: &'a Cluster,
    cursor: Cursor,
    /// The remaining names of the pass.
    names: VecDeque<ObjectName>,
    nameless: Vec<Error>,
    /// Number of objects since the cursor was written, and when that was.
    unsaved: usize,
    saved: Instant,
    is_over: bool,
}

impl Cursor {
    /// Returns the newest cursor that some nodes have.
    pub async fn newest(cluster: &Cluster, nodes: &[NodeIndex]) -> Self {
        let read = async |node: NodeIndex| {
            let bytes = cluster.writable(node).await?.read(SCRUB, None).await?;
            // A file that is not a valid cursor counts as a missing one.
            Ok::<Self, Error>(serde_json::from_slice(&bytes).unwrap_or_default())
        };
        let cursors = join_all(nodes.iter().map(|&node| read(node))).await.into_iter().flatten();
        cursors.max_by_key(|cursor| cursor.saves).unwrap_or_default()
    }
}

impl ScrubPass {
    fn new(began: u64) -> Self {
        Self { began, after: String::new(), done: 0, names: 0, left: 0 }
    }
}

impl<'a> Scrub<'a> {
    pub(crate) async fn begin(cluster: &'a Cluster) -> Result<Self> {
        let overview = Overview::of(ListJob::of(cluster, "")).await?;
        let nameless = overview.nameless().collect();
        let mut names: VecDeque<ObjectName> = overview.versions.names.into_keys().collect();
        let mut cursor = Cursor::newest(cluster, &cluster.nodes().collect::<Vec<_>>()).await;
        let pass = cursor.status.pass.get_or_insert_with(|| ScrubPass::new(now()));
        pass.names = names.len();
        names.retain(|name| name.as_str() > pass.after.as_str());
        pass.done = pass.names - names.len();
        let saved = Instant::now();
        Ok(Self { cluster, cursor, names, nameless, unsaved: 0, saved, is_over: false })
    }

    /// Returns the pass that is under way.
    pub fn pass(&self) -> Option<&ScrubPass> {
        self.cursor.status.pass.as_ref()
    }

    /// Returns the remaining names of the pass, in order.
    pub fn names(&self) -> impl Iterator<Item = &ObjectName> {
        self.names.iter()
    }

    /// Returns an error for each object whose name cannot be told ([`Overview::nameless`]). At the
    /// end of the pass, these count as left.
    pub fn nameless(&self) -> &[Error] {
        &self.nameless
    }

    /// Reads all blocks of the next object and repairs what is wrong. Returns nothing at the end of
    /// the pass.
    ///
    /// If that fails because too few nodes take part ([`ErrorKind::TooFewNodes`]), there are two
    /// cases. If too few nodes answer at all, the scrub ends, and the next scrub continues with the
    /// same object. Otherwise the object counts as left, and is tried again in the next pass.
    pub async fn next(&mut self) -> Option<(ObjectName, Result<Repaired>)> {
        if self.is_over {
            return None;
        }
        let Some(name) = self.names.pop_front() else {
            self.end().await;
            return None;
        };
        let files = NameFiles { cluster: self.cluster, name: &name };
        let repaired = NameRepair { files, is_deep: true }.run().await;
        let too_few = repaired.as_ref().is_err_and(|error| error.kind() == ErrorKind::TooFewNodes);
        match too_few && !is_readable(self.cluster).await {
            true => {
                self.is_over = true;
                self.save().await;
            }
            false => self.advance(&name, is_left(&repaired)).await,
        }
        Some((name, repaired))
    }

    /// Takes in that an object is done.
    async fn advance(&mut self, name: &ObjectName, is_left: bool) {
        if let Some(pass) = &mut self.cursor.status.pass {
            name.as_str().clone_into(&mut pass.after);
            pass.done += 1;
            // Both this and the number below come from nodes.
            pass.left = pass.left.saturating_add(usize::from(is_left));
        }
        self.unsaved += 1;
        if self.unsaved >= MOST_AGAIN || self.saved.elapsed() >= SAVED_AFTER {
            self.save().await;
        }
    }

    async fn end(&mut self) {
        self.is_over = true;
        let status = &mut self.cursor.status;
        let full = |ScrubPass { began, names, left, .. }| {
            let (ended, left) = (now(), left.saturating_add(self.nameless.len()));
            FullPass { began, ended, names, left }
        };
        status.last = status.pass.take().map(full).or(status.last);
        self.save().await;
    }

    /// Writes the cursor to all nodes. If none takes it, an older one stays.
    async fn save(&mut self) {
        (self.unsaved, self.saved) = (0, Instant::now());
        self.cursor.saves = self.cursor.saves.saturating_add(1);
        let Ok(text) = serde_json::to_vec(&self.cursor) else { return };
        let text = Bytes::from(text);
        let write = async |node: NodeIndex| {
            self.cluster.writable(node).await?.write(SCRUB, text.clone(), Mode::Replace).await
        };
        let _: Vec<Result<()>> = join_all(self.cluster.nodes().map(write)).await;
    }
}

/// Whether an object is still owed or lost after its repair. An object that was removed or replaced
/// meanwhile counts as done.
fn is_left(repaired: &Result<Repaired>) -> bool {
    match repaired {
        Ok(repaired) => repaired.is_owed,
        Err(error) => !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Busy),
    }
}
