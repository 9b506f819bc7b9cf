//! A node at a service: a bucket, a WebDAV server, an SSH server, a web server, or memory, by
//! OpenDAL.
//!
//! A request that fails quickly is repeated if possible. A request that is not answered is not
//! repeated: [`Timed`] gives up the node. It also gives up a server to which no connection can be
//! made, once a request has found that out with all its repetitions. The node reports all bytes
//! that move to [`Contact`]. A writer that failed is aborted, never continued. If a service shows a
//! file before it is whole (WebDAV, SFTP), the file is written in the folder [`STAGING`] and
//! renamed.
//!
//! [`Timed`]: super::Timed
//!
//! What a service cannot do: WebDAV and SFTP cannot create a file only if it does not exist, so the
//! node looks first; an SFTP server decides itself when to sync files; if a program is killed
//! during an upload, the bucket keeps the uploaded parts, invisibly, until a sweep removes them.

use std::error::Error as StdError;
use std::fmt;
use std::future::{self, Future};
use std::iter;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use bytes::{Buf, Bytes};
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};
use opendal::layers::RetryLayer;
use opendal::{Buffer, BytesRange, Metadata, Operator};
use paritas_store::error::{Error, ErrorKind, Result};

use super::contact::{Contact, NoConnection};
use super::service::Service;
use super::streamed::StreamedPut;
use super::{
    Abilities, Entry, MOST_WHOLE, Mode, Node, NodeCall, STAGING, Stat, Writer, check_path,
    check_prefix, is_abandoned, listing, range_length, staging_path, too_long, too_short,
};
use crate::cleaning::Unfinished;

/// Bytes that a bucket's writer sends at a time. All parts but the last have the same length,
/// because some servers demand that.
const PART: usize = 8 << 20;

/// Largest number of bytes of a file in a bucket: a bucket takes 10,000 parts.
const MOST_IN_PARTS: u64 = 10_000 * PART as u64;

/// Bytes that an SSH server is sent at a time. Each such piece that it takes is a sign of life.
const PIECE: usize = 256 << 10;

/// How many times longer an upload in parts may take than other unfinished files may be unchanged.
const UPLOADING: u32 = 7;

/// Largest number of bytes of an error's text that are shown.
const ERROR_BYTES: usize = 400;

/// Pause after an attempt that conflicted with another one, and before the first repetition of any
/// other request. Later pauses are longer.
const PAUSE: Duration = Duration::from_millis(100);

/// A node at a service.
#[derive(Clone)]
pub struct Endpoint {
    inner: Arc<EndpointInner>,
}

struct EndpointInner {
    name: String,
    service: Service,
    /// The operator that repeats failed attempts.
    steady: Operator,
    /// The operator for writers. It does not repeat requests if a writer cannot send anything
    /// twice.
    writing: Operator,
    /// How often a request that failed is repeated.
    retries: usize,
    contact: Arc<Contact>,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("name", &self.inner.name).finish_non_exhaustive()
    }
}

impl Endpoint {
    /// Creates a node at a service. A request that failed is repeated `retries` times.
    pub(super) fn new(service: Service, retries: usize, contact: Arc<Contact>) -> Self {
        // With jitter, a pause is up to twice as long. It must stay shorter than the limit of
        // silence.
        let longest = contact.limit() / 4;
        let retry = RetryLayer::new().with_max_times(retries).with_jitter();
        let retry = retry.with_min_delay(PAUSE.min(longest)).with_max_delay(longest);
        let steady = service.operator.clone().layer(retry);
        let writing = if service.resends { steady.clone() } else { service.operator.clone() };
        let name = contact.node().to_owned();
        let inner = EndpointInner { name, service, steady, writing, retries, contact };
        Self { inner: Arc::new(inner) }
    }

    /// Creates a node in the memory of this process. Its files are lost when the process ends.
    ///
    /// # Errors
    /// Never, unless OpenDAL changes.
    pub fn memory(name: impl Into<String>) -> Result<Self> {
        let contact = Contact::unlimited(name);
        let memory = super::Location::Memory;
        let service = Service::at(&memory, &Default::default(), &contact)?;
        Ok(Self::new(service, 0, contact))
    }
}

#[async_trait]
impl Node for Endpoint {
    fn name(&self) -> &str {
        &self.inner.name
    }

    fn abilities(&self) -> Abilities {
        let service = &self.inner.service;
        let ranges = service.abilities.ranges && service.ranges.load(Ordering::Relaxed);
        Abilities { ranges, ..service.abilities }
    }

    async fn read(&self, path: &str, range: Option<Range<u64>>) -> Result<Bytes> {
        self.inner.check(path)?;
        match range {
            None => self.inner.read_all(path).await,
            Some(range) if range_length(path, &range)? == 0 => self.read_nothing(path, range).await,
            Some(range) if self.abilities().ranges => match self.inner.read(path, &range).await {
                Err(_) if !self.abilities().ranges => self.inner.read_and_cut(path, &range).await,
                result => result,
            },
            Some(range) => self.inner.read_and_cut(path, &range).await,
        }
    }

    async fn stat(&self, path: &str) -> Result<Option<Stat>> {
        self.inner.check(path)?;
        self.inner.stat(path).await
    }

    fn list<'a>(&'a self, prefix: &'a str) -> BoxStream<'a, Result<Entry>> {
        stream::once(self.inner.list(prefix)).try_flatten().boxed()
    }

    async fn folders(&self, prefix: &str) -> Result<Vec<String>> {
        self.inner.folders(prefix).await
    }

    async fn write(&self, path: &str, content: Bytes, mode: Mode) -> Result<()> {
        self.inner.check(path)?;
        let inner = &self.inner;
        if mode == Mode::Create && inner.service.abilities.create {
            return inner.create(path, content).await;
        }
        if mode == Mode::Create && inner.stat(path).await?.is_some() {
            return Err(inner.exists(path));
        }
        if !inner.service.staged {
            let written = inner.writing.write(&inner.service.stored(path), content).await;
            return written.map(drop).map_err(|error| inner.error("write", path, error));
        }
        let mut attempt = 0;
        loop {
            match self.write_staged(path, content.clone()).await {
                Err(error)
                    if attempt < inner.retries
                        && error.kind() == ErrorKind::Io
                        && !inner.contact.is_given_up() =>
                {
                    attempt += 1;
                    tokio::time::sleep(PAUSE * (1 << attempt.min(6))).await;
                }
                result => return result,
            }
        }
    }

    async fn writer(&self, path: &str) -> Result<Box<dyn Writer>> {
        self.inner.check(path)?;
        Ok(Box::new(self.open_writer(path).await?))
    }

    async fn delete(&self, path: &str) -> Result<()> {
        self.inner.check(path)?;
        match self.inner.steady.delete(&self.inner.service.stored(path)).await {
            Err(error) if error.kind() == opendal::ErrorKind::NotFound => Ok(()),
            result => result.map_err(|error| self.inner.error("delete", path, error)),
        }
    }

    /// Buckets have no folders. The other services have folders: SFTP deletes a folder only if it
    /// is empty, and WebDAV deletes its content with it.
    async fn delete_folder(&self, prefix: &str) -> Result<()> {
        check_prefix(prefix).map_err(|error| error.at_node(&self.inner.name))?;
        if !self.inner.service.staged || prefix.is_empty() {
            return Ok(());
        }
        match self.inner.steady.delete(&self.inner.service.stored(prefix)).await {
            Err(error) if error.kind() == opendal::ErrorKind::NotFound => Ok(()),
            result => result.map_err(|error| self.inner.error("delete", prefix, error)),
        }
    }

    async fn sweep(&self, age: Duration) -> Result<u64> {
        if !self.inner.service.staged {
            return self.inner.remove_uploads(age).await;
        }
        let prefix = format!("{STAGING}/");
        let files: Vec<_> = self.inner.list_all(&prefix).await?.try_collect().await?;
        // A file of unknown age may still be being written.
        let is_old = |entry: &Entry| {
            let name = entry.path.rsplit('/').next().unwrap_or_default();
            let elapsed = entry.modified.map(|then| SystemTime::now().duration_since(then));
            is_abandoned(name) || elapsed.is_some_and(|elapsed| elapsed.unwrap_or_default() >= age)
        };
        let mut removed = 0;
        for file in files.iter().filter(|file| is_old(file)) {
            let deleted = self.inner.steady.delete(&file.path).await;
            self.inner.contact.moved();
            match deleted {
                // Another sweep was faster, or the file's writer has continued and finished.
                Err(error) if error.kind() == opendal::ErrorKind::NotFound => {}
                deleted => {
                    deleted.map_err(|error| self.inner.error("delete", &file.path, error))?;
                    removed += 1;
                }
            }
        }
        Ok(removed)
    }
}

impl Endpoint {
    /// Reads an empty range. Services have no request for it, but the range must still be inside
    /// the file.
    async fn read_nothing(&self, path: &str, range: Range<u64>) -> Result<Bytes> {
        match self.inner.stat(path).await? {
            Some(found) if range.end <= found.length => Ok(Bytes::new()),
            Some(found) => Err(too_short(&self.inner.name, path, found.length, &range)),
            None => Err(self.inner.missing(path)),
        }
    }

    async fn write_staged(&self, path: &str, content: Bytes) -> Result<()> {
        let mut writer = Box::new(self.open_writer(path).await?);
        match writer.write(vec![content]).await {
            Ok(()) => writer.finish().await,
            Err(error) => {
                writer.abort().await;
                Err(error)
            }
        }
    }

    async fn open_writer(&self, path: &str) -> Result<EndpointWriter> {
        let service = &self.inner.service;
        let stage = service.staged.then(staging_path).transpose()?;
        let writing = &self.inner.writing;
        let in_parts = writing.info().capability().write_multi_max_size.is_some();
        let sink = match (&service.puts, &stage) {
            (Some(puts), Some(stage)) if service.abilities.streams => {
                let made = self.inner.steady.create_dir(&format!("{STAGING}/")).await;
                made.map(|()| Sink::Put(puts.begin(stage)))
            }
            _ => {
                let stored = service.stored(path);
                let opening = writing.writer_with(stage.as_deref().unwrap_or(&stored));
                let opening = if in_parts { opening.chunk(PART) } else { opening };
                opening.await.map(|writer| Sink::Service(Box::new(writer)))
            }
        };
        let sink = sink.map_err(|error| self.inner.error("write", path, error))?;
        Ok(EndpointWriter {
            endpoint: self.clone(),
            path: path.to_owned(),
            stage,
            kept: Vec::new(),
            collects: in_parts || !service.abilities.streams,
            room: if in_parts { MOST_IN_PARTS } else { u64::MAX },
            sink: Some(sink),
            failed: false,
            unfinished: Unfinished::begin_at(self.inner.contact.watch()),
        })
    }
}

impl EndpointInner {
    fn check(&self, path: &str) -> Result<()> {
        check_path(path).map_err(|error| error.at_node(&self.name))
    }

    fn missing(&self, path: &str) -> Error {
        Error::new(ErrorKind::NotFound, format!("there is no file {path}")).at_node(&self.name)
    }

    fn exists(&self, path: &str) -> Error {
        Error::new(ErrorKind::Exists, format!("{path} exists already")).at_node(&self.name)
    }

    /// Converts an error of OpenDAL, without its secrets. OpenDAL's own error is not kept, because
    /// it holds the server's answer.
    fn error(&self, doing: &str, path: &str, error: opendal::Error) -> Error {
        use opendal::ErrorKind as Reason;
        let kind = match error.kind() {
            // When a file is written or listed, the missing thing is the bucket or folder.
            Reason::NotFound if doing == "read" => ErrorKind::NotFound,
            Reason::AlreadyExists | Reason::ConditionNotMatch => ErrorKind::Exists,
            Reason::PermissionDenied => ErrorKind::Refused,
            Reason::Unsupported => ErrorKind::Unsupported,
            // The code of an answer with the status 501, for which OpenDAL has no kind.
            Reason::Unexpected if error.message().contains("NotImplemented") => {
                ErrorKind::Unsupported
            }
            _ => ErrorKind::Io,
        };
        let why = self.shown(&error);
        if why_closed(&error).is_some() {
            self.contact.close(kind, &why);
        }
        Error::new(kind, format!("cannot {doing} {}: {why}", named(path))).at_node(&self.name)
    }

    /// Returns the text of an error, in one line of limited length.
    fn shown(&self, error: &opendal::Error) -> String {
        let text = match why_closed(error) {
            Some(why) => format!("no connection: {why}"),
            None => {
                let own = match error.message() {
                    "" => error.kind().to_string(),
                    message => spoken(message),
                };
                causes(error).fold(own, |text, cause| format!("{text}: {cause}"))
            }
        };
        let text = self.service.secrets.iter().fold(text, |text, secret| secret.redact(&text));
        let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let end = line.char_indices().map(|(at, _)| at).take_while(|at| *at <= ERROR_BYTES).last();
        match end {
            Some(end) if line.len() > ERROR_BYTES => format!("{}…", &line[..end]),
            _ => line,
        }
    }

    /// Asks for a part of a file, or for all of it. Returns the received bytes in `wanted`, and the
    /// number of all received bytes. Bytes before `wanted` are dropped. Reading stops after
    /// `enough` bytes, however much the server would send.
    async fn collect(
        &self,
        path: &str,
        asked: BytesRange,
        wanted: Range<u64>,
        enough: u64,
    ) -> Result<(Buffer, u64)> {
        let (mut kept, mut come) = (Vec::new(), 0);
        let read = async {
            let reader = self.steady.reader(&self.service.stored(path)).await?;
            let mut pieces = reader.into_stream(asked).await?;
            while come < enough
                && let Some(piece) = pieces.try_next().await?
            {
                let end = come + piece.len() as u64;
                let inside = come.max(wanted.start)..end.min(wanted.end);
                if inside.start < inside.end {
                    let inside = (inside.start - come) as usize..(inside.end - come) as usize;
                    kept.extend(piece.slice(inside));
                }
                come = end;
                self.contact.moved();
            }
            Ok::<(), opendal::Error>(())
        };
        read.await.map_err(|error| self.error("read", path, error))?;
        Ok((Buffer::from(kept), come))
    }

    async fn read_all(&self, path: &str) -> Result<Bytes> {
        match self.collect(path, (..).into(), 0..MOST_WHOLE, MOST_WHOLE + 1).await? {
            (_, come) if come > MOST_WHOLE => Err(too_long(path).at_node(&self.name)),
            (content, _) => Ok(content.to_bytes()),
        }
    }

    async fn read(&self, path: &str, range: &Range<u64>) -> Result<Bytes> {
        let length = range.end - range.start;
        match self.collect(path, range.clone().into(), 0..length, length + 1).await? {
            (_, come) if come > length => {
                let message = format!("{path}: more than the {length} bytes asked for have come");
                Err(Error::new(ErrorKind::Io, message).at_node(&self.name))
            }
            (_, come) if come < length => {
                Err(too_short(&self.name, path, range.start + come, range))
            }
            (content, _) => Ok(content.to_bytes()),
        }
    }

    /// Reads the file from its beginning to the end of the range, where the service cannot read
    /// ranges.
    async fn read_and_cut(&self, path: &str, range: &Range<u64>) -> Result<Bytes> {
        match self.collect(path, (..).into(), range.clone(), range.end).await? {
            (_, come) if come < range.end => Err(too_short(&self.name, path, come, range)),
            // A slice would keep all received bytes in memory.
            (content, _) => Ok(Bytes::copy_from_slice(&content.to_bytes())),
        }
    }

    async fn stat(&self, path: &str) -> Result<Option<Stat>> {
        match self.steady.stat(&self.service.stored(path)).await {
            Ok(found) if found.is_dir() => Ok(None),
            Ok(found) => {
                Ok(Some(Stat { length: found.content_length(), modified: modified(&found) }))
            }
            Err(error) if error.kind() == opendal::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.error("look at", path, error)),
        }
    }

    /// Creates a file by the service's own condition. A service may also answer that two creators
    /// conflict; then the file exists once the other creator is done.
    async fn create(&self, path: &str, content: Bytes) -> Result<()> {
        let mut attempt = 0;
        loop {
            let stored = self.service.stored(path);
            let writing = self.writing.write_with(&stored, content.clone()).if_not_exists(true);
            match writing.await {
                Ok(_) => return Ok(()),
                Err(error)
                    if error.kind() == opendal::ErrorKind::Conflict && attempt < self.retries =>
                {
                    attempt += 1;
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => {
                    return Err(match self.error("create", path, error) {
                        error if error.kind() == ErrorKind::Exists => self.exists(path),
                        error => error,
                    });
                }
            }
        }
    }

    /// Removes the uploads in parts to a bucket that were never completed. A bucket tells when an
    /// upload was begun, not whether it goes on, so it has [`UPLOADING`] times `age` for it.
    /// Returns how many were removed.
    async fn remove_uploads(&self, age: Duration) -> Result<u64> {
        #[cfg(feature = "s3")]
        if let Some(uploads) = &self.service.uploads {
            let removed = uploads.remove_older(age * UPLOADING).await;
            return removed.map_err(|error| self.error("sweep", "", error));
        }
        let _ = age;
        Ok(0)
    }

    async fn list<'a>(&'a self, prefix: &'a str) -> Result<BoxStream<'a, Result<Entry>>> {
        self.expect_listing(prefix)?;
        let entries = self.list_all(prefix).await?;
        let unfinished = |entry: &Entry| entry.path.split('/').next() == Some(STAGING);
        Ok(entries.try_filter(move |entry| future::ready(!unfinished(entry))).boxed())
    }

    /// Returns the names of the folders directly below a prefix.
    async fn folders(&self, prefix: &str) -> Result<Vec<String>> {
        self.expect_listing(prefix)?;
        let failed = |error: opendal::Error| self.error("list", prefix, error);
        let stored = self.service.stored(prefix);
        let entries =
            listing::entries(&self.steady, &stored, &self.contact).await.map_err(failed)?;
        let mut folders = Vec::new();
        for entry in entries {
            let path = self.service.shown(entry.path());
            let folder = path.strip_prefix(prefix).and_then(|below| below.strip_suffix('/'));
            folders.extend(folder.filter(|&name| name != STAGING).map(str::to_owned));
        }
        Ok(folders)
    }

    /// Checks that a prefix can be listed.
    fn expect_listing(&self, prefix: &str) -> Result<()> {
        check_prefix(prefix).map_err(|error| error.at_node(&self.name))?;
        match self.service.abilities.list {
            true => Ok(()),
            false => {
                let message = "a web server does not list its files";
                Err(Error::new(ErrorKind::Unsupported, message).at_node(&self.name))
            }
        }
    }

    /// Lists what is below a prefix, unfinished files too.
    async fn list_all<'a>(&'a self, prefix: &'a str) -> Result<BoxStream<'a, Result<Entry>>> {
        let failed = |error: opendal::Error| self.error("list", prefix, error);
        let stored = self.service.stored(prefix).into_owned();
        let files = match self.service.has_folders {
            true => listing::files_by_folders(&self.steady, stored, &self.contact).boxed(),
            false => listing::files_at_once(&self.steady, stored).await.map_err(failed)?.boxed(),
        };
        let entries = files.map_ok(|entry| Entry {
            path: self.service.shown(entry.path()),
            length: entry.metadata().is_file().then(|| entry.metadata().content_length()),
            modified: modified(entry.metadata()),
        });
        Ok(entries.map_err(failed).boxed())
    }
}

fn causes(error: &opendal::Error) -> impl Iterator<Item = &(dyn StdError + 'static)> {
    iter::successors(error.source(), |&cause| cause.source())
}

/// Returns what an S3 server says, where OpenDAL shows its answer as a struct of Rust. Any other
/// message stays as it is.
fn spoken(message: &str) -> String {
    let told = message.strip_prefix("S3Error { code: \"").and_then(|rest| {
        let (code, rest) = rest.split_once("\", message: \"")?;
        Some((code, rest.split_once("\", resource: \"")?.0))
    });
    match told {
        Some(("", "")) | None => message.to_owned(),
        Some((code, "")) => code.to_owned(),
        Some((code, text)) => format!("{code}: {text}").replace("\\\"", "\""),
    }
}

/// If an error says that no connection to the server could be made, returns why: the root cause.
fn why_closed(error: &opendal::Error) -> Option<&(dyn StdError + 'static)> {
    let is_closed = causes(error).any(|cause| {
        let of_http =
            cause.downcast_ref::<reqwest::Error>().is_some_and(reqwest::Error::is_connect);
        of_http || cause.is::<NoConnection>()
    });
    causes(error).last().filter(|_| is_closed)
}

fn modified(about: &Metadata) -> Option<SystemTime> {
    about.last_modified().map(SystemTime::from)
}

/// A file of a service that is being written.
struct EndpointWriter {
    endpoint: Endpoint,
    path: String,
    /// The temporary name that the file has until it is whole, if it has one.
    stage: Option<String>,
    /// The bytes written so far, if the service takes only whole files.
    kept: Vec<Bytes>,
    /// Whether written bytes are sent only later, when the file or a part of it is complete.
    collects: bool,
    /// Number of bytes that may still be written.
    room: u64,
    /// `None` once the writer is finished or aborted.
    sink: Option<Sink>,
    failed: bool,
    unfinished: Unfinished,
}

/// The destination of a file's bytes.
enum Sink {
    /// OpenDAL's writer.
    Service(Box<opendal::Writer>),
    /// A request whose body is still being written.
    Put(StreamedPut),
}

impl Sink {
    async fn write(&mut self, content: Buffer) -> opendal::Result<()> {
        match self {
            Self::Service(writer) => writer.write(content).await,
            Self::Put(put) => put.write(content).await,
        }
    }

    async fn close(&mut self) -> opendal::Result<()> {
        match self {
            Self::Service(writer) => writer.close().await.map(drop),
            Self::Put(put) => put.close().await,
        }
    }

    async fn abort(self) {
        // Fails if the service cannot abort a file: then the incomplete file is under the temporary
        // name. A request is cancelled when it is dropped.
        if let Self::Service(mut writer) = self {
            let _ = writer.abort().await;
        }
    }
}

impl EndpointWriter {
    /// Sends bytes to the service.
    async fn send(&mut self, mut pieces: Vec<Bytes>) -> Result<()> {
        // OpenDAL's buffers loop for ever at an empty piece.
        pieces.retain(|piece| !piece.is_empty());
        let (mut content, inner) = (Buffer::from(pieces), &self.endpoint.inner);
        let Some(sink) = self.sink.as_mut().filter(|_| !self.failed) else {
            let message = format!("{} cannot be continued after an error", self.path);
            return Err(Error::new(ErrorKind::Io, message).at_node(&inner.name));
        };
        // A write that is dropped or fails half-way cannot be continued.
        self.failed = true;
        let step = if inner.service.resends { usize::MAX } else { PIECE };
        loop {
            let piece = content.slice(..step.min(content.len()));
            content.advance(piece.len());
            let sent = sink.write(piece).await;
            sent.map_err(|error| inner.error("write", &self.path, error))?;
            inner.contact.moved();
            if content.is_empty() {
                self.failed = false;
                return Ok(());
            }
        }
    }

    /// Returns the error for a file that has more bytes than a bucket takes.
    fn too_long(&self) -> Error {
        let message = format!(
            "{}: a bucket takes shards of at most {MOST_IN_PARTS} bytes; put the object with \
             --resume, which cuts it into pieces",
            self.path
        );
        Error::new(ErrorKind::Unsupported, message).at_node(&self.endpoint.inner.name)
    }

    /// Completes the file under the name that it has now.
    async fn close(&mut self) -> Result<()> {
        if let Some(sink) = self.sink.as_mut() {
            let closed = sink.close().await;
            closed.map_err(|error| self.endpoint.inner.error("write", &self.path, error))?;
        }
        self.sink = None;
        Ok(())
    }

    /// Gives the file its name. This is tried again after an error: servers refuse to create a
    /// folder that another request has created in the same moment. If an answer is lost, the next
    /// attempt finds nothing to rename; so the first error is the one to tell.
    async fn rename(&mut self) -> Result<()> {
        let inner = &self.endpoint.inner;
        let Some(stage) = &self.stage else {
            return Ok(());
        };
        let target = inner.service.stored(&self.path);
        let attempt = async || {
            let renamed = inner.service.operator.rename(stage, &target).await;
            renamed.map_err(|error| inner.error("rename", &self.path, error))
        };
        let mut result = attempt().await;
        for _ in 0..inner.retries {
            if result.is_ok() {
                break;
            }
            tokio::time::sleep(PAUSE).await;
            result = attempt().await.or(result);
        }
        result?;
        self.stage = None;
        Ok(())
    }

    async fn complete(&mut self) -> Result<()> {
        let kept = std::mem::take(&mut self.kept);
        self.send(kept).await?;
        self.close().await?;
        self.rename().await
    }

    /// Returns the future that removes everything that was sent, if anything was sent.
    fn clean_up(&mut self) -> Option<impl Future<Output = ()> + Send + 'static> {
        let (sink, stage) = (self.sink.take(), self.stage.take());
        if sink.is_none() && stage.is_none() {
            return None;
        }
        let inner = Arc::clone(&self.endpoint.inner);
        Some(async move {
            let removal = async {
                if let Some(sink) = sink {
                    sink.abort().await;
                }
                if let Some(stage) = stage {
                    let _ = inner.steady.delete(&stage).await;
                }
                Ok(())
            };
            // Remains on a node that does not answer are swept later.
            let _ = inner.contact.hold(NodeCall::Delete, removal).await;
        })
    }
}

#[async_trait]
impl Writer for EndpointWriter {
    /// Bytes that are sent later are copied, because the caller may wait until its memory comes
    /// back before it writes more.
    async fn write(&mut self, pieces: Vec<Bytes>) -> Result<()> {
        let bytes = pieces.iter().map(|piece| piece.len() as u64).sum();
        self.room = self.room.checked_sub(bytes).ok_or_else(|| self.too_long())?;
        let pieces = if self.collects { vec![pieces.concat().into()] } else { pieces };
        if self.endpoint.inner.service.abilities.streams {
            return self.send(pieces).await;
        }
        self.kept.extend(pieces);
        Ok(())
    }

    async fn finish(mut self: Box<Self>) -> Result<()> {
        let result = self.complete().await;
        if result.is_err() {
            self.abort().await;
        }
        result
    }

    async fn abort(mut self: Box<Self>) {
        if let Some(work) = self.clean_up() {
            work.await;
        }
    }
}

impl Drop for EndpointWriter {
    fn drop(&mut self) {
        if let Some(work) = self.clean_up() {
            self.unfinished.remove(work);
        }
    }
}

/// Returns the name of a path for messages. The path of the whole node is empty.
fn named(path: &str) -> &str {
    if path.is_empty() { "the folder" } else { path }
}
