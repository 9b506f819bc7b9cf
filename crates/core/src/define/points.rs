//! Points: codes over bytes whose symbols are the values of one polynomial.
//!
//! In a generalised Reed-Solomon code the symbol of node n is w_n · f(z_n), where f is a polynomial
//! of degree below k, z_n is the node's *point* and w_n its *weight*, which is not 0. Any k symbols
//! determine f, so by Lagrange's formula every symbol is a sum of multiples of any k others, and
//! each factor is a product that can be written down: no equations are solved.
//!
//! The matrices of `backblaze`, `isal-cauchy`, `zfec`, `raid6` and Jerasure's `reed_sol_van` are of
//! this kind, and so is every Cauchy matrix whose rows and columns were scaled. Points and weights
//! are found from the coefficients alone ([`CodePoints::of`]). In such a matrix the coefficient of
//! data node j in parity node i is u_i · v_j / (x_i + y_j). A map z -> (a·z + b) / (c·z + d) of all
//! points changes only the weights, so three numbers may be chosen: the first parity node gets the
//! point at infinity, the second one the point 0 and u = 1. Then the first row is v, the second row
//! gives y, and two columns give x and u of every further row. At the end z -> 1 / (z + c), where c
//! is not one of the points, moves all points to elements of the field, and every coefficient is
//! compared.

use crate::define::logarithms::{Logarithms, ORDER};
use crate::define::symbols::SymbolMatrix;

/// Largest number of nodes: the number of elements of the field.
const NODES: usize = 256;

/// The points and weights of a code, as logarithms.
#[derive(Debug)]
pub(crate) struct CodePoints {
    field: &'static Logarithms,
    nodes: usize,
    data: usize,
    /// For each pair of nodes, the logarithm of the difference of their points; 0 for a node and
    /// itself.
    differences: Vec<u8>,
    /// For each node, the logarithm of its weight plus those of its differences to all others.
    totals: Vec<u16>,
}

impl CodePoints {
    /// Finds the points of a code; `None` if it has none, or is not over bytes with the usual
    /// polynomial.
    pub(crate) fn of(matrix: &SymbolMatrix) -> Option<Self> {
        let field = matrix.field().logarithms()?;
        if matrix.node_count() > NODES {
            return None;
        }
        let rows: Vec<Vec<u8>> =
            matrix.parity().iter().map(|row| row.iter().map(|&c| c as u8).collect()).collect();
        if rows.is_empty() || rows.iter().flatten().any(|&coefficient| coefficient == 0) {
            return None;
        }
        let points = find(field, &rows)?;
        let (data, nodes) = (matrix.data_nodes(), points.len());
        let mut differences = vec![0; nodes * nodes];
        for (a, row) in points.iter().zip(differences.chunks_exact_mut(nodes)) {
            row.iter_mut().zip(&points).for_each(|(entry, b)| *entry = field.log(a ^ b) as u8);
        }
        let mut points = Self { field, nodes, data, differences, totals: Vec::new() };
        points.totals = points.weigh(&rows);
        points.gives(&rows).then_some(points)
    }

    /// The logarithms of the differences of a node's point to all points.
    fn row(&self, node: usize) -> &[u8] {
        &self.differences[node * self.nodes..][..self.nodes]
    }

    /// Returns [`CodePoints::totals`], with weights for which the first row and the first column
    /// are right.
    fn weigh(&self, rows: &[Vec<u8>]) -> Vec<u16> {
        let sum = |list: &[u8]| list.iter().map(|&log| usize::from(log)).sum::<usize>();
        let to_data = |node: usize| sum(&self.row(node)[..self.data]) % ORDER;
        let difference = |a: usize, b: usize| usize::from(self.row(a)[b]);
        let coefficient = |row: usize, column: usize| self.field.log(rows[row][column]);
        let mut weights = vec![0; self.nodes];
        for (node, weight) in weights[..self.data].iter_mut().enumerate() {
            let taken = difference(self.data, node) + to_data(node) + coefficient(0, node);
            *weight = (to_data(self.data) + 3 * ORDER - taken) % ORDER;
        }
        for row in 1..rows.len() {
            let node = self.data + row;
            let given = coefficient(row, 0) + weights[0] + difference(node, 0) + to_data(0);
            weights[node] = (given + ORDER - to_data(node)) % ORDER;
        }
        weights
            .iter()
            .enumerate()
            .map(|(node, weight)| (weight + sum(self.row(node))) as u16)
            .collect()
    }

    /// Whether these points and weights give the coefficients of `rows`.
    fn gives(&self, rows: &[Vec<u8>]) -> bool {
        let (data, parity) = (0..self.data, self.data..self.nodes);
        let from: Vec<u8> = data.map(|node| node as u8).collect();
        let to: Vec<u8> = parity.map(|node| node as u8).collect();
        self.factors(&from, &to) == rows.concat()
    }

    /// Returns the nodes that are not among `nodes`.
    fn others(&self, nodes: &[u8]) -> impl Iterator<Item = u8> {
        let mut is_other = [1; NODES];
        nodes.iter().for_each(|&node| is_other[usize::from(node)] = 0);
        let (mut others, mut count) = ([0; NODES], 0);
        for (node, is_other) in is_other.iter().enumerate().take(self.nodes) {
            others[count] = node as u8;
            count += is_other;
        }
        others.into_iter().take(count)
    }

    /// Returns the factors that give the symbols of the nodes `to` as sums of multiples of those of
    /// `from`: one row for each of `to`. `from` are k nodes, and `to` are other nodes.
    ///
    /// For s among the nodes S of `from`, and e of `to`, the factor is
    ///
    /// ```text
    /// w_e / w_s · (product of all z_e - z_t) / (product of all z_s - z_t), t in S except s
    /// ```
    ///
    /// Both products are computed once over all nodes ([`CodePoints::totals`]). The factors of the
    /// m nodes outside S are then divided out.
    pub(crate) fn factors(&self, from: &[u8], to: &[u8]) -> Vec<u8> {
        let mut totals = [0; NODES];
        let totals = &mut totals[..self.nodes];
        totals.copy_from_slice(&self.totals);
        for node in self.others(from) {
            let row = self.row(usize::from(node)).iter();
            totals.iter_mut().zip(row).for_each(|(total, &log)| *total -= u16::from(log));
        }
        totals.iter_mut().for_each(|total| *total %= ORDER as u16);
        let divisors: Vec<u16> = from.iter().map(|&node| totals[usize::from(node)]).collect();
        let mut factors = Vec::with_capacity(from.len() * to.len());
        for target in to {
            let target = usize::from(*target);
            let (own, row) = (totals[target] + 2 * ORDER as u16, self.row(target));
            factors.extend(from.iter().zip(&divisors).map(|(&node, divisor)| {
                let exponent = own - u16::from(row[usize::from(node)]) - divisor;
                self.field.low_power(exponent.into())
            }));
        }
        factors
    }
}

/// Returns points that can give the coefficients of `rows`, all different: those of the data nodes,
/// then those of the parity nodes. No coefficient may be 0.
fn find(field: &Logarithms, rows: &[Vec<u8>]) -> Option<Vec<u8>> {
    let (k, m) = (rows[0].len(), rows.len());
    if k == 1 || m == 1 {
        return Some((0..=u8::MAX).take(k + m).collect());
    }
    let first = &rows[0];
    let ys: Vec<u8> = first.iter().zip(&rows[1]).map(|(&a, &b)| field.quotient(a, b)).collect();
    let mut xs = vec![0];
    for row in &rows[2..] {
        let [a, b] = [0, 1].map(|column: usize| field.quotient(first[column], row[column]));
        // If a and b are equal, the quotient is 0 like the point of the second row, and refused.
        xs.push(field.product(a, field.quotient(ys[0] ^ ys[1], a ^ b)) ^ ys[0]);
    }
    let mut is_taken = [false; NODES];
    let finite = || ys.iter().chain(&xs);
    if finite().any(|&point| std::mem::replace(&mut is_taken[usize::from(point)], true)) {
        return None;
    }
    let free = (0..=u8::MAX).find(|&point| !is_taken[usize::from(point)])?;
    let moved = |&point: &u8| field.power(ORDER - field.log(point ^ free));
    Some(ys.iter().map(moved).chain([0]).chain(xs.iter().map(moved)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::define::code::Code;
    use crate::define::field::Field;

    fn matrix(spec: &str) -> SymbolMatrix {
        Code::new(&spec.parse().unwrap()).unwrap().symbols().unwrap().clone()
    }

    /// The coefficients of a parity node are those of its sum of data nodes, at the limits of the
    /// families too.
    #[test]
    fn families_that_evaluate_polynomials_have_points() {
        for spec in [
            "backblaze:k=10,m=4",
            "backblaze:k=200,m=56",
            "backblaze:k=1,m=5",
            "backblaze:k=255,m=1",
            "isal-cauchy:k=20,m=4",
            "zfec:k=17,m=5",
            "raid6:k=200",
            "reed-solomon:k=10,m=5",
        ] {
            let matrix = matrix(spec);
            assert!(CodePoints::of(&matrix).is_some(), "{spec}");
        }
    }

    /// Codes without points: ISA-L's powers of two from three rows on, and any code with points
    /// after one of its coefficients has been changed.
    #[test]
    fn other_matrices_have_none() {
        assert!(CodePoints::of(&matrix("isal-rs:k=10,m=4")).is_none());
        let right = matrix("backblaze:k=5,m=3");
        for (row, column) in (0..3).flat_map(|row| (0..5).map(move |column| (row, column))) {
            let mut rows = right.parity().to_vec();
            rows[row][column] ^= 1 + row as u32;
            let wrong = SymbolMatrix::new(right.field(), 5, rows).unwrap();
            assert!(CodePoints::of(&wrong).is_none(), "{row} {column}");
        }
        let wide = SymbolMatrix::new(Field::new(16).unwrap(), 1, vec![vec![1]]).unwrap();
        assert!(CodePoints::of(&wide).is_none());
    }
}
