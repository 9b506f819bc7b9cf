//! Checks the emitted code without the processor: an outside disassembler (yaxpeax-arm)
//! decodes it, and the result runs on a machine in which vectors hold random bytes.
//!
//! The machine below knows only the instructions that are expected, as Arm's manual defines them
//! and without the code that proves plans. It lets them read and write only the memory that is
//! theirs, and has every buffer at an odd address. One run on random bytes shows what a function
//! computes for all bytes, but for a small chance: a wrong vector in a sum is missed with 2^-128,
//! and a wrong entry of a table, which one byte in 16 reads, with (15/16)^256, because runs over
//! words look each table up 256 times at least.

use std::array;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use yaxpeax_arch::{Arch, Decoder, U8Reader};
use yaxpeax_arm::armv8::a64::{
    ARMv8, Instruction as Decoded, Opcode, Operand as Op, SIMDSizeCode as Simd, ShiftStyle,
    SizeCode,
};

use crate::define::field::Field;
use crate::plan::arrange;
use crate::plan::interpret::interpret;
use crate::plan::machine::{LINE, Machine as Target};
use crate::plan::products::CoefficientRows;
use crate::plan::program::{CellLocation, Program};
use crate::plan::schedule::{Op as Operation, Schedule, Slot};
use crate::plan::steps::{Operand, Register, Step};
use crate::plan::variants::{BodyWalk, RunVariant, Variants};
use crate::run::jit::assemble::{Assembled, assemble};
use crate::run::jit::encode::{encode, list};
use crate::run::jit::instruction::{Address, Base, Instruction};
use crate::run::jit::isa::Isa;
use crate::run::jit::programs::{LINES_OF_WORDS, of_rows, programs_of_words, random_bytes};

const POINTERS: u64 = 1 << 56;
const SCRATCH: u64 = 2 << 56;
const STACK: u64 = 3 << 56;
const BUFFERS: u64 = 4 << 56;
/// Value of general registers that hold no arguments.
const UNKNOWN: u64 = 5 << 56;
/// Address of the constants; the function follows them.
const CONSTANTS: u64 = 6 << 56;
const SP: usize = 31;

fn buffer(number: usize) -> u64 {
    BUFFERS + ((number as u64) << 40) + 3
}

/// A vector, in a register or in memory.
type Vector = [u8; 16];

/// A function to be checked.
struct Case {
    program: Program,
    isa: Isa,
    assembled: Assembled,
    walk: BodyWalk,
    count: usize,
}

impl Case {
    /// Makes a case of a program over packets that walks as `walk` says.
    fn of_packets(
        program: &Program,
        isa: Isa,
        variant: RunVariant,
        walk: BodyWalk,
        count: usize,
    ) -> Self {
        let machine = Target { outputs_readable: !variant.nontemporal, ..isa.target().machine };
        let arranged = arrange::arranged(program.schedule(), &program.streams(), machine).unwrap();
        let assembled = assemble(isa, program, &arranged.allocation, walk, variant);
        Self { program: program.clone(), isa, assembled, walk, count }
    }

    /// Makes a case of any program, as it is compiled for a call over `lines` lines of each cell.
    fn planned(program: Program, isa: Isa, variant: RunVariant, lines: usize) -> Self {
        let variants = Variants::new(&Arc::new(program), isa.target()).unwrap();
        let program = variants.program().clone();
        let (count, _) = variants.shape().bodies(lines * LINE / program.packet(), program.packet());
        let group = variants.planned(variant).unwrap().arranged.allocation.group;
        let walk = variants.shape().walk(group * isa.vector());
        let assembled = crate::run::jit::assembled(&variants, isa, variant).unwrap();
        // The runs of a body are over consecutive vectors of each cell.
        let walk = BodyWalk { unroll: walk.unroll * group, ..walk };
        Self { program, isa, assembled, walk, count }
    }

    /// Addresses of all vectors of a cell that the function handles.
    fn vectors(&self, slot: Slot) -> Vec<u64> {
        let CellLocation { buffer: number, row } = self.program.location(slot).unwrap();
        let columns = self.walk.unroll * self.walk.inner;
        let at = |stripe, column| stripe * self.walk.strip + row * self.program.packet() + column;
        (0..self.count)
            .flat_map(|stripe| (0..columns).map(move |column| at(stripe, 16 * column)))
            .map(|offset| buffer(number) + offset as u64)
            .collect()
    }

    /// Initial contents of the inputs.
    fn memory(&self) -> BTreeMap<u64, Vector> {
        let mut byte = random_bytes(0);
        let inputs = 0..self.program.schedule().inputs() as u32;
        let vectors = inputs.flat_map(|n| self.vectors(Slot::Input(n)));
        vectors.map(|at| (at, array::from_fn(|_| byte()))).collect()
    }

    /// The vectors that should be written, as the interpreter computes them.
    fn made(&self, memory: &BTreeMap<u64, Vector>) -> BTreeMap<u64, Vector> {
        let schedule = self.program.schedule();
        let input = |n| -> Vec<u8> {
            self.vectors(Slot::Input(n)).iter().flat_map(|at| memory[at]).collect()
        };
        let inputs: Vec<Vec<u8>> = (0..schedule.inputs() as u32).map(input).collect();
        let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
        let mut made = BTreeMap::new();
        for (output, n) in interpret(schedule, &inputs).unwrap().iter().zip(0..) {
            let vectors = self.vectors(Slot::Output(n));
            let mut bytes = output.as_chunks().0.iter().copied();
            // An empty sum is zero.
            made.extend(vectors.into_iter().map(|at| (at, bytes.next().unwrap_or_default())));
        }
        made
    }

    fn listing(&self) -> String {
        list(self.isa, &self.assembled).unwrap()
    }

    fn check(&self) {
        let instructions = decoded(self.isa, &self.assembled);
        let listing = self.listing();
        let lines: Vec<String> = instructions.iter().enumerate().map(printed).collect();
        assert_eq!(listing.lines().collect::<Vec<_>>(), lines);
        assert_eq!(listing.contains("adr "), !self.assembled.constants.is_empty());
        let mut expected = self.memory();
        let mut machine = Machine::new(self.isa, &self.assembled, self.count);
        let pointers = (0..self.program.rows().len()).map(|b| (POINTERS + 8 * b as u64, buffer(b)));
        machine.words = pointers.collect();
        machine.vectors = expected.clone();
        let made = self.made(&expected);
        machine.writable = made.keys().copied().collect();
        expected.extend(made);
        machine.run(&instructions);
        machine.vectors.retain(|place, _| *place >= BUFFERS);
        assert_eq!(machine.vectors, expected, "{}\n{listing}", self.program.schedule());
    }
}

fn decoded(isa: Isa, assembled: &Assembled) -> Vec<Decoded> {
    let code = encode(isa, assembled).unwrap();
    let (constants, code) = code.bytes.split_at(code.entry);
    assert_eq!(constants, assembled.constants);
    let decoder = <ARMv8 as Arch>::Decoder::default();
    let mut reader = U8Reader::new(code);
    (0..code.len() / 4).map(|_| decoder.decode(&mut reader).unwrap()).collect()
}

/// Returns a line of the listing; a jump names the number of an instruction.
fn printed((number, instruction): (usize, &Decoded)) -> String {
    let to = |offset: i64| number as i64 + offset / 4;
    match (instruction.opcode, instruction.operands) {
        (Opcode::B, [Op::PCOffset(offset), ..]) => format!("{number:5}  b {}", to(offset)),
        (Opcode::CBZ, [Op::Register(SizeCode::X, counter), Op::PCOffset(offset), ..]) => {
            format!("{number:5}  cbz x{counter}, {}", to(offset))
        }
        _ => format!("{number:5}  {instruction}"),
    }
}

/// A processor that knows the expected instructions of one instruction set.
struct Machine {
    general: [u64; 32],
    vector: [Vector; 32],
    /// Addresses in `pointers` and on the stack.
    words: BTreeMap<u64, u64>,
    /// The lower halves of vector registers on the stack.
    halves: BTreeMap<u64, [u8; 8]>,
    /// Vectors in the buffers and the scratch that have a value.
    vectors: BTreeMap<u64, Vector>,
    /// Addresses of the vectors in the buffers that may be written.
    writable: BTreeSet<u64>,
    constants: Vec<u8>,
    scratch: u64,
    ternary: bool,
}

impl Machine {
    /// Creates a processor at the start of a function, with neither buffers nor addresses.
    fn new(isa: Isa, assembled: &Assembled, count: usize) -> Self {
        let mut general: [u64; 32] = array::from_fn(|n| UNKNOWN + n as u64);
        general[..3].copy_from_slice(&[POINTERS, count as u64, SCRATCH]);
        general[SP] = STACK;
        let mut byte = random_bytes(1);
        Self {
            general,
            vector: array::from_fn(|_| array::from_fn(|_| byte())),
            words: BTreeMap::new(),
            halves: BTreeMap::new(),
            vectors: BTreeMap::new(),
            writable: BTreeSet::new(),
            constants: assembled.constants.clone(),
            scratch: assembled.scratch as u64,
            ternary: isa == Isa::NeonSha3,
        }
    }

    /// Runs a function to its return, and checks that it restores what the caller expects
    /// unchanged.
    fn run(&mut self, instructions: &[Decoded]) {
        let before = (self.general, self.vector);
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
                (Opcode::ADR, [Op::Register(SizeCode::X, to), Op::PCOffset(offset), ..]) => {
                    let function = CONSTANTS + self.constants.len() as u64;
                    self.set(to, function.strict_add_signed(4 * next + offset));
                    next += 1;
                }
                (opcode, operands) => {
                    self.step(opcode, operands);
                    next += 1;
                }
            }
        }
        assert_eq!(self.general[18..], before.0[18..]);
        let halves = |vectors: [Vector; 32]| -> Vec<u64> {
            vectors[8..16]
                .iter()
                .map(|vector| vector.as_chunks().0[0])
                .map(u64::from_le_bytes)
                .collect()
        };
        assert_eq!(halves(self.vector), halves(before.1));
    }

    fn step(&mut self, opcode: Opcode, operands: [Op; 4]) {
        match (opcode, operands) {
            (Opcode::EOR3, [to, a, b, c]) => {
                assert!(self.ternary, "a three-input XOR without the feature");
                let [a, b, c] = [a, b, c].map(|operand| self.vector[vector(operand)]);
                self.vector[vector(to)] = array::from_fn(|n| a[n] ^ b[n] ^ c[n]);
            }
            (Opcode::ORR, [to, a, b, Op::Nothing]) if a == b => {
                self.vector[vector(to)] = self.vector[vector(a)];
            }
            (
                Opcode::MOVI,
                [Op::SIMDRegisterElements(Simd::Q, to, Simd::D), Op::Imm64(0), Op::Nothing, _],
            ) => self.vector[usize::from(to)] = [0; 16],
            (Opcode::TBL, [to, Op::SIMDRegisterGroup(Simd::Q, table, Simd::B, 1), index, _]) => {
                let (table, index) = (self.vector[usize::from(table)], self.vector[vector(index)]);
                // Numbers outside the table give zero.
                let byte = |n: u8| table.get(usize::from(n)).copied().unwrap_or(0);
                self.vector[vector(to)] = index.map(byte);
            }
            (
                Opcode::SHL | Opcode::USHR | Opcode::SSHR,
                [
                    Op::SIMDRegisterElements(Simd::Q, to, size),
                    Op::SIMDRegisterElements(Simd::Q, a, of),
                    Op::Immediate(bits),
                    Op::Nothing,
                ],
            ) if size == of => {
                self.vector[usize::from(to)] =
                    shifted(opcode, size, self.vector[usize::from(a)], bits);
            }
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
            (_, [to, a, b, Op::Nothing]) if combined(opcode).is_some() => {
                let [a, b] = [a, b].map(|operand| self.vector[vector(operand)]);
                let byte = combined(opcode).unwrap();
                self.vector[vector(to)] = array::from_fn(|n| byte(&a, &b, n));
            }
            _ => self.count(opcode, operands),
        }
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
                Opcode::ADD | Opcode::SUB,
                [Op::Register(_, to), a, Op::RegShift(ShiftStyle::LSL, 0, SizeCode::X, b), _],
            ) => {
                let [a, b] = [general(a), usize::from(b)].map(|n| self.general[n]);
                (to, if opcode == Opcode::ADD { a + b } else { a - b })
            }
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

    fn constant(&self, at: u64) -> Option<Vector> {
        let start = usize::try_from(at.checked_sub(CONSTANTS)?).ok()?;
        let (constants, _) = self.constants.as_chunks();
        if start.is_multiple_of(16) { constants.get(start / 16).copied() } else { None }
    }

    fn load(&mut self, to: Op, at: u64) {
        match to {
            Op::Register(SizeCode::X, to) => self.set(to, self.words[&at]),
            Op::SIMDRegister(Simd::D, to) if self.on_stack(at) => {
                let register = &mut self.vector[usize::from(to)];
                *register = [0; 16];
                register[..8].copy_from_slice(&self.halves[&at]);
            }
            Op::SIMDRegister(Simd::Q, to) => {
                let value = self.vectors.get(&at).copied().or_else(|| self.constant(at));
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
                let (halves, _) = self.vector[usize::from(from)].as_chunks();
                self.halves.insert(at, halves[0]);
            }
            Op::SIMDRegister(Simd::Q, from) => {
                let in_scratch = (SCRATCH..SCRATCH + self.scratch).contains(&at);
                assert!(
                    self.writable.contains(&at) || (in_scratch && at.is_multiple_of(16)),
                    "writes {at:#x}"
                );
                self.vectors.insert(at, self.vector[usize::from(from)]);
            }
            _ => panic!("{from:?} is not expected"),
        }
    }
}

/// Returns what an instruction with two vectors puts in byte `n`.
fn combined(opcode: Opcode) -> Option<fn(&Vector, &Vector, usize) -> u8> {
    // Byte `n` of two vectors, `b` after `a`.
    fn both(a: &Vector, b: &Vector, n: usize) -> u8 {
        if n < 16 { a[n] } else { b[n - 16] }
    }
    Some(match opcode {
        Opcode::EOR => |a, b, n| a[n] ^ b[n],
        Opcode::AND => |a, b, n| a[n] & b[n],
        Opcode::UZP1 => |a, b, n| both(a, b, 2 * n),
        Opcode::UZP2 => |a, b, n| both(a, b, 2 * n + 1),
        Opcode::ZIP1 => |a, b, n| if n % 2 == 0 { a[n / 2] } else { b[n / 2] },
        Opcode::ZIP2 => |a, b, n| if n % 2 == 0 { a[8 + n / 2] } else { b[8 + n / 2] },
        _ => return None,
    })
}

/// Shifts every element of size `size`.
fn shifted(opcode: Opcode, size: Simd, vector: Vector, bits: u32) -> Vector {
    let bytes = match size {
        Simd::B => 1,
        Simd::H => 2,
        Simd::S => 4,
        _ => panic!("{opcode:?} of {size:?} is not expected"),
    };
    // Distance of the element from the upper end of 32 bits.
    let above = 32 - 8 * bytes as u32;
    assert!(bits < 32 - above, "{opcode:?} by {bits}");
    let mut shifted = vector;
    for element in shifted.chunks_mut(bytes) {
        let value = element.iter().rev().fold(0, |value, &byte| value << 8 | u32::from(byte));
        let value = value << above;
        let value = match opcode {
            Opcode::SHL => value << bits,
            Opcode::USHR => value >> bits,
            _ => (value as i32 >> bits) as u32,
        };
        element.copy_from_slice(&(value >> above).to_le_bytes()[..bytes]);
    }
    shifted
}

/// Returns the number of a whole vector register.
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

/// Returns the bytes that a register takes in memory.
fn size(operand: Op) -> u64 {
    match operand {
        Op::SIMDRegister(Simd::Q, _) => 16,
        Op::SIMDRegister(Simd::D, _) | Op::Register(SizeCode::X, _) => 8,
        _ => panic!("{operand:?} is not expected"),
    }
}

const ISAS: [Isa; 2] = [Isa::Neon, Isa::NeonSha3];

fn variants() -> impl Iterator<Item = RunVariant> {
    [(false, false), (true, false), (false, true), (true, true)].into_iter().map(
        |(nontemporal, stage_inputs)| RunVariant { nontemporal, stage_inputs, prefetch: false },
    )
}

/// Makes a schedule. Operation `n` sums those of the cells before it whose bits are set in
/// `masks[n]`. It computes an output if the highest bit is set or if it is the last operation,
/// otherwise a temporary.
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

/// Binds a schedule to buffers of `rows` rows, which its inputs fill one after the other, and then
/// its outputs.
fn program(schedule: Schedule, rows: usize, packet: usize) -> Program {
    let at = |n: usize| CellLocation { buffer: n / rows, row: n % rows };
    let first = schedule.inputs().next_multiple_of(rows);
    let inputs: Vec<CellLocation> = (0..schedule.inputs()).map(at).collect();
    let outputs: Vec<CellLocation> = (first..first + schedule.outputs()).map(at).collect();
    let buffers = (first + schedule.outputs()).div_ceil(rows);
    Program::new(schedule, inputs, outputs, vec![rows; buffers], packet).unwrap()
}

/// Returns the walk over a flat stream, or over strips of several packets in one body or in
/// several.
fn walk(rows: usize, packet: usize) -> BodyWalk {
    if rows == 1 {
        return BodyWalk { unroll: 4, inner: 1, strip: LINE };
    }
    let columns = packet / 16;
    let unroll = if columns.is_multiple_of(4) { 4 } else { 1 };
    BodyWalk { unroll, inner: columns / unroll, strip: rows * packet }
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
                let variant = RunVariant { prefetch: count == 3, ..variant };
                Case::of_packets(&program, isa, variant, walk, count).check();
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Covers more values than registers, and more buffers than registers for addresses, with an
    /// inner loop and without.
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
                Case::of_packets(&program, isa, variant, walk, 2).check();
            }
        }
    }
}

/// Covers offsets on both sides of what instructions reach: 252 and 1008 for prefetches and pairs,
/// 65,520 for vectors, 2^24 for summands in the instruction.
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
            let walk = BodyWalk { unroll: 4, inner: 2, strip: 3 * packet };
            let variant = RunVariant { prefetch: true, ..variant };
            Case::of_packets(&program, isa, variant, walk, 2).check();
        }
    }
}

/// Covers more buffers than an offset into `pointers` reaches, all in one sum.
#[test]
fn thousands_of_buffers_are_reached() {
    let inputs = 4200;
    let program = program(schedule(inputs, &[u64::MAX]), 1, 16);
    let walk = BodyWalk { unroll: 1, inner: 1, strip: 16 };
    for isa in ISAS {
        for nontemporal in [false, true] {
            let variant = RunVariant { nontemporal, stage_inputs: nontemporal, prefetch: false };
            let case = Case::of_packets(&program, isa, variant, walk, 2);
            // Without constants, the register of their address holds another address.
            assert!(case.listing().contains("ldr x28, [x"));
            case.check();
        }
    }
}

/// Checks that staged vectors move in pairs, whole lines one after the other.
#[test]
fn staged_lines_move_in_pairs() {
    let program = program(schedule(3, &[1 << 63 | 0b11, 0b110]), 1, 64);
    let walk = BodyWalk { unroll: 4, inner: 1, strip: LINE };
    let variant = RunVariant { nontemporal: true, stage_inputs: true, prefetch: false };
    let case = Case::of_packets(&program, Isa::Neon, variant, walk, 1);
    let listing = case.listing();
    let count = |name: &str| listing.lines().filter(|line| line.contains(name)).count();
    assert_eq!((count("stnp q"), count("stp q"), count("ldp q")), (4, 6, 10));
    case.check();
}

#[test]
fn functions_over_words_compute_what_the_schedule_says() {
    for isa in ISAS {
        for (name, program) in programs_of_words(isa) {
            for variant in variants() {
                for prefetch in [false, true] {
                    let variant = RunVariant { prefetch, ..variant };
                    println!("{name}, {isa:?}, {variant:?}");
                    Case::planned(program.clone(), isa, variant, LINES_OF_WORDS).check();
                }
            }
        }
    }
}

/// Covers words of more buffers than registers for addresses; the constants' address takes one of
/// these.
#[test]
fn the_register_of_the_constants_is_theirs() {
    let coefficients = vec![(1..30).collect(), (3..32).collect()];
    let rows = CoefficientRows { field: Field::new(8).unwrap(), inputs: 29, coefficients };
    for isa in ISAS {
        let case = Case::planned(of_rows(&rows, 0, isa), isa, RunVariant::PLAIN, LINES_OF_WORDS);
        let writes = ["adr x28, ", "ldp x27, x28, [sp"].map(|write| case.listing().contains(write));
        assert_eq!((writes, case.listing().contains("x28, x28")), ([true; 2], false));
        assert!(!case.listing().contains("ldr x28"));
        case.check();
    }
}

/// Covers constants too large for the reach of the instruction that loads an address, one mebibyte:
/// they begin further away.
#[test]
fn many_constants_are_found() {
    for constants in [16, (1 << 20) - 64, 1 << 20, (1 << 20) + 16, 3 << 20] {
        let mut byte = random_bytes(1);
        let constants: Vec<u8> = (0..constants).map(|_| byte()).collect();
        let places = [0, constants.len() - 16];
        let moves = places.into_iter().enumerate().flat_map(|(n, offset)| {
            let from = Operand::Memory(Address { base: Base::Constants, offset });
            // The vectors lie apart, so that each moves alone.
            let to = Address { base: Base::Scratch, offset: 32 * n };
            let register = Register(n as u8);
            [Step::Load { to: register, from }, Step::Store { from: register, to }]
        });
        let mut instructions = vec![Instruction::Enter, Instruction::FindConstants];
        instructions.extend(moves.map(Instruction::Step));
        instructions.push(Instruction::Leave { nontemporal: false });
        let assembled = Assembled { instructions, constants, scratch: 64 };
        let instructions = decoded(Isa::Neon, &assembled);
        let lines: Vec<String> = instructions.iter().enumerate().map(printed).collect();
        assert_eq!(list(Isa::Neon, &assembled).unwrap().lines().collect::<Vec<_>>(), lines);
        let mut machine = Machine::new(Isa::Neon, &assembled, 1);
        machine.run(&instructions);
        for (n, offset) in places.into_iter().enumerate() {
            let found = machine.vectors[&(SCRATCH + 32 * n as u64)];
            assert_eq!(found, assembled.constants[offset..][..16]);
        }
    }
}
