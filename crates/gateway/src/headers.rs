//! What the headers of a request say of its body.

use http::header::{AUTHORIZATION, CONTENT_ENCODING};
use http::uri::{Authority, Scheme};
use http::{HeaderMap, HeaderValue, Method};
use s3s::S3Request;
use s3s::dto::Checksum;

use crate::judge::ExpectedBody;

/// The header of the number of bytes without the framing.
const DECODED_LENGTH: &str = "x-amz-decoded-content-length";

/// How the framing of a body is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    None,
    /// The adapter removes it.
    Signed,
    /// The adapter does not see it.
    Unsigned,
}

impl Framing {
    /// Returns how a request frames its body.
    pub fn of(method: &Method, headers: &HeaderMap) -> Self {
        match headers.contains_key(AUTHORIZATION) {
            _ if ![Method::PUT, Method::POST].contains(method) => Self::None,
            true if is_streaming(headers) => Self::Signed,
            false if is_streaming(headers) || is_chunked(headers) => Self::Unsigned,
            _ => Self::None,
        }
    }
}

/// Whether a request says that its body comes in chunks of their own signatures or checksums.
fn is_streaming(headers: &HeaderMap) -> bool {
    let sha256 = headers.get("x-amz-content-sha256").map(HeaderValue::as_bytes);
    sha256.is_some_and(|text| text.starts_with(b"STREAMING-"))
}

/// Whether `aws-chunked` is among the encodings of a body.
pub fn is_chunked(headers: &HeaderMap) -> bool {
    let texts = headers.get_all(CONTENT_ENCODING).into_iter();
    let mut names = texts.filter_map(|text| text.to_str().ok()).flat_map(|text| text.split(','));
    names.any(|name| name.trim().eq_ignore_ascii_case("aws-chunked"))
}

/// Returns the number of bytes that a request states for its body without the framing.
pub fn decoded_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(DECODED_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Returns the number of bytes that a request states for its body. A body that is not framed has
/// the length of the request, whatever is said of it without the framing.
pub fn stated_length(headers: &HeaderMap, content_length: Option<i64>) -> Option<u64> {
    let is_framed = is_streaming(headers) || is_chunked(headers);
    let decoded = decoded_length(headers).filter(|_| is_framed);
    decoded.or(content_length.and_then(|length| u64::try_from(length).ok()))
}

/// Returns the names of the headers that come after the body.
pub fn trailing(headers: &HeaderMap) -> Vec<String> {
    let texts = headers.get_all("x-amz-trailer").into_iter();
    let names = texts.filter_map(|text| text.to_str().ok()).flat_map(|text| text.split(','));
    let names = names.map(|name| name.trim().to_ascii_lowercase());
    names.filter(|name| !name.is_empty()).collect()
}

/// Returns what a request says of a body that is a document. What the document of a complete upload
/// has as checksum is that of the object.
pub fn expected_document(
    method: &Method,
    query: Option<&str>,
    headers: &HeaderMap,
) -> Option<ExpectedBody> {
    let has = |wanted: &str| {
        let mut pairs = url::form_urlencoded::parse(query.unwrap_or_default().as_bytes());
        pairs.any(|(name, _)| name == wanted)
    };
    let is_document = method == Method::POST || (method == Method::PUT && has("tagging"));
    if !is_document {
        return None;
    }
    let text = |name: &str| Some(headers.get(name)?.to_str().ok()?.to_owned());
    let mut expected = ExpectedBody { md5: text("content-md5"), ..ExpectedBody::default() };
    if !has("uploadId") {
        expected.trailing = trailing(headers);
        expected.checksum = Checksum {
            checksum_crc32: text("x-amz-checksum-crc32"),
            checksum_crc32c: text("x-amz-checksum-crc32c"),
            checksum_crc64nvme: text("x-amz-checksum-crc64nvme"),
            checksum_sha1: text("x-amz-checksum-sha1"),
            checksum_sha256: text("x-amz-checksum-sha256"),
            checksum_type: None,
        };
    }
    Some(expected)
}

/// Returns the address to which a request was sent, without its query. A proxy may say that it took
/// the request by another scheme.
pub fn address_of<T>(request: &S3Request<T>) -> String {
    let header = |name: &str| request.headers.get(name)?.to_str().ok();
    let scheme = request.extensions.get::<Scheme>().map_or("http", Scheme::as_str);
    let forwarded = header("x-forwarded-proto").filter(|name| ["http", "https"].contains(name));
    let scheme = forwarded.unwrap_or(scheme);
    let host = request.uri.authority().map(Authority::as_str).or(header("host"));
    format!("{scheme}://{}{}", host.unwrap_or("localhost"), request.uri.path())
}
