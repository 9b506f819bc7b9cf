//! Executes the actions of a put or a removal: sends the source, and makes the new manifest.

use std::io::Read;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use paritas_shards::Digest;
use paritas_shards::blocks::ObjectLayout;
use paritas_store::error::{Error, ErrorKind, Result};
use paritas_store::place::attributes::Attributes;
use paritas_store::shown::counted;

use crate::clock::now;
use crate::cluster::Cluster;
use crate::driver::Hands;
use crate::files::NameFiles;
use crate::flaw::told;
use crate::hands::{Finding, NameHands};
use crate::heartbeat::Pulse;
use crate::hints;
use crate::manifest::{Body, Content, Manifest, Notes, Piece};
use crate::names::{self, ObjectName};
use crate::node::{Mode, Writer};
use crate::protocol::{Action, Answer, Listed, NodeIndex, PartIndex, PutOutcome, Request};
use crate::transfer::ShardedObject;
use crate::transfer::send::{Sent, send};
use crate::unfinished::PutRecord;

/// Returns what a manifest notes about an object.
pub(crate) type MakeNotes = Arc<dyn Fn() -> Notes + Send + Sync>;

/// What a name means from now on.
pub(crate) enum NewContent {
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
pub(crate) struct PutHands<'a> {
    pub name: NameHands<'a>,
    pub pulse: Arc<Pulse>,
    /// The bytes of an object in shards, until they are sent.
    pub source: Option<Box<dyn Read + Send>>,
    /// The record of what is stored, until manifests follow. It stays if the put is given up.
    pub record: Option<Arc<PutRecord>>,
    /// Mode and time of the source, which are kept.
    pub attributes: Attributes,
    /// Is told the number of bytes sent since it was last called.
    pub progress: Option<Arc<dyn Fn(u64) + Send + Sync>>,
    /// Returns what the manifest notes about the object.
    pub notes: Option<MakeNotes>,
    /// When the manifest was made.
    pub created: u64,
    content: NewContent,
    /// Why the source could not be sent.
    error: Option<Error>,
}

impl<'a> PutHands<'a> {
    pub fn new(cluster: &'a Cluster, name: &'a ObjectName, content: NewContent) -> Self {
        Self {
            name: NameHands::new(cluster, name),
            pulse: Arc::new(Pulse::begin()),
            source: None,
            record: None,
            attributes: Attributes::default(),
            progress: None,
            notes: None,
            created: 0,
            content,
            error: None,
        }
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

    /// Returns the error of a put or removal that was not committed.
    pub fn failure(self, outcome: &PutOutcome) -> Error {
        if let Some(error) = self.error {
            return error;
        }
        let (flaws, name) = (told(&self.name.log.flaws), self.name.files.name);
        let quorum = self.name.files.cluster.quorum;
        let needed = quorum.to_write();
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
                let (nodes, must) = (quorum.nodes(), quorum.to_read().max(needed));
                let did = self.content.refused(*stored);
                let message = format!(
                    "{name} is not {}: {answered} of {nodes} nodes answered, {must} must{}. \
                     {flaws}",
                    did.0, did.1
                );
                (ErrorKind::TooFewNodes, message)
            }
            PutOutcome::Superseded => {
                let message = "was replaced or removed meanwhile; what is there now stays";
                (ErrorKind::Busy, format!("{name} {message}"))
            }
            PutOutcome::Committed { .. } => (ErrorKind::Internal, "the put succeeded".to_owned()),
        };
        Error::new(kind, message)
    }

    /// Makes the manifest of the version that is about to be written, unless that was done.
    fn make_manifest(&mut self, listed: Listed) -> Result<()> {
        if self.name.has_manifest(listed.version) {
            return Ok(());
        }
        let body = self.body()?;
        let Attributes { mode, modified, .. } = self.attributes;
        let notes = || self.notes.as_ref().map(|notes| notes()).unwrap_or_default();
        let content =
            body.map(|(digest, body)| Content { digest, body, mode, modified, notes: notes() });
        let NameFiles { cluster, name } = self.name.files;
        let (volume, name) = (cluster.setup.id.clone(), name.clone());
        self.created = now();
        let manifest = Manifest { volume, name, listed, content, created: self.created };
        self.name.keep_manifest(listed.version, Bytes::from(manifest.to_bytes()?));
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
        let progress = self.progress.clone().unwrap_or_else(|| Arc::new(|_| {}));
        let needed = enough_parts(&layout);
        let settings = &self.name.files.cluster.setup.settings;
        let sent = send(&layout, source, writers, needed, settings, progress).await;
        let sent = sent.map_err(|error| match error.kind() {
            ErrorKind::TooFewNodes => error.with_reasons(&refusals),
            _ => error,
        })?;
        let (id, length, digest) = (layout.object(), sent.length, sent.digest);
        self.name.object = Some(ShardedObject { id, layout, length, digest });
        Ok(parts.iter().map(|&(part, node)| self.take_sent(part, node, &sent)).collect())
    }

    /// Opens a writer for each part. Also returns why some nodes refused.
    async fn open(
        &mut self,
        layout: &ObjectLayout,
        parts: &[(usize, NodeIndex)],
    ) -> (Vec<Option<Box<dyn Writer>>>, Vec<String>) {
        let NameFiles { cluster, name } = self.name.files;
        let open = async |&(part, node): &(usize, NodeIndex)| {
            let path = name.part(layout.object(), &layout.file_suffix(part));
            cluster.writable(node).await?.writer(&path).await
        };
        let opened: Vec<Result<_>> = join_all(parts.iter().map(open)).await;
        let (mut writers, mut refusals) = (Vec::new(), Vec::new());
        writers.resize_with(layout.parts_in(1).len(), || None);
        for (&(part, node), writer) in parts.iter().zip(opened) {
            match writer {
                Ok(writer) => writers[part] = Some(writer),
                Err(error) => {
                    self.name.note(node, Some(layout.part(part).shard), error.message());
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
                self.name.note(node, shard, error.message());
            }
        }
        Answer::Failed
    }
}

impl NewContent {
    /// Returns what did not happen to a name, and what a message says of shards.
    fn refused(&self, stored: usize) -> (&'static str, String) {
        match self {
            Self::Removed => ("removed", String::new()),
            _ => ("written", format!(", and {} could be stored", counted(stored, "shard"))),
        }
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
    type Finding = Result<Finding>;
    type Work = BoxFuture<'a, Result<Finding>>;

    fn act(&mut self, action: Action) -> BoxFuture<'a, Result<Finding>> {
        let Request::WriteManifest(listed) = action.request else { return self.name.act(action) };
        let made = self.make_manifest(listed);
        let (write, files) = (self.name.act(action), self.name.files);
        let (pulse, record) = (Arc::clone(&self.pulse), self.record.clone());
        let waits = self.layout().is_some_and(|layout| layout.code().stages() > 1);
        let work = async move {
            let storage = files.cluster.writable(action.node).await?;
            pulse.expect()?;
            record.map_or(Ok(()), |record| record.end())?;
            made?;
            if waits {
                let path = names::mark(names::BACKLOG, listed.version.object);
                // A hint; without it, repair finds the object.
                let _ = storage.write(&path, hints::text(files.name).into(), Mode::Replace).await;
            }
            write.await
        };
        work.boxed()
    }

    fn take(&mut self, action: Action, finding: Result<Finding>) -> Answer {
        self.name.take(action, finding)
    }

    async fn store(&mut self, parts: &[(usize, NodeIndex)]) -> Vec<Answer> {
        let (Some(source), Some(layout)) = (self.source.take(), self.layout().cloned()) else {
            return self.name.store(parts).await;
        };
        self.send(source, layout, parts).await.unwrap_or_else(|error| {
            self.error = Some(error);
            vec![Answer::Failed; parts.len()]
        })
    }
}
