//! Network against computation: the time at which an object is available if its blocks are decoded
//! as they arrive (section VIII of the evaluation).
//!
//! Blocks arrive at even intervals; one interval is the unit of time. When a data block is
//! determined its XORs can start. They are done one after another, each in *r* units, where r is
//! the network's bandwidth divided by that of XORing. Peeling finds most data blocks with the last
//! few arrivals. Much of the work remains at that time; the higher the degrees, the more remains.
//! Lower degrees need more blocks. The best (c, delta) therefore depends on r.

use crate::define::lt::Graph;
use crate::error::{Error, Result};
use crate::plan::chance::Chance;
use crate::plan::lt::{Decoder, Method};

/// Averages over several receptions, in units of the time in which k blocks arrive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Balance {
    /// Time at which the last block that was needed had arrived.
    pub received: f64,
    /// Time at which the last XOR was done.
    pub done: f64,
}

impl Balance {
    /// Simulates receptions of a graph's blocks in random order, for one ratio of network to
    /// computation.
    ///
    /// # Errors
    /// [`crate::ErrorKind::NotEnough`] if all blocks of the graph together cannot be peeled.
    pub fn simulate(graph: &Graph, ratio: f64, runs: usize, seed: u64) -> Result<Self> {
        let mut chance = Chance::new(seed);
        let mut order: Vec<usize> = (0..graph.blocks()).collect();
        let (mut received, mut done) = (0.0, 0.0);
        for _ in 0..runs {
            chance.shuffle(&mut order);
            let mut decoder = Decoder::new(graph, Method::Lazy);
            for &block in &order {
                if decoder.push(block)? {
                    break;
                }
            }
            if !decoder.is_ready() {
                return Err(Error::not_enough("all blocks of the graph cannot be peeled"));
            }
            received += decoder.received() as f64;
            done += decoder.finishing_time(ratio);
        }
        let unit = (runs.max(1) * graph.data()) as f64;
        Ok(Self { received: received / unit, done: done / unit })
    }
}

impl Decoder {
    /// Returns the time at which the XORs of all data blocks are done, if each takes `ratio`
    /// intervals.
    fn finishing_time(&self, ratio: f64) -> f64 {
        let peeling = &self.peeling;
        let mut arrivals = peeling.arrivals().iter().skip(1).peekable();
        let (mut arrived, mut time) = (1.0, 0.0_f64);
        for (number, found) in peeling.found().iter().enumerate() {
            // `known` of an arrival is the number of data blocks determined by the arrivals before
            // it.
            while arrivals.next_if(|arrival| arrival.known <= number).is_some() {
                arrived += 1.0;
            }
            let xors = found.block.map_or(0, |block| peeling.graph().row(block).len() - 1);
            time = time.max(arrived) + xors as f64 * ratio;
        }
        time.max(self.received() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Receptions of the blocks 0, 01, 012 and 0123 in several orders, worked out by hand.
    #[test]
    fn work_waits_for_arrivals_and_for_other_work() {
        let graph =
            Graph::from_neighbours(4, &[vec![0, 1, 2, 3], vec![0], vec![0, 1], vec![0, 1, 2]])
                .unwrap();
        let finish = |order: [usize; 4], ratio: f64| {
            let mut decoder = Decoder::new(&graph, Method::Lazy);
            order.iter().for_each(|&block| {
                decoder.push(block).unwrap();
            });
            decoder.finishing_time(ratio)
        };
        // 0 at 1, 1 at 2 + r, 2 at 3 + 2r (no waiting while r is small), 3 at 4 + 3r.
        assert_eq!(finish([1, 2, 3, 0], 0.25), 4.75);
        // All work after the last arrival: 0 + 1 + 2 + 3 XORs.
        assert_eq!(finish([0, 3, 2, 1], 0.25), 5.5);
        // Work takes longer than the arrivals: it begins at 2 and never waits.
        assert_eq!(finish([1, 2, 3, 0], 2.0), 14.0);
        assert_eq!(finish([1, 2, 3, 0], 0.0), 4.0);
    }
}
