//! Uploads in parts, by bare requests.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::fixture::{Fixture, ask, body_of, code_of, get, open_to_all, put_behind};

/// Begins an upload of `key`, and returns its id.
pub async fn begin(open: &Fixture, key: &str) -> String {
    let begun = ask(open, &format!("POST /photos/{key}?uploads"), &[], "").await;
    let id = begun.split_once("<UploadId>").unwrap().1;
    id.split_once("</UploadId>").unwrap().0.to_owned()
}

/// Stores a part of an upload of `key`, and returns its ETag.
pub async fn put_part(open: &Fixture, key: &str, number: u32, id: &str, body: &str) -> String {
    let line = format!("PUT /photos/{key}?partNumber={number}&uploadId={id}");
    let answer = ask(open, &line, &[], body).await;
    answer.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap().to_owned()
}

/// Returns the document that completes an upload of these parts.
pub fn document_of(parts: &[(u32, String)]) -> String {
    let part = |(number, etag): &(u32, String)| {
        format!("<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>")
    };
    let parts: String = parts.iter().map(part).collect();
    format!("<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>")
}

#[tokio::test(flavor = "multi_thread")]
async fn uploads_have_the_checksum_that_is_stated() {
    let open = open_to_all().await;
    let id = begin(&open, "a").await;
    let line = format!("PUT /photos/a?partNumber=1&uploadId={id}");
    let part = ask(&open, &line, &["x-amz-checksum-crc32: NhCmhg=="], "hello").await;
    let etag = part.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap();
    let document = format!(
        "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{etag}</ETag></Part>\
         </CompleteMultipartUpload>"
    );
    let complete = async |headers: &[&str]| {
        ask(&open, &format!("POST /photos/a?uploadId={id}"), headers, &document).await
    };
    for (header, code) in [
        ("x-amz-checksum-crc32: AAAAAA==", "BadDigest"),
        ("x-amz-checksum-crc32: AAAAAA==-1", "BadDigest"),
        ("x-amz-checksum-crc32: gx1W0A==-2", "BadDigest"),
        ("x-amz-checksum-crc32c: mnG7TA==", "InvalidRequest"),
        ("x-amz-checksum-sha256: LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=", "InvalidRequest"),
    ] {
        let answer = complete(&[header]).await;
        assert_eq!(code_of(&answer), code, "{header}: {answer}");
    }
    let whole = ["x-amz-checksum-crc32: NhCmhg==", "x-amz-checksum-type: FULL_OBJECT"];
    let answer = complete(&whole).await;
    assert!(answer.contains("<ETag>"), "{answer}");
    assert_eq!(get(&open, "a").await, "hello");
    let late = ask(&open, &line, &[], "other").await;
    assert_eq!(code_of(&late), "NoSuchUpload");
    for (line, name) in [
        ("GET /photos?uploads&max-uploads=0".to_owned(), "max-uploads"),
        (format!("GET /photos/b?max-parts=0&uploadId={}", begin(&open, "b").await), "max-parts"),
    ] {
        let answer = ask(&open, &line, &[], "").await;
        assert!(answer.contains("<IsTruncated>false</IsTruncated>"), "{name}: {answer}");
    }
}

/// Whoever asks for as many parts as there are gets each one once, also if numbers were left out.
#[tokio::test(flavor = "multi_thread")]
async fn parts_are_counted() {
    let open = open_to_all().await;
    let id = begin(&open, "a").await;
    let second = put_part(&open, "a", 2, &id, &"x".repeat(5 << 20)).await;
    let third = put_part(&open, "a", 3, &id, "end").await;
    let document = document_of(&[(2, second), (3, third)]);
    let answer = ask(&open, &format!("POST /photos/a?uploadId={id}"), &[], &document).await;
    assert!(answer.contains("<ETag>"), "{answer}");
    for (number, range) in [(1, "bytes 0-5242879/"), (2, "bytes 5242880-"), (3, "bytes 5242880-")] {
        let answer = ask(&open, &format!("HEAD /photos/a?partNumber={number}"), &[], "").await;
        assert!(answer.contains(range), "{number}: {answer}");
        assert!(answer.contains("x-amz-mp-parts-count: 2\r\n"), "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_last_part_is_empty() {
    let open = open_to_all().await;
    let id = begin(&open, "a").await;
    let first = put_part(&open, "a", 1, &id, &"x".repeat(5 << 20)).await;
    let last = put_part(&open, "a", 3, &id, "").await;
    let document = document_of(&[(1, first), (3, last)]);
    let answer = ask(&open, &format!("POST /photos/a?uploadId={id}"), &[], &document).await;
    assert!(answer.contains("<ETag>"), "{answer}");
    for method in ["GET", "HEAD"] {
        let answer = ask(&open, &format!("{method} /photos/a?partNumber=3"), &[], "").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(
            answer.contains("content-length: 0\r\n") && body_of(&answer).is_empty(),
            "{answer}"
        );
        assert!(!answer.contains("content-range"), "{answer}");
    }
    let answer = ask(&open, "GET /photos/a?partNumber=1", &[], "").await;
    assert_eq!(body_of(&answer).len(), 5 << 20);
}

/// A client that goes after it has sent the document does not leave a half complete upload.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_begun_is_finished_without_its_client() {
    let open = open_to_all().await;
    for wait in [0, 2, 4, 8, 16] {
        let key = format!("film{wait}");
        let id = begin(&open, &key).await;
        let etag = put_part(&open, &key, 1, &id, "hello").await;
        let document = document_of(&[(1, etag)]);
        let length = document.len();
        let mut stream = TcpStream::connect(open.address).await.unwrap();
        let head = format!("POST /photos/{key}?uploadId={id} HTTP/1.1\r\nHost: x\r\n");
        let request = format!("{head}Content-Length: {length}\r\n\r\n{document}");
        stream.write_all(request.as_bytes()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(wait)).await;
        drop(stream);
        // The client comes back, and is told that it is complete.
        let answer = ask(&open, &format!("POST /photos/{key}?uploadId={id}"), &[], &document).await;
        assert!(answer.contains("<ETag>"), "after {wait} ms: {answer}");
        assert_eq!(get(&open, &key).await, "hello");
        // What the first request began may still be at its end.
        let mut tries = 100;
        let abort = loop {
            let abort = ask(&open, &format!("DELETE /photos/{key}?uploadId={id}"), &[], "").await;
            tries -= 1;
            if code_of(&abort) != "OperationAborted" || tries == 0 {
                break abort;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        assert_eq!(code_of(&abort), "NoSuchUpload", "{abort}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_two_complete_is_complete_for_both() {
    let open = open_to_all().await;
    for round in 0..5 {
        let key = format!("film{round}");
        let id = begin(&open, &key).await;
        // The older piece goes when the upload is complete.
        put_part(&open, &key, 1, &id, "other").await;
        let document = document_of(&[(1, put_part(&open, &key, 1, &id, "hello").await)]);
        let line = format!("POST /photos/{key}?uploadId={id}");
        let complete = async || ask(&open, &line, &["If-None-Match: *"], &document).await;
        let (one, other) = tokio::join!(complete(), complete());
        assert!(one.contains("<ETag>") && other.contains("<ETag>"), "{one}\n{other}");
        let parts = ask(&open, &format!("GET /photos/{key}?uploadId={id}"), &[], "").await;
        assert_eq!(code_of(&parts), "NoSuchUpload", "{parts}");
    }
    let id = begin(&open, "a%20b").await;
    let document = document_of(&[(1, put_part(&open, "a%20b", 1, &id, "hello").await)]);
    let answer = ask(&open, &format!("POST /photos/a%20b?uploadId={id}"), &[], &document).await;
    assert!(answer.contains("<Location>http://x/photos/a%20b</Location>"), "{answer}");
    for (number, code) in [(2, "InvalidPartNumber"), (0, "InvalidArgument")] {
        let line = format!("GET /photos/a%20b?partNumber={number}");
        assert_eq!(code_of(&ask(&open, &line, &[], "").await), code);
    }
    let long = format!("GET /photos/a?uploadId={}", "a".repeat(300));
    assert_eq!(code_of(&ask(&open, &long, &[], "").await), "NoSuchUpload");
}

/// An upload does not bring back a bucket that was removed since.
#[tokio::test(flavor = "multi_thread")]
async fn uploads_end_with_their_bucket() {
    let open = open_to_all().await;
    let id = begin(&open, "a").await;
    let document = document_of(&[(1, put_part(&open, "a", 1, &id, "hello").await)]);
    assert!(ask(&open, "DELETE /photos", &[], "").await.starts_with("HTTP/1.1 204"));
    let line = format!("POST /photos/a?uploadId={id}");
    assert_eq!(code_of(&ask(&open, &line, &[], &document).await), "NoSuchBucket");
    let line = format!("PUT /photos/a?partNumber=2&uploadId={id}");
    assert_eq!(code_of(&ask(&open, &line, &[], "more").await), "NoSuchBucket");
    assert_eq!(code_of(&ask(&open, "GET /photos", &[], "").await), "NoSuchBucket");
    // They do not come back with the bucket.
    ask(&open, "PUT /photos", &[], "").await;
    assert!(!ask(&open, "GET /photos?uploads", &[], "").await.contains("<Upload>"));
    assert_eq!(code_of(&ask(&open, &line, &[], "more").await), "NoSuchUpload");
}

/// A part is listed with its checksum, and completed with no other one.
#[tokio::test(flavor = "multi_thread")]
async fn checksums_of_parts_are_told_and_compared() {
    let open = open_to_all().await;
    let id = begin(&open, "a").await;
    let line = format!("PUT /photos/a?partNumber=7&uploadId={id}");
    let part = ask(&open, &line, &["x-amz-checksum-crc32: NhCmhg=="], "hello").await;
    let etag = part.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap();
    let listed = ask(&open, &format!("GET /photos/a?uploadId={id}"), &[], "").await;
    assert!(listed.contains("<ChecksumCRC32>NhCmhg==</ChecksumCRC32>"), "{listed}");
    let negative = format!("GET /photos/a?uploadId={id}&max-parts=-1");
    assert_eq!(code_of(&ask(&open, &negative, &[], "").await), "InvalidArgument");
    let line = format!("POST /photos/a?uploadId={id}");
    let with = |checksum: &str| {
        format!(
            "<CompleteMultipartUpload><Part><ETag>{etag}</ETag><PartNumber>7</PartNumber>{checksum}\
             </Part></CompleteMultipartUpload>"
        )
    };
    let sha1 = "<ChecksumSHA1>qvTGHdzF6KLavt4PO0gs2a6pQ00=</ChecksumSHA1>";
    assert_eq!(code_of(&ask(&open, &line, &[], &with(sha1)).await), "InvalidPart");
    let crc32 = "<ChecksumCRC32>NhCmhg==</ChecksumCRC32>";
    assert!(ask(&open, &line, &[], &with(crc32)).await.contains("<ETag>"));
    // Whoever asks for all parts, one after the other, finds the only one.
    let part = ask(&open, "GET /photos/a?partNumber=1", &[], "").await;
    assert!(part.starts_with("HTTP/1.1 206") && body_of(&part) == "hello", "{part}");
    let part =
        ask(&open, "HEAD /photos/a?partNumber=1", &["x-amz-checksum-mode: ENABLED"], "").await;
    assert!(part.contains("x-amz-mp-parts-count: 1\r\n"), "{part}");
    let bucket = ask(&open, "HEAD /photos", &[], "").await;
    assert!(bucket.contains("x-amz-bucket-region: us-east-1\r\n"), "{bucket}");
    let range = ["x-amz-checksum-mode: ENABLED", "Range: bytes=0-1"];
    assert!(!ask(&open, "HEAD /photos/a", &range, "").await.contains("x-amz-checksum"));
    let asked = ["x-amz-checksum-algorithm: CRC64NVME", "x-amz-checksum-type: COMPOSITE"];
    assert_eq!(code_of(&ask(&open, "POST /photos/b?uploads", &asked, "").await), "InvalidRequest");
}

/// The piece that was begun last counts, also if both are of the same second or the first one came
/// slowly.
#[tokio::test(flavor = "multi_thread")]
async fn of_a_part_the_piece_begun_last_counts() {
    let open = open_to_all().await;
    let id = begin(&open, "a").await;
    let line = format!("PUT /photos/a?partNumber=1&uploadId={id}");
    let slow = async |body: &str| {
        let mut stream = TcpStream::connect(open.address).await.unwrap();
        let head = format!("{line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n");
        let head = format!("{head}Content-Length: {}\r\n\r\n", body.len());
        stream.write_all(head.as_bytes()).await.unwrap();
        // The headers come late in a second, and the body early in the next one.
        tokio::time::sleep(Duration::from_millis(300)).await;
        stream.write_all(body.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    };
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    tokio::time::sleep(Duration::from_millis(1850 - u64::from(since.subsec_millis()))).await;
    slow("older").await;
    let newer = put_part(&open, "a", 1, &id, "newer").await;
    let parts = ask(&open, &format!("GET /photos/a?uploadId={id}"), &[], "").await;
    assert!(parts.contains(newer.trim_matches('"')), "{newer}: {parts}");
}

#[tokio::test(flavor = "multi_thread")]
async fn buckets_and_uploads_are_listed_as_asked() {
    let open = open_to_all().await;
    for bucket in ["films", "music", "pictures"] {
        put_behind(&open, &format!("{bucket}/%")).await;
    }
    let buckets = async |query: &str| {
        let answer = ask(&open, &format!("GET /?{query}"), &[], "").await;
        let names = answer.split("<Name>").skip(1).map(|rest| rest.split('<').next().unwrap());
        (names.map(str::to_owned).collect::<Vec<_>>(), answer.clone())
    };
    assert_eq!(buckets("prefix=p&max-buckets=5").await.0, ["photos", "pictures"]);
    let (first, answer) = buckets("max-buckets=3").await;
    assert_eq!(first, ["films", "music", "photos"]);
    let token = answer.split_once("<ContinuationToken>").unwrap().1.split_once('<').unwrap().0;
    let (rest, answer) = buckets(&format!("max-buckets=3&continuation-token={token}")).await;
    assert_eq!(rest, ["pictures"]);
    assert!(!answer.contains("<ContinuationToken>"), "{answer}");

    for key in ["d/1", "d/2", "e%20f", "g"] {
        begin(&open, key).await;
    }
    let uploads =
        async |query: &str| ask(&open, &format!("GET /photos?uploads&{query}"), &[], "").await;
    let answer = uploads("delimiter=/&encoding-type=url").await;
    assert!(answer.contains("<CommonPrefixes><Prefix>d/</Prefix></CommonPrefixes>"), "{answer}");
    assert_eq!(answer.matches("<Upload>").count(), 2, "{answer}");
    assert!(answer.contains("<Key>e+f</Key>"), "{answer}");
    let answer = uploads("delimiter=/&max-uploads=1").await;
    assert!(answer.contains("<NextKeyMarker>d/</NextKeyMarker>"), "{answer}");
    let answer = uploads("delimiter=/&key-marker=d/").await;
    assert!(!answer.contains("CommonPrefixes") && answer.contains("<Key>g</Key>"), "{answer}");
}

/// The checksums of an object in parts follow from those of its parts: composite ones, or those of
/// all bytes if the upload was begun so.
#[tokio::test(flavor = "multi_thread")]
async fn objects_in_parts_have_checksums() {
    let open = open_to_all().await;
    let whole = "x-amz-checksum-type: FULL_OBJECT";
    let of = |line: &str, name: &str| {
        let value = line.split_once(&format!("<{name}>")).map(|(_, rest)| rest);
        value.and_then(|rest| rest.split_once('<')).map(|(value, _)| value.to_owned())
    };
    for (key, asked, checksum, kind) in [
        ("parts", &[][..], "FKTmaw==-1", "COMPOSITE"),
        ("whole", &[whole], "NhCmhg==", "FULL_OBJECT"),
    ] {
        let begun = ask(&open, &format!("POST /photos/{key}?uploads"), asked, "").await;
        let id = of(&begun, "UploadId").unwrap();
        let line = format!("PUT /photos/{key}?partNumber=1&uploadId={id}");
        let part = ask(&open, &line, &["x-amz-checksum-crc32: NhCmhg=="], "hello").await;
        let etag = part.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap().to_owned();
        let line = format!("POST /photos/{key}?uploadId={id}");
        // The client asks again: it is told the same.
        for _ in 0..2 {
            let done = ask(&open, &line, &[], &document_of(&[(1, etag.clone())])).await;
            assert_eq!(of(&done, "ChecksumCRC32").as_deref(), Some(checksum), "{done}");
            assert_eq!(of(&done, "ChecksumType").as_deref(), Some(kind), "{done}");
        }
        for method in ["GET", "HEAD"] {
            let line = format!("{method} /photos/{key}");
            let answer = ask(&open, &line, &["x-amz-checksum-mode: ENABLED"], "").await;
            assert!(answer.contains(&format!("x-amz-checksum-crc32: {checksum}\r\n")), "{answer}");
            assert!(answer.contains(&format!("x-amz-checksum-type: {kind}\r\n")), "{answer}");
            assert!(!ask(&open, &line, &[], "").await.contains("x-amz-checksum"));
        }
        // A copy is in one piece. It keeps what is a checksum of its bytes.
        let source = format!("x-amz-copy-source: /photos/{key}");
        ask(&open, "PUT /photos/copy", &[&source], "").await;
        let copy = ask(&open, "HEAD /photos/copy", &["x-amz-checksum-mode: ENABLED"], "").await;
        assert_eq!(copy.contains("x-amz-checksum-crc32: NhCmhg=="), kind == "FULL_OBJECT");
        assert_eq!(copy.contains("x-amz-checksum"), kind == "FULL_OBJECT", "{copy}");
        // One onto itself keeps its parts, and all checksums.
        let other = [&source, "x-amz-metadata-directive: REPLACE", "x-amz-meta-a: b"];
        ask(&open, &format!("PUT /photos/{key}"), &other, "").await;
        let line = format!("HEAD /photos/{key}");
        let copy = ask(&open, &line, &["x-amz-checksum-mode: ENABLED"], "").await;
        assert!(copy.contains("x-amz-meta-a: b\r\n"), "{copy}");
        assert!(copy.contains(&format!("x-amz-checksum-crc32: {checksum}\r\n")), "{copy}");
        assert!(copy.contains(&format!("x-amz-checksum-type: {kind}\r\n")), "{copy}");
    }
}
