//! What a request asks for beyond its operation. The adapter passes over queries and headers that
//! it does not know. An operation without what was asked for is another operation: an object that
//! should be locked would not be, and `DELETE /bucket/key?acl` would remove the object. So whatever
//! is not offered is refused here, before anything is done.

use http::header::{
    AUTHORIZATION, CONTENT_TYPE, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_UNMODIFIED_SINCE, RANGE,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use s3s::dto::{Range, Timestamp, TimestampFormat};
use s3s::path::S3Path;
use s3s::{S3Error, S3Result, s3_error};

use crate::headers::{Framing, decoded_length, is_chunked, trailing};

/// What a request is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestSubject {
    Buckets,
    Bucket,
    Object,
}

impl RequestSubject {
    /// Returns what a request to this path is about.
    pub fn of(path: &S3Path) -> Self {
        match path {
            S3Path::Root => Self::Buckets,
            S3Path::Bucket { .. } => Self::Bucket,
            S3Path::Object { .. } => Self::Object,
        }
    }
}

/// The methods that are offered for buckets, and for objects.
type OfferedMethods = [&'static [&'static str]; 2];

const NOTHING: OfferedMethods = [&[], &[]];

/// The queries that name something other than the bytes of an object or the objects of a bucket,
/// and the methods that are offered with them. Requests that write are refused with any query that
/// is not known ([`OF_WRITES`]); what reads is refused with these alone, because S3 passes over
/// other queries, and browsers add some.
const SUBRESOURCES: [(&str, OfferedMethods); 43] = [
    ("delete", [&["POST"], &[]]),
    ("location", [&["GET"], &[]]),
    ("partNumber", [&[], &["GET", "HEAD", "PUT"]]),
    ("tagging", [&[], &["GET", "PUT", "DELETE"]]),
    ("uploadId", [&[], &["GET", "PUT", "POST", "DELETE"]]),
    ("uploads", [&["GET"], &["POST"]]),
    ("versioning", [&["GET"], &[]]),
    ("abac", NOTHING),
    ("accelerate", NOTHING),
    ("acl", NOTHING),
    ("analytics", NOTHING),
    ("annotation", NOTHING),
    ("annotations", NOTHING),
    ("attributes", NOTHING),
    ("cors", NOTHING),
    ("encryption", NOTHING),
    ("intelligent-tiering", NOTHING),
    ("inventory", NOTHING),
    ("legal-hold", NOTHING),
    ("lifecycle", NOTHING),
    ("logging", NOTHING),
    ("metadataAnnotationTable", NOTHING),
    ("metadataConfiguration", NOTHING),
    ("metadataInventoryTable", NOTHING),
    ("metadataJournalTable", NOTHING),
    ("metadataTable", NOTHING),
    ("metrics", NOTHING),
    ("notification", NOTHING),
    ("object-lock", NOTHING),
    ("ownershipControls", NOTHING),
    ("policy", NOTHING),
    ("policyStatus", NOTHING),
    ("publicAccessBlock", NOTHING),
    ("renameObject", NOTHING),
    ("replication", NOTHING),
    ("requestPayment", NOTHING),
    ("restore", NOTHING),
    ("retention", NOTHING),
    ("select", NOTHING),
    ("session", NOTHING),
    ("torrent", NOTHING),
    ("versions", NOTHING),
    ("website", NOTHING),
];

/// The other queries of requests that write, beside those that begin with `x-amz-`. A program may
/// say with `x-id` which operation it means; the last three sign in the old way.
const OF_WRITES: [&str; 5] = ["versionId", "x-id", "AWSAccessKeyId", "Expires", "Signature"];

/// The queries of a request about all buckets, beside those that sign it.
const OF_ALL_BUCKETS: [&str; 5] =
    ["prefix", "continuation-token", "max-buckets", "bucket-region", "x-id"];

/// Begins the names of headers that ask for what is not offered: encryption, locks, access lists,
/// redirections, appending, renaming, and an owner of the bucket, who cannot be told.
const HEADERS: [&str; 10] = [
    "x-amz-server-side-encryption",
    "x-amz-copy-source-server-side-encryption",
    "x-amz-object-lock-",
    "x-amz-bucket-object-lock-",
    "x-amz-grant-",
    "x-amz-website-redirect-location",
    "x-amz-write-offset-bytes",
    "x-amz-rename-source",
    "x-amz-expected-bucket-owner",
    "x-amz-source-expected-bucket-owner",
];

/// What the query of a presigned address says of the signature itself.
const OF_SIGNATURE: [&str; 8] = [
    "x-amz-algorithm",
    "x-amz-credential",
    "x-amz-date",
    "x-amz-expires",
    "x-amz-signedheaders",
    "x-amz-signature",
    "x-amz-security-token",
    "x-amz-content-sha256",
];

/// What S3 ignores in a query: it is about the body, which nobody knows when an address is signed.
/// JavaScript's SDK puts the checksum of nothing into each address.
const OF_BODY: [&str; 3] =
    ["x-amz-sdk-checksum-algorithm", "x-amz-trailer", "x-amz-decoded-content-length"];

/// Begins the names of headers about checksums.
const CHECKSUM: &str = "x-amz-checksum-";
/// The known ends of such names.
const CHECKSUMS: [&str; 8] =
    ["crc32", "crc32c", "crc64nvme", "sha1", "sha256", "algorithm", "mode", "type"];

/// The names of the checksums in headers that choose one.
const ALGORITHMS: [&str; 5] = ["CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256"];

/// The checksums that a header may state, with their numbers of bytes.
const CHECKSUM_BYTES: [(&str, usize); 5] =
    [("crc32", 4), ("crc32c", 4), ("crc64nvme", 8), ("sha1", 20), ("sha256", 32)];

/// Seconds for which a presigned address may hold: a week, as in S3.
const LONGEST_PRESIGNED: u64 = 7 * 24 * 3600;

/// Access lists that ask for nothing that is not so already.
const OWN_ACCESS: [&str; 3] = ["private", "bucket-owner-read", "bucket-owner-full-control"];

/// Prepares the headers of a request for the adapter, which would misread some.
///
/// # Errors
/// If the request cannot be read as it is meant.
pub fn made_readable(
    method: &Method,
    query: Option<&str>,
    headers: &mut HeaderMap,
) -> S3Result<()> {
    pass_over_unreadable(query, headers);
    let refused = refused_form(method, headers).or_else(|| refused_signature(headers));
    refused.map_or(Ok(()), Err)?;
    carry_over(query, headers)
}

/// Carries over to the headers what a query says in the place of headers, as presigned addresses
/// do: metadata, the source of a copy, an access list. Every signature covers the whole query.
///
/// # Errors
/// If a value cannot stand in a header.
fn carry_over(query: Option<&str>, headers: &mut HeaderMap) -> S3Result<()> {
    for (name, value) in url::form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        let name = name.to_ascii_lowercase();
        let is_of_body = OF_BODY.contains(&&*name)
            || name.starts_with(CHECKSUM) && name != "x-amz-checksum-mode";
        if !name.starts_with("x-amz-") || OF_SIGNATURE.contains(&&*name) || is_of_body {
            continue;
        }
        let header = HeaderName::from_bytes(name.as_bytes()).ok();
        let pair = header.zip(HeaderValue::from_bytes(value.as_bytes()).ok());
        let Some((header, value)) = pair else {
            return Err(s3_error!(InvalidArgument, "{name} in the query cannot be a header"));
        };
        headers.insert(header, value);
    }
    Ok(())
}

/// Refuses a request that asks for something that is not offered, or has headers of S3 that are not
/// signed although others are.
pub fn expect_offered(
    method: &Method,
    subject: RequestSubject,
    query: Option<&str>,
    headers: &HeaderMap,
) -> S3Result<()> {
    let query: Vec<(String, String)> =
        url::form_urlencoded::parse(query.unwrap_or_default().as_bytes()).into_owned().collect();
    expect_offered_queries(method, subject, &query)?;
    expect_offered_headers(headers)?;
    expect_offered_body(method, headers)?;
    if subject != RequestSubject::Object && headers.contains_key("x-amz-copy-source") {
        return Err(s3_error!(InvalidRequest, "a copy needs a key"));
    }
    if query.iter().any(|(name, _)| name == "partNumber")
        && headers.contains_key(RANGE)
        && method != Method::PUT
    {
        return Err(s3_error!(InvalidRequest, "a request has a part or a range, not both"));
    }
    let Some(signed) = signed_names(&query, headers) else { return Ok(()) };
    let is_in_query = |name: &str| query.iter().any(|(one, _)| one.eq_ignore_ascii_case(name));
    let is_signed = |name: &str| signed.split(';').any(|one| one == name) || is_in_query(name);
    if !signed.split(';').any(|one| one == "host") {
        return Err(s3_error!(AccessDenied, "the signature does not cover the host"));
    }
    let names = headers.keys().map(HeaderName::as_str);
    let mut unsigned = names.filter(|name| name.starts_with("x-amz-") && !is_signed(name));
    match unsigned.next() {
        Some(name) => {
            Err(s3_error!(AccessDenied, "the signature does not cover the header {name}"))
        }
        None => Ok(()),
    }
}

/// Refuses a request that puts an object and says nothing of its length: the object would be empty.
pub fn expect_length(
    method: &Method,
    subject: RequestSubject,
    headers: &HeaderMap,
) -> S3Result<()> {
    let has = |name: &str| headers.contains_key(name);
    let is_told = ["content-length", "transfer-encoding", "x-amz-copy-source"].into_iter().any(has);
    match *method == Method::PUT && subject == RequestSubject::Object && !is_told {
        true => Err(s3_error!(MissingContentLength, "an object is put with a Content-Length")),
        false => Ok(()),
    }
}

/// Refuses queries that name what is not offered, and where something is written all that are not
/// known.
fn expect_known_queries(
    method: &Method,
    subject: RequestSubject,
    query: &[(String, String)],
) -> S3Result<()> {
    let refused =
        |name: &str| s3_error!(NotImplemented, "{method} with ?{name} is not offered here");
    let is_read = [Method::GET, Method::HEAD].contains(method);
    for (name, _) in query {
        let known = SUBRESOURCES.iter().find(|(known, _)| known == name);
        let is_offered = match known {
            Some((_, [for_buckets, for_objects])) => {
                let is_of_object = subject == RequestSubject::Object;
                let methods = if is_of_object { for_objects } else { for_buckets };
                methods.contains(&method.as_str())
            }
            None => {
                is_read
                    || OF_WRITES.contains(&&**name)
                    || name.to_ascii_lowercase().starts_with("x-amz-")
            }
        };
        if !is_offered {
            return Err(refused(name));
        }
    }
    Ok(())
}

fn expect_offered_queries(
    method: &Method,
    subject: RequestSubject,
    query: &[(String, String)],
) -> S3Result<()> {
    expect_known_queries(method, subject, query)?;
    let text = |name: &str| query.iter().find(|(one, _)| one == name).map(|(_, text)| &**text);
    if text("list-type").is_some_and(|version| version != "2") {
        return Err(s3_error!(InvalidArgument, "the list-type is 2, or is left out"));
    }
    match (subject, text("versionId")) {
        (_, None) | (RequestSubject::Object, Some("null")) => {}
        (RequestSubject::Object, Some(version)) if !version.is_empty() => {
            return Err(s3_error!(NoSuchVersion, "objects have no versions here"));
        }
        _ => return Err(s3_error!(InvalidArgument, "there is no such versionId here")),
    }
    if text("encoding-type").is_some_and(|kind| !kind.is_empty() && kind != "url") {
        return Err(s3_error!(InvalidArgument, "the encoding-type is url"));
    }
    let expires = text("X-Amz-Expires").and_then(|seconds| seconds.parse::<u64>().ok());
    if expires.is_some_and(|seconds| seconds > LONGEST_PRESIGNED) {
        return Err(s3_error!(
            AuthorizationQueryParametersError,
            "X-Amz-Expires is at most {LONGEST_PRESIGNED} seconds"
        ));
    }
    let is_half = text("partNumber").is_some() != text("uploadId").is_some();
    match method == Method::PUT && is_half {
        true => Err(s3_error!(InvalidArgument, "a part has both a partNumber and an uploadId")),
        false => Ok(()),
    }
}

/// Refuses a request that names no bucket but asks about one. Its client names the bucket before
/// the name of the host: the answer would be the list of buckets, which reads like the list of an
/// empty bucket.
pub fn expect_of_all_buckets(query: Option<&str>) -> S3Result<()> {
    let query = url::form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    let mut names = query.map(|(name, _)| name.to_ascii_lowercase());
    match names.find(|name| !OF_ALL_BUCKETS.contains(&&**name) && !name.starts_with("x-amz-")) {
        Some(name) => Err(s3_error!(
            InvalidRequest,
            "{name} is about a bucket, and the path names none; set the client to path style, or \
             start the gateway with --domain"
        )),
        None => Ok(()),
    }
}

fn expect_offered_headers(headers: &HeaderMap) -> S3Result<()> {
    for (name, value) in headers {
        let name = name.as_str();
        let is_foreign = name == "x-amz-acl"
            && !OWN_ACCESS.iter().any(|access| access.as_bytes() == value.as_bytes());
        if is_foreign || HEADERS.iter().any(|begin| name.starts_with(begin)) {
            return Err(s3_error!(
                NotImplemented,
                "what the header {name} asks for is not offered"
            ));
        }
        if name == "x-amz-storage-class" && value != "STANDARD" {
            return Err(s3_error!(InvalidStorageClass, "the storage class is STANDARD"));
        }
    }
    expect_digests(headers)?;
    expect_known(headers, "x-amz-checksum-algorithm", &ALGORITHMS)?;
    expect_known(headers, "x-amz-sdk-checksum-algorithm", &ALGORITHMS)?;
    expect_known(headers, "x-amz-checksum-type", &["COMPOSITE", "FULL_OBJECT"])?;
    let trailing = trailing(headers);
    if let Some(name) = trailing.iter().find(|name| !name.starts_with(CHECKSUM)) {
        return Err(s3_error!(NotImplemented, "{name} after the body is not offered"));
    }
    let names = headers.keys().map(HeaderName::as_str).chain(trailing.iter().map(String::as_str));
    let mut unknown = names.filter(|name| {
        name.strip_prefix(CHECKSUM).is_some_and(|which| !CHECKSUMS.contains(&which))
    });
    match unknown.next() {
        Some(name) => Err(s3_error!(NotImplemented, "the checksum of {name} is not offered")),
        None => Ok(()),
    }
}

/// Refuses a header whose value is not one of `words`.
fn expect_known(headers: &HeaderMap, name: &str, words: &[&str]) -> S3Result<()> {
    let Some(given) = headers.get(name).map(HeaderValue::as_bytes) else { return Ok(()) };
    match words.iter().any(|word| word.as_bytes().eq_ignore_ascii_case(given)) {
        true => Ok(()),
        false => Err(s3_error!(InvalidRequest, "{name} is one of {}", words.join(", "))),
    }
}

/// Refuses digests that no body can have.
fn expect_digests(headers: &HeaderMap) -> S3Result<()> {
    use base64::Engine;
    let bytes = |text: &[u8]| base64::engine::general_purpose::STANDARD.decode(text).ok();
    let is_digest = |text: &[u8], length| bytes(text).is_some_and(|bytes| bytes.len() == length);
    if headers.get("content-md5").is_some_and(|text| !is_digest(text.as_bytes(), 16)) {
        return Err(s3_error!(InvalidDigest, "the Content-MD5 is not 16 bytes in Base64"));
    }
    for (name, length) in CHECKSUM_BYTES {
        let name = format!("{CHECKSUM}{name}");
        // That of an upload in parts is followed by their number.
        let stated = headers.get(&name).map(HeaderValue::as_bytes).unwrap_or_default();
        let sum = stated.split(|&byte| byte == b'-').next().unwrap_or_default();
        if headers.contains_key(&name) && !is_digest(sum, length) {
            return Err(s3_error!(InvalidRequest, "{name} is not {length} bytes in Base64"));
        }
    }
    Ok(())
}

/// Refuses conditions on what is written, and ways to send it, that are not offered.
fn expect_offered_body(method: &Method, headers: &HeaderMap) -> S3Result<()> {
    let is_writing = [Method::PUT, Method::POST].contains(method);
    if is_writing && headers.get(IF_NONE_MATCH).is_some_and(|text| text != "*") {
        return Err(s3_error!(NotImplemented, "what is written has no If-None-Match but *"));
    }
    let mut conditions = vec![IF_MODIFIED_SINCE, IF_UNMODIFIED_SINCE];
    conditions.extend((method == Method::DELETE).then_some(IF_NONE_MATCH));
    let is_changing = is_writing || method == Method::DELETE;
    if let Some(name) = conditions.iter().find(|name| is_changing && headers.contains_key(*name)) {
        return Err(s3_error!(NotImplemented, "{method} does not obey {name}"));
    }
    match Framing::of(method, headers) {
        Framing::Unsigned if decoded_length(headers).is_none() => Err(s3_error!(
            MissingContentLength,
            "a body that is aws-chunked has an x-amz-decoded-content-length"
        )),
        // Its bytes would be stored with the framing.
        Framing::None if is_writing && is_chunked(headers) => Err(s3_error!(
            NotImplemented,
            "a signed body that is aws-chunked has an x-amz-content-sha256 that says so"
        )),
        _ => Ok(()),
    }
}

/// Removes headers that S3 passes over if it cannot read them, and the adapter refuses: ranges, and
/// times in conditions. Signed headers have to stay.
fn pass_over_unreadable(query: Option<&str>, headers: &mut HeaderMap) {
    let query: Vec<(String, String)> =
        url::form_urlencoded::parse(query.unwrap_or_default().as_bytes()).into_owned().collect();
    let signed = signed_names(&query, headers).unwrap_or_default();
    let is_time = |text: &str| Timestamp::parse(TimestampFormat::HttpDate, text).is_ok();
    let is_readable = |name: &HeaderName, value: &HeaderValue| match value.to_str() {
        Ok(text) if name == RANGE => Range::parse(text).is_ok(),
        Ok(text) => is_time(text),
        Err(_) => false,
    };
    for name in [RANGE, IF_MODIFIED_SINCE, IF_UNMODIFIED_SINCE] {
        let is_lost = headers.get(&name).is_some_and(|value| !is_readable(&name, value));
        if is_lost && !signed.split(';').any(|one| one == name.as_str()) {
            headers.remove(&name);
        }
    }
}

/// Refuses the forms of browsers. The adapter reads a form with its file into memory before it asks
/// whose it is, and does not show what the fields ask for. An object that is put may be of that
/// kind.
fn refused_form(method: &Method, headers: &HeaderMap) -> Option<S3Error> {
    const KIND: &[u8] = b"multipart/form-data";
    let kind = headers.get(CONTENT_TYPE)?.as_bytes().trim_ascii_start().get(..KIND.len())?;
    let is_form = method == Method::POST && kind.eq_ignore_ascii_case(KIND);
    is_form.then(|| s3_error!(NotImplemented, "forms of browsers are not offered"))
}

/// Refuses a signature that cannot be read. The adapter would take the request for one that is not
/// signed, and its body for one that is not framed.
fn refused_signature(headers: &HeaderMap) -> Option<S3Error> {
    let mut signatures = headers.get_all(AUTHORIZATION).into_iter();
    let is_readable = signatures.next().is_none_or(|one| one.to_str().is_ok());
    let is_one = signatures.next().is_none();
    (!is_one || !is_readable)
        .then(|| s3_error!(InvalidArgument, "a request has one Authorization header, in ASCII"))
}

/// Whether a proxy says that a request comes from elsewhere.
pub fn is_forwarded(headers: &HeaderMap) -> bool {
    let names = ["forwarded", "x-forwarded-for", "x-real-ip", "via"];
    names.iter().any(|name| headers.contains_key(*name))
}

/// Whether a request is signed as S3 did before version 4, by its address or by a header.
pub fn has_old_signature(query: Option<&str>, headers: &HeaderMap) -> bool {
    let mut query = url::form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    let signature = headers.get(AUTHORIZATION);
    signature.is_some_and(|text| text.as_bytes().starts_with(b"AWS "))
        || query.any(|(name, _)| name == "AWSAccessKeyId")
}

/// Returns the names of the headers that are signed, separated by semicolons; `None` if nothing is.
fn signed_names(query: &[(String, String)], headers: &HeaderMap) -> Option<String> {
    let presigned = query.iter().find(|(name, _)| name.eq_ignore_ascii_case("X-Amz-SignedHeaders"));
    let by_query = presigned.map(|(_, names)| names.to_ascii_lowercase());
    by_query.or_else(|| {
        let text = headers.get(AUTHORIZATION)?.to_str().ok()?;
        let (_, rest) = text.split_once("SignedHeaders=")?;
        rest.split([',', ' ']).next().map(str::to_ascii_lowercase)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(method: Method, query: &str, given: &[(&'static str, &str)]) -> Option<String> {
        let mut headers = HeaderMap::new();
        for (name, value) in given {
            headers.insert(*name, value.parse().unwrap());
        }
        let subject =
            if query.contains("BUCKET") { RequestSubject::Bucket } else { RequestSubject::Object };
        let query = query.strip_prefix("BUCKET").unwrap_or(query);
        let refused = expect_offered(&method, subject, Some(query), &headers).err();
        refused.map(|error| error.code().as_str().to_owned())
    }

    #[test]
    fn subresources_that_are_not_offered_are_refused() {
        for (method, query, code) in [
            (Method::DELETE, "acl", Some("NotImplemented")),
            (Method::DELETE, "uploads", Some("NotImplemented")),
            (Method::PUT, "renameObject", Some("NotImplemented")),
            (Method::PUT, "annotation&annotationName=n", Some("NotImplemented")),
            (Method::GET, "annotation&annotationName=n", Some("NotImplemented")),
            (Method::PUT, "append&position=11", Some("NotImplemented")),
            (Method::DELETE, "BUCKETabac", Some("NotImplemented")),
            (Method::GET, "BUCKETabac", Some("NotImplemented")),
            (Method::DELETE, "BUCKETmetrics2=1", Some("NotImplemented")),
            (Method::GET, "v=12&download", None),
            (Method::PUT, "x-id=PutObject&X-Amz-Date=20260101T000000Z", None),
            (Method::DELETE, "versionId=null&x-id=DeleteObject", None),
            (Method::PUT, "versioning=", Some("NotImplemented")),
            (Method::GET, "versionId=abc", Some("NoSuchVersion")),
            (Method::GET, "versionId=", Some("InvalidArgument")),
            (Method::PUT, "uploadId=1", Some("InvalidArgument")),
            (Method::PUT, "partNumber=1", Some("InvalidArgument")),
            (Method::GET, "X-Amz-Expires=604801", Some("AuthorizationQueryParametersError")),
            (Method::GET, "X-Amz-Expires=604800", None),
            (Method::GET, "versionId=null&partNumber=1", None),
            (Method::PUT, "partNumber=1&uploadId=1", None),
            (Method::DELETE, "uploadId=1", None),
            (Method::GET, "prefix=acl&list-type=2", None),
            (Method::POST, "BUCKETdelete", None),
            (Method::POST, "delete", Some("NotImplemented")),
            (Method::GET, "uploads", Some("NotImplemented")),
            (Method::GET, "BUCKETuploads", None),
            (Method::GET, "BUCKETlocation", None),
            (Method::GET, "versioning", Some("NotImplemented")),
            (Method::DELETE, "BUCKETuploadId=x", Some("NotImplemented")),
            (Method::PUT, "BUCKETpartNumber=1&uploadId=x", Some("NotImplemented")),
            (Method::DELETE, "BUCKETversionId=null", Some("InvalidArgument")),
            (Method::GET, "BUCKETlist-type=3", Some("InvalidArgument")),
            (Method::GET, "BUCKETlist-type=2", None),
            (Method::GET, "encoding-type=url", None),
            (Method::GET, "encoding-type=foo", Some("InvalidArgument")),
        ] {
            assert_eq!(refusal(method, query, &[]).as_deref(), code, "{query}");
        }
    }

    #[test]
    fn headers_that_ask_for_more_are_refused() {
        for (name, value, code) in [
            ("x-amz-server-side-encryption", "AES256", Some("NotImplemented")),
            ("x-amz-object-lock-mode", "COMPLIANCE", Some("NotImplemented")),
            ("x-amz-acl", "public-read", Some("NotImplemented")),
            ("x-amz-acl", "private", None),
            ("x-amz-storage-class", "STANDARD", None),
            ("x-amz-storage-class", "GLACIER", Some("InvalidStorageClass")),
            ("x-amz-expected-bucket-owner", "111122223333", Some("NotImplemented")),
            ("x-amz-source-expected-bucket-owner", "111122223333", Some("NotImplemented")),
            ("x-amz-checksum-crc32", "NhCmhg==", None),
            ("x-amz-checksum-crc32", "NhCmhg==-3", None),
            ("x-amz-checksum-crc32", "zzz", Some("InvalidRequest")),
            ("x-amz-checksum-sha1", "NhCmhg==", Some("InvalidRequest")),
            ("content-md5", "1B2M2Y8AsgTpgAmY7PhCfg==", None),
            ("content-md5", "abc", Some("InvalidDigest")),
            ("content-md5", "", Some("InvalidDigest")),
            ("x-amz-checksum-xxhash64", "NhCmhg==", Some("NotImplemented")),
            ("x-amz-trailer", "x-amz-checksum-crc32c", None),
            ("x-amz-trailer", "x-amz-checksum-md5", Some("NotImplemented")),
            ("if-none-match", "*", None),
            ("if-none-match", "\"0\"", Some("NotImplemented")),
            ("if-unmodified-since", "Thu, 26 Nov 2026 10:00:00 GMT", Some("NotImplemented")),
            ("x-amz-checksum-algorithm", "BOGUS", Some("InvalidRequest")),
            ("x-amz-sdk-checksum-algorithm", "CRC32", None),
            ("x-amz-checksum-type", "BOGUS", Some("InvalidRequest")),
            ("x-amz-trailer", "content-md5", Some("NotImplemented")),
            ("content-encoding", "aws-chunked", Some("MissingContentLength")),
        ] {
            assert_eq!(refusal(Method::PUT, "", &[(name, value)]).as_deref(), code, "{name}");
        }
    }

    #[test]
    fn signed_bodies_say_how_they_are_framed() {
        let signature = "AWS4-HMAC-SHA256 Credential=a/b, SignedHeaders=host;x-amz-content-sha256";
        let refused = |sha| {
            let headers = [
                ("authorization", signature),
                ("content-encoding", "gzip,aws-chunked"),
                ("x-amz-content-sha256", sha),
            ];
            refusal(Method::PUT, "", &headers)
        };
        assert_eq!(refused("STREAMING-UNSIGNED-PAYLOAD-TRAILER"), None);
        assert_eq!(refused("UNSIGNED-PAYLOAD").as_deref(), Some("NotImplemented"));
    }

    #[test]
    fn forms_old_signatures_and_proxies_are_recognised() {
        let with = |name: &'static str, value: &str| {
            HeaderMap::from_iter([(HeaderName::from_static(name), value.parse().unwrap())])
        };
        for (kind, is_form) in [
            ("multipart/form-data; boundary=b", true),
            ("Multipart/Form-Data", true),
            ("multipart/mixed", false),
            ("text/plain", false),
        ] {
            let headers = with("content-type", kind);
            assert_eq!(refused_form(&Method::POST, &headers).is_some(), is_form, "{kind}");
            assert!(refused_form(&Method::PUT, &headers).is_none());
        }
        let none = HeaderMap::new();
        assert!(refused_form(&Method::POST, &none).is_none() && !is_forwarded(&none));
        assert!(is_forwarded(&with("x-forwarded-for", "192.0.2.1")));
        assert!(has_old_signature(None, &with("authorization", "AWS me:0")));
        for (query, is_old) in
            [("AWSAccessKeyId=me", true), ("%41WSAccessKeyId=me", true), ("X-Amz-Date=0", false)]
        {
            assert_eq!(has_old_signature(Some(query), &none), is_old, "{query}");
        }
    }

    #[test]
    fn unreadable_ranges_and_times_are_passed_over() {
        for (name, value, is_kept) in [
            (RANGE, "bytes=0-1", true),
            (RANGE, "bytes=-5", true),
            (RANGE, "bytes=5-2", false),
            (RANGE, "bytes=0-1,3-4", false),
            (RANGE, "items=0-1", false),
            (IF_MODIFIED_SINCE, "Thu, 26 Nov 2026 10:00:00 GMT", true),
            (IF_MODIFIED_SINCE, "yesterday", false),
            (IF_UNMODIFIED_SINCE, "", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(&name, value.parse().unwrap());
            pass_over_unreadable(None, &mut headers);
            assert_eq!(headers.contains_key(&name), is_kept, "{name}: {value}");
            headers.insert(&name, value.parse().unwrap());
            let presigned = format!("X-Amz-SignedHeaders=host%3B{name}");
            pass_over_unreadable(Some(&presigned), &mut headers);
            assert!(headers.contains_key(&name), "it is signed");
        }
    }

    #[test]
    fn what_a_query_says_counts_as_a_header() {
        let carried = |query: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("x-amz-meta-a", "from elsewhere".parse().unwrap());
            carry_over(Some(query), &mut headers).map(|()| headers)
        };
        let signature = "X-Amz-Signature=0&X-Amz-SignedHeaders=host&X-Amz-Date=0";
        let query = format!("{signature}&x-amz-meta-a=%C3%A9&X-Amz-Copy-Source=a%2Fb");
        let headers = carried(&query).unwrap();
        assert_eq!(headers["x-amz-meta-a"].as_bytes(), "é".as_bytes());
        assert_eq!(headers["x-amz-copy-source"], "a/b");
        assert_eq!(headers.len(), 2, "the signature is no header");
        expect_offered(&Method::PUT, RequestSubject::Object, Some(&query), &headers).unwrap();
        let other = [("x-amz-meta-b", "1")];
        assert_eq!(refusal(Method::PUT, &query, &other).as_deref(), Some("AccessDenied"));
        for (said, code) in [
            ("x-amz-acl=public-read", Some("NotImplemented")),
            ("x-amz-server-side-encryption=AES256", Some("NotImplemented")),
            ("x-amz-object-lock-mode=COMPLIANCE", Some("NotImplemented")),
            ("x-amz-storage-class=GLACIER", Some("InvalidStorageClass")),
            ("x-amz-checksum-crc32=AAAAAA%3D%3D&x-amz-sdk-checksum-algorithm=CRC32", None),
            ("x-amz-checksum-mode=ENABLED", None),
        ] {
            let headers = carried(said).unwrap();
            let refused =
                expect_offered(&Method::PUT, RequestSubject::Object, Some(said), &headers).err();
            let refused = refused.map(|error| error.code().as_str().to_owned());
            assert_eq!(refused.as_deref(), code, "{said}");
            assert!(!headers.contains_key("x-amz-checksum-crc32"), "{said}");
        }
        assert!(carried("x-amz-meta-a=%0A").is_err());
    }

    #[test]
    fn signatures_cover_the_headers_of_s3() {
        let presigned = "X-Amz-Signature=0&X-Amz-SignedHeaders=host%3Bx-amz-meta-a";
        let refused = |given| refusal(Method::PUT, presigned, given);
        assert_eq!(refused(&[("x-amz-meta-a", "1")]), None);
        let unsigned = [("x-amz-copy-source", "/other/secret")];
        assert_eq!(refused(&unsigned).as_deref(), Some("AccessDenied"));
        let signature =
            "AWS4-HMAC-SHA256 Credential=a/b, SignedHeaders=host;x-amz-date, Signature=0";
        let signed = [("authorization", signature), ("x-amz-date", "0")];
        assert_eq!(refusal(Method::PUT, "", &signed), None);
        let both = [signed[0], unsigned[0]];
        assert_eq!(refusal(Method::PUT, "", &both).as_deref(), Some("AccessDenied"));
        assert_eq!(refusal(Method::PUT, "", &unsigned), None, "nothing is signed");
        let without_host = "X-Amz-Signature=0&X-Amz-SignedHeaders=x-amz-meta-a";
        assert_eq!(refusal(Method::GET, without_host, &[]).as_deref(), Some("AccessDenied"));
    }
}
