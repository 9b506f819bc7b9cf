//! The files of one name on the nodes of a volume. Each call asks one node and returns what it
//! found. This type has no memory of earlier calls.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use futures::stream::{FuturesUnordered, StreamExt};
use paritas_shards::ObjectId;
use paritas_store::error::{Error, ErrorKind, Result};

use crate::cluster::Cluster;
use crate::flaw::Flaw;
use crate::manifest::{Body, Content, Manifest};
use crate::names::{self, ObjectName, PartPath};
use crate::node::{Mode, Node};
use crate::protocol::{Listed, NodeIndex, PartIndex, PartPlaces};
use crate::transfer::check::check;
use crate::transfer::rebuild::{Rebuild, Rebuilt};
use crate::transfer::{Place, ShardedObject};

/// The files of a name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NameFiles<'a> {
    pub cluster: &'a Cluster,
    pub name: &'a ObjectName,
}

/// A manifest that was read from a node.
#[derive(Debug, Clone)]
pub(crate) struct ManifestFile {
    pub manifest: Manifest,
    /// The manifest as it is stored.
    pub bytes: Bytes,
    /// The object that it describes, if the object is stored in shards.
    pub object: Option<ShardedObject>,
}

/// What the manifests of an older version say about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum VersionOrigin {
    /// It is a version of this name.
    Ours {
        /// The upload that has stored the pieces of its object, if that is in pieces.
        upload: Option<String>,
        /// Whether its object is in shards, so that nodes may have parts of it.
        is_in_shards: bool,
    },
    /// Some nodes have manifests, but no manifest says that it is a version of this name.
    Foreign,
    /// No node has a manifest any more.
    Gone,
    /// This node failed, for this reason.
    Unknown(NodeIndex, String),
}

impl VersionOrigin {
    /// Returns what a manifest of the version says.
    pub fn of(manifest: &Manifest) -> Self {
        let content = manifest.content.as_ref();
        let is_in_shards = content.is_some_and(|it| matches!(it.body, Body::Shards { .. }));
        Self::Ours { upload: manifest.upload(), is_in_shards }
    }
}

/// The parts of an object that a node has.
#[derive(Debug, Default)]
pub(crate) struct NodeParts {
    /// The parts that are whole.
    pub whole: Vec<usize>,
    /// The parts that exist but are not whole.
    pub damaged: Vec<usize>,
    pub flaws: Vec<Flaw>,
    pub read_bytes: u64,
    /// The error of the node, if it failed. Then it may have more parts.
    pub failure: Option<Error>,
}

/// The folders of the hints that nodes may have about an object without parts. Such an object waits
/// for no later stage. Its put has removed its heartbeat, or was killed, and then the collection of
/// orphans removes it.
const PARTLESS_HINTS: [&str; 2] = [names::OWED, names::LOST];

/// Time for which one node is asked before the next one is asked as well.
const NEXT_NODE: Duration = Duration::from_millis(250);

/// Asks nodes one after the other, until `judge` takes an answer. While a node is slow to answer,
/// the next one is asked as well.
pub(crate) async fn ask_in_turn<T, A, F: Future<Output = A>>(
    nodes: impl IntoIterator<Item = NodeIndex, IntoIter: ExactSizeIterator>,
    ask: impl Fn(NodeIndex) -> F,
    mut judge: impl FnMut(A) -> Option<T>,
) -> Option<T> {
    let mut left = nodes.into_iter();
    let mut asked = FuturesUnordered::new();
    loop {
        asked.extend(left.next().map(&ask));
        tokio::select! {
            biased;
            answer = asked.next() => if let Some(taken) = judge(answer?) {
                return Some(taken);
            },
            () = tokio::time::sleep(NEXT_NODE), if left.len() > 0 => {}
        }
    }
}

impl<'a> NameFiles<'a> {
    pub fn flaw(self, node: NodeIndex, shard: Option<usize>, message: impl Into<String>) -> Flaw {
        Flaw::new(self.cluster.node_name(node), shard, message)
    }

    /// Returns the place of a part on a node.
    pub fn place(self, node: NodeIndex, object: &ShardedObject, part: usize) -> Place {
        let path = self.name.part(object.id, &object.layout.file_suffix(part));
        self.cluster.place(node, path)
    }

    /// Lists the versions of the name, without files that are known not to belong there.
    pub async fn versions(self, node: NodeIndex) -> Result<Vec<Listed>> {
        self.cluster.expect_ready(node).await?;
        let folder = self.name.folder();
        let mut entries = self.cluster.node(node).list(&folder);
        let mut versions = Vec::new();
        while let Some(entry) = entries.next().await {
            let path = entry?.path;
            let is_stranger = self.cluster.strangers.has(node, &path);
            versions.extend(self.name.version(&path).filter(|_| !is_stranger));
        }
        Ok(versions)
    }

    /// Lists the versions of the name. If `is_deep`, reads each manifest, and tells whether that
    /// failed. Manifests that do not belong there are left out ([`Self::strangers`]).
    pub async fn look_at_versions(
        self,
        node: NodeIndex,
        is_deep: bool,
    ) -> Result<Vec<(Listed, Result<()>)>> {
        let look = async |listed| match is_deep {
            true => (listed, self.read_manifest(node, listed).await.map(drop)),
            false => (listed, Ok(())),
        };
        let mut looks = join_all(self.versions(node).await?.into_iter().map(look)).await;
        looks.retain(|(listed, _)| !self.cluster.strangers.has(node, &self.name.manifest(listed)));
        Ok(looks)
    }

    /// Returns what is wrong with the manifests that were met in the folder of the name but do not
    /// belong there.
    pub fn strangers(self) -> Vec<Flaw> {
        let strangers = self.cluster.strangers.in_folder(&self.name.folder()).into_iter();
        strangers.map(|(node, flaw)| self.flaw(node, None, flaw)).collect()
    }

    /// Reads a manifest. The code of the object is taken from the front header in the manifest,
    /// because shards are read and made by it. The manifest's field `code` is not used.
    pub async fn read_manifest(self, node: NodeIndex, listed: Listed) -> Result<ManifestFile> {
        let bytes = self.cluster.node(node).read(&self.name.manifest(&listed), None).await?;
        let manifest = self.parse_manifest(node, listed, &bytes)?;
        let id = manifest.listed.version.object;
        let object = match &manifest.content {
            Some(Content { body: Body::Shards { header, .. }, digest, .. }) => {
                let (layout, digest) = (self.cluster.layout_of(header)?, *digest);
                Some(ShardedObject { id, layout, length: listed.length, digest })
            }
            _ => None,
        };
        Ok(ManifestFile { manifest, bytes, object })
    }

    /// Parses a manifest that was read from a node. Remembers if it does not belong there.
    fn parse_manifest(self, node: NodeIndex, listed: Listed, bytes: &[u8]) -> Result<Manifest> {
        let path = self.name.manifest(&listed);
        let manifest = Manifest::from_bytes(&path, bytes)
            .and_then(|manifest| manifest.expect_volume(&self.cluster.setup.id));
        if let Err(error) = &manifest
            && error.kind() == ErrorKind::NotRecognised
        {
            let rest = "it does not count, and is left alone; delete it";
            self.cluster.strangers.add(node, &path, &format!("{}; {rest}", error.message()));
        }
        manifest
    }

    /// Finds out whether a version that some nodes have listed is one of this name: a whole
    /// manifest must say so. A file name alone, which anybody can have copied or made, does not.
    pub async fn origin(self, listed: Listed, holders: BTreeSet<NodeIndex>) -> VersionOrigin {
        let (mut origin, mut failure) = (VersionOrigin::Gone, None);
        let read = async |node| (node, self.manifest_bytes(node, listed).await);
        let judge = |(node, bytes): (NodeIndex, Result<Bytes>)| {
            match bytes.map(|bytes| self.parse_manifest(node, listed, &bytes)) {
                Ok(Ok(manifest)) => return Some(VersionOrigin::of(&manifest)),
                Ok(Err(_)) => origin = VersionOrigin::Foreign,
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) if error.kind() == ErrorKind::NotRecognised => {
                    origin = VersionOrigin::Foreign;
                }
                Err(error) => {
                    failure = Some(VersionOrigin::Unknown(node, error.message().to_owned()));
                }
            }
            None
        };
        let ours = ask_in_turn(holders, read, judge).await;
        ours.or(failure).unwrap_or(origin)
    }

    /// Reads the file of a manifest from a node that bears the volume's mark.
    async fn manifest_bytes(self, node: NodeIndex, listed: Listed) -> Result<Bytes> {
        let storage = self.cluster.node(node);
        match self.cluster.expect_ready(node).await {
            Ok(()) => storage.read(&self.name.manifest(&listed), None).await,
            Err(error) => Err(Error::new(ErrorKind::Io, error.message())),
        }
    }

    /// Deletes a manifest, unless it does not belong to the name.
    pub async fn delete_manifest(self, node: NodeIndex, listed: Listed) -> Result<()> {
        let path = self.name.manifest(&listed);
        match self.cluster.strangers.has(node, &path) {
            true => Ok(()),
            false => self.cluster.node(node).delete(&path).await,
        }
    }

    /// Writes a manifest to a node that bears the volume's mark.
    pub async fn write_manifest(self, node: NodeIndex, listed: Listed, bytes: Bytes) -> Result<()> {
        let storage = self.cluster.writable(node).await?;
        let path = self.name.manifest(&listed);
        storage.write(&path, bytes, Mode::Replace).await?;
        self.cluster.strangers.remove(node, &path);
        Ok(())
    }

    /// Deletes everything of an object.
    pub async fn delete_object(self, node: NodeIndex, object: ObjectId) -> Result<()> {
        let folder = self.name.object_folder(object);
        delete_object(&**self.cluster.node(node), object, &folder).await
    }

    /// Deletes everything of an object that has no parts.
    pub async fn delete_partless(self, node: NodeIndex, object: ObjectId) -> Result<()> {
        let hints = PARTLESS_HINTS.map(|folder| names::mark(folder, object));
        delete_files(&**self.cluster.node(node), &hints).await
    }

    /// Looks for the parts of an object on all nodes. If `is_deep`, parts are read completely
    /// before they count as whole.
    pub async fn find_everywhere(self, object: &ShardedObject, is_deep: bool) -> Vec<NodeParts> {
        let find = |node| self.find_parts(node, object, is_deep);
        join_all(self.cluster.nodes().map(find)).await
    }

    /// Looks for the parts of an object on a node.
    pub async fn find_parts(
        self,
        node: NodeIndex,
        object: &ShardedObject,
        is_deep: bool,
    ) -> NodeParts {
        let mut found = NodeParts::default();
        found.failure = self.look_at_parts(node, object, is_deep, &mut found).await.err();
        found
    }

    async fn look_at_parts(
        self,
        node: NodeIndex,
        object: &ShardedObject,
        is_deep: bool,
        found: &mut NodeParts,
    ) -> Result<()> {
        self.cluster.expect_ready(node).await?;
        for (file, path, length) in self.list_parts(node, object.id).await? {
            // The file name of a part of a later stage does not always state the stage.
            let is_it = |&part: &usize| {
                object.layout.part(part).shard == file.shard
                    && self.name.part(object.id, &object.layout.file_suffix(part)) == path
            };
            let Some(part) = (0..object.layout.part_count()).find(is_it) else { continue };
            match self.look_at(node, object, part, length, is_deep).await {
                Ok(read) => {
                    found.whole.push(part);
                    found.read_bytes += read;
                }
                Err(error) => {
                    found.damaged.push(part);
                    self.flaw(node, Some(file.shard), error.message()).add_to(&mut found.flaws);
                    if is_deep && object.file_bytes(part) == Some(length) {
                        // A node that cannot even tell the file's length has failed. Its parts may
                        // be whole.
                        self.cluster.node(node).stat(&path).await?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Lists the files of an object's parts, each with its path and length.
    async fn list_parts(
        self,
        node: NodeIndex,
        object: ObjectId,
    ) -> Result<Vec<(PartPath, String, u64)>> {
        let storage = self.cluster.node(node);
        let folder = self.name.object_folder(object);
        let (mut entries, mut files) = (storage.list(&folder), Vec::new());
        while let Some(entry) = entries.next().await {
            let entry = entry?;
            let Some(part) = names::parse_part(&entry.path) else { continue };
            let length = match entry.length {
                Some(length) => Some(length),
                // It may be deleted after it was listed.
                None => storage.stat(&entry.path).await?.map(|stat| stat.length),
            };
            files.extend(length.map(|length| (part, entry.path, length)));
        }
        Ok(files)
    }

    /// Checks a part that is listed with a length. Returns the number of bytes that were read.
    async fn look_at(
        self,
        node: NodeIndex,
        object: &ShardedObject,
        part: usize,
        length: u64,
        is_deep: bool,
    ) -> Result<u64> {
        match object.file_bytes(part) {
            Some(whole) if whole == length && is_deep => self.check(node, object, part).await,
            Some(whole) if whole == length => Ok(0),
            whole => {
                let whole = whole.unwrap_or_default();
                let message = format!("must have {whole} bytes; got {length}");
                Err(Error::new(ErrorKind::Io, message))
            }
        }
    }

    /// Reads a part completely, and checks that all of it is as it was written. A part on this
    /// machine is read from the disk, not from the system's cache. Returns the number of bytes that
    /// were read.
    pub async fn check(self, node: NodeIndex, object: &ShardedObject, part: usize) -> Result<u64> {
        let place = self.place(node, object, part);
        place.node.forget_cached(&place.path).await;
        let parts = object.layout.part_count() as u64;
        let progress = |bytes: u64| self.cluster.advance(self.name, bytes / parts);
        check(object, part, &place, &progress).await
    }

    /// Returns whether a part that was found damaged is there and still damaged: in any block, if
    /// `is_deep`, otherwise by its length. A file on a node that does not answer does not count as
    /// damaged.
    pub async fn is_damaged(
        self,
        node: NodeIndex,
        object: &ShardedObject,
        part: usize,
        is_deep: bool,
    ) -> bool {
        let place = self.place(node, object, part);
        let Ok(Some(stat)) = place.node.stat(&place.path).await else { return false };
        if Some(stat.length) != object.file_bytes(part) {
            return true;
        }
        is_deep
            && check(object, part, &place, &|_| {}).await.is_err()
            && place.node.stat(&place.path).await.is_ok()
    }

    /// Makes parts of an object from the parts at `places`, and stores each on a node.
    pub async fn rebuild(
        self,
        object: &ShardedObject,
        places: &PartPlaces,
        wanted: &[(usize, NodeIndex)],
    ) -> Result<Rebuilt> {
        self.cluster.expect_room(self.name, &object.layout)?;
        let target = |&(part, node): &(usize, NodeIndex)| (part, self.place(node, object, part));
        let places = |part: usize| {
            places.of(PartIndex(part)).map(|node| self.place(node, object, part)).collect()
        };
        let rebuild = Rebuild {
            object: object.clone(),
            places: (0..object.layout.part_count()).map(places).collect(),
            settings: self.cluster.setup.settings.clone(),
        };
        let progress = |bytes| self.cluster.advance(self.name, bytes);
        rebuild.run(wanted.iter().map(target).collect(), &progress).await
    }
}

/// Deletes everything that a node has of an object: the folder of its parts, its heartbeat, its
/// hints and its claim.
pub(crate) async fn delete_object(
    storage: &dyn Node,
    object: ObjectId,
    folder: &str,
) -> Result<()> {
    let mut entries = storage.list(folder);
    let mut paths: Vec<String> = Vec::new();
    while let Some(entry) = entries.next().await {
        paths.push(entry?.path);
    }
    let has_folder = !paths.is_empty();
    let others = [names::RUNNING, names::BACKLOG].into_iter().chain(PARTLESS_HINTS);
    paths.extend(others.map(|folder| names::mark(folder, object)));
    paths.push(names::claim(object));
    delete_files(storage, &paths).await?;
    if has_folder {
        // An empty folder that stays does no harm. Later puts do not use this folder, because each
        // put draws a new id.
        let _ = storage.delete_folder(folder).await;
    }
    Ok(())
}

/// Deletes files side by side. Files that do not exist count as deleted.
async fn delete_files(storage: &dyn Node, paths: &[String]) -> Result<()> {
    let deleted = join_all(paths.iter().map(|path| storage.delete(path))).await;
    deleted.into_iter().collect()
}
