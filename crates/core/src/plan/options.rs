//! Options of planning: which pass, which order, which cells are read.

use crate::plan::cost::Objective;
use crate::plan::machine::Machine;

/// The pass that reduces a schedule's XORs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Pass {
    /// Rows as they are.
    Direct,
    /// A row from an earlier row plus differences, where that is cheaper (SS).
    Smart,
    /// Common pairs of inputs by unweighted matching (UM).
    #[cfg(feature = "research")]
    Unweighted,
    /// Common pairs of inputs by weighted matching (WM).
    #[cfg(feature = "research")]
    Weighted,
    /// Greedy common pairs, intermediates included, then refined.
    #[default]
    Slp,
}

impl Pass {
    /// All passes.
    #[cfg(feature = "research")]
    pub const ALL: [Self; 5] =
        [Self::Direct, Self::Smart, Self::Unweighted, Self::Weighted, Self::Slp];

    /// Name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Smart => "smart",
            #[cfg(feature = "research")]
            Self::Unweighted => "um",
            #[cfg(feature = "research")]
            Self::Weighted => "wm",
            Self::Slp => "slp",
        }
    }
}

impl std::fmt::Display for Pass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// The order of a schedule's operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
#[non_exhaustive]
pub enum Order {
    /// Wanted cells one after the other, each to completion (the traditional order).
    #[default]
    Parity,
    /// Sources one after the other, each added wherever it is used (Luo, Xu and Plank 2009).
    Data,
    /// The order that costs least where a compiled kernel runs the schedule on this machine; it may
    /// compute the cells by other operations.
    Fused(Machine),
}

/// The cells at hand that a schedule reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
#[non_exhaustive]
pub enum Reads {
    /// The cells that the cheapest computation needs.
    #[default]
    Any,
    /// The fewest cells that the search finds, whatever the cost of computing from them. This suits
    /// cells that are slow to read, for example from a disk.
    Fewest,
}

/// Options of [`Code::schedule_with`](crate::Code::schedule_with): a default, changed by setters of
/// the same names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
#[non_exhaustive]
pub struct PlanOptions {
    /// The pass that reduces XORs.
    pub pass: Pass,
    /// The order of operations.
    pub order: Order,
    /// The quantity that `slp` minimises.
    pub objective: Objective,
    /// Number of rounds of refining in `slp`. The default is the number that pays for a question
    /// that is asked again and again, such as encoding, and a small number for others.
    pub rounds: Option<usize>,
    /// The cells that are read. Codes in the word layout always read whole nodes.
    pub reads: Reads,
    /// Number of bytes of data to process, if known; with few bytes, planning stops early. By
    /// default the question is assumed to be asked again and again.
    pub bytes: Option<u64>,
}

impl PlanOptions {
    /// Sets [`PlanOptions::pass`].
    pub fn pass(self, pass: Pass) -> Self {
        Self { pass, ..self }
    }

    /// Sets [`PlanOptions::order`].
    pub fn order(self, order: Order) -> Self {
        Self { order, ..self }
    }

    /// Sets [`PlanOptions::objective`].
    pub fn objective(self, objective: Objective) -> Self {
        Self { objective, ..self }
    }

    /// Sets [`PlanOptions::rounds`].
    pub fn rounds(self, rounds: impl Into<Option<usize>>) -> Self {
        Self { rounds: rounds.into(), ..self }
    }

    /// Sets [`PlanOptions::reads`].
    pub fn reads(self, reads: Reads) -> Self {
        Self { reads, ..self }
    }

    /// Sets [`PlanOptions::bytes`].
    pub fn bytes(self, bytes: impl Into<Option<u64>>) -> Self {
        Self { bytes: bytes.into(), ..self }
    }
}
