//! What a plan must know of the machine that runs it.
//!
//! A machine here is an instruction set and a width of vector register, described by what planning
//! depends on: how many registers there are, what one instruction can do, and how bytes are
//! multiplied by a constant. `run` has one [`Machine`] for each instruction set that it can compile
//! for; nothing in `plan` asks which processor is at hand.

/// The bytes of a cache line, on every processor that is served.
pub const LINE: usize = 64;

/// What planning must know of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Machine {
    /// Vector registers; at least 3, and at least 8 where words are multiplied.
    pub registers: usize,
    /// Whether one instruction XORs three vectors.
    pub ternary: bool,
    /// Whether instructions may read one operand from memory; otherwise loads do, to registers.
    pub memory_operands: bool,
    /// Whether an output may be read back from where it was stored. That does not pay where stores
    /// are non-temporal.
    pub outputs_readable: bool,
    /// How bytes are multiplied by a constant.
    pub multiplier: Multiplier,
}

/// How a machine multiplies bytes by a constant, and what else it does to bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Multiplier {
    /// Tables of 16 bytes that half bytes look up, on x86-64 up to AVX2.
    Shuffle,
    /// The same on AVX-512, where the sign of bytes goes through a mask register.
    ShuffleMasked,
    /// The same on AArch64, which shifts bytes and separates even from odd ones by one instruction.
    ShuffleNeon,
    /// Bit matrices (GFNI) on x86-64.
    Affine,
}

impl Machine {
    /// AVX2, whose counts `paritas schedule` reports: 16 registers, two-input XOR.
    pub const AVX2: Self = Self {
        registers: 16,
        ternary: false,
        memory_operands: true,
        outputs_readable: true,
        multiplier: Multiplier::Shuffle,
    };

    /// The registers that hold values from one operation to the next; the others, set aside for
    /// operands of XORs that must be loaded first, come after them.
    pub(crate) fn values(self) -> usize {
        let set_aside = match (self.memory_operands, self.ternary) {
            (true, _) => 0,
            (false, false) => 1,
            (false, true) => 2,
        };
        self.registers - set_aside
    }
}
