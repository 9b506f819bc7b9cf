//! Machine code for AArch64: NEON, and the three-input XOR of the SHA-3 instructions.
//!
//! An [`Instruction`] becomes one of the processor's instructions, or a few: an offset that does
//! not fit the instruction is added to a register first. Neighbouring vectors that move one after
//! the other, as they do to and from the scratch, move as a pair.
//!
//! Non-temporal stores are pairs with the non-temporal hint (STNP). It is only a hint. The order
//! that [`assemble`](crate::run::jit::assemble()) gives the stores counts more: whole lines one
//! after the other, which these processors recognise as a stream whose lines need not be read
//! before they are written. On x86-64, non-temporal stores need a fence, because they are ordered
//! more weakly than other stores. Here, stores with the hint are ordered like all others, and need
//! no fence. (This is from the manuals; we have not measured it.)
//!
//! The calling convention (AAPCS64) lets a function use x0 to x17, v0 to v7 and v16 to v31 freely.
//! The lower halves of v8 to v15 and x19 to x28 are saved and used; x18 belongs to the system, x29
//! to debuggers, and x30 holds the return address. dynasm-rs encodes the instructions; the list of
//! instructions between this module and dynasm-rs exists to be printed, on any processor.

use std::fmt;

use crate::plan::steps::{Operand, Register, Step};
use crate::plan::vector::{Map, PairOperation};
use crate::run::jit::instruction::{Address, Base, Counter, Instruction};

/// A general register; 31 is the stack pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct X(u8);

const POINTERS: X = X(0);
const OUTER: X = X(1);
const SCRATCH: X = X(2);
/// First register for buffers' addresses that need not be saved: x3 to x14.
const FIRST_ADDRESS: u8 = 3;
/// Number of these registers; the others follow from [`FIRST_SAVED`].
const FREE_ADDRESSES: u8 = 12;
const INNER: X = X(15);
/// Register for an address that no offset reaches, or for a large summand.
const FAR: X = X(16);
/// Register for a buffer's address on its way through `pointers`.
const PASSING: X = X(17);
const FIRST_SAVED: u8 = 19;
/// Register for the beginning of the constants, in functions that have any: the last register for
/// an address.
const CONSTANTS: X = X(28);
const STACK: X = X(31);

/// Bytes before itself that an instruction can address: 21 bits with sign.
const ADDRESS_REACH: usize = 1 << 20;

/// Bytes saved on the stack: x19 to x28, then d8 to d15.
const FRAME: u32 = 8 * (10 + 8);

/// Offsets that an instruction can have: at most `most` times `unit` bytes.
#[derive(Clone, Copy)]
struct Reach {
    most: usize,
    unit: usize,
}

impl Reach {
    /// Loads and stores of a vector and of an address: 12 bits, in units of their own size.
    const VECTOR: Self = Self { most: 4095, unit: 16 };
    const ADDRESS: Self = Self { most: 4095, unit: 8 };
    /// Loads and stores of a pair of vectors: 7 bits with sign.
    const PAIR: Self = Self { most: 63, unit: 16 };
    /// A prefetch: 9 bits with sign, in bytes.
    const PREFETCH: Self = Self { most: 255, unit: 1 };

    fn has(self, offset: usize) -> bool {
        offset.is_multiple_of(self.unit) && offset / self.unit <= self.most
    }
}

/// Bytes of a vector.
const VECTOR: usize = 16;

/// An address in the form that an instruction can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct At {
    base: X,
    offset: u32,
}

/// An instruction of the processor. A jump names the number of its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Made {
    LoadVector(Register, At),
    StoreVector(Register, At),
    LoadPair([Register; 2], At),
    StorePair([Register; 2], At),
    StorePairNontemporal([Register; 2], At),
    Zero(Register),
    Copy {
        to: Register,
        from: Register,
    },
    Xor {
        to: Register,
        a: Register,
        b: Register,
    },
    /// `to ^= a ^ b`
    Xor3 {
        to: Register,
        a: Register,
        b: Register,
    },
    And {
        to: Register,
        a: Register,
        b: Register,
    },
    /// Selects those bytes of `table` whose numbers are the bytes of `index`.
    Lookup {
        to: Register,
        table: Register,
        index: Register,
    },
    /// Puts the bytes of two vectors into another order.
    Permute {
        how: Permutation,
        to: Register,
        a: Register,
        b: Register,
    },
    /// Shifts elements of this many bytes.
    Shift {
        how: Shift,
        bytes: u8,
        to: Register,
        a: Register,
        bits: u8,
    },
    /// `to` = the address of this instruction, minus some bytes.
    Address {
        to: X,
        before: usize,
    },
    Prefetch(At),
    LoadAddress(X, At),
    StoreAddress(X, At),
    /// Moves two general registers to or from the stack.
    Save([X; 2], u32),
    Restore([X; 2], u32),
    /// Moves the lower halves of two vector registers to or from the stack.
    SaveHalves([Register; 2], u32),
    RestoreHalves([Register; 2], u32),
    /// `to = a + n`, with n below 4096.
    Add {
        to: X,
        a: X,
        n: u32,
    },
    /// `to = a + (n << 12)`, with n below 4096.
    AddShifted {
        to: X,
        a: X,
        n: u32,
    },
    AddRegister {
        to: X,
        a: X,
        b: X,
    },
    Subtract {
        from: X,
        n: u32,
    },
    SubtractRegister {
        from: X,
        n: X,
    },
    /// `to = n << shift`
    Set {
        to: X,
        n: u32,
        shift: u32,
    },
    /// Replaces the 16 bits of `to` from bit `shift` on by `n`.
    SetPart {
        to: X,
        n: u32,
        shift: u32,
    },
    JumpIfZero {
        counter: X,
        to: usize,
    },
    Jump {
        to: usize,
    },
    Return,
}

/// Ways to put the bytes of two vectors into another order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Permutation {
    Even,
    Odd,
    InterleaveLow,
    InterleaveHigh,
}

impl Permutation {
    fn name(self) -> &'static str {
        match self {
            Self::Even => "uzp1",
            Self::Odd => "uzp2",
            Self::InterleaveLow => "zip1",
            Self::InterleaveHigh => "zip2",
        }
    }
}

/// Ways to shift elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shift {
    Left,
    Right,
    /// To the right; copies of the top bit come in.
    Sign,
}

impl Shift {
    fn name(self) -> &'static str {
        match self {
            Self::Left => "shl",
            Self::Right => "ushr",
            Self::Sign => "sshr",
        }
    }
}

/// Returns the name of an arrangement of elements of `bytes` bytes.
fn arrangement(bytes: u8) -> &'static str {
    match bytes {
        1 => "16b",
        2 => "8h",
        _ => "4s",
    }
}

/// Encodes instructions that begin `entry` bytes after the first constant.
#[cfg(any(target_arch = "aarch64", test))]
pub(crate) fn encode(instructions: &[Instruction], entry: usize) -> Vec<u8> {
    let mut code = dynasmrt::SimpleAssembler::new();
    for (number, made) in Translator::translate(instructions, entry).into_iter().enumerate() {
        made.encode(number, &mut code);
    }
    code.finalize()
}

/// Lists instructions as text, one a line; a jump's target is an instruction's number, from 0.
#[cfg(any(feature = "research", test))]
pub(crate) fn list(instructions: &[Instruction], entry: usize) -> String {
    let made = Translator::translate(instructions, entry);
    made.iter().enumerate().map(|(number, made)| format!("{number:5}  {made}\n")).collect()
}

/// Translates instructions to the processor's.
struct Translator {
    /// Bytes of the constants, which are stored before the function.
    entry: usize,
    made: Vec<Made>,
}

impl Translator {
    fn translate(instructions: &[Instruction], entry: usize) -> Vec<Made> {
        let mut translator = Self { entry, made: Vec::new() };
        // For each instruction, the number of the first one that it became.
        let mut starts = Vec::with_capacity(instructions.len());
        let mut rest = instructions;
        while let [first, after @ ..] = rest {
            starts.push(translator.made.len());
            rest = after;
            match after {
                // No jump leads between the two: the instruction before the start of a loop moves
                // no vector.
                [second, after @ ..] if translator.pair(*first, *second) => {
                    starts.push(translator.made.len());
                    rest = after;
                }
                _ => translator.instruction(*first, &starts),
            }
        }
        translator.made
    }

    fn push(&mut self, made: Made) {
        self.made.push(made);
    }

    /// Moves two vectors with one instruction, if they are neighbours.
    fn pair(&mut self, first: Instruction, second: Instruction) -> bool {
        let (Some((way, a, place)), Some((other, b, next))) = (moved(first), moved(second)) else {
            return false;
        };
        let neighbours = next == Address { offset: place.offset + VECTOR, ..place };
        if way != other || !neighbours || (way == Way::Load && a == b) {
            return false;
        }
        let at = self.at(place, Reach::PAIR);
        self.push(match way {
            Way::Load => Made::LoadPair([a, b], at),
            Way::Store => Made::StorePair([a, b], at),
            Way::StoreNontemporal => Made::StorePairNontemporal([a, b], at),
        });
        true
    }

    fn instruction(&mut self, instruction: Instruction, starts: &[usize]) {
        match instruction {
            Instruction::Enter => self.enter(),
            Instruction::FindConstants => self.find_constants(),
            Instruction::Leave { .. } => self.leave(),
            Instruction::Fetch { to, from } => self.load_address(general(to), from),
            Instruction::Advance { base, bytes } => self.add(general(base), general(base), bytes),
            Instruction::StartIndex | Instruction::AdvanceIndex(_) => {
                unreachable!("AArch64 has no index beside an offset")
            }
            Instruction::AdvanceFetched { place, bytes } => {
                self.load_address(PASSING, place);
                self.add(PASSING, PASSING, bytes);
                let at = self.at(place, Reach::ADDRESS);
                self.push(Made::StoreAddress(PASSING, at));
            }
            Instruction::Count(count) => self.set(INNER, count),
            Instruction::Repeat { counter, to } => self.repeat(counter, starts[to]),
            Instruction::Prefetch(place) => {
                let at = self.at(place, Reach::PREFETCH);
                self.push(Made::Prefetch(at));
            }
            Instruction::Step(step) => self.step(step),
            Instruction::StoreNontemporal { from, to } => self.store(from, to),
        }
    }

    /// Loads the address of the constants or, if it is out of reach, the function's address minus
    /// the bytes of the constants.
    fn find_constants(&mut self) {
        let in_function = 4 * self.made.len();
        let before = self.entry + in_function;
        if before <= ADDRESS_REACH {
            self.push(Made::Address { to: CONSTANTS, before });
            return;
        }
        self.push(Made::Address { to: CONSTANTS, before: in_function });
        self.set(FAR, self.entry);
        self.push(Made::SubtractRegister { from: CONSTANTS, n: FAR });
    }

    fn enter(&mut self) {
        self.push(Made::Subtract { from: STACK, n: FRAME });
        saved_registers().for_each(|(pair, offset)| self.push(Made::Save(pair, offset)));
        saved_halves().for_each(|(pair, offset)| self.push(Made::SaveHalves(pair, offset)));
    }

    fn leave(&mut self) {
        saved_registers().for_each(|(pair, offset)| self.push(Made::Restore(pair, offset)));
        saved_halves().for_each(|(pair, offset)| self.push(Made::RestoreHalves(pair, offset)));
        self.push(Made::Add { to: STACK, a: STACK, n: FRAME });
        self.push(Made::Return);
    }

    /// Subtracts 1 from the counter and repeats unless it is 0. A conditional jump reaches back one
    /// mebibyte, which the longest bodies exceed. So the conditional jump leads over an
    /// unconditional one, which reaches a hundred times as far; no body exceeds that.
    fn repeat(&mut self, counter: Counter, to: usize) {
        let counter = match counter {
            Counter::Outer => OUTER,
            Counter::Inner => INNER,
        };
        self.push(Made::Subtract { from: counter, n: 1 });
        self.push(Made::JumpIfZero { counter, to: self.made.len() + 2 });
        self.push(Made::Jump { to });
    }

    fn step(&mut self, step: Step<Address>) {
        match step {
            Step::Zero { to } => self.push(Made::Zero(to)),
            Step::Load { to, from: Operand::Register(from) } => self.push(Made::Copy { to, from }),
            Step::Load { to, from: Operand::Memory(from) } => self.load(to, from),
            Step::Xor { to, a, b } => {
                let b = in_register(b);
                self.push(Made::Xor { to, a, b });
            }
            Step::Xor3 { to, a, b } => {
                let b = in_register(b);
                self.push(Made::Xor3 { to, a, b });
            }
            Step::Map { to, map, a } => self.push(mapped(to, map, a)),
            Step::Pair { to, pair, a, b } => self.push(paired(to, pair, a, in_register(b))),
            Step::Store { from, to } => self.store(from, to),
        }
    }

    fn load(&mut self, to: Register, from: Address) {
        let at = self.at(from, Reach::VECTOR);
        self.push(Made::LoadVector(to, at));
    }

    /// Stores a single vector with an ordinary store, even where a non-temporal one is asked for:
    /// the hint exists for pairs only.
    fn store(&mut self, from: Register, to: Address) {
        let at = self.at(to, Reach::VECTOR);
        self.push(Made::StoreVector(from, at));
    }

    fn load_address(&mut self, to: X, from: Address) {
        let at = self.at(from, Reach::ADDRESS);
        self.push(Made::LoadAddress(to, at));
    }

    /// Returns the address of `place` for an instruction that has the reach `reach`. (Rows of a
    /// packet that is not a whole number of vectors lie at odd offsets.)
    fn at(&mut self, place: Address, reach: Reach) -> At {
        let base = general(place.base);
        if reach.has(place.offset) {
            return At { base, offset: place.offset as u32 };
        }
        self.add(FAR, base, place.offset);
        At { base: FAR, offset: 0 }
    }

    /// `to = a + n`
    fn add(&mut self, to: X, a: X, n: usize) {
        let (high, low) = (n >> 12, n as u32 & 0xFFF);
        match (high, low) {
            (0, _) => self.push(Made::Add { to, a, n: low }),
            (1..0x1000, 0) => self.push(Made::AddShifted { to, a, n: high as u32 }),
            (1..0x1000, _) => {
                self.push(Made::AddShifted { to, a, n: high as u32 });
                self.push(Made::Add { to, a: to, n: low });
            }
            _ => {
                self.set(FAR, n);
                self.push(Made::AddRegister { to, a, b: FAR });
            }
        }
    }

    /// `to = n`, 16 bits at a time.
    fn set(&mut self, to: X, n: usize) {
        let parts = (0..64).step_by(16).map(|shift| ((n as u64 >> shift) as u32 & 0xFFFF, shift));
        let mut parts = parts.filter(|&(part, shift)| part != 0 || (n == 0 && shift == 0));
        if let Some((n, shift)) = parts.next() {
            self.push(Made::Set { to, n, shift });
        }
        parts.for_each(|(n, shift)| self.push(Made::SetPart { to, n, shift }));
    }
}

fn mapped(to: Register, map: Map, a: Register) -> Made {
    let shift = |how, bytes, bits| Made::Shift { how, bytes, to, a, bits };
    match map {
        Map::ShiftBytes(bits) => shift(Shift::Right, 1, bits),
        Map::ShiftWords(bits) => shift(Shift::Right, 2, bits),
        Map::Sign(bytes) => shift(Shift::Sign, bytes, 8 * bytes - 1),
        Map::Twice(bytes) => shift(Shift::Left, bytes, 1),
    }
}

fn paired(to: Register, pair: PairOperation, a: Register, b: Register) -> Made {
    let permute = |how| Made::Permute { how, to, a, b };
    match pair {
        PairOperation::And => Made::And { to, a, b },
        PairOperation::Lookup => Made::Lookup { to, table: b, index: a },
        PairOperation::Even => permute(Permutation::Even),
        PairOperation::Odd => permute(Permutation::Odd),
        PairOperation::InterleaveLow => permute(Permutation::InterleaveLow),
        PairOperation::InterleaveHigh => permute(Permutation::InterleaveHigh),
        PairOperation::Affine | PairOperation::Greater | PairOperation::Pack => {
            unreachable!("AArch64 has no {pair:?}")
        }
    }
}

/// Ways in which a vector moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Load,
    Store,
    StoreNontemporal,
}

/// Returns what an instruction moves between a register and memory, if it does nothing else.
fn moved(instruction: Instruction) -> Option<(Way, Register, Address)> {
    match instruction {
        Instruction::Step(Step::Load { to, from: Operand::Memory(from) }) => {
            Some((Way::Load, to, from))
        }
        Instruction::Step(Step::Store { from, to }) => Some((Way::Store, from, to)),
        Instruction::StoreNontemporal { from, to } => Some((Way::StoreNontemporal, from, to)),
        _ => None,
    }
}

/// Returns the register of an operand. On a machine without memory operands, allocation gives no
/// other operands.
fn in_register(operand: Operand<Address>) -> Register {
    match operand {
        Operand::Register(register) => register,
        Operand::Memory(place) => unreachable!("{place:?} is not loaded"),
    }
}

fn general(base: Base) -> X {
    match base {
        Base::Pointers => POINTERS,
        Base::Scratch => SCRATCH,
        Base::Constants => CONSTANTS,
        Base::Indexed(_) => unreachable!("AArch64 has no index beside an offset"),
        Base::Buffer(number) if number < FREE_ADDRESSES => X(FIRST_ADDRESS + number),
        Base::Buffer(number) => X(FIRST_SAVED + number - FREE_ADDRESSES),
    }
}

/// Pairs of x19 to x28, each with its place on the stack.
fn saved_registers() -> impl Iterator<Item = ([X; 2], u32)> {
    (0..10).step_by(2).map(|n| ([X(FIRST_SAVED + n), X(FIRST_SAVED + n + 1)], 8 * u32::from(n)))
}

/// Pairs of v8 to v15, each with its place on the stack.
fn saved_halves() -> impl Iterator<Item = ([Register; 2], u32)> {
    (0..8).step_by(2).map(|n| ([Register(8 + n), Register(9 + n)], 8 * (10 + u32::from(n))))
}

impl fmt::Display for X {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            STACK => f.write_str("sp"),
            Self(number) => write!(f, "x{number}"),
        }
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self { base, offset: 0 } => write!(f, "[{base}]"),
            Self { base, offset } => write!(f, "[{base}, #{offset:#x}]"),
        }
    }
}

impl fmt::Display for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stack = |offset| At { base: STACK, offset };
        match *self {
            Self::LoadVector(Register(to), at) => write!(f, "ldr q{to}, {at}"),
            Self::StoreVector(Register(from), at) => write!(f, "str q{from}, {at}"),
            Self::LoadPair([Register(a), Register(b)], at) => write!(f, "ldp q{a}, q{b}, {at}"),
            Self::StorePair([Register(a), Register(b)], at) => write!(f, "stp q{a}, q{b}, {at}"),
            Self::StorePairNontemporal([Register(a), Register(b)], at) => {
                write!(f, "stnp q{a}, q{b}, {at}")
            }
            Self::Zero(Register(to)) => write!(f, "movi v{to}.2d, #0x0"),
            Self::Copy { to: Register(to), from: Register(from) } => {
                write!(f, "mov v{to}.16b, v{from}.16b")
            }
            Self::Xor { to: Register(to), a: Register(a), b: Register(b) } => {
                write!(f, "eor v{to}.16b, v{a}.16b, v{b}.16b")
            }
            Self::Xor3 { to: Register(to), a: Register(a), b: Register(b) } => {
                write!(f, "eor3 v{to}.16b, v{to}.16b, v{a}.16b, v{b}.16b")
            }
            Self::And { to: Register(to), a: Register(a), b: Register(b) } => {
                write!(f, "and v{to}.16b, v{a}.16b, v{b}.16b")
            }
            Self::Lookup { to: Register(to), table: Register(table), index: Register(index) } => {
                write!(f, "tbl v{to}.16b, {{v{table}.16b}}, v{index}.16b")
            }
            Self::Permute { how, to: Register(to), a: Register(a), b: Register(b) } => {
                write!(f, "{} v{to}.16b, v{a}.16b, v{b}.16b", how.name())
            }
            Self::Shift { how, bytes, to: Register(to), a: Register(a), bits } => {
                let (name, elements) = (how.name(), arrangement(bytes));
                write!(f, "{name} v{to}.{elements}, v{a}.{elements}, #{bits:#x}")
            }
            Self::Address { to, before } => write!(f, "adr {to}, $-{before:#x}"),
            Self::Prefetch(at) => write!(f, "prfum pldl2keep, {at}"),
            Self::LoadAddress(to, at) => write!(f, "ldr {to}, {at}"),
            Self::StoreAddress(from, at) => write!(f, "str {from}, {at}"),
            Self::Save([a, b], offset) => write!(f, "stp {a}, {b}, {}", stack(offset)),
            Self::Restore([a, b], offset) => write!(f, "ldp {a}, {b}, {}", stack(offset)),
            Self::SaveHalves([Register(a), Register(b)], offset) => {
                write!(f, "stp d{a}, d{b}, {}", stack(offset))
            }
            Self::RestoreHalves([Register(a), Register(b)], offset) => {
                write!(f, "ldp d{a}, d{b}, {}", stack(offset))
            }
            Self::Add { to, a, n } => write!(f, "add {to}, {a}, #{n:#x}"),
            Self::AddShifted { to, a, n } => write!(f, "add {to}, {a}, #{n:#x}, lsl #12"),
            Self::AddRegister { to, a, b } => write!(f, "add {to}, {a}, {b}"),
            Self::Subtract { from, n } => write!(f, "sub {from}, {from}, #{n:#x}"),
            Self::SubtractRegister { from, n } => write!(f, "sub {from}, {from}, {n}"),
            Self::Set { to, n, shift } => write!(f, "mov {to}, #{:#x}", u64::from(n) << shift),
            Self::SetPart { to, n, shift } => write!(f, "movk {to}, #{n:#x}, lsl #{shift}"),
            Self::JumpIfZero { counter, to } => write!(f, "cbz {counter}, {to}"),
            Self::Jump { to } => write!(f, "b {to}"),
            Self::Return => f.write_str("ret"),
        }
    }
}

#[cfg(any(target_arch = "aarch64", test))]
impl Made {
    /// Writes the instruction number `number`.
    #[allow(clippy::useless_conversion, reason = "dynasm-rs converts what has the type already")]
    fn encode(self, number: usize, code: &mut dynasmrt::SimpleAssembler) {
        use dynasmrt::DynasmApi;

        macro_rules! emit {
            ($($instruction:tt)*) => { dynasmrt::dynasm!(code; .arch aarch64; $($instruction)*) };
        }

        // Instructions have four bytes, and functions fewer than the 2^27 that a jump reaches.
        let distance = |to: usize| 4 * (to as i32 - number as i32);
        match self {
            Self::LoadVector(Register(to), At { base: X(base), offset }) => {
                emit!(ldr Q(to), [XSP(base), offset]);
            }
            Self::StoreVector(Register(from), At { base: X(base), offset }) => {
                emit!(str Q(from), [XSP(base), offset]);
            }
            Self::LoadPair([Register(a), Register(b)], At { base: X(base), offset }) => {
                emit!(ldp Q(a), Q(b), [XSP(base), offset as i32]);
            }
            Self::StorePair([Register(a), Register(b)], At { base: X(base), offset }) => {
                emit!(stp Q(a), Q(b), [XSP(base), offset as i32]);
            }
            Self::StorePairNontemporal(
                [Register(a), Register(b)],
                At { base: X(base), offset },
            ) => {
                emit!(stnp Q(a), Q(b), [XSP(base), offset as i32]);
            }
            Self::Zero(Register(to)) => emit!(movi V(to).D2, 0),
            Self::Copy { to: Register(to), from: Register(from) } => {
                emit!(mov V(to).B16, V(from).B16);
            }
            Self::Xor { to: Register(to), a: Register(a), b: Register(b) } => {
                emit!(eor V(to).B16, V(a).B16, V(b).B16);
            }
            Self::Xor3 { to: Register(to), a: Register(a), b: Register(b) } => {
                emit!(eor3 V(to).B16, V(to).B16, V(a).B16, V(b).B16);
            }
            Self::And { to: Register(to), a: Register(a), b: Register(b) } => {
                emit!(and V(to).B16, V(a).B16, V(b).B16);
            }
            Self::Lookup { to: Register(to), table: Register(table), index: Register(index) } => {
                emit!(tbl V(to).B16, {V(table).B16 * 1}, V(index).B16);
            }
            Self::Permute { how, to: Register(to), a: Register(a), b: Register(b) } => match how {
                Permutation::Even => emit!(uzp1 V(to).B16, V(a).B16, V(b).B16),
                Permutation::Odd => emit!(uzp2 V(to).B16, V(a).B16, V(b).B16),
                Permutation::InterleaveLow => emit!(zip1 V(to).B16, V(a).B16, V(b).B16),
                Permutation::InterleaveHigh => emit!(zip2 V(to).B16, V(a).B16, V(b).B16),
            },
            Self::Shift { how, bytes, to: Register(to), a: Register(a), bits } => {
                let bits = u32::from(bits);
                match (how, bytes) {
                    (Shift::Left, 1) => emit!(shl V(to).B16, V(a).B16, bits),
                    (Shift::Left, 2) => emit!(shl V(to).H8, V(a).H8, bits),
                    (Shift::Left, _) => emit!(shl V(to).S4, V(a).S4, bits),
                    (Shift::Right, 1) => emit!(ushr V(to).B16, V(a).B16, bits),
                    (Shift::Right, 2) => emit!(ushr V(to).H8, V(a).H8, bits),
                    (Shift::Right, _) => emit!(ushr V(to).S4, V(a).S4, bits),
                    (Shift::Sign, 1) => emit!(sshr V(to).B16, V(a).B16, bits),
                    (Shift::Sign, 2) => emit!(sshr V(to).H8, V(a).H8, bits),
                    (Shift::Sign, _) => emit!(sshr V(to).S4, V(a).S4, bits),
                }
            }
            Self::Address { to: X(to), before } => emit!(adr X(to), -(before as i32)),
            Self::Prefetch(At { base: X(base), offset }) => {
                emit!(prfum 2, [XSP(base), offset as i32]);
            }
            Self::LoadAddress(X(to), At { base: X(base), offset }) => {
                emit!(ldr X(to), [XSP(base), offset]);
            }
            Self::StoreAddress(X(from), At { base: X(base), offset }) => {
                emit!(str X(from), [XSP(base), offset]);
            }
            Self::Save([X(a), X(b)], offset) => {
                emit!(stp X(a), X(b), [sp, offset as i32]);
            }
            Self::Restore([X(a), X(b)], offset) => {
                emit!(ldp X(a), X(b), [sp, offset as i32]);
            }
            Self::SaveHalves([Register(a), Register(b)], offset) => {
                emit!(stp D(a), D(b), [sp, offset as i32]);
            }
            Self::RestoreHalves([Register(a), Register(b)], offset) => {
                emit!(ldp D(a), D(b), [sp, offset as i32]);
            }
            Self::Add { to: X(to), a: X(a), n } => {
                emit!(add XSP(to), XSP(a), n);
            }
            Self::AddShifted { to: X(to), a: X(a), n } => {
                emit!(add XSP(to), XSP(a), n, lsl 12);
            }
            Self::AddRegister { to: X(to), a: X(a), b: X(b) } => {
                emit!(add X(to), X(a), X(b));
            }
            Self::Subtract { from: X(from), n } => {
                emit!(sub XSP(from), XSP(from), n);
            }
            Self::SubtractRegister { from: X(from), n: X(n) } => {
                emit!(sub X(from), X(from), X(n));
            }
            Self::Set { to: X(to), n, shift } => {
                emit!(movz X(to), n, lsl shift);
            }
            Self::SetPart { to: X(to), n, shift } => {
                emit!(movk X(to), n, lsl shift);
            }
            Self::JumpIfZero { counter: X(counter), to } => {
                emit!(cbz X(counter), distance(to));
            }
            Self::Jump { to } => emit!(b distance(to)),
            Self::Return => emit!(ret),
        }
    }
}

#[cfg(test)]
mod tests;
