//! The code that is emitted, checked without the processor: an outside disassembler (yaxpeax-arm)
//! decodes it, and what it decodes is run on symbols.
//!
//! A vector register holds a set of symbols, whose XOR it is; a vector of a buffer begins as a symbol
//! of its own. So one run shows what the function computes of any bytes. The machine below knows just
//! the instructions that are expected, lets them read and write just what is theirs, and has every
//! buffer at an odd address.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use yaxpeax_arch::{Arch, Decoder, U8Reader};
use yaxpeax_arm::armv8::a64::{
    ARMv8, Instruction, Opcode, Operand as Op, SIMDSizeCode as Simd, ShiftStyle, SizeCode,
};

use crate::plan::interpret::interpret;
use crate::plan::registers::Allocation;
use crate::plan::schedule::{Op as Operation, Schedule, Slot};
use crate::run::jit::assemble::{Assembler, Isa, LINE, Variant, Walk};
use crate::run::program::{Location, Program};

const POINTERS: u64 = 1 << 56;
const SCRATCH: u64 = 2 << 56;
const STACK: u64 = 3 << 56;
const BUFFERS: u64 = 4 << 56;
/// What general and vector registers hold that are not arguments.
const UNKNOWN: u64 = 5 << 56;
const SP: usize = 31;

fn buffer(number: usize) -> u64 {
    BUFFERS + ((number as u64) << 40) + 3
}

/// The XOR of these.
type Sum = BTreeSet<u64>;

fn sum(a: &Sum, b: &Sum) -> Sum {
    a.symmetric_difference(b).copied().collect()
}

/// A function to be checked.
struct Case {
    program: Program,
    isa: Isa,
    variant: Variant,
    walk: Walk,
    count: usize,
}

impl Case {
    fn with_assembler<T>(&self, then: impl FnOnce(Assembler<'_>) -> T) -> T {
        let machine = self.isa.machine(self.variant.past_cache);
        let allocation =
            Allocation::best(self.program.schedule(), &self.program.streams(), machine).unwrap();
        let &Self { ref program, isa, variant, walk, .. } = self;
        then(Assembler::new(isa, program, &allocation, walk, variant))
    }

    /// Where all vectors of a cell lie that the function handles.
    fn vectors(&self, slot: Slot) -> Vec<u64> {
        let Location { buffer: number, row } = self.program.location(slot).unwrap();
        let columns = self.walk.unroll * self.walk.inner;
        let at = |stripe, column| stripe * self.walk.strip + row * self.program.packet() + column;
        (0..self.count)
            .flat_map(|stripe| (0..columns).map(move |column| at(stripe, 16 * column)))
            .map(|offset| buffer(number) + offset as u64)
            .collect()
    }

    fn inputs(&self) -> Vec<Vec<u64>> {
        (0..self.program.schedule().inputs() as u32).map(|n| self.vectors(Slot::Input(n))).collect()
    }

    /// What all buffers' vectors must hold in the end that are to change, by the interpreter: input
    /// `n` is all zeros but for a one in byte `n`, so an output tells which inputs it sums.
    fn expected(&self) -> BTreeMap<u64, Sum> {
        let schedule = self.program.schedule();
        let inputs = self.inputs();
        let one = |n| (0..inputs.len()).map(|byte| u8::from(byte == n)).collect();
        let ones: Vec<Vec<u8>> = (0..inputs.len()).map(one).collect();
        let cells: Vec<&[u8]> = ones.iter().map(Vec::as_slice).collect();
        let mut expected = BTreeMap::new();
        for (n, summed) in interpret(schedule, &cells).unwrap().iter().enumerate() {
            for (vector, place) in self.vectors(Slot::Output(n as u32)).into_iter().enumerate() {
                let sources = (0..inputs.len()).filter(|&input| summed[input] == 1);
                expected.insert(place, sources.map(|input| inputs[input][vector]).collect());
            }
        }
        expected
    }

    fn check(&self) {
        let code = self.with_assembler(|assembler| assembler.assemble().unwrap());
        let instructions = decoded(&code);
        let listing = self.with_assembler(|assembler| assembler.listing().unwrap());
        let lines: Vec<String> = instructions.iter().enumerate().map(printed).collect();
        assert_eq!(listing.lines().collect::<Vec<_>>(), lines);
        let outputs = self.expected();
        let mut machine = Machine::new(self, &outputs);
        machine.run(&instructions);
        let written: BTreeMap<u64, Sum> =
            machine.vectors.into_iter().filter(|(place, _)| *place >= BUFFERS).collect();
        assert_eq!(written, outputs, "{}\n{listing}", self.program.schedule());
    }
}

fn decoded(code: &[u8]) -> Vec<Instruction> {
    let decoder = <ARMv8 as Arch>::Decoder::default();
    let mut reader = U8Reader::new(code);
    (0..code.len() / 4).map(|_| decoder.decode(&mut reader).unwrap()).collect()
}

/// A line of the listing; jumps name the number of an instruction.
fn printed((number, instruction): (usize, &Instruction)) -> String {
    let to = |offset: i64| number as i64 + offset / 4;
    match (instruction.opcode, instruction.operands) {
        (Opcode::B, [Op::PCOffset(offset), ..]) => format!("{number:5}  b {}", to(offset)),
        (Opcode::CBZ, [Op::Register(SizeCode::X, counter), Op::PCOffset(offset), ..]) => {
            format!("{number:5}  cbz x{counter}, {}", to(offset))
        }
        _ => format!("{number:5}  {instruction}"),
    }
}

/// A processor that knows the instructions of one instruction set that are expected.
struct Machine {
    general: [u64; 32],
    vector: Vec<Sum>,
    /// Addresses in `pointers` and on the stack.
    words: BTreeMap<u64, u64>,
    /// Vectors in the buffers (those that were written) and the scratch, halves on the stack.
    vectors: BTreeMap<u64, Sum>,
    /// What may be read of the buffers before it is written.
    readable: BTreeSet<u64>,
    writable: BTreeSet<u64>,
    scratch: u64,
    ternary: bool,
}

impl Machine {
    fn new(case: &Case, outputs: &BTreeMap<u64, Sum>) -> Self {
        let mut general: [u64; 32] = std::array::from_fn(|n| UNKNOWN + n as u64);
        general[..3].copy_from_slice(&[POINTERS, case.count as u64, SCRATCH]);
        general[SP] = STACK;
        let pointers = (0..case.program.rows().len()).map(|b| (POINTERS + 8 * b as u64, buffer(b)));
        Self {
            general,
            vector: (0..32).map(|n| Sum::from([UNKNOWN + n])).collect(),
            words: pointers.collect(),
            vectors: BTreeMap::new(),
            readable: case.inputs().concat().into_iter().collect(),
            writable: outputs.keys().copied().collect(),
            scratch: case.with_assembler(|assembler| assembler.scratch_bytes()) as u64,
            ternary: case.isa == Isa::NeonSha3,
        }
    }

    /// Runs a function up to its return, and checks that it gives back what the caller wants back.
    fn run(&mut self, instructions: &[Instruction]) {
        let before = (self.general, self.vector.clone());
        let mut next = 0_i64;
        loop {
            let instruction = &instructions[usize::try_from(next).unwrap()];
            match (instruction.opcode, instruction.operands) {
                (Opcode::RET, [Op::Register(SizeCode::X, 30), ..]) => break,
                (Opcode::B, [Op::PCOffset(offset), ..]) => next += offset / 4,
                (Opcode::CBZ, [Op::Register(SizeCode::X, n), Op::PCOffset(offset), ..]) => {
                    let taken = self.general[usize::from(n)] == 0;
                    next += if taken { offset / 4 } else { 1 };
                }
                (opcode, operands) => {
                    self.step(opcode, operands);
                    next += 1;
                }
            }
        }
        assert_eq!(self.general[18..], before.0[18..]);
        assert_eq!(self.vector[8..16], before.1[8..16]);
    }

    fn step(&mut self, opcode: Opcode, operands: [Op; 4]) {
        match (opcode, operands) {
            (Opcode::EOR | Opcode::EOR3, _) => self.xor(opcode, operands),
            (Opcode::ORR, [to, a, b, Op::Nothing]) if a == b => {
                self.vector[vector(to)] = self.vector[vector(a)].clone();
            }
            (
                Opcode::MOVI,
                [Op::SIMDRegisterElements(Simd::Q, to, Simd::D), Op::Imm64(0), Op::Nothing, _],
            ) => self.vector[usize::from(to)].clear(),
            (Opcode::PRFUM, [Op::PrefetchOp(2), at, Op::Nothing, _]) => {
                assert!(self.address(at) >= BUFFERS);
            }
            (Opcode::LDR, [to, at, Op::Nothing, _]) => self.load(to, self.address(at)),
            (Opcode::STR, [from, at, Op::Nothing, _]) => self.store(from, self.address(at)),
            (Opcode::LDP, [a, b, at, _]) => {
                let (at, size) = (self.address(at), size(a));
                self.load(a, at);
                self.load(b, at + size);
            }
            (Opcode::STP | Opcode::STNP, [a, b, at, _]) => {
                let (at, size) = (self.address(at), size(a));
                self.store(a, at);
                self.store(b, at + size);
            }
            _ => self.count(opcode, operands),
        }
    }

    fn xor(&mut self, opcode: Opcode, [to, a, b, c]: [Op; 4]) {
        let mut result = sum(&self.vector[vector(a)], &self.vector[vector(b)]);
        if opcode == Opcode::EOR3 {
            assert!(self.ternary, "a three-input XOR without the feature");
            result = sum(&result, &self.vector[vector(c)]);
        } else {
            assert_eq!(c, Op::Nothing);
        }
        self.vector[vector(to)] = result;
    }

    /// Instructions on general registers.
    fn count(&mut self, opcode: Opcode, operands: [Op; 4]) {
        let (to, value) = match (opcode, operands) {
            (Opcode::ADD | Opcode::SUB, [Op::RegisterOrSP(_, to), a, by, Op::Nothing]) => {
                let a = self.general[general(a)];
                let by = match by {
                    Op::Immediate(by) => u64::from(by),
                    Op::ImmShift(by, 12) => u64::from(by) << 12,
                    _ => panic!("{opcode:?} {operands:?}"),
                };
                (to, if opcode == Opcode::ADD { a + by } else { a - by })
            }
            (
                Opcode::ADD,
                [Op::Register(_, to), a, Op::RegShift(ShiftStyle::LSL, 0, SizeCode::X, b), _],
            ) => (to, self.general[general(a)] + self.general[usize::from(b)]),
            (Opcode::MOVZ, [Op::Register(_, to), Op::ImmShift(part, shift), ..]) => {
                (to, u64::from(part) << shift)
            }
            (Opcode::MOVK, [Op::Register(_, to), Op::ImmShift(part, shift), ..]) => {
                let others = self.general[usize::from(to)] & !(0xFFFF << shift);
                (to, others | u64::from(part) << shift)
            }
            _ => panic!("{opcode:?} {operands:?} is not expected"),
        };
        self.set(to, value);
    }

    fn set(&mut self, to: u16, value: u64) {
        assert!(![18, 29, 30].contains(&to), "x{to} is not for functions");
        self.general[usize::from(to)] = value;
    }

    fn address(&self, at: Op) -> u64 {
        match at {
            Op::RegPreIndex(base, offset, false) => {
                self.general[usize::from(base)].checked_add_signed(offset.into()).unwrap()
            }
            _ => panic!("{at:?} is not expected"),
        }
    }

    fn on_stack(&self, at: u64) -> bool {
        (self.general[SP]..STACK).contains(&at) && self.general[SP].is_multiple_of(16)
    }

    fn load(&mut self, to: Op, at: u64) {
        match to {
            Op::Register(SizeCode::X, to) => self.set(to, self.words[&at]),
            Op::SIMDRegister(Simd::D, to) if self.on_stack(at) => {
                self.vector[usize::from(to)] = self.vectors[&at].clone();
            }
            Op::SIMDRegister(Simd::Q, to) => {
                let written = self.vectors.get(&at).cloned();
                let untouched = || self.readable.contains(&at).then(|| Sum::from([at]));
                let value = written.or_else(untouched);
                self.vector[usize::from(to)] = value.unwrap_or_else(|| panic!("reads {at:#x}"));
            }
            _ => panic!("{to:?} is not expected"),
        }
    }

    fn store(&mut self, from: Op, at: u64) {
        match from {
            Op::Register(SizeCode::X, from) => {
                assert!(self.on_stack(at) || self.words.contains_key(&at), "writes {at:#x}");
                self.words.insert(at, self.general[usize::from(from)]);
            }
            Op::SIMDRegister(Simd::D, from) if self.on_stack(at) => {
                self.vectors.insert(at, self.vector[usize::from(from)].clone());
            }
            Op::SIMDRegister(Simd::Q, from) => {
                let in_scratch = (SCRATCH..SCRATCH + self.scratch).contains(&at);
                assert!(
                    self.writable.contains(&at) || (in_scratch && at.is_multiple_of(16)),
                    "writes {at:#x}"
                );
                self.vectors.insert(at, self.vector[usize::from(from)].clone());
            }
            _ => panic!("{from:?} is not expected"),
        }
    }
}

/// The number of a whole vector register.
fn vector(operand: Op) -> usize {
    match operand {
        Op::SIMDRegisterElements(Simd::Q, number, Simd::B) => number.into(),
        _ => panic!("{operand:?} is not expected"),
    }
}

fn general(operand: Op) -> usize {
    match operand {
        Op::Register(SizeCode::X, number) if number < 31 => number.into(),
        Op::RegisterOrSP(SizeCode::X, number) => number.into(),
        _ => panic!("{operand:?} is not expected"),
    }
}

/// The bytes that a register takes in memory.
fn size(operand: Op) -> u64 {
    match operand {
        Op::SIMDRegister(Simd::Q, _) => 16,
        Op::SIMDRegister(Simd::D, _) | Op::Register(SizeCode::X, _) => 8,
        _ => panic!("{operand:?} is not expected"),
    }
}

const ISAS: [Isa; 2] = [Isa::Neon, Isa::NeonSha3];

fn variants() -> impl Iterator<Item = Variant> {
    [(false, false), (true, false), (false, true), (true, true)]
        .into_iter()
        .map(|(past_cache, stage_inputs)| Variant { past_cache, stage_inputs, prefetch: false })
}

/// A schedule whose operation `n` sums those of the cells before it that the bits of `masks[n]` name,
/// and makes an output where the highest bit is set, or at the end.
fn schedule(inputs: usize, masks: &[u64]) -> Schedule {
    let mut cells: Vec<Slot> = (0..inputs as u32).map(Slot::Input).collect();
    let (mut temps, mut outputs) = (0, 0);
    let mut ops = Vec::new();
    for (n, mask) in masks.iter().enumerate() {
        let is_output = mask >> 63 == 1 || n + 1 == masks.len();
        let counter = if is_output { &mut outputs } else { &mut temps };
        *counter += 1;
        let number = *counter - 1;
        let target = if is_output { Slot::Output(number) } else { Slot::Temp(number) };
        let named = cells.iter().enumerate().filter(|&(bit, _)| mask >> (bit % 63) & 1 == 1);
        ops.push(Operation::assign(target, named.map(|(_, &cell)| cell).collect()));
        cells.push(target);
    }
    Schedule::new(inputs, temps as usize, outputs as usize, ops).unwrap()
}

/// A schedule bound to buffers of so many rows, which its inputs fill one after the other, and then
/// its outputs.
fn program(schedule: Schedule, rows: usize, packet: usize) -> Program {
    let at = |n: usize| Location { buffer: n / rows, row: n % rows };
    let first = schedule.inputs().next_multiple_of(rows);
    let inputs: Vec<Location> = (0..schedule.inputs()).map(at).collect();
    let outputs: Vec<Location> = (first..first + schedule.outputs()).map(at).collect();
    let buffers = (first + schedule.outputs()).div_ceil(rows);
    Program::new(schedule, inputs, outputs, vec![rows; buffers], packet).unwrap()
}

/// The walk over a flat stream, or over strips of several packets in one body or in several.
fn walk(rows: usize, packet: usize) -> Walk {
    if rows == 1 {
        return Walk { unroll: 4, inner: 1, strip: LINE };
    }
    let columns = packet / 16;
    let unroll = if columns.is_multiple_of(4) { 4 } else { 1 };
    Walk { unroll, inner: columns / unroll, strip: rows * packet }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn functions_compute_what_the_schedule_says(
        inputs in 0_usize..9,
        masks in prop::collection::vec(any::<u64>(), 1..14),
        rows in 1_usize..4,
        packet in prop::sample::select(vec![16, 48, 64, 128]),
        count in 1_usize..4,
    ) {
        let program = program(schedule(inputs, &masks), rows, packet);
        let walk = walk(rows, packet);
        for isa in ISAS {
            for variant in variants() {
                let variant = Variant { prefetch: count == 3, ..variant };
                Case { program: program.clone(), isa, variant, walk, count }.check();
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// More values than registers, and more buffers than registers for addresses, with an inner loop
    /// and without.
    #[test]
    fn wide_schedules_compute_what_they_say(
        inputs in 20_usize..70,
        masks in prop::collection::vec(any::<u64>(), 30..50),
        rows in 1_usize..3,
    ) {
        let program = program(schedule(inputs, &masks), rows, 32);
        let walk = walk(rows, 32);
        for isa in ISAS {
            for variant in variants() {
                Case { program: program.clone(), isa, variant, walk, count: 2 }
                    .check();
            }
        }
    }
}

/// Offsets on both sides of what instructions reach: 252 and 1008 for prefetches and pairs, 65,520 for
/// vectors, 2^24 for summands in the instruction.
#[test]
fn far_places_are_reached() {
    let packets = [
        240,
        256,
        1008,
        1024,
        4080,
        4096,
        65_520,
        65_536,
        69_632,
        1 << 20,
        1000,
        2055,
        (1 << 16) + 8,
        (1 << 24) - 16,
        1 << 24,
        (1 << 24) + 4112,
        1 << 28,
    ];
    for packet in packets {
        for (isa, variant) in ISAS.into_iter().flat_map(|isa| variants().map(move |v| (isa, v))) {
            let masks = [0b101, 0b1110, 1 << 63 | 0b11_0011, 0b111_1000];
            let program = program(schedule(5, &masks), 3, packet);
            let walk = Walk { unroll: 4, inner: 2, strip: 3 * packet };
            let variant = Variant { prefetch: true, ..variant };
            Case { program, isa, variant, walk, count: 2 }.check();
        }
    }
}

/// More buffers than an offset into `pointers` reaches, all in one sum.
#[test]
fn thousands_of_buffers_are_reached() {
    let inputs = 4200;
    let program = program(schedule(inputs, &[u64::MAX]), 1, 16);
    let walk = Walk { unroll: 1, inner: 1, strip: 16 };
    for isa in ISAS {
        for past_cache in [false, true] {
            let variant = Variant { past_cache, stage_inputs: past_cache, prefetch: false };
            let case = Case { program: program.clone(), isa, variant, walk, count: 2 };
            case.check();
        }
    }
}

/// Staged vectors move in pairs, whole lines one after the other.
#[test]
fn staged_lines_move_in_pairs() {
    let program = program(schedule(3, &[1 << 63 | 0b11, 0b110]), 1, 64);
    let walk = Walk { unroll: 4, inner: 1, strip: LINE };
    let variant = Variant { past_cache: true, stage_inputs: true, prefetch: false };
    let case = Case { program, isa: Isa::Neon, variant, walk, count: 1 };
    let listing = case.with_assembler(|assembler| assembler.listing().unwrap());
    let count = |name: &str| listing.lines().filter(|line| line.contains(name)).count();
    assert_eq!((count("stnp q"), count("stp q"), count("ldp q")), (4, 6, 10));
    case.check();
}
