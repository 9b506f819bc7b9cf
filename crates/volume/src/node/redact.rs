//! Secrets that services need, and keeping them out of messages.

use std::fmt;
use std::path::PathBuf;

use super::location::Location;

/// The text that replaces a secret.
const REDACTED: &str = "***";

/// A password or key. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes a secret.
    pub fn new(secret: impl Into<String>) -> Self {
        Self(secret.into())
    }

    /// Returns the secret, for the service that needs it.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Removes the secret from a text.
    pub(super) fn redact(&self, text: &str) -> String {
        if self.0.is_empty() { text.to_owned() } else { text.replace(&self.0, REDACTED) }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

/// The credentials for a service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub(super) struct Credentials {
    /// The name of the user, or of the key.
    pub user: Option<Secret>,
    /// The password, or the secret key.
    pub password: Option<Secret>,
    /// The token of a session with temporary keys.
    pub token: Option<Secret>,
    /// The file of an SSH key.
    pub key: Option<PathBuf>,
}

impl Credentials {
    /// Returns the texts that must not be shown. For a bucket these are all parts of its key,
    /// because servers repeat them in their answers. A user's name is not a secret, and may be part
    /// of any word.
    pub fn secrets(&self, location: &Location) -> Vec<Secret> {
        let key = matches!(location, Location::S3 { .. }).then_some(&self.user);
        let all = [Some(&self.password), Some(&self.token), key];
        all.into_iter().flatten().flatten().cloned().collect()
    }
}

/// Returns a secret, or an empty text, which OpenDAL treats as no secret.
#[cfg(any(feature = "s3", feature = "webdav", feature = "http"))]
pub(super) fn revealed(secret: &Option<Secret>) -> &str {
    secret.as_ref().map_or("", Secret::reveal)
}
