//! Kernels that run schedules as earlier libraries did: packet after packet, or data word after
//! data word.
//!
//! These kernels are for the lab. They repeat the conditions under which papers measured packet
//! sizes and orders of operations, so that the papers' findings can be checked on present machines.
//! Every operation is divided into steps of two operands: the first source of a target is copied,
//! each further one is XORed into it. A step runs over a whole packet, stripe by stripe, with plain
//! loads and stores of one width: packets are not divided into tiles, sums do not stay in
//! registers, and nothing bypasses the cache.
//!
//! - *Packetwise*: a step is one pass over one packet. This is Algorithm 1 of Luo, Xu and Plank,
//!   *An Efficient XOR-Scheduling Algorithm for Erasure Codes Encoding* (2009), and Jerasure runs a
//!   schedule in the same way.
//! - *Datawise*: consecutive steps that read the same packet are one pass. Each word of the packet
//!   is loaded once and goes to all targets before the next word is loaded. This is Algorithm 2 of
//!   that paper, if the operations are in data-first order.
//!
//! A compiler would widen such loops. [`xor_pass`] prevents that, so that a kernel named after 64
//! bits moves 64 bits at a time.
//!
//! Codes in words have no packets. A step over words covers [`WORDS_A_PASS`] bytes of its buffers,
//! and multiplies as [`Product`] says.

use std::ops::Range;
use std::sync::atomic::{Ordering, compiler_fence};

use crate::plan::program::Program;
use crate::plan::schedule::{Op, Slot};
use crate::run::buffers::{Memory, PreparedKernel, Scratch};
use crate::run::tiled::generic::{CellOperand, ScratchPlaces};
use crate::run::tiled::products::Product;
use crate::run::tiled::vector::Vector;

/// Largest number of targets of one pass; their addresses stay in registers.
const TARGETS_A_PASS: usize = 4;

/// Bytes of words that one pass covers. All cells of a small code then stay in a cache of 32 KiB.
/// (Jerasure covered whole buffers, zfec 8 KiB.)
const WORDS_A_PASS: usize = 4096;

/// The steps that one pass over a packet covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PacketScope {
    /// One step.
    Step,
    /// All consecutive steps that read the same packet.
    Source,
}

/// A program prepared for a kernel of the lab.
pub(crate) struct Untiled {
    program: Packets,
    runner: PacketRunner,
}

/// Runs a program over a range of stripes, a whole packet at a time.
///
/// Its safety contract is that of [`PreparedKernel::run`]. It exists only where the processor has
/// the features that it needs.
type PacketRunner = unsafe fn(&Packets, &Memory<'_>, Range<usize>);

impl Untiled {
    /// Prepares a program for the kernel that moves `bytes` bytes at a time; `None` if the
    /// processor has no registers of this width.
    pub(crate) fn new(program: &Program, pass: PacketScope, bytes: usize) -> Option<Self> {
        Some(Self { program: Packets::new(program, pass), runner: runner(bytes)? })
    }
}

impl PreparedKernel for Untiled {
    unsafe fn run(&self, memory: &Memory<'_>, stripes: Range<usize>) {
        // SAFETY: the caller's contract; the runner exists, so the processor has its features.
        unsafe { (self.runner)(&self.program, memory, stripes) }
    }
}

fn runner(bytes: usize) -> Option<PacketRunner> {
    match bytes {
        8 => Some(bits64),
        #[cfg(target_arch = "x86_64")]
        16 => is_x86_feature_detected!("sse2").then_some(bits128 as PacketRunner),
        #[cfg(target_arch = "aarch64")]
        16 => std::arch::is_aarch64_feature_detected!("neon").then_some(bits128 as PacketRunner),
        #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
        16 => Some(bits128),
        #[cfg(target_arch = "x86_64")]
        32 => is_x86_feature_detected!("avx2").then_some(bits256 as PacketRunner),
        #[cfg(target_arch = "x86_64")]
        64 => is_x86_feature_detected!("avx512f").then_some(bits512 as PacketRunner),
        _ => None,
    }
}

/// Defines a runner for a vector and the features that it needs.
macro_rules! runner {
    ($name:ident, $vector:ty, $($target:meta),*) => {
        /// # Safety
        /// As [`PacketRunner`].
        $(#[$target])*
        unsafe fn $name(program: &Packets, memory: &Memory<'_>, stripes: Range<usize>) {
            // SAFETY: the caller's contract; the features are enabled here.
            unsafe { program.run::<$vector>(memory, stripes) }
        }
    };
}

runner!(bits64, u64,);
#[cfg(target_arch = "x86_64")]
runner!(bits128, std::arch::x86_64::__m128i, target_feature(enable = "sse2"));
#[cfg(target_arch = "aarch64")]
runner!(bits128, std::arch::aarch64::uint8x16_t, target_feature(enable = "neon"));
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
runner!(bits128, std::arch::wasm32::v128,);
#[cfg(target_arch = "x86_64")]
runner!(bits256, std::arch::x86_64::__m256i, target_feature(enable = "avx2"));
#[cfg(target_arch = "x86_64")]
runner!(bits512, std::arch::x86_64::__m512i, target_feature(enable = "avx512f"));

/// A program as a list of passes.
struct Packets {
    passes: Vec<PacketPass>,
    /// The multiplications of the passes, which [`StepKind::Times`] numbers.
    products: Vec<Product>,
    /// Number of packets in the scratch.
    scratch: usize,
    /// Range of bytes of each packet that the program handles.
    columns: usize,
    /// Number of stripes that a pass covers as if they were one: more than 1 only for words.
    together: usize,
}

/// Steps that read the same packet and do the same with it.
struct PacketPass {
    kind: StepKind,
    source: CellOperand,
    /// At most [`TARGETS_A_PASS`].
    targets: Vec<CellOperand>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StepKind {
    /// Sets the target to zeros; there is no source.
    Zero,
    Copy,
    Xor,
    /// Sets the target to a multiple of the source, which may be the target itself.
    Times(usize),
}

impl Packets {
    fn new(program: &Program, pass: PacketScope) -> Self {
        let schedule = program.schedule();
        let places = ScratchPlaces::new(schedule);
        let operand = |slot| CellOperand::new(program, &places, slot);
        let (mut passes, mut products): (Vec<PacketPass>, Vec<Product>) = Default::default();
        let all = schedule.ops().iter().flat_map(|op| steps(program, op, &mut products));
        for (kind, source, target) in all.collect::<Vec<_>>() {
            let (source, target) = (operand(source), operand(target));
            let joins = |last: &&mut PacketPass| {
                let has_room = pass == PacketScope::Source && last.targets.len() < TARGETS_A_PASS;
                has_room && last.kind == kind && last.source == source
            };
            match passes.last_mut().filter(joins) {
                Some(last) => last.targets.push(target),
                None => passes.push(PacketPass { kind, source, targets: vec![target] }),
            }
        }
        let columns = program.columns().len();
        let together = schedule.field().map_or(1, |_| WORDS_A_PASS / columns);
        Self { passes, products, scratch: places.count(), columns, together }
    }

    /// Runs over the range `stripes`.
    ///
    /// # Safety
    /// As [`PreparedKernel::run`](crate::run::buffers::PreparedKernel::run); `V`'s instruction set
    /// is available.
    #[inline(always)]
    unsafe fn run<V: Vector>(&self, memory: &Memory<'_>, stripes: Range<usize>) {
        let row = (self.columns * self.together).div_ceil(64) * 64;
        let mut scratch = Scratch::new(self.scratch * row);
        let scratch = scratch.start();
        for stripe in stripes.clone().step_by(self.together) {
            let length = self.columns * self.together.min(stripes.end - stripe);
            let at = |operand: CellOperand| match operand {
                CellOperand::Cell { buffer, offset, strip } => {
                    memory.pointer(buffer).wrapping_add(stripe * strip + offset)
                }
                CellOperand::Temp(number) => scratch.wrapping_add(number * row),
            };
            for pass in &self.passes {
                // SAFETY: the operands lie in this stripe of the caller's buffers or in the
                // scratch, which has `row` bytes for every temporary. Stripes of words lie one
                // after the other.
                unsafe { pass.run::<V>(&self.products, at, length) };
            }
        }
    }
}

/// Divides an operation into steps: kind, source and target of each. If the target shares the
/// memory of one of the sources, that source needs no step, because its bytes are already in place.
/// A sum is multiplied in place; a single source is multiplied on its way to the target. The
/// multiplications are added to `products`.
fn steps(program: &Program, op: &Op, products: &mut Vec<Product>) -> Vec<(StepKind, Slot, Slot)> {
    let mut steps: Vec<(StepKind, Slot, Slot)> = sum_steps(program, op).collect();
    if let Some(field) = program.schedule().field().filter(|_| op.factor != 1) {
        products.push(Product::new(field, op.factor));
        let times = StepKind::Times(products.len() - 1);
        match &mut steps[..] {
            [(kind @ StepKind::Copy, ..)] => *kind = times,
            _ => steps.push((times, op.target, op.target)),
        }
    }
    steps
}

/// Divides the sum of an operation into steps.
fn sum_steps(program: &Program, op: &Op) -> impl Iterator<Item = (StepKind, Slot, Slot)> {
    let target = op.target;
    let place = program.location(target);
    let is_there = |source: &Slot| place.is_some() && program.location(*source) == place;
    let there = op.sources.iter().copied().find(is_there);
    let is_new = !op.accumulate && there.is_none();
    let zero = (is_new && op.sources.is_empty()).then_some((StepKind::Zero, target, target));
    let others = op.sources.clone().into_iter().filter(move |&source| Some(source) != there);
    let steps = others.enumerate().map(move |(number, source)| {
        let kind = if is_new && number == 0 { StepKind::Copy } else { StepKind::Xor };
        (kind, source, target)
    });
    zero.into_iter().chain(steps)
}

impl PacketPass {
    /// # Safety
    /// `at` returns addresses of `length` bytes, valid for reading, those of targets for writing.
    #[inline(always)]
    unsafe fn run<V: Vector>(
        &self,
        products: &[Product],
        at: impl Fn(CellOperand) -> *mut u8,
        length: usize,
    ) {
        let source = at(self.source).cast_const();
        // SAFETY: the caller's contract, passed on.
        unsafe {
            match (self.kind, &self.targets[..]) {
                (StepKind::Zero, targets) => {
                    targets.iter().for_each(|&target| at(target).write_bytes(0, length));
                }
                (StepKind::Times(number), targets) => {
                    for &target in targets {
                        products[number].run(source, at(target), length);
                    }
                }
                (StepKind::Copy, &[a]) => pass::<V, 1, true>(source, [a].map(at), length),
                (StepKind::Copy, &[a, b]) => pass::<V, 2, true>(source, [a, b].map(at), length),
                (StepKind::Copy, &[a, b, c]) => {
                    pass::<V, 3, true>(source, [a, b, c].map(at), length)
                }
                (StepKind::Copy, &[a, b, c, d]) => {
                    pass::<V, 4, true>(source, [a, b, c, d].map(at), length);
                }
                (StepKind::Xor, &[a]) => pass::<V, 1, false>(source, [a].map(at), length),
                (StepKind::Xor, &[a, b]) => pass::<V, 2, false>(source, [a, b].map(at), length),
                (StepKind::Xor, &[a, b, c]) => {
                    pass::<V, 3, false>(source, [a, b, c].map(at), length)
                }
                (StepKind::Xor, &[a, b, c, d]) => {
                    pass::<V, 4, false>(source, [a, b, c, d].map(at), length);
                }
                _ => {}
            }
        }
    }
}

/// Copies or XORs a packet into `N` others: whole vectors, then words and bytes.
///
/// # Safety
/// `source` is valid for reading `length` bytes, each of `targets` for reading and writing them.
#[inline(always)]
unsafe fn pass<V: Vector, const N: usize, const COPY: bool>(
    source: *const u8,
    targets: [*mut u8; N],
    length: usize,
) {
    // SAFETY: each pass ends before `length`.
    unsafe {
        let whole = xor_pass::<V, N, COPY>(source, targets, 0, length);
        let words = xor_pass::<u64, N, COPY>(source, targets, whole, length);
        xor_pass::<u8, N, COPY>(source, targets, words, length);
    }
}

/// Runs over the whole vectors from byte `at` on, one at a time, and returns the first byte after
/// them. The fence, which costs no instruction, keeps the compiler from joining neighbouring
/// vectors and from calling `memcpy` for a copy.
///
/// # Safety
/// As [`pass`].
#[inline(always)]
unsafe fn xor_pass<V: Vector, const N: usize, const COPY: bool>(
    source: *const u8,
    targets: [*mut u8; N],
    mut at: usize,
    length: usize,
) -> usize {
    while at + V::BYTES <= length {
        // SAFETY: `at` plus the vector's bytes does not exceed `length`.
        unsafe {
            let word = V::load(source.add(at));
            for target in targets {
                let target = target.add(at);
                let sum = if COPY { word } else { V::load(target).xor(word) };
                sum.store(target);
            }
        }
        compiler_fence(Ordering::SeqCst);
        at += V::BYTES;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::program::CellLocation;

    /// The toy code of the paper in data-first order (its table 3), with two packets a node.
    const DATA_FIRST: &str = "inputs 2 temps 0 outputs 2\no0 = i0\no1 = i0\no0 ^= i1\no1 ^= i1\n";

    fn program(text: &str, inputs: &[usize], outputs: &[usize]) -> Program {
        let places = |buffers: &[usize]| {
            buffers.iter().map(|&buffer| CellLocation { buffer, row: 0 }).collect::<Vec<_>>()
        };
        let schedule = text.parse().unwrap();
        Program::new(schedule, places(inputs), places(outputs), vec![1; 4], 64).unwrap()
    }

    fn shape(packets: &Packets) -> Vec<(StepKind, usize)> {
        packets.passes.iter().map(|pass| (pass.kind, pass.targets.len())).collect()
    }

    #[test]
    fn a_pass_covers_a_step_or_all_that_read_a_packet() {
        let program = program(DATA_FIRST, &[0, 1], &[2, 3]);
        let by_step =
            [(StepKind::Copy, 1), (StepKind::Copy, 1), (StepKind::Xor, 1), (StepKind::Xor, 1)];
        assert_eq!(shape(&Packets::new(&program, PacketScope::Step)), by_step);
        let by_source = [(StepKind::Copy, 2), (StepKind::Xor, 2)];
        assert_eq!(shape(&Packets::new(&program, PacketScope::Source)), by_source);
    }

    #[test]
    fn sums_are_taken_apart_and_what_is_in_place_stays() {
        let text = "inputs 3 temps 0 outputs 2\no0 = i0 ^ i1 ^ i2\no1 = 0\n";
        let apart = program(text, &[0, 1, 2], &[3, 0]);
        let steps =
            [(StepKind::Copy, 1), (StepKind::Xor, 1), (StepKind::Xor, 1), (StepKind::Zero, 1)];
        assert_eq!(shape(&Packets::new(&apart, PacketScope::Step)), steps);
        let in_place = program(text, &[0, 1, 2], &[1, 3]);
        let steps = [(StepKind::Xor, 1), (StepKind::Xor, 1), (StepKind::Zero, 1)];
        assert_eq!(shape(&Packets::new(&in_place, PacketScope::Step)), steps);
    }
}
