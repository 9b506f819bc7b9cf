//! What programs that speak S3 do through a gateway, by the client of OpenDAL and by bare requests.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::TryStreamExt;
use futures::future::join_all;
use opendal::ErrorKind;
use paritas_gateway::Keys;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::fixture::{
    Fixture, ask, code_of, content, get, make_bucket, open_to_all, put_behind, serve,
};

#[tokio::test(flavor = "multi_thread")]
async fn objects_are_put_read_listed_and_removed() {
    let fixture = Fixture::new().await;
    let client = fixture.client("photos", true);
    let error = client.write("a", "x").await.unwrap_err().to_string();
    assert!(error.contains("NoSuchBucket"), "{error}");
    make_bucket(&fixture, "photos").await;
    let bytes = content(700_001);
    for (key, length) in [("2026/a b.jpg", bytes.len()), ("2026/ä", 5), ("top", 0)] {
        client.write_with(key, bytes[..length].to_vec()).content_type("image/jpeg").await.unwrap();
        assert!(client.read(key).await.unwrap().to_vec() == bytes[..length], "{key}");
    }
    client.create_dir("empty/").await.unwrap();
    let about = client.stat("2026/a b.jpg").await.unwrap();
    assert_eq!((about.content_length(), about.content_type()), (700_001, Some("image/jpeg")));
    // What the client sees is what the volume has, with losses as well.
    for disk in [0, 3] {
        std::fs::rename(fixture.disk(disk), fixture.root.path().join(format!("away{disk}")))
            .unwrap();
    }
    let part = client.read_with("2026/a b.jpg").range(65_530..400_000).await.unwrap();
    assert!(part.to_vec() == bytes[65_530..400_000]);
    for disk in [0, 3] {
        std::fs::rename(fixture.root.path().join(format!("away{disk}")), fixture.disk(disk))
            .unwrap();
    }
    let listed: BTreeMap<String, u64> = client
        .lister_with("")
        .recursive(true)
        .await
        .unwrap()
        .map_ok(|entry| (entry.path().to_owned(), entry.metadata().content_length()))
        .try_collect()
        .await
        .unwrap();
    let keys: Vec<&str> = listed.keys().map(String::as_str).collect();
    assert_eq!(keys, ["2026/a b.jpg", "2026/ä", "empty/", "top"]);
    assert_eq!(listed["2026/a b.jpg"], 700_001);
    let mut folders: Vec<String> = client
        .lister("")
        .await
        .unwrap()
        .map_ok(|entry| entry.path().to_owned())
        .try_collect()
        .await
        .unwrap();
    folders.sort();
    assert_eq!(folders, ["2026/", "empty/", "top"]);
    client.copy("2026/a b.jpg", "2027/copy").await.unwrap();
    assert!(client.read("2027/copy").await.unwrap().to_vec() == bytes);
    assert_eq!(client.stat("2027/copy").await.unwrap().content_type(), Some("image/jpeg"));
    client.delete_iter(["2026/ä", "2026/a b.jpg", "not there"]).await.unwrap();
    assert_eq!(client.stat("2026/a b.jpg").await.unwrap_err().kind(), ErrorKind::NotFound);
}

/// The pages of a listing show the bucket as of the first page, and what this gateway changed
/// since.
#[tokio::test(flavor = "multi_thread")]
async fn a_listing_goes_on_where_it_ended() {
    use futures::TryStreamExt;
    let fixture = Fixture::new().await;
    make_bucket(&fixture, "photos").await;
    let client = fixture.client("photos", true);
    for key in ["a", "b", "d/1", "d/2", "e", "g"] {
        client.write(key, content(10)).await.unwrap();
    }
    for (is_recursive, expected) in
        [(true, &["b2", "d/1", "d/2", "f", "g"][..]), (false, &["b2", "d/", "f", "g"])]
    {
        client.write("e", content(10)).await.unwrap();
        client.delete("b2").await.unwrap();
        client.delete("f").await.unwrap();
        let mut lister = client.lister_with("/").limit(2).recursive(is_recursive).await.unwrap();
        let mut next =
            async || lister.try_next().await.unwrap().map(|entry| entry.path().to_owned());
        assert_eq!(next().await.as_deref(), Some("a"));
        assert_eq!(next().await.as_deref(), Some("b"));
        client.write("b2", content(10)).await.unwrap();
        client.write("f", content(20)).await.unwrap();
        client.delete("e").await.unwrap();
        put_behind(&fixture, "photos/c").await;
        let mut rest = Vec::new();
        while let Some(path) = next().await {
            rest.push(path);
        }
        // The client tells the folders of a page first.
        rest.sort();
        assert_eq!(rest, expected);
        let all = client.list_with("/").limit(2).recursive(true).await.unwrap();
        assert!(all.iter().any(|entry| entry.path() == "c"), "a new listing shows all");
        client.delete("c").await.unwrap();
    }
}

/// A body that breaks off is the client's fault, and is told as such.
#[tokio::test(flavor = "multi_thread")]
async fn a_broken_document_is_refused() {
    let mut fixture = Fixture::new().await;
    make_bucket(&fixture, "photos").await;
    fixture.address = serve(Arc::clone(&fixture.volume), Keys::open()).await;
    let answer = fixture
        .bare("POST /photos?delete HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n")
        .await;
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    assert!(answer.contains("<Code>IncompleteBody</Code>"), "{answer}");
}

/// Connections that say nothing, or do not end the headers of a request, are closed.
#[tokio::test(start_paused = true)]
async fn silent_connections_are_closed() {
    let fixture = Fixture::new().await;
    for beginning in ["", "GET / HTTP/1.1\r\nhost: a\r\nx:", "PRI * HTTP/2.0\r\n"] {
        fixture.bare(beginning).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn large_objects_come_in_parts() {
    let fixture = Fixture::new().await;
    make_bucket(&fixture, "photos").await;
    let client = fixture.client("photos", true);
    let bytes = content((12 << 20) + 77);
    let mut writer = client.writer_with("film").chunk(5 << 20).concurrent(3).await.unwrap();
    for chunk in bytes.chunks(1 << 20) {
        writer.write(chunk.to_vec()).await.unwrap();
    }
    writer.close().await.unwrap();
    let etag = client.stat("film").await.unwrap().etag().unwrap().to_owned();
    assert!(etag.ends_with("-3\""), "{etag}");
    assert!(client.read("film").await.unwrap().to_vec() == bytes);
    let range = (5 << 20) - 9..(10 << 20) + 9;
    let part = client.read_with("film").range(range.start as u64..range.end as u64).await.unwrap();
    assert!(part.to_vec() == bytes[range]);
    let pieces = async || fixture.volume.list(".paritas/").await.unwrap().objects.len();
    assert_eq!(pieces().await, 4, "three pieces, and the record");
    client.write("film", "short").await.unwrap();
    assert_eq!(pieces().await, 0, "they went with their object");
}

#[tokio::test(flavor = "multi_thread")]
async fn writers_may_ask_for_what_is_there() {
    let fixture = Fixture::new().await;
    make_bucket(&fixture, "photos").await;
    let client = fixture.client("photos", true);
    client.write_with("once", "a").if_not_exists(true).await.unwrap();
    let again = client.write_with("once", "b").if_not_exists(true).await.unwrap_err();
    assert_eq!(again.kind(), ErrorKind::ConditionNotMatch);
    let etag = client.stat("once").await.unwrap().etag().unwrap().to_owned();
    assert_eq!(etag, "\"0cc175b9c0f1b6a831c399e269772661\"", "the MD5 of a");
    client.write_with("once", "c").if_match(&etag).await.unwrap();
    let stale = client.write_with("once", "d").if_match(&etag).await.unwrap_err();
    assert_eq!(stale.kind(), ErrorKind::ConditionNotMatch);
    let unchanged = client.read_with("once").if_match(&etag).await.unwrap_err();
    assert_eq!(unchanged.kind(), ErrorKind::ConditionNotMatch);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_open_what_they_say() {
    let fixture = Fixture::new().await;
    make_bucket(&fixture, "photos").await;
    make_bucket(&fixture, "mail").await;
    let owner = fixture.client("photos", true);
    owner.write("a", "x").await.unwrap();
    let reader = fixture.client("photos", false);
    assert_eq!(reader.read("a").await.unwrap().to_vec(), b"x");
    for refused in [
        reader.write("a", "y").await.map(drop),
        reader.delete("a").await,
        reader.copy("a", "b").await.map(drop),
        fixture.client("mail", false).read("a").await.map(drop),
    ] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::PermissionDenied);
    }
    let head = "Host: x\r\nConnection: close\r\n\r\n";
    let bare = fixture.bare(&format!("GET /photos/a HTTP/1.1\r\n{head}")).await;
    assert!(bare.starts_with("HTTP/1.1 403") && bare.contains("<Code>AccessDenied"), "{bare}");
    let health = fixture.bare(&format!("GET /-/health HTTP/1.1\r\n{head}")).await;
    assert!(health.starts_with("HTTP/1.1 200") && health.ends_with("ok\n"), "{health}");
    let page = fixture.bare(&format!("GET /-/ HTTP/1.1\r\n{head}")).await;
    assert!(page.contains("any 2 may be lost") && page.contains("<b>disk4</b> in use"), "{page}");
    assert!(page.contains("B free, answers in "), "{page}");
    assert!(page.contains("requests, ") && page.contains("<dd>not begun</dd>"), "{page}");
    let metrics = fixture.bare(&format!("GET /-/metrics HTTP/1.1\r\n{head}")).await;
    assert!(metrics.contains("paritas_gateway_node_up{node=\"disk0\"} 1"), "{metrics}");
    assert!(metrics.contains("paritas_gateway_node_free_bytes{node=\"disk0\"} "), "{metrics}");
    assert!(metrics.contains("paritas_gateway_node_answer_seconds{node=\"disk0\"} "), "{metrics}");
    assert!(metrics.contains("paritas_gateway_requests_total{method=\"GET\",status=\"403\"}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_breaks_off_is_not_stored() {
    let fixture = Fixture::new().await;
    make_bucket(&fixture, "photos").await;
    let address = serve(Arc::clone(&fixture.volume), Keys::open()).await;
    for (length, md5) in [("10000000", ""), ("7", "Content-MD5: 1B2M2Y8AsgTpgAmY7PhCfg==\r\n")] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = format!(
            "PUT /photos/a HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\nConnection: close\r\n{md5}\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(b"content").await.unwrap();
        if md5.is_empty() {
            stream.shutdown().await.unwrap();
        }
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer).await;
        assert!(!answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(md5.is_empty() || answer.contains("BadDigest"), "{answer}");
    }
    assert_eq!(fixture.volume.list("photos/").await.unwrap().objects.len(), 1, "the bucket alone");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_crosses_from_one_bucket_to_another() {
    let fixture = Fixture::new().await;
    make_bucket(&fixture, "photos").await;
    make_bucket(&fixture, "mail").await;
    fixture.client("mail", true).write("secret", "x").await.unwrap();
    let writer = fixture.client_with("photos", "writer", "00112233445566778899");
    writer.write("own", "y").await.unwrap();
    for key in ["../mail/secret", "/mail/secret", "a/../../mail/secret"] {
        let kind = writer.read(key).await.unwrap_err().kind();
        assert!(
            [ErrorKind::NotFound, ErrorKind::PermissionDenied].contains(&kind),
            "{key}: {kind}"
        );
    }
    let address = serve(Arc::clone(&fixture.volume), Keys::open()).await;
    let open = Fixture { root: tempfile::tempdir().unwrap(), address, volume: fixture.volume };
    let copy = "x-amz-copy-source: /mail/secret\r\nContent-Length: 0\r\n";
    let head = "Host: x\r\nConnection: close\r\n";
    let allowed = open.bare(&format!("PUT /photos/c HTTP/1.1\r\n{head}{copy}\r\n")).await;
    assert!(allowed.starts_with("HTTP/1.1 200"), "{allowed}");
    // A malformed or forbidden request is refused, and the next one is answered.
    let long = format!("/photos/{}", "k".repeat(1100));
    for (method, path, more) in [
        ("GET", "/photos/%00", ""),
        ("GET", "/photos/%ff%fe", ""),
        ("PUT", long.as_str(), "Content-Length: 0\r\n"),
        ("PUT", "/../etc", "Content-Length: 0\r\n"),
        ("PUT", "/.paritas/x", "Content-Length: 0\r\n"),
        ("GET", "/photos/own", "Authorization: AWS4-HMAC-SHA256 Credential=a\r\n"),
        ("GET", "/photos/own", "Authorization: AWS owner:c2lnbg==\r\n"),
        ("GET", "/photos/own", "Range: bytes=9-\r\n"),
        ("PUT", "/photos/own?partNumber=1&uploadId=..", "Content-Length: 0\r\n"),
        ("POST", "/photos/own?uploadId=x", "Content-Length: 9\r\n\r\n<not xml>"),
        ("BREW", "/photos", ""),
    ] {
        let answer = open.bare(&format!("{method} {path} HTTP/1.1\r\n{head}{more}\r\n")).await;
        let status = answer.split(' ').nth(1).unwrap_or_default();
        assert!(status.starts_with('4') || status == "501", "{method} {path} {more}: {answer}");
    }
    let health = open.bare(&format!("GET /-/health HTTP/1.1\r\n{head}\r\n")).await;
    assert!(health.starts_with("HTTP/1.1 200"), "{health}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_needs_a_key_for_its_source() {
    let fixture = Fixture::new().await;
    make_bucket(&fixture, "photos").await;
    make_bucket(&fixture, "mail").await;
    fixture.client("mail", true).write("secret", "x").await.unwrap();
    let store = Keys::read(&fixture.root.path().join("keys.toml")).unwrap();
    assert!(store.opens(Some("owner"), "mail") && store.opens(Some("writer"), "photos"));
    assert!(!store.opens(Some("writer"), "mail") && !store.opens(None, "photos"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_offered_changes_nothing() {
    let open = open_to_all().await;
    assert!(ask(&open, "PUT /photos/a", &[], "first").await.starts_with("HTTP/1.1 200"));
    for (line, header, code) in [
        ("DELETE /photos/a?acl", "", "NotImplemented"),
        ("DELETE /photos/a?versionId=7", "", "NoSuchVersion"),
        ("DELETE /photos?logging", "", "NotImplemented"),
        ("PUT /photos/a?uploadId=0", "", "InvalidArgument"),
        ("PUT /photos/a", "x-amz-object-lock-mode: COMPLIANCE", "NotImplemented"),
        ("PUT /photos/a", "x-amz-server-side-encryption: AES256", "NotImplemented"),
        ("PUT /photos/a", "x-amz-acl: public-read", "NotImplemented"),
        ("DELETE /photos/a", "If-Match: \"0\"", "PreconditionFailed"),
        ("PUT /photos/a", "If-None-Match: *", "PreconditionFailed"),
    ] {
        let headers: Vec<&str> = Some(header).filter(|text| !text.is_empty()).into_iter().collect();
        let answer = ask(&open, line, &headers, "").await;
        assert!(answer.contains(&format!("<Code>{code}</Code>")), "{line} {header}: {answer}");
    }
    assert!(ask(&open, "PUT /photos/b", &[], "other").await.starts_with("HTTP/1.1 200"));
    for header in ["If-None-Match: *", "If-Match: \"0\""] {
        let headers = ["x-amz-copy-source: /photos/b", header];
        let answer = ask(&open, "PUT /photos/a", &headers, "").await;
        assert!(answer.contains("<Code>PreconditionFailed</Code>"), "{header}: {answer}");
    }
    assert!(ask(&open, "GET /photos/a", &[], "").await.ends_with("\r\n\r\nfirst"));
    let delete = "<Delete><Object><Key>a</Key><ETag>\"0\"</ETag></Object></Delete>";
    let answer = ask(&open, "POST /photos?delete", &[], delete).await;
    assert!(answer.contains("<Code>PreconditionFailed</Code>"), "{answer}");
    assert!(ask(&open, "GET /photos/a", &[], "").await.ends_with("\r\n\r\nfirst"));
}

/// A condition must hold when the body has come, not only when the request begins.
#[tokio::test(flavor = "multi_thread")]
async fn conditions_are_judged_when_the_body_has_come() {
    let open = open_to_all().await;
    for (condition, now, code) in [
        ("If-None-Match: *", "other", "PreconditionFailed"),
        ("If-Match: \"8b04d5e3775d298e78455efc5ca404d5\"", "other", "PreconditionFailed"),
        ("If-Match: \"8b04d5e3775d298e78455efc5ca404d5\"", "first", "ConditionalRequestConflict"),
        ("If-Match: *", "other", "ConditionalRequestConflict"),
    ] {
        let begins_with = if condition == "If-None-Match: *" { None } else { Some("first") };
        ask(&open, "DELETE /photos/a", &[], "").await;
        if let Some(body) = begins_with {
            ask(&open, "PUT /photos/a", &[], body).await;
        }
        let mut late = TcpStream::connect(open.address).await.unwrap();
        let head = format!(
            "PUT /photos/a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{condition}\r\n\
             Content-Length: 4\r\nExpect: 100-continue\r\n\r\n"
        );
        late.write_all(head.as_bytes()).await.unwrap();
        // The gateway wants the body once the conditions hold.
        let mut answer = vec![0; 25];
        late.read_exact(&mut answer).await.unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 100 Continue"), "{condition}");
        ask(&open, "PUT /photos/a", &[], now).await;
        late.write_all(b"late").await.unwrap();
        let mut answer = String::new();
        late.read_to_string(&mut answer).await.unwrap();
        assert_eq!(code_of(&answer), code, "{condition}, now {now}: {answer}");
        assert_eq!(get(&open, "a").await, now);
    }
}

/// Of several clients that want to write a new object through one gateway, one does.
#[tokio::test(flavor = "multi_thread")]
async fn one_of_many_writes_a_new_object() {
    let open = open_to_all().await;
    for key in ["a", "b", "c"] {
        let bodies: Vec<String> = (0..8).map(|number| format!("{key}{number}")).collect();
        let line = format!("PUT /photos/{key}");
        let put = async |body: &String| ask(&open, &line, &["If-None-Match: *"], body).await;
        let answers = join_all(bodies.iter().map(put)).await;
        let won: Vec<usize> =
            (0..8).filter(|&at| answers[at].starts_with("HTTP/1.1 200")).collect();
        assert_eq!(won.len(), 1, "{answers:?}");
        let lost = answers.iter().filter(|answer| code_of(answer) == "PreconditionFailed");
        assert_eq!(lost.count(), 7, "{answers:?}");
        assert_eq!(get(&open, key).await, bodies[won[0]]);
    }
}

/// Tags stand beside the bytes: giving some changes neither ETag nor time nor checksum.
#[tokio::test(flavor = "multi_thread")]
async fn tags_change_nothing_else() {
    let open = open_to_all().await;
    let checksum = "x-amz-checksum-crc32: NhCmhg==";
    assert!(ask(&open, "PUT /photos/a", &[checksum], "hello").await.starts_with("HTTP/1.1 200"));
    let about = async || {
        let answer = ask(&open, "HEAD /photos/a", &["x-amz-checksum-mode: ENABLED"], "").await;
        let is_kept = |line: &&str| {
            ["etag", "last-modified", "x-amz-checksum"].iter().any(|name| line.starts_with(name))
        };
        answer.lines().filter(is_kept).map(str::to_owned).collect::<Vec<_>>()
    };
    let before = about().await;
    assert_eq!(before.len(), 4, "{before:?}");
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    let tags = "<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>";
    let answer = ask(&open, "PUT /photos/a?tagging", &[], tags).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(about().await, before);
    let answer = ask(&open, "GET /photos/a?tagging", &[], "").await;
    assert!(answer.contains("<Key>a</Key><Value>b</Value>"), "{answer}");
    assert!(ask(&open, "GET /photos/a", &[], "").await.ends_with("\r\n\r\nhello"));
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_get_what_they_do_not_have() {
    let open = open_to_all().await;
    let caching = ["Cache-Control: max-age=60", "Expires: Wed, 21 Oct 2026 07:28:00 GMT"];
    let stored = ask(&open, "PUT /photos/a", &caching, "hello").await;
    let etag = stored.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap();
    let get = async |condition: &str| {
        let if_range = format!("If-Range: {condition}");
        ask(&open, "GET /photos/a", &["Range: bytes=1-2", &if_range], "").await
    };
    let part = get(etag).await;
    assert!(part.starts_with("HTTP/1.1 206") && part.ends_with("\r\n\r\nel"), "{part}");
    for other in ["\"0\"", "Thu, 26 Nov 2020 10:00:00 GMT"] {
        let whole = get(other).await;
        assert!(whole.starts_with("HTTP/1.1 200") && whole.ends_with("\r\n\r\nhello"), "{whole}");
    }
    let had = ask(&open, "GET /photos/a", &[&format!("If-None-Match: {etag}")], "").await;
    assert!(had.starts_with("HTTP/1.1 304") && had.contains(&format!("etag: {etag}")), "{had}");
    for header in ["cache-control: max-age=60", "expires: Wed, 21 Oct 2026 07:28:00 GMT"] {
        assert!(had.contains(&format!("{header}\r\n")), "{had}");
    }
    assert!(ask(&open, "PUT /photos/empty", &[], "").await.starts_with("HTTP/1.1 200"));
    let empty = ask(&open, "GET /photos/empty", &["Range: bytes=-5"], "").await;
    assert!(empty.starts_with("HTTP/1.1 416"), "{empty}");
}
