//! `paritas bench`: how fast a code runs here, beside what memory and one XOR a byte allow.

use std::time::Instant;

use paritas::measure::{Samples, Shard, repeat};
use paritas::{
    Buffer, CellId, Code, CodeBuilder, Codec, CodecOptions, Kernel, KernelChoice, NodeId, Pass,
    PlanOptions, Role, Spec,
};
use serde_json::json;

use crate::args::{Align, Bench, Operation};
use crate::commands::Outcome;
use crate::exit::{Exit, Failure};
use crate::output::Output;

/// The least time of one sample; shorter runs are repeated within a sample.
const SAMPLE_SECONDS: f64 = 0.0004;

/// The bytes of a cache line.
const LINE: usize = 64;

/// How far staggered shards are shifted against each other.
const STAGGER: usize = 5 * LINE;

/// Measures and reports.
pub fn run(args: &Bench, output: &Output) -> Outcome {
    let code = Code::new(&args.code)?;
    let spec = code.spec().to_string();
    if code.graph().is_some() {
        return Err(Failure::arguments(format!(
            "{spec}: bench measures codes that keep the data; time `encode` and `decode` instead"
        )));
    }
    let mut subject = Workload::new(code, args)?;
    subject.check(args)?;
    let mut roofline = subject.roofline(args)?;
    let (mut samples, mut limits) = (Samples::default(), Samples::default());
    for _ in 0..args.reps {
        samples.take(|| repeat(SAMPLE_SECONDS, || subject.run()))?;
        limits.take(|| repeat(SAMPLE_SECONDS, || roofline.run()))?;
    }
    let speed = Speed::new(&samples, subject.user_bytes())?;
    let limit = Speed::new(&limits, subject.user_bytes())?;
    let fraction = speed.median / limit.median;
    let kernel = subject.codec.kernel_name();
    subject.codec.fallback().iter().for_each(|why| output.warn(why));
    let operation = format!("{:?}", args.op).to_lowercase();
    let align = format!("{:?}", args.align).to_lowercase();
    let value = json!({
        "type": "bench", "code": spec, "op": operation, "set_bytes": args.set,
        "shard_bytes": subject.shard, "align": align, "packet": args.packet, "kernel": kernel,
        "threads": args.threads, "split": subject.codec.split().name(), "reps": args.reps, "kept": speed.kept,
        "gbps_median": speed.median, "gbps_min": speed.min, "gbps_max": speed.max,
        "roofline_gbps": limit.median, "roofline_fraction": fraction, "first_seconds": subject.first_seconds,
    });
    output.result(value, || {
        format!(
            "{spec} {operation}: {:.2} GB/s (from {:.2} to {:.2}), {:.0} % of the roofline {:.2}; \
             kernel {kernel}, packet {}, shards of {} bytes; {} of {} samples kept",
            speed.median,
            speed.min,
            speed.max,
            100.0 * fraction,
            limit.median,
            args.packet,
            subject.shard,
            speed.kept,
            args.reps
        )
    });
    Ok(Exit::Done)
}

/// GB/s of the samples that count.
struct Speed {
    median: f64,
    min: f64,
    max: f64,
    kept: usize,
}

impl Speed {
    fn new(samples: &Samples, bytes: usize) -> Result<Self, Failure> {
        let spread = samples.spread().ok_or_else(|| Failure::internal("nothing was measured"))?;
        let speed = |seconds: f64| bytes as f64 / seconds / 1e9;
        let (min, max) = (speed(spread.max), speed(spread.min));
        Ok(Self { median: speed(spread.median), min, max, kept: spread.kept })
    }
}

/// An operation over shards in memory.
struct Workload {
    codec: Codec,
    operation: Operation,
    data_nodes: usize,
    shard: usize,
    shards: Vec<Shard>,
    /// For decoding, which nodes are lost; for updating, the first is the changed one.
    lost: Vec<usize>,
    changed: Shard,
    /// The time of the first run, in which the schedule was planned and compiled.
    first_seconds: f64,
}

impl Workload {
    fn new(code: Code, args: &Bench) -> Result<Self, Failure> {
        let tuned = match args.kernel {
            KernelChoice::Auto => CodecOptions::for_this_machine(code.spec()),
            kernel => CodecOptions { kernel, ..CodecOptions::default() },
        };
        let split = args.split.unwrap_or(tuned.split);
        let pass = args.pass.map_or(tuned.plan.pass, Pass::from);
        let plan = PlanOptions { pass, ..tuned.plan };
        let (packet, threads) = (args.packet, args.threads);
        let options = CodecOptions { packet, threads, split, plan, ..tuned };
        let codec = Codec::new(code, options)?;
        let nodes = codec.code().node_count();
        let data_nodes = codec.code().nodes().filter(|&n| codec.code().holds_data(n)).count();
        // Whole strips, and whole cache lines.
        let strip = codec.strip();
        let unit = if strip.is_multiple_of(LINE) { strip } else { strip * LINE };
        let shard = (args.set / nodes / unit).max(1) * unit;
        let stagger = if args.align == Align::Page { 0 } else { STAGGER };
        let new = |node| {
            let place = Shard::new(shard, node * stagger);
            let mut place = place.ok_or_else(|| Failure::memory(shard))?;
            place.fill(node);
            Ok::<_, Failure>(place)
        };
        let shards = (0..nodes).map(new).collect::<Result<_, _>>()?;
        let lost = (0..codec.code().tolerance().min(data_nodes)).collect();
        let operation = args.op;
        let changed = new(nodes)?;
        let first_seconds = 0.0;
        let mut workload =
            Self { codec, operation, data_nodes, shard, shards, lost, changed, first_seconds };
        let start = Instant::now();
        workload.encode()?;
        let start = if operation == Operation::Encode { start } else { Instant::now() };
        workload.run()?;
        workload.first_seconds = start.elapsed().as_secs_f64();
        Ok(workload)
    }

    fn user_bytes(&self) -> usize {
        self.data_shards() * self.shard
    }

    /// How many whole shards the user's data would fill: the data nodes, unless they hold parity too.
    fn data_shards(&self) -> usize {
        let code = self.codec.code();
        let cells: usize = code.nodes().map(|node| code.node_cells(node).len()).sum();
        code.data_cells().len() * code.node_count() / cells
    }

    fn encode(&mut self) -> Result<(), Failure> {
        if self.data_nodes == self.shards.len() {
            let mut shards: Vec<&mut [u8]> = self.shards.iter_mut().map(Shard::bytes_mut).collect();
            return Ok(self.codec.encode_nodes(&mut shards)?);
        }
        let (data, parity) = self.shards.split_at_mut(self.data_nodes);
        let data: Vec<&[u8]> = data.iter().map(Shard::bytes).collect();
        let mut parity: Vec<&mut [u8]> = parity.iter_mut().map(Shard::bytes_mut).collect();
        Ok(self.codec.encode(&data, &mut parity)?)
    }

    fn run(&mut self) -> Result<(), Failure> {
        match self.operation {
            Operation::Encode => self.encode(),
            Operation::Decode => self.decode(),
            Operation::Update => self.update(),
        }
    }

    fn decode(&mut self) -> Result<(), Failure> {
        let mut buffers: Vec<Buffer<'_>> = self
            .shards
            .iter_mut()
            .enumerate()
            .map(|(node, shard)| match self.lost.contains(&node) {
                true => Buffer::Target(shard.bytes_mut()),
                false => Buffer::Source(shard.bytes()),
            })
            .collect();
        Ok(self.codec.reconstruct(&mut buffers)?)
    }

    /// Every run swaps the first data shard with another content.
    fn update(&mut self) -> Result<(), Failure> {
        let (data, parity) = self.shards.split_at_mut(self.data_nodes);
        let mut parity: Vec<&mut [u8]> = parity.iter_mut().map(Shard::bytes_mut).collect();
        let (old, new) = (data[0].bytes(), self.changed.bytes());
        self.codec.update(NodeId::new(0), old, new, &mut parity)?;
        std::mem::swap(&mut data[0], &mut self.changed);
        Ok(())
    }

    /// Compares what stands in memory with what the plainest kernel makes of the data.
    fn check(&self, args: &Bench) -> Result<(), Failure> {
        let plain = Bench {
            code: args.code.clone(),
            op: Operation::Encode,
            kernel: KernelChoice::Only(Kernel::Scalar),
            ..*args
        };
        let mut other = Self::new(self.codec.code().clone(), &plain)?;
        // Only updates change data; what was lost must have come back as it was filled.
        if self.operation == Operation::Update {
            other.shards[0].bytes_mut().copy_from_slice(self.shards[0].bytes());
            other.encode()?;
        }
        let mut pairs = self.shards.iter().zip(&other.shards);
        if pairs.all(|(shard, other)| shard.bytes() == other.bytes()) {
            return Ok(());
        }
        Err(Failure::internal(format!("{} computes wrong; not measured", self.codec.kernel_name())))
    }

    /// The same streams with one XOR for every byte read: a code whose parity nodes share the
    /// data nodes among them.
    fn roofline(&self, args: &Bench) -> Result<Self, Failure> {
        let sources = self.data_shards();
        let targets = self.codec.code().node_count() - sources;
        let (sources, targets) = match self.operation {
            Operation::Encode => (sources, targets),
            Operation::Decode => (sources, self.lost.len()),
            Operation::Update => (2 + targets, targets),
        };
        // In the word layout a strip is a word, and a shard one stream.
        let rows = (self.codec.strip() / args.packet).max(1);
        let code = one_xor_a_byte(sources, targets, rows)?;
        let nodes = sources + targets;
        let plain = Bench {
            code: args.code.clone(),
            op: Operation::Encode,
            set: self.shard * nodes,
            ..*args
        };
        Self::new(code, &plain)
    }
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
