//! The Liber8tion code: minimal-density RAID-6 for w = 8.
//!
//! Plank, *The RAID-6 Liber8Tion Code* (International Journal of High Performance Computing
//! Applications, 2009). Neither 8 nor 9 is prime, so neither Liberation nor Blaum-Roth codes have
//! words of a byte. Plank found the blocks by search; there is no formula for them. X_0 is a
//! permutation matrix. Every other X_j is a permutation matrix with one more entry set. So Q has
//! the fewest ones possible, kw + k - 1.
//!
//! [`BLOCKS`] lists them as Jerasure does (`liber8tion_coding_bitmatrix`), because they decide the
//! bytes. With k < 8 the code has the first k blocks.

use crate::define::bitmatrix::BitMatrix;
use crate::define::code::Code;
use crate::define::families::{Family, density, rebuild_fixed};
use crate::define::pin::Pin;
use crate::define::spec::Spec;
use crate::error::{Error, Result};

pub(super) const FAMILY: Family = Family {
    name: "liber8tion",
    summary: "the Liber8tion code: RAID-6 with the fewest ones, w = 8, as Jerasure",
    limits: "m = 2, 1 <= k <= 8, w = 8",
    example: "liber8tion:k=8",
    define,
    rebuild: |spec, pin| rebuild_fixed(spec, pin, define),
};

const WIDTH: usize = 8;

/// A block of Q: for each row the column of its one, and the (row, column) of an additional one.
struct Block([usize; WIDTH], Option<(usize, usize)>);

const BLOCKS: [Block; WIDTH] = [
    Block([0, 1, 2, 3, 4, 5, 6, 7], None),
    Block([7, 3, 0, 2, 6, 1, 5, 4], Some((4, 7))),
    Block([6, 2, 4, 0, 7, 3, 1, 5], Some((1, 3))),
    Block([2, 5, 7, 6, 0, 3, 4, 1], Some((5, 4))),
    Block([5, 6, 1, 7, 2, 4, 3, 0], Some((2, 0))),
    Block([1, 2, 3, 4, 5, 6, 7, 0], Some((7, 2))),
    Block([3, 0, 6, 5, 1, 7, 4, 2], Some((6, 5))),
    Block([4, 7, 1, 5, 3, 2, 0, 6], Some((3, 1))),
];

fn define(spec: &Spec) -> Result<Code> {
    spec.allow(&["k"])?;
    let k = spec.required("k")?;
    if !(1..=WIDTH).contains(&k) {
        return Err(Error::parameters(format!(
            "{spec}: k must be from 1 to {WIDTH}; got {k}; for more use liberation or blaum-roth"
        )));
    }
    let blocks = blocks(k);
    let pin = Pin::new().with("blocks", blocks.iter().map(packed));
    density::code(Spec::new(FAMILY.name).with("k", k), pin, &blocks)
}

fn blocks(k: usize) -> Vec<BitMatrix> {
    let block = |Block(columns, extra): &Block| {
        density::block(WIDTH, columns.iter().copied().enumerate().chain(*extra))
    };
    BLOCKS[..k].iter().map(block).collect()
}

/// Returns a block as a number: bit 8r + c is entry (r, c).
fn packed(block: &BitMatrix) -> u64 {
    (0..WIDTH).map(|r| block.row(r)[0] << (WIDTH * r)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::define::families::density::tests::assert_densest;

    #[test]
    fn any_two_losses_with_the_fewest_ones() {
        (1..=WIDTH).for_each(|k| assert_densest(&blocks(k)));
    }

    #[test]
    fn blocks_are_pinned_row_by_row() {
        assert_eq!(packed(&blocks(1)[0]), 0x8040_2010_0804_0201);
        assert_eq!(packed(&blocks(2)[1]).to_le_bytes(), [0x80, 8, 1, 4, 0xC0, 2, 0x20, 0x10]);
    }

    #[test]
    fn refusals_say_what_is_legal() {
        for (spec, part) in [
            ("liber8tion:k=9", "got 9; for more use liberation or blaum-roth"),
            ("liber8tion:k=0", "k must be from 1 to 8; got"),
            ("liber8tion:k=4,w=8", "no parameter w"),
        ] {
            let error = Code::new(&spec.parse().unwrap()).unwrap_err().to_string();
            assert!(error.contains(part), "{spec}: {error}");
        }
        let spec = "liber8tion:k=2".parse().unwrap();
        let other = Pin::new().with("blocks", [1, 2]);
        assert!(Code::rebuild(&spec, &other).unwrap_err().to_string().contains("blocks = 1, 2"));
    }
}
