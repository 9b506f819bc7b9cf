//! Measures LT codes: computing all blocks from the data, and the data from blocks received in
//! random order, as for files.
//!
//! Blocks are buffers of their own, apart from the data. The graph is solved once, in the first
//! run. The measured runs execute the schedule on the blocks. Files are decoded in the same way,
//! because their segments mostly miss the same blocks.

use std::time::Instant;

use paritas::code::{CellId, CellSet, CodeBuilder};
use paritas::lt::{Decoder, Graph, Method, Reception};
use paritas::{Buffer, Code, CodecOptions, Kernel, KernelChoice, LaneCodec, Spec};
use paritas_report::speed::{BenchBlocksFields, BenchLine};
use paritas_tune::measure::ShardMemory;

use crate::args::machine::{Align, Bench, Operation};
use crate::commands::Outcome;
use crate::commands::bench::{LINE, STAGGER, Subject, measure, options, stage, warn_of_set};
use crate::exit::{Exit, Failure};
use crate::output::Output;

/// Default number of blocks received, as a multiple of k, unless decoding takes more.
const RECEPTION: f64 = 1.05;

/// Default seed of the order in which blocks arrive.
const SEED: u64 = 1;

/// Number of bytes of a page.
const PAGE: usize = 4096;

/// Measures an LT code, and reports.
pub(super) fn run(code: Code, args: &Bench, output: &Output) -> Outcome {
    stage(&code, args)?;
    let Some(graph) = code.graph().cloned() else {
        return Err(Failure::internal(format!("{} has no graph", code.spec())));
    };
    let options = options(&code, args)?;
    let numbers = match args.op {
        Operation::Decode => received(&graph, args)?,
        _ => (0..graph.blocks()).collect(),
    };
    let place = BlockPlaces::new(graph.data() + numbers.len(), args);
    let made = if args.op == Operation::Decode { graph.data() } else { numbers.len() };
    let mut roofline = roofline(&code, &graph, made, options.clone(), place)?;
    let mut subject = checked(code, options, &numbers, args, place)?;
    let measured = measure(&mut subject, &mut roofline, args)?;
    let count = numbers.len();
    let all = (graph.data() + count) * place.bytes;
    warn_of_set("blocks of one cache line and the data", all, args, output);
    let reception = (args.op == Operation::Decode).then(|| count as f64 / graph.data() as f64);
    let shard = graph.blocks().div_ceil(subject.codec.code().node_count()) * place.bytes;
    let blocks = BenchBlocksFields {
        block_bytes: place.bytes,
        blocks: count,
        reception,
        seed: reception.map(|_| args.seed.unwrap_or(SEED)),
    };
    let line = BenchLine { blocks: Some(blocks), ..measured.line(args, 1, shard) };
    let what = match reception {
        Some(multiple) => format!("from {count} blocks ({multiple:.4} k)"),
        None => format!("{count} blocks"),
    };
    measured.report(args, output, line, &format!("{what} of {} bytes", place.bytes));
    Ok(Exit::Done)
}

/// Returns the blocks that arrive, in their order. Their number is the requested multiple of k. By
/// default it is the number that decoding takes, but at least 1.05 k, or all blocks if these are
/// fewer.
fn received(graph: &Graph, args: &Bench) -> Result<Vec<usize>, Failure> {
    let (data, all) = (graph.data(), graph.blocks());
    let seed = args.seed.unwrap_or(SEED);
    let mut order = Reception::order(&(0..all).collect::<Vec<_>>(), seed, 0);
    let mut decoder = Decoder::new(graph, Method::Inactivation);
    let last = order.iter().position(|&block| matches!(decoder.push(block), Ok(true)));
    let Some(needed) = last.map(|place| place + 1) else {
        return Err(Failure::arguments(format!("even all {all} blocks do not determine the data")));
    };
    let blocks = |multiple: f64| (multiple * data as f64 + 1e-9) as usize;
    let count = args.reception.map_or_else(|| blocks(RECEPTION).clamp(needed, all), blocks);
    if !(needed..=all).contains(&count) {
        return Err(Failure::arguments(format!(
            "--reception: with seed {seed} the number of blocks must be {needed} ({:.4} k) to {all}; \
             got {count}",
            needed as f64 / data as f64
        )));
    }
    order.truncate(count);
    Ok(order)
}

/// The places of blocks in memory.
#[derive(Debug, Clone, Copy)]
struct BlockPlaces {
    /// Number of bytes of a block, which are whole cache lines.
    bytes: usize,
    /// Number of bytes from the start of one block to the next.
    stride: usize,
}

impl BlockPlaces {
    /// Creates the places of `count` blocks.
    fn new(count: usize, args: &Bench) -> Self {
        let bytes = (args.set / count / LINE).max(1) * LINE;
        let stride = match args.align {
            Align::Staggered => bytes + STAGGER,
            Align::Page => bytes.next_multiple_of(PAGE),
        };
        Self { bytes, stride }
    }

    fn shards(self, count: usize) -> Result<ShardMemory, Failure> {
        let shards = ShardMemory::new(count, self.bytes, self.stride);
        shards.ok_or_else(|| Failure::memory(count.saturating_mul(self.stride)))
    }
}

/// Creates the operation to be measured, runs it once, and checks the result: blocks as the scalar
/// kernel makes them, or the data that they were made from.
fn checked(
    code: Code,
    options: CodecOptions,
    numbers: &[usize],
    args: &Bench,
    place: BlockPlaces,
) -> Result<Blocks, Failure> {
    let scalar = options.clone().kernel(KernelChoice::Only(Kernel::Scalar));
    let Blocks { data, blocks, .. } = Blocks::encode(code.clone(), scalar, numbers, place)?;
    let (subject, is_right) = match args.op {
        Operation::Decode => {
            let subject = Blocks::decode(code, options, numbers, blocks, place)?;
            let is_right = subject.data.iter().eq(data.iter());
            (subject, is_right)
        }
        _ => {
            let subject = Blocks::encode(code, options, numbers, place)?;
            let is_right = subject.blocks.iter().eq(blocks.iter());
            (subject, is_right)
        }
    };
    let kernel = subject.codec.kernel_name();
    match is_right {
        true => Ok(subject),
        false => Err(Failure::internal(format!(
            "{kernel} computes wrong results, so it was not measured"
        ))),
    }
}

/// Creates the roofline: it writes the same number of blocks as the operation, and reads each of k
/// blocks once.
fn roofline(
    code: &Code,
    graph: &Graph,
    made: usize,
    options: CodecOptions,
    place: BlockPlaces,
) -> Result<Blocks, Failure> {
    let data = graph.data();
    let sources = |block: usize| (block % data..data).step_by(made).map(|n| n as u32).collect();
    let rows: Vec<Vec<u32>> = (0..made).map(sources).collect();
    let mut builder = CodeBuilder::new(code.node_count().min(made));
    builder.graph(&Graph::from_neighbours(data, &rows)?);
    let code = builder.finish(Spec::new("roofline"), 0)?;
    Blocks::encode(code, options, &(0..made).collect::<Vec<_>>(), place)
}

/// An operation over data and blocks in memory.
struct Blocks {
    codec: LaneCodec,
    operation: Operation,
    have: CellSet,
    want: CellSet,
    /// The buffers of the data.
    data_buffers: Vec<usize>,
    /// The buffers of the blocks that take part.
    block_buffers: Vec<usize>,
    data: ShardMemory,
    blocks: ShardMemory,
    /// Number of blocks of the user's data.
    known: usize,
    /// Bytes of a block.
    length: usize,
    /// Seconds of the first run, in which the graph was solved.
    first_seconds: f64,
}

impl Blocks {
    /// Creates the encoding of blocks `numbers` from data.
    fn encode(
        code: Code,
        options: CodecOptions,
        numbers: &[usize],
        place: BlockPlaces,
    ) -> Result<Self, Failure> {
        let mut data = place.shards(code.data_cells().len())?;
        data.fill();
        let blocks = place.shards(numbers.len())?;
        Self::new(code, options, Operation::Encode, numbers, (data, blocks), place)
    }

    /// Creates the decoding of the data from blocks `numbers`.
    fn decode(
        code: Code,
        options: CodecOptions,
        numbers: &[usize],
        blocks: ShardMemory,
        place: BlockPlaces,
    ) -> Result<Self, Failure> {
        let data = place.shards(code.data_cells().len())?;
        Self::new(code, options, Operation::Decode, numbers, (data, blocks), place)
    }

    fn new(
        code: Code,
        options: CodecOptions,
        operation: Operation,
        numbers: &[usize],
        (data, blocks): (ShardMemory, ShardMemory),
        place: BlockPlaces,
    ) -> Result<Self, Failure> {
        let start = Instant::now();
        let codec = LaneCodec::new(code, options)?;
        let (cells, known) = (codec.code().cell_count(), codec.code().data_cells());
        let buffers = buffers_by_cell(&codec);
        let block_cells = numbers.iter().map(|number| CellId::new(known.len() + number));
        let data_set = CellSet::from_cells(cells, known.iter().copied());
        let block_set = CellSet::from_cells(cells, block_cells.clone());
        let (have, want) = match operation {
            Operation::Decode => (block_set, data_set),
            _ => (data_set, block_set),
        };
        let data_buffers = known.iter().map(|cell| buffers[cell.index()]).collect();
        let block_buffers = block_cells.map(|cell| buffers[cell.index()]).collect();
        let known = known.len();
        let mut made = Self {
            codec,
            operation,
            have,
            want,
            data_buffers,
            block_buffers,
            data,
            blocks,
            known,
            length: place.bytes,
            first_seconds: 0.0,
        };
        made.run()?;
        made.first_seconds = start.elapsed().as_secs_f64();
        Ok(made)
    }
}

/// Returns, for each cell, the number of its buffer.
fn buffers_by_cell(codec: &LaneCodec) -> Vec<usize> {
    let mut buffers = vec![0; codec.code().cell_count()];
    for buffer in 0..codec.buffer_count() {
        codec.buffer_cells(buffer).iter().for_each(|cell| buffers[cell.index()] = buffer);
    }
    buffers
}

impl Subject for Blocks {
    fn run(&mut self) -> Result<(), Failure> {
        let mut buffers: Vec<Buffer<'_>> = Vec::new();
        buffers.resize_with(self.codec.buffer_count(), Buffer::default);
        let ((from, sources), (to, targets)) = match self.operation {
            Operation::Decode => {
                ((&self.block_buffers, &self.blocks), (&self.data_buffers, &mut self.data))
            }
            _ => ((&self.data_buffers, &self.data), (&self.block_buffers, &mut self.blocks)),
        };
        from.iter().zip(sources.iter()).for_each(|(&b, bytes)| buffers[b] = Buffer::Source(bytes));
        to.iter()
            .zip(targets.iter_mut())
            .for_each(|(&b, bytes)| buffers[b] = Buffer::Target(bytes));
        Ok(self.codec.compute(&self.have, &self.want, &mut buffers)?)
    }

    fn code(&self) -> (&Code, &'static str) {
        (self.codec.code(), self.codec.kernel_name())
    }

    fn length(&self) -> usize {
        self.length
    }

    fn data_shards(&self) -> usize {
        self.known
    }

    fn first_seconds(&self) -> f64 {
        self.first_seconds
    }
}
