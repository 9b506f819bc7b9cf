//! STAR: three parities by rows and by diagonals in both directions.
//!
//! Huang and Xu, *STAR: an efficient coding scheme for correcting triple storage node failures*
//! (FAST 2005). The first two parities are those of EVENODD. The third is the second one mirrored:
//! cell (r, c) lies on the diagonal (r - c) mod p of slope -1, and row i is that diagonal i plus
//! S', the XOR of diagonal p - 1. S and S' are auxiliary cells: computed once, stored nowhere.
//!
//! Shortened to k < p, the code keeps the first k columns, as EVENODD does. So a STAR code without
//! its last node is an EVENODD code. This choice decides the bytes and never changes.

use crate::define::builder::CodeBuilder;
use crate::define::code::Code;
use crate::define::families::array::{self, Sizes};
use crate::define::families::{Family, rebuild_fixed};
use crate::define::pin::Pin;
use crate::define::spec::Spec;
use crate::error::Result;

pub(super) const FAMILY: Family = Family {
    name: "star",
    summary: "STAR: three parities by rows and diagonals of both slopes",
    limits: "m = 3, 1 <= k <= p, p an odd prime up to 257 (default: the smallest that fits), w = p - 1",
    example: "star:k=5",
    define,
    rebuild: |spec, pin| rebuild_fixed(spec, pin, define),
};

const SIZES: Sizes = Sizes { key: "p", less: 0, spare: 0 };

fn define(spec: &Spec) -> Result<Code> {
    let (k, p) = SIZES.read(spec)?;
    let mut builder = CodeBuilder::new(k + 3);
    let data = builder.data_nodes(k, p - 1);
    array::rows(&mut builder, k, &data);
    array::adjusted_diagonals(&mut builder, k + 1, &data, p, 1);
    array::adjusted_diagonals(&mut builder, k + 2, &data, p, p - 1);
    builder.lane_rows(1).pin(Pin::new().with("prime", [p as u64]));
    builder.finish(SIZES.spec(FAMILY.name, k, p), 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_its_last_node_it_is_evenodd() {
        for (k, p) in [(1, 3), (5, 5), (4, 7), (11, 11)] {
            let spec = |family| SIZES.spec(family, k, p);
            let [star, evenodd] = ["star", "evenodd"].map(|name| Code::new(&spec(name)).unwrap());
            for node in evenodd.nodes() {
                let rows = |code: &Code| -> Vec<Vec<u32>> {
                    code.node_cells(node).iter().map(|&cell| code.row(cell).to_vec()).collect()
                };
                assert_eq!(rows(&star), rows(&evenodd));
            }
        }
    }

    /// p = 3, all three columns. Cell (r, c) is data 2c + r. S' is the XOR of the cells with r - c
    /// = 2 mod 3, which are (0, 1) and (1, 2).
    #[test]
    fn the_third_parity_by_hand() {
        let code = Code::new(&"star:k=3".parse().unwrap()).unwrap();
        let cells = code.node_cells(crate::define::cells::NodeId::new(5));
        assert_eq!(code.row(cells[0]), [0, 2, 3, 5]);
        assert_eq!(code.row(cells[1]), [1, 2, 4, 5]);
    }
}
