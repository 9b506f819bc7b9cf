//! The properties of a machine that planning depends on.
//!
//! A machine here is an instruction set and a width of vector register. It is described by the
//! properties that planning depends on: the number of registers, the operands of one instruction,
//! and how bytes are multiplied by a constant. `run` has one [`Machine`] for each instruction set
//! that it can compile for; `plan` never asks which processor is present.

use crate::error::{Error, Result};

/// Size of a cache line in bytes, on every supported processor.
pub const LINE: usize = 64;

/// Largest number of vector registers of any machine.
const MOST_REGISTERS: usize = 32;

/// The properties of a machine that planning depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Machine {
    /// Number of vector registers: 3 to 32, and at least 8 where words are multiplied.
    pub registers: usize,
    /// Whether one instruction XORs three vectors.
    pub ternary: bool,
    /// Whether instructions may read one operand from memory; otherwise loads bring it to a
    /// register.
    pub memory_operands: bool,
    /// Whether an output may be read back from memory after it was stored. That does not pay if
    /// stores are non-temporal.
    pub outputs_readable: bool,
    /// How bytes are multiplied by a constant.
    pub multiplier: Multiplier,
}

/// How a machine multiplies bytes by a constant, and what other operations on bytes it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Multiplier {
    /// Tables of 16 bytes, indexed by half bytes, on x86-64 up to AVX2.
    Shuffle,
    /// Like `Shuffle`, on AVX-512, where the sign of bytes goes through a mask register.
    ShuffleMasked,
    /// Like `Shuffle`, on AArch64, which shifts bytes and separates even from odd ones in one
    /// instruction.
    ShuffleNeon,
    /// Bit matrices (GFNI) on x86-64.
    Affine,
}

impl Machine {
    /// AVX2, for which `paritas schedule` reports counts: 16 registers, two-input XOR.
    pub const AVX2: Self = Self {
        registers: 16,
        ternary: false,
        memory_operands: true,
        outputs_readable: true,
        multiplier: Multiplier::Shuffle,
    };

    /// Checks that the machine has at least `least` registers, and at most as many as instructions
    /// can name.
    ///
    /// # Errors
    /// If it has fewer or more.
    pub(crate) fn expect_registers(self, least: usize) -> Result<()> {
        if (least..=MOST_REGISTERS).contains(&self.registers) {
            return Ok(());
        }
        let registers = self.registers;
        Err(Error::parameters(format!(
            "a machine must have {least} to {MOST_REGISTERS} vector registers; got {registers}"
        )))
    }

    /// Number of registers that hold values from one operation to the next. The others come after
    /// them and are reserved for operands that must be loaded before an XOR.
    pub(crate) fn values(self) -> usize {
        let set_aside = match (self.memory_operands, self.ternary) {
            (true, _) => 0,
            (false, false) => 1,
            (false, true) => 2,
        };
        self.registers - set_aside
    }
}
