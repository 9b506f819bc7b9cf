//! Clients of simulated gateways: what they ask, and what they make of the answers.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use md5::{Digest, Md5};
use paritas_volume::simulation::by_clock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;
use tokio::time::sleep;

use super::register::KeyAct;
use super::{GatewayScene, KnownUpload, RunningGateway};
use crate::door::ConnectionPlace;
use crate::judge::{hex, unhex};

/// The only bucket, and the keys in it.
const BUCKET: &str = "photos";
pub const KEYS: [&str; 3] = ["a", "b/c", "b/d"];

/// What a client asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum S3Job {
    Put,
    /// A put that must not replace anything.
    PutNew,
    Get,
    Head,
    Delete,
    DeleteMany,
    List,
    /// A list of one key a page.
    ListPages,
    /// An object's tags, or its other notes, are changed. Its bytes stay.
    Tag,
    Renote,
    /// A copy to the next key.
    Copy,
    Upload,
    Complete,
    Abort,
}

pub const S3_JOBS: [S3Job; 20] = [
    S3Job::Put,
    S3Job::Put,
    S3Job::Put,
    S3Job::Put,
    S3Job::PutNew,
    S3Job::Get,
    S3Job::Get,
    S3Job::Get,
    S3Job::Head,
    S3Job::Delete,
    S3Job::DeleteMany,
    S3Job::List,
    S3Job::ListPages,
    S3Job::Tag,
    S3Job::Renote,
    S3Job::Copy,
    S3Job::Upload,
    S3Job::Upload,
    S3Job::Complete,
    S3Job::Abort,
];

/// A request without a signature.
struct PlainRequest {
    method: &'static str,
    /// The key, and what is asked of it.
    target: String,
    headers: Vec<String>,
    body: Vec<u8>,
}

/// An answer that came to its end.
pub struct S3Answer {
    pub status: u16,
    head: String,
    pub body: Vec<u8>,
}

/// Returns the bytes of the content of a number.
fn content(number: u64) -> Vec<u8> {
    let line = format!("{number:016x}\n").into_bytes();
    let length = 17 + (number >> 20) % if number.is_multiple_of(3) { 150 } else { 3000 };
    line.into_iter().cycle().take(length as usize).collect()
}

/// Returns the number of a content, unless nobody has written it.
fn number_of(bytes: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(bytes.get(..16)?).ok()?;
    let number = u64::from_str_radix(digits, 16).ok()?;
    (content(number) == bytes).then_some(number)
}

/// Returns the ETags of objects with a content: put at once, and as the only part of an upload.
fn etags(number: u64) -> [String; 2] {
    let whole = hex(&Md5::digest(content(number)));
    let of_part = Md5::digest(unhex(&whole).expect("hexadecimal digits"));
    [whole, format!("{}-1", hex(&of_part))]
}

/// Returns an ETag in a document without its quotes.
fn unquoted(etag: &str) -> String {
    etag.replace("&quot;", "").replace('"', "")
}

/// Returns what stands between tags, from the beginning of a text on.
fn between<'t>(text: &'t str, tag: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(&format!("<{tag}>"))?;
    rest.split_once(&format!("</{tag}>")).map(|(inside, _)| inside)
}

impl PlainRequest {
    fn new(method: &'static str, key: usize) -> Self {
        let target = format!("/{BUCKET}/{}", KEYS[key]);
        Self { method, target, headers: Vec::new(), body: Vec::new() }
    }

    fn bytes(&self) -> Vec<u8> {
        let Self { method, target, headers, body } = self;
        let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
        let length = body.len();
        let head = format!(
            "{method} {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\
             Content-Length: {length}\r\n\r\n"
        );
        [head.as_bytes(), body].concat()
    }
}

impl S3Answer {
    /// Reads an answer, unless it broke off.
    fn of(bytes: &[u8], has_body: bool) -> Option<Self> {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
        let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
        let status = head.get(9..12)?.parse().ok()?;
        let answer = Self { status, head, body: bytes[end + 4..].to_vec() };
        let length = answer.header("content-length").and_then(|text| text.parse().ok());
        let is_whole = !has_body || length.is_none_or(|length: usize| length == answer.body.len());
        is_whole.then_some(answer)
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    fn etag(&self) -> Option<String> {
        self.header("etag").map(|etag| etag.trim_matches('"').to_owned())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    fn is_good(&self) -> bool {
        (200..300).contains(&self.status) && !self.text().contains("<Error>")
    }
}

impl GatewayScene {
    /// Sends a request to one of the gateways. There is no answer if the gateway is killed, or if
    /// the client goes before.
    async fn send(&self, asked: &PlainRequest) -> Option<S3Answer> {
        let gateway = self.some_gateway();
        let patience = self.world.draw(|chance| {
            let goes = chance.percent(10).then(|| chance.time(Duration::from_secs(20)));
            goes.unwrap_or(Duration::from_secs(3600))
        });
        self.send_to(&gateway, asked, patience).await
    }

    async fn send_to(
        &self,
        running: &RunningGateway,
        asked: &PlainRequest,
        patience: Duration,
    ) -> Option<S3Answer> {
        let (mut client, server) = tokio::io::duplex(1 << 16);
        // The place is given back when the connection ends; nobody stops the gateway.
        let leaving = watch::Sender::new(());
        let place = ConnectionPlace::new(leaving.subscribe(), None);
        let visit = running.gateway.visit(([127, 0, 0, 1], 9).into(), place);
        let conversation = async move { visit.converse(server).await };
        tokio::spawn(by_clock(running.ahead, async move {
            let _ = conversation.await;
            drop(leaving);
        }));
        let mut dead = running.dead.subscribe();
        let exchange = async {
            client.write_all(&asked.bytes()).await.ok()?;
            let mut answer = Vec::new();
            client.read_to_end(&mut answer).await.ok()?;
            S3Answer::of(&answer, asked.method != "HEAD")
        };
        let answer = tokio::select! {
            biased;
            _ = dead.wait_for(|is_dead| *is_dead) => None,
            answer = exchange => answer,
            () = sleep(patience) => None,
        };
        let told = answer.as_ref().map_or("no answer".to_owned(), |it| it.status.to_string());
        // A token names a list by a random number.
        let target = asked.target.split("&continuation-token").next().unwrap_or_default();
        self.world.note(&format!("{} {target}: {told}", asked.method));
        answer.inspect(|answer| self.judge(asked, answer))
    }

    /// Notes answers that must not be. While no more nodes fail than may be lost, everything works.
    fn judge(&self, asked: &PlainRequest, answer: &S3Answer) {
        let text = answer.text();
        let has_fault = answer.status >= 500 || text.contains("<Error>") && answer.status < 300;
        let is_excused = self.is_stormy
            // The only manifests of a version that was not acknowledged may be garbled each time.
            || !text.contains("ServiceUnavailable")
                && (0..KEYS.len()).any(|key| self.history().is_open(key));
        if text.contains("NoSuchBucket") || has_fault && !is_excused {
            let told = format!("{} {}: {} {text}", asked.method, asked.target, answer.status);
            self.history().flaw(told);
        }
    }

    /// Does a job, and notes what came of it.
    pub async fn act(&self, job: S3Job, key: usize, number: u64) -> Option<u16> {
        match job {
            S3Job::Put => self.put(key, number, None).await,
            S3Job::PutNew => self.put(key, number, Some("If-None-Match: *")).await,
            S3Job::Get => self.get(key).await,
            S3Job::Head => self.head(key).await,
            S3Job::Delete => self.delete(PlainRequest::new("DELETE", key), key).await,
            S3Job::DeleteMany => self.delete(delete_many(key), key).await,
            S3Job::List => self.list(1000).await,
            S3Job::ListPages => self.list(1).await,
            S3Job::Tag => self.change_tags(key, number).await,
            S3Job::Renote => self.change_notes(key, number).await,
            S3Job::Copy => self.copy(key).await,
            S3Job::Upload => self.upload(key, number).await,
            S3Job::Complete => self.complete(key).await,
            S3Job::Abort => self.abort(key).await,
        }
    }

    async fn put(&self, key: usize, number: u64, condition: Option<&str>) -> Option<u16> {
        let begun = self.history().now();
        etags(number).into_iter().for_each(|etag| self.history().know(etag, number));
        let deed = self.history().begin(key, KeyAct::Put(number));
        let mut asked = PlainRequest { body: content(number), ..PlainRequest::new("PUT", key) };
        asked.headers.extend(condition.map(str::to_owned));
        let answer = self.send(&asked).await?;
        if answer.status == 412 {
            self.history().refuse(deed);
        }
        if answer.is_good() {
            let mut history = self.history();
            history.end(deed);
            if condition.is_some() {
                history.saw(key, begun, None);
            }
            if answer.etag().as_ref() != Some(&etags(number)[0]) {
                history.flaw(format!("{}: the ETag is {:?}", asked.target, answer.etag()));
            }
        }
        Some(answer.status)
    }

    /// Reads an object, and notes what is read.
    pub async fn get(&self, key: usize) -> Option<u16> {
        let (asked, begun) = (PlainRequest::new("GET", key), self.history().now());
        let answer = self.send(&asked).await?;
        let mut history = self.history();
        if answer.status == 404 {
            history.saw(key, begun, None);
        } else if answer.is_good() {
            let number = number_of(&answer.body);
            let etag = answer.etag().unwrap_or_default();
            match number {
                Some(number) if etags(number).contains(&etag) => {
                    history.saw(key, begun, Some(number));
                }
                _ => history.flaw(format!(
                    "{}: {} bytes that nobody has written, or the ETag {etag} of others",
                    asked.target,
                    answer.body.len()
                )),
            }
        }
        Some(answer.status)
    }

    async fn head(&self, key: usize) -> Option<u16> {
        let begun = self.history().now();
        let answer = self.send(&PlainRequest::new("HEAD", key)).await?;
        match answer.status {
            404 => self.history().saw(key, begun, None),
            200 => self.saw_etag(key, begun, &answer.etag().unwrap_or_default()),
            _ => {}
        }
        Some(answer.status)
    }

    fn saw_etag(&self, key: usize, begun: Duration, etag: &str) {
        let mut history = self.history();
        match history.of_etag(etag) {
            Some(number) => history.saw(key, begun, Some(number)),
            None => history.flaw(format!("{}: an unknown ETag, {etag}", KEYS[key])),
        }
    }

    async fn delete(&self, asked: PlainRequest, key: usize) -> Option<u16> {
        let deed = self.history().begin(key, KeyAct::Remove);
        let answer = self.send(&asked).await?;
        if answer.is_good() {
            self.history().end(deed);
        }
        Some(answer.status)
    }

    /// Lists all keys.
    async fn list(&self, keys_of_a_page: usize) -> Option<u16> {
        let begun = self.history().now();
        let (mut seen, mut token) = (vec![None; KEYS.len()], None);
        loop {
            let after: String =
                token.iter().map(|token| format!("&continuation-token={token}")).collect();
            let target = format!("/{BUCKET}?list-type=2&max-keys={keys_of_a_page}{after}");
            let answer = self.send(&PlainRequest { target, ..PlainRequest::new("GET", 0) }).await?;
            if !answer.is_good() {
                return Some(answer.status);
            }
            let text = answer.text();
            for object in text.split("<Contents>").skip(1) {
                let key = KEYS.iter().position(|key| between(object, "Key") == Some(key));
                let etag = between(object, "ETag").unwrap_or_default();
                match key {
                    Some(key) => seen[key] = Some(unquoted(etag)),
                    None => self.history().flaw(format!("a key that nobody has put: {object}")),
                }
            }
            token = between(&text, "NextContinuationToken").map(str::to_owned);
            if token.is_none() {
                break;
            }
        }
        for (key, etag) in seen.into_iter().enumerate() {
            match etag {
                Some(etag) => self.saw_etag(key, begun, &etag),
                None => self.history().saw(key, begun, None),
            }
        }
        Some(200)
    }

    async fn change_tags(&self, key: usize, number: u64) -> Option<u16> {
        let mut asked = PlainRequest::new("PUT", key);
        asked.target.push_str("?tagging");
        asked.body = format!(
            "<Tagging><TagSet><Tag><Key>k</Key><Value>{number}</Value></Tag></TagSet></Tagging>"
        )
        .into_bytes();
        self.send(&asked).await.map(|answer| answer.status)
    }

    /// Copies an object onto itself.
    async fn change_notes(&self, key: usize, number: u64) -> Option<u16> {
        let mut asked = PlainRequest::new("PUT", key);
        asked.headers = vec![
            format!("x-amz-copy-source: /{BUCKET}/{}", KEYS[key]),
            "x-amz-metadata-directive: REPLACE".to_owned(),
            format!("x-amz-meta-note: {number}"),
        ];
        self.send(&asked).await.map(|answer| answer.status)
    }

    /// Copies an object to the next key.
    async fn copy(&self, key: usize) -> Option<u16> {
        let target = (key + 1) % KEYS.len();
        let deed = self.history().begin(target, KeyAct::Copy);
        let mut asked = PlainRequest::new("PUT", target);
        asked.headers.push(format!("x-amz-copy-source: /{BUCKET}/{}", KEYS[key]));
        let begun = self.history().now();
        let answer = self.send(&asked).await?;
        let mut history = self.history();
        if answer.status == 404 {
            history.refuse(deed);
            history.saw(key, begun, None);
        } else if answer.is_good() {
            let text = answer.text();
            let etag = unquoted(between(&text, "ETag").unwrap_or_default());
            match history.of_etag(&etag) {
                Some(number) => {
                    history.copied(deed, number);
                    history.saw(key, begun, Some(number));
                }
                None => history.flaw(format!("{}: an unknown ETag, {etag}", asked.target)),
            }
        }
        Some(answer.status)
    }

    /// Begins an upload and stores its only part. Others may complete it, or give it up.
    async fn upload(&self, key: usize, number: u64) -> Option<u16> {
        let mut asked = PlainRequest::new("POST", key);
        asked.target.push_str("?uploads");
        let answer = self.send(&asked).await?;
        let text = answer.text();
        let Some(id) = between(&text, "UploadId").filter(|_| answer.is_good()) else {
            return Some(answer.status);
        };
        let part = 1 + number % 3;
        let target = format!("/{BUCKET}/{}?partNumber={part}&uploadId={id}", KEYS[key]);
        let asked = PlainRequest { target, body: content(number), ..PlainRequest::new("PUT", key) };
        let answer = self.send(&asked).await?;
        if answer.is_good() {
            etags(number).into_iter().for_each(|etag| self.history().know(etag, number));
            let deed = OnceLock::new();
            let upload = KnownUpload { key, id: id.to_owned(), part, number, deed };
            self.uploads().push(Arc::new(upload));
            if number.is_multiple_of(2) {
                return self.complete(key).await;
            }
        }
        Some(answer.status)
    }

    fn upload_of(&self, key: usize) -> Option<Arc<KnownUpload>> {
        let uploads = self.uploads();
        let of_key: Vec<_> = uploads.iter().filter(|upload| upload.key == key).collect();
        let some = self.world.draw(|chance| chance.below(of_key.len().max(1) as u64) as usize);
        of_key.get(some).map(|upload| Arc::clone(upload))
    }

    async fn complete(&self, key: usize) -> Option<u16> {
        let upload = self.upload_of(key)?;
        let KnownUpload { id, part, number, deed, .. } = &*upload;
        let [of_part, of_whole] = etags(*number);
        // The first request that asks for it completes the upload; others find that it is done.
        let deed = *deed.get_or_init(|| self.history().begin(key, KeyAct::Put(*number)));
        let mut asked = PlainRequest::new("POST", key);
        asked.target.push_str(&format!("?uploadId={id}"));
        asked.body = format!(
            "<CompleteMultipartUpload><Part><PartNumber>{part}</PartNumber>\
             <ETag>&quot;{of_part}&quot;</ETag></Part></CompleteMultipartUpload>"
        )
        .into_bytes();
        let answer = self.send(&asked).await?;
        if answer.is_good() {
            self.history().end(deed);
            let text = answer.text();
            let etag = unquoted(between(&text, "ETag").unwrap_or_default());
            if etag != of_whole {
                self.history().flaw(format!("{}: the ETag is {etag}", asked.target));
            }
        }
        Some(answer.status)
    }

    async fn abort(&self, key: usize) -> Option<u16> {
        let upload = self.upload_of(key)?;
        let mut asked = PlainRequest::new("DELETE", key);
        asked.target.push_str(&format!("?uploadId={}", upload.id));
        self.send(&asked).await.map(|answer| answer.status)
    }
}

fn delete_many(key: usize) -> PlainRequest {
    let body = format!("<Delete><Object><Key>{}</Key></Object></Delete>", KEYS[key]).into_bytes();
    let digest = BASE64_STANDARD.encode(Md5::digest(&body));
    let headers = vec![format!("Content-MD5: {digest}")];
    PlainRequest {
        target: format!("/{BUCKET}?delete"),
        headers,
        body,
        ..PlainRequest::new("POST", key)
    }
}
