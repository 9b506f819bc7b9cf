//! Parts that lines about objects in shard files share: shards, their files, lanes and folders.

use schemars::JsonSchema;
use serde::Serialize;

use crate::name::{FolderKey, FormerPathKey, Name, PathKey};

/// A folder, and the shards in it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FolderEntry {
    /// The path of the folder.
    #[serde(flatten)]
    pub path: Name<FolderKey>,
    /// The indices of the shards, from 0.
    pub shards: Vec<usize>,
}

/// A shard file that was written.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct MadeShardEntry {
    /// The index of the shard, from 0.
    pub index: usize,
    /// The path of the file.
    #[serde(flatten)]
    pub path: Name<PathKey>,
}

/// A file of a shard, or a shard that has no file.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(extend(
    "if" = {"required": ["notes"]},
    "then" = {
        "required": ["stage", "bad_lanes", "first_bad_offset", "misnamed"],
        "oneOf": [{"required": ["path"]}, {"required": ["path_bytes"]}],
    },
    "else" = {"not": {"anyOf": [
        {"required": ["path"]}, {"required": ["path_bytes"]}, {"required": ["bad_lanes"]},
        {"required": ["first_bad_offset"]}, {"required": ["misnamed"]},
    ]}},
))]
pub struct ShardEntry {
    /// The index of the shard, from 0.
    pub index: usize,
    /// The stage of the shard's part, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u8")]
    pub stage: Option<u8>,
    /// The state of the file, or of the shard without a file.
    pub state: ShardStateWord,
    /// The file.
    #[serde(flatten)]
    pub file: Option<ShardFileFields>,
}

/// The file of a shard.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ShardFileFields {
    /// The path of the file.
    #[serde(flatten)]
    pub path: Name<PathKey>,
    /// The number of lanes that were read and are damaged or misplaced.
    pub bad_lanes: u64,
    /// The offset in the file of the first such lane; null if there is none.
    pub first_bad_offset: Option<u64>,
    /// Descriptions of all problems of the file.
    pub notes: Vec<String>,
    /// Whether the file has been renamed, which does no harm.
    pub misnamed: bool,
}

/// A part of a shard: the cells that one stage added.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct PartEntry {
    /// The index of the shard, from 0.
    pub index: usize,
    /// The stage of the shard's part, from 1.
    pub stage: u8,
}

/// A part of a shard, and its files.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PartFilesEntry {
    /// The part.
    #[serde(flatten)]
    pub part: PartEntry,
    /// The files of the part, complete ones first.
    pub files: Vec<HeaderFileEntry>,
}

/// A shard file as its headers describe it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct HeaderFileEntry {
    /// The path of the file.
    #[serde(flatten)]
    pub path: Name<PathKey>,
    /// The length of the file in bytes.
    pub bytes: u64,
    /// Whether the front header is readable.
    pub header: bool,
    /// Whether a footer was found.
    pub footer: bool,
    /// Descriptions of the problems of the file as a whole.
    pub notes: Vec<String>,
}

/// A shard that was written anew.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RewrittenShardEntry {
    /// The part of the shard.
    #[serde(flatten)]
    pub part: PartEntry,
    /// The state of the shard before the repair.
    pub was: ShardStateWord,
    /// The path of the file.
    #[serde(flatten)]
    pub path: Name<PathKey>,
}

/// A file that a later stage added.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct AddedShardEntry {
    /// The part of the shard.
    #[serde(flatten)]
    pub part: PartEntry,
    /// The path of the file.
    #[serde(flatten)]
    pub path: Name<PathKey>,
}

/// A shard file that was moved to another folder.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct MovedShardEntry {
    /// The part of the shard.
    #[serde(flatten)]
    pub part: PartEntry,
    /// The path that the file has now.
    #[serde(flatten)]
    pub path: Name<PathKey>,
    /// The path that the file had before.
    #[serde(flatten)]
    pub from: Name<FormerPathKey>,
}

/// A lane of a shard that differs from what the code computes from the data.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct WrongLaneEntry {
    /// The part of the shard.
    #[serde(flatten)]
    pub part: PartEntry,
    /// The number of the lane in the shard.
    pub lane: u32,
    /// The first segment in which the lane is wrong.
    pub first_segment: u64,
    /// The number of segments in which the lane is wrong.
    pub segments: u64,
}

/// The state of a shard, or of one of its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "state")]
pub enum ShardStateWord {
    /// It is as it was written.
    Intact,
    /// Some of it is damaged.
    Damaged,
    /// It is not there.
    Missing,
    /// It could not be opened.
    Unreadable,
    /// It differs from what the code computes from the data.
    Inconsistent,
}

/// The result of comparing an object's bytes with its digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DigestCheckWord {
    /// The bytes have the digest.
    Right,
    /// The bytes have another digest.
    Wrong,
    /// The bytes were not compared.
    Unchecked,
}

/// The layout of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LayoutWord {
    /// In packets of bits.
    Packets,
    /// In words, each a symbol of a field.
    Words,
}

/// A format of fragments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FragmentFormatWord {
    /// The format of zfec.
    Zfec,
    /// The format of klauspost/reedsolomon.
    Klauspost,
    /// The format of ISA-L.
    Isal,
    /// The format of HDFS.
    Hdfs,
    /// The format of Jerasure.
    Jerasure,
}
