//! The parts and settings of a volume.

use std::str::FromStr;
use std::sync::Arc;

use bytesize::ByteSize;
use paritas::{Code, CodecOptions};

use crate::node::Node;
use crate::placement::Member;
use crate::transfer::Settings;

/// Default for the largest number of bytes of an object that is kept in its manifests.
///
/// Such an object is on t + 1 nodes, where t nodes may be lost. In shards it would take the same
/// number of bytes from about this length on, because every shard has headers and every node a file
/// more; and it would be read with two requests instead of one.
pub const INLINE_BYTES: usize = 4096;

/// The parts and settings of a volume.
#[derive(Debug)]
pub struct Setup {
    /// The volume's id: 32 hexadecimal digits.
    pub id: String,
    /// The code.
    pub code: Code,
    /// Bytes of a shard's block.
    pub block_bytes: usize,
    /// Number of nodes that may be lost, whichever they are. A number that the code does not
    /// tolerate on these nodes is refused. It must never rise in the life of a volume. Otherwise
    /// readers would look for older objects on too few nodes. `None` means the number that the code
    /// tolerates.
    pub losses: Option<usize>,
    /// Number of shards that may be missing when a put commits.
    pub missing: usize,
    /// The most bytes of an object that is kept in its manifests.
    pub inline_bytes: usize,
    /// Limit for background work with each node, in each direction, in bytes a second; `None` is
    /// unlimited.
    pub background_rate: Option<u64>,
    /// The nodes, each with its name and failure domain.
    pub nodes: Vec<(Member, Arc<dyn Node>)>,
    /// How blocks are moved.
    pub(crate) settings: Settings,
    /// How codes are run on this machine.
    pub options: CodecOptions,
}

impl Setup {
    /// Creates the setup of a volume with the usual settings.
    pub fn new(id: impl Into<String>, code: Code, nodes: Vec<(Member, Arc<dyn Node>)>) -> Self {
        Self {
            id: id.into(),
            code,
            block_bytes: 256 << 10,
            losses: None,
            missing: 0,
            inline_bytes: INLINE_BYTES,
            background_rate: None,
            nodes,
            settings: Settings::default(),
            options: CodecOptions::default(),
        }
    }
}

/// A number of bytes a second. `None` sets no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate(pub Option<u64>);

impl FromStr for Rate {
    type Err = String;

    /// Reads a size, such as `20 MB` or `512KiB`, or `none`.
    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse::<ByteSize>()) {
            ("none", _) => Ok(Self(None)),
            (_, Ok(rate)) if rate.as_u64() > 0 => Ok(Self(Some(rate.as_u64()))),
            _ => Err(format!(
                "must be a number of bytes a second, such as 20MB, or none; got `{text}`"
            )),
        }
    }
}
