//! A volume in use: the handle, with a verb for each thing that is done with it. Each verb runs a
//! job that has a file of its own.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::future::join_all;
use paritas::{Code, CodecOptions, Spec};
use paritas_shards::FileTarget;
use paritas_store::error::{ErrorKind, Result};
use paritas_store::place::source::SteadyFile;

use crate::claim::Claim;
use crate::cluster::Cluster;
use crate::collect::CollectJob;
use crate::config::Config;
use crate::files::NameFiles;
use crate::find::FindJob;
use crate::found::{FoundObject, GetOptions};
use crate::get::{PieceSink, ReadJob};
use crate::hints::FolderHints;
use crate::list::{self, ListJob, Listing};
use crate::manifest::Notes;
use crate::marks::NodeTrouble;
use crate::members::ClusterNode;
use crate::names::{self, ObjectName};
use crate::node::Probe;
use crate::open::{self, OpenedFile};
use crate::outside::block;
use crate::overview::Overview;
use crate::placement::Member;
use crate::plain::{self, Pattern, PlainFiles};
use crate::promote::{Repaired, promote};
use crate::protocol::{Expected, Listed};
use crate::put::{PutJob, PutOptions, PutReport, RemoveJob, RemoveReport, exists};
use crate::reencode::{ReencodeJob, Reencoded, renote};
use crate::repair::NameRepair;
use crate::replace::{FillJob, Filled};
use crate::resume::{PIECE_BYTES, PiecewisePut, ResumeJob};
use crate::scrub::{Cursor, Scrub, ScrubStatus};
use crate::setup::{Rate, Setup};
use crate::status::{StatusJob, VolumeStatus};
use crate::upload::{Upload, UploadsJob};
use crate::verify::{Verdict, VerifyJob, most_urgent_first};

/// Largest number of files that a node may list, for each name that it would otherwise be asked
/// about. Listing one more folder takes as long as listing some hundred files of a folder.
const LISTED_FOR_ONE: usize = 100;

/// How often the volume file is looked at.
const LOOK_AT_FILE: Duration = Duration::from_secs(5);

/// A volume in use.
#[derive(Debug)]
pub struct Volume {
    pub(crate) cluster: Cluster,
    /// The volume file, if it was opened from one.
    pub(crate) file: Option<OpenedFile>,
}

impl Volume {
    /// Prepares a volume.
    ///
    /// # Errors
    /// If the code or the list of nodes cannot be used ([`ErrorKind::Parameters`]).
    pub fn new(setup: Setup) -> Result<Self> {
        Ok(Self { cluster: Cluster::new(setup)?, file: None })
    }

    /// Opens the volume that a volume file describes. The code is run with the options that
    /// `options` returns for it. No node is asked for anything yet.
    ///
    /// # Errors
    /// If the file cannot be read or says something impossible, or if a node's URI or credentials
    /// cannot be used.
    pub fn open(path: &Path, options: impl Fn(&Spec) -> CodecOptions) -> Result<Self> {
        let (setup, file) = open::read(path, options)?;
        let volume = Self::new(setup).map_err(|error| file.named_in(error))?;
        Ok(Self { file: Some(file), ..volume })
    }

    /// Opens the volume that `config` describes. Relative folders are relative to `base`, the
    /// folder of the volume file.
    ///
    /// # Errors
    /// If the configuration says something impossible, or if a node's URI or credentials cannot be
    /// used.
    pub fn of(
        config: &Config,
        base: &Path,
        options: impl Fn(&Spec) -> CodecOptions,
    ) -> Result<Self> {
        Self::new(config.open(base, options)?)
    }

    /// Limits the load on nodes, for work in the background: at most `rate` bytes a second for each
    /// node in each direction. If `rate` is `None`, the rate of the setup applies.
    pub fn in_background(mut self, rate: Option<Rate>) -> Self {
        let limit = rate.map_or(self.cluster.setup.background_rate, |Rate(rate)| rate);
        limit.into_iter().for_each(|limit| self.cluster.limit(limit));
        self
    }

    /// Tells `progress` of the bytes of objects as they are verified, repaired and promoted: how
    /// many more of an object's bytes are done. An object that is both read completely and repaired
    /// counts twice. An object for which little has to be done may not be reported at all.
    pub fn watch(&mut self, progress: impl Fn(&ObjectName, u64) + Send + Sync + 'static) {
        self.cluster.watch(progress);
    }

    /// Returns the code.
    pub fn code(&self) -> &Code {
        &self.cluster.setup.code
    }

    /// Returns the most bytes of memory that one put or get takes (`limits.memory`).
    pub fn memory(&self) -> usize {
        self.cluster.setup.settings.memory
    }

    /// Returns the most bytes of an object that is kept in its manifests (`write.inline`).
    pub fn inline_bytes(&self) -> usize {
        self.cluster.setup.inline_bytes
    }

    /// Returns the nodes' names, failure domains and states: in the order of the volume file, but
    /// drained ones last.
    pub fn members(&self) -> &[Member] {
        self.cluster.members.as_slice()
    }

    /// Returns the folders of this machine that are nodes of the volume file, without links and
    /// `..` in their paths. A volume that was not opened from a volume file has none.
    pub fn node_folders(&self) -> Vec<PathBuf> {
        self.file.as_ref().map(OpenedFile::folders).unwrap_or_default()
    }

    /// Returns the number of nodes.
    pub fn node_count(&self) -> usize {
        self.cluster.quorum.nodes()
    }

    /// Returns the nodes that could not be used when they were last looked at, and why.
    pub fn troubles(&self) -> Vec<(&Member, NodeTrouble)> {
        self.cluster.troubles()
    }

    /// Returns the number of nodes that may be lost, whichever they are.
    pub fn tolerance(&self) -> usize {
        self.cluster.tolerance()
    }

    /// Returns the number of nodes that may be lost, whichever they are, before an object is
    /// promoted. It is [`Self::tolerance`] if the code has one stage.
    pub fn tolerance_before_promotion(&self) -> usize {
        self.cluster.tolerance_before_promotion()
    }

    /// Writes an object. When this returns, the object is durable, and every reader finds it. If it
    /// replaces an object in pieces, the pieces are removed; what cannot be removed at once is left
    /// to [`Self::collect_uploads`].
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
        names::expect_free(name)?;
        let report = PutJob::new(&self.cluster, name, options)?.run(source).await?;
        self.all_uploads().clear(&report.replaced).await;
        Ok(report)
    }

    /// Writes a file as an object in pieces. If that is interrupted, the next such put of the same
    /// name keeps the pieces that are stored and have the bytes of the file.
    ///
    /// # Errors
    /// As [`Volume::put`], and if the file changes meanwhile ([`ErrorKind::Io`]).
    pub async fn put_in_pieces(
        &self,
        name: &ObjectName,
        file: SteadyFile,
        options: PutOptions,
    ) -> Result<PiecewisePut> {
        names::expect_free(name)?;
        let cluster = &self.cluster;
        let job = ResumeJob { cluster, name, file, piece_bytes: PIECE_BYTES, options };
        let done = job.run().await?;
        self.all_uploads().clear(&done.report.replaced).await;
        Ok(done)
    }

    /// Finds an object.
    ///
    /// # Errors
    /// If there is no such object ([`ErrorKind::NotFound`]), or if too few nodes answered to be
    /// sure which version is the newest ([`ErrorKind::TooFewNodes`]).
    pub async fn find(&self, name: &ObjectName, options: GetOptions) -> Result<FoundObject> {
        FindJob { options, ..FindJob::of(&self.cluster, name) }.run().await
    }

    /// Checks that a name has no object, before a put that expects none ([`Expected::Nothing`])
    /// reads its source.
    ///
    /// # Errors
    /// If there is one ([`ErrorKind::Exists`]), or as [`Volume::find`].
    pub async fn expect_absent(&self, name: &ObjectName) -> Result<()> {
        match self.find(name, GetOptions::default()).await {
            Ok(_) => Err(exists(name)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Writes an object's bytes in `range` to `sink`, all of them if `range` is `None`. If all of
    /// them are wanted, the digest is checked in the end. Returns what was read.
    ///
    /// # Errors
    /// As [`Volume::find`]; if too many shards are lost ([`ErrorKind::TooFewShards`]), if the bytes
    /// differ from the written ones ([`ErrorKind::DigestMismatch`]), if the range is beyond the
    /// object ([`ErrorKind::Parameters`]), or if `sink` refuses bytes ([`ErrorKind::Io`]).
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
        ReadJob { cluster: &self.cluster, object, progress }.run(range, sink).await
    }

    /// Hands over the bytes of an object that was found, as [`Volume::read`] writes them.
    ///
    /// # Errors
    /// As [`Volume::get`].
    pub async fn read_to_sink(
        &self,
        object: FoundObject,
        range: Option<Range<u64>>,
        sink: &mut dyn PieceSink,
    ) -> Result<FoundObject> {
        ReadJob { cluster: &self.cluster, object, progress: &|_| {} }.run_to_sink(range, sink).await
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
        ReadJob { cluster: &self.cluster, object, progress }.run_to_file(target).await
    }

    /// Removes an object, and its pieces as [`Self::put`] does. From then on, the name has no
    /// content.
    ///
    /// # Errors
    /// If there is no such object ([`ErrorKind::NotFound`]), if too few nodes take part
    /// ([`ErrorKind::TooFewNodes`]), or if the name is one of the volume's own
    /// ([`ErrorKind::Parameters`]).
    pub async fn remove(&self, name: &ObjectName) -> Result<RemoveReport> {
        self.remove_if(name, Expected::Anything).await
    }

    /// Removes an object as [`Volume::remove`], if the name has what is expected.
    ///
    /// # Errors
    /// As [`Volume::remove`], and if the name has something else ([`ErrorKind::Busy`]).
    pub async fn remove_if(&self, name: &ObjectName, expected: Expected) -> Result<RemoveReport> {
        names::expect_free(name)?;
        let job = RemoveJob { cluster: &self.cluster, name, expected };
        let (report, replaced) = job.run().await?;
        self.all_uploads().clear(&replaced).await;
        Ok(report)
    }

    /// Cuts an object, or its pieces, by the volume's code, if it has another. Mode and time stay.
    /// Readers find the object at any moment; if somebody replaces or removes it meanwhile, that
    /// counts.
    ///
    /// # Errors
    /// As [`Volume::get`] and [`Volume::put`]; if the object was replaced or removed meanwhile
    /// ([`ErrorKind::Busy`]).
    pub async fn reencode(&self, name: &ObjectName) -> Result<Reencoded> {
        ReencodeJob { cluster: &self.cluster, name }.run().await
    }

    /// Gives an object other notes. Bytes, mode and time stay. `created` is when it counts as
    /// written, in seconds since the beginning of 1970, if that is not now. If somebody replaces or
    /// removes the object meanwhile, that counts.
    ///
    /// # Errors
    /// If the notes have more than 32 KiB together ([`ErrorKind::Parameters`]), and as
    /// [`Volume::reencode`].
    pub async fn renote(
        &self,
        object: FoundObject,
        notes: &Notes,
        created: Option<u64>,
    ) -> Result<PutReport> {
        renote(&self.cluster, object, notes, created).await
    }

    /// Lists the objects whose names begin with `prefix`, all of them if it is empty. The volume's
    /// own objects, such as pieces, are shown only if `prefix` asks for them.
    ///
    /// # Errors
    /// If too few nodes answered to be sure of what there is ([`ErrorKind::TooFewNodes`]).
    pub async fn list(&self, prefix: &str) -> Result<Listing> {
        self.list_with(prefix, GetOptions::default()).await
    }

    /// Returns the version of an object whose name begins with `prefix`, other than `except`, if
    /// there is one. This mostly takes a few requests, however many objects there are.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub async fn any(&self, prefix: &str, except: Option<&ObjectName>) -> Result<Option<Listed>> {
        ListJob::of(&self.cluster, prefix).any(except).await
    }

    /// Returns the first components of all names with several, such as `photos` of
    /// `photos/2005/a.jpg`. Some may have no object any more, which [`Self::any`] tells. This takes
    /// one request of each node, however many objects there are. Components of more than 66
    /// bytes may be left out, because paths on nodes have digests of them.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub async fn first_folders(&self) -> Result<BTreeSet<String>> {
        list::first_folders(&self.cluster).await
    }

    /// Lists objects as [`Self::list`] does. If `options` allow stale results, too few answers are
    /// accepted: then objects may be missing, and others may have been removed or replaced.
    ///
    /// # Errors
    /// As [`Self::list`]; if no node answered ([`ErrorKind::TooFewNodes`]).
    pub async fn list_with(&self, prefix: &str, options: GetOptions) -> Result<Listing> {
        ListJob::of(&self.cluster, prefix).run(options).await
    }

    /// Looks for all parts and manifests of an object, and for those of its pieces, if it is in
    /// pieces. If `is_deep`, every block of the parts and every manifest is read and checked;
    /// otherwise only the lengths of parts are looked at.
    ///
    /// # Errors
    /// As [`Volume::find`]; if others keep replacing the object ([`ErrorKind::Busy`]); if too few
    /// shards are whole, and reading block by block takes more memory than is allowed
    /// ([`ErrorKind::Memory`]).
    pub async fn verify(&self, name: &ObjectName, is_deep: bool) -> Result<Verdict> {
        VerifyJob { cluster: &self.cluster, name, is_deep, overview: None }.run().await
    }

    /// Finds an object as [`Volume::find`] does at the time of the overview. That costs one request
    /// if the overview shows the object settled and it was not replaced since. Otherwise all nodes
    /// are asked.
    ///
    /// # Errors
    /// As [`Volume::find`].
    pub async fn find_by(&self, overview: &Overview, name: &ObjectName) -> Result<FoundObject> {
        overview.find(&self.cluster, name).await
    }

    /// Lists all nodes once, to find or verify many objects by what they show.
    ///
    /// # Errors
    /// As [`Volume::list`].
    pub async fn overview(&self, prefix: &str) -> Result<Overview> {
        Overview::of(ListJob::of(&self.cluster, prefix)).await
    }

    /// Lists all nodes once, to put `count` objects by what they show ([`PutOptions::overview`]).
    /// Returns `None` if asking the nodes for each name is the better way: if too few nodes answer,
    /// or if they have many more objects whose names begin with `prefix`.
    pub async fn overview_to_put(&self, prefix: &str, count: usize) -> Option<Overview> {
        let most = count.saturating_mul(LISTED_FOR_ONE);
        Overview::of(ListJob::of(&self.cluster, prefix).of_at_most(most)).await.ok()
    }

    /// Verifies an object as [`Volume::verify`] does. An object that is intact costs fewer requests
    /// if the overview shows it. Every other one is looked at anew.
    ///
    /// # Errors
    /// As [`Volume::verify`].
    pub async fn verify_by(
        &self,
        overview: &Overview,
        name: &ObjectName,
        is_deep: bool,
    ) -> Result<Verdict> {
        let overview = Some(overview);
        VerifyJob { cluster: &self.cluster, name, is_deep, overview }.run().await
    }

    /// Brings one object into order: every part and every manifest on the nodes where they belong,
    /// older versions removed. If `is_deep`, all blocks and manifests are read first to find
    /// damage. The pieces of an object in pieces are repaired as well.
    ///
    /// # Errors
    /// If too few nodes answered ([`ErrorKind::TooFewNodes`]), if too many shards are lost
    /// ([`ErrorKind::TooFewShards`]), if there is no such object ([`ErrorKind::NotFound`]), or if
    /// others keep replacing it ([`ErrorKind::Busy`]).
    pub async fn repair(&self, name: &ObjectName, is_deep: bool) -> Result<Repaired> {
        let files = NameFiles { cluster: &self.cluster, name };
        NameRepair { files, is_deep }.run_with_pieces().await
    }

    /// Repairs one of all names ([`Self::most_urgent_first`]), as [`Self::repair`] does, but leaves
    /// pieces alone: each of them has a name of its own.
    ///
    /// # Errors
    /// As [`Self::repair`].
    pub async fn repair_one_of_all(&self, name: &ObjectName, is_deep: bool) -> Result<Repaired> {
        NameRepair { files: NameFiles { cluster: &self.cluster, name }, is_deep }.run().await
    }

    /// Returns the names that an overview shows in the order in which they are repaired: the
    /// objects that can lose the fewest further nodes first.
    pub async fn most_urgent_first(&self, overview: &Overview) -> Vec<ObjectName> {
        most_urgent_first(&self.cluster, overview).await
    }

    /// Adds the parts of the last stage of the code of an object, or of its pieces. Parts that are
    /// there already stay.
    ///
    /// Where a node can create a file only if there is none, one process at a time promotes an
    /// object. Elsewhere several processes may do the same work; they write equal bytes.
    ///
    /// # Errors
    /// As [`Volume::find`]; if the object has no later stage ([`ErrorKind::Parameters`]), if
    /// another process promotes it or it was replaced meanwhile ([`ErrorKind::Busy`]), or if the
    /// parts cannot be made or stored.
    pub async fn promote(&self, name: &ObjectName) -> Result<Repaired> {
        promote(NameFiles { cluster: &self.cluster, name }).await
    }

    /// Returns the names that begin with `prefix` of objects that wait for a later stage; those
    /// that have waited longest come first.
    pub async fn backlog(&self, prefix: &str) -> Vec<ObjectName> {
        FolderHints::backlog(&self.cluster).names(prefix).await
    }

    /// Returns the names that begin with `prefix` of objects that repair must still act on; those
    /// that have waited longest come first.
    pub async fn owed(&self, prefix: &str) -> Vec<ObjectName> {
        FolderHints::owed(&self.cluster).names(prefix).await
    }

    /// Returns the names that begin with `prefix` of objects that could not be made whole when they
    /// were last repaired; those that have been known longest come first.
    pub async fn lost(&self, prefix: &str) -> Vec<ObjectName> {
        FolderHints::lost(&self.cluster).names(prefix).await
    }

    /// Runs work that reads all blocks, while no other process does such work.
    ///
    /// # Errors
    /// If another process does ([`ErrorKind::Busy`]).
    pub async fn reading_all_blocks<T>(&self, work: impl Future<Output = T>) -> Result<T> {
        Ok(Claim::of_all_blocks(&self.cluster).await?.hold(work).await)
    }

    /// Begins a scrub, or goes on with one that was interrupted. Only one process at a time should
    /// do that ([`Self::reading_all_blocks`]).
    ///
    /// # Errors
    /// As [`Volume::list`].
    pub async fn scrub(&self) -> Result<Scrub<'_>> {
        Scrub::begin(&self.cluster).await
    }

    /// Returns how far the scrub is, as the nodes that answer know it.
    pub async fn scrub_status(&self) -> ScrubStatus {
        let nodes: Vec<_> = self.cluster.nodes().collect();
        Cursor::newest(&self.cluster, &nodes).await.status
    }

    /// Returns when the volume file lists other nodes than this value uses, because some were
    /// added, drained or removed. A program that lasts should open the volume again then: it does
    /// not ask new nodes, and cannot read what has moved to them. The file is looked at every few
    /// seconds. A volume without a file has the same nodes for ever.
    pub async fn until_other_nodes(&self) {
        let Some(file) = self.file.clone() else { return std::future::pending().await };
        loop {
            tokio::time::sleep(LOOK_AT_FILE).await;
            let opened = file.clone();
            let look = block("reading the volume file", move || opened.has_other_nodes());
            if look.await.is_ok_and(|has_other_nodes| has_other_nodes) {
                return;
            }
        }
    }

    /// Returns the state of the nodes, and what waits to be done.
    ///
    /// # Errors
    /// If no node can be read.
    pub async fn status(&self) -> Result<VolumeStatus> {
        StatusJob { cluster: &self.cluster }.run().await
    }

    /// Removes what interrupted puts left behind: the objects that no manifest names, and whose put
    /// was on this machine and its process is over, or that are older than a day. Then collects the
    /// uploads, as [`Self::collect_uploads`] does. Returns the number of objects and of uploads
    /// that were removed. While any node does not answer, objects of other machines' puts are kept,
    /// because that node may have their manifests.
    ///
    /// # Errors
    /// If an object cannot be deleted ([`ErrorKind::Io`]); as [`Self::collect_uploads`].
    pub async fn collect(&self) -> Result<usize> {
        CollectJob { cluster: &self.cluster }.run().await
    }

    /// Begins an upload. `notes` are kept for the object.
    ///
    /// # Errors
    /// As [`Volume::put`].
    pub async fn begin_upload(&self, name: &ObjectName, notes: Notes) -> Result<Upload<'_>> {
        self.all_uploads().begin(name, notes).await
    }

    /// Finds an upload by its id.
    ///
    /// # Errors
    /// If no such upload exists, or it no longer exists ([`ErrorKind::NotFound`]); as
    /// [`Volume::find`].
    pub async fn find_upload(&self, id: &str) -> Result<Upload<'_>> {
        self.all_uploads().find(id).await
    }

    /// Returns the uploads that are not complete, in the order of their ids.
    ///
    /// # Errors
    /// As [`Volume::list`] and [`Volume::find`].
    pub async fn uploads(&self) -> Result<Vec<Upload<'_>>> {
        self.all_uploads().all().await
    }

    /// Gives up the uploads whose objects were replaced or removed, or at which nothing happened
    /// for a week. Returns the number of those whose pieces were removed. [`Self::collect`] does
    /// this, too.
    ///
    /// # Errors
    /// As [`Volume::list`], [`Volume::find`] and [`Volume::remove`].
    pub async fn collect_uploads(&self) -> Result<usize> {
        self.all_uploads().collect().await
    }

    /// Gives a new, empty node in the place of a lost one the manifests that it should have, and
    /// then the volume's mark. Its shards are made by repairing all objects. If this is
    /// interrupted, it can be done again.
    ///
    /// # Errors
    /// If there is no such node ([`ErrorKind::Parameters`]), if it has other files
    /// ([`ErrorKind::Exists`]), or if too few of the other nodes answered to be sure what it should
    /// have ([`ErrorKind::TooFewNodes`]).
    pub async fn fill(&self, name: &str) -> Result<Filled> {
        let ClusterNode { cluster, node } = self.node(name)?;
        FillJob { cluster, node }.run().await
    }

    /// Finds out what one node can do. See [`crate::node::probe`].
    ///
    /// # Errors
    /// If there is no such node ([`ErrorKind::Parameters`]), if it does not answer, or if it loses
    /// or changes what was written.
    pub async fn probe_node(&self, name: &str) -> Result<Probe> {
        self.node(name)?.probe().await
    }

    /// Finds out what each node can do, in the order of the nodes. See [`crate::node::probe`].
    ///
    /// # Errors
    /// If a node does not answer, or if it loses or changes what was written.
    pub async fn probe_nodes(&self) -> Result<Vec<Probe>> {
        // Each probe runs to its end, because it removes its files there.
        let nodes = ClusterNode::all(&self.cluster);
        join_all(nodes.map(ClusterNode::probe)).await.into_iter().collect()
    }

    /// Checks that a node that is to join the volume has no file but a mark, before anything is
    /// written there. What an interrupted [`Self::probe_node`] left is removed.
    ///
    /// # Errors
    /// If there is no such node ([`ErrorKind::Parameters`]), if it has other files
    /// ([`ErrorKind::Exists`]), or if it does not answer.
    pub async fn expect_empty_node(&self, name: &str) -> Result<()> {
        self.node(name)?.expect_empty().await
    }

    /// Checks that all nodes are empty, before anything is written there. What an interrupted
    /// [`Self::probe_nodes`] left is removed.
    ///
    /// # Errors
    /// If a node does not answer, or if it has files ([`ErrorKind::Exists`]).
    pub(crate) async fn expect_empty_nodes(&self) -> Result<()> {
        let nodes = ClusterNode::all(&self.cluster);
        join_all(nodes.map(ClusterNode::expect_no_file)).await.into_iter().collect()
    }

    /// Marks all nodes as nodes of this volume. Nodes that bear the mark already stay as they are.
    /// [`Volume::expect_no_lost_node`] finds nodes that must not be marked.
    ///
    /// # Errors
    /// If a node cannot be written to, belongs to another volume, or is not empty.
    pub async fn mark_nodes(&self) -> Result<()> {
        // One after the other: if two nodes are one place, the second has the mark of the first.
        for node in ClusterNode::all(&self.cluster) {
            node.mark().await?;
        }
        Ok(())
    }

    /// Checks that no node lacks the mark while nodes that bear it have objects. Such a node has
    /// lost its own: with a mark it would count as one on which nothing is missing, and a read
    /// could take an old version for the newest. A drained node vouches for nothing.
    ///
    /// # Errors
    /// If there is such a node ([`ErrorKind::Exists`]), or if a node does not answer.
    pub async fn expect_no_lost_node(&self) -> Result<()> {
        let (mut unmarked, mut in_use) = (None, None);
        for node in ClusterNode::all(&self.cluster) {
            match node.is_marked().await? {
                false if node.counts() => unmarked = unmarked.or(Some(node)),
                true if in_use.is_none() && node.has_objects().await? => in_use = Some(node),
                _ => {}
            }
        }
        match (unmarked, in_use) {
            (Some(lost), Some(used)) => Err(lost.has_lost_files(used)),
            _ => Ok(()),
        }
    }

    /// Marks a node that joins the volume. It must be empty, but for its mark: what an earlier
    /// node of this name left there could bring removed objects back.
    ///
    /// # Errors
    /// If there is no such node ([`ErrorKind::Parameters`]), if it has other files or another mark
    /// ([`ErrorKind::Exists`]), or if it cannot be written to.
    pub async fn mark_new_node(&self, name: &str) -> Result<()> {
        self.node(name)?.mark_new().await
    }

    /// Returns the number of shards that a node holds.
    ///
    /// # Errors
    /// If there is no such node ([`ErrorKind::Parameters`]), or if it does not answer.
    pub async fn shards_on(&self, name: &str) -> Result<usize> {
        self.node(name)?.shards().await
    }

    /// Returns the number of files of an object that has reached a stage of the code, from 1.
    pub fn shards_at(&self, stage: u8) -> usize {
        plain::shards_at(self.code(), stage)
    }

    /// Returns the number of files of the first stage whose bytes together equal the object's
    /// length.
    pub fn shards_needed(&self) -> usize {
        plain::shards_needed(self.code())
    }

    /// Prepares `count` files of `bytes` bytes each, on the nodes that would have the shards of an
    /// object. Nothing is written yet.
    ///
    /// # Errors
    /// If the system has no random numbers ([`ErrorKind::Io`]).
    pub fn plain_files(&self, count: usize, bytes: u64, pattern: &Pattern) -> Result<PlainFiles> {
        PlainFiles::new(&self.cluster, count, bytes, pattern)
    }

    fn node(&self, name: &str) -> Result<ClusterNode<'_>> {
        ClusterNode::named(&self.cluster, name)
    }

    fn all_uploads(&self) -> UploadsJob<'_> {
        UploadsJob { cluster: &self.cluster }
    }
}
