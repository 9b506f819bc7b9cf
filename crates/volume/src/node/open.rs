//! Opening a node from its entry in the volume file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use paritas_store::error::{Error, ErrorKind, Result};
use paritas_store::place::secrets::read_secrets;
use serde::Deserialize;

use super::contact::Contact;
use super::redact::Credentials;
use super::service::Service;
use super::{Caseless, Endpoint, FolderNode, Limited, Location, Node, Secret, Timed};
use crate::config::{Config, NodeEntry};

/// Opens a node of a volume, with the volume's limits. No request is sent to the node yet.
///
/// `base` is the folder of the volume file, and `variable` returns the value of an environment
/// variable.
///
/// # Errors
/// If the credentials cannot be used ([`ErrorKind::Refused`]), or if the URI cannot. The error
/// names the node and shows no secret.
pub fn open(
    entry: &NodeEntry,
    config: &Config,
    base: &Path,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Arc<dyn Node>> {
    let node = open_unlimited(entry, config, base, variable);
    let node = node.map_err(|error| error.at_node(&entry.name))?;
    let is_caseless = entry.abilities.is_some_and(|found| !found.cases);
    let node = if is_caseless { Arc::new(Caseless::new(node)) } else { node };
    let rate = config.limits.rate.map(|rate| rate.as_u64());
    Ok(Arc::new(Limited::to(node, config.limits.requests.get(), rate)))
}

fn open_unlimited(
    entry: &NodeEntry,
    config: &Config,
    base: &Path,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Arc<dyn Node>> {
    let location = Location::parse(&entry.uri, base, variable)?;
    let contact = Contact::new(&entry.name, config.limits.timeout());
    if let Location::Folder(root) = location {
        let folder = FolderNode::over(Arc::clone(&contact), root, config.write.sync);
        return Ok(Arc::new(Timed::over(Arc::new(folder), contact)));
    }
    let source = entry.credentials.as_deref().map(|named| CredentialSource::of(named, base));
    let credentials = Credentials::find(&location, source.as_ref(), variable)
        .map_err(|error| Error::new(ErrorKind::Refused, error.message()))?;
    let service = Service::at(&location, &credentials, &contact)?.with_known(entry.abilities);
    let endpoint = Endpoint::new(service, config.limits.retries, Arc::clone(&contact));
    Ok(Arc::new(Timed::over(Arc::new(endpoint), contact)))
}

/// Where credentials are.
enum CredentialSource {
    /// In environment variables whose names begin with this.
    Variables(String),
    /// In a file.
    File(PathBuf),
}

impl CredentialSource {
    /// A text of capital letters, digits and `_` is the beginning of variables' names; any other
    /// text is a file.
    fn of(named: &str, base: &Path) -> Self {
        let is_variable = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        match named.chars().all(is_variable) {
            true => Self::Variables(named.to_owned()),
            false => Self::File(base.join(shellexpand::tilde(named).as_ref())),
        }
    }
}

/// The file of credentials, in TOML.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CredentialsFile {
    access_key_id: Option<String>,
    secret_access_key: Option<String>,
    session_token: Option<String>,
    user: Option<String>,
    password: Option<String>,
}

impl Credentials {
    /// Finds the credentials for a place: in the environment or in a file, never in the URI.
    fn find(
        location: &Location,
        source: Option<&CredentialSource>,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self> {
        let value = |prefix: &str, name: &str| {
            let value = variable(&format!("{prefix}_{name}"));
            value.filter(|value| !value.is_empty()).ok_or_else(|| unset(prefix, name))
        };
        match (location, source) {
            (Location::Sftp { .. }, Some(CredentialSource::File(key))) => Self::key(key.clone()),
            (Location::Sftp { .. }, Some(CredentialSource::Variables(prefix))) => {
                Self::key(value(prefix, "KEY_FILE")?.into())
            }
            (_, Some(CredentialSource::File(file))) => Self::read(file)?.complete(location, file),
            (Location::S3 { .. }, source) => {
                let prefix = match source {
                    Some(CredentialSource::Variables(prefix)) => prefix,
                    _ => "AWS",
                };
                Ok(Self {
                    user: Some(Secret::new(value(prefix, "ACCESS_KEY_ID")?)),
                    password: Some(Secret::new(value(prefix, "SECRET_ACCESS_KEY")?)),
                    token: value(prefix, "SESSION_TOKEN").ok().map(Secret::new),
                    key: None,
                })
            }
            (_, Some(CredentialSource::Variables(prefix))) => Ok(Self {
                user: Some(Secret::new(value(prefix, "USER")?)),
                password: Some(Secret::new(value(prefix, "PASSWORD")?)),
                ..Self::default()
            }),
            (_, None) => Ok(Self::default()),
        }
    }

    /// Takes the file of an SSH key.
    fn key(key: PathBuf) -> Result<Self> {
        match key.is_file() {
            true => Ok(Self { key: Some(key), ..Self::default() }),
            false => Err(Error::parameters(format!("there is no key file {}", key.display()))),
        }
    }

    /// Checks that a file of credentials has the fields that a location needs.
    fn complete(self, location: &Location, file: &Path) -> Result<Self> {
        let names = match location {
            Location::S3 { .. } => "access_key_id and secret_access_key",
            _ => "user and password",
        };
        match self.user.is_some() && self.password.is_some() {
            true => Ok(self),
            false => Err(Error::parameters(format!("{} lacks {names}", file.display()))),
        }
    }

    /// Reads a file of credentials, which only its owner may use. The parser's error would show a
    /// line of the file, so the error states only the number of the line.
    fn read(file: &Path) -> Result<Self> {
        let shown = file.display();
        let text = read_secrets(file)
            .map_err(|error| Error::parameters(format!("the credentials: {error}")))?;
        let read: CredentialsFile = toml::from_str(&text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or("");
            let line = before.matches('\n').count() + 1;
            Error::parameters(format!(
                "line {line} of the credentials in {shown} cannot be read; it takes \
                 access_key_id, secret_access_key and session_token, or user and password, each as \
                 NAME = \"VALUE\""
            ))
        })?;
        let secret = |text: Option<String>| text.map(Secret::new);
        Ok(Self {
            user: secret(read.access_key_id.or(read.user)),
            password: secret(read.secret_access_key.or(read.password)),
            token: secret(read.session_token),
            key: None,
        })
    }
}

fn unset(prefix: &str, name: &str) -> Error {
    Error::parameters(format!("the environment variable {prefix}_{name} is unset"))
}
