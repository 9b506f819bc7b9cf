//! The way from one process to one node.

use std::fmt;
use std::future::pending;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use paritas::Code;
use paritas_store::error::{Error, Result};
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::disk::{SimulatedDisk, flipped};
use super::world::{BrokenRule, CallFate, SimulatedState, SimulatedWorld};
use crate::names;
use crate::node::{Abilities, Entry, Limited, Mode, Node, Stat, Timed, Writer};
use crate::outside::time_of_day;
use crate::placement::Member;
use crate::setup::Setup;
use crate::volume::Volume;

#[derive(Clone)]
pub(super) struct Link {
    pub world: Arc<SimulatedWorld>,
    pub process: usize,
    pub node: usize,
    pub name: String,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Link({}, {})", self.process, self.node)
    }
}

/// The most bytes of an object that stands in its manifests.
const INLINE_BYTES: usize = 200;

impl SimulatedWorld {
    /// Opens a volume over all nodes as a process does.
    ///
    /// # Panics
    /// If the code has more parts than there are nodes.
    pub fn open(self: &Arc<Self>, process: usize, code: &Code, losses: usize) -> Volume {
        let node = |node: usize| {
            let (world, name) = (Arc::clone(self), format!("n{node}"));
            let link: Arc<dyn Node> = Arc::new(Link { world, process, node, name: name.clone() });
            let timed = Timed::new(link, Duration::from_secs(15));
            let limited: Arc<dyn Node> = Arc::new(Limited::to(Arc::new(timed), 4, None));
            (Member { domain: name.clone(), name, is_drained: false }, limited)
        };
        let nodes = (0..self.state().disks.len()).map(node).collect();
        let mut setup = Setup::new("0".repeat(32), code.clone(), nodes);
        setup.losses = Some(losses);
        setup.block_bytes = 256;
        setup.inline_bytes = INLINE_BYTES;
        setup.settings.threads = 1;
        setup.settings.unit = 512;
        setup.settings.memory = 1 << 20;
        Volume::new(setup).expect("a valid setup")
    }
}

/// Returns the true time, whoever asks.
fn true_time() -> std::time::SystemTime {
    crate::outside::simulated::by_clock(0, time_of_day)
}

impl Link {
    /// Sends a request, which goes on its way even if the sender waits no longer. Does what it asks
    /// for when it arrives, and returns the answer if one comes.
    async fn ask<T: Send + 'static>(
        &self,
        what: String,
        act: impl FnOnce(&mut SimulatedState, usize, CallFate) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let Self { world, process, node, name } = self.clone();
        let sent = world.state().send(process, node);
        let Some(journey) = sent else { return pending().await };
        let (line, answer) = oneshot::channel();
        tokio::spawn(async move {
            sleep(journey.there).await;
            let act = |state: &mut SimulatedState| act(state, node, journey.fate);
            let done = world.state().arrive((process, node), &what, journey, act);
            sleep(journey.back).await;
            let is_silent = matches!(journey.fate, CallFate::Silence | CallFate::DoneInSilence);
            if !is_silent && world.state().is_alive(process) {
                let _ = line.send(done.map_err(|error: Error| error.at_node(&name)));
            }
        });
        match answer.await {
            Ok(answer) => answer,
            Err(_) => pending().await,
        }
    }

    /// Changes a file.
    async fn change(
        &self,
        what: String,
        act: impl FnOnce(&mut SimulatedDisk) -> Result<()> + Send + 'static,
        written: Option<String>,
    ) -> Result<()> {
        let act = move |state: &mut SimulatedState, node: usize, _| {
            act(&mut state.disks[node])?;
            written.iter().for_each(|path| state.written(path));
            Ok(())
        };
        self.ask(what, act).await
    }
}

#[async_trait]
impl Node for Link {
    fn name(&self) -> &str {
        &self.name
    }

    fn abilities(&self) -> Abilities {
        Abilities::ALL
    }

    async fn read(&self, path: &str, range: Option<Range<u64>>) -> Result<Bytes> {
        let (path, what) = (path.to_owned(), format!("read {path} {range:?}"));
        let read = move |state: &mut SimulatedState, node: usize, fate| {
            let content = state.disks[node].read(&path, range)?;
            match fate {
                CallFate::Garbled => Ok(flipped(&content, &mut state.chance)),
                _ => Ok(content),
            }
        };
        self.ask(what, read).await
    }

    async fn stat(&self, path: &str) -> Result<Option<Stat>> {
        let (path, what) = (path.to_owned(), format!("stat {path}"));
        self.ask(what, move |state, node, _| Ok(state.disks[node].stat(&path))).await
    }

    fn list<'a>(&'a self, prefix: &'a str) -> BoxStream<'a, Result<Entry>> {
        let (owned, what) = (prefix.to_owned(), format!("list {prefix}"));
        let list = move |state: &mut SimulatedState, node: usize, _| {
            let lag = match state.mutation {
                Some(BrokenRule::LaggingLists) => state.chance.time(Duration::from_secs(60)),
                _ => Duration::ZERO,
            };
            let entries = state.disks[node].list(&owned, lag);
            let is_hidden = state.mutation == Some(BrokenRule::HiddenFlags)
                && !state.is_calm
                && owned.starts_with(&names::folder_above(names::CLOSING));
            Ok(if is_hidden { Vec::new() } else { entries })
        };
        let entries = async move {
            match self.ask(what, list).await {
                Ok(entries) => stream::iter(entries.into_iter().map(Ok).collect::<Vec<_>>()),
                Err(error) => stream::iter(vec![Err(error)]),
            }
        };
        stream::once(entries).flatten().boxed()
    }

    async fn write(&self, path: &str, content: Bytes, mode: Mode) -> Result<()> {
        let what = format!("write {path}, {} bytes, {mode:?}", content.len());
        let (path, written) = (path.to_owned(), Some(path.to_owned()));
        let write = move |disk: &mut SimulatedDisk| disk.write(&path, content, mode, true_time());
        self.change(what, write, written).await
    }

    async fn writer(&self, path: &str) -> Result<Box<dyn Writer>> {
        self.change(format!("open {path}"), |_| Ok(()), None).await?;
        Ok(Box::new(LinkWriter { link: self.clone(), path: path.to_owned(), content: Vec::new() }))
    }

    async fn delete(&self, path: &str) -> Result<()> {
        let (path, what) = (path.to_owned(), format!("delete {path}"));
        let delete = move |disk: &mut SimulatedDisk| {
            disk.delete(&path);
            Ok(())
        };
        self.change(what, delete, None).await
    }
}

struct LinkWriter {
    link: Link,
    path: String,
    content: Vec<u8>,
}

#[async_trait]
impl Writer for LinkWriter {
    async fn write(&mut self, pieces: Vec<Bytes>) -> Result<()> {
        let bytes: usize = pieces.iter().map(Bytes::len).sum();
        let what = format!("send {} bytes of {}", bytes, self.path);
        pieces.iter().for_each(|piece| self.content.extend_from_slice(piece));
        self.link.change(what, |_| Ok(()), None).await
    }

    async fn finish(self: Box<Self>) -> Result<()> {
        let Self { link, path, content } = *self;
        let what = format!("finish {path}, {} bytes", content.len());
        let finish = move |disk: &mut SimulatedDisk| {
            disk.write(&path, content.into(), Mode::Replace, true_time())
        };
        link.change(what, finish, None).await
    }

    async fn abort(self: Box<Self>) {}
}
