//! The number of blocks that are needed, found by simulation on the graph.

use std::iter;
use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::thread;

use crate::define::lt::Graph;
use crate::error::Result;
use crate::plan::chance::Chance;
use crate::plan::lt::{Decoder, Method};

/// Number of random orders that the estimate of further blocks needed is averaged over.
const ORDERS: usize = 8;

/// The number of blocks of a graph that suffice if they arrive in random order.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reception {
    data: usize,
    /// Numbers of blocks needed, one per run, ascending. Runs in which all blocks did not suffice
    /// are left out.
    needed: Vec<usize>,
    runs: usize,
}

impl Reception {
    /// Simulates the reception of a graph's blocks in random orders.
    ///
    /// # Errors
    /// Never, for blocks that exist.
    pub fn simulate(graph: &Graph, method: Method, runs: usize, seed: u64) -> Result<Self> {
        let all: Vec<usize> = (0..graph.blocks()).collect();
        Self::simulate_among(graph, &all, method, runs, seed)
    }

    /// Simulates the reception of the given blocks of a graph in random orders, on all processors.
    /// The result does not depend on the number of processors.
    ///
    /// # Errors
    /// If the graph has no block of that number.
    pub fn simulate_among(
        graph: &Graph,
        blocks: &[usize],
        method: Method,
        runs: usize,
        seed: u64,
    ) -> Result<Self> {
        let run = |run| {
            let order = Self::order(blocks, seed, run);
            let mut decoder = Decoder::new(graph, method);
            for block in order {
                if decoder.push(block)? {
                    return Ok(Some(decoder.received()));
                }
            }
            Ok(None)
        };
        let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let share =
            |first: usize| (first..runs).step_by(threads).filter_map(|at| run(at).transpose());
        let share = |first| share(first).collect::<Result<Vec<usize>>>();
        let shares: Vec<Result<Vec<usize>>> = thread::scope(|scope| {
            let others: Vec<_> =
                (1..threads.min(runs)).map(|at| scope.spawn(move || share(at))).collect();
            let joined = others
                .into_iter()
                .map(|one| one.join().unwrap_or_else(|panic| resume_unwind(panic)));
            iter::once(share(0)).chain(joined).collect()
        });
        let mut needed = shares.into_iter().collect::<Result<Vec<_>>>()?.concat();
        needed.sort_unstable();
        Ok(Self { data: graph.data(), needed, runs })
    }

    /// Returns the order in which the given blocks arrive in run number `run`, counted from 0, of
    /// the simulation with this seed.
    pub fn order(blocks: &[usize], seed: u64, run: usize) -> Vec<usize> {
        let mut order = blocks.to_vec();
        Chance::of_part(seed, run).shuffle(&mut order);
        order
    }

    /// Number of runs in which all blocks together did not suffice.
    pub fn failures(&self) -> usize {
        self.runs - self.needed.len()
    }

    /// Average number of blocks needed, as a multiple of k; `None` if they never sufficed.
    pub fn average(&self) -> Option<f64> {
        let sum = self.needed.iter().sum::<usize>() as f64;
        (!self.needed.is_empty()).then(|| sum / (self.needed.len() * self.data) as f64)
    }

    /// Multiple of k that sufficed in the fraction `part` (0 to 1) of all runs; `None` if more runs
    /// failed.
    pub fn quantile(&self, part: f64) -> Option<f64> {
        let rank = (part * self.runs as f64).ceil().max(1.0) as usize - 1;
        self.needed.get(rank).map(|&needed| needed as f64 / self.data as f64)
    }

    /// Number of additional blocks that halves the chance of not decoding, between the median and
    /// the last hundredth of the runs; `None` if more than a hundredth of the runs failed.
    pub fn halving(&self) -> Option<f64> {
        let blocks = (self.quantile(0.99)? - self.quantile(0.5)?) * self.data as f64;
        Some(blocks / f64::log2(50.0))
    }

    /// Fraction of the runs in which `multiple` times k blocks did not suffice.
    pub fn failure_at(&self, multiple: f64) -> f64 {
        let enough = (multiple * self.data as f64 + 1e-9).floor() as usize;
        let ready = self.needed.partition_point(|&needed| needed <= enough);
        (self.runs - ready) as f64 / self.runs.max(1) as f64
    }
}

impl Decoder {
    /// Estimates how many of the blocks not yet received are still needed: an average over some
    /// random orders. Returns `None` if even all of them would not suffice.
    pub fn likely_needed(&self) -> Option<usize> {
        let mut chance = Chance::new(1);
        let mut order: Vec<usize> = (0..self.graph().blocks()).collect();
        order.retain(|&block| !self.has(block));
        let mut total = 0;
        for _ in 0..ORDERS {
            chance.shuffle(&mut order);
            let mut trial = self.clone();
            if !trial.is_ready()
                && !order.iter().any(|&block| matches!(trial.push(block), Ok(true)))
            {
                return None;
            }
            total += trial.received() - self.received();
        }
        Some(total.div_ceil(ORDERS))
    }
}
