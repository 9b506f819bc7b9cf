//! What requests get whose headers are signed, with bodies that are not what the signature says.

use std::time::SystemTime;

use ring::{digest, hmac};
use s3s::dto::{Timestamp, TimestampFormat};

use crate::fixture::{Fixture, make_bucket};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn sha256(text: &str) -> String {
    hex(digest::digest(&digest::SHA256, text.as_bytes()).as_ref())
}

/// Returns the time as signatures have it.
fn now() -> String {
    let mut text = Vec::new();
    Timestamp::from(SystemTime::now()).format(TimestampFormat::DateTime, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap().replace(['-', ':'], "");
    format!("{}Z", &text[..15])
}

/// Puts an object with the key of the owner. `sha256` is what the signature says of the body.
async fn put(fixture: &Fixture, sha256: &str, headers: &[(&str, &str)], body: &str) -> String {
    request(fixture, "PUT", sha256, headers, body).await
}

async fn request(
    fixture: &Fixture,
    method: &str,
    body_sha256: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> String {
    let time = now();
    let mut headers = headers.to_vec();
    headers.extend([("host", "x"), ("x-amz-content-sha256", body_sha256), ("x-amz-date", &time)]);
    headers.sort_unstable();
    let names = headers.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");
    let lines: String = headers.iter().map(|(name, text)| format!("{name}:{text}\n")).collect();
    let canonical = format!("{method}\n/photos/a\n\n{lines}\n{names}\n{body_sha256}");
    let scope = format!("{}/us-east-1/s3/aws4_request", &time[..8]);
    let text = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{}", sha256(&canonical));
    let key = scope.split('/').fold(b"AWS40123456789abcdef".to_vec(), |key, part| {
        hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), part.as_bytes()).as_ref().to_vec()
    });
    let signature = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), text.as_bytes());
    let mut request = format!(
        "{method} /photos/a HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\nAuthorization: \
         AWS4-HMAC-SHA256 Credential=owner/{scope}, SignedHeaders={names}, Signature={}\r\n",
        body.len(),
        hex(signature.as_ref())
    );
    request.extend(headers.iter().map(|(name, text)| format!("{name}: {text}\r\n")));
    fixture.bare(&format!("{request}\r\n{body}")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_are_what_the_signature_says() {
    let fixture = Fixture::new().await;
    make_bucket(&fixture, "photos").await;
    let framed = [
        ("content-encoding", "aws-chunked"),
        ("x-amz-decoded-content-length", "5"),
        ("x-amz-trailer", "x-amz-checksum-crc32c"),
    ];
    let streaming = "STREAMING-UNSIGNED-PAYLOAD-TRAILER";
    for (sha256, headers, body, code) in [
        (&*sha256("other"), &[][..], "hello", "XAmzContentSHA256Mismatch"),
        (streaming, &framed, "5\r\nhello\r\n0\r\n\r\n", "MalformedTrailerError"),
        (streaming, &framed, "5\r\nhello\r\n", "IncompleteBody"),
        (streaming, &framed[..2], "5\r\nhello\r\n", "InvalidRequest"),
        ("UNSIGNED-PAYLOAD", &framed, "5\r\nhello\r\n0\r\n\r\n", "NotImplemented"),
    ] {
        let answer = put(&fixture, sha256, headers, body).await;
        assert!(answer.contains(&format!("<Code>{code}</Code>")), "{sha256} {body}: {answer}");
    }
    let listed = fixture.volume.list("photos/").await.unwrap();
    assert_eq!(listed.objects.len(), 1, "the bucket alone");
    let whole = "5\r\nhello\r\n0\r\nx-amz-checksum-crc32c:mnG7TA==\r\n\r\n";
    let answer = put(&fixture, streaming, &framed, whole).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains("x-amz-checksum-crc32c: mnG7TA=="), "{answer}");
    assert!(!answer.contains("x-amz-checksum-crc32:"), "{answer}");
    let answer = request(&fixture, "GET", &sha256(""), &[], "").await;
    assert!(answer.ends_with("\r\n\r\nhello"), "{answer}");
}
