//! Direct answers, prepared for a kernel that reads them as data.

#![allow(unsafe_code)]

use std::ops::Range;

use crate::error::{Error, Result};
use crate::plan::direct::sums::Sums;
use crate::plan::machine::LINE;
use crate::plan::program::CellLocation;
use crate::run::buffers::{Memory, PreparedKernel, Scratch, Table};
use crate::run::executable::Executable;
use crate::run::tiled::DirectRunner;
use crate::run::tiled::direct::DirectMemory;

/// Sums, with the kernel that computes them.
struct DirectKernel {
    sums: Sums,
    runner: DirectRunner,
    /// Number of rows of every buffer, and bytes of a packet.
    rows: usize,
    packet: usize,
}

/// Prepares sums over buffers of `rows` rows with packets of `packet` bytes. A solution of
/// equations is checked on `sample`, which has a strip of every buffer with packets of a cache
/// line.
///
/// # Errors
/// If the sums are wrong, which would be a bug.
pub(crate) fn prepare<'s>(
    sums: Sums,
    runner: DirectRunner,
    rows: &[usize],
    packet: usize,
    sample: impl FnOnce() -> &'s [Vec<u8>],
) -> Result<Executable> {
    let rows_each = rows.first().copied().unwrap_or(1);
    let kernel = DirectKernel { sums, runner, rows: rows_each, packet: LINE };
    if kernel.sums.is_solved && !kernel.is_right(sample()) {
        return Err(Error::internal("a solved sum of cells is wrong; it is not used"));
    }
    let DirectKernel { sums, runner, rows: rows_each, .. } = kernel;
    let boxed = |sums| -> Box<dyn PreparedKernel> {
        Box::new(DirectKernel { sums, runner, rows: rows_each, packet })
    };
    Ok(Executable::of_sums(sums, rows, packet, boxed))
}

impl DirectKernel {
    /// Whether the sums give the cells of a sample.
    fn is_right(&self, sample: &[Vec<u8>]) -> bool {
        let strip = self.rows * self.packet;
        let is_there = |cell: &CellLocation| {
            sample.get(cell.buffer).is_some_and(|bytes| bytes.len() == strip)
                && cell.row < self.rows
        };
        let packet =
            |cell: CellLocation| &sample[cell.buffer][cell.row * self.packet..][..self.packet];
        let Sums { inputs: read, outputs: written, terms, .. } = &self.sums;
        if !read.iter().chain(written).all(is_there) {
            return false;
        }
        let mut made = Scratch::new(written.len() * self.packet);
        let start = made.start();
        let (mut inputs, mut outputs) = (Table::new(), Table::new());
        let inputs = inputs.fill(read.len(), |n| packet(read[n]).as_ptr().cast_mut());
        let outputs = outputs.fill(written.len(), |n| start.wrapping_add(n * self.packet));
        let memory = DirectMemory { inputs, outputs, packet: self.packet, strip, strips: 1 };
        // SAFETY: inputs are packets of the sample, which are only read, and outputs are packets of
        // `made`, which no other code uses. There is one strip. After the kernel has run, all
        // outputs are initialised.
        let made = unsafe {
            (self.runner)(terms, &memory);
            std::slice::from_raw_parts(start, written.len() * self.packet)
        };
        written.iter().zip(made.chunks_exact(self.packet)).all(|(&cell, made)| packet(cell) == made)
    }
}

impl PreparedKernel for DirectKernel {
    unsafe fn run(&self, memory: &Memory<'_>, stripes: Range<usize>) {
        let strip = self.rows * self.packet;
        let start = |cell: CellLocation| {
            let offset = stripes.start * strip + cell.row * self.packet;
            memory.pointer(cell.buffer).wrapping_add(offset)
        };
        let (mut inputs, mut outputs) = (Table::new(), Table::new());
        let inputs = inputs.fill(self.sums.inputs.len(), |n| start(self.sums.inputs[n]));
        let outputs = outputs.fill(self.sums.outputs.len(), |n| start(self.sums.outputs[n]));
        let packet = self.packet;
        let memory = DirectMemory { inputs, outputs, packet, strip, strips: stripes.len() };
        // SAFETY: the caller vouches for the buffers of all stripes. Cells lie in the strips of
        // buffers, outputs apart from inputs. Runners exist only where the processor has the
        // features that they need.
        unsafe { (self.runner)(&self.sums.terms, &memory) };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::define::cells::NodeId;
    use crate::define::code::Code;
    use crate::define::erasure::combinations;
    use crate::plan::direct::DirectSolver;
    use crate::plan::direct::sums::{PlannedAfter, Terms};
    use crate::plan::layout::{BufferLayout, Layout};
    use crate::plan::transform::solve::recovery;
    use crate::run::buffers::{Buffer, Stores, enter};
    use crate::run::dispatch::{Kernel, WordKernel};
    use crate::run::threads::Threads;

    /// A code, and how its last data node and its first parity node are computed from the others.
    struct Case {
        code: Code,
        layout: Layout,
        solver: DirectSolver,
        sums: Sums,
    }

    fn case(spec: &str, packet: usize) -> Case {
        let code = Code::new(&spec.parse().unwrap()).unwrap();
        let layout = Layout::new(&code, BufferLayout::Node, packet);
        let solver = DirectSolver::new(&code, &layout).unwrap();
        let data = code.nodes().filter(|&node| code.holds_data(node)).count();
        let (lost, present): (Vec<NodeId>, Vec<NodeId>) =
            code.nodes().partition(|node| [data - 1, data].contains(&node.index()));
        let cells = |nodes: Vec<NodeId>| code.cells_of(nodes);
        let sums = solver.solve(&code, &layout, &cells(present), &cells(lost)).unwrap();
        Case { code, layout, solver, sums }
    }

    fn runners(code: &Code) -> Vec<DirectRunner> {
        match code.symbols() {
            None => Kernel::available().filter_map(|k| Some(k.runners()?.sums)).collect(),
            Some(_) => {
                WordKernel::available().filter_map(|k| Some(k.runners()?.products)).collect()
            }
        }
    }

    /// Computes the outputs of a case byte by byte.
    fn expected(case: &Case, shards: &[Vec<u8>], packet: usize) -> Vec<Vec<u8>> {
        let rows = case.layout.rows[0];
        let mut made = shards.to_vec();
        let length = shards[0].len();
        let places = (0..length).map(|at| (at / (rows * packet), at % packet, at / packet % rows));
        for (number, output) in case.sums.outputs.iter().enumerate() {
            for (strip, column, _) in places.clone().filter(|&(_, _, row)| row == output.row) {
                let byte = |cell: &CellLocation| {
                    shards[cell.buffer][(strip * rows + cell.row) * packet + column]
                };
                let sum = match &case.sums.terms {
                    Terms::Packets { inputs, ends } => {
                        let start = number.checked_sub(1).map_or(0, |before| ends[before]);
                        let terms = &inputs[start as usize..ends[number] as usize];
                        terms.iter().fold(0, |sum, &n| sum ^ byte(&case.sums.inputs[n as usize]))
                    }
                    Terms::Transform(_) => unreachable!("tested by itself"),
                    Terms::Words { field, factors } => {
                        let factors = factors[number * case.sums.inputs.len()..].iter();
                        let terms = factors.zip(&case.sums.inputs);
                        terms.fold(0, |sum, (&factor, cell)| {
                            sum ^ field.multiply(factor.into(), byte(cell).into()) as u8
                        })
                    }
                };
                made[output.buffer][(strip * rows + output.row) * packet + column] = sum;
            }
        }
        made
    }

    /// Every kernel, on packets that are shorter than a vector, as long as one or several vectors,
    /// or not a whole number of vectors, and on numbers of strips around those of a block; nothing
    /// else is written.
    #[test]
    fn kernels_compute_the_sums() {
        for (spec, packets) in [
            ("4+2", &[1, 8, 24, 64, 100, 513, 1024][..]),
            ("rdp:k=4", &[64][..]),
            ("backblaze:k=5,m=3", &[LINE][..]),
            ("zfec:k=11,m=7", &[LINE][..]),
            ("leopard8:k=9,m=5", &[LINE][..]),
        ] {
            for &packet in packets {
                let case = case(spec, packet);
                let rows = case.layout.rows[0];
                for strips in [1, 2, 3, 7, 8, 9, 21] {
                    let fill = |node: usize| -> Vec<u8> {
                        let bytes = 0..strips * rows * packet;
                        bytes.map(|at| (at % 251 * 7 + node * 31 + at / 251) as u8).collect()
                    };
                    let shards: Vec<Vec<u8>> = (0..case.code.node_count()).map(fill).collect();
                    let right = expected(&case, &shards, packet);
                    for runner in runners(&case.code) {
                        let made = run(&case, runner, packet, &shards);
                        assert!(made == right, "{spec} {packet} {strips}");
                    }
                }
            }
        }
    }

    fn run(case: &Case, runner: DirectRunner, packet: usize, shards: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let sample = || case.solver.sample(&case.code, &case.layout);
        let rows = Arc::clone(&case.layout.rows);
        let executable = prepare(case.sums.clone(), runner, &rows, packet, sample).unwrap();
        let mut made = shards.to_vec();
        let is_made = |node: usize| case.sums.outputs.iter().any(|cell| cell.buffer == node);
        let buffers = made.iter_mut().enumerate().map(|(node, shard)| {
            (node, if is_made(node) { Buffer::Target(shard) } else { Buffer::Source(shard) })
        });
        let threads = Threads { most: std::num::NonZeroUsize::new(1), bytes_each: 1 };
        let place = |places: &mut [_]| enter(places, buffers);
        executable.run_placed(place, |buffer| buffer, threads, Stores::Cached).unwrap();
        made
    }

    /// Changes one term or factor at a time; the sample notices it.
    #[test]
    fn wrong_sums_are_noticed() {
        for spec in ["4+2", "xcode:n=5", "backblaze:k=5,m=3"] {
            let case = case(spec, 64);
            let count = match &case.sums.terms {
                Terms::Packets { inputs, .. } => inputs.len(),
                Terms::Words { factors, .. } => factors.len(),
                Terms::Transform(_) => unreachable!("these codes are too small"),
            };
            for wrong in 0..count {
                let mut sums = case.sums.clone();
                match &mut sums.terms {
                    Terms::Packets { inputs, .. } => {
                        inputs[wrong] = (inputs[wrong] + 1) % sums.inputs.len() as u32;
                    }
                    Terms::Words { factors, .. } => factors[wrong] ^= 0x40,
                    Terms::Transform(_) => {}
                }
                let runner = runners(&case.code)[0];
                let sample = || case.solver.sample(&case.code, &case.layout);
                let refused = prepare(sums, runner, &case.layout.rows, 64, sample);
                assert!(refused.is_err_and(|error| error.to_string().contains("is wrong")));
            }
        }
    }

    /// Shards of random data with the parity of the definition, `strips` cache lines each.
    fn shards(code: &Code, strips: usize) -> Vec<Vec<u8>> {
        let symbols = code.symbols().unwrap();
        let byte = |node: usize| move |at: usize| (at % 251 * 7 + node * 31 + at / 251) as u8;
        let fill = |node: usize| (0..strips * LINE).map(byte(node)).collect();
        let mut shards: Vec<Vec<u8>> = (0..symbols.data_nodes()).map(fill).collect();
        for row in symbols.parity() {
            let mut parity = vec![0; strips * LINE];
            for (&factor, shard) in row.iter().zip(&shards) {
                symbols.field().multiples_of(factor).add(shard, &mut parity);
            }
            shards.push(parity);
        }
        shards
    }

    /// Every kernel: encodes wide codes and recovers the largest number of lost nodes, in tiles and
    /// strips of several sizes.
    #[test]
    fn kernels_transform() {
        for spec in ["backblaze:k=64,m=64", "backblaze:k=100,m=156", "leopard8:k=128,m=100"] {
            let code = Code::new(&spec.parse().unwrap()).unwrap();
            let (nodes, m) = (code.node_count(), code.tolerance());
            // The first m nodes in one order or another: data before parity, parity, mixed.
            let orders: [fn(usize) -> usize; 4] =
                [|n| n, |n| usize::MAX - n, |n| n * 101 % 257, |n| n * 67 % 257];
            for order in orders {
                let mut lost: Vec<usize> = (0..nodes).collect();
                lost.sort_by_key(|&node| order(node));
                lost.truncate(m);
                let layout = Layout::new(&code, BufferLayout::Node, LINE);
                let solver = DirectSolver::new(&code, &layout).unwrap();
                let (gone, present): (Vec<NodeId>, Vec<NodeId>) =
                    code.nodes().partition(|node| lost.contains(&node.index()));
                let (have, want) = (code.cells_of(present), code.cells_of(gone));
                let sums = solver.solve(&code, &layout, &have, &want).unwrap();
                assert!(matches!(sums.terms, Terms::Transform(_)), "{spec} {lost:?}");
                let case = Case { code: code.clone(), layout, solver, sums };
                for (runner, strips) in runners(&code).into_iter().zip([1, 3, 33, 70].repeat(9)) {
                    let right = shards(&code, strips);
                    let mut damaged = right.clone();
                    lost.iter().for_each(|&node| damaged[node].fill(0xEE));
                    assert!(run(&case, runner, LINE, &damaged) == right, "{spec} {lost:?}");
                }
            }
        }
    }

    /// Every way to lose nodes of small codes, recovered by a transform although products would
    /// cost less. Answers are tried on the sample before they are used, and wrong ones are refused.
    #[test]
    fn all_losses_of_small_codes_are_recovered() {
        let mut count = 0;
        for (family, (k, m)) in ["backblaze", "leopard8"]
            .into_iter()
            .flat_map(|family| (1..6).flat_map(move |k| (1..5).map(move |m| (family, (k, m)))))
        {
            let code = Code::new(&format!("{family}:k={k},m={m}").parse().unwrap()).unwrap();
            let layout = Layout::new(&code, BufferLayout::Node, LINE);
            let solver = DirectSolver::new(&code, &layout).unwrap();
            let (symbols, runner) = (code.symbols().unwrap(), runners(&code)[0]);
            for lost in (1..=m).flat_map(|lost| combinations(k + m, lost)) {
                let node = |&node: &usize| node as u8;
                let to: Vec<u8> = lost.iter().map(node).collect();
                let from = (0..k + m).filter(|node| !lost.contains(node)).take(k);
                let from: Vec<u8> = from.map(|node| node as u8).collect();
                let evaluation = symbols.evaluation().unwrap();
                let program = recovery(symbols.field(), evaluation, &from, &to).unwrap();
                let places = |nodes: &[u8]| -> Vec<CellLocation> {
                    nodes.iter().map(|&node| CellLocation { buffer: node.into(), row: 0 }).collect()
                };
                let sums = Sums {
                    inputs: places(&from),
                    outputs: places(&to),
                    terms: Terms::Transform(program),
                    is_solved: true,
                    planned: PlannedAfter::Never,
                };
                let sample = || solver.sample(&code, &layout);
                prepare(sums, runner, &layout.rows, LINE, sample)
                    .unwrap_or_else(|error| panic!("{family} {k}+{m} {lost:?}: {error}"));
                count += 1;
            }
        }
        assert_eq!(count, 2 * 936);
    }
}
