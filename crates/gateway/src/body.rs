//! Bodies of requests and answers. A volume reads a source in threads and hands pieces to a sink; a
//! connection is a stream. Between them is a short queue of pieces.

use std::io::{self, Read};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::Stream;
use http::HeaderMap;
use paritas_volume::{Error, ErrorKind, PieceSink};
use s3s::dto::StreamingBlob;
use s3s::stream::{ByteStream, RemainingLength};
use s3s::{S3Error, StdError, TrailingHeaders, s3_error};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::arrival::BodyArrival;
use crate::errors::told;
use crate::judge::{BodyJudge, ExpectedBody, Received, bad_request};

/// Number of pieces on the way between a connection and a volume.
const AHEAD: usize = 4;
/// What the adapter says of a body that does not have the SHA-256 in its signature.
const UNLIKE_SIGNED: &str = "Sha256Mismatch";
/// What the adapter says of a chunk whose signature is wrong.
const WRONG_CHUNK: &str = "SignatureMismatch";

/// What brings a body, and the headers after it.
pub struct BodyOrigin {
    pub body: Option<StreamingBlob>,
    /// The headers after the body, if the adapter has checked their signature.
    pub trailers: Option<TrailingHeaders>,
    /// How far the body of the request has arrived. A copy has none.
    pub arrival: Option<BodyArrival>,
}

/// Why a body is refused, or what it has.
type BodyOutcome = Arc<Mutex<Result<Received, S3Error>>>;

/// A message on the line from a connection to a volume.
enum Incoming {
    Bytes(Bytes),
    /// The body is complete. These headers came after it.
    End(HeaderMap),
    Failed(S3Error),
}

/// The body of a request, as a source for a volume. At its end it fails unless the body is as
/// expected, so a wrong body is never stored.
pub struct RequestBody {
    line: Receiver<Incoming>,
    piece: Bytes,
    is_over: bool,
    /// Judges the body; `None` after its end.
    judge: Option<BodyJudge>,
    outcome: BodyOutcome,
}

/// What becomes of a body.
#[derive(Clone)]
pub struct BodyFate(BodyOutcome);

impl BodyFate {
    /// Returns what the body had, when it was read to its end. Before, returns what an empty body
    /// has, which takes as much room in notes.
    pub fn received(&self) -> Received {
        match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Ok(received) => received.clone(),
            Err(_) => Received::default(),
        }
    }

    /// Returns why the body was refused, if it was.
    pub fn refusal(&self) -> Option<S3Error> {
        let mut outcome = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *outcome, Ok(Received::default())).err()
    }
}

/// Returns the source for a volume, what becomes of it, and the future that feeds it, which must
/// run beside the volume's.
pub fn receive(
    origin: BodyOrigin,
    expected: ExpectedBody,
) -> (RequestBody, BodyFate, impl Future<Output = ()>) {
    let (sender, line) = channel(AHEAD);
    let judge = BodyJudge::new(expected);
    let outcome: BodyOutcome = Arc::new(Mutex::new(Ok(judge.empty())));
    let source = RequestBody {
        line,
        piece: Bytes::new(),
        is_over: false,
        judge: Some(judge),
        outcome: Arc::clone(&outcome),
    };
    (source, BodyFate(outcome), origin.feed(sender))
}

impl BodyOrigin {
    async fn feed(mut self, line: Sender<Incoming>) {
        while let Some(stream) = &mut self.body {
            let message = match stream.next().await {
                Some(Ok(bytes)) => Incoming::Bytes(bytes),
                Some(Err(error)) => Incoming::Failed(self.refusal(&error)),
                None => break,
            };
            let is_last = matches!(message, Incoming::Failed(_));
            if line.send(message).await.is_err() || is_last {
                return;
            }
        }
        let arrived = self.arrival.map(|arrival| arrival.take_trailers());
        let signed = self.trailers.and_then(|trailers| trailers.take());
        let _ = line.send(Incoming::End(signed.or(arrived).unwrap_or_default())).await;
    }

    /// Returns what a client is told about a body that could not be read.
    fn refusal(&self, error: &StdError) -> S3Error {
        if let Some(refusal) = self.arrival.as_ref().and_then(BodyArrival::refusal) {
            return refusal;
        }
        // The source of a copy comes from the volume.
        if let Some(error) = error.downcast_ref::<Error>() {
            return told(error);
        }
        let text = error.to_string();
        if text.contains(WRONG_CHUNK) {
            return s3_error!(SignatureDoesNotMatch, "a chunk of the body has a wrong signature");
        }
        match text.contains(UNLIKE_SIGNED) {
            true => bad_request(
                "XAmzContentSHA256Mismatch",
                "the body does not have the SHA-256 that is signed",
            ),
            false => s3_error!(IncompleteBody, "reading the body: {text}"),
        }
    }
}

impl RequestBody {
    /// Takes the next message from the line. Returns whether there is a piece.
    fn advance(&mut self) -> io::Result<bool> {
        match next(&mut self.line) {
            Some(Incoming::Bytes(bytes)) => {
                self.judge.iter_mut().for_each(|judge| judge.update(&bytes));
                if let Some(refusal) = self.judge.as_ref().and_then(BodyJudge::too_long) {
                    return Err(self.refuse(refusal));
                }
                self.piece = bytes;
                Ok(true)
            }
            Some(Incoming::End(trailers)) => {
                self.is_over = true;
                let judged = self.judge.take().map(|judge| judge.judge(&trailers));
                match judged.unwrap_or_else(|| Ok(Received::default())) {
                    Ok(received) => {
                        *self.outcome.lock().unwrap_or_else(PoisonError::into_inner) = Ok(received);
                        Ok(false)
                    }
                    Err(refusal) => Err(self.refuse(refusal)),
                }
            }
            Some(Incoming::Failed(error)) => Err(self.refuse(error)),
            None => Err(self.refuse(s3_error!(IncompleteBody, "the client has gone"))),
        }
    }

    fn refuse(&self, error: S3Error) -> io::Error {
        let text = error.message().unwrap_or("the body is refused").to_owned();
        *self.outcome.lock().unwrap_or_else(PoisonError::into_inner) = Err(error);
        io::Error::other(text)
    }
}

/// Takes the next message from the line, in a thread that may wait for it.
fn next(line: &mut Receiver<Incoming>) -> Option<Incoming> {
    #[cfg(test)]
    if let Some(taken) = paritas_volume::simulation::take(line) {
        return taken;
    }
    line.blocking_recv()
}

impl Read for RequestBody {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            if self.is_over || !self.advance()? {
                return Ok(0);
            }
        }
        let bytes = self.piece.split_to(buffer.len().min(self.piece.len()));
        buffer[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    }
}

/// The bytes of an object, on the way from a volume.
pub struct Outgoing {
    /// Pieces that have come, and were not taken yet.
    piece: Option<Bytes>,
    line: Receiver<Result<Bytes, Error>>,
    /// Number of bytes that are to come.
    left: u64,
}

/// A sink that a volume writes to. The bytes that go out are taken from its other end.
pub struct AnswerSink {
    line: Sender<Result<Bytes, Error>>,
    patience: Duration,
    /// The last piece so far. It goes out when all bytes are known to be right: a client that has
    /// the last byte takes the answer for whole.
    last: Option<Bytes>,
}

/// Returns a sink for `length` bytes, and its other end. The sink fails if nothing is taken for
/// `patience`.
pub fn line(length: u64, patience: Duration) -> (AnswerSink, Outgoing) {
    let (sender, line) = channel(AHEAD);
    (
        AnswerSink { line: sender, patience, last: None },
        Outgoing { piece: None, line, left: length },
    )
}

impl AnswerSink {
    /// Whether somebody still waits for bytes.
    pub fn is_wanted(&self) -> bool {
        !self.line.is_closed()
    }

    /// Ends the bytes: with the last piece if they are right, otherwise with an error. Does not
    /// fail if the other end is gone.
    pub async fn end(mut self, result: Result<(), Error>) {
        let last = match result {
            Ok(()) => self.last.take().map(Ok),
            Err(error) => Some(Err(error)),
        };
        if let Some(last) = last {
            let _ = self.send(last).await;
        }
    }

    async fn send(&self, piece: Result<Bytes, Error>) -> io::Result<()> {
        let sent = self.line.send_timeout(piece, self.patience).await;
        sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

#[async_trait]
impl PieceSink for AnswerSink {
    async fn take(&mut self, piece: Bytes) -> io::Result<()> {
        match self.last.replace(piece) {
            Some(before) => self.send(Ok(before)).await,
            None => Ok(()),
        }
    }
}

impl Outgoing {
    /// Waits for the first bytes, and returns a body of all of them. So an object that cannot be
    /// read at all gives an error instead of an answer that breaks off.
    ///
    /// # Errors
    /// If the bytes begin with an error.
    pub async fn begun(mut self) -> Result<StreamingBlob, Error> {
        self.piece = self.line.recv().await.transpose()?;
        Ok(StreamingBlob::new(self))
    }

    /// Returns what has come, given what the line holds. The bytes end when all have come.
    fn note(&mut self, next: Option<Result<Bytes, Error>>) -> Option<Result<Bytes, Error>> {
        match next {
            Some(Ok(bytes)) => {
                self.left = self.left.saturating_sub(bytes.len() as u64);
                Some(Ok(bytes))
            }
            None if self.left > 0 => {
                self.left = 0;
                Some(Err(Error::new(ErrorKind::Io, "the bytes of the object ended early")))
            }
            other => other,
        }
    }
}

impl Stream for Outgoing {
    type Item = Result<Bytes, StdError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = match self.piece.take() {
            Some(piece) => Some(Ok(piece)),
            None => ready!(self.line.poll_recv(context)),
        };
        Poll::Ready(self.note(next).map(|piece| piece.map_err(Into::into)))
    }
}

impl ByteStream for Outgoing {
    fn remaining_length(&self) -> RemainingLength {
        RemainingLength::new_exact(self.left as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The last bytes go out only when all are known to be right.
    #[tokio::test]
    async fn what_turns_out_wrong_never_ends_as_if_it_were_whole() {
        for is_right in [true, false] {
            let (mut sink, mut outgoing) = line(10, Duration::from_secs(7));
            for piece in ["hello", "world"] {
                sink.take(Bytes::from_static(piece.as_bytes())).await.unwrap();
            }
            assert_eq!(outgoing.line.try_recv().unwrap().unwrap(), "hello");
            assert!(outgoing.line.try_recv().is_err());
            let wrong = || Error::new(ErrorKind::DigestMismatch, "other bytes");
            sink.end(if is_right { Ok(()) } else { Err(wrong()) }).await;
            assert_eq!(outgoing.line.recv().await.unwrap().is_ok(), is_right);
            assert!(outgoing.line.recv().await.is_none());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn sinks_fail_if_nothing_is_taken() {
        let patience = Duration::from_secs(7);
        let (mut sink, outgoing) = line(100, patience);
        let begun = tokio::time::Instant::now();
        while sink.take(Bytes::from_static(b"hello")).await.is_ok() {}
        assert_eq!(begun.elapsed().as_secs(), 7);
        drop(outgoing);
    }
}
