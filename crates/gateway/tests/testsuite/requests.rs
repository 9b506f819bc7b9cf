//! What bare requests get from a gateway that is open to all. This file is long because S3 has many
//! ways to ask, and each is tried with what must be refused.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use paritas_gateway::{DoorOptions, Gateway, Keys};
use paritas_volume::node::{Fault, Faulty, Node, NodeCall, Trigger};
use paritas_volume::{ObjectName, PutOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::fixture::{
    Fixture, ask, body_of, code_of, content, get, keys_below, open_to_all, put_behind,
    put_bytes_behind, serve, serve_by, volume_over,
};
use crate::uploads::begin;

/// The headers of a body without a signature, as the clients of AWS send it over TLS.
const FRAMED: [&str; 3] = [
    "x-amz-content-sha256: STREAMING-UNSIGNED-PAYLOAD-TRAILER",
    "content-encoding: aws-chunked",
    "x-amz-decoded-content-length: 11",
];
const FRAMED_BODY: &str = "5\r\nhello\r\n6\r\n world\r\n0\r\nx-amz-checksum-crc32:DUoRhQ==\r\n\r\n";

#[tokio::test(flavor = "multi_thread")]
async fn framing_is_not_stored_without_a_signature() {
    let open = open_to_all().await;
    let trailer = "x-amz-trailer: x-amz-checksum-crc32";
    let put = async |headers: &[&str], body: &str| ask(&open, "PUT /photos/a", headers, body).await;
    let answer = put(&[FRAMED[0], FRAMED[1], FRAMED[2], trailer], FRAMED_BODY).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains("x-amz-checksum-crc32: DUoRhQ=="), "{answer}");
    let answer = ask(&open, "GET /photos/a", &[], "").await;
    assert_eq!(body_of(&answer), "hello world");
    assert!(!answer.contains("content-encoding"), "{answer}");
    let answer = put(&[FRAMED[1], FRAMED[2]], "b\r\nhello again\r\n0\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(get(&open, "a").await, "hello again");
}

#[tokio::test(flavor = "multi_thread")]
async fn framed_bodies_are_whole() {
    let open = open_to_all().await;
    let trailer = "x-amz-trailer: x-amz-checksum-crc32";
    let all = [FRAMED[0], FRAMED[1], FRAMED[2], trailer];
    let other = FRAMED_BODY.replace("DUoRhQ", "DUoRhA");
    let without = FRAMED_BODY.replace("x-amz-checksum-crc32:DUoRhQ==\r\n", "");
    for (headers, body, code) in [
        (&all[..], &*other, "BadDigest"),
        (&all, &*without, "MalformedTrailerError"),
        (&all[..3], "b\r\nhello world\r\n", "IncompleteBody"),
        (&all[..3], "5\r\nhello\r\n0\r\n\r\n", "IncompleteBody"),
        (&all[..3], "hello world", "IncompleteBody"),
        (&all[..2], "b\r\nhello world\r\n0\r\n\r\n", "MissingContentLength"),
    ] {
        let answer = ask(&open, "PUT /photos/a", headers, body).await;
        assert_eq!(code_of(&answer), code, "{body}: {answer}");
    }
    let listed = open.volume.list("photos/").await.unwrap();
    assert_eq!(listed.objects.len(), 1, "the bucket alone");
}

/// A client that gets an answer before it has sent its body must not go on with the connection.
#[tokio::test(flavor = "multi_thread")]
async fn connections_whose_bodies_are_not_read_are_told_to_close() {
    let open = open_to_all().await;
    let first =
        "PUT /none/a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n";
    let answer = open.bare(first).await;
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    assert!(answer.contains("connection: close\r\n"), "{answer}");
    let read = "PUT /photos/a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello";
    let last = "GET /photos/a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let answers = open.bare(&format!("{read}{last}")).await;
    assert!(!answers[..answers.rfind("HTTP/1.1").unwrap()].contains("connection: close"));
    assert!(answers.ends_with("hello"), "{answers}");
}

#[tokio::test(flavor = "multi_thread")]
async fn removals_keep_their_conditions() {
    let open = open_to_all().await;
    assert!(ask(&open, "PUT /photos/a", &[], "hello").await.starts_with("HTTP/1.1 200"));
    for (header, code) in [
        ("x-amz-if-match-size: 999", "PreconditionFailed"),
        ("x-amz-if-match-last-modified-time: Wed, 21 Oct 2015 07:28:00 GMT", "PreconditionFailed"),
        ("x-amz-expected-bucket-owner: 111122223333", "NotImplemented"),
    ] {
        let answer = ask(&open, "DELETE /photos/a", &[header], "").await;
        assert_eq!(code_of(&answer), code, "{header}: {answer}");
    }
    let remove = async |condition: &str| {
        let document = format!("<Delete><Object><Key>a</Key>{condition}</Object></Delete>");
        ask(&open, "POST /photos?delete", &[], &document).await
    };
    for (condition, code) in [
        ("<Size>999</Size>", "PreconditionFailed"),
        ("<VersionId>abcdef</VersionId>", "NoSuchVersion"),
        (
            "<LastModifiedTime>Wed, 21 Oct 2015 07:28:00 GMT</LastModifiedTime>",
            "PreconditionFailed",
        ),
    ] {
        let answer = remove(condition).await;
        assert_eq!(code_of(&answer), code, "{condition}: {answer}");
    }
    let head = ask(&open, "HEAD /photos/a", &[], "").await;
    let time = head.lines().find_map(|line| line.strip_prefix("last-modified: ")).unwrap();
    let condition = format!(
        "<Size>5</Size><VersionId>null</VersionId><LastModifiedTime>{time}</LastModifiedTime>"
    );
    assert!(remove(&condition).await.contains("<Deleted><Key>a</Key></Deleted>"));
    let answer = ask(&open, "DELETE /photos/a", &["x-amz-if-match-size: 5"], "").await;
    assert_eq!(code_of(&answer), "NoSuchKey");
}

/// Returns a gateway that gives up clients after a third of a second.
async fn impatient() -> Fixture {
    let mut open = open_to_all().await;
    let gateway =
        Gateway::new(Arc::clone(&open.volume), Keys::open(), None, DoorOptions::default());
    open.address = serve_by(gateway.unwrap().with_patience(Duration::from_millis(333))).await;
    open
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_stop_coming_are_given_up() {
    let open = impatient().await;
    let form = "POST /photos HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=b\r\n\
                Content-Length: 1000\r\n\r\n--b\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\na";
    for (request, code) in [
        (form, "NotImplemented"),
        ("POST /photos?delete HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n<Delete>", ""),
        ("PUT /photos/a HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhello", "RequestTimeout"),
    ] {
        let answer = tokio::time::timeout(Duration::from_secs(10), open.bare(request)).await;
        let answer = answer.expect(request);
        assert!(code.is_empty() || code_of(&answer) == code, "{answer}");
    }
}

/// A byte now and then does not keep a place for ever.
#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_come_too_slowly_are_given_up() {
    let open = impatient().await;
    let mut stream = TcpStream::connect(open.address).await.unwrap();
    let head = b"PUT /photos/a HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n";
    stream.write_all(head).await.unwrap();
    let (mut reader, mut writer) = stream.into_split();
    let send = async {
        while writer.write_all(b"x").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        std::future::pending::<()>().await;
    };
    let mut answer = String::new();
    let read = tokio::time::timeout(Duration::from_secs(20), reader.read_to_string(&mut answer));
    tokio::select! {
        read = read => drop(read.expect("the client keeps its place")),
        () = send => {}
    }
    assert_eq!(code_of(&answer), "RequestTimeout", "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_that_take_nothing_are_given_up() {
    let open = impatient().await;
    put_bytes_behind(&open, "photos/a", content(12 << 20)).await;
    let mut stream = TcpStream::connect(open.address).await.unwrap();
    stream.write_all(b"GET /photos/a HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let mut got = Vec::new();
    let _ = stream.read_to_end(&mut got).await;
    assert!(got.len() < 12 << 20, "all came after two seconds of silence");
    // One that takes a little now and then gets everything.
    let mut stream = TcpStream::connect(open.address).await.unwrap();
    stream
        .write_all(b"GET /photos/a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        .await
        .unwrap();
    let (mut got, mut buffer) = (0, vec![0; 2 << 20]);
    loop {
        let length = stream.read(&mut buffer).await.unwrap();
        got += length;
        if length == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(got > 12 << 20, "{got}");
}

/// Such a request waits for the answer 100, which an empty body does not need. Some clients take
/// the next answer on the connection for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_put_of_nothing_that_waits_ends_its_connection() {
    let open = open_to_all().await;
    let put =
        "PUT /photos/a HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 0\r\n\r\n";
    let answer = tokio::time::timeout(Duration::from_secs(10), open.bare(put)).await;
    let answer = answer.expect("the connection ends");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("connection: close"), "{answer}");
}

/// A gateway whose connections are all in use can be told to stop.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_gateway_stops() {
    let open = open_to_all().await;
    let limits = DoorOptions { connections: 1.try_into().unwrap(), ..DoorOptions::default() };
    let gateway = Gateway::new(Arc::clone(&open.volume), Keys::open(), None, limits).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let served = tokio::spawn(gateway.serve(listener, async { _ = stopped.await }));
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET /-/health HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let mut answer = [0; 1000];
    assert!(stream.read(&mut answer).await.unwrap() > 0);
    tokio::time::sleep(Duration::from_millis(100)).await;
    stop.send(()).unwrap();
    let served = tokio::time::timeout(Duration::from_secs(5), served).await;
    served.expect("it stops").unwrap().unwrap();
}

/// Reads the answer to a request on a connection that stays open. All of it comes in one piece.
async fn next_answer(stream: &mut TcpStream) -> String {
    let mut answer = vec![0; 4096];
    let length = stream.read(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer[..length]).into_owned()
}

/// No connection ends when a gateway is renewed, whether it is new, idle or in use. What was begun
/// ends as it began; the next request meets the new keys.
#[tokio::test(flavor = "multi_thread")]
async fn connections_outlast_the_keys() {
    let mut open = open_to_all().await;
    let gateway =
        Gateway::new(Arc::clone(&open.volume), Keys::open(), None, DoorOptions::default());
    let gateway = gateway.unwrap();
    open.address = serve_by(gateway.clone()).await;
    let connect = async || TcpStream::connect(open.address).await.unwrap();
    let (mut new, mut idle, mut busy) = (connect().await, connect().await, connect().await);
    let put = b"PUT /photos/a HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhello";
    busy.write_all(put).await.unwrap();
    let list = b"GET /photos HTTP/1.1\r\nHost: x\r\n\r\n";
    idle.write_all(list).await.unwrap();
    assert!(next_answer(&mut idle).await.starts_with("HTTP/1.1 200"));
    gateway.renew(Arc::clone(&open.volume), keys_below(open.root.path()), None).unwrap();
    for stream in [&mut new, &mut idle] {
        stream.write_all(list).await.unwrap();
        let answer = next_answer(stream).await;
        assert_eq!(code_of(&answer), "AccessDenied", "{answer}");
    }
    busy.write_all(b"hello").await.unwrap();
    assert!(next_answer(&mut busy).await.starts_with("HTTP/1.1 200"));
    let counted =
        open.bare("GET /-/metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
    assert!(counted.contains("requests_total{method=\"GET\",status=\"200\"} 1\n"), "{counted}");
    assert!(counted.contains("gateway_connections 4\n"), "{counted}");
}

/// A reader that waits for room gets the object of the time when it has it.
#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_is_replaced_before_it_is_read_is_found_again() {
    let mut open = open_to_all().await;
    let memory = Some(open.volume.memory() as u64);
    let limits = DoorOptions { memory, ..DoorOptions::default() };
    let gateway = Gateway::new(Arc::clone(&open.volume), Keys::open(), None, limits).unwrap();
    open.address = serve_by(gateway).await;
    put_bytes_behind(&open, "photos/a", content(300_000)).await;
    let mut stream = TcpStream::connect(open.address).await.unwrap();
    let put = "PUT /photos/b HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000000\r\n\r\nhello";
    stream.write_all(put.as_bytes()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let replaced = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        put_bytes_behind(&open, "photos/a", vec![b'x'; 200_000]).await;
        drop(stream);
    };
    let (answer, ()) = tokio::join!(ask(&open, "GET /photos/a", &[], ""), replaced);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(body_of(&answer) == "x".repeat(200_000), "{} bytes", body_of(&answer).len());
}

/// Cuts the long files below a folder, so that no block in them is left.
fn cut_long_files(folder: &Path) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            cut_long_files(&path);
        } else if path.metadata().unwrap().len() > 50_000 {
            std::fs::write(&path, b"").unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_of_what_is_lost_is_not_the_fault_of_the_client() {
    let open = open_to_all().await;
    put_bytes_behind(&open, "photos/a", content(700_000)).await;
    for disk in 0..3 {
        cut_long_files(&open.disk(disk));
    }
    let answer = ask(&open, "PUT /photos/b", &["x-amz-copy-source: /photos/a"], "").await;
    assert!(answer.starts_with("HTTP/1.1 500"), "{answer}");
    assert_eq!(code_of(&answer), "InternalError");
    assert!(!answer.contains("disk"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_change_what_their_directives_say() {
    let open = open_to_all().await;
    assert!(ask(&open, "PUT /photos/a", &[], "hello").await.starts_with("HTTP/1.1 200"));
    for (target, headers, code) in [
        ("b", &["x-amz-metadata-directive: FOO"][..], "InvalidArgument"),
        ("b", &["x-amz-tagging-directive: replace"], "InvalidArgument"),
        ("a", &[], "InvalidRequest"),
        ("a", &["x-amz-storage-class: STANDARD"], ""),
        ("a", &["x-amz-metadata-directive: REPLACE"], ""),
        ("a", &["x-amz-tagging-directive: REPLACE", "x-amz-tagging: a=b"], ""),
        ("b", &["x-amz-metadata-directive: COPY", "If-None-Match: \"0\""], "NotImplemented"),
        ("b", &["x-amz-metadata-directive: COPY"], ""),
    ] {
        let headers = [&["x-amz-copy-source: /photos/a"], headers].concat();
        let answer = ask(&open, &format!("PUT /photos/{target}"), &headers, "").await;
        assert_eq!(code_of(&answer), code, "{headers:?}: {answer}");
    }
    assert_eq!(get(&open, "b").await, "hello");
}

/// What the command stores, the gateway reads, replaces and removes.
#[tokio::test(flavor = "multi_thread")]
async fn names_of_the_command_are_keys() {
    let open = open_to_all().await;
    put_bytes_behind(&open, "photos/a/%20b", b"hello".to_vec()).await;
    let listing = ask(&open, "GET /photos?list-type=2", &[], "").await;
    assert!(listing.contains("<Key>a/%20b</Key>"), "{listing}");
    assert_eq!(get(&open, "a/%2520b").await, "hello");
    let put = ask(&open, "PUT /photos/a/%2520b", &[], "other").await;
    assert!(put.starts_with("HTTP/1.1 200"), "{put}");
    let names = async || {
        let listing = open.volume.list("photos/a/").await.unwrap();
        listing.objects.into_keys().map(|name| name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names().await, ["photos/a/%20b"]);
    assert_eq!(get(&open, "a/%2520b").await, "other");
    let id = begin(&open, "a/%2520b").await;
    let parts = ask(&open, &format!("GET /photos/a/%2520b?uploadId={id}"), &[], "").await;
    assert!(parts.starts_with("HTTP/1.1 200"), "{parts}");
    let removed = ask(&open, "DELETE /photos/a/%2520b", &[], "").await;
    assert!(removed.starts_with("HTTP/1.1 204"), "{removed}");
    assert_eq!(names().await, [""; 0]);
}

/// A listing of a folder shows what the command and what clients have stored there.
#[tokio::test(flavor = "multi_thread")]
async fn folders_are_listed_in_both_spellings() {
    let open = open_to_all().await;
    put_bytes_behind(&open, "photos/x/%a/b", b"hello".to_vec()).await;
    let put = ask(&open, "PUT /photos/x/%25a/c", &[], "hello").await;
    assert!(put.starts_with("HTTP/1.1 200"), "{put}");
    for prefix in ["x/", "x/%25a", "x/%25a/"] {
        let line = format!("GET /photos?list-type=2&prefix={prefix}");
        let listing = ask(&open, &line, &[], "").await;
        for key in ["<Key>x/%a/b</Key>", "<Key>x/%a/c</Key>"] {
            assert!(listing.contains(key), "{prefix}: {listing}");
        }
    }
}

/// Returns what stands between tags of an answer.
fn between<'a>(answer: &'a str, tag: &str) -> &'a str {
    let rest = answer.split_once(&format!("<{tag}>")).map_or("", |(_, rest)| rest);
    rest.split_once(&format!("</{tag}>")).map_or("", |(inside, _)| inside)
}

/// A client whose list began at another gateway gets all keys that were put before, although this
/// gateway keeps the rest of an older list.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_goes_on_only_from_its_own_first_page() {
    for (version, next, tag) in [
        ("list-type=2&", "continuation-token", "NextContinuationToken"),
        ("", "marker", "NextMarker"),
    ] {
        let mut open = open_to_all().await;
        let [one, other] = [open.address, serve(Arc::clone(&open.volume), Keys::open()).await];
        put_behind(&open, "photos/a").await;
        put_behind(&open, "photos/b").await;
        let line = format!("GET /photos?{version}encoding-type=url");
        let first = |of: &str| format!("{of}&max-keys=1");
        let rest = |answer: &str| format!("{line}&{next}={}", between(answer, tag));
        let older = ask(&open, &first(&line), &[], "").await;
        put_behind(&open, "photos/c").await;
        open.address = other;
        let newer = ask(&open, &first(&line), &[], "").await;
        open.address = one;
        let newer = ask(&open, &rest(&newer), &[], "").await;
        assert!(newer.contains("<Key>b</Key>") && newer.contains("<Key>c</Key>"), "{newer}");
        let older = ask(&open, &rest(&older), &[], "").await;
        assert!(older.contains("<Key>b</Key>") && !older.contains("<Key>c</Key>"), "{older}");
        let chosen = ask(&open, &format!("{line}&marker=a&start-after=a"), &[], "").await;
        assert!(chosen.contains("<Key>c</Key>") && !chosen.contains("<Key>a</Key>"), "{chosen}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ranges_and_times_that_cannot_be_read_are_passed_over() {
    let open = open_to_all().await;
    assert!(ask(&open, "PUT /photos/a", &[], "hello").await.starts_with("HTTP/1.1 200"));
    for header in
        ["Range: bytes=abc", "Range: bytes=0-1,3-4", "Range: items=0-1", "If-Modified-Since: then"]
    {
        let answer = ask(&open, "GET /photos/a", &[header], "").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{header}: {answer}");
        assert_eq!(body_of(&answer), "hello");
    }
    let head = ask(&open, "HEAD /photos/a", &["Range: bytes=0-1"], "").await;
    assert!(head.starts_with("HTTP/1.1 206") && head.contains("bytes 0-1/5"), "{head}");
    let beyond = ask(&open, "GET /photos/a", &["Range: bytes=5-"], "").await;
    assert!(beyond.starts_with("HTTP/1.1 416"), "{beyond}");
    assert!(beyond.contains("content-range: bytes */5"), "{beyond}");
    let both = ask(&open, "GET /photos/a?partNumber=1", &["Range: bytes=0-1"], "").await;
    assert_eq!(code_of(&both), "InvalidRequest");
    put_behind(&open, "photos/empty").await;
    let empty = ask(&open, "GET /photos/empty?partNumber=1", &[], "").await;
    assert!(empty.starts_with("HTTP/1.1 20") && !empty.contains("content-range"), "{empty}");
}

#[tokio::test(flavor = "multi_thread")]
async fn notes_that_no_header_can_hold_are_left_out() {
    let open = open_to_all().await;
    let notes = [
        ("content-language", "a\nb"),
        ("content-type", "text/plain"),
        ("x-amz-meta-A B", "1"),
        ("x-amz-meta-OK", "2"),
        ("x-amz-meta-bell", "\u{7}"),
    ];
    let notes = notes.map(|(name, text)| (name.to_owned(), text.to_owned()));
    let notes = notes.into_iter().collect::<BTreeMap<_, _>>();
    let options = PutOptions::default().noting(&notes).unwrap();
    let name = ObjectName::new("photos/a").unwrap();
    open.volume.put(&name, Cursor::new(b"hello".to_vec()), options).await.unwrap();
    let answer = ask(&open, "GET /photos/a", &[], "").await;
    assert!(answer.starts_with("HTTP/1.1 200") && body_of(&answer) == "hello", "{answer}");
    assert!(answer.contains("content-type: text/plain"), "{answer}");
    assert!(
        answer.contains("x-amz-meta-ok: 2") && answer.contains("x-amz-meta-bell: "),
        "{answer}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_with_control_characters_are_listed_by_their_numbers() {
    let open = open_to_all().await;
    let put = ask(&open, "PUT /photos/a%01%0Db", &[], "hello").await;
    assert!(put.starts_with("HTTP/1.1 200"), "{put}");
    let listing = ask(&open, "GET /photos?list-type=2", &[], "").await;
    assert!(listing.contains("<Key>a&#x1;&#xD;b</Key>"), "{listing}");
    let listing = ask(&open, "GET /photos?list-type=2&encoding-type=url", &[], "").await;
    assert!(listing.contains("<Key>a%01%0Db</Key>"), "{listing}");
}

/// Spoils the manifests of a name on a disk.
fn spoil_manifests(folder: &Path, name: &str) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            spoil_manifests(&path, name);
        } else if path.to_str().unwrap().contains(&format!("/{name}@/")) {
            std::fs::write(&path, b"spoiled").unwrap();
        }
    }
}

/// An object whose manifest is lost does not hide the others, whether all nodes answer or not.
#[tokio::test(flavor = "multi_thread")]
async fn listings_show_what_cannot_be_read() {
    let mut open = open_to_all().await;
    put_bytes_behind(&open, "photos/a", content(100)).await;
    put_bytes_behind(&open, "photos/b", content(100)).await;
    (0..5).for_each(|disk| spoil_manifests(&open.disk(disk), "a"));
    let with_silent = |node: Arc<dyn Node>| -> Arc<dyn Node> {
        match node.name() {
            "disk0" => {
                Arc::new(Faulty::new(node, 1).with(NodeCall::Read, Fault::Refuse, Trigger::From(1)))
            }
            _ => node,
        }
    };
    for volume in
        [volume_over(open.root.path(), |node| node), volume_over(open.root.path(), with_silent)]
    {
        open.address = serve(volume, Keys::open()).await;
        let listing = ask(&open, "GET /photos?list-type=2", &[], "").await;
        assert!(listing.starts_with("HTTP/1.1 200"), "{listing}");
        assert!(listing.contains("<Key>a</Key>") && listing.contains("<Key>b</Key>"), "{listing}");
        assert_eq!(listing.matches("<Size>100</Size>").count(), 2, "{listing}");
    }
}

/// Nodes that have no space or fail are errors of the server. Clients retry if nodes fail, and not
/// if these are full. Nothing becomes visible, and one such node does no harm.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_cannot_be_written_are_errors_of_the_server() {
    let mut open = open_to_all().await;
    let whole = open.address;
    for (fault, length, is_one) in [
        (Fault::Full, 100, false),
        (Fault::Full, 200_000, false),
        (Fault::Refuse, 200_000, false),
        (Fault::Full, 200_000, true),
    ] {
        let failing = |node: Arc<dyn Node>| -> Arc<dyn Node> {
            if is_one && node.name() != "disk0" {
                return node;
            }
            let failing = Faulty::new(node, 1).with(NodeCall::Write, fault, Trigger::From(1));
            Arc::new(failing.with(NodeCall::Piece, fault, Trigger::From(1)))
        };
        open.address = serve(volume_over(open.root.path(), failing), Keys::open()).await;
        let answer = ask(&open, "PUT /photos/new", &[], &"x".repeat(length)).await;
        let expected = match (is_one, fault) {
            (true, _) => "",
            (false, Fault::Full) => "XMinioStorageFull",
            (false, _) => "ServiceUnavailable",
        };
        assert_eq!(answer.starts_with("HTTP/1.1 200"), is_one, "{answer}");
        assert_eq!(answer.starts_with("HTTP/1.1 50"), !is_one, "{answer}");
        assert_eq!(code_of(&answer), expected, "{answer}");
        open.address = whole;
        let got = ask(&open, "GET /photos/new", &[], "").await;
        assert_eq!(got.starts_with("HTTP/1.1 200"), is_one, "{got}");
    }
}

/// Notes that have no room for the ETag are refused before the body has come.
#[tokio::test(flavor = "multi_thread")]
async fn notes_without_room_for_what_the_body_has_are_refused_before_it() {
    let open = impatient().await;
    let most = (32 << 10) - "cache-control".len() - "etag".len() - 32;
    let sha256 = "checksum-sha256".len() + 44;
    for (length, header, code) in [
        (most, "", "RequestTimeout"),
        (most + 1, "", "InvalidArgument"),
        (most - sha256, "x-amz-trailer: x-amz-checksum-sha256\r\n", "RequestTimeout"),
        (most - sha256 + 1, "x-amz-trailer: x-amz-checksum-sha256\r\n", "InvalidArgument"),
    ] {
        let text = "x".repeat(length);
        let request = format!(
            "PUT /photos/a HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n{header}\
             Cache-Control: {text}\r\n\r\nhello"
        );
        let answer = open.bare(&request).await;
        assert_eq!(code_of(&answer), code, "{length} {header}: {answer}");
    }
}

/// An object that cannot be read for a moment is not listed without its ETag.
#[tokio::test(flavor = "multi_thread")]
async fn listings_wait_for_nodes_that_come_back() {
    let mut open = open_to_all().await;
    put_bytes_behind(&open, "photos/a", content(100)).await;
    let unreadable = |node| -> Arc<dyn Node> {
        Arc::new(Faulty::new(node, 1).with(NodeCall::Read, Fault::Refuse, Trigger::From(1)))
    };
    let volume = volume_over(open.root.path(), unreadable);
    let whole = std::mem::replace(&mut open.address, serve(volume, Keys::open()).await);
    let listing = ask(&open, "GET /photos?list-type=2", &[], "").await;
    assert!(listing.starts_with("HTTP/1.1 503"), "{listing}");
    open.address = whole;
    let listing = ask(&open, "GET /photos?list-type=2", &[], "").await;
    assert!(listing.contains("<ETag>"), "{listing}");
}

/// The empty key is the name of the bucket itself.
#[tokio::test(flavor = "multi_thread")]
async fn the_empty_key_is_refused() {
    let open = open_to_all().await;
    let document = "<Delete><Object><Key></Key></Object></Delete>";
    let answer = ask(&open, "POST /photos?delete", &[], document).await;
    assert_eq!(code_of(&answer), "InvalidArgument", "{answer}");
    assert!(!answer.contains("<Deleted>"), "{answer}");
    let answer = ask(&open, "PUT /photos/b", &["x-amz-copy-source: /photos/"], "").await;
    assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");
    let names = open.volume.list("photos/").await.unwrap().objects;
    assert_eq!(names.keys().map(ObjectName::as_str).collect::<Vec<_>>(), ["photos/%"]);
}

/// A client without a key may say of its body what it likes.
#[tokio::test(flavor = "multi_thread")]
async fn only_bytes_that_came_are_counted() {
    let open = Fixture::new().await;
    for _ in 0..2 {
        let request = format!(
            "PUT /photos/a HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            i64::MAX
        );
        assert!(open.bare(&request).await.starts_with("HTTP/1.1 403"));
    }
    let page = ask(&open, "GET /-/", &[], "").await;
    assert!(page.contains("2 requests, 0 bytes received"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_have_the_digests_that_are_stated() {
    let open = open_to_all().await;
    assert!(ask(&open, "PUT /photos/a", &[], "hello").await.starts_with("HTTP/1.1 200"));
    let delete = "<Delete><Object><Key>a</Key></Object></Delete>";
    let tagging = "<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>";
    for (line, document) in [("POST /photos?delete", delete), ("PUT /photos/a?tagging", tagging)] {
        for header in [
            "Content-MD5: AAAAAAAAAAAAAAAAAAAAAA==",
            "x-amz-checksum-crc32: AAAAAA==",
            "x-amz-checksum-sha256: LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=",
        ] {
            let answer = ask(&open, line, &[header], document).await;
            assert_eq!(code_of(&answer), "BadDigest", "{line}, {header}: {answer}");
            assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
        }
    }
    let trailer = ["x-amz-trailer: x-amz-checksum-crc32"];
    let answer = ask(&open, "POST /photos?delete", &trailer, delete).await;
    assert_eq!(code_of(&answer), "MalformedTrailerError", "{answer}");
    let cdata = "<Delete><Object><Key>a<![CDATA[b]]></Key></Object></Delete>";
    let answer = ask(&open, "POST /photos?delete", &[], cdata).await;
    assert_eq!(code_of(&answer), "MalformedXML", "it would delete `a`: {answer}");
    assert_eq!(get(&open, "a").await, "hello");
    let right = "Content-MD5: aFPqFnlCon58cZ4Qt7zwvQ==";
    let answer = ask(&open, "POST /photos?delete", &[right], delete).await;
    assert!(answer.contains("<Deleted>"), "{answer}");
}

/// A presigned address says in its query what other requests say in headers.
#[tokio::test(flavor = "multi_thread")]
async fn a_query_may_say_what_headers_say() {
    let open = open_to_all().await;
    let put = "PUT /photos/a?x-amz-meta-color=bl%C3%A4u&x-amz-checksum-crc32=AAAAAA%3D%3D";
    assert!(ask(&open, put, &[], "hello").await.starts_with("HTTP/1.1 200"));
    let head = ask(&open, "HEAD /photos/a", &[], "").await;
    assert!(head.contains("x-amz-meta-color: "), "{head}");
    let answer = ask(&open, "PUT /photos/b?x-amz-copy-source=photos%2Fa", &[], "").await;
    assert!(answer.contains("<CopyObjectResult"), "{answer}");
    assert_eq!(get(&open, "b").await, "hello");
    let refused = ask(&open, "PUT /photos/b?x-amz-acl=public-read", &[], "other").await;
    assert_eq!(code_of(&refused), "NotImplemented");
    assert_eq!(get(&open, "b").await, "hello");
}

/// A damaged manifest may be of any time.
#[tokio::test(flavor = "multi_thread")]
async fn impossible_times_hide_nothing() {
    let open = open_to_all().await;
    put_bytes_behind(&open, "photos/a", content(100)).await;
    (0..5).for_each(|disk| move_to_the_end_of_time(&open.disk(disk)));
    let listing = ask(&open, "GET /photos?list-type=2", &[], "").await;
    assert!(
        listing.contains("<Key>a</Key>") && listing.contains("<LastModified>9999-"),
        "{listing}"
    );
}

/// Spoils the manifests of `a` below a folder, and gives them the latest time that names can have.
fn move_to_the_end_of_time(folder: &Path) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            move_to_the_end_of_time(&path);
        } else if path.to_str().unwrap().contains("/a@/") {
            let name = path.file_name().unwrap().to_str().unwrap();
            let late = format!("0000ffffffffffff{}", &name[16..]);
            std::fs::write(&path, b"spoiled").unwrap();
            std::fs::rename(&path, path.with_file_name(late)).unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_may_stand_before_the_name_of_the_gateway() {
    let mut open = open_to_all().await;
    put_bytes_behind(&open, "photos/a", b"text".to_vec()).await;
    let ask = async |open: &Fixture, line: &str, host: &str| {
        let request = format!(
            "{line} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        );
        open.bare(&request).await
    };
    // Without a name, the answer would be the list of buckets, which reads like an empty bucket.
    for line in ["GET /?list-type=2", "GET /?uploads", "GET /?location"] {
        let answer = ask(&open, line, "photos.store.example").await;
        assert_eq!(code_of(&answer), "InvalidRequest", "{line}: {answer}");
        assert!(answer.contains("--domain"), "{answer}");
    }
    let answer = ask(&open, "GET /?x-id=ListBuckets&prefix=p", "store.example").await;
    assert!(answer.contains("<Name>photos</Name>"), "{answer}");

    let domain = Some("store.example".to_owned());
    let options = DoorOptions { domain, ..DoorOptions::default() };
    let gateway = Gateway::new(Arc::clone(&open.volume), Keys::open(), None, options).unwrap();
    open.address = serve_by(gateway).await;
    let listing = ask(&open, "GET /?list-type=2", "photos.store.example:9000").await;
    assert!(listing.contains("<Key>a</Key>"), "{listing}");
    let answer = ask(&open, "GET /a", "photos.store.example").await;
    assert_eq!(body_of(&answer), "text");
    for host in ["store.example", "127.0.0.1:9000"] {
        assert_eq!(body_of(&ask(&open, "GET /photos/a", host).await), "text", "{host}");
    }
    // At the host of a bucket, the path of a page is a key; at the gateway's own host, it is the
    // page.
    let answer = ask(&open, "GET /-/health", "photos.store.example").await;
    assert_eq!(code_of(&answer), "NoSuchKey", "{answer}");
    assert!(ask(&open, "GET /-/health", "store.example").await.ends_with("ok\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_object_has_a_type_and_readers_may_ask_for_another() {
    let open = open_to_all().await;
    put_bytes_behind(&open, "photos/a", b"text".to_vec()).await;
    let asked = "response-content-type=text%2Fcsv&response-expires=Wed%2C%2021%20Oct%202026%2007%3A28%3A00%20GMT";
    for method in ["GET", "HEAD"] {
        let answer = ask(&open, &format!("{method} /photos/a"), &[], "").await;
        assert!(answer.contains("content-type: binary/octet-stream\r\n"), "{answer}");
        let answer = ask(&open, &format!("{method} /photos/a?{asked}"), &[], "").await;
        assert!(answer.contains("content-type: text/csv\r\n"), "{answer}");
        assert!(answer.contains("expires: Wed, 21 Oct 2026 07:28:00 GMT\r\n"), "{answer}");
    }
}

/// The bytes are those of the object in whose place the new notes are, and its ETag.
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_onto_itself_changes_what_is_said_of_the_object() {
    let open = open_to_all().await;
    let bytes = "0123456789".repeat(30_000);
    let put = ask(&open, "PUT /photos/a", &["content-type: text/plain"], &bytes).await;
    let etag = |answer: &str| {
        let line = answer.lines().find(|line| line.starts_with("etag: "));
        line.expect("an ETag").to_owned()
    };
    let copy = [
        "x-amz-copy-source: photos/a",
        "x-amz-metadata-directive: REPLACE",
        "x-amz-meta-mtime: 17",
        "content-type: text/csv",
    ];
    let answer = ask(&open, "PUT /photos/a", &copy, "").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let answer = ask(&open, "GET /photos/a", &[], "").await;
    assert!(body_of(&answer) == bytes && etag(&answer) == etag(&put));
    assert!(answer.contains("content-type: text/csv\r\n"), "{answer}");
    assert!(answer.contains("x-amz-meta-mtime: 17\r\n"), "{answer}");
    let found = open.volume.list("photos/a").await.unwrap();
    let (_, listed) = found.objects.first_key_value().unwrap();
    assert_eq!(listed.length, bytes.len() as u64);
}

/// Programs read the id of the owner.
#[tokio::test(flavor = "multi_thread")]
async fn buckets_and_objects_have_an_owner() {
    let open = open_to_all().await;
    ask(&open, "PUT /photos/a", &[], "x").await;
    for (path, has_owner) in [
        ("/", true),
        ("/photos", true),
        ("/photos?list-type=2", false),
        ("/photos?list-type=2&fetch-owner=true", true),
    ] {
        let list = ask(&open, &format!("GET {path}"), &[], "").await;
        assert_eq!(list.contains("<ID>paritas</ID>"), has_owner, "{path}: {list}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_is_removed_when_it_has_no_objects() {
    let open = open_to_all().await;
    // A bucket without a marker, and one whose objects were removed.
    put_behind(&open, "mail/a").await;
    for (bucket, code) in [("mail", "BucketNotEmpty"), ("none", "NoSuchBucket")] {
        assert_eq!(code_of(&ask(&open, &format!("DELETE /{bucket}"), &[], "").await), code);
    }
    for key in 0..12 {
        ask(&open, &format!("PUT /photos/{key}"), &[], "x").await;
        ask(&open, &format!("DELETE /photos/{key}"), &[], "").await;
    }
    assert!(ask(&open, "DELETE /photos", &[], "").await.starts_with("HTTP/1.1 204"));
    assert_eq!(code_of(&ask(&open, "DELETE /photos", &[], "").await), "NoSuchBucket");
}

/// A bucket is not empty although the name of its object stands in manifests alone, and these are
/// damaged.
#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_with_an_object_of_no_known_name_is_not_removed() {
    let open = open_to_all().await;
    ask(&open, &format!("PUT /photos/{}", "%D1%8F".repeat(120)), &[], "x").await;
    let entries = |folder: PathBuf| std::fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = (0..5).flat_map(|disk| entries(open.disk(disk).join("manifests/photos")));
    let folders = folders.filter(|folder| folder.file_name().to_str().unwrap().starts_with('!'));
    let manifests: Vec<PathBuf> =
        folders.flat_map(|folder| entries(folder.path())).map(|file| file.path()).collect();
    assert!(!manifests.is_empty());
    manifests.iter().for_each(|file| std::fs::write(file, "damaged").unwrap());
    assert_eq!(code_of(&ask(&open, "DELETE /photos", &[], "").await), "BucketNotEmpty");
}

/// What is not known may change what is meant, so nothing is written. A body without a length could
/// be none.
#[tokio::test(flavor = "multi_thread")]
async fn writes_that_ask_for_more_write_nothing() {
    let open = open_to_all().await;
    ask(&open, "PUT /photos/a", &[], "first").await;
    for line in [
        "PUT /photos/a?annotation&annotationName=n",
        "DELETE /photos/a?annotation&annotationName=n",
        "PUT /photos/a?append&position=5",
        "DELETE /photos?abac",
    ] {
        assert_eq!(code_of(&ask(&open, line, &[], "note").await), "NotImplemented", "{line}");
    }
    let request = "PUT /photos/a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    assert_eq!(code_of(&open.bare(request).await), "MissingContentLength");
    assert_eq!(get(&open, "a").await, "first");
}
