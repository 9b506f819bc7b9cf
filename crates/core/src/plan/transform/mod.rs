//! Fourier transforms over subspaces, by which wide codes are computed in n log n operations.
//!
//! The symbols of some codes are the values of a polynomial at consecutive points
//! ([`crate::define::evaluation`]). Transforms of such codes have two forms. [`program`] is data
//! that a kernel reads: it needs no planning, has up to thousands of entries, and also serves long
//! codes. [`solve`] finds the programs that encode and that recover any losses. [`network`] writes
//! encoding as a schedule, which is proved, lowered and compiled like any other.

pub(crate) mod network;
pub(crate) mod program;
pub(crate) mod solve;

#[cfg(test)]
mod tests {
    use crate::define::cells::{CellSet, NodeId, Role};
    use crate::define::code::Code;
    use crate::define::evaluation::Evaluation;
    use crate::define::field::Field;
    use crate::define::spec::Spec;
    use crate::plan::PlanOptions;
    use crate::plan::cost::Cost;
    use crate::plan::transform::{network, solve};

    /// XORs and copies of a code in packets, for each vector of a shard: to encode, and to recover
    /// the largest number of data nodes that may be lost.
    fn in_packets(k: usize, m: usize) -> [usize; 2] {
        let code = Code::new(&Spec::new("cauchy").with("k", k).with("m", m)).unwrap();
        let rows = code.node_cells(NodeId::new(0)).len();
        let lost: Vec<NodeId> = (0..k.min(m)).map(NodeId::new).collect();
        let left = code.cells_of(code.nodes().filter(|node| !lost.contains(node)));
        let data = CellSet::from_cells(code.cell_count(), code.data_cells().iter().copied());
        [(data, code.stored(Role::Parity)), (left, code.cells_of(lost))].map(|(have, want)| {
            let plan = code.schedule_with(&have, &want, PlanOptions::default()).unwrap();
            let cost = Cost::of(plan.schedule());
            (cost.xors + cost.copies).div_ceil(rows)
        })
    }

    /// The same for a code that is computed by transforms, if a product counts as `product`
    /// operations.
    fn by_transforms(k: usize, m: usize, product: usize) -> [usize; 2] {
        let (field, evaluation) = (Field::bytes(), Evaluation::data_first(k, m));
        let all: Vec<usize> = (0..m).collect();
        let encoding = network::encoding(field, &evaluation, &all, false).unwrap().unwrap();
        let products = encoding.ops().iter().filter(|op| op.factor != 1).count();
        let lost = k.min(m);
        let nodes = |range: std::ops::Range<usize>| range.map(|n| n as u8).collect::<Vec<u8>>();
        let program =
            solve::recovery(field, &evaluation, &nodes(lost..lost + k), &nodes(0..lost)).unwrap();
        [
            products * product + Cost::of(&encoding).xors,
            // A third of the operations of butterflies are products.
            program.operations() * (product + 2) / 3,
        ]
    }

    /// `k+m` names a code of transforms where these take fewer operations, to encode and to recover
    /// the largest number of lost nodes. With 100+32, which has slightly more nodes than a power of
    /// two, they take 2 % more.
    #[test]
    fn the_default_changes_where_transforms_take_fewer_operations() {
        let product = 3;
        for (k, m) in [(24, 24), (20, 40), (64, 12), (128, 16), (32, 32), (100, 32)] {
            let spec: Spec = format!("{k}+{m}").parse().unwrap();
            let packets: usize = in_packets(k, m).iter().sum();
            let transforms: usize = by_transforms(k, m, product).iter().sum();
            let is_less = 100 * transforms < 102 * packets;
            let family = if is_less { "backblaze" } else { "cauchy" };
            assert_eq!(spec.family(), family, "{spec}: {transforms} and {packets}");
        }
    }
}
