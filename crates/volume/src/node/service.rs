//! OpenDAL's operators for services, and what OpenDAL does not say about them.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use futures::stream::{self, StreamExt};
use http::{Method, Request, Response, StatusCode, header};
use opendal::{
    Buffer, HttpBody, HttpTransport, HttpTransporter, OperationContext, Operator, services,
};
use opendal_http_transport_reqwest::ReqwestTransport;
use paritas_store::error::{Error, ErrorKind, Result};

use super::contact::Contact;
#[cfg(feature = "s3")]
use super::parts::OpenUploads;
#[cfg(any(feature = "s3", feature = "webdav", feature = "http"))]
use super::redact::revealed;
use super::redact::{Credentials, Secret};
use super::streamed::Puts;
use super::{Abilities, Location};

/// An operator without layers, and how it is used.
pub(super) struct Service {
    pub operator: Operator,
    pub abilities: Abilities,
    /// Whether files are written under another name and renamed, because the service shows a file
    /// before it is whole.
    pub staged: bool,
    /// Whether files lie in folders, which are listed one after the other.
    pub has_folders: bool,
    /// Whether a part that failed can be sent again by the same writer.
    pub resends: bool,
    /// Whether some signs in names are escaped ([`Service::stored`]).
    pub escapes: bool,
    /// Whether the server reads ranges. True until the server sends a whole file where a range was
    /// asked for.
    pub ranges: Arc<AtomicBool>,
    /// Sends files while they are written, if OpenDAL cannot.
    pub puts: Option<Puts>,
    /// The uploads in parts at a bucket.
    #[cfg(feature = "s3")]
    pub uploads: Option<OpenUploads>,
    /// The texts that must not be shown.
    pub secrets: Vec<Secret>,
}

/// Characters and their escapes. `%`, which begins all escapes, is first, so that it is replaced
/// first and restored last.
const ESCAPES: [(char, &str); 3] = [('%', "%25"), ('?', "%3F"), (';', "%3B")];

impl Service {
    /// Makes the service of a location that is not a folder. All bytes that move are signs of life.
    pub fn at(
        location: &Location,
        credentials: &Credentials,
        contact: &Arc<Contact>,
    ) -> Result<Self> {
        let secrets = credentials.secrets(location);
        let operator = operator(location, credentials)?.map_err(|error| {
            let text = error.to_string();
            Error::parameters(secrets.iter().fold(text, |text, secret| secret.redact(&text)))
        })?;
        let ranges = Arc::new(AtomicBool::new(true));
        let client = http_client();
        let inner = HttpTransporter::new(ReqwestTransport::new(client.clone()));
        let transport = Transport { inner, ranges: ranges.clone(), contact: contact.clone() };
        let context = OperationContext::new().with_http_transport(HttpTransporter::new(transport));
        let staged = matches!(location, Location::Webdav { .. } | Location::Sftp { .. });
        Ok(Self {
            operator: operator.with_context(context),
            abilities: abilities(location),
            staged,
            has_folders: staged,
            resends: !staged,
            escapes: matches!(location, Location::Webdav { .. }),
            ranges,
            #[cfg(feature = "s3")]
            uploads: uploads(location, credentials, client.clone(), contact),
            puts: puts(location, credentials, client, contact),
            secrets,
        })
    }

    /// Returns the path under which the service has a file. A WebDAV server gets a file's new name
    /// in a URL. Some servers decode the escapes before they parse the URL, so that `?` and `;`
    /// would end the name.
    pub fn stored<'a>(&self, path: &'a str) -> Cow<'a, str> {
        let escape = |path: &str, (sign, escape)| path.replace(sign, escape);
        match self.escapes && path.contains(ESCAPES.map(|(sign, _)| sign)) {
            true => {
                ESCAPES.into_iter().fold(path.to_owned(), |path, pair| escape(&path, pair)).into()
            }
            false => path.into(),
        }
    }

    /// Returns the path of a file that the service stores as `stored`.
    pub fn shown(&self, stored: &str) -> String {
        let restore = |path: String, (sign, escape): (char, &str)| {
            path.replace(escape, sign.encode_utf8(&mut [0; 4]))
        };
        match self.escapes {
            true => ESCAPES.into_iter().rev().fold(stored.to_owned(), restore),
            false => stored.to_owned(),
        }
    }

    /// Restricts the abilities to the ones that were found earlier. Abilities that the kind of
    /// service lacks stay absent.
    pub fn with_known(mut self, known: Option<Abilities>) -> Self {
        if let Some(known) = known {
            let all = self.abilities;
            self.abilities = Abilities {
                write: all.write && known.write,
                list: all.list && known.list,
                create: all.create && known.create,
                ranges: all.ranges && known.ranges,
                streams: all.streams && known.streams,
                cases: all.cases && known.cases,
            };
        }
        self
    }
}

/// Returns the abilities of a kind of service.
fn abilities(location: &Location) -> Abilities {
    let all = Abilities::ALL;
    match location {
        Location::Folder(_) | Location::S3 { .. } => all,
        Location::Memory => Abilities { streams: false, ..all },
        Location::Webdav { .. } | Location::Sftp { .. } => Abilities { create: false, ..all },
        Location::Http { .. } => {
            Abilities { write: false, list: false, create: false, streams: false, ..all }
        }
    }
}

#[cfg(not(all(feature = "s3", feature = "webdav", feature = "sftp", feature = "http", unix)))]
const NOT_BUILT: &str =
    "this program was built without the service of the URI (on Windows there is no SFTP)";

/// Makes the operator of a location that is not a folder.
#[cfg_attr(
    not(any(feature = "s3", feature = "webdav", feature = "sftp", feature = "http")),
    expect(unused_variables, reason = "memory needs no credentials")
)]
fn operator(location: &Location, credentials: &Credentials) -> Result<opendal::Result<Operator>> {
    match location {
        Location::Folder(_) => Err(Error::new(ErrorKind::Internal, "a folder is not a service")),
        Location::Memory => Ok(Operator::new(services::Memory::default())),
        #[cfg(feature = "s3")]
        Location::S3 { bucket, prefix, endpoint, region } => {
            let builder = services::S3::default().bucket(bucket).root(prefix).region(region);
            Ok(Operator::new(with_keys(builder, endpoint.as_deref(), credentials)))
        }
        #[cfg(feature = "webdav")]
        Location::Webdav { endpoint, root } => {
            let builder = services::Webdav::default().endpoint(endpoint).root(root);
            let builder = builder.username(revealed(&credentials.user));
            Ok(Operator::new(builder.password(revealed(&credentials.password))))
        }
        #[cfg(all(feature = "sftp", unix))]
        Location::Sftp { host, root, known_hosts } => Ok(Operator::new(super::sftp::SftpFolder {
            host: host.clone(),
            root: root.clone(),
            key: credentials.key.clone(),
            host_key_checking: known_hosts.checking(),
        })),
        #[cfg(feature = "http")]
        Location::Http { endpoint, root } => {
            let builder = services::Http::default().endpoint(endpoint).root(root);
            let builder = builder.username(revealed(&credentials.user));
            Ok(Operator::new(builder.password(revealed(&credentials.password))))
        }
        #[cfg(not(all(
            feature = "s3",
            feature = "webdav",
            feature = "sftp",
            feature = "http",
            unix
        )))]
        _ => Err(Error::new(ErrorKind::Unsupported, NOT_BUILT)),
    }
}

/// Takes the keys of a bucket only from the credentials, not from the places where Amazon's tools
/// keep them. Without an endpoint, the bucket is Amazon's.
#[cfg(feature = "s3")]
fn with_keys(
    builder: services::S3,
    endpoint: Option<&str>,
    credentials: &Credentials,
) -> services::S3 {
    let builder = match endpoint {
        Some(endpoint) => builder.endpoint(endpoint),
        None => builder,
    };
    builder
        .access_key_id(revealed(&credentials.user))
        .secret_access_key(revealed(&credentials.password))
        .session_token(revealed(&credentials.token))
        .disable_config_load()
        .disable_ec2_metadata()
}

/// Returns the sender of files to a WebDAV server while they are written.
fn puts(
    location: &Location,
    credentials: &Credentials,
    client: reqwest::Client,
    contact: &Arc<Contact>,
) -> Option<Puts> {
    let Location::Webdav { endpoint, root } = location else { return None };
    let (endpoint, root) = (endpoint.clone(), root.clone());
    let Credentials { user, password, .. } = credentials.clone();
    Some(Puts { client, endpoint, root, user, password, contact: contact.clone() })
}

/// Returns the uploads in parts at a bucket.
#[cfg(feature = "s3")]
fn uploads(
    location: &Location,
    credentials: &Credentials,
    client: reqwest::Client,
    contact: &Arc<Contact>,
) -> Option<OpenUploads> {
    let Location::S3 { bucket, prefix, endpoint, region } = location else { return None };
    let (place, endpoint) = ((&**bucket, &**prefix), endpoint.as_deref());
    Some(OpenUploads::of(place, endpoint, region, credentials, client, contact.clone()))
}

/// Returns the client for HTTP, whose connections all services share. Its cryptography is ring's,
/// unless the program has chosen another for the whole process.
pub(super) fn http_client() -> reqwest::Client {
    static CLIENT: LazyLock<reqwest::Client> = LazyLock::new(|| {
        // An error means that the program has chosen already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        reqwest::Client::new()
    });
    CLIENT.clone()
}

/// A transport that notices what OpenDAL does not: a server that sends the whole file instead of a
/// range, a server that wants other credentials or gives no reason, and bytes that move.
struct Transport {
    inner: HttpTransporter,
    ranges: Arc<AtomicBool>,
    contact: Arc<Contact>,
}

impl Transport {
    fn watched(&self, body: Buffer) -> Buffer {
        Iterator::flat_map(body, |bytes| self.contact.signs(bytes)).collect()
    }
}

impl HttpTransport for Transport {
    async fn fetch(&self, request: Request<Buffer>) -> opendal::Result<Response<HttpBody>> {
        let range = request.headers().contains_key(header::RANGE);
        let is_head = request.method() == Method::HEAD;
        let request = request.map(|body| self.watched(body));
        let response = self.inner.fetch(request).await?;
        let contact = Arc::clone(&self.contact);
        let response = response
            .map(|body| body.map_inner(|bytes| Box::new(bytes.inspect(move |_| contact.moved()))));
        self.contact.moved();
        match response.status() {
            StatusCode::OK if range => {
                self.ranges.store(false, Ordering::Relaxed);
                let message = "the server does not read ranges";
                Err(opendal::Error::new(opendal::ErrorKind::Unsupported, message))
            }
            StatusCode::UNAUTHORIZED => {
                let message = "the server does not accept the user and password";
                Err(opendal::Error::new(opendal::ErrorKind::PermissionDenied, message))
            }
            status if !status.is_success() && (is_head || is_empty(&response)) => {
                // OpenDAL takes the body of such an answer as its message.
                let message = Buffer::from(format!("the server answers {status}"));
                Ok(response.map(|_| HttpBody::new(stream::iter([Ok(message)]), None)))
            }
            _ => Ok(response),
        }
    }
}

/// Whether an answer has no body.
fn is_empty(response: &Response<HttpBody>) -> bool {
    response.headers().get(header::CONTENT_LENGTH).is_some_and(|length| length == "0")
}
