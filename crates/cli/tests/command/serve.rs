//! `paritas serve`: it starts, answers, refuses and stops.

#![cfg(all(feature = "gateway", unix))]

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::tank::Tank;
use crate::common::{Chance, exit, paritas, run};
use rustix::process::{Pid, Signal, kill_process};

/// A running gateway, its address, and where its log is.
struct Server {
    child: Child,
    address: String,
    log: PathBuf,
}

impl Server {
    fn start(volume: &Path, flags: &[&str]) -> Self {
        let mut command = paritas(args!["serve", volume, "--listen", "127.0.0.1:0", "--json"]);
        let log = volume.with_extension("log");
        command.args(flags).stdout(Stdio::piped()).stderr(File::create(&log).unwrap());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let line: serde_json::Value = serde_json::from_str(&line).unwrap();
        let address = line["endpoint"].as_str().unwrap().strip_prefix("http://").unwrap();
        Self { address: address.to_owned(), child, log }
    }

    /// Sends a request, and returns status and body of the answer.
    fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let answer = self.answer(method, path, body);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, body.to_owned())
    }

    /// Returns the bytes of an object, if it can be read.
    fn bytes(&self, path: &str) -> Option<Vec<u8>> {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let end = answer.windows(4).position(|window| window == b"\r\n\r\n")?;
        answer.starts_with(b"HTTP/1.1 200").then(|| answer.split_off(end + 4))
    }

    /// Sends a request, and returns all of the answer.
    fn answer(&self, method: &str, path: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn end(mut self) -> i32 {
        let id = Pid::from_raw(self.child.id() as i32).unwrap();
        kill_process(id, Signal::TERM).unwrap();
        self.child.wait().unwrap().code().unwrap()
    }
}

#[test]
fn what_is_put_through_the_gateway_is_in_the_volume() {
    let tank = Tank::new(3, "2+1");
    let file = tank.path("tank.toml");
    let server = Server::start(&file, &["--anonymous"]);
    assert_eq!(server.ask("PUT", "/photos", "").0, 200);
    assert_eq!(server.ask("PUT", "/photos/a%20b", "content").0, 200);
    assert_eq!(server.ask("GET", "/photos/a%20b", ""), (200, "content".to_owned()));
    assert_eq!(server.ask("GET", "/-/health", ""), (200, "ok\n".to_owned()));
    let listed = run(args!["volume", "cat", &file, "photos/a b"]).expect(exit::DONE);
    assert_eq!(listed.stdout, b"content");
    let stat =
        run(args!["volume", "stat", &file, "photos/a b", "--json"]).expect(exit::DONE).result();
    assert_eq!(stat["notes"]["etag"], "9a0364b9e99bb480dd25e1f0284c8555");
    assert_eq!(server.end(), 0, "SIGTERM is how a gateway is meant to end");
    let frozen = Server::start(&file, &["--anonymous", "--read-only"]);
    assert_eq!(frozen.ask("PUT", "/photos/b", "x").0, 403);
    assert_eq!(frozen.ask("GET", "/photos/a%20b", ""), (200, "content".to_owned()));
    assert_eq!(frozen.end(), 0);
}

#[test]
fn what_a_put_notes_is_told_to_clients() {
    let tank = Tank::new(3, "2+1");
    let (file, page) = (tank.path("tank.toml"), tank.path("page.html"));
    std::fs::write(&page, "<p>").unwrap();
    let put =
        |more: &[OsString]| run([&args!["volume", "put", &file, &page, "www/page"], more].concat());
    let notes = args!["--note", "content-type=text/html", "--note", "x-amz-meta-by=a=b"];
    put(&notes).expect(exit::DONE);
    let stat =
        run(args!["volume", "stat", &file, "www/page", "--json"]).expect(exit::DONE).result();
    let expected = serde_json::json!({"content-type": "text/html", "x-amz-meta-by": "a=b"});
    assert_eq!(stat["notes"], expected);
    let server = Server::start(&file, &["--anonymous"]);
    let answer = server.answer("GET", "/www/page", "").to_lowercase();
    assert!(answer.contains("content-type: text/html\r\n"), "{answer}");
    assert!(answer.contains("x-amz-meta-by: a=b\r\n"), "{answer}");
    assert_eq!(server.end(), 0);
    let refused = put(&args!["--note", "content-type"]).expect(exit::ARGUMENTS);
    assert!(refused.stderr.contains("NAME=TEXT"), "{refused}");
    let refused = put(&args!["--note", "a=1", "--note", "a=2"]).expect(exit::ARGUMENTS);
    assert!(refused.stderr.contains("--note a is given twice"), "{refused}");
    let long = format!("long={}", "x".repeat(32_768));
    let refused = put(&args!["--note", long]).expect(exit::ARGUMENTS);
    assert!(refused.stderr.contains("32772 bytes"), "{refused}");
}

#[test]
fn what_cannot_be_served_is_told() {
    let tank = Tank::new(3, "2+1");
    let file = tank.path("tank.toml");
    let keys = tank.path("keys.toml");
    let refused = |words: &[OsString], code, text: &str| {
        let words = [&args!["serve", &file], words].concat();
        let refused = run(words).expect(code);
        assert!(refused.stderr.contains(text), "{refused}");
    };
    refused(&[], exit::ARGUMENTS, "--keys");
    refused(&args!["--keys", &keys], exit::IO, "keys.toml");
    std::fs::write(&keys, "[[key]]\nid = 'a'\nsecret = '0123456789abcdef'\n").unwrap();
    refused(&args!["--keys", &keys], exit::ARGUMENTS, "chmod 600");
    for flag in ["--read-only", "--no-upkeep"] {
        let paced = args!["--anonymous", flag, "--rate", "5MB"];
        refused(&paced, exit::ARGUMENTS, "cannot be used with");
    }
    let nowhere = args!["--anonymous", "--listen", "192.0.2.1:1"];
    refused(&nowhere, exit::ARGUMENTS, "cannot listen at 192.0.2.1:1");
    refused(&args!["--anonymous", "--tls", &keys, &keys], exit::ARGUMENTS, "keys.toml");
    let gone = tank.path("gone.pem");
    refused(&args!["--anonymous", "--tls", &gone, &keys], exit::IO, "gone.pem");
}

/// The document of an error leads to its line in the log. A node that fails has a line, too, though
/// requests succeed without it.
#[test]
fn the_log_tells_of_refused_requests_and_failed_nodes() {
    let tank = Tank::new(3, "2+1");
    let server = Server::start(&tank.path("tank.toml"), &["--anonymous"]);
    let (status, document) = server.ask("GET", "/photos/none", "");
    let id = document.split("<RequestId>").nth(1).and_then(|text| text.split('<').next()).unwrap();
    std::fs::rename(tank.disk(1), tank.path("gone")).unwrap();
    assert_eq!(server.ask("GET", "/-/health", "").0, 200);
    let log = std::fs::read_to_string(&server.log).unwrap();
    let lines: Vec<serde_json::Value> =
        log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().any(|line| line["id"] == id && line["status"] == status), "{log}");
    let failed = lines.iter().find(|line| line["message"] == "a node cannot be used").unwrap();
    assert!(failed["level"] == "WARN" && failed["node"].is_string(), "{log}");
    assert_eq!(server.end(), 0);
}

/// Nodes are added while a gateway runs, and objects move to them.
#[test]
fn a_gateway_uses_nodes_that_are_added() {
    let mut tank = Tank::new(3, "2+1");
    tank.disks = 7;
    let object = |number| Chance(number).bytes(30_000);
    (0..8).for_each(|number| _ = tank.put(&format!("photos/{number}"), &object(number)));
    let server = Server::start(&tank.path("tank.toml"), &["--anonymous", "--no-upkeep"]);
    let is_served =
        |number| server.bytes(&format!("/photos/{number}")).is_some_and(|it| it == object(number));
    assert!((0..8).all(is_served));
    let nodes = ["disk3", "disk4", "disk5", "disk6"];
    nodes.iter().for_each(|node| std::fs::create_dir(tank.path(node)).unwrap());
    tank.run("add", &nodes.map(|node| args!["--node", node]).concat()).expect(exit::DONE);
    tank.run("repair", &[]).expect(exit::DONE);
    let begin = Instant::now();
    while !(0..8).all(is_served) {
        assert!(begin.elapsed() < Duration::from_secs(60), "the new nodes are not used");
        std::thread::sleep(Duration::from_millis(200));
    }
    assert_eq!(server.end(), 0);
}

/// A request whose signature is wrong is answered by whether its key is known.
#[test]
fn keys_are_read_anew_at_sighup() {
    let tank = Tank::new(3, "2+1");
    let (file, keys) = (tank.path("tank.toml"), tank.path("keys.toml"));
    let write = |text: &str| {
        std::fs::write(&keys, text).unwrap();
        std::fs::set_permissions(&keys, std::fs::Permissions::from_mode(0o600)).unwrap();
    };
    let entry = |id: &str| format!("[[key]]\nid = \"{id}\"\nsecret = \"at least 16 characters\"\n");
    write(&entry("first"));
    let server = Server::start(&file, &["--keys", keys.to_str().unwrap()]);
    let now = Command::new("date").args(["-u", "+%Y%m%dT%H%M%SZ"]).output().unwrap().stdout;
    let now = String::from_utf8(now).unwrap().trim().to_owned();
    let is_known = |key: &str| {
        let path = format!(
            "/photos/a?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Date={now}&X-Amz-Expires=600\
             &X-Amz-Credential={key}%2F{}%2Fus-east-1%2Fs3%2Faws4_request\
             &X-Amz-SignedHeaders=host&X-Amz-Signature={}",
            &now[..8],
            "0".repeat(64)
        );
        let (status, body) = server.ask("GET", &path, "");
        assert_eq!(status, 403, "{body}");
        assert!(body.contains("SignatureDoesNotMatch") || body.contains("InvalidAccessKeyId"));
        body.contains("SignatureDoesNotMatch")
    };
    let hang_up =
        || kill_process(Pid::from_raw(server.child.id() as i32).unwrap(), Signal::HUP).unwrap();
    assert!(is_known("first") && !is_known("second"));
    // A file with a flaw changes nothing.
    write("[[key]]\n");
    hang_up();
    std::thread::sleep(Duration::from_millis(300));
    assert!(is_known("first") && !is_known("second"));
    write(&entry("second"));
    hang_up();
    let begin = Instant::now();
    while !is_known("second") {
        assert!(begin.elapsed() < Duration::from_secs(60), "the new keys are not used");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(!is_known("first"));
    assert_eq!(server.end(), 0);
}

/// An object in pieces is repaired with its pieces.
#[test]
fn pieces_are_repaired_with_their_object() {
    let tank = Tank::new(3, "2+1");
    let file = tank.path("tank.toml");
    let server = Server::start(&file, &["--anonymous"]);
    server.ask("PUT", "/films", "");
    let (_, begun) = server.ask("POST", "/films/a?uploads", "");
    let id = begun.split("<UploadId>").nth(1).unwrap().split('<').next().unwrap();
    let body = "0123456789".repeat(10_000);
    assert_eq!(server.ask("PUT", &format!("/films/a?partNumber=1&uploadId={id}"), &body).0, 200);
    let parts = "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber></Part></CompleteMultipartUpload>";
    assert_eq!(server.ask("POST", &format!("/films/a?uploadId={id}"), parts).0, 200);
    assert_eq!(server.end(), 0);
    std::fs::remove_dir_all(tank.disk(1).join("objects")).unwrap();
    tank.run("verify", &args!["films/a"]).expect(exit::REPAIRABLE);
    tank.run("repair", &args!["films/a"]).expect(exit::DONE);
    let verified = tank.run("verify", &args!["films/a"]).expect(exit::DONE).results();
    assert_eq!(verified[0]["status"], "intact");
}
