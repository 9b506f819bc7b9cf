//! Verifying objects: are all parts and manifests where they belong, and what is wrong?

use std::collections::{BTreeMap, BTreeSet};

use futures::future::join_all;
use futures::stream::{self, StreamExt};
use paritas_store::error::{Error, ErrorKind, Result};
use paritas_store::object::layout::ObjectLayout;
use paritas_store::state::State;

use crate::cluster::{Cluster, MOST_ATTEMPTS};
use crate::files::NameFiles;
use crate::find::{FindJob, find_piece, is_replaced, replaced};
use crate::flaw::Flaw;
use crate::found::FoundObject;
use crate::get::read_all;
use crate::hands::NameLog;
use crate::hints::FolderHints;
use crate::manifest::Piece;
use crate::names::{self, ObjectName};
use crate::overview::Overview;
use crate::protocol::{Listed, NodeIndex, PartIndex, Quorum, VersionKind};
use crate::stages::stage_ends;
use crate::transfer::ShardedObject;

/// Number of objects, or of pieces of one, that are looked at side by side.
const AT_ONCE: usize = 16;

/// The flaw of a node that should have a manifest.
const NO_MANIFEST: &str = "has no manifest";

/// What is wrong with an object.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Verdict {
    /// The name.
    pub name: ObjectName,
    /// The version that counts.
    pub listed: Listed,
    /// The state.
    pub state: State,
    /// The stage that the object has reached, from 1; 0 if it is kept in its manifests.
    pub stage: u8,
    /// Number of stages of its code.
    pub stages: u8,
    /// The shards without a whole copy on any node.
    pub missing: Vec<usize>,
    /// Number of further nodes that may be lost, whichever they are. It is 0 if the object cannot
    /// be decoded from what was found.
    pub spare: usize,
    /// What was wrong on nodes.
    pub flaws: Vec<Flaw>,
    /// Number of bytes that were read.
    pub read_bytes: u64,
}

impl Verdict {
    /// Returns the verdict about something that is not in shards, and is not as it should be.
    fn of(name: &ObjectName, listed: Listed, flaws: Vec<Flaw>) -> Self {
        Self {
            name: name.clone(),
            listed,
            state: State::Repairable,
            stage: 0,
            stages: 0,
            missing: Vec::new(),
            spare: 0,
            flaws,
            read_bytes: 0,
        }
    }
}

/// Looks for all parts and manifests of an object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VerifyJob<'a> {
    pub cluster: &'a Cluster,
    pub name: &'a ObjectName,
    /// Whether every block of the parts and every manifest is read.
    pub is_deep: bool,
    pub overview: Option<&'a Overview>,
}

impl VerifyJob<'_> {
    pub async fn run(self) -> Result<Verdict> {
        let Self { cluster, name, is_deep, .. } = self;
        if let Some(verdict) = self.by_overview().await {
            return Ok(verdict);
        }
        let files = NameFiles { cluster, name };
        for _ in 0..MOST_ATTEMPTS {
            let object = match FindJob::of(cluster, name).run().await {
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    return self.without_object(error).await;
                }
                object => object?,
            };
            let look = VersionLook { files, object: &object, is_deep, log: NameLog::default() };
            let verdict = look.run(None).await?;
            let verdict = self.add_pieces(verdict, &object).await?;
            // If the version was replaced or removed meanwhile, what is missing of it is not lost.
            if verdict.state == State::Intact || !is_replaced(files, verdict.listed.version).await.0
            {
                return Ok(verdict);
            }
        }
        Err(replaced(name))
    }

    /// Judges a name that has no object, as `absent` says. Reports only files that do not belong
    /// there and, if the job is deep, damaged marks of the name's removal.
    async fn without_object(self, absent: Error) -> Result<Verdict> {
        let files = NameFiles { cluster: self.cluster, name: self.name };
        if !files.strangers().is_empty() {
            return Err(Error::new(ErrorKind::Io, absent.message()));
        }
        if !self.is_deep {
            return Err(absent);
        }
        let (mut mark, mut holders, mut flaws) = (None, 0, Vec::new());
        for node in self.cluster.nodes() {
            let Ok(versions) = files.look_at_versions(node, true).await else { continue };
            for (listed, read) in versions {
                holders += usize::from(read.is_ok());
                mark = mark.max(Some(listed));
                let flaw = |error: Error| files.flaw(node, None, error.message());
                flaws.extend(read.err().map(flaw));
            }
        }
        match mark.filter(|_| !flaws.is_empty()) {
            None => Err(absent),
            Some(mark) => Ok(Verdict {
                spare: holders.saturating_sub(1).min(self.cluster.tolerance()),
                ..Verdict::of(self.name, mark, flaws)
            }),
        }
    }

    /// Judges the object by the overview, if that shows one version of it, and the object proves
    /// intact. All else may have changed since the overview, and is looked at anew.
    async fn by_overview(self) -> Option<Verdict> {
        let (cluster, name, is_deep) = (self.cluster, self.name, self.is_deep);
        let seen = &self.overview?.versions;
        let versions = seen.names.get(name).filter(|versions| versions.len() == 1)?;
        let (&listed, nodes) = versions.first_key_value()?;
        if listed.kind != VersionKind::Put || !seen.flaws.is_empty() {
            return None;
        }
        let files = NameFiles { cluster, name };
        let object = FindJob::of(cluster, name).listed(listed, nodes).await?;
        let manifests = Manifests::of(cluster.quorum, seen.answered.len(), nodes);
        let look = VersionLook { files, object: &object, is_deep, log: NameLog::default() };
        // Reading each manifest finds them anew.
        let verdict = look.run(Some(manifests).filter(|_| !is_deep)).await.ok()?;
        let verdict = self.add_pieces(verdict, &object).await.ok()?;
        (verdict.state == State::Intact).then_some(verdict)
    }

    /// Looks at the pieces of an object as well, and adds what is found there to the verdict.
    async fn add_pieces(self, mut verdict: Verdict, object: &FoundObject) -> Result<Verdict> {
        let cluster = self.cluster;
        let Some((upload, pieces)) = object.upload().zip(object.pieces()) else {
            return Ok(verdict);
        };
        let (files, version) = (NameFiles { cluster, name: self.name }, verdict.listed.version);
        let look = async |&piece: &Piece| {
            let name = &names::piece(upload, piece.number)?;
            let found = find_piece(files, version, upload, &piece).await?;
            let of_piece = Box::pin(VerifyJob { name, ..self }.run()).await?;
            Ok::<_, Error>((piece, found.sharded(), of_piece))
        };
        let most = if self.is_deep { 1 } else { AT_ONCE };
        let mut looks = stream::iter(pieces).map(look).buffered(most);
        while let Some(of_piece) = looks.next().await {
            match of_piece {
                Ok((piece, sharded, found)) => {
                    verdict.state = verdict.state.max(found.state);
                    verdict.spare = verdict.spare.min(found.spare);
                    verdict.read_bytes += found.read_bytes;
                    let missing = missing_of_piece(cluster, &piece, sharded, &found.missing);
                    let flaws = found.flaws.into_iter().chain(missing);
                    flaws.for_each(|flaw| flaw.add_to(&mut verdict.flaws));
                }
                // The piece is gone.
                Err(error) if error.kind() == ErrorKind::TooFewShards => {
                    (verdict.state, verdict.spare) = (verdict.state.max(State::Lost), 0);
                    Flaw::new("all nodes", None, error.message()).add_to(&mut verdict.flaws);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(verdict)
    }
}

/// Returns a flaw for each missing shard of a piece, on the node that should have it.
fn missing_of_piece(
    cluster: &Cluster,
    piece: &Piece,
    object: Option<ShardedObject>,
    missing: &[usize],
) -> Vec<Flaw> {
    let homes = object.map(|it| cluster.spread(it.id, it.layout.code()).homes).unwrap_or_default();
    let flaw = |&shard: &usize| {
        let node = homes.get(shard).map_or("", |&node| cluster.node_name(node));
        Flaw::new(node, Some(shard), format!("missing of piece {}", piece.number))
    };
    missing.iter().map(flaw).collect()
}

/// Looks for all parts and manifests of a version.
struct VersionLook<'a> {
    files: NameFiles<'a>,
    object: &'a FoundObject,
    is_deep: bool,
    log: NameLog,
}

/// Number of nodes that answered, of nodes that have the manifest whole (drained ones do not
/// count), and of manifests of any version that are damaged or do not belong there.
#[derive(Debug, Clone)]
struct Manifests {
    answered: usize,
    holders: usize,
    damaged: usize,
    /// The nodes that answered, are not drained and have none.
    lacking: Vec<NodeIndex>,
}

impl Manifests {
    /// Counts the nodes on which a listing has shown the manifest.
    fn of(quorum: Quorum, answered: usize, nodes: &[NodeIndex]) -> Self {
        let counting = |node: &NodeIndex| quorum.counts(*node);
        let holders = nodes.iter().copied().filter(counting).count();
        let lacking = quorum.indices().filter(|node| !nodes.contains(node));
        Self { answered, holders, damaged: 0, lacking: lacking.filter(counting).collect() }
    }
}

impl VersionLook<'_> {
    /// Judges the version. If `manifests` are not known, all nodes are asked for them.
    async fn run(mut self, manifests: Option<Manifests>) -> Result<Verdict> {
        let manifests = match manifests {
            Some(manifests) => manifests,
            None => self.count_manifests().await,
        };
        match self.object.sharded() {
            None => Ok(self.judge_inline(&manifests)),
            Some(object) => self.judge_shards(&object, manifests).await,
        }
    }

    /// Asks all nodes whether they have the manifest of the version. If the job is deep, each
    /// manifest is read, those of other versions too.
    async fn count_manifests(&mut self) -> Manifests {
        let (files, quorum) = (self.files, self.files.cluster.quorum);
        let (listed, is_deep) = (self.object.listed(), self.is_deep);
        let looks = files.cluster.nodes().map(|node| files.look_at_versions(node, is_deep));
        let looks = join_all(looks).await;
        let mut found = Manifests { answered: 0, holders: 0, damaged: 0, lacking: Vec::new() };
        for (node, look) in files.cluster.nodes().zip(looks) {
            let versions = match look {
                Ok(versions) => versions,
                Err(error) => {
                    self.log.note(files.flaw(node, None, error.message()));
                    continue;
                }
            };
            found.answered += 1;
            let counted = Some(node).filter(|&node| quorum.counts(node));
            if !versions.iter().any(|(version, _)| *version == listed) {
                found.lacking.extend(counted);
            }
            for (version, read) in versions {
                match read {
                    Ok(()) if version == listed => found.holders += counted.iter().count(),
                    Ok(()) => {}
                    // It may have been removed since it was listed.
                    Err(error) if version != listed && error.kind() == ErrorKind::NotFound => {}
                    Err(error) => {
                        found.damaged += 1;
                        self.log.note(files.flaw(node, None, error.message()));
                    }
                }
            }
        }
        found
    }

    /// Judges an object that is kept in its manifests.
    fn judge_inline(mut self, manifests: &Manifests) -> Verdict {
        let cluster = self.files.cluster;
        let needed = cluster.quorum.to_write();
        let is_intact = manifests.holders >= needed && manifests.damaged == 0;
        let missing = needed.saturating_sub(manifests.holders + manifests.damaged);
        let order = cluster.inline_order(self.object.listed().version.object).into_iter();
        let should = order.filter(|node| manifests.lacking.contains(node)).take(missing);
        should.for_each(|node| self.log.note(self.files.flaw(node, None, NO_MANIFEST)));
        let state = if is_intact { State::Intact } else { State::Repairable };
        Verdict { state, ..self.verdict(manifests) }
    }

    async fn judge_shards(
        mut self,
        object: &ShardedObject,
        manifests: Manifests,
    ) -> Result<Verdict> {
        let (files, layout) = (self.files, &object.layout);
        let parts = files.find_everywhere(object, self.is_deep).await;
        let answered = parts.len() - self.log.take_all(files, parts);
        // A node may have failed after it had told its versions.
        let manifests = Manifests { answered: manifests.answered.min(answered), ..manifests };
        let homes = files.cluster.spread(object.id, layout.code()).homes;
        let mut found = FoundParts::new(&self.log, layout, &homes);
        if self.has_lost_stages(object, found.stage).await {
            let last = usize::from(layout.code().stages());
            found = FoundParts::up_to(last, &self.log, layout, &homes);
        }
        let state = self.state_of(&found, &manifests).await?;
        let lacking = manifests.lacking.iter();
        lacking.for_each(|&node| self.log.note(files.flaw(node, None, NO_MANIFEST)));
        self.note_strayed(layout, &found, &homes);
        let stage = found.stage as u8;
        let holders = manifests.holders;
        let spare = files.cluster.losable_nodes(layout.code(), stage, &found.places, holders);
        let verdict = self.verdict(&manifests);
        Ok(Verdict {
            state,
            stage,
            stages: layout.code().stages(),
            missing: found.missing.iter().map(|&part| layout.part(part).shard).collect(),
            spare: spare.min(verdict.spare),
            ..verdict
        })
    }

    /// Whether the object has lost stages after `stage`: no node can have a hint that the object
    /// waits for promotion, all nodes answer, and none has a whole part of these stages.
    async fn has_lost_stages(&self, object: &ShardedObject, stage: usize) -> bool {
        let (cluster, ends) = (self.files.cluster, stage_ends(object.layout.code()));
        if stage == ends.len() || FolderHints::backlog(cluster).may_be_left(object.id).await {
            return false;
        }
        // It may have been promoted since its parts were looked for.
        let is_later = |part: &usize| *part >= ends[stage - 1];
        let again = self.files.find_everywhere(object, false).await;
        !again.iter().any(|node| node.failure.is_some() || node.whole.iter().any(is_later))
    }

    /// Returns the verdict as far as the manifests and the log tell it.
    fn verdict(self, manifests: &Manifests) -> Verdict {
        // A node with the manifest must be left, and enough nodes must answer.
        let to_read = self.files.cluster.quorum.to_read();
        let silent_too = manifests.answered.saturating_sub(to_read);
        // Strangers are told, but are not in the object's way, and a repair leaves them there.
        let flaws = self.log.flaws.into_iter().chain(self.files.strangers()).collect();
        Verdict {
            spare: manifests.holders.saturating_sub(1).min(silent_too),
            read_bytes: self.log.read_bytes,
            ..Verdict::of(self.files.name, self.object.listed(), flaws)
        }
    }

    /// Notes where the parts are that are not on their homes.
    fn note_strayed(&mut self, layout: &ObjectLayout, found: &FoundParts, homes: &[NodeIndex]) {
        for &part in &found.strayed {
            let message = format!("belongs on {}", self.files.cluster.node_name(homes[part]));
            let shard = Some(layout.part(part).shard);
            let nodes: Vec<NodeIndex> = self.log.whole.of(PartIndex(part)).collect();
            for node in nodes {
                self.log.note(self.files.flaw(node, shard, &message));
            }
        }
    }

    async fn state_of(&self, found: &FoundParts, manifests: &Manifests) -> Result<State> {
        let cluster = self.files.cluster;
        let is_settled = manifests.holders == cluster.quorum.serving();
        let is_all_there = found.missing.is_empty() && found.is_placed;
        Ok(match found.is_solvable {
            true if is_all_there && is_settled && self.log.flaws.is_empty() => State::Intact,
            true => State::Repairable,
            // A node that does not answer may have what is missing.
            false if manifests.answered < cluster.quorum.nodes() => {
                match self.log.damaged.is_empty() {
                    true => State::Unknown,
                    false => self.state_by_blocks().await?.min(State::Unknown),
                }
            }
            false => self.state_by_blocks().await?,
        })
    }

    /// Returns the state of an object with too few whole shards: it may still be readable block by
    /// block. If reading fails for a reason other than its blocks, the state is unknown.
    ///
    /// # Errors
    /// If too little memory is allowed to read it.
    async fn state_by_blocks(&self) -> Result<State> {
        let NameFiles { cluster, name } = self.files;
        let read = read_all(cluster, name, &mut std::io::sink()).await;
        let Err(error) = read else { return Ok(State::Repairable) };
        match error.kind() {
            ErrorKind::TooFewShards | ErrorKind::DigestMismatch => Ok(State::Lost),
            ErrorKind::Memory => Err(error),
            _ => Ok(State::Unknown),
        }
    }
}

/// Which parts of an object were found.
struct FoundParts {
    /// The stage that the object is in, or that was begun.
    stage: usize,
    /// The parts up to this stage without a whole copy on any node.
    missing: Vec<usize>,
    /// For each part up to this stage that is whole, its shard and one node that has it.
    places: BTreeSet<(usize, NodeIndex)>,
    /// Whether every part is on its home.
    is_placed: bool,
    /// The parts that are whole, but not on their homes.
    strayed: Vec<usize>,
    /// Whether the object can be computed from the whole parts.
    is_solvable: bool,
}

impl FoundParts {
    fn new(log: &NameLog, layout: &ObjectLayout, homes: &[NodeIndex]) -> Self {
        let has = |part: &usize| log.whole.has(PartIndex(*part));
        // A damaged part was stored once, so its stage was begun.
        let was_there = |part: &usize| has(part) || log.damaged.has(PartIndex(*part));
        let last = (0..layout.part_count()).rev().find(was_there).unwrap_or(0);
        let ends = stage_ends(layout.code());
        let stage = ends.iter().position(|&end| last < end).unwrap_or(0) + 1;
        Self::up_to(stage, log, layout, homes)
    }

    /// Returns the parts up to a stage.
    fn up_to(stage: usize, log: &NameLog, layout: &ObjectLayout, homes: &[NodeIndex]) -> Self {
        let has = |part: &usize| log.whole.has(PartIndex(*part));
        let parts = 0..stage_ends(layout.code())[stage - 1];
        let is_home = |part: usize| log.whole.has_on(PartIndex(part), homes[part]);
        let place = |part: usize| {
            let first = log.whole.of(PartIndex(part)).next()?;
            let node = if is_home(part) { homes[part] } else { first };
            Some((layout.part(part).shard, node))
        };
        Self {
            stage,
            places: parts.clone().filter_map(place).collect(),
            missing: parts.clone().filter(|part| !has(part)).collect(),
            is_placed: parts.clone().all(is_home),
            strayed: parts.clone().filter(|part| has(part) && !is_home(*part)).collect(),
            is_solvable: layout.is_solvable_from((0..layout.part_count()).filter(has)),
        }
    }
}

/// Returns the names that an overview shows. Objects that can lose the fewest further nodes come
/// first.
pub(crate) async fn most_urgent_first(cluster: &Cluster, overview: &Overview) -> Vec<ObjectName> {
    let urgency = async |(name, versions): (&ObjectName, &BTreeMap<Listed, _>)| {
        let newest = versions.last_key_value().map(|(listed, _)| listed.kind);
        let spare = match newest {
            Some(VersionKind::Put) => {
                let overview = Some(overview);
                let verdict = VerifyJob { cluster, name, is_deep: false, overview }.run().await;
                verdict.map_or(0, |verdict| verdict.spare)
            }
            _ => usize::MAX,
        };
        (spare, name.clone())
    };
    let looked = stream::iter(&overview.versions.names).map(urgency).buffer_unordered(AT_ONCE);
    let mut names: Vec<(usize, ObjectName)> = looked.collect().await;
    names.sort();
    names.into_iter().map(|(_, name)| name).collect()
}
