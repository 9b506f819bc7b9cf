//! Writing objects.

use std::collections::BTreeSet;
use std::io::{Cursor, Read};
use std::sync::Arc;

use paritas_shards::blocks::{NewObject, ObjectLayout};
use paritas_shards::{Digest, ObjectId};
use paritas_store::error::{Error, ErrorKind, Result};
use paritas_store::place::attributes::Attributes;

use crate::clock::now;
use crate::cluster::Cluster;
use crate::driver::drive;
use crate::flaw::Flaw;
use crate::heartbeat::Heartbeat;
use crate::hints::Hints;
use crate::manifest::{Notes, Piece, digest_of_pieces};
use crate::names::ObjectName;
use crate::protocol::{Listed, NewParts, NodeIndex, Put, PutOutcome, Spread, Version};
use crate::put_hands::{NewContent, PutHands};
use crate::unfinished::PutRecord;

/// The settings of a put.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct PutOptions {
    /// Mode and time of the source, which are kept.
    pub attributes: Attributes,
    /// The length of the source, if it is known.
    pub length: Option<u64>,
    /// Is told the number of bytes done since it was last called.
    pub progress: Option<Arc<dyn Fn(u64) + Send + Sync>>,
    /// Returns what the manifest notes about the object. It is called when the source was read, so
    /// it may tell what only its bytes show.
    pub notes: Option<Arc<dyn Fn() -> Notes + Send + Sync>>,
}

/// The result of a put.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PutReport {
    /// The version that was written.
    pub listed: Listed,
    /// The digest of the object.
    pub digest: Digest,
    /// When the manifest was made, in seconds since the beginning of 1970.
    pub created: u64,
    /// The nodes that have the object's parts or, if it is kept in its manifests, the manifests.
    pub nodes: Vec<String>,
    /// Whether the object is kept in its manifests.
    pub is_inline: bool,
    /// Whether something is left for repair: parts or manifests that are not where they belong, or
    /// older versions.
    pub is_owed: bool,
    /// Number of nodes that may be lost before a repair, whichever they are.
    pub spare: usize,
    /// What went wrong on nodes.
    pub flaws: Vec<Flaw>,
}

/// Writes an object under a name.
pub(crate) struct PutJob<'a> {
    pub cluster: &'a Cluster,
    pub name: &'a ObjectName,
    /// The new object's id, which nobody else uses.
    pub object: ObjectId,
    pub options: PutOptions,
    /// The version that the object replaces, if it has the same bytes.
    pub old: Option<Version>,
}

impl<'a> PutJob<'a> {
    /// Prepares to write an object with an id of its own.
    pub fn new(cluster: &'a Cluster, name: &'a ObjectName, options: PutOptions) -> Result<Self> {
        Ok(Self { cluster, name, object: ObjectId::random()?, options, old: None })
    }

    /// Writes the object: in its manifests if it is small, otherwise in shards.
    pub async fn run(self, source: impl Read + Send + 'static) -> Result<PutReport> {
        match peek(source, self.cluster.setup.inline_bytes).await? {
            BegunSource::Short(bytes) => self.run_inline(bytes).await,
            BegunSource::Long(source) => self.run_in_shards(source).await,
        }
    }

    async fn run_inline(self, bytes: Vec<u8>) -> Result<PutReport> {
        let order = self.cluster.inline_order(self.object);
        let parts = NewParts::Inline { length: bytes.len() as u64, order };
        self.options.progress.iter().for_each(|progress| progress(bytes.len() as u64));
        let digest = Digest::new(blake3::hash(&bytes).into());
        let content = NewContent::Inline { bytes, digest };
        let hands = PutHands::new(self.cluster, self.name, content);
        self.commit(parts, hands).await
    }

    /// Writes an object that consists of pieces, which are stored already.
    pub async fn run_in_pieces(self, upload: &str, pieces: Vec<Piece>) -> Result<PutReport> {
        let length = pieces.iter().map(|piece| piece.length).sum();
        let parts = NewParts::Inline { length, order: self.cluster.inline_order(self.object) };
        let (digest, upload) = (digest_of_pieces(&pieces), upload.to_owned());
        let content = NewContent::Pieces { upload, pieces, digest };
        let hands = PutHands::new(self.cluster, self.name, content);
        self.commit(parts, hands).await
    }

    pub async fn run_in_shards(self, source: Box<dyn Read + Send>) -> Result<PutReport> {
        let (cluster, object) = (self.cluster, self.object);
        let layout = self.layout()?;
        cluster.expect_room(self.name, &layout)?;
        let spread = cluster.spread(object, layout.code());
        let first = layout.parts_in(1).len();
        let spread = Spread { homes: spread.homes[..first].to_vec(), ..spread };
        let needed = first - cluster.setup.missing.min(layout.tolerance(1));
        let content = NewContent::Shards { header: layout.front(0)?, layout };
        let mut hands = PutHands::new(cluster, self.name, content);
        hands.source = Some(source);
        let id = cluster.setup.id.clone();
        let record = tokio::task::spawn_blocking(move || PutRecord::begin(&id, object)).await;
        hands.record = record.ok().map(Arc::new);
        let heartbeat = Heartbeat::new(cluster, object, &hands.pulse);
        heartbeat.hold(self.commit(NewParts::Shards { spread, needed }, hands)).await
    }

    /// Returns the layout of the new object.
    fn layout(&self) -> Result<ObjectLayout> {
        let setup = &self.cluster.setup;
        let mut shape = NewObject::default();
        shape.block_bytes = setup.block_bytes;
        shape.object = Some(self.object);
        shape.length = self.options.length;
        shape.attributes = self.options.attributes;
        shape.options = setup.options.clone();
        ObjectLayout::new(setup.code.clone(), self.name.base(), shape)
    }

    /// Stores parts and manifests.
    async fn commit(&self, parts: NewParts, mut hands: PutHands<'_>) -> Result<PutReport> {
        hands.attributes = self.options.attributes;
        (hands.progress, hands.notes) = (self.options.progress.clone(), self.options.notes.clone());
        let put = Put::new(self.cluster.quorum, self.object, parts, now());
        let put = self.old.into_iter().fold(put, Put::in_place_of);
        let (outcome, put) = drive(put, &mut hands).await;
        let PutOutcome::Committed { listed, is_owed } = outcome else {
            return Err(hands.failure(&outcome));
        };
        if is_owed {
            Hints::owed(self.cluster).leave(self.object, self.name).await;
        }
        Ok(self.report(&put, listed, is_owed, hands))
    }

    fn report(&self, put: &Put, listed: Listed, is_owed: bool, hands: PutHands<'_>) -> PutReport {
        let (cluster, manifests) = (self.cluster, put.holders(listed.version));
        let is_inline = hands.layout().is_none();
        let (holders, spare): (BTreeSet<NodeIndex>, _) = match hands.layout() {
            Some(layout) => {
                let places = put.stored().iter();
                let places = places.map(|(part, node)| (layout.part(part.0).shard, node)).collect();
                let spare = cluster.losable_nodes(layout.code(), 1, &places, manifests.len());
                (places.into_iter().map(|(_, node)| node).collect(), spare)
            }
            None => {
                let spare = cluster.tolerance().min(manifests.len().saturating_sub(1));
                (manifests, spare)
            }
        };
        let nodes = holders.into_iter().map(|node| cluster.node_name(node).to_owned()).collect();
        let (digest, created, flaws) = (hands.digest(), hands.created, hands.name.log.flaws);
        PutReport { listed, digest, created, nodes, is_inline, is_owed, spare, flaws }
    }
}

/// A source whose beginning was read.
enum BegunSource {
    /// All bytes of the source.
    Short(Vec<u8>),
    /// A source, from its first byte on, that is too long to be kept in manifests.
    Long(Box<dyn Read + Send>),
}

/// Reads the beginning of a source, to see whether it has more than `most` bytes.
async fn peek(source: impl Read + Send + 'static, most: usize) -> Result<BegunSource> {
    let read = move || {
        let mut source = source;
        let mut bytes = Vec::new();
        let read = source.by_ref().take(most as u64 + 1).read_to_end(&mut bytes);
        read.map(|_| match bytes.len() <= most {
            true => BegunSource::Short(bytes),
            false => BegunSource::Long(Box::new(Cursor::new(bytes).chain(source))),
        })
    };
    let read = tokio::task::spawn_blocking(read).await;
    let read = read.map_err(|error| Error::internal("reading the source", error))?;
    read.map_err(|error| {
        Error::new(ErrorKind::Io, format!("reading the source: {error}")).because(error)
    })
}
