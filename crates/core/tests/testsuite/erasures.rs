//! Every family in packets: every pattern of losses up to the tolerance is recovered, and one loss
//! more is refused. Checked exhaustively by rank for all codes of up to 12 nodes, exhaustively on
//! bytes up to 8 nodes, and on bytes with sampled losses for larger ones.

use crate::common;
use crate::common::{code, codec, encoded};
use paritas::Buffer::{Absent, Source, Target};
use paritas::code::{CellId, CellSet, Reads, Role};
use paritas::erasure::{Losses, combinations};
use paritas::research::{Pass, Plan, PlanOptions};
use paritas::{Code, Codec, CodecOptions, ErrorKind, KernelChoice, NodeId, Spec, Split};
use proptest::prelude::*;

/// Loses the given nodes, reconstructs them and compares.
fn lose(codec: &Codec, shards: &[Vec<u8>], lost: &[usize]) -> Result<(), paritas::Error> {
    let length = shards[0].len();
    let mut rebuilt = vec![vec![0xAA; length]; shards.len()];
    let mut buffers: Vec<_> = rebuilt
        .iter_mut()
        .zip(shards)
        .enumerate()
        .map(
            |(node, (target, shard))| {
                if lost.contains(&node) { Target(target) } else { Source(shard) }
            },
        )
        .collect();
    codec.reconstruct_into(&mut buffers)?;
    drop(buffers);
    for &node in lost {
        assert!(rebuilt[node] == shards[node], "{}: node {node} of {lost:?}", codec.code().spec());
    }
    Ok(())
}

/// Tries every pattern of losses, and returns how many patterns were tried.
fn exhaust(spec: &str, packet: usize, stripes: usize) -> usize {
    let codec = codec(spec, packet, KernelChoice::Auto);
    let shards = encoded(&codec, stripes);
    let (nodes, tolerance) = (codec.code().node_count(), codec.code().tolerance());
    let mut tried = 0;
    for count in 1..=tolerance + 1 {
        for lost in combinations(nodes, count) {
            tried += 1;
            match lose(&codec, &shards, &lost) {
                Ok(()) => assert!(count <= tolerance, "{spec} recovered {lost:?}"),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::NotEnough, "{spec}: {error}");
                    assert!(count > tolerance, "{spec} lost {lost:?}: {error}");
                }
            }
        }
    }
    tried
}

/// A family, as a list of specs without the parameter that `width` names, of at most 12 nodes.
struct Family {
    specs: fn() -> Vec<String>,
    width: Option<&'static str>,
}

const MOST_NODES: usize = 12;

/// Returns the specs of `family` for every k with m fixed.
fn every_k(family: &str, m: usize, more: &str) -> Vec<String> {
    (1..=MOST_NODES - m).map(|k| format!("{family}:k={k}{more}")).collect()
}

/// Returns the specs of `family` for every k and m.
fn every_k_and_m(family: &str) -> Vec<String> {
    (1..MOST_NODES).flat_map(|m| every_k(family, m, &format!(",m={m}"))).collect()
}

/// Returns the specs of `dpg` and `bbdpg` for all k, m and m2 of up to 6 nodes, in all placements.
fn groups() -> Vec<String> {
    let sizes = (2..6).flat_map(|m2| (1..=6 - m2).map(move |k| (k, m2)));
    let sizes = sizes.flat_map(|(k, m2)| (1..m2).map(move |m| format!("k={k},m={m},m2={m2}")));
    let placed = sizes.flat_map(|sizes| {
        ["none", "first", "all"].map(|interleave| format!("{sizes},interleave={interleave}"))
    });
    placed.flat_map(|rest| ["dpg", "bbdpg"].map(|family| format!("{family}:{rest}"))).collect()
}

const FAMILIES: [Family; 13] = [
    Family { specs: || every_k_and_m("cauchy"), width: Some("w") },
    Family { specs: || every_k_and_m("cauchy-orig"), width: Some("w") },
    Family { specs: || every_k_and_m("cauchy-good"), width: Some("w") },
    Family { specs: || every_k("raid6", 2, ",layout=packets"), width: Some("w") },
    Family { specs: || every_k("qfs", 3, ""), width: Some("w") },
    Family { specs: || every_k("liberation", 2, ""), width: Some("w") },
    Family { specs: || every_k("blaum-roth", 2, ""), width: Some("w") },
    Family { specs: || (1..=8).map(|k| format!("liber8tion:k={k}")).collect(), width: None },
    Family { specs: || every_k("rdp", 2, ""), width: Some("p") },
    Family { specs: || every_k("evenodd", 2, ""), width: Some("p") },
    Family { specs: || every_k("star", 3, ""), width: Some("p") },
    Family { specs: || [3, 5, 7, 11].map(|n| format!("xcode:n={n}")).to_vec(), width: None },
    Family { specs: groups, width: None },
];

impl Family {
    /// Returns the codes of one spec: one with each of the three smallest legal widths.
    fn codes(&self, spec: &str) -> Vec<Code> {
        let Some(key) = self.width else { return vec![code(spec)] };
        let spec: Spec = spec.parse().unwrap();
        let legal = (1..40).filter_map(|width| Code::new(&spec.clone().with(key, width)).ok());
        let codes: Vec<Code> = legal.take(3).collect();
        assert_eq!(codes.len(), 3, "{spec}");
        codes
    }
}

/// Whether data is determined when the given nodes are lost. More losses leave fewer equations, so
/// to check losses up to a number, it is enough to check those of exactly that number.
fn solvable(code: &Code, lost: &[usize]) -> bool {
    let lost: Vec<NodeId> = lost.iter().copied().map(NodeId::new).collect();
    Losses::of_nodes(code, &lost).is_solvable()
}

#[test]
fn all_codes_of_up_to_12_nodes_by_rank() {
    let (mut tried, mut codes) = (0, 0);
    for family in &FAMILIES {
        for code in (family.specs)().iter().flat_map(|spec| family.codes(spec)) {
            codes += 1;
            let (nodes, tolerance) = (code.node_count(), code.tolerance());
            for count in [tolerance, tolerance + 1] {
                for lost in combinations(nodes, count) {
                    tried += 1;
                    let spec = code.spec();
                    assert_eq!(solvable(&code, &lost), count == tolerance, "{spec}: {lost:?}");
                }
            }
        }
    }
    println!("by rank: {tried} patterns of losses tried on {codes} codes");
}

#[test]
fn all_codes_of_up_to_8_nodes_on_bytes() {
    let (mut tried, mut codes) = (0, 0);
    for spec in FAMILIES.iter().flat_map(|family| (family.specs)()) {
        if code(&spec).node_count() <= 8 {
            codes += 1;
            tried += exhaust(&spec, 16, 2);
        }
    }
    println!("on bytes: {tried} patterns of losses tried on {codes} codes");
}

#[test]
fn array_codes_of_up_to_14_nodes_on_bytes() {
    let specs = ["rdp:k=9", "rdp:k=12", "evenodd:k=9", "evenodd:k=12", "xcode:n=11", "star:k=7"];
    let tried: usize = specs.iter().map(|spec| exhaust(spec, 8, 1)).sum();
    println!("array codes: {tried} patterns of losses tried");
}

/// Plans that read few cells give the same bytes as any other plan.
#[test]
fn single_losses_from_few_reads_on_bytes() {
    for spec in ["rdp:k=10", "rdp:k=7", "evenodd:k=7", "star:k=7", "xcode:n=7", "liberation:k=5"] {
        let plan = PlanOptions::default().reads(Reads::Fewest);
        let options = CodecOptions::default().packet(8).plan(plan).threads(1);
        let codec = Codec::with_options(code(spec), options).unwrap();
        let shards = encoded(&codec, 2);
        for lost in 0..codec.code().node_count() {
            lose(&codec, &shards, &[lost]).unwrap();
        }
    }
}

/// Returns a codec that plans fast, for codes so large that reducing XORs takes long.
fn direct(spec: &str, packet: usize) -> Codec {
    let plan = PlanOptions::default().pass(Pass::Direct);
    let options = CodecOptions::default().packet(packet).plan(plan).threads(1);
    Codec::with_options(code(spec), options).unwrap()
}

fn lose_some(codec: &Codec, order: &[usize], more: usize) -> Result<(), paritas::Error> {
    let (nodes, count) = (codec.code().node_count(), codec.code().tolerance() + more);
    let lost: Vec<usize> = order.iter().copied().filter(|&n| n < nodes).take(count).collect();
    lose(codec, &encoded(codec, 1), &lost)
}

fn shuffled() -> impl Strategy<Value = Vec<usize>> {
    Just((0..64_usize).collect::<Vec<_>>()).prop_shuffle()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 24, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn larger_cauchy(
        family in prop::sample::select(vec!["cauchy", "cauchy-orig", "cauchy-good"]),
        k in 1_usize..=32, m in 1_usize..=8, wider in 0_u32..=27, packet in 1_usize..=70,
        order in shuffled(), more in 0_usize..=1,
    ) {
        let smallest = ((k + m) as u32).next_power_of_two().trailing_zeros();
        let w = (smallest + wider).min(if family == "cauchy" { 16 } else { 32 });
        let codec = direct(&format!("{family}:k={k},m={m},w={w}"), packet);
        prop_assert_eq!(lose_some(&codec, &order, more).is_ok(), more == 0);
    }

    #[test]
    fn larger_arrays(
        family in prop::sample::select(vec![
            "rdp", "evenodd", "star", "liberation", "blaum-roth", "qfs",
        ]),
        k in 8_usize..=32, order in shuffled(), more in 0_usize..=1,
    ) {
        let codec = codec(&format!("{family}:k={k}"), 8, KernelChoice::Auto);
        prop_assert_eq!(lose_some(&codec, &order, more).is_ok(), more == 0);
    }

    #[test]
    fn larger_words_of_raid(
        family in prop::sample::select(vec!["raid6", "qfs"]),
        k in 1_usize..=32, w in 6_usize..=32, order in shuffled(), more in 0_usize..=1,
    ) {
        let layout = if family == "raid6" { ",layout=packets" } else { "" };
        let codec = direct(&format!("{family}:k={k},w={w}{layout}"), 16);
        prop_assert_eq!(lose_some(&codec, &order, more).is_ok(), more == 0);
    }
}

/// A degraded read needs only some nodes and wants only one.
#[test]
fn absent_nodes_are_neither_read_nor_computed() {
    let codec = codec("cauchy:k=4,m=3", 64, KernelChoice::Auto);
    let shards = encoded(&codec, 3);
    let mut target = vec![0; shards[0].len()];
    let mut buffers = [
        Target(&mut target),
        Absent,
        Source(&shards[2]),
        Absent,
        Source(&shards[4]),
        Source(&shards[5]),
        Source(&shards[6]),
    ];
    codec.reconstruct_into(&mut buffers).unwrap();
    assert!(target == shards[0]);
}

#[test]
fn updates_equal_encoding_anew() {
    let specs = [
        "4+2",
        "cauchy:k=10,m=4,w=8",
        "rdp:k=5",
        "evenodd:k=7",
        "star:k=5",
        "liberation:k=5",
        "1+1",
    ];
    for spec in specs {
        let codec = codec(spec, 64, KernelChoice::Auto);
        let code = codec.code();
        let mut shards = encoded(&codec, 5);
        for node in code.nodes().filter(|&node| code.holds_data(node)) {
            let k = code.nodes().filter(|&node| code.holds_data(node)).count();
            let new = common::fill(100 + node.index(), shards[0].len());
            let old = std::mem::replace(&mut shards[node.index()], new.clone());
            let (data, parity) = shards.split_at_mut(k);
            let mut fresh = parity.to_vec();
            codec.update(node, &old, &new, &mut common::as_mut_slices(parity)).unwrap();
            codec.encode(&common::as_slices(data), &mut common::as_mut_slices(&mut fresh)).unwrap();
            assert!(parity == &fresh[..], "{spec}, node {}", node.index());
        }
    }
}

#[test]
fn wrong_buffers_are_refused() {
    let codec = codec("4+2", 64, KernelChoice::Auto);
    let strip = codec.strip();
    let bytes = vec![0; strip];
    let shard = &bytes[..];
    let (mut p, mut q) = (vec![0; strip], vec![0; strip]);
    let refused = |result: Result<(), paritas::Error>, kind: ErrorKind, part: &str| {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(part), "{error}");
    };
    refused(
        codec.encode(&[shard; 3], &mut [&mut p, &mut q]),
        ErrorKind::Buffers,
        "the number of shards that are read must be 4; got 3",
    );
    refused(
        codec.encode(&[shard; 4], &mut [&mut p]),
        ErrorKind::Buffers,
        "computed must be 2; got 1",
    );
    let short = &shard[1..];
    refused(
        codec.encode(&[shard, shard, shard, short], &mut [&mut p, &mut q]),
        ErrorKind::Length,
        "buffer 3 must have a multiple of 3 bytes, its rows; got 191",
    );
    let parity = NodeId::new(4);
    refused(
        codec.update(parity, shard, shard, &mut [&mut p, &mut q]),
        ErrorKind::Parameters,
        "node 4 holds no data",
    );
}

#[test]
fn nodes_are_named_once() {
    let codec = codec("4+2", 64, KernelChoice::Auto);
    let nodes =
        |indices: &[usize]| -> Vec<NodeId> { indices.iter().copied().map(NodeId::new).collect() };
    for (present, lost, at) in
        [(&[0, 1, 2, 3][..], &[5, 5][..], 5), (&[0, 1, 2, 3], &[3], 3), (&[0, 1, 2, 2, 3], &[4], 2)]
    {
        let error = codec.reconstructor(&nodes(present), &nodes(lost)).unwrap_err();
        assert_eq!((error.kind(), error.node()), (ErrorKind::Parameters, Some(at)), "{error}");
    }
    for error in [codec.updater(6), codec.reconstructor(&nodes(&[0, 6]), &[])] {
        assert_eq!(error.unwrap_err().node(), Some(6));
    }
}

/// A caller learns which shard is wrong and how many are missing without reading the message.
#[test]
fn errors_are_about_nodes_and_shards() {
    let codec = codec("4+2", 64, KernelChoice::Auto);
    assert_eq!((codec.data_shards(), codec.parity_shards(), codec.shard_unit()), (4, 2, 3));
    let (mut p, mut q) = (vec![0; 300], vec![0; 297]);
    let error = codec.update(2, &[0; 300], &[1; 300], &mut [&mut p, &mut q]).unwrap_err();
    assert_eq!((error.kind(), error.node()), (ErrorKind::Length, Some(5)), "{error}");
    assert!(error.to_string().starts_with("buffer 5 must have 300 bytes"), "{error}");
    let error = codec.update(2, &[0; 300], &[1; 297], &mut [&mut p, &mut q]).unwrap_err();
    assert_eq!((error.kind(), error.node()), (ErrorKind::Length, Some(2)), "{error}");
    assert!(
        error.to_string().starts_with("old shard 2 has 300 bytes, and new shard 2 has 297"),
        "{error}"
    );
    let error = codec.update(usize::MAX, &[0; 300], &[1; 300], &mut [&mut p, &mut q]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Parameters, "{error}");
    let error = codec.encode(&[[0; 300]; 3], &mut [&mut p, &mut q]).unwrap_err();
    assert_eq!((error.expected(), error.given()), (Some(4), Some(3)), "{error}");

    let mut shards: Vec<Option<Vec<u8>>> = vec![Some(vec![0; 300]); 6];
    shards[1..4].fill(None);
    let error = codec.reconstruct(&mut shards).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotEnough);
    assert_eq!((error.expected(), error.given()), (Some(4), Some(3)), "{error}");
    assert!(
        error.to_string().ends_with("3 of 6 shards are missing; any 2 may be missing"),
        "{error}"
    );
    let name = format!("{codec:?}");
    assert!(name.starts_with("Codec(cauchy:k=4,m=2,w=3, ") && name.len() < 60, "{name}");
}

/// Auxiliary cells have no buffers, so a call that reads or computes one is refused. The cells of
/// node 0 stay as they were.
#[test]
fn cells_that_are_stored_nowhere_are_refused() {
    let codec = codec("evenodd:k=5", 64, KernelChoice::Auto);
    let code = codec.code();
    let auxiliary = code.cells().find(|&cell| code.cell(cell).role == Role::Auxiliary).unwrap();
    let uses = |&cell: &CellId| code.definition(cell).contains(&auxiliary);
    let parity = code.cells().find(uses).unwrap();
    let set = |cells: &[CellId]| CellSet::from_cells(code.cell_count(), cells.iter().copied());
    let data = code.stored(Role::Data);
    let mut with_auxiliary = data.clone();
    with_auxiliary.insert(auxiliary);
    let plan_of = |cell: CellId| {
        let cells = code.definition(cell).to_vec();
        let inputs: Vec<String> = (0..cells.len()).map(|input| format!("i{input}")).collect();
        let text =
            format!("inputs {} temps 0 outputs 1\no0 = {}\n", cells.len(), inputs.join(" ^ "));
        Plan::new(text.parse().unwrap(), cells, vec![cell]).unwrap()
    };
    let mut shards = encoded(&codec, 3);
    let before = shards.clone();
    let mut refused = |call: &dyn Fn(&mut [paritas::Buffer<'_>]) -> Result<(), paritas::Error>| {
        let mut buffers: Vec<_> = shards.iter_mut().map(|shard| Target(shard)).collect();
        let error = call(&mut buffers).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Parameters, "{error}");
        assert!(error.to_string().contains("is stored nowhere"), "{error}");
        drop(buffers);
        assert!(shards == before);
    };
    refused(&|buffers| codec.compute(&data, &set(&[auxiliary]), buffers));
    let lost = set(code.node_cells(NodeId::new(0)));
    let mut have = with_auxiliary.clone();
    lost.iter().for_each(|cell| have.remove(cell));
    code.node_cells(NodeId::new(6)).iter().for_each(|&cell| have.insert(cell));
    refused(&|buffers| codec.compute(&have, &lost, buffers));
    refused(&|buffers| codec.run(&plan_of(auxiliary), buffers));
    refused(&|buffers| codec.run(&plan_of(parity), buffers));
}

/// A set of cells has room for more cells than its code has.
#[test]
fn cells_that_a_code_lacks_are_refused() {
    let splits =
        [Split::Stripe, Split::Node, Split::Columns, Split::Rows].map(|split| ("4+2", split));
    for (spec, split) in splits.into_iter().chain([("isal-cauchy:k=4,m=2", Split::Stripe)]) {
        let codec = Codec::with_options(code(spec), CodecOptions::default().split(split)).unwrap();
        let code = codec.code();
        let cells = code.cell_count();
        let (have, want) = (code.stored(Role::Data), code.stored(Role::Parity));
        let with_another =
            |set: &CellSet| CellSet::from_cells(cells + 1, set.iter().chain([CellId::new(cells)]));
        for (have, want) in [(with_another(&have), want.clone()), (have, with_another(&want))] {
            let error = codec.compute(&have, &want, &mut []).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Parameters, "{error}");
            let last = format!("has {cells} cells; the call names cell {cells}");
            assert!(error.to_string().ends_with(&last), "{error}");
            assert!(code.schedule(&have, &want).is_err());
            assert!(!codec.solvable(&have, &want));
        }
    }
}

/// Where no node is lost, nothing is computed, in either layout.
#[test]
fn nothing_is_done_where_nothing_is_lost() {
    for spec in ["4+2", "isal-cauchy:k=4,m=2", "backblaze:k=4,m=2"] {
        let codec = codec(spec, 64, KernelChoice::Auto);
        let present: Vec<NodeId> = codec.code().nodes().collect();
        let reconstructor = codec.reconstructor(&present, &[]).unwrap();
        reconstructor.run(&[[7; 192]; 6], &mut [[0; 0]; 0]).unwrap();
        assert!(reconstructor.run(&[[7; 192]; 5], &mut [[0; 0]; 0]).is_err());
    }
}
