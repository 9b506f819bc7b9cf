//! A machine for tests. It runs the assembler's functions as another project's disassembler reads
//! them.
//!
//! iced-x86 writes the bytes, and yaxpeax-x86 reads them here. The machine follows them from the
//! first instruction to the return, on any processor. General registers hold numbers, so that every
//! address is known and must be one that the function may touch. Vectors hold bytes. The effect of
//! each instruction on them is written here a second time, as Intel's manual defines it and without
//! the code that proves plans ([`vector`](crate::plan::vector)): if one of the two is wrong, they
//! differ.
//!
//! One run on random bytes shows what the code computes for all bytes, except with a small chance.
//! A wrong vector in a sum adds random bytes to the sum, which are all zero with a chance of
//! 2^-128. The mistake that is hardest to notice is a wrong entry in a table of 16. One byte in 16
//! reads that entry, and runs over words look up each table at least 256 times, so the mistake is
//! missed with a chance of (15/16)^256, less than 10^-7. The bytes are the same in every run of a
//! test.
//!
//! An instruction that the assembler has no reason to write is an error. So is an instruction that
//! the instruction set lacks, or that it has in another encoding.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use yaxpeax_arch::LengthedInstruction;
use yaxpeax_x86::long_mode::{InstDecoder, Instruction, Opcode, Operand, RegSpec};

use crate::limits::PREFETCH_DISTANCE;
use crate::plan::machine::LINE;
use crate::run::jit::encode::MachineCode;
use crate::run::jit::isa::Isa;

type Result<T> = std::result::Result<T, String>;

/// Bytes of a vector.
pub(super) type Vector = Vec<u8>;

/// Largest number of instructions in a run.
const MAX_RUN: usize = 1 << 20;

/// Bytes of the longest instruction.
const MAX_INSTRUCTION: usize = 15;

/// Address of the return address; words may be pushed below it.
const STACK: u64 = 0x7FFF_0000;
const STACK_WORDS: u64 = 6;

/// Value of the caller in register `n`; it is not a valid address.
const fn garbage(n: u8) -> u64 {
    0xDEAD_0000_0000 + ((n as u64) << 12)
}

/// Truth table of the parity of three bits.
const PARITY: u8 = 0b1001_0110;

/// An instruction as the disassembler reads it.
pub(super) struct Decoded {
    /// The true opcode. `instruction` has another name for it where [`TWINS`] says so.
    opcode: Opcode,
    instruction: Instruction,
}

impl Decoded {
    /// Reads the instruction at the beginning of `bytes`.
    fn read(bytes: &[u8]) -> Result<Self> {
        let mut bytes = bytes[..bytes.len().min(MAX_INSTRUCTION)].to_vec();
        let twin = TWINS.iter().find(|twin| (twin.is_at)(&bytes));
        if let Some(twin) = twin {
            bytes[twin.opcode_at] = twin.opcode_byte;
        }
        let instruction = InstDecoder::default().decode_slice(&bytes);
        let instruction = instruction.map_err(|error| error.to_string())?;
        let opcode = match twin {
            None => instruction.opcode(),
            Some(twin) => {
                let mut names = twin.names.iter();
                let name = names.find(|(read, _)| *read == instruction.opcode());
                name.ok_or("is not known")?.1
            }
        };
        Ok(Self { opcode, instruction })
    }

    fn bytes(&self) -> usize {
        self.instruction.len().to_const() as usize
    }

    fn encoding(&self) -> VectorEncoding {
        let prefixes = &self.instruction.prefixes;
        match (prefixes.evex(), prefixes.vex()) {
            (Some(_), _) => VectorEncoding::Evex,
            (None, Some(_)) => VectorEncoding::Vex,
            (None, None) => VectorEncoding::Legacy,
        }
    }
}

impl fmt::Display for Decoded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.opcode, self.instruction)
    }
}

/// Encodings of vector instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum VectorEncoding {
    /// SSE: two operands; the first is read and written.
    Legacy,
    Vex,
    Evex,
}

impl VectorEncoding {
    fn of(isa: Isa) -> Self {
        match isa {
            Isa::Ssse3 => Self::Legacy,
            Isa::Avx2 | Isa::Avx2Gfni => Self::Vex,
            _ => Self::Evex,
        }
    }
}

/// Instructions that yaxpeax-x86 2.2 does not know, each with one that it knows and that has the
/// same operands. The two differ only in the opcode byte, so the unknown one is read as the known
/// one.
struct Twin {
    is_at: fn(&[u8]) -> bool,
    /// Position of the opcode, and the opcode of the known instructions.
    opcode_at: usize,
    opcode_byte: u8,
    /// Pairs of the name under which an instruction is read and its true name.
    names: &'static [(Opcode, Opcode)],
}

const TWINS: [Twin; 2] = [
    // VEX.66.0F3A.W1 CE /r ib, the affine transformation, is read as VEX.66.0F3A 0F /r ib.
    Twin {
        is_at: |bytes| matches!(bytes, [0xC4, map, w, 0xCE, ..] if map & 0x1F == 3 && w & 0x80 != 0),
        opcode_at: 3,
        opcode_byte: 0x0F,
        names: &[(Opcode::VPALIGNR, Opcode::VGF2P8AFFINEQB)],
    },
    // EVEX.66.0F 71, shifts of 16 bits, are read as EVEX.66.0F.W0 72, shifts of 32 bits.
    Twin {
        is_at: |bytes| matches!(bytes, [0x62, map, _, _, 0x71, ..] if map & 7 == 1),
        opcode_at: 4,
        opcode_byte: 0x72,
        names: &[(Opcode::VPSRLD, Opcode::VPSRLW), (Opcode::VPSRAD, Opcode::VPSRAW)],
    },
];

/// Reads a function; every byte after the constants must be a part of an instruction.
pub(super) fn decode(code: &MachineCode) -> Result<BTreeMap<usize, Decoded>> {
    let mut instructions = BTreeMap::new();
    let mut at = code.entry;
    while at < code.bytes.len() {
        let decoded = Decoded::read(&code.bytes[at..]);
        let decoded = decoded.map_err(|error| format!("byte {at}: {error}"))?;
        let next = at + decoded.bytes();
        instructions.insert(at, decoded);
        at = next;
    }
    Ok(instructions)
}

/// Counts of the operations in a run that cost time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct RunCounts {
    /// Instructions on vectors.
    pub(super) vectors: usize,
    /// Vectors read from memory.
    pub(super) loads: usize,
    /// Vectors written to memory.
    pub(super) stores: usize,
    /// Lines, and parts of lines, that are prefetched.
    pub(super) prefetches: usize,
}

/// Registers and memory.
pub(super) struct EmulatedMachine {
    isa: Isa,
    /// Bytes stored before the function, from address 0 on.
    constants: Vec<u8>,
    /// Address of the next instruction.
    next: usize,
    general: [u64; 16],
    registers: [Option<Vector>; 32],
    /// Mask registers: one bit for each byte of a vector.
    masks: [Option<Vec<bool>>; 8],
    /// Words that may be read and written, by address: the stack and the buffers' addresses.
    pub(super) words: BTreeMap<u64, u64>,
    /// Vectors that may be read, by address, once they have a value.
    pub(super) vectors: BTreeMap<u64, Option<Vector>>,
    /// Addresses of the vectors that may be written.
    pub(super) writable: BTreeSet<u64>,
    /// Addresses written with non-temporal stores and not fenced yet, in order.
    nontemporal: Vec<u64>,
    /// The flag that a conditional jump reads, if its value is known.
    zero: Option<bool>,
    pub(super) counts: RunCounts,
    /// Bytes of the constants that were read.
    pub(super) constants_read: BTreeSet<usize>,
}

impl EmulatedMachine {
    /// Creates a machine at the start of a function with three arguments.
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
            constants: Vec::new(),
            next: 0,
            general,
            registers: [const { None }; 32],
            masks: [const { None }; 8],
            words: (0..=STACK_WORDS).map(|n| (STACK - 8 * n, garbage(0))).collect(),
            vectors: BTreeMap::new(),
            writable: BTreeSet::new(),
            nontemporal: Vec::new(),
            zero: None,
            counts: RunCounts::default(),
            constants_read: BTreeSet::new(),
        }
    }

    /// Maps memory in whole vectors from address `start` on, which holds `bytes`.
    pub(super) fn map(&mut self, start: u64, bytes: &[u8]) {
        let vector = self.isa.vector();
        let addresses = (start..).step_by(vector);
        let vectors = bytes.chunks(vector).map(|bytes| Some(bytes.to_vec()));
        self.vectors.extend(addresses.zip(vectors));
    }

    /// Maps memory that has no value yet and may be written.
    pub(super) fn map_scratch(&mut self, start: u64, bytes: usize) {
        for address in (start..start + bytes as u64).step_by(self.isa.vector()) {
            self.vectors.insert(address, None);
            self.writable.insert(address);
        }
    }

    /// Returns `bytes` bytes from address `start` on, in whole vectors.
    pub(super) fn bytes(&self, start: u64, bytes: usize) -> Result<Vec<u8>> {
        let addresses = (start..start + bytes as u64).step_by(self.isa.vector());
        let vectors = addresses.map(|address| match self.vectors.get(&address) {
            Some(Some(vector)) => Ok(vector.clone()),
            _ => Err(format!("{address:#x} has no value")),
        });
        Ok(vectors.collect::<Result<Vec<Vector>>>()?.concat())
    }

    /// Runs a function until it returns.
    pub(super) fn run(&mut self, code: &MachineCode) -> Result<()> {
        let instructions = decode(code)?;
        self.constants = code.bytes[..code.entry].to_vec();
        let mut at = code.entry;
        for _ in 0..MAX_RUN {
            let decoded = instructions.get(&at);
            let decoded = decoded.ok_or_else(|| format!("byte {at} starts no instruction"))?;
            self.next = at + decoded.bytes();
            let step = self.execute(decoded);
            at = match step.map_err(|error| format!("byte {at}, {decoded}: {error}"))? {
                Flow::Next => self.next,
                Flow::Jump(distance) => self.next.wrapping_add_signed(distance),
                Flow::Return => return self.check_return(),
            };
        }
        Err(format!("no return within {MAX_RUN} instructions"))
    }

    fn execute(&mut self, decoded: &Decoded) -> Result<Flow> {
        let [a, b, ..] = &operands(&decoded.instruction);
        match decoded.opcode {
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
            Opcode::XOR => self.set_to_zero(a, b)?,
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
            Opcode::VZEROUPPER if self.isa != Isa::Ssse3 => self.registers.fill(None),
            Opcode::PREFETCH1 => self.counts.prefetches += self.prefetch(a)?,
            _ => self.execute_vector(decoded)?,
        }
        Ok(Flow::Next)
    }

    /// Sets a register to zero by its XOR with itself, as the assembler does with rcx alone.
    fn set_to_zero(&mut self, a: &Operand, b: &Operand) -> Result<()> {
        let (Operand::Register { reg: a }, Operand::Register { reg: b }) = (a, b) else {
            return Err("has an operand of an unexpected kind".to_owned());
        };
        if (a, b) != (&RegSpec::ecx(), &RegSpec::ecx()) {
            return Err("is not how a register is set to zero".to_owned());
        }
        self.general[usize::from(RegSpec::rcx().num())] = 0;
        self.zero = None;
        Ok(())
    }

    fn execute_vector(&mut self, decoded: &Decoded) -> Result<()> {
        self.check_encoding(decoded)?;
        self.counts.vectors += 1;
        let [a, b, ..] = &operands(&decoded.instruction);
        let made = match decoded.opcode {
            Opcode::MOVDQU | Opcode::VMOVDQU | Opcode::VMOVDQU64 => self.read(b, false)?,
            Opcode::MOVNTDQ | Opcode::VMOVNTDQ => {
                let address = self.address(a)?;
                self.nontemporal.push(address);
                self.read(b, false)?
            }
            Opcode::VBROADCASTI32X4 => {
                self.counts.loads += 1;
                self.constant(b, 16)?
            }
            Opcode::VPMOVB2M => {
                let signs = self.read(b, false)?.into_iter().map(|byte| byte >= 0x80);
                self.masks[mask(a)?] = Some(signs.collect());
                return Ok(());
            }
            Opcode::VPMOVM2B => {
                let mask = self.masks[mask(b)?].clone().ok_or("reads a mask without a value")?;
                mask.into_iter().map(|bit| if bit { 0xFF } else { 0 }).collect()
            }
            _ => self.compute(decoded)?,
        };
        self.write(a, made)
    }

    /// Returns what an instruction computes from vectors.
    fn compute(&mut self, decoded: &Decoded) -> Result<Vector> {
        let &Decoded { opcode, ref instruction } = decoded;
        let [a, b, c, d] = &operands(instruction);
        // SSE instructions change their first source.
        let [first, second] = if self.isa == Isa::Ssse3 { [a, b] } else { [b, c] };
        let broadcasts = instruction.prefixes.evex().is_some_and(|evex| evex.broadcast());
        Ok(match opcode {
            Opcode::VPTERNLOGQ => {
                if *d != (Operand::ImmediateU8 { imm: PARITY }) {
                    return Err("is not the XOR of three".to_owned());
                }
                let two = by_lanes(&self.read(a, false)?, &self.read(b, false)?, xor);
                by_lanes(&two, &self.read(c, broadcasts)?, xor)
            }
            Opcode::VGF2P8AFFINEQB => {
                let (bytes, matrices) = (self.read(b, false)?, self.read(c, broadcasts)?);
                let constant = immediate(d)?;
                by_lanes(&bytes, &matrices, |bytes, matrices| affine(bytes, matrices, constant))
            }
            _ => match (shift(opcode), combination(opcode)) {
                (Some(shift), _) => {
                    let (bytes, bits) = (self.read(first, false)?, immediate(second)?);
                    by_lanes(&bytes, &bytes, |lane, _| shift(lane, bits.into()))
                }
                // The value in the register does not matter.
                (_, Some(_)) if is_zeroing(opcode) && first == second => {
                    vec![0; self.isa.vector()]
                }
                (_, Some(combine)) => {
                    let sources = [self.read(first, false)?, self.read(second, broadcasts)?];
                    by_lanes(&sources[0], &sources[1], combine)
                }
                _ => return Err("is not expected".to_owned()),
            },
        })
    }

    /// Checks that the instruction set has the instruction, in the encoding of its other
    /// instructions.
    fn check_encoding(&self, decoded: &Decoded) -> Result<()> {
        if decoded.encoding() != VectorEncoding::of(self.isa) || !has(self.isa, decoded.opcode) {
            return Err(format!("is not among {:?} code", self.isa));
        }
        let prefixes = &decoded.instruction.prefixes;
        if prefixes.evex().is_some_and(|evex| evex.merge() || evex.mask_reg() != 0) {
            return Err("is masked".to_owned());
        }
        // Other SSE operands in memory would have to be aligned.
        let moves = matches!(decoded.opcode, Opcode::MOVDQU | Opcode::MOVNTDQ);
        let in_memory = operands(&decoded.instruction).iter().any(is_in_memory);
        if self.isa == Isa::Ssse3 && !moves && in_memory {
            return Err("has an operand in memory".to_owned());
        }
        Ok(())
    }

    /// Reads a vector, or 8 bytes that are repeated.
    fn read(&mut self, operand: &Operand, broadcasts: bool) -> Result<Vector> {
        if let Some(number) = self.register(operand)? {
            let value = self.registers[number].clone();
            return value.ok_or("reads what has no value yet".to_owned());
        }
        self.counts.loads += 1;
        if is_constant(operand) {
            return self.constant(operand, if broadcasts { 8 } else { self.isa.vector() });
        }
        if broadcasts {
            return Err("broadcasts what is no constant".to_owned());
        }
        let address = self.address(operand)?;
        let value = self.vectors.get(&address).ok_or(format!("reads a vector at {address:#x}"))?;
        value.clone().ok_or("reads what has no value yet".to_owned())
    }

    /// Reads `bytes` bytes of the constants, and repeats them.
    fn constant(&mut self, operand: &Operand, bytes: usize) -> Result<Vector> {
        let start = self.address(operand)? as usize;
        let end = start.saturating_add(bytes);
        if !is_constant(operand) || end > self.constants.len() {
            return Err(format!("reads {bytes} bytes at {start:#x}, where no constants are"));
        }
        self.constants_read.extend(start..end);
        Ok(self.constants[start..end].repeat(self.isa.vector() / bytes))
    }

    /// Writes a vector.
    fn write(&mut self, operand: &Operand, value: Vector) -> Result<()> {
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

    /// Returns the number of a vector register; `None` for memory.
    fn register(&self, operand: &Operand) -> Result<Option<usize>> {
        let register = match operand {
            Operand::Register { reg } | Operand::RegisterMaskMerge { reg, .. } => reg,
            _ => return Ok(None),
        };
        let number = register.num() % self.isa.registers() as u8;
        let expected = match self.isa.vector() {
            16 => RegSpec::xmm(number),
            32 => RegSpec::ymm(number),
            _ => RegSpec::zmm(number),
        };
        if *register != expected {
            return Err(format!("uses {register}, which {:?} code does not have", self.isa));
        }
        Ok(Some(number.into()))
    }

    fn address(&self, operand: &Operand) -> Result<u64> {
        let (base, index, displacement) = match operand {
            Operand::MemDeref { base } => (base, None, 0),
            Operand::Disp { base, disp } => (base, None, *disp),
            Operand::MemBaseIndexScale { base, index, scale: 1 } => (base, Some(index), 0),
            Operand::MemBaseIndexScaleDisp { base, index, scale: 1, disp } => {
                (base, Some(index), *disp)
            }
            _ => return Err("has an operand of an unexpected kind".to_owned()),
        };
        let base = match *base {
            RegSpec::RIP => self.next as u64,
            reg => self.general[general(&Operand::Register { reg })?],
        };
        let index = match index {
            Some(&reg) => self.general[general(&Operand::Register { reg })?],
            None => 0,
        };
        Ok(base.wrapping_add(index).wrapping_add_signed(displacement.into()))
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

    /// Checks that a prefetch is useful, although it cannot fail: its first line belongs to a
    /// buffer.
    fn prefetch(&self, operand: &Operand) -> Result<usize> {
        let address = self.address(operand)?;
        let before = self.vectors.range(..=address).next_back();
        let near = before
            .is_some_and(|(start, _)| address - start < PREFETCH_DISTANCE as u64 + LINE as u64);
        if near { Ok(1) } else { Err(format!("asks for {address:#x}")) }
    }

    /// Checks that non-temporal stores fill whole lines, each without another such store in
    /// between.
    fn check_whole_lines(&mut self) -> Result<()> {
        let line = LINE as u64;
        for parts in self.nontemporal.chunks(LINE / self.isa.vector()) {
            let wanted = (parts[0]..parts[0] / line * line + line).step_by(self.isa.vector());
            if !parts[0].is_multiple_of(line) || !parts.iter().copied().eq(wanted) {
                return Err(format!("a line is not stored at once: {parts:#x?}"));
            }
        }
        self.nontemporal.clear();
        Ok(())
    }

    /// Checks what the caller relies on after the return: saved registers, the stack, fences and
    /// cleared upper halves.
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
        if !self.nontemporal.is_empty() {
            return Err("non-temporal stores are not fenced".to_owned());
        }
        if self.isa != Isa::Ssse3 && self.registers.iter().any(Option::is_some) {
            return Err("the upper halves of vectors are not cleared".to_owned());
        }
        Ok(())
    }
}

/// Where execution continues.
enum Flow {
    Next,
    /// This many bytes from the next instruction.
    Jump(isize),
    Return,
}

/// Top of the stack.
const TOP: Operand = Operand::MemDeref { base: RegSpec::rsp() };

fn operands(instruction: &Instruction) -> [Operand; 4] {
    std::array::from_fn(|n| instruction.operand(n as u8))
}

/// Returns the number of a general register of 64 bits.
fn general(operand: &Operand) -> Result<usize> {
    match operand {
        Operand::Register { reg } if *reg == RegSpec::q(reg.num() % 16) => Ok(reg.num().into()),
        _ => Err("is not on a general register of 64 bits".to_owned()),
    }
}

/// Returns the number of a mask register.
fn mask(operand: &Operand) -> Result<usize> {
    match operand {
        Operand::Register { reg } if *reg == RegSpec::mask(reg.num() % 8) => Ok(reg.num().into()),
        _ => Err("is not on a mask register".to_owned()),
    }
}

fn immediate(operand: &Operand) -> Result<u8> {
    match operand {
        Operand::ImmediateU8 { imm } => Ok(*imm),
        Operand::ImmediateI8 { imm } => Ok(*imm as u8),
        _ => Err("has no immediate byte".to_owned()),
    }
}

fn is_in_memory(operand: &Operand) -> bool {
    matches!(
        operand,
        Operand::MemDeref { .. }
            | Operand::Disp { .. }
            | Operand::MemBaseIndexScale { .. }
            | Operand::MemBaseIndexScaleDisp { .. }
    )
}

/// Whether an operand lies in memory, relative to the code.
fn is_constant(operand: &Operand) -> bool {
    matches!(
        operand,
        Operand::MemDeref { base: RegSpec::RIP } | Operand::Disp { base: RegSpec::RIP, .. }
    )
}

fn distance(operand: &Operand) -> Result<isize> {
    match operand {
        Operand::ImmediateI32 { imm } => Ok(*imm as isize),
        Operand::ImmediateI8 { imm } => Ok((*imm).into()),
        _ => Err("does not jump by a distance".to_owned()),
    }
}

/// Whether an instruction set has the instruction `opcode`. True only for vector instructions that
/// the assembler writes.
fn has(isa: Isa, opcode: Opcode) -> bool {
    use Opcode as O;
    let avx2 = matches!(isa, Isa::Avx2 | Isa::Avx2Gfni);
    let avx512bw = matches!(isa, Isa::Avx512Bw | Isa::Avx512Gfni);
    match opcode {
        O::MOVDQU | O::MOVNTDQ | O::PXOR | O::PAND | O::PSHUFB | O::PCMPGTB | O::PACKUSWB => {
            isa == Isa::Ssse3
        }
        O::PUNPCKLBW | O::PUNPCKHBW | O::PSRLW | O::PSRAW | O::PSRAD => isa == Isa::Ssse3,
        O::PADDB | O::PADDW | O::PADDD => isa == Isa::Ssse3,
        O::VMOVDQU | O::VPXOR | O::VPAND | O::VPCMPGTB => avx2,
        O::VMOVNTDQ | O::VPADDD | O::VPSRAD => isa != Isa::Ssse3,
        O::VMOVDQU64 | O::VPXORQ | O::VPANDQ | O::VPTERNLOGQ | O::VBROADCASTI32X4 => {
            isa.is_avx512()
        }
        O::VPSHUFB | O::VPACKUSWB | O::VPUNPCKLBW | O::VPUNPCKHBW => avx2 || avx512bw,
        O::VPSRLW | O::VPSRAW | O::VPADDB | O::VPADDW => avx2 || avx512bw,
        O::VPMOVB2M | O::VPMOVM2B => avx512bw,
        O::VGF2P8AFFINEQB => matches!(isa, Isa::Avx2Gfni | Isa::Avx512Gfni),
        _ => false,
    }
}

/// The 16 bytes that most instructions process separately from the rest of a vector.
type Lane16 = [u8; 16];

/// Applies an instruction to two vectors, lane by lane.
fn by_lanes(a: &[u8], b: &[u8], made: impl Fn(Lane16, Lane16) -> Lane16) -> Vector {
    let ((a, _), (b, _)) = (a.as_chunks(), b.as_chunks());
    a.iter().zip(b).flat_map(|(&a, &b)| made(a, b)).collect()
}

/// Returns what an instruction with an immediate number of bits does.
fn shift(opcode: Opcode) -> Option<fn(Lane16, u32) -> Lane16> {
    use Opcode as O;
    // Shifts by more bits than an element has leave zeros, or copies of the sign.
    Some(match opcode {
        O::PSRLW | O::VPSRLW => {
            |lane, bits| map_words(lane, |word| word.checked_shr(bits).unwrap_or(0))
        }
        O::PSRAW | O::VPSRAW => {
            |lane, bits| map_words(lane, |word| (word as i16 >> bits.min(15)) as u16)
        }
        O::PSRAD | O::VPSRAD => {
            |lane, bits| map_doublewords(lane, |word| (word as i32 >> bits.min(31)) as u32)
        }
        _ => return None,
    })
}

/// Returns what an instruction with two sources does.
fn combination(opcode: Opcode) -> Option<fn(Lane16, Lane16) -> Lane16> {
    use Opcode as O;
    Some(match opcode {
        O::PXOR | O::VPXOR | O::VPXORQ => xor,
        O::PAND | O::VPAND | O::VPANDQ => |a, b| each(a, b, |a, b| a & b),
        O::PADDB | O::VPADDB => |a, b| each(a, b, u8::wrapping_add),
        O::PADDW | O::VPADDW => add_words,
        O::PADDD | O::VPADDD => add_doublewords,
        O::PCMPGTB | O::VPCMPGTB => {
            |a, b| each(a, b, |a, b| if (a as i8) > (b as i8) { 0xFF } else { 0 })
        }
        O::PSHUFB | O::VPSHUFB => |table, index| {
            index.map(|i| if i & 0x80 == 0 { table[usize::from(i & 0x0F)] } else { 0 })
        },
        O::PACKUSWB | O::VPACKUSWB => pack,
        O::PUNPCKLBW | O::VPUNPCKLBW => |a, b| interleave(&a[..8], &b[..8]),
        O::PUNPCKHBW | O::VPUNPCKHBW => |a, b| interleave(&a[8..], &b[8..]),
        _ => return None,
    })
}

/// Whether an instruction gives zero for a vector and itself.
fn is_zeroing(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::PXOR | Opcode::VPXOR | Opcode::VPXORQ)
}

fn each(a: Lane16, b: Lane16, made: impl Fn(u8, u8) -> u8) -> Lane16 {
    std::array::from_fn(|n| made(a[n], b[n]))
}

fn xor(a: Lane16, b: Lane16) -> Lane16 {
    (u128::from_le_bytes(a) ^ u128::from_le_bytes(b)).to_le_bytes()
}

fn map_words(lane: Lane16, made: impl Fn(u16) -> u16) -> Lane16 {
    let mut lane = lane;
    for word in lane.as_chunks_mut().0 {
        *word = made(u16::from_le_bytes(*word)).to_le_bytes();
    }
    lane
}

fn map_doublewords(lane: Lane16, made: impl Fn(u32) -> u32) -> Lane16 {
    let mut lane = lane;
    for word in lane.as_chunks_mut().0 {
        *word = made(u32::from_le_bytes(*word)).to_le_bytes();
    }
    lane
}

fn add_words(a: Lane16, b: Lane16) -> Lane16 {
    let mut sum = a;
    for (word, summand) in sum.as_chunks_mut().0.iter_mut().zip(b.as_chunks().0) {
        *word = u16::from_le_bytes(*word).wrapping_add(u16::from_le_bytes(*summand)).to_le_bytes();
    }
    sum
}

fn add_doublewords(a: Lane16, b: Lane16) -> Lane16 {
    let mut sum = a;
    for (word, summand) in sum.as_chunks_mut().0.iter_mut().zip(b.as_chunks().0) {
        *word = u32::from_le_bytes(*word).wrapping_add(u32::from_le_bytes(*summand)).to_le_bytes();
    }
    sum
}

/// Packs the words of `a`, then of `b`: each is a number with sign, which becomes the nearest byte.
fn pack(a: Lane16, b: Lane16) -> Lane16 {
    let words = [a, b].concat();
    let mut words = words.as_chunks().0.iter().map(|&word| i16::from_le_bytes(word));
    std::array::from_fn(|_| words.next().unwrap_or_default().clamp(0, 255) as u8)
}

fn interleave(a: &[u8], b: &[u8]) -> Lane16 {
    let mut bytes = a.iter().zip(b).flat_map(|(&a, &b)| [a, b]);
    std::array::from_fn(|_| bytes.next().unwrap_or_default())
}

/// Multiplies every byte by the matrix of 8 by 8 bits in the same 64 bits, and adds a constant.
fn affine(bytes: Lane16, matrices: Lane16, constant: u8) -> Lane16 {
    std::array::from_fn(|n| {
        let (matrices, _) = matrices.as_chunks();
        let matrix = u64::from_le_bytes(matrices[n / 8]);
        // Bit i comes from row 7 - i.
        let bit = |i: u32| ((matrix >> (8 * (7 - i))) as u8 & bytes[n]).count_ones() & 1;
        (0..8).fold(constant, |byte, i| byte ^ (bit(i) as u8) << i)
    })
}
