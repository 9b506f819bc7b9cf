//! EVENODD: the first two-parity array code over a prime.
//!
//! Blaum, Brady, Bruck and Menon, *EVENODD: an efficient scheme for tolerating double disk failures
//! in RAID architectures* (IEEE Transactions on Computers, 1995). For a prime p there are p - 1
//! rows and p data columns. The first parity node holds the parity of each row. Cell (r, c) lies on
//! diagonal (r + c) mod p. Let S be the XOR of diagonal p - 1; row i of the second parity node is S
//! plus diagonal i. S is an auxiliary cell: computed once, stored nowhere.
//!
//! Shortened to k < p, the code keeps the first k columns (as usual: the last ones are zero). Any
//! choice of columns costs the same number of XORs. This choice decides the bytes and never
//! changes.

use crate::define::builder::CodeBuilder;
use crate::define::code::Code;
use crate::define::families::array::{self, Sizes};
use crate::define::families::{Family, rebuild_fixed};
use crate::define::pin::Pin;
use crate::define::spec::Spec;
use crate::error::Result;

pub(super) const FAMILY: Family = Family {
    name: "evenodd",
    summary: "EVENODD: two parities by rows and diagonals",
    limits: "m = 2, 1 <= k <= p, p an odd prime up to 257 (default: the smallest that fits), w = p - 1",
    example: "evenodd:k=5",
    define,
    rebuild: |spec, pin| rebuild_fixed(spec, pin, define),
};

const SIZES: Sizes = Sizes { key: "p", less: 0, spare: 0 };

fn define(spec: &Spec) -> Result<Code> {
    let (k, p) = SIZES.read(spec)?;
    let mut builder = CodeBuilder::new(k + 2);
    let data = builder.data_nodes(k, p - 1);
    array::rows(&mut builder, k, &data);
    array::adjusted_diagonals(&mut builder, k + 1, &data, p, 1);
    builder.lane_rows(1).pin(Pin::new().with("prime", [p as u64]));
    builder.finish(SIZES.spec(FAMILY.name, k, p), 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::define::erasure::{Losses, combinations};

    #[test]
    fn two_losses_are_recoverable_and_three_are_not() {
        for k in 1..=11 {
            let code = Code::new(&Spec::new("evenodd").with("k", k)).unwrap();
            for count in 1..=3.min(k + 2) {
                for lost in combinations(k + 2, count) {
                    let lost: Vec<_> =
                        lost.into_iter().map(crate::define::cells::NodeId::new).collect();
                    assert_eq!(Losses::of_nodes(&code, &lost).is_solvable(), count <= 2);
                }
            }
        }
    }
}
