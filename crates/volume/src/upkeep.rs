//! Keeping objects whole: verifying, repairing, promoting.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::join_all;
use futures::stream::{self, StreamExt};
use paritas_shards::ObjectId;
use paritas_shards::blocks::ObjectLayout;
use paritas_store::error::{Error, ErrorKind, Result};
use paritas_store::state::State;

use crate::driver::{Hands, drive};
use crate::get::{FoundObject, GetOptions, keeps_changing, replaced};
use crate::hands::{Flaw, NameHands, now, told};
use crate::names::{BACKLOG, OWED, ObjectName};
use crate::protocol::{
    Action, Answer, Listed, NodeIndex, Promote, PromoteOutcome, Repair, RepairOutcome, Request,
    VersionKind,
};
use crate::volume::{MOST_ATTEMPTS, Volume, stage_ends};

/// Number of objects that are looked at side by side.
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
    /// The shards that are whole on no node.
    pub missing: Vec<usize>,
    /// Number of further nodes that may be lost, whichever they are. It is 0 if the object cannot
    /// be decoded from what was found.
    pub spare: usize,
    /// What was wrong on nodes.
    pub flaws: Vec<Flaw>,
    /// Number of bytes that were read.
    pub read_bytes: u64,
}

/// What a repair did.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Repaired {
    /// The name.
    pub name: ObjectName,
    /// Number of parts that were made or copied.
    pub stored: usize,
    /// Number of manifests that were written.
    pub manifests: usize,
    /// Whether something is left to repair.
    pub is_owed: bool,
    /// Whether the name means nothing any more, so that only remains were removed.
    pub is_removed: bool,
    /// What was wrong on nodes.
    pub flaws: Vec<Flaw>,
    /// Number of bytes of blocks that were read.
    pub read_bytes: u64,
}

/// Returns the error of a repair that could not bring a name into order.
fn unrepaired(name: &ObjectName, outcome: &RepairOutcome, flaws: &[Flaw]) -> Error {
    let (kind, what) = match outcome {
        RepairOutcome::Nothing => {
            return Error::new(ErrorKind::NotFound, format!("there is no object {name}"));
        }
        RepairOutcome::TooFewParts(_) => (ErrorKind::TooFewShards, "too few shards are whole"),
        RepairOutcome::Unreadable(_) => (ErrorKind::Io, "no manifest can be read"),
        _ => (ErrorKind::TooFewNodes, "too few nodes answered"),
    };
    Error::new(kind, format!("{name}: {what}: {}", told(flaws)))
}

/// Number of nodes that answered, of nodes that have the manifest whole (drained ones do not
/// count), and of nodes that have it damaged.
#[derive(Debug, Clone)]
struct Manifests {
    answered: usize,
    holders: usize,
    damaged: usize,
    /// The nodes that answered, are not drained and have none.
    lacking: Vec<NodeIndex>,
}

/// Which parts of an object were found.
struct FoundParts {
    /// The stage that the object is in, or that was begun.
    stage: usize,
    /// The parts up to this stage that are whole on no node.
    missing: Vec<usize>,
    /// For each part up to this stage that is whole, its shard and one node that has it.
    places: BTreeSet<(usize, NodeIndex)>,
    /// Whether every part is on its home.
    is_placed: bool,
    /// The parts that are whole, but not on their homes.
    strayed: Vec<usize>,
    /// Whether the object follows from the parts that are whole.
    is_solvable: bool,
}

impl FoundParts {
    fn new(hands: &NameHands<'_>, layout: &ObjectLayout, homes: &[NodeIndex]) -> Self {
        let (files, damaged) = (hands.files(), hands.damaged());
        let has = |part: &usize| files.get(part).is_some_and(|files| !files.is_empty());
        // A damaged part was stored once, so its stage was begun.
        let was_there = |part: &usize| has(part) || damaged.contains_key(part);
        let last = (0..layout.part_count()).rev().find(was_there).unwrap_or(0);
        let ends = stage_ends(layout.code());
        let stage = ends.iter().position(|&end| last < end).unwrap_or(0) + 1;
        let parts = 0..ends[stage - 1];
        let is_home = |part: usize| files.get(&part).is_some_and(|f| f.contains_key(&homes[part]));
        let place = |part: usize| {
            let files = files.get(&part)?;
            let at_home = files.get_key_value(&homes[part]);
            let (&node, _) = at_home.or_else(|| files.first_key_value())?;
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

impl Volume {
    /// Looks for all parts and manifests of an object, and for those of its pieces, if it is in
    /// pieces. If `is_deep`, every block of the parts and
    /// every manifest is read and checked; otherwise only the lengths of parts are looked at.
    ///
    /// # Errors
    /// As [`Volume::find`]; if others keep replacing the object ([`ErrorKind::Busy`]); if too few
    /// shards are whole, and reading block by block takes more memory than is allowed
    /// ([`ErrorKind::Memory`]).
    pub async fn verify(&self, name: &ObjectName, is_deep: bool) -> Result<Verdict> {
        for _ in 0..MOST_ATTEMPTS {
            let object = self.find(name, GetOptions::default()).await?;
            let verdict = self.judge(name, &object, is_deep).await?;
            let verdict = Box::pin(self.judge_pieces(verdict, &object, is_deep)).await?;
            // What is missing of a version that was replaced or removed meanwhile is not lost.
            let hands = NameHands::new(self, name);
            if verdict.state == State::Intact
                || !self.is_replaced(&hands, verdict.listed.version).await
            {
                return Ok(verdict);
            }
        }
        Err(replaced(name))
    }

    /// Looks for all parts and manifests of a version.
    async fn judge(
        &self,
        name: &ObjectName,
        object: &FoundObject,
        is_deep: bool,
    ) -> Result<Verdict> {
        let mut hands = NameHands::new(self, name);
        hands.is_deep = is_deep;
        let manifests = self.count_manifests(&hands, object.listed()).await;
        let verdict = Verdict {
            name: name.clone(),
            listed: object.listed(),
            state: State::Repairable,
            stage: 0,
            stages: 0,
            missing: Vec::new(),
            spare: self.losable_manifests(&manifests),
            flaws: Vec::new(),
            read_bytes: 0,
        };
        let Some(layout) = object.layout() else {
            let is_settled = manifests.holders >= self.quorum.to_write();
            let is_intact = is_settled && manifests.damaged == 0;
            let state = if is_intact { State::Intact } else { State::Repairable };
            let there = manifests.holders + manifests.damaged;
            let missing = self.quorum.to_write().saturating_sub(there);
            let order = self.inline_order(object.listed().version.object).into_iter();
            let should = order.filter(|node| manifests.lacking.contains(node)).take(missing);
            should.for_each(|node| hands.note(node, None, NO_MANIFEST));
            return Ok(Verdict { state, flaws: hands.flaws(), ..verdict });
        };
        hands.keep_layout(layout.clone());
        hands.keep_total(object.length(), object.digest());
        let id = object.listed().version.object;
        let find = |node| hands.act(Action { node, request: Request::FindParts(id) });
        let answers = join_all(self.nodes().map(find)).await;
        let answered = answers.iter().filter(|answer| **answer != Answer::Failed).count();
        // A node may have failed after it had told its versions.
        let manifests = Manifests { answered: manifests.answered.min(answered), ..manifests };
        let homes = self.spread(id, layout.code()).homes;
        let found = FoundParts::new(&hands, &layout, &homes);
        let state = self.state_of(name, &found, &manifests, &hands).await?;
        manifests.lacking.iter().for_each(|&node| hands.note(node, None, NO_MANIFEST));
        self.note_strayed(&hands, &layout, &found, &homes);
        let stage = found.stage as u8;
        let spare = self.losable_nodes(layout.code(), stage, &found.places, manifests.holders);
        Ok(Verdict {
            state,
            stage,
            stages: layout.code().stages(),
            missing: found.missing.iter().map(|&part| layout.part(part).shard).collect(),
            spare: spare.min(self.losable_manifests(&manifests)),
            flaws: hands.flaws(),
            read_bytes: hands.read_bytes(),
            ..verdict
        })
    }

    /// Notes where the parts are that are not on their homes.
    fn note_strayed(
        &self,
        hands: &NameHands<'_>,
        layout: &ObjectLayout,
        found: &FoundParts,
        homes: &[NodeIndex],
    ) {
        let files = hands.files();
        for &part in &found.strayed {
            let nodes = files.get(&part).into_iter().flat_map(BTreeMap::keys);
            let message = format!("belongs on {}", self.node_name(homes[part]));
            let shard = Some(layout.part(part).shard);
            nodes.for_each(|&node| hands.note(node, shard, &message));
        }
    }

    /// Returns the number of further nodes that may be lost, whichever they are, so that a node
    /// with the manifest is left and enough nodes answer.
    fn losable_manifests(&self, manifests: &Manifests) -> usize {
        let silent_too = manifests.answered.saturating_sub(self.quorum.to_read());
        manifests.holders.saturating_sub(1).min(silent_too)
    }

    /// Asks all nodes whether they have the manifest of a version. If the hands look deep, each
    /// manifest is read.
    async fn count_manifests(&self, hands: &NameHands<'_>, listed: Listed) -> Manifests {
        let list = |node| hands.act(Action { node, request: Request::ListVersions });
        let answers = join_all(self.nodes().map(list)).await;
        let versions = |answer: &Answer| match answer {
            Answer::Versions(versions) => Some(versions.contains(&listed)),
            _ => None,
        };
        let has: Vec<Option<bool>> = answers.iter().map(versions).collect();
        let holders = self.nodes().zip(&has).filter(|(_, has)| **has == Some(true));
        let lacking = self.nodes().zip(&has).filter(|(_, has)| **has == Some(false));
        let lacking = lacking.map(|(node, _)| node).filter(|&node| self.quorum.counts(node));
        let read = async |node| {
            let request = Request::ReadManifest(listed);
            let is_whole =
                !hands.is_deep || hands.act(Action { node, request }).await != Answer::Failed;
            (self.quorum.counts(node), is_whole)
        };
        let read = join_all(holders.map(|(node, _)| read(node))).await;
        Manifests {
            answered: has.iter().flatten().count(),
            holders: read.iter().filter(|&&state| state == (true, true)).count(),
            damaged: read.iter().filter(|(_, is_whole)| !is_whole).count(),
            lacking: lacking.collect(),
        }
    }

    async fn state_of(
        &self,
        name: &ObjectName,
        found: &FoundParts,
        manifests: &Manifests,
        hands: &NameHands<'_>,
    ) -> Result<State> {
        let nodes = self.node_count();
        let is_settled = manifests.holders == self.quorum.serving();
        let is_all_there = found.missing.is_empty() && found.is_placed;
        Ok(match found.is_solvable {
            true if is_all_there && is_settled && hands.flaws().is_empty() => State::Intact,
            true => State::Repairable,
            false if manifests.answered < nodes => State::Unknown,
            false => self.health_by_blocks(name).await?,
        })
    }

    /// Returns the state of an object of which too few shards are whole: it may still be readable
    /// block by block. If reading fails for another reason than its blocks, nobody knows.
    ///
    /// # Errors
    /// If too little memory is allowed to read it.
    async fn health_by_blocks(&self, name: &ObjectName) -> Result<State> {
        let (mut sink, options) = (std::io::sink(), GetOptions::default());
        let read = self.get(name, None, &mut sink, options, &|_| {}).await;
        let Err(error) = read else { return Ok(State::Repairable) };
        match error.kind() {
            ErrorKind::TooFewShards | ErrorKind::DigestMismatch => Ok(State::Lost),
            ErrorKind::Memory => Err(error),
            _ => Ok(State::Unknown),
        }
    }

    /// Brings one object into order: every part and every manifest on the nodes where they belong,
    /// older versions removed. If `is_deep`, all blocks and manifests are read first to find
    /// damage.
    ///
    /// # Errors
    /// If too few nodes answered ([`ErrorKind::TooFewNodes`]), if too many shards are lost
    /// ([`ErrorKind::TooFewShards`]), if there is no such object ([`ErrorKind::NotFound`]), or if
    /// others keep replacing it ([`ErrorKind::Busy`]).
    pub async fn repair(&self, name: &ObjectName, is_deep: bool) -> Result<Repaired> {
        for _ in 0..MOST_ATTEMPTS {
            let mut hands = NameHands::new(self, name);
            (hands.is_deep, hands.asks_everyone) = (is_deep, true);
            let repair = Repair::new(self.quorum, now());
            let repair = if is_deep { repair.reading_all() } else { repair };
            let (outcome, _) = drive(repair, &hands).await;
            match outcome {
                RepairOutcome::Repaired { listed, stored, stage, is_owed } => {
                    let repaired = Repaired {
                        name: name.clone(),
                        stored,
                        manifests: hands.manifests_written(),
                        is_owed,
                        is_removed: listed.kind == VersionKind::Removed,
                        flaws: hands.flaws(),
                        read_bytes: hands.read_bytes(),
                    };
                    return self.finish(repaired, listed.version.object, stage, &hands).await;
                }
                RepairOutcome::Collected => {
                    return Ok(Repaired {
                        name: name.clone(),
                        stored: 0,
                        manifests: 0,
                        is_owed: false,
                        is_removed: true,
                        flaws: hands.flaws(),
                        read_bytes: 0,
                    });
                }
                RepairOutcome::Superseded => {}
                failed => return Err(unrepaired(name, &failed, &hands.flaws())),
            }
        }
        Err(keeps_changing(name))
    }

    /// Does what is left when all parts of the stage that an object is in are whole: a later stage
    /// that was begun is finished, damaged copies are removed, and marks say what is owed.
    async fn finish(
        &self,
        repaired: Repaired,
        object: ObjectId,
        stage: usize,
        hands: &NameHands<'_>,
    ) -> Result<Repaired> {
        let name = &repaired.name;
        if !repaired.is_owed && self.is_begun_after(hands, stage) {
            return self.finish_stage(repaired, object, hands).await;
        }
        self.remove_damaged(hands).await;
        match repaired.is_owed {
            true => self.mark_object(OWED, object, name).await,
            false => self.unmark_object(OWED, object).await,
        }
        // All parts that a promotion had added may have been lost, or the hint may have been.
        if self.has_stage_after(hands, stage) {
            self.mark_object(BACKLOG, object, name).await;
        }
        Ok(Repaired { read_bytes: hands.read_bytes(), ..repaired })
    }

    /// Finishes a stage that was begun, though nothing whole is left of it.
    async fn finish_stage(
        &self,
        repaired: Repaired,
        object: ObjectId,
        hands: &NameHands<'_>,
    ) -> Result<Repaired> {
        let found = self.find(&repaired.name, GetOptions::default()).await?;
        let layout = staged(&repaired.name, &found)?;
        let added = self.add_stage(&repaired.name, &found, &layout, hands.is_deep).await?;
        self.remove_damaged(hands).await;
        if !added.is_owed {
            self.unmark_object(OWED, object).await;
        }
        let mut flaws = repaired.flaws;
        added.flaws.into_iter().for_each(|flaw| flaw.add_to(&mut flaws));
        Ok(Repaired {
            stored: repaired.stored + added.stored,
            manifests: repaired.manifests,
            read_bytes: hands.read_bytes() + added.read_bytes,
            flaws,
            ..added
        })
    }

    /// Deletes damaged copies of parts that are whole on other nodes. Each is looked at once more
    /// just before, because another repair may have written it anew, and removed the other copies.
    /// What cannot be looked at stays: its node may have failed when it was called damaged.
    async fn remove_damaged(&self, hands: &NameHands<'_>) {
        let files = hands.files();
        let is_whole = |part: &usize| files.get(part).is_some_and(|files| !files.is_empty());
        let damaged = hands.damaged().into_iter().filter(|(part, _)| is_whole(part));
        let damaged: Vec<(usize, NodeIndex, String)> = damaged
            .flat_map(|(part, files)| files.into_iter().map(move |(node, path)| (part, node, path)))
            .collect();
        let delete = async |(part, node, path): &(usize, NodeIndex, String)| {
            if hands.is_damaged_now(*part, *node, path).await {
                // A copy that cannot be deleted stays damaged, and the next verification reports
                // it.
                let _ = self.node(*node).delete(path).await;
            }
        };
        join_all(damaged.iter().map(delete)).await;
    }

    /// Whether a damaged part of a later stage than `stage` was found. The stage was begun, though
    /// nothing whole is left of it, and is to be finished.
    fn is_begun_after(&self, hands: &NameHands<'_>, stage: usize) -> bool {
        let ends = hands.layout().map(|layout| stage_ends(layout.code()));
        let end = ends.and_then(|ends| ends.get(stage.checked_sub(1)?).copied());
        let last = hands.damaged().last_key_value().map(|(&part, _)| part);
        last.zip(end).is_some_and(|(last, end)| last >= end)
    }

    /// Whether the object's code has a later stage than `stage`.
    fn has_stage_after(&self, hands: &NameHands<'_>, stage: usize) -> bool {
        let layout = hands.layout();
        stage > 0 && layout.is_some_and(|layout| usize::from(layout.code().stages()) > stage)
    }

    /// Returns names in the order in which they are repaired: the objects that can lose the fewest
    /// further nodes first.
    ///
    /// # Errors
    /// As [`Volume::list`].
    pub async fn most_urgent_first(&self, prefix: &str) -> Result<Vec<ObjectName>> {
        let found = self.versions(prefix).await?;
        let urgency = async |(name, versions): (ObjectName, BTreeMap<Listed, usize>)| {
            let is_put = versions
                .last_key_value()
                .is_some_and(|(listed, _)| listed.kind == VersionKind::Put);
            let spare = match is_put {
                true => self.verify(&name, false).await.map_or(0, |verdict| verdict.spare),
                false => usize::MAX,
            };
            (spare, name)
        };
        let looked = stream::iter(found.names).map(urgency).buffer_unordered(AT_ONCE);
        let mut names: Vec<(usize, ObjectName)> = looked.collect().await;
        names.sort();
        Ok(names.into_iter().map(|(_, name)| name).collect())
    }

    /// Adds the parts of the next stage of an object's code. Parts that are there already stay.
    ///
    /// Where a node can create a file only if there is none, one process at a time promotes an
    /// object. Elsewhere several processes may do the same work; they write equal bytes.
    ///
    /// # Errors
    /// As [`Volume::find`]; if the object has no later stage ([`ErrorKind::Parameters`]), if
    /// another process promotes it or it was replaced meanwhile ([`ErrorKind::Busy`]), or if the
    /// parts cannot be made or stored.
    pub async fn promote(&self, name: &ObjectName) -> Result<Repaired> {
        let object = self.find(name, GetOptions::default()).await?;
        let layout = staged(name, &object)?;
        let claim = self.claim(name, object.listed().version.object).await?;
        claim.hold(self.add_stage(name, &object, &layout, false)).await
    }

    /// Adds the last stage to an object. If `is_deep`, parts that are there are read before they
    /// count as whole.
    async fn add_stage(
        &self,
        name: &ObjectName,
        object: &FoundObject,
        layout: &ObjectLayout,
        is_deep: bool,
    ) -> Result<Repaired> {
        let id = object.listed().version.object;
        let mut hands = NameHands::new(self, name);
        hands.is_deep = is_deep;
        hands.keep_layout(layout.clone());
        hands.keep_total(object.length(), object.digest());
        let ends = stage_ends(layout.code());
        let made = ends[ends.len() - 2]..ends[ends.len() - 1];
        let spread = self.spread(id, layout.code());
        let (outcome, _) = drive(Promote::new(self.quorum, id, spread, made), &hands).await;
        let flaws = hands.flaws();
        let refused =
            |kind, what: &str| Error::new(kind, format!("{name}: {what}: {}", told(&flaws)));
        match outcome {
            PromoteOutcome::Promoted { is_owed } => {
                self.unmark_object(BACKLOG, id).await;
                if is_owed {
                    self.mark_object(OWED, id, name).await;
                }
                Ok(Repaired {
                    name: name.clone(),
                    stored: hands.stored(),
                    manifests: 0,
                    is_owed,
                    is_removed: false,
                    flaws,
                    read_bytes: hands.read_bytes(),
                })
            }
            PromoteOutcome::Incomplete { .. } if self.is_lost(&hands, layout, id).await => {
                Err(refused(ErrorKind::TooFewShards, "too few shards are whole"))
            }
            PromoteOutcome::Incomplete { .. } => {
                Err(refused(ErrorKind::TooFewNodes, "some parts could not be made or stored"))
            }
            PromoteOutcome::Superseded => {
                Err(refused(ErrorKind::Busy, "the object was replaced meanwhile"))
            }
            PromoteOutcome::Unsure => {
                Err(refused(ErrorKind::TooFewNodes, "too few nodes answered"))
            }
        }
    }

    /// Whether all nodes answer and the object does not follow from the parts that they have.
    async fn is_lost(
        &self,
        hands: &NameHands<'_>,
        layout: &ObjectLayout,
        object: ObjectId,
    ) -> bool {
        let find = |node| hands.act(Action { node, request: Request::FindParts(object) });
        let mut parts = Vec::new();
        for answer in join_all(self.nodes().map(find)).await {
            let Answer::Parts(found) = answer else { return false };
            parts.extend(found.into_iter().map(|part| part.0));
        }
        !layout.is_solvable_from(parts)
    }

    /// Returns the names that begin with `prefix` of objects that wait for a later stage; those
    /// that have waited longest come first.
    pub async fn backlog(&self, prefix: &str) -> Vec<ObjectName> {
        let mut names = self.waiting(BACKLOG).await.names;
        names.retain(|name| name.as_str().starts_with(prefix));
        names
    }
}

/// Returns the layout of an object whose code has a later stage.
fn staged(name: &ObjectName, object: &FoundObject) -> Result<ObjectLayout> {
    let layout = object.layout().filter(|layout| layout.code().stages() > 1);
    layout.ok_or_else(|| Error::parameters(format!("{name} has a code of one stage")))
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::manifest::{Body, Manifest};
    use crate::node::{Fault, Faulty, FolderNode, Node, NodeCall, Trigger};
    use crate::placement::Member;
    use crate::put::PutOptions;
    use crate::volume::Setup;

    /// Opens a volume over four folders, over which `wrap` puts something.
    fn volume(root: &Path, wrap: &dyn Fn(FolderNode) -> Arc<dyn Node>) -> Volume {
        let node = |disk: usize| {
            let name = format!("disk{disk}");
            std::fs::create_dir_all(root.join(&name)).unwrap();
            let folder = wrap(FolderNode::new(&name, root.join(&name), false));
            (Member { domain: name.clone(), name, is_drained: false }, folder)
        };
        let code = paritas::Code::new(&"2+1".parse().unwrap()).unwrap();
        Volume::new(Setup::new("0".repeat(32), code, (0..4).map(node).collect())).unwrap()
    }

    /// Makes a volume with an object in shards.
    async fn filled(root: &Path, name: &ObjectName) -> Volume {
        let volume = volume(root, &|folder| Arc::new(folder));
        volume.mark_nodes().await.unwrap();
        let source = std::io::Cursor::new(vec![7; 100_000]);
        volume.put(name, source, PutOptions::default()).await.unwrap();
        volume
    }

    #[tokio::test]
    async fn a_damaged_part_is_deleted_if_it_is_surely_still_damaged() {
        let (root, name) = (tempfile::tempdir().unwrap(), ObjectName::new("object").unwrap());
        let healthy = filled(root.path(), &name).await;
        // The nodes of the other volume do not tell what is there.
        let mute = |folder| -> Arc<dyn Node> {
            let mute = Faulty::new(Arc::new(folder), 1);
            Arc::new(mute.with(NodeCall::Stat, Fault::Refuse, Trigger::From(1)))
        };
        let mute = volume(root.path(), &mute);
        let object = healthy.find(&name, GetOptions::default()).await.unwrap();
        let (id, layout) = (object.listed().version.object, object.layout().unwrap());
        let files = |disk: usize| root.path().join(format!("disk{disk}"));
        let part = name.part(id, &layout.file_suffix(0));
        let has = (0..4).find(|&disk| files(disk).join(&part).exists()).unwrap();
        let (home, whole) = (files(has).join(&part), files((has + 1) % 4).join(&part));
        let bytes = std::fs::read(&home).unwrap();
        std::fs::create_dir_all(whole.parent().unwrap()).unwrap();
        std::fs::write(&whole, &bytes).unwrap();
        let mut flipped = bytes.clone();
        flipped[bytes.len() / 2] ^= 1;
        let short = bytes[1..].to_vec();
        for (volume, damaged, is_mended, stays) in [
            (&healthy, &flipped, true, true),
            (&mute, &short, false, true),
            (&healthy, &short, false, false),
            (&healthy, &flipped, false, false),
        ] {
            // A folder that is empty goes with its last file.
            std::fs::create_dir_all(home.parent().unwrap()).unwrap();
            std::fs::write(&home, damaged).unwrap();
            let mut hands = NameHands::new(volume, &name);
            hands.is_deep = true;
            hands.keep_layout(layout.clone());
            hands.keep_total(object.length(), object.digest());
            let find = |node| hands.act(Action { node, request: Request::FindParts(id) });
            join_all(volume.nodes().map(find)).await;
            assert_eq!(hands.damaged().len(), 1);
            if is_mended {
                std::fs::write(&home, &bytes).unwrap();
            }
            volume.remove_damaged(&hands).await;
            assert_eq!(home.exists(), stays);
        }
    }

    /// Whoever can write on the nodes can state any length.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_forged_length_costs_neither_memory_nor_time() {
        let (root, name) = (tempfile::tempdir().unwrap(), ObjectName::new("object").unwrap());
        let volume = filled(root.path(), &name).await;
        let object = volume.find(&name, GetOptions::default()).await.unwrap();
        let path = name.manifest(&object.listed());
        for disk in 0..4 {
            let disk = root.path().join(format!("disk{disk}"));
            let text = std::fs::read(disk.join(&path)).unwrap();
            let mut manifest = Manifest::from_bytes(&path, &text).unwrap();
            manifest.listed.length = 1 << 62;
            std::fs::remove_file(disk.join(&path)).unwrap();
            std::fs::write(disk.join(manifest.path()), manifest.to_bytes().unwrap()).unwrap();
        }
        let object = volume.find(&name, GetOptions::default()).await.unwrap();
        assert_eq!(object.length(), 1 << 62);
        let target = paritas_shards::FileTarget::new(root.path().join("copy"));
        let read = volume.read_to_file(object, target, &|_| {}).await.unwrap_err();
        // A file system that tells how much room it has is asked first.
        assert!([ErrorKind::TooFewShards, ErrorKind::Io].contains(&read.kind()), "{read}");
        let verdict = volume.verify(&name, true).await.unwrap();
        assert_eq!(verdict.state, State::Lost, "{verdict:?}");
        let repaired = volume.repair(&name, true).await.unwrap_err();
        assert_eq!(repaired.kind(), ErrorKind::TooFewShards, "{repaired}");
    }

    #[tokio::test]
    async fn an_object_that_does_not_fit_into_the_memory_is_refused_but_not_called_lost() {
        let (root, name) = (tempfile::tempdir().unwrap(), ObjectName::new("object").unwrap());
        let mut volume = filled(root.path(), &name).await;
        volume.setup.settings.memory = 10_000;
        let refused = |error: Error| {
            assert_eq!(error.kind(), ErrorKind::Memory, "{error}");
            assert!(
                error.to_string().contains("`limits.memory` is 10000; raise it in the volume file")
            );
        };
        let source = std::io::Cursor::new(vec![8; 100_000]);
        refused(volume.put(&name, source, PutOptions::default()).await.unwrap_err());
        let (mut sink, options) = (Vec::new(), GetOptions::default());
        refused(volume.get(&name, None, &mut sink, options, &|_| {}).await.unwrap_err());
        assert_eq!(volume.verify(&name, true).await.unwrap().state, State::Intact);
        // Two shards of three are damaged, so the object may be readable block by block or not.
        let object = volume.find(&name, options).await.unwrap();
        let (id, layout) = (object.listed().version.object, object.layout().unwrap());
        for part in 0..2 {
            let path = name.part(id, &layout.file_suffix(part));
            let files = (0..4).map(|disk| root.path().join(format!("disk{disk}")).join(&path));
            let file = files.into_iter().find(|file| file.exists()).unwrap();
            let mut bytes = std::fs::read(&file).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            std::fs::write(file, bytes).unwrap();
        }
        refused(volume.verify(&name, true).await.unwrap_err());
    }

    #[tokio::test]
    async fn the_layout_of_a_manifest_counts_whatever_code_it_names() {
        let (root, name) = (tempfile::tempdir().unwrap(), ObjectName::new("object").unwrap());
        let volume = filled(root.path(), &name).await;
        let object = volume.find(&name, GetOptions::default()).await.unwrap();
        let path = name.manifest(&object.listed());
        for disk in 0..4 {
            let file = root.path().join(format!("disk{disk}")).join(&path);
            let mut manifest = Manifest::from_bytes(&path, &std::fs::read(&file).unwrap()).unwrap();
            let content = manifest.content.as_mut().unwrap();
            let Body::Shards { code, .. } = &mut content.body else { panic!("{content:?}") };
            *code = "4+2".to_owned();
            std::fs::write(file, manifest.to_bytes().unwrap()).unwrap();
        }
        let repaired = volume.repair(&name, true).await.unwrap();
        assert_eq!((repaired.stored, repaired.is_owed), (0, false), "{repaired:?}");
    }
}
