//! Executes the actions of the protocol's machines on the nodes of a volume, for one name.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use bytes::Bytes;
use futures::FutureExt;
use futures::future::{BoxFuture, Shared, join_all, ready};
use paritas_store::error::{Error, ErrorKind, Result};

use crate::cluster::Cluster;
use crate::driver::Hands;
use crate::files::{ManifestFile, NameFiles, NodeParts, VersionOrigin};
use crate::flaw::{Flaw, is_full, told};
use crate::manifest::Manifest;
use crate::names::ObjectName;
use crate::protocol::{
    Action, Answer, Listed, NodeIndex, PartIndex, PartPlaces, Request, Shape, Version,
};
use crate::stages::stage_ends;
use crate::transfer::ShardedObject;
use crate::transfer::rebuild::Rebuilt;

/// The findings of a job's requests about a name.
#[derive(Debug, Default)]
pub(crate) struct NameLog {
    /// The nodes that have each part whole.
    pub whole: PartPlaces,
    /// The nodes that have each part, but not whole.
    pub damaged: PartPlaces,
    /// The nodes that did not tell which parts they have.
    pub silent: BTreeSet<NodeIndex>,
    pub flaws: Vec<Flaw>,
    pub read_bytes: u64,
}

impl NameLog {
    pub fn note(&mut self, flaw: Flaw) {
        flaw.add_to(&mut self.flaws);
    }

    /// Records the parts that a node has. Returns its whole parts, or `None` if the node failed.
    pub fn take(
        &mut self,
        files: NameFiles<'_>,
        node: NodeIndex,
        found: NodeParts,
    ) -> Option<Vec<PartIndex>> {
        found.damaged.into_iter().for_each(|part| self.damaged.add(PartIndex(part), node));
        found.whole.iter().for_each(|&part| self.stored(part, node));
        found.flaws.into_iter().for_each(|flaw| self.note(flaw));
        self.read_bytes += found.read_bytes;
        let Some(error) = found.failure else {
            self.silent.remove(&node);
            return Some(found.whole.into_iter().map(PartIndex).collect());
        };
        self.note(files.flaw(node, None, error.message()));
        self.silent.insert(node);
        None
    }

    /// Records the parts that each node has. Returns the number of nodes that failed.
    pub fn take_all(&mut self, files: NameFiles<'_>, found: Vec<NodeParts>) -> usize {
        let taken = files.cluster.nodes().zip(found).map(|(node, it)| self.take(files, node, it));
        taken.filter(Option::is_none).count()
    }

    /// Records that a node has a whole part.
    pub fn stored(&mut self, part: usize, node: NodeIndex) {
        self.damaged.remove(PartIndex(part), node);
        self.whole.add(PartIndex(part), node);
    }
}

/// Executes actions about one name, and keeps their findings.
#[derive(Debug)]
pub(crate) struct NameHands<'a> {
    pub files: NameFiles<'a>,
    /// Whether parts are read completely before they count as whole.
    pub is_deep: bool,
    /// Whether surveys wait for slow nodes although enough have answered.
    pub asks_everyone: bool,
    /// The object in shards that the actions are about, once it is known.
    pub object: Option<ShardedObject>,
    pub log: NameLog,
    /// Why parts could not be made, if too few are whole.
    pub too_few: Option<String>,
    /// Why parts could not be made, if that is the fault of no node.
    pub error: Option<Error>,
    /// Whether a node had no space left.
    pub is_full: bool,
    /// Number of manifests that were written.
    pub manifests_written: usize,
    /// The manifests that were read or made, as they are stored.
    pub manifests: BTreeMap<Version, Bytes>,
    /// The nodes that have listed each version.
    holders: BTreeMap<Listed, BTreeSet<NodeIndex>>,
    /// What is known about older versions that are to be deleted.
    origins: BTreeMap<Listed, Shared<BoxFuture<'a, VersionOrigin>>>,
}

/// What an action found.
#[derive(Debug)]
pub(crate) enum ActionFinding {
    Versions(Vec<Listed>),
    Manifest(Box<ManifestFile>),
    Parts(NodeParts),
    /// A shard that was checked: its number of bytes if it is whole, or what is wrong with it.
    Check(usize, Result<u64>),
    Done,
    /// The action was not done because another node failed. The failure is reported for that node.
    NotDone,
}

impl<'a> NameHands<'a> {
    pub fn new(cluster: &'a Cluster, name: &'a ObjectName) -> Self {
        Self {
            files: NameFiles { cluster, name },
            is_deep: false,
            asks_everyone: false,
            object: None,
            log: NameLog::default(),
            too_few: None,
            error: None,
            is_full: false,
            manifests_written: 0,
            manifests: BTreeMap::new(),
            holders: BTreeMap::new(),
            origins: BTreeMap::new(),
        }
    }

    /// Returns what went wrong, for a message.
    pub fn reasons(&self) -> String {
        let flaws = Some(told(&self.log.flaws)).filter(|flaws| !flaws.is_empty());
        Vec::from_iter(self.too_few.clone().into_iter().chain(flaws)).join("; ")
    }

    pub fn note(&mut self, node: NodeIndex, shard: Option<usize>, message: impl Into<String>) {
        self.log.note(self.files.flaw(node, shard, message));
    }

    /// Notes what a node could not do.
    pub fn failed(&mut self, node: NodeIndex, shard: Option<usize>, error: &Error) -> Answer {
        self.note(node, shard, error.message());
        self.is_full |= is_full(error);
        Answer::Failed
    }

    /// Keeps a manifest that was read, and returns what it describes.
    fn take_manifest(&mut self, file: ManifestFile) -> Shape {
        let ManifestFile { manifest, bytes, object } = file;
        let cluster = self.files.cluster;
        self.manifests.insert(manifest.listed.version, bytes);
        let order = cluster.inline_order(manifest.listed.version.object);
        match (manifest.content, object) {
            (None, _) => Shape::Removed { order },
            (Some(_), None) => Shape::Inline { order },
            (Some(_), Some(object)) => {
                let code = object.layout.code();
                let (spread, stages) = (cluster.spread(object.id, code), stage_ends(code));
                self.object = Some(object);
                Shape::Shards { spread, stages }
            }
        }
    }

    /// Keeps which versions a node has listed.
    fn take_versions(&mut self, node: NodeIndex, versions: Vec<Listed>) -> Answer {
        for &listed in &versions {
            self.holders.entry(listed).or_default().insert(node);
        }
        Answer::Versions(versions)
    }

    /// Returns whether a version is one of this name. All nodes are asked to delete it at once, and
    /// its manifest is read for all of them together.
    fn origin(&mut self, listed: Listed) -> Shared<BoxFuture<'a, VersionOrigin>> {
        let files = self.files;
        let read = self.manifests.get(&listed.version);
        let read =
            read.and_then(|bytes| Manifest::from_bytes(&files.name.manifest(&listed), bytes).ok());
        let holders = self.holders.get(&listed).cloned().unwrap_or_default();
        let look = || match read {
            Some(manifest) => ready(VersionOrigin::of(&manifest)).boxed().shared(),
            None => files.origin(listed, holders).boxed().shared(),
        };
        self.origins.entry(listed).or_insert_with(look).clone()
    }

    /// Returns the uploads that had stored the pieces of the versions that were deleted.
    pub fn replaced(&self) -> BTreeSet<String> {
        let known = self.origins.values().filter_map(Shared::peek);
        known
            .filter_map(|origin| match origin {
                VersionOrigin::Ours { upload, .. } => upload.clone(),
                _ => None,
            })
            .collect()
    }

    fn take_done(&mut self, Action { node, request }: Action) -> Answer {
        match request {
            Request::WriteManifest(_) => self.manifests_written += 1,
            Request::DeletePart { part, .. } => self.log.whole.remove(part, node),
            _ => {}
        }
        Answer::Done
    }

    /// Makes parts from whole ones and stores them. If these are too few, damaged ones are read as
    /// well: their damage may lie in different blocks.
    async fn made(&self, wanted: &[(usize, NodeIndex)]) -> Result<Rebuilt> {
        let none = || Error::new(ErrorKind::TooFewShards, "no shard of the object is found");
        let object = self.object.as_ref().ok_or_else(none)?;
        let NameLog { whole, damaged, .. } = &self.log;
        match self.files.rebuild(object, whole, wanted).await {
            Err(error) if error.kind() == ErrorKind::TooFewShards && !damaged.is_empty() => {
                let mut places = whole.clone();
                damaged.iter().for_each(|(part, node)| places.add(part, node));
                self.files.rebuild(object, &places, wanted).await
            }
            made => made,
        }
    }

    /// Makes parts and stores them.
    async fn rebuild(&mut self, wanted: &[(usize, NodeIndex)]) -> Vec<Answer> {
        match self.made(wanted).await {
            Ok(rebuilt) => {
                self.log.read_bytes += rebuilt.read_bytes;
                let parts = wanted.iter().zip(rebuilt.parts);
                parts.map(|(&(part, node), stored)| self.take_stored(part, node, stored)).collect()
            }
            Err(error) => {
                match error.kind() {
                    ErrorKind::TooFewShards => self.too_few = Some(error.message().to_owned()),
                    _ => self.error = Some(error),
                }
                vec![Answer::Impossible; wanted.len()]
            }
        }
    }

    fn take_stored(&mut self, part: usize, node: NodeIndex, stored: Result<()>) -> Answer {
        match stored {
            Ok(()) => {
                self.log.stored(part, node);
                Answer::Stored { length: self.object.as_ref().map_or(0, |object| object.length) }
            }
            Err(error) => self.failed(node, None, &error),
        }
    }
}

#[async_trait]
impl<'a> Hands for NameHands<'a> {
    type Finding = Result<ActionFinding>;
    type Work = BoxFuture<'a, Result<ActionFinding>>;

    fn asks_everyone(&self) -> bool {
        self.asks_everyone
    }

    fn act(&mut self, Action { node, request }: Action) -> BoxFuture<'a, Result<ActionFinding>> {
        let (files, is_deep, known) = (self.files, self.is_deep, self.object.clone());
        let manifest = match request {
            Request::WriteManifest(listed) => self.manifests.get(&listed.version).cloned(),
            _ => None,
        };
        if let Request::DeleteOlder(listed) = request {
            return delete_older(files, node, listed, self.origin(listed)).boxed();
        }
        let unknown = || Error::new(ErrorKind::Internal, "no manifest was read");
        let work = async move {
            let object = || known.as_ref().ok_or_else(unknown);
            let storage = files.cluster.node(node);
            Ok(match request {
                Request::ListVersions => ActionFinding::Versions(files.versions(node).await?),
                Request::ReadManifest(listed) => {
                    ActionFinding::Manifest(Box::new(files.read_manifest(node, listed).await?))
                }
                Request::FindParts(_) => {
                    ActionFinding::Parts(files.find_parts(node, object()?, is_deep).await)
                }
                Request::CheckPart { part, .. } => {
                    let (object, part) = (object()?, part.0);
                    let shard = object.layout.part(part).shard;
                    ActionFinding::Check(shard, files.check(node, object, part).await)
                }
                Request::WriteManifest(listed) => {
                    let bytes = manifest.ok_or_else(unknown)?;
                    done(files.write_manifest(node, listed, bytes).await)?
                }
                Request::DeleteManifest(listed) => done(files.delete_manifest(node, listed).await)?,
                Request::DeletePart { part, .. } => {
                    done(storage.delete(&files.place(node, object()?, part.0).path).await)?
                }
                Request::DeleteObject(object) => done(files.delete_object(node, object).await)?,
                Request::StorePart { .. } | Request::DeleteOlder(_) => return Err(unknown()),
            })
        };
        work.boxed()
    }

    fn take(&mut self, action: Action, finding: Result<ActionFinding>) -> Answer {
        let node = action.node;
        match finding {
            Ok(ActionFinding::Versions(versions)) => self.take_versions(node, versions),
            Ok(ActionFinding::Manifest(file)) => Answer::Manifest(self.take_manifest(*file)),
            Ok(ActionFinding::Parts(found)) => {
                self.log.take(self.files, node, found).map_or(Answer::Failed, Answer::Parts)
            }
            Ok(ActionFinding::Done) => self.take_done(action),
            Ok(ActionFinding::NotDone) => Answer::Failed,
            Ok(ActionFinding::Check(_, Ok(read))) => {
                self.log.read_bytes += read;
                Answer::Done
            }
            Ok(ActionFinding::Check(shard, Err(error))) => self.failed(node, Some(shard), &error),
            Err(error) => self.failed(node, None, &error),
        }
    }

    /// Makes parts from others and stores them on the nodes that bear the volume's mark.
    async fn store(&mut self, parts: &[(usize, NodeIndex)]) -> Vec<Answer> {
        let cluster = self.files.cluster;
        let ready = join_all(parts.iter().map(|&(_, node)| cluster.writable(node))).await;
        let mut there = Vec::new();
        for (&part, ready) in parts.iter().zip(&ready) {
            match ready {
                Ok(_) => there.push(part),
                Err(error) => self.note(part.1, None, error.message()),
            }
        }
        let mut made = self.rebuild(&there).await.into_iter();
        let mut answer = |ready: &Result<_>| ready.as_ref().ok().and_then(|_| made.next());
        ready.iter().map(|ready| answer(ready).unwrap_or(Answer::Failed)).collect()
    }
}

/// Deletes an older version's object from a node, if it is surely an object of this name. Otherwise
/// only the version's manifest is deleted later. If the object was one of this name after all, it
/// is then an orphan.
async fn delete_older(
    files: NameFiles<'_>,
    node: NodeIndex,
    listed: Listed,
    origin: Shared<BoxFuture<'_, VersionOrigin>>,
) -> Result<ActionFinding> {
    let object = listed.version.object;
    match origin.await {
        VersionOrigin::Unknown(failed, _) if failed != node => Ok(ActionFinding::NotDone),
        VersionOrigin::Ours { is_in_shards: true, .. } => {
            done(files.delete_object(node, object).await)
        }
        VersionOrigin::Ours { .. } => done(files.delete_partless(node, object).await),
        VersionOrigin::Foreign | VersionOrigin::Gone => Ok(ActionFinding::Done),
        VersionOrigin::Unknown(_, failure) => Err(Error::new(ErrorKind::Io, failure)),
    }
}

fn done(done: Result<()>) -> Result<ActionFinding> {
    done.map(|()| ActionFinding::Done)
}
