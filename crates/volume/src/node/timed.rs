//! A node whose calls fail when it is silent for too long.
//!
//! Only this type waits for nodes with a time limit. [`super::contact`] describes what counts as
//! silence.

use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::{BoxStream, Stream, StreamExt};
use paritas_store::error::{Error, ErrorKind, Result};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::contact::Contact;
use super::{Abilities, Entry, Mode, Node, NodeCall, Stat, Writer};
use crate::names::READY;

/// Least speed, in bytes a second, at which a server must store a file that it copies after all of
/// it has arrived. No bytes move during that time.
const STORING: u64 = 16 << 20;

/// Largest number of entries of a listing that wait to be taken.
const LISTED: usize = 64;

/// A node that is given up when it does not answer within a time limit, such as a disk that hangs,
/// or when no connection to it can be made. All calls together wait for the limit once. Later calls
/// fail at once; now and then one of them starts a trial of the node in the background.
#[derive(Debug)]
pub struct Timed {
    inner: Arc<dyn Node>,
    contact: Arc<Contact>,
}

impl Timed {
    /// Gives a node `limit` to answer.
    pub fn new(inner: Arc<dyn Node>, limit: Duration) -> Self {
        let contact = Contact::new(inner.name(), limit);
        Self::over(inner, contact)
    }

    /// Gives a node the limit of a contact. The node reports its signs of life to the contact.
    pub(super) fn over(inner: Arc<dyn Node>, contact: Arc<Contact>) -> Self {
        Self { inner, contact }
    }

    /// Returns the contact for a call to the node. If a trial of a node that is lost or closed is
    /// due, starts it.
    fn contact(&self) -> &Arc<Contact> {
        if let Some(trial) = self.contact.due_trial() {
            let inner = Arc::clone(&self.inner);
            // The trial reads the mark, because a system may answer `stat` from its cache.
            tokio::spawn(async move { trial.wait(inner.read(READY, None)).await });
        }
        &self.contact
    }

    /// Sends a request, and keeps waiting for the answer even if the caller stops waiting.
    async fn ask<T: Send + 'static>(
        &self,
        kind: NodeCall,
        question: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        let (line, answers) = channel(1);
        let contact = Arc::clone(self.contact());
        let work = async move { drop(line.send(contact.hold(kind, question).await).await) };
        let answer = Asked::new(work, answers).next().await;
        answer.unwrap_or_else(|| Err(Error::new(ErrorKind::Internal, "a question has no answer")))
    }
}

/// A request about names, and its answers as they come. If it is dropped before the first answer,
/// it continues by itself until that comes, or until the node is lost. Otherwise a survey that soon
/// has enough other nodes would not notice that this node hangs, and the time limit would begin
/// anew with the next request.
struct Asked<T> {
    /// The work on the answers, until it is done.
    work: Option<BoxFuture<'static, ()>>,
    answers: Receiver<T>,
    /// Whether the node was asked, and has not answered yet.
    is_open: bool,
}

impl<T> Asked<T> {
    fn new(work: impl Future<Output = ()> + Send + 'static, answers: Receiver<T>) -> Self {
        Self { work: Some(Box::pin(work)), answers, is_open: false }
    }
}

impl<T> Stream for Asked<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        self.is_open = true;
        if let Some(work) = &mut self.work
            && work.as_mut().poll(context).is_ready()
        {
            self.work = None;
        }
        let answer = ready!(self.answers.poll_recv(context));
        self.is_open = false;
        Poll::Ready(answer)
    }
}

impl<T> Drop for Asked<T> {
    fn drop(&mut self) {
        if let (true, Some(work), Ok(runtime)) =
            (self.is_open, self.work.take(), Handle::try_current())
        {
            runtime.spawn(work);
        }
    }
}

/// Lists files until the receiver is gone. The listing ends after an error.
async fn list(
    node: Arc<dyn Node>,
    contact: Arc<Contact>,
    prefix: String,
    line: Sender<Result<Entry>>,
) {
    let mut entries = node.list(&prefix);
    loop {
        let entry = contact.hold(NodeCall::List, async { entries.next().await.transpose() }).await;
        let is_last = entry.is_err();
        let Some(entry) = entry.transpose() else { return };
        if line.send(entry).await.is_err() || is_last {
            return;
        }
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

    /// A range belongs to an object. Its read may be given up because another node was faster.
    async fn read(&self, path: &str, range: Option<Range<u64>>) -> Result<Bytes> {
        if range.is_some() {
            return self.contact().hold_lightly(self.inner.read(path, range)).await;
        }
        let (inner, path) = (Arc::clone(&self.inner), path.to_owned());
        self.ask(NodeCall::Read, async move { inner.read(&path, None).await }).await
    }

    async fn read_here(&self, path: &str, range: Range<u64>) -> Result<Bytes> {
        self.contact().hold_lightly(self.inner.read_here(path, range)).await
    }

    async fn stat(&self, path: &str) -> Result<Option<Stat>> {
        let (inner, path) = (Arc::clone(&self.inner), path.to_owned());
        self.ask(NodeCall::Stat, async move { inner.stat(&path).await }).await
    }

    fn list<'a>(&'a self, prefix: &'a str) -> BoxStream<'a, Result<Entry>> {
        let (line, entries) = channel(LISTED);
        let (inner, contact) = (Arc::clone(&self.inner), Arc::clone(self.contact()));
        Asked::new(list(inner, contact, prefix.to_owned(), line), entries).boxed()
    }

    async fn folders(&self, prefix: &str) -> Result<Vec<String>> {
        let (inner, prefix) = (Arc::clone(&self.inner), prefix.to_owned());
        self.ask(NodeCall::List, async move { inner.folders(&prefix).await }).await
    }

    async fn write(&self, path: &str, content: Bytes, mode: Mode) -> Result<()> {
        self.contact().hold(NodeCall::Write, self.inner.write(path, content, mode)).await
    }

    async fn writer(&self, path: &str) -> Result<Box<dyn Writer>> {
        let inner = self.contact().hold(NodeCall::Write, self.inner.writer(path)).await?;
        let contact = Arc::clone(&self.contact);
        Ok(Box::new(TimedWriter { inner, contact, is_local: self.is_local(), written: 0 }))
    }

    async fn delete(&self, path: &str) -> Result<()> {
        self.contact().hold(NodeCall::Delete, self.inner.delete(path)).await
    }

    async fn delete_folder(&self, prefix: &str) -> Result<()> {
        self.contact().hold(NodeCall::Delete, self.inner.delete_folder(prefix)).await
    }

    async fn free_bytes(&self) -> Option<u64> {
        let tell = async { Ok(self.inner.free_bytes().await) };
        self.contact().hold(NodeCall::Stat, tell).await.ok().flatten()
    }

    async fn forget_cached(&self, path: &str) {
        let forget = async {
            self.inner.forget_cached(path).await;
            Ok(())
        };
        // If the node does not answer, the next reader of the file gets the error.
        let _ = self.contact().hold(NodeCall::Read, forget).await;
    }

    async fn sweep(&self, age: Duration) -> Result<u64> {
        self.contact().hold(NodeCall::Delete, self.inner.sweep(age)).await
    }
}

struct TimedWriter {
    inner: Box<dyn Writer>,
    contact: Arc<Contact>,
    is_local: bool,
    /// Number of bytes that were written.
    written: u64,
}

#[async_trait]
impl Writer for TimedWriter {
    async fn write(&mut self, pieces: Vec<Bytes>) -> Result<()> {
        self.written += pieces.iter().map(|piece| piece.len() as u64).sum::<u64>();
        self.contact.hold(NodeCall::Piece, self.inner.write(pieces)).await
    }

    async fn finish(self: Box<Self>) -> Result<()> {
        let storing = if self.is_local { 0 } else { self.written / STORING };
        let storing = Duration::from_secs(storing);
        let Self { inner, contact, .. } = *self;
        contact.hold_longer(NodeCall::Finish, storing, inner.finish()).await
    }

    async fn abort(self: Box<Self>) {
        let Self { inner, contact, .. } = *self;
        let abort = async {
            inner.abort().await;
            Ok(())
        };
        // Remains are swept later.
        let _ = contact.hold(NodeCall::Delete, abort).await;
    }
}
