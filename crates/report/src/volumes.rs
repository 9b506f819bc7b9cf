//! Lines about volumes: the commands of `volume`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::name::{Name, PathKey, TargetKey};
use crate::parts::{DigestText, IdText, ModeText, ObjectStateWord, TimestampEntry};

/// The volume that `volume init` prepared.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct VolumeInitLine {
    /// The path of the volume file.
    #[serde(flatten)]
    pub path: Name<PathKey>,
    /// The name of the volume.
    pub name: String,
    /// The id of the volume.
    pub id: IdText,
    /// The canonical SPEC of the code.
    pub code: String,
    /// The number of nodes that may be lost, whichever they are.
    pub tolerance: usize,
    /// The nodes, in the order of the volume file.
    pub nodes: Vec<ProbedNodeEntry>,
    /// The warnings, which are also printed on standard error.
    pub warnings: Vec<String>,
}

/// A version of an object in a volume.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct VersionFields {
    /// The name of the object.
    pub name: String,
    /// The object's id, drawn at random by each encoding.
    pub object: IdText,
    /// The generation of the version: of two versions of a name, the one with the higher generation
    /// is valid.
    pub generation: u64,
    /// The length of the object in bytes.
    pub length: u64,
}

/// An object that was found in a volume, and how sure that is.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FoundFields {
    /// The version.
    #[serde(flatten)]
    pub version: VersionFields,
    /// Whether enough nodes answered to be sure that this is the newest version.
    pub sure: bool,
    /// The problems that were found on nodes.
    pub flaws: Vec<NodeFlawEntry>,
}

/// An object that `volume put` stored.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct VolumePutLine {
    /// The version.
    #[serde(flatten)]
    pub version: VersionFields,
    /// The BLAKE3 digest of the object's bytes.
    pub digest: DigestText,
    /// Whether the object is kept in its manifests.
    pub inline: bool,
    /// The nodes of its shards or manifests.
    pub nodes: Vec<String>,
    /// Whether the object still needs a repair.
    pub owed: bool,
    /// The number of nodes that may be lost before a repair, whichever they are.
    pub spare: usize,
    /// The problems that were found on nodes.
    pub flaws: Vec<NodeFlawEntry>,
    /// With --resume, the number of bytes that an earlier put had stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_bytes: Option<u64>,
    /// The number of seconds that the work took.
    pub seconds: f64,
}

/// An object that `volume get` wrote.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct VolumeGetLine {
    /// The object.
    #[serde(flatten)]
    pub found: FoundFields,
    /// The BLAKE3 digest of the object's bytes.
    pub digest: DigestText,
    /// The path of the file that was written.
    #[serde(flatten)]
    pub path: Name<TargetKey>,
    /// The number of bytes of blocks that nodes were asked for.
    pub read_bytes: u64,
    /// The number of seconds that the work took.
    pub seconds: f64,
}

/// The part of an object that `volume cat` printed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct VolumeCatLine {
    /// The object.
    #[serde(flatten)]
    pub found: FoundFields,
    /// The position of the first byte printed, counted from 0.
    pub start: u64,
    /// The position after the last byte printed.
    pub end: u64,
    /// The number of bytes of blocks that nodes were asked for.
    pub read_bytes: u64,
    /// The number of seconds that the work took.
    pub seconds: f64,
}

/// An object that `volume ls` found.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct VolumeLsLine {
    /// The version.
    #[serde(flatten)]
    pub version: VersionFields,
}

/// The facts that `volume stat` prints about an object.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct VolumeStatLine {
    /// The object.
    #[serde(flatten)]
    pub found: FoundFields,
    /// The BLAKE3 digest of the object's bytes.
    pub digest: DigestText,
    /// The canonical SPEC of the object's code; null if it is kept in its manifests or in pieces.
    pub code: Option<String>,
    /// The node on which a reader looks first for each part (of codes without stages, each shard is
    /// one part): the one it was written to, from which a repair may have moved it since, or its
    /// home if that node has left the volume; null if neither is known; empty if the object is kept
    /// in its manifests or in pieces.
    pub nodes: Vec<Option<String>>,
    /// The permissions of the source in octal; null if it had none.
    pub mode: Option<ModeText>,
    /// The modification time of the source; null if unknown.
    pub modified: Option<TimestampEntry>,
    /// The time at which the object was written, in seconds since the beginning of 1970.
    pub created: u64,
    /// For an object in pieces, the number of pieces; null for other objects.
    pub pieces: Option<usize>,
    /// The notes that programs stored about the object, such as its type.
    pub notes: BTreeMap<String, String>,
}

/// The addresses of `serve`, printed when it begins to answer.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ServeLine {
    /// The address to give to S3 clients.
    pub endpoint: String,
    /// The address of the page about the volume.
    pub page: String,
}

/// A name that `volume rm` removed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct VolumeRmLine {
    /// The name of the object.
    pub name: String,
    /// The generation of the version: of two versions of a name, the one with the higher generation
    /// is valid.
    pub generation: u64,
    /// Whether a repair must still remove something.
    pub owed: bool,
    /// The problems that were found on nodes.
    pub flaws: Vec<NodeFlawEntry>,
}

/// The result of `volume verify` for one object.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct VolumeVerifyLine {
    /// The version.
    #[serde(flatten)]
    pub version: VersionFields,
    /// The state of the object.
    #[schemars(extend("enum" = ["intact", "repairable", "lost", "unknown"]))]
    pub status: ObjectStateWord,
    /// The stage that the object has reached, from 1; 0 if it is kept in its manifests or in
    /// pieces.
    pub stage: u8,
    /// The number of stages of the code; 0 if the object is kept in its manifests or in pieces.
    pub stages: u8,
    /// The indices of the shards that are whole on no node; always empty for an object in pieces,
    /// whose lost shards are among the flaws.
    pub missing: Vec<usize>,
    /// The number of further nodes that may be lost, whichever they are.
    pub spare: usize,
    /// The number of bytes of blocks that were read from nodes.
    pub read_bytes: u64,
    /// The problems that were found on nodes.
    pub flaws: Vec<NodeFlawEntry>,
    /// The number of seconds that the work took.
    pub seconds: f64,
}

/// The files of an object that were written.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct WrittenFields {
    /// The name of the object.
    pub name: String,
    /// The number of shards that were written.
    pub stored: usize,
    /// Whether the object still needs a repair.
    pub owed: bool,
    /// The number of bytes of blocks that were read from nodes.
    pub read_bytes: u64,
    /// The problems that were found on nodes.
    pub flaws: Vec<NodeFlawEntry>,
    /// The number of seconds that the work took.
    pub seconds: f64,
}

/// What `volume repair` did to one object.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct VolumeRepairLine {
    /// What was written.
    #[serde(flatten)]
    pub written: WrittenFields,
    /// The number of manifests that were written.
    pub manifests: usize,
    /// Whether the name had been removed, so that only remains were deleted.
    pub removed: bool,
}

/// The remains of interrupted commands that `volume repair` collected.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct VolumeCollectLine {
    /// The number of objects whose remains were removed.
    pub objects: usize,
}

/// What `volume promote` added to one object.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct VolumePromoteLine {
    /// What was written.
    #[serde(flatten)]
    pub written: WrittenFields,
}

/// The result of `volume reencode` for one object.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct VolumeReencodeLine {
    /// The name of the object.
    pub name: String,
    /// The code of the volume.
    pub code: String,
    /// Whether the object had another code and was encoded anew.
    pub changed: bool,
    /// Whether the object still needs a repair.
    pub owed: bool,
    /// The problems that were found on nodes.
    pub flaws: Vec<NodeFlawEntry>,
    /// The number of seconds that the work took.
    pub seconds: f64,
}

/// The nodes that `volume add` added.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct VolumeAddLine {
    /// The nodes, in the order in which they were given.
    pub nodes: Vec<ProbedNodeEntry>,
    /// The number of nodes that may be lost, whichever they are.
    pub tolerance: usize,
    /// The warnings, which are also printed on standard error.
    pub warnings: Vec<String>,
}

/// What `volume drain` did to a node.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct VolumeDrainLine {
    /// The name of the node.
    pub node: String,
    /// The number of shards that the node still has; null if it does not answer.
    pub shards: Option<usize>,
    /// The number of shards that the node had before and no longer has; null if it does not answer.
    pub moved: Option<usize>,
    /// Whether the node may be removed from the volume file.
    pub removable: bool,
    /// Whether the node was removed from the volume file.
    pub removed: bool,
}

/// The files that `volume replace` copied to a node before the repair.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct VolumeReplaceLine {
    /// The name of the node.
    pub node: String,
    /// The number of manifests that were copied.
    pub manifests: usize,
}

/// The speed of a volume, measured by `volume bench`.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct VolumeBenchLine {
    /// What was measured.
    pub op: VolumeOperationWord,
    /// The bytes of an object.
    #[schemars(range(min = 1))]
    pub size: u64,
    /// The number of objects side by side; null without --objects.
    #[schemars(range(min = 1))]
    pub objects: Option<usize>,
    /// The number of rounds.
    #[schemars(range(min = 1))]
    pub rounds: usize,
    /// The seconds that the volume took, as the median of all rounds.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub seconds_median: f64,
    /// The seconds of the fastest round.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub seconds_min: f64,
    /// The seconds of the slowest round.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub seconds_max: f64,
    /// The median rate in bytes per second, or with --objects in objects per second.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub rate: f64,
    /// The seconds that plain files took, as the median of all rounds.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub plain_seconds_median: f64,
    /// The seconds of the fastest round of plain files.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub plain_seconds_min: f64,
    /// The seconds of the slowest round of plain files.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub plain_seconds_max: f64,
    /// The rate of plain files, in the unit of rate.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub plain_rate: f64,
    /// The speed divided by that of plain files, as the median of all rounds.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub ratio: f64,
    /// The smallest ratio of a round.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub ratio_min: f64,
    /// The largest ratio of a round.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub ratio_max: f64,
}

/// The state of a volume.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct VolumeStatusLine {
    /// The number of nodes that may be lost, whichever they are.
    pub tolerance: usize,
    /// The number of further nodes that must become usable before puts and removals can succeed.
    pub lacking_for_puts: usize,
    /// The nodes, in the order of the volume file, but drained ones last.
    pub nodes: Vec<NodeStatusEntry>,
    /// The objects that wait for repair, because some of their files are not where they belong.
    pub owed: WaitingEntry,
    /// The objects that a repair could not make whole.
    pub lost: WaitingEntry,
    /// The objects that wait for a later stage of their code.
    pub backlog: WaitingEntry,
    /// The progress of the scrub.
    pub scrub: ScrubEntry,
}

/// A problem that was found on a node of a volume.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct NodeFlawEntry {
    /// The name of the node.
    pub node: String,
    /// The index of the shard; null if the problem is not about a shard.
    pub shard: Option<usize>,
    /// A description of the problem.
    pub message: String,
    /// The number of requests that met the problem.
    #[schemars(range(min = 1))]
    pub count: usize,
}

/// A node of a volume, and the facts that were found out about it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ProbedNodeEntry {
    /// The name of the node.
    pub name: String,
    /// The failure domain.
    pub domain: String,
    /// What the node can do.
    pub abilities: AbilitiesEntry,
    /// The seconds by which the node's clock is ahead of this machine's; null if it could not be
    /// measured by a file.
    pub clock_ahead: Option<f64>,
}

/// What a node can do.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct AbilitiesEntry {
    /// Whether files can be written and deleted.
    pub write: bool,
    /// Whether files can be listed.
    pub list: bool,
    /// Whether the node refuses to create a file that exists.
    pub create: bool,
    /// Whether a range can be read without the whole file.
    pub ranges: bool,
    /// Whether a file can be sent while its bytes are still arriving.
    pub streams: bool,
    /// Whether names that differ only in upper and lower case are different files; if not, names
    /// are stored in another form.
    pub cases: bool,
}

/// A node of a volume, and its state.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct NodeStatusEntry {
    /// The name of the node.
    pub name: String,
    /// The failure domain.
    pub domain: String,
    /// Whether the node is drained, so that nothing new is stored there.
    pub drained: bool,
    /// The reason why the node cannot be used now; null if it can.
    pub problem: Option<String>,
    /// The seconds that it took to look at the node.
    pub answer_seconds: f64,
    /// The number of bytes that the node has left for new files; null if it cannot tell, as buckets
    /// and hosts.
    pub free_bytes: Option<u64>,
}

/// Objects that wait for something.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct WaitingEntry {
    /// The number of objects.
    pub objects: usize,
    /// The seconds that the oldest of them has waited; null if there is none.
    pub oldest_seconds: Option<u64>,
}

/// The progress of a scrub.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ScrubEntry {
    /// The pass that has begun and not ended; null if there is none.
    pub pass: Option<ScrubPassEntry>,
    /// The last full pass; null if there was none.
    pub last: Option<FullPassEntry>,
}

/// A pass of a scrub that has begun and not ended.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ScrubPassEntry {
    /// The time at which the pass began, in seconds since 1970.
    pub began: u64,
    /// The name after which the pass continues; empty at the beginning.
    pub after: String,
    /// The number of names that are done.
    pub done: usize,
    /// The number of all names.
    pub names: usize,
    /// The number of objects that were not confirmed whole: in need of repair, lost, or on nodes
    /// that did not answer.
    pub left: usize,
}

/// A full pass of a scrub.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct FullPassEntry {
    /// The time at which the pass began, in seconds since 1970.
    pub began: u64,
    /// The time at which the pass ended, in seconds since 1970.
    pub ended: u64,
    /// The number of names.
    pub names: usize,
    /// The number of objects that were not confirmed whole: in need of repair, lost, or on nodes
    /// that did not answer.
    pub left: usize,
}

/// An operation on a volume that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VolumeOperationWord {
    /// Storing objects.
    Put,
    /// Reading objects.
    Get,
    /// Reading a range of an object.
    Range,
    /// Adding the parity of a later stage.
    Promote,
}
