//! Proofs: before a plan is used, its results are compared with the cells that it should compute.
//!
//! A plan is linear, so it is right for all bytes if it is right for a basis. It is run on
//! *symbols*: data cell `n` has a one in bit `n` of its symbol and zeros elsewhere, and every cell
//! must come out as its generator row says. Plans over more than [`SYMBOL_BITS`] cells, the number
//! of bits of a symbol, are run on random vectors instead. The error in a wrong cell is a sum of
//! cells that is not zero for all data. Each random vector misses it with a chance of at most one
//! half, so all vectors together miss it with a chance of at most 2^-256. There are [`RANDOM_BITS`]
//! vectors for packets and [`PROOF_WORDS`] for words, where each word is a vector. The vectors are
//! the same in every process; planners do not use them.
//!
//! Updates of parity are compared with the generator in the same way ([`update`]).
//!
//! The instructions that are generated from a schedule are compared with it in the same way
//! ([`allocation`]), on the operations of [`vector`](crate::plan::vector).

use std::collections::HashMap;

use crate::define::cells::{CellId, NodeId};
use crate::define::code::Code;
use crate::define::lt::Graph;
use crate::error::{Error, Result};
use crate::limits::{PROOF_WORDS, RANDOM_BITS, SYMBOL_BITS};
use crate::plan::Plan;
use crate::plan::chance::Chance;
use crate::plan::interpret::interpret;
use crate::plan::products::CoefficientRows;
use crate::plan::schedule::Schedule;
use crate::plan::steps::{Allocation, MemoryOperand, Operand, Register, Step};
use crate::plan::vector::{LANE, Lane};

/// Number of additional random words on which instructions are run.
const NONLINEAR_WORDS: usize = 64;

/// The seed of the random vectors.
const SEED: u64 = 0x70_7276;

/// Proves plans of one code. The values that stand for cells are computed once, for all plans.
pub(crate) struct Proof<'a> {
    definition: Definition<'a>,
    /// Values that stand for the data cells.
    data: Vec<Vec<u8>>,
    /// Values that stand for the cells that have been asked for.
    known: HashMap<CellId, Vec<u8>>,
}

/// The object that defines the cells.
#[derive(Clone, Copy)]
enum Definition<'a> {
    Code(&'a Code),
    /// Data blocks come first, then the graph's blocks.
    Graph(&'a Graph),
}

impl<'a> Proof<'a> {
    pub(crate) fn new(code: &'a Code) -> Self {
        Self::over(Definition::Code(code), symbols(code.data_cells().len()))
    }

    /// Proves plans for the blocks of a graph, always on random vectors: they are shorter than
    /// symbols, and a graph is solved anew for every object.
    pub(crate) fn of_graph(graph: &'a Graph) -> Self {
        Self::over(Definition::Graph(graph), random(graph.data(), RANDOM_BITS / 8))
    }

    fn over(definition: Definition<'a>, data: Vec<Vec<u8>>) -> Self {
        Self { definition, data, known: HashMap::new() }
    }

    /// Returns the plan if its schedule computes the cells that it should, as the code's generator
    /// defines them.
    ///
    /// # Errors
    /// If an output is not the cell that it should be, which would be a bug of a planner.
    pub(crate) fn proved(&mut self, plan: Plan) -> Result<Plan> {
        match self.wrong_cell(&plan)? {
            None => Ok(plan),
            Some(cell) => Err(wrong(&match self.definition {
                Definition::Code(code) => {
                    let (spec, cell) = (code.spec(), code.cell_name(cell));
                    format!("{spec}: a planned schedule computes cell {cell} wrong")
                }
                Definition::Graph(_) => format!("a planned schedule computes block {cell:?} wrong"),
            })),
        }
    }

    /// Returns the first output of a plan that is not the cell that it should be.
    ///
    /// # Errors
    /// As [`interpret`].
    pub(crate) fn wrong_cell(&mut self, plan: &Plan) -> Result<Option<CellId>> {
        plan.cells().for_each(|cell| self.evaluate(cell));
        let inputs: Vec<&[u8]> = plan.inputs().iter().map(|cell| &self.known[cell][..]).collect();
        let made = interpret(plan.schedule(), &inputs)?;
        // Without inputs, the interpreter does not know the length of a cell of zeros.
        let is_right = |cell: &CellId, made: &[u8]| match inputs.is_empty() {
            true => self.known[cell].iter().all(|&byte| byte == 0),
            false => self.known[cell] == made,
        };
        let mut outputs = plan.outputs().iter().zip(made);
        Ok(outputs.find(|(cell, made)| !is_right(cell, made)).map(|(&cell, _)| cell))
    }

    /// Computes the value that stands for `cell`.
    fn evaluate(&mut self, cell: CellId) {
        let Self { definition, data, known } = self;
        known.entry(cell).or_insert_with(|| {
            let mut sum = vec![0; data.first().map_or(0, Vec::len)];
            let add = |&position: &u32| xor(&mut sum, &data[position as usize]);
            match definition {
                Definition::Code(code) => code.row(cell).iter().for_each(add),
                Definition::Graph(graph) => match cell.index().checked_sub(graph.data()) {
                    None => return data[cell.index()].clone(),
                    Some(block) => graph.row(block as u32).iter().for_each(add),
                },
            }
            sum
        });
    }
}

/// Proves a schedule that updates `cells` after the data of `node` changed. Its inputs are the
/// cells of the `shards` shards that describe the change, then the old `cells`.
///
/// # Errors
/// If an output differs, which would be a bug of a planner.
pub(crate) fn update(
    code: &Code,
    schedule: &Schedule,
    node: NodeId,
    shards: usize,
    cells: &[CellId],
) -> Result<()> {
    let rows = code.node_cells(node).len();
    let inputs = symbols(schedule.inputs());
    let (changes, old) = inputs.split_at(shards * rows);
    let made = interpret(schedule, &slices(&inputs))?;
    for ((&cell, old), made) in cells.iter().zip(old).zip(made) {
        let mut sum = old.clone();
        let data = code.row(cell).iter().map(|&data| code.data_cells()[data as usize]);
        let places = data.filter_map(|data| code.cell(data).place);
        for place in places.filter(|place| place.node == node) {
            changes.chunks_exact(rows).for_each(|shard| xor(&mut sum, &shard[place.row]));
        }
        if sum != made {
            let (spec, cell) = (code.spec(), code.cell_name(cell));
            return Err(wrong(&format!("{spec}: a planned update computes cell {cell} wrong")));
        }
    }
    Ok(())
}

/// Compares what a schedule over words computes with the sums of products of `rows`.
///
/// # Errors
/// If an output differs, which would be a bug of a planner.
pub(crate) fn rows(rows: &CoefficientRows, schedule: &Schedule) -> Result<()> {
    let cells = words(rows.inputs, schedule.word());
    let made = interpret(schedule, &slices(&cells))?;
    for (row, made) in rows.coefficients.iter().zip(made) {
        let mut sum = vec![0; made.len()];
        for (&factor, cell) in row.iter().zip(&cells) {
            rows.field.multiples_of(factor).add(cell, &mut sum);
        }
        if sum != made {
            return Err(wrong("a planned schedule over words computes a wrong sum of products"));
        }
    }
    Ok(())
}

/// Compares what instructions compute on vectors with what their schedule computes. `shared` are
/// pairs of an input and the output that takes its place in memory.
///
/// # Errors
/// If an output differs, which would be a bug of a pass.
pub(crate) fn allocation(
    schedule: &Schedule,
    shared: &[(usize, usize)],
    allocation: &Allocation,
) -> Result<()> {
    let run = LANE * allocation.group;
    let mut inputs = match schedule.field() {
        None => symbols(schedule.inputs()),
        Some(_) => words_for_instructions(schedule.inputs(), schedule.word()),
    };
    inputs.iter_mut().for_each(|cell| cell.resize(cell.len().next_multiple_of(run), 0));
    let expected = interpret(schedule, &slices(&inputs))?;
    let length = inputs.first().map_or(0, Vec::len);
    let mut machine = Registers::new(allocation, shared, schedule);
    for start in (0..length).step_by(run) {
        machine.run(allocation, &inputs, start);
        let made = machine.outputs.as_flattened().chunks_exact(run);
        if made.zip(&expected).any(|(made, right)| made != &right[start..start + run]) {
            return Err(wrong(
                "the instructions of a program compute other bytes than its schedule",
            ));
        }
    }
    Ok(())
}

fn xor(sum: &mut [u8], cell: &[u8]) {
    sum.iter_mut().zip(cell).for_each(|(sum, byte)| *sum ^= byte);
}

fn wrong(what: &str) -> Error {
    Error::internal(format!("{what}; it is not used"))
}

fn slices(cells: &[Vec<u8>]) -> Vec<&[u8]> {
    cells.iter().map(Vec::as_slice).collect()
}

/// Values that stand for cells of packets: one bit for each cell, or random bits.
fn symbols(cells: usize) -> Vec<Vec<u8>> {
    if cells > SYMBOL_BITS {
        return random(cells, RANDOM_BITS / 8);
    }
    let unit = |cell: usize| {
        let mut symbol = vec![0; cells.div_ceil(8)];
        symbol[cell / 8] = 1 << (cell % 8);
        symbol
    };
    (0..cells).map(unit).collect()
}

/// Values that stand for cells of words of `word` bytes: one word for each bit of each cell, in
/// which only this bit is set, or random words if there are too many bits.
fn words(cells: usize, word: usize) -> Vec<Vec<u8>> {
    let bits = 8 * word;
    if cells * bits > PROOF_WORDS {
        return random(cells, PROOF_WORDS * word);
    }
    let units = |cell: usize| {
        let mut words = vec![0; cells * bits * word];
        for bit in 0..bits {
            words[(cell * bits + bit) * word + bit / 8] = 1 << (bit % 8);
        }
        words
    };
    (0..cells).map(units).collect()
}

/// As [`words`], with some random words appended, because wrong instructions need not be linear.
fn words_for_instructions(cells: usize, word: usize) -> Vec<Vec<u8>> {
    let mut cells = words(cells, word);
    let random = random(cells.len(), NONLINEAR_WORDS * word);
    cells.iter_mut().zip(random).for_each(|(cell, random)| cell.extend(random));
    cells
}

fn random(cells: usize, bytes: usize) -> Vec<Vec<u8>> {
    let mut chance = Chance::new(SEED);
    let mut cell = || (0..bytes).map(|_| chance.below(256) as u8).collect();
    (0..cells).map(|_| cell()).collect()
}

/// The state of a machine that runs instructions on 16 bytes of every vector.
struct Registers<'a> {
    constants: &'a [Lane],
    shared: &'a [(usize, usize)],
    group: usize,
    registers: [Lane; 32],
    inputs: Vec<Lane>,
    scratch: Vec<Lane>,
    outputs: Vec<Lane>,
}

impl<'a> Registers<'a> {
    fn new(allocation: &'a Allocation, shared: &'a [(usize, usize)], schedule: &Schedule) -> Self {
        let group = allocation.group;
        Self {
            constants: &allocation.constants,
            shared,
            group,
            registers: [[0; LANE]; 32],
            inputs: vec![[0; LANE]; schedule.inputs() * group],
            scratch: vec![[0; LANE]; allocation.scratch],
            outputs: vec![[0; LANE]; schedule.outputs() * group],
        }
    }

    /// Runs instructions from byte `start` of the inputs on.
    fn run(&mut self, allocation: &Allocation, inputs: &[Vec<u8>], start: usize) {
        for (cell, lanes) in inputs.iter().zip(self.inputs.chunks_exact_mut(self.group)) {
            let lanes = lanes.as_flattened_mut();
            lanes.copy_from_slice(&cell[start..start + lanes.len()]);
        }
        self.outputs.fill([0; LANE]);
        allocation.steps.iter().for_each(|step| self.step(step));
    }

    fn register(&self, Register(number): Register) -> Lane {
        self.registers[usize::from(number)]
    }

    fn read(&self, operand: Operand) -> Lane {
        match operand {
            Operand::Register(register) => self.register(register),
            Operand::Memory(MemoryOperand::Input(n)) => self.inputs[n as usize],
            Operand::Memory(MemoryOperand::Output(n)) => self.outputs[n as usize],
            Operand::Memory(MemoryOperand::Scratch(n)) => self.scratch[n as usize],
            Operand::Memory(MemoryOperand::Constant(n)) => self.constants[n as usize],
        }
    }

    fn step(&mut self, step: &Step) {
        let xor = |a: Lane, b: Lane| std::array::from_fn(|n| a[n] ^ b[n]);
        let (to, value) = match *step {
            Step::Zero { to } => (to, [0; LANE]),
            Step::Load { to, from } => (to, self.read(from)),
            Step::Xor { to, a, b } => (to, xor(self.register(a), self.read(b))),
            Step::Xor3 { to, a, b } => {
                (to, xor(self.register(to), xor(self.register(a), self.read(b))))
            }
            Step::Map { to, map, a } => (to, map.apply(self.register(a))),
            Step::Pair { to, pair, a, b } => (to, pair.apply(self.register(a), self.read(b))),
            Step::Store { from, to } => return self.store(to, self.register(from)),
        };
        self.registers[usize::from(to.0)] = value;
    }

    fn store(&mut self, to: MemoryOperand, value: Lane) {
        match to {
            MemoryOperand::Output(n) => {
                let (output, part) = (n as usize / self.group, n as usize % self.group);
                self.outputs[n as usize] = value;
                for &(input, _) in self.shared.iter().filter(|&&(_, shared)| shared == output) {
                    self.inputs[input * self.group + part] = value;
                }
            }
            MemoryOperand::Scratch(n) => self.scratch[n as usize] = value,
            MemoryOperand::Input(_) | MemoryOperand::Constant(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::define::builder::CodeBuilder;
    use crate::define::cells::{CellSet, Role};
    use crate::define::field::Field;
    use crate::define::lt::LtCode;
    use crate::define::spec::Spec;
    use crate::plan::PlanOptions;
    use crate::plan::arrange::arranged;
    use crate::plan::combination::Change;
    use crate::plan::lt::{Decoder, Method};
    use crate::plan::machine::Machine;
    use crate::plan::schedule::{Op, Slot};

    fn encoding(spec: &str) -> (Code, Plan) {
        let code = Code::new(&spec.parse().unwrap()).unwrap();
        let plan = code.schedule(&code.stored(Role::Data), &code.made_in(1)).unwrap();
        (code, plan)
    }

    /// Returns a schedule in which one operation has a source more or less.
    fn changed(schedule: &Schedule, op: usize) -> Schedule {
        let mut ops = schedule.ops().to_vec();
        let Op { sources, .. } = &mut ops[op];
        match sources.iter().position(|&source| source == Slot::Input(0)) {
            Some(place) => drop(sources.remove(place)),
            None => sources.push(Slot::Input(0)),
        }
        Schedule::new(schedule.inputs(), schedule.temps(), schedule.outputs(), ops).unwrap()
    }

    fn changed_plan(plan: &Plan, op: usize) -> Plan {
        let schedule = changed(plan.schedule(), op);
        Plan::new(schedule, plan.inputs().to_vec(), plan.outputs().to_vec()).unwrap()
    }

    /// Adds or removes one source of any operation; the proof notices it, on symbols and on random
    /// vectors.
    #[test]
    fn wrong_schedules_are_noticed() {
        for spec in ["4+2", "rdp:k=4", "cauchy:k=130,m=1,w=8"] {
            let (code, right) = encoding(spec);
            let schedule = right.schedule();
            Proof::new(&code).proved(right.clone()).unwrap();
            for wrong in (0..schedule.ops().len()).step_by(3) {
                let other = changed_plan(&right, wrong);
                let error = Proof::new(&code).proved(other).unwrap_err();
                assert!(error.to_string().contains("computes cell"), "{spec} {wrong}: {error}");
            }
        }
    }

    #[test]
    fn wrong_plans_of_graphs_are_noticed() {
        let graph = LtCode::new(&"lt:k=30,n=60".parse().unwrap()).unwrap().graph().unwrap();
        let mut decoder = Decoder::new(&graph, Method::Inactivation);
        (10..60).for_each(|block| _ = decoder.push(block).unwrap());
        for right in [graph.encode().unwrap(), decoder.plan().unwrap()] {
            Proof::of_graph(&graph).proved(right.clone()).unwrap();
            for wrong in 0..right.schedule().ops().len() {
                let error = Proof::of_graph(&graph).proved(changed_plan(&right, wrong));
                assert!(error.unwrap_err().to_string().contains("computes block c"), "{wrong}");
            }
        }
    }

    /// Adds or removes one source of any operation of an update, and exchanges two cells.
    #[test]
    fn wrong_updates_are_noticed() {
        for (spec, change) in [("4+2", Change::OldAndNew), ("rdp:k=4", Change::Difference)] {
            let code = Code::new(&spec.parse().unwrap()).unwrap();
            let (node, shards) = (NodeId::new(1), change.shards());
            let options = PlanOptions::default();
            let (right, mut cells) =
                code.schedule_update(node, change, &code.stored(Role::Parity), options).unwrap();
            update(&code, &right, node, shards, &cells).unwrap();
            for wrong in 0..right.ops().len() {
                let other = changed(&right, wrong);
                let error = update(&code, &other, node, shards, &cells).unwrap_err().to_string();
                assert!(error.contains("a planned update computes cell p"), "{spec}: {error}");
            }
            cells.swap(0, 1);
            assert!(update(&code, &right, node, shards, &cells).is_err(), "{spec}");
        }
    }

    #[test]
    fn a_cell_of_zeros_is_right_without_inputs() {
        let mut builder = CodeBuilder::new(1);
        builder.lane_rows(1);
        let data = builder.data(Some(0));
        let zeros = builder.derived(Role::Parity, Some(0), &[]);
        let same = builder.derived(Role::Parity, Some(0), &[data]);
        let code = builder.finish(Spec::new("any"), 0).unwrap();
        let cells = |cells: &[CellId]| CellSet::from_cells(3, cells.iter().copied());
        let plan = code.schedule(&cells(&[data]), &cells(&[zeros])).unwrap();
        assert!(plan.inputs().is_empty());
        Proof::new(&code).proved(plan.clone()).unwrap();
        let wrong = Plan::new(plan.schedule().clone(), Vec::new(), vec![same]).unwrap();
        assert_eq!(Proof::new(&code).wrong_cell(&wrong).unwrap(), Some(same));
    }

    /// Leaves out one instruction at a time; the proof notices it.
    #[test]
    fn wrong_instructions_are_noticed() {
        let rows = CoefficientRows {
            field: Field::new(8).unwrap(),
            inputs: 3,
            coefficients: vec![vec![1, 2, 3], vec![4, 5, 6]],
        };
        let words = rows.schedule(Machine::AVX2).unwrap();
        let (_, packets) = encoding("6+3");
        for schedule in [&words, packets.schedule()] {
            let streams = vec![0; schedule.inputs()];
            let right = arranged(schedule, &streams, Machine::AVX2).unwrap().allocation;
            allocation(schedule, &[], &right).unwrap();
            for step in 0..right.steps.len() {
                let mut wrong = right.clone();
                wrong.steps.remove(step);
                assert!(allocation(schedule, &[], &wrong).is_err(), "step {step}");
            }
        }
    }

    /// Reads an input after the output in its place has been written; the proof notices it.
    #[test]
    fn outputs_in_the_place_of_inputs_are_noticed() {
        let text = "inputs 2 temps 0 outputs 2\no0 = i0 ^ i1\no1 = i0\n";
        let schedule: Schedule = text.parse().unwrap();
        let (sum, copy) = (Register(0), Register(1));
        let input = |n| Operand::Memory(MemoryOperand::Input(n));
        let store = |from, n| Step::Store { from, to: MemoryOperand::Output(n) };
        let steps = vec![
            Step::Load { to: sum, from: input(0) },
            Step::Xor { to: sum, a: sum, b: input(1) },
            store(sum, 0),
            Step::Load { to: copy, from: input(0) },
            store(copy, 1),
        ];
        let constants = Vec::new();
        let made = Allocation { steps, group: 1, constants, loads: 3, stores: 2, scratch: 0 };
        allocation(&schedule, &[], &made).unwrap();
        allocation(&schedule, &[(1, 1)], &made).unwrap();
        assert!(allocation(&schedule, &[(0, 0)], &made).is_err());
    }
}
