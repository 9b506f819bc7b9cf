//! Bodies of requests on their way in, before the adapter reads them. The adapter waits without
//! end, stores the framing of requests without a signature, and does not tell whether it has read a
//! body to its end.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, HeaderValue, Request};
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use s3s::{Body, S3Error, S3ErrorCode, StdError, s3_error};
use tokio::time::{Instant, Sleep};

use crate::chunks::ChunkReader;
use crate::headers::{Framing, decoded_length, expected_document};
use crate::held::held;
use crate::judge::{BodyJudge, ExpectedBody, lacking_trailer};
use crate::patience::ClientPatience;

/// The fewest bytes of a body that a client must send in the time of the gateway's patience, unless
/// the body ends: about a kilobyte a second.
const LEAST: usize = 64 << 10;

/// The most bytes of a document: more than the keys of a thousand objects take, or ten thousand
/// parts. The adapter keeps a document in memory.
pub const MOST_DOCUMENT: u64 = 8 << 20;

/// Why a body did not arrive.
#[derive(Debug, Clone, Copy)]
enum ArrivalFault {
    Stalled,
    Framing,
    Digest,
    Trailer,
    Cdata,
    Document,
}

/// How far the body of a request has arrived. All clones are of the same body.
#[derive(Debug, Clone, Default)]
pub struct BodyArrival(Arc<Mutex<ArrivalState>>);

#[derive(Debug, Default)]
struct ArrivalState {
    is_over: bool,
    is_document: bool,
    /// The number of bytes that have come.
    bytes: u64,
    fault: Option<ArrivalFault>,
    trailers: HeaderMap,
}

impl BodyArrival {
    /// Whether the body was read to its end.
    pub fn is_over(&self) -> bool {
        held(&self.0).is_over
    }

    /// Whether the body is a document that is still to come.
    pub fn is_of_document(&self) -> bool {
        let state = held(&self.0);
        state.is_document && !state.is_over
    }

    /// Returns the number of bytes that have come, with the framing.
    pub fn bytes(&self) -> u64 {
        held(&self.0).bytes
    }

    /// Returns why the body did not arrive, if the gateway has found a fault.
    pub fn refusal(&self) -> Option<S3Error> {
        held(&self.0).fault.map(|fault| match fault {
            ArrivalFault::Stalled => {
                s3_error!(RequestTimeout, "the body stopped coming, or came too slowly")
            }
            ArrivalFault::Framing => {
                s3_error!(IncompleteBody, "the body is not aws-chunked, or has no last chunk")
            }
            ArrivalFault::Digest => {
                s3_error!(BadDigest, "the document does not have a digest that was stated")
            }
            ArrivalFault::Trailer => lacking_trailer(),
            ArrivalFault::Document => too_long_document(),
            ArrivalFault::Cdata => {
                s3_error!(MalformedXML, "the document has a CDATA section; escape its text instead")
            }
        })
    }

    /// Takes the headers that came after the body, if it was framed.
    pub fn take_trailers(&self) -> HeaderMap {
        std::mem::take(&mut held(&self.0).trailers)
    }
}

/// Returns the error for a document with more than [`MOST_DOCUMENT`] bytes.
pub fn too_long_document() -> S3Error {
    s3_error!(MaxMessageLengthExceeded, "a document has at most {MOST_DOCUMENT} bytes")
}

/// Returns a request as the adapter gets it, and how far its body has arrived. The extensions of
/// the request have that as well, and the patience with its client.
pub fn arriving(request: Request<Incoming>, patience: Duration) -> (Request<Body>, BodyArrival) {
    let framing = Framing::of(request.method(), request.headers());
    let (mut head, body) = request.into_parts();
    let arrival = BodyArrival::default();
    held(&arrival.0).is_over = body.is_end_stream();
    let expected = expected_document(&head.method, head.uri.query(), &head.headers);
    held(&arrival.0).is_document = expected.is_some();
    head.extensions.insert(arrival.clone());
    head.extensions.insert(ClientPatience(patience));
    if framing == Framing::Unsigned {
        head.headers.remove(CONTENT_LENGTH);
        let length = decoded_length(&head.headers).map(HeaderValue::from);
        head.headers.extend(length.map(|length| (CONTENT_LENGTH, length)));
    }
    let body = ArrivingBody {
        body,
        framing: (framing != Framing::None).then(ChunkReader::default),
        is_decoded: framing == Framing::Unsigned,
        content: VecDeque::new(),
        document: expected.map(DocumentJudge::new),
        patience: BodyPatience::new(patience),
        arrival: arrival.clone(),
    };
    (Request::from_parts(head, Body::http_body(body)), arrival)
}

/// A body on its way in.
struct ArrivingBody {
    body: Incoming,
    /// What reads the framing, until the body is over.
    framing: Option<ChunkReader>,
    /// Whether the content goes on without the framing.
    is_decoded: bool,
    /// Content that goes on before more is read.
    content: VecDeque<Bytes>,
    /// Judges a document, until it is over.
    document: Option<DocumentJudge>,
    patience: BodyPatience,
    arrival: BodyArrival,
}

/// Judges a document in the place of the adapter, which does not compare it with its digests, and
/// passes over what is in CDATA sections: it would read another name or value.
struct DocumentJudge {
    judge: BodyJudge,
    /// The bytes so far that a CDATA section may begin with.
    tail: Vec<u8>,
    has_cdata: bool,
}

impl DocumentJudge {
    const CDATA: &[u8] = b"<![CDATA[";

    fn new(expected: ExpectedBody) -> Self {
        Self { judge: BodyJudge::new(expected), tail: Vec::new(), has_cdata: false }
    }

    fn update(&mut self, bytes: &[u8]) {
        self.judge.update(bytes);
        let most = Self::CDATA.len();
        let seen = [&self.tail, bytes].concat();
        self.has_cdata |= seen.windows(most).any(|window| window == Self::CDATA);
        self.tail = seen[seen.len().saturating_sub(most - 1)..].to_vec();
    }
}

/// The patience with the client that sends a body. It counts the time in which the gateway waits
/// for bytes, and begins anew after each [`LEAST`] of them: otherwise a byte now and then would
/// keep the place of a transfer for ever.
struct BodyPatience {
    patience: Duration,
    /// How long the gateway has waited, and the number of bytes that have come meanwhile.
    waited: Duration,
    came: usize,
    /// Since when the gateway waits, and when the client is given up.
    waiting: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl BodyPatience {
    fn new(patience: Duration) -> Self {
        Self { patience, waited: Duration::ZERO, came: 0, waiting: None }
    }

    /// Notes that bytes have come.
    fn note(&mut self, bytes: usize) {
        self.waited += self.waiting.take().map_or(Duration::ZERO, |(since, _)| since.elapsed());
        self.came += bytes;
        if self.came >= LEAST {
            (self.waited, self.came) = (Duration::ZERO, 0);
        }
    }

    /// Is ready when the client has to be given up.
    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let left = self.patience.saturating_sub(self.waited);
        let begin = || (Instant::now(), Box::pin(tokio::time::sleep(left)));
        self.waiting.get_or_insert_with(begin).1.as_mut().poll(context)
    }
}

impl ArrivingBody {
    fn refuse(&self, fault: ArrivalFault) -> StdError {
        held(&self.arrival.0).fault = Some(fault);
        self.arrival.refusal().map_or_else(|| "refused".into(), Into::into)
    }

    /// Waits for the next frame of the client.
    fn poll_client(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StdError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            let bytes = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref());
            let count = bytes.map_or(0, Bytes::len);
            self.patience.note(count);
            held(&self.arrival.0).bytes += count as u64;
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        ready!(self.patience.poll_end(context));
        Poll::Ready(Some(Err(self.refuse(ArrivalFault::Stalled))))
    }

    /// Notes what is in a frame, and returns what goes on.
    fn note(&mut self, frame: Frame<Bytes>) -> Result<Option<Frame<Bytes>>, StdError> {
        if self.body.is_end_stream() {
            held(&self.arrival.0).is_over = true;
        }
        let Some(framing) = &mut self.framing else {
            if let (Some(judge), Some(bytes)) = (&mut self.document, frame.data_ref()) {
                judge.update(bytes);
            }
            return self.expect_short().map(|()| Some(frame));
        };
        let Ok(bytes) = frame.into_data() else { return Ok(None) };
        let content =
            framing.take(bytes.clone()).map_err(|_| self.refuse(ArrivalFault::Framing))?;
        if let Some(judge) = &mut self.document {
            content.iter().for_each(|bytes| judge.update(bytes));
        }
        self.expect_short()?;
        match self.is_decoded {
            true => self.content.extend(content),
            false => return Ok(Some(Frame::data(bytes))),
        }
        Ok(None)
    }

    /// Refuses a document that is too long.
    fn expect_short(&self) -> Result<(), StdError> {
        let is_long = |document: &DocumentJudge| document.judge.count() > MOST_DOCUMENT;
        match self.document.as_ref().is_some_and(is_long) {
            true => Err(self.refuse(ArrivalFault::Document)),
            false => Ok(()),
        }
    }

    fn end(&mut self) -> Result<(), StdError> {
        held(&self.arrival.0).is_over = true;
        if let Some(mut framing) = self.framing.take() {
            let trailers = framing.end().map_err(|_| self.refuse(ArrivalFault::Framing))?;
            held(&self.arrival.0).trailers = trailers;
        }
        let Some(document) = self.document.take() else { return Ok(()) };
        if document.has_cdata {
            return Err(self.refuse(ArrivalFault::Cdata));
        }
        let judged = document.judge.judge(&held(&self.arrival.0).trailers);
        judged.map(drop).map_err(|error| match error.code() {
            S3ErrorCode::BadDigest => self.refuse(ArrivalFault::Digest),
            _ => self.refuse(ArrivalFault::Trailer),
        })
    }
}

impl HttpBody for ArrivingBody {
    type Data = Bytes;
    type Error = StdError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StdError>>> {
        loop {
            if let Some(bytes) = self.content.pop_front() {
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
            let Some(frame) = ready!(self.poll_client(context)).transpose()? else {
                return Poll::Ready(self.end().err().map(Err));
            };
            if let Some(frame) = self.note(frame)? {
                return Poll::Ready(Some(Ok(frame)));
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        let is_judged = self.framing.is_none() && self.document.is_none();
        is_judged && self.content.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        match self.is_decoded {
            true => SizeHint::default(),
            false => self.body.size_hint(),
        }
    }
}
