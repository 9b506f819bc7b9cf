//! A contest: codecs that do the same work on the same memory, in turns.

use crate::codec::{Codec, CodecOptions};
use crate::define::cells::Code;
use crate::define::spec::Spec;
use crate::error::{Error, Result};
use crate::measure::{Samples, Shard, repeat};
use crate::tune::Finding;

/// The least seconds of a sample.
const SAMPLE_SECONDS: f64 = 0.0004;

/// How many samples each entrant gives.
const ROUNDS: usize = 21;

/// The bytes of a cache line, and how far shards are shifted against each other.
const LINE: usize = 64;
const STAGGER: usize = 5 * LINE;

/// Codecs for one code, and the shards that they encode.
pub(super) struct Contest {
    question: &'static str,
    about: String,
    code: Code,
    set: usize,
    entrants: Vec<Entrant>,
}

struct Entrant {
    name: String,
    codec: Codec,
    samples: Samples,
}

/// How a contest ended.
pub(super) struct Ranking {
    question: &'static str,
    about: String,
    /// Names and GB/s of user data, in the order of entry.
    pub(super) choices: Vec<(String, f64)>,
}

impl Contest {
    /// A contest over shards that have `set` bytes together.
    ///
    /// # Errors
    /// When there is no such code.
    pub(super) fn new(question: &'static str, spec: &Spec, set: usize) -> Result<Self> {
        let code = Code::new(spec)?;
        let about = format!("{}, {} KiB", code.spec(), set >> 10);
        Ok(Self { question, about, code, set, entrants: Vec::new() })
    }

    /// Enters a codec with these options.
    ///
    /// # Errors
    /// When they do not serve this code.
    pub(super) fn enter(&mut self, name: impl ToString, options: CodecOptions) -> Result<()> {
        let codec = Codec::new(self.code.clone(), options)?;
        self.entrants.push(Entrant { name: name.to_string(), codec, samples: Samples::default() });
        Ok(())
    }

    /// Has all entrants encode in turns.
    ///
    /// # Errors
    /// When there is no memory for the shards.
    pub(super) fn run(mut self) -> Result<Ranking> {
        let nodes = self.code.node_count();
        let k = self.code.nodes().filter(|&node| self.code.holds_data(node)).count();
        let strip = self.entrants.iter().map(|entrant| entrant.codec.strip()).max().unwrap_or(1);
        let unit = if strip.is_multiple_of(LINE) { strip } else { strip * LINE };
        let length = (self.set / nodes / unit).max(1) * unit;
        let mut shards = Vec::with_capacity(nodes);
        for node in 0..nodes {
            let mut shard = Shard::new(length, node * STAGGER).ok_or_else(|| no_memory(length))?;
            shard.fill(node);
            shards.push(shard);
        }
        let (data, parity) = shards.split_at_mut(k);
        let data: Vec<&[u8]> = data.iter().map(Shard::bytes).collect();
        let mut parity: Vec<&mut [u8]> = parity.iter_mut().map(Shard::bytes_mut).collect();
        // The first round plans and compiles.
        for entrant in &self.entrants {
            entrant.codec.encode(&data, &mut parity)?;
        }
        for _ in 0..ROUNDS {
            for Entrant { codec, samples, .. } in &mut self.entrants {
                let encode = || codec.encode(&data, &mut parity);
                samples.take(|| repeat(SAMPLE_SECONDS, encode))?;
            }
        }
        let speed = |entrant: &Entrant| {
            let seconds = entrant.samples.spread().map_or(f64::INFINITY, |spread| spread.median);
            (k * length) as f64 / seconds / 1e9
        };
        let choices = self.entrants.iter().map(|one| (one.name.clone(), speed(one))).collect();
        Ok(Ranking { question: self.question, about: self.about, choices })
    }
}

fn no_memory(bytes: usize) -> Error {
    Error::length(format!("there is no memory for a shard of {bytes} bytes"))
}

impl Ranking {
    /// Of choices whose speeds come from elsewhere.
    pub(super) fn new(question: &'static str, about: String, choices: Vec<(String, f64)>) -> Self {
        Self { question, about, choices }
    }

    /// The number of the fastest; of `preferred`, unless another is faster by the factor `gain`.
    pub(super) fn winner(&self, preferred: usize, gain: f64) -> usize {
        let speed = |&entrant: &usize| self.choices[entrant].1;
        let fastest = (0..self.choices.len()).max_by(|a, b| speed(a).total_cmp(&speed(b)));
        let better = |entrant: &usize| speed(entrant) > gain * speed(&preferred);
        fastest.filter(better).unwrap_or(preferred)
    }

    /// The finding that this one was taken.
    pub(super) fn finding(self, chosen: usize) -> Finding {
        let chosen = self.choices[chosen].0.clone();
        Finding { question: self.question, about: self.about, choices: self.choices, chosen }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranking(speeds: &[f64]) -> Ranking {
        let choices = speeds.iter().map(|&speed| (speed.to_string(), speed)).collect();
        Ranking { question: "which", about: String::new(), choices }
    }

    #[test]
    fn a_little_faster_is_not_enough() {
        assert_eq!(ranking(&[10.0, 10.2, 9.0]).winner(0, 1.03), 0);
        assert_eq!(ranking(&[10.0, 10.2, 10.4]).winner(0, 1.03), 2);
        assert_eq!(ranking(&[10.0, 10.2, 9.0]).finding(1).chosen, "10.2");
    }

    #[test]
    fn all_encode() {
        let mut contest = Contest::new("which", &"4+2".parse().unwrap(), 1 << 16).unwrap();
        for packet in [64, 32] {
            contest.enter(packet, CodecOptions { packet, ..CodecOptions::default() }).unwrap();
        }
        let ranking = contest.run().unwrap();
        assert!(ranking.choices.iter().all(|(_, speed)| speed.is_finite() && *speed > 0.0));
    }
}
