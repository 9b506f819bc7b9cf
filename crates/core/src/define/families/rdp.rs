//! RDP, row-diagonal parity: two parities with the fewest XORs possible.
//!
//! Corbett, English, Goel, Grcanac, Kleiman, Leong and Sankar, *Row-Diagonal Parity for Double Disk
//! Failure Correction* (FAST 2004). For a prime p there are p - 1 rows; columns 0..p-1 hold data
//! and column p-1 the parity of each row. Cell (r, c) lies on diagonal (r + c) mod p. The second
//! parity holds diagonals 0..p-1, which include the row parity column, and leaves out the last. The
//! planner is told in the definition that the diagonals contain row parity, so that both parities
//! cost k - 1 XORs a packet at k = p - 1.
//!
//! Shortened to k < p - 1, the code keeps the *last* k data columns: data node j is column
//! p - 1 - k + j. Column 0 is the one column without a cell on the missing diagonal, so dropping it
//! saves one XOR more than dropping any other. This choice decides the bytes and never changes.

use crate::define::builder::CodeBuilder;
use crate::define::cells::Role;
use crate::define::code::Code;
use crate::define::families::array::{self, Sizes};
use crate::define::families::{Family, rebuild_fixed};
use crate::define::pin::Pin;
use crate::define::spec::Spec;
use crate::error::Result;

pub(super) const FAMILY: Family = Family {
    name: "rdp",
    summary: "row-diagonal parity: two parities with the fewest XORs",
    limits: "m = 2, 1 <= k <= p - 1, p an odd prime up to 257 (default: the smallest that fits), w = p - 1",
    example: "rdp:k=6",
    define,
    rebuild: |spec, pin| rebuild_fixed(spec, pin, define),
};

const SIZES: Sizes = Sizes { key: "p", less: 0, spare: 1 };

fn define(spec: &Spec) -> Result<Code> {
    let (k, p) = SIZES.read(spec)?;
    let dropped = p - 1 - k;
    let mut builder = CodeBuilder::new(k + 2);
    let mut columns = builder.data_nodes(k, p - 1);
    columns.push(array::rows(&mut builder, k, &columns));
    for diagonal in 0..p - 1 {
        let cells = array::line(&columns, p, 1, diagonal + p - dropped);
        builder.derived(Role::Parity, Some(k + 1), &cells);
    }
    builder.lane_rows(1).pin(Pin::new().with("prime", [p as u64]));
    builder.finish(SIZES.spec(FAMILY.name, k, p), 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::define::erasure::{Losses, combinations};

    #[test]
    fn two_losses_are_recoverable_and_three_are_not() {
        for k in 1..=12 {
            let code = Code::new(&Spec::new("rdp").with("k", k)).unwrap();
            for count in 1..=3.min(k + 2) {
                for lost in combinations(k + 2, count) {
                    let lost: Vec<_> =
                        lost.into_iter().map(crate::define::cells::NodeId::new).collect();
                    assert_eq!(Losses::of_nodes(&code, &lost).is_solvable(), count <= 2);
                }
            }
        }
    }

    #[test]
    fn refusals_say_what_is_legal() {
        for (spec, part) in [
            ("rdp:k=6,p=9", "use p = 7"),
            ("rdp:k=6,p=5", "use p = 7"),
            ("rdp:k=6,p=14", "for k = 6 at least 7; use p = 13"),
            ("rdp:k=6,p=18446744073709551557", "up to 257"),
            ("rdp:k=0", "k must be from 1 to 256; got"),
            ("rdp:k=1000", "k must be from 1 to 256; got"),
            ("rdp:k=6,m=2", "no parameter m"),
        ] {
            let error = Code::new(&spec.parse().unwrap()).unwrap_err().to_string();
            assert!(error.contains(part), "{spec}: {error}");
        }
    }
}
