//! Nodes: the places that store a volume's files, behind one trait.
//!
//! A node stores files under paths: names separated by `/`, in UTF-8, relative to the node's root,
//! without `.`, `..`, empty names, or control characters, and without white space at either end of
//! the path ([`check_path`]). A file appears whole or not at all. A node need not have folders: a
//! path is one key. No path may be another path followed by `/` and more, because on nodes with
//! folders, one name cannot be both a file and a folder.
//!
//! [`open`] makes a node from its entry in the volume file. There are two kinds: a [`FolderNode`],
//! and an [`Endpoint`] of a service. Everything else is a decorator over any node: limits
//! ([`Limited`], [`Timed`]), names ([`Caseless`]), counters ([`Counted`]), faults ([`Faulty`]).
//! [`probe`] finds out what an endpoint can do; the crate's tests check what the trait promises
//! (`tests/testsuite/conformance.rs`).

mod buffers;
mod caseless;
mod contact;
mod counted;
mod endpoint;
mod faulty;
mod folder;
mod folders;
mod limited;
mod listing;
mod location;
mod metered;
mod open;
#[cfg(feature = "s3")]
mod parts;
mod probe;
mod redact;
mod service;
#[cfg(all(feature = "sftp", unix))]
mod sftp;
mod streamed;
mod timed;
mod unopened;
mod whole;

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{BoxStream, StreamExt};
use paritas_store::error::{Error, ErrorKind, Result};

use crate::outside;
use crate::process;

pub use caseless::Caseless;
pub use counted::{Counted, Counters, Tally};
pub use endpoint::Endpoint;
pub use faulty::{Fault, Faulty, Trigger};
pub use folder::FolderNode;
pub use limited::{Limited, NodeLimits};
pub(crate) use location::Location;
pub use metered::{Meter, Metered, NodeCall};
pub use open::open;
pub use probe::{Probe, probe};
pub(crate) use probe::{caseless, is_of_probe, is_refusal, remove_probes, tells_cases};
pub(crate) use redact::Secret;
pub use timed::Timed;
pub(crate) use unopened::Unopened;
pub(crate) use whole::{MOST_KEPT, WholeWriter};

/// Name of the folder at a node's root that holds files until they are whole. No path begins with
/// this name, and listings do not show it.
pub const STAGING: &str = ".paritas-new";

/// Largest number of bytes of a file that is read whole. Only small files are read whole:
/// manifests, marks and hints. So a node that shows something large under such a name cannot fill a
/// reader's memory.
pub const MOST_WHOLE: u64 = 4 << 20;

/// A place that stores files.
///
/// Every method may be called from several tasks at once. Errors name the node
/// ([`crate::Error::node`]) and never contain credentials.
#[async_trait]
pub trait Node: fmt::Debug + Send + Sync {
    /// Returns the name of the node in its volume.
    fn name(&self) -> &str;

    /// Returns what the node can do.
    fn abilities(&self) -> Abilities;

    /// Whether the node is a folder of this machine, so that no network lies between.
    fn is_local(&self) -> bool {
        false
    }

    /// Reads a range of a file. If `range` is `None`, reads all of it, at most [`MOST_WHOLE`]
    /// bytes.
    ///
    /// # Errors
    /// If the file does not exist ([`ErrorKind::NotFound`]), if it is too long to be read whole,
    /// and so is not what it should be ([`ErrorKind::NotRecognised`]), or if it ends before the
    /// range does or cannot be read ([`ErrorKind::Io`]).
    async fn read(&self, path: &str, range: Option<Range<u64>>) -> Result<Bytes>;

    /// Reads a range of a file as [`Self::read`] does, for a caller whose thread may block: a
    /// folder of this machine is read on this thread, because handing over to another would take as
    /// long as reading a megabyte. A disk that hangs keeps the thread.
    ///
    /// # Errors
    /// As [`Self::read`].
    async fn read_here(&self, path: &str, range: Range<u64>) -> Result<Bytes> {
        self.read(path, Some(range)).await
    }

    /// Returns the length and age of a file, or `None` if it does not exist.
    ///
    /// # Errors
    /// If the node does not answer ([`ErrorKind::Io`]).
    async fn stat(&self, path: &str) -> Result<Option<Stat>>;

    /// Lists all files whose path begins with `prefix`, in any order, in folders of any depth.
    /// `prefix` is empty or ends in `/`. If no file has the prefix, the list is empty.
    fn list<'a>(&'a self, prefix: &'a str) -> BoxStream<'a, Result<Entry>>;

    /// Returns the names of the folders directly below a prefix, in any order. Folders without
    /// files may be among them. `prefix` is empty or ends in `/`. A node that cannot list folders
    /// alone lists all files.
    ///
    /// # Errors
    /// As [`Self::list`].
    async fn folders(&self, prefix: &str) -> Result<Vec<String>> {
        let mut entries = self.list(prefix);
        let mut folders = BTreeSet::new();
        while let Some(entry) = entries.next().await {
            let path = entry?.path;
            let below = path.strip_prefix(prefix).and_then(|below| below.split_once('/'));
            folders.extend(below.map(|(folder, _)| folder.to_owned()));
        }
        Ok(folders.into_iter().collect())
    }

    /// Writes a small file at once. When this returns, the file is durable.
    ///
    /// # Errors
    /// If the file exists and `mode` is [`Mode::Create`] ([`ErrorKind::Exists`]; if the
    /// answer to a request was lost and the request repeated, the existing file may be this one),
    /// or if it cannot be written. Then it has its old content, or, where the connection was lost,
    /// its old or new one.
    async fn write(&self, path: &str, content: Bytes, mode: Mode) -> Result<()>;

    /// Begins to write a file of any length. It appears when the writer is finished, and replaces
    /// an existing file of that path.
    ///
    /// # Errors
    /// If the node refuses.
    async fn writer(&self, path: &str) -> Result<Box<dyn Writer>>;

    /// Deletes a file. Succeeds if the file does not exist.
    ///
    /// # Errors
    /// If it cannot be deleted.
    async fn delete(&self, path: &str) -> Result<()>;

    /// Deletes a folder that is no longer needed. Only services that keep empty folders do anything
    /// here. Files that are still in the folder may be deleted with it. Succeeds if the folder does
    /// not exist.
    ///
    /// # Errors
    /// If the folder cannot be deleted, for example because it has files.
    async fn delete_folder(&self, prefix: &str) -> Result<()> {
        let _ = prefix;
        Ok(())
    }

    /// Returns the number of bytes that the node has left for new files, if it can tell. Only
    /// folders of this machine can.
    async fn free_bytes(&self) -> Option<u64> {
        None
    }

    /// Has the system drop its cached pages of a file, so that the next read comes from the disk.
    /// Only folders of this machine do anything here.
    async fn forget_cached(&self, path: &str) {
        let _ = path;
    }

    /// Removes the unfinished files of killed writers: files of this machine's processes that have
    /// ended, and other files to which nothing was written for `age`. Returns the number of files
    /// removed.
    ///
    /// # Errors
    /// If the node cannot be listed, or if a file cannot be removed.
    async fn sweep(&self, age: Duration) -> Result<u64> {
        let _ = age;
        Ok(0)
    }
}

/// Checks that a path is one that every node can store.
///
/// # Errors
/// If a name in it is empty, `.` or `..`, if it contains a control character, begins or ends with
/// white space, or begins with [`STAGING`].
pub fn check_path(path: &str) -> Result<()> {
    let refused = |why: &str| Err(Error::parameters(format!("the path {path:?} {why}")));
    if path.split('/').any(|name| matches!(name, "" | "." | "..")) {
        return refused("contains an empty name, `.` or `..`");
    }
    if path.chars().any(char::is_control) {
        return refused("contains a control character");
    }
    if path.trim() != path {
        return refused("begins or ends with white space");
    }
    if path.split('/').next() == Some(STAGING) {
        return refused("is inside the folder of unfinished files");
    }
    Ok(())
}

/// Checks a prefix of a listing: it must be empty, or a path that ends in `/`.
fn check_prefix(prefix: &str) -> Result<()> {
    match prefix.strip_suffix('/') {
        Some(path) => check_path(path),
        None if prefix.is_empty() => Ok(()),
        None => Err(Error::parameters(format!("the prefix {prefix:?} does not end in `/`"))),
    }
}

/// Returns the error for a file that is too long to be read whole.
fn too_long(path: &str) -> Error {
    let message =
        format!("{path} has more than {MOST_WHOLE} bytes, too many for what it should be");
    Error::new(ErrorKind::NotRecognised, message)
}

/// Returns the error for a range beyond the end of a file, which has `length` bytes.
fn too_short(node: &str, path: &str, length: u64, range: &Range<u64>) -> Error {
    let (start, end) = (range.start, range.end);
    let message = format!("{path} has {length} bytes, so bytes {start} to {end} cannot be read");
    Error::failed(message).at_node(node)
}

/// Checks that a range does not end before it begins, and returns its length.
fn range_length(path: &str, range: &Range<u64>) -> Result<u64> {
    range.end.checked_sub(range.start).ok_or_else(|| {
        Error::parameters(format!(
            "the range {} to {} of {path} ends before it begins",
            range.start, range.end
        ))
    })
}

/// Returns the beginning of the names of this process's files in the folder of unfinished files.
fn staging_prefix() -> String {
    process::tag().map(|tag| format!("{tag}-")).unwrap_or_default()
}

/// Whether a file in the folder of unfinished files belongs to a process of this machine that has
/// ended.
pub(crate) fn is_abandoned(name: &str) -> bool {
    name.rsplit_once('-').is_some_and(|(tag, _)| process::is_over(tag))
}

/// Returns a new path in the folder of unfinished files.
fn staging_path() -> Result<String> {
    Ok(format!("{STAGING}/{}", passing_name()?))
}

/// Returns a new name for a file that this process removes itself. If the process is killed before
/// that, [`is_abandoned`] recognises the file.
pub(crate) fn passing_name() -> Result<String> {
    Ok(format!("{}{:016x}", staging_prefix(), outside::random()?))
}

/// A file that is being written.
#[async_trait]
pub trait Writer: Send {
    /// Appends bytes.
    ///
    /// # Errors
    /// If the node fails. A writer that failed can only be aborted.
    async fn write(&mut self, pieces: Vec<Bytes>) -> Result<()>;

    /// Makes the file appear. When this returns, the file is durable.
    ///
    /// # Errors
    /// If the node fails. Then the new file does not exist or, if the connection was lost, it may
    /// exist and is whole.
    async fn finish(self: Box<Self>) -> Result<()>;

    /// Gives up. The file does not appear, and the bytes that were sent are removed if the node
    /// answers. A writer that is dropped does the same later.
    async fn abort(self: Box<Self>);
}

/// What a node can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Abilities {
    /// Whether files can be written and deleted.
    pub write: bool,
    /// Whether files can be listed.
    pub list: bool,
    /// Whether [`Mode::Create`] refuses an existing file, and lets at most one of two racing
    /// writers succeed.
    pub create: bool,
    /// Whether a range can be read without reading the whole file.
    pub ranges: bool,
    /// Whether a writer sends bytes as it gets them. Otherwise it keeps them in memory until it is
    /// finished.
    pub streams: bool,
    /// Whether names that differ only in upper and lower case are different files. If not, a
    /// [`Caseless`] keeps them apart.
    pub cases: bool,
}

impl Default for Abilities {
    fn default() -> Self {
        Self::ALL
    }
}

impl Abilities {
    /// The abilities of a node that lacks none.
    pub(crate) const ALL: Self =
        Self { write: true, list: true, create: true, ranges: true, streams: true, cases: true };
}

/// How a file is written if a file of its path may exist already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// An existing file is replaced.
    Replace,
    /// An existing file stays, and writing fails. If the node cannot do this by itself
    /// ([`Abilities::create`]), a separate request first looks for the file, so two racing writers
    /// may both succeed.
    Create,
}

/// What is known of a file without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Length in bytes.
    pub length: u64,
    /// When it was written, by the node's clock.
    pub modified: Option<SystemTime>,
}

/// A file that a listing found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The path from the node's root.
    pub path: String,
    /// Length in bytes, if the listing tells it.
    pub length: Option<u64>,
    /// When it was written, by the node's clock, if the listing tells it.
    pub modified: Option<SystemTime>,
}
