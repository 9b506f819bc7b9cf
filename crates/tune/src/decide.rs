//! Which settings are best here: one contest after the other, each with what was decided before.

use std::collections::BTreeMap;

use paritas::{
    Code, CodecOptions, Kernel, KernelChoice, LaneCodec, Pass, Spec, Split, Stores, WordKernel,
};

use crate::contest::{Contest, ROUNDS, Ranking, Workload};
use crate::error::Result;
use crate::measure::{Pairs, Ratio, Side, sample};
use crate::tuning::{Choice, CodeTuning, Finding, Tuning, processor};

/// The code that decides what holds for all.
const TYPICAL: &str = "10+4";

/// A code of so many streams that a processor's prefetchers may lose track.
const WIDE: &str = "20+4";

/// How many times as fast as the built-in default another choice must be, with 95 % confidence, to be
/// taken: less is not worth being different from other machines.
const GAIN: f64 = 1.03;

/// The same for non-temporal stores: whoever uses the results next has to fetch them from memory.
const STORES_GAIN: f64 = 1.10;

/// The bytes of all shards together for what is measured in cache.
const CACHE_SET: usize = 512 << 10;

/// The bytes for what is measured from memory, and between threads: enough work to wake one for.
const MEMORY_SET: usize = 64 << 20;

/// The bytes of all data and blocks of an LT code: what a segment of a file has.
const LT_SET: usize = 8 << 20;

/// How many nodes are added to weigh an XOR against a copy, in packets of how many bytes.
const WEIGHED_NODES: usize = 4;
const WEIGHED_PACKET: usize = 4 << 10;

/// Gets the result of a contest, reports it, and returns the number of the choice that is taken.
type Decide<'a> = dyn FnMut(&Ranking) -> usize + 'a;

/// Finds out what is best on this machine, for `codes` and in general. `report` gets every decision as it falls.
///
/// # Errors
/// If a code is not legal, or if there is no memory.
pub fn find(codes: &[Spec], mut report: impl FnMut(&Finding)) -> Result<Tuning> {
    let (xor_weight, finding) = xor_weight()?;
    report(&finding);
    let mut decide = |ranking: &Ranking| {
        report(&ranking.finding());
        ranking.winner()
    };
    let (kernel, codes) = packet_kernels(codes, &mut decide)?;
    let word_kernel = word_kernel(&mut decide)?;
    let past_cache_from = past_cache(kernel, &mut decide)?;
    let prefetch = prefetch(kernel, &mut decide)?;
    let known = Known { kernel, past_cache_from };
    let threads = known.threads(&mut decide)?;
    let (bytes_a_thread, split) = match threads {
        1 => (CodecOptions::default().bytes_a_thread, Split::default()),
        _ => (known.bytes_a_thread(&mut decide)?, known.split(threads, &mut decide)?),
    };
    let processor = processor();
    Ok(Tuning {
        processor,
        kernel,
        word_kernel,
        past_cache_from,
        prefetch,
        threads,
        bytes_a_thread,
        split,
        xor_weight,
        codes,
    })
}

/// One thread, and stores that do not bypass the cache.
fn plain() -> CodecOptions {
    CodecOptions::default().threads(1).stores(Stores::Cached)
}

/// The best kernel for all codes together, and what is best for each.
fn packet_kernels(
    codes: &[Spec],
    decide: &mut Decide<'_>,
) -> Result<(Kernel, BTreeMap<String, CodeTuning>)> {
    let kernels: Vec<Kernel> =
        Kernel::available().filter(|kernel| kernel.suits(plain().packet)).collect();
    let built_in = kernels.len() - 1;
    let (graphs, mut codes) = split_by_graph(codes)?;
    let mut tuned = graph_kernels(&graphs, decide)?;
    if codes.is_empty() {
        codes.push(TYPICAL.parse()?);
    }
    let mut rankings = Vec::new();
    for spec in &codes {
        let mut contest = Contest::new("kernel", spec, CACHE_SET)?;
        for &kernel in &kernels {
            contest.enter(kernel, with_kernel(kernel))?;
        }
        let ranking = contest.run(built_in, GAIN)?;
        let kernel = kernels[decide(&ranking)];
        rankings.push(ranking);
        let pass = pass(spec, kernel, decide)?;
        tuned.insert(Code::new(spec)?.spec().to_string(), CodeTuning { kernel, pass });
    }
    let choices = (0..kernels.len()).map(|number| mean(&rankings, number)).collect();
    let about = "geometric mean".to_owned();
    let overall = Ranking::new("kernel for other codes", about, choices, built_in, GAIN);
    Ok((kernels[decide(&overall)], tuned))
}

/// The geometric mean of what choice `number` reaches in all rankings.
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

/// LT codes, and the others.
fn split_by_graph(codes: &[Spec]) -> Result<(Vec<Spec>, Vec<Spec>)> {
    let (mut graphs, mut others) = (Vec::new(), Vec::new());
    for spec in codes {
        let of_its_kind =
            if Code::new(spec)?.graph().is_some() { &mut graphs } else { &mut others };
        of_its_kind.push(spec.clone());
    }
    Ok((graphs, others))
}

/// The best kernel for each LT code. Nothing else is to be chosen: a graph is solved in one way, and its blocks
/// are run by tiled kernels, so these speeds say nothing of other codes.
fn graph_kernels(codes: &[Spec], decide: &mut Decide<'_>) -> Result<BTreeMap<String, CodeTuning>> {
    let tiled: Vec<Kernel> =
        Kernel::available().filter(|kernel| kernel.machine().is_none()).collect();
    let mut tuned = BTreeMap::new();
    for spec in codes {
        let mut contest = Contest::new("kernel", spec, LT_SET)?;
        for &kernel in &tiled {
            contest.enter(kernel, with_kernel(kernel))?;
        }
        let winner = decide(&contest.run(tiled.len() - 1, GAIN)?);
        let tuning = CodeTuning { kernel: tiled[winner], pass: Pass::default() };
        tuned.insert(Code::new(spec)?.spec().to_string(), tuning);
    }
    Ok(tuned)
}

fn with_kernel(kernel: Kernel) -> CodecOptions {
    plain().kernel(KernelChoice::Only(kernel))
}

/// How many thousandths of a copy an XOR takes where operations go through memory, one after the
/// other, as in the dissertation's section 3.2.3: in the tiled kernel, by codes of plain parity. That of
/// one node is a copy; that of more adds the others.
fn xor_weight() -> Result<(u32, Finding)> {
    let tiled = Kernel::available().filter(|kernel| kernel.machine().is_none()).last();
    let kernel = tiled.unwrap_or(Kernel::Scalar);
    let options = with_kernel(kernel).packet(WEIGHED_PACKET);
    let (copy, mut copying) = plain_parity(1, &options)?;
    let (all, mut adding) = plain_parity(WEIGHED_NODES, &options)?;
    let pairs = Pairs::take(
        ROUNDS,
        |ratio| !ratio.is_noisy(),
        |side| match side {
            Side::Subject => sample(|| adding.run(&all)),
            Side::Base => sample(|| copying.run(&copy)),
        },
    )?;
    let choices = vec![
        Choice::new("a copy".to_owned(), copying.user_bytes, &pairs, Side::Base),
        Choice::new("a copy and XORs".to_owned(), adding.user_bytes, &pairs, Side::Subject),
    ];
    let copies = 1.0 / choices[1].ratio.median;
    let weight = ((copies - 1.0) / (WEIGHED_NODES - 1) as f64).clamp(0.1, 10.0);
    let about = format!("{kernel}, packets of {} KiB", WEIGHED_PACKET >> 10);
    let chosen = format!("{weight:.3}");
    let finding = Finding { question: "weight of an XOR", about, choices, chosen };
    Ok(((1000.0 * weight).round() as u32, finding))
}

/// A codec for one parity node of `k` data nodes that has run once, and shards that have as many bytes
/// whatever `k` is.
fn plain_parity(k: usize, options: &CodecOptions) -> Result<(LaneCodec, Workload)> {
    let code = Code::new(&format!("{k}+1").parse()?)?;
    let codec = LaneCodec::new(code.clone(), options.clone())?;
    let set = (k + 1) * (CACHE_SET / (WEIGHED_NODES + 1));
    let mut workload = Workload::new(&code, &codec, codec.strip(), set)?;
    workload.run(&codec)?;
    Ok((codec, workload))
}

/// The best way to reduce a code's XORs: fewer of them may mean more temporaries.
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
    let kernels: Vec<WordKernel> = WordKernel::available().collect();
    for &kernel in &kernels {
        contest.enter(kernel, plain().word_kernel(kernel))?;
    }
    let winner = decide(&contest.run(kernels.len() - 1, GAIN)?);
    Ok(kernels[winner])
}

/// The size from which on stores past the cache are faster for all larger ones.
fn past_cache(kernel: Kernel, decide: &mut Decide<'_>) -> Result<usize> {
    let built_in = match CodecOptions::default().stores {
        Stores::NonTemporalFrom(bytes) => bytes,
        Stores::Cached => usize::MAX,
        Stores::NonTemporal => 0,
    };
    let mut from = usize::MAX;
    for megabytes in [256, 64, 32, 16, 8, 4, 2, 1] {
        let set = megabytes << 20;
        let mut contest = Contest::new("stores", &TYPICAL.parse()?, set)?;
        for (name, stores) in [("cached", Stores::Cached), ("past the cache", Stores::NonTemporal)]
        {
            contest.enter(name, with_kernel(kernel).stores(stores))?;
        }
        let winner = decide(&contest.run(usize::from(set > built_in), STORES_GAIN)?);
        if winner == 0 {
            break;
        }
        from = set / 2;
    }
    Ok(from)
}

/// Whether instructions prefetch better than the processor does.
fn prefetch(kernel: Kernel, decide: &mut Decide<'_>) -> Result<bool> {
    let mut contest = Contest::new("prefetch", &WIDE.parse()?, MEMORY_SET)?;
    for prefetch in [false, true] {
        let options = with_kernel(kernel).prefetch(prefetch).stores(Stores::NonTemporal);
        contest.enter(if prefetch { "yes" } else { "no" }, options)?;
    }
    let winner = decide(&contest.run(0, GAIN)?);
    Ok(winner == 1)
}

/// What is known when threads come into it.
#[derive(Clone, Copy)]
struct Known {
    kernel: Kernel,
    past_cache_from: usize,
}

impl Known {
    /// Options for so many threads, however little there is to do for each.
    fn with(self, threads: usize) -> CodecOptions {
        let stores = Stores::NonTemporalFrom(self.past_cache_from);
        with_kernel(self.kernel).stores(stores).threads(threads).bytes_a_thread(1)
    }

    /// As few threads as come near to the best speed: each number has to beat the best of those below it.
    fn threads(self, decide: &mut Decide<'_>) -> Result<usize> {
        let most = std::thread::available_parallelism().map_or(1, usize::from);
        let powers = (0..).map(|n| 1 << n).take_while(|&count| count < most);
        let mut best = 1;
        for threads in powers.chain([most]).skip_while(|&count| count == 1 && most > 1) {
            let mut contest = Contest::new("threads", &TYPICAL.parse()?, MEMORY_SET)?;
            contest.enter(best, self.with(best))?;
            contest.enter(threads, self.with(threads))?;
            best = [best, threads][decide(&contest.run(0, GAIN)?)];
        }
        Ok(best)
    }

    /// Half of the smallest set for which a second thread helps, as for all larger ones.
    fn bytes_a_thread(self, decide: &mut Decide<'_>) -> Result<usize> {
        let mut bytes = MEMORY_SET;
        for megabytes in [32, 16, 8, 4, 2, 1] {
            let set = megabytes << 20;
            let mut contest = Contest::new("a second thread", &TYPICAL.parse()?, set)?;
            contest.enter("no", self.with(1))?;
            contest.enter("yes", self.with(2))?;
            let winner = decide(&contest.run(0, GAIN)?);
            if winner == 0 {
                break;
            }
            bytes = set / 2;
        }
        Ok(bytes)
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
