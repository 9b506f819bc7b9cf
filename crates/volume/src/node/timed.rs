//! A node whose calls fail when they take too long.

use std::future::Future;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};

use super::{Abilities, Entry, Mode, Node, Stat, Writer};
use crate::{Error, ErrorKind, Result};

/// A node whose calls fail if they take longer than a time limit, as calls to a disk that hangs do.
#[derive(Debug)]
pub struct Timed {
    inner: Arc<dyn Node>,
    limit: Limit,
}

/// The time that a node is given for one call.
#[derive(Debug, Clone)]
struct Limit {
    node: String,
    time: Duration,
}

impl Timed {
    /// Gives each call of a node `time` to be answered.
    pub fn new(inner: Arc<dyn Node>, time: Duration) -> Self {
        let node = inner.name().to_owned();
        Self { inner, limit: Limit { node, time } }
    }
}

impl Limit {
    async fn hold<T>(&self, call: impl Future<Output = Result<T>>) -> Result<T> {
        let late = |_| {
            let seconds = self.time.as_secs_f64();
            Error::new(ErrorKind::Io, format!("no answer within {seconds} s")).at_node(&self.node)
        };
        tokio::time::timeout(self.time, call).await.map_err(late)?
    }
}

#[async_trait]
impl Node for Timed {
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
        self.limit.hold(self.inner.read(path, range)).await
    }

    async fn stat(&self, path: &str) -> Result<Option<Stat>> {
        self.limit.hold(self.inner.stat(path)).await
    }

    /// The time limit begins anew with every entry. Nothing follows an error.
    fn list<'a>(&'a self, prefix: &'a str) -> BoxStream<'a, Result<Entry>> {
        let next = async |entries: Option<BoxStream<'a, Result<Entry>>>| {
            let mut entries = entries?;
            match self.limit.hold(async { Ok(entries.next().await) }).await {
                Ok(entry) => entry.map(|entry| (entry, Some(entries))),
                Err(error) => Some((Err(error), None)),
            }
        };
        stream::unfold(Some(self.inner.list(prefix)), next).boxed()
    }

    async fn write(&self, path: &str, content: Bytes, mode: Mode) -> Result<()> {
        self.limit.hold(self.inner.write(path, content, mode)).await
    }

    async fn writer(&self, path: &str) -> Result<Box<dyn Writer>> {
        let inner = self.limit.hold(self.inner.writer(path)).await?;
        Ok(Box::new(TimedWriter { inner, limit: self.limit.clone() }))
    }

    async fn delete(&self, path: &str) -> Result<()> {
        self.limit.hold(self.inner.delete(path)).await
    }

    async fn delete_folder(&self, prefix: &str) -> Result<()> {
        self.limit.hold(self.inner.delete_folder(prefix)).await
    }

    async fn forget_cached(&self, path: &str) {
        let forget = async {
            self.inner.forget_cached(path).await;
            Ok(())
        };
        // Whoever reads the file finds out that the node does not answer.
        let _ = self.limit.hold(forget).await;
    }

    async fn sweep(&self, age: Duration) -> Result<u64> {
        self.limit.hold(self.inner.sweep(age)).await
    }
}

struct TimedWriter {
    inner: Box<dyn Writer>,
    limit: Limit,
}

#[async_trait]
impl Writer for TimedWriter {
    async fn write(&mut self, pieces: Vec<Bytes>) -> Result<()> {
        self.limit.hold(self.inner.write(pieces)).await
    }

    async fn finish(self: Box<Self>) -> Result<()> {
        self.limit.hold(self.inner.finish()).await
    }

    async fn abort(self: Box<Self>) {
        let Self { inner, limit } = *self;
        let abort = async {
            inner.abort().await;
            Ok(())
        };
        // Whatever is left is swept later.
        let _ = limit.hold(abort).await;
    }
}
