//! The questions that a codec may be asked.

use std::sync::Arc;

use crate::define::cells::{CellSet, NodeId};
use crate::plan::Plan;
use crate::plan::combination::Change;

/// A question that a codec may be asked.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Question {
    /// Compute the cells of the second set from those of the first.
    Compute(CellSet, CellSet),
    /// Update parity after this node changed, given its old and new shard or their difference.
    Update(NodeId, Change),
    /// Run this plan.
    Plan(Arc<Plan>),
}

impl Question {
    pub(super) fn compute(have: &CellSet, want: &CellSet) -> Self {
        Self::Compute(have.clone(), want.clone())
    }

    /// Returns the number of words that its sets of cells take.
    pub(super) fn words(&self) -> usize {
        match self {
            Self::Compute(have, want) => have.words().len() + want.words().len(),
            Self::Update(..) | Self::Plan(_) => 0,
        }
    }
}
