//! Which kernels there are, which this processor has, and which one serves.
//!
//! The only place that asks the processor what it can do.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::plan::registers::Machine;
use crate::run::jit::{self, Jit, assemble::Isa};
use crate::run::kernel::blocks::Runner;
use crate::run::kernel::{self, Compiled, Executable};
use crate::run::program::Program;

/// A kernel by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Kernel {
    /// Tiled, 64-bit words.
    Scalar,
    /// Tiled, SSE2.
    Sse2,
    /// Tiled, AVX2.
    Avx2,
    /// Tiled, AVX-512.
    Avx512,
    /// Tiled, NEON.
    Neon,
    /// Compiled, AVX2.
    JitAvx2,
    /// Compiled, AVX-512 on 32-byte vectors.
    JitAvx512Vl,
    /// Compiled, AVX-512 on 64-byte vectors.
    JitAvx512,
    /// Compiled, NEON.
    JitNeon,
    /// Compiled, NEON with the three-input XOR of the SHA-3 instructions.
    JitNeonSha3,
}

/// How and when programs are compiled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Compiling {
    /// How many bytes a program runs over before it is compiled.
    pub(crate) patience: usize,
    /// Whether wide stripes from memory are prefetched by instructions.
    pub(crate) prefetch: bool,
}

/// What a caller may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum KernelChoice {
    /// The best one for the program.
    #[default]
    Auto,
    /// This one where it suits the packets, else the best one.
    Prefer(Kernel),
    /// This one, or an error.
    Only(Kernel),
}

impl Kernel {
    /// All kernels, the plainest first.
    pub const ALL: [Self; 10] = [
        Self::Scalar,
        Self::Sse2,
        Self::Avx2,
        Self::Avx512,
        Self::Neon,
        Self::JitAvx2,
        Self::JitAvx512Vl,
        Self::JitAvx512,
        Self::JitNeon,
        Self::JitNeonSha3,
    ];

    /// The name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Sse2 => "sse2",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
            Self::Neon => "neon",
            Self::JitAvx2 => "jit-avx2",
            Self::JitAvx512Vl => "jit-avx512vl",
            Self::JitAvx512 => "jit-avx512",
            Self::JitNeon => "jit-neon",
            Self::JitNeonSha3 => "jit-neon-sha3",
        }
    }

    /// Whether this processor can run it.
    pub fn is_available(self) -> bool {
        match self {
            Self::Scalar => true,
            #[cfg(target_arch = "x86_64")]
            Self::Sse2 => kernel::sse2::is_available(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => kernel::avx2::is_available(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => kernel::avx512::is_available(),
            #[cfg(target_arch = "aarch64")]
            Self::Neon => kernel::neon::is_available(),
            _ => self.isa().is_some_and(Isa::is_available),
        }
    }

    /// The kernels that this processor can run, the plainest first.
    pub fn available() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|kernel| kernel.is_available())
    }

    /// The bytes of a vector register.
    pub fn vector_bytes(self) -> usize {
        match self {
            Self::Scalar => 8,
            Self::Sse2 | Self::Neon | Self::JitNeon | Self::JitNeonSha3 => 16,
            Self::Avx2 | Self::JitAvx2 | Self::JitAvx512Vl => 32,
            Self::Avx512 | Self::JitAvx512 => 64,
        }
    }

    /// The widest available kernel whose registers fill packets of this size without a rest, or
    /// the plainest one.
    pub fn best(packet: usize) -> Self {
        Self::available().filter(|kernel| kernel.suits(packet)).last().unwrap_or(Self::Scalar)
    }

    /// Whether its registers fill packets of this size without a rest.
    pub fn suits(self, packet: usize) -> bool {
        packet.is_multiple_of(self.vector_bytes())
    }

    /// Makes a program ready for this kernel; `how` is for compiled ones.
    ///
    /// # Errors
    /// When the processor cannot run it.
    pub(crate) fn compile(self, program: &Program, how: Compiling) -> Result<Executable> {
        let compiled = match self.isa() {
            Some(isa) => Jit::prepare(program, isa, self.tiled().tile(program), how),
            None => self.tile(program),
        };
        let compiled = compiled.ok_or_else(|| self.unavailable())?;
        Ok(Executable::new(program.footprint(), compiled))
    }

    /// A program for a tiled kernel, `None` where the processor cannot run it.
    fn tile(self, program: &Program) -> Option<Box<dyn Compiled>> {
        match self {
            Self::Scalar => kernel::scalar::compile(program),
            #[cfg(target_arch = "x86_64")]
            Self::Sse2 => kernel::sse2::compile(program),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => kernel::avx2::compile(program),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => kernel::avx512::compile(program),
            #[cfg(target_arch = "aarch64")]
            Self::Neon => kernel::neon::compile(program),
            _ => None,
        }
    }

    /// What runs programs over long blocks on the same registers, `None` where the processor cannot.
    pub(crate) fn block_runner(self) -> Option<Runner> {
        match self.tiled() {
            Self::Scalar => Some(kernel::scalar::run_blocks),
            #[cfg(target_arch = "x86_64")]
            Self::Sse2 => kernel::sse2::block_runner(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => kernel::avx2::block_runner(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => kernel::avx512::block_runner(),
            #[cfg(target_arch = "aarch64")]
            Self::Neon => kernel::neon::block_runner(),
            _ => None,
        }
    }

    /// The tiled kernel on the same registers, which serves where a compiled one does not.
    pub(crate) fn tiled(self) -> Self {
        match self {
            Self::JitAvx2 | Self::JitAvx512Vl => Self::Avx2,
            Self::JitAvx512 => Self::Avx512,
            Self::JitNeon | Self::JitNeonSha3 => Self::Neon,
            tiled => tiled,
        }
    }

    /// The instruction set of a compiled kernel.
    fn isa(self) -> Option<Isa> {
        match self {
            Self::JitAvx2 => Some(Isa::Avx2),
            Self::JitAvx512Vl => Some(Isa::Avx512Vl),
            Self::JitAvx512 => Some(Isa::Avx512),
            Self::JitNeon => Some(Isa::Neon),
            Self::JitNeonSha3 => Some(Isa::NeonSha3),
            _ => None,
        }
    }

    /// How many outputs a compiled kernel can keep in registers and grow side by side; `None` where that
    /// does not pay, for want of registers or of three-input XORs.
    pub(crate) fn outputs_in_registers(self) -> Option<usize> {
        let machine = self.machine()?;
        (machine.ternary && machine.registers >= 32).then_some(machine.registers - 8)
    }

    /// What register allocation knows of the machine, for kernels that are compiled.
    pub fn machine(self) -> Option<Machine> {
        self.isa().map(|isa| isa.machine(false))
    }

    /// The machine code of a program, an instruction a line, for kernels that are compiled; this
    /// processor need not have the kernel.
    pub(crate) fn listing(self, program: &Program) -> Option<String> {
        Jit::listing(program, self.isa()?)
    }

    /// The error for a kernel that this processor cannot run.
    pub(crate) fn unavailable(self) -> Error {
        let names: Vec<&str> = Self::available().map(Self::name).collect();
        let names = names.join(", ");
        Error::kernel(format!("this processor has no {self} kernel; it has {names}"))
    }
}

/// Whether this process may run compiled kernels.
///
/// # Errors
/// The reason why not: the system's, or that there are none for this architecture.
pub fn can_compile() -> Result<(), String> {
    jit::probe()
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How many bytes of buffers a program runs over before [`KernelChoice::Auto`] has it compiled:
/// what the tiled kernel does in the time that compiling takes.
const PATIENCE: usize = 2 << 20;

impl KernelChoice {
    /// How many bytes a program is to run over before it is compiled.
    pub(crate) fn patience(self) -> usize {
        match self {
            Self::Auto | Self::Prefer(_) => PATIENCE,
            Self::Only(_) => 0,
        }
    }

    /// The kernel that serves packets of this size.
    pub fn resolve(self, packet: usize) -> Kernel {
        match self {
            Self::Prefer(kernel) if kernel.suits(packet) && kernel.is_available() => kernel,
            Self::Auto | Self::Prefer(_) => Kernel::best(packet),
            Self::Only(kernel) => kernel,
        }
    }
}

impl FromStr for KernelChoice {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        if text == "jit" {
            let compiled = |kernel: &Kernel| kernel.name().starts_with("jit-");
            return match Kernel::available().filter(compiled).last() {
                Some(kernel) => Ok(Self::Only(kernel)),
                None => Err(Error::kernel("this processor has no jit kernel")),
            };
        }
        let found = Kernel::ALL.into_iter().find(|kernel| kernel.name() == text);
        found.map(Self::Only).ok_or_else(|| {
            let names = Kernel::ALL.map(Kernel::name).join(", ");
            Error::kernel(format!("there is no kernel `{text}`; there are auto, jit, {names}"))
        })
    }
}
