//! Promoting objects: adding the parts of the next stage of their code.

use paritas_store::error::{Error, ErrorKind, Result};

use crate::claim::Claim;
use crate::driver::drive;
use crate::files::NameFiles;
use crate::find::{FindJob, find_piece, is_replaced};
use crate::flaw::Flaw;
use crate::found::FoundObject;
use crate::hands::{NameHands, NameLog};
use crate::hints::FolderHints;
use crate::names::{self, ObjectName};
use crate::protocol::{Promote, PromoteOutcome, Version};
use crate::stages::stage_ends;
use crate::transfer::ShardedObject;

/// The result of a repair or a promotion.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Repaired {
    /// The name.
    pub name: ObjectName,
    /// Number of parts that were made or copied.
    pub stored: usize,
    /// Number of manifests that were written.
    pub manifests: usize,
    /// Whether something is still to be repaired.
    pub is_owed: bool,
    /// Whether the object was removed, so that only its remains were deleted.
    pub is_removed: bool,
    /// What was wrong on nodes.
    pub flaws: Vec<Flaw>,
    /// Number of bytes of blocks that were read.
    pub read_bytes: u64,
}

impl Repaired {
    /// Returns the report of work that did only what the log states.
    pub(crate) fn of(name: &ObjectName, log: NameLog) -> Self {
        Self {
            name: name.clone(),
            stored: 0,
            manifests: 0,
            is_owed: false,
            is_removed: false,
            flaws: log.flaws,
            read_bytes: log.read_bytes,
        }
    }

    /// Adds what was done with a piece of the object.
    pub(crate) fn add(&mut self, piece: Self) {
        self.stored += piece.stored;
        self.manifests += piece.manifests;
        self.is_owed |= piece.is_owed;
        self.read_bytes += piece.read_bytes;
        piece.flaws.into_iter().for_each(|flaw| flaw.add_to(&mut self.flaws));
    }
}

/// Promotes an object, or its pieces if it has any, unless another process does.
pub(crate) async fn promote(files: NameFiles<'_>) -> Result<Repaired> {
    let found = FindJob::of(files.cluster, files.name).run().await?;
    let Some((upload, pieces)) = found.upload().zip(found.pieces()) else {
        return promote_found(files, &found).await;
    };
    let mut repaired = Repaired::of(files.name, NameLog::default());
    for piece in pieces {
        let found = find_piece(files, found.listed().version, upload, piece).await?;
        // The last piece may be so short that it is kept in its manifests.
        if found.sharded().is_some() {
            let name = &names::piece(upload, piece.number)?;
            let files = NameFiles { cluster: files.cluster, name };
            repaired.add(promote_found(files, &found).await?);
        }
    }
    Ok(repaired)
}

async fn promote_found(files: NameFiles<'_>, found: &FoundObject) -> Result<Repaired> {
    let job = StageJob::new(files, found, false)?;
    let claim = Claim::of_promotion(files.cluster, files.name, job.object.id).await?;
    claim.hold(job.run()).await
}

/// Adds the last stage to an object.
pub(crate) struct StageJob<'a> {
    files: NameFiles<'a>,
    object: ShardedObject,
    version: Version,
    /// Whether existing parts are read before they count as whole.
    is_deep: bool,
}

impl<'a> StageJob<'a> {
    /// Prepares to add a stage.
    ///
    /// # Errors
    /// If the object's code has no later stage.
    pub fn new(files: NameFiles<'a>, found: &FoundObject, is_deep: bool) -> Result<Self> {
        let object = found.sharded().filter(|object| object.layout.code().stages() > 1);
        let one = || {
            Error::parameters(match found.sharded() {
                Some(_) => format!("{} has a code of one stage", files.name),
                None => format!("{} is kept in its manifests, so it has no stages", files.name),
            })
        };
        Ok(Self {
            files,
            object: object.ok_or_else(one)?,
            version: found.listed().version,
            is_deep,
        })
    }

    pub async fn run(self) -> Result<Repaired> {
        let (NameFiles { cluster, name }, id) = (self.files, self.object.id);
        let code = self.object.layout.code();
        let mut hands = NameHands::new(cluster, name);
        (hands.is_deep, hands.object) = (self.is_deep, Some(self.object.clone()));
        let ends = stage_ends(code);
        let made = ends[ends.len() - 2]..ends[ends.len() - 1];
        let promote = Promote::new(cluster.quorum, id, cluster.spread(id, code), made);
        let (outcome, promote) = drive(promote, &mut hands).await;
        if let Some(error) = hands.error {
            return Err(error);
        }
        let PromoteOutcome::Promoted { is_owed } = outcome else {
            return Err(self.failure(&outcome, &hands.reasons()).await);
        };
        FolderHints::backlog(cluster).remove(id).await;
        if is_owed {
            FolderHints::owed(cluster).leave(id, name).await;
        }
        let stored = promote.stored().iter().count();
        Ok(Repaired { stored, is_owed, ..Repaired::of(name, hands.log) })
    }

    /// Returns the error of a promotion that failed.
    async fn failure(&self, outcome: &PromoteOutcome, reasons: &str) -> Error {
        let is_incomplete = matches!(outcome, PromoteOutcome::Incomplete { .. });
        let is_lost = is_incomplete && self.is_lost().await;
        // The shards of an object that was removed meanwhile are not lost.
        let is_superseded = is_incomplete && is_replaced(self.files, self.version).await.0;
        let (kind, what) = match outcome {
            PromoteOutcome::Incomplete { .. } if is_superseded => {
                (ErrorKind::Busy, "the object was replaced meanwhile")
            }
            PromoteOutcome::Incomplete { .. } if is_lost => {
                (ErrorKind::TooFewShards, "too few shards are whole")
            }
            PromoteOutcome::Incomplete { .. } => {
                (ErrorKind::TooFewNodes, "some parts could not be made or stored")
            }
            PromoteOutcome::Superseded => (ErrorKind::Busy, "the object was replaced meanwhile"),
            PromoteOutcome::Unsure => (ErrorKind::TooFewNodes, "too few nodes answered"),
            PromoteOutcome::Promoted { .. } => (ErrorKind::Internal, "the object is promoted"),
        };
        Error::new(kind, format!("{}: {what}: {reasons}", self.files.name))
    }

    /// Whether all nodes answer and the object cannot be computed from the parts that they have.
    async fn is_lost(&self) -> bool {
        let found = self.files.find_everywhere(&self.object, self.is_deep).await;
        let parts = found.iter().flat_map(|found| found.whole.iter().copied());
        let is_sure = found.iter().all(|found| found.failure.is_none());
        is_sure && !self.object.layout.is_solvable_from(parts)
    }
}
