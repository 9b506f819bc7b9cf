//! Computes the evaluation's figures by simulation: of graphs, without any bytes.

use std::time::Instant;

use paritas::lt::{Decoder, Graph, Method, Reception};
use paritas::research::Cost;
use paritas::research::graph::{
    Balance, Freedom, Originals, Parameters, Selection, Soliton, Variant,
};
use rayon::prelude::*;

use crate::bench::order;
use crate::printed::{Printed, Queue};

const DATA: usize = 1024;
/// The evaluation stored 5 k blocks (section V).
const BLOCKS: usize = 5 * DATA;

const TABLE_1_C: [f64; 12] = [0.1, 0.5, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.7, 2.0, 3.0, 5.0];
const TABLE_1_DELTA: [f64; 13] =
    [0.001, 0.002, 0.005, 0.007, 0.01, 0.02, 0.05, 0.07, 0.1, 0.2, 0.5, 0.7, 1.0];
const C: [f64; 7] = [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.7];
const DELTA: [f64; 5] = [0.1, 0.2, 0.5, 0.7, 1.0];

/// The ratios of table 18, and others between and beyond them.
const RATIOS: [f64; 20] = [
    0.02, 0.03, 0.04, 0.06, 0.07, 0.08, 0.09, 0.1, 0.12, 0.14, 0.16, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7,
    0.8, 0.9, 1.0,
];

pub const PLAIN: Variant =
    Variant { originals: Originals::None, selection: Selection::Random, decodable: false };

/// Returns the variants: a name, and the numbers of the tables of its throughput and of the blocks
/// that it needs.
pub fn variants() -> [(&'static str, Variant, u32, Option<u32>); 6] {
    let originals = Originals::Only;
    let selection = Selection::Coverage(3);
    let (decodable, both) = (true, Originals::AndDegreeOne);
    [
        ("plain", PLAIN, 7, None),
        ("originals", Variant { originals, ..PLAIN }, 8, Some(9)),
        ("coverage", Variant { selection, ..PLAIN }, 10, Some(11)),
        (
            "originals+singles+coverage",
            Variant { originals: both, selection, ..PLAIN },
            12,
            Some(13),
        ),
        ("coverage+decodable", Variant { selection, decodable, ..PLAIN }, 14, Some(15)),
        (
            "uniform+decodable",
            Variant { selection: Selection::Uniform, decodable, ..PLAIN },
            16,
            Some(17),
        ),
    ]
}

fn graph(c: f64, delta: f64, blocks: usize, seed: usize, variant: Variant) -> Graph {
    let soliton = Soliton::robust(DATA, c, delta).expect("a distribution");
    Graph::new(&Parameters { soliton, blocks, seed: seed as u64, variant }).expect("a graph")
}

/// Returns the average number of blocks needed (as a multiple of k), the average number of XORs,
/// and the number of runs in which all 5 k blocks were too few. Those runs do not count for the
/// averages. Each run has a graph and an order of its own.
fn averages(
    c: f64,
    delta: f64,
    variant: Variant,
    method: Method,
    runs: usize,
) -> (f64, f64, usize) {
    let (mut received, mut xors, mut failed) = (0, 0, 0);
    for seed in 0..runs {
        let graph = graph(c, delta, BLOCKS, seed, variant);
        let mut decoder = Decoder::new(&graph, method);
        if !order(BLOCKS, seed).iter().any(|&block| decoder.push(block).expect("a block")) {
            failed += 1;
            continue;
        }
        received += decoder.received();
        xors += Cost::of(decoder.plan().expect("enough").schedule()).xors;
    }
    let decoded = (runs - failed) as f64;
    (received as f64 / (decoded * DATA as f64), xors as f64 / decoded, failed)
}

/// Prints tables 1, 2, 5, 6, 9, 11, 13, 15 and 17.
pub fn tables(runs: usize) {
    println!("table,c,delta,value,failed");
    for (c, delta) in pairs(&TABLE_1_C, &TABLE_1_DELTA) {
        let (blocks, _, failed) = averages(c, delta, PLAIN, Method::Lazy, runs);
        let product = blocks * Soliton::robust(DATA, c, delta).expect("a distribution").mean();
        println!("1,{c},{delta},{blocks:.4},{failed}\n2,{c},{delta},{product:.4},{failed}");
    }
    for (c, delta) in pairs(&C, &DELTA) {
        let (_, greedy, failed) = averages(c, delta, PLAIN, Method::Greedy, runs);
        let (_, lazy, _) = averages(c, delta, PLAIN, Method::Lazy, runs);
        // Table 5 counts the copies to the data blocks too; see docs/errata.md.
        let greedy = greedy + DATA as f64;
        println!("5,{c},{delta},{greedy:.1},{failed}\nlazy,{c},{delta},{lazy:.1},{failed}");
        for (table, queue) in [("6", Queue::FirstIn), ("6 last in", Queue::LastIn)] {
            println!("{table},{c},{delta},{:.1},{failed}", printed(c, delta, queue, runs));
        }
        for (_, variant, _, table) in variants() {
            if let Some(table) = table {
                let (blocks, _, failed) = averages(c, delta, variant, Method::Lazy, runs);
                println!("{table},{c},{delta},{blocks:.4},{failed}");
            }
        }
    }
}

/// Returns the average number of XORs of the decoder as the evaluation prints it.
fn printed(c: f64, delta: f64, queue: Queue, runs: usize) -> f64 {
    let count = |seed| {
        let graph = graph(c, delta, BLOCKS, seed, PLAIN);
        Printed::new(&graph, queue).xors(&order(BLOCKS, seed))
    };
    let counts: Vec<usize> = (0..runs).filter_map(count).collect();
    counts.iter().sum::<usize>() as f64 / counts.len() as f64
}

/// Parameters for [`sizes`]: those that need the fewest blocks of table 1, those at the other end
/// of tables 3 to 17, and those of section X.
const SIZED: [(f64, f64); 3] = [(0.1, 1.0), (1.0, 1.0), (1.4, 0.2)];

/// Prints the blocks that k data blocks need, as a multiple of k, and the XORs a block, for several
/// k (section IV, on its third parameter).
pub fn sizes(runs: usize, data: &[usize]) {
    println!("k,c,delta,runs,failed,average,xors_a_block");
    for (c, delta) in SIZED {
        for &k in data {
            // The runs of every k have about the same number of data blocks together.
            let runs = (runs << 10).div_ceil(k).max(10);
            let soliton = Soliton::robust(k, c, delta).expect("a distribution");
            let needed: Vec<(usize, usize)> =
                (0..runs).into_par_iter().filter_map(|seed| sized(soliton, seed)).collect();
            let mean = |sum: usize| sum as f64 / (needed.len() * k) as f64;
            println!(
                "{k},{c},{delta},{runs},{},{:.4},{:.3}",
                runs - needed.len(),
                mean(needed.iter().map(|(blocks, _)| blocks).sum()),
                mean(needed.iter().map(|(_, xors)| xors).sum()),
            );
        }
    }
}

/// Returns the blocks needed and the XORs of a reception of 5 k blocks.
fn sized(soliton: Soliton, seed: usize) -> Option<(usize, usize)> {
    let blocks = 5 * soliton.data();
    let parameters = Parameters { soliton, blocks, seed: seed as u64, variant: PLAIN };
    let graph = Graph::new(&parameters).expect("a graph");
    let mut decoder = Decoder::new(&graph, Method::Lazy);
    order(blocks, seed).into_iter().find(|&block| decoder.push(block).expect("a block"))?;
    Some((decoder.received(), Cost::of(decoder.plan().expect("enough").schedule()).xors))
}

/// Returns all pairs of values.
fn pairs(c: &[f64], delta: &[f64]) -> Vec<(f64, f64)> {
    delta.iter().flat_map(|&delta| c.iter().map(move |&c| (c, delta))).collect()
}

/// Prints the blocks needed against the XORs of decoding, for many distributions. For inactivation,
/// it also prints the XORs with 1.05 k blocks.
pub fn curve(runs: usize) {
    println!(
        "variant,method,c,delta,mean_degree,average,q999,failure_at_1.05,xors_a_block,xors_at_1.05"
    );
    let uniform = Variant { selection: Selection::Uniform, ..PLAIN };
    for (name, variant, blocks) in
        [("plain", PLAIN, BLOCKS), ("uniform", uniform, BLOCKS), ("uniform", uniform, 1229)]
    {
        for c in [0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5, 1.0, 1.4, 2.0] {
            for delta in [0.01, 0.1, 0.5, 1.0] {
                point(name, variant, blocks, c, delta, runs);
            }
        }
    }
}

fn point(name: &str, variant: Variant, blocks: usize, c: f64, delta: f64, runs: usize) {
    let graph = graph(c, delta, blocks, 1, variant);
    let degree = Soliton::robust(DATA, c, delta).expect("a distribution").mean();
    for method in [Method::Lazy, Method::Inactivation] {
        let reception = Reception::simulate(&graph, method, runs, 1).expect("blocks");
        let show = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.4}"));
        let xors = |least: usize| {
            let count = |seed| xors_with(&graph, method, least, seed);
            let counts: Option<Vec<usize>> = (0..runs.min(10)).map(count).collect();
            show(counts.map(|c| c.iter().sum::<usize>() as f64 / (c.len() * DATA) as f64))
        };
        println!(
            "{name} n={blocks},{method:?},{c},{delta},{degree:.3},{},{},{:.5},{},{}",
            show(reception.average()),
            show(reception.quantile(0.999)),
            reception.failure_at(1.05),
            xors(0),
            if method == Method::Inactivation { xors(DATA * 105 / 100) } else { "-".to_owned() },
        );
    }
}

/// Prints the blocks that some distributions need, and their XORs, for many k and n, over graphs of
/// several seeds. The default distribution, of specs that give k and n alone, was chosen by this.
pub fn defaults(runs: usize, data: &[usize]) {
    println!(
        "k,n,variant,c,delta,mean_degree,runs,average,q999,most,failed,xors_a_block,xors_at_1.05,seconds"
    );
    let uniform = Variant { selection: Selection::Uniform, ..PLAIN };
    for &k in data {
        for blocks in [(6 * k).div_ceil(5), 2 * k, 5 * k] {
            let entrants = DEFAULTS.map(|(c, delta)| (uniform, c, delta));
            for (variant, c, delta) in [(PLAIN, 0.1, 0.5)].into_iter().chain(entrants) {
                // The runs of every k have about the same number of data blocks together.
                let runs = (runs << 10).div_ceil(k).clamp(4, 10 * runs);
                let soliton = Soliton::robust(k, c, delta).expect("a distribution");
                Candidate { soliton, blocks, variant }.print(c, delta, runs);
            }
        }
    }
}

/// The default for k of at least 256, the default for smaller k, and others between few XORs and
/// few blocks.
const DEFAULTS: [(f64, f64); 5] = [(0.03, 0.1), (0.1, 0.5), (0.01, 1.0), (0.02, 0.1), (0.02, 0.01)];

/// A distribution to try.
struct Candidate {
    soliton: Soliton,
    blocks: usize,
    variant: Variant,
}

/// A reception: the blocks that it took, the XORs a block with these, and the XORs a block with
/// 1.05 k blocks (or with all, if these are fewer).
type Received = (usize, f64, f64);

impl Candidate {
    fn print(&self, c: f64, delta: f64, runs: usize) {
        let start = Instant::now();
        let received: Vec<Option<Received>> =
            (0..runs).into_par_iter().map(|seed| self.receive(seed)).collect();
        let seconds = start.elapsed().as_secs_f64() / runs as f64;
        let mut received: Vec<Received> = received.into_iter().flatten().collect();
        received.sort_by_key(|&(needed, ..)| needed);
        let k = self.soliton.data() as f64;
        // A run in which all blocks are too few counts as needing more than any other.
        let rank = (0.999 * runs as f64).ceil() as usize - 1;
        let of_k = |one: Option<&Received>| one.map_or(f64::NAN, |&(needed, ..)| needed as f64 / k);
        let mean = |value: fn(&Received) -> f64| {
            received.iter().map(value).sum::<f64>() / received.len() as f64
        };
        let variant = if self.variant == PLAIN { "plain" } else { "uniform" };
        println!(
            "{k},{},{variant},{c},{delta},{:.3},{runs},{:.4},{:.4},{:.4},{},{:.3},{:.3},{seconds:.6}",
            self.blocks,
            self.soliton.mean(),
            mean(|&(needed, ..)| needed as f64) / k,
            of_k(received.get(rank)),
            of_k(received.last()),
            runs - received.len(),
            mean(|&(_, just, _)| just),
            mean(|&(_, _, more)| more),
        );
    }

    fn receive(&self, seed: usize) -> Option<Received> {
        let &Self { soliton, blocks, variant } = self;
        let graph = Graph::new(&Parameters { soliton, blocks, seed: seed as u64, variant });
        let graph = graph.expect("a graph");
        let mut decoder = Decoder::new(&graph, Method::Inactivation);
        let mut coming = order(blocks, seed).into_iter();
        coming.by_ref().find(|&block| decoder.push(block).expect("a block"))?;
        let k = soliton.data();
        let xors = |decoder: &Decoder| {
            Cost::of(decoder.plan().expect("enough").schedule()).xors as f64 / k as f64
        };
        let (needed, just) = (decoder.received(), xors(&decoder));
        let more = (k * 105 / 100).saturating_sub(needed);
        coming.take(more).for_each(|block| _ = decoder.push(block).expect("a block"));
        Some((needed, just, xors(&decoder)))
    }
}

/// Returns the XORs with the first blocks that suffice, at least `least` of them. Returns `None` if
/// all are too few.
fn xors_with(graph: &Graph, method: Method, least: usize, seed: usize) -> Option<usize> {
    let mut decoder = Decoder::new(graph, method);
    for &block in &order(graph.blocks(), seed) {
        let ready = decoder.push(block).expect("a block");
        if ready && decoder.received() >= least {
            break;
        }
    }
    decoder.is_ready().then(|| Cost::of(decoder.plan().expect("enough").schedule()).xors)
}

/// Prints the degree of freedom of every variant, with c = 1.4 and delta = 0.2 as in the
/// evaluation's summary, and of inactivation with the distribution that suits it.
pub fn freedom(runs: usize) {
    println!(
        "variant,method,c,delta,n,received,decodable,indispensable,most,average,halving_blocks"
    );
    for (name, variant, ..) in variants() {
        for method in [Method::Lazy, Method::Inactivation] {
            for received in [1.5, 2.0, 2.5, 5.0] {
                free(name, variant, method, (1.4, 0.2), BLOCKS, received, runs);
            }
        }
    }
    for (name, selection) in [("plain", Selection::Random), ("uniform", Selection::Uniform)] {
        for received in [1.01, 1.02, 1.05, 1.1, 1.2] {
            let variant = Variant { selection, ..PLAIN };
            free(name, variant, Method::Inactivation, (0.01, 1.0), 1229, received, runs);
        }
    }
}

fn free(
    name: &str,
    variant: Variant,
    method: Method,
    (c, delta): (f64, f64),
    blocks: usize,
    received: f64,
    runs: usize,
) {
    let graph = graph(c, delta, blocks, 1, variant);
    let count = ((received * DATA as f64) as usize).min(blocks);
    let freedom = Freedom::simulate(&graph, method, count, runs.div_ceil(20), 1).expect("blocks");
    let reception = Reception::simulate(&graph, method, runs, 1).expect("blocks");
    println!(
        "{name},{method:?},{c},{delta},{blocks},{received},{:.3},{:.2},{},{},{}",
        freedom.decodable,
        freedom.indispensable,
        freedom.most,
        reception.average().map_or("-".to_owned(), |value| format!("{value:.4}")),
        reception.halving().map_or("-".to_owned(), |value| format!("{value:.1}")),
    );
}

/// A guess at what the simulation of section VIII counts.
#[derive(Clone, Copy)]
enum Work {
    /// An XOR is work as soon as its data block is determined, and counts the bytes that it writes.
    Written,
    /// The same, but an XOR counts the bytes of both blocks that it reads.
    Read,
    /// The same, but an XOR counts all bytes that it reads and writes.
    Moved,
    /// All XORs follow the last arrival, as lazy decoding has them.
    AfterLazy,
    /// All XORs follow the last arrival, as greedy decoding has them.
    AfterGreedy,
}

impl Work {
    const ALL: [(&'static str, Self); 5] = [
        ("written", Self::Written),
        ("read", Self::Read),
        ("read and written", Self::Moved),
        ("after, lazy", Self::AfterLazy),
        ("after, greedy", Self::AfterGreedy),
    ];

    /// Returns the time until all data is there, as a multiple of that in which k blocks arrive, of
    /// one reception for each ratio.
    fn times(self, graph: &Graph, seed: usize) -> Vec<f64> {
        let simulated = |factor: f64| {
            let balance = |ratio| Balance::simulate(graph, factor * ratio, 1, seed as u64);
            RATIOS.iter().map(|ratio| balance(*ratio).expect("blocks").done).collect()
        };
        match self {
            Self::Written => simulated(1.0),
            Self::Read => simulated(2.0),
            Self::Moved => simulated(3.0),
            Self::AfterLazy => after(graph, Method::Lazy, seed),
            Self::AfterGreedy => after(graph, Method::Greedy, seed),
        }
    }
}

/// Returns the same if all XORs follow the last arrival.
fn after(graph: &Graph, method: Method, seed: usize) -> Vec<f64> {
    let mut decoder = Decoder::new(graph, method);
    let blocks = order(graph.blocks(), seed);
    blocks.into_iter().find(|&block| decoder.push(block).expect("a block")).expect("enough");
    let xors = Cost::of(decoder.plan().expect("enough").schedule()).xors as f64;
    RATIOS.map(|ratio| (decoder.received() as f64 + ratio * xors) / DATA as f64).to_vec()
}

/// Prints table 18 under several models of work: the average time over graphs, each with one
/// reception, by the ratio of the network's bandwidth and that of computing; its standard deviation;
/// and in how many runs of one graph a cell these parameters are the best.
pub fn system(graphs: usize) {
    println!("ratio,work,c,delta,mean_degree,graphs,done,deviation,wins");
    let cells: Vec<(f64, f64)> =
        [0.1, 0.5, 1.0, 1.2, 1.4, 1.6, 1.9, 2.0, 3.0, 5.0, 10.0, 30.0, 100.0]
            .into_iter()
            .flat_map(|c| [0.00001, 0.00005, 0.05, 0.1, 0.2, 0.5, 0.7, 1.0].map(|delta| (c, delta)))
            .collect();
    let times: Vec<CellTimes> =
        cells.par_iter().map(|&(c, delta)| CellTimes::new(c, delta, graphs)).collect();
    for (work, (name, _)) in Work::ALL.iter().enumerate() {
        for (place, ratio) in RATIOS.iter().enumerate() {
            let wins = wins(&times, work, place);
            for (cell, wins) in times.iter().zip(wins) {
                let CellTimes { c, delta, done } = cell;
                let degree = Soliton::robust(DATA, *c, *delta).expect("a distribution").mean();
                let (done, deviation) = mean_and_deviation(&done[work][place]);
                println!(
                    "{ratio},\"{name}\",{c},{delta},{degree:.5},{graphs},{done:.4},{deviation:.4},{wins}"
                );
            }
        }
    }
}

/// The times of one c and delta: by work and ratio, one for each graph.
struct CellTimes {
    c: f64,
    delta: f64,
    done: Vec<Vec<Vec<f64>>>,
}

impl CellTimes {
    fn new(c: f64, delta: f64, graphs: usize) -> Self {
        let uniform = variants()[5].1;
        let mut done = vec![vec![Vec::with_capacity(graphs); RATIOS.len()]; Work::ALL.len()];
        for seed in 1..=graphs {
            let graph = graph(c, delta, BLOCKS, seed, uniform);
            for (done, (_, work)) in done.iter_mut().zip(Work::ALL) {
                done.iter_mut()
                    .zip(work.times(&graph, seed))
                    .for_each(|(all, time)| all.push(time));
            }
        }
        Self { c, delta, done }
    }
}

/// Returns for each cell in how many runs it is the best, if every run has one graph a cell.
fn wins(cells: &[CellTimes], work: usize, ratio: usize) -> Vec<usize> {
    let mut wins = vec![0; cells.len()];
    for graph in 0..cells[0].done[work][ratio].len() {
        let time = |cell: &usize| cells[*cell].done[work][ratio][graph];
        let best = (0..cells.len()).min_by(|a, b| time(a).total_cmp(&time(b)));
        wins[best.expect("cells")] += 1;
    }
    wins
}

fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / (count - 1.0).max(1.0)).sqrt())
}
