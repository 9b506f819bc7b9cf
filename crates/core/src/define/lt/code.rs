//! An LT code by name: `lt:k=1024,n=2048,nodes=16,c=0.03,delta=0.1,variant=uniform,seed=0`.
//!
//! The name states everything that a graph is drawn from. The [`Pin`] additionally holds the
//! distribution, which is computed in floating point, and the number of the decodable graph, which
//! is searched for. A reader takes both from the pin, so stored blocks stay readable whatever later
//! versions round or search differently.

use crate::define::lt::generator::GENERATOR;
use crate::define::lt::{
    Graph, MAX_BLOCKS, MAX_DATA_BLOCKS, Originals, Parameters, Selection, Soliton, Variant,
};
use crate::define::pin::Pin;
use crate::define::spec::Spec;
use crate::error::{Error, Result};

/// The family's name in a spec.
pub const FAMILY: &str = "lt";

/// Default number of nodes that blocks are spread over.
const DEFAULT_NODES: usize = 16;
/// Largest number of nodes.
const MAX_NODES: usize = 1 << 16;

/// Default c and delta: the first pair for k below [`LARGE`], the second from there on. They keep
/// both the average and the 99.9th percentile of blocks needed small, for any n, at few XORs
/// (`docs/lt.md`).
const DEFAULT_DISTRIBUTIONS: [(f64, f64); 2] = [(0.1, 0.5), (0.03, 0.1)];
const LARGE: usize = 256;
/// Default variant. Neighbours chosen at random leave some data block in too few blocks; uniform
/// coverage does not.
const DEFAULT_VARIANT: &str = "uniform";
/// Number of seeds tried if a spec names none. With few blocks, a graph is often unable to
/// determine the data. With more than [`LARGE`] data blocks, and somewhat more blocks than data
/// blocks, this is rare.
const TRIED_SEEDS: u64 = 64;
/// The paper's threshold (section VII.2).
const DEFAULT_COVERAGE: usize = 3;

const KEYS: [&str; 8] = ["k", "n", "nodes", "c", "delta", "variant", "coverage", "seed"];

/// A named LT code: k data blocks and n blocks to store, spread over nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct LtCode {
    nodes: usize,
    c: f64,
    delta: f64,
    parameters: Parameters,
    attempt: u32,
}

impl LtCode {
    /// Returns the code that a spec names.
    ///
    /// - `k` and `n` are required.
    /// - `nodes` is 16 by default, or n if that is less.
    /// - `c` and `delta` are 0.03 and 0.1 by default, or 0.1 and 0.5 where k is below 256.
    /// - `seed` is 0 by default. Where k is up to 256 and `variant` lacks `decodable`, it is the
    ///   first of 0 to 63 with which all blocks together determine the data, or 0 if there is none.
    /// - `variant` is `uniform` by default. It is `plain`, or one or more of the following parts
    ///   joined by `+`:
    ///   - `originals`: the first k blocks are the data blocks, and no other has degree 1; with
    ///     `singles` others may;
    ///   - `coverage`: every data block is in at least `coverage` blocks, 3 by default; or
    ///     `uniform`: all data blocks are in equally many;
    ///   - `decodable`: graphs are drawn until one can be peeled when no block is lost.
    ///
    /// # Errors
    /// If a parameter is missing, unknown or out of range, or if no decodable graph is found.
    pub fn new(spec: &Spec) -> Result<Self> {
        let mut code = Self::parse(spec)?;
        if spec.text("seed").is_none() && code.data() <= LARGE {
            code.parameters.seed = code.useful_seed()?;
        }
        if code.parameters.variant.decodable {
            code.attempt = Graph::new(&code.parameters)?.attempt();
        } else {
            code.parameters.check()?;
        }
        Ok(code)
    }

    /// Returns the first seed whose graph determines the data; 0 if none of the seeds tried does.
    fn useful_seed(&self) -> Result<u64> {
        if self.blocks() < self.data() || self.parameters.variant.decodable {
            return Ok(0);
        }
        for seed in 0..TRIED_SEEDS {
            let graph = Graph::new(&Parameters { seed, ..self.parameters })?;
            if graph.has_full_rank() {
                return Ok(seed);
            }
        }
        Ok(0)
    }

    /// Returns the code of a canonical spec and the pin that was stored with it.
    ///
    /// # Errors
    /// If the pin does not fit the spec, or names a generator that this version lacks.
    pub fn rebuild(spec: &Spec, pin: &Pin) -> Result<Self> {
        let mut code = Self::parse(spec)?;
        let generator = pin.one("generator")?;
        if generator != GENERATOR || pin.one("seed")? != code.parameters.seed {
            return Err(Error::parameters(format!(
                "{spec} is pinned with {pin}; this version has generator {GENERATOR}"
            )));
        }
        let too_large = |_| Error::parameters(format!("{spec}: no code is pinned with {pin}"));
        code.parameters.soliton = Soliton::from_integers(
            code.data(),
            usize::try_from(pin.one("spike")?).map_err(too_large)?,
            pin.one("ripple")?,
            pin.one("weight")?,
        )?;
        code.attempt = u32::try_from(pin.one("attempt")?).map_err(too_large)?;
        code.parameters.check()?;
        Ok(code)
    }

    /// Returns the code that a spec names before any graph is drawn: with attempt 0 and the seed of
    /// the spec, or seed 0.
    pub(in crate::define) fn parse(spec: &Spec) -> Result<Self> {
        if spec.family() != FAMILY {
            return Err(Error::spec(format!("{spec} is no LT code; those are {FAMILY}:k=…,n=…")));
        }
        spec.allow(&KEYS)?;
        let (data, blocks) = (spec.required("k")?, spec.required("n")?);
        let limit = |key, value, most| match (1..=most).contains(&value) {
            true => Ok(value),
            false => Err(Error::parameters(format!(
                "{spec}: {key} must be from 1 to {most}; got {value}"
            ))),
        };
        limit("k", data, MAX_DATA_BLOCKS)?;
        limit("n", blocks, MAX_BLOCKS)?;
        if blocks < data {
            let message = format!("{spec}: n must be at least k = {data}; got {blocks}");
            return Err(Error::parameters(message));
        }
        let nodes = spec.number("nodes")?.unwrap_or(DEFAULT_NODES.min(blocks));
        limit("nodes", nodes, blocks.min(MAX_NODES))?;
        let (c, delta) = DEFAULT_DISTRIBUTIONS[usize::from(data >= LARGE)];
        let (c, delta) = (decimal(spec, "c", c)?, decimal(spec, "delta", delta)?);
        let soliton = Soliton::robust(data, c, delta)?;
        let seed = spec.number("seed")?.unwrap_or(0) as u64;
        let parameters = Parameters { soliton, blocks, seed, variant: variant(spec)? };
        Ok(Self { nodes, c, delta, parameters, attempt: 0 })
    }

    /// The canonical name.
    pub fn spec(&self) -> Spec {
        let Parameters { blocks, seed, variant, .. } = self.parameters;
        let spec = Spec::new(FAMILY)
            .with("k", self.data())
            .with("n", blocks)
            .with("nodes", self.nodes)
            .with("c", self.c)
            .with("delta", self.delta)
            .with("variant", variant);
        let spec = match variant.selection {
            Selection::Coverage(least) => spec.with("coverage", least),
            Selection::Random | Selection::Uniform => spec,
        };
        spec.with("seed", seed)
    }

    /// Returns the numbers to keep with stored blocks: the generator's number, the distribution as
    /// whole numbers, the seed, and which graph of that seed it is.
    pub fn pin(&self) -> Pin {
        let (spike, ripple, weight) = self.parameters.soliton.integers();
        Pin::new()
            .with("generator", [GENERATOR])
            .with("spike", [spike as u64])
            .with("ripple", [ripple])
            .with("weight", [weight])
            .with("seed", [self.parameters.seed])
            .with("attempt", [self.attempt.into()])
    }

    /// Returns the parameters that the graph is drawn from.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Number of the graph among those of its seed.
    pub(crate) fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The number of data blocks, k.
    pub fn data(&self) -> usize {
        self.parameters.soliton.data()
    }

    /// The number of blocks, n.
    pub fn blocks(&self) -> usize {
        self.parameters.blocks
    }

    /// The number of nodes.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// Returns the node that holds a block; blocks are dealt out in turn.
    pub fn node_of(&self, block: usize) -> usize {
        block % self.nodes
    }

    /// The blocks of a node, ascending.
    pub fn blocks_of(&self, node: usize) -> impl ExactSizeIterator<Item = usize> + use<> {
        (node..self.blocks()).step_by(self.nodes)
    }

    /// Draws the graph.
    ///
    /// # Errors
    /// Never, for a code that could be made; see [`Graph::attempted`].
    pub fn graph(&self) -> Result<Graph> {
        Graph::attempted(&self.parameters, self.attempt)
    }

    /// Whether a graph was drawn for this code.
    pub(crate) fn has_drawn(&self, graph: &Graph) -> bool {
        graph.drawn() == Some((&self.parameters, self.attempt))
    }
}

/// Reads a decimal number such as 0.05.
fn decimal(spec: &Spec, key: &str, default: f64) -> Result<f64> {
    let Some(text) = spec.text(key) else { return Ok(default) };
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    text.parse().ok().filter(|_| is_plain).ok_or_else(|| {
        Error::spec(format!("{spec}: {key} must be a decimal number such as 0.5; got {text}"))
    })
}

fn variant(spec: &Spec) -> Result<Variant> {
    let text = spec.text("variant").unwrap_or(DEFAULT_VARIANT);
    let wrong = || {
        Error::spec(format!(
            "variant must be plain, or one or several of originals or originals+singles, \
             coverage or uniform, and decodable, joined by + in this order; got {text}"
        ))
    };
    let least = spec.number("coverage")?;
    let mut variant = Variant::default();
    for part in text.split('+') {
        match part {
            "plain" => {}
            "originals" => variant.originals = Originals::Only,
            "singles" => variant.originals = Originals::AndDegreeOne,
            "coverage" => {
                let least =
                    u32::try_from(least.unwrap_or(DEFAULT_COVERAGE)).map_err(|_| wrong())?;
                variant.selection = Selection::Coverage(least);
            }
            "uniform" => variant.selection = Selection::Uniform,
            "decodable" => variant.decodable = true,
            _ => return Err(wrong()),
        }
    }
    if variant.to_string() != text {
        return Err(wrong());
    }
    match (least, variant.selection) {
        (Some(_), Selection::Random | Selection::Uniform) => {
            Err(Error::spec(format!("{spec}: coverage=… belongs to variant=coverage")))
        }
        _ => Ok(variant),
    }
}

impl std::fmt::Display for Variant {
    /// As in a spec: `plain`, or parts joined by `+`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let originals = match self.originals {
            Originals::None => None,
            Originals::Only => Some("originals"),
            Originals::AndDegreeOne => Some("originals+singles"),
        };
        let selection = match self.selection {
            Selection::Random => None,
            Selection::Coverage(_) => Some("coverage"),
            Selection::Uniform => Some("uniform"),
        };
        let decodable = self.decodable.then_some("decodable");
        let parts: Vec<&str> = [originals, selection, decodable].into_iter().flatten().collect();
        f.write_str(if parts.is_empty() { "plain".to_owned() } else { parts.join("+") }.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> Result<LtCode> {
        LtCode::new(&text.parse()?)
    }

    #[test]
    fn specs_print_in_one_form() {
        for (text, canonical) in [
            ("lt:k=4,n=8", "lt:k=4,n=8,nodes=8,c=0.1,delta=0.5,variant=uniform,seed=0"),
            ("lt:k=255,n=300", "lt:k=255,n=300,nodes=16,c=0.1,delta=0.5,variant=uniform,seed=0"),
            ("lt:k=256,n=300", "lt:k=256,n=300,nodes=16,c=0.03,delta=0.1,variant=uniform,seed=0"),
            (
                "lt:k=65536,n=70000,variant=plain",
                "lt:k=65536,n=70000,nodes=16,c=0.03,delta=0.1,variant=plain,seed=0",
            ),
            (
                "lt:seed=7,variant=originals+singles+coverage,delta=0.50,c=.1,nodes=2,n=40,k=4",
                "lt:k=4,n=40,nodes=2,c=0.1,delta=0.5,variant=originals+singles+coverage,coverage=3,seed=7",
            ),
            (
                "lt:k=1,n=1,c=100,delta=0.000000001,variant=uniform+decodable",
                "lt:k=1,n=1,nodes=1,c=100,delta=0.000000001,variant=uniform+decodable,seed=0",
            ),
            (
                "lt:k=5,n=99,variant=coverage,coverage=4",
                "lt:k=5,n=99,nodes=16,c=0.1,delta=0.5,variant=coverage,coverage=4,seed=0",
            ),
        ] {
            let made = code(text).unwrap();
            assert_eq!(made.spec().to_string(), canonical);
            assert_eq!(code(canonical).unwrap(), made);
            assert_eq!(LtCode::rebuild(&made.spec(), &made.pin()).unwrap(), made);
        }
    }

    /// A code of few blocks often has a graph that cannot determine the data; the default seed
    /// avoids those graphs.
    #[test]
    fn default_seeds_are_useful() {
        let mut other_seeds = 0;
        for (k, n) in
            (1..=40_usize).flat_map(|k| [k, k + 1, k + k.div_ceil(5), 2 * k].map(|n| (k, n)))
        {
            let made = code(&format!("lt:k={k},n={n}")).unwrap();
            assert!(made.graph().unwrap().has_full_rank(), "{}", made.spec());
            let seed = made.parameters().seed;
            for earlier in 0..seed {
                let other = code(&format!("lt:k={k},n={n},seed={earlier}")).unwrap();
                assert!(!other.graph().unwrap().has_full_rank(), "{}", other.spec());
            }
            assert_eq!(code(&made.spec().to_string()).unwrap(), made);
            other_seeds += usize::from(seed > 0);
        }
        assert!((20..120).contains(&other_seeds), "{other_seeds}");
        // No seed helps, so the first stays, and the caller that stores blocks reports it.
        assert_eq!(code("lt:k=64,n=64,c=100").unwrap().parameters().seed, 0);
    }

    #[test]
    fn wrong_specs_are_refused_with_the_part() {
        for (text, part) in [
            ("lt:k=4", "n is missing"),
            ("lt:k=0,n=4", "k must be from 1 to 65536; got"),
            ("lt:k=65537,n=70000", "k must be from 1 to 65536; got"),
            ("lt:k=4,n=1048577", "n must be from 1 to 1048576"),
            ("lt:k=10,n=3", "n must be at least k = 10; got 3"),
            ("lt:k=4,n=8,nodes=9", "nodes must be from 1 to 8; got 9"),
            ("lt:k=4,n=8,m=3", "lt has no parameter m"),
            ("lt:k=4,n=8,c=0", "c must be greater than 0 and at most 100; got 0"),
            ("lt:k=4,n=8,c=1e-3", "c must be a decimal number such as 0.5; got 1e-3"),
            ("lt:k=4,n=8,delta=inf", "delta must be a decimal number such as 0.5; got inf"),
            ("lt:k=4,n=8,delta=2", "delta must be from 0.000000001 to 1; got 2"),
            ("lt:k=4,n=8,variant=fancy", "got fancy"),
            ("lt:k=4,n=8,variant=singles", "got singles"),
            ("lt:k=4,n=8,variant=decodable+uniform", "in this order"),
            ("lt:k=4,n=8,variant=coverage+uniform", "in this order"),
            ("lt:k=4,n=8,variant=uniform,coverage=2", "belongs to variant=coverage"),
            ("lt:k=4,n=3,variant=originals", "n must be at least k = 4; got 3"),
            ("lt:k=40,n=40,variant=decodable", "none of 64 graphs"),
            ("lt:k=4,n=8,seed=99999999999999999999", "seed must be a number"),
            ("rdp:k=4", "rdp:k=4 is no LT code"),
            (
                "lt:k=65536,n=1048576,variant=coverage,coverage=1000000",
                "neighbours are more than the 268435456 of a graph",
            ),
        ] {
            let error = code(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn pins_decide_the_graph() {
        let made = code("lt:k=40,n=60,c=0.3,variant=decodable,seed=3").unwrap();
        let pin = made.pin();
        assert_eq!(
            LtCode::rebuild(&made.spec(), &pin).unwrap().graph().unwrap(),
            made.graph().unwrap()
        );
        let list = |name| pin.one(name).unwrap();
        let with = |generator, seed, spike| {
            Pin::new()
                .with("generator", [generator])
                .with("spike", [spike])
                .with("ripple", [list("ripple")])
                .with("weight", [list("weight")])
                .with("seed", [seed])
                .with("attempt", [list("attempt")])
        };
        let spec = made.spec();
        assert!(LtCode::rebuild(&spec, &with(2, 3, 5)).is_err());
        assert!(LtCode::rebuild(&spec, &with(1, 4, 5)).is_err());
        assert!(LtCode::rebuild(&spec, &with(1, 3, 41)).is_err());
        assert!(LtCode::rebuild(&spec, &Pin::new()).is_err());
        let other = LtCode::rebuild(&spec, &with(1, 3, 5)).unwrap();
        assert_eq!(other.parameters().soliton.integers().0, 5, "the pin decides, not c and delta");
    }

    #[test]
    fn blocks_go_round_the_nodes() {
        let code = code("lt:k=4,n=10,nodes=4").unwrap();
        let nodes: Vec<Vec<usize>> = (0..4).map(|node| code.blocks_of(node).collect()).collect();
        assert_eq!(nodes, [vec![0, 4, 8], vec![1, 5, 9], vec![2, 6], vec![3, 7]]);
        assert!((0..4).all(|node| nodes[node].iter().all(|&block| code.node_of(block) == node)));
    }
}
