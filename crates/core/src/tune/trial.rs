//! A contest: codecs that do the same work on the same memory, in turns.

use crate::codec::{Codec, CodecOptions};
use crate::plan::layout::BufferLayout;
use crate::define::cells::{CellSet, Code};
use crate::define::spec::Spec;
use crate::error::{Error, Result};
use crate::measure::{Samples, Shards, repeat};
use crate::run::buffers::Buffer;
use crate::tune::Finding;

/// The least seconds of a sample.
const SAMPLE_SECONDS: f64 = 0.0004;

/// How many samples each entrant gives.
const ROUNDS: usize = 21;

/// The bytes of a cache line, and how far shards are shifted against each other in their pages.
const LINE: usize = 64;
const STAGGER: usize = 5 * LINE;
const PAGE: usize = 4096;

/// Codecs for one code, and the shards that they encode: of an LT code all data and all blocks.
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
        // Blocks of LT codes are buffers of their own, as in files.
        let blocks = self.code.graph().map(|_| BufferLayout::Lane);
        let options = CodecOptions { layout: blocks.unwrap_or(options.layout), ..options };
        let codec = Codec::new(self.code.clone(), options)?;
        self.entrants.push(Entrant { name: name.to_string(), codec, samples: Samples::default() });
        Ok(())
    }

    /// Has all entrants encode in turns.
    ///
    /// # Errors
    /// When there is no memory for the shards.
    pub(super) fn run(mut self) -> Result<Ranking> {
        let Some(first) = self.entrants.first() else { return Ok(self.ranking(0)) };
        let (count, data) = (first.codec.buffer_count(), first.codec.data_buffers().len());
        let strip = self.entrants.iter().map(|entrant| entrant.codec.strip()).max().unwrap_or(1);
        let unit = if strip.is_multiple_of(LINE) { strip } else { strip * LINE };
        let length = (self.set / count / unit).max(1) * unit;
        // Thousands of blocks would be mostly gaps if each began on a page of its own.
        let room = if self.code.graph().is_some() { length } else { length.next_multiple_of(PAGE) };
        let place = Shards::new(count, length, room + STAGGER);
        let mut shards = place.ok_or_else(|| no_memory(length))?;
        shards.fill();
        let mut encoding = Encoding::new(&first.codec, &mut shards);
        // The first round plans and compiles.
        for entrant in &self.entrants {
            encoding.run(&entrant.codec)?;
        }
        for _ in 0..ROUNDS {
            for Entrant { codec, samples, .. } in &mut self.entrants {
                samples.take(|| repeat(SAMPLE_SECONDS, || encoding.run(codec)))?;
            }
        }
        Ok(self.ranking(data * length))
    }

    /// The speeds over so many bytes of user data.
    fn ranking(self, bytes: usize) -> Ranking {
        let speed = |entrant: &Entrant| {
            let seconds = entrant.samples.spread().map_or(f64::INFINITY, |spread| spread.median);
            bytes as f64 / seconds / 1e9
        };
        let choices = self.entrants.iter().map(|one| (one.name.clone(), speed(one))).collect();
        Ranking { question: self.question, about: self.about, choices }
    }
}

/// What all entrants do: everything that is not data, from all data.
struct Encoding<'s> {
    data: CellSet,
    parity: CellSet,
    buffers: Vec<Buffer<'s>>,
}

impl<'s> Encoding<'s> {
    fn new(codec: &Codec, shards: &'s mut Shards) -> Self {
        let code = codec.code();
        let data = CellSet::from_cells(code.cell_count(), code.data_cells().iter().copied());
        let parity = code.made_in(1);
        let is_made = |number| codec.buffer_cells(number).iter().any(|&cell| parity.contains(cell));
        let buffer = |(number, shard): (usize, &'s mut [u8])| match is_made(number) {
            true => Buffer::Target(shard),
            false => Buffer::Source(shard),
        };
        let buffers = shards.iter_mut().enumerate().map(buffer).collect();
        Self { data, parity, buffers }
    }

    fn run(&mut self, codec: &Codec) -> Result<()> {
        codec.compute(&self.data, &self.parity, &mut self.buffers)
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
