//! Lower bounds on the number of ones of a code.
//!
//! Computed row by row, each one in a parity row costs an operation per encoding (the first a copy,
//! each further one an XOR), and an XOR per update of its data cell. Whatever its construction, no
//! code has fewer ones than these bounds:
//!
//! - *Any code that tolerates t losses.* Suppose that a data cell were in parity cells of fewer
//!   than t other nodes. Losing those nodes and its own would then leave nothing that depends on
//!   it. So every data cell is in at least t parity cells. X-Code reaches this bound.
//! - *k data and m parity nodes of w cells, any m of which may be lost.* The w by w block of each
//!   data node in each parity node is invertible, so it has at least w ones, and exactly w only if
//!   it is a permutation. Any two by two blocks, taken as one matrix, must be invertible too. Four
//!   permutations are not: every row of that matrix has two ones, so its columns add up to zero. So
//!   two data nodes cannot both have permutations in the same two parity nodes, and every block
//!   that is not a permutation has at least w + 1 ones. With m = 2 the bound is 2kw + k - 1, that
//!   of Blaum and Roth (*On lowest density MDS codes*, IEEE Transactions on Information Theory,
//!   1999), which Liberation, Blaum-Roth and Liber8tion codes reach.

use crate::define::cells::{CellId, Role};
use crate::define::code::Code;

impl Code {
    /// Returns a lower bound on the number of ones (see [`Code::ones`]) of any code with this shape
    /// and tolerance.
    pub fn fewest_ones(&self) -> usize {
        let data = self.data_cells().len();
        match self.symbol_shape() {
            Some((k, m)) if m > 0 => m * data + k * m - most_permutations(k, m),
            _ => self.tolerance() * data,
        }
    }

    /// Returns the numbers of data and parity nodes if each node holds only data or only parity,
    /// all hold the same number of cells, and the tolerance equals the number of parity nodes.
    fn symbol_shape(&self) -> Option<(usize, usize)> {
        let (mut data, mut parity) = (0, 0);
        let width = self.nodes().next().map_or(0, |node| self.node_cells(node).len());
        for cells in self.nodes().map(|node| self.node_cells(node)) {
            let all = |is: fn(Role) -> bool| cells.iter().all(|&c: &CellId| is(self.cell(c).role));
            data += usize::from(all(|role| role == Role::Data));
            parity += usize::from(all(|role| role != Role::Data));
            if cells.len() != width {
                return None;
            }
        }
        let whole = data + parity == self.node_count() && data * width == self.data_cells().len();
        (whole && parity == self.tolerance()).then_some((data, parity))
    }
}

/// Returns an upper bound on the number of permutations among k columns of m blocks, where no two
/// columns may have them in the same two rows. A column with d permutations uses up d(d - 1)/2 of
/// the m(m - 1)/2 pairs of rows. So the first permutation in a column costs no pair, the second one
/// pair, the third two, and filling the columns evenly gives the most.
fn most_permutations(k: usize, m: usize) -> usize {
    let mut pairs = m * m.saturating_sub(1) / 2;
    let mut most = k;
    for cost in 1..m {
        let columns = k.min(pairs / cost);
        most += columns;
        pairs -= columns * cost;
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(spec: &str) -> Code {
        Code::new(&spec.parse().unwrap()).unwrap()
    }

    #[test]
    fn known_bounds() {
        // Two parities: 2kw + k - 1.
        for (spec, k, w) in [("rdp:k=6", 6, 6), ("cauchy:k=10,m=2,w=8", 10, 8), ("raid6:k=9", 9, 8)]
        {
            assert_eq!(code(spec).fewest_ones(), 2 * k * w + k - 1, "{spec}");
        }
        // One parity has no pairs. Three by three has six permutations at most, without a
        // rectangle.
        assert_eq!(code("cauchy:k=5,m=1,w=4").fewest_ones(), 20);
        assert_eq!(most_permutations(3, 3), 6);
        assert_eq!(most_permutations(3, 0), 3);
        assert_eq!(most_permutations(7, 3), 10);
        assert_eq!(most_permutations(1, 4), 4);
        let mut alone = crate::define::builder::CodeBuilder::new(1);
        alone.data(Some(0));
        let alone = alone.finish(code("4+2").spec().clone(), 0);
        assert_eq!(alone.unwrap().fewest_ones(), 0, "without parity");
    }

    /// Tries all placements: each column is a set of rows, and no pair of rows may occur in two
    /// columns.
    #[test]
    fn no_placement_has_more_permutations() {
        fn most(columns: usize, rows: usize, used: &[usize]) -> usize {
            if columns == 0 {
                return used.iter().map(|column| column.count_ones() as usize).sum();
            }
            let fits = |column: &usize| used.iter().all(|other| (other & column).count_ones() < 2);
            let next = (0..1 << rows).filter(fits);
            next.map(|column| most(columns - 1, rows, &[used, &[column]].concat())).max().unwrap()
        }
        for (k, m) in [(1, 3), (2, 2), (2, 4), (3, 3), (4, 3), (5, 2), (3, 4), (4, 4)] {
            assert!(most(k, m, &[]) <= most_permutations(k, m), "k = {k}, m = {m}");
        }
    }

    #[test]
    fn codes_that_reach_the_bound() {
        for spec in
            ["liberation:k=7", "blaum-roth:k=5", "liber8tion:k=8", "xcode:n=7", "cauchy:k=1,m=3"]
        {
            let code = code(spec);
            assert_eq!(code.ones(), code.fewest_ones(), "{spec}");
        }
        for spec in ["10+4", "evenodd:k=5", "star:k=5", "qfs:k=6", "backblaze:k=4,m=2"] {
            let code = code(spec);
            assert!(code.ones() > code.fewest_ones(), "{spec}");
        }
    }
}
