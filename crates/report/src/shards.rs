//! Lines about objects in shard files: `encode`, `decode`, `verify`, `repair`, `promote`, `info`,
//! `import` and `export`.

use schemars::JsonSchema;
use serde::Serialize;

use crate::codes::ReceptionEntry;
use crate::name::{Name, ObjectNameKey, TargetKey};
use crate::parts::{
    DigestText, FileEntry, IdText, ModeText, MovedFileEntry, ObjectStateWord, RangeEntry,
    SizedFileEntry, TimestampEntry,
};
use crate::shard_parts::{
    AddedShardEntry, DigestCheckWord, FolderEntry, FragmentFormatWord, LayoutWord, MadeShardEntry,
    MovedShardEntry, PartEntry, PartFilesEntry, RewrittenShardEntry, ShardEntry, WrongLaneEntry,
};

/// An object whose shards were found.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ObjectFields {
    /// The object's id, drawn at random by each encoding.
    pub object: IdText,
    /// The object's name.
    #[serde(flatten)]
    pub name: Name<ObjectNameKey>,
    /// The object's code as a canonical SPEC.
    pub code: String,
    /// The stage that the object has reached, from 1.
    pub stage: u8,
    /// The number of stages of the code.
    pub stages: u8,
    /// The length of the object in bytes; null if no shard states it.
    pub length: Option<u64>,
}

/// The object that `encode` made.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct EncodeLine {
    /// The object's id, drawn at random by each encoding.
    pub object: IdText,
    /// The object's name.
    #[serde(flatten)]
    pub name: Name<ObjectNameKey>,
    /// The object's code as a canonical SPEC.
    pub code: String,
    /// The stage that the object has reached, from 1.
    pub stage: u8,
    /// The number of stages of the code.
    pub stages: u8,
    /// The length of the object in bytes.
    pub length: u64,
    /// The BLAKE3 digest of the object's bytes.
    pub digest: DigestText,
    /// The number of bytes of all shard files together.
    pub stored_bytes: u64,
    /// The number of seconds that the work took.
    pub seconds: f64,
    /// The shard files, in the order of their indices.
    pub shards: Vec<MadeShardEntry>,
    /// The warnings, which are also printed on standard error.
    pub warnings: Vec<String>,
}

/// An object that `decode` restored.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DecodeLine {
    /// The object.
    #[serde(flatten)]
    pub object: ObjectFields,
    /// The BLAKE3 digest of the object's bytes.
    pub digest: DigestText,
    /// The number of seconds that the work took.
    pub seconds: f64,
    /// The path of the file that was written.
    #[serde(flatten)]
    pub path: Name<TargetKey>,
    /// The shards that were missing, and the files that turned out to be damaged.
    pub shards: Vec<ShardEntry>,
}

/// The result of `verify` for one object.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct VerifyLine {
    /// The object.
    #[serde(flatten)]
    pub object: ObjectFields,
    /// The state of the object.
    #[schemars(extend("enum" = ["intact", "repairable", "lost", "unknown", "inconsistent"]))]
    pub status: ObjectStateWord,
    /// The number of further shards that may be lost, whichever they are; for an LT code, only some
    /// losses were tried.
    pub tolerable_losses: usize,
    /// Whether the object's bytes have the digest that its shards state; null if not all bytes
    /// could be computed.
    pub digest_ok: Option<bool>,
    /// The number of segments with a missing or damaged lane.
    pub damaged_segments: u64,
    /// The number of seconds that the work took.
    pub seconds: f64,
    /// All files of all shards, and the shards that have no file.
    pub shards: Vec<ShardEntry>,
    /// The folders of the object.
    #[serde(flatten)]
    pub placement: PlacementFields,
    /// The files that `repair` has moved aside for this object, now or earlier.
    pub aside: Vec<SizedFileEntry>,
    /// The number of segments whose parity was recomputed; null without --deep.
    pub recomputed_segments: Option<u64>,
    /// The lanes of parity that differ from what the code computes from the data.
    pub wrong_lanes: Vec<WrongLaneEntry>,
    /// The byte ranges of the object that are beyond repair.
    pub lost_ranges: Vec<RangeEntry>,
    /// The reason why the object is lost or inconsistent, or why its status is unknown; null
    /// otherwise.
    pub reason: Option<String>,
    /// The blocks of an LT code.
    #[serde(flatten)]
    pub blocks: Option<BlocksFields>,
}

/// The blocks of an LT code that are at hand.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct BlocksFields {
    /// For an LT code, the number of blocks of a segment.
    pub blocks: usize,
    /// For an LT code, the number of good blocks in the segment that has the fewest; null if no
    /// segment was read.
    pub good_blocks: Option<usize>,
    /// For an LT code, the number of further blocks that the first lost segment likely needs; null
    /// if no segment is lost, or if even all blocks would not suffice.
    pub likely_needed: Option<usize>,
}

/// The result of `repair` for one object.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RepairLine {
    /// The object.
    #[serde(flatten)]
    pub object: ObjectFields,
    /// The number of seconds that the work took.
    pub seconds: f64,
    /// The number of bytes of blocks that were read.
    pub read_bytes: u64,
    /// The result of comparing the object's bytes with its digest.
    pub digest_check: DigestCheckWord,
    /// The shards that were written.
    pub repaired: Vec<RewrittenShardEntry>,
    /// The files that had the names of shards but are not shards; they are kept under other names.
    pub moved_aside: Vec<MovedFileEntry>,
    /// The files that --remove-moved-aside removed.
    pub removed: Vec<SizedFileEntry>,
    /// The shards that --rebalance moved.
    pub moved: Vec<MovedShardEntry>,
    /// The folders of the object.
    #[serde(flatten)]
    pub placement: PlacementFields,
    /// The warnings, which are also printed on standard error.
    pub warnings: Vec<String>,
    /// The shards whose files could not be opened; they stay as they are.
    pub unreadable: Vec<PartEntry>,
}

/// The files that `repair --clean` removed, which an interrupted command had left behind.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CleanLine {
    /// The id of the object that the files belonged to; null if unknown.
    pub object: Option<IdText>,
    /// The object's name.
    #[serde(flatten)]
    pub name: Name<ObjectNameKey>,
    /// The files that were removed.
    pub removed: Vec<FileEntry>,
}

/// An object without any file that can be read as a shard; `verify` and `repair` report it if they
/// also find other objects.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct UnrecognisedLine {
    /// The object's name, taken from the files' names.
    #[serde(flatten)]
    pub name: Name<ObjectNameKey>,
    /// The state of the object.
    #[schemars(extend("enum" = ["lost"]))]
    pub status: ObjectStateWord,
    /// The files that have the names of the object's shards.
    pub files: Vec<FileEntry>,
}

/// The result of `promote` for one object.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PromoteLine {
    /// The object.
    #[serde(flatten)]
    pub object: ObjectFields,
    /// The number of shards that may be lost after the stage, whichever they are.
    pub tolerance: usize,
    /// The number of bytes of blocks that were read.
    pub read_bytes: u64,
    /// The number of bytes of blocks that were read, without checksums.
    pub read_payload_bytes: u64,
    /// The number of segments in which other blocks were read instead of damaged ones.
    pub damaged_segments: u64,
    /// The indices of shards that are missing.
    pub missing: Vec<usize>,
    /// The number of seconds that the work took.
    pub seconds: f64,
    /// The files that were added.
    pub added: Vec<AddedShardEntry>,
    /// The warnings, which are also printed on standard error.
    pub warnings: Vec<String>,
}

/// An object as the headers of its shards describe it, printed by `info`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct InfoLine {
    /// The object.
    #[serde(flatten)]
    pub object: ObjectFields,
    /// The BLAKE3 digest of the object's bytes; null if no shard states it.
    pub digest: Option<DigestText>,
    /// The mode of the source file, in octal digits; null if unknown.
    pub mode: Option<ModeText>,
    /// The modification time of the source file; null if unknown.
    pub modified: Option<TimestampEntry>,
    /// The layout of a block.
    pub layout: LayoutWord,
    /// The number of bytes of a packet.
    pub packet: usize,
    /// The number of stripes of a full block.
    pub stripes_per_block: usize,
    /// The number of bytes of the object in a full segment.
    pub segment_bytes: u64,
    /// The number of bytes of all shard files that were found.
    pub stored_bytes: u64,
    /// The number of shards after the last stage.
    pub shard_count: usize,
    /// The number of shards that may be lost in the present stage, whichever they are; null for an
    /// LT code.
    pub tolerance: Option<usize>,
    /// The shards and their files, stage by stage.
    pub shards: Vec<PartFilesEntry>,
    /// The folders of the object.
    #[serde(flatten)]
    pub placement: PlacementFields,
    /// The files that `repair` has moved aside for this object, now or earlier.
    pub aside: Vec<SizedFileEntry>,
    /// The indices of shards without a file that could be read and recognised.
    pub missing: Vec<usize>,
    /// For an LT code, the number of blocks that decoding takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ReceptionEntry")]
    pub reception: Option<ReceptionEntry>,
}

/// The object that `import` made.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ImportLine {
    /// The object.
    #[serde(flatten)]
    pub made: EncodeLine,
    /// The format of the fragments.
    pub format: FragmentFormatWord,
    /// The numbers of the fragments that were missing.
    pub missing: Vec<usize>,
}

/// The fragments that `export` made of an object.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ExportLine {
    /// The object.
    #[serde(flatten)]
    pub object: ObjectFields,
    /// The format of the fragments.
    pub format: FragmentFormatWord,
    /// The number of seconds that the work took.
    pub seconds: f64,
    /// The files that were written.
    pub files: Vec<FileEntry>,
}

/// The folders of an object, and those that may be lost.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PlacementFields {
    /// The folders that hold shards; each counts as a disk whose shards are lost together.
    pub folders: Vec<FolderEntry>,
    /// The number of folders that may be lost, whichever they are.
    pub folder_tolerance: usize,
    /// Whether folder_tolerance is certain; false if only some losses were tried.
    pub folder_tolerance_certain: bool,
    /// The folder_tolerance that `repair --rebalance` would reach; null if that is not higher than
    /// now, or if a shard is missing.
    #[schemars(range(min = 1))]
    pub better_folder_tolerance: Option<usize>,
    /// The largest sets of folders that may be lost together, by their indices into folders; null
    /// if there are more than six folders.
    pub losable_folders: Option<Vec<Vec<usize>>>,
}
