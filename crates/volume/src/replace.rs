//! Filling a node that replaces a lost one.
//!
//! A lost node held manifests that were counted on: a version on t + 1 nodes is found although t of
//! them are lost. A new, empty node in its place must not be asked before it has these, or it would
//! testify that there is nothing. So it gets the manifests first, then the volume's mark, and the
//! shards last, by repair.

use futures::StreamExt;

use crate::driver::Hands;
use crate::error::{Error, ErrorKind, Result};
use crate::hands::NameHands;
use crate::manifest::Body;
use crate::names::{BACKLOG, MANIFESTS, OBJECTS, OWED, ObjectName, READY, RUNNING, SCRUB};
use crate::node::Mode;
use crate::protocol::{Action, Answer, Listed, NodeIndex, Request};
use crate::volume::Volume;

/// What filling a node did before repair.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct Filled {
    /// Number of manifests that the node got.
    pub manifests: usize,
}

impl Volume {
    /// Gives a new, empty node in the place of a lost one the manifests that it should have, and
    /// then the volume's mark. Its shards are made by repairing all objects. If this is
    /// interrupted, it can be done again.
    ///
    /// # Errors
    /// If there is no such node ([`ErrorKind::Parameters`]), if it has other files
    /// ([`ErrorKind::Exists`]), or if too few of the other nodes answered to be sure what it should
    /// have ([`ErrorKind::TooFewNodes`]).
    pub async fn fill(&self, name: &str) -> Result<Filled> {
        let node = self.named(name)?;
        match self.expect_ready(node).await {
            Ok(()) => return Ok(Filled::default()),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        self.expect_new(node).await?;
        let mut filled = Filled::default();
        for (name, versions) in self.versions("").await?.names {
            if let Some((newest, holders)) = versions.last_key_value() {
                let is_settled = *holders >= self.quorum.to_write();
                let is_copied = self.copy_manifest(&name, *newest, is_settled, node).await?;
                filled.manifests += usize::from(is_copied);
            }
        }
        self.node(node).write(READY, self.mark_of(node).into(), Mode::Replace).await?;
        Ok(filled)
    }

    /// Refuses a place that has files of something else.
    async fn expect_new(&self, node: NodeIndex) -> Result<()> {
        let storage = self.node(node);
        let folders = [MANIFESTS, OBJECTS, OWED, BACKLOG, RUNNING];
        let is_ours =
            |path: &str| path == SCRUB || folders.iter().any(|folder| path.starts_with(folder));
        let mut entries = storage.list("");
        while let Some(entry) = entries.next().await {
            let path = entry?.path;
            if !is_ours(&path) {
                let message = format!("the new place must be empty; it has {path}");
                return Err(Error::new(ErrorKind::Exists, message).at_node(storage.name()));
            }
        }
        Ok(())
    }

    /// Copies a manifest to a node, unless it is that of a small object and enough other nodes have
    /// it (`is_settled`). Which nodes these are does not follow from the object: while a node is
    /// down, its copy goes to another one and stays there. Returns whether it was copied.
    async fn copy_manifest(
        &self,
        name: &ObjectName,
        listed: Listed,
        is_settled: bool,
        node: NodeIndex,
    ) -> Result<bool> {
        let mut hands = NameHands::new(self, name);
        hands.is_filling = true;
        for from in self.nodes().filter(|&from| from != node) {
            let read = Action { node: from, request: Request::ReadManifest(listed) };
            if !matches!(hands.act(read).await, Answer::Manifest(_)) {
                continue;
            }
            let manifest = hands.manifest(listed.version);
            let content = manifest.and_then(|manifest| manifest.content);
            let is_inline = content.is_some_and(|content| matches!(content.body, Body::Inline(_)));
            if is_inline && is_settled {
                return Ok(false);
            }
            let write = Action { node, request: Request::WriteManifest(listed) };
            return match hands.act(write).await {
                Answer::Done => Ok(true),
                _ => Err(self.refused(&hands, node)),
            };
        }
        let path = name.manifest(&listed);
        Err(Error::new(ErrorKind::Io, format!("{path} can be read on no node")))
    }

    fn refused(&self, hands: &NameHands<'_>, node: NodeIndex) -> Error {
        let flaws = hands.flaws();
        let message = flaws.last().map_or("the node refused", |flaw| &flaw.message);
        Error::new(ErrorKind::Io, message).at_node(self.node_name(node))
    }
}
