//! Uploads to a bucket, in parts, that were begun and never completed, because their program was
//! killed or gave up. A bucket keeps their parts, invisibly, and its owner pays for them. OpenDAL
//! does not list such uploads, so these requests are made and signed here.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::{Method, Request, StatusCode, header};
use opendal::raw::{Timestamp, percent_encode_path};
use opendal::{Error, ErrorKind, Result};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqsign_aws_v4::{Credential, RequestSigner, StaticCredentialProvider};
use reqsign_core::{Context, Signer};
use serde::Deserialize;

use super::contact::Contact;
use super::redact::{Credentials, revealed};
use crate::names;

/// No upload is so old: ten years.
const NO_AGE: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// The uploads in parts below a prefix of a bucket.
pub(super) struct OpenUploads {
    client: reqwest::Client,
    signer: Signer<Credential>,
    /// URL of the bucket.
    bucket: String,
    /// The beginning of all keys.
    prefix: String,
    /// Gets a sign of life with each answer.
    contact: Arc<Contact>,
}

/// The uploads in one page of the server's list.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ListedUploads {
    #[serde(default, rename = "Upload")]
    uploads: Vec<OpenUpload>,
    #[serde(default)]
    is_truncated: bool,
    #[serde(default)]
    next_key_marker: String,
    #[serde(default)]
    next_upload_id_marker: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct OpenUpload {
    key: String,
    upload_id: String,
    #[serde(default)]
    initiated: String,
}

impl OpenUpload {
    /// Whether the upload was begun at least `age` ago. It is false for an upload of unknown age,
    /// which may still be going on; a server that does not know the age states one of many years.
    fn is_older(&self, age: Duration) -> bool {
        let begun = self.initiated.parse::<Timestamp>().map(SystemTime::from);
        begun.is_ok_and(|begun| (age..NO_AGE).contains(&begun.elapsed().unwrap_or_default()))
    }
}

impl OpenUploads {
    /// Returns the uploads below `prefix` in a bucket. Without an endpoint, it is Amazon's.
    pub fn of(
        (bucket, prefix): (&str, &str),
        endpoint: Option<&str>,
        region: &str,
        credentials: &Credentials,
        client: reqwest::Client,
        contact: Arc<Contact>,
    ) -> Self {
        let key = StaticCredentialProvider::new(
            revealed(&credentials.user),
            revealed(&credentials.password),
        );
        let key = match &credentials.token {
            Some(token) => key.with_session_token(token.reveal()),
            None => key,
        };
        let signer = Signer::new(Context::new(), key, RequestSigner::new("s3", region));
        let amazon = format!("https://s3.{region}.amazonaws.com");
        let endpoint = endpoint.unwrap_or(&amazon).trim_end_matches('/');
        let prefix = match prefix.trim_matches('/') {
            "" => String::new(),
            prefix => format!("{prefix}/"),
        };
        Self { client, signer, bucket: format!("{endpoint}/{bucket}"), prefix, contact }
    }

    /// Removes the uploads of parts of objects that were begun at least `age` ago. Others that
    /// share the bucket may upload files of their own. Returns how many were removed: none if the
    /// server does not list uploads, or does not let this user list them.
    ///
    /// # Errors
    /// If the server cannot be reached, or answers something else.
    pub async fn remove_older(&self, age: Duration) -> Result<u64> {
        let (mut removed, mut after) = (0, String::new());
        loop {
            let prefix = escaped(&self.prefix);
            let url = format!("{}?uploads=&prefix={prefix}{after}", self.bucket);
            let answer = self.send(Method::GET, &url).await?;
            if !answer.status().is_success() && !answer.status().is_server_error()
                || answer.status() == StatusCode::NOT_IMPLEMENTED
            {
                return Ok(removed);
            }
            let page = self.page(answer).await?;
            for upload in page.uploads.iter().filter(|it| self.is_ours(it) && it.is_older(age)) {
                let (key, id) = (percent_encode_path(&upload.key), escaped(&upload.upload_id));
                let url = format!("{}/{key}?uploadId={id}", self.bucket);
                removed += u64::from(self.send(Method::DELETE, &url).await?.status().is_success());
            }
            if !page.is_truncated || page.next_key_marker.is_empty() {
                return Ok(removed);
            }
            let (key, id) = (escaped(&page.next_key_marker), escaped(&page.next_upload_id_marker));
            let next = format!("&key-marker={key}&upload-id-marker={id}");
            // A server that does not understand markers lists the same page again.
            if next == after {
                return Ok(removed);
            }
            after = next;
        }
    }

    fn is_ours(&self, upload: &OpenUpload) -> bool {
        let path = upload.key.strip_prefix(&self.prefix);
        path.and_then(names::parse_part).is_some()
    }

    async fn page(&self, answer: reqwest::Response) -> Result<ListedUploads> {
        let status = answer.status();
        if !status.is_success() {
            return Err(unexpected(format!("the server answers {status}")));
        }
        let text = answer.text().await.map_err(not_sent)?;
        quick_xml::de::from_str(&text)
            .map_err(|_| unexpected("the server's list of uploads cannot be read"))
    }

    async fn send(&self, method: Method, url: &str) -> Result<reqwest::Response> {
        let request = Request::builder().method(method).uri(url).body(());
        let request = request.map_err(|error| unexpected("a request").set_source(error))?;
        let (mut parts, ()) = request.into_parts();
        let signed = self.signer.sign(&mut parts, None).await;
        signed.map_err(|error| unexpected("signing").set_source(error))?;
        // The client sets it, as the version of HTTP needs it.
        parts.headers.remove(header::HOST);
        let request = self.client.request(parts.method, parts.uri.to_string());
        let answer = request.headers(parts.headers).send().await.map_err(not_sent)?;
        self.contact.moved();
        Ok(answer)
    }
}

fn escaped(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

fn not_sent(error: reqwest::Error) -> Error {
    unexpected("listing uploads").set_source(error.without_url())
}

fn unexpected(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Unexpected, message)
}
