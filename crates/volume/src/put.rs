//! Writing objects.

use std::future::Future;
use std::io::{Cursor, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use paritas_shards::blocks::{NewObject, ObjectLayout};
use paritas_shards::{Digest, ObjectId};
use paritas_store::error::{Error, ErrorKind, Result};
use paritas_store::place::attributes::Attributes;
use paritas_store::shown::counted;

use crate::cleaning::Unfinished;
use crate::driver::{Hands, Since, drive};
use crate::hands::{Flaw, NameHands, now, told};
use crate::manifest::{Body, Content, Manifest, Notes, Piece, digest_of_pieces};
use crate::names::{self, ObjectName};
use crate::node::{Mode, Node};
use crate::protocol::{
    self, Action, Answer, Event, Listed, NodeIndex, PartIndex, Put, PutOutcome, Request, Version,
    VersionKind,
};
use crate::transfer::send::send;
use crate::unfinished::PutRecord;
use crate::volume::Volume;

/// How often the heartbeat of a long put is renewed.
const HEARTBEAT: Duration = Duration::from_secs(3600);

/// How long a put goes on while its heartbeat cannot be renewed.
const PULSELESS: Duration = Duration::from_secs(12 * 3600);

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

impl Volume {
    /// Writes an object. When this returns, the object is durable, and every reader finds it.
    ///
    /// # Errors
    /// If too few nodes take part ([`ErrorKind::TooFewNodes`]): then nothing is visible, unless the
    /// message says that the outcome is open. If the source cannot be read ([`ErrorKind::Io`]), or
    /// if the name is one of the volume's own ([`ErrorKind::Parameters`]).
    pub async fn put(
        &self,
        name: &ObjectName,
        source: impl Read + Send + 'static,
        options: PutOptions,
    ) -> Result<PutReport> {
        if names::is_own(name.as_str()) {
            let message = format!("{name}: names that begin with .paritas/ are the volume's own");
            return Err(Error::parameters(message));
        }
        self.put_any(name, source, options).await
    }

    /// Writes an object as [`Volume::put`] does, under any name.
    pub(crate) async fn put_any(
        &self,
        name: &ObjectName,
        source: impl Read + Send + 'static,
        options: PutOptions,
    ) -> Result<PutReport> {
        let object = ObjectId::random()?;
        match peek(source, self.setup.inline_bytes).await? {
            BegunSource::Short(bytes) => self.put_inline(name, object, bytes, options).await,
            BegunSource::Long(source) => self.put_shards(name, object, source, options, None).await,
        }
    }

    async fn put_inline(
        &self,
        name: &ObjectName,
        object: ObjectId,
        bytes: Vec<u8>,
        options: PutOptions,
    ) -> Result<PutReport> {
        let order = self.inline_order(object);
        let content = protocol::NewParts::Inline { length: bytes.len() as u64, order };
        options.progress.iter().for_each(|progress| progress(bytes.len() as u64));
        let digest = Digest::new(blake3::hash(&bytes).into());
        let make = move |_: &NameHands<'_>| Some((digest, Body::Inline(bytes.clone())));
        let hands = PutHands::new(self, name, options, Box::new(make));
        self.finish_put(object, content, hands, None).await
    }

    /// Writes an object that consists of pieces, which are stored already.
    pub(crate) async fn put_pieces(
        &self,
        name: &ObjectName,
        upload: &str,
        pieces: Vec<Piece>,
        options: PutOptions,
    ) -> Result<PutReport> {
        let object = ObjectId::random()?;
        let length = pieces.iter().map(|piece| piece.length).sum();
        let content = protocol::NewParts::Inline { length, order: self.inline_order(object) };
        let (digest, upload) = (digest_of_pieces(&pieces), upload.to_owned());
        let body = move || Body::Pieces { upload: upload.clone(), pieces: pieces.clone() };
        let make = move |_: &NameHands<'_>| Some((digest, body()));
        let hands = PutHands::new(self, name, options, Box::new(make));
        self.finish_put(object, content, hands, None).await
    }

    /// Writes an object in shards, in place of the version `old` if one is given.
    pub(crate) async fn put_shards(
        &self,
        name: &ObjectName,
        object: ObjectId,
        source: Box<dyn Read + Send>,
        options: PutOptions,
        old: Option<Version>,
    ) -> Result<PutReport> {
        let layout = self.new_layout(name, object, &options)?;
        self.expect_room(name, &layout)?;
        let spread = self.spread(object, layout.code());
        let first = layout.parts_in(1).len();
        let spread = protocol::Spread { homes: spread.homes[..first].to_vec(), ..spread };
        let needed = first - self.setup.missing.min(layout.tolerance(1));
        let content = protocol::NewParts::Shards { spread, needed };
        let (code, header) = (layout.code().spec().to_string(), layout.front(0)?);
        let make = move |hands: &NameHands<'_>| {
            let (_, digest) = hands.total()?;
            let files = hands.files();
            let node = |part: usize| files.get(&part)?.keys().next().copied();
            let name = |node| hands.volume.node_name(node).to_owned();
            let placement = (0..first).map(|part| node(part).map_or("-".to_owned(), name));
            let (code, header, placement) = (code.clone(), header.clone(), placement.collect());
            Some((digest, Body::Shards { code, header, placement }))
        };
        let mut hands = PutHands::new(self, name, options, Box::new(make));
        hands.name.keep_layout(layout);
        hands.source = Mutex::new(Some(source));
        let id = self.setup.id.clone();
        let record = tokio::task::spawn_blocking(move || PutRecord::begin(&id, object)).await;
        hands.record = Mutex::new(record.ok());
        let heartbeat = Heartbeat::new(self, object, &hands.pulse);
        let done = tokio::select! {
            done = self.finish_put(object, content, hands, old) => done,
            error = self.beat(object, &heartbeat.pulse) => Err(error),
        };
        heartbeat.end().await;
        done
    }

    fn new_layout(
        &self,
        name: &ObjectName,
        object: ObjectId,
        options: &PutOptions,
    ) -> Result<ObjectLayout> {
        let mut shape = NewObject::default();
        shape.block_bytes = self.setup.block_bytes;
        shape.object = Some(object);
        shape.length = options.length;
        shape.attributes = options.attributes;
        shape.options = self.setup.options.clone();
        ObjectLayout::new(self.setup.code.clone(), name.base(), shape)
    }

    async fn finish_put(
        &self,
        object: ObjectId,
        content: protocol::NewParts,
        hands: PutHands<'_>,
        old: Option<Version>,
    ) -> Result<PutReport> {
        let is_inline = matches!(content, protocol::NewParts::Inline { .. });
        let put = Put::new(self.quorum, object, content, now());
        let put = old.into_iter().fold(put, Put::in_place_of);
        let (outcome, put) = drive(put, &hands).await;
        let flaws = hands.name.flaws();
        let (listed, is_owed) = match outcome {
            PutOutcome::Committed { listed, is_owed } => (listed, is_owed),
            outcome => return Err(hands.failure(&outcome, &flaws)),
        };
        if is_owed {
            self.mark_object(names::OWED, object, hands.name.name).await;
        }
        let manifests = hands.name.holders(listed.version);
        let (holders, spare) = match hands.name.layout() {
            Some(layout) if !is_inline => {
                let shard = |(part, node): (PartIndex, _)| (layout.part(part.0).shard, node);
                let places = put.stored().iter().map(shard).collect();
                let spare = self.losable_nodes(layout.code(), 1, &places, manifests.len());
                (places.into_iter().map(|(_, node)| node).collect(), spare)
            }
            _ => (manifests.clone(), self.tolerance().min(manifests.len().saturating_sub(1))),
        };
        let nodes = holders.into_iter().map(|node| self.node_name(node).to_owned()).collect();
        let manifest = hands.name.manifest(listed.version);
        let created = manifest.as_ref().map_or(0, |manifest| manifest.created);
        let content = manifest.and_then(|manifest| manifest.content);
        let digest = content.map_or(Digest::new([0; 32]), |content| content.digest);
        Ok(PutReport { listed, digest, created, nodes, is_inline, is_owed, spare, flaws })
    }

    /// Leaves a hint about an object on all nodes that answer. A hint that is there already stays,
    /// because it tells since when the object waits.
    pub(crate) async fn mark_object(&self, folder: &str, object: ObjectId, name: &ObjectName) {
        let path = names::mark(folder, object);
        let write = |node| {
            let text = format!("{} {name}\n", now());
            let path = &path;
            async move { self.writable(node).await?.write(path, text.into(), Mode::Create).await }
        };
        // Where the hint cannot be written, repair still finds the object.
        join_all(self.nodes().map(write)).await;
    }

    /// Removes a hint about an object from all nodes that answer.
    pub(crate) async fn unmark_object(&self, folder: &str, object: ObjectId) {
        let path = names::mark(folder, object);
        join_all(self.nodes().map(|node| self.node(node).delete(&path))).await;
    }

    /// Renews the heartbeat of a long put, so that nobody collects what the put has stored. Returns
    /// an error when too few nodes took the heartbeat for [`PULSELESS`].
    async fn beat(&self, object: ObjectId, pulse: &Pulse) -> Error {
        let path = names::mark(names::RUNNING, object);
        loop {
            tokio::time::sleep(HEARTBEAT).await;
            if let Err(error) = pulse.expect() {
                return error;
            }
            pulse.written.store(true, Ordering::Relaxed);
            let write = |node| {
                let text = format!("{}\n", now());
                let path = &path;
                async move { self.writable(node).await?.write(path, text.into(), Mode::Replace).await }
            };
            let written = join_all(self.nodes().map(write)).await;
            if written.iter().flatten().count() >= self.quorum.to_read() {
                pulse.renew();
            }
        }
    }

    /// Removes an object: its name means nothing from then on.
    ///
    /// # Errors
    /// If there is no such object ([`ErrorKind::NotFound`]), or if too few nodes take part
    /// ([`ErrorKind::TooFewNodes`]).
    pub async fn remove(&self, name: &ObjectName) -> Result<Listed> {
        let object = ObjectId::random()?;
        let mut hands = PutHands::new(self, name, PutOptions::default(), Box::new(|_| None));
        hands.is_removal = true;
        let content = protocol::NewParts::Removed { order: self.inline_order(object) };
        let put = Put::new(self.quorum, object, content, now());
        let (outcome, _) = drive(put, &hands).await;
        match outcome {
            PutOutcome::Committed { listed, is_owed } => {
                if is_owed {
                    self.mark_object(names::OWED, object, name).await;
                }
                Ok(listed)
            }
            outcome => Err(hands.failure(&outcome, &hands.name.flaws())),
        }
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

/// The files of a put's heartbeat. They are removed when the put ends, or soon after it is given
/// up.
struct Heartbeat {
    pulse: Arc<Pulse>,
    nodes: Vec<Arc<dyn Node>>,
    path: String,
    unfinished: Unfinished,
}

impl Heartbeat {
    fn new(volume: &Volume, object: ObjectId, pulse: &Arc<Pulse>) -> Self {
        Self {
            pulse: Arc::clone(pulse),
            nodes: volume.nodes().map(|node| Arc::clone(volume.node(node))).collect(),
            path: names::mark(names::RUNNING, object),
            unfinished: Unfinished::begin(),
        }
    }

    async fn end(self) {
        if let Some(removal) = self.removal() {
            removal.await;
            self.pulse.written.store(false, Ordering::Relaxed);
        }
    }

    /// Returns what removes the files from all nodes that answer, if there may be any.
    fn removal(&self) -> Option<impl Future<Output = ()> + Send + use<>> {
        let (nodes, path) = (self.nodes.clone(), self.path.clone());
        self.pulse.written.load(Ordering::Relaxed).then_some(async move {
            join_all(nodes.iter().map(|node| node.delete(&path))).await;
        })
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        if let Some(removal) = self.removal() {
            self.unfinished.remove(removal);
        }
    }
}

/// When the heartbeat of a put was last renewed.
struct Pulse {
    /// When it was last renewed, or the put began. Once that is [`PULSELESS`] ago, what the put
    /// stored may have been collected, so no manifest may be written any more.
    last: Mutex<Since>,
    /// Whether a file of it may be on a node.
    written: AtomicBool,
}

impl Pulse {
    fn begin() -> Self {
        Self { last: Mutex::new(Since::now()), written: AtomicBool::new(false) }
    }

    fn renew(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Since::now();
    }

    /// Fails if the heartbeat is too old.
    fn expect(&self) -> Result<()> {
        let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match last.elapsed() < PULSELESS {
            true => Ok(()),
            false => {
                let message = "too few nodes took the heartbeat for 12 hours, or the machine was \
                               suspended for as long";
                Err(Error::new(ErrorKind::TooFewNodes, message))
            }
        }
    }
}

/// Makes the digest and the body of a manifest. Returns `None` if the object is not stored.
type MakeBody = Box<dyn Fn(&NameHands<'_>) -> Option<(Digest, Body)> + Send + Sync>;

/// Executes the actions of a put.
struct PutHands<'a> {
    name: NameHands<'a>,
    options: PutOptions,
    make_body: MakeBody,
    source: Mutex<Option<Box<dyn Read + Send>>>,
    pulse: Arc<Pulse>,
    /// Whether the name is removed.
    is_removal: bool,
    /// The record of what is stored, until manifests follow. It stays if the put is given up.
    record: Mutex<Option<PutRecord>>,
    /// Why the source could not be sent.
    error: Mutex<Option<Error>>,
}

impl<'a> PutHands<'a> {
    fn new(
        volume: &'a Volume,
        name: &'a ObjectName,
        options: PutOptions,
        make_body: MakeBody,
    ) -> Self {
        Self {
            name: NameHands::new(volume, name),
            options,
            make_body,
            source: Mutex::new(None),
            pulse: Arc::new(Pulse::begin()),
            is_removal: false,
            record: Mutex::new(None),
            error: Mutex::new(None),
        }
    }

    /// Removes the record of what is stored.
    fn end_record(&self) -> Result<()> {
        let mut record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        record.as_mut().map_or(Ok(()), PutRecord::end).map_err(|error| {
            let message = format!("cannot remove the record of an unfinished put: {error}");
            Error::new(ErrorKind::Io, message).because(error)
        })
    }

    /// Returns the error of a put or removal that was not committed.
    fn failure(&self, outcome: &PutOutcome, flaws: &[Flaw]) -> Error {
        if let Some(error) = self.error.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return error;
        }
        let flaws = told(flaws);
        let (quorum, name) = (self.name.volume.quorum, self.name.name);
        let needed = quorum.to_write();
        match outcome {
            PutOutcome::NotFound => {
                Error::new(ErrorKind::NotFound, format!("there is no object {name}"))
            }
            PutOutcome::Open { written, .. } => Error::new(
                ErrorKind::TooFewNodes,
                format!(
                    "{} confirmed the manifest of {name}; {needed} must. The outcome is open: \
                     readers find the new version or the one before, until `repair` carries the \
                     new one through. {flaws}",
                    counted(*written, "node")
                ),
            ),
            PutOutcome::Refused { answered, stored } => {
                let (did, shards) = match self.is_removal {
                    true => ("removed", String::new()),
                    false => {
                        let stored = counted(*stored, "shard");
                        ("written", format!(", and {stored} could be stored"))
                    }
                };
                let (nodes, must) = (quorum.nodes(), quorum.to_read().max(needed));
                Error::new(
                    ErrorKind::TooFewNodes,
                    format!(
                        "{name} is not {did}: {answered} of {nodes} nodes answered, {must} \
                         must{shards}. {flaws}"
                    ),
                )
            }
            PutOutcome::Superseded => Error::new(
                ErrorKind::Busy,
                format!("{name} was replaced or removed meanwhile; what is there now stays"),
            ),
            PutOutcome::Committed { .. } => Error::new(ErrorKind::Internal, "the put succeeded"),
        }
    }

    /// Makes the manifest of the version that is about to be written.
    fn keep_manifest(&self, listed: Listed) -> Result<()> {
        if self.name.manifest(listed.version).is_some() {
            return Ok(());
        }
        let missing = || Error::new(ErrorKind::Internal, "the object is not stored");
        let content = match listed.kind {
            VersionKind::Removed => None,
            VersionKind::Put => {
                let (digest, body) = (self.make_body)(&self.name).ok_or_else(missing)?;
                let Attributes { mode, modified, .. } = self.options.attributes;
                let notes = self.options.notes.as_ref().map(|notes| notes()).unwrap_or_default();
                Some(Content { digest, body, mode, modified, notes })
            }
        };
        let volume = self.name.volume.setup.id.clone();
        let name = self.name.name.clone();
        self.name.keep_manifest(Manifest { volume, name, listed, content, created: now() })
    }

    /// Sends the source to the nodes.
    async fn send(&self, source: Box<dyn Read + Send>, actions: &[Action]) -> Result<Vec<Answer>> {
        let volume = self.name.volume;
        let layout =
            self.name.layout().ok_or_else(|| Error::new(ErrorKind::Internal, "no layout"))?;
        let (mut writers, mut places, mut refusals) = (Vec::new(), Vec::new(), Vec::new());
        writers.resize_with(layout.parts_in(1).len(), || None);
        let open = |&action: &Action| {
            let layout = &layout;
            async move {
                let Request::StorePart { object, part } = action.request else { return None };
                let path = self.name.name.part(object, &layout.file_suffix(part.0));
                let writer = async { volume.writable(action.node).await?.writer(&path).await };
                Some((part.0, action.node, path.clone(), writer.await))
            }
        };
        for (part, node, path, writer) in
            join_all(actions.iter().map(open)).await.into_iter().flatten()
        {
            match writer {
                Ok(writer) => writers[part] = Some(writer),
                Err(error) => {
                    self.name.note(node, Some(layout.part(part).shard), error.message());
                    refusals.push(error.to_string());
                }
            }
            places.push((part, node, path));
        }
        let progress = self.options.progress.clone().unwrap_or_else(|| Arc::new(|_| {}));
        let needed = enough_parts(&layout);
        let settings = &volume.setup.settings;
        let sent = send(&layout, source, writers, needed, settings, progress).await;
        let sent = sent.map_err(|error| match error.kind() {
            ErrorKind::TooFewNodes => error.with_reasons(&refusals),
            _ => error,
        })?;
        self.name.keep_total(sent.length, sent.digest);
        let answer = |(part, node, path): (usize, NodeIndex, String)| match &sent.parts[part] {
            Ok(()) => {
                self.name.add_file(part, node, path);
                Answer::Stored { length: sent.length }
            }
            Err(error) => {
                if error.kind() != ErrorKind::Cancelled {
                    self.name.note(node, Some(layout.part(part).shard), error.message());
                }
                Answer::Failed
            }
        };
        Ok(places.into_iter().map(answer).collect())
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
impl Hands for PutHands<'_> {
    async fn act(&self, action: Action) -> Answer {
        if let Request::WriteManifest(listed) = action.request {
            let storage = self.name.volume.writable(action.node).await;
            let ready = storage.and_then(|_| self.pulse.expect());
            let ready = ready.and_then(|()| self.end_record());
            if let Err(error) = ready.and_then(|()| self.keep_manifest(listed)) {
                self.name.note(action.node, None, error.message());
                return Answer::Failed;
            }
            let stages = self.name.layout().map_or(1, |layout| layout.code().stages());
            if stages > 1 {
                let (path, text) = (
                    names::mark(names::BACKLOG, listed.version.object),
                    format!("{} {}\n", now(), self.name.name),
                );
                // A hint; without it, repair finds the object.
                let node = self.name.volume.node(action.node);
                let _ = node.write(&path, text.into(), Mode::Replace).await;
            }
        }
        self.name.act(action).await
    }

    async fn store(&self, actions: Vec<Action>) -> Vec<Event> {
        let source = self.source.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(source) = source else { return self.name.store(actions).await };
        let answers = self.send(source, &actions).await.unwrap_or_else(|error| {
            *self.error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            vec![Answer::Failed; actions.len()]
        });
        let events = actions.into_iter().zip(answers);
        events.map(|(action, answer)| Event { action, answer }).collect()
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;

    use super::*;
    use crate::node::Endpoint;
    use crate::placement::Member;
    use crate::volume::Setup;

    #[test]
    fn a_heartbeat_that_stood_still_while_the_machine_slept_is_void() {
        let pulse = Pulse::begin();
        assert!(pulse.expect().is_ok());
        *pulse.last.lock().unwrap() = Since::suspended_for(PULSELESS);
        assert_eq!(pulse.expect().unwrap_err().kind(), ErrorKind::TooFewNodes);
        pulse.renew();
        assert!(pulse.expect().is_ok());
    }

    /// A source that says when it is asked for more, and then gives none until the other end of its
    /// line is gone.
    struct Stalled(Arc<AtomicBool>, std::sync::mpsc::Receiver<()>);

    impl Read for Stalled {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            self.0.store(true, Ordering::Relaxed);
            let _ = self.1.recv();
            Ok(0)
        }
    }

    /// Lets other tasks run until something holds.
    async fn until(holds: impl AsyncFn() -> bool) {
        let begun = std::time::Instant::now();
        while !holds().await {
            assert!(begun.elapsed() < Duration::from_secs(20));
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_put_that_is_given_up_removes_its_heartbeat() {
        let node = |number: usize| {
            let name = format!("n{number}");
            let node: Arc<dyn Node> = Arc::new(Endpoint::memory(&name).unwrap());
            (Member { domain: name.clone(), name, is_drained: false }, node)
        };
        let nodes: Vec<_> = (0..3).map(node).collect();
        let stores: Vec<_> = nodes.iter().map(|(_, node)| Arc::clone(node)).collect();
        let code = paritas::Code::new(&"2+1".parse().unwrap()).unwrap();
        let volume = Volume::new(Setup::new("0".repeat(32), code, nodes)).unwrap();
        volume.mark_nodes().await.unwrap();
        let (line, end) = std::sync::mpsc::channel();
        let is_storing = Arc::new(AtomicBool::new(false));
        let stalled = Stalled(Arc::clone(&is_storing), end);
        let put = tokio::spawn(async move {
            let source = Cursor::new(vec![7; 10_000]).chain(stalled);
            volume.put(&ObjectName::new("object").unwrap(), source, PutOptions::default()).await
        });
        let heartbeats = async || {
            let beats = async |store: &Arc<dyn Node>| store.list(names::RUNNING).count().await;
            join_all(stores.iter().map(beats)).await.iter().sum::<usize>()
        };
        until(async || is_storing.load(Ordering::Relaxed)).await;
        assert_eq!(heartbeats().await, 0);
        tokio::time::advance(HEARTBEAT).await;
        until(async || heartbeats().await == 3).await;
        put.abort();
        until(async || heartbeats().await == 0).await;
        drop(line);
    }
}
