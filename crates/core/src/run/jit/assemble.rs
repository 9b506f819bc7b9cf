//! The function that a schedule becomes, instruction by instruction, on no processor in particular.
//!
//! It is `fn(pointers, count, scratch)`: `pointers` are the buffers' addresses, which it advances
//! in place; `count` is how often the body runs, at least once. The body is the whole schedule on
//! one vector of every packet, or on several where several make a cache line. Buffers' addresses
//! stay in general registers and are advanced by additions, so that loads need no index register;
//! where there are more buffers than registers, the least used ones are fetched from `pointers`
//! when needed.
//!
//! Stores that bypass the cache must write whole lines. Where a vector is a part of a line, outputs
//! go to the scratch first, and from there to memory in address order at the end of the body.
//!
//! What is decided here holds for every processor. `x86_64` and `aarch64` turn one of these
//! instructions into one or a few of theirs, and know registers, calling conventions and how far an
//! offset reaches.

use crate::plan::registers::{Allocation, Machine, Memory, Operand, Register, Step};
use crate::plan::schedule::Slot;
use crate::run::jit::aarch64;
#[cfg(target_arch = "x86_64")]
use crate::run::jit::x86_64;
use crate::run::program::Program;

/// An instruction set that the assembler can target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Isa {
    /// 16 registers of 32 bytes.
    Avx2,
    /// 32 registers of 32 bytes and three-input XOR.
    Avx512Vl,
    /// 32 registers of 64 bytes and three-input XOR.
    Avx512,
    /// 32 registers of 16 bytes, loaded and stored in pairs; no memory operands.
    Neon,
    /// As [`Isa::Neon`], and three-input XOR.
    NeonSha3,
}

/// The bytes of a cache line.
pub(crate) const LINE: usize = 64;

/// How far ahead software prefetch reaches, in bytes of each stream: into the second-level cache, because so
/// much of so many streams is more than the first one holds.
pub(crate) const PREFETCH_DISTANCE: usize = 1024;

impl Isa {
    /// The bytes of a vector.
    pub(crate) fn vector(self) -> usize {
        match self {
            Self::Neon | Self::NeonSha3 => 16,
            Self::Avx2 | Self::Avx512Vl => 32,
            Self::Avx512 => 64,
        }
    }

    /// What register allocation must know.
    pub(crate) fn machine(self, past_cache: bool) -> Machine {
        Machine {
            registers: self.registers(),
            ternary: matches!(self, Self::Avx512Vl | Self::Avx512 | Self::NeonSha3),
            memory_operands: !self.is_aarch64(),
            outputs_readable: !past_cache,
        }
    }

    /// The number of vector registers.
    pub(crate) fn registers(self) -> usize {
        if self == Self::Avx2 { 16 } else { 32 }
    }

    /// How many general registers may hold buffers' addresses.
    fn addresses(self) -> u8 {
        if self.is_aarch64() { 22 } else { 11 }
    }

    /// How many inputs are copied to the scratch at once: a line's where vectors move in pairs.
    fn copied_together(self) -> usize {
        if self.is_aarch64() { LINE / self.vector() } else { 1 }
    }

    fn is_aarch64(self) -> bool {
        matches!(self, Self::Neon | Self::NeonSha3)
    }

    /// The bytes of instructions.
    ///
    /// # Errors
    /// When this build has no assembler for the instruction set, or an instruction cannot be
    /// encoded, which would be a bug here.
    fn encode(self, instructions: &[Instruction]) -> Result<Vec<u8>, String> {
        #[cfg(target_arch = "x86_64")]
        if let Some(codes) = self.codes() {
            return x86_64::encode(codes, instructions).map_err(|error| error.to_string());
        }
        #[cfg(any(target_arch = "aarch64", test))]
        if self.is_aarch64() {
            return Ok(aarch64::encode(instructions));
        }
        Err(self.foreign(instructions))
    }

    /// Instructions as text, a line each, or an error as for [`Isa::encode`].
    fn list(self, instructions: &[Instruction]) -> Result<String, String> {
        #[cfg(target_arch = "x86_64")]
        if let Some(codes) = self.codes() {
            return x86_64::list(codes, instructions).map_err(|error| error.to_string());
        }
        if self.is_aarch64() {
            return Ok(aarch64::list(instructions));
        }
        Err(self.foreign(instructions))
    }

    fn foreign(self, instructions: &[Instruction]) -> String {
        let (count, here) = (instructions.len(), std::env::consts::ARCH);
        format!("{count} instructions are for {self:?}, for which there is no assembler on {here}")
    }
}

/// A general register that holds an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Base {
    /// The argument `pointers`.
    Pointers,
    /// The argument `scratch`.
    Scratch,
    /// One of those for buffers' addresses, from 0.
    Buffer(u8),
}

/// An address in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub(crate) base: Base,
    /// In bytes from the base.
    pub(crate) offset: usize,
}

/// A general register that counts bodies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counter {
    /// The argument `count`.
    Outer,
    /// The bodies that are left in a packet.
    Inner,
}

/// One instruction of the function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Instruction {
    /// Saves the registers that the caller wants back.
    Enter,
    /// Restores them and returns.
    Leave {
        /// Whether there were stores past the cache.
        past_cache: bool,
    },
    /// `to = *from`, an address.
    Fetch { to: Base, from: Place },
    /// `base += bytes`
    Advance { base: Base, bytes: usize },
    /// `*place += bytes`, an address.
    AdvanceFetched { place: Place, bytes: usize },
    /// `inner = count`
    Count(usize),
    /// `counter -= 1; if counter != 0 { goto the instruction of number to }`
    Repeat { counter: Counter, to: usize },
    /// Has a line fetched to the cache.
    Prefetch(Place),
    /// What register allocation says.
    Step(Step<Place>),
    /// Stores a vector past the cache.
    StorePastCache { from: Register, to: Place },
}

/// How the body walks over memory, in bytes and counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Walk {
    /// Vectors of each packet that one body handles: 1, or as many as make a line.
    pub(crate) unroll: usize,
    /// Bodies in a packet.
    pub(crate) inner: usize,
    /// From one packet's first byte to that of the next stripe.
    pub(crate) strip: usize,
}

/// How the body reads and writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Variant {
    /// Stores bypass the cache.
    pub(crate) past_cache: bool,
    /// Inputs are copied to the scratch first, stream by stream, each line once. For buffers whose
    /// addresses compete for the same sets of the first-level cache: a line that is read again
    /// later in the body would be gone by then.
    pub(crate) stage_inputs: bool,
    /// Inputs are fetched into the cache some lines ahead.
    pub(crate) prefetch: bool,
}

/// Writes the function of an allocation.
pub(crate) struct Assembler<'a> {
    isa: Isa,
    program: &'a Program,
    allocation: &'a Allocation,
    walk: Walk,
    variant: Variant,
    addresses: Addresses,
    instructions: Vec<Instruction>,
}

impl<'a> Assembler<'a> {
    pub(crate) fn new(
        isa: Isa,
        program: &'a Program,
        allocation: &'a Allocation,
        walk: Walk,
        variant: Variant,
    ) -> Self {
        let addresses = Addresses::new(program, allocation, isa.addresses());
        let instructions = Vec::new();
        Self { isa, program, allocation, walk, variant, addresses, instructions }
    }

    /// Bytes of scratch that the code needs.
    pub(crate) fn scratch_bytes(&self) -> usize {
        let schedule = self.program.schedule();
        let outputs = if self.stages_outputs() { schedule.outputs() } else { 0 };
        let inputs = if self.variant.stage_inputs { schedule.inputs() } else { 0 };
        (self.allocation.scratch + (outputs + inputs) * self.walk.unroll) * self.isa.vector()
    }

    /// The function's bytes.
    ///
    /// # Errors
    /// When this build has no assembler for the instruction set, or an instruction cannot be
    /// encoded, which would be a bug here.
    pub(crate) fn assemble(self) -> Result<Vec<u8>, String> {
        self.isa.encode(&self.function())
    }

    /// The function as text, an instruction a line; a jump's target is an instruction's number,
    /// from 0.
    ///
    /// # Errors
    /// As [`Assembler::assemble`].
    pub(crate) fn listing(self) -> Result<String, String> {
        self.isa.list(&self.function())
    }

    fn function(mut self) -> Vec<Instruction> {
        self.push(Instruction::Enter);
        for (buffer, to) in self.addresses.resident.clone() {
            self.push(Instruction::Fetch { to, from: pointer(buffer) });
        }
        let outer = self.instructions.len();
        if self.walk.inner > 1 {
            self.push(Instruction::Count(self.walk.inner));
        }
        let inner = self.instructions.len();
        self.body();
        let body = self.walk.unroll * self.isa.vector();
        if self.walk.inner > 1 {
            self.advance(body);
            self.push(Instruction::Repeat { counter: Counter::Inner, to: inner });
            self.advance(self.walk.strip - self.walk.inner * body);
        } else {
            self.advance(self.walk.strip);
        }
        self.push(Instruction::Repeat { counter: Counter::Outer, to: outer });
        self.push(Instruction::Leave { past_cache: self.variant.past_cache });
        self.instructions
    }

    fn push(&mut self, instruction: Instruction) {
        self.instructions.push(instruction);
    }

    fn advance(&mut self, bytes: usize) {
        if bytes == 0 {
            return;
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
        let inputs = self.allocation.inputs_read().into_iter();
        let mut lines: Vec<(usize, usize)> = inputs
            .filter_map(|n| self.program.location(Slot::Input(n)))
            .map(|l| (l.buffer, self.program.offset(l) / LINE * LINE))
            .collect();
        lines.sort_unstable();
        lines.dedup();
        for (buffer, offset) in lines {
            let place = self.place(buffer, offset + PREFETCH_DISTANCE);
            self.push(Instruction::Prefetch(place));
        }
    }

    fn step(&mut self, step: Step, column: usize) {
        let past_cache = self.variant.past_cache && !self.stages_outputs();
        let is_output = matches!(step, Step::Store { to: Memory::Output(_), .. });
        let instruction = match step.map(|memory| self.memory(memory, column)) {
            Step::Store { from, to } if past_cache && is_output => {
                Instruction::StorePastCache { from, to }
            }
            step => Instruction::Step(step),
        };
        self.push(instruction);
    }

    fn memory(&mut self, memory: Memory, column: usize) -> Place {
        match memory {
            Memory::Input(n) if self.variant.stage_inputs => {
                self.scratch(self.staged_input(n as usize, column))
            }
            Memory::Output(n) if self.stages_outputs() => {
                self.scratch(self.staged_output(n as usize, column))
            }
            Memory::Input(n) => self.cell(Slot::Input(n), column),
            Memory::Output(n) => self.cell(Slot::Output(n), column),
            Memory::Scratch(n) => self.scratch(n as usize),
        }
    }

    fn cell(&mut self, slot: Slot, column: usize) -> Place {
        let (buffer, offset) = self.position(slot, column);
        self.place(buffer, offset)
    }

    /// The buffer of an input or output, and the offset in its strip.
    fn position(&self, slot: Slot, column: usize) -> (usize, usize) {
        let Some(location) = self.program.location(slot) else {
            unreachable!("inputs and outputs have locations")
        };
        (location.buffer, self.program.offset(location) + column * self.isa.vector())
    }

    fn scratch(&self, number: usize) -> Place {
        Place { base: Base::Scratch, offset: number * self.isa.vector() }
    }

    /// Whether outputs pass through the scratch, to be stored as whole lines.
    fn stages_outputs(&self) -> bool {
        self.variant.past_cache && self.isa.vector() < LINE
    }

    /// The scratch vector of an output.
    fn staged_output(&self, output: usize, column: usize) -> usize {
        self.allocation.scratch + output * self.walk.unroll + column
    }

    /// The scratch vector of an input.
    fn staged_input(&self, input: usize, column: usize) -> usize {
        let outputs = if self.stages_outputs() { self.program.schedule().outputs() } else { 0 };
        self.staged_output(outputs + input, column)
    }

    /// Copies all inputs to the scratch in the order of their addresses. Registers hold nothing yet.
    fn copy_inputs(&mut self) {
        let mut vectors: Vec<((usize, usize), usize)> = Vec::new();
        for input in self.allocation.inputs_read() {
            for column in 0..self.walk.unroll {
                let from = self.position(Slot::Input(input), column);
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
        for output in 0..self.program.schedule().outputs() {
            for column in 0..self.walk.unroll {
                let to = self.position(Slot::Output(output as u32), column);
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
                self.push(Instruction::StorePastCache { from, to });
            }
        }
    }

    /// A place in a buffer, whose address is fetched to a register first where need be.
    fn place(&mut self, buffer: usize, offset: usize) -> Place {
        let (base, fetch) = self.addresses.of(buffer);
        if fetch {
            self.push(Instruction::Fetch { to: base, from: pointer(buffer) });
        }
        Place { base, offset }
    }
}

/// The entry of a buffer in `pointers`.
fn pointer(buffer: usize) -> Place {
    Place { base: Base::Pointers, offset: size_of::<u64>() * buffer }
}

/// Which general registers hold which buffers' addresses.
struct Addresses {
    /// Buffers whose addresses stay in registers.
    resident: Vec<(usize, Base)>,
    /// Buffers whose addresses stay in memory.
    fetched: Vec<usize>,
    /// Registers for fetched addresses, the one used longest ago first.
    recent: Vec<(Base, Option<usize>)>,
}

impl Addresses {
    fn new(program: &Program, allocation: &Allocation, registers: u8) -> Self {
        let mut uses = vec![0_usize; program.rows().len()];
        let mut count = |memory: Memory| {
            let slot = match memory {
                Memory::Input(n) => Slot::Input(n),
                Memory::Output(n) => Slot::Output(n),
                Memory::Scratch(_) => return,
            };
            if let Some(location) = program.location(slot) {
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

    /// The register for a buffer, and whether its address must be fetched into it.
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
