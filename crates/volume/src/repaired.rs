//! What a repair or a promotion did.

use crate::flaw::Flaw;
use crate::hands::NameLog;
use crate::names::ObjectName;

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

impl Repaired {
    /// Returns the report of work that did nothing but what the log says.
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
}
