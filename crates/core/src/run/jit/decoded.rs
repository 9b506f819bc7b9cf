//! A machine for tests that runs the assembler's functions as another's disassembler reads them.
//!
//! iced-x86 writes the bytes, yaxpeax-x86 reads them here. The machine follows them from the first
//! instruction to the return. General registers hold numbers, so that every address is known and
//! must be one that the function may touch. A vector is the set of those vectors of memory, as
//! they were at the start, whose XOR it is; so one run shows for all contents of the buffers what
//! the code makes of them, and it does so on any processor.
//!
//! An instruction that the assembler has no reason to write is an error, and so is one that the
//! instruction set does not have.

use std::collections::{BTreeMap, BTreeSet};

use yaxpeax_arch::LengthedInstruction;
use yaxpeax_x86::long_mode::{InstDecoder, Instruction, Opcode, Operand, RegSpec};

use crate::run::jit::assemble::{Isa, LINE};

type Result<T> = std::result::Result<T, String>;

/// The starting vectors, by address, whose XOR a vector is.
pub(super) type Sum = BTreeSet<u64>;

/// The most instructions that a run may take.
const MAX_RUN: usize = 1 << 20;

/// Where the address to return to stands, and the words below it that may be pushed.
const STACK: u64 = 0x7FFF_0000;
const STACK_WORDS: u64 = 6;

/// What the caller has in register `n`: not the address of anything.
const fn garbage(n: u8) -> u64 {
    0xDEAD_0000_0000 + ((n as u64) << 12)
}

/// The truth table of the parity of three bits.
const PARITY: u8 = 0b1001_0110;

/// Reads a function; every byte must be a part of an instruction.
pub(super) fn decode(code: &[u8]) -> Result<BTreeMap<usize, Instruction>> {
    let mut instructions = BTreeMap::new();
    let mut at = 0;
    while at < code.len() {
        let decoded = InstDecoder::default().decode_slice(&code[at..]);
        let instruction = decoded.map_err(|error| format!("byte {at}: {error}"))?;
        instructions.insert(at, instruction);
        at += instruction.len().to_const() as usize;
    }
    Ok(instructions)
}

/// How often a run did what costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Counts {
    /// Instructions on vectors.
    pub(super) vectors: usize,
    /// Vectors that are read from memory.
    pub(super) loads: usize,
    /// Vectors that are written.
    pub(super) stores: usize,
    /// Lines, and parts of lines, that are asked for ahead.
    pub(super) prefetches: usize,
}

/// Registers and memory.
pub(super) struct Machine {
    isa: Isa,
    general: [u64; 16],
    registers: [Option<Sum>; 32],
    /// Words that may be read and written, by address: the stack and the buffers' addresses.
    pub(super) words: BTreeMap<u64, u64>,
    /// Vectors that may be read, by address, once they have a value.
    pub(super) vectors: BTreeMap<u64, Option<Sum>>,
    /// Those of them that may be written.
    pub(super) writable: BTreeSet<u64>,
    /// Addresses that were written past the cache, and not fenced yet, in order.
    past_cache: Vec<u64>,
    /// The flag that a conditional jump reads, where its value is known.
    zero: Option<bool>,
    pub(super) counts: Counts,
}

impl Machine {
    /// A machine at the start of a function with three arguments.
    pub(super) fn new(isa: Isa, arguments: [u64; 3]) -> Self {
        let mut general: [u64; 16] = std::array::from_fn(|n| garbage(n as u8));
        let [pointers, count, scratch] = arguments;
        for (register, value) in [
            (RegSpec::rdi(), pointers),
            (RegSpec::rsi(), count),
            (RegSpec::rdx(), scratch),
            (RegSpec::rsp(), STACK),
        ] {
            general[usize::from(register.num())] = value;
        }
        Self {
            isa,
            general,
            registers: [const { None }; 32],
            words: (0..=STACK_WORDS).map(|n| (STACK - 8 * n, garbage(0))).collect(),
            vectors: BTreeMap::new(),
            writable: BTreeSet::new(),
            past_cache: Vec::new(),
            zero: None,
            counts: Counts::default(),
        }
    }

    /// Memory of whole vectors from an address on. Where it has values, each vector is itself.
    pub(super) fn map(&mut self, start: u64, bytes: usize, has_values: bool) {
        for address in (start..start + bytes as u64).step_by(self.isa.vector()) {
            self.vectors.insert(address, has_values.then(|| Sum::from([address])));
        }
    }

    /// Runs a function until it returns.
    pub(super) fn run(&mut self, code: &BTreeMap<usize, Instruction>) -> Result<()> {
        let mut at = 0;
        for _ in 0..MAX_RUN {
            let instruction = code.get(&at).ok_or(format!("byte {at} starts no instruction"))?;
            let next = at + instruction.len().to_const() as usize;
            let step = self.execute(instruction);
            at = match step.map_err(|error| format!("byte {at}, {instruction}: {error}"))? {
                Flow::Next => next,
                Flow::Jump(distance) => next.wrapping_add_signed(distance),
                Flow::Return => return self.check_return(),
            };
        }
        Err(format!("no return within {MAX_RUN} instructions"))
    }

    fn execute(&mut self, instruction: &Instruction) -> Result<Flow> {
        let [a, b, ..] = &operands(instruction);
        match instruction.opcode() {
            Opcode::PUSH => {
                let word = self.general[general(a)?];
                self.general[usize::from(RegSpec::rsp().num())] -= 8;
                self.write_word(&TOP, word)?;
            }
            Opcode::POP => {
                let word = self.read_word(&TOP)?;
                self.general[usize::from(RegSpec::rsp().num())] += 8;
                self.general[general(a)?] = word;
            }
            Opcode::MOV => self.general[general(a)?] = self.read_word(b)?,
            Opcode::ADD => {
                let sum = self.read_word(a)?.wrapping_add(self.read_word(b)?);
                self.write_word(a, sum)?;
                self.zero = None;
            }
            Opcode::DEC => {
                let less = self.read_word(a)?.wrapping_sub(1);
                self.write_word(a, less)?;
                self.zero = Some(less == 0);
            }
            Opcode::JNZ => {
                let zero = self.zero.ok_or("jumps by a flag that nothing has set")?;
                return Ok(if zero { Flow::Next } else { Flow::Jump(distance(a)?) });
            }
            Opcode::RETURN => return Ok(Flow::Return),
            Opcode::SFENCE => self.check_whole_lines()?,
            Opcode::VZEROUPPER => self.registers.fill(None),
            Opcode::PREFETCH1 => self.counts.prefetches += self.prefetch(a)?,
            _ => self.execute_vector(instruction)?,
        }
        Ok(Flow::Next)
    }

    fn execute_vector(&mut self, instruction: &Instruction) -> Result<()> {
        let evex = instruction.prefixes.evex();
        if evex.is_some() != (self.isa != Isa::Avx2) {
            return Err("belongs to another instruction set".to_owned());
        }
        if evex.is_some_and(|evex| evex.broadcast() || evex.mask_reg() != 0) {
            return Err("is masked or broadcasts".to_owned());
        }
        self.counts.vectors += 1;
        let [a, b, c, d] = &operands(instruction);
        match (instruction.opcode(), self.isa) {
            (Opcode::VMOVDQU, Isa::Avx2)
            | (Opcode::VMOVDQU64, Isa::Avx512Vl | Isa::Avx512)
            | (Opcode::VMOVNTDQ, _) => {
                let value = self.read(b)?;
                if instruction.opcode() == Opcode::VMOVNTDQ {
                    let address = self.address(a)?;
                    self.past_cache.push(address);
                }
                self.write(a, value)
            }
            (Opcode::VPXOR, Isa::Avx2) | (Opcode::VPXORQ, Isa::Avx512Vl | Isa::Avx512) => {
                let sum = if b == c {
                    Sum::new() // what the register holds does not matter
                } else {
                    &self.read(b)? ^ &self.read(c)?
                };
                self.write(a, sum)
            }
            (Opcode::VPTERNLOGQ, Isa::Avx512Vl | Isa::Avx512) => {
                if *d != (Operand::ImmediateU8 { imm: PARITY }) {
                    return Err("is not the XOR of three".to_owned());
                }
                let two = &self.read(a)? ^ &self.read(b)?;
                let three = &two ^ &self.read(c)?;
                self.write(a, three)
            }
            _ => Err(format!("is not expected among {:?} code", self.isa)),
        }
    }

    /// Reads a vector.
    fn read(&mut self, operand: &Operand) -> Result<Sum> {
        let value = match self.register(operand)? {
            Some(number) => &self.registers[number],
            None => {
                self.counts.loads += 1;
                let address = self.address(operand)?;
                self.vectors.get(&address).ok_or(format!("reads a vector at {address:#x}"))?
            }
        };
        value.clone().ok_or("reads what has no value yet".to_owned())
    }

    /// Writes a vector.
    fn write(&mut self, operand: &Operand, value: Sum) -> Result<()> {
        if let Some(number) = self.register(operand)? {
            self.registers[number] = Some(value);
            return Ok(());
        }
        self.counts.stores += 1;
        let address = self.address(operand)?;
        if !self.writable.contains(&address) {
            return Err(format!("writes a vector at {address:#x}"));
        }
        self.vectors.insert(address, Some(value));
        Ok(())
    }

    /// The number of a vector register; `None` for memory.
    fn register(&self, operand: &Operand) -> Result<Option<usize>> {
        let register = match operand {
            Operand::Register { reg } | Operand::RegisterMaskMerge { reg, .. } => reg,
            _ => return Ok(None),
        };
        let (number, bytes) = (usize::from(register.num()), usize::from(register.width()));
        if bytes != self.isa.vector() || number >= self.isa.registers() {
            return Err(format!("uses {register}, which {:?} code does not have", self.isa));
        }
        Ok(Some(number))
    }

    fn address(&self, operand: &Operand) -> Result<u64> {
        let (base, displacement) = match operand {
            Operand::MemDeref { base } => (base, 0),
            Operand::Disp { base, disp } => (base, *disp),
            _ => return Err("has an operand of an unexpected kind".to_owned()),
        };
        let base = self.general[general(&Operand::Register { reg: *base })?];
        Ok(base.wrapping_add_signed(displacement.into()))
    }

    fn read_word(&self, operand: &Operand) -> Result<u64> {
        match operand {
            Operand::Register { .. } => Ok(self.general[general(operand)?]),
            Operand::ImmediateI32 { imm } => Ok(i64::from(*imm) as u64),
            Operand::ImmediateI64 { imm } => Ok(*imm as u64),
            Operand::ImmediateU64 { imm } => Ok(*imm),
            _ => {
                let address = self.address(operand)?;
                let word = self.words.get(&address).copied();
                word.ok_or(format!("reads a word at {address:#x}"))
            }
        }
    }

    fn write_word(&mut self, operand: &Operand, word: u64) -> Result<()> {
        if let Operand::Register { .. } = operand {
            self.general[general(operand)?] = word;
            return Ok(());
        }
        let address = self.address(operand)?;
        let place = self.words.get_mut(&address);
        *place.ok_or(format!("writes a word at {address:#x}"))? = word;
        Ok(())
    }

    /// Prefetching cannot fail, but is to help: the first line that it is for is of a buffer.
    fn prefetch(&self, operand: &Operand) -> Result<usize> {
        let address = self.address(operand)?;
        let before = self.vectors.range(..=address).next_back();
        let near = before.is_some_and(|(start, _)| {
            address - start < super::PREFETCH_DISTANCE as u64 + LINE as u64
        });
        if near { Ok(1) } else { Err(format!("asks for {address:#x}")) }
    }

    /// What bypasses the cache must fill whole lines, each without anything in between.
    fn check_whole_lines(&mut self) -> Result<()> {
        let line = LINE as u64;
        for parts in self.past_cache.chunks(LINE / self.isa.vector()) {
            let wanted = (parts[0]..parts[0] / line * line + line).step_by(self.isa.vector());
            if !parts[0].is_multiple_of(line) || !parts.iter().copied().eq(wanted) {
                return Err(format!("a line is not stored at once: {parts:#x?}"));
            }
        }
        self.past_cache.clear();
        Ok(())
    }

    /// What the caller may rely on.
    fn check_return(&self) -> Result<()> {
        use RegSpec as R;
        for register in [R::rbx(), R::rbp(), R::r12(), R::r13(), R::r14(), R::r15()] {
            if self.general[usize::from(register.num())] != garbage(register.num()) {
                return Err(format!("{register} is not restored"));
            }
        }
        if self.general[usize::from(R::rsp().num())] != STACK {
            return Err("the stack is not as it was".to_owned());
        }
        if !self.past_cache.is_empty() {
            return Err("stores past the cache are not fenced".to_owned());
        }
        if self.registers.iter().any(Option::is_some) {
            return Err("the upper halves of vectors are not cleared".to_owned());
        }
        Ok(())
    }
}

/// Where execution goes on.
enum Flow {
    Next,
    /// So many bytes from the next instruction.
    Jump(isize),
    Return,
}

/// The top of the stack.
const TOP: Operand = Operand::MemDeref { base: RegSpec::rsp() };

fn operands(instruction: &Instruction) -> [Operand; 4] {
    std::array::from_fn(|n| instruction.operand(n as u8))
}

/// The number of a general register of 64 bits.
fn general(operand: &Operand) -> Result<usize> {
    match operand {
        Operand::Register { reg } if *reg == RegSpec::q(reg.num() % 16) => Ok(reg.num().into()),
        _ => Err("is not on a general register of 64 bits".to_owned()),
    }
}

fn distance(operand: &Operand) -> Result<isize> {
    match operand {
        Operand::ImmediateI32 { imm } => Ok(*imm as isize),
        Operand::ImmediateI8 { imm } => Ok((*imm).into()),
        _ => Err("does not jump by a distance".to_owned()),
    }
}
