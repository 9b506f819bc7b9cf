//! `paritas bench`: how fast a code runs here, beside what memory and one XOR a byte allow.

use std::hint::black_box;
use std::time::Instant;

use paritas::{
    Buffer, CellId, Code, CodeBuilder, Codec, CodecOptions, Kernel, KernelChoice, NodeId,
    PlanOptions, Role, Spec,
};
use serde_json::json;

use crate::args::{Align, Bench, Operation};
use crate::commands::Outcome;
use crate::exit::{Exit, Failure};
use crate::output::Output;

/// The least time of one sample; shorter runs are repeated within a sample.
const SAMPLE_SECONDS: f64 = 0.0004;

/// How much slower than the fastest a calibration may be and count as full speed.
const SLACK: f64 = 1.04;

/// What page-aligned shards are aligned to, and what addresses must not share to be kept in one
/// set of a cache.
const PAGE: usize = 4096;

/// The bytes of a cache line.
const LINE: usize = 64;

/// How far staggered shards are shifted against each other.
const STAGGER: usize = 5 * LINE;

/// Measures and reports.
pub fn run(args: &Bench, output: &Output) -> Outcome {
    let code = Code::new(&args.code)?;
    let spec = code.spec().to_string();
    let mut subject = Workload::new(code, args)?;
    subject.check(args)?;
    let mut roofline = subject.roofline(args)?;
    let (mut samples, mut limits) = (Samples::default(), Samples::default());
    for _ in 0..args.reps {
        samples.take(&mut subject)?;
        limits.take(&mut roofline)?;
    }
    let speed = samples.spread(subject.user_bytes());
    let limit = limits.spread(subject.user_bytes());
    let fraction = speed.median / limit.median;
    let kernel = subject.codec.kernel_name();
    subject.codec.fallback().iter().for_each(|why| output.warn(why));
    let operation = format!("{:?}", args.op).to_lowercase();
    let align = format!("{:?}", args.align).to_lowercase();
    let value = json!({
        "type": "bench", "code": spec, "op": operation, "set_bytes": args.set,
        "shard_bytes": subject.shard, "align": align, "packet": args.packet, "kernel": kernel,
        "threads": args.threads, "reps": args.reps, "kept": speed.kept,
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

/// Median, lowest and highest GB/s of the samples that count.
struct Spread {
    median: f64,
    min: f64,
    max: f64,
    kept: usize,
}

/// Samples in seconds, each between two runs of the calibration loop.
#[derive(Default)]
struct Samples(Vec<[f64; 3]>);

impl Samples {
    fn take(&mut self, workload: &mut Workload) -> Result<(), Failure> {
        let before = calibrate();
        let seconds = workload.sample()?;
        self.0.push([before, seconds, calibrate()]);
        Ok(())
    }

    /// The speeds of the samples whose brackets both ran at the machine's full speed, as if a
    /// neighbour on the core were away; the samples' own times have no say. Of all samples, if no
    /// brackets were that fast.
    fn spread(&self, bytes: usize) -> Spread {
        let brackets = self.0.iter().flat_map(|&[before, _, after]| [before, after]);
        let full_speed = SLACK * brackets.fold(f64::INFINITY, f64::min);
        let speed = |seconds: f64| bytes as f64 / seconds / 1e9;
        let fast = |[before, _, after]: &&[f64; 3]| before.max(*after) <= full_speed;
        let mut speeds: Vec<f64> = self.0.iter().filter(fast).map(|s| speed(s[1])).collect();
        let kept = speeds.len();
        if speeds.is_empty() {
            speeds = self.0.iter().map(|sample| speed(sample[1])).collect();
        }
        speeds.sort_by(f64::total_cmp);
        Spread {
            median: speeds[speeds.len() / 2],
            min: speeds[0],
            max: speeds[speeds.len() - 1],
            kept,
        }
    }
}

/// The seconds of a fixed chain of multiplications, which needs nothing but the core.
fn calibrate() -> f64 {
    let start = Instant::now();
    let mut x = 88_172_645_463_325_252_u64;
    for _ in 0..30_000 {
        x = black_box(x.wrapping_mul(6_364_136_223_846_793_005)).wrapping_add(1);
    }
    black_box(x);
    start.elapsed().as_secs_f64()
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
        let options = CodecOptions {
            packet: args.packet,
            threads: args.threads,
            kernel: args.kernel,
            plan: PlanOptions { pass: args.pass.into(), ..PlanOptions::default() },
            ..CodecOptions::default()
        };
        let codec = Codec::new(code, options)?;
        let nodes = codec.code().node_count();
        let data_nodes = codec.code().nodes().filter(|&n| codec.code().holds_data(n)).count();
        // Whole strips, and whole cache lines.
        let strip = codec.strip();
        let unit = if strip.is_multiple_of(LINE) { strip } else { strip * LINE };
        let shard = (args.set / nodes / unit).max(1) * unit;
        let shards = (0..nodes).map(|node| Shard::new(node, shard, args.align)).collect();
        let lost = (0..codec.code().tolerance().min(data_nodes)).collect();
        let operation = args.op;
        let changed = Shard::new(nodes, shard, args.align);
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
        self.data_nodes * self.shard
    }

    fn encode(&mut self) -> Result<(), Failure> {
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
        for (other, shard) in other.shards.iter_mut().zip(&self.shards[..self.data_nodes]) {
            other.bytes_mut().copy_from_slice(shard.bytes());
        }
        other.encode()?;
        let right = |(node, shard): (usize, &Shard)| {
            let came_back = self.operation != Operation::Decode || !self.lost.contains(&node);
            shard.bytes() == other.shards[node].bytes()
                && (came_back || shard.bytes() == fill(node, self.shard))
        };
        if self.shards.iter().enumerate().all(right) {
            return Ok(());
        }
        Err(Failure::internal(format!("{} computes wrong; not measured", self.codec.kernel_name())))
    }

    /// The same streams with one XOR for every byte read: a code whose parity nodes share the
    /// data nodes among them.
    fn roofline(&self, args: &Bench) -> Result<Self, Failure> {
        let targets = self.codec.code().node_count() - self.data_nodes;
        let (sources, targets) = match self.operation {
            Operation::Encode => (self.data_nodes, targets),
            Operation::Decode => (self.data_nodes, self.lost.len()),
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

    /// Seconds for one run.
    fn sample(&mut self) -> Result<f64, Failure> {
        let mut runs = 0;
        let start = Instant::now();
        loop {
            self.run()?;
            runs += 1;
            let seconds = start.elapsed().as_secs_f64();
            if seconds >= SAMPLE_SECONDS {
                return Ok(seconds / f64::from(runs));
            }
        }
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

/// A shard's memory, aligned to a cache line at least.
struct Shard {
    memory: Vec<u8>,
    start: usize,
    length: usize,
}

impl Shard {
    fn new(node: usize, length: usize, align: Align) -> Self {
        let mut memory = vec![0; length + 2 * PAGE];
        let stagger = if align == Align::Page { 0 } else { node * STAGGER % PAGE };
        let start = memory.as_ptr().align_offset(PAGE) % PAGE + stagger;
        memory[start..start + length].copy_from_slice(&fill(node, length));
        Self { memory, start, length }
    }

    fn bytes(&self) -> &[u8] {
        &self.memory[self.start..][..self.length]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..][..self.length]
    }
}

fn fill(seed: usize, length: usize) -> Vec<u8> {
    (0..length).map(|i| ((i % 251) * 7 + seed * 31 + i / 251 * 3) as u8).collect()
}
