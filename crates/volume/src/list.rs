//! Listing a volume: the names, and the versions of each.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::join_all;
use futures::stream::{self, StreamExt};
use paritas_store::error::{Error, ErrorKind, Result};

use crate::cluster::Cluster;
use crate::files::{NameFiles, VersionOrigin, ask_in_turn};
use crate::find::FindJob;
use crate::flaw::{Flaw, told};
use crate::found::GetOptions;
use crate::names::{self, MANIFESTS, ObjectName, PathName};
use crate::protocol::{Listed, NodeIndex, Quorum, VersionKind};
use crate::shortened::Shortened;

/// Number of manifests that are read side by side.
const AT_ONCE: usize = 64;

/// Number of names that are looked for before all are listed.
const TRIED: usize = 8;

/// All objects of a volume, or those whose names begin with a prefix.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Listing {
    /// The objects by name, each with its newest version.
    pub objects: BTreeMap<ObjectName, Listed>,
    /// The nodes that did not answer.
    pub flaws: Vec<Flaw>,
    /// Whether enough nodes answered to be sure that the list is complete.
    pub is_sure: bool,
}

/// For each name, its versions, each with the nodes that have it.
pub(crate) type VersionsByName = BTreeMap<ObjectName, BTreeMap<Listed, Vec<NodeIndex>>>;

/// All versions that any node has.
#[derive(Debug, Default)]
pub(crate) struct Versions {
    pub names: VersionsByName,
    /// What stands under names that cannot be told.
    pub nameless: Vec<Flaw>,
    /// The nodes that answered.
    pub answered: BTreeSet<NodeIndex>,
    pub flaws: Vec<Flaw>,
}

impl Versions {
    /// As [`Overview::nameless`](crate::Overview::nameless).
    pub fn unnamed(&self) -> impl Iterator<Item = Error> {
        let kind = match self.flaws.is_empty() {
            true => ErrorKind::TooFewShards,
            false => ErrorKind::TooFewNodes,
        };
        let error = move |flaw: &Flaw| Error::new(kind, &*flaw.message).at_node(&flaw.node);
        self.nameless.iter().map(error)
    }

    /// Returns the objects, each with its newest version. The volume's own objects are among them
    /// only if `prefix`, which all names begin with, asks for them.
    pub fn objects(&self, prefix: &str) -> impl Iterator<Item = (&ObjectName, Listed)> {
        let shows_own = names::is_own(prefix);
        let shown =
            self.names.iter().filter(move |(name, _)| shows_own || !names::is_own(name.as_str()));
        shown.filter_map(|(name, versions)| {
            let newest = *versions.last_key_value()?.0;
            (newest.kind == VersionKind::Put).then_some((name, newest))
        })
    }

    /// Returns the versions of a name that a node has, if the node answered.
    pub fn on(&self, node: NodeIndex, name: &ObjectName) -> Option<Vec<Listed>> {
        let has = |(_, nodes): &(_, &Vec<NodeIndex>)| nodes.contains(&node);
        let versions = self.names.get(name).into_iter().flatten().filter(has);
        let listed = versions.map(|(&listed, _)| listed).collect();
        self.answered.contains(&node).then_some(listed)
    }

    /// Returns the newest version of each name that has older versions as well, and the nodes that
    /// have it, if these are too few to settle it.
    fn rare(&self, quorum: Quorum) -> Vec<(ObjectName, Listed, Vec<NodeIndex>)> {
        let mut rare = Vec::new();
        for (name, versions) in self.names.iter().filter(|(_, versions)| versions.len() > 1) {
            let Some((&listed, nodes)) = versions.last_key_value() else { continue };
            let counted = nodes.iter().filter(|&&node| quorum.counts(node)).count();
            if counted < quorum.to_write() {
                rare.push((name.clone(), listed, nodes.clone()));
            }
        }
        rare
    }

    /// Returns the error for too few answers.
    fn too_few(&self, cluster: &Cluster) -> Error {
        let message = format!(
            "{} of {} nodes answered, {} must to be sure of what there is: {}",
            self.answered.len(),
            cluster.quorum.nodes(),
            cluster.quorum.to_read(),
            told(&self.flaws)
        );
        Error::new(ErrorKind::TooFewNodes, message)
    }
}

/// Returns the first components of all names with several, whether or not they still have objects.
/// Components that are shortened in paths are left out. Too few answers are an error.
pub(crate) async fn first_folders(cluster: &Cluster) -> Result<BTreeSet<String>> {
    let list = async |node| {
        cluster.expect_ready(node).await?;
        cluster.node(node).folders(MANIFESTS).await
    };
    let (mut found, mut folders) = (Versions::default(), BTreeSet::new());
    for (node, listed) in cluster.nodes().zip(join_all(cluster.nodes().map(list)).await) {
        match listed {
            Ok(listed) => {
                found.answered.insert(node);
                folders.extend(listed);
            }
            Err(error) => found.flaws.push(cluster.flaw(node, &error)),
        }
    }
    if found.answered.len() < cluster.quorum.to_read() {
        return Err(found.too_few(cluster));
    }
    let component = |folder: String| match PathName::parse(&folder) {
        Some(PathName::Whole(name)) => Some(name.as_str().to_owned()),
        _ => None,
    };
    Ok(folders
        .into_iter()
        .filter_map(component)
        .filter(|name| !names::is_own(&format!("{name}/")))
        .collect())
}

/// Lists the names that begin with a prefix.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListJob<'a> {
    cluster: &'a Cluster,
    prefix: &'a str,
    /// Largest number of files that a node may list.
    most: usize,
}

impl<'a> ListJob<'a> {
    /// Prepares a listing without a limit.
    pub fn of(cluster: &'a Cluster, prefix: &'a str) -> Self {
        Self { cluster, prefix, most: usize::MAX }
    }

    /// Returns the beginning of the names.
    pub fn prefix(&self) -> &'a str {
        self.prefix
    }

    /// Gives up the listing of a node that has more than `most` files.
    pub fn of_at_most(self, most: usize) -> Self {
        Self { most, ..self }
    }

    /// Lists the objects. The volume's own objects are listed only if the prefix asks for them. Too
    /// few answers are an error, unless `options` allow stale answers and at least one node
    /// answered.
    pub async fn run(self, options: GetOptions) -> Result<Listing> {
        let found = self.look().await;
        let is_sure = found.answered.len() >= self.cluster.quorum.to_read();
        if !is_sure && (!options.allow_stale || found.answered.is_empty()) {
            return Err(found.too_few(self.cluster));
        }
        let objects = found.objects(self.prefix).map(|(name, listed)| (name.clone(), listed));
        let objects = objects.collect();
        Ok(Listing {
            objects,
            flaws: found.flaws.into_iter().chain(found.nameless).collect(),
            is_sure,
        })
    }

    /// Returns the version of an object other than `except`, if there is one. It is mostly one of
    /// the first that a node lists. If none of these is found, everything is listed.
    ///
    /// # Errors
    /// As [`ListJob::versions`]; also if there may be such objects, but their names cannot be told.
    pub async fn any(self, except: Option<&ObjectName>) -> Result<Option<Listed>> {
        let nodes: Vec<NodeIndex> = self.cluster.nodes().collect();
        let first = |node| self.first_names(node, except);
        let names = ask_in_turn(nodes, first, Result::ok).await.unwrap_or_default();
        for name in &names {
            if let Ok(found) = FindJob::of(self.cluster, name).run().await {
                return Ok(Some(found.listed()));
            }
        }
        let found = self.versions().await?;
        let other = found.objects(self.prefix).find(|(name, _)| Some(*name) != except);
        match (other, found.unnamed().next()) {
            (Some((_, listed)), _) => Ok(Some(listed)),
            (None, Some(error)) => Err(error),
            (None, None) => Ok(None),
        }
    }

    /// Returns the first names that a node lists, other than `except`.
    async fn first_names(
        self,
        node: NodeIndex,
        except: Option<&ObjectName>,
    ) -> Result<BTreeSet<ObjectName>> {
        self.cluster.expect_ready(node).await?;
        let folder = names::folder_above(self.prefix);
        let mut entries = self.cluster.node(node).list(&folder);
        let mut found = BTreeSet::new();
        while found.len() < TRIED
            && let Some(entry) = entries.next().await
        {
            // Whether a shortened name begins with the prefix is not told by its path.
            let Some((PathName::Whole(name), _)) = names::parse_manifest(&entry?.path) else {
                continue;
            };
            if name.as_str().starts_with(self.prefix) && Some(&name) != except {
                found.insert(name);
            }
        }
        Ok(found)
    }

    /// Lists all versions. Too few answers are an error.
    pub async fn versions(self) -> Result<Versions> {
        let found = self.look().await;
        match found.answered.len() < self.cluster.quorum.to_read() {
            true => Err(found.too_few(self.cluster)),
            false => Ok(found),
        }
    }

    /// Lists the versions on the nodes that answer.
    async fn look(self) -> Versions {
        let (cluster, folder) = (self.cluster, names::folder_above(self.prefix));
        let lists =
            cluster.nodes().map(|node| manifests(cluster, node, &folder, self.most, |it| it));
        let lists = join_all(lists).await;
        let mut found = Versions::default();
        let mut shortened = Shortened { cluster, paths: BTreeMap::new() };
        for (node, list) in cluster.nodes().zip(lists) {
            found.answered.extend(list.is_ok().then_some(node));
            let list = list.unwrap_or_else(|error| {
                found.flaws.push(cluster.flaw(node, &error));
                Vec::new()
            });
            for (name, listed) in list {
                match name {
                    PathName::Whole(name) => self.add(&mut found, name, listed, node),
                    PathName::Shortened(path) if names::may_begin_with(&path, self.prefix) => {
                        shortened.add(path, listed, node);
                    }
                    PathName::Shortened(_) => {}
                }
            }
        }
        let (names, nameless) = shortened.names().await;
        found.nameless = nameless;
        for (path, name) in names {
            for (&listed, nodes) in shortened.paths.get(&path).into_iter().flatten() {
                nodes.iter().for_each(|&node| self.add(&mut found, name.clone(), listed, node));
            }
        }
        if found.answered.len() == cluster.quorum.nodes() {
            self.reveal(&mut found).await;
        }
        found
    }

    /// Leaves out newest versions that would hide others, although they do not count: strangers,
    /// and marks of removed names that cannot be read. Only versions that too few nodes have are
    /// looked at, because an acknowledged one is on more nodes if all have answered.
    async fn reveal(self, found: &mut Versions) {
        loop {
            let rare = stream::iter(found.rare(self.cluster.quorum));
            let look = |(name, listed, nodes)| self.hides(name, listed, nodes);
            let looks: Vec<Option<(ObjectName, Listed)>> =
                rare.map(look).buffer_unordered(AT_ONCE).collect().await;
            let hiding: Vec<(ObjectName, Listed)> = looks.into_iter().flatten().collect();
            if hiding.is_empty() {
                break;
            }
            for (name, listed) in hiding {
                found.names.entry(name).and_modify(|versions| _ = versions.remove(&listed));
            }
        }
    }

    /// Returns a version with its name if it does not count, so that the one before it does or may.
    async fn hides(
        self,
        name: ObjectName,
        listed: Listed,
        nodes: Vec<NodeIndex>,
    ) -> Option<(ObjectName, Listed)> {
        let files = NameFiles { cluster: self.cluster, name: &name };
        let origin = files.origin(listed, nodes.iter().copied().collect()).await;
        let path = name.manifest(&listed);
        let is_stranger = |&node: &NodeIndex| self.cluster.strangers.has(node, &path);
        let hides = origin == VersionOrigin::Foreign
            && (listed.kind == VersionKind::Removed || nodes.iter().all(is_stranger));
        hides.then_some((name, listed))
    }

    /// Records a version that a node has, if its name begins with the prefix.
    fn add(self, found: &mut Versions, name: ObjectName, listed: Listed, node: NodeIndex) {
        if name.as_str().starts_with(self.prefix) {
            found.names.entry(name).or_default().entry(listed).or_default().push(node);
        }
    }
}

/// Lists the manifests in a folder of a node, and returns what `kept` makes of each. Fails if the
/// folder has more than `most` files.
pub(crate) async fn manifests<T>(
    cluster: &Cluster,
    node: NodeIndex,
    folder: &str,
    most: usize,
    kept: fn((PathName, Listed)) -> T,
) -> Result<Vec<T>> {
    cluster.expect_ready(node).await?;
    let mut entries = cluster.node(node).list(folder).take(most.saturating_add(1));
    let (mut manifests, mut files) = (Vec::new(), 0);
    while let Some(entry) = entries.next().await {
        manifests.extend(names::parse_manifest(&entry?.path).map(kept));
        files += 1;
    }
    match files > most {
        true => Err(Error::new(ErrorKind::Unsupported, format!("lists more than {most} files"))),
        false => Ok(manifests),
    }
}
