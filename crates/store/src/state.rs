//! The one state of a thing that is kept: an object's shards, a protection, an object of a volume.

/// What a look at everything that is kept has shown. Later states are worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Everything is there, where it belongs, and as it was written.
    Intact,
    /// Something is damaged, missing or not where it belongs, and a repair restores it.
    Repairable,
    /// The bytes can be read, but parity differs from what they give, although every block has its
    /// checksum. No disk does that: the parity was written wrongly. Only a look that recomputes
    /// parity finds this.
    Inconsistent,
    /// The state depends on what could not be read or did not answer: with some content of that, it
    /// would differ from what was read. Or somebody has replaced files meanwhile.
    Unknown,
    /// Some bytes are lost for ever, as far as what is at hand shows.
    Lost,
}

impl State {
    /// All states, the best first.
    pub const ALL: [Self; 5] =
        [Self::Intact, Self::Repairable, Self::Inconsistent, Self::Unknown, Self::Lost];

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
