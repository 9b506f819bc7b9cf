//! Sums of cells, as a kernel reads them.

use crate::define::field::Field;
use crate::limits::{
    DENSE_ANSWER, MOST_PLANNED, PLANNED_AFTER, PLANNED_AFTER_EACH, PLANNED_AFTER_MOST,
};
use crate::plan::program::CellLocation;
use crate::plan::transform::program::TransformProgram;

/// Wanted cells as sums of cells at hand. All buffers have the same number of rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sums {
    /// The cells that are read.
    pub(crate) inputs: Vec<CellLocation>,
    /// The cells that are computed; they are different from the cells that are read.
    pub(crate) outputs: Vec<CellLocation>,
    pub(crate) terms: Terms,
    /// Whether the terms were found by solving equations, and must be tried on a sample. Otherwise
    /// they are the terms of the generator.
    pub(crate) is_solved: bool,
    /// When a plan is worth making.
    pub(crate) planned: PlannedAfter,
}

/// When the plan of a question is made that is answered directly at first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlannedAfter {
    /// Once the direct answer has run over this many bytes of a shard.
    Bytes(usize),
    /// Never: it would not be enough faster.
    Never,
}

impl PlannedAfter {
    /// Returns when the plan pays of an answer with a number of operands, with which the time of
    /// planning grows.
    pub(crate) fn operands(operands: usize) -> Self {
        let bytes = operands.saturating_mul(PLANNED_AFTER_EACH);
        Self::Bytes(bytes.clamp(PLANNED_AFTER, PLANNED_AFTER_MOST))
    }

    /// Returns when the plan pays of an encoding that becomes a network of butterflies. The times
    /// of planning it and of the direct answer both grow with the number of coefficients (some 6
    /// microseconds each, and 0.03 ns a byte of a shard), so that number does not matter.
    pub(crate) fn network() -> Self {
        Self::Bytes(PLANNED_AFTER)
    }

    /// Returns when the plan pays of an answer in packets with a number of operands, if the parity
    /// rows of the code have `ones` ones. A plan follows these rows where they are much sparser,
    /// as those of array codes are, and then takes little time. The more operands such an answer
    /// has, the earlier it pays.
    pub(crate) fn packets(operands: usize, ones: usize) -> Self {
        let sparse = ones.saturating_mul(DENSE_ANSWER);
        match operands.checked_div(sparse) {
            Some(denser @ 1..) => Self::Bytes(PLANNED_AFTER / denser),
            _ if operands > MOST_PLANNED => Self::Never,
            _ => Self::operands(operands),
        }
    }
}

/// The terms of the outputs' sums.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Terms {
    /// Of packets, at least one for each output.
    Packets {
        /// The numbers of the inputs that are added, output after output.
        inputs: Vec<u32>,
        /// For each output, where its inputs end.
        ends: Vec<u32>,
    },
    /// Of words of one byte, multiplied: for each output, a factor for each input. There is at
    /// least one input.
    Words {
        /// The field of the words.
        field: Field,
        /// The factors, output after output.
        factors: Vec<u8>,
    },
    /// Of words of one byte, which a transform computes. Its buffers are the inputs and then the
    /// outputs.
    Transform(TransformProgram),
}

impl Terms {
    /// Number of operands, at least as large as that of the plan that may follow. A plan shortens
    /// sums of packets, and has up to five operands for each factor.
    pub(crate) fn operands(&self) -> usize {
        match self {
            Self::Packets { inputs, .. } => inputs.len(),
            Self::Words { factors, .. } => 5 * factors.len(),
            Self::Transform(program) => program.operations(),
        }
    }
}
