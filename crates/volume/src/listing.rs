//! What a volume has: names, and what waits to be done.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use futures::future::{join_all, try_join_all};
use futures::stream::StreamExt;
use paritas_shards::ObjectId;
use paritas_store::error::{Error, ErrorKind, Result};

use crate::claim;
use crate::files::delete_object;
use crate::flaw::{Flaw, told};
use crate::found::GetOptions;
use crate::hints::{Hints, Waiting};
use crate::names::{self, BACKLOG, MANIFESTS, OBJECTS, OBJECTS_2, OWED, ObjectName, PathName};
use crate::node::{is_abandoned, passing_name};
use crate::protocol::{Census, Listed, NodeIndex, VersionKind};
use crate::scrub::ScrubStatus;
use crate::shortened::Shortened;
use crate::unfinished::of_the_past;
use crate::volume::Volume;

/// All objects of a volume, or those whose names begin with a prefix.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Listing {
    /// The objects by name, each with its newest version.
    pub objects: BTreeMap<ObjectName, Listed>,
    /// The nodes that did not answer.
    pub flaws: Vec<Flaw>,
    /// Whether enough nodes answered to be sure that nothing is missing.
    pub is_sure: bool,
}

/// What is known of a volume at a glance.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct VolumeStatus {
    /// The nodes, in the order of the volume file, but drained ones last.
    pub nodes: Vec<NodeStatus>,
    /// Number of nodes that may be lost, whichever they are.
    pub tolerance: usize,
    /// The objects of which something is not where it belongs.
    pub owed: Waiting,
    /// The objects that wait for a later stage of their code.
    pub backlog: Waiting,
    /// How far the scrub is.
    pub scrub: ScrubStatus,
}

impl VolumeStatus {
    /// Returns the number of nodes that cannot be used now.
    pub fn useless(&self) -> usize {
        self.nodes.iter().filter(|node| node.problem.is_some()).count()
    }
}

/// The state of a node.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct NodeStatus {
    /// The name.
    pub name: String,
    /// The failure domain.
    pub domain: String,
    /// Whether nothing new is put there.
    pub is_drained: bool,
    /// Why the node cannot be used now, or `None` if it can.
    pub problem: Option<String>,
}

impl Volume {
    /// Lists the objects whose names begin with `prefix`, all of them if it is empty.
    ///
    /// # Errors
    /// If too few nodes answered to be sure of what there is ([`ErrorKind::TooFewNodes`]).
    pub async fn list(&self, prefix: &str) -> Result<Listing> {
        self.list_with(prefix, GetOptions::default()).await
    }

    /// Lists objects as [`Self::list`] does. If `options` say so, too few answers are no error:
    /// then objects may be missing, and others may have been removed or replaced.
    ///
    /// # Errors
    /// As [`Self::list`]; if no node answered ([`ErrorKind::TooFewNodes`]).
    pub async fn list_with(&self, prefix: &str, options: GetOptions) -> Result<Listing> {
        let found = self.look_for_versions(prefix).await;
        let is_sure = found.answered >= self.quorum.to_read();
        if !is_sure && (!options.allow_stale || found.answered == 0) {
            return Err(self.too_few_answers(&found));
        }
        let newest = found.names.into_iter().filter_map(|(name, versions)| {
            let newest = versions.into_keys().next_back()?;
            (newest.kind == VersionKind::Put).then_some((name, newest))
        });
        Ok(Listing { objects: newest.collect(), flaws: found.flaws, is_sure })
    }

    /// Lists all versions of all names that begin with `prefix`.
    pub(crate) async fn versions(&self, prefix: &str) -> Result<Versions> {
        let found = self.look_for_versions(prefix).await;
        match found.answered < self.quorum.to_read() {
            true => Err(self.too_few_answers(&found)),
            false => Ok(found),
        }
    }

    fn too_few_answers(&self, found: &Versions) -> Error {
        let message = format!(
            "{} of {} nodes answered, {} must to be sure of what there is: {}",
            found.answered,
            self.node_count(),
            self.quorum.to_read(),
            told(&found.flaws)
        );
        Error::new(ErrorKind::TooFewNodes, message)
    }

    /// Lists what the nodes that answer have.
    async fn look_for_versions(&self, prefix: &str) -> Versions {
        let folder = names::folder_above(prefix);
        let lists = join_all(self.nodes().map(|node| self.list_node(node, &folder))).await;
        let (mut found, mut shortened) = (Versions::default(), Shortened::default());
        for (node, list) in self.nodes().zip(lists) {
            match list {
                Ok(manifests) => {
                    found.answered += 1;
                    for (name, listed) in manifests {
                        match name {
                            PathName::Whole(name) => {
                                found.add(prefix, name, listed, self.quorum.counts(node));
                            }
                            PathName::Shortened(path) => {
                                let versions = shortened.entry(path).or_default();
                                versions.entry(listed).or_default().push(node);
                            }
                        }
                    }
                }
                Err(error) => found.flaws.push(self.flaw(node, &error)),
            }
        }
        let named = self.names_at(&shortened, &mut found.flaws).await;
        for (path, name) in named {
            for (&listed, nodes) in shortened.get(&path).into_iter().flatten() {
                for &node in nodes {
                    found.add(prefix, name.clone(), listed, self.quorum.counts(node));
                }
            }
        }
        found
    }

    async fn list_node(&self, node: NodeIndex, folder: &str) -> Result<Vec<(PathName, Listed)>> {
        self.expect_ready(node).await?;
        let mut entries = self.node(node).list(folder);
        let mut manifests = Vec::new();
        while let Some(entry) = entries.next().await {
            manifests.extend(names::parse_manifest(&entry?.path));
        }
        Ok(manifests)
    }

    pub(crate) fn flaw(&self, node: NodeIndex, error: &Error) -> Flaw {
        Flaw::new(self.node_name(node), None, error.message())
    }

    /// Returns the state of the nodes, and what waits to be done.
    ///
    /// # Errors
    /// If no node can be read.
    pub async fn status(&self) -> Result<VolumeStatus> {
        let checks = join_all(self.nodes().map(|node| self.expect_usable(node))).await;
        let usable = self.nodes().zip(&checks).filter(|(_, check)| check.is_ok());
        let usable: Vec<NodeIndex> = usable.map(|(node, _)| node).collect();
        let members = self.members.as_slice().iter().zip(checks);
        let nodes: Vec<NodeStatus> = members
            .map(|(member, check)| NodeStatus {
                name: member.name.clone(),
                domain: member.domain.clone(),
                is_drained: member.is_drained,
                problem: check.err().map(|error| error.message().to_owned()),
            })
            .collect();
        if nodes.iter().all(|node| node.problem.is_some()) {
            let problems: Vec<String> = nodes
                .iter()
                .map(|node| {
                    format!("{}: {}", node.name, node.problem.as_deref().unwrap_or_default())
                })
                .collect();
            return Err(Error::new(
                ErrorKind::TooFewNodes,
                format!("no node can be read: {}", problems.join("; ")),
            ));
        }
        // Each request to a node that does not answer would wait for its time limit again.
        let owed = Hints::owed(self).collect_from(&usable).await;
        let backlog = Hints::backlog(self).collect_from(&usable).await;
        let scrub = self.scrub_status_on(&usable).await;
        Ok(VolumeStatus { nodes, tolerance: self.tolerance(), owed, backlog, scrub })
    }

    /// Checks that a node bears the mark of this volume and lists manifests.
    async fn expect_readable(&self, node: NodeIndex) -> Result<()> {
        self.expect_ready(node).await?;
        self.node(node).list(MANIFESTS).next().await.transpose().map(drop)
    }

    /// Returns whether enough nodes answer now to be sure of what there is.
    pub(crate) async fn is_readable(&self) -> bool {
        let checks = join_all(self.nodes().map(|node| self.expect_readable(node))).await;
        checks.iter().filter(|check| check.is_ok()).count() >= self.quorum.to_read()
    }

    /// Checks that a node bears the mark of this volume and lists manifests and, unless it is
    /// drained, that it takes files.
    async fn expect_usable(&self, node: NodeIndex) -> Result<()> {
        self.expect_readable(node).await?;
        match self.quorum.counts(node) {
            true => self.clock_of(node).await.map(drop),
            false => Ok(()),
        }
    }

    /// Removes what interrupted puts left behind: the objects that no manifest names, and whose put
    /// was on this machine and its process is over, or that are older than a day. Returns their
    /// number. Of other machines' puts nothing is removed as long as any node does not answer,
    /// because that node may have a manifest of them.
    ///
    /// # Errors
    /// If an object cannot be deleted ([`ErrorKind::Io`]).
    pub async fn collect(&self) -> Result<usize> {
        let mut census = Census::new(self.quorum);
        // Before the nodes are listed: what began later is not looked for.
        let id = self.setup.id.clone();
        let records = tokio::task::spawn_blocking(move || of_the_past(&id)).await;
        let records = records.map_err(|error| Error::internal("reading records", error))?;
        records.iter().for_each(|(object, _)| census.given_up(*object));
        let mut tallies = Vec::new();
        for tally in join_all(self.nodes().map(|node| self.count_on(node))).await {
            // A node that does not answer is missing in the census, which then finds nothing.
            tallies.extend(tally.ok());
        }
        for NodeHoldings { node, manifests, files } in tallies {
            manifests.into_iter().for_each(|object| census.manifest(object));
            files.into_iter().for_each(|(object, age)| census.file(object, age));
            census.listed(node);
        }
        let orphans: Vec<ObjectId> = census.orphans().collect();
        for &orphan in &orphans {
            for objects in [OBJECTS, OBJECTS_2] {
                let folder = names::object_folder(objects, orphan);
                let delete = |node| delete_object(&**self.node(node), orphan, &folder);
                try_join_all(self.nodes().map(delete)).await?;
            }
        }
        if census.is_complete() {
            // A record that cannot be removed does no harm: its object is gone.
            records.into_iter().for_each(|(_, record)| _ = record.end());
        }
        Ok(orphans.len())
    }

    /// Lists everything that a node has, and removes what killed writers left there.
    async fn count_on(&self, node: NodeIndex) -> Result<NodeHoldings> {
        self.expect_ready(node).await?;
        let storage = self.node(node);
        storage.sweep(ORPHAN_AGE).await?;
        let now = self.clock_of(node).await?;
        let mut files = Vec::new();
        for folder in [OBJECTS, OBJECTS_2, names::RUNNING, OWED, BACKLOG] {
            let mut entries = storage.list(folder);
            while let Some(entry) = entries.next().await {
                let entry = entry?;
                if names::is_claim(&entry.path) {
                    self.remove_void_claim(node, &entry.path).await?;
                    continue;
                }
                let clock = entry.path.strip_prefix(CLOCK);
                let object = names::parse_mark(folder, &entry.path)
                    .or_else(|| names::parse_part(&entry.path).map(|part| part.object));
                if clock.is_none() && object.is_none() {
                    continue;
                }
                let modified = match entry.modified {
                    Some(modified) => Some(modified),
                    None => storage.stat(&entry.path).await?.and_then(|stat| stat.modified),
                };
                let age = now.zip(modified).and_then(|(now, then)| now.duration_since(then).ok());
                files.extend(object.map(|object| (object, age)));
                let is_old = age.is_some_and(|age| age > ORPHAN_AGE);
                if clock.is_some_and(|name| is_old || is_abandoned(name)) {
                    storage.delete(&entry.path).await?;
                }
            }
        }
        // After the heartbeats: a put deletes its own once its manifests are written.
        let manifests = self.list_node(node, MANIFESTS).await?.into_iter();
        let manifests = manifests.map(|(_, listed)| listed.version.object).collect();
        Ok(NodeHoldings { node, manifests, files })
    }

    /// Removes the claim of a process that was killed after it had promoted the object: nobody
    /// claims that object again.
    async fn remove_void_claim(&self, node: NodeIndex, path: &str) -> Result<()> {
        let storage = self.node(node);
        match storage.read(path, None).await {
            Ok(text) if claim::is_void(&String::from_utf8_lossy(&text)) => {
                storage.delete(path).await
            }
            // It was released meanwhile, or cannot be read now.
            _ => Ok(()),
        }
    }

    /// Returns the time by a node's own clock, from which the ages of its files are computed.
    async fn clock_of(&self, node: NodeIndex) -> Result<Option<SystemTime>> {
        let storage = self.node(node);
        let path = format!("{CLOCK}{}", passing_name()?);
        storage.write(&path, "clock\n".into(), crate::node::Mode::Replace).await?;
        let stat = storage.stat(&path).await;
        storage.delete(&path).await?;
        Ok(stat?.and_then(|stat| stat.modified))
    }
}

/// Beginning of the paths of files by whose time a client reads a node's clock. It removes them at
/// once; those of a client that was killed are removed by the next one of the same machine.
const CLOCK: &str = "running/clock-";

/// The age from which an unfinished file is removed.
const ORPHAN_AGE: Duration = Duration::from_secs(24 * 3600);

/// Everything that a node has.
struct NodeHoldings {
    node: NodeIndex,
    manifests: Vec<ObjectId>,
    /// The objects of all other files, with the files' ages.
    files: Vec<(ObjectId, Option<Duration>)>,
}

/// All versions that any node has.
#[derive(Debug, Default)]
pub(crate) struct Versions {
    /// For each name, its versions, each with the number of nodes that have it and are not drained.
    pub names: BTreeMap<ObjectName, BTreeMap<Listed, usize>>,
    pub answered: usize,
    pub flaws: Vec<Flaw>,
}

impl Versions {
    /// Takes in a version that a node has, if its name begins with `prefix`.
    fn add(&mut self, prefix: &str, name: ObjectName, listed: Listed, counts: bool) {
        if name.as_str().starts_with(prefix) {
            let versions = self.names.entry(name).or_default();
            *versions.entry(listed).or_default() += usize::from(counts);
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::node::{Endpoint, Mode, Node};
    use crate::placement::Member;
    use crate::volume::Setup;

    /// Returns a volume of three nodes in memory, and one of the nodes.
    async fn volume() -> (Volume, Arc<dyn Node>) {
        let node = |number: usize| {
            let name = format!("n{number}");
            let node: Arc<dyn Node> = Arc::new(Endpoint::memory(&name).unwrap());
            (Member { domain: name.clone(), name, is_drained: false }, node)
        };
        let nodes: Vec<_> = (0..3).map(node).collect();
        let store = Arc::clone(&nodes[1].1);
        let code = paritas::Code::new(&"2+1".parse().unwrap()).unwrap();
        let volume = Volume::new(Setup::new("0".repeat(32), code, nodes)).unwrap();
        volume.mark_nodes().await.unwrap();
        (volume, store)
    }

    /// A client that is killed while it reads a node's clock leaves a file there.
    #[tokio::test]
    async fn clocks_of_killed_clients_are_removed() {
        let (volume, store) = volume().await;
        let mine = passing_name().unwrap();
        // The same process number, of a process that began at another time.
        let [machine, process, _, number] = mine.split('-').collect::<Vec<_>>().try_into().unwrap();
        let killed = format!("{CLOCK}{machine}-{process}-1-{number}");
        let (mine, foreign) = (format!("{CLOCK}{mine}"), format!("{CLOCK}{}", "0".repeat(16)));
        for path in [&mine, &killed, &foreign] {
            store.write(path, "clock\n".into(), Mode::Replace).await.unwrap();
        }
        assert_eq!(volume.collect().await.unwrap(), 0);
        let mut left: Vec<String> =
            store.list(names::RUNNING).map(|it| it.unwrap().path).collect().await;
        left.sort();
        let mut expected = [mine, foreign];
        expected.sort();
        assert_eq!(left, expected);
    }

    /// A process that is killed after it has promoted an object leaves its claim, and nobody claims
    /// that object again.
    #[tokio::test]
    async fn claims_of_killed_processes_are_removed() {
        let (volume, store) = volume().await;
        let tag = crate::process::tag().unwrap();
        let (rest, _) = tag.rsplit_once('-').unwrap();
        let now = crate::clock::now();
        let texts = [
            (1, format!("{now} {} {rest}-1\n", "a".repeat(32)), false),
            (2, format!("{now} {} {tag}\n", "b".repeat(32)), true),
            (3, format!("{} {}\n", now - 86_400, "c".repeat(32)), false),
            (4, format!("{now} {}\n", "d".repeat(32)), true),
        ];
        let place = |number| names::claim(ObjectId::new([number; 16]));
        for (number, text, _) in &texts {
            store.write(&place(*number), text.clone().into(), Mode::Replace).await.unwrap();
        }
        assert_eq!(volume.collect().await.unwrap(), 0);
        for (number, text, stays) in &texts {
            assert_eq!(store.read(&place(*number), None).await.is_ok(), *stays, "{text}");
        }
    }
}
