//! The door: connections, their limits, TLS, and the end.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_RANGE, EXPECT, HOST};
use http::uri::Scheme;
use http::{HeaderValue, Method, Request, Response, StatusCode, Version};
use hyper::Error as HyperError;
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulConnection;
use paritas_store::error::{Error, ErrorKind, Result};
use paritas_store::place::system::allow_open_files;
use paritas_store::shown::shown;
use paritas_volume::Volume;
use prometheus_client::metrics::gauge::Gauge;
use s3s::config::{S3Config, StaticConfigProvider};
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s::{Body, HttpError, S3Error};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tracing::Instrument;

use crate::arrival::{BodyArrival, MOST_DOCUMENT, arriving};
use crate::delayed;
use crate::demands::{is_forwarded, made_readable};
use crate::document::numbered;
use crate::errors::explained;
use crate::findings::UpkeepFindings;
use crate::held::held;
use crate::host::Domain;
use crate::keys::{Admission, Keys};
use crate::metrics::Metrics;
use crate::pages::StatusPages;
use crate::patience::{Activity, AnswerBody, NotedStream, PATIENCE};
use crate::room::TransferMemory;
use crate::store::Store;

/// How long a client may take for a handshake or for the headers of a request.
const HANDSHAKE: Duration = Duration::from_secs(15);
/// How long answers may take to end when the gateway stops.
const LEAVING: Duration = Duration::from_secs(30);
/// How long a connection may take to end after its client was given up and, in HTTP/2, told so.
const FAREWELL: Duration = Duration::from_secs(3);
/// How long a connection of HTTP/2 is silent before its client is asked whether it is there.
const SILENCE: Duration = Duration::from_secs(30);
/// The name under which TLS agrees on HTTP/2. Without TLS, S3 is spoken over HTTP/1.1 alone.
const HTTP2: &[u8] = b"h2";
/// The most headers of a request.
const MOST_HEADERS: usize = 128;
/// The most bytes of the headers of a request of HTTP/2. In HTTP/1 they are bounded by the buffer
/// for bodies, of 400 KB: a smaller one makes large puts slower.
const MOST_HEADER_BYTES: u32 = 128 << 10;

/// What a gateway answers, and how much it takes on at a time.
#[derive(Debug, Clone)]
pub struct DoorOptions {
    /// Largest number of connections. Further ones wait.
    pub connections: NonZeroUsize,
    /// Bytes of memory for all objects that are being sent and received, and for documents. Further
    /// ones wait for half a minute at most. If it is `None`, 4 GiB, or a quarter of what the
    /// process may use if that is less.
    pub memory: Option<u64>,
    /// Whether the pages about the volume are answered to other machines, too.
    pub has_public_pages: bool,
    /// The name of the gateway, such as `store.example.org`. Requests to a host below it, such as
    /// `photos.store.example.org`, are about this bucket. Without it, the bucket stands in the
    /// path.
    pub domain: Option<String>,
}

impl DoorOptions {
    /// Number of connections by default. One that waits for its next request takes some 20 KB.
    pub const CONNECTIONS: NonZeroUsize = NonZeroUsize::new(16_384).unwrap();
}

impl Default for DoorOptions {
    fn default() -> Self {
        Self {
            connections: DoorOptions::CONNECTIONS,
            memory: None,
            has_public_pages: false,
            domain: None,
        }
    }
}

/// The certificate of a gateway, and its key: two PEM files.
#[derive(Debug, Clone)]
pub struct Tls {
    /// The certificate, followed by the certificates that it depends on.
    pub certificates: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

impl Tls {
    fn acceptor(&self) -> Result<TlsAcceptor> {
        let refuse =
            |path: &Path, flaw: String| Error::parameters(format!("{}: {flaw}", shown(path)));
        let read =
            |path: &Path| std::fs::read(path).map_err(|error| Error::io("reading", path, &error));
        let chain = CertificateDer::pem_slice_iter(&read(&self.certificates)?)
            .collect::<std::result::Result<Vec<_>, _>>()
            .map_err(|error| refuse(&self.certificates, error.to_string()))?;
        if chain.is_empty() {
            let flaw = "it has no certificate; the certificate comes first, then the private key";
            return Err(refuse(&self.certificates, flaw.to_owned()));
        }
        let key =
            PrivateKeyDer::from_pem_slice(&read(&self.key)?).map_err(|error| match error {
                pem::Error::NoItemsFound => refuse(&self.key, "it has no private key".to_owned()),
                error => refuse(&self.key, error.to_string()),
            })?;
        let provider = Arc::new(ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key));
        let mut config = config.map_err(|error| refuse(&self.certificates, error.to_string()))?;
        config.alpn_protocols = vec![HTTP2.to_vec(), b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

/// The most requests of one connection at a time.
const SIDE_BY_SIDE: usize = 128;

/// A gateway over a volume. Its clones are the same gateway.
#[derive(Clone)]
pub struct Gateway {
    lasting: Arc<Lasting>,
    /// What answers the next request.
    door: Arc<Mutex<Arc<Door>>>,
    patience: Duration,
}

/// What a gateway keeps when its door is renewed.
struct Lasting {
    options: DoorOptions,
    connections: Arc<Semaphore>,
    metrics: Arc<Metrics>,
    findings: Arc<UpkeepFindings>,
}

/// What answers requests.
struct Door {
    service: S3Service,
    tls: Option<TlsAcceptor>,
    domain: Domain,
    pages: StatusPages,
    memory: TransferMemory,
    /// How clients reach it, unless a proxy says otherwise.
    scheme: Scheme,
}

impl Door {
    fn new(
        lasting: &Lasting,
        volume: Arc<Volume>,
        keys: Keys,
        tls: Option<&Tls>,
        memory: TransferMemory,
    ) -> Result<Self> {
        let memory = memory.shared_by(keys.count());
        let pages = StatusPages::new(
            Arc::clone(&volume),
            Arc::clone(&lasting.metrics),
            Arc::clone(&lasting.findings),
            lasting.options.has_public_pages,
        );
        let mut builder = S3ServiceBuilder::new(Store::new(volume, keys.clone(), memory.clone()));
        let mut config = S3Config::default();
        config.xml_max_body_size = MOST_DOCUMENT as usize;
        builder.set_config(Arc::new(StaticConfigProvider::new(Arc::new(config))));
        builder.set_access(Admission { keys: keys.clone(), memory: memory.clone() });
        // If signatures were not checked, s3s would not ask which operations are allowed.
        builder.set_auth(keys);
        let domain = Domain::new(lasting.options.domain.as_deref());
        builder.set_host(domain.clone());
        let scheme = if tls.is_some() { Scheme::HTTPS } else { Scheme::HTTP };
        let tls = tls.map(Tls::acceptor).transpose()?;
        Ok(Self { service: builder.build(), tls, domain, pages, memory, scheme })
    }

    /// Answers a request of S3. A deletion, a completion of an upload or a copy, and whatever else
    /// has no body or is a POST, is finished even if the client goes: an upload that is half
    /// complete would be in everybody's way for a day. The place of the connection is kept until
    /// then, which finishes no more requests at once than one connection may have.
    async fn call(
        self: &Arc<Self>,
        request: Request<Body>,
        id: &str,
        arrival: &BodyArrival,
        place: Arc<ConnectionPlace>,
    ) -> std::result::Result<Response<Body>, HttpError> {
        let method = request.method();
        let is_finished = arrival.is_over()
            || arrival.is_of_document()
            || [Method::POST, Method::DELETE].contains(method);
        if method.is_safe() || !is_finished {
            return self.service.call(request).await;
        }
        let is_copy = request.headers().contains_key("x-amz-copy-source");
        let (door, turns) = (Arc::clone(self), Arc::clone(&place.turns));
        let turn = turns.acquire_owned().await;
        let answered = async move {
            let answered = door.service.call(request).await;
            drop((turn, place));
            answered
        };
        let answered = answered.in_current_span();
        match is_copy {
            true => delayed::soon(tokio::spawn(answered), id).await,
            false => delayed::joined(tokio::spawn(answered).await),
        }
    }

    /// Returns the bucket that the host of a request names.
    fn bucket_of_host<B>(&self, request: &Request<B>) -> Option<String> {
        let header = request.headers().get(HOST).and_then(|host| host.to_str().ok());
        self.domain.bucket(request.uri().host().or(header)?)
    }
}

impl Gateway {
    /// Creates a gateway.
    ///
    /// # Errors
    /// If a file of the certificate cannot be read ([`ErrorKind::Io`]) or used, or if the memory
    /// has no room for one put ([`ErrorKind::Parameters`]).
    pub fn new(
        volume: Arc<Volume>,
        keys: Keys,
        tls: Option<&Tls>,
        options: DoorOptions,
    ) -> Result<Self> {
        let memory = TransferMemory::new(options.memory, &volume)?;
        let lasting = Lasting {
            connections: Arc::new(Semaphore::new(allowed_connections(options.connections))),
            metrics: Arc::default(),
            findings: Arc::default(),
            options,
        };
        let door = Door::new(&lasting, volume, keys, tls, memory)?;
        let door = Arc::new(Mutex::new(Arc::new(door)));
        Ok(Self { lasting: Arc::new(lasting), door, patience: PATIENCE })
    }

    /// Answers what is asked from now on by this volume, for these keys and with this certificate.
    /// Connections stay, and requests that have begun end as they began.
    ///
    /// # Errors
    /// As for [`Self::new`]. Then nothing has changed.
    pub fn renew(&self, volume: Arc<Volume>, keys: Keys, tls: Option<&Tls>) -> Result<()> {
        let memory = self.door().memory.renewed(self.lasting.options.memory, &volume)?;
        let door = Door::new(&self.lasting, volume, keys, tls, memory)?;
        *held(&self.door) = Arc::new(door);
        Ok(())
    }

    fn door(&self) -> Arc<Door> {
        Arc::clone(&held(&self.door))
    }

    /// Sets how long a client may send nothing, or take nothing, before it is given up: 75 seconds,
    /// if this is not called.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Answers requests until `stop` is ready, and then finishes the requests that have begun.
    ///
    /// # Errors
    /// If the system no longer accepts connections ([`ErrorKind::Io`]).
    pub async fn serve(self, listener: TcpListener, stop: impl Future<Output = ()>) -> Result<()> {
        let leaving = watch::Sender::new(());
        let mut stop = std::pin::pin!(stop);
        loop {
            let next = async {
                let permit = Arc::clone(&self.lasting.connections).acquire_owned().await.ok();
                (permit, listener.accept().await)
            };
            let (permit, accepted) = tokio::select! {
                next = next => next,
                () = &mut stop => break,
            };
            let Some((stream, peer)) = taken(accepted).await? else { continue };
            let place = ConnectionPlace::new(leaving.subscribe(), permit);
            tokio::spawn(self.visit(peer, place).last(stream));
        }
        drop(listener);
        // Answers that take longer break off; a put that is not acknowledged is not visible.
        leaving.send_replace(());
        let _ = tokio::time::timeout(LEAVING, leaving.closed()).await;
        Ok(())
    }

    /// Returns the findings that its page shows. Whoever looks after the volume adds to them.
    pub fn findings(&self) -> Arc<UpkeepFindings> {
        Arc::clone(&self.lasting.findings)
    }

    pub(crate) fn visit(&self, peer: SocketAddr, place: ConnectionPlace) -> Visit {
        Visit { gateway: self.clone(), peer, activity: Activity::new(), place: Arc::new(place) }
    }
}

/// Returns a connection, or `None` after a moment if the next one may be taken although this one
/// was not.
///
/// # Errors
/// If no connection can be taken any more ([`ErrorKind::Io`]).
async fn taken(
    accepted: std::io::Result<(TcpStream, SocketAddr)>,
) -> Result<Option<(TcpStream, SocketAddr)>> {
    match accepted {
        Ok(accepted) => Ok(Some(accepted)),
        Err(error) if is_passing(&error) => {
            tracing::warn!(%error, "a connection was not taken");
            tokio::time::sleep(Duration::from_millis(100)).await;
            Ok(None)
        }
        Err(error) => {
            let message = format!("taking connections: {error}");
            Err(Error::new(ErrorKind::Io, message).because(error))
        }
    }
}

/// Returns how many connections the process may have open, at most `wanted`. Asks for two open
/// files for each connection, because an answer opens files in folders.
fn allowed_connections(wanted: NonZeroUsize) -> usize {
    let files = allow_open_files(wanted.get().saturating_mul(2));
    (files / 2).clamp(1, wanted.get())
}

/// Whether the next connection may be taken although this one was not. Systems report here whatever
/// happened to a connection before it was taken, and a lack of memory or of open files. The answer
/// is no only if the listener cannot take connections at all.
fn is_passing(error: &std::io::Error) -> bool {
    error.kind() != std::io::ErrorKind::InvalidInput
}

type Failed = Box<dyn std::error::Error + Send + Sync>;

/// A connection.
#[derive(Clone)]
pub(crate) struct Visit {
    gateway: Gateway,
    peer: SocketAddr,
    activity: Arc<Activity>,
    place: Arc<ConnectionPlace>,
}

/// One of the connections that a gateway may have, as long as something of it is left.
pub(crate) struct ConnectionPlace {
    /// Is ready when the gateway stops, which waits for its connections.
    leaving: watch::Receiver<()>,
    /// The requests that are finished without the client.
    turns: Arc<Semaphore>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl ConnectionPlace {
    pub(crate) fn new(leaving: watch::Receiver<()>, permit: Option<OwnedSemaphorePermit>) -> Self {
        Self { leaving, turns: Arc::new(Semaphore::new(SIDE_BY_SIDE)), _permit: permit }
    }
}

/// Counts a connection as open, until it is dropped.
struct CountedConnection<'m>(&'m Gauge);

impl<'m> CountedConnection<'m> {
    fn new(connections: &'m Gauge) -> Self {
        connections.inc();
        Self(connections)
    }
}

impl Drop for CountedConnection<'_> {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// A request, for the log. If it is dropped before its answer is told, its client has gone.
struct AskedRequest {
    id: String,
    peer: SocketAddr,
    method: Method,
    path: String,
    begun: Instant,
    is_told: bool,
}

impl AskedRequest {
    /// Logs the status of the answer. Returns how long it took.
    fn tell(mut self, status: u16) -> Duration {
        self.is_told = true;
        let Self { id, peer, method, path, .. } = &self;
        let time = self.begun.elapsed();
        tracing::info!(id, %peer, %method, path, status, ms = time.as_millis() as u64, "request");
        time
    }
}

impl Drop for AskedRequest {
    fn drop(&mut self) {
        if !self.is_told {
            let Self { id, peer, method, path, .. } = self;
            let ms = self.begun.elapsed().as_millis() as u64;
            tracing::info!(id, %peer, %method, path, ms, "the client went before the answer");
        }
    }
}

impl Visit {
    /// Lasts until the connection ends, and keeps its place.
    async fn last(self, stream: TcpStream) {
        let _counted = CountedConnection::new(&self.gateway.lasting.metrics.connections);
        if let Err(error) = self.greet(stream).await {
            tracing::debug!(peer = %self.peer, %error, "connection");
        }
    }

    /// Shakes hands, if there is TLS, and answers the requests of a connection, until the client
    /// goes or is given up.
    async fn greet(&self, stream: TcpStream) -> std::result::Result<(), Failed> {
        stream.set_nodelay(true)?;
        let Some(tls) = self.gateway.door().tls.clone() else { return self.converse(stream).await };
        let stream = tokio::time::timeout(HANDSHAKE, tls.accept(stream)).await??;
        match stream.get_ref().1.alpn_protocol() {
            Some(HTTP2) => self.converse_side_by_side(stream).await,
            _ => self.converse(stream).await,
        }
    }

    /// Waits until a connection ends. It takes no more requests when the gateway stops. If nothing
    /// happens, or no request comes for the time `greeting`, the client is given up: it is told
    /// that the connection ends. If the end takes long, the connection is broken off.
    async fn patiently(
        &self,
        connection: impl GracefulConnection<Error = HyperError>,
        greeting: Duration,
    ) -> std::result::Result<(), Failed> {
        let mut leaving = self.place.leaving.clone();
        let mut connection = std::pin::pin!(connection);
        let patience = self.gateway.patience;
        let mut silence = std::pin::pin!(self.activity.silent_for(greeting, patience));
        let mut is_leaving = false;
        loop {
            tokio::select! {
                ended = connection.as_mut() => return Ok(ended?),
                () = silence.as_mut() => break,
                _ = leaving.changed(), if !is_leaving => {
                    is_leaving = true;
                    connection.as_mut().graceful_shutdown();
                }
            }
        }
        connection.as_mut().graceful_shutdown();
        let _ = tokio::time::timeout(FAREWELL, connection).await;
        Err("nothing happened on it".into())
    }

    /// Answers the requests of a connection, one after the other.
    pub(crate) async fn converse(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
    ) -> std::result::Result<(), Failed> {
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(PATIENCE).max_headers(MOST_HEADERS);
        let visit = self.clone();
        let answer = service_fn(move |request| visit.clone().answer(request));
        let stream = NotedStream::new(stream, Arc::clone(&self.activity));
        let connection = builder.serve_connection(TokioIo::new(stream), answer);
        self.patiently(connection, HANDSHAKE).await
    }

    /// Answers the requests of a connection of HTTP/2.
    async fn converse_side_by_side(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
    ) -> std::result::Result<(), Failed> {
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder.timer(TokioTimer::new()).keep_alive_interval(SILENCE);
        builder.keep_alive_timeout(HANDSHAKE).max_concurrent_streams(SIDE_BY_SIDE as u32);
        builder.max_header_list_size(MOST_HEADER_BYTES);
        let visit = self.clone();
        let answer = service_fn(move |request| visit.clone().answer(request));
        let stream = NotedStream::new(stream, Arc::clone(&self.activity));
        let connection = builder.serve_connection(TokioIo::new(stream), answer);
        self.patiently(connection, self.gateway.patience).await
    }

    async fn answer(
        self,
        mut request: Request<Incoming>,
    ) -> std::result::Result<Response<AnswerBody>, HttpError> {
        let Self { gateway, peer, activity, place } = self;
        let (door, metrics) = (gateway.door(), &gateway.lasting.metrics);
        let _work = activity.work();
        let (begun, method) = (Instant::now(), request.method().clone());
        let (path, version) = (request.uri().path().to_owned(), request.version());
        let id = request_id();
        let asked = AskedRequest {
            id: id.clone(),
            peer,
            method: method.clone(),
            path: path.clone(),
            begun,
            is_told: false,
        };
        let query = request.uri().query().map(str::to_owned);
        let is_local = peer.ip().to_canonical().is_loopback() && !is_forwarded(request.headers());
        let refused = made_readable(&method, query.as_deref(), request.headers_mut()).err();
        request.extensions_mut().insert(door.scheme.clone());
        let is_page = path.starts_with("/-/") && door.bucket_of_host(&request).is_none();
        let has_no_body = request.body().is_end_stream();
        let waits_in_vain = has_no_body && request.headers().contains_key(EXPECT);
        let (request, arrival) = arriving(request, gateway.patience);
        let answered = match refused {
            _ if is_page => Ok(door.pages.answer(&method, &path, is_local).await),
            Some(refused) => {
                refused.to_http_response().map_err(|error| HttpError::new(error.into()))
            }
            None => {
                // What happens on the way is logged with the id.
                let span = tracing::error_span!("request", id);
                door.call(request, &id, &arrival, place).instrument(span).await
            }
        };
        let answered = answered.inspect_err(|error| tracing::error!(id, ?error, "request"))?;
        let mut answer = completed(answered, &method, &id, arrival.refusal());
        // The gateway cannot know whether hyper will read the rest of the body, or will close the
        // connection. The client must not send its next request on it.
        // Nor on one that still owes it the answer 100, which the empty body of this request did
        // not need: botocore would take the answer to the next request for that one
        // (github.com/boto/botocore/issues/3755).
        if (waits_in_vain || !arrival.is_over()) && version < Version::HTTP_2 {
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        let status = answer.status().as_u16();
        let time = asked.tell(status);
        let sent = answer.body().size_hint().lower();
        metrics.answered(&method, status, time, (arrival.bytes(), sent));
        Ok(answer.map(|body| AnswerBody::new(body, Arc::clone(&activity))))
    }
}

/// Returns the answer to a request with this id as S3 gives it. `refusal` is why its body was not
/// read to the end.
fn completed(
    answer: Response<Body>,
    method: &Method,
    id: &str,
    refusal: Option<S3Error>,
) -> Response<Body> {
    let mut answer = numbered(explained(answer, refusal, id));
    tell_range_without_bytes(method, &mut answer);
    let mut answer = without_body(method, answer);
    if let Ok(value) = HeaderValue::from_str(id) {
        answer.headers_mut().insert("x-amz-request-id", value);
    }
    answer
}

/// Gives the answer to HEAD with a range its status. The adapter does not know that a range can be
/// asked for without its bytes.
fn tell_range_without_bytes(method: &Method, answer: &mut Response<Body>) {
    let is_range = method == Method::HEAD && answer.headers().contains_key(CONTENT_RANGE);
    if is_range && answer.status() == StatusCode::OK {
        *answer.status_mut() = StatusCode::PARTIAL_CONTENT;
    }
}

/// Takes away the body of an answer that has none in HTTP: to HEAD, or that nothing has changed.
/// The adapter describes errors there, too. HTTP/1 leaves it out by itself, HTTP/2 does not.
fn without_body(method: &Method, answer: Response<Body>) -> Response<Body> {
    let is_head = method == Method::HEAD;
    if !is_head && answer.status() != StatusCode::NOT_MODIFIED {
        return answer;
    }
    let (mut head, body) = answer.into_parts();
    // That nothing has changed is said without a length: it would be that of the description.
    let has_length = is_head && head.status != StatusCode::NOT_MODIFIED;
    let length = body.size_hint().exact().filter(|_| has_length).map(HeaderValue::from);
    if let Some(length) = length.filter(|_| !head.headers.contains_key(CONTENT_LENGTH)) {
        head.headers.insert(CONTENT_LENGTH, length);
    }
    Response::from_parts(head, Body::empty())
}

/// Returns an id that tells a request from others in the log.
fn request_id() -> String {
    getrandom::u64().map_or_else(|_| "0".repeat(16), |id| format!("{id:016X}"))
}

#[cfg(test)]
mod tests {
    use paritas_volume::node::{FolderNode, Node};
    use paritas_volume::{Member, Setup};
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

    use super::*;

    /// HTTP/2 sends whatever body an answer has.
    #[test]
    fn answers_without_a_body_have_none() {
        for (method, status, length) in [
            (Method::HEAD, StatusCode::NOT_FOUND, Some("5")),
            (Method::HEAD, StatusCode::NOT_MODIFIED, None),
            (Method::GET, StatusCode::NOT_MODIFIED, None),
        ] {
            let mut answer = Response::new(Body::from("<xml>".to_owned()));
            *answer.status_mut() = status;
            let answer = without_body(&method, answer);
            assert_eq!(answer.body().size_hint().exact(), Some(0), "{method} {status}");
            let stated = answer.headers().get(CONTENT_LENGTH).map(|it| it.to_str().unwrap());
            assert_eq!(stated, length, "{method} {status}");
        }
        let answer = without_body(&Method::GET, Response::new(Body::from("text".to_owned())));
        assert_eq!(answer.body().size_hint().exact(), Some(4));
    }

    /// A connection to a gateway whose volume is never asked.
    fn visit(leaving: &watch::Sender<()>) -> Visit {
        let node = |disk: usize| {
            let name = format!("disk{disk}");
            let node: Arc<dyn Node> = Arc::new(FolderNode::new(&name, &name, false));
            (Member { domain: name.clone(), name, is_drained: false }, node)
        };
        let code = paritas::Code::new(&"2+1".parse().unwrap()).unwrap();
        let setup = Setup::new("0".repeat(32), code, (0..3).map(node).collect());
        let volume = Arc::new(Volume::new(setup).unwrap());
        let gateway = Gateway::new(volume, Keys::open(), None, DoorOptions::default()).unwrap();
        let place = ConnectionPlace::new(leaving.subscribe(), None);
        gateway.visit(([127, 0, 0, 1], 9).into(), place)
    }

    /// The frames of HTTP/2 that a client has got.
    #[derive(Default)]
    struct GotFrames {
        pings: usize,
        farewells: usize,
    }

    /// Speaks HTTP/2 without any request, and answers pings until the connection is closed.
    async fn answer_pings(mut stream: DuplexStream, got: &mut GotFrames) -> std::io::Result<()> {
        const SETTINGS: u8 = 4;
        const PING: u8 = 6;
        const GOAWAY: u8 = 7;
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await?;
        let mut head = [0; 9];
        loop {
            stream.read_exact(&mut head).await?;
            let mut body = vec![0; usize::from(head[2])];
            stream.read_exact(&mut body).await?;
            let is_answer = head[4] & 1 == 1;
            match head[3] {
                SETTINGS if !is_answer => {
                    stream.write_all(&[0, 0, 0, SETTINGS, 1, 0, 0, 0, 0]).await?;
                }
                PING if !is_answer => {
                    got.pings += 1;
                    stream
                        .write_all(&[&[0, 0, 8, PING, 1, 0, 0, 0, 0], &body[..]].concat())
                        .await?;
                }
                GOAWAY => got.farewells += 1,
                _ => {}
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn connections_of_http2_without_requests_are_closed() {
        let (client, server) = tokio::io::duplex(1 << 16);
        let leaving = watch::Sender::new(());
        let visit = visit(&leaving);
        let begun = tokio::time::Instant::now();
        let conversation = visit.converse_side_by_side(server);
        let mut got = GotFrames::default();
        let (ended, closed) = tokio::join!(conversation, answer_pings(client, &mut got));
        assert!(ended.is_err() && closed.is_err() && got.pings > 0 && got.farewells > 0);
        assert!(begun.elapsed() >= PATIENCE && begun.elapsed() < PATIENCE + FAREWELL);
    }

    /// A client that does not even answer pings does not keep its connection.
    #[tokio::test(start_paused = true)]
    async fn connections_of_silent_clients_are_broken_off() {
        let (client, server) = tokio::io::duplex(1 << 16);
        let leaving = watch::Sender::new(());
        let visit = visit(&leaving);
        let begun = tokio::time::Instant::now();
        let ended = visit.converse_side_by_side(server).await;
        assert!(ended.is_err());
        assert_eq!(begun.elapsed().as_secs(), (PATIENCE + FAREWELL).as_secs());
        drop(client);
    }

    /// Headers must come soon, but a client that has asked for something may rest.
    #[tokio::test(start_paused = true)]
    async fn the_first_request_must_come_soon() {
        let request = "GET /a/b HTTP/1.1\r\nHost: x\r\n";
        for (text, least) in [("", HANDSHAKE), (request, HANDSHAKE)] {
            let (mut client, server) = tokio::io::duplex(1 << 16);
            let leaving = watch::Sender::new(());
            let begun = tokio::time::Instant::now();
            client.write_all(text.as_bytes()).await.unwrap();
            assert!(visit(&leaving).converse(server).await.is_err());
            assert!(begun.elapsed() >= least && begun.elapsed() <= least + FAREWELL, "{text}");
        }
        let (mut client, server) = tokio::io::duplex(1 << 16);
        let leaving = watch::Sender::new(());
        let begun = tokio::time::Instant::now();
        client.write_all(format!("{request}\r\n").as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let visit = visit(&leaving);
        let (_, read) = tokio::join!(visit.converse(server), client.read_to_end(&mut answer));
        assert!(read.unwrap() > 0 && begun.elapsed() >= PATIENCE, "{:?}", begun.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn connections_of_http2_end_when_the_gateway_stops() {
        let (client, server) = tokio::io::duplex(1 << 16);
        let leaving = watch::Sender::new(());
        let visit = visit(&leaving);
        let conversation = async move { visit.converse_side_by_side(server).await };
        let mut got = GotFrames::default();
        let stop = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            leaving.send_replace(());
            leaving.closed().await;
        };
        let (ended, _, ()) = tokio::join!(conversation, answer_pings(client, &mut got), stop);
        assert!(ended.is_ok() && got.farewells > 0);
    }
}
