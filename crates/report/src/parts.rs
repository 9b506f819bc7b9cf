//! Entries, words and texts that lines of several groups share.

use std::fmt::Display;
use std::ops::Range;

use schemars::JsonSchema;
use serde::Serialize;

use crate::name::{FormerPathKey, Name, PathKey};

/// An id: 32 hexadecimal digits.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(extend("pattern" = "^[0-9a-f]{32}$"))]
pub struct IdText(String);

impl IdText {
    /// Takes an id as it is displayed.
    pub fn of(id: impl Display) -> Self {
        Self(id.to_string())
    }
}

/// The BLAKE3 digest of an object's bytes: 64 hexadecimal digits.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(extend("pattern" = "^[0-9a-f]{64}$"))]
pub struct DigestText(String);

impl DigestText {
    /// Takes a digest as it is displayed.
    pub fn of(digest: impl Display) -> Self {
        Self(digest.to_string())
    }
}

/// Permissions in four octal digits.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(extend("pattern" = "^[0-7]{4}$"))]
pub struct ModeText(String);

impl ModeText {
    /// Takes permissions as `chmod` takes them.
    pub fn of(mode: impl Display) -> Self {
        Self(mode.to_string())
    }
}

/// A time.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct TimestampEntry {
    /// The seconds since the beginning of 1970 (UTC); negative for earlier times.
    pub seconds: i64,
    /// The nanoseconds since that second.
    #[schemars(range(max = 999_999_999))]
    pub nanoseconds: u32,
}

/// A range of bytes of an object or a file.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct RangeEntry {
    /// The first byte of the range.
    pub start: u64,
    /// The first byte after the range.
    pub end: u64,
}

impl From<&Range<u64>> for RangeEntry {
    fn from(range: &Range<u64>) -> Self {
        Self { start: range.start, end: range.end }
    }
}

/// A file, or anything else at a path.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "named_file")]
pub struct FileEntry {
    /// The path.
    #[serde(flatten)]
    pub path: Name<PathKey>,
}

/// A file and its length.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SizedFileEntry {
    /// The path.
    #[serde(flatten)]
    pub path: Name<PathKey>,
    /// The length of the file in bytes.
    pub bytes: u64,
}

/// A file that was moved.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct MovedFileEntry {
    /// The path that the file has now.
    #[serde(flatten)]
    pub path: Name<PathKey>,
    /// The path that the file had before.
    #[serde(flatten)]
    pub from: Name<FormerPathKey>,
}

/// The state of an object or of a protection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ObjectStateWord {
    /// It is as it was written.
    Intact,
    /// It is damaged, and can be repaired.
    Repairable,
    /// It was damaged, and has been repaired.
    Repaired,
    /// It is beyond repair.
    Lost,
    /// Its parity differs from what the code computes from its data.
    Inconsistent,
    /// It depends on something that could not be read or written.
    Unknown,
}

impl ObjectStateWord {
    /// All states.
    pub const ALL: [Self; 6] = [
        Self::Intact,
        Self::Repairable,
        Self::Repaired,
        Self::Lost,
        Self::Inconsistent,
        Self::Unknown,
    ];

    /// Returns the word in texts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Intact => "intact",
            Self::Repairable => "repairable",
            Self::Repaired => "repaired",
            Self::Lost => "lost",
            Self::Inconsistent => "inconsistent",
            Self::Unknown => "unknown",
        }
    }
}
