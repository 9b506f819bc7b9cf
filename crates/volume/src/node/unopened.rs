//! A node that cannot be asked yet, because its credentials are not there.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use paritas_store::error::Result;

use super::{Abilities, Entry, Mode, Node, Stat, Writer};

/// Opens a node, or says why it cannot be opened.
type Opener = Box<dyn Fn() -> Result<Arc<dyn Node>> + Send + Sync>;

/// A node whose calls fail until it can be opened, which each of them tries. The other nodes of its
/// volume serve without it, as they do without a node that refuses the login.
pub(crate) struct Unopened {
    name: String,
    abilities: Abilities,
    open: Opener,
    node: OnceLock<Arc<dyn Node>>,
}

impl Unopened {
    pub fn new(name: &str, abilities: Option<Abilities>, open: Opener) -> Self {
        let abilities = abilities.unwrap_or(Abilities::ALL);
        Self { name: name.to_owned(), abilities, open, node: OnceLock::new() }
    }

    fn node(&self) -> Result<&Arc<dyn Node>> {
        match self.node.get() {
            Some(node) => Ok(node),
            None => (self.open)().map(|node| self.node.get_or_init(|| node)),
        }
    }
}

impl fmt::Debug for Unopened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unopened").field("name", &self.name).finish_non_exhaustive()
    }
}

#[async_trait]
impl Node for Unopened {
    fn name(&self) -> &str {
        &self.name
    }

    fn abilities(&self) -> Abilities {
        self.node.get().map_or(self.abilities, |node| node.abilities())
    }

    async fn read(&self, path: &str, range: Option<Range<u64>>) -> Result<Bytes> {
        self.node()?.read(path, range).await
    }

    async fn stat(&self, path: &str) -> Result<Option<Stat>> {
        self.node()?.stat(path).await
    }

    fn list<'a>(&'a self, prefix: &'a str) -> BoxStream<'a, Result<Entry>> {
        match self.node() {
            Ok(node) => node.list(prefix),
            Err(error) => stream::iter([Err(error)]).boxed(),
        }
    }

    async fn folders(&self, prefix: &str) -> Result<Vec<String>> {
        self.node()?.folders(prefix).await
    }

    async fn write(&self, path: &str, content: Bytes, mode: Mode) -> Result<()> {
        self.node()?.write(path, content, mode).await
    }

    async fn writer(&self, path: &str) -> Result<Box<dyn Writer>> {
        self.node()?.writer(path).await
    }

    async fn delete(&self, path: &str) -> Result<()> {
        self.node()?.delete(path).await
    }

    async fn delete_folder(&self, prefix: &str) -> Result<()> {
        self.node()?.delete_folder(prefix).await
    }

    async fn sweep(&self, age: Duration) -> Result<u64> {
        self.node()?.sweep(age).await
    }
}
