//! Servers that behave badly, each a few lines here: nodes notice, and no error shows a secret that
//! a server repeats.

#![cfg(all(feature = "s3", feature = "webdav", feature = "http"))]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use futures::TryStreamExt;
use paritas_volume::config::Config;
use paritas_volume::node::{Mode, Node, open, probe};
use paritas_volume::{Error, ErrorKind, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const SECRET: &str = "Sentinel-secret";

/// Starts a server that gives every request the same answer, or none. Returns its address.
async fn server(answer: Option<String>) -> String {
    server_in_turn(vec![answer]).await
}

/// Starts a server that gives these answers in turn, and then the last one for ever.
async fn server_in_turn(answers: Vec<Option<String>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        for count in 0.. {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(serve(stream, answers[count.min(answers.len() - 1)].clone()));
        }
    });
    address
}

async fn serve(mut stream: TcpStream, answer: Option<String>) {
    let mut request = Vec::new();
    let mut part = [0; 4096];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut part).await {
            Ok(read) if read > 0 => request.extend_from_slice(&part[..read]),
            _ => return,
        }
    }
    match answer {
        Some(answer) => drop(stream.write_all(answer.as_bytes()).await),
        None => tokio::time::sleep(Duration::from_secs(60)).await,
    }
}

fn answer(status: &str, length: usize, body: &str) -> Option<String> {
    Some(format!(
        "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    ))
}

fn node(uri: &str) -> Arc<dyn Node> {
    node_with_retries(uri, 0)
}

fn node_with_retries(uri: &str, retries: usize) -> Arc<dyn Node> {
    let config = Config::parse(&format!(
        "name = \"v\"\nid = \"00112233445566778899aabbccddeeff\"\ncode = \"4+2\"\n\
         [limits]\ntimeout = 0.3\nretries = {retries}\n\
         [[node]]\nname = \"n\"\nuri = {uri:?}\ncredentials = \"TEST\""
    ))
    .unwrap();
    let variable = |name: &str| (name != "HOME").then(|| SECRET.to_owned());
    open(&config.nodes[0], &config, Path::new("/"), &variable).unwrap()
}

fn uris(address: &str) -> [String; 3] {
    [
        format!("s3://bucket/x?endpoint=http://{address}&region=r"),
        format!("webdav+http://{address}/x"),
        format!("http://{address}/x"),
    ]
}

/// Returns the errors of all that can be asked of a node.
async fn errors(node: &dyn Node) -> Vec<Error> {
    let listed: Result<Vec<_>> = node.list("a/").try_collect().await;
    let results = [
        node.read("a", None).await.map(drop),
        node.read("a", Some(0..4)).await.map(drop),
        node.stat("a").await.map(drop),
        listed.map(drop),
        node.write("a", "x".into(), Mode::Replace).await,
        node.write("a", "x".into(), Mode::Create).await,
        node.delete("a").await,
        probe(node).await.map(drop),
    ];
    let mut errors: Vec<_> = results.into_iter().filter_map(Result::err).collect();
    if let Ok(mut writer) = node.writer("a").await {
        // More than a bucket takes in one part.
        errors.extend(writer.write(vec![vec![0; 20 << 20].into()]).await.err());
        errors.extend(writer.finish().await.err());
    }
    errors
}

#[tokio::test]
async fn what_a_server_repeats_is_not_shown() {
    for status in ["500 Error", "403 Forbidden", "401 Unauthorized", "418 Teapot"] {
        let body = format!("<Error><Message>{SECRET}\n{SECRET}</Message></Error>");
        let address = server(answer(status, body.len(), &body)).await;
        for uri in uris(&address) {
            let errors = errors(&*node(&uri)).await;
            assert!(errors.len() >= 7, "{uri} {status}: {errors:?}");
            for error in errors {
                let shown = format!("{error} {error:?}");
                assert!(!shown.contains("Sentinel"), "{uri} {status}: {shown}");
            }
        }
    }
}

/// What a bucket's server says is shown as its code and its words.
#[tokio::test]
async fn what_a_bucket_says_is_in_plain_words() {
    let told = [
        (
            "<Code>AccessDenied</Code><Message>You do not own \"x\", sorry.</Message>",
            "cannot read a: AccessDenied: You do not own \"x\", sorry.",
        ),
        ("<Code>InvalidAccessKeyId</Code><Message/>", "cannot read a: InvalidAccessKeyId"),
    ];
    for (body, expected) in told {
        let body = format!("<Error>{body}<RequestId>7</RequestId></Error>");
        let address = server(answer("403 Forbidden", body.len(), &body)).await;
        let error = node(&uris(&address)[0]).read("a", None).await.unwrap_err();
        assert!(error.to_string().ends_with(expected), "{error}");
    }
}

/// A server may list anything. What is not where it was asked for is an error of the node, not
/// nothing, and is never followed.
#[tokio::test]
async fn what_a_server_lists_elsewhere_is_an_error() {
    let listing = async |hrefs: &[&str]| {
        let of = |href: &&str| {
            let kind = if href.ends_with('/') { "<D:collection/>" } else { "" };
            format!(
                "<D:response><D:href>{href}</D:href><D:propstat><D:prop><D:getcontentlength>3\
                 </D:getcontentlength><D:getlastmodified>Mon, 30 Nov 2026 00:00:00 GMT\
                 </D:getlastmodified><D:resourcetype>{kind}</D:resourcetype></D:prop>\
                 <D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>"
            )
        };
        let responses = hrefs.iter().map(of).collect::<String>();
        let body = format!("<D:multistatus xmlns:D=\"DAV:\">{responses}</D:multistatus>");
        let address = server(answer("207 Multi-Status", body.len(), &body)).await;
        let node = node(&format!("webdav+http://{address}/root"));
        let files: Result<Vec<_>> = node.list("a/").try_collect().await;
        let folders = node.folders("a/").await;
        (files.map(|files| files.into_iter().map(|file| file.path).collect::<Vec<_>>()), folders)
    };
    let (files, folders) = listing(&["/root/a/", "/root/a/file", "/root/a/%c3%a4 b"]).await;
    assert_eq!(files.unwrap(), ["a/file", "a/ä b"]);
    assert!(folders.unwrap().is_empty());
    for href in [
        "http://127.0.0.1/root/a/file",
        "/root/a/../",
        "/root/a/%2e%2e/",
        "/root/a/./",
        "/root/b/file",
        // Shorter than the node's folder.
        "/",
        "x",
    ] {
        let (files, folders) = listing(&["/root/a/", href]).await;
        for error in [files.unwrap_err(), folders.unwrap_err()] {
            let shown = error.to_string();
            assert!(shown.contains("was asked what is in \"a/\", and lists"), "{href}: {shown}");
        }
    }
}

#[tokio::test]
async fn errors_of_a_server_that_is_not_there_show_no_secret() {
    // A port on which nobody listens.
    let address = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    for uri in uris(&address.to_string()) {
        let node = node(&uri);
        assert!(!format!("{node:?}").contains("Sentinel"), "{node:?}");
        for error in errors(&*node).await {
            let shown = format!("{error} {error:?}");
            assert_eq!(error.node(), Some("n"), "{shown}");
            assert!(!shown.contains("Sentinel"), "{uri}: {shown}");
        }
    }
}

#[tokio::test]
async fn a_server_that_is_off_is_tried_again_once_a_limit() {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    for uri in uris(&free.to_string()) {
        let node = node_with_retries(&uri, 2);
        let first = node.read("a", None).await.unwrap_err();
        let listener = TcpListener::bind(free).await.unwrap();
        let server = tokio::spawn(async move {
            let mut connections = 0;
            while let Ok(accepted) =
                tokio::time::timeout(Duration::from_secs(1), listener.accept()).await
            {
                serve(accepted.unwrap().0, answer("200 OK", 4, "text")).await;
                connections += 1;
            }
            connections
        });
        for _ in 0..50 {
            let error = node.read("a", None).await.unwrap_err();
            assert_eq!(error.kind(), first.kind());
            assert!(first.message().ends_with(error.message()), "{first} {error}");
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        node.read("a", None).await.unwrap_err();
        let begun = Instant::now();
        while node.read("a", None).await.is_err() {
            assert!(begun.elapsed() < Duration::from_secs(20), "{uri}: the trial has not ended");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(server.await.unwrap(), 2, "{uri}: the trial, and the call after it");
    }
}

#[tokio::test]
async fn uploads_that_nobody_completed_are_swept() {
    let upload = |file: &str, begun: &str| {
        let object = "ab".repeat(16);
        format!(
            "<Upload><Key>x/objects/ab/{object}/{file}</Key><UploadId>a+b/c==</UploadId><Initiated>{begun}</Initiated>\
             <Owner><ID>x</ID></Owner></Upload>"
        )
    };
    let page = |is_truncated: bool, uploads: &[String]| {
        let body = format!(
            "<?xml version=\"1.0\"?>\n<ListMultipartUploadsResult xmlns=\"http://s3/\"><Prefix>x/</Prefix>\
             <NextKeyMarker>x/é &amp; a</NextKeyMarker><NextUploadIdMarker>u</NextUploadIdMarker>\
             <IsTruncated>{is_truncated}</IsTruncated>{}</ListMultipartUploadsResult>",
            uploads.concat()
        );
        answer("200 OK", body.len(), &body)
    };
    let month = Duration::from_secs(30 * 24 * 3600);
    let begun = opendal::raw::Timestamp::try_from(SystemTime::now() - month).unwrap().to_string();
    let old = upload("é &amp; a.1of3.paritas", &begun);
    let never = upload("d.1of3.paritas", "0001-01-01T00:00:00Z");
    let new = upload("b.1of3.paritas", "2999-11-10T20:48:33.000Z");
    let odd = upload("c.1of3.paritas", "yesterday");
    // Others upload to the bucket as well.
    let other = upload("a.tar", &begun);
    let removed = || answer("204 No Content", 0, "");
    let day = Duration::from_secs(24 * 3600);
    let swept = async |answers: Vec<Option<String>>| {
        let [uri, ..] = uris(&server_in_turn(answers).await);
        node(&uri).sweep(day).await
    };
    let pages = [
        page(true, &[old.clone(), new, odd, other, never]),
        removed(),
        page(false, &[old]),
        removed(),
    ];
    assert_eq!(swept(pages.to_vec()).await.unwrap(), 2);
    for status in ["403 Forbidden", "405 Method Not Allowed", "501 Not Implemented"] {
        assert_eq!(swept(vec![answer(status, 0, "")]).await.unwrap(), 0, "{status}");
    }
    for (status, shown) in [("500 Error", "500"), ("200 OK", "uploads cannot be read")] {
        let error = swept(vec![answer(status, 3, "<a>")]).await.unwrap_err();
        assert!(error.message().contains(shown), "{error}");
    }
}

#[tokio::test]
async fn permission_and_trouble_are_told_apart() {
    let cases = [
        ("401 Unauthorized", ErrorKind::Refused),
        ("403 Forbidden", ErrorKind::Refused),
        ("404 Not Found", ErrorKind::NotFound),
        ("500 Error", ErrorKind::Io),
        ("507 Insufficient Storage", ErrorKind::Io),
    ];
    for (status, kind) in cases {
        let address = server(answer(status, 0, "")).await;
        for uri in uris(&address) {
            let error = node(&uri).read("a", Some(0..4)).await.unwrap_err();
            assert_eq!((error.kind(), error.node()), (kind, Some("n")), "{uri} {status}: {error}");
            let number = &status[..3];
            let is_told = kind == ErrorKind::NotFound || error.message().contains(number);
            assert!(is_told || status.starts_with("401"), "{uri} {status}: {error}");
        }
    }
    // When a file is written, a missing bucket is not reported as a missing file.
    let address = server(answer("404 Not Found", 0, "")).await;
    let error = node(&uris(&address)[0]).write("a", "x".into(), Mode::Replace).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
}

#[tokio::test]
async fn a_server_without_an_answer_is_left_after_one_limit() {
    let address = server(None).await;
    for uri in uris(&address) {
        let node = node_with_retries(&uri, 3);
        let start = Instant::now();
        let results = [node.read("a", Some(0..4)).await.map(drop), node.stat("a").await.map(drop)];
        for result in results {
            assert_eq!(result.unwrap_err().kind(), ErrorKind::Io, "{uri}");
        }
        // Four attempts at two calls would take 2.4 seconds.
        assert!(start.elapsed() < Duration::from_secs(1), "{uri}: {:?}", start.elapsed());
    }
}

/// The server makes the folder and stops in the middle of the file.
#[tokio::test]
async fn a_server_that_stops_reading_is_left_after_one_limit() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let mut method = [0; 3];
            stream.peek(&mut method).await.unwrap();
            let answer = match &method {
                b"PRO" => answer("404 Not Found", 0, ""),
                b"MKC" => answer("201 Created", 0, ""),
                _ => None,
            };
            tokio::spawn(serve(stream, answer));
        }
    });
    let node = node_with_retries(&uris(&address)[1], 3);
    let mut writer = node.writer("a").await.unwrap();
    let (start, mut written) = (Instant::now(), 0);
    let error = loop {
        match writer.write(vec![vec![0; 1 << 20].into()]).await {
            Ok(()) => written += 1,
            Err(error) => break error,
        }
    };
    assert!(error.to_string().contains("no answer within 0.3 s"), "{error}");
    assert!(written < 32, "the system keeps {written} MiB");
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    writer.abort().await;
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_server_that_reads_no_ranges_is_read_whole() {
    let address = server(answer("200 OK", 10, "0123456789")).await;
    for uri in [format!("http://{address}/x"), format!("webdav+http://{address}/x")] {
        let node = node(&uri);
        assert!(node.abilities().ranges);
        // A range as long as the file would be taken for the file.
        assert_eq!(node.read("a", Some(2..5)).await.unwrap(), "234", "{uri}");
        assert!(!node.abilities().ranges);
        assert_eq!(node.read("a", Some(9..10)).await.unwrap(), "9");
        assert_eq!(node.read("a", Some(5..15)).await.unwrap_err().kind(), ErrorKind::Io);
    }
}

/// The server says that the file has a tebibyte, and sends ten bytes of it.
#[tokio::test]
async fn of_a_server_that_reads_no_ranges_no_more_is_taken_than_is_wanted() {
    let address = server(answer("200 OK", 1 << 40, "0123456789")).await;
    for uri in [format!("http://{address}/x"), format!("webdav+http://{address}/x")] {
        assert_eq!(node(&uri).read("a", Some(2..5)).await.unwrap(), "234", "{uri}");
    }
}

#[tokio::test]
async fn an_answer_that_ends_early_is_an_error() {
    // A connection that ends, and a range that is shorter than what was asked for.
    for length in [4, 2] {
        let address = server(answer("206 Partial Content", length, "01")).await;
        for uri in uris(&address) {
            let error = node(&uri).read("a", Some(0..4)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Io, "{uri}: {error}");
        }
    }
}

#[tokio::test]
async fn only_a_service_with_folders_is_asked_to_delete_one() {
    let address = server(answer("403 Forbidden", 0, "")).await;
    for (uri, refused) in uris(&address).into_iter().zip([None, Some(ErrorKind::Refused), None]) {
        let deleted = node(&uri).delete_folder("a/").await;
        assert_eq!(deleted.err().map(|error| error.kind()), refused, "{uri}");
    }
    let address = server(answer("404 Not Found", 0, "")).await;
    node(&uris(&address)[1]).delete_folder("a/").await.unwrap();
    let error = node(&uris(&address)[1]).delete_folder("a").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Parameters, "{error}");
}

#[tokio::test]
async fn what_fails_for_a_while_is_asked_again() {
    let failure = answer("503 Service Unavailable", 0, "");
    for uri in 0..3 {
        for (retries, answered) in [(1, false), (2, true)] {
            let success = answer("206 Partial Content", 4, "0123");
            let address = server_in_turn(vec![failure.clone(), failure.clone(), success]).await;
            let node = node_with_retries(&uris(&address)[uri], retries);
            let read = node.read("a", Some(0..4)).await;
            assert_eq!(read.is_ok(), answered, "{read:?}");
        }
    }
}

/// A store may refuse all requests with a condition. That is no fault of the store; it only cannot
/// create a file unless there is one.
#[tokio::test]
async fn a_store_without_conditions_says_so() {
    let document =
        "<Error><Code>NotImplemented</Code><Message>A header is not implemented</Message></Error>";
    let address = server(answer("501 Not Implemented", document.len(), document)).await;
    let node = node(&format!("s3://bucket?endpoint=http://{address}"));
    let error = node.write("file", "bytes".into(), Mode::Create).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
}
