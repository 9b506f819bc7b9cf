//! The cells of a group, and the nodes that hold its symbols.

use crate::define::builder::CodeBuilder;
use crate::define::cells::{CellId, Role};
use crate::define::code::Code;
use crate::define::families::dpg::shape::{DpgShape, Interleave};

/// The parts that a group is built from: its shape and its two base codes.
pub(super) struct Group<'a> {
    pub(super) shape: DpgShape,
    /// The code of the first m stripes.
    pub(super) c: &'a Code,
    /// The code of the other stripes.
    pub(super) bar: &'a Code,
}

/// The cells of a stripe: for each node of a base code, by row.
type Stripe = Vec<Vec<CellId>>;

impl Group<'_> {
    /// Adds all cells, and the end of stage one.
    pub(super) fn build(&self) -> CodeBuilder {
        let DpgShape { k, m, m2, .. } = self.shape;
        let mut builder = CodeBuilder::new(k + m2);
        let mut stripes: Vec<Stripe> = Vec::with_capacity(m2);
        for number in 0..m2 {
            let stripe = self.stripe(&mut builder, number, &stripes);
            stripes.push(stripe);
        }
        let read = match self.shape.is_coupled() {
            true => stripes[m..].iter().flat_map(|stripe| &stripe[..k + m]).collect(),
            false => stripes.iter().flat_map(|stripe| &stripe[..k]).collect::<Vec<_>>(),
        };
        builder.end_stage(m, read.into_iter().flatten().copied().collect());
        builder
    }

    /// Adds a stripe: a copy of its base code, cell by cell.
    fn stripe(&self, builder: &mut CodeBuilder, number: usize, before: &[Stripe]) -> Stripe {
        let DpgShape { k, m, .. } = self.shape;
        let base = if number < m { self.c } else { self.bar };
        let mut stored = vec![Vec::new(); base.node_count()];
        // For each cell of the base code, the cell that replaces it in definitions.
        let mut copies: Vec<CellId> = Vec::with_capacity(base.cell_count());
        for cell in base.cells() {
            let sources: Vec<CellId> =
                base.definition(cell).iter().map(|source| copies[source.index()]).collect();
            let role = base.cell(cell).role;
            let Some(symbol) = base.cell(cell).place.map(|place| place.node.index()) else {
                copies.push(builder.derived(role, None, &sources));
                continue;
            };
            let node = Some(self.node(number, symbol));
            let (copy, kept) = match (role, self.partner(number, symbol, before)) {
                (Role::Data, _) => same(builder.data(node)),
                (_, None) => {
                    builder.stage(if symbol < k + m { 1 } else { 2 });
                    same(builder.derived(role, node, &sources))
                }
                (_, Some(partner)) => {
                    let bare = builder.derived(Role::Auxiliary, None, &sources);
                    let added = partner[stored[symbol].len()];
                    (bare, builder.derived(role, node, &[bare, added]))
                }
            };
            builder.stage(1);
            copies.push(copy);
            stored[symbol].push(kept);
        }
        stored
    }

    /// Returns the parity of stage two that is added to parity `symbol` of a stripe of C̄. For
    /// parity i of stripe m + j that is parity m + j of stripe i.
    fn partner<'b>(
        &self,
        number: usize,
        symbol: usize,
        before: &'b [Stripe],
    ) -> Option<&'b [CellId]> {
        let DpgShape { k, m, .. } = self.shape;
        let coupled = self.shape.is_coupled() && number >= m && (k..k + m).contains(&symbol);
        coupled.then(|| &before[symbol - k][k + number][..])
    }

    /// Returns the node of a symbol.
    fn node(&self, stripe: usize, symbol: usize) -> usize {
        let DpgShape { k, m, m2, interleave } = self.shape;
        match interleave {
            Interleave::First if symbol < k + m => (symbol + stripe * m) % (k + m),
            Interleave::All => (symbol + stripe * (m2 - m)) % (k + m2),
            _ => symbol,
        }
    }
}

fn same(cell: CellId) -> (CellId, CellId) {
    (cell, cell)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::define::cells::NodeId;

    fn code(spec: &str) -> Code {
        Code::new(&spec.parse().unwrap()).unwrap()
    }

    /// The dissertation's table 4.2 for k = 2, m = 1, m2 = 2, with plain parity and weighted
    /// parity. Stripe 1 has p(1,1) in stage one and p(2,1) in stage two; stripe 2 has
    /// p̄(1,2) + p(2,1) and p̄(2,2).
    #[test]
    fn two_stripes_by_hand() {
        let base = code("raid6:k=2,w=2,layout=packets");
        let group = code("dpg:k=2,m=1,m2=2,base=raid6,w=2,layout=packets");
        let row = |node: usize, row: usize| group.row(group.node_cells(NodeId::new(node))[row]);
        let parity = |number: usize, stripe: u32, row: usize| -> Vec<u32> {
            let cell = base.node_cells(NodeId::new(2 + number))[row];
            base.row(cell).iter().map(|&data| 4 * stripe + data).collect()
        };
        for r in 0..2 {
            assert_eq!(row(2, r), parity(0, 0, r));
            assert_eq!(row(2, 2 + r), [parity(1, 0, r), parity(0, 1, r)].concat());
            assert_eq!((row(3, r), row(3, 2 + r)), (&parity(1, 0, r)[..], &parity(1, 1, r)[..]));
            assert_eq!((row(0, r), row(1, 2 + r)), (&[r as u32][..], &[6 + r as u32][..]));
        }
    }

    /// Every node holds one symbol of every stripe, and rotated parity is spread evenly.
    #[test]
    fn placements_are_even() {
        for (k, m, m2) in [(3, 2, 3), (6, 2, 4), (9, 3, 5), (2, 1, 5), (10, 4, 6), (5, 1, 6)] {
            for interleave in ["none", "first", "all"] {
                let code = code(&format!("dpg:k={k},m={m},m2={m2},interleave={interleave}"));
                let w = code.lane_rows();
                let spread = if interleave == "first" { k + m } else { k + m2 };
                let count = |cells: &crate::define::cells::CellSet, node| {
                    code.node_cells(node).iter().filter(|&&cell| cells.contains(cell)).count() / w
                };
                let even = |cells: crate::define::cells::CellSet| {
                    let nodes = code.nodes().take(spread);
                    let counts: Vec<usize> = nodes.map(|node| count(&cells, node)).collect();
                    counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1
                };
                assert!(code.nodes().all(|node| code.node_cells(node).len() == m2 * w));
                let promotion = code.promotion(2).unwrap();
                match interleave {
                    "first" => assert!(even(code.made_in(1)), "{}", code.spec()),
                    "all" => assert!(even(code.made_in(2)), "{}", code.spec()),
                    _ => assert!(code.nodes().take(k).all(|node| code.holds_data(node))),
                }
                if m2 < k + m {
                    assert!(interleave == "none" || even(promotion.reads), "{}", code.spec());
                }
            }
        }
    }
}
