//! The state of something that is stored: an object's shards, a protection, or an object of a
//! volume.

/// The result of checking everything that is stored. Later states are worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Everything is there, where it belongs, and as it was written.
    Intact,
    /// Something is damaged, missing or not where it belongs, and a repair restores it.
    Repairable,
    /// The bytes can be read, but the parity differs from the parity computed from them, although
    /// the checksum of every block is right. A failing disk cannot cause this: the parity was
    /// written wrongly. Only a check that recomputes parity finds this.
    Inconsistent,
    /// The state depends on files that could not be read or nodes that did not answer: some content
    /// of theirs would give another state than what was read. Or somebody has replaced files
    /// meanwhile.
    Unknown,
    /// Some bytes are lost for ever, judging by everything that could be read.
    Lost,
}

impl State {
    /// Returns the word for the state in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Intact => "intact",
            Self::Repairable => "repairable",
            Self::Inconsistent => "inconsistent",
            Self::Unknown => "unknown",
            Self::Lost => "lost",
        }
    }
}
