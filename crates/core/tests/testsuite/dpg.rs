//! Delayed parity generation: losses in either stage are recovered, stage two reads exactly what
//! theorem 1 says. The tests include the table of parameter sets that the dissertation measures.

use crate::common;
use std::collections::HashSet;

use crate::common::{code, codec, encoded, encoded_at_first, fill};
use crate::stored::{StoredShards, byte, cases, digest};
use paritas::Buffer::{Source, Target};
use paritas::code::{CellId, CellSet, Pin, Role};
use paritas::erasure::{Losses, combinations};
use paritas::research::Cost;
use paritas::{Code, Codec, CodecOptions, ErrorKind, KernelChoice, NodeId};
use serde::Deserialize;

/// The (k, m, m2) of the dissertation's tables 4.3 and 4.4, with its w.
const TABLE: [(usize, usize, usize, usize); 8] = [
    (5, 2, 3, 4),
    (6, 2, 4, 4),
    (8, 2, 4, 4),
    (9, 2, 4, 4),
    (9, 3, 5, 4),
    (10, 4, 6, 4),
    (12, 3, 6, 5),
    (16, 4, 8, 5),
];

const INTERLEAVES: [&str; 3] = ["none", "first", "all"];

/// Iterates over all k, m and m2 with k + m2 at most `nodes`.
fn shapes(nodes: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    let sizes = (2..nodes).flat_map(move |m2| (1..=nodes - m2).map(move |k| (k, m2)));
    sizes.flat_map(|(k, m2)| (1..m2).map(move |m| (k, m, m2)))
}

/// Checks theorem 1, counted in symbols of a group: `promote` needs nothing else. Where stage two
/// reads all nodes of stage one, it needs every cell that it reads.
#[test]
fn stage_two_reads_what_theorem_1_says() {
    let table = TABLE.map(|(k, m, m2, _)| (k, m, m2));
    for (k, m, m2) in shapes(10).chain(table) {
        for spec in INTERLEAVES.map(|i| format!("bbdpg:k={k},m={m},m2={m2},interleave={i}")) {
            let code = code(&spec);
            let promotion = code.promotion(2).unwrap();
            let symbols = (k * m2).min((m2 - m) * (k + m));
            assert_eq!(promotion.reads.len(), symbols * code.lane_rows(), "{spec}");
            assert!(promotion.reads.iter().all(|cell| code.cell(cell).stage == 1), "{spec}");
            assert_eq!(promotion.makes.len(), m2 * (m2 - m) * code.lane_rows(), "{spec}");
            // Only whole symbols are read, so that a helper sends a range of its stored bytes.
            for node in code.nodes() {
                for lane in code.node_cells(node).chunks(code.lane_rows()) {
                    let read = lane.iter().filter(|&&cell| promotion.reads.contains(cell)).count();
                    assert!(read == 0 || read == lane.len(), "{spec}");
                }
            }
            let left = Losses::new(&code, promotion.reads);
            assert!(promotion.makes.iter().all(|cell| left.express(cell).is_ok()), "{spec}");
        }
    }
}

/// The schedule of promotion reads exactly those cells: it needs every symbol that is read.
#[test]
fn the_schedule_of_stage_two_uses_all_that_is_read() {
    for (k, m, m2) in [(3, 2, 3), (5, 2, 3), (6, 2, 4), (2, 1, 3), (2, 1, 4)] {
        for spec in INTERLEAVES.map(|i| format!("bbdpg:k={k},m={m},m2={m2},interleave={i}")) {
            let code = code(&spec);
            let promotion = code.promotion(2).unwrap();
            let plan = code.schedule(&promotion.reads, &promotion.makes).unwrap();
            let inputs = CellSet::from_cells(code.cell_count(), plan.inputs().iter().copied());
            assert_eq!(inputs, promotion.reads, "{spec}");
        }
    }
}

/// Returns the cells that are left of a stage when nodes are lost.
fn left(code: &Code, stage: u8, lost: &[usize]) -> CellSet {
    let standing = code.standing(stage);
    let kept = code.nodes().filter(|node| !lost.contains(&node.index()));
    let cells = code.cells_of(kept);
    CellSet::from_cells(code.cell_count(), cells.iter().filter(|&cell| standing.contains(cell)))
}

fn is_solvable(code: &Code, stage: u8, lost: &[usize]) -> bool {
    Losses::new(code, left(code, stage, lost)).is_solvable()
}

/// Largest number of losses of one kind that are tried exhaustively.
const MOST: usize = 20_000;

/// Returns all ways to lose `count` of `nodes`, or random ones if there are too many.
fn losses(nodes: usize, count: usize) -> Vec<Vec<usize>> {
    let ways = (0..count).fold(1, |ways, i| ways * (nodes - i) / (i + 1));
    if ways <= MOST {
        return combinations(nodes, count).collect();
    }
    let mut state = 1_u64;
    let mut draw = |below: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let sample = |_| {
        let mut chosen = HashSet::new();
        while chosen.len() < count {
            chosen.insert(draw(nodes));
        }
        chosen.into_iter().collect()
    };
    (0..SAMPLES).map(sample).collect()
}

/// Number of losses that are tried where there are more than [`MOST`].
const SAMPLES: usize = 1_000;

/// Checks every loss up to the tolerance of either stage. Also checks losses of one node more, at
/// most `more` of them.
fn expect_recovery(spec: &str, more: usize) -> usize {
    let code = code(spec);
    let mut tried = 0;
    for stage in [1, 2] {
        let tolerance = code.tolerance_at(stage);
        let standing = code.nodes_at(stage);
        for count in [tolerance, tolerance + 1] {
            let most = if count == tolerance { usize::MAX } else { more };
            for lost in losses(code.node_count(), count).into_iter().take(most) {
                tried += 1;
                let solvable = is_solvable(&code, stage, &lost);
                // Fewer cells than there are data cells cannot be enough.
                let enough = left(&code, stage, &lost).len() >= code.data_cells().len();
                assert!(solvable || count > tolerance, "{spec}, stage {stage}: {lost:?}");
                assert!(!solvable || enough, "{spec}, stage {stage}: {lost:?}");
                let gap = !lost.iter().all(|&node| standing.contains(&NodeId::new(node)));
                let placed = spec.contains("interleave=all") && stage == 1;
                assert!(!solvable || count == tolerance || gap || placed, "{spec}: {lost:?}");
            }
        }
    }
    tried
}

#[test]
fn groups_of_up_to_10_nodes_survive_their_losses_by_rank() {
    let specs = shapes(10).flat_map(|(k, m, m2)| {
        INTERLEAVES.map(|i| format!("bbdpg:k={k},m={m},m2={m2},interleave={i}"))
    });
    let tried: usize = specs.map(|spec| expect_recovery(&spec, MOST)).sum();
    println!("groups: {tried} patterns of losses tried by rank");
}

/// Checks the sets of tables 4.3 and 4.4; those with more nodes run on threads of their own.
#[test]
fn groups_of_the_dissertation_survive_their_losses_by_rank() {
    let placed = |(k, m, m2, w)| {
        INTERLEAVES.map(|i| format!("bbdpg:k={k},m={m},m2={m2},w={w},interleave={i}"))
    };
    let tried: usize = std::thread::scope(|scope| {
        let try_all = |specs: [String; 3]| -> usize {
            specs.iter().map(|spec| expect_recovery(spec, 40)).sum()
        };
        let threads: Vec<_> =
            TABLE.map(placed).map(|specs| scope.spawn(move || try_all(specs))).into();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    println!("the dissertation's groups: {tried} patterns of losses tried by rank");
}

/// Stage two in steps, as in `docs/dpg.md`: rows j may be computed alone, whichever they are. They
/// need the whole of stripes j and the data of the other last stripes, and each raises the
/// tolerance by one.
#[test]
fn any_rows_of_stage_two_can_be_made_alone() {
    for (k, m, m2) in [(3, 2, 3), (4, 1, 3), (3, 2, 4), (10, 2, 6)] {
        let code = code(&format!("bbdpg:k={k},m={m},m2={m2}"));
        let w = code.lane_rows();
        let symbol = |node: usize, stripe: usize| {
            code.node_cells(NodeId::new(node))[stripe * w..][..w].iter().copied()
        };
        for chosen in 1..1_usize << (m2 - m) {
            let is_chosen = |row: &usize| chosen >> (row - m) & 1 == 1;
            let rows: Vec<usize> = (m..m2).filter(is_chosen).collect();
            let read = (m..m2).flat_map(|stripe| {
                let symbols = if is_chosen(&stripe) { k + m } else { k };
                (0..symbols).flat_map(move |node| symbol(node, stripe))
            });
            let reads = CellSet::from_cells(code.cell_count(), read);
            let r = rows.len();
            assert_eq!(reads.len(), w * (r * (k + m) + (m2 - m - r) * k));
            let left = Losses::new(&code, reads);
            let made = code.cells_of(rows.iter().map(|row| NodeId::new(k + row)));
            assert!(made.iter().all(|cell| left.express(cell).is_ok()), "{}", code.spec());
            let nodes: Vec<usize> = (0..k + m).chain(rows.iter().map(|row| k + row)).collect();
            for lost in combinations(nodes.len(), m + r).take(MOST / 10) {
                let kept = nodes.iter().enumerate().filter(|(i, _)| !lost.contains(i));
                let kept = code.cells_of(kept.map(|(_, &node)| NodeId::new(node)));
                assert!(Losses::new(&code, kept).is_solvable(), "{} {lost:?}", code.spec());
            }
        }
    }
}

/// The dissertation's schedule lengths in table 4.3: BB-DPG.
const THEIRS: [usize; 8] = [198, 366, 506, 558, 999, 1724, 2334, 5692];

/// The dissertation's columns (k, m) and (k, m2): m2 stripes of either code.
const PLAIN: [(usize, usize); 8] = [
    (138, 216),
    (228, 472),
    (324, 656),
    (372, 752),
    (690, 1165),
    (1260, 1908),
    (1512, 3066),
    (3680, 7544),
];

/// In seven sets the dissertation's BB-DPG column follows from its other columns by its own
/// accounting. For (9, 2, 4) the accounting gives 578, which is the dissertation's figure for
/// optimised DPG, not 558 (`docs/errata.md`).
#[test]
fn their_accounting_gives_their_figures_but_one() {
    let accounted = TABLE.iter().zip(PLAIN).map(|(&(_, m, m2, w), (first, all))| {
        m * all / m2 + (m2 - m) * first / m2 + m * (m2 - m) * w
    });
    let differ: Vec<(usize, usize)> =
        accounted.zip(THEIRS).filter(|(ours, theirs)| ours != theirs).collect();
    assert_eq!(differ, [(578, 558)]);
}

/// All percentages of the row (9, 2, 4) are relative to 558, so that figure is not a misprint:
/// optimised DPG, DPG, (k, m) and (k, m2) are printed as 3.58, 7.53, -33.33 and 34.77 %.
#[test]
fn the_row_that_differs_agrees_with_itself() {
    for (length, printed) in [(578, "3.58"), (600, "7.53"), (372, "-33.33"), (752, "34.77")] {
        let relative =
            |base: i32| format!("{:.2}", f64::from(100 * (length - base)) / f64::from(base));
        assert_eq!(relative(558), printed);
        assert_ne!(relative(578), printed);
    }
}

/// Our figures for the same w: in the dissertation's accounting, m·T(k, m2) + (m2 - m)·T(k, m) +
/// m(m2 - m)w, and the schedule of the whole group, which is what encoding runs.
const OURS: [(usize, usize); 8] = [
    (185, 181),
    (334, 326),
    (434, 430),
    (496, 486),
    (863, 849),
    (1454, 1458),
    (1929, 1893),
    (4704, 4684),
];

/// Returns XORs and copies of the first `m` parities of a base code: C, or with `bar-` C̄.
fn total(code: &Code, bar: &str, m: usize) -> usize {
    let pinned = |name: &str, count: usize| -> String {
        let name = format!("{bar}{name}");
        let list = code.pin().entries().find(|(entry, _)| *entry == name).unwrap().1;
        list[..count].iter().map(u64::to_string).collect::<Vec<_>>().join(".")
    };
    let number = |key| code.spec().text(key).unwrap().parse::<usize>().unwrap();
    let (k, w) = (number("k"), number("w"));
    let (points, rows) = (pinned("points", k + m), pinned("row-scale", m));
    let columns = pinned("column-scale", k);
    let base = common::code(&format!(
        "cauchy:k={k},m={m},w={w},points={points},rows={rows},columns={columns}"
    ));
    let plan = base.schedule(&base.stored(Role::Data), &base.stored(Role::Parity)).unwrap();
    Cost::of(plan.schedule()).total
}

/// Our figures are at most the dissertation's everywhere, and 5 % below in at least four sets.
#[test]
fn schedules_are_shorter_than_table_4_3() {
    let figures = TABLE.map(|(k, m, m2, w)| {
        let code = code(&format!("bbdpg:k={k},m={m},m2={m2},w={w}"));
        let accounted =
            m * total(&code, "", m2) + (m2 - m) * total(&code, "bar-", m) + m * (m2 - m) * w;
        let plan = code.schedule(&code.stored(Role::Data), &code.made_in(1)).unwrap();
        (accounted, Cost::of(plan.schedule()).total)
    });
    assert_eq!(figures, OURS);
    assert!(figures.iter().zip(THEIRS).all(|(ours, theirs)| ours.0 <= theirs && ours.1 <= theirs));
    let far_below = |&(ours, theirs): &(&(usize, usize), usize)| 100 * ours.0 <= 95 * theirs;
    assert!(figures.iter().zip(THEIRS).filter(far_below).count() >= 4);
}

/// Recovers a node's loss in stage one, on bytes: rows of stage two are neither read nor written.
#[test]
fn losses_after_stage_one_on_bytes() {
    let mut tried = 0;
    for (k, m, m2) in shapes(7) {
        for spec in INTERLEAVES.map(|i| format!("bbdpg:k={k},m={m},m2={m2},interleave={i}")) {
            let codec = codec(&spec, 8, KernelChoice::Auto);
            let shards = encoded_at_first(&codec, 2);
            for count in [m, m + 1] {
                for lost in combinations(codec.code().node_count(), count) {
                    tried += 1;
                    let solvable = is_solvable(codec.code(), 1, &lost);
                    match lose_at_first(&codec, &shards, &lost) {
                        Ok(()) => assert!(solvable, "{spec} recovered {lost:?}"),
                        Err(error) => {
                            assert_eq!(error.kind(), ErrorKind::NotEnough, "{spec}: {error}");
                            assert!(!solvable, "{spec} lost {lost:?}: {error}");
                        }
                    }
                }
            }
        }
    }
    println!("after stage one: {tried} patterns of losses tried on bytes");
}

/// Loses nodes after stage one and compares what is recovered; later rows keep what filled them.
fn lose_at_first(codec: &Codec, shards: &[Vec<u8>], lost: &[usize]) -> Result<(), paritas::Error> {
    let code = codec.code();
    let mut rebuilt = shards.to_vec();
    for &node in lost {
        fill_rows(codec, &mut rebuilt[node], node, |cell| code.cell(cell).stage == 1);
    }
    let mut buffers: Vec<_> = rebuilt
        .iter_mut()
        .enumerate()
        .map(|(node, shard)| if lost.contains(&node) { Target(shard) } else { Source(shard) })
        .collect();
    codec.reconstruct_at(1, &mut buffers)?;
    drop(buffers);
    assert!(rebuilt == shards, "{}: {lost:?}", code.spec());
    Ok(())
}

/// Overwrites the rows of a node's cells that `which` selects.
fn fill_rows(codec: &Codec, shard: &mut [u8], node: usize, which: impl Fn(CellId) -> bool) {
    let cells = codec.code().node_cells(NodeId::new(node));
    for (number, packet) in shard.chunks_mut(codec.packet()).enumerate() {
        if which(cells[number % cells.len()]) {
            packet.fill(0x55);
        }
    }
}

/// The result of stage two depends only on what it reads.
#[test]
fn promotion_reads_nothing_else() {
    for (k, m, m2) in [(3, 2, 3), (6, 2, 4), (2, 1, 3), (9, 3, 5)] {
        for spec in INTERLEAVES.map(|i| format!("bbdpg:k={k},m={m},m2={m2},interleave={i}")) {
            let codec = codec(&spec, 16, KernelChoice::Auto);
            let code = codec.code();
            let expected = encoded(&codec, 3);
            let promotion = code.promotion(2).unwrap();
            let mut shards = encoded_at_first(&codec, 3);
            for (node, shard) in shards.iter_mut().enumerate() {
                fill_rows(&codec, shard, node, |cell| !promotion.reads.contains(cell));
            }
            common::promote(&codec, 2, &mut shards);
            for (node, (made, right)) in shards.iter().zip(&expected).enumerate() {
                let cells = code.node_cells(NodeId::new(node));
                let packets = made.chunks(16).zip(right.chunks(16));
                for (number, (made, right)) in packets.enumerate() {
                    let cell = cells[number % cells.len()];
                    assert!(made == right || !promotion.makes.contains(cell), "{spec} {cell:?}");
                }
            }
        }
    }
}

/// Both stages together compute the same parity as an ordinary code does at once.
#[test]
fn both_stages_make_what_one_would() {
    for spec in
        ["bbdpg:k=6,m=2,m2=4,interleave=all", "dpg:k=4,m=1,m2=2,base=rdp", "dpg:k=1,m=1,m2=3"]
    {
        let codec = codec(spec, 32, KernelChoice::Auto);
        let code = codec.code();
        let mut shards = encoded_at_first(&codec, 2);
        let mut buffers: Vec<_> = shards.iter_mut().map(|shard| Target(shard)).collect();
        let (data, parity) = (code.stored(Role::Data), code.stored(Role::Parity));
        codec.compute(&data, &parity, &mut buffers).unwrap();
        drop(buffers);
        assert!(shards == encoded(&codec, 2), "{spec}");
    }
}

/// A case of `vectors/dpg.json`, which the reference wrote.
#[derive(Deserialize)]
struct Case {
    spec: String,
    pin: Vec<(String, Vec<u64>)>,
    k: usize,
    m2: usize,
    rows: usize,
    packet: usize,
    groups: usize,
    describe_blake3: String,
    /// For each node, the stages of its symbols.
    stages: Vec<Vec<u8>>,
    #[serde(flatten)]
    shards: StoredShards,
}

impl Case {
    fn code(&self) -> Code {
        let pin = self
            .pin
            .iter()
            .fold(Pin::new(), |pin, (name, numbers)| pin.with(name, numbers.iter().copied()));
        Code::rebuild(&self.spec.parse().unwrap(), &pin).unwrap()
    }

    /// Returns all shards, in which only the data rows have their final contents.
    fn unencoded(&self, code: &Code) -> Vec<Vec<u8>> {
        let strip = self.m2 * self.rows * self.packet;
        let mut shards = vec![vec![0xEE; self.groups * strip]; code.node_count()];
        for (number, &cell) in code.data_cells().iter().enumerate() {
            let place = code.cell(cell).place.unwrap();
            let (symbol, row) = (number / self.rows, number % self.rows);
            for group in 0..self.groups {
                let from = (group * self.rows + row) * self.packet;
                let to = group * strip + place.row * self.packet;
                for i in 0..self.packet {
                    shards[place.node.index()][to + i] = byte(from + i, symbol);
                }
            }
        }
        shards
    }
}

/// Checks that spec and pin give the generator, placement and stages that the reference finds by
/// encoding.
#[test]
fn specs_and_pins_rebuild_the_groups_of_the_reference() {
    for case in cases::<Case>("dpg.json") {
        let code = case.code();
        assert_eq!(code.spec().to_string(), case.spec, "the spec is canonical");
        assert_eq!((code.node_count(), code.tolerance()), (case.k + case.m2, case.m2));
        let mut description = Vec::new();
        code.describe(|bytes| description.extend_from_slice(bytes));
        assert_eq!(digest(&description), case.describe_blake3, "{}", case.spec);
        for (node, stages) in code.nodes().zip(&case.stages) {
            let lanes = code.node_cells(node).chunks(case.rows);
            let stage = |lane: &[CellId]| code.cell(lane[0]).stage;
            assert!(lanes.map(stage).eq(stages.iter().copied()), "{}", case.spec);
        }
        let pinned = code.pin().entries().map(|(name, list)| (name.to_owned(), list.to_vec()));
        assert_eq!(pinned.collect::<Vec<_>>(), case.pin, "{}", case.spec);
    }
}

/// Checks both stages on every kernel, with one buffer a node, against what the reference stores.
#[test]
fn every_kernel_makes_what_the_reference_stores() {
    for case in cases::<Case>("dpg.json") {
        for kernel in common::candidates() {
            let options = CodecOptions::default().packet(case.packet).kernel(kernel);
            let codec = Codec::with_options(case.code(), options).unwrap();
            let code = codec.code();
            let mut shards = case.unencoded(code);
            let mut buffers: Vec<_> = shards.iter_mut().map(|shard| Target(shard)).collect();
            codec.compute(&code.stored(Role::Data), &code.made_in(1), &mut buffers).unwrap();
            drop(buffers);
            common::promote(&codec, 2, &mut shards);
            case.shards.expect(&shards, &format!("{}: {}", case.spec, codec.kernel().name()));
        }
    }
}

#[test]
fn ordinary_codes_have_one_stage() {
    let codec = codec("4+2", 8, KernelChoice::Auto);
    assert_eq!((codec.code().stages(), codec.code().promotion(2)), (1, None));
    let shard = fill(1, codec.strip());
    let mut buffers: Vec<_> = (0..6).map(|_| Source(&shard[..])).collect();
    let error = codec.promote(2, &mut buffers).unwrap_err().to_string();
    assert!(error.contains("no promotion to stage 2"), "{error}");
}
