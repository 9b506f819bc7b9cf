//! Codes from a bit matrix of one's own: they are the codes of the families whose matrix they are
//! given, and what they survive is what linear algebra says.

use std::collections::BTreeMap;

use paritas::code::{BitMatrix, ParityMatrix, ParityPlacement, Role};
use paritas::erasure::{Losses, combinations, survival};
use paritas::{Code, Codec, NodeId};
use proptest::prelude::*;

fn code(spec: &str) -> Code {
    spec.parse().unwrap()
}

/// Returns the matrix of a code, node by node.
fn matrix_of(code: &Code) -> ParityMatrix {
    let cells = || code.nodes().flat_map(|node| code.node_cells(node).iter().copied());
    let parity: Vec<_> = cells().filter(|&cell| code.cell(cell).role == Role::Parity).collect();
    let columns = code.data_cells().len();
    let rows: Vec<Vec<usize>> = parity
        .iter()
        .map(|&cell| code.row(cell).iter().map(|&data| data as usize).collect())
        .collect();
    let w = code.node_cells(NodeId::new(0)).len();
    let is_vertical = code.nodes().all(|node| code.holds_data(node));
    let placement =
        if is_vertical { ParityPlacement::Vertical } else { ParityPlacement::Horizontal };
    let bits = BitMatrix::from_supports(columns, &rows);
    ParityMatrix::new(columns / w, rows.len() / w, w, placement, bits).unwrap()
}

fn description(code: &Code) -> Vec<u8> {
    let mut bytes = Vec::new();
    code.describe(|part| bytes.extend_from_slice(part));
    bytes
}

const FAMILIES: [&str; 9] = [
    "4+2",
    "cauchy:k=5,m=3,w=8",
    "rdp:k=6",
    "evenodd:k=5",
    "star:k=4",
    "liberation:k=5",
    "blaum-roth:k=4",
    "xcode:n=5",
    "xcode:n=7",
];

/// The same generator, placement and tolerance, from the text and from the spec.
#[test]
fn the_matrix_of_a_code_makes_that_code() {
    for spec in FAMILIES {
        let known = code(spec);
        let text = matrix_of(&known).to_string();
        let own = Code::from_matrix(&text.parse().unwrap()).unwrap();
        assert_eq!(description(&own), description(&known), "{spec}");
        assert_eq!(own.tolerance(), known.tolerance(), "{spec}");
        let again = Code::rebuild(own.spec(), own.pin()).unwrap();
        assert_eq!((again.spec(), again.tolerance()), (own.spec(), own.tolerance()));
        assert_eq!(description(&again), description(&own), "{spec}");
        assert_eq!(again.parity_matrix(), Some(matrix_of(&known)));
        assert_eq!(known.parity_matrix(), None);
    }
}

/// The same bytes.
#[test]
fn parity_is_that_of_the_family() {
    for spec in ["rdp:k=6", "liberation:k=5", "cauchy:k=5,m=3,w=8"] {
        let known: Codec = spec.parse().unwrap();
        let own: Codec = matrix_of(known.code()).spec().to_string().parse().unwrap();
        let bytes = 3 * known.shard_unit() * own.shard_unit();
        let byte = |shard: usize, i: usize| (73 * (i + 1) * (shard + 1) % 251) as u8;
        let shard = |shard| (0..bytes).map(|i| byte(shard, i)).collect();
        let data: Vec<Vec<u8>> = (0..known.data_shards()).map(shard).collect();
        let encoded = |codec: &Codec| {
            let mut parity = vec![vec![0; bytes]; codec.parity_shards()];
            codec.encode(&data, &mut parity).unwrap();
            parity
        };
        assert_eq!(encoded(&own), encoded(&known), "{spec}");
    }
}

/// Whether data survives, by the rank of the columns of (I | H) that are left.
fn survives(k: usize, w: usize, rows: &[u64], lost: &[usize]) -> bool {
    let gone = |cell: usize| lost.contains(&(cell / w));
    let unknown: u64 = (0..k * w).filter(|&cell| gone(cell)).map(|cell| 1 << cell).sum();
    let at_hand = rows.iter().enumerate().filter(|(row, _)| !gone(k * w + row));
    let mut basis = BTreeMap::new();
    for (_, row) in at_hand {
        let mut left = row & unknown;
        while left != 0 {
            let lead = left.trailing_zeros();
            match basis.get(&lead) {
                Some(other) => left ^= other,
                None => {
                    basis.insert(lead, left);
                    break;
                }
            }
        }
    }
    basis.len() == unknown.count_ones() as usize
}

proptest! {
    /// Random matrices, most of which are not MDS.
    #[test]
    fn tolerances_and_counts_are_those_of_linear_algebra(
        (k, m, w) in (1_usize..5, 1_usize..4, 1_usize..4),
        seeds in proptest::collection::vec(any::<u64>(), 9),
    ) {
        let rows: Vec<u64> = seeds[..m * w].iter().map(|row| row & ((1 << (k * w)) - 1)).collect();
        let supports: Vec<Vec<usize>> = rows
            .iter()
            .map(|row| (0..k * w).filter(|column| row >> column & 1 == 1).collect())
            .collect();
        let bits = BitMatrix::from_supports(k * w, &supports);
        let matrix = ParityMatrix::new(k, m, w, ParityPlacement::Horizontal, bits).unwrap();
        let survived = |count: usize| {
            combinations(k + m, count).filter(|lost| survives(k, w, &rows, lost)).count() as u64
        };
        let all = |count: usize| combinations(k + m, count).count() as u64;
        let tolerated = (0..=m).take_while(|&count| survived(count) == all(count)).count() - 1;
        match Code::from_matrix(&matrix) {
            Err(error) => {
                prop_assert_eq!(tolerated, 0);
                let node = error.node().unwrap();
                prop_assert!(!survives(k, w, &rows, &[node]));
                let text = format!("does not survive the loss of node {node} alone");
                prop_assert!(error.to_string().contains(&text), "{}", error);
            }
            Ok(code) => {
                prop_assert_eq!(code.tolerance(), tolerated);
                for count in 1..=m {
                    let found = survival(&code, count, u64::MAX);
                    prop_assert_eq!((found.sets, found.survived), (all(count), survived(count)));
                }
            }
        }
    }
}

/// The losses of usual codes are all tried when their matrices are given.
#[test]
fn usual_matrices_promise_all_that_they_survive() {
    for (spec, promised) in [
        ("cauchy:k=10,m=4,w=4", 4),
        ("cauchy:k=16,m=4,w=8", 4),
        ("cauchy:k=20,m=4,w=5", 4),
        ("cauchy:k=20,m=6,w=8", 3),
    ] {
        let given = Code::from_matrix(&matrix_of(&code(spec))).unwrap();
        assert_eq!(given.tolerance(), promised, "{spec}");
    }
}

/// What can be computed is computed, also above the tolerance; what cannot is refused.
#[test]
fn losses_above_the_tolerance_are_decoded_where_they_can_be() {
    let codec: Codec = "matrix:k=8,m=4,w=1,rows=c0.30.0c.03".parse().unwrap();
    assert_eq!(codec.code().tolerance(), 1);
    let bytes = 3 * codec.shard_unit();
    let data: Vec<Vec<u8>> = (0..8).map(|shard| vec![1 << shard; bytes]).collect();
    let mut parity = vec![vec![0; bytes]; 4];
    codec.encode(&data, &mut parity).unwrap();
    let whole: Vec<Vec<u8>> = data.into_iter().chain(parity).collect();
    let mut decoded = 0;
    for lost in combinations(12, 4) {
        let mut shards: Vec<Option<Vec<u8>>> = whole.iter().cloned().map(Some).collect();
        lost.iter().for_each(|&shard| shards[shard] = None);
        let nodes: Vec<NodeId> = lost.iter().copied().map(NodeId::new).collect();
        match codec.reconstruct(&mut shards) {
            Ok(()) => {
                let expected = whole.iter().cloned().map(Some);
                assert!(shards.into_iter().eq(expected), "{lost:?}");
                decoded += 1;
            }
            Err(error) => {
                assert!(!Losses::of_nodes(codec.code(), &nodes).is_solvable(), "{lost:?}: {error}");
                let text = "4 of 12 shards are missing; any 1 may be missing";
                assert!(error.to_string().ends_with(text), "{error}");
            }
        }
    }
    assert_eq!(decoded, 81);
}

/// Wide codes are made at once: their larger losses are not all tried.
#[test]
fn wide_matrices_have_a_tolerance_that_was_tried() {
    let known = code("cauchy:k=40,m=16,w=6");
    let own = Code::from_matrix(&matrix_of(&known)).unwrap();
    assert!((1..16).contains(&own.tolerance()), "{}", own.tolerance());
    let some = survival(&own, 16, 50);
    assert_eq!((some.is_counted(), some.fraction()), (false, 1.0));
}

#[test]
fn a_node_whose_data_is_nowhere_else_is_named() {
    let error = "matrix:k=3,m=1,w=2,rows=a8.50".parse::<Code>().unwrap_err();
    assert!(error.to_string().contains("alone"), "{error}");
    let error = "matrix:k=3,m=1,w=1,rows=c".parse::<Code>().unwrap_err();
    assert_eq!(error.node(), Some(2));
    let text = "node 2 alone: 1 of its 1 data packets cannot be computed from the other nodes, \
                first d2.0";
    assert!(error.to_string().ends_with(text), "{error}");
    let codec = "dpg:k=2,m=1,m2=2,base=matrix,w=1,rows=c.c".parse::<Code>();
    assert!(codec.unwrap_err().to_string().contains("matrix"));
}
