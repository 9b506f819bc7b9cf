//! Registers: a schedule as the vector instructions of one pass over memory.
//!
//! A compiled kernel runs the whole schedule on one vector of every packet. This module decides,
//! for a machine of so many registers, which values stay in registers and which are read from
//! memory, and counts what that costs. Inputs are memory operands and never spilled; one that is
//! used again soon is kept in a register while there is room, because loads are what these kernels
//! are short of. When room runs out, the value whose next use is furthest away goes (Belady's rule),
//! those first that memory already holds; a temporary that memory does not hold is stored to a
//! scratch.
//!
//! A machine without memory operands loads an operation's before it XORs them, as many at a time
//! as there are free registers, so that a processor which runs instructions in order does not wait
//! for each. As many registers as one instruction needs operands are set aside for that, so that
//! nothing need be spilled to make room.
//!
//! The result is data; `run/jit` translates it to machine code step by step.

use std::collections::{BTreeSet, HashMap, VecDeque};

use crate::error::Result;
use crate::plan::optimise::by_source::by_source;
use crate::plan::optimise::order;
use crate::plan::schedule::{Op, Schedule, Slot};

/// The most operations that are reordered; it takes time quadratic in their number.
const REORDER_LIMIT: usize = 2000;

/// What the allocator must know of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Machine {
    /// Vector registers; at least 3.
    pub registers: usize,
    /// Whether one instruction XORs three vectors.
    pub ternary: bool,
    /// Whether XORs may read memory; otherwise loads do, to registers.
    pub memory_operands: bool,
    /// Whether an output may be read back from where it was stored (not so when stores bypass the
    /// cache).
    pub outputs_readable: bool,
}

impl Machine {
    /// AVX2, whose counts `paritas schedule` reports: 16 registers, two-input XOR.
    pub const AVX2: Self =
        Self { registers: 16, ternary: false, memory_operands: true, outputs_readable: true };

    /// The registers that hold values from one operation to the next; the others, set aside, come
    /// after them.
    fn values(self) -> usize {
        let set_aside = match (self.memory_operands, self.ternary) {
            (true, _) => 0,
            (false, false) => 1,
            (false, true) => 2,
        };
        self.registers - set_aside
    }
}

/// A vector register.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Register(pub u8);

/// A vector in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Memory {
    /// The current vector of an input.
    Input(u32),
    /// The current vector of an output.
    Output(u32),
    /// A vector of the scratch.
    Scratch(u32),
}

/// What an instruction reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operand<M = Memory> {
    /// A register.
    Register(Register),
    /// Memory.
    Memory(M),
}

/// One vector instruction; `M` says what in memory it reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step<M = Memory> {
    /// `to = 0`
    Zero {
        /// The register that is written.
        to: Register,
    },
    /// `to = from`
    Load {
        /// The register that is written.
        to: Register,
        /// What is read.
        from: Operand<M>,
    },
    /// `to = a ^ b`
    Xor {
        /// The register that is written.
        to: Register,
        /// The first source.
        a: Register,
        /// The second source.
        b: Operand<M>,
    },
    /// `to ^= a ^ b`
    Xor3 {
        /// The register that is added to.
        to: Register,
        /// The first source.
        a: Register,
        /// The second source.
        b: Operand<M>,
    },
    /// `to = from`
    Store {
        /// The register that is read.
        from: Register,
        /// The vector that is written.
        to: M,
    },
}

impl<M> Operand<M> {
    fn map<N>(self, place: impl FnOnce(M) -> N) -> Operand<N> {
        match self {
            Self::Register(register) => Operand::Register(register),
            Self::Memory(memory) => Operand::Memory(place(memory)),
        }
    }
}

impl<M> Step<M> {
    /// The same instruction with its memory said in another way.
    pub fn map<N>(self, place: impl FnOnce(M) -> N) -> Step<N> {
        match self {
            Self::Zero { to } => Step::Zero { to },
            Self::Load { to, from } => Step::Load { to, from: from.map(place) },
            Self::Xor { to, a, b } => Step::Xor { to, a, b: b.map(place) },
            Self::Xor3 { to, a, b } => Step::Xor3 { to, a, b: b.map(place) },
            Self::Store { from, to } => Step::Store { from, to: place(to) },
        }
    }
}

/// A schedule's instructions for one vector of every packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allocation {
    /// The instructions.
    pub steps: Vec<Step>,
    /// Vectors of scratch.
    pub scratch: usize,
    /// Vectors that are loaded.
    pub loads: usize,
    /// Vectors that are stored.
    pub stores: usize,
}

impl Allocation {
    /// The cheapest allocation found for a schedule, that of [`arranged`].
    ///
    /// # Errors
    /// When the schedule is not single-assignment.
    pub fn best(schedule: &Schedule, streams: &[usize], machine: Machine) -> Result<Self> {
        Ok(cheapest(orders(schedule, Some(streams), machine)?, machine).1)
    }

    /// The cheapest allocation among orders of the schedule's own operations.
    ///
    /// # Errors
    /// When the schedule is not single-assignment.
    pub(crate) fn of_operations(schedule: &Schedule, machine: Machine) -> Result<Self> {
        Ok(cheapest(orders(schedule, None, machine)?, machine).1)
    }

    /// An allocation that reads every input once, stream by stream, and nothing else, if there is one:
    /// no line of a stream has to stay in the cache for it.
    pub(crate) fn reading_once(
        schedule: &Schedule,
        streams: &[usize],
        machine: Machine,
    ) -> Option<Self> {
        let streamed = Self::of(&by_source(schedule, streams).ok()?, machine);
        (streamed.loads <= schedule.inputs()).then_some(streamed)
    }

    /// The inputs that are read; a schedule may leave some out.
    pub(crate) fn inputs_read(&self) -> BTreeSet<u32> {
        let mut inputs = BTreeSet::new();
        for step in &self.steps {
            step.map(|memory| {
                if let Memory::Input(n) = memory {
                    inputs.insert(n);
                }
            });
        }
        inputs
    }

    /// The allocation of a single-assignment schedule in the order in which it stands.
    fn of(schedule: &Schedule, machine: Machine) -> Self {
        let mut allocator = Allocator::new(schedule, machine);
        schedule.ops().iter().for_each(|op| allocator.operation(op));
        allocator.finish()
    }

    /// Loads and stores, a store counting as two: processors load two or three vectors a cycle and
    /// store one. Of the instructions, memory's among them, so many run beside these that each counts as
    /// a quarter of a load (which ranks the orders of 6+3, 10+4 and 20+4 as they were measured).
    pub(crate) fn cost(&self) -> usize {
        4 * (self.loads + 2 * self.stores) + self.steps.len()
    }
}

/// A schedule in the order that a compiled kernel runs it in: its own, one with few live values, or
/// what computes the same stream by stream, if the outputs fit into registers; the one that is the
/// cheapest on that machine. Input `i` belongs to stream `streams[i]`.
///
/// # Errors
/// When the schedule is not single-assignment.
pub fn arranged(schedule: &Schedule, streams: &[usize], machine: Machine) -> Result<Schedule> {
    Ok(cheapest(orders(schedule, Some(streams), machine)?, machine).0)
}

/// The orders that are tried, a schedule's own first; stream by stream where it is known of which
/// streams the inputs are.
fn orders(
    schedule: &Schedule,
    streams: Option<&[usize]>,
    machine: Machine,
) -> Result<Vec<Schedule>> {
    schedule.require_single_assignment()?;
    let mut orders = vec![schedule.clone()];
    if schedule.ops().len() <= REORDER_LIMIT {
        orders.push(order::few_live(schedule)?);
    }
    if let Some(streams) = streams
        && schedule.outputs() < machine.registers
    {
        orders.push(by_source(schedule, streams)?);
    }
    Ok(orders)
}

/// The first of the cheapest.
fn cheapest(mut orders: Vec<Schedule>, machine: Machine) -> (Schedule, Allocation) {
    let mut best = 0;
    let mut allocation = Allocation::of(&orders[0], machine);
    for (number, order) in orders.iter().enumerate().skip(1) {
        let other = Allocation::of(order, machine);
        if other.cost() < allocation.cost() {
            (best, allocation) = (number, other);
        }
    }
    (orders.swap_remove(best), allocation)
}

/// A value's state while instructions are made.
#[derive(Debug, Clone, Copy, Default)]
struct Value {
    register: Option<Register>,
    memory: Option<Memory>,
}

struct Allocator {
    machine: Machine,
    values: HashMap<Slot, Value>,
    /// Per value, the operations that use it, the last one first.
    uses: HashMap<Slot, Vec<usize>>,
    holder: Vec<Option<Slot>>,
    pinned: Vec<bool>,
    free_scratch: Vec<u32>,
    scratch: u32,
    steps: Vec<Step>,
}

impl Allocator {
    fn new(schedule: &Schedule, machine: Machine) -> Self {
        let mut uses: HashMap<Slot, Vec<usize>> = HashMap::new();
        for (position, op) in schedule.ops().iter().enumerate().rev() {
            for &source in &op.sources {
                uses.entry(source).or_default().push(position);
            }
        }
        let input = |n: usize| {
            let n = n as u32;
            (Slot::Input(n), Value { register: None, memory: Some(Memory::Input(n)) })
        };
        Self {
            machine,
            values: (0..schedule.inputs()).map(input).collect(),
            uses,
            holder: vec![None; machine.values()],
            pinned: vec![false; machine.values()],
            free_scratch: Vec::new(),
            scratch: 0,
            steps: Vec::new(),
        }
    }

    fn operation(&mut self, op: &Op) {
        for source in &op.sources {
            self.uses.entry(*source).or_default().pop();
        }
        op.sources.iter().for_each(|&source| self.pin(source));
        op.sources.iter().for_each(|&source| self.keep_if_used_again(source));
        let to = self.result_register(&op.sources);
        self.combine(to, &op.sources);
        op.sources.iter().for_each(|&source| self.release(source));
        self.define(op.target, to);
        self.pinned.fill(false);
    }

    fn finish(self) -> Allocation {
        let reads_memory = |step: &&Step| {
            matches!(
                step,
                Step::Load { from: Operand::Memory(_), .. }
                    | Step::Xor { b: Operand::Memory(_), .. }
                    | Step::Xor3 { b: Operand::Memory(_), .. }
            )
        };
        let loads = self.steps.iter().filter(reads_memory).count();
        let stores = self.steps.iter().filter(|s| matches!(s, Step::Store { .. })).count();
        Allocation { scratch: self.scratch as usize, loads, stores, steps: self.steps }
    }

    fn register_of(&self, slot: Slot) -> Option<Register> {
        self.values.get(&slot).and_then(|value| value.register)
    }

    fn next_use(&self, slot: Slot) -> Option<usize> {
        self.uses.get(&slot).and_then(|uses| uses.last().copied())
    }

    fn pin(&mut self, slot: Slot) {
        if let Some(Register(number)) = self.register_of(slot) {
            self.pinned[usize::from(number)] = true;
        }
    }

    /// Loads a value that memory holds into a register, if it is used again and a register is
    /// free or holds something that memory also holds and that is used later still.
    fn keep_if_used_again(&mut self, slot: Slot) {
        let (None, Some(next)) = (self.register_of(slot), self.next_use(slot)) else { return };
        let free = self.holder.iter().filter(|holder| holder.is_none()).count();
        let register = match (free, self.clean_victim()) {
            (2.., _) => self.free_register(),
            (_, Some((register, later))) if later > next && free > 0 => Some(register),
            _ => None,
        };
        let Some(register) = register else { return };
        let memory = self.values.get(&slot).and_then(|value| value.memory);
        let Some(memory) = memory else { return };
        self.evict(register);
        self.steps.push(Step::Load { to: register, from: Operand::Memory(memory) });
        self.hold(register, slot);
    }

    /// A register for the result: that of a source which is not used again, a free one, or one
    /// that is made free.
    fn result_register(&mut self, sources: &[Slot]) -> Register {
        let dying = sources.iter().filter(|&&source| self.next_use(source).is_none());
        let in_place = dying.into_iter().find_map(|&source| self.register_of(source));
        if let Some(register) = in_place.or_else(|| self.free_register()) {
            return register;
        }
        let victim = self.clean_victim().map(|(register, _)| register);
        let victim = victim.or_else(|| self.furthest(|_| true).map(|(register, _)| register));
        // With every register pinned by one operation's sources, any source may go: it is read
        // from the register first when it stands first, and from memory otherwise.
        let register = victim.unwrap_or(Register(0));
        self.evict(register);
        register
    }

    fn free_register(&self) -> Option<Register> {
        self.holder.iter().position(Option::is_none).map(|number| Register(number as u8))
    }

    fn clean_victim(&self) -> Option<(Register, usize)> {
        self.furthest(|slot| self.values.get(&slot).is_some_and(|value| value.memory.is_some()))
    }

    /// The unpinned register whose value is used furthest in the future, with that use.
    fn furthest(&self, allowed: impl Fn(Slot) -> bool) -> Option<(Register, usize)> {
        self.holder
            .iter()
            .enumerate()
            .filter(|&(number, _)| !self.pinned[number])
            .filter_map(|(number, holder)| holder.map(|slot| (number, slot)))
            .filter(|&(_, slot)| allowed(slot))
            .map(|(number, slot)| {
                (Register(number as u8), self.next_use(slot).unwrap_or(usize::MAX))
            })
            .max_by_key(|&(register, next)| (next, std::cmp::Reverse(register)))
    }

    /// Frees a register, storing its value to the scratch where memory does not hold it.
    fn evict(&mut self, register: Register) {
        let number = usize::from(register.0);
        let Some(slot) = self.holder[number].take() else { return };
        if self.values.get(&slot).is_some_and(|value| value.memory.is_none()) {
            let place = self.free_scratch.pop().unwrap_or_else(|| {
                self.scratch += 1;
                self.scratch - 1
            });
            let memory = Memory::Scratch(place);
            self.steps.push(Step::Store { from: register, to: memory });
            self.values.entry(slot).or_default().memory = Some(memory);
        }
        self.values.entry(slot).or_default().register = None;
    }

    fn hold(&mut self, register: Register, slot: Slot) {
        let number = usize::from(register.0);
        self.holder[number] = Some(slot);
        self.pinned[number] = true;
        self.values.entry(slot).or_default().register = Some(register);
    }

    /// Emits the XOR of the sources into `to`.
    fn combine(&mut self, to: Register, sources: &[Slot]) {
        let mut registers = Vec::new();
        let mut memories = Vec::new();
        for &source in sources {
            match self.values.get(&source).copied().unwrap_or_default() {
                Value { register: Some(register), .. } => registers.push(register),
                Value { memory: Some(memory), .. } => memories.push(memory),
                Value { .. } => {}
            }
        }
        // What stands in `to` is overwritten by the first instruction, so it is read there.
        let has_value = registers.contains(&to);
        registers.retain(|&register| register != to);
        let operands =
            Operands { to, has_value, registers: registers.into(), memories: memories.into() };
        let steps = if self.machine.memory_operands {
            operands.steps(self.machine.ternary)
        } else {
            operands.steps_with_loads(&self.temporaries(to), self.machine.ternary)
        };
        self.steps.extend(steps);
    }

    /// The registers that hold nothing while `to` is made.
    fn temporaries(&self, to: Register) -> Vec<Register> {
        (0..self.machine.registers)
            .filter(|&number| self.holder.get(number).is_none_or(Option::is_none))
            .map(|number| Register(number as u8))
            .filter(|&register| register != to)
            .collect()
    }

    /// Forgets a source that is not used again.
    fn release(&mut self, slot: Slot) {
        if self.next_use(slot).is_some() {
            return;
        }
        if let Some(value) = self.values.remove(&slot) {
            if let Some(Register(number)) = value.register {
                self.holder[usize::from(number)] = None;
            }
            if let Some(Memory::Scratch(place)) = value.memory {
                self.free_scratch.push(place);
            }
        }
    }

    fn define(&mut self, target: Slot, register: Register) {
        let mut value = Value::default();
        if let Slot::Output(n) = target {
            self.steps.push(Step::Store { from: register, to: Memory::Output(n) });
            value.memory = self.machine.outputs_readable.then_some(Memory::Output(n));
        }
        if self.next_use(target).is_some() {
            self.values.insert(target, value);
            self.hold(register, target);
        }
    }
}

/// The operands of one operation, by where they are.
struct Operands {
    /// Where the result goes.
    to: Register,
    /// Whether one of the operands stands there already.
    has_value: bool,
    registers: VecDeque<Register>,
    memories: VecDeque<Memory>,
}

impl Operands {
    fn steps(mut self, ternary: bool) -> Vec<Step> {
        let mut steps = Vec::new();
        self.xor(ternary, &mut steps);
        steps
    }

    /// As [`Operands::steps`] on a machine that must load what memory holds: to `to` while it has
    /// no value, and to the temporaries, over and over.
    fn steps_with_loads(mut self, temporaries: &[Register], ternary: bool) -> Vec<Step> {
        let mut steps = Vec::new();
        if !self.has_value
            && let Some(from) = self.memory()
        {
            steps.push(Step::Load { to: self.to, from });
            self.has_value = true;
        }
        let memories: Vec<Memory> = std::mem::take(&mut self.memories).into();
        for together in memories.chunks(temporaries.len()) {
            for (&to, &memory) in temporaries.iter().zip(together) {
                steps.push(Step::Load { to, from: Operand::Memory(memory) });
                self.registers.push_back(to);
            }
            self.xor(ternary, &mut steps);
        }
        self.xor(ternary, &mut steps);
        steps
    }

    /// XORs all operands at hand into `to`.
    fn xor(&mut self, ternary: bool, steps: &mut Vec<Step>) {
        if !self.has_value {
            steps.push(self.first_step());
            self.has_value = true;
        }
        steps.extend(std::iter::from_fn(|| self.next_step(ternary)));
    }

    /// Gives `to` a first value.
    fn first_step(&mut self) -> Step {
        let to = self.to;
        let Some(a) = self.registers.pop_front() else {
            return match self.memory() {
                Some(from) => Step::Load { to, from },
                None => Step::Zero { to },
            };
        };
        match self.memory().or_else(|| self.register()) {
            Some(b) => Step::Xor { to, a, b },
            None => Step::Load { to, from: Operand::Register(a) },
        }
    }

    /// Adds one or two operands to `to`, unless there are none.
    fn next_step(&mut self, ternary: bool) -> Option<Step> {
        let to = self.to;
        if ternary && let Some(a) = self.registers.pop_front() {
            return Some(match self.memory().or_else(|| self.register()) {
                Some(b) => Step::Xor3 { to, a, b },
                None => Step::Xor { to, a: to, b: Operand::Register(a) },
            });
        }
        let b = self.register().or_else(|| self.memory());
        b.map(|b| Step::Xor { to, a: to, b })
    }

    fn register(&mut self) -> Option<Operand> {
        self.registers.pop_front().map(Operand::Register)
    }

    fn memory(&mut self) -> Option<Operand> {
        self.memories.pop_front().map(Operand::Memory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::define::cells::{Code, Role};

    /// Runs steps on single bytes.
    fn run(allocation: &Allocation, registers: usize, inputs: &[u8], outputs: usize) -> Vec<u8> {
        let mut file = vec![0; registers];
        let mut made = vec![0; outputs];
        let mut scratch = vec![0; allocation.scratch];
        for step in &allocation.steps {
            let read = |operand: Operand, file: &[u8], made: &[u8], scratch: &[u8]| match operand {
                Operand::Register(Register(r)) => file[usize::from(r)],
                Operand::Memory(Memory::Input(n)) => inputs[n as usize],
                Operand::Memory(Memory::Output(n)) => made[n as usize],
                Operand::Memory(Memory::Scratch(n)) => scratch[n as usize],
            };
            match *step {
                Step::Zero { to } => file[usize::from(to.0)] = 0,
                Step::Load { to, from } => {
                    file[usize::from(to.0)] = read(from, &file, &made, &scratch);
                }
                Step::Xor { to, a, b } => {
                    file[usize::from(to.0)] =
                        file[usize::from(a.0)] ^ read(b, &file, &made, &scratch);
                }
                Step::Xor3 { to, a, b } => {
                    file[usize::from(to.0)] ^=
                        file[usize::from(a.0)] ^ read(b, &file, &made, &scratch);
                }
                Step::Store { from, to: Memory::Output(n) } => {
                    made[n as usize] = file[usize::from(from.0)];
                }
                Step::Store { from, to: Memory::Scratch(n) } => {
                    scratch[n as usize] = file[usize::from(from.0)];
                }
                Step::Store { to: Memory::Input(_), .. } => panic!("inputs are never written"),
            }
        }
        made
    }

    #[test]
    fn steps_compute_what_the_schedule_says() {
        for spec in ["4+2", "10+4", "cauchy:k=6,m=3,w=8", "rdp:k=10", "evenodd:k=5", "20+4"] {
            let code = Code::new(&spec.parse().unwrap()).unwrap();
            let plan = code.schedule(&code.stored(Role::Data), &code.stored(Role::Parity)).unwrap();
            let schedule = plan.schedule();
            let streams = plan.streams(&code);
            let inputs: Vec<u8> =
                (0..schedule.inputs()).map(|i| (i * 89 + 7 + i / 3 * 31) as u8).collect();
            let cells: Vec<&[u8]> = inputs.chunks(1).collect();
            let expected = crate::plan::interpret::interpret(schedule, &cells).unwrap().concat();
            for machine in machines() {
                let allocation = Allocation::best(schedule, &streams, machine).unwrap();
                assert!(machine.memory_operands || allocation.steps.iter().all(only_loads_read));
                let made = run(&allocation, machine.registers, &inputs, expected.len());
                assert_eq!(made, expected, "{spec} {machine:?}");
            }
        }
    }

    fn machines() -> impl Iterator<Item = Machine> {
        [3, 4, 7, 16, 32].into_iter().flat_map(|registers| {
            (0..8).map(move |bits| Machine {
                registers,
                ternary: bits & 1 != 0,
                memory_operands: bits & 2 != 0,
                outputs_readable: bits & 4 != 0,
            })
        })
    }

    /// Whether a step fits a machine without memory operands.
    fn only_loads_read(step: &Step) -> bool {
        let b = match step {
            Step::Xor { b, .. } | Step::Xor3 { b, .. } => Some(b),
            Step::Zero { .. } | Step::Load { .. } | Step::Store { .. } => None,
        };
        !matches!(b, Some(Operand::Memory(_)))
    }

    /// The order that runs fused computes the same, and is allocated as it stands.
    #[test]
    fn arranged_schedules_are_what_is_allocated() {
        for (spec, ternary) in [("10+4", false), ("6+3", true), ("20+4", true)] {
            let code = Code::new(&spec.parse().unwrap()).unwrap();
            let plan = code.schedule(&code.stored(Role::Data), &code.stored(Role::Parity)).unwrap();
            let machine = Machine { ternary, registers: 32, ..Machine::AVX2 };
            let streams = plan.streams(&code);
            let arranged = arranged(plan.schedule(), &streams, machine).unwrap();
            let best = Allocation::best(plan.schedule(), &streams, machine).unwrap();
            assert_eq!(Allocation::of(&arranged, machine), best, "{spec}");
            let cells: Vec<[u8; 1]> =
                (0..arranged.inputs()).map(|i| [(i * 89 + 7 + i / 3 * 31) as u8]).collect();
            let cells: Vec<&[u8]> = cells.iter().map(|cell| &cell[..]).collect();
            let run = |schedule| crate::plan::interpret::interpret(schedule, &cells).unwrap();
            assert_eq!(run(&arranged), run(plan.schedule()), "{spec}");
        }
    }

    #[test]
    fn counts_by_hand() {
        let text = "inputs 3 temps 1 outputs 2\nt0 = i0 ^ i1\no0 = t0 ^ i2\no1 = t0\n";
        let allocation =
            Allocation::best(&text.parse().unwrap(), &[0, 0, 1], Machine::AVX2).unwrap();
        assert_eq!((allocation.loads, allocation.stores, allocation.scratch), (3, 2, 0));
    }

    /// Six inputs of one use: loaded two or three at a time with so few registers, all at once with
    /// many.
    #[test]
    fn loads_come_first_where_xors_read_no_memory() {
        let schedule =
            "inputs 6 temps 0 outputs 1\no0 = i0 ^ i1 ^ i2 ^ i3 ^ i4 ^ i5\n".parse().unwrap();
        let shape = |registers, ternary| -> String {
            let machine =
                Machine { registers, ternary, memory_operands: false, outputs_readable: true };
            let letter = |step: &Step| match step {
                Step::Zero { .. } => '0',
                Step::Load { .. } => 'L',
                Step::Xor { .. } => 'X',
                Step::Xor3 { .. } => '3',
                Step::Store { .. } => 'S',
            };
            Allocation::best(&schedule, &[0; 6], machine)
                .unwrap()
                .steps
                .iter()
                .map(letter)
                .collect()
        };
        assert_eq!(shape(3, false), "LLLXXLLXXLXS");
        assert_eq!(shape(3, true), "LLL3LL3LXS");
        assert_eq!(shape(32, false), "LLLLLLXXXXXS");
        assert_eq!(shape(32, true), "LLLLLL33XS");
    }
}
