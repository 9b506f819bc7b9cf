//! The function that a schedule becomes, instruction by instruction, for no particular processor.
//!
//! The function is `fn(pointers, count, scratch)`. `pointers` are the buffers' addresses, which the
//! function may change; `count` is the number of times that the body runs, at least once. The body
//! is the whole schedule on one vector of every packet, or on several where several make a cache
//! line. The constants by which words are multiplied are stored before the code. Buffers' addresses
//! stay in general registers; where there are more buffers than registers, the least used addresses
//! are fetched from `pointers` when needed.
//!
//! From one body to the next, all addresses advance by the same number of bytes. Bodies that
//! multiply words are short. In them the addresses stay unchanged and an index register is added to
//! them, because advancing them by 14 additions, 5 of them in memory, cost a body of 10+4 a fifth
//! of its time (AVX-512 with GFNI, Ice Lake). Elsewhere the addresses are advanced by additions,
//! because an instruction that computes with memory is split in two if its address has an index.
//!
//! Non-temporal stores must write whole lines. Where a vector is a part of a line, outputs go to
//! the scratch first, and from there to memory in address order at the end of the body.
//!
//! The decisions here hold for every processor. `x86_64` and `aarch64` translate each of these
//! instructions to one or a few of their own; they know registers, calling conventions and the
//! reach of an offset.

use crate::limits::PREFETCH_DISTANCE;
use crate::plan::machine::LINE;
use crate::plan::program::Program;
use crate::plan::schedule::Slot;
use crate::plan::steps::{Allocation, MemoryOperand, Operand, Register, Step};
use crate::plan::variants::{BodyWalk, RunVariant};
use crate::run::jit::instruction::{Address, Base, Counter, Instruction};
use crate::run::jit::isa::Isa;

/// A function, and the memory that it needs.
pub(crate) struct Assembled {
    pub(crate) instructions: Vec<Instruction>,
    /// Bytes of the constants, which are stored before the code.
    pub(crate) constants: Vec<u8>,
    /// Bytes of scratch.
    pub(crate) scratch: usize,
}

/// Writes the function of an allocation.
struct Assembler<'a> {
    isa: Isa,
    program: &'a Program,
    allocation: &'a Allocation,
    walk: BodyWalk,
    variant: RunVariant,
    addresses: Addresses,
    /// Whether addresses of buffers use the index register.
    indexed: bool,
    instructions: Vec<Instruction>,
}

/// Assembles the function of an allocation.
pub(crate) fn assemble(
    isa: Isa,
    program: &Program,
    allocation: &Allocation,
    walk: BodyWalk,
    variant: RunVariant,
) -> Assembled {
    let has_constants = !allocation.constants.is_empty();
    let addresses = Addresses::new(program, allocation, isa.addresses(has_constants));
    let body = walk.unroll * allocation.group * isa.vector();
    let indexed = has_constants && isa.has_index() && walk.inner == 1 && walk.strip == body;
    let instructions = Vec::new();
    let assembler =
        Assembler { isa, program, allocation, walk, variant, addresses, indexed, instructions };
    let repeats = isa.constant_bytes() / 16;
    let constants = allocation.constants.iter().flat_map(|constant| constant.repeat(repeats));
    Assembled {
        constants: constants.collect(),
        scratch: assembler.scratch_bytes(),
        instructions: assembler.function(),
    }
}

impl Assembler<'_> {
    /// Returns the bytes of scratch that the code needs.
    fn scratch_bytes(&self) -> usize {
        let schedule = self.program.schedule();
        let outputs = if self.stages_outputs() { schedule.outputs() } else { 0 };
        let inputs = if self.variant.stage_inputs { schedule.inputs() } else { 0 };
        let staged = (outputs + inputs) * self.allocation.group * self.walk.unroll;
        (self.allocation.scratch + staged) * self.isa.vector()
    }

    fn function(mut self) -> Vec<Instruction> {
        self.push(Instruction::Enter);
        if !self.allocation.constants.is_empty() {
            self.push(Instruction::FindConstants);
        }
        for (buffer, to) in self.addresses.resident.clone() {
            self.push(Instruction::Fetch { to, from: pointer(buffer) });
        }
        if self.indexed {
            self.push(Instruction::StartIndex);
        }
        let outer = self.instructions.len();
        if self.walk.inner > 1 {
            self.push(Instruction::Count(self.walk.inner));
        }
        let inner = self.instructions.len();
        self.body();
        let body = self.walk.unroll * self.allocation.group * self.isa.vector();
        if self.walk.inner > 1 {
            self.advance(body);
            self.push(Instruction::Repeat { counter: Counter::Inner, to: inner });
            self.advance(self.walk.strip - self.walk.inner * body);
        } else {
            self.advance(self.walk.strip);
        }
        self.push(Instruction::Repeat { counter: Counter::Outer, to: outer });
        self.push(Instruction::Leave { nontemporal: self.variant.nontemporal });
        self.instructions
    }

    fn push(&mut self, instruction: Instruction) {
        self.instructions.push(instruction);
    }

    fn advance(&mut self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        if self.indexed {
            return self.push(Instruction::AdvanceIndex(bytes));
        }
        for (_, base) in self.addresses.resident.clone() {
            self.push(Instruction::Advance { base, bytes });
        }
        for buffer in self.addresses.fetched.clone() {
            self.push(Instruction::AdvanceFetched { place: pointer(buffer), bytes });
        }
        self.addresses.forget();
    }

    fn body(&mut self) {
        self.addresses.forget();
        self.prefetch();
        if self.variant.stage_inputs {
            self.copy_inputs();
        }
        for column in 0..self.walk.unroll {
            for step in &self.allocation.steps {
                self.step(*step, column);
            }
        }
        if self.stages_outputs() {
            self.copy_staged_outputs();
        }
    }

    fn prefetch(&mut self) {
        if !self.variant.prefetch {
            return;
        }
        let mut lines: Vec<(usize, usize)> = Vec::new();
        for input in self.allocation.inputs_read() {
            for column in 0..self.walk.unroll {
                let (buffer, offset) = self.position(MemoryOperand::Input(input), column);
                lines.push((buffer, offset / LINE * LINE));
            }
        }
        lines.sort_unstable();
        lines.dedup();
        for (buffer, offset) in lines {
            let place = self.place(buffer, offset + PREFETCH_DISTANCE);
            self.push(Instruction::Prefetch(place));
        }
    }

    fn step(&mut self, step: Step, column: usize) {
        let nontemporal = self.variant.nontemporal && !self.stages_outputs();
        let is_output = matches!(step, Step::Store { to: MemoryOperand::Output(_), .. });
        let instruction = match step.map(|memory| self.memory(memory, column)) {
            Step::Store { from, to } if nontemporal && is_output => {
                Instruction::StoreNontemporal { from, to }
            }
            step => Instruction::Step(step),
        };
        self.push(instruction);
    }

    fn memory(&mut self, memory: MemoryOperand, column: usize) -> Address {
        match memory {
            MemoryOperand::Input(n) if self.variant.stage_inputs => {
                self.scratch(self.staged_input(n as usize, column))
            }
            MemoryOperand::Output(n) if self.stages_outputs() => {
                self.scratch(self.staged_output(n as usize, column))
            }
            MemoryOperand::Input(_) | MemoryOperand::Output(_) => {
                let (buffer, offset) = self.position(memory, column);
                self.place(buffer, offset)
            }
            MemoryOperand::Scratch(n) => self.scratch(n as usize),
            MemoryOperand::Constant(n) => {
                Address { base: Base::Constants, offset: n as usize * self.isa.constant_bytes() }
            }
        }
    }

    /// Returns the buffer of a vector of an input or output, and the offset in its strip.
    fn position(&self, memory: MemoryOperand, column: usize) -> (usize, usize) {
        let group = self.allocation.group;
        let Some((slot, part)) = cell(memory, group) else {
            unreachable!("only inputs and outputs lie in buffers")
        };
        let Some(location) = self.program.location(slot) else {
            unreachable!("inputs and outputs have locations")
        };
        let vectors = column * group + part;
        (location.buffer, self.program.offset(location) + vectors * self.isa.vector())
    }

    fn scratch(&self, number: usize) -> Address {
        Address { base: Base::Scratch, offset: number * self.isa.vector() }
    }

    /// Whether outputs pass through the scratch, to be stored as whole lines.
    fn stages_outputs(&self) -> bool {
        self.variant.nontemporal && self.isa.vector() < LINE
    }

    /// Returns the number of the scratch vector of an output.
    fn staged_output(&self, output: usize, column: usize) -> usize {
        self.allocation.scratch + output * self.walk.unroll + column
    }

    /// Returns the number of the scratch vector of an input.
    fn staged_input(&self, input: usize, column: usize) -> usize {
        let outputs = if self.stages_outputs() { self.program.schedule().outputs() } else { 0 };
        self.staged_output(outputs * self.allocation.group + input, column)
    }

    /// Copies all inputs to the scratch in the order of their addresses. All registers are still
    /// free.
    fn copy_inputs(&mut self) {
        let mut vectors: Vec<((usize, usize), usize)> = Vec::new();
        for input in self.allocation.inputs_read() {
            for column in 0..self.walk.unroll {
                let from = self.position(MemoryOperand::Input(input), column);
                vectors.push((from, self.staged_input(input as usize, column)));
            }
        }
        vectors.sort_unstable();
        let mut registers = (0..self.isa.registers() as u8).map(Register).cycle();
        for together in vectors.chunks(self.isa.copied_together()) {
            let together: Vec<_> = together.iter().zip(registers.by_ref()).collect();
            for &(&((buffer, offset), _), to) in &together {
                let from = Operand::Memory(self.place(buffer, offset));
                self.push(Instruction::Step(Step::Load { to, from }));
            }
            for (&(_, staged), from) in together {
                let to = self.scratch(staged);
                self.push(Instruction::Step(Step::Store { from, to }));
            }
        }
    }

    /// Copies all outputs from the scratch in the order of their addresses, line by line.
    fn copy_staged_outputs(&mut self) {
        let mut vectors: Vec<((usize, usize), usize)> = Vec::new();
        for output in 0..self.program.schedule().outputs() * self.allocation.group {
            for column in 0..self.walk.unroll {
                let to = self.position(MemoryOperand::Output(output as u32), column);
                vectors.push((to, self.staged_output(output, column)));
            }
        }
        vectors.sort_unstable();
        for line in vectors.chunks(LINE / self.isa.vector()) {
            let line: Vec<_> = line.iter().zip((0..).map(Register)).collect();
            for &(&(_, staged), to) in &line {
                let from = Operand::Memory(self.scratch(staged));
                self.push(Instruction::Step(Step::Load { to, from }));
            }
            for (&((buffer, offset), _), from) in line {
                let to = self.place(buffer, offset);
                self.push(Instruction::StoreNontemporal { from, to });
            }
        }
    }

    /// Returns a place in a buffer, and first fetches the buffer's address to a register if
    /// necessary.
    fn place(&mut self, buffer: usize, offset: usize) -> Address {
        let (base, fetch) = self.addresses.of(buffer);
        if fetch {
            self.push(Instruction::Fetch { to: base, from: pointer(buffer) });
        }
        match base {
            Base::Buffer(number) if self.indexed => Address { base: Base::Indexed(number), offset },
            base => Address { base, offset },
        }
    }
}

/// Returns the input or output that a vector belongs to, and the vector's number among the `group`
/// vectors of that cell.
fn cell(memory: MemoryOperand, group: usize) -> Option<(Slot, usize)> {
    let number = |n: u32| (n / group as u32, n as usize % group);
    match memory {
        MemoryOperand::Input(n) => Some((Slot::Input(number(n).0), number(n).1)),
        MemoryOperand::Output(n) => Some((Slot::Output(number(n).0), number(n).1)),
        MemoryOperand::Scratch(_) | MemoryOperand::Constant(_) => None,
    }
}

/// Returns the entry of a buffer in `pointers`.
fn pointer(buffer: usize) -> Address {
    Address { base: Base::Pointers, offset: size_of::<u64>() * buffer }
}

/// Assignment of buffers' addresses to general registers.
struct Addresses {
    /// Buffers whose addresses stay in registers.
    resident: Vec<(usize, Base)>,
    /// Buffers whose addresses stay in memory.
    fetched: Vec<usize>,
    /// Registers for fetched addresses, the least recently used first.
    recent: Vec<(Base, Option<usize>)>,
}

impl Addresses {
    fn new(program: &Program, allocation: &Allocation, registers: u8) -> Self {
        let mut uses = vec![0_usize; program.rows().len()];
        let mut count = |memory: MemoryOperand| {
            let location = cell(memory, allocation.group).map(|(slot, _)| program.location(slot));
            if let Some(Some(location)) = location {
                uses[location.buffer] += 1;
            }
        };
        for step in &allocation.steps {
            step.map(&mut count);
        }
        let mut buffers: Vec<usize> =
            (0..uses.len()).filter(|&b| program.access(b) != (false, false)).collect();
        buffers.sort_by_key(|&buffer| std::cmp::Reverse(uses[buffer]));
        let registers: Vec<Base> = (0..registers).map(Base::Buffer).collect();
        let spare = if buffers.len() > registers.len() { 2 } else { 0 };
        let residents = buffers.len().min(registers.len() - spare);
        Self {
            resident: buffers.iter().copied().zip(registers[..residents].iter().copied()).collect(),
            fetched: buffers[residents..].to_vec(),
            recent: registers[residents..][..spare].iter().map(|&r| (r, None)).collect(),
        }
    }

    /// Returns the register for a buffer, and whether its address must be fetched into it.
    fn of(&mut self, buffer: usize) -> (Base, bool) {
        if let Some(&(_, register)) = self.resident.iter().find(|(b, _)| *b == buffer) {
            return (register, false);
        }
        let held = self.recent.iter().position(|(_, b)| *b == Some(buffer));
        let (register, _) = self.recent.remove(held.unwrap_or(0));
        self.recent.push((register, Some(buffer)));
        (register, held.is_none())
    }

    /// Forgets fetched addresses: they have advanced, or another path leads here.
    fn forget(&mut self) {
        self.recent.iter_mut().for_each(|(_, buffer)| *buffer = None);
    }
}
