//! Nodes that hold back or refuse requests about certain files, to stop a client at a certain step.

use std::ops::{Range, RangeBounds};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use paritas_volume::node::{Abilities, Entry, Mode, Node, NodeCall, Stat, Writer};
use paritas_volume::{Error, ErrorKind, Result, Volume};
use tokio::sync::watch;

use super::Disks;

/// What happens to the requests that a gate stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Hold,
    Refuse,
}

/// Stops requests of one kind whose paths contain a text.
#[derive(Debug, Clone)]
pub struct Gate {
    rule: watch::Sender<Option<(Act, NodeCall, &'static str)>>,
    caught: watch::Sender<bool>,
}

impl Gate {
    /// Opens a volume with a gate, which lets everything pass, before these nodes.
    pub fn before(disks: &Disks, code: &str, nodes: impl RangeBounds<usize>) -> (Volume, Self) {
        let gate = Self { rule: watch::Sender::new(None), caught: watch::Sender::new(false) };
        let wrap = |disk: usize, inner: Arc<dyn Node>| -> Arc<dyn Node> {
            match nodes.contains(&disk) {
                true => Arc::new(Gated { inner, gate: gate.clone() }),
                false => inner,
            }
        };
        (disks.open_with(code, &wrap), gate)
    }

    /// Holds back these requests until the gate is opened.
    pub fn hold(&self, call: NodeCall, path: &'static str) {
        self.caught.send_replace(false);
        self.rule.send_replace(Some((Act::Hold, call, path)));
    }

    /// Refuses these requests until the gate is opened.
    pub fn refuse(&self, call: NodeCall, path: &'static str) {
        self.rule.send_replace(Some((Act::Refuse, call, path)));
    }

    /// Lets everything pass.
    pub fn open(&self) {
        self.rule.send_replace(None);
    }

    /// Waits until a request is held back.
    pub async fn caught(&self) {
        self.caught.subscribe().wait_for(|caught| *caught).await.unwrap();
    }

    async fn pass(&self, call: NodeCall, path: &str) -> Result<()> {
        let mut rule = self.rule.subscribe();
        let act = |rule: &Option<(Act, NodeCall, &str)>| {
            rule.and_then(|(act, stopped, text)| {
                (stopped == call && path.contains(text)).then_some(act)
            })
        };
        let found = act(&rule.borrow());
        match found {
            Some(Act::Refuse) => return Err(Error::new(ErrorKind::Io, "the gate is shut")),
            Some(Act::Hold) => _ = self.caught.send_replace(true),
            None => return Ok(()),
        }
        rule.wait_for(|rule| act(rule).is_none()).await.map(drop).unwrap();
        Ok(())
    }
}

#[derive(Debug)]
struct Gated {
    inner: Arc<dyn Node>,
    gate: Gate,
}

#[async_trait]
impl Node for Gated {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn abilities(&self) -> Abilities {
        self.inner.abilities()
    }

    async fn read(&self, path: &str, range: Option<Range<u64>>) -> Result<Bytes> {
        self.gate.pass(NodeCall::Read, path).await?;
        self.inner.read(path, range).await
    }

    async fn stat(&self, path: &str) -> Result<Option<Stat>> {
        self.gate.pass(NodeCall::Stat, path).await?;
        self.inner.stat(path).await
    }

    fn list<'a>(&'a self, prefix: &'a str) -> BoxStream<'a, Result<Entry>> {
        let begin = async move {
            match self.gate.pass(NodeCall::List, prefix).await {
                Ok(()) => self.inner.list(prefix),
                Err(error) => stream::once(async { Err(error) }).boxed(),
            }
        };
        stream::once(begin).flatten().boxed()
    }

    async fn write(&self, path: &str, content: Bytes, mode: Mode) -> Result<()> {
        self.gate.pass(NodeCall::Write, path).await?;
        self.inner.write(path, content, mode).await
    }

    async fn writer(&self, path: &str) -> Result<Box<dyn Writer>> {
        self.gate.pass(NodeCall::Write, path).await?;
        self.inner.writer(path).await
    }

    async fn delete(&self, path: &str) -> Result<()> {
        self.gate.pass(NodeCall::Delete, path).await?;
        self.inner.delete(path).await
    }

    async fn delete_folder(&self, prefix: &str) -> Result<()> {
        self.inner.delete_folder(prefix).await
    }
}
