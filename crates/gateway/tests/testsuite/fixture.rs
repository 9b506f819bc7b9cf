//! A gateway over folders, for tests.
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use opendal::{HttpTransporter, OperationContext, Operator};
use opendal_http_transport_reqwest::ReqwestTransport;
use paritas_gateway::{DoorOptions, Gateway, Keys};
use paritas_volume::node::{FolderNode, Node};
use paritas_volume::{Member, Setup, Volume};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const KEYS: &str = r#"
[[key]]
id = "owner"
secret = "0123456789abcdef"
[[key]]
id = "reader"
secret = "fedcba9876543210"
buckets = ["photos"]
read_only = true
[[key]]
id = "writer"
secret = "00112233445566778899"
buckets = ["photos"]
"#;

/// A gateway over five folders.
pub struct Fixture {
    pub root: TempDir,
    pub address: SocketAddr,
    pub volume: Arc<Volume>,
}

impl Fixture {
    pub async fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for disk in 0..5 {
            std::fs::create_dir(root.path().join(format!("disk{disk}"))).unwrap();
        }
        let volume = volume_over(root.path(), |node| node);
        volume.mark_nodes().await.unwrap();
        let address = serve(Arc::clone(&volume), keys_below(root.path())).await;
        Self { root, address, volume }
    }

    pub fn disk(&self, disk: usize) -> PathBuf {
        self.root.path().join(format!("disk{disk}"))
    }

    /// Returns a client with the key of the owner, or of the reader.
    pub fn client(&self, bucket: &str, is_owner: bool) -> Operator {
        match is_owner {
            true => self.client_with(bucket, "owner", "0123456789abcdef"),
            false => self.client_with(bucket, "reader", "fedcba9876543210"),
        }
    }

    pub fn client_with(&self, bucket: &str, id: &str, secret: &str) -> Operator {
        let service = opendal::services::S3::default()
            .bucket(bucket)
            .endpoint(&format!("http://{}", self.address))
            .region("us-east-1")
            .access_key_id(id)
            .secret_access_key(secret)
            .disable_config_load();
        // An error says that another test was faster.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let transport = HttpTransporter::new(ReqwestTransport::new(reqwest::Client::new()));
        let context = OperationContext::new().with_http_transport(transport);
        Operator::new(service).unwrap().with_context(context)
    }

    /// Sends a request without a signature, and returns the answer as text. The gateway may close
    /// the connection before it has read everything.
    pub async fn bare(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let mut answer = Vec::new();
        if stream.write_all(request.as_bytes()).await.is_ok() {
            let _ = stream.read_to_end(&mut answer).await;
        }
        String::from_utf8_lossy(&answer).into_owned()
    }
}

/// Returns a volume over five folders, each as `seen`.
pub fn volume_over(root: &Path, seen: impl Fn(Arc<dyn Node>) -> Arc<dyn Node>) -> Arc<Volume> {
    let node = |disk: usize| {
        let name = format!("disk{disk}");
        let node = seen(Arc::new(FolderNode::new(&name, root.join(&name), false)));
        (Member { domain: name.clone(), name, is_drained: false }, node)
    };
    let code = paritas::Code::new(&"3+2".parse().unwrap()).unwrap();
    let mut setup = Setup::new("0".repeat(32), code, (0..5).map(node).collect());
    setup.block_bytes = 64 << 10;
    Arc::new(Volume::new(setup).unwrap())
}

/// Returns the keys of the owner, the reader and the writer.
pub fn keys_below(root: &Path) -> Keys {
    let keys = root.join("keys.toml");
    std::fs::write(&keys, KEYS).unwrap();
    make_private(&keys);
    Keys::read(&keys).unwrap()
}

#[cfg(unix)]
fn make_private(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

#[cfg(not(unix))]
fn make_private(_path: &Path) {}

pub async fn serve(volume: Arc<Volume>, keys: Keys) -> SocketAddr {
    serve_by(Gateway::new(volume, keys, None, DoorOptions::default()).unwrap()).await
}

/// Starts a gateway, and returns its address.
pub async fn serve_by(gateway: Gateway) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(gateway.serve(listener, std::future::pending()));
    address
}

pub async fn make_bucket(fixture: &Fixture, bucket: &str) {
    put_behind(fixture, &format!("{bucket}/%")).await;
}

/// Puts an object into the volume past the gateway.
pub async fn put_behind(fixture: &Fixture, name: &str) {
    put_bytes_behind(fixture, name, Vec::new()).await;
}

/// Puts these bytes into the volume past the gateway.
pub async fn put_bytes_behind(fixture: &Fixture, name: &str, bytes: Vec<u8>) {
    use paritas_volume::PutOptions;
    let name = paritas_volume::ObjectName::new(name).unwrap();
    let bytes = std::io::Cursor::new(bytes);
    fixture.volume.put(&name, bytes, PutOptions::default()).await.unwrap();
}

pub fn content(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i * i % 251) as u8 ^ (i >> 8) as u8).collect()
}

/// Sends a request to a gateway that is open to all, with these lines of headers. Returns the
/// answer.
pub async fn ask(open: &Fixture, line: &str, headers: &[&str], body: &str) -> String {
    let mut request = format!("{line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n");
    request.extend(headers.iter().map(|header| format!("{header}\r\n")));
    request.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
    open.bare(&request).await
}

/// Returns the code of an answer that is an error, or nothing.
pub fn code_of(answer: &str) -> &str {
    let code = answer.split_once("<Code>").and_then(|(_, rest)| rest.split_once("</Code>"));
    code.map_or("", |(code, _)| code)
}

pub fn body_of(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").map_or("", |(_, body)| body)
}

/// Returns what an object of `photos` has.
pub async fn get(open: &Fixture, key: &str) -> String {
    body_of(&ask(open, &format!("GET /photos/{key}"), &[], "").await).to_owned()
}

/// Returns a gateway that is open to all, with a bucket.
pub async fn open_to_all() -> Fixture {
    let mut fixture = Fixture::new().await;
    make_bucket(&fixture, "photos").await;
    fixture.address = serve(Arc::clone(&fixture.volume), Keys::open()).await;
    fixture
}
