//! Contests: several codecs do the same work on the same memory, each paired with the built-in
//! choice.

use std::collections::BTreeMap;

use paritas::code::CellSet;
use paritas::{Buffer, Code, CodecOptions, LaneCodec, Spec};

use crate::error::{Error, Result};
use crate::measure::{Pairs, Ratio, Rounds, ShardMemory, Side, sample};
use crate::tuning::{Choice, Decision};

/// Number of pairs that each entrant runs; more than `least` only while the question is open.
pub(super) const ROUNDS: Rounds = Rounds { least: 21, most: 84 };

/// Bytes of a shard that a codec runs over before it is measured: twice what a direct answer of a
/// usual code runs over before it is planned.
const WARMED: usize = 1 << 20;

/// Bytes of a cache line; shards are shifted against each other within their pages by [`STAGGER`]
/// bytes.
const LINE: usize = 64;
const STAGGER: usize = 5 * LINE;
const PAGE: usize = 4096;

/// Codecs for one code, and the shards that they encode; for an LT code, all data and all blocks.
pub(super) struct Contest {
    question: &'static str,
    about: String,
    code: Code,
    set: usize,
    entrants: Vec<(String, LaneCodec)>,
}

/// Result of a contest.
pub(super) struct Ranking {
    question: &'static str,
    about: String,
    /// The entrants in the order of entry.
    pub(super) choices: Vec<Choice>,
    /// Number of the built-in choice.
    base: usize,
    /// Factor by which another choice must be faster than the built-in one to be taken.
    gain: f64,
}

impl Contest {
    /// Creates a contest over shards that have `set` bytes together.
    ///
    /// # Errors
    /// If the spec does not name a code.
    pub(super) fn new(question: &'static str, spec: &Spec, set: usize) -> Result<Self> {
        let code = Code::new(spec)?;
        let about = format!("{}, {} KiB", code.spec(), set >> 10);
        Ok(Self { question, about, code, set, entrants: Vec::new() })
    }

    /// Enters a codec with the given options.
    ///
    /// # Errors
    /// If the code cannot run with the options.
    pub(super) fn enter(&mut self, name: impl ToString, options: CodecOptions) -> Result<()> {
        self.entrants.push((name.to_string(), LaneCodec::new(self.code.clone(), options)?));
        Ok(())
    }

    /// Measures every other entrant in pairs with entrant `base`, until it is clear whether the
    /// other entrant is `gain` times as fast. If `base` is the only entrant, it runs against
    /// itself.
    ///
    /// # Errors
    /// If the system lacks memory for the shards.
    pub(super) fn run(self, base: usize, gain: f64) -> Result<Ranking> {
        self.run_for(ROUNDS, base, gain)
    }

    /// Does what [`Contest::run`] does, with other numbers of pairs.
    pub(super) fn run_for(self, rounds: Rounds, base: usize, gain: f64) -> Result<Ranking> {
        let Self { question, about, code, set, entrants } = self;
        let Some((_, built_in)) = entrants.get(base) else {
            return Ok(Ranking { question, about, choices: Vec::new(), base, gain });
        };
        let longest = entrants.iter().map(|(_, codec)| length(codec, set)).max().unwrap_or(0);
        let mut workload = ContestWork::new(&code, built_in, longest)?;
        let is_settled = |ratio: &Ratio| ratio.exceeds(gain).is_some();
        let mut pairs: BTreeMap<usize, Pairs> = BTreeMap::new();
        workload.warm(built_in, set)?;
        for (number, (_, codec)) in entrants.iter().enumerate() {
            if number != base || entrants.len() == 1 {
                workload.warm(codec, set)?;
                pairs.insert(number, workload.compare(rounds, [codec, built_in], set, is_settled)?);
            }
        }
        // Each sample is scaled to one byte.
        let choice = |(number, (name, _)): (usize, &(String, LaneCodec))| {
            // The samples of the built-in choice are those of its pairs with the first other
            // entrant.
            let (pairs, side) = match pairs.get(&number) {
                Some(pairs) => (pairs, Side::Subject),
                None => (pairs.values().next()?, Side::Base),
            };
            Some(Choice::new(name.clone(), 1, pairs, side))
        };
        let choices = entrants.iter().enumerate().filter_map(choice).collect();
        Ok(Ranking { question, about, choices, base, gain })
    }
}

/// Returns the bytes of a shard of whole strips, where all shards have `set` bytes together.
pub(super) fn length(codec: &LaneCodec, set: usize) -> usize {
    let strip = codec.strip();
    (set / codec.buffer_count() / strip).max(1) * strip
}

/// The work: the shards that are encoded, and their memory.
pub(super) struct ContestWork {
    data: CellSet,
    parity: CellSet,
    /// For each buffer, whether it is computed.
    is_made: Vec<bool>,
    shards: ShardMemory,
    /// Number of buffers of user data.
    data_buffers: usize,
}

impl ContestWork {
    /// Allocates shards of at most `length` bytes for the buffers of `codec`.
    ///
    /// # Errors
    /// If the system lacks memory for them.
    pub(super) fn new(code: &Code, codec: &LaneCodec, length: usize) -> Result<Self> {
        let (count, data_buffers) = (codec.buffer_count(), codec.data_buffers().len());
        // If each of thousands of blocks began on its own page, most of the memory would be gaps.
        let room = if code.graph().is_some() { length } else { length.next_multiple_of(PAGE) };
        let stride = room.next_multiple_of(LINE) + STAGGER;
        let place = ShardMemory::new(count, length, stride);
        let mut shards = place.ok_or(Error::Memory(count * stride))?;
        shards.fill();
        let parity = code.made_in(1);
        let is_made = |number| codec.buffer_cells(number).iter().any(|&cell| parity.contains(cell));
        let is_made = (0..count).map(is_made).collect();
        let data = CellSet::from_cells(code.cell_count(), code.data_cells().iter().copied());
        Ok(Self { data, parity, is_made, shards, data_buffers })
    }

    /// Returns the bytes of user data of shards of `length` bytes.
    pub(super) fn user_bytes(&self, length: usize) -> usize {
        self.data_buffers * length
    }

    /// Lets `codec` compute everything that is not data from all data, over the first `length`
    /// bytes of each shard.
    ///
    /// # Errors
    /// If these shards do not fit `codec`.
    pub(super) fn run(&mut self, codec: &LaneCodec, length: usize) -> Result<()> {
        let shards = self.shards.iter_mut().map(|shard| &mut shard[..length]);
        let buffer = |(&is_made, shard)| match is_made {
            true => Buffer::Target(shard),
            false => Buffer::Source(shard),
        };
        let mut buffers: Vec<Buffer<'_>> = self.is_made.iter().zip(shards).map(buffer).collect();
        Ok(codec.compute(&self.data, &self.parity, &mut buffers)?)
    }

    /// Runs `codec` until it is planned and compiled: a question is answered directly at first, and
    /// planned when it is asked again about enough bytes. Then runs it once over the whole shards,
    /// because stores of large ones have a program of their own.
    fn warm(&mut self, codec: &LaneCodec, set: usize) -> Result<()> {
        let length = length(codec, set).min(WARMED.next_multiple_of(codec.strip()));
        let runs = 1 + WARMED.div_ceil(length);
        (0..runs).try_for_each(|_| self.run(codec, length))?;
        self.run(codec, self::length(codec, set))
    }

    /// Compares two warm codecs that do this work, each over the bytes that its whole strips fill.
    /// Each sample is scaled to one byte of user data.
    fn compare(
        &mut self,
        rounds: Rounds,
        [subject, base]: [&LaneCodec; 2],
        set: usize,
        is_settled: impl Fn(&Ratio) -> bool,
    ) -> Result<Pairs> {
        let lengths = [length(subject, set), length(base, set)];
        Pairs::take(rounds, is_settled, |side| {
            let (codec, length) = match side {
                Side::Subject => (subject, lengths[0]),
                Side::Base => (base, lengths[1]),
            };
            let seconds = sample(|| self.run(codec, length))?;
            Ok::<_, Error>(seconds / self.user_bytes(length) as f64)
        })
    }
}

impl Ranking {
    /// Creates a ranking of choices that were compared elsewhere.
    pub(super) fn new(
        question: &'static str,
        about: String,
        choices: Vec<Choice>,
        base: usize,
        gain: f64,
    ) -> Self {
        Self { question, about, choices, base, gain }
    }

    /// Returns the number of the winner: the fastest choice that is clearly faster than the
    /// built-in one by the factor `gain`. If no choice is, the built-in one wins.
    pub(super) fn winner(&self) -> usize {
        let ratio = |&entrant: &usize| self.choices[entrant].ratio;
        let better = |entrant: &usize| {
            *entrant != self.base && ratio(entrant).exceeds(self.gain) == Some(true)
        };
        let entrants = (0..self.choices.len()).filter(better);
        let fastest = entrants.max_by(|a, b| ratio(a).median.total_cmp(&ratio(b).median));
        fastest.unwrap_or(self.base)
    }

    /// Returns the decision for the winner.
    pub(super) fn finding(&self) -> Decision {
        let chosen = self.choices.get(self.winner()).map(|choice| choice.name.clone());
        Decision {
            question: self.question,
            about: self.about.clone(),
            choices: self.choices.clone(),
            chosen: chosen.unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Choices with an interval of 1 % to either side of the given ratios.
    fn ranking(ratios: &[f64], gain: f64) -> Ranking {
        let choice = |&median: &f64| Choice {
            name: median.to_string(),
            gbps: 10.0,
            gbps_p90: 11.0,
            ratio: Ratio { median, low: 0.99 * median, high: 1.01 * median, pairs: 21 },
        };
        Ranking::new("which", String::new(), ratios.iter().map(choice).collect(), 0, gain)
    }

    #[test]
    fn only_what_is_clearly_faster_is_taken() {
        assert_eq!(ranking(&[1.0, 1.02, 0.9], 1.03).winner(), 0);
        // 3.5 % faster, give or take 1 %.
        assert_eq!(ranking(&[1.0, 1.035, 0.9], 1.03).winner(), 0);
        assert_eq!(ranking(&[1.0, 1.05, 1.07, 1.06], 1.03).winner(), 2);
        assert_eq!(ranking(&[1.0, 1.05], 1.1).winner(), 0);
        assert_eq!(ranking(&[1.0, 1.2], 1.03).finding().chosen, "1.2");
    }

    #[test]
    fn too_few_pairs_change_nothing() {
        let mut few = ranking(&[1.0, 2.0], 1.03);
        few.choices[1].ratio.pairs = 3;
        assert_eq!(few.winner(), 0);
    }

    #[test]
    fn one_entrant_wins() {
        let mut contest = Contest::new("which", &"4+2".parse().unwrap(), 1 << 16).unwrap();
        contest.enter("only", CodecOptions::default()).unwrap();
        let finding = contest.run(0, 1.03).unwrap().finding();
        assert!(finding.chosen == "only" && finding.choices[0].gbps > 0.0, "{finding:?}");
    }

    #[test]
    fn all_encode() {
        let mut contest = Contest::new("which", &"4+2".parse().unwrap(), 1 << 16).unwrap();
        for packet in [64, 32] {
            contest.enter(packet, CodecOptions::default().packet(packet)).unwrap();
        }
        let ranking = contest.run(0, 1.03).unwrap();
        assert_eq!(ranking.choices[0].ratio, Ratio::ONE);
        assert!(ranking.choices.len() == 2 && ranking.choices[1].ratio.pairs >= ROUNDS.least);
        for Choice { gbps, gbps_p90, ratio, .. } in &ranking.choices {
            assert!(*gbps > 0.0 && gbps <= gbps_p90 && gbps_p90.is_finite());
            assert!(ratio.low <= ratio.high);
        }
    }
}
