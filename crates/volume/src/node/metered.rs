//! The common part of decorators that watch, hold back or refuse requests without changing them.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::FutureExt;
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};
use paritas_store::error::{Error, Result};

use super::{Abilities, Entry, Mode, Node, Stat, Writer};

/// The kinds of calls to a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum NodeCall {
    /// A file is read, or a part of it.
    Read,
    /// The length of a file is asked for.
    Stat,
    /// Files are listed.
    List,
    /// A file is written at once, or a writer is made.
    Write,
    /// A writer takes bytes. This is part of a request, not a separate request.
    Piece,
    /// A writer is finished.
    Finish,
    /// A file is deleted.
    Delete,
}

/// The actions around the calls of a node. Types that count, limit or refuse calls implement it.
#[async_trait]
pub trait Meter: fmt::Debug + Send + Sync + 'static {
    /// A value that is held while the node works on a call.
    type Guard: Send;

    /// Called before the node.
    ///
    /// # Errors
    /// If the call is refused. The node is not asked then.
    async fn begin(&self, call: NodeCall, path: &str) -> Result<Self::Guard>;

    /// Called before the node reads a range on a thread that may block ([`Node::read_here`]).
    ///
    /// # Errors
    /// As [`Self::begin`].
    async fn begin_here(&self, path: &str) -> Result<Self::Guard> {
        self.begin(NodeCall::Read, path).await
    }

    /// Called before bytes go to the node, and after bytes have come from it.
    async fn carry(&self, call: NodeCall, bytes: u64);
}

/// A node with a meter around its calls. [`super::Counted`] and [`super::Limited`] are such nodes.
#[derive(Debug)]
pub struct Metered<M> {
    inner: Arc<dyn Node>,
    meter: Arc<M>,
}

impl<M: Meter> Metered<M> {
    /// Puts a meter around a node. Several nodes may share one.
    pub fn new(inner: Arc<dyn Node>, meter: Arc<M>) -> Self {
        Self { inner, meter }
    }

    /// Returns the meter.
    pub fn meter(&self) -> &Arc<M> {
        &self.meter
    }
}

#[async_trait]
impl<M: Meter> Node for Metered<M> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn abilities(&self) -> Abilities {
        self.inner.abilities()
    }

    fn is_local(&self) -> bool {
        self.inner.is_local()
    }

    /// Reading is a separate task, which goes on while its caller is busy with other work. If it
    /// stood still meanwhile, it would hold a permit of the node for which that other work may
    /// wait.
    async fn read(&self, path: &str, range: Option<Range<u64>>) -> Result<Bytes> {
        let (inner, meter, path) = (self.inner.clone(), self.meter.clone(), path.to_owned());
        let read = async move {
            let _guard = meter.begin(NodeCall::Read, &path).await?;
            let content = inner.read(&path, range).await?;
            meter.carry(NodeCall::Read, content.len() as u64).await;
            Ok(content)
        };
        // The task ends if the content is no longer wanted.
        let (read, content) = read.remote_handle();
        tokio::spawn(read);
        content.await
    }

    async fn read_here(&self, path: &str, range: Range<u64>) -> Result<Bytes> {
        let _guard = self.meter.begin_here(path).await?;
        let content = self.inner.read_here(path, range).await?;
        self.meter.carry(NodeCall::Read, content.len() as u64).await;
        Ok(content)
    }

    async fn stat(&self, path: &str) -> Result<Option<Stat>> {
        let _guard = self.meter.begin(NodeCall::Stat, path).await?;
        self.inner.stat(path).await
    }

    /// The guard is held until the first entry comes, and no longer, because the entries' receiver
    /// may ask the same node for files.
    fn list<'a>(&'a self, prefix: &'a str) -> BoxStream<'a, Result<Entry>> {
        let begin = async move {
            let _guard = self.meter.begin(NodeCall::List, prefix).await?;
            let mut entries = self.inner.list(prefix);
            let first = entries.next().await;
            Ok::<_, Error>(stream::iter(first).chain(entries))
        };
        stream::once(begin).try_flatten().boxed()
    }

    async fn folders(&self, prefix: &str) -> Result<Vec<String>> {
        let _guard = self.meter.begin(NodeCall::List, prefix).await?;
        self.inner.folders(prefix).await
    }

    async fn write(&self, path: &str, content: Bytes, mode: Mode) -> Result<()> {
        let _guard = self.meter.begin(NodeCall::Write, path).await?;
        self.meter.carry(NodeCall::Write, content.len() as u64).await;
        self.inner.write(path, content, mode).await
    }

    async fn writer(&self, path: &str) -> Result<Box<dyn Writer>> {
        let _guard = self.meter.begin(NodeCall::Write, path).await?;
        let inner = self.inner.writer(path).await?;
        let (meter, path) = (self.meter.clone(), path.to_owned());
        Ok(Box::new(MeteredWriter { inner, meter, path }))
    }

    async fn delete(&self, path: &str) -> Result<()> {
        let _guard = self.meter.begin(NodeCall::Delete, path).await?;
        self.inner.delete(path).await
    }

    async fn delete_folder(&self, prefix: &str) -> Result<()> {
        let _guard = self.meter.begin(NodeCall::Delete, prefix).await?;
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

struct MeteredWriter<M> {
    inner: Box<dyn Writer>,
    meter: Arc<M>,
    path: String,
}

#[async_trait]
impl<M: Meter> Writer for MeteredWriter<M> {
    async fn write(&mut self, pieces: Vec<Bytes>) -> Result<()> {
        let _guard = self.meter.begin(NodeCall::Piece, &self.path).await?;
        let bytes = pieces.iter().map(|piece| piece.len() as u64).sum();
        self.meter.carry(NodeCall::Piece, bytes).await;
        self.inner.write(pieces).await
    }

    async fn finish(self: Box<Self>) -> Result<()> {
        let Self { inner, meter, path } = *self;
        let _guard = match meter.begin(NodeCall::Finish, &path).await {
            Ok(guard) => guard,
            Err(refused) => {
                inner.abort().await;
                return Err(refused);
            }
        };
        inner.finish().await
    }

    async fn abort(self: Box<Self>) {
        self.inner.abort().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::{Counted, FolderNode};

    /// Counts the tasks that reading makes: none on a thread that may block, where handing over to
    /// another would take as long as reading a megabyte.
    #[test]
    fn a_thread_that_may_block_reads_by_itself() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file"), b"content").unwrap();
        let node = Counted::of(Arc::new(FolderNode::new("one", folder.path(), false)));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        // Only `block_on` drives this runtime's tasks, and a task would need a turn of it.
        let read = async {
            let content = futures::poll!(std::pin::pin!(node.read_here("file", 0..4)));
            matches!(content, std::task::Poll::Ready(Ok(content)) if content == "cont"[..])
        };
        assert!(runtime.block_on(read), "it is read when it is first asked for");
        let read = node.read("file", Some(0..4));
        let read = async { futures::poll!(std::pin::pin!(read)).is_pending() };
        assert!(runtime.block_on(read), "elsewhere it is a task");
    }
}
