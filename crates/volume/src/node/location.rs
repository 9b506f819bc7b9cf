//! The location of a node: the parsed URI from the volume file.
//!
//! | URI | place |
//! | --- | --- |
//! | `/mnt/a`, `../b`, `~/c`, `fs:/mnt/a` | a folder; relative ones are relative to the volume file |
//! | `s3://bucket/prefix?endpoint=http://host:port&region=name` | a bucket, or a part of it |
//! | `webdav://host/path`, `webdav+http://host:port/path` | a folder of a WebDAV server |
//! | `sftp://user@host:port/path?known_hosts=strict` | a folder of a host with an SSH server |
//! | `https://host/path`, `http://host:port/path` | a folder of a web server, to read from |
//! | `memory:` | nowhere: gone with the process |
//!
//! Errors never repeat a URI that may contain a password.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use paritas_store::error::{Error, Result};
use percent_encoding::percent_decode_str;
use url::Url;

/// Time to wait for resolving the links of folders. If it is too short, marks still reveal two
/// nodes at one place.
const RESOLVED: Duration = Duration::from_secs(1);

/// Where a node is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Location {
    /// A directory of this machine.
    Folder(PathBuf),
    /// The memory of this process.
    Memory,
    /// A bucket.
    S3 {
        /// Name of the bucket.
        bucket: String,
        /// The prefix of all keys.
        prefix: String,
        /// URL of the server, if it is not Amazon's.
        endpoint: Option<String>,
        /// Region: from the URI, else from `AWS_REGION`, else `us-east-1`.
        region: String,
    },
    /// A folder of a WebDAV server.
    Webdav {
        /// Scheme, host and port.
        endpoint: String,
        /// Path of the folder.
        root: String,
    },
    /// A folder of a host with an SSH server.
    Sftp {
        /// The host.
        host: SshHost,
        /// Path of the folder.
        root: String,
        /// Which hosts are trusted.
        known_hosts: KnownHosts,
    },
    /// A folder of a web server.
    Http {
        /// Scheme, host and port.
        endpoint: String,
        /// Path of the folder.
        root: String,
    },
}

/// Which hosts are trusted by their keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KnownHosts {
    /// Hosts in the user's file of known hosts.
    #[default]
    Strict,
    /// Known hosts, and unknown ones, which are added to the file.
    Add,
    /// All hosts.
    Accept,
}

impl KnownHosts {
    const NAMES: [(&'static str, Self); 3] =
        [("strict", Self::Strict), ("add", Self::Add), ("accept", Self::Accept)];

    /// Returns the value of this setting for the program `ssh`.
    #[cfg(all(feature = "sftp", unix))]
    pub(super) fn checking(self) -> &'static str {
        match self {
            Self::Strict => "yes",
            Self::Add => "accept-new",
            Self::Accept => "no",
        }
    }

    fn parse(word: &str) -> Result<Self> {
        let found = Self::NAMES.iter().find(|(name, _)| *name == word);
        found.map(|(_, which)| *which).ok_or_else(|| {
            Error::parameters("`known_hosts` of a URI must be strict, add or accept")
        })
    }
}

/// A host as `ssh` is told of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SshHost {
    /// The user; `None` is the one of the configuration of `ssh`, or of this process.
    pub user: Option<String>,
    /// A name or an address.
    pub host: String,
    /// `None` is the usual port, or that of the configuration.
    pub port: Option<u16>,
}

impl Location {
    /// Parses a URI. `~`, `$VAR` and `${VAR}` are replaced by values of variables, which `variable`
    /// returns. Relative folders are relative to `base`.
    ///
    /// # Errors
    /// If the URI has an unknown scheme or option, lacks a part, or contains a password.
    pub fn parse(
        uri: &str,
        base: &Path,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self> {
        let uri = expand(uri, variable)?;
        if uri.is_empty() {
            return Err(Error::parameters("`uri` is empty; give a folder or a URI"));
        }
        match scheme(&uri) {
            None if is_of_scp(&uri) => Err(Error::parameters(format!(
                "{uri:?} names a folder of another machine as scp does: write sftp://USER@HOST/FOLDER, \
                 or fs:{uri} if it is a folder of this machine"
            ))),
            None => Ok(Self::Folder(base.join(uri))),
            Some("fs") => {
                let path = &uri["fs:".len()..];
                Ok(Self::Folder(base.join(path.strip_prefix("//").unwrap_or(path))))
            }
            Some("memory") => Ok(Self::Memory),
            Some(scheme) => Self::remote(scheme, &uri, variable),
        }
    }

    /// Returns locations in a canonical form, so that equal places are equal: a folder without
    /// links and `..`, if it exists and its disk answers within [`RESOLVED`].
    pub(crate) fn canonical(locations: Vec<Self>) -> Vec<Self> {
        // Each folder has its own thread, because the thread of a folder on a disk that hangs never
        // ends.
        let resolve = |location: &Self| {
            let Self::Folder(folder) = location else { return None };
            let (folder, (line, found)) = (folder.clone(), channel());
            let work = move || drop(line.send(std::fs::canonicalize(folder)));
            // If the system has no more threads, the folder stays as it was given.
            thread::Builder::new().spawn(work).ok()?;
            Some(found)
        };
        let folders: Vec<_> = locations.iter().map(resolve).collect();
        let end = Instant::now() + RESOLVED;
        let found = |folder: Option<Receiver<io::Result<PathBuf>>>| {
            let left = end.saturating_duration_since(Instant::now());
            folder?.recv_timeout(left).ok()?.ok()
        };
        let pairs = locations.into_iter().zip(folders);
        pairs.map(|(given, folder)| found(folder).map_or(given, Self::Folder)).collect()
    }

    /// Whether two canonical locations are equal, or one is a folder inside the other on the same
    /// machine or service.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        let nested = |one: &Path, other: &Path| one.starts_with(other) || other.starts_with(one);
        match (self, other) {
            (Self::Folder(one), Self::Folder(other)) => nested(one, other),
            _ => self
                .folder_at_service()
                .zip(other.folder_at_service())
                .map_or(self == other, |((at, one), (other_at, other))| {
                    at == other_at && nested(one, other)
                }),
        }
    }

    /// Returns what tells a service from others, and the path of the folder there.
    fn folder_at_service(&self) -> Option<(String, &Path)> {
        let (service, folder) = match self {
            Self::Folder(_) | Self::Memory => return None,
            Self::S3 { bucket, prefix, endpoint, .. } => {
                (format!("{} {bucket}", endpoint.as_deref().unwrap_or("Amazon")), prefix)
            }
            Self::Webdav { endpoint, root } | Self::Http { endpoint, root } => {
                (endpoint.clone(), root)
            }
            Self::Sftp { host, root, .. } => {
                (format!("{} {}", host.host.to_lowercase(), host.port.unwrap_or(22)), root)
            }
        };
        Some((service, Path::new(folder.trim_matches('/'))))
    }

    fn remote(scheme: &str, uri: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<Self> {
        let default_region = || variable("AWS_REGION").unwrap_or_else(|| "us-east-1".to_owned());
        let mut parts = UriParts::of(uri)?;
        let location = match scheme {
            "s3" => Self::S3 {
                bucket: parts.host()?,
                prefix: parts.path()?.trim_start_matches('/').to_owned(),
                endpoint: parts.endpoint_option()?,
                region: parts.options.remove("region").unwrap_or_else(default_region),
            },
            "webdav" | "webdav+https" => parts.webdav("https")?,
            "webdav+http" => parts.webdav("http")?,
            "http" | "https" => {
                Self::Http { endpoint: parts.endpoint(scheme)?, root: parts.path()? }
            }
            "sftp" => {
                let known_hosts = parts.options.remove("known_hosts");
                Self::Sftp {
                    host: parts.ssh_host()?,
                    root: parts.path()?,
                    known_hosts: known_hosts
                        .map_or(Ok(KnownHosts::default()), |word| KnownHosts::parse(&word))?,
                }
            }
            _ => {
                return Err(Error::parameters(format!(
                    "the scheme {scheme}: is unknown; a node is a folder, or fs:, s3:, webdav:, \
                     webdav+http:, sftp:, https:, http: or memory:"
                )));
            }
        };
        parts.all_used().map(|()| location)
    }
}

/// Returns the scheme of a URI, or `None` if it is a path. A single letter is a drive.
fn scheme(uri: &str) -> Option<&str> {
    let (scheme, _) = uri.split_once(':')?;
    let is_letter = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    (scheme.len() > 1 && scheme.chars().all(is_letter)).then_some(scheme)
}

/// Whether a text that is no URI names a user and a host: USER@HOST:FOLDER.
fn is_of_scp(text: &str) -> bool {
    let before = text.split_once(':').map(|(before, _)| before);
    before.is_some_and(|before| before.contains('@') && !before.contains('/'))
}

fn expand(uri: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<String> {
    let home = || variable("HOME").or_else(|| variable("USERPROFILE"));
    let value = |name: &str| {
        variable(name).map(Some).ok_or_else(|| {
            Error::parameters(format!("a URI uses the environment variable {name}, which is unset"))
        })
    };
    let expanded = shellexpand::full_with_context(uri, home, value);
    expanded.map(Into::into).map_err(|error| error.cause)
}

/// The parts of a URI with a host.
struct UriParts {
    url: Url,
    options: BTreeMap<String, String>,
}

impl UriParts {
    fn of(uri: &str) -> Result<Self> {
        let url = Url::parse(uri)
            .map_err(|error| Error::parameters(format!("a node's URI cannot be read: {error}")))?;
        if url.password().is_some() || (!url.username().is_empty() && url.scheme() != "sftp") {
            return Err(Error::parameters(
                "a URI must not contain a user's password; name the environment variables or the \
                 file that have it by `credentials`",
            ));
        }
        if url.fragment().is_some() {
            return Err(Error::parameters(
                "a # in a node's URI would end its path: write %23 for a # in a name",
            ));
        }
        let options = url.query_pairs().into_owned().collect();
        Ok(Self { url, options })
    }

    fn host(&self) -> Result<String> {
        let host = self.url.host_str().filter(|host| !host.is_empty());
        host.map(str::to_owned).ok_or_else(|| {
            let scheme = self.url.scheme();
            let (what, form) = match scheme {
                "s3" => ("bucket", "s3://BUCKET/PREFIX?endpoint=https://HOST"),
                "sftp" => ("host", "sftp://USER@HOST/FOLDER"),
                _ => ("host", "webdav://HOST/FOLDER"),
            };
            Error::parameters(format!("a URI of {scheme}: lacks the {what}, as in {form}"))
        })
    }

    /// Returns the path without escapes.
    fn path(&self) -> Result<String> {
        let path = percent_decode_str(self.url.path()).decode_utf8();
        let path = path.map_err(|_| Error::parameters("the path of a URI is not UTF-8"))?;
        Ok(if path.is_empty() { "/".to_owned() } else { path.into_owned() })
    }

    fn endpoint(&self, scheme: &str) -> Result<String> {
        let port = self.url.port().map(|port| format!(":{port}")).unwrap_or_default();
        Ok(format!("{scheme}://{}{port}", self.host()?))
    }

    fn ssh_host(&self) -> Result<SshHost> {
        let user = percent_decode_str(self.url.username()).decode_utf8();
        let user = user.map_err(|_| Error::parameters("the user of a URI is not UTF-8"))?;
        let host = self.host()?;
        Ok(SshHost {
            user: (!user.is_empty()).then(|| user.into_owned()),
            // An address of IPv6 stands in brackets.
            host: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
            port: self.url.port(),
        })
    }

    fn webdav(&self, scheme: &str) -> Result<Location> {
        Ok(Location::Webdav { endpoint: self.endpoint(scheme)?, root: self.path()? })
    }

    /// Returns the option `endpoint`, a URL that must not contain a password either.
    fn endpoint_option(&mut self) -> Result<Option<String>> {
        let Some(endpoint) = self.options.remove("endpoint") else {
            return Ok(None);
        };
        let wrong = || {
            Error::parameters(
                "the `endpoint` of a URI must be http://HOST or https://HOST, with a port if it \
                 has another one, and nothing after it",
            )
        };
        if !endpoint.starts_with("http://") && !endpoint.starts_with("https://") {
            return Err(wrong());
        }
        let inner = Self::of(&endpoint)?;
        match inner.url.path() == "/" && inner.options.is_empty() {
            true => inner.endpoint(inner.url.scheme()).map(Some),
            false => Err(wrong()),
        }
    }

    fn all_used(&self) -> Result<()> {
        match self.options.keys().next() {
            None => Ok(()),
            Some(key) => Err(Error::parameters(format!(
                "a URI has the unknown option {key:?}; known ones are endpoint and region for s3:, \
                 known_hosts for sftp:"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paritas_store::error::ErrorKind;

    fn parse(uri: &str) -> Result<Location> {
        let variable = |name: &str| match name {
            "HOME" => Some("/home/me".to_owned()),
            "DISK" => Some("d1".to_owned()),
            "AWS_REGION" => Some("eu-2".to_owned()),
            _ => None,
        };
        Location::parse(uri, Path::new("/volumes"), &variable)
    }

    #[test]
    fn folders_are_relative_to_the_volume_file() {
        let folders = [
            ("/mnt/a", "/mnt/a"),
            ("b", "/volumes/b"),
            ("fs:b", "/volumes/b"),
            ("fs:///mnt/c", "/mnt/c"),
            ("~/d", "/home/me/d"),
            ("/mnt/${DISK}/x", "/mnt/d1/x"),
        ];
        for (uri, folder) in folders {
            assert_eq!(parse(uri).unwrap(), Location::Folder(folder.into()), "{uri}");
        }
    }

    #[test]
    fn services_have_hosts_and_options() {
        let text = |text: &str| text.to_owned();
        let bucket = "s3://bucket/a/b?endpoint=http://127.0.0.1:9000&region=eu-1";
        assert_eq!(
            parse(bucket).unwrap(),
            Location::S3 {
                bucket: text("bucket"),
                prefix: text("a/b"),
                endpoint: Some(text("http://127.0.0.1:9000")),
                region: text("eu-1"),
            }
        );
        let region = |uri| match parse(uri).unwrap() {
            Location::S3 { region, .. } => region,
            other => panic!("{other:?}"),
        };
        assert_eq!(region("s3://bucket"), "eu-2");
        let webdav =
            |endpoint, root| Location::Webdav { endpoint: text(endpoint), root: text(root) };
        assert_eq!(parse("webdav://h/a%20b").unwrap(), webdav("https://h", "/a b"));
        assert_eq!(parse("webdav+http://h:81").unwrap(), webdav("http://h:81", "/"));
        let host = |user: Option<&str>, host, port| SshHost {
            user: user.map(text),
            host: text(host),
            port,
        };
        assert_eq!(
            parse("sftp://me@h:2222/data?known_hosts=add").unwrap(),
            Location::Sftp {
                host: host(Some("me"), "h", Some(2222)),
                root: text("/data"),
                known_hosts: KnownHosts::Add,
            }
        );
        assert_eq!(
            parse("sftp://me%40home@[fe80::1]/data").unwrap(),
            Location::Sftp {
                host: host(Some("me@home"), "fe80::1", None),
                root: text("/data"),
                known_hosts: KnownHosts::Strict,
            }
        );
        assert_eq!(
            parse("http://h:8080/x").unwrap(),
            Location::Http { endpoint: text("http://h:8080"), root: text("/x") }
        );
    }

    #[test]
    fn what_is_wrong_is_named_but_no_password() {
        let wrong = [
            ("ftp://h/x", "ftp:"),
            ("s3:///x", "lacks the bucket"),
            ("/mnt/${NOWHERE}", "NOWHERE"),
            ("sftp://h/x?known_hosts=perhaps", "strict, add or accept"),
            ("s3://b?region=x&secret=Sentinel", "\"secret\""),
            ("webdav://me:Sentinel@h/x", "`credentials`"),
            ("sftp://me:Sentinel@h/x", "`credentials`"),
            ("http://Sentinel@h/x", "`credentials`"),
            ("s3://b?endpoint=http://me:Sentinel@h", "`credentials`"),
            ("s3://b?endpoint=h:9000", "http://HOST"),
            ("s3://b?endpoint=http://h/some/path", "nothing after it"),
            ("sftp://h/data#1", "%23"),
            ("webdav://me:Sentinel@h:port/x", "cannot be read"),
        ];
        for (uri, part) in wrong {
            let error = parse(uri).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Parameters, "{uri}");
            let shown = format!("{error} {error:?}");
            assert!(shown.contains(part), "{uri}: {shown}");
            assert!(!shown.contains("Sentinel"), "{uri}: {shown}");
        }
    }

    /// Folders of one service may lie inside each other, as folders of one machine may.
    #[test]
    fn folders_of_services_overlap() {
        let overlaps = |one: &str, other: &str| {
            let (one, other) = (parse(one).unwrap(), parse(other).unwrap());
            assert_eq!(one.overlaps(&other), other.overlaps(&one));
            one.overlaps(&other)
        };
        for (one, other) in [
            ("s3://b", "s3://b/tank"),
            ("s3://b/tank?region=a", "s3://b/tank/1?region=b"),
            ("webdav://h/a", "webdav://h/a/"),
            ("webdav://h/a", "https://h/a/b"),
            ("sftp://me@h/a/b", "sftp://you@h/a"),
            ("sftp://h/a", "sftp://H:22/a"),
        ] {
            assert!(overlaps(one, other), "{one} {other}");
        }
        for (one, other) in [
            ("s3://b/tank1", "s3://b/tank2"),
            ("s3://b/tank", "s3://b/tank2"),
            ("s3://b/a", "s3://b/a?endpoint=http://h"),
            ("webdav://h/a", "webdav://h:81/a"),
            ("sftp://h/a", "sftp://h:23/a"),
            ("/a", "sftp://h/a"),
        ] {
            assert!(!overlaps(one, other), "{one} {other}");
        }
    }
}
