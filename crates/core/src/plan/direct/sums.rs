//! Sums of cells, as a kernel reads them.

use crate::plan::program::CellLocation;

/// Wanted cells as sums of cells at hand. All buffers have the same number of rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sums {
    /// The cells that are read.
    pub(crate) inputs: Vec<CellLocation>,
    /// The cells that are computed; none of them is read.
    pub(crate) outputs: Vec<CellLocation>,
    pub(crate) terms: Terms,
    /// Whether equations were solved. Otherwise the terms are those of the generator.
    pub(crate) is_solved: bool,
}

/// What the outputs are sums of.
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
    Words(Vec<u8>),
}

impl Sums {
    /// Number of operands, at least that of the plan that may follow. A plan shortens sums of
    /// packets, and has up to three operands for each factor.
    pub(crate) fn operands(&self) -> usize {
        match &self.terms {
            Terms::Packets { inputs, .. } => inputs.len(),
            Terms::Words(factors) => 3 * factors.len(),
        }
    }
}
