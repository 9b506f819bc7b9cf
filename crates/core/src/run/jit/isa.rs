//! Instruction sets that compiled kernels exist for.

use crate::plan::machine::{LINE, Machine, Multiplier};
use crate::plan::variants::CompileTarget;

/// An instruction set that the assembler can target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Isa {
    /// 16 registers of 16 bytes; no memory operands, because these must be aligned.
    Ssse3,
    /// 16 registers of 32 bytes.
    Avx2,
    /// As [`Isa::Avx2`], with bit matrices.
    Avx2Gfni,
    /// 32 registers of 32 bytes and three-input XOR.
    Avx512Vl,
    /// 32 registers of 64 bytes and three-input XOR.
    Avx512,
    /// As [`Isa::Avx512`], with operations on bytes.
    Avx512Bw,
    /// As [`Isa::Avx512Bw`], with bit matrices.
    Avx512Gfni,
    /// 32 registers of 16 bytes, loaded and stored in pairs; no memory operands.
    Neon,
    /// As [`Isa::Neon`], with three-input XOR.
    NeonSha3,
}

impl Isa {
    /// Whether this processor has the instruction set.
    pub(crate) fn is_available(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Ssse3 => is_x86_feature_detected!("ssse3"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => is_x86_feature_detected!("avx2"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2Gfni => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("gfni"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vl => {
                is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl")
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => is_x86_feature_detected!("avx512f"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Bw => is_x86_feature_detected!("avx512bw"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Gfni => {
                is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("gfni")
            }
            #[cfg(target_arch = "aarch64")]
            Self::Neon => std::arch::is_aarch64_feature_detected!("neon"),
            #[cfg(target_arch = "aarch64")]
            Self::NeonSha3 => std::arch::is_aarch64_feature_detected!("sha3"),
            _ => false,
        }
    }

    /// Bytes of a vector.
    pub(crate) fn vector(self) -> usize {
        match self {
            Self::Ssse3 | Self::Neon | Self::NeonSha3 => 16,
            Self::Avx2 | Self::Avx2Gfni | Self::Avx512Vl => 32,
            Self::Avx512 | Self::Avx512Bw | Self::Avx512Gfni => 64,
        }
    }

    /// Returns the properties of the instruction set that planning depends on.
    pub(crate) fn target(self) -> CompileTarget {
        let machine = Machine {
            registers: self.registers(),
            ternary: self.is_avx512() || self == Self::NeonSha3,
            memory_operands: !self.is_aarch64() && self != Self::Ssse3,
            outputs_readable: true,
            multiplier: match self {
                Self::Ssse3 | Self::Avx2 => Multiplier::Shuffle,
                Self::Avx512Vl | Self::Avx512 | Self::Avx512Bw => Multiplier::ShuffleMasked,
                Self::Avx2Gfni | Self::Avx512Gfni => Multiplier::Affine,
                Self::Neon | Self::NeonSha3 => Multiplier::ShuffleNeon,
            },
        };
        CompileTarget { machine, vector: self.vector() }
    }

    /// Number of vector registers.
    pub(crate) fn registers(self) -> usize {
        if self.is_avx512() || self.is_aarch64() { 32 } else { 16 }
    }

    /// Number of general registers that may hold buffers' addresses. The address of the constants
    /// takes another, if a function has constants.
    pub(crate) fn addresses(self, has_constants: bool) -> u8 {
        match self.is_aarch64() {
            // The address of the constants takes one register.
            true => 22 - u8::from(has_constants),
            // Constants are addressed relative to the code.
            false => 11,
        }
    }

    /// Whether an address may be the sum of two registers and an offset.
    pub(crate) fn has_index(self) -> bool {
        !self.is_aarch64()
    }

    /// How many inputs are copied to the scratch at once: those of a cache line where vectors move
    /// in pairs.
    pub(crate) fn copied_together(self) -> usize {
        if self.is_aarch64() { LINE / self.vector() } else { 1 }
    }

    /// Bytes of a constant in memory: a whole vector, or the part that is broadcast.
    pub(crate) fn constant_bytes(self) -> usize {
        if self.is_avx512() { 16 } else { self.vector() }
    }

    /// Whether instructions have the AVX-512 encoding.
    pub(crate) fn is_avx512(self) -> bool {
        matches!(self, Self::Avx512Vl | Self::Avx512 | Self::Avx512Bw | Self::Avx512Gfni)
    }

    pub(crate) fn is_aarch64(self) -> bool {
        matches!(self, Self::Neon | Self::NeonSha3)
    }
}
