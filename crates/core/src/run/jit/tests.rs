//! Checks the emitted code against the schedule, for every instruction set and variant, without
//! running it on the processor: see [`decoded`](super::decoded).

use std::sync::Arc;

use super::decoded::{EmulatedMachine, RunCounts, decode};
use super::encode::{MachineCode, encode};
use super::programs::{LINES_OF_WORDS, of_rows, parity, programs_of_words, random_bytes};
use super::*;
use crate::define::cells::{CellId, NodeId, Role};
use crate::define::code::Code as ErasureCode;
use crate::plan::PlanOptions;
use crate::plan::combination::Change;
use crate::plan::program::CellLocation;
use crate::plan::schedule::Schedule;
use crate::plan::steps::{Allocation, Operand, Step};
use crate::plan::variants::{BodyWalk, PlannedVariant, greatest_common_divisor};
use crate::plan::vector::{Map, PairOperation};

/// Addresses in the machine: far from each other, with buffers at the beginning of lines.
const POINTERS: u64 = 0x1000_0000;
const SCRATCH: u64 = 0x4000_0000;
const BUFFERS: u64 = 1 << 32;

fn buffer_start(buffer: usize) -> u64 {
    BUFFERS + ((buffer as u64) << 24) + (buffer * LINE) as u64
}

/// Fewest lines of every cell that a run covers.
const LINES: usize = 3;

/// The instruction sets that run programs of packets.
const OF_PACKETS: [Isa; 4] = [Isa::Ssse3, Isa::Avx2, Isa::Avx512Vl, Isa::Avx512];

/// The instruction sets that multiply words.
const OF_WORDS: [Isa; 5] = [Isa::Ssse3, Isa::Avx2, Isa::Avx2Gfni, Isa::Avx512Bw, Isa::Avx512Gfni];

const VARIANTS: [RunVariant; 4] = [
    RunVariant::PLAIN,
    RunVariant { nontemporal: true, stage_inputs: false, prefetch: true },
    RunVariant { nontemporal: false, stage_inputs: true, prefetch: false },
    RunVariant { nontemporal: true, stage_inputs: true, prefetch: false },
];

fn code(spec: &str) -> ErasureCode {
    ErasureCode::new(&spec.parse().unwrap()).unwrap()
}

/// Plans the cells of lost nodes from those of the others, or parity from data if none are lost.
fn plan(code: &ErasureCode, lost: &[usize]) -> (Schedule, Vec<CellId>, Vec<CellId>) {
    let is_lost = |node: &NodeId| lost.contains(&node.index());
    let (have, want) = if lost.is_empty() {
        (code.stored(Role::Data), code.stored(Role::Parity))
    } else {
        let (lost, rest): (Vec<NodeId>, Vec<NodeId>) = code.nodes().partition(is_lost);
        (code.cells_of(rest), code.cells_of(lost))
    };
    let plan = code.schedule(&have, &want).unwrap();
    let (inputs, outputs) = (plan.inputs().to_vec(), plan.outputs().to_vec());
    (plan.into_schedule(), inputs, outputs)
}

/// A plan with a buffer for every node.
fn of_nodes(spec: &str, lost: &[usize], packet: usize) -> Program {
    let code = code(spec);
    let (schedule, inputs, outputs) = plan(&code, lost);
    let locate = |cells: Vec<CellId>| {
        let places = cells.into_iter().map(|cell| code.cell(cell).place.unwrap());
        places.map(|place| CellLocation { buffer: place.node.index(), row: place.row }).collect()
    };
    let rows: Vec<usize> = code.nodes().map(|node| code.node_cells(node).len()).collect();
    Program::new(schedule, locate(inputs), locate(outputs), rows, packet).unwrap()
}

/// A plan with a buffer for every cell, as for the lanes of shard files.
fn of_lanes(spec: &str, packet: usize) -> Program {
    let code = code(spec);
    let (schedule, inputs, outputs) = plan(&code, &[]);
    let locate = |cells: Vec<CellId>| {
        cells.into_iter().map(|cell| CellLocation { buffer: cell.index(), row: 0 }).collect()
    };
    let rows = vec![1; code.cell_count()];
    Program::new(schedule, locate(inputs), locate(outputs), rows, packet).unwrap()
}

/// A plan that writes new parity in the place of old parity.
fn of_update(spec: &str, packet: usize) -> Program {
    let code = code(spec);
    let parity = code.stored(Role::Parity);
    let options = PlanOptions::default();
    let (schedule, touched) =
        code.schedule_update(NodeId::new(0), Change::OldAndNew, &parity, options).unwrap();
    let rows = code.node_cells(NodeId::new(0)).len();
    let data = (0..2 * rows).map(|cell| CellLocation { buffer: cell / rows, row: cell % rows });
    let places = touched.iter().map(|&cell| code.cell(cell).place.unwrap());
    let outputs: Vec<CellLocation> = places
        .map(|place| CellLocation { buffer: 2 + place.node.index(), row: place.row })
        .collect();
    let inputs = data.chain(outputs.iter().copied()).collect();
    let buffers = vec![rows; 2 + code.node_count()];
    Program::new(schedule, inputs, outputs, buffers, packet).unwrap()
}

/// A schedule that reads the second of its two inputs.
fn with_an_unread_input(packet: usize) -> Program {
    let schedule = "inputs 2 temps 0 outputs 1\no0 = i1\n".parse().unwrap();
    let at = |buffer| CellLocation { buffer, row: 0 };
    Program::new(schedule, vec![at(0), at(1)], vec![at(2)], vec![1; 3], packet).unwrap()
}

/// A program's code for an instruction set, and the machine to run it on.
struct Case<'a> {
    variants: &'a Variants,
    isa: Isa,
    variant: RunVariant,
    planned: &'a PlannedVariant,
    /// Stripes that the run covers, and turns of the outer loop that this takes.
    stripes: usize,
    count: usize,
    /// Initial contents of the buffers.
    buffers: Vec<Vec<u8>>,
}

impl<'a> Case<'a> {
    fn new(variants: &'a Variants, isa: Isa, variant: RunVariant) -> Self {
        let program = variants.program();
        let packet = program.packet();
        let lines = if program.schedule().field().is_some() { LINES_OF_WORDS } else { LINES };
        let wanted = lines * LINE / greatest_common_divisor(LINE, packet);
        let (count, stripes) = variants.shape().bodies(wanted, packet);
        let mut byte = random_bytes(0);
        let mut random = |bytes| (0..bytes).map(|_| byte()).collect();
        let buffers = 0..program.rows().len();
        let buffers = buffers.map(|buffer| random(stripes * program.strip(buffer))).collect();
        let planned = variants.planned(variant).unwrap();
        Self { variants, isa, variant, planned, stripes, count, buffers }
    }

    fn program(&self) -> &Program {
        self.variants.program()
    }

    fn allocation(&self) -> &Allocation {
        &self.planned.arranged.allocation
    }

    fn walk(&self) -> BodyWalk {
        self.variants.shape().walk(self.allocation().group * self.isa.vector())
    }

    fn assembled(&self) -> Assembled {
        assembled(self.variants, self.isa, self.variant).unwrap()
    }

    fn code(&self) -> MachineCode {
        encode(self.isa, &self.assembled()).unwrap()
    }

    fn used(&self) -> impl Iterator<Item = usize> {
        let program = self.program();
        (0..program.rows().len()).filter(|&buffer| program.access(buffer) != (false, false))
    }

    /// Returns the buffer of a cell, and where its packets begin there.
    fn packets(&self, slot: Slot) -> (usize, impl Iterator<Item = usize>) {
        let program = self.program();
        let location = program.location(slot).unwrap();
        let strip = program.strip(location.buffer);
        let first = program.offset(location);
        (location.buffer, (0..self.stripes).map(move |stripe| stripe * strip + first))
    }

    /// Returns all bytes of an input.
    fn input(&self, number: usize) -> Vec<u8> {
        let (buffer, packets) = self.packets(Slot::Input(number as u32));
        let packet = |start| &self.buffers[buffer][start..][..self.program().packet()];
        packets.flat_map(packet).copied().collect()
    }

    /// Returns the final contents of the buffers: outputs as the interpreter computes them, all
    /// others unchanged.
    fn expected(&self) -> Vec<Vec<u8>> {
        let (program, schedule) = (self.program(), self.program().schedule());
        let inputs: Vec<Vec<u8>> = (0..schedule.inputs()).map(|n| self.input(n)).collect();
        let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
        let outputs = interpret(schedule, &inputs).unwrap();
        let mut buffers = self.buffers.clone();
        for (number, output) in outputs.iter().enumerate() {
            let (buffer, packets) = self.packets(Slot::Output(number as u32));
            for (start, packet) in packets.zip(output.chunks(program.packet())) {
                buffers[buffer][start..][..packet.len()].copy_from_slice(packet);
            }
        }
        buffers
    }

    /// Addresses of the vectors of all outputs.
    fn written(&self) -> impl Iterator<Item = u64> {
        let (program, vector) = (self.program(), self.isa.vector());
        let outputs = 0..program.schedule().outputs() as u32;
        outputs.flat_map(move |number| {
            let (buffer, packets) = self.packets(Slot::Output(number));
            let bytes = packets.flat_map(|start| start..start + program.packet());
            bytes.step_by(vector).map(move |at| buffer_start(buffer) + at as u64)
        })
    }

    fn machine(&self) -> EmulatedMachine {
        let mut machine = EmulatedMachine::new(self.isa, [POINTERS, self.count as u64, SCRATCH]);
        machine.map_scratch(SCRATCH, self.assembled().scratch);
        machine.writable.extend(self.written());
        for buffer in self.used() {
            machine.map(buffer_start(buffer), &self.buffers[buffer]);
            machine.words.insert(POINTERS + 8 * buffer as u64, buffer_start(buffer));
        }
        machine
    }

    /// Instructions, loads and stores as planned, for all vectors of all bodies.
    fn planned_counts(&self) -> (usize, usize, usize) {
        let (walk, schedule) = (self.walk(), self.program().schedule());
        let &Allocation { ref steps, loads, stores, group, .. } = self.allocation();
        let instructions: usize = steps.iter().map(|step| instructions(self.isa, step)).sum();
        let staged_outputs = self.variant.nontemporal && self.isa.vector() < LINE;
        let is_read = |n: &usize| {
            schedule.ops().iter().any(|op| op.sources.contains(&Slot::Input(*n as u32)))
        };
        let inputs = (0..schedule.inputs()).filter(is_read).count();
        let staged = if self.planned.stage_inputs { group * inputs } else { 0 }
            + if staged_outputs { group * schedule.outputs() } else { 0 };
        let runs = self.count * walk.inner * walk.unroll;
        (runs * (instructions + 2 * staged), runs * (loads + staged), runs * (stores + staged))
    }

    /// Runs code, which should be this program's, and returns the machine at the end.
    fn run(&self, code: &MachineCode) -> Result<EmulatedMachine, String> {
        let mut machine = self.machine();
        machine.run(code)?;
        let expected = self.expected();
        for buffer in self.used() {
            let made = machine.bytes(buffer_start(buffer), expected[buffer].len())?;
            let mut bytes = made.iter().zip(&expected[buffer]);
            if let Some(at) = bytes.position(|(made, expected)| made != expected) {
                return Err(format!("byte {at} of buffer {buffer} is wrong"));
            }
        }
        let RunCounts { vectors, loads, stores, .. } = machine.counts;
        if (vectors, loads, stores) != self.planned_counts() {
            return Err(format!("{:?} instead of {:?}", machine.counts, self.planned_counts()));
        }
        Ok(machine)
    }

    /// Runs the program's code, and checks its other properties.
    fn check(&self, what: &str) {
        let machine = self.run(&self.code()).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(machine.counts.prefetches > 0, self.variant.prefetch, "{what}");
        let bytes = self.isa.constant_bytes();
        for constant in 0..self.allocation().constants.len() {
            assert!(machine.constants_read.contains(&(constant * bytes)), "{what}: {constant}");
        }
    }
}

/// Number of instructions of a step: one, except for the sign of bytes on AVX-512, which goes
/// through a mask, and for the copies that SSE makes of operands that its instructions would
/// change.
fn instructions(isa: Isa, step: &Step) -> usize {
    let copies = |to, a, b, commutes| match (to == a, Operand::Register(to) == b) {
        (true, _) => 0,
        (false, true) if commutes => 0,
        (false, true) => 2,
        (false, false) => 1,
    };
    match *step {
        Step::Map { map: Map::Sign(1), .. } if isa == Isa::Avx512Bw => 2,
        Step::Xor { to, a, b } if isa == Isa::Ssse3 => 1 + copies(to, a, b, true),
        Step::Map { to, a, .. } if isa == Isa::Ssse3 => 1 + usize::from(to != a),
        Step::Pair { to, pair: PairOperation::Lookup, a, b: Operand::Register(table) }
            if isa == Isa::Ssse3 =>
        {
            1 + copies(to, table, Operand::Register(a), false)
        }
        Step::Pair { to, pair, a, b } if isa == Isa::Ssse3 => {
            1 + copies(to, a, b, pair == PairOperation::And)
        }
        _ => 1,
    }
}

/// Programs of codes with few and many buffers, rows, and spilled temporaries; packets of a vector,
/// a line, half lines and several of each; losses, lanes, updates in place, and inputs that are not
/// read.
fn programs_of_packets() -> Vec<(String, Program)> {
    let nodes = [
        ("1+1", &[][..], 64),
        ("4+2", &[], 64),
        ("4+2", &[], 32),
        ("10+4", &[], 64),
        ("10+4", &[0, 3, 12], 128),
        ("rdp:k=6", &[], 96),
        ("evenodd:k=5", &[], 192),
        ("evenodd:k=5", &[1, 4], 64),
        ("20+4", &[], 64),
        ("cauchy:k=6,m=3,w=8", &[], 64),
    ];
    let nodes = nodes.map(|(spec, lost, packet)| {
        (format!("{spec} without {lost:?}, {packet}"), of_nodes(spec, lost, packet))
    });
    let others = [
        ("lanes of 4+2, 8".to_owned(), of_lanes("4+2", 8)),
        ("lanes of 10+4, 64".to_owned(), of_lanes("10+4", 64)),
        ("an update of 6+3, 64".to_owned(), of_update("6+3", 64)),
        ("an unread input, 64".to_owned(), with_an_unread_input(64)),
    ];
    nodes.into_iter().chain(others).collect()
}

#[test]
fn code_over_packets_does_what_the_schedule_says() {
    for (name, program) in programs_of_packets() {
        let program = Arc::new(program);
        for isa in OF_PACKETS {
            let flat = program.is_flat();
            let serves = flat || program.packet().is_multiple_of(isa.vector());
            let variants = Variants::new(&program, isa.target());
            assert_eq!(variants.is_ok(), serves, "{name}, {isa:?}");
            let Ok(variants) = variants else { continue };
            for variant in VARIANTS {
                // Stores are non-temporal only where every body writes whole lines.
                if variant.nontemporal && !flat && !program.packet().is_multiple_of(LINE) {
                    continue;
                }
                let what = format!("{name}, {isa:?}, {variant:?}");
                Case::new(&variants, isa, variant).check(&what);
            }
        }
    }
}

#[test]
fn code_over_words_does_what_the_schedule_says() {
    for isa in OF_WORDS {
        for (name, program) in programs_of_words(isa) {
            let variants = Variants::new(&Arc::new(program), isa.target()).unwrap();
            for variant in VARIANTS {
                let what = format!("{name}, {isa:?}, {variant:?}");
                Case::new(&variants, isa, variant).check(&what);
            }
        }
    }
}

/// Compiled code over words of several bytes runs over whole buffers only.
#[test]
fn words_in_strips_are_not_served() {
    for isa in OF_WORDS {
        let rows = parity("reed-solomon:k=4,m=2,w=16");
        let schedule = rows.schedule(isa.target().machine).unwrap();
        let at = |n: usize| CellLocation { buffer: n / 2, row: n % 2 };
        let (inputs, outputs) = ((0..4).map(at).collect(), (4..6).map(at).collect());
        let program = Program::new(schedule, inputs, outputs, vec![2; 3], 256).unwrap();
        assert!(Variants::new(&Arc::new(program), isa.target()).is_err());
    }
}

/// Flips one bit of a program's code or constants at a time, every `every`th bit, and checks that
/// the change is noticed. Bits that change no instruction or that no run reads are left out. So are
/// constants of equal bytes: the lower bits of a zero that bytes are compared with matter to one
/// byte in 256, and lookups ignore bits 4 to 6 of the mask for the halves of bytes.
fn assert_damage_is_noticed(program: Program, isa: Isa, every: usize) {
    let variants = Variants::new(&Arc::new(program), isa.target()).unwrap();
    let variant = RunVariant { nontemporal: true, stage_inputs: true, prefetch: false };
    let case = Case::new(&variants, isa, variant);
    let MachineCode { bytes, entry } = case.code();
    let read = case.run(&case.code()).unwrap().constants_read;
    let texts = |bytes: &[u8]| -> Result<Vec<String>, String> {
        let code = MachineCode { bytes: bytes.to_vec(), entry };
        Ok(decode(&code)?.values().map(ToString::to_string).collect())
    };
    let original = texts(&bytes);
    let is_plain = |at: usize| {
        let constant = at / isa.constant_bytes() * isa.constant_bytes();
        bytes[constant..][..isa.constant_bytes()].iter().all(|&byte| byte == bytes[at])
    };
    let (mut tried, mut missed) = (0, Vec::new());
    for bit in (0..8 * bytes.len()).step_by(every) {
        let at = bit / 8;
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (bit % 8);
        let matters = match at < entry {
            true => read.contains(&at) && !is_plain(at),
            false => texts(&damaged) != original,
        };
        if matters {
            tried += 1;
            if case.run(&MachineCode { bytes: damaged, entry }).is_ok() {
                missed.push(bit);
            }
        }
    }
    assert!(100 * missed.len() < tried, "{isa:?}: of {tried} bits these are missed: {missed:?}");
}

/// Shows that the check works: flipped bits are noticed, except a few without effect, as in
/// restoring a register that the function leaves unchanged.
#[test]
fn damage_to_code_over_packets_is_noticed() {
    for isa in OF_PACKETS {
        assert_damage_is_noticed(of_nodes("4+2", &[], 64), isa, 3);
    }
}

/// Uses enough buffers for the function to need all registers for addresses.
#[test]
fn damage_to_code_over_words_is_noticed() {
    for isa in OF_WORDS {
        for (spec, every) in [("raid6:k=10", 29), ("reed-solomon:k=9,m=2,w=16", 127)] {
            assert_damage_is_noticed(of_rows(&parity(spec), 0, isa), isa, every);
        }
    }
}

/// The trial before code touches anyone's data: code that computes something else is refused,
/// wherever the difference lies.
#[test]
fn code_that_computes_something_else_is_refused() {
    let schedules = ["o0 = i0 ^ i1\no1 = i0\n", "o0 = i0 ^ i1\no1 = i1\n", "o0 = i0\no1 = i0\n"];
    let at = |rows: usize| move |n: usize| CellLocation { buffer: n / rows, row: n % rows };
    let shapes = [(1, 8), (1, 64), (2, 5 * 4096)];
    let isas = OF_PACKETS.into_iter().filter(|isa| isa.is_available() && probe().is_ok());
    for (isa, (rows, packet)) in isas.flat_map(|isa| shapes.map(|shape| (isa, shape))) {
        let variants = schedules.map(|schedule| {
            let schedule = format!("inputs 2 temps 0 outputs 2\n{schedule}").parse().unwrap();
            let places: Vec<CellLocation> = (0..4).map(at(rows)).collect();
            let (inputs, outputs) = (places[..2].to_vec(), places[2..].to_vec());
            let rows = vec![rows; 4 / rows];
            let program = Program::new(schedule, inputs, outputs, rows, packet).unwrap();
            Variants::new(&Arc::new(program), isa.target()).unwrap()
        });
        let function = Function::compile(&variants[0], isa, RunVariant::PLAIN).unwrap();
        let is_right = |other: &Variants| function.is_right(other.program(), other.shape());
        assert_eq!(
            variants.each_ref().map(is_right),
            [Some(true), Some(false), Some(false)],
            "{isa:?}, {packet}"
        );
    }
}

/// While one thread makes a value, another thread that wants it goes on without a value, and does
/// not make one itself.
#[test]
fn nobody_waits_for_a_value_that_another_makes() {
    let claimed = Claimed::default();
    let made = claimed.get_or_make(|| {
        std::thread::scope(|scope| {
            let other = scope.spawn(|| claimed.get_or_make(|| 2).copied());
            assert_eq!(other.join().unwrap(), None);
        });
        1
    });
    assert_eq!((made, claimed.get_or_make(|| 3)), (Some(&1), Some(&1)));
}
