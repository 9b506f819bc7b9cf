//! Filling a node that replaces a lost one.
//!
//! A lost node held manifests that readers rely on: a version on t + 1 nodes is found although t of
//! them are lost. A new, empty node in its place must not be asked before it has these manifests.
//! Otherwise its answer would count as proof that the versions do not exist. So it gets the
//! manifests first, then the volume's mark, and the shards last, by repair. Until then, the node
//! has a hint about each object that may lack a shard there, so that an interrupted replacement is
//! seen, and finished by whoever repairs what is owed.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::{join_all, try_join_all};
use futures::stream::{self, StreamExt, TryStreamExt};
use paritas_store::error::{Error, ErrorKind, Result};

use crate::cluster::{Cluster, MOST_ATTEMPTS};
use crate::files::NameFiles;
use crate::find::keeps_changing;
use crate::flaw::told;
use crate::hints::FolderHints;
use crate::list::{ListJob, Versions, VersionsByName};
use crate::manifest::Body;
use crate::names::{
    self, BACKLOG, LOST, MANIFESTS, OBJECTS, OBJECTS_2, OWED, ObjectName, READY, RUNNING, SCRUB,
};
use crate::node::{Mode, caseless, is_of_probe, tells_cases};
use crate::protocol::{Listed, NodeIndex, View};

/// Number of manifests that are copied side by side.
const AT_ONCE: usize = 16;

/// The result of filling a node, before repair.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct Filled {
    /// Number of manifests that the node got.
    pub manifests: usize,
}

/// Gives a new node the manifests that it should have.
pub(crate) struct FillJob<'a> {
    pub cluster: &'a Cluster,
    pub node: NodeIndex,
}

impl FillJob<'_> {
    pub async fn run(&self) -> Result<Filled> {
        let (cluster, node) = (self.cluster, self.node);
        match cluster.expect_ready(node).await {
            Ok(()) => return Ok(Filled::default()),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        self.expect_new().await?;
        self.expect_cases().await?;
        let counts = |nodes: Vec<NodeIndex>| {
            nodes.into_iter().filter(|&node| cluster.quorum.counts(node)).count()
        };
        let copy = async |(name, versions): (ObjectName, BTreeMap<Listed, Vec<NodeIndex>>)| {
            let newest = versions.into_iter().next_back();
            let newest = newest.map(|(listed, nodes)| (listed, counts(nodes)));
            let files = NameFiles { cluster, name: &name };
            self.copy_newest(files, newest).await.map(usize::from)
        };
        // What the node has is listed first: meanwhile another call may fill it, and clients put.
        let own = self.manifests().await?;
        let Versions { names, nameless, .. } = ListJob::of(cluster, "").versions().await?;
        if let Some(flaw) = nameless.first() {
            return Err(Error::new(ErrorKind::Io, &*flaw.message).at_node(&flaw.node));
        }
        self.forget_others(own, &names).await?;
        let copied = stream::iter(names).map(copy);
        let sum = async |sum, copied| Ok(sum + copied);
        let manifests = copied.buffer_unordered(AT_ONCE).try_fold(0, sum).await?;
        let mark = cluster.mark_of(node).into();
        cluster.node(node).write(READY, mark, Mode::Replace).await?;
        Ok(Filled { manifests })
    }

    /// Copies the newest manifest of a name. `newest` is what a listing showed, with the number of
    /// its holders. If it is gone, another version has replaced it since then, so the nodes are
    /// asked again. Returns whether a manifest was copied.
    async fn copy_newest(
        &self,
        files: NameFiles<'_>,
        mut newest: Option<(Listed, usize)>,
    ) -> Result<bool> {
        for _ in 0..MOST_ATTEMPTS {
            let Some((listed, holders)) = newest else { return Ok(false) };
            let is_settled = holders >= self.cluster.quorum.to_write();
            if let Some(is_copied) = self.copy_manifest(files, listed, is_settled).await? {
                return Ok(is_copied);
            }
            newest = self.newest(files).await?;
            if newest.is_some_and(|(still, _)| still == listed) {
                let path = files.name.manifest(&listed);
                return Err(Error::new(ErrorKind::Io, format!("{path} can be read on no node")));
            }
        }
        Err(keeps_changing(files.name))
    }

    /// Returns the newest version of a name, with the number of its holders that are not drained.
    async fn newest(&self, files: NameFiles<'_>) -> Result<Option<(Listed, usize)>> {
        let nodes = || self.cluster.nodes();
        let lists = join_all(nodes().map(|node| files.versions(node))).await;
        let (mut view, mut flaws) = (View::new(self.cluster.quorum), Vec::new());
        for (node, versions) in nodes().zip(lists) {
            match versions {
                Ok(versions) => view.answer(node, versions),
                Err(error) => files.flaw(node, None, error.message()).add_to(&mut flaws),
            }
        }
        match view.is_sure() {
            true => Ok(view.latest().map(|newest| (newest, view.counted(newest.version)))),
            false => {
                let message = format!("{}: too few nodes answered: {}", files.name, told(&flaws));
                Err(Error::new(ErrorKind::TooFewNodes, message))
            }
        }
    }

    /// Refuses a place that cannot distinguish names which differ only in case.
    async fn expect_cases(&self) -> Result<()> {
        let storage = self.cluster.node(self.node);
        match !storage.abilities().cases || tells_cases(&**storage).await? {
            true => Ok(()),
            false => Err(caseless(storage.name())),
        }
    }

    /// Refuses a place that has files of something else. Removes what an interrupted call left.
    async fn expect_new(&self) -> Result<()> {
        let storage = self.cluster.node(self.node);
        let folders = [MANIFESTS, OBJECTS, OBJECTS_2, OWED, LOST, BACKLOG, RUNNING];
        // A mark that is there is blank.
        let is_ours = |path: &str| {
            [SCRUB, READY].contains(&path) || folders.iter().any(|folder| path.starts_with(folder))
        };
        let mut entries = storage.list("");
        let mut probes = Vec::new();
        while let Some(entry) = entries.next().await {
            let path = entry?.path;
            if is_of_probe(&path) {
                probes.push(path);
            } else if !is_ours(&path) {
                let message = format!("the new place must be empty; it has {path}");
                return Err(Error::new(ErrorKind::Exists, message).at_node(storage.name()));
            }
        }
        try_join_all(probes.iter().map(|path| storage.delete(path))).await.map(drop)
    }

    /// Returns the paths of the node's manifests, and the versions that they state.
    async fn manifests(&self) -> Result<Vec<(String, Listed)>> {
        let mut entries = self.cluster.node(self.node).list(MANIFESTS);
        let mut manifests = Vec::new();
        while let Some(entry) = entries.next().await {
            let path = entry?.path;
            let listed = names::parse_manifest(&path).map(|(_, listed)| listed);
            manifests.extend(listed.map(|listed| (path, listed)));
        }
        Ok(manifests)
    }

    /// Deletes those of the node's `own` manifests that no other node shows, although enough have
    /// answered to show every version that counts. An earlier node had them, or an interrupted call
    /// has copied them; they would bring back names that were removed since.
    async fn forget_others(
        &self,
        own: Vec<(String, Listed)>,
        names: &VersionsByName,
    ) -> Result<()> {
        let storage = self.cluster.node(self.node);
        let known: BTreeSet<Listed> = names.values().flat_map(BTreeMap::keys).copied().collect();
        let others = own.into_iter().filter(|(_, listed)| !known.contains(listed));
        let deleted = stream::iter(others).map(async |(path, _)| storage.delete(&path).await);
        deleted.buffer_unordered(AT_ONCE).try_collect().await
    }

    /// Copies a manifest, unless it is that of a small object, or the mark of a removed name, and
    /// enough other nodes have it (`is_settled`). Which nodes these are does not follow from the
    /// object: while a node is down, its copy goes to another one and stays there. Returns whether
    /// it was copied, or `None` if no other node shows it whole.
    async fn copy_manifest(
        &self,
        files: NameFiles<'_>,
        listed: Listed,
        is_settled: bool,
    ) -> Result<Option<bool>> {
        for from in self.cluster.nodes().filter(|&from| from != self.node) {
            let Ok(file) = files.read_manifest(from, listed).await else { continue };
            let content = file.manifest.content;
            let is_on_few =
                content.as_ref().is_none_or(|it| !matches!(it.body, Body::Shards { .. }));
            if is_on_few && is_settled {
                return Ok(Some(false));
            }
            let path = files.name.manifest(&listed);
            let write = async {
                // The node does not bear the volume's mark yet.
                self.cluster.node(self.node).write(&path, file.bytes, Mode::Replace).await?;
                match content.map(|it| it.body) {
                    Some(Body::Shards { .. }) => {
                        let owed = FolderHints::owed(self.cluster);
                        owed.leave_on(self.node, listed.version.object, files.name).await
                    }
                    _ => Ok(()),
                }
            };
            let name = self.cluster.node_name(self.node);
            let refused = |error: Error| Error::new(ErrorKind::Io, error.message()).at_node(name);
            return write.await.map(|()| Some(true)).map_err(refused);
        }
        Ok(None)
    }
}
