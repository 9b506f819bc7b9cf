//! Decides which settings are best here: one contest after the other, each with the settings
//! decided so far.

use std::collections::BTreeMap;

use paritas::research::{Pass, WordKernel, can_compile};
use paritas::{
    Code, CodecOptions, DEFAULT_PACKET, Kernel, KernelChoice, LaneCodec, Spec, Split, Stores,
};

use crate::contest::{Contest, ContestWork, ROUNDS, Ranking, length};
use crate::error::Result;
use crate::measure::{PairVerdict, Pairs, Ratio, Side, sample};
use crate::tuning::{Choice, CodeTuning, Decision, Tuning, processor, processors};

/// The code whose contests decide settings for all codes.
const TYPICAL: &str = "10+4";

/// A code with more streams than the prefetchers of some processors track.
const WIDE: &str = "20+4";

/// How many times as fast as the built-in default another choice must be, with 95 % confidence, to
/// be taken. A smaller gain is not worth a difference between machines.
pub(super) const GAIN: f64 = 1.03;

/// The same factor for non-temporal stores. It is higher because the next user of the results has
/// to fetch them from memory.
const STORES_GAIN: f64 = 1.10;

/// Bytes of all shards together, for measurements in cache.
pub(super) const CACHE_SET: usize = 512 << 10;

/// Bytes of all shards together, for measurements from memory.
pub(super) const MEMORY_SET: usize = 64 << 20;

/// Exponents of the number of bytes of the smallest and the largest set that are shared by two
/// threads to try whether that pays: 256 KiB and 32 MiB.
const LEAST_SHARED: u32 = 18;
const MOST_SHARED: u32 = 25;

/// Bytes of all shards together, for measurements between threads in a cache.
const SHARED_SET: usize = 4 << 20;

/// Packets that are tried for a code, in bytes: from that of files to what fills a first-level
/// cache with two data nodes. `tune --packet` tries smaller ones as well.
const PACKETS: [usize; 9] = [64, 128, 256, 512, 1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10];

/// Bytes of all data and blocks of an LT code, as in a segment of a file.
const LT_SET: usize = 8 << 20;

/// Number of nodes that are added to weigh an XOR against a copy, and bytes of their packets.
const WEIGHED_NODES: usize = 4;
const WEIGHED_PACKET: usize = 4 << 10;

/// Takes the result of a contest, reports it, and returns the number of the choice that is taken.
type Decide<'a> = dyn FnMut(&Ranking) -> usize + 'a;

/// Finds what is best on this machine, for `codes` and in general. `report` gets every decision as
/// soon as it is made.
///
/// # Errors
/// If a code is not legal, or if there is no memory.
pub fn find(codes: &[Spec], mut report: impl FnMut(&Decision)) -> Result<Tuning> {
    let (xor_weight, finding) = xor_weight()?;
    report(&finding);
    let mut decide = |ranking: &Ranking| {
        report(&ranking.finding());
        ranking.winner()
    };
    let (graphs, without_graph) = split_by_graph(codes)?;
    let mut codes = graph_kernels(&graphs, &mut decide)?;
    let (kernel, others) = packet_kernels(&without_graph, &mut decide)?;
    codes.extend(others);
    let word_kernel = word_kernel(&mut decide)?;
    let prefetch = prefetch(kernel, &mut decide)?;
    let known = Decisions { kernel, pass: Pass::default(), stores: CodecOptions::default().stores };
    let threads = known.threads(&mut decide)?;
    let nontemporal_from = known.nontemporal_from(threads, &mut decide)?;
    let known = Decisions { stores: Stores::NonTemporalFrom(nontemporal_from), ..known };
    let (bytes_a_thread, split) = known.sharing(threads, &mut decide)?;
    for spec in &without_graph {
        let Some(tuned) = codes.get_mut(&canonical(spec)?) else { continue };
        known.complete(tuned, spec, threads, split, &mut decide)?;
    }
    Ok(Tuning {
        processor: processor(),
        kernel,
        word_kernel,
        nontemporal_from,
        prefetch,
        threads,
        processors: Some(processors()),
        compiles: Some(can_compile().is_ok()),
        bytes_a_thread,
        split,
        xor_weight,
        codes,
    })
}

/// Returns options for one thread, and for stores that do not bypass the cache.
fn plain() -> CodecOptions {
    CodecOptions::default().threads(1).stores(Stores::Cached)
}

/// Returns a code's spec as [`Tuning::codes`] names it.
fn canonical(spec: &Spec) -> Result<String> {
    Ok(Code::new(spec)?.spec().to_string())
}

/// Finds the best kernel for all of `codes` together, and the best kernel and schedule for each of
/// them. `codes` has no LT codes.
fn packet_kernels(
    codes: &[Spec],
    decide: &mut Decide<'_>,
) -> Result<(Kernel, BTreeMap<String, CodeTuning>)> {
    let kernels: Vec<Kernel> =
        Kernel::candidates().filter(|kernel| kernel.suits(plain().packet)).collect();
    let built_in = kernels.len() - 1;
    let typical = [TYPICAL.parse()?];
    let codes = if codes.is_empty() { &typical } else { codes };
    let mut tuned = BTreeMap::new();
    let mut rankings = Vec::new();
    for spec in codes {
        let mut contest = Contest::new("kernel", spec, CACHE_SET)?;
        for &kernel in &kernels {
            contest.enter(kernel, with_kernel(kernel))?;
        }
        let ranking = contest.run(built_in, GAIN)?;
        let kernel = kernels[decide(&ranking)];
        rankings.push(ranking);
        let pass = pass(spec, kernel, decide)?;
        tuned.insert(canonical(spec)?, CodeTuning::new(kernel, pass));
    }
    let choices = (0..kernels.len()).map(|number| mean(&rankings, number)).collect();
    let about = "geometric mean".to_owned();
    let overall = Ranking::new("kernel for other codes", about, choices, built_in, GAIN);
    Ok((kernels[decide(&overall)], tuned))
}

/// Returns the geometric mean of what choice `number` reaches in all rankings.
fn mean(rankings: &[Ranking], number: usize) -> Choice {
    let choices = || rankings.iter().map(|ranking| &ranking.choices[number]);
    let mean = |speed: fn(&Choice) -> f64| {
        let sum: f64 = choices().map(|choice| speed(choice).ln()).sum();
        (sum / rankings.len().max(1) as f64).exp()
    };
    let ratios: Vec<Ratio> = choices().map(|choice| choice.ratio).collect();
    Choice {
        name: choices().next().map(|choice| choice.name.clone()).unwrap_or_default(),
        gbps: mean(|choice| choice.gbps),
        gbps_p90: mean(|choice| choice.gbps_p90),
        ratio: Ratio::mean(&ratios),
    }
}

/// Separates LT codes from the others, and returns both, LT codes first.
fn split_by_graph(codes: &[Spec]) -> Result<(Vec<Spec>, Vec<Spec>)> {
    let (mut graphs, mut others) = (Vec::new(), Vec::new());
    for spec in codes {
        let of_its_kind =
            if Code::new(spec)?.graph().is_some() { &mut graphs } else { &mut others };
        of_its_kind.push(spec.clone());
    }
    Ok((graphs, others))
}

/// Finds the best kernel for each LT code. There is nothing else to choose: a graph is solved in
/// one way, and its blocks are run by tiled kernels, so these speeds say nothing about other codes.
fn graph_kernels(codes: &[Spec], decide: &mut Decide<'_>) -> Result<BTreeMap<String, CodeTuning>> {
    let tiled: Vec<Kernel> =
        Kernel::candidates().filter(|kernel| kernel.machine().is_none()).collect();
    let mut tuned = BTreeMap::new();
    for spec in codes {
        let mut contest = Contest::new("kernel", spec, LT_SET)?;
        for &kernel in &tiled {
            contest.enter(kernel, with_kernel(kernel))?;
        }
        let winner = decide(&contest.run(tiled.len() - 1, GAIN)?);
        let (kernel, pass) = (tiled[winner], Pass::default());
        tuned.insert(canonical(spec)?, CodeTuning::new(kernel, pass));
    }
    Ok(tuned)
}

fn with_kernel(kernel: Kernel) -> CodecOptions {
    plain().kernel(KernelChoice::Only(kernel))
}

/// Measures how many thousandths of a copy an XOR takes where operations go through memory, one
/// after the other, as in the dissertation's section 3.2.3. It uses the tiled kernel and codes of
/// plain parity: the parity of one node is a copy, and that of more nodes adds the others.
fn xor_weight() -> Result<(u32, Decision)> {
    let tiled = Kernel::candidates().filter(|kernel| kernel.machine().is_none()).last();
    let kernel = tiled.unwrap_or(Kernel::Scalar);
    let options = with_kernel(kernel).packet(WEIGHED_PACKET);
    let [copy, all] = [1, WEIGHED_NODES].map(|k| plain_parity(k, &options));
    let (copy, all) = (copy?, all?);
    // The strip of the wider code is whole strips of the other one, which has fewer rows.
    let shard = length(&all, CACHE_SET);
    let [mut copying, mut adding] =
        [ContestWork::new(copy.code(), &copy, shard)?, ContestWork::new(all.code(), &all, shard)?];
    copying.run(&copy, shard)?;
    adding.run(&all, shard)?;
    let pairs = Pairs::take(
        ROUNDS,
        |ratio| !ratio.is_noisy(),
        |side| match side {
            Side::Subject => sample(|| adding.run(&all, shard)),
            Side::Base => sample(|| copying.run(&copy, shard)),
        },
    )?;
    let choices = vec![
        Choice::new("a copy".to_owned(), copying.user_bytes(shard), &pairs, Side::Base),
        Choice::new("a copy and XORs".to_owned(), adding.user_bytes(shard), &pairs, Side::Subject),
    ];
    let copies = 1.0 / choices[1].ratio.median;
    let weight = ((copies - 1.0) / (WEIGHED_NODES - 1) as f64).clamp(0.1, 10.0);
    let about = format!("{kernel}, packets of {} KiB", WEIGHED_PACKET >> 10);
    let chosen = format!("{weight:.3}");
    let finding = Decision { question: "weight of an XOR", about, choices, chosen };
    Ok(((1000.0 * weight).round() as u32, finding))
}

/// Creates a codec for one parity node of `k` data nodes.
fn plain_parity(k: usize, options: &CodecOptions) -> Result<LaneCodec> {
    let code = Code::new(&format!("{k}+1").parse()?)?;
    Ok(LaneCodec::new(code, options.clone())?)
}

/// Finds the best way to reduce a code's XORs: fewer XORs may mean more temporaries.
fn pass(spec: &Spec, kernel: Kernel, decide: &mut Decide<'_>) -> Result<Pass> {
    let mut contest = Contest::new("schedule", spec, CACHE_SET)?;
    for pass in Pass::ALL {
        let mut options = with_kernel(kernel);
        options.plan.pass = pass;
        contest.enter(pass, options)?;
    }
    let built_in = Pass::ALL.iter().position(|&pass| pass == Pass::default()).unwrap_or(0);
    let winner = decide(&contest.run(built_in, GAIN)?);
    Ok(Pass::ALL[winner])
}

fn word_kernel(decide: &mut Decide<'_>) -> Result<WordKernel> {
    let mut contest = Contest::new("word kernel", &"isal-cauchy:k=10,m=4".parse()?, CACHE_SET)?;
    let kernels: Vec<WordKernel> = WordKernel::candidates().collect();
    for &kernel in &kernels {
        contest.enter(kernel, plain().word_kernel(kernel))?;
    }
    let winner = decide(&contest.run(kernels.len() - 1, GAIN)?);
    Ok(kernels[winner])
}

/// Finds whether prefetch instructions are faster than the processor's own prefetching.
fn prefetch(kernel: Kernel, decide: &mut Decide<'_>) -> Result<bool> {
    let mut contest = Contest::new("prefetch", &WIDE.parse()?, MEMORY_SET)?;
    for prefetch in [false, true] {
        let options = with_kernel(kernel).prefetch(prefetch).stores(Stores::NonTemporal);
        contest.enter(if prefetch { "yes" } else { "no" }, options)?;
    }
    let winner = decide(&contest.run(0, GAIN)?);
    Ok(winner == 1)
}

/// The decisions so far, for one code or in general.
#[derive(Clone, Copy)]
struct Decisions {
    kernel: Kernel,
    pass: Pass,
    stores: Stores,
}

impl Decisions {
    /// Returns options for exactly `threads` threads, however little work each has.
    fn with(self, threads: usize) -> CodecOptions {
        let mut options = with_kernel(self.kernel).stores(self.stores);
        options.plan.pass = self.pass;
        options.threads(threads).bytes_a_thread(1)
    }

    /// Finds the smallest number of threads that comes near the best speed: each number has to beat
    /// the best smaller number, in a cache or from memory. From memory a second thread may gain
    /// nothing, because one thread can already fetch as fast as memory allows.
    fn threads(self, decide: &mut Decide<'_>) -> Result<usize> {
        let most = processors();
        let powers = (0..).map(|n| 1 << n).take_while(|&count| count < most);
        let mut best = 1;
        for threads in powers.chain([most]).skip_while(|&count| count == 1 && most > 1) {
            for set in [SHARED_SET, MEMORY_SET] {
                let mut contest = Contest::new("threads", &TYPICAL.parse()?, set)?;
                contest.enter(best, self.with(best))?;
                contest.enter(threads, self.with(threads))?;
                if decide(&contest.run(0, GAIN)?) == 1 {
                    best = threads;
                    break;
                }
            }
        }
        Ok(best)
    }

    /// Finds the number of bytes from which on non-temporal stores are faster, with `threads`
    /// threads, the number that will run. The number matters: one thread may gain from such stores
    /// where two threads lose, because each has a cache of its own.
    fn nontemporal_from(self, threads: usize, decide: &mut Decide<'_>) -> Result<usize> {
        let mut from = usize::MAX;
        for megabytes in [256, 64, 32, 16, 8, 4, 2, 1] {
            let set = megabytes << 20;
            let mut contest = Contest::new("stores", &TYPICAL.parse()?, set)?;
            let choices = [("cached", Stores::Cached), ("non-temporal", Stores::NonTemporal)];
            for (name, stores) in choices {
                contest.enter(name, Self { stores, ..self }.with(threads))?;
            }
            let base = usize::from(self.stores.are_nontemporal(set));
            if decide(&contest.run(base, STORES_GAIN)?) == 0 {
                break;
            }
            from = between(set);
        }
        Ok(from)
    }

    /// Finds how work is shared by `threads` threads: the number of bytes that are worth another
    /// one, and the way to split it.
    fn sharing(self, threads: usize, decide: &mut Decide<'_>) -> Result<(usize, Split)> {
        let typical = TYPICAL.parse()?;
        Ok(match threads {
            1 => (CodecOptions::default().bytes_a_thread, Split::default()),
            _ => (self.bytes_a_thread(&typical, decide)?, self.split(threads, decide)?),
        })
    }

    /// Completes the tuning of a code whose kernel and pass are known: finds the number of bytes
    /// that are worth another thread, and the packet.
    fn complete(
        self,
        tuned: &mut CodeTuning,
        spec: &Spec,
        threads: usize,
        split: Split,
        decide: &mut Decide<'_>,
    ) -> Result<()> {
        let known = Self { kernel: tuned.kernel, pass: tuned.pass, ..self };
        if threads > 1 {
            tuned.bytes_a_thread = Some(known.bytes_a_thread(spec, decide)?);
        }
        tuned.packet = known.packet(spec, threads, split, decide)?;
        Ok(())
    }

    /// Finds the number of bytes of a code that are worth another thread in a burst of calls. That
    /// is half of the smallest set for which two threads run; [`shared_from`] chooses it.
    ///
    /// Two processors of a virtual machine may share a core for some tenths of a second. A second
    /// thread gains nothing while they do. So all sets are measured three times, and the middle one
    /// of the three ratios of a set counts.
    fn bytes_a_thread(self, spec: &Spec, decide: &mut Decide<'_>) -> Result<usize> {
        let sets: Vec<usize> =
            (LEAST_SHARED..=MOST_SHARED).rev().map(|exponent| 1 << exponent).collect();
        let mut rounds = Vec::new();
        for _ in 0..3 {
            let rankings: Result<Vec<Ranking>> =
                sets.iter().map(|&set| self.second_thread(spec, set)).collect();
            rounds.push(rankings?);
        }
        let mut ratios = Vec::new();
        for (at, &set) in sets.iter().enumerate() {
            let ratio = |ranking: &Ranking| ranking.choices[1].ratio;
            let mut rankings: Vec<&Ranking> = rounds.iter().map(|round| &round[at]).collect();
            rankings.sort_by(|a, b| ratio(a).median.total_cmp(&ratio(b).median));
            let middle = rankings[rankings.len() / 2];
            decide(middle);
            ratios.push((set, ratio(middle)));
        }
        Ok(shared_from(&ratios).map_or(MEMORY_SET, |set| between(set) / 2))
    }

    /// Compares two threads with one over a set of a code.
    fn second_thread(self, spec: &Spec, set: usize) -> Result<Ranking> {
        let mut contest = Contest::new("a second thread", spec, set)?;
        contest.enter("no", self.with(1))?;
        contest.enter("yes", self.with(2))?;
        contest.run(0, GAIN)
    }

    /// Finds the packet with which `threads` threads encode shards in memory fastest; `None` for a
    /// code in the word layout. With more threads, other packets may be best.
    fn packet(
        self,
        spec: &Spec,
        threads: usize,
        split: Split,
        decide: &mut Decide<'_>,
    ) -> Result<Option<usize>> {
        if Code::new(spec)?.symbols().is_some() {
            return Ok(None);
        }
        let mut contest = Contest::new("packet", spec, MEMORY_SET)?;
        for &packet in &PACKETS {
            // Not every kernel suits every packet.
            let kernel = KernelChoice::Prefer(self.kernel);
            contest.enter(packet, self.with(threads).kernel(kernel).packet(packet).split(split))?;
        }
        let built_in = PACKETS.iter().position(|&packet| packet == DEFAULT_PACKET).unwrap_or(0);
        Ok(Some(PACKETS[decide(&contest.run(built_in, GAIN)?)]))
    }

    fn split(self, threads: usize, decide: &mut Decide<'_>) -> Result<Split> {
        let mut contest = Contest::new("split", &TYPICAL.parse()?, MEMORY_SET)?;
        for split in Split::ALL {
            contest.enter(split, self.with(threads).split(split))?;
        }
        let winner = decide(&contest.run(0, GAIN)?);
        Ok(Split::ALL[winner])
    }
}

/// Returns a number of bytes between `set` and half of it, which is the next smaller set that is
/// tried.
fn between(set: usize) -> usize {
    set / 4 * 3
}

/// Returns the smallest set for which two threads should run; `None` if one thread is best
/// throughout. `ratios` says for each set, the largest one first, how many times as fast two
/// threads are. Two threads then run for the result and for all larger sets, so the result is the
/// set for which all these ratios together gain most: the sum of their logarithms is the largest.
/// (The first gain does not decide: with the largest sets two threads may gain nothing, because
/// memory limits them, and yet gain much with smaller ones.) A ratio that is not clear counts as 1.
fn shared_from(ratios: &[(usize, Ratio)]) -> Option<usize> {
    let (mut sum, mut most, mut from) = (0.0, 0.0, None);
    for &(set, ratio) in ratios {
        sum += match ratio.verdict() {
            PairVerdict::Faster | PairVerdict::Slower => ratio.median.ln(),
            PairVerdict::Level | PairVerdict::TooNoisy => 0.0,
        };
        if sum > most {
            (most, from) = (sum, Some(set));
        }
    }
    from
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_shared_from_where_that_gains_most() {
        let from = |medians: &[f64]| {
            let ratio = |&median: &f64| {
                let (low, high) = (0.99 * median, 1.01 * median);
                Ratio { median, low, high, pairs: 21 }
            };
            let sets = [64, 32, 16, 8, 4];
            let ratios: Vec<(usize, Ratio)> =
                sets.into_iter().zip(medians.iter().map(ratio)).collect();
            shared_from(&ratios)
        };
        assert_eq!(from(&[1.9, 1.9, 1.5, 1.2, 0.8]), Some(8));
        assert_eq!(from(&[1.9, 1.0, 1.005, 0.9, 0.8]), Some(64));
        assert_eq!(from(&[1.0, 1.0, 1.9, 1.9, 0.8]), Some(8), "memory gives no more to two");
        assert_eq!(from(&[0.9, 0.9, 1.9, 0.9, 0.9]), Some(16), "what is lost is less");
        assert_eq!(from(&[0.9, 0.9, 1.1, 1.1, 0.9]), None);
        assert_eq!(from(&[1.0, 0.9, 1.0]), None);
    }
}
