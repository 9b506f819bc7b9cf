//! A node that cannot be asked, because its credentials are not there.

use std::ops::Range;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use paritas_store::error::{Error, ErrorKind, Result};

use super::{Abilities, Entry, Mode, Node, Stat, Writer};

/// A node all of whose calls fail for one reason. The other nodes of its volume serve without it,
/// as they do without a node that refuses the login.
#[derive(Debug)]
pub(crate) struct Unopened {
    name: String,
    abilities: Abilities,
    why: String,
}

impl Unopened {
    pub fn new(name: &str, abilities: Option<Abilities>, why: &Error) -> Self {
        let abilities = abilities.unwrap_or(Abilities::ALL);
        Self { name: name.to_owned(), abilities, why: why.message().to_owned() }
    }

    fn refuse<T>(&self) -> Result<T> {
        Err(Error::new(ErrorKind::Refused, self.why.clone()).at_node(&self.name))
    }
}

#[async_trait]
impl Node for Unopened {
    fn name(&self) -> &str {
        &self.name
    }

    fn abilities(&self) -> Abilities {
        self.abilities
    }

    async fn read(&self, _path: &str, _range: Option<Range<u64>>) -> Result<Bytes> {
        self.refuse()
    }

    async fn stat(&self, _path: &str) -> Result<Option<Stat>> {
        self.refuse()
    }

    fn list<'a>(&'a self, _prefix: &'a str) -> BoxStream<'a, Result<Entry>> {
        stream::iter([self.refuse()]).boxed()
    }

    async fn write(&self, _path: &str, _content: Bytes, _mode: Mode) -> Result<()> {
        self.refuse()
    }

    async fn writer(&self, _path: &str) -> Result<Box<dyn Writer>> {
        self.refuse()
    }

    async fn delete(&self, _path: &str) -> Result<()> {
        self.refuse()
    }

    async fn sweep(&self, _age: Duration) -> Result<u64> {
        self.refuse()
    }
}
