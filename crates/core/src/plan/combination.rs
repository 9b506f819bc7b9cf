//! Combinations: the word layout's counterpart of schedules.
//!
//! Where a node holds one symbol of GF(2^w), every question has an answer of the same form: wanted
//! symbols are sums of multiples of symbols at hand. [`Code::combination`] finds the multiples by
//! elimination over GF(2^w), with one unknown for each lost data node. That is w² times less work
//! than elimination over the bits of the same code, and it is the form that a word kernel needs.
//!
//! As little parity as possible is used, the sparsest rows first (plain parity, then the parity of
//! a local group, then dense rows). Nodes on which no wanted node depends are not read.

use crate::define::cells::NodeId;
use crate::define::code::Code;
use crate::define::field::Field;
use crate::define::symbols::SymbolMatrix;
use crate::error::{Error, Result};

/// Wanted symbols as sums of multiples of symbols at hand. The factors are the same for every word
/// of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Combination {
    field: Field,
    inputs: Vec<NodeId>,
    outputs: Vec<NodeId>,
    coefficients: Vec<u32>,
}

impl Combination {
    /// Makes a combination from rows that have one coefficient for each input. Inputs that no row
    /// uses are left out.
    fn new(
        field: Field,
        mut inputs: Vec<NodeId>,
        outputs: Vec<NodeId>,
        mut rows: Vec<Vec<u32>>,
    ) -> Self {
        let used: Vec<bool> =
            (0..inputs.len()).map(|input| rows.iter().any(|row| row[input] != 0)).collect();
        for row in &mut rows {
            retain(row, &used);
        }
        retain(&mut inputs, &used);
        Self { field, inputs, outputs, coefficients: rows.concat() }
    }

    /// The field of the symbols.
    pub fn field(&self) -> Field {
        self.field
    }

    /// Nodes that are read.
    pub fn inputs(&self) -> &[NodeId] {
        &self.inputs
    }

    /// Nodes that are computed.
    pub fn outputs(&self) -> &[NodeId] {
        &self.outputs
    }

    /// Factors of all inputs in the sum that gives an output.
    ///
    /// # Panics
    /// If there is no output of that number.
    pub fn coefficients(&self, output: usize) -> &[u32] {
        &self.coefficients[output * self.inputs.len()..][..self.inputs.len()]
    }

    /// Factors of all outputs' sums, one row each.
    pub(crate) fn rows(&self) -> Vec<Vec<u32>> {
        (0..self.outputs.len()).map(|output| self.coefficients(output).to_vec()).collect()
    }
}

impl Code {
    /// Returns how the nodes of `want` are computed from those of `have`, in a code of the word
    /// layout. Wanted nodes that are at hand are left out, as are nodes at hand that are not
    /// needed.
    ///
    /// # Errors
    /// [`crate::ErrorKind::NotEnough`] if some wanted nodes are not determined; the message says
    /// which. [`crate::ErrorKind::Parameters`] if the code is not in the word layout.
    ///
    /// # Panics
    /// If there is no node of that number.
    pub fn combination(&self, have: &[NodeId], want: &[NodeId]) -> Result<Combination> {
        let matrix = self.expect_words()?;
        let outputs: Vec<NodeId> =
            want.iter().copied().filter(|node| !have.contains(node)).collect();
        let equations = Equations::new(matrix, have);
        let rows: Vec<Option<Vec<u32>>> =
            outputs.iter().map(|&node| equations.express(node)).collect();
        let missing = outputs.iter().zip(&rows).filter(|(_, row)| row.is_none());
        let missing: Vec<NodeId> = missing.map(|(&node, _)| node).collect();
        if !missing.is_empty() {
            return Err(self.out_of_reach(&missing, outputs.len(), have.len()));
        }
        let rows = rows.into_iter().flatten().collect();
        Ok(Combination::new(matrix.field(), equations.at_hand(), outputs, rows))
    }

    /// Returns the combination that is added to the nodes of `parity` after data node `node`
    /// changed. Its inputs are the shards of `change`, each called `node`. Parity that does not
    /// depend on the node is left out.
    ///
    /// # Errors
    /// If no parity depends on the node, or the code is not in the word layout.
    pub(crate) fn combination_update(
        &self,
        node: NodeId,
        change: Change,
        parity: &[NodeId],
    ) -> Result<Combination> {
        let matrix = self.expect_words()?;
        let factor = |&parity: &NodeId| matrix.coefficient(parity, node.index());
        let depends = parity.iter().copied().filter(|parity| factor(parity) != 0);
        let outputs: Vec<NodeId> = depends.collect();
        if outputs.is_empty() {
            let message = format!("no parity depends on node {}", node.index());
            return Err(Error::parameters(message).at(node.index()));
        }
        let rows = outputs.iter().map(|parity| vec![factor(parity); change.shards()]).collect();
        Ok(Combination::new(matrix.field(), vec![node; change.shards()], outputs, rows))
    }

    fn expect_words(&self) -> Result<&SymbolMatrix> {
        self.symbols()
            .ok_or_else(|| Error::parameters(format!("{} is not in the word layout", self.spec())))
    }

    fn out_of_reach(&self, missing: &[NodeId], wanted: usize, have: usize) -> Error {
        let names: Vec<String> =
            missing.iter().take(8).map(|node| node.index().to_string()).collect();
        let more = if missing.len() > names.len() { ", …" } else { "" };
        Error::not_enough(format!(
            "{}: {} of the {wanted} wanted nodes cannot be computed from the {have} at hand: {}{more}",
            self.spec(),
            missing.len(),
            names.join(", ")
        ))
    }
}

/// The shards that describe how a data node changed, for the update of parity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Change {
    /// The old and the new shard.
    OldAndNew,
    /// The XOR of the two.
    Difference,
}

impl Change {
    /// Number of these shards.
    pub(crate) fn shards(self) -> usize {
        match self {
            Self::OldAndNew => 2,
            Self::Difference => 1,
        }
    }
}

/// The equations that the parity at hand gives for the data that is not at hand, reduced as far as
/// possible.
struct Equations<'a> {
    matrix: &'a SymbolMatrix,
    /// The data nodes at hand.
    known: Vec<NodeId>,
    /// The data nodes that are not at hand.
    unknown: Vec<NodeId>,
    /// Parity nodes at hand, one for each equation.
    parity: Vec<NodeId>,
    /// By leading unknown: an equation scaled to have 1 there and 0 before.
    solved: Vec<Option<Equation>>,
}

/// A sum of multiples of parity nodes.
#[derive(Clone)]
struct Equation {
    /// For each unknown, its coefficient in the sum.
    unknown: Vec<u32>,
    /// For each parity node in use, its factor.
    parity: Vec<u32>,
}

impl<'a> Equations<'a> {
    fn new(matrix: &'a SymbolMatrix, have: &[NodeId]) -> Self {
        let mut at_hand = vec![false; matrix.node_count()];
        have.iter().for_each(|node| at_hand[node.index()] = true);
        let (known, unknown): (Vec<_>, Vec<_>) =
            (0..matrix.data_nodes()).map(NodeId::new).partition(|node| at_hand[node.index()]);
        let parity = (matrix.data_nodes()..matrix.node_count()).map(NodeId::new);
        let mut parity: Vec<NodeId> = parity.filter(|node| at_hand[node.index()]).collect();
        parity.sort_by_key(|&node| {
            (0..matrix.data_nodes()).filter(|&data| matrix.coefficient(node, data) != 0).count()
        });
        let solved = vec![None; unknown.len()];
        let mut equations = Self { matrix, known, unknown, parity: Vec::new(), solved };
        parity.into_iter().for_each(|node| equations.insert(node));
        equations
    }

    /// The nodes at hand, in the order of the coefficients that [`Equations::express`] returns.
    fn at_hand(&self) -> Vec<NodeId> {
        [&self.known[..], &self.parity].concat()
    }

    fn coefficients(&self, node: NodeId, data: &[NodeId]) -> Vec<u32> {
        data.iter().map(|data| self.matrix.coefficient(node, data.index())).collect()
    }

    /// Adds a parity node if its equation is independent of those already in use.
    fn insert(&mut self, node: NodeId) {
        let mut parity = vec![0; self.parity.len()];
        parity.push(1);
        let row = Equation { unknown: self.coefficients(node, &self.unknown), parity };
        let mut rest = self.reduce(row);
        let Some(lead) = rest.unknown.iter().position(|&c| c != 0) else { return };
        let Some(scale) = self.matrix.field().inverse(rest.unknown[lead]) else { return };
        let scaled = |list: &[u32]| {
            let mut product = vec![0; list.len()];
            add_multiple(self.matrix.field(), &mut product, scale, list);
            product
        };
        rest = Equation { unknown: scaled(&rest.unknown), parity: scaled(&rest.parity) };
        self.parity.push(node);
        self.solved[lead] = Some(rest);
    }

    /// Subtracts multiples of the solved equations from `row`, until their leading unknowns no
    /// longer occur in it.
    fn reduce(&self, mut row: Equation) -> Equation {
        row.parity.resize(row.parity.len().max(self.parity.len()), 0);
        for (lead, solved) in self.solved.iter().enumerate() {
            let factor = row.unknown[lead];
            let Some(solved) = solved.as_ref().filter(|_| factor != 0) else { continue };
            add_multiple(self.matrix.field(), &mut row.unknown, factor, &solved.unknown);
            add_multiple(self.matrix.field(), &mut row.parity, factor, &solved.parity);
        }
        row
    }

    /// Expresses a node's symbol by the symbols of [`Equations::at_hand`].
    fn express(&self, node: NodeId) -> Option<Vec<u32>> {
        let unknown = self.coefficients(node, &self.unknown);
        let reduced = self.reduce(Equation { unknown, parity: Vec::new() });
        if reduced.unknown.iter().any(|&c| c != 0) {
            return None;
        }
        // The contribution of the known data to the parity is subtracted again.
        let mut row = self.coefficients(node, &self.known);
        for (&factor, &parity) in reduced.parity.iter().zip(&self.parity) {
            let contained = self.coefficients(parity, &self.known);
            add_multiple(self.matrix.field(), &mut row, factor, &contained);
        }
        row.extend(reduced.parity);
        Some(row)
    }
}

/// Computes `target += factor · source`, element by element, for the length of `source`.
fn add_multiple(field: Field, target: &mut [u32], factor: u32, source: &[u32]) {
    let multiples = field.multiples_of(factor);
    for (target, &source) in target.iter_mut().zip(source) {
        *target ^= multiples.of(source);
    }
}

fn retain<T>(list: &mut Vec<T>, keep: &[bool]) {
    let mut keep = keep.iter();
    list.retain(|_| keep.next().copied().unwrap_or(false));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::define::builder::CodeBuilder;
    use crate::define::erasure::combinations;
    use crate::define::spec::Spec;
    use crate::error::ErrorKind;

    fn nodes(numbers: &[usize]) -> Vec<NodeId> {
        numbers.iter().map(|&number| NodeId::new(number)).collect()
    }

    fn code(parity: Vec<Vec<u32>>) -> Code {
        let matrix = SymbolMatrix::new(Field::new(8).unwrap(), parity[0].len(), parity).unwrap();
        let mut builder = CodeBuilder::new(matrix.node_count());
        builder.words(matrix);
        builder.finish(Spec::new("test"), 2).unwrap()
    }

    /// Returns the sum of multiples of generator rows that a combination gives for an output.
    fn sum(code: &Code, combination: &Combination, output: usize) -> Vec<u32> {
        let matrix = code.symbols().unwrap();
        let mut sum = vec![0; matrix.data_nodes()];
        for (&node, &factor) in combination.inputs().iter().zip(combination.coefficients(output)) {
            let row: Vec<u32> = (0..sum.len()).map(|d| matrix.coefficient(node, d)).collect();
            add_multiple(matrix.field(), &mut sum, factor, &row);
        }
        sum
    }

    #[test]
    fn sums_are_true() {
        let code = code(vec![vec![1; 4], vec![1, 2, 4, 8], vec![1, 4, 16, 64]]);
        let matrix = code.symbols().unwrap();
        for lost in combinations(7, 3) {
            let have: Vec<NodeId> = code.nodes().filter(|n| !lost.contains(&n.index())).collect();
            let combination = code.combination(&have, &nodes(&lost)).unwrap();
            assert_eq!(combination.inputs().len(), 4, "{lost:?}");
            for (output, &node) in combination.outputs().iter().enumerate() {
                let row: Vec<u32> = (0..4).map(|d| matrix.coefficient(node, d)).collect();
                assert_eq!(sum(&code, &combination, output), row, "{lost:?}");
            }
        }
    }

    /// With one lost node and plain parity, the answer is an XOR of the others; the second parity
    /// is not read.
    #[test]
    fn sparse_parity_is_preferred() {
        let code = code(vec![vec![1, 2, 4, 8], vec![1, 1, 0, 0]]);
        let combination = code.combination(&nodes(&[1, 2, 3, 4, 5]), &nodes(&[0])).unwrap();
        assert_eq!(combination.inputs(), nodes(&[1, 5]));
        assert_eq!(combination.coefficients(0), [1, 1]);
    }

    #[test]
    fn nodes_at_hand_are_not_computed() {
        let code = code(vec![vec![1; 3], vec![1, 2, 4]]);
        let combination = code.combination(&nodes(&[0, 1, 2, 3]), &nodes(&[1, 4])).unwrap();
        assert_eq!(combination.outputs(), nodes(&[4]));
        assert_eq!(combination.inputs(), nodes(&[0, 1, 2]));
        assert_eq!(combination.coefficients(0), [1, 2, 4]);
    }

    #[test]
    fn out_of_reach_names_the_nodes() {
        let code = code(vec![vec![1; 3], vec![1, 2, 4]]);
        let error = code.combination(&nodes(&[2, 3]), &nodes(&[0, 4])).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotEnough);
        let part = "2 of the 2 wanted nodes cannot be computed from the 2 at hand: 0, 4";
        assert!(error.to_string().contains(part), "{error}");
    }

    #[test]
    fn updates_leave_out_independent_parity() {
        let code = code(vec![vec![1, 2, 4, 8], vec![1, 1, 0, 0]]);
        let parity = nodes(&[4, 5]);
        let update = code.combination_update(NodeId::new(1), Change::OldAndNew, &parity).unwrap();
        assert_eq!((update.inputs(), update.outputs()), (&nodes(&[1, 1])[..], &parity[..]));
        assert_eq!([update.coefficients(0), update.coefficients(1)], [[2, 2], [1, 1]]);
        let update = code.combination_update(NodeId::new(2), Change::OldAndNew, &parity).unwrap();
        assert_eq!(update.outputs(), nodes(&[4]));
    }
}
