//! Register allocation: which values of a vector program stay in registers and which are read from
//! memory.
//!
//! A compiled kernel runs a whole schedule on one vector of every packet. For a machine with a
//! given number of registers, this module decides where each value is, and counts what that costs.
//! Inputs and constants are memory operands and never spilled. An input or constant that is used
//! again soon is kept in a register while there is room, because loads limit the speed of these
//! kernels. When no register is free, the value whose next use is furthest away is evicted
//! (Belady's rule); values that memory already holds are evicted first. An evicted temporary that
//! memory does not hold is stored to the scratch.
//!
//! A machine without memory operands loads the operands of an operation before it XORs them, as
//! many at a time as there are free registers. So a processor that executes instructions in order
//! does not wait for each load. One register (two with three-input XOR) is reserved for these
//! loads, so that making room for them never spills a value.

use std::collections::VecDeque;

use crate::plan::machine::Machine;
use crate::plan::steps::{Allocation, MemoryOperand, Operand, Register, Step};
use crate::plan::vector::{PairOperation, Value, VectorOp, VectorProgram, VectorWork};

/// Allocates registers for a vector program, in the order of its operations.
pub(crate) fn allocate(program: &VectorProgram, machine: Machine) -> Allocation {
    let mut allocator = Allocator::new(program, machine);
    program.ops.iter().for_each(|op| allocator.operation(op));
    allocator.finish()
}

/// Where a value is at some point of the program.
#[derive(Debug, Clone, Copy, Default)]
struct ValuePlace {
    register: Option<Register>,
    memory: Option<MemoryOperand>,
}

/// The operations that use each value, in order.
struct Uses {
    /// Positions of operations, grouped by the value that they use.
    positions: Vec<u32>,
    /// For each value, the index in `positions` of its next use; `end` is the end of its uses.
    next: Vec<u32>,
    end: Vec<u32>,
}

impl Uses {
    fn new(program: &VectorProgram) -> Self {
        let mut counts = vec![0; program.values()];
        let sources = |op: &VectorOp| -> Vec<usize> {
            op.work.sources().iter().map(|&source| program.number(source)).collect()
        };
        for op in &program.ops {
            sources(op).into_iter().for_each(|value| counts[value] += 1);
        }
        let mut total = 0;
        let starts = counts.iter().map(|count| {
            total += count;
            total - count
        });
        let next: Vec<u32> = starts.collect();
        let mut end = next.clone();
        let mut positions = vec![0; total as usize];
        for (position, op) in program.ops.iter().enumerate() {
            for value in sources(op) {
                positions[end[value] as usize] = position as u32;
                end[value] += 1;
            }
        }
        Self { positions, next, end }
    }

    /// Returns the position of the next operation that uses a value, if there is one.
    fn next(&self, value: usize) -> Option<u32> {
        let next = self.next[value];
        (next < self.end[value]).then(|| self.positions[next as usize])
    }
}

struct Allocator<'a> {
    program: &'a VectorProgram,
    machine: Machine,
    held: Vec<ValuePlace>,
    uses: Uses,
    /// For each register, the value in it.
    holder: Vec<Option<Value>>,
    pinned: Vec<bool>,
    free_scratch: Vec<u32>,
    scratch: u32,
    steps: Vec<Step>,
}

impl<'a> Allocator<'a> {
    fn new(program: &'a VectorProgram, machine: Machine) -> Self {
        let mut held = vec![ValuePlace::default(); program.values()];
        let inputs = (0..program.inputs as u32).map(|n| (Value::Input(n), MemoryOperand::Input(n)));
        let constants = 0..program.constants.len() as u32;
        let constants = constants.map(|n| (Value::Constant(n), MemoryOperand::Constant(n)));
        for (value, memory) in inputs.chain(constants) {
            held[program.number(value)].memory = Some(memory);
        }
        Self {
            program,
            machine,
            held,
            uses: Uses::new(program),
            holder: vec![None; machine.values()],
            pinned: vec![false; machine.values()],
            free_scratch: Vec::new(),
            scratch: 0,
            steps: Vec::new(),
        }
    }

    fn operation(&mut self, op: &VectorOp) {
        let sources = op.work.sources();
        for &source in sources {
            let number = self.program.number(source);
            self.uses.next[number] += 1;
        }
        sources.iter().for_each(|&source| self.pin(source));
        sources.iter().for_each(|&source| self.keep_if_used_again(source));
        let to = match &op.work {
            VectorWork::Xor(sources) => self.xor(sources),
            &VectorWork::Map(map, a) => {
                let a = self.bring(a);
                let to = self.result_register(sources);
                self.steps.push(Step::Map { to, map, a });
                to
            }
            &VectorWork::Pair(pair, [a, b]) => self.pair(pair, a, b),
        };
        sources.iter().for_each(|&source| self.release(source));
        self.define(op.target, to);
        self.pinned.fill(false);
    }

    fn xor(&mut self, sources: &[Value]) -> Register {
        let to = self.result_register(sources);
        self.combine(to, sources);
        to
    }

    fn pair(&mut self, pair: PairOperation, a: Value, b: Value) -> Register {
        let first = self.bring(a);
        let in_memory = self.held(b).memory.filter(|_| {
            self.held(b).register.is_none() && self.machine.memory_operands && pair.reads_memory()
        });
        let second = match in_memory {
            Some(memory) => Operand::Memory(memory),
            None => Operand::Register(self.bring(b)),
        };
        // The result of a look-up takes the register of its table if the table is not needed again,
        // otherwise that of its index.
        let sources = if pair == PairOperation::Lookup { [b, a] } else { [a, b] };
        let to = self.result_register(&sources);
        self.steps.push(Step::Pair { to, pair, a: first, b: second });
        to
    }

    fn finish(self) -> Allocation {
        let loads = self.steps.iter().filter(|step| step.reads().is_some()).count();
        let stores = self.steps.iter().filter(|s| matches!(s, Step::Store { .. })).count();
        Allocation {
            scratch: self.scratch as usize,
            loads,
            stores,
            steps: self.steps,
            group: self.program.group,
            constants: self.program.constants.clone(),
        }
    }

    fn held(&self, value: Value) -> ValuePlace {
        self.held[self.program.number(value)]
    }

    fn held_mut(&mut self, value: Value) -> &mut ValuePlace {
        &mut self.held[self.program.number(value)]
    }

    fn next_use(&self, value: Value) -> Option<u32> {
        self.uses.next(self.program.number(value))
    }

    fn pin(&mut self, value: Value) {
        if let Some(Register(number)) = self.held(value).register {
            self.pinned[usize::from(number)] = true;
        }
    }

    /// Loads a value that memory holds into a register if the value is used again. The register is
    /// a free one if at least two are free. If only one is free, it is left for the result. The
    /// value then takes the register of another value that memory also holds and whose next use is
    /// later.
    fn keep_if_used_again(&mut self, value: Value) {
        let ValuePlace { register: None, memory: Some(memory) } = self.held(value) else { return };
        let Some(next) = self.next_use(value) else { return };
        let free = self.holder.iter().filter(|holder| holder.is_none()).count();
        let register = match (free, self.clean_victim()) {
            (2.., _) => self.free_register(),
            (_, Some((register, later))) if later > next && free > 0 => Some(register),
            _ => None,
        };
        let Some(register) = register else { return };
        self.load(register, value, memory);
    }

    /// Returns the register that holds a value, loading the value if necessary.
    fn bring(&mut self, value: Value) -> Register {
        match self.held(value) {
            ValuePlace { register: Some(register), .. } => register,
            ValuePlace { memory: Some(memory), .. } => {
                let register = self.free_register().unwrap_or_else(|| self.victim());
                self.load(register, value, memory);
                register
            }
            // A program's operations read only values that earlier ones computed.
            ValuePlace { .. } => Register(0),
        }
    }

    fn load(&mut self, register: Register, value: Value, memory: MemoryOperand) {
        self.evict(register);
        self.steps.push(Step::Load { to: register, from: Operand::Memory(memory) });
        self.hold(register, value);
    }

    /// Returns a register for the result: the register of a source that is not used again, else a
    /// free one, else one whose value is evicted.
    fn result_register(&mut self, sources: &[Value]) -> Register {
        let dying = sources.iter().filter(|&&source| self.next_use(source).is_none());
        let in_place = dying.into_iter().find_map(|&source| self.held(source).register);
        if let Some(register) = in_place.or_else(|| self.free_register()) {
            return register;
        }
        let register = self.victim();
        self.evict(register);
        register
    }

    /// Returns the register whose value is best evicted. Sources of the operation at hand stay, as
    /// long as another register is left. If they take all registers, any of them may be evicted:
    /// the operation has read its first source by then, and reads every other one from memory.
    fn victim(&self) -> Register {
        let victim = self.clean_victim().or_else(|| self.furthest(|_| true));
        victim.map_or(Register(0), |(register, _)| register)
    }

    fn free_register(&self) -> Option<Register> {
        self.holder.iter().position(Option::is_none).map(|number| Register(number as u8))
    }

    fn clean_victim(&self) -> Option<(Register, u32)> {
        self.furthest(|value| self.held(value).memory.is_some())
    }

    /// Returns the unpinned register whose value is used furthest in the future, with the position
    /// of that use.
    fn furthest(&self, allowed: impl Fn(Value) -> bool) -> Option<(Register, u32)> {
        self.holder
            .iter()
            .enumerate()
            .filter(|&(number, _)| !self.pinned[number])
            .filter_map(|(number, holder)| holder.map(|value| (number, value)))
            .filter(|&(_, value)| allowed(value))
            .map(|(number, value)| {
                (Register(number as u8), self.next_use(value).unwrap_or(u32::MAX))
            })
            .max_by_key(|&(register, next)| (next, std::cmp::Reverse(register)))
    }

    /// Frees a register. Its value is stored to the scratch unless memory holds it already.
    fn evict(&mut self, register: Register) {
        let number = usize::from(register.0);
        let Some(value) = self.holder[number].take() else { return };
        if self.held(value).memory.is_none() {
            let place = self.free_scratch.pop().unwrap_or_else(|| {
                self.scratch += 1;
                self.scratch - 1
            });
            let memory = MemoryOperand::Scratch(place);
            self.steps.push(Step::Store { from: register, to: memory });
            self.held_mut(value).memory = Some(memory);
        }
        self.held_mut(value).register = None;
    }

    fn hold(&mut self, register: Register, value: Value) {
        let number = usize::from(register.0);
        self.holder[number] = Some(value);
        self.pinned[number] = true;
        self.held_mut(value).register = Some(register);
    }

    /// Emits the XOR of the sources into `to`.
    fn combine(&mut self, to: Register, sources: &[Value]) {
        let mut registers = VecDeque::new();
        let mut memories = VecDeque::new();
        for &source in sources {
            match self.held(source) {
                ValuePlace { register: Some(register), .. } => registers.push_back(register),
                ValuePlace { memory: Some(memory), .. } => memories.push_back(memory),
                ValuePlace { .. } => {}
            }
        }
        // The first instruction overwrites `to`, so it must also read the source that `to` holds.
        let has_value = registers.contains(&to);
        registers.retain(|&register| register != to);
        let mut operands = Operands { to, has_value, registers, memories };
        let ternary = self.machine.ternary;
        if self.machine.memory_operands {
            operands.xor(ternary, &mut self.steps);
        } else {
            let temporaries = self.temporaries(to);
            operands.emit_with_loads(&temporaries, ternary, &mut self.steps);
        }
    }

    /// Registers other than `to` that hold nothing at this point.
    fn temporaries(&self, to: Register) -> Vec<Register> {
        (0..self.machine.registers)
            .filter(|&number| self.holder.get(number).is_none_or(Option::is_none))
            .map(|number| Register(number as u8))
            .filter(|&register| register != to)
            .collect()
    }

    /// Frees the places of a source that is not used again.
    fn release(&mut self, value: Value) {
        if self.next_use(value).is_some() {
            return;
        }
        let ValuePlace { register, memory } = std::mem::take(self.held_mut(value));
        if let Some(Register(number)) = register {
            self.holder[usize::from(number)] = None;
        }
        if let Some(MemoryOperand::Scratch(place)) = memory {
            self.free_scratch.push(place);
        }
    }

    fn define(&mut self, target: Value, register: Register) {
        let mut held = ValuePlace::default();
        if let Value::Output(n) = target {
            self.steps.push(Step::Store { from: register, to: MemoryOperand::Output(n) });
            held.memory = self.machine.outputs_readable.then_some(MemoryOperand::Output(n));
        }
        if self.next_use(target).is_some() {
            *self.held_mut(target) = held;
            self.hold(register, target);
        }
    }
}

/// The operands of one XOR, by location.
struct Operands {
    /// Register of the result.
    to: Register,
    /// Whether `to` already holds one of the operands.
    has_value: bool,
    registers: VecDeque<Register>,
    memories: VecDeque<MemoryOperand>,
}

impl Operands {
    /// Like [`Operands::xor`], on a machine that must load operands from memory. The first load
    /// goes to `to` if it has no value yet; the others go to the temporaries in turn.
    fn emit_with_loads(mut self, temporaries: &[Register], ternary: bool, steps: &mut Vec<Step>) {
        if !self.has_value
            && let Some(from) = self.memory()
        {
            steps.push(Step::Load { to: self.to, from });
            self.has_value = true;
        }
        let memories: Vec<MemoryOperand> = std::mem::take(&mut self.memories).into();
        for together in memories.chunks(temporaries.len().max(1)) {
            for (&to, &memory) in temporaries.iter().zip(together) {
                steps.push(Step::Load { to, from: Operand::Memory(memory) });
                self.registers.push_back(to);
            }
            self.xor(ternary, steps);
        }
        self.xor(ternary, steps);
    }

    /// XORs all remaining operands into `to`, on a machine with memory operands.
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

    /// XORs one or two operands into `to`; returns `None` if there are none left.
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
