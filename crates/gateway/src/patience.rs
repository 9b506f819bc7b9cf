//! When a client is given up: it has sent nothing for a while although bytes of it are expected, or
//! takes nothing although there is something to take, or has no request on its connection.
//!
//! The parts of a connection note in its [`Activity`] when they move bytes, and when the gateway
//! itself is at work. The connection is closed when neither was so for long enough.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::Extensions;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use s3s::{Body, StdError};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use crate::held::held;

/// How long a gateway waits for a client to send the next bytes or request, or to take some bytes,
/// unless it is told otherwise. Load balancers keep connections without a request for a minute, and
/// would send the next request on one that is being closed.
pub const PATIENCE: Duration = Duration::from_secs(75);
/// Largest number of bytes of a write that does not count as progress, because it may only answer a
/// ping of HTTP/2.
const LIKE_A_PING: usize = 64;

/// How long the client of a request may take nothing. It is among the extensions of the request.
#[derive(Debug, Clone, Copy)]
pub struct ClientPatience(pub Duration);

impl ClientPatience {
    /// Returns the patience with the client of a request.
    pub fn of(extensions: &Extensions) -> Duration {
        extensions.get().map_or(PATIENCE, |&Self(patience)| patience)
    }
}

/// What happens on a connection.
#[derive(Debug)]
pub struct Activity {
    /// Number of things that the client waits for.
    working: AtomicUsize,
    /// Whether the gateway has been at work at all.
    has_begun: AtomicBool,
    /// When something happened.
    last: Mutex<Instant>,
}

impl Activity {
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            working: AtomicUsize::new(0),
            has_begun: AtomicBool::new(false),
            last: Mutex::new(Instant::now()),
        })
    }

    fn note(&self) {
        *held(&self.last) = Instant::now();
    }

    /// Notes that the gateway is at work until the result is dropped.
    pub fn work(self: &Arc<Self>) -> RequestWork {
        self.has_begun.store(true, Ordering::Relaxed);
        self.working.fetch_add(1, Ordering::Relaxed);
        RequestWork(Arc::clone(self))
    }

    /// Waits until nothing has happened for `patience`, or nothing at all for the time `greeting`.
    pub async fn silent_for(&self, greeting: Duration, patience: Duration) {
        loop {
            let patience = match self.has_begun.load(Ordering::Relaxed) {
                true => patience,
                false => greeting.min(patience),
            };
            let silence = match self.working.load(Ordering::Relaxed) {
                0 => held(&self.last).elapsed(),
                _ => Duration::ZERO,
            };
            if silence >= patience {
                return;
            }
            tokio::time::sleep(patience - silence).await;
        }
    }
}

/// The gateway is at work.
#[derive(Debug)]
pub struct RequestWork(Arc<Activity>);

impl Drop for RequestWork {
    fn drop(&mut self) {
        self.0.note();
        self.0.working.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A connection that notes when its client takes bytes.
pub struct NotedStream<S> {
    stream: S,
    activity: Arc<Activity>,
}

impl<S> NotedStream<S> {
    pub fn new(stream: S, activity: Arc<Activity>) -> Self {
        Self { stream, activity }
    }

    fn note(&self, written: &Poll<io::Result<usize>>) {
        if matches!(written, Poll::Ready(Ok(length)) if *length > LIKE_A_PING) {
            self.activity.note();
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for NotedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for NotedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.note(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.note(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// The body of an answer. While its next bytes are not there, the gateway is at work.
pub struct AnswerBody {
    body: Body,
    activity: Arc<Activity>,
    work: Option<RequestWork>,
}

impl AnswerBody {
    pub fn new(body: Body, activity: Arc<Activity>) -> Self {
        Self { body, activity, work: None }
    }
}

impl HttpBody for AnswerBody {
    type Data = Bytes;
    type Error = StdError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StdError>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        match frame.is_pending() {
            true if self.work.is_none() => self.work = Some(self.activity.work()),
            true => {}
            false => self.work = None,
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        HttpBody::size_hint(&self.body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn silence_begins_when_the_work_is_done() {
        let (activity, begun) = (Activity::new(), Instant::now());
        let work = activity.work();
        let second = Duration::from_secs(1);
        let wait = activity.silent_for(60 * second, 60 * second);
        let other = async {
            tokio::time::sleep(90 * second).await;
            drop(work);
            tokio::time::sleep(30 * second).await;
            activity.note();
        };
        futures::join!(wait, other);
        assert!(begun.elapsed() >= 180 * second && begun.elapsed() < 182 * second);
    }
}
