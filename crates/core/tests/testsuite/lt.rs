//! LT codes: graphs, and the schedules of their decoders.

use paritas::ErrorKind;
use paritas::code::BitMatrix;
use paritas::lt::{Decoder, Graph, Method};
use paritas::research::graph::{Originals, Parameters, Peeling, Selection, Soliton, Variant};
use paritas::research::{Slot, interpret};

/// Returns the numbers below `count` in an order that `seed` determines, by a generator of the
/// test's own (Marsaglia's xorshift).
fn order(count: usize, seed: usize) -> Vec<usize> {
    let mut state = (seed as u64 + 1).wrapping_mul(0x2545_F491_4F6C_DD1D);
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut numbers: Vec<usize> = (0..count).collect();
    (0..50).for_each(|_| {
        next();
    });
    for i in (1..count).rev() {
        numbers.swap(i, (next() % (i as u64 + 1)) as usize);
    }
    numbers
}

/// Returns the parameters of a graph as in the evaluation, which has 1024 data blocks.
fn paper(c: f64, delta: f64, blocks: usize, seed: usize, variant: Variant) -> Parameters {
    let soliton = Soliton::robust(1024, c, delta).unwrap();
    Parameters { soliton, blocks, seed: seed as u64, variant }
}

fn push_until_ready(decoder: &mut Decoder, blocks: &[usize]) -> bool {
    blocks.iter().any(|&block| decoder.push(block).unwrap())
}

const PLAIN: Variant =
    Variant { originals: Originals::None, selection: Selection::Random, decodable: false };

/// Returns every variant, with a coverage threshold that has an effect.
fn variants() -> Vec<Variant> {
    let mut variants = Vec::new();
    for originals in [Originals::None, Originals::Only, Originals::AndDegreeOne] {
        for selection in [Selection::Random, Selection::Coverage(6), Selection::Uniform] {
            for decodable in [false, true] {
                variants.push(Variant { originals, selection, decodable });
            }
        }
    }
    variants
}

fn small(data: usize, blocks: usize, seed: u64, variant: Variant) -> Parameters {
    let soliton = Soliton::robust(data, 0.3, 0.5).unwrap();
    Parameters { soliton, blocks, seed, variant }
}

fn rows(graph: &Graph) -> Vec<&[u32]> {
    (0..graph.blocks()).map(|block| graph.neighbours(block).unwrap()).collect()
}

/// Another program, in Python, computed these neighbours from the specification. They must never
/// change: stored blocks could not be read any more.
#[test]
fn graphs_are_those_of_the_specification() {
    let soliton = Soliton::from_integers(20, 4, 1 << 42, 1 << 43).unwrap();
    let of = |selection, blocks| {
        let variant = Variant { selection, ..PLAIN };
        let seed = 0x0123_4567_89AB_CDEF;
        Graph::attempted(&Parameters { soliton, blocks, seed, variant }, 3).unwrap()
    };
    let plain: [&[u32]; 8] = [
        &[5, 8, 13],
        &[7, 12, 15],
        &[0, 6, 11, 14],
        &[2, 7, 8, 19],
        &[3, 10],
        &[0, 13],
        &[6, 17],
        &[0],
    ];
    let uniform: [&[u32]; 8] = [
        &[6, 14, 19],
        &[8, 11, 15],
        &[4, 5, 7, 17],
        &[2, 3, 10, 13],
        &[0, 9],
        &[16, 18],
        &[1, 12],
        &[10],
    ];
    let covered: [&[u32]; 8] = [
        &[4, 5, 8, 9, 13, 17],
        &[1, 7, 12, 14, 15],
        &[0, 6, 11, 14, 18, 19],
        &[2, 7, 8, 9, 12, 19],
        &[3, 5, 10, 16, 18],
        &[0, 3, 13, 16],
        &[1, 6, 11, 17],
        &[0, 2, 4, 10, 15],
    ];
    assert_eq!(rows(&of(Selection::Random, 8)), plain);
    assert_eq!(rows(&of(Selection::Uniform, 12))[..8], uniform);
    assert_eq!(rows(&of(Selection::Coverage(2), 8)), covered);
}

/// Returns Pearson's statistic in standard deviations above what is expected if the probabilities
/// are true. Bins that expect fewer than ten are merged.
fn chi_square_excess(counts: &[usize], probabilities: &[f64]) -> f64 {
    let total = counts.iter().sum::<usize>() as f64;
    let (mut statistic, mut bins) = (0.0, -1.0);
    let (mut count, mut expected) = (0.0, 0.0);
    for (&observed, &probability) in counts.iter().zip(probabilities) {
        count += observed as f64;
        expected += probability * total;
        if expected >= 10.0 {
            statistic += (count - expected).powi(2) / expected;
            bins += 1.0;
            (count, expected) = (0.0, 0.0);
        }
    }
    (statistic - bins) / f64::sqrt(2.0 * bins)
}

#[test]
fn degrees_and_neighbours_are_drawn_as_defined() {
    for seed in 0..3 {
        let parameters = paper(0.1, 0.5, 40_000, seed, PLAIN);
        let graph = Graph::new(&parameters).unwrap();
        let (mut degrees, mut uses) = (vec![0; 1024], vec![0; 1024]);
        for row in rows(&graph) {
            degrees[row.len() - 1] += 1;
            row.iter().for_each(|&data| uses[data as usize] += 1);
        }
        let excess = chi_square_excess(&degrees, &parameters.soliton.probabilities());
        assert!(excess.abs() < 4.0, "degrees, seed {seed}: {excess}");
        let excess = chi_square_excess(&uses, &vec![1.0 / 1024.0; 1024]);
        assert!(excess.abs() < 4.0, "neighbours, seed {seed}: {excess}");
    }
}

#[test]
fn a_block_follows_from_seed_and_number() {
    for originals in [Originals::None, Originals::Only, Originals::AndDegreeOne] {
        let variant = Variant { originals, ..PLAIN };
        let few = Graph::new(&small(50, 60, 9, variant)).unwrap();
        let many = Graph::new(&small(50, 300, 9, variant)).unwrap();
        assert_eq!(rows(&few), rows(&many)[..60]);
        for block in 0..300 {
            let alone = Graph::neighbours_of(&small(50, 60, 9, variant), 0, block).unwrap();
            assert_eq!(alone, many.neighbours(block).unwrap());
        }
        assert_ne!(
            rows(&many)[50..],
            rows(&Graph::new(&small(50, 300, 8, variant)).unwrap())[50..]
        );
    }
}

#[test]
fn variants_keep_their_promises() {
    for (seed, variant) in variants().into_iter().enumerate() {
        let graph = Graph::new(&small(40, 120, seed as u64, variant)).unwrap();
        let rows = rows(&graph);
        let mut uses = [0; 40];
        rows.iter().copied().flatten().for_each(|&data| uses[data as usize] += 1);
        let ones = rows.iter().filter(|row| row.len() == 1).count();
        if variant.originals != Originals::None {
            assert!((0..40).all(|data| rows[data] == [data as u32]), "{variant:?}");
        }
        if variant.originals == Originals::Only {
            assert_eq!(ones, 40, "{variant:?}");
        }
        match variant.selection {
            Selection::Random => {}
            Selection::Coverage(least) => assert!(uses.iter().all(|&uses| uses >= least)),
            Selection::Uniform => {
                assert!(uses.iter().max().unwrap() - uses.iter().min().unwrap() <= 1);
            }
        }
        if variant.decodable {
            let mut peeling = Peeling::new(&graph);
            assert!((0..120).any(|block| peeling.push(block).unwrap()), "{variant:?}");
        }
    }
}

#[test]
fn decodable_graphs_are_searched_for() {
    let decodable = Variant { decodable: true, ..PLAIN };
    let attempts = (0..20).map(|seed| {
        let parameters = small(40, 60, seed, decodable);
        let graph = Graph::new(&parameters).unwrap();
        assert_eq!(Graph::attempted(&parameters, graph.attempt()).unwrap(), graph);
        graph.attempt()
    });
    assert!(attempts.max().unwrap() > 0, "some first graphs cannot be peeled");
    let error = Graph::new(&small(40, 39, 0, decodable)).unwrap_err();
    assert!(error.to_string().contains("none of 64 graphs of 39 blocks"), "{error}");
}

#[test]
fn impossible_graphs_are_refused() {
    let with = |originals, selection| Variant { originals, selection, decodable: false };
    for (blocks, variant) in [
        (0, PLAIN),
        ((1 << 20) + 1, PLAIN),
        (39, with(Originals::Only, Selection::Random)),
        (5, with(Originals::None, Selection::Coverage(6))),
        (42, with(Originals::AndDegreeOne, Selection::Coverage(3))),
    ] {
        let error = Graph::new(&small(40, blocks, 0, variant)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Parameters, "{blocks}, {variant:?}");
    }
    let dense = Soliton::from_integers(1 << 16, 1 << 16, 0, 1 << 60).unwrap();
    let parameters = Parameters { soliton: dense, blocks: 1 << 20, seed: 0, variant: PLAIN };
    assert!(Graph::new(&parameters).unwrap_err().to_string().contains("fewer blocks"));
    for blocks in [vec![], vec![vec![]], vec![vec![3]], vec![vec![0, 1, 0]]] {
        assert!(Graph::from_neighbours(3, &blocks).is_err(), "{blocks:?}");
    }
    assert!(Graph::from_neighbours(0, &[vec![0]]).is_err());
}

/// A pin may state that nearly every block has all neighbours. Drawing such rows takes time
/// proportional to their length; proportional to its square, this test would take a minute.
#[test]
fn dense_rows_are_drawn() {
    let soliton = Soliton::from_integers(1 << 16, 1 << 16, 0, 1 << 60).unwrap();
    let variant = Variant { selection: Selection::Uniform, ..PLAIN };
    let graph = Graph::new(&Parameters { soliton, blocks: 128, seed: 0, variant }).unwrap();
    assert!(rows(&graph).iter().all(|row| row.iter().copied().eq(0..1 << 16)));
}

fn fill(data: usize) -> Vec<Vec<u8>> {
    (0..data).map(|data| (0..3).map(|byte| (data * 7 + byte * 101) as u8).collect()).collect()
}

fn as_slices(cells: &[Vec<u8>]) -> Vec<&[u8]> {
    cells.iter().map(Vec::as_slice).collect()
}

/// Encodes, decodes the blocks that the decoder received, and compares.
fn assert_decodes(graph: &Graph, decoder: &Decoder) {
    let data = fill(graph.data());
    let encoding = graph.encode().unwrap();
    let blocks = interpret(encoding.schedule(), &as_slices(&data)).unwrap();
    let plan = decoder.plan().unwrap();
    let inputs: Vec<&[u8]> =
        plan.inputs().iter().map(|cell| blocks[cell.index() - graph.data()].as_slice()).collect();
    assert_eq!(interpret(plan.schedule(), &inputs).unwrap(), data);
}

const METHODS: [Method; 3] = [Method::Greedy, Method::Lazy, Method::Inactivation];

#[test]
fn what_is_ready_decodes() {
    for (seed, variant) in variants().into_iter().enumerate() {
        let graph = Graph::new(&small(60, 240, seed as u64, variant)).unwrap();
        for method in METHODS {
            let mut decoder = Decoder::new(&graph, method);
            assert!(push_until_ready(&mut decoder, &order(240, seed)), "{variant:?}");
            assert_decodes(&graph, &decoder);
        }
    }
}

#[test]
fn one_data_block() {
    for variant in variants() {
        let variant = Variant { selection: Selection::Random, ..variant };
        let graph = Graph::new(&small(1, 4, 0, variant)).unwrap();
        for method in METHODS {
            let mut decoder = Decoder::new(&graph, method);
            assert!(!decoder.is_ready());
            assert!(decoder.push(2).unwrap());
            assert_decodes(&graph, &decoder);
        }
    }
}

#[test]
fn repeated_and_foreign_blocks_change_nothing() {
    let graph = Graph::new(&small(60, 240, 5, PLAIN)).unwrap();
    let order = order(240, 5);
    for method in METHODS {
        let mut once = Decoder::new(&graph, method);
        let mut often = Decoder::new(&graph, method);
        let error = often.plan().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotEnough);
        for (count, &block) in order.iter().enumerate() {
            assert_eq!(often.push(240).unwrap_err().kind(), ErrorKind::Parameters);
            let ready = once.push(block).unwrap();
            for &again in order[..=count].iter().rev() {
                assert_eq!(often.push(again).unwrap(), ready);
            }
            assert_eq!(often.received(), once.received());
            if ready {
                break;
            }
        }
        assert_eq!(often.plan().unwrap(), once.plan().unwrap());
        let plan = once.plan().unwrap();
        assert!(order.iter().all(|&block| once.push(block).unwrap()));
        match method {
            Method::Inactivation => assert_decodes(&graph, &once),
            _ => assert_eq!(
                once.plan().unwrap(),
                plan,
                "nothing after the data is determined counts"
            ),
        }
        assert!(once.push(usize::MAX).is_err());
    }
}

#[test]
fn the_largest_code_is_peeled() {
    let soliton = Soliton::robust(1 << 16, 0.05, 0.5).unwrap();
    let parameters = Parameters { soliton, blocks: 3 << 15, seed: 1, variant: PLAIN };
    let graph = Graph::new(&parameters).unwrap();
    let mut decoder = Decoder::new(&graph, Method::Lazy);
    assert!(push_until_ready(&mut decoder, &order(graph.blocks(), 1)));
    assert!(decoder.received() < (1 << 16) * 11 / 10, "{} blocks", decoder.received());
    assert_eq!(decoder.plan().unwrap().outputs().len(), 1 << 16);
}

/// Compares with plain elimination: the decoder is ready with exactly the block that completes the
/// rank.
#[test]
fn inactivation_succeeds_exactly_at_full_rank() {
    for seed in 0..60 {
        let data = 2 + seed % 40;
        let graph = Graph::new(&small(data, 6 * data, seed as u64, PLAIN)).unwrap();
        let mut decoder = Decoder::new(&graph, Method::Inactivation);
        let mut supports: Vec<Vec<usize>> = Vec::new();
        for block in order(6 * data, seed) {
            let row = graph.neighbours(block).unwrap();
            supports.push(row.iter().map(|&data| data as usize).collect());
            let full = BitMatrix::from_supports(data, &supports).rank() == data;
            assert_eq!(decoder.push(block).unwrap(), full, "seed {seed}");
            if full {
                assert_decodes(&graph, &decoder);
                break;
            }
        }
    }
}

/// Inactivated blocks cost each other data block one correction, but no block is read twice. This
/// is checked with more and more blocks, down to where peeling alone suffices.
#[test]
fn inactivation_reads_no_block_twice() {
    for (seed, more) in (0..4).flat_map(|seed| [0, 5, 20, 300].map(|more| (seed, more))) {
        let graph = Graph::new(&small(200, 600, seed as u64, PLAIN)).unwrap();
        let mut decoder = Decoder::new(&graph, Method::Inactivation);
        let mut blocks = order(600, seed).into_iter();
        assert!(blocks.any(|block| decoder.push(block).unwrap()));
        assert!(blocks.take(more).all(|block| decoder.push(block).unwrap()));
        assert_decodes(&graph, &decoder);
        let plan = decoder.plan().unwrap();
        let mut reads = vec![0; plan.inputs().len()];
        for source in plan.schedule().ops().iter().flat_map(|op| &op.sources) {
            if let Slot::Input(input) = source {
                reads[*input as usize] += 1;
            }
        }
        assert!(reads.iter().all(|&count| count == 1), "seed {seed}, {more} more");
        assert_eq!(reads.len(), 200, "as many blocks as there are unknowns");
    }
}
