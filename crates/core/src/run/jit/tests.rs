//! The emitted code against the schedule, for every instruction set and variant, without running
//! it: see [`decoded`](super::decoded).

use std::collections::{BTreeMap, HashMap};

use super::decoded::{Counts, Machine, Sum, decode};
use super::*;
use crate::define::cells::{CellId, Code as ErasureCode, NodeId, Role};
use crate::plan::PlanOptions;
use crate::plan::schedule::Schedule;
use crate::run::program::Location;

/// Where things lie in the machine: far from each other, buffers at lines.
const POINTERS: u64 = 0x1000;
const SCRATCH: u64 = 0x4000_0000;
const BUFFERS: u64 = 1 << 32;

fn buffer_start(buffer: usize) -> u64 {
    BUFFERS + ((buffer as u64) << 24) + (buffer * LINE) as u64
}

const ISAS: [Isa; 3] = [Isa::Avx2, Isa::Avx512Vl, Isa::Avx512];

const VARIANTS: [Variant; 4] = [
    PLAIN,
    Variant { past_cache: true, stage_inputs: false, prefetch: true },
    Variant { past_cache: false, stage_inputs: true, prefetch: false },
    Variant { past_cache: true, stage_inputs: true, prefetch: false },
];

fn code(spec: &str) -> ErasureCode {
    ErasureCode::new(&spec.parse().unwrap()).unwrap()
}

/// What makes lost nodes' cells of the others', or parity of data when none are lost.
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
        places.map(|place| Location { buffer: place.node.index(), row: place.row }).collect()
    };
    let rows = code.nodes().map(|node| code.node_cells(node).len()).collect();
    Program::new(schedule, locate(inputs), locate(outputs), rows, packet).unwrap()
}

/// A plan with a buffer for every cell, as lanes of shard files are.
fn of_lanes(spec: &str, packet: usize) -> Program {
    let code = code(spec);
    let (schedule, inputs, outputs) = plan(&code, &[]);
    let locate = |cells: Vec<CellId>| {
        cells.into_iter().map(|cell| Location { buffer: cell.index(), row: 0 }).collect()
    };
    let rows = vec![1; code.cell_count()];
    Program::new(schedule, locate(inputs), locate(outputs), rows, packet).unwrap()
}

/// New parity in the place of old parity.
fn of_update(spec: &str, packet: usize) -> Program {
    let code = code(spec);
    let parity = code.stored(Role::Parity);
    let options = PlanOptions::default();
    let (schedule, touched) = code.schedule_update(NodeId::new(0), &parity, options).unwrap();
    let rows = code.node_cells(NodeId::new(0)).len();
    let data = (0..2 * rows).map(|cell| Location { buffer: cell / rows, row: cell % rows });
    let places = touched.iter().map(|&cell| code.cell(cell).place.unwrap());
    let outputs: Vec<Location> =
        places.map(|place| Location { buffer: 2 + place.node.index(), row: place.row }).collect();
    let inputs = data.chain(outputs.iter().copied()).collect();
    let buffers = vec![rows; 2 + code.node_count()];
    Program::new(schedule, inputs, outputs, buffers, packet).unwrap()
}

/// A schedule that reads the second of its two inputs.
fn with_an_unread_input(packet: usize) -> Program {
    let schedule = "inputs 2 temps 0 outputs 1\no0 = i1\n".parse().unwrap();
    let at = |buffer| Location { buffer, row: 0 };
    Program::new(schedule, vec![at(0), at(1)], vec![at(2)], vec![1; 3], packet).unwrap()
}

/// The offset of row 0 of every vector of so many stripes in its buffer.
fn vectors(program: &Program, isa: Isa, strip: usize, stripes: usize) -> Vec<usize> {
    let vector = isa.vector();
    if strip == program.packet() {
        return (0..stripes * strip).step_by(vector).collect();
    }
    let columns = |stripe| (0..program.packet()).step_by(vector).map(move |c| stripe * strip + c);
    (0..stripes).flat_map(columns).collect()
}

/// What a schedule's outputs are the sums of.
fn sums(schedule: &Schedule, input: impl Fn(u32) -> u64) -> Vec<Sum> {
    let inputs = (0..schedule.inputs() as u32).map(|n| (Slot::Input(n), Sum::from([input(n)])));
    let mut values: HashMap<Slot, Sum> = inputs.collect();
    for op in schedule.ops() {
        let sum = op.sources.iter().fold(Sum::new(), |sum, source| &sum ^ &values[source]);
        values.insert(op.target, sum);
    }
    (0..schedule.outputs() as u32).map(|n| values[&Slot::Output(n)].clone()).collect()
}

/// A program's code for an instruction set, and the machine to run it on.
struct Case<'a> {
    program: &'a Program,
    isa: Isa,
    variant: Variant,
    shape: Shape,
    allocation: Allocation,
    /// The stripes that the run covers, and the outer loop's turns that takes.
    stripes: usize,
    count: usize,
}

impl<'a> Case<'a> {
    fn new(program: &'a Program, isa: Isa, variant: Variant) -> Option<Self> {
        let shape = Shape::of(program, isa)?;
        let (allocation, variant) = allocate(program, isa, variant).unwrap();
        let packet = program.packet();
        let (count, stripes) =
            shape.bodies(3 * LINE / greatest_common_divisor(LINE, packet), packet);
        Some(Self { program, isa, variant, shape, allocation, stripes, count })
    }

    fn assembler(&self) -> Assembler<'_> {
        let walk = self.shape.walk(self.isa);
        Assembler::new(self.isa, self.program, &self.allocation, walk, self.variant)
    }

    fn used(&self) -> impl Iterator<Item = usize> {
        let program = self.program;
        (0..program.rows().len()).filter(|&buffer| program.access(buffer) != (false, false))
    }

    fn address(&self, slot: Slot, offset: usize) -> u64 {
        let location = self.program.location(slot).unwrap();
        buffer_start(location.buffer) + (location.row * self.program.packet() + offset) as u64
    }

    /// The sums that the buffers hold in the end, by address: outputs' as the schedule says, all
    /// others as at the start.
    fn expected(&self) -> BTreeMap<u64, Sum> {
        let mut expected = BTreeMap::new();
        for buffer in self.used() {
            let start = buffer_start(buffer);
            let end = start + (self.stripes * self.program.strip(buffer)) as u64;
            let addresses = (start..end).step_by(self.isa.vector());
            expected.extend(addresses.map(|address| (address, Sum::from([address]))));
        }
        expected.extend(self.made());
        expected
    }

    /// The outputs' sums by address.
    fn made(&self) -> BTreeMap<u64, Sum> {
        let Some(strip) = self.used().next().map(|buffer| self.program.strip(buffer)) else {
            return BTreeMap::new();
        };
        let mut made = BTreeMap::new();
        for offset in vectors(self.program, self.isa, strip, self.stripes) {
            let input = |n| self.address(Slot::Input(n), offset);
            for (output, sum) in sums(self.program.schedule(), input).into_iter().enumerate() {
                made.insert(self.address(Slot::Output(output as u32), offset), sum);
            }
        }
        made
    }

    fn machine(&self) -> Machine {
        let mut machine = Machine::new(self.isa, [POINTERS, self.count as u64, SCRATCH]);
        let scratch = self.assembler().scratch_bytes();
        machine.map(SCRATCH, scratch, false);
        machine.writable = machine.vectors.keys().copied().collect();
        machine.writable.extend(self.made().keys());
        for buffer in self.used() {
            machine.map(buffer_start(buffer), self.stripes * self.program.strip(buffer), true);
            machine.words.insert(POINTERS + 8 * buffer as u64, buffer_start(buffer));
        }
        machine
    }

    /// Instructions, loads and stores as planned, for all vectors of all bodies.
    fn planned(&self) -> (usize, usize, usize) {
        let walk = self.shape.walk(self.isa);
        let (steps, schedule) = (self.allocation.steps.len(), self.program.schedule());
        let staged_outputs = self.variant.past_cache && self.isa.vector() < LINE;
        let is_read = |n: &usize| {
            schedule.ops().iter().any(|op| op.sources.contains(&Slot::Input(*n as u32)))
        };
        let inputs = (0..schedule.inputs()).filter(is_read).count();
        let staged = if self.variant.stage_inputs { inputs } else { 0 }
            + if staged_outputs { schedule.outputs() } else { 0 };
        let (loads, stores) = (self.allocation.loads, self.allocation.stores);
        let vectors = self.count * walk.inner * walk.unroll;
        (vectors * (steps + 2 * staged), vectors * (loads + staged), vectors * (stores + staged))
    }

    /// Runs code, which should be this program's.
    fn check(&self, code: &[u8]) -> Result<Counts, String> {
        let mut machine = self.machine();
        machine.run(&decode(code)?)?;
        for (address, expected) in self.expected() {
            if machine.vectors[&address].as_ref() != Some(&expected) {
                return Err(format!("the vector at {address:#x} is wrong"));
            }
        }
        let Counts { vectors, loads, stores, .. } = machine.counts;
        if (vectors, loads, stores) != self.planned() {
            return Err(format!("{:?} instead of {:?}", machine.counts, self.planned()));
        }
        Ok(machine.counts)
    }
}

/// Codes with few and many buffers, rows, spilled temporaries; packets of a vector, a line, half
/// lines and several of each; losses, lanes, updates in place, inputs that are not read.
fn programs() -> Vec<(String, Program)> {
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
fn code_does_what_the_schedule_says() {
    for (name, program) in programs() {
        for isa in ISAS {
            let flat = program.rows().iter().all(|&rows| rows == 1);
            let serves = flat || program.packet().is_multiple_of(isa.vector());
            for variant in VARIANTS {
                let what = format!("{name}, {isa:?}, {variant:?}");
                // Stores bypass the cache only where every body writes whole lines.
                if variant.past_cache && !flat && !program.packet().is_multiple_of(LINE) {
                    continue;
                }
                let case = Case::new(&program, isa, variant);
                assert_eq!(case.is_some(), serves, "{what}");
                let Some(case) = case else { continue };
                let code = case.assembler().assemble().unwrap();
                let counts = case.check(&code).unwrap_or_else(|error| panic!("{what}: {error}"));
                assert_eq!(counts.prefetches > 0, variant.prefetch, "{what}");
            }
        }
    }
}

/// The check is worth something: flipped bits are noticed, but for those that change no instruction
/// and a few without effect, as in restoring a register that the function leaves alone.
#[test]
fn damage_is_noticed() {
    let program = of_nodes("4+2", &[], 64);
    for isa in ISAS {
        let variant = Variant { past_cache: true, stage_inputs: true, prefetch: false };
        let case = Case::new(&program, isa, variant).unwrap();
        let code = case.assembler().assemble().unwrap();
        let texts = |code: &[u8]| -> Result<Vec<String>, String> {
            Ok(decode(code)?.values().map(ToString::to_string).collect())
        };
        let original = texts(&code);
        let (mut tried, mut missed) = (0, 0);
        for bit in (0..8 * code.len()).step_by(3) {
            let mut damaged = code.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            if texts(&damaged) != original {
                tried += 1;
                missed += usize::from(case.check(&damaged).is_ok());
            }
        }
        assert!(100 * missed < tried, "{isa:?}: {missed} of {tried} are missed");
    }
}
