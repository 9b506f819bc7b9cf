//! The compiled kernel: a schedule as straight-line machine code.
//!
//! [`plan::registers`](crate::plan::registers) decides what happens in registers, [`assemble`]
//! makes the function of it, `x86_64` and [`aarch64`] write that for their processors,
//! [`exec_memory`] makes it executable. One pass over memory runs the whole schedule on one vector
//! of every packet, temporaries in registers. Sets that outgrow the cache run a second variant whose
//! stores bypass it.
//!
//! Compiling takes half a millisecond for 10+4, in which the tiled kernel runs over some megabytes;
//! so unless a compiled kernel is asked for by name, it is made when that many have been run over.
//! Before it touches anyone's data, compiled code runs on a small set of bytes and must give what
//! the interpreter gives; if it does not, or cannot be made executable, the tiled kernel of the
//! same instruction set serves.

#![allow(unsafe_code)]

mod aarch64;
pub(crate) mod assemble;
#[cfg(all(test, target_arch = "x86_64"))]
mod decoded;
pub(crate) mod exec_memory;
#[cfg(all(test, target_arch = "x86_64"))]
mod tests;
#[cfg(target_arch = "x86_64")]
mod x86_64;

use std::collections::BTreeSet;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error;
use crate::plan::interpret::interpret;
use crate::plan::registers::Allocation;
use crate::plan::schedule::Slot;
use crate::run::jit::assemble::{Assembler, Isa, LINE, PREFETCH_DISTANCE, Variant, Walk};
use crate::run::jit::exec_memory::ExecutableMemory;
use crate::run::kernel::{Compiled, Line, Memory};
use crate::run::program::{Footprint, Location, Program};
use crate::run::select::Compiling;

/// The most steps of one vector that are compiled. Code that outgrows the instruction cache still
/// runs four times as fast as tiles (measured up to 100+28, 35,000 steps); beyond, compiling takes
/// seconds.
const MAX_STEPS: usize = 128 * 1024;

/// Wide stripes: from this many streams that are only read on, processors' own prefetchers lose track. (On
/// Zen 4, from memory, 16+4 runs at 24 GB/s without and 17 with prefetching, 17+3 at 16 and 19, 20+4 at 12
/// and 17.)
const PREFETCH_FROM: usize = 17;

/// The variant that serves unless there is a reason for another.
const PLAIN: Variant = Variant { past_cache: false, stage_inputs: false, prefetch: false };

/// The bytes of a page: addresses that far apart fall into one set of the first-level cache.
const PAGE: usize = 4096;

/// The lines that a set of the first-level cache holds at least, on the processors of today.
const WAYS: usize = 8;

/// Its sets, as far as they follow from the address within a page.
const SETS: usize = PAGE / LINE;

/// Why a program was not compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The program has a shape that the compiler does not serve; tiled kernels do, as planned.
    Shape,
    /// The system forbids executable memory, for this reason.
    Forbidden(String),
    /// The compiled code computed wrong.
    Wrong,
}

/// Whether this process may make memory executable; otherwise the system's reason.
pub(crate) fn probe() -> Result<(), String> {
    if !cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
        return Err(format!("there is no compiler for {}", std::env::consts::ARCH));
    }
    // A page of zeros, which are never run.
    ExecutableMemory::new(&[0; LINE]).map(|_| ()).map_err(|error| error.to_string())
}

/// A program that is compiled once enough bytes have asked for it, and run by the tiled kernel until
/// then or where compiling fails.
pub(crate) struct Jit {
    program: Program,
    isa: Isa,
    tiled: Box<dyn Compiled>,
    how: Compiling,
    bytes: AtomicUsize,
    code: OnceLock<Result<Code, Refusal>>,
}

/// A program compiled for an instruction set.
struct Code {
    shape: Shape,
    /// The variant that is compiled first and tells whether compiling works.
    plain: Function,
    /// The others, in the order of [`Code::function`], each compiled when it is first needed.
    others: [OnceLock<Option<Function>>; 3],
    /// Sets of the first-level cache that a body touches if the buffer of that number begins at the first:
    /// a bit each, and a further entry where it touches one again.
    sets: Vec<(usize, u64)>,
    /// The buffers that are written.
    outputs: Vec<usize>,
    /// Whether so many buffers are read that prefetching them may pay.
    is_wide: bool,
}

/// How a program's packets are cut into bodies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// Every buffer is one stream of packets: stripes are merged.
    Flat {
        /// Bytes of one body.
        body: usize,
    },
    /// Strips of several packets, each a whole number of vectors.
    Strips(Walk),
}

impl Isa {
    /// Whether this processor has it.
    pub(crate) fn is_available(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => is_x86_feature_detected!("avx2"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vl => {
                is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl")
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => is_x86_feature_detected!("avx512f"),
            #[cfg(target_arch = "aarch64")]
            Self::Neon => std::arch::is_aarch64_feature_detected!("neon"),
            #[cfg(target_arch = "aarch64")]
            Self::NeonSha3 => std::arch::is_aarch64_feature_detected!("sha3"),
            _ => false,
        }
    }
}

/// What [`Assembler`] makes, in the calling convention that it follows.
#[cfg(target_arch = "x86_64")]
type Entry = unsafe extern "sysv64" fn(*mut *mut u8, usize, *mut u8);
#[cfg(not(target_arch = "x86_64"))]
type Entry = unsafe extern "C" fn(*mut *mut u8, usize, *mut u8);

struct Function {
    memory: ExecutableMemory,
    scratch: usize,
}

impl Jit {
    /// A program for an instruction set, `None` where the processor lacks it. `tiled` runs what is not
    /// compiled.
    pub(crate) fn prepare(
        program: &Program,
        isa: Isa,
        tiled: Option<Box<dyn Compiled>>,
        how: Compiling,
    ) -> Option<Box<dyn Compiled>> {
        let tiled = tiled.filter(|_| isa.is_available())?;
        let (program, bytes, code) = (program.clone(), AtomicUsize::new(0), OnceLock::new());
        Some(Box::new(Self { program, isa, tiled, how, bytes, code }))
    }

    /// The code of the variant with cached stores, an instruction a line.
    pub(crate) fn listing(program: &Program, isa: Isa) -> Option<String> {
        let shape = Shape::of(program, isa)?;
        let (allocation, _) = allocate(program, isa, PLAIN).ok()?;
        let assembler = Assembler::new(isa, program, &allocation, shape.walk(isa), PLAIN);
        assembler.listing().ok()
    }

    /// The compiled code, if it is time for it and there is any.
    fn code(&self, stripes: usize) -> Option<&Code> {
        let bytes = stripes * strips(&self.program);
        let total = self.bytes.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if total < self.how.patience {
            return None;
        }
        self.code.get_or_init(|| Code::compile(&self.program, self.isa)).as_ref().ok()
    }
}

impl Compiled for Jit {
    unsafe fn run(&self, memory: &Memory, stripes: Range<usize>) {
        let mut rest = stripes.clone();
        if let Some(code) = self.code(stripes.len()) {
            let (count, covered) = code.shape.bodies(stripes.len(), self.program.packet());
            if count > 0 {
                let buffers = 0..self.program.rows().len();
                let mut pointers: Vec<*mut u8> = buffers
                    .map(|b| memory.pointer(b).wrapping_add(stripes.start * self.program.strip(b)))
                    .collect();
                let variant = code.variant(&self.program, memory, &pointers, self.how.prefetch);
                let function = code.function(&self.program, self.isa, variant);
                // SAFETY: the caller vouches for the buffers of all stripes; `count` bodies stay
                // within the first `covered` of them; `prepare` asked for the instruction set.
                unsafe { function.call(&mut pointers, count) };
            }
            rest.start += covered;
        }
        if !rest.is_empty() {
            // SAFETY: the caller's contract, for the stripes that are left.
            unsafe { self.tiled.run(memory, rest) };
        }
    }

    fn fallback(&self) -> Option<String> {
        match self.code.get()?.as_ref().err()? {
            Refusal::Shape => None,
            Refusal::Forbidden(why) => Some(why.clone()),
            Refusal::Wrong => Some("its code computes wrong on this processor".to_owned()),
        }
    }
}

impl Code {
    /// Compiles and tries a program.
    fn compile(program: &Program, isa: Isa) -> Result<Self, Refusal> {
        let shape = Shape::of(program, isa).ok_or(Refusal::Shape)?;
        let plain = Function::compile(program, isa, shape, PLAIN)?;
        let Footprint { read, written, .. } = program.footprint();
        let buffers = |cells: &[Location]| -> BTreeSet<usize> {
            cells.iter().map(|cell| cell.buffer).collect()
        };
        let (sources, targets) = (buffers(&read), buffers(&written));
        let is_wide = sources.difference(&targets).count() >= PREFETCH_FROM;
        let touched: BTreeSet<Location> = read.into_iter().chain(written).collect();
        let sets = sets_by_buffer(program, &touched);
        let outputs = targets.into_iter().collect();
        Ok(Self { shape, plain, others: Default::default(), sets, outputs, is_wide })
    }

    /// What suits this call's memory.
    fn variant(
        &self,
        program: &Program,
        memory: &Memory,
        pointers: &[*mut u8],
        prefetch: bool,
    ) -> Variant {
        let past_cache =
            memory.past_cache(strips(program)) && self.lines_are_whole(program, pointers);
        let stage_inputs = self.lines_compete(pointers);
        let prefetch = prefetch && past_cache && self.is_wide;
        Variant { past_cache, stage_inputs, prefetch }
    }

    /// The code of a variant, or where that cannot be made the plain one's.
    fn function(&self, program: &Program, isa: Isa, variant: Variant) -> &Function {
        let other = match (variant.past_cache, variant.stage_inputs) {
            (false, false) => return &self.plain,
            (true, false) => &self.others[0],
            (false, true) => &self.others[1],
            (true, true) => &self.others[2],
        };
        let compile = || Function::compile(program, isa, self.shape, variant).ok();
        other.get_or_init(compile).as_ref().unwrap_or(&self.plain)
    }

    /// Whether the lines that one body touches are more than some set of the first-level cache
    /// holds. Sets follow from the address within a page.
    fn lines_compete(&self, pointers: &[*mut u8]) -> bool {
        // A number a set, bit by bit; what no longer fits into it stays in `beyond`.
        let (mut counts, mut beyond) = ([0_u64; WAYS.ilog2() as usize], 0);
        let mut full = 0;
        for &(buffer, sets) in &self.sets {
            let first = pointers[buffer].addr() / LINE % SETS;
            let mut carry = sets.rotate_left(first as u32);
            beyond |= full & carry;
            for bits in &mut counts {
                (*bits, carry) = (*bits ^ carry, *bits & carry);
            }
            full |= carry;
        }
        beyond != 0
    }

    /// Whether every body writes whole cache lines.
    fn lines_are_whole(&self, program: &Program, pointers: &[*mut u8]) -> bool {
        let whole = |bytes: usize| bytes.is_multiple_of(LINE);
        self.outputs.iter().all(|&buffer| {
            let columns = program.columns();
            let packets = whole(program.packet()) && whole(columns.start) && whole(columns.end);
            let strips = whole(program.strip(buffer)) && packets;
            whole(pointers[buffer].addr()) && (self.shape.is_flat() || strips)
        })
    }
}

/// The sets of the first-level cache that these packets of a body lie in, as [`Code`] keeps them.
fn sets_by_buffer(program: &Program, touched: &BTreeSet<Location>) -> Vec<(usize, u64)> {
    let mut sets: Vec<(usize, u64)> = Vec::new();
    for &location in touched {
        let set = 1 << (program.offset(location) / LINE % SETS);
        match sets.iter_mut().rev().find(|(buffer, of)| *buffer == location.buffer && of & set == 0)
        {
            Some((_, of)) => *of |= set,
            None => sets.push((location.buffer, set)),
        }
    }
    sets
}

/// The bytes of one stripe of all buffers.
fn strips(program: &Program) -> usize {
    program.rows().iter().sum::<usize>() * program.packet()
}

impl Shape {
    fn of(program: &Program, isa: Isa) -> Option<Self> {
        let (packet, vector) = (program.packet(), isa.vector());
        let columns = program.columns().len();
        let used = (0..program.rows().len()).filter(|&b| program.access(b) != (false, false));
        let mut rows: Vec<usize> = used.map(|buffer| program.rows()[buffer]).collect();
        rows.dedup();
        let [rows] = rows[..] else { return None };
        let largest_displacement = rows * packet + PREFETCH_DISTANCE;
        let ops = program.schedule().ops();
        let steps: usize = ops.iter().map(|op| op.sources.len() + 1).sum();
        if steps > MAX_STEPS || largest_displacement > i32::MAX as usize {
            return None;
        }
        if program.is_flat() {
            return Some(Self::Flat { body: LINE.max(vector) });
        }
        if !columns.is_multiple_of(vector) {
            return None;
        }
        let vectors = columns / vector;
        let wanted = (LINE / vector).max(1);
        let unroll = if vectors.is_multiple_of(wanted) { wanted } else { 1 };
        Some(Self::Strips(Walk { unroll, inner: vectors / unroll, strip: rows * packet }))
    }

    fn is_flat(self) -> bool {
        matches!(self, Self::Flat { .. })
    }

    fn walk(self, isa: Isa) -> Walk {
        match self {
            Self::Flat { body } => Walk { unroll: body / isa.vector(), inner: 1, strip: body },
            Self::Strips(walk) => walk,
        }
    }

    /// How often the function's outer loop runs for so many stripes, and how many stripes that
    /// covers.
    fn bodies(self, stripes: usize, packet: usize) -> (usize, usize) {
        match self {
            Self::Strips(_) => (stripes, stripes),
            Self::Flat { body } => {
                // The most stripes whose packets together are a whole number of bodies.
                let step = body / greatest_common_divisor(body, packet);
                let covered = stripes / step * step;
                (covered * packet / body, covered)
            }
        }
    }
}

/// The instructions for a variant. Inputs need no staging where they can be read once instead.
fn allocate(program: &Program, isa: Isa, variant: Variant) -> error::Result<(Allocation, Variant)> {
    let (schedule, streams) = (program.schedule(), program.streams());
    let machine = isa.machine(variant.past_cache);
    if variant.stage_inputs
        && let Some(allocation) = Allocation::reading_once(schedule, &streams, machine)
    {
        return Ok((allocation, Variant { stage_inputs: false, ..variant }));
    }
    Ok((Allocation::best(schedule, &streams, machine)?, variant))
}

fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

impl Function {
    fn compile(
        program: &Program,
        isa: Isa,
        shape: Shape,
        variant: Variant,
    ) -> Result<Self, Refusal> {
        let (allocation, variant) = allocate(program, isa, variant).map_err(|_| Refusal::Shape)?;
        let assembler = Assembler::new(isa, program, &allocation, shape.walk(isa), variant);
        let scratch = assembler.scratch_bytes();
        let code = assembler.assemble().map_err(Refusal::Forbidden)?;
        let memory = ExecutableMemory::new(&code);
        let memory = memory.map_err(|error| Refusal::Forbidden(error.to_string()))?;
        let function = Self { memory, scratch };
        if function.is_right(program, shape) { Ok(function) } else { Err(Refusal::Wrong) }
    }

    /// # Safety
    /// The pointers are the program's buffers, valid for what `count` bodies read and write; the
    /// processor has the instruction set; `count` is not 0.
    unsafe fn call(&self, pointers: &mut [*mut u8], count: usize) {
        let lines = self.scratch.div_ceil(LINE);
        let mut on_stack = [const { MaybeUninit::<Line>::uninit() }; SCRATCH_ON_STACK];
        let mut on_heap = Vec::new();
        let scratch = if lines <= on_stack.len() {
            on_stack.as_mut_ptr()
        } else {
            on_heap.resize(lines, MaybeUninit::new(Line([0; LINE])));
            on_heap.as_mut_ptr()
        };
        // SAFETY: the memory holds a function of this type, made by `Assembler`, which touches
        // what the caller vouches for, `pointers`, and `scratch_bytes` bytes of scratch, of which it
        // reads only what it has written.
        unsafe {
            let entry = std::mem::transmute::<*const u8, Entry>(self.memory.start());
            entry(pointers.as_mut_ptr(), count, scratch.cast());
        }
    }

    /// Runs a few bodies on bytes of a prime period and compares with the interpreter.
    fn is_right(&self, program: &Program, shape: Shape) -> bool {
        let packet = program.packet();
        // Two stripes, or as many as make two bodies.
        let stripes = match shape {
            Shape::Strips(_) => 2,
            Shape::Flat { body } => 2 * body / greatest_common_divisor(body, packet),
        };
        let mut buffers: Vec<Vec<Line>> = (0..program.rows().len())
            .map(|b| vec![Line([0; LINE]); (stripes * program.strip(b)).div_ceil(LINE)])
            .collect();
        let mut bytes: Vec<Vec<u8>> = (0..buffers.len())
            .map(|b| {
                (0..stripes * program.strip(b)).map(|i| (i % 251 * 7 + b * 31 + 1) as u8).collect()
            })
            .collect();
        for (lines, bytes) in buffers.iter_mut().zip(&bytes) {
            lines
                .iter_mut()
                .zip(bytes.chunks(LINE))
                .for_each(|(line, b)| line.0[..b.len()].copy_from_slice(b));
        }
        let mut pointers: Vec<*mut u8> =
            buffers.iter_mut().map(|lines| lines.as_mut_ptr().cast()).collect();
        let (count, _) = shape.bodies(stripes, packet);
        // SAFETY: each buffer holds `stripes` strips, and `count` bodies cover just these.
        unsafe { self.call(&mut pointers, count) };
        let cell = |bytes: &[Vec<u8>], slot: Slot| -> Vec<u8> {
            let Some(location) = program.location(slot) else { return Vec::new() };
            let strips = bytes[location.buffer].chunks(program.strip(location.buffer));
            let part = |s: &[u8]| s[program.offset(location)..][..program.columns().len()].to_vec();
            strips.flat_map(part).collect()
        };
        let schedule = program.schedule();
        let inputs: Vec<Vec<u8>> =
            (0..schedule.inputs()).map(|n| cell(&bytes, Slot::Input(n as u32))).collect();
        let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
        let Ok(expected) = interpret(schedule, &inputs) else { return false };
        for (lines, bytes) in buffers.iter().zip(&mut bytes) {
            lines
                .iter()
                .zip(bytes.chunks_mut(LINE))
                .for_each(|(line, b)| b.copy_from_slice(&line.0[..b.len()]));
        }
        (0..schedule.outputs())
            .all(|n| schedule.inputs() == 0 || cell(&bytes, Slot::Output(n as u32)) == expected[n])
    }
}

/// The lines of scratch that a call takes from its stack; more come from the heap.
const SCRATCH_ON_STACK: usize = 64;
