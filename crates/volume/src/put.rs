//! Writing a new version of a name: an object, or the mark of its removal.
//!
//! [`PutJob`] and [`RemoveJob`] run the protocol's [`Put`]; [`PutHands`] execute its actions. They
//! send the source when the parts are to be stored, and make the manifest when it is to be written.

use std::collections::BTreeSet;
use std::io::{Cursor, Read};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::FutureExt;
use futures::future::{BoxFuture, join_all, ready};
use paritas_shards::{Digest, ObjectId};
use paritas_store::error::{Error, ErrorKind, Result};
use paritas_store::object::layout::{NewObject, ObjectLayout};
use paritas_store::place::attributes::Attributes;
use paritas_store::shown::counted;

use crate::clock::{Since, now};
use crate::cluster::Cluster;
use crate::driver::{Hands, drive};
use crate::files::NameFiles;
use crate::flaw::{Flaw, is_full, no_space, told};
use crate::hands::{ActionFinding, NameHands};
use crate::heartbeat::{Heartbeat, Pulse};
use crate::hints::{self, FolderHints};
use crate::manifest::{Body, Content, Manifest, Notes, Piece, check_notes, digest_of_pieces};
use crate::names::{self, ObjectName};
use crate::node::{MOST_KEPT, Mode, WholeWriter, Writer};
use crate::outside::{block, new_object};
use crate::overview::Overview;
use crate::protocol::{
    Action, Answer, Expected, Listed, NewParts, NodeIndex, PartIndex, Put, PutOutcome, Request,
    Spread, Version,
};
use crate::transfer::ShardedObject;
use crate::transfer::send::{Sent, send};
use crate::turns::NameTurn;
use crate::unfinished::PutRecord;

/// Returns the error for a name that has an object, although a put expects none.
pub(crate) fn exists(name: &ObjectName) -> Error {
    let message = format!("the object {name} exists, and must not be replaced");
    Error::new(ErrorKind::Exists, message)
}

/// The settings of a put.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct PutOptions {
    /// Mode and time of the source, which are kept.
    pub attributes: Attributes,
    /// The length of the source, if it is known.
    pub length: Option<u64>,
    /// Called with the number of bytes done since its last call.
    pub progress: Option<Arc<dyn Fn(u64) + Send + Sync>>,
    /// Returns the notes for the manifest. It is called after the source was read, so the notes may
    /// depend on the bytes. It is also called before, to refuse notes that do not fit.
    pub notes: Option<Arc<dyn Fn() -> Notes + Send + Sync>>,
    /// An overview of the names that are put, from after the caller began. Nodes are not asked for
    /// what it shows. So the new version supersedes the versions that were acknowledged before the
    /// overview; a version of the same name that others write meanwhile may count instead.
    pub overview: Option<Arc<Overview>>,
    /// What the name must have when the version is numbered, after the source was read. Of several
    /// puts through one [`crate::Volume`] that expect the same, one succeeds. Other processes may
    /// put at the same moment; then both succeed, and the greater version counts.
    pub expected: Expected,
    /// When the object was written, if it is written anew in its own place.
    pub(crate) created: Option<u64>,
    /// The moment from which the pieces of an object in pieces are kept for it, if it is not now.
    pub(crate) begun: Option<Since>,
    /// The time by which the version is numbered, in seconds since the beginning of 1970, if it is
    /// not that of the survey before its manifests are written.
    pub(crate) time: Option<u64>,
}

impl PutOptions {
    /// Whether each part is so short that it is written by one request.
    fn is_short(&self) -> bool {
        self.length.is_some_and(|length| length <= MOST_KEPT as u64)
    }

    /// Notes these names and texts about the object.
    ///
    /// # Errors
    /// If they have more than 32 KiB together ([`ErrorKind::Parameters`]).
    pub fn noting(self, notes: &Notes) -> Result<Self> {
        let notes = check_notes(notes).map_err(Error::parameters)?;
        Ok(Self { notes: Some(Arc::new(move || notes.clone())), ..self })
    }
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
    /// Whether repair must still act: parts or manifests are not where they belong, or older
    /// versions remain.
    pub is_owed: bool,
    /// Number of further nodes that may be lost before a repair, whichever they are. Nodes that
    /// failed during the put do not count among them.
    pub spare: usize,
    /// What went wrong on nodes.
    pub flaws: Vec<Flaw>,
    /// The uploads that had stored the pieces of the versions that were removed.
    pub(crate) replaced: BTreeSet<String>,
}

/// The failure of a put.
#[derive(Debug)]
pub(crate) struct FailedPut {
    pub error: Error,
    /// Whether nodes may have the manifest. Then readers may find the new version, and others may
    /// carry it through.
    pub is_open: bool,
}

impl From<Error> for FailedPut {
    fn from(error: Error) -> Self {
        Self { error, is_open: false }
    }
}

impl From<FailedPut> for Error {
    fn from(failed: FailedPut) -> Self {
        failed.error
    }
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
    /// Prepares to write an object with a new id.
    pub fn new(cluster: &'a Cluster, name: &'a ObjectName, options: PutOptions) -> Result<Self> {
        Ok(Self { cluster, name, object: new_object()?, options, old: None })
    }

    /// Writes the object: in its manifests if it is small, otherwise in shards.
    pub async fn run(self, source: impl Read + Send + 'static) -> Result<PutReport> {
        self.expect_notes_fit()?;
        match peek(source, self.cluster.setup.inline_bytes).await? {
            BegunSource::Short(bytes) => self.run_inline(bytes).await,
            BegunSource::Long(source) => self.run_in_shards(source).await,
        }
    }

    /// Refuses notes that do not fit into a manifest, before anything is stored.
    fn expect_notes_fit(&self) -> Result<()> {
        let Some(notes) = &self.options.notes else { return Ok(()) };
        let refused = |flaw| Error::parameters(format!("{}: {flaw}", self.name));
        check_notes(&notes()).map(drop).map_err(refused)
    }

    async fn run_inline(self, bytes: Vec<u8>) -> Result<PutReport> {
        let order = self.cluster.inline_order(self.object);
        let parts = NewParts::Inline { length: bytes.len() as u64, order };
        self.options.progress.iter().for_each(|progress| progress(bytes.len() as u64));
        let digest = Digest::new(blake3::hash(&bytes).into());
        let content = NewContent::Inline { bytes, digest };
        let hands = PutHands::new(self.cluster, self.name, self.options.clone(), content);
        Ok(self.commit(parts, hands).await?)
    }

    /// Writes an object that consists of pieces, which are stored already.
    pub async fn run_in_pieces(
        self,
        upload: &str,
        pieces: Vec<Piece>,
    ) -> Result<PutReport, FailedPut> {
        self.expect_notes_fit()?;
        let length = pieces.iter().map(|piece| piece.length).sum();
        let parts = NewParts::Inline { length, order: self.cluster.inline_order(self.object) };
        let (digest, upload) = (digest_of_pieces(&pieces), upload.to_owned());
        let content = NewContent::Pieces { upload, pieces, digest };
        let hands = PutHands::new(self.cluster, self.name, self.options.clone(), content);
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
        let is_short = self.options.is_short();
        let content = NewContent::Shards { header: layout.front(0)?, layout };
        let mut hands = PutHands::new(cluster, self.name, self.options.clone(), content);
        hands.source = Some(source);
        let id = cluster.setup.id.clone();
        let record = block("recording the put", move || PutRecord::begin(&id, object)).await;
        hands.record = record.ok().map(Arc::new);
        let heartbeat = Heartbeat::new(cluster, object, &hands.pulse);
        let parts = NewParts::Shards { spread, needed, asks_first: !is_short };
        heartbeat.hold(async { Ok(self.commit(parts, hands).await?) }).await
    }

    /// Returns the layout of the new object.
    fn layout(&self) -> Result<ObjectLayout> {
        let setup = &self.cluster.setup;
        let shape = NewObject {
            packet: None,
            block_bytes: setup.block_bytes,
            object: Some(self.object),
            length: self.options.length,
            attributes: self.options.attributes,
            options: setup.options.clone(),
        };
        ObjectLayout::new(setup.code.clone(), self.name.base(), shape)
    }

    /// Stores parts and manifests.
    async fn commit(
        &self,
        parts: NewParts,
        mut hands: PutHands<'_>,
    ) -> Result<PutReport, FailedPut> {
        let put = Put::new(self.cluster.quorum, self.object, parts);
        let put = put.expecting(self.options.expected);
        let put = self.options.time.into_iter().fold(put, Put::at_time);
        let put = self.old.into_iter().fold(put, Put::in_place_of);
        let (listed, is_owed, put) = hands.run(put, self.object).await?;
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
        let (digest, created, replaced) = (hands.digest(), hands.created, hands.name.replaced());
        let flaws = hands.name.log.flaws;
        // Readers stay sure while at most `tolerance` nodes are silent. The failed nodes count
        // among these.
        let failed: BTreeSet<&str> = flaws.iter().map(|flaw| &*flaw.node).collect();
        let spare = spare.min(cluster.tolerance().saturating_sub(failed.len()));
        PutReport { listed, digest, created, nodes, is_inline, is_owed, spare, flaws, replaced }
    }
}

impl PutReport {
    /// Adds what was stored of a piece of the object.
    pub(crate) fn add(&mut self, piece: Self) {
        self.is_owed |= piece.is_owed;
        self.spare = self.spare.min(piece.spare);
        self.nodes.extend(piece.nodes);
        self.nodes.sort_unstable();
        self.nodes.dedup();
        piece.flaws.into_iter().for_each(|flaw| flaw.add_to(&mut self.flaws));
    }
}

/// Removes an object: writes a version which says that the name was removed.
pub(crate) struct RemoveJob<'a> {
    pub cluster: &'a Cluster,
    pub name: &'a ObjectName,
    pub expected: Expected,
}

/// The result of a removal.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RemoveReport {
    /// The version that says that the name was removed.
    pub listed: Listed,
    /// Whether repair must still act: too few nodes have the mark, or older versions remain.
    pub is_owed: bool,
    /// What went wrong on nodes.
    pub flaws: Vec<Flaw>,
}

impl RemoveJob<'_> {
    /// Returns the result, and the uploads that had stored the pieces of the removed versions.
    pub async fn run(self) -> Result<(RemoveReport, BTreeSet<String>)> {
        let (cluster, object) = (self.cluster, new_object()?);
        let options = PutOptions { expected: self.expected, ..PutOptions::default() };
        let mut hands = PutHands::new(cluster, self.name, options, NewContent::Removed);
        let parts = NewParts::Removed { order: cluster.inline_order(object) };
        let put = Put::new(cluster.quorum, object, parts).expecting(self.expected);
        let (listed, is_owed, _) = hands.run(put, object).await?;
        let replaced = hands.name.replaced();
        Ok((RemoveReport { listed, is_owed, flaws: hands.name.log.flaws }, replaced))
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
    block("reading the source", read).await?.map_err(|error| {
        Error::new(ErrorKind::Io, format!("reading the source: {error}")).because(error)
    })
}

/// The new content of a name.
enum NewContent {
    Removed,
    /// An object that is kept in its manifests.
    Inline {
        bytes: Vec<u8>,
        digest: Digest,
    },
    /// An object in pieces, which are stored already.
    Pieces {
        upload: String,
        pieces: Vec<Piece>,
        digest: Digest,
    },
    /// An object in shards, with the front header of part 0.
    Shards {
        layout: ObjectLayout,
        header: Vec<u8>,
    },
}

/// Executes the actions of a put.
struct PutHands<'a> {
    pub name: NameHands<'a>,
    pub pulse: Arc<Pulse>,
    /// The bytes of an object in shards, until they are sent.
    pub source: Option<Box<dyn Read + Send>>,
    /// The record of what is stored, until manifests follow. It stays if the put is given up.
    pub record: Option<Arc<PutRecord>>,
    /// The turn at the name, from the moment at which nothing is left but to write the manifests.
    turn: Option<NameTurn<'a>>,
    options: PutOptions,
    /// When the manifest was made.
    pub created: u64,
    content: NewContent,
    /// The error, if the source could not be sent or no manifest could be made.
    error: Option<Error>,
}

impl<'a> PutHands<'a> {
    pub fn new(
        cluster: &'a Cluster,
        name: &'a ObjectName,
        options: PutOptions,
        content: NewContent,
    ) -> Self {
        Self {
            name: NameHands::new(cluster, name),
            pulse: Arc::new(Pulse::since(options.begun.unwrap_or_else(Since::now))),
            source: None,
            record: None,
            turn: None,
            options,
            created: 0,
            content,
            error: None,
        }
    }

    /// Runs a put to its end, and leaves a hint if something is owed. Returns the version, whether
    /// something is owed, and what the put knows.
    async fn run(&mut self, put: Put, object: ObjectId) -> Result<(Listed, bool, Put), FailedPut> {
        if self.source.is_none() {
            self.take_turn().await;
        }
        let (outcome, put) = drive(put, self).await;
        self.turn = None;
        let PutOutcome::Committed { listed, is_owed } = outcome else {
            let is_open = !self.name.manifests.is_empty();
            return Err(FailedPut { error: self.failure(&outcome), is_open });
        };
        if is_owed {
            let NameFiles { cluster, name } = self.name.files;
            FolderHints::owed(cluster).leave(object, name).await;
        }
        Ok((listed, is_owed, put))
    }

    async fn take_turn(&mut self) {
        let NameFiles { cluster, name } = self.name.files;
        self.turn = Some(cluster.turns.take(name, self.options.expected).await);
    }

    /// Returns how the object is cut into shards, if it is.
    pub fn layout(&self) -> Option<&ObjectLayout> {
        match &self.content {
            NewContent::Shards { layout, .. } => Some(layout),
            _ => None,
        }
    }

    /// Returns the digest of the object that was stored.
    pub fn digest(&self) -> Digest {
        match (&self.content, &self.name.object) {
            (NewContent::Inline { digest, .. } | NewContent::Pieces { digest, .. }, _) => *digest,
            (_, object) => object.as_ref().map_or(Digest::new([0; 32]), |object| object.digest),
        }
    }

    /// Returns the versions that an overview shows on a node, if the node is there. Asks the node
    /// for what the overview does not show.
    fn recall(
        &mut self,
        overview: &Overview,
        action: Action,
    ) -> BoxFuture<'a, Result<ActionFinding>> {
        let NameFiles { cluster, name } = self.name.files;
        let Some(versions) = overview.on(action.node, name) else { return self.name.act(action) };
        let recalled = async move {
            cluster.expect_ready(action.node).await?;
            Ok(ActionFinding::Versions(versions))
        };
        recalled.boxed()
    }

    /// Returns the error of a put or removal that was not committed.
    fn failure(&mut self, outcome: &PutOutcome) -> Error {
        if let Some(error) = self.error.take() {
            return error;
        }
        let (flaws, name) = (told(&self.name.log.flaws), self.name.files.name);
        let needed = self.name.files.cluster.quorum.to_write();
        let (kind, message) = match outcome {
            PutOutcome::NotFound => (ErrorKind::NotFound, format!("there is no object {name}")),
            PutOutcome::Open { written, .. } => (
                ErrorKind::TooFewNodes,
                format!(
                    "{} confirmed the manifest of {name}; {needed} must. The outcome is open: \
                     readers find the new version or the one before, until `repair` carries the \
                     new one through. {flaws}",
                    counted(*written, "node")
                ),
            ),
            PutOutcome::Refused { answered, stored } => {
                (ErrorKind::TooFewNodes, self.refusal(*answered, *stored))
            }
            PutOutcome::Superseded if self.options.expected == Expected::Nothing => {
                return exists(name);
            }
            PutOutcome::Superseded => {
                let what = "was written, replaced or removed meanwhile; what is there now stays";
                (ErrorKind::Busy, format!("{name} {what}"))
            }
            PutOutcome::Committed { .. } => (ErrorKind::Internal, "the put succeeded".to_owned()),
        };
        self.with_cause(Error::new(kind, message))
    }

    /// Returns the message of a put or removal that made nothing visible.
    fn refusal(&self, answered: usize, stored: usize) -> String {
        let (flaws, name) = (told(&self.name.log.flaws), self.name.files.name);
        let quorum = self.name.files.cluster.quorum;
        let (nodes, must) = (quorum.nodes(), quorum.to_read().max(quorum.to_write()));
        let (did, shards) = match &self.content {
            NewContent::Removed => ("removed", String::new()),
            _ => ("written", format!(", and {} could be stored", counted(stored, "shard"))),
        };
        format!(
            "{name} is not {did}: {answered} of {nodes} nodes answered, {must} must{shards}. {flaws}"
        )
    }

    /// Adds to the error of a put that a node had no space, if one had none.
    fn with_cause(&self, error: Error) -> Error {
        match self.name.is_full {
            true => error.because(no_space()),
            false => error,
        }
    }

    /// Makes the manifest of the version that is about to be written, unless that was done.
    fn make_manifest(&mut self, listed: Listed) -> Result<()> {
        if self.name.manifests.contains_key(&listed.version) {
            return Ok(());
        }
        names::expect_seen(self.name.files.name, listed.version)?;
        let body = self.body()?;
        let Attributes { mode, modified, .. } = self.options.attributes;
        let notes = || self.options.notes.as_ref().map(|notes| notes()).unwrap_or_default();
        let content =
            body.map(|(digest, body)| Content { digest, body, mode, modified, notes: notes() });
        let NameFiles { cluster, name } = self.name.files;
        let (volume, name) = (cluster.setup.id.clone(), name.clone());
        self.created = self.options.created.unwrap_or_else(now);
        let manifest = Manifest { volume, name, listed, content, created: self.created };
        self.name.manifests.insert(listed.version, Bytes::from(manifest.to_bytes()?));
        Ok(())
    }

    /// Returns the digest and the body of the manifest; `None` if it says that the name is removed.
    fn body(&self) -> Result<Option<(Digest, Body)>> {
        let (layout, header) = match &self.content {
            NewContent::Removed => return Ok(None),
            NewContent::Inline { bytes, digest } => {
                return Ok(Some((*digest, Body::Inline(bytes.clone()))));
            }
            NewContent::Pieces { upload, pieces, digest } => {
                let (upload, pieces) = (upload.clone(), pieces.clone());
                return Ok(Some((*digest, Body::Pieces { upload, pieces })));
            }
            NewContent::Shards { layout, header } => (layout, header.clone()),
        };
        let object = self.name.object.as_ref();
        let missing = || Error::new(ErrorKind::Internal, "the object is not stored");
        let digest = object.ok_or_else(missing)?.digest;
        let node = |part: usize| self.name.log.whole.of(PartIndex(part)).next();
        let name = |node: NodeIndex| self.name.files.cluster.node_name(node).to_owned();
        let place = |part: usize| node(part).map_or("-".to_owned(), name);
        let placement = layout.parts_in(1).map(place).collect();
        let code = layout.code().spec().to_string();
        Ok(Some((digest, Body::Shards { code, header, placement })))
    }

    /// Sends the source to the nodes.
    async fn send(
        &mut self,
        source: Box<dyn Read + Send>,
        layout: ObjectLayout,
        parts: &[(usize, NodeIndex)],
    ) -> Result<Vec<Answer>> {
        let (writers, refusals) = self.open(&layout, parts).await;
        let progress = self.options.progress.clone().unwrap_or_else(|| Arc::new(|_| {}));
        let needed = enough_parts(&layout);
        let settings = &self.name.files.cluster.setup.settings;
        let sent = send(&layout, source, writers, needed, settings, progress).await;
        let sent = sent.map_err(|error| match error.kind() {
            ErrorKind::TooFewNodes => {
                self.name.is_full |= is_full(&error);
                self.not_written(&error.with_reasons(&refusals))
            }
            _ => error,
        })?;
        let (id, length, digest) = (layout.object(), sent.length, sent.digest);
        self.name.object = Some(ShardedObject { id, layout, length, digest });
        Ok(parts.iter().map(|&(part, node)| self.take_sent(part, node, &sent)).collect())
    }

    /// Names the object that an error is about.
    fn not_written(&self, error: &Error) -> Error {
        let message = format!("{} is not written: {}", self.name.files.name, error.message());
        let named = self.with_cause(Error::new(error.kind(), message));
        match error.expected().zip(error.given()) {
            Some((expected, given)) => named.counting(expected, given),
            None => named,
        }
    }

    /// Opens a writer for each part. Also returns why some nodes refused.
    async fn open(
        &mut self,
        layout: &ObjectLayout,
        parts: &[(usize, NodeIndex)],
    ) -> (Vec<Option<Box<dyn Writer>>>, Vec<String>) {
        let NameFiles { cluster, name } = self.name.files;
        let is_short = self.options.is_short();
        let open = async |&(part, node): &(usize, NodeIndex)| {
            let path = name.part(layout.object(), &layout.file_suffix(part));
            let storage = cluster.writable(node).await?;
            match is_short {
                true => Ok(Box::new(WholeWriter::new(Arc::clone(storage), path)) as Box<_>),
                false => storage.writer(&path).await,
            }
        };
        let opened: Vec<Result<_>> = join_all(parts.iter().map(open)).await;
        let (mut writers, mut refusals) = (Vec::new(), Vec::new());
        writers.resize_with(layout.parts_in(1).len(), || None);
        for (&(part, node), writer) in parts.iter().zip(opened) {
            match writer {
                Ok(writer) => writers[part] = Some(writer),
                Err(error) => {
                    self.name.failed(node, Some(layout.part(part).shard), &error);
                    refusals.push(error.to_string());
                }
            }
        }
        (writers, refusals)
    }

    fn take_sent(&mut self, part: usize, node: NodeIndex, sent: &Sent) -> Answer {
        match &sent.parts[part] {
            Ok(()) => {
                self.name.log.stored(part, node);
                return Answer::Stored { length: sent.length };
            }
            // It was told why no writer could be opened.
            Err(error) if error.kind() == ErrorKind::Cancelled => {}
            Err(error) => {
                let shard = self.layout().map(|layout| layout.part(part).shard);
                return self.name.failed(node, shard, error);
            }
        }
        Answer::Failed
    }
}

/// Returns the number of parts of stage 1 that are enough to decode the object.
fn enough_parts(layout: &ObjectLayout) -> usize {
    let parts = layout.parts_in(1).len();
    match layout.code().graph() {
        None => parts - layout.tolerance(1),
        // For an LT code: the least number of parts, counted from the last one, that decode the
        // object.
        Some(_) => {
            (1..parts).find(|&count| layout.is_solvable_from(parts - count..parts)).unwrap_or(parts)
        }
    }
}

#[async_trait]
impl<'a> Hands for PutHands<'a> {
    type Finding = Result<ActionFinding>;
    type Work = BoxFuture<'a, Result<ActionFinding>>;

    fn act(&mut self, action: Action) -> BoxFuture<'a, Result<ActionFinding>> {
        let listed = match (action.request, &self.options.overview) {
            (Request::WriteManifest(listed), _) => listed,
            (Request::ListVersions, Some(overview)) => {
                return self.recall(&Arc::clone(overview), action);
            }
            _ => return self.name.act(action),
        };
        if let Err(error) = self.make_manifest(listed) {
            self.error.get_or_insert(error);
            let unmade = Error::new(ErrorKind::Internal, "there is no manifest to write");
            return ready(Err(unmade)).boxed();
        }
        let (write, files) = (self.name.act(action), self.name.files);
        let (pulse, record) = (Arc::clone(&self.pulse), self.record.clone());
        let waits = self.layout().is_some_and(|layout| layout.code().stages() > 1);
        let work = async move {
            let storage = files.cluster.writable(action.node).await?;
            pulse.expect()?;
            if let Some(record) = record {
                block("ending the record of the put", move || record.end()).await??;
            }
            if waits {
                let path = names::mark(names::BACKLOG, listed.version.object);
                // A hint; without it, repair finds the object.
                let _ = storage.write(&path, hints::text(files.name).into(), Mode::Replace).await;
            }
            write.await
        };
        work.boxed()
    }

    fn take(&mut self, action: Action, finding: Result<ActionFinding>) -> Answer {
        self.name.take(action, finding)
    }

    async fn store(&mut self, parts: &[(usize, NodeIndex)]) -> Vec<Answer> {
        let (Some(source), Some(layout)) = (self.source.take(), self.layout().cloned()) else {
            return self.name.store(parts).await;
        };
        let sent = self.send(source, layout, parts).await;
        if sent.is_ok() {
            self.take_turn().await;
        }
        sent.unwrap_or_else(|error| {
            self.error = Some(error);
            vec![Answer::Failed; parts.len()]
        })
    }
}
