//! A node with faults, for tests and research: the faults of disks, servers and networks.
//!
//! Faults come by chance, from a seed, or at a certain call. The same seed and the same order of
//! calls give the same faults.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};
use paritas_store::error::{Error, ErrorKind, Result};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::{Abilities, Entry, Mode, Node, NodeCall, Stat, Writer};
use crate::flaw::no_space;

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// The node does not take the request: an I/O error, and nothing is done.
    Refuse,
    /// The node never answers.
    Hang,
    /// The connection ends in mid-transfer: an I/O error. A read or listing is lost; a written file
    /// may exist or not; a writer has sent half of a piece.
    Cut,
    /// Half of the data that is read, listed or written is missing, without an error.
    Short,
    /// One bit of the data that is read or written is wrong.
    Flip,
    /// The node has no space: an I/O error when something is written.
    Full,
    /// Reads, length queries and listings show the state before the last change.
    Stale,
    /// The node denies permission.
    Forbidden,
}

/// When something goes wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Trigger {
    /// At each call with this probability, from 0 to 1.
    Chance(f64),
    /// At the n-th call of the kind, counted from 1, and at no other.
    At(u64),
    /// At the n-th call of the kind, and at all later ones.
    From(u64),
}

/// A node with faults.
#[derive(Debug)]
pub struct Faulty {
    inner: Arc<dyn Node>,
    script: Script,
}

/// The faults and their triggers, shared by a node and its writers.
#[derive(Debug, Clone)]
struct Script {
    node: String,
    rules: Vec<(NodeCall, Fault, Trigger)>,
    state: Arc<Mutex<FaultState>>,
}

#[derive(Debug)]
struct FaultState {
    random: Xoshiro256PlusPlus,
    calls: HashMap<NodeCall, u64>,
    happened: u64,
    /// What was at a path before its last change; `None` if there was no file. Only kept if
    /// something can be stale.
    before: HashMap<String, Option<Bytes>>,
}

impl Faulty {
    /// Creates a node without faults yet.
    pub fn new(inner: Arc<dyn Node>, seed: u64) -> Self {
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let state =
            FaultState { random, calls: HashMap::new(), happened: 0, before: HashMap::new() };
        let (node, state) = (inner.name().to_owned(), Arc::new(Mutex::new(state)));
        Self { inner, script: Script { node, rules: Vec::new(), state } }
    }

    /// Adds a fault. If several faults are due at one call, the one that was added first happens.
    pub fn with(mut self, call: NodeCall, fault: Fault, trigger: Trigger) -> Self {
        self.script.rules.push((call, fault, trigger));
        self
    }

    /// Returns how many faults have happened.
    pub fn happened(&self) -> u64 {
        self.script.state().happened
    }

    /// Keeps the content of a path before it changes, if a stale read may show it later.
    async fn remember(&self, path: &str) {
        if self.script.rules.iter().any(|(_, fault, _)| *fault == Fault::Stale) {
            // Read as a range, because a shard may be too long to be read whole.
            let content = match self.inner.stat(path).await {
                Ok(Some(found)) => self.inner.read(path, Some(0..found.length)).await.ok(),
                _ => None,
            };
            self.script.state().before.insert(path.to_owned(), content);
        }
    }

    /// Returns the content of a path before its last change, if it has changed.
    fn stale(&self, path: &str) -> Option<Option<Bytes>> {
        self.script.state().before.get(path).cloned()
    }

    fn read_stale(&self, path: &str, range: Option<Range<u64>>) -> Option<Result<Bytes>> {
        let content = self.stale(path)?;
        let missing = || {
            Error::new(ErrorKind::NotFound, format!("there is no file {path}")).at_node(self.name())
        };
        Some(content.ok_or_else(missing).and_then(|content| {
            let range = range.unwrap_or(0..content.len() as u64);
            if range.start > range.end || range.end > content.len() as u64 {
                return Err(self.script.failed(&format!("{path} ends before the range does")));
            }
            Ok(content.slice(range.start as usize..range.end as usize))
        }))
    }

    /// Lists the files as they were before their last changes.
    fn list_stale<'a>(&'a self, prefix: &'a str) -> BoxStream<'a, Result<Entry>> {
        let before = self.script.state().before.clone();
        let old: Vec<_> = before
            .iter()
            .filter(|(path, _)| path.starts_with(prefix))
            .filter_map(|(path, content)| content.as_ref().map(|content| (path, content)))
            .map(|(path, content)| {
                let length = Some(content.len() as u64);
                Ok(Entry { path: path.clone(), length, modified: None })
            })
            .collect();
        let unchanged = self.inner.list(prefix).try_filter(move |entry| {
            let changed = before.contains_key(&entry.path);
            async move { !changed }
        });
        stream::iter(old).chain(unchanged).boxed()
    }
}

impl Script {
    fn state(&self) -> MutexGuard<'_, FaultState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self, why: &str) -> Error {
        Error::new(ErrorKind::Io, why).at_node(&self.node)
    }

    fn cut(&self) -> Error {
        self.failed("the connection was lost")
    }

    /// Counts a call, and returns the fault that is due. Faults that are the same for every kind of
    /// call happen here.
    async fn meet(&self, call: NodeCall) -> Result<Option<Fault>> {
        let fault = self.state().draw(&self.rules, call);
        match fault {
            Some(Fault::Refuse) => Err(self.failed("connection refused")),
            Some(Fault::Full) => Err(self.failed("no space left").because(no_space())),
            Some(Fault::Forbidden) => {
                Err(Error::new(ErrorKind::Refused, "no permission").at_node(&self.node))
            }
            Some(Fault::Hang) => std::future::pending().await,
            other => Ok(other),
        }
    }
}

impl FaultState {
    fn draw(&mut self, rules: &[(NodeCall, Fault, Trigger)], call: NodeCall) -> Option<Fault> {
        let count = self.calls.entry(call).or_default();
        *count += 1;
        let count = *count;
        let mut found = None;
        for (_, fault, trigger) in rules.iter().filter(|(kind, _, _)| *kind == call) {
            let comes = match *trigger {
                Trigger::Chance(chance) => self.fraction() < chance,
                Trigger::At(at) => count == at,
                Trigger::From(first) => count >= first,
            };
            if comes && found.is_none() {
                found = Some(*fault);
            }
        }
        self.happened += u64::from(found.is_some());
        found
    }

    /// Draws a number from 0 to 1.
    fn fraction(&mut self) -> f64 {
        (self.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn coin(&mut self) -> bool {
        self.random.next_u64() >> 63 == 1
    }

    fn flip(&mut self, content: &Bytes) -> Bytes {
        if content.is_empty() {
            return content.clone();
        }
        let bit = self.random.next_u64() as usize % (content.len() * 8);
        let mut content = content.to_vec();
        content[bit / 8] ^= 1 << (bit % 8);
        content.into()
    }

    /// Returns the bytes after a silent fault.
    fn spoil(&mut self, fault: Option<Fault>, content: Bytes) -> Bytes {
        match fault {
            Some(Fault::Short) => content.slice(..content.len() / 2),
            Some(Fault::Flip) => self.flip(&content),
            _ => content,
        }
    }
}

#[async_trait]
impl Node for Faulty {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn abilities(&self) -> Abilities {
        self.inner.abilities()
    }

    fn is_local(&self) -> bool {
        self.inner.is_local()
    }

    async fn read(&self, path: &str, range: Option<Range<u64>>) -> Result<Bytes> {
        let fault = self.script.meet(NodeCall::Read).await?;
        if fault == Some(Fault::Stale)
            && let Some(old) = self.read_stale(path, range.clone())
        {
            return old;
        }
        let content = self.inner.read(path, range).await?;
        match fault {
            Some(Fault::Cut) => Err(self.script.cut()),
            fault => Ok(self.script.state().spoil(fault, content)),
        }
    }

    async fn stat(&self, path: &str) -> Result<Option<Stat>> {
        match self.script.meet(NodeCall::Stat).await? {
            Some(Fault::Cut) => Err(self.script.cut()),
            Some(Fault::Stale) => match self.stale(path) {
                None => self.inner.stat(path).await,
                Some(old) => {
                    Ok(old.map(|content| Stat { length: content.len() as u64, modified: None }))
                }
            },
            Some(Fault::Short) => Ok(self
                .inner
                .stat(path)
                .await?
                .map(|found| Stat { length: found.length / 2, ..found })),
            _ => self.inner.stat(path).await,
        }
    }

    fn list<'a>(&'a self, prefix: &'a str) -> BoxStream<'a, Result<Entry>> {
        let listing = async move {
            let fault = self.script.meet(NodeCall::List).await?;
            if fault == Some(Fault::Stale) {
                return Ok::<_, Error>(self.list_stale(prefix));
            }
            if !matches!(fault, Some(Fault::Cut | Fault::Short)) {
                return Ok(self.inner.list(prefix));
            }
            let mut entries: Vec<_> = self.inner.list(prefix).collect().await;
            entries.truncate(entries.len() / 2);
            if fault == Some(Fault::Cut) {
                entries.push(Err(self.script.cut()));
            }
            Ok(stream::iter(entries).boxed())
        };
        stream::once(listing).try_flatten().boxed()
    }

    async fn write(&self, path: &str, content: Bytes, mode: Mode) -> Result<()> {
        let fault = self.script.meet(NodeCall::Write).await?;
        self.remember(path).await;
        if fault != Some(Fault::Cut) {
            let content = self.script.state().spoil(fault, content);
            return self.inner.write(path, content, mode).await;
        }
        if self.script.state().coin() {
            self.inner.write(path, content, mode).await?;
        }
        Err(self.script.cut())
    }

    async fn writer(&self, path: &str) -> Result<Box<dyn Writer>> {
        if self.script.meet(NodeCall::Write).await? == Some(Fault::Cut) {
            return Err(self.script.cut());
        }
        self.remember(path).await;
        let inner = self.inner.writer(path).await?;
        Ok(Box::new(FaultyWriter { inner, script: self.script.clone(), failed: false }))
    }

    async fn delete(&self, path: &str) -> Result<()> {
        let fault = self.script.meet(NodeCall::Delete).await?;
        let done = fault != Some(Fault::Cut) || self.script.state().coin();
        if done {
            self.remember(path).await;
            self.inner.delete(path).await?;
        }
        if fault == Some(Fault::Cut) { Err(self.script.cut()) } else { Ok(()) }
    }

    async fn delete_folder(&self, prefix: &str) -> Result<()> {
        self.inner.delete_folder(prefix).await
    }

    async fn free_bytes(&self) -> Option<u64> {
        self.inner.free_bytes().await
    }

    async fn forget_cached(&self, path: &str) {
        self.inner.forget_cached(path).await;
    }

    async fn sweep(&self, age: Duration) -> Result<u64> {
        self.inner.sweep(age).await
    }
}

struct FaultyWriter {
    inner: Box<dyn Writer>,
    script: Script,
    /// Whether a piece failed, so that the file cannot be finished.
    failed: bool,
}

#[async_trait]
impl Writer for FaultyWriter {
    async fn write(&mut self, pieces: Vec<Bytes>) -> Result<()> {
        let failed = std::mem::replace(&mut self.failed, true);
        let fault = self.script.meet(NodeCall::Piece).await?;
        let content = Bytes::from(pieces.concat());
        if fault == Some(Fault::Cut) {
            self.inner.write(vec![content.slice(..content.len() / 2)]).await?;
            return Err(self.script.cut());
        }
        let content = self.script.state().spoil(fault, content);
        self.inner.write(vec![content]).await?;
        self.failed = failed;
        Ok(())
    }

    async fn finish(self: Box<Self>) -> Result<()> {
        let Self { inner, script, failed } = *self;
        let met = match failed {
            true => Err(script.failed("a writer cannot be continued after an error")),
            false => script.meet(NodeCall::Finish).await,
        };
        let fault = match met {
            Ok(fault) => fault,
            Err(error) => {
                inner.abort().await;
                return Err(error);
            }
        };
        if fault != Some(Fault::Cut) {
            return inner.finish().await;
        }
        let done = script.state().coin();
        match done {
            true => inner.finish().await?,
            false => inner.abort().await,
        }
        Err(script.cut())
    }

    async fn abort(self: Box<Self>) {
        self.inner.abort().await;
    }
}
