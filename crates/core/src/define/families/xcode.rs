//! X-Code: a vertical code, with two rows of parity under the data of every node.
//!
//! Xu and Bruck, *X-Code: MDS array codes with optimal encoding* (IEEE Transactions on Information
//! Theory, 1999). A stripe is a table of n rows and n columns, n prime; each column is a node. Rows
//! 0 to n - 3 are data. In column i, row n - 2 holds the XOR of the cells (r, i + r + 2) and row
//! n - 1 that of the cells (r, i - r - 2), for r from 0 to n - 3 and columns modulo n: the
//! diagonals of slopes 1 and -1. Any two columns may be lost.
//!
//! No parity is computed from parity, so changing a data cell changes just two others, which is the
//! least possible. Every parity cell takes n - 3 XORs, also the least. The code cannot be
//! shortened: every column holds parity, so no column can be left out as always zero.

use crate::define::builder::CodeBuilder;
use crate::define::cells::{CellId, Role};
use crate::define::code::Code;
use crate::define::families::{Family, array, rebuild_fixed};
use crate::define::pin::Pin;
use crate::define::spec::Spec;
use crate::error::{Error, Result};

pub(super) const FAMILY: Family = Family {
    name: "xcode",
    summary: "X-Code: data and parity on every node, cheapest to encode and update",
    limits: "n an odd prime up to 257; two of the n rows on each node are parity, so parity takes as much space as two of n nodes; any two may be lost",
    example: "xcode:n=7",
    define,
    rebuild: |spec, pin| rebuild_fixed(spec, pin, define),
};

fn define(spec: &Spec) -> Result<Code> {
    spec.allow(&["n"])?;
    let n = spec.required("n")?;
    if array::is_odd_prime(n) {
        return build(n);
    }
    let nearest = array::primes().min_by_key(|p| p.abs_diff(n)).unwrap_or(3);
    Err(Error::parameters(format!(
        "{spec}: n must be an odd prime up to 257; the nearest is n = {nearest}, with data worth {} \
         node{}",
        nearest - 2,
        if nearest == 3 { "" } else { "s" }
    )))
}

fn build(n: usize) -> Result<Code> {
    let mut builder = CodeBuilder::new(n);
    let data = builder.data_nodes(n, n - 2);
    let along = |column: &dyn Fn(usize) -> usize| -> Vec<CellId> {
        (0..n - 2).map(|r| data[column(r) % n][r]).collect()
    };
    for i in 0..n {
        builder.derived(Role::Parity, Some(i), &along(&|r| i + r + 2));
    }
    for i in 0..n {
        builder.derived(Role::Parity, Some(i), &along(&|r| i + n - r - 2));
    }
    builder.lane_rows(1).pin(Pin::new().with("prime", [n as u64]));
    builder.finish(Spec::new(FAMILY.name).with("n", n), 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper's figure for n = 5: cells of both parities of column 0, as (row, column).
    #[test]
    fn diagonals_of_five_by_hand() {
        let code = build(5).unwrap();
        let cells = code.node_cells(crate::define::cells::NodeId::new(0));
        let data = |places: [(u32, u32); 3]| {
            let mut numbers = places.map(|(row, column)| 3 * column + row);
            numbers.sort_unstable();
            numbers
        };
        assert_eq!(code.row(cells[3]), data([(0, 2), (1, 3), (2, 4)]));
        assert_eq!(code.row(cells[4]), data([(0, 3), (1, 2), (2, 1)]));
    }

    #[test]
    fn every_data_cell_is_in_two_parities() {
        let code = build(11).unwrap();
        let mut uses = vec![0; code.data_cells().len()];
        for cell in code.stored(Role::Parity).iter() {
            code.row(cell).iter().for_each(|&data| uses[data as usize] += 1);
        }
        assert!(uses.iter().all(|&uses| uses == 2));
    }

    #[test]
    fn refusals_say_what_is_legal() {
        for (spec, part) in [
            ("xcode:n=9", "the nearest is n = 7, with data worth 5 nodes"),
            ("xcode:n=2", "the nearest is n = 3, with data worth 1 node"),
            ("xcode:n=18446744073709551557", "the nearest is n = 257"),
            ("xcode:k=5", "no parameter k; it takes n"),
            ("xcode", "n is missing"),
        ] {
            let error = Code::new(&spec.parse().unwrap()).unwrap_err().to_string();
            assert!(error.contains(part), "{spec}: {error}");
        }
        let seven = Pin::new().with("prime", [7]);
        let spec = "xcode:n=5".parse().unwrap();
        assert!(
            Code::rebuild(&spec, &seven).unwrap_err().to_string().contains("pinned with prime = 7")
        );
    }
}
