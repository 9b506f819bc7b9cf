//! Nodes that join a volume, and nodes that leave it.

use futures::StreamExt;
use paritas_store::error::{Error, ErrorKind, Result};

use crate::names::{self, OBJECTS, OBJECTS_2, READY};
use crate::node::{Mode, Probe, probe};
use crate::protocol::NodeIndex;
use crate::volume::Volume;

impl Volume {
    /// Finds out what one node can do. See [`crate::node::probe`].
    ///
    /// # Errors
    /// If there is no such node ([`ErrorKind::Parameters`]), if it does not answer, or if it loses
    /// or changes what was written.
    pub async fn probe_node(&self, name: &str) -> Result<Probe> {
        probe(&**self.node(self.named(name)?)).await
    }

    /// Checks that a node that is to join the volume has no file but a mark, before anything is
    /// written there. What an interrupted [`Self::probe_node`] left is removed.
    ///
    /// # Errors
    /// If there is no such node ([`ErrorKind::Parameters`]), if it has other files
    /// ([`ErrorKind::Exists`]), or if it does not answer.
    pub async fn expect_empty_node(&self, name: &str) -> Result<()> {
        self.expect_empty(self.named(name)?).await
    }

    /// Marks a node that joins the volume. It must be empty, but for its mark: what an earlier
    /// node of this name left there could bring removed objects back.
    ///
    /// # Errors
    /// If there is no such node ([`ErrorKind::Parameters`]), if it has other files or another mark
    /// ([`ErrorKind::Exists`]), or if it cannot be written to.
    pub async fn mark_new_node(&self, name: &str) -> Result<()> {
        let node = self.named(name)?;
        let storage = self.node(node);
        self.expect_empty(node).await?;
        match self.expect_ready(node).await {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                storage.write(READY, self.mark_of(node).into(), Mode::Replace).await
            }
            result => result,
        }
    }

    /// Returns the number of shards that a node holds.
    ///
    /// # Errors
    /// If there is no such node ([`ErrorKind::Parameters`]), or if it does not answer.
    pub async fn shards_on(&self, name: &str) -> Result<usize> {
        let node = self.named(name)?;
        self.expect_ready(node).await?;
        let [first, second] = [OBJECTS, OBJECTS_2].map(|folder| self.node(node).list(folder));
        let (mut entries, mut shards) = (first.chain(second), 0);
        while let Some(entry) = entries.next().await {
            shards += usize::from(names::parse_part(&entry?.path).is_some());
        }
        Ok(shards)
    }

    pub(crate) fn named(&self, name: &str) -> Result<NodeIndex> {
        let names = self.members().iter().map(|member| &*member.name);
        self.find_node(name).ok_or_else(|| unknown(name, names))
    }
}

/// Returns the error that a volume has no node of a name; `names` are those that it has.
pub(crate) fn unknown<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Error {
    let names = names.collect::<Vec<_>>().join(", ");
    Error::parameters(format!("the volume has no node called {name}; it has {names}"))
}
