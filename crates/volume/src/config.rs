//! The volume file: a description of a volume in TOML, for people to read and change.

use std::fs::Permissions;
use std::io::{self, Write as _};
use std::num::NonZeroUsize;
use std::path::Path;
use std::str::Utf8Error;
use std::time::Duration;

use bytesize::ByteSize;
use paritas::{Code, Spec};
use paritas_shards::ObjectId;
use paritas_store::error::{Error, ErrorKind, Result};
use paritas_store::memory::by_default;
use paritas_store::staging::directory_of;
use serde::Deserialize;
use tempfile::NamedTempFile;

use crate::manifest::MOST_INLINE;
use crate::node::Abilities;
use crate::setup::INLINE_BYTES;
use crate::stages::losses;

/// Default number of seconds without a sign of life after which a node is given up.
///
/// Nearly twice the longest pause that was measured of a node that is slow and alive: 8.2 s between
/// signs of life, where four connections shared a link of 4 Mbit/s, so 128 KiB/s each. The system
/// takes some hundred KiB at a time into its buffers, and then takes nothing more until most of
/// them are sent. With 64 KiB/s each it was 13.6 s, with 1 MiB/s 0.4 s. A connection needs 7 s
/// where the first three packets are lost, and a disk that sleeps about ten seconds to wake up.
const TIMEOUT: f64 = 15.0;

/// Default number of requests to a node at a time.
///
/// Over connections that take 80 ms for a round trip, 300 objects of 64 KiB in 4+2 shards were put
/// in 14.2 s with 4 requests, in 6.9 s with 8, and in 4.4 s with 16. More than 8 would share a link
/// of 4 Mbit/s so that [`TIMEOUT`] is too short for it.
const REQUESTS: NonZeroUsize = NonZeroUsize::new(8).unwrap();

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
    /// Number of nodes that may be lost, whichever they are; see [`crate::Setup::losses`].
    pub losses: Option<usize>,
    /// Bytes of an object in a block of a shard. A block is read and checked as a whole.
    #[serde(default = "default_block")]
    pub block: ByteSize,
    /// Approximate number of bytes of one request to a node, which reads adjacent blocks, or writes
    /// them if the node's service takes a file piece by piece. A request has at least one block.
    /// Otherwise, the requests for all shards together take at most half of `limits.memory`.
    #[serde(default = "default_unit")]
    pub unit: ByteSize,
    /// How much memory, time and traffic the volume may use.
    #[serde(default)]
    pub limits: Limits,
    /// When an object counts as written.
    #[serde(default)]
    pub write: WriteRules,
    /// When a second node is asked because the first one is slow.
    #[serde(default)]
    pub hedge: Hedge,
    /// The nodes.
    #[serde(default, rename = "node")]
    pub nodes: Vec<NodeEntry>,
}

/// How much memory, time and traffic a volume may use.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of memory of one put or get; by default 256 MiB, or a quarter of what this process may
    /// use if that is less. It must have room for one block of every shard of an
    /// object; a put keeps at least four such sets of blocks, and a get two, even if they take
    /// more. A put needs 8 MiB more for each shard that goes to a bucket, and for a node that takes
    /// files only whole ([`Abilities::streams`]) its shards.
    pub memory: ByteSize,
    /// Largest number of requests to a node at a time.
    pub requests: NonZeroUsize,
    /// Limit for each node in each direction, in bytes a second; `None` is unlimited.
    pub rate: Option<ByteSize>,
    /// The same for what is done in the background: repairing, promoting, replacing, draining.
    pub background_rate: Option<ByteSize>,
    /// Seconds without an answer or a byte after which a node is given up. From then on, requests
    /// do not wait for it, but it is tried again now and then.
    pub timeout: f64,
    /// How often a request that failed within `timeout` is repeated.
    pub retries: usize,
}

/// When an object counts as written.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct WriteRules {
    /// Number of shards that may be missing.
    pub missing: usize,
    /// The most bytes of an object that is kept in its manifests, at most 1 MiB.
    pub inline: ByteSize,
    /// Whether files in folders are synced, so that they survive a power cut.
    pub sync: bool,
}

impl Default for WriteRules {
    fn default() -> Self {
        Self { missing: 0, inline: ByteSize(INLINE_BYTES as u64), sync: true }
    }
}

impl WriteRules {
    fn check(&self) -> Result<()> {
        let bytes = self.inline.as_u64();
        require(bytes <= MOST_INLINE as u64, || {
            format!("`write.inline` must be at most 1 MiB; got {bytes} bytes")
        })
    }
}

/// When a second node is asked because the first one is slow.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Hedge {
    /// A second node is asked once an answer takes longer than this fraction of the node's earlier
    /// answers.
    pub quantile: f64,
    /// Least number of milliseconds to wait before a second node is asked.
    pub at_least: u64,
    /// Largest number of additional requests, in percent of all requests. Requests that replace
    /// nodes which were late or failed before are not counted.
    pub most: f64,
}

/// A node of a volume file.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct NodeEntry {
    /// Name of the node in messages and manifests.
    pub name: String,
    /// Where it is: a folder, or a URI that begins with `fs:`, `s3:`, `webdav:`, `webdav+http:`,
    /// `sftp:`, `https:`, `http:` or `memory:`.
    pub uri: String,
    /// The failure domain: nodes of one domain may fail together.
    domain: Option<String>,
    /// Where the credentials are: the beginning of the names of environment variables, or a file.
    pub credentials: Option<String>,
    /// Whether the node is to be emptied. Nothing new is stored there.
    #[serde(default)]
    pub drained: bool,
    /// The abilities that were found when the node was added.
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

    /// Returns the failure domain: nodes of one domain may fail together. A node without a stated
    /// domain is a domain of its own.
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

fn default_unit() -> ByteSize {
    ByteSize::mib(1)
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory: ByteSize(by_default(256 << 20)),
            requests: REQUESTS,
            rate: None,
            background_rate: None,
            timeout: TIMEOUT,
            retries: 3,
        }
    }
}

impl Limits {
    /// Returns the time for which a request waits for a node that does not answer.
    pub fn timeout(&self) -> Duration {
        Duration::try_from_secs_f64(self.timeout).unwrap_or(Duration::MAX)
    }

    fn check(&self) -> Result<()> {
        let timeout = self.timeout;
        require(timeout > 0.0 && timeout <= 86400.0, || {
            format!("`limits.timeout` must be above 0 and at most 86400 seconds; got {timeout}")
        })?;
        let bytes = [
            ("memory", Some(self.memory)),
            ("rate", self.rate),
            ("background_rate", self.background_rate),
        ];
        bytes.into_iter().try_for_each(|(key, limit)| {
            require(limit.is_none_or(|limit| limit.as_u64() > 0), || {
                format!("`limits.{key}` must be at least 1 byte; got 0")
            })
        })
    }
}

impl Default for Hedge {
    fn default() -> Self {
        Self { quantile: 0.95, at_least: 20, most: 15.0 }
    }
}

impl Hedge {
    fn check(&self) -> Result<()> {
        let Self { quantile, most, .. } = *self;
        require(quantile > 0.0 && quantile < 1.0, || {
            format!("`hedge.quantile` must be between 0 and 1; got {quantile}")
        })?;
        require((0.0..=1000.0).contains(&most), || {
            format!("`hedge.most` must be between 0 and 1000 percent; got {most}")
        })
    }
}

/// Fails with a message about parameters unless `holds` is true.
fn require(holds: bool, message: impl FnOnce() -> String) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::parameters(message())) }
}

impl Config {
    /// Reads a volume file.
    ///
    /// # Errors
    /// If the file cannot be read ([`ErrorKind::Io`]), is not a volume file
    /// ([`ErrorKind::NotRecognised`]), or has a key or value that cannot be used
    /// ([`ErrorKind::Parameters`]). The message names the file, the line and the key.
    pub fn read(path: &Path) -> Result<Self> {
        let shown = path.display();
        let bytes = std::fs::read(path).map_err(|error| unreadable(path, error))?;
        let text = String::from_utf8_lossy(&bytes);
        let parsed = std::str::from_utf8(&bytes).map_err(|error| not_utf8(&bytes, error));
        parsed.and_then(Self::parse).map_err(|error| match is_volume_file(&text) {
            true => Error::new(error.kind(), format!("{shown}: {error}")),
            false => {
                let message = format!("{shown} is not a volume file: it has no key `id`");
                Error::new(ErrorKind::NotRecognised, message)
            }
        })
    }

    /// Parses the text of a volume file.
    ///
    /// # Errors
    /// If a key is unknown or missing, or if a value cannot be used. The message names the line and
    /// the key, and says what is allowed there. It does not show the line itself, because the line
    /// may contain a misplaced password.
    pub fn parse(text: &str) -> Result<Self> {
        let config: Self = toml::from_str(text).map_err(|error| located(text, &error))?;
        config.check().map(|()| config)
    }

    /// Returns the configuration that a new volume file with these nodes would have, without
    /// writing the file.
    ///
    /// # Errors
    /// If a name or code cannot be used ([`ErrorKind::Parameters`]).
    pub fn draft(name: &str, code: &str, nodes: &[NodeEntry]) -> Result<Self> {
        Self::parse(&template(name, &ObjectId::random()?.to_string(), code, nodes)?)
    }

    /// Writes a new volume file, in which comments explain every key.
    ///
    /// # Errors
    /// If the file exists already ([`ErrorKind::Exists`]), if it cannot be written
    /// ([`ErrorKind::Io`]), or if a name or code cannot be used ([`ErrorKind::Parameters`]).
    pub fn init(path: &Path, name: &str, code: &str, nodes: &[NodeEntry]) -> Result<Self> {
        let text = template(name, &ObjectId::random()?.to_string(), code, nodes)?;
        let config = Self::parse(&text)?;
        let write = || -> io::Result<()> {
            written_beside(path, &text, None)?.persist_noclobber(path)?;
            Ok(())
        };
        write().map_err(|error| unwritable(path, error))?;
        Ok(config)
    }

    fn check(&self) -> Result<()> {
        let is_digit = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
        require(self.id.len() == 32 && self.id.chars().all(is_digit), || {
            format!("`id` must be 32 hexadecimal digits in small letters; got {:?}", self.id)
        })?;
        let code: paritas::Result<Spec> = self.code.parse();
        code.map_err(|error| Error::parameters(format!("`code` {:?}: {error}", self.code)))?;
        for (key, size) in [("block", self.block), ("unit", self.unit)] {
            let bytes = size.as_u64();
            require((1..=1 << 30).contains(&bytes), || {
                format!("`{key}` must be between 1 byte and 1 GiB; got {bytes} bytes")
            })?;
        }
        self.limits.check()?;
        self.write.check()?;
        self.hedge.check()?;
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

/// Writes the text of the volume file at `path` to a temporary file beside it, and syncs it.
/// Without `permissions`, the file has those of temporary files.
pub(crate) fn written_beside(
    path: &Path,
    text: &str,
    permissions: Option<Permissions>,
) -> io::Result<NamedTempFile> {
    let mut file = NamedTempFile::new_in(directory_of(path))?;
    file.write_all(text.as_bytes())?;
    permissions.map_or(Ok(()), |permissions| file.as_file().set_permissions(permissions))?;
    file.as_file().sync_all()?;
    Ok(file)
}

/// Returns the error for a volume file that cannot be read.
pub(crate) fn unreadable(path: &Path, error: io::Error) -> Error {
    let message = format!("cannot read the volume file {}: {error}", path.display());
    Error::new(ErrorKind::Io, message).because(error)
}

/// Returns the error for a volume file that cannot be written, or exists and must not be replaced.
pub(crate) fn unwritable(path: &Path, error: io::Error) -> Error {
    let (kind, why) = match error.kind() {
        io::ErrorKind::AlreadyExists => (ErrorKind::Exists, "it exists".to_owned()),
        _ => (ErrorKind::Io, error.to_string()),
    };
    let message = format!("cannot write the volume file {}: {why}", path.display());
    Error::new(kind, message).because(error)
}

/// Whether a text has the key that every volume file has. The rest of the text may be right or
/// wrong.
fn is_volume_file(text: &str) -> bool {
    let mut entries = text.lines().filter_map(|line| line.split_once('='));
    entries.any(|(key, _)| key.trim() == "id")
}

/// Returns an error about a file that states facts in TOML. It names the line and the key, but does
/// not show the line, which may have a secret.
pub fn located(text: &str, error: &toml::de::Error) -> Error {
    let message = plain(error.message());
    // A key that is missing in the whole file has no line.
    let is_missing = message.starts_with("missing key");
    let span = error.span().filter(|span| !is_missing || span.start > 0);
    let Some(before) = span.and_then(|span| text.get(..span.start)) else {
        return Error::parameters(message);
    };
    let number = before.matches('\n').count();
    let line = text.lines().nth(number).unwrap_or("");
    let key = line.split('=').next().unwrap_or("").trim();
    let is_key = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let key = if is_key { format!(", `{key}`") } else { String::new() };
    Error::parameters(format!("line {}{key}: {message}", number + 1))
}

/// Says in plain words what the parser expected.
fn plain(message: &str) -> String {
    let words = [
        // A negative number where none is allowed.
        ("expected integer overflow", "expected a size of at least 0, such as \"256 KiB\""),
        ("expected parsable string", "expected a size, such as \"256 KiB\""),
        ("expected usize", "expected a whole number"),
        ("expected u64", "expected a whole number"),
        ("expected a nonzero usize", "expected a whole number above 0"),
        ("expected f64", "expected a number"),
        ("invalid type: map, expected a sequence", "expected a list"),
        ("expected a sequence", "expected a list"),
        ("missing field", "missing key"),
    ];
    words.iter().fold(message.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// Returns the error for a file that is not text in UTF-8.
fn not_utf8(bytes: &[u8], error: Utf8Error) -> Error {
    let line = 1 + bytes[..error.valid_up_to()].iter().filter(|&&byte| byte == b'\n').count();
    Error::parameters(format!("line {line}: not UTF-8 text"))
}

/// Returns the text of a new volume file.
///
/// # Errors
/// If the code does not exist.
fn template(name: &str, id: &str, code: &str, nodes: &[NodeEntry]) -> Result<String> {
    let spec: Spec =
        code.parse().map_err(|error| Error::parameters(format!("`code` {code:?}: {error}")))?;
    let serving = nodes.iter().filter(|node| !node.drained).count();
    let losses = losses(&Code::new(&spec)?, None, nodes.len(), serving);
    let head = TEMPLATE
        .replace("{losses}", &losses.to_string())
        .replace("{name}", &quoted(name))
        .replace("{id}", &quoted(id))
        .replace("{code}", &quoted(code));
    Ok(nodes.iter().fold(head, |text, node| text + &node_template(node)))
}

/// Returns the text of a node.
pub(crate) fn node_template(node: &NodeEntry) -> String {
    let optional = |key: &str, value: &Option<String>| match value {
        Some(value) => format!("{key} = {}\n", quoted(value)),
        None => String::new(),
    };
    let drained = if node.drained { "drained = true\n" } else { "" };
    let abilities = node.abilities.map_or(String::new(), |found| {
        format!(
            "abilities = {{ write = {}, list = {}, create = {}, ranges = {}, streams = {}{} }}\n",
            found.write,
            found.list,
            found.create,
            found.ranges,
            found.streams,
            if found.cases { "" } else { ", cases = false" }
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

# The erasure code of new objects. Older objects keep theirs until `paritas volume reencode`.
code = {code}

# Number of nodes that may be lost, whichever they are. An object counts as written once one node
# more than that has its manifest, and a reader waits for all nodes but that many. So this may be
# lowered, but never raised: readers would then wait for too few nodes to find older objects. Adding
# nodes does not change it. If another code or fewer nodes tolerate fewer losses, lower it as well.
losses = {losses}

# Bytes of a block: the smallest part of a shard that is read and checked.
# block = "256 KiB"

# Approximate bytes of one request: adjacent blocks are read together, and written together if the
# node takes a file piece by piece. A request has at least one block. The requests for all shards
# together take at most half of `limits.memory`.
# unit = "1 MiB"

[limits]
# Memory of one put or get, in bytes. At least one block of every shard must fit. A put keeps at
# least four blocks of every shard and a get two, even if that is more than the limit. A put takes
# 8 MiB more for each shard that goes to a bucket, and the whole shard if the node takes files only
# whole (its abilities have `streams = false`). The default is 256 MiB, or a quarter of what the
# process may use if that is less.
# memory = "256 MiB"

# Number of requests to a node at a time.
# requests = 8

# Limit in each direction, in bytes a second for each node. Without it there is no limit.
# rate = "100 MB"

# The same for `repair`, `promote`, `reencode`, `replace`, `drain`, `keep` and the upkeep of
# `paritas serve`. Their flag --rate overrides it.
# background_rate = "20 MB"

# Seconds without an answer or a byte after which a node is given up. A command waits for this once,
# however many requests it has for the node. Raise it if disks sleep and need longer to wake up.
# timeout = 15

# Number of times that a failed request is repeated within `timeout`. Not for folders.
# retries = 3

[write]
# Number of shards that may be missing when a put succeeds. They are owed: `paritas volume repair`
# writes them.
# missing = 0

# Largest object, in bytes, that is kept whole in its manifests, on one node more than `losses`. At
# most "1 MiB". A larger object is cut into shards. That takes less space, but more requests: a
# shard and a manifest for each node.
# inline = "4 KiB"

# Whether files in folders are synced, so that they survive a power cut.
# sync = true

[hedge]
# A second node is asked if an answer takes longer than this fraction of the node's answers took, or
# half as long again as most of the nodes that were asked at the same time ...
# quantile = 0.95

# ... and longer than this, in milliseconds ...
# at_least = 20

# ... but for at most this percentage of all requests. Requests that replace those to nodes which
# were late or failed before do not count.
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
#              fs:PATH is a folder whose path begins like one of these. $NAME and ${NAME} stand for
#              environment variables, ~ for the home folder, and $$ for $
# domain       nodes of one domain may fail together: a disk, a host, a provider. By default every
#              node is a domain of its own
# credentials  where credentials are; they never stand here. Either the beginning of environment
#              variables: with "OFFICE", OFFICE_ACCESS_KEY_ID and OFFICE_SECRET_ACCESS_KEY for s3
#              (by default AWS_...), OFFICE_USER and OFFICE_PASSWORD for webdav and https,
#              OFFICE_KEY_FILE for sftp. Or a file: a private key for sftp, else TOML with
#              access_key_id and secret_access_key, or user and password
# drained      true: nothing new is written there (see `paritas volume drain`)
# abilities    what `init` or `add` found out about the node. `cases = false`: it does not
#              distinguish upper and lower case, so names are stored there in another form
"#;

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "name = \"v\"\nid = \"00112233445566778899aabbccddeeff\"\ncode = \"4+2\"\n";

    fn parse(text: &str) -> Result<Config> {
        Config::parse(&format!("{HEAD}{text}"))
    }

    #[test]
    fn what_is_not_said_has_its_default() {
        let config = parse("[[node]]\nname = \"a\"\nuri = \"/a\"\n").unwrap();
        assert_eq!((config.block.as_u64(), config.unit.as_u64()), (256 << 10, 1 << 20));
        assert_eq!(config.limits.memory.as_u64(), by_default(256 << 20));
        assert_eq!((config.limits.requests.get(), config.limits.retries), (8, 3));
        assert_eq!(config.limits.timeout(), Duration::from_secs(15));
        assert_eq!((config.limits.rate, config.limits.background_rate), (None, None));
        assert_eq!(config.write, WriteRules { missing: 0, inline: ByteSize::kib(4), sync: true });
        assert_eq!(config.hedge, Hedge { quantile: 0.95, at_least: 20, most: 15.0 });
        assert_eq!((config.nodes[0].domain(), config.nodes[0].drained), ("a", false));
    }

    #[test]
    fn sizes_have_units_or_none() {
        for (text, bytes) in [
            ("4096", 4096),
            ("\"256 KiB\"", 256 << 10),
            ("\"1MiB\"", 1 << 20),
            ("\"2 MB\"", 2_000_000),
        ] {
            assert_eq!(parse(&format!("block = {text}")).unwrap().block.as_u64(), bytes, "{text}");
        }
    }

    /// Other bytes would become other names, so they are refused where they stand.
    #[test]
    fn a_file_that_is_not_utf8_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("v.toml");
        std::fs::write(&path, [HEAD.as_bytes(), b"# caf\xE9\n"].concat()).unwrap();
        let error = Config::read(&path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Parameters);
        assert!(error.to_string().ends_with("line 4: not UTF-8 text"), "{error}");
    }

    #[test]
    fn errors_name_the_line_and_the_key_but_show_no_line() {
        let cases = [
            ("blok = 1", "line 4, `blok`: unknown field `blok`, expected one of"),
            ("block = \"many\"", "line 4, `block`"),
            ("block = -5", "expected a size of at least 0"),
            ("block = 0", "`block` must be between 1 byte and 1 GiB; got 0"),
            ("unit = \"2 GiB\"", "`unit` must be between 1 byte and 1 GiB; got 2147483648"),
            ("[limits]\nrequests = 0", "line 5, `requests`"),
            ("[limits]\nrate = 0", "`limits.rate` must be at least 1 byte"),
            ("[limits]\ntimeout = -1", "`limits.timeout`"),
            ("[limits]\ntimeout = \"x\"", "line 5, `timeout`"),
            ("[write]\ninline = \"2 MiB\"", "`write.inline` must be at most 1 MiB; got 2097152"),
            ("[hedge]\nquantile = 1.5", "`hedge.quantile` must be between 0 and 1; got 1.5"),
            ("[hedge]\nmost = -1", "`hedge.most`"),
            ("[[node]]\nname = \"a b\"\nuri = \"x\"", "`name` of node 1"),
            ("[[node]]\nname = \"a\"", "missing key `uri`"),
            (
                "[[node]]\nname = \"a\"\nuri = \"x\"\n[[node]]\nname = \"a\"\nuri = \"y\"",
                "two nodes have the name \"a\"",
            ),
            (
                "[[node]]\nname = \"a\"\nuri = \"s3://me:Sentinel@b\"\npassword = \"Sentinel\"",
                "line 7, `password`: unknown field",
            ),
            ("node = [{ uri = \"s3://me:Sentinel@b\", x = 1 }]", "line 4"),
            ("uri = Sentinel", "line 4"),
        ];
        for (text, part) in cases {
            let error = parse(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Parameters, "{text}");
            let shown = format!("{error} {error:?}");
            assert!(shown.contains(part), "{text}: {shown}");
            assert!(!shown.contains("Sentinel"), "{text}: {shown}");
        }
        let code = HEAD.replace("4+2", "4+x");
        assert!(Config::parse(&code).unwrap_err().to_string().contains("`code` \"4+x\": "));
        let id = HEAD.replace("0011", "xyz1");
        assert!(Config::parse(&id).unwrap_err().to_string().contains("32 hexadecimal digits"));
    }

    #[test]
    fn a_new_file_explains_every_key_and_is_not_written_over() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("v.toml");
        let mut second = NodeEntry::new("b", "s3://bucket/\"quoted\"").with_domain("cloud");
        second.credentials = Some("CLOUD".to_owned());
        second.drained = true;
        second.abilities = Some(Abilities {
            write: true,
            list: true,
            create: false,
            ranges: true,
            streams: false,
            cases: false,
        });
        let nodes = [NodeEntry::new("a", "/a"), second];
        let made = Config::init(&path, "my \"volume\"", "4+2", &nodes).unwrap();
        assert_eq!(Config::read(&path).unwrap(), made);
        assert_eq!((made.name.as_str(), made.code.as_str()), ("my \"volume\"", "4+2"));
        assert_eq!(made.nodes, nodes);
        assert_eq!((&made.limits, &made.hedge), (&Limits::default(), &Hedge::default()));

        let again = Config::init(&path, "other", "2+1", &[]).unwrap_err();
        assert_eq!(again.kind(), ErrorKind::Exists);
        assert_eq!(Config::read(&path).unwrap(), made);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        let other = Config::init(&folder.path().join("w.toml"), "w", "2+1", &[]).unwrap();
        assert_ne!(other.id, made.id);
    }

    /// The keys that a new file shows in comments are keys, and have the values that are the
    /// defaults.
    #[test]
    fn comments_of_a_new_file_show_the_defaults() {
        let text = template("v", "00112233445566778899aabbccddeeff", "4+2", &[]).unwrap();
        let bare = Config::parse(&text).unwrap();
        let is_key = |line: &str| {
            line.split_once(" = ")
                .is_some_and(|(key, _)| key.chars().all(|c| c.is_ascii_lowercase() || c == '_'))
        };
        let shown: Vec<_> = text
            .lines()
            .map(|line| line.strip_prefix("# ").filter(|rest| is_key(rest)).unwrap_or(line))
            .collect();
        let mut full = Config::parse(&shown.join("\n")).unwrap();
        assert!(full.limits.rate.take().is_some() && full.limits.background_rate.take().is_some());
        assert_eq!(full, bare);
        assert_eq!(shown.iter().filter(|line| is_key(line)).count(), 18);
    }
}
