//! What S3 says about an object besides its bytes, and how the notes of its manifest keep it.
//!
//! | note | what it is |
//! | --- | --- |
//! | `etag` | the MD5 of the bytes; of an object in pieces, that of the MD5s of its pieces, `-`, and their number |
//! | `content-type` and other headers | as the client gave them |
//! | `x-amz-meta-…` | metadata of the user |
//! | `tags` | tags as in a query: `a=1&b=2` |
//! | `checksum-…` | a checksum that the client asked for, in Base64 |

use http::{HeaderName, HeaderValue};
use paritas_volume::{FoundObject, Notes};
use s3s::dto::{Checksum, ChecksumType, ETag, Metadata, Tag, Timestamp, TimestampFormat};
use s3s::{S3Result, s3_error};

/// The note of the ETag.
pub const ETAG: &str = "etag";
/// The note of tags.
pub const TAGS: &str = "tags";
/// The name of the note that keeps the kind of checksums that an upload was begun with, if it is
/// `FULL_OBJECT`.
pub const CHECKSUM_TYPE: &str = "checksum-type";
const EXPIRES: &str = "expires";
/// The type of content that S3 states for an object of unknown type.
pub const UNKNOWN_TYPE: &str = "binary/octet-stream";
/// Begins the notes of the user's metadata.
const META: &str = "x-amz-meta-";
/// The most bytes of the user's metadata, as in S3.
const MOST_META: usize = 2048;
/// The most tags of an object, and characters of a tag's key and value, as in S3.
const MOST_TAGS: usize = 10;
const MOST_TAG_KEY: usize = 128;
const MOST_TAG_VALUE: usize = 256;

/// What listings say of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectFacts {
    pub etag: String,
    pub length: u64,
    /// When it was written, in seconds since the beginning of 1970.
    pub modified: u64,
}

impl ObjectFacts {
    /// Returns the facts about an object. An object that was not stored by a gateway gets an ETag
    /// made from its digest. It looks like the ETag of an object in pieces, so that clients do not
    /// treat it as an MD5.
    pub fn of(object: &FoundObject) -> Self {
        let by_digest = || format!("{}-1", &object.digest().to_string()[..32]);
        let etag = object.notes().get(ETAG).cloned().unwrap_or_else(by_digest);
        Self { etag, length: object.length(), modified: object.created() }
    }

    pub fn etag(&self) -> ETag {
        ETag::Strong(self.etag.clone())
    }

    pub fn modified(&self) -> Timestamp {
        timestamp(self.modified)
    }
}

/// Returns a time in seconds since 1970 as S3 says it, at the latest the end of the year 9999: a
/// damaged manifest may have any number, and later times cannot be said.
pub fn timestamp(seconds: u64) -> Timestamp {
    const LAST: u64 = 253_402_300_799;
    Timestamp::from(std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds.min(LAST)))
}

/// The headers that are kept with an object.
#[derive(Debug, Default)]
pub struct KeptHeaders {
    pub cache_control: Option<String>,
    pub content_disposition: Option<String>,
    pub content_encoding: Option<String>,
    pub content_language: Option<String>,
    pub content_type: Option<String>,
    pub expires: Option<Timestamp>,
    pub metadata: Option<Metadata>,
    pub tagging: Option<String>,
}

/// Takes the headers that are kept out of a request.
macro_rules! kept_headers {
    ($input:expr) => {
        $crate::facts::KeptHeaders {
            cache_control: $input.cache_control.take(),
            content_disposition: $input.content_disposition.take(),
            content_encoding: $input.content_encoding.take(),
            content_language: $input.content_language.take(),
            content_type: $input.content_type.take(),
            expires: $input.expires.take(),
            metadata: $input.metadata.take(),
            tagging: $input.tagging.take(),
        }
    };
}

/// Puts the headers and checksums that notes have kept into an answer.
macro_rules! answer_headers {
    ($output:expr, $notes:expr) => {{
        let headers = $crate::facts::KeptHeaders::of($notes).tellable();
        $output.cache_control = headers.cache_control;
        $output.content_disposition = headers.content_disposition;
        $output.content_encoding = headers.content_encoding;
        $output.content_language = headers.content_language;
        $output.content_type =
            headers.content_type.or_else(|| Some($crate::facts::UNKNOWN_TYPE.to_owned()));
        $output.expires = headers.expires;
        $output.metadata = headers.metadata;
        answer_whole!($output, $crate::facts::checksum_of($notes));
    }};
}

/// Puts the checksums of an object into an answer, and their kind.
macro_rules! answer_whole {
    ($output:expr, $checksum:expr) => {{
        let checksum = $checksum;
        $output.checksum_type = $crate::facts::kind_of(&checksum);
        answer_checksums!($output, checksum);
    }};
}

/// Puts checksums into an answer.
macro_rules! answer_checksums {
    ($output:expr, $checksum:expr) => {{
        let checksum = $checksum;
        $output.checksum_crc32 = checksum.checksum_crc32;
        $output.checksum_crc32c = checksum.checksum_crc32c;
        $output.checksum_crc64nvme = checksum.checksum_crc64nvme;
        $output.checksum_sha1 = checksum.checksum_sha1;
        $output.checksum_sha256 = checksum.checksum_sha256;
    }};
}

pub(crate) use {answer_checksums, answer_headers, answer_whole, kept_headers};

impl KeptHeaders {
    /// Leaves out texts and names that a header cannot hold. Another program may have noted them: a
    /// type of content with a line feed, for example. (The adapter encodes the values of metadata.)
    pub fn tellable(self) -> Self {
        let tellable =
            |text: Option<String>| text.filter(|text| HeaderValue::from_str(text).is_ok());
        let has_name =
            |name: &String| HeaderName::from_bytes(format!("{META}{name}").as_bytes()).is_ok();
        let metadata = self.metadata.map(|mut metadata| {
            metadata.retain(|name, _| has_name(name));
            metadata
        });
        Self {
            cache_control: tellable(self.cache_control),
            content_disposition: tellable(self.content_disposition),
            content_encoding: tellable(self.content_encoding),
            content_language: tellable(self.content_language),
            content_type: tellable(self.content_type),
            metadata,
            ..self
        }
    }

    /// Returns the headers that notes have kept.
    pub fn of(notes: &Notes) -> Self {
        let text = |name: &str| notes.get(name).cloned();
        let expires = text(EXPIRES);
        let date = |text: String| Timestamp::parse(TimestampFormat::HttpDate, &text).ok();
        let meta = notes.iter().filter_map(|(name, text)| Some((name.strip_prefix(META)?, text)));
        let meta: Metadata = meta.map(|(name, text)| (name.to_owned(), text.to_owned())).collect();
        Self {
            cache_control: text("cache-control"),
            content_disposition: text("content-disposition"),
            content_encoding: text("content-encoding"),
            content_language: text("content-language"),
            content_type: text("content-type"),
            expires: expires.and_then(date),
            metadata: (!meta.is_empty()).then_some(meta),
            tagging: text(TAGS),
        }
    }

    /// Returns the notes that keep the headers.
    ///
    /// # Errors
    /// If the metadata have more bytes than S3 allows.
    pub fn notes(self) -> S3Result<Notes> {
        let meta = self.metadata.unwrap_or_default();
        let bytes: usize = meta.iter().map(|(name, text)| name.len() + text.len()).sum();
        if bytes > MOST_META {
            return Err(s3_error!(
                MetadataTooLarge,
                "the metadata have {bytes} bytes; the most is {MOST_META}"
            ));
        }
        self.tagging.as_deref().map_or(Ok(()), |tags| expect_tags(&parse_tags(tags)))?;
        // `aws-chunked` describes how the body was sent. It is not a property of the object.
        let encoding = self.content_encoding.map(|text| without_chunked(&text));
        let headers = [
            ("cache-control", self.cache_control),
            ("content-disposition", self.content_disposition),
            ("content-encoding", encoding.filter(|text| !text.is_empty())),
            ("content-language", self.content_language),
            ("content-type", self.content_type),
            (EXPIRES, self.expires.and_then(|time| date_text(&time))),
            (TAGS, self.tagging),
        ];
        let headers = headers.into_iter().filter_map(|(name, text)| Some((name.to_owned(), text?)));
        let meta = meta.into_iter().map(|(name, text)| (format!("{META}{name}"), text));
        Ok(headers.chain(meta).collect())
    }
}

/// Returns a time as headers say it.
pub fn date_text(time: &Timestamp) -> Option<String> {
    let mut text = Vec::new();
    let written = time.format(TimestampFormat::HttpDate, &mut text);
    written.ok().and_then(|()| String::from_utf8(text).ok())
}

/// Reads tags as they stand in a query.
pub fn parse_tags(tags: &str) -> Vec<Tag> {
    let pairs = url::form_urlencoded::parse(tags.as_bytes());
    pairs.map(|(key, value)| Tag { key: Some(key.into()), value: Some(value.into()) }).collect()
}

/// Writes tags as they stand in a query.
///
/// # Errors
/// If they are not tags that S3 allows.
pub fn join_tags(tags: &[Tag]) -> S3Result<Option<String>> {
    expect_tags(tags)?;
    let mut text = url::form_urlencoded::Serializer::new(String::new());
    text.extend_pairs(tags.iter().map(key_and_value));
    Ok(Some(text.finish()).filter(|text| !text.is_empty()))
}

fn key_and_value(tag: &Tag) -> (&str, &str) {
    (tag.key.as_deref().unwrap_or_default(), tag.value.as_deref().unwrap_or_default())
}

/// Refuses tags that S3 does not allow.
fn expect_tags(tags: &[Tag]) -> S3Result<()> {
    let mut keys = std::collections::BTreeSet::new();
    if tags.len() > MOST_TAGS {
        return Err(s3_error!(InvalidTag, "an object has at most {MOST_TAGS} tags"));
    }
    for (key, value) in tags.iter().map(key_and_value) {
        let (key_length, value_length) = (key.chars().count(), value.chars().count());
        let is_allowed = (1..=MOST_TAG_KEY).contains(&key_length) && value_length <= MOST_TAG_VALUE;
        if !is_allowed || key.starts_with("aws:") || !keys.insert(key) {
            return Err(s3_error!(
                InvalidTag,
                "the key of a tag has 1 to {MOST_TAG_KEY} characters, does not begin with aws:, and \
                 stands there once; the value has at most {MOST_TAG_VALUE} characters"
            ));
        }
    }
    Ok(())
}

fn without_chunked(encoding: &str) -> String {
    let kept = encoding.split(',').map(str::trim).filter(|one| *one != "aws-chunked");
    kept.collect::<Vec<_>>().join(",")
}

/// Returns the notes that keep checksums.
pub fn notes_of(checksum: Checksum) -> impl Iterator<Item = (String, String)> {
    let all = [
        ("crc32", checksum.checksum_crc32),
        ("crc32c", checksum.checksum_crc32c),
        ("crc64nvme", checksum.checksum_crc64nvme),
        ("sha1", checksum.checksum_sha1),
        ("sha256", checksum.checksum_sha256),
    ];
    all.into_iter().filter_map(|(name, text)| Some((format!("checksum-{name}"), text?)))
}

/// Returns the checksums of each kind side by side.
pub fn beside<'c>(one: &'c Checksum, other: &'c Checksum) -> [[Option<&'c str>; 2]; 5] {
    [
        [&one.checksum_crc32, &other.checksum_crc32],
        [&one.checksum_crc32c, &other.checksum_crc32c],
        [&one.checksum_crc64nvme, &other.checksum_crc64nvme],
        [&one.checksum_sha1, &other.checksum_sha1],
        [&one.checksum_sha256, &other.checksum_sha256],
    ]
    .map(|pair| pair.map(|checksum| checksum.as_deref()))
}

/// Returns the kind of the checksums of an object: of all its bytes, or of the checksums of its
/// parts, with `-` and their number after each. Nothing if there are no checksums.
pub fn kind_of(checksum: &Checksum) -> Option<ChecksumType> {
    let mut all = beside(checksum, checksum).into_iter().filter_map(|[one, _]| one);
    let is_composite = all.next()?.contains('-');
    let kind = if is_composite { ChecksumType::COMPOSITE } else { ChecksumType::FULL_OBJECT };
    Some(ChecksumType::from_static(kind))
}

/// Returns the checksums that notes have kept.
pub fn checksum_of(notes: &Notes) -> Checksum {
    let text = |name: &str| notes.get(&format!("checksum-{name}")).cloned();
    Checksum {
        checksum_crc32: text("crc32"),
        checksum_crc32c: text("crc32c"),
        checksum_crc64nvme: text("crc64nvme"),
        checksum_sha1: text("sha1"),
        checksum_sha256: text("sha256"),
        checksum_type: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_come_back_from_notes() {
        let time = Timestamp::parse(TimestampFormat::HttpDate, "Thu, 26 Nov 2026 10:00:00 GMT");
        let meta: Metadata = [("owner".to_owned(), "me".to_owned())].into();
        let headers = KeptHeaders {
            content_type: Some("text/plain".to_owned()),
            content_encoding: Some("aws-chunked,gzip".to_owned()),
            expires: Some(time.unwrap()),
            metadata: Some(meta.clone()),
            tagging: Some("a=1&b=2".to_owned()),
            ..KeptHeaders::default()
        };
        let expires = headers.expires.clone();
        let notes = headers.notes().unwrap();
        let again = KeptHeaders::of(&notes);
        assert_eq!((again.content_type.as_deref(), again.expires), (Some("text/plain"), expires));
        assert_eq!((again.metadata, again.tagging.as_deref()), (Some(meta), Some("a=1&b=2")));
        assert_eq!(again.content_encoding.as_deref(), Some("gzip"));
    }

    #[test]
    fn tags_are_those_of_s3() {
        let (key, value) = ("k".repeat(128), "v".repeat(256));
        for (tags, is_allowed) in [
            (format!("{key}={value}&a=b"), true),
            (format!("{key}k=v"), false),
            (format!("k={value}v"), false),
            ("=v".to_owned(), false),
            ("aws:a=b".to_owned(), false),
            ("a=1&a=2".to_owned(), false),
            ((0..11).map(|number| format!("{number}=&")).collect(), false),
        ] {
            let headers = KeptHeaders { tagging: Some(tags.clone()), ..KeptHeaders::default() };
            assert_eq!(headers.notes().is_ok(), is_allowed, "{tags}");
            assert_eq!(join_tags(&parse_tags(&tags)).is_ok(), is_allowed, "{tags}");
        }
    }

    #[test]
    fn too_much_metadata_is_refused() {
        let meta: Metadata = [("a".to_owned(), "b".repeat(2048))].into();
        let headers = KeptHeaders { metadata: Some(meta), ..KeptHeaders::default() };
        assert_eq!(headers.notes().unwrap_err().code().as_str(), "MetadataTooLarge");
    }
}
