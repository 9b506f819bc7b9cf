//! Finding the version of a name that counts, and the places of its shards.

use std::collections::BTreeSet;

use futures::StreamExt;
use futures::future::join_all;

use paritas_store::error::{Error, ErrorKind, Result};

use crate::cluster::{Cluster, MOST_ATTEMPTS};
use crate::driver::drive;
use crate::files::{ManifestFile, NameFiles, ask_in_turn};
use crate::flaw::{Flaw, told};
use crate::found::{FoundObject, GetOptions, ObjectBytes};
use crate::hands::{NameHands, NameLog};
use crate::manifest::{Body, Piece};
use crate::names::{self, ObjectName};
use crate::protocol::{Get, GetOutcome, Listed, NodeIndex, PartIndex, Version, VersionKind};
use crate::transfer::ShardedObject;
use crate::transfer::receive::Receiver;

/// Finds an object.
pub(crate) struct FindJob<'a> {
    pub files: NameFiles<'a>,
    pub options: GetOptions,
}

/// The result of a survey.
struct SurveyFinding {
    listed: Listed,
    /// The nodes that showed the manifest.
    holders: BTreeSet<NodeIndex>,
    is_sure: bool,
    flaws: Vec<Flaw>,
}

impl<'a> FindJob<'a> {
    /// Prepares to find the newest version. The job fails if it is not sure which version is the
    /// newest.
    pub fn of(cluster: &'a Cluster, name: &'a ObjectName) -> Self {
        Self { files: NameFiles { cluster, name }, options: GetOptions::default() }
    }

    pub async fn run(self) -> Result<FoundObject> {
        let mut unread = None;
        for _ in 0..MOST_ATTEMPTS {
            let mut survey = self.survey().await?;
            if let Some(file) = self.read_manifest(&mut survey).await {
                return match survey.listed.kind {
                    VersionKind::Put => self.open(file, survey),
                    VersionKind::Removed => Err(self.absent()),
                };
            }
            // Another version may have replaced this one after the survey. If this one is still the
            // newest in the next survey, it is damaged or out of reach.
            if unread.replace(survey.listed) == Some(survey.listed) {
                return Err(unreadable(self.files, survey.listed, &survey.flaws).await);
            }
        }
        Err(replaced(self.files.name))
    }

    /// Opens a version that a listing has shown on these nodes. Returns `None` if its manifest
    /// cannot be read from any node.
    pub async fn listed(self, listed: Listed, holders: &[NodeIndex]) -> Option<FoundObject> {
        let holders = holders.iter().copied().collect();
        let mut survey = SurveyFinding { listed, holders, is_sure: true, flaws: Vec::new() };
        let file = self.read_manifest(&mut survey).await?;
        self.open(file, survey).ok()
    }

    /// Finds the newest version, which may be the mark of the name's removal.
    async fn survey(&self) -> Result<SurveyFinding> {
        let NameFiles { cluster, name } = self.files;
        let mut hands = NameHands::new(cluster, name);
        let (outcome, get) = drive(Get::new(cluster.quorum), &mut hands).await;
        let flaws = hands.log.flaws;
        match outcome {
            GetOutcome::Found(listed, holders) => {
                Ok(SurveyFinding { listed, holders, is_sure: true, flaws })
            }
            // A damaged mark does not prove that the object was removed.
            GetOutcome::NotFound(Some(listed)) => {
                let holders = get.holders(listed.version);
                Ok(SurveyFinding { listed, holders, is_sure: true, flaws })
            }
            GetOutcome::NotFound(None) => Err(self.absent()),
            GetOutcome::Unsure(Some(listed))
                if self.options.allow_stale && listed.kind == VersionKind::Put =>
            {
                let holders = get.holders(listed.version);
                Ok(SurveyFinding { listed, holders, is_sure: false, flaws })
            }
            GetOutcome::Unsure(_) | GetOutcome::Lost(_) => Err(unsure(self.files, &flaws)),
        }
    }

    /// Reads the manifest from the nodes that are known to have it, one at a time. If all of them
    /// fail, asks the other nodes, because the survey may not have waited for them.
    async fn read_manifest(&self, survey: &mut SurveyFinding) -> Option<ManifestFile> {
        let SurveyFinding { listed, holders, flaws, .. } = survey;
        let others = self.files.cluster.nodes().filter(|node| !holders.contains(node));
        let nodes: Vec<NodeIndex> = holders.iter().copied().chain(others).collect();
        let read = async |node| (node, self.read_from(node, *listed, holders).await);
        let judge = |(node, found): (NodeIndex, Result<_>)| {
            found.unwrap_or_else(|error| {
                self.files.flaw(node, None, error.message()).add_to(flaws);
                None
            })
        };
        ask_in_turn(nodes, read, judge).await
    }

    /// Reads the manifest from a node, if the node has it.
    async fn read_from(
        &self,
        node: NodeIndex,
        listed: Listed,
        holders: &BTreeSet<NodeIndex>,
    ) -> Result<Option<ManifestFile>> {
        if !holders.contains(&node) && !self.files.versions(node).await?.contains(&listed) {
            return Ok(None);
        }
        self.files.read_manifest(node, listed).await.map(Some)
    }

    /// Returns the error for a name without an object. It tells the manifests that were found there
    /// but belong elsewhere.
    fn absent(&self) -> Error {
        let strangers = self.files.strangers().into_iter();
        let strangers: String = strangers.map(|flaw| format!("; {flaw}")).collect();
        let message = format!("there is no object {}{strangers}", self.files.name);
        Error::new(ErrorKind::NotFound, message)
    }

    fn open(&self, file: ManifestFile, survey: SurveyFinding) -> Result<FoundObject> {
        let ManifestFile { manifest, object, .. } = file;
        let missing = || Error::new(ErrorKind::Internal, "the manifest describes no object");
        let content = manifest.content.as_ref().ok_or_else(missing)?;
        let digest = content.digest;
        let content = match (&content.body, &object) {
            (Body::Inline(bytes), _) => ObjectBytes::Inline(bytes.clone().into()),
            (Body::Shards { placement, .. }, Some(object)) => self.receive(object, placement),
            (Body::Shards { .. }, None) => return Err(missing()),
            (Body::Pieces { upload, pieces }, _) => {
                ObjectBytes::Pieces { upload: upload.clone(), pieces: pieces.clone() }
            }
        };
        let (flaws, is_sure, warnings) = (survey.flaws, survey.is_sure, Vec::new());
        Ok(FoundObject { digest, content, flaws, read_bytes: 0, is_sure, manifest, warnings })
    }

    /// Prepares to read an object from its shards. Each shard is expected on the node that the
    /// manifest names or, since a repair may have moved it, on its home. If too few are found
    /// there, all nodes are asked ([`look_everywhere`]).
    fn receive(&self, object: &ShardedObject, placement: &[String]) -> ObjectBytes {
        let cluster = self.files.cluster;
        let homes = cluster.spread(object.id, object.layout.code()).homes;
        let hinted = |part: usize| placement.get(part).and_then(|node| cluster.find_node(node));
        let nodes = |part: usize| {
            let mut nodes =
                Vec::from_iter(hinted(part).into_iter().chain(homes.get(part).copied()));
            nodes.dedup();
            nodes
        };
        receive(self.files, object, nodes)
    }
}

/// Returns the reason why a version's manifest cannot be read whole from any node: all copies are
/// damaged, they are gone, or a node does not answer.
pub(crate) async fn unreadable(files: NameFiles<'_>, listed: Listed, flaws: &[Flaw]) -> Error {
    let (NameFiles { cluster, name }, flaws) = (files, told(flaws));
    let path = name.manifest(&listed);
    let Ok(nodes) = nodes_with(cluster, &path).await else {
        return Error::new(ErrorKind::Io, format!("{name}: no manifest can be read: {flaws}"));
    };
    if nodes.is_empty() {
        return replaced(name);
    }
    let nodes = nodes.join(", ");
    let rest = format!(
        "remove or store {name} again; or, if this file was damaged or made by somebody else, \
         delete {path} on {nodes}: then the version before it counts, if there is one. {flaws}"
    );
    let (kind, what) = match listed.kind {
        VersionKind::Put => {
            let folder = name.object_folder(listed.version.object);
            let shards = match has_files(cluster, &folder).await {
                true => format!(
                    "; what is left of its shards is in the folders {folder} of the nodes, where \
                     they may still be decoded"
                ),
                false => ", and there is no shard of it".to_owned(),
            };
            (ErrorKind::TooFewShards, format!("every copy of its manifest is damaged{shards}"))
        }
        VersionKind::Removed => {
            let what = "every copy of the mark that says it was removed is damaged";
            (ErrorKind::Io, what.to_owned())
        }
    };
    Error::new(kind, format!("{name}: {what}. What to do: {rest}"))
}

/// Returns the names of the nodes that have a file. Fails if a node does not answer.
async fn nodes_with<'a>(cluster: &'a Cluster, path: &str) -> Result<Vec<&'a str>> {
    let look = async |node: NodeIndex| {
        cluster.expect_ready(node).await?;
        match cluster.node(node).read(path, None).await {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            read => read.map(|_| Some(cluster.node_name(node))),
        }
    };
    let looks = join_all(cluster.nodes().map(look)).await;
    let nodes: Result<Vec<Option<&str>>> = looks.into_iter().collect();
    Ok(nodes?.into_iter().flatten().collect())
}

/// Whether a folder of any node has files. A node that does not answer counts as one that has.
async fn has_files(cluster: &Cluster, folder: &str) -> bool {
    let look = async |node| cluster.node(node).list(folder).next().await.is_some();
    join_all(cluster.nodes().map(look)).await.contains(&true)
}

/// Prepares to read an object. `nodes` returns the nodes on which a part is sought, in order.
fn receive(
    files: NameFiles<'_>,
    object: &ShardedObject,
    nodes: impl Fn(usize) -> Vec<NodeIndex>,
) -> ObjectBytes {
    let places =
        |part| nodes(part).into_iter().map(|node| files.place(node, object, part)).collect();
    let places = (0..object.layout.part_count()).map(places).collect();
    let settings = files.cluster.setup.settings.clone();
    ObjectBytes::Shards(Receiver::new(object.layout.clone(), object.length, places, settings))
}

/// Looks on all nodes for the shards of an object, because too few were where they should be. If a
/// shard could not be read from one node and another node has a copy, takes that copy. Also returns
/// the flaws of nodes that did not answer, because they may have the missing shards.
pub(crate) async fn look_everywhere(
    cluster: &Cluster,
    object: FoundObject,
) -> (FoundObject, Vec<Flaw>) {
    let ObjectBytes::Shards(receiver) = &object.content else {
        return (object, Vec::new());
    };
    let Some(sharded) = object.sharded() else { return (object, Vec::new()) };
    let flawed: BTreeSet<usize> = receiver.flaws().into_iter().map(|(part, _)| part).collect();
    let has_failed = |part: usize, node: NodeIndex| {
        let mut asked = receiver.nodes_of(part).take(receiver.turn(part) + 1);
        flawed.contains(&part) && asked.any(|name| name == cluster.node_name(node))
    };
    let files = NameFiles { cluster, name: object.name() };
    let mut log = NameLog::default();
    let is_silent = log.take_all(files, files.find_everywhere(&sharded, false).await) > 0;
    let silent = if is_silent { log.flaws } else { Vec::new() };
    let nodes = |part: usize| {
        let mut nodes: Vec<NodeIndex> = log.whole.of(PartIndex(part)).collect();
        nodes.sort_by_key(|&node| has_failed(part, node));
        nodes
    };
    let content = receive(files, &sharded, nodes);
    (FoundObject { content, ..object }, silent)
}

/// Whether a survey shows for certain that the name was removed, or means another version by now.
/// Also returns what went wrong on nodes.
pub(crate) async fn is_replaced(files: NameFiles<'_>, version: Version) -> (bool, Vec<Flaw>) {
    let mut hands = NameHands::new(files.cluster, files.name);
    let outcome = drive(Get::again(files.cluster.quorum, version), &mut hands).await.0;
    let is_replaced = matches!(outcome, GetOutcome::Found(..) | GetOutcome::NotFound(_));
    (is_replaced, hands.log.flaws)
}

/// Finds a piece of an object, which has this version.
pub(crate) async fn find_piece(
    files: NameFiles<'_>,
    version: Version,
    upload: &str,
    piece: &Piece,
) -> Result<FoundObject> {
    let name = names::piece(upload, piece.number)?;
    let is_it =
        |found: &FoundObject| (found.length(), found.digest()) == (piece.length, piece.digest);
    match FindJob::of(files.cluster, &name).run().await {
        // No upload makes such pieces; one could contain the other for ever.
        Ok(found) if found.pieces().is_some() => {
            let message = format!("{}: piece {name} is in pieces itself", files.name);
            Err(Error::new(ErrorKind::NotRecognised, message))
        }
        Ok(found) if is_it(&found) => Ok(found),
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        // Pieces are removed when their object is replaced or removed.
        _ => {
            let (is_replaced, _) = is_replaced(files, version).await;
            let message = format!("{}: piece {} is gone ({name})", files.name, piece.number);
            match is_replaced {
                true => Err(replaced(files.name)),
                false => Err(Error::new(ErrorKind::TooFewShards, message)),
            }
        }
    }
}

/// Returns the error for a survey that too few nodes answered.
pub(crate) fn unsure(files: NameFiles<'_>, flaws: &[Flaw]) -> Error {
    let NameFiles { cluster: Cluster { quorum, .. }, name } = files;
    let (must, nodes, told) = (quorum.to_read(), quorum.nodes(), told(flaws));
    let message = format!(
        "{name}: too few nodes answered to be sure of the newest version; {must} of {nodes} must: \
         {told}"
    );
    Error::new(ErrorKind::TooFewNodes, message)
}

/// Returns the error for an object that was replaced or removed while it was read.
pub(crate) fn replaced(name: &ObjectName) -> Error {
    let message = format!("{name} was replaced or removed while it was read; read it again");
    Error::new(ErrorKind::Busy, message)
}

/// Returns the error for an object that was replaced so often that the work on it could not be
/// finished.
pub(crate) fn keeps_changing(name: &ObjectName) -> Error {
    Error::new(ErrorKind::Busy, format!("{name}: other processes keep replacing it"))
}
