//! Access rights: a file of keys, and the buckets that each key opens.
//!
//! ```toml
//! [[key]]
//! id = "backup"
//! secret = "at least 16 characters"
//! buckets = ["photos", "mail"]   # all, if left out
//! read_only = true               # false, if left out
//! ```

use std::collections::BTreeMap;
use std::path::Path;

use http::header::CONTENT_LENGTH;
use paritas_store::error::{Error, Result};
use paritas_store::place::secrets::read_secrets;
use paritas_store::shown::shown;
use paritas_volume::config::located;
use s3s::access::{S3Access, S3AccessContext};
use s3s::auth::{S3Auth, SecretKey};
use s3s::path::check_bucket_name;
use s3s::{S3Result, s3_error};
use serde::Deserialize;

use crate::arrival::{BodyArrival, MOST_DOCUMENT, too_long_document};
use crate::demands::{
    RequestSubject, expect_length, expect_of_all_buckets, expect_offered, has_old_signature,
};
use crate::room::TransferMemory;

/// The fewest characters of a secret.
const SHORTEST_SECRET: usize = 16;
/// The operations that change nothing.
const READING: [&str; 11] = [
    "GetObject",
    "HeadObject",
    "GetObjectTagging",
    "ListObjects",
    "ListObjectsV2",
    "ListBuckets",
    "HeadBucket",
    "GetBucketLocation",
    "GetBucketVersioning",
    "ListParts",
    "ListMultipartUploads",
];

/// The keys that a gateway accepts.
#[derive(Clone, Default)]
pub struct Keys {
    keys: BTreeMap<String, KeyEntry>,
    /// Whether requests without a signature are accepted, for everything.
    is_open: bool,
    /// Whether all changes are refused.
    is_read_only: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeysFile {
    #[serde(default)]
    key: Vec<KeyEntry>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyEntry {
    id: String,
    secret: String,
    buckets: Option<Vec<String>>,
    #[serde(default)]
    read_only: bool,
}

impl KeyEntry {
    /// Returns why the key is of no use.
    fn flaw(&self) -> Option<String> {
        let id = &self.id;
        // A signature names its key between a blank or `=` and a slash.
        let is_odd = |c: char| !c.is_ascii_graphic() || matches!(c, '/' | ',' | '=');
        if id.is_empty() || id.contains(is_odd) {
            return Some(format!(
                "the id {id:?} must have letters, digits and signs of ASCII other than `/`, `,` and `=`"
            ));
        }
        let mut buckets = self.buckets.iter().flatten();
        if let Some(none) = buckets.find(|bucket| !check_bucket_name(bucket)) {
            return Some(format!(
                "the key {id:?} opens {none:?}, which no bucket can be called: names have 3 to 63 \
                 small letters, digits, dots and hyphens, and are no addresses"
            ));
        }
        let is_none = self.buckets.as_ref().is_some_and(Vec::is_empty);
        is_none.then(|| format!("the key {id:?} opens no bucket; without `buckets` it opens all"))
    }
}

impl Keys {
    /// Returns the keys of a gateway that accepts requests without a key.
    pub fn open() -> Self {
        Self { is_open: true, ..Self::default() }
    }

    /// Reads a file of keys, which only its owner may read.
    ///
    /// # Errors
    /// If the file cannot be read, if it has a flaw, or if others may read it.
    pub fn read(path: &Path) -> Result<Self> {
        let refuse = |flaw: String| Error::parameters(format!("{}: {flaw}", shown(path)));
        let text = read_secrets(path)?;
        let file: KeysFile = toml::from_str(&text).map_err(|error| {
            let flaw = located(&text, &error);
            refuse(format!("{flaw}; each key is a table [[key]] with id and secret"))
        })?;
        let mut keys = BTreeMap::new();
        for key in file.key {
            let characters = key.secret.chars().count();
            if characters < SHORTEST_SECRET {
                return Err(refuse(format!(
                    "the secret of {:?} has {characters} characters; it must have at least \
                     {SHORTEST_SECRET}",
                    key.id
                )));
            }
            if let Some(flaw) = key.flaw() {
                return Err(refuse(flaw));
            }
            if let Some(twice) = keys.insert(key.id.clone(), key) {
                return Err(refuse(format!("the id {:?} is used twice", twice.id)));
            }
        }
        match keys.is_empty() {
            true => {
                Err(refuse("it has no keys; each is a table [[key]] with id and secret".into()))
            }
            false => Ok(Self { keys, ..Self::default() }),
        }
    }

    /// Returns the number of keys.
    pub(crate) fn count(&self) -> usize {
        self.keys.len()
    }

    /// Sets whether all changes are refused.
    pub fn read_only(self, is_read_only: bool) -> Self {
        Self { is_read_only, ..self }
    }

    /// Returns why a request is refused, or `None` if it is not. `bucket` is the one that it is
    /// about, `key` the key that signed it.
    fn refusal(&self, key: Option<&str>, bucket: Option<&str>, operation: &str) -> Option<&str> {
        let is_reading = READING.contains(&operation);
        if self.is_read_only && !is_reading {
            return Some("this gateway is read-only");
        }
        let Some(key) = key.and_then(|id| self.keys.get(id)) else {
            return (!self.is_open).then_some("the request has no signature");
        };
        if key.read_only && !is_reading {
            return Some("this key may only read");
        }
        let allowed = key.buckets.as_deref().zip(bucket);
        let is_allowed =
            allowed.is_none_or(|(buckets, bucket)| buckets.iter().any(|one| one == bucket));
        (!is_allowed).then_some("this key does not open this bucket")
    }

    /// Whether a key opens a bucket.
    pub fn opens(&self, key: Option<&str>, bucket: &str) -> bool {
        self.refusal(key, Some(bucket), "ListObjects").is_none()
    }
}

#[async_trait::async_trait]
impl S3Auth for Keys {
    async fn get_secret_key(&self, id: &str) -> S3Result<SecretKey> {
        match self.keys.get(id) {
            Some(key) => Ok(SecretKey::from(key.secret.clone())),
            None if self.keys.is_empty() => Err(s3_error!(
                InvalidAccessKeyId,
                "this gateway has no keys, and takes requests without a signature"
            )),
            None => Err(s3_error!(InvalidAccessKeyId, "there is no such key")),
        }
    }
}

/// What decides whether a request whose signature is right is answered, before its body is read.
pub struct Admission {
    pub keys: Keys,
    pub memory: TransferMemory,
}

impl Admission {
    /// Waits until there is room for the document of a request, if it has one. The request keeps
    /// the room until it is answered.
    async fn take_room(&self, context: &mut S3AccessContext<'_>) -> S3Result<()> {
        let arrival = context.extensions_mut().get::<BodyArrival>().cloned();
        let is_of_document = arrival.is_some_and(|arrival| arrival.is_of_document());
        // Only here is it known that a request makes a bucket, whose document may be missing.
        if !is_of_document && context.s3_op().name() != "CreateBucket" {
            return Ok(());
        }
        let stated = context.headers().get(CONTENT_LENGTH).and_then(|text| text.to_str().ok());
        let stated = stated.and_then(|text| text.parse().ok()).unwrap_or(MOST_DOCUMENT);
        if stated > MOST_DOCUMENT {
            return Err(too_long_document());
        }
        let room = self.memory.take(context.credentials(), Some(stated)).await?;
        context.extensions_mut().insert(room);
        Ok(())
    }
}

#[async_trait::async_trait]
impl S3Access for Admission {
    async fn check(&self, context: &mut S3AccessContext<'_>) -> S3Result<()> {
        if has_old_signature(context.uri().query(), context.headers()) {
            return Err(s3_error!(
                InvalidRequest,
                "sign with AWS4-HMAC-SHA256, for addresses too (boto3: signature_version='s3v4')"
            ));
        }
        let subject = RequestSubject::of(context.s3_path());
        expect_offered(context.method(), subject, context.uri().query(), context.headers())?;
        expect_length(context.method(), subject, context.headers())?;
        if context.s3_path().is_root() {
            expect_of_all_buckets(context.uri().query())?;
        }
        let key = context.credentials().map(|credentials| credentials.access_key.as_str());
        let bucket = context.s3_path().get_bucket_name();
        match self.keys.refusal(key, bucket, context.s3_op().name()) {
            Some(refusal) => Err(s3_error!(AccessDenied, "{refusal}")),
            None => self.take_room(context).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str, mode: u32) -> Result<Keys> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        paritas_store::place::system::set_mode(file.as_file(), mode).unwrap();
        Keys::read(file.path())
    }

    const TWO: &str = r#"
        [[key]]
        id = "all"
        secret = "0123456789abcdef"
        [[key]]
        id = "one"
        secret = "0123456789abcdef"
        buckets = ["photos"]
        read_only = true
    "#;

    #[test]
    fn a_key_opens_what_it_says() {
        let keys = keys(TWO, 0o600).unwrap();
        let refusal = |key, bucket, operation| keys.refusal(key, Some(bucket), operation).is_some();
        assert!(!refusal(Some("all"), "mail", "PutObject"));
        assert!(!refusal(Some("one"), "photos", "GetObject"));
        assert!(refusal(Some("one"), "photos", "PutObject"));
        assert!(refusal(Some("one"), "mail", "GetObject"));
        assert!(refusal(Some("none"), "photos", "GetObject") && refusal(None, "mail", "GetObject"));
        let frozen = keys.clone().read_only(true);
        assert!(frozen.refusal(Some("all"), Some("mail"), "PutObject").is_some());
        assert!(frozen.refusal(Some("all"), Some("mail"), "GetObject").is_none());
        assert!(Keys::open().refusal(None, Some("mail"), "PutObject").is_none());
    }

    #[test]
    fn flawed_files_are_refused_by_name() {
        for (text, flaw) in [
            ("", "it has no keys"),
            ("[[key]]\nid = 'a'\nsecret = 'short'", "has 5 characters; it must have at least 16"),
            ("[[key]]\nid = 'a'", "missing key `secret`; each key is a table"),
            ("[key]\nid = 'a'", "expected a list; each key is a table [[key]]"),
            ("[[key]]\nid='a'\nsecret='0123456789abcdef'\nbuckets=['Ab']", "opens \"Ab\""),
            ("[[key]]\nid = 'a/b'\nsecret = '0123456789abcdef'", "the id \"a/b\" must have"),
            ("[[key]]\nid = ''\nsecret = '0123456789abcdef'", "the id \"\" must have"),
            ("[[key]]\nid = 'a'\nsecret = '0123456789abcdef'\nbuckets = []", "opens no bucket"),
            (&[TWO, TWO].concat(), "twice"),
            ("[[key]]\nid='a'\nsecret='0123456789abcdef'\nmore=1", "unknown field `more`"),
        ] {
            let error = keys(text, 0o600).err().unwrap().to_string();
            assert!(error.contains(flaw), "{error}");
        }
        let error = keys(TWO, 0o644).err().unwrap().to_string();
        assert!(error.contains("mode 644"), "{error}");
    }
}
