//! Nodes: the places that store a volume's files, behind one trait.
//!
//! A node stores files under paths: names separated by `/`, in UTF-8, relative to the node's root,
//! without `.`, `..`, empty names, or control characters. A file appears whole or not at all. A node
//! need not have folders: a path is one key.

use std::fmt;
use std::ops::Range;
use std::time::SystemTime;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;

use crate::Result;

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

    /// Reads a range of a file, all of it if `range` is `None`.
    ///
    /// # Errors
    /// If there is no such file ([`crate::ErrorKind::NotFound`]), or if it ends before the range
    /// does or cannot be read ([`crate::ErrorKind::Io`]).
    async fn read(&self, path: &str, range: Option<Range<u64>>) -> Result<Bytes>;

    /// Returns the length and age of a file, or `None` if there is no such file.
    ///
    /// # Errors
    /// If the node does not answer ([`crate::ErrorKind::Io`]).
    async fn stat(&self, path: &str) -> Result<Option<Stat>>;

    /// Lists all files whose path begins with `prefix`, which is empty or ends in `/`, in any
    /// order, in folders of any depth. A prefix without files is no error.
    fn list<'a>(&'a self, prefix: &'a str) -> BoxStream<'a, Result<Entry>>;

    /// Writes a small file at once. When this returns, the file is durable.
    ///
    /// # Errors
    /// If the file exists and `mode` is [`Mode::Create`] ([`crate::ErrorKind::Exists`]), or if it
    /// cannot be written. Then it has its old content, or, where the connection was lost, its old or
    /// new one.
    async fn write(&self, path: &str, content: Bytes, mode: Mode) -> Result<()>;

    /// Begins to write a file of any length. It appears when the writer is finished, and replaces a
    /// file of that path.
    ///
    /// # Errors
    /// If the node refuses.
    async fn writer(&self, path: &str) -> Result<Box<dyn Writer>>;

    /// Deletes a file. If there is none, this is no error.
    ///
    /// # Errors
    /// If it cannot be deleted.
    async fn delete(&self, path: &str) -> Result<()>;
}

/// A file that is being written.
#[async_trait]
pub trait Writer: Send {
    /// Appends bytes.
    ///
    /// # Errors
    /// If the node fails. A writer that failed can only be aborted.
    async fn write(&mut self, pieces: Vec<Bytes>) -> Result<()>;

    /// Makes the file appear. When this returns, it is durable.
    ///
    /// # Errors
    /// If the node fails. Then there is no new file, or, where the connection was lost, a whole one.
    async fn finish(self: Box<Self>) -> Result<()>;

    /// Gives up. Nothing appears, and what was sent is removed as far as the node answers.
    async fn abort(self: Box<Self>);
}

/// What a node can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Abilities {
    /// Whether files can be written and deleted.
    pub write: bool,
    /// Whether files can be listed.
    pub list: bool,
    /// Whether [`Mode::Create`] refuses an existing file, of two that race at least one.
    pub create: bool,
    /// Whether a range can be read without reading the whole file.
    pub ranges: bool,
    /// Whether a writer sends bytes as they come. Otherwise it keeps them in memory until it is
    /// finished.
    pub streams: bool,
}

/// How a file is written where one may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// An existing file is replaced.
    Replace,
    /// An existing file stays, and writing fails. Where the node cannot do this by itself
    /// ([`Abilities::create`]), it is asked for the file first, so that of two that race both may
    /// succeed.
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
