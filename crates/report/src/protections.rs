//! Lines about protected files, printed by `protect`, `verify`, `repair` and `info`.

use schemars::JsonSchema;
use serde::Serialize;

use crate::name::{DiskFolderKey, MovedToKey, Name, PathKey, RootKey};
use crate::parts::{
    FileEntry, IdText, MovedFileEntry, ObjectStateWord, RangeEntry, SizedFileEntry, TimestampEntry,
};

/// A protection, or a part of one.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ProtectionFields {
    /// The id of the protection.
    pub id: IdText,
    /// The label of the protection.
    pub label: String,
    /// The root of the protection.
    #[serde(flatten)]
    pub root: Name<RootKey>,
    /// The paths that the report is about; empty if it is about the whole protection.
    pub parts: Vec<FileEntry>,
    /// The number of protected files; a file with several names counts once.
    pub files: u64,
    /// The number of bytes of all protected files.
    pub bytes: u64,
}

/// The parity that `protect` wrote.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ProtectLine {
    /// The id of the protection; null if `--dry-run` made none.
    pub id: Option<IdText>,
    /// The label of the protection.
    pub label: String,
    /// The root of the protection.
    #[serde(flatten)]
    pub root: Name<RootKey>,
    /// Whether nothing was written because of `--dry-run`, and the line says what would be.
    pub dry_run: bool,
    /// The changes since the parity was written; null without `--update`.
    #[serde(flatten)]
    pub changes: ChangesFields,
    /// The number of files that the written parity protects.
    pub files: u64,
    /// The number of bytes of these files.
    pub bytes: u64,
    /// The blocks.
    #[serde(flatten)]
    pub blocks: ProtectedLayerEntry,
    /// The number of bytes of the parity blocks.
    pub parity_bytes: u64,
    /// The number of bytes of the catalogue.
    pub catalogue_bytes: u64,
    /// The number of bytes of all parity files that were written.
    pub stored_bytes: u64,
    /// The number of bytes that were read.
    pub read_bytes: u64,
    /// The number of passes over the files.
    pub passes: u64,
    /// With `--update`, the paths that could not be examined, whose protection stays as it was.
    pub held: Vec<SkippedEntry>,
    /// The parity files that were written.
    pub parity_files: Vec<FileEntry>,
    /// With `--dry-run`, the disks, and the number of bytes that would be written to each.
    pub disks: Vec<DiskEntry>,
    /// The patterns of `--exclude` that match nothing.
    pub unmatched_excludes: Vec<String>,
    /// Everything that was found but is not protected.
    pub skipped: Vec<SkippedEntry>,
    /// The number of seconds that the work took.
    pub seconds: f64,
}

/// The changes since parity was written.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct ChangesFields {
    /// What `--update` did; null without it.
    pub updated: Option<UpdateWord>,
    /// The number of files that keep their parity; null without `--update`.
    pub kept: Option<u64>,
    /// The number of files that are new; null without `--update`.
    pub added: Option<usize>,
    /// The number of files whose bytes changed under the same name; null without `--update`.
    pub changed: Option<usize>,
    /// The number of files that no longer exist under any name; null without `--update`.
    pub gone: Option<usize>,
    /// The new files; with `--dry-run` and without `--update`, all files.
    pub added_files: Vec<FileEntry>,
    /// The files whose bytes changed under the same name.
    pub changed_files: Vec<FileEntry>,
    /// The files that no longer exist.
    pub gone_files: Vec<FileEntry>,
}

/// The result of `verify` for protected files.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ProtectVerifyLine {
    /// The protection.
    #[serde(flatten)]
    pub protection: ProtectionFields,
    /// The state of the protection; unknown if some of it may not be read.
    #[schemars(extend("enum" = ["intact", "repairable", "lost", "unknown"]))]
    pub status: ObjectStateWord,
    /// Whether only sizes and times were compared.
    pub quick: bool,
    /// The number of files whose bytes are right, under their own name or another.
    pub intact_files: u64,
    /// Everything protected that differs from its state when it was protected.
    pub findings: Vec<FindingEntry>,
    /// The parity files that are not intact.
    pub parity: Vec<ParityFindingEntry>,
    /// The layers, oldest first, each with its own blocks.
    pub layers: Vec<VerifiedLayerEntry>,
    /// The number of layers whose catalogue is lost.
    pub unreadable_layers: usize,
    /// Files that are not protected yet.
    pub new: Vec<FileEntry>,
    /// Copies of what repairs replaced.
    pub replaced: Vec<FileEntry>,
    /// Everything in the tree that cannot be protected.
    pub skipped: Vec<SkippedEntry>,
    /// The number of seconds that the work took.
    pub seconds: f64,
}

/// The result of `repair` for protected files.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ProtectRepairLine {
    /// The protection.
    #[serde(flatten)]
    pub protection: ProtectionFields,
    /// Whether nothing was written because of `--dry-run`, and the line says what would be.
    pub dry_run: bool,
    /// The state after the repair, or the current state with `--dry-run`; repairable if changed
    /// files, or with `--to` damaged parity, were left as they are; unknown if something could not
    /// be written or read.
    #[schemars(extend("enum" = ["intact", "repaired", "repairable", "lost", "unknown"]))]
    pub status: ObjectStateWord,
    /// Everything that was restored, with its current path.
    pub restored: Vec<FileEntry>,
    /// The files that were moved back.
    pub moved_back: Vec<MovedFileEntry>,
    /// Everything that was replaced, with its old and its current path.
    pub kept: Vec<MovedFileEntry>,
    /// The copies that --clean removed; earlier repairs had kept them of what they replaced.
    pub cleaned: Vec<FileEntry>,
    /// Kinds of attributes that a file system did not keep, such as modes.
    pub not_kept: Vec<&'static str>,
    /// The parity files that were written anew.
    pub parity: Vec<FileEntry>,
    /// The changed files that were left as they are.
    pub changed: Vec<FileEntry>,
    /// The files that cannot be computed, because too few blocks are at hand; with the status
    /// `unknown`, they may be once everything can be read.
    pub lost: Vec<FileEntry>,
    /// Everything else that could not be restored, with the reason.
    pub failed: Vec<SkippedEntry>,
    /// With `--dry-run`, the disks, and the number of bytes that would be written to each.
    pub disks: Vec<DiskEntry>,
    /// The number of data blocks that were lost.
    pub lost_blocks: u64,
    /// The number of further blocks that are needed to compute the lost blocks.
    pub needed: u64,
    /// The number of seconds that the work took.
    pub seconds: f64,
}

/// The description of a protection, printed by `info`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ProtectInfoLine {
    /// The protection.
    #[serde(flatten)]
    pub protection: ProtectionFields,
    /// The time at which the newest layer was made.
    pub created: TimestampEntry,
    /// The requested amount of parity, as a fraction of the data.
    pub redundancy: f64,
    /// The patterns of paths that are left out.
    pub excludes: Vec<String>,
    /// The number of protected folders, links and further names of files.
    pub others: u64,
    /// The number of bytes of all parity blocks.
    pub parity_bytes: u64,
    /// The number of bytes of all parity files.
    pub stored_bytes: u64,
    /// The layers, oldest first, each with its own blocks.
    pub layers: Vec<ProtectedLayerEntry>,
    /// The parity files that were found.
    pub parity_files: Vec<SizedFileEntry>,
    /// Copies of what repairs replaced.
    pub replaced: Vec<SizedFileEntry>,
}

/// Something that is not protected, or was not restored.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SkippedEntry {
    /// The path.
    #[serde(flatten)]
    pub path: Name<PathKey>,
    /// The reason.
    pub reason: String,
}

/// Something protected that differs from its state when it was protected.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FindingEntry {
    /// The path.
    #[serde(flatten)]
    pub path: Name<PathKey>,
    /// The kind of the path when it was protected.
    pub kind: ProtectedKindWord,
    /// The current state.
    pub state: FindingStateWord,
    /// The size of the file in bytes when it was protected.
    pub size: u64,
    /// Whether the modification time is the one that was protected.
    pub has_time: bool,
    /// For a damaged or changed file, the byte ranges of lost blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<RangeEntry>")]
    pub ranges: Option<Vec<RangeEntry>>,
    /// For a moved file, the path of the file with its bytes.
    #[serde(flatten)]
    pub moved_to: Option<Name<MovedToKey>>,
    /// For an unreadable file, the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub reason: Option<String>,
}

/// A parity file that is not intact.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ParityFindingEntry {
    /// The path.
    #[serde(flatten)]
    pub path: Name<PathKey>,
    /// Whether it is missing, or nothing in it can be recognised.
    pub missing: bool,
    /// Whether it may not be read, so that its state is unknown.
    pub unreadable: bool,
    /// The number of damaged parity blocks in the file.
    pub damaged_blocks: u64,
    /// The number of damaged pieces of the catalogue in the file.
    pub damaged_pieces: u64,
}

/// A layer of a protection.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct ProtectedLayerEntry {
    /// The number of data blocks.
    pub data_blocks: u64,
    /// The number of parity blocks, which is also the number of blocks that may be lost.
    pub parity_blocks: u64,
    /// The number of bytes of a block.
    pub block_bytes: u64,
}

/// A layer of a protection, with its lost blocks.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct VerifiedLayerEntry {
    /// The blocks.
    #[serde(flatten)]
    pub blocks: ProtectedLayerEntry,
    /// The number of the layer; later ones are newer.
    pub generation: u32,
    /// The number of data blocks that are lost.
    pub lost: u64,
    /// The number of parity blocks at hand.
    pub at_hand: u64,
    /// The number of further blocks that are needed to repair the layer.
    pub needed: u64,
    /// The number of further blocks that may be lost.
    pub left: u64,
}

/// A disk, and the number of bytes that would be written to it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DiskEntry {
    /// A folder on the disk.
    #[serde(flatten)]
    pub path: Name<DiskFolderKey>,
    /// The number of bytes that would be written there.
    pub bytes: u64,
    /// The number of bytes that are free there; null if the system does not report it.
    pub free: Option<u64>,
}

/// What an update does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UpdateWord {
    /// It does nothing, because nothing has changed.
    Nothing,
    /// It adds a layer of parity.
    Layer,
    /// It computes all parity anew.
    Anew,
    /// It does nothing, because too much is gone or changed.
    Refused,
}

/// The kind of something when it was protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProtectedKindWord {
    /// A file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Symlink,
    /// A further name of a file.
    HardLink,
}

/// The current state of something protected.
// Worst first: texts are in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FindingStateWord {
    /// Some of its bytes are damaged.
    Damaged,
    /// It is not there.
    Missing,
    /// It may not be read.
    Unreadable,
    /// Somebody has changed it.
    Changed,
    /// It is under another name.
    Moved,
    /// Only its time or mode differs.
    Touched,
}
