//! Machine code for x86-64.
//!
//! An instruction of [`assemble`](crate::run::jit::assemble) is one of the processor's, but for the
//! function's begin and end. iced-x86 encodes them. The calling convention is System V's on every
//! system.

use iced_x86::{
    Code, Encoder, FastFormatter, IcedError, Instruction as Made, MemoryOperand, Register,
};

use crate::plan::registers::{self, Operand, Step};
use crate::run::jit::assemble::{Base, Counter, Instruction, Isa, Place};

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

/// The truth table of `a ^ b ^ c`.
const XOR3: u32 = 0x96;

/// The bytes of instructions.
///
/// # Errors
/// When one cannot be encoded.
pub(crate) fn encode(codes: &Codes, instructions: &[Instruction]) -> Result<Vec<u8>, IcedError> {
    let instructions = Translator::translate(codes, instructions)?;
    let mut encoder = Encoder::new(64);
    let mut starts = Vec::with_capacity(instructions.len());
    let mut at = 0;
    for mut instruction in instructions {
        starts.push(at);
        if instruction.code() == Code::Jne_rel32_64 {
            instruction.set_near_branch64(starts[instruction.near_branch64() as usize]);
        }
        at += encoder.encode(&instruction, at)? as u64;
    }
    Ok(encoder.take_buffer())
}

/// Instructions in Intel syntax, one a line; a jump's target is an instruction's number, from 0.
///
/// # Errors
/// As [`encode`].
pub(crate) fn list(codes: &Codes, instructions: &[Instruction]) -> Result<String, IcedError> {
    let mut formatter = FastFormatter::new();
    let mut listing = String::new();
    for (number, instruction) in Translator::translate(codes, instructions)?.iter().enumerate() {
        listing.push_str(&format!("{number:5}  "));
        formatter.format(instruction, &mut listing);
        listing.push('\n');
    }
    Ok(listing)
}

/// What one instruction set calls the vector instructions.
pub(crate) struct Codes {
    /// The first vector register.
    first: Register,
    load: Code,
    store: Code,
    store_past_cache: Code,
    xor: Code,
    /// Where allocation says that there is one.
    xor3: Code,
}

const AVX2: Codes = Codes {
    first: Register::YMM0,
    load: Code::VEX_Vmovdqu_ymm_ymmm256,
    store: Code::VEX_Vmovdqu_ymmm256_ymm,
    store_past_cache: Code::VEX_Vmovntdq_m256_ymm,
    xor: Code::VEX_Vpxor_ymm_ymm_ymmm256,
    xor3: Code::INVALID,
};

const AVX512VL: Codes = Codes {
    first: Register::YMM0,
    load: Code::EVEX_Vmovdqu64_ymm_k1z_ymmm256,
    store: Code::EVEX_Vmovdqu64_ymmm256_k1z_ymm,
    store_past_cache: Code::EVEX_Vmovntdq_m256_ymm,
    xor: Code::EVEX_Vpxorq_ymm_k1z_ymm_ymmm256b64,
    xor3: Code::EVEX_Vpternlogq_ymm_k1z_ymm_ymmm256b64_imm8,
};

const AVX512: Codes = Codes {
    first: Register::ZMM0,
    load: Code::EVEX_Vmovdqu64_zmm_k1z_zmmm512,
    store: Code::EVEX_Vmovdqu64_zmmm512_k1z_zmm,
    store_past_cache: Code::EVEX_Vmovntdq_m512_zmm,
    xor: Code::EVEX_Vpxorq_zmm_k1z_zmm_zmmm512b64,
    xor3: Code::EVEX_Vpternlogq_zmm_k1z_zmm_zmmm512b64_imm8,
};

impl Isa {
    /// The codes of one of x86-64's.
    pub(crate) fn codes(self) -> Option<&'static Codes> {
        match self {
            Self::Avx2 => Some(&AVX2),
            Self::Avx512Vl => Some(&AVX512VL),
            Self::Avx512 => Some(&AVX512),
            Self::Neon | Self::NeonSha3 => None,
        }
    }
}

/// Turns instructions into the processor's.
struct Translator<'a> {
    codes: &'a Codes,
    /// Per instruction, the number of the first one that it became.
    starts: Vec<usize>,
    made: Vec<Made>,
}

impl<'a> Translator<'a> {
    /// The processor's instructions; branch targets are instruction numbers.
    fn translate(codes: &'a Codes, instructions: &[Instruction]) -> Result<Vec<Made>, IcedError> {
        let mut translator = Self { codes, starts: Vec::new(), made: Vec::new() };
        for &instruction in instructions {
            translator.starts.push(translator.made.len());
            translator.instruction(instruction)?;
        }
        Ok(translator.made)
    }

    fn push(&mut self, instruction: Result<Made, IcedError>) -> Result<(), IcedError> {
        self.made.push(instruction?);
        Ok(())
    }

    fn instruction(&mut self, instruction: Instruction) -> Result<(), IcedError> {
        match instruction {
            Instruction::Enter => {
                SAVED.into_iter().try_for_each(|r| self.push(Made::with1(Code::Push_r64, r)))
            }
            Instruction::Leave { past_cache } => self.leave(past_cache),
            Instruction::Fetch { to, from } => {
                self.push(Made::with2(Code::Mov_r64_rm64, general(to), memory(from)))
            }
            Instruction::Advance { base, bytes } => {
                self.push(Made::with2(Code::Add_rm64_imm32, general(base), bytes as i32))
            }
            Instruction::AdvanceFetched { place, bytes } => {
                self.push(Made::with2(Code::Add_rm64_imm32, memory(place), bytes as i32))
            }
            Instruction::Count(count) => {
                self.push(Made::with2(Code::Mov_r64_imm64, Register::RCX, count as i64))
            }
            Instruction::Repeat { counter, to } => self.repeat(counter, to),
            Instruction::Prefetch(place) => {
                self.push(Made::with1(Code::Prefetcht1_m8, memory(place)))
            }
            Instruction::Step(step) => self.step(step),
            Instruction::StorePastCache { from, to } => {
                let (code, from) = (self.codes.store_past_cache, self.vector(from));
                self.push(Made::with2(code, memory(to), from))
            }
        }
    }

    fn leave(&mut self, past_cache: bool) -> Result<(), IcedError> {
        if past_cache {
            self.push(Ok(Made::with(Code::Sfence)))?;
        }
        self.push(Ok(Made::with(Code::VEX_Vzeroupper)))?;
        for register in SAVED.into_iter().rev() {
            self.push(Made::with1(Code::Pop_r64, register))?;
        }
        self.push(Ok(Made::with(Code::Retnq)))
    }

    fn repeat(&mut self, counter: Counter, to: usize) -> Result<(), IcedError> {
        let counter = match counter {
            Counter::Outer => Register::RSI,
            Counter::Inner => Register::RCX,
        };
        self.push(Made::with1(Code::Dec_rm64, counter))?;
        // The target is an instruction's number until the bytes are laid out.
        let target = self.starts[to] as u64;
        self.push(Made::with_branch(Code::Jne_rel32_64, target))
    }

    fn step(&mut self, step: Step<Place>) -> Result<(), IcedError> {
        let &Codes { load, store, xor, xor3, .. } = self.codes;
        let register = |number| self.vector(number);
        let made = match step {
            Step::Zero { to } => Made::with3(xor, register(to), register(to), register(to)),
            Step::Load { to, from } => match from {
                Operand::Register(from) => Made::with2(load, register(to), register(from)),
                Operand::Memory(from) => Made::with2(load, register(to), memory(from)),
            },
            Step::Xor { to, a, b } => match b {
                Operand::Register(b) => Made::with3(xor, register(to), register(a), register(b)),
                Operand::Memory(b) => Made::with3(xor, register(to), register(a), memory(b)),
            },
            Step::Xor3 { to, a, b } => match b {
                Operand::Register(b) => {
                    Made::with4(xor3, register(to), register(a), register(b), XOR3)
                }
                Operand::Memory(b) => Made::with4(xor3, register(to), register(a), memory(b), XOR3),
            },
            Step::Store { from, to } => Made::with2(store, memory(to), register(from)),
        };
        self.push(made)
    }

    fn vector(&self, registers::Register(number): registers::Register) -> Register {
        self.codes.first + u32::from(number)
    }
}

fn general(base: Base) -> Register {
    match base {
        Base::Pointers => Register::RDI,
        Base::Scratch => Register::RDX,
        Base::Buffer(number) => ADDRESSES[usize::from(number)],
    }
}

fn memory(place: Place) -> MemoryOperand {
    MemoryOperand::with_base_displ(general(place.base), place.offset as i64)
}
