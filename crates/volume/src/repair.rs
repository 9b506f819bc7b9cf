//! Repairing objects: every part and every manifest on the nodes where they belong.

use futures::future::{join_all, try_join_all};
use futures::stream::{self, StreamExt};
use paritas_shards::ObjectId;
use paritas_store::error::{Error, ErrorKind, Result};

use crate::clock::now;
use crate::cluster::MOST_ATTEMPTS;
use crate::driver::drive;
use crate::files::NameFiles;
use crate::find::{FindJob, find_piece, keeps_changing, unreadable};
use crate::hands::{NameHands, NameLog};
use crate::hints::FolderHints;
use crate::manifest::{Body, Content, Manifest, Piece};
use crate::names::{self, ObjectName};
use crate::promote::{Repaired, StageJob};
use crate::protocol::{Listed, NodeIndex, PartIndex, Repair, RepairOutcome, VersionKind};
use crate::stages::stage_ends;
use crate::transfer::ShardedObject;

/// Number of pieces of an object that are looked for side by side.
const AT_ONCE: usize = 16;
/// Number of pieces that are repaired side by side. Each may take the memory of a put.
const REPAIRS_AT_ONCE: usize = 4;

/// Repairs what stands under one name.
#[derive(Clone, Copy)]
pub(crate) struct NameRepair<'a> {
    pub files: NameFiles<'a>,
    /// Whether all blocks and manifests are read first.
    pub is_deep: bool,
}

impl NameRepair<'_> {
    /// Repairs the object of the name and its pieces, if it has any.
    pub async fn run_with_pieces(self) -> Result<Repaired> {
        let NameFiles { cluster, name } = self.files;
        let mut repaired = self.run().await?;
        if repaired.is_removed {
            return Ok(repaired);
        }
        let found = FindJob::of(cluster, name).run().await?;
        let Some((upload, pieces)) = found.upload().zip(found.pieces()) else {
            return Ok(repaired);
        };
        let version = found.listed().version;
        let repair = async |piece: &Piece| {
            let files = NameFiles { cluster, name: &names::piece(upload, piece.number)? };
            match (NameRepair { files, ..self }).run().await {
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    let found = find_piece(self.files, version, upload, piece).await;
                    Err(found.err().unwrap_or(error))
                }
                repaired => repaired,
            }
        };
        let pieces = stream::iter(pieces).map(repair);
        let mut pieces = pieces.buffered(REPAIRS_AT_ONCE);
        // A piece that cannot be repaired does not keep others from it.
        let mut failure = None;
        while let Some(piece) = pieces.next().await {
            match piece {
                Ok(piece) => repaired.add(piece),
                Err(error) => _ = failure.get_or_insert(error),
            }
        }
        failure.map_or(Ok(repaired), Err)
    }

    /// Repairs the object of the name, but not its pieces.
    pub async fn run(self) -> Result<Repaired> {
        for _ in 0..MOST_ATTEMPTS {
            if let Some(repaired) = self.attempt().await? {
                return Ok(repaired);
            }
        }
        Err(keeps_changing(self.files.name))
    }

    /// Repairs the version that counts. Returns `None` if another one replaced it meanwhile.
    async fn attempt(&self) -> Result<Option<Repaired>> {
        let NameFiles { cluster, name } = self.files;
        let mut hands = NameHands::new(cluster, name);
        (hands.is_deep, hands.asks_everyone) = (self.is_deep, true);
        let repair = Repair::new(cluster.quorum, now());
        let repair = if self.is_deep { repair.reading_all() } else { repair };
        let (outcome, _) = drive(repair, &mut hands).await;
        if let Some(error) = hands.error {
            return Err(error);
        }
        let manifests = hands.manifests_written;
        match outcome {
            RepairOutcome::Repaired { listed, stored, stage, is_owed } => {
                if let Some(bytes) = hands.manifests.get(&listed.version) {
                    match self.has_pieces(listed, bytes).await {
                        Ok(true) => {}
                        Ok(false) => return Ok(None),
                        Err(error) => return Err(self.lost(listed, error).await),
                    }
                }
                let is_removed = listed.kind == VersionKind::Removed;
                let NameHands { files, object, log, is_deep, .. } = hands;
                let id = listed.version.object;
                let rest = RepairRest { files, is_deep, id, object, stage, log };
                let repaired = rest.run(is_owed).await?;
                let stored = stored + repaired.stored;
                Ok(Some(Repaired { stored, manifests, is_removed, ..repaired }))
            }
            RepairOutcome::Collected => {
                Ok(Some(Repaired { is_removed: true, ..Repaired::of(name, hands.log) }))
            }
            RepairOutcome::Superseded => Ok(None),
            RepairOutcome::Unreadable(listed) => {
                let error = unreadable(self.files, listed, &hands.log.flaws).await;
                Err(self.lost(listed, error).await)
            }
            RepairOutcome::TooFewParts(_) if !hands.log.silent.is_empty() => {
                // A silent node may have the parts that are missing.
                let what = "too few shards are whole on the nodes that answered";
                let message = format!("{name}: {what}: {}", hands.reasons());
                Err(Error::new(ErrorKind::TooFewNodes, message))
            }
            RepairOutcome::TooFewParts(listed) => {
                let error = unrepaired(name, &outcome, &hands.reasons());
                Err(self.lost(listed, error).await)
            }
            failed => Err(unrepaired(name, &failed, &hands.reasons())),
        }
    }

    /// Leaves a hint about an object that is lost, so that the status shows it. Returns the error
    /// that tells it.
    async fn lost(&self, listed: Listed, error: Error) -> Error {
        if error.kind() == ErrorKind::TooFewShards {
            let NameFiles { cluster, name } = self.files;
            FolderHints::lost(cluster).leave(listed.version.object, name).await;
        }
        error
    }

    /// Looks for the pieces of a version, if it has any.
    /// Returns `false` if another version replaced this one meanwhile.
    ///
    /// # Errors
    /// If a piece is gone ([`ErrorKind::TooFewShards`]).
    async fn has_pieces(&self, listed: Listed, bytes: &[u8]) -> Result<bool> {
        let manifest = Manifest::from_bytes(&self.files.name.manifest(&listed), bytes)?;
        let Some(Content { body: Body::Pieces { upload, pieces }, .. }) = &manifest.content else {
            return Ok(true);
        };
        for pieces in pieces.chunks(AT_ONCE) {
            let looks = pieces.iter();
            let looks = looks.map(|piece| find_piece(self.files, listed.version, upload, piece));
            match try_join_all(looks).await {
                Err(error) if error.kind() == ErrorKind::Busy => return Ok(false),
                found => _ = found?,
            }
        }
        Ok(true)
    }
}

/// Returns the error of a repair that could not bring a name into order.
fn unrepaired(name: &ObjectName, outcome: &RepairOutcome, reasons: &str) -> Error {
    let (kind, what) = match outcome {
        RepairOutcome::Nothing => {
            return Error::new(ErrorKind::NotFound, format!("there is no object {name}"));
        }
        RepairOutcome::TooFewParts(_) => (ErrorKind::TooFewShards, "too few shards are whole"),
        _ => (ErrorKind::TooFewNodes, "too few nodes answered"),
    };
    Error::new(kind, format!("{name}: {what}: {reasons}"))
}

/// Does the remaining work once all parts of the object's stage are whole.
struct RepairRest<'a> {
    files: NameFiles<'a>,
    is_deep: bool,
    id: ObjectId,
    /// The object, if it is in shards.
    object: Option<ShardedObject>,
    /// The stage that the object is in.
    stage: usize,
    log: NameLog,
}

impl RepairRest<'_> {
    /// Finishes a later stage that was begun, removes damaged copies, and leaves hints that say
    /// what is owed.
    async fn run(self, is_owed: bool) -> Result<Repaired> {
        let NameFiles { cluster, name } = self.files;
        if !is_owed && self.is_begun_after() {
            return self.finish_stage().await;
        }
        self.remove_damaged().await;
        match is_owed {
            true => FolderHints::owed(cluster).leave(self.id, name).await,
            false => FolderHints::owed(cluster).remove(self.id).await,
        }
        self.forget_loss().await;
        // All parts that a promotion had added may have been lost, or the hint may have been.
        if self.has_stage_after() {
            FolderHints::backlog(cluster).leave(self.id, name).await;
        }
        Ok(Repaired { is_owed, ..Repaired::of(name, self.log) })
    }

    /// Finishes a stage that was begun, although none of its parts is whole.
    async fn finish_stage(self) -> Result<Repaired> {
        let NameFiles { cluster, name } = self.files;
        let found = FindJob::of(cluster, name).run().await?;
        let added = StageJob::new(self.files, &found, self.is_deep)?.run().await?;
        self.remove_damaged().await;
        self.forget_loss().await;
        if !added.is_owed {
            FolderHints::owed(cluster).remove(self.id).await;
        }
        let mut flaws = self.log.flaws;
        added.flaws.into_iter().for_each(|flaw| flaw.add_to(&mut flaws));
        let read_bytes = self.log.read_bytes + added.read_bytes;
        Ok(Repaired { flaws, read_bytes, ..added })
    }

    /// Removes the hint that the object is lost. Perhaps only a deep repair finds the damage that
    /// made it lost.
    async fn forget_loss(&self) {
        if self.is_deep {
            FolderHints::lost(self.files.cluster).remove(self.id).await;
        }
    }

    /// Deletes damaged copies of parts that are whole on other nodes. Each is looked at once more
    /// just before, because another repair may have written it anew, and removed the other copies.
    /// A copy that cannot be looked at stays: its node may have failed when the copy was found
    /// damaged.
    async fn remove_damaged(&self) {
        let Some(object) = &self.object else { return };
        let delete = async |(part, node): (PartIndex, NodeIndex)| {
            if self.files.is_damaged(node, object, part.0, self.is_deep).await {
                // A copy that cannot be deleted stays damaged, and the next verification reports
                // it.
                let place = self.files.place(node, object, part.0);
                let _ = place.node.delete(&place.path).await;
            }
        };
        let damaged = self.log.damaged.iter().filter(|(part, _)| self.log.whole.has(*part));
        join_all(damaged.map(delete)).await;
    }

    /// Whether a damaged part of a later stage was found. The stage was begun, though nothing whole
    /// is left of it, and is to be finished.
    fn is_begun_after(&self) -> bool {
        let ends = self.object.as_ref().map(|object| stage_ends(object.layout.code()));
        let end = ends.and_then(|ends| ends.get(self.stage.checked_sub(1)?).copied());
        let last = self.log.damaged.parts().last().map(|part| part.0);
        last.zip(end).is_some_and(|(last, end)| last >= end)
    }

    /// Whether the object's code has a later stage.
    fn has_stage_after(&self) -> bool {
        let stages = self.object.as_ref().map_or(0, |object| object.layout.code().stages());
        self.stage > 0 && usize::from(stages) > self.stage
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use paritas_store::state::State;

    use super::*;
    use crate::found::GetOptions;
    use crate::node::{Fault, Faulty, FolderNode, Node, NodeCall, Trigger};
    use crate::placement::Member;
    use crate::put::{PutJob, PutOptions};
    use crate::setup::Setup;
    use crate::volume::Volume;

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
        let (id, layout) = (object.listed().version.object, object.sharded().unwrap().layout);
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
            let files = NameFiles { cluster: &volume.cluster, name: &name };
            let mut log = NameLog::default();
            let object = object.sharded().unwrap();
            log.take_all(files, files.find_everywhere(&object, true).await);
            assert_eq!(log.damaged.parts().count(), 1);
            if is_mended {
                std::fs::write(&home, &bytes).unwrap();
            }
            let (stage, object) = (1, Some(object));
            let rest = RepairRest { files, is_deep: true, id, object, stage, log };
            rest.remove_damaged().await;
            assert_eq!(home.exists(), stays);
        }
    }

    /// Anybody who can write to the nodes can state any length.
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

    /// No upload makes a piece that is in pieces. One could contain another for ever.
    #[tokio::test]
    async fn a_piece_in_pieces_is_refused() {
        let (root, name) = (tempfile::tempdir().unwrap(), ObjectName::new("object").unwrap());
        let volume = volume(root.path(), &|folder| Arc::new(folder));
        volume.mark_nodes().await.unwrap();
        // Writes an object whose only piece is the object `piece`, which is in pieces or not.
        let put_around = async |name: &ObjectName, upload: &str, piece: &ObjectName| {
            let found = FindJob::of(&volume.cluster, piece).run().await.unwrap();
            let piece = Piece { number: 1, length: found.length(), digest: found.digest() };
            let job = PutJob::new(&volume.cluster, name, PutOptions::default()).unwrap();
            job.run_in_pieces(upload, vec![piece]).await.map_err(|failed| failed.error).unwrap();
        };
        let [inner, outer] = ["inner", "outer"].map(|upload| names::piece(upload, 1).unwrap());
        let job = PutJob::new(&volume.cluster, &inner, PutOptions::default()).unwrap();
        job.run(Box::new(std::io::Cursor::new(vec![7; 1000]))).await.unwrap();
        put_around(&name, "inner", &inner).await;
        assert_eq!(volume.verify(&name, true).await.unwrap().state, State::Intact);
        put_around(&outer, "inner", &inner).await;
        put_around(&name, "outer", &outer).await;
        let refused = |error: Error| {
            assert_eq!(error.kind(), ErrorKind::NotRecognised, "{error}");
            assert!(error.to_string().contains("is in pieces itself"), "{error}");
        };
        refused(volume.verify(&name, true).await.unwrap_err());
        refused(volume.repair(&name, true).await.unwrap_err());
        let (mut sink, options) = (Vec::new(), GetOptions::default());
        refused(volume.get(&name, None, &mut sink, options, &|_| {}).await.unwrap_err());
        assert!(sink.is_empty());
    }

    #[tokio::test]
    async fn an_object_that_does_not_fit_into_the_memory_is_refused_but_not_called_lost() {
        let (root, name) = (tempfile::tempdir().unwrap(), ObjectName::new("object").unwrap());
        let mut volume = filled(root.path(), &name).await;
        volume.cluster.setup.settings.memory = 10_000;
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
        let (id, layout) = (object.listed().version.object, object.sharded().unwrap().layout);
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
