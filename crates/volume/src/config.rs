//! The volume file: what a volume is made of, in TOML, for people to read and change.

use std::io::{self, Write as _};
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

use bytesize::ByteSize;
use serde::Deserialize;
use tempfile::NamedTempFile;

use crate::node::Abilities;
use crate::{Error, ErrorKind, Result};

/// A volume file.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Config {
    /// Name of the volume, for people.
    pub name: String,
    /// Number of the volume, drawn when it was made: 32 hexadecimal digits.
    pub id: String,
    /// The erasure code, such as `4+2`.
    pub code: String,
    /// Bytes of an object in a block of a shard: what is read and checked at a time.
    #[serde(default = "default_block")]
    pub block: ByteSize,
    /// How much memory, time and traffic the volume may take.
    #[serde(default)]
    pub limits: Limits,
    /// When an object is written.
    #[serde(default)]
    pub write: WriteRules,
    /// When a second node is asked because the first one is slow.
    #[serde(default)]
    pub hedge: Hedge,
    /// The nodes.
    #[serde(default, rename = "node")]
    pub nodes: Vec<NodeEntry>,
}

/// How much memory, time and traffic a volume may take.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of memory of one put or get.
    pub memory: ByteSize,
    /// Number of requests to a node at a time.
    pub requests: NonZeroUsize,
    /// Bytes a second to and from a node, if there is a limit.
    pub rate: Option<ByteSize>,
    /// Bytes a second to and from a node for repair and promotion, if there is a limit.
    pub background_rate: Option<ByteSize>,
    /// Seconds after which a node that does not answer has failed.
    pub timeout: f64,
    /// How often a request that failed is repeated.
    pub retries: usize,
}

/// When an object counts as written.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct WriteRules {
    /// Number of shards that may be missing.
    pub missing: usize,
    /// Whether files in folders are synced, so that they survive a power cut.
    pub sync: bool,
}

impl Default for WriteRules {
    fn default() -> Self {
        Self { missing: 0, sync: true }
    }
}

/// When a second node is asked because the first one is slow.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Hedge {
    /// Fraction of a node's answers that came sooner than the one that is waited for.
    pub quantile: f64,
    /// Milliseconds that are always waited for.
    pub at_least: u64,
    /// Number of additional requests, in percent of all.
    pub most: f64,
}

/// A node of a volume file.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct NodeEntry {
    /// Name of the node in messages and manifests.
    pub name: String,
    /// Where it is: see [`crate::node::Location`].
    pub uri: String,
    /// Nodes of one domain may fail together.
    domain: Option<String>,
    /// Where credentials are: the beginning of environment variables' names, or a file.
    pub credentials: Option<String>,
    /// Whether the node is to be emptied: nothing new goes there.
    #[serde(default)]
    pub drained: bool,
    /// What was found out about the node when it was added.
    pub abilities: Option<Abilities>,
}

impl NodeEntry {
    /// Creates the entry of a node that is a domain of its own.
    pub fn new(name: impl Into<String>, uri: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            uri: uri.into(),
            domain: None,
            credentials: None,
            drained: false,
            abilities: None,
        }
    }

    /// Returns the domain: nodes of one domain may fail together. A node without one is its own.
    pub fn domain(&self) -> &str {
        self.domain.as_deref().unwrap_or(&self.name)
    }

    /// Sets the domain.
    pub fn with_domain(mut self, domain: impl Into<String>) -> Self {
        self.domain = Some(domain.into());
        self
    }
}

fn default_block() -> ByteSize {
    ByteSize::kib(256)
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory: ByteSize::mib(256),
            requests: const { NonZeroUsize::new(4).unwrap() },
            rate: None,
            background_rate: None,
            timeout: 30.0,
            retries: 3,
        }
    }
}

impl Limits {
    /// Returns how long a node that does not answer is waited for.
    pub fn timeout(&self) -> Duration {
        Duration::try_from_secs_f64(self.timeout).unwrap_or(Duration::MAX)
    }
}

impl Default for Hedge {
    fn default() -> Self {
        Self { quantile: 0.95, at_least: 20, most: 15.0 }
    }
}

impl Config {
    /// Reads a volume file.
    ///
    /// # Errors
    /// If the file cannot be read ([`ErrorKind::Io`]), is no volume file
    /// ([`ErrorKind::NotRecognised`]), or has a key or value that cannot be used
    /// ([`ErrorKind::Parameters`]). The message names the file, the line and the key.
    pub fn read(path: &Path) -> Result<Self> {
        let shown = path.display();
        let text = std::fs::read(path).map_err(|error| {
            Error::new(ErrorKind::Io, format!("cannot read the volume file {shown}: {error}"))
                .because(error)
        })?;
        let text = String::from_utf8_lossy(&text);
        Self::parse(&text).map_err(|error| match is_volume_file(&text) {
            true => Error::new(error.kind(), format!("{shown}: {error}")),
            false => {
                let message = format!("{shown} is no volume file: it has no key `id`");
                Error::new(ErrorKind::NotRecognised, message)
            }
        })
    }

    /// Takes the text of a volume file apart.
    ///
    /// # Errors
    /// If a key is unknown or lacking, or if a value cannot be used. The message names the line and
    /// the key, and says what may stand there; it shows no line, which may contain a password that
    /// does not belong there.
    pub fn parse(text: &str) -> Result<Self> {
        let config: Self = toml::from_str(text).map_err(|error| located(text, &error))?;
        config.check().map(|()| config)
    }

    /// Returns what a new volume file with these nodes would say, without writing it.
    ///
    /// # Errors
    /// If a name or code cannot be used ([`ErrorKind::Parameters`]).
    pub fn draft(name: &str, code: &str, nodes: &[NodeEntry]) -> Result<Self> {
        Self::parse(&template(name, &random_id()?, code, nodes))
    }

    /// Writes a new volume file, in which comments explain every key.
    ///
    /// # Errors
    /// If there is such a file already ([`ErrorKind::Exists`]), if it cannot be written
    /// ([`ErrorKind::Io`]), or if a name or code cannot be used ([`ErrorKind::Parameters`]).
    pub fn init(path: &Path, name: &str, code: &str, nodes: &[NodeEntry]) -> Result<Self> {
        let shown = path.display();
        let text = template(name, &random_id()?, code, nodes);
        let config = Self::parse(&text)?;
        let failed = |error: io::Error| {
            let (kind, why) = match error.kind() {
                io::ErrorKind::AlreadyExists => (ErrorKind::Exists, "it exists".to_owned()),
                _ => (ErrorKind::Io, error.to_string()),
            };
            Error::new(kind, format!("cannot write the volume file {shown}: {why}")).because(error)
        };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let mut file = NamedTempFile::new_in(folder.unwrap_or(Path::new("."))).map_err(failed)?;
        file.write_all(text.as_bytes()).and_then(|()| file.as_file().sync_all()).map_err(failed)?;
        file.persist_noclobber(path).map_err(|error| failed(error.error))?;
        Ok(config)
    }

    fn check(&self) -> Result<()> {
        let is_digit = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
        let check = |holds: bool, message: String| match holds {
            true => Ok(()),
            false => Err(Error::parameters(message)),
        };
        check(
            self.id.len() == 32 && self.id.chars().all(is_digit),
            format!("`id` must be 32 hexadecimal digits in small letters; got {:?}", self.id),
        )?;
        let block = self.block.as_u64();
        check(
            (1..=1 << 30).contains(&block),
            format!("`block` must be between 1 byte and 1 GiB; got {block} bytes"),
        )?;
        let timeout = self.limits.timeout;
        check(
            timeout > 0.0 && timeout <= 86400.0,
            format!("`limits.timeout` must be between 0 and 86400 seconds; got {timeout}"),
        )?;
        let quantile = self.hedge.quantile;
        check(
            quantile > 0.0 && quantile < 1.0,
            format!("`hedge.quantile` must be between 0 and 1; got {quantile}"),
        )?;
        let most = self.hedge.most;
        check(
            (0.0..=1000.0).contains(&most),
            format!("`hedge.most` must be between 0 and 1000 percent; got {most}"),
        )?;
        self.nodes.iter().enumerate().try_for_each(|(index, node)| self.check_node(index, node))
    }

    fn check_node(&self, index: usize, node: &NodeEntry) -> Result<()> {
        let is_word = |c: char| c.is_alphanumeric() || "-_.".contains(c);
        if node.name.is_empty() || !node.name.chars().all(is_word) {
            return Err(Error::parameters(format!(
                "`name` of node {} must consist of letters, digits, `-`, `_` and `.`; got {:?}",
                index + 1,
                node.name
            )));
        }
        match self.nodes[..index].iter().any(|other| other.name == node.name) {
            true => Err(Error::parameters(format!("two nodes have the name {:?}", node.name))),
            false => Ok(()),
        }
    }
}

/// Whether a text has the key that every volume file has, be it otherwise right or wrong.
fn is_volume_file(text: &str) -> bool {
    let mut entries = text.lines().filter_map(|line| line.split_once('='));
    entries.any(|(key, _)| key.trim() == "id")
}

/// Names the line and the key of an error, but does not show the line.
fn located(text: &str, error: &toml::de::Error) -> Error {
    let Some(before) = error.span().and_then(|span| text.get(..span.start)) else {
        return Error::parameters(error.message());
    };
    let number = before.matches('\n').count();
    let line = text.lines().nth(number).unwrap_or("");
    let key = line.split('=').next().unwrap_or("").trim();
    let is_key = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let key = if is_key { format!(", `{key}`") } else { String::new() };
    Error::parameters(format!("line {}{key}: {}", number + 1, error.message()))
}

/// Draws the number of a volume.
fn random_id() -> Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::new(ErrorKind::Io, "cannot draw a random number").because(error))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Returns the text of a new volume file.
fn template(name: &str, id: &str, code: &str, nodes: &[NodeEntry]) -> String {
    let head = TEMPLATE
        .replace("{name}", &quoted(name))
        .replace("{id}", &quoted(id))
        .replace("{code}", &quoted(code));
    nodes.iter().fold(head, |text, node| text + &node_template(node))
}

/// Returns the text of a node.
fn node_template(node: &NodeEntry) -> String {
    let optional = |key: &str, value: &Option<String>| match value {
        Some(value) => format!("{key} = {}\n", quoted(value)),
        None => String::new(),
    };
    let drained = if node.drained { "drained = true\n" } else { "" };
    let abilities = node.abilities.map_or(String::new(), |found| {
        format!(
            "abilities = {{ write = {}, list = {}, create = {}, ranges = {}, streams = {} }}\n",
            found.write, found.list, found.create, found.ranges, found.streams
        )
    });
    format!(
        "\n[[node]]\nname = {}\nuri = {}\n{}{}{drained}{abilities}",
        quoted(&node.name),
        quoted(&node.uri),
        optional("domain", &node.domain),
        optional("credentials", &node.credentials),
    )
}

/// Returns a text as TOML writes it.
fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

/// A new volume file without nodes.
const TEMPLATE: &str = r#"# A Paritas volume: objects, erasure-coded over nodes.
# A line that begins with `#` is a comment; keys in comments show their defaults.

# Name of the volume, for people.
name = {name}

# Number of the volume. Do not change it: files of another number are not touched.
id = {id}

# The erasure code. Objects that are stored keep the code that they were written with.
code = {code}

# Bytes of an object in a block of a shard: what is read and checked at a time.
# block = "256 KiB"

[limits]
# Bytes of memory of one put or get.
# memory = "256 MiB"

# Number of requests to a node at a time.
# requests = 4

# Bytes a second to and from each node; without this, as fast as it goes.
# rate = "100 MB"

# The same for repair and promotion.
# background_rate = "20 MB"

# Seconds after which a node that does not answer has failed.
# timeout = 30

# How often a request that failed is repeated.
# retries = 3

[write]
# Number of shards that may be missing when an object counts as written. They are owed, and
# `paritas volume repair` writes them.
# missing = 0

# Whether files in folders are synced, so that they survive a power cut.
# sync = true

[hedge]
# A second node is asked when an answer takes longer than this fraction of the node's answers ...
# quantile = 0.95

# ... and longer than this, in milliseconds ...
# at_least = 20

# ... but for no more than this percentage of all requests.
# most = 15

# Each node has a table of its own, with these keys:
#
# name         the node's name in messages; it is stored with the objects, so keep it
# uri          a folder: /mnt/a, ../b, ~/c (relative ones are relative to this file)
#              s3://bucket/prefix?endpoint=http://host:port&region=name
#              webdav://host/path, or webdav+http://host/path without TLS
#              sftp://user@host:port/path
#              https://host/path, http://host/path: only read
#              memory: (gone with the process)
# domain       nodes of one domain may fail together: a disk, a host, a provider. By default every
#              node is a domain of its own
# credentials  where credentials are; they never stand here. Either the beginning of environment
#              variables: with "OFFICE", OFFICE_ACCESS_KEY_ID and OFFICE_SECRET_ACCESS_KEY for s3
#              (by default AWS_...), OFFICE_USER and OFFICE_PASSWORD for webdav and https,
#              OFFICE_KEY_FILE for sftp. Or a file: a private key for sftp, else TOML with
#              access_key_id and secret_access_key, or user and password
# drained      true: nothing new is written there
# abilities    what was found out about the node when it was added
"#;
