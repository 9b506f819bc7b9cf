//! The claim of the process that promotes an object or reads all blocks of the volume, so that a
//! second process does not do the same work.
//!
//! A claim is a file beside the hint that the object waits for promotion. The claim on all blocks
//! has an id that no object has. All processes first ask the same node for a claim, and that node
//! creates it for only one of them. The claim states the time, and is renewed while its process
//! works. So the claim of a killed process becomes void after [`LASTS`], like the heartbeat of a
//! put that is no longer renewed. For processes on the same machine it is void at once.
//!
//! A claim only saves work, and nothing else depends on it: two promoters write equal bytes. So a
//! process goes on without a claim if no node supports exclusive creation (`Mode::Create`), or if
//! no such node answers. Two processes may take over a void claim at once, and a process that was
//! stopped for long may renew or release the claim of another.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use paritas_shards::ObjectId;
use paritas_store::error::{Error, ErrorKind, Result};

use crate::cleaning::Unfinished;
use crate::clock::now;
use crate::cluster::Cluster;
use crate::names::{self, ObjectName};
use crate::node::{Mode, Node};
use crate::outside::new_object;
use crate::process;

/// Time after which a claim that is not renewed becomes void. If the clocks of two clients differ
/// by more, the claim of one is void for the other, even if its date is in the future.
const LASTS: Duration = Duration::from_secs(120);

/// Time between two renewals of a claim. Three renewals may fail before the claim is void.
const RENEWAL: Duration = Duration::from_secs(30);

/// The bytes of the id in the path of the claim on all blocks.
const ALL_BLOCKS: [u8; 16] = [0; 16];

/// The right to promote an object or to read all blocks. It is released when it is dropped.
#[derive(Debug)]
pub(crate) struct Claim {
    /// Distinguishes the claims of processes.
    owner: ObjectId,
    path: String,
    /// The node that has the claim, or `None` if no node that answers can keep claims apart.
    node: Option<Arc<dyn Node>>,
    unfinished: Unfinished,
}

/// Whether the claim in a file is void: it was not renewed within `LASTS`, or its process ran on
/// this machine and has ended.
pub(crate) fn is_void(text: &str) -> bool {
    let mut words = text.split_whitespace();
    let since = words.next().and_then(|since| since.parse::<u64>().ok());
    let is_old = since.is_none_or(|since| since.abs_diff(now()) >= LASTS.as_secs());
    is_old || words.nth(1).is_some_and(process::is_over)
}

impl Claim {
    /// Claims the promotion of an object.
    ///
    /// # Errors
    /// If another process has claimed it ([`ErrorKind::Busy`]).
    pub async fn of_promotion(
        cluster: &Cluster,
        name: &ObjectName,
        object: ObjectId,
    ) -> Result<Self> {
        Self::take(cluster, object, &format!("{name}: another process is promoting it")).await
    }

    /// Claims the reading of all blocks.
    ///
    /// # Errors
    /// If another process has claimed it ([`ErrorKind::Busy`]).
    pub async fn of_all_blocks(cluster: &Cluster) -> Result<Self> {
        Self::take(cluster, ObjectId::new(ALL_BLOCKS), "another process is reading all blocks")
            .await
    }

    async fn take(cluster: &Cluster, object: ObjectId, busy: &str) -> Result<Self> {
        let busy = || {
            let seconds = LASTS.as_secs();
            let message =
                format!("{busy}; if that process was killed, its claim is void after {seconds} s");
            Error::new(ErrorKind::Busy, message)
        };
        let (owner, path) = (new_object()?, names::claim(object));
        let mut claim = Self { owner, path, node: None, unfinished: Unfinished::begin() };
        for node in cluster.inline_order(object) {
            let Ok(node) = cluster.writable(node).await else { continue };
            if !node.abilities().create {
                continue;
            }
            match claim.create(&**node).await {
                Ok(()) => claim.node = Some(Arc::clone(node)),
                Err(error) if error.kind() == ErrorKind::Exists => return Err(busy()),
                // A node that does not answer keeps no claim.
                Err(_) => continue,
            }
            break;
        }
        Ok(claim)
    }

    /// Runs `work` while the claim is renewed, and then releases the claim.
    pub async fn hold<T>(mut self, work: impl Future<Output = T>) -> T {
        let done = tokio::select! {
            biased;
            done = work => done,
            never = self.renew() => match never {},
        };
        if let Some(node) = self.node.take() {
            // If the claim cannot be deleted, it soon becomes void.
            let _ = node.delete(&self.path).await;
        }
        done
    }

    async fn renew(&self) -> Infallible {
        loop {
            tokio::time::sleep(RENEWAL).await;
            if let Some(node) = &self.node {
                // If the renewal fails, another process may do the same work, too.
                let _ = node.write(&self.path, self.text().into(), Mode::Replace).await;
            }
        }
    }

    /// Creates the file. Replaces a claim that is void, or that this process created by a request
    /// whose answer was lost.
    async fn create(&self, node: &dyn Node) -> Result<()> {
        let create = async || node.write(&self.path, self.text().into(), Mode::Create).await;
        match create().await {
            Err(error) if error.kind() == ErrorKind::Exists && !self.is_taken(node).await? => {
                node.delete(&self.path).await?;
                create().await
            }
            created => created,
        }
    }

    /// Whether another process has the claim and has renewed it lately.
    async fn is_taken(&self, node: &dyn Node) -> Result<bool> {
        let found = match node.read(&self.path, None).await {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            found => found?,
        };
        let text = String::from_utf8_lossy(&found);
        let is_mine = text.split_whitespace().nth(1) == Some(&self.owner.to_string());
        Ok(!is_mine && !is_void(&text))
    }

    fn text(&self) -> String {
        let tag = process::tag().map(|tag| format!(" {tag}")).unwrap_or_default();
        format!("{} {}{tag}\n", now(), self.owner)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some(node) = self.node.take() {
            let path = std::mem::take(&mut self.path);
            self.unfinished.remove(async move { _ = node.delete(&path).await });
        }
    }
}
