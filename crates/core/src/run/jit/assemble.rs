//! Machine code for x86-64: steps become instructions, instructions become bytes.
//!
//! The code is one function, `fn(pointers, count, scratch)`: `pointers` are the buffers'
//! addresses, which it advances in place; `count` is how often the body runs, at least once. The
//! body is the whole schedule on one vector of every packet, or on two where two make a cache
//! line. Buffers' addresses stay in general registers and are advanced by additions, so that loads
//! need no index register; where there are more buffers than registers, the least used ones are
//! fetched from `pointers` when needed.
//!
//! Stores that bypass the cache must write whole lines. Where a vector is half a line, outputs go
//! to the scratch first, and from there to memory in address order at the end of the body.

use iced_x86::{Code, Encoder, FastFormatter, IcedError, Instruction, MemoryOperand, Register};

use crate::plan::registers::{Allocation, Memory, Operand, Step};
use crate::plan::schedule::Slot;
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
}

/// The bytes of a cache line.
pub(crate) const LINE: usize = 64;

/// General registers that may hold buffers' addresses. The others: rsp; rdi, rsi and rdx hold the
/// arguments; rcx counts the inner loop.
const ADDRESSES: [Register; 11] = [
    Register::RAX,
    Register::R8,
    Register::R9,
    Register::R10,
    Register::R11,
    Register::RBX,
    Register::RBP,
    Register::R12,
    Register::R13,
    Register::R14,
    Register::R15,
];

/// Those of [`ADDRESSES`] that the caller wants back.
const SAVED: [Register; 6] =
    [Register::RBX, Register::RBP, Register::R12, Register::R13, Register::R14, Register::R15];

impl Isa {
    /// The bytes of a vector.
    pub(crate) fn vector(self) -> usize {
        match self {
            Self::Avx2 | Self::Avx512Vl => 32,
            Self::Avx512 => 64,
        }
    }

    /// The number of vector registers.
    pub(crate) fn registers(self) -> usize {
        if self == Self::Avx2 { 16 } else { 32 }
    }

    /// Whether one instruction XORs three vectors.
    pub(crate) fn ternary(self) -> bool {
        self != Self::Avx2
    }

    fn register(self, number: u8) -> Register {
        let first = if self == Self::Avx512 { Register::ZMM0 } else { Register::YMM0 };
        first + u32::from(number)
    }

    fn load(self) -> Code {
        match self {
            Self::Avx2 => Code::VEX_Vmovdqu_ymm_ymmm256,
            Self::Avx512Vl => Code::EVEX_Vmovdqu64_ymm_k1z_ymmm256,
            Self::Avx512 => Code::EVEX_Vmovdqu64_zmm_k1z_zmmm512,
        }
    }

    fn store(self) -> Code {
        match self {
            Self::Avx2 => Code::VEX_Vmovdqu_ymmm256_ymm,
            Self::Avx512Vl => Code::EVEX_Vmovdqu64_ymmm256_k1z_ymm,
            Self::Avx512 => Code::EVEX_Vmovdqu64_zmmm512_k1z_zmm,
        }
    }

    fn store_past_cache(self) -> Code {
        match self {
            Self::Avx2 => Code::VEX_Vmovntdq_m256_ymm,
            Self::Avx512Vl => Code::EVEX_Vmovntdq_m256_ymm,
            Self::Avx512 => Code::EVEX_Vmovntdq_m512_zmm,
        }
    }

    fn xor(self) -> Code {
        match self {
            Self::Avx2 => Code::VEX_Vpxor_ymm_ymm_ymmm256,
            Self::Avx512Vl => Code::EVEX_Vpxorq_ymm_k1z_ymm_ymmm256b64,
            Self::Avx512 => Code::EVEX_Vpxorq_zmm_k1z_zmm_zmmm512b64,
        }
    }

    fn xor3(self) -> Code {
        match self {
            Self::Avx512 => Code::EVEX_Vpternlogq_zmm_k1z_zmm_zmmm512b64_imm8,
            _ => Code::EVEX_Vpternlogq_ymm_k1z_ymm_ymmm256b64_imm8,
        }
    }
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
}

/// Translates an allocation.
pub(crate) struct Assembler<'a> {
    isa: Isa,
    program: &'a Program,
    allocation: &'a Allocation,
    walk: Walk,
    variant: Variant,
    prefetch: Option<usize>,
    /// The inputs that are read; a schedule may leave some out.
    inputs: Vec<u32>,
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
        prefetch: Option<usize>,
    ) -> Self {
        let inputs = inputs_read(allocation);
        let addresses = Addresses::new(program, allocation);
        let instructions = Vec::new();
        Self { isa, program, allocation, walk, variant, prefetch, inputs, addresses, instructions }
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
    /// When an instruction cannot be encoded, which would be a bug here.
    pub(crate) fn assemble(mut self) -> Result<Vec<u8>, IcedError> {
        self.function()?;
        encode(&self.instructions)
    }

    /// The function in Intel syntax, an instruction a line; a jump's target is an instruction's
    /// number, from 0.
    ///
    /// # Errors
    /// As [`Assembler::assemble`].
    pub(crate) fn listing(mut self) -> Result<String, IcedError> {
        self.function()?;
        let mut formatter = FastFormatter::new();
        let mut listing = String::new();
        for (number, instruction) in self.instructions.iter().enumerate() {
            listing.push_str(&format!("{number:5}  "));
            formatter.format(instruction, &mut listing);
            listing.push('\n');
        }
        Ok(listing)
    }

    fn function(&mut self) -> Result<(), IcedError> {
        self.prologue()?;
        let outer = self.instructions.len();
        if self.walk.inner > 1 {
            let count = self.walk.inner as i64;
            self.push(Instruction::with2(Code::Mov_r64_imm64, Register::RCX, count)?);
        }
        let inner = self.instructions.len();
        self.body()?;
        let body = self.walk.unroll * self.isa.vector();
        if self.walk.inner > 1 {
            self.advance(body)?;
            self.repeat(Register::RCX, inner)?;
            self.advance(self.walk.strip - self.walk.inner * body)?;
        } else {
            self.advance(self.walk.strip)?;
        }
        self.repeat(Register::RSI, outer)?;
        self.epilogue()
    }

    fn push(&mut self, instruction: Instruction) {
        self.instructions.push(instruction);
    }

    fn prologue(&mut self) -> Result<(), IcedError> {
        for register in SAVED {
            self.push(Instruction::with1(Code::Push_r64, register)?);
        }
        for (buffer, register) in self.addresses.resident.clone() {
            let fetch = Instruction::with2(Code::Mov_r64_rm64, register, pointer(buffer))?;
            self.push(fetch);
        }
        Ok(())
    }

    fn epilogue(&mut self) -> Result<(), IcedError> {
        if self.variant.past_cache {
            self.push(Instruction::with(Code::Sfence));
        }
        self.push(Instruction::with(Code::VEX_Vzeroupper));
        for register in SAVED.into_iter().rev() {
            self.push(Instruction::with1(Code::Pop_r64, register)?);
        }
        self.push(Instruction::with(Code::Retnq));
        Ok(())
    }

    /// `counter -= 1; if counter != 0 { goto target }`
    fn repeat(&mut self, counter: Register, target: usize) -> Result<(), IcedError> {
        self.push(Instruction::with1(Code::Dec_rm64, counter)?);
        // The target is an instruction's number until the bytes are laid out.
        self.push(Instruction::with_branch(Code::Jne_rel32_64, target as u64)?);
        Ok(())
    }

    fn advance(&mut self, bytes: usize) -> Result<(), IcedError> {
        if bytes == 0 {
            return Ok(());
        }
        let bytes = bytes as i32;
        for (_, register) in self.addresses.resident.clone() {
            self.push(Instruction::with2(Code::Add_rm64_imm32, register, bytes)?);
        }
        for buffer in self.addresses.fetched.clone() {
            let add = Instruction::with2(Code::Add_rm64_imm32, pointer(buffer), bytes)?;
            self.push(add);
        }
        self.addresses.forget();
        Ok(())
    }

    fn body(&mut self) -> Result<(), IcedError> {
        self.addresses.forget();
        self.prefetch()?;
        if self.variant.stage_inputs {
            self.copy_inputs()?;
        }
        for column in 0..self.walk.unroll {
            for step in &self.allocation.steps {
                self.step(*step, column)?;
            }
        }
        if self.stages_outputs() {
            self.copy_staged_outputs()?;
        }
        Ok(())
    }

    fn prefetch(&mut self) -> Result<(), IcedError> {
        let Some(distance) = self.prefetch else { return Ok(()) };
        let inputs = self.inputs.iter();
        let mut lines: Vec<(usize, usize)> = inputs
            .filter_map(|&n| self.program.location(Slot::Input(n)))
            .map(|l| (l.buffer, l.row * self.program.packet() / LINE * LINE))
            .collect();
        lines.sort_unstable();
        lines.dedup();
        for (buffer, offset) in lines {
            let base = self.address(buffer)?;
            let ahead = (offset + distance) as i64;
            let operand = MemoryOperand::with_base_displ(base, ahead);
            self.push(Instruction::with1(Code::Prefetcht0_m8, operand)?);
        }
        Ok(())
    }

    fn step(&mut self, step: Step, column: usize) -> Result<(), IcedError> {
        let isa = self.isa;
        let register = |r: crate::plan::registers::Register| isa.register(r.0);
        let instruction = match step {
            Step::Zero { to } => {
                let to = register(to);
                Instruction::with3(isa.xor(), to, to, to)?
            }
            Step::Load { to, from } => match self.operand(from, column)? {
                Place::Register(from) => Instruction::with2(isa.load(), register(to), from)?,
                Place::Memory(from) => Instruction::with2(isa.load(), register(to), from)?,
            },
            Step::Xor { to, a, b } => match self.operand(b, column)? {
                Place::Register(b) => Instruction::with3(isa.xor(), register(to), register(a), b)?,
                Place::Memory(b) => Instruction::with3(isa.xor(), register(to), register(a), b)?,
            },
            Step::Xor3 { to, a, b } => match self.operand(b, column)? {
                Place::Register(b) => {
                    Instruction::with4(isa.xor3(), register(to), register(a), b, XOR3)?
                }
                Place::Memory(b) => {
                    Instruction::with4(isa.xor3(), register(to), register(a), b, XOR3)?
                }
            },
            Step::Store { from, to } => self.store(register(from), to, column)?,
        };
        self.push(instruction);
        Ok(())
    }

    fn operand(&mut self, operand: Operand, column: usize) -> Result<Place, IcedError> {
        Ok(match operand {
            Operand::Register(r) => Place::Register(self.isa.register(r.0)),
            Operand::Memory(memory) => Place::Memory(self.memory(memory, column)?),
        })
    }

    fn memory(&mut self, memory: Memory, column: usize) -> Result<MemoryOperand, IcedError> {
        match memory {
            Memory::Input(n) if self.variant.stage_inputs => {
                Ok(self.scratch(self.staged_input(n as usize, column)))
            }
            Memory::Input(n) => self.cell(Slot::Input(n), column),
            Memory::Output(n) => self.cell(Slot::Output(n), column),
            Memory::Scratch(n) => Ok(self.scratch(n as usize)),
        }
    }

    fn cell(&mut self, slot: Slot, column: usize) -> Result<MemoryOperand, IcedError> {
        let Some(location) = self.program.location(slot) else {
            unreachable!("inputs and outputs have locations")
        };
        let base = self.address(location.buffer)?;
        let offset = location.row * self.program.packet() + column * self.isa.vector();
        Ok(MemoryOperand::with_base_displ(base, offset as i64))
    }

    fn scratch(&self, number: usize) -> MemoryOperand {
        MemoryOperand::with_base_displ(Register::RDX, (number * self.isa.vector()) as i64)
    }

    fn store(
        &mut self,
        from: Register,
        to: Memory,
        column: usize,
    ) -> Result<Instruction, IcedError> {
        let (code, to) = match to {
            Memory::Output(n) if self.stages_outputs() => {
                let staged = self.staged(n as usize, column);
                (self.isa.store(), self.scratch(staged))
            }
            Memory::Output(_) if self.variant.past_cache => {
                (self.isa.store_past_cache(), self.memory(to, column)?)
            }
            _ => (self.isa.store(), self.memory(to, column)?),
        };
        Instruction::with2(code, to, from)
    }

    /// Whether outputs pass through the scratch, to be stored as whole lines.
    fn stages_outputs(&self) -> bool {
        self.variant.past_cache && self.isa.vector() < LINE
    }

    /// The scratch vector of an input.
    fn staged_input(&self, input: usize, column: usize) -> usize {
        let outputs = if self.stages_outputs() { self.program.schedule().outputs() } else { 0 };
        self.allocation.scratch + (outputs + input) * self.walk.unroll + column
    }

    /// Copies inputs to the scratch in the order of their addresses. Registers hold nothing yet.
    fn copy_inputs(&mut self) -> Result<(), IcedError> {
        let mut vectors: Vec<(usize, usize, usize)> = Vec::new();
        for &input in &self.inputs {
            let location = self.program.location(Slot::Input(input));
            for column in 0..self.walk.unroll {
                let (buffer, row) = location.map_or((0, 0), |l| (l.buffer, l.row));
                let offset = row * self.program.packet() + column * self.isa.vector();
                vectors.push((buffer, offset, self.staged_input(input as usize, column)));
            }
        }
        vectors.sort_unstable();
        for (number, (buffer, offset, staged)) in vectors.into_iter().enumerate() {
            let register = self.isa.register((number % self.isa.registers()) as u8);
            let base = self.address(buffer)?;
            let from = MemoryOperand::with_base_displ(base, offset as i64);
            self.push(Instruction::with2(self.isa.load(), register, from)?);
            self.push(Instruction::with2(self.isa.store(), self.scratch(staged), register)?);
        }
        Ok(())
    }

    /// The scratch vector of an output.
    fn staged(&self, output: usize, column: usize) -> usize {
        self.allocation.scratch + output * self.walk.unroll + column
    }

    fn copy_staged_outputs(&mut self) -> Result<(), IcedError> {
        let outputs = self.program.schedule().outputs();
        let mut vectors: Vec<(usize, usize, usize)> = Vec::new();
        for output in 0..outputs {
            let location = self.program.location(Slot::Output(output as u32));
            for column in 0..self.walk.unroll {
                let (buffer, row) = location.map_or((0, 0), |l| (l.buffer, l.row));
                let offset = row * self.program.packet() + column * self.isa.vector();
                vectors.push((buffer, offset, self.staged(output, column)));
            }
        }
        vectors.sort_unstable();
        for pair in vectors.chunks(2) {
            for (number, &(_, _, staged)) in pair.iter().enumerate() {
                let to = self.isa.register(number as u8);
                self.push(Instruction::with2(self.isa.load(), to, self.scratch(staged))?);
            }
            for (number, &(buffer, offset, _)) in pair.iter().enumerate() {
                let from = self.isa.register(number as u8);
                let base = self.address(buffer)?;
                let to = MemoryOperand::with_base_displ(base, offset as i64);
                self.push(Instruction::with2(self.isa.store_past_cache(), to, from)?);
            }
        }
        Ok(())
    }

    /// The register that holds a buffer's address, fetching it first where need be.
    fn address(&mut self, buffer: usize) -> Result<Register, IcedError> {
        let (register, fetch) = self.addresses.of(buffer);
        if fetch {
            let fetch = Instruction::with2(Code::Mov_r64_rm64, register, pointer(buffer))?;
            self.push(fetch);
        }
        Ok(register)
    }
}

/// The truth table of `a ^ b ^ c`.
const XOR3: u32 = 0x96;

enum Place {
    Register(Register),
    Memory(MemoryOperand),
}

/// The entry of a buffer in `pointers`.
fn pointer(buffer: usize) -> MemoryOperand {
    MemoryOperand::with_base_displ(Register::RDI, 8 * buffer as i64)
}

/// The vectors in memory that the steps read and write, in order.
fn accesses(allocation: &Allocation) -> impl Iterator<Item = Memory> {
    allocation.steps.iter().filter_map(|step| match *step {
        Step::Load { from: Operand::Memory(memory), .. }
        | Step::Xor { b: Operand::Memory(memory), .. }
        | Step::Xor3 { b: Operand::Memory(memory), .. }
        | Step::Store { to: memory, .. } => Some(memory),
        _ => None,
    })
}

/// The inputs that the steps read, in ascending order.
fn inputs_read(allocation: &Allocation) -> Vec<u32> {
    let input = |memory| if let Memory::Input(n) = memory { Some(n) } else { None };
    let mut inputs: Vec<u32> = accesses(allocation).filter_map(input).collect();
    inputs.sort_unstable();
    inputs.dedup();
    inputs
}

/// Which general registers hold which buffers' addresses.
struct Addresses {
    /// Buffers whose addresses stay in registers.
    resident: Vec<(usize, Register)>,
    /// Buffers whose addresses stay in memory.
    fetched: Vec<usize>,
    /// Registers for fetched addresses, the one used longest ago first.
    recent: Vec<(Register, Option<usize>)>,
}

impl Addresses {
    fn new(program: &Program, allocation: &Allocation) -> Self {
        let mut uses = vec![0_usize; program.rows().len()];
        for memory in accesses(allocation) {
            let slot = match memory {
                Memory::Input(n) => Slot::Input(n),
                Memory::Output(n) => Slot::Output(n),
                Memory::Scratch(_) => continue,
            };
            if let Some(location) = program.location(slot) {
                uses[location.buffer] += 1;
            }
        }
        let mut buffers: Vec<usize> = (0..uses.len()).filter(|&b| uses[b] > 0).collect();
        buffers.sort_by_key(|&buffer| std::cmp::Reverse(uses[buffer]));
        let spare = if buffers.len() > ADDRESSES.len() { 2 } else { 0 };
        let residents = buffers.len().min(ADDRESSES.len() - spare);
        Self {
            resident: buffers[..residents].iter().copied().zip(ADDRESSES).collect(),
            fetched: buffers[residents..].to_vec(),
            recent: ADDRESSES[residents..][..spare].iter().map(|&r| (r, None)).collect(),
        }
    }

    /// The register for a buffer, and whether its address must be fetched into it.
    fn of(&mut self, buffer: usize) -> (Register, bool) {
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

/// Lays out instructions; branch targets are instruction numbers before their branch.
fn encode(instructions: &[Instruction]) -> Result<Vec<u8>, IcedError> {
    let mut encoder = Encoder::new(64);
    let mut starts = Vec::with_capacity(instructions.len());
    let mut at = 0;
    for instruction in instructions {
        starts.push(at);
        let mut instruction = *instruction;
        if instruction.code() == Code::Jne_rel32_64 {
            instruction.set_near_branch64(starts[instruction.near_branch64() as usize]);
        }
        at += encoder.encode(&instruction, at)? as u64;
    }
    Ok(encoder.take_buffer())
}
