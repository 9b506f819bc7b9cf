//! Random schedules on random buffers: compares every kernel with the interpreter.

#![allow(unsafe_code)]

use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

#[cfg(target_pointer_width = "64")]
use crate::error::ErrorKind;
use crate::error::Result;
use crate::plan::execution::Execution;
use crate::plan::interpret::interpret;
use crate::plan::program::{CellLocation, Program};
use crate::plan::schedule::{Op, Schedule, Slot};
use crate::run::buffers::{Buffer, Memory, PreparedKernel, Stores, enter};
use crate::run::dispatch::{Kernel, KernelChoice, Serving};
use crate::run::executable::Executable;
use crate::run::jit::isa::Isa;
use crate::run::threads::Threads;

/// Smallest number of bytes between a page boundary and a buffer, and number of bytes left after
/// each buffer.
const MARGIN: usize = 64;
const PAGE: usize = 4096;

/// Runs an executable over buffers, each with its number.
fn run<'b>(
    executable: &Executable,
    buffers: impl IntoIterator<Item = (usize, Buffer<'b>)>,
    threads: Threads,
    stores: Stores,
) -> Result<()> {
    executable.run_placed(|places| enter(places, buffers), |buffer| buffer, threads, stores)
}

/// Target of an operation of a random schedule.
#[derive(Debug, Clone, Copy)]
enum Target {
    Temp,
    Output,
    /// The target of an earlier operation, to which this one adds. Compilers refuse such schedules;
    /// tiled kernels accept them.
    Earlier,
}

fn ops() -> impl Strategy<Value = Vec<(Target, Vec<Index>)>> {
    let made = || prop_oneof![Just(Target::Temp), Just(Target::Output)];
    let added = prop_oneof![2 => made(), 1 => Just(Target::Earlier)].boxed();
    let list = |target| vec((target, vec(any::<Index>(), 0..12)), 1..40);
    prop_oneof![4 => list(made().boxed()), 1 => list(added)]
}

/// Number of temporaries, or of outputs, that operations compute.
fn made(ops: &[Op], outputs: bool) -> usize {
    let is_one = |op: &&Op| !op.accumulate && matches!(op.target, Slot::Output(_)) == outputs;
    ops.iter().filter(is_one).count()
}

/// Makes a schedule whose operations read the given choices among the values computed before.
fn schedule(inputs: usize, ops: &[(Target, Vec<Index>)]) -> Schedule {
    let mut ready: Vec<Slot> = (0..inputs as u32).map(Slot::Input).collect();
    let mut list: Vec<Op> = Vec::new();
    for (target, sources) in ops {
        let mut sources: Vec<Slot> = sources.iter().map(|index| *index.get(&ready)).collect();
        sources.sort_unstable();
        sources.dedup();
        let target = match target {
            Target::Temp => Slot::Temp(made(&list, false) as u32),
            Target::Output => Slot::Output(made(&list, true) as u32),
            Target::Earlier => {
                let target = ready[inputs..].last().copied();
                sources.retain(|&source| Some(source) != target);
                list.extend(target.map(|target| Op::add(target, sources)));
                continue;
            }
        };
        list.push(Op::assign(target, sources));
        ready.push(target);
    }
    if made(&list, true) == 0 {
        list.push(Op::assign(Slot::Output(0), ready));
    }
    Schedule::new(inputs, made(&list, false), made(&list, true), list).unwrap()
}

/// Places of the cells.
#[derive(Debug, Clone)]
struct Layout {
    rows: usize,
    packet: usize,
    stripes: usize,
    /// Source of a permutation of the places; inputs and outputs share buffers.
    order: Vec<Index>,
    /// Whether the first output takes the first input's place, where that is legal.
    in_place: bool,
    /// Distances from a page boundary to each buffer, used in turn.
    offsets: Vec<usize>,
}

fn layouts() -> impl Strategy<Value = Layout> {
    let packets =
        prop_oneof![1..=130_usize, select(vec![8, 16, 32, 64, 96, 128, 192, 256, 320, 4096])];
    let offsets =
        prop_oneof![Just(vec![0]), Just(vec![0, 64, 320, 1024]), vec(0..128_usize, 1..5),];
    (1..=4_usize, packets, 0..=9_usize, vec(any::<Index>(), 8), any::<bool>(), offsets).prop_map(
        |(rows, packet, stripes, order, in_place, offsets)| Layout {
            rows,
            packet,
            stripes,
            order,
            in_place,
            offsets,
        },
    )
}

/// Binds a schedule to its places.
fn program(schedule: &Schedule, layout: &Layout) -> Program {
    let cells = schedule.inputs() + schedule.outputs();
    let mut places: Vec<CellLocation> = (0..cells)
        .map(|n| CellLocation { buffer: n / layout.rows, row: n % layout.rows })
        .collect();
    for (n, index) in (0..cells).rev().zip(layout.order.iter().cycle()) {
        places.swap(n, index.index(n + 1));
    }
    let (inputs, outputs) = places.split_at(schedule.inputs());
    let rows = vec![layout.rows; cells.div_ceil(layout.rows)];
    let bind = |outputs: Vec<CellLocation>| {
        Program::new(schedule.clone(), inputs.to_vec(), outputs, rows.clone(), layout.packet)
    };
    let mut shared = outputs.to_vec();
    shared[0] = inputs[0];
    match bind(shared) {
        Ok(program) if layout.in_place => program,
        _ => bind(outputs.to_vec()).unwrap(),
    }
}

/// Ranges of the bytes of a cell in its buffer, packet by packet.
fn packets(program: &Program, location: CellLocation, stripes: usize) -> Vec<Range<usize>> {
    let strip = program.strip(location.buffer);
    let packet = |stripe| stripe * strip + location.row * program.packet();
    (0..stripes).map(|stripe| packet(stripe)..packet(stripe) + program.packet()).collect()
}

/// Bytes of a buffer at an offset from a page boundary, with known bytes around them.
struct Guarded {
    memory: Vec<u8>,
    at: Range<usize>,
}

impl Guarded {
    fn new(bytes: &[u8], offset: usize) -> Self {
        let mut memory = vec![0xC3; bytes.len() + offset + 2 * PAGE + MARGIN];
        let start = MARGIN + memory[MARGIN..].as_ptr().align_offset(PAGE) + offset;
        let at = start..start + bytes.len();
        memory[at.clone()].copy_from_slice(bytes);
        Self { memory, at }
    }

    fn guards_live(&self) -> bool {
        let around = self.memory[..self.at.start].iter().chain(&self.memory[self.at.end..]);
        around.copied().all(|byte| byte == 0xC3)
    }
}

/// Contents of the buffers before the run: bytes of a prime period.
fn before(program: &Program, stripes: usize) -> Vec<Vec<u8>> {
    let byte = |buffer: usize, i: usize| (73 * (i + 1) * (buffer + 1) % 251) as u8;
    let buffer = |b| (0..stripes * program.strip(b)).map(|i| byte(b, i)).collect();
    (0..program.rows().len()).map(buffer).collect()
}

/// Contents of the buffers after the run: outputs as interpreted, all else as before.
fn after(program: &Program, before: &[Vec<u8>], stripes: usize) -> Vec<Vec<u8>> {
    let schedule = program.schedule();
    let cell = |n: usize| -> Vec<u8> {
        let location = program.location(Slot::Input(n as u32)).unwrap();
        let packets = packets(program, location, stripes).into_iter();
        packets.flat_map(|packet| before[location.buffer][packet].to_vec()).collect()
    };
    let inputs: Vec<Vec<u8>> = (0..schedule.inputs()).map(cell).collect();
    let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
    let mut after = before.to_vec();
    for (n, output) in interpret(schedule, &inputs).unwrap().iter().enumerate() {
        let location = program.location(Slot::Output(n as u32)).unwrap();
        let packets = packets(program, location, stripes).into_iter();
        for (packet, bytes) in packets.zip(output.chunks(program.packet())) {
            after[location.buffer][packet].copy_from_slice(bytes);
        }
    }
    after
}

fn check(program: &Program, layout: &Layout, kernel: Kernel) -> Result<(), TestCaseError> {
    let before = before(program, layout.stripes);
    let after = after(program, &before, layout.stripes);
    let serving = Serving::packets(KernelChoice::Only(kernel), kernel, false);
    let execution = Execution::of_program(program.clone(), serving.target()).unwrap();
    let is_left_out = matches!(execution.parts[0].variants, Some(Err(_)));
    let executable = serving.prepare(execution).unwrap();
    for stores in [Stores::Cached, Stores::NonTemporal] {
        let offsets = layout.offsets.iter().cycle();
        let mut memory: Vec<Guarded> = before
            .iter()
            .zip(offsets)
            .map(|(bytes, &offset)| Guarded::new(bytes, offset))
            .collect();
        let mut buffers: Vec<Buffer<'_>> = Vec::new();
        for (number, guarded) in memory.iter_mut().enumerate() {
            let written = program.access(number).1;
            let bytes = &mut guarded.memory[guarded.at.clone()];
            buffers.push(if written { Buffer::Target(bytes) } else { Buffer::Source(bytes) });
        }
        let buffers = buffers.into_iter().enumerate();
        let threads = Threads { most: NonZeroUsize::new(1), bytes_each: 1 };
        run(&executable, buffers, threads, stores).unwrap();
        let fallback = executable.fallback();
        prop_assert_eq!(fallback.is_some(), is_left_out, "{:?}", fallback);
        for (number, (guarded, after)) in memory.iter().zip(&after).enumerate() {
            let same = guarded.memory[guarded.at.clone()] == **after;
            prop_assert!(same, "buffer {} on {}, {:?}", number, kernel, stores);
            prop_assert!(guarded.guards_live(), "around {} on {}, {:?}", number, kernel, stores);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn every_kernel_is_the_interpreter(
        inputs in 1..=40_usize,
        ops in ops(),
        layout in layouts(),
    ) {
        let program = program(&schedule(inputs, &ops), &layout);
        for kernel in Kernel::available() {
            check(&program, &layout, kernel)?;
        }
    }
}

/// A strip with shorter packets is run in a copy with whole packets, and the memory may be too
/// small for this copy.
#[cfg(target_pointer_width = "64")]
#[test]
fn packets_that_no_memory_holds_are_refused() {
    let schedule: Schedule = "inputs 1 temps 0 outputs 1\no0 = i0\n".parse().unwrap();
    let [input, output] = [0, 1].map(|buffer| vec![CellLocation { buffer, row: 0 }]);
    let program = Program::new(schedule, input, output, vec![1; 2], 1 << 60).unwrap();
    let serving = Serving::packets(KernelChoice::Auto, Kernel::Scalar, false);
    let executable = serving.prepare(Execution::of_program(program, None).unwrap()).unwrap();
    let (source, mut target) = ([1; 10], [2; 10]);
    let buffers = [Buffer::Source(&source), Buffer::Target(&mut target)].into_iter().enumerate();
    let threads = Threads { most: NonZeroUsize::new(1), bytes_each: 1 };
    let error = run(&executable, buffers, threads, Stores::Cached).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Memory, "{error}");
    assert_eq!(target, [2; 10]);
}

/// Computes nothing, and notes the stripes that it is asked to run over.
struct Notes(Arc<Mutex<Vec<Range<usize>>>>);

impl PreparedKernel for Notes {
    unsafe fn run(&self, _: &Memory<'_>, stripes: Range<usize>) {
        self.0.lock().unwrap().push(stripes);
    }
}

/// If packets are smaller than the body of compiled code, only the last thread has stripes that do
/// not fill a whole body; the tiled kernel runs these.
#[cfg_attr(target_family = "wasm", ignore = "there are no threads")]
#[test]
fn threads_get_whole_bodies() {
    let packets = "inputs 1 temps 0 outputs 1\no0 = i0\n";
    let words = "inputs 1 temps 0 outputs 1 field 32 0x100400007\no0 = 2 * i0\n";
    for (schedule, packet, together) in [(packets, 8, 8), (packets, 96, 2), (words, 64, 2)] {
        let [input, output] = [0, 1].map(|buffer| vec![CellLocation { buffer, row: 0 }]);
        let schedule = schedule.parse().unwrap();
        let program = Program::new(schedule, input, output, vec![1; 2], packet).unwrap();
        let execution = Execution::of_program(program, Some(Isa::Avx2.target())).unwrap();
        let notes = Arc::default();
        let prepare =
            |_| -> Result<Box<dyn PreparedKernel>> { Ok(Box::new(Notes(Arc::clone(&notes)))) };
        let executable = Executable::new(execution, prepare).unwrap();
        let stripes = 100_001;
        let [source, mut target] = [(); 2].map(|()| vec![0; stripes * packet]);
        let buffers = [Buffer::Source(&source), Buffer::Target(&mut target)];
        let threads = Threads { most: NonZeroUsize::new(3), bytes_each: 1 };
        run(&executable, buffers.into_iter().enumerate(), threads, Stores::Cached).unwrap();
        let mut ranges = std::mem::take(&mut *notes.lock().unwrap());
        ranges.sort_by_key(|range| range.start);
        assert!(ranges.len() > 3, "{ranges:?}");
        let is_whole = |range: &Range<usize>| range.start.is_multiple_of(together);
        assert!(ranges.iter().all(is_whole), "{packet}: {ranges:?}");
        assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start), "{ranges:?}");
        assert_eq!((ranges[0].start, ranges[ranges.len() - 1].end), (0, stripes));
    }
}
