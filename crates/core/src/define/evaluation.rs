//! Codes whose symbols are the values of one polynomial at consecutive points.
//!
//! Such a code gives each node a point of the field; the node's symbol is the value of the
//! polynomial at that point. Data nodes have consecutive points, and so do parity nodes. The other
//! points belong to no node: at some of them every polynomial of the code is zero, at the rest the
//! value is unknown. With k data nodes and z zeros, the code's polynomials are all polynomials of
//! degree below k + z that have these zeros.
//!
//! Transforms compute parity and lost symbols from this alone ([`crate::plan::transform`]).

use std::ops::Range;

/// The points of a code's nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Evaluation {
    data: Range<usize>,
    parity: Range<usize>,
    zeros: Range<usize>,
}

impl Evaluation {
    /// Returns the evaluation whose k data nodes have the points 0 to k - 1 and whose m parity
    /// nodes have the points after them.
    pub(crate) fn data_first(k: usize, m: usize) -> Self {
        Self { data: 0..k, parity: k..k + m, zeros: 0..0 }
    }

    /// Returns the evaluation whose parity nodes have the first points. Data nodes begin at the
    /// power of two that is at least m, and zeros follow up to the next power of two.
    pub(crate) fn parity_first(k: usize, m: usize) -> Self {
        let start = m.next_power_of_two();
        let end = start + k;
        Self { data: start..end, parity: 0..m, zeros: end..end.next_power_of_two() }
    }

    /// The points of the data nodes.
    pub(crate) fn data(&self) -> Range<usize> {
        self.data.clone()
    }

    /// The points of the parity nodes.
    pub(crate) fn parity(&self) -> Range<usize> {
        self.parity.clone()
    }

    /// The points at which every polynomial is zero.
    pub(crate) fn zeros(&self) -> Range<usize> {
        self.zeros.clone()
    }

    /// The number below which all points are, a power of two.
    pub(crate) fn points(&self) -> usize {
        self.data.end.max(self.parity.end).max(self.zeros.end).next_power_of_two()
    }

    /// The point of a node.
    pub(crate) fn point(&self, node: usize) -> usize {
        match node.checked_sub(self.data.len()) {
            None => self.data.start + node,
            Some(row) => self.parity.start + row,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_have_consecutive_points() {
        let first = Evaluation::data_first(5, 3);
        assert!((0..8).all(|node| first.point(node) == node));
        assert_eq!(first.points(), 8);
        let last = Evaluation::parity_first(5, 3);
        let points: Vec<usize> = (0..8).map(|node| last.point(node)).collect();
        assert_eq!(points, [4, 5, 6, 7, 8, 0, 1, 2]);
        assert_eq!((last.points(), last.zeros()), (16, 9..16));
    }
}
