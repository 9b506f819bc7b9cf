//! An object that was found: what its manifest says, and where its bytes are.

use std::sync::Arc;

use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use paritas_shards::Digest;
use paritas_store::error::{Error, ErrorKind, Result};
use paritas_store::place::attributes::Timestamp;

use crate::flaw::Flaw;
use crate::manifest::{Content, Manifest, Notes, Piece};
use crate::names::ObjectName;
use crate::protocol::Listed;
use crate::transfer::ShardedObject;
use crate::transfer::receive::{Pieces, Receiver, Wanted, kept};

/// An object that was found and can be read.
#[derive(Debug)]
pub struct FoundObject {
    pub(crate) manifest: Manifest,
    pub(crate) digest: Digest,
    pub(crate) content: ObjectBytes,
    pub(crate) flaws: Vec<Flaw>,
    /// Number of bytes of blocks that nodes were asked for.
    pub(crate) read_bytes: u64,
    pub(crate) is_sure: bool,
    pub(crate) warnings: Vec<String>,
}

/// Where an object's bytes come from.
#[derive(Debug)]
pub(crate) enum ObjectBytes {
    Inline(Bytes),
    Shards(Arc<Receiver>),
    /// In other objects. Their bytes follow one another.
    Pieces {
        upload: String,
        pieces: Vec<Piece>,
    },
}

/// The settings of a get.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct GetOptions {
    /// Accepts the newest version that was found, even if too few nodes answered to be sure that it
    /// is the newest.
    pub allow_stale: bool,
}

impl GetOptions {
    /// Sets whether the newest version that was found is accepted although a newer one may exist.
    pub fn allow_stale(self, allow_stale: bool) -> Self {
        Self { allow_stale }
    }
}

impl FoundObject {
    /// Returns the wanted bytes in order. The wanted range must be within the object.
    pub(crate) fn bytes(&self, wanted: impl Into<Wanted>) -> BoxStream<'static, Result<Pieces>> {
        let wanted = wanted.into();
        match &self.content {
            ObjectBytes::Inline(bytes) => {
                let (start, end) = (wanted.range.start, wanted.range.end);
                let piece = bytes.slice(start as usize..end as usize);
                stream::once(kept(wanted, start, vec![piece])).boxed()
            }
            ObjectBytes::Shards(receiver) => Arc::clone(receiver).bytes(wanted),
            ObjectBytes::Pieces { .. } => {
                let message = "the bytes of an object in pieces are asked for at once";
                stream::once(async move { Err(Error::new(ErrorKind::Internal, message)) }).boxed()
            }
        }
    }

    /// Adds what reading took and the flaws that it found. This is called once for each receiver.
    pub(crate) fn note_reading(&mut self) {
        let ObjectBytes::Shards(receiver) = &self.content else { return };
        self.read_bytes += receiver.read_bytes();
        for (part, message) in receiver.flaws() {
            let node = receiver.nodes_of(part).nth(receiver.turn(part)).unwrap_or_default();
            let shard = Some(receiver.layout.part(part).shard);
            Flaw::new(node, shard, message).add_to(&mut self.flaws);
        }
    }

    /// Returns the object's shape in shards, if it is in shards.
    pub(crate) fn sharded(&self) -> Option<ShardedObject> {
        let (id, digest) = (self.listed().version.object, self.digest);
        self.receiver().map(|receiver| {
            let (layout, length) = (receiver.layout.clone(), receiver.length);
            ShardedObject { id, layout, length, digest }
        })
    }

    pub(crate) fn receiver(&self) -> Option<&Arc<Receiver>> {
        match &self.content {
            ObjectBytes::Shards(receiver) => Some(receiver),
            ObjectBytes::Inline(_) | ObjectBytes::Pieces { .. } => None,
        }
    }

    /// Returns the name of the object.
    pub fn name(&self) -> &ObjectName {
        &self.manifest.name
    }

    fn content(&self) -> Option<&Content> {
        self.manifest.content.as_ref()
    }

    /// Returns the pieces of the object, if it is stored in pieces.
    pub fn pieces(&self) -> Option<&[Piece]> {
        match &self.content {
            ObjectBytes::Pieces { pieces, .. } => Some(pieces),
            _ => None,
        }
    }

    /// Returns the id of the upload that stored the object's pieces, if it is in pieces.
    pub fn upload(&self) -> Option<&str> {
        match &self.content {
            ObjectBytes::Pieces { upload, .. } => Some(upload),
            _ => None,
        }
    }

    /// Returns the notes that programs have attached to the object.
    pub fn notes(&self) -> &Notes {
        static NONE: Notes = Notes::new();
        self.content().map_or(&NONE, |content| &content.notes)
    }

    /// Returns the object's length in bytes.
    pub fn length(&self) -> u64 {
        self.manifest.listed.length
    }

    /// Returns the version.
    pub fn listed(&self) -> Listed {
        self.manifest.listed
    }

    /// Returns the BLAKE3 of the object's bytes.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Returns when the object was written, in seconds since the beginning of 1970.
    pub fn created(&self) -> u64 {
        self.manifest.created
    }

    /// Returns the permissions of the source, if they are known.
    pub fn mode(&self) -> Option<u32> {
        self.content()?.mode
    }

    /// Returns when the source last changed, if that is known.
    pub fn modified(&self) -> Option<Timestamp> {
        self.content()?.modified
    }

    /// Returns the spec of the object's code, or `None` if it is in pieces or in its manifests.
    pub fn code(&self) -> Option<String> {
        self.receiver().map(|receiver| receiver.layout.code().spec().to_string())
    }

    /// Returns the node on which each part is expected, by stage and then by shard; `None` if that
    /// is unknown. Parts of a later stage may not exist yet.
    pub fn nodes(&self) -> Vec<Option<String>> {
        let Some(receiver) = self.receiver() else { return Vec::new() };
        let first = |part| receiver.nodes_of(part).next().map(str::to_owned);
        (0..receiver.places.len()).map(first).collect()
    }

    /// Returns what went wrong on nodes.
    pub fn flaws(&self) -> &[Flaw] {
        &self.flaws
    }

    /// Returns warnings about the file that the object was read to.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Whether enough nodes answered to be sure that this is the newest version.
    pub fn is_sure(&self) -> bool {
        self.is_sure
    }

    /// Returns the number of bytes of blocks that nodes were asked for.
    pub fn read_bytes(&self) -> u64 {
        self.read_bytes
    }
}
