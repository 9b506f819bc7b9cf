//! Fuzzes requests to a gateway that accepts them without keys. Whatever a request says, it gets an
//! answer, which is not that the gateway failed; nothing is written but in the folders of the
//! nodes; and an object that no request names stays as it is.
//!
//! An input is a request as people write it: method and target, lines of headers, an empty line,
//! the body. Its length, the host and the end of the connection are added.

#![no_main]

use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use paritas_gateway::{DoorOptions, Gateway, Keys};
use paritas_volume::node::{FolderNode, Node};
use paritas_volume::{GetOptions, Member, ObjectName, PutOptions, Setup, Volume};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

/// Requests that one gateway gets, before an empty one takes its place.
const REQUESTS: usize = 500;
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(8);
/// Headers that say where a request ends, which inputs do not choose.
const FRAMING: [&str; 5] = ["content-length", "transfer-encoding", "connection", "host", "upgrade"];
const NODES: usize = 3;
const BUCKET: &str = "bucket";
/// The bucket that inputs do not name.
const KEPT: &str = "kept-by-the-owner";
const CONTENT: &[u8] = b"what the owner has put";

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(1).enable_all().build().expect("a runtime")
});

static HOUSE: Mutex<Option<House>> = Mutex::new(None);

fuzz_target!(|input: &[u8]| {
    let Some(request) = request(input) else { return };
    let mut house = HOUSE.lock().expect("no panic before");
    RUNTIME.block_on(async {
        if house.as_ref().is_none_or(|house| house.requests == REQUESTS) {
            if let Some(old) = house.take() {
                old.leave().await;
            }
            *house = Some(House::build().await);
        }
        let house = house.as_mut().expect("it is built above");
        house.requests += 1;
        let request = house.with_upload(&request);
        let answer = tokio::time::timeout(PATIENCE, house.ask(&request)).await.expect("an answer");
        let shown = String::from_utf8_lossy(&answer);
        let last = after_interim(&shown);
        assert!(last.starts_with("HTTP/1.1 "), "answered {shown:?}");
        assert!(!last.starts_with("HTTP/1.1 500"), "answered {shown}");
    });
});

/// Returns an answer without the interim ones before it, such as `100 Continue`.
fn after_interim(answer: &str) -> &str {
    match answer.split_once("\r\n\r\n") {
        Some((head, rest)) if head.starts_with("HTTP/1.1 1") => after_interim(rest),
        _ => answer,
    }
}

/// Returns the bytes of a request, or `None` for one that names the bucket of the owner.
fn request(input: &[u8]) -> Option<Vec<u8>> {
    let is_named = input.windows(KEPT.len()).any(|part| part.eq_ignore_ascii_case(KEPT.as_bytes()));
    let (head, body) = match input.windows(2).position(|pair| pair == b"\n\n") {
        Some(end) => (&input[..end], &input[end + 2..]),
        None => (input, &input[..0]),
    };
    let mut lines = head.split(|&byte| byte == b'\n');
    let (method, target) = split(lines.next()?, b' ')?;
    let mut out = [method, b" ", target, b" HTTP/1.1\r\n"].concat();
    for line in lines {
        let (name, value) = split(line, b':')?;
        let name = name.trim_ascii();
        if !FRAMING.iter().any(|framing| framing.as_bytes().eq_ignore_ascii_case(name)) {
            out.extend([name, b": ", value.trim_ascii(), b"\r\n"].concat());
        }
    }
    out.extend(
        format!("host: s3\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len()).bytes(),
    );
    out.extend(body);
    (!is_named).then_some(out)
}

fn split(line: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let place = line.iter().position(|&byte| byte == at)?;
    Some((&line[..place], &line[place + 1..]))
}

/// A gateway over a volume of folders.
struct House {
    yard: PathBuf,
    volume: Arc<Volume>,
    address: SocketAddr,
    gateway: JoinHandle<()>,
    /// The id of an upload that was begun. Inputs, which cannot know it, write `0` in its place.
    upload: String,
    requests: usize,
}

impl House {
    async fn build() -> Self {
        let yard = std::env::temp_dir().join(format!("paritas-fuzz-s3-{}", std::process::id()));
        let _ = fs::remove_dir_all(&yard);
        let nodes = (0..NODES).map(|number| node(&yard, number)).collect();
        let code = paritas::Code::new(&"2+1".parse().expect("a code")).expect("a code");
        let mut setup = Setup::new("0".repeat(32), code, nodes);
        setup.block_bytes = 4096;
        let volume = Arc::new(Volume::new(setup).expect("a volume"));
        volume.mark_nodes().await.expect("folders take files");
        for (name, content) in [(format!("{BUCKET}/%"), &[][..]), (format!("{KEPT}/plan"), CONTENT)]
        {
            let name = ObjectName::new(name).expect("a name");
            let content = std::io::Cursor::new(content);
            volume.put(&name, content, PutOptions::default()).await.expect("folders take files");
        }
        let gateway = Gateway::new(Arc::clone(&volume), Keys::open(), None, DoorOptions::default());
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("a port");
        let serving = gateway.expect("memory for a put").serve(listener, std::future::pending());
        let gateway = tokio::spawn(async { serving.await.expect("connections are taken") });
        let mut house = Self { yard, volume, address, gateway, upload: String::new(), requests: 0 };
        let begun = request(b"POST /bucket/parts?uploads").expect("a request");
        let begun = String::from_utf8(house.ask(&begun).await).expect("a document");
        let Some((_, id)) = begun.split_once("<UploadId>") else { panic!("no upload: {begun}") };
        house.upload = id.split_once('<').expect("the end of an id").0.to_owned();
        house
    }

    /// Returns a request with the id of the upload.
    fn with_upload(&self, request: &[u8]) -> Vec<u8> {
        const UPLOAD: &[u8] = b"uploadId=";
        let at = request.windows(UPLOAD.len() + 1).position(|part| part == b"uploadId=0");
        let Some(at) = at.map(|at| at + UPLOAD.len()) else { return request.to_vec() };
        [&request[..at], self.upload.as_bytes(), &request[at + 1..]].concat()
    }

    async fn ask(&self, request: &[u8]) -> Vec<u8> {
        let mut stream = TcpStream::connect(self.address).await.expect("a connection");
        let mut answer = Vec::new();
        // A gateway that refuses a request may close the connection while the rest is sent.
        let _ = stream.write_all(request).await;
        let _ = stream.read_to_end(&mut answer).await;
        answer
    }

    async fn leave(self) {
        self.gateway.abort();
        let name = ObjectName::new(format!("{KEPT}/plan")).expect("a name");
        let mut kept = Vec::new();
        let got = self.volume.get(&name, None, &mut kept, GetOptions::default(), &|_| {}).await;
        got.expect("the owner's object");
        assert_eq!(kept, CONTENT);
        let entries = fs::read_dir(&self.yard).expect("a folder");
        let mut found: Vec<OsString> =
            entries.map(|entry| entry.expect("an entry").file_name()).collect();
        found.sort();
        let nodes: Vec<OsString> = (0..NODES).map(|number| name_of(number).into()).collect();
        assert_eq!(found, nodes);
    }
}

fn node(yard: &Path, number: usize) -> (Member, Arc<dyn Node>) {
    let name = name_of(number);
    let path = yard.join(&name);
    fs::create_dir_all(&path).expect("a temporary folder");
    let node = FolderNode::new(&name, path, false);
    (Member { domain: name.clone(), name, is_drained: false }, Arc::new(node))
}

fn name_of(number: usize) -> String {
    format!("node{number}")
}
