//! `paritas bench`: measures how fast a code runs here, compared with the speed that memory and one
//! XOR for each byte allow.

mod blocks;
mod suited;

use std::cell::RefCell;
use std::num::NonZeroUsize;
use std::rc::Rc;
use std::time::Instant;

use paritas::code::{CellId, CodeBuilder, Role};
use paritas::research::{Machine, Pass};
use paritas::{
    Buffer, Code, Codec, CodecOptions, DEFAULT_PACKET, Kernel, KernelChoice, NodeId, Spec,
};
use paritas_report::speed::{BenchFields, BenchLine, ComparisonLine, VerdictWord};
use paritas_tune::measure::{PairVerdict, Pairs, Ratio, Rounds, Shard, Side, sample};

use crate::args::against::Against;
use crate::args::choices::{MOST_MEASURED, OrderName, named, word};
use crate::args::codes::CostName;
use crate::args::machine::{Align, Bench, Operation, Sweep};
use crate::commands::Outcome;
use crate::commands::bench::suited::expect_suited;
use crate::commands::schedule::stage_range;
use crate::exit::{Exit, Failure};
use crate::output::{Output, bytes, counted};

/// Number of bytes of a cache line.
const LINE: usize = 64;

/// Number of bytes by which each staggered shard is shifted against the one before.
const STAGGER: usize = 5 * LINE;

/// Number of bytes of a packet in the roofline of lab kernels. XORs of 64 bits reach 15.2 to 17.1
/// GB/s with 512 bytes to 32 KiB, and 9 to 10 with 64 bytes (Ice Lake).
const ROOFLINE_PACKET: usize = 4096;

/// Measures a code, and reports.
pub fn run(args: &Bench, output: &Output) -> Outcome {
    let code = Code::new(&args.code)?;
    let other = args.against_code.as_ref().map(Code::new).transpose()?;
    expect_suited(&code, other.as_ref(), args)?;
    if code.graph().is_some() {
        return blocks::run(code, args, output);
    }
    match args.sweep {
        None if args.tuned_packet => {
            let packet = paritas_tune::packet(code.spec()).unwrap_or(DEFAULT_PACKET);
            bench(code, &Bench { packet: Some(packet), ..args.clone() }, output)?;
        }
        None => bench(code, args, output)?,
        Some(Sweep::Packet) => {
            let packets: Vec<usize> = packets(&code, args.set).collect();
            if packets.is_empty() {
                let (spec, set) = (code.spec(), args.set);
                return Err(Failure::arguments(format!(
                    "--sweep packet: no packet of {spec} fits into a set of {set} bytes"
                )));
            }
            for packet in packets {
                bench(code.clone(), &Bench { packet: Some(packet), ..args.clone() }, output)?;
            }
        }
    }
    Ok(Exit::Done)
}

/// Returns the packets of a sweep: those for which one strip of all nodes fits into `set` bytes.
fn packets(code: &Code, set: usize) -> impl Iterator<Item = usize> {
    let cells: usize = code.nodes().map(|node| code.node_cells(node).len()).sum();
    (3..=15).map(|exponent| 1 << exponent).take_while(move |packet| packet * cells <= set)
}

/// Measures one packet size, and reports.
fn bench(code: Code, args: &Bench, output: &Output) -> Result<(), Failure> {
    let mut subject = Workload::new(code, args)?;
    subject.check(args)?;
    if args.against.is_some() || args.against_code.is_some() {
        return compare(subject, args, output);
    }
    let mut roofline = subject.roofline(args)?;
    let measured = measure(&mut subject, &mut roofline, args)?;
    subject.warn_of_fallback(output);
    subject.warn_of_split(args, output);
    subject.warn_of_set(args, output);
    let line = BenchLine {
        erased: Some(subject.erased().to_vec()),
        packet: Some(args.packet()),
        order: Some(args.order().into()),
        split: Some(word(subject.codec.split_in_use().name())?),
        ..measured.line(args, subject.stage, subject.shard)
    };
    let what = format!("packet {}, shards of {} bytes", args.packet(), subject.shard);
    measured.report(args, output, line, &what);
    Ok(())
}

/// Measures in pairs with other settings or another code instead of the roofline, and reports.
fn compare(mut subject: Workload, args: &Bench, output: &Output) -> Result<(), Failure> {
    let against = args.against.unwrap_or_default();
    let other = args.with(&against);
    let mut base = Workload::new(Code::new(&other.code)?, &other)?;
    base.check(&other)?;
    base.share_memory(&subject);
    let measured = measure(&mut subject, &mut base, args)?;
    [&subject, &base].iter().for_each(|side| side.warn_of_fallback(output));
    subject.warn_of_split(args, output);
    subject.warn_of_set(args, output);
    let run = measured.fields(args, subject.stage, subject.shard);
    let Measured { limit, fraction: ratio, .. } = &measured;
    let line = ComparisonLine {
        run,
        erased: subject.erased().to_vec(),
        packet: args.packet(),
        order: args.order().into(),
        split: word(subject.codec.split_in_use().name())?,
        against_split: word(base.codec.split_in_use().name())?,
        against: against.to_string(),
        against_code: base.codec.code().spec().to_string(),
        against_kernel: base.codec.kernel_name(),
        against_gbps: limit.median,
        ratio: ratio.median,
        ratio_low: ratio.low,
        ratio_high: ratio.high,
    };
    output.result(line, || measured.comparison(args, base.codec.code().spec(), against));
    Ok(())
}

/// An operation to measure, over filled memory. It has been checked and run once.
trait Subject {
    fn run(&mut self) -> Result<(), Failure>;

    /// Returns the code, and the name of the kernel that runs it.
    fn code(&self) -> (&Code, &'static str);

    /// Returns the bytes of a shard or block. Shards are whole strips, so those of another packet
    /// may have other lengths; times are compared for equal lengths.
    fn length(&self) -> usize;

    /// Returns the number of shards or blocks that the user's data would fill.
    fn data_shards(&self) -> usize;

    /// Returns the seconds of the first run, which plans and compiles.
    fn first_seconds(&self) -> f64;
}

/// Runs both in pairs: as many as `args` asks for, and more while their ratio is uncertain.
fn measure(
    subject: &mut dyn Subject,
    roofline: &mut dyn Subject,
    args: &Bench,
) -> Result<Measured, Failure> {
    let rounds = Rounds::from_least(args.reps as usize);
    let pairs = Pairs::take(
        rounds,
        |ratio| !ratio.is_noisy(),
        |side| match side {
            Side::Subject => seconds_a_byte(subject),
            Side::Base => seconds_a_byte(roofline),
        },
    )?;
    let (code, kernel) = subject.code();
    let nothing = || Failure::internal("no sample was taken");
    let speed = |side| Speed::new(&pairs, side, subject.data_shards()).ok_or_else(nothing);
    Ok(Measured {
        spec: code.spec().to_string(),
        kernel,
        speed: speed(Side::Subject)?,
        limit: speed(Side::Base)?,
        fraction: pairs.ratio().ok_or_else(nothing)?,
        first_seconds: subject.first_seconds(),
    })
}

/// Takes a sample, and returns the seconds for one byte of each shard.
fn seconds_a_byte(subject: &mut dyn Subject) -> Result<f64, Failure> {
    Ok(sample(|| subject.run())? / subject.length() as f64)
}

/// The result of a measurement.
struct Measured {
    spec: String,
    kernel: &'static str,
    speed: Speed,
    limit: Speed,
    /// The fraction of the roofline.
    fraction: Ratio,
    first_seconds: f64,
}

fn verdict_word(verdict: PairVerdict) -> VerdictWord {
    match verdict {
        PairVerdict::Faster => VerdictWord::Faster,
        PairVerdict::Slower => VerdictWord::Slower,
        PairVerdict::Level => VerdictWord::Level,
        PairVerdict::TooNoisy => VerdictWord::TooNoisy,
    }
}

impl Measured {
    /// Returns the fields of every line about a measurement.
    fn fields(&self, args: &Bench, stage: u8, shard_bytes: usize) -> BenchFields {
        BenchFields {
            code: self.spec.clone(),
            op: args.op.into(),
            stage,
            set_bytes: args.set,
            shard_bytes,
            align: args.align.into(),
            kernel: self.kernel,
            threads: args.threads,
            reps: args.reps,
            pairs: self.fraction.pairs,
            gbps_median: self.speed.median,
            verdict: verdict_word(self.fraction.verdict()),
            noisy: self.fraction.is_noisy(),
        }
    }

    /// Returns the line, without what only codes in shards or codes in blocks have.
    fn line(&self, args: &Bench, stage: u8, shard_bytes: usize) -> BenchLine {
        let Self { speed, limit, fraction, .. } = self;
        BenchLine {
            run: self.fields(args, stage, shard_bytes),
            erased: None,
            packet: None,
            order: None,
            split: None,
            kept: fraction.pairs,
            gbps_p90: speed.p90,
            gbps_min: speed.min,
            gbps_max: speed.max,
            roofline_gbps: limit.median,
            roofline_gbps_p90: limit.p90,
            roofline_fraction: fraction.median,
            roofline_fraction_low: fraction.low,
            roofline_fraction_high: fraction.high,
            first_seconds: self.first_seconds,
            blocks: None,
        }
    }

    /// Reports the result. `what` describes the measured shards or blocks for people.
    fn report(&self, args: &Bench, output: &Output, line: BenchLine, what: &str) {
        let Self { spec, kernel, speed, .. } = self;
        let operation = named(args.op);
        output.result(line, || {
            let Speed { median, p90, min, max } = speed;
            format!(
                "{spec} {operation}: {median:.2} GB/s (p90 {p90:.2}; from {min:.2} to {max:.2}), {}; \
                 kernel {kernel}, {what}",
                self.of_the_roofline(),
            )
        });
    }

    /// Describes the result, compared with the other settings or the other code.
    fn comparison(&self, args: &Bench, base: &Spec, against: Against) -> String {
        let Self { spec, kernel, speed, .. } = self;
        let Ratio { median, low, high, pairs, .. } = self.fraction;
        let doubt = if self.fraction.is_noisy() { ", too noisy to rely on" } else { "" };
        let packet = args.sweep.map_or(String::new(), |_| format!(", packet {}", args.packet()));
        let than = match &args.against_code {
            None => format!("with {against}"),
            Some(_) => format!("{base} {against}").trim_end().to_owned(),
        };
        format!(
            "{spec} {}: {:.2} GB/s with {kernel}{packet}, {median:.3} times as fast as {than} \
             ({low:.3} to {high:.3} by {}{doubt})",
            named(args.op),
            speed.median,
            counted(pairs, "pair"),
        )
    }

    /// Describes the fraction of the roofline.
    fn of_the_roofline(&self) -> String {
        let Ratio { median, low, high, pairs, .. } = self.fraction;
        let [median, low, high] = [median, low, high].map(|fraction| 100.0 * fraction);
        let roofline = self.limit.median;
        let doubt = if self.fraction.is_noisy() { ", too noisy to rely on" } else { "" };
        let pairs = counted(pairs, "pair");
        format!(
            "{median:.0} % of the roofline {roofline:.2} ({low:.0} to {high:.0} % by {pairs}{doubt})"
        )
    }
}

/// The spread of the speeds of all samples, in GB/s.
struct Speed {
    median: f64,
    p90: f64,
    min: f64,
    max: f64,
}

impl Speed {
    /// Computes the speed of one side of some pairs. Each sample processed `bytes` bytes of user
    /// data.
    fn new(pairs: &Pairs, side: Side, bytes: usize) -> Option<Self> {
        let spread = pairs.spread(side)?;
        let speed = |seconds: f64| bytes as f64 / seconds / 1e9;
        let (min, max) = (speed(spread.max), speed(spread.min));
        Some(Self { median: speed(spread.median), p90: speed(spread.p10), min, max })
    }
}

/// An operation over shards in memory.
struct Workload {
    codec: Codec,
    operation: Operation,
    /// The stage before and after the operation, or the stage that it computes.
    stage: u8,
    data_nodes: usize,
    shard: usize,
    /// All shards. Two workloads that are compared share this memory: its place affects how well
    /// caches work, and must not decide which workload is faster.
    shards: Rc<RefCell<Vec<Shard>>>,
    /// The nodes that decoding computes.
    lost: Vec<usize>,
    changed: Shard,
    first_seconds: f64,
}

/// Returns the options: as tuned, except for what the arguments set.
fn options(code: &Code, args: &Bench) -> Result<CodecOptions, Failure> {
    let tuned = match args.kernel {
        KernelChoice::Auto => paritas_tune::codec_options(code.spec()),
        kernel => CodecOptions::default().kernel(kernel),
    };
    let split = args.split.unwrap_or(tuned.split);
    let bytes_a_thread = args.bytes_a_thread.map_or(tuned.bytes_a_thread, NonZeroUsize::get);
    let pass = args.pass.map_or(tuned.plan.pass, Pass::from);
    let machine = tuned.kernel.resolve(args.packet()).machine();
    for (flag, is_fused) in
        [("cost", args.cost() == CostName::Fused), ("order", args.order() == OrderName::Fused)]
    {
        if machine.is_none() && is_fused {
            return Err(Failure::arguments(format!(
                "--{flag} fused needs a compiled kernel; choose one with --kernel"
            )));
        }
    }
    let machine = machine.unwrap_or(Machine::AVX2);
    let weight = paritas_tune::xor_weight();
    let objective = args.cost().objective(machine, weight);
    let plan = tuned.plan.pass(pass).objective(objective).order(args.order().order(machine));
    let options = tuned.packet(args.packet()).threads(args.threads).bytes_a_thread(bytes_a_thread);
    Ok(options.split(split).plan(plan).direct(false))
}

/// Checks that shards of one strip do not have more bytes together than are measured.
fn expect_measurable(code: &Code, all: usize, args: &Bench) -> Result<(), Failure> {
    if all <= MOST_MEASURED {
        return Ok(());
    }
    Err(Failure::arguments(format!(
        "--packet {}: shards of one strip of {} have {} together; at most {} are measured",
        args.packet(),
        code.spec(),
        bytes(all as u64),
        bytes(MOST_MEASURED as u64)
    )))
}

/// Says if the smallest `parts` have more bytes together than the set.
fn warn_of_set(parts: &str, all: usize, args: &Bench, output: &Output) {
    if all > args.set {
        output.warn(&format!(
            "{parts} have {} together, more than the set of {}",
            bytes(all as u64),
            bytes(args.set as u64)
        ));
    }
}

impl Subject for Workload {
    fn run(&mut self) -> Result<(), Failure> {
        match self.operation {
            Operation::Encode => self.encode(),
            Operation::Decode => self.decode(),
            Operation::Update => self.update(),
            Operation::Promote => self.promote(),
        }
    }

    fn code(&self) -> (&Code, &'static str) {
        (self.codec.code(), self.codec.kernel_name())
    }

    fn length(&self) -> usize {
        self.shard
    }

    /// Returns the number of data nodes, unless these also hold parity.
    fn data_shards(&self) -> usize {
        let code = self.codec.code();
        let cells: usize = code.nodes().map(|node| code.node_cells(node).len()).sum();
        code.data_cells().len() * code.node_count() / cells
    }

    fn first_seconds(&self) -> f64 {
        self.first_seconds
    }
}

impl Workload {
    fn new(code: Code, args: &Bench) -> Result<Self, Failure> {
        let options = options(&code, args)?;
        let codec = Codec::with_options(code, options)?;
        let nodes = codec.code().node_count();
        let data_nodes = codec.code().nodes().filter(|&n| codec.code().holds_data(n)).count();
        // A shard is whole strips and whole cache lines. The unit is their least common multiple: a
        // cache line is a power of two.
        let strip = codec.strip();
        let unit = strip << LINE.trailing_zeros().saturating_sub(strip.trailing_zeros());
        let shard = (args.set / nodes / unit).max(1) * unit;
        expect_measurable(codec.code(), shard.saturating_mul(nodes), args)?;
        let stagger = if args.align == Align::Page { 0 } else { STAGGER };
        let new = |node| {
            let place = Shard::new(shard, node * stagger);
            let mut place = place.ok_or_else(|| Failure::memory(shard))?;
            place.fill(node);
            Ok::<_, Failure>(place)
        };
        let shards = Rc::new(RefCell::new((0..nodes).map(new).collect::<Result<_, _>>()?));
        let (operation, stage) = (args.op, stage(codec.code(), args)?);
        let lost = lost(codec.code(), args, stage, data_nodes)?;
        let changed = new(nodes)?;
        let first_seconds = 0.0;
        let mut workload = Self {
            codec,
            operation,
            stage,
            data_nodes,
            shard,
            shards,
            lost,
            changed,
            first_seconds,
        };
        let start = Instant::now();
        workload.prepare()?;
        let start = if operation == Operation::Encode { start } else { Instant::now() };
        workload.run()?;
        workload.first_seconds = start.elapsed().as_secs_f64();
        Ok(workload)
    }

    /// Returns the nodes that decoding computes.
    fn erased(&self) -> &[usize] {
        if self.operation == Operation::Decode { &self.lost } else { &[] }
    }

    /// Warns if another kernel runs than was asked for.
    fn warn_of_fallback(&self, output: &Output) {
        self.codec.fallback().iter().for_each(|why| output.warn(why));
    }

    /// Warns if threads share the work in another way than was asked for.
    fn warn_of_split(&self, args: &Bench, output: &Output) {
        let (asked, used) = (args.split, self.codec.split_in_use());
        if let Some(asked) = asked.filter(|&asked| asked != used) {
            let spec = self.codec.code().spec();
            output.warn(&format!(
                "{spec}: this work cannot be shared by {asked} with packets of {} bytes; threads \
                 share it by {used}",
                args.packet()
            ));
        }
    }

    /// Says if the shards, which are whole strips and cache lines, do not fit into the set.
    fn warn_of_set(&self, args: &Bench, output: &Output) {
        warn_of_set(
            "shards of one strip",
            self.shard * self.codec.code().node_count(),
            args,
            output,
        );
    }

    /// Works on the memory of another workload, if its shards have the same length.
    fn share_memory(&mut self, other: &Self) {
        if self.shard == other.shard {
            self.shards = Rc::clone(&other.shards);
        }
    }

    /// Computes all stages that the operation starts from.
    fn prepare(&mut self) -> Result<(), Failure> {
        self.encode()?;
        if self.stage > 1 { self.promote() } else { Ok(()) }
    }

    fn encode(&mut self) -> Result<(), Failure> {
        let code = self.codec.code();
        let standing = code.nodes_at(1).len();
        let shards = &mut self.shards.borrow_mut()[..standing];
        let rows = |node| code.node_cells(node).len();
        let in_data_nodes: usize = code.nodes().take(self.data_nodes).map(rows).sum();
        if code.data_cells().len() < in_data_nodes {
            let mut shards: Vec<&mut [u8]> = shards.iter_mut().map(Shard::bytes_mut).collect();
            return Ok(self.codec.encode_nodes(&mut shards)?);
        }
        let (data, parity) = shards.split_at_mut(self.data_nodes);
        let data: Vec<&[u8]> = data.iter().map(Shard::bytes).collect();
        let mut parity: Vec<&mut [u8]> = parity.iter_mut().map(Shard::bytes_mut).collect();
        Ok(self.codec.encode(&data, &mut parity)?)
    }

    fn promote(&mut self) -> Result<(), Failure> {
        let makes = self.codec.code().made_in(2);
        let mut shards = self.shards.borrow_mut();
        let mut buffers: Vec<Buffer<'_>> = Vec::with_capacity(shards.len());
        for (shard, node) in shards.iter_mut().zip(self.codec.code().nodes()) {
            let cells = self.codec.code().node_cells(node);
            buffers.push(match cells.iter().any(|&cell| makes.contains(cell)) {
                true => Buffer::Target(shard.bytes_mut()),
                false => Buffer::Source(shard.bytes()),
            });
        }
        Ok(self.codec.promote(2, &mut buffers)?)
    }

    fn decode(&mut self) -> Result<(), Failure> {
        let mut shards = self.shards.borrow_mut();
        let mut buffers: Vec<Buffer<'_>> = shards
            .iter_mut()
            .enumerate()
            .map(|(node, shard)| match self.lost.contains(&node) {
                true => Buffer::Target(shard.bytes_mut()),
                false => Buffer::Source(shard.bytes()),
            })
            .collect();
        Ok(self.codec.reconstruct_at(self.stage, &mut buffers)?)
    }

    /// Updates parity. Every run swaps the first data shard with another content.
    fn update(&mut self) -> Result<(), Failure> {
        let mut shards = self.shards.borrow_mut();
        let (data, parity) = shards.split_at_mut(self.data_nodes);
        let mut parity: Vec<&mut [u8]> = parity.iter_mut().map(Shard::bytes_mut).collect();
        let (old, new) = (data[0].bytes(), self.changed.bytes());
        self.codec.update(NodeId::new(0), old, new, &mut parity)?;
        std::mem::swap(&mut data[0], &mut self.changed);
        Ok(())
    }

    /// Compares the memory with what the scalar kernel makes of the data.
    fn check(&self, args: &Bench) -> Result<(), Failure> {
        // Decoding after a stage is prepared by computing all stages up to it.
        let plain = Bench {
            op: Operation::Decode,
            stage: Some(self.stage),
            kernel: KernelChoice::Only(Kernel::Scalar),
            cost: None,
            order: None,
            best_roofline: false,
            erase: self.erased().to_vec(),
            ..args.clone()
        };
        let mut other = Self::new(self.codec.code().clone(), &plain)?;
        // Only updates change data. Lost shards must have come back as they were filled.
        if self.operation == Operation::Update {
            other.shards.borrow_mut()[0]
                .bytes_mut()
                .copy_from_slice(self.shards.borrow()[0].bytes());
            other.prepare()?;
        }
        let (ours, others) = (self.shards.borrow(), other.shards.borrow());
        let mut pairs = ours.iter().zip(&*others);
        if pairs.all(|(shard, other)| shard.bytes() == other.bytes()) {
            return Ok(());
        }
        Err(Failure::internal(format!(
            "{} computes wrong results, so it was not measured",
            self.codec.kernel_name()
        )))
    }

    /// Returns the kernel that ran. That is the tiled one if the chosen kernel could not run the
    /// schedule, such as one in the order data.
    fn measured_kernel(&self, args: &Bench) -> Result<KernelChoice, Failure> {
        match self.codec.fallback() {
            Some(_) => Ok(self.codec.kernel_name().parse()?),
            None => Ok(args.kernel),
        }
    }

    /// Creates the roofline: the same streams with one XOR for every byte read. It is a code whose
    /// parity nodes divide the data nodes among them. It runs with the measured kernel, so that the
    /// fraction tells what the code costs, whatever the width of the registers. With
    /// `--best-roofline`, it runs with the best kernel, so that fractions compare kernels. A kernel
    /// of the lab is slow over small packets, so its roofline has packets of [`ROOFLINE_PACKET`]
    /// bytes.
    fn roofline(&self, args: &Bench) -> Result<Self, Failure> {
        let sources = self.data_shards();
        let code = self.codec.code();
        let targets = code.node_count() - sources;
        let shards = |cells: usize| cells.div_ceil(code.node_cells(NodeId::new(0)).len());
        let (sources, targets) = match (self.operation, code.promotion(self.stage)) {
            (Operation::Encode, _) => (sources, shards(code.made_in(1).len())),
            (Operation::Decode, _) => (sources, self.lost.len()),
            (Operation::Update, _) => (2 + targets, targets),
            (Operation::Promote, Some(later)) => {
                (shards(later.reads.len()), shards(later.makes.len()))
            }
            (Operation::Promote, None) => (sources, targets),
        };
        let measured = self.measured_kernel(args)?;
        let is_of_the_lab =
            matches!(measured, KernelChoice::Only(kernel) if kernel.is_of_the_lab());
        // In the word layout a strip is a word, and a shard is one stream.
        let (kernel, packet, rows) = match (args.best_roofline, is_of_the_lab) {
            (true, _) => (KernelChoice::Only(Kernel::best(DEFAULT_PACKET)), DEFAULT_PACKET, 1),
            (false, true) => (measured, ROOFLINE_PACKET, 1),
            (false, false) => {
                (measured, args.packet(), (self.codec.strip() / args.packet()).max(1))
            }
        };
        let code = one_xor_a_byte(sources, targets, rows)?;
        let nodes = sources + targets;
        let plain = Bench {
            op: Operation::Encode,
            stage: None,
            set: self.shard * nodes,
            kernel,
            packet: Some(packet),
            order: None,
            erase: Vec::new(),
            ..args.clone()
        };
        Self::new(code, &plain)
    }
}

/// Returns the nodes that decoding computes: those of the arguments or, without these, the first
/// data nodes, up to the number that may be lost.
fn lost(code: &Code, args: &Bench, stage: u8, data_nodes: usize) -> Result<Vec<usize>, Failure> {
    let tolerance = code.tolerance_at(stage);
    if args.erase.is_empty() {
        return Ok((0..tolerance.min(data_nodes)).collect());
    }
    let (spec, nodes) = (code.spec(), code.nodes_at(stage).len());
    let mut lost = args.erase.clone();
    lost.sort_unstable();
    lost.dedup();
    let last = lost.last().copied().unwrap_or_default();
    if args.op != Operation::Decode {
        return Err(Failure::arguments("--erase is for --op decode"));
    }
    if last >= nodes {
        let most = nodes - 1;
        return Err(Failure::arguments(format!(
            "--erase must name some of the nodes 0 to {most} of {spec}; got {last}"
        )));
    }
    Ok(lost)
}

/// Returns the stage that an operation computes or starts from.
fn stage(code: &Code, args: &Bench) -> Result<u8, Failure> {
    let last = code.stages();
    let stage = match args.op {
        Operation::Encode => 1,
        Operation::Promote if last == 1 => {
            let spec = code.spec();
            return Err(Failure::arguments(format!(
                "--op promote needs a code with two stages (dpg or bbdpg); got {spec}"
            )));
        }
        Operation::Promote | Operation::Update => last,
        Operation::Decode => args.stage.unwrap_or(last),
    };
    if args.stage.is_some() && args.op != Operation::Decode {
        return Err(Failure::arguments("--stage is for --op decode"));
    }
    if (1..=last).contains(&stage) {
        return Ok(stage);
    }
    let (stages, spec) = (stage_range(last), code.spec());
    Err(Failure::arguments(format!("--stage must be {stages} for {spec}; got {stage}")))
}

fn one_xor_a_byte(sources: usize, targets: usize, rows: usize) -> Result<Code, paritas::Error> {
    let mut builder = CodeBuilder::new(sources + targets);
    let data: Vec<Vec<CellId>> =
        (0..sources).map(|node| (0..rows).map(|_| builder.data(Some(node))).collect()).collect();
    for target in 0..targets {
        let mine = || data[target % sources..].iter().step_by(targets);
        for row in 0..rows {
            let cells: Vec<CellId> = mine().map(|node| node[row]).collect();
            builder.derived(Role::Parity, Some(sources + target), &cells);
        }
    }
    builder.finish(Spec::new("roofline"), 1)
}
