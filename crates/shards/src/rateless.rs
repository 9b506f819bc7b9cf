//! Answers about objects of LT codes. For most questions, only the graph can give a certain answer.
//!
//! The tolerable losses are found by trying some losses. The number of blocks that decoding needs
//! is found by drawing blocks in random order ([`reception`]). The latter takes up to some seconds,
//! so callers may want to remember the result ([`reception_key`]).

use paritas::erasure::combinations;
use paritas::lt::{Decoder, Graph, Method, Reception};
use paritas::{Code, NodeId};
use paritas_store::error::Result;
use paritas_store::shown::are;
use serde::{Deserialize, Serialize};

use paritas_store::object::format::describe;

/// Number of blocks that all runs of a simulation together solve for. This takes a second or two,
/// up to k = 8192.
const SIMULATED_BLOCKS: usize = 1 << 21;

/// The same number times k, as the limit for larger k, where elimination takes most of the time.
const SIMULATED_PAIRS: usize = 1 << 35;

/// Largest number of blocks that all runs of a simulation put in order, among them those that are
/// not needed.
const SHUFFLED_BLOCKS: usize = 1 << 27;

/// Lower and upper limit of the number of runs of a simulation. A thousand runs show the 99.9th
/// percentile. With many data blocks receptions hardly differ, so a few runs are enough.
const RUNS: (usize, usize) = (8, 2000);

/// Number of blocks that are solved for while losses of one number of shards are tried.
const TRIED_BLOCKS: usize = 1 << 16;

/// Lower and upper limit of the number of losses that are tried. Graphs of few data blocks need
/// many: of the losses of two shards of `lt:k=16,n=32`, few are fatal.
const TRIALS: (usize, usize) = (4, 4096);

/// The number of blocks that decoding takes, by simulation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ReceptionReport {
    /// Number of blocks that can be received.
    pub blocks: usize,
    /// Average number of blocks needed, as a multiple of k. `None` if even all blocks never
    /// sufficed.
    pub average: Option<f64>,
    /// The multiple of k that sufficed in 99.9 % of all runs (or in all runs, if they were fewer
    /// than a thousand).
    pub p999: Option<f64>,
    /// Number of runs.
    pub runs: usize,
    /// Number of runs in which even all blocks did not suffice.
    pub failures: usize,
}

/// Simulates how many blocks of `shards` decoding an LT code takes, if they arrive in random order.
/// Returns `None` for other codes.
///
/// # Errors
/// If the graph refuses a block. This does not happen for shards that the code has.
///
/// # Panics
/// If the code does not have one of the shards.
pub fn reception(code: &Code, shards: &[usize]) -> Result<Option<ReceptionReport>> {
    let Some(graph) = code.graph() else { return Ok(None) };
    let runs = runs(graph);
    let nodes = shards.iter().map(|&shard| NodeId::new(shard));
    let cells = code.cells_of(nodes);
    let blocks: Vec<usize> = cells.iter().map(|cell| cell.index() - graph.data()).collect();
    let simulated = Reception::simulate_among(graph, &blocks, Method::Inactivation, runs, 1)?;
    Ok(Some(ReceptionReport {
        blocks: blocks.len(),
        average: simulated.average(),
        p999: simulated.quantile(0.999),
        runs,
        failures: simulated.failures(),
    }))
}

/// Returns a name under which the report of [`reception`] can be remembered. The name is the same
/// only for the same code, shards and number of runs. Returns `None` for codes that have no such
/// report.
pub fn reception_key(code: &Code, shards: &[usize]) -> Option<String> {
    let runs = runs(code.graph()?);
    let mut hasher = blake3::Hasher::new();
    hasher.update(describe(code).as_bytes());
    let numbers = [1, runs].into_iter().chain(shards.iter().copied());
    numbers.for_each(|number| _ = hasher.update(&(number as u64).to_le_bytes()));
    Some(hasher.finalize().to_hex()[..32].to_owned())
}

/// Returns the number of runs of a simulation.
fn runs(graph: &Graph) -> usize {
    runs_of(graph.data(), graph.blocks())
}

/// Returns the number of runs of a simulation with `data` data blocks among `blocks`.
fn runs_of(data: usize, blocks: usize) -> usize {
    let most = [SIMULATED_BLOCKS / data, SIMULATED_PAIRS / data / data, SHUFFLED_BLOCKS / blocks];
    most.into_iter().min().unwrap_or(0).clamp(RUNS.0, RUNS.1)
}

/// Returns how many more blocks are likely needed besides those in `good`. Returns `None` if even
/// all blocks do not suffice.
pub(crate) fn likely_needed(graph: &Graph, good: &[usize]) -> Option<usize> {
    solve(graph, good).likely_needed()
}

/// Describes what is lacking if the blocks in `good` are good, in words that follow a count of
/// shards.
pub(crate) fn shortage(graph: &Graph, good: &[usize]) -> String {
    let (blocks, count) = (graph.blocks(), good.len());
    match likely_needed(graph, good) {
        Some(more) => {
            format!("{count} of {blocks} blocks, and likely {more} more {} enough", are(more))
        }
        None => format!("{count} of {blocks} blocks, and even all are not enough"),
    }
}

/// Whether these blocks determine the data.
pub(crate) fn is_enough(graph: &Graph, blocks: &[usize]) -> bool {
    blocks.len() >= graph.data() && solve(graph, blocks).is_ready()
}

/// Returns the number of losses of one size that are tried, so that trying takes little time.
pub(crate) fn trials(graph: &Graph) -> usize {
    (TRIED_BLOCKS / graph.data()).clamp(TRIALS.0, TRIALS.1)
}

/// Returns how many shards of an LT code may be lost: the largest number for which all tried losses
/// are tolerable. Returns `None` for other codes. This takes up to some tenths of a second.
pub fn likely_tolerance(code: &Code) -> Option<usize> {
    let graph = code.graph()?;
    let all: Vec<usize> = (0..graph.blocks()).collect();
    Some(tolerance(graph, code.node_count(), &all))
}

/// Returns how many shards may be lost if the blocks in `good` are good: the largest number for
/// which all tried losses are tolerable. If there are few losses, all are tried; if there are many,
/// some are drawn at random from a fixed seed.
pub(crate) fn tolerance(graph: &Graph, shards: usize, good: &[usize]) -> usize {
    let trials = trials(graph);
    let is_borne = |lost: Vec<usize>| {
        let left: Vec<usize> =
            good.iter().copied().filter(|block| !lost.contains(&(block % shards))).collect();
        is_enough(graph, &left)
    };
    let counts: Vec<usize> = (1..=shards).collect();
    counts.partition_point(|&count| losses(shards, count, trials).into_iter().all(is_borne))
}

/// Returns losses of `count` shards: all, if there are at most `most`, otherwise `most` of them.
fn losses(shards: usize, count: usize, most: usize) -> Vec<Vec<usize>> {
    let all: Vec<Vec<usize>> = combinations(shards, count).take(most + 1).collect();
    if all.len() <= most {
        return all;
    }
    let mut state = count as u64;
    (0..most).map(|_| draw(shards, count, &mut state)).collect()
}

/// Draws `count` of the shards at random.
fn draw(shards: usize, count: usize, state: &mut u64) -> Vec<usize> {
    let mut all: Vec<usize> = (0..shards).collect();
    for place in 0..count {
        // Knuth's 64-bit generator, whose high bits are good enough to spread trials.
        *state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let other = place + ((*state >> 33) as usize) % (shards - place);
        all.swap(place, other);
    }
    all.truncate(count);
    all
}

fn solve(graph: &Graph, blocks: &[usize]) -> Decoder {
    let mut decoder = Decoder::new(graph, Method::Inactivation);
    // Pushing cannot fail: the graph has all these blocks.
    let _ = blocks.iter().any(|&block| matches!(decoder.push(block), Ok(true)));
    decoder
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(spec: &str) -> Code {
        Code::new(&spec.parse().unwrap()).unwrap()
    }

    fn graph(code: &Code) -> &Graph {
        code.graph().unwrap()
    }

    #[test]
    fn losses_are_all_or_some() {
        assert_eq!(losses(4, 2, 6), combinations(4, 2).collect::<Vec<_>>());
        let some = losses(16, 8, 5);
        assert_eq!(some.len(), 5);
        for lost in some {
            let mut sorted = lost.clone();
            sorted.sort_unstable();
            sorted.dedup();
            assert!(sorted.len() == 8 && sorted.iter().all(|&shard| shard < 16), "{lost:?}");
        }
    }

    /// Eight copies of one block: all but one may be lost. If three of them are gone, four more may
    /// be lost.
    #[test]
    fn copies_tolerate_all_but_one() {
        let copies = code("lt:k=1,n=8,nodes=8");
        assert_eq!(tolerance(graph(&copies), 8, &[0, 1, 2, 3, 4, 5, 6, 7]), 7);
        // A loss may include shards that are gone already, because any shards may be lost.
        assert_eq!(tolerance(graph(&copies), 8, &[0]), 0);
        assert_eq!(tolerance(graph(&copies), 8, &[1, 4]), 1);
        assert_eq!(likely_needed(graph(&copies), &[]), Some(1));
        assert!(shortage(graph(&copies), &[]).contains("0 of 8 blocks, and likely 1 more"));
    }

    #[test]
    fn fewer_blocks_than_data_are_never_enough() {
        let code = code("lt:k=64,n=128,nodes=16");
        let all: Vec<usize> = (0..128).collect();
        let most = tolerance(graph(&code), 16, &all);
        assert!((1..=8).contains(&most), "{most}");
        assert_eq!(tolerance(graph(&code), 16, &all[..63]), 0);
    }

    /// Large codes get few runs, so that a simulation does not take long.
    #[test]
    fn runs_fall_with_the_size() {
        let sizes = [1, 1024, 4096, 8192, 16384, 32768, 65536];
        let of_half = sizes.map(|data| runs_of(data, 2 * data));
        assert_eq!(of_half, [2000, 2000, 512, 256, 128, 32, 8]);
        assert_eq!(runs_of(1, 1_000_000), 134);
    }

    #[test]
    fn a_simulation_says_what_it_takes() {
        let code = code("lt:k=64,n=128,nodes=16");
        let shards: Vec<usize> = (0..16).collect();
        let report = reception(&code, &shards).unwrap().unwrap();
        assert_eq!((report.blocks, report.runs), (128, 2000));
        let (average, p999) = (report.average.unwrap(), report.p999.unwrap());
        assert!(1.0 < average && average < p999 && p999 < 2.0, "{report:?}");
        assert_eq!(reception(&code, &shards).unwrap(), Some(report));
        let half = reception(&code, &shards[..7]).unwrap().unwrap();
        assert_eq!((half.blocks, half.average, half.failures), (56, None, 2000));
        assert_eq!(reception(&self::code("4+2"), &[0]).unwrap(), None);
    }

    #[test]
    fn keys_tell_codes_and_shards_apart() {
        let of = |spec: &str, shards: &[usize]| reception_key(&code(spec), shards);
        let key = of("lt:k=64,n=128,nodes=16", &[0, 1]).unwrap();
        assert!(key.len() == 32 && key.bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert_eq!(of("lt:k=64,n=128,nodes=16", &[0, 1]), Some(key.clone()));
        for (spec, shards) in [
            ("lt:k=64,n=128,nodes=16", &[0, 2][..]),
            ("lt:k=64,n=128,nodes=16", &[0]),
            ("lt:k=64,n=128,nodes=16,seed=9", &[0, 1]),
        ] {
            assert_ne!(of(spec, shards), Some(key.clone()), "{spec} {shards:?}");
        }
        assert_eq!(of("4+2", &[0]), None);
    }
}
