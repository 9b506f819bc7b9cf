//! Shared by the minimal-density RAID-6 codes: P is the XOR of the data; for Q, data node j is
//! multiplied by a w by w bit matrix X_j.
//!
//! Blaum and Roth, *On lowest density MDS codes* (IEEE Transactions on Information Theory, 1999). A
//! code of this kind survives any two losses exactly if every X_j and every sum X_i + X_j of two is
//! invertible. Q then has at least kw + k - 1 ones: w for one node, w + 1 for every other. The
//! codes here reach that bound. Their bytes are Jerasure's.

use crate::define::bitmatrix::BitMatrix;
use crate::define::builder::CodeBuilder;
use crate::define::code::Code;
use crate::define::pin::Pin;
use crate::define::spec::Spec;
use crate::error::Result;

/// Returns the code with these blocks of Q.
pub(super) fn code(spec: Spec, pin: Pin, blocks: &[BitMatrix]) -> Result<Code> {
    let (k, w) = (blocks.len(), blocks.first().map_or(0, BitMatrix::rows));
    let mut builder = CodeBuilder::new(k + 2);
    let data = builder.data_nodes(k, w);
    builder.blocks(k, &data, &vec![BitMatrix::identity(w); k]).blocks(k + 1, &data, blocks);
    builder.pin(pin);
    builder.finish(spec, 2)
}

/// Returns the w by w bit matrix with a one at each (row, column) of `ones`.
pub(super) fn block(w: usize, ones: impl IntoIterator<Item = (usize, usize)>) -> BitMatrix {
    let mut block = BitMatrix::zero(w, w);
    ones.into_iter().for_each(|(r, c)| block.set(r, c, true));
    block
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::define::cells::NodeId;

    /// Checks the two conditions stated at the top of this file, and the bound.
    pub(in super::super) fn assert_densest(blocks: &[BitMatrix]) {
        let (k, w) = (blocks.len(), blocks[0].rows());
        assert_eq!(blocks.iter().map(BitMatrix::ones).sum::<usize>(), k * w + k - 1);
        assert!(is_mds(blocks), "k = {k}, w = {w}");
    }

    pub(in super::super) fn is_mds(blocks: &[BitMatrix]) -> bool {
        let w = blocks[0].rows();
        blocks.iter().enumerate().all(|(j, block)| {
            let sums = blocks[..j].iter().map(|other| sum(block, other));
            sums.chain([block.clone()]).all(|matrix| matrix.rank() == w)
        })
    }

    fn sum(a: &BitMatrix, b: &BitMatrix) -> BitMatrix {
        let mut sum = a.clone();
        (0..b.rows()).for_each(|r| b.support(r).for_each(|c| sum.flip(r, c)));
        sum
    }

    #[test]
    fn parities_are_the_blocks() {
        let swap = block(2, [(0, 1), (1, 0), (1, 1)]);
        let blocks = [BitMatrix::identity(2), swap];
        let code = code(Spec::new("test"), Pin::new(), &blocks).unwrap();
        let rows = |node| {
            let cells = code.node_cells(NodeId::new(node)).iter();
            cells.map(|&cell| code.row(cell).to_vec()).collect::<Vec<_>>()
        };
        assert_eq!(rows(2), [[0, 2], [1, 3]]);
        assert_eq!(rows(3), [vec![0, 3], vec![1, 2, 3]]);
        assert!(is_mds(&blocks));
        assert!(!is_mds(&[BitMatrix::identity(2), BitMatrix::identity(2)]));
    }
}
