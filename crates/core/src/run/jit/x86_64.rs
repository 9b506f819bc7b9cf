//! Machine code for x86-64.
//!
//! An [`Instruction`] becomes one instruction of the processor, except at the function's beginning
//! and end, for the sign of bytes on AVX-512, and where SSE works in place. Constants are addressed
//! relative to the code. iced-x86 encodes. The calling convention is System V's on every system.

#[cfg(feature = "research")]
use iced_x86::FastFormatter;
use iced_x86::{Code, Encoder, IcedError, Instruction as Made, MemoryOperand, Register};

use crate::plan::steps::{self, Operand, Step};
use crate::plan::vector::{Map, PairOperation};
use crate::run::jit::instruction::{Address, Base, Counter, Instruction};
use crate::run::jit::isa::Isa;

/// General registers that may hold buffers' addresses. The other registers: rsp is the stack
/// pointer; rdi, rsi and rdx hold the arguments; rcx counts the inner loop or, if there is none, is
/// the index.
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

/// The index register.
const INDEX: Register = Register::RCX;

/// The registers of [`ADDRESSES`] that the caller expects unchanged.
const SAVED: [Register; 6] =
    [Register::RBX, Register::RBP, Register::R12, Register::R13, Register::R14, Register::R15];

/// Truth table of `a ^ b ^ c`.
const XOR3: u32 = 0x96;

/// Encodes instructions that begin at byte `entry`, after the constants.
///
/// # Errors
/// If an instruction cannot be encoded.
pub(crate) fn encode(
    isa: Isa,
    instructions: &[Instruction],
    entry: usize,
) -> Result<Vec<u8>, IcedError> {
    let instructions = Translator::translate(isa, instructions)?;
    let mut encoder = Encoder::new(64);
    let mut starts = Vec::with_capacity(instructions.len());
    let mut at = entry as u64;
    for mut instruction in instructions {
        starts.push(at);
        if instruction.code() == Code::Jne_rel32_64 {
            instruction.set_near_branch64(starts[instruction.near_branch64() as usize]);
        }
        at += encoder.encode(&instruction, at)? as u64;
    }
    Ok(encoder.take_buffer())
}

/// Lists instructions in Intel syntax, one a line. A jump's target is an instruction's number, from
/// 0, and a constant is named by its place before the code.
///
/// # Errors
/// As [`encode`].
#[cfg(feature = "research")]
pub(crate) fn list(isa: Isa, instructions: &[Instruction]) -> Result<String, IcedError> {
    let mut formatter = FastFormatter::new();
    let mut listing = String::new();
    for (number, instruction) in Translator::translate(isa, instructions)?.iter().enumerate() {
        listing.push_str(&format!("{number:5}  "));
        formatter.format(instruction, &mut listing);
        listing.push('\n');
    }
    Ok(listing)
}

/// Codes of the vector instructions in one encoding.
struct VectorCodes {
    /// The first vector register.
    first: Register,
    load: Code,
    store: Code,
    store_nontemporal: Code,
    /// Loads a constant from memory.
    constant: Code,
    xor: Code,
    and: Code,
    lookup: Code,
    /// Affine transformation, used where there are bit matrices; and three-input XOR, used where
    /// allocation says that there is one.
    affine: Code,
    xor3: Code,
    greater: Code,
    pack: Code,
    interleave: [Code; 2],
    shift_words: Code,
    /// By the bytes of a word: 1, 2 and 4. Bytes have no arithmetic shift.
    twice: [Code; 3],
    sign: [Code; 2],
}

const SSE: VectorCodes = VectorCodes {
    first: Register::XMM0,
    load: Code::Movdqu_xmm_xmmm128,
    store: Code::Movdqu_xmmm128_xmm,
    store_nontemporal: Code::Movntdq_m128_xmm,
    constant: Code::Movdqu_xmm_xmmm128,
    xor: Code::Pxor_xmm_xmmm128,
    and: Code::Pand_xmm_xmmm128,
    lookup: Code::Pshufb_xmm_xmmm128,
    affine: Code::INVALID,
    xor3: Code::INVALID,
    greater: Code::Pcmpgtb_xmm_xmmm128,
    pack: Code::Packuswb_xmm_xmmm128,
    interleave: [Code::Punpcklbw_xmm_xmmm128, Code::Punpckhbw_xmm_xmmm128],
    shift_words: Code::Psrlw_xmm_imm8,
    twice: [Code::Paddb_xmm_xmmm128, Code::Paddw_xmm_xmmm128, Code::Paddd_xmm_xmmm128],
    sign: [Code::Psraw_xmm_imm8, Code::Psrad_xmm_imm8],
};

const AVX2: VectorCodes = VectorCodes {
    first: Register::YMM0,
    load: Code::VEX_Vmovdqu_ymm_ymmm256,
    store: Code::VEX_Vmovdqu_ymmm256_ymm,
    store_nontemporal: Code::VEX_Vmovntdq_m256_ymm,
    constant: Code::VEX_Vmovdqu_ymm_ymmm256,
    xor: Code::VEX_Vpxor_ymm_ymm_ymmm256,
    and: Code::VEX_Vpand_ymm_ymm_ymmm256,
    lookup: Code::VEX_Vpshufb_ymm_ymm_ymmm256,
    affine: Code::VEX_Vgf2p8affineqb_ymm_ymm_ymmm256_imm8,
    xor3: Code::INVALID,
    greater: Code::VEX_Vpcmpgtb_ymm_ymm_ymmm256,
    pack: Code::VEX_Vpackuswb_ymm_ymm_ymmm256,
    interleave: [Code::VEX_Vpunpcklbw_ymm_ymm_ymmm256, Code::VEX_Vpunpckhbw_ymm_ymm_ymmm256],
    shift_words: Code::VEX_Vpsrlw_ymm_ymm_imm8,
    twice: [
        Code::VEX_Vpaddb_ymm_ymm_ymmm256,
        Code::VEX_Vpaddw_ymm_ymm_ymmm256,
        Code::VEX_Vpaddd_ymm_ymm_ymmm256,
    ],
    sign: [Code::VEX_Vpsraw_ymm_ymm_imm8, Code::VEX_Vpsrad_ymm_ymm_imm8],
};

const AVX512VL: VectorCodes = VectorCodes {
    first: Register::YMM0,
    load: Code::EVEX_Vmovdqu64_ymm_k1z_ymmm256,
    store: Code::EVEX_Vmovdqu64_ymmm256_k1z_ymm,
    store_nontemporal: Code::EVEX_Vmovntdq_m256_ymm,
    constant: Code::EVEX_Vbroadcasti32x4_ymm_k1z_m128,
    xor: Code::EVEX_Vpxorq_ymm_k1z_ymm_ymmm256b64,
    and: Code::EVEX_Vpandq_ymm_k1z_ymm_ymmm256b64,
    lookup: Code::EVEX_Vpshufb_ymm_k1z_ymm_ymmm256,
    affine: Code::EVEX_Vgf2p8affineqb_ymm_k1z_ymm_ymmm256b64_imm8,
    xor3: Code::EVEX_Vpternlogq_ymm_k1z_ymm_ymmm256b64_imm8,
    greater: Code::INVALID,
    pack: Code::EVEX_Vpackuswb_ymm_k1z_ymm_ymmm256,
    interleave: [
        Code::EVEX_Vpunpcklbw_ymm_k1z_ymm_ymmm256,
        Code::EVEX_Vpunpckhbw_ymm_k1z_ymm_ymmm256,
    ],
    shift_words: Code::EVEX_Vpsrlw_ymm_k1z_ymmm256_imm8,
    twice: [
        Code::EVEX_Vpaddb_ymm_k1z_ymm_ymmm256,
        Code::EVEX_Vpaddw_ymm_k1z_ymm_ymmm256,
        Code::EVEX_Vpaddd_ymm_k1z_ymm_ymmm256b32,
    ],
    sign: [Code::EVEX_Vpsraw_ymm_k1z_ymmm256_imm8, Code::EVEX_Vpsrad_ymm_k1z_ymmm256b32_imm8],
};

const AVX512: VectorCodes = VectorCodes {
    first: Register::ZMM0,
    load: Code::EVEX_Vmovdqu64_zmm_k1z_zmmm512,
    store: Code::EVEX_Vmovdqu64_zmmm512_k1z_zmm,
    store_nontemporal: Code::EVEX_Vmovntdq_m512_zmm,
    constant: Code::EVEX_Vbroadcasti32x4_zmm_k1z_m128,
    xor: Code::EVEX_Vpxorq_zmm_k1z_zmm_zmmm512b64,
    and: Code::EVEX_Vpandq_zmm_k1z_zmm_zmmm512b64,
    lookup: Code::EVEX_Vpshufb_zmm_k1z_zmm_zmmm512,
    affine: Code::EVEX_Vgf2p8affineqb_zmm_k1z_zmm_zmmm512b64_imm8,
    xor3: Code::EVEX_Vpternlogq_zmm_k1z_zmm_zmmm512b64_imm8,
    greater: Code::INVALID,
    pack: Code::EVEX_Vpackuswb_zmm_k1z_zmm_zmmm512,
    interleave: [
        Code::EVEX_Vpunpcklbw_zmm_k1z_zmm_zmmm512,
        Code::EVEX_Vpunpckhbw_zmm_k1z_zmm_zmmm512,
    ],
    shift_words: Code::EVEX_Vpsrlw_zmm_k1z_zmmm512_imm8,
    twice: [
        Code::EVEX_Vpaddb_zmm_k1z_zmm_zmmm512,
        Code::EVEX_Vpaddw_zmm_k1z_zmm_zmmm512,
        Code::EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32,
    ],
    sign: [Code::EVEX_Vpsraw_zmm_k1z_zmmm512_imm8, Code::EVEX_Vpsrad_zmm_k1z_zmmm512b32_imm8],
};

fn codes(isa: Isa) -> &'static VectorCodes {
    match isa {
        Isa::Ssse3 => &SSE,
        Isa::Avx2 | Isa::Avx2Gfni => &AVX2,
        Isa::Avx512Vl => &AVX512VL,
        Isa::Avx512 | Isa::Avx512Bw | Isa::Avx512Gfni => &AVX512,
        Isa::Neon | Isa::NeonSha3 => unreachable!("{isa:?} is encoded elsewhere"),
    }
}

/// Translates instructions to the processor's.
struct Translator {
    isa: Isa,
    codes: &'static VectorCodes,
    /// For each instruction, the number of the first one that it became.
    starts: Vec<usize>,
    made: Vec<Made>,
}

/// Result of translating an instruction.
type Translated = Result<(), IcedError>;

impl Translator {
    /// Translates to the processor's instructions; branch targets are instruction numbers.
    fn translate(isa: Isa, instructions: &[Instruction]) -> Result<Vec<Made>, IcedError> {
        let (starts, made) = (Vec::new(), Vec::new());
        let mut translator = Self { isa, codes: codes(isa), starts, made };
        for &instruction in instructions {
            translator.starts.push(translator.made.len());
            translator.instruction(instruction)?;
        }
        Ok(translator.made)
    }

    fn push(&mut self, instruction: Result<Made, IcedError>) -> Translated {
        self.made.push(instruction?);
        Ok(())
    }

    fn instruction(&mut self, instruction: Instruction) -> Translated {
        match instruction {
            Instruction::Enter => {
                SAVED.into_iter().try_for_each(|r| self.push(Made::with1(Code::Push_r64, r)))
            }
            // Addresses relative to the code need no register.
            Instruction::FindConstants => Ok(()),
            Instruction::Leave { nontemporal } => self.leave(nontemporal),
            Instruction::Fetch { to, from } => {
                self.push(Made::with2(Code::Mov_r64_rm64, general(to), memory(from)))
            }
            Instruction::Advance { base, bytes } => {
                self.push(Made::with2(Code::Add_rm64_imm32, general(base), bytes as i32))
            }
            Instruction::AdvanceFetched { place, bytes } => {
                self.push(Made::with2(Code::Add_rm64_imm32, memory(place), bytes as i32))
            }
            Instruction::StartIndex => {
                self.push(Made::with2(Code::Xor_r32_rm32, Register::ECX, Register::ECX))
            }
            Instruction::AdvanceIndex(bytes) => {
                self.push(Made::with2(Code::Add_rm64_imm32, INDEX, bytes as i32))
            }
            Instruction::Count(count) => {
                self.push(Made::with2(Code::Mov_r64_imm64, Register::RCX, count as i64))
            }
            Instruction::Repeat { counter, to } => self.repeat(counter, to),
            Instruction::Prefetch(place) => {
                self.push(Made::with1(Code::Prefetcht1_m8, memory(place)))
            }
            Instruction::Step(step) => self.step(step),
            Instruction::StoreNontemporal { from, to } => {
                let (code, from) = (self.codes.store_nontemporal, self.vector(from));
                self.push(Made::with2(code, memory(to), from))
            }
        }
    }

    fn leave(&mut self, nontemporal: bool) -> Translated {
        if nontemporal {
            self.push(Ok(Made::with(Code::Sfence)))?;
        }
        if self.isa != Isa::Ssse3 {
            self.push(Ok(Made::with(Code::VEX_Vzeroupper)))?;
        }
        for register in SAVED.into_iter().rev() {
            self.push(Made::with1(Code::Pop_r64, register))?;
        }
        self.push(Ok(Made::with(Code::Retnq)))
    }

    fn repeat(&mut self, counter: Counter, to: usize) -> Translated {
        let counter = match counter {
            Counter::Outer => Register::RSI,
            Counter::Inner => Register::RCX,
        };
        self.push(Made::with1(Code::Dec_rm64, counter))?;
        // The target is an instruction's number until the bytes are laid out.
        let target = self.starts[to] as u64;
        self.push(Made::with_branch(Code::Jne_rel32_64, target))
    }

    fn step(&mut self, step: Step<Address>) -> Translated {
        let &VectorCodes { load, store, constant, xor, xor3, .. } = self.codes;
        match step {
            Step::Zero { to } => self.binary(xor, to, to, Operand::Register(to)),
            Step::Load { to, from: Operand::Register(from) } => self.copy(to, from),
            Step::Load { to, from: Operand::Memory(from) } => {
                let code = if from.base == Base::Constants { constant } else { load };
                self.push(Made::with2(code, self.vector(to), memory(from)))
            }
            Step::Xor { to, a, b } => self.binary(xor, to, a, b),
            Step::Xor3 { to, a, b } => {
                let (to, a) = (self.vector(to), self.vector(a));
                let made = match b {
                    Operand::Register(b) => Made::with4(xor3, to, a, self.vector(b), XOR3),
                    Operand::Memory(b) => Made::with4(xor3, to, a, memory(b), XOR3),
                };
                self.push(made)
            }
            Step::Map { to, map, a } => self.map(to, map, a),
            Step::Pair { to, pair, a, b } => self.pair(to, pair, a, b),
            Step::Store { from, to } => {
                self.push(Made::with2(store, memory(to), self.vector(from)))
            }
        }
    }

    fn copy(&mut self, to: steps::Register, from: steps::Register) -> Translated {
        let (to, from) = (self.vector(to), self.vector(from));
        self.push(Made::with2(self.codes.load, to, from))
    }

    /// `to = a op b`. SSE instructions change their first operand. If `to` is `b`, `a` and `b` are
    /// exchanged, provided that their order does not matter.
    fn binary(
        &mut self,
        code: Code,
        to: steps::Register,
        a: steps::Register,
        b: Operand<Address>,
    ) -> Translated {
        if self.isa == Isa::Ssse3 {
            return self.in_place(code, to, a, b);
        }
        let (first, second) = (self.vector(to), self.vector(a));
        let made = match b {
            Operand::Register(b) => Made::with3(code, first, second, self.vector(b)),
            Operand::Memory(place) if place.base == Base::Constants => {
                Made::with3(code, first, second, self.constant_operand(place))
            }
            Operand::Memory(b) => Made::with3(code, first, second, memory(b)),
        };
        self.push(made)
    }

    /// `to = a op b` with an instruction that does `a = a op b`.
    fn in_place(
        &mut self,
        code: Code,
        to: steps::Register,
        a: steps::Register,
        b: Operand<Address>,
    ) -> Translated {
        let Operand::Register(b) = b else {
            unreachable!("machines without memory operands load them first")
        };
        let commutes = code == self.codes.xor || code == self.codes.and;
        match (to == a, to == b) {
            (true, _) => self.push(Made::with2(code, self.vector(to), self.vector(b))),
            (false, true) if commutes => {
                self.push(Made::with2(code, self.vector(to), self.vector(a)))
            }
            (false, true) => {
                // `b` goes through the register that is set aside.
                let aside = SET_ASIDE;
                self.copy(aside, b)?;
                self.copy(to, a)?;
                self.push(Made::with2(code, self.vector(to), self.vector(aside)))
            }
            (false, false) => {
                self.copy(to, a)?;
                self.push(Made::with2(code, self.vector(to), self.vector(b)))
            }
        }
    }

    fn map(&mut self, to: steps::Register, map: Map, a: steps::Register) -> Translated {
        let &VectorCodes { shift_words, twice, sign, .. } = self.codes;
        match map {
            Map::ShiftWords(bits) => self.shift(shift_words, to, a, bits),
            Map::Twice(1) => self.binary(twice[0], to, a, Operand::Register(a)),
            Map::Twice(2) => self.binary(twice[1], to, a, Operand::Register(a)),
            Map::Twice(_) => self.binary(twice[2], to, a, Operand::Register(a)),
            Map::Sign(2) => self.shift(sign[0], to, a, 15),
            Map::Sign(4) => self.shift(sign[1], to, a, 31),
            Map::Sign(_) => {
                let (to, a) = (self.vector(to), self.vector(a));
                self.push(Made::with2(Code::EVEX_Vpmovb2m_kr_zmm, Register::K1, a))?;
                self.push(Made::with2(Code::EVEX_Vpmovm2b_zmm_kr, to, Register::K1))
            }
            Map::ShiftBytes(_) => unreachable!("x86-64 does not shift bytes"),
        }
    }

    /// `to = a`, shifted by `bits` bits.
    fn shift(
        &mut self,
        code: Code,
        to: steps::Register,
        a: steps::Register,
        bits: u8,
    ) -> Translated {
        if self.isa == Isa::Ssse3 {
            if to != a {
                self.copy(to, a)?;
            }
            return self.push(Made::with2(code, self.vector(to), u32::from(bits)));
        }
        self.push(Made::with3(code, self.vector(to), self.vector(a), u32::from(bits)))
    }

    fn pair(
        &mut self,
        to: steps::Register,
        pair: PairOperation,
        a: steps::Register,
        b: Operand<Address>,
    ) -> Translated {
        let &VectorCodes { and, lookup, greater, pack, interleave, .. } = self.codes;
        match pair {
            PairOperation::And => self.binary(and, to, a, b),
            PairOperation::Greater => self.binary(greater, to, a, b),
            PairOperation::Pack => self.binary(pack, to, a, b),
            PairOperation::InterleaveLow => self.binary(interleave[0], to, a, b),
            PairOperation::InterleaveHigh => self.binary(interleave[1], to, a, b),
            PairOperation::Affine => self.affine(to, a, b),
            // The table is the instruction's first source.
            PairOperation::Lookup => match b {
                Operand::Register(table) => self.binary(lookup, to, table, Operand::Register(a)),
                Operand::Memory(place) => unreachable!("{place:?} is not loaded"),
            },
            PairOperation::Even | PairOperation::Odd => unreachable!("x86-64 packs instead"),
        }
    }

    fn affine(
        &mut self,
        to: steps::Register,
        a: steps::Register,
        b: Operand<Address>,
    ) -> Translated {
        let code = self.codes.affine;
        let (to, a) = (self.vector(to), self.vector(a));
        let made = match b {
            Operand::Register(b) => Made::with4(code, to, a, self.vector(b), 0),
            Operand::Memory(place) if place.base == Base::Constants => {
                Made::with4(code, to, a, self.constant_operand(place), 0)
            }
            Operand::Memory(b) => Made::with4(code, to, a, memory(b), 0),
        };
        self.push(made)
    }

    /// Returns a constant as a memory operand; on AVX-512 its first 8 bytes are broadcast.
    fn constant_operand(&self, place: Address) -> MemoryOperand {
        MemoryOperand { is_broadcast: self.isa.is_avx512(), ..memory(place) }
    }

    fn vector(&self, steps::Register(number): steps::Register) -> Register {
        self.codes.first + u32::from(number)
    }
}

/// The register that allocation sets aside on SSE, which has no memory operands.
const SET_ASIDE: steps::Register = steps::Register(15);

fn general(base: Base) -> Register {
    match base {
        Base::Pointers => Register::RDI,
        Base::Scratch => Register::RDX,
        Base::Buffer(number) | Base::Indexed(number) => ADDRESSES[usize::from(number)],
        Base::Constants => Register::RIP,
    }
}

/// Returns an operand in memory; constants begin at byte 0 of the code.
fn memory(place: Address) -> MemoryOperand {
    let (base, offset) = (general(place.base), place.offset as i64);
    match place.base {
        Base::Indexed(_) => {
            MemoryOperand::with_base_index_scale_displ_size(base, INDEX, 1, offset, 1)
        }
        _ => MemoryOperand::with_base_displ(base, offset),
    }
}
