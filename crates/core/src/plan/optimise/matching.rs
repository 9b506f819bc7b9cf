//! Matching: many common pairs of inputs at a time.
//!
//! Huang, Li and Chen, *On optimizing XOR-based codes for fault-tolerant storage applications* (ITW
//! 2007, "common operation first"); the dissertation's section 2.2.4 (UM and WM). Inputs are the
//! vertices of a graph. The weight of an edge is the number of rows that contain both its ends. A
//! maximum matching of the heaviest edges is a set of disjoint pairs. They become temporaries, the
//! rows are rewritten, and the next round begins, until each pair of inputs is in at most one row.
//! Pairs of temporaries are not searched for; `slp` does that.
//!
//! *Unweighted* takes any largest matching. *Weighted* takes the largest matching that leaves the
//! inputs with the most heavy edges unmatched, so that these can be paired with others in later
//! rounds.

use std::convert::Infallible;

use rustworkx_core::max_weight_matching::max_weight_matching;
use rustworkx_core::petgraph::graph::UnGraph;

use crate::plan::optimise::rows::Rows;

/// Which of the largest matchings is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preference {
    /// Any.
    None,
    /// The one whose ends have the fewest heavy edges.
    Sparse,
}

/// Upper bound on the inputs for which a table of pairs is made; the table then has 64 MiB.
const MOST_INPUTS: usize = 1 << 12;

/// Number of steps of this pass: about ten rounds, each of which counts the pairs of each row in a
/// table of all pairs. The matching itself, of the pairs that occur most often, is not counted.
pub(crate) fn steps(rows: &Rows) -> u64 {
    let table = (rows.inputs() as u64).pow(2);
    let pairs: u64 = rows.iter().map(|row| (row.len() as u64).pow(2) / 2).sum();
    10 * (table + pairs)
}

/// Extracts pairs of inputs by matching until each pair occurs only once. Rows over more than 4,096
/// inputs stay as they are.
pub(crate) fn extract_matchings(rows: &mut Rows, preference: Preference) {
    while rows.inputs() <= MOST_INPUTS {
        let edges = heaviest_edges(rows);
        let matching = matching(rows.inputs(), &edges, preference);
        if matching.is_empty() {
            return;
        }
        matching.into_iter().for_each(|(a, b)| extract(rows, a, b));
    }
}

type Edge = (u32, u32);

/// Returns the pairs of inputs that most rows contain, if that is at least two rows.
fn heaviest_edges(rows: &Rows) -> Vec<Edge> {
    let inputs = rows.inputs();
    let mut weights = vec![0_u32; inputs * inputs];
    for row in rows.iter() {
        let row: Vec<usize> = row.iter().map(|&c| c as usize).filter(|&c| c < inputs).collect();
        for (index, &a) in row.iter().enumerate() {
            row[index + 1..].iter().for_each(|&b| weights[a * inputs + b] += 1);
        }
    }
    let heaviest = weights.iter().copied().max().unwrap_or(0);
    let edges =
        weights.iter().enumerate().filter(|&(_, &weight)| weight >= 2 && weight == heaviest);
    edges.map(|(index, _)| ((index / inputs) as u32, (index % inputs) as u32)).collect()
}

/// Returns a largest matching of the given edges, ascending.
fn matching(inputs: usize, edges: &[Edge], preference: Preference) -> Vec<Edge> {
    let mut degrees = vec![0; inputs];
    edges.iter().for_each(|&(a, b)| [a, b].iter().for_each(|&end| degrees[end as usize] += 1));
    let weight = |a: u32, b: u32| match preference {
        Preference::None => 1,
        Preference::Sparse => 2 * inputs as i128 - degrees[a as usize] - degrees[b as usize],
    };
    let graph: UnGraph<(), i128> =
        UnGraph::from_edges(edges.iter().map(|&(a, b)| (a, b, weight(a, b))));
    let matched =
        max_weight_matching(&graph, true, |edge| Ok::<_, Infallible>(*edge.weight()), false);
    let Ok(matched) = matched;
    let mut pairs: Vec<Edge> =
        matched.into_iter().map(|(a, b)| (a.min(b) as u32, a.max(b) as u32)).collect();
    pairs.sort_unstable();
    pairs
}

/// Replaces a pair by a temporary in all rows that contain it.
fn extract(rows: &mut Rows, a: u32, b: u32) {
    let users: Vec<usize> = (0..rows.len())
        .filter(|&row| [a, b].iter().all(|end| rows.row(row).binary_search(end).is_ok()))
        .collect();
    let pair = rows.push(vec![a, b]);
    for user in users {
        let mut columns = rows.row(user).clone();
        columns.retain(|&column| column != a && column != b);
        columns.push(pair);
        rows.set(user, columns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::optimise::passes;

    fn reduced(text: &str, preference: Preference) -> String {
        passes::matching(&text.parse().unwrap(), preference).unwrap().to_string()
    }

    /// A table of all pairs of these inputs would have 2^48 entries.
    #[test]
    fn schedules_of_many_inputs_stay() {
        let text = "inputs 16777216 temps 0 outputs 2\no0 = i0 ^ i1\no1 = i0 ^ i1\n";
        assert_eq!(reduced(text, Preference::None), text);
    }

    /// Both pairs are in three rows, and one matching takes both; the pair {t0, t1} is left.
    #[test]
    fn pairs_of_inputs_at_a_time() {
        let before = "inputs 5 temps 0 outputs 3\n\
                      o0 = i0 ^ i1 ^ i2 ^ i3\no1 = i0 ^ i1 ^ i2 ^ i3 ^ i4\no2 = i0 ^ i1 ^ i2 ^ i3\n";
        let after = reduced(before, Preference::None);
        let pairs = after.lines().filter(|line| line.starts_with('t')).count();
        assert_eq!(pairs, 2, "{after}");
        assert!(after.contains("o1 = i4 ^ t0 ^ t1\n"), "{after}");
    }

    /// A path i0 - i1 - i2 - i3 of pairs that occur twice. The middle edge alone would be a maximal
    /// matching; the two others are a maximum one.
    #[test]
    fn matchings_are_maximum() {
        let before = "inputs 4 temps 0 outputs 6\n\
                      o0 = i0 ^ i1\no1 = i0 ^ i1\no2 = i1 ^ i2\no3 = i1 ^ i2\no4 = i2 ^ i3\no5 = i2 ^ i3\n";
        for preference in [Preference::None, Preference::Sparse] {
            let after = reduced(before, preference);
            assert!(after.starts_with("inputs 4 temps 3 outputs 6\nt0 = i0 ^ i1\n"), "{after}");
        }
    }

    /// A star around i0 and an edge i4 - i5, all of weight two: only one edge of the star can be
    /// matched. From the triangle i1 - i2 - i3, the weighted matching takes the edge whose ends
    /// have the fewest other edges.
    #[test]
    fn weights_prefer_sparse_ends() {
        let edges = [(0, 1), (0, 2), (0, 3), (1, 2)];
        assert_eq!(matching(4, &edges, Preference::Sparse), [(0, 3), (1, 2)]);
        let path = [(0, 1), (1, 2), (1, 3), (3, 4), (3, 5)];
        assert_eq!(matching(6, &path, Preference::Sparse).len(), 2);
    }
}
