//! Executes the actions of the protocol's machines on the nodes of a volume, for one name.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use futures::future::join_all;
use paritas_shards::blocks::ObjectLayout;
use paritas_shards::{Digest, ObjectId};
use paritas_store::error::{Error, ErrorKind, Result};

use crate::driver::Hands;
use crate::manifest::{Body, Manifest};
use crate::names::{self, ObjectName};
use crate::node::Mode;
use crate::protocol::{
    Action, Answer, Event, Listed, NodeIndex, PartIndex, Request, Shape, Version,
};
use crate::transfer::check::check;
use crate::transfer::rebuild::{Rebuild, RebuildTarget};
use crate::volume::{Volume, stage_ends};

/// Executes actions about one name.
#[derive(Debug)]
pub(crate) struct NameHands<'a> {
    pub volume: &'a Volume,
    pub name: &'a ObjectName,
    /// Whether parts are read completely before they count as whole.
    pub is_deep: bool,
    /// Whether surveys wait for slow nodes although enough have answered.
    pub asks_everyone: bool,
    /// Whether manifests go to a node that does not bear the volume's mark yet.
    pub is_filling: bool,
    state: Mutex<HandsState>,
}

/// What the actions have found out so far.
#[derive(Debug, Default)]
struct HandsState {
    manifests: BTreeMap<Version, (Manifest, Bytes)>,
    /// The files of parts that were found or stored, with their nodes.
    files: BTreeMap<usize, BTreeMap<NodeIndex, String>>,
    layout: Option<ObjectLayout>,
    /// Like `files`, for parts that are not whole.
    damaged: BTreeMap<usize, BTreeMap<NodeIndex, String>>,
    /// The length and digest of the object, once they are known.
    total: Option<(u64, Digest)>,
    /// What was wrong with nodes and parts.
    flaws: Vec<Flaw>,
    /// The nodes that showed or took a manifest of each version.
    holders: BTreeMap<Version, BTreeSet<NodeIndex>>,
    /// Number of parts that were made from others and stored.
    stored: usize,
    /// Number of manifests that were written.
    manifests_written: usize,
    read_bytes: u64,
}

/// Something that was wrong on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Flaw {
    /// The node's name.
    pub node: String,
    /// The shard, if the flaw is about one.
    pub shard: Option<usize>,
    /// What was wrong.
    pub message: String,
    /// Number of requests that met the flaw.
    pub count: usize,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.shard {
            Some(shard) => write!(f, "{}: shard {shard}: {}", self.node, self.message)?,
            None => write!(f, "{}: {}", self.node, self.message)?,
        }
        match self.count {
            0 | 1 => Ok(()),
            count => write!(f, " ({count} times)"),
        }
    }
}

/// Returns the first flaws of a list for a message. The others would make it unreadable.
pub(crate) fn told(flaws: &[Flaw]) -> String {
    let mut flaws: Vec<&Flaw> = flaws.iter().collect();
    // Nodes answer in any order.
    flaws.sort_by(|one, other| one.node.cmp(&other.node));
    let told: Vec<String> = flaws.into_iter().take(8).map(Flaw::to_string).collect();
    told.join("; ")
}

impl Flaw {
    pub(crate) fn new(
        node: impl Into<String>,
        shard: Option<usize>,
        message: impl Into<String>,
    ) -> Self {
        Self { node: node.into(), shard, message: message.into(), count: 1 }
    }

    /// Adds the flaw to a list. If the list has it already, only its count rises.
    pub(crate) fn add_to(self, flaws: &mut Vec<Self>) {
        let is_same = |other: &&mut Self| {
            (&other.node, other.shard, &other.message) == (&self.node, self.shard, &self.message)
        };
        match flaws.iter_mut().find(is_same) {
            Some(known) => known.count += 1,
            None => flaws.push(self),
        }
    }
}

impl<'a> NameHands<'a> {
    pub fn new(volume: &'a Volume, name: &'a ObjectName) -> Self {
        let state = Mutex::default();
        Self { volume, name, is_deep: false, asks_everyone: false, is_filling: false, state }
    }

    /// Takes in the manifest of a version that is about to be written.
    pub fn keep_manifest(&self, manifest: Manifest) -> Result<()> {
        let bytes = Bytes::from(manifest.to_bytes()?);
        self.lock().manifests.insert(manifest.listed.version, (manifest, bytes));
        Ok(())
    }

    /// Returns the manifest of a version, if it was read or kept.
    pub fn manifest(&self, version: Version) -> Option<Manifest> {
        self.lock().manifests.get(&version).map(|(manifest, _)| manifest.clone())
    }

    /// Takes in the layout of a new object.
    pub fn keep_layout(&self, layout: ObjectLayout) {
        self.lock().layout = Some(layout);
    }

    /// Returns the layout of the object, if any part was found.
    pub fn layout(&self) -> Option<ObjectLayout> {
        self.lock().layout.clone()
    }

    /// Takes in the length and the digest of a new object.
    pub fn keep_total(&self, length: u64, digest: Digest) {
        self.lock().total = Some((length, digest));
    }

    /// Returns the length and the digest of the object, if they are known.
    pub fn total(&self) -> Option<(u64, Digest)> {
        self.lock().total
    }

    /// Takes in that a part is on a node.
    pub fn add_file(&self, part: usize, node: NodeIndex, path: String) {
        let mut state = self.lock();
        if let Some(damaged) = state.damaged.get_mut(&part) {
            damaged.remove(&node);
        }
        state.files.entry(part).or_default().insert(node, path);
    }

    /// Returns the files of each part.
    pub fn files(&self) -> BTreeMap<usize, BTreeMap<NodeIndex, String>> {
        self.lock().files.clone()
    }

    /// Returns the files that were found of each part and are not whole.
    pub fn damaged(&self) -> BTreeMap<usize, BTreeMap<NodeIndex, String>> {
        let mut damaged = self.lock().damaged.clone();
        damaged.retain(|_, files| !files.is_empty());
        damaged
    }

    pub fn flaws(&self) -> Vec<Flaw> {
        self.lock().flaws.clone()
    }

    /// Returns the nodes that showed or took a manifest of a version.
    pub fn holders(&self, version: Version) -> BTreeSet<NodeIndex> {
        self.lock().holders.get(&version).cloned().unwrap_or_default()
    }

    fn add_holder(&self, version: Version, node: NodeIndex) {
        self.lock().holders.entry(version).or_default().insert(node);
    }

    /// Returns the number of parts that were made from others and stored.
    pub fn stored(&self) -> usize {
        self.lock().stored
    }

    /// Returns the number of manifests that were written.
    pub fn manifests_written(&self) -> usize {
        self.lock().manifests_written
    }

    pub fn read_bytes(&self) -> u64 {
        self.lock().read_bytes
    }

    pub fn note(&self, node: NodeIndex, shard: Option<usize>, message: impl Into<String>) {
        let flaw = Flaw::new(self.volume.node_name(node), shard, message);
        flaw.add_to(&mut self.lock().flaws);
    }

    fn lock(&self) -> MutexGuard<'_, HandsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn list_versions(&self, node: NodeIndex) -> Result<Answer> {
        self.volume.expect_ready(node).await?;
        let folder = self.name.folder();
        let mut entries = self.volume.node(node).list(&folder);
        let mut versions = Vec::new();
        while let Some(entry) = entries.next().await {
            versions.extend(self.name.version(&entry?.path));
        }
        versions.iter().for_each(|listed| self.add_holder(listed.version, node));
        Ok(Answer::Versions(versions))
    }

    async fn read_manifest(&self, node: NodeIndex, listed: Listed) -> Result<Answer> {
        let path = self.name.manifest(&listed);
        let bytes = self.volume.node(node).read(&path, None).await?;
        let manifest = Manifest::from_bytes(&path, &bytes)?;
        let shape = self.keep_shape(&manifest)?;
        if let Some(content) = &manifest.content {
            self.keep_total(listed.length, content.digest);
        }
        self.lock().manifests.insert(listed.version, (manifest, bytes));
        Ok(Answer::Manifest(shape))
    }

    /// Returns what a manifest describes, and keeps the layout that it states. The code is
    /// taken from the header of the shards, by which they are read and made. The manifest's field
    /// `code` is not used.
    fn keep_shape(&self, manifest: &Manifest) -> Result<Shape> {
        let object = manifest.listed.version.object;
        match manifest.content.as_ref().map(|content| &content.body) {
            None => Ok(Shape::Removed { order: self.volume.inline_order(object) }),
            Some(Body::Inline(_)) => Ok(Shape::Inline { order: self.volume.inline_order(object) }),
            Some(Body::Shards { header, .. }) => {
                let layout = self.volume.layout_of(header)?;
                let code = layout.code();
                let (spread, stages) = (self.volume.spread(object, code), stage_ends(code));
                self.keep_layout(layout);
                Ok(Shape::Shards { spread, stages })
            }
        }
    }

    async fn write_manifest(&self, node: NodeIndex, listed: Listed) -> Result<Answer> {
        let bytes = self.lock().manifests.get(&listed.version).map(|(_, bytes)| bytes.clone());
        let bytes = bytes.ok_or_else(|| Error::new(ErrorKind::Internal, "no such manifest"))?;
        let path = self.name.manifest(&listed);
        let storage = match self.is_filling {
            true => self.volume.node(node),
            false => self.volume.writable(node).await?,
        };
        storage.write(&path, bytes, Mode::Replace).await?;
        self.add_holder(listed.version, node);
        self.lock().manifests_written += 1;
        Ok(Answer::Done)
    }

    async fn delete_manifest(&self, node: NodeIndex, listed: Listed) -> Result<Answer> {
        self.volume.node(node).delete(&self.name.manifest(&listed)).await?;
        Ok(Answer::Done)
    }

    /// Lists the parts of an object on a node, and returns those that look whole.
    async fn find_parts(&self, node: NodeIndex, object: ObjectId) -> Result<Answer> {
        self.volume.expect_ready(node).await?;
        let (Some(layout), Some((total, _))) = (self.layout(), self.total()) else {
            return Err(Error::new(ErrorKind::Internal, "no manifest was read"));
        };
        let storage = self.volume.node(node);
        let folder = self.name.object_folder(object);
        let (mut entries, mut files) = (storage.list(&folder), Vec::new());
        while let Some(entry) = entries.next().await {
            let entry = entry?;
            let Some(part) = names::parse_part(&entry.path) else { continue };
            let length = match entry.length {
                Some(length) => length,
                None => match storage.stat(&entry.path).await? {
                    Some(stat) => stat.length,
                    // It was deleted after it was listed.
                    None => continue,
                },
            };
            files.push((part, entry.path, length));
        }
        let mut parts = Vec::new();
        for (found, path, length) in files {
            // Not every part of a later stage has its stage in the name.
            let is_it = |&part: &usize| {
                layout.part(part).shard == found.shard
                    && self.name.part(object, &layout.file_suffix(part)) == path
            };
            let Some(part) = (0..layout.part_count()).find(is_it) else { continue };
            let whole = layout.file_bytes(part, total);
            self.lock().damaged.entry(part).or_default().insert(node, path.clone());
            if whole != Some(length) {
                let whole = whole.unwrap_or_default();
                let message = format!("must have {whole} bytes; got {length}");
                self.note(node, Some(found.shard), message);
                continue;
            }
            if self.is_deep && !self.is_intact(&layout, part, node, &path).await {
                // A node that cannot even tell its length has failed; its parts may be whole.
                storage.stat(&path).await?;
                continue;
            }
            self.add_file(part, node, path);
            parts.push(PartIndex(part));
        }
        Ok(Answer::Parts(parts))
    }

    /// Reads a part completely, from the disk where that is on this machine, and returns whether
    /// all of it is as it was written.
    async fn is_intact(
        &self,
        layout: &ObjectLayout,
        part: usize,
        node: NodeIndex,
        path: &str,
    ) -> bool {
        let Some((length, digest)) = self.total() else { return false };
        let place = self.volume.place(node, path.to_owned());
        place.node.forget_cached(path).await;
        let parts = layout.part_count() as u64;
        let progress = |bytes: u64| self.volume.advance(self.name, bytes / parts);
        match check(layout, length, digest, part, &place, &progress).await {
            Ok(read) => {
                self.lock().read_bytes += read;
                true
            }
            Err(error) => {
                self.note(node, Some(layout.part(part).shard), error.message());
                false
            }
        }
    }

    /// Returns whether a file that was found damaged is there and still damaged: in any block, if
    /// parts are read completely, otherwise by its length. A file on a node that does not answer
    /// does not count as damaged.
    pub async fn is_damaged_now(&self, part: usize, node: NodeIndex, path: &str) -> bool {
        let (Some(layout), Some((length, digest))) = (self.layout(), self.total()) else {
            return false;
        };
        let storage = self.volume.node(node);
        let Ok(Some(stat)) = storage.stat(path).await else { return false };
        if Some(stat.length) != layout.file_bytes(part, length) {
            return true;
        }
        if !self.is_deep {
            return false;
        }
        let place = self.volume.place(node, path.to_owned());
        let is_flawed = check(&layout, length, digest, part, &place, &|_| {}).await.is_err();
        is_flawed && storage.stat(path).await.is_ok()
    }

    async fn check_part(&self, node: NodeIndex, part: PartIndex) -> Result<Answer> {
        let path = self.lock().files.get(&part.0).and_then(|files| files.get(&node)).cloned();
        let (Some(layout), Some(path)) = (self.layout(), path) else { return Ok(Answer::Failed) };
        match self.is_intact(&layout, part.0, node, &path).await {
            true => Ok(Answer::Done),
            false => Ok(Answer::Failed),
        }
    }

    async fn delete_part(
        &self,
        node: NodeIndex,
        object: ObjectId,
        part: PartIndex,
    ) -> Result<Answer> {
        let Some(layout) = self.layout() else { return Ok(Answer::Failed) };
        let path = self.name.part(object, &layout.file_suffix(part.0));
        self.volume.node(node).delete(&path).await?;
        if let Some(files) = self.lock().files.get_mut(&part.0) {
            files.remove(&node);
        }
        Ok(Answer::Done)
    }

    async fn delete_object(&self, node: NodeIndex, object: ObjectId) -> Result<Answer> {
        let folder = self.name.object_folder(object);
        self.volume.delete_object(node, object, &folder).await?;
        Ok(Answer::Done)
    }

    /// Makes parts from other parts, and stores them.
    async fn rebuild(&self, object: ObjectId, wanted: &[(usize, NodeIndex)]) -> Vec<Answer> {
        let ready = join_all(wanted.iter().map(|&(_, node)| self.volume.writable(node))).await;
        let (mut there, mut answers) = (Vec::new(), Vec::new());
        for (&(part, node), ready) in wanted.iter().zip(&ready) {
            match ready {
                Ok(_) => there.push((part, node)),
                Err(error) => self.note(node, None, error.message()),
            }
        }
        let mut made = self.rebuild_there(object, &there).await.into_iter();
        for ready in ready {
            let answer = ready.ok().and_then(|_| made.next());
            answers.push(answer.unwrap_or(Answer::Failed));
        }
        answers
    }

    async fn rebuild_there(&self, object: ObjectId, wanted: &[(usize, NodeIndex)]) -> Vec<Answer> {
        if wanted.is_empty() {
            return Vec::new();
        }
        match self.try_rebuild(object, wanted).await {
            Ok(answers) => answers,
            Err(error) => {
                let (answer, why) = match error.kind() {
                    ErrorKind::TooFewShards => {
                        (Answer::Impossible, "too few shards are whole to make its own")
                    }
                    _ => (Answer::Failed, error.message()),
                };
                if let Some(&(_, node)) = wanted.first() {
                    self.note(node, None, why);
                }
                vec![answer; wanted.len()]
            }
        }
    }

    async fn try_rebuild(
        &self,
        object: ObjectId,
        wanted: &[(usize, NodeIndex)],
    ) -> Result<Vec<Answer>> {
        let nothing = || Error::new(ErrorKind::TooFewShards, "no shard of the object is found");
        let layout = self.layout().ok_or_else(nothing)?;
        self.volume.expect_room(self.name, &layout)?;
        let (length, digest) = self.total().ok_or_else(nothing)?;
        let mut targets = Vec::new();
        for &(part, node) in wanted {
            let path = self.name.part(object, &layout.file_suffix(part));
            targets.push(RebuildTarget { part, place: self.volume.place(node, path) });
        }
        let files = self.files();
        let place = |part: usize| {
            let (&node, path) = files.get(&part)?.first_key_value()?;
            Some(self.volume.place(node, path.clone()))
        };
        let places = (0..layout.part_count()).map(place).collect();
        let settings = self.volume.setup.settings.clone();
        let rebuild = Rebuild { layout, length, digest, places, settings };
        let progress = |bytes| self.volume.advance(self.name, bytes);
        let done = rebuild.run(targets, &progress).await?;
        self.lock().read_bytes += done.read_bytes;
        let mut answers = Vec::new();
        for (&(part, node), stored) in wanted.iter().zip(done.parts) {
            match stored {
                Ok(path) => {
                    self.add_file(part, node, path);
                    self.lock().stored += 1;
                    answers.push(Answer::Stored { length });
                }
                Err(error) => {
                    self.note(node, None, error.message());
                    answers.push(Answer::Failed);
                }
            }
        }
        Ok(answers)
    }
}

#[async_trait]
impl Hands for NameHands<'_> {
    fn asks_everyone(&self) -> bool {
        self.asks_everyone
    }

    async fn act(&self, action: Action) -> Answer {
        let node = action.node;
        let answer = match action.request {
            Request::ListVersions => self.list_versions(node).await,
            Request::ReadManifest(listed) => self.read_manifest(node, listed).await,
            Request::WriteManifest(listed) => self.write_manifest(node, listed).await,
            Request::DeleteManifest(listed) => self.delete_manifest(node, listed).await,
            Request::FindParts(object) => self.find_parts(node, object).await,
            Request::CheckPart { part, .. } => self.check_part(node, part).await,
            Request::DeletePart { object, part } => self.delete_part(node, object, part).await,
            Request::DeleteObject(object) => self.delete_object(node, object).await,
            Request::StorePart { .. } => Ok(Answer::Failed),
        };
        answer.unwrap_or_else(|error| {
            self.note(node, None, error.message());
            Answer::Failed
        })
    }

    async fn store(&self, actions: Vec<Action>) -> Vec<Event> {
        let wanted = actions.iter().filter_map(|action| match action.request {
            Request::StorePart { object, part } => Some((object, (part.0, action.node))),
            _ => None,
        });
        let (objects, wanted): (BTreeSet<ObjectId>, Vec<(usize, NodeIndex)>) = wanted.unzip();
        let Some(&object) = objects.first() else { return Vec::new() };
        let answers = self.rebuild(object, &wanted).await;
        let events = actions.into_iter().zip(answers);
        events.map(|(action, answer)| Event { action, answer }).collect()
    }
}

impl Volume {
    /// Deletes everything that a node has of an object: what is in the folder of its parts, its
    /// heartbeat, hints and claim.
    pub(crate) async fn delete_object(
        &self,
        node: NodeIndex,
        object: ObjectId,
        folder: &str,
    ) -> Result<()> {
        let storage = self.node(node);
        let mut entries = storage.list(folder);
        let mut paths: Vec<String> = Vec::new();
        while let Some(entry) = entries.next().await {
            paths.push(entry?.path);
        }
        let has_folder = !paths.is_empty();
        paths.extend([names::RUNNING, names::OWED, names::BACKLOG].map(|f| names::mark(f, object)));
        paths.push(names::claim(object));
        let deleted = join_all(paths.iter().map(|path| storage.delete(path))).await;
        deleted.into_iter().collect::<Result<()>>()?;
        if has_folder {
            // An empty folder does no harm. Nobody stores in this one any more, because each put
            // draws an id of its own.
            let _ = storage.delete_folder(folder).await;
        }
        Ok(())
    }
}

/// Returns the seconds since the beginning of 1970.
pub(crate) fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
