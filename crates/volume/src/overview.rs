//! What one listing of all nodes shows of many names.

use std::collections::BTreeMap;
use std::time::Duration;

use paritas_store::error::{Error, Result};

use crate::clock::Since;
use crate::cluster::Cluster;
use crate::find::FindJob;
use crate::flaw::Flaw;
use crate::found::FoundObject;
use crate::list::{ListJob, Versions};
use crate::names::ObjectName;
use crate::protocol::{Listed, NodeIndex, Quorum, VersionKind};

/// Age from which an overview is too old for puts. A put takes its generation from the overview and
/// from the time of day. So the age matters only where clocks differ: it decides which of two puts
/// that overlap counts.
const OVERVIEW_LASTS: Duration = Duration::from_secs(3600);

/// The versions that one listing of all nodes shows of many names. Objects that are found,
/// verified or put by it do not have to be looked for on every node again.
#[derive(Debug)]
pub struct Overview {
    pub(crate) versions: Versions,
    prefix: String,
    begun: Since,
}

impl Default for Overview {
    /// Returns an overview that shows nothing.
    fn default() -> Self {
        Self { versions: Versions::default(), prefix: String::new(), begun: Since::now() }
    }
}

impl Overview {
    pub(crate) async fn of(job: ListJob<'_>) -> Result<Self> {
        let begun = Since::now();
        let (versions, prefix) = (job.versions().await?, job.prefix().to_owned());
        Ok(Self { versions, prefix, begun })
    }

    /// Returns the versions of a name that a node has, for a put that began before the overview.
    /// Returns `None` if the node did not answer, if the overview does not show such names, or if
    /// it is too old.
    pub(crate) fn on(&self, node: NodeIndex, name: &ObjectName) -> Option<Vec<Listed>> {
        let shows = name.as_str().starts_with(&self.prefix);
        let is_young = self.begun.elapsed() < OVERVIEW_LASTS;
        (shows && is_young).then(|| self.versions.on(node, name)).flatten()
    }

    /// Returns the objects, each with its newest version.
    pub fn objects(&self) -> impl Iterator<Item = (&ObjectName, Listed)> {
        self.versions.objects(&self.prefix)
    }

    /// Returns the names whose newest version is the mark of a removal.
    pub fn removed(&self) -> impl Iterator<Item = &ObjectName> {
        let is_removed = |versions: &BTreeMap<Listed, _>| {
            let newest = versions.last_key_value().map(|(listed, _)| listed.kind);
            newest == Some(VersionKind::Removed)
        };
        let names = self.versions.names.iter();
        names.filter(move |(_, versions)| is_removed(versions)).map(|(name, _)| name)
    }

    /// Returns the newest version of a name and the nodes that have it, if it is an object and
    /// settled: a reader at the time of the overview finds it, too.
    pub(crate) fn settled(
        &self,
        quorum: Quorum,
        name: &ObjectName,
    ) -> Option<(Listed, &[NodeIndex])> {
        let (&listed, nodes) = self.versions.names.get(name)?.last_key_value()?;
        let holders = nodes.iter().filter(|&&node| quorum.counts(node)).count();
        let is_settled = listed.kind == VersionKind::Put && holders >= quorum.to_write();
        is_settled.then_some((listed, nodes))
    }

    /// Finds an object as a reader did at the time of the overview. That costs one request if the
    /// overview shows the object settled and it was not replaced since. Otherwise all nodes are
    /// asked.
    ///
    /// # Errors
    /// As [`FindJob::run`].
    pub(crate) async fn find(&self, cluster: &Cluster, name: &ObjectName) -> Result<FoundObject> {
        let job = || FindJob::of(cluster, name);
        if let Some((listed, nodes)) = self.settled(cluster.quorum, name)
            && let Some(found) = job().listed(listed, nodes).await
        {
            return Ok(found);
        }
        job().run().await
    }

    /// Returns the flaws of the nodes that did not answer.
    pub fn flaws(&self) -> &[Flaw] {
        &self.versions.flaws
    }

    /// Returns an error for each object or mark whose name cannot be told, because its path
    /// shortens the name and no manifest there can be read. It is lost
    /// ([`crate::ErrorKind::TooFewShards`]), or nodes that do not answer may have it
    /// ([`crate::ErrorKind::TooFewNodes`]).
    pub fn nameless(&self) -> impl Iterator<Item = Error> {
        self.versions.unnamed()
    }
}
