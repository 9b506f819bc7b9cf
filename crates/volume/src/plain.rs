//! Plain files on the nodes of a volume: they measure the nodes without codes, checksums and
//! manifests.
//!
//! A benchmark compares objects with them. They are stored like the shards of an object that has no
//! manifest. So readers do not see them, and the files of a killed benchmark are collected.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::try_join_all;
use paritas::Code;
use paritas_store::error::{Error, ErrorKind, Result};

use crate::cluster::Cluster;
use crate::names;
use crate::node::{Mode, Node};
use crate::outside::new_object;
use crate::stages::stage_ends;

/// A pattern of bytes that repeats, as the content of a file of any length.
#[derive(Debug, Clone)]
pub struct Pattern(Bytes);

/// Files of one length, on nodes.
#[derive(Debug)]
pub struct PlainFiles {
    files: Vec<(Arc<dyn Node>, String)>,
    bytes: u64,
    pattern: Pattern,
}

impl Pattern {
    /// Draws a pattern of a mebibyte and some bytes. No power of two is a multiple of its length,
    /// so that bytes read from a wrong place differ.
    ///
    /// # Errors
    /// If the system has no random numbers ([`ErrorKind::Io`]).
    pub fn random() -> Result<Self> {
        let mut bytes = vec![0; (1 << 20) + 7];
        getrandom::fill(&mut bytes).map_err(|error| {
            Error::new(ErrorKind::Io, "cannot draw random bytes").because(error)
        })?;
        Ok(Self(bytes.into()))
    }

    /// Returns the bytes from `at` on: at least one, at most `most`. `most` must be greater than 0.
    pub fn at(&self, at: u64, most: u64) -> Bytes {
        let start = (at % self.0.len() as u64) as usize;
        let end =
            self.0.len().min(start.saturating_add(usize::try_from(most).unwrap_or(usize::MAX)));
        self.0.slice(start..end)
    }

    /// Returns the bytes in a range, in pieces.
    fn pieces(&self, range: Range<u64>) -> impl Iterator<Item = Bytes> + '_ {
        let mut at = range.start;
        std::iter::from_fn(move || {
            let piece = (at < range.end).then(|| self.at(at, range.end - at))?;
            at += piece.len() as u64;
            Some(piece)
        })
    }

    /// Whether these are the bytes from `at` on.
    pub fn is_at(&self, at: u64, bytes: &[u8]) -> bool {
        let mut rest = bytes;
        self.pieces(at..at + bytes.len() as u64).all(|piece| {
            let (first, others) = rest.split_at(piece.len());
            rest = others;
            first == piece
        })
    }
}

/// Returns the number of files of an object that has reached a stage of a code, from 1.
pub(crate) fn shards_at(code: &Code, stage: u8) -> usize {
    stage_ends(code).get(usize::from(stage).saturating_sub(1)).copied().unwrap_or(0)
}

/// Returns the number of files of the first stage whose bytes together equal the object's length.
pub(crate) fn shards_needed(code: &Code) -> usize {
    let shards = shards_at(code, 1);
    match code.graph() {
        None => shards - code.tolerance_at(1),
        Some(graph) => (shards * graph.data()).div_ceil(graph.blocks()),
    }
}

impl PlainFiles {
    /// Chooses nodes for `count` files of `bytes` bytes each: the nodes that would have the shards
    /// of an object.
    pub(crate) fn new(
        cluster: &Cluster,
        count: usize,
        bytes: u64,
        pattern: &Pattern,
    ) -> Result<Self> {
        let object = new_object()?;
        let folder = names::object_folder(names::OBJECTS, object);
        let homes = cluster.members.homes(object, count).into_iter().enumerate();
        let file = |(number, node)| {
            let path = format!("{folder}plain.{number}of{count}.paritas");
            (Arc::clone(cluster.node(node)), path)
        };
        Ok(Self { files: homes.map(file).collect(), bytes, pattern: pattern.clone() })
    }

    /// Writes all files, side by side.
    ///
    /// # Errors
    /// If a node fails.
    pub async fn write(&self) -> Result<()> {
        let write = |(node, path): &(Arc<dyn Node>, String)| {
            let (node, path) = (Arc::clone(node), path.clone());
            async move {
                if self.bytes <= 1 << 16 {
                    let content = self.pattern.pieces(0..self.bytes).collect::<Vec<_>>().concat();
                    return node.write(&path, content.into(), Mode::Replace).await;
                }
                let mut writer = node.writer(&path).await?;
                for piece in self.pattern.pieces(0..self.bytes) {
                    writer.write(vec![piece]).await?;
                }
                writer.finish().await
            }
        };
        try_join_all(self.files.iter().map(write)).await.map(drop)
    }

    /// Reads the first `count` files, side by side, and compares them with what was written.
    ///
    /// # Errors
    /// If a node fails, or if a file differs ([`ErrorKind::DigestMismatch`]).
    pub async fn read(&self, count: usize) -> Result<()> {
        let files = self.files.iter().take(count);
        try_join_all(files.map(|(node, path)| self.read_file(&**node, path))).await.map(drop)
    }

    async fn read_file(&self, node: &dyn Node, path: &str) -> Result<()> {
        let mut at = 0;
        while at < self.bytes {
            let end = self.bytes.min(at + (1 << 20));
            self.read_range(node, path, at..end).await?;
            at = end;
        }
        Ok(())
    }

    async fn read_range(&self, node: &dyn Node, path: &str, range: Range<u64>) -> Result<()> {
        let read = node.read(path, Some(range.clone())).await?;
        match read.len() as u64 == range.end - range.start && self.pattern.is_at(range.start, &read)
        {
            true => Ok(()),
            false => {
                let message = format!("{path} differs from what was written");
                Err(Error::new(ErrorKind::DigestMismatch, message).at_node(node.name()))
            }
        }
    }

    /// Reads a range of one file, and compares it with what was written.
    ///
    /// # Errors
    /// As [`PlainFiles::read`].
    pub async fn read_part(&self, range: Range<u64>) -> Result<()> {
        match self.files.first() {
            Some((node, path)) => self.read_range(&**node, path, range).await,
            None => Ok(()),
        }
    }

    /// Deletes all files.
    ///
    /// # Errors
    /// If a node fails.
    pub async fn delete(&self) -> Result<()> {
        let delete = |(node, path): &(Arc<dyn Node>, String)| {
            let (node, path) = (Arc::clone(node), path.clone());
            async move { node.delete(&path).await }
        };
        try_join_all(self.files.iter().map(delete)).await.map(drop)
    }
}
