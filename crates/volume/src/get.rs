//! Reading objects.

use std::collections::{BTreeSet, VecDeque};
use std::io::Write;
use std::ops::Range;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use futures::stream::{self, BoxStream, FuturesUnordered, StreamExt};
use paritas_shards::blocks::ObjectLayout;
use paritas_shards::{Digest, FileTarget, Output, PieceDigest};
use paritas_store::error::{Error, ErrorKind, Result};
use paritas_store::place::attributes::Timestamp;
use tokio::sync::Notify;
use tokio::sync::mpsc::{Receiver as Receiving, channel};

use crate::driver::{Hands, drive};
use crate::hands::{Flaw, NameHands, told};
use crate::manifest::{Body, Manifest};
use crate::names::ObjectName;
use crate::protocol::{
    Action, Answer, Get, GetOutcome, Listed, NodeIndex, Request, Version, VersionKind,
};
use crate::transfer::receive::{Keep, Pieces, Receiver, Wanted, kept, run_blocking};
use crate::volume::{MOST_ATTEMPTS, Volume, parts_of};

/// An object that was found and can be read.
#[derive(Debug)]
pub struct FoundObject {
    manifest: Manifest,
    digest: Digest,
    content: ObjectBytes,
    flaws: Vec<Flaw>,
    is_sure: bool,
    warnings: Vec<String>,
}

/// Where an object's bytes come from.
#[derive(Debug)]
enum ObjectBytes {
    Inline(Bytes),
    Shards { receiver: Arc<Receiver>, nodes: Vec<Option<String>> },
}

/// The settings of a get.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct GetOptions {
    /// Takes the newest version that was found, even if too few nodes answered to be sure that it
    /// is the newest.
    pub allow_stale: bool,
}

impl GetOptions {
    /// Sets whether the newest version that was found is taken although it may not be the newest.
    pub fn allow_stale(self, allow_stale: bool) -> Self {
        Self { allow_stale }
    }
}

/// Time for which one node is asked for a manifest before the next one is asked as well.
const NEXT_NODE: Duration = Duration::from_millis(250);

impl Volume {
    /// Finds an object.
    ///
    /// # Errors
    /// If there is no such object ([`ErrorKind::NotFound`]), or if too few nodes answered to be
    /// sure which version is the newest ([`ErrorKind::TooFewNodes`]).
    pub async fn find(&self, name: &ObjectName, options: GetOptions) -> Result<FoundObject> {
        let mut unread = None;
        for _ in 0..MOST_ATTEMPTS {
            let hands = NameHands::new(self, name);
            let (listed, holders, is_sure) = self.survey(name, &hands, options).await?;
            if let Some(manifest) = read_manifest(&hands, listed, holders).await {
                return self.open_object(&hands, manifest, is_sure).await;
            }
            // Another version may have replaced it after the survey. If it still counts in the next
            // survey, it is damaged or out of reach.
            if unread.replace(listed) == Some(listed) {
                return Err(unreadable(&hands, listed).await);
            }
        }
        Err(replaced(name))
    }

    async fn open_object(
        &self,
        hands: &NameHands<'_>,
        manifest: Manifest,
        is_sure: bool,
    ) -> Result<FoundObject> {
        let missing = || Error::new(ErrorKind::Internal, "the manifest describes no object");
        let content = manifest.content.as_ref().ok_or_else(missing)?;
        let digest = content.digest;
        let content = match &content.body {
            Body::Inline(bytes) => ObjectBytes::Inline(bytes.clone().into()),
            Body::Shards { placement, .. } => self.receiver(hands, &manifest, placement).await?,
        };
        Ok(FoundObject {
            digest,
            content,
            flaws: hands.flaws(),
            is_sure,
            manifest,
            warnings: Vec::new(),
        })
    }

    async fn survey(
        &self,
        name: &ObjectName,
        hands: &NameHands<'_>,
        options: GetOptions,
    ) -> Result<(Listed, BTreeSet<NodeIndex>, bool)> {
        let (outcome, _) = drive(Get::new(self.quorum), hands).await;
        match outcome {
            GetOutcome::Found(listed, holders) => Ok((listed, holders, true)),
            GetOutcome::NotFound(_) => {
                Err(Error::new(ErrorKind::NotFound, format!("there is no object {name}")))
            }
            GetOutcome::Unsure(Some(listed))
                if options.allow_stale && listed.kind == VersionKind::Put =>
            {
                Ok((listed, hands.holders(listed.version), false))
            }
            GetOutcome::Unsure(_) | GetOutcome::Lost(_) => Err(Error::new(
                ErrorKind::TooFewNodes,
                format!(
                    "{name}: too few nodes answered to be sure of the newest version; {} of {} \
                         must: {}",
                    self.quorum.to_read(),
                    self.node_count(),
                    told(&hands.flaws())
                ),
            )),
        }
    }

    /// Prepares to read an object from its shards. Each shard is expected on the node that the
    /// manifest names or, if it names none, on its home. If too few are found there, all nodes are
    /// asked ([`Self::look_everywhere`]).
    async fn receiver(
        &self,
        hands: &NameHands<'_>,
        manifest: &Manifest,
        placement: &[String],
    ) -> Result<ObjectBytes> {
        let object = manifest.listed.version.object;
        let missing = || Error::new(ErrorKind::Internal, "no manifest was read");
        let layout = hands.layout().ok_or_else(missing)?;
        let homes = self.spread(object, layout.code()).homes;
        let hinted = |part: usize| placement.get(part).and_then(|node| self.find_node(node));
        // What a later stage adds is asked for last, because it may not be there yet.
        let nodes: Vec<Option<NodeIndex>> = (0..layout.part_count())
            .map(|part| hinted(part).or_else(|| homes.get(part).copied()))
            .collect();
        let place = |(part, node): (usize, &Option<NodeIndex>)| {
            let path = hands.name.part(object, &layout.file_suffix(part));
            node.map(|node| self.place(node, path))
        };
        let places = nodes.iter().enumerate().map(place).collect();
        let settings = self.setup.settings.clone();
        let receiver = Receiver::new(layout, manifest.listed.length, places, settings);
        let name = |node: NodeIndex| self.node_name(node).to_owned();
        let nodes = nodes.into_iter().map(|node| node.map(name)).collect();
        Ok(ObjectBytes::Shards { receiver, nodes })
    }

    /// Looks on all nodes for the shards of an object, because too few were where they should be.
    /// If a shard could not be read from one node and another node has a copy, takes that copy.
    /// Also returns what went wrong, if a node did not answer: it may have what is missing.
    pub(crate) async fn look_everywhere(
        &self,
        name: &ObjectName,
        object: FoundObject,
    ) -> Result<(FoundObject, Vec<Flaw>)> {
        let ObjectBytes::Shards { receiver, nodes: asked } = &object.content else {
            return Ok((object, Vec::new()));
        };
        let flawed: BTreeSet<usize> = receiver.flaws().into_iter().map(|(part, _)| part).collect();
        let has_failed = |part: usize, node: NodeIndex| {
            flawed.contains(&part) && asked[part].as_deref() == Some(self.node_name(node))
        };
        let hands = NameHands::new(self, name);
        hands.keep_layout(receiver.layout.clone());
        hands.keep_total(receiver.length, object.digest);
        let id = object.manifest.listed.version.object;
        let find = |node| hands.act(Action { node, request: Request::FindParts(id) });
        let answers = join_all(self.nodes().map(find)).await;
        let is_silent = answers.contains(&Answer::Failed);
        let silent = if is_silent { hands.flaws() } else { Vec::new() };
        let files = hands.files();
        let (mut places, mut nodes) = (Vec::new(), Vec::new());
        for part in 0..parts_of(receiver.layout.code()).len() {
            let copies = files.get(&part).into_iter().flatten();
            let found = copies.min_by_key(|(node, _)| has_failed(part, **node));
            places.push(found.map(|(&node, path)| self.place(node, path.clone())));
            nodes.push(found.map(|(&node, _)| self.node_name(node).to_owned()));
        }
        let (layout, settings) = (receiver.layout.clone(), self.setup.settings.clone());
        let receiver = Receiver::new(layout, receiver.length, places, settings);
        Ok((FoundObject { content: ObjectBytes::Shards { receiver, nodes }, ..object }, silent))
    }

    /// Writes an object's bytes in `range` to `sink`, all of them if `range` is `None`. If all of
    /// them are wanted, the digest is checked in the end. Returns what was read.
    ///
    /// # Errors
    /// As [`Volume::find`]; if too many shards are lost ([`ErrorKind::TooFewShards`]), if the bytes
    /// differ from those that were written ([`ErrorKind::DigestMismatch`]), if the range is beyond
    /// the object ([`ErrorKind::Parameters`]), or if `sink` refuses bytes ([`ErrorKind::Io`]).
    pub async fn get(
        &self,
        name: &ObjectName,
        range: Option<Range<u64>>,
        sink: &mut (dyn Write + Send),
        options: GetOptions,
        progress: &(dyn Fn(u64) + Send + Sync),
    ) -> Result<FoundObject> {
        let object = self.find(name, options).await?;
        self.read(object, range, sink, progress).await
    }

    /// Writes the bytes of an object that was found to `sink`, as [`Volume::get`] does.
    ///
    /// # Errors
    /// As [`Volume::get`].
    pub async fn read(
        &self,
        object: FoundObject,
        range: Option<Range<u64>>,
        sink: &mut (dyn Write + Send),
        progress: &(dyn Fn(u64) + Send + Sync),
    ) -> Result<FoundObject> {
        self.copy(object, range, ByteSink::Stream(sink), progress).await
    }

    /// Writes the bytes of an object that was found to a file, which gets its name when they are
    /// complete and their digest is right. The file gets as much of the source's mode and time as
    /// `target` says.
    ///
    /// # Errors
    /// As [`Volume::get`]; if the file exists and must not be replaced ([`ErrorKind::Exists`]), or
    /// if it cannot be written ([`ErrorKind::Io`]).
    pub async fn read_to_file(
        &self,
        object: FoundObject,
        target: FileTarget,
        progress: &(dyn Fn(u64) + Send + Sync),
    ) -> Result<FoundObject> {
        let mut output = Output::create(target, object.mode(), object.modified())?;
        output.expect_room(object.length())?;
        if !output.takes_positions() {
            let object = self.read(object, None, &mut output, progress).await?;
            output.commit()?;
            return Ok(object);
        }
        let output = SharedValue::new(output);
        let object = self.copy(object, None, ByteSink::File(&output), progress).await?;
        let output = output.alone().await;
        let warnings = run_blocking(move || output.commit()).await??;
        Ok(FoundObject { warnings, ..object })
    }

    async fn copy<'a>(
        &self,
        mut object: FoundObject,
        range: Option<Range<u64>>,
        sink: ByteSink<'a>,
        progress: &'a (dyn Fn(u64) + Send + Sync),
    ) -> Result<FoundObject> {
        let name = &object.manifest.name.clone();
        let whole = 0..object.length();
        let range = range.unwrap_or_else(|| whole.clone());
        if range.start > whole.end {
            return Err(Error::parameters(format!(
                "the range begins at {}, after the end of {name} ({} bytes)",
                range.start, whole.end
            )));
        }
        if range.start > range.end || range.end > whole.end {
            return Err(Error::parameters(format!(
                "the range {} to {} is not within the {} bytes of {name}",
                range.start, range.end, whole.end
            )));
        }
        object.layout().map_or(Ok(()), |layout| self.expect_room(name, &layout))?;
        let digest = (range == whole).then(|| SharedValue::new(PieceDigest::new(whole.end)));
        let mut copy = CopyJob { sink, digest, left: VecDeque::from([range]), progress };
        match copy.run(&object).await {
            // The shards may have moved. What was written already is right, and stays.
            Err(error) if error.kind() == ErrorKind::TooFewShards => {
                let version = object.manifest.listed.version;
                let silent;
                (object, silent) = self.look_everywhere(name, object).await?;
                if let Err(error) = copy.run(&object).await {
                    return Err(self.gone(name, version, error, &silent).await);
                }
            }
            result => result?,
        }
        if let Some(digest) = copy.digest {
            let digest = digest.alone().await.finish();
            if digest != Some(object.digest) {
                let got = digest.map_or("none".to_owned(), |digest| digest.to_string());
                return Err(Error::new(
                    ErrorKind::DigestMismatch,
                    format!("{name}: the digest must be {}; got {got}", object.digest),
                ));
            }
        }
        object.note_flaws();
        Ok(object)
    }
}

impl Volume {
    /// Returns the reason why shards of a version are gone: `error`, with the flaws of `silent` if
    /// a node did not answer, or an error which says that another version has replaced it.
    async fn gone(
        &self,
        name: &ObjectName,
        version: Version,
        error: Error,
        silent: &[Flaw],
    ) -> Error {
        if error.kind() != ErrorKind::TooFewShards {
            return error;
        }
        let hands = NameHands::new(self, name);
        if self.is_replaced(&hands, version).await {
            return replaced(name);
        }
        let flaws = hands.flaws();
        let silent = if silent.is_empty() { &flaws } else { silent };
        match silent.is_empty() {
            true => Error::new(error.kind(), format!("{name}: {error}")),
            false => Error::new(
                ErrorKind::TooFewNodes,
                format!("{name}: {error}. Not all nodes answered: {}", told(silent)),
            ),
        }
        .because(error)
    }

    /// Whether a survey shows surely that the name means another version by now, or nothing.
    pub(crate) async fn is_replaced(&self, hands: &NameHands<'_>, version: Version) -> bool {
        let outcome = drive(Get::again(self.quorum, version), hands).await.0;
        matches!(outcome, GetOutcome::Found(..) | GetOutcome::NotFound(_))
    }
}

/// Reads a manifest from one of the nodes that are known to have it. If none of these can be read,
/// asks the nodes that the survey did not wait for. While a node is slow to answer, the next one is
/// asked as well.
async fn read_manifest(
    hands: &NameHands<'_>,
    listed: Listed,
    holders: BTreeSet<NodeIndex>,
) -> Option<Manifest> {
    let ask = |node, request| hands.act(Action { node, request });
    let has = async |node| match ask(node, Request::ListVersions).await {
        Answer::Versions(versions) => versions.contains(&listed),
        _ => false,
    };
    let read = async |node: NodeIndex| {
        let is_there = holders.contains(&node) || has(node).await;
        let read = is_there.then(|| ask(node, Request::ReadManifest(listed)));
        matches!(read?.await, Answer::Manifest(_)).then(|| hands.manifest(listed.version))?
    };
    let others = hands.volume.nodes().filter(|node| !holders.contains(node));
    let nodes: Vec<NodeIndex> = holders.iter().copied().chain(others).collect();
    let mut left = nodes.into_iter();
    let mut asked = FuturesUnordered::new();
    loop {
        asked.extend(left.next().map(&read));
        tokio::select! {
            found = asked.next() => match found {
                Some(Some(manifest)) => return Some(manifest),
                Some(None) => {}
                None => return None,
            },
            () = tokio::time::sleep(NEXT_NODE), if left.len() > 0 => {}
        }
    }
}

/// Returns why a version's manifest can be read whole from no node: all copies are damaged, they
/// are gone, or a node does not answer.
async fn unreadable(hands: &NameHands<'_>, listed: Listed) -> Error {
    let (name, flaws) = (hands.name, told(&hands.flaws()));
    let path = name.manifest(&listed);
    let look = async |node: NodeIndex| {
        hands.volume.expect_ready(node).await?;
        match hands.volume.node(node).read(&path, None).await {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            read => read.map(|_| true),
        }
    };
    let looks = join_all(hands.volume.nodes().map(look)).await;
    let copies: Result<Vec<bool>> = looks.into_iter().collect();
    match copies.map(|copies| copies.contains(&true)) {
        Ok(true) => Error::new(
            ErrorKind::TooFewShards,
            format!(
                "{name}: every copy of its manifest is damaged; what is left of its shards is in \
                 the folders {} of the nodes, where they may still be decoded. {flaws}",
                name.object_folder(listed.version.object)
            ),
        ),
        Ok(false) => replaced(name),
        Err(_) => Error::new(ErrorKind::Io, format!("{name}: no manifest can be read: {flaws}")),
    }
}

/// Returns the error that an object was replaced or removed while it was read.
pub(crate) fn replaced(name: &ObjectName) -> Error {
    let message = format!("{name} was replaced or removed while it was read; read it again");
    Error::new(ErrorKind::Busy, message)
}

/// Returns the error that work on an object was begun anew too often.
pub(crate) fn keeps_changing(name: &ObjectName) -> Error {
    Error::new(ErrorKind::Busy, format!("{name}: other processes keep replacing it"))
}

/// Where an object's bytes go.
enum ByteSink<'a> {
    /// To a stream, in order.
    Stream(&'a mut (dyn Write + Send)),
    /// To a file: all of them, in any order. The threads that decode bytes also write them, while
    /// they are still in the cache.
    File(&'a SharedValue<Output>),
}

impl ByteSink<'_> {
    /// Writes the next bytes in order, unless the file has them already.
    fn take(&mut self, pieces: &Pieces) -> Result<()> {
        let Self::Stream(stream) = self else { return Ok(()) };
        pieces.iter().try_for_each(|piece| stream.write_all(piece)).map_err(|error| {
            Error::new(ErrorKind::Io, format!("writing the output: {error}")).because(error)
        })
    }
}

/// Something that other threads use for moments.
struct SharedValue<T> {
    value: Arc<T>,
    /// Tells that a thread no longer uses it.
    returned: Arc<Notify>,
}

/// What a thread has of something shared: it may be gone, and a thread that hangs on a folder does
/// not keep it.
struct Borrowed<T> {
    value: Weak<T>,
    returned: Arc<Notify>,
}

/// Something shared, as long as a thread uses it.
struct InUse<'a, T> {
    value: Option<Arc<T>>,
    returned: &'a Notify,
}

impl<T> SharedValue<T> {
    fn new(value: T) -> Self {
        Self { value: Arc::new(value), returned: Arc::default() }
    }

    fn lend(&self) -> Borrowed<T> {
        Borrowed { value: Arc::downgrade(&self.value), returned: Arc::clone(&self.returned) }
    }

    /// Waits until no other thread uses it. After a flaw, a thread may still work on a unit that
    /// was given up and that another node has delivered meanwhile.
    async fn alone(self) -> T {
        let mut shared = self.value;
        loop {
            match Arc::try_unwrap(shared) {
                Ok(value) => return value,
                Err(again) => shared = again,
            }
            // What is returned in between is noticed, too.
            self.returned.notified().await;
        }
    }
}

impl<T> Borrowed<T> {
    /// Uses the value, unless it is gone.
    fn with<R>(&self, work: impl FnOnce(&T) -> R) -> Option<R> {
        let in_use = InUse { value: Some(self.value.upgrade()?), returned: &self.returned };
        in_use.value.as_deref().map(work)
    }
}

impl<T> Drop for InUse<'_, T> {
    fn drop(&mut self) {
        self.value = None;
        self.returned.notify_one();
    }
}

/// Copies an object's bytes.
struct CopyJob<'a> {
    sink: ByteSink<'a>,
    /// The digest of the bytes, if the object is copied whole.
    digest: Option<SharedValue<PieceDigest>>,
    /// The ranges that are not copied yet; just one if the order matters.
    left: VecDeque<Range<u64>>,
    progress: &'a (dyn Fn(u64) + Send + Sync),
}

impl CopyJob<'_> {
    async fn run(&mut self, object: &FoundObject) -> Result<()> {
        if let (ByteSink::File(_), ObjectBytes::Shards { receiver, .. }) =
            (&self.sink, &object.content)
            && receiver.is_local()
        {
            for range in std::mem::take(&mut self.left) {
                let wanted = Wanted { range, keep: Some(self.keep()) };
                self.left.extend(receiver.keep_all(wanted, self.progress).await);
            }
        }
        while let Some(range) = self.left.front() {
            let wanted = Wanted { range: range.clone(), keep: Some(self.keep()) };
            self.run_in_order(object, wanted).await?;
            self.left.pop_front();
        }
        Ok(())
    }

    async fn run_in_order(&mut self, object: &FoundObject, wanted: Wanted) -> Result<()> {
        let mut bytes = ahead(object.bytes(wanted));
        while let Some(pieces) = bytes.recv().await {
            let pieces = pieces?;
            self.sink.take(&pieces)?;
            let count = pieces.iter().map(|piece| piece.len() as u64).sum();
            self.left.iter_mut().take(1).for_each(|range| range.start += count);
            (self.progress)(count);
        }
        Ok(())
    }

    /// Returns the function to which a thread hands the bytes that it has decoded.
    fn keep(&self) -> Keep {
        let output = match &self.sink {
            ByteSink::File(output) => Some(output.lend()),
            ByteSink::Stream(_) => None,
        };
        let digest = self.digest.as_ref().map(SharedValue::lend);
        Arc::new(move |start, pieces| {
            if let Some(output) = &output {
                output.with(|output| output.write_at(pieces, start)).transpose()?;
            }
            if let Some(digest) = &digest {
                digest.with(|digest| digest.take(start, pieces));
            }
            Ok(())
        })
    }
}

/// Number of transmission units that have come and wait to be written.
const AHEAD: usize = 1;

/// Reads bytes in a task of its own, so that reading goes on while earlier bytes are written. The
/// task ends when the receiver is dropped.
pub(crate) fn ahead(mut bytes: BoxStream<'static, Result<Pieces>>) -> Receiving<Result<Pieces>> {
    let (line, received) = channel(AHEAD);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                // Nobody waits for more.
                () = line.closed() => return,
                pieces = bytes.next() => match pieces {
                    Some(pieces) => if line.send(pieces).await.is_err() { return },
                    None => return,
                },
            }
        }
    });
    received
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
            ObjectBytes::Shards { receiver, .. } => Arc::clone(receiver).bytes(wanted),
        }
    }

    /// Takes in what reading found wrong.
    fn note_flaws(&mut self) {
        let ObjectBytes::Shards { receiver, nodes } = &self.content else { return };
        for (part, message) in receiver.flaws() {
            let node = nodes.get(part).cloned().flatten().unwrap_or_default();
            let shard = Some(receiver.layout.part(part).shard);
            Flaw::new(node, shard, message).add_to(&mut self.flaws);
        }
    }

    /// Returns how the object is cut into shards, if it is.
    pub(crate) fn layout(&self) -> Option<ObjectLayout> {
        match &self.content {
            ObjectBytes::Inline(_) => None,
            ObjectBytes::Shards { receiver, .. } => Some(receiver.layout.clone()),
        }
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
        self.manifest.content.as_ref().and_then(|content| content.mode)
    }

    /// Returns when the source last changed, if that is known.
    pub fn modified(&self) -> Option<Timestamp> {
        self.manifest.content.as_ref().and_then(|content| content.modified)
    }

    /// Returns the spec of the object's code, or `None` if it is kept in its manifests.
    pub fn code(&self) -> Option<String> {
        match &self.content {
            ObjectBytes::Inline(_) => None,
            ObjectBytes::Shards { receiver, .. } => Some(receiver.layout.code().spec().to_string()),
        }
    }

    /// Returns the node on which each part is expected, by stage and then by shard; `None` if that
    /// is unknown. Parts of a later stage may not exist yet.
    pub fn nodes(&self) -> Vec<Option<String>> {
        match &self.content {
            ObjectBytes::Inline(_) => Vec::new(),
            ObjectBytes::Shards { nodes, .. } => nodes.clone(),
        }
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
        match &self.content {
            ObjectBytes::Inline(_) => 0,
            ObjectBytes::Shards { receiver, .. } => receiver.read_bytes(),
        }
    }
}
