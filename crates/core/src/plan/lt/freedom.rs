//! The *degree of freedom* that the evaluation asks for (its criterion 4 and section X): how much a
//! decoder depends on blocks that no other block can replace.
//!
//! Two figures measure it. First, a set of blocks that decodes may contain *indispensable* blocks:
//! if one of them is left out, the set no longer decodes. Second, the chance that a set does not
//! decode falls with every additional block; the number of blocks that halves it shows how bad a
//! bad draw can be ([`Reception::halving`](crate::plan::lt::Reception::halving)).

use std::collections::BTreeSet;

use crate::define::lt::Graph;
use crate::error::Result;
use crate::plan::chance::Chance;
use crate::plan::lt::{Decoder, Method};

impl Decoder {
    /// Returns the received blocks that are indispensable, ascending. If the received blocks do not
    /// suffice, all of them are returned.
    ///
    /// # Errors
    /// Never, for a decoder.
    pub fn indispensable(&self) -> Result<Vec<usize>> {
        if !self.is_ready() {
            return Ok(self.arrivals().collect::<BTreeSet<_>>().into_iter().collect());
        }
        // A block that the program does not read is not indispensable: the blocks that it reads
        // suffice, and more blocks never hinder peeling or lower the rank.
        let data = self.graph().data();
        let candidates: BTreeSet<usize> =
            self.plan()?.inputs().iter().map(|cell| cell.index() - data).collect();
        let mut found = Vec::new();
        for candidate in candidates {
            if !self.is_ready_without(candidate)? {
                found.push(candidate);
            }
        }
        Ok(found)
    }

    fn is_ready_without(&self, block: usize) -> Result<bool> {
        let mut other = Self::new(self.graph(), self.method());
        for kept in self.arrivals().filter(|&arrival| arrival != block) {
            if other.push(kept)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The degree of freedom of a decoder that has a given number of a graph's blocks, averaged over
/// random sets of blocks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Freedom {
    /// Fraction of the sets that decode.
    pub decodable: f64,
    /// Average number of indispensable blocks of a set that decodes.
    pub indispensable: f64,
    /// Largest number of indispensable blocks.
    pub most: usize,
}

impl Freedom {
    /// Simulates sets of `received` blocks.
    ///
    /// # Errors
    /// Never, for blocks that exist.
    pub fn simulate(
        graph: &Graph,
        method: Method,
        received: usize,
        runs: usize,
        seed: u64,
    ) -> Result<Self> {
        let mut chance = Chance::new(seed);
        let mut order: Vec<usize> = (0..graph.blocks()).collect();
        let mut counts = Vec::new();
        for _ in 0..runs {
            chance.shuffle(&mut order);
            let mut decoder = Decoder::new(graph, method);
            for &block in order.iter().take(received) {
                decoder.receive(block)?;
            }
            if decoder.is_ready() {
                counts.push(decoder.indispensable()?.len());
            }
        }
        let sum = counts.iter().sum::<usize>() as f64;
        Ok(Self {
            decodable: counts.len() as f64 / runs.max(1) as f64,
            indispensable: sum / counts.len().max(1) as f64,
            most: counts.into_iter().max().unwrap_or(0),
        })
    }
}
