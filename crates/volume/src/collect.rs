//! Removing what interrupted puts and killed processes left on the nodes.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use futures::future::join_all;
use futures::stream::StreamExt;
use paritas_shards::ObjectId;
use paritas_store::error::{ErrorKind, Result};

use crate::claim;
use crate::cluster::Cluster;
use crate::files::delete_object;
use crate::hints::FolderHints;
use crate::list::manifests;
use crate::members::{CLOCK, ClusterNode};
use crate::names::{self, BACKLOG, LOST, MANIFESTS, OBJECTS, OBJECTS_2, OWED};
use crate::node::{Entry, Node, is_abandoned};
use crate::outside::block;
use crate::protocol::{Census, NodeIndex};
use crate::unfinished::of_the_past;
use crate::upload::UploadsJob;

/// The age from which an unfinished file is removed.
const ORPHAN_AGE: Duration = Duration::from_secs(24 * 3600);

/// Removes what interrupted puts left behind.
pub(crate) struct CollectJob<'a> {
    pub cluster: &'a Cluster,
}

/// Everything that a node has.
struct NodeHoldings {
    manifests: Vec<ObjectId>,
    /// The objects of all other files, with the files' ages.
    files: Vec<(ObjectId, Option<Duration>)>,
    /// The objects that are said to be owed or lost.
    hints: Vec<ObjectId>,
}

impl CollectJob<'_> {
    /// Returns the number of objects and of uploads that were removed.
    pub async fn run(self) -> Result<usize> {
        let cluster = self.cluster;
        let mut census = Census::new(cluster.quorum);
        // Read before the nodes are listed, so that records of later puts are ignored.
        let id = cluster.setup.id.clone();
        let records = block("reading records", move || of_the_past(&id)).await?;
        records.iter().for_each(|(object, _)| census.given_up(*object));
        let holdings = join_all(ClusterNode::all(cluster).map(count_on)).await;
        let (mut listed, mut named) = (Vec::new(), BTreeSet::new());
        let mut hints = BTreeSet::new();
        for (node, found) in cluster.nodes().zip(holdings) {
            // A node that does not answer is missing from the census, and then the census finds no
            // orphans by age.
            let Ok(found) = found else { continue };
            found.manifests.iter().for_each(|&object| census.manifest(object));
            named.extend(found.manifests);
            hints.extend(found.hints);
            found.files.into_iter().for_each(|(object, age)| census.file(object, age));
            census.listed(node);
            listed.push(node);
        }
        let orphans: Vec<ObjectId> = census.orphans().collect();
        let mut deleted = Ok(());
        for &orphan in &orphans {
            for objects in [OBJECTS, OBJECTS_2] {
                let folder = names::object_folder(objects, orphan);
                let delete = |&node| delete_object(&**cluster.node(node), orphan, &folder);
                // One node that refuses keeps no other from it.
                let done = join_all(listed.iter().map(delete)).await;
                deleted = done.into_iter().fold(deleted, Result::and);
            }
        }
        if census.is_complete() {
            self.forget(hints.difference(&named).copied().collect()).await;
        }
        if census.is_complete() && deleted.is_ok() {
            // A record that cannot be removed does no harm, because its object is gone.
            records.into_iter().for_each(|(_, record)| _ = record.end());
        }
        let uploads = match (UploadsJob { cluster }).collect().await {
            Err(error) if error.kind() == ErrorKind::TooFewNodes => Ok(0),
            collected => collected,
        };
        deleted.and(uploads).map(|uploads| orphans.len() + uploads)
    }

    /// Removes the hints about objects that no manifest names: their names mean other objects by
    /// now, or none. A hint is younger than the manifests of its object. So if one was seen,
    /// whatever names its object now is listed after that.
    async fn forget(&self, mut stale: BTreeSet<ObjectId>) {
        if stale.is_empty() {
            return;
        }
        let cluster = self.cluster;
        for list in join_all(cluster.nodes().map(|node| listed_objects(cluster, node))).await {
            let Ok(list) = list else { return };
            list.iter().for_each(|object| _ = stale.remove(object));
        }
        for object in stale {
            FolderHints::owed(cluster).remove(object).await;
            FolderHints::lost(cluster).remove(object).await;
        }
    }
}

/// Lists all files of a node, and removes what killed writers left there.
async fn count_on(node: ClusterNode<'_>) -> Result<NodeHoldings> {
    node.cluster.expect_ready(node.node).await?;
    let storage = &**node.storage();
    storage.sweep(ORPHAN_AGE).await?;
    let now = node.clock().await?;
    let (mut files, mut hints) = (Vec::new(), Vec::new());
    for folder in [OBJECTS, OBJECTS_2, names::RUNNING, OWED, LOST, BACKLOG] {
        let mut entries = storage.list(folder);
        while let Some(entry) = entries.next().await {
            let entry = entry?;
            if names::is_claim(&entry.path) {
                remove_void_claim(storage, &entry.path).await?;
                continue;
            }
            let clock = entry.path.strip_prefix(CLOCK);
            let object = names::parse_mark(folder, &entry.path)
                .or_else(|| names::parse_part(&entry.path).map(|part| part.object));
            if clock.is_none() && object.is_none() {
                continue;
            }
            let modified = modified(storage, &entry).await?;
            let age = now.zip(modified).and_then(|(now, then)| now.duration_since(then).ok());
            files.extend(object.map(|object| (object, age)));
            hints.extend(object.filter(|_| [OWED, LOST].contains(&folder)));
            let is_old = age.is_some_and(|age| age > ORPHAN_AGE);
            if clock.is_some_and(|name| is_old || is_abandoned(name)) {
                storage.delete(&entry.path).await?;
            }
        }
    }
    // Listed after the heartbeats, because a put deletes its heartbeat only once its manifests are
    // written.
    let manifests = listed_objects(node.cluster, node.node).await?;
    Ok(NodeHoldings { manifests, files, hints })
}

/// Returns the objects that a node's manifests name.
async fn listed_objects(cluster: &Cluster, node: NodeIndex) -> Result<Vec<ObjectId>> {
    manifests(cluster, node, MANIFESTS, usize::MAX, |(_, listed)| listed.version.object).await
}

/// Returns when a file was written.
async fn modified(storage: &dyn Node, entry: &Entry) -> Result<Option<SystemTime>> {
    match entry.modified {
        Some(modified) => Ok(Some(modified)),
        None => Ok(storage.stat(&entry.path).await?.and_then(|stat| stat.modified)),
    }
}

/// Removes the claim of a process that was killed after it had promoted the object. No other
/// process claims that object again.
async fn remove_void_claim(storage: &dyn Node, path: &str) -> Result<()> {
    match storage.read(path, None).await {
        Ok(text) if claim::is_void(&String::from_utf8_lossy(&text)) => storage.delete(path).await,
        // The claim was released meanwhile, or cannot be read now.
        _ => Ok(()),
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::node::{Endpoint, Mode, passing_name};
    use crate::placement::Member;
    use crate::setup::Setup;
    use crate::volume::Volume;

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
