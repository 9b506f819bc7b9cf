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
use s3s::checksum::ChecksumHasher;
use s3s::crypto::{Checksum as _, Crc32, Crc32c, Crc64Nvme, Md5, Sha1, Sha256};
use s3s::dto::{Checksum, StreamingBlob};
use s3s::stream::{ByteStream, RemainingLength};
use s3s::{S3Error, S3ErrorCode, StdError, TrailingHeaders, s3_error};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::arrival::BodyArrival;
use crate::errors::told;
use crate::facts::beside;

/// Number of pieces on the way between a connection and a volume.
const AHEAD: usize = 4;
/// What the adapter says of a body that does not have the SHA-256 in its signature.
const UNLIKE_SIGNED: &str = "Sha256Mismatch";

/// The properties that the request states for its body.
#[derive(Debug, Default)]
pub struct ExpectedBody {
    /// The number of bytes.
    pub length: Option<u64>,
    /// The MD5 in Base64.
    pub md5: Option<String>,
    /// Checksums in Base64.
    pub checksum: Checksum,
    /// The names of the headers that come after the body.
    pub trailing: Vec<String>,
}

/// What brings a body, and the headers after it.
pub struct BodyOrigin {
    pub body: Option<StreamingBlob>,
    /// The headers after the body, if the adapter has checked their signature.
    pub trailers: Option<TrailingHeaders>,
    /// How far the body of the request has arrived. A copy has none.
    pub arrival: Option<BodyArrival>,
}

/// The properties of a received body.
#[derive(Debug, Clone, Default)]
pub struct Received {
    /// The MD5, in hexadecimal digits.
    pub md5: String,
    /// The checksums that the client asked for.
    pub checksum: Checksum,
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
    count: u64,
    md5: Option<Md5>,
    hasher: ChecksumHasher,
    expected: ExpectedBody,
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
    let empty =
        Received { md5: hex(&Md5::new().finalize()), checksum: hasher_for(&expected).finalize() };
    let outcome: BodyOutcome = Arc::new(Mutex::new(Ok(empty)));
    let source = RequestBody {
        line,
        piece: Bytes::new(),
        is_over: false,
        count: 0,
        md5: Some(Md5::new()),
        hasher: hasher_for(&expected),
        expected,
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
        match text.contains(UNLIKE_SIGNED) {
            true => bad_request(
                "XAmzContentSHA256Mismatch",
                "the body does not have the SHA-256 that is signed",
            ),
            false => s3_error!(IncompleteBody, "reading the body: {text}"),
        }
    }
}

/// Returns an error whose code the adapter does not have.
pub fn bad_request(code: &'static str, message: &'static str) -> S3Error {
    let mut error = S3Error::with_message(S3ErrorCode::Custom(code.into()), message);
    error.set_status_code(http::StatusCode::BAD_REQUEST);
    error
}

fn hasher_for(expected: &ExpectedBody) -> ChecksumHasher {
    let Checksum { checksum_crc32, checksum_crc32c, checksum_crc64nvme, .. } = &expected.checksum;
    let Checksum { checksum_sha1, checksum_sha256, .. } = &expected.checksum;
    let is_wanted = |given: &Option<String>, name: &str| {
        given.is_some() || expected.trailing.iter().any(|after| after == name)
    };
    ChecksumHasher {
        crc32: is_wanted(checksum_crc32, "x-amz-checksum-crc32").then(Crc32::new),
        crc32c: is_wanted(checksum_crc32c, "x-amz-checksum-crc32c").then(Crc32c::new),
        crc64nvme: is_wanted(checksum_crc64nvme, "x-amz-checksum-crc64nvme").then(Crc64Nvme::new),
        sha1: is_wanted(checksum_sha1, "x-amz-checksum-sha1").then(Sha1::new),
        sha256: is_wanted(checksum_sha256, "x-amz-checksum-sha256").then(Sha256::new),
    }
}

impl RequestBody {
    /// Takes the next message from the line. Returns whether there is a piece.
    fn advance(&mut self) -> io::Result<bool> {
        match self.line.blocking_recv() {
            Some(Incoming::Bytes(bytes)) => {
                self.count += bytes.len() as u64;
                self.md5.iter_mut().for_each(|md5| md5.update(&bytes));
                self.hasher.update(&bytes);
                self.piece = bytes;
                Ok(true)
            }
            Some(Incoming::End(trailers)) => {
                self.is_over = true;
                match self.judge(&trailers) {
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

    /// Compares the complete body with what the request says of it.
    fn judge(&mut self, trailers: &HeaderMap) -> Result<Received, S3Error> {
        let md5 = self.md5.take().map(|md5| md5.finalize()).unwrap_or_default();
        let checksum = std::mem::take(&mut self.hasher).finalize();
        if let Some(length) = self.expected.length.filter(|&length| length != self.count) {
            let count = self.count;
            return Err(s3_error!(IncompleteBody, "{count} of {length} bytes came"));
        }
        if self.expected.md5.as_ref().is_some_and(|stated| *stated != base64(&md5)) {
            return Err(s3_error!(BadDigest, "the body does not have the MD5 that was stated"));
        }
        let mut announced = self.expected.trailing.iter();
        if announced.any(|name| !trailers.contains_key(name)) {
            return Err(bad_request(
                "MalformedTrailerError",
                "what x-amz-trailer names did not come after the body",
            ));
        }
        let stated = self.stated(trailers);
        let is_it = |[stated, found]: [Option<&str>; 2]| stated.is_none() || stated == found;
        let is_right = beside(&stated, &checksum).into_iter().all(is_it);
        match is_right {
            true => Ok(Received { md5: hex(&md5), checksum }),
            false => {
                Err(s3_error!(BadDigest, "the body does not have the checksum that was stated"))
            }
        }
    }

    /// Returns the checksums that were stated before the body or after it.
    fn stated(&self, trailers: &HeaderMap) -> Checksum {
        let before = &self.expected.checksum;
        let stated = |given: &Option<String>, name: &str| {
            let after = trailers.get(format!("x-amz-checksum-{name}"));
            let after = || after.and_then(|text| text.to_str().ok()).map(str::to_owned);
            given.clone().or_else(after)
        };
        Checksum {
            checksum_crc32: stated(&before.checksum_crc32, "crc32"),
            checksum_crc32c: stated(&before.checksum_crc32c, "crc32c"),
            checksum_crc64nvme: stated(&before.checksum_crc64nvme, "crc64nvme"),
            checksum_sha1: stated(&before.checksum_sha1, "sha1"),
            checksum_sha256: stated(&before.checksum_sha256, "sha256"),
            checksum_type: None,
        }
    }
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

/// Returns the digits of bytes.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// The bytes of an object, on the way from a volume.
pub struct Outgoing {
    /// Pieces that have come, and were not taken yet.
    piece: Option<Bytes>,
    line: Receiver<Result<Bytes, Error>>,
    /// Number of bytes that are to come.
    left: u64,
}

/// A sink for a volume, at the other end of which are the bytes that go out.
pub struct AnswerSink {
    line: Sender<Result<Bytes, Error>>,
    patience: Duration,
    /// The last piece so far. It goes out when all bytes are known to be right: a client that has
    /// the last byte takes the answer for whole.
    last: Option<Bytes>,
}

/// Returns a sink for `length` bytes, and its other end. The sink fails if nothing is taken for so
/// long.
pub fn line(length: u64, patience: Duration) -> (AnswerSink, Outgoing) {
    let (sender, line) = channel(AHEAD);
    (
        AnswerSink { line: sender, patience, last: None },
        Outgoing { piece: None, line, left: length },
    )
}

impl AnswerSink {
    /// Ends the bytes: with the last piece if they are right, otherwise with an error. If the other
    /// end is gone, nobody wants to know.
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
