//! Symbol matrices: codes over GF(2^w) at the level of nodes.
//!
//! In a Reed-Solomon code every node holds one *symbol* a stripe, an element of GF(2^w), and every
//! parity symbol is a sum of multiples of the data symbols. The coefficients are a symbol matrix.
//! It can be stored in two layouts, which do the same arithmetic on different bits:
//!
//! - *packets*: bit r of a symbol is cell r of its node. Coefficients become w by w bit matrices
//!   ([`Field::bit_matrix`]), and a packet holds the same bit of many symbols, so only XORs are
//!   needed.
//! - *words*: a symbol is one little-endian word of 8, 16 or 32 bits. This is how ISA-L, HDFS,
//!   MinIO, Ceph, zfec, Linux RAID-6 and Jerasure's Reed-Solomon codes store them.
//!
//! [`CodeBuilder`](crate::define::builder::CodeBuilder) turns a matrix into cells for either. A
//! code in the word layout keeps the matrix beside its cells ([`Code::symbols`]), because its plans
//! are sums over nodes and its kernels multiply words.
//!
//! [`Code::symbols`]: crate::define::code::Code::symbols

use crate::define::cells::NodeId;
use crate::define::evaluation::Evaluation;
use crate::define::field::Field;
use crate::error::{Error, Result};

/// Largest size of a code's bit matrices, in bits (k·m·w²); beyond it planning takes minutes.
pub(crate) const MAX_BITS: usize = 1 << 25;

/// Widths that a word in the word layout may have, in bits.
pub(crate) const WORD_WIDTHS: [usize; 3] = [8, 16, 32];

/// The coefficients of a systematic code over GF(2^w): data nodes first, then parity nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SymbolMatrix {
    field: Field,
    data_nodes: usize,
    /// For each parity node, a coefficient for each data node.
    parity: Vec<Vec<u32>>,
    evaluation: Option<Evaluation>,
}

impl SymbolMatrix {
    /// Returns the matrix of a code with `data_nodes` data nodes. Each row of `parity` is a parity
    /// node and holds a coefficient for each data node.
    ///
    /// # Errors
    /// If a row has another length, a coefficient is not an element of the field, or the bit
    /// matrices would be too big to plan with.
    pub fn new(field: Field, data_nodes: usize, parity: Vec<Vec<u32>>) -> Result<Self> {
        let fits = |row: &Vec<u32>| {
            row.len() == data_nodes && row.iter().all(|&c| field.contains(u64::from(c)))
        };
        if let Some(row) = parity.iter().position(|row| !fits(row)) {
            return Err(Error::parameters(format!(
                "row {row} of a symbol matrix needs {data_nodes} coefficients below {}",
                field.size()
            )));
        }
        expect_size(data_nodes, parity.len(), field.width() as usize)?;
        Ok(Self { field, data_nodes, parity, evaluation: None })
    }

    /// Returns the same matrix, with the points of a polynomial whose values the symbols are.
    pub(crate) fn evaluated(self, evaluation: Evaluation) -> Self {
        Self { evaluation: Some(evaluation), ..self }
    }

    /// The points of a polynomial whose values the symbols are, if they are consecutive.
    pub(crate) fn evaluation(&self) -> Option<&Evaluation> {
        self.evaluation.as_ref()
    }

    /// The field of the symbols.
    pub fn field(&self) -> Field {
        self.field
    }

    /// The number of data nodes, which come first.
    pub fn data_nodes(&self) -> usize {
        self.data_nodes
    }

    /// The number of all nodes.
    pub fn node_count(&self) -> usize {
        self.data_nodes + self.parity.len()
    }

    /// Coefficients of the parity nodes, one row each.
    pub fn parity(&self) -> &[Vec<u32>] {
        &self.parity
    }

    /// Returns the coefficient of data symbol `data` in the symbol of a node. A data node has
    /// coefficient 1 for its own symbol and 0 for the others.
    ///
    /// # Panics
    /// If there is no node or data symbol of that number.
    pub fn coefficient(&self, node: NodeId, data: usize) -> u32 {
        match node.index().checked_sub(self.data_nodes) {
            Some(row) => self.parity[row][data],
            None => u32::from(node.index() == data),
        }
    }
}

impl SymbolMatrix {
    /// Returns the rows of bits that the parity symbols have: for each bit of each of them, the
    /// bits of the data symbols that it is the sum of, ascending.
    pub(super) fn bit_rows(&self) -> impl Iterator<Item = Box<[u32]>> {
        let width = self.field.width() as usize;
        let bits = move |row: &Vec<u32>| -> Vec<Box<[u32]>> {
            let products: Vec<_> = row.iter().map(|&c| self.field.multiples_of(c)).collect();
            let of = |bit: usize| {
                let ones = (0..width * products.len()).filter(|position| {
                    products[position / width].image(position % width) >> bit & 1 == 1
                });
                ones.map(|position| position as u32).collect()
            };
            (0..width).map(of).collect()
        };
        self.parity.iter().flat_map(bits)
    }
}

/// Refuses codes of k data and m parity symbols whose bit matrices would be too big. Families call
/// this before they compute coefficients.
pub(crate) fn expect_size(k: usize, m: usize, w: usize) -> Result<()> {
    let bits = (k as u64).saturating_mul(m as u64).saturating_mul((w * w) as u64);
    if bits <= MAX_BITS as u64 {
        return Ok(());
    }
    let hint = match MAX_BITS / m.saturating_mul(w * w).max(1) {
        0 => String::new(),
        most => format!("; for m = {m} and w = {w} use k up to {most}"),
    };
    Err(Error::parameters(format!(
        "k = {k}, m = {m}, w = {w}: the bit matrix has k·m·w² = {bits} bits, more than \
         {MAX_BITS}{hint}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::define::builder::CodeBuilder;
    use crate::define::cells::Role;
    use crate::define::spec::Spec;

    fn matrix() -> SymbolMatrix {
        let field = Field::new(8).unwrap();
        SymbolMatrix::new(field, 2, vec![vec![1, 1], vec![1, 2]]).unwrap()
    }

    #[test]
    fn data_nodes_hold_their_own_symbol() {
        let matrix = matrix();
        let row = |node| [0, 1].map(|data| matrix.coefficient(NodeId::new(node), data));
        assert_eq!([row(0), row(1), row(2), row(3)], [[1, 0], [0, 1], [1, 1], [1, 2]]);
    }

    #[test]
    fn rows_that_do_not_fit_are_refused() {
        let field = Field::new(4).unwrap();
        assert!(SymbolMatrix::new(field, 2, vec![vec![1]]).is_err());
        assert!(SymbolMatrix::new(field, 1, vec![vec![1], vec![16]]).is_err());
        assert!(expect_size(1 << 20, 2, 4).is_ok());
        let error = |k, m, w| expect_size(k, m, w).unwrap_err().to_string();
        let most = MAX_BITS / 48;
        assert!(
            error(1 << 20, 3, 4).ends_with(&format!("; for m = 3 and w = 4 use k up to {most}"))
        );
        assert!(expect_size(most, 3, 4).is_ok() && expect_size(most + 1, 3, 4).is_err());
        assert!(error(usize::MAX, usize::MAX, 4).ends_with("more than 33554432"));
    }

    /// Doubling moves every bit up and adds the polynomial's tail, bits 0, 2, 3 and 4, where bit 7
    /// was set.
    #[test]
    fn cells_are_the_bits_of_symbols() {
        let mut builder = CodeBuilder::new(4);
        builder.symbols(&matrix());
        let code = builder.finish(Spec::new("test"), 2).unwrap();
        let ones = |row: usize| code.row(code.node_cells(NodeId::new(3))[row]).to_vec();
        assert_eq!(ones(0), [0, 8 + 7]);
        assert_eq!(ones(1), [1, 8]);
        assert_eq!(ones(2), [2, 8 + 1, 8 + 7]);
        assert_eq!(code.symbols(), None);
        assert_eq!(code.cell(code.node_cells(NodeId::new(1))[7]).role, Role::Data);
    }

    #[test]
    fn words_are_whole_and_alone() {
        let words = |matrix: SymbolMatrix, more: bool| {
            let mut builder = CodeBuilder::new(matrix.node_count() + usize::from(more));
            builder.words(matrix);
            if more {
                builder.data(Some(4));
            }
            builder.finish(Spec::new("test"), 2)
        };
        assert_eq!(words(matrix(), false).unwrap().symbols(), Some(&matrix()));
        assert!(words(matrix(), true).unwrap_err().to_string().contains("only symbols"));
        let nibbles = SymbolMatrix::new(Field::new(4).unwrap(), 1, vec![vec![3]]).unwrap();
        assert!(words(nibbles, false).unwrap_err().to_string().contains("w must be 8, 16 or 32"));
    }

    /// The layout decides where bytes are stored, so it is part of what is hashed.
    #[test]
    fn layouts_have_different_descriptions() {
        let describe = |words: bool| {
            let mut builder = CodeBuilder::new(4);
            match words {
                true => builder.words(matrix()),
                false => builder.symbols(&matrix()),
            };
            let mut description = Vec::new();
            let code = builder.finish(Spec::new("test"), 2).unwrap();
            code.describe(|bytes| description.extend_from_slice(bytes));
            description
        };
        let (packets, words) = (describe(false), describe(true));
        assert_eq!(words, [&packets[..], &8_u32.to_le_bytes()].concat());
    }
}
